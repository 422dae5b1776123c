"""The joints of the book's Table 4.1, made consistent, and its further examples.

Two entries of the printed table do not fit together: planar and 6-DoF joints have a constant S
but positions whose derivative is not v. Here positions are measured in the predecessor's frame
and velocities in the successor's, so S is constant and q̇ = Q(q) v.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from .._checks import Array, ArrayLike, real_scalar
from ..kernels.vectors import quaternion_to_transform
from .base import Joint, register, unit_columns

__all__ = [
    "AngleSequence",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Planar",
    "Prismatic",
    "RackPinion",
    "Revolute",
    "RollingSphere",
    "Spherical",
    "Universal",
]

ZERO3 = np.zeros(3)


def _rz(angle: Any) -> Any:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def _turned(E: Any, r: Any) -> list[Any]:
    """E r: the origin of the successor frame in its own axes."""
    return [E[i][0] * r[0] + E[i][1] * r[1] + E[i][2] * r[2] for i in range(3)]


def _twist(E: Any) -> list[Any]:
    """½ [E₂₃ − E₃₂, E₃₁ − E₁₃, E₁₂ − E₂₁]: the rotation vector of a small rotation."""
    return [0.5 * (E[1][2] - E[2][1]), 0.5 * (E[2][0] - E[0][2]), 0.5 * (E[0][1] - E[1][0])]


def _tilt(E: Any) -> list[Any]:
    """How far the two z axes are apart."""
    return [E[1][2], -E[0][2]]


def _turn_minus(angle: Any, E: Any) -> Any:
    """angle − θ reduced to one turn, where θ is the rotation about z; so θ may count turns."""
    theta = np.arctan2(E[0][1] - E[1][0], E[0][0] + E[1][1])
    return np.arctan2(np.sin(angle - theta), np.cos(angle - theta))


def _quaternion_transform(q: Any) -> Any:
    E = np.empty((3, 3), dtype=object if np.asarray(q).dtype == object else float)
    quaternion_to_transform(q, E)
    return E


def _quaternion_rate(q: Any, w: Any) -> list[Any]:
    """q̇ = ½ q ∘ (0, ω) for ω in body axes (book, Eq 4.13)."""
    return [
        0.5 * (-q[1] * w[0] - q[2] * w[1] - q[3] * w[2]),
        0.5 * (q[0] * w[0] - q[3] * w[1] + q[2] * w[2]),
        0.5 * (q[3] * w[0] + q[0] * w[1] - q[1] * w[2]),
        0.5 * (-q[2] * w[0] + q[1] * w[1] + q[0] * w[2]),
    ]


class Axial(Joint):
    """A joint whose X_J is a rotation about z by θ and a shift along z by d.

    `angle` and `shift` say which position variables these are: θ = angle·q, d = shift·q.
    The dynamics kernels know this form and need no law.
    """

    is_axial = True

    @property
    def angle(self) -> Array:
        """Coefficients of θ in the position variables."""
        return np.array([1.0 if g == "SO2" else 0.0 for g in self.groups])

    @property
    def shift(self) -> Array:
        """Coefficients of d in the position variables."""
        return np.array([1.0 if g == "R" else 0.0 for g in self.groups])

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Rotate about z, shift along z."""
        columns = np.zeros((6, self.nv))
        columns[2], columns[5] = self.angle, self.shift
        theta = sum(a * x for a, x in zip(self.angle, q))
        d = sum(a * x for a, x in zip(self.shift, q))
        return _rz(theta), np.array([0.0, 0.0, d]), columns, None, None


@register
class Revolute(Axial):
    """Rotation about an axis by the angle q.

    Examples
    --------
    >>> Revolute(axis="x")
    Revolute(axis=[1.0, 0.0, 0.0])
    """

    kind = "revolute"
    coordinates = speeds = ("angle",)
    units = (2,)
    groups = ("SO2",)

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Axes parallel, origins together."""
        return [*_tilt(E), *_turned(E, r)]

    def closure_side(self, t: Any, E: Any) -> Any:
        """Axes parallel, not antiparallel."""
        return E[2][2]


@register
class Prismatic(Axial):
    """Translation along an axis by the length q.

    Examples
    --------
    >>> Prismatic().motion([0.5]).X.r
    array([0. , 0. , 0.5])
    """

    kind = "prismatic"
    coordinates = speeds = ("shift",)
    units = (5,)
    groups = ("R",)

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """No rotation, origins on the axis."""
        return [*_twist(E), *_turned(E, r)[:2]]

    def closure_side(self, t: Any, E: Any) -> Any:
        """No rotation, instead of half a turn."""
        return E[0][0] + E[1][1] + E[2][2] - 1.0


@register
class Helical(Axial):
    """Screw: rotation by q and translation by pitch·q.

    Parameters
    ----------
    pitch
        Metres of advance for each radian.
    axis
        Direction of the screw.

    Examples
    --------
    >>> Helical(0.1).motion([0.0], [2.0]).v
    array([0. , 0. , 2. , 0. , 0. , 0.2])
    """

    kind = "helical"
    coordinates = speeds = ("angle",)
    groups = ("SO2",)
    arguments = ("pitch", "axis")

    def __init__(self, pitch: float, axis: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        super().__init__(axis)
        self.pitch = real_scalar(pitch, "pitch")

    @property
    def parameters(self) -> tuple[float, ...]:
        """The pitch."""
        return (self.pitch,)

    def law_key(self) -> Any:
        """Without pitch the joint closes as a hinge does."""
        return Helical, self.pitch == 0.0

    @property
    def shift(self) -> Array:
        """d = pitch·q."""
        return np.array([self.pitch])

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """As a cylindrical joint, and advance = pitch·angle up to whole turns of the thread."""
        u = _turned(E, r)
        if self.pitch == 0.0:
            return [*_tilt(E), *u]
        return [*_tilt(E), u[0], u[1], p[0] * _turn_minus(u[2] / p[0], E)]

    def closure_side(self, t: Any, E: Any) -> Any:
        """Axes parallel, not antiparallel."""
        return E[2][2]


@register
class Cylindrical(Axial):
    """Independent rotation about and translation along an axis; q = (angle, shift).

    Examples
    --------
    >>> Cylindrical().nv
    2
    """

    kind = "cylindrical"
    coordinates = speeds = ("angle", "shift")
    units = (2, 5)
    groups = ("SO2", "R")

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Axes parallel, origin on the axis."""
        return [*_tilt(E), *_turned(E, r)[:2]]

    def closure_side(self, t: Any, E: Any) -> Any:
        """Axes parallel, not antiparallel."""
        return E[2][2]


@register
class Planar(Joint):
    """Motion in the plane normal to an axis; q = (angle, x, y), v = (ω, v_x, v_y).

    x and y are measured in the predecessor's frame, v_x and v_y in the successor's, so that S is
    constant and q̇ = (ω, c v_x − s v_y, s v_x + c v_y). (The printed joint has q̇ = v, which is
    inconsistent with its S.) For an axis other than z the directions x and y follow it in cyclic
    order: for axis x they are y and z.

    Examples
    --------
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
        return _rz(q[0]), np.array([q[1], q[2], 0.0]), unit_columns(2, 3, 4), None, None

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Normals parallel, origin in the plane."""
        return [*_tilt(E), r[2]]

    def closure_side(self, t: Any, E: Any) -> Any:
        """Axes parallel, not antiparallel."""
        return E[2][2]

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """Turn the velocity into predecessor axes."""
        c, s = np.cos(q[0]), np.sin(q[0])
        return np.array([v[0], c * v[1] - s * v[2], s * v[1] + c * v[2]])


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
        return _quaternion_transform(q), ZERO3, unit_columns(0, 1, 2), None, None

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Origins together."""
        return _turned(E, r)

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """q̇ = ½ q ∘ ω."""
        return np.array(_quaternion_rate(q, v))


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
        return _quaternion_transform(q), q[4:7], np.eye(6), None, None

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """No constraint at all."""
        return []

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """q̇ = ½ q ∘ ω and ṗ = Eᵀ v."""
        E = _quaternion_transform(q)
        shift = [E[0, i] * v[3] + E[1, i] * v[4] + E[2, i] * v[5] for i in range(3)]
        return np.array([*_quaternion_rate(q, v), *shift])


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

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Frames together."""
        return [*_twist(E), *_turned(E, r)]

    def closure_side(self, t: Any, E: Any) -> Any:
        """No rotation, instead of half a turn."""
        return E[0][0] + E[1][1] + E[2][2] - 1.0


def _primitive(axis: str, angle: Any) -> Any:
    """Passive rotation about a coordinate axis, and the axis."""
    k = "xyz".index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s = np.cos(angle), np.sin(angle)
    E: list[list[Any]] = [[0.0] * 3 for _ in range(3)]
    E[k][k] = 1.0
    E[i][i] = E[j][j] = c
    E[i][j], E[j][i] = s, -s
    return np.array(E)


@register
class AngleSequence(Joint):
    """Ball joint (or less) by successive rotations about moving axes; v = q̇.

    Parameters
    ----------
    sequence
        Intrinsic axes in order, two or three of x, y, z, neighbours different: "zyx" is yaw,
        pitch, roll (book, Eq 4.7–4.9), "zxz" Euler's angles. Three angles have a singular
        position: at ±90° of the middle one if the axes differ, at 0 and 180° if the first
        repeats.
    axis
        Direction of the sequence's z axis.

    Examples
    --------
    >>> S = AngleSequence("zyx").motion([0.1, np.pi / 2, 0.3]).S
    >>> int(np.linalg.matrix_rank(S))  # gimbal lock
    2
    """

    kind = "angles"
    arguments: ClassVar[tuple[str, ...]] = ("sequence", "axis")

    def __init__(self, sequence: str = "zyx", axis: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        super().__init__(axis)
        valid = (
            isinstance(sequence, str)
            and 2 <= len(sequence) <= 3
            and set(sequence) <= set("xyz")
            and all(a != b for a, b in pairwise(sequence))
        )
        if not valid:
            raise ValueError(
                f"sequence: expected two or three of the letters x, y, z, neighbours different "
                f"(such as 'zyx'), received {sequence!r}"
            )
        self.sequence = sequence
        n = len(sequence)
        self.coordinates = self.speeds = tuple(f"angle_{i + 1}" for i in range(n))
        self.groups = ("SO2",) * n

    def law_key(self) -> Any:
        """One law for each sequence."""
        return AngleSequence, self.sequence

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Each axis turned by all later rotations; c from their mutual rotation."""
        n = self.nv
        E: Any = np.eye(3)  # later rotations, from the last axis inwards
        axes: list[Any] = []
        for k in range(n - 1, -1, -1):
            axes.insert(0, E @ np.eye(3)["xyz".index(self.sequence[k])])
            E = E @ _primitive(self.sequence[k], q[k])
        c = np.zeros(3)
        for k in range(n):  # axis k is turned by the later rotations: Σ v_k s_k × Σ_{j>k} v_j s_j
            for j in range(k + 1, n):
                c = c + v[k] * v[j] * np.cross(axes[k], axes[j])
        zeros = [0.0, 0.0, 0.0]
        S = np.array([[*s, *zeros] for s in axes]).T
        return E, ZERO3, S, np.array([*c, *zeros]), None

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Origins together; of two axes, the first (in the predecessor) normal to the second."""
        if self.nv == 3:
            return _turned(E, r)
        first, second = ("xyz".index(letter) for letter in self.sequence)
        return [E[second][first], *_turned(E, r)]


@register
class Universal(AngleSequence):
    """Universal (Cardan, Hooke) joint: x in the predecessor, then y in the successor.

    The shafts lie along z in the neutral position.

    Examples
    --------
    >>> Universal().nv
    2
    """

    kind = "universal"
    arguments = ("axis",)

    def __init__(self, axis: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        super().__init__("xy", axis)


@register
class RackPinion(Joint):
    """A pinion (successor) rolls along the x axis of its rack by radius·q (book, Ex 4.6).

    Parameters
    ----------
    radius
        Of the pinion, in metres; 0 makes a revolute joint.
    axis
        Axis of the pinion.

    Examples
    --------
    >>> RackPinion(0.1).motion([0.0], [1.0]).v
    array([0. , 0. , 1. , 0.1, 0. , 0. ])
    """

    kind = "rack_pinion"
    coordinates = speeds = ("angle",)
    groups = ("SO2",)
    arguments = ("radius", "axis")

    def __init__(self, radius: float, axis: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        super().__init__(axis)
        self.radius = real_scalar(radius, "radius")

    @property
    def parameters(self) -> tuple[float, ...]:
        """The radius."""
        return (self.radius,)

    def law_key(self) -> Any:
        """Without radius the joint closes as a hinge does."""
        return RackPinion, self.radius == 0.0

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Rotate about z while the centre advances along the predecessor's x."""
        c, s, rho = np.cos(q[0]), np.sin(q[0]), p[0]
        S = np.array([[0.0, 0.0, 1.0, rho * c, -rho * s, 0.0]]).T
        square = v[0] * v[0]
        bias = np.array([0.0, 0.0, 0.0, -rho * s * square, -rho * c * square, 0.0])
        return _rz(q[0]), np.array([rho * q[0], 0.0, 0.0]), S, bias, None

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Axes parallel, centre on its line, advance = radius·angle up to whole turns."""
        if self.radius == 0.0:
            return [*_tilt(E), r[0], r[1], r[2]]
        return [*_tilt(E), p[0] * _turn_minus(r[0] / p[0], E), r[1], r[2]]

    def closure_side(self, t: Any, E: Any) -> Any:
        """Axes parallel, not antiparallel."""
        return E[2][2]


@register
class RollingSphere(Joint):
    """A sphere (successor, frame at its centre) rolls without slipping on the xy plane below.

    Nonholonomic: five position variables, three velocities. q = (unit quaternion, x, y), v = ω in
    successor axes; the centre is at height `radius` above the predecessor's xy plane.

    Examples
    --------
    >>> RollingSphere(0.5).position_rate([1, 0, 0, 0, 0, 0], [0, 2, 0])[4:] + 0.0
    array([1., 0.])
    """

    kind = "rolling_sphere"
    coordinates = ("w", "x", "y", "z", "p_x", "p_y")
    speeds = ("omega_x", "omega_y", "omega_z")
    groups = ("SO3", "R", "R")
    arguments = ("radius", "axis")

    def __init__(self, radius: float, axis: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        super().__init__(axis)
        self.radius = real_scalar(radius, "radius")
        if self.radius <= 0.0:
            raise ValueError(f"radius: expected a positive length, received {radius!r}")

    @property
    def parameters(self) -> tuple[float, ...]:
        """The radius."""
        return (self.radius,)

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """v of the centre is ω × ρn, with n = E e_z the upward normal in successor axes."""
        E = _quaternion_transform(q)
        n, rho = E[:, 2], p[0]
        zero = 0.0
        S = np.array(
            [
                [1.0, zero, zero],
                [zero, 1.0, zero],
                [zero, zero, 1.0],
                [zero, rho * n[2], -rho * n[1]],
                [-rho * n[2], zero, rho * n[0]],
                [rho * n[1], -rho * n[0], zero],
            ]
        )
        # ṅ = −ω × n in successor axes, so c = [0; ω × ρṅ].
        n_dot = -np.cross(v, n)
        bias = rho * np.cross(v, n_dot)
        return E, np.array([q[4], q[5], rho]), S, np.array([0.0, 0.0, 0.0, *bias]), None

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Centre at the height of the radius."""
        return [r[2] - p[0]]

    def closure_rates(self, t: Any, E: Any, r: Any, v: Any, p: Any) -> list[Any]:
        """No slip: the velocity of the centre is ω × ρn; two components across the normal."""
        w = [E[0][i] * v[0] + E[1][i] * v[1] + E[2][i] * v[2] for i in range(3)]
        u = [E[0][i] * v[3] + E[1][i] * v[4] + E[2][i] * v[5] for i in range(3)]
        return [u[0] - p[0] * w[1], u[1] + p[0] * w[0]]

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """q̇ = ½ q ∘ ω; the centre moves with ρ (ω_y, −ω_x) in predecessor axes."""
        return np.array([*_quaternion_rate(q, v), *self._shift(q, v, p[0])])

    def _shift(self, q: Any, v: Any, rho: Any) -> list[Any]:
        E = _quaternion_transform(q)
        w = [E[0, i] * v[0] + E[1, i] * v[1] + E[2, i] * v[2] for i in range(2)]
        return [rho * w[1], -rho * w[0]]

    def group_velocity(self, t: Any, q: Any, v: Any) -> Any:
        """Angular velocity, and the velocity of the centre."""
        return np.array([*v, *self._shift(q, v, self.radius)])
