"""Steps of methods that treat the halves of y = (q, v) differently, as kernels.

Components 0 … n/2 − 1 are q, the others v.
"""

from __future__ import annotations

from ...kernels import kernel
from ...stepping.dense import combine, copy, evaluate, hermite_dense, slope_at_start
from ...stepping.norms import largest
from ...stepping.state import ESTIMATE_EMBEDDED, FUNCTION_RAISED, NEWTON_FAILED, OK
from ..runge_kutta.explicit import unannounced

MOST_ITERATIONS = 200
ROUND_OFF = 4 * 2.220446049250313e-16  # relative change of stages that counts as none …
STAGNATION = 1e-11  # … and one that no longer shrinks, if it is below this
ANNOUNCED = 0.5  # of what slopes differ by; one at the end may be so far from where they point
HOPELESS = 1e12  # a change that is so much larger than the state will not become small


@kernel
def splitting_step(w, t, h):
    """Kicks v += bhg(t, q) and drifts q += ahf(t, v) in turn; y_new is what they work on.

    The time of a kick is that which the drifts before it have reached, and the other way round. A
    kick at the start of the step knows g from the end of the last.
    """
    n = w.y.shape[0]
    half = n // 2
    copy(w.y, w.y_new)
    of_q = t
    of_v = t
    for i in range(w.stages):
        kick = h * w.b[i]
        if kick != 0.0:
            if i == 0:
                if slope_at_start(w, t) != OK:
                    return FUNCTION_RAISED
                copy(w.f0, w.slope)
            else:
                copy(w.y_new, w.x)
                if evaluate(w, of_q) != OK:
                    return FUNCTION_RAISED
                copy(w.dx, w.slope)
            for m in range(half, n):
                w.y_new[m] += kick * w.slope[m]
            of_v += kick
        drift = h * w.drift[i]
        if drift != 0.0:
            if w.second_order == 1:
                for m in range(half):
                    w.y_new[m] += drift * w.y_new[half + m]
            else:
                copy(w.y_new, w.x)
                if evaluate(w, of_v) != OK:
                    return FUNCTION_RAISED
                for m in range(half):
                    w.y_new[m] += drift * w.dx[m]
            of_q += drift
    return OK


@kernel
def nystrom_step(w, t, h):
    """Q = q + chv + h² Σ a g(Q) for q'' = g(t, q); y_new and the error estimate."""
    w.norm_known = 0
    if slope_at_start(w, t) != OK:
        return FUNCTION_RAISED
    n = w.y.shape[0]
    half = n // 2
    copy(w.f0, w.K[0])
    for i in range(1, w.stages):
        combine(w.A[i], w.K, i, w.slope)
        for m in range(half):
            w.x[m] = w.y[m] + h * (w.c[i] * w.y[half + m] + h * w.slope[half + m])
            w.x[half + m] = w.y[half + m]
        if evaluate(w, t + w.c[i] * h) != OK:
            return FUNCTION_RAISED
        copy(w.dx, w.K[i])
    combine(w.b, w.K, w.stages, w.slope)
    combine(w.b_second, w.K, w.stages, w.y_new)
    for m in range(half):
        w.y_new[m] = w.y[m] + h * (w.y[half + m] + h * w.slope[half + m])
        w.y_new[half + m] = w.y[half + m] + h * w.y_new[half + m]
    if w.estimate_kind == ESTIMATE_EMBEDDED:
        combine(w.e, w.K, w.stages, w.slope)
        combine(w.e_second, w.K, w.stages, w.error)
        for m in range(half):
            w.error[m] = h * h * w.slope[half + m]
            w.error[half + m] *= h
    if w.fsal == 1:
        copy(w.K[w.stages - 1], w.slope)
    return OK


@kernel
def nystrom_refine(w, t, h):
    """Have a look at g where the step ends, as ``explicit_refine``; 1 if the step is refused."""
    if w.norm >= 1.0 or w.fsal == 0:
        return 0
    copy(w.slope, w.f1)
    return unannounced(w, w.f1, w.stages - 1, h, ANNOUNCED)


@kernel
def partitioned_step(w, t, h):
    """Stages of q by one tableau and of v by the other, iterated on until nothing changes.

    Every stage uses what the others have last found. This converges for h small beside the
    problem's own times, for which such methods are made; else the step fails.
    """
    if slope_at_start(w, t) != OK:
        return FUNCTION_RAISED
    n = w.y.shape[0]
    half = n // 2
    s = w.stages
    for i in range(s):
        copy(w.f0, w.K[i])
    size = largest(w.y)
    before = 1e300
    converged = False
    for _ in range(MOST_ITERATIONS):
        change = 0.0
        for i in range(s):
            combine(w.A[i], w.K, s, w.x)
            combine(w.A_second[i], w.K, s, w.slope)
            for m in range(half):
                w.x[m] = w.y[m] + h * w.x[m]
                w.x[half + m] = w.y[half + m] + h * w.slope[half + m]
            if evaluate(w, t + w.c[i] * h) != OK:
                return FUNCTION_RAISED
            for m in range(n):
                change = max(change, abs(h * (w.dx[m] - w.K[i, m])))
            if not change < HOPELESS * (1.0 + size):
                return NEWTON_FAILED
            copy(w.dx, w.K[i])
        w.nnewton += 1
        if change <= ROUND_OFF * size or (change >= 0.5 * before and change <= STAGNATION * size):
            converged = True
            break
        before = change
    if not converged:
        return NEWTON_FAILED
    combine(w.b, w.K, s, w.y_new)
    for m in range(n):
        w.y_new[m] = w.y[m] + h * w.y_new[m]
    return OK


@kernel
def partitioned_accept(w, t, h):
    """After an accepted step: g at its end, where a kick or a stage has found it, is kept."""
    if w.fsal == 1:
        half = w.y.shape[0] // 2
        for m in range(half):
            w.f1[m] = w.y[half + m]
            w.f1[half + m] = w.slope[half + m]
        w.have_f1 = 1
    return OK


@kernel
def partitioned_dense(w, t, h):
    """Coefficients Q of the dense output: an Hermite interpolant of the method's order."""
    return hermite_dense(w)
