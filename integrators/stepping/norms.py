"""How large an error is: norms in units of the tolerance, for every family of methods.

``w`` is a method's workspace; ``integrators.stepping.workspace`` lists its arrays. What the
explicit step needs of this (:func:`norm_of_estimate`) is traced with it, so it decides nothing by
the values of numbers.
"""

from __future__ import annotations

import numpy as np

from ..kernels import kernel
from .state import ESTIMATE_TWO

__all__ = ["all_finite", "error_norm", "mean_square", "norm_of_estimate"]

TINY = 1e-300  # keeps a state of zeros from dividing by zero
MANY = 64  # components from which on sums are made side by side
LOW_WEIGHT = 0.01  # weight of the second estimate of DOP853, squared


@kernel
def norm_of_estimate(w, h):
    """Norm of the error estimate of an attempt; with two estimates, combined as in DOP853.

    Not finite where the estimate is not.
    """
    high = mean_square(w, w.error, h)
    if w.estimate_kind != ESTIMATE_TWO:
        return np.sqrt(high)
    low = mean_square(w, w.error_low, h)
    return high / np.sqrt(high + LOW_WEIGHT * low + TINY)


@kernel
def mean_square(w, e, h):
    """Square of the weighted norm of e; 1 means: just the tolerance.

    Weights are atol + rtol·max(|y|, |y_new|). Components of differentiation index k > 1 are
    multiplied by h^(k-1), since they cannot be computed any better (as RADAU5 does).
    """
    n = e.shape[0]
    stride = 2 if w.pairs == 1 else 1
    total = 0.0
    for i in range(0, n, stride):
        if stride == 2:  # a complex component is measured by its modulus
            size = np.maximum(np.hypot(w.y[i], w.y[i + 1]), np.hypot(w.y_new[i], w.y_new[i + 1]))
            value = np.hypot(e[i], e[i + 1])
        else:
            size = np.maximum(abs(w.y[i]), abs(w.y_new[i]))
            value = e[i]
        if w.index.shape[0] > 0:
            for _ in range(1, w.index[i]):
                value *= abs(h)
        scaled = value * (1.0 / (w.atol[i] + w.rtol * size))  # 1/… is shared by several norms
        if w.max_norm == 1:
            total = np.maximum(total, scaled * scaled)
        else:
            total += scaled * scaled
    return total if w.max_norm == 1 else total * (stride / n)


@kernel
def error_norm(w, e, h):
    """Weighted norm of e; infinite if it is not a number.

    With fixed steps the norm only serves Newton's iteration, which goes down to the round-off of y
    as a whole.
    """
    if w.fixed == 1:
        size = max(largest(e), largest(w.y), largest(w.x))
        return largest(e) / (w.rtol * size + TINY)
    plain = w.pairs == 0 and w.index.shape[0] == 0 and w.max_norm == 0
    if plain and e.shape[0] >= MANY:
        square = mean_square_of_many(w, e)
    else:
        square = mean_square(w, e, h)
    return np.sqrt(square) if np.isfinite(square) else np.inf


@kernel
def mean_square_of_many(w, e):
    """The same as `mean_square` for large systems: four sums side by side take half the time."""
    n = e.shape[0]
    first = second = third = fourth = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):
        a = e[i] / (w.atol[i] + w.rtol * max(abs(w.y[i]), abs(w.y_new[i])))
        b = e[i + 1] / (w.atol[i + 1] + w.rtol * max(abs(w.y[i + 1]), abs(w.y_new[i + 1])))
        c = e[i + 2] / (w.atol[i + 2] + w.rtol * max(abs(w.y[i + 2]), abs(w.y_new[i + 2])))
        d = e[i + 3] / (w.atol[i + 3] + w.rtol * max(abs(w.y[i + 3]), abs(w.y_new[i + 3])))
        first += a * a
        second += b * b
        third += c * c
        fourth += d * d
    for i in range(whole, n):
        a = e[i] / (w.atol[i] + w.rtol * max(abs(w.y[i]), abs(w.y_new[i])))
        first += a * a
    return (first + second + third + fourth) / n


@kernel
def largest(x):
    """Largest modulus of a component; infinite if one is NaN."""
    result = 0.0
    for i in range(x.shape[0]):
        size = abs(x[i])
        if not np.isfinite(size):
            return np.inf
        result = max(result, size)
    return result


@kernel
def all_finite(x):
    """Whether no component is NaN or infinite."""
    for i in range(x.shape[0]):
        if not np.isfinite(x[i]):
            return False
    return True
