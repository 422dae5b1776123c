"""Dependent and independent velocities: all solutions of G x = k, by elimination.

Book §8.8 (8.48–8.51): complete pivoting brings G into the form where r columns belong to
*dependent* components, which the other n − r determine:

    x = N y + x₀,   G N = 0,   G x₀ = k,   y a part of x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["RANK_TOLERANCE", "Partition", "partition"]

Array = NDArray[np.float64]

RANK_TOLERANCE = 1e-6
"""Relative size below which a mass-weighted singular value of G counts as zero, for systems given
by functions and for mechanisms. Closed linkages give ratios above 1e-3 away from singular
positions, and below 1e-12 for redundant constraints, as long as the gaps are as small; near a
singular position the truncation keeps accelerations bounded."""


@dataclass(frozen=True)
class Partition:
    """Which components of x are independent, and how the others follow from them.

    Attributes
    ----------
    G
        The matrix.
    rows
        The r rows that were used.
    dependent, independent
        Columns; together all of them.
    """

    G: Array
    rows: NDArray[np.int64]
    dependent: NDArray[np.int64]
    independent: NDArray[np.int64]

    @property
    def rank(self) -> int:
        """Rank r of G."""
        return len(self.rows)

    @property
    def core(self) -> Array:
        """The r×r matrix of the rows used and the dependent columns."""
        return self.G[np.ix_(self.rows, self.dependent)]

    @property
    def basis(self) -> Array:
        """N: n × (n − r), the identity in the independent rows."""
        n = self.G.shape[1]
        N = np.zeros((n, n - self.rank))
        N[self.independent, np.arange(n - self.rank)] = 1.0
        if self.rank:
            rest = self.G[np.ix_(self.rows, self.independent)]
            N[self.dependent] = -np.linalg.solve(self.core, rest)
        return N

    @property
    def sensitivity(self) -> float:
        """Largest change of a dependent component for a unit change of an independent one."""
        block = self.basis[self.dependent]
        return float(np.abs(block).max()) if block.size else 0.0

    def offset(self, k: ArrayLike) -> Array:
        """x₀ with G x₀ = k, zero in the independent components."""
        x = np.zeros(self.G.shape[1])
        if self.rank:
            x[self.dependent] = np.linalg.solve(self.core, np.asarray(k, dtype=float)[self.rows])
        return x


def partition(
    G: ArrayLike,
    *,
    rank: int | None = None,
    independent: Sequence[int] | None = None,
    tolerance: float = RANK_TOLERANCE,
) -> Partition:
    """Split the components of x in G x = k into dependent and independent ones.

    Parameters
    ----------
    G
        m×n.
    rank
        Rank, if known; otherwise a pivot below `tolerance` times the first one ends it.
    independent
        Columns that must be independent; the pivots are then sought among the others.
    tolerance
        See `rank`.

    Examples
    --------
    >>> split = partition([[1.0, 2.0, 4.0], [2.0, 4.0, 8.0]])
    >>> split.rank, split.dependent, split.basis
    (1, array([2]), array([[ 1.  ,  0.  ],
           [ 0.  ,  1.  ],
           [-0.25, -0.5 ]]))
    """
    matrix = np.atleast_2d(np.asarray(G, dtype=float))
    m, n = matrix.shape
    work = matrix.copy()
    chosen = [] if independent is None else [int(i) for i in independent]
    if any(not 0 <= i < n for i in chosen) or len(set(chosen)) != len(chosen):
        raise ValueError(f"independent must list different columns 0 to {n - 1}, got {independent}")
    if chosen:
        full = partition(matrix, tolerance=tolerance).rank if rank is None else rank
        if len(chosen) > n - full:
            raise ValueError(
                f"G has rank {full}, so only {n - full} of {n} components are independent; "
                f"{len(chosen)} were asked for"
            )
        rank = full
    columns = [j for j in range(n) if j not in chosen]
    rows_left, columns_left = list(range(m)), list(columns)
    rows: list[int] = []
    dependent: list[int] = []
    first = 0.0
    most = min(m, len(columns)) if rank is None else min(rank, m, len(columns))
    while len(rows) < most:
        block = np.abs(work[np.ix_(rows_left, columns_left)])
        place = np.unravel_index(int(np.argmax(block)), block.shape)
        pivot = float(block[place])
        first = first or pivot
        if pivot == 0.0 or ((rank is None or chosen) and pivot <= tolerance * first):
            break
        i, j = rows_left.pop(int(place[0])), columns_left.pop(int(place[1]))
        rows.append(i)
        dependent.append(j)
        for other in rows_left:
            work[other] -= work[other, j] / work[i, j] * work[i]
    if rank is not None and len(rows) < rank:
        raise ValueError(
            f"only {len(rows)} of the {rank} dependent components can be found outside of the "
            f"columns {chosen}; choose other independent ones"
        )
    return Partition(
        matrix,
        np.array(rows, dtype=np.int64),
        np.array(dependent, dtype=np.int64),
        np.array([j for j in range(n) if j not in dependent], dtype=np.int64),
    )
