"""A whole explicit step as one piece of machine code.

For a traced right-hand side, the stages, the new state and the error estimate of a tableau are
traced together: no loop over stages, no zero coefficients, common subexpressions shared between
stages. The step is the same as that of ``explicit``, to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..kernels import kernel
from ..tableau import Tableau
from .common import copy, slope_at_start
from .explicit import explicit_dense, explicit_step
from .pointers import call
from .state import (
    ESTIMATE,
    ESTIMATE_DOUBLING,
    ESTIMATE_TWO,
    FSAL,
    FUNCTION_RAISED,
    NFEV,
    OK,
    STAGES,
    STAGES_APART,
    T_LIMIT,
)

__all__ = ["FIRST_STAGE", "fused_dense", "fused_step", "fused_step_function"]

LARGEST = 6000  # operations; larger steps compile too long for what they gain

# Rows of the result: y_new, the two error estimates, then the stages from the second on.
Y_NEW, ERROR, ERROR_LOW, FIRST_STAGE = range(4)

_made: WeakKeyDictionary[Any, dict[Tableau, Any]] = WeakKeyDictionary()


def fused_step_function(f: Any, tableau: Tableau, k: int) -> Any:
    """Trace one step of a tableau with the traced function f of k parameters.

    Returns a traced function of (t, y, [p, h, f(t, y)]), or None where it would be too large.
    """
    known = _made.setdefault(f, {})
    if tableau not in known:
        known[tableau] = _trace_step(f, tableau, k)
    return known[tableau]


def _trace_step(f: Any, tableau: Tableau, k: int) -> Any:
    from ..tracing import traced

    A, b, c = tableau.arrays
    s, n = tableau.stages, f.n
    arithmetic = 2 * n * (np.count_nonzero(A) + 3 * s)
    if s * f.operations()["total"] + arithmetic > LARGEST:
        return None
    e, e_low = tableau.error_weights, tableau.low_error_weights
    zeros = np.zeros(s)

    def step(t: Any, y: Any, q: Any) -> Any:
        p, h = q[:k], q[k]
        K = [q[k + 1 :]]
        for i in range(1, s):
            x = y + h * _combination(A[i], K)
            K.append(f(t + c[i] * h, x, p) if k else f(t + c[i] * h, x))
        y_new = y + h * _combination(b, K)
        error = h * _combination(zeros if e is None else e, K)
        low = h * _combination(zeros if e_low is None else e_low, K)
        return np.concatenate([y_new, error, low, *K[1:]])

    return traced(step, n=n, params=k + 1 + n, outputs=(FIRST_STAGE + s - 1) * n)


def _combination(weights: NDArray[Any], K: Sequence[Any]) -> Any:
    total = 0.0 * K[0]
    for a, stage in zip(weights, K):
        if a != 0:
            total = total + a * stage
    return total


@kernel
def fused_step(w, t, h):
    """y_new and the error estimate of one step of length h from (t, y)."""
    w.count[STAGES_APART] = 0
    if np.isfinite(w.clock[T_LIMIT]):
        return explicit_step(w, t, h)  # the stages must not look beyond a jump
    if slope_at_start(w, t) != OK:
        return FUNCTION_RAISED
    n = w.y.shape[0]
    k = w.p.shape[0]
    s = w.count[STAGES]
    w.fused_in[k] = h
    for m in range(n):
        w.fused_in[k + 1 + m] = w.f0[m]
    call(w.fused, t, w.y, w.fused_in, w.fused_out)
    w.count[NFEV] += s - 1
    copy(w.fused_out[Y_NEW], w.y_new)
    if w.count[ESTIMATE] != ESTIMATE_DOUBLING:
        copy(w.fused_out[ERROR], w.error)
        if w.count[ESTIMATE] == ESTIMATE_TWO:
            copy(w.fused_out[ERROR_LOW], w.error_low)
    w.count[STAGES_APART] = 1
    if w.count[FSAL] == 1:
        copy(w.fused_out[FIRST_STAGE + s - 2], w.K[s - 1])
    return OK


@kernel
def fused_dense(w, t, h):
    """Coefficients Q of the dense output of the last accepted step, from t of length h."""
    if w.count[STAGES_APART] == 1:
        copy(w.f0, w.K[0])
        for i in range(1, w.count[STAGES]):
            copy(w.fused_out[FIRST_STAGE + i - 1], w.K[i])
    return explicit_dense(w, t, h)
