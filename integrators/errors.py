"""Errors that are more than a wrong argument."""

from __future__ import annotations

from typing import Any

__all__ = ["IntegrationError"]


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
