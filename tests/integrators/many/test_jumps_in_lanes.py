"""Events with resets in lanes, against closed forms and ``solve``."""

import numpy as np
import pytest

from integrators import IVP, Event, Status, solve, solve_many, traced
from integrators.many import EventTime, Integral, Largest

FALL = traced(lambda t, y, p: [y[1], -p[0]], n=2, params=2)
HEIGHT = traced(lambda t, y: y[0], n=2, outputs=1)
BOUNCE = traced(lambda t, y, p: np.array([0.0, -p[1] * y[1]]), n=2, params=2)
BALL = Event(HEIGHT, direction=-1, reset=BOUNCE)
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def balls(m):
    rng = np.random.default_rng(5)
    return np.column_stack([rng.uniform(5, 15, m), rng.uniform(0.6, 1.0, m)])


def landings(g, e, t_end):
    """Times at which a ball dropped from 1 lands before t_end."""
    t = np.sqrt(2 / g)
    speed, found = g * t, []
    while t < t_end:
        found.append(t)
        speed *= e
        t += 2 * speed / g
    return np.array(found)


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "BS23", "RADAU5", "RadauIIA2"])
def test_balls_bounce_in_lanes(method):
    params = balls(40)
    problem = IVP(FALL, [1.0, 0.0], (0.0, 1.7), params=params[0], events=BALL)
    times = np.linspace(0, 1.7, 18)
    kept = {"fast": Largest(lambda t, y: y[1]), "area": Integral(lambda t, y: y[0])}
    kept["third"] = EventTime(0, 2)
    many = solve_many(problem, params=params, method=method, t_eval=times, reduce=kept, **TIGHT)
    assert many.engine.startswith("8 lanes")
    assert many.success.all()
    alone = int(many.engine.split("; ")[1].split()[0]) if ";" in many.engine else 0
    assert alone < 10  # most are plain
    for k, (g, e) in enumerate(params):
        exact = landings(g, e, 1.7)
        assert many.t_events[k][0] == pytest.approx(exact, abs=1e-8)
        first = np.sqrt(2 * g)
        assert many.reduced["fast"][k] == pytest.approx(e * first, rel=1e-7)
        if len(exact) > 2:
            assert many.reduced["third"][k] == pytest.approx(exact[2], abs=1e-8)
        for j, t in enumerate(times):
            count = np.count_nonzero(exact < t)
            last = exact[count - 1] if count else 0.0
            speed = first * e**count if count else 0.0
            height = (0.0 if count else 1.0) + speed * (t - last) - g / 2 * (t - last) ** 2
            assert many.y_eval[k, 0, j] == pytest.approx(height, abs=1e-7)


def test_steps_and_answers_are_those_of_solve():
    params = balls(17)
    wall = Event(
        traced(lambda t, y: y[0] - 0.9, n=2, outputs=1),
        direction=1,
        reset=traced(lambda t, y: np.array([y[0], -0.5 * y[1]]), n=2),
        name="ceiling",
    )
    end = Event(traced(lambda t, y: y[0] - 0.5, n=2, outputs=1), terminal=2, direction=-1)
    problem = IVP(FALL, [0.8, 3.0], (0.0, 1.3), params=params[0], events=[BALL, wall, end])
    many = solve_many(problem, params=params, **TIGHT)
    assert many.engine.startswith("8 lanes")
    assert Status.EVENT in many.status
    for k in range(17):
        alone = solve(problem.with_(params=params[k]), **TIGHT)
        assert (many.status[k], many.nsteps[k]) == (alone.status, alone.nsteps)
        assert many.message[k] == alone.ending
        assert np.abs(many.y[k] - alone.reached[1]).max() < 1e-11
        for ours, theirs in zip(many.t_events[k], alone.t_events):
            assert ours == pytest.approx(theirs, abs=1e-12)


def test_backwards_and_other_jumps():
    """A saw tooth runs both ways; its jumps carry the state off the surface."""
    ramp = traced(lambda t, y, p: p[0] + 0.0 * y, n=1, params=1)
    top = Event(
        traced(lambda t, y: 1.0 - y[0], n=1, outputs=1),
        reset=traced(lambda t, y: y - 1.0, n=1),
    )
    rates = np.linspace(1.0, 3.0, 9)[:, None]
    many = solve_many(IVP(ramp, [0.25], (0.0, 4.0), params=[1.0], events=top), params=rates)
    assert many.engine == "8 lanes, 2 threads" or many.engine.startswith("8 lanes")
    assert many.y[:, 0] == pytest.approx((0.25 + 4 * rates[:, 0]) % 1.0, abs=1e-9)
    back = solve_many(IVP(ramp, [0.25], (4.0, 0.0), params=[-1.0], events=top), params=-rates)
    assert back.y[:, 0] == pytest.approx(many.y[:, 0], abs=1e-9)


def test_balls_that_come_to_rest_are_left_to_solve():
    problem = IVP(FALL, [1.0, 0.0], (0.0, 5.0), params=[9.81, 0.5], events=BALL)
    params = np.array([[9.81, 0.5], [9.81, 0.95]])
    many = solve_many(problem, params=params, max_step=0.05, **TIGHT)
    assert "1 of 2 again alone" in many.engine
    assert many.status.tolist() == [Status.ZENO, Status.FINISHED]
    limit = np.sqrt(2 / 9.81) * 3
    assert many.t[0] == pytest.approx(limit, rel=1e-6)


def test_resets_in_python_and_fixed_steps_say_why_they_leave_the_lanes():
    python = Event(HEIGHT, direction=-1, reset=lambda t, y: [0.0, -0.9 * y[1]])
    problem = IVP(FALL, [1.0, 0.0], (0.0, 1.0), params=[9.81, 0.9])
    many = solve_many(problem, y0=np.ones((2, 2)), events=python)
    assert many.engine.endswith("the reset of an event is not traced")
    many = solve_many(problem, y0=np.ones((2, 2)), events=BALL, step=0.01)
    assert many.engine.endswith("an event resets the state between fixed steps")
