"""Fits to data of which the truth is known."""

import numpy as np
import pytest

from integrators import IVP, fit, solve, traced
from integrators.analysis.study.order_fit import student
from multibody import ModelFamily

SWING = traced(lambda t, y, p: [y[1], -p[0] * np.sin(y[0]) - p[1] * y[1]], n=2, params=2)
TRUTH = IVP(SWING, [1.0, 0.0], (0.0, 4.0), params=[4.0, 0.3])
TIMES = np.linspace(0.2, 4.0, 40)
CLEAN = solve(TRUTH, t_eval=TIMES, method="DOP853", rtol=1e-11, atol=1e-13).y


def test_exact_data_give_back_what_made_them():
    guess = TRUTH.with_(params=[3.0, 0.1], y0=[0.8, 0.0])
    found = fit(guess, TIMES, CLEAN[:1], ["p[0]", "p[1]", "y0[0]"], observe=[0])
    assert found.success
    assert found.identifiable
    assert found.values == pytest.approx([4.0, 0.3, 1.0], abs=1e-7)
    assert found.runs < 20


def test_intervals_hold_the_truth_as_often_as_they_say():
    """95 % of intervals contain the truth; fewer than 33 of 40 would once in 10⁴ times."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(40):
        noisy = CLEAN[:1] + 0.02 * rng.standard_normal((1, TIMES.size))
        found = fit(TRUTH, TIMES, noisy, ["p[0]"], observe=[0], rtol=1e-7)
        low, high = found.interval("p[0]")
        hits += low <= 4.0 <= high
        assert found.errors[0] == pytest.approx(0.01, rel=0.6)
    assert 33 <= hits <= 40


def test_a_function_is_observed_and_missing_data_are_left_out():
    energy = lambda t, y, p: [0.5 * y[1] ** 2 - p[0] * np.cos(y[0])]  # noqa: E731
    data = np.array([[energy(0.0, y, TRUTH.params)[0] for y in CLEAN.T]])
    data[0, ::7] = np.nan
    guess = TRUTH.with_(params=[3.5, 0.2])
    found = fit(guess, TIMES, data, ["p[0]", "p[1]"], observe=energy, sigma=0.01)
    assert found.values == pytest.approx([4.0, 0.3], abs=1e-6)
    assert found.freedom == np.count_nonzero(~np.isnan(data)) - 2
    assert "p[0] = 4" in str(found)


def test_what_the_data_do_not_determine_is_told():
    twice = IVP(lambda t, y, p: -(p[0] + p[1]) * y, [1.0], (0.0, 2.0), params=[0.5, 0.5])
    found = fit(twice, TIMES / 2, np.exp(-1.2 * TIMES / 2), ["p[0]", "p[1]"])
    assert not found.identifiable
    assert sum(found.values) == pytest.approx(1.2, abs=1e-6)
    assert np.isinf(found.errors).all()


def test_a_mechanism_by_the_names_of_its_parameters():
    family = ModelFamily("pendulum", {"length": 1.0, "mass": 1.0})
    problem = family.problem([1.0], [0.0], (0.0, 2.0))
    times = np.linspace(0.1, 2.0, 20)
    truth = problem.with_values({"length": 1.3})
    data = solve(truth, t_eval=times, method="DOP853", rtol=1e-11, atol=1e-13).y[:1]
    found = fit(problem, times, data, ["length"], observe=[0])
    assert found.values == pytest.approx([1.3], abs=1e-7)


FED = IVP(
    traced(lambda t, y, p: -p[0] * y + p[1], n=1, params=2), [1.0], (0.0, 4.0), params=[1.0, 0.05]
)


def test_an_estimate_on_its_bound_is_told_and_its_interval_goes_inside(tmp_path):
    """The end of its interval is where the best fit of the others is worse by t² s²."""
    noise = 0.01 * np.sin(40.0 * TIMES**2)
    data = np.exp(-TIMES) - 0.01 * (1.0 - np.exp(-TIMES)) + noise
    free = fit(FED, TIMES, data, ["p[0]", "p[1]"])
    assert free.on_bounds == ()
    assert free.values[1] < 0.0
    found = fit(FED, TIMES, data, ["p[0]", "p[1]"], bounds={"p[1]": (0.0, 1.0)})
    assert found.on_bounds == ("p[1]",)
    assert "p[1] = " in str(found).splitlines()[2]
    assert "on its bound" in str(found).splitlines()[2]
    assert "on its bound" not in str(found).splitlines()[1]
    low, high = found.interval("p[1]")
    assert low == 0.0
    assert 0.0 < high < free.errors[1]  # it is pushed: less than two standard errors
    there = fit(FED.with_(params=[1.0, high]), TIMES, data, ["p[0]"])
    worse = (there.residuals**2).sum() - (found.residuals**2).sum()
    s2 = (found.residuals**2).sum() / found.freedom
    assert worse / s2 == pytest.approx(student(found.freedom) ** 2, rel=0.02)
    found.plot().figure.savefig(tmp_path / "fit.png")


def test_intervals_end_at_bounds():
    data = np.exp(-TIMES) + 0.01 * np.sin(40.0 * TIMES**2) + 0.002
    found = fit(FED, TIMES, data, ["p[0]", "p[1]"], bounds={"p[1]": (0.0, np.inf)})
    assert found.on_bounds == ()
    low, high = found.interval("p[1]")
    assert (low, high > found.values[1] > 0.0) == (0.0, True)
    assert found.values[1] - student(found.freedom) * found.errors[1] < 0.0


def test_bounds_that_cannot_be_meant_are_refused():
    for bounds, message in (
        ({"p[7]": (0, 1)}, r"'p\[7\]' is not varied"),
        ({"p[0]": (1, 1)}, "lower < upper"),
        ({"p[0]": (2, 3)}, r"guess 1 of p\[0\] lies outside"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(FED, TIMES, TIMES, ["p[0]"], bounds=bounds)


def test_bad_input_and_a_picture(tmp_path):
    with pytest.raises(ValueError, match="row of 40 values"):
        fit(TRUTH, TIMES, CLEAN[:, :5], ["p[0]"])
    with pytest.raises(ValueError, match="cannot determine"):
        fit(TRUTH, [1.0], [[0.1]], ["p[0]", "p[1]"], observe=[0])
    found = fit(TRUTH, TIMES, CLEAN + 0.05 * np.sin(17 * TIMES), ["p[0]", "p[1]"])
    found.plot().figure.savefig(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 5000
