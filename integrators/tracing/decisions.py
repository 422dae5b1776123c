"""Tracing a function that looks at values: its decisions are taken as an example takes them.

Tracing a right-hand side refuses to freeze an ``if``, because its outcome may change along a run.
A function that is evaluated once for each run, such as one that builds a model from parameters, may
be traced along an example: whatever it asks is answered for the example, and noted. The graph is
then right for all values that give the same answers, which :meth:`Decided.evaluate` finds out;
others have to be computed by the function itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .graph import FLOATS, Graph, Program
from .symbols.symbol import Symbol, apply
from .trace import input_array, output_nodes, program_on_symbols, run

__all__ = ["Decided", "Decisions", "assume"]


class Decisions:
    """Answers about the nodes of a graph, from example values of its inputs.

    Attributes
    ----------
    answers
        Truth values that were asked for, by node.
    assumptions
        Pairs of a function and nodes: ``function(columns)`` says for which of many evaluations
        an assumption holds.
    """

    def __init__(self, graph: Graph, example: Sequence[float]) -> None:
        self.graph, self.example = graph, [np.float64(x) for x in example]
        self.answers: dict[int, bool] = {}
        self.assumptions: list[tuple[Callable[..., Any], list[int]]] = []
        self._values: list[Any] = []

    def value(self, index: int) -> Any:
        """Value of a node in the example."""
        g, values = self.graph, self._values
        with np.errstate(all="ignore"):
            for k in range(len(values), index + 1):
                op, args = g.ops[k], g.args[k]
                if op == "const":
                    values.append(args[0])
                elif op == "input":
                    values.append(self.example[args[0]])
                else:
                    values.append(FLOATS[op](*(values[a] for a in args)))
        return values[index]

    def truth(self, index: int) -> bool:
        """Whether a node is true in the example; noted."""
        self.answers[index] = bool(self.value(index))
        return self.answers[index]

    def whole(self, symbol: Symbol) -> int:
        """Nearest whole number in the example; noted."""
        nearest = round(float(self.value(symbol.index)))
        bool(apply("le", apply("abs", symbol - float(nearest)), 0.5))
        return nearest


def assume(holds: Callable[[Any], Any], values: Any) -> None:
    """Note that ``holds`` is true of an array that contains symbols, for checks beyond the graph.

    ``holds`` is given arrays of shape (m, …), for m evaluations, and returns m truth values.
    """
    array = np.asarray(values, dtype=object)
    symbols = [x for x in array.flat if isinstance(x, Symbol)]
    decisions = symbols[0].graph.decisions if symbols else None
    if decisions is None:
        return
    graph = decisions.graph
    nodes = [x.index if isinstance(x, Symbol) else graph.const(float(x)) for x in array.flat]
    shape = array.shape

    def of_columns(columns: np.ndarray) -> Any:
        return holds(columns.T.reshape(-1, *shape))

    decisions.assumptions.append((of_columns, nodes))


class Decided:
    """A function of one vector, traced along an example.

    Parameters
    ----------
    function
        Takes a vector, returns numbers; may decide by values.
    example
        Values that it decides by.

    Examples
    --------
    >>> size = Decided(lambda x: [x[0] if x[0] > 0 else -x[0]], [2.0])
    >>> values, known = size.evaluate(np.array([[3.0], [-3.0]]))
    >>> values[0], known
    (array([3.]), array([ True, False]))
    """

    def __init__(self, function: Callable[[Any], Any], example: Sequence[float]) -> None:
        graph = Graph(simplify=False)  # rounding errors are to be those of the function
        graph.decisions = Decisions(graph, example)
        x = input_array(graph, 0, (len(example),))
        nodes, shape = output_nodes(graph, run(function, [x]), "the function")
        self.decisions, self.shape = graph.decisions, shape
        self._counts = [len(nodes), len(self.decisions.answers)]
        asked = list(self.decisions.answers)
        more = [n for _, some in self.decisions.assumptions for n in some]
        names = [f"x[{k}]" for k in range(len(example))]
        self.program = Program.from_graph(graph, [*nodes, *asked, *more], names)
        self.expected = np.array(list(self.decisions.answers.values()), dtype=bool)

    def evaluate(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values for many rows, and whether the graph is right for each of them."""
        m = len(rows)
        found = self.program.evaluate(list(np.asarray(rows, dtype=float).T))
        columns = [np.broadcast_to(np.asarray(x, dtype=float), (m,)) for x in found]
        size, asked = self._counts
        values = np.array(columns[:size]).T.reshape(m, *self.shape)
        known = np.ones(m, dtype=bool)
        for truth, expected in zip(columns[size : size + asked], self.expected):
            known &= (truth != 0.0) == expected
        at = size + asked
        for holds, nodes in self.decisions.assumptions:
            part = np.array(columns[at : at + len(nodes)])
            with np.errstate(all="ignore"):
                known &= np.asarray(holds(part), dtype=bool)
            at += len(nodes)
        return values, known

    def on_symbols(self, x: Sequence[Any]) -> list[Any]:
        """Values for symbols, in order; not numbers where it would decide otherwise.

        Assumptions beyond the graph are not looked at.
        """
        found = program_on_symbols(self.program, x)
        size, asked = self._counts
        valid: Any = 1.0
        for truth, expected in zip(found[size : size + asked], self.expected):
            if isinstance(truth, Symbol):
                sides = (valid, math.nan) if expected else (math.nan, valid)
                valid = apply("select", truth, *sides)
        return [value * valid for value in found[:size]]
