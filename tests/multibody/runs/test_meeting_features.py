"""Rolling joints as loops, pictures of geared runs, prescribed motion with kinks."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import multibody as mb
from integrators import solve
from multibody.pictures import plot
from multibody.runs.minimal import as_ivp_minimal
from multibody.runs.prescribing.jumps import velocity_jumps

RADIUS = 0.3


def wheel(closure=None):
    """A disc that rolls upright along its heading: four coordinates, two speeds."""

    def pose(q):
        x, y, heading, spin = q
        c, s = np.cos(heading), np.sin(heading)
        k, m = np.cos(spin), np.sin(spin)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        roll = np.array([[k, 0.0, m], [0.0, 1.0, 0.0], [-m, 0.0, k]])
        return turn @ roll, np.array([x, y, RADIUS])

    def rate(q, v):
        forward = RADIUS * v[1]
        return np.array([forward * np.cos(q[2]), forward * np.sin(q[2]), v[0], v[1]])

    names = ["x", "y", "heading", "spin"]
    return mb.UserJoint(pose, names, ["turning", "rolling"], rate, closure=closure)


def test_a_rolling_joint_of_ones_own_does_not_lose_its_rolling_in_a_loop():
    """Its closure of poses has two numbers (height, upright), where two speeds leave four."""

    def upright(R, p):
        return [R[2, 1], p[2] - RADIUS]

    b = mb.ModelBuilder()
    b.add_body("cart", 0, mb.Planar(), (0, 0, RADIUS), mb.Inertia(1.0, (0, 0, 0), (1, 1, 1)))
    b.add_body("disc", "cart", mb.Revolute("y"), None, mb.Inertia(1.0, (0, 0, 0), (1, 1, 1)))
    b.add_loop("ground", 0, "disc", wheel(upright))
    with pytest.raises(ValueError, match=r"6 − 2 = 4 constraints .*received 2.*closure_rates"):
        b.build()


def test_joints_of_the_library_close_with_as_many_constraints_as_they_leave_speeds():
    from multibody.dynamics.loops.constraints.joint_law import constraint_count
    from multibody.mechanisms.random import random_joint

    kinds = "revolute prismatic helical cylindrical planar spherical free fixed universal"
    kinds += " rack_pinion rolling_sphere constant_velocity"
    for kind in kinds.split():
        joint = random_joint(kind, np.random.default_rng(1))
        assert constraint_count(joint) == 6 - joint.nv


def geared():
    arm = mb.mechanisms.n_pendulum(3)
    gear = mb.gears(arm, {"link3": {"link1": -2.0}})
    problem = as_ivp_minimal(arm, gear, [0.4, 0.3], [0.5, 1.0], (0.0, 0.5))
    return arm, gear, solve(problem, rtol=1e-8)


def test_pictures_of_a_geared_run_show_the_joints():
    """The third line is the geared angle −2q₁, not the first independent speed."""
    arm, gear, run = geared()
    q = gear.states(run.y)[:3]
    ax = plot.coordinates(arm, run)
    for k, line in enumerate(ax.lines):
        np.testing.assert_allclose(line.get_ydata(), q[k], atol=1e-12)
    np.testing.assert_allclose(ax.lines[2].get_ydata(), -2.0 * run.y[0], atol=1e-12)
    ax = plot.coordinates(arm, run, velocities=True)
    np.testing.assert_allclose(ax.lines[2].get_ydata(), -2.0 * run.y[2], atol=1e-12)
    total = mb.energies(arm, run).total
    assert np.ptp(total) < 1e-5
    tip = mb.positions(arm, run, "link3")
    for k in (0, -1):
        np.testing.assert_allclose(tip[:, k], mb.point_position(arm, q[:, k], "link3"), atol=1e-12)


def test_a_closure_with_as_many_variables_as_freedoms_is_not_taken_for_joint_angles():
    """Absolute angles of a chain: shapes agree, values do not."""
    arm = mb.mechanisms.n_pendulum(2)
    problem = as_ivp_minimal(arm, lambda y: [y[0], y[1] - y[0]], [0.4, 0.9], None, (0.0, 0.2))
    run = solve(problem, rtol=1e-8)
    ax = plot.coordinates(arm, run)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), run.y[1] - run.y[0], atol=1e-12)


def slide(motion, loop=False):
    b = mb.ModelBuilder()
    b.add_body("slide", 0, mb.Driven(mb.Prismatic("x"), motion), inertia=mb.point_mass(1.0))
    b.add_body("bob", "slide", mb.Revolute("y"), inertia=mb.point_mass(1.0, (0, 0, -1)))
    return b.build()


def test_a_prescribed_motion_that_turns_round_at_once_says_that_an_impulse_is_missing():
    run = mb.simulate(slide(lambda t: [np.abs(t - 0.7)]), [0.1], T=2.0)
    assert "jumps in velocity by 2 at t = 0.7" in run.message
    assert "impulse" in run.message
    kinked = slide(lambda t: [np.maximum(t - 0.5, 0.0) - 3.0 * np.maximum(t - 1.2, 0.0)])
    found = velocity_jumps(kinked, 0.0, 2.0)
    assert [round(j.t, 6) for j in found] == [0.5, 1.2]
    assert [j.size for j in found] == pytest.approx([1.0, 3.0])
    assert "(and 1 more)" in mb.simulate(kinked, [0.1], T=2.0).message
    assert not velocity_jumps(kinked, 0.0, 0.4)
    assert "impulse" not in mb.simulate(kinked, [0.1], T=0.4).message


@pytest.mark.parametrize(
    "motion",
    [
        lambda t: [np.sin(40.0 * t)],
        lambda t: [np.tanh(1e4 * (t - 1.0)) / 1e4],
        lambda t: [np.maximum(t - 1.0, 0.0) ** 2],
    ],
    ids=["fast", "steep", "kink of the acceleration"],
)
def test_continuous_velocities_are_not_told_as_jumps(motion):
    assert velocity_jumps(slide(motion), 0.0, 2.0) == []


def test_a_jump_in_a_driven_loop_is_told():
    b = mb.ModelBuilder()
    b.add_body("bead", 0, mb.Prismatic("x"), inertia=mb.point_mass(1.0))
    b.add_loop("hand", 0, "bead", mb.Driven(mb.Prismatic("x"), lambda t: [np.abs(t - 1.0)]))
    (jump,) = velocity_jumps(b.build(), 0.0, 3.0)
    assert jump.name == "hand"
    assert jump.t == pytest.approx(1.0, abs=1e-8)
    assert jump.size == pytest.approx(2.0)


# ---------------------------------------------------------------------- quaternions


@cache
def motion_of(name):
    entry = mb.mechanisms.entry(name)
    model = entry.model()
    problem = mb.as_ivp(model, *entry.start(model), (0.0, 0.3))
    return problem, solve(problem, method="DOP853", rtol=1e-11, atol=1e-12, throw=True).y[:, -1]


@pytest.mark.parametrize("name", ["spinning_top", "satellite", "half_car", "free_stewart_platform"])
@pytest.mark.parametrize("method", ["BDF", "NDF", "Adams", "ROS3P", "Rodas5P", "AB3"])
def test_methods_that_add_states_move_bodies_that_turn(method, name):
    """Quaternions are renormalised; angles need no more than vectors do."""
    problem, expected = motion_of(name)
    assert problem.manifold is not None
    how = dict(step=1e-3) if method == "AB3" else dict(rtol=1e-7, atol=1e-9)
    run = solve(problem, method=method, throw=True, **how)
    size = np.abs(expected).max()
    np.testing.assert_allclose(run.y[:, -1], expected, atol=1e-5 * size)
    for at in range(len(problem.state_names)):
        if problem.state_names[at].endswith(".w"):
            assert abs(np.linalg.norm(run.y[at : at + 4, -1]) - 1.0) < 1e-14


def test_a_manifold_to_which_nothing_leads_back_is_not_left():
    problem = motion_of("satellite")[0].with_(project=None)
    for method in ("BDF", "Rodas5P", "AB3"):
        how = dict(step=1e-2) if method == "AB3" else {}
        with pytest.raises(ValueError, match=f"{method} adds states.*give a projection"):
            solve(problem, method=method, **how)
