"""The equations F(t, y, ẏ, ÿ, …) = 0 as a graph, with a symbol for every derivative in them.

The user's function runs once on symbols. Its third argument d is two things at a time: the operator
d(x, k), the k-th time derivative of an unknown or of any expression of unknowns, and the array of
first derivatives, so that ``F(t, y, d)`` and ``F(t, y, yp)`` are both understood.

The inputs of the graph are t, then one for each derivative that occurs, then the parameters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...problem import accepts_params
from ...tracing.calculus.derivative import jvp, replay
from ...tracing.errors import TracingError
from ...tracing.graph import Graph, Program
from ...tracing.symbols.arrays import SymbolArray
from ...tracing.symbols.symbol import PythonFloat, Symbol
from ...tracing.trace import output_nodes, run, twice

__all__ = ["Builder", "Equations", "Key", "derivative_name", "trace_equations"]

#: An unknown's number and the order of its derivative.
Key = tuple[int, int]


def derivative_name(name: str, order: int) -> str:
    """Return x, x', x'', x''', x'4, … for a name and an order.

    Examples
    --------
    >>> derivative_name("x", 2), derivative_name("x", 5)
    ("x''", "x'5")
    """
    return name + ("'" * order if order <= 3 else f"'{order}")


@dataclass(frozen=True, eq=False)
class Equations:
    """Traced equations.

    Attributes
    ----------
    program
        Inputs t, one for each key of `symbols`, parameters; outputs the residuals.
    symbols
        Which derivative of which unknown the inputs from the second on are.
    unknowns, names
        Names of the unknowns and of the equations.
    parameters
        Number of parameters.
    """

    program: Program
    symbols: tuple[Key, ...]
    unknowns: tuple[str, ...]
    names: tuple[str, ...]
    parameters: int

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return len(self.unknowns)

    @property
    def m(self) -> int:
        """Number of equations."""
        return len(self.names)

    def symbol_name(self, key: Key) -> str:
        """Return the name of a derivative in the user's terms."""
        return derivative_name(self.unknowns[key[0]], key[1])


class Builder:
    """Equations under construction: hands out inputs for derivatives as they are asked for."""

    def __init__(self, n: int, parameters: int) -> None:
        self.graph = Graph()
        self.n, self.k = n, parameters
        self.keys: list[Key] = []
        self.numbers: dict[Key, int] = {}
        self.t = PythonFloat(self.graph, self.graph.input(0))
        self.p = self._array([Symbol(self.graph, self.graph.input(1 + i)) for i in range(self.k)])
        self.y = self._array([self.symbol(j, 0) for j in range(n)])

    @staticmethod
    def _array(symbols: Sequence[Any]) -> Any:
        flat = np.empty(len(symbols), dtype=object)
        flat[:] = symbols
        return flat.view(SymbolArray)

    def input(self, j: int, order: int) -> int:
        """Return the node of a derivative."""
        number = self.numbers.get((j, order))
        if number is None:
            number = self.numbers[j, order] = 1 + self.k + len(self.keys)
            self.keys.append((j, order))
        return self.graph.input(number)

    def symbol(self, j: int, order: int) -> Symbol:
        """Return the symbol of a derivative."""
        return Symbol(self.graph, self.input(j, order))

    def derivative(self, x: Any, order: int) -> Any:
        """Return the derivative of an unknown, an expression, or an array of them."""
        if isinstance(x, np.ndarray | list | tuple):
            array = np.asarray(x, dtype=object)
            flat = [self.derivative(e, order) for e in array.ravel()]
            return self._array(flat).reshape(array.shape)
        if not isinstance(x, Symbol):
            return x if order == 0 else 0.0  # a number does not change
        if x.graph is not self.graph:
            raise TracingError(
                "d was given a traced value of an earlier call: the function keeps values between "
                "calls. Remedy: keep no state."
            )
        node = x.index
        for left in range(order, 0, -1):
            op, args = self.graph.ops[node], self.graph.args[node]
            if op == "input" and args[0] > self.k:
                j, already = self.keys[args[0] - 1 - self.k]
                return self.symbol(j, already + left)
            node = self.rate(node)
        return Symbol(self.graph, node)

    def load(self, equations: Equations) -> list[int]:
        """Copy equations into the graph; returns the nodes of the residuals."""
        own = [self.graph.input(0)]
        own += [self.input(j, order) for j, order in equations.symbols]
        own += [self.graph.input(1 + i) for i in range(self.k)]
        copied = replay(self.graph, equations.program, own)
        return [copied[o] for o in equations.program.outputs]

    def finish(
        self, nodes: Sequence[int], unknowns: Sequence[str], names: Sequence[str]
    ) -> Equations:
        """Return the equations whose residuals are some nodes."""
        used = _used_inputs(self.graph, nodes)
        keys = sorted((self.keys[i - 1 - self.k] for i in used if i > self.k), key=_by_order)
        program = _in_order(self.graph, nodes, self.numbers, keys, self.k, unknowns)
        return Equations(program, tuple(keys), tuple(unknowns), tuple(names), self.k)

    def rate(self, node: int) -> int:
        """Return the total time derivative of an expression."""
        count = len(self.keys)
        columns = [0, *range(1 + self.k, 1 + self.k + count)]
        inputs = [""] * (1 + self.k + count)
        program = Program.from_graph(self.graph, [node], inputs)
        used = {args[0] for op, args in zip(program.ops, program.args) if op == "input"}
        columns = [c for c in columns if c in used]
        rate = jvp(program, columns)
        own = [self.graph.input(i) for i in range(len(inputs))]
        for c in columns:
            if c == 0:
                own.append(self.graph.const(1.0))
            else:
                j, order = self.keys[c - 1 - self.k]
                own.append(self.input(j, order + 1))
        return replay(self.graph, rate, own)[rate.outputs[0]]


class _Derivatives(SymbolArray):
    """The argument d: an array of first derivatives that can be called, d(x, k)."""

    builder: Builder | None = None

    def __call__(self, x: Any, order: int = 1) -> Any:
        """Return the derivative of x of an order."""
        try:
            whole = -1 if isinstance(order, bool) else operator.index(order)
        except TypeError:
            whole = -1
        if whole < 0:
            raise TracingError(
                f"d(x, {order!r}): the order of a derivative must be 0, 1, 2, …. Remedy: write "
                "d(x) or d(x, 1) for the first derivative, d(x, 2) for the second."
            )
        if self.builder is None:
            raise TracingError(
                "only d itself can be called, not a part of it. Remedy: write d(y[0], 2), or d[0] "
                "for the first derivative of y[0]."
            )
        return self.builder.derivative(x, whole)


def trace_equations(
    function: Callable[..., Any],
    unknowns: Sequence[str],
    names: Sequence[str] | None,
    parameters: int,
) -> Equations:
    """Run F on symbols and keep the graph.

    Parameters
    ----------
    function
        ``F(t, y, d)`` or ``F(t, y, d, p)``.
    unknowns
        Their names; they tell how many there are.
    names
        Names of the equations; f0, f1, … if None.
    parameters
        How many there are.
    """
    n = len(unknowns)
    title = getattr(function, "__name__", "F")
    takes = _needs_parameters(function)
    if takes and not parameters:
        raise ValueError(
            f"{title} takes parameters p, but there are none; give DAE(F, …, params=[…])"
        )
    if parameters and not _accepts_parameters(function):
        raise ValueError(
            f"{title} takes no parameters, but {parameters} were given; write it as F(t, y, d, p)"
        )
    made: list[Equations] = []

    def build() -> Program:
        trace = Builder(n, parameters)
        d = Builder._array([trace.symbol(j, 1) for j in range(n)]).view(_Derivatives)
        d.builder = trace
        arguments = [trace.t, trace.y, d]
        if parameters:
            arguments.append(trace.p)
        nodes, shape = output_nodes(trace.graph, run(function, arguments), title)
        if len(shape) > 1:
            raise ValueError(
                f"{title} returned an array of shape {shape}; expected a flat list, one residual "
                "for each equation"
            )
        labels = [f"f{i}" for i in range(len(nodes))] if names is None else list(names)
        if len(labels) != len(nodes):
            raise ValueError(
                f"{title} returned {len(nodes)} equations, but there are {len(labels)} names for "
                f"them ({', '.join(labels[:6])}{', …' if len(labels) > 6 else ''})"
            )
        made.append(trace.finish(nodes, unknowns, labels))
        return made[-1].program

    twice(build, title)
    return made[-1]


def _by_order(key: Key) -> tuple[int, int]:
    return key[1], key[0]


def _accepts_parameters(function: Callable[..., Any]) -> bool:
    """Whether F can be called with four arguments."""
    import inspect

    try:
        inspect.signature(function).bind(None, None, None, None)
    except TypeError:
        return False
    except ValueError:  # a function that does not tell
        return True
    return True


def _needs_parameters(function: Callable[..., Any]) -> bool:
    """Whether F has a fourth argument without a default."""
    import inspect

    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [
        a
        for a in arguments
        if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) and a.default is a.empty
    ]
    if len(needed) > 4:
        raise TypeError(
            f"expected F(t, y, d) or F(t, y, d, p), got a function of {len(needed)} arguments; "
            "collect the parameters in one vector p"
        )
    if not accepts_params(function):
        raise TypeError(
            "expected F(t, y, d), with d for the derivatives: d(y[0], 2) or, as an array, the "
            f"first ones; got a function of {len(needed)} arguments"
        )
    return len(needed) == 4


def _used_inputs(graph: Graph, nodes: Sequence[int]) -> set[int]:
    seen, waiting, used = bytearray(len(graph)), list(nodes), set()
    while waiting:
        i = waiting.pop()
        if seen[i]:
            continue
        seen[i] = 1
        op, args = graph.ops[i], graph.args[i]
        if op == "input":
            used.add(args[0])
        elif op != "const":
            waiting.extend(args)
    return used


def _in_order(
    graph: Graph,
    nodes: Sequence[int],
    numbers: dict[Key, int],
    keys: Sequence[Key],
    parameters: int,
    unknowns: Sequence[str],
) -> Program:
    """Return the program of some nodes with its inputs in order: t, `keys`, parameters.

    In the graph, input 0 is t, the parameters follow, and `numbers` tells the derivatives' places.
    """
    width = 1 + parameters + len(numbers)
    raw = Program.from_graph(graph, nodes, [""] * width)
    place = [0] * width
    for i in range(parameters):
        place[1 + i] = 1 + len(keys) + i
    for i, key in enumerate(keys):
        place[numbers[key]] = 1 + i
    labels = (
        "t",
        *(derivative_name(unknowns[j], k) for j, k in keys),
        *(f"p[{i}]" for i in range(parameters)),
    )
    args = tuple(
        (place[a[0]],) if op == "input" else a for op, a in zip(raw.ops, raw.args, strict=True)
    )
    return Program(raw.ops, args, labels, raw.outputs, (len(nodes),))
