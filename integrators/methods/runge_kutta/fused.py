"""A whole explicit step as one piece of machine code, made from the step in ``explicit``.

For a right-hand side that is machine code, the kernel :func:`~.explicit.explicit_step` and the
norm of its error estimate are run on symbols: what comes out is the step of *this* tableau, without
loops over stages and without zero coefficients. A right-hand side that is small enough is traced
along, and subexpressions are shared between stages; a larger one is called. The same trace serves
single runs and, compiled in lanes, many at once (``integrators.many.lanes``).

The traced function has the arguments t, y and q = (p, rtol, address of f, atol, f(t, y), h) and the
results (norm, y_new, K₁ … K_s), one behind the other; where nobody looks at the stages, without
them or with the last only. Only FSAL methods are given f(t, y); the others evaluate it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ...kernels import kernel
from ...kernels.pointers import call
from ...stepping.dense import polynomial, slope_at_start, to_powers
from ...stepping.norms import norm_of_estimate
from ...stepping.state import (
    ESTIMATE_DOUBLING,
    ESTIMATE_EMBEDDED,
    ESTIMATE_TWO,
    FUNCTION_RAISED,
    OK,
    State,
)
from ...tableau import Tableau
from ...tableau.extension import dense_extension, in_powers
from .explicit import explicit_step, further_slopes

__all__ = [
    "fused_dense_function",
    "fused_step",
    "fused_step_function",
    "inputs_size",
    "outputs_size",
]

LARGEST = 6000  # operations with f inside; larger steps compile too long for what they gain
LARGEST_AROUND = 8000  # operations around calls of f; the generic step loses little then


def inputs_size(n: int, k: int) -> int:
    """Length of q: p, rtol, address of f, atol, f(t, y), h."""
    return k + 3 + 2 * n


def outputs_size(n: int, kept: int) -> int:
    """Length of the results: norm, y_new, the last stages."""
    return 1 + n + kept * n


def fused_step_function(
    f: Any, tableau: Tableau, k: int, max_norm: bool, kept: int, around: int = LARGEST_AROUND
) -> Any:
    """Trace one step of a tableau with the traced function f of k parameters.

    Returns a traced function of (t, y, q), or None where it would be too large: more than `around`
    operations around calls of f. The last `kept` stages are part of its results.
    """
    # Stored with f, so that it is gone when f is.
    key = ("step", tableau, k, max_norm, kept, around)
    return f._derive(key, lambda: _trace_step(f, tableau, k, max_norm, kept, around))


def _trace_step(
    f: Any, tableau: Tableau, k: int, max_norm: bool, kept: int, largest_around: int
) -> Any:
    from ...tracing import traced

    s, n = tableau.stages, f.n
    around = 2 * n * (np.count_nonzero(tableau.arrays[0]) + 3 * s)
    inside = s * f.operations()["total"] + around <= LARGEST
    if not inside and around > largest_around:
        return None

    def step(t: Any, y: Any, q: Any) -> Any:
        h = q[k + 2 + 2 * n]
        w = _symbolic_workspace(tableau, n, _slope_function(f, k, inside), q[:k])
        w.y, w.rtol, w.atol, w.max_norm = y, q[k], q[k + 2 : k + 2 + n], max_norm
        if tableau.fsal:
            w.f0[:], w.f0_current = q[k + 2 + n : k + 2 + 2 * n], 1
        explicit_step(w, t, h)
        norm = 0.0 * h if tableau.error_weights is None else norm_of_estimate(w, h)
        return np.concatenate([np.array([norm]), w.y_new, *w.K[s - kept :]])

    return traced(step, n=n, params=inputs_size(n, k), outputs=outputs_size(n, kept))


def fused_dense_function(f: Any, tableau: Tableau, k: int) -> Any:
    """Trace the dense output of a step, Q of ``explicit_dense``, from its results with all stages.

    Its arguments are t, the results, and (q, y), one behind the other. Behind Q stands the sum of
    all its entries, which tells whether they are finite.
    """
    key = ("dense", tableau, id(tableau.dense), k)
    return f._derive(key, lambda: _trace_dense(f, tableau, k))


def _trace_dense(f: Any, tableau: Tableau, k: int) -> Any:
    from ...tracing import traced

    s, n = tableau.stages, f.n
    extension = dense_extension(tableau)
    A, _, c = tableau.arrays
    extra, degree = len(extension.c_extra), extension.P.shape[1]
    rows = np.pad(A, (0, extra))
    for i, row in enumerate(extension.A_extra):
        rows[s + i, : len(row)] = row

    def dense(t: Any, results: Any, q: Any) -> Any:
        h, y = q[inputs_size(n, k) - 1], q[inputs_size(n, k) :]
        slope = _slope_function(f, k, extra * f.operations()["total"] <= LARGEST)
        w = _symbolic_workspace(tableau, n, slope, q[:k])
        w.A, w.c, w.P, w.basis = (
            rows,
            np.append(c, extension.c_extra),
            extension.P,
            in_powers(degree),
        )
        w.K = np.zeros((s + extra, n), dtype=object)
        w.K[:s] = np.asarray(results[1 + n :]).reshape(s, n)
        w.y, w.y_old, w.Q = y, y, np.zeros((degree, n), dtype=object)
        w.extra_stages = extra
        further_slopes(w, t, h)
        for m in range(n):  # one after the other, so that its slopes stay in registers
            polynomial(w.P, w.K[:, m : m + 1], 1.0, w.Q[:, m : m + 1])
            to_powers(w.basis, w.Q[:, m : m + 1])
            w.Q[:, m] = h * w.Q[:, m]
        return np.append(w.Q.ravel(), w.Q.sum())

    sizes = {"n": outputs_size(n, s), "params": inputs_size(n, k) + n, "outputs": degree * n + 1}
    return traced(dense, **sizes)


def _slope_function(f: Any, k: int, inside: bool) -> Any:
    """f as the kernels call it, as part of what is traced or called by its address."""
    from ...tracing.outside import call_outside

    def slope(t: Any, x: Any, p: Any, out: Any) -> None:
        if inside:
            out[:] = f(t, x.copy(), p) if k else f(t, x.copy())
        else:
            out[:] = call_outside(k + 1, t, x)

    return slope


def _symbolic_workspace(tableau: Tableau, n: int, f: Any, p: Any) -> Any:
    """What the kernels of an explicit step ask of a workspace, with room for symbols."""
    e, low = tableau.error_weights, tableau.low_error_weights
    estimate = ESTIMATE_DOUBLING if e is None else ESTIMATE_EMBEDDED
    A, b, c = tableau.arrays
    vectors = ("x", "dx", "f0", "y_new", "error", "error_low")
    numbers = dict.fromkeys(State.FIELDS, 0)
    numbers.update(stages=tableau.stages, f_native=1)
    numbers["estimate_kind"] = estimate if low is None else ESTIMATE_TWO
    return SimpleNamespace(
        **numbers,
        **{name: np.zeros(n, dtype=object) for name in vectors},
        **{"A": A, "b": b, "c": c, "e": e, "e_low": low, "f": f, "p": p},
        K=np.zeros((tableau.stages, n), dtype=object),
        index=np.zeros(0, dtype=np.int64),
        flag=[1],
    )


@kernel
def fused_step(w, t, h):
    """y_new and the error estimate of one step of length h from (t, y)."""
    w.norm_known = 0
    if w.limited == 1:
        return explicit_step(w, t, h)  # the stages must not look beyond a jump
    if w.fsal == 1:
        if slope_at_start(w, t) != OK:
            return FUNCTION_RAISED
    elif w.f0_current == 0:  # evaluated below; only counted here
        w.nfev += 1 - w.have_f1
        w.have_f1 = 0
        w.f0_current = 1
    w.fused_in[w.p.shape[0]] = w.rtol
    w.fused_in[w.p.shape[0] + 2 + 2 * w.y.shape[0]] = h
    call(w.fused, t, w.y, w.fused_in, w.fused_out)
    w.nfev += w.stages - 1
    if w.estimate_kind == ESTIMATE_EMBEDDED or w.estimate_kind == ESTIMATE_TWO:
        w.norm = w.fused_out[0]
        w.norm_known = 1
    return OK
