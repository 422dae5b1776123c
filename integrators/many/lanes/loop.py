"""Many runs side by side: Runge–Kutta steps in the lanes of SIMD registers.

Each lane is one run with its own time, step size and error control. Pieces of machine code treat
all lanes at once: an explicit step is one of them (``fused``), an implicit one several
(``newton``), and one judges it (``judge``). What is left for the loop here is to give a lane whose
run has ended the next one from the queue, and to end when it is told to. Arrays have the lane
as last axis.

The arithmetic of a step and the rules of step-size control are those of the single run: the step
is traced from ``explicit``, or follows ``implicit.step``; the judge and the first step use
``stepping.control``.
"""

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...kernels.pointers import call_lanes
from ...stepping.control import EPS, first_length, reach, shortest_step, trial_length
from ...stepping.state import Status
from .dense import end_of_step, next_output, outputs, polynomials_of_step
from .hooks import after_step, at_start
from .jumps import jump
from .newton import implicit_attempt, newton_forgets
from .rows import (
    H_FIXED,
    H_LAST,
    IDLE,
    INSIDE_BEFORE,
    INSIDE_STRICT,
    INSIDE_WEIGHT,
    LANES,
    LOG_BEFORE,
    LOG_LAST,
    MAX_STEP,
    MIN_STEP,
    NEWTON_TOLERANCE,
    NEXT_OUTPUT,
    NREJECTED,
    NSTEPS,
    OUTCOME,
    REJECTED,
    RUN,
    STARTING,
    T_BASE,
    T_END,
    H,
    T,
)

INTERRUPTED = float(Status.INTERRUPTED)


__all__ = ["run_lanes"]


@kernel
def run_lanes(w, first, last):
    """Integrate the runs first … last − 1; results go to the rows of y_end, t_end, status, …

    When STOP is set, runs under way are stored as they are, and those in the queue left alone.
    """
    queue = first
    busy = 0
    for l in range(LANES):
        if queue < last:
            load(w, l, queue)
            queue += 1
            busy += 1
        else:
            load(w, l, first)  # something to compute with
            rest(w, l)
    if busy > 0:
        begin(w)
    while busy > 0:
        if w.stop != 0:
            for l in range(LANES):
                if w.lane[IDLE, l] == 0.0:
                    w.lane[OUTCOME, l] = INTERRUPTED
                    store(w, l)
            return
        if w.implicit == 1:
            implicit_attempt(w)
        else:
            call_lanes(w.fused, w.lane[T], w.y, w.block, w.results)
        if w.looks_inside == 1:
            polynomials_of_step(w)
        if w.t_eval.shape[0] > 0:
            outputs(w, w.looks_inside == 1)
        if w.tasks == 1:
            remember(w)
        if w.fixed == 1:
            for l in range(LANES):
                w.first[2, l] = end_of_step(w, l)
        call_lanes(w.judge, w.lane[T], w.results, w.block, w.judged)
        if w.fixed == 1:
            take_times(w)
        if w.tasks == 1:
            after_step(w)
        if w.trail_t.shape[0] > 0:
            keep_steps(w)
        if w.jumps == 1:
            jump(w)
        ended = 0.0
        for l in range(LANES):
            ended += abs(w.lane[OUTCOME, l])
        if ended == 0.0:
            continue
        loaded = False
        for l in range(LANES):
            if w.lane[OUTCOME, l] == 0.0:
                continue
            store(w, l)
            if queue < last:
                load(w, l, queue)
                queue += 1
                loaded = True
            else:
                rest(w, l)
                busy -= 1
        if loaded:
            begin(w)


@kernel
def begin(w):
    """Start the lanes that have been loaded."""
    if w.tasks == 1:
        at_start(w)
    start(w)


@kernel
def take_times(w):
    """Enter times of fixed steps as ``loop.fixed_step`` rounds them; the judge rounds less."""
    for l in range(LANES):
        if w.lane[IDLE, l] == 0.0 and w.lane[REJECTED, l] == 0.0:
            w.lane[T, l] = w.first[2, l]


@kernel
def remember(w):
    """Keep where the steps start that are about to be judged."""
    for l in range(LANES):
        w.old[0, l] = w.lane[T, l]
        w.old[1, l] = w.h[l]
    copy_lanes(w.y, w.y_old)


@kernel
def load(w, l, run):
    """Put a run into a lane."""
    for m in range(w.y.shape[0]):
        w.y[m, l] = w.y0[run, m]
    for m in range(w.p.shape[0]):
        w.p[m, l] = w.p0[run, m]
    row = run if w.spans.shape[0] > 1 else 0
    w.lane[T, l] = w.spans[row, 0]
    w.lane[T_BASE, l] = w.spans[row, 0]
    w.lane[T_END, l] = w.spans[row, 1]
    w.rtol[l] = w.rtols[run if w.rtols.shape[0] > 1 else 0]
    row = run if w.atols.shape[0] > 1 else 0
    for m in range(w.y.shape[0]):
        w.atol[m, l] = w.atols[row, m]
    w.lane[H_LAST, l] = 0.0
    w.lane[INSIDE_BEFORE, l] = -1.0
    w.lane[LOG_LAST, l] = 0.0
    w.lane[LOG_BEFORE, l] = 0.0
    w.lane[NSTEPS, l] = 0.0
    w.lane[NREJECTED, l] = 0.0
    w.lane[REJECTED, l] = 0.0
    w.lane[OUTCOME, l] = 0.0
    w.lane[IDLE, l] = 0.0
    w.run[RUN, l] = run
    w.run[STARTING, l] = 1
    next_output(w, l, 0)
    w.reset_time[l] = np.nan
    if w.implicit == 1:
        own = run if w.rtols.shape[0] > 1 else 0
        w.lane[NEWTON_TOLERANCE, l] = w.newton_tolerances[own]
        w.lane[INSIDE_WEIGHT, l] = w.inside_weights[own]
        w.lane[INSIDE_STRICT, l] = w.inside_stricts[own]
        newton_forgets(w, l)


@kernel
def rest(w, l):
    """Let a lane stand still: it takes steps of length 0 at the end."""
    w.lane[T, l] = w.lane[T_END, l]
    w.lane[IDLE, l] = 1.0
    w.lane[OUTCOME, l] = 0.0
    w.h[l] = 0.0
    w.run[STARTING, l] = 0


@kernel
def store(w, l):
    """Keep the results of a run that has ended."""
    run = w.run[RUN, l]
    for m in range(w.y.shape[0]):
        w.y_end[run, m] = w.y[m, l]
    w.t_end[run] = w.lane[T, l]
    w.status[run] = int(min(w.lane[OUTCOME, l], 0.0))
    w.ending[run] = w.lane[OUTCOME, l]
    w.steps[run] = int(w.lane[NSTEPS, l])
    w.rejected[run] = int(w.lane[NREJECTED, l])
    w.h_end[run] = w.lane[H, l]
    for k in range(w.run[NEXT_OUTPUT, l], w.t_eval.shape[0]):
        for m in range(w.y.shape[0]):
            w.y_eval[run, m, k] = np.nan


@kernel
def keep_steps(w):
    """Keep times and states of the steps just accepted, for who looks at runs afterwards."""
    for l in range(LANES):
        if w.lane[IDLE, l] != 0.0 or w.lane[REJECTED, l] != 0.0:
            continue
        run = w.run[RUN, l]
        at = w.trail_at[run] + int(w.lane[NSTEPS, l]) - 1
        if at < w.trail_at[run + 1]:
            w.trail_t[at] = w.lane[T, l]
            for m in range(w.y.shape[0]):
                w.trail_y[at, m] = w.y[m, l]


@kernel
def start(w):
    """First slopes and first step sizes of newly loaded lanes, as ``loop.first_step``."""
    n = w.y.shape[0]
    call_lanes(w.f, w.lane[T], w.y, w.p, w.dx)
    for l in range(LANES):
        if w.run[STARTING, l] == 0:
            w.first[0, l] = w.lane[T, l]
            continue
        length = abs(w.lane[T_END, l] - w.lane[T, l])
        direction = 1.0 if w.lane[T_END, l] >= w.lane[T, l] else -1.0
        d0 = 0.0
        d1 = 0.0
        for m in range(n):
            w.f0[m, l] = w.dx[m, l]
            weight = w.atol[m, l] + w.rtol[l] * abs(w.y[m, l])
            state = w.y[m, l] / weight
            slope = w.dx[m, l] / weight
            d0 += state * state
            d1 += slope * slope
        d0 = np.sqrt(d0 / n)
        d1 = np.sqrt(d1 / n)
        h = trial_length(d0, d1, length)
        w.first[0, l] = w.lane[T, l] + direction * h
        w.first[1, l] = h
        w.first[2, l] = d1
        for m in range(n):
            w.x[m, l] = w.y[m, l] + direction * h * w.dx[m, l]
    call_lanes(w.f, w.first[0], w.x, w.p, w.dx)
    for l in range(LANES):
        if w.run[STARTING, l] == 0:
            continue
        w.run[STARTING, l] = 0
        length = abs(w.lane[T_END, l] - w.lane[T, l])
        h = w.first[1, l]
        d2 = 0.0
        for m in range(n):
            weight = w.atol[m, l] + w.rtol[l] * abs(w.y[m, l])
            change = (w.dx[m, l] - w.f0[m, l]) / weight
            d2 += change * change
        d2 = np.sqrt(d2 / n) / h
        guess = first_length(h, w.first[2, l], d2, w.exponent, length)
        if w.first_step > 0.0:
            guess = w.first_step
        if w.fixed == 1:
            first_of_fixed_steps(w, l)
            continue
        smallest = shortest_step(w.lane[MIN_STEP, l], w.lane[T, l])
        w.lane[H, l] = guess
        guess = max(min(guess, w.lane[MAX_STEP, l]), smallest)
        remaining = w.lane[T_END, l] - w.lane[T, l]
        if not np.isfinite(w.first[2, l]) and not finite_slope(w, l):
            w.h[l] = np.nan  # the judge ends the run, by an attempt that does not count
            w.lane[NREJECTED, l] = -1.0
        elif length <= reach(guess, w.lane[MAX_STEP, l]):
            w.h[l] = remaining
        else:
            w.h[l] = guess if remaining > 0.0 else -guess


@kernel
def first_of_fixed_steps(w, l):
    """Length of the first of the steps of fixed length of a lane, as in ``loop.fixed_step``."""
    h = w.lane[H_FIXED, l]
    t, end = w.lane[T, l], w.lane[T_END, l]
    rounding = 8 * EPS * max(abs(t), abs(end))
    is_last = (end - (t + h)) * np.sign(h) <= max(rounding, 1e-9 * abs(h))
    w.h[l] = end - t if is_last and abs(end - t - h) > rounding else h
    if not finite_slope(w, l):
        w.h[l] = np.nan  # the judge ends the run


@kernel
def finite_slope(w, l):
    """Whether the first slope of a lane is finite."""
    for m in range(w.f0.shape[0]):
        if not np.isfinite(w.f0[m, l]):
            return False
    return True


@kernel
def copy_lanes(source, target):
    """target = source."""
    for m in range(target.shape[0]):
        for l in range(LANES):
            target[m, l] = source[m, l]
