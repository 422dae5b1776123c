"""What a joint is: position, freedoms and bias of a successor body relative to its predecessor.

A joint class states the book's ``jcalc`` (§4.4) once, as a *law* written with NumPy: from time,
position variables q and velocity variables v it returns

====  ===========================================================================================
E, r  X_J = rot(E) xlt(r): coordinate transform from predecessor to successor frame, and origin of
      the successor frame in predecessor coordinates
S     motion freedoms: nv columns of six numbers, in successor coordinates
c     c_J = S̊ v + σ̊, the acceleration that remains when v̇ = 0, or None for zero
σ     bias velocity of a joint that time moves (rheonomic), or None for zero
====  ===========================================================================================

so v_J = S v + σ. The law is run on floats, and on symbols to make machine code, so it must not
branch on values. It is written for the axis z; any other axis is a constant rotation of the
frames (:attr:`Joint.frame`), which every law is spared.

Adding a joint is one class with the decorator :func:`register`, in a file that this package's
``__init__`` imports; the tests iterate the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ..algebra import se3
from ..algebra.orientation import quaternions
from ..algebra.plucker import Plucker
from ..checks import Array, ArrayLike, direction, real_array, unit_quaternion

__all__ = [
    "REGISTRY",
    "SAMPLE_AXES",
    "Joint",
    "JointMotion",
    "joint_names",
    "register",
    "unit_columns",
]

#: Joint classes by the name that model files use.
REGISTRY: dict[str, type[Joint]] = {}

#: Axes of joints to try: along z, against it, along others, and along none.
SAMPLE_AXES: tuple[ArrayLike, ...] = ("z", "-z", "x", (0.0, -1.0, 0.0), (1.0, -2.0, 0.5))

J = TypeVar("J", bound="type[Joint]")


def register(cls: J) -> J:
    """Enter a joint class in the registry under its ``kind``."""
    REGISTRY[cls.kind] = cls
    return cls


def joint_names() -> list[str]:
    """Names of all registered joints.

    Examples
    --------
    >>> "revolute" in joint_names()
    True
    """
    return sorted(REGISTRY)


def unit_columns(*rows: int) -> Array:
    """Motion subspace whose columns are unit vectors e_row.

    Examples
    --------
    >>> unit_columns(2, 5).T
    array([[0., 0., 1., 0., 0., 0.],
           [0., 0., 0., 0., 0., 1.]])
    """
    return np.eye(6)[:, list(rows)]


class JointMotion(NamedTuple):
    """What a joint does at one instant, in successor coordinates (book, §4.4 jcalc)."""

    X: Plucker
    S: Array
    v: Array
    c: Array


class Joint:
    """Base class of joints; see the module for the law.

    Parameters
    ----------
    axis
        Direction of the joint's z axis, in predecessor and successor coordinates alike (they
        agree when the joint is in its neutral position).
    """

    #: Name in model files.
    kind: ClassVar[str] = ""
    #: Names of the position and of the velocity variables.
    coordinates: tuple[str, ...] = ()
    speeds: tuple[str, ...] = ()
    #: Rows of the unit vectors that span a constant S, in the order of v; empty otherwise.
    units: tuple[int, ...] = ()
    #: Whether X_J is a rotation about z by ``turn·q[0]`` and a shift along z: see `axial`.
    is_axial: ClassVar[bool] = False
    #: Space in which q lives, a product of "R" (a number), "SO2" (an angle that counts turns),
    #: "SO3" (unit quaternion), "SE2" (angle, x, y) and "SE3" (unit quaternion, x, y, z).
    groups: tuple[str, ...] = ()
    #: Whether the law depends on time.
    is_rheonomic: bool = False
    #: Whether the law can be traced; only callbacks that branch on values cannot.
    is_traceable: bool = True
    #: Names of the constructor's arguments, for files and printing.
    arguments: ClassVar[tuple[str, ...]] = ("axis",)

    def __init__(self, axis: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        self.axis = _unit(axis)

    # ------------------------------------------------------------------ the law, for subclasses

    @property
    def parameters(self) -> tuple[float, ...]:
        """Numbers that the law receives as p; joints that differ only here share machine code."""
        return ()

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Return E, r, S, c, σ for the axis z."""
        raise NotImplementedError(f"{type(self).__name__} does not state its law")

    def rate(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """Return q̇ (the book's qdfn)."""
        return v

    def position(self, E: Any, r: Any, near: Any) -> list[Any] | None:
        """Position whose pose is (E, r), for the axis z: the inverse of the law.

        Of several it is the one nearest to the position `near`. None if there is no closed form;
        it is then found by iteration, which cannot be traced.
        """
        return None

    @classmethod
    def samples(cls) -> list[Joint]:
        """Different joints of this kind, on which tests and trials run."""
        if "axis" in cls.arguments:
            return [cls(axis=axis) for axis in SAMPLE_AXES]
        return [cls()]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any] | None:
        """δ: what must vanish where this joint closes a loop, for the axis z (book, Table 8.1).

        E and r are those of the transform from predecessor to successor that the two bodies have;
        6 − nv numbers, or fewer with :meth:`closure_rates`. None if the joint cannot say.
        """
        return None

    def closure_side(self, t: Any, E: Any) -> Any:
        """Positive where a closed gap is the right one, not its mirror with axes the wrong way."""
        return 1.0

    def closure_rates(self, t: Any, E: Any, r: Any, v: Any, p: Any) -> list[Any]:
        """Velocities that must vanish besides dδ/dt: of nonholonomic joints only."""
        return []

    @property
    def rate_is_velocity(self) -> bool:
        """Whether q̇ = v."""
        return type(self).rate is Joint.rate

    def law_key(self) -> Any:
        """Joints with equal keys have the same law up to parameters."""
        return type(self)

    # ------------------------------------------------------------------ what follows from it

    @property
    def nq(self) -> int:
        """Number of position variables."""
        return len(self.coordinates)

    @property
    def nv(self) -> int:
        """Number of velocity variables: the degrees of freedom."""
        return len(self.speeds)

    @property
    def frame(self) -> Array:
        """Rotation C from body coordinates to coordinates whose z is the joint's axis."""
        return _frame_of(self.axis)

    def motion(self, q: ArrayLike, v: ArrayLike | None = None, t: float = 0.0) -> JointMotion:
        """X_J, S, v_J and c_J in successor coordinates.

        Examples
        --------
        >>> from multibody import Revolute
        >>> Revolute(axis=(1, 0, 0)).motion([0.3]).S.T
        array([[1., 0., 0., 0., 0., 0.]])
        """
        q = self.check_position(q)
        v = np.zeros(self.nv) if v is None else self.check_velocity(v)
        E, r, S, c, sigma = self.law(t, q, v, np.asarray(self.parameters, dtype=float))
        C = self.frame
        CC = np.zeros((6, 6))
        CC[:3, :3] = CC[3:, 3:] = C.T
        S = CC @ np.asarray(S, dtype=float).reshape(6, self.nv)
        velocity = S @ v + (0.0 if sigma is None else CC @ np.asarray(sigma, dtype=float))
        bias = np.zeros(6) if c is None else CC @ np.asarray(c, dtype=float)
        X = Plucker._of(C.T @ np.asarray(E, dtype=float) @ C, C.T @ np.asarray(r, dtype=float))
        return JointMotion(X, S, velocity, bias)

    def position_rate(self, q: ArrayLike, v: ArrayLike, t: float = 0.0) -> Array:
        """q̇ from v."""
        p = np.asarray(self.parameters, dtype=float)
        return np.asarray(
            self.rate(t, self.check_position(q), self.check_velocity(v), p), dtype=float
        ).reshape(self.nq)

    def constraint_basis(self, q: ArrayLike, t: float = 0.0) -> Array:
        """T: columns that span the constraint forces, Tᵀ S = 0, in successor coordinates.

        Unit vectors where S is made of unit vectors; otherwise an orthonormal basis.
        """
        S = self.motion(q, None, t).S
        if self.units:
            C = self.frame
            rest = unit_columns(*(k for k in range(6) if k not in self.units))
            return np.block([[C.T, np.zeros((3, 3))], [np.zeros((3, 3)), C.T]]) @ rest
        left, _, _ = np.linalg.svd(S)
        return left[:, self.nv :]

    # ------------------------------------------------------------------ positions as a space

    def neutral(self) -> Array:
        """Position at which successor and predecessor frames coincide (if there is one)."""
        return np.concatenate([np.zeros(0), *[_GROUPS[g].neutral for g in self.groups]])

    def random(self, rng: np.random.Generator) -> Array:
        """A position drawn at random: angles from the whole turn, lengths from (−1, 1)."""
        return np.concatenate([np.zeros(0), *[_GROUPS[g].random(rng) for g in self.groups]])

    def integrate(
        self, q: ArrayLike, v: ArrayLike, h: float = 1.0, *, t: float | None = None
    ) -> Array:
        """Position after a time h at constant velocity v, exactly (SE(3) notes, §7).

        With `t`, what time does to q̇ by itself at t counts, too; without, v = 0 stays in place.
        """
        q, v = self.check_position(q), self.check_velocity(v)
        u = np.asarray(self.group_velocity(t or 0.0, q, v), dtype=float)
        if t is None and self.is_rheonomic:
            u = u - np.asarray(self.group_velocity(0.0, q, np.zeros(self.nv)), dtype=float)
        return self.retract(q, h * u)

    def group_velocity(self, t: Any, q: Any, v: Any) -> Any:
        """Velocity as an element of the algebra of :attr:`groups`: v itself for most joints."""
        return v

    def retract(self, q: ArrayLike, u: ArrayLike) -> Array:
        """q·exp(u): the point that u leads to."""
        return self._by_group("retract", self.check_position(q), u)

    def difference(self, q: ArrayLike, q1: ArrayLike) -> Array:
        """u with retract(q, u) = q1, the shortest one."""
        return self._by_group("difference", self.check_position(q), self.check_position(q1))

    def normalise(self, q: ArrayLike) -> Array:
        """Position with unit quaternions."""
        q = np.array(q, dtype=float)
        at = 0
        for name in self.groups:
            if name in ("SO3", "SE3"):
                q[at : at + 4] = quaternions.normalise(q[at : at + 4])
            at += len(_GROUPS[name].neutral)
        return q

    @property
    def quaternion_places(self) -> tuple[int, ...]:
        """Where in q unit quaternions begin."""
        places, at = [], 0
        for name in self.groups:
            if name in ("SO3", "SE3"):
                places.append(at)
            at += len(_GROUPS[name].neutral)
        return tuple(places)

    def _by_group(self, operation: str, q: Array, other: ArrayLike) -> Array:
        other = np.asarray(other, dtype=float)
        parts, at, ut = [np.zeros(0)], 0, 0
        for name in self.groups:
            group = _GROUPS[name]
            n = len(group.neutral)
            m = n if operation == "difference" else group.dimension
            parts.append(getattr(group, operation)(q[at : at + n], other[ut : ut + m]))
            at, ut = at + n, ut + m
        return np.concatenate(parts)

    # ------------------------------------------------------------------ input and output

    def check_position(self, q: ArrayLike) -> Array:
        """Return q as floats, or raise with the names of what is expected.

        Quaternions that are a little off the unit sphere are brought back, others refused.
        """
        array = self._check(q, "q", self.coordinates)
        for at in self.quaternion_places:
            if not unit_quaternion(array[at : at + 4]):
                raise ValueError(
                    f"{type(self).__name__}: expected a unit quaternion as q[{at}:{at + 4}], "
                    f"received norm {np.linalg.norm(array[at : at + 4]):.9g}; divide it by its norm"
                )
        return array

    def check_velocity(self, v: ArrayLike) -> Array:
        """Return v as floats, or raise with the names of what is expected."""
        return self._check(v, "v", self.speeds)

    def _check(self, value: ArrayLike, name: str, expected: tuple[str, ...]) -> Array:
        array = np.atleast_1d(real_array(value, name))
        if array.shape != (len(expected),):
            raise ValueError(
                f"{type(self).__name__}: expected {name} of {len(expected)} numbers "
                f"({', '.join(expected)}), received shape {np.shape(value)}"
            )
        return array.astype(float)

    def specification(self) -> dict[str, Any]:
        """Arguments that make this joint again, without those that have their default."""
        given = {}
        for name in self.arguments:
            value = getattr(self, name)
            if name == "axis":
                if np.array_equal(value, (0.0, 0.0, 1.0)):
                    continue
                value = [float(x) for x in value]
            given[name] = value
        return given

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self.specification().items())
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Joint):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> Any:
        """Everything that tells joints apart; names of variables are part of a joint."""
        space = self.coordinates, self.speeds, self.groups, tuple(self.neutral().tolist())
        return type(self), self.law_key(), tuple(self.parameters), tuple(self.axis.tolist()), space


# ---------------------------------------------------------------------- axes


def _unit(axis: ArrayLike) -> Array:
    if isinstance(axis, str):
        names = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
        letter = axis[1:] if axis.startswith(("+", "-")) else axis
        if letter not in names:
            raise ValueError(
                f"axis: expected 'x', 'y', 'z', one of them with a sign such as '-x', or three "
                f"numbers, received {axis!r}"
            )
        sign = -1.0 if axis.startswith("-") else 1.0
        a = sign * np.array(names[letter], dtype=float) + 0.0
    else:
        a = direction(axis, "axis")
    a.setflags(write=False)  # frames and machine code are made from it once
    return a


def _frame_of(axis: Array) -> Array:
    """Rotation C with C axis = e_z; for coordinate axes a permutation, which rounds nothing."""
    for k, rows in enumerate(([1, 2, 0], [2, 0, 1], [0, 1, 2])):
        if abs(axis[k]) == 1.0:
            C = np.eye(3)[rows]
            return C if axis[k] > 0 else np.diag([1.0, -1.0, -1.0]) @ C + 0.0
    helper = np.eye(3)[min(range(3), key=lambda k: abs(axis[k]))]
    x = np.cross(helper, axis)
    x = x / np.linalg.norm(x)
    return np.array([x, np.cross(axis, x), axis])


# ---------------------------------------------------------------------- groups


class _Group(NamedTuple):
    """A space of positions, with the exponential in body form."""

    dimension: int
    neutral: Array
    random: Callable[[np.random.Generator], Array]
    retract: Callable[[Array, Array], Array]
    difference: Callable[[Array, Array], Array]


def _so3_exp(u: Array) -> Array:
    half = 0.5 * float(np.linalg.norm(u))
    return np.array([np.cos(half), *(0.5 * np.sinc(half / np.pi) * u)])


def _so3_retract(q: Array, u: Array) -> Array:
    return quaternions.multiply(q, _so3_exp(u))


def _so3_difference(q: Array, q1: Array) -> Array:
    return quaternions.to_rotation_vector(quaternions.multiply(quaternions.conjugate(q), q1))


def _random_quaternion(rng: np.random.Generator) -> Array:
    return quaternions.normalise(rng.standard_normal(4))


def _pose(q: Array) -> se3.Pose:
    return se3.Pose._of(quaternions.to_matrix(q[:4]), q[4:])


def _se3_retract(q: Array, u: Array) -> Array:
    moved = _pose(q).compose(se3.exp(u))
    return np.concatenate([_so3_retract(q[:4], u[:3]), moved.p])


def _se3_difference(q: Array, q1: Array) -> Array:
    return se3.log(_pose(q).inverse_compose(_pose(q1)))


def _se2_as_pose(q: Array) -> se3.Pose:
    c, s = np.cos(q[0]), np.sin(q[0])
    return se3.Pose._of(
        np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.array([q[1], q[2], 0.0])
    )


def _se2_retract(q: Array, u: Array) -> Array:
    moved = _se2_as_pose(q).compose(se3.exp([0.0, 0.0, u[0], u[1], u[2], 0.0]))
    return np.array([q[0] + u[0], moved.p[0], moved.p[1]])


#: Shifts below this part of the positions are what rounding leaves of a whole turn.
WHOLE_TURN = 1e-12


def _se2_difference(q: Array, q1: Array) -> Array:
    """Undo the retraction; the angle is not wrapped, for q counts whole turns."""
    turn = q1[0] - q[0]
    c, s = np.cos(q[0]), np.sin(q[0])
    d = np.array([[c, s], [-s, c]]) @ (q1[1:] - q[1:])
    # V maps the linear part of the twist to the displacement; V = [[a, −b], [b, a]].
    half = 0.5 * turn
    if abs(np.remainder(turn + np.pi, 2 * np.pi) - np.pi) < 1e-9 and abs(turn) > 1.0:
        # After whole turns every point is where it was, wherever the centre: V = 0.
        size = max(1.0, float(np.abs(q[1:]).max()), float(np.abs(q1[1:]).max()))
        if np.linalg.norm(d) > WHOLE_TURN * size:
            raise ValueError(
                f"difference: no twist turns by whole turns ({turn:.9g}) and shifts as well, by "
                f"{d}; go there in two steps"
            )
        return np.array([turn, 0.0, 0.0])
    a = np.sinc(turn / np.pi)
    b = np.sin(half) * np.sinc(half / np.pi)
    return np.concatenate([[turn], np.linalg.solve(np.array([[a, -b], [b, a]]), d)])


_GROUPS: dict[str, _Group] = {
    "R": _Group(
        1,
        np.zeros(1),
        lambda rng: rng.uniform(-1.0, 1.0, 1),
        lambda q, u: q + u,
        lambda q, q1: q1 - q,
    ),
    "SO2": _Group(
        1,
        np.zeros(1),
        lambda rng: rng.uniform(-np.pi, np.pi, 1),
        lambda q, u: q + u,
        lambda q, q1: q1 - q,
    ),
    "SO3": _Group(
        3, np.array([1.0, 0, 0, 0]), _random_quaternion, _so3_retract, _so3_difference
    ),
    "SE2": _Group(
        3,
        np.zeros(3),
        lambda rng: np.concatenate([rng.uniform(-np.pi, np.pi, 1), rng.uniform(-1, 1, 2)]),
        _se2_retract,
        _se2_difference,
    ),
    "SE3": _Group(
        6,
        np.array([1.0, 0, 0, 0, 0, 0, 0]),
        lambda rng: np.concatenate([_random_quaternion(rng), rng.uniform(-1, 1, 3)]),
        _se3_retract,
        _se3_difference,
    ),
}  # fmt: skip
