"""Time stepping of Moreau and Jean: impulses and velocities in each step, no instants at all.

With q̂ = q + h/2 · v, and everything known evaluated there,

    v⁺ = v + h a + P Tᵀ r,     q⁺ = q ⊕ h (θ v⁺ + (1 − θ) v),                θ = 1/2,

where r are the impulses of the points with φ(q̂) ≤ 0 during the step, and Newton's restitution and
Coulomb's law hold between u⁺ = T v⁺ and r [jean1999]_. Impacts are not located: the order is one,
through any number of them, and through accumulations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...contact.cones import coulomb
from ...contact.held import Held, onto_contacts
from ...contact.kinematics import kinematics_at
from ...contact.lcp import solve_lcp
from ...contact.response import mechanism_at
from ...dynamics.functions import rate_along
from ...dynamics.motion import energy

if TYPE_CHECKING:
    from .modes import ContactModes

__all__ = ["MoreauJean"]

#: Part of the largest kinetic energy that a run may seem to gain: it is of first order only.
MOST_GAINED = 0.05
TINY_ENERGY = 1e-12


class MoreauJean:
    """The scheme as a method for ``solve``; needs a fixed step."""

    order = 1
    name = "MoreauJean"
    theta = 0.5

    def __init__(self, modes: ContactModes) -> None:
        self.modes = modes
        self.params: Any = ()
        self._state: Array | None = None
        self._allowed = self._liveliest = 0.0

    def rates(self, t: float, y: Array, p: Any = ()) -> Array:
        """[q̇; 0]: what dense output is drawn with between steps."""
        model = self.modes.model
        q, v = y[: model.nq], y[model.nq :]
        return np.concatenate([rate_along(model, q, v, t), np.zeros(model.nv)])

    def step(self, f: Any, t: float, y: Array, h: float) -> Array:
        """One step."""
        model, modes = self.modes.model, self.modes
        q, v = y[: model.nq], y[model.nq :]
        middle, t_middle = model.integrate(model.normalise(q), v, 0.5 * h), t + 0.5 * h
        tau, f_ext = modes._forces(t_middle, middle, v, self.params)
        system = mechanism_at(model, middle, v, tau, f_ext, t_middle)
        after = v + h * system.acceleration
        k = kinematics_at(model, middle, v, t_middle)
        chosen = np.flatnonzero(k.gap <= 0.0)
        if len(chosen):
            T = k.T[chosen].reshape(-1, model.nv)
            before = np.column_stack([k.gap_rate, k.slip])[chosen].ravel()
            e, mu = modes.contacts.restitution[chosen], modes.contacts.friction[chosen]
            b = before + h * (T @ system.acceleration)
            b[::3] += e * before[::3]
            W = T @ system.spread @ T.T
            r = np.zeros(len(b))
            if mu.any():
                r = coulomb(W, b, mu).r.ravel()
            else:
                r[::3] = solve_lcp(np.ascontiguousarray(W[::3, ::3]), b[::3].copy()).z
            after = after + system.spread @ (T.T @ r)
        q = model.integrate(model.normalise(q), self.theta * after + (1.0 - self.theta) * v, h)
        if model.bonds:
            q, after = onto_contacts(model, Held(), t + h, q, after)
        self._check_energy(t, h, y, q, after, tau)
        return np.concatenate([q, after])

    def _check_energy(self, t: float, h: float, y: Array, q: Array, after: Array, tau: Any) -> None:
        """Raise if the run has made energy out of nothing, which contacts cannot.

        The step is explicit in the gyroscopic forces: bodies that turn far in one step gain energy.
        """
        model = self.modes.model
        if model.is_rheonomic or self.modes.f_ext is not None:
            return  # what moves the bodies may well do work
        v = y[model.nq :]
        if self._state is None or not np.array_equal(y, self._state):  # it begins, or begins anew
            begin = energy(model, model.normalise(y[: model.nq]), v, t=t)
            self._allowed, self._liveliest = begin.total, begin.kinetic
        self._state = np.concatenate([q, after])
        now = energy(model, q, after, t=t + h)
        self._liveliest = max(self._liveliest, now.kinetic)
        if tau is not None:
            self._allowed += h * float(np.abs(tau) @ (np.abs(v) + np.abs(after)))
        gained = now.total - self._allowed
        if gained > MOST_GAINED * self._liveliest + TINY_ENERGY:
            raise ArithmeticError(
                f"MoreauJean has made {gained:.3g} J out of nothing by t = {t + h:.6g}: "
                f"step = {h:g} is too long for how fast bodies turn; take a shorter one, or the "
                "event-driven road, with any other method"
            )
