"""Hybrid dynamics of a tree by articulated bodies (book, §9.2, Eq 9.6–9.10, Table 9.3).

A prescribed freedom hinders the articulated body as a rigid joint would: nothing is eliminated, and
its acceleration joins the bias c = c_J + v × v_J + S q̈. Freedoms of one joint are treated one
by one, so those of a joint may be of both kinds. The force across the joint is then

    f = I^a (X a_λ) + p^a,   with p^a = p^A + I^a c + Σ U D⁻¹u over its forward freedoms,

which equals I^A a + p^A of the book, and needs no copy of what elimination has overwritten.
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import kernel

from ...kernels.inertia import articulated_apply
from ...kernels.spatial import dot
from ..forces import element_forces
from ..storage.workspace import HAVE_ELEMENTS
from ..trees.aba import accelerate, biased, by_itself, let_go, onto_parent
from ..trees.kinematics import forward, joint, motion_to_child, velocity

__all__ = ["hybrid_articulated"]


@kernel
def hybrid_articulated(w: Any) -> Any:
    """a_q and tau of all freedoms from tau_known and a_known; returns their sum as a check."""
    nv = w.v.shape[0]
    for k in range(nv):
        w.tau[k] = w.tau_known[k]
        w.a_q[k] = w.a_known[k]
        w.scaled[k] = 0.0
    if w.switches[HAVE_ELEMENTS]:
        forward(w)
        element_forces(w)  # joins tau: of prescribed freedoms it is all there is
    rigid_bodies(w)
    take_freedoms_out(w)
    accelerations_and_forces(w)
    total = 0.0
    for k in range(nv):
        if w.is_forward[k]:
            w.tau[k] = w.tau_known[k]
        total = total + w.a_q[k] + w.tau[k]
    return total


@kernel
def rigid_bodies(w: Any) -> None:
    """Pass 1: velocities, c with the known accelerations, and each body by itself."""
    for i in range(w.parent.shape[0]):
        joint(w, i)
        velocity(w, i)
        for k in range(w.v_at[i], w.v_at[i + 1]):
            if w.is_forward[k]:
                continue
            if w.unit[k] >= 0:
                w.c[i, w.unit[k]] = w.c[i, w.unit[k]] + w.a_known[k]
            else:
                for m in range(6):
                    w.c[i, m] = w.c[i, m] + w.S[k, m] * w.a_known[k]
        by_itself(w, i)


@kernel
def take_freedoms_out(w: Any) -> None:
    """Pass 2: I^a and p^a of all bodies, from the leaves to the root."""
    for i in range(w.parent.shape[0] - 1, -1, -1):
        for k in range(w.v_at[i], w.v_at[i + 1]):
            if w.is_forward[k]:
                let_go(w, i, k)
        biased(w, i)
        if w.parent[i] >= 0:
            onto_parent(w, i)


@kernel
def accelerations_and_forces(w: Any) -> None:
    """Pass 3: what was not known, from the root to the leaves."""
    for i in range(w.parent.shape[0]):
        parent, a, f = w.parent[i], w.acc[i], w.force[i]
        if parent < 0:
            motion_to_child(w, i, w.gravity, a)
        else:
            motion_to_child(w, i, w.acc[parent], a)
        articulated_apply(w.I_A[i], a, f)
        for m in range(6):
            f[m] = f[m] + w.p_A[i, m]
            a[m] = a[m] + w.c[i, m]
        for k in range(w.v_at[i + 1] - 1, w.v_at[i] - 1, -1):
            if not w.is_forward[k]:
                elements = w.tau[k]
                if w.unit[k] >= 0:
                    w.tau[k] = f[w.unit[k]] + w.armature[k] * w.a_known[k] - elements
                else:
                    w.tau[k] = dot(w.S[k], f) + w.armature[k] * w.a_known[k] - elements
                continue
            accelerate(w, k, a)
