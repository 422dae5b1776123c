"""Watching traced events from inside the loop.

``events.Tracker`` finds the zeros of event functions in Python. Where all of them are machine
code, the loop first has a look itself, at the same samples of each step, and goes back to Python
only for a step that may hold a zero: a change of sign, a value of zero, or a dip towards zero
between samples.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from ..kernels import kernel
from ..kernels.pointers import call
from .dense import copy

__all__ = ["SAMPLES", "dips", "flat", "zero_possible"]

SAMPLES = (0.0, 0.25, 0.5, 0.75, 1.0)  # fractions of the step
FLAT = 100.0  # |g| so many times its variation over the samples does not vanish between them


@kernel
def zero_possible(w):
    """Whether the last accepted step, whose dense output is in Q, may hold a zero of an event.

    If not, ``event_values`` are those at its end.
    """
    t = w.t_previous
    h = w.h_last
    values = w.event_samples
    last = len(SAMPLES) - 1
    for i in range(1, last + 1):
        if i == last:
            copy(w.y, w.x)
        else:
            state_within(w, SAMPLES[i])
        for k in range(values.shape[0]):
            call(w.event_codes[k], t + SAMPLES[i] * h, w.x, w.p, values[k, i:])
    for k in range(values.shape[0]):
        values[k, 0] = w.event_values[k]
        if suspicious(values[k]):
            return True
    for k in range(values.shape[0]):
        w.event_values[k] = values[k, last]
    return False


@kernel
def state_within(w, theta):
    """x = y(t + θh) in the last step, by dense output."""
    for m in range(w.y.shape[0]):
        value = 0.0
        for j in range(w.Q.shape[0] - 1, -1, -1):
            value = (value + w.Q[j, m]) * theta
        w.x[m] = w.y_old[m] + value


@kernel
def suspicious(g):
    """Whether there may be a zero among these samples. NaN is suspicious, too."""
    last = g.shape[0] - 1
    for i in range(1, last + 1):
        if not (np.isfinite(g[i]) and g[i - 1] * g[i] > 0.0):
            return True
    if flat(g):
        return False
    for i in range(1, last):
        if abs(g[i]) <= min(abs(g[i - 1]), abs(g[i + 1])):
            return True
    # Towards zero at once, yet further from it at the next sample; the same before the end.
    return dips(g[0], g[1], g[2], g[3], g[4]) or dips(g[4], g[3], g[2], g[1], g[0])


@kernel
def flat(g):
    """Whether samples on one side of zero differ too little for a dip to reach it between them."""
    least, most = abs(g[0]), abs(g[0])
    for x in g:
        least, most = min(least, abs(x)), max(most, abs(x))
    return least > FLAT * (most - least)


@kernel
def dips(a, b, c, d, e):
    """Whether a curve through five samples turns back from zero before the second.

    The slope at the first is that of the polynomial through all of them.
    """
    slope = -25.0 * a + 48.0 * b - 36.0 * c + 16.0 * d - 3.0 * e
    return abs(a) <= abs(b) and slope * a < 0.0
