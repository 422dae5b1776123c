"""Forces of compliant surfaces (book, §11.8): springs and dampers with a state, Hunt–Crossley.

A surface of stiffness K and damping D is a massless patch at depth z ≤ 0, which follows

    D ż = −(K z + f),     f = 0 where φ > z,  else max(0, −K φ − D φ̇)              (Eq 11.73–11.75)

so that the body is never pulled, and may leave while φ < 0, faster than the patch creeps back.
A bounce without gravity has e = exp(−2ζ acos ζ / √(1 − ζ²)), ζ = D / 2√(Km). Friction has a spring
and a damper along the tangents, with displacements x of its own:

    D_t ẋ = −(K_t x + f_t),     f_t = −K_t x − D_t s, cut to length μ f            (Eq 11.77–11.79)

(the vector is scaled, not its components, so that no direction is preferred).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..checks import Array
from ..model.contacts import HuntCrossley, SpringDamper
from .kinematics import ContactKinematics
from .workspace import contacts_of

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["SoftContacts", "soft_contacts"]

#: A patch and a body that are closer than this (m) are together: both move alike, and which of the
#: two is deeper is a matter of rounding.
TOGETHER = 1e-8


class SoftContacts:
    """Compliant points of a model: where their states are, and their forces.

    Attributes
    ----------
    points
        Numbers of the points with a law.
    names
        Of the states: depth of each patch, then two displacements where there is friction.
    """

    def __init__(self, model: Model) -> None:
        contacts = contacts_of(model)
        self.n = contacts.n
        self.friction = contacts.friction
        self.points = [int(i) for i in np.flatnonzero(~contacts.is_rigid)]
        self.laws = {i: contacts.contacts[i].law for i in self.points}
        self.at: dict[int, int] = {}
        self.names: list[str] = []
        for i in self.points:
            if isinstance(self.laws[i], SpringDamper):
                self.at[i] = len(self.names)
                self.names.append(f"{contacts.names[i]}.depth")
                if self.friction[i] > 0.0:
                    self.names += [f"{contacts.names[i]}.{x}" for x in ("bristle1", "bristle2")]

    def forces(self, k: ContactKinematics, states: Array) -> tuple[Array, Array]:
        """Forces (n, 3) at all points, and the rates of the states."""
        forces, rates = np.zeros((self.n, 3)), np.zeros(len(states))
        for i in self.points:
            law = self.laws[i]
            if isinstance(law, HuntCrossley):
                forces[i] = self._hunt_crossley(law, i, k)
                continue
            at = self.at[i]
            z, gap = states[at], k.gap[i]
            normal = 0.0
            if gap <= z + TOGETHER:
                normal = max(0.0, -law.stiffness * gap - law.damping * k.gap_rate[i])
            rates[at] = -(law.stiffness * z + normal) / law.damping
            forces[i, 0] = normal
            if self.friction[i] > 0.0:
                x = states[at + 1 : at + 3]
                K, D = law.tangential_stiffness, law.tangential_damping
                stick = -K * x - D * k.slip[i]
                size, most = float(np.hypot(*stick)), self.friction[i] * normal
                forces[i, 1:] = stick if size <= most else stick * (most / size)
                rates[at + 1 : at + 3] = -(K * x + forces[i, 1:]) / D
        return forces, rates

    def _hunt_crossley(self, law: HuntCrossley, i: int, k: ContactKinematics) -> Array:
        depth = -float(k.gap[i])
        if depth <= 0.0:
            return np.zeros(3)
        normal = law.stiffness * depth**law.exponent * (1.0 - law.dissipation * k.gap_rate[i])
        normal = max(0.0, normal)
        slip = k.slip[i]
        size = np.sqrt(slip @ slip + law.slip_speed**2)
        return np.array([normal, *(-self.friction[i] * normal / size * slip)])

    def start(self, k: ContactKinematics) -> Array:
        """States at the start: patches that are pressed already are at the body."""
        states = np.zeros(len(self.names))
        for i, at in self.at.items():
            states[at] = min(0.0, k.gap[i])
        return states

    def follow(self, k: ContactKinematics, states: Array) -> Array:
        """States with patches that errors have parted a little from the body put on it again."""
        states = states.copy()
        for i, at in self.at.items():
            if k.gap[i] <= min(states[at] + TOGETHER, 0.0):
                states[at] = k.gap[i]
        return states


def soft_contacts(model: Model) -> SoftContacts:
    """Compliant points of a model, made once."""
    kept = model.tree.traced
    if "soft contacts" not in kept:
        kept["soft contacts"] = SoftContacts(model)
    found: SoftContacts = kept["soft contacts"]
    return found
