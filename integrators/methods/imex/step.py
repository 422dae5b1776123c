"""One step of an additive method, as kernels.

Rows 0 … s − 1 of K are h f_E at the stages, rows s … 2s − 1 h f_I; further stages of dense output
follow in pairs. Only f_I is iterated on: with z = h f_I(Y), Y = base + γz,

    (1 − hγJ) δ = h f_I(base + γz) − z,      J = ∂f_I/∂y.
"""

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...kernels.pointers import call
from ...stepping.dense import combine, copy, polynomial, to_powers
from ...stepping.norms import all_finite, error_norm
from ...stepping.state import (
    ESTIMATE_EMBEDDED,
    FUNCTION_RAISED,
    NEWTON_FAILED,
    NONFINITE,
    OK,
)
from ..runge_kutta.implicit.step import (
    converged,
    evaluate_jacobian,
    jacobian_is_doubtful,
    keep_jacobian,
    prepare_newton,
    recall_rate,
    solve_real,
)

DENSE_ITERATIONS = 15
DENSE_RATE = 0.9  # an increment that shrinks by less will not become small


@kernel
def explicit_part(w, t):
    """dx = f_E(t, x)."""
    if w.limited == 1 and (w.t_limit - t) * w.direction < 0.0:
        t = w.t_limit
    w.nfev += 1
    w.flag[0] = w.f_native
    call(w.f_explicit, t, w.x, w.p, w.dx)
    return OK if w.flag[0] == 1 else FUNCTION_RAISED


@kernel
def implicit_part(w, t):
    """dx = f_I(t, x)."""
    if w.limited == 1 and (w.t_limit - t) * w.direction < 0.0:
        t = w.t_limit
    w.nfev += 1
    w.flag[0] = w.f_native
    call(w.f_implicit, t, w.x, w.p, w.dx)
    return OK if w.flag[0] == 1 else FUNCTION_RAISED


@kernel
def imex_step(w, t, h):
    """y_new and the error estimate of one step of length h from (t, y)."""
    w.norm_known = 0
    status = begin_step(w, t)
    for trial in range(2):
        if trial == 1:
            if status != NEWTON_FAILED or w.jacobian_current == 1:
                break
            status = evaluate_jacobian(w, t)  # an old Jacobian may be to blame
        if status == OK:
            status = prepare_newton(w, h)
        if status == OK:
            status = solve_stages(w, t, h)
    if status != OK:
        return status
    n = w.y.shape[0]
    combine(w.b, w.K, 2 * w.stages, w.y_new)
    for m in range(n):
        w.y_new[m] += w.y[m]
    if w.estimate_kind == ESTIMATE_EMBEDDED:
        combine(w.e, w.K, 2 * w.stages, w.real_rhs)
        status = solve_real(w, 0)  # what stiff components contribute is damped by the method
        if status == OK:
            copy(w.real_rhs, w.error)
            status = look_at_end(w, t + h, h)
    return status


@kernel
def look_at_end(w, t, h):
    """Refuse a step if f at its end, where the next one starts, comes as a surprise.

    As in :mod:`..runge_kutta.implicit.surprise`: all stages may lie before a kink of f that the
    end is far beyond.
    """
    n = w.y.shape[0]
    s = w.stages
    copy(w.y_new, w.x)
    if explicit_part(w, t) != OK:
        return FUNCTION_RAISED
    copy(w.dx, w.end_explicit)
    if implicit_part(w, t) != OK:
        return FUNCTION_RAISED
    copy(w.dx, w.end_implicit)
    spread = 0.0
    for i in range(1, s):
        for m in range(n):
            w.base[m] = w.K[i, m] + w.K[s + i, m] - h * w.f0[m]
        spread = max(spread, error_norm(w, w.base, h))
    for m in range(n):
        predicted = 0.0
        for i in range(s):
            predicted += w.end_weights[i] * (w.K[i, m] + w.K[s + i, m])
        w.real_rhs[m] = h * (w.end_explicit[m] + w.end_implicit[m]) - predicted
    plain = error_norm(w, w.real_rhs, h)
    if plain <= spread:
        return OK
    if np.isfinite(plain):
        if solve_real(w, 0) != OK:
            return FUNCTION_RAISED
        if error_norm(w, w.real_rhs, h) <= 1.0:
            return OK
    w.newton_factor = 0.5
    return NEWTON_FAILED


@kernel
def begin_step(w, t):
    """Both parts of f at the start, unless they are known, and J."""
    n = w.y.shape[0]
    if w.f0_current == 0 and w.have_f1 == 1 and w.have_start == 1:
        copy(w.f1, w.f0)
        w.f0_current = 1
    w.have_f1 = 0
    if w.f0_current == 0 or w.have_start == 0:
        copy(w.y, w.x)
        if explicit_part(w, t) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.of_explicit)
        if implicit_part(w, t) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.of_implicit)
        for m in range(n):
            w.f0[m] = w.of_explicit[m] + w.of_implicit[m]
        w.f0_current = 1
        w.have_start = 1
    if not all_finite(w.f0):
        return NONFINITE
    if w.have_jacobian == 0 or jacobian_is_doubtful(w):
        return evaluate_jacobian(w, t)
    return OK


@kernel
def solve_stages(w, t, h):
    """The stages one after the other."""
    n = w.y.shape[0]
    s = w.stages
    for m in range(n):
        w.K[0, m] = h * w.of_explicit[m]
        w.K[s, m] = h * w.of_implicit[m]
    for i in range(1, 2 * s):
        if i != s:
            for m in range(n):
                w.K[i, m] = 0.0
    w.newton_last = 0
    slowest = 0.0
    for i in range(1, s):
        combine(w.A[i], w.K, 2 * s, w.base)
        for m in range(n):
            w.base[m] += w.y[m]
        combine(w.predictor[i], w.K, 2 * s, w.residual[0])
        copy(w.residual[0], w.K[s + i])
        recall_rate(w)
        verdict = 0
        for iteration in range(w.max_newton):
            w.newton_last = max(w.newton_last, iteration + 1)
            norm = improve(w, s + i, t + w.c[i] * h, h)
            if norm < 0.0:
                return FUNCTION_RAISED
            verdict = converged(w, norm, iteration, w.newton)
            if verdict != 0:
                break
        slowest = max(slowest, w.newton_rate)
        if verdict != 1:
            return NEWTON_FAILED
        if slope_of_explicit(w, i, s + i, t + w.c[i] * h, h) != OK:
            return FUNCTION_RAISED
    w.newton_rate = slowest
    return OK


@kernel
def improve(w, row, t, h):
    """One iteration for z = K[row]; the norm of its change in Y, negative if f_I fails."""
    n = w.y.shape[0]
    gamma = w.real_shift[0]
    w.nnewton += 1
    for m in range(n):
        w.x[m] = w.base[m] + gamma * w.K[row, m]
    if implicit_part(w, t) != OK:
        return -1.0
    for m in range(n):
        w.real_rhs[m] = h * w.dx[m] - w.K[row, m]
    if solve_real(w, 0) != OK:
        return -1.0
    for m in range(n):
        w.K[row, m] += w.real_rhs[m]
        w.error[m] = gamma * w.real_rhs[m]
    return error_norm(w, w.error, h)


@kernel
def slope_of_explicit(w, row, other, t, h):
    """K[row] = h f_E at the stage whose implicit slope is K[other]."""
    n = w.y.shape[0]
    for m in range(n):
        w.x[m] = w.base[m] + w.real_shift[0] * w.K[other, m]
    if explicit_part(w, t) != OK:
        return FUNCTION_RAISED
    for m in range(n):
        w.K[row, m] = h * w.dx[m]
    return OK


@kernel
def imex_accept(w, t, h):
    """After an accepted step: the next one starts with what was looked at where it ended."""
    w.have_start = 0
    if w.estimate_kind == ESTIMATE_EMBEDDED:
        copy(w.end_explicit, w.of_explicit)
        copy(w.end_implicit, w.of_implicit)
        for m in range(w.y.shape[0]):
            w.f1[m] = w.of_explicit[m] + w.of_implicit[m]
        w.have_f1 = 1
        w.have_start = 1
    keep_jacobian(w)
    return OK


@kernel
def imex_dense(w, t, h):
    """Coefficients Q of the dense output of the last accepted step, from t of length h."""
    for i in range(w.extra_stages):
        status = further_stage(w, i, t + w.extra_c[i] * h, h)
        if status == FUNCTION_RAISED:
            return status
        if status != OK:  # f is not smooth here, perhaps: be content with what there is
            polynomial(w.plain_P, w.K, 1.0, w.Q)
            to_powers(w.basis, w.Q)
            return OK
    polynomial(w.P, w.K, 1.0, w.Q)
    to_powers(w.basis, w.Q)
    return OK


@kernel
def further_stage(w, i, t, h):
    """Both slopes of a further stage, rows 2s + 2i and 2s + 2i + 1."""
    n = w.y.shape[0]
    row = 2 * w.stages + 2 * i
    combine(w.extra_A[i], w.K, row, w.base)
    for m in range(n):
        w.base[m] += w.y_old[m]
    combine(w.extra_start[i], w.K, row, w.residual[0])
    copy(w.residual[0], w.K[row + 1])
    before = np.inf
    for _ in range(DENSE_ITERATIONS):
        norm = improve(w, row + 1, t, h)
        if norm < 0.0:
            return FUNCTION_RAISED
        slow = not norm <= DENSE_RATE * before
        before = norm
        if norm <= 0.1 * w.newton_tolerance or (slow and norm <= w.newton_tolerance):
            return slope_of_explicit(w, row, row + 1, t, h)
        if slow:
            return NEWTON_FAILED
    return NEWTON_FAILED
