"""Tables of a model file: typed access to known keys, complaints about all others."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from ...model.graph import BASE
from ..shared.source import KeyPath, Source

__all__ = ["Table", "nearest", "plain", "reference", "said"]

REQUIRED: Any = object()


class Table:
    """A table of the file, of which only known keys may be used."""

    def __init__(self, source: Source, path: KeyPath, data: Any, known: Collection[str]) -> None:
        self.source, self.path, self.data = source, path, data
        if not isinstance(data, dict):
            raise source.error(path, f"expected a table of keys, received {said(data)}")
        for key in data:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"expected {', '.join(known)}"
                raise source.error((*path, key), f"unknown key; {hint}")

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def error(self, key: str, message: str) -> Exception:
        """Error at a key of this table."""
        return self.source.error((*self.path, key), message)

    def take(self, key: str, default: Any = REQUIRED) -> Any:
        """Value of a key, of any type."""
        if key in self.data:
            return self.data[key]
        if default is REQUIRED:
            raise self.source.error(self.path, f"the key {key!r} is missing; add it")
        return default

    def text(self, key: str, default: Any = REQUIRED) -> Any:
        """Value of a key that must be a string."""
        value = self.take(key, default)
        if key in self.data and (not isinstance(value, str) or not value):
            raise self.error(key, f"expected a string that is not empty, received {said(value)}")
        return value

    def flag(self, key: str, default: Any = REQUIRED) -> Any:
        """Value of a key that must be true or false."""
        value = self.take(key, default)
        if key in self.data and not isinstance(value, bool):
            raise self.error(key, f"expected true or false, received {said(value)}")
        return value

    def numbers(
        self,
        key: str,
        shapes: Iterable[tuple[int, ...]] = ((),),
        default: Any = REQUIRED,
        infinite: bool = False,
    ) -> Any:
        """A number, or lists of them of one of the shapes."""
        value = self.take(key, default)
        if key not in self.data:
            return value
        array = np.array(self._floats(value, (*self.path, key), infinite), dtype=float)
        if array.shape not in shapes:
            words = " or ".join(_shape_in_words(shape) for shape in shapes)
            raise self.error(key, f"expected {words}, received {said(value)}")
        return float(array) if array.ndim == 0 else array

    def _floats(self, value: Any, path: KeyPath, infinite: bool) -> Any:
        if isinstance(value, list):
            rows = [self._floats(x, (*path, k), infinite) for k, x in enumerate(value)]
            sizes = {np.shape(row) for row in rows}
            if len(sizes) > 1:
                raise self.source.error(path, "expected rows of equal length, received others")
            return rows
        if infinite and value in ("inf", "+inf", "-inf"):  # JSON has no infinity
            return float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.source.error(path, f"expected a number, received {said(value)}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isnan(number) or (math.isinf(number) and not infinite):
            raise self.source.error(path, f"expected a finite number, received {number}")
        return number

    def items(self, key: str) -> list[tuple[KeyPath, Any]]:
        """Elements of an array of tables, with their places."""
        value = self.take(key, [])
        if not isinstance(value, list):
            raise self.error(key, f"expected an array of tables, received {said(value)}")
        return [((*self.path, key, k), x) for k, x in enumerate(value)]


def said(value: Any) -> str:
    """A value as messages quote it."""
    if isinstance(value, dict):
        return f"a table with {', '.join(list(value)[:4]) or 'no keys'}"
    if isinstance(value, list):
        return f"a list of {len(value)} ({str(value)[:60]})"
    if isinstance(value, bool):
        return str(value).lower()
    return ("the string " if isinstance(value, str) else "") + repr(value)[:60]


def _shape_in_words(shape: tuple[int, ...]) -> str:
    if not shape:
        return "one number"
    return f"{shape[0]} numbers" if len(shape) == 1 else f"{shape[0]} rows of {shape[1]} numbers"


def plain(source: Source, path: KeyPath, value: Any) -> Any:
    """Value made of strings and numbers; constructors check the rest."""
    if isinstance(value, list):
        return [plain(source, (*path, k), x) for k, x in enumerate(value)]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise source.error(path, f"expected numbers or a string, received {said(value)}")
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        raise source.error(
            path, f"expected a number that a double can hold, received {said(value)}"
        )
    return value


def reference(table: Table, key: str, names: Collection[str]) -> str:
    """Name of a body that exists, or the base."""
    value = table.take(key)
    if value == 0 and not isinstance(value, bool | float):
        return BASE
    if not isinstance(value, str):
        raise table.error(key, f"expected the name of a body or 'base', received {said(value)}")
    if value != BASE and value not in names:
        raise table.error(key, f"no body is named {value!r}; {nearest(value, [BASE, *names])}")
    return value


def nearest(value: Any, names: Collection[str]) -> str:
    """Hint at the nearest of the names, or at all of them."""
    near = difflib.get_close_matches(str(value), names, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
