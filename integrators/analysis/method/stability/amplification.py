"""The stability function R(z) of a Runge–Kutta method, exactly.

One step on y' = λy multiplies y by R(hλ), where (:cite:`hairer1996`, IV.3)

    R(z) = 1 + z bᵀ(I − zA)⁻¹𝟙 = N(z)/D(z),    D(z) = det(I − zA).                           (1)

Its power series is 1 + Σ rₖ zᵏ with rₖ = bᵀAᵏ⁻¹𝟙, and N, of degree s at most, is D times that
series. On the imaginary axis everything follows from the *E-polynomial*

    E(y²) = |D(iy)|² − |N(iy)|² ,                                                            (2)

which is nonnegative exactly where |R(iy)| ≤ 1.

Fractions give fractions. Irrational coefficients carry 60 digits, and a coefficient of N or D that
agrees with a simple fraction to far more digits than chance allows is that fraction: the stability
functions of Gauss, Radau and Lobatto methods come out as the Padé approximations they are. What
is known to fewer digits has a *slack*, so that nobody reads more into the coefficients than they
hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....tableau import MAX_ORDER, Tableau
from ...exact import polynomial as poly
from ...exact.polynomial import Polynomial
from ...exact.stability_coefficients import rational_coefficients, recognised, slacks
from ..reducibility import without_unused_stages
from ..verdict import as_linear

__all__ = ["StabilityFunction", "as_stability_function", "stability_function"]

_SETTLED = 1e-40
"""Slacks below this come from irrational numbers in full length, not from published digits."""


@dataclass(frozen=True, repr=False)
class StabilityFunction:
    """R(z) = N(z)/D(z) with exact or many-digit coefficients, constant terms first.

    Parameters
    ----------
    numerator, denominator
        Coefficients as fractions; decimals of many digits are stored as the fractions they are.
    numerator_slack, denominator_slack
        How much the digits that were not given can move each coefficient; 0 for exact ones.
    method_order
        Order of the method it belongs to, which R shares at least.
    series_slack
        The same for the coefficients of the power series; beyond its end they count as exact.
    name
        Name of the method.
    diagonal
        Diagonal of A where A is triangular: its reciprocals are the poles.

    Examples
    --------
    >>> R = stability_function("ImplicitMidpoint")
    >>> print(R)
    (1 + 1/2 z) / (1 - 1/2 z)
    >>> float(R(-2.0)), float(abs(R(5j)))
    (0.0, 1.0)
    """

    numerator: Polynomial
    denominator: Polynomial
    numerator_slack: tuple[float, ...]
    denominator_slack: tuple[float, ...]
    series_slack: tuple[float, ...] = ()
    method_order: int = 0
    name: str = ""
    diagonal: tuple[float, ...] | None = None

    # ---------------------------------------------------------------- values

    def __call__(self, z: Any) -> Any:
        """Return R(z) for a number or an array, in doubles."""
        z = np.asarray(z)
        N, D = (np.polynomial.polynomial.polyval(z, c) for c in self._doubles)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = N / D
        return value if value.ndim else value[()]

    @cached_property
    def _doubles(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return (
            np.array([float(a) for a in self.numerator]),
            np.array([float(a) for a in self.denominator]),
        )

    @property
    def is_exact(self) -> bool:
        """Whether every coefficient is known exactly."""
        return not any(self.numerator_slack) and not any(self.denominator_slack)

    @property
    def is_settled(self) -> bool:
        """Whether slacks are too small to matter: exact, or irrational with tens of digits."""
        return max((*self.numerator_slack, *self.denominator_slack)) < _SETTLED

    @property
    def is_polynomial(self) -> bool:
        """Whether R has no poles, as for explicit methods."""
        return len(self.denominator) == 1

    @cached_property
    def poles(self) -> NDArray[np.complex128]:
        """Zeros of D, in doubles, nearest first."""
        if self.diagonal is not None:  # a multiple zero is ill-conditioned; here it is known
            found = np.array([1 / a for a in self.diagonal if a != 0], dtype=np.complex128)
            return found[np.argsort(np.abs(found))]
        return _roots(self._doubles[1])

    @cached_property
    def zeros(self) -> NDArray[np.complex128]:
        """Zeros of N, in doubles, nearest first."""
        return _roots(self._doubles[0])

    @cached_property
    def at_infinity(self) -> tuple[float, float]:
        """R(∞), infinite if the degree of N exceeds that of D, and its slack."""
        n = len(self.denominator) - 1
        lead, slack = self.denominator[-1], self.denominator_slack[n]
        value = self.numerator[n] / lead if n < len(self.numerator) else Fraction(0)
        above = zip(self.numerator[n + 1 :], self.numerator_slack[n + 1 :])
        if any(abs(a) > t for a, t in above):
            return float("inf"), 0.0
        own = self.numerator_slack[n] if n < len(self.numerator_slack) else 0.0
        return float(value), (own + abs(float(value)) * slack) / abs(float(lead))

    # ---------------------------------------------------------------- against exp

    def series(self, count: int) -> list[Fraction]:
        """Return the first coefficients of the power series of R.

        Examples
        --------
        >>> [str(r) for r in stability_function("ImplicitMidpoint").series(4)]
        ['1', '1', '1/2', '1/4']
        """
        N, D = self.numerator, self.denominator
        terms: list[Fraction] = []
        for k in range(count):
            known = sum((D[j] * terms[k - j] for j in range(1, min(k, len(D) - 1) + 1)), Fraction())
            terms.append(((N[k] if k < len(N) else 0) - known) / D[0])
        return terms

    @cached_property
    def _order_and_constant(self) -> tuple[int, Fraction | None]:
        # R − exp = O(z^{q+1}); a rational function of degrees (m, n) has q ≤ m + n.
        most = len(self.numerator) + len(self.denominator)
        for k, r in enumerate(self.series(most + 1)):
            difference = Fraction(1, math.factorial(k)) - r
            if k > self.method_order and abs(difference) > self.series_room(k):
                return k - 1, difference
        return self.method_order, None  # the first difference is below all digits given

    def series_room(self, k: int) -> float:
        """How much the digits that were not given can move coefficient k of the power series."""
        return self.series_slack[k] if k < len(self.series_slack) else 0.0

    @property
    def order(self) -> int:
        """Largest q with R(z) − eᶻ = O(z^{q+1}): at least the order of the method.

        Examples
        --------
        >>> stability_function("Gauss3").order
        6
        """
        return self._order_and_constant[0]

    @property
    def error_constant(self) -> Fraction | None:
        """C in eᶻ − R(z) = C z^{q+1} + … (:cite:`hairer1996`, IV.3).

        None if it is too small for the digits of the coefficients, at orders beyond 40.

        Examples
        --------
        >>> stability_function("RK4").error_constant
        Fraction(1, 120)
        """
        return self._order_and_constant[1]

    # ---------------------------------------------------------------- on the axes

    @cached_property
    def axis_polynomial(self) -> Polynomial:
        """E of Eq. (2) as a polynomial in y²; coefficients within their slack are 0.

        Examples
        --------
        >>> poly.text(stability_function("RK4").axis_polynomial, "y²")
        '1/72 y²³ - 1/576 y²⁴'
        """
        raw, slack = self._axis
        # |R(iy)|² = 1 + O(y^{q+1}) for an approximation of order q: no power below that remains.
        first = self.method_order // 2 + 1
        zero = Fraction(0)
        return poly.trim(
            [zero if k < first or abs(e) <= slack[k] else e for k, e in enumerate(raw)]
        )

    @cached_property
    def axis_slack(self) -> tuple[float, ...]:
        """Slack of each coefficient of the E-polynomial; all 0 for exact methods."""
        return self._axis[1]

    @cached_property
    def _axis(self) -> tuple[Polynomial, tuple[float, ...]]:
        D2, D_slack = _modulus_squared(self.denominator, self.denominator_slack)
        N2, N_slack = _modulus_squared(self.numerator, self.numerator_slack)
        count = max(len(D2), len(N2))
        E = [_at(D2, k) - _at(N2, k) for k in range(count)]
        return tuple(E), tuple(_at(D_slack, k) + _at(N_slack, k) for k in range(count))

    def on_ray(self, cosine: Fraction, sine: Fraction) -> tuple[Polynomial, Polynomial]:
        """|D|² − |N|² at z = −r(cosine − i sine) as a polynomial in r, and a bound of its slack."""
        total: Polynomial = ()
        room = np.zeros(1)
        for sign, p, slack in (
            (1, self.denominator, self.denominator_slack),
            (-1, self.numerator, self.numerator_slack),
        ):
            total = poly.add(total, poly.scaled(_ray_modulus_squared(p, cosine, sine), sign))
            opened = np.array(slack)
            both = np.convolve(2 * np.array([abs(float(a)) for a in p]) + opened, opened)
            longer = np.zeros(max(room.size, both.size))
            longer[: room.size] += room
            longer[: both.size] += both
            room = longer
        return total, poly.trim([Fraction(float(x)) for x in room])

    def __repr__(self) -> str:
        return f"<StabilityFunction {self.name}: {self}>"

    def __str__(self) -> str:
        N, D = poly.text(self.numerator), poly.text(self.denominator)
        return N if self.is_polynomial else f"({N}) / ({D})"


def stability_function(method: Any, weights: Sequence[Any] | None = None) -> StabilityFunction:
    """Return the stability function of a method, Eq. (1).

    Parameters
    ----------
    method
        A tableau, a Rosenbrock method, or the name of a scheme.
    weights
        Weights to use in place of b, for instance ``b_hat``.

    Examples
    --------
    >>> print(stability_function("RK4"))
    1 + z + 1/2 z² + 1/6 z³ + 1/24 z⁴
    >>> print(stability_function("RadauIIA3"))
    (1 + 2/5 z + 1/20 z²) / (1 - 3/5 z + 3/20 z² - 1/60 z³)
    """
    tableau = as_linear(method)
    A, b = without_unused_stages(tableau, weights)
    N, D, exact = rational_coefficients(A, b)
    N_slack: tuple[float, ...] = (0.0,) * len(N)
    D_slack: tuple[float, ...] = (0.0,) * len(D)
    series_slack: tuple[float, ...] = ()
    if not exact:
        N_open, D_open, series_slack = slacks(A, b)
        N, N_slack = recognised(N, N_open)
        D, D_slack = recognised(D, D_open)
        if not any(N_slack) and not any(D_slack):
            series_slack = ()
    order = tableau.order if weights is None else _order_with(tableau, weights)
    triangular = all(a == 0 for i, row in enumerate(A) for a in row[i + 1 :])
    return _reduced(
        StabilityFunction(
            N,
            D,
            N_slack,
            D_slack,
            series_slack,
            order,
            tableau.name,
            tuple(float(A[i][i]) for i in range(len(b))) if triangular else None,
        )
    )


def as_stability_function(method: Any) -> StabilityFunction:
    """Return R itself, or the stability function of a tableau or a named scheme."""
    return method if isinstance(method, StabilityFunction) else stability_function(method)


def _order_with(tableau: Tableau, weights: Sequence[Any]) -> int:
    p = 0
    while p < MAX_ORDER and all(c.holds for c in tableau.order_conditions(p + 1, weights)):
        p += 1
    return p


# ---------------------------------------------------------------------- helpers


def _reduced(R: StabilityFunction) -> StabilityFunction:
    """Drop vanishing leading coefficients and, where numbers are exact, common factors."""
    N, D, N_slack, D_slack = R.numerator, R.denominator, R.numerator_slack, R.denominator_slack
    while len(D) > 1 and D[-1] == 0 and D_slack[-1] == 0:
        D, D_slack = D[:-1], D_slack[:-1]
    while len(N) > 1 and N[-1] == 0 and N_slack[-1] == 0:
        N, N_slack = N[:-1], N_slack[:-1]
    diagonal = R.diagonal
    if not any(N_slack) and not any(D_slack):
        common = poly.common_factor(N, D)
        if len(common) > 1:
            N, D = poly.quotient(N, common), poly.quotient(D, common)
            N, D = poly.scaled(N, 1 / D[0]), poly.scaled(D, 1 / D[0])
            N_slack, D_slack, diagonal = (0.0,) * len(N), (0.0,) * len(D), None
    return replace(
        R,
        numerator=N,
        denominator=D,
        numerator_slack=N_slack,
        denominator_slack=D_slack,
        diagonal=diagonal,
    )


def _modulus_squared(p: Polynomial, slack: Sequence[float]) -> tuple[Polynomial, tuple[float, ...]]:
    """|p(iy)|² as a polynomial in y², and its slack."""
    even = [(-1) ** j * a for j, a in enumerate(p[0::2])]
    odd = [(-1) ** j * a for j, a in enumerate(p[1::2])]
    zero = Fraction(0)
    total = poly.add(poly.multiply(even, even), (zero, *poly.multiply(odd, odd)))
    count = len(p)
    padded = tuple(_at(total, k) for k in range(count))
    room = np.zeros(2 * count + 2)
    for part, start in ((0, 0), (1, 1)):
        sizes = np.array([abs(float(a)) for a in p[part::2]])
        open_ = np.array(slack[part::2])
        if sizes.size:
            room[start : start + 2 * sizes.size - 1] += 2 * np.convolve(sizes, open_)
            room[start : start + 2 * sizes.size - 1] += np.convolve(open_, open_)
    return padded, tuple(float(x) for x in room[:count])


def _ray_modulus_squared(p: Polynomial, cosine: Fraction, sine: Fraction) -> Polynomial:
    real: list[Fraction] = []
    imaginary: list[Fraction] = []
    c, s = Fraction(1), Fraction(0)  # (−cosine + i sine)ᵏ
    for a in p:
        real.append(a * c)
        imaginary.append(a * s)
        c, s = -(c * cosine + s * sine), c * sine - s * cosine
    return poly.add(poly.multiply(real, real), poly.multiply(imaginary, imaginary))


def _at(values: Sequence[Any], k: int) -> Any:
    return values[k] if k < len(values) else 0


def _roots(coefficients: NDArray[np.float64]) -> NDArray[np.complex128]:
    # Reciprocals of the zeros of the reversed polynomial: leading coefficients may be tiny.
    trimmed = np.trim_zeros(coefficients, "b")
    reciprocal = np.roots(trimmed)
    with np.errstate(divide="ignore"):
        found = 1 / reciprocal[reciprocal != 0]
    ordered: NDArray[np.complex128] = found[np.argsort(np.abs(found))].astype(np.complex128)
    return ordered
