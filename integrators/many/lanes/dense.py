"""Dense output of the steps of all lanes, and what is read off it at output times.

The polynomial of a step is y(t + θh) = y + Σⱼ Q[j] θʲ⁺¹, in each lane its own. For explicit methods
one piece of machine code finds it from the stages; implicit ones solve for further stages first.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...kernels.pointers import call_lanes
from ...methods.runge_kutta.implicit.extra_stages import MOST_ITERATIONS
from ...stepping.control import EPS
from .rows import (
    H_FIXED,
    IDLE,
    LANES,
    NEXT_OUTPUT,
    NSTEPS,
    RUN,
    T_BASE,
    T_END,
    T,
)

__all__ = ["end_of_step", "outputs", "polynomials_of_step"]


@kernel
def end_of_step(w, l):
    """Where the step of a lane leads to."""
    h = w.h[l]
    t = w.lane[T, l]
    if w.fixed == 1:
        end, step = w.lane[T_END, l], w.lane[H_FIXED, l]
        ahead = w.lane[T_BASE, l] + (w.lane[NSTEPS, l] + 1.0) * step
        rounding = 8 * EPS * max(abs(t), abs(end))
        is_last = (end - ahead) * np.sign(step) <= max(rounding, 1e-9 * abs(step))
        return end if is_last else ahead
    return w.lane[T_END, l] if h == w.lane[T_END, l] - t else t + h


@kernel
def next_output(w, l, k):
    """Let the k-th output time be the next one of a lane."""
    w.run[NEXT_OUTPUT, l] = k
    w.next_time[l] = w.t_eval[k] if k < w.t_eval.shape[0] else np.nan  # no step ends behind NaN


@kernel
def outputs(w, ready):
    """Values at the output times inside the steps that will be accepted.

    `ready` says whether the polynomials have been found.
    """
    n = w.y.shape[0]
    ends, due = w.first[1], w.first[2]
    call_lanes(w.due, w.lane[T], w.results, w.block, w.first[1:])
    count = 0.0
    for l in range(LANES):
        count += due[l]
    if count == 0.0:
        return
    if not ready:
        polynomials_of_step(w)
    found, x, stride = w.all_outputs, w.x, w.t_eval.shape[0]
    run, next_time, h = w.run, w.next_time, w.h
    while count > 0.0:
        call_lanes(w.values, w.lane[T], w.Q, w.block, x)
        count = 0.0
        for l in range(LANES):
            if due[l] == 1.0:
                k = run[NEXT_OUTPUT, l]
                place = run[RUN, l] * n * stride + k
                for m in range(n):
                    found[place + m * stride] = x[m, l]
                if next_time[l] == ends[l]:
                    for m in range(n):
                        found[place + m * stride] = w.y_new[m, l]
                next_output(w, l, k + 1)
                if (ends[l] - next_time[l]) * h[l] >= 0.0:
                    count += 1.0
                else:
                    due[l] = 0.0


@kernel
def polynomials_of_step(w):
    """Q of all lanes, from the step just attempted."""
    if w.implicit == 1:
        further_stages(w)
        call_lanes(w.dense, w.lane[T], w.step_rows, w.block, w.dense_results)
    else:
        call_lanes(w.dense, w.lane[T], w.results, w.block, w.dense_results)
    for l in range(LANES):
        if not np.isfinite(w.dense_results[w.Q.shape[0], l]):
            straighten(w, l)


@kernel
def straighten(w, l):
    """Let one lane's polynomial be a straight line, if it is not finite: as ``stepping.dense``."""
    n = w.y.shape[0]
    finite = True
    for j in range(w.Q.shape[0]):
        finite = finite and np.isfinite(w.Q[j, l])
    if finite:
        return
    for j in range(w.Q.shape[0]):
        w.Q[j, l] = w.y_new[j, l] - w.y[j, l] if j < n else 0.0


@kernel
def further_stages(w):
    """Rows of dense output of an implicit method: stages, what the step gained, further stages."""
    n = w.y.shape[0]
    s = w.stages
    rows = w.step_rows  # a number for each lane: 1 if a further stage was not found; then the rows
    stage = w.stage  # see ``newton_code``
    for j in range(s * n):
        for l in range(LANES):
            rows[1 + j, l] = w.newton[j, l]
    for m in range(n):
        for l in range(LANES):
            rows[1 + s * n + m, l] = w.y_new[m, l] - w.y[m, l]
            stage[2 * n + 4 + n * n + m, l] = w.y_new[m, l]
    for j in range(n * n):
        for l in range(LANES):
            stage[2 * n + 4 + j, l] = w.newton[w.dense_inverse + j, l]
    for l in range(LANES):
        rows[0, l] = 0.0
    for i in range(w.extra_c.shape[0]):
        known = s + 1 + i
        combine_rows(w.extra_start[i], known, rows, stage, 0, n)
        combine_rows(w.extra_A[i], known, rows, stage, n + 4, n)
        for m in range(n):
            for l in range(LANES):
                stage[n + 4 + m, l] += w.y[m, l]
        for l in range(LANES):
            w.first[0, l] = w.lane[T, l] + w.extra_c[i] * w.h[l]
            stage[n, l] = 1.0 if w.lane[IDLE, l] == 0.0 and rows[0, l] == 0.0 else 0.0
            stage[n + 1, l] = 0.0
            stage[n + 2, l] = 0.0
            stage[n + 3, l] = min(1.0, w.newton[w.memory, l])
        for _ in range(MOST_ITERATIONS):
            call_lanes(w.further, w.first[0], stage, w.block, w.stage_found)
            going = False
            for l in range(LANES):
                going = going or stage[n, l] == 1.0
            if not going:
                break
        for l in range(LANES):
            if stage[n, l] != 0.0:
                rows[0, l] = 1.0
        for m in range(n):
            for l in range(LANES):
                rows[1 + known * n + m, l] = stage[m, l]


@kernel
def combine_rows(weights, count, rows, out, first, n):
    """out[first + m] = Σⱼ weights[j]·rows[1 + j·n + m] over the first rows, in each lane."""
    for m in range(n):
        for l in range(LANES):
            out[first + m, l] = 0.0
    for j in range(count):
        a = weights[j]
        if a != 0.0:
            for m in range(n):
                for l in range(LANES):
                    out[first + m, l] += a * rows[1 + j * n + m, l]
