"""Twists and wrenches, linear first, after the screw notes; adapters to the spatial algebra.

A `Twist` is (v, ω) and a `Wrench` is (f, τ): the order of the screw notes and of the SE(3) notes,
kept apart by type from the angular-first `Motion` and `Force`. Velocities here are spatial:
Φ̇ Φ⁻¹ of a displacement Φ_AB = (R, r), so ω is in A axes and v = ṙ − ω × r is the velocity of the
body point now at A's origin.

Six primitive joints are named "rx", "ry", "rz", "px", "py", "pz": rotation about and translation
along an axis of the joint frame. Errata E10–E19 of the notes are observed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ..checks import (
    Array,
    ArrayLike,
    check_symmetric,
    exact_array,
    one_of,
    one_precision,
    real_array,
    real_scalar,
)
from ..kernels import screw as _k
from .inertia import CentralInertia, RigidInertia
from .orientation.rotations import skew, vex
from .se3 import Pose, angular_first, linear_first, matrix_linear_first
from .spatial import Force, Motion

__all__ = [
    "PRIMITIVE_JOINTS",
    "Twist",
    "Wrench",
    "ad",
    "ad_star",
    "adjoint",
    "coadjoint",
    "constraint_forces",
    "displacement_from_vector",
    "displacement_to_vector",
    "inertia_at",
    "inertia_from_ten",
    "inertia_from_thirteen",
    "inertia_to_ten",
    "inertia_to_thirteen",
    "influence_coefficient",
    "jacobian",
    "joint_force",
    "reciprocal_product",
    "spatial_twist",
    "transform_twists",
    "transform_wrenches",
]

PRIMITIVE_JOINTS = ("px", "py", "pz", "rx", "ry", "rz")


class _Screw:
    """Six numbers, linear first; screws of one kind add, and have real factors."""

    __slots__ = ("array",)
    __array_ufunc__ = None

    array: Array

    @classmethod
    def _of(cls: type[K], array: Array) -> K:
        self = object.__new__(cls)
        self.array = array
        return self

    @property
    def linear(self) -> Array:
        """First part: velocity v of a twist, force f of a wrench."""
        return self.array[:3]

    def _same(self, other: object, operation: str) -> None:
        if type(other) is not type(self):
            raise TypeError(
                f"{operation}: expected two of {type(self).__name__}, received "
                f"{type(self).__name__} and {type(other).__name__}; twists and wrenches share only "
                "the scalar product, a.dot(b)"
            )

    def __add__(self: K, other: K) -> K:
        self._same(other, "+")
        return self._of(self.array + other.array)

    def __sub__(self: K, other: K) -> K:
        self._same(other, "−")
        return self._of(self.array - other.array)

    def __neg__(self: K) -> K:
        return self._of(-self.array)

    def __mul__(self: K, factor: float) -> K:
        if isinstance(factor, _Screw) or np.ndim(factor):
            raise TypeError(
                f"*: expected a number, received {type(factor).__name__}; the power is a.dot(b)"
            )
        return self._of(self.array * real_scalar(factor, "factor"))

    __rmul__ = __mul__

    def __truediv__(self: K, divisor: float) -> K:
        return self._of(self.array / real_scalar(divisor, "divisor"))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(np.all(self.array == other.array))

    __hash__ = None  # type: ignore[assignment]

    def isclose(self: K, other: K, rtol: float = 0.0, atol: float = 1e-12) -> bool:
        """Whether all six numbers agree within the tolerances."""
        self._same(other, "isclose")
        return bool(np.allclose(self.array, other.array, rtol=rtol, atol=atol))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array[:3].tolist()}, {self.array[3:].tolist()})"

    def _moved(self: K, pose: Pose, action: Callable[..., None]) -> K:
        out = np.empty(6, dtype=np.result_type(pose.R, pose.p, self.array))
        action(pose.R, pose.p, self.array, out)
        return self._of(out)


K = TypeVar("K", bound=_Screw)


class Twist(_Screw):
    """Velocity screw (v, ω), linear first.

    Examples
    --------
    >>> Twist([1, 0, 0], [0, 0, 2]).motion()
    Motion([0.0, 0.0, 2.0], [1.0, 0.0, 0.0])
    >>> both = Twist([1, 0, 0], [0, 0, 2]) + 2 * Twist([0, 1, 0], [0, 0, 0])
    >>> both.linear, both.angular
    (array([1., 2., 0.]), array([0., 0., 2.]))
    """

    __slots__ = ()

    def __init__(self, linear: ArrayLike, angular: ArrayLike) -> None:
        exact_array(linear, "linear", (3,)), exact_array(angular, "angular", (3,))
        self.array = np.concatenate(one_precision(linear, angular))

    @property
    def angular(self) -> Array:
        """Angular velocity ω."""
        return self.array[3:]

    @classmethod
    def from_motion(cls, motion: Motion) -> Twist:
        """Convert from angular first."""
        return cls(motion.linear, motion.angular)

    def motion(self) -> Motion:
        """Convert to angular first."""
        return Motion(angular_first(self.array))

    def transformed(self, pose: Pose) -> Twist:
        """Express in A a twist given in B, pose = Φ_AB: 24 multiplications, 18 additions."""
        return self._moved(pose, _k.adjoint_action)

    def dot(self, wrench: Wrench) -> float:
        """Power: in this order of parts it is the plain dot product."""
        if not isinstance(wrench, Wrench):
            raise TypeError(
                f"dot: expected a Wrench, received {type(wrench).__name__}; twists multiply only "
                "wrenches"
            )
        return float(self.array @ wrench.array)


class Wrench(_Screw):
    """Force screw (f, τ), linear first; its parts are `linear` and `torque`.

    Examples
    --------
    >>> Wrench([1, 0, 0], [0, 0, 2]).force()
    Force([0.0, 0.0, 2.0], [1.0, 0.0, 0.0])
    >>> (Wrench([1, 0, 0], [0, 0, 2]) / 2).torque
    array([0., 0., 1.])
    """

    __slots__ = ()

    def __init__(self, force: ArrayLike, torque: ArrayLike) -> None:
        exact_array(force, "force", (3,)), exact_array(torque, "torque", (3,))
        self.array = np.concatenate(one_precision(force, torque))

    @property
    def torque(self) -> Array:
        """Torque τ about the origin."""
        return self.array[3:]

    @classmethod
    def from_force(cls, force: Force) -> Wrench:
        """Convert from angular first."""
        return cls(force.force, force.moment)

    def force(self) -> Force:
        """Convert to angular first."""
        return Force(angular_first(self.array))

    def transformed(self, pose: Pose) -> Wrench:
        """Express in A a wrench given in B, pose = Φ_AB."""
        return self._moved(pose, _k.coadjoint_action)

    def dot(self, twist: Twist) -> float:
        """Power."""
        if not isinstance(twist, Twist):
            raise TypeError(
                f"dot: expected a Twist, received {type(twist).__name__}; wrenches multiply only "
                "twists"
            )
        return twist.dot(self)


def reciprocal_product(wrench: ArrayLike, screw: ArrayLike) -> float:
    """Power of a wrench (f, τ) on a screw written the other way round, (ω, v).

    Examples
    --------
    >>> reciprocal_product([1, 2, 3, 4, 5, 6], [1, 0, 0, 0, 0, 1])  # τ·ω + f·v
    7.0
    """
    w, s = real_array(wrench, "wrench", (6,)), real_array(screw, "screw", (6,))
    return float(w @ linear_first(s))


def transform_twists(pose: Pose, twists: ArrayLike) -> Array:
    """Express in A many twists given in B, shape (..., 6), linear first, without a 6×6 matrix.

    Examples
    --------
    >>> transform_twists(Pose(np.eye(3), [1, 0, 0]), [[0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0]])
    array([[ 0., -1.,  0.,  0.,  0.,  1.],
           [ 1.,  0.,  0.,  0.,  0.,  0.]])
    """
    t = real_array(twists, "twists", (6,))
    v, w = t[..., :3] @ pose.R.T, t[..., 3:] @ pose.R.T
    return np.concatenate([v + np.cross(pose.p, w), w], axis=-1)


def transform_wrenches(pose: Pose, wrenches: ArrayLike) -> Array:
    """Express in A many wrenches given in B, shape (..., 6), linear first.

    Examples
    --------
    >>> transform_wrenches(Pose(np.eye(3), [1, 0, 0]), [0, 1, 0, 0, 0, 0])
    array([0., 1., 0., 0., 0., 1.])
    """
    s = real_array(wrenches, "wrenches", (6,))
    f, n = s[..., :3] @ pose.R.T, s[..., 3:] @ pose.R.T
    return np.concatenate([f, n + np.cross(pose.p, f)], axis=-1)


def adjoint(pose: Pose) -> Array:
    """[Ad] = [R r×R; 0 R], linear first, B → A (for study: applying it costs 2½ times more).

    Examples
    --------
    >>> adjoint(Pose.identity()).diagonal()
    array([1., 1., 1., 1., 1., 1.])
    """
    return matrix_linear_first(pose.adjoint())


def coadjoint(pose: Pose) -> Array:
    """[Ad]* = [R 0; r×R R] = [Ad]⁻ᵀ, linear first, B → A.

    Examples
    --------
    >>> X = Pose(np.eye(3), [1, 2, 3])
    >>> np.allclose(coadjoint(X).T @ adjoint(X), np.eye(6))
    True
    """
    return matrix_linear_first(pose.coadjoint())


def ad(twist: Twist) -> Array:
    """[ad] = [ω× v×; 0 ω×], linear first: the rate of [Ad] times its inverse.

    Examples
    --------
    >>> ad(Twist([0, 0, 0], [0, 0, 1]))[1, 0]
    np.float64(1.0)
    """
    v, w = skew(twist.array[:3]), skew(twist.array[3:])
    return np.block([[w, v], [np.zeros((3, 3)), w]])


def ad_star(twist: Twist) -> Array:
    """[ad]* = [ω× 0; v× ω×] = −[ad]ᵀ, linear first.

    Examples
    --------
    >>> t = Twist([1, 2, 3], [4, 5, 6])
    >>> np.array_equal(ad_star(t), -ad(t).T)
    True
    """
    return -ad(twist).T


def spatial_twist(R: ArrayLike, r: ArrayLike, R_dot: ArrayLike, r_dot: ArrayLike) -> Twist:
    """Twist of a moving displacement from Φ̇ Φ⁻¹: ω = vex(Ṙ Rᵀ), v = ṙ − ω × r.

    Examples
    --------
    >>> spatial_twist(np.eye(3), [1, 0, 0], skew([0, 0, 2.0]), [0, 2, 0])
    Twist([0.0, 0.0, 0.0], [0.0, 0.0, 2.0])
    """
    R = real_array(R, "R", (3, 3))
    omega = vex(real_array(R_dot, "R_dot", (3, 3)) @ R.T)
    r_dot = real_array(r_dot, "r_dot", (3,))
    return Twist(r_dot - np.cross(omega, real_array(r, "r", (3,))), omega)


def _column(joint: str) -> int:
    return PRIMITIVE_JOINTS.index(one_of(joint, "joint", PRIMITIVE_JOINTS))


def influence_coefficient(pose: Pose, joint: str) -> Twist:
    """Twist of a primitive joint at unit rate, seen from frame 0: one column of [Ad].

    Parameters
    ----------
    pose
        Φ_0a, the joint frame a in frame 0.
    joint
        One of `PRIMITIVE_JOINTS`.

    Notes
    -----
    Nine operations for a revolute joint, none for a prismatic one.

    Examples
    --------
    >>> influence_coefficient(Pose(np.eye(3), [1, 0, 0]), "rz")
    Twist([0.0, -1.0, 0.0], [0.0, 0.0, 1.0])
    """
    column = _column(joint)
    out = np.empty(6)
    kernel = _k.prismatic_influence if column < 3 else _k.revolute_influence
    kernel(pose.R, pose.p, column % 3, out)
    return Twist(out[:3], out[3:])


def jacobian(poses: list[Pose], joints: list[str]) -> Array:
    """6×n Jacobian of a chain, column-major: the influence coefficients side by side.

    Examples
    --------
    >>> jacobian([Pose.identity(), Pose(np.eye(3), [1, 0, 0])], ["rz", "rz"])[1]
    array([ 0., -1.])
    """
    if len(poses) != len(joints):
        raise ValueError(
            f"poses, joints: expected as many of each, received {len(poses)} and {len(joints)}; "
            "give every joint its pose"
        )
    J = np.empty((6, len(joints)), order="F")
    for n, (pose, joint) in enumerate(zip(poses, joints)):
        J[:, n] = influence_coefficient(pose, joint).array
    return J


def constraint_forces(pose: Pose, joint: str) -> Array:
    """Basis of the wrenches that a frictionless joint transmits: 6×5, columns of [Ad]*.

    Column n of [Ad]* belongs to the joint that moves along n and is left out; the others stay in
    order. They do no work: H*ᵀ h = 0 with h the influence coefficient (erratum E14).

    Examples
    --------
    >>> constraint_forces(Pose.identity(), "rz")[5]
    array([0., 0., 0., 0., 0.])
    """
    return np.delete(coadjoint(pose), _column(joint), axis=1)


def joint_force(pose: Pose, joint: str, wrench: Wrench) -> float:
    """Generalised force that a wrench exerts on the joint, hᵀ f; the same in every frame.

    Examples
    --------
    >>> joint_force(Pose(np.eye(3), [1, 0, 0]), "rz", Wrench([0, 2, 0], [0, 0, 0]))
    -2.0
    """
    return influence_coefficient(pose, joint).dot(wrench)


def displacement_to_vector(pose: Pose) -> Array:
    """Twelve numbers: R column by column, then r.

    Examples
    --------
    >>> displacement_to_vector(Pose(np.eye(3), [1, 2, 3]))[-3:]
    array([1., 2., 3.])
    """
    return np.concatenate([pose.R.ravel(order="F"), pose.p])


def displacement_from_vector(vector: ArrayLike) -> Pose:
    """Pose from twelve numbers: R column by column, then r.

    Examples
    --------
    >>> displacement_from_vector([1, 0, 0, 0, 1, 0, 0, 0, 1, 4, 5, 6]).p
    array([4., 5., 6.])
    """
    v = real_array(vector, "vector", (12,))
    return Pose(v[:9].reshape(3, 3, order="F"), v[9:])


# The notes list the six rotational terms as Ixx, Iyy, Izz, Ixy, Iyz, Izx.
_NOTES_ORDER = ([0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0])


def inertia_to_ten(body: RigidInertia) -> Array:
    """Ten numbers: m, m r (3), then Ixx, Iyy, Izz, Ixy, Iyz, Izx at the origin.

    Examples
    --------
    >>> from multibody.algebra.inertia import mcI
    >>> inertia_to_ten(mcI(2.0, [1, 0, 0], np.eye(3)))
    array([2., 2., 0., 0., 1., 3., 3., 0., 0., 0.])
    """
    I = body.rotational
    return np.concatenate([[body.mass], body.moment, I[_NOTES_ORDER]])


def inertia_from_ten(parameters: ArrayLike) -> RigidInertia:
    """Inverse of `inertia_to_ten`, with the checks of `RigidInertia`.

    Examples
    --------
    >>> inertia_from_ten([2, 2, 0, 0, 1, 3, 3, 0, 0, 0]).centre
    array([1., 0., 0.])
    """
    p = real_array(parameters, "parameters", (10,))
    I = np.empty((3, 3))
    I[_NOTES_ORDER] = p[4:]
    I.T[_NOTES_ORDER] = p[4:]
    return RigidInertia(float(p[0]), p[1:4], I)


def inertia_to_thirteen(body: RigidInertia) -> Array:
    """Ten numbers and −m r (3) after them, which saves sign changes in vector code.

    Examples
    --------
    >>> from multibody.algebra.inertia import mcI
    >>> inertia_to_thirteen(mcI(2.0, [1, 0, 0], np.eye(3)))[10:] + 0.0
    array([-2.,  0.,  0.])
    """
    return np.concatenate([inertia_to_ten(body), -body.moment])


def inertia_from_thirteen(parameters: ArrayLike) -> RigidInertia:
    """Inverse of `inertia_to_thirteen`; the last three numbers must repeat −m r.

    Examples
    --------
    >>> inertia_from_thirteen([2, 2, 0, 0, 1, 3, 3, 0, 0, 0, -2, 0, 0]).mass
    2.0
    """
    p = real_array(parameters, "parameters", (13,))
    if not np.array_equal(p[10:], -p[1:4]):
        raise ValueError(
            f"parameters: expected the last three to be {-p[1:4]}, received {p[10:]}; "
            "they repeat −m r"
        )
    return inertia_from_ten(p[:10])


def inertia_at(pose: Pose, m: float, r_bc: ArrayLike, I_c: ArrayLike) -> Array:
    """Linear-first 6×6 inertia in frame f of a body given in its own frame b.

    Parameters
    ----------
    pose
        Φ_fb.
    m, r_bc, I_c
        Mass, centre of mass in b, inertia about the centre of mass in b axes.

    Notes
    -----
    I_f = R I_c Rᵀ, r_fc = r_fb + R r_bc, t = m r_fc, then [m 1, −t×; t×, I_f − t×r_fc×] with
    t×r× = r tᵀ − (t·r) 1 (labels not_com_frame…result2; errata E15–E18).

    Examples
    --------
    >>> inertia_at(Pose.identity(), 2.0, [1, 0, 0], np.eye(3))[5, 5]
    np.float64(3.0)
    """
    body = CentralInertia.checked(m, r_bc, check_symmetric(I_c, "I_c", 3)).act(pose.R, pose.p)
    r = body.centre
    t = body.mass * r
    product = np.outer(r, t)
    product -= np.trace(product) * np.eye(3)
    T = skew(t)
    return np.block([[body.mass * np.eye(3), -T], [T, body.central - product]])
