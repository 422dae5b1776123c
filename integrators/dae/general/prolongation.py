r"""The equations and their time derivatives, by Taylor arithmetic on the graph.

With :math:`y_j(t+s) = \sum_m a_{jm} s^m`, every node of the graph is a series, and so are the
equations. At stage k (…, −1, 0, 1, …) the coefficients of order k + c_i of the equations contain
the unknown coefficients of order k + d_j, and lower ones that are known from the stages before
(Pryce 2001; Nedialkov & Pryce, BIT 45 (2005) 561–591):

.. math::

   J\,\big((k+d_j)!\,a_{j,k+d_j}\big) = -\big((k+c_i)!\,r_i\big), \qquad
   r_i = (f_i)_{k+c_i}\big|_{a_{j,k+d_j} = 0},

for k > 0 always, and for k = 0 if the leading derivatives enter linearly. For k < 0 there are fewer
equations than unknowns: these are the constraints, open and hidden, that a state must satisfy.

The arithmetic is any for which the operations of the graph are known: floats, symbols of another
trace, mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ...tracing.calculus.series import Lowered, Unrolled, coefficient, lower
from ...tracing.graph import FLOATS, Program
from ...tracing.symbols.symbol import apply
from .equations import Equations, Key

__all__ = ["MIXED", "Coefficients", "Prepared", "factorials"]

Algebra = Mapping[str, Callable[..., Any]]

#: Operations on symbols and floats together.
MIXED: dict[str, Callable[..., Any]] = {op: partial(apply, op) for op in FLOATS}


def factorials(count: int) -> list[float]:
    """Return 0!, 1!, … as floats."""
    return [float(math.factorial(k)) for k in range(count)]


class Prepared:
    """Equations made ready for Taylor arithmetic: helpers added, and what each equation needs."""

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.low: Lowered = lower(equations.program, len(equations.symbols))

    @cached_property
    def needed(self) -> list[list[int]]:
        """For each equation the nodes that it needs, in order."""
        low = self.low
        found = []
        for output in low.outputs:
            seen: set[int] = set()
            waiting = [output]
            while waiting:
                i = waiting.pop()
                if i in seen:
                    continue
                seen.add(i)
                if low.ops[i] not in ("const", "input"):
                    waiting.extend(low.args[i])
                if low.helper[i] >= 0:
                    waiting.append(low.helper[i])
            found.append(sorted(seen))
        return found


class Coefficients(Unrolled):
    """Taylor coefficients of equations along series of the unknowns, each as far as asked for.

    Parameters
    ----------
    prepared
        The equations.
    t, p
        Time and parameters.
    a
        For each unknown its Taylor coefficients, a list that may grow meanwhile.
    algebra, constant
        The arithmetic.

    Examples
    --------
    >>> from integrators.dae.general.equations import trace_equations
    >>> circle = trace_equations(lambda t, y, d: [y[0] ** 2 + y[1] ** 2 - 1], ["x", "z"], None, 0)
    >>> series = Coefficients(Prepared(circle), 0.0, [], [[1.0, 0.0, -0.5], [0.0, 1.0, 0.0]])
    >>> [float(series.equation(0, order)) for order in range(3)]
    [0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        prepared: Prepared,
        t: Any,
        p: Sequence[Any],
        a: Sequence[list[Any]],
        algebra: Algebra = FLOATS,
        constant: Callable[[float], Any] = float,
    ) -> None:
        self.prepared, self.low = prepared, prepared.low
        self.t, self.p, self.a = t, p, a
        self.algebra, self.number = algebra, constant
        self.j = 0
        self.series: list[list[Any]] = [[] for _ in self.low.ops]
        self._reciprocals: dict[tuple[int, float], Any] = {}

    def with_trial(self, a: Sequence[list[Any]]) -> Coefficients:
        """Return a copy that goes on with other coefficients, leaving this one as it is."""
        other = Coefficients(self.prepared, self.t, self.p, a, self.algebra, self.number)
        other.series = [list(known) for known in self.series]
        other._reciprocals = dict(self._reciprocals)
        return other

    def equation(self, i: int, order: int) -> Any:
        """Coefficient of an order of the residual of equation i."""
        nodes = self.prepared.needed[i]
        output = self.low.outputs[i]
        if not self.low.varying[output] and order > 0:
            return self.number(0.0)
        for q in range(len(self.series[output]), order + 1):
            for node in nodes:
                if len(self.series[node]) == q and (q == 0 or self.low.varying[node]):
                    self.j = q
                    self.series[node].append(self._term(node, q))
        return self.series[output][order]

    def _term(self, node: int, q: int) -> Any:
        op, args = self.low.ops[node], self.low.args[node]
        if op == "const":
            return self.number(args[0])
        if op == "input":
            return self._input(args[0], q)
        if q == 0:
            return self.algebra[op](*[self.series[x][0] for x in args])
        return coefficient(self, node)

    def _input(self, place: int, q: int) -> Any:
        symbols = self.prepared.equations.symbols
        if place == 0:
            return self.t if q == 0 else self.number(1.0 if q == 1 else 0.0)
        if place > len(symbols):
            return self.p[place - 1 - len(symbols)]
        j, order = symbols[place - 1]
        value = self.a[j][q + order]
        factor = math.perm(q + order, order)
        return value if factor == 1 else self.op("mul", self.number(float(factor)), value)


def program_values(program: Program, t: Any, symbols: Sequence[Any], p: Sequence[Any]) -> list[Any]:
    """Evaluate a program of t, derivatives and parameters on numbers or symbols."""
    return program.evaluate([t, *symbols, *p], MIXED)


def symbol_places(symbols: Sequence[Key], keys: Sequence[Key]) -> list[int]:
    """Return where the derivatives that occur are among some keys."""
    place = {key: i for i, key in enumerate(keys)}
    return [place[key] for key in symbols]


def as_array(values: Sequence[Any]) -> Any:
    """Return values as an array: floats, or objects with symbols."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
