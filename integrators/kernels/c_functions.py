"""A kernel as a C function for a family of workspaces: found in the cache, or compiled.

Object code of an earlier process is run without numba where we can make sure that it needs
nothing that is not there (``object_code.KNOWN``); elsewhere numba loads it, and the entry of the
cache with the function's name says only that it can.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import threading
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from . import cache as disk
from . import object_code
from .compiler import register_kernels, source_hash
from .object_code import compiler_versions, kernel_engine, missing_symbols

__all__ = ["FLOAT", "NOTHING", "STATUS", "CFunction", "c_function", "from_text"]

#: What a C function returns, and of what: the kinds that there are.
NOTHING = "nothing of workspace"
FLOAT = "float of workspace"
STATUS = "status of workspace, t, h"

_KEPT_BY_NUMBA = b"numba has it"

#: Held while code is brought into memory: there is one owner of it, who must stay.
_one_at_a_time = threading.RLock()


def _after_fork() -> None:
    """Free the lock in a forked process, where the thread that held it does not exist."""
    global _one_at_a_time
    _one_at_a_time = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class CFunction:
    """A kernel to be called by address; use :func:`c_function`, which makes each of them once.

    Parameters
    ----------
    function
        The kernel.
    family
        Class of the workspaces.
    kind
        NOTHING, FLOAT or STATUS.
    """

    def __init__(self, function: Callable[..., Any], family: Any, kind: str) -> None:
        self.function, self.family, self.kind = function, family, kind
        self._address = 0
        self._owner: Any = None  # of the machine code

    def __repr__(self) -> str:
        return f"{self.function.__name__} of {self.family.__name__}"

    @cached_property
    def _identity(self) -> str:
        return f"C function {self.kind} {self.family.layout()} {source_hash(self.function)}"

    @cached_property
    def name(self) -> str:
        """Name of its entry in the cache."""
        text = f"{self._identity} {compiler_versions()}"
        return hashlib.sha256(text.encode()).hexdigest()[:40]

    # ------------------------------------------------------------------ code

    @property
    def is_kept(self) -> bool:
        """Whether there is code in this process or, by its name, in the cache."""
        if self._address:
            return True
        path = disk.entry_path(self.name)
        return path is not None and path.exists()

    def find(self) -> int:
        """Address of code in this process or in the cache; 0 if it would have to be compiled."""
        if self._address:
            return self._address
        with _one_at_a_time:  # another thread may just have found it
            if not self._address and (data := disk.load(self.name)) is not None:
                if data == _KEPT_BY_NUMBA:
                    return self.build()  # from numba's entry, in some milliseconds
                self._load(data)
            return self._address

    def build(self) -> int:
        """Address of the code, which is compiled here and now if need be."""
        with _one_at_a_time:
            if not self._address and object_code.KNOWN:
                if (data := disk.load(self.name)) is not None:
                    self._load(data)
            return self._address or self._compile()

    def _load(self, data: bytes) -> None:
        symbol, _, code = data.partition(b"\n")
        if missing_symbols(code):
            return
        with disk.loading(self.name):
            self._owner = kernel_engine(code)
            self._address = int(self._owner.get_function_address(symbol.decode()))

    def _compile(self) -> int:
        register_kernels()
        from .compiled_code import c_function as compile_with_numba
        from .compiled_code import object_code_of

        known = object_code.KNOWN
        made = compile_with_numba(
            self.function, self._signature(), None if known else self._identity
        )
        self._owner, self._address = made, int(made.address)
        if not known:
            if not made._library.has_dynamic_globals:
                disk.store(self.name, _KEPT_BY_NUMBA)
        elif (found := object_code_of(made)) is not None and not missing_symbols(found[1]):
            disk.store(self.name, found[0].encode() + b"\n" + found[1])
        return self._address

    def _signature(self) -> Any:
        """Types of the function, as numba writes them."""
        import numba

        from .numba_types import WorkspaceType, method_kernel_signature

        if self.kind == STATUS:
            return method_kernel_signature(self.family)
        result = numba.float64 if self.kind == FLOAT else numba.void
        return result(WorkspaceType(self.family.__name__))

    # ------------------------------------------------------------------ for another process

    @cached_property
    def text(self) -> str | None:
        """Where another process finds the kernel, on a line; None if it cannot."""
        parts = [self.kind]
        for value in (self.function, self.family):
            module, name = value.__module__, value.__qualname__
            try:
                found = importlib.import_module(module)
                if module == "__main__" or getattr(found, name) is not value:
                    return None
            except (ImportError, AttributeError):  # made within a function
                return None
            parts += [module, name]
        return "\t".join(parts)


@cache
def c_function(function: Callable[..., Any], family: Any, kind: str) -> CFunction:
    """Return the C function of a kernel; the same object each time."""
    return CFunction(function, family, kind)


def from_text(text: str) -> CFunction:
    r"""Return the C function of which another process wrote the :attr:`~CFunction.text`.

    Examples
    --------
    >>> from_text("status of workspace, t, h\tintegrators.stepping.loop\tadvance\t"
    ...           "integrators.stepping.workspace\tSteps")
    advance of Steps
    """
    kind, *places = text.split("\t")
    function, family = (
        getattr(importlib.import_module(module), name)
        for module, name in zip(places[::2], places[1::2])
    )
    return c_function(function, family, kind)
