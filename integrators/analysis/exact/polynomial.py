"""Polynomials with rational coefficients: exact signs and roots.

Whether a method is A-stable is decided by the sign of a polynomial on a half line, so the answer
must not depend on rounding. A polynomial is the tuple of its coefficients, constant term first;
the coefficients are fractions. Roots are counted by Sturm's theorem: the number of distinct roots
in (a, b] is V(a) − V(b), where V counts sign changes along the chain p, p′, −rem(p, p′), …
The chain is kept in integers without common factors, which keeps its numbers short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import gcd, lcm

__all__ = [
    "Polynomial",
    "Root",
    "add",
    "common_factor",
    "derivative",
    "evaluate",
    "first_negative",
    "is_hurwitz",
    "multiply",
    "point_below_zero",
    "positive_roots",
    "power",
    "quotient",
    "scaled",
    "squarefree",
    "text",
    "trim",
]

Polynomial = tuple[Fraction, ...]
_Integers = tuple[int, ...]

ROOT_BITS = 130
"""Roots are bracketed to 2⁻¹³⁰ of their size: 39 digits."""


# ---------------------------------------------------------------------- arithmetic


def trim(p: Sequence[Fraction]) -> Polynomial:
    """Drop zero leading coefficients; the zero polynomial is the empty tuple.

    Examples
    --------
    >>> trim((Fraction(1), Fraction(2), Fraction(0)))
    (Fraction(1, 1), Fraction(2, 1))
    """
    n = len(p)
    while n and p[n - 1] == 0:
        n -= 1
    return tuple(p[:n])


def add(p: Sequence[Fraction], q: Sequence[Fraction]) -> Polynomial:
    """Return the sum p + q."""
    if len(p) < len(q):
        p, q = q, p
    return trim([a + (q[k] if k < len(q) else 0) for k, a in enumerate(p)])


def scaled(p: Sequence[Fraction], factor: Fraction | int) -> Polynomial:
    """Return factor · p."""
    return trim([factor * a for a in p])


def multiply(p: Sequence[Fraction], q: Sequence[Fraction]) -> Polynomial:
    """Return the product p q.

    Examples
    --------
    >>> multiply((Fraction(1), Fraction(1)), (Fraction(1), Fraction(-1)))
    (Fraction(1, 1), Fraction(0, 1), Fraction(-1, 1))
    """
    if not p or not q:
        return ()
    result = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        if a:
            for j, b in enumerate(q):
                result[i + j] += a * b
    return trim(result)


def derivative(p: Sequence[Fraction]) -> Polynomial:
    """Return p′."""
    return trim([k * a for k, a in enumerate(p)][1:])


def evaluate(p: Sequence[Fraction], x: Fraction | int) -> Fraction:
    """Return p(x) by Horner's rule."""
    total = Fraction(0)
    for a in reversed(p):
        total = total * x + a
    return total


def quotient(p: Polynomial, q: Polynomial) -> Polynomial:
    """Return p / q for a divisor q of p.

    Examples
    --------
    >>> quotient((Fraction(-1), Fraction(0), Fraction(1)), (Fraction(1), Fraction(1)))
    (Fraction(-1, 1), Fraction(1, 1))
    """
    rest, result = list(p), [Fraction(0)] * max(len(p) - len(q) + 1, 0)
    for k in range(len(result) - 1, -1, -1):
        factor = rest[k + len(q) - 1] / q[-1]
        result[k] = factor
        for j, b in enumerate(q):
            rest[k + j] -= factor * b
    if any(rest):
        raise ArithmeticError("polynomial division leaves a remainder")
    return trim(result)


def common_factor(p: Polynomial, q: Polynomial) -> Polynomial:
    """Return the greatest common divisor of two polynomials, with leading coefficient 1.

    Examples
    --------
    >>> minus_one, one = Fraction(-1), Fraction(1)
    >>> common_factor((minus_one, Fraction(0), one), (minus_one, one))
    (Fraction(-1, 1), Fraction(1, 1))
    """
    a, b = _integers(p), _integers(q)
    if len(a) < len(b):
        a, b = b, a
    while b:
        a, b = b, _remainder(a, b)
    return tuple(Fraction(x, a[-1]) for x in a)


def squarefree(p: Polynomial) -> Polynomial:
    """Return the polynomial with the same roots as p, each of them simple."""
    common = common_factor(p, derivative(p)) if len(p) > 1 else (Fraction(1),)
    return quotient(p, common) if len(common) > 1 else p


def power(variable: str, k: int) -> str:
    """Write a power for people.

    Examples
    --------
    >>> power("z", 12), power("z", 1), power("z", 0)
    ('z¹²', 'z', '')
    """
    if k < 2:
        return variable if k else ""
    return variable + str(k).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def text(p: Sequence[object], variable: str = "z") -> str:
    """Write a polynomial for people.

    Examples
    --------
    >>> text((Fraction(1), Fraction(-1, 2), Fraction(0), Fraction(1, 12)))
    '1 - 1/2 z + 1/12 z³'
    """
    terms = []
    for k, a in enumerate(p):
        if a == 0:
            continue
        number = str(a) if isinstance(a, Fraction) and a.denominator < 10**7 else f"{float(a):.6g}"  # type: ignore[arg-type]
        sign, size = ("-", number[1:]) if number.startswith("-") else ("+", number)
        factor = power(variable, k)
        body = factor if size == "1" and factor else f"{size} {factor}".strip()
        terms.append((sign, body))
    if not terms:
        return "0"
    first_sign, first = terms[0]
    head = f"-{first}" if first_sign == "-" else first
    return " ".join([head, *(f"{sign} {body}" for sign, body in terms[1:])])


# ---------------------------------------------------------------------- chains in integers


def _integers(p: Sequence[Fraction]) -> _Integers:
    """Return the positive multiple of p with integer coefficients and no common factor."""
    p = trim(p)
    denominator = reduce(lcm, (a.denominator for a in p), 1)
    return _primitive([int(a * denominator) for a in p])


def _primitive(p: Sequence[int]) -> _Integers:
    n = len(p)
    while n and p[n - 1] == 0:
        n -= 1
    content = reduce(gcd, p[:n], 0) or 1
    return tuple(a // content for a in p[:n])


def _remainder(p: _Integers, q: _Integers) -> _Integers:
    """Remainder of p after division by q, up to a positive factor."""
    rest, lead = list(p), abs(q[-1])
    sign = 1 if q[-1] > 0 else -1
    while len(rest) >= len(q):
        factor = sign * rest[-1]
        shift = len(rest) - len(q)
        rest = [lead * a for a in rest]
        for j, b in enumerate(q):
            rest[shift + j] -= factor * b
        rest.pop()
    return _primitive(rest)


def _sturm_chain(p: Polynomial) -> list[_Integers]:
    chain = [_integers(p), _integers(derivative(p))]
    while len(chain[-1]) > 1:
        rest = _remainder(chain[-2], chain[-1])
        if not rest:
            break
        chain.append(tuple(-a for a in rest))
    return chain


def _sign(p: _Integers, x: Fraction) -> int:
    """Sign of p(x), in integers."""
    numerator, denominator = x.numerator, x.denominator
    total, power = 0, 1
    for a in reversed(p):
        total = total * numerator + a * power
        power *= denominator
    return (total > 0) - (total < 0)


def _variations(chain: list[_Integers], x: Fraction) -> int:
    signs = [s for s in (_sign(p, x) for p in chain) if s]
    return sum(a != b for a, b in pairwise(signs))


# ---------------------------------------------------------------------- roots


@dataclass
class Root:
    """A simple real root in (low, high], to be narrowed as far as needed."""

    polynomial: _Integers
    low: Fraction
    high: Fraction

    def halve(self) -> None:
        """Halve the interval."""
        if self.low == self.high:
            return
        right = _sign(self.polynomial, self.high)
        if right == 0:
            self.low = self.high
            return
        middle = (self.low + self.high) / 2
        sign = _sign(self.polynomial, middle)
        if sign == 0:
            self.low = self.high = middle
        elif sign == right:
            self.high = middle
        else:
            self.low = middle

    def value(self, bits: int = ROOT_BITS) -> Fraction:
        """Return the root to a relative 2^−bits, exactly where bisection hits it."""
        while (self.high - self.low) * 2**bits > abs(self.high):
            self.halve()
        return (self.low + self.high) / 2


def positive_roots(p: Polynomial) -> list[Root]:
    """Return the distinct roots in (0, ∞), increasing, in intervals that do not touch.

    Examples
    --------
    >>> six_five_one = (Fraction(6), Fraction(-5), Fraction(1))  # (x − 2)(x − 3)
    >>> [float(root.value()) for root in positive_roots(six_five_one)]
    [2.0, 3.0]
    """
    p = trim(p)
    while p and p[0] == 0:
        p = p[1:]
    if len(p) < 2:
        return []
    chain = _sturm_chain(p)
    if len(chain[-1]) > 1:  # the last element is the common factor of p and p′
        chain = _sturm_chain(squarefree(p))
    whole = chain[0]
    bound = Fraction(1)
    while bound < 1 + max(abs(Fraction(a, whole[-1])) for a in whole[:-1]):
        bound *= 2
    roots: list[Root] = []
    pending = [(Fraction(0), bound, _variations(chain, Fraction(0)), _variations(chain, bound))]
    while pending:
        low, high, at_low, at_high = pending.pop()
        if at_low - at_high == 1:
            roots.append(Root(whole, low, high))
        elif at_low > at_high:
            middle = (low + high) / 2
            at_middle = _variations(chain, middle)
            pending += [(middle, high, at_middle, at_high), (low, middle, at_low, at_middle)]
    for left, right in pairwise(roots):
        while left.high >= right.low:
            left.halve()
            right.halve()
    return roots


def first_negative(p: Polynomial) -> Fraction | None:
    """Return the end of the largest interval [0, x] on which p ≥ 0; None if p ≥ 0 on [0, ∞).

    Examples
    --------
    >>> first_negative((Fraction(0), Fraction(2), Fraction(-1)))  # 2x − x²
    Fraction(2, 1)
    """
    found = _first_descent(p)
    return None if found is None else found[0]


def point_below_zero(p: Polynomial) -> Fraction | None:
    """Return some x > 0 with p(x) < 0, or None if there is none.

    Examples
    --------
    >>> point_below_zero((Fraction(1), Fraction(-1), Fraction(1))) is None
    True
    """
    found = _first_descent(p)
    return None if found is None else found[1]


def _first_descent(p: Polynomial) -> tuple[Fraction, Fraction] | None:
    """The root after which p is negative for the first time, and a point where it is."""
    p = trim(p)
    while p and p[0] == 0:
        p = p[1:]
    if all(a >= 0 for a in p):
        return None
    roots = positive_roots(p)
    samples: list[Fraction] = []
    for k in range(len(roots) + 1):
        if not roots:
            samples.append(Fraction(1))
        elif k == 0:
            # Halve until the interval leaves 0: the lowest root is positive.
            while roots[0].low == 0:
                roots[0].halve()
            samples.append(roots[0].low / 2)
        elif k == len(roots):
            samples.append(2 * roots[-1].high)
        else:
            samples.append((roots[k - 1].high + roots[k].low) / 2)
        if evaluate(p, samples[-1]) < 0:
            start = Fraction(0) if k == 0 else _tidy(roots[k - 1], p)
            return start, samples[-1]
    return None


def _tidy(root: Root, p: Polynomial) -> Fraction:
    """Return the root, as the simple fraction that it is where it is one."""
    value = root.value()
    simple = value.limit_denominator(10**6)
    return simple if evaluate(p, simple) == 0 else value


def is_hurwitz(p: Polynomial) -> bool:
    """Whether all roots have negative real parts (Routh's scheme, exactly).

    Examples
    --------
    >>> is_hurwitz((Fraction(2), Fraction(2), Fraction(1)))  # roots −1 ± i
    True
    >>> is_hurwitz((Fraction(1), Fraction(0), Fraction(1)))  # roots ± i
    False
    """
    p = trim(p)
    if len(p) <= 1:
        return bool(p)
    high = p if p[-1] > 0 else scaled(p, -1)
    upper, lower = list(high[::-1][0::2]), list(high[::-1][1::2])
    while lower:
        if lower[0] <= 0:
            return False
        factor = upper[0] / lower[0]
        rest = [
            a - factor * (lower[k + 1] if k + 1 < len(lower) else 0)
            for k, a in enumerate(upper[1:])
        ]
        upper, lower = lower, rest
    return True
