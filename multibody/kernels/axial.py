"""Axial screw transforms: rotation about and translation along one coordinate axis (book, §A.4).

A screw is stored as seven numbers, (c, s, d, s², cs, 2cs, 1 − 2s²): c and s of the angle, the
distance d, and the products that rotate inertias cheaply. `axial_screw` fills them (2m + 3a, once
for each angle); the transforms then cost what Table A.5 says. With axis k and (i, j, k) cyclic,
the coordinate transform has E_ii = E_jj = c, E_ij = s, E_ji = −s, and r = d e_k; so one code
serves the three axes. All transforms go from A to B, as scrx, scry and scrz; `axial_inverse`
gives the screw that goes back.

>>> import numpy as np
>>> screw, out = np.empty(7), np.empty(6)
>>> axial_screw(0.0, 1.0, 0.5, screw)  # a quarter turn, half a metre along
>>> axial_motion(2, screw, np.array([1.0, 0, 0, 0, 0, 0]), out)
>>> out + 0.0
array([ 0. , -1. ,  0. , -0.5,  0. ,  0. ])
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel

from ..checks import Array
from .vectors import lower

__all__ = [
    "axial_articulated",
    "axial_articulated_z_free",
    "axial_force",
    "axial_inverse",
    "axial_motion",
    "axial_rigid",
    "axial_rotate_general",
    "axial_rotate_symmetric",
    "axial_screw",
]


@inline_kernel
def axial_screw(c: Any, s: Any, d: Any, screw: Array) -> None:
    """Fill a screw from cosine, sine and distance. One-time cost 2m + 3a."""
    ss = s * s
    cs = c * s
    screw[0] = c
    screw[1] = s
    screw[2] = d
    screw[3] = ss
    screw[4] = cs
    screw[5] = cs + cs
    screw[6] = 1 - (ss + ss)


@inline_kernel
def axial_inverse(screw: Array, out: Array) -> None:
    """Screw of the inverse transform: angle and distance change sign. No operations."""
    out[0] = screw[0]
    out[1] = -screw[1]
    out[2] = -screw[2]
    out[3] = screw[3]
    out[4] = -screw[4]
    out[5] = -screw[5]
    out[6] = screw[6]


@inline_kernel
def axial_motion(axis: int, screw: Array, v: Array, out: Array) -> None:
    """Write X v for a screw along an axis (0, 1, 2). 10m + 6a."""
    k = axis
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s, d = screw[0], screw[1], screw[2]
    wi, wj, wk = v[i], v[j], v[k]
    ui = v[3 + i] + wj * d
    uj = v[3 + j] - wi * d
    uk = v[3 + k]
    out[i] = c * wi + s * wj
    out[j] = c * wj - s * wi
    out[k] = wk
    out[3 + i] = c * ui + s * uj
    out[3 + j] = c * uj - s * ui
    out[3 + k] = uk


@inline_kernel
def axial_force(axis: int, screw: Array, f: Array, out: Array) -> None:
    """Write X* f for a screw along an axis (0, 1, 2). 10m + 6a."""
    k = axis
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s, d = screw[0], screw[1], screw[2]
    fi, fj, fk = f[3 + i], f[3 + j], f[3 + k]
    ni = f[i] + fj * d
    nj = f[j] - fi * d
    nk = f[k]
    out[i] = c * ni + s * nj
    out[j] = c * nj - s * ni
    out[k] = nk
    out[3 + i] = c * fi + s * fj
    out[3 + j] = c * fj - s * fi
    out[3 + k] = fk


@inline_kernel
def axial_rotate_symmetric(axis: int, screw: Array, A: Array, at: int, out: Array, to: int) -> None:
    """Lower triangle of E A Eᵀ, from A[at:at+6] into out[to:to+6]. 8m + 7a."""
    k = axis
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s = screw[0], screw[1]
    aii, ajj, akk = A[at + lower(i, i)], A[at + lower(j, j)], A[at + lower(k, k)]
    aij, aik, ajk = A[at + lower(i, j)], A[at + lower(i, k)], A[at + lower(j, k)]
    difference = ajj - aii
    alpha = screw[5] * aij + screw[3] * difference
    out[to + lower(i, i)] = aii + alpha
    out[to + lower(j, j)] = ajj - alpha
    out[to + lower(k, k)] = akk
    out[to + lower(i, j)] = screw[4] * difference + screw[6] * aij
    out[to + lower(i, k)] = c * aik + s * ajk
    out[to + lower(j, k)] = c * ajk - s * aik


@inline_kernel
def axial_rotate_general(axis: int, screw: Array, A: Array, at: int, out: Array, to: int) -> None:
    """E A Eᵀ row by row, from A[at:at+9] into out[to:to+9]. 12m + 12a."""
    k = axis
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s = screw[0], screw[1]
    aii, aij, aik = A[at + 4 * i], A[at + 3 * i + j], A[at + 3 * i + k]
    aji, ajj, ajk = A[at + 3 * j + i], A[at + 4 * j], A[at + 3 * j + k]
    aki, akj, akk = A[at + 3 * k + i], A[at + 3 * k + j], A[at + 4 * k]
    total = aij + aji
    difference = ajj - aii
    alpha = screw[4] * total + screw[3] * difference
    beta = screw[4] * difference - screw[3] * total
    out[to + 4 * i] = aii + alpha
    out[to + 3 * i + j] = aij + beta
    out[to + 3 * i + k] = c * aik + s * ajk
    out[to + 3 * j + i] = aji + beta
    out[to + 4 * j] = ajj - alpha
    out[to + 3 * j + k] = c * ajk - s * aik
    out[to + 3 * k + i] = c * aki + s * akj
    out[to + 3 * k + j] = c * akj - s * aki
    out[to + 4 * k] = akk


@inline_kernel
def axial_rigid(axis: int, screw: Array, inertia: Array, out: Array) -> None:
    """Write X* I X⁻¹ for a rigid inertia. 16m + 15a."""
    k = axis
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s, d = screw[0], screw[1], screw[2]
    m = inertia[0]
    hi, hj, hk = inertia[1 + i], inertia[1 + j], inertia[1 + k]
    yk = hk - m * d
    # I + r×h× + y×r× differs from I in two diagonal and two other entries.
    shift = (hk + yk) * d
    for n in range(6):
        out[4 + n] = inertia[4 + n]
    out[4 + lower(i, i)] = inertia[4 + lower(i, i)] - shift
    out[4 + lower(j, j)] = inertia[4 + lower(j, j)] - shift
    out[4 + lower(i, k)] = inertia[4 + lower(i, k)] + hi * d
    out[4 + lower(j, k)] = inertia[4 + lower(j, k)] + hj * d
    out[0] = m
    out[1 + i] = c * hi + s * hj
    out[1 + j] = c * hj - s * hi
    out[1 + k] = yk
    axial_rotate_symmetric(k, screw, out, 4, out, 4)


@inline_kernel
def _shift_articulated(axis: int, d: Any, M: Array, H: Array, I: Array, out: Array) -> None:
    """Write Y = H − r×M and the lower triangle of I − r×Hᵀ + Y r× for r = d e_k. 10m + 14a.

    All three inputs are arrays of 21 numbers, of which only the block named is read.
    """
    k = axis
    i, j = (k + 1) % 3, (k + 2) % 3
    hii, hij, hik = H[6 + 4 * i], H[6 + 3 * i + j], H[6 + 3 * i + k]
    hji, hjj, hjk = H[6 + 3 * j + i], H[6 + 4 * j], H[6 + 3 * j + k]
    hki, hkj, hkk = H[6 + 3 * k + i], H[6 + 3 * k + j], H[6 + 4 * k]
    mixed = M[lower(i, j)] * d
    yii = hii + mixed
    yij = hij + M[lower(j, j)] * d
    yik = hik + M[lower(j, k)] * d
    yji = hji - M[lower(i, i)] * d
    yjj = hjj - mixed
    yjk = hjk - M[lower(i, k)] * d
    out[15 + lower(i, i)] = I[15 + lower(i, i)] + (hij + yij) * d
    out[15 + lower(j, j)] = I[15 + lower(j, j)] - (hji + yji) * d
    out[15 + lower(i, j)] = I[15 + lower(i, j)] + (yjj - hii) * d
    out[15 + lower(i, k)] = I[15 + lower(i, k)] + hkj * d
    out[15 + lower(j, k)] = I[15 + lower(j, k)] - hki * d
    out[15 + lower(k, k)] = I[15 + lower(k, k)]
    out[6 + 4 * i] = yii
    out[6 + 3 * i + j] = yij
    out[6 + 3 * i + k] = yik
    out[6 + 3 * j + i] = yji
    out[6 + 4 * j] = yjj
    out[6 + 3 * j + k] = yjk
    out[6 + 3 * k + i] = hki
    out[6 + 3 * k + j] = hkj
    out[6 + 4 * k] = hkk


@inline_kernel
def axial_articulated(axis: int, screw: Array, inertia: Array, out: Array) -> None:
    """Write X* I^A X⁻¹ for an articulated inertia. 38m + 40a."""
    _shift_articulated(axis, screw[2], inertia, inertia, inertia, out)
    axial_rotate_symmetric(axis, screw, inertia, 0, out, 0)
    axial_rotate_general(axis, screw, out, 6, out, 6)
    axial_rotate_symmetric(axis, screw, out, 15, out, 15)


@inline_kernel
def axial_articulated_z_free(axis: int, screw: Array, inertia: Array, out: Array) -> None:
    """Write X* I^a X⁻¹ where row and column 3 of I^a are zero: a revolute z joint was projected.

    28m + 34a along z, where the zeros stay; 32m + 28a along x or y, where they do not.
    """
    if axis == 2:
        _z_free_along_z(screw, inertia, out)
    else:
        _z_free_across(axis, screw, inertia, out)


@inline_kernel
def _z_free_along_z(screw: Array, A: Array, out: Array) -> None:
    c, s, d = screw[0], screw[1], screw[2]
    # Y = H − r×M; the third row of H is zero and stays zero.
    mixed = A[1] * d
    y00 = A[6] + mixed
    y01 = A[7] + A[2] * d
    y02 = A[8] + A[4] * d
    y10 = A[9] - A[0] * d
    y11 = A[10] - mixed
    y12 = A[11] - A[3] * d
    # The 2×2 block of Z = I − r×Hᵀ + Y r×.
    z00 = A[15] + (A[7] + y01) * d
    z11 = A[17] - (A[9] + y10) * d
    z10 = A[16] + (y11 - A[6]) * d
    axial_rotate_symmetric(2, screw, A, 0, out, 0)
    total = y01 + y10
    difference = y11 - y00
    alpha = screw[4] * total + screw[3] * difference
    beta = screw[4] * difference - screw[3] * total
    out[6] = y00 + alpha
    out[7] = y01 + beta
    out[8] = c * y02 + s * y12
    out[9] = y10 + beta
    out[10] = y11 - alpha
    out[11] = c * y12 - s * y02
    out[12] = 0.0
    out[13] = 0.0
    out[14] = 0.0
    difference = z11 - z00
    alpha = screw[5] * z10 + screw[3] * difference
    out[15] = z00 + alpha
    out[16] = screw[4] * difference + screw[6] * z10
    out[17] = z11 - alpha
    out[18] = 0.0
    out[19] = 0.0
    out[20] = 0.0


@inline_kernel
def _z_free_across(axis: int, screw: Array, A: Array, out: Array) -> None:
    k = axis
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s, d = screw[0], screw[1], screw[2]
    ss, cs = screw[3], screw[4]
    axial_rotate_symmetric(k, screw, A, 0, out, 0)
    hki, hkj, hkk = A[6 + 3 * k + i], A[6 + 3 * k + j], A[6 + 4 * k]
    # H′ = E H Eᵀ and I′ = E I Eᵀ, where row j (axis x) or row i (axis y) is the zero row z.
    if k == 0:
        hii, hij, hik = A[6 + 4 * i], A[6 + 3 * i + j], A[6 + 3 * i + k]
        aii, aik = A[15 + lower(i, i)], A[15 + lower(i, k)]
        alpha = cs * hij - ss * hii
        beta = cs * hii + ss * hij
        out[6 + 4 * i] = hii + alpha
        out[6 + 3 * i + j] = hij - beta
        out[6 + 3 * i + k] = c * hik
        out[6 + 3 * j + i] = -beta
        out[6 + 4 * j] = -alpha
        out[6 + 3 * j + k] = -(s * hik)
        alpha = ss * aii
        out[15 + lower(i, i)] = aii - alpha
        out[15 + lower(j, j)] = alpha
        out[15 + lower(i, j)] = -(cs * aii)
        akk = A[15 + lower(k, k)]
        out[15 + lower(i, k)] = c * aik
        out[15 + lower(j, k)] = -(s * aik)
    else:
        hji, hjj, hjk = A[6 + 3 * j + i], A[6 + 4 * j], A[6 + 3 * j + k]
        ajj, ajk = A[15 + lower(j, j)], A[15 + lower(j, k)]
        alpha = cs * hji + ss * hjj
        beta = cs * hjj - ss * hji
        out[6 + 4 * i] = alpha
        out[6 + 3 * i + j] = beta
        out[6 + 3 * i + k] = s * hjk
        out[6 + 3 * j + i] = hji + beta
        out[6 + 4 * j] = hjj - alpha
        out[6 + 3 * j + k] = c * hjk
        alpha = ss * ajj
        out[15 + lower(i, i)] = alpha
        out[15 + lower(j, j)] = ajj - alpha
        out[15 + lower(i, j)] = cs * ajj
        akk = A[15 + lower(k, k)]
        out[15 + lower(i, k)] = s * ajk
        out[15 + lower(j, k)] = c * ajk
    out[6 + 3 * k + i] = c * hki + s * hkj
    out[6 + 3 * k + j] = c * hkj - s * hki
    out[6 + 4 * k] = hkk
    out[15 + lower(k, k)] = akk
    # The rotation about e_k leaves r = d e_k alone, so shifting may follow rotating.
    _shift_articulated(k, d, out, out, out, out)
