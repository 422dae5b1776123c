"""Kernels that every family of methods shares: evaluating f, dense output.

``w`` is a method's workspace; ``integrators.stepping.workspace`` lists its arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import kernel
from ..kernels.pointers import call
from ..tableau.extension import HIGHEST_EXPLICIT, Extension, in_powers
from .norms import all_finite
from .state import (
    FUNCTION_RAISED,
    OK,
)

Array = NDArray[np.float64]


@kernel
def copy(source, target):
    """target = source; a loop compiles far faster than an assignment of slices."""
    for m in range(source.shape[0]):
        target[m] = source[m]


@kernel
def evaluate(w, t):
    """dx = f(t, x). FUNCTION_RAISED if the Python function behind it failed.

    A step that ends where f jumps (a tstop) must not look beyond the jump: t_limit.
    """
    if w.limited == 1 and (w.t_limit - t) * w.direction < 0.0:
        t = w.t_limit
    w.nfev += 1
    w.flag[0] = w.f_native
    call(w.f, t, w.x, w.p, w.dx)
    return OK if w.flag[0] == 1 else FUNCTION_RAISED


@kernel
def slope_at_start(w, t):
    """f0 = f(t, y), unless it is known from the last step or the last attempt."""
    if w.f0_current == 1:
        return OK
    if w.have_f1 == 1:
        copy(w.f1, w.f0)
        w.have_f1 = 0
    else:
        copy(w.y, w.x)
        if evaluate(w, t) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.f0)
    w.f0_current = 1
    return OK


@kernel
def slope_at_end(w):
    """f1 = f at the end of the last accepted step; the next step starts with it."""
    if w.have_f1 == 1:
        return OK
    copy(w.y, w.x)
    if evaluate(w, w.t) != OK:
        return FUNCTION_RAISED
    copy(w.dx, w.f1)
    w.have_f1 = 1
    return OK


@kernel
def output_is_due(w):
    """Whether dense output of the last step is wanted: everywhere, or it holds an output time."""
    if w.want_dense == 0:
        return False
    k = w.next_output
    if w.outputs.shape[0] == 0:
        return True
    if k >= w.outputs.shape[0]:
        return False
    return (w.t - w.outputs[k]) * w.direction >= 0.0


@kernel
def outputs_done(w):
    """Pass over the output times that the last step holds."""
    k = w.next_output
    while k < w.outputs.shape[0] and (w.t - w.outputs[k]) * w.direction >= 0.0:
        k += 1
    w.next_output = k


@kernel
def straight_if_not_finite(w):
    """Let Q be the straight line of the last step where it is not finite.

    So it is if f, or an extra stage that only dense output needs, is not finite at or before the
    end of a step whose end is: the last step before a run blows up. What lies before the last good
    state is to be no NaN. (Tangent vectors of a manifold have no straight line here.)
    """
    finite = True
    for j in range(w.Q.shape[0]):
        finite = finite and all_finite(w.Q[j])
    if finite or w.Q.shape[1] != w.y.shape[0]:
        return
    for m in range(w.y.shape[0]):
        w.Q[0, m] = w.y[m] - w.y_old[m]
        for j in range(1, w.Q.shape[0]):
            w.Q[j, m] = 0.0


# -------------------------------------------------------------------- Hermite dense output


@kernel
def hermite_dense(w):
    """Coefficients of a Hermite interpolant of the last accepted step, for any method.

    Row j of Q multiplies θ^(j+1). The data are y₁−y₀, h f₀, h f₁, after step doubling the stages
    (but the first) that the second half step has left in K, and for the higher degrees
    slopes at interior points of lower interpolants (``integrators.tableau.extension``).
    """
    h = w.h_last
    t = w.t_previous
    if w.f0_known == 0:  # the method itself had no use for it
        copy(w.y_old, w.x)
        if evaluate(w, t) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.f0)
    if slope_at_end(w) != OK:
        return FUNCTION_RAISED
    data = w.hermite_data
    n = w.y.shape[0]
    for m in range(n):
        data[0, m] = w.y[m] - w.y_old[m]
        data[1, m] = h * w.f0[m]
        data[2, m] = h * w.f1[m]
    known = data.shape[0] - w.hermite_nodes.shape[0]
    for i in range(3, known):
        for m in range(n):
            data[i, m] = h * w.K[i - 2, m]
    for k in range(w.hermite_nodes.shape[0]):
        combine(w.hermite_points[k], data, known + k, w.x)
        for m in range(n):
            w.x[m] += w.y_old[m]
        if evaluate(w, t + w.hermite_nodes[k] * h) != OK:
            return FUNCTION_RAISED
        for m in range(n):
            data[known + k, m] = h * w.dx[m]
    polynomial(w.hermite_P, data, 1.0, w.Q)
    to_powers(w.basis, w.Q)
    return OK


@kernel
def combine(weights, rows, k, out):
    """out = Σ weights[j]·rows[j] over the first k rows; zero weights cost nothing."""
    n = out.shape[0]
    for m in range(n):
        out[m] = 0.0
    for j in range(k):
        a = weights[j]
        if a != 0.0:
            for m in range(n):
                out[m] += a * rows[j, m]


@kernel
def polynomial(P, rows, scale, Q):
    """Q[j] = scale · Σᵢ P[i, j]·rows[i]; rows of Q beyond the degree of P are zeroed."""
    n = rows.shape[1]
    for j in range(Q.shape[0]):
        for m in range(n):
            Q[j, m] = 0.0
        if j < P.shape[1]:
            for i in range(P.shape[0]):
                if P[i, j] != 0.0:
                    a = scale * P[i, j]
                    for m in range(n):
                        Q[j, m] += a * rows[i, m]


@kernel
def to_powers(basis, Q):
    """Q ← coefficients of powers of θ, from those of other polynomials; basis is triangular."""
    for j in range(basis.shape[0]):
        for k in range(j, basis.shape[0]):
            a = basis[j, k]
            for m in range(Q.shape[1]):
                Q[j, m] = a * Q[k, m] if k == j else Q[j, m] + a * Q[k, m]


def hermite_order(order: int) -> int:
    """Order of the Hermite interpolant used with a method of this order."""
    return max(1, min(order, HIGHEST_EXPLICIT))


def hermite_tables(extension: Extension, n: int) -> dict[str, Array]:
    """Return the tables of an interpolant for the workspace."""
    return {
        "hermite_nodes": extension.nodes,
        "hermite_points": extension.points,
        "hermite_P": extension.weights,
        "hermite_data": np.zeros((len(extension.weights), n)),
        "basis": in_powers(extension.weights.shape[1]),
    }


__all__ = [
    "combine",
    "copy",
    "evaluate",
    "hermite_dense",
    "hermite_order",
    "hermite_tables",
    "output_is_due",
    "outputs_done",
    "polynomial",
    "slope_at_end",
    "slope_at_start",
    "straight_if_not_finite",
    "to_powers",
]
