"""Gauss, Radau and Lobatto methods with any number of stages.

Collocation at nodes c₁ … c_s replaces the solution by a polynomial that satisfies the equation at
these nodes, which is a Runge–Kutta method with

    aᵢⱼ = ∫₀^{cᵢ} ℓⱼ(τ) dτ ,        bⱼ = ∫₀¹ ℓⱼ(τ) dτ                                        (1)

where ℓⱼ are the Lagrange polynomials of the nodes (:cite:`hairer1993`, II.7). The nodes of the
families are zeros of combinations of Legendre polynomials (:cite:`hairer1996`, IV.5). The members
that are not collocation come from (1) through

    bᵢ âᵢⱼ + bⱼ aⱼᵢ = bᵢ bⱼ ,                                                                 (2)

the relation between the two halves of a symplectic partitioned method (:cite:`hairer2006`, VI.4):
Radau IA from collocation on the left Radau nodes, Lobatto IIIB from IIIA, IIIC from IIIC*.

All arithmetic is decimal with guard digits; a result that is a simple fraction is returned as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

from ..tableau import Tableau
from ..tableau.exact import DIGITS, Number, parse, to_decimal

__all__ = [
    "FAMILIES",
    "MAX_STAGES",
    "collocation",
    "gauss",
    "lobatto_iiia",
    "lobatto_iiib",
    "lobatto_iiic",
    "lobatto_iiic_star",
    "lobatto_iiid",
    "radau_ia",
    "radau_iia",
]

MAX_STAGES = 30
"""Largest number of stages that is generated; far beyond what is of use in doubles."""

_SIMPLE = 10**9
"""Denominators up to here count as simple fractions; 50 digits of agreement rule out chance."""

Matrix = list[list[Any]]


# ---------------------------------------------------------------------- the families


@cache
def gauss(s: int) -> Tableau:
    """Gauss method: s stages, order 2s, A- and B-stable, symplectic.

    Parameters
    ----------
    s
        Number of stages, 1 to :data:`MAX_STAGES`.

    Examples
    --------
    >>> gauss(6).order
    12
    """
    with _arithmetic(s):
        c = _interior_nodes(lambda x: _legendre(s, x), s)
        return _tableau(f"Gauss{s}", "butcher1964implicit", _integrals(c, c), c)


@cache
def radau_ia(s: int) -> Tableau:
    """Radau IA method: s stages, order 2s − 1, L- and B-stable, first node 0.

    Parameters
    ----------
    s
        Number of stages, 1 to :data:`MAX_STAGES`. With one stage the node 0 is not the row sum.

    Examples
    --------
    >>> print(radau_ia(2))
      0 | 1/4 -1/4
    2/3 | 1/4 5/12
    ----+---------
        | 1/4  3/4
    """
    with _arithmetic(s):
        c = _left_radau_nodes(s)
        A = _partner(_integrals(c, c), _weights(c))
        return _tableau(f"RadauIA{s}", "ehle1969", A, c)


@cache
def radau_iia(s: int) -> Tableau:
    """Radau IIA method: s stages, order 2s − 1, L- and B-stable, stiffly accurate.

    Parameters
    ----------
    s
        Number of stages, 1 to :data:`MAX_STAGES`; ``radau_iia(3)`` is the method of RADAU5.

    Examples
    --------
    >>> radau_iia(5).order
    9
    """
    with _arithmetic(s):
        c = [1 - x for x in reversed(_left_radau_nodes(s))]
        return _tableau(f"RadauIIA{s}", "ehle1969", _integrals(c, c), c)


@cache
def lobatto_iiia(s: int) -> Tableau:
    """Lobatto IIIA method: s stages, order 2s − 2, A-stable; collocation at Lobatto nodes.

    Parameters
    ----------
    s
        Number of stages, 2 to :data:`MAX_STAGES`; ``lobatto_iiia(2)`` is the trapezoidal rule.

    Examples
    --------
    >>> lobatto_iiia(3).b
    (Fraction(1, 6), Fraction(2, 3), Fraction(1, 6))
    """
    with _arithmetic(s, least=2):
        c = _lobatto_nodes(s)
        return _tableau(f"LobattoIIIA{s}", "ehle1969", _integrals(c, c), c)


@cache
def lobatto_iiib(s: int) -> Tableau:
    """Lobatto IIIB method: s stages, order 2s − 2, A-stable; the symplectic partner of IIIA.

    Parameters
    ----------
    s
        Number of stages, 2 to :data:`MAX_STAGES`. With two stages the nodes are not the row sums.

    Examples
    --------
    >>> lobatto_iiib(4).order
    6
    """
    with _arithmetic(s, least=2):
        c = _lobatto_nodes(s)
        A = _partner(_integrals(c, c), _weights(c))
        return _tableau(f"LobattoIIIB{s}", "ehle1969", A, c)


@cache
def lobatto_iiic(s: int) -> Tableau:
    """Lobatto IIIC method: s stages, order 2s − 2, L- and B-stable, stiffly accurate.

    Parameters
    ----------
    s
        Number of stages, 2 to :data:`MAX_STAGES`.

    Examples
    --------
    >>> lobatto_iiic(3).is_stiffly_accurate
    True
    """
    with _arithmetic(s, least=2):
        c = _lobatto_nodes(s)
        A = _partner(_without_last_column(c), _weights(c))
        return _tableau(f"LobattoIIIC{s}", "ehle1969", A, c)


@cache
def lobatto_iiic_star(s: int) -> Tableau:
    """Lobatto IIIC* method: s stages, order 2s − 2, last stage not used by the others.

    Parameters
    ----------
    s
        Number of stages, 2 to :data:`MAX_STAGES`; with two stages it is Heun's method.

    Examples
    --------
    >>> lobatto_iiic_star(2).is_explicit
    True
    """
    with _arithmetic(s, least=2):
        c = _lobatto_nodes(s)
        return _tableau(f"LobattoIIICStar{s}", "butcher1964integration", _without_last_column(c), c)


@cache
def lobatto_iiid(s: int) -> Tableau:
    """Lobatto IIID method: s stages, order 2s − 2, symplectic; the mean of IIIC and IIIC*.

    Parameters
    ----------
    s
        Number of stages, 2 to :data:`MAX_STAGES`.

    Examples
    --------
    >>> print(lobatto_iiid(2))
    0 | 1/4 -1/4
    1 | 3/4  1/4
    --+---------
      | 1/2  1/2
    """
    with _arithmetic(s, least=2):
        c = _lobatto_nodes(s)
        star = _without_last_column(c)
        pairs = zip(star, _partner(star, _weights(c)))
        A = [[(x + y) / 2 for x, y in zip(*rows)] for rows in pairs]
        return _tableau(f"LobattoIIID{s}", "norsett1981", A, c)


FAMILIES: dict[str, Callable[[int], Tableau]] = {
    "Gauss": gauss,
    "RadauIA": radau_ia,
    "RadauIIA": radau_iia,
    "LobattoIIIA": lobatto_iiia,
    "LobattoIIIB": lobatto_iiib,
    "LobattoIIIC": lobatto_iiic,
    "LobattoIIICStar": lobatto_iiic_star,
    "LobattoIIID": lobatto_iiid,
}
"""The generated families by name; "Gauss4" is ``FAMILIES["Gauss"](4)``."""


def collocation(c: Sequence[Any], name: str = "") -> Tableau:
    """Collocation method with the nodes c, Eq. (1).

    Parameters
    ----------
    c
        Distinct nodes: fractions, strings such as "1/3" or "(3-sqrt(3))/6", or floats.
    name
        Name of the tableau.

    Examples
    --------
    >>> print(collocation(["1/3", 1]))
    1/3 | 5/12 -1/12
      1 |  3/4   1/4
    ----+-----------
        |  3/4   1/4
    """
    nodes = [parse(x) for x in (c.split() if isinstance(c, str) else c)]
    if not nodes:
        raise ValueError("collocation needs at least one node, got none")
    exact = all(isinstance(x, Fraction) for x in nodes)
    with _arithmetic(len(nodes)):
        working: list[Any] = list(nodes) if exact else [to_decimal(x) for x in nodes]
        if len(set(working)) < len(working):
            raise ValueError(
                f"collocation nodes must be distinct, got {', '.join(str(x) for x in nodes)}"
            )
        if exact:
            return Tableau(_integrals(working, working), _weights(working), working, name=name)
        if any(isinstance(x, float) for x in nodes):  # no more digits than the user gave
            A = [[float(a) for a in row] for row in _integrals(working, working)]
            return Tableau(A, [float(b) for b in _weights(working)], nodes, name=name)
        return _tableau(name, "", _integrals(working, working), working)


# ---------------------------------------------------------------------- coefficients


def _arithmetic(s: int, least: int = 1) -> Any:
    """Decimal arithmetic with guard digits for s stages; refuses what is no number of stages."""
    if isinstance(s, bool) or not isinstance(s, int):
        raise TypeError(f"the number of stages must be an integer, got {s!r}")
    if not least <= s <= MAX_STAGES:
        raise ValueError(
            f"this family has methods with {least} to {MAX_STAGES} stages here, got s = {s}"
        )
    return localcontext(Context(prec=DIGITS + 20 + 2 * s))


def _integrals(nodes: Sequence[Any], ends: Sequence[Any]) -> Matrix:
    """∫₀^e ℓⱼ for each end e (row) and node j (column)."""
    columns = []
    for j, cj in enumerate(nodes):
        coefficients: list[Any] = [nodes[0] * 0 + 1]
        for k, ck in enumerate(nodes):
            if k != j:  # times (x − ck)/(cj − ck)
                shifted = [0 * cj, *coefficients]
                scaled = [*(ck * a for a in coefficients), 0 * cj]
                coefficients = [(x - y) / (cj - ck) for x, y in zip(shifted, scaled)]
        primitive = [a / (m + 1) for m, a in enumerate(coefficients)]
        columns.append([_horner(primitive, e) * e for e in ends])
    return [list(row) for row in zip(*columns)]


def _horner(coefficients: Sequence[Any], x: Any) -> Any:
    total = 0 * x
    for a in reversed(coefficients):
        total = total * x + a
    return total


def _weights(nodes: Sequence[Any]) -> list[Any]:
    return _integrals(nodes, [nodes[0] * 0 + 1])[0]


def _partner(A: Matrix, b: Sequence[Any]) -> Matrix:
    """Solve Eq. (2) for the other half."""
    s = len(b)
    return [[b[j] - b[j] * A[j][i] / b[i] for j in range(s)] for i in range(s)]


def _without_last_column(nodes: Sequence[Any]) -> Matrix:
    """Stages by collocation at all nodes but the last: Lobatto IIIC*."""
    return [[*row, Decimal(0)] for row in _integrals(nodes[:-1], nodes)]


def _tableau(name: str, reference: str, A: Matrix, c: Sequence[Any]) -> Tableau:
    # Radau IA with one stage and Lobatto IIIB with two have nodes that are not the row sums.
    check = name not in ("RadauIA1", "LobattoIIIB2")
    rows = [[_tidy(a) for a in row] for row in A]
    weights, nodes = [_tidy(b) for b in _weights(c)], [_tidy(x) for x in c]
    return Tableau(rows, weights, nodes, name=name, reference=reference, check=check)


def _tidy(x: Decimal) -> Number:
    """Return the simple fraction that x is, or x rounded to the digits that count."""
    fraction = Fraction(x).limit_denominator(_SIMPLE)
    if abs(Fraction(x) - fraction) < Fraction(1, 10 ** (DIGITS - 5)):
        return fraction
    with localcontext(prec=DIGITS):
        return +x


# ---------------------------------------------------------------------- nodes


def _legendre(n: int, x: Any) -> tuple[Any, Any]:
    """Pₙ(x) and its derivative, for |x| < 1."""
    previous, value = 0 * x, 0 * x + 1
    for k in range(n):
        previous, value = value, ((2 * k + 1) * x * value - k * previous) / (k + 1)
    return value, n * (x * value - previous) / (x * x - 1)


def _left_radau_nodes(s: int) -> list[Decimal]:
    """0, and the zeros of (P_{s−1} + P_s)(2x − 1) inside (0, 1)."""

    def function(x: Any) -> tuple[Any, Any]:
        (p, dp), (q, dq) = _legendre(s - 1, x), _legendre(s, x)
        return p + q, dp + dq

    return [Decimal(0), *_interior_nodes(function, s - 1)]


def _lobatto_nodes(s: int) -> list[Decimal]:
    """0, 1, and the zeros of P′_{s−1}(2x − 1) between; P″ follows from Legendre's equation."""
    n = s - 1

    def function(x: Any) -> tuple[Any, Any]:
        p, dp = _legendre(n, x)
        return dp, (2 * x * dp - n * (n + 1) * p) / (1 - x * x)

    return [Decimal(0), *_interior_nodes(function, s - 2), Decimal(1)]


def _interior_nodes(function: Callable[[Any], tuple[Any, Any]], count: int) -> list[Decimal]:
    """All zeros in (−1, 1) of a function that returns value and slope, mapped to (0, 1)."""
    if count == 0:
        return []
    m = 40 * count + 41  # odd, so that the zero of odd functions at 0 is not on the grid
    grid = [-math.cos(math.pi * k / m) for k in range(1, m)]
    values = [function(x)[0] for x in grid]
    zeros = [
        _newton(function, _bisect(function, grid[k], grid[k + 1]))
        for k in range(len(grid) - 1)
        if values[k] * values[k + 1] < 0
    ]
    if len(zeros) != count:
        raise ArithmeticError(f"expected {count} nodes, found {len(zeros)}")
    return [(1 + x) / 2 for x in zeros]


def _bisect(function: Callable[[Any], tuple[Any, Any]], left: float, right: float) -> float:
    sign = function(left)[0] > 0
    for _ in range(50):
        middle = (left + right) / 2
        if (function(middle)[0] > 0) == sign:
            left = middle
        else:
            right = middle
    return (left + right) / 2


def _newton(function: Callable[[Any], tuple[Any, Any]], start: float) -> Decimal:
    """Digits double each time: five steps from a double give more than 400 in exact arithmetic."""
    x = Decimal(start)
    for _ in range(5):
        value, slope = function(x)
        x -= value / slope
    return x
