"""The pattern of a Jacobian from f alone, a black box: which outputs see which inputs.

NaN goes through all arithmetic, so f at a state with some NaN shows which of its components see
these inputs; so does any other change. Stencils on regular grids have their entries on a few
diagonals, which single columns show; some ten evaluations of f confirm that for all the others.
Else blocks of neighbouring unknowns are probed, then their halves, and theirs: blocks that no
output sees together at once. For networks that takes some log₂ n evaluations, times a few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .pattern import Pattern, column_groups

__all__ = ["found_pattern"]

Seen = Callable[[Any], NDArray[np.int64]]

MANY = 64  # unknowns from which on a stencil is looked for
MOST_DIAGONALS = 24
FEW_MORE = 2.0  # groups of a stencil over the least number possible, up to which they serve
FIRST_BLOCKS = 32
DENSE = 0.5  # part of all pairs (output, block) from which on the search is given up


def found_pattern(f: Callable[[Any], Any], y: NDArray[np.float64]) -> Pattern | None:
    """Pattern of ∂f/∂y for f(y), or None if it is dense or cannot be found.

    A value that decides by itself which components are looked at (a branch, an index) is not
    followed elsewhere: whoever uses the pattern compares some J·v with differences of f.

    Examples
    --------
    >>> import numpy as np
    >>> found_pattern(lambda y: np.diff(y, prepend=0.0) * y, np.zeros(1000)).natural.widths
    (1, 0)
    """
    with np.errstate(all="ignore"):
        try:
            base = np.array(f(y.copy()))
            if base.shape != y.shape or not np.all(np.isfinite(base)):
                return None

            def seen(inputs: Any) -> NDArray[np.int64]:
                probe = y.copy()
                probe[inputs] = np.nan
                return np.flatnonzero(np.asarray(f(probe)) != base)

            found = _on_diagonals(seen, y.size) if y.size >= MANY else None
            return found if found is not None else _halved(seen, y.size)
        except Exception:  # f does not like NaN; whoever needs the pattern does without
            return None


def _on_diagonals(seen: Seen, n: int) -> Pattern | None:
    """The pattern of a stencil: entries on a few diagonals, which some columns show.

    With a modulus m that tells the diagonals apart, all columns ≡ k mod m are probed at once, and
    each output that sees one of them says which.
    """
    from scipy.sparse import csc_matrix

    samples = {0, 1, n // 4, n // 3, n // 2 - 1, n // 2, (2 * n) // 3 + 1, n - 2, n - 1}
    shown = [seen([j]) - j for j in sorted(samples)]
    if sum(map(len, shown)) > MOST_DIAGONALS * len(samples):
        return None
    offsets = np.unique(np.concatenate(shown))
    modulus = _modulus(offsets)
    if modulus is None:
        return None
    offset_of = np.full(modulus, n)  # which no diagonal has
    offset_of[offsets % modulus] = offsets
    rows, columns = [], []
    for k in range(min(modulus, n)):
        touched = seen(slice(k, None, modulus))
        column = touched - offset_of[(touched - k) % modulus]
        if np.any((column < 0) | (column >= n)):
            return None
        rows.append(touched)
        columns.append(column)
    i, j = np.concatenate(rows), np.concatenate(columns)
    groups = [np.arange(k, n, modulus) for k in range(min(modulus, n))]
    few = modulus <= FEW_MORE * np.bincount(i).max(initial=1)
    return Pattern(csc_matrix((np.ones(i.size), (i, j)), shape=(n, n)), groups if few else None)


def _modulus(offsets: NDArray[np.int64]) -> int | None:
    """The smallest modulus that leaves all offsets different."""
    if not 0 < offsets.size <= MOST_DIAGONALS:
        return None
    for modulus in range(offsets.size, 4 * MOST_DIAGONALS):
        if np.unique(offsets % modulus).size == offsets.size:
            return modulus
    return None


def _halved(seen: Seen, n: int) -> Pattern | None:
    """The pattern by blocks of neighbours, which are halved until they are single columns."""
    from scipy.sparse import csc_matrix

    count = min(FIRST_BLOCKS, n)
    starts = np.arange(count) * n // count
    sizes = np.diff(starts, append=n)
    rows = [seen(slice(a, a + size)) for a, size in zip(starts, sizes)]
    columns = [np.full(len(r), k) for k, r in enumerate(rows)]
    while True:
        i, j = np.concatenate(rows), np.concatenate(columns)
        if i.size > DENSE * n * len(starts):
            return None
        sees = csc_matrix((np.ones(i.size), (i, j)), shape=(n, len(starts)))
        if len(starts) == n:
            return Pattern(sees)
        lengths, is_divided = (sizes + 1) // 2, sizes > 1
        first = np.arange(len(starts)) + np.cumsum(is_divided) - is_divided  # number of lower half
        block = np.repeat(np.arange(len(starts)), sizes)
        is_upper = np.arange(n) - starts[block] >= lengths[block]
        rows, columns = [], []
        for group in column_groups(sees):
            chosen, owner = np.zeros(len(starts), dtype=bool), np.full(n, -1)
            chosen[group] = True
            mine = chosen[j]
            owner[i[mine]] = j[mine]
            for upper in (False, True):
                inputs = chosen[block] & (is_upper == upper)
                if not inputs.any():
                    continue
                touched = seen(inputs)
                if np.any(owner[touched] < 0):
                    return None  # f sees more now than before: it remembers something
                rows.append(touched)
                columns.append(first[owner[touched]] + upper)
        pairs = np.stack([starts, starts + lengths], axis=1).ravel()
        starts = pairs[np.stack([is_divided | True, is_divided], axis=1).ravel()]
        sizes = np.diff(starts, append=n)
