"""A ball that slides in a bore: three rotations and a shift, two constraints (book, §8.10)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Joint, register
from .formulae import quaternion_of, quaternion_rate, quaternion_transform

__all__ = ["SphereInCylinder"]


@register
class SphereInCylinder(Joint):
    """Sphere in cylinder: a ball joint whose centre slides along an axis of the predecessor.

    q = (unit quaternion, shift), v = (ω in the ball's axes, speed of the shift); for another axis
    than z, quaternion and ω are those of frames whose z is that axis. As a loop joint it
    has two constraints where a hinge has five: put in place of one hinge of a planar linkage, it
    leaves nothing overconstrained, so that all joint forces are determined.

    Examples
    --------
    >>> SphereInCylinder("x").motion([1, 0, 0, 0, 0.3], [0, 0, 0, 2.0]).v[3:]
    array([2., 0., 0.])
    """

    kind = "sphere_in_cylinder"
    coordinates = ("w", "x", "y", "z", "shift")
    speeds = ("omega_x", "omega_y", "omega_z", "shift")
    groups = ("SO3", "R")

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Rotate by the quaternion, shift along the predecessor's z, which is E z in the ball."""
        E = quaternion_transform(q[:4])
        x, y, z = E[0, 2], E[1, 2], E[2, 2]
        S = np.array(
            [
                [1.0, 0, 0, 0],
                [0, 1.0, 0, 0],
                [0, 0, 1.0, 0],
                [0, 0, 0, x],
                [0, 0, 0, y],
                [0, 0, 0, z],
            ]
        )
        turning = [z * v[1] - y * v[2], x * v[2] - z * v[0], y * v[0] - x * v[1]]  # ω × E z
        c = np.array([0.0 * v[0], 0.0 * v[0], 0.0 * v[0], *(-v[3] * u for u in turning)])
        return E, np.array([0.0, 0.0, q[4]]), S, c, None

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The quaternion with w ≥ 0, and the shift."""
        return [*quaternion_of(E), r[2]]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """The centre lies on the axis."""
        return [r[0], r[1]]

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """q̇ = ½ q ∘ ω, and the speed of the shift."""
        return np.array([*quaternion_rate(q[:4], v[:3]), v[3]])
