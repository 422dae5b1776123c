"""Many runs side by side: explicit Runge–Kutta steps in the lanes of SIMD registers.

Each lane is one run with its own time, step size and error control. Two pieces of machine code
treat all lanes at once: one takes the step (``fused``, or the right-hand side stage by stage),
one judges it (``judge``). What is left for the loop here is to give a lane whose run has ended the
next one from the queue, and to end when it is told to. Arrays have the lane as last axis.

The arithmetic of a step and the rules of step-size control are those of the single run in
``explicit`` and ``loop``; a test holds both to the same numbers of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import kernel
from ..kernels.pointers import call_lanes, invoke
from ..methods.runge_kutta.fused import fused_step_function, outputs_size
from ..problem import IVP
from ..stepping.state import Status
from ..stepping.workspace import Lanes
from ..tableau import ContinuousExtension, Tableau
from ..tableau.extension import dense_extension, in_powers
from .fixed_judge import fixed_judge
from .judge import EPS, LEEWAY, STRETCH, Block, judge
from .lane_rows import (
    H_FIXED,
    IDLE,
    LANES,
    LOG_BEFORE,
    LOG_LAST,
    MAX_STEP,
    MIN_STEP,
    NEXT_OUTPUT,
    NREJECTED,
    NSTEPS,
    OUTCOME,
    REJECTED,
    RUN,
    STARTING,
    T_BASE,
    T_END,
    H,
    T,
)
from .lane_tasks import LaneTasks, Noted

# Places in `switches`, which all threads share; STOP is set from outside.
STAGES, FSAL, TWO_ESTIMATES, MAX_NORM, FIXED, STOP = range(6)

# Places in `numbers`.
FIRST_STEP, EXPONENT = range(2)

INTERRUPTED = float(Status.INTERRUPTED)


__all__ = ["LANES", "STOP", "LaneCode", "lane_code", "run_lanes"]


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
        begin(w)
    while busy > 0:
        if w.switches[STOP] != 0:
            for l in range(LANES):
                if w.lane[IDLE, l] == 0.0:
                    w.lane[OUTCOME, l] = INTERRUPTED
                    store(w, l)
            return
        if w.fused != 0:
            call_lanes(w.fused, w.lane[T], w.y, w.block, w.results)
        else:
            attempt(w)
            measure(w)
        if w.t_eval.shape[0] > 0:
            outputs(w)
        if w.after != 0:
            remember(w)
        call_lanes(w.judge, w.lane[T], w.results, w.block, w.judged)
        if w.after != 0:
            invoke(w, w.after, 0.0, 0.0)
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
            begin(w)


@kernel
def begin(w):
    """Start the lanes that have been loaded."""
    if w.begun != 0:
        invoke(w, w.begun, 0.0, 0.0)
    start(w)


@kernel
def remember(w):
    """Keep where the steps start that are about to be judged."""
    for l in range(LANES):
        w.old[0, l] = w.lane[T, l]
        w.old[1, l] = w.h[l]
    copy_lanes(w.y, w.y_old)


@kernel
def load(w, l, run):
    """Put a run into a lane."""
    for m in range(w.y.shape[0]):
        w.y[m, l] = w.y0[run, m]
    for m in range(w.p.shape[0]):
        w.p[m, l] = w.p0[run, m]
    row = run if w.spans.shape[0] > 1 else 0
    w.lane[T, l] = w.spans[row, 0]
    w.lane[T_BASE, l] = w.spans[row, 0]
    w.lane[T_END, l] = w.spans[row, 1]
    w.rtol[l] = w.rtols[run if w.rtols.shape[0] > 1 else 0]
    row = run if w.atols.shape[0] > 1 else 0
    for m in range(w.y.shape[0]):
        w.atol[m, l] = w.atols[row, m]
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
    w.ending[run] = w.lane[OUTCOME, l]
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
            weight = w.atol[m, l] + w.rtol[l] * abs(w.y[m, l])
            d0 += (w.y[m, l] / weight) ** 2
            d1 += (w.dx[m, l] / weight) ** 2
        d0 = np.sqrt(d0 / n)
        d1 = np.sqrt(d1 / n)
        h = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
        h = min(h, length)
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
            weight = w.atol[m, l] + w.rtol[l] * abs(w.y[m, l])
            d2 += ((w.dx[m, l] - w.f0[m, l]) / weight) ** 2
        d2 = np.sqrt(d2 / n) / h
        greatest = max(w.first[2, l], d2)
        if not np.isfinite(d2):
            guess = 1e-3 * h
        elif greatest <= 1e-15:
            guess = max(1e-6, h * 1e-3)
        else:
            guess = (0.01 / greatest) ** w.numbers[EXPONENT]
        guess = min(100 * h, guess, length)
        if w.numbers[FIRST_STEP] > 0.0:
            guess = w.numbers[FIRST_STEP]
        if w.switches[FIXED] == 1:
            first_of_fixed_steps(w, l)
            continue
        smallest = max(w.lane[MIN_STEP, l], 16 * EPS * abs(w.lane[T, l]))
        guess = max(min(guess, w.lane[MAX_STEP, l]), smallest)
        remaining = w.lane[T_END, l] - w.lane[T, l]
        if not np.isfinite(w.first[2, l]) and not finite_slope(w, l):
            w.h[l] = np.nan  # the judge ends the run, by an attempt that does not count
            w.lane[NREJECTED, l] = -1.0
        elif length <= min(STRETCH * guess, LEEWAY * w.lane[MAX_STEP, l]):
            w.h[l] = remaining
        else:
            w.h[l] = guess if remaining > 0.0 else -guess


@kernel
def first_of_fixed_steps(w, l):
    """Length of the first of the steps of fixed length of a lane, as in ``loop.fixed_step``."""
    h = w.lane[H_FIXED, l]
    t, end = w.lane[T, l], w.lane[T_END, l]
    rounding = 8 * EPS * max(abs(t), abs(end))
    is_last = (end - (t + h)) * np.sign(h) <= max(rounding, 1e-9 * abs(h))
    w.h[l] = end - t if is_last and abs(end - t - h) > rounding else h
    if not finite_slope(w, l):
        w.h[l] = np.nan  # the judge ends the run


@kernel
def finite_slope(w, l):
    """Whether the first slope of a lane is finite."""
    for m in range(w.f0.shape[0]):
        if not np.isfinite(w.f0[m, l]):
            return False
    return True


@kernel
def attempt(w):
    """One step of every lane with its own length, stage by stage."""
    if w.switches[FSAL] == 1:
        copy_lanes(w.f0, w.K[0])
    else:
        call_lanes(w.f, w.lane[T], w.y, w.p, w.dx)
        copy_lanes(w.dx, w.K[0])
    for i in range(1, w.switches[STAGES]):
        weigh(w.A[i], i, w.h, w.y, w.K, w.x, 1.0)
        for l in range(LANES):
            w.first[0, l] = w.lane[T, l] + w.c[i] * w.h[l]
        call_lanes(w.f, w.first[0], w.x, w.p, w.dx)
        copy_lanes(w.dx, w.K[i])
    weigh(w.b, w.switches[STAGES], w.h, w.y, w.K, w.y_new, 1.0)


@kernel
def copy_lanes(source, target):
    """target = source."""
    for m in range(target.shape[0]):
        for l in range(LANES):
            target[m, l] = source[m, l]


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
    """Error norm of each lane into the first row of the results."""
    weigh(w.e, w.switches[STAGES], w.h, w.y, w.K, w.x, 0.0)
    norms(w.switches, w.rtol, w.atol, w.y, w.y_new, w.x, w.results[0])
    if w.switches[TWO_ESTIMATES] == 1:  # combined as in DOP853
        weigh(w.e_low, w.switches[STAGES], w.h, w.y, w.K, w.x, 0.0)
        norms(w.switches, w.rtol, w.atol, w.y, w.y_new, w.x, w.first[0])
        for l in range(LANES):
            high = w.results[0, l]
            low = w.first[0, l]
            if high != 0.0:
                w.results[0, l] = high * high / np.sqrt(high * high + 0.01 * low * low)


@kernel
def norms(switches, rtol, atol, y, y_new, error, out):
    """Weighted norm of the error of each lane."""
    n = y.shape[0]
    for l in range(LANES):
        out[l] = 0.0
    for m in range(n):
        for l in range(LANES):
            weight = atol[m, l] + rtol[l] * max(abs(y[m, l]), abs(y_new[m, l]))
            scaled = abs(error[m, l]) / weight
            if switches[MAX_NORM] == 1:
                out[l] = scaled if scaled > out[l] or scaled != scaled else out[l]
            else:
                out[l] += scaled * scaled
    if switches[MAX_NORM] == 0:
        for l in range(LANES):
            out[l] = np.sqrt(out[l] / n)


@kernel
def outputs(w):
    """Values at the output times inside the steps that will be accepted, by dense output."""
    ready = False
    for l in range(LANES):
        accepted = w.lane[IDLE, l] == 0.0
        accepted = accepted and (w.switches[FIXED] == 1 or w.results[0, l] <= 1.0)
        for m in range(w.y.shape[0]):
            accepted = accepted and np.isfinite(w.y_new[m, l])
        if accepted and holds_output(w, l):
            if not ready:
                further_slopes(w)
                step_polynomials(w)
                ready = True
            output(w, l)


@kernel
def end_of_step(w, l):
    """Where the step of a lane leads to."""
    h = w.h[l]
    t = w.lane[T, l]
    if w.switches[FIXED] == 1:
        end, step = w.lane[T_END, l], w.lane[H_FIXED, l]
        ahead = w.lane[T_BASE, l] + (w.lane[NSTEPS, l] + 1.0) * step
        rounding = 8 * EPS * max(abs(t), abs(end))
        is_last = (end - ahead) * np.sign(step) <= max(rounding, 1e-9 * abs(step))
        return end if is_last else ahead
    return w.lane[T_END, l] if h == w.lane[T_END, l] - t else t + h


@kernel
def holds_output(w, l):
    """Whether there is an output time inside the step of a lane."""
    k = w.run[NEXT_OUTPUT, l]
    return k < w.t_eval.shape[0] and (end_of_step(w, l) - w.t_eval[k]) * w.h[l] >= 0.0


@kernel
def further_slopes(w):
    """Slopes that only dense output needs, of all lanes."""
    for i in range(w.switches[STAGES], w.P.shape[0]):
        weigh(w.A[i], i, w.h, w.y, w.K, w.x, 1.0)
        for l in range(LANES):
            w.first[0, l] = w.lane[T, l] + w.c[i] * w.h[l]
        call_lanes(w.f, w.first[0], w.x, w.p, w.dx)
        copy_lanes(w.dx, w.K[i])


@kernel
def step_polynomials(w):
    """Dense output of all lanes as polynomials: y(θ) = y + Σⱼ Q[j] θʲ⁺¹."""
    Q, K, P, basis, h = w.Q, w.K, w.P, w.basis, w.h  # looked up once
    degree, n = Q.shape[0], Q.shape[1]
    for j in range(degree):  # in Legendre's basis, whose coefficients are small …
        for m in range(n):
            for l in range(LANES):
                Q[j, m, l] = 0.0
        for i in range(P.shape[0]):
            share = P[i, j]
            if share != 0.0:
                for m in range(n):
                    for l in range(LANES):
                        Q[j, m, l] += share * K[i, m, l]
    for j in range(degree):  # … and in powers of θ; row j needs those from j on
        for m in range(n):
            for l in range(LANES):
                Q[j, m, l] *= basis[j, j]
            for i in range(j + 1, degree):
                share = basis[j, i]
                for l in range(LANES):
                    Q[j, m, l] += share * Q[i, m, l]
            for l in range(LANES):
                Q[j, m, l] *= h[l]


@kernel
def output(w, l):
    """Values at the output times inside one step, from its polynomial."""
    run = w.run[RUN, l]
    t = w.lane[T, l]
    h = w.h[l]
    t_new = end_of_step(w, l)
    Q, one, sums, times, y, y_eval = w.Q, w.one, w.sums, w.t_eval, w.y, w.y_eval
    degree, n = Q.shape[0], Q.shape[1]
    for j in range(degree):  # one behind the other, so that the processor takes several at once
        for m in range(n):
            one[j, m] = Q[j, m, l]
    k = w.run[NEXT_OUTPUT, l]
    while k < times.shape[0] and (t_new - times[k]) * h >= 0.0:
        if times[k] == t_new:
            for m in range(n):
                y_eval[run, m, k] = w.y_new[m, l]
        else:
            theta = (times[k] - t) / h
            for m in range(n):
                sums[m] = one[degree - 1, m]
            for j in range(degree - 2, -1, -1):
                for m in range(n):
                    sums[m] = sums[m] * theta + one[j, m]
            for m in range(n):
                y_eval[run, m, k] = y[m, l] + theta * sums[m]
        k += 1
    w.run[NEXT_OUTPUT, l] = k


@dataclass
class LaneCode:
    """Machine code in lanes: the right-hand side, a whole step (or None), and its judge.

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
    tasks: LaneTasks
    fixed: bool

    @property
    def estimate_order(self) -> int:
        """Order of the error estimate; of the method if there is none."""
        order, embedded = self.tableau.order, self.tableau.embedded_order
        if embedded is None:
            return order
        return order - 1 if self.tableau.low_error_weights is not None else min(order, embedded)

    def switches(self, max_norm: bool) -> NDArray[np.int64]:
        """What the kernels ask for, with STOP not set."""
        t = self.tableau
        two = t.low_error_weights is not None
        return np.array([t.stages, t.fsal, two, max_norm, self.fixed, 0], dtype=np.int64)

    def workspace(self, constants: list[float], notes: Noted, **shared: Any) -> Lanes:
        """Return the arrays of one thread; `constants` are the rows of a lane from T_END on."""
        tableau, rows, kept = self.tableau, self.block, self.kept
        A, b, c = tableau.arrays
        n, s = shared["y0"].shape[1], tableau.stages
        block = np.zeros((rows.size, LANES))
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
        low = tableau.low_error_weights
        return Lanes(
            f=self.f.address,
            fused=0 if self.fused is None else self.fused.address,
            judge=self.judge.address,
            A=A.copy(),
            b=b.copy(),
            c=c.copy(),
            e=np.zeros(s) if tableau.error_weights is None else np.array(tableau.error_weights),
            e_low=np.zeros(s) if low is None else np.array(low),
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
            rtol=block[rows.rtol],
            atol=block[rows.atol],
            basis=in_powers(P.shape[1]),
            Q=np.zeros((P.shape[1], n, LANES)),
            one=np.zeros((P.shape[1], n)),
            sums=np.zeros(n),
            **self.tasks.fields(n, s, notes),
        )


def lane_code(
    ivp: IVP, method: Any, inside: bool, max_norm: bool, tasks: LaneTasks, fixed: bool
) -> LaneCode | str:
    """Compile what runs in lanes need; or say why the method, or its output, has no place here.

    `inside` says whether states inside of steps are wanted. Raises whatever tracing or compiling f
    raises.
    """
    from ..tracing import traced

    if not isinstance(method, Tableau) or not method.is_explicit:
        return "lanes are for explicit tableaux"
    if method.b_hat is None and not fixed:
        return f"{method.name} has no embedded error estimate"
    if inside and method.simplifying_assumptions()[1] < 1:
        return f"stages of {method.name} stand at times that are not theirs"
    n, k = ivp.n, ivp.params.size
    f = traced(ivp.f, n=n, params=k or None)
    kept = method.stages if inside else int(method.fsal)
    step = fused_step_function(f, method, k, max_norm, kept)
    if step is None:
        kept = method.stages
    return LaneCode(
        method,
        f.machine_code(LANES),
        None if step is None else step.machine_code(LANES),
        (fixed_judge if fixed else judge)(n, k, kept, method.fsal).machine_code(LANES),
        dense_extension(method) if inside else None,
        kept,
        Block(n, k),
        tasks,
        fixed,
    )
