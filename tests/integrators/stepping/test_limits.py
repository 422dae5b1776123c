"""Limits of steps and stops: a stop is never passed, a longest step never exceeded."""

import numpy as np
import pytest

from integrators import Event, Status, Taylor, solve, solve_many, traced

METHODS = [
    "DOPRI5",
    "DOP853",
    "RK4",
    "RADAU5",
    "SDIRK4",
    "RadauVariable",
    "BDF",
    "Adams",
    "scipy:RK45",
]


def ramp(t, y):
    return np.ones(1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("min_step", [0.04, 0.4, 2.0])
@pytest.mark.parametrize("end", [1.0, -1.0])
def test_stops_are_not_passed_for_the_shortest_step(method, min_step, end):
    stops = end * np.array([0.1, 0.15])
    run = solve(ramp, (0, end), [0.0], method=method, min_step=min_step, tstops=stops)
    if not run.success:  # SciPy's solvers begin with short steps of their own
        assert method == "scipy:RK45"
        assert run.status == Status.STEP_TOO_SMALL
        assert np.all(np.abs(run.t) <= 1.0)
        return
    assert run.t[-1] == end
    assert set(stops) <= set(run.t)
    assert np.all(np.diff(run.t) * end > 0)
    assert run.y[0] == pytest.approx(run.t, abs=1e-14)


def test_a_shortest_step_longer_than_the_interval():
    run = solve(lambda t, y: [1.0], (0, 1), [0.0], min_step=2.0)
    assert run.t.tolist() == [0.0, 1.0]
    assert run.y[0, -1] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("min_step", [0.3, 2.0])
@pytest.mark.parametrize("method", ["DOPRI5", "Verner76", "RADAU5"])
def test_lanes_keep_to_the_shortest_step_as_single_runs_do(method, min_step):
    f = traced(lambda t, y, p: np.array([p[0] * np.cos(t)]), n=1, params=1)
    rates = np.linspace(0.1, 3, 11)[:, None]
    options = dict(method=method, min_step=min_step, rtol=1e-2, atol=1e-2)
    many = solve_many(f, (0, 1), [0.0], params=rates, **options)
    for k, rate in enumerate(rates):
        single = solve(f, (0, 1), [0.0], params=rate, **options)
        assert many.t[k] == single.t[-1] <= 1.0
        assert many.nsteps[k] == single.nsteps
        assert many.status[k] == single.status
        assert many.y[k] == pytest.approx(single.y[:, -1], abs=1e-12)


@pytest.mark.parametrize("method", [*METHODS, Taylor()])
def test_the_longest_step_is_not_exceeded_to_reach_the_end(method):
    # 1 % is what steps are stretched by to save a short one at the end.
    limit = 1 / 3.005
    f = traced(lambda t, y: np.array([1.0 + 0 * y[0]]), n=1) if isinstance(method, Taylor) else ramp
    run = solve(f, (0, 1), [0.0], method=method, max_step=limit)
    assert run.success
    assert np.max(run.h) <= limit * (1 + 2e-9)
    assert run.t[-1] == 1.0


def test_lanes_do_not_exceed_the_longest_step():
    f = traced(lambda t, y: np.array([1.0 + 0 * y[0]]), n=1)
    many = solve_many(f, (0, 1), np.zeros((9, 1)), max_step=1 / 3.005, first_step=1 / 3.005)
    assert many.nsteps.tolist() == 9 * [4]
    single = solve(f, (0, 1), [0.0], max_step=1 / 3.005, first_step=1 / 3.005)
    assert single.nsteps == 4


def test_steps_that_divide_the_interval_are_not_followed_by_a_splinter():
    run = solve(ramp, (0, 1), [0.0], max_step=0.1, first_step=0.1)
    assert run.nsteps == 10


@pytest.mark.parametrize("call", [solve, solve_many])
def test_a_longest_step_that_never_arrives_is_refused(call):
    y0 = [0.0] if call is solve else [[0.0], [1.0]]
    with pytest.raises(ValueError, match=r"max_step = 1e-20 means more than 1,000,000,000 steps"):
        call(ramp, (0, 1), y0, max_step=1e-20)
    with pytest.raises(ValueError, match=r"max_step = 1e-12 is too short for t = 1e\+06"):
        call(ramp, (1e6, 1e6 + 1e-4), y0, max_step=1e-12)


def test_a_longest_step_below_rounding_ends_a_run_with_events():
    event = Event(lambda t, y: y[0] - 1.0, terminal=True)
    run = solve(ramp, (1e6, 1e6 + 2), [0.0], max_step=1e-12, events=event)
    assert run.status == Status.STEP_TOO_SMALL
    assert run.t.tolist() == [1e6]
    assert "max_step = 1e-12 is too short there" in run.message
    assert "1.2e-10" in run.message


def test_a_fixed_step_below_rounding_is_refused():
    # In silence, ten steps of 0.1 would become one of them at the end of the interval.
    with pytest.raises(ValueError, match=r"step = 0.1 is too short for t = 1e\+16"):
        solve(ramp, (1e16, 1e16 + 10), [0.0], method="RK4", step=0.1)


def test_falling_below_the_shortest_step_is_told_with_its_name():
    run = solve(lambda t, y: -1e4 * (y - np.cos(t)), (0, 1), [0.0], min_step=0.05)
    assert run.status == Status.STEP_TOO_SMALL
    assert "min_step = 0.05" in run.message


@pytest.mark.parametrize("wrong", [1.5, 0, -3, "many", True, np.nan])
def test_most_attempts_are_a_whole_number(wrong):
    for call, y0 in ((solve, [0.0]), (solve_many, [[0.0]])):
        with pytest.raises(ValueError, match="max_steps must be at least 1, got"):
            call(ramp, (0, 1), y0, max_steps=wrong)
    with pytest.raises(ValueError, match="max_steps must be at least 1, got"):
        solve(ramp, (0, 1), [0.0], max_steps=wrong, precision=20)


@pytest.mark.parametrize("most", [2**63, 10**30, 1e300])
def test_more_attempts_than_counters_hold(most):
    assert solve(ramp, (0, 1), [0.0], max_steps=most).success
    assert solve(ramp, (0, 1), [0.0], method="RK4", step=0.1, max_steps=most).success
    assert solve_many(ramp, (0, 1), [[0.0]], max_steps=most).success.all()
    assert solve(ramp, (0, 1), [0.0], max_steps=most, precision=20).success


def test_rejected_attempts_count():
    """The first step of van der Pol's oscillator is far too long."""
    f = lambda t, y: [y[1], 50 * (1 - y[0] ** 2) * y[1] - y[0]]  # noqa: E731
    options = dict(method="DOPRI5", first_step=0.5, rtol=1e-8)
    whole = solve(f, (0, 1), [2.0, 0.0], **options)
    assert whole.success
    assert whole.nrejected > 1
    attempts = whole.nsteps + whole.nrejected
    assert solve(f, (0, 1), [2.0, 0.0], **options, max_steps=attempts).success
    for fewer in (attempts - 1, whole.nsteps):
        cut = solve(f, (0, 1), [2.0, 0.0], **options, max_steps=fewer)
        assert cut.status == Status.TOO_MANY_STEPS
        assert cut.nsteps + cut.nrejected == fewer


def test_a_million_may_be_written_with_an_exponent():
    assert solve(ramp, (0, 1), [0.0], max_steps=1e6).success
