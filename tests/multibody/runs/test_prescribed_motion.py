"""Prescribed motion in runs, against joints that time drives, and against work and energy."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, make_interp_spline

import multibody as mb
from integrators import solve, solve_many
from multibody import as_ivp, mechanisms, simulate
from multibody.model.model import Model
from tests.multibody.random_mechanisms import FORCES, draw

TIGHT = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-12}


def swing(t):
    return 0.5 * np.sin(2.0 * t)


def looked_up(t):
    """The same, as a function that cannot be traced."""
    return 0.5 * math.sin(2.0 * t)


def swing_table(n):
    times = np.linspace(0.0, 2.0, n)
    return times, swing(times)


@pytest.fixture(scope="module")
def driven():
    """End of a run of the double pendulum with a driven upper joint: two states only."""
    model = mechanisms.double_pendulum()
    upper = model.bodies[0]
    nothing = dict.fromkeys((*FORCES, "limits"), np.zeros(0))
    joint = mb.Driven(upper.joint, lambda t: [swing(t)])
    other = replace(model, bodies=(replace(upper, joint=joint, **nothing), model.bodies[1]))
    return solve(as_ivp(other, [0.3], [0.0], (0, 2)), **TIGHT).y[:, -1]


START = [0.0, 0.3], [1.0, 0.0]


@pytest.mark.parametrize("traced", [True, False])
def test_a_run_is_that_of_a_driven_joint(driven, traced):
    model = mechanisms.double_pendulum()
    problem = as_ivp(model, *START, (0, 2), prescribed={"upper": swing}, traced=traced)
    run = solve(problem, **TIGHT)
    np.testing.assert_allclose(run.y[0], swing(run.t), atol=1e-11)  # the run's tolerance
    np.testing.assert_allclose(run.y[[1, 3], -1], driven, atol=1e-8)
    # The drive is the only force that does work.
    dense = solve(problem, dense_output=True, t_eval=np.linspace(0, 2, 401), **TIGHT)
    power = dense.observed.tau[0] * dense.y[2]
    first, last = (mb.energy(model, x[:2], x[2:]).total for x in dense.y.T[[0, -1]])
    work = CubicSpline(dense.t, power).integrate(0.0, 2.0)
    np.testing.assert_allclose(work, last - first, rtol=1e-7)  # of the quadrature
    assert not dense.observed.tau[1].any()


@pytest.mark.parametrize(
    ("motion", "tolerance"),
    [
        (swing_table(41), 5e-4),  # velocities of a spline are wrong by h³, most at its ends
        (CubicSpline(*swing_table(161)), 1e-5),
        (make_interp_spline(*swing_table(41), k=5), 3e-6),  # called, not traced
        (looked_up, 1e-7),  # called, and differentiated by differences
    ],
)
def test_tables_and_splines(driven, motion, tolerance):
    start = [0.0, 0.3], None  # velocities of splines are not quite those of the sine
    problem = as_ivp(mechanisms.double_pendulum(), *start, (0, 2), prescribed={"upper": motion})
    run = solve(problem, method="DOP853", rtol=1e-8, atol=1e-10)
    assert "prescribed" not in run.message
    np.testing.assert_allclose(run.y[[1, 3], -1], driven, atol=tolerance)


@pytest.mark.parametrize(
    ("motion", "tolerance"),
    [
        (swing_table(81), 1e-4),  # jerks at the knots
        (CubicSpline(*swing_table(81)), 1e-4),
        (make_interp_spline(*swing_table(81), k=5), 1e-6),
        (looked_up, 1e-7),
    ],
)
def test_driven_joints_take_tables_and_splines(driven, motion, tolerance):
    model = mechanisms.double_pendulum()
    upper = model.bodies[0]
    nothing = dict.fromkeys((*FORCES, "limits"), np.zeros(0))
    joint = pickle.loads(pickle.dumps(mb.Driven(upper.joint, motion)))
    other = replace(model, bodies=(replace(upper, joint=joint, **nothing), model.bodies[1]))
    run = solve(as_ivp(other, [0.3], [0.0], (0, 2)), method="DOP853", rtol=1e-8, atol=1e-10)
    assert np.abs(run.y[:, -1] - driven).max() < tolerance
    if motion is looked_up:
        return
    with pytest.raises(ValueError, match="known from t = 0 to 2"):  # the table has ended
        as_ivp(other, [0.3], [0.0], (0, 2.1))


@pytest.mark.parametrize(
    ("motion", "match"),
    [
        (([0.0, 1.0], [0.0]), "a row of 1 for each"),
        (([1.0, 0.0], [0.0, 1.0]), "rising times"),
        ("fast", "a table"),
    ],
)
def test_careless_drives(motion, match):
    with pytest.raises((TypeError, ValueError), match=match):
        mb.Driven(mb.Revolute(), motion)


def test_laws_of_accelerations():
    """A freedom whose acceleration is a function of time and state: an oscillator, exactly."""
    model = mechanisms.double_pendulum()
    law = {"upper": lambda t, q, v: -4.0 * q[0]}
    for traced in (True, False):
        run = solve(
            as_ivp(model, [0.3, 0.4], [0.2, 0.0], (0, 1), prescribed=law, traced=traced), **TIGHT
        )
        exact = 0.3 * np.cos(2.0) + 0.1 * np.sin(2.0)
        assert run.y[0, -1] == pytest.approx(exact, abs=1e-9)
    q, v, tau = run.y[:2, -1], run.y[2:, -1], run.observed.tau[:, -1]
    assert mb.FD(model, q, v, tau)[0] == pytest.approx(-4.0 * exact, abs=1e-8)
    entry = mechanisms.entry("four_bar")
    bars = entry.model()
    start = entry.start(bars)
    brake = {"crank": lambda t, q, v: -0.5 * v[0]}
    for form in ("projected", "ggl"):
        problem = mb.as_dae(bars, *start, (0, 0.5), prescribed=brake, formulation=form)
        run = solve(problem, method="RADAU5", rtol=1e-8, atol=1e-10)
        assert run.y[3, -1] == pytest.approx(start[1][0] * np.exp(-0.25), rel=1e-6)
    for bad, match in (
        (lambda t, q, v: None, "returned None"),
        (lambda t, q, v: [1, 2], "1 freedoms"),
    ):
        with pytest.raises(ValueError, match=match):
            as_ivp(model, prescribed={"upper": bad})


def test_simulate_steps_on_the_times_of_a_table():
    table = swing_table(21)
    run = simulate(
        mechanisms.double_pendulum(), [0, 0.3], T=2.0, prescribed={"upper": table}, fps=None
    )
    assert np.isin(table[0], run.t).all()


def polynomial(q, v, t0):
    def motion(t):
        s = t - t0
        return q + v * s + 0.2 * s * s + 0.1 * (1.0 - np.cos(2.0 * s))

    return motion


def second(t, t0):
    return 0.4 + 0.4 * np.cos(2.0 * (t - t0))


@pytest.mark.parametrize("seed", range(12))
def test_random_mechanisms_accelerate_as_prescribed(seed):
    """Traced and not, with forces of every kind; loops and floating bases among them."""
    c = draw(seed, loops=seed % 3 % 2)
    model, rng = c.model, np.random.default_rng(seed)
    plain = [
        k
        for body, place in zip(model.bodies, model.v_index)
        if body.joint.rate_is_velocity
        for k in range(place.start, place.stop)
    ]
    if not plain:
        return
    places = rng.choice(plain, min(len(plain), 2), replace=False).tolist()
    q_places = [
        q.start + k - v.start
        for k in places
        for q, v in zip(model.q_index, model.v_index)
        if v.start <= k < v.stop
    ]
    motions = {k: polynomial(c.q[i], c.v[k], c.t) for k, i in zip(places, q_places)}
    forces = {body.name: f for body, f in zip(model.bodies, c.f_ext)}
    tau = [c.tau, lambda t, q, v: c.tau * (1 + t), None][seed % 3]
    f_ext = [forces, None, lambda t, q, v: c.f_ext][seed % 3]
    given = {"prescribed": motions, "tau": tau, "f_ext": f_ext}
    if model.loops:
        K = mb.constraints(model, c.q, t=c.t).K
        others = [k for k in range(model.nv) if k not in places]
        if np.linalg.matrix_rank(K[:, others], tol=1e-7) < np.linalg.matrix_rank(K, tol=1e-7):
            with pytest.raises(ValueError, match=r"loops .* determine what"):
                as_ivp(model, c.q, c.v, (c.t, c.t + 0.1), **given)
            return
        given["stabilise"] = "none"
    x = np.concatenate([c.q, c.v])
    found = []
    for traced in (None, False):
        problem = as_ivp(model, c.q, c.v, (c.t, c.t + 0.1), traced=traced, **given)
        slope = problem.bind(problem.f)(c.t, x)
        found.append(slope)
        np.testing.assert_allclose(slope[model.nq :][places], second(c.t, c.t), atol=1e-7)
    scale = 1.0 + np.abs(found[1]).max()
    np.testing.assert_allclose(*found, rtol=0, atol=1e-8 * scale)  # of regularised multipliers
    # The forces are given ones and those of the drives, under which FD says the same.
    run = solve(problem, method="RK4", step=0.05)
    acting = run.observed.tau[:, 0]
    want = np.zeros(model.nv) if tau is None else c.tau * (1 + c.t) if callable(tau) else c.tau
    free = ~np.isin(np.arange(model.nv), places)
    np.testing.assert_array_equal(acting[free], want[free])
    outside = None if f_ext is None else c.f_ext
    a = mb.FD(model, c.q, c.v, acting, outside, t=c.t)
    np.testing.assert_allclose(a, found[1][model.nq :], atol=1e-7 * scale)


@pytest.mark.parametrize("stabilise", ["baumgarte", "projection", "minimal"])
def test_a_crank_in_every_formulation(stabilise):
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    q, v = entry.start(model)
    motion = polynomial(q[0], v[0], 0.0)
    problem = as_ivp(model, q, v, (0, 1), prescribed={"crank": motion}, stabilise=stabilise)
    run = solve(problem, method="DOP853", rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(run.y[0], motion(run.t), atol=1e-7)
    assert run.observed.drift.max() < 1e-7
    found = mb.hybrid_dynamics(
        model, run.y[:3, -1], run.y[3:, -1], a={"crank": second(run.t[-1], 0.0)}
    )
    np.testing.assert_allclose(run.observed.tau[:, -1], found.tau, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("formulation", "method"), [("index3", "RADAU5"), ("ggl", "RADAU5"), ("index1", "DOP853")]
)
def test_a_crank_in_formulations_of_daes(formulation, method):
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    q, v = entry.start(model)
    motion = polynomial(q[0], v[0], 0.0)
    given = {"prescribed": {"crank": motion}, "formulation": formulation}
    run = solve(mb.as_dae(model, q, v, (0, 0.5), **given), method=method, rtol=1e-8, atol=1e-10)
    seen = run.observed
    assert "prescribed" not in run.message
    np.testing.assert_allclose(seen.q[0], motion(run.t), atol=1e-6)
    found = mb.hybrid_dynamics(model, seen.q[:, -1], seen.v[:, -1], a={"crank": second(0.5, 0.0)})
    np.testing.assert_allclose(seen.tau[:, -1], found.tau, rtol=1e-9, atol=1e-9)


def gust(t, q, v, p):
    return p[0] * np.array([0.0, 1.0])


def test_parameters_lanes_pickles_and_backwards():
    model = mechanisms.double_pendulum()
    problem = as_ivp(model, *START, (0, 1), gust, prescribed={"upper": swing}, params=[0.5])
    many = solve_many(problem, params=[[0.5], [1.0], [2.0]], **TIGHT)
    for p, end in zip((0.5, 1.0, 2.0), many.y):
        alone = solve(problem, params=[p], **TIGHT)
        np.testing.assert_allclose(end, alone.y[:, -1], atol=1e-8)
        np.testing.assert_array_equal(alone.observed.tau[1], p)
    again = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(solve(again, **TIGHT).y, solve(problem, **TIGHT).y)
    there = solve(problem, **TIGHT)
    back = as_ivp(
        model, there.y[:2, -1], there.y[2:, -1], (1, 0), gust, prescribed={"upper": swing},
        params=[0.5],
    )  # fmt: skip
    np.testing.assert_allclose(solve(back, **TIGHT).y[:, -1], [0, 0.3, 1, 0], atol=1e-8)


def test_constant_forces_stay_parameters():
    model = mechanisms.double_pendulum()
    problem = as_ivp(model, *START, (0, 1), [7.0, 0.5], prescribed={"upper": swing})
    np.testing.assert_array_equal(problem.params, [7.0, 0.5])
    run = solve(problem, params=[0.0, 1.5], **TIGHT)
    np.testing.assert_allclose(run.observed.tau[1], 1.5)
    same = solve(problem, params=[100.0, 1.5], **TIGHT)  # of a prescribed freedom: not read
    np.testing.assert_array_equal(run.y, same.y)


@pytest.mark.parametrize("traced", [True, False])
def test_exact_jacobians(traced):
    model = mechanisms.double_pendulum()
    motion = {"lower": lambda t: 0.3 + t * t}
    problem = as_ivp(model, [0.1, 0.3], None, (0, 2), prescribed=motion, traced=traced)
    x, h = np.array([0.2, 0.4, -0.5, 1.0]), 1e-6
    ahead, behind = ([problem.f(0.5, x + s * e) for e in np.eye(4)] for s in (h, -h))
    differences = (np.array(ahead) - behind).T / (2 * h)
    np.testing.assert_allclose(problem.jac(0.5, x), differences, atol=1e-7)


def test_several_freedoms_of_one_joint():
    b = mb.ModelBuilder()
    b.add_body("screw", 0, mb.Cylindrical("z"), inertia=mb.box((0.1, 0.2, 0.3), mass=2.0))
    b.add_body("flap", "screw", mb.Revolute("x"), inertia=mb.point_mass(1.0, (0, 0, -1.0)))
    model: Model = b.build()
    q0 = [0.0, 0.0, 0.5]
    both = as_ivp(model, q0, t_span=(0, 1), prescribed={"screw": lambda t: [t, np.sin(t)]})
    each = as_ivp(model, q0, t_span=(0, 1), prescribed={0: lambda t: t, 1: np.sin})
    one = as_ivp(model, q0, t_span=(0, 1), prescribed={1: np.sin})
    runs = [solve(p, **TIGHT) for p in (both, each, one)]
    np.testing.assert_allclose(runs[0].y[:, -1], runs[1].y[:, -1], atol=1e-12)
    np.testing.assert_allclose(runs[2].y[1], np.sin(runs[2].t), atol=1e-11)
    assert not runs[2].observed.tau[[0, 2]].any()
    assert runs[0].observed.tau[0].any()


def test_a_motion_that_no_run_can_follow_is_told():
    model = mechanisms.double_pendulum()
    kink = as_ivp(model, t_span=(0, 2), prescribed={"upper": lambda t: np.abs(t - 1.0)})
    assert "leaves the motion prescribed for upper.angle at t = 1" in solve(kink).message
    longer = as_ivp(model, t_span=(0, 1), prescribed={"upper": swing_table(21)})
    assert "or ends" in solve(longer, (0.0, 3.0)).message
    # A slider that is pulled farther than crank and rod reach.
    model = mechanisms.slider_crank()
    q = mb.assemble(model, [0.5, -0.8, 0.4], fixed=["crank"]).q
    far = as_ivp(model, q, t_span=(0, 0.5), prescribed={"slider": lambda t: q[2] + 4.0 * t * t})
    run = solve(far, max_steps=2000)
    assert "leaves the motion prescribed for" in run.message
    assert "loops do not allow it" in run.message


def nothing(t):
    return None


@pytest.mark.parametrize("late", [0.0, 1.0])
def test_functions_that_jump_are_told(late):
    """In position, or in velocity only: neither can be followed by forces."""

    def jumps(t):
        return 0.0 if t < 1.0 else t - late

    problem = as_ivp(mechanisms.double_pendulum(), [0.0, 0.3], prescribed={"upper": jumps})
    run = solve(problem, (0, 1.5), rtol=1e-6)
    assert "the run leaves the motion prescribed" in run.message


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"prescribed": ["upper"]}, TypeError, "expected a dictionary"),
        ({"prescribed": {}}, TypeError, "expected a dictionary"),
        ({"prescribed": {"upper": 3.0}}, TypeError, "a function of time, a table"),
        ({"prescribed": {"elbow": swing}}, ValueError, "elbow"),
        ({"prescribed": {"upper": swing, 0: swing}}, ValueError, "different velocity variables"),
        ({"prescribed": {"upper": nothing}}, ValueError, "return"),
        ({"prescribed": {"upper": lambda t: [t, t]}}, ValueError, "motion of 1 freedoms"),
        ({"prescribed": {"upper": ([0, 1], [[1, 2], [3, 4]])}}, ValueError, "motion of 1 freedom"),
        ({"prescribed": {"upper": ([1, 0], [1, 2])}}, ValueError, "rising times"),
        ({"prescribed": {"upper": ([0, 1], [1, 2])}}, ValueError, "longer table"),
        ({"prescribed": {"upper": swing}, "q0": [0.1, 0.0]}, ValueError, "starts with 0"),
        ({"prescribed": {"upper": swing}, "v0": [0.0, 0.0]}, ValueError, "starts with 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        as_ivp(mechanisms.double_pendulum(), t_span=(0, 2), **given)


def test_joints_with_quaternions_and_contacts_are_refused():
    b = mb.ModelBuilder()
    b.add_body("ball", 0, mb.Spherical(), inertia=mb.sphere(0.1, mass=1.0))
    with pytest.raises(ValueError, match=r"no rate of a position.*Driven"):
        as_ivp(b.build(), prescribed={"ball": lambda t: [0, 0, 0]})
    ball = mechanisms.entry("bouncing_ball").model()
    with pytest.raises(ValueError, match=r"has contacts.*Driven"):
        as_ivp(ball, prescribed={0: swing})


@pytest.mark.parametrize("name", ["double_pendulum", "four_bar"])
def test_the_books_have_the_power_of_the_drive(name):
    """They ask the run which forces acted; before, 0.16 J were missing."""
    entry = mechanisms.entry(name)
    model = entry.model()
    q, v = entry.start(model)
    body = model.bodies[0].name
    motion = {body: lambda t: q[0] + v[0] * t + 0.3 * t * t}
    make = mb.as_dae if model.bonds else as_ivp
    form = {"formulation": "projected"} if model.bonds else {}
    problem = make(model, q, v, (0, 0.5), prescribed=motion, **form)
    run = solve(problem, dense_output=True, **TIGHT)
    ledger = mb.energy_ledger(model, run)
    assert np.abs(ledger.balance).max() < 1e-8 < 0.1 < abs(ledger.work["actuators"][-1])
    np.testing.assert_allclose(ledger.power["actuators"], run.observed.tau[0] * run.observed.v[0])
    base = mb.reactions_along(model, run, coordinates="joint")
    np.testing.assert_allclose(base[body], run.observed.reactions[body])


@pytest.mark.parametrize("n", [2, 5, 7, 41])
def test_tables_that_drive_joints_move_smoothly_through_their_knots(n):
    """Pieces end where others begin: neither both nor none may count there."""
    times = np.linspace(0.0, 4.0, n)
    joint = mb.Driven(mb.Prismatic(), (times, 0.5 * times))
    for t in [*times, *(times[:-1] + 0.3 * np.diff(times))]:
        assert joint.motion([], [], t).v[5] == pytest.approx(0.5, rel=1e-12)
    curved = mb.Driven(mb.Prismatic(), (times, times**2)) if n > 2 else joint
    for t in times if n > 2 else ():
        assert curved.motion([], [], t).v[5] == pytest.approx(2.0 * t, abs=1e-12)


def test_a_run_that_leaves_the_table_of_a_driven_joint_is_refused():
    b = mb.ModelBuilder()
    times = np.linspace(0.0, 1.0, 11)
    carriage = mb.Inertia(1.0, I_com=(1, 1, 1))
    b.add_body("carriage", 0, mb.Driven(mb.Prismatic("x"), (times, times**2)), inertia=carriage)
    b.add_body("load", "carriage", mb.Revolute("y"), inertia=mb.point_mass(1.0, (0, 0, -1)))
    model = b.build()
    assert solve(mb.as_ivp(model, [0.1], [0.0], (0, 1)), method="DOPRI5").success
    for span in ((0.0, 1.5), (0.5, -0.5)):
        with pytest.raises(ValueError, match=r"drives 'carriage' is known from t = 0 to 1"):
            mb.as_ivp(model, [0.1], [0.0], span)
