"""The command that is being run, for what it writes: reports say how they came about."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["command_line"]

#: As it would be typed; empty in a program of one's own.
command_line: ContextVar[str] = ContextVar("command_line", default="")
