"""Which outputs of a program depend on which inputs, without differentiating it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..graph import CONDITIONS, Program

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["dependence", "has_kinks"]

# Constant wherever they have a derivative.
_STEPS = CONDITIONS | {"sign", "floor"}
# Where these change branches, a function jumps or has a kink.
_BRANCHES = {"sign", "floor", "abs", "min", "max", "select"}


def has_kinks(program: Program) -> bool:
    """Whether a function may jump or have a kink somewhere: it contains a branch.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> has_kinks(trace(lambda t, y: [y[1], -abs(y[0])], (), 2))
    True
    >>> has_kinks(trace(lambda t, y: [y[1], -y[0] ** 3], (), 2))
    False
    """
    return not _BRANCHES.isdisjoint(program.ops)


def dependence(program: Program, first: int, count: int) -> scipy.sparse.csc_matrix:
    """Pattern of ∂(outputs)/∂(inputs first … first + count − 1), True where it may not vanish.

    Sets of inputs are bits of integers, handed from node to node: a discretised line of thousands
    of states takes milliseconds, where its Jacobian as a graph would have millions of zeros.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> program = trace(lambda t, y: [y[1], -y[0] + t, y[2] ** 2], (), 3)
    >>> dependence(program, 1, 3).toarray().astype(int)
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 1]])
    """
    import scipy.sparse

    sets: list[int] = []
    for op, args in zip(program.ops, program.args):
        found = 0
        if op == "input":
            place = args[0] - first
            found = 1 << place if 0 <= place < count else 0
        elif op != "const" and op not in _STEPS:
            for a in args:
                found |= sets[a]
        sets.append(found)
    columns = []
    for o in program.outputs:
        packed = np.frombuffer(sets[o].to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
        columns.append(np.flatnonzero(np.unpackbits(packed, count=count, bitorder="little")))
    ends = np.cumsum([0, *(len(c) for c in columns)])
    indices = np.concatenate(columns) if columns else np.zeros(0, dtype=np.int64)
    pattern = scipy.sparse.csr_matrix(
        (np.ones(len(indices), dtype=bool), indices, ends), shape=(len(columns), count)
    )
    return pattern.tocsc()
