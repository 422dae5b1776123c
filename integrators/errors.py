"""Errors that are more than a wrong argument."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

__all__ = ["FileError", "IntegrationError"]


class FileError(ValueError):
    """A file that is not what it should be.

    Attributes
    ----------
    file
        Its name.
    reason
        What is wrong with it.
    """

    def __init__(self, file: str | PathLike[str], reason: str) -> None:
        super().__init__(f"{fspath(file)}: {reason}")
        self.file, self.reason = fspath(file), reason

    def __reduce__(self) -> Any:
        return type(self), (self.file, self.reason)


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
