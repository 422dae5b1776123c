"""Runs with forty digits, for orders that doubles cannot show.

A method of order 8 reaches round-off while its error is still on the way to the straight line. With
forty digits there is room: the right-hand side is traced and its graph evaluated with
:class:`decimal.Decimal`, the coefficients of a tableau are exact fractions or have sixty digits
anyway, and the reference comes from Taylor series of high order of the same graph.

What cannot be had so (an f that cannot be traced, functions such as atan, mass matrices, events)
is refused by :class:`NotAvailable`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Context, Decimal, DecimalException, localcontext
from fractions import Fraction
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ...methods.taylor import Taylor
from ...problem import IVP
from ...tableau import Tableau
from ...tableau.exact import pi, to_decimal
from ...tracing.calculus.series import Unrolled, lower
from ...tracing.graph import CONDITIONS, evaluate
from ..problem.fields import Field

__all__ = ["DIGITS", "ManyDigits", "NotAvailable"]

DIGITS = 40  # of the arithmetic
ACCURACY = 1e-32  # of a step of the reference, relative
TAYLOR_ORDER, TERMS = 36, 8  # and how many of its last terms decide on the step
MOST_STATES = 30
MOST_OPERATIONS = 4_000_000  # of Decimals in one run: a second or two
NEWTON = 20
FUNCTIONS = frozenset({"sin", "cos", "tan", "exp", "log", "sinh", "cosh", "tanh", "pow"})
COSTLY = 20  # what such a function takes, in multiplications

State = list[Decimal]


class NotAvailable(Exception):
    """Raised where a problem or method cannot be had with many digits; the text says why."""


@contextmanager
def _digits() -> Iterator[None]:
    """Compute with many digits; a division by zero or an overflow ends it."""
    context = Context(prec=DIGITS, Emax=999999, Emin=-999999)
    with localcontext(context):
        try:
            yield
        except (DecimalException, OverflowError, ZeroDivisionError) as error:
            raise NotAvailable(f"the arithmetic failed ({type(error).__name__})") from None


# -------------------------------------------------------------------- elementary functions

_PI = pi()
_SINE = [to_decimal(Fraction((-1) ** k, factorial(2 * k + 1))) for k in range(17)]
"""Of the power series: at π/4 the next term is 1e-44."""


@lru_cache(maxsize=256)
def _sine_cosine(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return sin x and cos x, after a reduction to |x| ≤ π/4; they are often wanted together."""
    quarters = int((2 * x / _PI).to_integral_value())
    rest = x - quarters * _PI / 2
    square, sine = rest * rest, _SINE[-1]
    for coefficient in _SINE[-2::-1]:
        sine = coefficient + square * sine
    sine *= rest
    cosine = (1 - sine * sine).sqrt()
    turned = [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)]
    return turned[quarters % 4]


def _power(x: Decimal, y: Decimal) -> Decimal:
    return x ** int(y) if y == y.to_integral_value() else x**y


def _sinh(x: Decimal) -> Decimal:
    return (x.exp() - (-x).exp()) / 2


def _cosh(x: Decimal) -> Decimal:
    return (x.exp() + (-x).exp()) / 2


def _tangent(x: Decimal) -> Decimal:
    sine, cosine = _sine_cosine(x)
    return sine / cosine


DECIMALS: Mapping[str, Callable[..., Any]] = {
    "neg": operator.neg,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": _power,
    "sqrt": Decimal.sqrt,
    "exp": Decimal.exp,
    "log": Decimal.ln,
    "sin": lambda x: _sine_cosine(x)[0],
    "cos": lambda x: _sine_cosine(x)[1],
    "tan": _tangent,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": lambda x: _sinh(x) / _cosh(x),
}

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

    Examples
    --------
    >>> growth = ManyDigits(IVP(lambda t, y: y, [1.0], (0.0, 1.0)))
    >>> growth.along(np.array([Decimal(1)], dtype=object))[0, 0] - Decimal(1).exp() < 1e-27
    True
    """

    def __init__(self, problem: IVP) -> None:
        if problem.mass is not None or problem.events or np.iscomplexobj(problem.y0):
            raise NotAvailable("mass matrices, events and complex states are run with doubles only")
        if problem.n > MOST_STATES:
            raise NotAvailable(f"more than {MOST_STATES} states take too long")
        self._field = Field(problem, problem.n)
        if self._field.traced is None:
            raise NotAvailable(f"f cannot be traced: {self._field.untraced}")
        self.n, self._program = problem.n, self._field.graph
        self._low = lower(self._program, self.n)
        branches = BRANCHES & set(self._low.ops)
        if branches:
            raise NotAvailable(f"f has branches ({', '.join(sorted(branches))}): no series crosses")
        unknown = {op for op in self._low.ops if op not in ("const", "input", *DECIMALS)}
        if unknown:
            raise NotAvailable(f"{', '.join(sorted(unknown))} is not known with many digits")
        self._p = [Decimal(float(x)) for x in self._field.p]
        self._y0 = [Decimal(float(x)) for x in problem.y0]
        self.t_span = tuple(Decimal(float(t)) for t in problem.t_span)
        self._pieces: list[tuple[Decimal, Decimal, list[State]]] = []

    def f(self, t: Decimal, y: State) -> State:
        """Return f(t, y)."""
        program = self._program
        inputs = [t, *y, *self._p]
        return evaluate(program.ops, program.args, program.outputs, inputs, DECIMALS, Decimal)

    def along(self, times: NDArray[Any]) -> NDArray[Any]:
        """Return the solution at given times, shape (n, m), by Taylor series."""
        with _digits():
            pieces = self._solved()
            values, k = [], 0
            ahead = self.t_span[1] >= self.t_span[0]
            for t in map(Decimal, times):
                while k + 1 < len(pieces) and (t > pieces[k][1] if ahead else t < pieces[k][1]):
                    k += 1
                values.append(_horner(pieces[k][2], t - pieces[k][0]))
        return np.array(values, dtype=object).T

    def _solved(self) -> list[tuple[Decimal, Decimal, list[State]]]:
        """Cover the interval by Taylor polynomials, each valid to the accuracy of the reference."""
        if self._pieces:
            return self._pieces
        (t, end), y = self.t_span, self._y0
        operations = 0
        while t != end:
            rows = _Series(self._low, [t, *y, *self._p]).run(TAYLOR_ORDER)
            operations += len(self._low.ops) * TAYLOR_ORDER**2 // 2
            if operations > MOST_OPERATIONS:
                self._pieces = []
                raise NotAvailable("a reference with many digits would take too long")
            size = max(*map(abs, y), *map(abs, rows[1]), Decimal("1e-300"))
            # Symmetries make single terms vanish, all but round-off: several are asked.
            step = min(_reach(row, k, size) for k, row in list(enumerate(rows))[-TERMS:])
            stop = end if abs(end - t) <= step else t + step.copy_sign(end - t)
            self._pieces.append((t, stop, rows))
            y, t = _horner(rows, stop - t), stop
        return self._pieces

    def run(self, method: Any, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Take equal steps; returns times (count + 1,) and states (n, count + 1)."""
        with _digits():
            h = (self.t_span[1] - self.t_span[0]) / count
            step = self._stepper(method, h, count)
            t, y = [self.t_span[0]], [self._y0]
            for k in range(1, count + 1):
                y.append(step(t[-1], y[-1]))
                t.append(self.t_span[0] + k * h if k < count else self.t_span[1])
        return np.array(t, dtype=object), np.array(y, dtype=object).T

    def affordable(self, method: Any) -> int:
        """Return how many steps of a method take a few seconds."""
        if isinstance(method, Tableau):
            sweeps = 1 if method.is_explicit else 24
            once = sum(COSTLY if op in FUNCTIONS else 1 for op in self._program.ops)
            work = sweeps * method.stages * (once + self.n * method.stages)
        else:
            work = 8 * len(self._low.ops) * getattr(method, "order", 20) ** 2
        return max(1, MOST_OPERATIONS // max(work, 1))

    # ------------------------------------------------------------ steps

    def _stepper(self, method: Any, h: Decimal, count: int) -> Callable[[Decimal, State], State]:
        if isinstance(method, Tableau):
            A = [[h * to_decimal(a) for a in row] for row in method.A]
            b = [h * to_decimal(x) for x in method.b]
            c = [h * to_decimal(x) for x in method.c]
            stages = self._explicit if method.is_explicit else self._implicit
            return lambda t, y: _combined(y, b, stages(A, c, t, y))
        if isinstance(method, Taylor) and method.fixed_order is not None:
            order = method.fixed_order
            return lambda t, y: _horner(_Series(self._low, [t, *y, *self._p]).run(order), h)
        raise NotAvailable("only tableaux and Taylor methods are run with many digits")

    def _explicit(self, A: list[State], c: State, t: Decimal, y: State) -> list[State]:
        slopes: list[State] = []
        for row, node in zip(A, c):
            slopes.append(self.f(t + node, _combined(y, row, slopes)))
        return slopes

    def _implicit(self, A: list[State], c: State, t: Decimal, y: State) -> list[State]:
        """Newton's method, first with doubles, then with many digits in the residuals alone."""
        slopes, factors = self._newton_of_doubles(A, c, t, y)
        n = self.n
        for _ in range(NEWTON):
            values = [self.f(t + node, _combined(y, row, slopes)) for row, node in zip(A, c)]
            wrong = [v - k for value, slope in zip(values, slopes) for v, k in zip(value, slope)]
            largest = max(map(abs, wrong))
            size = max(abs(k) for slope in slopes for k in slope)
            if largest <= size * Decimal(10) ** (4 - DIGITS):
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
        slopes = np.tile(self._field.values(times[:1], start[None])[0], (s, 1))
        for _ in range(NEWTON):
            states = start + hA @ slopes
            J = self._field.jacobians(times, states)
            matrix = np.eye(n * s) - np.einsum("ij,ikl->ikjl", hA, J).reshape(n * s, n * s)
            if not np.isfinite(matrix).all():
                break
            factors = scipy.linalg.lu_factor(matrix, check_finite=False)
            wrong = (self._field.values(times, states) - slopes).ravel()
            moves = scipy.linalg.lu_solve(factors, wrong, check_finite=False).reshape(s, n)
            slopes = slopes + moves
            if np.max(np.abs(moves)) <= 1e-9 * np.max(np.abs(slopes)):
                return [[Decimal(float(k)) for k in slope] for slope in slopes], factors
        raise NotAvailable("Newton's iteration did not converge at these steps")


def _combined(y: State, weights: State, slopes: list[State]) -> State:
    """Return y + Σ wᵢ kᵢ over the slopes there are."""
    pairs = [(w, k) for w, k in zip(weights, slopes) if w]
    return [x + sum((w * k[i] for w, k in pairs), Decimal(0)) for i, x in enumerate(y)]


def _horner(rows: list[State], s: Decimal) -> State:
    value = rows[-1]
    for row in rows[-2::-1]:
        value = [c + s * v for c, v in zip(row, value)]
    return value


def _reach(row: State, order: int, size: Decimal) -> Decimal:
    """Return the step at which a term of the series is as small as the reference is accurate."""
    largest = max(map(abs, row))
    return Decimal((ACCURACY * float(size / largest)) ** (1 / order)) if largest else Decimal("inf")
