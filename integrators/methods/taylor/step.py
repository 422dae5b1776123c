"""One step by the Taylor series of the solution, as kernels.

K[j] holds the j-th Taylor coefficient of the solution through (t, y). A step sums the series. Its
length is proposed from the last few coefficients, and its error is measured by the *defect*, how
badly the polynomial p satisfies the equation at its end:

    d = p'(h) − f(t + h, p(h)) ≈ (N + 1) c_{N+1} hᴺ,        error ≈ h d / (N + 1).

Unlike a rule that looks at coefficients alone, this cannot be fooled when some of them happen to
vanish (a pendulum released at rest has no odd ones). Where the trace shows that f has kinks, the
defect is looked at inside the step as well.
"""

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...kernels.elementary import exp, log
from ...kernels.pointers import call
from ...stepping.dense import copy, evaluate, output_is_due
from ...stepping.norms import error_norm
from ...stepping.state import (
    ESTIMATE_NONE,
    FUNCTION_RAISED,
    OK,
)

PARTS = 8  # of a step whose inside is looked at
TERMS_ASKED = 4  # the step is proposed from so many of the last coefficients

# Variable order: the orders are this far apart …
ORDER_STEP = 2
EXTRA_WORK = 10.0  # … the rest of a step costs as much as so many orders …
STEPS_BEFORE_CHANGE = 4  # … and a change is considered after so many steps
ORDER_MARGIN = 0.01  # gain, as a logarithm, that is worth one


@kernel
def compute_series(w, t):
    """Fill K for the current (t, y), unless that has been done."""
    if w.f0_current == 1 and w.nseries > 0:
        return
    copy(w.y, w.x)
    call(w.series, t, w.x, w.p, w.K)
    w.nseries += 1
    w.f0_current = 1


@kernel
def series_step(w, t, h):
    """y_new and the error estimate of one step of length h from (t, y)."""
    compute_series(w, t)
    order = w.K.shape[0] - 1
    n = w.y.shape[0]
    for m in range(n):
        value = 0.0
        slope = 0.0
        for j in range(order, 0, -1):
            slope = slope * h + value
            value = value * h + w.K[j, m]
        # Now value·h + K[0] is p(h), and slope·h + value is p'(h).
        w.error[m] = slope * h + value
        w.y_new[m] = value * h + w.y[m]
    if w.estimate_kind == ESTIMATE_NONE:
        return OK
    copy(w.y_new, w.x)
    if evaluate(w, t + h) != OK:
        return FUNCTION_RAISED
    for m in range(n):
        w.error[m] = h * (w.error[m] - w.dx[m]) / (order + 1)
    if w.kinks == 0 or not error_norm(w, w.error, h) <= 1.0:
        return OK
    return look_inside(w, t, h)


@kernel
def look_inside(w, t, h):
    """Where f has kinks, the error may be made inside the step: the defect is looked at there, too.

    At the end of a step across a whole flight, the polynomial of a contact may well satisfy the
    equation again, of the next contact. For smooth f, the defect is largest at the end.
    """
    n = w.y.shape[0]
    for k in range(1, PARTS):
        part = h * k / PARTS
        for m in range(n):
            value = 0.0
            slope = 0.0
            for j in range(w.K.shape[0] - 1, 0, -1):
                slope = slope * part + value
                value = value * part + w.K[j, m]
            w.error_low[m] = slope * part + value
            w.x[m] = value * part + w.y[m]
        if evaluate(w, t + part) != OK:
            return FUNCTION_RAISED
        for m in range(n):
            inside = h * (w.error_low[m] - w.dx[m]) / PARTS
            if not abs(inside) <= abs(w.error[m]):
                w.error[m] = inside
    return OK


@kernel
def fused_series_step(w, t, h):
    """The same as one call of machine code, see integrators.methods.taylor.fused."""
    w.norm_known = 0
    if w.limited == 1:
        return series_step(w, t, h)  # the defect must not look beyond a jump
    compute_series(w, t)
    k = w.p.shape[0]
    n = w.y.shape[0]
    w.fused_in[k] = w.rtol
    w.fused_in[k + 1 + n] = h
    call(w.fused, t, w.y, w.fused_in, w.fused_out)
    w.nfev += 1
    w.norm = w.fused_out[0]
    w.norm_known = 1
    return OK


@kernel
def fused_series_accept(w, t, h):
    """Dense output of the step just done; the next series and its proposal are there already."""
    if w.norm_known == 0:
        return series_accept(w, t, h)
    if output_is_due(w):
        fill_dense(w, h)
    copy(w.fused_out[2:], w.fused_in[w.p.shape[0] + 2 + w.y.shape[0] :])  # the new K
    w.nseries += 1
    w.f0_current = 1
    w.h = min(w.safety * w.fused_out[1], w.max_factor * abs(h))
    return OK


@kernel
def series_accept(w, t, h):
    """Dense output of the step just done, then the next series, which proposes the next step."""
    if output_is_due(w):
        fill_dense(w, h)
    if w.estimate_kind == ESTIMATE_NONE:
        return OK
    compute_series(w, w.t)
    order = w.K.shape[0] - 1
    whole = log(max(1.0, error_norm(w, w.K[0], h)))
    radius = radius_seen(w, whole, order)
    length = radius - whole / (order + 1)
    if w.variable_order == 1:
        length = judge_order(w, whole, radius, order, length)
    proposed = w.safety * exp(length)
    w.h = min(proposed, w.max_factor * abs(h))
    return OK


@kernel
def radius_seen(w, whole, order):
    """Logarithm of the radius of convergence R, from the last coefficients up to an order.

    Terms shrink like whole·(h/R)ʲ, in units of the tolerance (whole is a logarithm, too). The
    first one left out should be just 1: log h = log R − whole/(order + 1).
    """
    radius = np.inf
    for j in range(max(1, order - TERMS_ASKED + 1), order + 1):
        size = error_norm(w, w.K[j], 0.0)
        if size > 0.0:
            radius = min(radius, (whole - log(size)) / j)
    return radius


@kernel
def judge_order(w, whole, radius, order, length):
    """Wish for a neighbouring order if it advances faster for its work; returns log h for it.

    A step of order p costs about (p + EXTRA_WORK)². How far a lower order would go is seen from
    its coefficients; for a higher one the radius is extrapolated (that of an entire function
    grows with the order, that of a pole does not).
    """
    w.steps_at_order += 1
    if w.steps_at_order < STEPS_BEFORE_CHANGE or not np.isfinite(radius):
        return length
    below = order - ORDER_STEP
    above = order + ORDER_STEP
    gain = length - 2.0 * log(order + EXTRA_WORK) + ORDER_MARGIN
    smaller = radius_seen(w, whole, below)
    if not np.isfinite(smaller):
        smaller = radius
    up = 2.0 * radius - smaller - whole / (above + 1)
    down = smaller - whole / (below + 1)
    if order > w.lowest_order and down - 2.0 * log(below + EXTRA_WORK) > gain:
        w.order_wish = -1
        return down
    if order < w.highest_order and up - 2.0 * log(above + EXTRA_WORK) > gain:
        w.order_wish = 1
    return length


@kernel
def fill_dense(w, h):
    """The Taylor polynomial itself."""
    power = 1.0
    order = w.K.shape[0] - 1
    for j in range(w.Q.shape[0]):
        power *= h
        for m in range(w.Q.shape[1]):
            w.Q[j, m] = power * w.K[j + 1, m] if j < order else 0.0


@kernel
def series_dense(w, t, h):
    """Nothing left to do: Q was filled on acceptance."""
    return OK
