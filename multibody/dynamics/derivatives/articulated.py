"""−H⁻¹ times many columns through articulated inertias: for deep trees, where H fills up.

Solving with the factors of H takes as many operations for a column as H has entries; the
articulated-body algorithm (``aba``) takes 24 for each freedom. In base axes nothing has to be
transformed on the way, so that a freedom is a handful of loops over columns that lie side by side.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel, kernel

from ...kernels.inertia import articulated_apply, articulated_from_rigid
from ...kernels.spatial import dot
from ..trees.aba import inverse_pivot, subtract_dyad

__all__ = ["articulated_factors", "articulated_solve", "is_deep", "leaf_slots"]

#: Mean number of variables that a variable rides on, from which this way is the faster one: half
#: the length of a chain.
DEEP = 24.0


def is_deep(parent_v: Any) -> bool:
    """Whether a tree, given by its expanded parents, is solved by articulated inertias.

    Examples
    --------
    >>> is_deep(range(-1, 29)), is_deep(range(-1, 99))
    (False, True)
    """
    depth: list[int] = []
    for parent in parent_v:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return sum(depth) >= DEEP * max(1, len(depth))


def leaf_slots(parents: Any) -> list[int]:
    """Number of the memory that a body works in: its last child's, or a new one for a leaf.

    Examples
    --------
    >>> leaf_slots([-1, 0, 0, 1])  # the second leaf, body 2, gets its own
    [1, 0, 1, 0]
    """
    slots, leaves = [-1] * len(parents), 0
    for i in range(len(parents) - 1, -1, -1):
        if slots[i] < 0:
            slots[i] = leaves
            leaves += 1
        if parents[i] >= 0 and slots[parents[i]] < 0:
            slots[parents[i]] = slots[i]
    return slots


@kernel
def articulated_factors(w: Any) -> None:
    """U = I^A S and 1/D of all freedoms, in base axes; needs I_0, and I^c S in `IJ`."""
    nb = w.parent.shape[0]
    for i in range(nb):
        articulated_from_rigid(w.I_0[i], w.I_A[i])
    for i in range(nb - 1, -1, -1):
        I, p = w.I_A[i], w.parent[i]
        for k in range(w.v_at[i], w.v_at[i + 1]):
            articulated_apply(I, w.J[k], w.U[k])
            pivot = dot(w.J[k], w.U[k]) + w.armature[k]
            whole = dot(w.J[k], w.IJ[k]) + w.armature[k]
            w.D_inverse[k] = inverse_pivot(w, k, pivot, whole)
            subtract_dyad(I, w.U[k], w.D_inverse[k], -1)
        if p >= 0:
            for m in range(21):
                w.I_A[p, m] = w.I_A[p, m] + I[m]


@kernel
def articulated_solve(w: Any, start: int, stop: int) -> None:
    """slope ← −H⁻¹ slope, for at most as many columns as `swing` has."""
    nb, n = w.parent.shape[0], stop - start
    for i in range(nb - 1, -1, -1):
        p, slot = w.parent[i], w.swing[w.slot[i]]
        if w.is_leaf[i]:
            clear(slot, n)
        for k in range(w.v_at[i], w.v_at[i + 1]):
            row = w.slope[k, start:stop]
            gather(w.J[k], -1.0, slot, row, 1.0)
            for m in range(6):
                add(w.U[k, m] * w.D_inverse[k], row, slot[m])
        if p >= 0 and w.slot[p] != w.slot[i]:
            above = w.swing[w.slot[p]]
            for m in range(6):
                add(1.0, slot[m, 0:n], above[m])
    for i in range(nb):
        p, slot = w.parent[i], w.swing[w.slot[i]]
        if p < 0:
            clear(slot, n)
        elif w.slot[p] != w.slot[i]:
            clear(slot, n)
            for m in range(6):
                add(1.0, w.swing[w.slot[p], m, 0:n], slot[m])
        for k in range(w.v_at[i + 1] - 1, w.v_at[i] - 1, -1):
            row = w.slope[k, start:stop]
            gather(w.U[k], 1.0, slot, row, -w.D_inverse[k])
            for m in range(6):
                add(w.J[k, m], row, slot[m])


@kernel
def clear(x: Any, n: int) -> None:
    """x ← 0."""
    for m in range(6):
        row = x[m]
        for c in range(n):
            row[c] = 0.0


@kernel
def gather(x: Any, sign: float, rows: Any, y: Any, factor: Any) -> None:
    """y ← (y + sign · Σ x_m rows[m]) · factor."""
    a, b, c = sign * x[0], sign * x[1], sign * x[2]
    d, e, f = sign * x[3], sign * x[4], sign * x[5]
    r0, r1, r2, r3, r4, r5 = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]
    for k in range(y.shape[0]):
        first = a * r0[k] + b * r1[k] + c * r2[k]
        y[k] = (y[k] + (first + (d * r3[k] + e * r4[k] + f * r5[k]))) * factor


@inline_kernel
def add(a: Any, x: Any, y: Any) -> None:
    """y ← y + a x, as far as x goes."""
    for c in range(x.shape[0]):
        y[c] = y[c] + a * x[c]
