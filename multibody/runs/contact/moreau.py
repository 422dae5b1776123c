"""Time stepping of Moreau and Jean: impulses and velocities in each step, no instants at all.

A step goes from (q, v) to (q′, v′) without contact by the midpoint rule, on the group where bodies
turn (`multibody.contact.stepping.motion`). Points whose gaps are closed half way take part:

    v⁺ = v′ + P Tᵀ r,     q⁺ = q ⊕ h (v⁺ + v)/2,

where r are their impulses during the step, and restitution and Coulomb's law hold between r and
u⁺ = T v⁺, with T at q′ [jean1999]_. Where points come in that rebound, impulses are exchanged as at
an instant of the other road (`multibody.contact.impacts`), which makes no energy, however many
points are closed; what the forces of the step add is held back afterwards. Impacts are not located:
the order is one through any number of them, and through accumulations; it is two where nothing
touches, or rests.

Points of one body that land in successive steps may have landed at one instant, had the others not
been stopped at different depths. What follows is then not the same, and no step is short enough:
``caution`` says that it happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...contact.held import Held, onto_contacts
from ...contact.stepping.step import Stepped, TimeStepper
from ...dynamics.functions import rate_along
from ...dynamics.motion import totals_along

if TYPE_CHECKING:
    from .modes import ContactModes

__all__ = ["MoreauJean"]

#: Part of the largest kinetic energy that a run may seem to gain: it is of first order only.
MOST_GAINED = 0.05
TINY_ENERGY = 1e-12

#: Points come in faster than this, in parts of the mechanism's speed, where they land; and landings
#: of one body within so many steps may have been one.
SETTLED_SPEED, SHORTLY = 1e-3, 3


class MoreauJean:
    """The scheme as a method for ``solve``; needs a fixed step."""

    order = 1
    name = "MoreauJean"

    def __init__(self, modes: ContactModes) -> None:
        self.modes = modes
        given = modes.tau is not None or modes.f_ext is not None
        self.stepper = TimeStepper(modes.model, modes.given_forces if given else None, modes.law)
        self.params: Any = ()
        self._state: Array | None = None
        self._allowed = self._liveliest = 0.0
        self._landed: dict[int, tuple[float, int]] = {}  # by bodies: when, and which point
        self._active: frozenset[int] = frozenset()
        self.caution = ""

    def bound(self, problem: Any) -> MoreauJean:
        """The scheme for a run with the parameters of a problem."""
        method = MoreauJean(self.modes)
        method.params = problem.params
        return method

    def rates(self, t: float, y: Array, p: Any = ()) -> Array:
        """[q̇; 0]: what dense output is drawn with between steps."""
        model = self.modes.model
        q, v = y[: model.nq], y[model.nq :]
        return np.concatenate([rate_along(model, q, v, t), np.zeros(model.nv)])

    def step(self, f: Any, t: float, y: Array, h: float) -> Array:
        """One step."""
        model = self.modes.model
        q, v = y[: model.nq], y[model.nq :]
        found = self.stepper.step(t, q, v, h, self.params)
        q, after = found.q, found.v
        self._look_at_landings(t, h, found)
        if model.bonds:
            q, after = onto_contacts(model, Held(), t + h, q, after)
        self._check_energy(t, h, y, q, after)
        return np.concatenate([q, after])

    def _look_at_landings(self, t: float, h: float, found: Stepped) -> None:
        """Note where points of one body land shortly after each other."""
        contacts = self.modes.contacts
        fast = found.approach < -SETTLED_SPEED * contacts.speed
        landing = {int(c) for c in found.contacts[fast]} - self._active
        for c in sorted(landing):
            for body in contacts.bodies[c]:
                when, other = self._landed.get(int(body), (-np.inf, c))
                soon = other != c and h / 2 < t - when < SHORTLY * h
                if body >= 0 and soon and not self.caution:
                    names = contacts.names
                    self.caution = (
                        f"{names[other]!r} and {names[c]!r} landed within {SHORTLY} steps at t = "
                        f"{t:.6g}: whether at one instant, which may change what follows, steps do "
                        "not tell; an event-driven run (any other method) does"
                    )
        for c in landing:
            self._landed |= {int(body): (t, c) for body in contacts.bodies[c]}
        self._active = frozenset(int(c) for c in found.contacts)

    def _check_energy(self, t: float, h: float, y: Array, q: Array, after: Array) -> None:
        """Raise if the run has made energy out of nothing, which contacts cannot."""
        model = self.modes.model
        if model.is_rheonomic or self.modes.f_ext is not None:
            return  # what moves the bodies may well do work
        v = y[model.nq :]
        if self._state is None or not np.array_equal(y, self._state):  # it begins, or begins anew
            kinetic, potential = totals_along(model, y[: model.nq], v, t)[:2]
            self._allowed, self._liveliest = kinetic + potential, kinetic
        self._state = np.concatenate([q, after])
        kinetic, potential = totals_along(model, q, after, t + h)[:2]
        self._liveliest = max(self._liveliest, kinetic)
        if self.modes.tau is not None:
            tau = np.abs(self.stepper.workspace.given_tau)
            self._allowed += h * float(tau @ (np.abs(v) + np.abs(after)))
        gained = float(kinetic + potential - self._allowed)
        if gained > MOST_GAINED * self._liveliest + TINY_ENERGY:
            raise ArithmeticError(
                f"MoreauJean has made {gained:.3g} J out of nothing by t = {t + h:.6g}: "
                f"step = {h:g} is too long, or restitution with friction gives more than it takes; "
                "take a shorter one, or the event-driven road, with any other method"
            )
