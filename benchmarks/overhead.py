"""Time per step beyond f itself, and f-evaluations, against SciPy with the same tableau.

Both run the same plain Python f in one process; compilation is done before the clock starts.
The cost of f itself, measured by calling it as often as the solver did, is taken off.

    python benchmarks/overhead.py
"""

import os
import statistics
import time

import numpy as np
from scipy.integrate import solve_ivp

from integrators import problems, solve

os.environ["FEATHERSTEP_COMPILE"] = "first"  # times of interpreted kernels mean nothing

PAIRS = {"DOPRI5": "RK45", "DOP853": "DOP853", "BS23": "RK23"}
REPEATS = 7


def decaying(n):
    rates = np.linspace(1.0, 3.0, n)
    return (lambda t, y: np.cos(t) - rates * y), (0.0, 100.0), np.ones(n)


def median_time(call):
    call()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def cost_of_f(f, t, y, calls):
    start = time.perf_counter()
    for _ in range(calls):
        f(t, y)
    return time.perf_counter() - start


def overhead():
    print(f"{'method':8} {'n':>3} {'ours µs/step':>13} {'SciPy µs/step':>14} {'ratio':>7}")
    for ours, theirs in PAIRS.items():
        for n in (2, 10, 30):
            f, span, y0 = decaying(n)
            tolerances = dict(rtol=1e-7, atol=1e-9)
            time_a, a = median_time(lambda: solve(f, span, y0, method=ours, **tolerances))
            time_b, b = median_time(lambda: solve_ivp(f, span, y0, method=theirs, **tolerances))
            per_a = (time_a - cost_of_f(f, 0.0, y0, a.nfev)) / a.nsteps * 1e6
            per_b = (time_b - cost_of_f(f, 0.0, y0, b.nfev)) / (len(b.t) - 1) * 1e6
            print(f"{ours:8} {n:3} {per_a:13.2f} {per_b:14.2f} {per_b / per_a:6.1f}×")


def evaluations():
    print(f"\n{'problem':20} {'method':8} {'ours nfev':>10} {'SciPy nfev':>11} {'ratio':>7}")
    for name in ("lorenz", "kepler", "pleiades", "van_der_pol", "lotka_volterra", "rigid_body"):
        problem = problems.get(name)
        if name == "lorenz":
            problem = problem.with_(t_span=(0.0, 10.0))
        f = problem.bind(problem.f)
        for ours, theirs in list(PAIRS.items())[:2]:
            a = solve(problem, method=ours, rtol=1e-7, atol=1e-9)
            b = solve_ivp(f, problem.t_span, problem.y0, method=theirs, rtol=1e-7, atol=1e-9)
            print(f"{name:20} {ours:8} {a.nfev:10} {b.nfev:11} {a.nfev / b.nfev:6.2f}")


if __name__ == "__main__":
    overhead()
    evaluations()
