"""Tolerance proportionality: how the error of adaptive runs follows the tolerance asked for.

Over a range of tolerances the error behaves like C·rtolᵏ. With k = 1 a tenth of the tolerance gives
a tenth of the error, and C says how many tolerances the error is. A pair that estimates its local
error per step has k = p/(p + 1) without local extrapolation, and about 1 with it; round-off and an
error of the reference end the range. The exponent comes with a confidence interval, 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .order_fit import student

__all__ = ["Proportionality", "proportionality"]

FEWEST = 3
PROPORTIONAL = 0.1  # distance of the exponent from 1 that nobody notices
CLEAR = 10.0  # errors below this multiple of what the reference resolves are left out
ROUNDING = 1e-14


@dataclass(frozen=True)
class Proportionality:
    """error ≈ factor · rtolᵏ, from ``points`` runs.

    Attributes
    ----------
    exponent, half : float
        k, and half of its confidence interval.
    factor : float
        Error in units of the tolerance, in the middle of the range.
    spread : float
        Largest ratio of an error to the line through all of them, or of the line to an error.
    points : int
        How many runs count.
    """

    exponent: float
    half: float
    factor: float
    spread: float
    points: int

    @property
    def proportional(self) -> bool:
        """Whether a tenth of the tolerance gives a tenth of the error."""
        return abs(self.exponent - 1.0) <= max(self.half, PROPORTIONAL)

    def __str__(self) -> str:
        verdict = "proportional" if self.proportional else "not proportional"
        return (
            f"error ∼ rtol^({self.exponent:.2f} ± {self.half:.2f}), {verdict} to the tolerance; "
            f"in the middle it is {self.factor:.2g} tolerances"
        )


def proportionality(
    tolerances: Sequence[float], errors: Sequence[float | None], uncertainty: float = 0.0
) -> Proportionality | None:
    """Fit a power of the tolerance to errors; None if fewer than three of them count.

    Parameters
    ----------
    tolerances, errors
        One error for each tolerance; None where a run failed.
    uncertainty
        Error of what they were measured against.

    Examples
    --------
    >>> print(proportionality([1e-4, 1e-6, 1e-8], [3e-4, 3e-6, 3e-8]))
    error ∼ rtol^(1.00 ± 0.00), proportional to the tolerance; in the middle it is 3 tolerances
    """
    floor = max(CLEAR * uncertainty, ROUNDING)
    known = [(r, e) for r, e in zip(tolerances, errors) if r and e is not None and e > floor]
    if len({r for r, _ in known}) < FEWEST:
        return None
    x, y = np.log(np.array(known)).T
    centred = x - x.mean()
    k = float(centred @ y / (centred @ centred))
    rest = y - y.mean() - k * centred
    freedom = len(known) - 2
    variance = float(rest @ rest) / freedom / float(centred @ centred)
    half = student(freedom) * float(np.sqrt(variance))
    middle = float(np.exp(y.mean() - x.mean()))
    return Proportionality(k, half, middle, float(np.exp(np.max(np.abs(rest)))), len(known))
