"""Handle sets, and forward dynamics by divide and conquer (book, §7.4 and §7.5).

A part of a mechanism that is touched at k handles obeys a = Φ f + b, with Φ of 6k × 6k
(:class:`HandleSet`). A joint j between two handles adds, with P = +1 at its successor's handle and
−1 at its predecessor's, the force P(T_a τ + T λ) and the condition Tᵀ(Pᵀa − c) = 0. Eliminated,

    Y = Tᵀ Pᵀ Φ P T,     Φ′ = Φ − Φ P T Y⁺ Tᵀ Pᵀ Φ,     b′ likewise,

is the equation of what is left, touched at the other handles: :func:`connect` for any number of
parts and joints at once, those that close a loop within a part included. A rotor's armature is a
spring in this language: its force gives way by A⁻¹.

Which parts are joined when does not matter for the result, but for how much of it can be done at
the same time. :func:`divide_and_conquer` joins neighbours in pairs, and leaves to what carries
them, so that about log₂ n rounds take a chain of n bodies, or a tree, together; on as many
processors as there are pairs the time is O(log n).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...algebra.subspaces import active_forces, constraint_forces
from ...checks import Array, ArrayLike, one_of
from ..loops.constraints.joints import loop_joint_state
from .base_view import (
    BaseCoordinates,
    ForcesLike,
    applied_forces,
    base_coordinates,
    cross_force,
    cross_motion,
    numbers,
)

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "Conquered",
    "HandleSet",
    "JointForces",
    "connect",
    "divide_and_conquer",
]

#: Eigenvalues of Y below this part of the largest are zero: the constraint is redundant.
RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class HandleSet:
    """A part of a mechanism, touched at some handles: a = Φ f + b.

    Attributes
    ----------
    names
        Of the handles, anything that tells them apart; six rows belong to each.
    Phi, b
        Inverse inertia (6k × 6k, symmetric, singular where handles hang together) and bias.
    """

    names: tuple[Hashable, ...]
    Phi: Array
    b: Array

    @classmethod
    def rigid(cls, names: Sequence[Hashable], Phi: Array, b: Array) -> HandleSet:
        """One body with Φ and b, touched in several places: all handles move alike."""
        k = len(names)
        return cls(tuple(names), np.tile(Phi, (k, k)), np.tile(b, k))


class JointForces(NamedTuple):
    """A joint between two handles, in the coordinates of the handles.

    `T` and `T_active` span constraint and active forces (TᵀS = 0, T_aᵀS = 1), `c` is
    a_s − a_p − S v̇, `tau` the active force and `armature` the rotor inertia of each freedom.
    """

    predecessor: Hashable
    successor: Hashable
    T: Array
    T_active: Array
    c: Array
    tau: Array
    armature: Array


class Connected(NamedTuple):
    """What :func:`connect` returns: the whole, and how to come back to its parts.

    `force` has the forces on the handles of the parts: force = inward @ f + known, for forces f on
    the handles that are left.
    """

    whole: HandleSet
    names: tuple[Hashable, ...]
    inward: Array
    known: Array


def connect(parts: Sequence[HandleSet], joints: Sequence[JointForces]) -> Connected:
    """Join parts by joints between their handles; the handles that no joint takes remain.

    Where constraints are redundant, the solution of least norm is taken: accelerations do not
    depend on that choice.

    Examples
    --------
    Two bodies of 1 kg and 2 kg, welded together and touched at the first:

    >>> one = HandleSet.rigid(["grip", "seam"], np.eye(6), np.zeros(6))
    >>> two = HandleSet.rigid(["other seam"], np.eye(6) / 2, np.zeros(6))
    >>> weld = JointForces(
    ...     "seam", "other seam", np.eye(6), np.zeros((6, 0)), np.zeros(6), np.zeros(0), np.zeros(0)
    ... )
    >>> connect([one, two], [weld]).whole.Phi.diagonal().round(3)
    array([0.333, 0.333, 0.333, 0.333, 0.333, 0.333])
    """
    names = tuple(name for part in parts for name in part.names)
    place = {name: 6 * k for k, name in enumerate(names)}
    if len(place) < len(names):
        raise ValueError("connect: expected handles with different names, received one twice")
    n = 6 * len(names)
    Phi, b = np.zeros((n, n)), np.concatenate([np.zeros(0), *[part.b for part in parts]])
    at = 0
    for part in parts:
        size = 6 * len(part.names)
        Phi[at : at + size, at : at + size] = part.Phi
        at += size
    taken: list[Hashable] = []
    columns, targets, yielding = [np.zeros((n, 0))], [np.zeros(0)], [np.zeros(0)]
    active = np.zeros(n)
    for joint in joints:
        ends = [joint.predecessor, joint.successor]
        missing = [end for end in ends if end not in place]
        if missing:
            raise ValueError(f"connect: expected handles of the parts, received {missing[0]!r}")
        taken += ends
        P = np.zeros((n, 6))
        P[place[joint.predecessor] : place[joint.predecessor] + 6] -= np.eye(6)
        P[place[joint.successor] : place[joint.successor] + 6] += np.eye(6)
        active += P @ (joint.T_active @ joint.tau)
        armed = joint.armature > 0.0
        B = np.hstack([joint.T, joint.T_active[:, armed]])
        columns.append(P @ B)
        # Of a rotor: T_aᵀ(Pᵀa − c) + A⁻¹ μ = 0, with μ what it takes away from τ.
        targets.append(B.T @ joint.c)
        yielding.append(np.concatenate([np.zeros(joint.T.shape[1]), 1.0 / joint.armature[armed]]))
    if len(set(taken)) < len(taken):
        raise ValueError("connect: expected each handle in one joint, received one in two")
    PT, target = np.hstack(columns), np.concatenate(targets)
    Y = PT.T @ Phi @ PT + np.diag(np.concatenate(yielding))
    solve = np.linalg.pinv((Y + Y.T) / 2, rcond=RANK_TOLERANCE, hermitian=True)
    rest = [name for name in names if name not in set(taken)]
    rows = np.concatenate([np.zeros(0, int), *[place[r] + np.arange(6) for r in rest]])
    outer = np.eye(n)[:, rows]
    gain = PT @ solve  # λ = −Y⁺(Tᵀ Pᵀ (Φ f + b) − Tᵀ c)
    inward = outer - gain @ (PT.T @ (Phi @ outer))
    known = active - gain @ (PT.T @ (Phi @ active + b) - target)
    left = outer.T @ Phi @ inward
    bias = outer.T @ (Phi @ known + b)
    return Connected(HandleSet(tuple(rest), (left + left.T) / 2, bias), names, inward, known)


# ---------------------------------------------------------------------- the whole mechanism


class Conquered(NamedTuple):
    """Result of :func:`divide_and_conquer`.

    Attributes
    ----------
    accelerations
        v̇.
    forces
        Force that each joint exerts on its successor, in base coordinates about the base's origin;
        those of the tree first, then those of loops, where redundant ones share at least norm.
    rounds
        How many joints were joined in each round; the length is the depth.
    """

    accelerations: Array
    forces: Array
    rounds: tuple[int, ...]

    @property
    def depth(self) -> int:
        """Number of rounds, one after the other."""
        return len(self.rounds)


def divide_and_conquer(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    order: str = "pairs",
) -> Conquered:
    """Forward dynamics by joining the bodies of a mechanism in pairs, loops included.

    Parameters
    ----------
    model, q, v, tau, f_ext, t
        As for `FD`. Each body needs an inertia that is regular by itself.
    order
        "pairs": as many at a time as possible. "leaves": the last body first, one after the other,
        which is forward dynamics by variant 1 of §7.4.

    Raises
    ------
    ValueError
        If a body has no inverse inertia (a particle, a thin rod): `FD` handles them.

    Examples
    --------
    >>> from multibody import FD, mechanisms
    >>> model = mechanisms.serial_arm(16)
    >>> q = np.linspace(-1.0, 1.0, 16)
    >>> found = divide_and_conquer(model, q, np.zeros(16))
    >>> found.depth, np.allclose(found.accelerations, FD(model, q, np.zeros(16)))
    (4, True)
    """
    one_of(order, "order", ("pairs", "leaves"))
    if model.constraints:
        raise ValueError(
            f"divide_and_conquer: expected joints between bodies only, received the constraint "
            f"{model.constraints[0].name!r}, which is a function of all positions; use FD"
        )
    q, v_all, _ = numbers(model, q, v, None, "tau")
    w = base_coordinates(model, q, v_all, t)
    tau_all, known = applied_forces(model, q, v_all, tau, f_ext, t, w)
    bodies = [(b.parent, i) for i, b in enumerate(model.bodies, 1)]
    bodies += [(loop.predecessor, loop.successor) for loop in model.loops]
    joints = [_tree_joint(model, w, i, tau_all) for i in range(model.n_bodies)]
    joints += [_loop_joint(model, w, k, q, v_all, t) for k in range(len(model.loops))]
    touched: dict[int, list[Hashable]] = {i: [] for i in range(model.n_bodies + 1)}
    for joint, (first, second) in zip(joints, bodies):
        touched[first].append(joint.predecessor)
        touched[second].append(joint.successor)
    single = [_body(model, w, i, known) for i in range(model.n_bodies + 1)]
    pieces = {i: HandleSet.rigid(touched[i], *single[i]) for i in touched}
    owner = list(range(model.n_bodies + 1))  # the piece that each body belongs to
    history: list[Connected] = []
    rounds: list[int] = []
    while len(pieces) > 1:
        between = {(owner[i], owner[j]) for i, j in bodies if owner[i] != owner[j]}
        groups = _groups(sorted(pieces), between, order)
        merged = 0
        for group in groups:
            inner = [k for k, ends in enumerate(bodies) if {owner[e] for e in ends} <= set(group)]
            inner = [k for k in inner if joints[k].successor in _names(pieces, group)]
            made = connect([pieces[k] for k in group], [joints[k] for k in inner])
            history.append(made)
            merged += len(inner)
            for k in group:
                del pieces[k]
            pieces[group[0]] = made.whole
            owner = [group[0] if k in group else k for k in owner]
        rounds.append(merged)
    forces = _back(history)
    total = np.zeros((model.n_bodies + 1, 6))
    for joint, (first, second) in zip(joints, bodies):
        total[first] += forces[joint.predecessor]
        total[second] += forces[joint.successor]
    accelerations = [Phi @ f + b for (Phi, b), f in zip(single, total)]
    a = np.zeros(model.nv)
    for at, joint, (first, second) in zip(model.v_index, joints, bodies):
        a[at] = joint.T_active.T @ (accelerations[second] - accelerations[first] - joint.c)
    return Conquered(a, np.array([forces[joint.successor] for joint in joints]), tuple(rounds))


def _names(pieces: dict[int, HandleSet], group: Sequence[int]) -> set[Hashable]:
    return {name for k in group for name in pieces[k].names}


def _back(history: Sequence[Connected]) -> dict[Hashable, Array]:
    """Forces on all handles, from the last join back to the bodies."""
    forces: dict[Hashable, Array] = {}
    for made in reversed(history):
        outer = np.concatenate([np.zeros(0), *[forces[name] for name in made.whole.names]])
        inner = made.inward @ outer + made.known
        for k, name in enumerate(made.names):
            forces[name] = inner[6 * k : 6 * k + 6]
    return forces


def _groups(pieces: Sequence[int], between: set[tuple[int, int]], order: str) -> list[list[int]]:
    """What is joined in one round: leaves with what carries them, and neighbours in pairs."""
    near: dict[int, set[int]] = {k: set() for k in pieces}
    for i, j in between:
        near[i].add(j)
        near[j].add(i)
    if order == "leaves":
        last = pieces[-1]
        return [[min(near[last]), last]]
    groups: dict[int, list[int]] = {}
    free = set(pieces)
    for k in pieces:
        if k in free and len(near[k]) == 1:
            (carrier,) = near[k]
            if carrier in free or carrier in groups:
                groups.setdefault(carrier, [carrier]).append(k)
                free -= {k, carrier}
    for k in pieces:
        others = sorted(near[k] & free)
        if k in free and others:
            groups[k] = [k, others[0]]
            free -= {k, others[0]}
    return [sorted(group) for group in groups.values()]


def _body(model: Model, w: BaseCoordinates, i: int, known: Array) -> tuple[Array, Array]:
    """Φ and b of a body alone, 0 being the base; gravity accelerates the base upwards."""
    if i == 0:
        return np.zeros((6, 6)), np.concatenate([np.zeros(3), -model.gravity])
    body = model.bodies[i - 1]
    try:
        own = body.inertia.inverse().matrix
    except ValueError as error:
        raise ValueError(
            f"divide_and_conquer: body {body.name!r} has no inverse inertia ({error}); use FD, "
            "which needs inertia only in the directions in which a body can move"
        ) from None
    back = np.linalg.inv(w.X[i - 1])
    Phi = back @ own @ back.T
    I, v = w.inertia[i - 1], w.v[i - 1]
    return (Phi + Phi.T) / 2, Phi @ (known[i - 1] - cross_force(v) @ I @ v)


def _tree_joint(model: Model, w: BaseCoordinates, i: int, tau: Array) -> JointForces:
    T, T_active = constraint_forces(w.S[i]), active_forces(w.S[i])
    at = model.v_index[i]
    ends = (i, "predecessor"), (i, "successor")
    return JointForces(*ends, T, T_active, w.c[i], tau[at], model.bodies[i].armature)


def _loop_joint(
    model: Model, w: BaseCoordinates, k: int, q: Array, v: Array, t: float
) -> JointForces:
    """A loop joint where it is; its freedoms carry no force."""
    loop = model.loops[k]
    place: tuple[ArrayLike, ArrayLike] = ((), ())  # of a driven joint
    if loop.joint.nq:
        state = loop_joint_state(model, q, v, k, t=t)
        place = state.position, state.velocity
    move = loop.joint.motion(*place, t)
    i = loop.successor - 1
    X = loop.placement_successor.matrix() @ (w.X[i] if i >= 0 else np.eye(6))
    back = np.linalg.inv(X)
    v_s = w.v[i] if i >= 0 else np.zeros(6)
    c = back @ move.c + cross_motion(v_s) @ (back @ move.v)
    S = back @ move.S
    T, T_active = constraint_forces(S), active_forces(S)
    ends = (model.n_bodies + k, "predecessor"), (model.n_bodies + k, "successor")
    n = move.S.shape[1]
    return JointForces(*ends, T, T_active, c, np.zeros(n), np.zeros(n))
