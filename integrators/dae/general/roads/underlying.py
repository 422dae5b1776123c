"""The underlying ordinary differential equation, and the Taylor series of the DAE itself.

A state Y holds the derivatives below the leading ones, the algebraic unknowns, and those leading
derivatives that enter nonlinearly. Given Y, stage 0 of the equations is linear in what is missing,
and every later stage in its unknown coefficients; all have the matrix J (see :mod:`.prolongation`).
With as many stages as it takes, one has

- Ẏ, as a traced function: an ordinary differential equation for any method;
- the Taylor coefficients of Y of any order, with a single factorisation of J: what DAETS does
  (Nedialkov & Pryce, JNAIAM 3 (2008) 61–80).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....tracing import Traced
from ....tracing.function import Function
from ....tracing.graph import Graph, Program
from ....tracing.symbols.symbol import Symbol
from ....tracing.trace import output_nodes
from ..derivative_array import DerivativeArray
from ..elimination import BlockSolver
from ..prolongation import MIXED, Algebra, Coefficients, as_array, program_values

__all__ = ["Rates", "SeriesODE", "StagedSeries", "state_series"]


def state_series(
    array: DerivativeArray,
    scales: Sequence[float],
    t: Any,
    Y: Sequence[Any],
    p: Sequence[Any],
    order: int,
    algebra: Algebra = MIXED,
) -> list[list[Any]]:
    """Taylor coefficients 0 … order of a state along the solution, on numbers or symbols.

    Returns
    -------
    list
        Row m holds the m-th coefficients of all components of the state.
    """
    a: list[list[Any]] = [[] for _ in range(array.n)]
    values = dict(zip(array.state_keys, Y))
    for j, o in array.keys:
        x = values.get((j, o), 0.0)
        a[j].append(x if o < 2 else x * (1.0 / math.factorial(o)))
    symbols = [values.get(key, 0.0) for key in array.equations.symbols]
    J = program_values(array.system_jacobian.program, t, symbols, p)
    jacobian = array.system_jacobian
    places = zip(jacobian.rows.tolist(), jacobian.columns.tolist())
    solver = BlockSolver(dict(zip(places, J)), array.structure.blocks, scales)

    trial = Coefficients(array.prepared, t, p, a, algebra)
    found = _stage(array, solver, trial, 0)
    a = [list(known) for known in a]
    for j, x in enumerate(found):
        a[j][-1] = a[j][-1] + x
    actual = Coefficients(array.prepared, t, p, a, algebra)
    last = max(order + o - array.d[j] for j, o in array.state_keys)
    for k in range(1, last + 1):
        attempt = actual.with_trial([[*known, 0.0] for known in a])
        for j, x in enumerate(_stage(array, solver, attempt, k)):
            a[j].append(x)
    return [
        [
            x if m == 0 else a[j][o + m] * float(math.perm(o + m, o))
            for (j, o), x in zip(array.state_keys, Y)
        ]
        for m in range(order + 1)
    ]


def _stage(array: DerivativeArray, solver: BlockSolver, series: Coefficients, k: int) -> list[Any]:
    """Solve stage k for the increments of the coefficients of order k + d_j."""
    right = []
    for i in range(array.n):
        q = k + array.c[i]
        residual = series.equation(i, q)
        right.append(residual * (-float(math.factorial(q))))
    return [x * (1.0 / math.factorial(k + array.d[j])) for j, x in enumerate(solver.solve(right))]


class Rates:
    """Ẏ(t, Y, p): what is traced."""

    __name__ = "underlying ODE"

    def __init__(self, array: DerivativeArray, scales: Sequence[float]) -> None:
        self.array, self.scales = array, scales

    def __call__(self, t: Any, y: Any, p: Any = ()) -> Any:
        """Return the derivative of a state."""
        return as_array(state_series(self.array, self.scales, t, list(y), list(p), 1)[1])


class StagedSeries(Function):
    """Taylor coefficients of the state, stage by stage: a function of (t, y, p)."""

    unrolled = True

    def __init__(self, graph: Program, n: int, k: int, order: int) -> None:
        super().__init__(graph, n, k)
        self.order = order

    def __reduce__(self) -> Any:
        return StagedSeries, (self.graph, self.n, self.k, self.order)

    @classmethod
    def of(cls, rates: Rates, order: int) -> StagedSeries:
        """Trace the coefficients 0 … order."""
        array = rates.array
        n, k = len(array.state_keys), array.k
        g = Graph()
        inputs = [Symbol(g, g.input(i)) for i in range(1 + n + k)]
        rows = state_series(
            array, rates.scales, inputs[0], inputs[1 : 1 + n], inputs[1 + n :], order
        )
        nodes, _ = output_nodes(g, [x for row in rows for x in row], "the series")
        names = ["t", *(f"y[{i}]" for i in range(n)), *(f"p[{i}]" for i in range(k))]
        return cls(Program.from_graph(g, nodes, names, (order + 1, n)), n, k, order)


class SeriesODE(Traced):
    """The underlying ODE with the series of the DAE in place of its own."""

    def __init__(self, function: Rates, n: int, params: int) -> None:
        super().__init__(function, n=n, params=params)

    def __reduce__(self) -> Any:
        return SeriesODE, (self.function, self.n, self.k)

    def series(self, order: int) -> Any:
        """Taylor coefficients 0 … order of the state, by the stages of the DAE."""
        function: Any = self.function
        return self._derive(("staged", order), lambda: StagedSeries.of(function, order))
