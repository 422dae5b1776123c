"""Kernels run as the Python that they are, but with the manners of machine code.

Machine code divides by zero without a warning, and Ctrl-C does not stop it between two statements.
So NumPy's warnings are off while a kernel is interpreted, and Ctrl-C waits until the kernel calls a
function of the user, or ends. In these functions everything is as their author expects.
"""

from __future__ import annotations

# The C functions behind `signal`, which looks every handler up in an enumeration.
import _signal  # type: ignore[import-not-found]
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["interpret", "outside", "uninterrupted"]


class _State(threading.local):
    """What the functions that a kernel calls shall find."""

    warnings: Any = None  # NumPy's settings outside; None: no kernel runs
    holding = False
    pressed = False


_state = _State()


def interpret(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Run a kernel with NumPy's warnings off.

    Examples
    --------
    >>> interpret(lambda x: 1.0 / x, np.float64(0.0))
    np.float64(inf)
    """
    before = _state.warnings
    _state.warnings = np.geterr()
    try:
        with np.errstate(all="ignore"):
            return kernel(*arguments)
    finally:
        _state.warnings = before


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Leave a kernel for a function that it calls: warnings are on again, Ctrl-C counts."""
    if _state.warnings is None:
        yield
        return
    held, _state.holding = _state.holding, False
    try:
        with np.errstate(**_state.warnings):
            yield
    finally:
        _state.holding = held


@contextlib.contextmanager
def uninterrupted() -> Iterator[Callable[[], bool]]:
    """Hold Ctrl-C back while kernels change something step by step; yields whether it came.

    Whoever has a handler of his own keeps it.
    """
    replaced = None
    if threading.current_thread() is threading.main_thread():
        if _signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            replaced = _signal.signal(signal.SIGINT, _note)
    before = _state.holding, _state.pressed
    _state.holding, _state.pressed = True, False
    try:
        yield lambda: _state.pressed
    finally:
        _state.holding, _state.pressed = before
        if replaced is not None:
            _signal.signal(signal.SIGINT, replaced)


def _note(number: int, frame: Any) -> None:
    if not _state.holding or _state.pressed:  # in a function of the user, or for the second time
        raise KeyboardInterrupt
    _state.pressed = True
