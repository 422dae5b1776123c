"""How long a step of an explicit tableau stability allows: what watching for stiffness needs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...tableau import Tableau

__all__ = ["end_stage", "real_boundary"]

FARTHEST, FINE = 100.0, 0.01  # of z = hλ on the negative axis


@lru_cache(maxsize=256)
def end_stage(tableau: Tableau) -> int:
    """Number of a stage at the end of the step that is not the new state itself; −1: none.

    Examples
    --------
    >>> from integrators import catalogue
    >>> end_stage(catalogue.get("DOPRI5")), end_stage(catalogue.get("BS23"))
    (5, -1)
    """
    A, b, c = tableau.arrays
    places = [i for i in np.flatnonzero(c == 1.0) if not np.array_equal(A[i], b)]
    return int(places[-1]) if places else -1


@lru_cache(maxsize=256)
def real_boundary(tableau: Tableau) -> float:
    """Where |R(z)| > 1 begins on the negative real axis, R the stability function.

    Examples
    --------
    >>> from integrators import catalogue
    >>> [round(real_boundary(catalogue.get(name)), 1) for name in ("RK4", "DOPRI5", "DOP853")]
    [2.8, 3.3, 6.4]
    """
    A, b, _ = tableau.arrays
    s = len(b)
    moments, vector = [1.0], np.ones(s)
    for _ in range(s):  # R(z) = 1 + Σ zᵏ⁺¹ bᵀAᵏ1
        moments.append(float(b @ vector))
        vector = A @ vector
    z = -np.arange(FINE, FARTHEST, FINE)
    beyond = np.flatnonzero(np.abs(np.polyval(moments[::-1], z)) > 1.0 + 1e-9)
    return float(-z[beyond[0]]) if beyond.size else FARTHEST
