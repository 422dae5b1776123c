r"""Exact derivatives on the graph.

Forward mode: with v̇ the derivative of a node along some direction, each operation has a rule
such as :math:`(ab)\dot{} = \dot a b + a \dot b`. :func:`jacobian` carries all directions at once,
but only the nonzero ones: each node has a dictionary {column: derivative}, so a sparse Jacobian
costs what its nonzeros cost, and its pattern comes out as a by-product.

Reverse mode: with v̄ = ∂(output)/∂v, adjoints flow from outputs to inputs; :func:`vjp` uses it.

At kinks (``abs``, ``min``, ``max``, ``where``) the derivative is that of the branch taken;
``sign`` and ``floor`` have derivative 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .graph import CONDITIONS, Graph, Program
from .simplify import RULES, add, div, mul, neg, power, sub

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["hvp", "jacobian", "jvp", "replay", "sparsity", "vjp"]

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
    "tanh": lambda g, x, u: sub(g, _one(g), _square(g, u)),
    "asinh": lambda g, x, u: _over_root(g, add(g, _one(g), _square(g, x))),
    "acosh": lambda g, x, u: _over_root(g, mul(g, sub(g, x, _one(g)), add(g, x, _one(g)))),
    "atanh": lambda g, x, u: div(g, _one(g), mul(g, sub(g, _one(g), x), add(g, _one(g), x))),
    "exp": lambda g, x, u: u,
    "log": lambda g, x, u: div(g, _one(g), x),
    "log1p": lambda g, x, u: div(g, _one(g), add(g, _one(g), x)),
    "expm1": lambda g, x, u: RULES["exp"](g, x),
    "sqrt": lambda g, x, u: div(g, g.const(0.5), u),
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
        return [base, None if g.values[x[1]] is not None else mul(g, u, RULES["log"](g, x[0]))]
    if op == "atan2":
        r2 = add(g, _square(g, x[0]), _square(g, x[1]))
        return [div(g, x[1], r2), neg(g, div(g, x[0], r2))]
    return [SLOPES[op](g, x[0], u)]


def _branch(g: Graph, op: str, x: Sequence[int]) -> tuple[int, int, int]:
    """(condition, first, second) of an operation that takes one of two operands."""
    if op == "select":
        return x[0], x[1], x[2]
    return RULES["le"](g, *((x[0], x[1]) if op == "min" else (x[1], x[0]))), x[0], x[1]


def _tangent(g: Graph, op: str, x: Sequence[int], u: int, dx: Sequence[int | None]) -> int | None:
    """Return the derivative of u = op(x) along a direction, from those of its operands."""
    if op in ("select", "min", "max"):
        a, b = dx[-2], dx[-1]
        if a is None and b is None:
            return None
        zero = g.const(0.0)
        c, _, _ = _branch(g, op, x)
        return RULES["select"](g, c, zero if a is None else a, zero if b is None else b)
    if op == "div":  # (ẋ₀ − u ẋ₁)/x₁: one division
        top = dx[0]
        if dx[1] is not None:
            moved = mul(g, u, dx[1])
            top = neg(g, moved) if top is None else sub(g, top, moved)
        return None if top is None else div(g, top, x[1])
    total: int | None = None
    for slope, d in zip(_partials(g, op, x, u), dx):
        if d is not None and slope is not None:
            term = mul(g, slope, d)
            total = term if total is None else add(g, total, term)
    return None if total is None or g.values[total] == 0.0 else total


def _forward(
    g: Graph, program: Program, new: Sequence[int], seeds: Sequence[dict[int, int]]
) -> list[dict[int, int]]:
    """For each node the nonzero derivatives {direction: node}; seeds are those of the inputs."""
    derivatives: list[dict[int, int]] = []
    nothing: dict[int, int] = {}
    for i, (op, a) in enumerate(zip(program.ops, program.args)):
        if op == "input":
            derivatives.append(seeds[a[0]])
            continue
        if op in FLAT:
            derivatives.append(nothing)
            continue
        operands = [derivatives[j] for j in a]
        columns = dict.fromkeys(c for d in operands for c in d)
        x = [new[j] for j in a]
        result = {}
        for c in columns:
            t = _tangent(g, op, x, new[i], [d.get(c) for d in operands])
            if t is not None:
                result[c] = t
        derivatives.append(result)
    return derivatives


def _inputs(g: Graph, program: Program) -> list[int]:
    return [g.input(k) for k in range(len(program.inputs))]


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
    inputs = _inputs(g, program)
    new = replay(g, program, inputs)
    seeds: list[dict[int, int]] = [{} for _ in inputs]
    for c, k in enumerate(columns):
        seeds[k] = {c: _one(g)}
    derivatives = _forward(g, program, new, seeds)
    zero = g.const(0.0)
    nodes = [derivatives[o].get(c, zero) for o in program.outputs for c in range(len(columns))]
    return Program.from_graph(g, nodes, program.inputs, (len(program.outputs), len(columns)))


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
    inputs = _inputs(g, program)
    new = replay(g, program, inputs)
    seeds: list[dict[int, int]] = [{} for _ in inputs]
    for c, k in enumerate(columns):
        seeds[k] = {0: g.input(len(inputs) + c)}
    derivatives = _forward(g, program, new, seeds)
    zero = g.const(0.0)
    names = (*program.inputs, *(f"v[{c}]" for c in range(len(columns))))
    return Program.from_graph(g, [derivatives[o].get(0, zero) for o in program.outputs], names)


def _reverse(
    g: Graph, program: Program, new: Sequence[int], weights: Sequence[int]
) -> dict[int, int]:
    """Adjoints {input: node} of Σ weights·outputs."""
    adjoint: list[int | None] = [None] * len(program)

    def accumulate(j: int, value: int) -> None:
        if g.values[value] != 0.0:
            old = adjoint[j]
            adjoint[j] = value if old is None else add(g, old, value)

    for o, w in zip(program.outputs, weights):
        accumulate(o, w)
    result: dict[int, int] = {}
    zero = g.const(0.0)
    for i in range(len(program) - 1, -1, -1):
        bar, op, a = adjoint[i], program.ops[i], program.args[i]
        if bar is None:
            continue
        if op == "input":
            result[a[0]] = bar
        elif op in FLAT:
            continue
        elif op in ("select", "min", "max"):
            c, _, _ = _branch(g, op, [new[j] for j in a])
            accumulate(a[-2], RULES["select"](g, c, bar, zero))
            accumulate(a[-1], RULES["select"](g, c, zero, bar))
        else:
            for j, slope in zip(a, _partials(g, op, [new[j] for j in a], new[i])):
                if slope is not None:
                    accumulate(j, mul(g, slope, bar))
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
    inputs = _inputs(g, program)
    new = replay(g, program, inputs)
    m = len(program.outputs)
    bars = _reverse(g, program, new, [g.input(len(inputs) + c) for c in range(m)])
    zero = g.const(0.0)
    names = (*program.inputs, *(f"w[{c}]" for c in range(m)))
    return Program.from_graph(g, [bars.get(k, zero) for k in columns], names)


def hvp(program: Program, columns: Sequence[int]) -> Program:
    """(Σ_i w_i ∇²f_i)·v: inputs of the program, then the weights w, then the direction v."""
    return jvp(vjp(program, columns), columns)
