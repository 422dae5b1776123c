"""One run: everything between the steps and the Solution.

A :class:`~integrators.stepping.engine.Stepper` takes the steps, whichever method or package is
behind it. Here is what needs Python and is the same for all: output times, events and jumps,
projections, callbacks, progress, and the words for how the run ended.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP
from ..stepping.engine import Stepper
from ..stepping.state import Status
from .bounds import broken_bounds
from .consistency import about_the_index, check_consistent
from .deadline import Deadline, TimeLimit
from .endings import ending, remarks
from .instants.entry import at_the_start
from .instants.events import Tracker
from .instants.instant import Instant, Motion
from .instants.zeno import limit
from .interrupts import Interrupts, quiet_interrupts
from .mistakes import explained
from .refined import projections, refined
from .solution import DenseOutput, Solution, polynomials

__all__ = ["Run"]


UNLIMITED = contextlib.nullcontext()


class Run:
    """One run of one method on one problem.

    Parameters
    ----------
    engine
        What takes the steps.
    ivp
        The problem.
    output_times
        Where output is wanted; None means after every step.
    stops
        Times to step on exactly; the last is the end of the interval.
    keep_dense
        Whether to return the solution as a function of time.
    callback
        ``callback(t, y)`` after every step; True ends the run.
    progress
        Whether to show a progress bar.
    """

    def __init__(
        self,
        engine: Stepper,
        ivp: IVP,
        output_times: NDArray[np.float64] | None,
        stops: list[float],
        keep_dense: bool,
        callback: Callable[[float, NDArray[Any]], Any] | None,
        progress: bool,
        until: Deadline | None = None,
    ) -> None:
        self.engine = engine
        self.limit = None if until is None else TimeLimit(until, engine.stop)
        self.ivp = ivp
        self.stops = stops
        self.keep_dense = keep_dense
        self.callback = callback
        self.project, self.refine = projections(ivp, engine.options)
        self.settled: tuple[float, NDArray[Any]] | None = None  # the last projected state
        self.progress = progress
        self.output_times = output_times
        self.next_output = 0
        t0 = ivp.t_span[0]
        self.forward = 1.0 if ivp.t_span[1] >= t0 else -1.0
        self.ts: list[NDArray[np.float64]] = []
        self.ys: list[NDArray[Any]] = []
        self.step_starts: list[NDArray[np.float64]] = []
        self.step_lengths: list[NDArray[np.float64]] = []
        self.lengths_taken: list[NDArray[np.float64]] = []  # up to an event, if there was one
        self.step_states: list[NDArray[Any]] = []
        self.step_polynomials: list[NDArray[Any]] = []
        self.tracker: Tracker | None = None
        self.after_jump: tuple[float, NDArray[Any]] | None = None  # the last one
        self.exception: BaseException | None = None
        self.ended: Status | None = None
        self.ended_by: int | None = None
        self.zeno: tuple[float, NDArray[Any]] | None = None
        self.reporter: _Progress | None = None
        self.message = self.remark = ""
        self.first_slope: NDArray[Any] | None = None
        self.interrupts = Interrupts()
        # States of all steps for the problem's review, if they are not the output anyway.
        self.steps: list[tuple[NDArray[np.float64], NDArray[Any]]] = []
        self.review_steps = ivp.review is not None and output_times is not None
        # Python has to look at every step if any of these is there, or an event that is not traced.
        self.one_by_one = callback is not None or self.project is not None
        if output_times is None:
            self._output(np.array([t0]), ivp.y0[None, :])
        elif output_times.size and output_times[0] == t0:
            self._output(np.array([t0]), ivp.y0[None, :])
            self.next_output = 1

    def run(self, first_step: float | None) -> Solution:
        """Run to the end and collect."""
        t0, t1 = self.ivp.t_span
        status = Status.FINISHED
        if t0 == t1:
            return self._reviewed(self._solution(status))
        with quiet_interrupts(self.interrupts.wait):
            self._start(first_step)
            if self.interrupts.waiting:
                raise KeyboardInterrupt  # there is nothing to keep yet
            self.reporter = _Progress(t0, t1) if self.progress else None
            # Machine code returns after some thousand steps; these are put away before a Ctrl-C
            # counts. Python functions are stopped at once.
            held = self.interrupts if self.engine.is_native else contextlib.nullcontext()
            with held:
                try:
                    with self.limit or UNLIMITED:
                        status = self._loop()
                except KeyboardInterrupt as interrupt:
                    status, self.exception = Status.INTERRUPTED, interrupt
                except Exception:
                    raise
                except BaseException as stop:  # sys.exit and its like, of an event or a callback
                    status, self.exception = Status.FUNCTION_RAISED, stop
                finally:
                    if self.reporter is not None:
                        self.reporter.close()
                solution = self._solution(status)
        return self._reviewed(solution)

    def _reviewed(self, solution: Solution) -> Solution:
        """Let the problem look at its run, and say what it finds."""
        if self.ivp.nonnegative.size:
            solution.message += broken_bounds(self.ivp, solution)
        if self.ivp.review is None or solution.status == Status.INTERRUPTED:
            return solution
        t, y = solution.t, solution.y
        if self.review_steps:
            t = np.concatenate([[self.ivp.t_span[0]], *(times for times, _ in self.steps)])
            y = np.concatenate([self.ivp.y0[None], *(states for _, states in self.steps)]).T
        options = self.engine.options
        try:
            remark = self.ivp.review(self.ivp, t, y, None if options.fixed else options.rtol)
        except Exception as error:  # of a user's review; the run itself is there
            solution.exception = error
            remark = Status.FUNCTION_RAISED, f"its review raised {error!r}"
        status, text = remark or (None, "")
        if status is not None and solution.success:
            solution.status = Status(status)
        solution.message += f"; {text}" if text else ""
        return solution

    def _start(self, first_step: float | None) -> None:
        """Evaluate f once, so that a faulty f is told at once and as itself; choose h."""
        engine, ivp = self.engine, self.ivp
        t0 = ivp.t_span[0]
        with explained(ivp):
            self.first_slope = slope = engine.slope(t0, ivp.y0)
        if not math.isfinite(np.vdot(slope, slope).real) and not np.isfinite(slope).all():
            bad = int(np.flatnonzero(~np.isfinite(slope))[0])
            raise ValueError(
                f"f(t0, y0) is not finite: component {bad} is {slope[bad]} at t0 = {t0:g}; "
                "the right-hand side must be defined at the initial state"
            )
        if ivp.mass is not None:
            check_consistent(ivp, slope, engine.options)
        if ivp.events:
            self.tracker = Tracker(ivp.events, ivp.bind, t0, ivp.y0)
            if not self.one_by_one:
                functions = [event.function for event in ivp.events]
                self.one_by_one = not engine.watch(functions, self.tracker.values)
        if self.project is not None and self.callback is None and not ivp.events:
            self.one_by_one = not engine.project_in_loop(ivp.project)
        engine.begin(slope, first_step)
        if self.tracker is not None:
            self.motion = Motion(engine, ivp, self.tracker)
            instant, self.remark = at_the_start(self.tracker, self.motion, t0, ivp.y0)
            self.ended = None if instant is None else self._pass(instant)

    def _loop(self) -> Status:
        engine = self.engine
        if self.ended is not None:
            return self.ended
        for stop in self.stops:
            code = engine.march(stop, self._take, self.one_by_one)
            if self.ended is not None:
                return self.ended
            if code < 0:
                return self._failure(code)
            if stop != self.stops[-1]:
                engine.restart(stop, engine.y)
        return Status.FINISHED

    def _take(
        self,
        t: float,
        y: NDArray[Any],
        ends: NDArray[np.float64],
        states: NDArray[Any],
        Q: NDArray[Any] | None,
    ) -> bool:
        """Deal with new steps from (t, y); True if the run ends with them."""
        try:
            self.ended = self._accept(t, y, ends, states, Q)
        except Exception as error:  # an event, a projection or a callback raised
            self.exception, self.ended = error, Status.FUNCTION_RAISED
        if self.reporter is not None:
            self.reporter.update(self.engine.t)
        if self.limit and self.limit.passed and self.ended is None:
            self.ended = Status.OUT_OF_TIME
        if self.interrupts.waiting and self.ended is None:
            self.exception, self.ended = KeyboardInterrupt(), Status.INTERRUPTED
        return self.ended is not None

    def _accept(
        self,
        t: float,
        y: NDArray[Any],
        ends: NDArray[np.float64],
        states: NDArray[Any],
        Q: NDArray[Any] | None,
    ) -> Status | None:
        if Q is not None and len(Q) and self.refine is not None:
            y, Q = refined(self.refine, t, y, ends, Q)
        if self.tracker is not None and self.engine.look:
            assert Q is not None
            if len(ends) > 1:  # these hold no event; the last may
                self._quiet_steps(t, y, ends[:-1], states[:-1], Q[:-1])
                t, y = float(ends[-2]), states[-2]
            return self._with_events(t, float(ends[-1]), y, Q[-1], states[-1])
        self._quiet_steps(t, y, ends, states, Q)
        return None if self.callback is None else self._call_back(ends[-1], states[-1])

    def _quiet_steps(
        self,
        t: float,
        y: NDArray[Any],
        ends: NDArray[np.float64],
        states: NDArray[Any],
        Q: NDArray[Any] | None,
    ) -> None:
        """Steps without events: keep and output them."""
        lengths = ends - t
        lengths[1:] = ends[1:] - ends[:-1]  # np.diff takes as long as ten steps
        self.lengths_taken.append(lengths)
        if self.keep_dense and Q is not None:
            starts, before = _starts(t, y, ends, states)
            self._keep(starts, lengths, before, Q)
        if self.project is not None and self.engine.unprojected:
            states[-1] = self._projected(ends[-1], states[-1])
        self._emit(t, y, ends, states, Q)

    def _with_events(
        self,
        t: float,
        end: float,
        y: NDArray[Any],
        Q: NDArray[Any],
        y_new: NDArray[Any],
    ) -> Status | None:
        """One step with events: find them, act on them, output what is left of the step."""
        tracker, engine, h = self.tracker, self.engine, end - t
        assert tracker is not None
        powers = np.arange(1, Q.shape[0] + 1)

        def state(theta: float) -> NDArray[Any]:
            if theta == 1.0 and self.refine is None:
                return engine.from_real(y_new.copy())
            return engine.from_real(engine.move(y, theta**powers @ Q))

        instant = None
        found = tracker.find(t, end, state)
        for i, occurrence in enumerate(found):
            if tracker.acts(occurrence.event):
                end, y_end = occurrence.t, occurrence.y
                later, earlier = found[i:], found[:i]
                y_now = y_end.copy()
                instant = Instant(tracker, self.motion, end, y_now, h, later, recorded=earlier)
                y_new = engine.to_real(y_end).copy()
                break
            tracker.record(occurrence)
        if self.keep_dense:
            self._keep(np.array([t]), np.array([h]), y[None, :], Q[None])
        self.lengths_taken.append(np.array([end - t]))
        if instant is None and self.project is not None:
            y_new = self._projected(end, y_new)
        if end != t:
            self._emit(t, y, np.array([end]), y_new[None, :], Q[None], h)
        ended = None if instant is None else self._pass(instant)
        return ended or self._call_back(end, y_new)

    def _pass(self, instant: Instant) -> Status | None:
        """Let an instant happen, and go on after it, unless the run ends there."""
        tracker, engine = self.tracker, self.engine
        assert tracker is not None
        instant.resolve()
        t, y, h = instant.t, instant.y, engine.h
        if instant.changed:
            gap = tracker.note_reset(t, y)
            # A new flight may be as short as the last: look at it closely.
            engine.restart(t, y, h if gap is None or gap == 0 else min(h, gap))
            self._jump(t, y)
        else:
            engine.restart(t, y)
        self.remark = self.remark or instant.remark
        if instant.status is None and instant.changed and tracker.accumulates():
            self.zeno = limit(tracker.reset_times, tracker.reset_states)
            at = t if self.zeno is None else self.zeno[0]
            self.message = (
                f"events accumulate at t = {at:.9g} (Zeno): "
                f"{len(tracker.reset_times)} resets, ever closer together"
            )
            return Status.ZENO
        self.message, self.ended_by = instant.message, instant.ended_by
        return instant.status

    def _projected(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        assert self.project is not None
        value = self.project(t, self.engine.from_real(y.copy()))
        projected = np.asarray(value, dtype=self.ivp.y0.dtype)
        if projected.shape != self.ivp.y0.shape:
            raise ValueError(
                f"project returned shape {projected.shape}, expected {self.ivp.y0.shape}"
            )
        before = self.engine.from_real(y)
        goes_on = getattr(self.ivp, "goes_on", None)
        state = goes_on(before, projected) if goes_on else projected
        if not np.array_equal(state, before):
            self.engine.replace_state(state)
        jumped = getattr(self.ivp, "jumped", None)
        if jumped is not None and jumped(before, projected):
            self.engine.forget()  # what is known of the past belongs to another state
        self.engine.renew()
        self.settled = t, projected
        return self.engine.to_real(projected)

    def _call_back(self, t: float, y: NDArray[Any]) -> Status | None:
        if self.callback is None:
            return None
        stop = self.callback(float(t), self.engine.from_real(y.copy()))
        if isinstance(stop, bool | np.bool_) and stop:
            self.message = f"stopped by the callback at t = {t:.9g}"
            return Status.STOPPED
        return None

    # ------------------------------------------------------------ collecting output

    def _keep(self, starts: Any, lengths: Any, before: Any, Q: NDArray[Any]) -> None:
        self.step_starts.append(starts)
        self.step_lengths.append(lengths)
        self.step_states.append(before)
        self.step_polynomials.append(Q)

    def _jump(self, t: float, y: NDArray[Any]) -> None:
        """Output the state after a jump: beside the one before it, or in its place."""
        if self.output_times is None:
            self._output(np.array([t]), y[None, :])
        elif self.next_output > 0 and self.output_times[self.next_output - 1] == t:
            self.ys[-1][-1] = y
        self.after_jump = t, y.copy()

    def _emit(
        self,
        t: float,
        y: NDArray[Any],
        ends: NDArray[np.float64],
        states: NDArray[Any],
        Q: NDArray[Any] | None,
        h: float | None = None,
    ) -> None:
        """Output what lies in steps from (t, y); h is the full length of one cut short."""
        if self.review_steps:
            self.steps.append((ends.copy(), np.array(self.engine.from_real(states))))
        if self.output_times is None:
            self._output(ends, self.engine.from_real(states))
            return
        assert Q is not None
        times = self.output_times[self.next_output :]
        upto = (self.forward * times).searchsorted(self.forward * ends[-1], side="right")
        times = times[:upto]
        if not times.size:
            return
        step = (self.forward * ends).searchsorted(self.forward * times, side="left")
        values = states[step]
        between = times != ends[step]
        if between.any():
            starts, before = _starts(t, y, ends, states)
            lengths = ends - starts if h is None else np.array([h])
            # Engines of our own keep Q only for the steps that hold an output time.
            held, row = np.unique(step, return_inverse=True)
            kept = Q if len(Q) == len(held) else Q[held]
            inside = polynomials(
                starts[held], lengths[held], before[held], kept, row, times, self.engine.move
            )
            values[between] = inside[between]
        self._output(times, self.engine.from_real(values))
        self.next_output += int(upto)

    def _output(self, t: NDArray[np.float64], y: NDArray[Any]) -> None:
        self.ts.append(t)
        self.ys.append(np.array(y))

    def _failure(self, code: int) -> Status:
        status = Status(code)
        engine = self.engine
        self.exception = engine.error()
        if isinstance(self.exception, KeyboardInterrupt):
            return Status.INTERRUPTED
        if status == Status.INTERRUPTED and self.limit and self.limit.passed:
            return Status.OUT_OF_TIME
        if status == Status.FUNCTION_RAISED and self.exception is None:
            # Ctrl-C arrived on the way into a callback, before it could catch anything.
            return Status.INTERRUPTED
        return status

    def _message(self, status: Status, y: NDArray[Any]) -> str:
        """How the run ended, and what should be said of it."""
        engine = self.engine
        text = self.message or ending(status, engine, self.exception)
        if status == Status.OUT_OF_TIME and self.limit:
            text = (
                f"gave up at t = {engine.t:.9g}: time_limit = {self.limit.until.seconds:g} s is "
                "over; allow more, loosen the tolerances, or choose another method"
            )
        if status < 0 and self.ivp.mass is not None:
            text += about_the_index(self.ivp, status, engine.t, engine.y)
        if self.remark:
            text = f"{text}; {self.remark}" if text else self.remark
        if status == Status.FINISHED and y.shape[1]:
            for said in remarks(self.ivp, engine, self.first_slope, y[:, -1]):
                text += f"; {said}"
        return text

    def _dense_output(self) -> DenseOutput:
        engine = self.engine
        end = engine.t if self.step_states else self.ivp.t_span[0]
        jump, y_end = self.after_jump, self.ivp.y0
        jumped = jump is not None and jump[0] == end
        if jump is not None and jumped:
            y_end = jump[1]
        if not self.step_states:  # no step was taken: a constant
            Q = np.zeros((1, 1, self.ivp.n), dtype=self.ivp.y0.dtype)
            return DenseOutput(np.array([end]), np.ones(1), y_end[None].copy(), Q, 0, end=end)
        if jumped:  # a step of no length has its value
            Q = np.zeros_like(self.step_polynomials[-1][-1:])
            y = engine.to_real(y_end)[None]
            self._keep(np.array([end]), np.array([self.forward]), y, Q)
        return DenseOutput(
            _joined(self.step_starts),
            _joined(self.step_lengths),
            engine.from_real(np.concatenate(self.step_states)),
            engine.from_real(_of_one_degree(self.step_polynomials)),
            engine.dense_order,
            end=end,
            move=engine.move,
        )

    def _reached(self) -> tuple[float, NDArray[Any]]:
        """Time and state at the end; the engine may go on from another state than is shown."""
        settled, t = self.settled, self.engine.t
        shown = self.refine is not None and settled is not None and settled[0] == t
        jumped = self.after_jump is not None and self.after_jump[0] == t
        return settled if settled and shown and not jumped else (t, self.engine.y)

    def _solution(self, status: Status) -> Solution:
        engine = self.engine
        y = _joined(self.ys).T if self.ys else np.zeros((self.ivp.n, 0))
        sol = self._dense_output() if self.keep_dense else None
        tracker = self.tracker
        kind = self.ivp.y0.dtype
        counters: dict[str, Any] = engine.statistics()
        return Solution(
            _joined(self.ts),
            y.astype(kind, copy=False),
            sol=sol,
            h=_joined(self.lengths_taken),
            t_events=[np.array(t) for t in tracker.t] if tracker else [],
            y_events=[np.array(y) for y in tracker.y] if tracker else [],
            status=status,
            message=self._message(status, y),
            reached=self._reached(),
            ended_by=self.ended_by,
            zeno=self.zeno,
            error_estimate=engine.estimate,
            dense_order=engine.dense_order,
            linear_solver=engine.linear_solver,
            problem=self.ivp,
            exception=self.exception,
            phases=getattr(engine, "phases", ()),
            **counters,
        )


def _starts(
    t: float, y: NDArray[Any], ends: NDArray[np.float64], states: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Times and states at which consecutive steps from (t, y) start."""
    starts, before = np.empty_like(ends), np.empty((len(ends), y.size), dtype=y.dtype)
    starts[0], starts[1:] = t, ends[:-1]
    before[0], before[1:] = y, states[:-1]
    return starts, before


def _of_one_degree(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Polynomials of all steps, with zeros in those of lower degree than others."""
    degree = max(part.shape[1] for part in parts)
    lengths = [((0, 0), (0, degree - part.shape[1]), (0, 0)) for part in parts]
    return np.concatenate(
        [np.pad(part, n) if part.shape[1] < degree else part for part, n in zip(parts, lengths)]
    )


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0)


class _Progress:
    """A progress bar over the integration interval."""

    def __init__(self, t0: float, t1: float) -> None:
        from rich.progress import Progress

        self.t0, self.length = t0, t1 - t0
        self.bar = Progress(transient=True)
        self.task = self.bar.add_task("solving", total=1.0)
        self.bar.start()

    def update(self, t: float) -> None:
        self.bar.update(self.task, completed=(t - self.t0) / self.length)

    def close(self) -> None:
        self.bar.stop()
