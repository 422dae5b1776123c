"""Floating bases: three forms of the same dynamics, and the same tree on a `Free` joint."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from multibody import FD, ID, crba
from multibody.dynamics.book.floating import (
    floating_equation,
    floating_forward_dynamics,
    floating_hybrid_dynamics,
    floating_inverse_dynamics,
    floating_jacobian,
)
from multibody.mechanisms.random import random_tree
from tests.multibody.dynamics import floating_tables as tables
from tests.multibody.joint_samples import POOL, STEADY

# Solutions with H of condition up to some thousand.
ROUNDING = 1e-11
SEEDS = range(12)


def case(seed, gravity=(0.0, 0.0, -9.81), pool=POOL):
    """A tree of 2 to 9 bodies with any joints, those that time moves included, on a free body."""
    model = random_tree(2 + seed % 8, seed, pool, root="free", gravity=gravity)
    rng = np.random.default_rng(seed)
    q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
    return model, q, v, tau[6:], rng.standard_normal((model.n_bodies, 6))


def close(a, b, tolerance=ROUNDING, scale=0.0):
    scale = max(np.abs(b).max(initial=0.0), scale)
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(scale, 1e-300))


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_equals_that_of_a_free_joint(seed):
    model, q, v, tau, f = case(seed)
    expected = FD(model, q, v, np.concatenate([np.zeros(6), tau]), f, t=0.3)
    for form in ("aba", "crba"):
        found = floating_forward_dynamics(model, q, v, tau, f, t=0.3, form=form)
        close(found.array, expected)
    close(tables.articulated(model, q, v, tau, f, 0.3), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics(seed):
    model, q, v, tau, f = case(seed)
    moved = floating_forward_dynamics(model, q, v, tau, f, t=0.3)
    a_0, again = floating_inverse_dynamics(model, q, v, moved.joints, f, t=0.3)
    close(a_0, moved.base, scale=10.0)
    close(again, tau, scale=10.0)
    for mine, book in zip((a_0, again), tables.inverse(model, q, v, moved.joints, f, 0.3)):
        close(mine, book, scale=10.0)
    # Inverse dynamics of the model with its joint: no force acts there.
    whole = ID(model, q, v, np.concatenate([a_0, moved.joints]), f, t=0.3)
    close(whole, np.concatenate([np.zeros(6), tau]), scale=100.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_of_the_equation(seed):
    """Eq 9.13–9.16."""
    model, q, v, tau, f = case(seed)
    e = floating_equation(model, q, v, f, t=0.3)
    H = crba(model, q, t=0.3)
    close(e.matrix, H)
    for mine, book in zip(e, tables.equation(model, q, v, f, 0.3)):
        close(mine, book, scale=10.0)
    C = mb.bias_forces(model, q, v, f, t=0.3)
    close(np.concatenate([e.p_c, e.C]), C, scale=10.0)
    if not len(tau):
        return
    a = FD(model, q, v, np.concatenate([np.zeros(6), tau]), f, t=0.3)
    close(e.H_fl @ a[6:] + e.C_fl, tau, scale=100.0)
    assert np.linalg.eigvalsh(e.H_fl)[0] > 0.0
    # H^fl is the inverse of a block of H⁻¹: less inertia than with a held base.
    close(np.linalg.inv(e.H_fl), np.linalg.inv(H)[6:, 6:])
    assert np.linalg.eigvalsh(e.H - e.H_fl)[0] > -1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_momentum_and_energy(seed):
    """Ex 9.3; in base coordinates, turned into those of the ground for comparison."""
    model, q, v, _, _ = case(seed, pool=STEADY)  # what time moves is not in v
    e = floating_equation(model, q, v)
    moving = mb.kinematics(model, q, v)
    X = moving.poses[1].to_plucker().matrix()  # base from ground
    close(X.T @ e.momentum(v), mb.momentum(model, q, v))
    assert e.kinetic_energy(v) == pytest.approx(mb.energy(model, q, v).kinetic, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_floating_jacobian(seed):
    """Ex 9.4: with the base moving so that momentum is zero, bodies move with J^fl q̇."""
    model, q, v, _, _ = case(seed)
    e = floating_equation(model, q, np.zeros(model.nv), t=0.3)
    joints = v[6:]
    v[:6] = -np.linalg.solve(e.I_c, e.F @ joints)
    close(e.momentum(v), np.zeros(6), scale=1.0)
    for body in range(1, model.n_bodies + 1):
        expected = mb.body_jacobian(model, q, body, t=0.3) @ v
        close(floating_jacobian(model, q, body, t=0.3) @ joints, expected, scale=1.0)


@pytest.mark.parametrize("seed", range(4))
def test_joints_do_not_feel_gravity_in_free_fall(seed):
    model, q, v, tau, f = case(seed)
    weightless, *_ = case(seed, gravity=(0, 0, 0))
    heavy = floating_forward_dynamics(model, q, v, tau, f)
    light = floating_forward_dynamics(weightless, q, v, tau, f)
    close(heavy.joints, light.joints, scale=10.0)
    R = mb.quaternions.to_matrix(q[:4])
    turn = model.bodies[0].placement.E
    fall = np.concatenate([np.zeros(3), R.T @ turn @ model.gravity])
    close(heavy.base - light.base, fall)


def test_impulse_response_of_an_astronaut():
    """Two bodies on a slider: closed form of H^fl, the reduced mass."""
    b = mb.ModelBuilder()
    b.add_body("boat", 0, mb.Free(), inertia=mb.Inertia(30.0, (0, 0, 0), (1, 1, 1)))
    b.add_body("man", "boat", mb.Prismatic("x"), None, mb.Inertia(10.0, (0, 0, 0), (1, 1, 1)))
    model = b.build()
    q = model.neutral()
    e = floating_equation(model, q, np.zeros(7))
    assert e.H_fl[0, 0] == pytest.approx(30.0 * 10.0 / 40.0)
    found = floating_forward_dynamics(model, q, np.zeros(7), [3.0])
    assert found.joints[0] == pytest.approx(3.0 / 7.5)
    np.testing.assert_allclose(found.base, [0, 0, 0, -3.0 / 30.0, 0, -9.81], atol=1e-14)


def test_armature():
    b = mb.ModelBuilder()
    inertia = mb.Inertia(1.0, (0.2, 0.3, 0.1), (0.1, 0.2, 0.25))
    b.add_body("a", 0, mb.Free(), None, inertia)
    b.add_body("b", "a", mb.Cylindrical("x"), (1, 0, 0), inertia, armature=(0.2, 0.4))
    model = b.build()
    rng = np.random.default_rng(0)
    q, v, tau = model.random(rng), rng.standard_normal(8), rng.standard_normal(2)
    expected = FD(model, q, v, np.concatenate([np.zeros(6), tau]))
    for form in ("aba", "crba"):
        close(floating_forward_dynamics(model, q, v, tau, form=form).array, expected)
    close(floating_inverse_dynamics(model, q, v, expected[6:])[1], tau, scale=1.0)


def test_only_floating_bases_are_accepted():
    grounded = random_tree(3, 0, "revolute")
    with pytest.raises(ValueError, match="Free joint"):
        floating_forward_dynamics(grounded, np.zeros(3), np.zeros(3))
    b = mb.ModelBuilder()
    body = mb.Inertia(1.0, (0, 0, 0), (1, 1, 1))
    b.add_body("a", 0, mb.Free(), inertia=body)
    b.add_body("b", 0, mb.Revolute(), inertia=body)
    model = b.build()
    with pytest.raises(ValueError, match="'b' on the ground"):
        floating_equation(model, model.neutral(), np.zeros(7))
    model, q, v, tau, _ = case(3)
    with pytest.raises(ValueError, match="without the six of the base"):
        floating_forward_dynamics(model, q, v, np.zeros(model.nv))
    with pytest.raises(ValueError, match="one of"):
        floating_forward_dynamics(model, q, v, tau, form="rnea")
    with pytest.raises(ValueError, match="ground"):
        floating_jacobian(model, q, 0)


def raft(gravity=(0, 0, 0), loop=False):
    """Two floating roots, one in a plane, each with an arm; a rod may tie the arms together."""
    b = mb.ModelBuilder(gravity=gravity)
    body = mb.Inertia(2.0, (0.1, 0, 0), (1, 1.2, 1.4))
    b.add_body("free", 0, mb.Free(), inertia=body)
    b.add_body("flat", 0, mb.Planar("z"), inertia=body)
    b.add_body("arm", "free", mb.Revolute("z"), (0.5, 0, 0), body, armature=0.2)
    b.add_body("leg", "flat", mb.Prismatic("x"), (0, 0.5, 0), body, damping=0.3)
    if loop:
        ends = ("arm", (0.3, 0, 0)), ("leg", (0, 0, 0.2))
        b.add_constraint(
            "rod", lambda q: np.sum((q.point(*ends[0]) - q.point(*ends[1])) ** 2) - 1.0
        )
    return b.build()


@pytest.mark.parametrize("loop", [False, True])
def test_several_roots_and_planar_ones(loop):
    """Forward, inverse and hybrid against FD and ID; the base is in places 0 to 8."""
    model = raft((0, 0, -9.81), loop)
    rng = np.random.default_rng(2)
    q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(2)
    if loop:
        q = mb.assemble(model, q).q
        v = mb.consistent_velocity(model, q, v)
    f = rng.standard_normal((4, 6))
    expected = FD(model, q, v, np.concatenate([np.zeros(9), tau]), f)
    found = floating_forward_dynamics(model, q, v, tau, f)
    close(found.array, expected)
    close(floating_equation(model, q, v, f).matrix, crba(model, q))
    hybrid = floating_hybrid_dynamics(model, q, v, {"leg": tau[1]}, {"arm": expected[9]}, f)
    close(np.concatenate([hybrid.base, hybrid.joints]), expected, 1e-9)
    close(hybrid.tau, tau, 1e-9)
    if loop:
        return
    base, again = floating_inverse_dynamics(model, q, v, expected[9:], f)
    close(base, expected[:9])
    close(again, tau, scale=10.0)
    e = floating_equation(model, q, np.zeros(model.nv))
    v[:9] = -np.linalg.solve(e.I_c, e.F @ v[9:])
    for body in ("free", "leg"):
        expected = mb.body_jacobian(model, q, body) @ v
        close(floating_jacobian(model, q, body) @ v[9:], expected, scale=1.0)


def test_what_holds_a_base_to_the_ground_is_named():
    b = mb.ModelBuilder()
    body = mb.Inertia(1.0, (0, 0, 0), (1, 1, 1))
    b.add_body("a", 0, mb.Free(), inertia=body)
    b.add_body("b", "a", mb.Revolute(), inertia=body)
    b.add_constraint("inner", lambda q: np.sum((q.point("a") - q.point("b", (1, 0, 0))) ** 2) - 1.0)
    model = b.build()
    floating_jacobian(model, model.neutral(), "b")  # the distance of points inside floats along
    b.add_constraint("rope", lambda q: np.sum(q.point("b", (1, 0, 0)) ** 2) - 1.0)
    with pytest.raises(ValueError, match=r"'rope\[0\]' holds to the ground"):
        floating_jacobian(b.build(), model.neutral(), "b")
    with pytest.raises(ValueError, match="'a' is the base"):
        floating_hybrid_dynamics(model, model.neutral(), np.zeros(7), a={"a": [0.0] * 6})


def test_energy_and_momentum_of_several_roots_take_v_as_the_model_has_it():
    """Variables of a joint stand between those of two roots."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("h1", 0, mb.Free(), inertia=mb.Inertia(2.0, (0.1, 0, 0), (1, 1, 1)))
    b.add_body("a", "h1", mb.Revolute("z"), inertia=mb.Inertia(1.0, (0, 0.3, 0), (1, 1, 1)))
    b.add_body("h2", 0, mb.Free(), inertia=mb.Inertia(3.0, (0, 0, 0.2), (3, 3, 3)))
    model = b.build()
    rng = np.random.default_rng(5)
    q, v = model.random(rng), rng.standard_normal(model.nv)
    found = floating_equation(model, q, v)
    assert found.kinetic_energy(v) == pytest.approx(mb.energy(model, q, v).kinetic, rel=1e-13)
    H = crba(model, q)
    roots = [*range(6), *range(7, 13)]
    np.testing.assert_allclose(found.momentum(v), (H @ v)[roots], rtol=1e-12, atol=1e-12)
