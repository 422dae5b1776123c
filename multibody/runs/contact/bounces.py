"""The last bounces of points that come to rest: infinitely many, too low to be followed one by one.

They are so low that nothing else changes meanwhile: places, directions and forces are those of the
instant, gaps fall with constant accelerations, and impacts follow each other in a series whose
times shrink by one factor (a ball), or by two in turn (a block that rocks from corner to corner).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...checks import Array
from ...contact.accelerations import CLOSED_SPEED, settle
from ...contact.held import Held
from ...contact.impacts import collide
from ...contact.kinematics import ContactKinematics, kinematics_at
from ...contact.response import Mechanism, mechanism_at
from ...contact.workspace import contacts_of

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["last_bounces"]

#: Bounces lower than this part of the mechanism's length are summed to their limit.
LOWEST_BOUNCE = 1e-10

#: Impacts that are looked at until their times form a series, and how well they must.
MOST_IMPACTS, SAME_FACTOR = 60, 1e-6


def last_bounces(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    closed: Array,
    given: tuple[object, object],
    law: str,
) -> tuple[Held, float]:
    """Closed points if some leave for bounces that are one, with those that rest; when all do.

    `given` are joint forces and external forces, or None for each.
    """
    contacts = contacts_of(model)
    none = CLOSED_SPEED * contacts.speed
    k = kinematics_at(model, q, v, t)
    resting = closed & (k.gap_rate <= none)
    leaving = closed & (k.gap_rate > none) & (contacts.restitution < 1.0)
    if not leaving.any():
        return Held(), 0.0
    system = mechanism_at(model, q, v, *given, t)
    fall = -_gap_accelerations(model, system, k, resting)[1]
    lowest = 2.0 * fall * LOWEST_BOUNCE * contacts.length
    low = leaving & (fall > 0.0) & (k.gap_rate**2 < lowest)
    if not low.any():
        return Held(), 0.0
    last = _until_rest(model, system, k, (q, v, t), resting | low, law)
    if not np.isfinite(last):
        return Held(), 0.0
    points = np.flatnonzero(resting | low)
    still = np.hypot(k.slip[:, 0], k.slip[:, 1]) <= none
    sticks = resting & still & (contacts.friction > 0.0)
    states = tuple("sticks" if sticks[i] else "rests" for i in points)
    return Held(tuple(int(i) for i in points), states, (0.0,) * len(points)), t + last


def _gap_accelerations(
    model: Model, system: Mechanism, k: ContactKinematics, resting: Array
) -> tuple[Array, Array]:
    """v̇ and φ̈ of all points while some rest."""
    a = settle(model, system, k, resting).accelerations if resting.any() else system.acceleration
    return a, k.T[:, 0] @ a + k.bias[:, 0]


def _until_rest(
    model: Model,
    system: Mechanism,
    k: ContactKinematics,
    state: tuple[Array, Array, float],
    taking: Array,
    law: str,
) -> float:
    """Time until the points that take part have bounced infinitely often; inf if they do not rest.

    A gap that leaves with ζ and accelerates by −a is back after 2ζ/a.
    """
    q, v, t = state
    none = CLOSED_SPEED * contacts_of(model).speed
    drift = np.column_stack([k.gap_rate, k.slip]) - k.T @ v
    gap, times, total = np.zeros(len(k.gap)), [], 0.0
    for _ in range(MOST_IMPACTS):
        u = k.T @ v + drift
        k = k._replace(gap_rate=u[:, 0], slip=u[:, 1:])
        down = taking & (gap == 0.0) & (k.gap_rate <= none)
        if (down == taking).all():
            return total
        a, rise = _gap_accelerations(model, system, k, down)
        air = np.flatnonzero(taking & ~down)
        if (rise[air] >= 0.0).any():
            return np.inf
        root = np.sqrt(k.gap_rate[air] ** 2 - 2.0 * rise[air] * gap[air])
        back = (k.gap_rate[air] + root) / -rise[air]
        step = float(back.min())
        gap[air] += step * (k.gap_rate[air] + 0.5 * step * rise[air])
        gap[air[back <= step]] = 0.0
        v, total = v + step * a, total + step
        times.append(step)
        u = k.T @ v + drift
        k = k._replace(gap_rate=u[:, 0], slip=u[:, 1:])
        v = collide(model, system, k, (q, v, t), taking & (gap == 0.0), law).velocities
        if len(times) > 3:
            first, second = times[-2] / times[-4], times[-1] / times[-3]
            if abs(first - second) <= SAME_FACTOR * first:
                left = (times[-2] + times[-1]) * first / (1.0 - first)
                return total + left if first < 1.0 else np.inf
    return np.inf
