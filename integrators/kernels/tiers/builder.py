"""The process that compiles kernels for others: ``python -m integrators.kernels.tiers.builder``.

It reads a kernel a line (``CFunction.text``) from standard input and compiles each into the cache.
It ends when nothing has come for a while, when the input has ended and all is done, or when
another one is at work. Started by :mod:`.background`; nobody else needs it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterable

from ..c_functions import from_text
from ..file_lock import locked
from .background import BUSY, lock_path

__all__ = ["main"]

#: Seconds without anything to do after which the process ends.
PATIENCE = 5.0
#: It ends after so many seconds, whatever happens.
LONGEST = 600.0
#: How often it tries to become the one that compiles.
TRIES = 5


def main() -> int:
    """Compile what is asked for; returns the exit code."""
    path = lock_path()
    if path is None:
        return 1
    for _ in range(TRIES):
        with locked(path) as ours:
            if ours:
                _stay_in_the_background()
                return 1 if compile_all(_requests()) else 0
        time.sleep(0.05)  # who started this process may still have it
    return BUSY  # another process compiles, for all


def compile_all(requests: Iterable[str]) -> int:
    """Compile kernels given by their text; returns how many failed."""
    failed = 0
    for text in requests:
        try:
            function = from_text(text)
            if not function.is_kept:
                function.build()
        except Exception:
            failed += 1
            traceback.print_exc()
    return failed


def _requests() -> Iterable[str]:
    """Lines of the input, until it ends or none has come for a while."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line.strip())
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    with contextlib.suppress(queue.Empty):
        while line := lines.get(timeout=PATIENCE):
            yield line


def _stay_in_the_background() -> None:
    with contextlib.suppress(OSError, AttributeError):
        os.nice(5)
    stop = threading.Timer(LONGEST, os._exit, [1])
    stop.daemon = True
    stop.start()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the thread that reads may wait for input forever
