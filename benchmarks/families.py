"""Many mechanisms at once: families of models, outputs, projection, short stiff runs.

    python benchmarks/families.py

Everything is compiled before the clock starts. Times are processor time of one thread, the shortest
of some, so that other processes matter little; what counts are the ratios, in one process.
"""

import os
import time

import numpy as np

from integrators import IVP, solve, solve_many, traced
from multibody import ModelFamily, as_ivp, mechanisms

os.environ["FEATHERSTEP_COMPILE"] = "first"  # times of interpreted kernels mean nothing

RUNS = 10_000
FEW = 512
OPTIONS = {"method": "DOP853", "rtol": 1e-8, "workers": 1}


def shortest_time(call, repeats=7):
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def four_bars():
    """Ten thousand four-bars with three lengths and density varied: from numbers to end states."""
    family = ModelFamily("four_bar", ["crank", "coupler", "rocker", "density"])
    guess, given = [0.9, -0.7, 0.8], {"positions": {"crank": 0.9}, "speeds": {"crank": 4.0}}
    start = family.starts(family.rows({}), guess, **given).y0[0]
    problem = family.problem(start[:3], start[3:], (0.0, 2.0))
    rng = np.random.default_rng(1)
    rows = np.array([1.0, 2.0, 1.5, 1.0]) * rng.uniform(0.95, 1.05, (RUNS, 4))

    def study(count):
        found = family.starts(family.parameters(rows[:count]), guess, **given)
        return solve_many(problem, y0=found.y0, params=found.p, **OPTIONS)

    study(64)
    whole = shortest_time(lambda: study(RUNS), 1)
    each = whole / RUNS * 1e3
    print(f"{RUNS} four-bars, assembled, run and reviewed: {whole:.1f} s ({each:.2f} ms each)")


def arm():
    """A 7-joint arm whose masses are parameters, beside one whose masses are constants."""
    masses = [f"mass_{k}" for k in range(7)]

    def factory(**given):
        from multibody import Inertia, ModelBuilder, Revolute

        b = ModelBuilder(name="arm")
        for k, name in enumerate(masses):
            inertia = Inertia(given[name], (0.01, 0.02, 0.2), (0.02, 0.03, 0.01))
            axis = "z" if k % 2 == 0 else "y"
            b.add_body(f"link{k}", k, Revolute(axis), (0.0, 0.0, 0.4 if k else 0.0), inertia)
        return b.build()

    nominal = {name: 4.0 - 0.4 * k for k, name in enumerate(masses)}
    family = ModelFamily(factory, nominal)
    q0, v0 = np.linspace(0.3, 0.9, 7), np.zeros(7)
    varied = family.problem(q0, v0, (0.0, 1.0))
    constant = as_ivp(factory(**nominal), q0, v0, (0.0, 1.0))
    rng = np.random.default_rng(2)
    p = family.parameters(np.array(list(nominal.values())) * rng.uniform(0.9, 1.1, (FEW, 7))).p
    y0 = np.tile(constant.y0, (FEW, 1))
    same = np.tile(family.parameters(family.rows({})).p, (FEW, 1))
    a = shortest_time(lambda: solve_many(constant, y0=y0, **OPTIONS))
    b = shortest_time(lambda: solve_many(varied, y0=y0, params=same, **OPTIONS))
    c = shortest_time(lambda: solve_many(varied, y0=y0, params=p, **OPTIONS))
    print(
        f"7-joint arm, masses as parameters over constants: {b / a:.2f} (same masses), "
        f"{c / a:.2f} (varied); {a / FEW * 1e6:.0f} µs a run"
    )


def four_bar_in_lanes():
    """Outputs over end states only; projection over Baumgarte's stabilisation."""
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    times = {}
    rng = np.random.default_rng(3)
    for stabilise in ("baumgarte", "projection"):
        problem = as_ivp(model, *entry.start(model), (0.0, 2.0), stabilise=stabilise)
        problem = problem.with_(review=None)
        y0 = np.tile(problem.y0, (FEW, 1))
        y0[:, 3:] *= rng.uniform(0.8, 1.2, (FEW, 1))
        times[stabilise] = shortest_time(lambda p=problem, y=y0: solve_many(p, y0=y, **OPTIONS))
        if stabilise == "baumgarte":
            outputs = np.linspace(0.0, 2.0, 1000)
            many = shortest_time(
                lambda p=problem, y=y0: solve_many(p, y0=y, t_eval=outputs, **OPTIONS)
            )
            print(f"1000 outputs over end states: {many / times[stabilise]:.2f}")
    print(f"projection over Baumgarte: {times['projection'] / times['baumgarte']:.2f}")


def stiff():
    """Short stiff runs, one after the other."""
    robertson = traced(
        lambda t, y, p: [
            -p[0] * y[0] + p[1] * y[1] * y[2],
            p[0] * y[0] - p[1] * y[1] * y[2] - p[2] * y[1] ** 2,
            p[2] * y[1] ** 2,
        ],
        n=3,
        params=3,
    )
    problem = IVP(robertson, [1.0, 0.0, 0.0], (0.0, 40.0), params=[0.04, 1e4, 3e7])
    run = solve(problem, method="RADAU5", rtol=1e-4, atol=1e-8)
    one = shortest_time(lambda: solve(problem, method="RADAU5", rtol=1e-4, atol=1e-8), 200)
    print(f"a RADAU5 run of {run.nsteps} steps: {one * 1e3:.3f} ms")


if __name__ == "__main__":
    four_bars()
    arm()
    four_bar_in_lanes()
    stiff()
