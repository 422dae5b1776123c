"""Ten thousand stiff runs in lanes against numbalsoda's LSODA in a compiled loop, one core.

    python benchmarks/stiff_lanes.py        # needs numbalsoda

Each method's tolerance is the loosest of a few at which every run ends well and the error is no
larger than LSODA's. Processor time, the shortest of some, taken alternately in one process;
everything is compiled before.
"""

import os
import time

import numba
import numpy as np
from numbalsoda import lsoda, lsoda_sig

from integrators import IVP, solve_many, traced

os.environ["FEATHERSTEP_COMPILE"] = "first"  # times of interpreted kernels mean nothing
RUNS, CHECKED, REPEATS = 10_000, 300, 7
METHODS = ("RADAU5", "Rodas4", "Rodas5P")


def robertson(t, y, p):
    slow, back, fast = p[0] * y[0], p[1] * y[1] * y[2], p[2] * y[1] * y[1]
    return np.array([back - slow, slow - back - fast, fast])


def oscillator(t, y, p):
    return np.array([y[1], ((1 - y[0] * y[0]) * y[1] - y[0]) / p[0]])


@numba.cfunc(lsoda_sig)
def robertson_c(t, u, du, p):
    slow, back, fast = p[0] * u[0], p[1] * u[1] * u[2], p[2] * u[1] * u[1]
    du[0], du[1], du[2] = back - slow, slow - back - fast, fast


@numba.cfunc(lsoda_sig)
def oscillator_c(t, u, du, p):
    du[0], du[1] = u[1], ((1 - u[0] * u[0]) * u[1] - u[0]) / p[0]


@numba.njit
def loop(address, y0, end, rows, rtol, atol, out):
    times = np.array([0.0, end])
    for i in range(rows.shape[0]):
        states, _ = lsoda(address, y0, times, rows[i].copy(), rtol=rtol, atol=atol)
        out[i] = states[-1]


def compare(name, f, address, y0, end, rows, floor, rtol):
    """Print times at LSODA's error; `floor` is the absolute tolerance over the relative."""
    problem = IVP(traced(f, n=len(y0), params=rows.shape[1]), y0, (0.0, end), params=rows[0])
    y0 = np.array(y0)

    def ours(method, count, tolerance):
        options = {"rtol": tolerance, "atol": tolerance * floor, "workers": 1}
        return solve_many(problem, params=rows[:count], method=method, **options)

    out = np.zeros((RUNS, len(y0)))
    exact = ours("RADAU5", CHECKED, 1e-12).y

    def error(y):
        scaled = (y[:CHECKED] - exact) / (np.abs(exact) + floor)
        return np.sqrt(np.mean(scaled * scaled))

    def fits(method, tolerance):
        many = ours(method, RUNS, tolerance)
        return many.success.all() and error(many.y) <= goal

    loop(address, y0, end, rows[:CHECKED], rtol, rtol * floor, out)
    goal = error(out)
    candidates = 10.0 ** np.arange(-2, -12, -0.5)
    chosen = {m: next(r for r in candidates if fits(m, r)) for m in METHODS}
    times = {m: [] for m in ("LSODA", *METHODS)}
    for _ in range(REPEATS):
        start = time.process_time()
        loop(address, y0, end, rows, rtol, rtol * floor, out)
        times["LSODA"].append(time.process_time() - start)
        for method, tolerance in chosen.items():
            start = time.process_time()
            ours(method, RUNS, tolerance)
            times[method].append(time.process_time() - start)
    theirs = min(times["LSODA"])
    print(
        f"{name}: LSODA {rtol:.0e} (error {goal:.0e}) {theirs / RUNS * 1e6:.1f} µs a run;", end=""
    )
    for method, tolerance in chosen.items():
        mine, reached = min(times[method]), error(ours(method, CHECKED, tolerance).y)
        print(f"  {method} {tolerance:.0e} ({reached:.0e}) {mine / RUNS * 1e6:.2f}", end="")
        print(f" = {theirs / mine:.1f}×", end="")
    print(flush=True)


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    rates = np.array([0.04, 1e4, 3e7]) * rng.uniform(0.8, 1.2, (RUNS, 3))
    for rtol in (1e-4, 1e-6, 1e-8):
        given = (robertson, robertson_c.address, [1.0, 0.0, 0.0])
        compare("Robertson to 40", *given, 40.0, rates, 1e-4, rtol)
        compare("Robertson to 1e5", *given, 1e5, rates, 1e-4, rtol)
        stiffness = rng.uniform(1e-4, 1e-2, (RUNS, 1))
        given = (oscillator, oscillator_c.address, [2.0, -0.66])
        compare("van der Pol to 2", *given, 2.0, stiffness, 1.0, rtol)
