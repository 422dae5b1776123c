"""Linear systems with the system Jacobian as straight-line code, block by block.

Along the fine block-triangular form only the diagonal blocks are systems to be solved. A traced
function cannot choose pivots, so each block is factorised by modified Gram–Schmidt, A = QR, which
is backward stable without any (Björck, *Numerical Methods for Least Squares Problems*, §2.4),
provided that right-hand sides go through the same projections. Rows of very different size are
brought to the same order first, by powers of two found at the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...tracing.symbols.symbol import Symbol
from .pattern.blocks import Block
from .prolongation import MIXED

__all__ = ["BlockSolver", "row_scales"]

UNEVEN = 1e4  # rows of a block are scaled where their sizes differ by more than this


def row_scales(rows: NDArray[np.int64], entries: NDArray[np.float64], n: int) -> list[float]:
    """Return powers of two that bring rows to size one; all 1 where sizes are alike."""
    largest = np.zeros(n)
    np.maximum.at(largest, rows, np.abs(entries))
    if not np.all(largest > 0) or largest.max() <= UNEVEN * largest.min():
        return [1.0] * n
    return [float(2.0 ** -np.round(np.log2(x))) for x in largest]


def _zero(x: Any) -> bool:
    if isinstance(x, Symbol):
        return x.graph.values[x.index] == 0.0
    return bool(x == 0.0)


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    total: Any = 0.0
    for x, y in zip(a, b):
        if not (_zero(x) or _zero(y)):
            total = total + x * y
    return total


class _Factorised:
    """One block, factorised: solves for its own unknowns."""

    def __init__(self, A: list[list[Any]]) -> None:
        self.size = len(A)
        self.A = A
        if self.size <= 2:
            if self.size == 2:
                self.determinant = A[0][0] * A[1][1] - A[0][1] * A[1][0]
            return
        columns = [[row[k] for row in A] for k in range(self.size)]
        self.Q: list[list[Any]] = []
        self.R: list[list[Any]] = []
        for k in range(self.size):
            length = MIXED["sqrt"](_dot(columns[k], columns[k]))
            q = [x if _zero(x) else x / length for x in columns[k]]
            row: list[Any] = [0.0] * self.size
            row[k] = length
            for later in range(k + 1, self.size):
                part = _dot(q, columns[later])
                if _zero(part):
                    continue
                row[later] = part
                columns[later] = _minus(columns[later], part, q)
            self.Q.append(q)
            self.R.append(row)

    def solve(self, b: list[Any]) -> list[Any]:
        """Return x with A x = b."""
        A = self.A
        if self.size == 1:
            return [b[0] / A[0][0]]
        if self.size == 2:
            return [
                (A[1][1] * b[0] - A[0][1] * b[1]) / self.determinant,
                (A[0][0] * b[1] - A[1][0] * b[0]) / self.determinant,
            ]
        projected = []
        for q in self.Q:
            part = _dot(q, b)
            projected.append(part)
            b = _minus(b, part, q)
        x: list[Any] = [0.0] * self.size
        for k in range(self.size - 1, -1, -1):
            known = _dot(self.R[k][k + 1 :], x[k + 1 :])
            rest = projected[k] if _zero(known) else projected[k] - known
            x[k] = rest / self.R[k][k]
        return x


def _minus(a: Sequence[Any], factor: Any, b: Sequence[Any]) -> list[Any]:
    """a − factor·b."""
    return [x if _zero(factor) or _zero(y) else x - factor * y for x, y in zip(a, b)]


class BlockSolver:
    """J x = b, block by block, on numbers or symbols.

    Parameters
    ----------
    entries
        {(equation, unknown): entry} of J.
    blocks
        The fine block-triangular form, in an order of solution.
    scales
        Factors of the rows.

    Examples
    --------
    >>> J = {(0, 0): 2.0, (0, 1): 1.0, (1, 1): 4.0}
    >>> BlockSolver(J, [Block((1,), (1,)), Block((0,), (0,))], [1.0, 1.0]).solve([5.0, 8.0])
    [1.5, 2.0]
    """

    def __init__(
        self, entries: dict[tuple[int, int], Any], blocks: Sequence[Block], scales: Sequence[float]
    ) -> None:
        self.blocks, self.scales = blocks, scales
        self.coupling: list[list[list[tuple[int, Any]]]] = []
        self.factors = []
        by_row: dict[int, list[tuple[int, Any]]] = {}
        for (i, j), x in entries.items():
            by_row.setdefault(i, []).append((j, x if scales[i] == 1.0 else scales[i] * x))
        for block in blocks:
            own = {j: k for k, j in enumerate(block.unknowns)}
            A: list[list[Any]] = []
            others = []
            for i in block.equations:
                row: list[Any] = [0.0] * len(block)
                for j, x in by_row.get(i, ()):
                    if j in own:
                        row[own[j]] = x
                A.append(row)
                others.append([(j, x) for j, x in by_row.get(i, ()) if j not in own])
            self.coupling.append(others)
            self.factors.append(_Factorised(A))

    def solve(self, b: Sequence[Any]) -> list[Any]:
        """Return x by unknown for b by equation."""
        x: list[Any] = [0.0] * len(b)
        for block, others, factor in zip(self.blocks, self.coupling, self.factors):
            right = []
            for i, known in zip(block.equations, others):
                value = b[i] if self.scales[i] == 1.0 else self.scales[i] * b[i]
                for j, entry in known:
                    if not _zero(x[j]):
                        value = value - entry * x[j]
                right.append(value)
            for j, found in zip(block.unknowns, factor.solve(right)):
                x[j] = found
        return x
