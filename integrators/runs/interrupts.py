"""Ctrl-C during a run: it stops between two steps, and what was computed up to then is kept."""

from __future__ import annotations

# The C functions behind `signal`, which looks every handler up in an enumeration: 14 µs a run.
import _signal  # type: ignore[import-not-found]
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Interrupts", "quiet_interrupts"]

SIGINT = int(signal.SIGINT)


def _in_main_thread() -> bool:
    """Whether this thread is the one that Ctrl-C comes to."""
    return threading.get_ident() == threading.main_thread().ident


class Interrupts:
    """Holds back Ctrl-C while code runs in which it would be lost, misread, or lose something.

    The user's functions are exposed to it as ever. A second Ctrl-C is not held back.
    """

    def __init__(self) -> None:
        self.waiting = False
        self.open = False
        self.replaced: Any = None

    def __enter__(self) -> None:
        self.waiting = self.open = False
        if _in_main_thread() and _signal.getsignal(SIGINT) is signal.default_int_handler:
            self.replaced = _signal.signal(SIGINT, self._handle)

    def __exit__(self, *exception: object) -> None:
        if self.replaced is not None:
            _signal.signal(SIGINT, self.replaced)
            self.replaced = None

    def wait(self) -> None:
        """Note a Ctrl-C that came where it could not be raised."""
        self.waiting = True

    def _handle(self, number: int, frame: Any) -> None:
        if self.open or self.waiting:
            raise KeyboardInterrupt
        self.waiting = True

    def exposed(self, call: Callable[[], Any]) -> Any:
        """Call a function that Ctrl-C may interrupt."""
        before, self.open = self.open, True
        try:
            return call()
        finally:
            self.open = before


class quiet_interrupts:
    """Keep Python from printing, and forgetting, a Ctrl-C where no exception can go.

    That is so at the entry of a callback, which the loop notices, and in the callbacks of Python
    itself (of its garbage collector, for instance); ``notice`` is told of either. Ctrl-C comes to
    the main thread only; others leave the hook, which all share, alone.
    """

    def __init__(self, notice: Callable[[], None] = lambda: None) -> None:
        self.notice = notice
        self.previous: Any = None

    def __enter__(self) -> None:
        if _in_main_thread():
            self.previous = sys.unraisablehook
            sys.unraisablehook = self._hook

    def __exit__(self, *exception: object) -> None:
        if self.previous is not None:
            sys.unraisablehook = self.previous

    def _hook(self, unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self.notice()
        else:
            self.previous(unraisable)
