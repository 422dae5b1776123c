"""A problem y' = f(t, y) in Decimals: slopes, Taylor series, and steps of any tableau.

A method of order 8 reaches round-off while its error is still on the way to the straight line. With
sixty digits there is room: the right-hand side is traced and its graph evaluated with
:class:`decimal.Decimal`, the coefficients of a tableau are exact fractions or have sixty digits
anyway, and references come from Taylor series of high order of the same graph.

What cannot be had so (an f that cannot be traced, mass matrices, complex states) is refused by
:class:`NotAvailable`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ...problem import IVP
from ...tableau import Tableau
from ...tableau.exact import to_decimal
from ...tracing import TracingError, traced_rhs
from ...tracing.calculus.series import Unrolled, lower
from ...tracing.graph import CONDITIONS, evaluate
from ..taylor import Taylor
from .decimals import DECIMALS, DIGITS, NotAvailable, with_digits

__all__ = ["BRANCHES", "ManyDigits"]

ACCURACY = 1e-52  # of a step of the reference, relative
TAYLOR_ORDER, TERMS = 54, 8  # and how many of its last terms decide on the step
MOST_STATES = 30
MOST_OPERATIONS = 4_000_000  # of Decimals in one run: a second or two
NEWTON, SWEEPS = 20, 10  # iterations at most, and what they take of evaluations as a rule
FUNCTIONS = frozenset({"sin", "cos", "tan", "exp", "log", "sinh", "cosh", "tanh", "pow"})
COSTLY = 20  # what such a function takes, in multiplications

State = list[Decimal]

#: Operations that make f change its formula: Taylor series end there.
BRANCHES = frozenset({"abs", "sign", "floor", "min", "max", "select", *CONDITIONS})


class _Series(Unrolled):
    """Taylor coefficients of Decimals: 1/j has all its digits, too."""

    def __init__(self, low: Any, inputs: State) -> None:
        self.low, self.algebra, self.number, self.inputs = low, DECIMALS, Decimal, inputs
        self.j = 0
        self.series: list[list[Any]] = []
        self._reciprocals: dict[tuple[int, float], Any] = {}

    def over_j(self, x: Any) -> Any:
        return x / self.j

    def dot(self, a: int, b: int, first: int, last: int, weighted: bool) -> Any:
        j, top = self.j, self.j + last
        known = self.series[a][first : top + 1]
        other = self.series[b][j - top : j - first + 1][::-1]
        if weighted:
            known = list(map(operator.mul, range(first, top + 1), known))
        return sum(map(operator.mul, known, other), Decimal(0))


# -------------------------------------------------------------------- a problem


class ManyDigits:
    """A problem y' = f(t, y) whose numbers are Decimals.

    Parameters
    ----------
    problem
        Its numbers (start, interval, parameters, constants in f) are taken as the doubles they
        are: this is the problem that runs with doubles solve, too.
    y0, t_span
        Decimals in place of the problem's doubles.
    digits
        Of the arithmetic.

    Examples
    --------
    >>> growth = ManyDigits(IVP(lambda t, y: y, [1.0], (0.0, 1.0)))
    >>> growth.along(np.array([Decimal(1)], dtype=object))[0, 0] - Decimal(1).exp() < 1e-27
    True
    """

    def __init__(
        self,
        problem: IVP,
        y0: Sequence[Decimal] | None = None,
        t_span: tuple[Decimal, Decimal] | None = None,
        digits: int = DIGITS,
    ) -> None:
        if problem.mass is not None or np.iscomplexobj(problem.y0):
            raise NotAvailable("mass matrices and complex states are run with doubles only")
        self.digits, self.n = digits, problem.n
        f: Any = problem.f
        try:
            if hasattr(f, "machine_code"):
                problem.bind(f)(problem.t_span[0], problem.y0)  # tells it n, if it did not know
            self._traced: Any = traced_rhs(f, problem.n, problem.params.size)
            self._program = self._traced.graph
        except TracingError as error:
            reason = str(error).strip().splitlines()[-1]
            raise NotAvailable(f"f cannot be traced: {reason}") from None
        parameters = problem.params[: self._traced.k]
        self._params = (parameters,) if parameters.size else ()
        self._low = lower(self._program, self.n)
        unknown = {op for op in self._low.ops if op not in ("const", "input", *DECIMALS)}
        if unknown:
            raise NotAvailable(f"{', '.join(sorted(unknown))} is not known with many digits")
        self.parameters = [Decimal(float(x)) for x in parameters]
        self.y0 = [Decimal(float(x)) for x in problem.y0] if y0 is None else list(y0)
        exact = tuple(Decimal(float(t)) for t in problem.t_span)
        self.t_span: tuple[Decimal, ...] = exact if t_span is None else t_span
        self._pieces: list[tuple[Decimal, Decimal, list[State]]] = []
        self._coefficients: tuple[Any, Any, Any] = (None, None, None)
        self.nfev = 0

    @property
    def branches(self) -> list[str]:
        """Operations of f that no Taylor series crosses."""
        return sorted(BRANCHES & set(self._low.ops))

    def check_for_study(self) -> None:
        """Refuse what has no reference with many digits, or would take too long."""
        if self.n > MOST_STATES:
            raise NotAvailable(f"more than {MOST_STATES} states take too long")
        if self.branches:
            raise NotAvailable(f"f has branches ({', '.join(self.branches)}): no series crosses")

    def f(self, t: Decimal, y: State) -> State:
        """Return f(t, y)."""
        program = self._program
        self.nfev += 1
        inputs = [t, *y, *self.parameters]
        return evaluate(program.ops, program.args, program.outputs, inputs, DECIMALS, Decimal)

    def series(self, t: Decimal, y: State, order: int) -> list[State]:
        """Taylor coefficients of the solution through (t, y)."""
        return _Series(self._low, [t, *y, *self.parameters]).run(order)

    def along(self, times: NDArray[Any]) -> NDArray[Any]:
        """Return the solution at given times, shape (n, m), by Taylor series."""
        with with_digits(self.digits):
            pieces = self._solved()
            values, k = [], 0
            ahead = self.t_span[1] >= self.t_span[0]
            for t in map(Decimal, times):
                while k + 1 < len(pieces) and (t > pieces[k][1] if ahead else t < pieces[k][1]):
                    k += 1
                values.append(horner(pieces[k][2], t - pieces[k][0]))
        return np.array(values, dtype=object).T

    def _solved(self) -> list[tuple[Decimal, Decimal, list[State]]]:
        """Cover the interval by Taylor polynomials, each valid to the accuracy of the reference."""
        if self._pieces:
            return self._pieces
        (t, end), y = self.t_span, self.y0
        operations = 0
        while t != end:
            rows = self.series(t, y, TAYLOR_ORDER)
            operations += self._series_work(TAYLOR_ORDER)
            if operations > MOST_OPERATIONS:
                self._pieces = []
                raise NotAvailable("a reference with many digits would take too long")
            step = reach(rows, ACCURACY)
            stop = end if abs(end - t) <= step else t + step.copy_sign(end - t)
            self._pieces.append((t, stop, rows))
            y, t = horner(rows, stop - t), stop
        return self._pieces

    def run(self, method: Any, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Take equal steps; returns times (count + 1,) and states (n, count + 1)."""
        with with_digits(self.digits):
            h = (self.t_span[1] - self.t_span[0]) / count
            step = self._stepper(method, h, count)
            t, y = [self.t_span[0]], [self.y0]
            for k in range(1, count + 1):
                y.append(step(t[-1], y[-1]))
                t.append(self.t_span[0] + k * h if k < count else self.t_span[1])
        return np.array(t, dtype=object), np.array(y, dtype=object).T

    def affordable(self, method: Any) -> int:
        """Return how many steps of a method take a few seconds."""
        if isinstance(method, Tableau):
            sweeps = 1 if method.is_explicit else SWEEPS
            once = sum(COSTLY if op in FUNCTIONS else 1 for op in self._program.ops)
            work = sweeps * method.stages * (once + self.n * method.stages)
        else:
            work = self._series_work(getattr(method, "order", 20))
        return max(1, MOST_OPERATIONS // max(work, 1))

    def _series_work(self, order: int) -> int:
        """Work of a Taylor series: its sums of products are formed at once, and weigh little."""
        return 2 * len(self._low.ops) * order

    # ------------------------------------------------------------ steps

    def _stepper(self, method: Any, h: Decimal, count: int) -> Callable[[Decimal, State], State]:
        if isinstance(method, Tableau):
            return lambda t, y: self.step(method, t, y, h)[0]
        if isinstance(method, Taylor) and method.fixed_order is not None:
            order = method.fixed_order
            return lambda t, y: horner(self.series(t, y, order), h)
        raise NotAvailable("only tableaux and Taylor methods are run with many digits")

    def step(self, tableau: Tableau, t: Decimal, y: State, h: Decimal) -> tuple[State, list[State]]:
        """A step of a tableau: the new state, and the slopes of its stages."""
        A, b, c = self._multiplied(tableau, h)
        stages = self._explicit if tableau.is_explicit else self._implicit
        slopes = stages(A, c, t, y)
        return combined(y, b, slopes), slopes

    def _multiplied(self, tableau: Tableau, h: Decimal) -> tuple[list[State], State, State]:
        """Return h A, h b, h c; the steps of a study are equal, and fractions take long."""
        known, step, found = self._coefficients
        if known is not tableau or step != h:
            A = [[h * to_decimal(a) for a in row] for row in tableau.A]
            b, c = ([h * to_decimal(x) for x in row] for row in (tableau.b, tableau.c))
            found = A, b, c
            self._coefficients = tableau, h, found
        return found

    def _explicit(self, A: list[State], c: State, t: Decimal, y: State) -> list[State]:
        slopes: list[State] = []
        for row, node in zip(A, c):
            slopes.append(self.f(t + node, combined(y, row, slopes)))
        return slopes

    def _implicit(self, A: list[State], c: State, t: Decimal, y: State) -> list[State]:
        """Newton's method, first with doubles, then with many digits in the residuals alone."""
        slopes, factors = self._newton_of_doubles(A, c, t, y)
        n = self.n
        for _ in range(NEWTON):
            values = [self.f(t + node, combined(y, row, slopes)) for row, node in zip(A, c)]
            wrong = [v - k for value, slope in zip(values, slopes) for v, k in zip(value, slope)]
            largest = max(map(abs, wrong))
            size = max(abs(k) for slope in slopes for k in slope)
            if largest <= size * Decimal(10) ** (4 - self.digits):
                return slopes
            scaled = np.array([float(x / largest) for x in wrong])
            moves = scipy.linalg.lu_solve(factors, scaled, check_finite=False)
            if not np.isfinite(moves).all():
                break
            corrections = [Decimal(float(x)) * largest for x in moves]
            slopes = [
                [k + d for k, d in zip(slope, corrections[i * n : (i + 1) * n])]
                for i, slope in enumerate(slopes)
            ]
        raise NotAvailable("Newton's iteration did not converge at these steps")

    def _newton_of_doubles(
        self, A: list[State], c: State, t: Decimal, y: State
    ) -> tuple[list[State], Any]:
        n, s = self.n, len(c)
        hA, start = np.array(A, dtype=float), np.array(y, dtype=float)
        times = float(t) + np.array(c, dtype=float)
        slopes = np.tile(self._values(times[:1], start[None])[0], (s, 1))
        jacobian = self._traced.jacobian()
        for _ in range(NEWTON):
            states = start + hA @ slopes
            pairs = zip(times, states)
            J = np.array([jacobian(time, state, *self._params) for time, state in pairs])
            matrix = np.eye(n * s) - np.einsum("ij,ikl->ikjl", hA, J).reshape(n * s, n * s)
            if not np.isfinite(matrix).all():
                break
            factors = scipy.linalg.lu_factor(matrix, check_finite=False)
            wrong = (self._values(times, states) - slopes).ravel()
            moves = scipy.linalg.lu_solve(factors, wrong, check_finite=False).reshape(s, n)
            slopes = slopes + moves
            if np.max(np.abs(moves)) <= 1e-9 * np.max(np.abs(slopes)):
                return [[Decimal(float(k)) for k in slope] for slope in slopes], factors
        raise NotAvailable("Newton's iteration did not converge at these steps")

    def _values(self, times: Any, states: Any) -> Any:
        """f of doubles at several states."""
        f = self._traced
        return np.array([f(time, state, *self._params) for time, state in zip(times, states)])


def combined(y: State, weights: State, slopes: list[State]) -> State:
    """Return y + Σ wᵢ kᵢ over the slopes there are."""
    used = [k for k, w in zip(slopes, weights) if w]
    if not used:
        return list(y)
    nonzero = [w for w, _ in zip(weights, slopes) if w]
    sums = (sum(map(operator.mul, nonzero, column), Decimal(0)) for column in zip(*used))
    return list(map(operator.add, y, sums))


def horner(rows: list[State], s: Decimal) -> State:
    """The polynomial with these coefficients at s."""
    value = rows[-1]
    for row in rows[-2::-1]:
        value = [c + s * v for c, v in zip(row, value)]
    return value


def reach(rows: list[State], accuracy: float) -> Decimal:
    """How far a series holds: the last terms are below this part of the solution.

    Symmetries make single terms vanish, all but round-off: several are asked, but of a short
    series only the last third, since terms of low order are never small.
    """
    last = min(TERMS, len(rows) // 3)
    size = max(*map(abs, rows[0]), *map(abs, rows[1]), Decimal("1e-300"))
    return min(_reach(row, k, size, accuracy) for k, row in list(enumerate(rows))[-last:])


def _reach(row: State, order: int, size: Decimal, accuracy: float) -> Decimal:
    """Return the step at which a term of the series is small enough."""
    largest = max(map(abs, row))
    if not largest:
        return Decimal("inf")
    return (Decimal(accuracy) * size / largest) ** (Decimal(1) / order)
