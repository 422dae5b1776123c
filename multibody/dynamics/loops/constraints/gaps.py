"""Constraints of loop joints: gaps δ, Jacobian K, and right-hand side γ of K v̇ = γ (book, §8.7).

K v = ν closes the loops at the level of velocities (ν = 0 unless time moves a loop joint). With the
body accelerations a that the tree has when v̇ = 0,

    γ = γ_J − T ((a_s − a_p) − v_s × v_J),

where γ_J comes from the joint's own law and v_J = v_s − v_p, all in the successor's joint frame.

Near a singular position the accelerations are rounding errors of K and γ divided by a singular
value that goes to zero. So K is computed about the loop's own point, with arms that lead from there
to the joints of the loop, and so is the gap between the two frames: how far the mechanism is from
the base's origin does not matter.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import kernel
from integrators.kernels.pointers import call

from ....kernels.spatial import compose, cross_motion, motion_transform
from ....kernels.vectors import (
    cross,
    multiply_rotations,
    transform_vector,
    transform_vector_inverse,
)
from ...storage.workspace import DRIVEN
from ...trees.kinematics import way_between
from ...with_elements import accelerations_kernel
from .stated import stated_rows

__all__ = ["closure_kernel"]


@kernel
def closure_kernel(w: Any) -> None:
    """delta, K, nu and gamma of all constraints at (t, q, v); a_q is set to zero."""
    for k in range(w.a_q.shape[0]):
        w.a_q[k] = 0.0
    accelerations_kernel(w)
    for i in range(w.parent.shape[0]):
        for k in range(w.v_at[i], w.v_at[i + 1]):  # base axes, at the body's own origin
            to_base_axes(w.E_0[i], w.S[k], w.S_0[k])
    for l in range(w.loop_p.shape[0]):
        if w.loop_at[l] == w.loop_at[l + 1]:
            continue  # a free joint constrains nothing
        side(w, w.loop_p[l], w.loop_E_P[l], w.loop_r_P[l], w.end_p, w.E_p, w.r_p)
        side(w, w.loop_s[l], w.loop_E_S[l], w.loop_r_S[l], w.end_s, w.E_s, w.r_s)
        loop_constraint(w, l)
    stated_rows(w)


@kernel
def to_base_axes(E: Any, x: Any, out: Any) -> None:
    """Both halves of a spatial vector, turned."""
    transform_vector_inverse(E, x[0:3], out[0:3])
    transform_vector_inverse(E, x[3:6], out[3:6])


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
def pose_between(w: Any, l: int) -> None:
    """Successor frame in the predecessor frame, E_rel and r_rel of X_s X_p⁻¹, and the gap."""
    for a in range(3):
        for b in range(3):
            w.E_J[a, b] = w.E_p[b, a]
    multiply_rotations(w.E_s, w.E_J, w.E_rel)
    way_between(w, w.loop_p[l], w.loop_r_P[l], w.loop_s[l], w.loop_r_S[l])
    transform_vector(w.E_p, w.gap, w.r_rel)


@kernel
def loop_constraint(w: Any, l: int) -> None:
    """Rows of one loop."""
    pose_between(w, l)
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
        to_base_axes(w.E_s, T, w.T_0[row])
    jacobian_rows(w, l)
    if w.switches[DRIVEN]:  # what the drives of the tree move does not count as v
        for j in range(m):
            rate = 0.0 * w.nu[first + j]
            for k in range(6):
                rate = rate + w.loop_out[m + 6 * j + k] * v_J[k]
            for k in range(w.v.shape[0]):
                rate = rate - w.K[first + j, k] * w.v[k]
            w.nu[first + j] = w.nu[first + j] - rate
    for row in range(first, first + m):  # couples about the base's origin
        cross(w.r_s, w.T_0[row, 3:6], w.spare6)
        for a in range(3):
            w.T_0[row, a] = w.T_0[row, a] + w.spare6[a]


@kernel
def jacobian_rows(w: Any, l: int) -> None:
    """K of one loop: +T S on the way from the root to s, −T S on the way to p.

    Common ancestors cancel. T_0 holds T about the successor frame's origin P, in base axes.
    """
    for row in range(w.loop_at[l], w.loop_at[l + 1]):
        for k in range(w.v.shape[0]):
            w.K[row, k] = 0.0
    p, s = w.loop_p[l], w.loop_s[l]
    arm_p, arm_s = w.spare6[0:3], w.spare6[3:6]  # from the bodies' origins to P, in base axes
    if s >= 0:
        transform_vector_inverse(w.E_0[s], w.loop_r_S[l], arm_s)
    if p >= 0:
        transform_vector_inverse(w.E_0[p], w.loop_r_P[l], arm_p)
        for a in range(3):
            arm_p[a] = arm_p[a] + w.gap[a]
    while p != s:
        if p > s:
            entries(w, l, p, arm_p, -1.0)
            to_parent(w, p, arm_p)
            p = w.parent[p]
        else:
            entries(w, l, s, arm_s, 1.0)
            to_parent(w, s, arm_s)
            s = w.parent[s]


@kernel
def to_parent(w: Any, i: int, arm: Any) -> None:
    """Arm from the origin of the parent of body i, given the one from body i."""
    parent = w.parent[i]
    if parent >= 0:
        transform_vector_inverse(w.E_0[parent], w.r[i], w.other6)
        for a in range(3):
            arm[a] = w.other6[a] + arm[a]


@kernel
def entries(w: Any, l: int, i: int, arm: Any, sign: float) -> None:
    """K entries of one body's joint, for a point at `arm` from the body's origin."""
    for k in range(w.v_at[i], w.v_at[i + 1]):
        cross(w.S_0[k, 0:3], arm, w.other6)
        for row in range(w.loop_at[l], w.loop_at[l + 1]):
            total = 0.0
            for a in range(3):
                total = total + w.T_0[row, a] * w.S_0[k, a]
                total = total + w.T_0[row, 3 + a] * (w.S_0[k, 3 + a] + w.other6[a])
            w.K[row, k] = sign * total
