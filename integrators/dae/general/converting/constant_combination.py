r"""Combinations of equations with constant coefficients in which leading derivatives cancel.

In a circuit the currents through the elements between two nodes enter the balances of both with
opposite signs, so that sums of equations lose them, however nonlinear the elements are. Elimination
on the graph of J finds the same null vector as quotients of the elements' conductances: on a graph,
which is no normal form, they do not become constants again. So constants are looked for first: u
with uᵀ J(x) = 0 at *several* points x together, small ones among them, because elsewhere the
steepest of several exponentials drowns the others. Columns are scaled, for conductances of diodes
differ by ten powers of ten; and only simple fractions are accepted, because they are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIZES", "constant_null_vector"]

Array = NDArray[np.float64]

SIZES = (1.0, 1e-6, 0.03, 1.0, 1e-4, 1.0, 1e-6, 0.3)  # of the values at the points looked at
NEGLIGIBLE = 1e-9  # relative: a singular value, a coefficient
LARGEST_DENOMINATOR = 12
CANCELS = 1e-13  # what rounding may leave of a sum that vanishes, relative to its terms


def constant_null_vector(matrices: Sequence[Array]) -> dict[int, float] | None:
    """Return u with uᵀ J = 0 for all matrices J, by number of row; None if there is none.

    Examples
    --------
    >>> J = [np.array([[g, -h], [-g, h]]) for g, h in ((1.0, 2e8), (3e-9, 5.0))]
    >>> constant_null_vector(J)
    {0: 1.0, 1: 1.0}
    """
    from scipy.linalg import qr

    wide = np.hstack(matrices)
    sizes = np.abs(wide).max(axis=0)
    if not np.isfinite(sizes).all():
        return None
    wide = wide[:, sizes > 0.0] / sizes[sizes > 0.0]
    _, R, order = qr(wide.T, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int(np.sum(diagonal > NEGLIGIBLE * max(float(diagonal.max(initial=0.0)), 1e-300)))
    if rank >= len(wide):
        return None
    independent, dependent = order[:rank], int(order[rank])
    weights = np.linalg.lstsq(wide[independent].T, wide[dependent], rcond=None)[0]
    u = {dependent: 1.0}
    for i, w in zip(independent.tolist(), weights.tolist()):
        if abs(w) <= NEGLIGIBLE:
            continue
        near = float(Fraction(w).limit_denominator(LARGEST_DENOMINATOR))
        if abs(w - near) > NEGLIGIBLE * max(1.0, abs(w)):
            return None
        u[int(i)] = -near
    rows, factors = list(u), np.array(list(u.values()))
    left = np.abs(factors @ wide[rows])
    terms = np.abs(factors) @ np.abs(wide[rows])
    return dict(sorted(u.items())) if np.all(left <= CANCELS * np.maximum(terms, 1.0)) else None
