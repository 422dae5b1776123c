"""Tableaux: numbers, rooted trees, validation, structure, order, reading and writing."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from integrators import Tableau, catalogue
from integrators.tableau.exact import parse, pi, uncertainty
from integrators.tableau.trees import bracket, density, rooted_trees, symmetry

RK4 = Tableau([[], ["1/2"], [0, "1/2"], [0, 0, 1]], ["1/6", "1/3", "1/3", "1/6"], name="RK4")


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/3", Fraction(1, 3)),
        ("-2/4", Fraction(-1, 2)),
        ("0.25", Fraction(1, 4)),
        ("1e-3", Fraction(1, 1000)),
        ("2**3/7", Fraction(8, 7)),
        ("sqrt(9/4)", Fraction(3, 2)),
    ],
)
def test_rational_text_stays_exact(text, value):
    assert parse(text) == value
    assert isinstance(parse(text), Fraction)


def test_irrational_text_has_sixty_digits():
    root = parse("sqrt(2)")
    assert isinstance(root, Decimal)
    assert abs(root * root - 2) < Decimal("1e-58")
    assert str(pi()).startswith("3.14159265358979323846264338327950288419716939937510582097494459")


def test_long_decimals_are_known_to_be_rounded():
    assert uncertainty(parse("0.12345678901234567890")) == pytest.approx(1e-19)
    assert uncertainty(Fraction(1, 3)) == 0.0


@pytest.mark.parametrize("text", ["1/0", "x", "__import__('os')", "", "1//2", "sqrt()"])
def test_bad_number_text_is_refused(text):
    with pytest.raises(ValueError, match="cannot read"):
        parse(text)


# ---------------------------------------------------------------- trees


def test_number_of_rooted_trees():
    # OEIS A000081.
    counts = [1, 1, 2, 4, 9, 20, 48, 115, 286, 719]
    assert [len(rooted_trees(n)) for n in range(1, 11)] == counts
    assert all(len(set(rooted_trees(n))) == len(rooted_trees(n)) for n in range(1, 11))


def test_density_and_symmetry_count_orderings():
    # Σ over trees of n!/(γσ) is the number of increasing labellings, (n−1)! in total.
    for n in range(1, 9):
        total = sum(
            Fraction(int(np.prod(range(1, n + 1))), density(tree) * symmetry(tree))
            for tree in rooted_trees(n)
        )
        assert total == int(np.prod(range(1, n)))


def test_bracket_names_the_tree():
    assert bracket(()) == "τ"
    assert bracket(((), ())) == "[τ²]"


# ---------------------------------------------------------------- validation

PRINTED_38 = dict(
    A=[[], ["1/3"], ["-1/3", -1], [1, -1, 1]],
    b=["1/8", "3/8", "3/8", "1/8"],
    c=[0, "1/3", "2/3", 1],
)


def test_misprinted_three_eighths_rule_is_refused_and_explained():
    with pytest.raises(ValueError, match=r"row 3 of A is \(-1/3, -1\) and adds up to -4/3.*2/3"):
        Tableau(**PRINTED_38)


def test_misprinted_rule_can_be_studied():
    printed = Tableau(**PRINTED_38, check=False)
    assert printed.order == 1
    failing = [c for c in printed.order_conditions(2) if not c.holds]
    assert failing
    assert failing[0].target == Fraction(1, 2)
    assert "FAILS" in str(failing[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(A=[[0]], b=[]), "at least one stage"),
        (dict(A=[[0], [1]], b=[1]), "A has 2 rows, but b has 1"),
        (dict(A=[[0, 0, 0], [1]], b=[0, 1]), "row 1 of A has 3 entries"),
        (dict(A=[[], [1]], b=["1/2", "1/2"], c=[0]), "c has 1 entries"),
        (dict(A=[[], [1]], b=["1/2", float("nan")]), r"b\[2\] is nan"),
        (dict(A=[[], [float("inf")]], b=["1/2", "1/2"]), r"A\[2, 1\] is inf"),
        (dict(A=[[], [1]], b=["1/2", "1/2"], b_hat=[1]), "b_hat has 1 entries"),
        (dict(A=[[], [1]], b=["1/2", "half"]), "cannot read 'half'"),
    ],
)
def test_wrong_tableaux_say_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        Tableau(**arguments)


def test_booleans_and_objects_are_no_coefficients():
    with pytest.raises(TypeError, match="expected a number"):
        Tableau([[True]], [1])


# ---------------------------------------------------------------- structure and order


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("RK4", {"is_explicit"}),
        ("DOPRI5", {"is_explicit", "fsal", "is_stiffly_accurate", "is_confluent"}),
        ("ImplicitMidpoint", {"is_dirk", "is_sdirk"}),
        ("Alexander2", {"is_dirk", "is_sdirk", "is_stiffly_accurate"}),
        ("TRBDF2", {"is_dirk", "is_esdirk", "is_stiffly_accurate", "fsal"}),
        ("RadauIIA3", {"is_fully_implicit", "is_stiffly_accurate"}),
        ("Gauss3", {"is_fully_implicit"}),
    ],
)
def test_structure_is_found(name, properties):
    tableau = catalogue.get(name)
    switches = [
        "is_explicit",
        "is_dirk",
        "is_sdirk",
        "is_esdirk",
        "is_fully_implicit",
        "fsal",
        "is_stiffly_accurate",
    ]
    found = {switch for switch in switches if getattr(tableau, switch)}
    assert found == properties - {"is_confluent"}
    if "is_confluent" in properties:
        assert tableau.is_confluent


def test_order_of_float_tableau_has_a_tolerance():
    gauss = catalogue.get("Gauss3")
    floats = Tableau(*(x.tolist() for x in gauss.arrays))
    assert floats.order == 6
    A, b, c = (x.copy() for x in gauss.arrays)
    b[0] += 1e-9  # far above what doubles leave undecided
    assert Tableau(A.tolist(), b.tolist(), c.tolist()).order == 0


@pytest.mark.parametrize("name", ["RK4", "DOPRI5", "Gauss3", "SDIRK4"])
def test_one_wrong_coefficient_lowers_the_order(name):
    tableau = catalogue.get(name)
    A, b, _ = tableau.arrays
    broken = A.copy()
    broken[1 + np.argmax(np.abs(b[1:])), 0] += 1e-3  # a stage that has weight
    assert Tableau(broken.tolist(), b.tolist()).order < tableau.order


def test_wrong_nodes_lower_the_order_of_non_autonomous_problems():
    shifted = Tableau(RK4.A, RK4.b, [0, "1/3", "1/2", 1], check=False)
    assert shifted.order == 1  # y' = f(y) would not notice
    assert any(not condition.holds for condition in shifted.order_conditions(2))


def test_order_conditions_list_weight_target_and_residual():
    conditions = RK4.order_conditions(4)
    assert len(conditions) == 4
    assert all(c.residual == 0 and c.weight == c.target for c in conditions)
    assert any(not c.holds for c in RK4.order_conditions(5))


# ---------------------------------------------------------------- reading and writing


def test_prints_as_text_and_latex():
    assert str(RK4).splitlines()[1] == "1/2 | 1/2"
    assert r"\tfrac{1}{6}" in RK4.to_latex()
    assert RK4.to_latex().startswith(r"\begin{array}{c|cccc}")
    assert RK4._repr_latex_() == rf"$\displaystyle {RK4.to_latex()}$"


@pytest.mark.parametrize("suffix", [".json", ".toml"])
@pytest.mark.parametrize("name", ["RK4", "DOP853", "RadauIIA5", "Tsit5"])
def test_save_and_load_lose_nothing(tmp_path, suffix, name):
    tableau = catalogue.get(name)
    path = tmp_path / f"tableau{suffix}"
    tableau.save(path)
    again = Tableau.load(path)
    assert again == tableau
    assert again.name == tableau.name


def test_load_says_what_is_wrong(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text("A = [[0]]\nB = [1]\n")
    with pytest.raises(ValueError, match="unknown key 'B'"):
        Tableau.load(path)
    with pytest.raises(ValueError, match=r"\.json or \.toml"):
        RK4.save(tmp_path / "tableau.txt")
