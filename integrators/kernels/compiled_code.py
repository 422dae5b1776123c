"""numba behind the cache: kernels as C functions, and dispatchers whose code is kept.

Imported when a kernel must be compiled, never before, because it needs numba. numba's own cache
throws code away when the file of the function changes, comments included, and unpickles whatever
it finds. Here code is found by a hash of what it was compiled from (``kernels.source_hash``), and
verified first (:mod:`integrators.kernels.cache`).
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import Any

import numba
from numba.core import sigutils
from numba.core.caching import NullCache, _Cache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from . import cache as disk
from . import numba_types  # noqa: F401  (its overloads must exist before anything compiles)
from .object_code import compiler_versions
from .tiers.waiting import told

__all__ = ["KernelCache", "c_function", "dispatcher", "object_code_of"]


class KernelCache(_Cache):
    """What numba asks for the code of a function, and gives it to.

    Parameters
    ----------
    identity
        What determines the code, besides the types of its arguments and the compiler.
    """

    def __init__(self, identity: str) -> None:
        self.identity = identity

    @property
    def cache_path(self) -> str:
        """Where entries are, for numba's statistics."""
        return str(disk.place() or "")

    def _name(self, signature: Any, codegen: Any) -> str:
        text = f"{self.identity} {signature!r} {codegen.magic_tuple()!r} {compiler_versions()}"
        return hashlib.sha256(text.encode()).hexdigest()[:40]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function for a signature; None where there is none."""
        target_context.refresh()
        name = self._name(sig, target_context.codegen())
        data = disk.load(name)
        if data is None:
            return None
        try:
            with disk.loading(name):
                return CompileResult._rebuild(target_context, *pickle.loads(data))
        except Exception as error:  # whatever a pickle of another version may raise
            disk.forget(name, repr(error))
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, unless it refers to things of this process."""
        if any(not part.can_cache for part in data.lifted) or data.library.has_dynamic_globals:
            return
        disk.store(self._name(sig, data.codegen), dumps(data._reduce()))

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Do nothing: entries are found by what they contain and never stale."""


def dispatcher(function: Callable[..., Any], identity: str, **options: Any) -> Any:
    """Return what ``numba.njit`` makes of a kernel, with our cache behind it."""
    made = numba.njit(**options)(function)
    made._cache = KernelCache(identity)
    compiler = made._compiler  # asked only for what the cache does not have
    for_types = compiler.compile

    def compile_with_a_word(*types: Any) -> Any:
        with told(function.__name__):
            return for_types(*types)

    compiler.compile = compile_with_a_word
    return made


def c_function(function: Callable[..., Any], signature: Any, identity: str | None) -> Any:
    """Compile a kernel to a C function; ``address`` is where it is, as long as the object lives.

    Parameters
    ----------
    function
        The kernel.
    signature
        Types of its arguments and of what it returns, as numba writes them.
    identity
        For :class:`KernelCache`; None keeps nothing.
    """
    made: Any = CFunc(
        function, sigutils.normalize_signature(signature), locals={}, options=dict(OPTIONS)
    )
    made._cache = NullCache() if identity is None else KernelCache(identity)
    made.compile()
    return made


def object_code_of(made: Any) -> tuple[str, bytes] | None:
    """Name and object code of a C function; None if it refers to things of this process."""
    if made._library.has_dynamic_globals:
        return None
    _, kind, (code, _) = made._library.serialize_using_object_code()
    return (made.native_name, bytes(code)) if kind == "object" else None


#: How every kernel is compiled: a division by zero gives infinity, as in NumPy.
OPTIONS = {"error_model": "numpy"}
