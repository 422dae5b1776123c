"""One step of a Rosenbrock method, as kernels.

The rows of K are the uᵢ of the transformed form (:cite:`hairer1996`, IV.7.25), for M y' = f(t, y):

    (M − hγJ) uᵢ = hγ f(t + αᵢh, y + Σⱼ aᵢⱼ uⱼ) + γ M Σⱼ cᵢⱼ uⱼ + h²γ γᵢ ∂f/∂t,
    y₊ = y + Σᵢ mᵢ uᵢ.

J and ∂f/∂t belong to the start of the step; methods whose order does not depend on them (W-methods)
keep them for some steps.
"""

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...kernels.pointers import call
from ...stepping.dense import combine, copy, evaluate, polynomial, slope_at_start, to_powers
from ...stepping.norms import all_finite, error_norm
from ...stepping.state import ESTIMATE_EMBEDDED, FUNCTION_RAISED, NONFINITE, OK
from ..runge_kutta.implicit.step import (
    TASK_JACOBIAN,
    ask_algebra,
    evaluate_jacobian,
    factorise,
    jacobian_is_doubtful,
    solve_real,
    times_mass,
)

AUTONOMOUS, BY_CODE, BY_DIFFERENCE = range(3)  # how ∂f/∂t is found

# ∂f/∂t by a difference over this part of the step. Too long a way is an error of third order, too
# short a one lets rounding errors through, divided by h: with this, both stay below the tolerance
# from 1e-3 down to 1e-13.
TIME_SHARE = 1e-6
MOST_ROUNDING = 64 * 2.220446049250313e-16  # the least difference of times, in units of the time
OLDEST = 20  # steps that a matrix of a W-method may serve …
WORN = 0.3  # … as long as it foresees the change of f but for this part


@kernel
def rosenbrock_step(w, t, h):
    """y_new and the error estimate of one step of length h from (t, y)."""
    w.norm_known = 0
    status = begin_step(w, t, h)
    if status == OK:
        status = stages_and_result(w, t, h)
    if status == OK and w.keeps_matrix == 1 and w.jacobian_current == 0 and matrix_is_worn(w, h):
        status = renew_matrix(w, t, h)
        if status == OK:
            status = stages_and_result(w, t, h)
    return status


@kernel
def stages_and_result(w, t, h):
    """The stages one after the other, y_new and the estimate."""
    if w.h_factored != h:
        status = factorise(w, h)
        if status != OK:
            w.h_factored = 0.0
            return status
    n = w.y.shape[0]
    gamma = w.real_shift[0]
    for i in range(w.stages):
        if i == 0:
            copy(w.f0, w.slope)
        elif w.repeats[i] == 0:
            combine(w.A[i], w.K, i, w.x)
            for m in range(n):
                w.x[m] += w.y[m]
            if evaluate(w, t + w.c[i] * h) != OK:
                return FUNCTION_RAISED
            copy(w.dx, w.slope)
        combine(w.C[i], w.K, i, w.big)
        status = times_mass(w, w.big, w.saved)
        if status != OK:
            return status
        in_time = gamma * w.d[i] * h * h
        for m in range(n):
            w.real_rhs[m] = h * gamma * w.slope[m] + gamma * w.saved[m] + in_time * w.f_t[m]
        status = solve_real(w, 0)
        if status != OK:
            return status
        copy(w.real_rhs, w.K[i])
    combine(w.b, w.K, w.stages, w.y_new)
    for m in range(n):
        w.y_new[m] += w.y[m]
    if w.estimate_kind == ESTIMATE_EMBEDDED:
        combine(w.e, w.K, w.stages, w.error)
    return OK


@kernel
def matrix_is_worn(w, h):
    """Whether f has changed over the step as an old matrix did not foresee.

    The order does not depend on the matrix, but the estimate is filtered by it: with one of a
    contact that has ended, even a wrong flight would look harmless.
    """
    n = w.y.shape[0]
    for m in range(n):
        w.x[m] = w.y_new[m] - w.y[m]
    if times_jacobian(w) != OK:
        return True
    for m in range(n):
        w.big[m] = h * (w.slope[m] - w.f0[m])
        w.dx[m] = h * (w.dx[m] + h * w.f_t[m])
        w.saved[m] = w.big[m] - w.dx[m]
    off = error_norm(w, w.saved, h)
    foreseen = max(error_norm(w, w.big, h), error_norm(w, w.dx, h))
    return off > 1.0 and not off <= WORN * foreseen


@kernel
def times_jacobian(w):
    """dx = J x."""
    if w.external_algebra == 1:
        return ask_algebra(w, TASK_JACOBIAN)
    n = w.x.shape[0]
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += w.J[i, j] * w.x[j]
        w.dx[i] = total
    return OK


@kernel
def renew_matrix(w, t, h):
    """J and ∂f/∂t at the start of the step."""
    status = evaluate_jacobian(w, t)
    if status == OK:
        status = time_derivative(w, t, h)
    return status


@kernel
def begin_step(w, t, h):
    """f, its Jacobian and its derivative by time at the start, as far as they are not known."""
    if slope_at_start(w, t) != OK:
        return FUNCTION_RAISED
    if not all_finite(w.f0):
        return NONFINITE
    status = OK
    if w.have_jacobian == 0 or jacobian_is_doubtful(w):
        status = renew_matrix(w, t, h)
    elif w.constant_jacobian == 1 and w.jacobian_current == 0:
        w.jacobian_current = 1
        status = time_derivative(w, t, h)
    if status != OK:
        w.have_jacobian = 0
    return status


@kernel
def time_derivative(w, t, h):
    """f_t = ∂f/∂t at (t, y)."""
    if w.time_slope == AUTONOMOUS:
        return OK
    copy(w.y, w.x)
    if w.time_slope == BY_CODE:
        call(w.f_by_t, t, w.x, w.p, w.f_t)
        return OK
    way = np.copysign(max(TIME_SHARE * abs(h), MOST_ROUNDING * abs(t)), h)
    later = t + way
    if evaluate(w, later) != OK:
        return FUNCTION_RAISED
    for m in range(w.y.shape[0]):
        w.f_t[m] = (w.dx[m] - w.f0[m]) / (later - t)
    return OK


@kernel
def rosenbrock_accept(w, t, h):
    """After an accepted step: W-methods keep their matrix, others only if it cannot change.

    Where the last stage evaluates f at the end, the next step starts with that.
    """
    w.jacobian_current = 0
    w.jacobian_age += 1
    if w.fsal == 1:
        copy(w.slope, w.f1)
        w.have_f1 = 1
    kept = w.keeps_matrix == 1 and w.jacobian_age < OLDEST
    if not kept and w.constant_jacobian == 0:
        w.have_jacobian = 0
    return OK


@kernel
def rosenbrock_dense(w, t, h):
    """Coefficients Q of the dense output of the last accepted step, from t of length h."""
    n = w.y.shape[0]
    s = w.stages
    for i in range(w.extra_stages):
        combine(w.extra_A[i], w.K, s + i, w.x)
        combine(w.extra_start[i], w.K, s + i, w.big)
        for m in range(n):
            w.x[m] += w.y_old[m]
        if evaluate(w, t + w.extra_c[i] * h) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.slope)
        status = times_mass(w, w.big, w.saved)
        if status != OK:
            return status
        for m in range(n):
            w.real_rhs[m] = h * w.slope[m] - w.saved[m]
        status = solve_real(w, 0)
        if status != OK:
            return status
        for m in range(n):
            w.K[s + i, m] = w.big[m] + w.real_rhs[m]
    polynomial(w.P, w.K, 1.0, w.Q)
    to_powers(w.basis, w.Q)
    return OK
