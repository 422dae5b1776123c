"""Forward dynamics of closed loops: multipliers first, with the factors of H (book, §8.5).

With H = LᵀDL, Y = L⁻ᵀKᵀ and z = L⁻ᵀ(τ − C),

    A = YᵀD⁻¹Y,   A λ = γ + k_stab − YᵀD⁻¹z,   v̇ = L⁻¹D⁻¹(z + Yλ).

Redundant constraints make A singular, but never the accelerations. A little is therefore added to
its diagonal, and two steps of iterative refinement take the effect away again from all that
accelerations can see; what remains is a small multiplier in directions that do nothing. Where
rank itself changes (a singular position), use the rank-revealing path in ``closed_loop``.

Rows of K that are zero at every position, as for motion out of the plane of a planar linkage, are
left out beforehand (``Tree.acting_rows``).
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import kernel

from .compute_kernels import joint_force_elements
from .crba import crba_kernel
from .factor import l_solve_kernel, lt_solve_kernel, ltdl_kernel
from .loops import closure_kernel
from .newton_euler import newton_euler_kernel
from .tree import HAVE_ELEMENTS

__all__ = ["ALPHA", "BETA", "EPSILON", "constrained_kernel", "unconstrained_forces"]

# Places in `stabilise`: k_stab = −2α (K v − ν) − β² δ, and what is added to the diagonal of A.
ALPHA, BETA, EPSILON = 0, 1, 2

REFINEMENTS = 2


@kernel
def unconstrained_forces(w: Any) -> None:
    """z = tau − C(q, v): forces that the loops have not been asked about; v̇ = 0 in a_q."""
    for k in range(w.v.shape[0]):
        w.z[k] = w.tau[k]
        w.a_q[k] = 0.0
    if w.switches[HAVE_ELEMENTS]:
        joint_force_elements(w)
        for k in range(w.v.shape[0]):
            w.z[k] = w.z[k] + w.u[k]
    newton_euler_kernel(w)
    for k in range(w.v.shape[0]):
        w.z[k] = w.z[k] - w.tau[k]


@kernel
def stabilised_target(w: Any) -> None:
    """b = γ + k_stab."""
    alpha, beta = w.stabilise[ALPHA], w.stabilise[BETA]
    for r in range(w.gamma.shape[0]):
        gap_rate = 0.0 - w.nu[r]
        for k in range(w.v.shape[0]):
            gap_rate = gap_rate + w.K[r, k] * w.v[k]
        w.b[r] = w.gamma[r] - 2.0 * alpha * gap_rate - beta * beta * w.delta[r]


@kernel
def constrained_kernel(w: Any) -> Any:
    """a_q and multipliers lam from q, v, tau, f_ext; returns Σ a_q as a check."""
    unconstrained_forces(w)
    closure_kernel(w)
    stabilised_target(w)
    crba_kernel(w)
    ltdl_kernel(w.H, w.parent_v)
    n, m = w.v.shape[0], w.rows.shape[0]
    lt_solve_kernel(w.H, w.parent_v, w.z, True)
    for r in range(m):
        w.b[r] = w.b[w.rows[r]]  # rows that can never act are left out
        for k in range(n):
            w.Y[r, k] = w.K[w.rows[r], k]
        lt_solve_kernel(w.H, w.parent_v, w.Y[r], True)
    largest = 0.0
    for r in range(m):
        for k in range(n):
            w.scaled[k] = w.Y[r, k] / w.H[k, k]
        for c in range(r + 1):
            total = 0.0
            for k in range(n):
                total = total + w.scaled[k] * w.Y[c, k]
            w.A[r, c] = total
            w.A[c, r] = total
        for k in range(n):
            w.b[r] = w.b[r] - w.scaled[k] * w.z[k]
        largest = largest + w.A[r, r]
    solve_regularised(w, largest * w.stabilise[EPSILON])
    for k in range(n):
        total = w.z[k]
        for r in range(m):
            total = total + w.Y[r, k] * w.lam[r]
        w.a_q[k] = total / w.H[k, k]
    l_solve_kernel(w.H, w.parent_v, w.a_q, True)
    for r in range(w.lam.shape[0] - 1, -1, -1):  # multipliers back to the rows they belong to
        w.rest[r] = 0.0
    for r in range(m):
        w.rest[w.rows[r]] = w.lam[r]
    for r in range(w.lam.shape[0]):
        w.lam[r] = w.rest[r]
    check = 0.0
    for k in range(n):
        check = check + w.a_q[k]
    return check


@kernel
def solve_regularised(w: Any, epsilon: Any) -> None:
    """lam with A lam = b, by LDLᵀ of A + ε1 and iterative refinement."""
    m = w.rows.shape[0]
    F = w.A_factor
    for r in range(m):
        for c in range(m):
            F[r, c] = w.A[r, c]
        F[r, r] = F[r, r] + epsilon
        w.lam[r] = 0.0
        w.rest[r] = w.b[r]
    for j in range(m):  # F = L D Lᵀ, L below the diagonal
        for c in range(j):
            F[j, j] = F[j, j] - F[j, c] * F[j, c] * F[c, c]
        for r in range(j + 1, m):
            for c in range(j):
                F[r, j] = F[r, j] - F[r, c] * F[j, c] * F[c, c]
            F[r, j] = F[r, j] / F[j, j]
    for step in range(REFINEMENTS + 1):
        if step > 0:
            for r in range(m):
                total = w.b[r]
                for c in range(m):
                    total = total - w.A[r, c] * w.lam[c]
                w.rest[r] = total
        for r in range(m):
            for c in range(r):
                w.rest[r] = w.rest[r] - F[r, c] * w.rest[c]
        for r in range(m):
            w.rest[r] = w.rest[r] / F[r, r]
        for r in range(m - 1, -1, -1):
            for c in range(r + 1, m):
                w.rest[r] = w.rest[r] - F[c, r] * w.rest[c]
        for r in range(m):
            w.lam[r] = w.lam[r] + w.rest[r]
