"""Large programs on NumPy: all operations of a kind whose operands are known, at a time.

The equations of a circuit or a discretised line are the same few formulas thousands of times. As
straight-line machine code they would take minutes to compile; sorted into levels (a node's level is
one above the highest of its operands'), each level is a handful of array operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graph import FLOATS, Program

__all__ = ["Levels"]


class Levels:
    """A program evaluated level by level.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> program = trace(lambda x: x[1:] * x[:-1] - np.sin(x[1:]), 4)
    >>> Levels(program)(np.array([1.0, 2.0, 3.0, 4.0])).round(6)
    array([ 1.090703,  5.85888 , 12.756802])
    """

    def __init__(self, program: Program) -> None:
        self.outputs = np.array(program.outputs, dtype=np.int64)
        self.size = len(program)
        level = [0] * self.size
        groups: dict[tuple[int, str], list[int]] = {}
        places: list[tuple[int, int]] = []
        self.constants = np.zeros(self.size)
        for i, (op, args) in enumerate(zip(program.ops, program.args)):
            if op == "const":
                self.constants[i] = args[0]
            elif op == "input":
                places.append((i, args[0]))
            else:
                level[i] = 1 + max(level[a] for a in args)
                groups.setdefault((level[i], op), []).append(i)
        self.input_nodes = np.array([i for i, _ in places], dtype=np.int64)
        self.input_places = np.array([k for _, k in places], dtype=np.int64)
        self.groups: list[tuple[Any, NDArray[np.int64], list[NDArray[np.int64]]]] = []
        for _, op in sorted(groups):
            nodes = groups[_, op]
            operands = np.array([program.args[i] for i in nodes], dtype=np.int64).T
            self.groups.append((FLOATS[op], np.array(nodes, dtype=np.int64), list(operands)))

    def __call__(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the outputs for a vector of all inputs."""
        values = self.constants.copy()
        values[self.input_nodes] = inputs[self.input_places]
        with np.errstate(all="ignore"):
            for function, nodes, operands in self.groups:
                values[nodes] = function(*[values[a] for a in operands])
        return values[self.outputs]
