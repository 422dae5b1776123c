"""DETEST: all families and other packages on 25 non-stiff and 30 stiff problems.

    python benchmarks/detest.py [--kind stiff] [--methods BDF,RADAU5,auto] [--tolerances 1e-3,1e-6]

For each method: errors at the end over what was asked (a component's tolerance is rtol times the
largest size that it has had, plus atol = rtol/100 of that), failures, and evaluations of f at equal
error, over the best of all methods there: work-precision curves over seven tolerances, compared
where the error is one of the given ones. Jacobians are exact for everybody and not counted as
evaluations. With --times, times of our own methods, too (other packages call f from Python).
"""

import argparse
import sys
import time
import warnings
from functools import cache

import numpy as np

from integrators import solve
from integrators.kernels import compiled_first
from integrators.problems import detest

OURS = {
    "nonstiff": ["auto", "Adams", "DOP853", "DOPRI5", "Tsit5", "BS45", "Verner65", "Verner98"],
    "stiff": [
        *("auto", "BDF", "NDF", "RADAU5", "RadauVariable", "Kvaerno5", "SDIRK4", "TRBDF2"),
        *("ROS3P", "ROS34PW2", "Rodas4", "Rodas4P", "Rodas5P"),
    ],
}
OTHERS = {
    "nonstiff": ["scipy:RK45", "scipy:DOP853", "scipy:LSODA", "sundae:Adams", "assimulo:CVode"],
    "stiff": ["scipy:BDF", "scipy:Radau", "scipy:LSODA", "sundae:BDF", "assimulo:CVode"],
}
CURVE = [10.0**-k for k in range(3, 10)]
MOST_STEPS = 100_000


@cache
def sizes(name):
    """The largest size of each component along the solution."""
    problem = detest.get(name)
    least = 1e-12 * max(np.abs(problem.y0).max(), 1e-8)
    run = solve(problem, method="RADAU5", rtol=1e-6, atol=least)
    return np.maximum(np.abs(run.y).max(axis=1), 1e-300)


def by_sundae(problem, kind, rtol, atol):
    """Run CVODE through scikit-sundae; the end and the number of evaluations."""
    from sksundae.cvode import CVODE

    f, jacobian = problem.f, problem.f.jacobian()

    def slope(t, y, out):
        out[:] = f(t, y)

    def jac(t, y, slope, out):
        out[:, :] = jacobian(t, y)

    newton = {"jacfn": jac, "linsolver": "dense"} if kind == "BDF" else {}
    solver = CVODE(slope, method=kind, rtol=rtol, atol=atol, max_num_steps=MOST_STEPS, **newton)
    run = solver.solve(np.array(problem.t_span), problem.y0)
    return (run.y[-1] if run.success else None), int(run.nfev)


@cache
def outcome(name, method, rtol):
    """(error at the end in units of sizes, evaluations of f); NaN if the run failed."""
    problem, size = detest.get(name), sizes(name)
    atol = 0.01 * rtol * size
    if method.startswith("sundae:"):
        end, count = by_sundae(problem, method.split(":")[1], rtol, atol)
    else:
        if method.startswith(("scipy", "assimulo")):
            problem = problem.with_(jac=problem.f.jacobian())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = solve(problem, method=method, rtol=rtol, atol=atol, max_steps=MOST_STEPS)
        end, count = (run.y[:, -1] if run.success else None), run.nfev
    if end is None:
        return np.nan, count
    (reference,) = problem.references.values()
    return float(np.max(np.abs(end - reference) / size)), count


def work_at(name, method, error):
    """log₁₀ of the evaluations for an error, from a parabola through the work-precision curve."""
    points = [outcome(name, method, rtol) for rtol in CURVE]
    points = np.log10([(max(e, 1e-15), n) for e, n in points if np.isfinite(e)])
    if len(points) < 4:
        return np.inf
    x = np.clip(np.log10(error), points[:, 0].min() - 0.5, points[:, 0].max() + 0.5)
    value = np.polyval(np.polyfit(points[:, 0], points[:, 1], 2), x)
    # Where errors hardly depend on the tolerance (stiff F3 and F5 end on a fixed point), a parabola
    # says anything, 7 evaluations among others: none needs less than the least that was seen.
    return float(max(value, points[:, 1].min()))


def table(kind, methods, tolerances):
    """Print what each method achieves, and what it needs."""
    names = detest.names(kind)
    print(
        f"\n{kind}: {len(names)} problems. Error at the end over the tolerance; evaluations of f at"
    )
    print("equal error, over the best: geometric mean and worst\n")
    heads = "".join(f"   at {tol:.0e}    " for tol in tolerances)
    print(f"{'method':15} median   worst  failed {heads}")
    best = {
        (name, tol): min(work_at(name, method, tol) for method in methods)
        for name in names
        for tol in tolerances
    }
    for method in methods:
        ratios = [outcome(name, method, tol)[0] / tol for name in names for tol in CURVE]
        achieved = (
            f"{np.nanmedian(ratios):7.2g} {np.nanmax(ratios):7.2g} {np.isnan(ratios).sum():5d}  "
        )
        cells = []
        for tol in tolerances:
            over = [work_at(name, method, tol) - best[name, tol] for name in names]
            finite = [x for x in over if np.isfinite(x)]
            cells.append(f"{10 ** np.mean(finite):6.2f} {10 ** max(finite):6.1f}  ")
        print(f"{method:15} {achieved}   {'  '.join(cells)}", flush=True)


def times(kind, methods, tolerances):
    """Print times of our own methods, over the shortest; runs of all problems, alternately."""
    names = detest.names(kind)
    print(f"\n{kind}: time of a run over the shortest, geometric mean (machine code throughout)\n")
    for tol in tolerances:
        spent = {method: [] for method in methods}
        for name in names:
            problem, size = detest.get(name), sizes(name)
            for method in methods:
                shortest = np.inf
                for _ in range(3):
                    start = time.process_time()
                    solve(problem, method=method, rtol=tol, atol=0.01 * tol * size)
                    shortest = min(shortest, time.process_time() - start)
                spent[method].append(shortest)
        least = np.min(list(spent.values()), axis=0)
        shown = (f"{m} {np.exp(np.mean(np.log(s / least))):.2f}" for m, s in spent.items())
        print(f"at {tol:.0e}: {', '.join(shown)}", flush=True)


def main():
    """Read the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=["stiff", "nonstiff"])
    parser.add_argument("--methods", help="separated by commas")
    parser.add_argument("--tolerances", default="1e-4,1e-6,1e-8")
    parser.add_argument("--times", action="store_true")
    arguments = parser.parse_args()
    tolerances = [float(x) for x in arguments.tolerances.split(",")]
    for kind in [arguments.kind] if arguments.kind else ["nonstiff", "stiff"]:
        ours, others = OURS[kind], OTHERS[kind]
        if arguments.methods:
            listed = arguments.methods.split(",")
            others = [m for m in listed if ":" in m]
            ours = [m for m in listed if m not in others]
        with compiled_first():
            table(kind, [*ours, *others], tolerances)
            if arguments.times:
                times(kind, ours, tolerances)
    return 0


if __name__ == "__main__":
    sys.exit(main())
