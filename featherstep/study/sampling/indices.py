"""Sobol's indices: how much of the variance of a result each parameter brings.

With f_A, f_B the results at two independent sets of points, and f_AB those at A with one
coordinate taken from B, the index of first order and the total one are

    S = mean f_B (f_AB − f_A) / V        (Saltelli et al. 2010, Comput. Phys. Commun. 181, Eq. b)
    T = mean (f_A − f_AB)² / 2V          (Jansen 1999; there Eq. f),

where V is the variance of f_A and f_B together. Results are taken relative to their mean, which
changes neither index but their scatter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..keeping.part import OK

if TYPE_CHECKING:
    from ..study import Study

__all__ = ["SobolIndices", "sobol_indices"]

Array = NDArray[np.float64]

RESAMPLES = 200
FEWEST_PAIRS = 8


@dataclass(frozen=True)
class SobolIndices:
    """Indices of the parameters, in order.

    Attributes
    ----------
    names
        Of the parameters.
    first, total
        Share of the variance that a parameter brings alone, and with all its interactions.
    first_error, total_error
        Half widths of their intervals of 95 % confidence, by resampling.
    pairs, left_out
        Pairs of points that count, and those left out because a run of theirs failed.
    """

    names: tuple[str, ...]
    first: Array
    total: Array
    first_error: Array
    total_error: Array
    pairs: int
    left_out: int


def sobol_indices(study: Study, name: str) -> SobolIndices:
    """Sobol's indices of a column of a study with ``sampling="saltelli"``."""
    design = study.design
    if design.sampling != "saltelli":
        raise ValueError(
            "Sobol's indices need a design of their own: expected sampling='saltelli', this study "
            f"has {design.sampling!r}"
        )
    columns = study.columns()
    if name not in study._plain["record"]:
        raise ValueError(
            f"there is no recorded value {name!r}; there are {', '.join(study._plain['record'])}"
        )
    values = np.where(columns["status"] == OK, columns[name], np.nan).astype(np.float64)
    groups = values.reshape(-1, len(design.names) + 2)
    good = np.isfinite(groups).all(axis=1)
    groups = groups[good]
    if len(groups) < FEWEST_PAIRS:
        raise ValueError(
            f"expected at least {FEWEST_PAIRS} pairs of points whose runs all succeeded, there are "
            f"{len(groups)}"
        )
    first, total = _indices(groups)
    rng = np.random.default_rng(design.seed)
    again = [_indices(groups[rng.integers(0, len(groups), len(groups))]) for _ in range(RESAMPLES)]
    spread = 1.96 * np.std(again, axis=0)
    return SobolIndices(
        design.names, first, total, spread[0], spread[1], len(groups), int((~good).sum())
    )


def _indices(groups: Array) -> tuple[Array, Array]:
    """First-order and total indices from rows (f_A, f_AB …, f_B)."""
    ends = groups[:, [0, -1]]
    variance = float(ends.var())
    if variance == 0.0:  # nothing varies: nobody brings anything
        nothing = np.zeros(groups.shape[1] - 2)
        return nothing, nothing
    f = groups - ends.mean()
    a, ab, b = f[:, :1], f[:, 1:-1], f[:, -1:]
    return (b * (ab - a)).mean(axis=0) / variance, ((a - ab) ** 2).mean(axis=0) / (2.0 * variance)
