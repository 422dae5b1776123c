"""Inverse dynamics in three dimensions, at the smallest known price.

The recursive Newton–Euler algorithm as Luh, Walker and Paul wrote it (book, §5.4), with the matrix

    U = α× + ω×ω×,   so that the point c of a body accelerates with a + U c,

used throughout, as Balafoutis and Patel do. Linear velocities are not needed. With h = m c and
the second moments J = ∫ x xᵀ dm about the reference point,

    F = m a + U h,   N = h × a + [UJ − (UJ)ᵀ]∨.

The reference point of a body is where the parent's z screw meets the joint's axis, so that in a
Denavit–Hartenberg chain the vector between neighbouring points has one component less. For a
chain of revolute joints this takes fewer operations than any count that the book lists
(Table 10.1); results are those of ``rnea``.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel, kernel

from ...kernels.vectors import transform_vector, transform_vector_inverse
from ..storage.workspace import HAVE_FORCES
from .kinematics import force_to_body, joint, pose

__all__ = ["newton_euler_kernel"]


@inline_kernel
def rotate_to_child(w: Any, i: int, v: Any, out: Any) -> None:
    """E v, by at most three plane rotations for an axial joint."""
    if w.by_screws[i]:
        x, y, z = v[0], v[1], v[2]
        if w.pre[i]:
            c, s = w.screws[i, 2, 0], w.screws[i, 2, 1]
            x, y = c * x + s * y, c * y - s * x
        if w.bend[i]:
            c, s = w.screws[i, 1, 0], w.screws[i, 1, 1]
            y, z = c * y + s * z, c * z - s * y
        c, s = w.screws[i, 0, 0], w.screws[i, 0, 1]
        out[0] = c * x + s * y
        out[1] = c * y - s * x
        out[2] = z
    else:
        transform_vector(w.E[i], v, out)


@inline_kernel
def rotate_to_parent(w: Any, i: int, v: Any, out: Any) -> None:
    """Eᵀ v."""
    if w.by_screws[i]:
        x, y, z = v[0], v[1], v[2]
        c, s = w.screws[i, 0, 0], w.screws[i, 0, 1]
        x, y = c * x - s * y, c * y + s * x
        if w.bend[i]:
            c, s = w.screws[i, 1, 0], w.screws[i, 1, 1]
            y, z = c * y - s * z, c * z + s * y
        if w.pre[i]:
            c, s = w.screws[i, 2, 0], w.screws[i, 2, 1]
            x, y = c * x - s * y, c * y + s * x
        out[0], out[1], out[2] = x, y, z
    else:
        transform_vector_inverse(w.E[i], v, out)


@inline_kernel
def reach(w: Any, i: int, out: Any) -> None:
    """Vector from the parent's reference point to that of body i, in parent coordinates."""
    if w.axial[i]:
        d = 0.0
        for k in range(w.q_at[i], w.q_at[i + 1]):
            if w.shift[k] != 0.0:
                d = d + w.shift[k] * w.q[k]
        for k in range(3):
            out[k] = w.reach[i, k] + w.E_T[i, 2, k] * d
    else:
        for k in range(3):
            out[k] = w.r[i, k]
        p = w.parent[i]
        if p >= 0:
            out[2] = out[2] + w.offset[p, 1]


@kernel
def newton_euler_kernel(w: Any) -> None:
    """tau = ID(q, v, a_q); forces are left in ``force`` about the reference points."""
    nb = w.parent.shape[0]
    forces = w.switches[HAVE_FORCES]
    for i in range(nb):
        joint(w, i)
        motion(w, i)
        curvature(w, i)
        inertial_force(w, i)
        if forces:
            pose(w, i)
            force_to_body(w, i, w.spare6)
            x, y = w.spare6[3], w.spare6[4]
            d = w.offset[i, 1]  # the reference point is at −d e_z
            w.force[i, 0] = w.force[i, 0] - (w.spare6[0] - d * y)
            w.force[i, 1] = w.force[i, 1] - (w.spare6[1] + d * x)
            w.force[i, 2] = w.force[i, 2] - w.spare6[2]
            for k in range(3, 6):
                w.force[i, k] = w.force[i, k] - w.spare6[k]
    for i in range(nb - 1, -1, -1):
        f = w.force[i]
        for k in range(w.v_at[i], w.v_at[i + 1]):
            s = w.S[k]
            total = w.armature[k] * w.a_q[k]
            if w.unit[k] >= 0:
                total = total + f[w.unit[k]]
            else:
                for m in range(6):
                    total = total + s[m] * f[m]
            w.tau[k] = total
        p = w.parent[i]
        if p >= 0:
            r, n, g = w.r_J, w.spare6, w.other6
            reach(w, i, r)
            rotate_to_parent(w, i, f[0:3], n)
            rotate_to_parent(w, i, f[3:6], g)
            up = w.force[p]
            up[0] = up[0] + (n[0] + (r[1] * g[2] - r[2] * g[1]))
            up[1] = up[1] + (n[1] + (r[2] * g[0] - r[0] * g[2]))
            up[2] = up[2] + (n[2] + (r[0] * g[1] - r[1] * g[0]))
            for k in range(3):
                up[3 + k] = up[3 + k] + g[k]


@inline_kernel
def motion(w: Any, i: int) -> None:
    """ω, α and the acceleration a of the reference point of body i."""
    p = w.parent[i]
    omega, alpha, a = w.vel[i, 0:3], w.acc[i, 0:3], w.acc[i, 3:6]
    turn, slide = w.v_J[i, 0:3], w.v_J[i, 3:6]
    if p < 0:
        rotate_to_child(w, i, w.gravity[3:6], a)
        for k in range(3):
            omega[k] = turn[k]
            alpha[k] = w.c_J[i, k]
            a[k] = a[k] + w.c_J[i, 3 + k]
    else:
        U, b, r = w.U_matrix[p], w.acc[p, 3:6], w.r_J
        reach(w, i, r)
        moved = w.spare6
        for k in range(3):
            moved[k] = b[k] + (U[k, 0] * r[0] + U[k, 1] * r[1] + U[k, 2] * r[2])
        rotate_to_child(w, i, moved, a)
        rotate_to_child(w, i, w.vel[p], omega)
        rotate_to_child(w, i, w.acc[p], alpha)
        if w.axial[i]:
            x, y = omega[0], omega[1]
            alpha[0] = alpha[0] + y * turn[2]
            alpha[1] = alpha[1] - x * turn[2]
            a[0] = a[0] + 2.0 * (y * slide[2])
            a[1] = a[1] - 2.0 * (x * slide[2])
        else:
            add_cross(omega, turn, 1.0, alpha)
            add_cross(omega, slide, 2.0, a)
            for k in range(3):
                alpha[k] = alpha[k] + w.c_J[i, k]
                a[k] = a[k] + w.c_J[i, 3 + k]
        for k in range(3):
            omega[k] = omega[k] + turn[k]
    if not w.axial[i]:
        add_cross(turn, slide, 1.0, a)
    for k in range(w.v_at[i], w.v_at[i + 1]):
        if w.unit[k] >= 0:
            w.acc[i, w.unit[k]] = w.acc[i, w.unit[k]] + w.a_q[k]
        else:
            for m in range(6):
                w.acc[i, m] = w.acc[i, m] + w.S[k, m] * w.a_q[k]


@inline_kernel
def add_cross(x: Any, y: Any, factor: float, out: Any) -> None:
    """out += factor · x × y."""
    out[0] = out[0] + factor * (x[1] * y[2] - x[2] * y[1])
    out[1] = out[1] + factor * (x[2] * y[0] - x[0] * y[2])
    out[2] = out[2] + factor * (x[0] * y[1] - x[1] * y[0])


@inline_kernel
def curvature(w: Any, i: int) -> None:
    """U = α× + ω×ω×."""
    x, y, z = w.vel[i, 0], w.vel[i, 1], w.vel[i, 2]
    a, b, c = w.acc[i, 0], w.acc[i, 1], w.acc[i, 2]
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz = x * y, x * z, y * z
    U = w.U_matrix[i]
    U[0, 0] = -(yy + zz)
    U[1, 1] = -(xx + zz)
    U[2, 2] = -(xx + yy)
    U[0, 1] = xy - c
    U[1, 0] = xy + c
    U[0, 2] = xz + b
    U[2, 0] = xz - b
    U[1, 2] = yz - a
    U[2, 1] = yz + a


@inline_kernel
def inertial_force(w: Any, i: int) -> None:
    """F = m a + U h and N = h × a + [UJ − (UJ)ᵀ]∨ about the reference point."""
    m, h = w.moments[i, 0], w.moments[i, 1:4]
    J = w.moments[i, 4:10]  # lower triangle
    U, a, out = w.U_matrix[i], w.acc[i, 3:6], w.force[i]
    for k in range(3):
        out[3 + k] = m * a[k] + (U[k, 0] * h[0] + U[k, 1] * h[1] + U[k, 2] * h[2])
    j00, j10, j11, j20, j21, j22 = J[0], J[1], J[2], J[3], J[4], J[5]
    out[0] = (
        (U[2, 2] - U[1, 1]) * j21 + U[2, 0] * j10 - U[1, 0] * j20 + U[2, 1] * j11 - U[1, 2] * j22
    ) + (h[1] * a[2] - h[2] * a[1])
    out[1] = (
        (U[0, 0] - U[2, 2]) * j20 + U[0, 1] * j21 - U[2, 1] * j10 + U[0, 2] * j22 - U[2, 0] * j00
    ) + (h[2] * a[0] - h[0] * a[2])
    out[2] = (
        (U[1, 1] - U[0, 0]) * j10 + U[1, 2] * j20 - U[0, 2] * j21 + U[1, 0] * j00 - U[0, 1] * j11
    ) + (h[0] * a[1] - h[1] * a[0])
