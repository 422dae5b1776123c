"""Arithmetic and elementary functions of Decimals, for graphs of traced functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Context, Decimal, DecimalException, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from math import factorial
from typing import Any

from ...tableau.exact import pi, to_decimal

__all__ = ["DECIMALS", "DIGITS", "NotAvailable", "with_digits"]

DIGITS = 60  # of the arithmetic, unless others are asked for


class NotAvailable(Exception):
    """Raised where a problem or method cannot be had with many digits; the text says why."""


@contextmanager
def with_digits(count: int) -> Iterator[None]:
    """Compute with so many digits; a division by zero or an overflow ends it."""
    with localcontext(Context(prec=count, Emax=999999, Emin=-999999)):
        try:
            yield
        except (DecimalException, OverflowError, ZeroDivisionError) as error:
            raise NotAvailable(f"the arithmetic failed ({type(error).__name__})") from None


_PI = pi()
_SINE = [to_decimal(Fraction((-1) ** k, factorial(2 * k + 1))) for k in range(23)]
"""Of the power series: at π/4 the next term is 1e-64."""
_ARCTANGENT = [to_decimal(Fraction((-1) ** k, 2 * k + 1)) for k in range(45)]
"""Of the power series: at 1/20 the next term is 1e-119."""


def _terms(series: list[Decimal], per_term: float) -> list[Decimal]:
    """As many terms as the digits of the arithmetic need, each worth some of them."""
    return series[: min(len(series), int(getcontext().prec / per_term) + 3)]


@lru_cache(maxsize=256)
def _sine_cosine_of(x: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    quarters = int((2 * x / _PI).to_integral_value())
    rest = x - quarters * _PI / 2
    square, series = rest * rest, _terms(_SINE, 2.6)
    sine = series[-1]
    for coefficient in series[-2::-1]:
        sine = coefficient + square * sine
    sine *= rest
    cosine = (1 - sine * sine).sqrt()
    turned = [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)]
    return turned[quarters % 4]


def _sine_cosine(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return sin x and cos x, after a reduction to |x| ≤ π/4; they are often wanted together."""
    return _sine_cosine_of(x, getcontext().prec)


def _tangent(x: Decimal) -> Decimal:
    sine, cosine = _sine_cosine(x)
    return sine / cosine


def _arctangent(x: Decimal) -> Decimal:
    """Halve the angle until the series converges fast: tan(a/2) = tan a/(1 + √(1 + tan² a))."""
    if abs(x) > 1:
        return (_PI / 2).copy_sign(x) - _arctangent(1 / x)
    halvings = 0
    while abs(x) > Decimal("0.05"):
        x = x / (1 + (1 + x * x).sqrt())
        halvings += 1
    square, series = x * x, _terms(_ARCTANGENT, 2.6)
    value = series[-1]
    for coefficient in series[-2::-1]:
        value = coefficient + square * value
    return +(value * x * 2**halvings)


def _arctangent_of_two(y: Decimal, x: Decimal) -> Decimal:
    if x > 0:
        return _arctangent(y / x)
    if x == 0:
        return +(_PI / 2).copy_sign(y) if y else Decimal(0)
    turned = _arctangent(y / x)
    return turned + _PI if y >= 0 else turned - _PI


def _arcsine(x: Decimal) -> Decimal:
    return _arctangent_of_two(x, (1 - x * x).sqrt())


def _power(x: Decimal, y: Decimal) -> Decimal:
    return x ** int(y) if y == y.to_integral_value() else x**y


def _without_cancellation(x: Decimal, formula: Callable[[Decimal], Decimal]) -> Decimal:
    """Evaluate with as many digits more as x has zeros behind the point."""
    lost = max(0, -x.adjusted()) if x else 0
    with localcontext(prec=getcontext().prec + 2 * lost + 5):
        value = formula(x)
    return +value


def _sinh(x: Decimal) -> Decimal:
    return _without_cancellation(x, lambda z: (z.exp() - (-z).exp()) / 2)


def _cosh(x: Decimal) -> Decimal:
    return (x.exp() + (-x).exp()) / 2


def _asinh(x: Decimal) -> Decimal:
    positive = _without_cancellation(abs(x), lambda z: (z + (z * z + 1).sqrt()).ln())
    return positive.copy_sign(x)


def _sign(x: Decimal) -> Decimal:
    return Decimal((x > 0) - (x < 0))


DECIMALS: Mapping[str, Callable[..., Any]] = {
    "neg": operator.neg,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": _power,
    "sqrt": Decimal.sqrt,
    "exp": Decimal.exp,
    "log": Decimal.ln,
    "log1p": lambda x: _without_cancellation(x, lambda z: (1 + z).ln()),
    "expm1": lambda x: _without_cancellation(x, lambda z: z.exp() - 1),
    "sin": lambda x: _sine_cosine(x)[0],
    "cos": lambda x: _sine_cosine(x)[1],
    "tan": _tangent,
    "asin": _arcsine,
    "acos": lambda x: +(_PI / 2 - _arcsine(x)),
    "atan": _arctangent,
    "atan2": _arctangent_of_two,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": lambda x: _sinh(x) / _cosh(x),
    "asinh": _asinh,
    "acosh": lambda x: (x + (x * x - 1).sqrt()).ln(),
    "atanh": lambda x: _without_cancellation(x, lambda z: ((1 + z) / (1 - z)).ln() / 2),
    "abs": abs,
    "sign": _sign,
    "floor": lambda x: x.to_integral_value(rounding="ROUND_FLOOR"),
    "min": min,
    "max": max,
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "not": operator.not_,
    "select": lambda condition, a, b: a if condition else b,
}
