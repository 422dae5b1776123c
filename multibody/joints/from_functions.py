"""Joints from functions: your own pose, and the constant-velocity joint (``driven``: motions).

For a joint given by its pose alone, everything else follows by exact differentiation of the traced
pose: with q̇ = rate(t, q, v),

    v_J = the twist of d(pose)/dt,   S = ∂v_J/∂v,   σ = v_J at v = 0,   c_J = ∂v_J/∂q·q̇ + ∂v_J/∂t.

Functions are traced once, when the joint is made. What they read from outside, a global variable or
an attribute, is frozen then: all that is computed with a joint speaks of the same motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np

from ..checks import Array, ArrayLike
from . import sample_functions as sample
from .base import Joint, register
from .formulae import twist

__all__ = ["ConstantVelocity", "UserJoint"]


def _twist(E: Any, E_dot: Any, r_dot: Any) -> Any:
    """Velocity in successor coordinates: Ė = −ω× E, linear part E ṙ."""
    W = -(E_dot @ E.T)
    return np.array([W[2, 1], W[0, 2], W[1, 0], *(E @ r_dot)])


class _FromPose(Joint):
    """A joint whose law is derived from ``pose(t, q, p) -> (E, r)``."""

    def pose(self, t: Any, q: Any, p: Any) -> tuple[Any, Any]:
        """Return E and r of X_J."""
        raise NotImplementedError(f"{type(self).__name__} does not state its pose")

    @cached_property
    def _velocity(self) -> Any:
        """v_J as a traced function of t, [q; v] and p."""
        from integrators.tracing import traced

        nq, k = self.nq, len(self.parameters)

        def flat(t: Any, q: Any, p: Any = ()) -> Any:
            E, r = self.pose(t, q, p)
            return np.concatenate([np.asarray(E).ravel(), np.asarray(r)])

        position = _traced(traced, flat, nq, k, 12)

        def velocity(t: Any, x: Any, p: Any = ()) -> Any:
            q, v = x[:nq], x[nq:]
            more = (p,) if k else ()
            E, _ = self.pose(t, q, p)
            change = position.time_derivative()(t, _some(q), *more)
            if nq:
                rate = np.asarray(self.rate(t, q, v, p))
                change = change + position.jacobian()(t, q, *more) @ rate
            return _twist(np.asarray(E), change[:9].reshape(3, 3), change[9:])

        return _traced(traced, velocity, nq + self.nv, k, 6)

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Differentiate the pose."""
        nq = self.nq
        q, v = np.asarray(q), np.asarray(v)
        E, r = self.pose(t, q, p)
        x = _some(np.concatenate([q, v]))
        more = (p,) if len(self.parameters) else ()
        J = self._velocity.jacobian()(t, x, *more)
        S = J[:, nq : nq + self.nv]
        c = self._velocity.time_derivative()(t, x, *more)
        if nq:
            c = c + J[:, :nq] @ np.asarray(self.rate(t, q, v, p))
        sigma = self._velocity(t, x, *more) - S @ v if self.is_rheonomic else None
        return E, r, S, c, sigma

    def __getstate__(self) -> Any:
        # The traced velocity holds functions that cannot be pickled; it is made again when needed.
        return {name: value for name, value in self.__dict__.items() if name != "_velocity"}


def _some(x: Any) -> Any:
    """At least one number: traced functions need a state, even if they do not look at it."""
    return np.asarray(x) if len(x) else np.zeros(1)


def _frozen(function: Callable[..., Any], n: int, outputs: int) -> Any:
    """Trace function(t, x) of n numbers x here and now; returns what it became, and its digest."""
    from integrators.tracing import traced

    if outputs == 0:
        return lambda t, x: np.zeros(0), ""

    found = traced(lambda t, x: function(t, x[:n]), n=max(n, 1), outputs=outputs)
    digest = found.graph.digest
    return lambda t, x: found(t, _some(x)), digest


def _check_rotation(name: str, E: Any) -> None:
    E = np.asarray(E, dtype=float)
    off = float(np.max(np.abs(E @ E.T - np.eye(3))))
    if np.isfinite(off) and (off > NO_ROTATION or np.linalg.det(E) < 0.0):
        raise ValueError(
            f"{name}: expected a pose with a rotation matrix, received R with R·Rᵀ off the unit "
            f"matrix by {off:.3g} and determinant {np.linalg.det(E):.3g}; normalise quaternions "
            "and axes inside the function"
        )


def _traced(traced: Any, function: Callable[..., Any], n: int, k: int, outputs: int) -> Any:
    if k == 0:
        return traced(lambda t, x: function(t, x[:n]), n=max(n, 1), outputs=outputs)
    return traced(lambda t, x, p: function(t, x[:n], p), n=max(n, 1), params=k, outputs=outputs)


#: How far from orthogonal a matrix may be that is meant as a rotation.
NO_ROTATION = 1e-6

# Below this square of the angle the series is used: both agree to rounding there, and the series
# has a derivative at zero.
_SMALL = 0.25


def _even(square: Any, first: int, closed: Callable[[Any], Any]) -> Any:
    """Σ (−s)ᵏ/(2k + first)! near s = 0, the closed form elsewhere; s = θ²."""
    from integrators.tracing import where

    total: Any = 0.0
    for k in range(9, -1, -1):
        total = total * -square + 1.0 / factorial(2 * k + first)
    away = where(square < _SMALL, 1.0, square)
    return where(square < _SMALL, total, closed(away))


@register
class ConstantVelocity(_FromPose):
    """Constant-velocity joint: the shaft along z bends by the vector q = (bend_x, bend_y).

    The rotation has its axis in the xy plane of both bodies, so a turn of one shaft is passed on
    unchanged; a universal joint passes it on unevenly. |q| is the angle of the bend, below π.

    Examples
    --------
    >>> joint = ConstantVelocity()
    >>> joint.motion([0.3, 0.4]).X.E[2].round(6)  # the shaft, tilted by half a radian
    array([ 0.38354 , -0.287655,  0.877583])
    """

    kind = "constant_velocity"
    coordinates = speeds = ("bend_x", "bend_y")
    groups = ("R", "R")

    def pose(self, t: Any, q: Any, p: Any) -> tuple[Any, Any]:
        """Rodrigues' formula for the rotation vector (q₁, q₂, 0), transposed."""
        x, y = q[0], q[1]
        square = x * x + y * y
        a = _even(square, 1, lambda s: np.sin(np.sqrt(s)) / np.sqrt(s))
        b = _even(square, 2, lambda s: (1.0 - np.cos(np.sqrt(s))) / s)
        E = np.array(
            [
                [1.0 - b * y * y, b * x * y, -a * y],
                [b * x * y, 1.0 - b * x * x, a * x],
                [a * y, -a * x, 1.0 - b * square],
            ]
        )
        return E, np.zeros(3)

    @classmethod
    def samples(cls) -> list[Joint]:
        """Along z, and along no coordinate axis."""
        return [cls(axis) for axis in ("z", (1.0, -2.0, 0.5))]

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """θ/sin θ times the sine vector; if small, θ/sin θ = Σ (2ⁿn!)²/(2n+1)! sin²ⁿ(θ/2)."""
        from integrators.tracing import where

        x, y, _ = twist(E)
        z = 0.5 * (1.0 - E[2, 2])
        series: Any = 0.0
        for n in range(13, -1, -1):  # z¹⁴ < 1e-19
            series = 1.0 + series * z * (2.0 * n + 2.0) / (2.0 * n + 3.0)
        small = z < 0.04
        sine = np.sqrt(where(small, 1.0, x * x + y * y))
        ratio = where(small, series, np.arctan2(sine, E[2, 2]) / sine)
        return [x * ratio, y * ratio]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """No rotation about the shaft, origins together."""
        return [0.5 * (E[0][1] - E[1][0]), *(E @ r)]

    def closure_side(self, t: Any, E: Any) -> Any:
        """No half turn about the shaft."""
        return E[0][0] + E[1][1]


@register
class UserJoint(_FromPose):
    """A joint of your own, from its pose; the rest is found by differentiation.

    Parameters
    ----------
    pose
        ``pose(q) -> (R, p)`` or ``pose(t, q) -> (R, p)``: active rotation (3×3) and origin of
        the successor in predecessor coordinates, written with NumPy and without branches.
    coordinates
        Names of the position variables.
    speeds
        Names of the velocity variables; by default as many as positions, with v = q̇.
    rate
        ``rate(q, v) -> q̇`` or ``rate(t, q, v) -> q̇``, if velocities are not the derivatives of
        positions; linear in v, but for a part that moves the joint at v = 0 as time does.
    law
        For poses that cannot be traced: ``law(t, q, v) -> (E, r, S, c, sigma)`` in the terms of
        :mod:`multibody.joints.base`; replaces what would be derived from `pose`. A law that never
        looks at t and has no sigma is one that time does not move.
    neutral
        Position to start from; zeros if not given.
    groups
        Space of q, see :attr:`Joint.groups`; numbers if not given.
    closure
        ``closure(R, p)``, for use as a loop joint: 6 − nv numbers that vanish exactly where
        rotation and origin of the successor are ones that the joint allows.

    Examples
    --------
    A bead on a parabola y = x²/2:

    >>> bead = UserJoint(lambda q: (np.eye(3), np.array([q[0], q[0] ** 2 / 2, 0.0])), ["x"])
    >>> bead.motion([2.0], [3.0]).v[3:]
    array([3., 6., 0.])
    >>> bead.motion([2.0], [3.0]).c[3:]
    array([0., 9., 0.])
    """

    kind = "user"
    arguments = ("function", "coordinates")

    @classmethod
    def samples(cls) -> list[Joint]:
        """S that depends on q; a pose that time moves; fewer velocities than positions."""
        return [
            cls(sample.parabola, ["x"]),
            cls(sample.moving_cam, ["angle"]),
            cls(sample.disc_on_edge, ["angle", "x", "y"], ["turn", "roll"], sample.unicycle),
        ]

    def __init__(
        self,
        pose: Callable[..., Any] | None,
        coordinates: Sequence[str],
        speeds: Sequence[str] | None = None,
        rate: Callable[..., Any] | None = None,
        law: Callable[..., Any] | None = None,
        neutral: ArrayLike | None = None,
        groups: Sequence[str] | None = None,
        closure: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__()
        self._closure = closure
        if pose is None and law is None:
            raise TypeError("UserJoint: expected a function pose(q) or law(t, q, v), received none")
        self.function, self._rate, self._law = pose, rate, law
        self.coordinates = tuple(coordinates)
        self.speeds = self.coordinates if speeds is None else tuple(speeds)
        if len(self.speeds) > 6:
            raise ValueError(
                f"UserJoint: expected at most 6 speeds, received {len(self.speeds)}; a joint "
                "between two bodies has no more freedoms"
            )
        if rate is None and len(self.speeds) != len(self.coordinates):
            raise ValueError(
                f"UserJoint: {len(self.coordinates)} coordinates and {len(self.speeds)} speeds "
                "need a function rate(q, v) -> q̇; give it"
            )
        self.groups = ("R",) * self.nq if groups is None else tuple(groups)
        self._neutral = None if neutral is None else self.check_position(neutral)
        self._pose_of_time = _arguments(pose) == 2
        self._rate_of_time = _arguments(rate) == 3
        self.is_rheonomic = self._pose_of_time or self._rate_of_time or self._law_of_time()
        self.is_traceable = law is None
        self._key: Any = (UserJoint, law)
        if law is None:
            self._freeze()
        if rate is not None:
            self._look_at_rate()

    def _law_of_time(self) -> bool:
        """Whether the law looks at the time, or moves the joint by itself, where it was tried."""
        law, rng = self._law, np.random.default_rng(0)
        if law is None:
            return False
        for _ in range(TRIALS):
            q, v = self.random(rng), rng.standard_normal(self.nv)
            try:
                *parts, sigma = law(_NoTime(), q, v)
                numbers = [np.asarray(x, float) for x in parts if x is not None]
                moved = sigma is not None and np.any(np.asarray(sigma, float) != 0.0)
            except Exception:  # whatever a law does with a time that is none
                return True
            if moved or not numbers:
                return True
        return False

    def _look_at_rate(self) -> None:
        """Refuse a rate that is not linear in v; one that is not zero at v = 0 moves by itself."""
        rng = np.random.default_rng(0)
        for _ in range(TRIALS):
            q, v = self.random(rng), rng.standard_normal(self.nv)
            t = float(rng.uniform(0.0, 1.0))
            still, once, twice = (
                np.asarray(self.rate(t, q, k * v, ()), dtype=float) for k in (0.0, 1.0, 2.0)
            )
            if not np.isfinite(once).all():
                continue  # the position is one of those where the function has no value
            self.is_rheonomic = self.is_rheonomic or bool(still.any())
            size = np.abs(once).max(initial=0.0) + np.abs(still).max(initial=0.0)
            if np.abs(twice - 2.0 * once + still).max(initial=0.0) > LINEAR * size:
                raise ValueError(
                    f"UserJoint: expected rate(q, v) linear in v, received {once} at v = {v} and "
                    f"{twice} at 2v; let velocities be the ones that q̇ is linear in"
                )

    def _freeze(self) -> None:
        """Trace the functions, and look at a pose."""
        function, rate, closure, nq = self.function, self._rate, self._closure, self.nq
        assert function is not None

        def pose(t: Any, q: Any) -> Any:
            R, origin = function(t, q) if self._pose_of_time else function(q)
            return np.concatenate([np.asarray(R).T.ravel(), np.asarray(origin)])

        self._frozen_pose, *key = _frozen(pose, nq, 12)
        if rate is not None:
            asked = rate
            self._frozen_rate, digest = _frozen(
                lambda t, x: np.asarray(asked(*self._when(t), x[:nq], x[nq:])), nq + self.nv, nq
            )
            key.append(digest)
        if closure is not None:
            said = closure
            count = len(said(np.eye(3), np.zeros(3)))
            self._frozen_closure, digest = _frozen(
                lambda t, x: np.asarray(said(x[:9].reshape(3, 3).T, x[9:])), 12, count
            )
            key.append(digest)
        self._key = (UserJoint, rate is None, closure is None, *key)
        start = self.neutral()
        _check_rotation(
            "UserJoint", (function(0.0, start) if self._pose_of_time else function(start))[0]
        )

    def _when(self, t: Any) -> tuple[Any, ...]:
        """The time, if the user's rate asks for it."""
        return (t,) if self._rate_of_time else ()

    def law_key(self) -> Any:
        """What the functions compute; one that is not traced is compared by identity."""
        return self._key

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any] | None:
        """What the user's function says."""
        if self._closure is None:
            return None
        if self._law is not None:
            return list(self._closure(E.T, r))
        return list(self._frozen_closure(t, np.concatenate([np.ravel(E), r])))

    def pose(self, t: Any, q: Any, p: Any) -> tuple[Any, Any]:
        """Transpose the user's active rotation."""
        flat = self._frozen_pose(t, q)
        return flat[:9].reshape(3, 3), flat[9:]

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Ask the user's law, or differentiate the pose."""
        if self._law is None:
            return super().law(t, q, v, p)
        answer = self._law(t, q, v)
        if not isinstance(answer, tuple) or len(answer) != 5:
            raise ValueError(
                "UserJoint: law(t, q, v) must return (E, r, S, c, sigma), received "
                f"{type(answer).__name__}"
            )
        return answer

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """q̇ by the user's function, or v."""
        if self._rate is None:
            return v
        if self._law is not None:
            return np.asarray(self._rate(*self._when(t), q, v))
        return self._frozen_rate(t, np.concatenate([q, v]))

    @property
    def rate_is_velocity(self) -> bool:
        """Whether the user gave no function for q̇."""
        return self._rate is None

    def group_velocity(self, t: Any, q: Any, v: Any) -> Any:
        """q̇, seen from the moving frame where positions are not plain numbers."""
        q, q_dot = np.asarray(q), np.asarray(self.rate(t, q, v, ()))
        parts, at = [np.zeros(0)], 0
        for name in self.groups:
            size = POSITIONS_IN[name]
            parts.append(_seen_from_inside(name, q[at : at + size], q_dot[at : at + size]))
            at += size
        return np.concatenate(parts)

    def neutral(self) -> Array:
        """Position given by the user, or zeros."""
        return super().neutral() if self._neutral is None else self._neutral.copy()

    def __reduce__(self) -> Any:
        return UserJoint, (
            self.function,
            self.coordinates,
            self.speeds,
            self._rate,
            self._law,
            self._neutral,
            self.groups,
            self._closure,
        )


#: States at which a user's functions are looked at, and what rounding leaves of linearity.
TRIALS, LINEAR = 5, 1e-9


class _NoTime:
    """Stands for a time that must not be looked at: whatever is done with it fails."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("this joint depends on time")

    def __eq__(self, other: object) -> bool:
        raise TypeError("this joint depends on time")

    __str__ = __repr__ = __format__ = __eq__  # type: ignore[assignment]


#: How many position variables a group has.
POSITIONS_IN = {"R": 1, "SO2": 1, "SE2": 3, "SO3": 4, "SE3": 7}


def _seen_from_inside(group: str, q: Any, q_dot: Any) -> Any:
    """Element of the algebra that moves q with the rate q̇: g⁻¹ ġ."""
    if group in ("R", "SO2"):
        return q_dot
    if group == "SE2":
        c, s = np.cos(q[0]), np.sin(q[0])
        x, y = q_dot[1], q_dot[2]
        return np.array([q_dot[0], c * x + s * y, c * y - s * x])
    w, u, w_dot, u_dot = q[0], q[1:4], q_dot[0], q_dot[1:4]
    omega = 2.0 * (w * u_dot - w_dot * u - np.cross(u, u_dot))
    if group == "SO3":
        return omega
    r_dot = q_dot[4:7]
    turned = np.cross(u, r_dot)  # the quaternion's conjugate acts on ṙ
    return np.concatenate([omega, r_dot - 2.0 * (w * turned - np.cross(u, turned))])


def _arguments(function: Callable[..., Any] | None) -> int:
    import inspect

    parameters = () if function is None else inspect.signature(function).parameters.values()
    return sum(p.default is p.empty for p in parameters)  # others are constants of the function
