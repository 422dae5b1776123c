"""Forward dynamics through the joint-space inertia matrix: v̇ = H⁻¹(τ − C) (book, §6.1).

The cost grows with the square of the depth of the tree where articulated bodies (``aba``) grow with
its size; but for trees that are not deep, up to a chain of nine joints, this way takes fewer
operations, up to a third, once common subexpressions of H and C are shared.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel, kernel

from ..loops.multipliers import unconstrained_forces
from .aba import inverse_pivot
from .crba import crba_kernel

__all__ = ["eliminate_variable", "factored_kernel", "is_shallow", "substitute"]

#: Mean number of variables that a variable rides on, up to which the factors are cheaper than
#: articulated bodies: that of a chain of nine revolute joints (counted on traced chains).
LARGEST_MEAN_DEPTH = 4.0


@kernel
def factored_kernel(w: Any) -> None:
    """a_q from q, v, tau, f_ext and the model's force elements; overwrites H with its factors.

    H = LᵀDL (Table 6.3), with the right-hand side carried along.
    """
    unconstrained_forces(w)
    crba_kernel(w)
    n = w.z.shape[0]
    for k in range(n):
        w.scaled[k] = w.H[k, k]
    for k in range(n - 1, -1, -1):
        eliminate_variable(w, w.parent_v, k)
    substitute(w, w.parent_v)


@inline_kernel
def eliminate_variable(w: Any, parent: Any, k: int) -> None:
    """Take variable k out of H along its ancestors, z carried along (Table 6.3)."""
    H, z = w.H, w.z
    inverse = inverse_pivot(w, k, H[k, k], w.scaled[k])
    i = parent[k]
    while i >= 0:
        a = H[k, i] * inverse
        j = i
        while j >= 0:
            H[i, j] = H[i, j] - a * H[k, j]
            j = parent[j]
        H[k, i] = a
        z[i] = z[i] - a * z[k]
        i = parent[i]
    z[k] = z[k] * inverse


@inline_kernel
def substitute(w: Any, parent: Any) -> None:
    """a_q = L⁻¹ z, from the root outwards."""
    for k in range(w.z.shape[0]):
        w.a_q[k] = w.z[k]
        i = parent[k]
        while i >= 0:
            w.a_q[k] = w.a_q[k] - w.H[k, i] * w.a_q[i]
            i = parent[i]


def is_shallow(parent_v: Any) -> bool:
    """Whether a tree, given by its expanded parents, is cheaper through factors.

    Examples
    --------
    >>> is_shallow([-1, 0, 1])
    True
    >>> is_shallow(list(range(-1, 20)))
    False
    """
    depth: list[int] = []
    for parent in parent_v:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return sum(depth) <= LARGEST_MEAN_DEPTH * len(depth)
