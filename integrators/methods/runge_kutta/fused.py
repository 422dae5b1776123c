"""A whole explicit step as one piece of machine code.

For a traced right-hand side, the stages, the new state and the norm of the error estimate of a
tableau are traced together: no loop over stages, no zero coefficients, common subexpressions
shared between stages. The step is the same as that of ``explicit``, to rounding. The same trace
serves single runs and, compiled in lanes, many at once (``lanes``).

The traced function has the arguments t, y and q = (p, rtol, atol, f(t, y), h) and the results
(norm, y_new, K₁ … K_s), one behind the other; where nobody looks at the stages, without them or
with the last only. Only FSAL methods are given f(t, y); the others evaluate it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import kernel
from ...kernels.pointers import call
from ...stepping.dense import slope_at_start
from ...stepping.state import (
    ESTIMATE_EMBEDDED,
    ESTIMATE_TWO,
    FUNCTION_RAISED,
    OK,
)
from ...tableau import Tableau
from .explicit import explicit_step

__all__ = ["fused_step", "fused_step_function", "inputs_size", "outputs_size"]

LARGEST = 6000  # operations; larger steps compile too long for what they gain

LOW_WEIGHT = 0.01  # weight of the second estimate of DOP853, squared


def inputs_size(n: int, k: int) -> int:
    """Length of q: p, rtol, atol, f(t, y), h."""
    return k + 2 + 2 * n


def outputs_size(n: int, kept: int) -> int:
    """Length of the results: norm, y_new, the last stages."""
    return 1 + n + kept * n


def fused_step_function(f: Any, tableau: Tableau, k: int, max_norm: bool, kept: int) -> Any:
    """Trace one step of a tableau with the traced function f of k parameters.

    Returns a traced function of (t, y, q), or None where it would be too large. The last `kept`
    stages are part of its results.
    """
    # Stored with f, so that it is gone when f is.
    key = ("step", tableau, k, max_norm, kept)
    return f._derive(key, lambda: _trace_step(f, tableau, k, max_norm, kept))


def _trace_step(f: Any, tableau: Tableau, k: int, max_norm: bool, kept: int) -> Any:
    from ...tracing import traced, where

    A, b, c = tableau.arrays
    s, n = tableau.stages, f.n
    arithmetic = 2 * n * (np.count_nonzero(A) + 3 * s)
    if s * f.operations()["total"] + arithmetic > LARGEST:
        return None
    e, e_low = tableau.error_weights, tableau.low_error_weights

    def step(t: Any, y: Any, q: Any) -> Any:
        p, rtol, atol, h = q[:k], q[k], q[k + 1 : k + 1 + n], q[k + 1 + 2 * n]

        def slope(t: Any, x: Any) -> Any:
            return f(t, x, p) if k else f(t, x)

        K = [q[k + 1 + n : k + 1 + 2 * n] if tableau.fsal else slope(t, y)]
        for i in range(1, s):
            # The newest slope comes last and alone, so that the rest need not wait for it.
            known = y + h * _combination(A[i, : i - 1], K) if i > 1 else y
            K.append(slope(t + c[i] * h, known + (h * A[i, i - 1]) * K[i - 1]))
        y_new = y + h * _combination(b, K)
        # As in `common.error_norm` and `loop.measured_error`.
        weight = 1.0 / (atol + rtol * np.maximum(np.abs(y), np.abs(y_new)))
        norm: Any = 0.0 * h
        if e is not None:
            norm = mean_square(h * _combination(e, K) * weight, max_norm)
            if e_low is None:
                norm = np.sqrt(norm)
            else:
                low = mean_square(h * _combination(e_low, K) * weight, max_norm)
                norm = where(norm == 0.0, norm, norm / np.sqrt(norm + LOW_WEIGHT * low))
        return np.concatenate([np.array([norm]), y_new, *K[s - kept :]])

    return traced(step, n=n, params=inputs_size(n, k), outputs=outputs_size(n, kept))


def _combination(weights: NDArray[Any], K: Sequence[Any]) -> Any:
    total = 0.0 * K[0]
    for a, stage in zip(weights, K):
        if a != 0:
            total = total + a * stage
    return total


def mean_square(scaled: Any, max_norm: bool) -> Any:
    """Square of the norm of scaled errors."""
    squares = scaled * scaled
    total = squares[0]
    for x in squares[1:]:
        total = np.maximum(total, x) if max_norm else total + x
    return total if max_norm else total * (1.0 / len(squares))


@kernel
def fused_step(w, t, h):
    """y_new and the error estimate of one step of length h from (t, y)."""
    w.norm_known = 0
    if np.isfinite(w.t_limit):
        return explicit_step(w, t, h)  # the stages must not look beyond a jump
    if w.fsal == 1:
        if slope_at_start(w, t) != OK:
            return FUNCTION_RAISED
    elif w.f0_current == 0:  # evaluated below; only counted here
        w.nfev += 1 - w.have_f1
        w.have_f1 = 0
        w.f0_current = 1
    w.fused_in[w.p.shape[0]] = w.rtol
    w.fused_in[w.p.shape[0] + 1 + 2 * w.y.shape[0]] = h
    call(w.fused, t, w.y, w.fused_in, w.fused_out)
    w.nfev += w.stages - 1
    if w.estimate_kind == ESTIMATE_EMBEDDED or w.estimate_kind == ESTIMATE_TWO:
        w.norm = w.fused_out[0]
        w.norm_known = 1
    return OK
