"""The root condition, decided without rounding.

A polynomial satisfies it if its roots lie in the closed unit disc and those on the circle are
simple. With rational coefficients this is decided exactly: the common factor g of ρ(ζ) and
ζᵏ ρ(1/ζ) has all roots on the circle, with their multiplicities, and pairs ζ, 1/ζ besides. So

    ρ/g must have all roots inside the circle, and so must g′:

by Cohn's theorem g, which is its own mirror image, then has all roots on the circle, and a
multiple one would be a root of g′ there. Roots inside are counted by the Schur–Cohn recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

__all__ = ["inside_circle", "root_condition"]

Polynomial = list[Fraction]  # ascending powers


def root_condition(p: Sequence[Fraction]) -> bool:
    """Whether all roots lie in the closed unit disc, and those on the circle are simple.

    Examples
    --------
    >>> root_condition([Fraction(-1), Fraction(0), Fraction(1)])  # ζ² − 1
    True
    >>> root_condition([Fraction(1), Fraction(-2), Fraction(1)])  # (ζ − 1)²
    False
    """
    p = _trimmed(p)
    while p and p[0] == 0:  # roots at 0 are inside
        p = p[1:]
    if not p:
        return False
    common = _common_factor(p, p[::-1])
    return inside_circle(_divided(p, common)[0]) and inside_circle(
        [k * a for k, a in enumerate(common)][1:] or [Fraction(1)]
    )


def inside_circle(p: Sequence[Fraction]) -> bool:
    """Whether all roots lie strictly inside the unit circle (Schur and Cohn, exactly).

    Examples
    --------
    >>> inside_circle([Fraction(1), Fraction(2)])  # root −1/2
    True
    >>> inside_circle([Fraction(1), Fraction(1)])  # root −1
    False
    """
    p = _trimmed(p)
    while len(p) > 1:
        first, last = p[0], p[-1]
        if abs(first) >= abs(last):
            return False
        p = [last * a - first * b for a, b in zip(p, p[::-1])][1:]
        p = [a / p[-1] for a in p]  # keeps the numbers short
    return bool(p)


def _trimmed(p: Sequence[Fraction]) -> Polynomial:
    n = len(p)
    while n and p[n - 1] == 0:
        n -= 1
    return list(p[:n])


def _divided(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Quotient and remainder."""
    rest, result = list(p), [Fraction(0)] * max(len(p) - len(q) + 1, 0)
    for k in range(len(result) - 1, -1, -1):
        result[k] = rest[k + len(q) - 1] / q[-1]
        for j, b in enumerate(q):
            rest[k + j] -= result[k] * b
    return result, _trimmed(rest)


def _common_factor(p: Polynomial, q: Polynomial) -> Polynomial:
    while q:
        p, q = q, _divided(p, q)[1]
    return [a / p[-1] for a in p]
