"""A smooth function that its Taylor series does not represent (notes, §1.2).

    f(x) = exp(−1/x²) for x > 0, else 0,      f⁽ᵏ⁾(x) = P_k(1/x) exp(−1/x²),

    P_0 = 1,   P_{k+1}(u) = 2u³ P_k(u) − u² P_k'(u)

All derivatives vanish at 0, since exp(−u²) beats every power of u. So the expansion about 0 is zero
to all orders, and the remainder is the function itself, however high the order.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from .taylor import Expansion

__all__ = ["flat", "flat_derivative", "flat_expansion"]


@cache
def _polynomial(k: int) -> Polynomial:
    if k == 0:
        return Polynomial([1.0])
    P = _polynomial(k - 1)
    return Polynomial([0, 0, 0, 2]) * P - Polynomial([0, 0, 1]) * P.deriv()


def flat_derivative(x: Any, k: int) -> Any:
    """Return the k-th derivative of :func:`flat` at x.

    Examples
    --------
    >>> flat_derivative(0.0, 5), flat_derivative(-1.0, 3)
    (np.float64(0.0), np.float64(0.0))
    """
    if isinstance(k, bool) or int(k) != k or k < 0:
        raise ValueError(f"the order of a derivative must be a whole number ≥ 0, got {k!r}")
    x = np.asarray(x, dtype=float)
    if np.isnan(x).any():
        raise ValueError("x contains NaN")
    u = np.zeros_like(x)
    right = x > 1 / 38  # below, exp(−1/x²) is less than the smallest double
    u[right] = 1 / x[right]
    return np.where(right, _polynomial(int(k))(u) * np.exp(-u * u), 0.0)[()]


def flat(x: Any) -> Any:
    """exp(−1/x²) for x > 0, else 0: smooth, with all derivatives 0 at 0.

    Examples
    --------
    >>> round(float(flat(1.0)), 6), float(flat(0.0)), float(flat(-1.0))
    (0.367879, 0.0, 0.0)
    """
    return flat_derivative(x, 0)


def flat_expansion(order: int) -> Expansion:
    """Return the Taylor expansion of :func:`flat` about 0: the zero polynomial.

    Examples
    --------
    >>> expansion = flat_expansion(20)
    >>> expansion(0.5), round(expansion.remainder(0.5), 6)
    (0.0, 0.018316)
    """
    coefficients: dict[tuple[int, ...], float] = {
        (k,): float(flat_derivative(0.0, k)) for k in range(int(order) + 1)
    }
    note = "flat has no expansion about 0 that converges to it"
    return Expansion(flat, np.zeros(1), int(order), coefficients, True, True, note)
