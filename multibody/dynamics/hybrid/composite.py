"""Hybrid dynamics of a tree by its inertia matrix (book, §9.1, Eq 9.1–9.5, Table 9.1).

With freedoms sorted into forward (1) and prescribed (2) ones,

    C′ = ID(q, v, [0; v̇₂]),   H₁₁ v̇₁ = τ₁ − C′₁,   τ₂ = C′₂ + ID_δ([v̇₁; 0])₂,

where ID_δ is inverse dynamics without velocities and gravity, H [v̇₁; 0]. Composite inertias are
needed only for ν(fd), the bodies that forward freedoms move. H₁₁ keeps the sparsity of a
tree, that of the expanded parent array λ′ of the forward freedoms alone (Figure 9.1). All arrays
keep the numbering of the whole model: of H only rows and columns of forward freedoms are used.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import kernel

from ...kernels.inertia import rigid_apply
from ...kernels.spatial import dot
from ..storage.workspace import HAVE_ELEMENTS
from ..trees.crba import rigid_column, set_entry
from ..trees.factored import eliminate_variable, substitute
from ..trees.kinematics import force_to_parent, motion_to_child, rigid_to_parent
from ..trees.newton_euler import newton_euler_kernel
from ..with_elements import joint_force_elements

__all__ = ["add_differential", "forward_inertia", "held_forces", "hybrid_composite"]


@kernel
def hybrid_composite(w: Any) -> Any:
    """a_q and tau of all freedoms from tau_known and a_known; returns their sum as a check."""
    held_forces(w)
    forward_inertia(w)
    solve_forward(w)
    add_differential(w)
    total = 0.0
    for k in range(w.v.shape[0]):
        if w.is_forward[k]:
            w.tau[k] = w.tau_known[k]
        else:
            w.tau[k] = w.held[k]
            w.a_q[k] = w.a_known[k]
        total = total + w.a_q[k] + w.tau[k]
    return total


@kernel
def held_forces(w: Any) -> None:
    """C′ in `held`, less what the force elements do, and τ₁ − C′₁ in `z`."""
    nv = w.v.shape[0]
    for k in range(nv):
        w.held[k] = 0.0
        w.a_q[k] = w.a_known[k]
    if w.switches[HAVE_ELEMENTS]:
        joint_force_elements(w)
        for k in range(nv):
            w.held[k] = w.held[k] - w.u[k]
    newton_euler_kernel(w)
    for k in range(nv):
        w.held[k] = w.held[k] + w.tau[k]
        if w.is_forward[k]:
            w.z[k] = w.tau_known[k] - w.held[k]
        else:
            w.z[k] = 0.0 * w.held[k]


@kernel
def forward_inertia(w: Any) -> None:
    """H₁₁ by the modified composite-rigid-body algorithm; needs the transforms of the joints.

    Prescribed freedoms have 1 on the diagonal, so that factors exist for all.
    """
    nb = w.parent.shape[0]
    for i in range(nb):
        if w.moved[i]:
            for k in range(10):
                w.I_c[i, k] = w.inertia[i, k]
    for i in range(nb - 1, -1, -1):
        p = w.parent[i]
        if p >= 0 and w.moved[p]:
            rigid_to_parent(w, i, w.I_c[i], w.spare10)
            for k in range(10):
                w.I_c[p, k] = w.I_c[p, k] + w.spare10[k]
    F = w.spare6
    for i in range(nb - 1, -1, -1):
        for k in range(w.v_at[i], w.v_at[i + 1]):
            w.H[k, k] = 1.0
            if not w.is_forward[k]:
                continue
            if w.unit[k] >= 0:
                rigid_column(w.I_c[i], w.unit[k], F)
            else:
                rigid_apply(w.I_c[i], w.S[k], F)
            for m in range(k, w.v_at[i] - 1, -1):
                if w.is_forward[m]:
                    set_entry(w, k, m, F)
            w.H[k, k] = w.H[k, k] + w.armature[k]
            j = i
            while w.parent[j] >= 0 and w.moved[w.parent[j]]:
                force_to_parent(w, j, F, F)
                j = w.parent[j]
                for m in range(w.v_at[j], w.v_at[j + 1]):
                    if w.is_forward[m]:
                        set_entry(w, k, m, F)


@kernel
def solve_forward(w: Any) -> None:
    """v̇₁ in `a_q` from H₁₁ and `z`, which are overwritten: H₁₁ = LᵀDL along λ′ (Table 6.3)."""
    n = w.z.shape[0]
    for k in range(n):
        w.scaled[k] = w.H[k, k]
    for k in range(n - 1, -1, -1):
        if w.is_forward[k]:
            eliminate_variable(w, w.parent_f, k)
    substitute(w, w.parent_f)


@kernel
def add_differential(w: Any) -> None:
    """held += ID_δ: what prescribed freedoms bear because forward ones accelerate with a_q."""
    nb = w.parent.shape[0]
    for i in range(nb):
        a, p = w.acc[i], w.parent[i]
        if not w.moved[i]:
            for m in range(6):
                w.force[i, m] = 0.0
            continue
        if p >= 0 and w.moved[p]:
            motion_to_child(w, i, w.acc[p], a)
        else:
            for m in range(6):
                a[m] = 0.0
        for k in range(w.v_at[i], w.v_at[i + 1]):
            if not w.is_forward[k]:
                continue
            if w.unit[k] >= 0:
                a[w.unit[k]] = a[w.unit[k]] + w.a_q[k]
            else:
                for m in range(6):
                    a[m] = a[m] + w.S[k, m] * w.a_q[k]
        rigid_apply(w.inertia[i], a, w.force[i])
    for i in range(nb - 1, -1, -1):
        for k in range(w.v_at[i], w.v_at[i + 1]):
            if w.is_forward[k]:
                continue
            if w.unit[k] >= 0:
                w.held[k] = w.held[k] + w.force[i, w.unit[k]]
            else:
                w.held[k] = w.held[k] + dot(w.S[k], w.force[i])
        p = w.parent[i]
        if p >= 0:
            force_to_parent(w, i, w.force[i], w.spare6)
            for m in range(6):
                w.force[p, m] = w.force[p, m] + w.spare6[m]
