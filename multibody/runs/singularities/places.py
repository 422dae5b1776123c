"""Finding singular positions along a run: where loops lose rank, or would if they were closed.

Positions are looked at some tenths of a radian apart, by the pivots of the weighted constraints,
and minima are searched between the states of the run.

Loops that have drifted open hide singular positions. Branches that cross, f = ½ sᵀAs = 0 in the
motions s that the other constraints leave, become the arms of a hyperbola f = ε, and a run turns
from one into the other without ever losing rank: |As|² ≥ 2ε|λ|, λ an eigenvalue of A. But where
this is smallest Newton's step back to f = 0 leads half the way to the crossing and changes the
singular value by half of it: the bound ½ of Kantorovich's theorem for the convergence of that
iteration. Where loops are closed well enough for the mechanism that is meant, the change is
smaller by orders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...dynamics.functions import crba, position_rate
from ...dynamics.loops.closed_loop import constraints, independence, weighted
from .weighted import TINY, singular_value_ratios

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "NEAR_SINGULAR",
    "Passage",
    "SingularPositions",
    "singular_positions",
    "travelled",
]

#: A ratio of singular values below this part of what it usually is counts as singular. Positions
#: between two steps are interpolated, right to the fourth power of the step, so that a true passage
#: gives far less, but one with loops that are a little open may keep some tenths of a percent.
NEAR_SINGULAR = 1e-2

#: Constraints whose ratio is usually below this are redundant everywhere: Bricard's linkage.
REDUNDANT = 1e-4

#: Positions are looked at when coordinates have changed by this part of their range or of a radian
#: (metre); nearer ones tell nothing new.
SPACING = 0.1

#: Places where the ratio may reach zero between two states that are searched, the first ones. A
#: run that goes wrong has states at the place itself, and these are always looked at.
MOST_SEARCHES = 200

#: States that are looked at between two looks, where a run stalls.
MOST_STATES = 200

#: Change of K by closing the loops, in parts of its smallest singular value, from which on a
#: minimum of that is taken for a singular position that the gap hides. The theory says at least ½
#: at the minimum, and states lie beside it; runs with closed loops stay below 1e-3, and regular
#: ones with gaps of half a percent at 0.1.
HIDDEN = 0.25

#: … if the ratio is below this part of its median there. A gap of OPEN leaves a tenth of the ratio;
#: mechanisms that are never near a singular position have minima, too.
DIP = 0.2

#: Gap over the squared ratio of singular values below which HIDDEN need not be computed: both are
#: of the same size, up to lengths and inertias in parts of each other.
HIDDEN_AT_ALL = 1e-2

#: States that are compared are this many of Newton's steps from a hidden position, where the arms
#: of the hyperbola are straight to some percent, but not farther than MOST_AWAY (as SPACING).
AWAY, MOST_AWAY = 10.0, 0.5

#: Gap, in radians or in parts of the lever with which coordinates change it, that is told whatever
#: else: a mechanism with such a gap is another one.
OPEN = 1e-2

#: States at which levers and the gap of a whole run are looked at.
SAMPLES = 6


@dataclass(frozen=True)
class Passage:
    """A singular position that a run reached or passed.

    Attributes
    ----------
    t
        When.
    ratio
        Smallest over largest singular value of the independent constraints, as far as it is known.
    step
        The state before: the place lies between states `step` and `step` + 1.
    gap
        Of the loops (m, rad), if it is so large that it hides the position: rank is not lost, but
        would be if the loops were closed.
    away
        How far from there, in the units of :data:`SPACING`, the gap matters.
    """

    t: float
    ratio: float
    step: int
    gap: float = 0.0
    away: float = 0.0


@dataclass(frozen=True)
class SingularPositions:
    """What was found along a run.

    Attributes
    ----------
    rank
        How many constraints are usually independent.
    closest, closest_time
        Smallest ratio of the last of them to the first, and when.
    passages
        Singular positions in the order of time.
    opening
        The widest gap of some states and its time, if the loops are so far open that singular
        positions cannot be told.
    """

    rank: int
    closest: float | None = None
    closest_time: float | None = None
    passages: tuple[Passage, ...] = ()
    opening: tuple[float, float] | None = None


# ---------------------------------------------------------------------- finding them


def singular_positions(
    model: Model, t: Array, q: Array, v: Array, exact: bool = False
) -> SingularPositions:
    """Find the singular positions that a run reaches or passes between its states.

    Parameters
    ----------
    model
        With loops.
    t, q, v
        Times, and positions and velocities in columns.
    exact
        True: ratios of singular values, and places as exact as interpolation makes them. False:
        ratios of pivots, which are of the same size, and places to a thousandth of a step; a
        hundred times faster.

    Examples
    --------
    >>> from integrators import solve
    >>> from multibody import as_ivp, mechanisms
    >>> entry = mechanisms.entry("n_four_bar")
    >>> model = entry.model()
    >>> run = solve(as_ivp(model, *entry.start(model), (0, 2)), method="RK4", step=0.01)
    >>> found = singular_positions(model, run.t, run.y[:5], run.y[5:])
    >>> found.rank, [round(p.t, 2) for p in found.passages]  # all rods in a line, twice a turn
    (4, [0.71, 1.23])
    """
    looks = _looks(q)
    ratios = independence(model, t[looks], q[:, looks])
    if len(t) < 2 or ratios.shape[1] == 0:
        return SingularPositions(int(np.sum(ratios > REDUNDANT)))
    usual = np.median(ratios, axis=0)
    rank = int(np.sum(usual > REDUNDANT))
    if rank == 0:
        return SingularPositions(0)
    limit = NEAR_SINGULAR * float(usual[rank - 1])
    measure = singular_value_ratios if exact else independence
    along = measure(model, t[looks], q[:, looks])[:, rank - 1] if exact else ratios[:, rank - 1]
    lowest = int(np.argmin(along))
    closest = (float(along[lowest]), float(t[looks[lowest]]))
    found: list[Passage] = []
    for searches, (i, k) in enumerate(_dips(t[looks], along, limit)):
        if searches >= MOST_SEARCHES and along[i : k + 1].min() >= limit:
            continue
        first, last = looks[max(i - 1, 0)], looks[min(k + 1, len(looks) - 1)]
        for place in _search(model, t, q, v, rank, int(first), int(last), limit, measure):
            closest = min(closest, (place.ratio, place.t))
            if place.ratio < limit:
                found.append(place)
    levers, opening = _opening(model, t, q)
    found += _hidden(model, t, q, rank, looks, along, levers)
    found.sort(key=lambda p: p.step)
    return SingularPositions(rank, *closest, tuple(_apart(found, t)), opening)


def _hidden(
    model: Model, t: Array, q: Array, rank: int, looks: Array, along: Array, levers: Array
) -> list[Passage]:
    """Minima of the ratio that loops which are open keep from being zero.

    A run that turned there has states on the bend, and only then it matters. From gaps that are
    too wide nothing can be told.
    """
    usual, inner = float(np.median(along)), along[1:-1]
    is_low = (inner <= along[:-2]) & (inner <= along[2:])
    is_low &= inner < 2.5 * DIP * usual  # states between those looked at may be lower
    low = np.flatnonzero(is_low) + 1
    ranges = [_states(int(looks[k - 1]), int(looks[k + 1])) for k in low]
    if not ranges:
        return []
    states = np.concatenate(ranges)
    ratios = independence(model, t[states], q[:, states])[:, rank - 1]
    found = []
    for part in np.split(np.arange(len(states)), np.cumsum([len(r) for r in ranges])[:-1]):
        lowest = int(part[int(np.argmin(ratios[part]))])
        at, ratio = int(states[lowest]), float(ratios[lowest])
        if ratio > DIP * usual:
            continue
        c = constraints(model, q[:, at], t=float(t[at]))
        if not HIDDEN_AT_ALL * ratio**2 < float((np.abs(c.delta) / levers).max()) < OPEN:
            continue
        change, step = _closing(model, float(t[at]), q[:, at], rank)
        if change > HIDDEN:
            gap = float(np.abs(c.delta).max())
            away = min(AWAY * float((np.abs(step) / _reach(q)).max()), MOST_AWAY)
            found.append(Passage(float(t[at]), ratio, min(at, len(t) - 2), gap, away))
    return found


def _opening(model: Model, t: Array, q: Array) -> tuple[Array, tuple[float, float] | None]:
    """Levers with which coordinates change each gap; and the widest gap and when, if it is wide."""
    some = np.unique(np.linspace(0, len(t) - 1, SAMPLES).astype(int))
    found = [constraints(model, q[:, k], t=float(t[k])) for k in some]
    levers: Array = np.sqrt(np.max([np.sum(c.K**2, axis=1) for c in found], axis=0))
    longest = float(levers.max())
    levers = np.maximum(levers, 1e-3 * longest if longest > 0.0 else 1.0)
    gaps = np.abs([c.delta for c in found])
    if not (gaps / levers).max() > OPEN:
        return levers, None
    return levers, (float(gaps.max()), float(t[some[int(np.argmax(gaps.max(axis=1)))]]))


def _states(first: int, last: int) -> Array:
    """Numbers of states from one to another, not too many."""
    if last - first < MOST_STATES:
        return np.arange(first, last + 1)
    return np.unique(np.linspace(first, last, MOST_STATES).astype(int))


def _closing(model: Model, t: float, q: Array, rank: int) -> tuple[float, Array]:
    """Change of K by closing the loops, in parts of its last singular value; and of q."""
    rows, c = model.tree.acting_rows, constraints(model, q, t=t)
    C, Y = weighted(crba(model, q, t=t), c.K[rows])
    left, sizes, right = np.linalg.svd(Y.T, full_matrices=False)
    sizes = np.maximum(sizes[:rank], TINY)
    x = right[:rank].T @ ((left[:, :rank].T @ c.delta[rows]) / sizes)
    closed = model.integrate(q, -np.linalg.solve(C.T, x))
    change = np.linalg.solve(C, constraints(model, closed, t=t).K[rows].T) - Y
    return float(np.linalg.norm(change, 2) / sizes[-1]), closed - q


def _reach(q: Array) -> Array:
    """What a change of each coordinate is compared with: its range, at most a radian or metre."""
    return np.clip(np.ptp(q, axis=1), TINY, 1.0)


def travelled(q: Array) -> Array:
    """How far the run has come at each state: parts of each coordinate's range, or radians."""
    steps = np.abs(np.diff(q, axis=1)) / _reach(q)[:, None]
    return np.concatenate([[0.0], np.cumsum(steps.max(axis=0, initial=0.0))])


def _looks(q: Array) -> Array:
    """Numbers of the states at which to look."""
    passed = np.floor(travelled(q) / SPACING)
    keep = np.ones(len(passed), dtype=bool)
    keep[1:-1] = passed[1:-1] != passed[:-2]
    return np.flatnonzero(keep)


def _dips(t: Array, ratio: Array, limit: float) -> list[tuple[int, int]]:
    """First and last of neighbouring looks at which the ratio is, or beside which it may be, zero.

    There it is the absolute value of a smooth function: V-shaped, so that the line through two
    values on one side cuts the axis before the next look.
    """
    chosen = ratio < limit
    if len(t) > 2:
        slope = np.diff(ratio) / np.diff(t)
        inner = ratio[1:-1]
        ahead = inner + slope[:-1] * np.diff(t)[1:]
        behind = inner - slope[1:] * np.diff(t)[:-1]
        low = (inner <= ratio[:-2]) & (inner <= ratio[2:])
        chosen[1:-1] |= low & (np.minimum(ahead, behind) < 0.25 * inner)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(int), [0]])))
    return [(int(i), int(k) - 1) for i, k in zip(edges[::2], edges[1::2])]


def _search(
    model: Model,
    t: Array,
    q: Array,
    v: Array,
    rank: int,
    first: int,
    last: int,
    limit: float,
    measure: Callable[..., Array],
) -> list[Passage]:
    """Places between two states that are nearest to singular positions."""
    states = _states(first, last)
    ratios = independence(model, t[states], q[:, states])[:, rank - 1]
    padded = np.concatenate([[np.inf], ratios, [np.inf]])
    there = (ratios < limit) & (ratios <= padded[:-2]) & (ratios <= padded[2:])
    if not there.any():
        return [_lowest(model, t, q, v, rank, int(states[int(np.argmin(ratios))]), measure)]
    if measure is not independence:
        return [_lowest(model, t, q, v, rank, int(k), measure) for k in states[there]]
    return [  # near enough to tell when
        Passage(float(t[k]), float(r), min(int(k), len(t) - 2))
        for k, r in zip(states[there], ratios[there])
    ]


def _lowest(
    model: Model, t: Array, q: Array, v: Array, rank: int, at: int, measure: Callable[..., Array]
) -> Passage:
    """Nearest to a singular position in the two steps beside a state."""
    from scipy.optimize import minimize_scalar

    here = float(measure(model, t[at : at + 1], q[:, at : at + 1])[0, rank - 1])
    best = Passage(float(t[at]), here, min(at, len(t) - 2))
    tolerance = 1e-3 if measure is independence else 1e-7
    for left in range(max(at - 1, 0), min(at + 1, len(t) - 1)):
        path = between(model, t, q, v, left, left + 1)

        def ratio(s: float, path: Callable[..., Any] = path) -> float:
            time, place = path(s)
            return float(measure(model, [time], place[:, None])[0, rank - 1])

        found = minimize_scalar(ratio, bounds=(0.0, 1.0), options={"xatol": tolerance})
        if found.fun < best.ratio:
            best = Passage(float(path(found.x)[0]), float(found.fun), left)
    return best


def _apart(found: list[Passage], t: Array) -> list[Passage]:
    """Leave one of passages that are the same place: a run that stalls has many states there."""
    kept: list[Passage] = []
    near = 1e-3 * abs(float(t[-1] - t[0]))
    for passage in found:
        if kept and abs(passage.t - kept[-1].t) < near:
            same = (kept[-1], passage)
            gap, away = max(p.gap for p in same), max(p.away for p in same)
            kept[-1] = replace(min(same, key=lambda p: p.ratio), gap=gap, away=away)
        else:
            kept.append(passage)
    return kept


def between(
    model: Model, t: Array, q: Array, v: Array, i: int, k: int
) -> Callable[[float], tuple[float, Array]]:
    """Cubic through two states with their rates, for s from 0 to 1."""
    h = float(t[k] - t[i])
    ends = [position_rate(model, q[:, j], v[:, j], t=float(t[j])) for j in (i, k)]

    def path(s: float) -> tuple[float, Array]:
        a, b = (1 + 2 * s) * (1 - s) ** 2, s * s * (3 - 2 * s)
        c, d = s * (1 - s) ** 2, s * s * (s - 1)
        place = a * q[:, i] + b * q[:, k] + h * (c * ends[0] + d * ends[1])
        return float(t[i]) + s * h, model.normalise(place)

    return path
