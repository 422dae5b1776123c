"""Plücker transforms of spatial vectors, and the book's functions that make them.

`Plucker(E, r)` is the transform X_BA from A to B coordinates: E rotates A coordinates into B, r is
the origin of B in A (book, §2.8, §A.3–A.4). Functions carry the book's names (Tables 2.2, A.2):
rx, ry, rz (3×3, passive), rot, xlt, rotx, roty, rotz, scrx, scry, scrz (transforms), XtoV.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..checks import Array, ArrayLike, check_rotation, one_of, one_precision, real_array
from ..kernels import spatial as _k
from .orientation.rotations import primitive, skew, vex
from .spatial import Motion, SpatialVector

__all__ = [
    "Plucker",
    "Transformable",
    "XtoV",
    "rot",
    "rotx",
    "roty",
    "rotz",
    "rx",
    "ry",
    "rz",
    "scrx",
    "scry",
    "scrz",
    "transform_dyadic",
    "xlt",
]


class Transformable:
    """What a `Plucker` can carry to another frame besides vectors: the inertias.

    Examples
    --------
    >>> from multibody.algebra.inertia import mcI
    >>> isinstance(mcI(1.0, [0, 0, 0], np.eye(3)), Transformable)
    True
    """

    __slots__ = ()

    def _transformed(self, E: Array, r: Array) -> Any:
        """Return the same quantity in B coordinates."""
        raise NotImplementedError

    def _transformed_back(self, E: Array, r: Array) -> Any:
        """Return the same quantity in A coordinates."""
        raise NotImplementedError


class Plucker:
    """Plücker transform X_BA = (E, r) from A to B coordinates (book, Eq 2.24, Table A.3 plx).

    Parameters
    ----------
    E
        Coordinate transform A → B, 3×3 rotation (the transpose of the active rotation).
    r
        Origin of B in A coordinates.

    Examples
    --------
    >>> from multibody.algebra.spatial import Force
    >>> X_BA = rotz(np.pi / 2) * xlt([1, 0, 0])
    >>> (X_BA * Motion([0, 0, 1], [0, 0, 0])).array.round(12) + 0.0
    array([0., 0., 1., 1., 0., 0.])
    >>> X_BA.apply_inverse(X_BA * Force([1, 2, 3], [4, 5, 6])).array.round(12)
    array([1., 2., 3., 4., 5., 6.])
    """

    __slots__ = ("E", "r")
    __array_ufunc__ = None

    def __init__(self, E: ArrayLike, r: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        self.E: Array
        self.r: Array
        check_rotation(E, "E"), real_array(r, "r", (3,))
        self.E, self.r = one_precision(E, r)
        if self.E.shape != (3, 3) or self.r.shape != (3,):
            raise ValueError(
                f"Plucker: expected E of shape (3, 3) and r of shape (3,), received "
                f"{self.E.shape} and {self.r.shape}; make one transform at a time"
            )

    @classmethod
    def _of(cls, E: Array, r: Array) -> Plucker:
        self = object.__new__(cls)
        self.E, self.r = E, r
        return self

    @classmethod
    def identity(cls) -> Plucker:
        """Transform that changes nothing."""
        return cls._of(np.eye(3), np.zeros(3))

    @classmethod
    def from_matrix(cls, X: ArrayLike) -> Plucker:
        """Read (E, r) from a 6×6 motion transform [E 0; −E r× E].

        Examples
        --------
        >>> Plucker.from_matrix(xlt([1, 2, 3]).matrix()).r
        array([1., 2., 3.])
        """
        X = real_array(X, "X", (6, 6))
        E = check_rotation(X[:3, :3], "X[:3, :3]")
        moment = -E.T @ X[3:, :3]
        result = cls(E, vex(moment))
        if not np.allclose(result.matrix(), X, rtol=0, atol=1e-6 * (1 + np.abs(X).max())):
            raise ValueError(
                "X: expected [E 0; −E r× E] with equal diagonal blocks and skew r×, received "
                "another 6×6 matrix; a force transform is the inverse transpose"
            )
        return result

    def matrix(self) -> Array:
        """6×6 motion transform X."""
        return np.block([[self.E, np.zeros_like(self.E)], [-self.E @ skew(self.r), self.E]])

    def force_matrix(self) -> Array:
        """6×6 force transform X* = X⁻ᵀ (Eq 2.25)."""
        return np.block([[self.E, -self.E @ skew(self.r)], [np.zeros_like(self.E), self.E]])

    def homogeneous(self) -> Array:
        """4×4 transform of points, [E, −E r; 0, 1] (Eq 2.28)."""
        return np.block(
            [[self.E, -(self.E @ self.r)[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]]
        )

    def inverse(self) -> Plucker:
        """Transform X_AB back to A coordinates."""
        dtype = np.result_type(self.E, self.r)
        E, r = np.empty((3, 3), dtype=dtype), np.empty(3, dtype=dtype)
        _k.invert(self.E, self.r, E, r)
        return Plucker._of(E, r)

    def apply(self, quantity: Any) -> Any:
        """Transform from A to B: Xm, X*f, X*IX⁻¹ or X₁X₂, by the type of the quantity."""
        if isinstance(quantity, SpatialVector):
            out = np.empty(6, dtype=np.result_type(self.E, self.r, quantity.array))
            kernel = _k.motion_transform if isinstance(quantity, Motion) else _k.force_transform
            kernel(self.E, self.r, quantity.array, out)
            return type(quantity)._of(out)
        if isinstance(quantity, Plucker):
            dtype = np.result_type(self.E, self.r, quantity.E, quantity.r)
            E, r = np.empty((3, 3), dtype=dtype), np.empty(3, dtype=dtype)
            _k.compose(self.E, self.r, quantity.E, quantity.r, E, r)
            return Plucker._of(E, r)
        if isinstance(quantity, Transformable):
            return quantity._transformed(self.E, self.r)
        raise _not_spatial("apply", quantity)

    def apply_inverse(self, quantity: Any) -> Any:
        """Transform from B back to A without forming the inverse: X⁻¹m, Xᵀf, XᵀIX, X₁⁻¹X₂."""
        if isinstance(quantity, SpatialVector):
            out = np.empty(6, dtype=np.result_type(self.E, self.r, quantity.array))
            kernel = (
                _k.motion_transform_inverse
                if isinstance(quantity, Motion)
                else _k.force_transform_inverse
            )
            kernel(self.E, self.r, quantity.array, out)
            return type(quantity)._of(out)
        if isinstance(quantity, Plucker):
            return Plucker._of(self.E.T @ quantity.E, quantity.r - quantity.E.T @ (self.E @ self.r))
        if isinstance(quantity, Transformable):
            return quantity._transformed_back(self.E, self.r)
        raise _not_spatial("apply_inverse", quantity)

    __mul__ = apply

    def isclose(self, other: Plucker, atol: float = 1e-12) -> bool:
        """Whether both parts agree within atol."""
        return bool(
            np.allclose(self.E, other.E, rtol=0, atol=atol)
            and np.allclose(self.r, other.r, rtol=0, atol=atol)
        )

    def __repr__(self) -> str:
        return f"Plucker(E={self.E.tolist()}, r={self.r.tolist()})"


def _not_spatial(operation: str, quantity: object) -> TypeError:
    return TypeError(
        f"{operation}: expected a Motion, Force, inertia or Plucker, received "
        f"{type(quantity).__name__}; wrap the array in the type that it stands for"
    )


def rx(angle: ArrayLike) -> Array:
    """Coordinate transform to a frame rotated about x (passive; Table 2.2): Rx(θ)ᵀ.

    Examples
    --------
    >>> rx(np.pi / 2).round(12) + 0.0
    array([[ 1.,  0.,  0.],
           [ 0.,  0.,  1.],
           [ 0., -1.,  0.]])
    """
    return np.swapaxes(primitive(0, angle), -1, -2)


def ry(angle: ArrayLike) -> Array:
    """Coordinate transform to a frame rotated about y (passive; Table 2.2): Ry(θ)ᵀ.

    Examples
    --------
    >>> float(ry(np.pi / 2)[2, 0])
    1.0
    """
    return np.swapaxes(primitive(1, angle), -1, -2)


def rz(angle: ArrayLike) -> Array:
    """Coordinate transform to a frame rotated about z (passive; Table 2.2): Rz(θ)ᵀ.

    Examples
    --------
    >>> float(rz(np.pi / 2)[0, 1])
    1.0
    """
    return np.swapaxes(primitive(2, angle), -1, -2)


def rot(E: ArrayLike) -> Plucker:
    """Plücker transform of a pure rotation.

    Examples
    --------
    >>> np.array_equal(rot(rz(0.3)).matrix(), rot(rz(0.3)).force_matrix())
    True
    """
    return Plucker(E)


def xlt(r: ArrayLike) -> Plucker:
    """Plücker transform of a pure translation: B has its origin at r.

    Examples
    --------
    >>> xlt([0, 1, 0]) * Motion([0, 0, 1], [0, 0, 0])
    Motion([0.0, 0.0, 1.0], [-1.0, 0.0, 0.0])
    """
    return Plucker(np.eye(3), r)


def rotx(angle: float) -> Plucker:
    """Plücker transform to a frame rotated about x.

    Examples
    --------
    >>> rotx(0.2).isclose(rotx(0.5) * rotx(-0.3))
    True
    """
    return Plucker(rx(angle))


def roty(angle: float) -> Plucker:
    """Plücker transform to a frame rotated about y.

    Examples
    --------
    >>> roty(0.2).isclose(roty(0.5) * roty(-0.3))
    True
    """
    return Plucker(ry(angle))


def rotz(angle: float) -> Plucker:
    """Plücker transform to a frame rotated about z.

    Examples
    --------
    >>> rotz(0.2).isclose(rotz(0.5) * rotz(-0.3))
    True
    """
    return Plucker(rz(angle))


def scrx(angle: float, distance: float) -> Plucker:
    """Axial screw about and along x (§A.4); the cheap kernels are in `kernels.axial`.

    Examples
    --------
    >>> scrx(0.3, 0.1).isclose(xlt([0.1, 0, 0]) * rotx(0.3))
    True
    """
    return Plucker(rx(angle), [distance, 0.0, 0.0])


def scry(angle: float, distance: float) -> Plucker:
    """Axial screw about and along y (§A.4).

    Examples
    --------
    >>> scry(0.3, 0.1).isclose(xlt([0, 0.1, 0]) * roty(0.3))
    True
    """
    return Plucker(ry(angle), [0.0, distance, 0.0])


def scrz(angle: float, distance: float) -> Plucker:
    """Axial screw about and along z (§A.4).

    Examples
    --------
    >>> scrz(0.3, 0.1).isclose(xlt([0, 0, 0.1]) * rotz(0.3))
    True
    """
    return Plucker(rz(angle), [0.0, 0.0, distance])


def XtoV(X: Plucker) -> Motion:
    """Small-error velocity that carries frame A to frame B in unit time (Table A.2).

    Invariant under X, exact for translations, error O(θ²). Its angular part is n sin θ: beyond
    90° it shrinks again and vanishes at 180°. For large errors use `se3.log`, which is exact.

    Examples
    --------
    >>> XtoV(xlt([1, 2, 3]))
    Motion([0.0, 0.0, 0.0], [1.0, 2.0, 3.0])
    """
    M = X.matrix()
    parts = [(1, 2), (2, 0), (0, 1)]
    angular = [M[a, b] - M[b, a] for a, b in parts]
    linear = [M[4, 2] - M[5, 1], M[5, 0] - M[3, 2], M[3, 1] - M[4, 0]]
    return Motion._of(np.array([*angular, *linear]) / 2)


def transform_dyadic(X: Plucker, D: ArrayLike, mapping: Literal["MM", "FF", "MF", "FM"]) -> Array:
    """Transform a 6×6 dyadic from A to B coordinates (Table 2.5).

    Parameters
    ----------
    X
        Transform X_BA.
    D
        Matrix in A coordinates.
    mapping
        From-space and to-space: "MM" (v×), "FF" (v×*), "MF" (inertia), "FM" (inverse inertia).

    Notes
    -----
    MM and FF are similarity transforms (eigenvalues stay); MF and FM are congruences (symmetry
    and definiteness stay).

    Examples
    --------
    >>> from multibody.algebra.spatial import crm
    >>> v, X = Motion([1, 2, 3], [4, 5, 6]), scrx(0.3, 0.2)
    >>> np.allclose(transform_dyadic(X, crm(v), "MM"), crm(X * v))
    True
    """
    one_of(mapping, "mapping", ("MM", "FF", "MF", "FM"))
    D = real_array(D, "D", (6, 6))
    to = X.matrix() if mapping[1] == "M" else X.force_matrix()
    back = X.inverse()
    return to @ D @ (back.matrix() if mapping[0] == "M" else back.force_matrix())
