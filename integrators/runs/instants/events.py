"""Events: zeros of functions g(t, y) along the solution.

Within each step the event functions are sampled on the dense output, so that two crossings in one
step, and a curve that only touches zero, are seen as well as a plain change of sign. Zeros are
then found on the dense output to near machine precision.

Conventions: a zero at the very start (t₀, or just after a reset) is where the event has been left,
not an occurrence, unless the motion leads into the surface of an event with a direction and a
reset. Several zeros in one step are handled in order of time, those of one instant together
(``integrators.runs.instants.instant``). After a reset nothing of the rest of the step is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import Event
from ...stepping import watch
from .zeno import LONGEST_MEMORY, accumulates

__all__ = ["Occurrence", "Tracker"]

SAMPLES = np.array(watch.SAMPLES)
# A step that starts on the event (a ball that has just bounced) may return to it very soon.
FROM_ZERO = np.array([0.0, 1e-8, 1e-6, 1e-4, 1e-2, 0.1, 0.25, 0.5, 0.75, 1.0])
EARLIEST = 1e-15  # part of a step below which a flight from the surface and back is not resolved
DIP = 1e-3  # a curve that changes by less than this part of itself does not reach zero nearby
TOUCH = 1e-10  # |g| below this fraction of its size in the step counts as touching zero


@dataclass(frozen=True)
class Occurrence:
    """One zero of one event, and the sign of g before it."""

    event: int
    t: float
    y: NDArray[Any]
    side: float


class Tracker:
    """Watches the events of one run.

    Parameters
    ----------
    events
        The events.
    bind
        Fills in the problem's parameters: ``bind(g)(t, y)``.
    t0, y0
        Where the run starts.
    """

    def __init__(
        self,
        events: Sequence[Event],
        bind: Callable[[Callable[..., Any]], Callable[..., Any]],
        t0: float,
        y0: NDArray[Any],
    ) -> None:
        self.events = events
        self.functions = [bind(event.function) for event in events]
        self.t: list[list[float]] = [[] for _ in events]
        self.y: list[list[NDArray[Any]]] = [[] for _ in events]
        self.t0 = t0
        self.reset_times: list[float] = []
        self.reset_states: deque[NDArray[Any]] = deque(maxlen=LONGEST_MEMORY)
        self.raised = [0.0] * len(events)
        self.values = np.array([self.value(k, t0, y0) for k in range(len(events))])
        self.departs = np.zeros(len(events))  # where g goes from a value of 0; 0: not known
        self.quiet_until = np.full(len(events), t0)  # zeros up to then have been dealt with
        # After a reset that made the state consistent, g may be a little before the zero again
        # that has just happened: |g| up to this is no new approach.
        self.echo = np.zeros(len(events))

    def value(self, k: int, t: float, y: NDArray[Any]) -> float:
        """g_k(t, y) as a float; says so if the function returns something else."""
        result = np.asarray(self.functions[k](t, y.copy()))
        if result.size != 1 or result.dtype.kind not in "iuf":
            raise TypeError(
                f"event {self.label(k)} returned {result!r}; expected one real number g(t, y) "
                "that passes through zero (y[0] - 0.5, not y[0] < 0.5)"
            )
        value = float(result.reshape(())) + self.raised[k]
        if np.isnan(value):
            raise ValueError(f"event {self.label(k)} is NaN at t = {t:.9g}")
        return value

    def raise_by(self, k: int, t: float, y: NDArray[Any], amount: float) -> None:
        """Look for zeros of g + amount from here on; (t, y) is where the motion is."""
        self.raised[k] = amount
        self.values[k] = self.value(k, t, y)

    def label(self, k: int) -> str:
        """Name of an event, or its number."""
        return repr(self.events[k].name) if self.events[k].name else f"number {k}"

    def find(
        self, t: float, end: float, state: Callable[[float], NDArray[Any]]
    ) -> list[Occurrence]:
        """All zeros in the step from t to its end, in order of time.

        ``state(θ)`` is the dense output, θ from 0 to 1.
        """
        found: list[Occurrence] = []
        h = end - t
        first_of = min if h > 0 else max

        def when(theta: float) -> float:  # t + (end − t) need not be the end, in double precision
            return end if theta == 1.0 else first_of(t + theta * h, end)

        for k in range(len(self.events)):

            def g(theta: float, k: int = k) -> float:
                return self.value(k, when(theta), state(theta))

            on_surface = self.values[k] == 0.0
            nodes = FROM_ZERO if on_surface else SAMPLES
            values = np.array([self.values[k], *(g(theta) for theta in nodes[1:])])
            zeros = _zeros(g, nodes, values, self.events[k].direction)
            if on_surface and values[1] * self.departs[k] < 0:  # it has been away and come back
                zeros += _return(g, nodes[1], self.departs[k], self.events[k].direction)
            for theta, side in self._without_echo(k, nodes, values, sorted(zeros)):
                if (when(theta) - self.quiet_until[k]) * h > 0 or self.quiet_until[k] == t:
                    found.append(Occurrence(k, when(theta), state(theta), side))
            self.values[k], self.departs[k] = float(values[-1]), 0.0
        return sorted(found, key=lambda occurrence: occurrence.t * np.sign(h))

    def _without_echo(
        self,
        k: int,
        nodes: NDArray[Any],
        values: NDArray[Any],
        zeros: list[tuple[float, float]],
    ) -> list[tuple[float, float]]:
        """Zeros of a step without the one that has already happened; see ``echo``."""
        if self.echo[k] == 0.0:
            return zeros
        near = np.abs(values) <= self.echo[k]
        if zeros and near[nodes < zeros[0][0]].all():
            zeros = zeros[1:]
            self.echo[k] = 0.0
        elif not near.all():
            self.echo[k] = 0.0
        return zeros

    def acts(self, k: int) -> bool:
        """Whether the next occurrence of an event changes the state or ends the run."""
        terminal = self.events[k].terminal
        ends = bool(terminal) and len(self.t[k]) + 1 >= int(terminal)
        return ends or self.events[k].reset is not None

    def record(self, occurrence: Occurrence) -> bool:
        """Keep an occurrence; True if it ends the run."""
        k = occurrence.event
        self.t[k].append(occurrence.t)
        self.y[k].append(occurrence.y)
        terminal = self.events[k].terminal
        return bool(terminal) and len(self.t[k]) >= int(terminal)

    def take_back(self, k: int) -> None:
        """Forget the last occurrence of an event if it is a repetition at the same time."""
        if len(self.t[k]) > 1 and self.t[k][-1] == self.t[k][-2]:
            del self.t[k][-1], self.y[k][-1]

    def note_reset(self, t: float, y: NDArray[Any]) -> float | None:
        """Note an instant with resets; returns the time since the last one, None for the first."""
        gap = abs(t - self.reset_times[-1]) if self.reset_times else None
        self.reset_times.append(t)
        self.reset_states.append(y.copy())
        return gap

    def accumulates(self) -> bool:
        """Whether the resets pile up at one time (Zeno)."""
        return accumulates(self.reset_times, self.t0)


def _zeros(
    g: Callable[[float], float], samples: NDArray[Any], values: NDArray[Any], direction: float
) -> list[tuple[float, float]]:
    """Zeros θ in (0, 1] between the samples, each with the sign of g before it.

    `direction` is in the sense of growing θ.
    """
    zeros: list[tuple[float, float]] = []
    size = float(np.max(np.abs(values)))
    if not np.isfinite(size):
        return zeros
    nodes: list[tuple[float, float]] = [(float(s), float(v)) for s, v in zip(samples, values)]
    for a, b, here in _dips(samples, values):
        theta, dip = _closest(g, a, b, np.sign(here))
        if dip * here < 0:
            nodes.append((theta, dip))
        elif abs(dip) <= TOUCH * size and direction == 0:
            zeros.append((theta, float(np.sign(here))))
    nodes.sort()
    for (a, value_a), (b, value_b) in pairwise(nodes):
        side = float(np.sign(value_a))
        if value_b == 0.0 and value_a != 0.0:
            if _wanted(-value_a, direction):
                zeros.append((b, side))
        elif side * value_b < 0 and _wanted(value_b, direction):
            zeros.append((_root(g, a, b, side), side))
    return sorted(zeros)


def _may_reach_zero(nodes: NDArray[Any], sizes: NDArray[Any]) -> bool:
    """Whether a curve through three values, the middle one least, may come near zero between them.

    A function that is constant but for rounding has a dip in nearly every step, and none that is
    worth a search.
    """
    left, right = nodes[1] - nodes[0], nodes[2] - nodes[1]
    fall, rise = (sizes[0] - sizes[1]) / left, (sizes[2] - sizes[1]) / right
    return bool(max(fall, rise) * max(left, right) > DIP * sizes[1])


def _dips(samples: NDArray[Any], values: NDArray[Any]) -> Iterator[tuple[float, float, float]]:
    """Intervals in which g turns back from zero between samples on one side, and a value there."""
    if watch.flat(values):
        return
    for i in range(1, len(samples) - 1):
        before, here, after = values[i - 1 : i + 2]
        same_side = before * here > 0 and here * after > 0
        turns = same_side and abs(here) <= min(abs(before), abs(after))
        if turns and _may_reach_zero(samples[i - 1 : i + 2], np.abs(values[i - 1 : i + 2])):
            yield float(samples[i - 1]), float(samples[i + 1]), float(here)
    # Before the second sample and after the last but one, as the slopes at the ends tell.
    if len(samples) == len(SAMPLES) and values[0] * values[1] > 0 and watch.dips(*values):
        yield float(samples[0]), float(samples[1]), float(values[0])
    if values[-1] * values[-2] > 0 and len(samples) == len(SAMPLES) and watch.dips(*values[::-1]):
        yield float(samples[-2]), float(samples[-1]), float(values[-1])


def _return(
    g: Callable[[float], float], b: float, side: float, direction: float
) -> list[tuple[float, float]]:
    """Zero before θ = b of a g that has left 0 for one side and is on the other at b."""
    if not _wanted(-side, direction):
        return []
    while b > EARLIEST:
        a = b / 2
        if g(a) * side > 0:
            return [(_root(g, a, b, side), side)]
        b = a
    return [(0.0, side)]  # too short a flight to be seen


def _wanted(sign_after: float, direction: float) -> bool:
    return direction == 0 or sign_after * direction > 0


def _root(g: Callable[[float], float], a: float, b: float, side: float) -> float:
    """Zero between a, where g was found to have the sign `side`, and b on the other side."""
    from scipy.optimize import brentq

    if g(a) * side <= 0:  # a projection after the step before has carried g across zero
        return a
    return float(brentq(g, a, b, xtol=1e-16, rtol=4 * np.finfo(float).eps, maxiter=200))


def _closest(g: Callable[[float], float], a: float, b: float, sign: float) -> tuple[float, float]:
    """Where sign·g is smallest between a and b."""
    from scipy.optimize import minimize_scalar

    best = minimize_scalar(
        lambda theta: sign * g(theta), bounds=(a, b), method="bounded", options={"xatol": 1e-9}
    )
    return float(best.x), g(float(best.x))
