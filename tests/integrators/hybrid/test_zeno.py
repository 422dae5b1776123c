"""Infinitely many events in finite time: where they lead, and what follows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from integrators import IVP, Event, Hybrid, Mode, Solution, Status, Transition, solve, traced
from integrators.runs.instants.zeno import accumulates, limit

GRAVITY = 9.81
FIRST = math.sqrt(2 / GRAVITY)  # s, to fall 1 m
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def rest_time(e):
    return FIRST * (1 + e) / (1 - e)


def bounce_times(e, count):
    flights = 2 * FIRST * e ** np.arange(1, count)
    return FIRST + np.concatenate([[0.0], np.cumsum(flights)])


def ball(e, zeno="rest", traced_functions=False, t_end=20.0):
    def maybe(f, **options):
        return traced(f, n=2, **options) if traced_functions else f

    floor = Event(
        maybe(lambda t, y: [y[0]], outputs=1), -1, reset=lambda t, y: [0.0, -e * y[1]], name="floor"
    )
    fly = IVP(maybe(lambda t, y: [y[1], -GRAVITY]), [1.0, 0.0], (0, t_end), events=floor)
    return Hybrid({"fly": Mode(fly, zeno=zeno), "rest": lambda t, y: [0.0, 0.0]}, "fly")


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853"])
@pytest.mark.parametrize("traced_functions", [False, True])
def test_ball_comes_to_rest(method, traced_functions):
    times = np.linspace(0, 20, 23)
    problem = ball(0.9, traced_functions=traced_functions)
    sol = solve(problem, method=method, t_eval=times, dense_output=True, **TIGHT)
    assert sol.status == Status.FINISHED
    assert "Zeno" in sol.message
    bounces = sol.t_events[0]
    assert len(bounces) > 150
    assert np.abs(bounces - bounce_times(0.9, len(bounces))).max() < 1e-11
    assert [stay.mode for stay in sol.modes] == ["fly", "rest"]
    assert sol.modes[1].start == pytest.approx(rest_time(0.9), abs=1e-11)
    assert np.array_equal(sol.t, times)
    later = times > rest_time(0.9)
    assert np.abs(sol.y[:, later]).max() < 1e-14
    around = rest_time(0.9) + np.linspace(-1e-7, 1e-7, 31)  # no gap in the dense output
    assert np.abs(sol.sol(around)[0]).max() < 1e-12


@pytest.mark.parametrize("e", [0.01, 0.1, 0.5, 0.97])
def test_any_restitution(e):
    sol = solve(ball(e, t_end=40.0), **TIGHT)
    assert sol.success
    assert sol.modes[1].start == pytest.approx(rest_time(e), abs=1e-10)


def test_without_a_mode_it_ends(tmp_path):
    sol = solve(ball(0.5, zeno=None))
    assert sol.status == Status.ZENO
    assert "Mode(zeno=" in sol.message
    assert sol.zeno[0] == pytest.approx(rest_time(0.5), abs=1e-8)
    plain = solve(ball(0.5).modes["fly"].problem, **TIGHT)
    assert plain.status == Status.ZENO
    assert "Mode(zeno=" not in plain.message
    assert plain.zeno[0] == pytest.approx(rest_time(0.5), abs=1e-11)
    assert np.abs(plain.zeno[1]).max() < 1e-12
    loaded = Solution.load(plain.save(tmp_path / "run"))
    assert loaded.zeno[0] == plain.zeno[0]


def test_map_of_the_limit_and_end_of_the_run_before_it():
    problem = ball(0.5, zeno=("rest", lambda t, y: [t, 0.0]))
    assert solve(problem, **TIGHT).y[0, -1] == pytest.approx(rest_time(0.5), abs=1e-10)
    end = rest_time(0.9) - 1e-9  # between the last bounce that is computed and the limit
    sol = solve(ball(0.9, t_end=end), dense_output=True, **TIGHT)
    assert sol.success
    assert sol.t[-1] == end


def test_transitions_that_accumulate():
    """The bounce as a transition of the mode to itself, and by way of another mode."""
    e = 0.5

    def fly(to):
        change = (lambda t, y: [0.0, -e * y[1]]) if to == "fly" else None
        leave = Transition(lambda t, y: y[0], -1, to=to, map=change)
        return Mode(lambda t, y: [y[1], -GRAVITY], leave, zeno="rest")

    def turn(t, y):
        return "fly", [0.0, -e * y[1]]

    touch = Mode(lambda t, y: [0.0, 0.0], Transition(lambda t, y: -1.0, -1, jump=turn))
    rest = lambda t, y: [0.0, 0.0]  # noqa: E731
    for modes in ({"fly": fly("fly"), "rest": rest},
                  {"fly": fly("touch"), "touch": touch, "rest": rest}):  # fmt: skip
        sol = solve(Hybrid(modes, "fly", [1.0, 0.0], (0, 5), zeno="rest"), **TIGHT)
        assert sol.success, sol.message
        assert sol.modes[-1].mode == "rest"
        assert sol.modes[-1].start == pytest.approx(rest_time(e), abs=1e-9)
    sol = solve(Hybrid({"fly": fly("fly")} | {"rest": rest}, "fly", [1.0, 0.0], (0, 5)), **TIGHT)
    assert sol.success


@pytest.mark.parametrize("width", [0.0, 1e-13, 1e-10])
def test_chatter_is_no_accumulation(width):
    """Two modes that push the state back over one surface: no mode after Zeno stands for that."""
    down = Mode(lambda t, y: [-1.0], Transition(lambda t, y: y[0] + width, -1, to="up"))
    up = Mode(lambda t, y: [1.0], Transition(lambda t, y: y[0] - width, +1, to="down"))
    modes = {"down": down, "up": up, "rest": lambda t, y: [0.0]}
    sol = solve(Hybrid(modes, "down", [1.0], (0, 3), zeno="rest"))
    assert sol.status == Status.ZENO
    assert "do not shrink" in sol.message
    assert "Switch" in sol.message


def test_air_drag_leaves_the_series_only_asymptotically_geometric():
    """With drag, successive ratios differ; compare with a run that bounces on for longer."""
    drag = lambda t, y: [y[1], -GRAVITY - 0.5 * abs(y[1]) * y[1]]  # noqa: E731
    floor = Event(lambda t, y: y[0], -1, reset=lambda t, y: [0.0, -0.8 * y[1]])
    fly = Mode(IVP(drag, [1.0, 0.0], (0, 10), events=floor), zeno="rest")
    sol = solve(Hybrid({"fly": fly, "rest": lambda t, y: [0.0, 0.0]}, "fly"), **TIGHT)
    bounces = sol.t_events[0]
    gap = bounces[-1] - bounces[-2]
    assert sol.modes[1].start == pytest.approx(bounces[-1] + gap * 0.8 / 0.2, abs=1e-12)


def test_limits_of_sequences():
    assert limit([1.0, 2.0], [np.zeros(1)] * 2) is None
    steady = np.arange(40.0)
    assert limit(steady, [np.zeros(1)] * 40) is None
    times = 3.0 - 0.9 ** np.arange(300)
    states = [np.array([0.9**k, (-0.8) ** k, 5.0]) for k in range(300)]
    t, y = limit(times, states)
    assert t == pytest.approx(3.0, abs=1e-15)
    assert np.allclose(y, [0, 0, 5], atol=1e-14)
    assert accumulates(times, 0.0)
    assert not accumulates(times[:100], 0.0)
