"""Force elements of a model: joint springs, dampers and stops, springs between points.

All are optional. `element_forces` adds their effect to the joint forces that the user gives, and
sets `spring_force`, which acts besides external forces; `element_energy` is what the springs store.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import kernel

from ..kernels.vectors import transform_vector_inverse
from .trees.kinematics import way_between

__all__ = ["element_energy", "element_forces"]

# Numbers of a joint element and of a point spring in the workspace.
STIFFNESS, REST, DAMPING, LOWER, UPPER, STOP_STIFFNESS, STOP_DAMPING = range(7)
SPRING_STIFFNESS, SPRING_DAMPING, SPRING_REST = 6, 7, 8


@kernel
def element_forces(w: Any) -> None:
    """Add the forces of all elements to tau and spring_force. Needs poses and velocities.

    A stop pushes back with stiffness × depth + damping × speed of approach while the joint is
    beyond it, and never pulls: where that is negative, the joint leaves faster than the stop
    follows.
    """
    if w.elements.shape[0] > 0:
        for i in range(w.parent.shape[0]):
            q0, v0 = w.q_at[i], w.v_at[i]
            for j in range(w.v_at[i + 1] - v0):
                k = v0 + j
                e = w.elements[k]
                total = w.tau[k] - e[DAMPING] * w.v[k]
                if e[STIFFNESS] != 0.0:
                    total = total - e[STIFFNESS] * (w.q[q0 + j] - e[REST])
                if e[STOP_STIFFNESS] != 0.0 or e[STOP_DAMPING] != 0.0:
                    low = np.maximum(e[LOWER] - w.q[q0 + j], 0.0)
                    high = np.maximum(w.q[q0 + j] - e[UPPER], 0.0)
                    damper = e[STOP_DAMPING] * w.v[k]
                    up = np.maximum(e[STOP_STIFFNESS] * low - damper, 0.0)
                    down = np.maximum(e[STOP_STIFFNESS] * high + damper, 0.0)
                    total = total + (np.sign(low) * up - np.sign(high) * down)
                w.tau[k] = total
    if w.spring_bodies.shape[0] > 0:
        for i in range(w.parent.shape[0]):
            for k in range(6):
                w.spring_force[i, k] = 0.0
    for s in range(w.spring_bodies.shape[0]):
        point_spring(w, s)


@kernel
def point_spring(w: Any, s: int) -> None:
    """Add the forces of one spring between points to `spring_force`."""
    a, b = w.spring_bodies[s, 0], w.spring_bodies[s, 1]
    numbers = w.springs[s]
    way_between(w, a, numbers[0:3], b, numbers[3:6])
    x, y, z = w.gap[0], w.gap[1], w.gap[2]
    point_state(w, a, numbers[0:3], w.point_a)
    point_state(w, b, numbers[3:6], w.point_b)
    # The pull for each metre between the points; a spring without rest length needs no direction.
    square = x * x + y * y + z * z
    pull = 0.0 * square + numbers[SPRING_STIFFNESS]
    if numbers[SPRING_REST] != 0.0:
        pull = pull - numbers[SPRING_STIFFNESS] * numbers[SPRING_REST] / np.sqrt(square)
    if numbers[SPRING_DAMPING] != 0.0:
        along = (
            x * (w.point_b[3] - w.point_a[3])
            + y * (w.point_b[4] - w.point_a[4])
            + z * (w.point_b[5] - w.point_a[5])
        )
        pull = pull + numbers[SPRING_DAMPING] * along / square
    add_pull(w, a, w.point_a, x * pull, y * pull, z * pull)
    add_pull(w, b, w.point_b, -x * pull, -y * pull, -z * pull)


@kernel
def point_state(w: Any, i: int, point: Any, out: Any) -> None:
    """Arm from the origin of body i to a point of it, and its velocity, in base axes."""
    if i < 0:
        for k in range(3):
            out[k] = point[k]
            out[3 + k] = 0.0
    else:
        omega, linear = w.vel[i, 0:3], w.vel[i, 3:6]
        w.other6[0] = linear[0] + omega[1] * point[2] - omega[2] * point[1]
        w.other6[1] = linear[1] + omega[2] * point[0] - omega[0] * point[2]
        w.other6[2] = linear[2] + omega[0] * point[1] - omega[1] * point[0]
        transform_vector_inverse(w.E_0[i], point, out[0:3])
        transform_vector_inverse(w.E_0[i], w.other6, out[3:6])


@kernel
def add_pull(w: Any, i: int, arm: Any, x: Any, y: Any, z: Any) -> None:
    """Add a force at the end of an arm from the origin of body i, all in base axes."""
    if i >= 0:
        f = w.spring_force[i]
        f[0] = f[0] + arm[1] * z - arm[2] * y
        f[1] = f[1] + arm[2] * x - arm[0] * z
        f[2] = f[2] + arm[0] * y - arm[1] * x
        f[3] = f[3] + x
        f[4] = f[4] + y
        f[5] = f[5] + z


@kernel
def element_energy(w: Any) -> Any:
    """Energy stored in joint springs, stops and point springs. Needs poses."""
    total = 0.0
    if w.elements.shape[0] > 0:
        for i in range(w.parent.shape[0]):
            q0, v0 = w.q_at[i], w.v_at[i]
            for j in range(w.v_at[i + 1] - v0):
                e = w.elements[v0 + j]
                if e[STIFFNESS] != 0.0:
                    stretch = w.q[q0 + j] - e[REST]
                    total = total + 0.5 * e[STIFFNESS] * stretch * stretch
                if e[STOP_STIFFNESS] != 0.0:
                    low = np.maximum(e[LOWER] - w.q[q0 + j], 0.0)
                    high = np.maximum(w.q[q0 + j] - e[UPPER], 0.0)
                    total = total + 0.5 * e[STOP_STIFFNESS] * (low * low + high * high)
    for s in range(w.spring_bodies.shape[0]):
        numbers = w.springs[s]
        way_between(w, w.spring_bodies[s, 0], numbers[0:3], w.spring_bodies[s, 1], numbers[3:6])
        x, y, z = w.gap[0], w.gap[1], w.gap[2]
        stretch = np.sqrt(x * x + y * y + z * z) - numbers[SPRING_REST]
        total = total + 0.5 * numbers[SPRING_STIFFNESS] * stretch * stretch
    return total
