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

__all__ = ["SIGNATURE", "SingularMatrixError", "Trampoline", "call"]

SIGNATURE = ctypes.CFUNCTYPE(
    None, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


def call(f: Any, t: float, x: Any, p: Any, out: Any) -> None:
    """Call f(t, x, p, out). Compiled, f is the address of a function; interpreted, a callable."""
    f(t, x, p, out)


class SingularMatrixError(ArithmeticError):
    """Raised by a callback whose linear system has no solution; a shorter step may help."""


class Trampoline:
    """A Python function made callable from compiled code.

    Parameters
    ----------
    action
        Called with t; it works on buffers that it knows. Whatever it raises is kept in
        :attr:`error` (KeyboardInterrupt included) and reported to the loop through ``flag``,
        because an exception cannot cross compiled code.
    flag
        ``flag[0]`` is set to 1 after each call that succeeded, to 2 by a singular matrix. The
        loop clears it beforehand.
    """

    def __init__(self, action: Callable[[float], None], flag: NDArray[np.int64]) -> None:
        self.error: BaseException | None = None

        def run(t: float, x: Any, p: Any, out: Any) -> None:
            try:
                action(t)
                flag[0] = 1
            except SingularMatrixError:
                flag[0] = 2
            except BaseException as error:  # noqa: BLE001 - kept, and raised again by `solve`
                self.error = error

        self._callback = SIGNATURE(run)  # must outlive every use of the address
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value
        self.run = run
