"""A whole Taylor step as one piece of machine code.

For a traced right-hand side of moderate size the following are traced together: the value and the
slope of the polynomial at the end of the step, the series *there*, the defect that the two give
(f at the end is the first coefficient of the new series), its norm, and the length that the new
series proposes for the step to come. A step that is accepted leaves nothing to compute.

The traced function has the arguments t, y and q = (p, rtol, atol, h, c₀ … c_N), the last ones the
coefficients of the series at (t, y), and the results (norm, proposal, c₀ … c_N at the end), where
c₀ is the state.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ...stepping.norms import mean_square
from .step import TERMS_ASKED

__all__ = ["fused_series_function", "inputs_size", "outputs_size"]

LARGEST = 8000  # operations; larger steps compile too long for what they gain


def inputs_size(n: int, k: int, order: int) -> int:
    """Length of q: p, rtol, atol, h, coefficients."""
    return k + 1 + n + 1 + (order + 1) * n


def outputs_size(n: int, order: int) -> int:
    """Length of the results: norm, proposal, coefficients."""
    return 2 + (order + 1) * n


def fused_series_function(f: Any, order: int, k: int, max_norm: bool) -> Any:
    """Trace a step of the Taylor method of an order with the traced f of k parameters.

    Returns a traced function of (t, y, q), or None where it would be too large.
    """
    key = ("series step", order, k, max_norm)
    return f._derive(key, lambda: _trace_step(f, order, k, max_norm))


def _trace_step(f: Any, order: int, k: int, max_norm: bool) -> Any:
    from ...tracing import traced, where
    from ...tracing.calculus.series import unrolled_size

    n = f.n
    series = f.series(order)
    if not series.unrolled or unrolled_size(f.graph, n, order) + 4 * n * order > LARGEST:
        return None

    def step(t: Any, y: Any, q: Any) -> Any:
        p, rtol, atol, h = q[:k], q[k], q[k + 1 : k + 1 + n], q[k + 1 + n]
        c = q[k + 2 + n :].reshape(order + 1, n)
        value, slope = 0.0 * y, 0.0 * y
        for j in range(order, 0, -1):
            slope = slope * h + value
            value = value * h + c[j]
        y_new, slope = value * h + y, slope * h + value
        new = series(t + h, y_new, p) if k else series(t + h, y_new)
        w = SimpleNamespace(atol=atol, rtol=rtol, pairs=0, index=np.zeros(0), max_norm=max_norm)
        w.y, w.y_new = y, y_new
        error = mean_square(w, h * (slope - new[1]) / (order + 1), h)
        # As in `series_step.series_accept`, for the step that follows.
        w.y = y_new
        whole = 0.5 * np.log(np.maximum(mean_square(w, new[0], h), 1.0))
        radius = np.inf
        for j in range(max(1, order - TERMS_ASKED + 1), order + 1):
            term = mean_square(w, new[j], h)
            here = (1.0 / j) * whole - (0.5 / j) * np.log(term)
            radius = np.minimum(radius, where(term > 0.0, here, np.inf))
        proposal = np.exp(radius - whole / (order + 1))
        norm = np.sqrt(error)
        return np.concatenate([np.array([norm, proposal]), new.reshape(-1)])

    size = inputs_size(n, k, order)
    return traced(step, n=n, params=size, outputs=outputs_size(n, order))
