"""Events: where, in which order, how often; resets; the start; grazing; Zeno."""

import numpy as np
import pytest
import scipy.integrate

from integrators import IVP, Event, Status, Taylor, problems, solve, solve_many, traced

METHODS = ["DOPRI5", "DOP853", "BS23", "RK4", "RadauIIA3", "SDIRK4"]
ROOT_TOLERANCE = 1e-6  # rtol = 1e-9 of the solution, divided by a slope of order one


def circle(t, y):
    return np.array([y[1], -y[0]])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("direction", "expected"), [(0, [1, 3, 5]), (1, [3]), (-1, [1, 5])])
def test_zeros_and_directions(method, direction, expected):
    event = Event(lambda t, y: y[0], direction=direction)
    solution = solve(circle, (0, 9), [1, 0], method=method, rtol=1e-9, atol=1e-9, events=event)
    assert solution.t_events[0] == pytest.approx(np.array(expected) * np.pi / 2, abs=ROOT_TOLERANCE)
    assert np.max(np.abs(solution.y_events[0][:, 0])) < 1e-12


def test_root_is_found_to_near_machine_precision():
    # y = t exactly, so nothing but the root finder can err.
    solution = solve(
        lambda t, y: np.ones(1), (0, 2), [0.0], method="DOPRI5", events=lambda t, y: y[0] - 1 / 3
    )
    assert abs(solution.t_events[0][0] - 1 / 3) < 1e-15


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("end", [9.0, -9.0])
def test_direction_is_in_the_sense_of_the_integration_as_in_scipy(end, direction, trace):
    def g(t, y):
        return y[0]

    g.direction = direction
    theirs = scipy.integrate.solve_ivp(circle, (0, end), [1, 0], rtol=1e-9, atol=1e-12, events=g)
    f, ours = (traced(circle, n=2), traced(g, n=2, outputs=1)) if trace else (circle, g)
    event = Event(ours, direction=direction)
    solution = solve(f, (0, end), [1, 0], rtol=1e-9, events=event)
    assert len(solution.t_events[0]) in (1, 2)
    assert solution.t_events[0] == pytest.approx(theirs.t_events[0], abs=ROOT_TOLERANCE)
    if not trace:  # a function with SciPy's attributes
        plain = solve(f, (0, end), [1, 0], rtol=1e-9, events=g)
        assert plain.t_events[0].tolist() == solution.t_events[0].tolist()


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("end", [1.0, -1.0])
def test_at_a_jump_all_output_is_the_state_after_it(end, trace):
    """y = t up to t = ±1/2, where it jumps by 10; and once more at the end of the interval."""

    def f(t, y):
        return np.ones(1)

    def g(t, y):
        return (t - end / 2) * (t - end)

    f, g = (traced(f, n=1), traced(g, n=1, outputs=1)) if trace else (f, g)
    jump = Event(g, reset=lambda t, y: y + 10)
    times = end * np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    expected = times + np.array([0, 0, 10, 10, 20])
    plain = solve(f, (0, end), [0.0], events=jump, dense_output=True)
    assert plain.t_events[0].tolist() == [end / 2, end]
    at_the_jump = np.flatnonzero(plain.t == end / 2)
    assert plain.y[0, at_the_jump] == pytest.approx([end / 2, end / 2 + 10])
    assert plain.sol(times)[0] == pytest.approx(expected, abs=1e-12)
    sampled = solve(f, (0, end), [0.0], events=jump, t_eval=times, dense_output=True)
    assert sampled.y[0] == pytest.approx(expected, abs=1e-12)
    assert sampled.sol(times)[0] == pytest.approx(expected, abs=1e-12)
    assert plain.y[0, -1] == pytest.approx(expected[-1])
    many = solve_many(f, (0, end), [[0.0], [0.0]], events=jump, t_eval=times)
    assert many.y_eval[1, 0] == pytest.approx(expected, abs=1e-12)
    assert many.y[1, 0] == pytest.approx(expected[-1])


def test_a_jump_at_the_very_start_is_in_the_output():
    """A ball on the floor that moves down bounces at t0: the output there is the state after."""
    bounce = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -y[1]])
    times = np.linspace(0, 1, 5)
    run = solve(
        lambda t, y: [y[1], 0.0], (0, 1), [0.0, -1.0], events=bounce, t_eval=times,
        dense_output=True,
    )  # fmt: skip
    assert run.y[1].tolist() == [1.0] * 5
    assert run.sol(times)[1].tolist() == [1.0] * 5


@pytest.mark.parametrize(("terminal", "stop"), [(True, 1), (1, 1), (3, 5)])
def test_terminal_after_n(terminal, stop):
    event = Event(lambda t, y: y[0], terminal=terminal, name="crossing")
    solution = solve(circle, (0, 20), [1, 0], rtol=1e-9, atol=1e-9, events=event)
    assert solution.status == Status.EVENT
    assert solution.success
    assert "crossing" in solution.message
    assert solution.t[-1] == solution.t_events[0][-1]
    assert solution.t[-1] == pytest.approx(stop * np.pi / 2, abs=ROOT_TOLERANCE)
    assert abs(solution.y[0, -1]) < 1e-12


def test_scipy_style_attributes():
    def event(t, y):
        return y[0]

    event.terminal = True
    event.direction = 1
    solution = solve(circle, (0, 20), [1, 0], rtol=1e-9, events=event)
    assert solution.t[-1] == pytest.approx(3 * np.pi / 2, abs=ROOT_TOLERANCE)


def test_several_events_in_one_step_come_in_order():
    levels = [0.9, 0.1, 0.5]
    events = [lambda t, y, level=level: y[0] - level for level in levels]
    seen = []
    resets = [
        Event(event, reset=lambda t, y, k=k: (seen.append(k), y)[1])
        for k, event in enumerate(events)
    ]
    ramp = dict(first_step=1.0, max_step=1.0)
    plain = solve(lambda t, y: np.ones(1), (0, 1), [0.0], events=events, **ramp)
    assert [float(t[0]) for t in plain.t_events] == pytest.approx(levels, abs=1e-14)
    solve(lambda t, y: np.ones(1), (0, 1), [0.0], events=resets, **ramp)
    assert seen == [1, 2, 0]


def test_two_crossings_within_one_step_are_both_seen():
    # y = t over one step of length 1; g has zeros at 0.45 and 0.55 and equal signs at both ends.
    event = Event(lambda t, y: (y[0] - 0.45) * (y[0] - 0.55))
    solution = solve(lambda t, y: np.ones(1), (0, 1), [0.0], step=1.0, method="RK4", events=event)
    assert solution.t_events[0] == pytest.approx([0.45, 0.55], abs=1e-12)


def test_grazing_is_seen():
    event = Event(lambda t, y: (y[0] - 0.37) ** 2)
    solution = solve(lambda t, y: np.ones(1), (0, 1), [0.0], step=1.0, method="RK4", events=event)
    assert solution.t_events[0] == pytest.approx([0.37], abs=1e-5)


def test_zero_at_the_start_is_no_occurrence():
    solution = solve(circle, (0, 4), [0, 1], rtol=1e-9, events=lambda t, y: y[0])
    assert solution.t_events[0] == pytest.approx([np.pi], abs=ROOT_TOLERANCE)


@pytest.mark.parametrize("method", METHODS)
def test_bouncing_ball_resets_and_goes_on(method):
    g, e = 9.81, 0.8
    bounce = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -e * y[1]])
    ball = solve(
        lambda t, y: np.array([y[1], -g]),
        (0, 2),
        [1.0, 0.0],
        method=method,
        events=bounce,
        rtol=1e-9,
    )
    first = np.sqrt(2 / g)
    speed = g * first
    expected = [first]
    while True:
        speed *= e
        following = expected[-1] + 2 * speed / g
        if following > 2:
            break
        expected.append(following)
    assert ball.t_events[0] == pytest.approx(expected, abs=1e-9)
    assert np.min(ball.y[0]) > -1e-12


def test_accumulating_events_are_detected_and_reported():
    problem = problems.get("bouncing_ball")
    solution = solve(problem, (0, 100), rtol=1e-8)
    assert solution.status == Status.ZENO
    assert not solution.success
    assert "Zeno" in solution.message
    assert solution.t[-1] < 100
    gaps = np.diff(solution.t_events[0])
    assert gaps[-1] < 1e-6 * gaps[0]


def test_dense_output_across_a_jump():
    event = Event(lambda t, y: y[0] - 1, reset=lambda t, y: [0.0])
    solution = solve(
        lambda t, y: np.ones(1), (0, 3.5), [0.0], events=event, dense_output=True, rtol=1e-9
    )
    times = np.array([0.25, 1.25, 2.5, 3.25])
    assert solution.sol(times)[0] == pytest.approx(times % 1, abs=1e-9)
    sampled = solve(lambda t, y: np.ones(1), (0, 3.5), [0.0], events=event, t_eval=times, rtol=1e-9)
    assert sampled.y[0] == pytest.approx(times % 1, abs=1e-9)


def test_events_with_fixed_steps_restart_the_grid():
    event = Event(lambda t, y: y[0] - 0.25, reset=lambda t, y: [1.0], terminal=False)
    solution = solve(lambda t, y: np.ones(1), (0, 1), [0.0], method="RK4", step=0.1, events=event)
    assert solution.t_events[0] == pytest.approx([0.25], abs=1e-14)
    assert solution.t[4] == pytest.approx(0.25)
    assert solution.t[5] == pytest.approx(0.35)


def test_bad_events_say_so():
    with pytest.raises(TypeError, match="one real number"):
        solve(circle, (0, 1), [1, 0], events=lambda t, y: y)
    with pytest.raises(TypeError, match="event is a function"):
        solve(circle, (0, 1), [1, 0], events=[3.0])
    bad_reset = Event(lambda t, y: y[0] - 0.5, reset=lambda t, y: [np.nan, 0])
    solution = solve(circle, (0, 2), [1, 0], events=bad_reset)
    assert solution.status == Status.FUNCTION_RAISED
    assert "finite numbers" in str(solution.exception)
    assert solution.t.size > 1


def test_terminal_event_ends_dense_output_and_the_last_step():
    event = Event(lambda t, y: y[0] - 0.5, terminal=True)
    solution = solve(lambda t, y: np.ones(1), (0, 9), [0.0], events=event, dense_output=True)
    assert solution.sol.t_max == solution.t[-1] == pytest.approx(0.5)
    assert np.sum(solution.h) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="outside"):
        solution.sol(0.6)


def test_conditions_and_nan_are_no_events():
    with pytest.raises(TypeError, match=r"not y\[0\] < 0.5"):
        solve(circle, (0, 1), [1, 0], events=lambda t, y: y[0] < 0.5)
    with pytest.raises(ValueError, match="NaN"):
        solve(circle, (0, 1), [1, 0], events=lambda t, y: np.nan)
    with pytest.raises(ValueError, match="direction must be"):
        Event(lambda t, y: y[0], direction="down")
    with pytest.raises(ValueError, match="terminal must be"):
        Event(lambda t, y: y[0], terminal="yes")


# ---------------------------------------------------------------- traced events, inside the loop


def oscillation(t, y, p):
    return np.array([y[1], -p[0] * y[0]])


WATCHED = [
    lambda t, y: y[0] - 0.3,
    lambda t, y: (y[1] - 0.2) * (y[1] - 0.25),  # two zeros close together
    lambda t, y: y[1],  # zero at the start
    lambda t, y: (y[0] - 0.4) ** 2,  # touches zero
    lambda t, y: y[0] - np.sin(t),
]


def both_ways(method, events, **options):
    """The run with traced events, which the loop watches, and with the same as plain functions."""
    f = traced(oscillation, n=2, params=1)
    problem = IVP(f, [1.0, 0.0], (0.0, 30.0), params=[1.7])
    runs = []
    for prepare in (lambda g: traced(g, n=2, outputs=1), lambda g: g):
        watched = [Event(prepare(e.function), e.direction, e.terminal, e.reset) for e in events]
        tolerances = dict(rtol=1e-8, atol=1e-8)
        runs.append(solve(problem, method=method, events=watched, **tolerances, **options))
    return runs


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "RK4", "RADAU5", Taylor()])
@pytest.mark.parametrize("k", range(len(WATCHED)))
def test_traced_events_are_those_of_plain_functions(method, k):
    inside, outside = both_ways(method, [Event(WATCHED[k])])
    assert inside.nsteps == outside.nsteps
    assert inside.nfev == outside.nfev
    assert len(inside.t_events[0]) == len(outside.t_events[0]) > 3
    assert inside.t_events[0] == pytest.approx(outside.t_events[0], abs=1e-12)
    assert np.array_equal(inside.t, outside.t)


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize(
    "options", [{}, {"t_eval": np.linspace(0, 30, 41)}, {"dense_output": True}]
)
def test_traced_events_with_resets_and_an_end(direction, options):
    events = [
        Event(WATCHED[0], direction=direction, reset=lambda t, y: [y[0], 0.9 * y[1]]),
        Event(WATCHED[1], terminal=7),
    ]
    inside, outside = both_ways("DOPRI5", events, **options)
    assert inside.status == outside.status == Status.EVENT
    assert inside.nsteps == outside.nsteps
    for a, b in zip(inside.t_events, outside.t_events):
        assert a == pytest.approx(b, abs=1e-12)
    assert inside.t == pytest.approx(outside.t, abs=1e-12)
    assert inside.y == pytest.approx(outside.y, abs=1e-12)
    if inside.sol is not None:
        times = np.linspace(0, inside.t[-1], 99)
        assert inside.sol(times) == pytest.approx(outside.sol(times), abs=1e-12)


def test_traced_events_do_not_return_to_python_for_nothing():
    """Python is asked about the few steps that may hold a zero, not about all of them."""
    calls = []

    class Counting(type(traced(lambda t, y: y[0], n=2, outputs=1))):
        def __call__(self, t, y, *more):
            calls.append(t)
            return super().__call__(t, y, *more)

    event = Counting(lambda t, y: y[0] - 0.3, n=2, outputs=1)
    f = traced(oscillation, n=2, params=1)
    problem = IVP(f, [1.0, 0.0], (0.0, 30.0), params=[1.7], events=event)
    solution = solve(problem, rtol=1e-10, atol=1e-10, max_step=0.01)
    found = len(solution.t_events[0])
    assert found == 2 * int(30 * np.sqrt(1.7) / (2 * np.pi)) + 1
    # Roots and dips: a handful of samples and some twenty iterations each.
    assert len(calls) < 60 * found < solution.nsteps


def test_a_traced_event_that_is_nan_says_so():
    event = traced(lambda t, y: np.sqrt(0.5 - t), n=2, outputs=1)
    f = traced(oscillation, n=2, params=1)
    solution = solve(f, (0, 2), [1.0, 0.0], params=[1.0], events=event)
    assert solution.status == Status.FUNCTION_RAISED
    assert "NaN" in str(solution.exception)


@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("t0", [0.0, -1.9])
def test_two_zeros_at_the_edge_of_a_long_step(is_traced, t0):
    """x = 1 − (t − 0.05)² is above 0.999 for 0.063 only, near the start or the end of the step."""
    f, g = (lambda t, y: [-2 * (t - 0.05)]), (lambda t, y: [y[0] - 0.999])
    if is_traced:
        f, g = traced(f, n=1), traced(g, n=1, outputs=1)
    sol = solve(f, (t0, t0 + 2), [1 - (t0 - 0.05) ** 2], method="RK4", step=2.0, events=g)
    assert np.allclose(sol.t_events[0], 0.05 + np.sqrt(0.001) * np.array([-1, 1]), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_end_is_met_exactly_with_events_too(seed):
    """t + (end − t) is not the end, in double precision; times of steps and events are."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        t0, t1 = rng.uniform(-1, 1, 2)
        forward = np.sign(t1 - t0)
        at_the_end = Event(lambda t, y, t1=t1: t - t1)
        bounce = Event(lambda t, y: y[0], reset=lambda t, y: -y + [0.5, 0.0])
        run = solve(
            lambda t, y: [y[1], -y[0]],
            (t0, t1),
            rng.normal(size=2),
            events=[at_the_end, bounce],
            step=float(rng.uniform(0.1, 3)),
            method="RK4",
        )
        assert run.success
        assert run.t[-1] == t1
        assert (forward * np.diff(run.t) >= 0).all()
        assert run.t_events[0].tolist() == [t1]
