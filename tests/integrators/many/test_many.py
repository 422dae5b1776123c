"""Many runs at once: the same steps as single runs, failures kept apart."""

import numpy as np
import pytest

from integrators import PI, PID, Predictive, Status, Taylor, solve, solve_many, traced


def lorenz(t, y, p):
    return np.array([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])


STANDARD = [10.0, 28.0, 8 / 3]


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "Tsit5", "BS23", "CashKarp", "Verner76"])
def test_each_run_takes_the_steps_of_a_single_one(method):
    rng = np.random.default_rng(7)
    y0 = rng.normal(size=(37, 3)) + np.array(
        [0.0, 0.0, 20.0]
    )  # more than the lanes, and not a multiple
    many = solve_many(lorenz, (0, 2), y0, params=STANDARD, method=method, rtol=1e-7, atol=1e-9)
    assert "lanes" in many.engine
    assert many.success.all()
    assert np.all(many.t == 2.0)
    f = traced(lorenz, n=3, params=3)
    for k in range(len(many)):
        single = solve(f, (0, 2), y0[k], params=STANDARD, method=method, rtol=1e-7, atol=1e-9)
        assert many.nsteps[k] == single.nsteps
        assert many.nrejected[k] == single.nrejected
        assert np.allclose(many.y[k], single.y[:, -1], rtol=1e-7, atol=1e-7)


def test_parameters_and_backward_time():
    rates = np.linspace(0.5, 3.0, 20)
    many = solve_many(lambda t, y, p: -p[0] * y, (1, 0), [1.0], params=rates[:, None], rtol=1e-10)
    assert many.y[:, 0] == pytest.approx(np.exp(rates), rel=1e-8)
    both = solve_many(
        lambda t, y, p: -p[0] * y, (0, 1), rates[:, None], params=rates[:, None], rtol=1e-10
    )
    assert both.y[:, 0] == pytest.approx(rates * np.exp(-rates), rel=1e-8)


@pytest.mark.parametrize("method", ["DOPRI5", "Tsit5", "BS23", "DOP853", "RadauIIA3", Taylor(8)])
def test_output_times(method):
    times = np.linspace(0, 1, 11)
    rates = np.array([0.5, 1.0, 4.0])
    many = solve_many(
        lambda t, y, p: -p[0] * y,
        (0, 1),
        [2.0],
        params=rates[:, None],
        t_eval=times,
        method=method,
        rtol=1e-8,
        atol=1e-10,
    )
    expected = 2 * np.exp(-rates[:, None] * times)
    assert many.y_eval.shape == (3, 1, 11)
    assert np.allclose(many.y_eval[:, 0], expected, rtol=1e-5)  # cubic Hermite for BS23
    assert np.allclose(many.y[:, 0], expected[:, -1], rtol=1e-7)


@pytest.mark.parametrize("method", ["DOPRI5", "RadauIIA3"])
def test_a_failed_run_stops_nobody(method):
    y0 = np.array([[0.1], [5.0], [0.2], [-3.0], [0.5]])  # y' = y² from 5 blows up at t = 0.2
    many = solve_many(lambda t, y: y * y, (0, 1), y0, method=method, rtol=1e-8, atol=1e-10)
    assert many.success.tolist() == [True, False, True, True, True]
    assert set(many.failures()) == {1}
    assert many.t[1] == pytest.approx(0.2, abs=1e-3)
    good = many.success
    assert np.allclose(many.y[good], y0[good] / (1 - y0[good]), rtol=1e-6)
    assert np.all(np.isfinite(many.y))


def test_max_steps_is_per_run():
    many = solve_many(lorenz, (0, 100), np.ones((3, 3)), params=STANDARD, max_steps=50)
    assert [Status(int(s)) for s in many.status] == [Status.TOO_MANY_STEPS] * 3
    assert np.all(many.nsteps + many.nrejected == 50)


def test_untraceable_functions_still_run():
    def branching(t, y):
        return -y if y[0] > 0.5 else -0.5 * y

    many = solve_many(branching, (0, 1), [[1.0], [0.4]])
    assert many.engine == "one by one: f cannot be traced"
    assert many.success.all()


@pytest.mark.parametrize(
    ("y0", "params", "message"),
    [
        ([1.0, 2.0], None, "m rows"),
        (np.ones((2, 1)), np.ones((3, 1)), "same m"),
        (np.ones((0, 1)), None, "no runs"),
        (np.ones((2, 2, 2)), None, "expected y0 of shape"),
        ([[np.nan]], None, r"y0\[0, 0\] is nan; y0 must be finite .* 1 of 1"),
        ([1.0, np.inf], np.ones((3, 1)), r"y0\[1\] is inf; y0 must be finite$"),
        (
            [1.0],
            np.where(np.isin(np.arange(2000), [14, 15, 1001]), np.nan, 1.0).reshape(1000, 2),
            r"params\[7, 0\] is nan; params must be finite .* 2 of 1000",
        ),
    ],
)
def test_bad_input(y0, params, message):
    with pytest.raises(ValueError, match=message):
        solve_many(lambda t, y, p=None: -y, (0, 1), y0, params=params)


def test_one_thread_gives_the_same_as_many():
    y0 = np.random.default_rng(3).normal(size=(2000, 3))
    a, b = (solve_many(lorenz, (0, 1), y0, params=STANDARD, workers=w).y for w in (1, 4))
    assert np.array_equal(a, b)


@pytest.mark.parametrize(
    "options",
    [
        {"controller": PI()},
        {"controller": PID(safety=0.8)},
        {"norm": "max"},
        {"max_step": 0.02},
        {"first_step": 1e-3},
        {"atol": [1e-6, 1e-8, 1e-7]},
    ],
)
@pytest.mark.parametrize("method", ["DOPRI5", "Verner76"])
def test_options_act_as_in_a_single_run(method, options):
    y0 = np.random.default_rng(11).normal(size=(11, 3)) + np.array([0.0, 0.0, 20.0])
    f = traced(lorenz, n=3, params=3)
    options = {"params": STANDARD, "method": method, "rtol": 1e-7, **options}
    many = solve_many(f, (0, 1), y0, **options)
    assert "lanes" in many.engine
    for k in range(len(many)):
        single = solve(f, (0, 1), y0[k], **options)
        assert many.nsteps[k] == single.nsteps
        assert many.nrejected[k] == single.nrejected
        assert np.allclose(many.y[k], single.y[:, -1], rtol=1e-7, atol=1e-7)


def test_a_predictive_controller_runs_one_by_one():
    many = solve_many(
        lambda t, y: -y, (0, 1), [[1.0], [2.0]], controller=Predictive(), rtol=1e-9, atol=1e-12
    )
    assert many.engine.startswith("one by one: a predictive controller")
    assert many.y[:, 0] == pytest.approx(np.exp(-1) * np.array([1.0, 2.0]), rel=1e-7)


def test_large_systems_step_stage_by_stage():
    """Too large to be fused; the same decisions all the same."""
    n = 300
    rates = np.linspace(0.5, 2.0, n)
    f = traced(lambda t, y: -rates * y + np.sin(t) * y**2, n=n)
    y0 = np.random.default_rng(2).uniform(0.1, 0.5, size=(9, n))
    many = solve_many(f, (0, 1), y0, method="DOP853", rtol=1e-8)
    for k in (0, 8):
        single = solve(f, (0, 1), y0[k], method="DOP853", rtol=1e-8)
        assert many.nsteps[k] == single.nsteps
        assert np.allclose(many.y[k], single.y[:, -1], rtol=1e-10, atol=1e-12)


def test_runs_of_different_length_share_the_lanes():
    """Some fail at once, some are long: nobody gets the steps of another."""
    rates = np.concatenate([np.full(5, 1.0), np.linspace(1.0, 400.0, 30), np.full(6, 2.0)])
    many = solve_many(lambda t, y, p: -p[0] * y, (0, 1), [1.0], params=rates[:, None], rtol=1e-9)
    assert many.success.all()
    assert np.allclose(many.y[:, 0], np.exp(-rates), rtol=1e-6, atol=1e-8)
    for k in (0, 20, 34, 40):
        f = traced(lambda t, y, p: -p[0] * y, n=1, params=1)
        alone = solve(f, (0, 1), [1.0], params=[rates[k]], method="DOPRI5", rtol=1e-9)
        assert many.nsteps[k] == alone.nsteps
