"""Motion between impacts over one step: the midpoint rule, on the group where bodies turn.

With the mean velocity v̄ = (v + v′)/2 and the position q̄ half way,

    v′ = v + h a(q̄, v̄),

by fixed-point iteration. Positions follow on the group: a joint that turns freely is turned by
exp(h ω̄), and the origin of a free body moves with the mean of its velocities before and after, in
the axes of its predecessor. For these joints the products of velocities in a are multiplied by

    κ = tan(h|ω̄|/2) / (h|ω̄|/2),

with which the equation of a free body says exactly that exp(h ω̄) carries its momenta along
[simo1991]_: linear and angular momentum and kinetic energy are kept to rounding, whatever its
inertia, and a step may turn it by a radian. The order is two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import kernel
from integrators.kernels.elementary import cos, sin

from ...dynamics.loops.multipliers import constrained_kernel
from ...dynamics.trees.kinematics import position_rates
from ...dynamics.with_elements import forward_dynamics, onto_sphere
from .workspace import PLANE, RIGID, ROTATION

__all__ = ["begin", "carry", "half_way", "moved", "next_velocity", "still_moving"]

#: Half angle of a step's turn, at most; κ has a pole at π/2.
WIDEST = 1.0


@kernel
def begin(w: Any) -> None:
    """Start from the state in the workspace, with quaternions of norm 1."""
    onto_sphere(w)
    for k in range(w.q.shape[0]):
        w.q_start[k] = w.q[k]
        w.q_middle[k] = w.q[k]
    for k in range(w.v.shape[0]):
        w.v_start[k] = w.v[k]
        w.v_end[k] = w.v[k]


@kernel
def half_way(w: Any) -> None:
    """Position q̄ and mean velocity v̄ for the velocity v′ that was found last."""
    mean_rates(w)
    placed(w, 0.5)
    for k in range(w.q.shape[0]):
        w.q_middle[k] = w.q[k]


@kernel
def moved(w: Any) -> None:
    """Position at the end of the step, and the velocity there."""
    mean_rates(w)
    placed(w, 1.0)
    for k in range(w.v.shape[0]):
        w.v[k] = w.v_end[k]


@kernel
def mean_rates(w: Any) -> None:
    """v̄, and q̇ with it at the middle of the step as it was found last."""
    for k in range(w.q.shape[0]):
        w.q[k] = w.q_middle[k]
    for k in range(w.v.shape[0]):
        w.v[k] = 0.5 * (w.v_start[k] + w.v_end[k])
    position_rates(w)


@kernel
def placed(w: Any, part: float) -> None:
    """Position after a part of the step; q̇ at its middle must be in q_dot."""
    h = w.span[0]
    for i in range(w.parent.shape[0]):
        q0, v0 = w.q_at[i], w.v_at[i]
        if w.group[i] == ROTATION or w.group[i] == RIGID:
            turn(w.q_start, q0, w.v, v0, part * h, w.q, q0)
        if w.group[i] == RIGID:
            turn(w.q_start, q0, w.v, v0, h, w.x, 0)
            back(w.q_start, q0, w.v_start, v0 + 3, w.spare6, 0)
            back(w.x, 0, w.v_end, v0 + 3, w.spare6, 3)
            for k in range(3):
                mean = 0.5 * (w.spare6[k] + w.spare6[3 + k])
                w.q[q0 + 4 + k] = w.q_start[q0 + 4 + k] + part * h * mean
        elif w.group[i] == PLANE:
            first, last = w.q_start[q0], w.q_start[q0] + h * w.v[v0]
            w.q[q0] = w.q_start[q0] + part * h * w.v[v0]
            c, s, x, y = cos(first), sin(first), w.v_start[v0 + 1], w.v_start[v0 + 2]
            c1, s1, x1, y1 = cos(last), sin(last), w.v_end[v0 + 1], w.v_end[v0 + 2]
            along = 0.5 * (c * x - s * y + c1 * x1 - s1 * y1)
            across = 0.5 * (s * x + c * y + s1 * x1 + c1 * y1)
            w.q[q0 + 1] = w.q_start[q0 + 1] + part * h * along
            w.q[q0 + 2] = w.q_start[q0 + 2] + part * h * across
        elif w.group[i] != ROTATION:
            for k in range(q0, w.q_at[i + 1]):
                w.q[k] = w.q_start[k] + part * h * w.q_dot[k]


@kernel
def turn(q: Any, at: int, v: Any, v0: int, h: float, out: Any, to: int) -> None:
    """q ∘ exp(h ω/2)."""
    x, y, z = h * v[v0], h * v[v0 + 1], h * v[v0 + 2]
    angle = np.sqrt(x * x + y * y + z * z)
    half = 0.5 * angle
    c, s = cos(half), 0.5
    if angle > 0.0:
        s = sin(half) / angle
    x, y, z = s * x, s * y, s * z
    a, b, d, e = q[at], q[at + 1], q[at + 2], q[at + 3]
    out[to] = a * c - b * x - d * y - e * z
    out[to + 1] = a * x + b * c + d * z - e * y
    out[to + 2] = a * y - b * z + d * c + e * x
    out[to + 3] = a * z + b * y - d * x + e * c


@kernel
def back(q: Any, at: int, v: Any, v0: int, out: Any, to: int) -> None:
    """Vector of a body's axes in those of its predecessor."""
    a, b, c, d = q[at], q[at + 1], q[at + 2], q[at + 3]
    x, y, z = v[v0], v[v0 + 1], v[v0 + 2]
    # v + 2 a (u × v) + 2 u × (u × v), with the quaternion (a, u)
    tx, ty, tz = 2.0 * (c * z - d * y), 2.0 * (d * x - b * z), 2.0 * (b * y - c * x)
    out[to] = x + a * tx + (c * tz - d * ty)
    out[to + 1] = y + a * ty + (d * tx - b * tz)
    out[to + 2] = z + a * tz + (b * ty - c * tx)


@kernel
def next_velocity(w: Any) -> float:
    """v′ from a(q̄, v̄); returns how much it has changed, in parts of its size."""
    h = w.span[0]
    for i in range(w.parent.shape[0]):
        if w.group[i] != 0 and not widen(w, i, h):
            return np.nan
    for k in range(w.v.shape[0]):
        w.tau[k] = w.given_tau[k]
    if w.rows.shape[0] > 0:
        constrained_kernel(w)
    else:
        forward_dynamics(w)
        for i in range(w.parent.shape[0]):
            if w.parent[i] < 0 and (w.group[i] == RIGID or w.group[i] == PLANE):
                weigh(w, i, h)
    change, size = 0.0, 0.0
    for k in range(w.v.shape[0]):
        found = w.v_start[k] + h * w.a_q[k]
        change = max(change, abs(found - w.v_end[k]))
        size = max(size, abs(found))
        size = max(size, abs(h * w.a_q[k]))
        w.v_end[k] = found
    if not size < np.inf:
        return np.nan
    return change / size if size > 0.0 else 0.0


@kernel
def half_angle(w: Any, i: int, h: float) -> float:
    """h|ω̄|/2 of a joint that turns, with the velocity in the workspace."""
    v0 = w.v_at[i]
    square = w.v[v0] * w.v[v0]
    if w.group[i] != PLANE:
        square += w.v[v0 + 1] * w.v[v0 + 1] + w.v[v0 + 2] * w.v[v0 + 2]
    return 0.5 * h * np.sqrt(square)


@kernel
def widen(w: Any, i: int, h: float) -> bool:
    """Velocities of a joint that turns times √κ; False if it turns too far."""
    half = half_angle(w, i, h)
    if 0.0 < half <= WIDEST:
        factor = np.sqrt(sin(half) / (cos(half) * half))
        for k in range(w.v_at[i], w.v_at[i + 1]):
            w.v[k] = w.v[k] * factor
    return half <= WIDEST


@kernel
def weigh(w: Any, i: int, h: float) -> None:
    """Let gravity act along its own direction during the step, not in axes that turn away from it.

    The mean over the ends of what is at right angles to ω̄ is cos(h|ω̄|/2) times its middle.
    """
    v0 = w.v_at[i]
    first = 1 if w.group[i] == PLANE else 3
    x, y, z = 0.0, 0.0, 0.0  # the axis, in the body
    square = 0.0
    for k in range(v0, v0 + first):
        w.v[k] = 0.5 * (w.v_start[k] + w.v_end[k])
        x += w.S[k, 0] * w.v[k]
        y += w.S[k, 1] * w.v[k]
        z += w.S[k, 2] * w.v[k]
    half = half_angle(w, i, h)
    square = x * x + y * y + z * z
    if square > 0.0:
        g = w.spare6
        for k in range(3):
            g[k] = -(
                w.E[i, k, 0] * w.gravity[3]
                + w.E[i, k, 1] * w.gravity[4]
                + w.E[i, k, 2] * w.gravity[5]
            )
        along = (x * g[0] + y * g[1] + z * g[2]) / square
        g[0], g[1], g[2] = g[0] - along * x, g[1] - along * y, g[2] - along * z
        more = 1.0 / cos(half) - 1.0
        for k in range(v0 + first, w.v_at[i + 1]):
            part = w.S[k, 3] * g[0] + w.S[k, 4] * g[1] + w.S[k, 5] * g[2]
            w.a_q[k] = w.a_q[k] + more * part


@kernel
def still_moving(w: Any) -> None:
    """In v: the velocity before the step, carried along to the position q without impulses.

    Linear velocities of free bodies stay what they are in the axes of their predecessors.
    """
    for i in range(w.parent.shape[0]):
        q0, v0 = w.q_at[i], w.v_at[i]
        for k in range(v0, w.v_at[i + 1]):
            w.v[k] = w.v_start[k]
        if w.group[i] == RIGID:
            back(w.q_start, q0, w.v_start, v0 + 3, w.spare6, 0)
            w.x[0] = w.q[q0]
            for k in range(1, 4):
                w.x[k] = -w.q[q0 + k]
            back(w.x, 0, w.spare6, 0, w.v, v0 + 3)
        elif w.group[i] == PLANE:
            turn_plane(w.q_start[q0] - w.q[q0], w.v, v0 + 1)


@kernel
def turn_plane(angle: float, v: Any, at: int) -> None:
    """Turn the vector at two places."""
    c, s, x, y = cos(angle), sin(angle), v[at], v[at + 1]
    v[at], v[at + 1] = c * x - s * y, s * x + c * y


@kernel
def carry(w: Any) -> None:
    """Velocities with impulses in the axes at the end of the step, which impulses have turned.

    Needs the position without impulses in q. Linear velocities of free bodies stay what they are
    in the axes of their predecessors.
    """
    h = w.span[0]
    for i in range(w.parent.shape[0]):
        q0, v0 = w.q_at[i], w.v_at[i]
        for k in range(v0, w.v_at[i + 1]):
            w.v[k] = 0.5 * (w.v_start[k] + w.v_end[k])
        if w.group[i] == RIGID:
            back(w.q, q0, w.v_end, v0 + 3, w.spare6, 0)
            turn(w.q_start, q0, w.v, v0, h, w.x, 0)
            for k in range(1, 4):
                w.x[k] = -w.x[k]
            back(w.x, 0, w.spare6, 0, w.v_end, v0 + 3)
        elif w.group[i] == PLANE:
            turn_plane(w.q[q0] - w.q_start[q0] - h * w.v[v0], w.v_end, v0 + 1)
