"""One run through the modes of a hybrid problem: a run in each, and one Solution out of them.

Each stay in a mode is a run of its own, with the mode's problem from the state in which it was
entered; an event of the mode, a :class:`~integrators.hybrid.Transition`, ends it. What happens at
that instant (other events, resets, a start that is at a surface already) is the business of
``instants``. A new mode starts with a step of its own: nothing is known of its motion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import IntegrationInterrupted
from ...hybrid import Hybrid, Mode, Resumed, Transition
from ...hybrid.holding import Holding
from ...hybrid.modes import zeno_target
from ...problem import IVP, Event
from ...stepping.limits import attempts
from ...stepping.state import Status
from ..instants.zeno import accumulates, limit
from ..run import _joined, _Progress
from ..solution import Solution
from ..solution_file import COUNTERS
from .modes import ModeInterval
from .pieces import bridge, joined_output, padded

__all__ = ["HybridRun"]

AFTER_THE_END = 1e-3  # part of the interval, to see where a motion leads from its end
MOST_AT_ONCE = 300  # transitions at one instant


class HybridRun:
    """A run of one hybrid problem.

    Parameters
    ----------
    hybrid
        The problem.
    solve
        ``solve(ivp, **options)`` runs one mode.
    options
        Those of ``solve`` for the whole run.
    begun
        What is known of the first stay, if it has been done already.
    """

    def __init__(
        self,
        hybrid: Hybrid,
        solve: Callable[..., Solution],
        options: Mapping[str, Any],
        begun: Solution | None = None,
    ) -> None:
        self.hybrid, self.solve, self.options, self.begun = hybrid, solve, dict(options), begun
        times = self.options.pop("t_eval")
        self.times = None if times is None else np.array(times, dtype=np.float64, ndmin=1)
        self.first_step = self.options.pop("first_step")
        self.most = self.options.pop("max_steps")
        self.reporter = _Progress(*hybrid.t_span) if self.options.pop("progress") else None
        self.dense = bool(self.options["dense_output"])
        self.parts: list[Solution] = []
        self.bridges: dict[int, Solution] = {}  # after so many parts
        self.stays: list[ModeInterval] = []
        self.records: dict[tuple[Any, int], _Record] = {}
        for k, event in enumerate(hybrid.events):
            self.records[None, k] = _Record(None, event, k)
        self.entries: dict[Any, tuple[list[float], list[NDArray[Any]]]] = {}
        self.transitions = self.at_once = 0
        self.spent = 0
        self.remarks: list[str] = []
        self.exception: BaseException | None = None

    def run(self) -> Solution:
        """Run to the end and collect."""
        key, t, y = self.hybrid.start, self.hybrid.t_span[0], self.hybrid.y0
        try:
            while True:
                ended = self._stay(key, t, y)
                if isinstance(ended, _End):
                    return self._solution(ended)
                key, t, y = ended
        except KeyboardInterrupt as pressed:  # between two runs, or before the first step of one
            if not self.parts:
                raise
            return self._interrupted(pressed)
        finally:
            if self.reporter is not None:
                self.reporter.close()

    # ------------------------------------------------------------ one mode

    def _stay(self, key: Any, t: float, y: Any) -> Any:
        """Run in one mode; returns (key, t, y) of the next, or how the run ends."""
        first = not self.parts
        try:
            mode = self.hybrid.mode(key)
            ivp = mode.ivp(t, y, self.hybrid.t_span[1], self.hybrid.params)
            part = self._part(key, mode, ivp, first)
        except Exception as error:
            if first:
                raise
            self.exception = error
            return _End(
                Status.FUNCTION_RAISED,
                f"mode {key!r} could not be entered at t = {t:.9g}: {error}",
            )
        if self.reporter is not None and part.reached is not None:
            self.reporter.update(part.reached[0])
        if part.status == Status.INTERRUPTED or part.exception is not None:
            self.exception = part.exception
            return _End(part.status, part.ending)
        k = part.ended_by
        if part.status == Status.EVENT and k is not None and k >= len(self.hybrid.events):
            transition = self.watched[k]
            if isinstance(transition, Transition):
                return self._follow(key, ivp, part, transition)
        if part.status == Status.ZENO and part.zeno is not None:
            return self._beyond(key, mode, ivp, part.zeno, part.ending)
        if part.status == Status.HELD and k is not None and isinstance(self.hybrid, Holding):
            assert part.reached is not None
            held = self.hybrid.hold(key, k, *part.reached)
            if held is not None:
                return held, *part.reached
        place = None if k is None else self.places[k]
        where = "" if part.success or not self.hybrid.shows_transitions else f"in mode {key!r}: "
        return _End(part.status, where + part.ending, place, part.zeno)

    def _part(self, key: Any, mode: Mode, ivp: IVP, first: bool) -> Solution:
        """The run in one mode, entered in the books."""
        t = ivp.t_span[0]
        own = [(None, event) for event in self.hybrid.events]
        own += [(key, event) for event in (*ivp.events, *mode.transitions)]
        places = [(None, k) for k in range(len(self.hybrid.events))]
        places += [(key, k) for k in range(len(own) - len(places))]
        for place, (of, event) in zip(places, own):
            self.records.setdefault(place, _Record(of, event, place[1]))
        events = [self._resumed(self.records[place], first) for place in places]
        self.watched, self.places = [event for _, event in own], places
        options = {**self.options, **mode.options}
        options["first_step"] = self._first_step(options.pop("first_step", None), ivp, first)
        options["max_steps"] = max(1, self._left(options["step"]))
        if self.times is not None:
            options["t_eval"] = self.times[np.count_nonzero(self.times < t) :]
        try:
            part: Any = self.begun
            if part is None:
                part = self._taken_at_the_end(ivp.with_(events=events), mode, options)
            if part is None:
                part = self.solve(ivp.with_(events=events), on_interrupt="raise", **options)
            self.begun = None
        except IntegrationInterrupted as pressed:
            part = pressed.solution
            part.status, part.exception = Status.INTERRUPTED, pressed
        except Exception:
            raise
        except BaseException as stop:  # sys.exit and its like
            part = getattr(stop, "solution", None)
            if not isinstance(part, Solution):
                raise
            part.exception = stop
        self.spent += part.nsteps + part.nrejected
        for stay in part.modes:  # those of a mode itself: states that its events held
            if str(stay.mode).startswith("on "):
                held = f"the state was held {stay.mode} from t = {stay.start:.9g} on"
                self.remarks.append(f"in mode {key!r} {held}")
        self.parts.append(part)
        self.stays.append(ModeInterval.of(key, t, part))
        for place, times, states in zip(places, part.t_events, part.y_events):
            self.records[place].add(times, states)
        return part

    def _taken_at_the_end(self, ivp: IVP, mode: Mode, options: dict[str, Any]) -> Solution | None:
        """The run in a mode entered at the very end, if it is left at once; else None.

        Whether a transition is due depends on the motion, so the run is given some time.
        """
        t, end = ivp.t_span
        if t != end or not mode.transitions:
            return None
        length = end - self.hybrid.t_span[0] or 1.0
        trial = ivp.with_(t_span=(t, t + AFTER_THE_END * length))
        part = self.solve(trial, on_interrupt="raise", **{**options, "max_steps": 1, "tstops": ()})
        at_once = part.reached is not None and part.reached[0] == t
        return part if part.status == Status.EVENT and at_once else None

    def _left(self, step: float | None) -> int:
        """Attempts that are left."""
        return attempts(self.most, step is not None) - self.spent

    def _resumed(self, record: _Record, first: bool) -> Event:
        """An event as the run in this mode watches it: what was found earlier counts."""
        event = record.event
        if isinstance(event, Transition) or first:
            return event
        left = int(event.terminal) - record.count if event.terminal else 0
        return Resumed(event.function, event.direction, left, event.reset, event.name)

    def _first_step(self, own: float | None, ivp: IVP, first: bool) -> float | None:
        wanted = self.first_step if first and own is None else own
        length = ivp.t_span[1] - ivp.t_span[0]
        return wanted if wanted is None or first or length == 0 else min(wanted, length)

    # ------------------------------------------------------------ from mode to mode

    def _follow(self, key: Any, ivp: IVP, part: Solution, transition: Transition) -> Any:
        """Where a transition leads."""
        assert part.reached is not None
        t, y = part.reached
        try:
            following, state = transition.follow(ivp.bind, t, y)
            state = np.atleast_1d(np.asarray(state))
        except Exception as error:
            self.exception = error
            return _End(
                Status.FUNCTION_RAISED,
                f"the transition out of mode {key!r} at t = {t:.9g} raised {error!r}",
            )
        self.transitions += 1
        stay = self.stays[-1]
        self.at_once = self.at_once + 1 if stay.start == stay.end else 0
        if self.at_once >= MOST_AT_ONCE:
            return _End(
                Status.ZENO,
                f"the transitions at t = {t:.9g} do not come to an end: modes "
                f"{self._recent_modes()} hand the state to each other; a law that jumps at a "
                "surface and leads into it from both sides slides on it: integrators.Switch",
            )
        if self.transitions >= self.hybrid.max_transitions:
            return _End(
                Status.TOO_MANY_STEPS,
                f"gave up at t = {t:.9g} after max_transitions = {self.transitions} (the last "
                f"modes: {self._recent_modes()}); raise it in the Hybrid",
            )
        if self._left(self.options["step"]) < 1:
            return _End(
                Status.TOO_MANY_STEPS,
                f"gave up at t = {t:.9g} after max_steps = {self.spent} attempts in all modes; "
                "raise max_steps",
            )
        times, states = self.entries.setdefault(following, ([], []))
        if not states or states[-1].shape == state.shape:
            times.append(t)
            states.append(state)
            # At one instant it is an accumulation only where one is expected.
            expected = self.at_once == 0 or self._zeno(self.hybrid.mode(key)) is not None
            if expected and accumulates(times, self.hybrid.t_span[0]):
                return self._accumulated(following, t, times, states)
        else:
            self.entries[following] = ([t], [state])
        return following, t, state

    def _accumulated(self, key: Any, t: float, times: list[float], states: list[Any]) -> Any:
        """Transitions pile up at one time: go to the limit."""
        message = (
            f"transitions accumulate at t = {t:.9g} (Zeno): mode {key!r} was entered {len(times)} "
            "times, ever sooner"
        )
        mode, found = self.hybrid.mode(key), limit(times, states)
        if found is None:  # no series: it may be chatter, which no mode after Zeno stands for
            if not mode.judges_piles:
                return _End(
                    Status.ZENO,
                    f"transitions pile up at t = {t:.9g}: mode {key!r} was entered {len(times)} "
                    "times, and the times between do not shrink to a limit; a law that jumps at a "
                    "surface and leads into it from both sides slides on it: integrators.Switch",
                )
            found = t, states[-1]
        ivp = mode.ivp(t, states[-1], self.hybrid.t_span[1], self.hybrid.params)
        self.entries.clear()
        return self._beyond(key, mode, ivp, found, message, states[-1])

    def _beyond(
        self,
        key: Any,
        mode: Mode,
        ivp: IVP,
        found: tuple[float, NDArray[Any]],
        message: str,
        y: NDArray[Any] | None = None,
    ) -> Any:
        """Go on after infinitely many events in the mode declared for it, if there is one."""
        zeno = self._zeno(mode)
        if zeno is None:
            more = "; Mode(zeno=...) says in which mode the motion goes on"
            message += more if self.hybrid.shows_transitions else ""
            return _End(Status.ZENO, message, None, found)
        following, change = zeno_target(zeno)
        t_limit, y_limit = found
        t, last = self.stays[-1].end, self.parts[-1].reached
        assert last is not None
        y = last[1] if y is None else y
        t1 = self.hybrid.t_span[1]
        end = min(t_limit, t1)
        if end > t:
            y_end = y_limit if end == t_limit else y + (y_limit - y) * ((end - t) / (t_limit - t))
            self.bridges[len(self.parts)] = bridge(t, y, end, y_end, self.times)
            self.stays[-1] = self.stays[-1].until(end)
        self.remarks.append(
            f"events accumulate at t = {t_limit:.9g} (Zeno), where mode {following!r} follows"
        )
        self.transitions += 1
        try:
            state = y_limit if change is None else ivp.bind(change)(end, y_limit.copy())
        except Exception as error:
            self.exception = error
            return _End(Status.FUNCTION_RAISED, f"the map of zeno raised {error!r}")
        return following, end, np.atleast_1d(np.asarray(state))

    def _zeno(self, mode: Mode) -> Any:
        return self.hybrid.zeno if mode.zeno is None else mode.zeno

    def _recent_modes(self) -> str:
        recent = [stay.mode for stay in self.stays[-8:]]
        return ", ".join(dict.fromkeys(map(repr, recent)))

    # ------------------------------------------------------------ collecting

    def _interrupted(self, pressed: BaseException) -> Solution:
        self.exception = pressed
        return self._solution(
            _End(Status.INTERRUPTED, f"interrupted at t = {self.stays[-1].end:.9g}")
        )

    def _solution(self, end: _End) -> Solution:
        parts, n = [], max(stay.n for stay in self.stays)
        for k, part in enumerate(self.parts, 1):
            parts += [part, self.bridges[k]] if k in self.bridges else [part]
        shown = [(part.t, part.y) for part in parts]
        if self.times is not None:  # at a transition, the state after it
            for k, after in enumerate(parts[1:]):
                t, y = shown[k]
                if t.size and after.t.size and t[-1] == after.t[0]:
                    shown[k] = t[:-1], y[:, :-1]
        elif self.hybrid.continuous:
            shown[1:] = [(t[1:], y[:, 1:]) for t, y in shown[1:]]
        records = [
            record
            for (mode, _), record in self.records.items()
            if self.hybrid.shows_transitions or mode is None
        ]
        remarks = list(dict.fromkeys([*self.remarks, *self.hybrid.said]))
        ended_by = self.records.get(end.place) if end.place is not None else None
        sums = {name: sum(getattr(part, name) for part in parts) for name in COUNTERS}
        return Solution(
            _joined([t for t, _ in shown]),
            padded([y.T for _, y in shown], n).T,
            sol=joined_output([part.sol for part in parts], n) if self.dense else None,  # type: ignore
            h=_joined([part.h for part in parts]),
            t_events=[record.times() for record in records],
            y_events=[record.states() for record in records],
            event_names=[record.name for record in records],
            status=end.status,
            message="; ".join([end.message, *remarks[:3]]),
            ended_by=records.index(ended_by) if ended_by in records else None,
            zeno=end.zeno,
            reached=parts[-1].reached,
            error_estimate=parts[0].error_estimate,
            dense_order=min(part.dense_order for part in self.parts),
            problem=self.hybrid,
            exception=self.exception,
            modes=self.stays,
            parts=self.parts,
            phases=[phase for part in self.parts for phase in part.phases],
            **sums,
        )


@dataclass(frozen=True)
class _End:
    """How a run ends."""

    status: Status
    message: str
    place: tuple[Any, int] | None = None  # of the event that ends it
    zeno: tuple[float, NDArray[Any]] | None = None


class _Record:
    """The occurrences of one event, over all stays in its mode."""

    def __init__(self, mode: Any, event: Event, number: int) -> None:
        self.event = event
        self.name = (mode, event.name or number)
        self.t: list[NDArray[np.float64]] = []
        self.y: list[NDArray[Any]] = []
        self.count = 0

    def add(self, times: NDArray[np.float64], states: NDArray[Any]) -> None:
        self.count += len(times)
        if len(times):
            self.t.append(times)
            self.y.append(states)

    def times(self) -> NDArray[np.float64]:
        return np.concatenate(self.t) if self.t else np.zeros(0)

    def states(self) -> NDArray[Any]:
        return padded(self.y, max(part.shape[1] for part in self.y)) if self.y else np.zeros(0)
