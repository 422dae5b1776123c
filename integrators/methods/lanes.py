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
def run_lanes(
    f,
    fused,
    A,
    b,
    c,
    e,
    e_low,
    P,
    switches,
    numbers,
    control,
    atol,
    y0,
    p0,
    t_eval,
    first,
    last,
    y_end,
    t_end,
    status,
    steps,
    rejected,
    y_eval,
    lane,
    state,
    p,
    y,
    x,
    dx,
    y_new,
    K,
    error,
    error_low,
    q,
    results,
):
    """Integrate the runs first … last − 1; results go to the rows of y_end, t_end, status, …"""
    queue = first
    for l in range(LANES):
        if queue < last:
            load(l, queue, lane, state, numbers, y0, p0, y, p)
            queue += 1
        else:
            state[RUN, l] = -1
            for m in range(y.shape[0]):
                y[m, l] = y0[first, m]
            for m in range(p.shape[0]):
                p[m, l] = p0[first, m]
            lane[T, l] = numbers[T_START]
    while True:
        busy = False
        starting = False
        for l in range(LANES):
            if state[RUN, l] >= 0:
                busy = True
                if state[STARTING, l] == 1:
                    starting = True
        if not busy:
            return
        if starting:
            start(f, numbers, atol, switches, lane, state, p, y, x, dx, K)
        elif switches[FSAL] == 0:
            slopes(f, lane, state, p, y, dx, K)
        choose_lengths(numbers, lane, state)
        if fused != 0:
            fused_attempt(fused, switches, lane, p, y, y_new, K, error, error_low, q, results)
        else:
            attempt(f, A, b, c, switches, lane, p, y, x, dx, y_new, K)
            weigh(e, switches[STAGES], lane[H_TRIED], y, K, error, 0.0)
            if switches[TWO_ESTIMATES] == 1:
                weigh(e_low, switches[STAGES], lane[H_TRIED], y, K, error_low, 0.0)
        measure(switches, numbers, atol, lane, y, y_new, error, error_low)
        for l in range(LANES):
            run = state[RUN, l]
            if run < 0:
                continue
            outcome = decide(l, switches, numbers, control, lane, state, y, y_new, K, P, t_eval,
                             y_eval)  # fmt: skip
            if outcome == PENDING:
                continue
            for m in range(y.shape[0]):
                y_end[run, m] = y[m, l]
            t_end[run] = lane[T, l]
            status[run] = outcome
            steps[run] = state[NSTEPS, l]
            rejected[run] = state[NREJECTED, l]
            if queue < last:
                load(l, queue, lane, state, numbers, y0, p0, y, p)
                queue += 1
            else:
                state[RUN, l] = -1


@kernel
def load(l, run, lane, state, numbers, y0, p0, y, p):
    """Put a run into a lane."""
    for m in range(y.shape[0]):
        y[m, l] = y0[run, m]
    for m in range(p.shape[0]):
        p[m, l] = p0[run, m]
    lane[T, l] = numbers[T_START]
    lane[ERROR_LAST, l] = 1.0
    lane[ERROR_BEFORE, l] = 1.0
    state[RUN, l] = run
    state[NSTEPS, l] = 0
    state[NREJECTED, l] = 0
    state[LAST_REJECTED, l] = 0
    state[STARTING, l] = 1
    state[NEXT_OUTPUT, l] = 0


@kernel
def slopes(f, lane, state, p, y, dx, K):
    """First stages: f at the current points."""
    call_lanes(f, lane[T], y, p, dx)
    for m in range(y.shape[0]):
        for l in range(LANES):
            K[0, m, l] = dx[m, l]


@kernel
def start(f, numbers, atol, switches, lane, state, p, y, x, dx, K):
    """First slopes and first step sizes of newly loaded lanes (Hairer's guess, II.4)."""
    n = y.shape[0]
    direction = 1.0 if numbers[T_END] >= numbers[T_START] else -1.0
    length = abs(numbers[T_END] - numbers[T_START])
    call_lanes(f, lane[T], y, p, dx)
    for l in range(LANES):
        new = state[STARTING, l] == 1
        for m in range(n):
            if new or switches[FSAL] == 0:
                K[0, m, l] = dx[m, l]
        d0 = 0.0
        d1 = 0.0
        for m in range(n):
            weight = atol[m] + numbers[RTOL] * abs(y[m, l])
            d0 += (y[m, l] / weight) ** 2
            d1 += (K[0, m, l] / weight) ** 2
        d0 = np.sqrt(d0 / n)
        d1 = np.sqrt(d1 / n)
        h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
        h0 = min(h0, length)
        lane[H_TRIED, l] = h0
        lane[ERROR, l] = d1
        lane[T_STAGE, l] = lane[T, l] + direction * h0
        for m in range(n):
            x[m, l] = y[m, l] + direction * h0 * K[0, m, l]
    call_lanes(f, lane[T_STAGE], x, p, dx)
    for l in range(LANES):
        if state[STARTING, l] == 0:
            continue
        state[STARTING, l] = 0
        h0 = lane[H_TRIED, l]
        d2 = 0.0
        for m in range(n):
            weight = atol[m] + numbers[RTOL] * abs(y[m, l])
            d2 += ((dx[m, l] - K[0, m, l]) / weight) ** 2
        d2 = np.sqrt(d2 / n) / h0
        greatest = max(lane[ERROR, l], d2)
        if not np.isfinite(greatest):
            h1 = 1e-3 * h0
        elif greatest <= 1e-15:
            h1 = max(1e-6, h0 * 1e-3)
        else:
            h1 = (0.01 / greatest) ** numbers[EXPONENT]
        lane[H, l] = min(100 * h0, h1, length)
        if numbers[FIRST_STEP] > 0.0:
            lane[H, l] = numbers[FIRST_STEP]


@kernel
def choose_lengths(numbers, lane, state):
    """Length of the step that each lane tries; idle lanes stand still."""
    for l in range(LANES):
        remaining = numbers[T_END] - lane[T, l]
        proposed = min(lane[H, l], numbers[MAX_STEP])
        if state[RUN, l] < 0:
            lane[H_TRIED, l] = 0.0
        elif 1.01 * proposed >= abs(remaining):
            lane[H_TRIED, l] = remaining
        else:
            lane[H_TRIED, l] = proposed if remaining > 0.0 else -proposed


@kernel
def attempt(f, A, b, c, switches, lane, p, y, x, dx, y_new, K):
    """One step of every lane with its own length, stage by stage."""
    for i in range(1, switches[STAGES]):
        weigh(A[i], i, lane[H_TRIED], y, K, x, 1.0)
        for l in range(LANES):
            lane[T_STAGE, l] = lane[T, l] + c[i] * lane[H_TRIED, l]
        call_lanes(f, lane[T_STAGE], x, p, dx)
        copy_lanes(dx, 0, K[i])
    weigh(b, switches[STAGES], lane[H_TRIED], y, K, y_new, 1.0)


@kernel
def fused_attempt(fused, switches, lane, p, y, y_new, K, error, error_low, q, results):
    """The same as one call of machine code, see integrators.methods.fused."""
    n = y.shape[0]
    k = p.shape[0]
    s = switches[STAGES]
    for l in range(LANES):
        q[k, l] = lane[H_TRIED, l]
    for m in range(k):
        for l in range(LANES):
            q[m, l] = p[m, l]
    for m in range(n):
        for l in range(LANES):
            q[k + 1 + m, l] = K[0, m, l]
    call_lanes(fused, lane[T], y, q, results)
    copy_lanes(results, Y_NEW * n, y_new)
    copy_lanes(results, ERROR_ROW * n, error)
    if switches[TWO_ESTIMATES] == 1:
        copy_lanes(results, ERROR_LOW * n, error_low)
    first = 1 if switches[DENSE_DEGREE] > 0 else s - 1  # stages that somebody looks at
    for i in range(first, s):
        copy_lanes(results, (FIRST_STAGE + i - 1) * n, K[i])


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
def measure(switches, numbers, atol, lane, y, y_new, error, error_low):
    """Error norm of each lane into lane[ERROR]."""
    norms(switches, numbers, atol, y, y_new, error, lane[ERROR])
    if switches[TWO_ESTIMATES] == 1:  # combined as in DOP853
        norms(switches, numbers, atol, y, y_new, error_low, lane[T_STAGE])
        for l in range(LANES):
            high = lane[ERROR, l]
            low = lane[T_STAGE, l]
            if high > 0.0:
                lane[ERROR, l] = high * high / np.sqrt(high * high + 0.01 * low * low)


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
def decide(l, switches, numbers, control, lane, state, y, y_new, K, P, t_eval, y_eval):
    """Accept or reject the step of one lane; PENDING while its run goes on."""
    n = y.shape[0]
    error = lane[ERROR, l]
    h = lane[H_TRIED, l]
    finite = np.isfinite(error)
    for m in range(n):
        finite = finite and np.isfinite(y_new[m, l])
    if finite and error <= 1.0:
        factor = pid_factor(
            control, error, lane[ERROR_LAST, l], lane[ERROR_BEFORE, l], state[NSTEPS, l],
            state[LAST_REJECTED, l],
        )  # fmt: skip
        t_new = lane[T, l] + h
        if abs(numbers[T_END] - t_new) <= 4 * EPS * abs(numbers[T_END]):
            t_new = numbers[T_END]
        output(l, t_new, switches, lane, state, y, y_new, K, P, t_eval, y_eval)
        lane[H, l] = abs(h) * factor
        lane[ERROR_BEFORE, l] = lane[ERROR_LAST, l]
        lane[ERROR_LAST, l] = max(error, 1e-10)
        lane[T, l] = t_new
        state[NSTEPS, l] += 1
        state[LAST_REJECTED, l] = 0
        for m in range(n):
            y[m, l] = y_new[m, l]
            if switches[FSAL] == 1:
                K[0, m, l] = K[switches[STAGES] - 1, m, l]
        if t_new == numbers[T_END]:
            return FINISHED
    else:
        state[NREJECTED, l] += 1
        state[LAST_REJECTED, l] = 1
        lane[H, l] = abs(h) * (factor_after_rejection(control, error) if finite else 0.25)
        if lane[H, l] <= max(numbers[MIN_STEP], 16 * EPS * abs(lane[T, l])):
            return STEP_TOO_SMALL if finite else NONFINITE
    if state[NSTEPS, l] + state[NREJECTED, l] >= switches[MAX_STEPS]:
        return TOO_MANY_STEPS
    return PENDING


@kernel
def output(l, t_new, switches, lane, state, y, y_new, K, P, t_eval, y_eval):
    """Values at the output times inside the step, by the method's dense output."""
    run = state[RUN, l]
    t = lane[T, l]
    h = lane[H_TRIED, l]
    k = state[NEXT_OUTPUT, l]
    while k < t_eval.shape[0] and (t_new - t_eval[k]) * h >= 0.0:
        theta = (t_eval[k] - t) / h
        for m in range(y.shape[0]):
            value = 0.0
            for i in range(P.shape[0]):
                weight = 0.0
                for j in range(switches[DENSE_DEGREE] - 1, -1, -1):
                    weight = (weight + P[i, j]) * theta
                value += weight * K[i, m, l]
            y_eval[run, m, k] = y_new[m, l] if t_eval[k] == t_new else y[m, l] + h * value
        k += 1
    state[NEXT_OUTPUT, l] = k
