"""A ball that rolls on a ball, or inside one, without slipping."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Array, ArrayLike, real_scalar
from .base import SAMPLE_AXES, Joint, register
from .formulae import quaternion_of, quaternion_rate, quaternion_transform

__all__ = ["RollingBalls"]


@register
class RollingBalls(Joint):
    """A ball (successor) rolls without slipping on a ball that is fixed to the predecessor.

    Nonholonomic: q = (unit quaternion, u), where the centre lies in the direction u, three numbers
    of any length; v = ω in successor axes. Frames are at the centres. As a loop joint it imposes
    contact and no slip in two directions.

    Parameters
    ----------
    radius
        Of the ball that rolls, in m.
    ground
        Radius of the ball below, in m; negative for a hollow one inside which the other rolls.
    axis
        Direction of u at the neutral position.

    Examples
    --------
    >>> joint = RollingBalls(0.5, 1.0)
    >>> joint.motion(joint.neutral()).X.r
    array([0. , 0. , 1.5])
    """

    kind = "rolling_balls"
    coordinates = ("w", "x", "y", "z", "u_x", "u_y", "u_z")
    speeds = ("omega_x", "omega_y", "omega_z")
    groups = ("SO3", "R", "R", "R")
    arguments = ("radius", "ground", "axis")

    def __init__(self, radius: float, ground: float, axis: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        super().__init__(axis)
        self.radius = real_scalar(radius, "radius")
        self.ground = real_scalar(ground, "ground")
        if self.radius <= 0.0:
            raise ValueError(f"radius: expected a positive length, received {radius!r}")
        if self.ground == 0.0 or -self.radius <= self.ground < 0.0:
            raise ValueError(
                f"ground: expected a radius that is positive, or below −{self.radius:g} for a ball "
                f"inside a hollow one, received {ground!r}"
            )

    @property
    def parameters(self) -> tuple[float, ...]:
        """The two radii."""
        return self.radius, self.ground

    def law_key(self) -> Any:
        """Outside and inside differ in a sign."""
        return RollingBalls, self.ground > 0.0

    @classmethod
    def samples(cls) -> list[Joint]:
        """Outside, and inside."""
        return [cls(0.4, ground, axis) for ground in (0.7, -1.1) for axis in SAMPLE_AXES[::2]]

    def neutral(self) -> Array:
        """The ball on top."""
        return np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def random(self, rng: np.random.Generator) -> Array:
        """A direction drawn from all."""
        q = super().random(rng)
        u = rng.standard_normal(3)
        q[4:] = u / np.linalg.norm(u)
        return q

    def _unit(self, q: Any) -> list[Any]:
        size = np.sqrt(q[4] * q[4] + q[5] * q[5] + q[6] * q[6])
        return [q[4] / size, q[5] / size, q[6] / size]

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """v of the centre is ω × ρn, with n = E û."""
        E, unit = quaternion_transform(q), self._unit(q)
        rho, far = p[0], p[0] + p[1]
        n = E @ np.array(unit)
        s = rho * n
        zero = 0.0
        S = np.array(
            [
                [1.0, zero, zero],
                [zero, 1.0, zero],
                [zero, zero, 1.0],
                [zero, s[2], -s[1]],
                [-s[2], zero, s[0]],
                [s[1], -s[0], zero],
            ]
        )
        # ṅ = −ω × n + (ω × ρn)/(ρ + ρ₀) in successor axes, so c = [0; ω × ρṅ].
        n_dot = (rho / far - 1.0) * np.cross(v, n)
        bias = rho * np.cross(v, n_dot)
        r = np.array([far * unit[0], far * unit[1], far * unit[2]])
        return E, r, S, np.array([0.0, 0.0, 0.0, *bias]), None

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The quaternion with w ≥ 0, and the direction of the centre."""
        far = self.radius + self.ground
        return [*quaternion_of(E), r[0] / far, r[1] / far, r[2] / far]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """The distance of the centres."""
        far = p[0] + p[1]
        distance = np.sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])
        return [distance - far if self.ground > 0.0 else distance + far]

    def closure_rates(self, t: Any, E: Any, r: Any, v: Any, p: Any) -> list[Any]:
        """No slip in two directions across the normal (Duff and others' basis, without a pole)."""
        from integrators.tracing import where

        far = p[0] + p[1]
        x, y, z = r[0] / far, r[1] / far, r[2] / far
        n = [E[i][0] * x + E[i][1] * y + E[i][2] * z for i in range(3)]
        slip = [
            v[3] - p[0] * (v[1] * n[2] - v[2] * n[1]),
            v[4] - p[0] * (v[2] * n[0] - v[0] * n[2]),
            v[5] - p[0] * (v[0] * n[1] - v[1] * n[0]),
        ]
        u = [E[0][i] * slip[0] + E[1][i] * slip[1] + E[2][i] * slip[2] for i in range(3)]
        sign = where(z >= 0.0, 1.0, -1.0)
        a = -1.0 / (sign + z)
        b = x * y * a
        return [
            (1.0 + sign * x * x * a) * u[0] + sign * b * u[1] - sign * x * u[2],
            b * u[0] + (sign + y * y * a) * u[1] - y * u[2],
        ]

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """q̇ = ½ q ∘ ω; u turns with the centre."""
        return np.array([*quaternion_rate(q, v), *self._shift(q, v, p[0], p[1])])

    def _shift(self, q: Any, v: Any, rho: Any, ground: Any) -> list[Any]:
        E, unit = quaternion_transform(q), self._unit(q)
        n = E @ np.array(unit)
        u = np.cross(v, n) * (rho / (rho + ground))
        size = np.sqrt(q[4] * q[4] + q[5] * q[5] + q[6] * q[6])
        return [size * (E[0, i] * u[0] + E[1, i] * u[1] + E[2, i] * u[2]) for i in range(3)]

    def group_velocity(self, t: Any, q: Any, v: Any) -> Any:
        """Angular velocity, and the rate of u."""
        return np.array([*v, *self._shift(q, v, self.radius, self.ground)])
