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


def speed(t, dt=1e-7):
    return (height(t + dt) - height(t - dt)) / (2 * dt)


def worst(solution):
    return max(abs(y - height(t)) for t, y in zip(solution.t, solution.y[0]))


METHODS = [name for name in catalogue.names() if catalogue.get(name).order > 1]
METHODS += ["BDF", "NDF", "Adams", "RadauVariable", "Taylor", "Taylor(auto)", "DPRKN6", "DPRKN8"]
#: Their estimates know nothing of f where a step ends: bodies fell through the ground.
BLIND = ["Midpoint", "Heun", "SSPRK33", "SSPRK43", "RK38", "OwrenZennaro5"]
FALL = traced(ball, n=2)
REST = np.array([height(10.0), speed(10.0)])


@pytest.mark.parametrize("method", METHODS)
def test_a_ball_bounces_as_it_should(method):
    solution = solve(FALL, (0, 4), [1.0, 0.0], method=method, rtol=1e-7, atol=1e-7)
    assert solution.success
    assert worst(solution) < 5e-3  # four bounces; a millionth of a second is 4e-6


@pytest.mark.parametrize(
    "method", ["RADAU5", "Gauss2", "LobattoIIIA3", "TRBDF2", "Kvaerno5", *BLIND]
)
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


def test_gauss_sees_the_end_of_a_contact():
    # The ground may be left after the last stage: 4,400 tolerances in one step, and 5e5 at the end.
    solution = solve(ball, (0, 10), [1.0, 0.0], method="Gauss2", rtol=1e-8, atol=1e-8)
    energy = solution.y[1] ** 2 / 2 + GRAVITY * solution.y[0]
    energy += STIFFNESS / 2 * np.minimum(solution.y[0], 0.0) ** 2
    assert abs(np.diff(energy)).max() < 1e-4  # 1 tolerance of x is 1.4e-5 where forces are largest


@pytest.mark.parametrize("method", ["Fehlberg56", "Fehlberg78"])
def test_an_estimate_that_is_zero_for_slopes_of_time_alone_is_not_used(method):
    solution = solve(lambda t, y: [np.cos(t)], (0, 100), [0.0], method=method, rtol=1e-8, atol=1e-8)
    assert abs(solution.y[0, -1] - np.sin(100)) < 1e-6  # four steps, and 2e8 tolerances off, before


def test_a_run_with_contacts_tells_what_atol_makes_of_it():
    # atol = 1e-8 where the ball is pressed by 1e-2 is 1e-5 of the energy, a million tolerances.
    solution = solve(FALL, (0, 10), [1.0, 0.0], method="CashKarp", rtol=1e-8, atol=1e-8)
    off = abs(solution.y[:, -1] - REST) / abs(solution.y).max(axis=1)
    assert off.max() > 100e-8
    assert "its error at the end is about" in solution.message
    assert solution.quality.error_at_end == pytest.approx(off.max(), rel=0.2)
