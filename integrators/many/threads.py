"""Work on several threads, of which Ctrl-C stops all."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from ..processors import available_processors
from ..runs.interrupts import Interrupts, quiet_interrupts

__all__ = ["on_threads", "thread_count"]

LOOK = 0.05  # seconds between two looks at the keyboard while threads work


def thread_count(workers: Any) -> int:
    """Number of threads that a user asks for."""
    if workers is None:
        return available_processors()
    try:
        count = 0 if isinstance(workers, bool) else operator.index(workers)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(
            f"workers must be a number of threads, an integer of at least 1, or None for one on "
            f"each core; got {workers!r}"
        )
    return count


def on_threads(
    work: Callable[..., None],
    tasks: Iterable[tuple[Any, ...]],
    threads: int,
    stop: Callable[[], None],
) -> bool:
    """Do all tasks on threads. After Ctrl-C no more are begun, and `stop` is to end the others.

    Returns whether that has happened.
    """
    waiting = deque(tasks)

    def take() -> None:
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            work(*task)

    # Runs on several threads at once leave Python's hook as one of them found it; here it is
    # put back. The main thread waits in short pieces, since only it is told of Ctrl-C.
    interrupts = Interrupts()
    with ThreadPoolExecutor(threads) as pool, quiet_interrupts(interrupts.wait), interrupts:
        working = [pool.submit(take) for _ in range(threads)]
        try:
            while wait(working, LOOK).not_done and not interrupts.waiting:
                pass
        finally:  # a second Ctrl-C, or another signal, may raise
            waiting.clear()
            while not all(future.done() for future in working):
                stop()
                wait(working, LOOK)
    for future in working:
        future.result()
    return interrupts.waiting
