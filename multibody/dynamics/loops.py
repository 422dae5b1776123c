"""Constraints of loop joints: gaps δ, Jacobian K, and right-hand side γ of K v̇ = γ (book, §8.7).

K v = ν closes the loops at the level of velocities (ν = 0 unless time moves a loop joint). With the
body accelerations a that the tree has when v̇ = 0,

    γ = γ_J − T ((a_s − a_p) − v_s × v_J),

where γ_J comes from the joint's own law and v_J = v_s − v_p, all in the successor's joint frame.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import kernel
from integrators.methods.pointers import call

from ..kernels.spatial import (
    compose,
    cross_motion,
    force_transform_inverse,
    invert,
    motion_transform,
    motion_transform_inverse,
)
from .compute_kernels import accelerations_kernel

__all__ = ["closure_kernel"]


@kernel
def closure_kernel(w: Any) -> None:
    """delta, K, nu and gamma of all loops at (t, q, v); a_q is set to zero."""
    for k in range(w.a_q.shape[0]):
        w.a_q[k] = 0.0
    accelerations_kernel(w)
    for i in range(w.parent.shape[0]):
        for k in range(w.v_at[i], w.v_at[i + 1]):
            motion_transform_inverse(w.E_0[i], w.r_0[i], w.S[k], w.S_0[k])
    for l in range(w.loop_p.shape[0]):
        if w.loop_at[l] == w.loop_at[l + 1]:
            continue  # a free joint constrains nothing
        side(w, w.loop_p[l], w.loop_E_P[l], w.loop_r_P[l], w.end_p, w.E_p, w.r_p)
        side(w, w.loop_s[l], w.loop_E_S[l], w.loop_r_S[l], w.end_s, w.E_s, w.r_s)
        loop_constraint(w, l)


@kernel
def side(w: Any, i: int, E: Any, r: Any, end: Any, E_0: Any, r_0: Any) -> None:
    """Pose of a joint frame on body i, and in `end` velocity and acceleration there."""
    if i < 0:
        for a in range(3):
            r_0[a] = r[a]
            for b in range(3):
                E_0[a, b] = E[a, b]
        for k in range(12):
            end[k] = 0.0
    else:
        compose(E, r, w.E_0[i], w.r_0[i], E_0, r_0)
        motion_transform(E, r, w.vel[i], end[0:6])
        motion_transform(E, r, w.acc[i], end[6:12])


@kernel
def loop_constraint(w: Any, l: int) -> None:
    """Rows of one loop."""
    # Successor frame in the predecessor frame: X = X_s X_p⁻¹.
    invert(w.E_p, w.r_p, w.E_J, w.r_J)
    compose(w.E_s, w.r_s, w.E_J, w.r_J, w.E_rel, w.r_rel)
    for a in range(3):
        for b in range(3):
            w.loop_x[3 * a + b] = w.E_rel[a, b]
        w.loop_x[9 + a] = w.r_rel[a]
    motion_transform(w.E_rel, w.r_rel, w.end_p[0:6], w.spare6)
    v_J = w.loop_x[12:18]
    for k in range(6):
        v_J[k] = w.end_s[k] - w.spare6[k]
    call(
        w.loop_laws[l], w.t[0], w.loop_x, w.loop_q[w.loop_q_at[l] : w.loop_q_at[l + 1]], w.loop_out
    )
    # (a_s − a_p) − v_s × v_J in successor axes
    motion_transform(w.E_rel, w.r_rel, w.end_p[6:12], w.spare6)
    cross_motion(w.end_s[0:6], v_J, w.other6)
    for k in range(6):
        w.spare6[k] = (w.end_s[6 + k] - w.spare6[k]) - w.other6[k]
    first, m = w.loop_at[l], w.loop_at[l + 1] - w.loop_at[l]
    for j in range(m):
        row = first + j
        T = w.loop_out[m + 6 * j : m + 6 * j + 6]
        w.delta[row] = w.loop_out[j]
        w.nu[row] = w.loop_out[7 * m + j]
        total = w.loop_out[8 * m + j]
        for k in range(6):
            total = total - T[k] * w.spare6[k]
        w.gamma[row] = total
        force_transform_inverse(w.E_s, w.r_s, T, w.T_0[row])
        for k in range(w.v.shape[0]):
            w.K[row, k] = 0.0
        # +T S on the way from the root to s, −T S on the way to p; common ancestors cancel.
        a, b = w.loop_p[l], w.loop_s[l]
        while a != b:
            if a > b:
                entries(w, row, a, -1.0)
                a = w.parent[a]
            else:
                entries(w, row, b, 1.0)
                b = w.parent[b]


@kernel
def entries(w: Any, row: int, i: int, sign: float) -> None:
    """K entries of one body's joint."""
    for k in range(w.v_at[i], w.v_at[i + 1]):
        total = 0.0
        for m in range(6):
            total = total + w.T_0[row, m] * w.S_0[k, m]
        w.K[row, k] = sign * total
