"""Diagonally implicit methods (DIRK, SDIRK, ESDIRK): the stages one after the other."""

from __future__ import annotations

from ...kernels import kernel
from ...stepping.dense import combine, copy, error_norm, evaluate
from ...stepping.state import (
    ESTIMATE,
    ESTIMATE_DOUBLING,
    FSAL,
    FUNCTION_RAISED,
    HAVE_F1,
    MAX_NEWTON,
    NEWTON_FAILED,
    NEWTON_LAST,
    NNEWTON,
    OK,
    STAGES,
)
from .implicit import (
    converged,
    keep_jacobian,
    recall_rate,
    solve_real,
    times_mass,
)


@kernel
def newton_diagonal(w, t, h):
    """Stage after stage; explicit stages (a zero on the diagonal) are just evaluated."""
    count = w.count
    s = count[STAGES]
    n = w.y.shape[0]
    remembered = w.newton
    count[NEWTON_LAST] = 0
    for i in range(s):
        k = w.block_of[i]
        if k < 0:
            if i == 0:
                copy(w.f0, w.dx)
            else:
                combine(w.A[i], w.K, i, w.x)
                for m in range(n):
                    w.x[m] += w.y[m]
                if evaluate(w, t + w.c[i] * h) != OK:
                    return FUNCTION_RAISED
            for m in range(n):
                w.K[i, m] = h * w.dx[m]
            continue
        diagonal = w.A[i, i]
        for m in range(n):  # a stage starts from the increment of the one before
            w.K[i, m] = w.K[i - 1, m] if i > 0 else 0.0
        recall_rate(w)
        verdict = 0
        for iteration in range(count[MAX_NEWTON]):
            count[NNEWTON] += 1
            count[NEWTON_LAST] = max(count[NEWTON_LAST], iteration + 1)
            combine(w.A[i], w.K, i + 1, w.x)
            for m in range(n):
                w.x[m] += w.y[m]
            if evaluate(w, t + w.c[i] * h) != OK:
                return FUNCTION_RAISED
            copy(w.dx, w.residual[i])
            status = times_mass(w, w.K[i], w.real_rhs)
            if status != OK:
                return status
            for m in range(n):
                w.real_rhs[m] = h * w.residual[i, m] - w.real_rhs[m]
            status = solve_real(w, k)
            if status != OK:
                return status
            for m in range(n):
                w.K[i, m] += w.real_rhs[m]
                w.error[m] = diagonal * w.real_rhs[m]
            verdict = converged(w, error_norm(w, w.error, h), iteration, remembered)
            if verdict != 0:
                break
        if verdict != 1:
            return NEWTON_FAILED
    return OK


@kernel
def diagonal_accept(w, t, h):
    """After an accepted step: keep what the next one can use.

    An ESDIRK method that ends on its last stage takes that stage's slope over. Evaluating f anew
    would be worse: on a stiff problem it magnifies the small error that Newton's iteration left.
    """
    if w.count[FSAL] == 1 and w.count[ESTIMATE] != ESTIMATE_DOUBLING:
        last = w.K[w.count[STAGES] - 1]
        for m in range(w.y.shape[0]):
            w.f1[m] = last[m] / h
        w.count[HAVE_F1] = 1
    keep_jacobian(w)
    return OK
