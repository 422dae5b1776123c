"""Dense LU decomposition with partial pivoting, as kernels for real and complex matrices.

For the small systems of implicit steps inside the compiled loop. Larger and sparse systems go to
LAPACK and SuperLU through a callback, see :mod:`integrators.methods.runge_kutta.implicit.algebra`.
"""

from __future__ import annotations

from ...kernels import kernel
from ...kernels.elementary import quotient


@kernel
def lu_factor(a, pivots):
    """Overwrite a with its LU factors; False if a pivot vanishes or is not finite."""
    n = a.shape[0]
    for k in range(n):
        best = k
        largest = abs(a[k, k])
        for i in range(k + 1, n):
            size = abs(a[i, k])
            if size > largest:
                best = i
                largest = size
        pivots[k] = best
        if not (largest > 0.0 and largest < 1e300):
            return False
        if best != k:
            for j in range(n):
                swapped = a[k, j]
                a[k, j] = a[best, j]
                a[best, j] = swapped
        inverse = quotient(1.0, a[k, k])
        for i in range(k + 1, n):
            factor = a[i, k] * inverse
            a[i, k] = factor
            if factor != 0.0:
                for j in range(k + 1, n):
                    a[i, j] -= factor * a[k, j]
    return True


@kernel
def lu_solve(a, pivots, x):
    """Overwrite x with the solution of the system factorised by :func:`lu_factor`."""
    n = a.shape[0]
    for k in range(n):
        best = pivots[k]
        if best != k:
            swapped = x[k]
            x[k] = x[best]
            x[best] = swapped
    for i in range(1, n):
        total = x[i]
        for j in range(i):
            total -= a[i, j] * x[j]
        x[i] = total
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= a[i, j] * x[j]
        x[i] = quotient(total, a[i, i])
