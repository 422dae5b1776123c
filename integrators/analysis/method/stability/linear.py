"""Linear stability: A, A(α), L, I, and the stability intervals.

All follow from R(z) = N(z)/D(z) on y' = λy (:cite:`hairer1996`, IV.3). A method is A-stable if
|R(z)| ≤ 1 for Re z ≤ 0; by the maximum principle this is

    E(y²) = |D(iy)|² − |N(iy)|² ≥ 0 for all y      and      no pole of R with Re z ≤ 0,

two statements about polynomials with rational coefficients, which Sturm's and Routh's theorems
decide without rounding. Where coefficients are known to some digits only, a statement counts as
true if it is true for some method within these digits; the verdict is then not ``proved``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ...exact import polynomial as poly
from ...exact.polynomial import Polynomial
from ..multistep import a_alpha_of, a_stability_of, as_multistep, stability_interval_of
from ..verdict import Measure, Verdict, as_tableau
from .amplification import StabilityFunction, as_stability_function

__all__ = [
    "a_alpha",
    "a_stability",
    "i_stability",
    "l_stability",
    "stability_interval",
    "stiff_accuracy",
    "strong_a_stability",
]

_ANGLE_BITS = 50
"""Bisections of tan(α/2): the angle is found to 2⁻⁵⁰, far below 12 digits."""


# ---------------------------------------------------------------------- the axis


def i_stability(method: Any) -> Verdict:
    """Decide whether |R(iy)| ≤ 1 on the whole imaginary axis.

    Parameters
    ----------
    method
        A tableau, the name of a scheme, or a stability function.

    Examples
    --------
    >>> print(i_stability("Trapezoid"))
    I-stable: yes (|R(iy)| = 1 for all y: E vanishes)
    >>> bool(i_stability("RK4"))
    False
    """
    return _on_the_axis(as_stability_function(method))


@lru_cache(maxsize=64)  # most of the other verdicts ask for it again
def _on_the_axis(R: StabilityFunction) -> Verdict:
    E = R.axis_polynomial
    certificate: dict[str, Any] = {"E": E, "E slack": R.axis_slack}
    if not E:
        reason = "|R(iy)| = 1 for all y: E vanishes"
        return Verdict("I-stable", True, reason, certificate, proved=R.is_settled)
    if poly.point_below_zero(E) is None:
        reason = f"E = {_in_y(E)} ≥ 0"
        return Verdict("I-stable", True, reason, certificate, proved=R.is_settled)
    # Not as given; perhaps for some method within the digits that are known.
    room = poly.trim([Fraction(t) for t in R.axis_slack])
    below = poly.point_below_zero(poly.add(E, room))
    if below is None:
        reason = "E ≥ 0 within the digits of the coefficients"
        return Verdict("I-stable", True, reason, certificate, proved=False)
    y = math.sqrt(below)
    size = abs(R(1j * y))
    certificate |= {"y": y, "|R(iy)|": size}
    return Verdict("I-stable", False, f"|R({y:.4g}i)| = {_above_one(size)}", certificate)


def a_stability(method: Any) -> Verdict:
    """Decide whether |R(z)| ≤ 1 in the whole left half plane.

    Parameters
    ----------
    method
        A tableau, a multistep method, the name of a scheme, or a stability function.

    Returns
    -------
    Verdict
        Its certificate holds the E-polynomial, the poles, and where it fails a point.

    Examples
    --------
    >>> bool(a_stability("Gauss3"))
    True
    >>> print(a_stability("RK4"))
    A-stable: no (R is a polynomial: |R(z)| grows without bound)
    """
    if (found := as_multistep(method)) is not None:
        return a_stability_of(found)
    R = as_stability_function(method)
    axis = i_stability(R)
    certificate = {**axis.certificate, "poles": R.poles}
    if R.is_polynomial and math.isinf(R.at_infinity[0]):
        reason = "R is a polynomial: |R(z)| grows without bound"
        return Verdict("A-stable", False, reason, certificate)
    if not axis:
        return Verdict("A-stable", False, axis.reason, certificate)
    mirrored = tuple((-1) ** k * d for k, d in enumerate(R.denominator))
    if not poly.is_hurwitz(mirrored):
        worst = complex(min(R.poles, key=lambda z: z.real))
        certificate["pole"] = worst
        where = f"{worst.real:.4g}" + (f" ± {abs(worst.imag):.4g}i" if worst.imag else "")
        return Verdict("A-stable", False, f"R has a pole at z = {where}", certificate)
    reason = f"{axis.reason}, and all poles have Re z > 0"
    return Verdict("A-stable", True, reason, certificate, axis.proved)


def strong_a_stability(method: Any) -> Verdict:
    """Decide whether the method is A-stable with |R(∞)| < 1.

    Parameters
    ----------
    method
        A tableau, the name of a scheme, or a stability function.

    Examples
    --------
    >>> print(strong_a_stability("Crouzeix3"))
    strongly A-stable: yes (A-stable, and R(∞) = -0.732051)
    """
    R = as_stability_function(method)
    A = a_stability(R)
    if not A:
        return Verdict("strongly A-stable", False, "not A-stable", A.certificate, A.proved)
    value, slack = R.at_infinity
    certificate = {**A.certificate, "R(∞)": value}
    holds = abs(value) < 1
    proved = A.proved and abs(value) + slack < 1 if holds else abs(value) - slack >= 1
    reason = f"A-stable, {'and' if holds else 'but'} R(∞) = {value:.6g}"
    return Verdict("strongly A-stable", holds, reason, certificate, proved)


def l_stability(method: Any) -> Verdict:
    """Decide whether the method is A-stable with R(∞) = 0.

    Parameters
    ----------
    method
        A tableau, the name of a scheme, or a stability function.

    Examples
    --------
    >>> bool(l_stability("RadauIIA3")), bool(l_stability("Gauss3"))
    (True, False)
    """
    R = as_stability_function(method)
    A = a_stability(R)
    if not A:
        return Verdict("L-stable", False, "not A-stable", A.certificate, A.proved)
    value, slack = R.at_infinity
    certificate = {**A.certificate, "R(∞)": value, "R(∞) slack": slack}
    if abs(value) <= slack:
        proved = A.proved and R.is_settled
        within = "" if R.is_settled else f" within the digits given (±{slack:.0e})"
        return Verdict("L-stable", True, f"A-stable, and R(∞) = 0{within}", certificate, proved)
    return Verdict("L-stable", False, f"A-stable, but R(∞) = {value:.6g}", certificate)


def stiff_accuracy(method: Any) -> Verdict:
    """Decide whether the last stage is the new value: a_sj = b_j.

    Parameters
    ----------
    method
        A tableau or the name of a scheme.

    Examples
    --------
    >>> print(stiff_accuracy("SDIRK4"))
    stiffly accurate: yes (the last row of A equals b)
    """
    tableau = as_tableau(method)
    difference = tuple(float(a) - float(x) for a, x in zip(tableau.A[-1], tableau.b))
    if tableau.is_stiffly_accurate:
        reason = "the last row of A equals b"
    else:
        j = int(np.argmax(np.abs(difference)))
        reason = f"a[{tableau.stages},{j + 1}] − b[{j + 1}] = {difference[j]:.4g}"
    certificate = {"last row − b": difference}
    return Verdict("stiffly accurate", tableau.is_stiffly_accurate, reason, certificate)


# ---------------------------------------------------------------------- intervals


def stability_interval(method: Any, axis: str = "real") -> Measure:
    """Return the length of the stability interval that starts at 0.

    Parameters
    ----------
    method
        A tableau, a multistep method, the name of a scheme, or a stability function.
    axis
        "real": the largest x with |R| ≤ 1 on [−x, 0]; "imaginary": the largest y with |R| ≤ 1 on
        [−iy, iy].

    Returns
    -------
    Measure
        With ``value`` as a double and ``digits`` correct to more than 30 digits.

    Examples
    --------
    >>> print(stability_interval("RK4"))
    real stability interval: 2.785293563405 (R = 1 at z = -2.785293563405)
    >>> stability_interval("RK4", "imaginary").digits ** 2 - 8 < 1e-30
    True
    >>> stability_interval("ImplicitEuler").value
    inf
    """
    if (found := as_multistep(method)) is not None:
        return stability_interval_of(found, axis)
    R = as_stability_function(method)
    if axis == "real":
        return _real_interval(R)
    if axis == "imaginary":
        return _imaginary_interval(R)
    raise ValueError(f"expected axis 'real' or 'imaginary', got {axis!r}")


def _real_interval(R: StabilityFunction) -> Measure:
    N, D = (tuple((-1) ** k * a for k, a in enumerate(p)) for p in (R.numerator, R.denominator))
    ends = {}  # |R| ≤ 1 is N ≤ D and −N ≤ D, as long as D > 0; at a pole one of them fails
    for reached, sign in (("1", -1), ("−1", 1)):
        difference = poly.add(D, poly.scaled(N, sign))
        ends[reached] = poly.first_negative(difference), difference
    certificate = {f"zero where R = {reached}": p for reached, (_, p) in ends.items()}
    name = "real stability interval"
    found = [(end, reached) for reached, (end, _) in ends.items() if end is not None]
    if not found:
        return Measure(name, math.inf, None, "|R(x)| ≤ 1 for all x ≤ 0", certificate)
    end, reached = min(found)
    if end == 0:
        return Measure(name, 0.0, end, "|R(x)| > 1 for small negative x", certificate)
    value = float(end)
    return Measure(name, value, end, f"R = {reached} at z = {-value:.13g}", certificate)


def _imaginary_interval(R: StabilityFunction) -> Measure:
    E = R.axis_polynomial
    end = poly.first_negative(E)
    name, certificate = "imaginary stability interval", {"E": E}
    if end is None:
        return Measure(name, math.inf, None, "|R(iy)| ≤ 1 for all y", certificate)
    if end == 0:
        return Measure(name, 0.0, end, "|R(iy)| > 1 for small y", certificate)
    digits = _square_root(end)
    value = float(digits)
    return Measure(name, value, digits, f"|R| = 1 at z = ±{value:.13g}i", certificate)


def _square_root(x: Fraction) -> Fraction:
    """√x to 40 digits, or exactly."""
    p, q = math.isqrt(x.numerator), math.isqrt(x.denominator)
    if p * p == x.numerator and q * q == x.denominator:
        return Fraction(p, q)
    scale = 10**80
    return Fraction(math.isqrt(x.numerator * scale // x.denominator), 10**40)


# ---------------------------------------------------------------------- sectors


def a_alpha(method: Any) -> Measure:
    """Return the largest α with |R(z)| ≤ 1 in the sector |arg(−z)| ≤ α.

    Parameters
    ----------
    method
        A tableau, a multistep method, the name of a scheme, or a stability function.

    Returns
    -------
    Measure
        α in degrees: 90 for A-stable methods, 0 for methods that are not stable in any sector.
        In the certificate, ``direction`` is a unit complex number along the limiting ray.

    Notes
    -----
    On the ray z = −r e^{−iα}, |D|² − |N|² is a polynomial in r whose coefficients are rational in
    t = tan(α/2). For each t of a bisection its sign on r ≥ 0 is decided exactly.

    Examples
    --------
    >>> a_alpha("RadauIIA2").value, a_alpha("RK4").value
    (90.0, 0.0)
    """
    if (found := as_multistep(method)) is not None:
        return a_alpha_of(found)
    R = as_stability_function(method)
    A = a_stability(R)
    name = "angle of A(α)-stability"
    if A:
        return Measure(name, 90.0, Fraction(90), "A-stable", {"A": A}, "°")
    if math.isinf(R.at_infinity[0]) or not _stable_on_ray(R, Fraction(0)):
        reason = "not stable on the whole negative real axis"
        return Measure(name, 0.0, Fraction(0), reason, {"A": A}, "°")
    low, high = Fraction(0), Fraction(1)
    for _ in range(_ANGLE_BITS):
        middle = (low + high) / 2
        low, high = (middle, high) if _stable_on_ray(R, middle) else (low, middle)
    alpha = 2 * math.atan(float(low))
    direction = -complex(math.cos(alpha), -math.sin(alpha))
    degrees = math.degrees(alpha)
    reason = f"|R| exceeds 1 on steeper rays; A-stability fails since {A.reason}"
    return Measure(name, degrees, Fraction(degrees), reason, {"A": A, "direction": direction}, "°")


def _stable_on_ray(R: StabilityFunction, t: Fraction) -> bool:
    """Whether the sector of half-angle 2 arctan t is free of poles and |R| ≤ 1 on its border."""
    alpha = 2 * math.atan(float(t))
    for pole in R.poles:
        if pole.real < 0 and abs(math.atan2(pole.imag, -pole.real)) <= alpha:
            return False
    cosine, sine = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    E, room = R.on_ray(cosine, sine)
    return poly.point_below_zero(poly.add(E, room)) is None


# ---------------------------------------------------------------------- words


def _in_y(E: Polynomial) -> str:
    """E as a polynomial in y rather than y²."""
    spread = [Fraction(0)] * (2 * len(E) - 1)
    spread[0::2] = E
    if sum(e != 0 for e in E) <= 4:
        return poly.text(spread, "y")
    first, last = next(k for k, e in enumerate(spread) if e), len(spread) - 1
    lowest, highest = ([*[0] * k, spread[k]] for k in (first, last))
    return f"{poly.text(lowest, 'y')} + … + {poly.text(highest, 'y')}"


def _above_one(size: float) -> str:
    return f"{size:.6g}" if size - 1 > 1e-5 else f"1 + {size - 1:.1e}"
