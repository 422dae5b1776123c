"""A run gives the same answer alone, among many and in any partition, whatever was asked for."""

import logging

import numpy as np
import pytest

from integrators import IVP, PI, Event, Status, solve, solve_many, traced
from integrators.tracing import Traced
from multibody import as_ivp, mechanisms

RATE = traced(lambda t, y, p: [y[1], -p[0] * np.sin(y[0]) - 0.1 * y[1] * t], n=2, params=1)
HEIGHT = traced(lambda t, y, p: y[0] - 0.3, n=2, params=1, outputs=1)

EVENTS = {
    "none": None,
    "counted": Event(HEIGHT, direction=-1),
    "python": Event(lambda t, y: y[0] - 0.3, direction=1),
    "terminal": Event(HEIGHT, terminal=2),
    "first": Event(HEIGHT, terminal=True, direction=1, name="rising"),
    "bounce": Event(
        traced(lambda t, y, p: y[0] + 0.2, n=2, params=1, outputs=1),
        direction=-1,
        reset=traced(lambda t, y: np.array([y[0], -0.8 * y[1]]), n=2),
    ),
    "reset": Event(lambda t, y: y[0] + 0.2, direction=-1, reset=lambda t, y: [y[0], -0.8 * y[1]]),
}


def on_circle(t, y):
    return y / max(1.0, float(np.hypot(*y)))


@traced(n=2)
def on_circle_traced(t, y):
    return y / np.maximum(1.0, np.sqrt(y[0] * y[0] + y[1] * y[1]))


def combination(seed):
    """A problem and options, drawn at random from all that there are."""
    rng = np.random.default_rng(seed)
    pick = lambda *choices: choices[rng.integers(len(choices))]  # noqa: E731
    name = pick(*EVENTS)
    options = {
        "method": pick("DOPRI5", "DOP853", "Tsit5", "BS23", "RADAU5", "RadauIIA2", "RK4"),
        "rtol": pick(1e-5, 1e-7),
        "t_eval": pick(None, [0.0, 0.7, 2.0, 3.0], [1.1]),
        "norm": pick("rms", "max"),
        "max_step": pick(np.inf, 0.2),
        "controller": pick(None, None, PI()),
        "tstops": pick((), (), [0.5, 1.25]),
        "max_steps": pick(None, None, 12),
    }
    if options["method"] == "RK4" or rng.random() < 0.2:
        options |= {"step": 0.05, "controller": None}
    ivp = IVP(
        RATE,
        [1.0, 0.0],
        pick((0.0, 3.0), (0.0, 3.0), (3.0, 0.0)),
        params=[1.0],
        project=pick(None, None, None, on_circle, on_circle_traced),
    )
    if ivp.t_span[0] == 3.0 and options["t_eval"] is not None:
        options["t_eval"] = options["t_eval"][::-1]
    return name, ivp, options


@pytest.mark.parametrize("seed", range(60))
def test_a_run_is_the_same_alone_among_many_and_in_any_partition(seed):
    name, ivp, options = combination(seed)
    events = EVENTS[name]
    rng = np.random.default_rng(1000 + seed)
    y0, params = rng.uniform(-1, 1, (11, 2)), rng.uniform(0.5, 3.0, (11, 1))
    many = solve_many(ivp, y0=y0, params=params, events=events, **options)
    reset = events is not None and events.reset is not None
    reset = reset and not (isinstance(events.reset, Traced) and "step" not in options)
    python = events is not None and not isinstance(events.function, Traced)
    python = python or ivp.project is on_circle
    implicit = options["method"].startswith("R") and options["method"] != "RK4"
    if reset or python or options["tstops"] != () or (implicit and "step" in options):
        assert many.engine.startswith("one by one")
        assert ": " in many.engine
    else:
        assert "lanes" in many.engine
    in_lanes = "lanes" in many.engine.partition(":")[0]
    order = rng.permutation(11)
    parts = [
        solve_many(ivp, y0=y0[k], params=params[k], events=events, **options, workers=1)
        for k in (order[:3], order[3:])
    ]
    for name in ("t", "y", "status", "nsteps", "nrejected", "message", "y_eval"):
        mixed = np.concatenate([getattr(part, name) for part in parts])
        whole = getattr(many, name)[order]
        assert np.array_equal(mixed, whole, equal_nan=name == "y_eval"), name
    for k in range(11):
        run = ivp.with_(y0=y0[k], params=params[k])
        alone = solve(run, events=events, **options)
        assert Status(int(many.status[k])) == alone.status
        t, y = alone.reached
        if in_lanes and (implicit or ivp.project is not None):  # times are compared below
            assert many.message[k].partition(" t =")[0] == alone.ending.partition(" t =")[0]
            if (
                implicit and alone.status == Status.TOO_MANY_STEPS
            ):  # where depends on the lengths of the steps
                assert abs(many.t[k] - t) < 0.1 * abs(t - ivp.t_span[0])
                continue
        else:
            assert many.message[k] == alone.ending
        allowed = 1e-12 if in_lanes else 0.0
        if in_lanes and implicit:  # Jacobians of other times, so other iterations and lengths
            # A clipping projection acts where steps end: what it does depends on their lengths.
            allowed = 100 * options["rtol"] if ivp.project is None else 1e-2
            assert abs(many.nsteps[k] - alone.nsteps) <= 2 + alone.nsteps // 10
        else:
            assert (many.nsteps[k], many.nrejected[k]) == (alone.nsteps, alone.nrejected)
        if in_lanes and not implicit and ivp.project is not None:
            allowed = 1e-8  # where steps end depends on rounding, and the projection on that
        speeds = [abs(y[1]) for found in alone.y_events for y in found]  # ġ of these events is y[1]
        grazing = allowed / min([1.0, *speeds])  # what that means for the time of an event
        assert abs(many.t[k] - t) <= grazing
        assert np.abs(many.y[k] - y).max() <= 10 * grazing
        if options["t_eval"] is not None:
            got = many.y_eval[k]
            assert np.isnan(got[:, alone.t.size :]).all()
            assert np.abs(got[:, : alone.t.size] - alone.y).max(initial=0.0) <= allowed
        assert len(many.t_events[k]) == len(alone.t_events)
        for ours, theirs in zip(many.t_events[k], alone.t_events):
            assert len(ours) == len(theirs)
            assert np.abs(ours - theirs).max(initial=0.0) <= 10 * grazing
        for ours, theirs in zip(many.y_events[k], alone.y_events):
            assert np.shape(ours) == np.shape(theirs)
            assert np.abs(ours - theirs).max(initial=0.0) <= 100 * grazing


def test_neighbours_in_lanes_do_not_change_a_run():
    """Where one lane needs the C library's functions, the others keep theirs."""
    f = traced(lambda t, y, p: [np.cos(p[0] * y[1]) * y[0], 1.0 + 0 * t], n=2, params=1)
    usual = np.linspace(0.5, 2.0, 7)[:, None]
    huge = np.vstack([usual, [[1e9]]])  # the argument of cos is beyond what vector code reduces
    options = {"t_span": (0.0, 1e-3), "y0": [1.0, 1.0], "max_step": 1e-4, "rtol": 1e-10}
    alone = solve_many(f, params=usual, **options)
    beside = solve_many(f, params=huge, **options)
    assert "lanes" in beside.engine
    assert np.array_equal(alone.y, beside.y[:7])


def test_runs_that_leave_the_lanes_say_so_in_the_log(caplog):
    with caplog.at_level(logging.INFO, logger="integrators.many"):
        many = solve_many(RATE, (0, 1), [[1.0, 0.0]], params=[1.0], tstops=[0.3])
    assert many.engine.endswith("there are times to step on")
    assert "one by one: there are times to step on" in caplog.text


# -------------------------------------------------------------------- the problem's review


def test_runs_through_singular_positions_are_reviewed_in_lanes():
    """All rods of an n-four-bar in a line: ``solve`` rejects the run, and so do lanes."""
    entry = mechanisms.entry("n_four_bar")
    model = entry.model()
    q0, v0 = entry.start(model)
    problem = as_ivp(model, q0, v0, (0, 4))
    states = np.concatenate([np.tile(problem.y0, (3, 1)), [[*q0, *(0.2 * v0)]]])
    many = solve_many(problem, y0=states, method="DOP853", rtol=1e-10)
    assert "lanes" in many.engine
    assert "alone, after a review" in many.engine
    for k in (0, 3):
        alone = solve(problem.with_(y0=states[k]), method="DOP853", rtol=1e-10)
        assert Status(int(many.status[k])) == alone.status
        assert many.message[k] == alone.ending
        assert np.array_equal(many.y[k], alone.y[:, -1])
    assert many.status[0] == Status.SINGULAR_MATRIX
    assert "lost rank" in many.message[0]


def test_a_review_of_ones_own_sees_every_step_of_every_lane():
    seen = []

    def review(problem, t, y, rtol):
        seen.append((tuple(problem.params), t.copy(), y.copy(), rtol))
        return (Status.STOPPED, "too fast") if np.abs(y[1]).max() > 1.5 else None

    ivp = IVP(RATE, [1.0, 0.0], (0.0, 3.0), params=[1.0], review=review)
    params = np.linspace(0.5, 4.0, 21)[:, None]
    many = solve_many(ivp, params=params, rtol=1e-7)
    fast = np.array([p > 3.0 for p in params[:, 0]])
    assert 0 < np.count_nonzero(many.status == Status.STOPPED) < 21
    assert many.status[fast].max() == many.status[fast].min() == Status.STOPPED
    lanes = {key: (t, y, rtol) for key, t, y, rtol in seen}
    for p in params:
        alone = solve(ivp.with_(params=p, review=None), method="DOPRI5", rtol=1e-7)
        t, y, rtol = lanes[tuple(p)]
        assert rtol == 1e-7
        assert np.allclose(t, alone.t, atol=1e-12)
        assert np.allclose(y, alone.y, atol=1e-12)


def test_a_review_that_raises_fails_its_run_only():
    def review(problem, t, y, rtol):
        if problem.params[0] == 2.0:
            raise RuntimeError("no idea")

    ivp = IVP(RATE, [1.0, 0.0], (0.0, 1.0), params=[1.0], review=review)
    many = solve_many(ivp, params=[[1.0], [2.0], [3.0]])
    assert many.failures() == {1: Status.FUNCTION_RAISED}
    assert "its review raised RuntimeError('no idea')" in many.message[1]


def test_quaternions_are_renormalised_as_in_a_single_run():
    model = mechanisms.satellite()
    entry = mechanisms.entry("satellite")
    q0, v0 = entry.start(model)
    problem = as_ivp(model, q0, v0, (0.0, 1.0))
    assert problem.project is not None
    states = np.tile(problem.y0, (2, 1))
    states[1, model.nq :] *= 0.5
    many = solve_many(problem, y0=states, rtol=1e-5)
    assert many.engine.startswith("8 lanes")
    for k in range(2):
        alone = solve(problem.with_(y0=states[k]), method="DOPRI5", rtol=1e-5)
        assert many.nsteps[k] == alone.nsteps
        assert np.abs(many.y[k] - alone.y[:, -1]).max() < 1e-12


@pytest.mark.parametrize("method", ["DOPRI5", "RK4", "Taylor", "RADAU5"])
def test_a_mass_matrix_is_divided_by_once(method):
    f = traced(lambda t, y: np.array([-y[0], -y[1]]))
    problem = IVP(f, [1.0, 1.0], (0, 1), mass=np.diag([2.0, 1.0]))
    options = {"step": 0.01} if method == "RK4" else {"rtol": 1e-9}
    many = solve_many(problem, None, [[1.0, 1.0]] * 2, method=method, **options)
    np.testing.assert_allclose(many.y, [[np.exp(-0.5), np.exp(-1.0)]] * 2, atol=1e-7)


def test_output_times_may_be_a_view():
    times = np.linspace(0, 1, 9)
    many = solve_many(lambda t, y: -y, (1, 0), [[1.0]] * 2, t_eval=times[::-2], rtol=1e-9)
    np.testing.assert_allclose(many.y_eval[0, 0], np.exp(1 - times[::-2]), atol=1e-7)


def test_what_solve_remarks_is_remarked_in_lanes_too():
    """Runs that grow beyond measure, and one whose digits are lost, beside a good one."""
    rates = np.array([[1.0], [100.0], [0.0]])
    starts = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1e17]])
    f = traced(lambda t, y, p: [p[0] * y[0], 5.0], n=2, params=1)
    many = solve_many(f, (0, 1), starts, params=rates, max_step=0.1)
    assert "lanes" in many.engine
    alone = [solve(f, (0, 1), y0, params=p, max_step=0.1) for y0, p in zip(starts, rates)]
    assert list(many.message) == [run.ending for run in alone]
    assert many.message[0] == "reached the end of the interval"
    assert "it blew up" in many.message[1]
    assert "digits are lost" in many.message[2]


def test_a_stage_of_dense_output_outside_the_domain():
    """y' = √y from next to nothing: stages that only output needs leave the domain of f."""
    times = [0.0, 0.1, 0.5, 2.0]
    many = solve_many(
        lambda t, y: np.sqrt(y), (0, 2), [[1e-300], [2.0]], method="DOP853", t_eval=times
    )
    assert "lanes" in many.engine
    assert many.success.all()
    assert np.isfinite(many.y_eval).all()
    assert many.y_eval[:, 0, 0].tolist() == [1e-300, 2.0]
    exact = (np.sqrt(2.0) + np.array(times) / 2) ** 2
    assert many.y_eval[1, 0] == pytest.approx(exact, rel=1e-5)
