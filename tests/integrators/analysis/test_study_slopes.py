"""The order that errors show: synthetic errors whose order is known by construction."""

import numpy as np
import pytest

from integrators.analysis import estimate_order
from integrators.analysis.study.slopes import round_off_floor

RATIOS = (2.0, 2**0.5, 2**0.25)


def ladder(count, ratio=2.0, first=0.1):
    return first * ratio ** -np.arange(float(count))


@pytest.mark.parametrize("order", range(1, 9))
@pytest.mark.parametrize("ratio", RATIOS)
def test_pure_powers(order, ratio):
    h = ladder(8, ratio)
    estimate = estimate_order(h, 7.0 * h**order)
    assert estimate.found
    assert abs(estimate.order - order) < 1e-6
    assert set(estimate.marks) == {"used"}


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("count", [3, 4, 5, 6, 8, 12])
def test_the_interval_covers_the_order(ratio, count):
    """Random further terms: at least 95 % of the intervals that are claimed contain the order."""
    rng = np.random.default_rng(7)
    found = right = 0
    for _ in range(80):
        order, D, E = rng.integers(1, 7), 2 * rng.normal(), 5 * rng.normal()
        h = ladder(count, ratio)
        estimate = estimate_order(h, h**order * np.abs(1 + D * h + E * h * h))
        found += estimate.found
        right += estimate.found and order in estimate
    assert found >= 30
    assert right >= 0.95 * found


@pytest.mark.parametrize("count", [4, 5, 6, 8, 12, 20])
@pytest.mark.parametrize("spread", [0.3, 1.0, 2.0])
def test_no_order_from_noise(count, spread):
    """Errors scattered about a level, far above the floor we know of: no order is in them."""
    rng = np.random.default_rng(11)
    claims = 0
    for ratio in RATIOS:
        for _ in range(40):
            errors = 1e-9 * np.exp(spread * rng.normal(size=count))
            claims += estimate_order(ladder(count, ratio), errors, 1e-14).found
    assert claims <= 1  # of 120


def test_round_off_is_marked_and_excluded():
    rng = np.random.default_rng(3)
    h = ladder(24, 2**0.5)
    noise = 3e-15 * np.abs(rng.normal(size=h.size))
    floors = [round_off_floor(round(1 / x)) for x in h]
    estimate = estimate_order(h, 50 * h**6 + noise, floors)
    assert 6 in estimate
    assert estimate.marks[-1] == "round-off"
    assert "used" not in estimate.marks[14:]  # there 50 h⁶ < 1e-13


def test_an_unknown_plateau_is_found_from_the_data():
    h = ladder(14, 2**0.5)
    estimate = estimate_order(h, h**4 + 1e-9)
    assert 4 in estimate
    assert estimate.marks[-1] == "stalled"
    assert estimate.stalled_at == pytest.approx(1e-9, rel=0.2)


def test_errors_below_the_reference_are_set_aside():
    h = ladder(10)
    estimate = estimate_order(h, h**2 + 2e-7, uncertainty=1e-6)
    assert 2 in estimate
    assert set(estimate.marks[-4:]) == {"reference"}


def test_long_steps_are_pre_asymptotic():
    h = ladder(12, 2.0, first=1.0)
    estimate = estimate_order(h, h**3 * (1 + 20 * h**2))  # slope 5 before it is 3
    assert 3 in estimate
    assert estimate.marks[0] == "pre-asymptotic"
    assert 5 not in estimate


def test_gaps_do_not_matter():
    h = ladder(8)
    errors = list(h**2)
    errors[0] = None
    errors[4] = float("nan")
    estimate = estimate_order(h, errors)
    assert 2 in estimate
    assert estimate.marks[0] == estimate.marks[4] == "failed"


def test_the_order_of_the_list_does_not_matter():
    h = ladder(7)
    e = h**3 * (1 + h)
    mixed = np.random.default_rng(0).permutation(7)
    assert estimate_order(h[mixed], e[mixed]).order == pytest.approx(estimate_order(h, e).order)


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ([1e-16, 2e-16, 1e-16, 3e-16], "level of round-off"),
        ([1e-3, None, None, None], "failed at 3 of 4"),
        ([1e-3, 1e-3, 1e-3, 1e-3], "does not fall"),
        ([1e-3, 1e-16, 1e-16, 1e-16], "round-off"),
        ([1e-3, 1e-9, 2e-8, 1e-12], "not settled"),
    ],
)
def test_reasons(errors, words):
    estimate = estimate_order(ladder(4), errors, 1e-14)
    assert not estimate.found
    assert words in estimate.reason
    assert np.isnan(estimate.order)
    assert "used" not in estimate.marks


def test_two_steps_are_too_few():
    assert "at least 3" in estimate_order([0.1, 0.05], [1e-2, 2.5e-3]).reason


@pytest.mark.parametrize(
    ("steps", "errors", "words"),
    [
        ([0.1, 0.05], [1.0], "one error for each"),
        ([0.1, 0.1, 0.05], [1.0, 1.0, 1.0], "differ"),
        ([0.1, -0.1, 0.05], [1.0, 1.0, 1.0], "positive"),
        ([0.1, np.inf, 0.05], [1.0, 1.0, 1.0], "finite"),
        ([0.1, 0.2, 0.05], [1.0, -1.0, 1.0], "negative"),
    ],
)
def test_bad_input(steps, errors, words):
    with pytest.raises(ValueError, match=words):
        estimate_order(steps, errors)
