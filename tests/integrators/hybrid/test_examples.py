"""A walker, a stick–slip oscillator and an impact oscillator: periods and fixed points known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from integrators import Hybrid, Mode, Transition, problems, solve, traced
from integrators.analysis.study.convergence import convergence

TIGHT = {"rtol": 1e-11, "atol": 1e-12}


def rimless_wheel(slope=0.08, half_angle=math.pi / 8, t_end=130.0):
    """A wheel of spokes that rolls down a slope, a spoke at a time (g/l = 1).

    θ is the angle of the spoke on the ground from the vertical. The next spoke touches the ground
    at θ = slope + half_angle; the impact leaves cos 2α of the speed.
    """
    loss = math.cos(2 * half_angle)
    strike = Transition(
        traced(lambda t, y: [y[0] - (slope + half_angle)], n=2, outputs=1),
        +1,
        to="stance",
        map=lambda t, y: [slope - half_angle, loss * y[1]],
        name="strike",
    )
    stance = Mode(traced(lambda t, y: [y[1], np.sin(y[0])], n=2), strike)
    start = [slope - half_angle, 0.5]
    return Hybrid({"stance": stance}, "stance", start, (0, t_end), name="rimless wheel")


@pytest.mark.parametrize("method", ["DOP853", "RADAU5"])
def test_rimless_wheel_walks(method):
    slope, alpha = 0.08, math.pi / 8
    sol = solve(rimless_wheel(slope, alpha), method=method, **TIGHT)
    assert sol.success
    strikes = sol.y_events[0][:, 1] ** 2
    gain = 4 * math.sin(slope) * math.sin(alpha)  # of ω², from one impact to the next
    fixed = gain / (1 - math.cos(2 * alpha) ** 2)  # ω² just before each impact
    # ω² converges geometrically: the deviation shrinks by cos² 2α at every step.
    deviations = strikes - fixed
    first = 0.25 + gain - fixed
    expected = first * math.cos(2 * alpha) ** (2 * np.arange(len(strikes)))
    assert np.abs(deviations - expected).max() < 1e-9
    assert len(strikes) > 25
    after = math.cos(2 * alpha) ** 2 * fixed
    period, _ = quad(
        lambda x: 1 / math.sqrt(after + 2 * (math.cos(slope - alpha) - math.cos(x))),
        slope - alpha, slope + alpha, epsabs=1e-13,
    )  # fmt: skip
    assert np.diff(sol.t_events[0])[-1] == pytest.approx(period, abs=1e-8)


def stick_slip(belt=0.5, static=1.5, kinetic=1.0):
    """A block on a spring and a belt: sticks until |x| = static, then slips against kinetic."""
    slip = Mode(
        lambda t, y: [y[1], kinetic - y[0]],
        Transition(lambda t, y: y[1] - belt, +1, to="stick", map=lambda t, y: [y[0], belt]),
    )
    stick = Mode(lambda t, y: [belt, 0.0], Transition(lambda t, y: y[0] - static, +1, to="slip"))
    return Hybrid({"stick": stick, "slip": slip}, "stick", [0.0, belt], (0, 60))


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "RADAU5", "Gauss4"])
def test_stick_slip_oscillator(method):
    sol = solve(stick_slip(), method=method, **TIGHT)
    excess = 0.5  # static less kinetic
    slipping = math.pi + 2 * math.atan2(0.5, excess)
    sticking = 2 * excess / 0.5
    slips = np.array([stay.start for stay in sol.modes if stay.mode == "slip"])
    sticks = np.array([stay.start for stay in sol.modes if stay.mode == "stick"])[1:]
    assert len(slips) > 8
    assert np.abs(np.diff(slips) - slipping - sticking).max() < 1e-9
    assert np.abs(sticks - slips[: len(sticks)] - slipping).max() < 1e-9
    sticks_at = [part.y[0, 0] for part in sol.parts[2::2]]
    assert np.allclose(sticks_at, 2 * 1.0 - 1.5, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["impact_oscillator", "friction_oscillator"])
def test_orders_through_instants(name):
    study = convergence(name, ["RK4", "Heun"], [0.05, 0.025, 0.0125, 0.00625], diagnosis=False)
    assert [curve.verdict for curve in study.curves] == ["as expected"] * 2


@pytest.mark.parametrize("name", ["impact_oscillator", "friction_oscillator"])
@pytest.mark.parametrize("rtol", [1e-6, 1e-9, 1e-12])
def test_tolerance_through_instants(name, rtol):
    problem = problems.get(name)
    sol = solve(problem, method="DOP853", rtol=rtol, atol=rtol)
    error = np.abs(sol.y[:, -1] - problem.exact(problem.t_span[1])).max()
    assert error < 100 * rtol
