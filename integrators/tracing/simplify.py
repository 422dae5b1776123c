"""Rules applied while the graph is being built.

Every rule keeps the floating-point value that the Python function would have had, with two
documented exceptions:

- ``0·x → 0``, ``0/x → 0`` and ``x − x → 0`` also where Python gives NaN (x infinite or NaN; for
  the quotient x zero or NaN), and the sign of a zero may change;
- integer and half-integer powers become products and square roots (``x³ → x·x·x``,
  ``x^1.5 → x·√x``), which differs from ``pow`` by a few units in the last place; half-integer
  powers of −∞ are NaN and ``(−0.0)^−0.5`` is −∞, where ``pow`` gives 0 or ∞.

Nothing is reassociated, and a division stays a division. The rules: constants are folded with
NumPy's own float64 functions; neutral elements vanish; signs move outwards (``(−a)·b → −(a·b)``,
``a + (−b) → a − b``), which is exact; operands of commutative operations are sorted so that
``a + b`` and ``b + a`` are one node.

Each function takes the graph and node numbers, and returns a node number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .graph import CONDITIONS, FLOATS, UNARY, Graph

__all__ = ["RULES", "add", "build", "div", "mul", "neg", "power", "sub"]

#: The largest exponent that becomes repeated multiplication.
LARGEST_PRODUCT_POWER = 16


def _fold(g: Graph, op: str, *args: int) -> int | None:
    """Return the constant node of an operation on constants, or None."""
    numbers = [g.values[i] for i in args]
    if None in numbers:
        return None
    with np.errstate(all="ignore"):
        return g.const(float(FLOATS[op](*[np.float64(x) for x in numbers])))


def add(g: Graph, i: int, j: int) -> int:
    """Return the node i + j."""
    if not g.simplify:
        return g.node("add", i, j)
    a, b = g.values[i], g.values[j]
    if a is not None:
        if b is not None:
            return g.const(a + b)
        if a == 0.0:
            return j
    elif b is not None:
        if b == 0.0:
            return i
        if b < 0.0:
            return g.node("sub", i, g.const(-b))
    elif g.ops[j] == "neg":
        return sub(g, i, g.args[j][0])
    if g.ops[i] == "neg":
        return sub(g, j, g.args[i][0])
    return g.node("add", i, j) if i <= j else g.node("add", j, i)


def sub(g: Graph, i: int, j: int) -> int:
    """Return the node i − j."""
    if not g.simplify:
        return g.node("sub", i, j)
    if i == j:
        return g.const(0.0)
    a, b = g.values[i], g.values[j]
    if b is not None:
        if a is not None:
            return g.const(a - b)
        if b == 0.0:
            return i
        if b < 0.0:
            return add(g, i, g.const(-b))
    elif a == 0.0:
        return neg(g, j)
    if g.ops[j] == "neg":
        return add(g, i, g.args[j][0])
    if g.ops[i] == "neg":
        return neg(g, add(g, g.args[i][0], j))
    return g.node("sub", i, j)


def neg(g: Graph, i: int) -> int:
    """Return the node −i."""
    if not g.simplify:
        return g.node("neg", i)
    a = g.values[i]
    if a is not None:
        return g.const(-a)
    op = g.ops[i]
    if op == "neg":
        return int(g.args[i][0])
    if op == "sub":
        return g.node("sub", g.args[i][1], g.args[i][0])
    return g.node("neg", i)


def mul(g: Graph, i: int, j: int) -> int:
    """Return the node i · j."""
    if not g.simplify:
        return g.node("mul", i, j)
    a, b = g.values[i], g.values[j]
    if a is None and b is not None:
        i, j, a, b = j, i, b, None
    if a is not None:
        if b is not None:
            return g.const(a * b)
        if a == 0.0:
            return g.const(0.0)
        if a == 1.0:
            return j
        if a == -1.0:
            return neg(g, j)
        if g.ops[j] == "neg":
            return mul(g, g.const(-a), g.args[j][0])
    elif g.ops[i] == "neg":
        return neg(g, mul(g, g.args[i][0], j))
    elif g.ops[j] == "neg":
        return neg(g, mul(g, i, g.args[j][0]))
    return g.node("mul", i, j) if i <= j else g.node("mul", j, i)


def div(g: Graph, i: int, j: int) -> int:
    """Return the node i / j; x/x is left alone, for x may be 0."""
    if not g.simplify:
        return g.node("div", i, j)
    if (folded := _fold(g, "div", i, j)) is not None:
        return folded
    a, b = g.values[i], g.values[j]
    if a == 0.0:
        return g.const(0.0)
    if b == 1.0:
        return i
    if b == -1.0:
        return neg(g, i)
    if g.ops[i] == "neg":
        return neg(g, div(g, g.args[i][0], j))
    if g.ops[j] == "neg":
        return neg(g, div(g, i, g.args[j][0]))
    return g.node("div", i, j)


def _product_power(g: Graph, i: int, n: int) -> int:
    """Return the node iⁿ, n ≥ 1, by squaring and multiplying."""
    result: int | None = None
    while True:
        if n & 1:
            result = i if result is None else mul(g, result, i)
        n >>= 1
        if n == 0:
            assert result is not None
            return result
        i = mul(g, i, i)


def power(g: Graph, i: int, j: int) -> int:
    """Return the node i ** j."""
    if not g.simplify:
        return g.node("pow", i, j)
    if (folded := _fold(g, "pow", i, j)) is not None:
        return folded
    n = g.values[j]
    if n is None or abs(n) > LARGEST_PRODUCT_POWER or n * 2.0 != np.floor(n * 2.0):
        return g.node("pow", i, j)
    if n == 0.0:
        return g.const(1.0)
    whole = int(abs(n))
    parts = [_product_power(g, i, whole)] if whole else []
    if whole != abs(n):
        parts.append(g.node("sqrt", i))
    result = parts[0] if len(parts) == 1 else mul(g, *parts)
    return result if n > 0.0 else div(g, g.const(1.0), result)


def _unary(op: str) -> Callable[[Graph, int], int]:
    def rule(g: Graph, i: int) -> int:
        if g.simplify and g.values[i] is not None:
            folded = _fold(g, op, i)
            assert folded is not None
            return folded
        if g.simplify and op in _ODD and g.ops[i] == "neg":
            return neg(g, rule(g, g.args[i][0]))
        if g.simplify and op in _EVEN and g.ops[i] == "neg":
            return rule(g, g.args[i][0])
        return g.node(op, i)

    return rule


_ODD = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "sign"})
_EVEN = frozenset({"cos", "cosh", "abs"})


def _extremum(op: str) -> Callable[[Graph, int, int], int]:
    def rule(g: Graph, i: int, j: int) -> int:
        if g.simplify:
            if i == j:
                return i
            if (folded := _fold(g, op, i, j)) is not None:
                return folded
            if i > j:
                i, j = j, i
        return g.node(op, i, j)

    return rule


def _binary(op: str) -> Callable[[Graph, int, int], int]:
    def rule(g: Graph, i: int, j: int) -> int:
        folded = _fold(g, op, i, j) if g.simplify else None
        return g.node(op, i, j) if folded is None else folded

    return rule


def _truth(g: Graph, i: int) -> int:
    """Return a node as a condition: any number but 0 is true."""
    if g.values[i] is not None:
        return g.const(float(bool(g.values[i])))
    return i if g.ops[i] in CONDITIONS else g.node("ne", i, g.const(0.0))


def _logical(op: str) -> Callable[[Graph, int, int], int]:
    neutral = 1.0 if op == "and" else 0.0

    def rule(g: Graph, i: int, j: int) -> int:
        if g.simplify:
            i, j = _truth(g, i), _truth(g, j)
            if i == j:
                return i
            for p, q in ((i, j), (j, i)):
                if g.values[p] is not None:
                    return q if g.values[p] == neutral else g.const(1.0 - neutral)
                if g.ops[p] == "not" and g.args[p][0] == q:
                    return g.const(1.0 - neutral)
            if i > j:
                i, j = j, i
        return g.node(op, i, j)

    return rule


def _not(g: Graph, i: int) -> int:
    if g.simplify:
        if g.values[i] is not None:
            return g.const(float(not g.values[i]))
        if g.ops[i] == "not":
            return _truth(g, g.args[i][0])
    return g.node("not", i)


def _select(g: Graph, c: int, i: int, j: int) -> int:
    if g.simplify:
        if i == j:
            return i
        if g.values[c] is not None:
            return i if g.values[c] else j
        if g.ops[c] == "not":
            return g.node("select", g.args[c][0], j, i)
    return g.node("select", c, i, j)


#: What builds each operation. A condition that folds becomes the constant 0.0 or 1.0.
RULES: dict[str, Callable[..., int]] = {
    **{op: _unary(op) for op in UNARY},
    "neg": neg,
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "pow": power,
    "atan2": _binary("atan2"),
    "min": _extremum("min"),
    "max": _extremum("max"),
    **{op: _binary(op) for op in ("lt", "le", "eq", "ne")},
    "and": _logical("and"),
    "or": _logical("or"),
    "not": _not,
    "select": _select,
}


def build(g: Graph, op: str, *args: int) -> int:
    """Add ``op(*args)`` to the graph, simplified.

    Examples
    --------
    >>> g = Graph()
    >>> x = g.input(0)
    >>> build(g, "add", x, g.const(0.0)) == x
    True
    >>> g.ops[build(g, "pow", x, g.const(2.0))]
    'mul'
    """
    return RULES[op](g, *args)


assert set(RULES) == set(FLOATS)
assert set(FLOATS) >= CONDITIONS
