"""Right-hand sides as C function pointers.

The compiled time loop calls every right-hand side through a pointer of one type,

    void f(double t, const double* x, const double* p, double* out),

so the loop is compiled once, whatever f is. Machine code made by tracing has this type already.
A Python function gets a *trampoline*: a callback that reads the shared buffer ``x``, calls the
function, checks what came back, and fills the shared buffer ``out``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .as_python import outside

__all__ = [
    "SIGNATURE",
    "SingularMatrixError",
    "SlopeTrampoline",
    "Trampoline",
    "call",
    "call_lanes",
    "invoke",
]

SIGNATURE = ctypes.CFUNCTYPE(
    None, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)

LANE_SIGNATURE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)

# A callback needs only the time. C calling conventions let a function ignore arguments at the
# end, and converting the three pointers to Python would cost as much as the call itself.
_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_double)


def call(f: Any, t: float, x: Any, p: Any, out: Any) -> None:
    """Call the function at address f. (Compiled, this is a plain C call.)

    Interpreted or on symbols, f may also be a Python function of the same arguments.
    """
    if callable(f):
        f(t, x, p, out)
    else:
        with outside():
            SIGNATURE(int(f))(t, x.ctypes.data, p.ctypes.data, out.ctypes.data)


def call_lanes(f: Any, t: Any, x: Any, p: Any, out: Any) -> None:
    """Call the lane function at address f. (Compiled, this is a plain C call.)"""
    places = (array.ctypes.data for array in (t, x, p, out))
    LANE_SIGNATURE(int(f))(*places)


def invoke(w: Any, kernel_of_method: Any, t: Any, h: Any) -> Any:
    """Call one of the method's kernels. (Compiled, it is known by its address.)"""
    return kernel_of_method(w, t, h)


class SingularMatrixError(ArithmeticError):
    """Raised by a callback whose linear system has no solution; a shorter step may help."""


class Trampoline:
    """A Python function made callable from compiled code.

    Whatever the function raises is kept for :meth:`take_error` (KeyboardInterrupt included) and
    reported to the loop through ``flag``, because an exception cannot cross compiled code.

    Parameters
    ----------
    action
        Called with t; it works on buffers that it knows.
    flag
        ``flag[0]`` is set to 1 after each call that succeeded, to 2 by a singular matrix. The
        loop clears it beforehand.
    """

    def __init__(self, action: Callable[[float], None], flag: NDArray[np.int64]) -> None:
        raised = flag.data  # faster to write to than an array
        errors: list[BaseException] = []  # in place of self, which would be a cycle
        self._errors = errors

        def run(t: float) -> None:
            try:
                action(t)
                raised[0] = 1
            except SingularMatrixError:
                raised[0] = 2
            except BaseException as error:
                errors[:] = [error]
                raised[0] = 0  # another trampoline that the action went through may have set it

        self._install(run)

    def take_error(self) -> BaseException | None:
        """What the function raised since this was asked last."""
        return self._errors.pop() if self._errors else None

    def _install(self, run: Callable[[float], None]) -> None:
        self._callback = _CALLBACK(run)  # must outlive every use of the address
        # Not by ctypes.cast, which lets an object hold itself.
        self.address = int(ctypes.c_void_p.from_buffer(self._callback).value or 0)


class SlopeTrampoline(Trampoline):
    """The same for dx = f(t, x), with as little as possible between f and the loop.

    f gets a fresh copy of x, so that it may keep or overwrite it. ``check(value, x)`` is asked
    about anything that is not plainly an array like x.
    """

    def __init__(
        self,
        f: Callable[[float, NDArray[Any]], Any],
        x: NDArray[Any],
        dx: NDArray[Any],
        check: Callable[[Any, NDArray[Any]], NDArray[Any]],
        flag: NDArray[np.int64],
    ) -> None:
        errors: list[BaseException] = []
        self._errors = errors
        raised, copy, kind, shape = flag.data, x.copy, x.dtype, x.shape

        def run(t: float) -> None:
            try:
                value = f(t, copy())
                if type(value) is not np.ndarray or value.dtype is not kind or value.shape != shape:
                    value = check(value, x)
                dx[...] = value
                raised[0] = 1
            except BaseException as error:
                errors[:] = [error]

        self._install(run)
