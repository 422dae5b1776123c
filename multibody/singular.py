"""Singular positions along a run: where loops lose rank, and whether the run came through.

At a singular position constraints become combinations of others and the mechanism has more
mobility than elsewhere. Its motion goes on smoothly in the direction in which it came, but
accelerations are 0/0 there: a method that jumps over the place never notices, one that shortens
its steps to look closely finds rounding errors divided by nothing, and may turn back or leave on
another branch, with closed loops and, often, the right energy. So a run that met such a place is
judged by what the integrator cannot know: velocities before and after must fit together with the
accelerations on both sides, energy must not jump, and the steps must not have collapsed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._checks import Array
from .dynamics.closed_loop import constraints, independence
from .dynamics.compute import crba, position_rate
from .dynamics.factor import lt_solve, ltl
from .dynamics.motion import energy

if TYPE_CHECKING:
    from .model import Model

__all__ = [
    "NEAR_SINGULAR",
    "Passage",
    "SingularPositions",
    "loop_review",
    "singular_positions",
    "singular_value_ratios",
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

#: From a passage to the states that are compared, in the units of SPACING: far enough for regular
#: accelerations, near enough for the trapezoidal rule.
WINDOW = 0.02

#: Change of velocity, in parts of it, that accelerations on both sides must explain up to this and
#: the error of the trapezoidal rule. Another branch or a reversal makes it of the order of one.
UNEXPLAINED = 0.05

#: Jump of the energy, in parts of what moves: of a fixed step, and at least that of an adaptive one
#: where the tolerance, times ENERGY_TOLERANCES, is smaller.
ENERGY_JUMP = (1e-2, 1e-4)
ENERGY_TOLERANCES = 1e3

#: An adaptive method that needs steps shorter than this part of its usual ones to get past has
#: resolved the singular position, and rounding decides what it finds there.
COLLAPSED = 1e-3

TINY = float(np.finfo(float).tiny)


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
    """

    t: float
    ratio: float
    step: int


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
    """

    rank: int
    closest: float | None = None
    closest_time: float | None = None
    passages: tuple[Passage, ...] = ()


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
    return SingularPositions(rank, *closest, tuple(_apart(found, t)))


def _travelled(q: Array) -> Array:
    """How far the run has come at each state: parts of each coordinate's range, or radians."""
    reach = np.clip(np.ptp(q, axis=1), TINY, 1.0)
    steps = np.abs(np.diff(q, axis=1)) / reach[:, None]
    return np.concatenate([[0.0], np.cumsum(steps.max(axis=0, initial=0.0))])


def _looks(q: Array) -> Array:
    """Numbers of the states at which to look."""
    passed = np.floor(_travelled(q) / SPACING)
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


def singular_value_ratios(model: Model, t: Any, q: Array) -> Array:
    """Singular values of K weighted with the inertia, in parts of the largest; as independence."""
    parent, rows = model.tree.arrays["parent_v"], model.tree.acting_rows
    found = []
    for time, place in zip(t, q.T):
        L = ltl(crba(model, place, t=float(time)), parent)
        K = constraints(model, place, t=float(time)).K[rows]
        sizes = np.linalg.svd(lt_solve(L, parent, K.T), compute_uv=False)
        found.append(np.pad(sizes, (0, len(rows) - len(sizes))) / max(sizes[0], TINY))
    return np.array(found)


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
    states = np.unique(np.linspace(first, last, MOST_STATES).astype(int))
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
            kept[-1] = min(kept[-1], passage, key=lambda p: p.ratio)
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


# ---------------------------------------------------------------------- judging a run


def loop_review(
    model: Model, conservative: bool, rates: Callable[..., Array] | None = None
) -> Callable[..., Any]:
    """Return a review (see :class:`integrators.IVP`) of runs of a model with loops.

    Parameters
    ----------
    model
        With loops.
    conservative
        Whether the energy should stay what it is.
    rates
        [q̇; v̇] as a function of (t, q, v), if the problem's f is something else. Then its
        ``split(t, y)`` gives q and v of a state; otherwise states are [q; v].
    """

    def review(problem: Any, t: Array, y: Array, rtol: float | None) -> Any:
        from integrators import Status

        moved = np.append(True, np.diff(t) != 0.0)  # a reset has two states at one time
        t, y = t[moved], y[:, moved]
        if not (np.isfinite(y).all() and len(t) > 1):
            return None
        if rates is None:
            q, v = np.ascontiguousarray(y[: model.nq]), np.ascontiguousarray(y[model.nq :])
        else:
            states = [problem.split(float(s), x) for s, x in zip(t, y.T)]
            q, v = (np.ascontiguousarray(np.transpose(part)) for part in zip(*states))
        rate = rates or (lambda s, x, u: problem.rhs(s, np.append(x, u)))
        found = singular_positions(model, t, q, v)
        if not found.passages:
            return None
        moving = _moving_energy(model, t, q, v) if conservative else None
        for passage in found.passages:
            faults = _faults(model, rate, t, q, v, rtol, passage, moving)
            if faults:
                return Status.SINGULAR_MATRIX, (
                    f"the constraints of the loops lost rank at t = {passage.t:.6g} (a singular "
                    f"position, mobility rises there) and the run is not to be trusted from then "
                    f"on: {'; '.join(faults)}. Jump over it with a fixed step, or with "
                    "stabilise='projection' and a looser tolerance, or use minimal coordinates"
                )
        times = ", ".join(f"{p.t:.6g}" for p in found.passages[:8])
        more = len(found.passages) - 8
        return None, (
            f"passed singular positions of the loops at t = {times}"
            + (f" and {more} more" if more > 0 else "")
            + ", velocities continuing smoothly"
        )

    return review


def _moving_energy(model: Model, t: Array, q: Array, v: Array) -> float:
    """The largest kinetic energy or change of the potential one, at some states."""
    some = np.unique(np.linspace(0, len(t) - 1, 50).astype(int))
    along = [energy(model, q[:, k], v[:, k], t=float(t[k])) for k in some]
    potential = float(np.ptp([e.potential for e in along]))
    return max(max(e.kinetic for e in along), potential, TINY)


def _faults(
    model: Model,
    rate: Callable[..., Array],
    t: Array,
    q: Array,
    v: Array,
    rtol: float | None,
    passage: Passage,
    moving: float | None,
) -> list[str]:
    """What went wrong at a passage, in words; nothing if the run came through."""
    before, after = _around(t, q, passage)
    faults: list[str] = []
    if rtol is not None and before < passage.step:  # the first step of a run may be short
        steps = np.abs(np.diff(t))
        shortest, usual = float(steps[before:after].min()), float(np.median(steps))
        longest = float(steps.max())
        if shortest < COLLAPSED * max(usual, 0.01 * longest):
            faults.append(f"its steps shrank to {shortest:.1g} s, where rounding errors decide")
    if before == 0 or after == len(t) - 1:
        return faults  # it starts or ends there: nothing to compare
    # One accepted step of an adaptive method is smooth: that is what its error estimate says.
    smooth = rtol is not None and after == before + 1
    change, allowed = _unexplained_change(model, rate, t, q, v, before, after)
    if change > allowed and not smooth:
        turned = float(v[:, before] @ v[:, after]) < 0.0
        what = "it turned back" if turned else "it left on another branch"
        faults.append(f"{what} (velocities changed by {100 * change:.0f} % at once)")
    if moving is not None:
        ends = [energy(model, q[:, k], v[:, k], t=float(t[k])).total for k in (before, after)]
        jump = (ends[1] - ends[0]) / moving
        fixed, least = ENERGY_JUMP
        if abs(jump) > (fixed if rtol is None else np.clip(ENERGY_TOLERANCES * rtol, least, fixed)):
            faults.append(f"its energy changed by {100 * jump:.2g} % of what moves")
    return faults


def _around(t: Array, q: Array, passage: Passage) -> tuple[int, int]:
    """States before and after a passage at which the mechanism is regular again."""
    travelled, k = _travelled(q), passage.step
    part = (passage.t - float(t[k])) / float(t[k + 1] - t[k])
    place = travelled[k] + part * (travelled[k + 1] - travelled[k])
    before = int(np.searchsorted(travelled, place - WINDOW, side="right")) - 1
    after = int(np.searchsorted(travelled, place + WINDOW))
    return max(before, 0), min(after, len(travelled) - 1)


def _unexplained_change(
    model: Model, rate: Callable[..., Array], t: Array, q: Array, v: Array, before: int, after: int
) -> tuple[float, float]:
    """Change of velocity that accelerations do not explain, in parts; and how much may be."""
    h = float(t[after] - t[before])
    rates = [rate(float(t[k]), q[:, k], v[:, k]) for k in (before, after)]
    explained = 0.5 * h * (rates[0] + rates[1])[model.nq :]
    H = crba(model, q[:, after], t=float(t[after]))

    def size(u: Array) -> float:
        return float(np.sqrt(u @ H @ u))

    speed = max(size(v[:, before]), size(v[:, after]), TINY)
    change = size(v[:, after] - v[:, before] - explained) / speed
    way = min(float(np.abs(rates[0][: model.nq]).max() * abs(h)), 1.5)
    return change, UNEXPLAINED + 0.2 * way**3
