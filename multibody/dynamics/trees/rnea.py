"""Inverse dynamics by the recursive Newton–Euler algorithm (book, §5.3, Table 5.1)."""

from __future__ import annotations

from typing import Any

from integrators.kernels import kernel

from ...kernels.inertia import rigid_apply, rigid_bias
from ...kernels.spatial import dot
from ..storage.workspace import HAVE_FORCES
from .kinematics import force_to_body, force_to_parent, joint, motion_to_child, pose, velocity

__all__ = ["rnea_kernel"]


@kernel
def rnea_kernel(w: Any) -> None:
    """tau = ID(q, v, a_q), with body velocities, accelerations and joint forces on the way.

    The base accelerates with −a_g, which has the effect of gravity; so acc[i] is the acceleration
    of body i relative to free fall.
    """
    nb = w.parent.shape[0]
    forces = w.switches[HAVE_FORCES]
    for i in range(nb):
        joint(w, i)
        velocity(w, i)
        p = w.parent[i]
        if p < 0:
            motion_to_child(w, i, w.gravity, w.acc[i])
        else:
            motion_to_child(w, i, w.acc[p], w.acc[i])
        for k in range(6):
            w.acc[i, k] = w.acc[i, k] + w.c[i, k]
        for k in range(w.v_at[i], w.v_at[i + 1]):
            if w.unit[k] >= 0:
                w.acc[i, w.unit[k]] = w.acc[i, w.unit[k]] + w.a_q[k]
            else:
                for m in range(6):
                    w.acc[i, m] = w.acc[i, m] + w.S[k, m] * w.a_q[k]
        rigid_apply(w.inertia[i], w.acc[i], w.force[i])
        rigid_bias(w.inertia[i], w.vel[i], w.spare6)
        for k in range(6):
            w.force[i, k] = w.force[i, k] + w.spare6[k]
        if forces:
            pose(w, i)
            force_to_body(w, i, w.spare6)
            for k in range(6):
                w.force[i, k] = w.force[i, k] - w.spare6[k]
    for i in range(nb - 1, -1, -1):
        for k in range(w.v_at[i], w.v_at[i + 1]):
            if w.unit[k] >= 0:
                w.tau[k] = w.force[i, w.unit[k]] + w.armature[k] * w.a_q[k]
            else:
                w.tau[k] = dot(w.S[k], w.force[i]) + w.armature[k] * w.a_q[k]
        p = w.parent[i]
        if p >= 0:
            force_to_parent(w, i, w.force[i], w.spare6)
            for k in range(6):
                w.force[p, k] = w.force[p, k] + w.spare6[k]
