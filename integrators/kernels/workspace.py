"""The workspace of a kernel: its arrays, as attributes, for Python and for compiled code alike.

Kernels say ``w.y[i]``. Interpreted, that is an attribute of a :class:`Workspace`. Compiled, ``w``
is a single pointer to a table of addresses and shapes, and ``w.y`` is put together from it; so a
workspace of fifty arrays is passed around at the price of one integer, and kernels compile fast.
``numba_types`` holds that part.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["WORDS", "Workspace"]

WORDS = 4  # table entries for each field: address, then up to three lengths

_KINDS = {"f": np.float64, "i": np.int64, "c": np.complex128}


class Workspace:
    """Named arrays with fixed kinds; a subclass lists the fields of a family of kernels.

    A family may begin with the fields of another, so that code compiled for that one works on
    it, too: ``class Explicit(Workspace, begins_as=Steps)``.
    """

    # Kind and number of dimensions of a field: f float, i integer, c complex; "a" is an address.
    FIELDS: ClassVar[dict[str, str]] = {}
    families: ClassVar[dict[str, type[Workspace]]] = {}  # by name, for compiled code
    seen_as: ClassVar[str] = ""  # the family whose fields the calling code knows

    def __init_subclass__(cls, begins_as: type[Workspace] | None = None) -> None:
        Workspace.families[cls.__name__] = cls
        cls.seen_as = (begins_as or cls).__name__

    def __init__(self, **values: Any) -> None:
        fields = self.FIELDS
        if set(values) != set(fields):
            raise TypeError(f"fields do not match: {sorted(set(values) ^ set(fields))}")
        self._table = np.zeros(WORDS * len(fields), dtype=np.int64)
        for k, (name, kind) in enumerate(fields.items()):
            value = values[name]
            if kind == "a":
                self._table[WORDS * k] = 0 if callable(value) else value
            else:
                self._enter(WORDS * k, name, kind, value)
            setattr(self, name, value)
        self.address = self._table.ctypes.data

    def _enter(self, place: int, name: str, kind: str, array: NDArray[Any]) -> None:
        expected = np.dtype(_KINDS[kind[0]])
        if array.dtype != expected or array.ndim != int(kind[1]) or not array.flags.c_contiguous:
            raise TypeError(
                f"workspace field {name} must be a contiguous {expected} array of "
                f"{kind[1]} dimensions, got {array.dtype} of shape {array.shape}"
            )
        self._table[place] = array.__array_interface__["data"][0]  # faster than array.ctypes
        self._table[place + 1 : place + 1 + array.ndim] = array.shape

    def replace(self, name: str, array: NDArray[Any]) -> None:
        """Put another array, perhaps of another length, in the place of a field."""
        self._enter(_place(type(self), name), name, self.FIELDS[name], array)
        setattr(self, name, array)

    def replace_address(self, name: str, address: int) -> None:
        """Put another address in the place of a field of that kind."""
        self._table[_place(type(self), name)] = address
        setattr(self, name, address)

    def __getattr__(self, name: str) -> Any:  # only for type checkers and missing names
        raise AttributeError(f"a workspace has no field {name!r}")


_places: dict[tuple[type[Workspace], str], int] = {}


def _place(family: type[Workspace], name: str) -> int:
    """Where the entry of a field is in the table of a family."""
    key = (family, name)
    if key not in _places:
        _places[key] = WORDS * list(family.FIELDS).index(name)
    return _places[key]
