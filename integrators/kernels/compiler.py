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

import contextlib
import hashlib
import importlib.util
import logging
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

__all__ = [
    "compiled",
    "do_without_numba",
    "inline_kernel",
    "interpreting",
    "kernel",
    "register_kernels",
    "source_hash",
]

log = logging.getLogger(__name__)
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
    """Whether kernels are never compiled: by ``$FEATHERSTEP_INTERPRET``, or for want of numba.

    A hundred times slower, but a debugger can step through the solver, and an index out of
    range is an error.
    """
    if _variables.get(_INTERPRET) not in _OFF:
        _say_once("kernels are interpreted, about a hundred times slower (FEATHERSTEP_INTERPRET)")
        return True
    return _without_numba or _lacks_numba()


# The dictionary behind os.environ, where there is one: every run asks, and os.environ takes 2.5 µs
# to say that a variable is not set.
_variables: Any = getattr(os.environ, "_data", os.environ)
_encoded: Any = getattr(os.environ, "encodekey", str)
_INTERPRET = _encoded("FEATHERSTEP_INTERPRET")
_OFF = (None, "", "0", b"", b"0")

_without_numba = False


@cache
def _lacks_numba() -> bool:
    try:
        found = importlib.util.find_spec("numba")
    except (ImportError, ValueError):
        found = None
    if found is None:
        _say_once(
            "numba is not installed: kernels are interpreted, about a hundred times slower; "
            "where it can be installed, `pip install numba` helps"
        )
    return found is None


def do_without_numba(error: ImportError) -> None:
    """Interpret from now on, because numba cannot be imported."""
    global _without_numba
    _without_numba = True
    _say_once(f"kernels are interpreted, about a hundred times slower: {error}")


@cache
def _say_once(message: str) -> None:
    log.warning("%s", message)


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
    if interpreting():
        return function
    try:
        return _compiled(function, nogil, parallel)
    except ImportError as error:
        do_without_numba(error)
        return function


@cache
def _compiled(function: Callable[..., Any], nogil: bool, parallel: bool) -> Any:
    register_kernels()
    from .compiled_code import OPTIONS, dispatcher

    options = {"nogil": nogil, "parallel": parallel, **OPTIONS}
    return dispatcher(function, f"{source_hash(function)} {options}", **options)


def register_kernels() -> None:
    """Make all kernels known to numba, which is imported here if it was not."""
    from numba.extending import register_jitable

    from . import numba_types  # noqa: F401  (its overloads must exist before anything compiles)

    options: dict[str, Any] = {}
    with contextlib.suppress(ImportError, AttributeError):  # a numba of another making
        from .helpers import HelperCompiler

        options["pipeline_class"] = HelperCompiler
    for helper, inline in _marked.items():
        if helper not in _registered:
            register_jitable(forceinline=inline, **options)(helper)
            _registered.add(helper)


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
