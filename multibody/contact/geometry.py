"""Gaps, normals, contact points and their rates; rows T of φ̇ = T v (book, §11.3, §11.6).

The velocity field of a body is v(p) = v + ω × (p − r). With n the unit normal from a to b at the
point p, the gap changes by ζ = n · Δv(p), Δ = b − a, because p slides along both surfaces at
right angles to n. Its derivative where v̇ = 0 is

    ṅ · Δv(p) + n · Δ(a + α × (p − r) + ω × ṗ),

a and α being the spatial accelerations. n and p, and their rates ṅ and ṗ, follow from the shapes:
the curvature of the surfaces enters through them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import inline_kernel, kernel
from integrators.kernels.elementary import select
from integrators.kernels.pointers import call

from ..kernels.vectors import cross, transform_vector_inverse
from ..model.surfaces import (
    BALL_BALL,
    BALL_BOWL,
    BALL_PLANE,
    CAPSULES,
    DISC_PLANE,
    GAP_FUNCTION,
)

__all__ = ["contact_kernel", "contact_rows", "one_contact", "place"]

#: Squares below this count as zero: the axis of a disc upright, segments parallel.
FLAT = 1e-20


@kernel
def contact_kernel(w: Any) -> None:
    """phi, normals, points, T, speed and bias of all contacts.

    Needs positions, velocities and accelerations of all bodies for a_q = 0.
    """
    for c in range(w.kind.shape[0]):
        one_contact(w, c)
        for r in range(3 * c, 3 * c + 3):
            for k in range(w.v.shape[0]):
                w.T[r, k] = 0.0
        contact_rows(w, c, w.T, 3 * c)


@kernel
def one_contact(w: Any, c: int) -> None:
    """phi, normal, tangents, point, speed and bias of one contact."""
    if w.kind[c] == GAP_FUNCTION:
        user_gap(w, c)
    else:
        body_motion(w, w.body_a[c], w.motion_a)
        body_motion(w, w.body_b[c], w.motion_b)
        surfaces(w, c)
        tangents(w.normal[3 * c], w.normal[3 * c + 1], w.normal[3 * c + 2])
        speeds(w, c)


@kernel
def contact_rows(w: Any, c: int, T: Any, at: int) -> None:
    """Rows of the normal and the tangents, into T[at …]: those entries that are not always zero."""
    if w.kind[c] == GAP_FUNCTION:
        for k in range(w.v.shape[0]):
            T[at, k] = w.gap_out[3 + k]
    else:
        a, b = w.body_a[c], w.body_b[c]
        while a != b:  # what both ride on moves neither against the other
            if a > b:
                entries(w, c, a, -1.0, T, at)
                a = w.parent[a]
            else:
                entries(w, c, b, 1.0, T, at)
                b = w.parent[b]


@kernel
def body_motion(w: Any, i: int, m: Any) -> None:
    """ω, v, α, a and origin r of a body, in base axes."""
    for k in range(15):
        m[k] = 0.0
    if i >= 0:
        E = w.E_0[i]
        transform_vector_inverse(E, w.vel[i, 0:3], m[0:3])
        transform_vector_inverse(E, w.vel[i, 3:6], m[3:6])
        transform_vector_inverse(E, w.acc[i, 0:3], m[6:9])
        transform_vector_inverse(E, w.acc[i, 3:6], m[9:12])
        for k in range(3):
            m[12 + k] = w.r_0[i, k]


@inline_kernel
def dot(a: Any, b: Any) -> Any:
    """Inner product of two vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def place(w: Any, i: int, x: Any, m: Any, out: Any, rate: Any) -> None:
    """Point of a body in base coordinates, and its velocity."""
    turned(w, i, x, m, out, rate)
    if i >= 0:
        for k in range(3):
            rate[k] += m[3 + k]
            out[k] += m[12 + k]


@kernel
def turned(w: Any, i: int, x: Any, m: Any, out: Any, rate: Any) -> None:
    """Direction of a body in base coordinates, and its rate."""
    if i < 0:
        for k in range(3):
            out[k] = x[k]
            rate[k] = 0.0
    else:
        transform_vector_inverse(w.E_0[i], x, out)
        cross(m[0:3], out, rate)


@kernel
def surfaces(w: Any, c: int) -> None:
    """phi, normal, point and rates of one contact."""
    kind = w.kind[c]
    if kind in (BALL_PLANE, DISC_PLANE):
        against_plane(w, c)
    elif kind in (BALL_BALL, BALL_BOWL):
        x = w.numbers[c]
        place(w, w.body_a[c], x[0:3], w.motion_a, w.spare3[0], w.spare3[1])
        place(w, w.body_b[c], x[4:7], w.motion_b, w.spare3[2], w.spare3[3])
        if kind == BALL_BALL:
            between_centres(w, c, 1.0, x[3], x[7])
        else:
            between_centres(w, c, -1.0, x[3], x[7])
    elif kind == CAPSULES:
        between_segments(w, c)


@kernel
def against_plane(w: Any, c: int) -> None:
    """A ball or the rim of a disc over a plane."""
    x = w.numbers[c]
    n, n_rate, p, p_rate = w.normal[3 * c], w.normal_rate[c], w.point[c], w.point_rate[c]
    o, o_rate = w.spare3[0], w.spare3[1]
    turned(w, w.body_a[c], x[0:3], w.motion_a, n, n_rate)
    place(w, w.body_a[c], x[3:6], w.motion_a, o, o_rate)
    place(w, w.body_b[c], x[6:9], w.motion_b, p, p_rate)
    if w.kind[c] == BALL_PLANE:
        for k in range(3):  # the lowest point
            p[k] -= x[9] * n[k]
            p_rate[k] -= x[9] * n_rate[k]
    else:  # from the centre against u, the direction of n in the plane of the disc
        a, a_rate, u, u_rate = w.spare3[2], w.spare3[3], w.spare3[4], w.spare3[5]
        turned(w, w.body_b[c], x[9:12], w.motion_b, a, a_rate)
        along, along_rate = dot(n, a), dot(n_rate, a) + dot(n, a_rate)
        for k in range(3):
            u[k] = n[k] - along * a[k]
            u_rate[k] = n_rate[k] - along_rate * a[k] - along * a_rate[k]
        square = dot(u, u)
        tangents(a, w.spare3[7], w.spare3[6])
        for k in range(3):  # where it lies flat any point of the rim is the lowest
            u[k] = select(square < FLAT, w.spare3[7, k], u[k])
            u_rate[k] = select(square < FLAT, 0.0, u_rate[k])
        size = np.sqrt(select(square < FLAT, 1.0, square))
        along_rate = dot(u, u_rate) / (size * size)
        for k in range(3):
            u_rate[k] = (u_rate[k] - along_rate * u[k]) / size
            u[k] = u[k] / size
        for k in range(3):
            p[k] -= x[12] * u[k]
            p_rate[k] -= x[12] * u_rate[k]
    w.phi[c] = n[0] * (p[0] - o[0]) + n[1] * (p[1] - o[1]) + n[2] * (p[2] - o[2])


@kernel
def between_centres(w: Any, c: int, sign: float, r_a: float, r_b: float) -> None:
    """Two balls (sign +1), or one inside the other (−1); centres and rates in spare3[0…3]."""
    n, n_rate, p, p_rate = w.normal[3 * c], w.normal_rate[c], w.point[c], w.point_rate[c]
    for k in range(3):
        n[k] = w.spare3[2, k] - w.spare3[0, k]
        n_rate[k] = w.spare3[3, k] - w.spare3[1, k]
    square = dot(n, n)
    distance = np.sqrt(square)
    w.phi[c] = sign * (distance - r_a) - r_b
    distance = select(square > 0.0, distance, 1.0)
    n[0] = select(square > 0.0, n[0], 1.0)  # concentric: every direction is normal
    for k in range(3):
        n[k] = n[k] / distance
        n_rate[k] = select(square > 0.0, n_rate[k], 0.0)
    along = dot(n, n_rate)
    for k in range(3):
        n_rate[k] = sign * (n_rate[k] - along * n[k]) / distance
        n[k] = sign * n[k]
        p[k] = w.spare3[0, k] + sign * r_a * n[k]
        p_rate[k] = w.spare3[1, k] + sign * r_a * n_rate[k]


@kernel
def between_segments(w: Any, c: int) -> None:
    """Two capsules: the nearest points of their axes, clamped to the ends."""
    x = w.numbers[c]
    a, a_rate, u, u_rate = w.spare3[4], w.spare3[5], w.spare3[6], w.spare3[7]
    b, b_rate, v, v_rate = w.spare3[8], w.spare3[9], w.spare3[10], w.spare3[11]
    place(w, w.body_a[c], x[0:3], w.motion_a, a, a_rate)
    place(w, w.body_a[c], x[3:6], w.motion_a, u, u_rate)
    place(w, w.body_b[c], x[7:10], w.motion_b, b, b_rate)
    place(w, w.body_b[c], x[10:13], w.motion_b, v, v_rate)
    d, d_rate = w.spare3[0], w.spare3[1]
    for k in range(3):
        u[k] -= a[k]
        u_rate[k] -= a_rate[k]
        v[k] -= b[k]
        v_rate[k] -= b_rate[k]
        d[k] = b[k] - a[k]
        d_rate[k] = b_rate[k] - a_rate[k]
    # s and t minimise |d + t v − s u|²; of parallel segments the middle of what faces each other.
    uu, vv, uv, ud, vd = dot(u, u), dot(v, v), dot(u, v), dot(u, d), dot(v, d)
    det = uu * vv - uv * uv
    s, t = 0.0, 0.0
    if uu > 0.0:
        if det > FLAT * uu * vv and vv > 0.0:
            s = min(max((ud * vv - uv * vd) / det, 0.0), 1.0)
        elif vv > 0.0:
            first, second = ud / uu, (ud + uv) / uu
            low = min(max(min(first, second), 0.0), 1.0)
            high = min(max(max(first, second), 0.0), 1.0)
            s = 0.5 * (low + high)
        else:
            s = min(max(ud / uu, 0.0), 1.0)
    if vv > 0.0:
        t = (s * uv - vd) / vv
        if t < 0.0 or t > 1.0:
            t = min(max(t, 0.0), 1.0)
            if uu > 0.0:
                s = min(max((ud + t * uv) / uu, 0.0), 1.0)
    # Rates of what is free to move: derivatives of (d + t v − s u) · u = 0 and · v = 0.
    free_s, free_t = 0.0 < s < 1.0, 0.0 < t < 1.0
    g, h = 0.0, 0.0  # − derivatives at constant s and t, along u and v
    for k in range(3):
        apart = d[k] + t * v[k] - s * u[k]
        apart_rate = d_rate[k] + t * v_rate[k] - s * u_rate[k]
        g += apart_rate * u[k] + apart * u_rate[k]
        h -= apart_rate * v[k] + apart * v_rate[k]
    s_rate, t_rate = 0.0, 0.0
    if free_s and free_t:
        if det > FLAT * uu * vv:
            s_rate, t_rate = (g * vv + h * uv) / det, (h * uu + g * uv) / det
    elif free_s:
        s_rate = g / uu
    elif free_t:
        t_rate = h / vv
    for k in range(3):
        w.spare3[0, k] = a[k] + s * u[k]
        w.spare3[1, k] = a_rate[k] + s * u_rate[k] + s_rate * u[k]
        w.spare3[2, k] = b[k] + t * v[k]
        w.spare3[3, k] = b_rate[k] + t * v_rate[k] + t_rate * v[k]
    between_centres(w, c, 1.0, x[6], x[13])


@kernel
def tangents(n: Any, first: Any, second: Any) -> None:
    """Two unit vectors at right angles to n and to each other."""
    x, y, z = abs(n[0]), abs(n[1]), abs(n[2])
    small = select(y < x - 1e-12, n[1], n[0])
    last = z < abs(small) - 1e-12
    small = select(last, n[2], small)  # of the components, the one with the least size …
    at_y = select(last, 0.0, select(y < x - 1e-12, 1.0, 0.0))
    at_z = select(last, 1.0, 0.0)
    size = np.sqrt(1.0 - small * small)
    first[0] = (1.0 - at_y - at_z - small * n[0]) / size  # … and its axis, made orthogonal to n
    first[1] = (at_y - small * n[1]) / size
    first[2] = (at_z - small * n[2]) / size
    cross(n, first, second)


@kernel
def user_gap(w: Any, c: int) -> None:
    """A gap φ(q) with a row (in gap_out), but neither point nor tangents."""
    nq, nv = w.q.shape[0], w.v.shape[0]
    for k in range(nq):
        w.state[k] = w.q[k]
    for k in range(nv):
        w.state[nq + k] = w.v[k]
    call(w.gap_laws[c], w.t[0], w.state, w.stabilise, w.gap_out)
    w.phi[c] = w.gap_out[0]
    for r in range(3 * c, 3 * c + 3):
        w.speed[r] = 0.0
        w.bias[r] = 0.0
        for k in range(3):
            w.normal[r, k] = 0.0
    w.speed[3 * c] = w.gap_out[1]
    w.bias[3 * c] = w.gap_out[2]


@kernel
def speeds(w: Any, c: int) -> None:
    """speed and bias of the normal and the two tangents of one contact."""
    p, p_rate = w.point[c], w.point_rate[c]
    dv, da = w.spare3[0], w.spare3[1]
    for k in range(3):
        dv[k] = 0.0
        da[k] = 0.0
    for side in range(2):
        m = w.motion_b if side == 0 else w.motion_a
        sign = 1.0 if side == 0 else -1.0
        for k in range(3):
            w.spare3[2, k] = p[k] - m[12 + k]
        cross(m[0:3], w.spare3[2], w.spare3[3])
        for k in range(3):
            dv[k] += sign * (m[3 + k] + w.spare3[3, k])
        cross(m[6:9], w.spare3[2], w.spare3[3])
        cross(m[0:3], p_rate, w.spare3[4])
        for k in range(3):
            da[k] += sign * (m[9 + k] + w.spare3[3, k] + w.spare3[4, k])
    for r in range(3):
        w.speed[3 * c + r] = dot(w.normal[3 * c + r], dv)
        w.bias[3 * c + r] = dot(w.normal[3 * c + r], da)
    w.bias[3 * c] += dot(w.normal_rate[c], dv)


@kernel
def entries(w: Any, c: int, i: int, sign: float, T: Any, at: int) -> None:
    """Entries of the rows that belong to the joint of one body."""
    angular, linear, arm = w.spare3[2], w.spare3[3], w.spare3[4]
    for k in range(3):
        arm[k] = w.point[c, k] - w.r_0[i, k]
    for k in range(w.v_at[i], w.v_at[i + 1]):
        transform_vector_inverse(w.E_0[i], w.S[k, 0:3], angular)
        transform_vector_inverse(w.E_0[i], w.S[k, 3:6], linear)
        cross(angular, arm, w.spare3[5])
        for m in range(3):
            linear[m] += w.spare3[5, m]
        for r in range(3):
            T[at + r, k] = sign * dot(w.normal[3 * c + r], linear)
