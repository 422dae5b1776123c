"""LU of narrow banded matrices with row exchanges, as in LAPACK's gbtf2.

LAPACK calls a routine for each column, which takes longer than the arithmetic where bands are
narrow. Storage is LAPACK's, columns one after the other, entry (i, j) at
a[j, lower + upper + i − j]; of the pivots the inverses are kept.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

from ...kernels import kernel

__all__ = ["band_factor", "band_solve"]


@kernel
def band_factor(a, pivots, lower, upper):
    """Overwrite a by its factors; False if a pivot vanishes or is not finite."""
    n = a.shape[0]
    middle = lower + upper
    last = 0
    for j in range(n):
        below = min(lower, n - 1 - j)
        best = 0
        largest = abs(a[j, middle])
        for i in range(1, below + 1):
            size = abs(a[j, middle + i])
            if size > largest:
                best = i
                largest = size
        pivots[j] = best
        if not (largest > 0.0 and largest < 1e300):
            return False
        last = max(last, min(j + upper + best, n - 1))
        if best != 0:
            for k in range(j, last + 1):
                place = middle + j - k
                swapped = a[k, place]
                a[k, place] = a[k, place + best]
                a[k, place + best] = swapped
        inverse = 1.0 / a[j, middle]
        a[j, middle] = inverse  # for the solutions, which would wait for divisions
        for i in range(1, below + 1):
            a[j, middle + i] *= inverse
        for k in range(j + 1, last + 1):
            place = middle + j - k
            factor = a[k, place]
            if factor != 0.0:
                for i in range(1, below + 1):
                    a[k, place + i] -= factor * a[j, middle + i]
    return True


@kernel
def band_solve(a, pivots, lower, upper, x):
    """Overwrite x with the solution of the system factorised by :func:`band_factor`."""
    n = a.shape[0]
    middle = lower + upper
    for j in range(n):
        value = x[j + pivots[j]]
        if pivots[j] != 0:
            x[j + pivots[j]] = x[j]
            x[j] = value
        for i in range(1, min(lower, n - 1 - j) + 1):
            x[j + i] -= a[j, middle + i] * value
    for j in range(n - 1, -1, -1):
        value = x[j] * a[j, middle]
        x[j] = value
        for i in range(1, min(middle, j) + 1):
            x[j - i] -= a[j, middle - i] * value
    return 0
