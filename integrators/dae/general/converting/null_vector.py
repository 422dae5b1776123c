"""Null vectors of the system Jacobian on its graph: elimination in the order of good pivots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....tracing.calculus.derivative import replay
from ....tracing.graph import Graph, Program
from ....tracing.simplify import div, mul, neg, sub
from ..equations import Builder
from ..jacobian import SystemJacobian, balanced
from ..pattern.signature import occurring

__all__ = ["NullVector", "null_vector", "orders_in"]

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-9  # relative to the largest: an entry of a null vector


@dataclass
class NullVector:
    """A null vector: nodes of a builder's graph by number of equation or unknown."""

    nodes: dict[int, int]


def null_vector(builder: Builder, jacobian: SystemJacobian, numeric: Array) -> NullVector | None:
    """u with uᵀ J = 0 for J given numerically and as a program, supported on few rows.

    Use the transpose (rows and columns of `jacobian` exchanged) for v with J v = 0.
    """
    from scipy.linalg import qr

    A, _, _ = balanced(numeric)
    _, R, order = qr(A.T, pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int(np.sum(diagonal > NEGLIGIBLE * max(diagonal[0], 1e-300)))
    if rank == len(A):
        return None
    independent, dependent = list(order[:rank]), int(order[rank])
    weights = np.linalg.lstsq(A[independent].T, A[dependent], rcond=None)[0]
    largest = np.abs(weights).max(initial=0.0)
    rows = [int(i) for i, w in zip(independent, weights) if abs(w) > NEGLIGIBLE * largest]
    nodes = entries_on(builder, jacobian)
    columns = _simplest_columns(builder, nodes, A[rows], rows, dependent)
    zero = builder.graph.const(0.0)
    M = [[nodes.get((i, j), zero) for i in rows] for j in columns]  # transposed
    b = [nodes.get((dependent, j), zero) for j in columns]
    pivots = A[np.ix_(rows, columns)].T
    w = _eliminate(builder.graph, M, b, pivots)
    result = {dependent: builder.graph.const(1.0)}
    for i, x in zip(rows, w):
        result[i] = neg(builder.graph, x)
    return NullVector(result)


def _simplest_columns(
    builder: Builder,
    nodes: dict[tuple[int, int], int],
    A: Array,
    rows: Sequence[int],
    dependent: int,
) -> list[int]:
    """As many independent columns as there are rows, with entries of low derivatives first."""

    def height(j: int) -> int:
        entries = [nodes[i, j] for i in (*rows, dependent) if (i, j) in nodes]
        return max(orders_in(builder, entries).values(), default=-1)

    chosen: list[int] = []
    for j in sorted(range(A.shape[1]), key=height):
        trial = [*chosen, j]
        if np.linalg.matrix_rank(A[:, trial], tol=NEGLIGIBLE) == len(trial):
            chosen = trial
        if len(chosen) == len(rows):
            break
    return chosen


def entries_on(builder: Builder, jacobian: SystemJacobian) -> dict[tuple[int, int], int]:
    """Entries of J as nodes of a builder's graph."""
    g, equations = builder.graph, jacobian.equations
    own = [g.input(0), *(builder.input(j, k) for j, k in equations.symbols)]
    own += [g.input(1 + i) for i in range(builder.k)]
    copied = replay(g, jacobian.program, own)
    return {
        (int(i), int(j)): copied[o]
        for i, j, o in zip(jacobian.rows, jacobian.columns, jacobian.program.outputs)
    }


def _eliminate(g: Graph, M: list[list[int]], b: list[int], numeric: Array) -> list[int]:
    """Solve M x = b on the graph, with the pivots that suit the numeric values."""
    n = len(b)
    A = numeric.copy()
    M, b = [list(row) for row in M], list(b)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(A[k:, k])))
        M[k], M[pivot] = M[pivot], M[k]
        b[k], b[pivot] = b[pivot], b[k]
        A[[k, pivot]] = A[[pivot, k]]
        for i in range(k + 1, n):
            factor = div(g, M[i][k], M[k][k])
            if g.values[factor] == 0.0:
                continue
            for j in range(k + 1, n):
                M[i][j] = sub(g, M[i][j], mul(g, factor, M[k][j]))
            b[i] = sub(g, b[i], mul(g, factor, b[k]))
            A[i] -= A[i, k] / A[k, k] * A[k]
    x = [0] * n
    for k in range(n - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, n):
            total = sub(g, total, mul(g, M[k][j], x[j]))
        x[k] = div(g, total, M[k][k])
    return x


def orders_in(builder: Builder, nodes: Sequence[int]) -> dict[int, int]:
    """Highest derivative of each unknown in some nodes."""
    names = [""] * (1 + builder.k + len(builder.keys))
    program = Program.from_graph(builder.graph, nodes, names)
    highest: dict[int, int] = {}
    for used in occurring(program, len(names) - 1):
        for place in used:
            if place >= builder.k:
                j, order = builder.keys[place - builder.k]
                highest[j] = max(order, highest.get(j, 0))
    return highest
