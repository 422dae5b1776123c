"""Rigid-body, articulated-body and inverse inertias as types (book, §2.13–2.15, §7.1, Table A.3).

An inertia maps motions to forces, so `I * v` is a `Force` and `I * f` raises. A `RigidInertia`
holds ten numbers (m, h = m c, rotational inertia at the origin); `CentralInertia` holds the same
body as (m, c, inertia about the centre of mass), whose change of frame is cheaper still (SE(3)
notes, §5). An `ArticulatedInertia` maps accelerations to forces and has no momentum or kinetic
energy. An `InverseInertia` maps forces to accelerations and may be singular.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import (
    INERTIA_TOLERANCE,
    Array,
    ArrayLike,
    assume,
    check_symmetric,
    exact_array,
    has_symbols,
    number,
    one_precision,
    real_scalar,
)
from ..kernels import inertia as _k
from ..kernels import spatial as _ks
from .orientation.rotations import skew, vex
from .plucker import Plucker, Transformable
from .spatial import Force, Motion

__all__ = [
    "ArticulatedInertia",
    "CentralInertia",
    "InverseInertia",
    "RigidInertia",
    "check_central_inertia",
    "mcI",
]

_LOWER = (np.array([0, 1, 1, 2, 2, 2]), np.array([0, 0, 1, 0, 1, 2]))


def _full(lower: Array) -> Array:
    """Symmetric 3×3 matrix of six numbers."""
    A = np.empty((3, 3), dtype=lower.dtype)
    A[_LOWER] = lower
    A.T[_LOWER] = lower
    return A


def check_central_inertia(value: ArrayLike, name: str = "I_C") -> Array:
    """Return an inertia about the centre of mass that some body can have, or raise.

    It must be symmetric, and its principal moments must be ≥ 0 and obey the triangle inequality
    (none exceeds the sum of the other two), up to rounding. A thin rod and a point are allowed.

    Examples
    --------
    >>> check_central_inertia(np.diag([1.0, 1.0, 3.0]))
    Traceback (most recent call last):
        ...
    ValueError: I_C: expected principal moments where none exceeds the sum of the other two, \
received [1. 1. 3.]; no distribution of mass has these, check units and axes
    """
    I = check_symmetric(value, name, 3)
    if has_symbols(I):
        assume(_is_possible, I)
        return (I + I.T) / 2
    moments = np.linalg.eigvalsh(I)
    slack = INERTIA_TOLERANCE * max(float(np.abs(moments).max()), 0.0)
    if moments[0] < -slack:
        raise ValueError(
            f"{name}: expected a positive semidefinite matrix, received principal moments "
            f"{moments}; check signs of the products of inertia (they are −∫xy dm)"
        )
    if moments[2] > moments[0] + moments[1] + slack:
        raise ValueError(
            f"{name}: expected principal moments where none exceeds the sum of the other two, "
            f"received {moments}; no distribution of mass has these, check units and axes"
        )
    return (I + I.T) / 2


def _is_possible(I: Array) -> Array:
    """Whether each of many central inertias passes the check above."""
    finite: Any = np.isfinite(I).all(axis=(1, 2))
    moments = np.linalg.eigvalsh(np.where(finite[:, None, None], I, 0.0))
    slack = INERTIA_TOLERANCE * np.abs(moments).max(axis=1)
    positive = moments[:, 0] >= -slack
    triangle = moments[:, 2] <= moments[:, 0] + moments[:, 1] + slack
    return np.asarray(finite & positive & triangle)


def _check_mass(m: ArrayLike) -> float:
    mass = real_scalar(m, "m")
    if mass < 0.0:
        raise ValueError(f"m: expected a mass ≥ 0, received {mass}; check the sign and the unit")
    return mass


def _refuse(operation: str, inertia: object, other: object) -> TypeError:
    return TypeError(
        f"{operation}: expected a Motion, received {type(inertia).__name__} with "
        f"{type(other).__name__}; an inertia maps motions to forces"
    )


class RigidInertia(Transformable):
    """Spatial inertia of a rigid body, ten numbers (m, h, lower triangle of I_O).

    Parameters
    ----------
    m
        Mass.
    h
        First moment of mass m c, with c the centre of mass in the frame's coordinates.
    I
        Rotational inertia about the frame's origin, 3×3.

    Examples
    --------
    >>> body = mcI(2.0, [1, 0, 0], np.diag([0.1, 0.1, 0.1]))
    >>> body * Motion([0, 0, 1], [0, 0, 0])
    Force([0.0, 0.0, 2.1], [0.0, 2.0, 0.0])
    >>> body.kinetic_energy(Motion([0, 0, 1], [0, 0, 0]))
    1.05
    """

    __slots__ = ("array",)
    __array_ufunc__ = None

    array: Array

    def __init__(self, m: float, h: ArrayLike, I: ArrayLike) -> None:
        mass = _check_mass(m)
        h = exact_array(h, "h", (3,))
        I = check_symmetric(I, "I", 3)
        if mass > 0.0:
            c = h / mass
            check_central_inertia(I + mass * skew(c) @ skew(c), "I about the centre of mass")
        elif np.any(h != 0.0):
            raise ValueError(
                f"h: expected zero for a body without mass, received {h}; "
                "give the body mass or put its centre at the origin"
            )
        self.array = np.concatenate([[mass], h, I[_LOWER]])

    @classmethod
    def unchecked(cls, m: float, h: Array, I: Array) -> RigidInertia:
        """Take numbers as they are, also those that no body has (files of other programs)."""
        return cls._of(np.concatenate([[m], h, I[_LOWER]]))

    @classmethod
    def _of(cls, array: Array) -> RigidInertia:
        self = object.__new__(cls)
        self.array = array
        return self

    @classmethod
    def zero(cls) -> RigidInertia:
        """Inertia of nothing: the neutral element of the sum."""
        return cls._of(np.zeros(10))

    @classmethod
    def from_parameters(cls, parameters: ArrayLike) -> RigidInertia:
        """Ten numbers (m, m c, Ixx, Iyx, Iyy, Izx, Izy, Izz), inertia at the origin."""
        p = exact_array(parameters, "parameters", (10,))
        return cls(number(p[0]), p[1:4], _full(p[4:]))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> RigidInertia:
        """Read (m, h, I) from a 6×6 matrix [I, h×; −h×, m 1], checking its structure.

        Examples
        --------
        >>> body = mcI(2.0, [1, 2, 3], np.diag([1.0, 1.2, 1.4]))
        >>> RigidInertia.from_matrix(body.matrix()).centre
        array([1., 2., 3.])
        """
        A = check_symmetric(matrix, "matrix", 6)
        found = cls(float(np.trace(A[3:, 3:]) / 3), vex(A[:3, 3:]), A[:3, :3])
        if not np.allclose(found.matrix(), A, rtol=0, atol=INERTIA_TOLERANCE * np.abs(A).max()):
            raise ValueError(
                "matrix: expected [I, h×; −h×, m 1], received a symmetric matrix with another "
                "structure; an articulated inertia needs ArticulatedInertia.from_matrix"
            )
        return found

    @property
    def mass(self) -> float:
        """Mass m."""
        return number(self.array[0])

    @property
    def moment(self) -> Array:
        """First moment of mass h = m c."""
        return self.array[1:4]

    @property
    def centre(self) -> Array:
        """Centre of mass c = h/m; raises for a massless body."""
        if self.mass == 0.0:
            raise ValueError("centre: expected a positive mass, received 0; it has no centre")
        return self.moment / self.mass

    @property
    def rotational(self) -> Array:
        """Rotational inertia about the origin, 3×3."""
        return _full(self.array[4:])

    @property
    def central(self) -> Array:
        """Rotational inertia about the centre of mass, 3×3: I_O + m c×c×."""
        C = skew(self.centre)
        return self.rotational + self.mass * C @ C

    def matrix(self) -> Array:
        """6×6 matrix [I, h×; −h×, m 1] (Eq 2.63)."""
        out = np.empty((6, 6), dtype=self.array.dtype)
        _k.rigid_to_matrix(self.array, out)
        return out

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Motion):
            out = np.empty(6, dtype=np.result_type(self.array, other.array))
            _k.rigid_apply(self.array, other.array, out)
            return Force._of(out)
        if isinstance(other, int | float | np.floating | np.integer):
            return self.__rmul__(float(other))
        raise _refuse("*", self, other)

    def __rmul__(self, factor: float) -> RigidInertia:
        value = real_scalar(factor, "factor")
        if value < 0.0:
            raise ValueError(f"factor: expected ≥ 0, received {value}; a mass cannot be negative")
        return self._of(value * self.array)

    def __add__(self, other: RigidInertia) -> RigidInertia:
        if isinstance(other, RigidInertia):
            return self._of(self.array + other.array)
        if isinstance(other, ArticulatedInertia):
            return NotImplemented
        raise TypeError(
            f"+: expected a RigidInertia, received {type(other).__name__}; "
            "inertias add only to inertias, in the same frame"
        )

    def momentum(self, velocity: Motion) -> Force:
        """Spatial momentum I v (Eq 2.61)."""
        force: Force = self * velocity
        return force

    def kinetic_energy(self, velocity: Motion) -> float:
        """Kinetic energy ½ v·Iv (Eq 2.67)."""
        return 0.5 * velocity.dot(self.momentum(velocity))

    def bias(self, velocity: Motion) -> Force:
        """Bias force v ×* I v (Eq 2.68): the force at zero spatial acceleration."""
        out = np.empty(6, dtype=np.result_type(self.array, velocity.array))
        _k.rigid_bias(self.array, velocity.array, out)
        return Force._of(out)

    def inverse(self) -> InverseInertia:
        """Inverse inertia Φ, from the central inertia (Eq 2.74), without inverting 6×6.

        Examples
        --------
        >>> body = mcI(2.0, [1, 2, 3], np.diag([1.0, 1.2, 1.4]))
        >>> np.allclose(body.inverse().matrix @ body.matrix(), np.eye(6))
        True
        """
        values = np.linalg.eigvalsh(self.central)
        if self.mass == 0.0 or values[0] <= INERTIA_TOLERANCE * values[2]:
            raise ValueError(
                f"inverse: expected m > 0 and a positive definite central inertia, received "
                f"m = {self.mass} and principal moments {values}; a point or a line has no inverse"
            )
        inner = np.linalg.solve(self.central, np.eye(3))
        inner = (inner + inner.T) / 2
        C = skew(self.centre)
        lower = C @ inner
        corner = np.eye(3) / self.mass + C @ inner @ C.T
        return InverseInertia(np.block([[inner, lower.T], [lower, (corner + corner.T) / 2]]))

    def _transformed(self, E: Array, r: Array) -> RigidInertia:
        out = np.empty(10, dtype=np.result_type(E, r, self.array))
        _k.rigid_transform(E, r, self.array, out)
        return self._of(out)

    def _transformed_back(self, E: Array, r: Array) -> RigidInertia:
        out = np.empty(10, dtype=np.result_type(E, r, self.array))
        _k.rigid_transform_inverse(E, r, self.array, out)
        return self._of(out)

    def isclose(self, other: RigidInertia, rtol: float = 0.0, atol: float = 1e-12) -> bool:
        """Whether the ten numbers agree within the tolerances."""
        return bool(np.allclose(self.array, other.array, rtol=rtol, atol=atol))

    def __repr__(self) -> str:
        return (
            f"RigidInertia(m={self.mass}, h={self.moment.tolist()}, I={self.rotational.tolist()})"
        )


def mcI(m: float, c: ArrayLike, I_C: ArrayLike) -> RigidInertia:
    """Rigid inertia from mass, centre of mass and inertia about the centre of mass (Table A.2).

    Examples
    --------
    >>> mcI(2.0, [0, 0, 1], np.eye(3)).rotational
    array([[3., 0., 0.],
           [0., 3., 0.],
           [0., 0., 1.]])
    """
    mass, dtype = _check_mass(m), one_precision(c, I_C)[0].dtype
    c = exact_array(c, "c", (3,))
    I = check_central_inertia(I_C)
    C = skew(c)
    ten = np.concatenate([[mass], mass * c, (I + mass * C @ C.T)[_LOWER]])
    return RigidInertia._of(ten if has_symbols(ten) else ten.astype(dtype))


@dataclass(frozen=True, eq=False)
class CentralInertia:
    """The triplet (m, c, I_C) of the SE(3) notes, §5; poses act on it part by part.

    Make one with `CentralInertia.checked`, or from `RigidInertia` by `from_rigid`.

    Examples
    --------
    >>> p = CentralInertia.checked(1.0, [1, 0, 0], np.eye(3))
    >>> q = CentralInertia.checked(3.0, [-1, 0, 0], np.eye(3))
    >>> (p + q).centre
    array([-0.5,  0. ,  0. ])
    """

    mass: float
    centre: Array
    central: Array
    """Inertia about the centre of mass, in the axes of the frame."""

    @classmethod
    def checked(cls, m: float, c: ArrayLike, I_C: ArrayLike) -> CentralInertia:
        """Build from user data, refusing what no body has."""
        return cls(_check_mass(m), exact_array(c, "c", (3,)), check_central_inertia(I_C))

    @classmethod
    def from_rigid(cls, body: RigidInertia) -> CentralInertia:
        """Convert from (m, h, I_O)."""
        return cls(body.mass, body.centre, body.central)

    def rigid(self) -> RigidInertia:
        """Convert to (m, h, I_O)."""
        return mcI(self.mass, self.centre, self.central)

    def act(self, R: Array, p: Array) -> CentralInertia:
        """Move to frame A from frame B, with ᴬM_B = (R, p): (m, p + R c, R I_C Rᵀ)."""
        return CentralInertia(self.mass, p + R @ self.centre, R @ self.central @ R.T)

    def act_inverse(self, R: Array, p: Array) -> CentralInertia:
        """Move to frame B from frame A, without the inverse: (m, Rᵀ(c − p), Rᵀ I_C R)."""
        return CentralInertia(self.mass, R.T @ (self.centre - p), R.T @ self.central @ R)

    def __add__(self, other: object) -> CentralInertia:
        """Sum of two bodies: I = I_p + I_q − (m_p m_q/m) [(p−q)×]²."""
        if not isinstance(other, CentralInertia):
            raise TypeError(
                f"+: expected a CentralInertia, received {type(other).__name__}; convert it first"
            )
        m = self.mass + other.mass
        if m == 0.0:
            raise ValueError("+: expected a positive total mass, received 0; add mass to a body")
        c = (self.mass * self.centre + other.mass * other.centre) / m
        D = skew(self.centre - other.centre)
        return CentralInertia(
            m, c, self.central + other.central - (self.mass * other.mass / m) * D @ D
        )

    def bias(self, velocity: Motion) -> Force:
        """Return v ×* I v in the β form of the SE(3) notes, §6."""
        out = np.empty(6)
        _k.central_bias(self.mass, self.centre, self.central[_LOWER], velocity.array, out)
        return Force._of(out)


class ArticulatedInertia(Transformable):
    """Articulated-body inertia [I, H; Hᵀ, M]: acceleration of a handle → force on it.

    Examples
    --------
    >>> IA = ArticulatedInertia.from_rigid(mcI(2.0, [0, 0, 0], np.eye(3)))
    >>> IA * Motion([0, 0, 0], [1, 0, 0])
    Force([0.0, 0.0, 0.0], [2.0, 0.0, 0.0])
    """

    __slots__ = ("array",)
    __array_ufunc__ = None

    array: Array

    def __init__(self, M: ArrayLike, H: ArrayLike, I: ArrayLike) -> None:
        M, I = check_symmetric(M, "M", 3), check_symmetric(I, "I", 3)
        H = exact_array(H, "H", (3, 3))
        self.array = np.concatenate([M[_LOWER], H.ravel(), I[_LOWER]])
        full = self.matrix()
        values = np.linalg.eigvalsh(full)
        if values[0] < -INERTIA_TOLERANCE * max(values[-1], 0.0) or values[-1] < 0.0:
            raise ValueError(
                f"I^A: expected a positive semidefinite matrix, received smallest eigenvalue "
                f"{values[0]:.3g}; check the order of the blocks (M, H, I)"
            )

    @classmethod
    def _of(cls, array: Array) -> ArticulatedInertia:
        self = object.__new__(cls)
        self.array = array
        return self

    @classmethod
    def from_rigid(cls, body: RigidInertia) -> ArticulatedInertia:
        """Articulated inertia of a single body."""
        out = np.empty(21)
        _k.articulated_from_rigid(body.array, out)
        return cls._of(out)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> ArticulatedInertia:
        """Read the blocks of a symmetric 6×6 matrix [I, H; Hᵀ, M]."""
        A = check_symmetric(matrix, "matrix", 6)
        return cls(A[3:, 3:], A[:3, 3:], A[:3, :3])

    def matrix(self) -> Array:
        """6×6 matrix [I, H; Hᵀ, M]."""
        out = np.empty((6, 6))
        _k.articulated_to_matrix(self.array, out)
        return out

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Motion):
            out = np.empty(6)
            _k.articulated_apply(self.array, other.array, out)
            return Force._of(out)
        if isinstance(other, int | float | np.floating | np.integer):
            return self.__rmul__(float(other))
        raise _refuse("*", self, other)

    def __rmul__(self, factor: float) -> ArticulatedInertia:
        return self._of(real_scalar(factor, "factor") * self.array)

    def __add__(self, other: ArticulatedInertia | RigidInertia) -> ArticulatedInertia:
        out = np.empty(21)
        if isinstance(other, ArticulatedInertia):
            _ks.add(self.array, other.array, out)
        elif isinstance(other, RigidInertia):
            _k.articulated_add_rigid(self.array, other.array, out)
        else:
            raise TypeError(
                f"+: expected an inertia, received {type(other).__name__}; "
                "inertias add only to inertias, in the same frame"
            )
        return self._of(out)

    __radd__ = __add__

    def _transformed(self, E: Array, r: Array) -> ArticulatedInertia:
        out = np.empty(21)
        _k.articulated_transform(E, r, self.array, out)
        return self._of(out)

    def _transformed_back(self, E: Array, r: Array) -> ArticulatedInertia:
        out = np.empty(21)
        _k.articulated_transform_inverse(E, r, self.array, out)
        return self._of(out)

    def __repr__(self) -> str:
        return f"ArticulatedInertia.from_matrix({self.matrix().tolist()})"


class InverseInertia(Transformable):
    """Inverse inertia Φ: force → acceleration; its rank is the body's freedom (book, §2.15).

    Examples
    --------
    >>> slider = InverseInertia(np.diag([0, 0, 0, 0.5, 0, 0]))  # 2 kg, free along x only
    >>> slider * Force([0, 0, 0], [4, 1, 1])
    Motion([0.0, 0.0, 0.0], [2.0, 0.0, 0.0])
    >>> slider.freedom
    1
    """

    __slots__ = ("matrix",)
    __array_ufunc__ = None

    #: Singular values below this fraction of the largest count as zero in `freedom`.
    RANK_TOLERANCE = 1e-10

    def __init__(self, matrix: ArrayLike) -> None:
        self.matrix: Array = check_symmetric(matrix, "matrix", 6)
        values = np.linalg.eigvalsh(self.matrix)
        if values[0] < -INERTIA_TOLERANCE * max(values[-1], 0.0) or values[-1] < 0.0:
            raise ValueError(
                f"matrix: expected positive semidefinite, received smallest eigenvalue "
                f"{values[0]:.3g}; a force cannot push a body backwards"
            )

    def __mul__(self, force: Force) -> Motion:
        if not isinstance(force, Force):
            raise TypeError(
                f"*: expected a Force, received {type(force).__name__}; "
                "an inverse inertia maps forces to accelerations"
            )
        return Motion._of(self.matrix @ force.array)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the body: the rank of Φ."""
        values = np.linalg.eigvalsh(self.matrix)
        return int(np.sum(values > self.RANK_TOLERANCE * values[-1]))

    def _transformed(self, E: Array, r: Array) -> InverseInertia:
        X = Plucker._of(E, r).matrix()
        A = X @ self.matrix @ X.T
        return InverseInertia((A + A.T) / 2)

    def _transformed_back(self, E: Array, r: Array) -> InverseInertia:
        X = Plucker._of(E, r).inverse().matrix()
        A = X @ self.matrix @ X.T
        return InverseInertia((A + A.T) / 2)

    def __repr__(self) -> str:
        return f"InverseInertia({self.matrix.tolist()})"
