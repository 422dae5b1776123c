"""Joints of several freedoms with a constant S, and none: planar, spherical, free, fixed.

Two entries of the book's Table 4.1 do not fit together: planar and 6-DoF joints have a constant S
but positions whose derivative is not v. Here positions are measured in the predecessor's frame
and velocities in the successor's, so S is constant and q̇ = Q(q) v.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Joint, register, unit_columns
from .formulae import (
    ZERO3,
    quaternion_of,
    quaternion_rate,
    quaternion_transform,
    rz,
    tilt,
    turn,
    turned,
    twist,
)

__all__ = ["Fixed", "Free", "Planar", "Spherical"]


@register
class Planar(Joint):
    """Motion in the plane normal to an axis; q = (angle, x, y), v = (ω, v_x, v_y).

    x and y are measured in the predecessor's frame, v_x and v_y in the successor's, so that S is
    constant and q̇ = (ω, c v_x − s v_y, s v_x + c v_y). (The printed joint has q̇ = v, which is
    inconsistent with its S.) For an axis other than z the directions x and y follow it in cyclic
    order: for axis x they are y and z.

    Examples
    --------
    >>> Planar("y")  # its x points along z, its y along x
    Planar(axis=[0.0, 1.0, 0.0], x along z, y along x)
    >>> Planar().position_rate([np.pi / 2, 0, 0], [0, 1, 0]).round(12)
    array([0., 0., 1.])
    """

    kind = "planar"
    coordinates = ("angle", "x", "y")
    speeds = ("omega", "v_x", "v_y")
    units = (2, 3, 4)
    groups = ("SE2",)

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Rotate about z after shifting in the plane."""
        return rz(q[0]), np.array([q[1], q[2], 0.0]), unit_columns(2, 3, 4), None, None

    def __repr__(self) -> str:
        own = super().__repr__()
        if own == "Planar()":
            return own
        x, y = (_direction(row) for row in self.frame[:2])
        return f"{own[:-1]}, x along {x}, y along {y})"

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The rotation about z, and the place in the plane."""
        return [turn(E, near[0]), r[0], r[1]]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Normals parallel, origin in the plane."""
        return [*tilt(E), r[2]]

    def closure_side(self, t: Any, E: Any) -> Any:
        """Axes parallel, not antiparallel."""
        return E[2][2]

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """Turn the velocity into predecessor axes."""
        c, s = np.cos(q[0]), np.sin(q[0])
        return np.array([v[0], c * v[1] - s * v[2], s * v[1] + c * v[2]])


def _direction(row: Any) -> str:
    """Name of a coordinate axis, or three numbers."""
    place = [k for k in range(3) if abs(row[k]) == 1.0]
    if place:
        return ("−" if row[place[0]] < 0 else "") + "xyz"[place[0]]
    return str([round(float(x), 6) for x in row])


class _Unoriented(Joint):
    """Joints without a preferred axis."""

    arguments = ()

    def __init__(self) -> None:
        super().__init__()


@register
class Spherical(_Unoriented):
    """Ball joint: unit quaternion q (scalar first), angular velocity v in successor axes.

    Examples
    --------
    >>> Spherical().neutral()
    array([1., 0., 0., 0.])
    """

    kind = "spherical"
    coordinates = ("w", "x", "y", "z")
    speeds = ("omega_x", "omega_y", "omega_z")
    units = (0, 1, 2)
    groups = ("SO3",)

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Rotate by the quaternion."""
        return quaternion_transform(q), ZERO3, unit_columns(0, 1, 2), None, None

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The quaternion with w ≥ 0."""
        return quaternion_of(E)

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Origins together."""
        return turned(E, r)

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """q̇ = ½ q ∘ ω."""
        return np.array(quaternion_rate(q, v))


@register
class Free(_Unoriented):
    """Six degrees of freedom: q = (unit quaternion, position), v = body twist (ω, v).

    The position is that of the successor's origin in the predecessor's frame; the velocity is in
    the successor's frame, so S = 1 and ṗ = Eᵀ v. (The printed joint has q̇ = v.)

    Examples
    --------
    >>> Free().nq, Free().nv
    (7, 6)
    """

    kind = "free"
    coordinates = ("w", "x", "y", "z", "p_x", "p_y", "p_z")
    speeds = ("omega_x", "omega_y", "omega_z", "v_x", "v_y", "v_z")
    units = (0, 1, 2, 3, 4, 5)
    groups = ("SE3",)

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Rotate by the quaternion, shift by the position."""
        return quaternion_transform(q), q[4:7], np.eye(6), None, None

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The quaternion with w ≥ 0, and the origin."""
        return [*quaternion_of(E), *r]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """No constraint at all."""
        return []

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """q̇ = ½ q ∘ ω and ṗ = Eᵀ v."""
        E = quaternion_transform(q)
        shift = [E[0, i] * v[3] + E[1, i] * v[4] + E[2, i] * v[5] for i in range(3)]
        return np.array([*quaternion_rate(q, v), *shift])


@register
class Fixed(_Unoriented):
    """No freedom: the bodies are welded together.

    Examples
    --------
    >>> Fixed().nv
    0
    """

    kind = "fixed"

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Leave everything where it is."""
        return np.eye(3), ZERO3, np.zeros((6, 0)), None, None

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """There is none to tell."""
        return []

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Frames together."""
        return [*twist(E), *turned(E, r)]

    def closure_side(self, t: Any, E: Any) -> Any:
        """No rotation, instead of half a turn."""
        return E[0][0] + E[1][1] + E[2][2] - 1.0
