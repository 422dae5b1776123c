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

__all__ = ["BearingFriction", "BristleFriction", "Friction", "RollingResistance"]


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
class BearingFriction(Element):
    """Dry friction that grows with what the joint carries: μ times the bearing's reaction.

    In a hinge the torque is μ (r F_radial + r_a |F_axial|), in a slide the force is μ F_normal.
    The friction changes the reaction in turn; both are solved for together at every instant. A
    mechanism that friction would lock (μ so large that there is no solution) ends the run.

    Parameters
    ----------
    joint
        Body whose joint it is, or loop: a joint of one freedom about or along its z axis or
        another one of its frame.
    coefficient
        μ.
    radius, axial_radius
        r and r_a, of the pin and of the collar, in m; without meaning in a slide.
    slip_speed
        The sign of the velocity is smoothed over it, as in :class:`Friction`.

    Examples
    --------
    A shaft that runs out: the pin carries its weight, so that it slows down evenly.

    >>> from multibody import BearingFriction, Inertia, ModelBuilder, Revolute, simulate
    >>> b = ModelBuilder(gravity=(0, 0, -10.0), name="flywheel")
    >>> _ = b.add_body("wheel", 0, Revolute("y"), inertia=Inertia(2.0, I_com=0.5))
    >>> b.add_element("pin", BearingFriction("wheel", coefficient=0.1, radius=0.05))
    >>> run = simulate(b.build(), [0.0], [1.0], T=2.0)
    >>> f"{run.y[1, -1]:.6f}"  # 1 − μ r m g t / I
    '0.600000'
    """

    joint: str
    coefficient: float
    radius: float = 1.0
    axial_radius: float = 0.0
    slip_speed: float = 1e-3

    kind: ClassVar[str] = "bearing_friction"

    def __post_init__(self) -> None:
        _positive(self, "coefficient", "radius", "axial_radius")
        _positive(self, "slip_speed", zero=False)

    @property
    def carried_by(self) -> str:  # type: ignore[override]
        """The joint itself."""
        return self.joint

    def felt(self, wrench: Any, here: Any) -> Any:
        """μ times the reaction across the joint's axis."""
        axis, slides = here.axis(self.joint)
        force = wrench[3:]
        along = force @ axis
        across = np.sqrt(np.maximum(force @ force - along * along, 0.0))
        if slides:
            return self.coefficient * across
        return self.coefficient * (self.radius * across + self.axial_radius * abs(along))

    def act(self, here: Any) -> None:
        """Push against the motion, for a load of one."""
        _, v = here.joint(self.joint)
        here.push_joint(self.joint, -np.tanh(v[0] / self.slip_speed))


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
        N, the force that presses the body on the ground; or the name of the joint whose reaction
        that is, of a rolling loop, say.
    normal
        Of the ground, in base axes.
    slip_speed
        Angular speed (rad/s) over which the jump at rest is smoothed.
    """

    body: str
    arm: float
    load: float | str
    normal: Any = (0.0, 0.0, 1.0)
    slip_speed: float = 1e-3

    kind: ClassVar[str] = "rolling_resistance"

    def __post_init__(self) -> None:
        _positive(self, "arm", *(() if isinstance(self.load, str) else ("load",)))
        _positive(self, "slip_speed", zero=False)

    @property
    def carried_by(self) -> str | None:  # type: ignore[override]
        """The joint that carries the load, if that is not a number."""
        return self.load if isinstance(self.load, str) else None

    def felt(self, wrench: Any, here: Any) -> Any:
        """The reaction along the ground's normal."""
        return abs(wrench[3:] @ self._upwards())

    def _upwards(self) -> Any:
        n = np.asarray(self.normal)
        return n / np.sqrt(n @ n)

    def act(self, here: Any) -> None:
        """Turn against the rolling."""
        omega = here.frame(self.body).omega
        n = self._upwards()
        load = 1.0 if isinstance(self.load, str) else self.load
        rolling = omega - n * (n @ omega)
        size = np.sqrt(rolling @ rolling + self.slip_speed * self.slip_speed)
        here.push(self.body, couple=-self.arm * load * rolling / size)
