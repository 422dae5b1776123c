"""Joints that roll without slipping: a pinion on its rack, a sphere or a wheel on a plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import ArrayLike, real_scalar
from .base import SAMPLE_AXES, Joint, register
from .formulae import (
    quaternion_of,
    quaternion_rate,
    quaternion_transform,
    rz,
    tilt,
    turn,
    turn_minus,
)

__all__ = ["RackPinion", "RollingDisc", "RollingSphere"]


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
        return rz(q[0]), np.array([rho * q[0], 0.0, 0.0]), S, bias, None

    @classmethod
    def samples(cls) -> list[Joint]:
        """Pinions, and one without radius, which is a hinge."""
        return [cls(radius, axis) for radius in (0.3, 0.0) for axis in SAMPLE_AXES]

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The rotation about z; the advance tells which turn it is."""
        return [turn(E, near[0] if self.radius == 0.0 else r[0] / self.radius)]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Axes parallel, centre on its line, advance = radius·angle up to whole turns."""
        if self.radius == 0.0:
            return [*tilt(E), r[0], r[1], r[2]]
        return [*tilt(E), p[0] * turn_minus(r[0] / p[0], E), r[1], r[2]]

    def closure_side(self, t: Any, E: Any) -> Any:
        """Axes parallel, not antiparallel."""
        return E[2][2]


class _Rolling(Joint):
    """What is round and rolls without slipping on the predecessor's xy plane.

    Nonholonomic: six position variables, three velocities. q = (unit quaternion, x, y), with the
    place of the centre; v = ω in successor axes. With n, the upward normal in successor axes, and
    s(n), the arm from the point of contact to the centre, the centre moves with ω × s.
    """

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

    def _arm(self, n: Any, rho: Any) -> list[Any]:
        """s: from the point of contact to the centre."""
        raise NotImplementedError

    def _arm_rate(self, n: Any, n_dot: Any, rho: Any) -> list[Any]:
        """ṡ in successor axes."""
        raise NotImplementedError

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """v of the centre is ω × s."""
        E = quaternion_transform(q)
        n, rho = E[:, 2], p[0]
        s = self._arm(n, rho)
        zero = 0.0
        S = np.array(
            [
                [1.0, zero, zero],
                [zero, 1.0, zero],
                [zero, zero, 1.0],
                [zero, s[2], -s[1]],
                [-s[2], zero, s[0]],
                [s[1], -s[0], zero],
            ]
        )
        # ṅ = −ω × n in successor axes, so c = [0; ω × ṡ].
        bias = np.cross(v, np.array(self._arm_rate(n, -np.cross(v, n), rho)))
        r = np.array([q[4], q[5], n[0] * s[0] + n[1] * s[1] + n[2] * s[2]])
        return E, r, S, np.array([0.0, 0.0, 0.0, *bias]), None

    @classmethod
    def samples(cls) -> list[Joint]:
        """On several planes."""
        return [cls(0.4, axis) for axis in SAMPLE_AXES]

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The quaternion with w ≥ 0, and the place in the plane."""
        return [*quaternion_of(E), r[0], r[1]]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """The point of contact is in the plane."""
        n = [E[0][2], E[1][2], E[2][2]]
        s = self._arm(n, p[0])
        return [r[2] - (n[0] * s[0] + n[1] * s[1] + n[2] * s[2])]

    def closure_rates(self, t: Any, E: Any, r: Any, v: Any, p: Any) -> list[Any]:
        """No slip: the velocity of the centre is ω × s; two components across the normal."""
        s = self._arm([E[0][2], E[1][2], E[2][2]], p[0])
        slip = [
            v[3] - (v[1] * s[2] - v[2] * s[1]),
            v[4] - (v[2] * s[0] - v[0] * s[2]),
            v[5] - (v[0] * s[1] - v[1] * s[0]),
        ]
        return [E[0][i] * slip[0] + E[1][i] * slip[1] + E[2][i] * slip[2] for i in range(2)]

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """q̇ = ½ q ∘ ω; the centre moves with ω × s, in predecessor axes."""
        return np.array([*quaternion_rate(q, v), *self._shift(q, v, p[0])])

    def _shift(self, q: Any, v: Any, rho: Any) -> list[Any]:
        E = quaternion_transform(q)
        s = self._arm(E[:, 2], rho)
        u = [
            v[1] * s[2] - v[2] * s[1],
            v[2] * s[0] - v[0] * s[2],
            v[0] * s[1] - v[1] * s[0],
        ]
        return [E[0, i] * u[0] + E[1, i] * u[1] + E[2, i] * u[2] for i in range(2)]

    def group_velocity(self, t: Any, q: Any, v: Any) -> Any:
        """Angular velocity, and the velocity of the centre."""
        return np.array([*v, *self._shift(q, v, self.radius)])


@register
class RollingSphere(_Rolling):
    """A sphere (successor, frame at its centre) rolls without slipping on the xy plane below.

    Nonholonomic: six position variables, three velocities. q = (unit quaternion, x, y), v = ω in
    successor axes; the centre is at height `radius` above the predecessor's xy plane.

    Examples
    --------
    >>> RollingSphere(0.5).position_rate([1, 0, 0, 0, 0, 0], [0, 2, 0])[4:] + 0.0
    array([1., 0.])
    """

    kind = "rolling_sphere"

    def _arm(self, n: Any, rho: Any) -> list[Any]:
        return [rho * n[0], rho * n[1], rho * n[2]]

    def _arm_rate(self, n: Any, n_dot: Any, rho: Any) -> list[Any]:
        return [rho * n_dot[0], rho * n_dot[1], rho * n_dot[2]]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Centre at the height of the radius."""
        return [r[2] - p[0]]


@register
class RollingDisc(_Rolling):
    """A disc or wheel with a sharp edge rolls without slipping on the xy plane below.

    The successor's frame is at the wheel's centre, its axle along y (of the frame whose z is the
    joint's axis, the plane's normal): at the neutral position the wheel stands upright and rolls
    along x. q = (unit quaternion, x, y) with the place of the centre, v = ω in successor axes. As a
    loop joint it imposes three constraints: contact, and no slip in two directions. A wheel that
    lies flat has no point of contact.

    Parameters
    ----------
    radius
        In metres.
    axis
        Normal of the plane.

    Examples
    --------
    >>> RollingDisc(0.5).position_rate([1, 0, 0, 0, 0, 0], [0, 2, 0])[4:] + 0.0
    array([1., 0.])
    """

    kind = "rolling_disc"

    def _arm(self, n: Any, rho: Any) -> list[Any]:
        scale = rho / np.sqrt(n[0] * n[0] + n[2] * n[2])
        return [scale * n[0], 0.0 * scale, scale * n[2]]

    def _arm_rate(self, n: Any, n_dot: Any, rho: Any) -> list[Any]:
        square = n[0] * n[0] + n[2] * n[2]
        turning = rho * (n[2] * n_dot[0] - n[0] * n_dot[2]) / (square * np.sqrt(square))
        return [turning * n[2], 0.0 * turning, -turning * n[0]]
