"""Dense output of implicit methods: their stages, what the step gained, and further stages.

How rows are weighted is found by order conditions (``tableau.extension``). A further stage is
diagonally implicit,

    M W = h f(t + ch, y + Σⱼ aⱼ rowⱼ + γW),

and solved with a matrix M − hγJ that is factorised already. So stiff components do not magnify the
errors of the interpolant that it starts from, as they would with W = h f(t + ch, u(c)), and there
need not be an inverse of M. Nothing here changes what the next step sees.
"""

from __future__ import annotations

import numpy as np

from ....kernels import kernel
from ....stepping.dense import combine, copy, evaluate, polynomial, to_powers
from ....stepping.norms import error_norm
from ....stepping.state import (
    FUNCTION_RAISED,
    NEWTON_FAILED,
    OK,
)
from .step import STAGNATION, solve_real, times_mass

MOST_ITERATIONS = 15
SLOW = 0.5  # a small increment that shrinks by less than this is rounding error …
HOPELESS = 0.9  # … and a large one will not become small


@kernel
def implicit_dense(w, t, h):
    """Coefficients Q of the dense output of the last accepted step, from t of length h."""
    s = w.stages
    for m in range(w.y.shape[0]):
        w.K[s, m] = w.y[m] - w.y_old[m]
    for i in range(w.extra_stages):
        status = further_stage(w, i, t, h)
        if status == FUNCTION_RAISED:
            return status
        if status != OK:  # f is not smooth here, perhaps: be content with what there is
            polynomial(w.plain_P, w.K, 1.0, w.Q)
            to_powers(w.basis, w.Q)
            return OK
    polynomial(w.P, w.K, 1.0, w.Q)
    to_powers(w.basis, w.Q)
    return OK


@kernel
def further_stage(w, i, t, h):
    """Solve for the i-th further stage by Newton's iteration; it becomes a row of K."""
    n = w.y.shape[0]
    row = w.stages + 1 + w.half_rows + i
    gamma = w.dense_weight
    W = w.K[row]
    combine(w.extra_start[i], w.K, row, W)
    combine(w.extra_A[i], w.K, row, w.big)
    for m in range(n):
        w.big[m] += w.y_old[m]
    rounding = STAGNATION if w.fixed == 1 else 1.0  # fixed steps: down to round-off
    last = 0.0
    left = min(1.0, w.newton_memory)  # of an increment's size, after it was made
    for iteration in range(MOST_ITERATIONS):
        w.nnewton += 1
        for m in range(n):
            w.x[m] = w.big[m] + gamma * W[m]
        if evaluate(w, t + w.extra_c[i] * h) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.residual[0])
        status = times_mass(w, W, w.real_rhs)
        if status != OK:
            return status
        for m in range(n):
            w.real_rhs[m] = h * w.residual[0, m] - w.real_rhs[m]
        status = solve_real(w, w.dense_block)
        if status != OK:
            return status
        for m in range(n):
            W[m] += w.real_rhs[m]
            w.error[m] = gamma * w.real_rhs[m]
        norm = error_norm(w, w.error, h)
        if not np.isfinite(norm):
            return NEWTON_FAILED
        if iteration > 0 and last > 0.0:
            rate = norm / last
            if rate > SLOW and norm <= rounding * w.newton_tolerance:
                return OK
            if rate > HOPELESS:
                return NEWTON_FAILED
            left = rate / (1.0 - rate)
        if left * norm <= w.newton_tolerance:
            return OK
        last = norm
    return NEWTON_FAILED
