"""``simulate`` and what is read off a solution; one mechanism through every kind of integrator."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from integrators import Taylor, solve
from multibody import (
    FD_x,
    as_ivp,
    consistent_velocity,
    energies,
    energy,
    kinematics,
    mechanisms,
    point_position,
    positions,
    simulate,
)
from multibody.runs.closed import TRACED_CONSTRAINTS
from multibody.runs.simulate import poses

# ---------------------------------------------------------------------- any integrator

METHODS = [
    ("DOPRI5", {}),
    ("DOP853", {}),
    (Taylor(), {}),
    ("RADAU5", {}),
    ("RadauVariable", {}),
    ("Gauss6", {"step": 0.01}),
    ("RK4", {"step": 0.001}),
    ("scipy:LSODA", {}),
    ("assimulo:CVode", {}),
]
TOLERANCE = 1e-9
AGREEMENT = 1e-5  # local tolerance times the growth of errors over the run, with a margin


@pytest.fixture(scope="module", params=["double_pendulum", "heavy_top"])
def problem_and_end(request):
    """One mechanism with angles, one with quaternions; and where a tight run ends."""
    entry = mechanisms.entry(request.param)
    problem = entry.problem()
    end = solve(problem, t_span=(0.0, 1.0), method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    return problem, end


@pytest.mark.parametrize(("method", "options"), METHODS, ids=lambda x: str(x) if x else "")
def test_every_kind_of_method_solves_a_mechanism(method, options, problem_and_end):
    problem, end = problem_and_end
    if "step" in options and len(end) == 7:
        options = {"step": options["step"] / 5}  # the top turns fifty times faster
    elif not options:
        options = {"rtol": TOLERANCE, "atol": TOLERANCE}
    solution = solve(problem, t_span=(0.0, 1.0), method=method, **options)
    assert solution.success, solution.message
    np.testing.assert_allclose(solution.y[:, -1], end, atol=AGREEMENT * np.abs(end).max(), rtol=0)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "LSODA", "Radau"])
def test_scipy_takes_the_right_hand_side_as_it_is(method, problem_and_end):
    problem, end = problem_and_end
    found = solve_ivp(problem.f, (0.0, 1.0), problem.y0, method=method, rtol=1e-9, atol=1e-9)
    assert found.success
    np.testing.assert_allclose(found.y[:, -1], end, atol=AGREEMENT * np.abs(end).max(), rtol=0)


def test_traced_and_untraced_right_hand_sides_agree():
    for entry in mechanisms.entries():
        model = entry.model()
        if model.contacts:  # no one right-hand side, but one for each contact state
            continue
        q0, v0 = entry.start(model)
        if model.loops:  # a velocity that keeps them closed; no pull back, as in FD_x
            v0, options = consistent_velocity(model, q0, v0 + 0.1), dict(stabilise="none")
        else:
            v0, options = v0 + 0.1, {}
        x = np.concatenate([q0, v0])
        expected = FD_x(model, x)
        size = 1.0 + np.abs(expected).max()
        for traced in (True, False):
            if traced and len(model.tree.acting_rows) > TRACED_CONSTRAINTS:
                continue
            f = as_ivp(model, q0, v0, traced=traced, **options).f
            np.testing.assert_allclose(f(0.0, x), expected, atol=1e-11 * size, err_msg=entry.name)


# ---------------------------------------------------------------------- simulate


def test_defaults_are_neutral_rest_and_sixty_frames_a_second():
    model = mechanisms.pendulum()
    solution = simulate(model, T=0.5)
    assert solution.t[0] == 0.0
    assert solution.t[-1] == 0.5
    assert len(solution.t) == 31
    # It hangs, and stays; the direction down is rounded in body coordinates.
    np.testing.assert_allclose(solution.y, 0.0, atol=1e-14)
    assert solution.problem.state_names == ("bob.angle", "d(bob.angle)")


def test_frames_and_steps():
    model = mechanisms.pendulum()
    steps = simulate(model, [1.0], T=1.0, fps=None)
    assert len(steps.t) == steps.nsteps + 1
    chosen = simulate(model, [1.0], T=1.0, t_eval=[0.2, 0.7])
    np.testing.assert_array_equal(chosen.t, [0.2, 0.7])
    later = simulate(model, [1.0], T=(2.0, 3.0), fps=4)
    np.testing.assert_allclose(later.t, [2.0, 2.25, 2.5, 2.75, 3.0])
    back = simulate(model, [1.0], T=-1.0, fps=2)
    np.testing.assert_allclose(back.t, [0.0, -0.5, -1.0])
    np.testing.assert_allclose(back.y[0], simulate(model, [1.0], T=1.0, fps=2).y[0], atol=1e-8)


def test_options_reach_the_solver():
    model = mechanisms.pendulum()
    solution = simulate(model, [1.0], T=1.0, method="RK4", step=0.01, fps=None, dense_output=True)
    assert solution.nsteps == 100
    assert solution.sol(0.5).shape == (2,)
    with pytest.raises(TypeError, match="stepp"):
        simulate(model, [1.0], stepp=0.1)


def test_joint_force_table_is_stepped_on():
    """A unit torque for one second on a disc of inertia 1 without gravity: angle ½, then t − ½."""
    model = mechanisms.pendulum(gravity=0.0)
    table = (np.array([0.0, 1.0, 1.0 + 1e-6, 2.0]), np.array([[1.0], [1.0], [0.0], [0.0]]))
    solution = simulate(model, T=3.0, tau=table, fps=None)
    assert {1.0, 1.0 + 1e-6, 2.0} <= set(solution.t)
    assert solution.y[0, -1] == pytest.approx(2.5, abs=2e-6)
    assert solution.y[1, -1] == pytest.approx(1.0, abs=1e-6)
    more = simulate(model, T=3.0, tau=table, fps=None, tstops=[0.123])
    assert {0.123, 1.0, 2.0} <= set(more.t)


def test_forces_as_functions():
    model = mechanisms.pendulum(gravity=0.0)
    spring = simulate(model, [1.0], T=1.0, tau=lambda t, q, v: -4.0 * q)
    np.testing.assert_allclose(spring.y[0], np.cos(2.0 * spring.t), atol=1e-7)
    push = simulate(model, T=1.0, f_ext=lambda t, q, v: {"bob": [0, 2.0, 0, 0, 0, 0]})
    np.testing.assert_allclose(push.y[0], push.t**2, atol=1e-9)
    constant = simulate(model, T=1.0, tau=[2.0])
    np.testing.assert_allclose(constant.y[0], constant.t**2, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"T": 0.0}, "T: expected an end time"),
        ({"T": [1, 2, 3]}, "T: expected an end time"),
        ({"fps": 0.0}, "fps: expected a positive"),
        ({"q0": [1.0, 2.0]}, "q: expected 1 numbers"),
        ({"quaternions": "sometimes"}, "quaternions: expected one of"),
        ({"tau": ([0.0, 1.0], [[1.0, 2.0], [1.0, 2.0]])}, "rows of 1 forces"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulate(mechanisms.pendulum(), **arguments)


# ---------------------------------------------------------------------- reading a solution


def test_positions_and_poses_are_those_of_kinematics():
    for name in ("satellite", "planar_tree", "random_tree"):
        entry = mechanisms.entry(name)
        model = entry.model()
        solution = simulate(model, *entry.start(model), T=0.3, fps=10)
        point = (0.1, -0.2, 0.3)
        R, p = poses(model, solution)
        for i in (1, model.n_bodies):
            path = positions(model, solution, i, point)
            assert path.shape == (3, 4)
            for k, x in enumerate(solution.y.T):
                place = kinematics(model, x[: model.nq]).poses[i]
                np.testing.assert_allclose(R[k, i], place.R, atol=1e-12)
                np.testing.assert_allclose(p[k, i], place.p, atol=1e-12)
                expected = point_position(model, x[: model.nq], i, point)
                np.testing.assert_allclose(path[:, k], expected, atol=1e-12)
    base = positions(model, solution, "base", point)
    np.testing.assert_allclose(base, np.tile(point, (4, 1)).T)


def test_energy_of_a_solution():
    model = mechanisms.double_pendulum()
    solution = simulate(model, [1.0, 0.5], T=1.0, fps=10)
    along = energy(model, solution)
    again = energies(model, solution)
    np.testing.assert_array_equal(along.kinetic, again.kinetic)
    for k, x in enumerate(solution.y.T):
        state = energy(model, x[:2], x[2:])
        assert (along.kinetic[k], along.potential[k]) == (state.kinetic, state.potential)
    assert along.total.shape == (11,)
    assert energy(model, [1.0, 0.5]).kinetic == 0.0


def test_solutions_of_other_models_are_refused():
    solution = simulate(mechanisms.pendulum(), [1.0], T=0.1)
    with pytest.raises(ValueError, match="solution of another model"):
        positions(mechanisms.double_pendulum(), solution, 1)
    with pytest.raises(TypeError, match="expected a Solution"):
        positions(mechanisms.pendulum(), [1.0, 0.0], 1)
    with pytest.raises(ValueError, match="did you mean 'bob'"):
        positions(mechanisms.pendulum(), solution, "bop")


@pytest.mark.parametrize("traced", [None, True, False])
@pytest.mark.parametrize(
    ("forces", "message"),
    [
        (lambda t, q, v: [5.0], r"tau: expected 2 numbers \(d\(upper.angle\).* shape \(1,\)"),
        (lambda t, q, v: 5.0, r"expected 2 numbers .* shape \(\)"),
        (lambda t, q, v: -v[0], r"expected 2 numbers .* shape \(\)"),
        (lambda t, q, v: [5.0, 0.0, 7.0], r"expected 2 numbers .* shape \(3,\)"),
        (lambda t, q, v: None, "returned None; is its `return` missing"),
    ],
)
def test_joint_forces_of_a_function_are_checked(traced, forces, message):
    with pytest.raises(ValueError, match=message):
        simulate(mechanisms.double_pendulum(), [1.0, 1.0], T=0.1, tau=forces, traced=traced)


@pytest.mark.parametrize("traced", [True, False])
def test_a_function_may_return_a_number_for_one_freedom(traced):
    ends = [
        simulate(mechanisms.pendulum(), [1.0], T=0.5, tau=tau, traced=traced).y[:, -1]
        for tau in (lambda t, q, v: -2.0 * v[0], lambda t, q, v: [-2.0 * v[0]])
    ]
    np.testing.assert_array_equal(*ends)
    assert abs(ends[0][0] - simulate(mechanisms.pendulum(), [1.0], T=0.5).y[0, -1]) > 0.01


def test_stabilisation_by_the_step_and_by_constants():
    """T_stab="auto" is ten steps, so α = β = 1/(10 h); the other spellings mean the same."""
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    start = entry.start(model)
    options = {"T": 0.5, "method": "RK4", "step": 0.01}
    auto = simulate(model, *start, T_stab="auto", **options)
    given = simulate(model, *start, alpha=10.0, beta=10.0, **options)
    other = simulate(model, *start, alpha=20.0, beta=10.0, **options)
    np.testing.assert_allclose(auto.y, given.y, rtol=1e-12, atol=1e-12)
    assert np.abs(auto.y - other.y).max() > 1e-9
    with pytest.raises(ValueError, match="give step"):
        simulate(model, *start, T=0.5, T_stab="auto")


@pytest.mark.parametrize(("name", "same"), [("projected", "projection"), ("index1", "none")])
def test_stabilisation_by_the_names_of_formulations(name, same):
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    ends = [simulate(model, *entry.start(model), T=0.2, stabilise=kind).y for kind in (name, same)]
    np.testing.assert_array_equal(*ends)
    with pytest.raises(ValueError, match=r"'index1', 'none'.*'projection'.*received 'index7'"):
        simulate(model, *entry.start(model), stabilise="index7")


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match=r"expected a Model.*received None"):
        simulate(None)
