"""What happens at the start of a run, and where a mode is entered: events that are due at once.

Conventions: a zero at the very start is where an event has been left, not an occurrence. Exceptions
are events with a direction and a reset, which happen if the motion leads into their surface, and
transitions that are guards, which are taken if g is beyond their surface or about to be. A mode is
often entered on the surface of one of its transitions, known only to the accuracy of the run, with
a speed that ought to vanish (a body that leaves the floor because the force has vanished has no
distance, no speed and no acceleration there). Then the motion is followed for a moment: where g
gets to, once it is beyond what errors explain, is what counts.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...hybrid import Exit, Resumed, Transition
from ...problem import Event
from .events import Occurrence, Tracker
from .instant import EPS, ROUNDING, Instant, Motion

__all__ = ["at_the_start"]

CLEAR = 1e3  # rates that carry g so far beyond its errors, while the state changes, are trusted
OUT = 4.0  # times its errors |g| must be to count


def at_the_start(
    tracker: Tracker, motion: Motion, t: float, y: NDArray[Any]
) -> tuple[Instant | None, str]:
    """The instant of a start on a surface, if anything is due there, and a remark."""
    start = _Start(tracker, motion, t, y)
    for k, event in enumerate(motion.ivp.events):
        if isinstance(event, Exit):
            start.leave(k, event)
        elif isinstance(event, Transition) and event.at_entry and event.direction:
            start.guard(k)
        elif isinstance(event, Transition) and not event.near_at_entry(t, y):
            continue
        elif event.reset is not None or isinstance(event, Transition | Resumed):
            start.on_surface(k, event)
    if not start.due:
        return None, start.remark
    due = [Occurrence(k, t, y, start.side(k)) for k in start.due]
    return Instant(tracker, motion, t, y.copy(), motion.length * EPS, due, False), start.remark


class _Start:
    """The state in which a run starts, as its events see it."""

    def __init__(self, tracker: Tracker, motion: Motion, t: float, y: NDArray[Any]) -> None:
        self.tracker, self.motion, self.t, self.y = tracker, motion, t, y
        self.rounding = ROUNDING * max(abs(t), motion.length)
        self.due: list[int] = []
        self.remark = ""

    @cached_property
    def slope(self) -> NDArray[Any] | None:
        """±y' at the start, if it is known."""
        return self.motion.slope(self.t, self.y)

    def side(self, k: int) -> float:
        """Side of its surface that an event comes from; 0 for both."""
        return float(-np.sign(self.motion.ivp.events[k].direction))

    def _rate(self, k: int) -> float:
        slope = self.motion.felt(k, self.t, self.y)
        return 0.0 if slope is None else self.motion.rate(k, self.t, self.y, slope)[0]

    def _rounding(self, k: int) -> float:
        """What |g| may be by rounding."""
        blur = self.motion.blur(k, self.t, self.y, ROUNDING)
        return max(self.rounding * abs(self._rate(k)), blur)

    def _errors_of_rate(self, k: int, rate: float) -> float:
        """How far ġ may be off by the errors of the state that the tolerances allow."""
        motion, options, y = self.motion, self.motion.engine.options, self.y
        if y.dtype.kind != "f":
            return np.inf
        atol = options.atol if np.size(options.atol) == y.size else np.min(options.atol)
        allowed = np.broadcast_to(atol, y.shape) + options.rtol * np.abs(y)
        total = 0.0
        for i in range(y.size):
            moved = y.copy()
            moved[i] += 1e-6 * max(abs(float(y[i])), 1e-3 * float(np.max(np.abs(y))) or 1e-3)
            slope = motion.slope(self.t, moved)
            if slope is None:
                return np.inf
            change = motion.rate(k, self.t, moved, slope)[0] - rate
            total += abs(change / (moved[i] - y[i])) * float(allowed[i])
        return total

    def leave(self, k: int, event: Exit) -> None:
        """A transition out of a mode that was entered on the right side."""
        floor = self._rounding(k) if event.floor is None else event.floor
        self.tracker.raise_by(k, self.t, self.y, self.side(k) * floor)
        if self.tracker.values[k] * self.side(k) < 0:
            self.due.append(k)

    def guard(self, k: int) -> None:
        """A transition that is taken at once if g is beyond its surface, or about to be."""
        tracker, motion, side = self.tracker, self.motion, self.side(k)
        options = motion.engine.options
        inside = float(tracker.values[k]) * side
        errors = motion.blur(k, self.t, self.y, options.rtol, options.atol)
        rounding = self._rounding(k)
        if abs(inside) > max(errors, rounding):
            if inside < 0:
                self.due.append(k)
            return
        if self.slope is None:
            return
        rate = self._rate(k)
        size, speed = np.max(np.abs(self.y)), np.max(np.abs(self.slope))
        time = min(motion.length, size / speed) if size * speed > 0 else motion.length
        if abs(rate) * time > CLEAR * errors or abs(rate) > OUT * self._errors_of_rate(k, rate):
            heading, when = int(np.sign(rate)), self.t
        else:
            heading, when = motion.ahead(k, self.t, self.y, OUT * max(errors, abs(inside)))
        if abs(inside) <= rounding:
            tracker.values[k], tracker.departs[k] = 0.0, heading
        if heading * side < 0:
            if inside <= rounding or when != self.t:
                self.due.append(k)
        elif when != self.t:  # zeros up to then are errors
            tracker.quiet_until[k] = when

    def on_surface(self, k: int, event: Event) -> None:
        """An event with a reset, or of a run that goes on, whose g vanishes here."""
        tracker = self.tracker
        slope = self.motion.felt(k, self.t, self.y)
        if slope is None or abs(tracker.values[k]) > self._rounding(k):
            return
        heading = self.motion.heading(k, self.t, self.y, slope)
        tracker.values[k], tracker.departs[k] = 0.0, heading
        if event.reset is None:
            return
        if self.side(k) * heading < 0:
            self.due.append(k)
        elif self.side(k) == 0 and heading != 0:
            self.remark = (
                f"the run starts on the surface of event {tracker.label(k)} and leaves it to the "
                f"side where g {'>' if heading > 0 else '<'} 0; its reset was not applied, since "
                "it has no direction"
            )
