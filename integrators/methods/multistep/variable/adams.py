"""Adams–Bashforth–Moulton with variable order and step, as predictor and corrector (PECE).

The past is one of slopes. With S the polynomial through the last q of them, and w its nodes'
polynomial, a step of length h is

    p = y + h ∫ S,      y₊ = p + h γ_q φ_q,      φ_q = f(t₊, p) − S(t₊),      γ_q = ∫ w / w(t₊):

the corrector is the Moulton formula with q + 1 slopes, of order q + 1, and its difference from the
one of order q, h (γ_{q−1} − γ_q) φ_q, is the error estimate (:cite:`shampine1975`). The same with
other q serves to choose the order. Integrals are sums by Gauss, exact for these degrees.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

from ....kernels import kernel
from ....stepping.dense import copy, evaluate, slope_at_end, slope_at_start
from ....stepping.norms import error_norm
from ....stepping.state import FUNCTION_RAISED, OK
from .interpolation import basis_polynomial, begin_lagrange, keep_value
from .proposals import growth, propose

__all__ = ["adams_accept", "adams_dense", "adams_refine", "adams_step"]

FAILURES_TO_RESTART = 3
BIAS_SAME, BIAS_LOWER, BIAS_HIGHER = 2.0, 2.0, 2.5  # errors are taken for so many times larger
WORTHWHILE = 1.1
GROWTH = 2.0
LARGEST_WEIGHTS = 1e5  # sum of their moduli; with equal steps it is 1.2e3 for order 12


@kernel
def adams_step(w, t, h):
    """y_new and the error estimate of one step of length h from (t, y)."""
    if slope_at_start(w, t) != OK:
        return FUNCTION_RAISED
    remember_slope(w, t)
    n = w.y.shape[0]
    while bashforth_weights(w, w.order_now, t, h) > LARGEST_WEIGHTS:
        w.order_now -= 1  # times too unequal: rounding errors would be magnified
    q = w.order_now
    for m in range(n):
        newest = w.past[0, m]
        total = 0.0
        for j in range(q - 1, 0, -1):
            total += w.rate_weights[j] * (w.past[j, m] - newest)
        w.predicted[m] = w.y[m] + h * (total + newest)
    copy(w.predicted, w.x)
    if evaluate(w, t + h) != OK:
        return FUNCTION_RAISED
    copy(w.dx, w.predicted_rate)
    differ(w, q, t + h)
    moulton = moulton_weight(w, q, t, h)
    for m in range(n):
        w.y_new[m] = w.predicted[m] + h * moulton * w.big[m]
    w.norm = error_of_order(w, q, t, h)
    w.norm_known = 1
    w.exponent = 1.0 / (q + 1)
    return OK


@kernel
def remember_slope(w, t):
    """Enter the slope at the start of the step, unless this is another attempt at it."""
    if w.last_rejected == 0:
        w.failures = 0
    elif w.have_start == 1:
        w.failures += 1
        if w.failures >= FAILURES_TO_RESTART:
            w.have_start = 0
    if w.have_start == 0:
        w.past_known = 0
        w.order_now = 1
        w.steps_at_order = 0
        w.starting = 1
        w.have_start = 1
    elif w.past_t[0] == t:
        copy(w.f0, w.past[0])
        return
    keep_value(w, t, w.f0)


@kernel
def bashforth_weights(w, q, t, h):
    """Let rate_weights be ∫ℓⱼ over the step, in units of h; return the sum of their moduli."""
    for j in range(q):
        w.rate_weights[j] = 0.0
    for g in range(w.gauss_c.shape[0]):
        begin_lagrange(w.past_t, q - 1, t + w.gauss_c[g] * h, w.value_weights)
        for j in range(q):
            w.rate_weights[j] += w.gauss_b[g] * w.value_weights[j]
    total = 0.0
    for j in range(q):
        total += abs(w.rate_weights[j])
    return total


@kernel
def moulton_weight(w, q, t, h):
    """γ_q = ∫ Πⱼ (τ − tⱼ)/(t₊ − tⱼ) over the step, in units of h; q nodes."""
    total = 0.0
    for g in range(w.gauss_c.shape[0]):
        product = w.gauss_b[g]
        for j in range(q):
            product *= (t + w.gauss_c[g] * h - w.past_t[j]) / (t + h - w.past_t[j])
        total += product
    return total


@kernel
def differ(w, q, t_new):
    """Let big be φ_q: how far the slope at the predicted point is from where S expected it."""
    n = w.y.shape[0]
    copy(w.predicted_rate, w.big)
    if q == 0:
        return
    begin_lagrange(w.past_t, q - 1, t_new, w.value_weights)
    for m in range(n):
        newest = w.past[0, m]
        total = 0.0
        for j in range(q - 1, 0, -1):
            total += w.value_weights[j] * (w.past[j, m] - newest)
        w.big[m] = (w.predicted_rate[m] - newest) - total


@kernel
def error_of_order(w, q, t, h):
    """Norm of the error that order q makes in the step from t."""
    differ(w, q, t + h)
    factor = h * (moulton_weight(w, q - 1, t, h) - moulton_weight(w, q, t, h))
    for m in range(w.y.shape[0]):
        w.error[m] = factor * w.big[m]
    return error_norm(w, w.error, h)


@kernel
def adams_refine(w, t, h):
    """After a step with too large an error: a lower order, if its error is smaller."""
    w.starting = 0
    q = w.order_now
    before = w.norm
    if q > 1 and error_of_order(w, q - 1, t, h) < before:
        w.order_now = q - 1
        w.steps_at_order = 0
        w.exponent = 1.0 / q
    return 0


@kernel
def adams_accept(w, t, h):
    """After an accepted step: choose the next order and length."""
    q = w.order_now
    w.step_order = q
    best = q
    most = growth(w.norm, BIAS_SAME, q)
    w.steps_at_order += 1
    if w.starting == 1 and most > 1.5 and q < w.highest_order and w.last_rejected == 0:
        best = q + 1  # at the start every step doubles, and sees one slope more
    else:
        w.starting = 0
        if q > 1:
            lower = growth(error_of_order(w, q - 1, t, h), BIAS_LOWER, q - 1)
            if lower > most:
                best, most = q - 1, lower
        enough = w.steps_at_order > q and w.past_known >= q + 1
        if best == q and enough and q < w.highest_order and w.last_rejected == 0:
            higher = growth(error_of_order(w, q + 1, t, h), BIAS_HIGHER, q + 1)
            if higher > most:
                best, most = q + 1, higher
    propose(w, h, q, best, most, GROWTH, WORTHWHILE)
    return OK


@kernel
def adams_dense(w, t, h):
    """Integral of the polynomial through the new slope and the last q, led to the new value."""
    if slope_at_end(w) != OK:
        return FUNCTION_RAISED
    q = w.step_order
    n = w.y.shape[0]
    for j in range(w.Q.shape[0]):
        for m in range(n):
            w.Q[j, m] = 0.0
    w.nodes[0] = 1.0  # the new slope; the others are those of the past
    for i in range(1, q + 1):
        w.nodes[i] = (w.past_t[i - 1] - t) / h
    for i in range(q + 1):
        basis_polynomial(w.nodes, q, i, w.powers)
        for j in range(q + 1):
            weight = h * w.powers[j] / (j + 1)
            for m in range(n):
                slope = w.f1[m] if i == 0 else w.past[i - 1, m]
                w.Q[j, m] += weight * slope
    for m in range(n):
        missing = w.y[m] - w.y_old[m]
        for j in range(q + 1):
            missing -= w.Q[j, m]
        w.Q[1, m] += 3.0 * missing
        w.Q[2, m] -= 2.0 * missing
    return OK
