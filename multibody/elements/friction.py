"""Friction in joints: viscous, Coulomb's with Stribeck's bump, with bristles; rolling resistance.

A law with a jump at v = 0 is here smoothed over a *slip speed*, below which the joint creeps. To
stick exactly, let the integrator know of the jump: ``multibody.stick_slip`` makes a problem of a
model in which the velocities' signs are surfaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..checks import has_symbols, real_scalar
from .base import Element, element_kind

__all__ = ["BristleFriction", "Friction", "RollingResistance"]


def _positive(element: Any, *names: str, zero: bool = True) -> None:
    """Check that fields are numbers ≥ 0, or > 0."""
    for name in names:
        value = getattr(element, name)
        if value is None or has_symbols(np.asarray(value)):
            continue
        number = real_scalar(value, f"{type(element).__name__}: {name}")
        if number < 0.0 or (number == 0.0 and not zero):
            raise ValueError(
                f"{type(element).__name__}: expected {name} {'≥' if zero else '>'} 0, received "
                f"{value!r}"
            )


@element_kind
@dataclass(frozen=True, eq=False)
class Friction(Element):
    """Friction in a joint of one freedom, of the tree or of a loop.

    With the speed v the force is −d v − (F_c + (F_s − F_c) exp(−(v/v_s)²)) sign(v).

    Parameters
    ----------
    joint
        Body whose joint it is, or loop.
    coulomb, stiction
        F_c and F_s, in N or N m; without stiction F_s = F_c.
    viscous
        d, in N s/m or N m s/rad.
    stribeck_speed
        v_s: speed at which most of the stiction is gone.
    slip_speed
        The sign is smoothed, tanh(v/slip_speed). Smaller is stiffer.
    """

    joint: str
    coulomb: float = 0.0
    stiction: float | None = None
    viscous: float = 0.0
    stribeck_speed: float = 0.01
    slip_speed: float = 1e-3

    kind: ClassVar[str] = "friction"

    def __post_init__(self) -> None:
        _positive(self, "coulomb", "stiction", "viscous")
        _positive(self, "stribeck_speed", "slip_speed", zero=False)
        known = self.stiction is not None and not has_symbols(
            np.asarray([self.stiction, self.coulomb])
        )
        if known and self.stiction < self.coulomb:  # type: ignore[operator]
            raise ValueError(
                f"Friction: expected stiction ≥ coulomb, received {self.stiction} < {self.coulomb}"
            )

    def size(self, v: Any) -> Any:
        """Dry friction at a speed, without its sign."""
        if self.stiction is None:
            return self.coulomb + 0.0 * v
        ratio = v / self.stribeck_speed
        return self.coulomb + (self.stiction - self.coulomb) * np.exp(-ratio * ratio)

    def act(self, here: Any) -> None:
        """Push against the motion."""
        _, v = here.joint(self.joint)
        force = -self.viscous * v[0] - self.size(v[0]) * np.tanh(v[0] / self.slip_speed)
        here.push_joint(self.joint, force)
        here.output("force", force)


@element_kind
@dataclass(frozen=True, eq=False)
class BristleFriction(Element):
    """Friction with bristles that bend before they slip, with their bending as a state.

    The law of Canudas de Wit, Olsson, Åström and Lischinsky (1995), called LuGre:

        ż = v − σ₀ |v| z / g(v),   F = −(σ₀ z + σ₁ ż + σ₂ v),
        g(v) = F_c + (F_s − F_c) exp(−(v/v_s)²).

    Parameters
    ----------
    joint
        Body whose joint it is, or loop.
    coulomb, stiction, viscous, stribeck_speed
        F_c, F_s, σ₂ and v_s as in :class:`Friction`.
    stiffness, damping
        σ₀ and σ₁ of the bristles.
    """

    joint: str
    coulomb: float
    stiction: float
    viscous: float = 0.0
    stribeck_speed: float = 0.01
    stiffness: float = 1e5
    damping: float = 300.0

    kind: ClassVar[str] = "bristle_friction"
    states = ("bend",)

    def __post_init__(self) -> None:
        _positive(self, "viscous", "damping")
        _positive(self, "coulomb", "stiction", "stribeck_speed", "stiffness", zero=False)

    def act(self, here: Any) -> None:
        """Push by the bristles."""
        _, v = here.joint(self.joint)
        z, u = here.z[0], v[0]
        ratio = u / self.stribeck_speed
        most = self.coulomb + (self.stiction - self.coulomb) * np.exp(-ratio * ratio)
        rate = u - self.stiffness * abs(u) * z / most
        force = -(self.stiffness * z + self.damping * rate + self.viscous * u)
        here.push_joint(self.joint, force)
        here.rates(rate)
        here.energy(0.5 * self.stiffness * z * z)
        here.output("force", force)


@element_kind
@dataclass(frozen=True, eq=False)
class RollingResistance(Element):
    """A couple against the rolling of a body over the base: f·N·(direction of ω across n).

    Parameters
    ----------
    body
        The wheel or ball.
    arm
        f in m: how far the load's point of attack lies ahead of the contact.
    load
        N, the force that presses the body on the ground.
    normal
        Of the ground, in base axes.
    slip_speed
        Angular speed (rad/s) over which the jump at rest is smoothed.
    """

    body: str
    arm: float
    load: float
    normal: Any = (0.0, 0.0, 1.0)
    slip_speed: float = 1e-3

    kind: ClassVar[str] = "rolling_resistance"

    def __post_init__(self) -> None:
        _positive(self, "arm", "load")
        _positive(self, "slip_speed", zero=False)

    def act(self, here: Any) -> None:
        """Turn against the rolling."""
        omega = here.frame(self.body).omega
        n = np.asarray(self.normal)
        n = n / np.sqrt(n @ n)
        rolling = omega - n * (n @ omega)
        size = np.sqrt(rolling @ rolling + self.slip_speed * self.slip_speed)
        here.push(self.body, couple=-self.arm * self.load * rolling / size)
