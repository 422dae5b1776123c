"""Large systems: heat and Brusselator on lines and squares, against CVODE (scikit-sundae).

    python benchmarks/large.py [--sizes 100,1000,10000,100000] [--problems heat_1d,bruss_2d]
                               [--methods auto,BDF] [--tolerance 1e-5] [--repeat 3]

Both call the same f, a NumPy function, and no one is told the Jacobian. CVODE is told the best of
its linear solvers (the band on lines, with its widths; GMRES on squares, and a band where it is not
too wide); `auto` is told nothing. Errors at the end, in units of the tolerance, against the exact
solution or a run with a thousandth of the tolerance; CVODE's time is interpolated to our error on
its own curve of four tolerances. Times are CPU seconds, the least of several, in one process.
"""

import argparse
import time

import numpy as np

from integrators import problems, solve
from integrators.kernels import compiled_first

LINES = {"heat_1d": 1, "bruss": 2}  # widths of their bands
UNKNOWNS = {"heat_1d": 1, "heat_2d": 1, "bruss": 2, "bruss_2d": 2}  # of a point


def problem_of(name, size):
    """The problem with about so many unknowns, without its Jacobian."""
    points = size // UNKNOWNS[name]
    n = points if name in LINES else max(3, round(points**0.5))
    return problems.get(name, n=n).with_(jac=None, jac_sparsity=None)


def by_cvode(problem, rtol, **how):
    """Run CVODE; its end, or None, and the number of evaluations."""
    from sksundae.cvode import CVODE

    f = problem.f

    def slope(t, y, out):
        out[:] = f(t, y)

    solver = CVODE(slope, rtol=rtol, atol=rtol, max_num_steps=100_000, **how)
    run = solver.solve(np.array(problem.t_span), problem.y0)
    return (run.y[-1] if run.success else None), run.nfev


def solvers_of(name, problem):
    """The linear solvers that CVODE may choose from."""
    gmres = {"linsolver": "gmres"}, {"linsolver": "gmres", "krylov_dim": 30}
    if name in LINES:
        return [{"linsolver": "band", "lband": LINES[name], "uband": LINES[name]}]
    wide = round((problem.n / UNKNOWNS[name]) ** 0.5)
    band = {"linsolver": "band", "lband": wide, "uband": wide}
    return [*gmres, band] if name == "heat_2d" and problem.n <= 5000 else [*gmres]


def timed(run, repeat):
    """Least CPU time, and what came out."""
    best = np.inf
    for _ in range(repeat):
        start = time.process_time()
        found = run()
        best = min(best, time.process_time() - start)
    return best, found


def ends(problem):
    """Keep the last state only: storing all of them is not what is compared."""
    return [problem.t_span[1]]


def compare(name, size, methods, rtol, repeat):
    """Print a row for each method."""
    problem = problem_of(name, size)
    if problem.exact is not None:
        reference = problem.exact(problem.t_span[1])
    else:
        tight = solve(
            problem, method="BDF", rtol=1e-3 * rtol, atol=1e-3 * rtol, t_eval=ends(problem)
        )
        reference = tight.y[:, -1]
    scale = rtol * (1 + np.abs(reference))

    def error(end):
        return float(np.sqrt(np.mean(((end - reference) / scale) ** 2)))

    curves = []
    for how in solvers_of(name, problem):
        curve = []
        for factor in (10.0, 1.0, 0.1, 0.01):
            spent, (end, _) = timed(lambda: by_cvode(problem, rtol * factor, **how), repeat)
            if end is not None:
                curve.append((error(end), spent))
        if curve:
            curves.append((how, sorted(curve)))
    for method in methods:

        def run():
            return solve(problem, method=method, rtol=rtol, atol=rtol, t_eval=ends(problem))

        run()  # compiles
        spent, solution = timed(run, repeat)
        mine = error(solution.y[:, -1])
        theirs, how = min((at_error(curve, mine), h["linsolver"]) for h, curve in curves)
        phases = "+".join(p.method for p in solution.phases) or method
        print(
            f"{name:9}{problem.n:8}  {phases:14}{spent:9.3f} s{solution.nfev:7}{mine:9.2g}"
            f"   CVODE {how:6}{theirs:9.3f} s   ratio {spent / theirs:5.2f}   "
            f"{solution.linear_solver}",
            flush=True,
        )


def at_error(curve, error):
    """Time at an error, interpolated on a double-logarithmic curve; its ends hold beyond it."""
    errors, times = np.log([e for e, _ in curve]), np.log([t for _, t in curve])
    return float(np.exp(np.interp(np.log(error), errors, times)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="100,1000,10000,100000")
    parser.add_argument("--problems", default=",".join(UNKNOWNS))
    parser.add_argument("--methods", default="auto,BDF")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    with compiled_first():
        for name in asked.problems.split(","):
            for size in map(int, asked.sizes.split(",")):
                compare(name, size, asked.methods.split(","), asked.tolerance, asked.repeat)


if __name__ == "__main__":
    main()
