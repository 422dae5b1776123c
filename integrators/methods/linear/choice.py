"""What a user may ask of the linear systems of an implicit method, and what is best if nothing is.

The limits follow from ``benchmarks/large.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .pattern import Pattern

__all__ = [
    "KINDS",
    "BandedPart",
    "BlockJacobi",
    "IncompleteLU",
    "LinearChoice",
    "best_kind",
    "check_linear",
    "check_preconditioner",
    "linear_choice",
]

KINDS = ("auto", "dense", "band", "sparse", "gmres")
SPARSE = 0.1  # part of all entries up to which sparse matrices are faster than LAPACK
NARROW = 24  # diagonals up to which banded LU is fastest, whatever n is
MODERATE, FEW = 80, 500  # … and these, up to so many unknowns
LARGEST_FACTORISED = 500  # unknowns up to which LU of a sparse matrix costs less than GMRES
LARGEST_WITH_CONSTRAINTS = 20_000  # … with a singular mass matrix, where ILU(0) often fails
LARGEST_DENSE = 2000  # unknowns up to which a dense matrix is factorised


@dataclass(frozen=True)
class IncompleteLU:
    """Preconditioner: LU without fill-in, for a known pattern of the Jacobian (ILU(0))."""


@dataclass(frozen=True)
class BlockJacobi:
    """Preconditioner: the diagonal blocks alone.

    Parameters
    ----------
    size
        Rows of a block: the unknowns of one cell, say. It must divide the number of unknowns.
    """

    size: int

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ValueError(f"size of blocks must be a whole number ≥ 1, got {self.size!r}")


def _check_band(lower: Any, upper: Any) -> None:
    for width in (lower, upper):
        if isinstance(width, bool) or not isinstance(width, int | np.integer) or width < 0:
            raise ValueError(
                f"bandwidth must be (lower, upper), numbers of diagonals ≥ 0, got {lower, upper!r}"
            )


@dataclass(frozen=True)
class BandedPart:
    """Preconditioner: what lies near the diagonal, by a banded LU.

    Parameters
    ----------
    lower, upper
        Diagonals below and above the main one.
    """

    lower: int = 1
    upper: int = 1

    def __post_init__(self) -> None:
        _check_band(self.lower, self.upper)


NAMED = {"ilu": IncompleteLU(), "band": BandedPart(), "none": None, None: None, "auto": "auto"}


@dataclass(frozen=True)
class LinearChoice:
    """What was asked for; see :func:`linear_choice`."""

    kind: str = "auto"
    preconditioner: Any = "auto"
    bandwidth: tuple[int, int] | None = None


def linear_choice(
    linear_solver: Any = "auto", preconditioner: Any = "auto", bandwidth: Any = None
) -> LinearChoice | None:
    """Check the options of ``solve`` that concern linear systems; None if nothing was asked for.

    Examples
    --------
    >>> linear_choice("band", bandwidth=2).bandwidth
    (2, 2)
    """
    if linear_solver in (None, "auto") and bandwidth is None and preconditioner == "auto":
        return None
    kind = "auto" if linear_solver is None else linear_solver
    if kind not in KINDS:
        raise ValueError(f"linear_solver must be one of {', '.join(KINDS)}; got {linear_solver!r}")
    if bandwidth is not None:
        widths = (bandwidth, bandwidth) if np.ndim(bandwidth) == 0 else tuple(bandwidth)
        if len(widths) != 2:
            raise ValueError(f"bandwidth must be a number or (lower, upper), got {bandwidth!r}")
        _check_band(*widths)
        bandwidth = int(widths[0]), int(widths[1])
    chosen = preconditioner
    if preconditioner is None or isinstance(preconditioner, str):
        if preconditioner not in NAMED:
            raise ValueError(
                "preconditioner must be 'ilu', 'band', None, BlockJacobi(size), "
                "BandedPart(lower, upper) or a function (t, y, gamma) that returns a function "
                f"r → z with (M − γJ) z ≈ r; got {preconditioner!r}"
            )
        chosen = NAMED[preconditioner]
    elif not (isinstance(chosen, IncompleteLU | BlockJacobi | BandedPart) or callable(chosen)):
        raise TypeError(f"preconditioner must be a name, an object or a function, got {chosen!r}")
    if chosen != "auto" and kind not in ("auto", "gmres"):
        raise ValueError(
            f"a preconditioner is for linear_solver='gmres'; {kind!r} factorises the whole matrix"
        )
    if chosen != "auto":
        kind = "gmres"
    if bandwidth is not None and kind == "auto":
        kind = "band"
    asked = LinearChoice(kind, chosen, bandwidth)
    return None if asked == LinearChoice() else asked


def check_linear(choice: LinearChoice | None, linear_solver: str, method: str) -> None:
    """Only implicit methods of this package have linear systems that can be solved in many ways.

    `linear_solver` is what the method says of its own.
    """
    if choice is not None and not (linear_solver or method == "auto"):
        raise ValueError(
            f"{method} solves no linear systems of its own here, so it takes no linear_solver, "
            "preconditioner or bandwidth; take an implicit method such as BDF or RADAU5, or 'auto'"
        )


def check_preconditioner(wanted: Any, n: int, is_known: bool) -> None:
    """Refuse a preconditioner that cannot be built; `is_known` tells of the pattern of J."""
    built = isinstance(wanted, IncompleteLU | BlockJacobi | BandedPart)
    if isinstance(wanted, BlockJacobi) and n % wanted.size:
        raise ValueError(f"{wanted}: {n} unknowns do not make up blocks of {wanted.size}")
    if built and not is_known:
        raise ValueError(
            "this preconditioner is built from the entries of the Jacobian, whose pattern is not "
            "known; give jac_sparsity or a sparse jac, or a function as preconditioner"
        )


def best_kind(n: int, pattern: Pattern | None, matrix_free: bool, constrained: bool) -> str:
    """Kind of solver for n unknowns with a Jacobian of this pattern (None: no zeros known).

    `matrix_free` tells whether J·v can be had without J, `constrained` whether M has zeros on its
    diagonal.
    """
    if pattern is None:
        return "gmres" if n > LARGEST_DENSE and matrix_free else "dense"
    diagonals = sum(pattern.narrowest.widths)
    if diagonals <= (MODERATE if n <= FEW else NARROW) and diagonals < n // 2:
        return "band"
    if pattern.nnz > SPARSE * n * n:
        return "gmres" if n > LARGEST_DENSE else "dense"
    largest = LARGEST_WITH_CONSTRAINTS if constrained else LARGEST_FACTORISED
    return "sparse" if n <= largest else "gmres"
