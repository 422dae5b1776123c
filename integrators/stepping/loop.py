"""The time loop, as a kernel: attempts, rejections, step sizes. The only one there is.

:func:`advance` takes steps until it reaches ``T_STOP``, has filled the arrays it was given, or
something happens that it cannot decide. ``solve`` calls it again and again and does the rest:
output times, events, projections, callbacks, statistics.

A method takes part with four kernels, each called as kernel(w, t, h) and each through its
address, so that the loop is compiled once for all methods: ``attempt`` computes y_new and the
error estimate, ``accepted`` is told of success, ``dense`` fills Q for the last accepted step,
``refine`` may improve an estimate that came out too large (and returns 1 if it did).
"""

from __future__ import annotations

import numpy as np

from ..kernels import kernel
from ..kernels.pointers import invoke
from .control import PREDICTIVE, factor_after_rejection, factor_after_success
from .dense import all_finite, copy, error_norm, evaluate, output_is_due, outputs_done
from .projecting import project
from .state import (
    DIRECTION,
    DOUBLING_DIVISOR,
    ERROR,
    ERROR_BEFORE,
    ESTIMATE,
    ESTIMATE_DOUBLING,
    ESTIMATE_TWO,
    EVENTS,
    F0_CURRENT,
    F0_KNOWN,
    FIXED,
    FULL,
    FUNCTION_RAISED,
    H_FIXED,
    H_LAST,
    HALF_ROWS,
    HAVE_F1,
    HAVE_START,
    KEPT,
    LAST_KEPT,
    LAST_REASON,
    LAST_REJECTED,
    LOOK,
    MAX_STEP,
    MAX_STEPS,
    MIN_STEP,
    NEGATIVE,
    NEWTON_FACTOR,
    NEWTON_FAILED,
    NONFINITE,
    NORM,
    NORM_KNOWN,
    NREJECTED,
    NSTEPS,
    OK,
    ORDER_WISH,
    OWN_LENGTH,
    PAIRS,
    PROJECTING,
    REACHED,
    RTOL,
    STEP_INDEX,
    STEP_TOO_SMALL,
    SWITCH,
    T_BASE,
    T_PREVIOUS,
    T_STOP,
    TAKEN,
    TOO_MANY_STEPS,
    UNPROJECTED,
    VARIABLE_ORDER,
    H,
    T,
)
from .watch import zero_possible

EPS = 2.220446049250313e-16
NONFINITE_FACTOR = 0.25  # a step that gave NaN or Inf is shortened by this much
STRETCH = 1.01  # a step that ends just short of T_STOP is stretched to it …
LEEWAY = 1 + 1e-9  # … unless it becomes longer than MAX_STEP, but for the rounding of times
KEEP_STEP = 1.2  # implicit methods keep h (and their factorisations) if it would grow by less


@kernel
def advance(w, t_stop, wanted):
    """Take up to `wanted` accepted steps towards t_stop; the k-th is written to ts[k] and ys[k].

    Where dense output is due it goes to Qs, one row after the other.
    """
    w.clock[T_STOP] = t_stop
    w.count[TAKEN] = 0
    w.count[KEPT] = 0
    while w.count[TAKEN] < wanted:
        if (w.clock[T_STOP] - w.clock[T]) * w.clock[DIRECTION] <= 0.0:
            return REACHED
        if w.count[NSTEPS] + w.count[NREJECTED] >= w.count[MAX_STEPS]:
            return TOO_MANY_STEPS
        if w.count[FIXED] == 1:
            status = fixed_step(w)
        else:
            status = adaptive_step(w)
        if status != OK:
            return status  # SWITCH among others
        k = w.count[TAKEN]
        w.ts[k] = w.clock[T]
        w.count[LAST_KEPT] = 0
        if output_is_due(w):
            w.count[LAST_KEPT] = 1
            if invoke(w, w.dense, w.clock[T_PREVIOUS], w.clock[H_LAST]) != OK:
                return FUNCTION_RAISED
            for j in range(w.Q.shape[0]):
                copy(w.Q[j], w.Qs[w.count[KEPT], j])
            w.count[KEPT] += 1
            outputs_done(w)
        unprojected = w.count[PROJECTING] == 1 and not project(w)
        copy(w.y, w.ys[k])
        w.count[TAKEN] += 1
        if unprojected:
            return UNPROJECTED
        if w.count[EVENTS] > 0 and zero_possible(w):
            return LOOK
        if w.count[ORDER_WISH] != 0:
            return SWITCH
    return FULL


@kernel
def first_step(w, t, exponent):
    """First guess of H (Hairer, Nørsett & Wanner II.4): where an Euler step changes little.

    f0 is f(t, y). A trial that fails, or leads to NaN, gives a much shorter step.
    """
    clock = w.clock
    length = abs(clock[T_STOP] - t)
    state = size_at_start(w, w.y)
    slope = size_at_start(w, w.f0)
    h = 1e-6 if state < 1e-5 or slope < 1e-5 else 0.01 * state / slope
    h = min(h, length)
    for m in range(w.y.shape[0]):
        w.x[m] = w.y[m] + clock[DIRECTION] * h * w.f0[m]
    if evaluate(w, t + clock[DIRECTION] * h) != OK:
        clock[H] = max(min(1e-3 * h, length), 1e-12 * length)
        return FUNCTION_RAISED
    for m in range(w.y.shape[0]):
        w.dx[m] -= w.f0[m]
    curvature = size_at_start(w, w.dx) / h
    largest = max(slope, curvature)
    if not np.isfinite(curvature):
        clock[H] = 1e-3 * h
    elif largest <= 1e-15:
        clock[H] = min(100 * h, max(1e-6, h * 1e-3), length)
    else:
        clock[H] = min(100 * h, (0.01 / largest) ** exponent, length)
    return OK


@kernel
def size_at_start(w, v):
    """Root mean square of v in units of the tolerance at the start."""
    n = v.shape[0]
    stride = 2 if w.count[PAIRS] == 1 else 1
    total = 0.0
    for i in range(0, n, stride):
        if stride == 2:
            scaled = np.hypot(v[i], v[i + 1])
            scaled /= w.atol[i] + w.clock[RTOL] * np.hypot(w.y[i], w.y[i + 1])
        else:
            scaled = v[i] / (w.atol[i] + w.clock[RTOL] * abs(w.y[i]))
        total += scaled * scaled
    return np.sqrt(total * stride / n)


@kernel
def fixed_step(w):
    """One step to t = T_BASE + (k+1)·H_FIXED, or to T_STOP if that comes first."""
    clock = w.clock
    t = clock[T]
    h = clock[H_FIXED]
    t_new = clock[T_BASE] + (w.count[STEP_INDEX] + 1) * h
    rounding = 8 * EPS * max(abs(t), abs(clock[T_STOP]))
    if (clock[T_STOP] - t_new) * clock[DIRECTION] <= max(rounding, 1e-9 * abs(h)):
        t_new = clock[T_STOP]
        if abs(t_new - t - h) > rounding:
            h = t_new - t
    status = invoke(w, w.attempt, t, h)
    if status != OK:
        return status
    if not all_finite(w.y_new):
        return NONFINITE
    w.count[STEP_INDEX] += 1
    accept(w, t_new, h)
    return OK


@kernel
def adaptive_step(w):
    """Try steps, shorter and shorter, until one is accepted."""
    clock = w.clock
    count = w.count
    t = clock[T]
    remaining = abs(clock[T_STOP] - t)
    smallest = max(clock[MIN_STEP], 16 * EPS * abs(t))
    while count[NSTEPS] + count[NREJECTED] < count[MAX_STEPS]:
        proposed = min(clock[H], clock[MAX_STEP])
        if proposed < smallest and STRETCH * proposed < remaining:
            if count[LAST_REJECTED] == 1:
                return count[LAST_REASON]
            if clock[MAX_STEP] < smallest:
                return STEP_TOO_SMALL  # the clock cannot tell such steps apart
            proposed = smallest
        # The last step before T_STOP may be shorter than any limit; T_STOP is never passed.
        last = remaining <= min(STRETCH * proposed, LEEWAY * clock[MAX_STEP])
        t_new = clock[T_STOP] if last else t + clock[DIRECTION] * proposed
        h = t_new - t
        if h == 0.0:
            return STEP_TOO_SMALL if count[LAST_REJECTED] == 0 else count[LAST_REASON]
        status = attempt_with_estimate(w, t, h)
        error = np.inf
        if status == OK:
            error = measured_error(w, h)
            if error >= 1.0 and np.isfinite(error) and invoke(w, w.refine, t, h) == 1:
                error = measured_error(w, h)
            if not (np.isfinite(error) and all_finite(w.y_new)):
                status = NONFINITE
        if status == FUNCTION_RAISED:
            return status
        if status == OK and error <= 1.0 and any_negative(w):
            status = NEGATIVE
        if status == OK and error <= 1.0:
            factor = 1.0
            if count[OWN_LENGTH] == 0:
                factor = factor_after_success(clock, count, w.control, error, h)
            if w.control[PREDICTIVE] != 0.0 and 1.0 <= factor <= KEEP_STEP:
                factor = 1.0
            grown = abs(h) * factor
            # A step cut short by T_STOP says nothing against the step that was proposed.
            clock[H] = max(grown, proposed) if last and factor >= 1.0 else grown
            accept(w, t_new, h)
            clock[ERROR_BEFORE] = clock[ERROR]
            clock[ERROR] = max(error, 1e-10)
            count[LAST_REJECTED] = 0
            return OK
        count[NREJECTED] += 1
        count[LAST_REJECTED] = 1
        if status == OK:
            count[LAST_REASON] = STEP_TOO_SMALL
            clock[H] = abs(h) * factor_after_rejection(w.control, error)
        elif status == NONFINITE:
            count[LAST_REASON] = NONFINITE
            clock[H] = abs(h) * NONFINITE_FACTOR
        else:
            count[LAST_REASON] = status
            clock[H] = abs(h) * clock[NEWTON_FACTOR] if status == NEWTON_FAILED else abs(h) / 2
        if clock[H] < smallest:
            return count[LAST_REASON]
        if status == NEWTON_FAILED and count[VARIABLE_ORDER] == 1:
            count[ORDER_WISH] = -1
            return SWITCH
    return TOO_MANY_STEPS


@kernel
def any_negative(w):
    """Whether the attempted step makes a component negative that must not be."""
    for k in range(w.nonnegative.shape[0]):
        if w.y_new[w.nonnegative[k]] < 0.0:
            return True
    return False


@kernel
def accept(w, t_new, h):
    """Make the attempted step the current state."""
    w.clock[T_PREVIOUS] = w.clock[T]
    w.clock[T] = t_new
    w.clock[H_LAST] = h
    copy(w.y, w.y_old)
    copy(w.y_new, w.y)
    w.count[NSTEPS] += 1
    w.count[F0_KNOWN] = w.count[F0_CURRENT]
    if w.count[F0_CURRENT] == 0 and w.count[HAVE_F1] == 1:
        copy(w.f1, w.f0)  # the end of the step before was the start of this one
        w.count[F0_KNOWN] = 1
    w.count[F0_CURRENT] = 0
    w.count[HAVE_F1] = 0
    invoke(w, w.accepted, w.clock[T_PREVIOUS], h)


@kernel
def measured_error(w, h):
    """Norm of the error estimate; with two estimates, combined as in DOP853."""
    if w.count[NORM_KNOWN] == 1:
        return w.clock[NORM]
    error = error_norm(w, w.error, h)
    if w.count[ESTIMATE] == ESTIMATE_TWO and error > 0.0:
        low = error_norm(w, w.error_low, h)
        error = error * error / np.sqrt(error * error + 0.01 * low * low)
    return error


@kernel
def attempt_with_estimate(w, t, h):
    """One attempt; without an embedded method, the step is also done in two halves.

    Step doubling: with the results y_big of one step and y of two half steps, the error of y is
    about (y − y_big)/(2^p − 1); y is propagated.
    """
    if w.count[ESTIMATE] != ESTIMATE_DOUBLING:
        return invoke(w, w.attempt, t, h)
    n = w.y.shape[0]
    w.count[HAVE_START] = 0  # steps of different lengths alternate
    status = invoke(w, w.attempt, t, h)
    if status != OK:
        return status
    copy(w.y_new, w.big)
    status = invoke(w, w.attempt, t, 0.5 * h)
    if status != OK:
        return status
    for i in range(w.count[HALF_ROWS]):  # behind the stages and what the step gained
        copy(w.K[i], w.K[w.count[HALF_ROWS] + 1 + i])
    copy(w.y, w.saved)
    copy(w.f0, w.y_old)  # free until the step is accepted
    known = w.count[F0_CURRENT]
    copy(w.y_new, w.y)
    w.count[F0_CURRENT] = 0
    w.count[HAVE_F1] = 0
    status = invoke(w, w.attempt, t + 0.5 * h, 0.5 * h)
    copy(w.saved, w.y)
    copy(w.y_old, w.f0)
    w.count[F0_CURRENT] = known
    if status != OK:
        return status
    for m in range(n):
        w.error[m] = (w.y_new[m] - w.big[m]) / w.clock[DOUBLING_DIVISOR]
    return OK
