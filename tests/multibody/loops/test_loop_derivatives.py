"""Derivatives of closed loops, by the KKT system, against differences and traced ones."""

from __future__ import annotations

import numpy as np
import pytest

from integrators import solve
from integrators.kernels.pointers import call_lanes
from multibody import (
    FD,
    Driven,
    FD_derivatives,
    Free,
    Inertia,
    ModelBuilder,
    Revolute,
    RollingSphere,
    Spherical,
    as_ivp,
    consistent_velocity,
    mechanisms,
)
from multibody.dynamics.derivatives.closed import CLOSED_ALONG, closed_derivatives
from multibody.dynamics.derivatives.laws import differences
from multibody.dynamics.derivatives.tree import RANK_BY_VALUES
from multibody.joints import joint_names
from multibody.mechanisms.random import random_joint
from multibody.runs.closed import Stabilisation
from multibody.runs.derivatives import (
    StateJacobian,
    derivative_tree,
    stabilise,
    traced_derivatives,
)
from tests.multibody.derivative_samples import assert_near, with_elements

LOOPS = [e.name for e in mechanisms.entries() if e.model().loops]
REDUNDANT = {"bricard"}
# Central differences of second order: rounding ε/h and h², in parts of the largest derivative.
STEP, DIFFERENCES = 1e-5, 1e-6


def start(name, seed=0):
    entry = mechanisms.entry(name)
    model, rng = entry.model(), np.random.default_rng(seed)
    q, _ = entry.start(model)
    v = consistent_velocity(model, q, rng.normal(size=model.nv))
    return model, q, v, rng.normal(size=model.nv)


def slope(f, x, step=STEP):
    columns = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(x.size)]
    return np.array(columns).T


@pytest.mark.parametrize("name", [name for name in LOOPS if name not in REDUNDANT])
def test_every_mechanism_with_loops(name):
    """Accelerations are quadratic in v and linear in tau, so that any step will do there."""
    model, q, v, tau = start(name)
    f = 0.3 * np.random.default_rng(1).normal(size=(model.n_bodies, 6))
    dq, dv, dtau = FD_derivatives(model, q, v, tau, f_ext=f, tangent=False)
    by_q = slope(lambda x: FD(model, model.normalise(x), v, tau, f), q)
    assert_near(dq, by_q, DIFFERENCES)
    assert_near(dv, slope(lambda x: FD(model, q, x, tau, f), v, 1.0), DIFFERENCES)
    assert_near(dtau, slope(lambda x: FD(model, q, v, x, f), tau, 1.0), DIFFERENCES)


def test_redundant_constraints_along_the_motion():
    """d(v̇)/dt = ∂v̇/∂q v + ∂v̇/∂v v̇ while the loops stay closed."""
    model, q, v, _ = start("bricard")
    h, ends = 1e-3, []
    for step in (h, -h):
        problem = as_ivp(model, q, v, (0.0, step), stabilise="none")
        x = solve(problem, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        ends.append(FD(model, x[: model.nq], x[model.nq :]))
    dq, dv, _ = FD_derivatives(model, q, v)
    assert_near(dq @ v + dv @ FD(model, q, v), (ends[0] - ends[1]) / (2 * h), 1e-5)


@pytest.mark.parametrize("kind", [k for k in joint_names() if k not in ("user", "driven", "free")])
def test_every_joint_closes_a_loop(kind):
    """Between a ball joint and a rolling body, open by a little, so that all terms count."""
    rng = np.random.default_rng(3)
    b = ModelBuilder(gravity=(1.0, 2.0, -9.0), name=kind)
    part = Inertia(1.0, (0.1, 0.2, -0.1), np.diag([1.0, 1.2, 1.4]))
    b.add_body("a", 0, Spherical(), (0.1, 0.2, 0.3), part)
    b.add_body("b", "a", Free(), (0.4, -0.2, 0.3), part)
    b.add_body("c", 0, RollingSphere(0.4), (0.3, 0.1, -0.2), part)
    b.add_loop("closed", "b", "c", random_joint(kind, rng), placement_predecessor=(0.2, 0.1, -0.3))
    model = b.build()
    q, v, tau = model.neutral(), 0.5 * rng.normal(size=model.nv), rng.normal(size=model.nv)
    q = model.normalise(q + 0.05 * rng.normal(size=model.nq))
    dq, dv, _ = FD_derivatives(model, q, v, tau, tangent=False)
    assert_near(dq, slope(lambda x: FD(model, model.normalise(x), v, tau), q), DIFFERENCES)
    assert_near(dv, slope(lambda x: FD(model, q, x, tau), v), DIFFERENCES)


def driven_four_bar():
    """A crank that time moves in the tree, and a loop joint that time moves."""
    b = ModelBuilder(gravity=(0.0, -9.81, 0.0), name="driven")
    bar = Inertia(1.0, (0.5, 0, 0), np.eye(3))
    b.add_body("crank", 0, Driven(Revolute(), lambda t: [1.0 + 0.3 * np.sin(2.0 * t)]), None, bar)
    b.add_body("rod", "crank", Revolute(), (0.5, 0, 0), bar)
    b.add_body("rocker", 0, Revolute(), (1.0, 0, 0), bar)
    b.add_body("more", "rocker", Revolute(), (0.3, 0, 0), bar)
    b.add_loop("pin", "rod", "rocker", Revolute(), (1.0, 0, 0), (0.8, 0, 0))
    drive = Driven(Revolute(), lambda t: [0.4 * t])
    b.add_loop("turned", "rocker", "more", drive, (0.3, 0, 0))
    return b.build()


@pytest.mark.parametrize("keep", [{}, {"alpha": 3.0, "beta": 2.0}, {"stabilise": "none"}])
@pytest.mark.parametrize("name", ["four_bar", "free_stewart_platform"])
def test_jacobians_of_right_hand_sides(name, keep):
    """Untraced, with feedback of gaps; the traced right-hand side has the same."""
    model, q, v, tau = start(name)
    untraced = as_ivp(model, q, v, tau=tau, traced=False, **keep)
    assert isinstance(untraced.jac, StateJacobian)
    x = np.concatenate([q, v])
    nudged = x + 1e-3 * np.sin(np.arange(x.size))  # gaps and their rates count
    nudged[: model.nq] = model.normalise(nudged[: model.nq])

    def f(y):
        y = np.concatenate([model.normalise(y[: model.nq]), y[model.nq :]])
        return untraced.f(0.0, y, tau)

    J = untraced.jac(0.0, nudged, tau)
    assert_near(J[model.nq :], slope(f, nudged)[model.nq :], DIFFERENCES)
    if name == "four_bar":
        exact = as_ivp(model, q, v, tau=tau, **keep).jac(0.0, nudged, tau)
        assert_near(J, exact, 1e-9)


def test_time_moves_tree_and_loop():
    model = driven_four_bar()
    rng = np.random.default_rng(2)
    q, v, t = rng.normal(size=model.nq), rng.normal(size=model.nv), 0.3
    dq, dv, _ = FD_derivatives(model, q, v, t=t)
    assert_near(dq, differences(lambda x: FD(model, x, v, t=t), q), 1e-5)
    assert_near(dv, differences(lambda x: FD(model, q, x, t=t), v), 1e-5)


def test_implicit_methods_beyond_forty_states():
    """A row of four-bars that is not traced."""
    model = mechanisms.n_four_bar(15)
    q, v = mechanisms.entry("n_four_bar").start(model)
    problem = as_ivp(model, q, v, t_span=(0.0, 0.02), traced=False)
    run = solve(problem, method="RADAU5", rtol=1e-8, atol=1e-10)
    explicit = solve(problem, method="DOP853", rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(run.y[:, -1], explicit.y[:, -1], atol=1e-7)
    assert run.njev >= 1


def test_force_elements_with_loops():
    model, q, v, tau = start("four_bar")
    sprung = with_elements(model)
    dq, dv, _ = FD_derivatives(sprung, q, v, tau)
    assert_near(dq, slope(lambda x: FD(sprung, x, v, tau), q), DIFFERENCES)
    assert_near(dv, slope(lambda x: FD(sprung, q, x, tau), v), DIFFERENCES)


def geared_pendulums(away=0.0):
    """A gear, and a rod between points of two bodies, on a ball joint; perhaps far away."""
    b = ModelBuilder(gravity=(1.0, 2.0, -9.0), name="geared")
    part = Inertia(1.0, (0.1, 0.2, -0.1), np.diag([1.0, 1.2, 1.4]))
    b.add_body("ball", 0, Spherical(), (away, 0.2, 0.3), part)
    b.add_body("arm", "ball", Revolute("y"), (0.4, -0.2, 0.3), part)
    b.add_body("hand", "arm", Revolute("x"), (0.3, 0.1, -0.2), part)
    b.add_body("wheel", 0, Revolute("z"), (away + 0.3, 0.5, 0.0), part)
    b.add_gear("teeth", "wheel", {"arm": -2.0})

    def rod(q):
        return np.sum((q.point("hand", (0.2, 0.0, 0.1)) - q.point("wheel", (0.0, 0.3, 0.1))) ** 2)

    b.add_constraint("rod", lambda q: rod(q) - 1.0)
    return b.build()


def random_state(model, seed):
    rng = np.random.default_rng(seed)
    q = model.normalise(model.neutral() + 0.3 * rng.normal(size=model.nq))
    return q, rng.normal(size=model.nv), rng.normal(size=model.nv)


@pytest.mark.parametrize("name", ["four_bar", "geared"])
def test_traced_in_lanes_and_interpreted_alike(name):
    """One source: compiled for any model, as machine code for one, side by side, and as Python."""
    if name == "geared":
        model = geared_pendulums()
        q, v, tau = random_state(model, 4)
    else:
        model, q, v, tau = start(name)
    expected = np.array(FD_derivatives(model, q, v, tau))
    x = np.concatenate([q, v])
    f = traced_derivatives(model)
    assert_near(f(0.0, x, tau).reshape(expected.shape), expected, 1e-9)
    lanes = 4
    t, states, forces = np.zeros(lanes), np.outer(x, np.ones(lanes)), np.outer(tau, np.ones(lanes))
    states[model.nq :, 1] *= 2.0
    found = np.zeros((expected.size, lanes))
    call_lanes(f.machine_code(lanes).address, t, states, forces, found)
    assert_near(found[:, 0].reshape(expected.shape), expected, 1e-9)
    faster = np.array(FD_derivatives(model, q, 2.0 * v, tau))
    assert_near(found[:, 1].reshape(expected.shape), faster, 1e-9)
    w = derivative_tree(model).symbolic()
    w.q[:], w.v[:], w.tau[:], w.t[0] = q, v, tau, 0.0
    w.switches[0], w.switches[RANK_BY_VALUES], w.task[0] = 1, 1, CLOSED_ALONG
    stabilise(w, Stabilisation())
    closed_derivatives(w)
    assert_near(w.result.astype(float), expected, 1e-11)


def test_constraints_by_functions_and_how_far_away_they_are():
    model = geared_pendulums()
    q, v, tau = random_state(model, 4)
    dq, dv, dtau = FD_derivatives(model, q, v, tau, tangent=False)
    assert_near(dq, slope(lambda x: FD(model, model.normalise(x), v, tau), q), DIFFERENCES)
    assert_near(dv, slope(lambda x: FD(model, q, x, tau), v), DIFFERENCES)
    assert_near(dtau, slope(lambda x: FD(model, q, v, x), tau, 1.0), DIFFERENCES)
    # Points are given to the function in base coordinates: a million metres cost six digits.
    far = FD_derivatives(geared_pendulums(1e6), q, v, tau, tangent=False)
    for x, y in zip(far, (dq, dv, dtau)):
        assert_near(x, y, 1e-7)


def test_rank_decided_at_every_evaluation():
    """With "truncate" redundant constraints are left out of derivatives, too."""
    model, q, v, _ = start("four_bar")
    problem = as_ivp(model, q, v, stabilise="none", rank="truncate")
    x = np.concatenate([q, v])
    assert isinstance(problem.jac, StateJacobian)
    assert_near(problem.jac(0.0, x), slope(lambda y: problem.f(0.0, y), x), DIFFERENCES)
