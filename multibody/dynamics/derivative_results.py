"""Derivatives of forward dynamics and of ẋ = [q̇; v̇], from those of inverse dynamics.

v̇ = H⁻¹(τ − C) makes ID(q, v, v̇) = τ, so that ∂v̇ = −H⁻¹ ∂ID at constant v̇ (``derivative_kernels``),
and ∂v̇/∂τ = H⁻¹; H = LᵀDL has the sparsity of the tree (``factor``).
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel, kernel
from integrators.methods.pointers import call

from .aba import inverse_pivot
from .compute_kernels import forward_dynamics, joint_force_elements
from .derivative_kernels import inverse_dynamics_slopes
from .derivative_springs import spring_slopes
from .tree import HAVE_ELEMENTS

__all__ = [
    "forward_slopes",
    "inverse_slopes",
    "state_jacobian",
    "tangent_forward",
    "tangent_inverse",
]

#: Columns that are solved for together: as many as stay in the fastest memory.
TILE = 64


@kernel
def inverse_slopes(w: Any) -> None:
    """`slope` of ID at q, v, a_q, with all force elements; and H."""
    if w.switches[HAVE_ELEMENTS]:
        joint_force_elements(w)  # springs are external forces
    inverse_dynamics_slopes(w)
    spring_slopes(w)


@kernel
def forward_slopes(w: Any) -> Any:
    """`slope` of FD at q, v, tau: by directions, velocities and joint forces; Σ a_q as a check."""
    check = forward_dynamics(w)
    inverse_dynamics_slopes(w)
    spring_slopes(w)
    nv, m = w.v.shape[0], w.slope.shape[1]
    for k in range(nv):
        for c in range(m - nv, m):
            w.slope[k, c] = 0.0
        w.slope[k, m - nv + k] = -1.0
    factorise(w)
    start = 0
    while start < m:
        stop = min(start + TILE, m)
        solve_columns(w, start, stop)
        start = stop
    return check


@kernel
def factorise(w: Any) -> None:
    """H = LᵀDL in place (Table 6.3), with 1/D in `D_inverse`."""
    H = w.H
    for k in range(w.v.shape[0]):
        w.scaled[k] = H[k, k]
    for k in range(w.v.shape[0] - 1, -1, -1):
        w.D_inverse[k] = inverse_pivot(w, k, H[k, k], w.scaled[k])
        i = w.parent_v[k]
        while i >= 0:
            a = H[k, i] * w.D_inverse[k]
            j = i
            while j >= 0:
                H[i, j] = H[i, j] - a * H[k, j]
                j = w.parent_v[j]
            H[k, i] = a
            i = w.parent_v[i]


@kernel
def solve_columns(w: Any, start: int, stop: int) -> None:
    """slope ← −H⁻¹ slope, for some columns."""
    L, n = w.H, w.v.shape[0]
    for i in range(n - 1, -1, -1):
        row = w.slope[i]
        j = w.parent_v[i]
        while j >= 0:
            subtract(L[i, j], row, w.slope[j], start, stop)
            j = w.parent_v[j]
    for i in range(n):
        row, inverse = w.slope[i], -w.D_inverse[i]
        for c in range(start, stop):
            row[c] = row[c] * inverse
        j = w.parent_v[i]
        while j >= 0:
            subtract(L[i, j], w.slope[j], row, start, stop)
            j = w.parent_v[j]


@inline_kernel
def subtract(factor: Any, x: Any, y: Any, start: int, stop: int) -> None:
    """y ← y − factor x."""
    for c in range(start, stop):
        y[c] = y[c] - factor * x[c]


# ---------------------------------------------------------------------- along velocities


@kernel
def tangent_forward(w: Any) -> Any:
    """∂v̇ along the velocity variables, by v and by tau, in `result`."""
    check = forward_slopes(w)
    nv, nd = w.v.shape[0], w.psi.shape[0]
    along_velocities(w)
    for k in range(nv):
        for m in range(nv):
            w.result[1, k, m] = w.slope[k, nd + m]
            w.result[2, k, m] = w.slope[k, nd + nv + m]
    return check


@kernel
def tangent_inverse(w: Any) -> Any:
    """∂τ along the velocity variables, by v and by v̇, in `result`."""
    inverse_slopes(w)
    nv, nd = w.v.shape[0], w.psi.shape[0]
    along_velocities(w)
    check = 0.0
    for k in range(nv):
        for m in range(nv):
            w.result[1, k, m] = w.slope[k, nd + m]
            w.result[2, k, m] = w.H[k, m]
            check = check + w.result[0, k, m]
    return check


@kernel
def rate_slopes(w: Any, i: int) -> None:
    """∂q̇/∂q, ∂q̇/∂v and ψ of a joint with q̇ ≠ v, in `law_slope`."""
    nq = w.q_at[i + 1] - w.q_at[i]
    for k in range(nq):
        w.x[k] = w.q[w.q_at[i] + k]
    for k in range(w.v_at[i + 1] - w.v_at[i]):
        w.x[nq + k] = w.v[w.v_at[i] + k]
    call(w.rate_slopes[i], w.t[0], w.x, w.p[w.p_at[i] : w.p_at[i + 1]], w.law_slope)


@kernel
def along_velocities(w: Any) -> None:
    """Columns of `slope` by directions, as columns of `result[0]` along velocities."""
    out, R = w.result[0], w.slope
    for i in range(w.parent.shape[0]):
        d0, v0, nv = w.d_at[i], w.v_at[i], w.v_at[i + 1] - w.v_at[i]
        if w.varies[i] and not w.plain[i]:
            rate_slopes(w, i)
            nq = w.d_at[i + 1] - d0
            for k in range(out.shape[0]):
                for m in range(nv):
                    total = 0.0
                    for a in range(nq):
                        total = total + R[k, d0 + a] * w.law_slope[nq * nq + nv * a + m]
                    out[k, v0 + m] = total
        else:
            for k in range(out.shape[0]):
                for m in range(nv):
                    out[k, v0 + m] = R[k, d0 + m]


# ---------------------------------------------------------------------- by positions


@kernel
def state_jacobian(w: Any) -> Any:
    """∂[q̇; v̇]/∂[q; v] in `jacobian`, by the numbers in q; Σ a_q as a check."""
    check = forward_slopes(w)
    nq, nv, nd = w.q.shape[0], w.v.shape[0], w.psi.shape[0]
    out, R = w.jacobian, w.slope
    for a in range(nq):
        for b in range(nq + nv):
            out[a, b] = 0.0
    for k in range(nv):
        for m in range(nv):
            out[nq + k, nq + m] = R[k, nd + m]
    for i in range(w.parent.shape[0]):
        q0, v0, n = w.q_at[i], w.v_at[i], w.v_at[i + 1] - w.v_at[i]
        size = w.q_at[i + 1] - q0
        if w.plain[i]:
            for m in range(n):
                out[q0 + m, nq + v0 + m] = 1.0
        else:
            rate_slopes(w, i)
            for a in range(size):
                for b in range(size):
                    out[q0 + a, q0 + b] = w.law_slope[size * a + b]
                for m in range(n):
                    out[q0 + a, nq + v0 + m] = w.law_slope[size * size + n * a + m]
        by_positions(w, i, out, nq)
    quaternion_slopes(w)
    return check


@kernel
def by_positions(w: Any, i: int, out: Any, first: int) -> None:
    """Columns of `slope` by directions of joint i, as columns by its positions; rows from `first`.

    Needs :func:`rate_slopes` of this joint where q̇ ≠ v. A column of a constant S is a unit vector
    there, so that the velocity that belongs to a change of q is read from ψ.
    """
    R = w.slope
    d0, v0, n, q0 = w.d_at[i], w.v_at[i], w.v_at[i + 1] - w.v_at[i], w.q_at[i]
    size = w.q_at[i + 1] - q0
    if w.plain[i] or w.varies[i]:
        for k in range(R.shape[0]):
            for a in range(size):
                out[first + k, q0 + a] = R[k, d0 + a]
    else:
        at = size * (size + n)
        for k in range(R.shape[0]):
            for a in range(size):
                total = 0.0
                for m in range(n):
                    total = total + R[k, d0 + m] * w.law_slope[at + 6 * a + w.unit[v0 + m]]
                out[first + k, q0 + a] = total


@kernel
def quaternion_slopes(w: Any) -> None:
    """Add the derivative of −½g (|p|² − 1) p, which pulls quaternions back to unit norm."""
    gain = w.gain[0]
    for s in range(w.quaternions.shape[0]):
        at = w.quaternions[s]
        excess = -1.0
        for a in range(4):
            excess = excess + w.q[at + a] * w.q[at + a]
        for a in range(4):
            for b in range(4):
                w.jacobian[at + a, at + b] = (
                    w.jacobian[at + a, at + b] - gain * w.q[at + a] * w.q[at + b]
                )
            w.jacobian[at + a, at + a] = w.jacobian[at + a, at + a] - 0.5 * gain * excess
