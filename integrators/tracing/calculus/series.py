r"""Taylor coefficients of the solution of y' = f(t, y) by recurrences.

With :math:`u(t+s) = \sum_j u_j s^j` for every node u of the graph, each operation gives u_j from
lower coefficients, and the differential equation closes the circle:

.. math::

   (ab)_j = \sum_{k=0}^{j} a_k b_{j-k}, \qquad
   (a/b)_j = \frac{1}{b_0}\Big(a_j - \sum_{k=1}^{j} b_k (a/b)_{j-k}\Big), \qquad
   (e^a)_j = \frac1j \sum_{k=1}^{j} k a_k (e^a)_{j-k}, \qquad
   y_{j} = \frac{f_{j-1}}{j},

and so on for the others (Moore 1966; Jorba and Zou 2005): sin and cos together, and for the
inverse functions u' = a'/w, hence
:math:`u_j = (a_j - \frac1j\sum_{k=1}^{j-1} k u_k w_{j-k})/w_0` with w = 1 + a² for atan, etc.
Time is the series (t, 1, 0, ...). ``abs``, ``min``, ``max`` and ``where`` follow the branch of
the order-0 values. At a singular point of sqrt, log or a power the coefficients are infinite or
NaN, as they should be.

The recurrences are written once (:func:`coefficient`) against a small set of verbs, and serve

- :class:`Unrolled`: any arithmetic (floats, mpmath, graph nodes); on graph nodes it gives a
  straight-line program of all coefficients, fast for small systems;
- :class:`~.series_loop.Looped`: LLVM code with loops over the order, for large systems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ..graph import CONDITIONS, FLOATS, Graph, Program
from ..simplify import RULES

__all__ = ["Lowered", "Unrolled", "coefficient", "lower", "series_program", "unrolled_size"]

_FROZEN = CONDITIONS | {"sign", "floor"}


@dataclass
class Lowered:
    """A program with the auxiliary series that its recurrences need.

    ``ops``, ``args`` are its nodes; ``helper[i]`` is the auxiliary node of i (the cosine of a
    sine, the w of an inverse function); ``varying[i]`` tells whether the node depends on time
    through t or y; ``states`` are the nodes of y, ``outputs`` those of f.
    """

    ops: list[str]
    args: list[tuple[Any, ...]]
    helper: list[int]
    varying: list[bool]
    states: list[int]
    outputs: list[int]


def lower(program: Program, n: int) -> Lowered:
    """Add auxiliary nodes to a program whose inputs are t, n states, then parameters."""
    low = Lowered([], [], [], [], [], [])
    found: dict[tuple[Any, ...], int] = {}

    def push(op: str, *args: Any, helper: int = -1) -> int:
        key = (op, repr(args[0]) if op == "const" else args)
        if key in found:
            return found[key]
        found[key] = i = len(low.ops)
        low.ops.append(op)
        low.args.append(args)
        low.helper.append(helper)
        if op == "const":
            low.varying.append(False)
        elif op == "input":
            low.varying.append(args[0] <= n)
        else:
            low.varying.append(op not in _FROZEN and any(low.varying[a] for a in args))
        return i

    for k in range(n):
        low.states.append(push("input", 1 + k))
    new: list[int] = []
    for op, a in zip(program.ops, program.args):
        if op in ("const", "input"):
            new.append(push(op, *a))
            continue
        x = tuple(new[j] for j in a)
        if not any(low.varying[i] for i in x):
            new.append(push(op, *x))
            continue
        one = push("const", 1.0)
        if op in _PARTNER:
            i = push(op, *x)
            j = push(_PARTNER[op], *x)
            low.helper[i], low.helper[j] = j, i
        elif op in ("tan", "tanh"):
            i = push(op, *x)
            square = push("mul", i, i)
            low.helper[i] = push("add" if op == "tan" else "sub", one, square)
        elif op in ("atan", "atanh", "asin", "acos", "asinh", "acosh"):
            square = push("mul", x[0], x[0])
            if op in ("atan", "asinh"):
                w = push("add", one, square)
            elif op == "acosh":
                w = push("sub", square, one)
            else:
                w = push("sub", one, square)
            if op in ("asin", "acos", "asinh", "acosh"):
                w = push("sqrt", w)
            i = push(op, *x, helper=w)
        elif op == "atan2":
            w = push("add", push("mul", x[0], x[0]), push("mul", x[1], x[1]))
            i = push(op, *x, helper=w)
        elif op == "log1p":
            i = push(op, *x, helper=push("add", one, x[0]))
        elif op == "expm1":
            i = push(op, *x, helper=push("exp", *x))
        elif op == "pow" and low.varying[x[1]]:
            exponent = push("mul", x[1], push("log", x[0]))
            i = push(op, *x, helper=exponent)
        elif op in ("min", "max"):
            pair = x if op == "min" else x[::-1]
            i = push(op, *x, helper=push("le", *pair))
        else:
            i = push(op, *x)
        new.append(i)
    low.outputs = [new[o] for o in program.outputs]
    return low


_PARTNER = {"sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh"}


class Verbs(Protocol):
    """What :func:`coefficient` is written with; j is the order being computed, j ≥ 1."""

    low: Lowered

    def value(self, i: int) -> Any:
        """Return the order-0 coefficient of node i."""

    def coef(self, i: int) -> Any:
        """Coefficient j of node i, which varies."""

    def dot(self, a: int, b: int, first: int, last: int, weighted: bool) -> Any:
        """Return Σ [k] a_k b_(j−k) over k = first .. j + last; the factor k if weighted."""

    def over_j(self, x: Any) -> Any:
        """Return x / j."""

    def reciprocal(self, i: int, factor: float) -> Any:
        """Return factor / (order-0 coefficient of node i), computed once."""

    def op(self, name: str, *xs: Any) -> Any:
        """Return an operation on coefficients."""

    def times_j(self, x: Any) -> Any:
        """Return x · j."""

    def number(self, x: float) -> Any:
        """Return a float as a number of this kind."""


def coefficient(v: Verbs, i: int) -> Any:
    """Coefficient j of the varying node i from lower ones; see the module's text."""
    low = v.low
    op, a, w = low.ops[i], low.args[i], low.helper[i]
    varying = [low.varying[x] for x in a]
    if op in ("add", "sub"):
        if all(varying):
            return v.op(op, v.coef(a[0]), v.coef(a[1]))
        if varying[0]:
            return v.coef(a[0])
        return v.coef(a[1]) if op == "add" else v.op("neg", v.coef(a[1]))
    if op == "neg":
        return v.op("neg", v.coef(a[0]))
    if op == "mul":
        if not varying[0]:
            return v.op("mul", v.value(a[0]), v.coef(a[1]))
        if not varying[1]:
            return v.op("mul", v.coef(a[0]), v.value(a[1]))
        return v.dot(a[0], a[1], 0, 0, False)
    if op == "div":
        if not varying[1]:
            return v.op("div", v.coef(a[0]), v.value(a[1]))
        return v.op("mul", _minus(v, a[0], v.dot(a[1], i, 1, 0, False)), v.reciprocal(a[1], 1.0))
    if op == "sqrt":
        return v.op("mul", _minus(v, a[0], v.dot(i, i, 1, -1, False)), v.reciprocal(i, 0.5))
    if op == "exp":
        return v.over_j(v.dot(a[0], i, 1, 0, True))
    if op in ("sin", "sinh", "cosh", "tan", "tanh"):
        return v.over_j(v.dot(a[0], w, 1, 0, True))
    if op == "cos":
        return v.op("neg", v.over_j(v.dot(a[0], w, 1, 0, True)))
    if op == "log":
        inner = v.over_j(v.dot(i, a[0], 1, -1, True))
        return v.op("mul", v.op("sub", v.coef(a[0]), inner), v.reciprocal(a[0], 1.0))
    if op in ("atan", "asin", "asinh", "acosh", "atanh", "log1p"):
        inner = v.over_j(v.dot(i, w, 1, -1, True))
        return v.op("mul", v.op("sub", v.coef(a[0]), inner), v.reciprocal(w, 1.0))
    if op == "acos":
        inner = v.over_j(v.dot(i, w, 1, -1, True))
        return v.op("mul", v.op("add", v.coef(a[0]), inner), v.reciprocal(w, -1.0))
    if op == "expm1":
        return v.coef(w)
    if op == "atan2":
        turning = v.op("neg", v.dot(i, w, 1, -1, True))
        for sign, p, q in (("add", a[0], a[1]), ("sub", a[1], a[0])):
            if low.varying[p] and low.varying[q]:
                turning = v.op(sign, turning, v.dot(p, q, 1, 0, True))
            elif low.varying[p]:
                turning = v.op(sign, turning, v.op("mul", v.times_j(v.coef(p)), v.value(q)))
        return v.op("mul", v.over_j(turning), v.reciprocal(w, 1.0))
    if op == "pow":
        if varying[1]:
            return v.over_j(v.dot(w, i, 1, 0, True))
        c = v.op("add", v.value(a[1]), v.number(1.0))
        rising = v.op("mul", c, v.over_j(v.dot(a[0], i, 1, 0, True)))
        inner = v.op("sub", rising, v.dot(a[0], i, 1, 0, False))
        return v.op("mul", inner, v.reciprocal(a[0], 1.0))
    if op == "abs":
        return v.op("mul", v.op("sign", v.value(a[0])), v.coef(a[0]))
    if op in ("select", "min", "max"):
        condition = v.value(a[0] if op == "select" else w)
        x, y = (v.coef(b) if low.varying[b] else v.number(0.0) for b in a[-2:])
        return v.op("select", condition, x, y)
    raise NotImplementedError(f"no recurrence for {op}")


def _minus(v: Verbs, i: int, x: Any) -> Any:
    """Coefficient j of node i, which may be constant, minus x."""
    return v.op("sub", v.coef(i), x) if v.low.varying[i] else v.op("neg", x)


class Unrolled:
    """The recurrences carried out order by order in some arithmetic.

    Parameters
    ----------
    program, n
        Inputs are t, n states, then parameters; outputs are the n components of f.
    inputs
        Their values.
    algebra, constant
        The arithmetic, as for :meth:`.graph.Program.evaluate`.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> decay = trace(lambda t, y: [-y[0]], (), 1)
    >>> [[float(c) for c in row] for row in Unrolled(decay, 1, [0.0, 2.0]).run(3)]
    [[2.0], [-2.0], [1.0], [-0.3333333333333333]]
    """

    def __init__(
        self,
        program: Program,
        n: int,
        inputs: Sequence[Any],
        algebra: Mapping[str, Callable[..., Any]] = FLOATS,
        constant: Callable[[float], Any] = float,
    ) -> None:
        self.low = lower(program, n)
        self.algebra = algebra
        self.number = constant
        self.inputs = inputs
        self.j = 0
        self.series: list[list[Any]] = []
        self._reciprocals: dict[tuple[int, float], Any] = {}

    def value(self, i: int) -> Any:
        """Return the order-0 coefficient of node i."""
        return self.series[i][0]

    def coef(self, i: int) -> Any:
        """Coefficient j of node i."""
        return self.series[i][self.j]

    def op(self, name: str, *xs: Any) -> Any:
        """Return an operation on coefficients."""
        return self.algebra[name](*xs)

    def over_j(self, x: Any) -> Any:
        """Return x / j, as a product: an ulp is nothing here and a division is slow."""
        return x if self.j == 1 else self.op("mul", self.number(1.0 / self.j), x)

    def times_j(self, x: Any) -> Any:
        """Return x · j."""
        return x if self.j == 1 else self.op("mul", self.number(float(self.j)), x)

    def reciprocal(self, i: int, factor: float) -> Any:
        """Return factor / (order-0 coefficient of node i)."""
        key = (i, factor)
        if key not in self._reciprocals:
            self._reciprocals[key] = self.op("div", self.number(factor), self.value(i))
        return self._reciprocals[key]

    def _weighted(self, a: int, k: int) -> Any:
        x = self.series[a][k]
        return x if k == 1 else self.op("mul", self.number(float(k)), x)

    def dot(self, a: int, b: int, first: int, last: int, weighted: bool) -> Any:
        """Return the sum of [k] a_k b_(j−k) over k = first .. j + last.

        Products of coefficients that have been known for long are added up pairwise, and those
        of the newest last: the processor need not wait for them before it adds the others.
        """
        j, top = self.j, self.j + last
        A, B = self.series[a], self.series[b]
        if a == b and not weighted:  # symmetric: first + last' = 0, so half of it twice
            half = [(k, self.op("mul", A[k], A[j - k])) for k in range(first, (j + 1) // 2)]
            total = self._sum(half)
            total = None if total is None else self.op("add", total, total)
            if j % 2 == 0:
                square = self.op("mul", A[j // 2], A[j // 2])
                total = square if total is None else self.op("add", square, total)
        elif weighted:
            total = self._sum(
                [(k, self.op("mul", self._weighted(a, k), B[j - k])) for k in range(first, top + 1)]
            )
        else:
            total = self._sum([(k, self.op("mul", A[k], B[j - k])) for k in range(first, top + 1)])
        return self.number(0.0) if total is None else total

    def _sum(self, terms: list[tuple[int, Any]]) -> Any:
        """Sum of the products a_k b_(j−k), given with their k; None if there are none."""
        newest = {k: max(k, self.j - k) for k, _ in terms}
        early = [x for k, x in terms if newest[k] < self.j - 1]
        late = sorted(
            ((newest[k], k, x) for k, x in terms if newest[k] >= self.j - 1), key=lambda e: e[:2]
        )
        while len(early) > 1:
            paired = [self.op("add", *early[k : k + 2]) for k in range(0, len(early) - 1, 2)]
            early = paired + early[len(early) - len(early) % 2 :]
        total = early[0] if early else None
        for _, _, x in late:
            total = x if total is None else self.op("add", total, x)
        return total

    def _start(self) -> None:
        """Order 0: the values of all nodes."""
        zero = self.number(0.0)
        for op, a in zip(self.low.ops, self.low.args):
            if op == "const":
                self.series.append([self.number(a[0])])
            elif op == "input":
                self.series.append([self.inputs[a[0]]])
            else:
                self.series.append([self.algebra[op](*[self.series[x][0] for x in a])])
        self._zero = zero

    def run(self, order: int) -> list[list[Any]]:
        """Coefficients 0 .. order of the n states, one row an order."""
        low = self.low
        self._start()
        for j in range(1, order + 1):
            self.j = j
            for state, output in zip(low.states, low.outputs):
                known = self.series[output]
                f = known[j - 1] if j - 1 < len(known) else self._zero
                self.series[state].append(self.over_j(f))
            if j == order:
                break
            for i, op in enumerate(low.ops):
                if not low.varying[i] or i < len(low.states):
                    continue
                if op == "input":
                    self.series[i].append(self.number(1.0 if j == 1 else 0.0))
                else:
                    self.series[i].append(coefficient(self, i))
        return [[self.series[s][j] for s in low.states] for j in range(order + 1)]


def series_program(program: Program, n: int, order: int) -> Program:
    """All Taylor coefficients as one straight-line program, shape (order + 1, n)."""
    g = Graph()
    inputs = [g.input(k) for k in range(len(program.inputs))]
    algebra = {op: partial(rule, g) for op, rule in RULES.items()}
    rows = Unrolled(program, n, inputs, algebra, g.const).run(order)
    nodes = [i for row in rows for i in row]
    return Program.from_graph(g, nodes, program.inputs, (order + 1, n))


def unrolled_size(program: Program, n: int, order: int) -> int:
    """About how many nodes :func:`series_program` would give."""
    low = lower(program, n)
    linear = {"add", "sub", "neg", "abs", "select", "min", "max", "expm1", "input"}
    total = 0
    for i, op in enumerate(low.ops):
        if not low.varying[i] or op in linear:
            total += order if low.varying[i] else 1
        elif op == "mul" and not all(low.varying[x] for x in low.args[i]):
            total += order
        else:
            total += order * order * (2 if op == "pow" else 1)
    return total
