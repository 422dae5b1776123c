"""What happens at one instant: several events at once, resets, and where the motion goes then.

Zeros of events that lie closer together than they can be located belong to one instant. Its
events are handled in the order of the list, round after round, each reset seeing the state that
the one before has left, until none is pending. Whether one is pending is told by the side of its
surface g = 0 that it came from and by the sign of ġ along the motion (of g̈ where ġ vanishes):

* back to where it came from: it *leaves*, as a ball that bounces;
* on, in the sense in which it came: the motion goes *through* the surface, and the event has
  happened. If its own reset has changed ġ and left it its sign (a bullet and a sheet of paper, but
  also a ball that a rising table catches up with), the solution's message says so;
* into the surface again, because the reset of another event has turned ġ round, or because ġ
  vanishes and g̈ leads there: it *enters*, and the event happens again;
* g stays zero to second order: nothing happens.

A reset that carries the g of another event with a direction and a reset, or of a transition, across
zero in that direction makes it happen, too. An event that enters again, and whose reset then
changes nothing, *holds* the state on its surface: f would pull it through, so the run ends with
``Status.HELD``, and goes on along the surface in a mode of its own (``hybrid.holding``).

Rates are exact where f and g are traced, else they are differences along the motion. Where y' is
not known (a singular mass matrix) every event of the instant happens once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...hybrid import AfterReset, Transition
from ...hybrid.holding import why_not_held
from ...problem import IVP
from ...stepping.state import Status
from ...stepping.stepper import Stepper
from .events import Occurrence, Tracker

__all__ = ["EPS", "ROUNDING", "Instant", "Motion"]

EPS = float(np.finfo(float).eps)
ROUNDING = 16 * EPS  # how well times are known, relative to t and to the step
FIXED_WINDOW = 1e-9  # zeros within this part of a fixed step belong together, else rtol of the step
DIFFERENCE = 1e-5  # of the time in which the state changes by its own size
LONGEST_DIFFERENCE = 1e-3  # of the interval
LONGEST_LOOK = 40  # steps, each twice as long as the one before
UNSEEN = 1e-6  # of a gradient: what differences leave of a direction that g does not depend on
SAME_RATE = 1e-9  # rates that agree to this are those of one motion
LARGEST_DENSE = 200  # rows of a mass matrix whose singular values are looked at
MOST_ROUNDS = 1_000  # through the list of events, at one instant


class Motion:
    """Rates of event functions along the motion, in the sense in which it is integrated."""

    def __init__(self, engine: Stepper, ivp: IVP, tracker: Tracker) -> None:
        self.engine, self.ivp, self.tracker = engine, ivp, tracker
        t0, t1 = ivp.t_span
        self.length = abs(t1 - t0)
        self.forward = 1.0 if t1 >= t0 else -1.0

    @cached_property
    def _mass(self) -> _Mass | None:
        mass = self.engine.problem.mass
        return None if mass is None else _Mass(mass)

    def slope(self, t: float, y: NDArray[Any]) -> NDArray[Any] | None:
        """±y', or None where f does not tell it."""
        slope = self.engine.slope(t, y)
        if slope.shape != y.shape:  # a tangent vector; f is y' in the space around the manifold
            slope = self.ivp.rhs(t, y)
        if self._mass is not None:
            if not self._mass.is_regular:
                return None
            slope = self._mass.divide(slope)
        return self.forward * slope if np.all(np.isfinite(slope)) else None

    def felt(self, k: int, t: float, y: NDArray[Any]) -> NDArray[Any] | None:
        """±y' as far as event k depends on it; None where that is not known.

        A singular mass matrix leaves y' open in some directions, which many events do not see: the
        clock of a sampled controller, say.
        """
        slope = self.slope(t, y)
        if slope is not None or self._mass is None or y.dtype.kind != "f":
            return slope
        gradient = self._gradient(k, t, y)
        if np.max(np.abs(self._mass.left_open(gradient))) > UNSEEN * np.max(np.abs(gradient)):
            return None
        slope = self._mass.divide(self.engine.slope(t, y))
        return self.forward * slope if np.all(np.isfinite(slope)) else None

    def rate(self, k: int, t: float, y: NDArray[Any], slope: NDArray[Any]) -> tuple[float, float]:
        """Rate of event k along the motion, and how far it may be wrong."""
        g: Any = self.ivp.events[k].function
        if hasattr(g, "time_derivative") and y.dtype.kind == "f":
            p = (self.ivp.params,) if g.k else ()
            gradient = np.ravel(g.jacobian()(t, y, *p))
            own = self.forward * float(np.ravel(g.time_derivative()(t, y, *p))[0])
            terms = gradient * slope
            return float(np.sum(terms)) + own, ROUNDING * float(np.sum(np.abs(terms)) + abs(own))
        delta, value = self._difference(y, slope), self.tracker.value

        def quotient(s: float) -> float:
            ahead = (value(k, t + self.forward * j * s, y + j * s * slope) for j in (0, 1, 2))
            here, near, far = ahead
            return (4 * near - 3 * here - far) / (2 * s)

        coarse, fine = quotient(delta), quotient(delta / 2)
        return fine, 3 * abs(coarse - fine)

    def heading(self, k: int, t: float, y: NDArray[Any], slope: NDArray[Any]) -> int:
        """Sign of g just after t, if it vanishes there: of its rate, or of the rate's rate."""
        rate, doubt = self.rate(k, t, y, slope)
        if abs(rate) > doubt:
            return int(np.sign(rate))
        delta = self._difference(y, slope)
        there, then = t + self.forward * delta, y + delta * slope
        slope_then = self.slope(there, then)
        if slope_then is None:
            return 0
        later, more_doubt = self.rate(k, there, then, slope_then)
        change = later - rate
        return int(np.sign(change)) if abs(change) > doubt + more_doubt else 0

    def blur(self, k: int, t: float, y: NDArray[Any], rtol: float, atol: Any = 0.0) -> float:
        """How far g may be off if each component is by atol + rtol |y|: Σ |∂g/∂yᵢ| times that."""
        if y.dtype.kind != "f":
            return 0.0
        allowed = np.asarray(atol) if np.size(atol) in (1, y.size) else np.min(atol)
        return float(np.abs(self._gradient(k, t, y)) @ (allowed + rtol * np.abs(y)))

    def _gradient(self, k: int, t: float, y: NDArray[Any]) -> NDArray[Any]:
        g: Any = self.ivp.events[k].function
        if hasattr(g, "time_derivative"):
            return np.ravel(g.jacobian()(t, y, *((self.ivp.params,) if g.k else ())))
        here, found = self.tracker.value(k, t, y), np.zeros(y.size)
        least = 1e-3 * float(np.max(np.abs(y))) or 1e-3
        for i in range(y.size):
            moved = y.copy()
            moved[i] += 1e-6 * max(abs(float(y[i])), least)
            found[i] = (self.tracker.value(k, t, moved) - here) / (moved[i] - y[i])
        return found

    def ahead(self, k: int, t: float, y: NDArray[Any], beyond: float) -> tuple[int, float]:
        """Sign of g once |g| is beyond a bound, and when; (0, t) if it stays within.

        The motion is followed by classical Runge–Kutta steps that grow from very short ones.
        """
        slope = self.slope(t, y)
        assert slope is not None
        h = self._difference(y, slope) / 16
        for _ in range(LONGEST_LOOK):
            step, here = self.forward * h, slope
            stages = [here]
            for part in (0.5, 0.5, 1.0):
                stage = self.slope(t + part * step, y + part * h * stages[-1])
                if stage is None:
                    return 0, t
                stages.append(stage)
            y = y + h / 6 * (stages[0] + 2 * stages[1] + 2 * stages[2] + stages[3])
            t += step
            g = self.tracker.value(k, t, y)
            if abs(g) > beyond:
                return int(np.sign(g)), t
            following = self.slope(t, y)
            if following is None or h > LONGEST_DIFFERENCE * self.length:
                return 0, t
            slope, h = following, 2 * h
        return 0, t

    def _difference(self, y: NDArray[Any], slope: NDArray[Any]) -> float:
        """Time in which the state changes a little."""
        size, speed = float(np.max(np.abs(y))), float(np.max(np.abs(slope)))
        longest = LONGEST_DIFFERENCE * self.length
        little = DIFFERENCE * size / speed if size * speed > 0 else DIFFERENCE * longest
        return max(EPS * self.length, min(little, longest))


class Instant:
    """The events of one instant.

    Parameters
    ----------
    tracker, motion
        The events of the run, and their rates.
    t, y
        Time, and the state before anything has happened.
    h
        Length of the step in which it lies.
    found
        Zeros in that step from this instant on, in order of time; those that belong to it are
        taken.
    has_past
        Whether there was a motion before; not at the start of a run.
    recorded
        Zeros before it that were recorded and changed nothing; at the same time but for rounding,
        they have happened here.

    Attributes
    ----------
    y
        The state after the instant.
    changed
        Whether there was a reset.
    status, message, ended_by
        How the run ends here, if it does, and the number of the event that ends it.
    remark
        What may not be what was meant, but is no failure.
    """

    def __init__(
        self,
        tracker: Tracker,
        motion: Motion,
        t: float,
        y: NDArray[Any],
        h: float,
        found: Sequence[Occurrence],
        has_past: bool = True,
        recorded: Sequence[Occurrence] = (),
    ) -> None:
        self.has_past = has_past
        self.tracker, self.motion, self.t, self.y = tracker, motion, t, y
        self.events = motion.ivp.events
        options = motion.engine.options
        self.rounding = ROUNDING * max(abs(t), abs(h))
        part = FIXED_WINDOW if options.fixed else options.rtol
        self.window = max(part * abs(h), self.rounding)
        self.came_from: dict[int, float] = {}
        self.late: set[int] = set()  # their zeros are a little later
        for occurrence in found:
            delay, k = abs(occurrence.t - t), occurrence.event
            if delay <= self._reach(k) and k not in self.came_from:
                self.came_from[k] = occurrence.side
                if delay > self.rounding:
                    self.late.add(k)
        self.happened: set[int] = set()
        for occurrence in recorded:
            if abs(occurrence.t - t) <= self.rounding:
                self.came_from[occurrence.event] = occurrence.side
                self.happened.add(occurrence.event)
        self.through: set[int] = set()
        self.changed = False
        self.status: Status | None = None
        self.ended_by: int | None = None
        self.message = self.remark = ""

    def _reach(self, k: int) -> float:
        """Within what time an event belongs here; one without reset is found by itself later."""
        return self.rounding if self.events[k].reset is None else self.window

    def resolve(self) -> None:
        """Let everything happen that is due, and tell the tracker where it stands then."""
        self.slope = self.motion.slope(self.t, self.y) if self._has_resets() else None
        self.y_before, self.slope_before = self.y, self.slope
        self.start = np.array([self._value(k) for k in range(len(self.events))])
        # What counts as zero, but for the present rates, of events that were found here; others may
        # be carried here from anywhere by a reset.
        self.slack = np.zeros(len(self.events))
        for k in self.came_from:
            self.slack[k] = 4 * abs(self.start[k])
            if self.slope is not None:
                rate, _ = self.motion.rate(k, self.t, self.y, self.slope)
                self.slack[k] += self.window * abs(rate)
        ended: int | None = None
        for _ in range(MOST_ROUNDS):
            due = False
            for k in range(len(self.events)):
                if self._is_due(k):
                    due = True
                    if self._happens(k) and ended is None:
                        ended = k
                    if self.status is not None:
                        break
            if not due or self.status is not None:
                break
        else:
            self.status = Status.ZENO
            self.message = (
                f"the events at t = {self.t:.9g} do not come to an end: after {MOST_ROUNDS} rounds "
                f"{self._names()} are still due; look at what their resets do to each other"
            )
        self._settle()
        if ended is None and self.changed:
            ended = next((k for k, e in enumerate(self.events) if isinstance(e, AfterReset)), None)
        if ended is not None and self.status is None:
            self.status, self.ended_by = Status.EVENT, ended
            self.message = f"stopped by event {self.tracker.label(ended)} at t = {self.t:.9g}"

    def _has_resets(self) -> bool:
        return any(self.events[k].reset is not None for k in self.came_from)

    def _names(self) -> str:
        return ", ".join(self.tracker.label(k) for k in sorted(self.happened))

    def _value(self, k: int) -> float:
        return self.tracker.value(k, self.t, self.y)

    def _is_due(self, k: int) -> bool:
        """Whether event k is still to happen, or to happen again."""
        event, first = self.events[k], k not in self.happened
        found = k in self.came_from
        if found and first and (event.reset is None or not self.changed):
            return True
        if not self.changed or k in self.through or (event.reset is None and not first):
            return False
        side = self._side(k)
        if side == 0 or (event.reset is None and not event.terminal):
            return False
        g = self._value(k) * side
        heading = self._heading(k)
        if heading is None:  # no rates: all that were found happen once
            return found and first and g <= self.slack[k]
        if abs(g) <= self._tolerance(k):
            return heading * side < 0 or (found and first and heading == 0)
        acts = event.reset is not None or isinstance(event, Transition)
        return g < 0 and first and (found or acts)

    def _side(self, k: int) -> float:
        """Side of its surface that an event comes from; 0 if that is not known."""
        if k in self.came_from:
            return self.came_from[k]
        side = -np.sign(self.events[k].direction)
        if self.start[k] * side < 0:
            return 0.0
        if self.has_past and self.slope_before is not None:  # does it arrive from beyond?
            rate, doubt = self.motion.rate(k, self.t, self.y_before, self.slope_before)
            if rate * side > doubt and abs(self.start[k]) <= rate * side * self.window:
                return 0.0
        return float(side)

    def _tolerance(self, k: int) -> float:
        """|g| that counts as on the surface."""
        assert self.slope is not None
        rate, _ = self.motion.rate(k, self.t, self.y, self.slope)
        return max(self.slack[k] if k in self.came_from else 0.0, abs(rate) * self._reach(k))

    def _heading(self, k: int) -> int | None:
        if self.slope is None:
            return None
        return self.motion.heading(k, self.t, self.y, self.slope)

    def _happens(self, k: int) -> bool:
        """Record an event and apply its reset; True if it ends the run."""
        self.happened.add(k)
        self.came_from.setdefault(k, self._side(k))
        if self.tracker.record(Occurrence(k, self.t, self.y.copy(), self.came_from[k])):
            return True
        reset = self.events[k].reset
        if reset is None:
            return False
        before, slope_before = self.y, self.slope
        try:
            self.y = self._reset(k, reset)
        except Exception as error:  # the run itself is at the end of the step by now
            error.add_note(f"in event {self.tracker.label(k)} at t = {self.t:.9g}")
            raise
        self.changed = True
        self.slope = self.motion.slope(self.t, self.y)
        if slope_before is None or self.slope is None:
            return False
        if self._heading(k) != -self.came_from[k] or abs(self._value(k)) > self._tolerance(k):
            return False
        earlier, _ = self.motion.rate(k, self.t, before, slope_before)
        rate, doubt = self.motion.rate(k, self.t, self.y, self.slope)
        if abs(rate) > doubt:
            if rate * earlier > 0:  # else the reset itself has turned the motion into the surface
                self.through.add(k)
            if k in self.through and abs(rate - earlier) > SAME_RATE * abs(rate) + doubt:
                self.remark = (
                    "the motion went on through the surface of event "
                    f"{self.tracker.label(k)} after its reset at t = {self.t:.9g}"
                )
        elif np.array_equal(before, self.y):
            self._held(k)
        return False

    def _reset(self, k: int, reset: Any) -> NDArray[Any]:
        ivp = self.motion.ivp
        value = ivp.bind(reset)(self.t, self.y.copy())
        label = self.tracker.label(k)
        if value is None:
            raise TypeError(
                f"the reset of event {label} returned None; expected the new state, {ivp.n} "
                "numbers (is a return statement missing? changing y in place is not enough)"
            )
        y = np.array(value, dtype=ivp.y0.dtype)
        if y.shape != ivp.y0.shape or not np.all(np.isfinite(y)):
            raise ValueError(
                f"the reset of event {label} returned {value!r}; expected {ivp.n} finite numbers"
            )
        return y

    def _held(self, k: int) -> None:
        self.tracker.take_back(k)
        self.status, self.ended_by = Status.HELD, k
        why = why_not_held(self.motion.ivp) or "its reset does not keep the state there"
        self.message = (
            f"event {self.tracker.label(k)} holds the state on its surface at t = {self.t:.9g}: "
            "the motion leads into the surface, and the reset changes nothing any more, but the "
            f"run cannot go on along the surface, since {why}. Otherwise let f stop at the surface "
            "(no acceleration into it while the event's g = 0), let the reset put the state off "
            "the surface, or make the event terminal"
        )

    def _moved(self, k: int) -> float:
        """How far g may move because a reset makes the state consistent, whatever else it does."""
        complete = getattr(self.motion.ivp, "complete", None)
        if complete is None:
            return 0.0
        g = self.tracker.value(k, self.t, complete(self.t, self.y_before))
        return 4 * abs(g) + ROUNDING * float(np.max(np.abs(self.y_before)))

    def _settle(self) -> None:
        """Tell the tracker on which side of each event the motion is from here on."""
        tracker = self.tracker
        for k in range(len(self.events)):
            g = self._value(k)
            tracker.values[k], tracker.departs[k], tracker.quiet_until[k] = g, 0.0, self.t
            tracker.echo[k] = 0.0
            if k not in self.happened:
                continue
            onwards = self.slope is None or (self._heading(k) or 0) * self.came_from[k] < 0
            if self.changed and onwards and 0.0 < g * self.came_from[k] <= self._moved(k):
                tracker.echo[k] = self._moved(k)
                continue
            if not self.changed or self.slope is None:
                tracker.values[k] = 0.0 if abs(g) <= self.slack[k] or not self.changed else g
            elif abs(g) <= self._tolerance(k):
                heading = self._heading(k) or 0
                if k not in self.late or g * heading <= 0:
                    tracker.values[k], tracker.departs[k] = 0.0, heading
                if k in self.late and k in self.through:  # its zero is still to come
                    tracker.quiet_until[k] = self.t + 2 * self.motion.forward * self.window


class _Mass:
    """A mass matrix without its empty rows and columns, which are most of a large singular one."""

    def __init__(self, mass: Any) -> None:
        mass = mass.tocsr() if hasattr(mass, "tocsr") else np.asarray(mass)
        sizes = abs(mass)
        self.n = mass.shape[0]
        self.rows, self.columns = (
            np.flatnonzero(np.asarray(sizes.sum(axis=axis)).ravel()) for axis in (1, 0)
        )
        self.lu: Any = None
        self.inverse: Any = None
        self.open = np.zeros((0, self.columns.size))
        inner = mass[self.rows][:, self.columns]
        if hasattr(mass, "tocsc") and inner.shape[0] == inner.shape[1] > LARGEST_DENSE:
            from scipy.sparse.linalg import splu

            with contextlib.suppress(RuntimeError):  # exactly singular
                self.lu = splu(inner.tocsc())
                return
        dense = inner.toarray() if hasattr(inner, "toarray") else inner
        rank = int(np.linalg.matrix_rank(dense)) if dense.size else 0
        self.open = np.linalg.svd(dense)[2][rank:] if rank < self.columns.size else self.open
        self.inverse = np.linalg.pinv(dense)

    @property
    def is_regular(self) -> bool:
        """Whether y' follows from f."""
        return self.columns.size == self.n and not len(self.open)

    def divide(self, slope: NDArray[Any]) -> NDArray[Any]:
        """Return M⁻¹ f, or the shortest y' with M y' = f."""
        out = np.zeros_like(slope)
        right = slope[self.rows]
        out[self.columns] = self.inverse @ right if self.lu is None else self.lu.solve(right)
        return out

    def left_open(self, gradient: NDArray[Any]) -> NDArray[Any]:
        """Return the parts of a gradient in the directions that M does not see."""
        empty = np.delete(gradient, self.columns)
        return np.concatenate([empty, self.open @ gradient[self.columns], [0.0]])
