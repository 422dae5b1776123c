"""What people pass as options: numbers, lists of numbers, and names that do not exist."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import suggest

__all__ = ["finite_vector", "index_list", "number", "take_options"]


def number(name: str, value: Any, what: str = "a number") -> float:
    """Return a finite float, or say what was expected.

    Examples
    --------
    >>> number("T_stab", "0.1", "a time in seconds")
    0.1
    """
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {what}, got {value!r}") from None
    if not np.isfinite(found):
        raise ValueError(f"{name} must be {what}, and finite, got {value!r}")
    return found


def index_list(name: str, value: Any, count: int, of: str) -> list[int]:
    """Return different numbers from 0 to count − 1.

    Examples
    --------
    >>> index_list("fixed", [2, 0], 3, "velocities")
    [2, 0]
    """
    expected = f"{name} must list different {of} 0 to {count - 1}, got {value!r}"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(expected)
    try:
        found = [operator.index(i) for i in value]
    except TypeError:
        raise TypeError(expected) from None
    if any(not 0 <= i < count for i in found) or len(set(found)) < len(found):
        raise ValueError(expected)
    return found


def finite_vector(name: str, value: Any, size: int | None = None) -> NDArray[np.float64]:
    """Return a vector of finite floats, of the given size if there is one.

    Examples
    --------
    >>> finite_vector("y0", 2)
    array([2.])
    """
    try:
        found = np.atleast_1d(np.array(value, dtype=float))
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, got {value!r}") from None
    if found.ndim != 1 or (size is not None and found.size != size):
        wanted = "a list of" if size is None else str(size)
        raise ValueError(f"{name} must be {wanted} numbers, got shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    return found


def take_options(what: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that a function of (system, **options) does not take, naming those it does."""
    known = list(inspect.signature(function).parameters)[1:]
    for name in options:
        if name in known:
            continue
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        hint = suggest(name, known) if known else ""
        raise TypeError(f"{what} has no option {name!r}{hint}; {takes}")
