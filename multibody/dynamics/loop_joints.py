"""Loop joints as joints: their position and velocity, and active forces in them (book, §8.4).

A loop joint has no variables of its own. Its position and velocity follow from the two bodies that
it connects (:func:`loop_joint_state`); a force f in it acts as τ^a = J_Lᵀ T_a f on the joints of
the tree (:func:`loop_joint_forces`), so that q̇ᵀτ^a is its power. Springs and dampers in loop joints
are a force law for ``as_ivp(…, tau=…)`` (:func:`loop_elements`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import quaternions
from .._checks import Array, ArrayLike, real_array
from ..joints import Joint
from ..kernels.spatial import compose, force_transform_inverse, invert, motion_transform
from .closed_loop import need_loops
from .kinematics import forward
from .loops import side

if TYPE_CHECKING:
    from ..model import Model

__all__ = [
    "LoopElement",
    "LoopJointState",
    "loop_elements",
    "loop_joint_forces",
    "loop_joint_state",
]

# Kinds of joints whose position can be read off the pose of their frames.
READABLE = ("revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "free")


@dataclass(frozen=True)
class LoopJointState:
    """Where a loop joint is and how it moves, in the variables of its joint.

    Angles are in (−π, π], or within half a turn of a reference; a ball joint has a quaternion.
    """

    position: Array
    velocity: Array


def _loop_number(model: Model, name: str | int) -> int:
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
    invert(w.E_p, w.r_p, w.E_J, w.r_J)
    compose(w.E_s, w.r_s, w.E_J, w.r_J, w.E_rel, w.r_rel)
    motion_transform(w.E_rel, w.r_rel, w.end_p[0:6], w.spare6)
    return w.E_rel, w.r_rel, w.end_s[0:6] - w.spare6


def _readable(joint: Joint, loop: str) -> str:
    if joint.kind not in READABLE:
        raise ValueError(
            f"loop {loop!r}: the position of {type(joint).__name__} is not read off a pose; this "
            f"works for {', '.join(READABLE)}. Put it in the tree and cut the loop elsewhere"
        )
    return joint.kind


def _angle(E: Any, reference: Any) -> Any:
    """Rotation about z, within half a turn of the reference."""
    sine, cosine = E[0, 1] - E[1, 0], E[0, 0] + E[1, 1]
    c, s = np.cos(reference), np.sin(reference)
    return reference + np.arctan2(sine * c - cosine * s, cosine * c + sine * s)


def _read(joint: Joint, E: Any, r: Any, v: Any, reference: Any) -> tuple[Any, Any]:
    """Position and velocity variables from the relative pose and velocity, for the axis z."""
    kind = joint.kind
    along = E[2, 0] * r[0] + E[2, 1] * r[1] + E[2, 2] * r[2]
    if kind in ("spherical", "free"):
        turn = quaternions.from_matrix(np.asarray(E, dtype=float).T)
        if kind == "spherical":
            return turn, v[:3]
        return np.concatenate([turn, np.asarray(r, dtype=float)]), v
    if kind == "prismatic":
        return np.array([along]), v[5:6]
    angle = _angle(E, reference)
    if kind == "cylindrical":
        return np.array([angle, along]), np.array([v[2], v[5]])
    if kind == "planar":
        return np.array([angle, r[0], r[1]]), np.array([v[2], v[3], v[4]])
    if kind == "helical" and joint.parameters[0] != 0.0:
        # The advance tells which turn it is.
        angle = _angle(E, along / joint.parameters[0])
    return np.array([angle]), v[2:3]


def loop_joint_state(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    loop: str | int = 0,
    *,
    reference: float = 0.0,
    t: float = 0.0,
) -> LoopJointState:
    """Position and velocity of a loop joint in the variables of its joint.

    Parameters
    ----------
    model, q, v, t
        A model with loops and its state.
    loop
        Name or number (from 0) of the loop.
    reference
        For joints with an angle: the angle before, to count turns. The result is within half a
        turn of it. (A helical joint counts turns by its advance.)

    Raises
    ------
    ValueError
        For joints whose variables do not follow from a pose (universal, rolling, driven, …).

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
    l = _loop_number(model, loop)
    joint = model.loops[l].joint
    _readable(joint, model.loops[l].name)
    q = model.check("q", q)
    speed = None if v is None else model.check("v", v)
    w = placed(model, q, speed, t)
    position, velocity = _read(joint, *relative_pose(w, l), float(reference))
    return LoopJointState(np.asarray(position, dtype=float), np.asarray(velocity, dtype=float))


def _active_rows(joint: Joint) -> list[int]:
    """Rows of the unit vectors that make up T_a: T_aᵀ S = 1."""
    return [2] if joint.kind == "helical" else list(joint.units)


def _as_joint_forces(model: Model, w: Any, l: int, force: Any) -> Any:
    """J_Lᵀ X_sᵀ T_a f for a workspace in which the loop's frames are in place."""
    joint = model.loops[l].joint
    at_joint = np.zeros(6, dtype=object)
    for row, f in zip(_active_rows(joint), force):
        at_joint[row] = at_joint[row] + f
    at_base = np.zeros(6, dtype=object)
    force_transform_inverse(w.E_s, w.r_s, at_joint, at_base)
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
        l = _loop_number(model, name)
        joint = model.loops[l].joint
        _readable(joint, name)
        values = np.atleast_1d(real_array(force, f"force in {name!r}"))
        if values.shape != (joint.nv,):
            raise ValueError(
                f"loop {name!r}: expected {joint.nv} forces ({', '.join(joint.speeds)}), received "
                f"shape {np.shape(force)}"
            )
        relative_pose(w, l)
        total += _as_joint_forces(model, w, l, values).astype(float)
    return total


@dataclass(frozen=True)
class LoopElement:
    """Spring, damper and drive in a loop joint with angles or shifts.

    The force on each of its freedoms is ``force − stiffness·(position − rest) − damping·velocity``;
    each is one number, or one for each freedom. `rest` is also the reference of angles: the spring
    of a hinge works within half a turn of it.
    """

    loop: str
    stiffness: ArrayLike = 0.0
    damping: ArrayLike = 0.0
    rest: ArrayLike = 0.0
    force: ArrayLike = 0.0


def loop_elements(model: Model, elements: Sequence[LoopElement]) -> Callable[[Any, Any, Any], Any]:
    """Force law ``tau(t, q, v)`` of springs and dampers in loop joints, for ``as_ivp(…, tau=…)``.

    It is traced with the model.

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
    prepared = []
    for element in elements:
        l = _loop_number(model, element.loop)
        joint = model.loops[l].joint
        if _readable(joint, element.loop) in ("spherical", "free"):
            raise ValueError(
                f"loop {element.loop!r}: springs need angles or shifts, which "
                f"{type(joint).__name__} has not; use ModelBuilder.add_spring between points"
            )
        numbers = {}
        for name in ("stiffness", "damping", "rest", "force"):
            value = real_array(getattr(element, name), name).astype(float)
            if value.shape not in ((), (joint.nv,)):
                raise ValueError(
                    f"loop {element.loop!r}: expected one number or {joint.nv} as {name}, "
                    f"received shape {value.shape}"
                )
            numbers[name] = np.broadcast_to(value, (joint.nv,))
        for name in ("stiffness", "damping"):
            if np.any(numbers[name] < 0.0):
                raise ValueError(
                    f"loop {element.loop!r}: expected {name} ≥ 0, received {numbers[name]}"
                )
        prepared.append((l, joint, numbers))

    def tau(t: Any, q: Any, v: Any) -> Any:
        w = placed(model, q, v, t)
        total: Any = np.zeros(model.nv, dtype=object)
        for l, joint, numbers in prepared:
            x, speed = _read(joint, *relative_pose(w, l), numbers["rest"][0])
            force = [
                numbers["force"][k]
                - numbers["stiffness"][k] * (x[k] - numbers["rest"][k])
                - numbers["damping"][k] * speed[k]
                for k in range(joint.nv)
            ]
            total = total + _as_joint_forces(model, w, l, force)
        numeric = all(isinstance(x, float | int | np.floating) for x in total)
        return total.astype(float) if numeric else total

    return tau
