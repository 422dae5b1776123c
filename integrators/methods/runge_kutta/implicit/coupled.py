"""Fully implicit methods: all stages together, as one system split by the eigenvalues of A."""

from __future__ import annotations

import numpy as np

from ....kernels import kernel
from ....stepping.control import cheaper
from ....stepping.dense import combine, copy, evaluate
from ....stepping.state import (
    COUPLING_FULL,
    FUNCTION_RAISED,
    NEWTON_FAILED,
    OK,
    STEP_TOO_SMALL,
)
from ....stepping.stiffness import watch_implicit
from ...linear.lu import lu_solve
from .step import (
    ROUNDING_SAFETY,
    ROUNDING_SHARE,
    TASK_SOLVE_COMPLEX,
    UNIT,
    ask_algebra,
    converged,
    implicit_norm,
    keep_jacobian,
    recall_rate,
    solve_real,
    times_mass,
)

# The rate that Newton's iteration may have after the order has been raised, and how much cheaper
# steps must become. Chosen on the stiff problems of DETEST, Andrews' mechanism, the slider crank,
# Jay's problem and the pendulum of index 2 (evaluations of f at tolerances of 1e-4 to 1e-10).
REACH = 0.1
WORTH = 1.5
RAISE_RATE = 0.005  # or a rate that is as good as that of a linear problem (0.002 in RADAU)
LOWER_RATE = 0.8  # as in the code RADAU
STEPS_BEFORE_CHANGE = 10

NOTICED = 1e-6  # tolerances: what components that are zero, but for rounding errors, do is not
EXTRAPOLATED_STAGES = 8  # of more stages, nothing is continued beyond the step
MAGNIFIED = 1e3  # how much errors of stages may be, where a longer step continues them; three
# stages never reach it (steps grow by a factor of up to 8)


@kernel
def newton_coupled(w, t, h):
    """All stages together."""
    s = w.stages
    n = w.y.shape[0]
    starting_values(w, h)
    remembered = w.newton
    recall_rate(w)
    last = False
    for iteration in range(w.max_newton):
        w.nnewton += 1
        w.newton_last = iteration + 1
        for i in range(s):
            combine(w.A[i], w.K, s, w.x)
            for m in range(n):
                w.x[m] += w.y[m]
            if evaluate(w, t + w.c[i] * h) != OK:
                return FUNCTION_RAISED
            copy(w.dx, w.residual[i])
            status = times_mass(w, w.K[i], w.real_rhs)
            if status != OK:
                return status
            for m in range(n):
                w.residual[i, m] = h * w.residual[i, m] - w.real_rhs[m]
        status = solve_coupled(w)
        if status != OK:
            return status
        for i in range(s):
            for m in range(n):
                w.K[i, m] += w.increment[i, m]
        if last:
            return OK
        norm = coupled_norm(w, h)
        verdict = converged(w, norm, iteration, remembered)
        if verdict == 1 and iteration + 1 < w.max_newton and w.fixed == 0:
            last = has_index_three(w)
            if last or outweighs(w):
                verdict = 0
        if verdict == 1:
            return OK
        if verdict == -1:
            break
    return stagnated(w, t, h, norm)


@kernel
def has_index_three(w):
    """Whether there are multipliers of index 3: then one iteration more pays.

    Velocities, of index 2, are measured with a factor h, since the method itself finds what the
    constraints say of them no better. What these leave free has its full order, but errors that
    such a measure lets pass are as large as a multiple of the tolerance in every step.
    """
    for m in range(w.index.shape[0]):
        if w.index[m] > 2:
            return True
    return False


@kernel
def outweighs(w):
    """Whether an increment, now in `error`, is larger than a component itself.

    Where atol is far above a concentration, say, all increments are small in tolerances: too few
    iterations of Newton's then make it negative, and what follows may grow without limit.
    Multipliers of constraints, which are zero at times, have no size of their own to go by.
    """
    if w.index.shape[0] > 0:
        return False
    for m in range(w.y.shape[0]):
        size = abs(w.error[m])
        if size > abs(w.y[m]) and size > NOTICED * (w.atol[m] + w.rtol * abs(w.y[m])):
            return True
    return False


@kernel
def stagnated(w, t, h, norm):
    """Judge an iteration that stopped converging: OK if only rounding errors are left in it.

    Multipliers of index 2 and 3 are found from differences of g that are smaller the shorter the
    step, so that rounding errors of y are magnified by the size of a mass over h or h². Then no
    increment gets below a limit, however short the step. It is OK as long as it is within
    the tolerance of the step; otherwise a shorter step would not help, and the status says that
    the tolerance is to blame.
    """
    if not np.isfinite(norm):
        return NEWTON_FAILED
    limit = rounding_norm(w, t, h)
    if limit < 0.0:
        return FUNCTION_RAISED
    if not norm <= ROUNDING_SAFETY * limit:
        return NEWTON_FAILED
    w.newton_rate = 0.0  # which says nothing about the Jacobian now
    w.newton_memory = 1.0
    if w.fixed == 1:  # iterated to round-off: its share of the state is what counts
        return OK if norm * w.rtol <= ROUNDING_SHARE else NEWTON_FAILED
    return OK if norm <= 1.0 else STEP_TOO_SMALL


@kernel
def rounding_norm(w, t, h):
    """Norm of the increment that a change of the stage values by a unit in the last place causes.

    The larger one of two patterns of signs, for in a single one the effects may cancel (x² + z²
    with x = z, say). Negative if f fails.
    """
    alternating = perturbed_norm(w, t, h, 2)
    if alternating < 0.0:
        return alternating
    return max(alternating, perturbed_norm(w, t, h, 3))


@kernel
def perturbed_norm(w, t, h, period):
    """Norm of the increment caused by units in the last place, every `period`-th one negative.

    f is evaluated twice, so that what it loses by cancellation counts as well; signs differ, or the
    perturbation would be a mere scaling.
    """
    s = w.stages
    n = w.y.shape[0]
    end = t + w.c[s - 1] * h
    combine(w.A[s - 1], w.K, s, w.x)
    for m in range(n):
        w.x[m] += w.y[m]
    if evaluate(w, end) != OK:
        return -1.0
    copy(w.dx, w.residual[0])
    for m in range(n):
        w.x[m] *= 1.0 + (-UNIT if m % period == period - 1 else UNIT)
    if evaluate(w, end) != OK:
        return -1.0
    for m in range(n):
        w.residual[0, m] = h * (w.dx[m] - w.residual[0, m])
    for i in range(1, s):
        sign = 1.0 if i % 2 == 0 else -1.0
        for m in range(n):
            w.residual[i, m] = sign * w.residual[0, m]
    status = solve_coupled(w)
    if status == FUNCTION_RAISED:
        return -1.0
    return coupled_norm(w, h) if status == OK else np.nan


@kernel
def coupled_norm(w, h):
    """Norm of the change A·ΔW of the stage values, over all stages."""
    s = w.stages
    total = 0.0
    for i in range(s):
        combine(w.A[i], w.increment, s, w.error)
        norm = implicit_norm(w, w.error, h)
        total += norm * norm
    return np.sqrt(total / s)


@kernel
def solve_coupled(w):
    """increment = (I ⊗ M − h A ⊗ J)⁻¹ residual."""
    s = w.stages
    n = w.y.shape[0]
    if w.coupling == COUPLING_FULL:
        for i in range(s):
            for m in range(n):
                w.full_rhs[i * n + m] = w.residual[i, m]
        lu_solve(w.full_LU, w.full_pivots, w.full_rhs)
        for i in range(s):
            for m in range(n):
                w.increment[i, m] = w.full_rhs[i * n + m]
        return OK
    for i in range(s):
        for m in range(n):
            w.increment[i, m] = 0.0
    for k in range(w.T_real.shape[1]):
        combine(w.T_real_inverse[k], w.residual, s, w.real_rhs)
        status = solve_real(w, k)
        if status != OK:
            return status
        for i in range(s):
            for m in range(n):
                w.increment[i, m] += w.T_real[i, k] * w.real_rhs[m]
    for k in range(w.complex_shift.shape[0]):
        for m in range(n):
            total = 0j
            for i in range(s):
                total += w.T_complex_inverse[k, i] * w.residual[i, m]
            w.complex_rhs[m] = total
        status = solve_complex(w, k)
        if status != OK:
            return status
        for i in range(s):  # this eigenvalue and its conjugate
            for m in range(n):
                w.increment[i, m] += 2.0 * (w.T_complex[i, k] * w.complex_rhs[m]).real
    return OK


@kernel
def starting_values(w, h):
    """W from the stage slopes of the previous step, continued as a polynomial beyond its end.

    It goes through all stages, or, if the step grows, as many of the last ones as do not magnify
    their errors too much: seven, four times as far as they reach, would do so by 10⁷, and Newton's
    iteration fails from there, because multipliers of constraints have no more digits.
    """
    s = w.stages
    n = w.y.shape[0]
    for i in range(s):
        for m in range(n):
            w.K[i, m] = 0.0
    if w.have_start == 0:
        return
    ratio = h / w.h_last
    used = s
    while ratio > 1.0 and used > 1 and magnified(w, used, 1.0 + ratio) > MAGNIFIED:
        used -= 1
    for i in range(s):
        theta = 1.0 + w.c[i] * ratio
        for j in range(s - used, s):
            weight = stage_weight(w, used, j, theta)
            for m in range(n):
                w.K[i, m] += ratio * weight * w.W_last[j, m]


@kernel
def stage_weight(w, used, j, theta):
    """Weight of stage j in the polynomial through the last stages, at theta."""
    weight = 0.0
    for k in range(used - 1, -1, -1):
        weight = weight * theta + w.lagrange[used - 1, j, k]
    return weight


@kernel
def magnified(w, used, theta):
    """How much errors of the last stages are magnified at theta."""
    total = 0.0
    for j in range(w.stages - used, w.stages):
        total += abs(stage_weight(w, used, j, theta))
    return total


@kernel
def solve_complex(w, k):
    """complex_rhs ← (M − hλₖJ)⁻¹ complex_rhs."""
    if w.external_algebra == 1:
        return ask_algebra(w, TASK_SOLVE_COMPLEX + k)
    lu_solve(w.complex_LU[k], w.complex_pivots[k], w.complex_rhs)
    return OK


@kernel
def coupled_accept(w, t, h):
    """After an accepted step: keep what the next one can use."""
    for i in range(w.stages):
        copy(w.K[i], w.W_last[i])
    w.have_start = 1 if w.stages <= EXTRAPOLATED_STAGES else 0
    if w.variable_order == 1:
        judge_order(w, h)
    watch_implicit(w, h)
    keep_jacobian(w)
    return OK


@kernel
def judge_order(w, h):
    """Wish for another order by how well Newton's iteration converges (:cite:`hairer1999`).

    At a steady step size the order is raised if that is worth it (:func:`.cheaper`) and leaves the
    iteration fast enough: its rate grows with the step. Slow convergence means that the step is
    limited by the iteration and a lower order does as well.
    """
    w.steps_at_order += 1
    w.order_wish = 0
    s = w.stages
    rate = w.newton_rate if w.newton_last > 1 else 0.0
    change = w.h / abs(h)
    if rate >= LOWER_RATE:
        w.order_wish = -1
    elif w.steps_at_order >= STEPS_BEFORE_CHANGE and 0.8 < change < 1.2:
        gain = cheaper(w, s)
        is_worth = gain > WORTH and rate * gain * (s + 2) / s <= REACH
        if is_worth or rate <= RAISE_RATE:
            w.order_wish = 1
