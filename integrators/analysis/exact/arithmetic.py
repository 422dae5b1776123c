"""Arithmetic on coefficients that keeps track of how many digits count.

Fractions stay fractions. A decimal tells by its length how well it is known
(:func:`~integrators.tableau.exact.uncertainty`), so results are written with as many digits as the
shorter operand has, and what cancels down to the last digit is 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from ...tableau.exact import DIGITS, Number, to_decimal, uncertainty

__all__ = ["minus", "plus", "times", "total"]


def plus(x: Number, y: Number) -> Number:
    """Return x + y.

    Examples
    --------
    >>> plus(Fraction(1, 3), Fraction(1, 6))
    Fraction(1, 2)
    >>> plus(Decimal("0.3333333333333333"), Decimal("-0.3333333333333332"))
    Fraction(0, 1)
    """
    if x == 0 or y == 0:
        return y if x == 0 else x
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x + y
    if isinstance(x, float) or isinstance(y, float):
        return float(x) + float(y)
    with localcontext(prec=DIGITS + 10):
        a, b = to_decimal(x), to_decimal(y)
        return _kept(a + b, x, y, max(abs(a), abs(b)))


def minus(x: Number, y: Number) -> Number:
    """Return x − y."""
    return plus(x, -y if not isinstance(y, Decimal) else y.copy_negate())


def times(x: Number, y: Number) -> Number:
    """Return x · y.

    Examples
    --------
    >>> times(Fraction(1, 3), 0.75)
    0.25
    """
    if x == 0 or y == 0:
        return Fraction(0)
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    if isinstance(x, float) or isinstance(y, float):
        return float(x) * float(y)
    with localcontext(prec=DIGITS + 10):
        product = to_decimal(x) * to_decimal(y)
        return _kept(product, x, y, abs(product))


def total(numbers: Iterable[Number]) -> Number:
    """Return the sum; a sum that is 1 within the digits given is 1.

    Examples
    --------
    >>> total([Decimal("0.7407892288401"), Decimal("0.2592107711599")])
    Fraction(1, 1)
    """
    terms = list(numbers)
    result: Number = Fraction(0)
    for x in terms:
        result = plus(result, x)
    if isinstance(result, Fraction):
        return result
    delta = Fraction(max(uncertainty(x) for x in terms))
    if abs(Fraction(result) - 1) <= 4 * delta * sum((abs(Fraction(x)) for x in terms), Fraction(0)):
        return Fraction(1)
    return result


def _kept(value: Decimal, x: Any, y: Any, scale: Decimal) -> Number:
    """Write a result with as many digits as the operands justify."""
    digits = min(len(v.as_tuple().digits) for v in (x, y) if isinstance(v, Decimal))
    digits = min(max(digits, 1), DIGITS)
    if abs(value) <= 2 * scale.scaleb(1 - digits):
        return Fraction(0)
    with localcontext(prec=digits):
        rounded = +value
    with localcontext(prec=DIGITS + 10):
        return rounded.quantize(Decimal((0, (1,), rounded.adjusted() - digits + 1)))
