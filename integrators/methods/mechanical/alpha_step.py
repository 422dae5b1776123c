"""Steps of the generalized-α method, as kernels.

Everything is said with y = (q, z, v, λ): joint positions q, states z of the first order, velocities
v and multipliers. Of z and v together, which lie side by side, the slopes s = (ż, v̇) are unknown,
and λ; the equations are those of the form of index 3, F(t, y) = (q̇, ż, v̇, g), and Newton's matrix
is made of its Jacobian. States z follow the rule of velocities (:cite:`jansen2000`).

Functions of the system are called by the numbers below, each with buffers of its own.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...kernels.pointers import call
from ...stepping.dense import copy
from ...stepping.norms import all_finite
from ...stepping.state import FUNCTION_RAISED, NEWTON_FAILED, OK
from ..linear.lu import lu_factor, lu_solve

EQUATIONS, SLOPES, MOVE, ACCELERATE, SETTLE, LEAST_SQUARES = range(6)
CODES = 6
ALPHA_M, ALPHA_F, BETA, GAMMA, ATOL, LAST_STEP = range(6)  # places in `numbers`
NUMBERS = 6

MOST_ITERATIONS = 30
NEW_MATRIX = 6  # iterations after which the matrix is made again
SETTLED = 1e-13  # fixed steps: Newton goes on until changes are rounding, relative to the state …
PULLED = 1e-9  # … and to the multipliers …
STAGNATION = 1e-8  # … or no longer shrink, and are below this
SETTLED_ADAPTIVE = 1e-3  # adaptive steps: relative to the tolerance …
ROUNDING = 1e-14  # … and relative to positions: what no further change would improve
STILL_THE_SAME = 1e-9  # a state so near to the end of the last step continues it


@kernel
def largest_of(x):
    """Largest absolute value."""
    found = 0.0
    for i in range(x.shape[0]):
        if not abs(x[i]) <= found:  # NaN counts
            found = abs(x[i])
    return found


@kernel
def ask(w, which, t, x, out):
    """Call a function of the system; False if the Python function behind it failed."""
    if w.limited == 1 and (w.t_limit - t) * w.direction < 0.0:
        t = w.t_limit
    w.flag[0] = w.native[which]
    call(w.codes[which], t, x, w.p, out)
    return w.flag[0] == 1


@kernel
def settle(w, t):
    """Velocities of `base` become the nearest ones, in the norm of the mass, with G v = ν."""
    if not ask(w, SETTLE, t, w.base, w.settled):
        return FUNCTION_RAISED
    nq = w.moved.shape[0]
    for i in range(w.settled.shape[0]):
        w.base[nq + i] = w.settled[i]
    return OK


@kernel
def start_slopes(w, t):
    """s and λ at `base`, from G v̇ = γ."""
    w.nfev += 1
    if not ask(w, ACCELERATE, t, w.base, w.accelerated):
        return FUNCTION_RAISED
    count = w.s_start.shape[0]
    for i in range(count):
        w.s_start[i] = w.accelerated[i]
    for i in range(w.force.shape[0]):
        w.force[i] = w.accelerated[count + i]
    return OK


@kernel
def fresh_auxiliary(w, t, h):
    """a = s(t + (α_m − α_f) h) to second order, extrapolated from a point ahead of `base`."""
    nq = w.moved.shape[0]
    count = w.s_start.shape[0]
    first = nq + w.settled.shape[0] - count  # where z and v begin
    ahead = (w.numbers[ALPHA_F] - w.numbers[ALPHA_M]) * h
    copy(w.base, w.kept_base)
    for i in range(w.settled.shape[0]):
        w.place[nq + i] = ahead * w.base[nq + i]
    for i in range(nq):
        w.place[i] = w.base[i]
    if not ask(w, MOVE, t, w.place, w.moved):
        return FUNCTION_RAISED
    for i in range(first):
        w.base[i] = w.moved[i]
    for i in range(count):
        w.base[first + i] += ahead * w.s_start[i]
    w.nfev += 1
    fine = ask(w, ACCELERATE, t + ahead, w.base, w.accelerated)
    copy(w.kept_base, w.base)
    if not fine:
        return FUNCTION_RAISED
    for i in range(count):
        w.a[i] = 2.0 * w.s_start[i] - w.accelerated[i]
    return OK


@kernel
def enter_end(w, t, h):
    """`point` at the end of the step that belongs to the slopes s there."""
    nq = w.moved.shape[0]
    nv = w.settled.shape[0]
    count = w.s.shape[0]
    first, own = nq + nv - count, count - nv
    m_, f_ = w.numbers[ALPHA_M], w.numbers[ALPHA_F]
    beta, gamma = w.numbers[BETA], w.numbers[GAMMA]
    for i in range(count):
        w.a_end[i] = ((1.0 - f_) * w.s[i] + f_ * w.s_start[i] - m_ * w.a[i]) / (1.0 - m_)
        mixed = (1.0 - gamma) * w.a[i] + gamma * w.a_end[i]
        w.point[first + i] = w.base[first + i] + h * mixed
    for i in range(nq):
        w.place[i] = w.base[i]
    for i in range(nv):
        mixed = (0.5 - beta) * w.a[own + i] + beta * w.a_end[own + i]
        w.place[nq + i] = h * (w.base[nq + i] + h * mixed)
    if not ask(w, MOVE, t, w.place, w.moved):
        return FUNCTION_RAISED
    for i in range(first):
        w.point[i] = w.moved[i]
    return OK


@kernel
def newton_matrix(w, t, beta, gamma):
    """∂(residual)/∂(s, λ) at `point`: F's Jacobian, with ∂q = β' (∂q̇/∂v) ∂v̇ and ∂(z, v) = γ' ∂s.

    Rows of g are divided by β', those of G v = ν by γ', so that it stays well-conditioned as h → 0.
    """
    w.njev += 1
    if not ask(w, SLOPES, t, w.point, w.J[0]):
        return FUNCTION_RAISED
    nq = w.moved.shape[0]
    count = w.s.shape[0]
    size = w.matrix.shape[0]
    first, own = nq + w.settled.shape[0] - count, count - w.settled.shape[0]
    for i in range(size):
        row = first + i
        for j in range(count):
            w.matrix[i, j] = gamma * w.J[row, first + j]
        for j in range(count, size):
            w.matrix[i, j] = w.J[row, first + j]
        for k in range(first):
            slope = w.J[row, k]
            if slope != 0.0:
                for j in range(own, count):
                    w.matrix[i, j] += beta * slope * w.J[k, first + j]
        scale = -1.0
        if i >= count:
            scale = 1.0 / (beta if w.holonomic[i - count] == 1 else gamma)
        for j in range(size):
            w.matrix[i, j] *= scale
        if i < count:
            w.matrix[i, i] += 1.0
    if w.native[LEAST_SQUARES] == 0:  # dependent constraints: as it stands, for a callback
        return OK
    w.nlu += 1
    return OK if lu_factor(w.matrix, w.pivots) else NEWTON_FAILED


@kernel
def is_settled(w, beta, gamma, before):
    """Whether the last change is as small as it need or can be."""
    nq = w.moved.shape[0]
    count = w.s.shape[0]
    size = 0.0
    for i in range(count):
        size = max(size, abs(w.change[i]))
    pulled = 0.0
    for i in range(count, w.change.shape[0]):
        pulled = max(pulled, abs(w.change[i]))
    q, v = 0.0, 0.0
    for i in range(nq):
        q = max(q, abs(w.point[i]))
    for i in range(nq, nq + w.settled.shape[0]):
        v = max(v, abs(w.point[i]))
    moved, sped = abs(beta) * size, abs(gamma) * size
    if w.fixed == 1:
        small = moved <= SETTLED * max(q, 1e-3) and sped <= SETTLED * max(v, 1e-3)
        small = small and pulled <= PULLED * max(largest_of(w.force), 1.0)
        return small or (size > 0.5 * before and sped <= STAGNATION * max(1.0, v))
    # In a very short step rounding of positions, over h², is all that is left of changes.
    if np.isfinite(before) and moved <= ROUNDING * max(q, 1e-3):
        return True
    atol = w.numbers[ATOL]
    small = moved <= SETTLED_ADAPTIVE * (atol + w.rtol * q)
    return small and sped <= SETTLED_ADAPTIVE * (atol + w.rtol * v)


@kernel
def alpha_one(w, t, h):
    """From `base`, with a, s_start and a guess of λ, to `point`, s, λ and a_end."""
    nq = w.moved.shape[0]
    count = w.s.shape[0]
    size = w.change.shape[0]
    first = nq + w.settled.shape[0] - count
    share = (1.0 - w.numbers[ALPHA_F]) / (1.0 - w.numbers[ALPHA_M])  # ∂a₁/∂s
    beta, gamma = h * h * w.numbers[BETA] * share, h * w.numbers[GAMMA] * share
    copy(w.s_start, w.s)
    before = np.inf
    for iteration in range(MOST_ITERATIONS):
        if enter_end(w, t, h) != OK:
            return FUNCTION_RAISED
        for i in range(count, size):
            w.point[first + i] = w.force[i - count]
        w.nfev += 1
        w.nnewton += 1
        if not ask(w, EQUATIONS, t + h, w.point, w.value):
            return FUNCTION_RAISED
        for i in range(count):
            w.change[i] = w.value[first + i] - w.s[i]
        for i in range(count, size):
            scale = beta if w.holonomic[i - count] == 1 else gamma
            w.change[i] = -w.value[first + i] / scale
        if not all_finite(w.change):
            return NEWTON_FAILED
        if iteration % NEW_MATRIX == 0 and iteration <= 2 * NEW_MATRIX:
            status = newton_matrix(w, t + h, beta, gamma)
            if status != OK:
                return status
        if w.native[LEAST_SQUARES] == 0:
            if not ask(w, LEAST_SQUARES, t + h, w.change, w.change):
                return FUNCTION_RAISED
        else:
            lu_solve(w.matrix, w.pivots, w.change)
        if not all_finite(w.change):
            return NEWTON_FAILED
        for i in range(count):
            w.s[i] += w.change[i]
        for i in range(count, size):
            w.force[i - count] += w.change[i]
        if is_settled(w, beta, gamma, before):
            for i in range(count, size):
                w.point[first + i] = w.force[i - count]
            return enter_end(w, t, h)
        before = 0.0
        for i in range(count):
            before = max(before, abs(w.change[i]))
    return NEWTON_FAILED


@kernel
def from_base(w, t, h):
    """A step that starts afresh from `base`, whose slopes are known."""
    status = fresh_auxiliary(w, t, h)
    if status != OK:
        return status
    return alpha_one(w, t, h)


@kernel
def continues(w, h):
    """Whether this step begins where the last one ended, and is as long."""
    size = max(1.0, largest_of(w.end))
    for i in range(w.base.shape[0]):
        if not abs(w.base[i] - w.end[i]) <= STILL_THE_SAME * size:
            return False
    return abs(h - w.numbers[LAST_STEP]) <= STILL_THE_SAME * abs(h)


@kernel
def alpha_step(w, t, h):
    """One step of fixed length, which carries a along."""
    n = w.base.shape[0]
    for i in range(n):
        w.base[i] = w.y[i]
    if continues(w, h):
        copy(w.s, w.s_start)
        copy(w.a_end, w.a)
    else:
        if start_slopes(w, t) != OK:
            return FUNCTION_RAISED
        if fresh_auxiliary(w, t, h) != OK:
            return FUNCTION_RAISED
    w.numbers[LAST_STEP] = 0.0  # nothing to continue, should it fail
    status = alpha_one(w, t, h)
    if status != OK:
        return status
    w.numbers[LAST_STEP] = h
    for i in range(n):
        w.end[i] = w.point[i]
    enter_result(w)
    return OK


@kernel
def enter_result(w):
    """y_new = (q, v) of `point`, with λ where the state has it; further multipliers are zero."""
    for i in range(w.y.shape[0]):
        w.y_new[i] = w.point[i] if i < w.point.shape[0] else 0.0


@kernel
def alpha_double_step(w, t, h):
    """One step and two of half the length, all started afresh: their errors have one constant.

    Velocities, whose errors are the larger ones, are extrapolated; positions stay closed.
    """
    n, nq = w.base.shape[0], w.moved.shape[0]
    half = 0.5 * h
    for i in range(n):
        w.base[i] = w.y[i]
    if settle(w, t) != OK or start_slopes(w, t) != OK:
        return FUNCTION_RAISED
    copy(w.base, w.begin)
    status = from_base(w, t, h)
    if status != OK:
        return status
    for i in range(n):
        w.base[i] = w.point[i]
    if settle(w, t + h) != OK:
        return FUNCTION_RAISED
    copy(w.base, w.end)
    copy(w.begin, w.base)
    status = from_base(w, t, half)
    if status != OK:
        return status
    for i in range(n):
        w.base[i] = w.point[i]
    if settle(w, t + half) != OK or start_slopes(w, t + half) != OK:
        return FUNCTION_RAISED
    status = from_base(w, t + half, half)
    if status != OK:
        return status
    for i in range(n):
        w.base[i] = w.point[i]
    if settle(w, t + h) != OK:
        return FUNCTION_RAISED
    for i in range(w.y.shape[0]):
        w.error[i] = 0.0
    for i in range(n):
        w.error[i] = (w.base[i] - w.end[i]) / 3.0  # 2² − 1
        if i >= nq:
            w.base[i] += w.error[i]
    if settle(w, t + h) != OK:
        return FUNCTION_RAISED
    for i in range(n):
        w.point[i] = w.base[i]
    enter_result(w)
    return OK
