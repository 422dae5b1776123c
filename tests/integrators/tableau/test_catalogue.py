"""The catalogue: what is declared is derived again here, for every scheme in it."""

import re
from fractions import Fraction
from importlib.resources import files

import mpmath
import numpy as np
import pytest
from scipy.integrate import DOP853
from scipy.integrate._ivp import dop853_coefficients
from scipy.integrate._ivp.rk import RK23, RK45

from integrators import catalogue
from integrators.catalogue import collocation as families
from integrators.tableau.exact import to_decimal
from integrators.tableau.trees import density, rooted_trees

ENTRIES = catalogue.entries()
IMPLICIT = [e for e in ENTRIES if e.kind != "explicit"]
DENSE = [e for e in ENTRIES if e.tableau.dense is not None]

ROUNDING = 1e-13
"""Sums of a dozen doubles of moderate size."""

DAMPED = 1e-5
"""|R(∞)| below this counts as 0: coefficients of 15 digits leave less than 1e-9, of 11 digits
less than 1e-6; the least of the others has 1.4e-4."""


def of(entries):
    return pytest.mark.parametrize("entry", entries, ids=[e.name for e in entries])


# ---------------------------------------------------------------------- every entry


@of(ENTRIES)
def test_declared_is_derived(entry):
    tableau = entry.tableau
    assert tableau.name == entry.name
    assert tableau.order == entry.order
    assert tableau.embedded_order == entry.embedded_order
    assert tableau.kind == entry.kind
    assert tableau.stages == entry.stages
    assert tableau.reference == entry.reference


@of([e for e in ENTRIES if e.name not in ("RadauIA1", "LobattoIIIB2")])
def test_nodes_are_row_sums(entry):
    A, _, c = entry.tableau.arrays
    scale = 1 + np.abs(A).sum(axis=1)
    published = 1e-11 if entry.name == "Cash4" else ROUNDING  # eleven digits in print
    assert np.all(np.abs(A.sum(axis=1) - c) <= published * scale)


def test_references_exist():
    text = (files("integrators") / "references.bib").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{(\w+),", text, flags=re.MULTILINE)
    assert len(keys) == len(set(keys))
    assert {e.reference for e in ENTRIES} <= set(keys)
    assert {"hairer1993", "hairer1996", "featherstone2008"} <= set(keys)


def test_size_and_titles():
    declared = [e for e in ENTRIES if not e.name.startswith(tuple(families.FAMILIES))]
    assert len(declared) >= 70
    assert all(e.title for e in ENTRIES)
    assert len({e.name for e in ENTRIES}) == len(ENTRIES)


# ---------------------------------------------------------------------- stability


def stability(tableau):
    """What :class:`Entry` lists, from the stability function and the algebraic-stability matrix."""
    A, b, _ = tableau.arrays
    ones, identity = np.ones(b.size), np.eye(b.size)

    def R(z):
        return 1 + z * (b @ np.linalg.solve(identity - z * A, ones))

    poles = np.linalg.eigvals(A)
    poles = poles[np.abs(poles) > 1e-6]  # zero eigenvalues give no pole
    on_axis = max(abs(R(1j * y)) for y in np.geomspace(1e-3, 1e5, 400))
    M = np.diag(b) @ A + A.T @ np.diag(b) - np.outer(b, b)
    found = []
    if poles.size and np.all(poles.real > 0) and on_axis <= 1 + 1e-10:
        found.append("L" if abs(R(-1e9)) < DAMPED else "A")
    if np.all(b >= 0) and np.linalg.eigvalsh(M).min() >= -1e-11:
        found.append("B")
    if np.abs(M).max() < ROUNDING:
        found.append("symplectic")
    return ", ".join(found) or "–"


@of(IMPLICIT)
def test_declared_stability_holds(entry):
    assert stability(entry.tableau) == entry.stability


# ---------------------------------------------------------------------- dense output


def extended(tableau):
    """A, c and P in doubles with the extra stages of the continuous extension appended."""
    A, _, c = tableau.arrays
    dense = tableau.dense
    s, n = tableau.stages, tableau.stages + len(dense.A_extra)
    full = np.zeros((n, n))
    full[:s, :s] = A
    for i, row in enumerate(dense.A_extra, start=s):
        full[i, : len(row)] = row
    return full, np.concatenate([c, dense.c_extra]), dense.P


def stage_weight(A, tree, known):
    if tree not in known:
        product = np.ones(len(A))
        for child in tree:
            product = product * (A @ stage_weight(A, child, known))
        known[tree] = product
    return known[tree]


@of(DENSE)
def test_dense_output_meets_the_step(entry):
    tableau = entry.tableau
    A, c, P = extended(tableau)
    assert P.shape[0] == len(A)
    end = np.concatenate([tableau.arrays[1], np.zeros(len(A) - tableau.stages)])
    np.testing.assert_allclose(P.sum(axis=1), end, atol=ROUNDING)
    np.testing.assert_allclose(A.sum(axis=1), c, atol=ROUNDING)


@of(DENSE)
def test_dense_output_order(entry):
    A, c, P = extended(entry.tableau)
    known = {}
    spread = np.abs(P).sum()
    for theta in (0.1, 0.35, 0.5, 0.77, 1.0):
        b = P @ theta ** np.arange(1, P.shape[1] + 1)
        for k in range(1, entry.tableau.dense.order + 1):
            assert b @ c ** (k - 1) == pytest.approx(theta**k / k, abs=1e-15 * spread)
            for tree in rooted_trees(k):
                weight = b @ stage_weight(A, tree, known)
                assert weight == pytest.approx(theta**k / density(tree), abs=1e-14 * spread)


def test_dop853_dense_output_is_scipys():
    def f(t, y):
        return np.array([y[1], (1 - y[0] ** 2) * y[1] - y[0] + np.sin(t)])

    solver = DOP853(f, 0.0, [2.0, 0.5], 1.0, first_step=0.25, rtol=1e-3, atol=1e-3)
    y0 = solver.y.copy()
    solver.step()
    h, sol = solver.t, solver.dense_output()
    A, c, P = extended(catalogue.get("DOP853"))
    k = np.zeros((len(A), 2))
    for i in range(len(A)):
        k[i] = f(c[i] * h, y0 + h * A[i, :i] @ k[:i])
    for theta in np.linspace(0, 1, 7):
        b = P @ theta ** np.arange(1, P.shape[1] + 1)
        np.testing.assert_allclose(y0 + h * b @ k, sol(theta * h), atol=ROUNDING)


# ---------------------------------------------------------------------- against SciPy


def test_dop853_arrays_are_scipys():
    ours, theirs = catalogue.get("DOP853"), dop853_coefficients
    A, b, c = ours.arrays
    np.testing.assert_allclose(A, theirs.A[:12, :12], rtol=1e-15)
    np.testing.assert_allclose(b, theirs.B, rtol=1e-15)
    np.testing.assert_allclose(c, theirs.C[:12], rtol=1e-15)
    np.testing.assert_allclose(ours.error_weights, theirs.E5[:12], atol=1e-15)
    np.testing.assert_allclose(ours.low_error_weights, theirs.E3[:12], atol=1e-15)
    np.testing.assert_allclose(extended(ours)[0][12:], theirs.A[12:], rtol=1e-15)


@pytest.mark.parametrize("theirs", [RK45, RK23])
def test_pairs_are_scipys(theirs):
    ours = catalogue.get(theirs.__name__)
    A, b, c = ours.arrays
    s = theirs.n_stages
    np.testing.assert_allclose(A[:s, : theirs.A.shape[1]], theirs.A, rtol=1e-15)
    np.testing.assert_allclose(b[:s], theirs.B, rtol=1e-15)
    np.testing.assert_allclose(c[:s], theirs.C, rtol=1e-15)
    np.testing.assert_allclose(ours.error_weights, -theirs.E, atol=1e-16)


def test_dopri5_dense_output_is_scipys():
    np.testing.assert_allclose(catalogue.get("DOPRI5").dense.P, RK45.P, rtol=1e-14)


def test_dop853_second_estimator_has_order_3():
    tableau = catalogue.get("DOP853")
    residuals = [tableau.order_conditions(p, tableau.b_low) for p in (1, 2, 3, 4)]
    assert [all(r.holds for r in level) for level in residuals] == [True, True, True, False]


# ---------------------------------------------------------------------- generated families


@pytest.mark.parametrize("family", families.FAMILIES)
def test_orders_of_generated_methods(family):
    deficit = {"Gauss": 0, "RadauIA": 1, "RadauIIA": 1}.get(family, 2)
    for s in range(1 if deficit < 2 else 2, 7):
        assert catalogue.get(f"{family}{s}").order == 2 * s - deficit


def test_orders_the_specification_asks_for():
    assert catalogue.get("Gauss6").order == 12
    assert catalogue.get("RadauIIA5").order == 9


def test_known_closed_forms():
    half, third = Fraction(1, 2), Fraction(1, 3)
    assert families.radau_iia(2).c == (third, 1)
    rows = ((half, -half), (half, half))
    assert rows == families.lobatto_iiic(2).A
    with mpmath.workdps(60):
        c1 = mpmath.mpf(str(families.gauss(2).c[0]))
        assert abs(c1 - (3 - mpmath.sqrt(3)) / 6) < mpmath.mpf(10) ** -58
        c1 = mpmath.mpf(str(families.radau_iia(3).c[0]))
        assert abs(c1 - (4 - mpmath.sqrt(6)) / 10) < mpmath.mpf(10) ** -58


def polynomial(family, s, x):
    """The polynomial whose zeros are the nodes, by mpmath's own Legendre functions."""
    P = mpmath.legendre
    if family == "Gauss":
        return P(s, x)
    if family == "RadauIA":
        return P(s - 1, x) + P(s, x)
    if family == "RadauIIA":
        return P(s - 1, x) - P(s, x)
    return P(s, x) - P(s - 2, x)  # proportional to (1 − x²) P′_{s−1}


@pytest.mark.parametrize("family", families.FAMILIES)
@pytest.mark.parametrize("s", [3, 12])
def test_generated_digits(family, s):
    tableau = families.FAMILIES[family](s)
    stage_order = {"Gauss": s, "RadauIIA": s, "LobattoIIIA": s, "LobattoIIIB": s - 2}
    eta = stage_order.get(family, s - 1)
    with mpmath.workdps(90):

        def exact(x):
            if isinstance(x, Fraction):
                return mpmath.mpf(x.numerator) / x.denominator
            return mpmath.mpf(str(to_decimal(x)))

        A = [[exact(a) for a in row] for row in tableau.A]
        b, c = [exact(x) for x in tableau.b], [exact(x) for x in tableau.c]
        small = mpmath.mpf(10) ** -55
        for x in c:  # distance of each node from the true zero
            x = 2 * x - 1
            step = mpmath.mpf(10) ** -20
            slope = (polynomial(family, s, x + step) - polynomial(family, s, x)) / step
            assert abs(polynomial(family, s, x) / slope) < small
        for k in range(1, s + 1):
            assert abs(sum(bi * ci ** (k - 1) for bi, ci in zip(b, c)) - mpmath.mpf(1) / k) < small
        for k in range(1, eta + 1):
            for row, ci in zip(A, c):
                total = sum(a * cj ** (k - 1) for a, cj in zip(row, c))
                assert abs(total - ci**k / k) < small


@pytest.mark.parametrize("s", [2, 4, 7])
def test_symplectic_partners(s):
    for one, other in [("LobattoIIIA", "LobattoIIIB"), ("LobattoIIIC", "LobattoIIICStar")]:
        A, b, _ = families.FAMILIES[one](s).arrays
        B, _, _ = families.FAMILIES[other](s).arrays
        np.testing.assert_allclose(b[:, None] * B + b * A.T, np.outer(b, b), atol=1e-15)


def test_generated_limits():
    with pytest.raises(ValueError, match="2 to 30 stages"):
        catalogue.get("LobattoIIIA1")
    with pytest.raises(ValueError, match="1 to 30 stages"):
        catalogue.get("Gauss31")
    with pytest.raises(TypeError, match="integer"):
        families.gauss(2.0)
    assert catalogue.get("Gauss20") is families.gauss(20)


def test_collocation():
    assert families.collocation(["1/3", 1]) == families.radau_iia(2)
    assert families.collocation("(3-sqrt(3))/6 (3+sqrt(3))/6").order == 4
    assert families.collocation([0.1, 0.6, 0.9]).order == 3
    with pytest.raises(ValueError, match="distinct"):
        families.collocation(["1/2", "1/2"])
    with pytest.raises(ValueError, match="at least one"):
        families.collocation([])


# ---------------------------------------------------------------------- names


@of(ENTRIES)
def test_names_and_aliases(entry):
    for name in (entry.name, entry.name.upper(), *entry.aliases):
        assert catalogue.get(name) is entry.tableau


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("RK45", "DOPRI5"),
        ("RK23", "BS23"),
        ("Radau", "RadauIIA3"),
        ("RADAU5", "RadauIIA3"),
        ("dop853", "DOP853"),
        ("Euler", "ExplicitEuler"),
        ("backward euler", "ImplicitEuler"),
        ("Crank-Nicolson", "Trapezoid"),
        ("RKF45", "Fehlberg45"),
        ("cash_karp", "CashKarp"),
        ("BogackiShampine", "BS23"),
        ("ode45", "DOPRI5"),
        ("ode23", "BS23"),
        ("3/8", "RK38"),
        ("TR-BDF2", "TRBDF2"),
        ("Hammer-Hollingsworth", "Gauss2"),
        ("Lobatto IIIC* 4", "LobattoIIICStar4"),
    ],
)
def test_familiar_names(alias, name):
    assert catalogue.get(alias).name == name


@pytest.mark.parametrize(
    ("wrong", "suggested"), [("DORPI5", "DOPRI5"), ("Kvearno5", "Kvaerno5"), ("tsit", "Tsit5")]
)
def test_unknown_names_are_answered_with_the_nearest(wrong, suggested):
    with pytest.raises(ValueError, match=suggested):
        catalogue.get(wrong)


def test_nothing_near():
    with pytest.raises(ValueError, match=r"names\('all'\) lists them all"):
        catalogue.get("quux")
    with pytest.raises(TypeError, match="name of a scheme"):
        catalogue.get(45)


def test_schemes_without_a_tableau_are_found_and_say_what_they_are():
    entry = catalogue.entry("rodas 5p")
    assert entry.method.name == entry.name == "Rodas5P"
    assert entry in catalogue.entries("Rosenbrock")
    assert entry not in catalogue.entries()
    with pytest.raises(ValueError, match=r"Rodas5P is of the kind 'Rosenbrock'.*method='Rodas5P'"):
        catalogue.get("Rodas5P")
    with pytest.raises(ValueError, match="did you mean Rodas5P"):
        catalogue.get("Rodos5P")
    assert catalogue.find("quux") is None
    with pytest.raises(ValueError, match=r"expected 'tableau', 'all' .*'IMEX'.*got 'Imex'"):
        catalogue.entries("Imex")


def test_rk2_family():
    assert catalogue.rk2("1/2") == catalogue.get("Heun")
    assert catalogue.rk2(1) == catalogue.get("Midpoint")
    assert catalogue.rk2("3/4") == catalogue.get("Ralston")
    for gamma in ("-2", "1/7", 0.3):
        assert catalogue.rk2(gamma).order == 2
    with pytest.raises(ValueError, match="γ ≠ 0"):
        catalogue.rk2(0)
