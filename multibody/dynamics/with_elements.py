"""What the functions of ``functions`` run: algorithms together with the model's force elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import kernel

from ..checks import SQUARE_MAX, SQUARE_MIN, SQUARE_ROUNDING
from .forces import element_energy, element_forces
from .storage.workspace import HAVE_ELEMENTS
from .trees.aba import aba_kernel
from .trees.kinematics import forward, joint, motion_to_child, pose, velocity
from .trees.newton_euler import newton_euler_kernel

__all__ = [
    "accelerations_kernel",
    "energy_kernel",
    "forward_dynamics",
    "forward_dynamics_as_given",
    "inverse_dynamics",
    "joint_force_elements",
    "onto_sphere",
]


@kernel
def forward_dynamics(w: Any) -> Any:
    """a_q from q, v, tau, f_ext and the model's force elements; returns Σ a_q as a check."""
    if w.switches[HAVE_ELEMENTS]:
        forward(w)
        element_forces(w)
    aba_kernel(w)
    total = 0.0
    for k in range(w.a_q.shape[0]):
        total = total + w.a_q[k]
    return total


@kernel
def onto_sphere(w: Any) -> Any:
    """Bring quaternions in q to norm 1; 0, or NaN if one is so far from it that none was meant."""
    for k in range(w.quaternions.shape[0]):
        at = w.quaternions[k]
        square = 0.0
        for m in range(at, at + 4):
            square = square + w.q[m] * w.q[m]
        if not (square >= SQUARE_MIN and square <= SQUARE_MAX):
            return np.nan
        if abs(square - 1.0) > SQUARE_ROUNDING:
            norm = np.sqrt(square)
            for m in range(at, at + 4):
                w.q[m] = w.q[m] / norm
    return 0.0


@kernel
def forward_dynamics_as_given(w: Any) -> Any:
    """`forward_dynamics` of a position that a user gives: quaternions are checked."""
    if onto_sphere(w) != 0.0:
        return np.nan
    return forward_dynamics(w)


@kernel
def joint_force_elements(w: Any) -> None:
    """Put the forces of the model's elements into spring_force and, for the joints, into u."""
    forward(w)
    for k in range(w.tau.shape[0]):
        w.tau[k] = 0.0
    element_forces(w)
    for k in range(w.tau.shape[0]):
        w.u[k] = w.tau[k]


@kernel
def inverse_dynamics(w: Any) -> Any:
    """tau from q, v, a_q, f_ext, without what the force elements do; returns Σ tau as a check."""
    if w.switches[HAVE_ELEMENTS]:
        joint_force_elements(w)
    newton_euler_kernel(w)
    if w.switches[HAVE_ELEMENTS]:
        for k in range(w.tau.shape[0]):
            w.tau[k] = w.tau[k] - w.u[k]
    total = 0.0
    for k in range(w.tau.shape[0]):
        total = total + w.tau[k]
    return total


@kernel
def accelerations_kernel(w: Any) -> None:
    """Body accelerations from joint accelerations, without gravity."""
    for i in range(w.parent.shape[0]):
        joint(w, i)
        pose(w, i)
        velocity(w, i)
        p = w.parent[i]
        if p < 0:
            for k in range(6):
                w.acc[i, k] = w.c[i, k]
        else:
            motion_to_child(w, i, w.acc[p], w.acc[i])
            for k in range(6):
                w.acc[i, k] = w.acc[i, k] + w.c[i, k]
        for k in range(w.v_at[i], w.v_at[i + 1]):
            for m in range(6):
                w.acc[i, m] = w.acc[i, m] + w.S[k, m] * w.a_q[k]


@kernel
def energy_kernel(w: Any) -> None:
    """Kinetic and potential energy, mass, first moment and momentum of all bodies, in base axes."""
    forward(w)
    out = w.totals
    for k in range(12):
        out[k] = 0.0
    for i in range(w.parent.shape[0]):
        I, v = w.inertia[i], w.vel[i]
        h = w.spare6
        h[0] = I[4] * v[0] + I[5] * v[1] + I[7] * v[2] + (I[2] * v[5] - I[3] * v[4])
        h[1] = I[5] * v[0] + I[6] * v[1] + I[8] * v[2] + (I[3] * v[3] - I[1] * v[5])
        h[2] = I[7] * v[0] + I[8] * v[1] + I[9] * v[2] + (I[1] * v[4] - I[2] * v[3])
        h[3] = I[0] * v[3] - (I[2] * v[2] - I[3] * v[1])
        h[4] = I[0] * v[4] - (I[3] * v[0] - I[1] * v[2])
        h[5] = I[0] * v[5] - (I[1] * v[1] - I[2] * v[0])
        for k in range(6):
            out[0] = out[0] + 0.5 * v[k] * h[k]
        out[2] = out[2] + I[0]
        E, r = w.E_0[i], w.r_0[i]
        x, y, z = 0.0, 0.0, 0.0  # linear momentum in base axes
        for k in range(3):
            moment = E[0, k] * I[1] + E[1, k] * I[2] + E[2, k] * I[3] + I[0] * r[k]
            out[3 + k] = out[3 + k] + moment
            out[1] = out[1] + w.gravity[3 + k] * moment
            out[6 + k] = out[6 + k] + E[0, k] * h[0] + E[1, k] * h[1] + E[2, k] * h[2]
            linear = E[0, k] * h[3] + E[1, k] * h[4] + E[2, k] * h[5]
            out[9 + k] = out[9 + k] + linear
            if k == 0:
                x = linear
            elif k == 1:
                y = linear
            else:
                z = linear
        out[6] = out[6] + r[1] * z - r[2] * y
        out[7] = out[7] + r[2] * x - r[0] * z
        out[8] = out[8] + r[0] * y - r[1] * x
    for k in range(w.v.shape[0]):
        out[0] = out[0] + 0.5 * w.armature[k] * w.v[k] * w.v[k]
    out[1] = out[1] + element_energy(w)
