"""What a study costs: parameters, output times, projection, short stiff runs, cores; and MuJoCo.

    python benchmarks/study_engine.py [masses mujoco four_bars outputs projection radau cores]

Processor time (of `cores`: time on the wall), the shortest of some, taken alternately in one
process on one thread; everything is compiled before. `mujoco` needs ``pip install mujoco``.
"""

import argparse
import copy
import os
import tempfile
import time
from dataclasses import replace

import numpy as np

from integrators import IVP, solve, solve_many, traced
from multibody import ModelFamily, as_ivp, assemble, mechanisms
from multibody.algebra.inertia import mcI
from multibody.io.formats import dumps

os.environ["FEATHERSTEP_COMPILE"] = "first"  # times of interpreted kernels mean nothing
REPEATS = 5
DAMPING = 0.1  # N m s; without friction the fall of an arm is chaotic, and no run can be compared


def shortest(works, clock=time.process_time):
    """Shortest times of several pieces of work, done in turns, and what they return."""
    results = [work() for work in works]
    times = [[] for _ in works]
    for _ in range(REPEATS):
        for work, found in zip(works, times):
            start = clock()
            work()
            found.append(clock() - start)
    return [min(found) for found in times], results


def with_masses(arm):
    """A factory of arms whose masses are multiples of those of one arm."""

    def varied(**factors):
        bodies = [
            replace(b, inertia=mcI(b.inertia.mass * m, b.inertia.centre, b.inertia.central))
            for b, m in zip(arm.bodies, factors.values())
        ]
        return replace(arm, bodies=tuple(bodies))

    return varied


def varied_arms(arm, span, runs):
    """One problem for many arms with masses within 10 %, its parameters, the factors of masses."""
    rng = np.random.default_rng(1)
    family = ModelFamily(with_masses(arm), {f"m{i}": 1.0 for i in range(7)})
    problem = family.problem(np.full(7, 0.3), np.zeros(7), span)
    factors = rng.uniform(0.9, 1.1, (runs, 7))
    return problem, family.parameters(factors).p, factors


def masses():
    """Arms with varied masses against the same arm with constants, for each step."""
    runs = 1000
    arms = {
        "lightweight": mechanisms.lightweight_arm(damping=DAMPING),
        "generic": mechanisms.serial_arm(7, damping=DAMPING),
    }
    for label, arm in arms.items():
        constant = as_ivp(arm, np.full(7, 0.3), np.zeros(7), (0.0, 1.0), traced=True)
        problem, params, _ = varied_arms(arm, (0.0, 1.0), runs)
        y0 = np.tile(problem.y0, (runs, 1))
        y0[:, :7] += np.random.default_rng(2).uniform(-0.1, 0.1, (runs, 7))
        options = {"y0": y0, "method": "DOP853", "rtol": 1e-8, "workers": 1}
        times, found = shortest(
            [
                lambda c=constant, o=options: solve_many(c, **o),
                lambda c=problem, p=params, o=options: solve_many(c, params=p, **o),
            ]
        )
        each = [t / (m.nsteps + m.nrejected).sum() * 1e9 for t, m in zip(times, found)]
        counts = [problem_.f.operations()["total"] for problem_ in (constant, problem)]
        print(
            f"{label} arm, 7 joints: {each[0]:.0f} ns a step, masses varied {each[1]:.0f}:", end=""
        )
        print(f" {each[1] / each[0]:.2f}× ({counts[0]} and {counts[1]} operations)")


def mujoco():
    """MuJoCo's rollout with a model for each variant, and the same outputs at its accuracy."""
    import mujoco as mj
    from mujoco import rollout

    runs, end, accurate = 200, 1.0, 1e-12
    arm = mechanisms.lightweight_arm(damping=DAMPING)
    problem, params, factors = varied_arms(arm, (0.0, end), runs)
    base = mj.MjModel.from_xml_string(dumps(arm, format="mjcf"))
    for label, integrator in (("RK4", mj.mjtIntegrator.mjINT_RK4), ("Euler", 0)):
        base.opt.integrator = integrator
        models = [copy.copy(base) for _ in range(runs)]
        for model, row in zip(models, factors):
            model.body_mass[1:] *= row
        steps = round(end / base.opt.timestep)
        times = np.linspace(0.0, end, steps + 1)[1:]
        data = mj.MjData(base)
        size = mj.mj_stateSize(base, mj.mjtState.mjSTATE_FULLPHYSICS)
        start = np.zeros((runs, size))
        start[:, 1:8] = problem.y0[:7]

        def theirs(models=models, data=data, start=start, steps=steps):
            return rollout.rollout(models, data, start, nstep=steps)[0]

        def ours(rtol, times=times):
            options = {"method": "DOP853", "rtol": rtol, "atol": rtol, "workers": 1}
            return solve_many(problem, params=params, t_eval=times, **options).y_eval

        exact = ours(accurate)
        error = np.abs(theirs()[:, :, 1:15].transpose(0, 2, 1) - exact).max()
        tolerances = 10.0 ** np.arange(-2, -12, -0.5)
        rtol = next(r for r in tolerances if np.abs(ours(r) - exact).max() <= error)
        (a, b), _ = shortest([theirs, lambda r=rtol: ours(r)])
        mine = np.abs(ours(rtol) - exact).max()
        print(
            f"MuJoCo {label}, steps of {base.opt.timestep} s, a model for each of {runs}:", end=""
        )
        print(f" {a / runs * 1e6:.0f} µs a run of {end:g} s (error {error:.0e}); DOP853", end="")
        print(
            f" {rtol:.0e} with {steps} outputs {b / runs * 1e6:.1f} µs ({mine:.0e}): {a / b:.0f}×"
        )


def four_bars():
    """10,000 four-bars with three lengths and density varied, assembled, with scalars."""
    from featherstep import Assembled, Final, Max, Study, Uniform, loop_force

    study = Study(
        "four_bar",
        vary={
            "crank": Uniform(0.98, 1.02),
            "coupler": Uniform(3.9, 4.1),
            "rocker": Uniform(2.95, 3.05),
            "density": Uniform(1.0, 1.1),
        },
        n=10_000,
        seed=1,
        start=Assembled(fixed={"crank": 4.0}),
        t_span=(0, 2),
        method="DOP853",
        rtol=1e-8,
        record={"pin": Max(loop_force("joint")), "end": Final("crank")},
    )
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "second"):  # the first compiles
            start = time.process_time()
            study.run(f"{folder}/{name}", workers=1)
            spent.append(time.process_time() - start)
        good = int((study.table()["status"] == "ok").sum())
    print(f"10,000 four-bars, 4 parameters, 2 scalars: {spent[1]:.2f} s ({good} finished)")


def outputs():
    """1,000 output times against the final state."""
    lorenz = traced(
        lambda t, y: np.array(
            [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]
        ),
        n=3,
    )
    rng = np.random.default_rng(1)
    arm = mechanisms.lightweight_arm(damping=DAMPING)
    falling = as_ivp(arm, np.full(7, 0.3), np.zeros(7), (0.0, 5.0), traced=True)
    cases = {
        "Lorenz to 10": (IVP(lorenz, [1.0, 1.0, 1.0], (0, 10.0)), rng.normal(20, 1, (400, 3))),
        "arm to 5": (falling, np.tile(falling.y0, (400, 1)) + rng.normal(0, 0.1, (400, 14))),
    }
    for label, (problem, y0) in cases.items():
        for method in ("DOPRI5", "Tsit5", "DOP853"):
            options = {"y0": y0, "method": method, "rtol": 1e-8, "workers": 1}
            times = np.linspace(*problem.t_span, 1000)
            (a, b), found = shortest(
                [
                    lambda p=problem, o=options: solve_many(p, **o),
                    lambda p=problem, o=options, t=times: solve_many(p, t_eval=t, **o),
                ]
            )
            print(
                f"{label}, {method}: {found[0].nsteps.mean():.0f} steps {a / 400 * 1e6:.0f} µs,",
                end="",
            )
            print(f" with 1,000 outputs {b / 400 * 1e6:.0f} µs: {b / a:.2f}×")


def projection():
    """Projection after each step against Baumgarte's stabilisation, in lanes."""
    runs = 400
    for name in ("four_bar", "slider_crank"):
        model = mechanisms.get(name)
        q0 = assemble(model, model.neutral()).q
        works = []
        for stabilise in ("baumgarte", "projected"):
            problem = as_ivp(model, q0, np.zeros(model.nv), (0.0, 2.0), stabilise=stabilise)
            y0 = np.tile(problem.y0, (runs, 1))
            works.append(
                lambda p=problem, y=y0: solve_many(p, y0=y, method="DOPRI5", rtol=1e-8, workers=1)
            )
        (a, b), found = shortest(works)
        print(
            f"{name}: Baumgarte {a / runs * 1e6:.1f} µs, projected {b / runs * 1e6:.1f} µs:", end=""
        )
        print(
            f" {b / a:.2f}× ({found[0].nsteps[0]} and {found[1].nsteps[0]} steps;",
            f"{found[1].engine})",
        )


def radau():
    """A short RADAU5 run by itself: Robertson's reaction to t = 40."""

    @traced(n=3)
    def robertson(t, y):
        slow, back, fast = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] * y[1]
        return np.array([back - slow, slow - back - fast, fast])

    problem = IVP(robertson, [1.0, 0.0, 0.0], (0.0, 40.0))
    options = {"method": "RADAU5", "rtol": 1e-5, "atol": 1e-9}
    (spent,), (found,) = shortest([lambda: [solve(problem, **options) for _ in range(100)]])
    print(f"RADAU5, {found[0].nsteps} steps: {spent * 10:.3f} ms a run")


def cores():
    """Two threads against one, on the wall clock: for an idle machine."""
    arm = mechanisms.lightweight_arm(damping=DAMPING)
    problem, params, _ = varied_arms(arm, (0.0, 2.0), 8000)
    options = {"params": params, "method": "DOP853", "rtol": 1e-8}
    works = [lambda n=n: solve_many(problem, workers=n, **options) for n in (1, 2)]
    (one, two), _ = shortest(works, time.perf_counter)
    load = os.getloadavg()[0]
    print(f"8,000 arms: {one:.3f} s on one core, {two:.3f} s on two: {one / two:.2f}×", end="")
    print(f" (load of the machine {load:.1f})")


SECTIONS = [masses, mujoco, four_bars, outputs, projection, radau, cores]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [section.__name__ for section in SECTIONS]
    parser.add_argument("only", nargs="*", choices=[*names, []], help="all by default")
    chosen = parser.parse_args().only
    for section in SECTIONS:
        if not chosen or section.__name__ in chosen:
            section()
