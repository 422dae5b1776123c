"""Singular positions along a run: where loops lose rank, and whether the run came through.

At a singular position constraints become combinations of others and the mechanism has more
mobility than elsewhere. Its motion goes on smoothly in the direction in which it came, but
accelerations are 0/0 there: a method that jumps over the place never notices, one that shortens
its steps to look closely finds rounding errors divided by nothing, and may turn back or leave on
another branch, with closed loops and, often, the right energy. So a run that met such a place is
judged by what the integrator cannot know: velocities before and after must fit together with the
accelerations on both sides, energy must not jump, and the steps must not have collapsed.

The positions themselves are found in ``singular_places``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...dynamics.functions import crba
from ...dynamics.motion import energy
from .places import (
    NEAR_SINGULAR,
    TINY,
    Passage,
    SingularPositions,
    singular_positions,
    travelled,
)
from .screen import LoopScreen
from .weighted import singular_value_ratios

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "NEAR_SINGULAR",
    "Passage",
    "SingularPositions",
    "loop_review",
    "singular_positions",
    "singular_value_ratios",
]

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

#: Gaps (m, rad) up to here are rounding, and hide nothing.
CLOSED = 1e-10


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
        ``split_along(t, y)`` gives q and v of states; otherwise states are [q; v].
    """

    def review(problem: Any, t: Array, y: Array, rtol: float | None) -> Any:
        moved = np.append(True, np.diff(t) != 0.0)  # a reset has two states at one time
        t, y = t[moved], y[:, moved]
        if not (np.isfinite(y).all() and len(t) > 1):
            return None
        if rates is None:
            q, v = np.array(y[: model.nq]), np.array(y[model.nq :])
        else:
            q, v = problem.split_along(t, y)
        rate = rates or (lambda s, x, u: problem.rhs(s, np.append(x, u)))
        with np.errstate(all="ignore"):  # a run may have exploded
            for at in model.quaternion_places:  # or have let quaternions drift
                q[at : at + 4] /= np.linalg.norm(q[at : at + 4], axis=0)
            if not np.isfinite(q).all():
                return None
            return _remark(model, conservative, rate, t, q, v, rtol)

    if rates is None:  # states are [q; v], and of many runs few need a review
        review.screen = LoopScreen(model)  # type: ignore[attr-defined]
    return review


def _remark(
    model: Model,
    conservative: bool,
    rate: Callable[..., Array],
    t: Array,
    q: Array,
    v: Array,
    rtol: float | None,
) -> tuple[Any, str] | None:
    """What is to be said of a run: a status if it is not to be trusted, and a text."""
    from integrators import Status

    found = singular_positions(model, t, q, v)
    drift = "" if found.opening is None else _opened(*found.opening)
    moving = _moving_energy(model, t, q, v) if conservative and found.passages else None
    for passage in found.passages:
        faults = _faults(model, rate, t, q, v, rtol, passage, moving)
        if faults:
            hidden = f", or would if the loops were not open by {passage.gap:.1g} there"
            return Status.SINGULAR_MATRIX, (
                f"the constraints of the loops lost rank at t = {passage.t:.6g} (a singular "
                f"position, mobility rises there{hidden if passage.gap > CLOSED else ''}) and the "
                f"run is not to be trusted from then on: {'; '.join(faults)}. Jump over it with a "
                "fixed step, or with stabilise='projection' and a looser tolerance, or use minimal "
                "coordinates"
            )
    if drift or not found.passages:
        return (None, drift) if drift else None
    times = ", ".join(f"{p.t:.6g}" for p in found.passages[:8])
    more = len(found.passages) - 8
    return None, (
        f"passed singular positions of the loops at t = {times}"
        + (f" and {more} more" if more > 0 else "")
        + ", velocities continuing smoothly"
    )


def _opened(gap: float, t: float) -> str:
    """What is to be said about loops that are wide open."""
    return (
        f"the loops have opened by {gap:.2g} (m, rad) at t = {t:.6g}, so far that this is the "
        "motion of another mechanism, and that singular positions of this one are not to be told; "
        "use stabilise='baumgarte' or 'projection', or smaller tolerances or steps"
    )


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
        here, usual = steps[max(before, 0) : after], float(np.median(steps))
        collapsed = here < COLLAPSED * max(usual, 0.01 * float(steps.max()))
        if np.count_nonzero(collapsed) > 1:  # a single one may be wanted, between two tstops
            shortest = float(here.min())
            faults.append(f"its steps shrank to {shortest:.1g} s, where rounding errors decide")
    if before < 0 or after == len(t):
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
    """States before and after a passage at which the mechanism is regular again.

    −1 before and the number of states after, if the run has no such states. Where the gap matters
    farther than the run went, its last state has to do.
    """
    along, k = travelled(q), passage.step
    part = (passage.t - float(t[k])) / float(t[k + 1] - t[k])
    place = along[k] + part * (along[k + 1] - along[k])
    away = max(WINDOW, passage.away)
    start = min(place - WINDOW, max(place - away, along[0]))
    end = max(place + WINDOW, min(place + away, along[-1]))
    before = int(np.searchsorted(along, start, side="right")) - 1
    return before, int(np.searchsorted(along, end))


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
