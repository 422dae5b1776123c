"""The pattern of a Jacobian from f alone, a black box: which outputs see which inputs.

NaN goes through all arithmetic, so f at a state with some NaN shows which of its components see
these inputs; so does any other change. Blocks of neighbouring unknowns are probed first, then
their halves, and theirs: blocks that no output sees together are probed at once. For stencils and
networks that takes some log₂ n evaluations of f, times a few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .pattern import Pattern, column_groups

__all__ = ["found_pattern"]

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
            sees = _halved(f, y)
        except Exception:  # f does not like NaN; whoever needs the pattern does without
            return None
    return None if sees is None else Pattern(sees)


def _halved(f: Callable[[Any], Any], y: NDArray[np.float64]) -> Any:
    """The pattern as a CSC matrix, or None."""
    from scipy.sparse import csc_matrix

    n = y.size
    base = np.array(f(y.copy()))
    if base.shape != y.shape or not np.all(np.isfinite(base)):
        return None

    def seen(inputs: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.flatnonzero(np.asarray(f(np.where(inputs, np.nan, y))) != base)

    block = np.arange(n) * min(FIRST_BLOCKS, n) // n
    rows = [seen(block == k) for k in range(block[-1] + 1)]
    columns = [np.full(len(r), k) for k, r in enumerate(rows)]
    while True:
        i, j = np.concatenate(rows), np.concatenate(columns)
        shape = n, int(block[-1]) + 1
        if i.size > DENSE * shape[0] * shape[1]:
            return None
        sees = csc_matrix((np.ones(i.size), (i, j)), shape=shape)
        if shape[1] == n:
            return sees
        first = np.searchsorted(block, block)  # where the block of each unknown begins
        length = np.bincount(block)[block]
        upper = np.arange(n) - first >= (length + 1) // 2
        rows, columns = [], []
        starts, sizes = np.searchsorted(block, np.arange(shape[1])), np.bincount(block)
        child = np.where(upper, starts[block] + (sizes[block] + 1) // 2, starts[block])
        numbers, renumbered = np.unique(child, return_inverse=True)
        for group in column_groups(sees):
            chosen, owner = np.zeros(shape[1], dtype=bool), np.full(n, -1)
            chosen[group] = True
            mine = chosen[j]
            owner[i[mine]] = j[mine]
            for side in (False, True):
                inputs = chosen[block] & (upper == side)
                if not inputs.any():
                    continue
                touched = seen(inputs)
                blocks = owner[touched]
                if np.any(blocks < 0):
                    return None  # f sees more now than before: it remembers something
                offset = (sizes[blocks] + 1) // 2 if side else 0
                rows.append(touched)
                columns.append(np.searchsorted(numbers, starts[blocks] + offset))
        block = renumbered
