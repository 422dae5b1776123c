"""References of general DAEs in extended precision: Taylor series of the DAE in long doubles.

    python -m tests.integrators.dae.general.extended [name …]

integrates systems of the library with 64 bits of mantissa (x87's; 19 digits) on two meshes, of
different orders and steps, and prints the values at the end with the digits on which both agree.
The equations are the traced ones, with the constants that they have as doubles; everything else
(stages, linear algebra, steps) is written here anew, and shares with the library only the
recurrences of elementary functions.
"""

import math
import operator
import sys

import numpy as np

from integrators.dae.general.prolongation import Coefficients
from integrators.problems.dae_systems import system
from integrators.tracing.graph import FLOATS

NUMBER = np.longdouble
EPS = float(np.finfo(NUMBER).eps)
MESHES = ((18, 1e-18), (24, 1e-20))  # order, tolerance of a step
SETTLED = 4 * EPS
#: The operators of scalars are ten times as fast as ufuncs.
ALGEBRA = {
    **FLOATS,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
}
FACTORIAL = [NUMBER(math.factorial(k)) for k in range(60)]


class Series(Coefficients):
    """Taylor coefficients whose quotients are rounded once, and not to doubles."""

    def __init__(self, prepared, t, p, a):
        super().__init__(prepared, t, p, a, ALGEBRA, NUMBER)

    def with_trial(self, a):
        other = Series(self.prepared, self.t, self.p, a)
        other.series = [list(known) for known in self.series]
        other._reciprocals = dict(self._reciprocals)
        return other

    def over_j(self, x):
        return x / NUMBER(self.j)


class Extended:
    """A system with a consistent start, integrated by series of long doubles."""

    def __init__(self, case):
        self.array, self.n = case.system.array, len(case.system.unknowns)
        self.p = [NUMBER(x) for x in case.system.params]
        self.t0, self.t1 = (NUMBER(x) for x in case.t_span)
        start = case.system.consistent(float(self.t0), case.fixed, case.guess)
        places = {name: i for i, name in enumerate(self.array.names)}
        self.fixed = {places[name] for name in start.fixed}
        self.start = self._consistent(start.X.astype(NUMBER))

    def _consistent(self, X):
        """Newton steps of least length on all stages; fixed values stay."""
        array = self.array
        free = [k for k in range(array.size) if k not in self.fixed]
        for _ in range(6):
            r = np.array(self._residuals(self.t0, X))
            J = array.full_jacobian(float(self.t0), X.astype(float), self.p).toarray()[:, free]
            size = np.abs(J).max(axis=1)
            step = -np.linalg.lstsq(J / size[:, None], (r / size).astype(float), rcond=1e-12)[0]
            X[free] += step
        if np.abs(step).max() < 100 * SETTLED * np.abs(X).max():
            return X
        raise ArithmeticError("no consistent start in extended precision")

    def _residuals(self, t, X):
        a = [[] for _ in range(self.array.n)]
        for (j, order), x in zip(self.array.keys, X):
            a[j].append(x / FACTORIAL[order])
        series = Series(self.array.prepared, t, self.p, a)
        return [FACTORIAL[q] * series.equation(i, q) for i, q in self.array.rows]

    def _jacobian(self, t, a):
        array, jacobian = self.array, self.array.system_jacobian
        symbols = [FACTORIAL[o] * a[j][o] for j, o in array.equations.symbols]
        J = np.zeros((array.n, array.n), dtype=NUMBER)
        J[jacobian.rows, jacobian.columns] = jacobian.program.evaluate(
            [t, *symbols, *self.p], ALGEBRA, NUMBER
        )
        return J

    def series(self, t, a, order):
        """Coefficients of all unknowns to an order beyond the leading ones.

        `a` has those up to the leading ones, which are corrected by Newton's method first.
        """
        array, n = self.array, self.array.n
        a = [list(known) for known in a]
        for _ in range(6):
            inverse = _inverse(self._jacobian(t, a))
            step = self._stage(inverse, Series(array.prepared, t, self.p, a), 0)
            for j in range(n):
                a[j][-1] += step[j]
            if all(abs(x) <= SETTLED * max(abs(a[j][-1]), 1) for j, x in enumerate(step)):
                break
        actual = Series(array.prepared, t, self.p, a)
        for k in range(1, order + 1):
            trial = actual.with_trial([[*known, NUMBER(0)] for known in a])
            for j, x in enumerate(self._stage(inverse, trial, k)):
                a[j].append(x)
        return a

    def _stage(self, inverse, series, k):
        """Increments of the coefficients of order k + d_j."""
        c, d = self.array.c, self.array.d
        b = np.array([-FACTORIAL[k + q] * series.equation(i, k + q) for i, q in enumerate(c)])
        x = inverse @ b
        return [x[j] / FACTORIAL[k + order] for j, order in enumerate(d)]

    def run(self, order, tolerance):
        """Return the unknowns at the end, and the number of steps."""
        t, steps = self.t0, 0
        a = [[] for _ in range(self.array.n)]
        for (j, o), x in zip(self.array.keys, self.start):
            a[j].append(x / FACTORIAL[o])
        while t < self.t1:
            a = self.series(t, a, order)
            h = float(self.t1 - t)
            for known in a:
                size = max(abs(float(known[0])), 1.0)
                for m in (len(known) - 2, len(known) - 1):
                    if known[m] != 0:
                        h = min(h, (tolerance * size / abs(float(known[m]))) ** (1.0 / m))
            later = t + NUMBER(h)
            if later >= self.t1 * (1 - 1e-12):
                later = self.t1
            h, t = later - t, later
            a = [[_at(known, h, o) for o in range(self.array.d[j] + 1)]
                 for j, known in enumerate(a)]  # fmt: skip
            steps += 1
        return [known[0] for known in self.series(t, a, 0)[: self.n]], steps


def _at(coefficients, h, order):
    """Coefficient of an order of a polynomial about h."""
    total = NUMBER(0)
    for m in range(len(coefficients) - 1, order - 1, -1):
        total = total * h + NUMBER(math.comb(m, order)) * coefficients[m]
    return total


def _inverse(A):
    """Gauss–Jordan with rows scaled and pivots chosen; NumPy has none for long doubles."""
    n = len(A)
    W = np.hstack([A, np.eye(n, dtype=NUMBER)])
    W /= np.abs(A).max(axis=1)[:, None]
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(W[k:, k])))
        W[[k, pivot]] = W[[pivot, k]]
        W[k] /= W[k, k]
        others = np.arange(n) != k
        W[others] -= np.outer(W[others, k], W[k])
    return W[:, n:]


def references(name, **parameters):
    """Return {unknown: value} at the end, the digits on which two meshes agree, and their steps."""
    case = system(name, **parameters)
    problem = Extended(case)
    (coarse, some), (fine, more) = (problem.run(*mesh) for mesh in MESHES)
    apart = max(float(abs(x - y) / max(abs(y), 1e-3)) for x, y in zip(coarse, fine))
    return dict(zip(case.system.unknowns, fine)), -math.log10(max(apart, EPS)), (some, more)


def main(names):
    for name in names or ("robot_arm", "car_axis", "transistor_amplifier"):
        values, digits, (some, more) = references(name)
        lines = [f"{name}: {digits:.1f} digits agree on meshes of {some} and {more} steps"]
        for unknown, x in values.items():
            lines.append(f"    {unknown}: {np.format_float_positional(x, 19, fractional=False)}")
        sys.stdout.write("\n".join([*lines, ""]))
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
