"""Instants: events at one time, resets that meet, starts on a surface, states that are held."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from integrators import (
    IVP,
    Event,
    Hybrid,
    Mode,
    Solution,
    Status,
    Transition,
    solve,
    solve_many,
    traced,
)
from integrators.runs.instants.instant import Motion

METHODS = [
    *("DOPRI5", "DOP853", "RADAU5", "RadauVariable", "BDF", "Adams", "scipy:RK45", "scipy:LSODA"),
    *(("RK4", 0.07), ("SDIRK4", 0.07)),
]
GRAVITY = 9.81


def options(method):
    if isinstance(method, tuple):
        return dict(method=method[0], step=method[1])
    return dict(method=method)


def fall(t, y):
    return np.array([y[1], -GRAVITY + 0 * y[1]])


def floor(e, direction=-1, name="floor"):
    bounce = lambda t, y: [0.0, -e * y[1]]  # noqa: E731
    return Event(lambda t, y: y[0], direction=direction, reset=bounce, name=name)


# ---------------------------------------------------------------- several events at once


def two_balls(trace=False, direction=0):
    """Balls 0 and 1 on a common floor, without gravity."""

    def f(t, y):
        return np.array([y[2], y[3], 0 * y[2], 0 * y[3]])

    heights = [lambda t, y: y[0], lambda t, y: y[1]]
    if trace:
        f, heights = traced(f, n=4), [traced(g, n=4, outputs=1) for g in heights]
    turns = [lambda t, y: [*y[:2], -y[2], y[3]], lambda t, y: [*y[:3], -y[3]]]
    return f, [Event(g, direction, reset=turn) for g, turn in zip(heights, turns)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("late", [0.0, 1e-9, -1e-9, 1e-15, -1e-15, 1e-4, 0.3])
def test_balls_that_land_together_both_bounce(method, late):
    f, events = two_balls()
    run = solve(f, (0, 3), [1.0, 1.0 + late, -1.0, -1.0], events=events, **options(method))
    assert run.status == Status.FINISHED
    assert run.y[:, -1] == pytest.approx([2, 2 - late, 1, 1], abs=2 * abs(late) + 1e-12)
    assert [len(t) for t in run.t_events] == [1, 1]
    assert run.t_events[1][0] == pytest.approx(1 + late, abs=1.01 * abs(late) + 1e-12)
    assert run.message == "reached the end of the interval"


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("direction", [0, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_however_the_balls_are_written(trace, direction, reverse):
    f, events = two_balls(trace, direction)
    events = events[::-1] if reverse else events
    run = solve(f, (0, 3), [1.0, 1.0, -1.0, -1.0], events=events, dense_output=True)
    assert run.y[:, -1] == pytest.approx([2, 2, 1, 1], abs=1e-12)
    times = np.linspace(0, 3, 31)
    assert run.sol(times)[:2] == pytest.approx(np.abs(1 - np.array([times, times])), abs=1e-12)
    sampled = solve(f, (0, 3), [1.0, 1.0, -1.0, -1.0], events=events, t_eval=times)
    assert sampled.y[0] == pytest.approx(np.abs(1 - times), abs=1e-12)


def test_balls_going_back_in_time():
    f, events = two_balls(direction=-1)  # backwards, too, they fall to the floor
    run = solve(f, (0, -3), [1.0, 1.0 + 1e-10, 1.0, 1.0], events=events)
    assert run.y[:, -1] == pytest.approx([2, 2, -1, -1], abs=1e-9)


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-9, 1e-3])
@pytest.mark.parametrize("reverse", [False, True])
def test_newtons_cradle_passes_one_ball_on(gap, reverse):
    """Resets of neighbours make events due which were at rest on their surfaces."""
    n = 5

    def swap(k):
        def reset(t, y):
            y[n + k], y[n + k + 1] = y[n + k + 1], y[n + k]
            return y

        return reset

    def f(t, y):
        return np.concatenate([y[n:], np.zeros(n)])

    touching = [
        Event(lambda t, y, k=k: y[k + 1] - y[k] - 1, direction=-1, reset=swap(k))
        for k in range(n - 1)
    ]
    x = np.array([-1.0, 1.0, 2.0 + gap, 3.0 + 2 * gap, 4.0 + 3 * gap])
    events = touching[::-1] if reverse else touching
    run = solve(f, (0, 3), [*x, 1, 0, 0, 0, 0], events=events)
    assert run.success
    assert run.y[n:, -1].tolist() == [0, 0, 0, 0, 1]
    assert [len(t) for t in run.t_events] == [1, 1, 1, 1]
    assert run.y[4, -1] == pytest.approx(6.0, abs=4 * gap + 1e-12)


@pytest.mark.parametrize("e", [1.0, 0.5])
def test_a_level_rod_does_not_depend_on_a_tilt_of_rounding(e):
    """Both ends hit; the impulse at one end changes the speed of the other."""
    J = 0.2  # mass 1, half length 1

    def hit(side):
        def reset(t, y):
            impulse = -(1 + e) * (y[2] + side * y[3]) / (1 + 1 / J)
            return [y[0], y[1], y[2] + impulse, y[3] + side * impulse / J]

        return reset

    ends = [
        Event(lambda t, y, s=s: y[0] + s * np.sin(y[1]), direction=-1, reset=hit(s))
        for s in (-1, 1)
    ]
    finals = []
    for tilt in (0.0, 1e-9, -1e-9):
        run = solve(
            lambda t, y: np.array([y[2], y[3], -GRAVITY, 0.0]),
            (0, 0.6),
            [1, tilt, 0, 0],
            events=ends,
        )
        assert run.success
        finals.append(run.y[:, -1])
    assert np.ptp(finals, axis=0) == pytest.approx(0, abs=1e-7)
    if e == 1.0:
        x, _, v, w = finals[0]
        assert v**2 / 2 + J * w**2 / 2 + GRAVITY * x == pytest.approx(GRAVITY, rel=1e-6)


def test_a_cascade_of_thresholds():
    """The reset of one neuron lifts the next across its threshold; that one fires as well."""
    n, kick = 4, 0.3

    def fire(k):
        def reset(t, y):
            y[k] = 0.0
            if k + 1 < n:
                y[k + 1] += kick
            return y

        return reset

    events = [Event(lambda t, y, k=k: y[k] - 1, direction=1, reset=fire(k)) for k in range(n)]
    run = solve(lambda t, y: np.ones(n), (0, 0.55), [0.5, 0.3, 0.4, 0.1], events=events)
    # At t = 0.5 neuron 0 fires: 0.8 + 0.3, 0.9 + 0.3 pass 1, and 0.6 + 0.3 does not.
    assert [len(t) for t in run.t_events] == [1, 1, 1, 0]
    assert run.y[:, -1] == pytest.approx([0.05, 0.05, 0.05, 0.95], abs=1e-12)


def test_a_terminal_event_ends_the_run_after_the_resets_of_its_instant():
    f, (first, second) = two_balls()
    end = Event(lambda t, y: y[0] + y[1], terminal=True, name="both down")
    for events in ([end, first, second], [first, end, second], [first, second, end]):
        run = solve(f, (0, 3), [1.0, 1.0, -1.0, -1.0], events=events, dense_output=True)
        assert run.status == Status.EVENT
        assert "'both down' at t = 1" in run.message
        assert run.t[-1] == run.sol.t_max == pytest.approx(1.0, abs=1e-14)
        assert run.y[:, -1] == pytest.approx([0, 0, 1, 1], abs=1e-14)
        assert run.y[2:, -2] == pytest.approx([-1, -1], abs=1e-14)


def test_a_guard_just_behind_a_surface_does_not_end_the_run():
    guard = Event(lambda t, y: y[0] + 1e-9, terminal=True, direction=-1)
    for events in ([guard, floor(1.0)], [floor(1.0), guard]):
        run = solve(lambda t, y: np.array([y[1], 0.0]), (0, 3), [1.0, -1.0], events=events)
        assert run.status == Status.FINISHED
        assert run.y[:, -1] == pytest.approx([2, 1], abs=1e-12)


def test_events_that_are_only_recorded_are_recorded_once():
    watch = Event(lambda t, y: y[1] - 2 * y[0])  # zero where both balls land, and passes through
    f, events = two_balls()
    for order in ([watch, *events], [*events, watch]):
        run = solve(f, (0, 3), [1.0, 2.0, -1.0, -2.0], events=order)
        assert sorted(len(t) for t in run.t_events) == [0, 1, 1]  # g = 0 throughout is no zero
    skew = Event(lambda t, y: y[1] - y[0])
    run = solve(f, (0, 3), [1.0, 2.0, -1.0, -2.0], events=[skew, *events])
    assert [len(t) for t in run.t_events] == [1, 1, 1]


def test_resets_that_undo_each_other_come_to_an_end():
    """A ball between two plates that leave it no room."""
    plates = [
        Event(lambda t, y, s=s: s * y[0], direction=-1, reset=lambda t, y: [0.0, -y[1]], name=name)
        for s, name in ((1, "floor"), (-1, "lid"))
    ]
    run = solve(lambda t, y: np.array([y[1], 0.0]), (0, 2), [0.0, -1.0], events=plates)
    assert run.status == Status.ZENO
    assert "do not come to an end" in run.message
    assert "'floor', 'lid'" in run.message
    assert run.t[-1] == 0.0


def test_an_event_that_is_reached_from_beyond_does_not_happen_at_a_bounce():
    lift_off = Event(lambda t, y: y[0], direction=1, reset=lambda t, y: [0.0, -y[1]])
    for events in ([floor(1.0), lift_off], [lift_off, floor(1.0)]):
        run = solve(lambda t, y: np.array([y[1], 0.0]), (0, 2), [1.0, -1.0], events=events)
        assert run.success
        assert run.y[:, -1] == pytest.approx([1, 1], abs=1e-12)
        assert sorted(len(t) for t in run.t_events) == [0, 1]


# ---------------------------------------------------------------- landing on the surface


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("direction", [0, -1])
@pytest.mark.parametrize("trace", [False, True])
def test_a_ball_without_bounce_does_not_fall_through_the_floor(method, direction, trace):
    f, event = fall, floor(0.0, direction)
    if trace:
        height = traced(event.function, n=2, outputs=1)
        f, event = traced(fall, n=2), Event(height, direction, reset=event.reset, name="floor")
    run = solve(f, (0, 2), [1.0, 0.0], events=event, dense_output=True, **options(method))
    assert run.success
    assert "event 'floor' held the state on its surface from t = 0.4515" in run.message
    assert [stay.mode for stay in run.modes] == ["free", "on 'floor'"]
    assert run.modes[1].start == pytest.approx(np.sqrt(2 / GRAVITY), abs=1e-6)
    assert run.t_events[0] == pytest.approx([np.sqrt(2 / GRAVITY)], abs=1e-6)
    assert run.t[-1] == 2.0
    assert run.y[:, -1] == pytest.approx([0, 0], abs=0)
    assert run.sol([0.3, 0.46, 1.5])[0] == pytest.approx([1 - GRAVITY * 0.045, 0, 0], abs=1e-5)


@pytest.mark.parametrize("e", [1e-4, 1e-6, 1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("y0", [[1.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
@pytest.mark.parametrize("trace", [False, True])
def test_hops_too_short_to_see_do_not_lead_through_the_floor(e, y0, trace):
    f, event = fall, floor(e)
    if trace:
        height = traced(event.function, n=2, outputs=1)
        f, event = traced(fall, n=2), Event(height, -1, reset=event.reset)
    run = solve(f, (0, 1), y0, events=event)
    assert run.status in (Status.FINISHED, Status.ZENO)
    landed = np.sqrt(2 / GRAVITY) if y0[0] else (y0[1] > 0) * 2 / GRAVITY
    speed = abs(y0[1]) if y0[1] else GRAVITY * landed
    rests = run.modes[1].start if run.success else run.t[-1]
    assert rests == pytest.approx(landed + 2 * e * speed / GRAVITY / (1 - e), abs=1e-7)
    assert np.min(run.y[0]) > -1e-9


def test_a_start_on_the_surface():
    into = solve(lambda t, y: np.array([y[1], 0.0]), (0, 2), [0.0, -1.0], events=floor(0.5))
    assert into.t_events[0].tolist() == [0.0]
    assert into.y[:, -1] == pytest.approx([1.0, 0.5], abs=1e-14)
    away = solve(lambda t, y: np.array([y[1], 0.0]), (0, 2), [0.0, 1.0], events=floor(0.5))
    assert away.t_events[0].size == 0
    assert away.y[:, -1] == pytest.approx([2.0, 1.0], abs=1e-14)
    rest = solve(fall, (0, 2), [0.0, 0.0], events=floor(0.5))
    assert rest.success
    np.testing.assert_allclose(rest.y, 0.0, atol=1e-20)
    down = solve(fall, (0, 2), [0.0, -1.0], events=floor(0.0))  # into the surface
    assert down.success
    assert down.t_events[0].tolist() == [0.0]
    assert down.y[:, -1].tolist() == [0.0, 0.0]
    still = solve(lambda t, y: np.zeros(2), (0, 2), [0.0, 0.0], events=floor(0.5))
    assert still.status == Status.FINISHED


def test_a_start_beside_the_surface_by_rounding():
    length = np.hypot(0.3, 0.1)
    g = lambda t, y: np.hypot(y[0], 0.1) - length * (1 - 1e-16)  # noqa: E731
    for sign in (1, -1):
        event = Event(g, direction=1, reset=lambda t, y: [y[0], -y[1]])
        run = solve(lambda t, y: np.array([y[1], 0.0]), (0, 0.1), [sign * 0.3, sign], events=event)
        assert run.y[0, -1] == pytest.approx(sign * 0.2)


def test_a_start_on_the_surface_of_an_event_without_direction_is_told():
    run = solve(fall, (0, 1), [0.0, 0.0], events=floor(0.5, direction=0))
    assert run.success
    assert "starts on the surface of event 'floor'" in run.message
    assert "g < 0" in run.message


def test_events_without_reset_are_not_met_again_where_they_ended_a_run():
    end = Event(lambda t, y: y[0], direction=-1, terminal=True)
    first = solve(fall, (0, 2), [1.0, 0.0], events=end)
    again = solve(fall, (first.t[-1], 2), first.y[:, -1], events=end)
    assert again.status == Status.FINISHED


def test_a_start_on_the_surface_backwards_in_time():
    event = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -y[1]])
    run = solve(lambda t, y: np.array([y[1], 0.0]), (0, -2), [0.0, 1.0], events=event)
    assert run.y[:, -1] == pytest.approx([2.0, -1.0], abs=1e-14)


# ---------------------------------------------------------------- going through


def test_a_reset_about_something_else_lets_the_motion_through():
    kick = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [*y[:2], y[2] + 1])
    run = solve(lambda t, y: np.array([y[1], 0.0, 0.0]), (0, 3), [1.0, -1.0, 0.0], events=kick)
    assert run.y[:, -1] == pytest.approx([-2, -1, 1], abs=1e-12)
    assert len(run.t_events[0]) == 1
    assert run.message == "reached the end of the interval"


@pytest.mark.parametrize("late", [0.0, 1e-9, 1e-12])
def test_two_kicks_at_one_instant_happen_once_each(late):
    kicks = [
        Event(lambda t, y, k=k: y[k], direction=-1, reset=lambda t, y, k=k: [*y[:2], y[2] + 1 + k])
        for k in range(2)
    ]
    run = solve(lambda t, y: np.array([-1.0, -1.0, 0.0]), (0, 3), [1.0, 1 + late, 0], events=kicks)
    assert run.y[2, -1] == 3.0
    assert [len(t) for t in run.t_events] == [1, 1]


def test_going_through_with_another_speed_is_told():
    paper = Event(
        lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, 0.5 * y[1]], name="paper"
    )
    run = solve(lambda t, y: np.array([y[1], 0.0]), (0, 3), [1.0, -1.0], events=paper)
    assert run.success
    assert run.y[:, -1] == pytest.approx([-1.0, -0.5], abs=1e-12)
    assert "went on through the surface of event 'paper' after its reset at t = 1" in run.message


# ---------------------------------------------------------------- where y' is not f


def test_a_regular_mass_matrix_is_taken_into_account():
    for mass in (np.diag([-2.0, 3.0]), scipy.sparse.diags_array([-2.0, 3.0])):
        # −2 x' = −2 v: without the matrix the ball would seem to move the other way.
        problem = IVP(lambda t, y: np.array([-2 * y[1], 0.0]), [0.0, -1.0], (0, 2), mass=mass)
        run = solve(problem, events=floor(0.5), method="RADAU5")
        assert run.y[:, -1] == pytest.approx([1.0, 0.5], abs=1e-9)


def test_with_a_singular_mass_matrix_events_of_one_instant_happen_once_each():
    def f(t, y):
        return np.array([y[2], y[3], 0.0, 0.0, y[4] - y[0]])

    _, events = two_balls()
    events = [
        Event(e.function, -1, reset=lambda t, y, r=e.reset: [*r(t, y[:4]), y[0]]) for e in events
    ]
    mass = np.diag([1.0, 1, 1, 1, 0])
    problem = IVP(f, [1.0, 1, -1, -1, 1], (0, 3), mass=mass)
    run = solve(problem, events=events, method="RADAU5")
    assert run.y[:, -1] == pytest.approx([2, 2, 1, 1, 2], abs=1e-9)


def test_a_reset_without_return_says_so():
    def forgotten(t, y):
        y[1] = -y[1]

    run = solve(fall, (0, 2), [1.0, 0.0], events=Event(lambda t, y: y[0], reset=forgotten))
    assert run.status == Status.FUNCTION_RAISED
    assert "returned None" in str(run.exception)
    assert "is a return statement missing?" in run.message


def test_a_landing_that_holds_is_recorded_once():
    land = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, 0.0])
    run = solve(lambda t, y: np.array([y[1], -9.81]), (0, 2), [1.0, 0.0], events=land, rtol=1e-9)
    assert run.success
    np.testing.assert_allclose(run.t_events[0], [np.sqrt(2 / 9.81)], rtol=1e-9)
    assert run.y_events[0][0][1] < -4.0  # as it lands, not as it lies


@pytest.mark.parametrize("forward", [1.0, -1.0])
def test_looking_ahead_follows_the_motion(forward):
    """Classical Runge–Kutta steps that double: y' = y (1 + t), seen by the event."""
    exact = lambda t: np.exp(t + t * t / 2)  # noqa: E731
    seen = []

    def value(k, t, y):
        seen.append((t, y[0]))
        return y[0] - 1.0

    motion = SimpleNamespace(
        forward=forward, length=100.0, tracker=SimpleNamespace(value=value),
        slope=lambda t, y: forward * y * (1 + t), _difference=lambda y, slope: 0.016,
    )  # fmt: skip
    sign, t = Motion.ahead(motion, 0, 0.0, np.array([1.0]), beyond=0.1)
    assert (sign, t) == (forward, seen[-1][0])
    np.testing.assert_allclose([t for t, _ in seen], forward * 1e-3 * (2.0 ** np.arange(1, 8) - 1))
    np.testing.assert_allclose(
        [y for _, y in seen], [exact(t) for t, _ in seen], rtol=1e-7
    )  # h⁵ = 1e-9


def test_what_a_reset_carries_across_happens_once():
    """Thrown far beyond its surface, and left there by its own reset, it is not on the surface."""
    throw = Event(lambda t, y: 1.0 - y[0], -1, reset=lambda t, y: [y[0] - 1.0, -1.5])
    shrink = Event(lambda t, y: y[1], -1, reset=lambda t, y: [y[0], 0.9 * y[1]])
    problem = IVP(lambda t, y: [1.0, 1.0], [0.0, -0.3], (0.0, 1.7), events=[throw, shrink])
    run = solve(problem, method="DOPRI5")
    assert run.success
    assert [times.tolist() for times in run.t_events] == [[pytest.approx(1.0)]] * 2
    np.testing.assert_allclose(run.y[:, -1], [0.7, 0.9 * -1.5 + 0.7], atol=1e-12)


# ---------------------------------------------------------------- on the surface


def test_what_is_held_leaves_where_the_motion_leads_off():
    """A weight that turns round: the body rests to t = π/2, exactly, then rises."""
    run = solve(
        lambda t, y: np.array([y[1], -np.cos(t)]),
        (0, 3),
        [0.0, -0.1],
        events=floor(0.0),
        rtol=1e-10,
        atol=1e-12,
    )
    assert [stay.mode for stay in run.modes] == ["free", "on 'floor'", "free"]
    assert run.modes[2].start == pytest.approx(np.pi / 2, abs=2e-6)
    exact = [np.cos(3) + 3 - np.pi / 2, 1 - np.sin(3)]
    assert run.y[:, -1] == pytest.approx(exact, abs=1e-9)


def slide(t, y, p):
    return np.array([y[2], y[3], -p[0] * y[2], -GRAVITY])


def pushed(t, y, p):
    return np.array([y[2], y[3], 1.0, -GRAVITY])


TABLE = Event(lambda t, y, p: y[1], -1, reset=lambda t, y, p: [y[0], 0.0, y[2], 0.0], name="table")
WALL = Event(lambda t, y, p: 1.5 - y[0], -1, reset=lambda t, y, p: [1.5, y[1], 0.0, y[3]])


def test_what_is_held_moves_along_the_surface(tmp_path):
    """With drag; t_eval, many runs, files, a second surface that holds it, too."""
    problem = IVP(slide, [0.0, 1.0, 1.0, 0.0], (0, 2), [0.1], events=TABLE)
    run = solve(problem, rtol=1e-9, atol=1e-12, t_eval=[0.3, 1.0, 2.0], dense_output=True)
    assert run.success
    x = (1 - np.exp(-0.1 * run.t)) / 0.1
    np.testing.assert_allclose(run.y[0], x, rtol=1e-8)
    np.testing.assert_array_equal(run.y[1, 1:], 0.0)
    many = solve_many(problem, params=[[0.1], [0.2]], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(many.y[0], run.y[:, -1], rtol=1e-9)
    assert (many.status == Status.FINISHED).all()
    run.save(tmp_path / "run.npz")
    kept = Solution.load(tmp_path / "run.npz")
    assert kept.mode(1.0) == "on 'table'"
    np.testing.assert_array_equal(kept.sol(1.7), run.sol(1.7))
    both = solve(problem.with_(f=pushed, events=[TABLE, WALL]), rtol=1e-9, atol=1e-12)
    assert both.success, both.message
    assert both.modes[-1].mode == "on 'table', 1"
    assert both.y[:, -1] == pytest.approx([1.5, 0, 0, 0], abs=1e-12)
    assert both.modes[-1].start == pytest.approx(1.0, abs=1e-8)  # 1.5 = t + t²/2


def test_backwards_in_time_what_is_held_ends_the_run():
    stop = Event(lambda t, y: y[0], reset=lambda t, y: [0.0, 0.0], name="floor")
    run = solve(fall, (1, 0), [0.5, 1.0], events=stop)
    assert run.status == Status.HELD
    assert "'floor' holds the state on its surface at t = 0.7667" in run.message
    assert "backwards in time its motion is not unique" in run.message


def test_modes_of_a_hybrid_hold_states_until_a_transition():
    """The table drops away at t = 1.5: it slides to there, and falls again."""
    problem = IVP(slide, [0.0, 1.0, 1.0, 0.0], (0, 2), [0.1], events=TABLE)
    away = Transition(lambda t, y, p: t - 1.5, +1, to="fall")
    hybrid = Hybrid({"above": Mode(problem, away), "fall": problem.with_(events=())}, "above")
    run = solve(hybrid, rtol=1e-10, atol=1e-12, dense_output=True)
    assert run.success, run.message
    assert [stay.mode for stay in run.modes] == ["above", "fall"]
    assert run.modes[1].start == pytest.approx(1.5, abs=1e-12)
    x = (1 - np.exp(-0.1 * 2)) / 0.1
    np.testing.assert_allclose(run.y[:2, -1], [x, -GRAVITY / 8], rtol=1e-8)
    assert run.sol(1.2)[1] == 0.0
    assert "in mode 'above' the state was held on 'table' from t = 0.4515" in run.message


def test_sensitivities_of_what_is_held_end_there_with_a_way_to_them():
    problem = IVP(slide, [0.0, 1.0, 1.0, 0.0], (0, 2), [0.1], events=TABLE)
    run = solve(problem, rtol=1e-9, sensitivities=["p[0]", "y0[1]"])
    assert run.status == Status.HELD
    assert run.t[-1] == pytest.approx(np.sqrt(2 / GRAVITY), abs=1e-9)
    assert "take differences of runs" in run.message
    later = run.event_sensitivities[0]["y0[1]"][0]  # the time of landing, by the height
    assert later == pytest.approx(1 / np.sqrt(2 * GRAVITY), rel=1e-8)


def test_a_reset_that_raises_is_told_with_the_time_of_its_event():
    def reset(t, y):
        raise KeyError("no such wall")

    run = solve(fall, (0, 2), [1.0, 0.0], events=Event(lambda t, y: y[0], -1, reset=reset))
    assert run.status == Status.FUNCTION_RAISED
    assert "in event number 0 at t = 0.4515" in run.message
