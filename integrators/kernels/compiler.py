"""Kernels: numerical code written once that runs interpreted, compiled, and on symbols.

A *kernel* is a plain Python function over arrays, marked with :func:`kernel`. The mark changes
nothing: the function stays an ordinary Python function, so it can be read, stepped through in a
debugger, and called on object arrays of symbols (tracing). :func:`compiled` turns it, together
with every kernel that it calls, into machine code through numba; the result is cached on disk.

The rules for writing one (``docs/kernels.md`` has the reasons and an example):

- loops, scalar arithmetic, calls of other kernels and of NumPy's scalar functions;
- results are written into arrays passed in; nothing is allocated;
- no Python objects, no exceptions: report trouble through a returned status;
- values that may be symbols are never tested with ``if``.

numba is imported at the first :func:`compiled` call, not before: ``import integrators`` stays
fast.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
from collections.abc import Callable
from enum import Enum
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any, TypeVar

import numpy as np

from . import cache as disk
from .cache import cache_directory
from .object_code import KNOWN, compiler_versions, kernel_engine, missing_symbols

__all__ = [
    "OnWorkspace",
    "address_of",
    "cache_directory",
    "compiled",
    "inline_kernel",
    "interpreting",
    "kernel",
    "source_hash",
]

F = TypeVar("F", bound=Callable[..., Any])

_marked: dict[Callable[..., Any], bool] = {}  # in order of definition; True: always inlined
_registered: set[Callable[..., Any]] = set()


def kernel(function: F) -> F:
    """Mark a function as a kernel; it is returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def axpy(a, x, y):
    ...     for i in range(x.shape[0]):
    ...         y[i] += a * x[i]
    >>> y = np.ones(3)
    >>> axpy(2.0, np.arange(3.0), y)
    >>> y
    array([1., 3., 5.])
    """
    _marked[function] = False
    return function


def inline_kernel(function: F) -> F:
    """Mark a small function as a kernel that is compiled into whatever calls it.

    Passing an array to a compiled function means passing seven numbers; for a few lines of
    arithmetic the call would cost as much as the work.
    """
    _marked[function] = True
    return function


def interpreting() -> bool:
    """Whether kernels are run as the plain Python that they are (``$FEATHERSTEP_INTERPRET``).

    A hundred times slower, but a debugger can step through the solver, and an index out of
    range is an error.
    """
    return os.environ.get("FEATHERSTEP_INTERPRET", "") not in ("", "0")


def compiled(function: Callable[..., Any], *, nogil: bool = False, parallel: bool = False) -> Any:
    """Compile a kernel with numba, caching the machine code on disk.

    Parameters
    ----------
    function
        A function marked with :func:`kernel`.
    nogil, parallel
        Passed to ``numba.njit``.

    Returns
    -------
    numba dispatcher
        Compiles itself at the first call for each combination of argument types.

    Notes
    -----
    Code is found again by a hash of the code of every kernel that this one can reach, and of
    their constants (:func:`source_hash`): an edit to a helper in another file counts, an edit to
    a comment does not.
    """
    return function if interpreting() else _compiled(function, nogil, parallel)


@cache
def _compiled(function: Callable[..., Any], nogil: bool, parallel: bool) -> Any:
    _register_kernels()
    from .compiled_code import OPTIONS, dispatcher

    options = {"nogil": nogil, "parallel": parallel, **OPTIONS}
    return dispatcher(function, f"{source_hash(function)} {options}", **options)


def _register_kernels() -> None:
    """Make all kernels known to numba, which is imported here if it was not."""
    from numba.extending import register_jitable

    from . import numba_types  # noqa: F401  (its overloads must exist before anything compiles)

    for helper, inline in _marked.items():
        if helper not in _registered:
            register_jitable(forceinline=inline)(helper)
            _registered.add(helper)


# ---------------------------------------------------------------------- C functions


class OnWorkspace:
    """A kernel(w), compiled at its first call for one family of workspaces.

    Calling it takes a tenth of the time of calling what :func:`compiled` returns, which must find
    out the type of `w` each time: what counts where the kernel itself takes a microsecond.

    Parameters
    ----------
    function
        A kernel of one argument; returns nothing, or a float if `returns` is true.
    family
        Class of the workspaces.
    """

    def __init__(self, function: Callable[..., Any], family: type, returns: bool = False) -> None:
        self.function, self.family, self.returns = function, family, returns
        self._code: Any = None

    def __call__(self, w: Any) -> Any:
        """Run the kernel."""
        if self._code is None:
            if interpreting():
                return self.function(w)
            self._code = self._compile()
        return self._code(w.address)

    @property
    def address(self) -> int:
        """Where the machine code is: a C function of a workspace's address."""
        import ctypes

        if self._code is None:
            self._code = self._compile()
        return int(ctypes.cast(self._code, ctypes.c_void_p).value or 0)

    def _compile(self) -> Any:
        import ctypes

        kind = "float of workspace" if self.returns else "nothing of workspace"
        result = ctypes.c_double if self.returns else None
        address = _c_address(self.function, self.family, kind)
        return ctypes.CFUNCTYPE(result, ctypes.c_int64)(address)


def address_of(function: Callable[..., Any], family: type) -> Any:
    """Compile a method's kernel(w, t, h) for a family of workspaces; returns its C address."""
    return function if interpreting() else _address_of(function, family)


@cache
def _address_of(function: Callable[..., Any], family: type) -> int:
    return _c_address(function, family, "status of workspace, t, h")


def _signature(family: type, kind: str) -> Any:
    """Types of a C function, as numba writes them."""
    import numba

    from .numba_types import WorkspaceType, method_kernel_signature

    w = WorkspaceType(family.__name__)
    return {
        "nothing of workspace": lambda: numba.void(w),
        "float of workspace": lambda: numba.float64(w),
        "status of workspace, t, h": lambda: method_kernel_signature(family),
    }[kind]()


_kept: list[Any] = []  # what owns the machine code


def _c_address(function: Callable[..., Any], family: Any, kind: str) -> int:
    """Address of a kernel as a C function: from an earlier process, else compiled.

    Object code of an earlier process is run without numba where we can make sure that it needs
    nothing that is not there (``object_code.KNOWN``); elsewhere numba loads it.
    """
    identity = f"C function {kind} {family.layout()} {source_hash(function)}"
    name = hashlib.sha256(f"{identity} {compiler_versions()}".encode()).hexdigest()[:40]
    if KNOWN and (address := _load(name)) is not None:
        return address
    _register_kernels()
    from .compiled_code import c_function, object_code_of

    made = c_function(function, _signature(family, kind), None if KNOWN else identity)
    _kept.append(made)
    if KNOWN and (found := object_code_of(made)) is not None and not missing_symbols(found[1]):
        disk.store(name, found[0].encode() + b"\n" + found[1])
    return int(made.address)


def _load(name: str) -> int | None:
    """Bring the C function of an entry of the cache into memory; None if there is none."""
    data = disk.load(name)
    if data is None:
        return None
    symbol, _, code = data.partition(b"\n")
    if missing_symbols(code):
        return None
    with disk.loading(name):
        engine = kernel_engine(code)
        address = engine.get_function_address(symbol.decode())
    _kept.append(engine)
    return int(address) or None


# ---------------------------------------------------------------------- what code depends on


def source_hash(function: Callable[..., Any]) -> str:
    """Hash of what a kernel compiles to: its code, all kernels it reaches, and their constants.

    Comments, docstrings and places in a file do not count, so that editing a file leaves the
    compiled code of what did not change. Functions that are no kernels stand for something in
    this package's support for numba, all of which counts.
    """
    digest = hashlib.sha256(_support())
    seen: set[int] = set()
    pending: list[Any] = [function]
    while pending:
        value = pending.pop()
        wrapped = getattr(value, "py_func", None)  # by one of numba's decorators
        value = value if wrapped is None else wrapped
        followed = value is function or wrapped is not None
        if followed or (isinstance(value, FunctionType) and value in _marked):
            if id(value) not in seen:
                seen.add(id(value))
                pending.extend(_hash_code(value, digest))
        elif isinstance(value, tuple):
            digest.update(f"tuple {len(value)}".encode())
            pending.extend(value)
        else:
            digest.update(_said(value))
    return digest.hexdigest()[:16]


@cache
def _support() -> bytes:
    return (Path(__file__).parent / "numba_types.py").read_bytes()


def _said(value: Any) -> bytes:
    """What stands for a constant of a kernel in its hash."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tobytes() + repr((value.dtype, value.shape)).encode()
    if isinstance(value, int | float | complex | str | bytes | NoneType | Enum):
        return repr(value).encode()
    if isinstance(value, type | FunctionType | BuiltinFunctionType | ModuleType | np.ufunc):
        return f"{getattr(value, '__module__', '')}.{value.__name__}".encode()
    try:
        return pickle.dumps(value)
    except Exception:  # anything may be raised; such code is not found again
        return repr((id(value), os.getpid(), type(value))).encode()


def _hash_code(function: FunctionType, digest: Any) -> list[Any]:
    """Add a function's code to a hash; returns the values of the names that it uses."""
    values: list[Any] = [*(function.__defaults__ or ())]
    values += [cell.cell_contents for cell in function.__closure__ or ()]
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        digest.update(code.co_code)
        digest.update(repr((code.co_name, code.co_names, code.co_varnames)).encode())
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                codes.append(constant)
            elif constant is not function.__doc__:
                digest.update(repr(constant).encode())
        used = [function.__globals__[n] for n in code.co_names if n in function.__globals__]
        values += used
        for module in used:
            if isinstance(module, ModuleType) and module not in (np, math):
                values += [vars(module)[n] for n in code.co_names if n in vars(module)]
    return values
