"""Compute the references of ``integrators/problems/detest/references.py``.

    python benchmarks/detest_references.py > integrators/problems/detest/references.py

By Radau IIA of order 13 in 80-bit arithmetic, on the steps of a run in double precision, each
divided in two and in three, so that the difference says how many digits are right.
"""

import sys
from functools import cache
from itertools import pairwise

import mpmath
import numpy as np
from scipy.linalg import lu_factor, lu_solve

from integrators import solve
from integrators.problems import detest

LONG = np.longdouble
STAGES = 7
MOST_ITERATIONS = 40


@cache
def radau():
    """A and c of Radau IIA, rounded once from 40 digits."""
    with mpmath.workdps(40):
        s = STAGES
        legendre = [
            mpmath.taylor(lambda x, k=k: mpmath.legendre(k, 2 * x - 1), 0, k) for k in (s - 1, s)
        ]
        poly = [a - b for a, b in zip(legendre[1], [*legendre[0], mpmath.mpf(0)])]
        roots = sorted(
            mpmath.polyroots(poly[::-1], maxsteps=500, extraprec=200), key=lambda x: x.real
        )
        c = [r.real for r in roots]
        V = mpmath.matrix(s, s)
        for i in range(s):
            for j in range(s):
                V[i, j] = c[i] ** j
        inverse = V**-1
        A = mpmath.matrix(s, s)
        for i in range(s):
            for j in range(s):
                A[i, j] = sum(c[i] ** (k + 1) / (k + 1) * inverse[k, j] for k in range(s))
        digits = [[LONG(mpmath.nstr(A[i, j], 30)) for j in range(s)] for i in range(s)]
        return np.array(digits), np.array([LONG(mpmath.nstr(x, 30)) for x in c])


def collocated(problem, f, mesh):
    """Radau IIA on a mesh, Newton's iteration to the last bit."""
    A, c = radau()
    n, y = problem.n, np.array(problem.y0, dtype=LONG)
    jacobian = problem.f.jacobian()
    W = np.zeros((STAGES, n), dtype=LONG)
    for t, t_new in pairwise(mesh):
        h = t_new - t
        J = np.asarray(jacobian(float(t), y.astype(float)))
        factors = lu_factor(np.eye(STAGES * n) - float(h) * np.kron(A.astype(float), J))
        W[:] = 0
        best = np.inf
        for _ in range(MOST_ITERATIONS):
            Y = y + A @ W
            residual = np.array([h * f(t + ci * h, Yi) for ci, Yi in zip(c, Y)]) - W
            step = lu_solve(factors, residual.astype(float).ravel()).reshape(W.shape)
            W += step
            size = float(np.max(np.abs(step) / (np.abs(y) + 1e-10 * np.max(np.abs(y)) + 1e-30)))
            if size < 1e-19 or (size < 1e-15 and size >= best / 2):
                break
            best = min(best, size)
        y = y + A[-1] @ W
    return y


def divided(times, parts):
    """The mesh with each step divided."""
    times = times.astype(LONG)
    inner = [times[:-1] + (times[1:] - times[:-1]) * k / parts for k in range(parts)]
    return np.append(np.stack(inner, axis=1).ravel(), times[-1])


def both(name):
    """The solution at the end, computed twice."""
    problem = detest.get(name)
    f, y0, _ = detest._CLASSES[name.split()[0]][name.split()[1]]
    scale = np.max(np.abs(y0)) or 1e-8
    run = solve(problem, method="RadauIIA7", rtol=2e-11, atol=1e-15 * scale)
    assert run.success, run.message
    return [collocated(problem, f, divided(run.t, parts)) for parts in (2, 3)]


def main():
    """Print the table."""
    print('"""Solutions of DETEST at the end, by benchmarks/detest_references.py."""\n')
    print("REFERENCES: dict[str, list[float]] = {")
    for name in detest.names():
        first, second = both(name)
        apart = float(
            np.max(np.abs(first - second) / (np.abs(second) + np.max(np.abs(second)) * 1e-6))
        )
        print(f"{name}: the two differ by {apart:.1e}", file=sys.stderr, flush=True)
        print(f'    "{name}": [')
        for x in second:
            print(f"        {np.format_float_scientific(x, unique=False, precision=17)},")
        print("    ],")
    print("}")


if __name__ == "__main__":
    main()
