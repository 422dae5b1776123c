"""One rule for quaternions in positions: brought to norm 1 within a tolerance, refused beyond it.

A rotation is told by the direction of a quaternion alone, so every function must give for a scaled
one what it gives for the unit one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import multibody as mb
from integrators import solve, solve_many
from multibody.checks import QUATERNION_TOLERANCE
from multibody.dynamics.book.floating import (
    floating_equation,
    floating_forward_dynamics,
    floating_inverse_dynamics,
    floating_jacobian,
)
from multibody.dynamics.book.handles import handle_dynamics, operational_space_inertia
from multibody.dynamics.book.maximal import forward_dynamics_maximal, forward_dynamics_projected
from multibody.dynamics.book.oracles import inertia_by_definition, rnea_base

BRICK = mb.Inertia(2.0, (0.1, 0.2, 0.3), (1.0, 2.0, 2.5))


def tree():
    b = mb.ModelBuilder(name="kite")
    b.add_body("brick", 0, mb.Free(), None, BRICK)
    b.add_body("tail", "brick", mb.Spherical(), (0.5, 0, 0), BRICK)
    b.add_body("hook", "tail", mb.Revolute("y"), (0.2, 0, 0), BRICK)
    return b.build()


def closed():
    b = mb.ModelBuilder(name="tied")
    b.add_body("brick", 0, mb.Free(), None, BRICK)
    b.add_body("tail", "brick", mb.Spherical(), (0.5, 0, 0), BRICK)
    b.add_loop("tie", 0, "tail", mb.Spherical(), None, (-0.5, 0, 0))
    return b.build()


TREE, CLOSED = tree(), closed()
A = np.arange(1.0, 11.0) / 10.0


@cache
def problem_of(model, algebraic=False):
    """A problem from another start."""
    if not algebraic:
        return mb.as_ivp(model, *state(model), traced=False)
    return mb.as_dae(model, *state(model), formulation="index3", traced=False)


#: Every way to give a position of a tree …
OF_TREES = {
    "FD": lambda m, q, v: mb.FD(m, q, v),
    "FD with forces": lambda m, q, v: mb.FD(m, q, v, A, {"hook": [0, 0, 0, 1, 2, 3]}, t=1.0),
    "FD by crba": lambda m, q, v: mb.FD(m, q, v, A, method="crba"),
    "FD of a list": lambda m, q, v: mb.FD(m, q.tolist(), v),
    "FD_x": lambda m, q, v: mb.FD_x(m, np.concatenate([q, v]))[m.nq :],
    "FD_x, rate": lambda m, q, v: mb.FD_x(m, np.concatenate([q, v]))[: m.nq],
    "ID": lambda m, q, v: mb.ID(m, q, v, A),
    "rnea": lambda m, q, v: mb.ID(m, q, v, A, method="rnea"),
    "crba": lambda m, q, v: mb.crba(m, q),
    "bias": lambda m, q, v: mb.bias_forces(m, q, v),
    "gravity": lambda m, q, v: mb.gravity_forces(m, q),
    "coriolis": lambda m, q, v: mb.coriolis_forces(m, q, v),
    "joint_forces": lambda m, q, v: mb.joint_forces(m, q, v, A),
    "position_rate": lambda m, q, v: mb.position_rate(m, q, v),
    "kinematics": lambda m, q, v: np.array([p.R for p in mb.kinematics(m, q, v, A).poses]),
    "velocities": lambda m, q, v: mb.kinematics(m, q, v, A).accelerations,
    "point_position": lambda m, q, v: mb.point_position(m, q, "hook", (1, 2, 3)),
    "body_jacobian": lambda m, q, v: mb.body_jacobian(m, q, "hook"),
    "point_jacobian": lambda m, q, v: mb.point_jacobian(m, q, "hook", (1, 2, 3)),
    "jacobian_rate": lambda m, q, v: mb.jacobian_rate(m, q, v, "hook"),
    "energy": lambda m, q, v: np.array(mb.energy(m, q, v)),
    "momentum": lambda m, q, v: mb.momentum(m, q, v, about="com"),
    "centre_of_mass": lambda m, q, v: mb.centre_of_mass(m, q),
    "sparse": lambda m, q, v: mb.SparseDynamics(m)(q, v).accelerations,
    "derivatives": lambda m, q, v: mb.FD_derivatives(m, q, v)[0],
    "as_ivp": lambda m, q, v: mb.as_ivp(m, q, v, traced=False).y0,
    "solve": lambda m, q, v: solve(problem_of(m), (0, 1e-3), np.r_[q, v]).y[:, 0],
    "solve_many": lambda m, q, v: solve_many(problem_of(m), (0, 1e-3), [np.r_[q, v]] * 2).y[1],
    "with_": lambda m, q, v: problem_of(m).with_(y0=np.r_[q, v]).y0,
    "integrate": lambda m, q, v: m.integrate(q, v, 0.1),
    "difference": lambda m, q, v: m.difference(q, m.neutral()),
    "handle": lambda m, q, v: handle_dynamics(m, q, "hook", v).b,
    "operational": lambda m, q, v: operational_space_inertia(m, q, "hook"),
    "floating": lambda m, q, v: floating_forward_dynamics(m, q, v).array,
    "floating equation": lambda m, q, v: floating_equation(m, q, v).C,
    "floating inverse": lambda m, q, v: floating_inverse_dynamics(m, q, v, A[:4])[1],
    "floating Jacobian": lambda m, q, v: floating_jacobian(m, q, "hook"),
    "maximal": lambda m, q, v: forward_dynamics_maximal(m, q, v).joint_accelerations,
    "projected": lambda m, q, v: forward_dynamics_projected(m, q, v),
    "oracle H": lambda m, q, v: inertia_by_definition(m, q),
    "oracle ID": lambda m, q, v: rnea_base(m, q, v, A),
    "joint": lambda m, q, v: m.bodies[1].joint.motion(q[7:11], v[6:9]).X.E,
}
#: … and of a mechanism with a loop.
OF_LOOPS = {
    "FD": lambda m, q, v: mb.FD(m, q, v),
    "FD at a time": lambda m, q, v: mb.FD(m, q, v, t=1.0),
    "FD_x": lambda m, q, v: mb.FD_x(m, np.concatenate([q, v]))[m.nq :],
    "constraints": lambda m, q, v: mb.constraints(m, q, v).delta,
    "constrained": lambda m, q, v: mb.constrained_accelerations(m, q, v).accelerations,
    "loop_forces": lambda m, q, v: mb.loop_forces(m, q, np.ones(3))["tie"],
    "loop_joint_state": lambda m, q, v: mb.loop_joint_state(m, q, v, "tie").velocity,
    "mobility": lambda m, q, v: mb.mobility(m, q).singular_values,
    "independent": lambda m, q, v: mb.independent_coordinates(m, q, v).g,
    "assemble": lambda m, q, v: mb.assemble(m, q).q,
    "consistent": lambda m, q, v: mb.consistent_velocity(m, q, v),
    "handle": lambda m, q, v: handle_dynamics(m, q, "tail", v).b,
    "floating": lambda m, q, v: floating_forward_dynamics(m, q, v).array,
    "maximal": lambda m, q, v: forward_dynamics_maximal(m, q, v).joint_accelerations,
    "sparse": lambda m, q, v: mb.SparseDynamics(m)(q, v).accelerations,
    "solve": lambda m, q, v: solve(problem_of(m), (0, 1e-3), np.r_[q, v]).y[:, 0],
    "as_dae": lambda m, q, v: problem_of(m, True).with_(y0=np.r_[q, v, np.zeros(3)]).y0,
}
CASES = [("tree", TREE, name, f) for name, f in OF_TREES.items()]
CASES += [("closed", CLOSED, name, f) for name, f in OF_LOOPS.items()]


def state(model):
    q, v = model.random(1), np.linspace(-1.0, 1.0, model.nv)
    if model.loops:
        q = mb.assemble(model, q).q
        v = mb.consistent_velocity(model, q, v)
    return q, v


def scaled(model, q, factor):
    q = q.copy()
    for at in model.quaternion_places:
        q[at : at + 4] *= factor
    return q


@pytest.mark.parametrize(
    ("kind", "model", "name", "f"), CASES, ids=[f"{c[0]} {c[2]}" for c in CASES]
)
def test_only_the_direction_of_a_quaternion_counts(kind, model, name, f):
    q, v = state(model)
    exact = f(model, q, v)
    for factor in (1.0 + 0.9 * QUATERNION_TOLERANCE, 1.0 - 0.9 * QUATERNION_TOLERANCE, 1 + 1e-9):
        found = f(model, scaled(model, q, factor), v)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * (1 + np.abs(exact).max()))
    for factor in (1.0 + 1.1 * QUATERNION_TOLERANCE, 1.0 - 1.1 * QUATERNION_TOLERANCE, 2.0, 0.0):
        with pytest.raises(ValueError, match=r"quaternion"):
            f(model, scaled(model, q, factor), v)
    with pytest.raises(ValueError, match=r"finite|NaN|nan"):
        f(model, scaled(model, q, np.nan), v)


def test_a_falling_body_with_twice_a_quaternion_is_refused_and_not_accelerated():
    """Gravity is all that there is; with 2q its acceleration was −480.69."""
    b = mb.ModelBuilder()
    b.add_body("brick", 0, mb.Free(), None, BRICK)
    model = b.build()
    q = model.neutral()
    np.testing.assert_allclose(mb.FD(model, q, np.zeros(6)), [0, 0, 0, 0, 0, -9.81], atol=1e-12)
    for times in (2.0, 0.0):
        with pytest.raises(ValueError, match=r"'brick' \(q\[0:4\]\) has norm .*model.normalise"):
            mb.FD(model, times * q, np.zeros(6))


def test_contacts_take_the_same_starts():
    entry = mb.mechanisms.entry("block_on_incline")
    problem = mb.as_ivp(entry.model(), *entry.start(entry.model()), (0, 1e-3))
    x = problem.y0.copy()
    x[:4] *= 1.001
    np.testing.assert_allclose(solve(problem, y0=x).y[:4, 0], problem.y0[:4], rtol=1e-15)
    x[:4] *= 2.0
    with pytest.raises(ValueError, match=r"has norm 2\.002"):
        solve(problem, y0=x)


def test_quaternions_that_are_unit_but_for_rounding_keep_their_digits():
    q, _ = state(TREE)
    np.testing.assert_array_equal(TREE.check("q", q), q)


@pytest.mark.parametrize("model", [TREE, CLOSED], ids=["tree", "closed"])
def test_right_hand_sides_take_quaternions_between_steps_as_they_are(model):
    """Stages leave the sphere; traced and untraced right-hand sides must see the same there."""
    q, v = state(model)
    options = {"stabilise": "none"} if model.loops else {}
    functions = [mb.as_ivp(model, q, v, traced=way, **options).f for way in (True, False)]
    for factor in (1.0, 1.05, 0.7):
        x = np.concatenate([scaled(model, q, factor), v])
        found, other = (f(0.0, x) for f in functions)
        np.testing.assert_allclose(found, other, rtol=0, atol=1e-9 * np.abs(found).max())


def test_runs_that_let_quaternions_drift_far_are_looked_at_all_the_same():
    """A coarse run leaves the sphere by more than the tolerance; invariants still have values."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("brick", 0, mb.Spherical(), None, BRICK)
    model = b.build()
    problem = mb.as_ivp(model, None, [4.0, 5.0, 6.0], (0, 4), quaternions="free", traced=False)
    run = solve(problem, method="RK4", step=0.2)
    drift = np.abs(np.linalg.norm(run.y[:4], axis=0) - 1.0).max()
    assert run.success
    assert drift > QUATERNION_TOLERANCE
    assert all(np.isfinite(g(0.0, run.y[:, -1])) for g in problem.invariants.values())
    with pytest.raises(ValueError, match="quaternion"):
        mb.FD(model, run.y[:4, -1], run.y[4:, -1])


def test_right_hand_sides_agree_off_the_sphere():
    """Stages of a step leave the sphere; what they then compute is the same by every algorithm."""
    b = mb.ModelBuilder(gravity=(0, 0, -9.81))
    b.add_body("arm", 0, mb.Revolute("y"), inertia=mb.rod((0, 0, 0), (0, 0, -1), mass=1.0))
    ball = mb.Inertia(1.0, (0, 0.1, -0.5), np.diag([0.3, 0.4, 0.2]))
    b.add_body("ball", "arm", mb.Spherical(), (0, 0, -1), ball)
    model = b.build()
    q, v = [0.6, 0.8, 0.6, 0.0, 0.0], [0.3, 0.2, -0.1, 0.4]
    on_sphere = mb.FD(model, q, v)
    for scale in (0.995, 1.0, 1.005):
        x = np.array([q[0], *(scale * np.array(q[1:])), *v])
        for traced in (True, False):
            found = mb.as_ivp(model, q, v, (0, 1), traced=traced).rhs(0.0, x)
            np.testing.assert_allclose(found[5:], on_sphere, atol=1e-13)
