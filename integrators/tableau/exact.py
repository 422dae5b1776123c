"""Exact and many-digit numbers for coefficients.

A coefficient is kept as what it is: a :class:`~fractions.Fraction` where it is rational, a
60-digit :class:`~decimal.Decimal` where it is irrational or was published as a long decimal, and
a float only where the user gave one. Arithmetic that decides something (an order condition) is
done on these, never on rounded floats.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from numbers import Rational
from typing import Any

__all__ = ["DIGITS", "Number", "as_float", "cosine", "is_finite", "parse", "pi", "to_decimal"]
__all__ += ["uncertainty"]

Number = Fraction | Decimal | float

DIGITS = 60
"""Significant digits of irrational coefficients."""

EXACT_DECIMAL_DIGITS = 15
"""A decimal string with at most so many significant digits is exact; a longer one is rounded."""

LONGEST_TEXT = 5_000
"""Characters of a number; the longest of the catalogue has 80."""

LARGEST_EXPONENT = 1_000
"""Of a power of ten, or of a power: a double ends at 10^308."""

LARGEST_BITS = 20_000
"""Of numerator and denominator: far beyond any coefficient, and still at once computed with."""

_CONTEXT = Context(prec=DIGITS + 10)


def parse(value: Any) -> Number:
    """Turn what a user writes for a coefficient into an exact or many-digit number.

    Parameters
    ----------
    value
        An integer, a ``Fraction``, a ``Decimal``, a float, or a string: "1/3", "0.25",
        "(3-sqrt(3))/6", "0.43586652150845899941601945". Strings know ``+ - * / **``,
        parentheses, ``sqrt``, ``cos`` and ``pi``. A short decimal string is exact; a
        ``Decimal`` is known to the digits that it has, so write "0.3", not Decimal("0.3").

    Examples
    --------
    >>> parse("1/3 + 1/6")
    Fraction(1, 2)
    >>> float(parse("1 - sqrt(2)/2"))
    0.2928932188134525
    """
    if isinstance(value, bool):
        raise TypeError(f"expected a number, got {value!r}")
    if isinstance(value, Rational):  # int, Fraction, NumPy integers
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str):
        return _parse_text(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"expected a number, a fraction or a string such as '1/3', got {value!r}"
        ) from None
    return number


def to_decimal(x: Number) -> Decimal:
    """Convert to a Decimal of :data:`DIGITS` digits (floats convert exactly)."""
    with localcontext(_CONTEXT):
        if isinstance(x, Fraction):
            return Decimal(x.numerator) / Decimal(x.denominator)
        return Decimal(x)


def as_float(x: Number) -> float:
    """Round to the nearest double."""
    return float(x)


def is_finite(x: Number) -> bool:
    """Whether the nearest double is a number, neither infinite nor NaN.

    >>> is_finite(Fraction(1, 3)), is_finite(Decimal("1e400")), is_finite(Fraction(10**400))
    (True, False, False)
    """
    try:
        return math.isfinite(float(x))
    except (OverflowError, ValueError):  # a large fraction; a signalling NaN
        return False


def uncertainty(x: Number) -> float:
    """Relative uncertainty of a number: 0 for a fraction, half a unit of the last digit else."""
    if isinstance(x, Fraction) or x == 0:
        return 0.0
    if isinstance(x, Decimal):
        digits = len(x.as_tuple().digits)
        return 10.0 ** (1 - min(digits, DIGITS))
    return 2.0**-52


def pi() -> Decimal:
    """π to more than :data:`DIGITS` digits, by Machin's formula."""
    with localcontext(_CONTEXT):

        def arctan_inverse(k: int) -> Decimal:
            term = Decimal(1) / k
            total, n, sign = term, 1, 1
            while abs(term) > Decimal(10) ** -(DIGITS + 8):
                term /= k * k
                n, sign = n + 2, -sign
                total += sign * term / n
            return total

        return 16 * arctan_inverse(5) - 4 * arctan_inverse(239)


def cosine(x: Decimal) -> Decimal:
    """Cosine by its power series, after halving the argument until it is small."""
    with localcontext(_CONTEXT):
        halvings = 0
        while abs(x) > Decimal("0.1"):
            x, halvings = x / 2, halvings + 1
        term = total = Decimal(1)
        n = 0
        while abs(term) > Decimal(10) ** -(DIGITS + 8):
            n += 2
            term = -term * x * x / (n * (n - 1))
            total += term
        for _ in range(halvings):
            total = 2 * total * total - 1
        return total


def _parse_text(text: str) -> Number:
    try:
        if len(text) > LONGEST_TEXT:
            raise SyntaxError(f"expected at most {LONGEST_TEXT} characters, received {len(text)}")
        tree = ast.parse(text.strip(), mode="eval").body
        with localcontext(_CONTEXT):
            number = _evaluate(tree, text.strip())
        if not is_finite(number):
            raise OverflowError("its value is beyond the largest double, 1.8e308")
        return number
    except (SyntaxError, ArithmeticError, ValueError) as error:
        reason = str(error)
    except (RecursionError, MemoryError):
        reason = "it is nested too deep"
    shown = text if len(text) <= 80 else f"{text[:60]}…"
    raise ValueError(
        f"cannot read {shown!r} as a number ({reason}); write for example '1/3', '0.25' or "
        "'(3-sqrt(3))/6'"
    )


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _evaluate(node: ast.expr, text: str) -> Number:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return _literal(ast.get_source_segment(text, node) or str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        operand = _evaluate(node.operand, text)
        return -operand if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.BinOp):
        a, b = _evaluate(node.left, text), _evaluate(node.right, text)
        if isinstance(node.op, ast.Pow):
            if not (isinstance(b, Fraction) and b.denominator == 1):
                raise SyntaxError("only integer powers are known")
            return _power(a, int(b))
        if (function := _OPERATORS.get(type(node.op))) is not None:
            if type(a) is not type(b):
                a, b = to_decimal(a), to_decimal(b)
            result: Number = function(a, b)
            return _bearable(result)
    if isinstance(node, ast.Name) and node.id == "pi":
        return pi()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        x = _evaluate(node.args[0], text)
        if node.func.id == "sqrt":
            return _square_root(x)
        if node.func.id == "cos":
            if abs(to_decimal(x)) > LARGEST_EXPONENT:
                raise SyntaxError(f"cos is known up to {LARGEST_EXPONENT}")
            return cosine(to_decimal(x))
    raise SyntaxError("only numbers, + - * / **, sqrt, cos and pi are known")


def _bits(x: Number) -> int:
    """Length of numerator or denominator, whichever is longer; rounded numbers have none."""
    if isinstance(x, Fraction):
        return max(x.numerator.bit_length(), x.denominator.bit_length())
    return 1


def _power(a: Number, n: int) -> Number:
    """Integer power, whose size is looked at before it is computed."""
    if abs(n) > LARGEST_EXPONENT or _bits(a) * abs(n) > LARGEST_BITS:
        raise SyntaxError("a power in it is too large a number")
    result: Number = a**n
    return result


def _bearable(x: Number) -> Number:
    if _bits(x) > LARGEST_BITS:
        raise SyntaxError("its numerator or denominator is too large a number")
    return x


def _literal(digits: str) -> Number:
    exponent = digits.lower().partition("e")[2] if digits[:2].lower() != "0x" else ""
    if len(exponent) > 5 or abs(int(exponent or 0)) > LARGEST_EXPONENT:
        raise SyntaxError(f"expected exponents of ten up to {LARGEST_EXPONENT}")
    significant = digits.lower().split("e")[0].replace(".", "").lstrip("0")
    if len(significant) <= EXACT_DECIMAL_DIGITS or "." not in digits:
        return Fraction(digits)
    return Decimal(digits)


def _square_root(x: Number) -> Number:
    if isinstance(x, Fraction) and x >= 0:
        p, q = math.isqrt(x.numerator), math.isqrt(x.denominator)
        if p * p == x.numerator and q * q == x.denominator:
            return Fraction(p, q)
    return to_decimal(x).sqrt()
