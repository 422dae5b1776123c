"""Points and vectors of a moving body: typing, velocity and acceleration with named parts.

Sources: course notes, §3.1.1 (what may be added to what), Eqs 4.21 and 4.22 (errata E41, E42).
Subscripts: w world axes, b body axes. P_w = origin + R P_b.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..checks import Array, ArrayLike, check_rotation, real_array

__all__ = ["Point", "PointAcceleration", "PointVelocity", "Vector", "acceleration", "velocity"]


class _Coordinates:
    """Three coordinates, or an array of triples."""

    __slots__ = ("array",)
    __array_ufunc__ = None  # so that ndarray ± Point raises instead of guessing

    def __init__(self, coordinates: ArrayLike) -> None:
        self.array = real_array(coordinates, type(self).__name__, (3,))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array.tolist()})"


def _refuse(operation: str, left: object, right: object) -> TypeError:
    return TypeError(
        f"{operation}: expected point − point, point ± vector or vector ± vector, received "
        f"{type(left).__name__} and {type(right).__name__}; the sum of two points has no meaning"
    )


class Vector(_Coordinates):
    """A displacement; independent of the origin.

    Examples
    --------
    >>> Vector([1, 0, 0]) + Vector([0, 2, 0])
    Vector([1.0, 2.0, 0.0])
    """

    __slots__ = ()

    def __add__(self, other: Vector) -> Vector:
        if isinstance(other, Vector):
            return Vector(self.array + other.array)
        if isinstance(other, Point):
            return NotImplemented  # Point.__radd__ answers
        raise _refuse("+", self, other)

    def __sub__(self, other: Vector) -> Vector:
        if isinstance(other, Vector):
            return Vector(self.array - other.array)
        raise _refuse("−", self, other)

    def __neg__(self) -> Vector:
        return Vector(-self.array)


class Point(_Coordinates):
    """A place; moves with the origin.

    Examples
    --------
    >>> Point([1, 2, 3]) - Point([1, 0, 0])
    Vector([0.0, 2.0, 3.0])
    >>> Point([1, 2, 3]) + Point([1, 0, 0])
    Traceback (most recent call last):
        ...
    TypeError: +: expected point − point, point ± vector or vector ± vector, received Point and \
Point; the sum of two points has no meaning
    """

    __slots__ = ()

    def __add__(self, other: Vector) -> Point:
        if isinstance(other, Vector):
            return Point(self.array + other.array)
        raise _refuse("+", self, other)

    __radd__ = __add__

    def __sub__(self, other: Point | Vector) -> Point | Vector:
        if isinstance(other, Point):
            return Vector(self.array - other.array)
        if isinstance(other, Vector):
            return Point(self.array - other.array)
        raise _refuse("−", self, other)


class PointVelocity(NamedTuple):
    """Parts of the velocity of a point, in world axes, m/s."""

    origin: Array
    """Velocity of the frame's origin."""
    rotation: Array
    """R (ω × P_b): carried by the rotation."""
    relative: Array
    """R Ṗ_b: motion of the point inside the frame."""

    @property
    def total(self) -> Array:
        """Sum of the parts."""
        return self.origin + self.rotation + self.relative


class PointAcceleration(NamedTuple):
    """Parts of the acceleration of a point, in world axes, m/s²."""

    origin: Array
    """Acceleration of the frame's origin."""
    centripetal: Array
    """R (ω × (ω × P_b)), towards the axis."""
    tangential: Array
    """R (ω̇ × P_b)."""
    coriolis: Array
    """R (2 ω × Ṗ_b)."""
    relative: Array
    """R P̈_b: acceleration inside the frame."""

    @property
    def total(self) -> Array:
        """Sum of the parts."""
        return self.origin + self.centripetal + self.tangential + self.coriolis + self.relative


def _apply(R: Array, v: Array) -> Array:
    return (R @ v[..., None])[..., 0]


_ZERO = (0.0, 0.0, 0.0)


def velocity(
    R: ArrayLike,
    point: ArrayLike,
    omega: ArrayLike,
    origin_velocity: ArrayLike = _ZERO,
    point_velocity: ArrayLike = _ZERO,
) -> PointVelocity:
    """Velocity of a point given in a moving frame (notes, Eq 4.21, last line).

    Parameters
    ----------
    R
        Rotation body → world, shape (..., 3, 3).
    point, point_velocity
        P_b and Ṗ_b in body axes, shape (..., 3).
    omega
        Angular velocity of the frame in body axes, rad/s.
    origin_velocity
        Velocity of the frame's origin in world axes.

    Examples
    --------
    >>> velocity(np.eye(3), [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]).total
    array([0., 2., 0.])
    """
    R = check_rotation(R)
    p, w = real_array(point, "point", (3,)), real_array(omega, "omega", (3,))
    v0 = real_array(origin_velocity, "origin_velocity", (3,))
    v = real_array(point_velocity, "point_velocity", (3,))
    return PointVelocity(v0, _apply(R, np.cross(w, p)), _apply(R, v))


def acceleration(
    R: ArrayLike,
    point: ArrayLike,
    omega: ArrayLike,
    alpha: ArrayLike = _ZERO,
    origin_acceleration: ArrayLike = _ZERO,
    point_velocity: ArrayLike = _ZERO,
    point_acceleration: ArrayLike = _ZERO,
) -> PointAcceleration:
    """Acceleration of a point given in a moving frame, part by part (notes, Eq 4.22).

    Parameters are those of `velocity`, with the angular acceleration α = ω̇ in body axes.

    Examples
    --------
    >>> acceleration(np.eye(3), [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]).centripetal
    array([-4.,  0.,  0.])
    """
    R = check_rotation(R)
    p, w = real_array(point, "point", (3,)), real_array(omega, "omega", (3,))
    a0 = real_array(origin_acceleration, "origin_acceleration", (3,))
    dw = real_array(alpha, "alpha", (3,))
    v = real_array(point_velocity, "point_velocity", (3,))
    a = real_array(point_acceleration, "point_acceleration", (3,))
    return PointAcceleration(
        a0,
        _apply(R, np.cross(w, np.cross(w, p))),
        _apply(R, np.cross(dw, p)),
        _apply(R, 2 * np.cross(w, v)),
        _apply(R, a),
    )
