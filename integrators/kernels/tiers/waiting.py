"""A word to whoever waits for the compiler: what for, and that it happens once."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

__all__ = ["told"]

#: Seconds of waiting after which something is said.
PATIENCE = 1.0

_lock = threading.Lock()
_waited = False  # whether it was said already in this process


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Say on standard error, after a second, that a kernel is being compiled; once in a process."""
    timer = threading.Timer(PATIENCE, _say, [what])
    timer.daemon = True
    if not _waited:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(what: str) -> None:
    global _waited
    with _lock:
        if _waited:
            return
        _waited = True
    from ..cache import place

    kept = "once: the code is kept" if place() else "in each process, for want of a cache folder"
    line = f"featherstep: compiling {what} (and perhaps others); this takes some seconds {kept}\n"
    with contextlib.suppress(Exception):  # there may be no standard error
        sys.stderr.write(line)
        sys.stderr.flush()
