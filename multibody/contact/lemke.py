"""Lemke's algorithm: complementary pivoting for any matrix (book, §11.5; cottle1992).

    w = M z + d + e z₀,   z, w ≥ 0,   zᵀw = 0

is solved for falling z₀. It ends with z₀ = 0, a solution; or on a ray. For matrices that are
copositive plus, among them all positive semidefinite ones and those of friction cones, a ray
proves that no solution exists; for others it proves nothing. Ties are broken lexicographically,
so that it cannot cycle.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from integrators.kernels import kernel
from integrators.kernels.workspace import Workspace

from .pivoting import FOUND, NO_SOLUTION, TOO_LONG

__all__ = ["LemkeWorkspace", "lemke"]

#: Part of the largest entry of a column below which its entries do not count as pivots.
NO_PIVOT = 1e-11

#: Ratios that differ by less than this part of their size are one.
TIE = 1e-13


class LemkeWorkspace(Workspace):
    """Arrays for n unknowns."""

    FIELDS: ClassVar[dict[str, str]] = {
        "M": "f2",
        "d": "f1",
        "z": "f1",
        "tableau": "f2",  # n × (2n + 2): columns of w, of z, of z₀, and the right-hand side
        "basis": "i1",  # variable of each row: w_i is i, z_i is n + i, z₀ is 2n
        "steps": "i1",
    }

    @classmethod
    def of_size(cls, n: int) -> LemkeWorkspace:
        """Make a workspace for n unknowns."""
        return cls(
            M=np.zeros((n, n)),
            d=np.zeros(n),
            z=np.zeros(n),
            tableau=np.zeros((n, 2 * n + 2)),
            basis=np.zeros(n, dtype=np.int64),
            steps=np.zeros(1, dtype=np.int64),
        )


@kernel
def pivot(T: Any, row: int, column: int) -> None:
    """Make a column of the tableau the unit vector of a row."""
    size = T.shape[1]
    factor = 1.0 / T[row, column]
    for k in range(size):
        T[row, k] *= factor
    T[row, column] = 1.0
    for i in range(T.shape[0]):
        other = T[i, column]
        if i != row and other != 0.0:
            for k in range(size):
                T[i, k] -= other * T[row, k]
            T[i, column] = 0.0


@kernel
def lexicographically_less(T: Any, i: int, j: int, column: int) -> bool:
    """Whether row i over its pivot comes before row j over its own."""
    n = T.shape[0]
    for k in range(-1, n):
        c = 2 * n + 1 if k < 0 else k
        a, b = T[i, c] / T[i, column], T[j, c] / T[j, column]
        if abs(a - b) > TIE * (abs(a) + abs(b)):
            return bool(a < b)
    return i < j


@kernel
def leaving_row(w: Any, column: int) -> int:
    """Row of least ratio, z₀ first among equals; −1 on a ray."""
    T = w.tableau
    n = T.shape[0]
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(T[i, column]))
    best = -1
    for i in range(n):
        if T[i, column] > NO_PIVOT * largest:
            if best < 0:
                best = i
                continue
            a, b = T[i, 2 * n + 1] / T[i, column], T[best, 2 * n + 1] / T[best, column]
            if abs(a - b) <= TIE * (abs(a) + abs(b)) and 2 * n in (w.basis[i], w.basis[best]):
                if w.basis[i] == 2 * n:
                    best = i
            elif lexicographically_less(T, i, best, column):
                best = i
    return best


@kernel
def lemke(w: Any) -> float:
    """Find z; FOUND, NO_SOLUTION (a ray) or TOO_LONG."""
    n, T = w.d.shape[0], w.tableau
    first = 0
    for i in range(n):
        w.z[i] = 0.0
        w.basis[i] = i
        for j in range(n):
            T[i, j] = 0.0
            T[i, n + j] = -w.M[i, j]
        T[i, i] = 1.0
        T[i, 2 * n] = -1.0
        T[i, 2 * n + 1] = w.d[i]
        if w.d[i] <= w.d[first]:  # of equals the last: its row is lexicographically least
            first = i
    w.steps[0] = 0
    if n == 0 or w.d[first] >= 0.0:
        return FOUND
    row, column = first, 2 * n
    for _ in range(100 + 50 * n):
        w.steps[0] += 1
        leaving = w.basis[row]
        pivot(T, row, column)
        w.basis[row] = column
        if leaving == 2 * n:
            for i in range(n):
                if w.basis[i] >= n:
                    w.z[w.basis[i] - n] = max(T[i, 2 * n + 1], 0.0)
            return FOUND
        column = leaving + n if leaving < n else leaving - n
        row = leaving_row(w, column)
        if row < 0:
            return NO_SOLUTION
    return TOO_LONG
