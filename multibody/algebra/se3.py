"""Rigid displacements SE(3): poses, their actions, exponential map, adjoints and Jacobians.

A pose X_AB = (R, p) maps B coordinates of a point to A coordinates, p_A = R p_B + p; R is active
(its columns are the axes of B in A). The dynamics book's transform X_BA = (E, r) is the same
displacement with E = Rᵀ and r = p. 6-vectors are angular first, as everywhere here; functions
named `*_linear_first` convert for the SE(3) and screw notes, which put the linear part first.

Sources: SE(3) notes §1–6; screw notes (adjoints). The Jacobians of the exponential are not in the
documents; they follow from the series Σ adᵏ/(k+1)!, summed in closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Array, ArrayLike, check_rotation, one_precision, real_array
from .inertia import CentralInertia
from .orientation import rotations
from .orientation.half_angle import c_cos2, c_mix, c_sin2
from .orientation.rotations import skew
from .plucker import Plucker, Transformable
from .points import Point, Vector
from .spatial import Force, Motion

__all__ = [
    "Pose",
    "ad",
    "ad_star",
    "angular_first",
    "exp",
    "left_jacobian",
    "left_jacobian_inverse",
    "linear_first",
    "log",
    "matrix_angular_first",
    "matrix_linear_first",
    "right_jacobian",
    "right_jacobian_inverse",
]


class Pose:
    """Rigid displacement (R, p): p_A = R p_B + p.

    Parameters
    ----------
    R
        Active rotation B → A, 3×3.
    p
        Origin of B in A.

    Examples
    --------
    >>> X_AB = Pose(rotations.Rz(np.pi / 2), [1, 0, 0])
    >>> X_AB.act([1, 0, 0]).round(12)
    array([1., 1., 0.])
    >>> X_AB.act_inverse(X_AB.act([1, 2, 3])).round(12)
    array([1., 2., 3.])
    """

    __slots__ = ("R", "p")
    __array_ufunc__ = None

    def __init__(self, R: ArrayLike, p: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        self.R: Array
        self.p: Array
        check_rotation(R), real_array(p, "p", (3,))
        self.R, self.p = one_precision(R, p)
        if self.R.shape != (3, 3) or self.p.shape != (3,):
            raise ValueError(
                f"Pose: expected R of shape (3, 3) and p of shape (3,), received {self.R.shape} "
                f"and {self.p.shape}; make one pose at a time"
            )

    @classmethod
    def _of(cls, R: Array, p: Array) -> Pose:
        self = object.__new__(cls)
        self.R, self.p = R, p
        return self

    @classmethod
    def identity(cls) -> Pose:
        """Pose that moves nothing."""
        return cls._of(np.eye(3), np.zeros(3))

    @classmethod
    def from_featherstone(cls, E: ArrayLike, r: ArrayLike) -> Pose:
        """Pose from the book's (E, r): R = Eᵀ, p = r.

        Examples
        --------
        >>> from multibody.algebra.plucker import rz
        >>> np.allclose(Pose.from_featherstone(rz(0.3), [1, 2, 3]).R, rotations.Rz(0.3))
        True
        """
        return cls(check_rotation(E, "E").T, r)

    @classmethod
    def from_homogeneous(cls, T: ArrayLike) -> Pose:
        """Pose from a 4×4 matrix [R p; 0 1]."""
        T = real_array(T, "T", (4, 4))
        if not np.allclose(T[3], [0.0, 0.0, 0.0, 1.0], rtol=0, atol=1e-12):
            raise ValueError(f"T: expected last row (0, 0, 0, 1), received {T[3]}; transpose it?")
        return cls(T[:3, :3], T[:3, 3])

    def to_plucker(self) -> Plucker:
        """Transform X_BA = (Rᵀ, p) of spatial vectors from A to B coordinates."""
        return Plucker._of(self.R.T.copy(), self.p.copy())

    def homogeneous(self) -> Array:
        """4×4 matrix [R p; 0 1]."""
        T = np.eye(4, dtype=np.result_type(self.R, self.p))
        T[:3, :3], T[:3, 3] = self.R, self.p
        return T

    def inverse(self) -> Pose:
        """Pose (Rᵀ, −Rᵀ p)."""
        return Pose._of(self.R.T.copy(), -(self.R.T @ self.p))

    def compose(self, other: Pose) -> Pose:
        """Pose X_AC = X_AB X_BC: (R_AB R_BC, p_AB + R_AB p_BC)."""
        return Pose._of(self.R @ other.R, self.p + self.R @ other.p)

    def inverse_compose(self, other: Pose) -> Pose:
        """Pose X_BC = X_AB⁻¹ X_AC without forming the inverse: (Rᵀ R′, Rᵀ (p′ − p))."""
        return Pose._of(self.R.T @ other.R, self.R.T @ (other.p - self.p))

    def act(self, quantity: Any) -> Any:
        """From B to A, also written ``X_AB @ quantity`` or ``X_AB * quantity``.

        Takes points (`Point`, or arrays of shape (..., 3)), `Vector`, which only turns, motions,
        forces, inertias and poses.

        Examples
        --------
        >>> X_AB = Pose(rotations.Rz(np.pi / 2), [1, 0, 0])
        >>> (X_AB @ Point([1, 0, 0])).array.round(12), (X_AB @ Vector([1, 0, 0])).array.round(12)
        (array([1., 1., 0.]), array([0., 1., 0.]))
        >>> (X_AB @ X_AB).p.round(12)
        array([1., 1., 0.])
        """
        if isinstance(quantity, Pose):
            return self.compose(quantity)
        if isinstance(quantity, Point):
            return Point(quantity.array @ self.R.T + self.p)
        if isinstance(quantity, Vector):
            return Vector(quantity.array @ self.R.T)
        if isinstance(quantity, CentralInertia):
            return quantity.act(self.R, self.p)
        if isinstance(quantity, Motion | Force | Transformable):
            return Plucker._of(self.R.T, self.p).apply_inverse(quantity)
        return real_array(quantity, "points", (3,)) @ self.R.T + self.p

    def act_inverse(self, quantity: Any) -> Any:
        """From A to B, without forming the inverse."""
        if isinstance(quantity, Pose):
            return self.inverse_compose(quantity)
        if isinstance(quantity, Point):
            return Point((quantity.array - self.p) @ self.R)
        if isinstance(quantity, Vector):
            return Vector(quantity.array @ self.R)
        if isinstance(quantity, CentralInertia):
            return quantity.act_inverse(self.R, self.p)
        if isinstance(quantity, Motion | Force | Transformable):
            return Plucker._of(self.R.T, self.p).apply(quantity)
        return (real_array(quantity, "points", (3,)) - self.p) @ self.R

    __mul__ = __matmul__ = act

    def adjoint(self) -> Array:
        """6×6 action on motions, B → A, angular first: [R 0; p×R R]."""
        return np.block([[self.R, np.zeros_like(self.R)], [skew(self.p) @ self.R, self.R]])

    def coadjoint(self) -> Array:
        """6×6 action on forces, B → A, angular first: [R p×R; 0 R] = adjoint⁻ᵀ."""
        return np.block([[self.R, skew(self.p) @ self.R], [np.zeros_like(self.R), self.R]])

    def isclose(self, other: Pose, atol: float = 1e-12) -> bool:
        """Whether both parts agree within atol."""
        return bool(
            np.allclose(self.R, other.R, rtol=0, atol=atol)
            and np.allclose(self.p, other.p, rtol=0, atol=atol)
        )

    def __repr__(self) -> str:
        return f"Pose(R={self.R.tolist()}, p={self.p.tolist()})"


def exp(xi: ArrayLike) -> Pose:
    """Pose reached in unit time at constant twist ξ = (ω, v): (exp ω, J_l(ω) v).

    Examples
    --------
    >>> exp([0, 0, np.pi / 2, np.pi / 2, 0, 0]).p.round(12)  # a quarter of a unit circle
    array([1., 1., 0.])
    """
    xi = real_array(xi, "xi", (6,))
    return Pose._of(rotations.exp(xi[:3]), rotations.left_jacobian(xi[:3]) @ xi[3:])


def log(pose: Pose) -> Array:
    """Twist (ω, v) with exp(ω, v) = pose and ‖ω‖ ≤ π; exact where `XtoV` is an approximation.

    Examples
    --------
    >>> log(exp([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])).round(12)
    array([0.1, 0.2, 0.3, 1. , 2. , 3. ])
    """
    omega = rotations.log(pose.R)
    return np.concatenate([omega, rotations.left_jacobian_inverse(omega) @ pose.p])


def ad(xi: ArrayLike) -> Array:
    """6×6 matrix of the Lie bracket, angular first: [ω× 0; v× ω×]; the book's crm.

    Examples
    --------
    >>> ad([0, 0, 1, 0, 0, 0])[1, 0]
    np.float64(1.0)
    """
    xi = real_array(xi, "xi", (6,))
    W, U = skew(xi[:3]), skew(xi[3:])
    return np.block([[W, np.zeros_like(W)], [U, W]])


def ad_star(xi: ArrayLike) -> Array:
    """Dual bracket −adᵀ, acting on forces; the book's crf.

    Examples
    --------
    >>> xi = np.arange(6.0)
    >>> np.array_equal(ad_star(xi), -ad(xi).T)
    True
    """
    return -ad(xi).T


def _coupling(omega: Array, v: Array) -> Array:
    """Lower-left block Q(ω, v) of the left Jacobian."""
    W, U = skew(omega), skew(v)
    theta = np.hypot(np.hypot(omega[0], omega[1]), omega[2])
    WU, UW = W @ U, U @ W
    WUW = WU @ W
    return (
        U / 2
        + c_sin2(theta) * (WU + UW + WUW)
        + c_cos2(theta) * (W @ WU + UW @ W - 3 * WUW)
        + c_mix(theta) * (WUW @ W + W @ WUW)
    )


def left_jacobian(xi: ArrayLike) -> Array:
    """Left Jacobian of exp: the spatial twist of exp(ξ(t)) is J_l(ξ) ξ̇, angular first.

    Examples
    --------
    >>> np.allclose(left_jacobian(np.zeros(6)), np.eye(6))
    True
    """
    xi = real_array(xi, "xi", (6,))
    J = rotations.left_jacobian(xi[:3])
    return np.block([[J, np.zeros_like(J)], [_coupling(xi[:3], xi[3:]), J]])


def right_jacobian(xi: ArrayLike) -> Array:
    """Right Jacobian J_l(−ξ): the body twist of exp(ξ(t)) is J_r(ξ) ξ̇.

    Examples
    --------
    >>> xi = np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    >>> np.allclose(exp(xi).adjoint() @ right_jacobian(xi), left_jacobian(xi))
    True
    """
    return left_jacobian(-real_array(xi, "xi", (6,)))


def left_jacobian_inverse(xi: ArrayLike) -> Array:
    """Inverse of the left Jacobian, block by block; singular at ‖ω‖ = 2πk, k ≥ 1.

    Examples
    --------
    >>> xi = np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    >>> np.allclose(left_jacobian_inverse(xi) @ left_jacobian(xi), np.eye(6))
    True
    """
    xi = real_array(xi, "xi", (6,))
    K = rotations.left_jacobian_inverse(xi[:3])
    return np.block([[K, np.zeros_like(K)], [-K @ _coupling(xi[:3], xi[3:]) @ K, K]])


def right_jacobian_inverse(xi: ArrayLike) -> Array:
    """Inverse of the right Jacobian.

    Examples
    --------
    >>> xi = np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    >>> np.allclose(right_jacobian_inverse(xi) @ right_jacobian(xi), np.eye(6))
    True
    """
    return left_jacobian_inverse(-real_array(xi, "xi", (6,)))


def linear_first(v: ArrayLike) -> Array:
    """Reorder 6-vectors (angular, linear) → (linear, angular), shape (..., 6).

    Examples
    --------
    >>> linear_first([1, 2, 3, 4, 5, 6])
    array([4., 5., 6., 1., 2., 3.])
    """
    return np.roll(real_array(v, "v", (6,)), 3, axis=-1)


def angular_first(v: ArrayLike) -> Array:
    """Reorder 6-vectors (linear, angular) → (angular, linear), shape (..., 6).

    Examples
    --------
    >>> angular_first([4, 5, 6, 1, 2, 3])
    array([1., 2., 3., 4., 5., 6.])
    """
    return linear_first(v)


def matrix_linear_first(A: ArrayLike) -> Array:
    """Reorder rows and columns of 6×6 matrices to linear first: Π A Π.

    Examples
    --------
    >>> matrix_linear_first(np.diag([1.0, 2, 3, 4, 5, 6])).diagonal()
    array([4., 5., 6., 1., 2., 3.])
    """
    return np.roll(real_array(A, "A", (6, 6)), (3, 3), axis=(-2, -1))


def matrix_angular_first(A: ArrayLike) -> Array:
    """Reorder rows and columns of linear-first 6×6 matrices to angular first: Π A Π.

    Examples
    --------
    >>> matrix_angular_first(np.diag([4.0, 5, 6, 1, 2, 3])).diagonal()
    array([1., 2., 3., 4., 5., 6.])
    """
    return matrix_linear_first(A)
