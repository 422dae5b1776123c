"""Linkages of the catalogue against their own closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import solve
from integrators.problems.andrews import (
    _force,
    constraint_jacobian,
    mass_matrix,
)
from integrators.problems.andrews import constraints as published_gaps
from multibody import as_ivp, constrained_accelerations, mechanisms
from multibody.mechanisms.cells import peaucellier_position, scissor_position
from multibody.mechanisms.parallel import delta_position, stewart_position

TIGHT = dict(method="DOP853", rtol=1e-11, atol=1e-12)


def test_scissor_is_one_equation():
    """φ̈ from the energies of bars with centres at (L/2 cos φ, (k − ½) L sin φ)."""
    n, L, m, foot, g, phi, rate = 4, 0.8, 0.5, 0.3, 9.81, 0.7, 1.3
    model = mechanisms.scissor(n, length=L, density=m / L, slider=foot)
    q = scissor_position(model, phi)
    v = mb.consistent_velocity(model, q, np.eye(9)[0] * rate, fixed=["a1"])
    c, s = np.cos(phi), np.sin(phi)
    rise = (np.arange(n) + 0.5) * L
    upward = 2 * m * np.sum(rise**2)
    sideways = 2 * n * m * L**2 / 4 + foot * L**2
    M = upward * c**2 + sideways * s**2 + 2 * n * m * L**2 / 12
    bend = 2 * c * s * (sideways - upward)
    expected = -(0.5 * bend * rate**2 + 2 * m * g * np.sum(rise) * c) / M
    found = constrained_accelerations(model, q, v).accelerations
    assert found[0] == pytest.approx(expected, rel=1e-12)
    assert mb.energy(model, q, v).kinetic == pytest.approx(0.5 * M * rate**2, rel=1e-12)
    top = mb.point_position(model, q, f"a{n}", (L, 0.0, 0.0))
    np.testing.assert_allclose(top, [L * c, n * L * s, 0.0], atol=1e-14)


def test_peaucellier_draws_a_straight_line():
    entry = mechanisms.entry("peaucellier")
    model = entry.model()
    q, v = entry.start(model)
    np.testing.assert_allclose(q, peaucellier_position(model, 0.5))
    solution = solve(as_ivp(model, q, v, (0.0, 1.0)), **TIGHT)
    tip = mb.positions(model, solution, "long2_outer", (0.6, 0.0, 0.0))
    np.testing.assert_allclose(tip[0], (1.5**2 - 0.6**2) / (2 * 0.5), atol=1e-9)
    assert np.ptp(tip[1]) > 0.5


def test_delta_robot_never_turns_its_platform():
    """It does not know that: six loops of ball joints see to it."""
    entry = mechanisms.entry("delta_robot")
    model = entry.model()
    q, _ = entry.start(model)
    arms = ["arm1", "arm2", "arm3"]
    wanted = np.zeros(model.nv)
    for arm, speed in zip(arms, (1.0, -2.0, 0.5)):
        wanted[model.v_index[model.number(arm) - 1]] = speed
    v = mb.consistent_velocity(model, q, wanted, fixed=arms)
    np.testing.assert_allclose(v[:3], 0.0, atol=1e-13)
    solution = solve(as_ivp(model, q, v, (0.0, 0.1)), **TIGHT)
    np.testing.assert_allclose(solution.y[1:4], 0.0, atol=1e-10)
    assert np.ptp(solution.y[4]) > 0.01  # moves aside
    with pytest.raises(ValueError, match="do not reach"):
        delta_position(mechanisms.delta_robot(rod_length=0.1))


def test_stewart_platform_on_light_legs_falls_freely():
    model = mechanisms.free_stewart_platform(leg_mass=1e-9)
    q = stewart_position(model, height=0.9)
    a = constrained_accelerations(model, q, np.zeros(24)).accelerations
    np.testing.assert_allclose(a[:6], [0, 0, 0, 0, 0, -9.81], atol=1e-7)


def test_andrews_is_the_published_mechanism():
    """Inertia matrix, constraints and accelerations of Schiehlen's handbook, at a moving state."""
    model = mechanisms.andrews()
    order = [model.number(f"K{k}") - 1 for k in range(1, 8)]
    start = mechanisms.entry("andrews").start(model)[0].copy()
    start[0] += 0.4
    q = mb.assemble(model, start, fixed=["K1"]).q
    speed = np.zeros(7)
    speed[0] = 300.0
    v = mb.consistent_velocity(model, q, speed, fixed=["K1"])
    x, dx = q[order], v[order]
    np.testing.assert_allclose(published_gaps(x), 0.0, atol=1e-12)
    np.testing.assert_allclose(constraint_jacobian(x) @ dx, 0.0, atol=1e-10)  # dx is of size 300
    M = mass_matrix(x)
    np.testing.assert_allclose(mb.crba(model, q)[np.ix_(order, order)], M, rtol=1e-12, atol=1e-19)
    G, f = constraint_jacobian(x), _force(x, dx)
    h = 1e-6
    G_rate = (constraint_jacobian(x + h * dx / 300) - constraint_jacobian(x - h * dx / 300)) / (
        2 * h / 300
    )
    system = np.block([[M, G.T], [G, np.zeros((6, 6))]])
    expected = np.linalg.solve(system, np.concatenate([f, -G_rate @ dx]))[:7]
    tau, _ = mb.element_forces(model, q, v)  # of its motor
    found = constrained_accelerations(model, q, v, tau).accelerations[order]
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def test_andrews_starts_as_published():
    model = mechanisms.andrews()
    q, v = mechanisms.entry("andrews").start(model)
    a = mb.FD_x(model, [*q, *v])[model.nq :]
    expected = np.zeros(7)
    expected[:2] = 14222.4439199541138705911625887, -10666.8329399655854029433719415
    np.testing.assert_allclose(a, expected, atol=1e-8)
    idle = mechanisms.andrews(torque=0.0)
    with_forces = constrained_accelerations(idle, q, v, mechanisms.andrews_drive(idle))
    np.testing.assert_allclose(with_forces.accelerations, expected, atol=1e-8)
    with pytest.raises(ValueError, match="would act twice"):
        mechanisms.andrews_drive(model)


def test_governor_starts_with_unstretched_springs():
    model, loose = mechanisms.governor(), mechanisms.governor(stiffness=0.0, damping=0.0)
    q, v = mechanisms.entry("governor").start(model)
    np.testing.assert_allclose(mb.FD(model, q, v), mb.FD(loose, q, v), atol=1e-8)
    for spring in model.springs:
        ends = [
            mb.point_position(model, q, body, point)
            for body, point in ((spring.body_a, spring.point_a), (spring.body_b, spring.point_b))
        ]
        assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(0.5, abs=1e-15)
    # 0.3 kg of shaft and arms, 3 kg of slider, 5 kg of balls.
    masses = [body.inertia.mass for body in model.bodies]
    np.testing.assert_allclose(masses, [0.3, 3.0, 5.3, 5.3])


def test_spatial_slider_crank_starts_as_published():
    """Slider at 0.2 m with 0.24 m/s; the rod turns with (1.92, −0.96, 0.48) rad/s."""
    entry = mechanisms.entry("spatial_slider_crank")
    model = entry.model()
    q, v = entry.start(model)
    motion = mb.kinematics(model, q, v)
    omega = motion.poses[3].R @ motion.velocities[3, :3]
    np.testing.assert_allclose(omega, [1.92, -0.96, 0.48], atol=1e-14)
    np.testing.assert_allclose(v[:2], [6.0, 0.24], atol=1e-15)


def test_n_four_bar_scales():
    """One equation for any number of cells: I θ̈ = c g sin θ."""
    for n in (1, 3, 12):
        model = mechanisms.n_four_bar(n)
        theta, rate = 0.6, 2.0
        q = np.array([np.pi / 2 - theta] * (n + 1) + [theta - np.pi / 2] * n)
        v = np.array([-rate] * (n + 1) + [rate] * n)
        inertia, c = (n + 1) / 3 + n, (n + 1) / 2 + n
        a = constrained_accelerations(model, q, v).accelerations
        np.testing.assert_allclose(a[: n + 1], -c * 9.81 * np.sin(theta) / inertia, rtol=1e-11)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("four_bar", {"crank": -1.0}, "positive lengths"),
        ("n_four_bar", {"n": 0}, "whole number of loops"),
        ("n_four_bar", {"n": 2.0}, "whole number of loops"),
        ("scissor", {"n": 0}, "whole number of cells"),
        ("scissor", {"slider": 0.0}, "slider: expected a positive mass"),
        ("ladder", {"n": 1}, "whole number of rungs ≥ 2"),
        ("bricard", {"section": -0.1}, "section"),
        ("governor", {"damping": -1.0}, "damping"),
        ("free_stewart_platform", {"base_radius": 0.0}, "positive lengths"),
    ],
)
def test_bad_parameters_are_refused(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        mechanisms.get(name, **parameters)


def test_starts_that_cannot_be_assembled_say_why():
    for name, parameters in (
        ("four_bar", {"coupler": 0.1}),
        ("five_bar", {"distal": 0.01}),
        ("slider_crank", {"offset": 1.0}),
        ("spatial_slider_crank", {"rod_length": 0.1}),
        ("peaucellier", {"crank": 3.0}),
    ):
        entry = mechanisms.entry(name)
        with pytest.raises(ValueError, match=r"do not meet|does not reach"):
            entry.start(entry.model(**parameters))
