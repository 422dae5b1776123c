"""Many runs side by side: explicit Runge–Kutta steps in the lanes of SIMD registers.

Each lane is one run with its own time, step size and error control. Two pieces of machine code
treat all lanes at once: one takes the step (``fused``), one judges it (``judge``). What is left for
the loop here is to give a lane whose run has ended the next one from the queue, and to end when it
is told to. Arrays have the lane as last axis.

The arithmetic of a step and the rules of step-size control are those of the single run: the step
is traced from ``explicit``, the judge and the first step use ``stepping.control``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import kernel
from ..kernels.pointers import call_lanes
from ..methods.runge_kutta.fused import fused_step_function, outputs_size
from ..problem import IVP
from ..stepping.control import first_length, reach, shortest_step, trial_length
from ..stepping.state import Status
from ..stepping.workspace import Lanes
from ..tableau import ContinuousExtension, Tableau
from ..tableau.extension import dense_extension
from .judge import ROWS, Block, judge

LANES = 8  # two AVX registers, or one AVX-512 register, of doubles
LARGEST_AROUND = 20_000  # operations of a step around calls of f

# Rows of `lane`.
T, H, IDLE = ROWS["T"], ROWS["H"], ROWS["IDLE"]
LOG_LAST, LOG_BEFORE, OUTCOME = ROWS["LOG_LAST"], ROWS["LOG_BEFORE"], ROWS["OUTCOME"]
NSTEPS, NREJECTED, REJECTED = ROWS["NSTEPS"], ROWS["NREJECTED"], ROWS["REJECTED"]
T_END, MIN_STEP, MAX_STEP = ROWS["T_END"], ROWS["MIN_STEP"], ROWS["MAX_STEP"]

# Rows of `run` (integers).
RUN, STARTING, NEXT_OUTPUT = range(3)

INTERRUPTED = float(Status.INTERRUPTED)


__all__ = ["LANES", "LaneCode", "lane_code", "run_lanes"]


@kernel
def run_lanes(w, first, last):
    """Integrate the runs first … last − 1; results go to the rows of y_end, t_end, status, …

    When STOP is set, runs under way are stored as they are, and those in the queue left alone.
    """
    queue = first
    busy = 0
    for l in range(LANES):
        if queue < last:
            load(w, l, queue)
            queue += 1
            busy += 1
        else:
            load(w, l, first)  # something to compute with
            rest(w, l)
    if busy > 0:
        start(w)
    while busy > 0:
        if w.stop != 0:
            for l in range(LANES):
                if w.lane[IDLE, l] == 0.0:
                    w.lane[OUTCOME, l] = INTERRUPTED
                    store(w, l)
            return
        call_lanes(w.fused, w.lane[T], w.y, w.block, w.results)
        if w.t_eval.shape[0] > 0:
            outputs(w)
        call_lanes(w.judge, w.lane[T], w.results, w.block, w.judged)
        if w.trail_t.shape[0] > 0:
            keep_steps(w)
        ended = False
        for l in range(LANES):
            if w.lane[OUTCOME, l] != 0.0:
                ended = True
        if not ended:
            continue
        loaded = False
        for l in range(LANES):
            if w.lane[OUTCOME, l] == 0.0:
                continue
            store(w, l)
            if queue < last:
                load(w, l, queue)
                queue += 1
                loaded = True
            else:
                rest(w, l)
                busy -= 1
        if loaded:
            start(w)


@kernel
def load(w, l, run):
    """Put a run into a lane."""
    for m in range(w.y.shape[0]):
        w.y[m, l] = w.y0[run, m]
    for m in range(w.p.shape[0]):
        w.p[m, l] = w.p0[run, m]
    w.lane[T, l] = w.t_start
    w.lane[LOG_LAST, l] = 0.0
    w.lane[LOG_BEFORE, l] = 0.0
    w.lane[NSTEPS, l] = 0.0
    w.lane[NREJECTED, l] = 0.0
    w.lane[REJECTED, l] = 0.0
    w.lane[OUTCOME, l] = 0.0
    w.lane[IDLE, l] = 0.0
    w.run[RUN, l] = run
    w.run[STARTING, l] = 1
    w.run[NEXT_OUTPUT, l] = 0


@kernel
def rest(w, l):
    """Let a lane stand still: it takes steps of length 0 at the end."""
    w.lane[T, l] = w.lane[T_END, l]
    w.lane[IDLE, l] = 1.0
    w.lane[OUTCOME, l] = 0.0
    w.h[l] = 0.0
    w.run[STARTING, l] = 0


@kernel
def store(w, l):
    """Keep the results of a run that has ended."""
    run = w.run[RUN, l]
    for m in range(w.y.shape[0]):
        w.y_end[run, m] = w.y[m, l]
    w.t_end[run] = w.lane[T, l]
    w.status[run] = int(min(w.lane[OUTCOME, l], 0.0))
    w.steps[run] = int(w.lane[NSTEPS, l])
    w.rejected[run] = int(w.lane[NREJECTED, l])
    w.h_end[run] = w.lane[H, l]


@kernel
def keep_steps(w):
    """Keep times and states of the steps just accepted, for who looks at runs afterwards."""
    for l in range(LANES):
        if w.lane[IDLE, l] != 0.0 or w.lane[REJECTED, l] != 0.0:
            continue
        run = w.run[RUN, l]
        at = w.trail_at[run] + int(w.lane[NSTEPS, l]) - 1
        if at < w.trail_at[run + 1]:
            w.trail_t[at] = w.lane[T, l]
            for m in range(w.y.shape[0]):
                w.trail_y[at, m] = w.y[m, l]


@kernel
def start(w):
    """First slopes and first step sizes of newly loaded lanes, as ``loop.first_step``."""
    n = w.y.shape[0]
    call_lanes(w.f, w.lane[T], w.y, w.p, w.dx)
    for l in range(LANES):
        length = abs(w.lane[T_END, l] - w.lane[T, l])
        direction = 1.0 if w.lane[T_END, l] >= w.lane[T, l] else -1.0
        new = w.run[STARTING, l] == 1
        d0 = 0.0
        d1 = 0.0
        for m in range(n):
            if new:
                w.f0[m, l] = w.dx[m, l]
            weight = w.atol[m] + w.rtol * abs(w.y[m, l])
            state = w.y[m, l] / weight
            slope = w.dx[m, l] / weight
            d0 += state * state
            d1 += slope * slope
        d0 = np.sqrt(d0 / n)
        d1 = np.sqrt(d1 / n)
        h = trial_length(d0, d1, length)
        w.first[0, l] = w.lane[T, l] + direction * h
        w.first[1, l] = h
        w.first[2, l] = d1
        for m in range(n):
            w.x[m, l] = w.y[m, l] + direction * h * w.dx[m, l]
    call_lanes(w.f, w.first[0], w.x, w.p, w.dx)
    for l in range(LANES):
        if w.run[STARTING, l] == 0:
            continue
        w.run[STARTING, l] = 0
        length = abs(w.lane[T_END, l] - w.lane[T, l])
        h = w.first[1, l]
        d2 = 0.0
        for m in range(n):
            weight = w.atol[m] + w.rtol * abs(w.y[m, l])
            change = (w.dx[m, l] - w.f0[m, l]) / weight
            d2 += change * change
        d2 = np.sqrt(d2 / n) / h
        guess = first_length(h, w.first[2, l], d2, w.exponent, length)
        if w.first_step > 0.0:
            guess = w.first_step
        smallest = shortest_step(w.lane[MIN_STEP, l], w.lane[T, l])
        guess = max(min(guess, w.lane[MAX_STEP, l]), smallest)
        remaining = w.lane[T_END, l] - w.lane[T, l]
        if not np.isfinite(w.first[2, l]) and not finite_slope(w, l):
            w.h[l] = np.nan  # the judge ends the run, by an attempt that does not count
            w.lane[NREJECTED, l] = -1.0
        elif length <= reach(guess, w.lane[MAX_STEP, l]):
            w.h[l] = remaining
        else:
            w.h[l] = guess if remaining > 0.0 else -guess


@kernel
def finite_slope(w, l):
    """Whether the first slope of a lane is finite."""
    for m in range(w.f0.shape[0]):
        if not np.isfinite(w.f0[m, l]):
            return False
    return True


@kernel
def copy_lanes(source, target):
    """target = source."""
    for m in range(target.shape[0]):
        for l in range(LANES):
            target[m, l] = source[m, l]


@kernel
def weigh(weights, count, h, y, K, out):
    """out = y + h Σ weights[j]·K[j], lane by lane."""
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
            out[m, l] = y[m, l] + h[l] * out[m, l]


@kernel
def outputs(w):
    """Values at the output times inside the steps that will be accepted, by dense output."""
    ready = False
    for l in range(LANES):
        accepted = w.lane[IDLE, l] == 0.0 and w.results[0, l] <= 1.0
        for m in range(w.y.shape[0]):
            accepted = accepted and np.isfinite(w.y_new[m, l])
        if accepted and holds_output(w, l):
            if not ready:
                further_slopes(w)
                ready = True
            output(w, l)


@kernel
def end_of_step(w, l):
    """Where the step of a lane leads to."""
    h = w.h[l]
    t = w.lane[T, l]
    return w.lane[T_END, l] if h == w.lane[T_END, l] - t else t + h


@kernel
def holds_output(w, l):
    """Whether there is an output time inside the step of a lane."""
    k = w.run[NEXT_OUTPUT, l]
    return k < w.t_eval.shape[0] and (end_of_step(w, l) - w.t_eval[k]) * w.h[l] >= 0.0


@kernel
def further_slopes(w):
    """Slopes that only dense output needs, of all lanes."""
    for i in range(w.stages, w.P.shape[0]):
        weigh(w.A[i], i, w.h, w.y, w.K, w.x)
        for l in range(LANES):
            w.first[0, l] = w.lane[T, l] + w.c[i] * w.h[l]
        call_lanes(w.f, w.first[0], w.x, w.p, w.dx)
        copy_lanes(w.dx, w.K[i])


@kernel
def output(w, l):
    """Values at the output times inside one step."""
    run = w.run[RUN, l]
    t = w.lane[T, l]
    h = w.h[l]
    t_new = end_of_step(w, l)
    k = w.run[NEXT_OUTPUT, l]
    straight = not finite_slopes(w, l)  # as dense.straight_if_not_finite
    while k < w.t_eval.shape[0] and (t_new - w.t_eval[k]) * h >= 0.0:
        theta = (w.t_eval[k] - t) / h
        for m in range(w.y.shape[0]):
            value = 0.0
            for i in range(w.P.shape[0]):
                value += dense_weight(w.P[i], theta) * w.K[i, m, l]
            value *= h
            if straight:
                value = theta * (w.y_new[m, l] - w.y[m, l])
            w.y_eval[run, m, k] = w.y_new[m, l] if w.t_eval[k] == t_new else w.y[m, l] + value
        k += 1
    w.run[NEXT_OUTPUT, l] = k


@kernel
def finite_slopes(w, l):
    """Whether dense output of a lane's step has what it needs."""
    for i in range(w.P.shape[0]):
        for m in range(w.y.shape[0]):
            if not np.isfinite(w.K[i, m, l]):
                return False
    return True


@kernel
def dense_weight(coefficients, theta):
    """Σⱼ coefficientsⱼ θ Lⱼ(θ) with Legendre's polynomials on [0, 1], by their recurrence."""
    x = 2.0 * theta - 1.0
    before = 0.0
    here = 1.0
    total = 0.0
    for j in range(coefficients.shape[0]):
        total += coefficients[j] * here
        after = ((2 * j + 1) * x * here - j * before) / (j + 1)
        before = here
        here = after
    return theta * total


@dataclass
class LaneCode:
    """Machine code in lanes: the right-hand side, a whole step, and its judge.

    `dense` is the continuous extension, if it is needed; `kept` is the number of stages that a
    step leaves behind.
    """

    tableau: Tableau
    f: Any
    fused: Any
    judge: Any
    dense: ContinuousExtension | None
    kept: int
    block: Block

    @property
    def estimate_order(self) -> int:
        """Order of the error estimate."""
        order, embedded = self.tableau.order, self.tableau.embedded_order
        assert embedded is not None
        return order - 1 if self.tableau.low_error_weights is not None else min(order, embedded)

    def workspace(self, constants: list[float], **shared: Any) -> Lanes:
        """Return the arrays of one thread; `constants` are the rows of a lane from T_END on."""
        tableau, rows, kept = self.tableau, self.block, self.kept
        A, _, c = tableau.arrays
        n, s = shared["atol"].size, tableau.stages
        block = np.zeros((rows.size, LANES))
        block[rows.rtol] = shared["common"].rtol
        block[rows.address].view(np.int64)[0] = self.f.address
        block[rows.atol] = shared["atol"][:, None]
        lane = block[rows.lane]
        lane[T_END:] = np.array(constants, dtype=np.float64)[:, None]
        P = np.zeros((0, 0))
        if self.dense is not None:
            P, extra = self.dense.P, len(self.dense.c_extra)
            A = np.pad(A, (0, extra))
            for i, row in enumerate(self.dense.A_extra):
                A[s + i, : len(row)] = row
            c = np.append(c, self.dense.c_extra)
        room = max(kept, len(P))  # for the slopes that dense output adds, behind the others
        results = np.zeros((outputs_size(n, room), LANES))
        return Lanes(
            f=self.f.address,
            fused=self.fused.address,
            judge=self.judge.address,
            A=A.copy(),
            c=c.copy(),
            P=P,
            **shared,
            run=np.zeros((3, LANES), dtype=np.int64),
            block=block,
            p=block[rows.p],
            f0=block[rows.f0],
            h=block[rows.h],
            y=block[rows.y],
            lane=lane,
            judged=block[rows.changing(tableau.fsal)],
            results=results,
            y_new=results[1 : 1 + n],
            K=results[1 + n :].reshape(room, n, LANES),
            x=np.zeros((n, LANES)),
            dx=np.zeros((n, LANES)),
            first=np.zeros((3, LANES)),
        )


def lane_code(ivp: IVP, method: Any, t_eval: NDArray[np.float64], max_norm: bool) -> LaneCode | str:
    """Compile what runs in lanes need; or say why the method, or its output, has no place here.

    Raises whatever tracing or compiling f raises.
    """
    from ..tracing import traced

    if not isinstance(method, Tableau) or not method.is_explicit:
        return "lanes are for explicit tableaux"
    if method.b_hat is None:
        return f"{method.name} has no embedded error estimate"
    if t_eval.size and method.simplifying_assumptions()[1] < 1:
        return f"stages of {method.name} stand at times that are not theirs"
    n, k = ivp.n, ivp.params.size
    f = traced(ivp.f, n=n, params=k or None)
    kept = method.stages if t_eval.size else int(method.fsal)
    step = fused_step_function(f, method, k, max_norm, kept, around=LARGEST_AROUND)
    if step is None:
        return f"a step of {method.name} with {n} states is too long for machine code"
    return LaneCode(
        method,
        f.machine_code(LANES),
        step.machine_code(LANES),
        judge(n, k, kept, method.fsal).machine_code(LANES),
        dense_extension(method) if t_eval.size else None,
        kept,
        Block(n, k),
    )
