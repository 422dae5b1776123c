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
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, NoneType
from typing import Any, TypeVar

__all__ = [
    "OnWorkspace",
    "address_of",
    "cache_directory",
    "compiled",
    "inline_kernel",
    "interpreting",
    "kernel",
]

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger(__name__)

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
    numba's own cache looks only at the file of the function itself and would go on using stale
    code after an edit to a helper in another file. The cache directory is therefore named after
    a hash of the code of every kernel that this one can reach, and of their constants.
    """
    return function if interpreting() else _compiled(function, nogil, parallel)


@cache
def _compiled(function: Callable[..., Any], nogil: bool, parallel: bool) -> Any:
    import numba

    options = {"nogil": nogil, "parallel": parallel, "error_model": "numpy"}

    def make(cached: bool) -> Any:
        dispatcher = numba.njit(cache=cached and _has_file(function), **options)(function)
        load = dispatcher._cache.load_overload

        def load_overload(*arguments: Any) -> Any:  # at the first call, long after this
            try:
                return load(*arguments)
            except Exception as error:
                _forget(Path(dispatcher._cache.cache_path), error)
                return None

        dispatcher._cache.load_overload = load_overload
        return dispatcher

    return _built(function, make)


def _has_file(function: Callable[..., Any]) -> bool:
    """Whether the source is in a file or a notebook: numba caches nothing else."""
    return not function.__code__.co_filename.startswith("<") or "IPython" in sys.modules


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

        import numba

        from .numba_types import WorkspaceType

        kind = numba.float64 if self.returns else numba.void
        signature = kind(WorkspaceType(self.family.__name__))

        def make(cached: bool) -> Any:
            return numba.cfunc(signature, cache=cached, error_model="numpy")(self.function)

        code = _built(self.function, make)
        _kept.append(code)  # the code lives as long as this object
        result = ctypes.c_double if self.returns else None
        return ctypes.CFUNCTYPE(result, ctypes.c_int64)(int(code.address))


def address_of(function: Callable[..., Any], family: type) -> Any:
    """Compile a method's kernel(w, t, h) for a family of workspaces; returns its C address."""
    return function if interpreting() else _address_of(function, family)


@cache
def _address_of(function: Callable[..., Any], family: type) -> int:
    import numba

    from .numba_types import method_kernel_signature

    signature = method_kernel_signature(family)

    def make(cached: bool) -> Any:
        return numba.cfunc(signature, cache=cached, error_model="numpy")(function)

    compiled_function = _built(function, make)
    _kept.append(compiled_function)  # the code lives as long as this object
    return int(compiled_function.address)


_kept: list[Any] = []


def _built(function: Callable[..., Any], make: Callable[[bool], Any]) -> Any:
    """make(whether to cache), with all kernels known to numba and its cache in the right place.

    What cannot be read there is thrown away, and built again.
    """
    from numba.core.errors import NumbaError
    from numba.extending import register_jitable

    from . import numba_types  # noqa: F401  (its overloads must exist before anything compiles)

    for helper, inline in _marked.items():
        if helper not in _registered:
            register_jitable(forceinline=inline)(helper)
            _registered.add(helper)
    directory = _writable(cache_directory() / f"kernels-{_source_hash(function)}")
    if directory is None:
        return make(False)
    with _numba_cache_in(directory):
        try:
            return make(True)
        except NumbaError:
            raise  # a mistake in the kernel
        except Exception as error:
            _forget(directory, error)
            return make(True)


def _forget(directory: Path, error: Exception) -> None:
    """Remove cached code that is damaged."""
    log.warning("compiled code in %s is damaged (%r) and built again", directory, error)
    for file in directory.rglob("*.nb[ic]"):
        with contextlib.suppress(OSError):
            file.unlink()


def cache_directory() -> Path:
    """Where compiled code is kept: ``$FEATHERSTEP_CACHE``, else the user's cache folder."""
    if chosen := os.environ.get("FEATHERSTEP_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~\\AppData\\Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(base).expanduser() / "featherstep"


def _writable(directory: Path) -> Path | None:
    """Create the directory; None (and a log entry) where nothing can be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        log.warning("compiled code is not cached (%s); set FEATHERSTEP_CACHE", error)
        return None
    return directory


@contextlib.contextmanager
def _numba_cache_in(directory: Path) -> Iterator[None]:
    from numba import config

    previous = config.CACHE_DIR
    config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        config.CACHE_DIR = previous


def _source_hash(function: Callable[..., Any]) -> str:
    """Hash of what a kernel compiles to: its code, all kernels it reaches, and their constants.

    Comments, docstrings and places in a file do not count, so that editing a file leaves the
    compiled code of what did not change. Functions that are no kernels stand for something in
    this package's support for numba, all of which counts.
    """
    digest = hashlib.sha256((Path(__file__).parent / "numba_types.py").read_bytes())
    seen: set[int] = set()
    pending: list[Any] = [function]
    while pending:
        value = pending.pop()
        if value is function or (isinstance(value, FunctionType) and value in _marked):
            if id(value) not in seen:
                seen.add(id(value))
                pending.extend(_hash_code(value, digest))
        elif hasattr(value, "tobytes"):  # an array
            digest.update(value.tobytes() + repr((value.dtype, value.shape)).encode())
        elif isinstance(value, int | float | complex | str | bytes | tuple | NoneType):
            digest.update(repr(value).encode())
        else:
            digest.update(getattr(value, "__qualname__", type(value).__qualname__).encode())
    return digest.hexdigest()[:16]


def _hash_code(function: Any, digest: Any) -> list[Any]:
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
        values += [function.__globals__[n] for n in code.co_names if n in function.__globals__]
    return values
