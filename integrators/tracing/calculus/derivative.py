r"""Exact derivatives on the graph.

Forward mode: with v̇ the derivative of a node along some direction, each operation has a rule
such as :math:`(ab)\dot{} = \dot a b + a \dot b`. :func:`jacobian` carries all directions at once,
but only the nonzero ones: each node has a dictionary {column: derivative}, so a sparse Jacobian
costs what its nonzeros cost, and its pattern comes out as a by-product.

Reverse mode: with v̄ = ∂(output)/∂v, adjoints flow from outputs to inputs; :func:`vjp` uses it.

At kinks (``abs``, ``min``, ``max``, ``where``) the derivative is that of the branch taken;
``sign`` and ``floor`` have derivative 0. The side of a ``where`` that is not taken may be singular:
forward mode selects after multiplying, and reverse mode keeps for each node the condition under
which the outputs use it.

Slopes are written so that they have their limits where the product rule would give 0·∞:

- x√x and its like, in the graph also as ``x**1.5``, by u' = e·u/x with one factor x left out of u
  (:func:`_product`);
- the norm √(a² + b²), which like ``abs`` has derivative 0 at 0 (:func:`_root_slope`);
- x^p with respect to p, x^p·log x, where x^p = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph import CONDITIONS, Graph, Program
from ..simplify import RULES, add, div, mul, neg, power, sub

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["hvp", "jacobian", "jvp", "replay", "sparse_jacobian", "sparsity", "vjp"]

FLAT = CONDITIONS | {"sign", "floor", "const", "input"}


def replay(graph: Graph, program: Program, inputs: Sequence[int]) -> list[int]:
    """Copy a program into a graph; returns the new number of each of its nodes."""
    new: list[int] = []
    for op, a in zip(program.ops, program.args):
        if op == "const":
            new.append(graph.const(a[0]))
        elif op == "input":
            new.append(inputs[a[0]])
        else:
            new.append(RULES[op](graph, *[new[j] for j in a]))
    return new


def _one(g: Graph) -> int:
    return g.const(1.0)


def _over_root(g: Graph, inside: int) -> int:
    return div(g, _one(g), RULES["sqrt"](g, inside))


def _square(g: Graph, i: int) -> int:
    return mul(g, i, i)


#: Square root of the smallest positive double: what has smaller squares counts as zero, softly.
SMALLEST_ROOT = 2.0**-537

#: From here on 1/cosh² is below the smallest double.
FLAT_TANH = 400.0


def _root_slope(g: Graph, x: int, u: int) -> int:
    """1/(2√x). It stays finite where x is a sum of squares that vanishes, whose slope is 0."""
    waiting, seen = [x], set[int]()
    while waiting:
        i = waiting.pop()
        if i in seen:
            continue
        seen.add(i)
        if g.ops[i] == "add":
            waiting.extend(g.args[i])
        elif g.ops[i] != "mul" or g.args[i][0] != g.args[i][1]:
            return div(g, g.const(0.5), u)
    return div(g, g.const(0.5), RULES["max"](g, u, g.const(SMALLEST_ROOT)))


def _tanh_slope(g: Graph, x: int, u: int) -> int:
    """1/cosh²: 1 − tanh² would cancel for large arguments."""
    inside = RULES["min"](g, RULES["abs"](g, x), g.const(FLAT_TANH))
    return _square(g, div(g, _one(g), RULES["cosh"](g, inside)))


def _angle_slopes(g: Graph, y: int, x: int) -> list[int | None]:
    """∂atan2(y, x): x/(x² + y²) and −y/(x² + y²), scaled where the squares leave the doubles."""
    largest = RULES["max"](g, RULES["abs"](g, y), RULES["abs"](g, x))
    huge, tiny = (
        RULES["lt"](g, g.const(2.0**500), largest),
        RULES["lt"](g, largest, g.const(2.0**-500)),
    )
    select = RULES["select"]
    scale = select(g, huge, g.const(2.0**-600), select(g, tiny, g.const(2.0**600), _one(g)))
    y, x = mul(g, y, scale), mul(g, x, scale)
    r2 = add(g, _square(g, y), _square(g, x))
    return [mul(g, div(g, x, r2), scale), neg(g, mul(g, div(g, y, r2), scale))]


#: Derivative of u = op(x) given the graph and the nodes of x and u.
SLOPES: dict[str, Callable[[Graph, int, int], int]] = {
    "neg": lambda g, x, u: g.const(-1.0),
    "sin": lambda g, x, u: RULES["cos"](g, x),
    "cos": lambda g, x, u: neg(g, RULES["sin"](g, x)),
    "tan": lambda g, x, u: add(g, _one(g), _square(g, u)),
    "asin": lambda g, x, u: _over_root(g, sub(g, _one(g), _square(g, x))),
    "acos": lambda g, x, u: neg(g, _over_root(g, sub(g, _one(g), _square(g, x)))),
    "atan": lambda g, x, u: div(g, _one(g), add(g, _one(g), _square(g, x))),
    "sinh": lambda g, x, u: RULES["cosh"](g, x),
    "cosh": lambda g, x, u: RULES["sinh"](g, x),
    "tanh": _tanh_slope,
    "asinh": lambda g, x, u: _over_root(g, add(g, _one(g), _square(g, x))),
    "acosh": lambda g, x, u: _over_root(g, mul(g, sub(g, x, _one(g)), add(g, x, _one(g)))),
    "atanh": lambda g, x, u: div(g, _one(g), mul(g, sub(g, _one(g), x), add(g, _one(g), x))),
    "exp": lambda g, x, u: u,
    "log": lambda g, x, u: div(g, _one(g), x),
    "log1p": lambda g, x, u: div(g, _one(g), add(g, _one(g), x)),
    "expm1": lambda g, x, u: RULES["exp"](g, x),
    "sqrt": _root_slope,
    "abs": lambda g, x, u: RULES["sign"](g, x),
}


def _partials(g: Graph, op: str, x: Sequence[int], u: int) -> list[int | None]:
    """∂u/∂x_k for each operand of u = op(x); None where it is zero."""
    if op == "add":
        return [_one(g), _one(g)]
    if op == "sub":
        return [_one(g), g.const(-1.0)]
    if op == "mul":
        return [x[1], x[0]]
    if op == "div":
        return [div(g, _one(g), x[1]), neg(g, div(g, u, x[1]))]
    if op == "pow":
        base = mul(g, x[1], power(g, x[0], sub(g, x[1], _one(g))))
        return [base, None if g.values[x[1]] is not None else _exponent_slope(g, x[0], u)]
    if op == "atan2":
        return _angle_slopes(g, x[0], x[1])
    return [SLOPES[op](g, x[0], u)]


def _exponent_slope(g: Graph, x: int, u: int) -> int:
    """∂(x^p)/∂p = x^p log x, which vanishes with u = x^p."""
    zero = g.const(0.0)
    return RULES["select"](g, RULES["eq"](g, u, zero), zero, mul(g, u, RULES["log"](g, x)))


#: Slopes (operand, ∂node/∂operand), where an operand need not be an argument.
Slopes = list[tuple[int, int]]


class _Tape:
    """A program replayed into a graph, with the slopes of its nodes."""

    def __init__(self, g: Graph, program: Program) -> None:
        self.g, self.program = g, program
        self.inputs = [g.input(k) for k in range(len(program.inputs))]
        self.new = replay(g, program, self.inputs)
        self.monomials = _monomials(program)

    def slopes(self, i: int) -> Slopes:
        """Return the slopes of a node that is neither flat nor a choice of one of two operands."""
        op, a = self.program.ops[i], self.program.args[i]
        if op == "mul" and (found := self._product(*a)) is not None:
            return found
        partials = _partials(self.g, op, [self.new[j] for j in a], self.new[i])
        return [(j, slope) for j, slope in zip(a, partials) if slope is not None]

    def _product(self, *factors: int) -> Slopes | None:
        """Slopes of a product A·B with B = c·x^e, e > 0 broken, and a factor x in A.

        A·B' = (A/x)·(x·B') = e·(A/x)·B has a limit at x = 0, where B' may have none. If A, too, is
        a power of x, then so is the product, and its slope is one such term.
        """
        for A, B in (factors, factors[::-1]):
            x, e = self.monomials[B]
            if x < 0 or e <= 0.0 or e == np.floor(e):
                continue
            rest = self._without(A, x)
            if rest is None:
                continue
            term = mul(self.g, rest, self.new[B])
            other, more = self.monomials[A]
            if other == x:
                return [(x, mul(self.g, self.g.const(e + more), term))]
            return [(A, self.new[B]), (x, mul(self.g, self.g.const(e), term))]
        return None

    def _without(self, i: int, x: int, depth: int = 12) -> int | None:
        """Return node i over node x, without a division; None if no factor x is found."""
        g, new, op, a = self.g, self.new, self.program.ops[i], self.program.args[i]
        if i == x:
            return _one(g)
        if depth == 0 or op not in ("mul", "div", "neg", "abs", "pow"):
            return None
        rest = self._without(a[0], x, depth - 1)
        if rest is None:
            if op == "mul" and a[0] != a[1]:
                rest = self._without(a[1], x, depth - 1)
                return None if rest is None else mul(g, new[a[0]], rest)
            return None
        if op == "neg":
            return neg(g, rest)
        if op == "abs":
            return mul(g, RULES["abs"](g, rest), RULES["sign"](g, new[x]))
        if op == "pow":
            exponent = g.values[new[a[1]]]
            if exponent is None or exponent < 1.0:
                return None
            return mul(g, rest, power(g, new[a[0]], g.const(exponent - 1.0)))
        return RULES[op](g, rest, new[a[1]])


def _monomials(program: Program) -> list[tuple[int, float]]:
    """(x, e) for each node that is c·|x|^e on either side of x = 0; x = −1 for constants.

    A node of another kind is itself its x.
    """
    found: list[tuple[int, float]] = []
    for i, (op, a) in enumerate(zip(program.ops, program.args)):
        result = (i, 1.0)
        if op == "const":
            result = (-1, 0.0)
        elif op in ("neg", "abs", "sqrt", "sign"):
            x, e = found[a[0]]
            result = (x, {"sqrt": 0.5, "sign": 0.0}.get(op, 1.0) * e)
        elif op == "pow" and program.ops[a[1]] == "const":
            result = (found[a[0]][0], found[a[0]][1] * program.args[a[1]][0])
        elif op == "mul":
            (x, e), (other, more) = found[a[0]], found[a[1]]
            if x == other or -1 in (x, other):
                result = (max(x, other), e + more)
        elif op == "div" and found[a[1]][0] < 0:
            result = found[a[0]]
        found.append(result)
    return found


def _branch(g: Graph, op: str, x: Sequence[int]) -> int:
    """Return the condition under which ``select``, ``min`` or ``max`` takes the first operand."""
    if op == "select":
        return x[0]
    return RULES["le"](g, *(x if op == "min" else x[::-1]))


def _forward(tape: _Tape, seeds: Sequence[dict[int, int]]) -> list[dict[int, int]]:
    """For each node the nonzero derivatives {direction: node}; seeds are those of the inputs."""
    g, new, program = tape.g, tape.new, tape.program
    derivatives: list[dict[int, int]] = []
    zero = g.const(0.0)
    for i, (op, a) in enumerate(zip(program.ops, program.args)):
        if op == "input":
            derivatives.append(seeds[a[0]])
            continue
        result: dict[int, int] = {}
        derivatives.append(result)
        if op in FLAT or not any(derivatives[j] for j in a):
            continue
        if op in ("select", "min", "max"):
            c = _branch(g, op, [new[j] for j in a])
            p, q = derivatives[a[-2]], derivatives[a[-1]]
            for d in dict.fromkeys((*p, *q)):
                result[d] = RULES["select"](g, c, p.get(d, zero), q.get(d, zero))
        elif op == "div":  # (ẋ₀ − u ẋ₁)/x₁: one division
            p, q = derivatives[a[0]], derivatives[a[1]]
            for d in dict.fromkeys((*p, *q)):
                moved = mul(g, new[i], q[d]) if d in q else zero
                result[d] = div(g, sub(g, p.get(d, zero), moved), new[a[1]])
        else:
            for j, slope in tape.slopes(i):
                for d, dot in derivatives[j].items():
                    term = mul(g, slope, dot)
                    result[d] = add(g, result[d], term) if d in result else term
            for d in [d for d, dot in result.items() if g.values[dot] == 0.0]:
                del result[d]
    return derivatives


def jacobian(program: Program, columns: Sequence[int]) -> Program:
    """∂(outputs)/∂(inputs listed in columns), dense and row-major.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> J = jacobian(trace(lambda x: [x[0] * x[1], 3 * x[1]], 2), [0, 1])
    >>> [float(v) for v in J.evaluate([5.0, 7.0])]
    [7.0, 5.0, 0.0, 3.0]
    """
    g = Graph()
    tape = _Tape(g, program)
    seeds: list[dict[int, int]] = [{} for _ in program.inputs]
    for c, k in enumerate(columns):
        seeds[k] = {c: _one(g)}
    derivatives = _forward(tape, seeds)
    zero = g.const(0.0)
    nodes = [derivatives[o].get(c, zero) for o in program.outputs for c in range(len(columns))]
    return Program.from_graph(g, nodes, program.inputs, (len(program.outputs), len(columns)))


def sparse_jacobian(
    program: Program, columns: Sequence[int]
) -> tuple[Program, list[int], list[int]]:
    """∂(outputs)/∂(inputs listed in columns): the entries that may not vanish, and where they are.

    Returns
    -------
    program, rows, columns
        A program whose outputs are the entries, row by row, and the place of each.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> J, rows, columns = sparse_jacobian(trace(lambda x: [x[0] * x[1], 3 * x[1]], 2), [0, 1])
    >>> rows, columns, [float(v) for v in J.evaluate([5.0, 7.0])]
    ([0, 0, 1], [0, 1, 1], [7.0, 5.0, 3.0])
    """
    g = Graph()
    tape = _Tape(g, program)
    seeds: list[dict[int, int]] = [{} for _ in program.inputs]
    for c, k in enumerate(columns):
        seeds[k] = {c: _one(g)}
    derivatives = _forward(tape, seeds)
    entries = [
        (row, c, derivatives[o][c])
        for row, o in enumerate(program.outputs)
        for c in sorted(derivatives[o])
    ]
    nodes = [node for _, _, node in entries]
    made = Program.from_graph(g, nodes, program.inputs)
    return made, [row for row, _, _ in entries], [c for _, c, _ in entries]


def sparsity(program: Program) -> scipy.sparse.csr_array:
    """Return the pattern of a matrix-valued program: False where the entry is the constant 0."""
    import scipy.sparse

    dense = np.array(
        [program.ops[o] != "const" or program.args[o][0] != 0.0 for o in program.outputs],
        dtype=bool,
    )
    return scipy.sparse.csr_array(dense.reshape(program.shape))


def jvp(program: Program, columns: Sequence[int]) -> Program:
    """J·v, with the direction v as further inputs after the program's own."""
    g = Graph()
    tape = _Tape(g, program)
    seeds: list[dict[int, int]] = [{} for _ in program.inputs]
    for c, k in enumerate(columns):
        seeds[k] = {0: g.input(len(program.inputs) + c)}
    derivatives = _forward(tape, seeds)
    zero = g.const(0.0)
    names = (*program.inputs, *(f"v[{c}]" for c in range(len(columns))))
    return Program.from_graph(g, [derivatives[o].get(0, zero) for o in program.outputs], names)


def _reverse(tape: _Tape, weights: Sequence[int]) -> dict[int, int]:
    """Adjoints {input: node} of Σ weights·outputs."""
    g, new, program = tape.g, tape.new, tape.program
    zero, always = g.const(0.0), _one(g)
    adjoint: list[int | None] = [None] * len(program)
    used = [zero] * len(program)  # the condition under which the outputs use a node

    def accumulate(j: int, value: int, condition: int) -> None:
        if g.values[value] != 0.0:
            old = adjoint[j]
            adjoint[j] = value if old is None else add(g, old, value)
            used[j] = RULES["or"](g, used[j], condition)

    for o, w in zip(program.outputs, weights):
        accumulate(o, w, always)
    result: dict[int, int] = {}
    for i in range(len(program) - 1, -1, -1):
        bar, op, a = adjoint[i], program.ops[i], program.args[i]
        if bar is None:
            continue
        if op == "input":
            result[a[0]] = bar
        elif op in FLAT:
            continue
        elif op in ("select", "min", "max"):
            c = _branch(g, op, [new[j] for j in a])
            both, opposite = RULES["and"], RULES["not"](g, c)
            accumulate(a[-2], RULES["select"](g, c, bar, zero), both(g, used[i], c))
            accumulate(a[-1], RULES["select"](g, c, zero, bar), both(g, used[i], opposite))
        else:
            for j, slope in tape.slopes(i):
                value = mul(g, slope, bar)
                if g.values[slope] is None:  # where bar is 0 because unused, slope may be NaN
                    value = RULES["select"](g, used[i], value, zero)
                accumulate(j, value, used[i])
    return result


def vjp(program: Program, columns: Sequence[int]) -> Program:
    """wᵀ·J, with the weights w as further inputs after the program's own.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> g = vjp(trace(lambda x: [x[0] * x[1], 3 * x[1]], 2), [0, 1])
    >>> [float(v) for v in g.evaluate([5.0, 7.0, 1.0, 10.0])]
    [7.0, 35.0]
    """
    g = Graph()
    m = len(program.outputs)
    bars = _reverse(_Tape(g, program), [g.input(len(program.inputs) + c) for c in range(m)])
    zero = g.const(0.0)
    names = (*program.inputs, *(f"w[{c}]" for c in range(m)))
    return Program.from_graph(g, [bars.get(k, zero) for k in columns], names)


def hvp(program: Program, columns: Sequence[int]) -> Program:
    """(Σ_i w_i ∇²f_i)·v: inputs of the program, then the weights w, then the direction v."""
    return jvp(vjp(program, columns), columns)
