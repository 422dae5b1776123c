"""Derivatives of what closes loops: forces of loop joints and their constraints.

A loop joint with multipliers λ exerts W = Tᵀλ on its successor and asks for

    R₂ = T ρ − γ + 2α (T v_J − ν) + β² δ = 0,

where v_J = v_s − v_p is its velocity, ρ = (a_s − a_p) − v_s × v_J its acceleration, both in the
successor's joint frame, and δ, T, ν, γ come from the joint's law, a function of the pose (E, r) of
the joint and of v_J (``joint_law``). How v and a of both sides answer to a displacement ψ of
what a joint carries is said in ``derivatives.kernels``; a displacement that carries both sides
changes nothing but the direction of W.

Everything is in base axes about the origin P of the successor's joint frame: `arms` lead there
from the reference points of the trees, so that it does not matter how far away a mechanism is.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel, kernel
from integrators.kernels.pointers import call

from ...kernels.spatial import cross_force, cross_motion, dot
from ...kernels.vectors import (
    cross,
    multiply_rotations,
    transform_vector,
    transform_vector_inverse,
)
from ..trees.kinematics import way_between

__all__ = [
    "about",
    "add_change",
    "add_force",
    "arm_to",
    "loop_push",
    "loop_terms",
    "start_column",
]


@inline_kernel
def about(x: Any, arm: Any, out: Any) -> None:
    """Motion x about the end of `arm` instead of its start: [ω; v + ω × arm]."""
    out[3] = x[3] + (x[1] * arm[2] - x[2] * arm[1])
    out[4] = x[4] + (x[2] * arm[0] - x[0] * arm[2])
    out[5] = x[5] + (x[0] * arm[1] - x[1] * arm[0])
    for a in range(3):
        out[a] = x[a]


@inline_kernel
def turned(E: Any, x: Any, out: Any) -> None:
    """Both halves of a spatial vector from base axes into those of E."""
    transform_vector(E, x[0:3], out[0:3])
    transform_vector(E, x[3:6], out[3:6])


@inline_kernel
def turned_back(E: Any, x: Any, out: Any) -> None:
    """The reverse of :func:`turned`."""
    transform_vector_inverse(E, x[0:3], out[0:3])
    transform_vector_inverse(E, x[3:6], out[3:6])


@kernel
def arm_to(w: Any, i: int, r: Any, out: Any) -> None:
    """From the reference point of a body's tree to a point of the body, in base axes."""
    transform_vector_inverse(w.E_0[i], r, out)
    for a in range(3):
        out[a] = out[a] + w.arm[i, a]


@kernel
def add_force(w: Any, i: int, arm: Any, force: Any, sign: float) -> None:
    """Add ± a spatial force about the end of `arm` to the external forces of a body."""
    if i < 0:
        return
    cross(arm, force[3:6], w.spare6[0:3])
    for a in range(3):
        w.outer[i, a] = w.outer[i, a] + sign * (force[a] + w.spare6[a])
        w.outer[i, 3 + a] = w.outer[i, 3 + a] + sign * force[3 + a]


# ---------------------------------------------------------------------- one loop joint


@kernel
def side(w: Any, k: int, i: int, E: Any, E_0: Any) -> None:
    """Axes of the joint's frame on body i, and in `ends` velocity and acceleration about P."""
    if i < 0:
        for a in range(3):
            for b in range(3):
                E_0[a, b] = E[a, b]
        for a in range(6):
            w.ends[k, a] = 0.0
            w.ends[k, 6 + a] = w.gravity[a]  # the base accelerates with −a_g, as all bodies do
    else:
        multiply_rotations(E, w.E_0[i], E_0)
        about(w.vel[i], w.arms[k], w.ends[k, 0:6])
        about(w.acc[i], w.arms[k], w.ends[k, 6:12])


@kernel
def loop_frame(w: Any, l: int) -> None:
    """Frames and motions of the two sides, v_J and ρ: in `relative` base axes, then joint axes."""
    p, s = w.loop_p[l], w.loop_s[l]
    if s >= 0:
        arm_to(w, s, w.loop_r_S[l], w.arms[1])
    way_between(w, p, w.loop_r_P[l], s, w.loop_r_S[l])
    if p >= 0:
        arm_to(w, p, w.loop_r_P[l], w.arms[0])
        for a in range(3):
            w.arms[0, a] = w.arms[0, a] + w.gap[a]
    side(w, 0, p, w.loop_E_P[l], w.E_p)
    side(w, 1, s, w.loop_E_S[l], w.E_s)
    v_rel, a_rel = w.relative[0], w.relative[1]
    for m in range(6):
        v_rel[m] = w.ends[1, m] - w.ends[0, m]
    cross_motion(w.ends[1, 0:6], v_rel, w.spare6)
    for m in range(6):
        a_rel[m] = (w.ends[1, 6 + m] - w.ends[0, 6 + m]) - w.spare6[m]
    turned(w.E_s, v_rel, w.relative[2])
    turned(w.E_s, a_rel, w.relative[3])
    for a in range(3):
        for b in range(3):
            w.E_J[a, b] = w.E_p[b, a]
    multiply_rotations(w.E_s, w.E_J, w.E_rel)


@kernel
def loop_push(w: Any, l: int) -> None:
    """Evaluate a joint's law with its slopes, and add its forces to the external ones."""
    loop_frame(w, l)
    first, m = w.loop_at[l], w.loop_at[l + 1] - w.loop_at[l]
    x, out = w.bond_x, w.bond_out[w.bond_at[l] : w.bond_at[l + 1]]
    for a in range(3):
        for b in range(3):
            x[3 * a + b] = w.E_rel[a, b]
    transform_vector(w.E_p, w.gap, x[9:12])
    for k in range(6):
        x[12 + k] = w.relative[2, k]
    call(w.bond_slopes[l], w.t[0], x, w.loop_q[w.loop_q_at[l] : w.loop_q_at[l + 1]], out)
    for k in range(6):
        w.push[k] = 0.0
        for r in range(m):
            w.push[k] = w.push[k] + w.lam[first + r] * out[m + 6 * r + k]
    turned_back(w.E_s, w.push, w.wrench[l])
    add_force(w, w.loop_s[l], w.arms[1], w.wrench[l], 1.0)
    add_force(w, w.loop_p[l], w.arms[0], w.wrench[l], -1.0)


@kernel
def loop_terms(w: Any, l: int) -> None:
    """Columns of one loop joint in `bond_force`, `bond_acceleration`, `bond_speed`, `bond_gap`."""
    loop_frame(w, l)
    nd = w.psi.shape[0]
    p, s = w.loop_p[l], w.loop_s[l]
    while p != s:  # freedoms that move one side, about P
        i = max(p, s)
        for k in range(w.v_at[i], w.v_at[i + 1]):
            about(w.J[k], w.arms[1 if i == s else 0], w.between[k])
        if i == s:
            s = w.parent[s]
        else:
            p = w.parent[p]
    p, s = w.loop_p[l], w.loop_s[l]
    while p >= 0 or s >= 0:
        i = max(p, s)
        on_p, on_s = i == p, i == s
        for d in range(w.d_at[i], w.d_at[i + 1]):
            if on_p and on_s:
                about(w.psi[d], w.arms[1], w.answer[0])
                cross_force(w.answer[0], w.wrench[l], w.push)
            else:
                joint_answer(w, l, d, w.psi[d], w.xi[d], w.zeta[d], on_s)
            joint_rows(w, l, d)
        for k in range(w.v_at[i], w.v_at[i + 1]):
            if on_p != on_s:
                joint_answer(w, l, nd + k, w.still, w.J[k], w.chi[k], on_s)
                joint_rows(w, l, nd + k)
        if on_p:
            p = w.parent[p]
        if on_s:
            s = w.parent[s]


@kernel
def joint_answer(w: Any, l: int, column: int, psi: Any, xi: Any, zeta: Any, on_s: bool) -> None:
    """What a displacement or velocity of one side does to the rows of a loop and, in `push`, to W.

    δv = ψ × v + ξ and δa = ψ × a + ξ × v + ζ of that side; components in the frame of the
    successor change by what is left beyond ψ_s × (…).
    """
    here, sign = (1, 1.0) if on_s else (0, -1.0)
    arm, v, a, v_s = w.arms[here], w.ends[here, 0:6], w.ends[here, 6:12], w.ends[1, 0:6]
    x, dv, da, other = w.answer[0], w.answer[1], w.answer[2], w.answer[3]
    about(psi, arm, x)
    about(xi, arm, other)
    about(zeta, arm, da)
    cross_motion(x, a, w.spare6)
    cross_motion(other, v, w.other6)
    for k in range(6):
        da[k] = da[k] + w.spare6[k] + w.other6[k]
    cross_motion(x, v, dv)
    for k in range(6):
        dv[k] = dv[k] + other[k]
    cross_motion(v_s, dv, w.spare6)
    for k in range(6):
        da[k] = sign * (da[k] - w.spare6[k])
    if on_s:
        cross_motion(dv, w.relative[0], w.spare6)
        cross_motion(x, w.relative[1], w.other6)
        for k in range(6):
            da[k] = da[k] - w.spare6[k] - w.other6[k]
        cross_motion(x, w.relative[0], w.spare6)
        for k in range(6):
            dv[k] = dv[k] - w.spare6[k]
    for k in range(6):
        dv[k] = sign * dv[k]
        other[k] = sign * x[k]
    dx, drho, turn = w.bond_dx, w.answer[4], w.answer[5]
    turned(w.E_s, other, turn)
    turned(w.E_s, da, drho)
    turned(w.E_s, dv, dx[12:18])
    E = w.E_rel
    for b in range(3):  # δE = −ω × E, δr = Eᵀ u
        dx[b] = turn[2] * E[1, b] - turn[1] * E[2, b]
        dx[3 + b] = turn[0] * E[2, b] - turn[2] * E[0, b]
        dx[6 + b] = turn[1] * E[0, b] - turn[0] * E[1, b]
    transform_vector_inverse(E, turn[3:6], dx[9:12])
    law_changes(w, l, column)
    if on_s:
        cross_force(x, w.wrench[l], w.spare6)
        for k in range(6):
            w.push[k] = w.push[k] + w.spare6[k]


@kernel
def law_changes(w: Any, l: int, column: int) -> None:
    """Rows of a loop from the change `bond_dx` of its law's argument, and Σ λ ∂T in `push`."""
    first, m, at = w.loop_at[l], w.loop_at[l + 1] - w.loop_at[l], w.bond_at[l]
    value, change, total = w.bond_out[at : at + 9 * m], w.bond_change, w.other6
    v_J, rho, drho, dv_J = w.relative[2], w.relative[3], w.answer[4], w.bond_dx[12:18]
    start_column(w, l)
    for b in range(18):
        add_change(w, l, b, w.bond_dx[b])
    for k in range(6):
        total[k] = 0.0
    for r in range(m):
        row, T = first + r, value[m + 6 * r : m + 6 * r + 6]
        dT = change[m + 6 * r : m + 6 * r + 6]
        for k in range(6):
            total[k] = total[k] + w.lam[row] * dT[k]
        w.bond_gap[row, column] = change[r]
        w.bond_speed[row, column] = dot(T, dv_J) + dot(dT, v_J) - change[7 * m + r]
        w.bond_acceleration[row, column] = dot(T, drho) + dot(dT, rho) - change[8 * m + r]
    turned_back(w.E_s, total, w.push)


@inline_kernel
def start_column(w: Any, l: int) -> None:
    """No change of the law yet."""
    for a in range(w.bond_size[l]):
        w.bond_change[a] = 0.0


@inline_kernel
def add_change(w: Any, l: int, b: int, amount: Any) -> None:
    """Change of all that the law returns with its argument b."""
    size = w.bond_size[l]
    at = w.bond_at[l] + size * (1 + b)
    slope, change = w.bond_out[at : at + size], w.bond_change
    for a in range(size):
        change[a] = change[a] + slope[a] * amount


@kernel
def joint_rows(w: Any, l: int, column: int) -> None:
    """Take the change of W, in `push`, from the joint forces of the freedoms of one side."""
    p, s = w.loop_p[l], w.loop_s[l]
    while p != s:
        i = max(p, s)
        for k in range(w.v_at[i], w.v_at[i + 1]):
            change = dot(w.between[k], w.push)
            if i == s:
                change = -change
            w.bond_force[k, column] = w.bond_force[k, column] + change
        if i == s:
            s = w.parent[s]
        else:
            p = w.parent[p]
