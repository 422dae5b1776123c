"""Symplectic, symmetric, adjoint, composed; B-series against tableaux and closed forms."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrators import Tableau, catalogue
from integrators.analysis import (
    adjoint,
    bseries,
    compose,
    exact_flow,
    irreducible,
    modified_equation,
    quadratic_invariants,
    stability_function,
    symmetry,
    symplecticity,
)
from integrators.analysis.exact.arithmetic import plus
from integrators.tableau.trees import rooted_trees

ENTRIES = catalogue.entries()
SYMPLECTIC = {"Gauss", "LobattoIIID"}
SYMMETRIC = {"Gauss", "LobattoIIIA", "LobattoIIIB", "LobattoIIID"}
FAMILIES = SYMMETRIC | {"RadauIA", "RadauIIA", "LobattoIIIC", "LobattoIIICStar"}

small = st.fractions(min_value=-2, max_value=2, max_denominator=6)


def of(entries):
    return pytest.mark.parametrize("entry", entries, ids=[e.name for e in entries])


@st.composite
def tableaux(draw, stages=3):
    s = draw(st.integers(1, stages))
    A = [[draw(small) for _ in range(s)] for _ in range(s)]
    return Tableau(A, [draw(small) for _ in range(s)])


# ---------------------------------------------------------------------- verdicts


@of(ENTRIES)
def test_symplectic(entry):
    verdict = symplecticity(entry.tableau)
    assert bool(verdict) == ("symplectic" in entry.stability)
    assert bool(quadratic_invariants(entry.tableau)) == bool(verdict)
    if entry.family in FAMILIES:
        assert bool(verdict) == (entry.family in SYMPLECTIC)
    if entry.kind == "explicit":
        assert not verdict
    if not verdict:
        i, j = verdict.certificate["entry"]
        t = irreducible(entry.tableau)
        A, b, _ = t.arrays
        value = b[i - 1] * A[i - 1, j - 1] + b[j - 1] * A[j - 1, i - 1] - b[i - 1] * b[j - 1]
        assert abs(value) > 1e-9


@of(ENTRIES)
def test_symmetric(entry):
    verdict = symmetry(entry.tableau)
    if entry.family in FAMILIES:
        assert bool(verdict) == (entry.family in SYMMETRIC)
    if entry.kind == "explicit":
        assert not verdict
    if verdict:
        assert entry.order % 2 == 0  # a symmetric method has even order
        partner = [k - 1 for k in verdict.certificate["partners"]]
        A, b, _ = irreducible(entry.tableau).arrays
        np.testing.assert_allclose(
            A[np.ix_(partner, partner)] + A, np.tile(b, (b.size, 1)), atol=1e-14
        )


@pytest.mark.parametrize("name", ["Gauss2", "QinZhang", "RK4", "RadauIIA2"])
def test_verdicts_show_in_a_step(name):
    """A rotation q² + p², and going back with −h, for a step of a nonlinear oscillator."""
    A, b, _ = catalogue.get(name).arrays
    s = b.size

    def f(y):  # y' = (1 + y·y) J y conserves y·y
        return (1 + y @ y) * np.array([y[1], -y[0]])

    def step(y, h):
        K = np.zeros((s, 2))
        for _ in range(300):
            K = np.array([f(y + h * A[i] @ K) for i in range(s)])
        return y + h * b @ K

    y0, h = np.array([0.6, 0.2]), 0.1
    y1 = step(y0, h)
    drift, there_and_back = abs(y1 @ y1 - y0 @ y0), np.max(np.abs(step(y1, -h) - y0))
    assert (drift < 1e-14) == bool(quadratic_invariants(name))
    assert (there_and_back < 1e-14) == bool(symmetry(name))


@of([e for e in ENTRIES if e.family in SYMMETRIC])
def test_one_wrong_coefficient_breaks_both(entry):
    tableau = entry.tableau
    A = [list(row) for row in tableau.A]
    A[-1][-1] = plus(A[-1][-1], Fraction(1, 1000))
    wrong = Tableau(A, tableau.b)
    assert not symplecticity(wrong)
    assert not symmetry(wrong)


def test_stages_may_be_numbered_in_any_way():
    A, b = catalogue.get("Gauss3").A, catalogue.get("Gauss3").b
    order = [2, 0, 1]
    shuffled = Tableau([[A[i][j] for j in order] for i in order], [b[i] for i in order])
    assert symmetry(shuffled)
    assert symmetry(shuffled).certificate["partners"] == (2, 1, 3)


# ---------------------------------------------------------------------- adjoint and composition


@settings(deadline=None, max_examples=40)
@given(tableaux())
def test_adjoint_inverts_the_stability_function(tableau):
    """R*(z) R(−z) = 1, and the adjoint of the adjoint is the method."""
    other = adjoint(tableau)
    assert adjoint(other) == tableau
    R, S = stability_function(tableau), stability_function(other)
    for z in (Fraction(1, 7), Fraction(-2, 11)):
        N = sum(a * (-z) ** k for k, a in enumerate(R.numerator))
        D = sum(a * (-z) ** k for k, a in enumerate(R.denominator))
        n = sum(a * z**k for k, a in enumerate(S.numerator))
        d = sum(a * z**k for k, a in enumerate(S.denominator))
        assert N * n == D * d


@of([e for e in ENTRIES if e.order <= 6])
def test_adjoint_has_the_same_order(entry):
    assert adjoint(entry.tableau).order == entry.order


def test_adjoint_pairs():
    assert adjoint("ExplicitEuler") == catalogue.get("ImplicitEuler")
    radau = adjoint("RadauIA2")
    assert radau.order == 3
    assert stability_function(radau).numerator == (1, Fraction(2, 3), Fraction(1, 6))


def test_compositions_of_euler():
    assert irreducible(compose("ExplicitEuler", "ImplicitEuler")) == catalogue.get("Trapezoid")
    midpoint = irreducible(compose("ImplicitEuler", "ExplicitEuler"))
    assert midpoint == catalogue.get("ImplicitMidpoint")


@pytest.mark.parametrize("name", ["Heun", "RadauIIA2", "RK4"])
def test_method_with_its_adjoint_is_symmetric(name):
    both = compose(adjoint(name), name)
    assert symmetry(both)
    assert both.order >= catalogue.get(name).order
    assert both.order % 2 == 0


def test_triple_jump():
    """Yoshida: three steps of a symmetric method of order 2 make one of order 4."""
    with localcontext(prec=70):
        root = Decimal(2) ** (Decimal(1) / 3)
        outer = 1 / (2 - root)
        steps = [outer, 1 - 2 * outer, outer]
    jump = compose(*["ImplicitMidpoint"] * 3, steps=steps)
    assert jump.order == 4
    assert symplecticity(jump)
    assert symmetry(jump)


def test_composition_multiplies_stability_functions():
    R = stability_function(compose("RK4", "Heun", steps=["2/3", "1/3"]))
    z = 0.3 - 0.8j
    product = stability_function("RK4")(2 * z / 3) * stability_function("Heun")(z / 3)
    assert R(z) == pytest.approx(product, rel=1e-13)


# ---------------------------------------------------------------------- B-series


@settings(deadline=None, max_examples=25)
@given(tableaux(2), tableaux(2), small)
def test_composition_of_series_is_that_of_tableaux(one, other, share):
    together = bseries(compose(one, other, steps=[share, 1 - share]), 5)
    assert bseries(one, 5).scaled(share).then(bseries(other, 5).scaled(1 - share)) == together


@settings(deadline=None, max_examples=25)
@given(tableaux(2))
def test_adjoint_of_a_series_is_that_of_the_tableau(tableau):
    assert bseries(tableau, 5).adjoint() == bseries(adjoint(tableau), 5)


def test_exact_flow_is_a_group():
    flow = exact_flow(6)
    assert flow.scaled("1/3").then(flow.scaled("2/3")) == flow
    assert flow.inverse() == flow.scaled(-1)
    assert flow.adjoint() == flow


@of([e for e in ENTRIES if e.order <= 6])
def test_order_from_the_series(entry):
    series = bseries(entry.tableau, entry.order + 1)
    assert series.agrees(exact_flow(entry.order + 1), 1e-9) == entry.order


def test_modified_equation_on_linear_problems():
    """On y' = λy the modified equation is ỹ' = log R(hλ)/h ỹ: only tall trees contribute."""
    field = modified_equation("ExplicitEuler", 8)
    tall = ()
    for k in range(1, 9):
        assert field[tall] == Fraction((-1) ** (k + 1), k)  # log(1 + z)
        tall = (tall,)
    field = modified_equation("ImplicitMidpoint", 7)
    tall = ()
    for k in range(1, 8):  # 2 artanh(z/2)
        assert field[tall] == (Fraction(2, k * 2**k) if k % 2 else 0)
        tall = (tall,)


def test_modified_equation_of_a_quadratic_problem():
    """Explicit Euler on y' = y²: ỹ' = y² − h y³ + (3/2) h² y⁴ + … (Hairer et al. 2006, IX.1)."""

    def differential(tree):  # F(τ) at y = 1, where f = y², f' = 2y, f'' = 2
        return {0: 1, 1: 2, 2: 2}.get(len(tree), 0) * math.prod(map(differential, tree))

    from integrators.tableau.trees import symmetry as sigma

    field = modified_equation("ExplicitEuler", 4)
    coefficients = [
        sum(field[t] * Fraction(differential(t), sigma(t)) for t in rooted_trees(n))
        for n in (1, 2, 3, 4)
    ]
    assert coefficients == [1, -1, Fraction(3, 2), Fraction(-8, 3)]


@of([e for e in ENTRIES if e.order <= 5])
def test_modified_equation_starts_after_the_order(entry):
    field = modified_equation(entry.tableau, entry.order + 1)
    for n in range(2, entry.order + 1):
        for tree in rooted_trees(n):
            assert float(field[tree]) == pytest.approx(0, abs=1e-9)
    last = [abs(float(field[tree])) for tree in rooted_trees(entry.order + 1)]
    assert max(last) > 1e-6


def test_symmetric_methods_have_even_modified_equations():
    """Only odd numbers of vertices, i.e. even powers of h, remain (Hairer et al. 2006, IX.2)."""
    field = modified_equation("LobattoIIIA3", 8)
    for n in (2, 4, 6, 8):
        assert all(field[tree] == 0 for tree in rooted_trees(n))


# ---------------------------------------------------------------------- bad input


def test_bad_input():
    with pytest.raises(ValueError, match="at least one"):
        compose()
    with pytest.raises(ValueError, match="2 methods, 1 steps"):
        compose("RK4", "RK4", steps=[1])
    with pytest.raises(ValueError, match="finite"):
        compose("RK4", steps=[float("nan")])
    with pytest.raises(ValueError, match="order 1 to 10"):
        bseries("RK4", 11)
    with pytest.raises(TypeError, match="integer"):
        exact_flow("3")
    with pytest.raises(ValueError, match="order 5 at least"):
        modified_equation(bseries("RK4", 3), 5)
    with pytest.raises(ValueError, match="a method"):
        modified_equation("RK4", 3).inverse()
    with pytest.raises(ValueError, match="a method"):
        modified_equation("RK4", 3).then(exact_flow(3))
    with pytest.raises(TypeError, match="Tableau or the name"):
        symmetry(4)
