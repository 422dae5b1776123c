"""Accelerations under constraints: M v̇ = f + Gᵀλ, G v̇ = γ, by several roads to one answer.

Book §8.5: the direct method solves the symmetric system of both equations; the second computes λ
first, from G M⁻¹ Gᵀ λ = γ − G M⁻¹ f; the third projects onto the motions that the constraints
allow. With dependent constraints v̇ is still unique, λ is not: the one of least norm is returned.

The rank of G is decided on the *mass-weighted* matrix G L⁻ᵀ with M = L Lᵀ, whose singular values
do not depend on the units of the coordinates: those below ``tolerance`` times the largest count as
zero. On a mechanism that passes through a singular position anything from 1e-10 to 1e-4 gives the
same motion.

:func:`eliminate` and :class:`Factor` do the same for full rank without pivoting, on symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import suggest
from ..tracing.symbols.symbol import Symbol
from .partition import RANK_TOLERANCE, partition

__all__ = [
    "RANK_TOLERANCE",
    "SOLVERS",
    "Acceleration",
    "Factor",
    "Weighted",
    "accelerations",
    "eliminate",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Acceleration:
    """The solution of M v̇ = f + Gᵀλ, G v̇ = γ.

    Attributes
    ----------
    v_dot, multipliers
        v̇, and the λ of least norm.
    rank
        Rank r of G.
    redundant
        Rows of G that can be left out: the m − r that depend on the others.
    """

    v_dot: Array
    multipliers: Array
    rank: int
    redundant: tuple[int, ...]


class Weighted:
    """G in mass-weighted velocities, with its singular values: rank, corrections, multipliers.

    Parameters
    ----------
    M, G
        Mass matrix and Jacobian.
    tolerance
        See :data:`RANK_TOLERANCE`.
    """

    def __init__(self, M: Array, G: Array, tolerance: float = RANK_TOLERANCE) -> None:
        try:
            # Small triangular systems with several sides wake up the threads of BLAS, which costs
            # a thousand times their own time; the inverse of a triangle is as accurate.
            self.inverse = np.linalg.inv(np.linalg.cholesky(M))
        except np.linalg.LinAlgError:
            smallest = float(np.min(np.linalg.eigvalsh((M + M.T) / 2)))
            raise ValueError(
                "the mass matrix must be symmetric and positive definite; its smallest eigenvalue "
                f"is {smallest:.3g}. Every velocity needs some inertia"
            ) from None
        self.Y = self.ahead(G.T)
        if self.Y.size:
            self.U, self.s, self.Vt = np.linalg.svd(self.Y.T, full_matrices=False)
            self.rank = int(np.sum(self.s > tolerance * self.s[0])) if self.s[0] > 0 else 0
        else:
            self.U, self.s, self.Vt = np.zeros((len(G), 0)), np.zeros(0), np.zeros((0, len(M)))
            self.rank = 0
        r = self.rank
        self.U, self.s, self.Vt = self.U[:, :r], self.s[:r], self.Vt[:r]

    def free(self, f: Array) -> Array:
        """M⁻¹ f."""
        return self.back(self.ahead(f))

    def ahead(self, f: Array) -> Array:
        """L⁻¹ f; of a matrix, column by column."""
        return np.asarray(self.inverse @ f)

    def back(self, w: Array) -> Array:
        """L⁻ᵀ w: from mass-weighted velocities to velocities."""
        return np.asarray(self.inverse.T @ w)

    def correction(self, residual: Array) -> Array:
        """The smallest u, in the norm uᵀMu, with G u = residual (in the least-squares sense)."""
        return self.back(self.Vt.T @ ((self.U.T @ residual) / self.s))

    def accelerate(self, f: Array, gamma: Array) -> tuple[Array, Array]:
        """v̇ and λ."""
        z = self.ahead(f)
        along = (self.U.T @ (gamma - self.Y.T @ z)) / self.s
        return self.back(z + self.Vt.T @ along), self.U @ (along / self.s)

    def redundant(self) -> tuple[int, ...]:
        """Rows that depend on the others, by elimination with pivots."""
        from scipy.linalg import qr

        m = self.Y.shape[1]
        if self.rank == m:
            return ()
        pivots = qr(self.Y, mode="r", pivoting=True)[-1]
        return tuple(sorted(int(i) for i in pivots[self.rank :]))


# -------------------------------------------------------------------- the methods of the book


def _by_svd(M: Array, f: Array, G: Array, gamma: Array, known: Weighted) -> tuple[Array, Array]:
    return known.accelerate(f, gamma)


def _direct(M: Array, f: Array, G: Array, gamma: Array, known: Weighted) -> tuple[Array, Array]:
    """[[M, Gᵀ], [G, 0]] [v̇; −λ] = [f; γ], dependent rows left out."""
    from scipy.linalg import solve

    rows = _independent(known, len(G))
    K, n = G[rows], len(M)
    system = np.block([[M, K.T], [K, np.zeros((len(K), len(K)))]])
    solution = solve(system, np.concatenate([f, gamma[rows]]), assume_a="sym", check_finite=False)
    return solution[:n], _least_norm(G, K, -solution[n:])


def _multipliers_first(
    M: Array, f: Array, G: Array, gamma: Array, known: Weighted
) -> tuple[Array, Array]:
    """A λ = b, dependent rows left out; then v̇."""
    rows = _independent(known, len(G))
    K, Y = G[rows], known.Y[:, rows]
    b = gamma[rows] - K @ known.free(f)
    multipliers = np.asarray(np.linalg.solve(Y.T @ Y, b), dtype=float)
    return known.free(f + K.T @ multipliers), _least_norm(G, K, multipliers)


def _by_projection(
    M: Array, f: Array, G: Array, gamma: Array, known: Weighted
) -> tuple[Array, Array]:
    """v̇ = N ÿ + n₀ with G N = 0, G n₀ = γ; NᵀMN ÿ = Nᵀ(f − M n₀)."""
    split = partition(G, rank=known.rank)
    N, offset = split.basis, split.offset(gamma)
    v_dot = offset
    if N.shape[1]:
        v_dot = offset + N @ np.linalg.solve(N.T @ M @ N, N.T @ (f - M @ offset))
    return v_dot, np.asarray(np.linalg.lstsq(G.T, M @ v_dot - f, rcond=RANK_TOLERANCE)[0], float)


def _independent(known: Weighted, m: int) -> list[int]:
    left_out = set(known.redundant())
    return [i for i in range(m) if i not in left_out]


def _least_norm(G: Array, K: Array, multipliers: Array) -> Array:
    """The multipliers of all rows, of least norm, that give the same force Kᵀλ."""
    if len(K) == len(G):
        return multipliers
    return np.asarray(np.linalg.lstsq(G.T, K.T @ multipliers, rcond=RANK_TOLERANCE)[0], float)


SOLVERS = {
    "svd": _by_svd,
    "direct": _direct,
    "multipliers": _multipliers_first,
    "projection": _by_projection,
}


def accelerations(
    M: ArrayLike,
    f: ArrayLike,
    G: ArrayLike,
    gamma: ArrayLike,
    *,
    method: str = "svd",
    tolerance: float = RANK_TOLERANCE,
) -> Acceleration:
    """Solve M v̇ = f + Gᵀλ, G v̇ = γ.

    Parameters
    ----------
    M, f, G, gamma
        Mass matrix (n×n, positive definite), force (n), Jacobian (m×n, of any rank), γ (m).
    method
        "svd", by mass-weighted singular values; "direct", the symmetric indefinite system;
        "multipliers", λ first; "projection", by the motions that are allowed. All give the same,
        as long as γ is in the range of G; otherwise "svd" takes least squares, and the others
        leave out the dependent rows.
    tolerance
        Relative tolerance for the rank, see :data:`RANK_TOLERANCE`.

    Examples
    --------
    A mass that is lifted with the acceleration 2, by two identical constraints:

    >>> a = accelerations(2 * np.eye(2), [1.0, -20.0], [[0.0, 1.0], [0.0, 1.0]], [2.0, 2.0])
    >>> a.v_dot.round(12), a.multipliers.round(12), a.rank, a.redundant
    (array([0.5, 2. ]), array([12., 12.]), 1, (1,))
    """
    if method not in SOLVERS:
        raise ValueError(
            f"there is no method {method!r}{suggest(method, list(SOLVERS))}; "
            f"known are {', '.join(SOLVERS)}"
        )
    mass, jacobian = np.asarray(M, dtype=float), np.atleast_2d(np.asarray(G, dtype=float))
    force, target = np.asarray(f, dtype=float), np.asarray(gamma, dtype=float)
    n, m = force.size, target.size
    if mass.shape != (n, n) or jacobian.shape != (m, n):
        raise ValueError(
            f"shapes do not fit: M {mass.shape}, f {force.shape}, G {jacobian.shape}, gamma "
            f"{target.shape}; expected (n, n), (n,), (m, n), (m,)"
        )
    known = Weighted(mass, jacobian, tolerance)
    v_dot, multipliers = SOLVERS[method](mass, force, jacobian, target, known)
    return Acceleration(v_dot, multipliers, known.rank, known.redundant())


# -------------------------------------------------------------------- on symbols


def _is_zero(x: Any) -> bool:
    """Whether an element is known to be zero while tracing."""
    if isinstance(x, Symbol):
        return bool(x.graph.values[x.index] == 0.0)
    return bool(x == 0.0)


def elimination_order(A: Any) -> list[int]:
    """Order of elimination that makes little fill-in: fewest neighbours first, last index first.

    For the mass matrix of a tree, with bodies numbered from the root, this goes from the leaves
    to the root, without any fill-in (the LᵀL factorisation of the book).
    """
    n = len(A)
    neighbours = {
        i: {j for j in range(n) if j != i and not (_is_zero(A[i, j]) and _is_zero(A[j, i]))}
        for i in range(n)
    }
    order = []
    while neighbours:
        k = min(neighbours, key=lambda i: (len(neighbours[i]), -i))
        around = neighbours.pop(k)
        for i in around:
            neighbours[i] |= around - {i}
            neighbours[i].discard(k)
        order.append(k)
    return order


class Factor:
    """A = L D Lᵀ of a symmetric positive definite matrix of numbers or symbols, reordered."""

    def __init__(self, A: Any) -> None:
        n = len(A)
        self.order = elimination_order(A)
        self.L: list[dict[int, Any]] = [{} for _ in range(n)]  # rows below the diagonal
        self.d: list[Any] = []
        order = self.order
        for j in range(n):
            scaled = {k: x * self.d[k] for k, x in self.L[j].items()}
            pivot = A[order[j], order[j]]
            for k, x in self.L[j].items():
                pivot = pivot - x * scaled[k]
            self.d.append(pivot)
            for i in range(j + 1, n):
                value = A[order[i], order[j]]
                for k, x in scaled.items():
                    if k in self.L[i]:
                        value = value - self.L[i][k] * x
                if not _is_zero(value):
                    self.L[i][j] = value / pivot

    def forward(self, b: Any) -> list[Any]:
        """L⁻¹ b, in the order of elimination."""
        x = [b[k] for k in self.order]
        for i, row in enumerate(self.L):
            for k, l in row.items():
                if not _is_zero(x[k]):
                    x[i] = x[i] - l * x[k]
        return x

    def backward(self, x: list[Any]) -> list[Any]:
        """L⁻ᵀ D⁻¹ x, in the original order."""
        n = len(x)
        y = [x[i] if _is_zero(x[i]) else x[i] / self.d[i] for i in range(n)]
        for i in range(n - 1, -1, -1):
            for k, l in self.L[i].items():
                y[k] = y[k] - l * y[i]
        out: list[Any] = [None] * n
        for place, k in enumerate(self.order):
            out[k] = y[place]
        return out

    def solve(self, b: Any) -> Any:
        """A⁻¹ b."""
        return np.array(self.backward(self.forward(b)))


class Eliminated:
    """M and G M⁻¹ Gᵀ factored, for symbols; both must be positive definite."""

    def __init__(self, M: Any, G: Any) -> None:
        self.mass = Factor(M)
        self.columns = [self.mass.forward(row) for row in G]  # L⁻¹ Gᵀ
        m = len(self.columns)
        scaled = [
            [x if _is_zero(x) else x / d for x, d in zip(column, self.mass.d)]
            for column in self.columns
        ]
        A = np.empty((m, m), dtype=object)
        for i in range(m):
            for j in range(i + 1):
                A[i, j] = A[j, i] = _dot(scaled[i], self.columns[j])
        self.scaled = scaled
        self.A = Factor(A)

    def correction(self, residual: Any) -> Any:
        """The smallest u, in the norm uᵀMu, with G u = residual."""
        return self._back(self.A.solve(residual), [0.0] * len(self.mass.d))

    def accelerate(self, f: Any, gamma: Any) -> tuple[Any, Any]:
        """v̇ and λ."""
        z = self.mass.forward(f)
        b = [gamma[i] - _dot(row, z) for i, row in enumerate(self.scaled)]
        multipliers = self.A.solve(b)
        return self._back(multipliers, z), multipliers

    def _back(self, multipliers: Any, z: list[Any]) -> Any:
        total = list(z)
        for column, multiplier in zip(self.columns, multipliers):
            for k, x in enumerate(column):
                if not _is_zero(x):
                    total[k] = total[k] + x * multiplier
        return np.array(self.mass.backward(total))


def _dot(a: list[Any], b: list[Any]) -> Any:
    total: Any = 0.0
    for x, y in zip(a, b):
        if not (_is_zero(x) or _is_zero(y)):
            total = total + x * y
    return total


def eliminate(M: Any, f: Any, G: Any, gamma: Any) -> tuple[Any, Any]:
    """v̇ and λ without pivoting, on numbers or symbols; G must have full rank."""
    return Eliminated(M, G).accelerate(f, gamma)
