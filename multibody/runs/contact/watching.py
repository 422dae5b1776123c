"""What is watched in a mode of contact: functions that fall below zero where it ends.

A mode is entered on the edge of things: a gap that has just opened, a force that has just come to
be. What is past its edge by rounding when the mode is entered is given that much *room*, so that it
ends the mode if it goes on falling, and does not if it rises.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...contact.accelerations import CLOSED_GAP, CLOSED_SPEED
from ...contact.held import Held, HeldMotion, held_motion, shared_forces
from ...contact.kinematics import gaps_at, kinematics_at
from ...contact.sharing import Shared
from ...contact.workspace import SLOW, contacts_of

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["ACROSS", "Watch"]

#: What a gap that opens without a speed may fall below zero before it counts as closing, in parts
#: of the mechanism's length.
TOUCH = 1e-12

#: Rounding of a gap, in parts of the coordinates that it is the difference of: what it may fall
#: below zero while its rate says that it opens.
ROUNDING = 2e-15

#: Slip that is rounding, at right angles to the known direction or where it begins, in parts of the
#: mechanism's speed.
ACROSS = 1e-11

#: Slip that begins is not yet driven by more than rounding, in parts of the accelerations.
BEGINS = 1e-6

#: Rounding of forces, in parts of the largest.
FORCE_ROUNDING = 1e-12


class _Now(threading.local):
    """The state that was last asked for, and the room that the mode was entered with."""

    motion: tuple[Any, Any] = (None, None)
    shared: tuple[Any, Any] = (None, None)
    gaps: tuple[Any, Any] = (None, None)
    closed: Array = np.zeros(0, dtype=bool)
    gap_room: Array = np.zeros(0)
    force_room: Array = np.zeros(0)
    cone_room: Array = np.zeros(0)
    margin_room: float = 0.0
    rest: float = -np.inf  # when bounces that cannot be seen are over


class Watch:
    """Motion and forces in modes, and what ends them.

    Parameters
    ----------
    model
        With rigid contacts.
    forces
        Function (t, q, v, p) that returns joint forces and external forces, or None for each.
    """

    def __init__(self, model: Model, forces: Callable[..., tuple[Any, Any]]) -> None:
        self.model, self.given = model, forces
        self.contacts = contacts_of(model)
        self.now = _Now()
        self.slow = SLOW * self.contacts.speed
        self.across = ACROSS * self.contacts.speed

    def enter(self, held: Held, t: float, y: Array, p: Any = ()) -> None:
        """Give room to what is on its edge where a mode is entered."""
        nq, contacts, now = self.model.nq, self.contacts, self.now
        gap, rate = gaps_at(self.model, y[:nq], y[nq:], t)
        near, none = CLOSED_GAP * contacts.length, CLOSED_SPEED * contacts.speed
        now.closed = gap <= near
        now.gap_room = np.where(gap <= 0.0, -gap, 0.0)
        now.gap_room += np.where((gap <= near) & (rate <= none), TOUCH * contacts.length, 0.0)
        now.gap_room[list(held.touching)] += near
        if not held.points:
            return
        forces, margin = self.forces(held, t, y, p)
        least = FORCE_ROUNDING * float(np.abs(forces).max(initial=0.0))
        inside = contacts.friction * forces[:, 0] - np.hypot(forces[:, 1], forces[:, 2])
        now.force_room = np.maximum(-forces[:, 0], 0.0) + least
        now.cone_room = np.maximum(-inside, 0.0) + least
        now.margin_room = max(-margin, 0.0) + least

    def motion(self, held: Held, t: float, y: Array, p: Any = ()) -> HeldMotion:
        """Accelerations and forces in a mode; the last answer is remembered for the events."""
        asked, now = (held, float(t), y.tobytes(), tuple(p)), self.now
        if now.motion[0] != asked:
            q, v = y[: self.model.nq], y[self.model.nq :]
            found = held_motion(self.model, held, t, q, v, *self.given(t, q, v, p))
            now.motion = (asked, found)
        answer: HeldMotion = now.motion[1]
        return answer

    def forces(self, held: Held, t: float, y: Array, p: Any = ()) -> Shared:
        """Forces (n, 3) in a mode, inside their cones wherever any are, and their margin."""
        found, now = self.motion(held, t, y, p).forces, self.now
        if not held.shared:
            return Shared(found, np.inf)
        asked = (held, float(t), y.tobytes(), tuple(p))
        if now.shared[0] != asked:
            q, v = y[: self.model.nq], y[self.model.nq :]
            now.shared = (asked, shared_forces(self.model, held, t, q, v, found))
        answer: Shared = now.shared[1]
        return answer

    # ------------------------------------------------------------------ functions of (t, y, p)

    def gap(self, i: int) -> Callable[..., float]:
        """Gap of a point that is apart."""
        model, nq, now = self.model, self.model.nq, self.now

        def gap(t: float, y: Array, p: Any = ()) -> float:
            asked = (float(t), y.tobytes())
            if now.gaps[0] != asked:
                gaps, rates = gaps_at(model, y[:nq], y[nq:], t)
                places = np.abs(self.contacts.workspace.point).max(axis=1)
                size = ROUNDING * np.maximum(self.contacts.length, places)
                now.gaps = (asked, gaps + np.where(rates > 0.0, size, 0.0))
            return float(now.gaps[1][i]) + float(now.gap_room[i])

        return gap

    def force(self, held: Held, i: int) -> Callable[..., float]:
        """Normal force."""
        now = self.now
        return lambda t, y, p=(): float(self.motion(held, t, y, p).forces[i, 0] + now.force_room[i])

    def cone(self, held: Held, i: int) -> Callable[..., float]:
        """How far friction is from the edge of its cone."""
        mu, now = float(self.contacts.friction[i]), self.now

        def cone(t: float, y: Array, p: Any = ()) -> float:
            force = self.motion(held, t, y, p).forces[i]
            return float(mu * force[0] - np.hypot(force[1], force[2]) + now.cone_room[i])

        return cone

    def margin(self, held: Held) -> Callable[..., float]:
        """Positive while points that share forces can hold what they hold."""
        now = self.now
        return lambda t, y, p=(): self.forces(held, t, y, p).margin + now.margin_room

    def slope(self, held: Held, j: int) -> Callable[..., float]:
        """What a held row gains in acceleration by its force."""
        return lambda t, y, p=(): float(self.motion(held, t, y, p).slopes[j])

    def slip(self, held: Held, i: int, angle: float) -> Callable[..., float]:
        """Slip along its direction; one that begins does not stop because of rounding."""
        model, nq, across = self.model, self.model.nq, self.across
        way = np.array([np.cos(angle), np.sin(angle)])

        def slip(t: float, y: Array, p: Any = ()) -> float:
            k = kinematics_at(model, y[:nq], y[nq:], t)
            along = float(way @ k.slip[i])
            if abs(along) <= across:
                a = self.motion(held, t, y, p).accelerations
                pushed, drift = k.T[i, 1:] @ a, k.bias[i, 1:]
                size = float(np.abs(k.T[i, 1:]) @ np.abs(a) @ np.ones(2) + np.abs(drift).sum())
                if way @ (pushed + drift) > -BEGINS * size:
                    return along + across
            return along

        return slip

    def turned(self, i: int, angle: float, slow: bool) -> Callable[..., float]:
        """Falls below zero where slip passes the limit of slowness in another direction than known.

        Slip that stays in its line need not be told its direction again.
        """
        model, nq, limit, across = self.model, self.model.nq, self.slow, self.across
        c, s = np.cos(angle), np.sin(angle)

        def turned(t: float, y: Array, p: Any = ()) -> float:
            x = kinematics_at(model, y[:nq], y[nq:], t).slip[i]
            speed = float(np.hypot(x[0], x[1]))
            beyond = 2.0 * limit - speed if slow else speed - limit
            return float(max(beyond, across - abs(c * x[1] - s * x[0])))

        return turned
