"""Coefficients of a stability function, and how well they are known.

The numerator and denominator of R(z) = N(z)/D(z) are computed in fractions, or in decimals with
guard digits. What is known to fewer digits has a *slack*, the first-order effect of the digits
not given:

    ∂D/∂aᵢⱼ = −z adj(I − zA)ⱼᵢ,   and N(z) = det(I − z(A − 𝟙bᵀ)) likewise.                  (1)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...tableau.exact import DIGITS, Number, to_decimal, uncertainty
from .polynomial import Polynomial

__all__ = ["rational_coefficients", "recognised", "slacks"]

_CHANCE = 1e-15
"""Probability below which agreement with a fraction is not taken for a coincidence."""

_GUARD = 40
"""Extra decimal digits while computing, so that rounding is far below any slack."""

_ROUNDING = 10.0 ** -(DIGITS + 2)
"""Slack of sums of fractions that had to be turned into decimals of DIGITS + 10 digits."""


def rational_coefficients(
    A: Sequence[Sequence[Number]], b: Sequence[Number]
) -> tuple[Polynomial, Polynomial, bool]:
    """Return N, D, and whether they are exact.

    Examples
    --------
    >>> rational_coefficients([[Fraction(1)]], [Fraction(1)])[1]
    (Fraction(1, 1), Fraction(-1, 1))
    """
    exact = all(isinstance(x, Fraction) for x in (*b, *(a for row in A for a in row)))
    convert: Any = Fraction if exact else to_decimal
    with localcontext(prec=DIGITS + _GUARD):
        A_work = [[convert(a) for a in row] for row in A]
        one = convert(Fraction(1))
        D = _determinant(A_work, one)
        N = _numerator(A_work, [convert(x) for x in b], D, one)
    return tuple(Fraction(x) for x in N), tuple(Fraction(x) for x in D), exact


def _determinant(A: list[list[Any]], one: Any) -> list[Any]:
    """Coefficients of det(I − zA): a product for triangular A, else by Faddeev and LeVerrier."""
    s = len(A)
    if all(a == 0 for i, row in enumerate(A) for a in row[i + 1 :]):
        result = [one]
        for i in range(s):
            shifted = [0 * one, *(-A[i][i] * d for d in result)]
            result = [x + y for x, y in zip([*result, 0 * one], shifted)]
        return result
    coefficients = [one]
    B = [[one if i == j else 0 * one for j in range(s)] for i in range(s)]
    for k in range(1, s + 1):
        product = [
            [sum(a * B[m][j] for m, a in enumerate(row) if a) for j in range(s)] for row in A
        ]
        d = -sum(product[i][i] for i in range(s)) / k
        coefficients.append(d * one)
        B = [[x + (d if i == j else 0) for j, x in enumerate(row)] for i, row in enumerate(product)]
    return coefficients


def _numerator(A: list[list[Any]], b: list[Any], D: list[Any], one: Any) -> list[Any]:
    s = len(A)
    moments, vector = [one], [one] * s
    for _ in range(s):
        moments.append(sum((x * v for x, v in zip(b, vector)), 0 * one))
        vector = [sum((a * v for a, v in zip(row, vector) if a), 0 * one) for row in A]
    return [sum((D[j] * moments[k - j] for j in range(k + 1)), 0 * one) for k in range(s + 1)]


def slacks(A: Any, b: Any) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Slack of the coefficients of N, D and of the series by Eq. (1), with room for rounding."""
    A_open = np.array([[abs(float(a)) * uncertainty(a) for a in row] for row in A])
    b_open = np.array([abs(float(x)) * uncertainty(x) for x in b])
    A_double, b_double = np.array(A, dtype=float), np.array(b, dtype=float)
    s = len(b)

    def moved(matrix: NDArray[np.float64], with_b: bool) -> tuple[float, ...]:
        B, result = np.eye(s), [0.0]
        for k in range(1, s + 1):
            weight = np.abs(B)
            slack = float(np.sum(weight.T * A_open))
            if with_b:
                slack += float(np.abs(B.sum(axis=1)) @ b_open)
            result.append(4 * slack + _ROUNDING)
            product = matrix @ B
            B = product - np.trace(product) / k * np.eye(s)
        return tuple(result)

    # rₖ = bᵀAᵏ⁻¹𝟙: bounds of Aᵏ𝟙 and of what moves it
    size, motion, series = np.ones(s), np.zeros(s), [0.0]
    for _ in range(4 * s + 8):
        series.append(4 * float(b_open @ size + np.abs(b_double) @ motion) + _ROUNDING)
        size, motion = np.abs(A_double) @ size, A_open @ size + np.abs(A_double) @ motion
    return moved(A_double - b_double, True), moved(A_double, False), tuple(series)


def recognised(p: Polynomial, slack: Sequence[float]) -> tuple[Polynomial, tuple[float, ...]]:
    """Replace coefficients by the simple fractions that they must be."""
    values, slacks = list(p), list(slack)
    for k, (a, t) in enumerate(zip(p, slack)):
        if t == 0:
            continue
        if t < _CHANCE and (most := int((_CHANCE / t) ** 0.5)) > 1:
            simple = a.limit_denominator(most)
            if abs(a - simple) <= t:
                values[k], slacks[k] = simple, 0.0
                continue
        # Digits far below the slack mean nothing; dropping them keeps exact arithmetic fast.
        bits = 10 - math.frexp(t)[1]
        values[k] = Fraction(round(a * 2**bits), 2**bits)
    return tuple(values), tuple(slacks)
