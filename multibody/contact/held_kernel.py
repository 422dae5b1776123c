"""The linear system of held contacts as a kernel: what every evaluation of a mode runs.

Rows R are those of the loops and the held rows of contact; columns G the same, but for normals that
drag friction along. With H = LᵀDL, Y_R = L⁻ᵀRᵀ, Y_G = L⁻ᵀGᵀ and z = L⁻ᵀ(τ − C),

    A = Y_Rᵀ D⁻¹ Y_G,    A x = −bias − Y_Rᵀ D⁻¹ z,    v̇ = L⁻¹ D⁻¹ (z + Y_G x).

Redundant rows make A singular, not v̇. A little is added to the diagonal, and taken away again from
all that matters by refinement; what it leaves is the smallest x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import kernel

from ..dynamics.trees.factor import l_solve_kernel, lt_solve_kernel, ltdl_kernel

__all__ = ["held_kernel"]

#: Added to the diagonal of A, in parts of its mean.
REGULARISATION = 1e-9
REFINEMENTS = 3


@kernel
def held_kernel(w: Any) -> float:
    """a_q, contact_force, slope and lam; returns Σ a_q as a check.

    Needs τ − C in z, the inertia matrix in H, and the rows of loops and contacts.
    """
    n = w.v.shape[0]
    ltdl_kernel(w.H, w.parent_v)
    lt_solve_kernel(w.H, w.parent_v, w.z, True)
    loops, held = w.rows.shape[0], w.held_count[0]
    m = loops + held
    for r in range(loops):
        for k in range(n):
            w.R_rows[r, k] = w.K[w.rows[r], k]
            w.G_rows[r, k] = w.R_rows[r, k]
        w.rhs[r] = w.gamma[w.rows[r]]
        lt_solve_kernel(w.H, w.parent_v, w.R_rows[r], True)
        for k in range(n):
            w.G_rows[r, k] = w.R_rows[r, k]
    for j in range(held):
        row, r = w.held_row[j], loops + j
        for k in range(n):
            w.R_rows[r, k] = w.T[row, k]
            w.G_rows[r, k] = w.T[row, k]
        w.rhs[r] = -w.bias[row]
        lt_solve_kernel(w.H, w.parent_v, w.R_rows[r], True)
        if w.held_mu[j] > 0.0:
            slip_direction(w, j, row)
            for k in range(n):
                w.G_rows[r, k] -= w.held_mu[j] * (
                    w.held_slip[j, 0] * w.T[row + 1, k] + w.held_slip[j, 1] * w.T[row + 2, k]
                )
            lt_solve_kernel(w.H, w.parent_v, w.G_rows[r], True)
        else:
            for k in range(n):
                w.G_rows[r, k] = w.R_rows[r, k]
    mean = 0.0
    for r in range(m):
        for k in range(n):
            w.rhs[r] -= w.R_rows[r, k] * w.z[k] / w.H[k, k]
        for c in range(m):
            total = 0.0
            for k in range(n):
                if w.R_rows[r, k] != 0.0:
                    total += w.R_rows[r, k] * w.G_rows[c, k] / w.H[k, k]
            w.system[r, c] = total
        mean += abs(w.system[r, r]) / m
    solve_refined(w, m, REGULARISATION * mean)
    for k in range(n):
        total = w.z[k]
        for r in range(m):
            total += w.G_rows[r, k] * w.held_x[r]
        w.a_q[k] = total / w.H[k, k]
    l_solve_kernel(w.H, w.parent_v, w.a_q, True)
    spread_forces(w, loops, held)
    check = 0.0
    for k in range(n):
        check += w.a_q[k]
    return check


@kernel
def slip_direction(w: Any, j: int, row: int) -> None:
    """Unit vector of the slip, continued through zero as if friction did not turn round there.

    It has the part of the slip across the known direction, in units of the speed or of `held_slow`:
    so it is a continuous function, and slip may stay near that without friction jumping to and fro.
    """
    c, s = w.held_known[j, 0], w.held_known[j, 1]
    x, y = w.speed[row + 1], w.speed[row + 2]
    across = (c * y - s * x) / max(np.sqrt(x * x + y * y), w.held_slow[0])
    along = np.sqrt(max(0.0, 1.0 - across * across))
    w.held_slip[j, 0] = along * c - across * s
    w.held_slip[j, 1] = along * s + across * c


@kernel
def solve_refined(w: Any, m: int, epsilon: float) -> None:
    """held_x with system · x = rhs, by elimination of system + ε and refinement."""
    F = w.system_factor
    for r in range(m):
        w.pivots[r] = r
        w.held_x[r] = 0.0
        for c in range(m):
            F[r, c] = w.system[r, c]
        F[r, r] += epsilon
    for j in range(m):
        best = j
        for r in range(j + 1, m):
            if abs(F[r, j]) > abs(F[best, j]):
                best = r
        if best != j:
            w.pivots[j], w.pivots[best] = w.pivots[best], w.pivots[j]
            for c in range(m):
                F[j, c], F[best, c] = F[best, c], F[j, c]
        for r in range(j + 1, m):
            factor = F[r, j] / F[j, j]
            F[r, j] = factor
            for c in range(j + 1, m):
                F[r, c] -= factor * F[j, c]
    for _ in range(REFINEMENTS + 1):
        for r in range(m):
            row = w.pivots[r]
            total = w.rhs[row]
            for c in range(m):
                total -= w.system[row, c] * w.held_x[c]
            for c in range(r):
                total -= F[r, c] * w.held_step[c]
            w.held_step[r] = total
        for r in range(m - 1, -1, -1):
            total = w.held_step[r]
            for c in range(r + 1, m):
                total -= F[r, c] * w.held_step[c]
            w.held_step[r] = total / F[r, r]
        for r in range(m):
            w.held_x[r] += w.held_step[r]


@kernel
def spread_forces(w: Any, loops: int, held: int) -> None:
    """Forces of all contact points, multipliers of all loop constraints."""
    for r in range(w.contact_force.shape[0]):
        w.contact_force[r] = 0.0
    for r in range(w.lam.shape[0]):
        w.lam[r] = 0.0
    for r in range(loops):
        w.lam[w.rows[r]] = w.held_x[r]
    for j in range(held):
        row, r = w.held_row[j], loops + j
        w.contact_force[row] = w.held_x[r]
        w.slope[j] = w.system[r, r]
        if w.held_mu[j] > 0.0:
            for k in range(2):
                w.contact_force[row + 1 + k] = -w.held_mu[j] * w.held_slip[j, k] * w.held_x[r]
