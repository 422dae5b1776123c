"""Analytical derivatives of the dynamics against traced ones, differences, and each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from integrators import solve
from multibody import (
    FD,
    ID,
    AngleSequence,
    Driven,
    FD_derivatives,
    FD_x,
    ID_derivatives,
    Inertia,
    Model,
    ModelBuilder,
    Revolute,
    SingularModelError,
    Spherical,
    UserJoint,
    as_ivp,
    crba,
    mechanisms,
)
from multibody.dynamics.derivatives.laws import differences
from multibody.dynamics.derivatives.results import FORWARD_ALONG, FORWARD_BY, derivatives
from multibody.dynamics.functions import position_rate, rate_along
from multibody.dynamics.storage.loading import load_forces
from multibody.joints import joint_names
from multibody.mechanisms.random import random_tree
from multibody.runs.derivatives import StateJacobian, derivative_tree, traced_derivatives
from multibody.runs.traced import traced_fd, traced_id
from tests.multibody.derivative_samples import assert_near, with_elements

# Two exact ways differ by rounding, which the inverse of H enlarges.
EXACT = 1e-10
# Differences of sixth order, in parts of the largest derivative.
DIFFERENCES = 1e-7


def bead(q):
    return np.eye(3), np.array([q[0], q[0] ** 2 / 2, np.sin(q[0])])


def shaken(t, q):
    c, s = np.cos(q[0] + t), np.sin(q[0] + t)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return R, np.array([q[0], t * q[0] ** 2 / 2, np.sin(q[0] * t)])


def branching_law(t, q, v):
    """A hinge by a law that cannot be traced."""
    c, s = (np.cos(q[0]), np.sin(q[0])) if float(q[0]) < 99.0 else (1.0, 0.0)
    E = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    S = np.array([[0.0, 0.0, 1.0, 0.3 * c, -0.3 * s, 0.0]]).T
    bias = np.array([0.0, 0.0, 0.0, -0.3 * s, -0.3 * c, 0.0]) * v[0] ** 2
    return E, np.array([0.3 * q[0], 0.0, 0.0]), S, bias, None


FUNCTIONS = {
    "user": lambda: UserJoint(bead, ["s"]),
    "user with time": lambda: UserJoint(shaken, ["s"]),
    "user, untraceable": lambda: UserJoint(None, ["s"], law=branching_law),
    "driven": lambda: Driven(Revolute("y"), lambda t: [np.sin(3.0 * t)]),
}
KINDS = [*(kind for kind in joint_names() if kind not in ("user", "driven")), *FUNCTIONS]


def joint_of(kind, rng):
    from multibody.mechanisms.random import random_joint

    return FUNCTIONS[kind]() if kind in FUNCTIONS else random_joint(kind, rng)


def tree_around(kind, reverse, seed=0):
    """The joint in the middle of a branching tree, between others."""
    rng = np.random.default_rng(seed)
    b = ModelBuilder(gravity=(1.0, -2.0, -9.0), name=kind)

    def body():
        c = rng.normal(size=3)
        return Inertia(rng.uniform(1, 2), 0.3 * c, np.diag(rng.uniform(1.0, 1.4, 3)))

    b.add_body("a", 0, Revolute(rng.normal(size=3)), rng.normal(size=3), body())
    b.add_body("b", "a", joint_of(kind, rng), rng.normal(size=3), body(), reverse=reverse)
    b.add_body("c", "b", Spherical(), rng.normal(size=3), body())
    b.add_body("d", "b", Revolute("x"), rng.normal(size=3), body())
    return b.build()


def state(model, seed=0):
    rng = np.random.default_rng(seed)
    q, v = model.random(rng), rng.normal(size=model.nv)
    return q, v, rng.normal(size=model.nv), rng.normal(size=(model.n_bodies, 6))


def directions(model, q, t):
    columns = [position_rate(model, q, e, t=t) for e in np.eye(model.nv)]
    return np.array(columns).T.reshape(model.nq, model.nv)


# ---------------------------------------------------------------------- every joint


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_inverse_dynamics_of_every_joint(kind, reverse):
    """With gravity, time and external forces, along velocities and by the numbers in q."""
    model, t = tree_around(kind, reverse), 0.3
    q, v, a, f = state(model)
    by_q = differences(lambda x: ID(model, model.normalise(x), v, a, f, t=t), q)
    by_v = differences(lambda x: ID(model, q, x, a, f, t=t), v)
    expected = by_q @ directions(model, q, t), by_v, crba(model, q, t=t)
    found = ID_derivatives(model, q, v, a, f_ext=f, t=t)
    for x, y in zip(found, expected):
        assert_near(x, y, DIFFERENCES)
    raw = ID_derivatives(model, q, v, a, f_ext=f, t=t, tangent=False)
    assert_near(raw[0], by_q, DIFFERENCES)
    np.testing.assert_array_equal(raw[1], found[1])
    np.testing.assert_array_equal(raw[2], found[2])


@pytest.mark.parametrize("kind", KINDS)
def test_forward_dynamics_of_every_joint_with_force_elements(kind):
    model, t = with_elements(tree_around(kind, False)), 0.3
    q, v, tau, f = state(model, 1)
    by_q = differences(lambda x: FD(model, model.normalise(x), v, tau, f, t=t), q)
    by_v = differences(lambda x: FD(model, q, x, tau, f, t=t), v)
    by_tau = differences(lambda x: FD(model, q, v, x, f, t=t), tau)
    found = FD_derivatives(model, q, v, tau, f_ext=f, t=t)
    for x, y in zip(found, (by_q @ directions(model, q, t), by_v, by_tau)):
        assert_near(x, y, DIFFERENCES)
    J = StateJacobian(model, None, lambda t, q, v, p: f)(t, np.concatenate([q, v]))
    without = differences(
        lambda x: FD(model, model.normalise(x), v, None, f, t=t), q
    )  # the law of joint forces was left out
    assert_near(J[model.nq :, : model.nq], without, DIFFERENCES)
    assert_near(
        J[: model.nq, : model.nq],
        differences(lambda x: rate_along(model, x, v, t), q),  # as a run takes it
        DIFFERENCES,
    )
    assert_near(J[: model.nq, model.nq :], directions(model, q, t), EXACT)


@pytest.mark.parametrize("seed", range(4))
def test_traced_derivatives_are_the_same(seed):
    """Graphs differentiated node by node know nothing of twists. Quaternions move on the sphere."""
    model = random_tree(2, seed, branching=0.0)
    q, v, tau, _ = state(model, seed)
    x, N = np.concatenate([q, v]), directions(model, q, 0.0)
    for found, f in (
        (FD_derivatives(model, q, v, tau), traced_fd(model)),
        (ID_derivatives(model, q, v, tau), traced_id(model)),
    ):
        J = np.asarray(f.jacobian()(0.0, x, tau))[-model.nv :]
        last = np.asarray(f.parameter_jacobian()(0.0, x, tau))[-model.nv :]
        for a, b in zip(found, (J[:, : model.nq] @ N, J[:, model.nq :], last)):
            assert_near(a, b, EXACT)


def test_forward_and_inverse_derivatives_belong_together():
    """∂FD = −H⁻¹ ∂ID at the accelerations that FD gives."""
    model = with_elements(random_tree(20, 3))
    q, v, tau, f = state(model, 2)
    a = FD(model, q, v, tau, f)
    inverse = ID_derivatives(model, q, v, a, f_ext=f)
    forward = FD_derivatives(model, q, v, tau, f_ext=f)
    H = inverse[2]
    for x, y in zip(forward[:2], inverse[:2]):
        assert_near(H @ x, -y, EXACT)
    assert_near(H @ forward[2], np.eye(model.nv), EXACT)


def test_pendulum_in_closed_form():
    """θ̈ = τ − g sin θ − c θ̇."""
    model = mechanisms.pendulum()
    model = Model((replace(model.bodies[0], damping=np.array([0.3])),), name="damped")
    dq, dv, dtau = FD_derivatives(model, [0.7], [2.0], [0.1])
    np.testing.assert_allclose([dq[0, 0], dv[0, 0], dtau[0, 0]], [-9.81 * np.cos(0.7), -0.3, 1.0])


def test_far_from_the_origin_nothing_is_lost():
    """A free chain a thousand kilometres away: what couples its joints does not know."""
    near = random_tree(5, 1, ["revolute", "universal"], root="free")
    q, v, tau, _ = state(near, 3)
    far = q.copy()
    far[4:7] += [1e6, -2e6, 3e6]
    for a, b in zip(FD_derivatives(near, q, v, tau), FD_derivatives(near, far, v, tau)):
        assert_near(b, a, 1e-9)


# ---------------------------------------------------------------------- the same everywhere


@pytest.mark.parametrize("task", [FORWARD_ALONG, FORWARD_BY])
def test_interpreted_compiled_and_on_symbols(task):
    """One kernel, three ways to run it."""
    from integrators import traced

    model = with_elements(tree_around("universal", False))
    q, v, tau, f = state(model, 5)
    tree = derivative_tree(model)

    def fill(w, q, v, tau):
        w.t[0], w.task[0] = 0.0, task
        w.q[:], w.v[:], w.tau[:] = q, v, tau
        return w

    def result(w):
        return (w.result if task == FORWARD_ALONG else w.jacobian).copy()

    w = fill(tree.symbolic(), q, v, tau)
    w.f_ext[:], w.switches[0] = f, 1
    derivatives(w)
    interpreted = result(w).astype(float)
    J = FD_derivatives(model, q, v, tau, f_ext=f, tangent=task == FORWARD_ALONG)
    if task == FORWARD_ALONG:
        assert_near(np.array(J), interpreted, 1e-12)
    else:
        assert_near(np.hstack(J[:2]), interpreted[model.nq :], 1e-12)

    def symbolic(t, x, p):
        w = fill(tree.symbolic(), x[: model.nq], x[model.nq :], p)
        w.f_ext[:], w.switches[0] = f, 1
        derivatives(w)
        return result(w).ravel()

    code = traced(symbolic, n=model.nq + model.nv, params=model.nv, outputs=interpreted.size)
    assert_near(code(0.0, np.concatenate([q, v]), tau), interpreted.ravel(), 1e-12)


def test_long_chains_are_served_at_once():
    """No code is made for a model: a hundred joints, in all kinds of input."""
    model = mechanisms.serial_arm(100)
    q, v, tau, _ = state(model, 4)
    found = FD_derivatives(model, q, v, tau)
    for x, y in zip(found, FD_derivatives(model, list(q), tuple(v), tau.tolist())):
        np.testing.assert_array_equal(x, y)
    step, e = 1e-6, np.eye(100)[40]
    for k, at in enumerate((q, v)):
        moved = [[q, v], [q, v]]
        moved[0][k], moved[1][k] = at + step * e, at - step * e
        ahead, behind = (FD(model, *x, tau) for x in moved)
        assert_near(found[k][:, 40], (ahead - behind) / (2 * step), 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_articulated_inertias_give_what_factors_give(seed, monkeypatch):
    """Deep trees are solved another way; here both ways on trees with all joints and branches."""
    model = with_elements(random_tree(12, seed, branching=0.5))
    q, v, tau, f = state(model, seed)
    by_factors = FD_derivatives(model, q, v, tau, f_ext=f)
    monkeypatch.setattr("multibody.dynamics.derivatives.articulated.DEEP", 0.0)
    other = replace(model, name="deep")
    assert derivative_tree(other).is_deep
    assert not derivative_tree(model).is_deep
    for x, y in zip(FD_derivatives(other, q, v, tau, f_ext=f), by_factors):
        assert_near(x, y, EXACT)


def test_traced_derivatives():
    model = tree_around("universal", False)
    q, v, tau, _ = state(model, 5)
    found = traced_derivatives(model)(0.0, np.concatenate([q, v]), tau)
    for x, y in zip(found.reshape(3, model.nv, model.nv), FD_derivatives(model, q, v, tau)):
        assert_near(x, y, 1e-12)


def test_results_are_copies_and_mistakes_are_told():
    model = mechanisms.double_pendulum()
    first = FD_derivatives(model, [0.1, 0.2], [0.0, 1.0])
    before = [x.copy() for x in first]
    FD_derivatives(model, [1.0, -0.2], [3.0, 1.0])
    for x, y in zip(first, before):
        np.testing.assert_array_equal(x, y)
    with pytest.raises(ValueError, match="v: expected 2 numbers"):
        FD_derivatives(model, [0.1, 0.2], [0.0])
    with pytest.raises(ValueError, match="finite"):
        FD_derivatives(model, np.array([0.1, np.nan]), np.zeros(2))
    with pytest.raises(ValueError, match="norm 2"):
        FD_derivatives(mechanisms.free_body(), [2, 0, 0, 0, 0, 0, 0], np.zeros(6))
    b = ModelBuilder(name="gimbal")
    b.add_body("a", 0, AngleSequence("zyx"), inertia=Inertia(1.0, (0, 0, 0), np.eye(3)))
    with pytest.raises(SingularModelError, match="'a'"):
        FD_derivatives(b.build(), [0.0, np.pi / 2, 0.0], np.zeros(3))


# ---------------------------------------------------------------------- right-hand sides


def check_jacobian(problem, model, t=0.2, seed=0, tolerance=1e-7):
    q, v, _, _ = state(model, seed)
    x, nq = np.concatenate([q, v]), model.nq
    params = (problem.params,) if len(problem.params) else ()

    def f(y):
        y = y.copy()
        y[:nq] = model.normalise(y[:nq])
        return np.asarray(problem.f(t, y, *params))[nq:]

    J = problem.jac(t, x, *params)
    on_sphere = np.eye(len(x))  # force laws may look at a quaternion's norm, mechanics does not
    for at in model.quaternion_places:
        p = x[at : at + 4]
        on_sphere[at : at + 4, at : at + 4] -= np.outer(p, p)
    assert_near(J[nq:] @ on_sphere, differences(f, x), tolerance)
    rates = differences(lambda y: np.asarray(problem.f(t, y, *params))[:nq], x)
    assert_near(J[:nq], rates, tolerance)


def control(t, q, v):
    return np.array([np.sin(q[0]) * v[1], -2.0 * v[0], *(q[2] * t for _ in v[2:])])


def wind(t, q, v):
    push = [v[0] * q[1], t, q[0], v[1] ** 2, 1.0, q[2]]
    return {"body2": push, "body3": [x * v[2] for x in push]}


@pytest.mark.parametrize("traced", [None, False])
@pytest.mark.parametrize(
    "forces", [{}, {"tau": control}, {"f_ext": wind}, {"tau": control, "f_ext": wind}]
)
def test_jacobian_of_right_hand_sides(forces, traced):
    """Force laws that look at the state count, whether they can be traced or not."""
    model = random_tree(4, 2, ["revolute", "spherical", "rolling_sphere"], root="free")
    q, v, _, _ = state(model)
    problem = as_ivp(model, q, v, traced=traced, quaternions="stabilise", **forces)
    check_jacobian(problem, model)


def test_jacobian_with_constant_forces_and_a_law_that_branches():
    model = mechanisms.serial_arm(5)
    problem = as_ivp(model, tau=np.arange(5.0))
    assert isinstance(problem.jac, StateJacobian)
    check_jacobian(problem, model)

    def friction(t, q, v):
        return np.array([-1.0 if x > 0.0 else 1.0 for x in v]) * q**2

    problem = as_ivp(model, tau=friction)
    assert isinstance(problem.jac, StateJacobian)
    check_jacobian(problem, model)


@pytest.mark.parametrize("n", [20, 50])
def test_implicit_methods_on_long_chains(n):
    """One Jacobian and few evaluations where differences would take 2n of them."""
    model = mechanisms.serial_arm(n)
    problem = as_ivp(model, np.full(n, 0.1), t_span=(0.0, 1e-3))
    run = solve(problem, method="RADAU5", rtol=1e-6, atol=1e-8)
    assert run.njev >= 1
    assert run.nfev < 2 * n
    x = problem.y0 + 0.5e-3 * FD_x(model, problem.y0)
    np.testing.assert_allclose(run.y[:n, -1], problem.y0[:n] + 1e-3 * x[n:], atol=1e-4)


def test_external_forces_are_loaded_afresh():
    """Springs add to external forces; nothing is left from the call before."""
    model = with_elements(tree_around("revolute", False))
    q, v, tau, f = state(model)
    first = FD_derivatives(model, q, v, tau)
    FD_derivatives(model, q, v, tau, f_ext=f)
    for x, y in zip(first, FD_derivatives(model, q, v, tau)):
        np.testing.assert_array_equal(x, y)
    w = derivative_tree(model).workspace
    load_forces(model, w, None)
    assert not w.f_ext.any()


@pytest.mark.parametrize("name", ["rolling_sphere", "spinning_top", "free_stewart_platform"])
def test_jacobians_of_runs_follow_the_norms_of_quaternions(name):
    """A right-hand side takes quaternions as they are; so must its Jacobian."""
    entry = mechanisms.entry(name)
    model = entry.model()
    problem = as_ivp(model, *entry.start(model), (0, 1))
    x, step = problem.y0, 1e-6  # rounding leaves 1e-9 of the largest entry
    columns = [
        (problem.rhs(0.0, x + step * e) - problem.rhs(0.0, x - step * e)) / (2 * step)
        for e in np.eye(len(x))
    ]
    assert_near(problem.jac(0.0, x), np.array(columns).T, 1e-7)
