"""Forward dynamics in maximal coordinates: six unknowns for each body (book, §3.7, Eq 3.74).

All bodies are free, and every joint is a constraint between two of them:

    [ I    P T ] [  a ]   [ P T_a τ − p ]
    [ TᵀPᵀ  0  ] [ −λ ] = [ Tᵀ(c_J + v_s × v_J) ]

P is the incidence matrix of the graph: +1 where a body is the successor of a joint, −1 where it is
the predecessor; the base has no row. T spans the constraint forces of a joint, T_a its active
forces, T_aᵀS = 1. The last row is Eq 3.44, which holds for joints that time moves as well; the
printed Ṫ form would need the derivative of T.

Joints keep the direction in which they were made (a reversed one has the parent as its
successor), gravity is a force on each body, and nothing is recursive but the positions. So this
shares no formula with the recursive algorithms, and agrees with them only if both are right.

:func:`forward_dynamics_projected` solves the same problem with explicit constraints (Eq 3.18–3.23):
the motions that joints allow are a = G v̇ + g, and the equations of free bodies are projected on
them, GᵀIG v̇ = τ + Gᵀ(f − p − I g).

Supported by both: all joints, reversed or not, without freedom or with six, moved by time;
armature; external forces; springs, dampers and stops; loop joints, which `FD` keeps closed, too.
Here a loop joint is one more constraint between two bodies: T(a_s − a_p) = γ + T(a_s⁰ − a_p⁰), with
T, γ of ``loops`` and the accelerations a⁰ that the tree has when v̇ = 0. Where constraints are
redundant, the multipliers of all joints together are the smallest that do.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...checks import Array, ArrayLike
from ..loops.closed_loop import _run_closure
from ..loops.response import loop_response
from ..storage.loading import load
from .base_view import ForcesLike, applied_forces
from .oracles import (
    BaseCoordinates,
    base_coordinates,
    cross_force,
    cross_motion,
    numbers,
)

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "MaximalMotion",
    "MaximalSystem",
    "forward_dynamics_maximal",
    "forward_dynamics_projected",
    "maximal_system",
]

#: From this number of bodies the sparse solver is used; below, it costs more than it saves.
SPARSE_FROM = 30

#: Singular values of the system of a model with loops below this part of the largest count as zero:
#: constraints that follow from others.
REDUNDANT = 1e-12


class MaximalSystem(NamedTuple):
    """The linear system of Eq 3.74, with what is needed to read its solution.

    Attributes
    ----------
    blocks
        Nonzero blocks of the matrix: (row, column, array). :attr:`matrix` and :meth:`sparse` are
        made of them; blocks at the same place add up.
    right
        Right-hand side, 6 N_B + Σ (6 − n_i) numbers, and one for each constraint of a loop.
    T, T_active, bias
        For each joint in base coordinates: constraint forces, active forces, c_J + v_s × v_J.
    ends
        Predecessor and successor of each joint as numbers of bodies, 0 for the base.
    rows
        Place of λ of each joint among the unknowns.
    tau
        Joint forces, those of joint springs, dampers and stops included.
    T_loops
        Constraint forces of loop joints on their successors, a row each; their λ are the last
        unknowns.
    """

    blocks: list[tuple[int, int, Array]]
    right: Array
    T: list[Array]
    T_active: list[Array]
    bias: list[Array]
    ends: list[tuple[int, int]]
    rows: list[slice]
    tau: Array
    T_loops: Array

    @property
    def matrix(self) -> Array:
        """The symmetric, indefinite matrix, dense."""
        full = np.zeros((self.right.size, self.right.size))
        for row, column, block in self.blocks:
            full[row : row + block.shape[0], column : column + block.shape[1]] += block
        return full

    def sparse(self) -> Any:
        """The same matrix in SciPy's compressed columns."""
        from scipy.sparse import coo_array

        rows, columns, values = [], [], []
        for row, column, block in self.blocks:
            i, j = np.nonzero(block)
            rows.append(row + i)
            columns.append(column + j)
            values.append(block[i, j])
        places = (np.concatenate(rows), np.concatenate(columns))
        n = self.right.size
        return coo_array((np.concatenate(values), places), shape=(n, n)).tocsc()


class MaximalMotion(NamedTuple):
    """Solution of Eq 3.74; 6-vectors in base coordinates, a row for each body or joint.

    Attributes
    ----------
    accelerations
        Spatial acceleration of each body (gravity is not subtracted).
    joint_accelerations
        v̇, as `FD` returns it.
    multipliers
        λ of each joint: 6 − nv numbers.
    joint_forces
        T_a τ + T λ: what the joint passes on to its body from the parent.
    loop_multipliers
        λ of the loop constraints, as ``constrained_accelerations`` counts them.
    """

    accelerations: Array
    joint_accelerations: Array
    multipliers: list[Array]
    joint_forces: Array
    loop_multipliers: Array


def maximal_system(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    t: float = 0.0,
) -> MaximalSystem:
    """Assemble Eq 3.74 in base coordinates.

    Examples
    --------
    >>> from multibody import Inertia, ModelBuilder, Revolute
    >>> b = ModelBuilder()
    >>> _ = b.add_body("rod", 0, Revolute("y"), inertia=Inertia(1.0, (1, 0, 0)))
    >>> maximal_system(b.build(), [0.0], [0.0]).matrix.shape  # 6 + 5
    (11, 11)
    """
    w, v, tau_all, forces = _known(model, q, v, tau, f_ext, t)
    n = model.n_bodies
    q = model.check("q", q)
    T_loops, gamma, K = _loop_constraints(model, q, v, t)
    sizes = [6 - body.joint.nv for body in model.bodies]
    starts = 6 * n + np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    right = np.zeros(starts[-1] + len(gamma))
    rows = [slice(a, b) for a, b in pairwise(starts)]
    system = MaximalSystem([], right, [], [], [], [], rows, tau_all, T_loops)
    for i in range(n):
        system.blocks.append((6 * i, 6 * i, w.inertia[i]))
        right[6 * i : 6 * i + 6] = forces[i]
    for j, body in enumerate(model.bodies):
        at_q, at_v = model.q_index[j], model.v_index[j]
        move = body.joint.motion(q[at_q], v[at_v], t)
        # The successor's frame: the body itself, or the joint's frame on the parent.
        if body.reverse:
            predecessor, successor = j + 1, body.parent
            X_parent = w.X[body.parent - 1] if body.parent else np.eye(6)
            X_s = body.placement.matrix() @ X_parent
        else:
            predecessor, successor = body.parent, j + 1
            X_s = w.X[j]
        v_s = w.v[successor - 1] if successor else np.zeros(6)
        S = np.linalg.solve(X_s, move.S)
        T = X_s.T @ body.joint.constraint_basis(q[at_q], t)
        T_active = np.linalg.pinv(S).T
        c = np.linalg.solve(X_s, move.c) + cross_motion(v_s) @ np.linalg.solve(X_s, move.v)
        # Armature A v̇ is taken from the active force, v̇ = T_aᵀ(Pᵀa − c): it becomes inertia.
        A = np.diag(body.armature)
        heavy = T_active @ A @ T_active.T
        active = T_active @ tau_all[at_v] + heavy @ c
        for number, sign in ((successor, 1.0), (predecessor, -1.0)):
            if number == 0:
                continue
            at = 6 * (number - 1)
            right[at : at + 6] += sign * active
            system.blocks.append((at, starts[j], sign * T))
            system.blocks.append((starts[j], at, sign * T.T))
            for other, other_sign in ((successor, 1.0), (predecessor, -1.0)):
                if other and body.armature.any():
                    system.blocks.append((at, 6 * (other - 1), sign * other_sign * heavy))
        right[starts[j] : starts[j + 1]] = T.T @ c
        system.T.append(T)
        system.T_active.append(T_active)
        system.bias.append(c)
        system.ends.append((predecessor, successor))
    right[starts[-1] :] = gamma
    first_row = model.tree.arrays["loop_at"]
    for l, loop in enumerate(model.loops):
        here = slice(first_row[l], first_row[l + 1])
        place = int(starts[-1] + first_row[l])
        for number, sign in ((loop.successor, 1.0), (loop.predecessor, -1.0)):
            if number:
                T = sign * T_loops[here]
                at_rest = sum((w.c[j] for j in w.support(number - 1)), np.zeros(6))
                right[starts[-1] :][here] += T @ at_rest
                system.blocks.append((6 * (number - 1), place, T.T))
                system.blocks.append((place, 6 * (number - 1), T))
    for r in range(first_row[len(model.loops)], first_row[-1]):  # K v̇, v̇ = T_aᵀ(Pᵀa − c)
        place = int(starts[-1] + r)
        for j, (predecessor, successor) in enumerate(system.ends):
            row = system.T_active[j] @ K[r, model.v_index[j]]
            right[place] += row @ system.bias[j]
            for number, sign in ((successor, 1.0), (predecessor, -1.0)):
                if number and row.any():
                    system.blocks.append((6 * (number - 1), place, sign * row[:, None]))
                    system.blocks.append((place, 6 * (number - 1), sign * row[None, :]))
    return system


def _loop_constraints(model: Model, q: Array, v: Array, t: float) -> tuple[Array, Array, Array]:
    """Rows of T in base coordinates, γ, and K."""
    if not model.bonds:
        return np.zeros((0, 6)), np.zeros(0), np.zeros((0, model.nv))
    w = load(model, q, v, t)
    _run_closure(w)
    return w.T_0.copy(), w.gamma.copy(), w.K.copy()


def _known(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    f_ext: ForcesLike,
    t: float,
) -> tuple[BaseCoordinates, Array, Array, Array]:
    """Positions and velocities, v, joint forces and f − p of all bodies, elements included."""
    q, v, tau = numbers(model, q, v, tau, "tau")
    w = base_coordinates(model, q, v, t)
    joints, forces = applied_forces(model, q, v, tau, f_ext, t, seen=w)
    gravity = np.concatenate([np.zeros(3), model.gravity])
    for i, (I, v_i) in enumerate(zip(w.inertia, w.v)):
        forces[i] += I @ gravity - cross_force(v_i) @ I @ v_i
    return w, v, joints, forces


def forward_dynamics_maximal(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    sparse: bool | None = None,
) -> MaximalMotion:
    """Forward dynamics from Eq 3.74.

    Parameters
    ----------
    model, q, v, tau, f_ext, t
        As for `FD`.
    sparse
        Whether to factorise sparsely; by default for trees of 30 bodies and more, which then cost
        O(n). Models with loops are not (their constraints may be redundant): see
        :class:`~multibody.SparseDynamics`.

    Examples
    --------
    A rod released from the horizontal; its bearing carries a quarter of its weight:

    >>> from multibody import ModelBuilder, Revolute, rod
    >>> b = ModelBuilder()
    >>> _ = b.add_body("rod", 0, Revolute("y"), inertia=rod((0, 0, 0), (1, 0, 0), mass=1.0))
    >>> found = forward_dynamics_maximal(b.build(), [0.0], [0.0])
    >>> (found.joint_accelerations / 9.81).round(9), (found.joint_forces[0, 5] / 9.81).round(9)
    (array([1.5]), np.float64(0.25))
    """
    system = maximal_system(model, q, v, tau, f_ext, t)
    if sparse and model.bonds:
        raise ValueError(
            "sparse: expected False or None for a model with loops, received True; use "
            "SparseDynamics(model), whose factors bear redundant constraints"
        )
    if sparse is None:
        sparse = model.n_bodies >= SPARSE_FROM and not model.bonds
    if sparse:
        from scipy.sparse.linalg import splu

        x = splu(system.sparse()).solve(system.right)
    elif model.bonds:
        x = np.linalg.lstsq(system.matrix, system.right, rcond=REDUNDANT)[0]
    else:
        x = np.linalg.solve(system.matrix, system.right)
    n = model.n_bodies
    accelerations = x[: 6 * n].reshape(n, 6)
    v_dot = np.empty(model.nv)
    forces = np.empty((n, 6))
    multipliers = []
    for j, (body, (predecessor, successor)) in enumerate(zip(model.bodies, system.ends)):
        at = model.v_index[j]
        a_s = accelerations[successor - 1] if successor else np.zeros(6)
        a_p = accelerations[predecessor - 1] if predecessor else np.zeros(6)
        v_dot[at] = system.T_active[j].T @ (a_s - a_p - system.bias[j])
        multipliers.append(-x[system.rows[j]])
        active = system.T_active[j] @ (system.tau[at] - body.armature * v_dot[at])
        force = active + system.T[j] @ multipliers[j]
        forces[j] = -force if body.reverse else force
    lam = -x[len(x) - len(system.T_loops) :]
    return MaximalMotion(accelerations, v_dot, multipliers, forces, lam)


def forward_dynamics_projected(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> Array:
    """v̇ from the equations of all free bodies, projected on the joints' freedoms (Eq 3.20).

    Examples
    --------
    >>> from multibody import ModelBuilder, Revolute, rod
    >>> b = ModelBuilder()
    >>> _ = b.add_body("rod", 0, Revolute("y"), inertia=rod((0, 0, 0), (1, 0, 0), mass=1.0))
    >>> (forward_dynamics_projected(b.build(), [0.0], [0.0]) / 9.81).round(9)
    array([1.5])
    """
    w, v, tau_all, forces = _known(model, q, v, tau, f_ext, t)
    armature = np.concatenate([np.zeros(0), *[body.armature for body in model.bodies]])
    H, right = np.diag(armature), tau_all.copy()
    for i in range(model.n_bodies):
        G = w.jacobian(i)
        g = sum((w.c[j] for j in w.support(i)), np.zeros(6))
        H += G.T @ w.inertia[i] @ G
        right += G.T @ (forces[i] - w.inertia[i] @ g)
    return loop_response(model, model.check("q", q), v, H, t).accelerations(right)
