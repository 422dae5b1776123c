"""Patterns of Jacobians: groups of columns, bands, and an order that makes bands narrow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import OnArrays, compiled, interpreting, kernel

__all__ = ["Bands", "Pattern", "band_pattern", "column_groups"]

Integers = NDArray[np.int64]

NARROW = 8  # diagonals that are few enough as they are
LARGE = 2000  # columns from which it pays to compile before grouping them


@dataclass(frozen=True)
class Bands:
    """How far a matrix reaches from its diagonal, in an order of rows and columns.

    `order` lists the unknowns in their new order; None keeps the old one.
    """

    widths: tuple[int, int]
    order: Integers | None = None


class Pattern:
    """Where a square sparse matrix may be different from zero, and what follows from that.

    Parameters
    ----------
    matrix
        Anything that SciPy makes a sparse matrix of; entries that are not stored are zeros.
    groups
        Groups of columns that share no row, if they are known.
    """

    def __init__(self, matrix: Any, groups: list[Integers] | None = None) -> None:
        from scipy.sparse import csc_matrix

        if groups is not None:
            self.groups = groups

        stored = csc_matrix(matrix)
        stored.sort_indices()
        self.indptr, self.indices = stored.indptr, stored.indices
        self.n = int(stored.shape[0])
        self.nnz = int(stored.nnz)
        self.columns = np.repeat(np.arange(self.n), np.diff(self.indptr))

    def holds(self, matrix: Any) -> bool:
        """Whether a CSC matrix has exactly this pattern."""
        same = matrix.indices is self.indices and matrix.indptr is self.indptr
        return same or (
            matrix.nnz == self.nnz
            and np.array_equal(matrix.indptr, self.indptr)
            and np.array_equal(matrix.indices, self.indices)
        )

    def matrix(self, data: Any) -> Any:
        """The CSC matrix with these entries."""
        from scipy.sparse import csc_matrix

        return csc_matrix((data, self.indices, self.indptr), shape=(self.n, self.n))

    @cached_property
    def natural(self) -> Bands:
        """Bands in the order of the unknowns."""
        return Bands(_widths(self.indices, self.columns))

    @cached_property
    def narrowest(self) -> Bands:
        """Bands in the order of the unknowns or by reverse Cuthill–McKee, if that is narrower."""
        if sum(self.natural.widths) <= NARROW:
            return self.natural
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        ones = self.matrix(np.ones(self.nnz))
        order = np.asarray(reverse_cuthill_mckee((ones + ones.T).tocsr(), True), dtype=np.int64)
        place = np.empty_like(order)
        place[order] = np.arange(self.n)
        widths = _widths(place[self.indices], place[self.columns])
        if sum(widths) < sum(self.natural.widths):
            return Bands(widths, order)
        return self.natural

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether an entry and its mirror image are both stored, nearly always."""
        ones = self.matrix(np.ones(self.nnz))
        return int(ones.multiply(ones.T).nnz) >= 0.9 * self.nnz

    @cached_property
    def groups(self) -> list[Integers]:
        """Columns that share no row, grouped: one J·v serves a whole group."""
        return column_groups(self.matrix(np.ones(self.nnz)))

    @cached_property
    def entries(self) -> list[tuple[Integers, Integers]]:
        """For each group the places of its entries among all, and their rows."""
        number = np.empty(self.n, dtype=np.int64)
        for k, group in enumerate(self.groups):
            number[group] = k
        gathered = _gathered(number[self.columns])
        return [(places, self.indices[places]) for places, _ in gathered]


def _widths(rows: Any, columns: Any) -> tuple[int, int]:
    below = rows.astype(np.int64) - columns
    return int(below.max(initial=0)), int(-below.min(initial=0))


def band_pattern(n: int, lower: int, upper: int) -> Pattern:
    """All entries within so many diagonals.

    Examples
    --------
    >>> len(band_pattern(100, 1, 1).groups)
    3
    """
    from scipy.sparse import diags_array

    offsets = range(-min(lower, n - 1), min(upper, n - 1) + 1)
    return Pattern(diags_array([np.ones(n - abs(k)) for k in offsets], offsets=list(offsets)))


def column_groups(matrix: Any) -> list[Integers]:
    """Group columns that share no row, greedily: one evaluation of f serves a whole group.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csc_matrix
    >>> tridiagonal = np.tri(100, k=1) - np.tri(100, k=-2)
    >>> len(column_groups(csc_matrix(tridiagonal)))
    3
    """
    by_columns, by_rows = matrix.tocsc(), matrix.tocsr()
    n = matrix.shape[1]
    colour, taken = np.full(n, -1, dtype=np.int64), np.full(n + 1, -1, dtype=np.int64)
    at_once = n > LARGE and not interpreting()
    run = compiled(greedy_colours) if at_once else _greedy
    structure = (by_columns.indptr, by_columns.indices, by_rows.indptr, by_rows.indices)
    run(*(a.astype(np.int64) for a in structure), colour, taken)
    return [group for group, _ in _gathered(colour)]


def _gathered(number: Integers) -> list[tuple[Integers, int]]:
    """For each number the places where it stands."""
    small = number.astype(np.int16) if number.max(initial=0) < 2**15 else number  # sorted faster
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(number))
    return [(places, k) for k, places in enumerate(np.split(order, ends[:-1]))]


@kernel
def greedy_colours(
    column_starts: Any, rows: Any, row_starts: Any, columns: Any, colour: Any, taken: Any
) -> int:
    """colour[j] = the first one that no column has which shares a row with column j."""
    for j in range(colour.shape[0]):
        for place in range(column_starts[j], column_starts[j + 1]):
            i = rows[place]
            for other in range(row_starts[i], row_starts[i + 1]):
                found = colour[columns[other]]
                if found >= 0:
                    taken[found] = j
        free = 0
        while taken[free] == j:
            free += 1
        colour[j] = free
    return 0


_greedy = OnArrays(greedy_colours)
