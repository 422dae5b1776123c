"""Resets in lanes: what an event with a reset does to the state, and how the run goes on.

``hooks.happen`` has moved a lane to the event, the state there is the one before the jump. Plain
jumps are done here: one event at its instant, which leaves its surface on the side that it came
from (a bounce) or is carried off it on that side, and carries no other event across zero.
All else is what ``runs.instants`` is for: such a lane ends with the outcome AGAIN, and ``solve``
does its run.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...kernels.pointers import call_lanes
from ...stepping.control import reach, shortest_step
from .dense import next_output
from .newton import newton_forgets
from .rows import (
    AGAIN,
    INSIDE_BEFORE,
    INTEGRAL,
    LANES,
    LARGEST,
    LEAVING,
    MAX_STEP,
    MIN_STEP,
    NEXT_OUTPUT,
    OUTCOME,
    PLACES,
    RUN,
    T_BASE,
    T_END,
    H,
    T,
)

__all__ = ["jump"]

ON_SURFACE = 1e-9  # part of an event function's size in a step that counts as zero after a jump
CLOSE = 1e-6  # resets closer together than this part of the time elapsed may be going to pile up
FINISHED = 1.0
MEMORY = PLACES["MEMORY"]


@kernel
def jump(w):
    """Let the resets of all lanes that have come to one happen."""
    waiting = False
    for l in range(LANES):
        waiting = waiting or w.jump[l] >= 0
    if not waiting:
        return
    n = w.y.shape[0]
    call_lanes(w.resets, w.lane[T], w.y, w.p, w.after)
    call_lanes(w.events, w.lane[T], w.y, w.p, w.g)
    for l in range(LANES):
        for m in range(n):
            w.x[m, l] = w.after[w.jump[l] * n + m, l] if w.jump[l] >= 0 else w.y[m, l]
        for e in range(w.g.shape[0]):
            w.zero[e, l] = w.g[e, l]  # before the jump
    call_lanes(w.events, w.lane[T], w.x, w.p, w.g)
    call_lanes(w.rates, w.lane[T], w.x, w.p, w.after)
    for l in range(LANES):
        if w.jump[l] < 0:
            continue
        if not is_plain(w, l):
            w.lane[OUTCOME, l] = AGAIN
            continue
        for m in range(n):
            w.y[m, l] = w.x[m, l]
        go_on(w, l)
    call_lanes(w.f, w.lane[T], w.y, w.p, w.dx)
    if w.kept_kind.shape[0] > 0:
        call_lanes(w.kept, w.lane[T], w.y, w.p, w.value)
    for l in range(LANES):
        if w.jump[l] >= 0 and w.lane[OUTCOME, l] != AGAIN:
            for m in range(n):
                w.f0[m, l] = w.dx[m, l]
            keep_other_side(w, l)
        w.jump[l] = -1


@kernel
def is_plain(w, l):
    """Whether a jump is one that lanes deal with; and the values of events after it."""
    n = w.y.shape[0]
    mine = w.jump[l]
    for m in range(n):
        if not np.isfinite(w.x[m, l]):
            return False
    way = 1.0 if w.old[1, l] > 0.0 else -1.0
    for e in range(w.g.shape[0]):
        value = w.g[e, l]
        w.g_last[e, l] = value
        if e != mine:
            if not value * w.zero[e, l] > 0.0:
                return False
            continue
        size = 0.0
        for i in range(w.g_samples.shape[0]):
            size = max(size, abs(w.g_samples[i, e, l]))
        side = 1.0 if w.g_samples[0, e, l] > 0.0 else -1.0
        if abs(value) > ON_SURFACE * size:
            if value * side < 0.0:
                return False
        else:
            leaves = w.after[e, l] * way * side * abs(w.old[1, l])
            if not leaves > ON_SURFACE * size:
                return False
            w.g_last[e, l] = side * LEAVING
    since = abs(w.lane[T, l] - w.reset_time[l])
    return not since < CLOSE * abs(w.lane[T, l] - w.lane[T_BASE, l])


@kernel
def go_on(w, l):
    """Start a lane afresh after a jump, as ``Engine.restart``, with the step that came next."""
    t = w.lane[T, l]
    step = w.lane[H, l]
    since = abs(t - w.reset_time[l])  # NaN before the first
    if since > 0.0:
        step = min(step, since)  # a new flight may be as short as the last
    w.reset_time[l] = t
    proposed = max(min(step, w.lane[MAX_STEP, l]), shortest_step(w.lane[MIN_STEP, l], t))
    remaining = w.lane[T_END, l] - t
    w.lane[H, l] = step
    w.lane[INSIDE_BEFORE, l] = -1.0
    if abs(remaining) <= reach(proposed, w.lane[MAX_STEP, l]):
        w.h[l] = remaining
    else:
        w.h[l] = proposed if remaining > 0.0 else -proposed
    if w.lane[OUTCOME, l] == FINISHED and remaining != 0.0:
        w.lane[OUTCOME, l] = 0.0
    run, k = w.run[RUN, l], w.run[NEXT_OUTPUT, l]
    while k > 0 and (w.t_eval[k - 1] - t) * w.old[1, l] > 0.0:
        k -= 1
    next_output(w, l, k)
    if k > 0 and w.t_eval[k - 1] == t:
        for m in range(w.y.shape[0]):
            w.y_eval[run, m, k - 1] = w.y[m, l]
    if w.implicit == 1:
        first = w.memory - MEMORY - w.stages * w.y.shape[0]
        for j in range(w.stages * w.y.shape[0]):
            w.newton[first + j, l] = 0.0  # increments that the next step would start from
        newton_forgets(w, l)


@kernel
def keep_other_side(w, l):
    """Extreme values count on both sides of a jump; integrals go on from there."""
    run = w.run[RUN, l]
    for k in range(w.kept_kind.shape[0]):
        value = w.value[k, l]
        w.seen[0, k, l] = value
        if w.kept_kind[k] == INTEGRAL:
            continue
        sign = 1.0 if w.kept_kind[k] == LARGEST else -1.0
        if sign * value > sign * w.kept_value[run, k]:
            w.kept_value[run, k] = value
            w.kept_time[run, k] = w.lane[T, l]
