"""Implicit Runge–Kutta methods: one step of any tableau, for M y' = f(t, y).

The unknowns are the stage increments W[i] = h kᵢ, which solve

    M W[i] = h f(t + cᵢh, y + Σⱼ aᵢⱼ W[j]),                    y₊ = y + Σᵢ bᵢ W[i],

by simplified Newton iterations with one Jacobian J = ∂f/∂y. How the linear systems are solved
depends on the *coupling* of the stages (:cite:`hairer1996`, IV.8):

- diagonal (DIRK): stage after stage, with M − h aᵢᵢ J;
- transformed: A = T Λ T⁻¹ splits the s·n equations into one real or complex system of size n,
  M − h λₖ J, for each real eigenvalue and each conjugate pair;
- full: the s·n system as it is, for a tableau whose A cannot be diagonalised safely.

The form with W instead of the stage values works for singular A too (Lobatto IIIA, IIIB).
"""

from __future__ import annotations

import numpy as np

from ....kernels import kernel
from ....kernels.pointers import call, invoke
from ....stepping.dense import combine, copy, evaluate, slope_at_start
from ....stepping.norms import error_norm
from ....stepping.state import (
    COUPLING_DIAGONAL,
    COUPLING_FULL,
    ESTIMATE_EMBEDDED,
    FUNCTION_RAISED,
    NEWTON_FAILED,
    OK,
    SINGULAR_MATRIX,
)
from ...linear.lu import lu_factor, lu_solve

# What the callback for external linear algebra is asked to do (passed in place of the time).
TASK_FACTOR = 0.0
TASK_MASS = 1.0
TASK_JACOBIAN = 2.0
TASK_SOLVE_REAL = 1000.0  # + number of the block
TASK_SOLVE_COMPLEX = 2000.0

MAX_RATE = 0.99  # a contraction rate above it counts as divergence
REUSE_RATE = 1e-3  # a Jacobian that gives a slower rate is evaluated anew at the next step
STAGE_RATE = (
    0.02  # … as do diagonally implicit methods where two iterations are not enough, or slow
)
OLDEST_JACOBIAN = 20  # steps that a Jacobian may serve; the rate does not tell all of its faults
CREDIT = 10.0  # largest first increment, in tolerances, that may pass without a second look
UNIT = 2.220446049250313e-16  # relative spacing of floating-point numbers
ROUNDING_SAFETY = 10.0  # sums of several rounding errors, each with a sign of its own
PATIENCE = 4  # iterations of a fixed step before a lack of convergence counts
ROUNDING_SHARE = 1e-4  # largest part of a component that may be rounding errors after a fixed step
STAGNATION = 1e4  # an increment within so many tolerances that no longer shrinks is round-off


@kernel
def implicit_step(w, t, h):
    """y_new and the error estimate of one step of length h from (t, y)."""
    status = begin_step(w, t)
    for trial in range(2):
        if trial == 1:
            if status != NEWTON_FAILED or w.jacobian_current == 1:
                break
            status = evaluate_jacobian(w, t)  # an old Jacobian may be to blame
        if status == OK:
            status = prepare_newton(w, h)
        if status == OK:
            status = invoke(w, w.solve_stages, t, h)
    return finish_step(w, t, h) if status == OK else status


@kernel
def explicit_first_stage(w):
    """Whether the first stage of a diagonally implicit method is just f(t, y)."""
    return w.coupling == COUPLING_DIAGONAL and w.block_of[0] < 0


@kernel
def begin_step(w, t):
    """What every attempt needs first: the slope at the start, if anyone asks for it, and J."""
    wanted = w.estimate_weight != 0.0
    if (wanted or explicit_first_stage(w)) and slope_at_start(w, t) != OK:
        return FUNCTION_RAISED
    if w.have_jacobian == 0 or jacobian_is_doubtful(w):
        return evaluate_jacobian(w, t)
    return OK


@kernel
def jacobian_is_doubtful(w):
    """Whether the last attempt failed with a Jacobian from elsewhere: RADAU5 renews it, too.

    Its filter may have hidden the error of a step across a kink.
    """
    old = w.jacobian_current == 0 and w.constant_jacobian == 0
    return w.last_rejected == 1 and old


@kernel
def prepare_newton(w, h):
    """Factorise for this step length, unless that has been done."""
    w.newton_factor = 0.5
    copy(w.y, w.y_new)  # the norm of Newton increments looks at it
    if w.h_factored == h:
        return OK
    status = factorise(w, h)
    if status != OK:
        w.h_factored = 0.0
    return status


@kernel
def finish_step(w, t, h):
    """y_new and the error estimate from the stage increments."""
    combine(w.b, w.K, w.stages, w.y_new)
    for m in range(w.y.shape[0]):
        w.y_new[m] += w.y[m]
    w.norm_known = 0
    if w.estimate_kind == ESTIMATE_EMBEDDED:
        return estimate_error(w, t, h, False)
    return OK


@kernel
def evaluate_jacobian(w, t):
    """J = ∂f/∂y at (t, y); earlier factorisations are void."""
    copy(w.y, w.x)
    return jacobian_at_x(w, t)


@kernel
def jacobian_at_x(w, t):
    """J = ∂f/∂y at (t, x); earlier factorisations are void."""
    w.njev += 1
    w.flag[0] = w.jacobian_native
    call(w.jac, t, w.x, w.p, w.J)
    if w.flag[0] != 1:
        return FUNCTION_RAISED
    w.have_jacobian = 1
    w.jacobian_current = 1
    w.jacobian_age = 0
    w.h_factored = 0.0
    return OK


@kernel
def factorise(w, h):
    """Factorise every block M − hλJ."""
    blocks = w.real_shift.shape[0] + w.complex_shift.shape[0]
    w.h_factored = h
    if w.external_algebra == 1:
        w.nlu += blocks
        return ask_algebra(w, TASK_FACTOR)
    if w.coupling == COUPLING_FULL:
        w.nlu += 1
        fill_full(w, h)
        if not lu_factor(w.full_LU, w.full_pivots):
            return SINGULAR_MATRIX
        if w.real_shift.shape[0] == 0:
            return OK
    w.nlu += blocks
    n = w.y.shape[0]
    for k in range(w.real_shift.shape[0]):
        shift = h * w.real_shift[k]
        for i in range(n):
            for j in range(n):
                w.real_LU[k, i, j] = mass_entry(w, i, j) - shift * w.J[i, j]
        if not lu_factor(w.real_LU[k], w.real_pivots[k]):
            return SINGULAR_MATRIX
    for k in range(w.complex_shift.shape[0]):
        complex_shift = h * w.complex_shift[k]
        for i in range(n):
            for j in range(n):
                w.complex_LU[k, i, j] = mass_entry(w, i, j) - complex_shift * w.J[i, j]
        if not lu_factor(w.complex_LU[k], w.complex_pivots[k]):
            return SINGULAR_MATRIX
    return OK


@kernel
def mass_entry(w, i, j):
    """M[i, j], the identity unless a mass matrix was given."""
    if w.has_mass == 1:
        return w.M[i, j]
    return 1.0 if i == j else 0.0


@kernel
def fill_full(w, h):
    """I ⊗ M − h A ⊗ J."""
    n = w.y.shape[0]
    for a in range(w.stages):
        for b in range(w.stages):
            for i in range(n):
                for j in range(n):
                    value = -h * w.A[a, b] * w.J[i, j]
                    if a == b:
                        value += mass_entry(w, i, j)
                    w.full_LU[a * n + i, b * n + j] = value


@kernel
def ask_algebra(w, task):
    """Let the external linear algebra do something; SINGULAR_MATRIX if it could not."""
    w.flag[0] = 0
    call(w.algebra, task, w.x, w.p, w.dx)
    if w.flag[0] == 1:
        return OK
    return SINGULAR_MATRIX if w.flag[0] == 2 else FUNCTION_RAISED


@kernel
def solve_real(w, k):
    """real_rhs ← (M − hλₖJ)⁻¹ real_rhs."""
    if w.external_algebra == 1:
        return ask_algebra(w, TASK_SOLVE_REAL + k)
    lu_solve(w.real_LU[k], w.real_pivots[k], w.real_rhs)
    return OK


@kernel
def times_mass(w, vector, out):
    """out = M·vector."""
    if w.has_mass == 0:
        copy(vector, out)
        return OK
    if w.external_algebra == 1:
        copy(vector, w.x)
        status = ask_algebra(w, TASK_MASS)
        copy(w.dx, out)
        return status
    n = vector.shape[0]
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += w.M[i, j] * vector[j]
        out[i] = total
    return OK


# -------------------------------------------------------------------- Newton


@kernel
def recall_rate(w):
    """Before an iteration: trust the last rate a little less; not at all with fixed steps.

    Fixed steps are for studying h alone, so there the iteration goes on to round-off.
    """
    w.newton_rate = 0.0  # unknown after a single iteration
    if w.fixed == 1:
        w.newton_memory = 1.0
    else:
        w.newton_memory = max(w.newton_memory, 1e-16) ** 0.8


@kernel
def converged(w, norm, iteration, remembered):
    """Judge a Newton iteration: 1 converged, 0 go on, -1 hopeless.

    ``remembered`` holds (norm, rate) of the iteration before. The test is RADAU5's: with the
    rate θ, the error left is about θ/(1−θ) times the last increment. A first increment is judged
    by the rate of the step before, but only if it is small: where f has a kink, the past tells
    nothing, and f must be seen where the stages end up. Multipliers of constraints settle after the
    positions only, so that rates alternate between slow and fast: one alone is no reason to stop.
    """
    tolerance = w.newton_tolerance
    if not np.isfinite(norm):
        return -1
    if norm == 0.0:
        return 1
    if iteration > 0:
        rate = norm / remembered[0]
        theta = rate if iteration == 1 else np.sqrt(rate * remembered[1])
        remembered[1] = rate
        w.newton_rate = theta
        at_roundoff = norm <= STAGNATION * tolerance and rate > 0.5 and iteration > 1
        if w.fixed == 1 and at_roundoff:
            return 1
        if theta >= MAX_RATE:
            if w.fixed == 1 and iteration < PATIENCE and np.isfinite(theta):
                remembered[0] = norm  # multipliers of index 3 settle after the positions only
                return 0
            return -1
        w.newton_memory = theta / (1 - theta)
        if w.fixed == 1:  # a first rate can be too good to be true
            w.newton_memory = max(w.newton_memory, 0.01)
        left = w.max_newton - 1 - iteration
        expected = w.newton_memory * norm * theta**left / tolerance
        settled = iteration > 1 or w.index.shape[0] == 0
        if expected >= 1.0 and settled and w.fixed == 0:
            # Too slow: shorten the step by what the rate suggests, as RADAU5 does.
            excess = max(1e-4, min(20.0, expected))
            w.newton_factor = 0.8 * excess ** (-1.0 / (4 + left))
            return -1
    elif norm > CREDIT and w.fixed == 0:
        remembered[0] = norm
        return 0
    remembered[0] = norm
    return 1 if w.newton_memory * norm <= tolerance else 0


# -------------------------------------------------------------------- error


@kernel
def estimate_error(w, t, h, again):
    """error = (M − hγJ)⁻¹ (γ₀ h f(t, y) + M Σ eᵢ W[i]).

    The solve filters out what stiff components, damped by the method itself, contribute. The
    second form (``again``) replaces f(t, y) by f(t, y + error): RADAU5 does so on first and on
    repeated steps whose estimate came out too large.
    """
    n = w.y.shape[0]
    weight = w.estimate_weight
    if again:
        for m in range(n):
            w.x[m] = w.y[m] + w.error[m]
        if evaluate(w, t) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.big)
    else:
        copy(w.f0, w.big)
    combine(w.e, w.K, w.stages, w.error)
    block = w.estimate_block
    if block >= 0:
        status = times_mass(w, w.error, w.real_rhs)
        if status != OK:
            return status
        if weight != 0.0:
            for m in range(n):
                w.real_rhs[m] += weight * h * w.big[m]
        status = solve_real(w, block)
        if status != OK:
            return status
        copy(w.real_rhs, w.error)
    w.norm = implicit_norm(w, w.error, h)
    w.norm_known = 1
    return OK


@kernel
def implicit_norm(w, e, h):
    """Norm of e as ``error_norm`` has it, but with multipliers measured together.

    Multipliers are the components of the highest index, where that is 2 or more. How a constraint
    force splits into them depends on the axes that someone chose, and some are zero, or nearly:
    relative to itself, nothing of such a component is more than rounding errors. So the largest
    one is the measure of all.
    """
    highest = 1
    for i in range(w.index.shape[0]):
        highest = max(highest, w.index[i])
    if highest == 1 or w.fixed == 1 or w.pairs == 1:
        return error_norm(w, e, h)
    n = e.shape[0]
    together = 0.0
    for i in range(n):
        if w.index[i] == highest:
            together = max(together, max(abs(w.y[i]), abs(w.y_new[i])))
    total = 0.0
    greatest = 0.0
    for i in range(n):
        size = together if w.index[i] == highest else max(abs(w.y[i]), abs(w.y_new[i]))
        scaled = abs(e[i]) / (w.atol[i] + w.rtol * size)
        for _ in range(1, w.index[i]):
            scaled *= abs(h)
        if not np.isfinite(scaled):
            return np.inf
        total += scaled * scaled
        greatest = max(greatest, scaled)
    return greatest if w.max_norm == 1 else np.sqrt(total / n)


@kernel
def keep_jacobian(w):
    """After an accepted step: a Jacobian that served well is used again."""
    w.jacobian_current = 0
    w.jacobian_age += 1
    allowed = REUSE_RATE
    if w.coupling == COUPLING_DIAGONAL and w.newton_last <= 2:
        allowed = STAGE_RATE
    worn = w.newton_rate > allowed or w.jacobian_age >= OLDEST_JACOBIAN
    if worn and w.constant_jacobian == 0:
        w.have_jacobian = 0
