"""Derivatives of closed loops: accelerations that keep the loops closed, through the KKT system.

With loops, accelerations and multipliers satisfy

    R₁ = ID(q, v, v̇) − τ − Kᵀλ = 0,    R₂ = K v̇ − γ + 2α (K v − ν) + β² δ = 0.

Differentiating at constant v̇ and λ,

    H ∂v̇ − Kᵀ ∂λ = −∂R₁,   K ∂v̇ = −∂R₂,

so that with x₀ = −H⁻¹∂R₁ and K⁺ = H⁻¹Kᵀ(KH⁻¹Kᵀ)⁻¹, which inverts K with the least kinetic energy,

    ∂v̇ = x₀ − K⁺ (K x₀ + ∂R₂).

∂ID is that of the tree with the loop forces as external ones (``derivatives.kernels``); what the
constraints add is in ``loop_terms`` and ``stated_terms``. Redundant constraints are decided upon
explicitly, by orthogonalising the rows of K weighted with the inertia, largest first; where there
are any, derivatives hold along motions that keep the loops closed, for a state that tears them
apart has no accelerations to speak of. On symbols nothing can be decided: there K⁺ comes from
KH⁻¹Kᵀ with a little on its diagonal and refinement, as accelerations do (``loops.multipliers``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import kernel

from ..forces import element_forces
from ..loops.multipliers import (
    ALPHA,
    BETA,
    EPSILON,
    constrained_kernel,
    couple_rows,
    factor_regularised,
    solve_refined,
)
from ..storage.workspace import HAVE_ELEMENTS
from ..trees.factor import l_solve_kernel, lt_solve_kernel
from ..trees.kinematics import forward
from .kernels import inward, outward, slopes_of_sums
from .loop_terms import loop_push, loop_terms
from .results import along_velocities, factorise, solve_columns, state_jacobian, subtract
from .springs import spring_slopes
from .stated_terms import stated_push, stated_terms
from .tree import RANK_BY_VALUES, TILE

__all__ = [
    "CLOSED_ALONG",
    "CLOSED_BY",
    "GIVEN_MULTIPLIERS_ALONG",
    "GIVEN_MULTIPLIERS_BY",
    "TERMS",
    "closed_derivatives",
]

# What to compute: derivatives of accelerations, along velocities or by the numbers in q, with
# accelerations and multipliers found first, or taken as given; or the terms of the system only.
CLOSED_ALONG, CLOSED_BY, GIVEN_MULTIPLIERS_ALONG, GIVEN_MULTIPLIERS_BY, TERMS = range(5)


@kernel
def closed_derivatives(w: Any) -> Any:
    """What ``w.task`` says; returns a sum that is finite if all went well.

    External forces must be switched on. Given are, but for the first two tasks, `a_q`, `lam`, and
    (but for `TERMS`) `K`.
    """
    task = w.task[0]
    if task in (CLOSED_ALONG, CLOSED_BY):
        constrained_kernel(w)
    terms(w)
    check = 0.0
    for k in range(w.v.shape[0]):
        check = check + w.a_q[k]
    if task == TERMS:
        return check
    solve_closed(w)
    if task in (CLOSED_ALONG, GIVEN_MULTIPLIERS_ALONG):
        along_velocities(w)
    else:
        state_jacobian(w)
    for k in range(w.v.shape[0]):
        check = check + w.slope[k, k]
    return check


@kernel
def terms(w: Any) -> None:
    """∂ID at `a_q` with the forces of `lam` in `slope`, H, and what the constraints add."""
    if w.switches[HAVE_ELEMENTS]:
        forward(w)
        element_forces(w)
    outward(w)
    loops, bonds = w.loop_p.shape[0], w.loop_at.shape[0] - 1
    for l in range(bonds):
        if w.loop_at[l] == w.loop_at[l + 1]:
            continue  # a free joint constrains nothing
        if l < loops:
            loop_push(w, l)
        else:
            stated_push(w, l)
    inward(w)
    slopes_of_sums(w)
    spring_slopes(w)
    for c in range(w.bond_force.shape[1]):
        for k in range(w.bond_force.shape[0]):
            w.bond_force[k, c] = 0.0
        for r in range(w.bond_gap.shape[0]):
            w.bond_gap[r, c] = 0.0
            w.bond_speed[r, c] = 0.0
            w.bond_acceleration[r, c] = 0.0
    for l in range(bonds):
        if w.loop_at[l] == w.loop_at[l + 1]:
            continue
        if l < loops:
            loop_terms(w, l)
        else:
            stated_terms(w, l)


@kernel
def solve_closed(w: Any) -> None:
    """`slope` ← ∂v̇ by directions, by velocities, and by joint forces."""
    n, columns, R = w.v.shape[0], w.bond_force.shape[1], w.slope
    for k in range(n):
        for c in range(columns):
            R[k, c] = R[k, c] + w.bond_force[k, c]
        for c in range(n):
            R[k, columns + c] = 0.0
        R[k, columns + k] = -1.0
    factorise(w)
    start = 0
    while start < R.shape[1]:
        solve_columns(w, start, min(start + TILE, R.shape[1]))
        start += TILE
    if w.switches[RANK_BY_VALUES]:
        inverse_by_rank(w)
    else:
        inverse_regularised(w)
    alpha, beta = w.stabilise[ALPHA], w.stabilise[BETA]
    for r in range(w.rows.shape[0]):
        row, b = w.rows[r], w.bond_rest[r]
        for c in range(columns):
            b[c] = (
                w.bond_acceleration[row, c]
                + 2.0 * alpha * w.bond_speed[row, c]
                + beta * beta * w.bond_gap[row, c]
            )
        for c in range(n):
            b[columns + c] = 0.0
        for k in range(n):
            subtract(-w.K[row, k], R[k], b)
    for k in range(n):
        for r in range(w.rows.shape[0]):
            subtract(w.K_inverse[r, k], w.bond_rest[r], R[k])


@kernel
def weigh(w: Any) -> None:
    """Rows of Y = L⁻ᵀKᵀ, without those of constraints that can never act."""
    for r in range(w.rows.shape[0]):
        for k in range(w.v.shape[0]):
            w.Y[r, k] = w.K[w.rows[r], k]
        lt_solve_kernel(w.H, w.parent_v, w.Y[r], True)


@kernel
def inverse_regularised(w: Any) -> None:
    """Rows of K⁺ᵀ, by A = YᵀD⁻¹Y with ε on its diagonal, and refinement."""
    m, n = w.rows.shape[0], w.v.shape[0]
    weigh(w)
    couple_rows(w)
    factor_regularised(w, w.stabilise[EPSILON])
    for r in range(m):
        for c in range(m):
            w.b[c] = 0.0
        w.b[r] = 1.0
        solve_refined(w)
        x = w.K_inverse[r]
        for k in range(n):
            total = 0.0
            for c in range(m):
                total = total + w.Y[c, k] * w.lam[c]
            x[k] = total * w.D_inverse[k]
        l_solve_kernel(w.H, w.parent_v, x, True)


@kernel
def inverse_by_rank(w: Any) -> None:
    """Rows of K⁺ᵀ, without combinations of constraints that depend on others.

    With the rows of Ỹ = D^(−1/2)L⁻ᵀKᵀ orthogonalised in `basis`, Ỹ = C Q; C has full rank, and
    its columns are orthogonalised in turn, C = P S. So K⁺ = L⁻¹D^(−1/2) Qᵀ S⁻¹ Pᵀ, the inverse of
    least squares of what counts.
    """
    m, n, Q, C, S = w.rows.shape[0], w.v.shape[0], w.basis, w.bond_C, w.bond_S
    weigh(w)
    for k in range(n):
        scale = np.sqrt(w.D_inverse[k])
        for r in range(m):
            w.Y[r, k] = w.Y[r, k] * scale
            Q[r, k] = w.Y[r, k]
    rank = orthogonal_rows(w, m, n)
    for j in range(rank):
        for r in range(m):
            total = 0.0
            for k in range(n):
                total = total + w.Y[r, k] * Q[j, k]
            C[r, j] = total
    for j in range(rank):
        for i in range(j + 1):
            S[i, j] = 0.0
        for _ in range(2):  # once more, for what rounding left
            for i in range(j):
                total = 0.0
                for r in range(m):
                    total = total + C[r, i] * C[r, j]
                S[i, j] = S[i, j] + total
                for r in range(m):
                    C[r, j] = C[r, j] - total * C[r, i]
        total = 0.0
        for r in range(m):
            total = total + C[r, j] * C[r, j]
        S[j, j] = np.sqrt(total)
        for r in range(m):
            C[r, j] = C[r, j] / S[j, j]
    for r in range(m):
        for j in range(rank - 1, -1, -1):
            total = C[r, j]
            for i in range(j + 1, rank):
                total = total - S[j, i] * w.b[i]
            w.b[j] = total / S[j, j]
        x = w.K_inverse[r]
        for k in range(n):
            total = 0.0
            for j in range(rank):
                total = total + Q[j, k] * w.b[j]
            x[k] = total * np.sqrt(w.D_inverse[k])
        l_solve_kernel(w.H, w.parent_v, x, True)


@kernel
def orthogonal_rows(w: Any, m: int, n: int) -> int:
    """Orthonormal rows in `basis`, the largest that is left first; returns how many count."""
    Q = w.basis
    largest = 0.0
    for step in range(m):
        best, size = step, -1.0
        for r in range(step, m):
            total = 0.0
            for k in range(n):
                total = total + Q[r, k] * Q[r, k]
            if total > size:
                best, size = r, total
        if step == 0:
            largest = size
        if not size > w.rank_tolerance[0] ** 2 * largest:
            return step
        for k in range(n):
            Q[step, k], Q[best, k] = Q[best, k], Q[step, k]
        for i in range(step):  # once more, for what rounding left
            remove(Q[i], Q[step])
        total = 0.0
        for k in range(n):
            total = total + Q[step, k] * Q[step, k]
        scale = 1.0 / np.sqrt(total)
        for k in range(n):
            Q[step, k] = Q[step, k] * scale
        for r in range(step + 1, m):
            remove(Q[step], Q[r])
    return m


@kernel
def remove(q: Any, x: Any) -> None:
    """Take the part along q from x."""
    total = 0.0
    for k in range(x.shape[0]):
        total = total + q[k] * x[k]
    subtract(total, q, x)
