"""Approximate solvers of (M − γJ) z = r, which make GMRES converge fast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import OnArrays, compiled, interpreting
from ...kernels.pointers import SingularMatrixError
from .choice import BandedPart, BlockJacobi, IncompleteLU
from .direct import SparseLU, Summed, band_places, band_solver
from .incomplete import incomplete_factor, incomplete_solve
from .pattern import Bands

__all__ = ["Built", "Complete", "built_preconditioner"]

Array = NDArray[Any]
Map = Callable[[Array], Array]

LARGE = 2000  # unknowns from which it pays to compile before the first use
_slow_factor, _slow_solve = OnArrays(incomplete_factor), OnArrays(incomplete_solve)


class Built(ABC):
    """A preconditioner built from the entries of M − γJ; :meth:`made` does it for one γ."""

    name: str

    def __init__(self, summed: Summed) -> None:
        self.summed = summed

    @abstractmethod
    def made(self, data: Array, shift: Any) -> Map:
        """What solves approximately, for these entries of J."""


class _Incomplete(Built):
    name = "ILU(0)"

    def __init__(self, summed: Summed) -> None:
        super().__init__(summed)
        pattern = summed.pattern
        numbered = pattern.matrix(np.arange(1.0, pattern.nnz + 1)).tocsr()
        numbered.sort_indices()
        self.by_rows = numbered.data.astype(np.int64) - 1
        self.starts = numbered.indptr.astype(np.int64)
        self.columns = numbered.indices.astype(np.int64)
        rows = np.repeat(np.arange(pattern.n), np.diff(self.starts))
        self.diagonal = np.flatnonzero(self.columns == rows)
        self.place = np.full(pattern.n, -1, dtype=np.int64)

    def made(self, data: Array, shift: Any) -> Map:
        entries = self.summed.entries(data, shift)[self.by_rows]
        at_once = self.diagonal.size > LARGE and not interpreting()
        factor: Any = compiled(incomplete_factor) if at_once else _slow_factor
        solve: Any = compiled(incomplete_solve) if at_once else _slow_solve
        structure = self.starts, self.columns, self.diagonal
        if not factor(*structure, entries, self.place):
            raise SingularMatrixError("a pivot of the incomplete LU is zero")

        def approximate(r: Array) -> Array:
            x = r.astype(entries.dtype) if r.dtype != entries.dtype else r.copy()
            solve(*structure, entries, x)
            return x

        return approximate


class _Blocks(Built):
    def __init__(self, summed: Summed, size: int) -> None:
        super().__init__(summed)
        self.size, pattern = size, summed.pattern
        self.name = f"blocks of {size}"
        rows, columns = pattern.indices.astype(np.int64), pattern.columns
        self.mine = np.flatnonzero(rows // size == columns // size)
        rows, columns = rows[self.mine], columns[self.mine]
        self.places = rows * size + columns % size

    def made(self, data: Array, shift: Any) -> Map:
        entries, size = self.summed.entries(data, shift), self.size
        blocks = np.zeros(self.summed.pattern.n * size, dtype=entries.dtype)
        blocks[self.places] = entries[self.mine]
        try:
            inverse = np.linalg.inv(blocks.reshape(-1, size, size))
        except np.linalg.LinAlgError:
            raise SingularMatrixError("a block of the preconditioner is singular") from None
        return lambda r: np.matmul(inverse, r.reshape(-1, size, 1)).ravel()


class _Banded(Built):
    def __init__(self, summed: Summed, part: BandedPart) -> None:
        super().__init__(summed)
        self.name = f"band of {part.lower} + {part.upper} diagonals"
        pattern = summed.pattern
        below = pattern.indices.astype(np.int64) - pattern.columns
        self.mine = np.flatnonzero((below <= part.lower) & (-below <= part.upper))
        self.bands = Bands((part.lower, part.upper))
        rows, columns = pattern.indices[self.mine].astype(np.int64), pattern.columns[self.mine]
        self.places = band_places(rows, columns, part.lower, part.upper)

    def made(self, data: Array, shift: Any) -> Map:
        entries = self.summed.entries(data, shift)[self.mine]
        return band_solver(entries, self.places, self.summed.pattern.n, self.bands)


class Complete(Built):
    """The LU of a matrix serves others that are like it."""

    name = "LU"

    def __init__(self, summed: Summed) -> None:
        super().__init__(summed)
        self.factors = SparseLU.of_sums(summed)

    def made(self, data: Array, shift: Any) -> Map:
        """What solves, exactly for this γ."""
        self.factors.data = data
        return self.factors.solver(shift)


def built_preconditioner(wanted: Any, summed: Summed) -> Built:
    """The preconditioner that a user described, for matrices of this pattern."""
    if isinstance(wanted, BlockJacobi):
        return _Blocks(summed, wanted.size)
    if isinstance(wanted, BandedPart):
        return _Banded(summed, wanted)
    assert isinstance(wanted, IncompleteLU)
    return _Incomplete(summed)
