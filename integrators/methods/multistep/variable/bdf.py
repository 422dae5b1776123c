"""Backward differentiation with variable order and step, for M y′ = f(t, y).

The *predictor* P is the polynomial of degree q through the last q + 1 values. The new value
y = P(t₊) + Δ satisfies

    M (h P′(t₊) + α Δ) = h f(t₊, y),                  α = (1 − κ_q)(1 + 1/2 + … + 1/q),

where α is what it would be with equal steps (the *fixed leading coefficient* of
:cite:`jackson1980`), so that M − (h/α) J is factorised again only when h or q changes. κ = 0 is
the BDF; the κ of the *numerical differentiation formulas* (:cite:`shampine1997`) make the error
smaller at hardly less stability. Δ is a measure of the error as well: if y were a polynomial of
degree q + 1, the error would be

    Δ (σ/α − 1),        σ = Σⱼ h/(t₊ − tⱼ) over the q + 1 past times,

and likewise for other orders, with their own predictors: that is how the order is chosen.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

from ....kernels import kernel
from ....stepping.dense import copy, evaluate, slope_at_start
from ....stepping.norms import error_norm
from ....stepping.state import FUNCTION_RAISED, NEWTON_FAILED, OK
from ....stepping.stiffness import watch_implicit
from ...runge_kutta.implicit.step import (
    converged,
    factorise,
    implicit_norm,
    jacobian_at_x,
    recall_rate,
    solve_real,
    times_mass,
)
from .interpolation import (
    begin_lagrange,
    extrapolate,
    keep_value,
    past_to_powers,
    slope_weights,
)
from .proposals import growth, propose

__all__ = ["bdf_accept", "bdf_dense", "bdf_refine", "bdf_step"]

NEWTON_SHARE = 0.1  # of the tolerance that Newton's iteration may leave
KEPT_MATRIX = 0.3  # relative change of h/α for which large systems keep their factors
WORN_RATE = 0.15  # a Jacobian by which the iteration converges more slowly is evaluated again …
OLDEST = 30  # … as is one that has served so many steps
LEAST_ERROR = 0.5  # of the error constant with equal steps: unequal ones can make it vanish
FAILURES_TO_LOWER, FAILURES_TO_RESTART = 2, 4
BIAS_SAME, BIAS_LOWER, BIAS_HIGHER = 2.0, 2.5, 3.5  # errors are taken for so many times larger
WORTHWHILE, WORTHWHILE_LARGE = 1.2, 1.35  # steps longer by less are not worth a factorisation
GROWTH_AT_START, GROWTH = 10.0, 4.0


@kernel
def leading(w, q):
    """α of the formula of order q."""
    total = 0.0
    for j in range(1, q + 1):
        total += 1.0 / j
    return (1.0 - w.kappa[q]) * total


@kernel
def error_constant(w, q, t_new, h):
    """Local error over Δ of order q, from the last q + 1 times."""
    sigma = 0.0
    for j in range(q + 1):
        sigma += h / (t_new - w.past_t[j])
    alpha = leading(w, q)
    equal = (1.0 / (q + 1) + alpha / (1.0 - w.kappa[q]) * w.kappa[q]) / alpha
    return max(abs(sigma / alpha - 1.0), LEAST_ERROR * equal)


@kernel
def bdf_step(w, t, h):
    """y_new and the error estimate of one step of length h from (t, y)."""
    status = prepare_past(w, t, h)
    if status != OK:
        return status
    q = w.order_now
    t_new = t + h
    begin_lagrange(w.past_t, q, t_new, w.value_weights)
    slope_weights(w.past_t, q, t_new, h, w.value_weights, w.rate_weights)
    extrapolate(w.past, w.value_weights, q, 1.0, w.predicted)
    extrapolate(w.past, w.rate_weights, q, 0.0, w.predicted_rate)
    constant = error_constant(w, q, t_new, h)
    w.newton_tolerance = max(NEWTON_SHARE / constant, w.newton_floor)
    status = solve_for_new(w, t_new, h, leading(w, q))
    if status != OK:
        return status
    for m in range(w.y.shape[0]):
        w.error[m] = constant * (w.y_new[m] - w.predicted[m])
    w.norm = implicit_norm(w, w.error, h)
    w.norm_known = 1
    w.exponent = 1.0 / (q + 1)
    return OK


@kernel
def prepare_past(w, t, h):
    """See to it that there is a past, and that it ends now; lower the order in trouble."""
    if w.last_rejected == 0:
        w.failures = 0
    elif w.have_start == 1:
        w.failures += 1
        if w.failures >= FAILURES_TO_RESTART:
            w.have_start = 0
        elif w.failures >= FAILURES_TO_LOWER:
            w.order_now = max(1, w.order_now - 1)
            w.steps_at_order = 0
    if w.have_start == 1 and w.past_known > 1:
        copy(w.y, w.past[0])  # it may have been projected since
        return OK
    return begin_past(w, t, h)


@kernel
def begin_past(w, t, h):
    """Order 1, from the slope: a value one step before that would lead here along it."""
    if slope_at_start(w, t) != OK:
        return FUNCTION_RAISED
    if w.has_mass == 1:
        status = rate_with_mass(w, t, h)
        if status != OK:
            return status
    else:
        copy(w.f0, w.predicted_rate)
    w.past_t[0] = t
    copy(w.y, w.past[0])
    w.past_t[1] = t - h
    for m in range(w.y.shape[0]):
        w.past[1, m] = w.y[m] - h * w.predicted_rate[m]
    w.past_known = 1
    w.order_now = 1
    w.have_start = 1
    w.steps_at_order = 0
    return OK


@kernel
def rate_with_mass(w, t, h):
    """y′ where that is determined, also of algebraic components of index 1.

    One solution with M − hJ would predict the step itself, if f is linear, and its error would go
    unseen; the second leaves a difference of second order in h.
    """
    status = matrices_at(w, t, w.y, h)
    copy(w.f0, w.real_rhs)
    for m in range(w.y.shape[0]):
        w.predicted_rate[m] = 0.0
    for solution in range(2):
        if status == OK:
            status = solve_real(w, 0)
        if status != OK:
            break
        for m in range(w.y.shape[0]):
            w.predicted_rate[m] += w.real_rhs[m]
        if solution == 0:
            status = times_mass(w, w.predicted_rate, w.real_rhs)
            for m in range(w.y.shape[0]):
                w.real_rhs[m] = w.f0[m] - w.real_rhs[m]
    return status


@kernel
def matrices_at(w, t, y, gamma):
    """J at (t, y), and M − γJ factorised."""
    copy(y, w.x)
    status = jacobian_at_x(w, t)
    if status != OK:
        return status
    w.newton_memory = 1.0
    return factorise(w, gamma)


@kernel
def solve_for_new(w, t_new, h, alpha):
    """Newton's iteration for y_new, with a new Jacobian if an old one fails."""
    gamma = h / alpha
    copy(w.y, w.y_new)  # norms look at it
    w.jacobian_current = 0
    status = NEWTON_FAILED
    for trial in range(2):
        if trial == 1 or w.have_jacobian == 0:
            if w.jacobian_current == 1 or w.constant_jacobian * w.have_jacobian == 1:
                break
            status = matrices_at(w, t_new, w.predicted, gamma)
        elif w.h_factored == 0.0 or abs(gamma / w.h_factored - 1.0) > w.matrix_slack:
            status = factorise(w, gamma)
        else:
            status = OK
        if status == OK:
            status = iterate(w, t_new, h, alpha, gamma)
        if status != NEWTON_FAILED:
            break
    if status == NEWTON_FAILED:
        w.newton_factor = 0.25
    elif status != OK:
        w.h_factored = 0.0
    return status


@kernel
def iterate(w, t_new, h, alpha, gamma):
    """y_new = predicted + Δ with M (predicted_rate + αΔ) = h f(t_new, y_new)."""
    n = w.y.shape[0]
    copy(w.predicted, w.y_new)
    relaxed = 2.0 / (alpha * (1.0 + gamma / w.h_factored))  # for factors of another γ
    recall_rate(w)
    for iteration in range(w.max_newton):
        w.nnewton += 1
        w.newton_last = iteration + 1
        copy(w.y_new, w.x)
        if evaluate(w, t_new) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.big)
        for m in range(n):
            w.saved[m] = w.predicted_rate[m] + alpha * (w.y_new[m] - w.predicted[m])
        status = times_mass(w, w.saved, w.real_rhs)
        if status != OK:
            return status
        for m in range(n):
            w.real_rhs[m] = (h * w.big[m] - w.real_rhs[m]) * relaxed
        status = solve_real(w, 0)
        if status != OK:
            return status
        for m in range(n):
            w.y_new[m] += w.real_rhs[m]
        verdict = converged(w, implicit_norm(w, w.real_rhs, h), iteration, w.newton)
        if verdict == 1:
            return OK
        if verdict == -1:
            break
    return NEWTON_FAILED


# -------------------------------------------------------------------- order and step


@kernel
def error_of_order(w, q, t_new, h):
    """Norm of the error that the formula of order q would have made in the step to y_new."""
    begin_lagrange(w.past_t, q, t_new, w.value_weights)
    extrapolate(w.past, w.value_weights, q, 1.0, w.big)
    for m in range(w.y.shape[0]):
        w.big[m] = w.y_new[m] - w.big[m]
    return error_constant(w, q, t_new, h) * error_norm(w, w.big, h)


@kernel
def bdf_refine(w, t, h):
    """After a step with too large an error: a lower order, if its error is smaller."""
    q = w.order_now
    if q > 1 and w.failures == 0 and error_of_order(w, q - 1, t + h, h) < w.norm:
        w.order_now = q - 1
        w.steps_at_order = 0
        w.exponent = 1.0 / q
    return 0


@kernel
def bdf_accept(w, t, h):
    """After an accepted step: keep its value; choose the next order and length."""
    q = w.order_now
    t_new = w.t
    w.step_order = q
    best = q
    most = growth(w.norm, BIAS_SAME, q)
    w.steps_at_order += 1
    if w.steps_at_order > q:
        if q > 1:
            lower = growth(error_of_order(w, q - 1, t_new, h), BIAS_LOWER, q - 1)
            if lower > most:
                best, most = q - 1, lower
        if q < w.highest_order and w.past_known >= q + 2:
            higher = growth(error_of_order(w, q + 1, t_new, h), BIAS_HIGHER, q + 1)
            if higher > most:
                best, most = q + 1, higher
    longest = GROWTH_AT_START if w.past_known <= 2 else GROWTH
    worthwhile = WORTHWHILE if w.external_algebra == 0 else WORTHWHILE_LARGE
    propose(w, h, q, best, most, longest, worthwhile)
    w.jacobian_age += 1
    worn = w.newton_rate > WORN_RATE or w.jacobian_age >= OLDEST
    if worn and w.constant_jacobian == 0:
        w.have_jacobian = 0
    watch_implicit(w, h)
    keep_value(w, t_new, w.y)
    return OK


@kernel
def bdf_dense(w, t, h):
    """The polynomial through the new and the last q values."""
    past_to_powers(w, w.step_order, t, h)
    return OK
