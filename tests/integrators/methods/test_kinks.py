"""Kinks of f must not be stepped over in silence.

A ball of 1 kg falls from 1 m on a spring of 10⁵ N/m and bounces, without loss: parabolas and
pieces of sines, known in closed form.
"""

import numpy as np
import pytest

from integrators import catalogue, solve, traced

GRAVITY, STIFFNESS = 9.81, 1e5


def ball(t, y):
    return np.array([y[1], -GRAVITY - STIFFNESS * np.minimum(y[0], 0.0)])


def height(t):
    """Height of the ball at time t."""
    fall, speed, frequency = np.sqrt(2 / GRAVITY), np.sqrt(2 * GRAVITY), np.sqrt(STIFFNESS)
    sag, depth = GRAVITY / STIFFNESS, speed / frequency
    contact = 2 * (np.pi - np.arctan(depth / sag)) / frequency
    t = t % (2 * fall + contact)
    if t < fall:
        return 1 - GRAVITY * t**2 / 2
    t -= fall
    if t < contact:
        return sag * (np.cos(frequency * t) - 1) - depth * np.sin(frequency * t)
    t -= contact
    return speed * t - GRAVITY * t**2 / 2


def worst(solution):
    return max(abs(y - height(t)) for t, y in zip(solution.t, solution.y[0]))


METHODS = [
    name
    for name in catalogue.names()
    if not catalogue.get(name).is_explicit and catalogue.get(name).order > 1
]
METHODS += ["BDF", "NDF", "Adams", "RadauVariable", "Taylor", "Taylor(auto)"]
FALL = traced(ball, n=2)


@pytest.mark.parametrize("method", METHODS)
def test_a_ball_bounces_as_it_should(method):
    solution = solve(FALL, (0, 4), [1.0, 0.0], method=method, rtol=1e-7, atol=1e-7)
    assert solution.success
    assert worst(solution) < 5e-3  # four bounces; a millionth of a second is 4e-6


@pytest.mark.parametrize("method", ["RADAU5", "Gauss2", "LobattoIIIA3", "TRBDF2", "Kvaerno5"])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8])
def test_also_with_an_ordinary_function(method, tolerance):
    solution = solve(ball, (0, 2), [1.0, 0.0], method=method, rtol=tolerance, atol=tolerance)
    assert solution.success
    assert worst(solution) < 5e3 * tolerance


def test_kinks_known_from_the_trace_cost_smooth_functions_nothing():
    smooth = traced(lambda t, y: np.array([y[1], -np.sin(y[0])]), n=2)
    solution = solve(smooth, (0, 10), [1.0, 0.0], method="Taylor(auto)", rtol=1e-10, atol=1e-10)
    # One evaluation for the defect of each attempt, and two at the start.
    assert solution.nfev == solution.nsteps + solution.nrejected + 2
