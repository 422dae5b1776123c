"""Parts of a system of equations by its pattern alone: what is too much, too little, and in order.

The Dulmage–Mendelsohn decomposition (Pothen & Fan, ACM TOMS 16 (1990) 303–324) starts from a
largest matching of equations with unknowns. What alternating paths reach from an unmatched equation
is overdetermined, what they reach from an unmatched unknown is underdetermined; the rest is well
determined and falls into blocks, one strongly connected component each, that can be solved one
after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "Parts", "blocks_in_order", "parts"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Equations and as many unknowns that belong together, by number."""

    equations: tuple[int, ...]
    unknowns: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.equations)


@dataclass(frozen=True)
class Parts:
    """The coarse decomposition; equations and unknowns by number.

    Attributes
    ----------
    over_equations, over_unknowns
        More equations than unknowns.
    under_equations, under_unknowns
        More unknowns than equations.
    """

    over_equations: tuple[int, ...]
    over_unknowns: tuple[int, ...]
    under_equations: tuple[int, ...]
    under_unknowns: tuple[int, ...]

    @property
    def well(self) -> bool:
        """Whether nothing is over- or underdetermined."""
        return not self.over_equations and not self.under_unknowns


def parts(rows: Integers, columns: Integers, shape: tuple[int, int]) -> Parts:
    """Return the over- and underdetermined parts of a pattern given by its entries.

    Examples
    --------
    Two equations for x, none for z: rows (x), (x), columns x, z.

    >>> found = parts(np.array([0, 1]), np.array([0, 0]), (2, 2))
    >>> found.over_equations, found.over_unknowns, found.under_unknowns
    ((0, 1), (0,), (1,))
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    m, n = shape
    pattern = csr_matrix((np.ones(rows.size), (rows, columns)), shape=shape)
    to_column = np.asarray(maximum_bipartite_matching(pattern, perm_type="column"), dtype=int)
    to_row = np.full(n, -1, dtype=int)
    for i, j in enumerate(to_column):
        if j >= 0:
            to_row[j] = i
    by_row: list[list[int]] = [[] for _ in range(m)]
    by_column: list[list[int]] = [[] for _ in range(n)]
    for i, j in zip(rows.tolist(), columns.tolist()):
        by_row[i].append(j)
        by_column[j].append(i)
    over = _reached([i for i in range(m) if to_column[i] < 0], by_row, to_row)
    under = _reached([j for j in range(n) if to_row[j] < 0], by_column, to_column)
    return Parts(*over, *under[::-1])


def _reached(
    start: list[int], neighbours: list[list[int]], partner: NDArray[np.int64]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What alternating paths reach: numbers of the kind they start from, and of the other kind."""
    own, other, waiting = set(start), set[int](), list(start)
    while waiting:
        for x in neighbours[waiting.pop()]:
            if x not in other:
                other.add(x)
                back = int(partner[x])
                if back >= 0 and back not in own:
                    own.add(back)
                    waiting.append(back)
    return tuple(sorted(own)), tuple(sorted(other))


def blocks_in_order(rows: Integers, columns: Integers, partner: Integers) -> list[Block]:
    """Split a well determined pattern into blocks, in an order in which they can be solved.

    Parameters
    ----------
    rows, columns
        Entries of the pattern.
    partner
        The unknown matched with each equation.

    Examples
    --------
    Equation 0 is for x and z, equation 1 for z alone: z comes first.

    >>> order = blocks_in_order(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0, 1]))
    >>> [block.unknowns for block in order]
    [(1,), (0,)]
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(partner)
    owner = np.empty(n, dtype=np.int64)
    owner[partner] = np.arange(n)
    needs = csr_matrix((np.ones(rows.size), (rows, owner[columns])), shape=(n, n))
    count, label = connected_components(needs, directed=True, connection="strong")
    members: list[list[int]] = [[] for _ in range(count)]
    for i, k in enumerate(label.tolist()):
        members[k].append(i)
    before: list[set[int]] = [set() for _ in range(count)]
    for i, k in zip(label[rows].tolist(), label[owner[columns]].tolist()):
        if i != k:
            before[i].add(k)
    return [
        Block(tuple(members[k]), tuple(sorted(int(partner[i]) for i in members[k])))
        for k in _sorted(before)
    ]


def _sorted(before: Sequence[set[int]]) -> list[int]:
    """Order numbers so that each comes after those before it; small ones first where free."""
    import heapq

    after: list[list[int]] = [[] for _ in before]
    for k, needed in enumerate(before):
        for i in needed:
            after[i].append(k)
    missing = [len(needed) for needed in before]
    ready = [k for k, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        k = heapq.heappop(ready)
        order.append(k)
        for i in after[k]:
            missing[i] -= 1
            if missing[i] == 0:
                heapq.heappush(ready, i)
    return order
