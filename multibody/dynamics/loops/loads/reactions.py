"""Reactions: the whole force and couple in every joint of a mechanism, loops included.

A joint passes on a wrench to its body (to its successor, for a loop joint) and the opposite to the
other side: bearing load, actuator, joint spring and damper together. Cut all joints, and Newton and
Euler's equations hold for each body with these wrenches:

    I a + v ×* I v = f_gravity + f_external + Σ wrenches of its joints.

With the accelerations known, the wrenches of loop joints are T λ (§8.4), and those of the tree
follow from the leaves to the root (§5.3). Where constraints are redundant, as out of the plane of a
planar linkage, equations do not determine λ: the bodies would have to be elastic. Then of all
wrenches that satisfy them those are taken for which Σ |w|² over all joints, couples in Nm and
forces in N about each joint, is smallest, wherever the loops were cut; components that this choice
has decided are marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ....algebra.plucker import Plucker
from ....checks import Array, ArrayLike, one_of
from ...functions import FD, tree_joint_forces
from ...motion import kinematics
from ...storage.loading import ForcesLike, external_forces, load_given
from ..closed_loop import _run_closure, constrained_accelerations
from ..constraints.joints import LoopElement, acting_elements, placed
from .forces import point_forces

if TYPE_CHECKING:
    from ....model import Model

__all__ = ["JointReactions", "joint_reactions"]

#: Part of the largest wrench of a state of self-stress, below which a component has no share in it.
UNTOUCHED = 1e-9


@dataclass(frozen=True)
class JointReactions:
    """Wrenches (couple, force) in all joints at a state, or along a run with a last axis of time.

    Attributes
    ----------
    bodies
        By the name of a body: what its joint passes on to it from its parent.
    loops
        By the name of a loop: what its joint passes on to the successor from the predecessor.
    determined
        For each of these, by ("body", name) or ("loop", name), six flags: False where redundant
        constraints leave a component open, so that its value is one of the smallest choice.
    coordinates
        "joint", "body" or "base".
    """

    bodies: dict[str, Array]
    loops: dict[str, Array]
    determined: dict[tuple[str, str], Array]
    coordinates: str

    def __getitem__(self, name: str) -> Array:
        """Wrench in the joint of a body or in a loop joint."""
        found = [part[name] for part in (self.bodies, self.loops) if name in part]
        if len(found) == 1:
            return found[0]
        if found:
            raise KeyError(f"{name!r} is a body and a loop; use .bodies[name] or .loops[name]")
        raise KeyError(f"no joint has the name {name!r}; there are {[*self.bodies, *self.loops]}")

    @property
    def is_determined(self) -> bool:
        """Whether no component depends on the choice."""
        return all(flags.all() for flags in self.determined.values())


def joint_reactions(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    coordinates: str = "joint",
    elements: Sequence[LoopElement] = (),
    t: float = 0.0,
) -> JointReactions:
    """Force and couple in every joint while a mechanism moves under given forces.

    Parameters
    ----------
    model, q, v, tau, f_ext, t
        As in :func:`~multibody.FD`; loops are kept closed.
    coordinates
        "joint": about the joint, in the axes of its frame on the body (of a loop joint: on the
        successor). "body": about the body's origin, in its axes; the same for joints of the tree.
        "base": about the base's origin, in base axes.
    elements
        Springs, dampers and actuators in loop joints, which `tau` then must not contain.

    Examples
    --------
    A mass on a rod of 1 m, released from the horizontal and passing the lowest point with v² = 2gL,
    pulls at its pin with three times its weight:

    >>> from multibody import mechanisms
    >>> model = mechanisms.pendulum(length=1.0, mass=2.0, gravity=9.81)
    >>> found = joint_reactions(model, [0.0], [np.sqrt(2 * 9.81)], coordinates="base")
    >>> (found["bob"] / (2.0 * 9.81)).round(9) + 0.0
    array([0., 0., 0., 0., 0., 3.])
    """
    one_of(coordinates, "coordinates", ("joint", "body", "base"))
    q, v = model.check("q", q), model.check("v", v)
    given, in_loops = _with_elements(model, q, v, external_forces(model, f_ext), elements, t)
    if model.bonds:
        found = constrained_accelerations(model, q, v, tau, given, t=t)
        wrenches, stress = _closed(model, q, v, found, given, in_loops, t)
    else:
        a = FD(model, q, v, tau, given, t=t)
        passed = tree_joint_forces(model, load_given(model, q, v, t), a, given)
        X = _to_joints(model, q, t)
        wrenches = np.array([x.inverse().force_matrix() @ f for x, f in zip(X, passed)])
        stress = np.zeros((len(wrenches), 6, 0))
    return _told(model, q, t, wrenches, stress, coordinates)


def _with_elements(
    model: Model, q: Array, v: Array, outside: Array, elements: Sequence[LoopElement], t: float
) -> tuple[Array, Array]:
    """External forces with those of the elements in loops, and the latter for each loop."""
    in_loops = np.zeros((len(model.loops), 6))
    if not elements:
        return outside, in_loops
    w = placed(model, q, v, t)
    for element in acting_elements(model, elements):
        action = element.at(w)
        in_loops[action.number] += action.wrench(action.force).astype(float)
    return outside + _on_bodies(model, in_loops), in_loops


def _on_bodies(model: Model, in_loops: Any) -> Any:
    """Wrenches in loop joints as forces on bodies, all in base coordinates; numbers or symbols."""
    in_loops = np.asarray(in_loops)
    forces = np.zeros((model.n_bodies, *in_loops.shape[1:]), in_loops.dtype)
    for loop, wrench in zip(model.loops, in_loops):
        if loop.successor:
            forces[loop.successor - 1] = forces[loop.successor - 1] + wrench
        if loop.predecessor:
            forces[loop.predecessor - 1] = forces[loop.predecessor - 1] - wrench
    return forces


def _closed(
    model: Model, q: Array, v: Array, found: Any, given: Array, in_loops: Array, t: float
) -> tuple[Array, Array]:
    """Wrenches of all joints in base coordinates, and their states of self-stress in columns.

    A self-stress is a choice of λ with Kᵀλ = 0: forces that hold each other and move nothing.
    """
    w = load_given(model, q, v, t)
    _run_closure(w)
    T, K = w.T_0.copy(), w.K.copy()
    at = model.tree.arrays["loop_at"]
    of_loop = np.zeros((len(model.loops), 6, len(T)))  # wrench in each loop joint = of_loop λ
    for k in range(len(model.loops)):
        of_loop[k, :, at[k] : at[k + 1]] = T[at[k] : at[k + 1]].T
    from_loops = of_loop @ found.multipliers
    forces = given + _on_bodies(model, from_loops)
    forces = forces + point_forces(model, q, found.multipliers, t)
    passed = tree_joint_forces(model, load_given(model, q, v, t), found.accelerations, forces)
    X = _to_joints(model, q, t)
    in_base = [x.inverse().force_matrix() @ f for x, f in zip(X, passed)]
    wrenches = np.array([*in_base, *(from_loops + in_loops)])
    idle = np.linalg.svd(K)[0][:, found.rank :]
    # What loops put on a body, the joints below it hold.
    held = -_on_bodies(model, of_loop @ idle)
    for k, choice in enumerate(idle.T):
        held[:, :, k] -= point_forces(model, q, choice, t)
    for i in range(model.n_bodies - 1, -1, -1):
        if model.bodies[i].parent:
            held[model.bodies[i].parent - 1] += held[i]
    stress = np.concatenate([held, of_loop @ idle])
    if idle.shape[1]:
        at_joints = [x.force_matrix() for x in X]
        A = np.vstack([x @ s for x, s in zip(at_joints, stress)])
        b = np.concatenate([x @ f for x, f in zip(at_joints, wrenches)])
        wrenches = wrenches - stress @ np.linalg.lstsq(A, b, rcond=UNTOUCHED)[0]
    return wrenches, stress


def _to_joints(model: Model, q: Array, t: float, body: bool = False) -> list[Plucker]:
    """From base coordinates to those of each joint (of its body, if `body`), loops last."""
    X = [Plucker._of(pose.R.T, pose.p) for pose in kinematics(model, q, t=t).poses]
    ends = [X[loop.successor] for loop in model.loops]
    if not body:
        ends = [loop.placement_successor * x for loop, x in zip(model.loops, ends)]
    return X[1:] + ends


def _told(
    model: Model, q: Array, t: float, wrenches: Array, stress: Array, coordinates: str
) -> JointReactions:
    """Wrenches, from base coordinates to those asked for, by names."""
    if coordinates != "base":
        X = _to_joints(model, q, t, body=coordinates == "body")
        turned = [x.force_matrix() for x in X]
        wrenches = np.array([x @ f for x, f in zip(turned, wrenches)])
        stress = np.array([x @ s for x, s in zip(turned, stress)])
    share = np.abs(stress).max(axis=2, initial=0.0)
    determined = share <= UNTOUCHED * share.max(initial=0.0)
    names = [("body", b.name) for b in model.bodies] + [("loop", c.name) for c in model.loops]
    n = model.n_bodies
    return JointReactions(
        {name: f for (_, name), f in zip(names[:n], wrenches[:n])},
        {name: f for (_, name), f in zip(names[n:], wrenches[n:])},
        dict(zip(names, determined)),
        coordinates,
    )
