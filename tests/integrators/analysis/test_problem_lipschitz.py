"""Lipschitz constants and logarithmic norms against closed forms and brute force."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrators import IVP, analysis, problems, traced, where
from integrators.analysis.problem.fields import Field, doubts, enclose
from integrators.analysis.problem.norms import as_norm

GAP = 1e-3  # the default gap between the bounds
ROUNDING = 1e-12


def pendulum(t, y):
    return [y[1], -9.81 * np.sin(y[0])]


# ------------------------------------------------------------------------------ norms


@pytest.mark.parametrize("p", [1, 2, np.inf])
@pytest.mark.parametrize("weighted", ["plain", "diagonal", "full"])
def test_matrix_and_logarithmic_norms_follow_their_definitions(p, weighted):
    rng = np.random.default_rng(1)
    n = 4
    weights = {"plain": None, "diagonal": rng.uniform(0.5, 2, n), "full": np.eye(n) * 2 + rng.random((n, n))}[weighted]  # noqa: E501  # fmt: skip
    norm = as_norm(p, n, weights)
    W = np.eye(n) if weights is None else (np.diag(weights) if weighted == "diagonal" else weights)
    for _ in range(5):
        A = rng.standard_normal((n, n))
        v = rng.standard_normal((2000, n))
        assert norm.vector(v[0]) == pytest.approx(np.linalg.norm(W @ v[0], ord=p))
        # ‖A‖ is the smallest number with ‖Av‖ ≤ ‖A‖‖v‖.
        quotients = norm.vector(v @ A.T) / norm.vector(v)
        assert quotients.max() <= norm.matrix(A) * (1 + ROUNDING)
        assert quotients.max() >= 0.7 * norm.matrix(A)
        h = 1e-7  # μ(A) = lim (‖I + hA‖ − 1)/h; the remainder is O(h)
        limit = (norm.matrix(np.eye(n) + h * A) - 1) / h
        assert norm.logarithmic(A) == pytest.approx(limit, abs=1e-5)


@pytest.mark.parametrize("p", [1, 2, np.inf])
@pytest.mark.parametrize("weights", [None, [1.0, 3.0, 0.2], np.eye(3) + 0.3])
def test_bounds_hold_for_every_matrix_of_an_interval(p, weights):
    rng = np.random.default_rng(2)
    norm = as_norm(p, 3, weights)
    C, D = rng.standard_normal((3, 3)), rng.random((3, 3))
    lo, hi = C - D, C + D
    samples = lo + (hi - lo) * rng.integers(0, 2, (4000, 3, 3))  # the worst are at the corners
    for exact, bound in (
        (norm.matrix, norm.matrix_bound),
        (norm.logarithmic, norm.logarithmic_bound),
    ):
        largest = exact(samples).max()
        assert largest <= bound(lo, hi)
        assert bound(lo, hi) <= 2 * largest + 2
        assert bound(C, C) == pytest.approx(exact(C), rel=1e-12)
        assert bound(np.full((3, 3), -np.inf), hi) == math.inf


# ------------------------------------------------------------------------------ closed forms


@pytest.mark.parametrize(
    ("f", "box", "norm", "L", "nu"),
    [
        (lambda t, y: y**2, (-3, 2), 2, 6.0, 4.0),  # f' = 2y
        (lambda t, y: -(y**3), (1, 2), 2, 12.0, -3.0),  # f' = −3y²
        (lambda t, y: np.sin(3 * y), (-1, 2), 2, 3.0, 3.0),
        (pendulum, ([-1, -2], [1, 2]), 2, 9.81, (9.81 - 1) / 2),  # at cos θ = cos 1: (9.81c − 1)/2
        (pendulum, ([-1, -2], [1, 2]), np.inf, 9.81, 9.81),
        (pendulum, ([-1, -2], [1, 2]), 1, 9.81, 9.81),
        (lambda t, y: [y[0] * y[1], -y[1]], ([0, 0], [2, 1]), np.inf, 3.0, 3.0),
        (lambda t, y: np.abs(y - 0.3), (-1, 2), 2, 1.0, 1.0),  # a kink is harmless
        (lambda t, y: 1 / (y**2 - y + 1), (0, 2), 2, 1.0, 1.0),  # at y = 0: f' = 1
    ],
)
def test_bounds_enclose_the_constant(f, box, norm, L, nu):
    for analyse, truth in ((analysis.lipschitz, L), (analysis.logarithmic_norm, nu)):
        found = analyse(f, box, norm)
        assert found.guaranteed
        assert found.is_lipschitz is True
        assert found.lower <= truth + ROUNDING * abs(truth)
        assert truth <= found.upper
        assert found.upper - found.lower <= GAP * abs(truth) + ROUNDING


def test_time_and_parameters_enter():
    f = traced(lambda t, y, p: p[0] * t * y, n=1, params=1)
    found = analysis.lipschitz(f, (-1, 1), t=(-3, 2), params=[5.0])
    assert found.upper == pytest.approx(15.0, rel=GAP)
    assert found.t == -3.0
    problem = problems.get("linear_growth")  # y' = ty + t on [0, 1]
    assert analysis.lipschitz(problem, (0, 3)).upper == pytest.approx(1.0, rel=1e-12)
    assert analysis.lipschitz(problem, (0, 3), t=0.25).upper == pytest.approx(0.25, rel=1e-12)


def test_lorenz_against_a_grid():
    lorenz = problems.get("lorenz")
    lo, hi = np.array([-20.0, -30.0, 0.0]), np.array([20.0, 30.0, 50.0])
    axes = [np.linspace(a, b, 21) for a, b in zip(lo, hi)]
    points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 3)
    sigma, rho, beta = 10.0, 28.0, 8 / 3
    J = np.zeros((len(points), 3, 3))
    x, y, z = points.T
    J[:, 0, 0], J[:, 0, 1] = -sigma, sigma
    J[:, 1, 0], J[:, 1, 1], J[:, 1, 2] = rho - z, -1, -x
    J[:, 2, 0], J[:, 2, 1], J[:, 2, 2] = y, x, -beta
    symmetric = (J + J.transpose(0, 2, 1)) / 2
    truths = {
        ("lipschitz", 2): np.linalg.norm(J, 2, axis=(1, 2)).max(),
        ("lipschitz", 1): np.abs(J).sum(axis=1).max(),
        ("lipschitz", np.inf): np.abs(J).sum(axis=2).max(),
        ("logarithmic_norm", 2): np.linalg.eigvalsh(symmetric)[:, -1].max(),
    }
    for (name, p), truth in truths.items():
        found = getattr(analysis, name)(lorenz, (lo, hi), p)
        assert found.guaranteed
        assert truth <= found.upper <= truth * 1.01
        assert found.lower == pytest.approx(truth, rel=1e-3)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.floats(-6, 6), min_size=2, max_size=2),
    st.lists(st.floats(0, 8), min_size=2, max_size=2),
    st.sampled_from([1, 2, np.inf]),
    st.integers(1, 30),
)
def test_no_difference_quotient_exceeds_the_upper_bound(corner, width, norm, budget):
    """Also where the budget allows but one box; sines of different arguments are not one sine."""

    def f(t, y):
        return [np.sin(y[0]) * np.cos(y[1]) + np.abs(y[0]), np.tanh(y[0] * y[1]) - np.sin(y[1])]

    lo = np.array(corner)
    hi = lo + width
    found = analysis.lipschitz(f, (lo, hi), norm, budget=budget)
    rng = np.random.default_rng(3)
    x, y = (lo + (hi - lo) * rng.random((200, 2)) for _ in range(2))
    size = as_norm(norm, 2)
    fx, fy = (np.array([f(0, v) for v in points]) for points in (x, y))
    gap = size.vector(x - y)
    assert np.all(size.vector(fx - fy) <= found.upper * gap + 1e-12)
    assert found.lower <= found.upper


def test_one_interval_from_two_sines_is_not_squared():
    field = Field(lambda t, y: [np.sin(y[0]) * np.sin(y[1]), 0.0 * y[0]], 2)
    lo, hi = enclose(field.graph, field.inputs(np.array([0, -4.0, -4.0]), np.array([0, 4.0, 4.0])))
    assert lo[0] == pytest.approx(-1)
    assert hi[0] == pytest.approx(1)


def test_larger_budgets_sharpen():
    def f(t, y):
        return [y[1], (1 - y[0] ** 2) * y[1] * np.sin(y[0]) - y[0]]

    upper = [analysis.lipschitz(f, ([-2, -3], [2, 3]), budget=b).upper for b in (1, 10, 100, 2000)]
    assert upper == sorted(upper, reverse=True)
    assert upper[0] > 1.2 * upper[-1]
    assert any(
        "budget" in note for note in analysis.lipschitz(f, ([-2, -3], [2, 3]), budget=10).notes
    )


def test_weights_reveal_contraction():
    """y' = Ay with eigenvalues −1, −2 contracts, though not in the Euclidean norm."""
    A = np.array([[-1.0, 10.0], [0.0, -2.0]])

    def f(t, y):
        return A @ y

    box = ([-1, -1], [1, 1])
    assert analysis.logarithmic_norm(f, box).lower > 3
    V = np.linalg.eig(A)[1]
    found = analysis.logarithmic_norm(f, box, weights=np.linalg.inv(V))
    assert found.upper == pytest.approx(-1.0, abs=1e-9)
    assert found.guaranteed


# ------------------------------------------------------------------------------ not Lipschitz


def root(t, y):
    return np.sqrt(np.abs(y))


def untraceable_root(t, y):
    return [math.sqrt(abs(y[0]))]


@pytest.mark.parametrize("f", [root, untraceable_root])
@pytest.mark.parametrize("box", [(-1, 1), (-1, 2), (0, 3)])
def test_square_root_is_not_lipschitz(f, box):
    """Notes, Example 1.3: the quotient is 1/√d: 10 at 10⁻², 1000 at 10⁻⁶."""
    found = analysis.lipschitz(f, box)
    assert found.is_lipschitz is False
    assert found.upper == math.inf
    assert not found.guaranteed
    assert found.y[0] == pytest.approx(0.0, abs=1e-7)
    q = found.quotients
    assert q.exponent == pytest.approx(-0.5, abs=0.02)
    at = dict(zip(np.round(np.log10(q.distances)).astype(int), q.values))
    assert at[-2] == pytest.approx(10, rel=1e-3)
    assert at[-6] == pytest.approx(1000, rel=1e-3)
    assert "not Lipschitz" in str(found)
    assert "10 at distance 1e-02" in str(found)
    assert "1e+03 at distance 1e-06" in str(found)


def test_square_root_is_lipschitz_away_from_zero():
    found = analysis.lipschitz(root, (0.25, 4))
    assert found.upper == pytest.approx(1.0, rel=GAP)  # 1/(2√0.25)
    assert found.is_lipschitz


def test_other_ways_not_to_be_lipschitz():
    jump = analysis.lipschitz(lambda t, y: np.sign(y - 0.3), (-1, 2))
    assert jump.is_lipschitz is False
    assert jump.quotients.exponent == pytest.approx(-1, abs=0.05)
    assert jump.y[0] == pytest.approx(0.3, abs=1e-6)
    logarithm = analysis.lipschitz(lambda t, y: y * np.log(np.abs(y) + 1e-300), (-1, 2))
    assert logarithm.is_lipschitz is False  # the quotient is −log d
    pole = analysis.lipschitz(lambda t, y: 1 / y, (-1, 2))
    assert pole.is_lipschitz is False
    assert "not finite" in str(pole)


def test_what_is_not_proved_is_not_claimed():
    ramp = analysis.lipschitz(lambda t, y: where(y > 0, y, 0 * y), (-1, 2))
    assert ramp.is_lipschitz is None
    assert not ramp.guaranteed
    assert ramp.upper == pytest.approx(1.0)
    assert "switches" in str(ramp)
    cusp = analysis.lipschitz(lambda t, y: y * np.sqrt(y + y * y), (0, 2))  # Lipschitz
    assert cusp.is_lipschitz is None
    assert cusp.lower == pytest.approx(11 / math.sqrt(6), rel=1e-6)  # the slope at 2
    assert "intervals give no bound" in str(cusp)


def test_a_power_of_three_halves_is_proved():
    """Its slope is (3/2)√y, also where the product rule would give 0·∞."""
    found = analysis.lipschitz(lambda t, y: y * np.sqrt(y), (0, 2))
    assert found.is_lipschitz
    assert found.guaranteed
    assert found.upper == pytest.approx(1.5 * math.sqrt(2), rel=1e-12)


def test_sampling_only_says_what_is_lost():
    found = analysis.lipschitz(lambda t, y: [math.sin(3 * y[0])], (-1, 2))
    assert found.is_lipschitz is None
    assert found.upper == math.inf
    assert found.lower == pytest.approx(3.0, rel=1e-6)
    assert "sampling only" in str(found)
    assert "np.sin" in str(found)  # the remedy that tracing names


def test_quotients_at_a_regular_point_stay_bounded():
    q = analysis.difference_quotients(root, [0.25])
    assert not q.growing
    assert q.values[-1] == pytest.approx(1.0, rel=1e-5)


# ------------------------------------------------------------------------------ continuity


@pytest.mark.parametrize(
    ("f", "box", "doubtful"),
    [
        (lambda t, y: np.floor(y), (0.2, 0.8), False),
        (lambda t, y: np.floor(y), (0.2, 1.8), True),
        (lambda t, y: np.log(y), (0.1, 1), False),
        (lambda t, y: np.log(y), (-0.1, 1), True),
        (lambda t, y: np.tan(y), (-1, 1), False),
        (lambda t, y: np.tan(y), (-2, 2), True),
        (lambda t, y: y**-2.0, (0.5, 1), False),
        (lambda t, y: y**-2.0, (-0.5, 1), True),
        (lambda t, y: np.arcsin(y), (-1, 1), False),
        (lambda t, y: np.arcsin(y), (-1, 1.1), True),
        (lambda t, y: np.maximum(y, 0) + np.abs(y), (-1, 1), False),
        (lambda t, y: np.arctan2(y, 1.0 + 0 * y), (-1, 1), False),
        (lambda t, y: np.arctan2(y, -1.0 + 0 * y), (-1, 1), True),
    ],
)
def test_continuity_is_proved_or_doubted(f, box, doubtful):
    field = Field(f, 1)
    assert bool(doubts(field.graph, [(0.0, 0.0), tuple(map(float, box))])) is doubtful


# ------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"box": (2, 1)}, ValueError, "reversed"),
        ({"box": ([0, 0], [1, 1])}, ValueError, "states|shape"),
        ({"box": (0, np.nan)}, ValueError, "NaN"),
        ({"box": (0, np.inf)}, ValueError, "bounded"),
        ({"box": (1, 2, 3)}, ValueError, "two vectors"),
        ({"box": "wide"}, TypeError, "two vectors"),
        ({"box": None}, ValueError, "box"),
        ({"norm": 3}, ValueError, "1, 2 or inf"),
        ({"norm": "euclid"}, ValueError, "1, 2 or inf"),
        ({"weights": [-1.0]}, ValueError, "positive"),
        ({"weights": [1.0, 1.0]}, ValueError, "1 numbers"),
        ({"t": (0, 1, 2)}, ValueError, "earliest"),
        ({"gap": 0}, ValueError, "gap"),
        ({"budget": 0}, ValueError, "budget"),
        ({"f": 3}, TypeError, "function"),
        ({"f": lambda t, y: [y[0], y[0]]}, ValueError, "shape"),
        ({"f": lambda t, y: [math.sin(y[0]), 1.0]}, ValueError, "shape"),
        ({"f": lambda t, y: np.log(y - 10)}, ValueError, "not a number"),
    ],
)
def test_bad_input(change, error, words):
    arguments = {"f": lambda t, y: [y[0]], "box": (0, 1), "norm": 2} | change
    f, box, norm = (arguments.pop(k) for k in ("f", "box", "norm"))
    with pytest.raises(error, match=words):
        analysis.lipschitz(f, box, norm, **arguments)


def test_bad_problems():
    singular = IVP(lambda t, y: -y, [1.0, 1.0], (0, 1), mass=np.diag([1.0, 0.0]))
    with pytest.raises(ValueError, match="mass"):
        analysis.lipschitz(singular, ([0, 0], [1, 1]))
    with pytest.raises(ValueError, match="singular"):
        analysis.lipschitz(lambda t, y: y, ([0, 0], [1, 1]), weights=np.ones((2, 2)))
    with pytest.raises(ValueError, match="components"):
        analysis.lipschitz(problems.get("lorenz"), (0, 1))
    with pytest.raises(ValueError, match="decreasing"):
        analysis.difference_quotients(root, [0.0], distances=[1e-3, 1e-2])
