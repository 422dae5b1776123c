"""Which contacts take part in a step, and their rows.

With H = LᵀDL every row T becomes y = D^(−½) L⁻ᵀ Tᵀ, so that the response of the mechanism between
two points is an inner product, W = Y Yᵀ. L keeps the pattern of the tree: y is zero but for the
variables that one of the two bodies rides on. Loops take their own part out of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import kernel

from ...dynamics.loops.constraints.gaps import closure_kernel
from ...dynamics.trees.crba import crba_kernel
from ...dynamics.trees.factor import lt_solve_kernel, ltdl_kernel
from ...dynamics.trees.kinematics import forward
from ...kernels.vectors import transform_vector_inverse
from ...model.surfaces import GAP_FUNCTION
from ..geometry import contact_rows, one_contact
from .motion import still_moving
from .workspace import BALLS, OVER_PLANE

__all__ = ["approach", "closed_contacts", "rows_of_active"]

#: A loop's row of which less than this is left by those before says nothing new.
DEPENDENT = 1e-10


@kernel
def closed_contacts(w: Any) -> None:
    """Numbers of the contacts whose gaps are closed at q; v is that of the workspace."""
    forward(w)
    for j in range(w.ball_body.shape[0]):
        i = w.ball_body[j]
        if i < 0:
            for k in range(3):
                w.ball_at[j, k] = w.ball_place[j, k]
        else:
            transform_vector_inverse(w.E_0[i], w.ball_place[j], w.ball_at[j])
            for k in range(3):
                w.ball_at[j, k] += w.r_0[i, k]
    found = 0
    for c in range(w.kind.shape[0]):
        if w.look[c] == BALLS:
            a, b = w.ball_at[w.ball_a[c]], w.ball_at[w.ball_b[c]]
            x, y, z = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            reach = w.numbers[c, 3] + w.numbers[c, 7]
            closed = x * x + y * y + z * z <= reach * reach
        elif w.look[c] == OVER_PLANE:
            n, b = w.numbers[c], w.ball_at[w.ball_b[c]]
            height = n[0] * (b[0] - n[3]) + n[1] * (b[1] - n[4]) + n[2] * (b[2] - n[5])
            closed = height <= n[9]
        else:
            one_contact(w, c)
            closed = w.phi[c] <= 0.0
        if closed:
            w.active[found] = c
            found += 1
    w.counts[0] = found


@kernel
def approach(w: Any) -> None:
    """Speeds of the points that take part before the step, but where the impulses act.

    So restitution and impulse speak of the same point, and make no energy.
    """
    still_moving(w)
    forward(w)
    for s in range(w.counts[0]):
        c = w.active[s]
        one_contact(w, c)
        for r in range(3):
            w.before[3 * s + r] = w.speed[3 * c + r]
    for k in range(w.v.shape[0]):
        w.v[k] = w.v_end[k]


@kernel
def rows_of_active(w: Any) -> None:
    """Rows of the contacts that take part, and their speeds without impulses, at the end."""
    forward(w)
    crba_kernel(w)
    ltdl_kernel(w.H, w.parent_v)
    loops = w.loop_rows.shape[0]
    if loops > 0:
        independent_loops(w)
    for s in range(w.counts[0]):
        c = w.active[s]
        one_contact(w, c)
        columns_of(w, c, s)
        for r in range(3):
            for j in range(w.width[s]):
                w.rows_3[r, w.columns[s, j]] = 0.0
        contact_rows(w, c, w.rows_3, 0)
        for r in range(3):
            row = w.rows_3[r]
            whiten(w, s, row)
            for l in range(loops):
                take_out(w.loop_rows[l], row)
            for j in range(w.width[s]):
                w.whitened[3 * s + r, j] = row[w.columns[s, j]]
            w.free_speed[3 * s + r] = w.speed[3 * c + r]
            w.impulse[3 * s + r] = w.kept[3 * c + r]
        w.rough[s] = w.friction[c]
        responses(w, s)
    for r in range(w.kept.shape[0]):
        w.kept[r] = 0.0


@kernel
def independent_loops(w: Any) -> None:
    """Rows of the loops, whitened and orthonormal; those that depend on others are zero."""
    n = w.v.shape[0]
    closure_kernel(w)
    for l in range(w.loop_rows.shape[0]):
        row = w.loop_rows[l]
        for k in range(n):
            row[k] = w.K[w.rows[l], k]
        lt_solve_kernel(w.H, w.parent_v, row, True)
        before = 0.0
        for k in range(n):
            row[k] = row[k] / np.sqrt(w.H[k, k])
            before += row[k] * row[k]
        for _ in range(2):  # twice is enough
            for m in range(l):
                take_out(w.loop_rows[m], row)
        left = 0.0
        for k in range(n):
            left += row[k] * row[k]
        factor = 0.0
        if left > DEPENDENT * DEPENDENT * before:
            factor = 1.0 / np.sqrt(left)
        for k in range(n):
            row[k] = row[k] * factor


@kernel
def take_out(unit: Any, row: Any) -> None:
    """Leave of a row what is orthogonal to a unit row."""
    total = 0.0
    for k in range(row.shape[0]):
        total += unit[k] * row[k]
    if total != 0.0:
        for k in range(row.shape[0]):
            row[k] -= total * unit[k]


@kernel
def columns_of(w: Any, c: int, s: int) -> None:
    """Velocity variables that one of the two bodies rides on, from the last to the first."""
    n, width = w.v.shape[0], 0
    if w.kind[c] == GAP_FUNCTION or w.loop_rows.shape[0] > 0:
        for k in range(n - 1, -1, -1):
            w.columns[s, width] = k
            width += 1
    else:
        a, b = w.body_a[c], w.body_b[c]
        while a >= 0 or b >= 0:
            i = max(a, b)
            for k in range(w.v_at[i + 1] - 1, w.v_at[i] - 1, -1):
                w.columns[s, width] = k
                width += 1
            if a == i:
                a = w.parent[i]
            if b == i:
                b = w.parent[i]
    w.width[s] = width


@kernel
def whiten(w: Any, s: int, row: Any) -> None:
    """row ← D^(−½) L⁻ᵀ row, on its own columns."""
    for j in range(w.width[s]):
        k = w.columns[s, j]
        if row[k] != 0.0:
            i = w.parent_v[k]
            while i >= 0:
                row[i] -= w.H[k, i] * row[k]
                i = w.parent_v[i]
            row[k] = row[k] / np.sqrt(w.H[k, k])


@kernel
def responses(w: Any, s: int) -> None:
    """What an impulse does to its own point: along the normal, and at most along tangents."""
    nn, aa, bb, ab = 0.0, 0.0, 0.0, 0.0
    for j in range(w.width[s]):
        n, a, b = w.whitened[3 * s, j], w.whitened[3 * s + 1, j], w.whitened[3 * s + 2, j]
        nn += n * n
        aa += a * a
        bb += b * b
        ab += a * b
    w.own[s, 0] = nn
    half = 0.5 * (aa - bb)
    w.own[s, 1] = 0.5 * (aa + bb) + np.sqrt(half * half + ab * ab)
