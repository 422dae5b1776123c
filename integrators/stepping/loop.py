"""The time loop, as a kernel: attempts, rejections, step sizes. The only one there is.

:func:`advance` takes steps until it reaches ``t_stop``, has filled the arrays it was given, or
something happens that it cannot decide. ``solve`` calls it again and again and does the rest:
output times, events, projections, callbacks, statistics.

A method takes part with four kernels, each called as kernel(w, t, h) and each through its
address, so that the loop is compiled once for all methods: ``attempt`` computes y_new and the
error estimate, ``accepted`` is told of success, ``dense`` fills Q for the last accepted step,
``refine`` may improve an estimate that came out too large, or say that one is too small for what
happens inside the step (and returns 1 if it did).
"""

from __future__ import annotations

import numpy as np

from ..kernels import kernel
from ..kernels.elementary import log
from ..kernels.pointers import invoke
from .control import (
    EPS,
    KEEP_STEP,
    NONFINITE_FACTOR,
    STRETCH,
    cheaper,
    factor_after_rejection,
    factor_after_success,
    first_length,
    log_of_error,
    reach,
    shortest_step,
    trial_length,
)
from .dense import copy, evaluate, output_is_due, outputs_done, straight_if_not_finite
from .norms import all_finite, norm_of_estimate
from .projecting import project
from .state import (
    CHANGE,
    ESTIMATE_DOUBLING,
    FULL,
    FUNCTION_RAISED,
    INTERRUPTED,
    LOOK,
    NEGATIVE,
    NEWTON_FAILED,
    NONFINITE,
    OK,
    REACHED,
    STEP_TOO_SMALL,
    SWITCH,
    TOO_MANY_STEPS,
    UNPROJECTED,
)
from .watch import zero_possible


@kernel
def advance(w, t_stop, wanted):
    """Take up to `wanted` accepted steps towards t_stop; the k-th is written to ts[k] and ys[k].

    Where dense output is due it goes to Qs, one row after the other.
    """
    w.t_stop = t_stop
    w.taken = 0
    w.kept = 0
    while w.taken < wanted:
        if (w.t_stop - w.t) * w.direction <= 0.0:
            return REACHED
        if w.stop == 1:
            return INTERRUPTED
        if w.nsteps + w.nrejected >= w.max_steps:
            return TOO_MANY_STEPS
        if w.fixed == 1:
            status = fixed_step(w)
        else:
            status = adaptive_step(w)
        if status != OK:
            return status  # SWITCH among others
        k = w.taken
        w.ts[k] = w.t
        w.last_kept = 0
        if output_is_due(w):
            w.last_kept = 1
            if invoke(w, w.dense, w.t_previous, w.h_last) != OK:
                return FUNCTION_RAISED
            straight_if_not_finite(w)
            for j in range(w.Q.shape[0]):
                copy(w.Q[j], w.Qs[w.kept, j])
            w.kept += 1
            outputs_done(w)
        unprojected = w.projecting == 1 and not project(w)
        copy(w.y, w.ys[k])
        w.taken += 1
        if unprojected:
            return UNPROJECTED
        if w.watched > 0 and zero_possible(w):
            return LOOK
        if w.order_wish != 0:
            return SWITCH
        if w.family_wish != 0:
            return CHANGE
    return FULL


@kernel
def first_step(w, t, exponent):
    """First guess of h, by a trial Euler step. f0 is f(t, y).

    A trial that fails, or leads to NaN, gives a much shorter step.
    """
    length = abs(w.t_stop - t)
    slope = size_at_start(w, w.f0)
    h = trial_length(size_at_start(w, w.y), slope, length)
    for m in range(w.y.shape[0]):
        w.x[m] = w.y[m] + w.direction * h * w.f0[m]
    if evaluate(w, t + w.direction * h) != OK:
        w.h = max(min(1e-3 * h, length), 1e-12 * length)
        return FUNCTION_RAISED
    for m in range(w.y.shape[0]):
        w.dx[m] -= w.f0[m]
    w.h = first_length(h, slope, size_at_start(w, w.dx) / h, exponent, length)
    return OK


@kernel
def size_at_start(w, v):
    """Root mean square of v in units of the tolerance at the start."""
    n = v.shape[0]
    stride = 2 if w.pairs == 1 else 1
    total = 0.0
    for i in range(0, n, stride):
        if stride == 2:
            scaled = np.hypot(v[i], v[i + 1])
            scaled /= w.atol[i] + w.rtol * np.hypot(w.y[i], w.y[i + 1])
        else:
            scaled = v[i] / (w.atol[i] + w.rtol * abs(w.y[i]))
        total += scaled * scaled
    return np.sqrt(total * stride / n)


@kernel
def fixed_step(w):
    """One step to t = t_base + (k+1)·h_fixed, or to t_stop if that comes first."""
    t = w.t
    h = w.h_fixed
    t_new = w.t_base + (w.step_index + 1) * h
    rounding = 8 * EPS * max(abs(t), abs(w.t_stop))
    if (w.t_stop - t_new) * w.direction <= max(rounding, 1e-9 * abs(h)):
        t_new = w.t_stop
        if abs(t_new - t - h) > rounding:
            h = t_new - t
    status = invoke(w, w.attempt, t, h)
    if status != OK:
        return status
    if not all_finite(w.y_new):
        return NONFINITE
    w.step_index += 1
    accept(w, t_new, h)
    return OK


@kernel
def adaptive_step(w):
    """Try steps, shorter and shorter, until one is accepted."""
    t = w.t
    remaining = abs(w.t_stop - t)
    smallest = shortest_step(w.min_step, t)
    first = min(w.h, w.max_step)
    while w.nsteps + w.nrejected < w.max_steps:
        proposed = min(w.h, w.max_step)
        if proposed < smallest and STRETCH * proposed < remaining:
            if w.last_rejected == 1:
                return w.last_reason
            if w.max_step < smallest:
                return STEP_TOO_SMALL  # the clock cannot tell such steps apart
            proposed = smallest
        # The last step before t_stop may be shorter than any limit; t_stop is never passed.
        last = remaining <= reach(proposed, w.max_step)
        t_new = w.t_stop if last else t + w.direction * proposed
        h = t_new - t
        if h == 0.0:
            return STEP_TOO_SMALL if w.last_rejected == 0 else w.last_reason
        status = attempt_with_estimate(w, t, h)
        error = np.inf
        if status == OK:
            error = measured_error(w, h)
            doubtful = error >= 1.0 or w.inside_weight > 0.0
            if doubtful and np.isfinite(error):
                w.norm = error
                refined = invoke(w, w.refine, t, h)
                if refined == FUNCTION_RAISED:
                    return FUNCTION_RAISED
                if refined == 1:
                    error = measured_error(w, h)
            if not (np.isfinite(error) and all_finite(w.y_new)):
                status = NONFINITE
        if status == FUNCTION_RAISED:
            return status
        if status == OK and error <= 1.0 and any_negative(w):
            status = NEGATIVE
        if status == OK and error <= 1.0:
            log_error = log_of_error(error)
            factor = 1.0
            if w.own_length == 0:
                factor = factor_after_success(w, log_error, h)
            if w.predictive != 0.0 and 1.0 <= factor <= KEEP_STEP:
                factor = 1.0
            grown = abs(h) * factor
            # A step cut short by t_stop says nothing against the step that was proposed.
            w.h = max(grown, proposed) if last and factor >= 1.0 else grown
            accept(w, t_new, h)
            w.log_before = w.log_error
            w.log_error = log_error
            w.last_rejected = 0
            return OK
        w.nrejected += 1
        w.last_rejected = 1
        if status == OK:
            w.last_reason = STEP_TOO_SMALL
            w.h = abs(h) * factor_after_rejection(w, log(error))
        elif status == NONFINITE:
            w.last_reason = NONFINITE
            w.h = abs(h) * NONFINITE_FACTOR
        else:
            w.last_reason = status
            w.h = abs(h) * w.newton_factor if status == NEWTON_FAILED else abs(h) / 2
        if w.h < smallest:
            return w.last_reason
        if status == NEWTON_FAILED and w.variable_order == 1:
            # A lower order pays once the iteration asks for steps as short as its own would be.
            if w.h * cheaper(w, w.stages - 2) < first:
                w.order_wish = -1
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
    w.t_previous = w.t
    w.t = t_new
    w.h_last = h
    copy(w.y, w.y_old)
    copy(w.y_new, w.y)
    w.nsteps += 1
    w.f0_known = w.f0_current
    if w.f0_current == 0 and w.have_f1 == 1:
        copy(w.f1, w.f0)  # the end of the step before was the start of this one
        w.f0_known = 1
    w.f0_current = 0
    w.have_f1 = 0
    invoke(w, w.accepted, w.t_previous, h)


@kernel
def measured_error(w, h):
    """Norm of the error estimate, unless the attempt has found it."""
    return w.norm if w.norm_known == 1 else norm_of_estimate(w, h)


@kernel
def attempt_with_estimate(w, t, h):
    """One attempt; without an embedded method, the step is also done in two halves.

    Step doubling: with the results y_big of one step and y of two half steps, the error of y is
    about (y − y_big)/(2^p − 1); y is propagated.
    """
    if w.estimate_kind != ESTIMATE_DOUBLING:
        return invoke(w, w.attempt, t, h)
    n = w.y.shape[0]
    w.have_start = 0  # steps of different lengths alternate
    status = invoke(w, w.attempt, t, h)
    if status != OK:
        return status
    copy(w.y_new, w.big)
    status = invoke(w, w.attempt, t, 0.5 * h)
    if status != OK:
        return status
    for i in range(w.half_rows):  # behind the stages and what the step gained
        copy(w.K[i], w.K[w.half_rows + 1 + i])
    copy(w.y, w.saved)
    copy(w.f0, w.y_old)  # free until the step is accepted
    known = w.f0_current
    copy(w.y_new, w.y)
    w.f0_current = 0
    w.have_f1 = 0
    status = invoke(w, w.attempt, t + 0.5 * h, 0.5 * h)
    copy(w.saved, w.y)
    copy(w.y_old, w.f0)
    w.f0_current = known
    if status != OK:
        return status
    for m in range(n):
        w.error[m] = (w.y_new[m] - w.big[m]) / w.doubling_divisor
    return OK
