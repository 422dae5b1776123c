"""Forward sensitivities against closed forms and against differences of high order."""

import numpy as np
import pytest

from integrators import (
    IVP,
    Event,
    IntegrationError,
    TracingError,
    solve,
    solve_many,
    traced,
    where,
)
from multibody import ModelFamily, as_ivp, mechanisms

TIGHT = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
CLOSE = 1e-8


def by_differences(function, x, h=1e-3):
    """Derivative by central differences of sixth order."""
    values = [np.asarray(function(x + j * h)) for j in (-3, -2, -1, 1, 2, 3)]
    weights = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / (60 * h)
    return sum(w * v for w, v in zip(weights, values))


SWING = traced(lambda t, y, p: [y[1], -p[0] * np.sin(y[0]) - p[1] * y[1]], n=2, params=2)
PROBLEM = IVP(SWING, [1.0, 0.3], (0.0, 2.0), params=[4.0, 0.2], state_names=("angle", "rate"))


@pytest.mark.parametrize("method", ["DOP853", "Tsit5", "RADAU5", "SDIRK4"])
def test_linear_problem_in_closed_form(method):
    decay = IVP(lambda t, y, p: -p[0] * y, [2.0], (0.0, 1.5), params=[0.8])
    run = solve(decay, method=method, rtol=1e-10, atol=1e-12, sensitivities=["p[0]", "y0[0]"])
    assert run.y.shape == (1, run.t.size)
    by_p, by_y0 = run.sensitivities["p[0]"][0], run.sensitivities["y0[0]"][0]
    assert np.abs(by_p + run.t * 2.0 * np.exp(-0.8 * run.t)).max() < CLOSE
    assert np.abs(by_y0 - np.exp(-0.8 * run.t)).max() < CLOSE


def test_parameters_and_initial_values_against_differences():
    names = ["p[0]", "p[1]", "y0[1]", "angle"]
    run = solve(PROBLEM, sensitivities=names, t_eval=[1.0, 2.0], **TIGHT)

    def end(params, y0):
        return solve(PROBLEM.with_(params=params, y0=y0), t_eval=[1.0, 2.0], **TIGHT).y

    y0, p = PROBLEM.y0, PROBLEM.params
    expected = {
        "p[0]": by_differences(lambda x: end([x, p[1]], y0), p[0]),
        "p[1]": by_differences(lambda x: end([p[0], x], y0), p[1]),
        "y0[1]": by_differences(lambda x: end(p, [y0[0], x]), y0[1]),
        "angle": by_differences(lambda x: end(p, [x, y0[1]]), y0[0]),
    }
    for name in names:
        assert np.abs(run.sensitivities[name] - expected[name]).max() < CLOSE, name
    assert np.array_equal(run.final_sensitivities["p[0]"], run.sensitivities["p[0]"][:, -1])


def test_the_solution_itself_is_the_same_and_dense_output_is_there():
    run = solve(PROBLEM, sensitivities=["p[0]"], dense_output=True, **TIGHT)
    plain = solve(PROBLEM, **TIGHT)
    assert np.abs(run.y[:, -1] - plain.y[:, -1]).max() < 1e-10
    assert run.sol(1.0).shape == (2,)
    assert run.problem is PROBLEM


def test_through_a_bounce():
    """A ball that bounces: saltation; height and time of the bounce in closed form."""
    fall = traced(lambda t, y, p: [y[1], -p[0]], n=2, params=2)
    floor = Event(
        lambda t, y, p: y[0], direction=-1, reset=lambda t, y, p: [0.0 * y[0], -p[1] * y[1]]
    )
    ball = IVP(fall, [1.0, 0.0], (0.0, 1.2), params=[9.81, 0.8], events=floor)
    run = solve(ball, sensitivities=["p[0]", "p[1]", "y0[0]"], **TIGHT)
    assert len(run.t_events[0]) >= 2

    def end(g, e, h):
        start = ball.with_(params=[g, e], y0=[h, 0.0])
        found = solve(start, t_eval=[1.2], **TIGHT)
        return np.concatenate([found.y[:, -1], found.t_events[0][:2]])

    for name, function, x in (
        ("p[0]", lambda x: end(x, 0.8, 1.0), 9.81),
        ("p[1]", lambda x: end(9.81, x, 1.0), 0.8),
        ("y0[0]", lambda x: end(9.81, 0.8, x), 1.0),
    ):
        expected = by_differences(function, x, 1e-3)
        found = np.concatenate(
            [run.final_sensitivities[name], run.event_sensitivities[0][name][:2]]
        )
        assert np.abs(found - expected).max() < 1e-7, name


def test_through_a_projection():
    turn = traced(lambda t, y, p: [-p[0] * y[1], p[0] * y[0]], n=2, params=1)
    circle = traced(lambda t, y: y / np.sqrt(y[0] * y[0] + y[1] * y[1]), n=2)
    problem = IVP(turn, [1.0, 0.0], (0.0, 1.0), params=[1.3], project=circle)
    run = solve(problem, sensitivities=["p[0]"], **TIGHT)
    assert run.final_sensitivities["p[0]"] == pytest.approx([-np.sin(1.3), np.cos(1.3)], abs=CLOSE)


@pytest.mark.parametrize("stabilise", ["baumgarte", "projection"])
def test_closed_loops_with_a_start_that_moves_with_the_lengths(stabilise):
    family = ModelFamily("four_bar", ["crank", "density"])
    start = mechanisms.entry("four_bar").start(family.base)
    problem = family.problem(*start, (0.0, 0.4), stabilise=stabilise)
    options = {"positions": {"crank": 0.9}, "speeds": {"crank": 4.0}}
    guess = [0.9, -0.7, 0.8]

    def end(crank, density):
        run = solve(problem.at([crank, density], guess, **options), t_eval=[0.4], **TIGHT)
        return run.y[:, -1]

    here = problem.at({"crank": 1.05, "density": 1.2}, guess, **options)
    run = solve(here, sensitivities=["crank", "density"], **TIGHT)
    by_crank = by_differences(lambda x: end(x, 1.2), 1.05)
    by_density = by_differences(lambda x: end(1.05, x), 1.2)
    size = np.abs(by_crank).max()
    assert np.abs(run.final_sensitivities["crank"] - by_crank).max() < CLOSE * size
    assert np.abs(run.final_sensitivities["density"] - by_density).max() < CLOSE * size


def test_loops_that_would_open_with_a_parameter_are_told():
    """With the start as it is, a longer crank does not fit; derivatives were those of nothing."""
    family = ModelFamily("four_bar", ["crank", "density"])
    problem = family.problem(*mechanisms.entry("four_bar").start(family.base), (0.0, 0.1))
    with pytest.raises(ValueError, match=r"with crank the start .* problem\.at\("):
        solve(problem, sensitivities=["crank"], **TIGHT)
    assert solve(problem, sensitivities=["density"], **TIGHT).success  # the start fits as it is
    rows = np.array([[1.0, 1.0], [1.05, 1.2]])
    given = [0.9, -0.7, 0.8], {"positions": {"crank": 0.9}, "speeds": {"crank": 4.0}}
    found = family.starts(rows, given[0], **given[1])
    runs = {"y0": found.y0, "params": found.p, "sensitivities": ["crank"], **TIGHT}
    with pytest.raises(ValueError, match="solve_many"):
        solve_many(problem, **runs)
    many = solve_many(problem.at({}, given[0], **given[1]), **runs)
    for k, row in enumerate(rows):
        alone = solve(problem.at(row, given[0], **given[1]), sensitivities=["crank"], **TIGHT)
        assert (
            np.abs(many.sensitivities["crank"][k] - alone.final_sensitivities["crank"]).max()
            < CLOSE
        )


def test_forces_of_a_mechanism_by_their_parameters():
    model = mechanisms.pendulum()
    problem = as_ivp(
        model, [0.3], [0.0], (0.0, 1.0), lambda t, q, v, p: [-p[0] * v[0]], params=[0.5]
    )
    run = solve(problem, sensitivities=["p[0]"], **TIGHT)
    expected = by_differences(lambda c: solve(problem.with_(params=[c]), **TIGHT).y[:, -1], 0.5)
    assert np.abs(run.final_sensitivities["p[0]"] - expected).max() < CLOSE


@pytest.mark.parametrize("method", ["DOP853", "RADAU5"])
def test_many_runs_have_the_sensitivities_of_each(method):
    rows = np.array([[4.0, 0.2], [3.0, 0.1], [5.0, 0.4]])
    starts = np.array([[1.0, 0.3], [0.5, 0.0], [-0.4, 1.0]])
    options = {"method": method, "rtol": 1e-9, "atol": 1e-11, "t_eval": [1.0, 2.0]}
    names = ["p[0]", "rate"]
    many = solve_many(PROBLEM, y0=starts, params=rows, sensitivities=names, **options)
    assert many.engine.startswith("8 lanes")
    assert many.y.shape == (3, 2)
    allowed = 1e-10 if method == "DOP853" else 1e-8  # Jacobians of other times: other lengths
    for k in range(3):
        run = PROBLEM.with_(y0=starts[k], params=rows[k])
        alone = solve(run, sensitivities=names, **options)
        for name in names:
            both = many.sensitivities_eval[name][k], alone.sensitivities[name]
            assert np.abs(both[0] - both[1]).max() < allowed
            assert np.array_equal(many.sensitivities[name][k], both[0][:, -1])


def test_many_mechanisms_by_the_names_of_their_parameters():
    family = ModelFamily("pendulum", {"length": 1.0})
    problem = family.problem([1.0], [0.0], (0.0, 1.0))
    rows = family.parameters([[0.9], [1.2]])
    many = solve_many(problem, params=rows.p, sensitivities=["length"], **TIGHT)
    for k, length in enumerate((0.9, 1.2)):
        expected = by_differences(
            lambda x: solve(problem.with_values({"length": x}), **TIGHT).y[:, -1], length
        )
        assert np.abs(many.sensitivities["length"][k] - expected).max() < CLOSE


def test_what_cannot_be_differentiated_is_refused():
    with pytest.raises(ValueError, match="no parameter and no initial value"):
        solve(PROBLEM, sensitivities=["mass"])
    with pytest.raises(ValueError, match="different names"):
        solve(PROBLEM, sensitivities=[])
    with pytest.raises(TracingError):
        solve(lambda t, y, p: [float(y[0])], (0, 1), [1.0], params=[1.0], sensitivities=["p[0]"])
    mass = IVP(lambda t, y: -y, [1.0], (0, 1), mass=np.eye(1))
    with pytest.raises(ValueError, match="mass matrix"):
        solve(mass, sensitivities=["y0[0]"])


# ---------------------------------------------------------------------- jumps of f itself


def _two_speeds(t, y, p):
    return np.array([where(y[0] > 0.5, -1.0, -2.0) * p[0]])


def test_a_jump_of_f_is_not_passed_in_silence():
    """From y = 1 at speed p, then 2p below 0.5: dy/dy0 = 2 behind the jump, not 1."""
    f = traced(_two_speeds, n=1, params=1)
    names = ["p[0]", "y0[0]"]
    before = solve(f, (0, 0.4), [1.0], params=[1.0], sensitivities=names)
    assert before.sensitivities["y0[0]"][0, -1] == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"f jumps at about t = 0\.(49|50).*Event with a reset"):
        solve(f, (0, 0.7), [1.0], params=[1.0], sensitivities=names)
    many = solve_many(f, (0, 0.7), [[1.0], [2.0]], params=[[1.0], [1.0]], sensitivities=names)
    assert np.isnan(many.sensitivities["y0[0]"][0]).all()
    assert "f jumps" in many.message[0]
    assert many.sensitivities["y0[0]"][1] == pytest.approx(1.0)
    assert "jump" not in many.message[1]
    clock = traced(lambda t, y, p: np.array([where(t > p[0], 1.0, 0.0)]), n=1, params=1)
    with pytest.raises(ValueError, match=r"f jumps at about t = 0\.4"):
        solve(clock, (0, 1), [0.0], params=[0.4], sensitivities=["p[0]"])


def test_the_remedy_for_a_jump_of_f():
    def f(t, y, p):
        return np.array([where(y[1] > 0, -1.0, -2.0) * p[0], 0 * y[0]])

    slower = Event(
        lambda t, y, p: y[0] - 0.5, direction=-1, reset=lambda t, y, p: np.array([y[0], -1.0])
    )
    problem = IVP(traced(f, n=2, params=1), [1.0, 1.0], (0, 0.7), params=[1.0], events=[slower])
    for times in (None, [0.0, 0.3, 0.7]):
        sol = solve(problem, sensitivities=["p[0]", "y0[0]"], t_eval=times, rtol=1e-9, atol=1e-10)
        # y = 0.5 − 2p (t − (y0 − 0.5)/p)
        assert sol.sensitivities["y0[0]"][0, -1] == pytest.approx(2.0, abs=1e-7)
        assert sol.sensitivities["p[0]"][0, -1] == pytest.approx(-1.4, abs=1e-7)


def test_kinks_without_a_jump_are_passed():
    f = traced(lambda t, y, p: np.array([where(y[0] > 0.5, 0.5, y[0]) * -p[0]]), n=1, params=1)
    sol = solve(f, (0, 3), [1.0], params=[1.0], sensitivities=["y0[0]"], rtol=1e-10, atol=1e-12)
    # 0.5 is reached at t = 2(y0 − 0.5)/p; then y = 0.5 exp(−(t − 2(y0 − 0.5)/p))
    assert sol.sensitivities["y0[0]"][0, -1] == pytest.approx(np.exp(-2.0), rel=1e-6)


# ---------------------------------------------------------------------- their tolerances

RING = IVP(  # at rest but for a force p: S = (1 − cos 10 t)/100 for all p
    traced(lambda t, y, p: [y[1], p[0] - 100.0 * y[0]], n=2, params=1),
    [0.0, 0.0],
    (0.0, 3.0),
    params=[1.0],
)
RINGING = np.array([(1 - np.cos(30.0)) / 100, np.sin(30.0) / 10])


@pytest.mark.parametrize("method", ["DOP853", "RADAU5"])
@pytest.mark.parametrize("p", [1e-15, 1e-6, 0.01])
def test_sensitivities_by_a_tiny_parameter_have_the_tolerance(p, method):
    """Their absolute tolerance was atol/|p|: −14 and 20,000 in place of 0.008."""
    run = solve(RING.with_(params=[p]), method=method, sensitivities=["p[0]"])
    assert np.abs(run.final_sensitivities["p[0]"] - RINGING).max() < 2e-6
    late = solve(RING.with_(params=[p]), method=method, sensitivities=["p[0]"], t_eval=[3.0])
    assert np.abs(late.sensitivities["p[0]"][:, 0] - RINGING).max() < 2e-6


def test_large_sensitivities_by_a_tiny_parameter_are_not_computed_to_rounding_errors():
    """Two of them tend to 5e11; their difference dies away to rounding errors of 1e-4."""
    f = traced(
        lambda t, y, p: [1e-12 * np.exp(-t) / p[0] + y[1] - y[0], y[0] - y[1], y[0] - y[1] - y[2]],
        n=3,
        params=1,
    )
    problem = IVP(f, [1.0, 0.0, 0.0], (0.0, 60.0), params=[1e-12])
    plain = solve(problem, method="DOP853")
    run = solve(problem, method="DOP853", sensitivities=["p[0]"])
    assert run.nsteps < 1.5 * plain.nsteps  # 25 times, were the tolerance atol itself
    assert run.final_sensitivities["p[0]"][:2] == pytest.approx([-5e11, -5e11], rel=1e-6)


def test_each_of_many_runs_has_tolerances_of_its_own():
    """Those of the first row were taken for all: a run depended on its company."""
    rows = np.array([[1e-12], [1.0], [30.0], [1e-5]])
    options = {"method": "DOP853", "sensitivities": ["p[0]"]}
    many = solve_many(RING, params=rows, **options)
    assert np.abs(many.sensitivities["p[0]"] - RINGING).max() < 2e-6
    back = solve_many(RING, params=rows[::-1], **options)
    for k, row in enumerate(rows):
        one = solve_many(RING, params=row[None], **options)
        alone = solve(RING.with_(params=row), **options)
        assert one.nsteps[0] == many.nsteps[k] == alone.nsteps
        for other in (one.sensitivities["p[0]"][0], back.sensitivities["p[0]"][3 - k]):
            assert np.array_equal(many.sensitivities["p[0]"][k], other)
        assert alone.final_sensitivities["p[0]"] == pytest.approx(other, abs=1e-11)
    given = solve_many(RING, params=rows, **options, atol=[[1e-9], [1e-9], [1e-9], [1e-5]])
    assert np.array_equal(given.y[:3], many.y[:3])
    assert given.nsteps[3] < many.nsteps[3]
    with pytest.raises(ValueError, match="one for each of the 2 components"):
        solve_many(RING, params=rows, **options, atol=[1e-9, 1e-9, 1e-9])


def test_a_failure_that_is_thrown_has_the_solution_itself():
    with pytest.raises(IntegrationError) as caught:
        solve(RING, sensitivities=["p[0]"], max_steps=3, throw=True)
    assert caught.value.solution.y.shape[0] == 2
    assert set(caught.value.solution.sensitivities) == {"p[0]"}


def test_the_review_of_a_run_sees_its_own_parameters():
    """It saw those of the first of many runs."""
    watched = PROBLEM.with_(review=lambda run, t, y, rtol: (None, f"p[0] is {run.params[0]:g}"))
    rows = np.array([[4.0, 0.2], [3.0, 0.1]])
    many = solve_many(watched, params=rows, method="DOP853", sensitivities=["p[0]"])
    assert [text.split("; ")[-1] for text in many.message] == ["p[0] is 4", "p[0] is 3"]
    assert solve(watched, sensitivities=["p[0]"]).message.endswith("p[0] is 4")
