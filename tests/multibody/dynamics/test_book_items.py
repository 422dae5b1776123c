"""Worked systems and statements of chapters 2 and 3 that no other test asserts."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from multibody.algebra.subspaces import Subspace
from multibody.dynamics.loops.independent import independent_coordinates

ROUNDING = 1e-10
BODY = mb.Inertia(1.3, (0.2, -0.1, 0.3), (0.5, 0.6, 0.7))
JOINTS = [
    mb.Revolute("y"), mb.Helical("z", 0.3), mb.Cylindrical("x"), mb.Spherical(), mb.Planar("z"),
    mb.Universal(), mb.RackPinion(0.4), mb.AngleSequence("zyx"), mb.Fixed(), mb.Free(),
]  # fmt: skip


def close(found, expected, tolerance=ROUNDING):
    scale = 1.0 + np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("joint", JOINTS, ids=lambda joint: joint.kind)
def test_a_constrained_body_by_three_methods(joint):
    """§3.6: Φ and b of the body; [I T; Tᵀ 0] with the constraint force; H and C. And FD."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("body", 0, joint, None, BODY)
    model, rng = b.build(), np.random.default_rng(3)
    q, v, tau = model.random(rng), rng.uniform(-1, 1, model.nv), rng.uniform(-1, 1, model.nv)
    moved = joint.motion(q, v)
    S, n = moved.S, joint.nv
    T = Subspace(S).complement().basis
    # The body's own coordinates: v_J is the velocity, so v_s × v_J = 0 and Ṡq̇ is c_J.
    I, v_s = BODY.matrix(), mb.Motion(moved.v)
    p = mb.crf(v_s) @ I @ moved.v
    H = S.T @ I @ S
    active = S @ np.linalg.solve(S.T @ S, tau)  # any force with Sᵀf = τ
    close(mb.FD(model, q, v, tau), np.linalg.solve(H, tau - S.T @ (I @ moved.c + p)))
    Phi = S @ np.linalg.solve(H, S.T)
    a = Phi @ (active - p - I @ moved.c) + moved.c
    system = np.block([[I, T], [T.T, np.zeros((6 - n, 6 - n))]])
    right = np.concatenate([active - p, T.T @ moved.c])
    close(np.linalg.solve(system, right)[:6], a)
    close(mb.kinematics(model, q, v, mb.FD(model, q, v, tau)).accelerations[1], a)
    close(Phi @ I @ Phi, Phi)
    assert np.linalg.matrix_rank(Phi) == n
    close(Phi @ T, np.zeros((6, 6 - n)))


def test_three_discs_in_a_taut_string():
    """§3.4: l₁ + l₂ + l₃ + 2πr = p binds three bodies at once. They turn as an equal triangle.

    The string pulls each disc inwards with 2 T cos 30°, which must be m ω² R.
    """
    m, radius, spin, R = 0.7, 0.1, 2.0, 1.1
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    for k in range(3):
        b.add_body(f"disc{k}", 0, mb.Planar("z"), None, mb.Inertia(m, (0, 0, 0), (1, 1, 1)))
    around = 2 * np.pi * radius

    def taut(t, q, p):
        at = [q.point(f"disc{k}", (0, 0, 0)) for k in range(3)]
        sides = [at[k] - at[(k + 1) % 3] for k in range(3)]
        return sum(np.sqrt(s[0] * s[0] + s[1] * s[1]) for s in sides) + around - p[0]

    b.add_constraint("string", taut, parameters=[3 * np.sqrt(3) * R + around])
    model = b.build()
    angles = 2 * np.pi / 3 * np.arange(3)
    places = R * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # A planar joint's translations are in the predecessor's axes, its velocities in the body's.
    q = np.concatenate([[0.0, *place] for place in places])
    v = np.concatenate([[0.0, -spin * y, spin * x] for x, y in places])
    found = mb.constrained_accelerations(model, q, v)
    a = found.accelerations.reshape(3, 3)
    close(a[:, 1:], -(spin**2) * places)
    close(np.abs(found.multipliers), [m * spin**2 * R / np.sqrt(3)])
    assert found.rank == 1
    assert mb.mobility(model, q).mobility == 8


def test_a_sleeve_whose_slide_is_prescribed():
    """§3.4: cylindrical with one freedom given, prismatic given; T is not ½vᵀHv (§3.1)."""
    m, J, t, g = 2.0, 0.3, 0.4, 9.81

    def sleeve(t, q):
        c, s = np.cos(q[0]), np.sin(q[0])
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), [0.0, 0.0, np.sin(3 * t)]

    speed, lift = 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    body = mb.Inertia(m, (0, 0, 0), (J, J, J))
    joints = (mb.UserJoint(sleeve, ["turn"]), mb.Driven(mb.Prismatic("z"), lambda t: np.sin(3 * t)))
    for joint in joints:
        b = mb.ModelBuilder(gravity=(0, 0, -g))
        b.add_body("sleeve", 0, joint, None, body)
        model = b.build()
        q, v, tau = np.full(model.nq, 0.2), np.full(model.nv, 0.7), np.full(model.nv, 0.5)
        close(mb.FD(model, q, v, tau, t=t), tau / J)
        close(mb.energy(model, q, v, t=t).kinetic, 0.5 * m * speed**2 + 0.5 * J * v @ v)
        H = mb.crba(model, q, t=t)
        assert abs(0.5 * v @ H @ v - mb.energy(model, q, v, t=t).kinetic) > 0.1
        force = mb.joint_reactions(model, q, v, tau, t=t)["sleeve"]
        close(force[5], m * (lift + g))


@pytest.mark.parametrize("name", ["four_bar", "bricard", "delta_robot"])
def test_statements_about_constrained_equations(name):
    """Rank of the system is n + rank K (3.17); G gives T, u and power (3.20–3.23, 8.48)."""
    entry = mb.mechanisms.entry(name)
    model = entry.model()
    q, v = entry.start(model)
    v = mb.consistent_velocity(model, q, np.arange(1.0, model.nv + 1.0))
    c, H = mb.constraints(model, q, v), mb.crba(model, q)
    n, rank = model.nv, np.linalg.matrix_rank(c.K, tol=1e-8)
    system = np.block([[H, c.K.T], [c.K, np.zeros((len(c.K), len(c.K)))]])
    assert np.linalg.matrix_rank(system, tol=1e-8) == n + rank
    found = independent_coordinates(model, q, v)
    G = found.G
    close(c.K @ G, np.zeros((len(c.K), n - rank)))
    close(c.K @ found.g, c.gamma, 1e-8)
    y = np.linalg.lstsq(G, v, rcond=None)[0]
    close(G @ y, v)
    close(0.5 * y @ G.T @ H @ G @ y, mb.energy(model, q, v).kinetic)
    assert np.linalg.eigvalsh(G.T @ H @ G).min() > 0.0
    tau = np.linspace(-1.0, 2.0, n)
    close((G.T @ tau) @ y, tau @ v)


def test_momentum_about_another_point():
    """§2.12: h_P = h_O + l × OP, as for any force vector; l does not change."""
    v, P = mb.Motion([0.3, -0.2, 0.5], [1.0, 0.4, -0.6]), np.array([0.7, -1.1, 0.2])
    momentum = mb.mcI(1.3, [0.2, -0.1, 0.3], np.diag([0.5, 0.6, 0.7])) * v
    seen = mb.xlt(P) * momentum
    close(seen.moment, momentum.moment + np.cross(momentum.force, P))
    close(seen.moment, momentum.moment_about(P))
    close(seen.force, momentum.force)
