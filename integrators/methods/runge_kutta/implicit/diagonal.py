"""Diagonally implicit methods (DIRK, SDIRK, ESDIRK): the stages one after the other."""

from __future__ import annotations

import numpy as np

from ....kernels import kernel
from ....stepping.dense import combine, copy, evaluate
from ....stepping.norms import error_norm
from ....stepping.state import (
    ESTIMATE_DOUBLING,
    FUNCTION_RAISED,
    NEWTON_FAILED,
    OK,
    STEP_TOO_SMALL,
)
from .step import (
    ROUNDING_SAFETY,
    ROUNDING_SHARE,
    UNIT,
    converged,
    keep_jacobian,
    recall_rate,
    solve_real,
    times_mass,
)


@kernel
def newton_diagonal(w, t, h):
    """Stage after stage; explicit stages (a zero on the diagonal) are just evaluated."""
    s = w.stages
    n = w.y.shape[0]
    remembered = w.newton
    w.newton_last = 0
    slowest = 0.0
    for i in range(s):
        k = w.block_of[i]
        if k < 0:
            if i == 0:
                copy(w.f0, w.dx)
            else:
                combine(w.A[i], w.K, i, w.x)
                for m in range(n):
                    w.x[m] += w.y[m]
                if evaluate(w, t + w.c[i] * h) != OK:
                    return FUNCTION_RAISED
            for m in range(n):
                w.K[i, m] = h * w.dx[m]
            continue
        diagonal = w.A[i, i]
        starting_stage(w, i, h)
        recall_rate(w)
        verdict = 0
        norm = np.inf
        for iteration in range(w.max_newton):
            w.nnewton += 1
            w.newton_last = max(w.newton_last, iteration + 1)
            combine(w.A[i], w.K, i + 1, w.x)
            for m in range(n):
                w.x[m] += w.y[m]
            if evaluate(w, t + w.c[i] * h) != OK:
                return FUNCTION_RAISED
            copy(w.dx, w.residual[i])
            status = times_mass(w, w.K[i], w.real_rhs)
            if status != OK:
                return status
            for m in range(n):
                w.real_rhs[m] = h * w.residual[i, m] - w.real_rhs[m]
            status = solve_real(w, k)
            if status != OK:
                return status
            for m in range(n):
                w.K[i, m] += w.real_rhs[m]
                w.error[m] = diagonal * w.real_rhs[m]
            norm = error_norm(w, w.error, h)
            verdict = converged(w, norm, iteration, remembered)
            if verdict != 0:
                break
        slowest = max(slowest, w.newton_rate)
        if verdict != 1:
            status = stage_stagnated(w, i, t, h, norm)
            if status != OK:
                return status
    w.newton_rate = slowest
    return OK


@kernel
def starting_stage(w, i, h):
    """K[i] from the slopes of earlier stages; the first from the last one of the step before."""
    n = w.y.shape[0]
    if i > 0:
        combine(w.predictor[i], w.K, i, w.K[i])
        return
    ratio = h / w.h_last if w.have_start == 1 else 0.0
    for m in range(n):
        w.K[0, m] = ratio * w.W_last[0, m]


@kernel
def stage_stagnated(w, i, t, h, norm):
    """Judge an iteration that stopped converging: OK if only rounding errors are left in it.

    As :func:`.coupled.stagnated`: a rounding error of the stage value, in f
    magnified by rates of 10¹¹ a second, say, keeps increments from shrinking further.
    """
    if not np.isfinite(norm):
        return NEWTON_FAILED
    limit = stage_rounding(w, i, t, h)
    if limit < 0.0:
        return FUNCTION_RAISED
    if not norm <= ROUNDING_SAFETY * limit:
        return NEWTON_FAILED
    w.newton_memory = 1.0
    if w.fixed == 1:  # iterated to round-off: its share of the state is what counts
        return OK if norm * w.rtol <= ROUNDING_SHARE else NEWTON_FAILED
    return OK if norm <= 1.0 else STEP_TOO_SMALL


@kernel
def stage_rounding(w, i, t, h):
    """Norm of the increment that a unit in the last place of stage value i causes; < 0 if f fails.

    Signs alternate, or the perturbation would be a mere scaling.
    """
    n = w.y.shape[0]
    combine(w.A[i], w.K, i + 1, w.x)
    for m in range(n):
        w.x[m] += w.y[m]
    if evaluate(w, t + w.c[i] * h) != OK:
        return -1.0
    copy(w.dx, w.residual[i])
    for m in range(n):
        w.x[m] *= 1.0 + (UNIT if m % 2 == 0 else -UNIT)
    if evaluate(w, t + w.c[i] * h) != OK:
        return -1.0
    for m in range(n):
        w.real_rhs[m] = h * (w.dx[m] - w.residual[i, m])
    if solve_real(w, w.block_of[i]) != OK:
        return -1.0
    for m in range(n):
        w.error[m] = w.A[i, i] * w.real_rhs[m]
    return error_norm(w, w.error, h)


@kernel
def diagonal_accept(w, t, h):
    """After an accepted step: keep what the next one can use.

    An ESDIRK method that ends on its last stage takes that stage's slope over. Evaluating f anew
    would be worse: on a stiff problem it magnifies the small error that Newton's iteration left.
    """
    if w.fsal == 1 and w.estimate_kind != ESTIMATE_DOUBLING:
        last = w.K[w.stages - 1]
        for m in range(w.y.shape[0]):
            w.f1[m] = last[m] / h
        w.have_f1 = 1
    copy(w.K[w.stages - 1], w.W_last[0])
    w.have_start = 1
    keep_jacobian(w)
    return OK
