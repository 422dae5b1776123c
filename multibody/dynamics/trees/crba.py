"""The joint-space inertia matrix by the composite-rigid-body algorithm (book, §6.2, Table 6.2)."""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel, kernel

from ...kernels.inertia import rigid_apply
from ...kernels.spatial import dot
from .kinematics import force_to_parent, joint, rigid_to_parent

__all__ = ["composite_inertias", "crba_kernel"]


@kernel
def composite_inertias(w: Any) -> None:
    """I_i^c: inertia of body i and all that it carries, as one rigid body."""
    nb = w.parent.shape[0]
    for i in range(nb):
        joint(w, i)
        for k in range(10):
            w.I_c[i, k] = w.inertia[i, k]
    for i in range(nb - 1, -1, -1):
        p = w.parent[i]
        if p >= 0:
            rigid_to_parent(w, i, w.I_c[i], w.spare10)
            for k in range(10):
                w.I_c[p, k] = w.I_c[p, k] + w.spare10[k]


@kernel
def crba_kernel(w: Any) -> None:
    """H(q): only entries between a variable and those that it rides on are nonzero."""
    composite_inertias(w)
    nv = w.H.shape[0]
    for k in range(nv):
        for m in range(nv):
            w.H[k, m] = 0.0
    for i in range(w.parent.shape[0] - 1, -1, -1):
        for k in range(w.v_at[i], w.v_at[i + 1]):
            F = w.spare6
            if w.unit[k] >= 0:
                rigid_column(w.I_c[i], w.unit[k], F)
            else:
                rigid_apply(w.I_c[i], w.S[k], F)
            j = i
            for m in range(k, w.v_at[i] - 1, -1):
                set_entry(w, k, m, F)
            w.H[k, k] = w.H[k, k] + w.armature[k]
            while w.parent[j] >= 0:
                force_to_parent(w, j, F, F)
                j = w.parent[j]
                for m in range(w.v_at[j], w.v_at[j + 1]):
                    set_entry(w, k, m, F)


@inline_kernel
def set_entry(w: Any, k: int, m: int, F: Any) -> None:
    """H[k, m] = H[m, k] = S_mᵀ F."""
    if w.unit[m] >= 0:
        w.H[k, m] = F[w.unit[m]]
    else:
        w.H[k, m] = dot(w.S[m], F)
    w.H[m, k] = w.H[k, m]


@inline_kernel
def rigid_column(inertia: Any, k: int, out: Any) -> None:
    """Column k of a rigid inertia: no arithmetic."""
    for m in range(6):
        out[m] = 0.0 * inertia[0]
    if k < 3:
        for m in range(3):
            if m >= k:
                out[m] = inertia[4 + m * (m + 1) // 2 + k]
            else:
                out[m] = inertia[4 + k * (k + 1) // 2 + m]
        # −h × e_k
        a, b = (k + 1) % 3, (k + 2) % 3
        out[3 + a] = -inertia[1 + b]
        out[3 + b] = inertia[1 + a]
    else:
        # h × e
        a, b = (k - 3 + 1) % 3, (k - 3 + 2) % 3
        out[a] = inertia[1 + b]
        out[b] = -inertia[1 + a]
        out[k] = inertia[0]
