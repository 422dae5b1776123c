"""Derivatives of inverse dynamics by recursion along the tree, in O(n · depth).

Everything is written in base axes about one point, the origin of the root body of each tree (so
that it does not matter how far the mechanism is from the base's origin). A small change of the
position along *direction* d of joint b displaces all that b carries, as one rigid body, by the
twist ψ_d. What moves along with these bodies changes by ψ_d × (…) only; beyond that

    δv_i = ψ × v_i + ξ                   ξ = v_λ × ψ + v_J′
    δa_i = ψ × a_i + ξ × v_i + ζ         ζ = a_λ × ψ + v_λ × ξ + (v_b × v_J′ + S′ v̇ + c_J′)
    δf_i = ψ ×* f_i + I_i ζ + B_i ξ      B_i ξ = I_i (ξ × v_i) + ξ ×* I_i v_i + v_i ×* I_i ξ

for every body i that b carries; λ is the parent of b, and primes are what the joint's own law
changes in successor coordinates (``derivative_laws``), zero where S is constant. A change of the
velocity variable k is the same with ψ = 0, ξ = S_k and ζ = (v_λ + v_b) × S_k + ∂c_J/∂v_k. So only
sums over subtrees are needed: I^c, B^c, F^c, and for a row of variable k below direction d

    ∂τ_k/∂d = (I^c S_k)·ζ_d + (B^cᵀ S_k)·ξ_d − (S_k ×* F_ext)·ψ_d,

above it S_k·(ψ_d ×* F^c + I^c ζ_d + B^c ξ_d).

B ξ is twice the Coriolis force that a rotation w adds to the velocities ẋ of a body's particles,
2∫ [x × (w × ẋ); w × ẋ] dm, and w is the angular part of ξ. With second moments M = ∫ x xᵀ dm and
the momentum p it is [A w; 2 w × p], A = 2(−ω× M + (h·v) 1 − v hᵀ): twelve numbers, not 36.

Recursive derivatives were given by Carpentier and Mansard (2018) and, for joints of several
freedoms, by Singh, Russell and Wensing (2022); here joints may be any, with S(q), time, and fewer
velocities than positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import inline_kernel, kernel
from integrators.kernels.pointers import call

from ...kernels.inertia import rigid_apply, rigid_transform_inverse
from ...kernels.spatial import cross_force, cross_motion, dot
from ...kernels.vectors import cross, multiply_rotations, transform_vector_inverse
from ..forces import DAMPING, LOWER, STIFFNESS, STOP_DAMPING, STOP_STIFFNESS, UPPER
from ..storage.workspace import HAVE_FORCES
from ..trees.kinematics import axial_transform, joint

__all__ = [
    "accelerate",
    "inward",
    "outward",
    "slopes_of_sums",
    "to_base",
]


@kernel
def to_base(E: Any, arm: Any, x: Any, out: Any) -> None:
    """A motion from body coordinates to base axes about the reference point."""
    transform_vector_inverse(E, x[0:3], out[0:3])
    transform_vector_inverse(E, x[3:6], out[3:6])
    out[3] = out[3] + (arm[1] * out[2] - arm[2] * out[1])
    out[4] = out[4] + (arm[2] * out[0] - arm[0] * out[2])
    out[5] = out[5] + (arm[0] * out[1] - arm[1] * out[0])


@inline_kernel
def coriolis(A: Any, p: Any, x: Any, out: Any) -> None:
    """Add B ξ = [A w; 2 w × p] to `out`; w is the first half of x."""
    a, b, c = x[0], x[1], x[2]
    out[0] = out[0] + (A[0] * a + A[1] * b + A[2] * c)
    out[1] = out[1] + (A[3] * a + A[4] * b + A[5] * c)
    out[2] = out[2] + (A[6] * a + A[7] * b + A[8] * c)
    out[3] = out[3] + 2.0 * (b * p[2] - c * p[1])
    out[4] = out[4] + 2.0 * (c * p[0] - a * p[2])
    out[5] = out[5] + 2.0 * (a * p[1] - b * p[0])


@inline_kernel
def coriolis_transposed(A: Any, p: Any, x: Any, out: Any) -> None:
    """Bᵀ x: three numbers, for the other three are zero."""
    u, v, w = x[3], x[4], x[5]
    out[0] = A[0] * x[0] + A[3] * x[1] + A[6] * x[2] + 2.0 * (p[1] * w - p[2] * v)
    out[1] = A[1] * x[0] + A[4] * x[1] + A[7] * x[2] + 2.0 * (p[2] * u - p[0] * w)
    out[2] = A[2] * x[0] + A[5] * x[1] + A[8] * x[2] + 2.0 * (p[0] * v - p[1] * u)


# ---------------------------------------------------------------------- outward


@inline_kernel
def place(w: Any, i: int) -> None:
    """E_0 of body i, and the arm from the origin of its root body to its own, in base axes."""
    if w.by_screws[i]:
        axial_transform(w, i)
    p = w.parent[i]
    if p < 0:
        for a in range(3):
            w.arm[i, a] = 0.0
            w.r_0[i, a] = w.r[i, a]
            for b in range(3):
                w.E_0[i, a, b] = w.E[i, a, b]
    else:
        multiply_rotations(w.E[i], w.E_0[p], w.E_0[i])
        transform_vector_inverse(w.E_0[p], w.r[i], w.spare6)
        for a in range(3):
            w.arm[i, a] = w.arm[p, a] + w.spare6[a]
            w.r_0[i, a] = w.r_0[w.root[i], a] + w.arm[i, a]


@inline_kernel
def freedoms(w: Any, i: int) -> None:
    """Columns of S, v_J and c_J in base axes."""
    arm = w.arm[i]
    if w.axial[i]:
        x, y, z = w.E_0[i, 2, 0], w.E_0[i, 2, 1], w.E_0[i, 2, 2]  # the axis
        u, v, t = arm[1] * z - arm[2] * y, arm[2] * x - arm[0] * z, arm[0] * y - arm[1] * x
        for k in range(w.v_at[i], w.v_at[i + 1]):
            turn, slide = w.S[k, 2], w.S[k, 5]
            J = w.J[k]
            J[0], J[1], J[2] = turn * x, turn * y, turn * z
            J[3], J[4], J[5] = turn * u + slide * x, turn * v + slide * y, turn * t + slide * z
        turn, slide = w.v_J[i, 2], w.v_J[i, 5]
        m = w.joint_v[i]
        m[0], m[1], m[2] = turn * x, turn * y, turn * z
        m[3], m[4], m[5] = turn * u + slide * x, turn * v + slide * y, turn * t + slide * z
    else:
        for k in range(w.v_at[i], w.v_at[i + 1]):
            to_base(w.E_0[i], arm, w.S[k], w.J[k])
        to_base(w.E_0[i], arm, w.v_J[i], w.joint_v[i])


@inline_kernel
def motion(w: Any, i: int) -> None:
    """Velocity and acceleration of body i; the base accelerates with −a_g, as in ``rnea``."""
    p = w.parent[i]
    V, A, vJ = w.vel[i], w.acc[i], w.joint_v[i]
    if p < 0:
        for m in range(6):
            V[m] = vJ[m]
            A[m] = w.gravity[m]
    else:
        cross_motion(w.vel[p], vJ, w.spare6)  # = v_i × v_J
        for m in range(6):
            V[m] = w.vel[p, m] + vJ[m]
            A[m] = w.acc[p, m] + w.spare6[m]
    if not w.axial[i]:
        to_base(w.E_0[i], w.arm[i], w.c_J[i], w.spare6)
        for m in range(6):
            A[m] = A[m] + w.spare6[m]
    for k in range(w.v_at[i], w.v_at[i + 1]):
        for m in range(6):
            A[m] = A[m] + w.J[k, m] * w.a_q[k]


@inline_kernel
def body_terms(w: Any, i: int) -> None:
    """I, f, A and p of body i; sums over what it carries are made later, on top of them."""
    rigid_transform_inverse(w.E_0[i], w.arm[i], w.inertia[i], w.I_0[i])
    I, V, F, A, p = w.I_0[i], w.vel[i], w.force[i], w.coriolis[i], w.momentum[i]
    rigid_apply(I, V, w.spare6)
    for m in range(3):
        p[m] = w.spare6[3 + m]
    cross_force(V, w.spare6, w.other6)
    rigid_apply(I, w.acc[i], F)
    for m in range(6):
        F[m] = F[m] + w.other6[m]
    # 2M = tr(I) 1 − 2I, A = −ω× 2M + 2(h·v) 1 − 2v hᵀ
    xx, yy, zz = I[4], I[6], I[9]
    xy, xz, yz = -2.0 * I[5], -2.0 * I[7], -2.0 * I[8]
    xx, yy, zz = (yy + zz) - xx, (xx + zz) - yy, (xx + yy) - zz
    a, b, c = V[0], V[1], V[2]
    h0, h1, h2 = 2.0 * I[1], 2.0 * I[2], 2.0 * I[3]
    s = h0 * V[3] + h1 * V[4] + h2 * V[5]
    A[0] = (c * xy - b * xz) + (s - V[3] * h0)
    A[1] = (c * yy - b * yz) - V[3] * h1
    A[2] = (c * yz - b * zz) - V[3] * h2
    A[3] = (a * xz - c * xx) - V[4] * h0
    A[4] = (a * yz - c * xy) + (s - V[4] * h1)
    A[5] = (a * zz - c * xz) - V[4] * h2
    A[6] = (b * xx - a * xy) - V[5] * h0
    A[7] = (b * xy - a * yy) - V[5] * h1
    A[8] = (b * xz - a * yz) + (s - V[5] * h2)


@inline_kernel
def directions(w: Any, i: int) -> None:
    """ψ, ξ, ζ of each direction of joint i; in `chi` the ζ of its velocity variables."""
    p, d0, v0, v1 = w.parent[i], w.d_at[i], w.v_at[i], w.v_at[i + 1]
    for k in range(v0, v1):
        J, chi = w.J[k], w.chi[k]
        if p < 0:
            cross_motion(w.vel[i], J, chi)
        else:
            for m in range(6):
                w.spare6[m] = w.vel[p, m] + w.vel[i, m]
            cross_motion(w.spare6, J, chi)
    if w.varies[i]:
        law_slopes(w, i)
        return
    for k in range(v0, v1):
        d = d0 + (k - v0)
        for m in range(6):
            w.psi[d, m] = w.J[k, m]
        if p < 0:
            for m in range(6):
                w.xi[d, m] = 0.0 * w.J[k, m]
            cross_motion(w.gravity, w.J[k], w.zeta[d])
        else:
            cross_motion(w.vel[p], w.J[k], w.xi[d])
            cross_motion(w.acc[p], w.J[k], w.zeta[d])
            cross_motion(w.vel[p], w.xi[d], w.spare6)
            for m in range(6):
                w.zeta[d, m] = w.zeta[d, m] + w.spare6[m]


@kernel
def law_slopes(w: Any, i: int) -> None:
    """The same for a joint whose S depends on its position; S′ goes to `S_slope`.

    The law's slopes come as ψ, v_J′, c_J′ and the columns of S′ of each direction, then ∂c_J/∂v.
    """
    p, d0, d1, v0, v1 = w.parent[i], w.d_at[i], w.d_at[i + 1], w.v_at[i], w.v_at[i + 1]
    nq, nv, at = w.q_at[i + 1] - w.q_at[i], v1 - v0, w.vary_at[i]
    for k in range(nq):
        w.x[k] = w.q[w.q_at[i] + k]
    for k in range(nv):
        w.x[nq + k] = w.v[v0 + k]
    call(w.slopes[i], w.t[0], w.x, w.p[w.p_at[i] : w.p_at[i + 1]], w.law_slope)
    E, arm = w.E_0[i], w.arm[i]
    size = 18 + 6 * nv
    for d in range(d0, d1):
        first = size * (d - d0)
        psi, xi, zeta = w.psi[d], w.xi[d], w.zeta[d]
        to_base(E, arm, w.law_slope[first : first + 6], psi)
        to_base(E, arm, w.law_slope[first + 6 : first + 12], xi)  # v_J′
        cross_motion(w.vel[i], xi, zeta)
        to_base(E, arm, w.law_slope[first + 12 : first + 18], w.other6)
        for m in range(6):
            zeta[m] = zeta[m] + w.other6[m]
        for k in range(nv):
            row = w.S_slope[at + (d - d0) * nv + k]
            to_base(E, arm, w.law_slope[first + 18 + 6 * k : first + 24 + 6 * k], row)
            for m in range(6):
                zeta[m] = zeta[m] + row[m] * w.a_q[v0 + k]
        if p < 0:
            cross_motion(w.gravity, psi, w.other6)
        else:
            cross_motion(w.vel[p], psi, w.other6)
            for m in range(6):
                xi[m] = xi[m] + w.other6[m]
            cross_motion(w.vel[p], xi, w.other6)
            for m in range(6):
                zeta[m] = zeta[m] + w.other6[m]
            cross_motion(w.acc[p], psi, w.other6)
        for m in range(6):
            zeta[m] = zeta[m] + w.other6[m]
    first = size * (d1 - d0)
    for k in range(nv):
        to_base(E, arm, w.law_slope[first + 6 * k : first + 6 * k + 6], w.other6)
        for m in range(6):
            w.chi[v0 + k, m] = w.chi[v0 + k, m] + w.other6[m]


@kernel
def external_forces(w: Any) -> None:
    """External forces about the reference points, in `outer`."""
    for i in range(w.parent.shape[0]):
        cross(w.r_0[w.root[i]], w.f_ext[i, 3:6], w.spare6)
        for a in range(3):
            w.outer[i, a] = w.f_ext[i, a] - w.spare6[a]
            w.outer[i, 3 + a] = w.f_ext[i, 3 + a]
        if w.spring_bodies.shape[0] > 0:
            force = w.spring_force[i]
            cross(w.arm[i], force[3:6], w.spare6)
            for a in range(3):
                w.outer[i, a] = w.outer[i, a] + force[a] + w.spare6[a]
                w.outer[i, 3 + a] = w.outer[i, 3 + a] + force[3 + a]


# ---------------------------------------------------------------------- inward


@kernel
def outward(w: Any) -> None:
    """Places, motions at the given a_q, and what each body contributes to the sums."""
    for i in range(w.parent.shape[0]):
        joint(w, i)
        place(w, i)
        freedoms(w, i)
        motion(w, i)
        body_terms(w, i)
    if w.switches[HAVE_FORCES]:
        external_forces(w)


@kernel
def inward(w: Any) -> None:
    """Sums over what each body carries, H, and joint forces without armature in `z`."""
    nb, nv = w.parent.shape[0], w.v.shape[0]
    forces = w.switches[HAVE_FORCES]
    for k in range(nv):
        for m in range(nv):
            w.H[k, m] = 0.0
    for i in range(nb):
        for m in range(10):
            w.I_c[i, m] = w.I_0[i, m]
    for i in range(nb - 1, -1, -1):
        I, p = w.I_c[i], w.parent[i]
        for k in range(w.v_at[i], w.v_at[i + 1]):
            IJ = w.IJ[k]
            rigid_apply(I, w.J[k], IJ)
            w.z[k] = dot(w.J[k], w.force[i])
            if forces:
                w.z[k] = w.z[k] - dot(w.J[k], w.outer[i])
            for m in range(w.v_at[i], w.v_at[i + 1]):
                w.H[m, k] = dot(w.J[m], IJ)
            w.H[k, k] = w.H[k, k] + w.armature[k]
            m = w.above[i]
            while m >= 0:
                H = dot(w.J[m], IJ)
                w.H[m, k] = H
                w.H[k, m] = H
                m = w.parent_v[m]
        if p >= 0:
            for m in range(10):
                w.I_c[p, m] = w.I_c[p, m] + I[m]
            for m in range(9):
                w.coriolis[p, m] = w.coriolis[p, m] + w.coriolis[i, m]
            for m in range(3):
                w.momentum[p, m] = w.momentum[p, m] + w.momentum[i, m]
            for m in range(6):
                w.force[p, m] = w.force[p, m] + w.force[i, m]
            if forces:
                for m in range(6):
                    w.outer[p, m] = w.outer[p, m] + w.outer[i, m]


@kernel
def accelerate(w: Any) -> None:
    """Add the effect of a_q to accelerations and to the sums of forces, made with a_q = 0."""
    nb = w.parent.shape[0]
    for i in range(nb):
        p, more = w.parent[i], w.more[i]
        for m in range(6):
            more[m] = 0.0
            if p >= 0:
                more[m] = w.more[p, m]
        for k in range(w.v_at[i], w.v_at[i + 1]):
            for m in range(6):
                more[m] = more[m] + w.J[k, m] * w.a_q[k]
        for m in range(6):
            w.acc[i, m] = w.acc[i, m] + more[m]
    for i in range(nb):
        rigid_apply(w.I_0[i], w.more[i], w.more[i])  # from here on forces
    for i in range(nb - 1, -1, -1):
        p = w.parent[i]
        for m in range(6):
            w.force[i, m] = w.force[i, m] + w.more[i, m]
            if p >= 0:
                w.more[p, m] = w.more[p, m] + w.more[i, m]


@kernel
def slopes_of_sums(w: Any) -> None:
    """∂τ of ID by directions and by velocities in `slope`, from all sums over subtrees.

    Joint forces and f_ext are taken to be constant; springs, dampers and stops of the joints are
    included, springs between points are in ``derivative_springs``.
    """
    nv, nd = w.v.shape[0], w.psi.shape[0]
    for k in range(nv):
        for m in range(nd + nv):
            w.slope[k, m] = 0.0
    for i in range(w.parent.shape[0]):
        directions(w, i)
    for i in range(w.parent.shape[0]):
        columns(w, i, nd)
        rows(w, i, nd)
        if w.varies[i]:
            turned_freedoms(w, i, w.switches[HAVE_FORCES])
    if w.elements.shape[0] > 0:
        element_slopes(w)


@inline_kernel
def columns(w: Any, i: int, nd: int) -> None:
    """Columns of joint i: what its displacement and velocity do to itself and the joints above."""
    I, A, p, R, push = w.I_c[i], w.coriolis[i], w.momentum[i], w.slope, w.push
    v0, v1 = w.v_at[i], w.v_at[i + 1]
    forces = w.switches[HAVE_FORCES]
    for d in range(w.d_at[i], w.d_at[i + 1]):
        rigid_apply(I, w.zeta[d], push)
        coriolis(A, p, w.xi[d], push)
        for k in range(v0, v1):
            R[k, d] = dot(w.J[k], push)
        if forces:
            cross_force(w.psi[d], w.outer[i], w.spare6)
            for k in range(v0, v1):
                R[k, d] = R[k, d] + dot(w.J[k], w.spare6)
        cross_force(w.psi[d], w.force[i], w.spare6)
        for m in range(6):
            push[m] = push[m] + w.spare6[m]
        column_above(w, i, d, push)
    for k in range(v0, v1):
        rigid_apply(I, w.chi[k], push)
        coriolis(A, p, w.J[k], push)
        for m in range(v0, v1):
            R[m, nd + k] = dot(w.J[m], push)
        column_above(w, i, nd + k, push)


@inline_kernel
def column_above(w: Any, i: int, column: int, push: Any) -> None:
    """S_m·push for all variables m that body i rides on."""
    a, b, c, x, y, z = push[0], push[1], push[2], push[3], push[4], push[5]
    m = w.above[i]
    while m >= 0:
        S = w.J[m]
        w.slope[m, column] = S[0] * a + S[1] * b + S[2] * c + S[3] * x + S[4] * y + S[5] * z
        m = w.parent_v[m]


@inline_kernel
def rows(w: Any, i: int, nd: int) -> None:
    """Rows of joint i: what displacements and velocities of the joints above do to it."""
    forces = w.switches[HAVE_FORCES]
    for k in range(w.v_at[i], w.v_at[i + 1]):
        IJ, turned, row = w.IJ[k], w.turned, w.slope[k]
        coriolis_transposed(w.coriolis[i], w.momentum[i], w.J[k], turned)
        a, b, c, x, y, z = IJ[0], IJ[1], IJ[2], IJ[3], IJ[4], IJ[5]
        e, f, g = turned[0], turned[1], turned[2]
        m = w.above[i]
        while m >= 0:
            S, X = w.J[m], w.chi[m]
            row[nd + m] = (a * X[0] + b * X[1] + c * X[2] + x * X[3] + y * X[4] + z * X[5]) + (
                e * S[0] + f * S[1] + g * S[2]
            )
            m = w.parent_v[m]
        d = w.above_d[i]
        while d >= 0:
            S, X = w.xi[d], w.zeta[d]
            row[d] = (a * X[0] + b * X[1] + c * X[2] + x * X[3] + y * X[4] + z * X[5]) + (
                e * S[0] + f * S[1] + g * S[2]
            )
            d = w.parent_d[d]
        if forces:
            cross_force(w.J[k], w.outer[i], w.spare6)
            d = w.above_d[i]
            while d >= 0:
                row[d] = row[d] - dot(w.psi[d], w.spare6)
                d = w.parent_d[d]


@kernel
def turned_freedoms(w: Any, i: int, forces: int) -> None:
    """Add what the joint's force does along S′."""
    nv, at = w.v_at[i + 1] - w.v_at[i], w.vary_at[i]
    for m in range(6):
        w.spare6[m] = w.force[i, m]
        if forces:
            w.spare6[m] = w.spare6[m] - w.outer[i, m]
    for d in range(w.d_at[i], w.d_at[i + 1]):
        for k in range(nv):
            row = w.S_slope[at + (d - w.d_at[i]) * nv + k]
            place = w.v_at[i] + k
            w.slope[place, d] = w.slope[place, d] + dot(row, w.spare6)


@kernel
def element_slopes(w: Any) -> None:
    """Springs, dampers and stops of the joints (``forces``); springs need q̇ = v."""
    nd = w.psi.shape[0]
    for i in range(w.parent.shape[0]):
        q0, v0 = w.q_at[i], w.v_at[i]
        for j in range(w.v_at[i + 1] - v0):
            k, d = v0 + j, w.d_at[i] + j
            e = w.elements[k]
            w.slope[k, nd + k] = w.slope[k, nd + k] + e[DAMPING]
            if e[STIFFNESS] != 0.0:
                w.slope[k, d] = w.slope[k, d] + e[STIFFNESS]
            if e[STOP_STIFFNESS] != 0.0 or e[STOP_DAMPING] != 0.0:
                low = np.maximum(e[LOWER] - w.q[q0 + j], 0.0)
                high = np.maximum(w.q[q0 + j] - e[UPPER], 0.0)
                damper = e[STOP_DAMPING] * w.v[k]
                # Where a stop would have to pull it does nothing.
                low = np.sign(low) * np.sign(np.maximum(e[STOP_STIFFNESS] * low - damper, 0.0))
                high = np.sign(high) * np.sign(np.maximum(e[STOP_STIFFNESS] * high + damper, 0.0))
                w.slope[k, d] = w.slope[k, d] + e[STOP_STIFFNESS] * (low + high)
                w.slope[k, nd + k] = w.slope[k, nd + k] + e[STOP_DAMPING] * (low + high)
