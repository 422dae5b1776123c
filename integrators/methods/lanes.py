"""Many runs side by side: explicit Runge–Kutta steps in the lanes of SIMD registers.

Each lane is one run with its own time, step size and error control; the right-hand side is
machine code that treats all lanes at once (``Traced.machine_code(lanes)``). A lane whose run has
ended takes the next one from the queue. Arrays have the lane as last axis.

The arithmetic of a step and the rules of step-size control are those of the single run in
``explicit`` and ``loop``; the controller is literally the same function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..control import factor_after_rejection, pid_factor
from ..kernels import kernel
from .fused import ERROR as ERROR_ROW
from .fused import ERROR_LOW, FIRST_STAGE, Y_NEW
from .state import NONFINITE, STEP_TOO_SMALL, TOO_MANY_STEPS

EPS = 2.220446049250313e-16
LANES = 8  # two AVX registers, or one AVX-512 register, of doubles
FINISHED = 0
PENDING = 99

# Places in `switches`.
STAGES, FSAL, TWO_ESTIMATES, MAX_NORM, MAX_STEPS, DENSE_DEGREE = range(6)

# Places in `numbers`.
T_START, T_END, RTOL, MIN_STEP, MAX_STEP, FIRST_STEP, EXPONENT = range(7)

# Rows of `lane` (floats) …
T, H, H_TRIED, ERROR, ERROR_LAST, ERROR_BEFORE, T_STAGE = range(7)
# … and of `state` (integers).
RUN, NSTEPS, NREJECTED, LAST_REJECTED, STARTING, NEXT_OUTPUT = range(6)


def call_lanes(f: Any, t: Any, x: Any, p: Any, out: Any) -> None:
    """Call the lane function at address f. (Compiled, this is a plain C call.)"""
    raise TypeError("lane code runs compiled only")


__all__ = ["LANES", "call_lanes", "run_lanes"]


@kernel
def run_lanes(w, first, last):
    """Integrate the runs first … last − 1; results go to the rows of y_end, t_end, status, …"""
    queue = first
    for l in range(LANES):
        if queue < last:
            load(w, l, queue)
            queue += 1
        else:
            w.state[RUN, l] = -1
            for m in range(w.y.shape[0]):
                w.y[m, l] = w.y0[first, m]
            for m in range(w.p.shape[0]):
                w.p[m, l] = w.p0[first, m]
            w.lane[T, l] = w.numbers[T_START]
    while True:
        busy = False
        starting = False
        for l in range(LANES):
            if w.state[RUN, l] >= 0:
                busy = True
                if w.state[STARTING, l] == 1:
                    starting = True
        if not busy:
            return
        if starting:
            start(w)
        elif w.switches[FSAL] == 0:
            slopes(w)
        choose_lengths(w)
        if w.fused != 0:
            fused_attempt(w)
        else:
            attempt(w)
            weigh(w.e, w.switches[STAGES], w.lane[H_TRIED], w.y, w.K, w.error, 0.0)
            if w.switches[TWO_ESTIMATES] == 1:
                weigh(w.e_low, w.switches[STAGES], w.lane[H_TRIED], w.y, w.K, w.error_low, 0.0)
        measure(w)
        for l in range(LANES):
            run = w.state[RUN, l]
            if run < 0:
                continue
            outcome = decide(w, l)
            if outcome == PENDING:
                continue
            for m in range(w.y.shape[0]):
                w.y_end[run, m] = w.y[m, l]
            w.t_end[run] = w.lane[T, l]
            w.status[run] = outcome
            w.steps[run] = w.state[NSTEPS, l]
            w.rejected[run] = w.state[NREJECTED, l]
            if queue < last:
                load(w, l, queue)
                queue += 1
            else:
                w.state[RUN, l] = -1


@kernel
def load(w, l, run):
    """Put a run into a lane."""
    for m in range(w.y.shape[0]):
        w.y[m, l] = w.y0[run, m]
    for m in range(w.p.shape[0]):
        w.p[m, l] = w.p0[run, m]
    w.lane[T, l] = w.numbers[T_START]
    w.lane[ERROR_LAST, l] = 1.0
    w.lane[ERROR_BEFORE, l] = 1.0
    w.state[RUN, l] = run
    w.state[NSTEPS, l] = 0
    w.state[NREJECTED, l] = 0
    w.state[LAST_REJECTED, l] = 0
    w.state[STARTING, l] = 1
    w.state[NEXT_OUTPUT, l] = 0


@kernel
def slopes(w):
    """First stages: f at the current points."""
    call_lanes(w.f, w.lane[T], w.y, w.p, w.dx)
    for m in range(w.y.shape[0]):
        for l in range(LANES):
            w.K[0, m, l] = w.dx[m, l]


@kernel
def start(w):
    """First slopes and first step sizes of newly loaded lanes (Hairer's guess, II.4)."""
    n = w.y.shape[0]
    direction = 1.0 if w.numbers[T_END] >= w.numbers[T_START] else -1.0
    length = abs(w.numbers[T_END] - w.numbers[T_START])
    call_lanes(w.f, w.lane[T], w.y, w.p, w.dx)
    for l in range(LANES):
        new = w.state[STARTING, l] == 1
        for m in range(n):
            if new or w.switches[FSAL] == 0:
                w.K[0, m, l] = w.dx[m, l]
        d0 = 0.0
        d1 = 0.0
        for m in range(n):
            weight = w.atol[m] + w.numbers[RTOL] * abs(w.y[m, l])
            d0 += (w.y[m, l] / weight) ** 2
            d1 += (w.K[0, m, l] / weight) ** 2
        d0 = np.sqrt(d0 / n)
        d1 = np.sqrt(d1 / n)
        h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
        h0 = min(h0, length)
        w.lane[H_TRIED, l] = h0
        w.lane[ERROR, l] = d1
        w.lane[T_STAGE, l] = w.lane[T, l] + direction * h0
        for m in range(n):
            w.x[m, l] = w.y[m, l] + direction * h0 * w.K[0, m, l]
    call_lanes(w.f, w.lane[T_STAGE], w.x, w.p, w.dx)
    for l in range(LANES):
        if w.state[STARTING, l] == 0:
            continue
        w.state[STARTING, l] = 0
        h0 = w.lane[H_TRIED, l]
        d2 = 0.0
        for m in range(n):
            weight = w.atol[m] + w.numbers[RTOL] * abs(w.y[m, l])
            d2 += ((w.dx[m, l] - w.K[0, m, l]) / weight) ** 2
        d2 = np.sqrt(d2 / n) / h0
        greatest = max(w.lane[ERROR, l], d2)
        if not np.isfinite(greatest):
            h1 = 1e-3 * h0
        elif greatest <= 1e-15:
            h1 = max(1e-6, h0 * 1e-3)
        else:
            h1 = (0.01 / greatest) ** w.numbers[EXPONENT]
        w.lane[H, l] = min(100 * h0, h1, length)
        if w.numbers[FIRST_STEP] > 0.0:
            w.lane[H, l] = w.numbers[FIRST_STEP]


@kernel
def choose_lengths(w):
    """Length of the step that each lane tries; idle lanes stand still."""
    for l in range(LANES):
        remaining = w.numbers[T_END] - w.lane[T, l]
        proposed = min(w.lane[H, l], w.numbers[MAX_STEP])
        if w.state[RUN, l] < 0:
            w.lane[H_TRIED, l] = 0.0
        elif 1.01 * proposed >= abs(remaining):
            w.lane[H_TRIED, l] = remaining
        else:
            w.lane[H_TRIED, l] = proposed if remaining > 0.0 else -proposed


@kernel
def attempt(w):
    """One step of every lane with its own length, stage by stage."""
    for i in range(1, w.switches[STAGES]):
        weigh(w.A[i], i, w.lane[H_TRIED], w.y, w.K, w.x, 1.0)
        for l in range(LANES):
            w.lane[T_STAGE, l] = w.lane[T, l] + w.c[i] * w.lane[H_TRIED, l]
        call_lanes(w.f, w.lane[T_STAGE], w.x, w.p, w.dx)
        copy_lanes(w.dx, 0, w.K[i])
    weigh(w.b, w.switches[STAGES], w.lane[H_TRIED], w.y, w.K, w.y_new, 1.0)


@kernel
def fused_attempt(w):
    """The same as one call of machine code, see integrators.methods.fused."""
    n = w.y.shape[0]
    k = w.p.shape[0]
    s = w.switches[STAGES]
    for l in range(LANES):
        w.q[k, l] = w.lane[H_TRIED, l]
    for m in range(k):
        for l in range(LANES):
            w.q[m, l] = w.p[m, l]
    for m in range(n):
        for l in range(LANES):
            w.q[k + 1 + m, l] = w.K[0, m, l]
    call_lanes(w.fused, w.lane[T], w.y, w.q, w.results)
    copy_lanes(w.results, Y_NEW * n, w.y_new)
    copy_lanes(w.results, ERROR_ROW * n, w.error)
    if w.switches[TWO_ESTIMATES] == 1:
        copy_lanes(w.results, ERROR_LOW * n, w.error_low)
    first = 1 if w.switches[DENSE_DEGREE] > 0 else s - 1  # stages that somebody looks at
    for i in range(first, s):
        copy_lanes(w.results, (FIRST_STAGE + i - 1) * n, w.K[i])


@kernel
def copy_lanes(source, row, target):
    """target = source from a row on."""
    for m in range(target.shape[0]):
        for l in range(LANES):
            target[m, l] = source[row + m, l]


@kernel
def weigh(weights, count, h, y, K, out, share):
    """out = share·y + h Σ weights[j]·K[j], lane by lane."""
    n = y.shape[0]
    for m in range(n):
        for l in range(LANES):
            out[m, l] = 0.0
    for j in range(count):
        a = weights[j]
        if a != 0.0:
            for m in range(n):
                for l in range(LANES):
                    out[m, l] += a * K[j, m, l]
    for m in range(n):
        for l in range(LANES):
            out[m, l] = share * y[m, l] + h[l] * out[m, l]


@kernel
def measure(w):
    """Error norm of each lane into lane[ERROR]."""
    norms(w.switches, w.numbers, w.atol, w.y, w.y_new, w.error, w.lane[ERROR])
    if w.switches[TWO_ESTIMATES] == 1:  # combined as in DOP853
        norms(w.switches, w.numbers, w.atol, w.y, w.y_new, w.error_low, w.lane[T_STAGE])
        for l in range(LANES):
            high = w.lane[ERROR, l]
            low = w.lane[T_STAGE, l]
            if high > 0.0:
                w.lane[ERROR, l] = high * high / np.sqrt(high * high + 0.01 * low * low)


@kernel
def norms(switches, numbers, atol, y, y_new, error, out):
    """Weighted norm of the error of each lane."""
    n = y.shape[0]
    for l in range(LANES):
        out[l] = 0.0
    for m in range(n):
        for l in range(LANES):
            weight = atol[m] + numbers[RTOL] * max(abs(y[m, l]), abs(y_new[m, l]))
            scaled = abs(error[m, l]) / weight
            if switches[MAX_NORM] == 1:
                out[l] = scaled if scaled > out[l] or scaled != scaled else out[l]
            else:
                out[l] += scaled * scaled
    if switches[MAX_NORM] == 0:
        for l in range(LANES):
            out[l] = np.sqrt(out[l] / n)


@kernel
def decide(w, l):
    """Accept or reject the step of one lane; PENDING while its run goes on."""
    n = w.y.shape[0]
    error = w.lane[ERROR, l]
    h = w.lane[H_TRIED, l]
    finite = np.isfinite(error)
    for m in range(n):
        finite = finite and np.isfinite(w.y_new[m, l])
    if finite and error <= 1.0:
        factor = pid_factor(
            w.control, error, w.lane[ERROR_LAST, l], w.lane[ERROR_BEFORE, l], w.state[NSTEPS, l],
            w.state[LAST_REJECTED, l],
        )  # fmt: skip
        t_new = w.lane[T, l] + h
        if abs(w.numbers[T_END] - t_new) <= 4 * EPS * abs(w.numbers[T_END]):
            t_new = w.numbers[T_END]
        output(w, l, t_new)
        w.lane[H, l] = abs(h) * factor
        w.lane[ERROR_BEFORE, l] = w.lane[ERROR_LAST, l]
        w.lane[ERROR_LAST, l] = max(error, 1e-10)
        w.lane[T, l] = t_new
        w.state[NSTEPS, l] += 1
        w.state[LAST_REJECTED, l] = 0
        for m in range(n):
            w.y[m, l] = w.y_new[m, l]
            if w.switches[FSAL] == 1:
                w.K[0, m, l] = w.K[w.switches[STAGES] - 1, m, l]
        if t_new == w.numbers[T_END]:
            return FINISHED
    else:
        w.state[NREJECTED, l] += 1
        w.state[LAST_REJECTED, l] = 1
        w.lane[H, l] = abs(h) * (factor_after_rejection(w.control, error) if finite else 0.25)
        if w.lane[H, l] <= max(w.numbers[MIN_STEP], 16 * EPS * abs(w.lane[T, l])):
            return STEP_TOO_SMALL if finite else NONFINITE
    if w.state[NSTEPS, l] + w.state[NREJECTED, l] >= w.switches[MAX_STEPS]:
        return TOO_MANY_STEPS
    return PENDING


@kernel
def output(w, l, t_new):
    """Values at the output times inside the step, by the method's dense output."""
    run = w.state[RUN, l]
    t = w.lane[T, l]
    h = w.lane[H_TRIED, l]
    k = w.state[NEXT_OUTPUT, l]
    while k < w.t_eval.shape[0] and (t_new - w.t_eval[k]) * h >= 0.0:
        theta = (w.t_eval[k] - t) / h
        for m in range(w.y.shape[0]):
            value = 0.0
            for i in range(w.P.shape[0]):
                weight = 0.0
                for j in range(w.switches[DENSE_DEGREE] - 1, -1, -1):
                    weight = (weight + w.P[i, j]) * theta
                value += weight * w.K[i, m, l]
            w.y_eval[run, m, k] = w.y_new[m, l] if w.t_eval[k] == t_new else w.y[m, l] + h * value
        k += 1
    w.state[NEXT_OUTPUT, l] = k
