"""The expression graph: scalar operations, each distinct one stored once.

A :class:`Graph` grows while a function runs on symbols. Its nodes are numbered in the order of
their creation, so operands always come before the operations that use them. A node is a pair
``(op, args)``:

====================  ==============================================================
``("const", (c,))``    the number c
``("input", (k,))``    the k-th input
``(op, (i, j, ...))``  the operation ``op`` of :data:`OPERATIONS` on nodes i, j, ...
====================  ==============================================================

Equal nodes are found by hashing ("hash-consing"), so common subexpressions cost nothing. The
rules that simplify an operation before it becomes a node are in :mod:`.simplify`.

A :class:`Program` is the finished result: only the nodes that the outputs need, renumbered, and
immutable. Everything else (machine code, derivatives, intervals, ...) starts from it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["CONDITIONS", "FLOATS", "OPERATIONS", "UNARY", "Graph", "Program", "evaluate"]


def _where(condition: Any, a: Any, b: Any) -> Any:
    return np.where(condition, a, b)[()]


#: Elementary functions of one argument and what NumPy calls them.
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "abs": np.absolute,
    "sign": np.sign,
    "floor": np.floor,
}

#: Operations whose value is true or false.
CONDITIONS = frozenset({"lt", "le", "eq", "ne", "and", "or", "not"})

#: Every operation with its meaning on floats and float arrays.
FLOATS: dict[str, Callable[..., Any]] = {
    **UNARY,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "atan2": np.arctan2,
    "min": np.minimum,
    "max": np.maximum,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "select": _where,
}

OPERATIONS = frozenset(FLOATS)

_pack = struct.Struct("<d").pack


class Graph:
    """A growing, hash-consed expression graph.

    Parameters
    ----------
    simplify
        False keeps every operation as the function performs it (no simplification, no sharing):
        the "before" of an operation count.

    Examples
    --------
    >>> g = Graph()
    >>> x = g.input(0)
    >>> g.node("sin", x) == g.node("sin", x)
    True
    """

    __slots__ = ("_index", "args", "decisions", "ops", "simplify", "values")

    def __init__(self, simplify: bool = True) -> None:
        self.simplify = simplify
        self.ops: list[str] = []
        self.args: list[tuple[Any, ...]] = []
        self.values: list[float | None] = []  # the number, where the node is a constant
        self._index: dict[tuple[Any, ...], int] = {}
        self.decisions: Any = None  # who answers what depends on values: `tracing.decisions`

    def __len__(self) -> int:
        return len(self.ops)

    def const(self, value: float) -> int:
        """Return the node of a number (0.0 and −0.0 are different nodes)."""
        value = float(value)
        key = ("const", _pack(value))
        i = self._index.get(key)
        if i is None:
            i = self._index[key] = len(self.ops)
            self.ops.append("const")
            self.args.append((value,))
            self.values.append(value)
        return i

    def input(self, k: int) -> int:
        """Return the node of the k-th input."""
        return self.node("input", k)

    def node(self, op: str, *args: int) -> int:
        """Return the node ``op(*args)``, new or found; no simplification."""
        key = (op, *args)
        i = self._index.get(key) if self.simplify or op == "input" else None
        if i is None:
            i = self._index[key] = len(self.ops)
            self.ops.append(op)
            self.args.append(args)
            self.values.append(None)
        return i


def evaluate(
    ops: Sequence[str],
    args: Sequence[tuple[Any, ...]],
    outputs: Iterable[int],
    inputs: Sequence[Any],
    algebra: Mapping[str, Callable[..., Any]],
    constant: Callable[[float], Any] = float,
) -> list[Any]:
    """Run nodes in order over any kind of number: floats, intervals, symbols, mpmath.

    Parameters
    ----------
    ops, args
        The nodes.
    outputs
        Numbers of the nodes whose values are returned.
    inputs
        The values of the inputs.
    algebra
        What each operation does. If it has a "square", that is used for the product of a node
        with itself, which intervals must tell from a product of equal intervals.
    constant
        How a float becomes a number of this kind.
    """
    values: list[Any] = []
    push = values.append
    square = algebra.get("square")
    for op, a in zip(ops, args):
        if op == "const":
            push(constant(a[0]))
        elif op == "input":
            push(inputs[a[0]])
        elif len(a) == 2:
            if square is not None and op == "mul" and a[0] == a[1]:
                push(square(values[a[0]]))
            else:
                push(algebra[op](values[a[0]], values[a[1]]))
        elif len(a) == 1:
            push(algebra[op](values[a[0]]))
        else:
            push(algebra[op](*[values[i] for i in a]))
    return [values[i] for i in outputs]


@dataclass(frozen=True, eq=False)
class Program:
    """Straight-line code: the nodes that some outputs need, in order of evaluation.

    Parameters
    ----------
    ops, args
        The nodes.
    inputs
        A printable name for each input, such as ``t``, ``y[0]`` or ``p[2]``.
    outputs
        Numbers of the output nodes.
    shape
        The shape in which the outputs are presented (row-major).
    """

    ops: tuple[str, ...]
    args: tuple[tuple[Any, ...], ...]
    inputs: tuple[str, ...]
    outputs: tuple[int, ...]
    shape: tuple[int, ...] = field(default=())

    @classmethod
    def from_graph(
        cls,
        graph: Graph,
        outputs: Sequence[int],
        inputs: Sequence[str],
        shape: tuple[int, ...] | None = None,
    ) -> Program:
        """Keep what the outputs need (dead-code removal) and renumber it."""
        gops, gargs = graph.ops, graph.args
        needed = bytearray(len(gops))
        for o in outputs:
            needed[o] = 1
        for i in range(len(gops) - 1, -1, -1):
            if needed[i] and gops[i] != "const" and gops[i] != "input":
                for j in gargs[i]:
                    needed[j] = 1
        new = [0] * len(gops)
        ops: list[str] = []
        args: list[tuple[Any, ...]] = []
        for i, keep in enumerate(needed):
            if keep:
                new[i] = len(ops)
                op = gops[i]
                ops.append(op)
                if op == "const" or op == "input":
                    args.append(gargs[i])
                else:
                    args.append(tuple([new[j] for j in gargs[i]]))
        return cls(
            tuple(ops),
            tuple(args),
            tuple(inputs),
            tuple(new[o] for o in outputs),
            (len(outputs),) if shape is None else tuple(shape),
        )

    def __len__(self) -> int:
        return len(self.ops)

    def evaluate(
        self,
        inputs: Sequence[Any],
        algebra: Mapping[str, Callable[..., Any]] = FLOATS,
        constant: Callable[[float], Any] = float,
    ) -> list[Any]:
        """Interpret the program; see :func:`evaluate`.

        Inputs may also be equally shaped arrays: many evaluations at once.

        Examples
        --------
        >>> g = Graph()
        >>> x = g.input(0)
        >>> p = Program.from_graph(g, [g.node("mul", x, x)], ["x"])
        >>> float(p.evaluate([3.0])[0])
        9.0
        """
        if len(inputs) != len(self.inputs):
            raise ValueError(
                f"expected {len(self.inputs)} inputs ({', '.join(self.inputs)}), got {len(inputs)}"
            )
        with np.errstate(all="ignore"):
            return evaluate(self.ops, self.args, self.outputs, inputs, algebra, constant)

    def operations(self) -> dict[str, int]:
        """How many operations of each kind, and their ``total``.

        Constants and inputs are free; everything else counts one.

        Examples
        --------
        >>> g = Graph()
        >>> x = g.input(0)
        >>> p = Program.from_graph(g, [g.node("mul", x, g.node("sin", x))], ["x"])
        >>> p.operations()
        {'mul': 1, 'sin': 1, 'total': 2}
        """
        counts: dict[str, int] = {}
        for op in self.ops:
            if op != "const" and op != "input":
                counts[op] = counts.get(op, 0) + 1
        result = dict(sorted(counts.items()))
        result["total"] = sum(counts.values())
        return result

    @cached_property
    def digest(self) -> str:
        """A hash of the program's mathematics: equal programs have equal digests."""
        h = hashlib.sha256()
        parts = []
        for op, a in zip(self.ops, self.args):
            parts.append(f"{op} {a[0].hex()}" if op == "const" else f"{op} {a}")
        parts.append(f"{self.outputs} {len(self.inputs)}")
        h.update("\n".join(parts).encode())
        return h.hexdigest()

    @property
    def is_constant(self) -> bool:
        """Whether no output depends on an input."""
        return "input" not in self.ops
