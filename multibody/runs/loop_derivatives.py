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
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular

from ..checks import Array
from ..dynamics.loops.closed_loop import RANK_TOLERANCE
from ..dynamics.loops.forces import point_forces
from ..dynamics.loops.joint_law import constraint_count, loop_law
from ..dynamics.loops.stated import law_sizes, stated_law
from ..model.constraints import constraint_numbers

if TYPE_CHECKING:
    from ..dynamics.derivatives.tree import DerivativeWorkspace
    from ..model import Model

__all__ = ["LoopTerms", "loop_terms", "loop_wrenches", "solve_with_loops"]


@dataclass(frozen=True)
class LoopTerms:
    """What the loops add, by the columns of `slope`.

    Attributes
    ----------
    K
        The constraints' Jacobian.
    forces
        −∂(Kᵀλ).
    acceleration, speed, gap
        ∂(K v̇ − γ) at constant v̇, ∂(K v − ν), and ∂δ.
    """

    K: Array
    forces: Array
    acceleration: Array
    speed: Array
    gap: Array

    def residual(self, alpha: float, beta: float) -> Array:
        """∂R₂, with what is fed back."""
        return self.acceleration + 2.0 * alpha * self.speed + beta**2 * self.gap


def _skew(x: Array) -> Array:
    """[x×], for rows of vectors: y × x = y @ [x×]."""
    a, b, c = x.tolist()
    return np.array([[0.0, -c, b], [c, 0.0, -a], [-b, a, 0.0]])


def _cross(a: Array, b: Array) -> Array:
    """Cross product of motions, row by row, with one motion: [ω × m; ω × m_O + v × m]."""
    x, y, z, u, v, w = b.tolist()
    return a @ np.array(
        [
            [0.0, -z, y, 0.0, -w, v],
            [z, 0.0, -x, w, 0.0, -u],
            [-y, x, 0.0, -v, u, 0.0],
            [0.0, 0.0, 0.0, 0.0, -z, y],
            [0.0, 0.0, 0.0, z, 0.0, -x],
            [0.0, 0.0, 0.0, -y, x, 0.0],
        ]
    )


def _cross_force(a: Array, f: Array) -> Array:
    """Cross product of motions, row by row, with a force: [ω × n + v × f; ω × f]."""
    couple, force = _skew(f[:3]), _skew(f[3:])
    both = np.zeros((6, 6))
    both[:3, :3], both[:3, 3:], both[3:, :3] = couple, force, force
    return a @ both


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
        out[..., 3:] += x[..., :3] @ _skew(arm)
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
    if model.constraints:
        forces = forces + point_forces(model, np.array(w.q), multipliers, float(w.t[0]))
    return forces


def loop_terms(model: Model, w: DerivativeWorkspace, multipliers: Array) -> LoopTerms:
    """K, and derivatives of Kᵀλ and R₂; w holds the slopes of ID at the accelerations in a_q."""
    a, nv, columns = model.tree.arrays, model.nv, len(w.psi) + model.nv
    m = int(a["loop_at"][-1])
    found = LoopTerms(np.zeros((m, nv)), np.zeros((nv, columns)), *np.zeros((3, m, columns)))
    for l in range(len(model.bonds)):
        rows = slice(a["loop_at"][l], a["loop_at"][l + 1])
        if rows.start == rows.stop:
            continue
        one = _one_loop if l < len(model.loops) else _one_constraint
        here = one(model, w, l, multipliers[rows])
        found.forces[:] += here.forces
        for name in ("K", "acceleration", "speed", "gap"):
            getattr(found, name)[rows] = getattr(here, name)
    found.K[:] = np.where(model.tree.reach, found.K, 0.0)  # the rest is rounding
    return found


def _one_constraint(model: Model, w: DerivativeWorkspace, l: int, lam: Array) -> LoopTerms:
    """The same of a constraint by a function of q, v and points.

    With its law's δ, K_v = ∂φ̇/∂v, φ̇, −γ′ and P = ∂φ̇/∂ẋ (``loops.stated``) the residual is

        R₂ = K_v v̇ + P ẍ − γ′ + 2α φ̇ + β² δ,

    and its force K_vᵀλ in joints, and Pᵀλ at the points.
    """
    a, nv, m, nd = model.tree.arrays, model.nv, len(lam), len(w.psi)
    nq = model.nq - model.n_states
    begin, end = a["point_at"][l - len(model.loops)], a["point_at"][l - len(model.loops) + 1]
    points = [_Point(model, w, a["point_body"][k], a["points"][k]) for k in range(begin, end)]
    size = 3 * len(points)
    z = np.concatenate([w.q[:nq], w.v, *[p.place for p in points], *[p.velocity for p in points]])
    value, slope = _stated_slopes(model, l)(float(w.t[0]), z)
    dz = np.zeros((len(z), nd + nv))
    dz[:nq, :nd] = _directions(model, w)
    dz[nq : nq + nv, nd:] = np.eye(nv)
    for k, p in enumerate(points):
        dz[nq + nv + 3 * k : nq + nv + 3 * k + 3] = p.moved.T
        dz[nq + nv + size + 3 * k : nq + nv + size + 3 * k + 3] = p.by_velocity.T
    change = slope @ dz
    begins = np.cumsum([0, m, m * nv, m, m, m * size])
    delta, K_v, speed, gamma, push = (slice(i, j) for i, j in pairwise(begins))
    K, P = value[K_v].reshape(m, nv).copy(), value[push].reshape(m, size)
    dK, dP = change[K_v].reshape(m, nv, nd + nv), change[push].reshape(m, size, nd + nv)
    residual = np.einsum("rkc,k->rc", dK, w.a_q) - change[gamma]
    forces = -np.einsum("rkc,r->kc", dK, lam)
    for k, p in enumerate(points):
        here = slice(3 * k, 3 * k + 3)
        residual += np.einsum("rac,a->rc", dP[:, here], p.acceleration)
        residual += P[:, here] @ p.by_acceleration.T
        K += P[:, here] @ p.J_linear.T
        # The force at the point changes, and its place.
        F, dF = lam @ P[:, here], np.einsum("rac,r->ac", dP[:, here], lam)
        forces -= p.J_angular @ (p.moved @ _skew(F)).T + p.J_linear @ dF
    return LoopTerms(K, forces, residual, change[speed], change[delta])


class _Point(_Side):
    """A point of a body: its motion, and how place, velocity and acceleration answer."""

    def __init__(self, model: Model, w: DerivativeWorkspace, body: int, r: Array) -> None:
        super().__init__(model, w, body, np.eye(3), r)
        x, count = self.r, len(w.psi) + model.nv
        self.place = x
        if body < 0:
            self.velocity = self.acceleration = np.zeros(3)
            self.moved = self.by_velocity = self.by_acceleration = np.zeros((count, 3))
            self.J_angular = self.J_linear = np.zeros((model.nv, 3))
            return
        v, acc = self.at(w, w.vel[body], x), self.at(w, w.acc[body] - w.gravity, x)
        psi, xi, zeta = (self.at(w, y, x) for y in (w.psi, w.xi, w.zeta))
        J, chi = self.at(w, w.J, x), self.at(w, w.chi, x)
        on = np.concatenate([self.moves_d, self.moves_v])[:, None]
        moved = np.concatenate([psi, np.zeros_like(J)]) * on
        full = self.at(w, w.acc[body], x)
        dv = np.concatenate([_cross(psi, v) + xi, J]) * on
        da = np.concatenate([_cross(psi, full) + _cross(xi, v) + zeta, _cross(J, v) + chi]) * on
        spin = v[:3]
        self.velocity, self.acceleration = v[3:], acc[3:] + np.cross(spin, v[3:])
        self.moved = moved[:, 3:]
        # About the point, which moves along.
        self.by_velocity = dv[:, 3:] - self.moved @ _skew(spin)
        self.by_acceleration = (
            da[:, 3:]
            - self.moved @ _skew(acc[:3])
            + dv[:, :3] @ _skew(self.velocity)
            - self.by_velocity @ _skew(spin)
        )
        on_v = self.moves_v[:, None]
        self.J_angular, self.J_linear = J[:, :3] * on_v, J[:, 3:] * on_v


def _directions(model: Model, w: DerivativeWorkspace) -> Array:
    """Change of the numbers in q along each direction; quaternions keep their norm."""
    found = np.zeros((model.nq - model.n_states, len(w.psi)))
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
        constraint = model.constraints[l - len(model.loops)]
        n, size = law_sizes(model, constraint)
        p = np.array(constraint_numbers(model, constraint), dtype=float)
        law = stated_law(model, constraint)
        f = traced(lambda t, z: law(t, z, p), n=n, outputs=size)
        J = f.jacobian()
        kept[name] = lambda t, z: (np.asarray(f(t, z)), np.asarray(J(t, z)).reshape(size, n))
    return kept[name]


def _one_loop(model: Model, w: DerivativeWorkspace, l: int, lam: Array) -> LoopTerms:
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
    da_rel = (da_s - da_p) - _cross(dv_s, v_rel) + _cross(dv_rel, v_s)
    # Components in the moving frame.
    dv_J = components(dv_rel - _cross(psi_s, v_rel))
    drho = components(da_rel - _cross(psi_s, a_rel))
    turn = components(psi_s - psi_p)

    E, r = E_s @ p.E.T, p.E @ (s.r - p.r)
    value, slope = _law_slopes(model, l)(float(w.t[0]), np.concatenate([E.ravel(), r, v_J]))
    m = len(lam)
    T = value[m : 7 * m].reshape(m, 6)
    columns = len(turn)
    dE = turn[:, :3] @ np.concatenate([_skew(row) for row in E.T], 1)  # −ω × each column of E
    dE = -dE.reshape(columns, 3, 3).transpose(0, 2, 1)
    dy = np.concatenate([dE.reshape(columns, 9), turn[:, 3:] @ E, dv_J], axis=1)
    change = slope @ dy.T  # of the law, by columns
    dT = change[m : 7 * m].reshape(m, 6, columns)
    residual = T @ drho.T + np.einsum("rkc,k->rc", dT, rho) - change[8 * m :]
    speed = T @ dv_J.T + np.einsum("rkc,k->rc", dT, v_J) - change[7 * m : 8 * m]
    # K, and the loop's force W about the point, which turns with the successor.
    relative = (s.at(w, w.J, point) * s.moves_v[:, None]) - (
        p.at(w, w.J, point) * p.moves_v[:, None]
    )
    K = T @ components(relative).T

    def base_axes(f: Array) -> Array:
        return np.concatenate([f[..., :3] @ E_s, f[..., 3:] @ E_s], axis=-1)

    W = base_axes(lam @ T)
    dW = _cross_force(psi_s, W) + base_axes(np.einsum("rkc,r->ck", dT, lam))
    return LoopTerms(K, -relative @ dW.T, residual, speed, change[:m])


def solve_with_loops(
    H: Array,
    terms: LoopTerms,
    by_tree: Array,
    gains: tuple[float, float] = (0.0, 0.0),
    tolerance: float = RANK_TOLERANCE,
) -> tuple[Array, Array]:
    """∂v̇ by the columns of `slope`, and by joint forces; the gains are α and β."""
    n = len(H)
    L = np.linalg.cholesky(H)
    R1 = np.concatenate([by_tree + terms.forces, -np.eye(n)], axis=1)
    R2 = np.concatenate([terms.residual(*gains), np.zeros((len(terms.K), n))], axis=1)
    Y = solve_triangular(L, terms.K.T, lower=True)
    left, sizes, right = np.linalg.svd(Y, full_matrices=False)
    rank = int(np.sum(sizes > tolerance * sizes.max(initial=0.0)))
    U, S, V = left[:, :rank], sizes[:rank], right[:rank]
    z = -solve_triangular(L, R1, lower=True)
    z = z - U @ (U.T @ z) - U @ ((V @ R2) / S[:, None])
    x = solve_triangular(L, z, lower=True, trans="T")
    return x[:, :-n], x[:, -n:]
