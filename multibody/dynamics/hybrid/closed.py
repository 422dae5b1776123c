"""Hybrid dynamics of closed loops: prescribed accelerations put into the constrained system.

With H v̇ + C = τ + Kᵀλ and K v̇ = γ (book, Eq 8.7 and 8.34), and freedoms sorted as in `composite`,

    H₁₁ v̇₁ = τ₁ − C′₁ + K₁ᵀλ,   K₁ v̇₁ = γ − K₂ v̇₂,   τ₂ = C′₂ + H₂₁ v̇₁ − K₂ᵀλ,

which is a mechanism of the forward freedoms alone, solved as in ``loops.multipliers``. It has
a solution for every v̇₂ exactly if the forward freedoms can do what all constraints ask: if no
combination of constraints acts on prescribed freedoms only.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import kernel

from ..loops.constraints.gaps import closure_kernel
from ..loops.multipliers import (
    EPSILON,
    accelerations_under,
    couple_rows,
    solve_regularised,
    stabilised_target,
)
from ..trees.factor import lt_solve_kernel, ltdl_kernel
from .composite import add_differential, forward_inertia, held_forces

__all__ = ["hybrid_closed"]


@kernel
def hybrid_closed(w: Any) -> Any:
    """a_q, tau and multipliers lam from tau_known and a_known; returns their sum as a check.

    Leaves L⁻ᵀK₁ᵀ by rows in `Y`, and the factors of H₁₁ in `H`.
    """
    n, m = w.v.shape[0], w.rows.shape[0]
    held_forces(w)
    closure_kernel(w)
    stabilised_target(w)
    forward_inertia(w)
    ltdl_kernel(w.H, w.parent_f)
    lt_solve_kernel(w.H, w.parent_f, w.z, True)
    for r in range(m):
        row = w.rows[r]
        target = w.b[row]
        for k in range(n):
            target = target - w.K[row, k] * w.a_known[k]
            w.Y[r, k] = w.K[row, k] * w.is_forward[k]
        w.b[r] = target  # rows that can never act are left out
        lt_solve_kernel(w.H, w.parent_f, w.Y[r], True)
    couple_rows(w)
    solve_regularised(w, w.stabilise[EPSILON])
    accelerations_under(w, w.parent_f)
    add_differential(w)
    check = 0.0
    for k in range(n):
        if w.is_forward[k]:
            w.tau[k] = w.tau_known[k]
        else:
            w.a_q[k] = w.a_known[k]
            total = w.held[k]
            for r in range(w.lam.shape[0]):
                total = total - w.K[r, k] * w.lam[r]
            w.tau[k] = total
        check = check + w.a_q[k] + w.tau[k]
    return check
