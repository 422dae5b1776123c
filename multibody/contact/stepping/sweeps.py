"""Impulses at many points by sweeps, with conjugate directions between them.

A sweep goes over the points, each in turn with the impulses of all others as they are,

    r_n ← max(0, r_n − u_n/W_nn),
    r_t ← the point of the disc |r_t| ≤ μ r_n that is nearest to r_t − u_t/W_tt,

where u follows every change at once. What a sweep leaves as it is fulfils Coulomb's law exactly.
Between sweeps the impulses go on along the way they have come, as conjugate gradients would
[silcowitz2010]_: of a heap they need a tenth of the sweeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import inline_kernel, kernel

from ...dynamics.trees.factor import l_solve_kernel

__all__ = ["ACCURACY", "FEW", "OF_MANY", "impulses_by_sweeps", "velocities_after"]

#: At most so many. In a heap some arches are nearly singular, and would take thousands.
SWEEPS = 100

#: What the law may lack, in parts of the largest speed without impulses: at few points, and at
#: more than that.
ACCURACY, FEW, OF_MANY = 1e-12, 30, 1e-6


@kernel
def impulses_by_sweeps(w: Any) -> float:
    """impulse, from the one that is there; returns what the law lacks."""
    n, best = w.counts[0], np.inf
    size = 0.0
    for r in range(3 * n):
        size = max(size, abs(w.free_speed[r]))
        w.search[r] = 0.0
    sum_impulses(w)
    if size == 0.0:
        size = 1.0
    accuracy = ACCURACY if n <= FEW else OF_MANY
    before = 0.0
    for count in range(SWEEPS):
        w.counts[1] = count + 1
        for r in range(3 * n):
            w.last_impulse[r] = w.impulse[r]
        change = sweep(w)
        best = change / size
        if best <= accuracy or not best < np.inf:
            break
        now = 0.0
        for r in range(3 * n):
            step = w.impulse[r] - w.last_impulse[r]
            now += step * step
        if count > 0 and now < before:
            along_the_way(w, now / before)
        else:
            for r in range(3 * n):
                w.search[r] = w.impulse[r] - w.last_impulse[r]
        before = now
    return best


@kernel
def along_the_way(w: Any, beta: float) -> None:
    """Go on by β times the direction of the search, and into the cones again."""
    for s in range(w.counts[0]):
        at = 3 * s
        for r in range(at, at + 3):
            step = w.impulse[r] - w.last_impulse[r]
            w.impulse[r] += beta * w.search[r]
            w.search[r] = beta * w.search[r] + step
        w.impulse[at] = max(w.impulse[at], 0.0)
        into_cone(w, s)
    sum_impulses(w)


@inline_kernel
def into_cone(w: Any, s: int) -> None:
    """Shorten friction to what the normal impulse allows."""
    at = 3 * s
    x, y = w.impulse[at + 1], w.impulse[at + 2]
    limit, length = w.rough[s] * w.impulse[at], np.sqrt(x * x + y * y)
    if length > limit:
        w.impulse[at + 1] = x * limit / length
        w.impulse[at + 2] = y * limit / length


@kernel
def sum_impulses(w: Any) -> None:
    """summed = Yᵀ r."""
    for k in range(w.v.shape[0]):
        w.summed[k] = 0.0
    for s in range(w.counts[0]):
        for r in range(3 * s, 3 * s + 3):
            if w.impulse[r] != 0.0:
                add_row(w, s, r, w.impulse[r])


@kernel
def add_row(w: Any, s: int, r: int, factor: float) -> None:
    """Add a multiple of a row to `summed`."""
    for j in range(w.width[s]):
        w.summed[w.columns[s, j]] += factor * w.whitened[r, j]


@kernel
def sweep(w: Any) -> float:
    """One sweep; returns the largest change, in units of speed."""
    largest = 0.0
    for s in range(w.counts[0]):
        largest = max(largest, press(w, s))
        if w.rough[s] > 0.0 and w.own[s, 1] > 0.0 and touched(w, s):
            largest = max(largest, rub(w, s))
        if largest != largest:
            return np.nan
    return largest


@inline_kernel
def touched(w: Any, s: int) -> bool:
    """Whether a point has an impulse."""
    at = 3 * s
    return w.impulse[at] > 0.0 or w.impulse[at + 1] != 0.0 or w.impulse[at + 2] != 0.0


@inline_kernel
def press(w: Any, s: int) -> float:
    """Normal impulse of one point; returns its change, in units of speed."""
    at, own = 3 * s, w.own[s, 0]
    if own == 0.0:
        return 0.0
    speed = w.free_speed[at]
    for j in range(w.width[s]):
        speed += w.whitened[at, j] * w.summed[w.columns[s, j]]
    old = w.impulse[at]
    w.impulse[at] = max(0.0, old - speed / own)
    change = w.impulse[at] - old
    if change != 0.0:
        for j in range(w.width[s]):
            w.summed[w.columns[s, j]] += change * w.whitened[at, j]
    return abs(change) * own


@inline_kernel
def rub(w: Any, s: int) -> float:
    """Friction of one point; returns its change, in units of speed."""
    at, own = 3 * s, w.own[s, 1]
    u, v = w.free_speed[at + 1], w.free_speed[at + 2]
    for j in range(w.width[s]):
        total = w.summed[w.columns[s, j]]
        u += w.whitened[at + 1, j] * total
        v += w.whitened[at + 2, j] * total
    x, y = w.impulse[at + 1], w.impulse[at + 2]
    w.impulse[at + 1] = x - u / own
    w.impulse[at + 2] = y - v / own
    into_cone(w, s)
    x, y = w.impulse[at + 1] - x, w.impulse[at + 2] - y
    if x != 0.0 or y != 0.0:
        for j in range(w.width[s]):
            w.summed[w.columns[s, j]] += x * w.whitened[at + 1, j] + y * w.whitened[at + 2, j]
    return max(abs(x), abs(y)) * own


@kernel
def velocities_after(w: Any) -> None:
    """v_end with the impulses: v_end + L⁻¹ D^(−½) Yᵀ r."""
    sum_impulses(w)
    for s in range(w.counts[0]):
        for r in range(3):
            w.kept[3 * w.active[s] + r] = w.impulse[3 * s + r]
    for k in range(w.v.shape[0]):
        w.a_q[k] = w.summed[k] / np.sqrt(w.H[k, k])
    l_solve_kernel(w.H, w.parent_v, w.a_q, True)
    for k in range(w.v.shape[0]):
        w.v_end[k] += w.a_q[k]
