"""Errors that are more than a wrong argument, and what a message says of a name that is unknown."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any

__all__ = ["FileError", "IntegrationError", "IntegrationInterrupted", "suggest"]


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

    def __reduce__(self) -> Any:
        """Survive the way from one process to another; exceptions lose keyword arguments there."""
        return _integration_error, (str(self), self.t, self.h, self.y, self.solution)


def _integration_error(message: str, t: float, h: float, y: Any, solution: Any) -> IntegrationError:
    return IntegrationError(message, t=t, h=h, y=y, solution=solution)


class IntegrationInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run; it ends the script as any other, unless it is caught.

    Attributes
    ----------
    solution
        Everything computed up to there: a Solution, or ManySolutions of ``solve_many``.

    Examples
    --------
    >>> def f(t, y):
    ...     if t > 0.5:
    ...         raise KeyboardInterrupt
    ...     return -y
    >>> from integrators import solve
    >>> try:
    ...     solve(f, (0, 1), [1.0], step=0.25, method="RK4")
    ... except IntegrationInterrupted as interruption:
    ...     print(interruption.solution.t)
    [0.   0.25 0.5 ]
    """

    def __init__(self, message: str = "interrupted", solution: Any = None) -> None:
        super().__init__(message)
        self.solution = solution

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.solution)


def check_on_interrupt(on_interrupt: Any) -> None:
    """Refuse anything but the two ways to deal with Ctrl-C."""
    if on_interrupt not in ("raise", "return"):
        raise ValueError(f"on_interrupt must be 'raise' or 'return', got {on_interrupt!r}")


def pass_on(error: BaseException, solution: Any) -> None:
    """Raise again what is to end the script (SystemExit and its like), with what was computed."""
    with contextlib.suppress(AttributeError):
        error.solution = solution  # type: ignore[attr-defined]
    raise error


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a phrase with the nearest known names, or an empty string.

    Examples
    --------
    >>> suggest("RK5", ["RK4", "Heun"])
    '; did you mean RK4?'
    """
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.4)
    return f"; did you mean {' or '.join(near)}?" if near else ""
