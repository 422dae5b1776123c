"""Mechanisms as initial value problems: what is conserved, forces as given, direction of time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from integrators import solve
from multibody import (
    Cylindrical,
    Driven,
    Fixed,
    Free,
    Inertia,
    ModelBuilder,
    Planar,
    Pose,
    Prismatic,
    Revolute,
    Spherical,
    as_ivp,
    box,
    energies,
    kinematics,
    mechanisms,
    momentum,
    point_mass,
    quaternion_drift,
    simulate,
)
from multibody.pictures import animate
from multibody.runs.forces import joint_force_law
from multibody.runs.ivp import FD_derivatives, ID_derivatives

MOMENTA = [f"momentum {k}" for k in ("h_x", "h_y", "h_z", "p_x", "p_y", "p_z")]
BRICK = box((1.0, 2.0, 3.0), mass=2.0, com=(0.1, 0.2, 0.3))
TIGHT = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}

#: Drift of an invariant along a run at these tolerances, in parts of its size.
CONSERVED = 1e-8


def body(joint, gravity=(0.0, 0.0, 0.0), place=None, spring=None, reverse=False, **elements):
    """A brick on a joint, and a pendulum on the brick, so that there is an inner joint."""
    b = ModelBuilder(gravity=gravity, name="brick")
    b.add_body("brick", 0, joint, place, BRICK, reverse, **elements)
    arm = point_mass(0.5, (0.0, 0.0, -1.0))
    b.add_body("arm", "brick", Revolute("y"), (0.3, 0.1, 0.0), arm, damping=0.2, armature=0.1)
    if spring is not None:
        b.add_spring("spring", "brick", (0.5, 0.0, 0.0), 0, spring, 30.0, 0.1, 0.7)
    return b.build()


def listed(problem):
    return [name for name in problem.invariants if name.startswith("momentum")]


DOWN = (0.0, 0.0, -9.81)
TILTED = (3.0, 0.0, -4.0)
ANGULAR, LINEAR = [0.5] * 3 + [0.0] * 3, [0.0] * 3 + [0.5] * 3
CASES = {
    "free": (body(Free()), MOMENTA),
    "free, reversed": (body(Free(), reverse=True), MOMENTA),
    "free, damped": (body(Free(), damping=0.5), []),
    "sleeve": (body(Cylindrical("z")), ["momentum h_z", "momentum p_z"]),
    "sleeve, rotors": (body(Cylindrical("z"), armature=0.5), []),
    "free, turning damped": (body(Free(), damping=ANGULAR), MOMENTA[3:]),
    "free, shifting damped": (body(Free(), damping=LINEAR), []),
    "free, falling": (body(Free(), DOWN), ["momentum h_z", "momentum p_x", "momentum p_y"]),
    "free, falling askew": (body(Free(), TILTED), ["momentum h_up", "momentum p_y"]),
    "free, on a spring": (
        body(Free(), DOWN, spring=(1.0, 2.0, 3.0)),
        ["momentum h_z at (1, 2, 0)"],
    ),
    "ball": (body(Spherical(), DOWN), ["momentum h_z"]),
    "ball elsewhere": (
        body(Spherical(), DOWN, (1.0, -2.0, 5.0)),
        ["momentum h_z at (1, -2, 0)"],
    ),
    "ball askew": (body(Spherical(), TILTED), ["momentum h_up"]),
    "ball, damped": (body(Spherical(), DOWN, damping=0.1), []),
    "rail": (body(Prismatic("x"), DOWN), ["momentum p_x"]),
    "rail, spring": (body(Prismatic("x"), DOWN, stiffness=5.0), []),
    "rail, stops": (body(Prismatic("x"), DOWN, limits=(-0.1, 0.1, 100.0, 0.0)), []),
    "turntable": (body(Revolute("z"), DOWN, (1.0, 0.0, 0.0)), ["momentum h_z at (1, 0, 0)"]),
    "horizontal hinge": (body(Revolute("y"), DOWN), []),
    "table": (body(Planar("z"), DOWN), ["momentum h_z", "momentum p_x", "momentum p_y"]),
    "table, one slider damped": (body(Planar("z"), DOWN, damping=[0.0, 0.3, 0.0]), []),
    "welded": (body(Fixed()), []),
    "driven": (body(Driven(Prismatic("x"), lambda t: [np.sin(t)])), []),
}


@pytest.mark.parametrize("case", CASES)
def test_listed_momenta_are_conserved_and_others_are_not(case):
    """Of the six components about the base's origin, exactly the listed ones stay."""
    model, expected = CASES[case]
    rng = np.random.default_rng(1)
    v0 = rng.uniform(-1.0, 1.0, model.nv)
    problem = as_ivp(model, None, v0, (0.0, 2.0), traced=False)
    assert listed(problem) == expected
    run = solve(problem, **TIGHT)
    assert run.success
    for name in expected:
        along = [problem.invariants[name](t, x) for t, x in zip(run.t, run.y.T)]
        assert np.ptp(along) < CONSERVED * (1.0 + np.abs(along).max()), name
    nq = model.nq
    h = np.array([momentum(model, x[:nq], x[nq:], t=t) for t, x in zip(run.t, run.y.T)])
    for name, change in zip(MOMENTA, np.ptp(h, axis=0)):
        # A component that is not listed changes, unless nothing ever moves along it.
        size = np.abs(h[:, MOMENTA.index(name)]).max()
        assert (name in expected) == (change < CONSERVED * (1.0 + size)) or size < 1e-9, name


def test_inner_drives_leave_momentum_alone():
    """A wheel that time turns inside a floating body: momentum stays, energy does not."""
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_body("hull", 0, Free(), inertia=BRICK)
    turn = Driven(Revolute("x"), lambda t: [3.0 * t * t])
    b.add_body("wheel", "hull", turn, (0.2, 0.0, 0.0), box((0.1, 0.5, 0.4), mass=1.0))
    problem = as_ivp(b.build(), None, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], (0.0, 2.0))
    assert list(problem.invariants) == MOMENTA
    run = solve(problem, **TIGHT)
    for name, g in problem.invariants.items():
        along = [g(t, x) for t, x in zip(run.t, run.y.T)]
        assert np.ptp(along) < CONSERVED * (1.0 + np.abs(along).max()), name


def test_actuators_change_what_they_push():
    model = mechanisms.satellite()
    times, forces = np.array([0.0, 1.0, 2.0]), np.zeros((3, model.nv))
    forces[1, 6:] = 3.0  # the arms only
    problem = as_ivp(model, None, None, (0.0, 2.0), (times, forces))
    assert list(problem.invariants) == MOMENTA
    run = solve(problem, tstops=times, **TIGHT)
    for g in problem.invariants.values():
        assert np.ptp([g(t, x) for t, x in zip(run.t, run.y.T)]) < CONSERVED
    assert np.ptp(energies(model, run).total) > 1.0
    forces[1, 3] = 1.0
    assert not as_ivp(model, tau=(times, forces)).invariants
    assert not as_ivp(model, tau=np.zeros(model.nv)).invariants  # parameters may change
    assert not as_ivp(model, tau=lambda t, q, v: np.zeros(model.nv)).invariants
    assert not as_ivp(model, f_ext=np.zeros((model.n_bodies, 6))).invariants


# ---------------------------------------------------------------------- tables of joint forces


def carriage():
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_body("c", 0, Prismatic(), inertia=point_mass(1.0))
    return b.build()


@pytest.mark.parametrize("traced", [True, False])
def test_steep_tables_hold_their_values(traced):
    """Acceleration of 1 kg is the force; ramps of a nanosecond leave no trace afterwards."""
    w = 1e-9
    table = [0.0, 1.0, 1.0 + w, 2.0, 2.0 + w], [0.0, 0.0, 1.0, 1.0, 0.3]
    problem = as_ivp(carriage(), tau=table, traced=traced)
    for t, expected in ((-5.0, 0.0), (0.5, 0.0), (1.5, 1.0), (2.5, 0.3), (1e4, 0.3), (1e9, 0.3)):
        assert abs(problem.f(t, np.zeros(2))[1] - expected) < 1e-15


@pytest.mark.parametrize("traced", [True, False])
def test_tables_interpolate(traced):
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0.0, 10.0, 300))
    values = rng.standard_normal(300)
    problem = as_ivp(carriage(), tau=(times, values), traced=traced)
    for t in np.concatenate([rng.uniform(-1.0, 11.0, 100), times[::17]]):
        # The table's own size is Σ|differences| ≈ 340; rounding of a sum is relative to it.
        assert abs(problem.f(t, np.zeros(2))[1] - np.interp(t, times, values)) < 1e-13


def test_a_table_of_thousands_of_rows_can_be_traced():
    from integrators import traced

    times = np.linspace(0.0, 10.0, 3000)
    law, _ = joint_force_law(carriage(), (times, np.sin(times)))
    f = traced(lambda t, y: law(t, (), (), ()) + 0.0 * y, n=1)
    at = 0.5 * (times[1234] + times[1235])
    assert f.graph.evaluate([at, 0.0])[0] == pytest.approx(np.interp(at, times, np.sin(times)))


# ---------------------------------------------------------------------- direction of time


@pytest.mark.parametrize("t1", [5.0, -5.0])
@pytest.mark.parametrize("traced", [True, False])
def test_quaternions_are_stabilised_in_both_directions(t1, traced):
    model = mechanisms.heavy_top()
    q0, v0 = model.neutral(), np.array([0.3, 0.2, 2.0])
    problem = as_ivp(model, q0, v0, (0.0, t1), quaternions="stabilise", traced=traced)
    wrong = problem.y0.copy()
    wrong[:4] *= 1.0 + 1e-3
    run = solve(problem, y0=wrong, method="DOP853", rtol=1e-10, atol=1e-12)
    assert run.success
    drift = np.abs(quaternion_drift(model, run.y)[0])
    # The excess decays as e^(−10 |t|), down to what the tolerance leaves.
    assert drift[0] > 1e-3
    assert drift[-1] < 1e-9


@pytest.mark.parametrize("t1", [3.0, -3.0])
@pytest.mark.parametrize("way", ["traced", "kernels", "truncate"])
def test_loops_are_stabilised_in_both_directions(t1, way):
    """A small gap closes as (1 + t/T) e^(−t/T); with the wrong sign it would grow by e^30."""
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    q0, v0 = entry.start(model)
    rank = "truncate" if way == "truncate" else "regular"
    problem = as_ivp(model, q0, v0, (0.0, t1), rank=rank, traced=way == "traced")
    off = problem.y0.copy()
    off[0] += 1e-4
    run = solve(problem, y0=off, method="DOP853", rtol=1e-7, atol=1e-9)
    assert run.success
    gaps = [problem.invariants["loop gap"](t, x) for t, x in zip(run.t, run.y.T)]
    assert gaps[0] > 5e-5
    assert gaps[-1] < 1e-7


# ---------------------------------------------------------------------- external forces


BAD_FORCES = {
    "seven": ({"c": [0, 0, 0, 0, 0, 2.0, 9]}, ValueError, r"f_ext\['c'\].*6 numbers.*\(7,\)"),
    "three": ({"c": [0, 0, 2.0]}, ValueError, r"f_ext\['c'\].*6 numbers.*\(3,\)"),
    "a number": ({"c": 2.0}, ValueError, r"f_ext\['c'\].*6 numbers"),
    "two rows": ({"c": np.zeros((2, 6))}, ValueError, r"f_ext\['c'\].*\(2, 6\)"),
    "text": ({"c": "strong"}, TypeError, r"f_ext\['c'\].*real numbers"),
    "texts": ({"c": list("abcdef")}, TypeError, r"f_ext\['c'\].*real numbers"),
    "ragged": ({"c": [[1.0], 2, 3, 4, 5, 6]}, TypeError, r"f_ext\['c'\].*real numbers"),
    "nan": ({"c": [0, 0, 0, 0, 0, np.nan]}, ValueError, r"f_ext\['c'\].*finite"),
    "base": ({"base": np.zeros(6)}, ValueError, "base moves nothing"),
    "unknown": ({"cc": np.zeros(6)}, ValueError, "did you mean 'c'"),
    "row": (np.zeros(6), ValueError, r"row of 6 numbers.*\(6,\)"),
    "array of text": ([list("abcdef")], TypeError, "f_ext.*real numbers"),
    "array with infinity": (np.full((1, 6), np.inf), ValueError, "f_ext.*finite"),
}


@pytest.mark.parametrize("case", BAD_FORCES)
@pytest.mark.parametrize("as_function", [False, True])
def test_external_forces_of_the_wrong_kind_are_told(case, as_function):
    forces, error, message = BAD_FORCES[case]
    given = (lambda t, q, v: forces) if as_function else forces
    with pytest.raises(error, match=message):
        simulate(carriage(), T=0.1, f_ext=given)


def test_external_forces_as_dictionary_and_function():
    """2 N on 1 kg for a second: half of 2 m, from numbers and from symbols."""
    run = simulate(carriage(), T=1.0, f_ext={"c": [0, 0, 0, 0, 0, 2.0]})
    assert run.y[0, -1] == pytest.approx(1.0, rel=1e-9)
    run = simulate(carriage(), T=1.0, f_ext=lambda t, q, v: {"c": [0, 0, 0, 0, 0, 6.0 * t]})
    assert run.y[0, -1] == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(ValueError, match=r"f_ext.*returned None"):
        simulate(carriage(), T=1.0, f_ext=lambda t, q, v: None)


# ---------------------------------------------------------------------- Jacobian


def test_jacobian_of_a_traced_problem_is_exact_and_goes_to_scipy():
    problem = as_ivp(mechanisms.pendulum(), [1.0], [0.5], (0.0, 2.0))
    np.testing.assert_allclose(
        problem.jac(0.0, problem.y0), [[0.0, 1.0], [-9.81 * np.cos(1.0), 0.0]], rtol=1e-14
    )
    options = {"method": "Radau", "rtol": 1e-8, "atol": 1e-10}
    run = solve_ivp(problem.f, problem.t_span, problem.y0, jac=problem.jac, **options)
    own = solve(problem, **TIGHT)
    np.testing.assert_allclose(run.y[:, -1], own.y[:, -1], atol=1e-6)
    assert run.njev > 0
    driven = as_ivp(mechanisms.double_pendulum(), [1.0, 0.2], tau=[1.0, 2.0])
    J = driven.jac(0.0, driven.y0, driven.params)
    step = 1e-6
    for k, e in enumerate(step * np.eye(4)):
        ahead, behind = (driven.f(0.0, driven.y0 + s * e, driven.params) for s in (1, -1))
        np.testing.assert_allclose(J[:, k], (ahead - behind) / (2 * step), atol=1e-7)
    untraced = as_ivp(mechanisms.pendulum(), traced=False)
    np.testing.assert_allclose(
        untraced.jac(0.0, problem.y0), problem.jac(0.0, problem.y0), rtol=1e-14
    )


@pytest.mark.parametrize("method", ["RADAU5", "SDIRK4", "RadauVariable"])
def test_implicit_methods_use_the_jacobian_as_before(method):
    """With the machine code of f's own Jacobian, and not one evaluation more."""
    problem = as_ivp(mechanisms.double_pendulum(), [1.0, 0.2], [0.0, 1.0], (0.0, 2.0))
    with_, without = (solve(p, method=method) for p in (problem, problem.with_(jac=None)))
    assert (with_.nfev, with_.njev, with_.nlu) == (without.nfev, without.njev, without.nlu)
    np.testing.assert_array_equal(with_.y, without.y)


# ---------------------------------------------------------------------- nothing to integrate


def test_a_model_without_freedoms_says_so():
    b = ModelBuilder(name="clock")
    b.add_body("hand", 0, Driven(Revolute("y"), lambda t: [2.0 * t]), inertia=BRICK)
    b.add_body("tip", "hand", Fixed(), (0.0, 0.0, 1.0), BRICK)
    model = b.build()
    for run in (lambda: simulate(model, T=1.0), lambda: as_ivp(model)):
        with pytest.raises(ValueError, match=r"'clock'.*nothing to integrate.*kinematics"):
            run()
    # What the message points to works: after a quarter of a turn about y, z has become x.
    tip = kinematics(model, [], t=np.pi / 4).poses[2].p
    np.testing.assert_allclose(tip, [1.0, 0.0, 0.0], atol=1e-14)
    for found in (FD_derivatives(model, [], []), ID_derivatives(model, [], [], [])):
        assert [x.shape for x in found] == [(0, 0)] * 3
    assert FD_derivatives(model, [], [], tangent=False)[0].shape == (0, 0)


# ---------------------------------------------------------------------- careless input


def test_careless_times_and_models():
    model = mechanisms.pendulum()
    for T in (0.0, (1, 1), (1, 2, 3)):
        with pytest.raises(ValueError, match="T: expected an end time or a pair"):
            simulate(model, T=T)
    for span in (5.0, (1.0,), [[0, 1]]):
        with pytest.raises(ValueError, match=r"t_span: expected two times \(t0, t1\)"):
            as_ivp(model, t_span=span)
    with pytest.raises(TypeError, match="t_span: expected real numbers"):
        as_ivp(model, t_span="now")
    for call in (as_ivp, simulate):
        with pytest.raises(TypeError, match=r"model: expected a Model.*None"):
            call(None)


@pytest.mark.parametrize("name", ["alpha", "beta", "T_stab"])
def test_trees_take_no_stabilisation(name):
    with pytest.raises(ValueError, match="no loops to stabilise"):
        simulate(mechanisms.pendulum(), T=1.0, **{name: 3.0})
    with pytest.raises(ValueError, match="rank: expected one of"):
        as_ivp(mechanisms.pendulum(), rank="any")


@pytest.mark.parametrize("ending", ["gif", "html"])
def test_an_empty_solution_cannot_be_shown(tmp_path, ending):
    model = mechanisms.pendulum()
    empty = simulate(model, T=1.0, t_eval=[])
    with pytest.raises(ValueError, match="solution: expected at least one time"):
        animate.save(model, empty, tmp_path / f"nothing.{ending}")


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("pendulum", "length"),
        ("pendulum", "mass"),
        ("double_pendulum", "length"),
        ("n_pendulum", "mass"),
        ("spherical_pendulum", "length"),
        ("cart_pole", "length"),
        ("cart_pole", "cart_mass"),
        ("cart_pole", "pole_mass"),
    ],
)
def test_negative_sizes_are_refused_by_name(name, argument):
    with pytest.raises(ValueError, match=rf"^{argument}: expected a"):
        mechanisms.get(name, **{argument: -1.0})


def test_random_trees_explain_what_they_take():
    with pytest.raises(ValueError, match="'revolut'; did you mean 'revolute'"):
        mechanisms.random_tree(3, joints=["revolut"])
    for seed in (-1, "a", 1.5, None):
        with pytest.raises(ValueError, match="seed: expected a whole number ≥ 0"):
            mechanisms.random_tree(3, seed=seed)
        with pytest.raises(ValueError, match="seed: expected a whole number ≥ 0"):
            mechanisms.planar_tree(3, seed=seed)
    assert mechanisms.random_tree(3, seed=np.random.default_rng(1)).n_bodies == 3


@pytest.mark.parametrize("angle", np.linspace(0.02, 1.5, 12))
def test_a_tilted_plane_conserves_no_angular_momentum(angle):
    """What rounding leaves of the rotations of a plane under gravity is not inverted."""
    c, s = np.cos(angle), np.sin(angle)
    tilted = Pose([[1, 0, 0], [0, c, -s], [0, s, c]], (0.1, 0.2, 0.3))
    plate = Inertia(1.0, (0.1, 0.2, 0.3), np.diag([1.0, 1.2, 1.3]))
    builder = ModelBuilder()
    builder.add_body("plate", 0, Planar(), tilted, plate)
    assert set(as_ivp(builder.build()).invariants) == {"energy", "momentum p_x"}
