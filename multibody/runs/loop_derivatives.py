"""Derivatives of closed loops: accelerations that keep the loops closed, through the KKT system.

With loops, accelerations and multipliers satisfy

    R₁ = ID(q, v, v̇) − τ − Kᵀλ = 0,
    R₂ = T ρ − γ + 2α (T v_J − ν) + β² δ = 0,

where v_J is the velocity of a loop joint, ρ = (a_s − a_p) − v_s × v_J its acceleration, both in the
successor's joint frame, and T, γ, ν, δ come from the joint's law (``joints.loops``), a function of
the pose (E, r) of the joint and of v_J. Differentiating at constant v̇ and λ,

    H ∂v̇ − Kᵀ ∂λ = −∂R₁,   K ∂v̇ = −∂R₂.

∂ID is that of the tree with the loop forces as external ones (``dynamics.derivative_kernels``,
which also says how velocities and accelerations answer to a change of position); in addition the
loop forces change with the pose of their joints. Redundant constraints are decided upon as in
``dynamics.closed_loop``; where there are any, derivatives hold along motions that keep the loops
closed, for a state that tears them apart has no accelerations to speak of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular

from ..checks import Array
from ..dynamics.loops.closed_loop import RANK_TOLERANCE
from ..dynamics.loops.joint_law import constraint_count, loop_law
from ..dynamics.loops.stated import stated_law
from ..model.constraints import constraint_numbers

if TYPE_CHECKING:
    from ..dynamics.derivatives.tree import DerivativeWorkspace
    from ..model import Model

__all__ = ["LoopTerms", "loop_terms", "loop_wrenches", "solve_with_loops"]


@dataclass(frozen=True)
class LoopTerms:
    """What the loops add: K, −∂(Kᵀλ) by the columns of `slope`, and ∂R₂."""

    K: Array
    forces: Array
    residual: Array


def _cross(a: Array, b: Array) -> Array:
    """Cross product of motions, row by row: [ω × m; ω × m_O + v × m]."""
    turned = np.cross(a[..., :3], b[..., :3])
    moved = np.cross(a[..., :3], b[..., 3:]) + np.cross(a[..., 3:], b[..., :3])
    return np.concatenate([turned, moved], axis=-1)


def _cross_force(a: Array, f: Array) -> Array:
    """Cross product of motions with a force: [ω × n + v × f; ω × f]."""
    couple = np.cross(a[..., :3], f[..., :3]) + np.cross(a[..., 3:], f[..., 3:])
    return np.concatenate([couple, np.cross(a[..., :3], f[..., 3:])], axis=-1)


class _Side:
    """One side of a loop joint: motions about the joint, and which columns move it."""

    def __init__(self, model: Model, w: DerivativeWorkspace, body: int, E: Array, r: Array) -> None:
        self.body = body
        self.moves_d = np.zeros(len(w.psi), dtype=bool)
        self.moves_v = np.zeros(model.nv, dtype=bool)
        if body < 0:
            self.E, self.r = E, r
            return
        self.E = E @ w.E_0[body]
        self.r = w.r_0[body] + w.E_0[body].T @ r
        i = body
        while i >= 0:
            self.moves_d[w.d_at[i] : w.d_at[i + 1]] = True
            self.moves_v[w.v_at[i] : w.v_at[i + 1]] = True
            i = w.parent[i]

    def at(self, w: DerivativeWorkspace, x: Array, point: Array) -> Array:
        """Motions given about the reference point of the side's tree, about a point instead."""
        if self.body < 0:
            return x
        arm = point - w.r_0[w.root[self.body]]
        out = np.array(x)
        out[..., 3:] += np.cross(x[..., :3], arm)
        return out


def _law_slopes(model: Model, l: int) -> Any:
    """Law of a loop joint and its Jacobian by (E, r, v_J), as functions of (t, y); made once."""
    from integrators import traced

    kept, name = model.tree.traced, f"slopes of loop {l}"
    if name not in kept:
        joint = model.loops[l].joint
        law, k, m = loop_law(joint), len(joint.parameters), constraint_count(joint)
        p = np.asarray(joint.parameters, dtype=float)
        if k:
            f = traced(law, n=18, params=k, outputs=9 * m)
        else:
            f = traced(lambda t, x: law(t, x, ()), n=18, outputs=9 * m)
        J = f.jacobian()
        more = (p,) if k else ()
        kept[name] = lambda t, y: (
            np.asarray(f(t, y, *more)).reshape(9 * m),
            np.asarray(J(t, y, *more)).reshape(9 * m, 18),
        )
    return kept[name]


def loop_wrenches(model: Model, w: Any, multipliers: Array) -> Array:
    """Forces of all loop joints on the bodies, in base coordinates; `w` has T in `T_0`."""
    forces = np.zeros((model.n_bodies, 6))
    at = model.tree.arrays["loop_at"]
    for l, loop in enumerate(model.loops):
        rows = slice(at[l], at[l + 1])
        wrench = multipliers[rows] @ w.T_0[rows]
        for body, sign in ((loop.successor, 1.0), (loop.predecessor, -1.0)):
            if body:
                forces[body - 1] += sign * wrench
    return forces


def loop_terms(
    model: Model, w: DerivativeWorkspace, multipliers: Array, alpha: float, beta: float
) -> LoopTerms:
    """K, and derivatives of Kᵀλ and R₂; w holds the slopes of ID at the accelerations in a_q."""
    a, nv, nd = model.tree.arrays, model.nv, len(w.psi)
    m = int(a["loop_at"][-1])
    K, residual = np.zeros((m, nv)), np.zeros((m, nd + nv))
    forces = np.zeros((nv, nd + nv))
    for l in range(len(model.loops)):
        rows = slice(a["loop_at"][l], a["loop_at"][l + 1])
        if rows.start == rows.stop:
            continue
        lam = multipliers[rows]
        K[rows], residual[rows], more = _one_loop(model, w, l, lam, alpha, beta)
        forces += more
    for l in range(len(model.loops), len(model.bonds)):
        rows = slice(a["loop_at"][l], a["loop_at"][l + 1])
        lam = multipliers[rows]
        K[rows], residual[rows], more = _one_constraint(model, w, l, lam, alpha, beta)
        forces += more
    return LoopTerms(K, forces, residual)


def _one_constraint(
    model: Model, w: DerivativeWorkspace, l: int, lam: Array, alpha: float, beta: float
) -> tuple[Array, Array, Array]:
    """The same of a constraint by a function, whose law is one of q and v themselves."""
    nq, nv, m = model.nq, model.nv, len(lam)
    x = np.concatenate([w.q, w.v])
    value, slope = _stated_slopes(model, l)(float(w.t[0]), x)
    K = value[m : m + m * nv].reshape(m, nv)
    change = slope[:, nq:], slope[:, :nq] @ _directions(model, w)  # by v, and by directions
    by = np.concatenate([change[1], change[0]], axis=1)
    dK = by[m : m + m * nv].reshape(m, nv, -1)
    residual = (
        np.einsum("rkc,k->rc", dK, w.a_q + 2.0 * alpha * w.v)
        - by[2 * m + m * nv :]
        - 2.0 * alpha * by[m + m * nv : 2 * m + m * nv]
        + beta**2 * by[:m]
    )
    residual[:, -nv:] += 2.0 * alpha * K
    return K, residual, -np.einsum("rkc,r->kc", dK, lam)


def _directions(model: Model, w: DerivativeWorkspace) -> Array:
    """Change of the numbers in q along each direction; quaternions keep their norm."""
    found = np.zeros((model.nq, len(w.psi)))
    for i, (body, iq) in enumerate(zip(model.bodies, model.q_index)):
        joint, columns = body.joint, slice(w.d_at[i], w.d_at[i + 1])
        if w.varies[i]:
            found[iq, columns] = np.eye(joint.nq)
            continue
        p = np.asarray(joint.parameters, dtype=float)
        still = np.asarray(joint.rate(float(w.t[0]), w.q[iq], np.zeros(joint.nv), p), dtype=float)
        for j, unit in enumerate(np.eye(joint.nv)):
            moved = np.asarray(joint.rate(float(w.t[0]), w.q[iq], unit, p), dtype=float)
            found[iq, columns.start + j] = moved - still
    return found


def _stated_slopes(model: Model, l: int) -> Any:
    """Law of a constraint by a function and its Jacobian by [q; v]; made once."""
    from integrators import traced

    kept, name = model.tree.traced, f"slopes of constraint {l}"
    if name not in kept:
        constraint, n = model.constraints[l - len(model.loops)], model.nq + model.nv
        p = np.array(constraint_numbers(model, constraint), dtype=float)
        law, size = stated_law(model, constraint), constraint.count * (model.nv + 3)
        f = traced(lambda t, x: law(t, x, p), n=n, outputs=size)
        J = f.jacobian()
        kept[name] = lambda t, x: (np.asarray(f(t, x)), np.asarray(J(t, x)).reshape(size, n))
    return kept[name]


def _one_loop(
    model: Model, w: DerivativeWorkspace, l: int, lam: Array, alpha: float, beta: float
) -> tuple[Array, Array, Array]:
    a = model.tree.arrays
    p = _Side(model, w, a["loop_p"][l], a["loop_E_P"][l], a["loop_r_P"][l])
    s = _Side(model, w, a["loop_s"][l], a["loop_E_S"][l], a["loop_r_S"][l])
    point, E_s = s.r, s.E
    gravity = w.gravity  # the base accelerates with −a_g, as all bodies do

    def motions(side: _Side) -> tuple[Array, Array]:
        if side.body < 0:
            return np.zeros(6), gravity
        return side.at(w, w.vel[side.body], point), side.at(w, w.acc[side.body], point)

    def answers(side: _Side) -> tuple[Array, Array, Array]:
        """ψ, δv and δa of one side, a row for each column of `slope`."""
        v, acc = motions(side)
        psi, xi, zeta = (side.at(w, x, point) for x in (w.psi, w.xi, w.zeta))
        J, chi = side.at(w, w.J, point), side.at(w, w.chi, point)
        on = np.concatenate([side.moves_d, side.moves_v])[:, None]
        moved = np.concatenate([psi, np.zeros_like(J)])
        dv = np.concatenate([_cross(psi, v) + xi, J])
        da = np.concatenate([_cross(psi, acc) + _cross(xi, v) + zeta, _cross(J, v) + chi])
        return moved * on, dv * on, da * on

    def components(x: Array) -> Array:
        """In axes of the successor's joint frame."""
        return np.concatenate([x[..., :3] @ E_s.T, x[..., 3:] @ E_s.T], axis=-1)

    (v_s, a_s), (v_p, a_p) = motions(s), motions(p)
    (psi_s, dv_s, da_s), (psi_p, dv_p, da_p) = answers(s), answers(p)
    v_rel, a_rel = v_s - v_p, (a_s - a_p) - _cross(v_s, v_s - v_p)
    v_J, rho = components(v_rel), components(a_rel)
    dv_rel = dv_s - dv_p
    da_rel = (da_s - da_p) - _cross(dv_s, v_rel) - _cross(v_s, dv_rel)
    # Components in the moving frame.
    dv_J = components(dv_rel - _cross(psi_s, v_rel))
    drho = components(da_rel - _cross(psi_s, a_rel))
    turn = components(psi_s - psi_p)

    E, r = E_s @ p.E.T, p.E @ (s.r - p.r)
    value, slope = _law_slopes(model, l)(float(w.t[0]), np.concatenate([E.ravel(), r, v_J]))
    m = len(lam)
    T = value[m : 7 * m].reshape(m, 6)
    columns = len(turn)
    dE = -np.cross(turn[:, None, :3], E.T[None]).transpose(0, 2, 1)  # −ω × each column of E
    dy = np.concatenate([dE.reshape(columns, 9), turn[:, 3:] @ E, dv_J], axis=1)
    change = slope @ dy.T  # of the law, by columns
    dT = change[m : 7 * m].reshape(m, 6, columns)
    residual = (
        T @ drho.T
        + np.einsum("rkc,k->rc", dT, rho + 2.0 * alpha * v_J)
        - change[8 * m :]
        + 2.0 * alpha * (T @ dv_J.T - change[7 * m : 8 * m])
        + beta**2 * change[:m]
    )
    # K, and the loop's force W about the point, which turns with the successor.
    relative = (s.at(w, w.J, point) * s.moves_v[:, None]) - (
        p.at(w, w.J, point) * p.moves_v[:, None]
    )
    K = T @ components(relative).T

    def base_axes(f: Array) -> Array:
        return np.concatenate([f[..., :3] @ E_s, f[..., 3:] @ E_s], axis=-1)

    W = base_axes(lam @ T)
    dW = _cross_force(psi_s, W) + base_axes(np.einsum("rkc,r->ck", dT, lam))
    return K, residual, -relative @ dW.T


def solve_with_loops(
    H: Array, terms: LoopTerms, by_tree: Array, tolerance: float = RANK_TOLERANCE
) -> tuple[Array, Array]:
    """∂v̇ by the columns of `slope`, and by joint forces."""
    n = len(H)
    L = np.linalg.cholesky(H)
    R1 = np.concatenate([by_tree + terms.forces, -np.eye(n)], axis=1)
    R2 = np.concatenate([terms.residual, np.zeros((len(terms.K), n))], axis=1)
    Y = solve_triangular(L, terms.K.T, lower=True)
    left, sizes, right = np.linalg.svd(Y, full_matrices=False)
    rank = int(np.sum(sizes > tolerance * sizes.max(initial=0.0)))
    U, S, V = left[:, :rank], sizes[:rank], right[:rank]
    z = -solve_triangular(L, R1, lower=True)
    z = z - U @ (U.T @ z) - U @ ((V @ R2) / S[:, None])
    x = solve_triangular(L, z, lower=True, trans="T")
    return x[:, :-n], x[:, -n:]
