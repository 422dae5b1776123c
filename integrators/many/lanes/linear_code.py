"""Steps of Rosenbrock methods in lanes, as machine code.

What ``rosenbrock.step`` does for one run is here one traced function, with the arguments and
results of an explicit step (``runge_kutta.fused``): no iteration has to wait for the slowest lane.
J and ∂f/∂t are evaluated at every step, and the matrix is inverted as in ``newton_code``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ...methods.runge_kutta.fused import outputs_size
from ...methods.runge_kutta.implicit.inside import is_sudden
from ...stepping.norms import norm_of_estimate
from ...tableau.implicit_extension import InnerCheck
from ...tableau.rosenbrock import Rosenbrock
from ...tableau.rosenbrock_extension import rosenbrock_check
from .judge import ROWS, Block
from .newton_code import LARGEST_INLINED, combined, growth_of_defect
from .small_inverse import inverse

__all__ = ["linear_step_function"]

LARGEST_STATES = 10  # whose matrices are inverted by straight-line code


def linear_step_function(
    f: Any, method: Rosenbrock, k: int, max_norm: bool, fixed: bool = False
) -> Any:
    """Trace one step with the traced function f of k parameters.

    Returns a function of (t, y, q) as ``fused_step_function``, or None where it would be too large.
    """
    sizes = (g.operations()["total"] for g in (f, f.jacobian(), f.time_derivative()))
    if f.n > LARGEST_STATES or max(sizes) > LARGEST_INLINED:
        return None
    key = ("linear step", method, k, max_norm, fixed)
    inner = None if fixed else rosenbrock_check(method)
    return f._derive(key, lambda: _trace_step(f, method, k, max_norm, inner))


def _trace_step(
    f: Any, method: Rosenbrock, k: int, max_norm: bool, inner: InnerCheck | None
) -> Any:
    from ...tracing import traced, where

    n, table, block = f.n, method.computed, Block(f.n, k)
    gamma = float(table["gamma"][0])

    def inside(w: Any, t: Any, h: Any, p: Any, K: Any, R: Any, q: Any) -> tuple[Any, Any]:
        """Stiff part of the defect, as ``implicit.inside``: its norm, weighted and as it is."""
        assert inner is not None
        slope = np.asarray(f(t + inner.node * h, w.y + combined(inner.value, K), *p))
        w.error = R @ (h * slope - combined(inner.slope, K))
        for _ in range(max(1, method.order - 1)):
            w.error = w.error - (R @ w.error) / gamma
        # `InnerCheck.weight` of rtol, which differs from lane to lane
        spared = (method.order - inner.order) / (method.order + 1)
        known = w.rtol > 0.0
        weight = np.minimum(np.exp(spared * np.log(where(known, w.rtol, 1.0))), 1.0)
        defect, strict = norm_of_estimate(w, h), where(known, 1.0, 0.0)
        growth = growth_of_defect(h, row(q, "H_LAST"), inner.order)
        sudden = is_sudden(defect, strict, row(q, "INSIDE_BEFORE"), growth)
        return where(sudden, strict, weight) * defect, defect

    def row(q: Any, name: str) -> Any:
        return q[block.lane.start + ROWS[name]]

    def step(t: Any, y: Any, q: Any) -> Any:
        h, p = q[k + 2 + 2 * n], (q[:k],) if k else ()
        by_time = h * np.asarray(f.time_derivative()(t, y, *p))
        J = np.asarray(f.jacobian()(t, y, *p)).reshape(n, n)
        R, _, sound = inverse(np.eye(n) - (h * gamma) * J, None)
        R = gamma * R
        K = np.zeros((method.stages, n), dtype=object)
        for i in range(method.stages):  # (IV.7.25), see ``rosenbrock.step``
            slope = np.asarray(f(t + table["c"][i] * h, y + combined(table["A"][i], K), *p))
            K[i] = R @ (h * (slope + table["d"][i] * by_time) + combined(table["C"][i], K))
        w = SimpleNamespace(estimate_kind=0, pairs=0, index=np.zeros(0), max_norm=int(max_norm))
        w.y, w.rtol, w.atol = y, q[k], q[k + 2 : k + 2 + n]
        w.y_new, w.error = y + combined(table["m"], K), combined(table["e"], K)
        norm = norm_of_estimate(w, h)
        defect: Any = 0.0 * h
        if inner is not None:
            weighted, defect = inside(w, t, h, p, K, R, q)
            norm = where(norm < 1.0, np.maximum(norm, weighted), norm)
        return np.array([where(sound, norm, np.inf), *w.y_new, defect])

    return traced(step, n=n, params=block.size, outputs=outputs_size(n, 0) + 1)
