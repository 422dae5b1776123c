"""One step by the Taylor series of the solution, as kernels.

K[j] holds the j-th Taylor coefficient of the solution through (t, y). A step sums the series. Its
length is proposed from the last few coefficients, and its error is measured by the *defect*, how
badly the polynomial p satisfies the equation at its end:

    d = p'(h) − f(t + h, p(h)) ≈ (N + 1) c_{N+1} hᴺ,        error ≈ h d / (N + 1).

Unlike a rule that looks at coefficients alone, this cannot be fooled when some of them happen to
vanish (a pendulum released at rest has no odd ones).
"""

from __future__ import annotations

import numpy as np

from ..control import MAX_FACTOR, SAFETY
from ..kernels import kernel
from .common import copy, error_norm, evaluate, output_is_due
from .pointers import call
from .state import (
    ESTIMATE,
    ESTIMATE_NONE,
    F0_CURRENT,
    FUNCTION_RAISED,
    NSERIES,
    OK,
    H,
    T,
)

TERMS_ASKED = 4  # the step is proposed from so many of the last coefficients


@kernel
def compute_series(w, t):
    """Fill K for the current (t, y), unless that has been done."""
    if w.count[F0_CURRENT] == 1 and w.count[NSERIES] > 0:
        return
    copy(w.y, w.x)
    call(w.series, t, w.x, w.p, w.K)
    w.count[NSERIES] += 1
    w.count[F0_CURRENT] = 1


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
    if w.count[ESTIMATE] == ESTIMATE_NONE:
        return OK
    copy(w.y_new, w.x)
    if evaluate(w, t + h) != OK:
        return FUNCTION_RAISED
    for m in range(n):
        w.error[m] = h * (w.error[m] - w.dx[m]) / (order + 1)
    return OK


@kernel
def series_accept(w, t, h):
    """Dense output of the step just done, then the next series, which proposes the next step."""
    if output_is_due(w):
        fill_dense(w, h)
    if w.count[ESTIMATE] == ESTIMATE_NONE:
        return OK
    compute_series(w, w.clock[T])
    order = w.K.shape[0] - 1
    # Terms shrink like whole·(h/R)ʲ with the radius of convergence R, in units of the tolerance;
    # the first one left out should be just 1.
    whole = np.log(max(1.0, error_norm(w, w.K[0], h)))
    radius = np.inf  # all of this in logarithms
    for j in range(max(1, order - TERMS_ASKED + 1), order + 1):
        size = error_norm(w, w.K[j], h)
        if size > 0.0:
            radius = min(radius, (whole - np.log(size)) / j)
    proposed = w.control[SAFETY] * np.exp(radius - whole / (order + 1))
    w.clock[H] = min(proposed, w.control[MAX_FACTOR] * abs(h))
    return OK


@kernel
def fill_dense(w, h):
    """The Taylor polynomial itself."""
    power = 1.0
    for j in range(w.Q.shape[0]):
        power *= h
        for m in range(w.Q.shape[1]):
            w.Q[j, m] = power * w.K[j + 1, m]


@kernel
def series_dense(w, t, h):
    """Nothing left to do: Q was filled on acceptance."""
    return OK
