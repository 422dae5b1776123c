"""The workspace of a kernel: its arrays, as attributes, for Python and for compiled code alike.

Kernels say ``w.y[i]``. Interpreted, that is an attribute of a :class:`Workspace`. Compiled, ``w``
is a single pointer to a table of addresses and shapes, and ``w.y`` is put together from it; so a
workspace of fifty arrays is passed around at the price of one integer, and kernels compile fast.
``numba_types`` holds that part.

A field may also be a :class:`Record` of numbers, which are then attributes of the workspace
themselves: ``w.h`` is the number ``h`` of its record.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeGuard

import numpy as np
from numpy.typing import NDArray

from .record import Record

__all__ = ["WORDS", "Workspace"]

WORDS = 4  # table entries for each field: address, then up to three lengths

_KINDS = {"f": np.float64, "i": np.int64, "c": np.complex128}


def is_record(kind: Any) -> TypeGuard[type[Record]]:
    """Whether a field is a record."""
    return isinstance(kind, type) and issubclass(kind, Record)


class Workspace:
    """Named arrays with fixed kinds; a subclass lists the fields of a family of kernels.

    A family may begin with the fields of another, so that code compiled for that one works on
    it, too: ``class Explicit(Workspace, begins_as=Steps)``.
    """

    # Kind and number of dimensions of a field: f float, i integer, c complex; "a" is an address;
    # or a class of records.
    FIELDS: ClassVar[dict[str, Any]] = {}
    numbers: ClassVar[dict[str, str]] = {}  # names of numbers -> the record that holds them
    families: ClassVar[dict[str, type[Workspace]]] = {}  # by name, for compiled code
    seen_as: ClassVar[str] = ""  # the family whose fields the calling code knows

    def __init_subclass__(cls, begins_as: type[Workspace] | None = None) -> None:
        Workspace.families[cls.__name__] = cls
        cls.seen_as = (begins_as or cls).__name__
        cls.numbers = {}
        for field, kind in cls.FIELDS.items():
            if is_record(kind):
                for name in kind.FIELDS:
                    if name in cls.FIELDS or name in cls.numbers:
                        raise TypeError(f"{cls.__name__} has two fields {name}")
                    cls.numbers[name] = field
                    setattr(cls, name, _of_record(field, name))

    @classmethod
    def layout(cls) -> str:
        """Text that tells this arrangement of fields from any other."""
        described = {
            name: list(kind.FIELDS.items()) if is_record(kind) else kind
            for name, kind in cls.FIELDS.items()
        }
        return f"{cls.__name__} {list(described.items())}"

    def __init__(self, **values: Any) -> None:
        fields = self.FIELDS
        if set(values) != set(fields):
            raise TypeError(f"fields do not match: {sorted(set(values) ^ set(fields))}")
        self._table = np.zeros(WORDS * len(fields), dtype=np.int64)
        for k, (name, kind) in enumerate(fields.items()):
            value = values[name]
            if kind == "a":
                self._table[WORDS * k] = 0 if callable(value) else value
            elif is_record(kind):
                if not isinstance(value, kind):
                    raise TypeError(f"workspace field {name} must be a {kind.__name__}")
                self._table[WORDS * k] = value.words.__array_interface__["data"][0]
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

    def kernels(self) -> dict[str, Any]:
        """Return the kernels among the fields, which compiled code calls by address."""
        kinds = self.FIELDS.items()
        return {n: f for n, kind in kinds if kind == "a" and callable(f := getattr(self, n))}

    def enter_address(self, name: str, address: int) -> None:
        """Tell compiled code where a kernel is; interpreted code keeps to the function."""
        self._table[_place(type(self), name)] = address

    def __getattr__(self, name: str) -> Any:  # only for type checkers and missing names
        raise AttributeError(f"a workspace has no field {name!r}")


def _of_record(field: str, name: str) -> Any:
    def get(self: Any) -> Any:
        return getattr(getattr(self, field), name)

    def put(self: Any, value: Any) -> None:
        setattr(getattr(self, field), name, value)

    return property(get, put)


_places: dict[tuple[type[Workspace], str], int] = {}


def _place(family: type[Workspace], name: str) -> int:
    """Where the entry of a field is in the table of a family."""
    key = (family, name)
    if key not in _places:
        _places[key] = WORDS * list(family.FIELDS).index(name)
    return _places[key]
