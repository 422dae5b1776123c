"""Wrenches in all joints: closed forms, free-body equations of every body, action = reaction."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import solve
from multibody.dynamics.book.base_view import (
    applied_forces,
    base_coordinates,
    body_joint,
    cross_force,
)
from tests.multibody.random_mechanisms import draw


def test_pin_of_a_pendulum():
    """Along the rod m(g cos θ + L ω²), across it a quarter … none for a point mass: closed form."""
    L, m, g = 0.7, 2.0, 9.81
    model = mb.mechanisms.pendulum(length=L, mass=m, gravity=g)
    for theta, omega in ((0.0, 3.0), (0.9, -2.0), (2.5, 1.0), (np.pi / 2, 0.0)):
        down = np.array([np.sin(-theta), 0.0, -np.cos(theta)])
        pull = m * (g * np.cos(theta) + L * omega**2)
        place = mb.point_position(model, [theta], "bob", (0, 0, -L))
        along = place / L
        found = mb.joint_reactions(model, [theta], [omega], coordinates="base")
        assert abs(abs(along @ down) - 1.0) < 1e-12
        np.testing.assert_allclose(found["bob"], [0, 0, 0, *(-pull * along)], atol=1e-12)
        assert found.is_determined


def test_pin_of_a_falling_rod_carries_a_quarter_of_its_weight():
    b = mb.ModelBuilder()
    b.add_body("rod", 0, mb.Revolute("y"), inertia=mb.rod((0, 0, 0), (1, 0, 0), mass=3.0))
    found = mb.joint_reactions(b.build(), [0.0], [0.0])
    np.testing.assert_allclose(found["rod"], [0, 0, 0, 0, 0, 3 * 9.81 / 4], atol=1e-12)


def free_body_wrenches(c):
    """All wrenches in joint coordinates from the equations of each body alone, by least squares.

    Unknown are six numbers a joint. Known are the accelerations; equations are Newton and Euler's
    for each body, and that a joint resists only where it does not move freely: Sᵀw = active force.
    """
    model, w = c.model, base_coordinates(c.model, c.q, c.v, c.t)
    n, joints = model.n_bodies, model.n_bodies + len(model.loops)
    if model.loops:
        found = mb.constrained_accelerations(model, c.q, c.v, c.tau, c.f_ext, t=c.t)
        v_dot = found.accelerations
    else:
        v_dot = mb.FD(model, c.q, c.v, c.tau, c.f_ext, t=c.t)
    active, known = applied_forces(model, c.q, c.v, c.tau, c.f_ext, c.t, w)
    rows, right = [], []
    poses = mb.kinematics(model, c.q, t=c.t).poses
    frames = list(w.X)
    for loop in model.loops:
        X = w.X[loop.successor - 1] if loop.successor else np.eye(6)
        frames.append(loop.placement_successor.matrix() @ X)
    gravity = np.array([0, 0, 0, *model.gravity])
    for i in range(n):
        a = sum((w.c[j] + w.S[j] @ v_dot[model.v_index[j]] for j in w.support(i)), np.zeros(6))
        I = w.inertia[i]
        right.append(I @ (a - gravity) + cross_force(w.v[i]) @ I @ w.v[i] - known[i])
        row = np.zeros((6, 6 * joints))
        row[:, 6 * i : 6 * i + 6] = frames[i].T  # from joint to base coordinates
        for j, other in enumerate(model.bodies):
            if other.parent == i + 1:
                row[:, 6 * j : 6 * j + 6] = -frames[j].T
        for k, loop in enumerate(model.loops, n):
            sign = (loop.successor == i + 1) - (loop.predecessor == i + 1)
            if sign:
                row[:, 6 * k : 6 * k + 6] = sign * frames[k].T
        rows.append(row)
    for i, body in enumerate(model.bodies):
        at_q, at_v = model.q_index[i], model.v_index[i]
        S = body_joint(body, c.q[at_q], c.v[at_v], c.t)[1]
        row = np.zeros((body.joint.nv, 6 * joints))
        row[:, 6 * i : 6 * i + 6] = S.T
        rows.append(row)
        right.append(active[at_v] - body.armature * v_dot[at_v])
    for k, loop in enumerate(model.loops, n):
        state = mb.loop_joint_state(model, c.q, c.v, loop.name, t=c.t)
        S = loop.joint.motion(state.position, None, c.t).S
        row = np.zeros((S.shape[1], 6 * joints))
        row[:, 6 * k : 6 * k + 6] = S.T
        rows.append(row)
        right.append(np.zeros(S.shape[1]))
    A, b = np.vstack(rows), np.concatenate(right)
    x, _, rank, _ = np.linalg.lstsq(A, b, rcond=1e-9)
    assert np.abs(A @ x - b).max() < 1e-8 * (1 + np.abs(b).max())
    undetermined = np.linalg.svd(A)[2][rank:]
    assert len(poses) == n + 1
    return x.reshape(joints, 6), np.abs(undetermined).max(axis=0, initial=0.0).reshape(joints, 6)


def all_wrenches(found):
    return np.array([*found.bodies.values(), *found.loops.values()])


@pytest.mark.parametrize("seed", range(16))
def test_free_body_equations_of_random_mechanisms(seed):
    """Of least norm where several wrenches do, and marked exactly there."""
    c = draw(seed, loops=seed % 3)
    found = mb.joint_reactions(c.model, c.q, c.v, c.tau, c.f_ext, t=c.t)
    expected, open_ = free_body_wrenches(c)
    scale = 1.0 + np.abs(expected).max()
    np.testing.assert_allclose(all_wrenches(found), expected, rtol=0, atol=1e-7 * scale)
    flags = np.array(list(found.determined.values()))
    np.testing.assert_array_equal(flags, open_ < 1e-6)


def four_bar():
    entry = mb.mechanisms.entry("four_bar")
    model = entry.model()
    return (model, *entry.start(model))


def test_frictionless_pins_of_a_four_bar_carry_no_couple():
    """By free-body equations to 1e-12; `joint_forces` had 1.97, 3.84 and 7.08 Nm here."""
    from tests.multibody.random_mechanisms import Drawn

    model, q, v = four_bar()
    c = Drawn(model, q, v, np.zeros(3), np.zeros((3, 6)), 0.0)
    found = mb.joint_reactions(model, q, v)
    expected, _ = free_body_wrenches(c)
    np.testing.assert_allclose(all_wrenches(found), expected, rtol=0, atol=1e-12)
    assert np.abs(expected).max() > 1.0
    axis = model.bodies[0].joint.axis
    for wrench in found.bodies.values():
        assert abs(wrench[:3] @ axis) < 1e-12
    # Out of the plane nothing is determined, and nothing is needed.
    assert not found.is_determined
    for (kind, name), flags in found.determined.items():
        wrench = (found.bodies if kind == "body" else found.loops)[name]
        assert np.abs(wrench[~flags]).max() < 1e-12
    with pytest.raises(ValueError, match=r"joint_forces: .* use joint_reactions"):
        mb.joint_forces(model, q, v, np.zeros(3))


def test_coordinates_tell_the_same_wrench():
    c = draw(5, loops=2)
    parts = {
        way: mb.joint_reactions(c.model, c.q, c.v, c.tau, c.f_ext, t=c.t, coordinates=way)
        for way in ("joint", "body", "base")
    }
    poses = mb.kinematics(c.model, c.q, t=c.t).poses
    ends = [*range(1, c.model.n_bodies + 1), *(loop.successor for loop in c.model.loops)]
    rows = zip(ends, *(all_wrenches(parts[way]) for way in ("joint", "body", "base")))
    for k, (end, joint, body, base) in enumerate(rows):
        R, p = poses[end].R, poses[end].p
        force = R @ body[3:]
        np.testing.assert_allclose(base, [*(R @ body[:3] + np.cross(p, force)), *force], atol=1e-9)
        if k < c.model.n_bodies:
            np.testing.assert_array_equal(joint, body)
        else:
            X = c.model.loops[k - c.model.n_bodies].placement_successor
            np.testing.assert_allclose(X.matrix().T @ joint, body, atol=1e-9)


def test_loop_elements_are_part_of_their_joint():
    """Action of a damper in a loop pin: its couple about the pin is −d ω, and none elsewhere."""
    model, q, v = four_bar()
    element = mb.LoopElement("joint", damping=0.5)
    found = mb.joint_reactions(model, q, v, elements=[element])
    speed = mb.loop_joint_state(model, q, v, "joint").velocity[0]
    axis = model.loops[0].joint.axis
    assert abs(found["joint"][:3] @ axis + 0.5 * speed) < 1e-12
    for wrench in found.bodies.values():
        assert abs(wrench[:3] @ model.bodies[0].joint.axis) < 1e-12
    # Power of all wrenches on all bodies is the change of kinetic energy less that of weight.
    tau = mb.loop_elements(model, [element])(0.0, q, v)
    a = mb.constrained_accelerations(model, q, v, tau).accelerations
    in_base = mb.joint_reactions(model, q, v, elements=[element], coordinates="base")
    w = base_coordinates(model, q, v)
    power = in_base["joint"] @ (w.v[2] - w.v[1])
    assert model.loops[0].successor == 3
    assert model.loops[0].predecessor == 2
    assert abs(power + 0.5 * speed**2) < 1e-12
    gained = v @ (mb.crba(model, q) @ a + mb.bias_forces(model, q, v))
    assert abs(gained - power) < 1e-12 * (1 + abs(power))


@pytest.mark.parametrize("way", ["as_ivp", "as_dae"])
def test_reactions_along_a_run(way):
    """The same as at each state; and from `observed`, with the forces of the problem."""
    model, q, v = four_bar()
    tau = np.array([0.5, 0.0, 0.0])
    if way == "as_ivp":
        problem = mb.as_ivp(model, q, v, (0, 0.3), tau)
    else:
        problem = mb.as_dae(model, q, v, (0, 0.3), tau, formulation="projected")
    run = solve(problem, rtol=1e-8, atol=1e-10, method="DOP853")
    found = run.observed.reactions
    assert found["crank"].shape == (6, len(run.t))
    seen = run.observed
    last = mb.joint_reactions(model, seen.q[:, -1], seen.v[:, -1], tau, t=float(run.t[-1]))
    for name in [*last.bodies, *last.loops]:
        np.testing.assert_allclose(found[name][:, -1], last[name], rtol=0, atol=1e-9)
    along = mb.reactions_along(model, run, tau, coordinates="base")
    np.testing.assert_allclose(along["crank"].shape, (6, len(run.t)))
