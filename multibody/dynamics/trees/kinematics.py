"""Kinematics of a tree: joints, transforms between neighbours, positions and velocities.

The kernels here are the vocabulary of all dynamics algorithms. ``w`` is the workspace of a tree;
``storage.workspace`` lists its arrays. Bodies are counted from 0, the base is −1.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel, kernel
from integrators.kernels.elementary import cos, sin
from integrators.kernels.pointers import call

from ...kernels.axial import (
    axial_articulated,
    axial_articulated_z_free,
    axial_force,
    axial_inverse,
    axial_motion,
    axial_rigid,
    axial_screw,
)
from ...kernels.inertia import articulated_transform_inverse, rigid_transform_inverse
from ...kernels.spatial import (
    compose,
    cross_motion,
    force_transform,
    force_transform_inverse,
    motion_transform,
)
from ...kernels.vectors import transform_vector_inverse

__all__ = [
    "articulated_to_parent",
    "force_to_body",
    "force_to_parent",
    "forward",
    "joint",
    "motion_to_child",
    "pose",
    "position_rates",
    "rigid_to_parent",
    "velocity",
]


@inline_kernel
def joint(w: Any, i: int) -> None:
    """jcalc: X_J, S, v_J and c_J of joint i (book, §4.4)."""
    q0, q1 = w.q_at[i], w.q_at[i + 1]
    v0, v1 = w.v_at[i], w.v_at[i + 1]
    if w.axial[i]:
        theta, d = w.offset[i, 0], w.offset[i, 1]
        for k in range(q0, q1):
            theta = theta + w.angle[k] * w.q[k]
            d = d + w.shift[k] * w.q[k]
        c, s = cos(theta), sin(theta)
        if w.quarters[i] == 1:
            c, s = -s, c
        elif w.quarters[i] == 2:
            c, s = -c, -s
        elif w.quarters[i] == 3:
            c, s = s, -c
        if w.by_screws[i]:
            axial_screw(c, s, d, w.screws[i, 0])
            axial_inverse(w.screws[i, 0], w.back[i, 0])
        else:
            w.screws[i, 0, 0], w.screws[i, 0, 1], w.screws[i, 0, 2] = c, s, d
            axial_transform(w, i)
        turning = 0.0 * theta
        sliding = 0.0 * theta
        for k in range(v0, v1):
            turning = turning + w.S[k, 2] * w.v[k]
            sliding = sliding + w.S[k, 5] * w.v[k]
        w.v_J[i, 2] = turning
        w.v_J[i, 5] = sliding
    else:
        nq = q1 - q0
        for k in range(nq):
            w.x[k] = w.q[q0 + k]
        for k in range(v1 - v0):
            w.x[nq + k] = w.v[v0 + k]
        call(w.laws[i], w.t[0], w.x, w.p[w.p_at[i] : w.p_at[i + 1]], w.law)
        for k in range(3):
            w.E_J[k, 0] = w.law[3 * k]
            w.E_J[k, 1] = w.law[3 * k + 1]
            w.E_J[k, 2] = w.law[3 * k + 2]
            w.r_J[k] = w.law[9 + k]
        compose(w.E_J, w.r_J, w.E_T[i], w.r_T[i], w.E[i], w.r[i])
        for k in range(6):
            w.v_J[i, k] = w.law[12 + k]
            w.c_J[i, k] = w.law[18 + k]
        for k in range(v1 - v0):
            for m in range(6):
                w.S[v0 + k, m] = w.law[24 + 6 * k + m]


@inline_kernel
def axial_transform(w: Any, i: int) -> None:
    """X_λ of an axial joint as (E, r)."""
    c, s, d = w.screws[i, 0, 0], w.screws[i, 0, 1], w.screws[i, 0, 2]
    for k in range(3):
        w.E[i, 0, k] = c * w.E_T[i, 0, k] + s * w.E_T[i, 1, k]
        w.E[i, 1, k] = c * w.E_T[i, 1, k] - s * w.E_T[i, 0, k]
        w.E[i, 2, k] = w.E_T[i, 2, k]
        w.r[i, k] = w.r_T[i, k] + w.E_T[i, 2, k] * d


@inline_kernel
def velocity(w: Any, i: int) -> None:
    """v_i = X v_λ + v_J and c_i = c_J + v_i × v_J (book, Eq 7.37)."""
    p = w.parent[i]
    if p < 0:
        for k in range(6):
            w.vel[i, k] = w.v_J[i, k]
            w.c[i, k] = w.c_J[i, k]
    elif w.axial[i]:
        motion_to_child(w, i, w.vel[p], w.vel[i])
        turning, sliding = w.v_J[i, 2], w.v_J[i, 5]
        w.vel[i, 2] = w.vel[i, 2] + turning
        w.vel[i, 5] = w.vel[i, 5] + sliding
        # v × v_J with v_J along z; c_J is zero.
        w.c[i, 0] = w.vel[i, 1] * turning
        w.c[i, 1] = -w.vel[i, 0] * turning
        w.c[i, 2] = 0.0 * turning
        w.c[i, 3] = w.vel[i, 4] * turning + w.vel[i, 1] * sliding
        w.c[i, 4] = -(w.vel[i, 3] * turning + w.vel[i, 0] * sliding)
        w.c[i, 5] = 0.0 * turning
    else:
        motion_to_child(w, i, w.vel[p], w.vel[i])
        for k in range(6):
            w.vel[i, k] = w.vel[i, k] + w.v_J[i, k]
        cross_motion(w.vel[i], w.v_J[i], w.c[i])
        for k in range(6):
            w.c[i, k] = w.c[i, k] + w.c_J[i, k]


@inline_kernel
def motion_to_child(w: Any, i: int, v: Any, out: Any) -> None:
    """Write X_λ v: from the parent's coordinates to those of body i."""
    if w.by_screws[i]:
        if w.pre[i]:
            axial_motion(2, w.screws[i, 2], v, out)
        else:
            for k in range(6):
                out[k] = v[k]
        if w.bend[i]:
            axial_motion(0, w.screws[i, 1], out, out)
        axial_motion(2, w.screws[i, 0], out, out)
    else:
        motion_transform(w.E[i], w.r[i], v, out)


@inline_kernel
def force_to_parent(w: Any, i: int, f: Any, out: Any) -> None:
    """Write X_λᵀ f: from body i to its parent's coordinates."""
    if w.by_screws[i]:
        axial_force(2, w.back[i, 0], f, out)
        if w.bend[i]:
            axial_force(0, w.back[i, 1], out, out)
        if w.pre[i]:
            axial_force(2, w.back[i, 2], out, out)
    else:
        force_transform_inverse(w.E[i], w.r[i], f, out)


@inline_kernel
def rigid_to_parent(w: Any, i: int, inertia: Any, out: Any) -> None:
    """Write X_λᵀ I X_λ for a rigid inertia."""
    if w.by_screws[i]:
        axial_rigid(2, w.back[i, 0], inertia, out)
        if w.bend[i]:
            axial_rigid(0, w.back[i, 1], out, out)
        if w.pre[i]:
            axial_rigid(2, w.back[i, 2], out, out)
    else:
        rigid_transform_inverse(w.E[i], w.r[i], inertia, out)


@inline_kernel
def articulated_to_parent(w: Any, i: int, inertia: Any, out: Any) -> None:
    """Write X_λᵀ I^a X_λ for an articulated inertia."""
    if w.by_screws[i] and w.z_free[i]:  # the joint has emptied the third row and column
        axial_articulated_z_free(2, w.back[i, 0], inertia, out)
        if w.bend[i]:
            axial_articulated_z_free(0, w.back[i, 1], out, out)
        if w.pre[i]:
            axial_articulated(2, w.back[i, 2], out, out)
    elif w.by_screws[i]:
        axial_articulated(2, w.back[i, 0], inertia, out)
        if w.bend[i]:
            axial_articulated(0, w.back[i, 1], out, out)
        if w.pre[i]:
            axial_articulated(2, w.back[i, 2], out, out)
    else:
        articulated_transform_inverse(w.E[i], w.r[i], inertia, out)


@inline_kernel
def pose(w: Any, i: int) -> None:
    """X_0 of body i as (E_0, r_0): from base to body coordinates, by X_0 = X_λ · X_0 of λ."""
    if w.by_screws[i]:
        axial_transform(w, i)
    p = w.parent[i]
    if p < 0:
        for k in range(3):
            w.r_0[i, k] = w.r[i, k]
            for m in range(3):
                w.E_0[i, k, m] = w.E[i, k, m]
    else:
        compose(w.E[i], w.r[i], w.E_0[p], w.r_0[p], w.E_0[i], w.r_0[i])


@kernel
def force_to_body(w: Any, i: int, out: Any) -> None:
    """External forces on body i, seen from it: X_0* f, and those of springs; needs :func:`pose`."""
    force_transform(w.E_0[i], w.r_0[i], w.f_ext[i], out)
    if w.spring_bodies.shape[0] > 0:
        for k in range(3):
            for m in range(3):
                out[k] = out[k] + w.E_0[i, k, m] * w.spring_force[i, m]
                out[3 + k] = out[3 + k] + w.E_0[i, k, m] * w.spring_force[i, 3 + m]


@kernel
def way_between(w: Any, p: int, r_p: Any, s: int, r_s: Any) -> None:
    """From a point of body p to one of body s, in base axes, in `gap`; needs :func:`pose`.

    Summed along the tree, from where the two ways to the base part: how far the mechanism has
    moved away, or where it was put, does not matter. Points of the base come last, as a difference.
    """
    ground_p, ground_s = w.spare6[0:3], w.spare6[3:6]
    for a in range(3):
        w.gap[a] = 0.0
        ground_p[a] = r_p[a] if p < 0 else 0.0
        ground_s[a] = r_s[a] if s < 0 else 0.0
    if s >= 0:
        transform_vector_inverse(w.E_0[s], r_s, w.gap)
    if p >= 0:
        transform_vector_inverse(w.E_0[p], r_p, w.other6)
        for a in range(3):
            w.gap[a] = w.gap[a] - w.other6[a]
    while p != s:
        if p > s:
            step_to_parent(w, p, -1.0, ground_p)
            p = w.parent[p]
        else:
            step_to_parent(w, s, 1.0, ground_s)
            s = w.parent[s]
    for a in range(3):
        w.gap[a] = (ground_s[a] - ground_p[a]) + w.gap[a]


@kernel
def step_to_parent(w: Any, i: int, sign: float, ground: Any) -> None:
    """Add the way from the origin of body i's parent to its own; from the base it is kept apart."""
    parent = w.parent[i]
    if parent >= 0:
        transform_vector_inverse(w.E_0[parent], w.r[i], w.other6)
        for a in range(3):
            w.gap[a] = w.gap[a] + sign * w.other6[a]
    else:
        for a in range(3):
            ground[a] = w.r[i, a]


@kernel
def position_rates(w: Any) -> None:
    """q̇ of all joints (the book's qdfn)."""
    for i in range(w.parent.shape[0]):
        q0, q1 = w.q_at[i], w.q_at[i + 1]
        v0, v1 = w.v_at[i], w.v_at[i + 1]
        if w.plain[i] == 0:
            nq = q1 - q0
            for k in range(nq):
                w.x[k] = w.q[q0 + k]
            for k in range(v1 - v0):
                w.x[nq + k] = w.v[v0 + k]
            call(w.rates[i], w.t[0], w.x, w.p[w.p_at[i] : w.p_at[i + 1]], w.law)
            for k in range(nq):
                w.q_dot[q0 + k] = w.law[k]
        else:
            for k in range(q1 - q0):
                w.q_dot[q0 + k] = w.v[v0 + k]


@kernel
def forward(w: Any) -> None:
    """Positions and velocities of all bodies."""
    for i in range(w.parent.shape[0]):
        joint(w, i)
        pose(w, i)
        velocity(w, i)
