"""Strong stability preservation: how much of the step of the explicit Euler method is kept.

If a step of the explicit Euler method does not increase some convex functional for h ≤ h₀, a
Runge–Kutta method does not for h ≤ 𝒞 h₀. The SSP coefficient 𝒞 is the radius of absolute
monotonicity (:cite:`kraaijevanger1991`): the largest r for which, with K = (A 0; bᵀ 0),

    K(I + rK)⁻¹ ≥ 0    and    rK(I + rK)⁻¹𝟙 ≤ 𝟙                                              (1)

entry by entry. It is positive only if A ≥ 0, b > 0 and A² has zeros wherever A has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from ....tableau import Tableau
from ....tableau.exact import DIGITS, to_decimal, uncertainty
from ..reducibility import irreducible
from ..verdict import Measure

__all__ = ["ssp_coefficient"]

_DIGITS = 16
"""Decimal places of the result that bisection settles."""

_UNBOUNDED = 10**9
"""A method that satisfies (1) here does so for all r; only order 1 allows it."""

_FORGIVEN = 1e-9
"""Negative entries that a second value of the coefficient overlooks: some optimal methods were
published from a numerical search, and miss the last digits of their own optimum."""

_SIMPLE = 1000
"""Largest denominator of the fractions that the coefficient is compared with."""


def ssp_coefficient(method: Any) -> Measure:
    """Return the SSP coefficient 𝒞 of a method.

    Parameters
    ----------
    method
        A tableau or the name of a scheme.

    Returns
    -------
    Measure
        0 where the method is not SSP; the certificate then names the entry that forbids it. A
        positive value comes with the ``condition`` of Eq. (1) that ends it.

    Examples
    --------
    >>> print(ssp_coefficient("SSPRK104"))
    SSP coefficient: 6 (beyond it an entry of the Shu–Osher form turns negative)
    >>> ssp_coefficient("RK4").value
    0.0
    """
    tableau = irreducible(method)
    name = "SSP coefficient"
    if (obstacle := _obstacle(tableau)) is not None:
        return Measure(name, 0.0, Fraction(0), obstacle, {"obstacle": obstacle})
    exact = all(isinstance(x, Fraction) for x in (*tableau.b, *(a for r in tableau.A for a in r)))
    number: Callable[[Any], Any] = Fraction if exact else to_decimal
    with localcontext(prec=DIGITS + 10):
        K = [[number(a) for a in (*row, Fraction(0))] for row in (*tableau.A, tableau.b)]
        room = 0.0
        if not exact:
            room = 100 * max(uncertainty(x) for row in (*tableau.A, tableau.b) for x in row)

        def fails(r: Any) -> str | None:
            return _failure(K, number(r), room)

        if fails(Fraction(_UNBOUNDED)) is None:
            return Measure(name, math.inf, None, "absolutely monotonic for every r", {})
        low, high = _bracket(tableau, fails)
        while (high - low) * 10**_DIGITS > high:
            middle = (low + high) / 2
            low, high = (middle, high) if fails(middle) is None else (low, middle)
        simple = ((low + high) / 2).limit_denominator(_SIMPLE)
        if low <= simple <= high and fails(simple) is None:
            low = simple
        condition = fails(high) or ""
        digits = low if exact else Decimal(low.numerator) / Decimal(low.denominator)
    reason, relaxed = f"beyond it {condition}", _largest(tableau, _FORGIVEN)[0]
    if relaxed > float(low) * (1 + 1e-6):
        reason += f"; {relaxed:.6g} if entries down to {-_FORGIVEN:.0e} are forgiven"
    return Measure(name, float(low), digits, reason, {"condition": condition, "forgiving": relaxed})


def _obstacle(tableau: Tableau) -> str | None:
    """What makes the coefficient 0, if anything does."""
    s = tableau.stages
    for i, row in enumerate(tableau.A):
        for j, a in enumerate(row):
            if a < 0:
                return f"a[{i + 1},{j + 1}] is negative"
    for i, x in enumerate(tableau.b):
        if x <= 0:
            return f"b[{i + 1}] is {'negative' if x < 0 else 'zero'}"
    for i in range(s):
        for j in range(s):
            if tableau.A[i][j] == 0 and any(
                tableau.A[i][k] != 0 and tableau.A[k][j] != 0 for k in range(s)
            ):
                return f"a[{i + 1},{j + 1}] is zero, but that entry of A² is not"
    return None


def _failure(K: list[list[Any]], r: Any, room: float) -> str | None:
    """Which condition of Eq. (1) fails at r, or None; entries above −room count as 0."""
    n = len(K)
    # Rows of X = K(I + rK)⁻¹ solve X(I + rK) = K: elimination on the transpose.
    left = [[(1 if i == j else 0) + r * K[j][i] for j in range(n)] for i in range(n)]
    right = [[K[j][i] for j in range(n)] for i in range(n)]
    XT = _solve(left, right)
    if XT is None:
        return "I + rK becomes singular"
    if any(x < 0 and float(x) < -room for row in XT for x in row):
        return "an entry of the Shu–Osher form turns negative"
    for i in range(n):
        excess = r * sum(XT[j][i] for j in range(n)) - 1
        if excess > 0 and float(excess) > room:
            return "the weight of the old value in a stage turns negative"
    return None


def _solve(left: list[list[Any]], right: list[list[Any]]) -> list[list[Any]] | None:
    """Gaussian elimination with row exchanges, in whatever numbers are given."""
    n = len(left)
    rows = [[*a, *b] for a, b in zip(left, right)]
    for k in range(n):
        p = max(range(k, n), key=lambda i: abs(rows[i][k]))
        if rows[p][k] == 0:
            return None
        rows[k], rows[p] = rows[p], rows[k]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y if y else x for x, y in zip(rows[i], rows[k])]
    return [[x / rows[k][k] for x in rows[k][n:]] for k in range(n)]


def _bracket(tableau: Tableau, fails: Callable[[Any], str | None]) -> tuple[Fraction, Fraction]:
    """Bisect in doubles first; the ends are then checked in exact arithmetic."""
    low, high = _largest(tableau, 1e-12)
    width = Fraction(1, 10**8)
    lower, upper = Fraction(low) * (1 - width), Fraction(high) * (1 + width)
    while fails(lower) is not None:
        lower /= 2
    while fails(upper) is None:
        upper *= 2
    return lower, upper


def _largest(tableau: Tableau, tolerance: float) -> tuple[float, float]:
    """Bracket the largest r that satisfies Eq. (1) up to a tolerance, in doubles."""
    A, b, _ = tableau.arrays
    s = tableau.stages
    K = np.zeros((s + 1, s + 1))
    K[:s, :s], K[s, :s] = A, b

    def holds(r: float) -> bool:
        X = np.linalg.solve((np.eye(s + 1) + r * K).T, K.T).T
        return bool(X.min() >= -tolerance and np.max(r * X.sum(axis=1)) <= 1 + tolerance)

    low, high = 0.0, 1.0
    while holds(high) and high < _UNBOUNDED:
        low, high = high, 2 * high
    for _ in range(48):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
