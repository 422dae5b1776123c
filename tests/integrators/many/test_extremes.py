"""Extreme values along runs, against a closed form."""

import numpy as np
import pytest

from integrators import IVP, Event, solve_many, traced
from integrators.many import Integral, Largest, Smallest


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853"])
@pytest.mark.parametrize("event", [False, True])
def test_extremes_wherever_they_fall_among_the_steps(method, event):
    """cos(t + φ) reaches ±1 in every run, near the ends of steps in some of them."""
    phases = np.linspace(0.0, 2.0 * np.pi, 150, endpoint=False)
    starts = np.array([np.cos(phases), -np.sin(phases)]).T
    circle = IVP(lambda t, y: np.array([y[1], -y[0]]), [1.0, 0.0], (0.0, 7.0))
    reduce = {"top": Largest(lambda t, y: y[0]), "low": Smallest(lambda t, y: y[0])}
    # An event that is no traced function has the runs done one by one.
    events = (lambda t, y: y[0] - 5.0 if isinstance(y, np.ndarray) else y[0]) if event else None
    runs = slice(0, 20) if event else slice(None)
    many = solve_many(
        circle, y0=starts[runs], method=method, rtol=1e-10, atol=1e-12, reduce=reduce,
        events=events,
    )  # fmt: skip
    assert ("one by one" in many.engine) == event
    assert np.allclose(many.reduced["top"], 1.0, rtol=0.0, atol=1e-8)
    assert np.allclose(many.reduced["low"], -1.0, rtol=0.0, atol=1e-8)


def test_both_sides_of_a_jump_count():
    """A ball falls, and goes up again with half its speed."""
    bounce = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: np.array([0.0, -0.5 * y[1]]))
    ball = IVP(lambda t, y: np.array([y[1], -10.0]), [1.0, 0.0], (0.0, 0.8), events=[bounce])
    reduce = {"down": Smallest(lambda t, y: y[1]), "up": Largest(lambda t, y: y[1]),
              "way": Integral(lambda t, y: y[1])}  # fmt: skip
    many = solve_many(ball, y0=[[1.0, 0.0], [1.25, 0.0]], rtol=1e-10, atol=1e-12, reduce=reduce)
    speed = np.sqrt(20.0 * np.array([1.0, 1.25]))
    assert np.allclose(many.reduced["down"], -speed, atol=1e-8)
    assert np.allclose(many.reduced["up"], 0.5 * speed, atol=1e-8)
    assert np.allclose(many.reduced["way"], many.y[:, 0] - [1.0, 1.25], atol=1e-8)


def test_extremes_of_runs_done_alone_are_the_same_each_time():
    """SciPy's interpolator draws the order of its nodes, so that last digits changed."""
    f = traced(lambda t, y, p: np.array([y[1], -p[0] * np.sin(y[0])]), n=2, params=1)
    runs = {"y0": [1.0, 0.3], "params": np.linspace(0.5, 3.0, 5)[:, None], "method": "ROS3P"}
    found = [
        solve_many(f, (0, 3), reduce={"top": Largest(lambda t, y: y[0])}, **runs) for _ in range(4)
    ]
    assert found[0].engine.startswith("one by one")
    for other in found[1:]:
        assert np.array_equal(other.reduced["top"], found[0].reduced["top"])
