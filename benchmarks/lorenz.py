"""Lorenz against compiled peers: one long run, and ten thousand short ones.

    pip install -e ".[bench,bench-heyoka,bench-numbalsoda]" && python benchmarks/lorenz.py

numbalsoda builds from source and needs a Fortran compiler. Everything is compiled before the clock
starts, and problems and integrators exist already: heyoka's object, our IVP, numbalsoda's function.
Everybody returns the final state, we all steps. Times are the shortest of many, for other processes
only ever make them longer. A peer that is not installed is left out.
"""

import os
import time

import numpy as np
from scipy.integrate import solve_ivp

from integrators import IVP, Taylor, solve, solve_many, traced

os.environ["FEATHERSTEP_COMPILE"] = "first"  # times of interpreted kernels mean nothing

TOLERANCE = 1e-8
START = np.array([1.0, 0.0, 0.0])
REPEATS = 300
RUNS = 10_000


def f(t, y):
    return np.array([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def shortest_time(call, repeats=REPEATS):
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def numbalsoda_run(t_end):
    """A function of y0 that integrates with numbalsoda's dop853 to t_end."""
    from numba import cfunc
    from numbalsoda import dop853, lsoda_sig

    @cfunc(lsoda_sig)
    def rhs(t, u, du, p):
        du[0] = 10 * (u[1] - u[0])
        du[1] = u[0] * (28 - u[2]) - u[1]
        du[2] = u[0] * u[1] - 8 / 3 * u[2]

    address = rhs.address
    times = np.array([0.0, t_end])

    def run(y0):
        _ = rhs  # keep the code alive
        return dop853(address, y0, times, rtol=TOLERANCE, atol=TOLERANCE)

    return run


def heyoka_run(t_end):
    import heyoka as hy

    x, y, z = hy.make_vars("x", "y", "z")
    system = [
        (x, 10 * (y - x)),
        (y, x * (28 - z) - y),
        (z, x * y - 8 / 3 * z),
    ]
    integrator = hy.taylor_adaptive(system, START, tol=TOLERANCE)

    def run():
        integrator.time = 0.0
        integrator.state[:] = START
        integrator.propagate_until(t_end)

    return run


def attempt(label, make, call=lambda run: run):
    try:
        run = make()
    except ImportError as missing:
        print(f"  {label}: not installed ({missing.name})")
        return None
    return shortest_time(call(run))


def one_long_run():
    print("Lorenz to t = 50, tolerance 1e-8, one run")
    rhs = traced(f, n=3)
    problem, instant = (IVP(rhs, START, (0.0, t_end)) for t_end in (50.0, 1e-3))
    options = dict(rtol=TOLERANCE, atol=TOLERANCE)
    ours, starts = [], []
    for method in ("DOP853", Taylor()):
        run = solve(problem, method=method, **options)
        label = f"{run.method}, {run.nsteps} + {run.nrejected} steps"
        ours.append(shortest_time(lambda: solve(problem, method=method, **options)))
        starts.append(shortest_time(lambda: solve(instant, method=method, **options)))
        print(f"  {label:32} {ours[-1] * 1e6:7.0f} µs, {starts[-1] * 1e6:.0f} µs of it set-up")
    peer = attempt("numbalsoda", lambda: numbalsoda_run(50.0), lambda run: lambda: run(START))
    if peer:
        compare("numbalsoda dop853", peer, ours[0], starts[0])
    peer = attempt("heyoka", lambda: heyoka_run(50.0))
    if peer:
        compare("heyoka", peer, ours[1], starts[1])


def compare(label, peer, ours, start):
    ratio, inner = peer / ours, peer / (ours - start)
    print(f"  {label:32} {peer * 1e6:7.0f} µs  {ratio:5.2f}× ours, {inner:.2f}× without set-up")


def many_runs():
    print(f"\nLorenz to t = 10, tolerance 1e-8, {RUNS} runs")
    rhs = traced(f, n=3)
    y0 = np.random.default_rng(0).normal(size=(RUNS, 3)) + np.array([0.0, 0.0, 20.0])
    options = dict(method="DOP853", rtol=TOLERANCE, atol=TOLERANCE)
    ours = shortest_time(lambda: solve_many(rhs, (0, 10), y0, **options), repeats=5)
    print(f"  solve_many                {ours:8.3f} s")

    def scipy_few():
        for k in range(10):
            solve_ivp(f, (0, 10), y0[k], **options)

    peer = shortest_time(scipy_few, repeats=5) / 10 * RUNS
    print(f"  SciPy in a loop           {peer:8.3f} s (from 10 runs)   {peer / ours:6.1f}× ours")
    try:
        run = numbalsoda_run(10.0)
    except ImportError:
        return

    def numbalsoda_some():
        for k in range(500):
            run(y0[k])

    peer = shortest_time(numbalsoda_some, repeats=5) / 500 * RUNS
    print(f"  numbalsoda in a loop      {peer:8.3f} s (from 500 runs)  {peer / ours:6.1f}× ours")


if __name__ == "__main__":
    one_long_run()
    many_runs()
