"""Incomplete LU without fill-in, ILU(0), of a sparse matrix by rows (:cite:`meijerink1977`)."""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

from ...kernels import kernel

__all__ = ["incomplete_factor", "incomplete_solve"]


@kernel
def incomplete_factor(starts, columns, diagonal, entries, place):
    """Overwrite the entries of a matrix by those of L (below) and U; False if a pivot vanishes.

    Columns are sorted in each row, and the diagonal is stored, at `diagonal`. `place` has −1 for
    each column.
    """
    n = diagonal.shape[0]
    for i in range(n):
        for k in range(starts[i], starts[i + 1]):
            place[columns[k]] = k
        for k in range(starts[i], diagonal[i]):
            row = columns[k]
            factor = entries[k] / entries[diagonal[row]]
            entries[k] = factor
            for j in range(diagonal[row] + 1, starts[row + 1]):
                where = place[columns[j]]
                if where >= 0:
                    entries[where] -= factor * entries[j]
        for k in range(starts[i], starts[i + 1]):
            place[columns[k]] = -1
        pivot = abs(entries[diagonal[i]])
        if not (pivot > 0.0 and pivot < 1e300):
            return False
    return True


@kernel
def incomplete_solve(starts, columns, diagonal, entries, x):
    """Overwrite x with U⁻¹ L⁻¹ x."""
    n = diagonal.shape[0]
    for i in range(n):
        total = x[i]
        for k in range(starts[i], diagonal[i]):
            total -= entries[k] * x[columns[k]]
        x[i] = total
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(diagonal[i] + 1, starts[i + 1]):
            total -= entries[k] * x[columns[k]]
        x[i] = total / entries[diagonal[i]]
    return 0
