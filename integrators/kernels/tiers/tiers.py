"""Two tiers of kernels: interpreted at once, machine code when there is some.

:class:`Tier` stands for kernels that work together. Its :meth:`~Tier.look` says whether they have
become machine code, and has it compiled when that pays (:mod:`.background`). Decision 11 tells
the whole story.

``$FEATHERSTEP_COMPILE`` decides when a kernel is compiled: ``beside`` the run, by another process
(the default), or ``first``, before it runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

from ..as_python import interpret
from ..c_functions import FLOAT, NOTHING, STATUS, CFunction, c_function
from ..compiler import compiled, do_without_numba, interpreting
from . import background
from .waiting import told

__all__ = [
    "C_TYPES",
    "OnArrays",
    "OnWorkspace",
    "Tier",
    "address_of",
    "compiled_first",
    "compiles_first",
]

log = logging.getLogger(__name__)

#: Seconds between two looks into the cache.
LOOK_EVERY = 0.1

#: Result and arguments of each kind of C function.
C_TYPES: dict[str, tuple[Any, ...]] = {
    NOTHING: (None, ctypes.c_int64),
    FLOAT: (ctypes.c_double, ctypes.c_int64),
    STATUS: (ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_double),
}

_first: ContextVar[bool] = ContextVar("compile first", default=False)
_gathered: ContextVar[dict[CFunction, None] | None] = ContextVar("gathered", default=None)


def compiles_first() -> bool:
    """Whether kernels are compiled before they run, not beside the run."""
    if _first.get():
        return True
    chosen = os.environ.get("FEATHERSTEP_COMPILE") or "beside"
    if chosen not in ("beside", "first"):
        raise ValueError(
            f"FEATHERSTEP_COMPILE: expected 'beside' (another process compiles while kernels are "
            f"interpreted) or 'first' (they are compiled before they run), received {chosen!r}"
        )
    return chosen == "first"


@contextlib.contextmanager
def compiled_first() -> Iterator[None]:
    """Have kernels compiled before they run: for whoever measures times."""
    token = _first.set(True)
    try:
        yield
    finally:
        _first.reset(token)


@contextlib.contextmanager
def gathered() -> Iterator[dict[CFunction, None]]:
    """Interpret, and note which kernels would have been compiled: for compiling ahead."""
    found: dict[CFunction, None] = {}
    token = _gathered.set(found)
    try:
        yield found
    finally:
        _gathered.reset(token)


class Tier:
    """Kernels that work together, in one of two tiers.

    Parameters
    ----------
    functions
        The kernels; they are machine code when all of them are.
    """

    def __init__(self, functions: Sequence[CFunction]) -> None:
        self.functions = functions
        self._next_look = 0.0

    def look(self) -> list[int] | None:
        """Addresses of the machine code; None as long as the kernels are to be interpreted."""
        now, first = time.monotonic(), compiles_first()
        if (now < self._next_look and not first) or interpreting():
            return None
        if (gathering := _gathered.get()) is not None:
            gathering.update(dict.fromkeys(self.functions))
            return None
        self._next_look = now + LOOK_EVERY
        try:
            return self._found() or self._asked_for(first)
        except ImportError as error:  # numba is installed, but of no use
            do_without_numba(error)
            return None

    def _found(self) -> list[int] | None:
        """Addresses of code in this process and in the cache, if all of it is there."""
        if not all(function.is_kept for function in self.functions):
            return None
        found = [function.find() for function in self.functions]
        return found if all(found) else None

    def _asked_for(self, first: bool) -> list[int] | None:
        """Have the code compiled: beside, which gives nothing as yet, or here."""
        beside = not first and background.is_possible()
        if beside and all(function.text is not None for function in self.functions):
            background.want(self.functions)
            return None
        try:
            return [_built(function) for function in self.functions]
        except ImportError:
            raise
        except Exception as error:
            if first:
                raise
            # Whatever is wrong with the compiler, the run can go on as it is.
            log.warning("%s stays interpreted, which is slow: %s", self.functions[0], error)
            self._next_look = math.inf
            return None

    def run_begins(self) -> None:
        """Tell that another run begins with these kernels interpreted."""
        if not interpreting() and _gathered.get() is None:
            background.demand.runs += 1
            background.want(self.functions)

    def spent(self, seconds: float) -> None:
        """Tell what interpreting has cost."""
        background.demand.seconds += seconds


def _built(function: CFunction) -> int:
    if (address := function.find()) != 0:
        return address
    with told(f"{function.function.__name__}"):
        return function.build()


# ---------------------------------------------------------------------- single kernels


def address_of(function: Callable[..., Any], family: type) -> Any:
    """Compile a method's kernel(w, t, h) for a family of workspaces; returns its C address."""
    return function if interpreting() else _built(c_function(function, family, STATUS))


class OnWorkspace:
    """A kernel(w) for one family of workspaces, called from Python.

    Compiled, a call takes a tenth of the time of calling what ``compiled`` returns, which must find
    out the type of `w` each time: what counts where the kernel itself takes a microsecond. It is
    interpreted until there is machine code.

    Parameters
    ----------
    function
        A kernel of one argument; returns nothing, or a float if `returns` is true.
    family
        Class of the workspaces.
    returns
        Whether it returns a float.
    numbers
        Whether it takes two numbers besides the workspace, and returns an integer.
    """

    instances: ClassVar[list[OnWorkspace]] = []  # all that there are, for compiling ahead

    def __init__(
        self,
        function: Callable[..., Any],
        family: type,
        returns: bool = False,
        numbers: bool = False,
    ) -> None:
        self.function, self.family = function, family
        self.instances.append(self)
        kind = STATUS if numbers else FLOAT if returns else NOTHING
        self._type = ctypes.CFUNCTYPE(*C_TYPES[kind])
        self._code: Any = None
        self.c_function = c_function(function, family, kind)
        self._tier = Tier([self.c_function])

    def __call__(self, w: Any, *numbers: float) -> Any:
        """Run the kernel."""
        if self._code is not None or self.is_compiled:
            return self._code(w.address, *numbers)
        start = time.perf_counter()
        result = interpret(self.function, w, *numbers)
        self._tier.spent(time.perf_counter() - start)
        return result

    @property
    def is_compiled(self) -> bool:
        """Whether it is machine code by now."""
        if self._code is None and (found := self._tier.look()) is not None:
            self._code = self._type(found[0])
        return self._code is not None

    @property
    def address(self) -> int:
        """Where the machine code is: a C function of a workspace's address; for compiled ones."""
        assert self.is_compiled
        return int(ctypes.cast(self._code, ctypes.c_void_p).value or 0)


class OnArrays:
    """A kernel of arrays, called from Python: interpreted until it has cost a while.

    For kernels that are small and seldom called, so that they are compiled in this process.

    Examples
    --------
    >>> import numpy as np
    >>> def total(x):
    ...     return x[0] + x[1]
    >>> float(OnArrays(total)(np.array([1.0, 2.0])))
    3.0
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._seconds = 0.0

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel."""
        if self._seconds >= background.ENOUGH_SECONDS or compiles_first():
            return compiled(self.function)(*arguments)
        start = time.perf_counter()
        result = interpret(self.function, *arguments)
        self._seconds += time.perf_counter() - start
        return result
