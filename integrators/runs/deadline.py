"""A run that must not take longer than so many seconds: ``solve(…, time_limit=…)``."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

__all__ = ["Deadline", "TimeLimit", "deadline"]


class Deadline:
    """A moment of the clock on the wall; the parts of a run with modes share one."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.moment = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then."""
        return self.moment - time.monotonic()


def deadline(limit: Any) -> Deadline | None:
    """From what was given as ``time_limit``: seconds, a deadline already, or nothing.

    Examples
    --------
    >>> deadline(60).seconds
    60.0
    """
    if limit is None or isinstance(limit, Deadline):
        return limit
    try:
        seconds = math.nan if isinstance(limit, bool | str) else float(limit)
    except TypeError:
        seconds = math.nan
    if not 0.0 < seconds < threading.TIMEOUT_MAX:
        raise ValueError(f"time_limit must be a positive number of seconds, got {limit!r}")
    return Deadline(seconds)


class TimeLimit:
    """Have a loop stopped when its time is up, while it runs in a ``with`` block.

    ``stop`` is called from another thread: it sets a flag that the loop looks at before each step.
    """

    def __init__(self, until: Deadline, stop: Callable[[], None]) -> None:
        self.until = until
        self.stop = stop
        self.passed = self.over = False
        self.lock = threading.Lock()
        self.timer: threading.Timer | None = None

    def _pass(self) -> None:
        with self.lock:  # nothing is stopped that another run may have taken up since
            if not self.over:
                self.passed = True
                self.stop()

    def __enter__(self) -> None:
        if self.until.left <= 0.0:
            self._pass()
            return
        self.timer = threading.Timer(self.until.left, self._pass)
        self.timer.daemon = True
        self.timer.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self.lock:
            self.over = True
        if self.timer is not None:
            self.timer.cancel()
