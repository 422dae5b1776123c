"""Forward dynamics of closed loops: multipliers first, with the factors of H (book, §8.5).

With H = LᵀDL, Y = L⁻ᵀKᵀ and z = L⁻ᵀ(τ − C),

    A = YᵀD⁻¹Y,   A λ = γ + k_stab − YᵀD⁻¹z,   v̇ = L⁻¹D⁻¹(z + Yλ).

Redundant constraints make A singular, but never the accelerations. A little is therefore added to
its diagonal, in proportion to what each loop has there (a light loop must not drown a heavy one).
Two steps of iterative refinement take the effect away again from all that accelerations can see;
what remains is a small multiplier in directions that do nothing. Where rank itself changes (a
singular position), use the rank-revealing path in ``closed_loop``.

Rows of K that are zero at every position, as for motion out of the plane of a planar linkage, are
left out beforehand (``Tree.acting_rows``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import inline_kernel, kernel

from ..storage.workspace import HAVE_ELEMENTS
from ..trees.crba import crba_kernel
from ..trees.factor import l_solve_kernel, lt_solve_kernel, ltdl_kernel
from ..trees.newton_euler import newton_euler_kernel
from ..with_elements import joint_force_elements, onto_sphere
from .constraints.gaps import closure_kernel

__all__ = [
    "ALPHA",
    "BETA",
    "EPSILON",
    "accelerations_under",
    "constrained_as_given",
    "constrained_kernel",
    "couple_rows",
    "factor_regularised",
    "rank_kernel",
    "solve_refined",
    "unconstrained_forces",
]

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
    weighted_rows(w)
    n, m = w.v.shape[0], w.rows.shape[0]
    lt_solve_kernel(w.H, w.parent_v, w.z, True)
    for r in range(m):
        w.b[r] = w.b[w.rows[r]]  # rows that can never act are left out
    couple_rows(w)
    solve_regularised(w, w.stabilise[EPSILON])
    accelerations_under(w, w.parent_v)
    check = 0.0
    for k in range(n):
        check = check + w.a_q[k]
    return check


@kernel
def accelerations_under(w: Any, parent: Any) -> None:
    """v̇ = L⁻¹D⁻¹(z + Yλ); multipliers go back to the rows that they belong to."""
    m = w.rows.shape[0]
    for k in range(w.v.shape[0]):
        total = w.z[k]
        for r in range(m):
            total = total + w.Y[r, k] * w.lam[r]
        w.a_q[k] = total / w.H[k, k]
    l_solve_kernel(w.H, parent, w.a_q, True)
    for r in range(w.lam.shape[0]):
        w.rest[r] = 0.0
    for r in range(m):
        w.rest[w.rows[r]] = w.lam[r]
    for r in range(w.lam.shape[0]):
        w.lam[r] = w.rest[r]


@kernel
def constrained_as_given(w: Any) -> Any:
    """`constrained_kernel` of a position that a user gives: quaternions are checked."""
    if onto_sphere(w) != 0.0:
        return np.nan
    return constrained_kernel(w)


@kernel
def weighted_rows(w: Any) -> None:
    """Factors of H in H, and Y = L⁻ᵀKᵀ by rows, without those that can never act."""
    crba_kernel(w)
    ltdl_kernel(w.H, w.parent_v)
    for r in range(w.rows.shape[0]):
        for k in range(w.v.shape[0]):
            w.Y[r, k] = w.K[w.rows[r], k]
        lt_solve_kernel(w.H, w.parent_v, w.Y[r], True)


@kernel
def last_variable(w: Any, body: int) -> int:
    """Last velocity variable on the way from the root to a body; −1 if there is none."""
    while body >= 0 and w.v_at[body] == w.v_at[body + 1]:
        body = w.parent[body]
    if body < 0:
        return -1
    return w.v_at[body + 1] - 1


@inline_kernel
def couple_variable(w: Any, r: int, k: int) -> None:
    """What row r does to variable k, felt by the rows before it."""
    scaled = w.Y[r, k] / w.H[k, k]
    for c in range(r + 1):
        w.A[r, c] = w.A[r, c] + scaled * w.Y[c, k]
    w.b[r] = w.b[r] - scaled * w.z[k]


@kernel
def couple_rows(w: Any) -> None:
    """A = YᵀD⁻¹Y, b less YᵀD⁻¹z, and in `lam` the mean of A's diagonal over the loop of each row.

    A row of Y is zero but for the variables between the root and the two bodies of its loop, so
    that only these are visited: a long row of small loops costs little more than its factors.
    """
    m = w.rows.shape[0]
    l = 0
    first = 0  # row of the loop l
    for r in range(m):
        while w.loop_at[l + 1] <= w.rows[r]:
            l += 1
            first = r
        for c in range(r + 1):
            w.A[r, c] = 0.0
        if l < w.loop_p.shape[0]:
            i, j = last_variable(w, w.loop_p[l]), last_variable(w, w.loop_s[l])
            while i >= 0 or j >= 0:
                k = max(i, j)
                couple_variable(w, r, k)
                if i == k:
                    i = w.parent_v[i]
                if j == k:
                    j = w.parent_v[j]
        else:  # a function may take any variable
            for k in range(w.v.shape[0] - 1, -1, -1):
                couple_variable(w, r, k)
        for c in range(r):
            w.A[c, r] = w.A[r, c]
        if r + 1 == m or w.loop_at[l + 1] <= w.rows[r + 1]:  # the loop's last row
            mean = 0.0
            for c in range(first, r + 1):
                mean = mean + w.A[c, c]
            mean = mean / (r + 1 - first)
            for c in range(first, r + 1):
                w.lam[c] = mean


@kernel
def solve_regularised(w: Any, epsilon: Any) -> None:
    """lam with A lam = b, by LDLᵀ of A + ε diag(lam), lam as it is found, and refinement."""
    factor_regularised(w, epsilon)
    solve_refined(w)


@kernel
def factor_regularised(w: Any, epsilon: Any) -> None:
    """A + ε diag(lam) = L D Lᵀ in `A_factor`: L below the diagonal, D⁻¹ on it, DLᵀ above."""
    m = w.rows.shape[0]
    F = w.A_factor
    for r in range(m):
        for c in range(m):
            F[r, c] = w.A[r, c]
        F[r, r] = F[r, r] + epsilon * w.lam[r]
    for j in range(m):
        F[j, j] = 1.0 / F[j, j]
        for r in range(j + 1, m):
            factor = F[j, r] * F[j, j]
            for c in range(r, m):
                F[r, c] = F[r, c] - factor * F[j, c]
            F[r, j] = factor


@kernel
def solve_refined(w: Any) -> None:
    """lam with A lam = b, by the factors of :func:`factor_regularised` and refinement."""
    m = w.rows.shape[0]
    F = w.A_factor
    for r in range(m):
        w.lam[r] = 0.0
        w.rest[r] = w.b[r]
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
        for r in range(m - 1, -1, -1):
            for c in range(r + 1, m):
                w.rest[r] = w.rest[r] - F[r, c] * w.rest[c]
            w.rest[r] = w.rest[r] * F[r, r]
        for r in range(m):
            w.lam[r] = w.lam[r] + w.rest[r]


@kernel
def rank_kernel(w: Any) -> None:
    """How far the loops are from a singular position: pivots of A, largest first, in `rest`.

    A = YᵀD⁻¹Y, K weighted with the inertia, is factorised with pivoting along its diagonal. The
    pivots fall as the squares of the singular values do: one that goes to zero means that a
    constraint becomes a combination of the others. Decides by values, so it cannot be traced.
    """
    closure_kernel(w)
    weighted_rows(w)
    couple_rows(w)
    m = w.rows.shape[0]
    F = w.A_factor
    for r in range(m):
        w.rest[r] = 0.0
        for c in range(m):
            F[r, c] = w.A[r, c]
    for j in range(m):
        best = j
        for r in range(j + 1, m):
            if F[r, r] > F[best, best]:
                best = r
        for c in range(m):
            F[j, c], F[best, c] = F[best, c], F[j, c]
        for r in range(m):
            F[r, j], F[r, best] = F[r, best], F[r, j]
        if not F[j, j] > 0.0:
            break
        w.rest[j] = F[j, j]
        for r in range(j + 1, m):
            factor = F[r, j] / F[j, j]
            for c in range(j + 1, m):
                F[r, c] = F[r, c] - factor * F[j, c]
