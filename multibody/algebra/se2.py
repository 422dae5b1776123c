"""Rigid displacements of the plane, SE(2): poses, exponential, adjoint (course notes, §3.1).

A pose X_AB = (θ, p) maps B coordinates of a point to A coordinates, p_A = R(θ) p_B + p. The angle
is kept as it is given, so that whole turns are counted. Twists are planar motions (ω, vx, vy), as
in `planar`, whose `Xpln` is the transform of motions from A to B.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import ROTATION_TOLERANCE, Array, ArrayLike, exact_array, one_precision, real_array
from ..checks import real_scalar as _real_scalar
from .se3 import Pose

__all__ = ["PlanarPose", "exp", "log"]


class PlanarPose:
    """Rigid displacement of the plane: a turn by `angle`, then a shift by `p`.

    Parameters
    ----------
    angle
        In radians, counterclockwise.
    p
        Origin of B in A.

    Examples
    --------
    >>> X_AB = PlanarPose(np.pi / 2, [1, 0])
    >>> (X_AB @ [1, 0]).round(12)
    array([1., 1.])
    >>> (X_AB @ X_AB.inverse()).isclose(PlanarPose.identity())
    True
    """

    __slots__ = ("angle", "p")
    __array_ufunc__ = None

    def __init__(self, angle: float, p: ArrayLike = (0.0, 0.0)) -> None:
        self.angle = _real_scalar(angle, "angle")
        exact_array(p, "p", (2,))
        self.p: Array = one_precision(p)[0]

    @classmethod
    def identity(cls) -> PlanarPose:
        """Pose that moves nothing."""
        return cls(0.0)

    @classmethod
    def from_matrix(cls, R: ArrayLike, p: ArrayLike = (0.0, 0.0)) -> PlanarPose:
        """Pose of a 2×2 rotation matrix; refuses reflections, and what is no rotation.

        Examples
        --------
        >>> PlanarPose.from_matrix([[0, 1], [1, 0]])
        Traceback (most recent call last):
            ...
        ValueError: R: expected a rotation with determinant 1, received determinant -1; it mirrors
        """
        A = exact_array(R, "R", (2, 2))
        determinant = float(np.linalg.det(A))
        if determinant < 0.0:
            raise ValueError(
                f"R: expected a rotation with determinant 1, received determinant "
                f"{determinant:.6g}; it mirrors"
            )
        if np.abs(A @ A.T - np.eye(2)).max() > ROTATION_TOLERANCE:
            raise ValueError(f"R: expected R·Rᵀ = 1, received {(A @ A.T).tolist()}; normalise it")
        return cls(float(np.arctan2(A[1, 0] - A[0, 1], A[0, 0] + A[1, 1])), p)

    @classmethod
    def from_homogeneous(cls, T: ArrayLike) -> PlanarPose:
        """Pose from a 3×3 matrix [R p; 0 1]."""
        T = exact_array(T, "T", (3, 3))
        if not np.allclose(T[2], [0.0, 0.0, 1.0], rtol=0, atol=1e-12):
            raise ValueError(f"T: expected last row (0, 0, 1), received {T[2]}; transpose it?")
        return cls.from_matrix(T[:2, :2], T[:2, 2])

    @property
    def R(self) -> Array:
        """Active rotation B → A, 2×2."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.array([[c, -s], [s, c]], dtype=self.p.dtype)

    def homogeneous(self) -> Array:
        """3×3 matrix [R p; 0 1]."""
        T = np.eye(3, dtype=self.p.dtype)
        T[:2, :2], T[:2, 2] = self.R, self.p
        return T

    def inverse(self) -> PlanarPose:
        """Pose (−θ, −Rᵀp)."""
        return PlanarPose(-self.angle, -(self.R.T @ self.p))

    def compose(self, other: PlanarPose) -> PlanarPose:
        """Pose X_AC = X_AB X_BC."""
        return PlanarPose(self.angle + other.angle, self.p + self.R @ other.p)

    def act(self, quantity: Any) -> Any:
        """From B to A: poses, or points as arrays of shape (..., 2)."""
        if isinstance(quantity, PlanarPose):
            return self.compose(quantity)
        return real_array(quantity, "points", (2,)) @ self.R.T + self.p

    def act_inverse(self, quantity: Any) -> Any:
        """From A to B, without forming the inverse."""
        if isinstance(quantity, PlanarPose):
            return self.inverse().compose(quantity)
        return (real_array(quantity, "points", (2,)) - self.p) @ self.R

    __mul__ = __matmul__ = act

    def adjoint(self) -> Array:
        """3×3 action on twists (ω, vx, vy), B → A; the inverse of `planar.Xpln(angle, p)`."""
        out = np.eye(3, dtype=self.p.dtype)
        out[1:, 1:] = self.R
        out[1:, 0] = [self.p[1], -self.p[0]]
        return out

    def embedded(self) -> Pose:
        """The same displacement in space, in the plane z = 0."""
        R = np.eye(3, dtype=self.p.dtype)
        R[:2, :2] = self.R
        return Pose(R, np.array([*self.p, 0.0], dtype=self.p.dtype))

    def isclose(self, other: PlanarPose, atol: float = 1e-12) -> bool:
        """Whether both move every point alike within atol; whole turns do not count."""
        return bool(np.allclose(self.homogeneous(), other.homogeneous(), rtol=0, atol=atol))

    def __repr__(self) -> str:
        return f"PlanarPose({self.angle}, {self.p.tolist()})"


def exp(xi: ArrayLike) -> PlanarPose:
    """Pose reached in unit time at constant twist (ω, vx, vy).

    Examples
    --------
    >>> exp([np.pi / 2, np.pi / 2, 0.0]).p.round(12)  # a quarter of a unit circle
    array([1., 1.])
    """
    w, x, y = exact_array(xi, "xi", (3,))
    a, b = _arc(w)
    return PlanarPose(w, [a * x - b * y, b * x + a * y])


def log(pose: PlanarPose) -> Array:
    """Twist whose exponential is the pose, with its angle as it is.

    Raises
    ------
    ValueError
        For whole turns with a shift, which no constant twist makes.

    Examples
    --------
    >>> log(exp([0.3, 1.0, 2.0])).round(12)
    array([0.3, 1. , 2. ])
    """
    a, b = _arc(pose.angle)
    size = a * a + b * b
    if size < 1e-24:
        if np.abs(pose.p).max() > 0.0:
            raise ValueError(
                f"log: no twist turns by whole turns ({pose.angle:.9g}) and shifts as well, by "
                f"{pose.p}; go there in two steps"
            )
        return np.array([pose.angle, 0.0, 0.0])
    x, y = pose.p
    return np.array([pose.angle, (a * x + b * y) / size, (a * y - b * x) / size])


def _arc(w: float) -> tuple[float, float]:
    """Return sin w / w and (1 − cos w) / w, the shift that a twist makes of its velocity."""
    half = 0.5 * w
    return float(np.sinc(w / np.pi)), float(np.sin(half) * np.sinc(half / np.pi))
