"""What can go wrong while a function runs on symbols, told in terms of the user's own code.

A message names the file and line of the user's function, not the place inside this package or
inside NumPy where the trouble was noticed: :func:`user_location` walks the call stack outwards
until it has left both.
"""

from __future__ import annotations

import linecache
import os
import sys
from types import TracebackType

import numpy as np

__all__ = ["GraphTooLargeError", "TracingError", "too_large", "tracing_error", "user_location"]

_INSIDE = (
    os.path.dirname(os.path.abspath(__file__)) + os.sep,
    os.path.dirname(os.path.abspath(np.__file__)) + os.sep,
)


class TracingError(TypeError):
    """A function cannot be traced; the message names the line and the remedy."""


class GraphTooLargeError(TracingError, ValueError):
    """The expression graph is too large to become machine code, or to be built at all."""


def _describe(filename: str, line: int) -> str:
    source = linecache.getline(filename, line).strip()
    return f'File "{filename}", line {line}' + (f": {source}" if source else "")


def user_location(traceback: TracebackType | None = None) -> str:
    """Return the innermost line outside this package and NumPy: ``File "...", line n: code``.

    Parameters
    ----------
    traceback
        Where an exception came from; without it, the current call stack is searched.

    Examples
    --------
    >>> user_location().startswith("File")
    True
    """
    if traceback is not None:
        found = ""
        step: TracebackType | None = traceback
        while step is not None:
            filename = step.tb_frame.f_code.co_filename
            if not filename.startswith(_INSIDE):
                found = _describe(filename, step.tb_lineno)
            step = step.tb_next
        return found or "unknown location"
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_INSIDE):
            return _describe(filename, frame.f_lineno)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return "unknown location"


def tracing_error(problem: str, remedy: str) -> TracingError:
    """Return a :class:`TracingError` that names the user's line, the problem and the remedy.

    Examples
    --------
    >>> str(tracing_error("no loops here", "unroll it")).endswith("Remedy: unroll it.")
    True
    """
    return TracingError(f"{user_location()}\n{problem}. Remedy: {remedy}.")


def too_large(nodes: int) -> GraphTooLargeError:
    """Return the error that stops a trace which has passed a number of nodes.

    Examples
    --------
    >>> "more than 1,000 operations" in str(too_large(1000))
    True
    """
    return GraphTooLargeError(
        f"{user_location()}\nthe trace was stopped here: the function has done more than {nodes:,} "
        "operations on single numbers, too many for a graph. Remedy: leave the function untraced; "
        "solve takes plain functions, and NumPy is fast on large arrays."
    )
