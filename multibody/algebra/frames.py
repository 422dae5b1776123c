"""Moving frames that compose, invert and act on points with operators (after the Chrono paper).

A `Frame` is a position r and a rotation q of a child frame in its parent; a `FrameMoving` adds
velocity, angular velocity, acceleration and angular acceleration. χ_ab below is the frame a seen
from b. Positions, velocities and accelerations of the origin are in parent axes; ω and α are in
child axes. Accelerations are classical (the second derivative of r), not spatial.

=============  =========================================  ==========================
expression     meaning                                    labels (origin, base)
=============  =========================================  ==========================
``b * a``      χ_ac = χ_bc χ_ab, right to left            b.origin == a.base
``a >> b``     the same, left to right                    a.base == b.origin
``b *= a``     b := b * a (append at the child's end)     b.origin == a.base
``a >>= b``    a := a >> b (prepend at the root)          a.base == b.origin
``~a``         inverse                                    swapped
``a % b``      ~a * b without forming the inverse         a.base == b.base
``a << b``     a >> ~b without forming the inverse        a.base == b.base
``f * p``      child → parent coordinates of points       –
``p >> f``     the same                                   –
``f % p``      parent → child coordinates of points       –
``p << f``     the same                                   –
=============  =========================================  ==========================

Python's ``*`` and ``%`` bind tighter than ``>>`` and ``<<``; use parentheses when mixing them.
``<<`` is not associative. With a `FrameMoving` on either side the result is a `FrameMoving`, the
other taken as standing still. Chain points left to right, ``p >> f1 >> f2``: no frame products
are formed. Equation numbers are the paper's; errata E1–E7 are observed: where it multiplies
quaternions and keeps a spurious scalar part, plain vectors are used here.

Example: a robot whose gripper (6) must meet a part (8) on a conveyor (7), all seen from the
floor (0): ``x_86 = x_87 >> x_70 << x_60``.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Self

import numpy as np

from ..checks import Array, ArrayLike, check_rotation, check_unit, one_of, real_array
from . import points as _points
from .frame_labels import FrameLabelWarning, Label, Labels, check_chain, label_checks
from .orientation import quaternions as _q

__all__ = ["Frame", "FrameLabelWarning", "FrameMoving", "label_checks"]

#: Largest |q·q̇|/‖q̇‖ accepted when quaternion rates are given directly.
RATE_TOLERANCE = 1e-6


def _quaternion(rotation: ArrayLike) -> Array:
    """Return a unit quaternion from a quaternion or a rotation matrix."""
    array = np.asarray(rotation)
    if array.shape == (3, 3):
        return _q.from_matrix(check_rotation(array, "rotation"))
    q = check_unit(rotation, "rotation", 4, "renormalise it with quaternions.normalise")
    if q.shape != (4,):
        raise ValueError(
            f"rotation: expected a quaternion (4,) or a matrix (3, 3), received {q.shape}; "
            "make one frame at a time"
        )
    return _q.normalise(q)


def _vector(value: ArrayLike, name: str) -> Array:
    v = real_array(value, name, (3,))
    if v.shape != (3,):
        raise ValueError(f"{name}: expected three numbers, received shape {v.shape}; give one")
    return v


def _readonly(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


_ORIGIN = (0.0, 0.0, 0.0)
_NEUTRAL = (1.0, 0.0, 0.0, 0.0)


class Frame:
    """Position and rotation of a child frame in its parent.

    Parameters
    ----------
    position
        Origin of the child in parent axes.
    rotation
        Unit quaternion child → parent (scalar first), or a rotation matrix.
    origin, base
        Optional labels of the child and of the parent, checked by every operator.
    dtype
        float32 or float64; float64 unless the arrays given are float32.

    Examples
    --------
    >>> frame = Frame([1, 0, 0], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    >>> (frame * [1, 0, 0]).round(12)
    array([1., 1., 0.])
    >>> (np.array([[1.0, 0, 0], [0, 1, 0]]) >> frame).round(12)
    array([[1., 1., 0.],
           [0., 0., 0.]])
    >>> (frame % (frame * [1, 2, 3])).round(12)
    array([1., 2., 3.])
    """

    __slots__ = ("_A", "_position", "_rotation", "base", "origin")
    __array_ufunc__ = None  # ndarray >> frame reaches __rrshift__
    __hash__ = None  # type: ignore[assignment]

    _fields: ClassVar[tuple[str, ...]] = ("_position", "_rotation")

    def __init__(
        self,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike = _NEUTRAL,
        *,
        origin: Label = None,
        base: Label = None,
        dtype: Any = None,
    ) -> None:
        r, q = _vector(position, "position"), _quaternion(rotation)
        if dtype is None:
            kinds = [x.dtype for x in (position, rotation) if isinstance(x, np.ndarray)]
            dtype = np.float32 if kinds and set(kinds) == {np.dtype(np.float32)} else np.float64
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype: expected float32 or float64, received {dtype}; choose one")
        self._position: Array = r.astype(dtype)
        self._rotation: Array = q.astype(dtype)
        self._A: Array | None = None
        self.origin, self.base = origin, base

    @classmethod
    def _of(cls, parts: tuple[Array, ...], labels: Labels) -> Self:
        """Wrap parts that are known to be right."""
        self = object.__new__(cls)
        for name, part in zip(cls._fields, parts):
            setattr(self, name, part)
        self._A = None
        self.origin, self.base = labels
        return self

    @classmethod
    def identity(cls) -> Self:
        """Frame that coincides with its parent."""
        return cls()

    @property
    def dtype(self) -> Any:
        """float32 or float64."""
        return self._position.dtype

    @property
    def position(self) -> Array:
        """Origin of the child in parent axes (read-only view; assign to change)."""
        return _readonly(self._position)

    @position.setter
    def position(self, value: ArrayLike) -> None:
        self._position = _vector(value, "position").astype(self.dtype)

    @property
    def rotation(self) -> Array:
        """Unit quaternion child → parent (read-only view; assign a quaternion or a matrix)."""
        return _readonly(self._rotation)

    @rotation.setter
    def rotation(self, value: ArrayLike) -> None:
        self._set_rotation(_quaternion(value).astype(self.dtype))

    def _set_rotation(self, q: Array) -> None:
        self._rotation, self._A = q, None

    @property
    def matrix(self) -> Array:
        """Rotation matrix A(q), computed once and again when the rotation changes."""
        if self._A is None:
            self._A = _readonly(_q.to_matrix(self._rotation))
        return self._A

    # --- acting on points --------------------------------------------------------------------

    def transform(self, points: ArrayLike) -> Array:
        """Child → parent coordinates of points, shape (..., 3): r + A p (Eq 5)."""
        return self._coordinates(points) @ self.matrix.T + self._position

    def transform_inverse(self, points: ArrayLike) -> Array:
        """Parent → child coordinates of points: Aᵀ (p − r), without the inverse frame."""
        return (self._coordinates(points) - self._position) @ self.matrix

    def transform_direction(self, vectors: ArrayLike) -> Array:
        """Child → parent components of free vectors: A v."""
        return self._coordinates(vectors) @ self.matrix.T

    def _coordinates(self, points: ArrayLike) -> Array:
        """Array of triples; lists take the frame's dtype, arrays keep theirs and promote."""
        p = real_array(points, "points", (3,))
        return p if isinstance(points, np.ndarray) else p.astype(self.dtype)

    # --- operators ---------------------------------------------------------------------------

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Frame):
            check_chain("*", self.origin, "origin", other.base, "base")
            return _compose(self, other, (other.origin, self.base))
        return self.transform(other)

    def __rshift__(self, other: Any) -> Any:
        if not isinstance(other, Frame):
            return NotImplemented
        check_chain(">>", self.base, "base", other.origin, "origin")
        return _compose(other, self, (self.origin, other.base))

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, Frame):
            check_chain("%", self.base, "base", other.base, "base")
            return _relative(self, other, (other.origin, self.origin))
        return self.transform_inverse(other)

    def __lshift__(self, other: Any) -> Any:
        if not isinstance(other, Frame):
            return NotImplemented
        check_chain("<<", self.base, "base", other.base, "base")
        return _relative(other, self, (self.origin, other.origin))

    def __rrshift__(self, points: ArrayLike) -> Array:
        return self.transform(points)

    def __rlshift__(self, points: ArrayLike) -> Array:
        return self.transform_inverse(points)

    def __imul__(self, other: Any) -> Self:
        return self._become(self * self._same_kind(other, "*="))

    def __irshift__(self, other: Any) -> Self:
        return self._become(self >> self._same_kind(other, ">>="))

    def __invert__(self) -> Self:
        return self.inverse()

    def _same_kind(self, other: Any, operator: str) -> Frame:
        if not isinstance(other, Frame):
            raise TypeError(
                f"{operator}: expected a frame, received {type(other).__name__}; "
                "points are transformed by f * p or p >> f"
            )
        if isinstance(other, FrameMoving) and not isinstance(self, FrameMoving):
            raise TypeError(
                f"{operator}: expected a Frame, received a FrameMoving, whose rates a Frame "
                "cannot hold; write a = a * b, or convert with FrameMoving.from_frame"
            )
        return other

    def _become(self, other: Frame) -> Self:
        for name in self._fields:
            setattr(self, name, getattr(other, name))
        self._A = None
        self.origin, self.base = other.origin, other.base
        return self

    def inverse(self) -> Self:
        """Parent seen from the child (Eqs 19, 20)."""
        return self._of(self._inverse_parts(), (self.base, self.origin))

    def _inverse_parts(self) -> tuple[Array, ...]:
        return -(self._position @ self.matrix), _q.conjugate(self._rotation)

    # --- comparing, storing ------------------------------------------------------------------

    def copy(self) -> Self:
        """Independent frame with the same content."""
        parts = tuple(getattr(self, name).copy() for name in self._fields)
        return self._of(parts, (self.origin, self.base))

    def _signed_parts(self, other: Frame) -> list[tuple[Array, Array]]:
        """Pairs of parts; the other's quaternion and rates take the sign nearest to ours."""
        same = float(self._rotation @ other._rotation) >= 0.0
        sign = dict.fromkeys(("_rotation", "_q_dot", "_q_ddot"), 1.0 if same else -1.0)
        return [
            (getattr(self, name), sign.get(name, 1.0) * getattr(other, name))
            for name in self._fields
        ]

    def __eq__(self, other: object) -> bool:
        """Exact equality of the parts, where q and −q are the same rotation."""
        if type(other) is not type(self):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in self._signed_parts(other))

    def isclose(self, other: Frame, atol: float = 1e-12) -> bool:
        """Whether all parts agree within atol; q and −q are the same rotation."""
        if type(other) is not type(self):
            raise TypeError(
                f"isclose: expected {type(self).__name__}, received {type(other).__name__}; "
                "convert with FrameMoving.from_frame"
            )
        return all(np.allclose(a, b, rtol=0, atol=atol) for a, b in self._signed_parts(other))

    def to_json(self) -> str:
        """Text that restores the frame bit by bit on any platform (hexadecimal floats).

        Examples
        --------
        >>> frame = Frame([0.1, 0.2, 0.3], origin="tool", base=6)
        >>> restored = Frame.from_json(frame.to_json())
        >>> restored == frame, restored.origin, restored.base
        (True, 'tool', 6)
        """
        content: dict[str, Any] = {
            "type": type(self).__name__,
            "dtype": str(self.dtype),
            "origin": self.origin,
            "base": self.base,
        }
        for name in self._fields:
            content[name.lstrip("_")] = [float(x).hex() for x in getattr(self, name)]
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Restore a frame written by `to_json`."""
        content = json.loads(text)
        if content.get("type") != cls.__name__:
            raise ValueError(
                f"text: expected a stored {cls.__name__}, received {content.get('type')!r}; "
                "call from_json of that class"
            )
        dtype = one_of(content["dtype"], "dtype", ("float32", "float64"))
        parts = tuple(
            np.array([float.fromhex(x) for x in content[name.lstrip("_")]], dtype=dtype)
            for name in cls._fields
        )
        return cls._of(parts, (content["origin"], content["base"]))

    def __reduce__(self) -> Any:
        return type(self).from_json, (self.to_json(),)

    def __repr__(self) -> str:
        inner = ", ".join(f"{n.lstrip('_')}={getattr(self, n).tolist()}" for n in self._fields)
        labels = f", origin={self.origin!r}, base={self.base!r}" if self._labelled else ""
        return f"{type(self).__name__}({inner}{labels})"

    @property
    def _labelled(self) -> bool:
        return self.origin is not None or self.base is not None


class FrameMoving(Frame):
    """Frame with velocity and acceleration: χ = {r, q, ṙ, ω, r̈, α}.

    Parameters
    ----------
    position, rotation, origin, base, dtype
        As for `Frame`.
    velocity, acceleration
        ṙ and r̈ of the origin, in parent axes.
    angular_velocity, angular_acceleration
        ω and α, in child axes.

    Notes
    -----
    q̇ and q̈ are stored, as in the paper; ω and α are computed from them (Eqs 9, 12) and converted
    to them when assigned. Assigning the rotation keeps ω and α; assigning ω keeps α.

    Examples
    --------
    >>> wheel = FrameMoving(angular_velocity=[0, 0, 2])
    >>> (wheel * FrameMoving([1, 0, 0])).velocity
    array([0., 2., 0.])
    >>> (wheel * FrameMoving([1, 0, 0])).acceleration
    array([-4.,  0.,  0.])
    """

    __slots__ = ("_acceleration", "_q_ddot", "_q_dot", "_velocity")
    __hash__ = None

    _fields: ClassVar[tuple[str, ...]] = (
        "_position",
        "_rotation",
        "_velocity",
        "_q_dot",
        "_acceleration",
        "_q_ddot",
    )

    def __init__(
        self,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike = _NEUTRAL,
        velocity: ArrayLike = _ORIGIN,
        angular_velocity: ArrayLike = _ORIGIN,
        acceleration: ArrayLike = _ORIGIN,
        angular_acceleration: ArrayLike = _ORIGIN,
        *,
        origin: Label = None,
        base: Label = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(position, rotation, origin=origin, base=base, dtype=dtype)
        self._velocity: Array = _vector(velocity, "velocity").astype(self.dtype)
        self._acceleration: Array = _vector(acceleration, "acceleration").astype(self.dtype)
        self._q_dot: Array
        self._q_ddot: Array
        self._set_rates(
            _vector(angular_velocity, "angular_velocity").astype(self.dtype),
            _vector(angular_acceleration, "angular_acceleration").astype(self.dtype),
        )

    @classmethod
    def from_frame(cls, frame: Frame) -> FrameMoving:
        """Standing frame at the place of another one (a FrameMoving is returned as it is)."""
        if isinstance(frame, FrameMoving):
            return frame
        v, q = np.zeros(3, dtype=frame.dtype), np.zeros(4, dtype=frame.dtype)
        parts = (frame._position, frame._rotation, v, q, v, q)
        return cls._of(parts, (frame.origin, frame.base))

    def _set_rates(self, omega: Array, alpha: Array) -> None:
        self._q_dot = _q.rate(self._rotation, omega)
        self._q_ddot = _q.second_rate(self._rotation, self._q_dot, alpha)

    def _set_rotation(self, q: Array) -> None:
        omega, alpha = self.angular_velocity, self.angular_acceleration
        super()._set_rotation(q)
        self._set_rates(omega, alpha)

    @property
    def velocity(self) -> Array:
        """ṙ in parent axes."""
        return _readonly(self._velocity)

    @velocity.setter
    def velocity(self, value: ArrayLike) -> None:
        self._velocity = _vector(value, "velocity").astype(self.dtype)

    @property
    def acceleration(self) -> Array:
        """r̈ in parent axes (classical)."""
        return _readonly(self._acceleration)

    @acceleration.setter
    def acceleration(self, value: ArrayLike) -> None:
        self._acceleration = _vector(value, "acceleration").astype(self.dtype)

    @property
    def angular_velocity(self) -> Array:
        """ω in child axes: the vector part of 2 q* q̇ (Eq 9)."""
        return _q.angular_velocity(self._rotation, self._q_dot)

    @angular_velocity.setter
    def angular_velocity(self, value: ArrayLike) -> None:
        omega = _vector(value, "angular_velocity").astype(self.dtype)
        self._set_rates(omega, self.angular_acceleration)

    @property
    def angular_acceleration(self) -> Array:
        """α in child axes: 2 q̇* q̇ + 2 q* q̈ (Eq 12)."""
        return _q.angular_acceleration(self._rotation, self._q_dot, self._q_ddot)

    @angular_acceleration.setter
    def angular_acceleration(self, value: ArrayLike) -> None:
        alpha = _vector(value, "angular_acceleration").astype(self.dtype)
        self._set_rates(self.angular_velocity, alpha)

    @property
    def rotation_rates(self) -> tuple[Array, Array]:
        """Quaternion rates (q̇, q̈) as stored."""
        return _readonly(self._q_dot), _readonly(self._q_ddot)

    @rotation_rates.setter
    def rotation_rates(self, rates: tuple[ArrayLike, ArrayLike]) -> None:
        q_dot, q_ddot = (real_array(x, "rotation_rates", (4,)) for x in rates)
        _, c1, c2 = _q.unit_constraint(self._rotation, q_dot, q_ddot)
        scale = 1.0 + float(q_dot @ q_dot) + float(np.sqrt(q_ddot @ q_ddot))
        if max(abs(float(c1)), abs(float(c2))) > RATE_TOLERANCE * scale:
            raise ValueError(
                f"rotation_rates: expected q·q̇ = 0 and q̇·q̇ + q·q̈ = 0, received {float(c1) / 2:.3g} "
                f"and {float(c2) / 2:.3g}; project them with quaternions.project_rates"
            )
        self._q_dot, self._q_ddot = q_dot.astype(self.dtype), q_ddot.astype(self.dtype)

    def point_velocity(
        self, point: ArrayLike, relative: ArrayLike = _ORIGIN
    ) -> _points.PointVelocity:
        """Velocity, in parent axes and part by part, of a point given in child axes."""
        return _points.velocity(self.matrix, point, self.angular_velocity, self._velocity, relative)

    def point_acceleration(
        self,
        point: ArrayLike,
        relative_velocity: ArrayLike = _ORIGIN,
        relative_acceleration: ArrayLike = _ORIGIN,
    ) -> _points.PointAcceleration:
        """Acceleration, in parent axes and part by part, of a point given in child axes."""
        return _points.acceleration(
            self.matrix,
            point,
            self.angular_velocity,
            self.angular_acceleration,
            self._acceleration,
            relative_velocity,
            relative_acceleration,
        )

    def _inverse_parts(self) -> tuple[Array, ...]:
        """Eqs 19–23 with errata E1–E4.

        In child axes, with ρ, u, s the components of r, ṙ, r̈: the parent's origin moves with
        −u + ω×ρ and accelerates with −s + α×ρ + 2ω×u − ω×(ω×ρ). The conjugate of a curve of unit
        quaternions is its inverse, so its rates are the conjugate rates.
        """
        A = self.matrix
        w, dw = self.angular_velocity, self.angular_acceleration
        rho, u, s = self._position @ A, self._velocity @ A, self._acceleration @ A
        return (
            -rho,
            _q.conjugate(self._rotation),
            np.cross(w, rho) - u,
            _q.conjugate(self._q_dot),
            np.cross(dw, rho) + 2 * np.cross(w, u) - np.cross(w, np.cross(w, rho)) - s,
            _q.conjugate(self._q_ddot),
        )


def _compose(outer: Frame, inner: Frame, labels: Labels) -> Frame:
    """Frame `inner`, given in `outer`, seen from the parent of `outer` (Eqs 5–12)."""
    A = outer.matrix
    position = outer._position + A @ inner._position
    rotation = _q.multiply(outer._rotation, inner._rotation)
    if not (isinstance(outer, FrameMoving) or isinstance(inner, FrameMoving)):
        return Frame._of((position, rotation), labels)
    b, a = FrameMoving.from_frame(outer), FrameMoving.from_frame(inner)
    w, dw = b.angular_velocity, b.angular_acceleration
    turning = np.cross(w, a._position)
    velocity = b._velocity + A @ (turning + a._velocity)
    acceleration = b._acceleration + A @ (
        np.cross(dw, a._position) + np.cross(w, turning + 2 * a._velocity) + a._acceleration
    )
    q_dot = _q.multiply(b._q_dot, a._rotation) + _q.multiply(b._rotation, a._q_dot)
    q_ddot = (
        _q.multiply(b._q_ddot, a._rotation)
        + 2 * _q.multiply(b._q_dot, a._q_dot)
        + _q.multiply(b._rotation, a._q_ddot)
    )
    return FrameMoving._of((position, rotation, velocity, q_dot, acceleration, q_ddot), labels)


def _relative(seen_from: Frame, frame: Frame, labels: Labels) -> Frame:
    """Frame `frame` seen from `seen_from`, both given in the same parent: relative kinematics.

    The velocity is what remains after the frame's own motion, u = Aᵀ(ṙ − ṙ_a) − ω×ρ, and the
    acceleration loses the tangential, centripetal and Coriolis parts. No inverse frame is formed.
    """
    A = seen_from.matrix
    back = _q.conjugate(seen_from._rotation)
    rho = (frame._position - seen_from._position) @ A
    rotation = _q.multiply(back, frame._rotation)
    if not (isinstance(seen_from, FrameMoving) or isinstance(frame, FrameMoving)):
        return Frame._of((rho, rotation), labels)
    a, b = FrameMoving.from_frame(seen_from), FrameMoving.from_frame(frame)
    w, dw = a.angular_velocity, a.angular_acceleration
    turning = np.cross(w, rho)
    velocity = (b._velocity - a._velocity) @ A - turning
    acceleration = (
        (b._acceleration - a._acceleration) @ A
        - np.cross(dw, rho)
        - np.cross(w, turning + 2 * velocity)
    )
    back_dot, back_ddot = _q.conjugate(a._q_dot), _q.conjugate(a._q_ddot)
    q_dot = _q.multiply(back_dot, b._rotation) + _q.multiply(back, b._q_dot)
    q_ddot = (
        _q.multiply(back_ddot, b._rotation)
        + 2 * _q.multiply(back_dot, b._q_dot)
        + _q.multiply(back, b._q_ddot)
    )
    return FrameMoving._of((rho, rotation, velocity, q_dot, acceleration, q_ddot), labels)
