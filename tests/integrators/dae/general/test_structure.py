"""Structure against systems whose index is known, and against determinants of random pencils."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from integrators import DAE, problems, solve
from integrators.dae.general import StructureError

from . import oracle


def pendulum(t, y, d):
    x, z, lam = y
    return [d(x, 2) + lam * x, d(z, 2) + lam * z + 9.81, x**2 + z**2 - 1]


def chain(pendulums):
    """Pryce's chain: the length of each pendulum is set by the multiplier of the one before."""

    def F(t, y, d):
        out, length = [], 1.0
        for k in range(pendulums):
            x, z, lam = y[3 * k : 3 * k + 3]
            out += [d(x, 2) + lam * x, d(z, 2) + lam * z + 1.0, x**2 + z**2 - length**2]
            length = 1.0 + 0.1 * lam
        return out

    return DAE(F, n=3 * pendulums)


def test_pendulum():
    found = DAE(pendulum, names=["x", "z", "lambda"]).structure()
    assert found.sigma.dense().tolist() == [[2, -1, 0], [-1, 2, 0], [0, 0, -1]]
    assert (found.c.tolist(), found.d.tolist()) == ([0, 0, 2], [2, 2, 0])
    assert (found.index, found.freedoms) == (3, 2)
    assert "1 of x, z; 1 of x', z'" in str(found)
    assert "<b>2</b>" in found._repr_html_()
    assert r"2^{\bullet}" in found.to_latex()


@pytest.mark.parametrize("pendulums", [1, 2, 3, 4])
def test_chain_of_pendulums(pendulums):
    """Index 2p + 1, two freedoms each (Pryce 2001, example of p pendula)."""
    found = chain(pendulums).structure()
    assert (found.index, found.freedoms) == (2 * pendulums + 1, 2 * pendulums)
    assert len(found.blocks) == pendulums


@pytest.mark.parametrize(
    ("name", "index", "freedoms"),
    [("pendulum_dae", 3, 2), ("jay", 3, 2), ("robertson_dae", 1, 2), ("slider_crank", 2, 2),
     ("lorenz", 0, 3)],
)  # fmt: skip
def test_problems_of_the_library(name, index, freedoms):
    found = DAE.from_problem(problems.get(name)).structure()
    assert (found.index, found.freedoms) == (index, freedoms)


def test_plain_derivatives_and_expressions():
    a = DAE(lambda t, y, yp: [yp[0] - y[1], y[0] - np.sin(t)], n=2).structure()
    b = DAE(lambda t, y, d: [d(y[0]) - y[1], y[0] - np.sin(t)], n=2).structure()
    assert a.sigma.dense().tolist() == b.sigma.dense().tolist() == [[1, 0], [0, -1]]
    product = DAE(lambda t, y, d: [d(y[0] * y[1], 2) - d(t**2), y[0] - 1], n=2)
    assert product.structure().sigma.dense().tolist() == [[2, 2], [0, -1]]
    array = DAE(lambda t, y, d: d(y, 3) + y[::-1], n=4).structure()
    assert array.freedoms == 12
    assert DAE(lambda t, y, d: [d(y[0], 9) + y[0]], n=1).structure().freedoms == 9


def test_conversions():
    """Where derivatives cancel, the pattern alone counts too many freedoms."""
    pair = DAE(
        lambda t, y, d: [d[0] + d[1] - y[0], d[0] + d[1] - y[1] + np.sin(y[0])], names="x z"
    ).structure()
    assert (pair.index, pair.freedoms) == (1, 1)
    assert pair.conversions[0].kind == "linear combination"
    variable = DAE(
        lambda t, y, d: [
            y[0] * d[0] + y[1] * d[1] - np.sin(t), y[0] * y[1] * d[0] + y[1] ** 2 * d[1] - y[0]
        ],
        n=2,
    ).structure()  # fmt: skip
    assert variable.freedoms == 1
    tan = DAE(  # Tan, Nedialkov & Pryce (2017), an example that needs a substitution
        lambda t, y, d: [
            y[0] + np.exp(-d[0] - y[1] * d(y[1], 2)) + np.sin(t),
            y[0] + y[1] * d[1] + y[1] ** 2 + np.cos(t),
        ],
        names=["x1", "x2"],
    ).structure()
    assert tan.conversions[0].kind == "expression substitution"
    assert tan.freedoms == 1
    hidden = DAE(
        lambda t, y, d: [(d[0] + y[1]) ** 2 - d[0] ** 2 - 2 * d[0] * y[1] - y[0], d[1] - y[0]], n=2
    ).structure()
    assert hidden.conversions[0].kind == "cancellation"
    assert hidden.freedoms == 1


def test_unknowns_that_occur_in_sums():
    """A constant in a substitution serves everywhere; a combination needs others, or fails."""

    def shifted(t, y, d):
        x, z, lam = y
        return [
            d(x - lam, 2) + lam * (x - lam),
            d(z, 2) + lam * z + 9.81,
            (x - lam) ** 2 + z**2 - 1,
        ]

    system = DAE(shifted, names=["x", "z", "lambda"])
    found = system.structure()
    assert (found.index, found.freedoms) == (4, 2)
    assert "lambda~0 = lambda − x, for which leading" in str(found)
    start = system.consistent(fixed={"lambda~0": -1.0, "lambda~0'": 0.0})
    problem = system.problem(start, (0.0, 2.0), "underlying")
    sol = solve(problem, method="DOPRI853", rtol=1e-10, atol=1e-10)
    angle = solve(lambda t, y: [y[1], -9.81 * np.sin(y[0])], (0, 2), [np.pi / 2, 0.0], rtol=1e-11)
    assert sol.y[1, -1] == pytest.approx(-np.cos(angle.y[0, -1]), abs=1e-8)
    assert sol.y[0, -1] - sol.y[2, -1] == pytest.approx(np.sin(angle.y[0, -1]), abs=1e-8)

    def chained(t, y, d):
        a, b, c, e, f = y
        return [
            a - np.sin(t), d(a) - b - 0.2 * np.sin(b), d(b) - (c + f) - 0.2 * np.sin(c + f),
            d(c + f) + np.sin(a) - e - 0.2 * np.sin(e), d(e) + 0.3 * np.sin(c) - f - 0.3 * f**3,
        ]  # fmt: skip

    found = DAE(chained, names="a b c e f").structure()
    assert (found.index, found.freedoms, found.singularity) == (5, 0, None)
    assert len(found.d) == 6  # one new unknown, for all derivatives of c + f


def test_singular_systems_are_named():
    over = DAE(lambda t, y, d: [d[0] - y[0], y[0] - 1, d[0] - 2], names="x z w")
    text = str(over.structure())
    assert "z, w appears in no equation" in text
    assert "overdetermined: the 3 equations f0, f1, f2 contain only 1 unknowns (x)" in text
    with pytest.raises(StructureError, match="underdetermined"):
        over.consistent()
    short = DAE(lambda t, y, d: [d[0] - y[1]], names="x z")
    with pytest.raises(StructureError, match="1 equations for 2 unknowns"):
        short.consistent()
    same = DAE(lambda t, y, d: [d[0] - y[0] * y[1], d[0] - y[0] * y[1]], names="x z")
    with pytest.raises(StructureError, match="f1 contains no unknown"):
        same.consistent()


def test_careless_equations():
    with pytest.raises(TypeError, match="how many unknowns"):
        DAE(pendulum)
    with pytest.raises(TypeError, match="where"):
        DAE(lambda t, y, d: [d[0] if y[0] > 0 else y[0]], n=1).structure()
    with pytest.raises(TypeError, match="order of a derivative"):
        DAE(lambda t, y, d: [d(y[0], -1)], n=1).structure()
    with pytest.raises(ValueError, match="shape"):
        DAE(lambda t, y, d: [[d[0]]], n=1).structure()
    with pytest.raises(ValueError, match="takes no parameters"):
        DAE(lambda t, y, d: [d[0]], n=1, params=[1.0]).structure()
    with pytest.raises(ValueError, match="takes parameters p"):
        DAE(lambda t, y, d, p: [d[0] - p[0]], n=1).structure()
    with pytest.raises(ValueError, match="two unknowns"):
        DAE(pendulum, names=["x", "x", "l"])
    with pytest.raises(TypeError, match="F\\(t, y, d\\)"):
        DAE(lambda t, y: y, n=1).structure()


def degree_of_determinant(coefficients):
    """deg det Σ A_k s^k in exact arithmetic; None if it vanishes. A_k has integer entries."""
    orders, n, _ = coefficients.shape
    points = (orders - 1) * n + 1
    values = []
    for s in range(points):
        M = [
            [sum(Fraction(int(coefficients[k, i, j])) * s**k for k in range(orders))
             for j in range(n)]
            for i in range(n)
        ]  # fmt: skip
        values.append(_determinant(M))
    degree = None
    for k in range(points):  # k-th forward difference at 0: Newton's form
        if values[0] != 0:
            degree = k
        values = [b - a for a, b in pairwise(values)]
    return degree


def _determinant(M):
    n, sign = len(M), 1
    product = Fraction(1)
    for k in range(n):
        pivot = next((i for i in range(k, n) if M[i][k] != 0), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            M[k], M[pivot], sign = M[pivot], M[k], -sign
        product *= M[k][k]
        for i in range(k + 1, n):
            factor = M[i][k] / M[k][k]
            for j in range(k, n):
                M[i][j] -= factor * M[k][j]
    return sign * product


def random_pencil(rng):
    n, orders = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    A = rng.integers(-2, 3, (orders, n, n)) * (rng.random((orders, n, n)) < 0.45)
    if rng.random() < 0.5:  # an equation whose leading part is that of another
        i, k = rng.choice(n, 2, replace=False)
        A[-1, i] = rng.integers(1, 3) * A[-1, k]
    return A


def linear_system(A):
    def F(t, y, d):
        return sum(M @ np.asarray(d(y, k)) for k, M in enumerate(A))

    return DAE(F, n=A.shape[1])


def test_freedoms_of_random_linear_systems():
    """For constant coefficients the freedoms are the degree of det Σ A_k s^k."""
    rng = np.random.default_rng(0)
    regular = changed = 0
    for _ in range(250):
        A = random_pencil(rng)
        expected, found = degree_of_determinant(A), linear_system(A).structure()
        assert found.regular == (expected is not None), A
        if expected is not None:
            assert found.freedoms == expected, A
            regular += 1
            changed += bool(found.conversions)
    assert regular > 100
    assert changed > 15


def test_against_brute_force():
    """Differentiated by hand and ranks counted; 10,000 by ``python -m`` (see the module)."""
    kinds = oracle.run(120, seed=3)
    right = sum(count for kind, count in kinds.items() if kind not in ("refused", "singular"))
    assert right > 60
    assert kinds.get("refused", 0) <= 1  # said to be misleading, no conversion was found
    assert any(kind.startswith("converted") for kind in kinds)


@pytest.mark.parametrize(
    ("mass", "f", "message"),
    [
        ([[1, 0, 0], [0, 1, 0]], lambda t, y: [y[0], y[1]], "square matrix"),
        ([[np.nan, 0], [0, 1]], lambda t, y: [y[0], y[1]], "finite"),
        (np.eye(2), lambda t, y: [y[0], y[1], y[0]], "M ẏ has 2 components"),
    ],
)
def test_careless_mass_matrices(mass, f, message):
    with pytest.raises(ValueError, match=message):
        DAE.from_mass_matrix(mass, f).structure()


def test_a_large_sparse_mass_matrix():
    n = 500
    mass = scipy.sparse.diags([1.0] * (n - 1) + [0.0], format="csc")
    found = DAE.from_mass_matrix(mass, lambda t, y: np.append(-y[:-1], y[-1] - y[0])).structure()
    assert (found.index, found.freedoms) == (1, n - 1)
    with pytest.raises(ValueError, match="too large for LaTeX"):
        found.to_latex()


def test_latex_of_strange_names():
    text = (
        DAE(lambda t, y, d: [d[0] - y[1], y[1] - 1], names=["a_%b", "{λ&"]).structure().to_latex()
    )
    assert r"\mathrm{a\_\%b}" in text
    assert r"\mathrm{\{λ\&}" in text


def test_the_index_counts_derivatives_that_conversions_removed():
    """ẍ + z̈ cancels in a combination, but the index asks for ẍ, which is in the equations."""
    found = DAE(
        lambda t, y, d: [d(y[0], 2) + d(y[1], 2) - y[0], d[0] + d[1] - y[1]], names="x z"
    ).structure()
    regular, freedoms, index = oracle.brute_force(
        [[(1, ((0, 2),)), (1, ((1, 2),)), (-1, ((0, 0),))],
         [(1, ((0, 1),)), (1, ((1, 1),)), (-1, ((1, 0),))]],
        np.random.default_rng(0),
    )  # fmt: skip
    assert regular
    assert (found.index, found.freedoms) == (index, freedoms)
