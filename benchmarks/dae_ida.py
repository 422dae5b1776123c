"""Circuit ladder and tray chain of 10,000 unknowns: structure, and runs against SUNDIALS' IDA.

    pip install -e ".[bench,bench-sundae]" && python benchmarks/dae_ida.py

IDA (through scikit-sundae) gets what a careful user gives it: residuals as array expressions, the
exact Jacobian, sparse with its pattern, or as a band after the unknowns have been interleaved, and
consistent values and slopes at the start. We get the same equations, traced. All run in one
process, in turns, and times are the shortest of several. Errors are those at the end, against a run
of ours at a tolerance of 1e-11.
"""

import os
import time
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

os.environ["FEATHERSTEP_COMPILE"] = "first"  # times of interpreted kernels mean nothing

from integrators import solve
from integrators.problems.dae_systems import system

UNKNOWNS = 10_000
REPEATS = 3


def ladder(n):
    """Residual and Jacobian ∂F/∂y + c ∂F/∂ẏ of the library's ladder, for IDA."""

    def residual(t, y, yp, out):
        v, i = y[:n], y[n:]
        out[:n] = 0.1 * yp[:n] - i + 0.01 * v**3
        out[: n - 1] += i[1:]
        out[n:] = -v - i
        out[n] += np.sin(t)
        out[n + 1 :] += v[:-1]

    one = np.ones(n)
    fixed = sp.bmat(
        [
            [None, sp.diags([-one, one[1:]], [0, 1])],
            [sp.diags([-one, one[1:]], [0, -1]), -sp.identity(n)],
        ]
    ).tocsc()

    def jacobian(y, c):
        corner = sp.coo_matrix((0.1 * c + 0.03 * y[:n] ** 2, (range(n), range(n))), (2 * n, 2 * n))
        return (fixed + corner).tocsc()

    return residual, jacobian


def trays(n):
    """The same of the library's chain of trays."""

    def residual(t, y, yp, out):
        x, v = y[:n], y[n:]
        above, below = np.empty(n), np.empty(n)
        above[0], above[1:] = 0.9 + 0.05 * np.sin(t), x[:-1]
        below[-1], below[:-1] = 0.2, v[1:]
        out[:n] = 0.5 * yp[:n] - (above - x) - 0.8 * (below - v)
        out[n:] = v * (1.0 + 1.5 * x) - 2.5 * x

    one = np.ones(n)

    def jacobian(y, c):
        x, v = y[:n], y[n:]
        return sp.bmat(
            [
                [sp.diags([0.5 * c + one, -one[1:]], [0, -1]),
                 sp.diags([0.8 * one, -0.8 * one[1:]], [0, 1])],
                [sp.diags(1.5 * v - 2.5), sp.diags(1.0 + 1.5 * x)],
            ]
        ).tocsc()  # fmt: skip

    return residual, jacobian


def ida_sparse(parts, y0, yp0, t_end, rtol, atol):
    """A function that runs IDA with SuperLU."""
    from sksundae.ida import IDA

    residual, jacobian = parts
    pattern = jacobian(np.full_like(y0, 0.37), 1.0)
    pattern.sort_indices()

    def fill(t, y, yp, res, c, J):
        found = jacobian(y, c)
        found.sort_indices()
        J[:] = found.data

    with warnings.catch_warnings():  # it says that our Jacobian is taken and not its differences
        warnings.simplefilter("ignore")
        solver = IDA(
            residual,
            jacfn=fill,
            linsolver="sparse",
            sparsity=pattern,
            algebraic_idx=np.arange(len(y0) // 2, len(y0)),
            rtol=rtol,
            atol=atol,
            max_num_steps=100_000,
        )
    return lambda: solver.solve([0.0, t_end], y0, yp0)


def ida_band(parts, y0, yp0, t_end, rtol, atol):
    """A function that runs IDA with a band, for unknowns and equations in pairs."""
    from sksundae.ida import IDA

    residual, jacobian = parts
    size = len(y0)
    pairs = np.arange(size).reshape(2, -1).T.ravel()  # v0, i0, v1, i1, …
    back = np.argsort(pairs)
    plain = np.empty(size)

    def paired(t, y, yp, out):
        residual(t, y[back], yp[back], plain)
        out[:] = plain[pairs]

    found = jacobian(np.full(size, 0.37), 1.0).tocoo()
    rows, columns = back[found.row], back[found.col]
    lower, upper = int((rows - columns).max()), int((columns - rows).max())

    solver = IDA(
        paired,
        linsolver="band",
        lband=lower,
        uband=upper,
        algebraic_idx=np.arange(1, size, 2),
        rtol=rtol,
        atol=atol,
        max_num_steps=100_000,
    )
    return lambda: solver.solve([0.0, t_end], y0[pairs], yp0[pairs]), back


def all_slopes(parts, y0, differential):
    """Slopes at the start of algebraic unknowns, too: IDA's first steps need them."""
    residual, jacobian = parts
    n, J = len(differential), jacobian(y0, 0.0)
    slopes, before, after = np.zeros(2 * n), np.empty(2 * n), np.empty(2 * n)
    slopes[:n] = differential
    step = 1e-6
    residual(-step, y0, slopes, before)
    residual(step, y0, slopes, after)
    wanted = J[n:, :n] @ slopes[:n] + (after - before)[n:] / (2 * step)
    slopes[n:] = spsolve(J[n:, n:].tocsc(), -wanted)
    return slopes


def main():
    print("time: in units of IDA's with a band at the same tolerance, and of its at rtol = 1e-4")
    print("system     rtol   solver       steps     error      time")
    for name, make, size in (
        ("ladder", ladder, "sections"),
        ("trays", trays, "trays"),
    ):
        n = UNKNOWNS // 2
        began = time.process_time()
        case = system(name, **{size: n})
        case.system.structure()
        took = time.process_time() - began
        print(f"{name}: the structure of {UNKNOWNS:,} equations took {took:.1f} s of CPU")
        problem = case.problem("given")
        t_end = problem.t_span[1]
        slopes = problem.all_derivatives(0.0, problem.y0)
        y0 = problem.y0[: 2 * n]
        parts = make(n)
        yp0 = all_slopes(parts, y0, [slopes[f"{x}'"] for x in case.system.unknowns[:n]])
        exact = solve(problem, method="RadauIIA5", rtol=1e-11, atol=1e-13).y[: 2 * n, -1]
        unit = None
        for rtol in (1e-4, 1e-6, 1e-8):
            unit = measure(name, problem, parts, y0, yp0, t_end, rtol, exact, unit)


def measure(name, problem, parts, y0, yp0, t_end, rtol, exact, unit):
    """Print a line for each solver at one tolerance; returns the unit of time."""
    atol = 1e-2 * rtol
    n = len(y0)
    band, back = ida_band(parts, y0, yp0, t_end, rtol, atol)
    runs = {
        method: lambda method=method: solve(problem, method=method, rtol=rtol, atol=atol)
        for method in ("auto", "RADAU5", "RadauIIA5")
    }
    runs["IDA sparse"] = ida_sparse(parts, y0, yp0, t_end, rtol, atol)
    runs["IDA band"] = band
    times = {key: [] for key in runs}
    found = {}
    for _ in range(REPEATS):
        for key, run in runs.items():
            began = time.process_time()
            found[key] = run()
            times[key].append(time.process_time() - began)
    theirs = min(times["IDA band"])
    unit = unit or theirs
    for key, result in found.items():
        if key.startswith("IDA"):
            end = result.y[-1] if key == "IDA sparse" else result.y[-1][back]
            steps = result.nfev  # IDA tells evaluations only: one or two a step
        else:
            end, steps = result.y[:n, -1], result.nsteps
        error, own = np.abs(end - exact).max(), min(times[key])
        print(
            f"{name:8} {rtol:7.0e}   {key:12} {steps:5} {error:9.1e} {own / theirs:7.2f} "
            f"{own / unit:7.2f}",
            flush=True,
        )
    return unit


if __name__ == "__main__":
    main()
