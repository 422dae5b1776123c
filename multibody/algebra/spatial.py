"""Spatial vectors as types that refuse meaningless operations (book, §2.2–2.11).

6-vectors are angular first. A `Motion` is a velocity, an acceleration or a direction of motion,
[ω; v_O]; a `Force` is a force, a momentum or an impulse, [n_O; f]. They live in dual spaces, so
m·f exists and m·m, f·f, m + f, f × f do not. The types are thin: the arithmetic is in
`multibody.kernels`. Transforms between frames are in `plucker`, inertias in `inertia`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from ..checks import Array, ArrayLike, real_array, real_scalar
from ..kernels import spatial as _k
from .orientation.rotations import skew

__all__ = [
    "Force",
    "Motion",
    "ScrewAxis",
    "SpatialVector",
    "classical_from_spatial",
    "crf",
    "crm",
    "spatial_from_classical",
]

#: A line part smaller than this, relative to the whole vector, counts as absent; likewise a
#: pitch, relative to the moment: products of rounding errors stay far below.
LINE_TOLERANCE = 1e-12


class ScrewAxis(NamedTuple):
    """Where a spatial vector acts (book, §2.5)."""

    point: Array | None
    """Point of the axis nearest the origin; None for a free vector, which has no axis."""
    direction: Array
    """Unit vector; zero for the zero vector."""
    pitch: float
    """Moment along the axis divided by the line part; infinite for a free vector."""
    magnitude: float
    """Of the line part; of the free part where there is no line part."""


V = TypeVar("V", bound="SpatialVector")


class SpatialVector:
    """Six Plücker coordinates; `array` is angular first. Use `Motion` or `Force`.

    Examples
    --------
    >>> 2 * Motion([1, 0, 0], [0, 0, 0]) - Motion([0, 1, 0], [0, 0, 0])
    Motion([2.0, -1.0, 0.0], [0.0, 0.0, 0.0])
    """

    __slots__ = ("array",)
    __array_ufunc__ = None  # ndarray op vector must not be guessed elementwise

    array: Array

    def __init__(self, top: ArrayLike, bottom: ArrayLike | None = None) -> None:
        name = type(self).__name__
        if bottom is None:
            array = real_array(top, name, (6,)).copy()
        else:
            array = np.concatenate([real_array(top, name, (3,)), real_array(bottom, name, (3,))])
        if array.shape != (6,):
            raise ValueError(
                f"{name}: expected six numbers, received shape {array.shape}; "
                "for many vectors at once use arrays and multibody.kernels"
            )
        self.array = array

    @classmethod
    def _of(cls: type[V], array: Array) -> V:
        """Wrap an array that is known to be right."""
        self = object.__new__(cls)
        self.array = array
        return self

    @classmethod
    def zero(cls: type[V]) -> V:
        """Zero vector."""
        return cls._of(np.zeros(6))

    def _same(self, other: object, operation: str) -> None:
        if type(other) is not type(self):
            raise TypeError(
                f"{operation}: expected two of {type(self).__name__}, received "
                f"{type(self).__name__} and {type(other).__name__}; motions and forces are "
                "different spaces and share only the scalar product"
            )

    def __add__(self: V, other: V) -> V:
        self._same(other, "+")
        return self._of(self.array + other.array)

    def __sub__(self: V, other: V) -> V:
        self._same(other, "−")
        return self._of(self.array - other.array)

    def __neg__(self: V) -> V:
        return self._of(-self.array)

    def __mul__(self: V, factor: float) -> V:
        if isinstance(factor, SpatialVector):
            raise TypeError(
                f"*: expected a number, received {type(factor).__name__}; "
                "use a.dot(b) for the scalar product and v.cross(m) for the cross product"
            )
        return self._of(self.array * real_scalar(factor, "factor"))

    __rmul__ = __mul__

    def __truediv__(self: V, divisor: float) -> V:
        return self._of(self.array / real_scalar(divisor, "divisor"))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(np.all(self.array == other.array))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array[:3].tolist()}, {self.array[3:].tolist()})"

    def isclose(self: V, other: V, rtol: float = 0.0, atol: float = 1e-12) -> bool:
        """Whether all six coordinates agree within the tolerances."""
        self._same(other, "isclose")
        return bool(np.allclose(self.array, other.array, rtol=rtol, atol=atol))

    # The line part (ω or f) and the moment part (v_O or n_O) sit in different slots.

    @property
    def _line(self) -> Array:
        raise NotImplementedError

    @property
    def _moment(self) -> Array:
        raise NotImplementedError

    def _assemble(self: V, line: Array, moment: Array) -> V:
        raise NotImplementedError

    @property
    def is_free(self) -> bool:
        """Whether it is a free vector (pure translation, pure couple): no line part."""
        return bool(np.linalg.norm(self._line) <= LINE_TOLERANCE * np.linalg.norm(self.array))

    @property
    def is_line(self) -> bool:
        """Whether it is a line vector (pure rotation, pure force): pitch zero."""
        s, s_O = self._line, self._moment
        bound = LINE_TOLERANCE * np.linalg.norm(s) * np.linalg.norm(s_O)
        return not self.is_free and bool(abs(float(s @ s_O)) <= bound)

    def split(self: V) -> tuple[V, V]:
        """Split into a line vector and a parallel free vector (Eq 2.10).

        Examples
        --------
        >>> line, free = Motion([0, 0, 1], [0, 2, 0.5]).split()
        >>> line, free
        (Motion([0.0, 0.0, 1.0], [0.0, 2.0, 0.0]), Motion([0.0, 0.0, 0.0], [0.0, 0.0, 0.5]))
        """
        s, s_O = self._line, self._moment
        zero = np.zeros(3)
        if self.is_free:
            return self._assemble(zero, zero), self._assemble(zero, s_O)
        along = (s @ s_O) / (s @ s) * s
        return self._assemble(s, s_O - along), self._assemble(zero, along)

    def axis(self) -> ScrewAxis:
        """Point, direction, pitch and magnitude of the screw.

        Examples
        --------
        >>> screw = Motion([0, 0, 2], [0, -6, 1]).axis()
        >>> screw.point + 0.0, screw.direction, screw.pitch, screw.magnitude
        (array([3., 0., 0.]), array([0., 0., 1.]), 0.5, 2.0)
        """
        s, s_O = self._line, self._moment
        if self.is_free:
            size = float(np.linalg.norm(s_O))
            return ScrewAxis(None, s_O / size if size else np.zeros(3), float("inf"), size)
        square = float(s @ s)
        size = float(np.sqrt(square))
        # The line is {P: OP × s = s_O − h s}; OP × s determines OP up to the direction s.
        return ScrewAxis(np.cross(s, s_O) / square, s / size, float(s @ s_O) / square, size)


class Motion(SpatialVector):
    """Spatial motion vector [ω; v_O]: rotation, and velocity of the point at the origin.

    Examples
    --------
    >>> v = Motion([0, 0, 1], [0, 0, 0])
    >>> v.velocity_at([1, 0, 0])
    array([0., 1., 0.])
    >>> v.cross(Motion([1, 0, 0], [0, 0, 0]))
    Motion([0.0, 1.0, 0.0], [0.0, 0.0, 0.0])
    """

    __slots__ = ()

    @property
    def angular(self) -> Array:
        """ω, rad/s for a velocity."""
        return self.array[:3]

    @property
    def linear(self) -> Array:
        """v_O, velocity of the body-fixed point at the origin of coordinates."""
        return self.array[3:]

    _line = angular
    _moment = linear

    def _assemble(self, line: Array, moment: Array) -> Motion:
        return Motion._of(np.concatenate([line, moment]))

    def velocity_at(self, point: ArrayLike) -> Array:
        """Velocity of the body-fixed point now at P: v_O + ω × OP (Eq 2.1)."""
        return self.linear + np.cross(self.angular, real_array(point, "point", (3,)))

    def dot(self, force: Force) -> float:
        """Scalar product with a force: power, if this is a velocity."""
        if not isinstance(force, Force):
            raise TypeError(
                f"dot: expected a Force, received {type(force).__name__}; "
                "motions multiply only forces"
            )
        return float(_k.dot(self.array, force.array))

    def cross(self, other: SpatialVector) -> Any:
        """Return v × m (a Motion) or v ×* f (a Force): the rate of a vector that moves with v."""
        out = np.empty(6, dtype=np.result_type(self.array, other.array))
        if isinstance(other, Motion):
            _k.cross_motion(self.array, other.array, out)
            return Motion._of(out)
        if isinstance(other, Force):
            _k.cross_force(self.array, other.array, out)
            return Force._of(out)
        raise TypeError(
            f"cross: expected a Motion or a Force, received {type(other).__name__}; "
            "wrap the array in the type that it stands for"
        )


class Force(SpatialVector):
    """Spatial force vector [n_O; f]: moment about the origin, and force.

    Examples
    --------
    >>> Force([0, 0, 0], [0, 1, 0]).moment_about([1, 0, 0])
    array([ 0.,  0., -1.])
    """

    __slots__ = ()

    @property
    def moment(self) -> Array:
        """n_O, moment about the origin of coordinates."""
        return self.array[:3]

    @property
    def force(self) -> Array:
        """Linear force f."""
        return self.array[3:]

    _line = force
    _moment = moment

    def _assemble(self, line: Array, moment: Array) -> Force:
        return Force._of(np.concatenate([moment, line]))

    def moment_about(self, point: ArrayLike) -> Array:
        """Moment about P: n_O + f × OP (Eq 2.6)."""
        return self.moment + np.cross(self.force, real_array(point, "point", (3,)))

    def dot(self, motion: Motion) -> float:
        """Scalar product with a motion."""
        if not isinstance(motion, Motion):
            raise TypeError(
                f"dot: expected a Motion, received {type(motion).__name__}; "
                "forces multiply only motions"
            )
        return float(_k.dot(motion.array, self.array))

    def cross(self, other: object) -> NoReturn:
        """Raise: a force is not a velocity, nothing moves with it."""
        raise TypeError(
            f"cross: expected a Motion on the left, received Force × {type(other).__name__}; "
            "write v.cross(f)"
        )


def crm(v: Motion) -> Array:
    """6×6 matrix of v × for motions, [ω× 0; v× ω×] (Eq 2.31).

    Examples
    --------
    >>> crm(Motion([0, 0, 1], [0, 0, 0]))[1, 0]
    np.float64(1.0)
    """
    if not isinstance(v, Motion):
        raise TypeError(f"crm: expected a Motion, received {type(v).__name__}; wrap the array")
    W, U = skew(v.angular), skew(v.linear)
    return np.block([[W, np.zeros((3, 3))], [U, W]])


def crf(v: Motion) -> Array:
    """6×6 matrix of v ×* for forces, −crm(v)ᵀ (Eq 2.32).

    Examples
    --------
    >>> v = Motion([1, 2, 3], [4, 5, 6])
    >>> np.array_equal(crf(v), -crm(v).T)
    True
    """
    return -crm(v).T


def spatial_from_classical(velocity: Motion, alpha: ArrayLike, acceleration: ArrayLike) -> Motion:
    """Spatial acceleration from classical angular and linear acceleration of the origin point.

    a = [ω̇; r̈ − ω × ṙ] (Eq 2.48): the velocity field's change at a fixed place.

    Examples
    --------
    >>> v = Motion([0, 0, 2], [0, 2, 0])  # steady rotation about an axis through (−1, 0, 0)
    >>> spatial_from_classical(v, [0, 0, 0], [-4, 0, 0])
    Motion([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    """
    linear = real_array(acceleration, "acceleration", (3,))
    return Motion(alpha, linear - np.cross(velocity.angular, velocity.linear))


def classical_from_spatial(velocity: Motion, acceleration: Motion) -> tuple[Array, Array]:
    """Classical (α, r̈) of the body-fixed point at the origin from a spatial acceleration.

    Examples
    --------
    >>> v = Motion([0, 0, 2], [0, 2, 0])
    >>> classical_from_spatial(v, Motion.zero())
    (array([0., 0., 0.]), array([-4.,  0.,  0.]))
    """
    turning = np.cross(velocity.angular, velocity.linear)
    return acceleration.angular.copy(), acceleration.linear + turning
