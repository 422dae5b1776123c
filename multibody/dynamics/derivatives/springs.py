"""Derivatives of springs between points (``forces``), added to those of inverse dynamics.

With x from point a to point b the spring pulls at a with φ = pull(x, ẋ) x and at b with −φ:

    pull = k (1 − L/|x|) + c (x·ẋ)/x².

A displacement ψ of the bodies above an end moves its point by ψ[P] = ψ_lin + ψ_ang × P and turns
its velocity u: δu = ψ_ang × u + ξ[P].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import inline_kernel, kernel

from ...kernels.vectors import transform_vector_inverse
from ..forces import SPRING_DAMPING, SPRING_REST, SPRING_STIFFNESS

__all__ = ["spring_slopes"]

# Places in `spring`: x, the pull, its derivatives by x and by ẋ; then what changes with a column:
# displacement and velocity of the end, and the pull φ.
X, PULL, BY_X, BY_RATE, MOVED, RATE, CHANGE = 0, 3, 4, 7, 10, 13, 16


@kernel
def spring_slopes(w: Any) -> None:
    """Add the derivatives of all springs between points to `slope`; needs arms and motions."""
    for s in range(w.spring_bodies.shape[0]):
        a, b = w.spring_bodies[s, 0], w.spring_bodies[s, 1]
        end_state(w, a, w.springs[s, 0:3], w.point_a)
        end_state(w, b, w.springs[s, 3:6], w.point_b)
        pull_slopes(w, s)
        end_columns(w, a, w.point_a, -1.0, a, b)
        end_columns(w, b, w.point_b, 1.0, a, b)


@kernel
def end_state(w: Any, i: int, point: Any, out: Any) -> None:
    """Position, about the reference point of the tree, and velocity of a point of body i."""
    if i < 0:
        for m in range(3):
            out[m] = point[m]
            out[3 + m] = 0.0
    else:
        transform_vector_inverse(w.E_0[i], point, out)
        for m in range(3):
            out[m] = out[m] + w.arm[i, m]
        at_point(w.vel[i], out, out[3:6])


@inline_kernel
def at_point(x: Any, P: Any, out: Any) -> None:
    """x[P]: velocity of the point P in a motion x."""
    out[0] = x[3] + (x[1] * P[2] - x[2] * P[1])
    out[1] = x[4] + (x[2] * P[0] - x[0] * P[2])
    out[2] = x[5] + (x[0] * P[1] - x[1] * P[0])


@kernel
def pull_slopes(w: Any, s: int) -> None:
    """x, pull, and its derivatives."""
    out, numbers = w.spring, w.springs[s]
    a, b = w.spring_bodies[s, 0], w.spring_bodies[s, 1]
    for m in range(3):
        out[X + m] = w.point_b[m] - w.point_a[m]
        if a >= 0 and b >= 0:
            if w.root[a] != w.root[b]:
                out[X + m] = out[X + m] + (w.r_0[w.root[b], m] - w.r_0[w.root[a], m])
        elif a >= 0:
            out[X + m] = out[X + m] - w.r_0[w.root[a], m]
        else:
            out[X + m] = out[X + m] + w.r_0[w.root[b], m]
    x, y, z = out[X], out[X + 1], out[X + 2]
    square = x * x + y * y + z * z
    pull = 0.0 * square + numbers[SPRING_STIFFNESS]
    by_x = 0.0 * square  # ∂pull/∂x = by_x x + by_rate ẋ
    by_rate = 0.0 * square
    if numbers[SPRING_REST] != 0.0:
        tight = numbers[SPRING_STIFFNESS] * numbers[SPRING_REST] / np.sqrt(square)
        pull = pull - tight
        by_x = by_x + tight / square
    if numbers[SPRING_DAMPING] != 0.0:
        by_rate = numbers[SPRING_DAMPING] / square
        along = (
            x * (w.point_b[3] - w.point_a[3])
            + y * (w.point_b[4] - w.point_a[4])
            + z * (w.point_b[5] - w.point_a[5])
        )
        pull = pull + by_rate * along
        by_x = by_x - 2.0 * by_rate * along / square
    out[PULL] = pull
    for m in range(3):
        out[BY_X + m] = by_x * out[X + m] + by_rate * (w.point_b[3 + m] - w.point_a[3 + m])
        out[BY_RATE + m] = by_rate * out[X + m]


@kernel
def end_columns(w: Any, i: int, end: Any, sign: float, a: int, b: int) -> None:
    """Columns of all directions and velocities that move the end on body i."""
    out, nd = w.spring, w.psi.shape[0]
    j = i
    while j >= 0:
        for d in range(w.d_at[j], w.d_at[j + 1]):
            psi = w.psi[d]
            at_point(psi, end, out[MOVED:RATE])
            at_point(w.xi[d], end, out[RATE:CHANGE])
            out[RATE] = out[RATE] + (psi[1] * end[5] - psi[2] * end[4])
            out[RATE + 1] = out[RATE + 1] + (psi[2] * end[3] - psi[0] * end[5])
            out[RATE + 2] = out[RATE + 2] + (psi[0] * end[4] - psi[1] * end[3])
            one_column(w, i, d, sign, a, b)
        for k in range(w.v_at[j], w.v_at[j + 1]):
            for m in range(3):
                out[MOVED + m] = 0.0 * w.J[k, m]
            at_point(w.J[k], end, out[RATE:CHANGE])
            one_column(w, i, nd + k, sign, a, b)
        j = w.parent[j]


@kernel
def one_column(w: Any, i: int, column: int, sign: float, a: int, b: int) -> None:
    """Subtract from a column what the change of φ does at both ends, and the moved point at one."""
    out = w.spring
    stretch = 0.0 * out[PULL]
    for m in range(3):
        stretch = stretch + out[BY_X + m] * out[MOVED + m] + out[BY_RATE + m] * out[RATE + m]
    for m in range(3):
        out[CHANGE + m] = sign * (out[PULL] * out[MOVED + m] + stretch * out[X + m])
    add_rows(w, a, w.point_a, -1.0, column)
    add_rows(w, b, w.point_b, 1.0, column)
    # The force on the end, −sign φ, acts at a point that has moved.
    p, moved, x = -sign * out[PULL], out[MOVED:RATE], out[X:PULL]
    c0 = p * (moved[1] * x[2] - moved[2] * x[1])
    c1 = p * (moved[2] * x[0] - moved[0] * x[2])
    c2 = p * (moved[0] * x[1] - moved[1] * x[0])
    j = i
    while j >= 0:
        for k in range(w.v_at[j], w.v_at[j + 1]):
            J = w.J[k]
            w.slope[k, column] = w.slope[k, column] - (J[0] * c0 + J[1] * c1 + J[2] * c2)
        j = w.parent[j]


@kernel
def add_rows(w: Any, i: int, end: Any, sign: float, column: int) -> None:
    """Add sign·S_k[P]·δφ to the rows of all joints that carry an end."""
    change = w.spring[CHANGE : CHANGE + 3]
    j = i
    while j >= 0:
        for k in range(w.v_at[j], w.v_at[j + 1]):
            at_point(w.J[k], end, w.turned)
            total = w.turned[0] * change[0] + w.turned[1] * change[1] + w.turned[2] * change[2]
            w.slope[k, column] = w.slope[k, column] + sign * total
        j = w.parent[j]
