"""Runs of ``solve_many`` in SIMD lanes, and what is said of them afterwards.

Lanes keep final states only. Where the problem reviews its runs (``IVP.review``), those of a block
are done a second time, now that their numbers of steps are known and there is a place for each
step; that is cheap against the review. A run of which the review has something to say is done once
more by ``solve``: at a singular position rounding decides what is found, and the answer is to be
that of the run alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import OnWorkspace, kernel
from ...options import USUAL_ATOL, USUAL_RTOL
from ...problem import IVP
from ...runs.endings import LARGE, ending, remarks
from ...stepping.state import Status
from ...stepping.workspace import Lanes
from ..reductions import Reductions
from ..results import Each
from .code import LaneCode
from .loop import run_lanes
from .rows import AGAIN, ENDED_BY_EVENT, LANES

if TYPE_CHECKING:
    from ..results import ManySolutions

__all__ = ["LaneRuns"]

BLOCK = 512  # runs that a thread takes at a time …
INTERPRETED_BLOCK = 2 * LANES  # … as long as lanes are interpreted: between blocks they go over
UNTOUCHED = np.inf  # how a run ended that was never begun
MOST_KEPT = 20_000_000  # numbers of the steps of a block that are kept for a review

Array = NDArray[np.float64]
OnThreads = Callable[..., bool]


@kernel
def run_block(w: Any, first: Any, last: Any) -> int:
    """``run_lanes`` as a C function, whose numbers are floats."""
    run_lanes(w, int(first), int(last))
    return 0


_run_block = OnWorkspace(run_block, Lanes, numbers=True)


@dataclass
class LaneRuns:
    """Runs in lanes: the problem, its code, and the rows of results that they fill.

    ``alone(k)`` does run k by ``solve`` and enters what it finds.
    """

    ivp: IVP
    code: LaneCode
    parameters: Array
    result: ManySolutions
    options: dict[str, Any]
    threads: int
    alone: Callable[[int], None]
    each: Each
    reductions: Reductions

    def integrate(self, on_threads: OnThreads) -> bool:
        """Integrate all runs, a block of them on each thread, and say how each ended.

        Returns whether Ctrl-C was pressed.
        """
        result, m = self.result, len(self.result)
        self.states = result.y.copy()
        self.h_end, self.endings = np.zeros(m), np.zeros(m)
        self.notes = self.code.tasks.notes(m, self.states.shape[1])
        self.endings[:] = UNTOUCHED
        pressed = self._pass(range(m), on_threads, result)
        for k in np.flatnonzero(self.endings == UNTOUCHED):  # Ctrl-C came before
            result.y_eval[k] = np.nan
            if result.t_eval.size and result.t_eval[0] == result.t[k]:
                result.y_eval[k, :, 0] = self.states[k]
        result.engine = f"{LANES} lanes, {self.threads} threads"
        result.status[self.endings == ENDED_BY_EVENT] = Status.EVENT
        done = result.status == Status.FINISHED
        result.message[done] = ending(Status.FINISHED, None)
        self._remark(np.flatnonzero(done))
        for k in np.flatnonzero(~done):
            result.message[k] = self._ending(int(k))
        # Lanes do not ask whether a defect that no step makes small is rounding: `solve` does.
        stuck = self.code.looks_at_defects & (result.status == Status.STEP_TOO_SMALL)
        again = np.flatnonzero((self.endings == AGAIN) | stuck)
        result.message[again] = ""  # `solve` is asked
        if again.size:
            result.engine += f"; {again.size} of {m} again alone, for what lanes leave to solve"
        if self.ivp.events:
            for run in range(m):
                result.t_events[run], result.y_events[run] = self.notes.occurrences(run)
        self.reductions.enter(
            result, self.parameters, self.each.spans, (self.notes.values, self.notes.value_times)
        )
        if self.ivp.review is not None:
            pressed = self._review(on_threads) or pressed
        return pressed

    def _pass(
        self, runs: range, on_threads: OnThreads, into: Any, trail: _Trail | None = None
    ) -> bool:
        """Integrate runs; results go to the arrays of `into`. Whether Ctrl-C was pressed."""
        code, options = self.code, self.options
        order = code.estimate_order
        n = self.states.shape[1]
        common = code.common(options["first_step"] or 0.0)
        control = code.controller.to_array(order)[:-1]  # all but `predictive`
        spans = self.each.spans
        fixed = (options["step"] or 0.0) * np.sign(spans[0, 1] - spans[0, 0])
        limits = [options[name] for name in ("min_step", "max_step", "max_steps")]
        constants = [0.0, *limits, *control, 0.0, abs(fixed) * np.sign(fixed)]
        kept = trail or _Trail.nothing(n)
        notes = self.notes if trail is None else code.tasks.notes(len(self.result), n)
        shared: dict[str, Any] = dict(
            common=common,
            y0=self.states,
            p0=self.parameters,
            spans=spans,
            **code.tolerances(self.each.rtols, self.each.atols),
            t_eval=into.t_eval,
            y_end=into.y,
            t_end=into.t,
            status=into.status,
            ending=self.endings if trail is None else np.zeros(len(self.result)),
            steps=into.nsteps,
            rejected=into.nrejected,
            h_end=self.h_end,
            y_eval=into.y_eval,
            all_outputs=into.y_eval.reshape(-1),
            trail_at=kept.at,
            trail_t=kept.t,
            trail_y=kept.y,
        )

        own = threading.local()  # arrays of a thread: every run begins by filling in all it needs

        def integrate(first: int, last: int) -> None:
            if not hasattr(own, "arrays"):
                own.arrays = code.workspace(constants, notes, **shared)
            _run_block(own.arrays, first, last)

        def stop() -> None:
            common.stop = 1

        largest = BLOCK if _run_block.is_compiled else INTERPRETED_BLOCK
        size = max(LANES, min(largest, -(-len(runs) // self.threads)))
        blocks = pairwise([*range(runs.start, runs.stop, size), runs.stop])
        return on_threads(integrate, blocks, self.threads, stop)

    def _ending(self, k: int) -> str:
        """How run k ended, in the words of ``solve``."""
        result = self.result
        status = Status(int(result.status[k]))
        if status == Status.EVENT:
            return self._event_ending(k)
        if status == Status.NONFINITE and result.nsteps[k] + result.nrejected[k] == 0:
            return ""  # `solve` refuses to begin such a run: its words are taken
        names = ("max_steps", "max_step", "min_step", "step")
        limits = {name: self.options[name] for name in names}
        options = SimpleNamespace(fixed=self.code.fixed, **limits)
        there = SimpleNamespace(t=result.t[k], h=self.h_end[k], options=options, failure="")
        there.problem = self.ivp
        return ending(status, there)

    def _remark(self, runs: NDArray[np.int64]) -> None:
        """Add to the messages of finished runs what ``solve`` would remark on."""
        result = self.result
        large = np.abs(result.y).max(axis=1, initial=0.0) > LARGE
        for k in runs if self.code.fixed else runs[large[runs]]:
            changes = {"y0": self.states[k], "params": self.parameters[k]}
            run = self.ivp.with_(**changes, t_span=self.each.span(k))
            given = self.each.tolerances(k)
            options = SimpleNamespace(fixed=self.code.fixed, rtol=given["rtol"])
            options.atol = np.zeros(run.n) + given["atol"]
            usual = given["rtol"] is USUAL_RTOL and given["atol"] is USUAL_ATOL
            options.idle_tolerances = self.code.fixed and not usual
            steps = int(result.nsteps[k])
            engine: Any = SimpleNamespace(options=options, statistics=lambda n=steps: {"nsteps": n})
            slope = run.rhs(run.t_span[0], run.y0) if large[k] else None
            said = [ending(Status.FINISHED, None), *remarks(run, engine, slope, result.y[k])]
            result.message[k] = "; ".join(said)

    def _event_ending(self, k: int) -> str:
        """Which event ended run k, in the words of ``solve``."""
        at = self.result.t[k]
        for number, (event, times) in enumerate(zip(self.ivp.events, self.result_events(k))):
            if event.terminal and len(times) and times[-1] == at:
                label = repr(event.name) if event.name else f"number {number}"
                return f"stopped by event {label} at t = {at:.9g}"
        return ""

    def result_events(self, k: int) -> list[Array]:
        """Times of the events of run k."""
        return self.notes.occurrences(k)[0]

    # ------------------------------------------------------------ what the problem says

    def _review(self, on_threads: OnThreads) -> bool:
        """Let the problem look at each run; those of which it says something are done alone.

        Returns whether Ctrl-C was pressed.
        """
        result = self.result
        first = 0
        again: list[int] = []
        while first < len(result) and not np.all(result.status[first:] == Status.INTERRUPTED):
            last = self._block(first)
            trail = _Trail.of(result.nsteps, first, last, self.states.shape[1])
            if trail is not None:
                aside = _aside(result)
                self._pass(range(first, last), on_threads, aside, trail)
                if (aside.status[first:last] == Status.INTERRUPTED).any():
                    self._unreviewed(first)
                    return True
            suspicious = self._screened(first, last, trail)
            for k in range(first, last):
                if result.status[k] == Status.INTERRUPTED or not suspicious[k - first]:
                    continue
                same = trail is not None and _same(result, aside, k)
                if not same or self._remarks(k, *trail.steps(k, self)):  # type: ignore[union-attr]
                    again.append(k)
            first = last
        for k in again:
            self.alone(k)
            if result.status[k] == Status.INTERRUPTED:
                return True
        if again:
            result.engine += f"; {len(again)} of {len(result)} again alone, after a review"
        return False

    def _screened(self, first: int, last: int, trail: _Trail | None) -> NDArray[np.bool_]:
        """Which runs need a review at all, as far as the problem knows how to tell at a glance."""
        screen = getattr(self.ivp.review, "screen", None)
        if screen is None or trail is None:
            return np.ones(last - first, dtype=bool)
        counts = np.diff(trail.at)[first:last] + 1  # with the start
        at = np.concatenate([[0], np.cumsum(counts)])
        t, y = np.empty(at[-1]), np.empty((at[-1], self.states.shape[1]))
        steps = np.ones(at[-1], dtype=bool)
        steps[at[:-1]] = False
        starts = np.broadcast_to(self.each.spans, (len(self.result), 2))[first:last, 0]
        t[at[:-1]], y[at[:-1]] = starts, self.states[first:last]
        t[steps], y[steps] = trail.t[: trail.at[-1]], trail.y[: trail.at[-1]]
        return np.asarray(screen(self.parameters[first:last], at, t, y), dtype=bool)

    def _unreviewed(self, first: int) -> None:
        """Ctrl-C came before these runs could be looked at: they are not known to be good."""
        self.result.status[first:] = Status.INTERRUPTED
        self.result.message[first:] = "interrupted before its review"

    def _block(self, first: int) -> int:
        """The last run, exclusive, whose steps find a place beside those of the first."""
        sizes = np.cumsum(self.result.nsteps[first:]) * (self.states.shape[1] + 1)
        return first + max(1, int(np.searchsorted(sizes, MOST_KEPT, side="right")))

    def _remarks(self, k: int, t: Array, y: Array) -> bool:
        changes = {"y0": self.states[k], "params": self.parameters[k]}
        run = self.ivp.with_(**changes, t_span=self.each.span(k))
        assert run.review is not None
        rtol = None if self.code.fixed else float(self.each.tolerances(k)["rtol"])
        try:
            return run.review(run, t, y, rtol) is not None
        except Exception:  # `solve` tells it
            return True


@dataclass
class _Trail:
    """Times and states of the steps of some runs; those of run k from at[k] to at[k + 1]."""

    at: NDArray[np.int64]
    t: Array
    y: Array

    @classmethod
    def nothing(cls, n: int) -> _Trail:
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, n)))

    @classmethod
    def of(cls, counts: NDArray[np.int64], first: int, last: int, n: int) -> _Trail | None:
        """Places for the steps of runs first … last − 1; None if there are too many."""
        held = np.zeros_like(counts)
        held[first:last] = counts[first:last]
        at = np.concatenate([[0], np.cumsum(held)])
        if at[-1] * (n + 1) > MOST_KEPT:
            return None
        size = max(int(at[-1]), 1)
        return cls(at, np.full(size, np.nan), np.zeros((size, n)))

    def steps(self, k: int, runs: LaneRuns) -> tuple[Array, Array]:
        """Times and states, in columns, of a run with its start."""
        part = slice(self.at[k], self.at[k + 1])
        t = np.concatenate([[runs.each.span(k)[0]], self.t[part]])
        return t, np.concatenate([runs.states[k][None], self.y[part]]).T


def _aside(result: ManySolutions) -> Any:
    """Arrays like those of the results, without output times."""
    names = ("y", "t", "status", "nsteps", "nrejected")
    arrays = {name: getattr(result, name).copy() for name in names}
    arrays["status"][:] = Status.INTERRUPTED
    empty = result.y_eval[:, :, :0].copy()
    return SimpleNamespace(**arrays, t_eval=np.zeros(0), y_eval=empty)


def _same(result: ManySolutions, aside: Any, k: int) -> bool:
    """Whether a run ended the second time as the first time, bit for bit."""
    names = ("y", "t", "status", "nsteps", "nrejected")
    return all(np.array_equal(getattr(result, x)[k], getattr(aside, x)[k]) for x in names)
