"""Interval bounds contain every sample."""

import numpy as np
import pytest
from hypothesis import given, seed, settings

from integrators.tracing import trace, traced
from integrators.tracing.calculus.interval import INTERVALS, bounds
from integrators.tracing.graph import UNARY
from tests.integrators.tracing.random_programs import N, function, states, steps


def test_every_operation_has_an_interval_version():
    from integrators.tracing.graph import OPERATIONS

    assert set(INTERVALS) == OPERATIONS | {"square"}


@pytest.mark.parametrize("op", sorted(UNARY))
def test_functions_contain_samples(op):
    rng = np.random.default_rng(7)
    for _ in range(300):
        centre, radius = rng.normal(scale=3), 10.0 ** rng.uniform(-12, 1)
        lo, hi = centre - radius, centre + radius
        x = np.concatenate([[lo, hi], rng.uniform(lo, hi, 50)])
        with np.errstate(all="ignore"):
            values = UNARY[op](x)
        values = values[~np.isnan(values)]
        a, b = INTERVALS[op]((lo, hi))
        if len(values):
            assert a <= values.min()
            assert values.max() <= b


def test_ranges_are_sharp():
    two_ulp = 1e-15
    for op, box, expected in [
        ("sin", (0.0, 3.0), (0.0, 1.0)),
        ("sin", (0.0, 7.0), (-1.0, 1.0)),
        ("cos", (3.0, 3.2), (-1.0, np.cos(3.0))),
        ("cos", (-0.1, 0.2), (np.cos(0.2), 1.0)),
        ("tan", (1.0, 2.0), (-np.inf, np.inf)),
        ("abs", (-2.0, 1.0), (0.0, 2.0)),
        ("sqrt", (-1.0, 4.0), (0.0, 2.0)),
        ("cosh", (-1.0, 0.5), (1.0, np.cosh(1.0))),
        ("log", (0.0, 1.0), (-np.inf, 0.0)),
    ]:
        np.testing.assert_allclose(INTERVALS[op](box), expected, rtol=two_ulp, atol=two_ulp)


def test_binary_corner_cases():
    assert INTERVALS["div"]((1.0, 2.0), (-1.0, 1.0)) == (-np.inf, np.inf)
    assert np.isnan(INTERVALS["log"]((-2.0, -1.0))[0])
    lo, hi = INTERVALS["pow"]((-2.0, 3.0), (2.0, 2.0))
    assert lo <= 0.0
    assert hi == pytest.approx(9.0)
    lo, hi = INTERVALS["pow"]((-2.0, 3.0), (3.0, 3.0))
    assert (lo, hi) == (pytest.approx(-8.0), pytest.approx(27.0))
    assert INTERVALS["pow"]((-1.0, 1.0), (-1.0, -1.0)) == (-np.inf, np.inf)
    lo, hi = INTERVALS["atan2"]((-1.0, 1.0), (-2.0, -1.0))
    assert lo <= -np.pi
    assert np.pi <= hi


def test_square_is_not_a_product_of_strangers():
    lo, _ = bounds(trace(lambda t, y: y[0] ** 2, (), 1), 1, 0, ([-1.0], [2.0]))
    assert lo >= -1e-300


@seed(4)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(steps, states)
def test_random_graphs_and_their_jacobians(recipe, y):
    f = traced(function(recipe), n=N, params=1)
    rng = np.random.default_rng(11)
    radius = np.array([0.1, 0.01, 0.3])
    box = (y - radius, y + radius)
    for g in (f, f.jacobian()):
        lo, hi = g.interval(box, t=(0.0, 1.0), p=([0.3], [0.4]))
        for _ in range(20):
            point = [rng.uniform(0, 1), *rng.uniform(*box), rng.uniform(0.3, 0.4)]
            value = np.array(g.graph.evaluate(point), dtype=float).reshape(lo.shape)
            assert np.all(lo <= value)
            assert np.all(value <= hi)


def test_lipschitz_of_the_pendulum():
    lo, hi = (
        traced(lambda t, y: [y[1], -9.81 * np.sin(y[0])], n=2)
        .jacobian()
        .interval(([-4.0, -1.0], [4.0, 1.0]))
    )
    np.testing.assert_allclose(lo, [[0, 1], [-9.81, 0]], rtol=1e-14)
    np.testing.assert_allclose(hi, [[0, 1], [9.81, 0]], rtol=1e-14)


def test_equal_intervals_of_different_nodes_are_not_a_square():
    # Two sines both range over [−1, 1]; their product does too, down to −1.
    f = traced(
        lambda t, y: [np.sin(y[0]) * np.sin(y[1]), np.sin(y[0]) * np.cos(y[0])], n=2, outputs=2
    )
    lo, hi = f.interval(([-4.0, -4.0], [4.0, 4.0]))
    assert np.all(lo <= [-1.0, -0.5])
    assert np.all(hi >= [1.0, 0.5])


def test_bad_boxes():
    f = traced(lambda t, y: y, n=2)
    with pytest.raises(ValueError, match="two vectors of length 2"):
        f.interval([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="exceeds"):
        f.interval(([1.0, 2.0], [0.0, 3.0]))


SMALL = [(float(a), float(b)) for a in range(-1, 3) for b in range(a, 3)]
TRUTHS = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]


@pytest.mark.parametrize("op", ["lt", "le", "eq", "ne"])
def test_comparisons_are_as_sharp_as_can_be(op):
    """0 or 1 where the boxes decide it, both where they do not: by trying halves of numbers."""
    compare = {"lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal}[op]
    for a in SMALL:
        for b in SMALL:
            x, y = (np.arange(lo, hi + 0.25, 0.5) for lo, hi in (a, b))
            outcomes = compare(x[:, None], y[None, :])
            expected = float(outcomes.min()), float(outcomes.max())
            assert INTERVALS[op](a, b) == expected, (a, b)


def test_conditions_are_combined_as_sharply():
    values = {(0.0, 0.0): [0], (0.0, 1.0): [0, 1], (1.0, 1.0): [1]}
    for a in TRUTHS:
        assert INTERVALS["not"](a) == (1.0 - max(values[a]), 1.0 - min(values[a]))
        for b in TRUTHS:
            pairs = [(x, y) for x in values[a] for y in values[b]]
            for op, combine in (("and", min), ("or", max)):
                found = [combine(pair) for pair in pairs]
                assert INTERVALS[op](a, b) == (min(found), max(found))
    low, high = (1.0, 2.0), (5.0, 6.0)
    chosen = [INTERVALS["select"](c, low, high) for c in TRUTHS]
    assert chosen == [high, (1.0, 6.0), low]
