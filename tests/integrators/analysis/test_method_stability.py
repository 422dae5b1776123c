"""Linear stability against closed forms, theorems and direct evaluation, over the catalogue."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from integrators import Tableau, catalogue
from integrators.analysis import (
    a_alpha,
    a_stability,
    adjoint,
    dispersion,
    i_stability,
    l_stability,
    stability_function,
    stability_interval,
    stiff_accuracy,
    strong_a_stability,
)
from integrators.analysis.exact import polynomial as poly
from integrators.analysis.exact.arithmetic import plus

ENTRIES = catalogue.entries()
EXPLICIT = [e for e in ENTRIES if e.kind == "explicit"]
IMPLICIT = [e for e in ENTRIES if e.kind != "explicit"]

ALMOST_DAMPED = {"ESDIRK8516": 1.4e-4}
"""|R(∞)| of a method that is nearly L-stable."""


def of(entries):
    return pytest.mark.parametrize("entry", entries, ids=[e.name for e in entries])


def pade(j, k):
    """Numerator and denominator of the Padé approximation of exp, in closed form."""

    def coefficients(j, k, sign):
        f = math.factorial
        return tuple(
            Fraction(f(j) * f(j + k - m), f(j + k) * f(m) * f(j - m)) * sign**m
            for m in range(j + 1)
        )

    return coefficients(j, k, 1), coefficients(k, j, -1)


# ---------------------------------------------------------------------- the function itself


@of(ENTRIES)
def test_function_agrees_with_a_linear_solve(entry):
    A, b, _ = entry.tableau.arrays
    R = stability_function(entry.tableau)
    rng = np.random.default_rng(0)
    for z in rng.uniform(-3, 3, 8) + 1j * rng.uniform(-3, 3, 8):
        direct = 1 + z * (b @ np.linalg.solve(np.eye(b.size) - z * A, np.ones(b.size)))
        # ESDIRK8516 loses four digits in Horner's rule: its poles have multiplicity fifteen.
        assert R(z) == pytest.approx(direct, rel=1e-9)


PADE = {
    "Gauss": lambda s: (s, s),
    "RadauIA": lambda s: (s - 1, s),
    "RadauIIA": lambda s: (s - 1, s),
    "LobattoIIIA": lambda s: (s - 1, s - 1),
    "LobattoIIIB": lambda s: (s - 1, s - 1),
    "LobattoIIIC": lambda s: (s - 2, s),
    "LobattoIIICStar": lambda s: (s, s - 2),
}


@of([e for e in ENTRIES if e.family in PADE])
def test_families_have_pade_approximations(entry):
    """Hairer and Wanner, IV.5, table 5.13: exactly, although A is irrational."""
    R = stability_function(entry.tableau)
    j, k = PADE[entry.family](entry.stages)
    assert R.is_exact
    assert (R.numerator, R.denominator) == pade(j, k)
    assert R.order == j + k
    f = math.factorial
    constant = Fraction((-1) ** k * f(j) * f(k), f(j + k) * f(j + k + 1))
    assert R.error_constant == constant


@of(ENTRIES)
def test_order_of_the_function(entry):
    R = stability_function(entry.tableau)
    assert R.order >= entry.order
    for k, r in enumerate(R.series(entry.order + 1)):
        assert float(r) == pytest.approx(1 / math.factorial(k), rel=1e-8)


@of(EXPLICIT)
def test_explicit_methods_are_not_a_stable(entry):
    R = stability_function(entry.tableau)
    assert R.is_polynomial
    for verdict in (a_stability(R), l_stability(R), strong_a_stability(R), i_stability(R)):
        assert not verdict
    assert a_alpha(R).value == 0
    assert abs(R(1j * i_stability(R).certificate["y"])) > 1


def test_embedded_weights():
    tableau = catalogue.get("HeunEuler21")
    assert str(stability_function(tableau, tableau.b_hat)) == "1 + z"
    assert stability_function(tableau, tableau.b_hat).order == 1


# ---------------------------------------------------------------------- A, L and the others


@of(IMPLICIT)
def test_verdicts_agree_with_the_catalogue(entry):
    declared = entry.stability.split(", ")
    A, L = a_stability(entry.tableau), l_stability(entry.tableau)
    assert bool(A) == ("A" in declared or "L" in declared)
    if entry.name in ALMOST_DAMPED:
        value, slack = stability_function(entry.tableau).at_infinity
        assert abs(value) == pytest.approx(ALMOST_DAMPED[entry.name], rel=0.05)
        assert slack < 1e-6  # the digits given do not explain it
        assert not L
        assert strong_a_stability(entry.tableau)
    else:
        assert bool(L) == ("L" in declared)
        assert not L or strong_a_stability(entry.tableau)
    assert (a_alpha(entry.tableau).value == 90) == bool(A)
    assert not A or i_stability(entry.tableau)


@of(IMPLICIT)
def test_certificates_can_be_checked(entry):
    """E(y²) = |D|² − |N|², here by complex arithmetic; failures are points with |R| > 1."""
    R = stability_function(entry.tableau)
    verdict = a_stability(R)
    E = [float(e) for e in verdict.certificate["E"]]
    for y in (0.3, 1.0, 2.5):
        D = np.polyval([float(d) for d in reversed(R.denominator)], 1j * y)
        N = np.polyval([float(n) for n in reversed(R.numerator)], 1j * y)
        value = sum(e * y ** (2 * k) for k, e in enumerate(E))
        room = sum(t * y ** (2 * k) for k, t in enumerate(R.axis_slack))  # digits not given
        assert value == pytest.approx(abs(D) ** 2 - abs(N) ** 2, abs=1e-12 * abs(D) ** 2 + room)
    if not verdict:
        assert abs(R(1j * verdict.certificate["y"])) > 1


@pytest.mark.parametrize("s", [1, 2, 3, 4, 5])
def test_families_of_any_size(s):
    """Ehle's theorem: Padé (j, k) is A-stable exactly for k − 2 ≤ j ≤ k."""
    assert a_stability(f"Gauss{s}")
    assert not strong_a_stability(f"Gauss{s}")
    assert l_stability(f"RadauIA{s}")
    assert l_stability(f"RadauIIA{s}")
    assert stiff_accuracy(f"RadauIIA{s}")
    if s > 1:
        assert a_stability(f"LobattoIIIA{s}")
        assert not l_stability(f"LobattoIIIA{s}")
        assert stiff_accuracy(f"LobattoIIIA{s}")
        assert a_stability(f"LobattoIIIB{s}")
        assert l_stability(f"LobattoIIIC{s}")
        assert stiff_accuracy(f"LobattoIIIC{s}")
        assert not a_stability(f"LobattoIIICStar{s}")
        assert a_stability(f"LobattoIIID{s}")


def test_pole_in_the_left_half_plane():
    """|R| = 1 on the axis is not enough: R = (1 − z/2)/(1 + z/2) has its pole at −2."""
    backwards = Tableau([["-1/2"]], ["-1"])
    assert i_stability(backwards)
    verdict = a_stability(backwards)
    assert not verdict
    assert verdict.certificate["pole"] == pytest.approx(-2)
    assert "pole" in str(verdict)


def test_cancelled_factors_do_not_count():
    """An unused stage with an unstable pole changes nothing."""
    padded = Tableau([["1/2", 0], [0, -1]], [1, 0])
    assert str(stability_function(padded)) == "(1 + 1/2 z) / (1 - 1/2 z)"
    assert a_stability(padded)
    # Here both stages are used, but their contributions to the pole at −1 cancel.
    twice = Tableau([["1/2", 0, 0], [0, -1, 0], [0, 0, -1]], [1, 1, -1])
    assert a_stability(twice)


def test_published_digits_are_not_overread():
    """√2 to twelve digits leaves R(∞) = 3e-12, which is 0 as far as these digits tell."""
    verdict = l_stability("Billington32")
    assert verdict
    assert not verdict.proved
    assert "digits" in verdict.reason
    assert l_stability("Alexander2").proved
    assert strong_a_stability("Gauss3").proved
    assert strong_a_stability("Crouzeix3").proved


# ---------------------------------------------------------------------- intervals


KNOWN = {
    "ExplicitEuler": (2, 0),
    "Heun": (2, 0),
    "Kutta3": (2.5127453266183286, math.sqrt(3)),
    "RK4": (2.785293563405282, math.sqrt(8)),
    "RK38": (2.785293563405282, math.sqrt(8)),
    "ImplicitEuler": (math.inf, math.inf),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_intervals(name):
    real, imaginary = KNOWN[name]
    assert stability_interval(name).value == pytest.approx(real, rel=1e-13)
    assert stability_interval(name, "imaginary").value == pytest.approx(imaginary, rel=1e-13)


def test_figures_of_the_fourth_order_method():
    assert f"{stability_interval('RK4').value:.10f}" == "2.7852935634"
    assert f"{stability_interval('RK4', 'imaginary').value:.10f}" == "2.8284271247"


@of(ENTRIES)
def test_intervals_end_where_the_modulus_is_one(entry):
    R = stability_function(entry.tableau)
    real = stability_interval(R)
    if math.isfinite(real.value) and real.value > 0:
        x = -real.digits
        N, D = poly.evaluate(R.numerator, x), poly.evaluate(R.denominator, x)
        assert abs(abs(N / D) - 1) < Fraction(1, 10**25)
        assert abs(R(-real.value * (1 + 1e-6))) > 1
    inside = np.linspace(-min(real.value, 1e3), 0, 2001)
    assert np.max(np.abs(R(inside))) <= 1 + 1e-12
    imaginary = stability_interval(R, "imaginary")
    if math.isfinite(imaginary.value) and imaginary.value > 0:
        E = R.axis_polynomial
        scale = max(abs(e) * imaginary.digits ** (2 * k) for k, e in enumerate(E))
        assert abs(poly.evaluate(E, imaginary.digits**2)) < scale * Fraction(1, 10**25)
        # E changes sign there: 12 digits are certain
        beyond = Fraction(imaginary.value) ** 2 * (1 + Fraction(1, 10**11))
        before = Fraction(imaginary.value) ** 2 * (1 - Fraction(1, 10**11))
        assert poly.evaluate(E, beyond) < 0 < poly.evaluate(E, before)


def test_angle_of_a_sector():
    """1/(1 − z + z²/2 − z³/6), the adjoint of Kutta's method, against a scan in doubles."""
    R = stability_function(adjoint("Kutta3"))
    alpha = a_alpha(R)
    r = np.geomspace(1e-2, 1e2, 4000)
    for angle in (alpha.value - 1e-3, alpha.value + 1e-3):
        ray = -r * np.exp(-1j * math.radians(angle))
        assert (np.max(np.abs(R(ray))) <= 1 + 1e-14) == (angle < alpha.value)
    assert alpha.value == pytest.approx(88.23, abs=5e-3)
    assert 0 < a_alpha(adjoint("RK4")).value < alpha.value


# ---------------------------------------------------------------------- oscillations


@of(ENTRIES)
def test_leading_terms_of_phase_and_amplitude(entry):
    """The logarithm of R(iy) in many digits at a small y, against the predicted terms."""
    R = stability_function(entry.tableau)
    curve = dispersion(R)
    assert min(curve.phase_order, curve.amplitude_order or 99) == R.order
    with mpmath.workdps(120):
        y = mpmath.mpf(10) ** -4
        N, D = (
            mpmath.polyval([mpmath.mpf(a.numerator) / a.denominator for a in reversed(p)], 1j * y)
            for p in (R.numerator, R.denominator)
        )
        logarithm = mpmath.log(N / D)
        for constant, order, value in (
            (curve.phase_constant, curve.phase_order, y - logarithm.imag),
            (curve.amplitude_constant, curve.amplitude_order, -logarithm.real),
        ):
            if order is None:
                assert value == pytest.approx(0, abs=1e-100)
            elif R.is_settled and abs(value) > 1e-50:  # else y^k hides behind unknown digits
                expected = mpmath.mpf(constant.numerator) / constant.denominator * y ** (order + 1)
                assert float(value / expected) == pytest.approx(1, abs=1e-3)


def test_symmetric_methods_lose_no_amplitude():
    for name in ("Gauss3", "LobattoIIIA4", "LobattoIIID3"):
        curve = dispersion(name)
        assert curve.amplitude_order is None
        assert np.max(np.abs(curve.amplitude_loss)) < 1e-13


# ---------------------------------------------------------------------- mutations


@of([e for e in ENTRIES if e.family in PADE and "L" in e.stability])
def test_one_wrong_coefficient_is_noticed(entry):
    """b₁ + 1e-3: R(∞) is not 0 any more, and R has lost its order."""
    tableau = entry.tableau
    b = [plus(tableau.b[0], Fraction(1, 1000)), *tableau.b[1:]]
    wrong = Tableau(tableau.A, b, tableau.c, check=False)
    assert not l_stability(wrong)
    assert stability_function(wrong).order == 0
