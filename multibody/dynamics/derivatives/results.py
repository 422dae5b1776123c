"""Derivatives of forward dynamics and of ẋ = [q̇; v̇], from those of inverse dynamics.

v̇ = H⁻¹(τ − C) makes ID(q, v, v̇) = τ, so that ∂v̇ = −H⁻¹ ∂ID at constant v̇ (``derivative_kernels``),
and ∂v̇/∂τ = H⁻¹; H = LᵀDL has the sparsity of the tree (``factor``).
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel, kernel
from integrators.kernels.pointers import call

from ..forces import element_forces
from ..storage.workspace import HAVE_ELEMENTS
from ..trees.aba import inverse_pivot
from ..trees.kinematics import forward
from .articulated import articulated_factors, articulated_solve
from .kernels import (
    accelerate,
    inward,
    outward,
    slopes_of_sums,
)
from .springs import spring_slopes
from .tree import DEEP_TREE, TILE

__all__ = [
    "FORWARD_ALONG",
    "FORWARD_BY",
    "GIVEN_ALONG",
    "GIVEN_BY",
    "INVERSE_ALONG",
    "INVERSE_BY",
    "along_velocities",
    "derivatives",
    "factorise",
    "rate_slopes",
    "solve_columns",
    "state_jacobian",
    "subtract",
]

# What to compute: accelerations or joint forces, along velocities or by the numbers in q.
# The last two take `slope` as it is, in the directions of the joints.
FORWARD_ALONG, FORWARD_BY, INVERSE_ALONG, INVERSE_BY, GIVEN_ALONG, GIVEN_BY = range(6)


@kernel
def derivatives(w: Any) -> Any:
    """What ``w.task`` says; returns a sum that is finite if all went well.

    One kernel for all tasks, because compiling takes seconds and they share most of it. In `slope`
    it leaves derivatives by directions, by velocities, and by joint forces (by v̇ for ID).
    """
    task = w.task[0]
    check = 0.0
    if task not in (GIVEN_ALONG, GIVEN_BY):
        check = slopes(w, task in (FORWARD_ALONG, FORWARD_BY))
    if task in (FORWARD_ALONG, INVERSE_ALONG, GIVEN_ALONG):
        along_velocities(w)
    else:
        state_jacobian(w)
    return check


@kernel
def slopes(w: Any, is_forward: bool) -> Any:
    """`slope` of FD or ID; for FD, v̇ comes first."""
    nv, m = w.v.shape[0], w.slope.shape[1]
    for k in range(nv):
        if is_forward:
            w.a_q[k] = 0.0
        else:
            w.tau[k] = 0.0
    if w.switches[HAVE_ELEMENTS]:
        forward(w)
        element_forces(w)  # springs are external forces
    outward(w)
    inward(w)
    if is_forward:
        factors(w)
        for k in range(nv):
            w.slope[k, 0] = w.z[k] - w.tau[k]
        solve(w, 0, 1)
        for k in range(nv):
            w.a_q[k] = w.slope[k, 0]
        accelerate(w)
    slopes_of_sums(w)
    spring_slopes(w)
    check = 0.0
    for k in range(nv):
        check = check + w.a_q[k]
        for c in range(nv):
            w.slope[k, m - nv + c] = 0.0 if is_forward else w.H[k, c]
    if is_forward:
        for k in range(nv):
            w.slope[k, m - nv + k] = -1.0
        start = 0
        while start < m:
            solve(w, start, min(start + TILE, m))
            start += TILE
    for k in range(nv):
        check = check + w.slope[k, k]
    return check


@kernel
def factors(w: Any) -> None:
    """What :func:`solve` needs: factors of H, or articulated inertias where the tree is deep."""
    if w.switches[DEEP_TREE]:
        articulated_factors(w)
    else:
        factorise(w)


@kernel
def solve(w: Any, start: int, stop: int) -> None:
    """slope ← −H⁻¹ slope, for at most `TILE` columns."""
    if w.switches[DEEP_TREE]:
        articulated_solve(w, start, stop)
    else:
        solve_columns(w, start, stop)


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
            while j >= 0:  # ancestors that are numbered without a gap, at a time
                first = w.run[j]
                subtract(a, H[k, first : j + 1], H[i, first : j + 1])
                j = w.parent_v[first]
            H[k, i] = a
            i = w.parent_v[i]


@kernel
def solve_columns(w: Any, start: int, stop: int) -> None:
    """slope ← −H⁻¹ slope, for some columns; four rows at a time where the tree is a chain."""
    L, n, R, parent = w.H, w.v.shape[0], w.slope, w.parent_v
    i = n - 1
    while i >= 0:
        if w.run[i] <= i - 3:
            x0, x1 = R[i, start:stop], R[i - 1, start:stop]
            x2, x3 = R[i - 2, start:stop], R[i - 3, start:stop]
            subtract(L[i, i - 1], x0, x1)
            subtract2(L[i, i - 2], x0, L[i - 1, i - 2], x1, x2)
            subtract3(L[i, i - 3], x0, L[i - 1, i - 3], x1, L[i - 2, i - 3], x2, x3)
            j = parent[i - 3]
            while j >= 0:
                subtract4(
                    L[i, j], x0, L[i - 1, j], x1, L[i - 2, j], x2, L[i - 3, j], x3,
                    R[j, start:stop],
                )  # fmt: skip
                j = parent[j]
            i = i - 4
        else:
            j = parent[i]
            while j >= 0:
                subtract(L[i, j], R[i, start:stop], R[j, start:stop])
                j = parent[j]
            i = i - 1
    for i in range(n):
        x, inverse = R[i, start:stop], -w.D_inverse[i]
        for c in range(x.shape[0]):
            x[c] = x[c] * inverse
        j = parent[i]
        while j >= 0:
            if w.run[j] <= j - 3:
                subtract4(
                    L[i, j], R[j, start:stop], L[i, j - 1], R[j - 1, start:stop],
                    L[i, j - 2], R[j - 2, start:stop], L[i, j - 3], R[j - 3, start:stop], x,
                )  # fmt: skip
                j = parent[j - 3]
            else:
                subtract(L[i, j], R[j, start:stop], x)
                j = parent[j]


@inline_kernel
def subtract(a: Any, x: Any, y: Any) -> None:
    """y ← y − a x."""
    for c in range(y.shape[0]):
        y[c] = y[c] - a * x[c]


@inline_kernel
def subtract2(a: Any, x: Any, b: Any, u: Any, y: Any) -> None:
    """y ← y − a x − b u."""
    for c in range(y.shape[0]):
        y[c] = y[c] - a * x[c] - b * u[c]


@inline_kernel
def subtract3(a: Any, x: Any, b: Any, u: Any, d: Any, v: Any, y: Any) -> None:
    """y ← y − a x − b u − d v."""
    for c in range(y.shape[0]):
        y[c] = y[c] - a * x[c] - b * u[c] - d * v[c]


@inline_kernel
def subtract4(a: Any, x: Any, b: Any, u: Any, d: Any, v: Any, e: Any, z: Any, y: Any) -> None:
    """y ← y − a x − b u − d v − e z."""
    for c in range(y.shape[0]):
        y[c] = y[c] - a * x[c] - b * u[c] - d * v[c] - e * z[c]


# ---------------------------------------------------------------------- along velocities


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
    """`slope` as `result`: along velocities; by velocities; by joint forces or accelerations."""
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
    nv, nd = w.v.shape[0], w.psi.shape[0]
    for k in range(nv):
        for m in range(nv):
            w.result[1, k, m] = R[k, nd + m]
            w.result[2, k, m] = R[k, nd + nv + m]


# ---------------------------------------------------------------------- by positions


@kernel
def state_jacobian(w: Any) -> None:
    """∂[q̇; v̇]/∂[q; v] in `jacobian`, by the numbers in q; ∂[q̇; τ]/∂[q; v] for ID."""
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
