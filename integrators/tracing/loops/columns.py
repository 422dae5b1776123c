"""The expression graph by columns: nodes are made and looked at thousands at a time.

A node is a row: the code of its operation, up to three operands (earlier nodes), and its value if
it is a constant. Each call of :meth:`Columns.block` adds a *block* of rows that do not depend on
each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import too_large
from ..graph import OPERATIONS, Program

__all__ = ["CODE", "CONST", "INPUT", "NAMES", "Columns"]

Integers = NDArray[np.int64]

NAMES = ("const", "input", *sorted(OPERATIONS))
CODE = {name: k for k, name in enumerate(NAMES)}
CONST, INPUT = CODE["const"], CODE["input"]

#: A trace stops when it has made so many nodes; they take 40 bytes each.
LARGEST_TRACE = 20_000_000

#: It stops as well after so many blocks: a function that takes its elements one by one.
MOST_BLOCKS = 5_000


class _Unknown:
    """Stands for :attr:`.Graph.values`: no number is known while arrays are traced."""

    def __getitem__(self, index: Any) -> None:
        return None


class Columns:
    """A growing graph, by columns.

    Examples
    --------
    >>> g = Columns(3)
    >>> g.block("mul", np.arange(3), np.full(3, 2))
    array([3, 4, 5])
    """

    decisions = None
    values = _Unknown()

    def __init__(self, inputs: int) -> None:
        self.size = 0
        self.starts: list[int] = []  # first row of each block
        self._codes: list[NDArray[np.int16]] = []
        self._operands: list[Integers] = []
        self._numbers: list[NDArray[np.float64]] = []
        self._known: dict[Any, Integers] = {}
        self._append(INPUT, np.arange(inputs)[:, None])

    def _append(self, code: Any, operands: Integers, numbers: Any = 0.0) -> Integers:
        count = len(operands)
        if self.size + count > LARGEST_TRACE or len(self.starts) > MOST_BLOCKS:
            raise too_large(self.size + count)
        padded = np.full((count, 3), -1)
        padded[:, : operands.shape[1]] = operands
        self._codes.append(np.full(count, code, dtype=np.int16))
        self._operands.append(padded)
        self._numbers.append(np.broadcast_to(np.asarray(numbers, dtype=float), (count,)))
        self.starts.append(self.size)
        self.size += count
        return np.arange(self.size - count, self.size)

    def block(self, op: str, *operands: Integers) -> Integers:
        """Return the nodes op(a, b, …) for arrays of operands of one shape."""
        key = (op, *(a.tobytes() for a in operands))
        found = self._known.get(key)
        if found is None:
            rows = np.stack([a.ravel() for a in operands], axis=1)
            found = self._known[key] = self._append(CODE[op], rows)
        return found.reshape(operands[0].shape)

    def constants(self, values: Any) -> Integers:
        """Return the nodes of numbers, equal ones once (0.0 and −0.0 are different)."""
        array = np.asarray(values, dtype=float, order="C")
        key = ("const", array.tobytes())
        found = self._known.get(key)
        if found is None:
            bits, place = np.unique(array.reshape(-1).view(np.int64), return_inverse=True)
            nodes = self._append(CONST, np.full((bits.size, 1), -1), bits.view(float))
            found = self._known[key] = nodes[place]
        return found.reshape(array.shape)

    def columns(self) -> tuple[NDArray[np.int16], Integers, NDArray[np.float64]]:
        """Return codes, operands and numbers of all nodes."""
        return (
            np.concatenate(self._codes),
            np.concatenate(self._operands),
            np.concatenate(self._numbers),
        )

    @classmethod
    def of_program(cls, program: Program) -> tuple[Columns, Integers]:
        """Return a straight-line program by columns, and its outputs; blocks are its levels."""
        level, levels = [0] * len(program), list[list[int]]()
        for i, (op, args) in enumerate(zip(program.ops, program.args)):
            if op not in ("const", "input"):
                level[i] = 1 + max(level[a] for a in args)
                if level[i] > len(levels):
                    levels.append([])
                levels[level[i] - 1].append(i)
        g = cls(len(program.inputs))
        new = np.full(len(program), -1)
        for i, (op, args) in enumerate(zip(program.ops, program.args)):
            if op == "input":
                new[i] = args[0]
        known = [i for i, op in enumerate(program.ops) if op == "const"]
        new[known] = g.constants([program.args[i][0] for i in known])
        for nodes in levels:
            operands = np.full((len(nodes), 3), -1)
            for row, i in enumerate(nodes):
                operands[row, : len(program.args[i])] = program.args[i]
            operands = np.where(operands < 0, -1, new[operands])
            start = g.size
            g._append(0, operands)
            g._codes[-1] = np.array([CODE[program.ops[i]] for i in nodes], dtype=np.int16)
            new[nodes] = np.arange(start, g.size)
        return g, new[list(program.outputs)]


def equal(one: tuple[Columns, Integers], other: tuple[Columns, Integers]) -> bool:
    """Whether two traces did the same."""
    if one[0].size != other[0].size or not np.array_equal(one[1], other[1]):
        return False
    columns: Sequence[tuple[Any, Any]] = list(zip(one[0].columns(), other[0].columns()))
    return all(np.array_equal(a, b, equal_nan=a.dtype == float) for a, b in columns)
