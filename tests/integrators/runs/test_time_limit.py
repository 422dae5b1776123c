"""``time_limit``: a run that takes too long ends between two steps, with what was computed."""

import time

import numpy as np
import pytest

from integrators import IVP, Hybrid, Mode, Transition, solve, solve_many, traced
from integrators.stepping.state import Status

LIMIT = 0.3  # seconds
FOREVER = 1e7


def swing(t, y):
    return np.array([y[1], -np.sin(y[0])])


def slow(t, y):
    time.sleep(0.003)
    return swing(t, y)


@pytest.mark.parametrize(
    "method", ["DOPRI5", "RADAU5", "RadauVariable", "BDF", "AB3", "scipy:RK45"]
)
@pytest.mark.parametrize("f", [slow, traced(swing, n=2)], ids=["python", "machine code"])
def test_a_run_ends_in_time_with_what_it_has(f, method):
    options = {"step": 0.01} if method == "AB3" else {"rtol": 1e-6, "max_steps": 10**9}
    start = time.monotonic()
    run = solve(f, (0, FOREVER), [1.0, 0.0], method=method, time_limit=LIMIT, **options)
    assert time.monotonic() - start < 40 * LIMIT  # compilers and busy machines may take theirs
    assert run.status == Status.OUT_OF_TIME
    assert not run.success
    assert "time_limit = 0.3 s" in run.message
    assert np.isfinite(run.y).all()
    assert run.t.size > 1
    assert 0 < run.t[-1] < FOREVER


def test_a_run_that_is_quick_enough_is_the_same():
    f = traced(swing, n=2)
    a, b = (solve(f, (0, 10), [1.0, 0.0], time_limit=limit) for limit in (None, 60.0))
    assert b.success
    assert np.array_equal(a.y, b.y)


def test_an_engine_that_was_stopped_serves_the_next_run():
    f = traced(swing, n=2)
    stopped = solve(f, (0, FOREVER), [1.0, 0.0], method="DOP853", max_steps=10**9, time_limit=LIMIT)
    assert stopped.status == Status.OUT_OF_TIME
    assert solve(f, (0, 10), [1.0, 0.0], method="DOP853").success


def test_modes_share_the_time():
    """A light that goes on and off: each stay is short, all of them are not."""
    lit, dark = (
        Mode(lambda t, y, s=s: [s], transitions=[Transition(lambda t, y, s=s: s * y[0] - 1, to=to)])
        for s, to in ((1.0, "dark"), (-1.0, "lit"))
    )
    light = Hybrid({"lit": lit, "dark": dark}, "lit", [0.0], (0.0, FOREVER))
    run = solve(light, time_limit=LIMIT)
    assert run.status == Status.OUT_OF_TIME
    assert 1.0 < run.t[-1] < FOREVER


def test_what_cannot_be_limited_says_so():
    for limit in (0, -1.0, float("nan"), True, "60", [1], np.ones(2)):
        with pytest.raises(ValueError, match="time_limit must be a positive number of seconds"):
            solve(swing, (0, 1), [1.0, 0.0], time_limit=limit)
    with pytest.raises(ValueError, match="take no time_limit"):
        solve(swing, (0, 1), [1.0, 0.0], precision=30, time_limit=1.0)
    with pytest.raises(TypeError, match="solve_many has no time_limit"):
        solve_many(IVP(swing, [1.0, 0.0], (0, 1)), [[1.0, 0.0]], time_limit=1.0)
