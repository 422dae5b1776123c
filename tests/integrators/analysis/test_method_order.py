"""Order, error coefficients and figures of merit against literature and the Taylor series."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from integrators import Tableau, catalogue
from integrators.analysis import (
    condition_formula,
    elementary_weights,
    error_coefficients,
    error_norm,
    failing_conditions,
    figures_of_merit,
    stability_function,
    stage_order,
)
from integrators.analysis.exact.arithmetic import plus
from integrators.tableau.trees import density, order, rooted_trees, symmetry

ENTRIES = catalogue.entries()


def of(entries):
    return pytest.mark.parametrize("entry", entries, ids=[e.name for e in entries])


@of(ENTRIES)
def test_weights_agree_with_the_order_conditions(entry):
    """Two implementations: the weights here, the residuals of the tableau."""
    n = min(entry.order + 1, 6)
    weights = elementary_weights(entry.tableau, n)
    for k in range(1, n + 1):
        # Where nodes are not row sums, the first conditions listed are those for row sums.
        for condition in entry.tableau.order_conditions(k)[: len(rooted_trees(k))]:
            assert float(weights[condition.tree]) == pytest.approx(
                float(condition.weight), rel=1e-15, abs=1e-15
            )


@of([e for e in ENTRIES if e.order <= 9])
def test_principal_error_does_not_vanish(entry):
    coefficients = error_coefficients(entry.tableau)
    assert all(order(c.tree) == entry.order + 1 for c in coefficients)
    assert error_norm(entry.tableau) > 1e-9
    # Tall trees belong to y' = λy: the error constant of R
    tall = ()
    for _ in range(entry.order):
        tall = (tall,)
    value = next(c.value for c in coefficients if c.tree == tall)
    R = stability_function(entry.tableau)
    expected = -float(R.error_constant) if R.order == entry.order else 0.0
    assert float(value) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_coefficients_predict_the_local_error():
    """One small step of y' = y², y(0) = 1, in many digits against −Σ T(τ) F(τ) h^{p+1}.

    Here F(τ) is the product of the derivatives y², 2y, 2 of f at the vertices: 2^(inner vertices
    with one child) · 2^(with two) · 0 for more, all at y = 1.
    """

    def differential(tree):
        value = {0: 1, 1: 2, 2: 2}.get(len(tree), 0)
        return value * math.prod(differential(child) for child in tree)

    for name in ("Heun", "Kutta3", "RK4", "DOPRI5"):
        tableau = catalogue.get(name)
        p = tableau.order
        predicted = -sum(c.value * differential(c.tree) for c in error_coefficients(name))
        with mpmath.workdps(60):
            h = mpmath.mpf(10) ** -6
            k = []
            for row in tableau.A:
                y = 1 + h * sum(mpmath.mpf(a.numerator) / a.denominator * v for a, v in zip(row, k))
                k.append(y * y)
            step = sum(mpmath.mpf(x.numerator) / x.denominator * v for x, v in zip(tableau.b, k))
            error = 1 / (1 - h) - (1 + h * step)
            assert float(error / h ** (p + 1)) == pytest.approx(float(predicted), rel=1e-4)


def test_exact_coefficients_are_fractions():
    values = [c.value for c in error_coefficients("RK4")]
    assert all(isinstance(v, Fraction) for v in values)
    tall, *_, bushy = error_coefficients("RK4")
    assert tall.value == Fraction(-1, 120)
    # Σ b c⁴ = 5/24 for Simpson's weights at 0, 1/2, 1/2, 1
    assert bushy.value == (Fraction(5, 24) - Fraction(1, 5)) / 24
    assert symmetry(bushy.tree) == 24
    assert density(bushy.tree) == 5


# ---------------------------------------------------------------------- figures of merit


def test_figures_of_dormand_and_prince():
    """RK5(4)7M in their paper of 1980: A = 3.99e-4, B = 1.54, C = 1.67, D = 11.6."""
    found = figures_of_merit("DOPRI5")
    assert pytest.approx(3.99e-4, abs=5e-7) == found.A
    assert pytest.approx(1.54, abs=5e-3) == found.B
    assert pytest.approx(1.67, abs=1e-2) == found.C
    assert pytest.approx(11.6, abs=5e-2) == found.D
    assert pytest.approx(found.A / error_norm("DOPRI5", 5, weights=b_hat("DOPRI5"))) == found.E


def b_hat(name):
    return catalogue.get(name).b_hat


def test_figures_of_bogacki_and_shampine():
    """Their 4(5) pair of 1996 is known for its small A = 2.2e-5."""
    assert pytest.approx(2.2e-5, rel=0.02) == figures_of_merit("BS45").A


def test_norms():
    values = [abs(float(c.value)) for c in error_coefficients("Ralston")]
    assert error_norm("Ralston") == pytest.approx(math.hypot(*values))
    assert error_norm("Ralston", norm="max") == max(values)
    # Ralston's choice of γ = 3/4 makes the quadrature part vanish
    assert values == [pytest.approx(1 / 6), 0.0]


def test_pair_that_advances_the_lower_order():
    found = figures_of_merit("Fehlberg45")
    assert (found.order, found.embedded_order) == (4, 5)
    assert found.E == 1  # the advancing formula is the less accurate one itself


def test_methods_of_very_high_order():
    assert figures_of_merit("Gauss7").A is None
    assert "A(" not in str(figures_of_merit("Gauss7"))
    ((condition, formula),) = failing_conditions("Gauss7")
    assert order(condition.tree) == 15
    assert not condition.holds
    assert formula == "Σ bᵢ cᵢ¹⁴ = 1/15"


# ---------------------------------------------------------------------- simplifying assumptions


STAGE_ORDER = {
    "Gauss": 0,
    "RadauIA": 1,
    "RadauIIA": 0,
    "LobattoIIIA": 0,
    "LobattoIIIB": 2,
    "LobattoIIIC": 1,
    "LobattoIIICStar": 1,
    "LobattoIIID": 1,
}


@of([e for e in ENTRIES if e.family in STAGE_ORDER])
def test_stage_order_of_families(entry):
    """Hairer and Wanner, IV.5: C(s), C(s − 1) or C(s − 2)."""
    assert stage_order(entry.tableau) == entry.stages - STAGE_ORDER[entry.family]


@of([e for e in ENTRIES if e.kind == "explicit"])
def test_explicit_methods_have_stage_order_one(entry):
    assert stage_order(entry.tableau) == 1


# ---------------------------------------------------------------------- what fails


def misprinted():
    """The 3/8 rule as it stands in the notes: −1 in place of +1 in the third row."""
    right = catalogue.get("RK38")
    return Tableau([[], ["1/3"], ["-1/3", -1], [1, -1, 1]], right.b, right.c, check=False)


def test_misprinted_rule():
    ((condition, formula),) = failing_conditions(misprinted())
    assert formula == "Σ bᵢ aᵢⱼ = 1/2"  # about the state, not about the time
    assert condition.weight == Fraction(-1, 4)


def test_formulae():
    assert [condition_formula(t) for t in rooted_trees(3)] == [
        "Σ bᵢ aᵢⱼ cⱼ = 1/6",
        "Σ bᵢ cᵢ² = 1/3",
    ]
    assert condition_formula(()) == "Σ bᵢ = 1"


@of(ENTRIES)
def test_failing_conditions_exist_and_fail(entry):
    found = failing_conditions(entry.tableau)
    assert found
    for condition, _ in found:
        assert order(condition.tree) == entry.order + 1
        assert abs(float(condition.residual)) > condition.tolerance


@of([e for e in ENTRIES if e.order >= 2 and e.name != "LobattoIIIB2"])  # nodes ≠ row sums
def test_one_wrong_coefficient_lowers_the_order(entry):
    """The last row of A that matters, first entry + 1e-3, with the node moved along."""
    tableau = entry.tableau
    i = max(k for k, x in enumerate(tableau.b) if x != 0)
    A, c = [list(row) for row in tableau.A], list(tableau.c)
    A[i][0], c[i] = plus(A[i][0], Fraction(1, 1000)), plus(c[i], Fraction(1, 1000))
    wrong = Tableau(A, tableau.b, c, check=False)
    assert wrong.order == 1
    assert [formula for _, formula in failing_conditions(wrong)] == ["Σ bᵢ cᵢ = 1/2"]
    assert error_norm(wrong) == pytest.approx(abs(float(tableau.b[i])) / 1000, rel=1e-6)


# ---------------------------------------------------------------------- bad input


def test_bad_input():
    with pytest.raises(TypeError, match="Tableau or the name"):
        elementary_weights(np.eye(2), 3)
    with pytest.raises(ValueError, match="DOPRI5"):
        stage_order("DORPI5")
    with pytest.raises(ValueError, match="1 to 13"):
        elementary_weights("RK4", 14)
    with pytest.raises(TypeError, match="integer"):
        elementary_weights("RK4", 2.0)
    with pytest.raises(ValueError, match="norm '2' or 'max'"):
        error_norm("RK4", norm="1")
    with pytest.raises(ValueError, match="weights has 2 entries"):
        error_coefficients("RK4", 3, weights=[1, 0])
