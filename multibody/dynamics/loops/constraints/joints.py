"""Loop joints as joints: their position and velocity, and active forces in them (book, §8.4).

A loop joint has no variables of its own. Its position q_J follows from the pose (E, r) of the two
frames that it connects, by the inverse of the joint's own law: in closed form, or by
least squares over the joint's positions (:func:`solve_position`). Its velocity is

    v_J = T_aᵀ (v_s − v_p − σ)     with T_aᵀ S(q_J) = 1,

and forces f that belong to v_J act on the successor as the wrench T_a f (and on the predecessor as
the opposite), so on the joints of the tree as τ^a = J_Lᵀ T_a f (:func:`loop_joint_forces`). Their
power is fᵀ v_J. A spring has the energy ½k(q_J − q₀)²; with q̇_J = N(q_J) v_J its force is
f = −Nᵀ k(q_J − q₀). Springs, dampers and actuators together are a force law for
``as_ivp(…, tau=…)`` (:func:`loop_elements`).

T_a is made of couples if rotation alone tells v_J, of forces if translation alone does, otherwise
of both. The choice shows in the constraint forces of the loop only: a nut on a screw is turned, not
pushed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....checks import Array, ArrayLike, real_array
from ....joints import Driven, Joint
from ....kernels.spatial import force_transform_inverse, motion_transform
from ...trees.kinematics import forward
from ..closed_loop import need_loops
from .gaps import pose_between, side
from .positions import in_quaternions, is_numeric, position_of, reference_of, solve_position

if TYPE_CHECKING:
    from ....model import Model

__all__ = [
    "ActingElement",
    "LoopElement",
    "LoopJointState",
    "acting_elements",
    "loop_elements",
    "loop_joint_forces",
    "loop_joint_state",
    "solve_position",
]

#: Part of its own size that a freedom must have apart from the others, squared.
INDEPENDENT = 1e-20


@dataclass(frozen=True)
class LoopJointState:
    """Where a loop joint is and how it moves, in the variables of its joint.

    Angles are in (−π, π], or within half a turn of a reference; a ball joint has a quaternion.
    """

    position: Array
    velocity: Array


def loop_number(model: Model, name: str | int) -> int:
    need_loops(model)
    if isinstance(name, str):
        names = [loop.name for loop in model.loops]
        if name not in names:
            raise ValueError(f"no loop is named {name!r}; there are {names}")
        return names.index(name)
    if isinstance(name, bool) or not isinstance(name, int | np.integer):
        raise TypeError(f"expected a loop's name or number, received {name!r}")
    if not 0 <= name < len(model.loops):
        raise ValueError(f"no loop has number {name}; they run from 0 to {len(model.loops) - 1}")
    return int(name)


def placed(model: Model, q: Any, v: Any, t: Any) -> Any:
    """Workspace with positions and velocities of all bodies; of numbers or of symbols."""
    w = model.tree.symbolic()
    w.t[0] = t
    w.q[:] = q
    w.v[:] = 0.0 if v is None else v
    forward(w)
    return w


def relative_pose(w: Any, l: int) -> tuple[Any, Any, Any]:
    """E and r from predecessor to successor frame of a loop joint, and its velocity there."""
    w.acc[:] = 0.0  # `side` reads accelerations as well
    side(w, w.loop_p[l], w.loop_E_P[l], w.loop_r_P[l], w.end_p, w.E_p, w.r_p)
    side(w, w.loop_s[l], w.loop_E_S[l], w.loop_r_S[l], w.end_s, w.E_s, w.r_s)
    pose_between(w, l)
    motion_transform(w.E_rel, w.r_rel, w.end_p[0:6], w.spare6)
    return w.E_rel, w.r_rel, w.end_s[0:6] - w.spare6


# ---------------------------------------------------------------------- velocities and forces


@lru_cache(maxsize=256)
def _rows(joint: Joint) -> tuple[int, ...]:
    """Rows of S that T_a is made of: couples, forces, or both (see the module)."""
    if joint.units:
        return joint.units
    rng, p = np.random.default_rng(0), np.asarray(joint.parameters, dtype=float)
    S = [joint.law(0.3, joint.random(rng), np.zeros(joint.nv), p)[2] for _ in range(3)]
    for rows in ((0, 1, 2), (3, 4, 5)):
        ranks = [np.linalg.matrix_rank(np.asarray(x, dtype=float)[list(rows)]) for x in S]
        if max(ranks) == joint.nv:
            return rows
    return (0, 1, 2, 3, 4, 5)


def _duals(joint: Joint, t: Any, q: Any, loop: str) -> tuple[Any, Any]:
    """T_aᵀ, the rows with T_aᵀ S = 1 (pseudo-inverse of the chosen rows of S), and σ."""
    rows, n = _rows(joint), joint.nv
    if joint.units:
        return np.eye(6)[list(rows)], np.zeros(6)
    _, _, S, _, sigma = joint.law(t, q, np.zeros(n), np.asarray(joint.parameters, dtype=float))
    A = [[S[k][j] if k in rows else 0.0 for k in range(6)] for j in range(n)]
    # Gauss–Jordan elimination of (AᵀA) Y = Aᵀ; AᵀA is positive definite and needs no pivoting.
    G = np.empty((n, n + 6), dtype=object)
    for i in range(n):
        G[i, n:] = A[i]
        for j in range(n):
            G[i, j] = sum(a * b for a, b in zip(A[i], A[j]))
    sizes = [G[i, i] for i in range(n)]
    for i in range(n):
        if is_numeric(G[i, i]) and not G[i, i] > INDEPENDENT * sizes[i]:
            raise ValueError(
                f"loop {loop!r}: at q = {np.asarray(q, dtype=float).round(6).tolist()} freedoms "
                f"of {joint!r} depend on each other (gimbal lock), so that velocities and forces "
                "in it are not determined; use Spherical, or a sequence that is singular elsewhere"
            )
        G[i] = G[i] / G[i, i]
        for k in range(n):
            if k != i:
                G[k] = G[k] - G[k, i] * G[i]
    return G[:, n:], np.zeros(6) if sigma is None else np.asarray(sigma)


def _read(
    joint: Joint, t: Any, pose: tuple[Any, Any, Any], reference: Array | None, loop: str
) -> tuple[Any, Any, Any, Any]:
    """Position, velocity, T_aᵀ and σ from the relative pose and velocity."""
    E, r, v = pose
    q = position_of(joint, t, E, r, reference)
    duals, sigma = _duals(joint, t, q, loop)
    return q, duals @ (v - sigma), duals, sigma


def loop_joint_state(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    loop: str | int = 0,
    *,
    reference: ArrayLike | None = None,
    t: float = 0.0,
) -> LoopJointState:
    """Position and velocity of a loop joint in the variables of its joint.

    Where the loop is open, position and velocity are those of the joint's nearest motion, in its
    own freedoms; of a driven joint they are those of the joint that is driven.

    Parameters
    ----------
    model, q, v, t
        A model with loops and its state.
    loop
        Name or number (from 0) of the loop.
    reference
        Position before, to count turns: one number, or one for each position variable. Angles end
        within half a turn of it. (Screws and pinions count turns by their advance.) Of the two
        triples of an angle sequence it is the one on the reference's side of gimbal lock.

    Raises
    ------
    ValueError
        At gimbal lock, where velocities are not determined; and for a joint of your own if its
        position is not found.

    Examples
    --------
    The angles of a triangle's corners add up to a whole turn:

    >>> from multibody import mechanisms
    >>> entry = mechanisms.entry("four_bar")
    >>> model = entry.model()
    >>> q, v = entry.start(model)
    >>> state = loop_joint_state(model, q, v, "joint")
    >>> bool(np.isclose(state.position[0], q[2] - q[1] - q[0]))
    True
    >>> bool(np.isclose(state.velocity[0], v[2] - v[1] - v[0]))
    True
    """
    l = loop_number(model, loop)
    name, joint = model.loops[l].name, model.loops[l].joint
    while isinstance(joint, Driven):
        joint = joint.joint
    q = model.check("q", q)
    w = placed(model, q, None if v is None else model.check("v", v), t)
    start = reference_of(joint, reference, name)
    position, velocity, *_ = _read(joint, t, relative_pose(w, l), start, name)
    return LoopJointState(np.asarray(position, dtype=float), np.asarray(velocity, dtype=float))


def _movable(model: Model, l: int) -> Joint:
    """The joint of a loop, if forces in it do anything."""
    loop = model.loops[l]
    if loop.joint.nv == 0:
        raise ValueError(
            f"loop {loop.name!r}: {loop.joint!r} leaves no freedom in which a force could act; the "
            "constraint would take it up. Use the joint without Driven, or put nothing there"
        )
    return loop.joint


def _at_base(w: Any, duals: Any, force: Any) -> Any:
    """T_a f in base coordinates, for a workspace in which the loop's frames are in place."""
    at_joint = np.zeros(6, dtype=object)
    for row, f in zip(duals, force):
        at_joint = at_joint + row * f
    at_base = np.zeros(6, dtype=object)
    force_transform_inverse(w.E_s, w.r_s, at_joint, at_base)
    return at_base


def _as_joint_forces(model: Model, w: Any, l: int, at_base: Any) -> Any:
    """J_Lᵀ times a wrench on the successor, the opposite of which is on the predecessor."""
    tau = np.zeros(model.nv, dtype=object)
    for body, sign in ((w.loop_s[l], 1.0), (w.loop_p[l], -1.0)):
        i = int(body)
        while i >= 0:
            E, r = w.E_0[i], w.r_0[i]
            # The force in coordinates of body i, on the joint that carries it.
            couple = E @ (at_base[:3] - np.cross(r, at_base[3:]))
            push = E @ at_base[3:]
            for k in range(w.v_at[i], w.v_at[i + 1]):
                work = sum(w.S[k, m] * couple[m] + w.S[k, 3 + m] * push[m] for m in range(3))
                tau[k] = tau[k] + sign * work
            i = int(w.parent[i])
    return tau


def loop_joint_forces(
    model: Model, q: ArrayLike, forces: Mapping[str, ArrayLike], *, t: float = 0.0
) -> Array:
    """τ^a: joint forces of the tree that have the effect of active forces in loop joints.

    Parameters
    ----------
    forces
        For each loop (by name) the force of each freedom of its joint: it acts on the successor,
        and the opposite on the predecessor. For a helical joint a torque.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> entry = mechanisms.entry("four_bar")
    >>> model = entry.model()
    >>> loop_joint_forces(model, entry.start(model)[0], {"joint": [2.0]}).round(9)
    array([-2., -2.,  2.])
    """
    q = model.check("q", q)
    w = placed(model, q, None, t)
    total = np.zeros(model.nv)
    for name, force in forces.items():
        l = loop_number(model, name)
        joint = _movable(model, l)
        values = np.atleast_1d(real_array(force, f"force in {name!r}"))
        if values.shape != (joint.nv,):
            raise ValueError(
                f"loop {name!r}: expected {joint.nv} forces ({', '.join(joint.speeds)}), received "
                f"shape {np.shape(force)}"
            )
        duals = _read(joint, t, relative_pose(w, l), None, name)[2]
        total += _as_joint_forces(model, w, l, _at_base(w, duals, values)).astype(float)
    return total


def loop_reading(model: Model, w: Any, l: int) -> tuple[Any, Any, Callable[[Any], Any]]:
    """Position and velocity of a loop joint, and the wrench on its successor of forces in it.

    For a workspace in which all bodies are placed; wrenches are in base coordinates.
    """
    joint = _movable(model, l)
    q, v, duals, _ = _read(joint, w.t[0], relative_pose(w, l), None, model.loops[l].name)
    frame = SimpleNamespace(E_s=np.array(w.E_s), r_s=np.array(w.r_s))

    def as_kind(values: Any) -> Any:
        array = np.asarray(values)
        return array.astype(float) if is_numeric(array) else array

    return as_kind(q), as_kind(v), lambda force: as_kind(_at_base(frame, duals, force))


# ---------------------------------------------------------------------- springs, dampers, actuators


@dataclass(frozen=True)
class LoopElement:
    """Spring, damper and actuator in a loop joint.

    Attributes
    ----------
    loop
        Name of the loop.
    stiffness, rest
        Of a spring with the energy ½ stiffness·(position − rest)²: one number, or one for each
        *position* variable of the joint. `rest` is also the reference of angles: the spring of a
        hinge works within half a turn of it. Quaternions have no springs; of a joint that has one
        give a stiffness for each variable, zero for the quaternion's.
    damping
        The force on each *velocity* variable is −damping·velocity: one number, or one for each.
    force
        Of an actuator, for each velocity variable: numbers, or a function ``force(t, position,
        velocity)`` of the joint's own variables, written with NumPy so that it can be traced.
    """

    loop: str
    stiffness: ArrayLike = 0.0
    damping: ArrayLike = 0.0
    rest: ArrayLike = 0.0
    force: ArrayLike | Callable[[Any, Any, Any], Any] = 0.0


class ActingElement:
    """A :class:`LoopElement` in its model, checked, with what it does at a state."""

    def __init__(self, model: Model, element: LoopElement) -> None:
        if not isinstance(element, LoopElement):
            raise TypeError(f"expected a LoopElement, received {element!r:.80}")
        self.model, self.loop = model, element.loop
        self.number = loop_number(model, element.loop)
        self.joint = _movable(model, self.number)
        nq, nv = self.joint.nq, self.joint.nv
        self.stiffness = self._numbers("stiffness", element.stiffness, nq)
        self.rest = self._numbers("rest", element.rest, nq)
        self.damping = self._numbers("damping", element.damping, nv)
        for name in ("stiffness", "damping"):
            if np.any(getattr(self, name) < 0.0):
                raise ValueError(
                    f"loop {self.loop!r}: expected {name} ≥ 0, received {getattr(self, name)}"
                )
        given = element.force
        self._force: Any = given if callable(given) else self._numbers("force", given, nv)
        if any(self.stiffness[k] != 0.0 for k in in_quaternions(self.joint)):
            raise ValueError(
                f"loop {self.loop!r}: springs need angles or shifts, and {self.joint!r} has a "
                f"quaternion; give a stiffness for each of {', '.join(self.joint.coordinates)}, "
                "zero for the quaternion, or use ModelBuilder.add_spring between points"
            )
        self._start = reference_of(self.joint, self.rest, self.loop)

    def _numbers(self, name: str, value: Any, count: int) -> Array:
        array = real_array(value, name).astype(float)
        if array.shape not in ((), (count,)):
            raise ValueError(
                f"loop {self.loop!r}: expected one number or {count} as {name}, received shape "
                f"{array.shape}"
            )
        return np.broadcast_to(array, (count,))

    def _actuator(self, t: Any, q: Any, v: Any) -> Any:
        if not callable(self._force):
            return self._force
        force, nv = np.atleast_1d(np.asarray(self._force(t, q, v))), self.joint.nv
        if force.shape != (nv,):
            raise ValueError(
                f"loop {self.loop!r}: expected {nv} numbers ({', '.join(self.joint.speeds)}) from "
                f"the function force(t, position, velocity), received shape {force.shape}"
            )
        return force

    def at(self, w: Any) -> LoopAction:
        """Forces and energy at the state of a workspace (see :func:`placed`)."""
        t, joint = w.t[0], self.joint
        q, v, duals, sigma = _read(joint, t, relative_pose(w, self.number), self._start, self.loop)
        pull = [k * (x - x0) for k, x, x0 in zip(self.stiffness, q, self.rest)]
        p = np.asarray(joint.parameters, dtype=float)
        spring = np.zeros(joint.nv, dtype=object)
        if self.stiffness.any():
            still = joint.rate(t, q, np.zeros(joint.nv), p)
            for j, unit in enumerate(np.eye(joint.nv)):  # column j of N
                column = [a - b for a, b in zip(joint.rate(t, q, unit, p), still)]
                spring[j] = -sum(a * f for a, f in zip(column, pull))
        return LoopAction(
            self.number,
            v,
            sum(0.5 * f * (x - x0) for f, x, x0 in zip(pull, q, self.rest)),
            spring,
            -self.damping * v,
            np.asarray(self._actuator(t, q, v)),
            lambda force: _at_base(w, duals, force),
            duals @ sigma,
        )


@dataclass(frozen=True)
class LoopAction:
    """What an element does: energy of its spring, and forces that belong to `velocity`.

    `wrench` turns such forces into the wrench on the successor in base coordinates; it holds until
    the workspace is used for another loop. `bias` is T_aᵀσ: what time alone moves, as a velocity.
    """

    number: int
    velocity: Any
    energy: Any
    spring: Any
    damper: Any
    actuator: Any
    wrench: Callable[[Any], Any]
    bias: Any

    @property
    def force(self) -> Any:
        """Sum of the three."""
        return self.spring + self.damper + self.actuator


def acting_elements(model: Model, elements: Sequence[LoopElement]) -> list[ActingElement]:
    """Check the elements of a model's loops; see :func:`loop_elements`."""
    if isinstance(elements, LoopElement):
        raise TypeError("elements: expected a list of LoopElement, received one; write [element]")
    return [ActingElement(model, element) for element in elements]


def loop_elements(model: Model, elements: Sequence[LoopElement]) -> Callable[[Any, Any, Any], Any]:
    """Force law ``tau(t, q, v)`` of springs, dampers and actuators in loop joints.

    For ``as_ivp(…, tau=…)`` and ``as_dae(…, tau=…)``. It is traced with the model, except for
    joints of your own (:class:`~multibody.UserJoint`), whose position has to be searched for.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> entry = mechanisms.entry("four_bar")
    >>> model = entry.model()
    >>> tau = loop_elements(model, [LoopElement("joint", damping=0.5)])
    >>> q, v = entry.start(model)
    >>> bool(np.dot(tau(0.0, q, v), v) < 0)  # takes energy out
    True
    """
    prepared = acting_elements(model, elements)

    def tau(t: Any, q: Any, v: Any) -> Any:
        w = placed(model, q, v, t)
        total: Any = np.zeros(model.nv, dtype=object)
        for element in prepared:
            action = element.at(w)
            total = total + _as_joint_forces(model, w, action.number, action.wrench(action.force))
        return total.astype(float) if is_numeric(total) else total

    return tau


# ---------------------------------------------------------------------- constraint forces
