"""Derivatives of constraints by functions of q, v and points of bodies.

With its law's δ, K_v = ∂φ̇/∂v, φ̇, γ′ and P = ∂φ̇/∂ẋ (``constraints.stated``) one asks for

    R₂ = K_v v̇ + P ẍ − γ′ + 2α φ̇ + β² δ = 0,

and its force is K_vᵀλ in the joints and Pᵀλ at the points.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import kernel
from integrators.kernels.pointers import call

from ...kernels.spatial import cross_motion
from ...kernels.vectors import cross
from .loop_terms import about, add_change, add_force, arm_to, start_column
from .results import rate_slopes

__all__ = ["stated_push", "stated_terms"]


@kernel
def point_state(w: Any, k: int) -> None:
    """Arm to point k, and in `answer` velocity and acceleration of its body about it."""
    i = w.point_body[k]
    arm_to(w, i, w.points[k], w.point_arm[k])
    about(w.vel[i], w.point_arm[k], w.answer[4])
    about(w.acc[i], w.point_arm[k], w.answer[5])


@kernel
def stated_push(w: Any, l: int) -> None:
    """Evaluate the law with its slopes, and add the forces at points to the external ones."""
    first, m = w.loop_at[l], w.loop_at[l + 1] - w.loop_at[l]
    nq, nv, number = w.q_at[w.parent.shape[0]], w.v.shape[0], l - w.loop_p.shape[0]
    begin, end = w.point_at[number], w.point_at[number + 1]
    size, x = 3 * (end - begin), w.bond_x
    for k in range(nq):
        x[k] = w.q[k]
    for k in range(nv):
        x[nq + k] = w.v[k]
    for k in range(begin, end):
        i, at = w.point_body[k], nq + nv + 3 * (k - begin)
        if i < 0:
            for a in range(3):
                x[at + a] = w.points[k, a]
                x[at + size + a] = 0.0
        else:
            point_state(w, k)
            for a in range(3):
                x[at + a] = w.r_0[w.root[i], a] + w.point_arm[k, a]
                x[at + size + a] = w.answer[4, 3 + a]
            cross(w.answer[4, 0:3], w.answer[4, 3:6], w.spare6)
            for a in range(3):  # ẍ: the base does not really accelerate
                w.point_acc[k, a] = w.answer[5, 3 + a] - w.gravity[3 + a] + w.spare6[a]
    out = w.bond_out[w.bond_at[l] : w.bond_at[l + 1]]
    call(w.bond_slopes[l], w.t[0], x, w.loop_q[w.loop_q_at[l] : w.loop_q_at[l + 1]], out)
    for k in range(begin, end):
        for a in range(3):
            w.push[a] = 0.0
            w.push[3 + a] = 0.0
            for r in range(m):
                at = m * (nv + 3) + r * size + 3 * (k - begin) + a
                w.push[3 + a] = w.push[3 + a] + w.lam[first + r] * out[at]
        add_force(w, w.point_body[k], w.point_arm[k], w.push, 1.0)
        for a in range(3):
            w.point_force[k, a] = w.push[3 + a]


@kernel
def stated_terms(w: Any, l: int) -> None:
    """Columns of one constraint; :func:`stated_push` has been there."""
    nd = w.psi.shape[0]
    for i in range(w.parent.shape[0]):
        plain = w.plain[i] or w.varies[i]
        q0, size, nv = w.q_at[i], w.q_at[i + 1] - w.q_at[i], w.v_at[i + 1] - w.v_at[i]
        if not plain:
            rate_slopes(w, i)
        for d in range(w.d_at[i], w.d_at[i + 1]):
            start_column(w, l)
            j = d - w.d_at[i]
            if plain:
                add_change(w, l, q0 + j, 1.0)
            else:
                for a in range(size):
                    add_change(w, l, q0 + a, w.law_slope[size * size + nv * a + j])
            finish_column(w, l, i, d, w.psi[d], w.xi[d], w.zeta[d])
        for k in range(w.v_at[i], w.v_at[i + 1]):
            start_column(w, l)
            add_change(w, l, w.q_at[w.parent.shape[0]] + k, 1.0)
            finish_column(w, l, i, nd + k, w.still, w.J[k], w.chi[k])


@kernel
def is_carried(w: Any, body: int, i: int) -> bool:
    """Whether body i carries a body, or is it."""
    while body > i:
        body = w.parent[body]
    return body == i


@kernel
def finish_column(w: Any, l: int, i: int, column: int, psi: Any, xi: Any, zeta: Any) -> None:
    """Points move along; then the rows of the column and what it does to the forces.

    About a point that moves, δẋ = δv − δx × ω and δẍ = δa − δx × α + δω × ẋ − δẋ × ω.
    """
    first, m, nv = w.loop_at[l], w.loop_at[l + 1] - w.loop_at[l], w.v.shape[0]
    number, at_x = l - w.loop_p.shape[0], w.q_at[w.parent.shape[0]] + nv
    begin, end = w.point_at[number], w.point_at[number + 1]
    size = 3 * (end - begin)
    for k in range(begin, end):
        if not is_carried(w, w.point_body[k], i):
            continue
        point_state(w, k)
        arm, v, acc = w.point_arm[k], w.answer[4], w.answer[5]
        x, dv, da = w.answer[0], w.answer[1], w.answer[2]
        about(psi, arm, x)
        about(xi, arm, dv)
        cross_motion(dv, v, w.spare6)
        about(zeta, arm, da)
        for a in range(6):
            da[a] = da[a] + w.spare6[a]
        cross_motion(x, acc, w.spare6)
        cross_motion(x, v, w.other6)
        for a in range(6):
            da[a] = da[a] + w.spare6[a]
            dv[a] = dv[a] + w.other6[a]
        cross(x[3:6], v[0:3], w.spare6[0:3])
        cross(x[3:6], acc[0:3], w.spare6[3:6])
        cross(dv[0:3], v[3:6], w.other6[3:6])
        for a in range(3):
            dv[3 + a] = dv[3 + a] - w.spare6[a]
        cross(dv[3:6], v[0:3], w.other6[0:3])
        for a in range(3):
            w.point_moved[k, a] = x[3 + a]
            w.point_moved[k, 3 + a] = da[3 + a] - w.spare6[3 + a] + w.other6[3 + a] - w.other6[a]
            add_change(w, l, at_x + 3 * (k - begin) + a, x[3 + a])
            add_change(w, l, at_x + size + 3 * (k - begin) + a, dv[3 + a])
    change, value = w.bond_change, w.bond_out[w.bond_at[l] : w.bond_at[l + 1]]
    for r in range(m):
        row, push = first + r, m * (nv + 3) + r * size
        w.bond_gap[row, column] = change[r]
        w.bond_speed[row, column] = change[m * (nv + 1) + r]
        total = 0.0 - change[m * (nv + 2) + r]
        for c in range(nv):
            total = total + change[m + r * nv + c] * w.a_q[c]
            w.bond_force[c, column] = w.bond_force[c, column] - change[m + r * nv + c] * w.lam[row]
        for k in range(begin, end):
            carried = is_carried(w, w.point_body[k], i)
            for a in range(3):
                at = push + 3 * (k - begin) + a
                total = total + change[at] * w.point_acc[k, a]
                if carried:
                    total = total + value[at] * w.point_moved[k, 3 + a]
        w.bond_acceleration[row, column] = total
    for k in range(begin, end):
        moved_force(w, l, k, column, is_carried(w, w.point_body[k], i))


@kernel
def moved_force(w: Any, l: int, k: int, column: int, carried: bool) -> None:
    """The force at point k changes, and its place: what the joints that carry it feel."""
    first, m, nv = w.loop_at[l], w.loop_at[l + 1] - w.loop_at[l], w.v.shape[0]
    number, change, push = l - w.loop_p.shape[0], w.bond_change, w.push
    begin, end = w.point_at[number], w.point_at[number + 1]
    for a in range(3):
        push[a] = 0.0
        push[3 + a] = 0.0
        for r in range(m):
            at = m * (nv + 3) + 3 * (r * (end - begin) + (k - begin)) + a
            push[3 + a] = push[3 + a] + change[at] * w.lam[first + r]
    if carried:
        cross(w.point_moved[k, 0:3], w.point_force[k], push[0:3])
    i = w.point_body[k]
    while i >= 0:
        for c in range(w.v_at[i], w.v_at[i + 1]):
            about(w.J[c], w.point_arm[k], w.spare6)
            total = w.bond_force[c, column]
            for a in range(6):
                total = total - w.spare6[a] * push[a]
            w.bond_force[c, column] = total
        i = w.parent[i]
