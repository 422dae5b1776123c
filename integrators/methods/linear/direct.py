"""Factorisations of M − γJ: dense and banded by LAPACK, sparse by SuperLU.

Each class is made once for a run, with its mass matrix, and learns the pattern from the first
Jacobian. What follows from a pattern (where entries go, the order of unknowns) is kept until one
of another pattern comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import compiled, interpreting
from ...kernels.pointers import SingularMatrixError
from .banded import band_factor, band_solve
from .pattern import Bands, Pattern

__all__ = ["BandLU", "DenseLU", "Patterned", "SparseLU", "Summed", "band_places", "band_solver"]

Array = NDArray[Any]
Solver = Callable[[Array], Array]

NARROW = 24  # diagonals up to which our kernel is faster than LAPACK
PIVOT = 0.01  # an entry of the diagonal is a pivot if it is this part of the largest one


class DenseLU:
    """LU of the full matrix."""

    name = "dense LU"

    def __init__(self, mass: Array | None, n: int) -> None:
        self.M = np.eye(n) if mass is None else mass
        self.J: Any = None

    def use(self, J: Any) -> None:
        """Take a new Jacobian."""
        self.J = J.toarray() if hasattr(J, "toarray") else J

    def solver(self, shift: Any) -> Solver:
        """Factorise M − shift·J; returns what solves with it."""
        from scipy.linalg import lapack, lu_solve

        matrix = self.M - shift * self.J
        (getrf,) = lapack.get_lapack_funcs(("getrf",), (matrix,))
        *factors, info = getrf(matrix, overwrite_a=True)
        if info != 0 or not np.all(np.isfinite(factors[0])):
            raise SingularMatrixError("a pivot is zero")
        return lambda rhs: lu_solve(factors, rhs, check_finite=False)

    def times_mass(self, x: Array) -> Array:
        """M·x."""
        return np.asarray(self.M @ x)


class Summed:
    """The entries of M − shift·J in the union of their patterns, column by column.

    Parameters
    ----------
    mass
        Sparse, or None for the identity.
    J
        The first Jacobian; the pattern that later ones have to agree with.
    """

    def __init__(self, mass: Any, J: Any) -> None:
        from scipy.sparse import csc_matrix, identity

        n = J.shape[0]
        self.of_J = Pattern(J)
        on_diagonal = self.of_J.indices == self.of_J.columns
        if mass is None and int(on_diagonal.sum()) == n:  # no union is needed
            self.pattern, self.M_data, self.is_same = self.of_J, on_diagonal.astype(float), True
            return
        M = identity(n, format="csc") if mass is None else csc_matrix(mass)
        ones = self.of_J.matrix(np.ones(self.of_J.nnz))
        there = M.copy()
        there.data = np.ones(M.nnz)
        self.pattern = Pattern(ones + there + identity(n, format="csc"))
        self.M_data = np.zeros(self.pattern.nnz)
        M.sort_indices()
        self.M_data[self._places(M)] = M.data
        self.J_places = self._places(ones)
        self.is_same = np.array_equal(self.J_places, np.arange(self.pattern.nnz))

    def _places(self, matrix: Any) -> Any:
        """Where the entries of a matrix stand among those of the sum."""
        n = self.pattern.n
        columns = np.repeat(np.arange(n), np.diff(matrix.indptr))
        own = self.pattern.columns * n + self.pattern.indices
        return np.searchsorted(own, columns * n + matrix.indices)

    def entries(self, data: Array, shift: Any) -> Array:
        """M − shift·J."""
        if self.is_same:
            return self.M_data - shift * data
        total = self.M_data.astype(np.result_type(self.M_data, shift))
        total[self.J_places] -= shift * data
        return total


class Patterned:
    """What solvers share that know the pattern of M − γJ."""

    def __init__(self, mass: Any, n: int) -> None:
        from scipy.sparse import csc_matrix

        self.n = n
        self.mass = None if mass is None else csc_matrix(mass)
        self.summed: Summed | None = None
        self.data: Array = np.zeros(0)

    def use(self, J: Any) -> None:
        """Take a new Jacobian, sparse."""
        from scipy.sparse import csc_matrix

        if not hasattr(J, "indptr") or J.format != "csc":
            J = csc_matrix(J)
        if not J.has_sorted_indices:
            J.sort_indices()
        if self.summed is None or not self.summed.of_J.holds(J):
            self.summed = Summed(self.mass, J)
            self._learn(self.summed.pattern)
        self.data = J.data

    def _learn(self, pattern: Pattern) -> None:
        """A new pattern."""

    def times_mass(self, x: Array) -> Array:
        """M·x."""
        return x if self.mass is None else np.asarray(self.mass @ x)

    def _entries(self, shift: Any) -> Array:
        assert self.summed is not None
        return self.summed.entries(self.data, shift)


class BandLU(Patterned):
    """LU of a banded matrix, if need be with unknowns in another order (Cuthill–McKee).

    Parameters
    ----------
    reorder
        Whether unknowns may be put into another order.
    """

    def __init__(self, mass: Any, n: int, reorder: bool = True) -> None:
        super().__init__(mass, n)
        self.reorder = reorder
        self.bands = Bands((0, 0))

    @property
    def name(self) -> str:
        """What it does, in words."""
        moved = "" if self.bands.order is None else ", unknowns reordered"
        return f"band LU with {self.bands.widths[0]} + {self.bands.widths[1]} diagonals{moved}"

    def _learn(self, pattern: Pattern) -> None:
        self.bands = pattern.narrowest if self.reorder else pattern.natural
        self.lower, self.upper = self.bands.widths
        rows, columns = pattern.indices.astype(np.int64), pattern.columns
        if self.bands.order is not None:
            place = np.empty(self.n, dtype=np.int64)
            place[self.bands.order] = np.arange(self.n)
            rows, columns = place[rows], place[columns]
        self.places = band_places(rows, columns, self.lower, self.upper)

    def solver(self, shift: Any) -> Solver:
        """Factorise M − shift·J; returns what solves with it."""
        return band_solver(self._entries(shift), self.places, self.n, self.bands)


def band_places(rows: Any, columns: Any, lower: int, upper: int) -> Any:
    """Where entries stand in LAPACK's storage: by columns, with room above for pivoting."""
    return columns * (2 * lower + upper + 1) + lower + upper + rows - columns


def band_solver(entries: Array, places: Any, n: int, bands: Bands) -> Solver:
    """Factorise a banded matrix; returns what solves with it."""
    from scipy.linalg import lapack

    (lower, upper), order = bands.widths, bands.order
    matrix = np.zeros((n, 2 * lower + upper + 1), dtype=entries.dtype)
    matrix.ravel()[places] = entries
    if lower + upper <= NARROW and not interpreting():
        pivots = np.zeros(n, dtype=np.int64)
        if not compiled(band_factor)(matrix, pivots, lower, upper):
            raise SingularMatrixError("a pivot is zero")
        own = compiled(band_solve)

        def solved(rhs: Array) -> Array:
            x = rhs.astype(entries.dtype)
            own(matrix, pivots, lower, upper, x)
            return x

    else:
        kind = "z" if entries.dtype.kind == "c" else "d"
        gbtrf, gbtrs = getattr(lapack, kind + "gbtrf"), getattr(lapack, kind + "gbtrs")
        factors, rows, info = gbtrf(matrix.T, lower, upper, overwrite_ab=True)
        if info != 0 or not np.isfinite(factors[lower + upper].sum()):
            raise SingularMatrixError("a pivot is zero")

        def solved(rhs: Array) -> Array:
            return np.asarray(gbtrs(factors, lower, upper, rhs, rows)[0])

    if order is None:
        return solved

    def solve(rhs: Array) -> Array:
        x = np.empty_like(rhs)
        x[order] = solved(rhs[order])
        return x

    return solve


class SparseLU(Patterned):
    """LU of a sparse matrix by SuperLU; the order that keeps it sparse is found once."""

    name = "sparse LU"

    @classmethod
    def of_sums(cls, summed: Summed) -> SparseLU:
        """For matrices whose entries are known to be these."""
        made = cls(None, summed.pattern.n)
        made.summed = summed
        made._learn(summed.pattern)
        return made

    def _learn(self, pattern: Pattern) -> None:
        self.order: Array | None = None

    def solver(self, shift: Any) -> Solver:
        """Factorise M − shift·J; returns what solves with it."""
        assert self.summed is not None
        entries = self._entries(shift)
        if not np.all(np.isfinite(entries)):
            raise SingularMatrixError("the Jacobian is not finite")
        if self.order is None:
            self._find_order(entries)
        from scipy.sparse import csc_matrix

        matrix = csc_matrix((entries[self.moved], self.indices, self.indptr), (self.n, self.n))
        factors = _factors(matrix, "NATURAL", self.is_symmetric)
        order = self.order
        if self.is_symmetric:

            def solve(rhs: Array) -> Array:
                x = np.empty_like(rhs)
                x[order] = factors.solve(rhs[order])
                return x

            return solve

        def solve_columns(rhs: Array) -> Array:
            x = np.empty_like(rhs)
            x[order] = factors.solve(rhs)
            return x

        return solve_columns

    def _find_order(self, entries: Array) -> None:
        """The order of the unknowns, and where entries go in it."""
        assert self.summed is not None
        pattern = self.summed.pattern
        self.is_symmetric = pattern.is_symmetric
        kind = "MMD_AT_PLUS_A" if self.is_symmetric else "COLAMD"
        factors = _factors(pattern.matrix(entries), kind, self.is_symmetric)
        order = np.argsort(factors.perm_c)
        numbered = pattern.matrix(np.arange(1.0, pattern.nnz + 1))[:, order]
        if self.is_symmetric:
            numbered = numbered[order]
        numbered = numbered.tocsc()
        numbered.sort_indices()
        self.order, self.moved = order, numbered.data.astype(np.int64) - 1
        self.indices, self.indptr = numbered.indices, numbered.indptr


def _factors(matrix: Any, order: str, symmetric: bool) -> Any:
    from scipy.sparse.linalg import splu

    how = {"diag_pivot_thresh": PIVOT, "options": {"SymmetricMode": True}} if symmetric else {}
    try:
        return splu(matrix, permc_spec=order, **how)
    except RuntimeError as error:  # SuperLU: exactly singular
        raise SingularMatrixError(str(error)) from None
