"""Explicit Runge–Kutta methods: one step of any explicit tableau.

The stages are stored without h: K[i] = f(t + cᵢh, y + h Σⱼ aᵢⱼ K[j]).

This is the only place where an explicit step is written. It runs as it stands on a Python function;
around machine code it is traced (``fused``), with the right-hand side inside or called, for one run
or for many in lanes. So nothing here is decided by the values of numbers that may be symbols.
"""

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...stepping.dense import (
    combine,
    copy,
    evaluate,
    hermite_dense,
    polynomial,
    slope_at_end,
    slope_at_start,
    to_powers,
)
from ...stepping.norms import error_norm
from ...stepping.state import (
    DENSE_NATIVE,
    ESTIMATE_DOUBLING,
    ESTIMATE_TWO,
    FUNCTION_RAISED,
    OK,
)
from ...stepping.stiffness import watch_explicit

UNANNOUNCED = 10.0  # a slope further off than so many times what those of the stages differ by


@kernel
def explicit_step(w, t, h):
    """y_new and the error estimate of one step of length h from (t, y)."""
    w.norm_known = 0
    if slope_at_start(w, t) != OK:
        return FUNCTION_RAISED
    n = w.y.shape[0]
    s = w.stages
    copy(w.f0, w.K[0])
    for i in range(1, s):
        combine(w.A[i], w.K, i - 1, w.x)
        newest = h * w.A[i, i - 1]  # comes last, so that the rest need not wait for it
        for m in range(n):
            w.x[m] = w.y[m] + (h * w.x[m] + newest * w.K[i - 1, m])
        if evaluate(w, t + w.c[i] * h) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.K[i])
    combine(w.b, w.K, s, w.y_new)
    for m in range(n):
        w.y_new[m] = w.y[m] + h * w.y_new[m]
    if w.estimate_kind != ESTIMATE_DOUBLING:
        combine(w.e, w.K, s, w.error)
        for m in range(n):
            w.error[m] *= h
        if w.estimate_kind == ESTIMATE_TWO:
            combine(w.e_low, w.K, s, w.error_low)
            for m in range(n):
                w.error_low[m] *= h
    return OK


@kernel
def explicit_accept(w, t, h):
    """After an accepted step: the last stage of an FSAL method is the next first one."""
    if w.fsal == 1 and w.estimate_kind != ESTIMATE_DOUBLING:
        copy(w.K[w.stages - 1], w.f1)
        w.have_f1 = 1
    if w.inside_weight > 0.0:
        w.have_f1 = 1  # the look at the end has found it
    watch_explicit(w, h)
    return OK


@kernel
def explicit_refine(w, t, h):
    """Have a look at f where the step ends, if the estimate has none; 1 if the step is refused.

    A body may fly in all stages and end below the ground: neither they nor what is made of them
    sees the contact. The next step begins with this slope, so it costs nothing.
    """
    if w.inside_weight == 0.0 or w.norm >= 1.0:
        return 0
    copy(w.y_new, w.x)
    if evaluate(w, t + h) != OK:
        return FUNCTION_RAISED
    copy(w.dx, w.f1)
    length = 0.5 * h if w.estimate_kind == ESTIMATE_DOUBLING else h
    return unannounced(w, w.f1, w.stages - w.fsal, length, UNANNOUNCED)


@kernel
def unannounced(w, slope, stages, h, ratio):
    """Make the distance of a slope at the end from where stages point the norm; 1 if it is far.

    That is: more than the tolerance, and `ratio` times more than slopes differ within the step.
    Where f is not finite the next step will tell.
    """
    n = w.y.shape[0]
    combine(w.end_weights, w.K, stages, w.error_low)
    for m in range(n):
        w.error_low[m] = h * (slope[m] - w.error_low[m])
    surprise = error_norm(w, w.error_low, h)
    if surprise <= 1.0 or surprise == np.inf:
        return 0
    for i in range(stages):
        for m in range(n):
            w.error_low[m] = ratio * h * (w.K[i, m] - w.f0[m])
        if error_norm(w, w.error_low, h) >= surprise:
            return 0
    w.norm = surprise
    w.norm_known = 1
    return 1


@kernel
def explicit_dense(w, t, h):
    """Coefficients Q of the dense output of the last accepted step, from t of length h."""
    if w.dense_kind != DENSE_NATIVE:
        return hermite_dense(w)
    if further_slopes(w, t, h) != OK:
        return FUNCTION_RAISED
    polynomial(w.P, w.K, h, w.Q)
    to_powers(w.basis, w.Q)
    return OK


@kernel
def further_slopes(w, t, h):
    """Slopes that only dense output needs, behind the stages in K."""
    n = w.y.shape[0]
    s = w.stages
    for i in range(s, s + w.extra_stages):
        if i == s and w.extra_is_slope == 1:
            if slope_at_end(w) != OK:
                return FUNCTION_RAISED
            copy(w.f1, w.K[i])
            continue
        combine(w.A[i], w.K, i, w.x)
        for m in range(n):
            w.x[m] = w.y_old[m] + h * w.x[m]
        if evaluate(w, t + w.c[i] * h) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.K[i])
    return OK
