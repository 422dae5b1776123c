"""Functions of a rotation angle that look like 0/0 at zero, accurate for every angle.

They are the coefficients in the exponential maps of SO(3) and SE(3) and in their Jacobians. Each
closed form loses digits by cancellation as θ → 0, so below θ = 1 its Taylor series is used, with
as many terms as double precision can see. All are even in θ and vectorised.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial

import numpy as np

from ...checks import Array

__all__ = ["c_cos1", "c_cos2", "c_cot", "c_mix", "c_sin1", "c_sin2"]

# At θ = 1 the first neglected term is below 1e-17 of the sum for each series.
_TERMS = 10

# Bernoulli numbers |B₂|, |B₄|, …, |B₂₀|.
_BERNOULLI = [
    Fraction(1, 6),
    Fraction(1, 30),
    Fraction(1, 42),
    Fraction(1, 30),
    Fraction(5, 66),
    Fraction(691, 2730),
    Fraction(7, 6),
    Fraction(3617, 510),
    Fraction(43867, 798),
    Fraction(174611, 330),
]

_SIN2 = [(-1) ** k / factorial(2 * k + 3) for k in range(_TERMS)]
_COS2 = [(-1) ** k / factorial(2 * k + 4) for k in range(_TERMS)]
_MIX = [(-1) ** k * (k + 1) / factorial(2 * k + 5) for k in range(_TERMS)]
_COT = [float(B / factorial(2 * k + 2)) for k, B in enumerate(_BERNOULLI)]


def _series(theta: Array, terms: list[float]) -> Array:
    """Sum of terms[k]·θ²ᵏ by Horner's rule."""
    square = theta * theta
    total = np.full_like(square, terms[-1])
    for term in reversed(terms[:-1]):
        total = total * square + np.asarray(term, dtype=square.dtype)
    return total


def _switch(theta: Array, terms: list[float], closed: Array) -> Array:
    small = np.abs(theta) < 1.0
    return np.where(small, _series(np.where(small, theta, 0.0), terms), closed)


def _away_from_zero(theta: Array) -> Array:
    """θ, with 1 in place of the small angles whose closed form is not used."""
    return np.where(np.abs(theta) < 1.0, np.ones_like(theta), theta)


def c_sin1(theta: Array) -> Array:
    """Return sin θ / θ.

    Examples
    --------
    >>> c_sin1(np.array([0.0, 1e-300, np.pi / 2])).round(6)
    array([1.     , 1.     , 0.63662])
    """
    safe = np.where(theta == 0.0, np.ones_like(theta), theta)
    return np.where(theta == 0.0, np.ones_like(theta), np.sin(safe) / safe)


def c_cos1(theta: Array) -> Array:
    """(1 − cos θ) / θ², as ½ (sin(θ/2) / (θ/2))²: no cancellation.

    Examples
    --------
    >>> float(c_cos1(np.array(1e-9)))
    0.5
    """
    half = c_sin1(theta / 2)
    return half * half / 2


def c_sin2(theta: Array) -> Array:
    """(θ − sin θ) / θ³.

    Examples
    --------
    >>> float(c_sin2(np.array(0.0))) == 1 / 6
    True
    """
    t = _away_from_zero(theta)
    return _switch(theta, _SIN2, (t - np.sin(t)) / t**3)


def c_cos2(theta: Array) -> Array:
    """(θ²/2 + cos θ − 1) / θ⁴.

    Examples
    --------
    >>> float(c_cos2(np.array(0.0))) == 1 / 24
    True
    """
    t = _away_from_zero(theta)
    return _switch(theta, _COS2, (t * t / 2 + np.cos(t) - 1) / t**4)


def c_mix(theta: Array) -> Array:
    """(2θ − 3 sin θ + θ cos θ) / (2 θ⁵).

    Examples
    --------
    >>> float(c_mix(np.array(0.0))) == 1 / 120
    True
    """
    t = _away_from_zero(theta)
    return _switch(theta, _MIX, (2 * t - 3 * np.sin(t) + t * np.cos(t)) / (2 * t**5))


def c_cot(theta: Array) -> Array:
    """(1 − (θ/2) cot(θ/2)) / θ²; infinite at θ = 2πk, k ≥ 1, which the caller must exclude.

    Examples
    --------
    >>> float(c_cot(np.array(0.0))) == 1 / 12
    True
    """
    t = _away_from_zero(theta)
    return _switch(theta, _COT, (1 - t / 2 * np.cos(t / 2) / np.sin(t / 2)) / (t * t))
