"""What a run should keep, and how far it drifted: invariants, constraints, the books of energy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["Watch", "samples", "watched_invariants", "watches_of"]

Array = NDArray[np.float64]

#: States of a run that are looked at.
SAMPLES = 64

#: Parts of a run between jumps that are looked at.
MOST_PARTS_WATCHED = 32

#: Drift, in tolerances, that good runs stay below: local errors add up, and this is
#: the most that is usual for a method that just holds its tolerance.
PROPORTION = 10.0

#: Drift, in parts of the scale, that is told at any tolerance.
ALWAYS = 5e-3

#: The same for fixed steps, with which nobody says how many digits are wanted: four.
FIXED = 1e-4

#: Drift that is rounding, in parts of a scale …
ROUNDING = 1e-12
#: … and in parts of the quantity itself: errors of the sums that it is.
SUMMED = 1e-13


@dataclass(frozen=True)
class Watch:
    """One thing that should not drift.

    Attributes
    ----------
    name
        Such as "energy" or "loop gap".
    drift, t
        Largest change since the start, in the unit of the thing, and when.
    scale
        What the drift is compared with: the energy that moves, the size of the mechanism, or how
        far the value would change if every component did, in parts of it.
    allowed
        Drift over scale that the tolerance explains.
    """

    name: str
    drift: float
    t: float
    scale: float
    allowed: float

    @property
    def relative(self) -> float:
        """Drift over scale."""
        return self.drift / self.scale

    @property
    def ok(self) -> bool:
        """Whether the tolerance explains the drift."""
        return self.relative <= self.allowed

    def __str__(self) -> str:
        if not np.isfinite(self.drift):
            return f"{self.name} became NaN or infinite"
        return f"{self.name} drifted by {self.drift:.2g}, {self.relative:.1g} of its scale"


def watches_of(solution: Solution, rtol: float | None) -> tuple[Watch, ...]:
    """What the problem watches along a run, at its worst between jumps."""
    problem = solution.problem
    watch = getattr(problem, "watch", None) or watched_invariants
    if solution.parts and not hasattr(problem, "invariants"):  # each mode has its own
        return tuple(
            replace(found, name=f"{found.name} in mode {stay.mode!r}")
            for stay, part in zip(solution.modes, solution.parts)
            for found in part.quality.watches
        )
    if not solution.t.size or not hasattr(problem, "invariants"):
        return ()
    allowed = FIXED if rtol is None else float(np.clip(PROPORTION * rtol, ROUNDING, ALWAYS))
    worst: dict[str, Watch] = {}
    for part in _between_jumps(solution):
        with np.errstate(all="ignore"):  # a run may have exploded
            found = watch(problem, solution.t[part], solution.y[:, part])
        for name, (t, values, scale, factor) in found.items():
            if scale > 0.0:
                here = Watch(name, *_largest(t, values), scale, factor * allowed)
                worst[name] = _worse(worst.get(name), here)
    return tuple(worst.values())


def _between_jumps(solution: Solution) -> list[slice]:
    """Parts of the output between resets of the state, which may change whatever they like."""
    t, events = solution.t, getattr(solution.problem, "events", ())
    resets = [times for event, times in zip(events, solution.t_events) if event.reset is not None]
    jumps = np.unique(np.concatenate([*resets, np.zeros(0)]))
    if not jumps.size:
        return [slice(0, t.size)]
    forward = 1.0 if t[-1] >= t[0] else -1.0
    first = np.searchsorted(forward * t, forward * jumps, side="left")
    beyond = np.searchsorted(forward * t, forward * jumps, side="right")
    # Of two states at the time of a jump the first is the one before it; a single one that after.
    ends = np.unique([0, *np.where(beyond > first + 1, beyond - 1, first), t.size])
    parts = [slice(int(a), int(b)) for a, b in pairwise(ends)]
    if len(parts) > MOST_PARTS_WATCHED:
        some = np.linspace(0, len(parts) - 1, MOST_PARTS_WATCHED).round().astype(int)
        parts = [parts[k] for k in some]
    return parts


def _worse(known: Watch | None, here: Watch) -> Watch:
    """The larger drift of two parts of a run, on the larger of their scales."""
    if known is None:
        return here
    larger = max((known, here), key=lambda w: w.drift if np.isfinite(w.drift) else np.inf)
    return replace(larger, scale=max(known.scale, here.scale))


def _largest(t: Array, values: Array) -> tuple[float, float]:
    change = np.abs(values - values[..., :1]).reshape(-1, values.shape[-1]).max(axis=0)
    change = np.where(change <= SUMMED * np.abs(values).max(initial=0.0), 0.0, change)
    k = int(np.argmax(np.where(np.isfinite(change), change, np.inf)))
    return float(change[k]), float(t[k])


def samples(t: Array) -> NDArray[np.int64]:
    """Numbers of the states that are looked at: first and last, and some between."""
    return np.unique(np.linspace(0, len(t) - 1, min(len(t), SAMPLES)).round().astype(int))


Watched = tuple[Array, Array, float, float]  # times, values, scale, and a factor for the allowance


def watched_invariants(
    problem: Any, t: Array, y: Array, leave_out: Sequence[str] = ()
) -> Mapping[str, Watched]:
    """Invariants along a run; their scale is their change if every component grew by itself."""
    some = samples(t)
    found: dict[str, Watched] = {}
    for name, function in problem.invariants.items():
        if name in leave_out:
            continue
        g = problem.bind(function)
        values = np.array([_number(g(float(t[k]), y[:, k])) for k in some])
        scale = max(_reach(g, float(t[k]), y[:, k]) for k in (some[0], some[len(some) // 2]))
        if values.ndim == 1 and np.isfinite(scale):
            found[name] = t[some], values, scale, 1.0
    return found


def _number(value: Any) -> float:
    return float(np.real(np.asarray(value)).reshape(()))


def _reach(g: Callable[..., Any], t: float, y: NDArray[Any]) -> float:
    """Σ |∂g/∂yᵢ| |yᵢ|, by differences; at least |g|."""
    here, total = _number(g(t, y)), 0.0
    for i in np.flatnonzero(y):
        moved = np.array(y)
        moved[i] *= 1.0 + 1e-6
        total += abs(_number(g(t, moved)) - here) / 1e-6
    return max(total, abs(here))
