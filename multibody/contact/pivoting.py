"""Kernels of linear complementarity: block principal pivoting, an active set, Lemke's algorithm.

Wanted is z with

    z ≥ 0,   w = M z + d ≥ 0,   zᵀw = 0                                    (book, Eq 11.42)

for a symmetric positive semidefinite M: contact forces and accelerations. The same z minimises
½ zᵀM z + dᵀz over z ≥ 0 (Eq 11.43).

Two kernels, both of which start from a guess of the set A = {i: z_i > 0}:

- `principal_pivots` exchanges all indices at once whose sign is wrong, and one by one where that
  does not help [judice1994]_. A few factorisations suffice, but M_AA must be regular.
- `active_set` lets A grow by one index at a time and keeps M_AA regular, whatever M is (the
  algorithm of Lawson and Hanson for least squares, with a step of zero curvature where a column
  depends on those of A). It ends with a solution, or with a direction along which the quadratic
  form falls without end: then no z exists.

Both work on D M D with the diagonal of ones that D makes, so that what is small has a meaning.

For any other matrix there is Lemke's algorithm (book, §11.5; cottle1992): w = M z + d + e z₀ is
solved for falling z₀. It ends with z₀ = 0, a solution; or on a ray. For matrices that are
copositive plus, among them all positive semidefinite ones and those of friction cones, a ray
proves that no solution exists; for others it proves nothing. Ties are broken lexicographically,
so that it cannot cycle.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from integrators.kernels import kernel
from integrators.kernels.workspace import Workspace

__all__ = [
    "ASYMMETRIC",
    "FOUND",
    "NO_SOLUTION",
    "RESIDUAL",
    "SINGULAR",
    "TOO_LONG",
    "LemkeWorkspace",
    "PivotWorkspace",
    "active_set",
    "judge",
    "lemke",
    "pivots_or_active_set",
    "principal_pivots",
]

# What the kernels return.
FOUND, SINGULAR, TOO_LONG, NO_SOLUTION, ASYMMETRIC = 0, 1, 2, 3, 4

#: Residuals of an accepted answer, in parts of the largest |d|.
RESIDUAL = 1e-10

#: Part of the largest |d| (of the largest z) below which a negative number is rounding.
ROUNDING = 1e-13

#: A pivot that falls below this part of its diagonal entry belongs to a dependent column.
DEPENDENT = 1e-11

#: How often all wrong indices are exchanged without progress before it is done one by one.
PATIENCE = 3


class PivotWorkspace(Workspace):
    """Arrays of the two kernels for n unknowns."""

    FIELDS: ClassVar[dict[str, str]] = {
        "M": "f2",
        "d": "f1",
        "z": "f1",
        "slack": "f1",  # w
        "active": "i1",  # 1 where z_i may be positive; the guess, and afterwards the answer
        "scale": "f1",  # D
        "order": "i1",  # indices of A, in the order of the rows of `factor`
        "factor": "f2",  # Cholesky factor of (D M D)_AA
        "step": "f1",
        "steps": "i1",  # factorisations or exchanges, and the kernel: 0 pivots, 1 active set
        "residual": "f1",
    }

    @classmethod
    def of_size(cls, n: int) -> PivotWorkspace:
        """Make a workspace for n unknowns."""
        vectors = {name: np.zeros(n) for name in ("d", "z", "slack", "scale", "step")}
        numbers = {name: np.zeros(n, dtype=np.int64) for name in ("active", "order")}
        matrices = {name: np.zeros((n, n)) for name in ("M", "factor")}
        counts = np.zeros(2, dtype=np.int64)
        return cls(**vectors, **numbers, **matrices, steps=counts, residual=np.zeros(1))


@kernel
def scale_diagonal(w: Any) -> float:
    """D, and the largest |D d|."""
    largest = 0.0
    for i in range(w.d.shape[0]):
        w.scale[i] = 1.0
        if w.M[i, i] > 0.0:
            w.scale[i] = 1.0 / np.sqrt(w.M[i, i])
        largest = max(largest, abs(w.d[i]) * w.scale[i])
    return largest


@kernel
def append_row(w: Any, m: int, j: int) -> float:
    """Row m of the Cholesky factor, for index j; returns the square of its pivot."""
    L = w.factor
    for a in range(m):
        i = w.order[a]
        total = w.M[j, i] * w.scale[j] * w.scale[i]
        for c in range(a):
            total -= L[m, c] * L[a, c]
        L[m, a] = total / L[a, a]
    pivot = w.M[j, j] * w.scale[j] * w.scale[j]
    for c in range(m):
        pivot -= L[m, c] * L[m, c]
    w.order[m] = j
    if pivot > 0.0:
        L[m, m] = np.sqrt(pivot)
    return pivot


@kernel
def solve_factored(w: Any, m: int, x: Any) -> None:
    """x[:m] := (L Lᵀ)⁻¹ x."""
    L = w.factor
    for a in range(m):
        total = x[a]
        for c in range(a):
            total -= L[a, c] * x[c]
        x[a] = total / L[a, a]
    for a in range(m - 1, -1, -1):
        x[a] /= L[a, a]
        for c in range(a):
            x[c] -= L[a, c] * x[a]


@kernel
def set_forces(w: Any, m: int) -> float:
    """z of the set A, zero elsewhere; returns the largest |z_i / D_i|."""
    for i in range(w.d.shape[0]):
        w.z[i] = 0.0
    for a in range(m):
        w.step[a] = -w.d[w.order[a]] * w.scale[w.order[a]]
    solve_factored(w, m, w.step)
    largest = 0.0
    for a in range(m):
        i = w.order[a]
        largest = max(largest, abs(w.step[a]))
        w.z[i] = w.step[a] * w.scale[i]
    return largest


@kernel
def set_slacks(w: Any) -> None:
    """w = M z + d, exactly zero on A, and where nothing is left but rounding."""
    for i in range(w.d.shape[0]):
        total, size = 0.0, 0.0
        if w.active[i] == 0:
            total = w.d[i]
            for j in range(w.d.shape[0]):
                if w.z[j] != 0.0:
                    total += w.M[i, j] * w.z[j]
                    size += abs(w.M[i, j] * w.z[j])
            if abs(total) <= 3.0 * ROUNDING * size:
                total = 0.0
        w.slack[i] = total


@kernel
def principal_pivots(w: Any) -> float:
    """Find z by exchanging indices in blocks; FOUND, SINGULAR or TOO_LONG."""
    n = w.d.shape[0]
    small_slack = ROUNDING * scale_diagonal(w)
    fewest, patience = n + 1, PATIENCE
    w.steps[0] = 0
    for _ in range(10 + 4 * n):
        w.steps[0] += 1
        m = 0
        for i in range(n):
            if w.active[i] != 0:
                if not append_row(w, m, i) > DEPENDENT:
                    return SINGULAR
                m += 1
        small_force = ROUNDING * set_forces(w, m)
        set_slacks(w)
        wrong, last = 0, -1
        for i in range(n):
            if w.active[i] != 0:
                bad = w.z[i] < -small_force * w.scale[i]
            else:
                bad = w.slack[i] * w.scale[i] < -small_slack
            if bad:
                wrong += 1
                last = i
        if wrong == 0:
            for i in range(n):
                w.z[i] = max(w.z[i], 0.0)
            return FOUND
        if wrong < fewest:
            fewest, patience = wrong, PATIENCE
        else:
            patience -= 1
        if patience < 0:  # one at a time: the last, which ends for every P-matrix
            w.active[last] = 1 - w.active[last]
        else:
            for i in range(n):
                if w.active[i] != 0:
                    if w.z[i] < -small_force * w.scale[i]:
                        w.active[i] = 0
                elif w.slack[i] * w.scale[i] < -small_slack:
                    w.active[i] = 1
    return TOO_LONG


@kernel
def refactor(w: Any, m: int) -> int:
    """Factor of the indices that are still active, in their order; returns how many."""
    kept = 0
    for a in range(m):
        i = w.order[a]
        if w.active[i] != 0:
            if append_row(w, kept, i) > DEPENDENT:
                kept += 1
            else:
                w.active[i] = 0
                w.z[i] = 0.0
    return kept


@kernel
def advance(w: Any, m: int, longest: float) -> float:
    """z along `step` (of the indices in `order`) until one vanishes; returns how far."""
    reach, first = longest, -1
    for a in range(m):
        i = w.order[a]
        if w.step[a] < 0.0 and w.z[i] < -w.step[a] * reach:
            reach, first = -w.z[i] / w.step[a], a
    if reach == np.inf:
        return reach
    for a in range(m):
        i = w.order[a]
        w.z[i] += reach * w.step[a]
        if a == first or w.z[i] < 0.0 or (w.z[i] == 0.0 and w.step[a] < 0.0):
            w.z[i] = 0.0
            w.active[i] = 0
    return reach


@kernel
def active_set(w: Any) -> float:
    """Find z one index at a time; FOUND, NO_SOLUTION or TOO_LONG."""
    n = w.d.shape[0]
    small_slack = 10.0 * ROUNDING * scale_diagonal(w)
    m = 0
    for i in range(n):  # the guess, as far as its columns are independent
        w.z[i] = 0.0
        if w.active[i] != 0:
            if append_row(w, m, i) > DEPENDENT:
                m += 1
            else:
                w.active[i] = 0
    set_forces(w, m)
    for i in range(n):
        if w.z[i] < 0.0:
            w.active[i] = 0
    start = refactor(w, m)
    for i in range(n):
        w.z[i] = max(w.z[i], 0.0)
    if start < m:  # a point where only some of the forces are right: improve it first
        m = improve(w, start)
    w.steps[0] = 0
    for _ in range(10 + 10 * n):
        w.steps[0] += 1
        set_slacks(w)
        enter, lowest = -1, -small_slack
        for i in range(n):
            if w.active[i] == 0 and w.slack[i] * w.scale[i] < lowest:
                enter, lowest = i, w.slack[i] * w.scale[i]
        if enter < 0:
            return FOUND
        w.active[enter] = 1
        if append_row(w, m, enter) > DEPENDENT:
            m = improve(w, m + 1)
            continue
        # The column depends on those of A: along p the form is linear, and falls.
        for a in range(m):
            i = w.order[a]
            w.step[a] = -w.M[i, enter] * w.scale[i]
        solve_factored(w, m, w.step)
        for a in range(m):
            w.step[a] *= w.scale[w.order[a]]
        w.step[m] = 1.0
        if advance(w, m + 1, np.inf) == np.inf:
            return NO_SOLUTION
        m = improve(w, refactor(w, m + 1))
    return TOO_LONG


@kernel
def improve(w: Any, m: int) -> int:
    """Move to the minimum over A, dropping indices whose z vanishes on the way; returns |A|."""
    while m > 0:
        for a in range(m):
            w.step[a] = -w.d[w.order[a]] * w.scale[w.order[a]]
        solve_factored(w, m, w.step)
        for a in range(m):
            i = w.order[a]
            w.step[a] = w.step[a] * w.scale[i] - w.z[i]
        if advance(w, m, 1.0) == 1.0:
            left = 0
            for a in range(m):
                left += w.active[w.order[a]]
            if left == m:
                break
        m = refactor(w, m)
    return m


@kernel
def judge(w: Any) -> float:
    """w = M z + d with rounding taken off; returns what that was, in parts of the largest |d|."""
    n = w.d.shape[0]
    worst, size = 0.0, 0.0
    for i in range(n):
        total = w.d[i]
        for j in range(n):
            total += w.M[i, j] * w.z[j]
        kept = max(total, 0.0) if not w.z[i] > 0.0 else 0.0
        if not abs(total - kept) <= worst:  # NaN included
            worst = abs(total - kept)
        size = max(size, abs(w.d[i]))
        w.slack[i] = kept
    w.residual[0] = worst / size if size > 0.0 else worst
    return w.residual[0]


@kernel
def pivots_or_active_set(w: Any) -> float:
    """Find z of a symmetric M the fast way, else the sure way; judged."""
    n = w.d.shape[0]
    for i in range(n):
        for j in range(i):
            if not abs(w.M[i, j] - w.M[j, i]) <= 1e-13 * (abs(w.M[i, j]) + abs(w.M[j, i])):
                return ASYMMETRIC
    w.steps[1] = 0
    status = principal_pivots(w)
    if status == FOUND and judge(w) <= RESIDUAL:
        return status
    w.steps[1] = 1
    status = active_set(w)
    if status == FOUND and not judge(w) <= RESIDUAL:
        status = TOO_LONG
    return status


# ---------------------------------------------------------------------- Lemke: any matrix

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
