"""The system Jacobian J_ij = ∂f_i/∂y_j^(d_j − c_i): its entries as functions, and its rank.

Structure is a promise: what the pattern of derivatives says holds if J is regular. Its rank is
decided block by block along the fine block-triangular form, with rows and columns scaled to the
same size first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...tracing.calculus.derivative import sparse_jacobian
from ...tracing.graph import Program
from .equations import Equations, Key
from .pattern.blocks import Block
from .pattern.signature import Offsets, Signature, occurring

__all__ = ["RANK_TOLERANCE", "Singularity", "SystemJacobian", "sample_points"]

Array = NDArray[np.float64]

RANK_TOLERANCE = 1e-10
"""A singular value below this part of the largest, after scaling, counts as zero."""

ROUNDING = 1e-14  # an entry that is such a part of its row is a rounding error
LARGEST_DENSE = 500  # rows of a block whose singular values are computed
SAMPLES = 3  # points where a rank is tried, unless it is full at the first
TRIES = 40  # to find points where all entries are finite


@dataclass(frozen=True)
class Singularity:
    """A block of J that has lost rank.

    Attributes
    ----------
    equations, unknowns
        Numbers of those that take part in the dependence.
    smallest
        Smallest singular value relative to the largest.
    """

    equations: tuple[int, ...]
    unknowns: tuple[int, ...]
    smallest: float


class SystemJacobian:
    """Entries of J as a program of t, the derivatives that occur, and the parameters."""

    def __init__(self, equations: Equations, sigma: Signature, offsets: Offsets) -> None:
        self.equations = equations
        place = {key: 1 + i for i, key in enumerate(equations.symbols)}
        mask = offsets.leading(sigma)
        wanted = {
            (int(i), int(j)): int(order)
            for i, j, order in zip(sigma.rows[mask], sigma.columns[mask], sigma.orders[mask])
        }
        keys: list[Key] = sorted({(j, order) for (_, j), order in wanted.items()})
        entries, rows, columns = sparse_jacobian(equations.program, [place[key] for key in keys])
        chosen = [
            e
            for e, (i, c) in enumerate(zip(rows, columns))
            if wanted.get((i, keys[c][0])) == keys[c][1]
        ]
        outputs = tuple(entries.outputs[e] for e in chosen)
        self.program = Program(entries.ops, entries.args, entries.inputs, outputs, (len(outputs),))
        self.rows = np.array([rows[e] for e in chosen], dtype=np.int64)
        self.columns = np.array([keys[columns[e]][0] for e in chosen], dtype=np.int64)
        self.n = equations.n

    def nonlinear(self, offsets: Offsets) -> tuple[int, ...]:
        """Unknowns on whose leading derivative J depends: these enter nonlinearly."""
        found: set[int] = set()
        for used in occurring(self.program, len(self.equations.symbols)):
            for i in used:
                j, order = self.equations.symbols[i]
                if order == offsets.d[j]:
                    found.add(j)
        return tuple(sorted(found))

    def dense(self, entries: Any) -> Array:
        """Return J as a matrix."""
        J = np.zeros((self.n, self.n))
        J[self.rows, self.columns] = entries
        return J

    def singular(self, entries: Any, blocks: Sequence[Block]) -> Singularity | None:
        """Return the first block that has lost rank, or None if J is regular."""
        entries = np.asarray(entries, dtype=float)
        if not np.isfinite(entries).all():
            bad = int(np.flatnonzero(~np.isfinite(entries))[0])
            return Singularity((int(self.rows[bad]),), (int(self.columns[bad]),), np.nan)
        single = np.zeros(self.n)  # blocks of one equation: most of a large system
        own = np.empty(self.n, dtype=np.int64)
        for block in blocks:
            if len(block) == 1:
                own[block.equations[0]] = block.unknowns[0]
            else:
                own[list(block.equations)] = -1
        on = own[self.rows] == self.columns
        single[self.rows[on]] = entries[on]
        largest = np.zeros(self.n)
        np.maximum.at(largest, self.rows, np.abs(entries))
        dense = None
        for block in blocks:
            if len(block) == 1:
                i = block.equations[0]
                if abs(single[i]) <= ROUNDING * largest[i]:
                    ratio = abs(single[i]) / largest[i] if largest[i] > 0 else 0.0
                    return Singularity(block.equations, block.unknowns, float(ratio))
                continue
            if len(block) > LARGEST_DENSE:
                found = self._sparse_block(entries, block)
            else:
                if dense is None:
                    dense = self._by_row(entries)
                found = _dense_block(self._block(dense, block), block)
            if found is not None:
                return found
        return None

    def _by_row(self, entries: Array) -> list[list[tuple[int, float]]]:
        table: list[list[tuple[int, float]]] = [[] for _ in range(self.n)]
        for i, j, x in zip(self.rows.tolist(), self.columns.tolist(), entries.tolist()):
            table[i].append((j, x))
        return table

    @staticmethod
    def _block(table: list[list[tuple[int, float]]], block: Block) -> Array:
        place = {j: k for k, j in enumerate(block.unknowns)}
        B = np.zeros((len(block), len(block)))
        for row, i in enumerate(block.equations):
            for j, x in table[i]:
                if j in place:
                    B[row, place[j]] = x
        return B

    def _sparse_block(self, entries: Array, block: Block) -> Singularity | None:
        from scipy.sparse import csc_matrix
        from scipy.sparse.linalg import splu

        rows, columns = np.full(self.n, -1), np.full(self.n, -1)
        rows[list(block.equations)] = np.arange(len(block))
        columns[list(block.unknowns)] = np.arange(len(block))
        mask = (rows[self.rows] >= 0) & (columns[self.columns] >= 0)
        size = len(block)
        B = csc_matrix(
            (entries[mask], (rows[self.rows[mask]], columns[self.columns[mask]])), (size, size)
        )
        largest = abs(B).max(axis=1).toarray().ravel()
        if np.any(largest == 0.0):
            bad = int(np.flatnonzero(largest == 0.0)[0])
            return Singularity((block.equations[bad],), block.unknowns, 0.0)
        B = csc_matrix(B.multiply(1.0 / largest[:, None]))
        try:
            pivots = np.abs(splu(B).U.diagonal())
        except RuntimeError:  # exactly singular
            return Singularity(block.equations, block.unknowns, 0.0)
        smallest = float(pivots.min() / pivots.max())
        if smallest > RANK_TOLERANCE:
            return None
        return Singularity(block.equations, block.unknowns, smallest)


def balanced(B: Array) -> tuple[Array, Array, Array]:
    """Scale rows and columns so that their largest entries are about one."""
    rows, columns = np.ones(len(B)), np.ones(B.shape[1])
    A = B.copy()
    for _ in range(3):
        r = np.abs(A).max(axis=1, initial=0.0)
        r[r == 0.0] = 1.0
        A /= r[:, None]
        rows /= r
        c = np.abs(A).max(axis=0, initial=0.0)
        c[c == 0.0] = 1.0
        A /= c
        columns /= c
    return A, rows, columns


def _dense_block(B: Array, block: Block) -> Singularity | None:
    A, _, _ = balanced(B)
    U, values, Vt = np.linalg.svd(A)
    smallest = float(values[-1] / values[0]) if values[0] > 0 else 0.0
    if smallest > RANK_TOLERANCE:
        return None
    left, right = np.abs(U[:, -1]), np.abs(Vt[-1])
    return Singularity(
        tuple(i for i, x in zip(block.equations, left) if x > 1e-6),
        tuple(j for j, x in zip(block.unknowns, right) if x > 1e-6),
        smallest,
    )


def sample_points(
    program: Program,
    parameters: Sequence[float] | None,
    count: int,
    seed: int = 20260,
    sizes: Sequence[float] = (1.0,),
) -> Iterator[list[float]]:
    """Yield inputs, drawn at random, at which all outputs of a program are finite.

    They are of the sizes given, in turns.
    """
    rng = np.random.default_rng(seed)
    given = [] if parameters is None else [float(x) for x in parameters]
    free = len(program.inputs) - len(given)
    found = 0
    for k in range(TRIES):
        low = (-1.0, 0.3, 1.1)[k % 3]  # of both signs, positive, above one
        size = sizes[k % len(sizes)]
        point = [*(size * rng.uniform(low, low + 1.7, free)).tolist(), *given]
        if all(np.isfinite(x) for x in program.evaluate(point)):
            found += 1
            yield point
            if found == count:
                return
