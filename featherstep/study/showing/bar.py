"""Progress of a study on a terminal: a bar, or a line now and then where there is none."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from ..working.running import Progress

__all__ = ["shown"]

EVERY = 10.0  # seconds between two lines


@contextlib.contextmanager
def shown(title: str) -> Iterator[Callable[[Progress], None]]:
    """Yield what is told of progress."""
    from ...terminal import progress

    last = time.monotonic()

    with progress(title) as show:

        def report(now: Progress) -> None:
            nonlocal last
            if show is not None:
                show(now.done, now.total, str(now))
            elif time.monotonic() - last > EVERY:
                last = time.monotonic()
                sys.stderr.write(f"{title}: {now}\n")

        yield report
