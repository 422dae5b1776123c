"""3-D kernels: cross product, products of rotations, rotation of matrices (book, §A.5).

Costs in multiplications (m) and additions or subtractions (a) are asserted in the tests.

>>> import numpy as np
>>> out = np.empty(3)
>>> cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), out)
>>> out
array([0., 0., 1.])
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel

from ..checks import Array

__all__ = [
    "cross",
    "lower",
    "multiply_rotations",
    "quaternion_to_transform",
    "rotate_general",
    "rotate_general_direct",
    "rotate_general_inverse",
    "rotate_symmetric",
    "rotate_symmetric_inverse",
    "rotation_chain",
    "transform_vector",
    "transform_vector_inverse",
]


@inline_kernel
def lower(i: int, j: int) -> int:
    """Place of entry (i, j) of a symmetric 3×3 matrix in its stored lower triangle."""
    if i >= j:
        return i * (i + 1) // 2 + j
    return j * (j + 1) // 2 + i


@inline_kernel
def cross(a: Array, b: Array, out: Array) -> None:
    """Write a × b. 6m + 3a."""
    a0, a1, a2 = a[0], a[1], a[2]
    b0, b1, b2 = b[0], b[1], b[2]
    out[0] = a1 * b2 - a2 * b1
    out[1] = a2 * b0 - a0 * b2
    out[2] = a0 * b1 - a1 * b0


@inline_kernel
def transform_vector(E: Array, v: Array, out: Array) -> None:
    """Write E v. 9m + 6a."""
    v0, v1, v2 = v[0], v[1], v[2]
    for i in range(3):
        out[i] = E[i, 0] * v0 + E[i, 1] * v1 + E[i, 2] * v2


@inline_kernel
def transform_vector_inverse(E: Array, v: Array, out: Array) -> None:
    """Write Eᵀ v. 9m + 6a."""
    v0, v1, v2 = v[0], v[1], v[2]
    for i in range(3):
        out[i] = E[0, i] * v0 + E[1, i] * v1 + E[2, i] * v2


@inline_kernel
def quaternion_to_transform(q: Array, E: Array) -> None:
    """Coordinate transform world → body of a unit quaternion body → world (book, Eq 4.12).

    The transpose of the active rotation. For ‖q‖ ≠ 1 it is not orthogonal: renormalise q.
    """
    w, x, y, z = q[0], q[1], q[2], q[3]
    E[0, 0] = 2 * (w * w + x * x) - 1
    E[1, 1] = 2 * (w * w + y * y) - 1
    E[2, 2] = 2 * (w * w + z * z) - 1
    E[0, 1] = 2 * (x * y + w * z)
    E[1, 0] = 2 * (x * y - w * z)
    E[0, 2] = 2 * (x * z - w * y)
    E[2, 0] = 2 * (x * z + w * y)
    E[1, 2] = 2 * (y * z + w * x)
    E[2, 1] = 2 * (y * z - w * x)


@inline_kernel
def _third_column(E: Array) -> None:
    """Complete a rotation from its first two columns."""
    E[0, 2] = E[1, 0] * E[2, 1] - E[2, 0] * E[1, 1]
    E[1, 2] = E[2, 0] * E[0, 1] - E[0, 0] * E[2, 1]
    E[2, 2] = E[0, 0] * E[1, 1] - E[1, 0] * E[0, 1]


@inline_kernel
def multiply_rotations(F: Array, G: Array, out: Array) -> None:
    """Write F G for rotations, the third column as a cross product. 24m + 15a, not 27m + 18a.

    `out` must be another array than F and G.
    """
    for j in range(2):
        for i in range(3):
            out[i, j] = F[i, 0] * G[0, j] + F[i, 1] * G[1, j] + F[i, 2] * G[2, j]
    _third_column(out)


@inline_kernel
def rotation_chain(F: Array, G: Array, out: Array) -> None:
    """Write F[0] F[1] ⋯ F[n−1] G: two columns through the chain. (18m + 12a)n + 6m + 3a."""
    for j in range(2):
        for i in range(3):
            out[i, j] = G[i, j]
        for k in range(F.shape[0] - 1, -1, -1):
            x, y, z = out[0, j], out[1, j], out[2, j]
            for i in range(3):
                out[i, j] = F[k, i, 0] * x + F[k, i, 1] * y + F[k, i, 2] * z
    _third_column(out)


# The rotations B = E A Eᵀ split A = L + D + v×, where L has no third column, D = A33·1 and
# v = (−A23, A13, 0); so B = E L Eᵀ + D + (E v)×. The nine entries of E come as scalars: passing
# them transposed gives Eᵀ A E from the same code.


@inline_kernel
def rotate_symmetric_entries(
    e00: Any,
    e01: Any,
    e02: Any,
    e10: Any,
    e11: Any,
    e12: Any,
    e20: Any,
    e21: Any,
    e22: Any,
    A: Array,
    at: int,
    out: Array,
    to: int,
) -> None:
    """Lower triangle of E A Eᵀ, from A[at:at+6] into out[to:to+6]. 28m + 29a."""
    a20, a21, a22 = A[at + 3], A[at + 4], A[at + 5]
    l00 = A[at] - a22
    l10 = A[at + 1]  # = l01
    l11 = A[at + 2] - a22
    l20 = a20 + a20
    l21 = a21 + a21
    y10 = e10 * l00 + e11 * l10 + e12 * l20
    y11 = e10 * l10 + e11 * l11 + e12 * l21
    y20 = e20 * l00 + e21 * l10 + e22 * l20
    y21 = e20 * l10 + e21 * l11 + e22 * l21
    z11 = y10 * e10 + y11 * e11
    z22 = y20 * e20 + y21 * e21
    # The trace is invariant: z00 + z11 + z22 = l00 + l11.
    out[to] = l00 + l11 - z11 - z22 + a22
    out[to + 1] = y10 * e00 + y11 * e01 + (e21 * a20 - e20 * a21)
    out[to + 2] = z11 + a22
    out[to + 3] = y20 * e00 + y21 * e01 - (e11 * a20 - e10 * a21)
    out[to + 4] = y20 * e10 + y21 * e11 + (e01 * a20 - e00 * a21)
    out[to + 5] = z22 + a22


@inline_kernel
def rotate_general_entries(
    e00: Any,
    e01: Any,
    e02: Any,
    e10: Any,
    e11: Any,
    e12: Any,
    e20: Any,
    e21: Any,
    e22: Any,
    A: Array,
    at: int,
    out: Array,
    to: int,
    by_trace: bool,
) -> None:
    """E A Eᵀ row by row, from A[at:at+9] into out[to:to+9].

    40m + 39a with the first entry from the trace, 42m + 37a with it computed directly.
    """
    a02, a12, a22 = A[at + 2], A[at + 5], A[at + 8]
    l00 = A[at] - a22
    l01 = A[at + 1]
    l10 = A[at + 3]
    l11 = A[at + 4] - a22
    l20 = A[at + 6] + a02
    l21 = A[at + 7] + a12
    y00 = e00 * l00 + e01 * l10 + e02 * l20
    y01 = e00 * l01 + e01 * l11 + e02 * l21
    y10 = e10 * l00 + e11 * l10 + e12 * l20
    y11 = e10 * l01 + e11 * l11 + e12 * l21
    y20 = e20 * l00 + e21 * l10 + e22 * l20
    y21 = e20 * l01 + e21 * l11 + e22 * l21
    z11 = y10 * e10 + y11 * e11
    z22 = y20 * e20 + y21 * e21
    if by_trace:
        z00 = l00 + l11 - z11 - z22
    else:
        z00 = y00 * e00 + y01 * e01
    w0 = e01 * a02 - e00 * a12
    w1 = e11 * a02 - e10 * a12
    w2 = e21 * a02 - e20 * a12
    out[to] = z00 + a22
    out[to + 1] = y00 * e10 + y01 * e11 - w2
    out[to + 2] = y00 * e20 + y01 * e21 + w1
    out[to + 3] = y10 * e00 + y11 * e01 + w2
    out[to + 4] = z11 + a22
    out[to + 5] = y10 * e20 + y11 * e21 - w0
    out[to + 6] = y20 * e00 + y21 * e01 - w1
    out[to + 7] = y20 * e10 + y21 * e11 + w0
    out[to + 8] = z22 + a22


@inline_kernel
def rotate_symmetric(E: Array, A: Array, out: Array) -> None:
    """Lower triangle of E A Eᵀ from the lower triangle of A. 28m + 29a."""
    rotate_symmetric_entries(
        E[0, 0], E[0, 1], E[0, 2],
        E[1, 0], E[1, 1], E[1, 2],
        E[2, 0], E[2, 1], E[2, 2],
        A, 0, out, 0,
    )  # fmt: skip


@inline_kernel
def rotate_symmetric_inverse(E: Array, A: Array, out: Array) -> None:
    """Lower triangle of Eᵀ A E from the lower triangle of A. 28m + 29a."""
    rotate_symmetric_entries(
        E[0, 0], E[1, 0], E[2, 0],
        E[0, 1], E[1, 1], E[2, 1],
        E[0, 2], E[1, 2], E[2, 2],
        A, 0, out, 0,
    )  # fmt: skip


@inline_kernel
def rotate_general(E: Array, A: Array, out: Array) -> None:
    """E A Eᵀ for nine numbers row by row. 40m + 39a."""
    rotate_general_entries(
        E[0, 0], E[0, 1], E[0, 2],
        E[1, 0], E[1, 1], E[1, 2],
        E[2, 0], E[2, 1], E[2, 2],
        A, 0, out, 0, True,
    )  # fmt: skip


@inline_kernel
def rotate_general_direct(E: Array, A: Array, out: Array) -> None:
    """E A Eᵀ without the trace: two more products, two additions fewer. 42m + 37a."""
    rotate_general_entries(
        E[0, 0], E[0, 1], E[0, 2],
        E[1, 0], E[1, 1], E[1, 2],
        E[2, 0], E[2, 1], E[2, 2],
        A, 0, out, 0, False,
    )  # fmt: skip


@inline_kernel
def rotate_general_inverse(E: Array, A: Array, out: Array) -> None:
    """Eᵀ A E for nine numbers row by row. 40m + 39a."""
    rotate_general_entries(
        E[0, 0], E[1, 0], E[2, 0],
        E[0, 1], E[1, 1], E[2, 1],
        E[0, 2], E[1, 2], E[2, 2],
        A, 0, out, 0, True,
    )  # fmt: skip
