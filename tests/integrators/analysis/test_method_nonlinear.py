"""Algebraic, B-, AN-stability and SSP coefficients against the literature and direct checks."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import root

from integrators import Tableau, catalogue
from integrators.analysis import (
    algebraic_stability,
    an_stability,
    irreducible,
    nonlinear_matrix,
    ssp_coefficient,
    stability_function,
)
from integrators.analysis.exact.arithmetic import minus

ENTRIES = catalogue.entries()
B_STABLE = {"Gauss", "RadauIA", "RadauIIA", "LobattoIIIC", "LobattoIIID"}
FAMILIES = B_STABLE | {"LobattoIIIA", "LobattoIIIB", "LobattoIIICStar"}


def of(entries):
    return pytest.mark.parametrize("entry", entries, ids=[e.name for e in entries])


# ---------------------------------------------------------------------- algebraic stability


@of(ENTRIES)
def test_algebraic_stability(entry):
    verdict = algebraic_stability(entry.tableau)
    assert bool(verdict) == ("B" in entry.stability.split(", "))
    if entry.family in FAMILIES:
        assert bool(verdict) == (entry.family in B_STABLE)
    if entry.kind == "explicit":
        assert not verdict
    M = np.array(verdict.certificate["M"], dtype=float)
    if "direction" in verdict.certificate:
        v = verdict.certificate["direction"]
        assert v @ M @ v < 0
    elif "negative weight" in verdict.certificate:
        assert irreducible(entry.tableau).b[verdict.certificate["negative weight"] - 1] < 0
    else:
        assert verdict.certificate["eigenvalues"].min() > -1e-13


@of([e for e in ENTRIES if e.family == "RadauIIA" or e.family == "LobattoIIIC"])
def test_matrix_has_rank_one(entry):
    """M = v vᵀ for Radau IIA and Lobatto IIIC (Hairer and Wanner, IV.12)."""
    M, room = nonlinear_matrix(entry.tableau)
    exact = all(
        abs(M[0][0] * M[i][j] - M[0][i] * M[0][j]) <= room
        for i in range(entry.stages)
        for j in range(entry.stages)
    )
    assert exact
    assert "rank 1" in algebraic_stability(entry.tableau).reason


def test_contractivity_is_kept_or_lost():
    """Two solutions of y' = −y³ under a large step: B-stable methods bring them closer."""
    h = 2.0

    def step(tableau, y0):
        A, b, _ = tableau.arrays
        found = root(lambda Y: Y - y0 + h * A @ Y**3, np.zeros(b.size), tol=1e-12)
        assert found.success
        return y0 - h * b @ found.x**3

    def gap(name):
        return abs(step(catalogue.get(name), 1.5) - step(catalogue.get(name), 1.0))

    for name in ("RadauIIA2", "ImplicitMidpoint", "LobattoIIIC2", "Crouzeix3"):
        assert algebraic_stability(name)
        assert gap(name) <= 0.5
    assert not algebraic_stability("Trapezoid")
    assert gap("Trapezoid") > 0.5


def test_reducible_methods_are_reduced_first():
    midpoint = catalogue.get("ImplicitMidpoint")
    doubled = Tableau([["1/2", 0], [0, "1/2"]], [2, -1])  # both stages are the same
    assert irreducible(doubled) == midpoint
    assert algebraic_stability(doubled)
    padded = Tableau([["1/2", 0], [7, -3]], [1, 0])  # the second stage is not used
    assert irreducible(padded).stages == 1
    assert algebraic_stability(padded)
    assert irreducible(midpoint) is midpoint


@of([e for e in ENTRIES if e.family in B_STABLE and e.stages > 1])
def test_one_wrong_coefficient_breaks_it(entry):
    """a₁₁ − 1e-3 makes M indefinite: each of these M is singular."""
    tableau = entry.tableau
    A = [list(row) for row in tableau.A]
    A[0][0] = minus(A[0][0], Fraction(1, 1000))
    wrong = Tableau(A, tableau.b)
    assert wrong.order < entry.order
    assert not algebraic_stability(wrong)


# ---------------------------------------------------------------------- AN-stability


@of([e for e in ENTRIES if e.kind != "explicit"])
def test_an_stability(entry):
    verdict = an_stability(entry.tableau)
    assert bool(verdict) == bool(algebraic_stability(entry.tableau))
    if verdict:
        return
    tableau = irreducible(entry.tableau)
    A, b, c = tableau.arrays
    Z = verdict.certificate["Z"]
    assert np.all(Z.real <= 0)
    for i in range(tableau.stages):
        for j in range(i):
            assert c[i] != c[j] or Z[i] == Z[j]
    K = 1 + b @ np.diag(Z) @ np.linalg.inv(np.eye(b.size) - A @ np.diag(Z)) @ np.ones(b.size)
    assert abs(K) > 1 + 1e-9
    assert abs(K) == pytest.approx(verdict.certificate["|K(Z)|"], rel=1e-9)


def test_confluent_method_between_the_two():
    """Two stages at one node: M is indefinite, but only where the two would get different z."""
    confluent = Tableau(
        [["1/2", "6/10", "-1/10"], ["1/2", "1/2", 0], ["1/4", "1/4", 1]], ["1/4", "1/4", "1/2"]
    )
    assert confluent.is_confluent
    assert irreducible(confluent).stages == 3
    assert not algebraic_stability(confluent)
    verdict = an_stability(confluent)
    assert verdict
    assert not verdict.proved
    assert "as far as can be told" in str(verdict)


# ---------------------------------------------------------------------- SSP


KNOWN_SSP = {
    "ExplicitEuler": 1,
    "SSPRK22": 1,
    "SSPRK33": 1,
    "SSPRK43": 2,
    "SSPRK53": 2.65062919143939,
    "SSPRK104": 6,
    "ImplicitMidpoint": 2,
    "Trapezoid": 2,
    "RK4": 0,
    "Midpoint": 0,
    "DOPRI5": 0,
    "ImplicitEuler": float("inf"),
}


@pytest.mark.parametrize("name", KNOWN_SSP)
def test_known_ssp_coefficients(name):
    digits = 1e-11 if name == "SSPRK53" else 1e-14  # its coefficients have fifteen digits
    assert ssp_coefficient(name).value == pytest.approx(KNOWN_SSP[name], rel=digits)


def test_exact_ssp_coefficients_are_fractions():
    assert ssp_coefficient("SSPRK104").digits == 6
    assert ssp_coefficient("Ralston").digits == Fraction(1, 2)


def test_optimum_of_a_numerical_search():
    """Published to thirty digits, but an entry of −1e-10 ends it before 1.508180049."""
    found = ssp_coefficient("SSPRK54")
    assert found.value == pytest.approx(1.508, abs=2e-3)
    assert found.certificate["forgiving"] == pytest.approx(1.5081800491898, abs=1e-6)
    assert "forgiven" in str(found)


@of(ENTRIES)
def test_ssp_conditions_hold_up_to_the_coefficient(entry):
    tableau = irreducible(entry.tableau)
    C = ssp_coefficient(tableau).value
    assert tableau.stages >= C or entry.kind != "explicit"
    A, b, _ = tableau.arrays
    s = b.size
    K = np.zeros((s + 1, s + 1))
    K[:s, :s], K[s, :s] = A, b

    def worst(r):
        X = K @ np.linalg.inv(np.eye(s + 1) + r * K)
        return min(X.min(), 1 - np.max(r * X.sum(axis=1)))

    if 0 < C < np.inf:
        assert worst(0.999 * C) >= -1e-13
        assert worst(1.001 * C + 1e-3) < 0
        # R is absolutely monotonic at −C: a weaker condition, by its Taylor coefficients there
        if entry.kind == "explicit":
            R = stability_function(tableau)
            p = np.poly1d([float(a) for a in reversed(R.numerator)])
            for _ in range(len(R.numerator)):
                assert p(-C * 0.999) >= -1e-12
                p = p.deriv()
    elif C == 0:
        assert worst(1e-6) < 1e-30 or b.min() == 0
