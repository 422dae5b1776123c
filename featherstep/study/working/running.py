"""Doing the runs: parts are handed to workers, and kept as they come back.

At any moment each worker has one part (on a cluster: two). What a crash can lose is those, a
*block* of runs in all. Parts whose worker died are done again; if that repeats, alone and in
halves, until the run is found that kills workers: it fails, the others are kept.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..keeping.part import Part
from ..keeping.store import Store, missing_ranges
from ..plan import Plan
from .executors import DaskCluster, Executor
from .sources import Source, source_of

__all__ = ["Progress", "StudyInterrupted", "do_runs", "in_flight", "offer", "retry_runs", "work"]

Array = NDArray[np.float64]
Range = tuple[int, int]
log = logging.getLogger(__name__)

DEATHS = 3  # of workers after which a run is given up


class StudyInterrupted(KeyboardInterrupt):
    """Ctrl-C during a study; what was done is kept, and the message says how to go on."""


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Attributes
    ----------
    done, total, failed
        Runs that are done, of how many, and how many of them failed.
    rate
        Runs a second since the start of this call; 0 if none is done yet.
    remaining
        Seconds that are left at this rate; NaN if unknown.
    """

    done: int
    total: int
    failed: int
    rate: float
    remaining: float

    def __str__(self) -> str:
        text = f"{self.done:,} of {self.total:,} runs, {self.failed:,} failed"
        if self.rate:
            text += f", {self.rate:.3g} a second"
        if self.done < self.total and np.isfinite(self.remaining):
            text += f", {_duration(self.remaining)} left"
        return text


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


# ---------------------------------------------------------------------- on workers

_sources: dict[str, Source] = {}
_making = threading.Lock()


def offer(key: str, source: Source) -> None:
    """Let the tasks of this process use a source that is there already."""
    with _making:
        _sources.clear()
        _sources[key] = source


def work(plan: Any, key: str, first: int, columns: Mapping[str, Array]) -> Part:
    """Do some runs: the task that workers are given.

    Parameters
    ----------
    plan
        A plan, or its pickled bytes.
    key
        Its hash: what was made for it is kept by this name, for later parts.
    first, columns
        Number of the first run, and parameters of all.
    """
    with _making:
        if key not in _sources:
            _sources.clear()  # a worker that serves one study after the other keeps the last
            given = plan if isinstance(plan, Plan) else pickle.loads(plan)
            _sources[key] = source_of(given)
        source = _sources[key]
    return source.run(first, columns)


# ---------------------------------------------------------------------- at the desk


def in_flight(executor: Executor) -> int:
    """Parts that are under way at a time."""
    return 2 * executor.workers if isinstance(executor, DaskCluster) else executor.workers


class _Desk:
    """Hands out parts, and keeps what comes back."""

    def __init__(
        self,
        plan: Plan,
        key: str,
        executor: Executor,
        keep: Callable[[Part], None],
    ) -> None:
        self.plan, self.key, self.executor = plan, key, executor
        self.keep = keep
        self.shared = executor.prepare(plan)
        self.pending: dict[Any, Range] = {}
        self.deaths: dict[Range, int] = {}

    def submit(self, first: int, stop: int) -> Any:
        """Hand out some runs."""
        columns = self.plan.design.rows(first, stop)
        while True:
            try:
                return self.executor.submit(work, self.shared, self.key, first, columns)
            except Exception as error:  # a worker died before this was noticed
                if not self.executor.lost(error):
                    raise
                self.executor.renew()

    def run(self, ranges: Any) -> None:
        """Do all ranges of runs."""
        waiting: deque[Range] = deque()
        suspects: list[Range] = []
        ranges = iter(ranges)
        while True:
            while len(self.pending) < in_flight(self.executor):
                following = waiting.popleft() if waiting else next(ranges, None)
                if following is None:
                    break
                self.pending[self.submit(*following)] = following
            if not self.pending:
                break
            for future in self.executor.first_done(list(self.pending)):
                place = self.pending.pop(future)
                try:
                    part = future.result()
                except Exception as error:
                    if not self.executor.lost(error):
                        raise
                    log.warning("a worker died while it did the runs %d to %d", *place)
                    self.executor.renew()
                    self.deaths[place] = self.deaths.get(place, 0) + 1
                    again = self.deaths[place] < 2
                    (waiting if again else suspects).append(place)
                    continue
                self.keep(part)
        for first, stop in suspects:
            self.keep(self._alone(first, stop))

    def _alone(self, first: int, stop: int) -> Part:
        """Do some runs with nothing beside them; if a worker dies, halves of them."""
        for _ in range(1 if stop - first > 1 else DEATHS):
            future = self.submit(first, stop)
            self.executor.first_done([future])
            try:
                part: Part = future.result()
                return part
            except Exception as error:
                if not self.executor.lost(error):
                    raise
                self.executor.renew()
        if stop - first > 1:
            middle = (first + stop) // 2
            return Part.joined([self._alone(first, middle), self._alone(middle, stop)])
        part = Part.empty(first, self.plan.design.rows(first, stop), self.plan)
        part.fail(
            0,
            "worker",
            f"the process that did this run died, {DEATHS} times: out of memory, or a crash in "
            "compiled code; study.rerun shows it",
        )
        return part


def do_runs(
    plan: Plan,
    key: str,
    store: Store,
    executor: Executor,
    block: int,
    report: Callable[[Progress], Any] | None,
) -> None:
    """Do the runs that are not done yet.

    Parameters
    ----------
    plan, key, store
        What is to be done, its hash, and where it is kept.
    executor
        Who does it.
    block
        Most runs that a crash may lose.
    report
        Is told of progress after each part.
    """
    done = store.done()
    total = sum(stop - first for first, stop in done)
    failed = store.counts()[1] if total else 0
    began, before = time.monotonic(), total

    def keep(part: Part) -> None:
        nonlocal total, failed
        store.write(part)
        total += len(part)
        failed += len(part.failed)
        tell()

    def tell() -> None:
        if report is not None:
            elapsed = time.monotonic() - began
            rate = (total - before) / elapsed if elapsed > 0.0 else 0.0
            left = (store.n - total) / rate if rate else np.nan
            report(Progress(total, store.n, failed, rate, left))

    tell()
    size = max(1, block // in_flight(executor))
    if total < store.n:
        _Desk(plan, key, executor, keep).run(missing_ranges(done, store.n, size, store.chunk))


def retry_runs(
    plan: Plan,
    key: str,
    store: Store,
    executor: Executor,
    report: Callable[[Progress], Any] | None,
) -> int:
    """Do the runs that failed again; return how many succeed now."""
    mended = tried = 0
    total = store.counts()[1]
    began = time.monotonic()
    rows: dict[int, Part] = {}

    def keep(piece: Part) -> None:
        rows[piece.first] = piece

    desk = _Desk(plan, key, executor, keep) if total else None
    for first, stop in store.done():
        part = store.read(first, stop)
        bad = [first + int(k) for k in part.failed]
        if not bad or desk is None:
            continue
        rows.clear()
        rows.update({k: part.rows(k, k + 1) for k in range(first, stop)})
        desk.run([(k, k + 1) for k in bad])
        again = Part.joined([rows[k] for k in sorted(rows)])
        store.write(again)
        tried += len(bad)
        mended += len(bad) - len(again.failed)
        if report is not None:
            rate = tried / max(time.monotonic() - began, 1e-9)
            report(Progress(tried, total, tried - mended, rate, (total - tried) / rate))
    return mended
