"""Errors that are more than a wrong argument, and what a message says of a name that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

__all__ = ["IntegrationError", "suggest"]


class IntegrationError(RuntimeError):
    """An integration that failed, raised on request (``throw=True``).

    Attributes
    ----------
    t, h, y
        Time, last accepted step and last accepted state.
    solution
        Everything computed up to there.
    """

    def __init__(
        self, message: str, *, t: float, h: float, y: Any = None, solution: Any = None
    ) -> None:
        super().__init__(message)
        self.t = t
        self.h = h
        self.y = y
        self.solution = solution


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a phrase with the nearest known names, or an empty string.

    Examples
    --------
    >>> suggest("RK5", ["RK4", "Heun"])
    '; did you mean RK4?'
    """
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.4)
    return f"; did you mean {' or '.join(near)}?" if near else ""
