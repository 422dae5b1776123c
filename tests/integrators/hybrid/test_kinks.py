"""Kinks that a trace knows are located: what the surfaces are, and what it is good for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from integrators import IVP, Event, solve, solve_many, traced, where
from integrators.hybrid.kinks import Kinks

STIFFNESS, GRAVITY = 1e5, 9.81


def on_a_spring(t):
    """Height at time t of 1 kg dropped from 1 m onto a spring that does not pull."""
    w, fall = math.sqrt(STIFFNESS), math.sqrt(2 / GRAVITY)
    speed, sag = GRAVITY * fall, GRAVITY / STIFFNESS
    amplitude, phase = math.hypot(sag, speed / w), math.atan2(speed / w, sag)
    s = (t + fall) % (2 * fall + (2 * math.pi - 2 * phase) / w)
    if s < 2 * fall:
        return speed * s - GRAVITY * s * s / 2
    return -sag + amplitude * math.cos(w * (s - 2 * fall) + phase)


@pytest.fixture(scope="module")
def drop():
    f = traced(lambda t, y: [y[1], -GRAVITY - STIFFNESS * np.minimum(y[0], 0)], n=2)
    return IVP(f, [1.0, 0.0], (0, 10))


@pytest.mark.parametrize(
    "method",
    ["Gauss2", "Gauss4", "LobattoIIIA3", "TRBDF2", "ESDIRK547", "RADAU5", "RadauVariable",
     "Taylor", "DOPRI5", "DOP853"],
)  # fmt: skip
def test_ball_on_a_spring(drop, method):
    """22 impacts in 10 s: right to the tolerance, where kinks that are run over cost digits."""
    sol = solve(drop, method=method, rtol=1e-8, atol=1e-8, kinks="locate", t_eval=[3.3, 10.0])
    assert np.abs(sol.y[0] - [on_a_spring(3.3), on_a_spring(10.0)]).max() < 2e-6
    assert len(sol.modes) == 23
    assert {stay.mode for stay in sol.modes} == {"plus", "minus"}


def test_surfaces_are_shared_and_canonical():
    f = traced(
        lambda t, y: [
            np.abs(y[0]) + np.sign(y[0]) + where(y[0] < 0, 1.0, 2.0) + where(y[0] >= 0, 1.0, 2.0),
            np.minimum(y[0], y[1]) + np.maximum(y[1], y[0]) + where(y[0] > y[1], 1.0, 0.0),
        ],
        n=2,
    )
    kinks = Kinks(f)
    assert kinks.count == 2
    for y in ([0.3, 0.5], [0.3, 0.1], [-0.3, 0.1], [-0.3, -0.5]):
        signs = tuple(1 if kinks.surface(i, (1, 1))(0.0, y)[0] > 0 else -1 for i in (0, 1))
        assert np.array_equal(kinks.field(signs)(0.0, y), f(0.0, y))
        assert set(kinks.field(signs).graph.ops).isdisjoint({"abs", "sign", "min", "max", "select"})


def test_conditions_combined_and_nested():
    f = traced(lambda t, y: [where((y[0] > 0) & (y[0] < 1) | (t > 2), 1.0, -np.abs(y[0] - 3))], n=1)
    kinks = Kinks(f)
    assert kinks.count == 4
    rng = np.random.default_rng(1)
    for _ in range(40):
        t, y = float(rng.uniform(0, 3)), [float(rng.uniform(-2, 5))]
        start = (1,) * kinks.count
        signs = tuple(1 if kinks.surface(i, start)(t, y)[0] > 0 else -1 for i in range(4))
        assert kinks.field(signs)(t, y) == pytest.approx(f(t, y))
    decided = tuple(1 for _ in range(4))
    assert kinks.relevant(decided) <= set(range(4))


def test_what_does_not_move_is_no_surface():
    f = traced(lambda t, y, p: [np.abs(p[0]) * y[0] + np.maximum(p[0], 1.0)], n=1, params=1)
    assert Kinks(f).count == 0
    sol = solve(f, (0, 1), [1.0], params=[-2.0], kinks="locate")
    assert sol.success
    assert sol.modes == []


def test_jumps_in_time_are_stepped_on():
    """A square wave: y' = sign(sin t)."""
    f = traced(lambda t, y: [np.sign(np.sin(t))], n=1)
    sol = solve(f, (0, 10), [0.0], kinks="locate", dense_output=True)
    assert np.allclose([stay.start for stay in sol.modes], math.pi * np.arange(4), atol=1e-12)
    times = np.linspace(0, 10, 33)
    assert np.abs(sol.sol(times)[0] - np.arccos(np.cos(times))).max() < 1e-12


def test_touching_a_kink_and_resting_on_it():
    """x = (t − 1)² touches |x| without crossing; a start at rest on the kink goes the right way."""
    f = traced(lambda t, y: [y[1], 2.0 + 0.0 * np.abs(y[0]) + 5 * (np.abs(y[0]) - y[0])], n=2)
    sol = solve(f, (0, 2), [1.0, -2.0], kinks="locate", rtol=1e-9, atol=1e-12)
    assert np.allclose(sol.y[:, -1], [1.0, 2.0], atol=1e-6)
    fall = traced(lambda t, y: [y[1], -1.0 - 100.0 * np.minimum(y[0], 0)], n=2)
    sol = solve(fall, (0, 3), [0.0, 0.0], kinks="locate", rtol=1e-10, atol=1e-12)
    assert sol.modes[0].mode == "minus"
    assert sol.y[0, -1] == pytest.approx((math.cos(30.0) - 1) / 100, abs=1e-9)
    late = traced(lambda t, y: [y[1], t**3 * np.where(y[0] < 0, 2.0, -1.0)], n=2)
    sol = solve(late, (0, 1), [0.0, 0.0], kinks="locate")
    assert sol.success


def test_many_and_events(drop):
    many = solve_many(drop, y0=[[1.0, 0.0], [0.5, 0.0]], rtol=1e-8, atol=1e-8, kinks="locate")
    assert many.engine == "one by one: kinks are located"
    assert many.y[0, 0] == pytest.approx(on_a_spring(10.0), abs=1e-6)
    bounce = Event(lambda t, y: y[1], direction=+1, terminal=2)  # deepest points
    sol = solve(drop, events=bounce, rtol=1e-9, atol=1e-9, kinks="locate")
    fall, w = math.sqrt(2 / GRAVITY), math.sqrt(STIFFNESS)
    phase = math.atan2(GRAVITY * fall / w, GRAVITY / STIFFNESS)
    deepest = fall + (math.pi - phase) / w
    period = 2 * fall + 2 * (math.pi - phase) / w
    assert np.allclose(sol.t_events[0], [deepest, deepest + period], rtol=0, atol=1e-8)


def test_runs_that_stall_at_a_jump_say_what_helps():
    def f(t, y):
        return [y[1], -y[0] - np.sign(y[1])]

    for g, remedy in ((f, "integrators.Switch"), (traced(f, n=2), "kinks='locate'")):
        sol = solve(g, (0, 20), [5.3, 0.0], max_steps=1000)
        assert not sol.success
        assert remedy in sol.message
    smooth = solve(traced(lambda t, y: [y[0] ** 2], n=1), (0, 2), [1.0])
    assert not smooth.success
    assert "kinks" not in smooth.message


@pytest.mark.parametrize("power", [0, 3])
@pytest.mark.parametrize("options", [{"method": "DOP853"}, {"method": "RK4", "step": 0.05}])
def test_a_motion_held_from_both_sides_in_its_acceleration_stays(power, options):
    """y″ = t³ (2 or −1): ġ = y' is the same on both sides, which differ in g̈ first.

    With DOP853 it chattered through thousands of transitions, DOPRI5 passed through the surface.
    """

    def f(t, y):
        return [y[1], t**power * where(y[0] < 0, 2.0, -1.0)]

    solution = solve(traced(f, n=2), (0.0, 1.0), [0.0, 0.0], kinks="locate", **options)
    assert solution.success, solution.message
    assert [stay.mode for stay in solution.modes] == ["sliding"]
    np.testing.assert_array_equal(solution.y, 0.0)


def test_what_is_held_in_its_acceleration_leaves_when_one_side_lets_go():
    """y″ = t − ½ above, 2 below: it leaves at t = ½, as (t − ½)³/6."""

    def f(t, y):
        return [y[1], where(y[0] < 0, 2.0, t - 0.5)]

    solution = solve(
        traced(f, n=2), (0.0, 1.5), [0.0, 0.0], kinks="locate", method="DOP853", rtol=1e-10
    )
    assert [stay.mode for stay in solution.modes] == ["sliding", "plus"]
    assert solution.modes[1].start == pytest.approx(0.5, abs=1e-9)
    np.testing.assert_allclose(solution.y[:, -1], [1.0 / 6.0, 0.5], rtol=1e-8)
