"""Inertia kernels: apply, add and transform rigid and articulated inertias (book, Table A.4).

>>> import numpy as np
>>> point_mass = np.array([2.0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
>>> out = np.empty(6)
>>> rigid_apply(point_mass, np.array([0, 0, 0, 3.0, 0, 0]), out)
>>> out
array([0., 0., 0., 6., 0., 0.])
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel

from ..checks import Array
from .vectors import rotate_general_entries, rotate_symmetric_entries

__all__ = [
    "articulated_add_rigid",
    "articulated_apply",
    "articulated_from_rigid",
    "articulated_to_matrix",
    "articulated_transform",
    "articulated_transform_inverse",
    "central_bias",
    "rigid_apply",
    "rigid_bias",
    "rigid_to_matrix",
    "rigid_transform",
    "rigid_transform_inverse",
]


@inline_kernel
def rigid_apply(inertia: Array, v: Array, out: Array) -> None:
    """Write I v = [I ω + h × v; m v − h × ω]. 24m + 18a."""
    m, h0, h1, h2 = inertia[0], inertia[1], inertia[2], inertia[3]
    i00, i10, i11 = inertia[4], inertia[5], inertia[6]
    i20, i21, i22 = inertia[7], inertia[8], inertia[9]
    w0, w1, w2, v0, v1, v2 = v[0], v[1], v[2], v[3], v[4], v[5]
    out[0] = i00 * w0 + i10 * w1 + i20 * w2 + (h1 * v2 - h2 * v1)
    out[1] = i10 * w0 + i11 * w1 + i21 * w2 + (h2 * v0 - h0 * v2)
    out[2] = i20 * w0 + i21 * w1 + i22 * w2 + (h0 * v1 - h1 * v0)
    out[3] = m * v0 - (h1 * w2 - h2 * w1)
    out[4] = m * v1 - (h2 * w0 - h0 * w2)
    out[5] = m * v2 - (h0 * w1 - h1 * w0)


@inline_kernel
def rigid_bias(inertia: Array, v: Array, out: Array) -> None:
    """Write v ×* I v, the bias force of a moving body (Eq 2.68)."""
    m, h0, h1, h2 = inertia[0], inertia[1], inertia[2], inertia[3]
    i00, i10, i11 = inertia[4], inertia[5], inertia[6]
    i20, i21, i22 = inertia[7], inertia[8], inertia[9]
    w0, w1, w2, v0, v1, v2 = v[0], v[1], v[2], v[3], v[4], v[5]
    n0 = i00 * w0 + i10 * w1 + i20 * w2 + (h1 * v2 - h2 * v1)
    n1 = i10 * w0 + i11 * w1 + i21 * w2 + (h2 * v0 - h0 * v2)
    n2 = i20 * w0 + i21 * w1 + i22 * w2 + (h0 * v1 - h1 * v0)
    # v × m v = 0, so only the part −h × ω of the linear momentum enters the couple.
    b0 = h1 * w2 - h2 * w1
    b1 = h2 * w0 - h0 * w2
    b2 = h0 * w1 - h1 * w0
    p0 = m * v0 - b0
    p1 = m * v1 - b1
    p2 = m * v2 - b2
    out[0] = w1 * n2 - w2 * n1 - (v1 * b2 - v2 * b1)
    out[1] = w2 * n0 - w0 * n2 - (v2 * b0 - v0 * b2)
    out[2] = w0 * n1 - w1 * n0 - (v0 * b1 - v1 * b0)
    out[3] = w1 * p2 - w2 * p1
    out[4] = w2 * p0 - w0 * p2
    out[5] = w0 * p1 - w1 * p0


@inline_kernel
def central_bias(m: Any, c: Array, central: Array, v: Array, out: Array) -> None:
    """Write v ×* I v from mass, centre and central inertia (SE(3) notes, §6, with β = m c × ω).

    Five cross products, three vector additions, two scalings, one matrix–vector product:
    45m + 30a. `central` is the lower triangle of the inertia about the centre of mass.
    """
    w0, w1, w2, v0, v1, v2 = v[0], v[1], v[2], v[3], v[4], v[5]
    c0, c1, c2 = c[0], c[1], c[2]
    s0, s1, s2 = m * c0, m * c1, m * c2
    b0 = s1 * w2 - s2 * w1
    b1 = s2 * w0 - s0 * w2
    b2 = s0 * w1 - s1 * w0
    p0 = m * v0 - b0
    p1 = m * v1 - b1
    p2 = m * v2 - b2
    n0 = (c1 * p2 - c2 * p1) + (central[0] * w0 + central[1] * w1 + central[3] * w2)
    n1 = (c2 * p0 - c0 * p2) + (central[1] * w0 + central[2] * w1 + central[4] * w2)
    n2 = (c0 * p1 - c1 * p0) + (central[3] * w0 + central[4] * w1 + central[5] * w2)
    out[0] = (w1 * n2 - w2 * n1) - (v1 * b2 - v2 * b1)
    out[1] = (w2 * n0 - w0 * n2) - (v2 * b0 - v0 * b2)
    out[2] = (w0 * n1 - w1 * n0) - (v0 * b1 - v1 * b0)
    out[3] = w1 * p2 - w2 * p1
    out[4] = w2 * p0 - w0 * p2
    out[5] = w0 * p1 - w1 * p0


@inline_kernel
def rigid_to_matrix(inertia: Array, out: Array) -> None:
    """6×6 matrix [I, h×; −h×, m 1] of a rigid inertia."""
    for i in range(3):
        for j in range(3):
            out[3 + i, 3 + j] = 0.0
        out[3 + i, 3 + i] = inertia[0]
        out[i, 3 + i] = 0.0
        out[3 + i, i] = 0.0
        for j in range(i + 1):
            out[i, j] = inertia[4 + i * (i + 1) // 2 + j]
            out[j, i] = inertia[4 + i * (i + 1) // 2 + j]
        j, k = (i + 1) % 3, (i + 2) % 3
        out[k, 3 + j] = inertia[1 + i]
        out[3 + j, k] = inertia[1 + i]
        out[j, 3 + k] = -inertia[1 + i]
        out[3 + k, j] = -inertia[1 + i]


@inline_kernel
def articulated_to_matrix(inertia: Array, out: Array) -> None:
    """6×6 matrix [I, H; Hᵀ, M] of an articulated inertia."""
    for i in range(3):
        for j in range(3):
            out[i, 3 + j] = inertia[6 + 3 * i + j]
            out[3 + j, i] = inertia[6 + 3 * i + j]
        for j in range(i + 1):
            place = i * (i + 1) // 2 + j
            out[i, j] = inertia[15 + place]
            out[j, i] = inertia[15 + place]
            out[3 + i, 3 + j] = inertia[place]
            out[3 + j, 3 + i] = inertia[place]


@inline_kernel
def articulated_from_rigid(inertia: Array, out: Array) -> None:
    """Write a rigid inertia as an articulated one."""
    for i in range(15):
        out[i] = 0.0
    out[0] = inertia[0]
    out[2] = inertia[0]
    out[5] = inertia[0]
    out[7] = -inertia[3]
    out[8] = inertia[2]
    out[9] = inertia[3]
    out[11] = -inertia[1]
    out[12] = -inertia[2]
    out[13] = inertia[1]
    for i in range(6):
        out[15 + i] = inertia[4 + i]


@inline_kernel
def articulated_apply(inertia: Array, a: Array, out: Array) -> None:
    """Write I^A a = [I α + H a; M a + Hᵀ α]. 36m + 30a."""
    w0, w1, w2, v0, v1, v2 = a[0], a[1], a[2], a[3], a[4], a[5]
    A = inertia
    out[0] = A[15] * w0 + A[16] * w1 + A[18] * w2 + A[6] * v0 + A[7] * v1 + A[8] * v2
    out[1] = A[16] * w0 + A[17] * w1 + A[19] * w2 + A[9] * v0 + A[10] * v1 + A[11] * v2
    out[2] = A[18] * w0 + A[19] * w1 + A[20] * w2 + A[12] * v0 + A[13] * v1 + A[14] * v2
    out[3] = A[0] * v0 + A[1] * v1 + A[3] * v2 + A[6] * w0 + A[9] * w1 + A[12] * w2
    out[4] = A[1] * v0 + A[2] * v1 + A[4] * v2 + A[7] * w0 + A[10] * w1 + A[13] * w2
    out[5] = A[3] * v0 + A[4] * v1 + A[5] * v2 + A[8] * w0 + A[11] * w1 + A[14] * w2


@inline_kernel
def articulated_add_rigid(articulated: Array, rigid: Array, out: Array) -> None:
    """Write I^A + I. 15a."""
    for i in range(15):
        out[i] = articulated[i]
    m, h0, h1, h2 = rigid[0], rigid[1], rigid[2], rigid[3]
    out[0] = articulated[0] + m
    out[2] = articulated[2] + m
    out[5] = articulated[5] + m
    out[7] = articulated[7] - h2
    out[8] = articulated[8] + h1
    out[9] = articulated[9] + h2
    out[11] = articulated[11] - h0
    out[12] = articulated[12] - h1
    out[13] = articulated[13] + h0
    for i in range(6):
        out[15 + i] = articulated[15 + i] + rigid[4 + i]


@inline_kernel
def rigid_transform(E: Array, r: Array, inertia: Array, out: Array) -> None:
    """Write X* I X⁻¹ = (m, E y, E (I + r×h× + y×r×) Eᵀ), y = h − m r: from A to B. 52m + 56a."""
    m, h0, h1, h2 = inertia[0], inertia[1], inertia[2], inertia[3]
    r0, r1, r2 = r[0], r[1], r[2]
    y0, y1, y2 = h0 - m * r0, h1 - m * r1, h2 - m * r2
    # a×b× = b aᵀ − (a·b) 1, lower triangle, for (r, h) and for (y, r)
    s0, s1, s2 = r0 * h0, r1 * h1, r2 * h2
    t0, t1, t2 = y0 * r0, y1 * r1, y2 * r2
    out[4] = inertia[4] - (s1 + s2) - (t1 + t2)
    out[5] = inertia[5] + h1 * r0 + r1 * y0
    out[6] = inertia[6] - (s0 + s2) - (t0 + t2)
    out[7] = inertia[7] + h2 * r0 + r2 * y0
    out[8] = inertia[8] + h2 * r1 + r2 * y1
    out[9] = inertia[9] - (s0 + s1) - (t0 + t1)
    out[0] = m
    for i in range(3):
        out[1 + i] = E[i, 0] * y0 + E[i, 1] * y1 + E[i, 2] * y2
    rotate_symmetric_entries(
        E[0, 0], E[0, 1], E[0, 2],
        E[1, 0], E[1, 1], E[1, 2],
        E[2, 0], E[2, 1], E[2, 2],
        out, 4, out, 4,
    )  # fmt: skip


@inline_kernel
def rigid_transform_inverse(E: Array, r: Array, inertia: Array, out: Array) -> None:
    """Write Xᵀ I X = (m, y, Eᵀ I E − r×g× − y×r×), g = Eᵀh, y = g + m r: B to A. 52m + 56a."""
    m, h0, h1, h2 = inertia[0], inertia[1], inertia[2], inertia[3]
    r0, r1, r2 = r[0], r[1], r[2]
    g0 = E[0, 0] * h0 + E[1, 0] * h1 + E[2, 0] * h2
    g1 = E[0, 1] * h0 + E[1, 1] * h1 + E[2, 1] * h2
    g2 = E[0, 2] * h0 + E[1, 2] * h1 + E[2, 2] * h2
    y0, y1, y2 = g0 + m * r0, g1 + m * r1, g2 + m * r2
    rotate_symmetric_entries(
        E[0, 0], E[1, 0], E[2, 0],
        E[0, 1], E[1, 1], E[2, 1],
        E[0, 2], E[1, 2], E[2, 2],
        inertia, 4, out, 4,
    )  # fmt: skip
    s0, s1, s2 = r0 * g0, r1 * g1, r2 * g2
    t0, t1, t2 = y0 * r0, y1 * r1, y2 * r2
    out[0] = m
    out[1] = y0
    out[2] = y1
    out[3] = y2
    out[4] = out[4] + (s1 + s2) + (t1 + t2)
    out[5] = out[5] - g1 * r0 - r1 * y0
    out[6] = out[6] + (s0 + s2) + (t0 + t2)
    out[7] = out[7] - g2 * r0 - r2 * y0
    out[8] = out[8] - g2 * r1 - r2 * y1
    out[9] = out[9] + (s0 + s1) + (t0 + t1)


@inline_kernel
def articulated_transform(E: Array, r: Array, inertia: Array, out: Array) -> None:
    """Write X* I^A X⁻¹: from A to B. 137m + 137a.

    With Y = H − r×M it is (E M Eᵀ, E Y Eᵀ, E (I − r×Hᵀ + Y r×) Eᵀ).
    """
    A = inertia
    r0, r1, r2 = r[0], r[1], r[2]
    h00, h01, h02 = A[6], A[7], A[8]
    h10, h11, h12 = A[9], A[10], A[11]
    h20, h21, h22 = A[12], A[13], A[14]
    # r×M with M symmetric: three products are shared between diagonal entries (15m + 9a).
    p0, p1, p2 = r2 * A[1], r1 * A[3], r0 * A[4]
    y00 = h00 - (p1 - p0)
    y01 = h01 - (r1 * A[4] - r2 * A[2])
    y02 = h02 - (r1 * A[5] - r2 * A[4])
    y10 = h10 - (r2 * A[0] - r0 * A[3])
    y11 = h11 - (p0 - p2)
    y12 = h12 - (r2 * A[3] - r0 * A[5])
    y20 = h20 - (r0 * A[1] - r1 * A[0])
    y21 = h21 - (r0 * A[2] - r1 * A[1])
    y22 = h22 - (p2 - p1)
    # Lower triangle of I − r×Hᵀ + Y r×.
    out[15] = A[15] - (r1 * h02 - r2 * h01) + (y01 * r2 - y02 * r1)
    out[16] = A[16] - (r2 * h00 - r0 * h02) + (y11 * r2 - y12 * r1)
    out[17] = A[17] - (r2 * h10 - r0 * h12) + (y12 * r0 - y10 * r2)
    out[18] = A[18] - (r0 * h01 - r1 * h00) + (y21 * r2 - y22 * r1)
    out[19] = A[19] - (r0 * h11 - r1 * h10) + (y22 * r0 - y20 * r2)
    out[20] = A[20] - (r0 * h21 - r1 * h20) + (y20 * r1 - y21 * r0)
    out[6] = y00
    out[7] = y01
    out[8] = y02
    out[9] = y10
    out[10] = y11
    out[11] = y12
    out[12] = y20
    out[13] = y21
    out[14] = y22
    e00, e01, e02 = E[0, 0], E[0, 1], E[0, 2]
    e10, e11, e12 = E[1, 0], E[1, 1], E[1, 2]
    e20, e21, e22 = E[2, 0], E[2, 1], E[2, 2]
    rotate_symmetric_entries(e00, e01, e02, e10, e11, e12, e20, e21, e22, A, 0, out, 0)
    rotate_general_entries(e00, e01, e02, e10, e11, e12, e20, e21, e22, out, 6, out, 6, False)
    rotate_symmetric_entries(e00, e01, e02, e10, e11, e12, e20, e21, e22, out, 15, out, 15)


@inline_kernel
def articulated_transform_inverse(E: Array, r: Array, inertia: Array, out: Array) -> None:
    """Write Xᵀ I^A X: from B to A. 137m + 137a.

    With M′ = EᵀME and H′ = EᵀHE it is (M′, H′ + r×M′, EᵀIE + r×H′ᵀ − (H′ + r×M′) r×).
    """
    e00, e10, e20 = E[0, 0], E[0, 1], E[0, 2]
    e01, e11, e21 = E[1, 0], E[1, 1], E[1, 2]
    e02, e12, e22 = E[2, 0], E[2, 1], E[2, 2]
    A = inertia
    rotate_symmetric_entries(e00, e01, e02, e10, e11, e12, e20, e21, e22, A, 0, out, 0)
    rotate_general_entries(e00, e01, e02, e10, e11, e12, e20, e21, e22, A, 6, out, 6, False)
    rotate_symmetric_entries(e00, e01, e02, e10, e11, e12, e20, e21, e22, A, 15, out, 15)
    r0, r1, r2 = r[0], r[1], r[2]
    h00, h01, h02 = out[6], out[7], out[8]
    h10, h11, h12 = out[9], out[10], out[11]
    h20, h21, h22 = out[12], out[13], out[14]
    p0, p1, p2 = r2 * out[1], r1 * out[3], r0 * out[4]
    y00 = h00 + (p1 - p0)
    y01 = h01 + (r1 * out[4] - r2 * out[2])
    y02 = h02 + (r1 * out[5] - r2 * out[4])
    y10 = h10 + (r2 * out[0] - r0 * out[3])
    y11 = h11 + (p0 - p2)
    y12 = h12 + (r2 * out[3] - r0 * out[5])
    y20 = h20 + (r0 * out[1] - r1 * out[0])
    y21 = h21 + (r0 * out[2] - r1 * out[1])
    y22 = h22 + (p2 - p1)
    out[15] = out[15] + (r1 * h02 - r2 * h01) - (y01 * r2 - y02 * r1)
    out[16] = out[16] + (r2 * h00 - r0 * h02) - (y11 * r2 - y12 * r1)
    out[17] = out[17] + (r2 * h10 - r0 * h12) - (y12 * r0 - y10 * r2)
    out[18] = out[18] + (r0 * h01 - r1 * h00) - (y21 * r2 - y22 * r1)
    out[19] = out[19] + (r0 * h11 - r1 * h10) - (y22 * r0 - y20 * r2)
    out[20] = out[20] + (r0 * h21 - r1 * h20) - (y20 * r1 - y21 * r0)
    out[6] = y00
    out[7] = y01
    out[8] = y02
    out[9] = y10
    out[10] = y11
    out[11] = y12
    out[12] = y20
    out[13] = y21
    out[14] = y22
