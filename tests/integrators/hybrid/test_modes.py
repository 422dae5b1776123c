"""Modes and transitions: what a Hybrid is, and what its Solution tells."""

from __future__ import annotations

import math
import pickle
import signal
import threading

import numpy as np
import pytest

from integrators import (
    IVP,
    Event,
    Hybrid,
    IntegrationError,
    IntegrationInterrupted,
    Mode,
    Solution,
    Status,
    Transition,
    groups,
    solve,
    solve_many,
    traced,
)
from integrators.dae import Mechanical

HEATING, COOLING = math.log(12 / 8), math.log(22 / 18)  # from 18 to 22 by 30 − T, and back by −T


def thermostat(traced_functions=False, **more):
    """T' = −T until 18, T' = 30 − T until 22."""

    def maybe(f, **options):
        return traced(f, n=1, **options) if traced_functions else f

    cooling = Mode(
        maybe(lambda t, y: -y),
        Transition(maybe(lambda t, y: [y[0] - 18.0], outputs=1), -1, to="heating", name="cold"),
    )
    heating = Mode(
        maybe(lambda t, y: 30.0 - y),
        Transition(maybe(lambda t, y: [y[0] - 22.0], outputs=1), +1, to="cooling", name="hot"),
    )
    options = {"y0": [20.0], "t_span": (0, 3), "name": "thermostat", **more}
    return Hybrid({"cooling": cooling, "heating": heating}, "cooling", **options)


def temperature(t):
    """The same in closed form, T(0) = 20."""
    first = math.log(20 / 18)
    if t < first:
        return 20 * math.exp(-t)
    s = (t - first) % (HEATING + COOLING)
    return 30 - 12 * math.exp(-s) if s < HEATING else 22 * math.exp(-(s - HEATING))


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "RADAU5", "Gauss4", "RadauVariable", "BDF"])
@pytest.mark.parametrize("traced_functions", [False, True])
def test_thermostat(method, traced_functions):
    sol = solve(thermostat(traced_functions), method=method, rtol=1e-10, atol=1e-10,
                dense_output=True)  # fmt: skip
    assert sol.success
    assert sol.t[-1] == 3
    starts = np.array([stay.start for stay in sol.modes])
    exact = math.log(20 / 18) + np.cumsum([0, *([HEATING, COOLING] * 6)])[: len(starts) - 1]
    assert np.abs(starts[1:] - exact).max() < 1e-8
    times = np.linspace(0, 3, 41)
    truth = [temperature(t) for t in times]
    assert np.abs(sol.sol(times)[0] - truth).max() < 1e-7
    chosen = solve(thermostat(traced_functions), method=method, rtol=1e-10, atol=1e-10,
                   t_eval=times)  # fmt: skip
    assert np.array_equal(chosen.t, times)
    assert np.abs(chosen.y[0] - truth).max() < 1e-7
    assert chosen.nfev == sol.nfev


def test_solution_knows_modes():
    sol = solve(thermostat(events=[Event(lambda t, y: t - 1.0, name="one")]), rtol=1e-9)
    assert sol.mode(0.2) == "heating"
    assert sol.mode([0.0, 0.2]).tolist() == ["cooling", "heating"]
    assert sol.mode(sol.modes[1].start) == "heating"  # at a transition the one after it
    assert [stay.end for stay in sol.modes[:-1]] == [stay.start for stay in sol.modes[1:]]
    assert sol.event_names == [(None, "one"), ("cooling", "cold"), ("heating", "hot")]
    assert np.allclose(sol.t_events[0], 1.0, rtol=0, atol=1e-12)
    assert np.allclose([y[0, 0] for y in sol.y_events[1:]], [18, 22])
    total = sol.by_mode
    assert sum(row["time"] for row in total.values()) == pytest.approx(3)
    assert sum(row["visits"] for row in total.values()) == len(sol.modes)
    for name in ("nfev", "nsteps", "nrejected"):
        assert sum(row[name] for row in total.values()) == getattr(sol, name)
    assert "2 modes" in repr(sol)
    assert "heating" in sol._repr_html_()
    assert len(sol.parts) == len(sol.modes)
    with pytest.raises(ValueError, match="integrated interval"):
        sol.mode(4.0)
    with pytest.raises(ValueError, match="no modes"):
        solve(lambda t, y: -y, (0, 1), [1.0]).mode(0.5)


def changing_dimension():
    """One component for a second, three for another, keys of all kinds."""
    one = Mode(
        lambda t, y: [-1.0],
        Transition(lambda t, y: y[0], -1, to=("many", 1), map=lambda t, y: [0.5, 1.0, 2.0]),
    )
    inner = Event(lambda t, y: y[2] - 2.1, name="inner")
    many = Mode(
        IVP(lambda t, y: [0.0, -1.0, y[0]], np.zeros(3), (0, 1), events=inner),
        Transition(lambda t, y: y[1], -1, jump=lambda t, y: ("one", [1.0]), name="back"),
    )
    return Hybrid({"one": one, ("many", 1): many}, "one", [1.0], (0, 5), name="changing")


def test_dimensions_change():
    sol = solve(changing_dimension(), dense_output=True)
    assert [stay.n for stay in sol.modes] == [1, 3, 1, 3, 1]
    assert sol.y.shape[0] == 3
    assert np.allclose(sol.sol(1.5), [0.5, 0.5, 2.25])
    assert np.allclose(sol.sol([0.5, 3.5])[0], [0.5, 0.5])
    assert np.isnan(sol.sol(0.5)[1:]).all()
    assert np.allclose(sol.t_events[1], [1.2, 3.2])


def test_files_and_pickles(tmp_path):
    sol = solve(changing_dimension(), dense_output=True)
    loaded = Solution.load(sol.save(tmp_path / "run"))
    for other in (loaded, pickle.loads(pickle.dumps(sol))):
        assert other.modes == sol.modes
        assert other.event_names == sol.event_names
        assert np.array_equal(other.y, sol.y, equal_nan=True)
        times = np.linspace(0, 5, 21)
        assert np.array_equal(other.sol(times), sol.sol(times), equal_nan=True)
        assert other.mode(1.5) == ("many", 1)
        assert other.problem == "changing"
        assert other.message == sol.message
    ended = solve(
        lambda t, y: [1.0], (0, 2), [0.0], events=Event(lambda t, y: t - 1, terminal=True)
    )
    assert ended.ended_by == 0 == Solution.load(ended.save(tmp_path / "ended")).ended_by


def test_modes_made_on_entry():
    entered = []

    def stairs(k):
        entered.append(k)
        return Mode(lambda t, y: [float(k)], Transition(lambda t, y: y[0] - (k + 1), +1, to=k + 1))

    sol = solve(Hybrid(stairs, 1, [1.0], (0, 2)))
    assert entered == [1, 2, 3, 4] == [stay.mode for stay in sol.modes]
    assert np.allclose([stay.start for stay in sol.modes], [0, 1, 1.5, 1.5 + 1 / 3])


def test_options_of_a_mode():
    problem = thermostat()
    problem.modes["heating"].options.update(method="RK4", step=0.01)
    sol = solve(problem, method="RADAU5", rtol=1e-9)
    assert sol.by_mode["heating"]["njev"] == 0 < sol.by_mode["cooling"]["njev"]
    assert np.allclose(sol.parts[1].h[:-1], 0.01)


def test_parameters_reach_everything():
    decay = Mode(
        lambda t, y, p: -p[0] * y,
        Transition(lambda t, y, p: y[0] - p[1], -1, to="grow", map=lambda t, y, p: y + p[2]),
    )
    problem = Hybrid({"decay": decay, "grow": lambda t, y, p: p[0] * y}, "decay", [1.0], (0, 1))
    sol = solve(problem, method="DOPRI5", params=[2.0, 0.5, 1.0], rtol=1e-10)
    crossing = math.log(2) / 2
    assert sol.modes[1].start == pytest.approx(crossing, abs=1e-9)
    assert sol.y[0, -1] == pytest.approx(1.5 * math.exp(2 * (1 - crossing)), rel=1e-8)
    many = solve_many(problem, params=[[2.0, 0.5, 1.0], [3.0, 0.5, 1.0]], rtol=1e-10)
    assert many.engine == "one by one: it has modes"
    assert many.y[0, 0] == sol.y[0, -1]
    assert many.success.all()


def test_solve_many_is_solve():
    starts, times = np.linspace(18.5, 25, 4), np.linspace(0, 3, 7)
    many = solve_many(thermostat(), y0=starts[:, None], t_eval=times)
    for k, start in enumerate(starts):
        sol = solve(thermostat(), y0=[start], t_eval=times, method="DOPRI5")
        assert np.array_equal(sol.y, many.y_eval[k])
        assert many.nsteps[k] == sol.nsteps
        assert all(map(np.array_equal, sol.t_events, many.t_events[k]))
    wide = solve_many(changing_dimension(), y0=[[1.0], [2.5]], t_eval=[0.0, 1.5], t_span=(0, 1.5))
    assert wide.y.shape == (2, 3)
    assert np.isnan(wide.y[1, 1:]).all()
    assert np.allclose(wide.y_eval[0, :, 1], [0.5, 0.5, 2.25])


# ---------------------------------------------------------------------- at the instant of entry


def test_guard_beyond_its_surface_is_taken_at_once():
    hot = Hybrid(thermostat().modes, "heating", [25.0], (0, 1))
    sol = solve(hot, rtol=1e-9)
    assert [stay.mode for stay in sol.modes[:2]] == ["heating", "cooling"]
    assert sol.modes[0].end == 0.0
    assert sol.modes[2].start == pytest.approx(math.log(25 / 18), abs=1e-8)


def test_guard_that_waits_for_a_passage():
    wave = lambda t, y: math.sin(t) + 0.5  # noqa: E731
    waits = Mode(lambda t, y: [1.0], Transition(wave, +1, to="b", at_entry=False))
    at_once = Mode(lambda t, y: [1.0], Transition(wave, +1, to="b"))
    for mode, start in ((waits, 2 * math.pi - math.pi / 6), (at_once, 0.0)):
        sol = solve(Hybrid({"a": mode, "b": lambda t, y: [0.0]}, "a", [0.0], (0, 8)), rtol=1e-9)
        assert sol.modes[1].start == pytest.approx(start, abs=1e-9)


def test_transitions_without_end():
    up = Mode(lambda t, y: [1.0], Transition(lambda t, y: y[0] - 1, +1, to="down"))
    down = Mode(lambda t, y: [-1.0], Transition(lambda t, y: y[0] - 1, -1, to="up"))
    problem = Hybrid({"up": up, "down": down}, "up", [0.0], (0, 5))
    sol = solve(problem)
    assert (
        sol.status == Status.ZENO and "'down', 'up'" in sol.message
    ) or "'up', 'down'" in sol.message
    assert "Switch" in sol.message
    assert sol.t[-1] == pytest.approx(1)
    with pytest.raises(IntegrationError, match="do not come to an end"):
        solve(problem, throw=True)


def test_number_of_transitions_is_bounded():
    sol = solve(thermostat(max_transitions=3))
    assert sol.status == Status.TOO_MANY_STEPS
    assert "max_transitions = 3" in sol.message
    assert len(sol.modes) == 3


def test_attempts_are_counted_over_all_modes():
    whole = solve(thermostat())
    sol = solve(thermostat(), max_steps=whole.nsteps - 2)
    assert sol.status == Status.TOO_MANY_STEPS
    assert sol.nsteps + sol.nrejected == whole.nsteps - 2


def test_first_of_two_transitions_and_resets_before_them():
    reset = Event(lambda t, y: y[0] - 1, reset=lambda t, y: [y[0], 7.0])
    first = Transition(lambda t, y: t - 1, to="b")
    second = Transition(lambda t, y: y[0] - 1, to="c")
    mode = Mode(IVP(lambda t, y: [1.0, 0.0], [0.0, 0.0], (0, 2), events=reset), [first, second])
    still = lambda t, y: [0.0, 0.0]  # noqa: E731
    sol = solve(Hybrid({"a": mode, "b": still, "c": still}, "a"))
    assert [stay.mode for stay in sol.modes] == ["a", "b"]
    assert np.allclose(sol.y[:, -1], [1.0, 7.0])


def test_terminal_event_at_a_transition_ends_the_run():
    mode = Mode(lambda t, y: [1.0], Transition(lambda t, y: y[0] - 1, to="b"))
    stop = Event(lambda t, y: t - 1, terminal=True, name="stop")
    sol = solve(Hybrid({"a": mode, "b": mode}, "a", [0.0], (0, 3), events=stop))
    assert sol.status == Status.EVENT
    assert "'stop'" in sol.message
    assert sol.ended_by == 0
    assert [stay.mode for stay in sol.modes] == ["a"]


def test_terminal_counts_go_over_all_modes():
    event = Event(lambda t, y: y[0] - 20, terminal=3)
    sol = solve(thermostat(events=event), rtol=1e-9)
    assert sol.status == Status.EVENT
    assert len(sol.t_events[0]) == 3
    # T = 20 after the start: heating, cooling, heating
    first = math.log(20 / 18) + math.log(12 / 10)
    exact = [first, first + math.log(10 / 8) + math.log(22 / 20), first + HEATING + COOLING]
    assert np.allclose(sol.t_events[0], exact, rtol=0, atol=1e-8)


def test_event_at_a_transition_is_recorded_once():
    both = Event(lambda t, y: y[0] - 18, name="same surface")
    sol = solve(thermostat(events=both), rtol=1e-9)
    assert np.array_equal(sol.t_events[0], sol.t_events[1])


def test_output_at_a_transition_is_the_state_after_it():
    """y' = 1 with jumps by 10 at t = 1, and twice at t = 2; the run may end just there."""

    def until(time, key):
        leave = Transition(lambda t, y: t - time, +1, to=key, map=lambda t, y: y + 10)
        return Mode(lambda t, y: [1.0], leave)

    modes = {"a": until(1.0, "b"), "b": until(2.0, "c"), "c": until(2.0, "d")}
    problem = Hybrid(modes | {"d": lambda t, y: [1.0]}, "a", [0.0], (0, 3))
    times = np.array([0, 0.5, 1, 1.5, 2, 3])
    expected = [0, 0.5, 11, 11.5, 32, 33]
    sol = solve(problem, t_eval=times, dense_output=True)
    assert np.array_equal(sol.t, times)
    assert np.allclose(sol.y[0], expected)
    assert np.allclose(sol.sol(times)[0], expected)
    for t_eval in (None, [2.0]):
        end = solve(problem, t_span=(0, 2), t_eval=t_eval)
        assert end.y[0, -1] == pytest.approx(32)
        assert end.modes[-1].mode == "d"
    assert solve(problem, t_eval=[]).t.size == 0


def slack_pendulum(formulation):
    """A mass on a string from below with v² = 4 gl: the string is slack from height 2/3 l on."""
    system = Mechanical(
        np.eye(2),
        lambda t, q, v: np.array([0.0, -9.81]),
        lambda t, q: np.array([(q[0] ** 2 + q[1] ** 2 - 1) / 2]),
        q0=[0.0, -1.0],
        v0=[math.sqrt(4 * 9.81), 0.0],
        t_span=(0.0, 1.4),
        trace=True,
    )
    stiff = formulation in ("ggl", "index3")
    taut = Mode(
        system.formulation(formulation),
        Transition(
            lambda t, y: y[2] ** 2 + y[3] ** 2 - 9.81 * y[1],
            -1,
            to="slack",
            map=lambda t, y: y[:4],
        ),
        method="RADAU5" if stiff else "DOP853",
    )
    slack = Mode(
        lambda t, y: [y[2], y[3], 0.0, -9.81],
        Transition(lambda t, y: y[0] ** 2 + y[1] ** 2 - 1, +1, to="caught"),
    )
    return Hybrid({"taut": taut, "slack": slack, "caught": lambda t, y: np.zeros(4)}, "taut")


@pytest.mark.parametrize("formulation", ["index1", "projected", "ggl", "index3"])
def test_constraints_that_end(formulation):
    """Distance, speed and acceleration vanish where the string goes slack: only the jerk tells."""
    sol = solve(slack_pendulum(formulation), rtol=1e-9, atol=1e-9)
    assert [stay.mode for stay in sol.modes] == ["taut", "slack", "caught"]
    y = sol.parts[1].y[:, 0]
    assert y[1] == pytest.approx(2 / 3, abs=1e-7)
    assert y[2] ** 2 + y[3] ** 2 == pytest.approx(9.81 * 2 / 3, rel=1e-6)
    # Flight from angle a, sin a = 2/3, until r = 1 again: t = 4 cos a sqrt(sin a / g) (geometry).
    flight = 4 * math.sqrt(1 - 4 / 9) * math.sqrt(2 / 3 / 9.81)
    assert sol.modes[2].start - sol.modes[1].start == pytest.approx(flight, abs=1e-6)


def test_mode_on_a_manifold():
    group = groups.rotations_by_quaternion()
    spin = np.array([0.3, -0.2, 0.9])
    turning = IVP(
        lambda t, y: 0.5 * np.array(
            [-y[1:] @ spin, *(y[0] * spin + np.cross(y[1:], spin))]
        ),
        [1.0, 0, 0, 0],
        (0, 2),
        manifold=group.manifold(lambda t, y: spin),
    )  # fmt: skip
    angle = float(np.linalg.norm(spin))
    mode = Mode(turning, Transition(lambda t, y: y[0] - math.cos(angle / 2), -1, to="stop"),
                method="RKMK4", step=0.05)  # fmt: skip
    problem = Hybrid({"turn": mode, "stop": lambda t, y: np.zeros(4)}, "turn")
    sol = solve(problem, dense_output=True)
    assert sol.modes[1].start == pytest.approx(1.0, abs=1e-6)
    expected = np.r_[math.cos(angle / 4), math.sin(angle / 4) * spin / angle]
    assert np.allclose(sol.sol(0.5), expected, atol=1e-6)
    assert np.allclose(sol.sol([0.5, 1.5])[:, 1], sol.y[:, -1])
    with pytest.raises(ValueError, match="t_eval"):
        sol.save("nowhere.npz")


# ---------------------------------------------------------------------- what goes wrong


def test_functions_that_raise_leave_what_was_computed():
    def broken(**transition):
        leave = Transition(lambda t, y: y[0], -1, **transition)
        modes = {"a": Mode(lambda t, y: [-1.0], leave), "b": lambda t, y: -y}
        return solve(Hybrid(modes, "a", [1.0], (0, 3)))

    cases = [
        (dict(to="b", map=lambda t, y: 1 / 0), "ZeroDivisionError"),
        (dict(to=lambda t, y: "c"), "no mode 'c'"),
        (dict(to="b", map=lambda t, y: [np.nan]), "y0\\[0\\] is nan"),
        (dict(to="b", map=lambda t, y: None), "returned None"),
        (dict(jump=lambda t, y: "b"), "expected the key of a mode and a state"),
        (dict(to=lambda t, y: ["b"]), "hashable"),
    ]
    for transition, message in cases:
        sol = broken(**transition)
        assert sol.status == Status.FUNCTION_RAISED
        assert sol.t[-1] == pytest.approx(1)
        with pytest.raises(IntegrationError, match=message):
            sol.raise_for_status()


def test_bad_input_is_refused_in_words():
    modes = thermostat().modes
    cases = [
        (lambda: Hybrid(modes, "freezing", [1.0], (0, 1)), "no mode 'freezing'"),
        (lambda: Hybrid({"cooling": modes["cooling"]}, "cooling", [1.0], (0, 1)), "leads to"),
        (lambda: Hybrid(modes, "cooling", [1.0], (1, 0)), "backwards"),
        (lambda: Hybrid(modes, "cooling", t_span=(0, 1)), "needs y0"),
        (lambda: Hybrid([modes], "cooling"), "dictionary"),
        (lambda: Hybrid(modes, "cooling", [1.0], (0, 1), max_transitions=0), "max_transitions"),
        (lambda: Hybrid(modes, "cooling", [1.0], (0, 1), events=modes["cooling"].transitions),
         "belongs to a Mode"),
        (lambda: Mode(3), "IVP or a function"),
        (lambda: Mode(lambda t, y: y, [Event(lambda t, y: t)]), "Transition objects"),
        (lambda: Mode(lambda t, y: y, dense_output=True), "no option 'dense_output'"),
        (lambda: Transition(lambda t, y: t), "needs `to`"),
        (lambda: Transition(lambda t, y: t, to="a", jump=lambda t, y: 1), "needs `to`"),
        (lambda: Transition(lambda t, y: t, to="a", reset=lambda t, y: y), "no `reset`"),
        (lambda: solve(thermostat(), mass=np.eye(1)), "IVP of the mode"),
        (lambda: solve(thermostat(), check="global"), "tighter rtol"),
        (lambda: solve(thermostat(), kinks="locate"), "give it to the Mode"),
        (lambda: solve(thermostat(), t_eval=[5.0]), "within t_span"),
    ]  # fmt: skip
    for call, message in cases:
        with pytest.raises((ValueError, TypeError), match=message):
            call()


def test_callback_stops_and_sees_all_modes():
    seen = []
    sol = solve(thermostat(), callback=lambda t, y: seen.append(t) or t > 1.0)
    assert sol.status == Status.STOPPED
    assert seen[-1] == sol.t[-1] > 1.0
    assert len(sol.modes) > 2


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
def test_ctrl_c_keeps_what_was_computed(on_interrupt):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")

    def press(t, y):
        if t > 1.0:
            signal.raise_signal(signal.SIGINT)

    try:
        sol = solve(thermostat(), callback=press, on_interrupt=on_interrupt, dense_output=True)
        assert on_interrupt == "return"
    except IntegrationInterrupted as interrupt:
        assert on_interrupt == "raise"
        sol = interrupt.solution
    assert sol.status == Status.INTERRUPTED
    assert 1.0 < sol.t[-1] < 1.5
    assert len(sol.modes) >= 3
    assert sol.sol(0.5)[0] == pytest.approx(temperature(0.5), rel=1e-4)


def test_sys_exit_carries_the_whole_run():
    def leave(t, y):
        if t > 1.0:
            raise SystemExit(3)

    with pytest.raises(SystemExit) as caught:
        solve(thermostat(), callback=leave)
    assert len(caught.value.solution.modes) >= 3


def test_failures_name_their_mode():
    explosion = Mode(lambda t, y: y**2)
    start = Mode(lambda t, y: [1.0], Transition(lambda t, y: y[0] - 1, +1, to="explodes"))
    sol = solve(Hybrid({"grows": start, "explodes": explosion}, "grows", [0.0], (0, 3)))
    assert not sol.success
    assert "in mode 'explodes'" in sol.message
    assert sol.t[-1] == pytest.approx(2.0, abs=1e-3)
