"""Zeros of events that lie between two steps, or close to the ends of one: solve and lanes."""

from __future__ import annotations

import numpy as np
import pytest

from integrators import IVP, Event, solve, solve_many, traced, where

FALLING = traced(lambda t, y: np.array([-1.0 + 0 * y[0]]), n=1)
HEIGHT = traced(lambda t, y: np.array([y[0]]), n=1, outputs=1)
# Carries a state of 0.05, which steps of 0.1 from 1.05 reach, to the other side of zero.
ACROSS = traced(lambda t, y: np.array([where(abs(y[0]) < 0.06, -y[0], y[0])]), n=1)


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("is_traced", [False, True])
def test_a_projection_carries_an_event_across_zero(is_traced, terminal):
    g = HEIGHT if is_traced else lambda t, y: y[0]
    problem = IVP(FALLING, [1.05], (0, 2), project=ACROSS, events=[Event(g, terminal=terminal)])
    sol = solve(problem, method="RK4", step=0.1)
    assert sol.success, sol.ending
    assert sol.t_events[0] == pytest.approx([1.0], abs=1e-14)
    assert sol.t[-1] == pytest.approx(1.0 if terminal else 2.0)
    upwards = problem.with_(events=[Event(g, direction=1)])
    assert not len(solve(upwards, method="RK4", step=0.1).t_events[0])


@pytest.mark.parametrize("terminal", [False, True])
def test_lanes_see_what_a_projection_carries_across_zero(terminal):
    event = Event(HEIGHT, terminal=terminal)
    problem = IVP(FALLING, [1.05], (0, 2), project=ACROSS, events=[event])
    many = solve_many(problem, y0=np.array([[1.05], [1.25]]), method="RK4", step=0.1)
    assert [float(t[0][0]) for t in many.t_events] == pytest.approx([1.0, 1.2], abs=1e-14)
    assert many.t == pytest.approx([1.0, 1.2] if terminal else [2.0, 2.0])


def test_lanes_see_two_zeros_close_to_an_end_of_a_step():
    rising = traced(lambda t, y: np.array([1.0 + 0 * y[0]]), n=1)
    for a, b in [(0.0085, 0.0168), (0.027, 0.062), (0.345, 0.38)]:
        g = traced(lambda t, y, a=a, b=b: np.array([(y[0] - a) * (y[0] - b)]), n=1, outputs=1)
        event = Event(g)
        many = solve_many(
            rising, (0, 0.8), np.zeros((2, 1)), method="RK4", step=0.4, events=[event]
        )
        for found in many.t_events:
            assert found[0] == pytest.approx([a, b], abs=1e-12)
