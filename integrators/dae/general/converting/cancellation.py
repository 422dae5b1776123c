"""Derivatives that occur in an equation and cancel there.

A graph is no normal form: (ẋ + z)² − ẋ² − 2ẋz contains ẋ and does not depend on it. Such
derivatives are found numerically, at random points (what is left of terms that cancel jumps about
when the point is moved by rounding errors, a derivative does not), and replaced by constants.

In a sum of equations, whole terms cancel: the currents of diodes, say. These are taken out of the
graph first, for with a constant in the place of a voltage a diode may carry any current, and what
rounding leaves of the difference of two such terms is no small number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ....tracing.calculus.derivative import replay, sparse_jacobian
from ....tracing.graph import Graph, Program
from ....tracing.simplify import add, mul
from ..equations import Builder, Equations, Key
from ..jacobian import sample_points
from ..pattern.signature import occurring

__all__ = ["cancelled", "collected", "pruned", "simplified", "single", "with_nodes"]

CANCELLED = 1e-10  # relative to the gradient: what may be rounding errors of terms that cancel
ROUNDED = 1e-14  # relative to other constant coefficients: what is left of one that cancelled
NUDGE = 1e-12  # relative shifts of a point under which rounding errors change, and nothing else


def with_nodes(builder: Builder, equations: Equations, i: int, put: dict[Key, int]) -> int:
    """Copy equation i into a graph, with some derivatives replaced by nodes."""
    own = [builder.graph.input(0)]
    own += [put.get((j, k), builder.input(j, k)) if put else builder.input(j, k)
            for j, k in equations.symbols]  # fmt: skip
    own += [builder.graph.input(1 + p) for p in range(builder.k)]
    one = single(equations.program, i)
    return replay(builder.graph, one, own)[one.outputs[0]]


def single(program: Program, i: int) -> Program:
    """Return the program of one output."""
    return Program(program.ops, program.args, program.inputs, (program.outputs[i],), (1,))


def pruned(
    equations: Equations, gone: Mapping[int, set[Key]], parameters: Sequence[float] | None
) -> Equations:
    """Put constants for derivatives with respect to which equations do not change.

    `gone` has them for each equation; those that do not occur there do not matter.
    """
    builder = Builder(equations.n, equations.parameters)
    residuals = []
    for i in range(equations.m):
        keys = gone.get(i, set()).intersection(equations.symbols)
        node = builder.graph.const(_harmless(equations, i, keys, parameters) if keys else 0.0)
        residuals.append(with_nodes(builder, equations, i, dict.fromkeys(keys, node)))
    return builder.finish(residuals, equations.unknowns, equations.names)


def cancelled(one: Program, symbols: Sequence[Key], parameters: Sequence[float] | None) -> set[Key]:
    """Derivatives in an equation on which its value does not depend, from the highest down."""
    inside = set(occurring(one, len(symbols))[0])
    gradient, _, columns = sparse_jacobian(one, range(1, 1 + len(symbols)))
    flat = {symbols[c] for c in inside.difference(columns)}
    noise = np.ones(len(columns), dtype=bool)
    tried = 0
    rng = np.random.default_rng(7)
    for point in sample_points(gradient, parameters, 3):
        shifted = [
            np.array(point) * (1.0 + NUDGE * rng.uniform(-1.0, 1.0, len(point))) for _ in range(5)
        ]
        values = np.array([gradient.evaluate(list(x)) for x in shifted], dtype=float)
        size = np.abs(values).max(axis=0)
        spread = np.ptp(values, axis=0)
        # What is left of terms that cancel jumps about; a derivative hardly changes.
        largest = size.max(initial=0.0)
        constant = spread == 0.0
        rounding = constant & (size <= ROUNDED * size[constant].max(initial=0.0))
        noise &= rounding | ((spread > 0.05 * size) & (size <= CANCELLED * largest))
        tried += 1
    if tried:
        flat |= {symbols[c] for c, gone in zip(columns, noise) if gone}
    highest: dict[int, int] = {}
    for c in columns:
        j, order = symbols[c]
        if (j, order) not in flat:
            highest[j] = max(order, highest.get(j, -1))
    return {(j, order) for j, order in flat if order > highest.get(j, -1)}


def collected(g: Graph, node: int) -> int:
    """Return a sum without the terms that cancel; what does not cancel stays as it is.

    Examples
    --------
    >>> g = Graph()
    >>> x, q = g.input(0), g.node("exp", g.input(1))
    >>> collected(g, g.node("add", g.node("sub", x, q), q)) == x
    True
    """
    weights: dict[int, float] = {}
    sizes: dict[int, float] = {}
    waiting = [(node, 1.0)]
    while waiting:
        i, factor = waiting.pop()
        op, args = g.ops[i], g.args[i]
        if op in ("add", "sub"):
            waiting += [(args[0], factor), (args[1], factor if op == "add" else -factor)]
        elif op == "neg":
            waiting.append((args[0], -factor))
        elif op == "mul" and any(g.values[k] is not None for k in args):
            constant, other = args if g.values[args[0]] is not None else args[::-1]
            waiting.append((other, factor * float(g.values[constant] or 0.0)))
        else:
            weights[i] = weights.get(i, 0.0) + factor
            sizes[i] = max(sizes.get(i, 0.0), abs(factor))
    left = {i: x for i, x in weights.items() if abs(x) > ROUNDED * sizes[i]}
    if len(left) == len(weights):
        return node
    total = g.const(0.0)
    for i in sorted(left):
        total = add(g, total, mul(g, g.const(left[i]), i))
    return total


def simplified(
    builder: Builder, nodes: Mapping[int, int], parameters: Sequence[float] | None
) -> tuple[Builder, dict[int, int]]:
    """Return factors without the derivatives that cancel in them, in a graph of their own.

    Quotients such as y₁ẏ₂/ẏ₂ come out of elimination on a graph.
    """
    places = sorted(nodes)
    labels = [str(k) for k in range(max(builder.n, len(places)))]
    factors = builder.finish([nodes[i] for i in places], labels[: builder.n], labels[: len(places)])
    gone: dict[int, set[Key]] = {}
    for k in range(len(places)):
        one = single(factors.program, k)
        values = [one.evaluate(x)[0] for x in sample_points(one, parameters, 4)]
        constant = values and np.ptp(values) <= CANCELLED * np.abs(values).max()
        gone[k] = set(factors.symbols) if constant else cancelled(one, factors.symbols, parameters)
    bare = pruned(factors, gone, parameters)
    own = Builder(builder.n, builder.k)
    return own, dict(zip(places, own.load(bare)))


def _harmless(
    equations: Equations, i: int, keys: set[Key], parameters: Sequence[float] | None
) -> float:
    """A constant that keeps equation i finite in place of derivatives that cancel."""
    one = single(equations.program, i)
    places = [1 + equations.symbols.index(key) for key in keys]
    for value in (0.0, 1.0, 0.5):
        for point in sample_points(one, parameters, 1):
            changed = list(point)
            for place in places:
                changed[place] = value
            if np.isfinite(one.evaluate(changed)[0]):
                return value
    return 0.0
