"""The plain NumPy forms against the kernels, and worked examples of the book."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from multibody import FD, ID, crba
from multibody.dynamics.book.oracles import (
    base_coordinates,
    closed_form,
    element_forces,
    inertia_by_columns,
    inertia_by_definition,
    inertia_column,
    luh_walker_paul,
    rnea_base,
)
from multibody.mechanisms.random import random_joint, random_tree
from tests.multibody.joint_samples import POOL

# Sums of some hundred products, relative to their largest term.
ROUNDING = 1e-12
# Second differences of the energies by extrapolated first ones: rounding/step, relative.
DIFFERENCES = 1e-9


def state(model, seed):
    rng = np.random.default_rng(seed)
    return (model.random(rng), *(rng.standard_normal(model.nv) for _ in range(3)), rng)


def close(a, b, tolerance, scale=0.0):
    scale = max(np.abs(b).max(initial=0.0), scale)
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(scale, 1e-300))


@pytest.mark.parametrize("seed", range(12))
def test_inertia_matrix_in_four_ways(seed):
    model = random_tree(1 + seed, seed, POOL)
    q = model.random(seed)
    H = crba(model, q, t=0.3)
    close(inertia_by_definition(model, q, 0.3), H, ROUNDING)
    close(inertia_by_columns(model, q, 0.3), H, ROUNDING)
    for k in range(model.nv):
        close(inertia_column(model, q, k, 0.3).column, H[:, k], ROUNDING, np.abs(H).max())


def test_physical_meaning_of_a_column():
    """Joints that neither carry nor are carried by joint α pass on no force."""
    model = random_tree(9, 4, "revolute", branching=0.9)
    q = model.random(0)
    w = base_coordinates(model, q)
    k = 5
    forces = inertia_column(model, q, k).forces
    related = [j for j in range(9) if j in w.support(k) or k in w.support(j)]
    for j in range(9):
        assert forces[j].any() == (j in related)
    below = w.support(k)
    for j in below:  # everything below joint α passes on the same force
        np.testing.assert_array_equal(forces[j], forces[k])


@pytest.mark.parametrize("seed", range(12))
def test_inverse_dynamics_in_base_coordinates(seed):
    model = random_tree(1 + seed, seed, POOL)
    q, v, a, _, rng = state(model, seed)
    f = rng.standard_normal((model.n_bodies, 6))
    expected = rnea_base(model, q, v, a, f, 0.3)
    close(ID(model, q, v, a, f, t=0.3), expected, ROUNDING, 10.0)


def test_armature_enters_all_forms():
    b = mb.ModelBuilder()
    inertia = mb.Inertia(1.0, (0.2, 0.3, 0.1), (0.1, 0.2, 0.25))
    b.add_body("a", 0, mb.Revolute("y"), None, inertia, armature=0.7)
    b.add_body("b", "a", mb.Cylindrical("x"), (1, 0, 0), inertia, armature=(0.2, 0.4))
    model = b.build()
    q, v, a, _, _ = state(model, 1)
    H = crba(model, q)
    close(inertia_by_definition(model, q), H, ROUNDING)
    close(inertia_by_columns(model, q), H, ROUNDING)
    close(inertia_column(model, q, 2).column, H[:, 2], ROUNDING)
    close(ID(model, q, v, a), rnea_base(model, q, v, a), ROUNDING)
    close(FD(model, q, v, ID(model, q, v, a)), a, ROUNDING)
    close(mb.energy(model, q, v).kinetic, 0.5 * v @ H @ v, ROUNDING)
    with_rotors = np.diag(H) - np.diag(crba(mb.Model(bare(model)), q))
    close(with_rotors, [0.7, 0.2, 0.4], ROUNDING)


def bare(model):
    from dataclasses import replace

    return tuple(replace(body, armature=np.zeros(body.joint.nv)) for body in model.bodies)


@pytest.mark.parametrize("seed", range(6))
def test_original_newton_euler_form(seed):
    model = random_tree(7, seed, "revolute", branching=0.0, reverse=0.0)
    q, v, a, _, _ = state(model, seed)
    close(luh_walker_paul(model, q, v, a), ID(model, q, v, a), ROUNDING)


def test_original_form_refuses_other_mechanisms():
    for model in (
        random_tree(5, 0, "prismatic", branching=0.0, reverse=0.0),
        random_tree(5, 0, "revolute", branching=1.0, reverse=0.0),
        random_tree(5, 0, "revolute", branching=0.0, reverse=1.0),
    ):
        with pytest.raises(ValueError, match="unbranched chain of revolute"):
            luh_walker_paul(model, *(np.zeros(model.nv),) * 3)


@pytest.mark.parametrize("seed", range(5))
def test_closed_form(seed):
    """Eq 5.6: τ_i = ΣH_ij q̈_j + ΣΣC_ijk q̇_j q̇_k + g_i, with Lagrange's coefficients."""
    kinds = ["revolute", "prismatic", "helical", "cylindrical", "universal", "rack_pinion",
             "angles", "constant_velocity"]  # fmt: skip
    model = random_tree(3, seed, kinds)
    q, v, a, _, _ = state(model, seed)
    form = closed_form(model, q)
    tau = ID(model, q, v, a)
    close(form.forces(v, a), tau, DIFFERENCES, 10.0)
    close(form.g, mb.gravity_forces(model, q), DIFFERENCES, 10.0)
    coriolis = np.einsum("ijk,j,k->i", form.C, v, v)
    close(coriolis, mb.coriolis_forces(model, q, v), DIFFERENCES, 10.0)


def test_closed_form_refuses_what_lagrange_does_not_cover():
    model = random_tree(2, 0, "planar")
    with pytest.raises(ValueError, match="v = q̇"):
        closed_form(model, model.neutral())


def test_external_forces_are_checked():
    model = random_tree(2, 0, "revolute")
    with pytest.raises(ValueError, match="each of 2 bodies"):
        rnea_base(model, [0, 0], [0, 0], [0, 0], np.zeros(6))


def test_spring_between_bodies_pulls_both_ways():
    """A spring is an internal force: its forces on two bodies have no resultant."""
    b = mb.ModelBuilder()
    for name in ("a", "b"):
        b.add_body(name, 0, mb.Free(), inertia=mb.Inertia(1.0, (0, 0, 0), (1, 1, 1)))
    b.add_spring("s", "a", (0.1, 0.2, 0.3), "b", (0.3, 0.2, 0.1), 5.0, 0.7, 0.4)
    model = b.build()
    q, v, *_ = state(model, 2)
    tau, forces = element_forces(model, q, v)
    close(forces.sum(axis=0), np.zeros(6), ROUNDING, np.abs(forces).max())
    assert not tau.any()
    assert np.abs(forces).max() > 0.1


# --- kinematics --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_jacobians(seed):
    model = random_tree(8, seed, POOL)
    q, v, a, _, rng = state(model, seed)
    t = 0.3
    w = base_coordinates(model, q, v, t)
    still = base_coordinates(model, q, np.zeros(model.nv), t)
    moving = mb.kinematics(model, q, v, a, t=t)
    for i in range(model.n_bodies):
        pose = moving.poses[i + 1]
        close(pose.to_plucker().matrix(), w.X[i], ROUNDING, 1.0)
        close(
            mb.body_jacobian(model, q, i + 1, coordinates="base", t=t), w.jacobian(i), ROUNDING, 1.0
        )
        J = mb.body_jacobian(model, q, i + 1, t=t)
        close(J, w.X[i] @ w.jacobian(i), ROUNDING, 1.0)
        velocity = moving.velocities[i + 1]
        close(velocity, w.X[i] @ w.v[i], ROUNDING, 1.0)
        close(J @ v + w.X[i] @ still.v[i], velocity, ROUNDING, 1.0)
        bias = mb.jacobian_rate(model, q, v, i + 1, t=t)
        close(J @ a + bias, moving.accelerations[i + 1], ROUNDING, 1.0)
        total = sum((w.c[j] for j in w.support(i)), np.zeros(6))
        close(mb.jacobian_rate(model, q, v, i + 1, coordinates="base", t=t), total, ROUNDING, 1.0)
        point = rng.standard_normal(3)
        place = mb.point_position(model, q, i + 1, point, t=t)
        close(place, pose.R @ point + pose.p, ROUNDING, 1.0)
        close(
            mb.point_jacobian(model, q, i + 1, point, t=t),
            pose.R @ (J[3:] - np.cross(point, J[:3], axisb=0, axisc=0)),
            ROUNDING,
            1.0,
        )


@pytest.mark.parametrize("seed", range(4))
def test_velocities_are_derivatives_of_positions(seed):
    from multibody.dynamics.book.oracles import slope

    model = random_tree(6, seed, POOL)
    q, v, a, _, rng = state(model, seed)
    t, point = 0.3, rng.standard_normal(3)
    q_dot = mb.position_rate(model, q, v, t=t)
    last = model.n_bodies

    def place(h):
        return mb.point_position(model, q + h * q_dot, last, point, t=t + h)

    still = base_coordinates(model, q, np.zeros(model.nv), t).v[last - 1]
    drift = still[3:] + np.cross(still[:3], place(0.0))
    expected = mb.point_jacobian(model, q, last, point, t=t) @ v + drift
    close(slope(place), expected, DIFFERENCES, 1.0)

    def velocity(h):
        moved = mb.kinematics(model, q + h * q_dot, v + h * a, t=t + h)
        return moved.velocities[last]

    # In body coordinates the derivative of v is the spatial acceleration, for v × v = 0.
    moving = mb.kinematics(model, q, v, a, t=t)
    close(slope(velocity), moving.accelerations[last], DIFFERENCES, 10.0)


# --- worked examples ---------------------------------------------------------------------------


def chain(n, angles):
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    for i in range(n):
        b.add_body(f"link{i + 1}", i, mb.Revolute(), (1.0 if i else 0.0, 0, 0),
                   mb.rod((0, 0, 0), (1, 0, 0), mass=1.0))  # fmt: skip
    return b.build(), np.asarray(angles, dtype=float)


def test_sensitivity_of_a_zigzag_chain():
    """§10.2: six unit links at ±75°. (The book prints 0.6952 where 0.6592 is right.)"""
    model, q = chain(6, np.radians([75, -75, 75, -75, 75, -75]))
    H = crba(model, q)
    printed = [126.4936, 97.4663, 69.9762, 43.7998, 21.9371, 6.1646]
    four_decimals = 1e-4  # the book cuts the others off
    np.testing.assert_allclose(H @ np.ones(6), printed, rtol=0, atol=four_decimals)
    assert np.linalg.cond(H) == pytest.approx(725.39, abs=5e-3)
    tau = np.array([126, 97.5, 70, 43.8, 21.9, 6.16])
    a = FD(model, q, np.zeros(6), tau)
    found = [0.6592, 1.3654, 1.3808, 0.5894, 0.9057, 1.0705]
    np.testing.assert_allclose(a, found, rtol=0, atol=four_decimals)
    amplification = np.abs(a - 1.0).max() / np.abs(tau / (H @ np.ones(6)) - 1.0).max()
    assert amplification > 80.0


@pytest.mark.parametrize(("n", "condition"), [(6, 5685), (10, 43523)])
def test_worst_condition_grows_like_the_fourth_power(n, condition):
    """§10.2: about 4 N⁴ for straight chains."""
    model, q = chain(n, np.zeros(n))
    found = np.linalg.cond(crba(model, q))
    assert found == pytest.approx(condition, abs=0.5)
    assert 4 * n**4 == pytest.approx(found, rel=0.1)


def test_far_frames_lose_digits():
    """§10.1: unit mass and inertia, frame at distance c: the error grows like |c|²."""

    def error(c):
        b = mb.ModelBuilder(gravity=(0, 0, 0))
        b.add_body("disc", 0, mb.Planar(), inertia=mb.Inertia(1.0, (*c, 0.0), (1.0, 1.0, 1.0)))
        model = b.build()
        # v_C = (1, 0, 0) and f_C = (1, −1, 1) as planar vectors (ω, v_x, v_y), (n, f_x, f_y).
        v = np.array([1.0, c[1], -c[0]])
        tau = np.array([1.0 + c[0] * 1.0 - c[1] * -1.0, -1.0, 1.0])
        a = FD(model, [0.0, 0.0, 0.0], v, tau)
        exact = np.array([1.0, c[1] - 1.0, 1.0 - c[0]])
        np.testing.assert_allclose(a, exact, rtol=1e-6)
        at_centre = a[1:] + a[0] * np.array([-c[1], c[0]])
        return np.abs(np.concatenate([[a[0]], at_centre]) - [1.0, -1.0, 1.0]).max()

    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("disc", 0, mb.Planar(), inertia=mb.Inertia(1.0, (100.0, 10.0, 0.0), (1, 1, 1)))
    H = crba(b.build(), [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(H, [[10101, -10, 100], [-10, 1, 0], [100, 0, 1]])
    assert np.linalg.cond(H) == pytest.approx(1.0205e8, rel=1e-4)
    rng = np.random.default_rng(0)
    near, far = (max(error(size * rng.uniform(0.5, 1.0, 2)) for _ in range(20))
                 for size in (1.0, 1e4))  # fmt: skip
    assert near < 1e-14
    assert 1e-11 < far < 1e-6


def test_rolling_sphere_on_an_incline():
    """A solid sphere accelerates with (5/7) g sin β down the slope, whatever its size."""
    beta, g = 0.3, 9.81
    down = np.array([np.sin(beta), 0.0, -np.cos(beta)])
    for radius in (0.1, 2.0):
        b = mb.ModelBuilder(gravity=g * down)
        b.add_body("ball", 0, mb.RollingSphere(radius), inertia=mb.sphere(radius, mass=3.0))
        model = b.build()
        q = model.random(0)
        v = np.array([0.3, -0.4, 0.5])
        a = FD(model, q, v)
        E = model.bodies[0].joint.motion(q).X.E
        alpha = E.T @ a  # ω̇ in the frame of the slope
        centre = radius * np.array([alpha[1], -alpha[0]])
        np.testing.assert_allclose(centre, [5 / 7 * g * np.sin(beta), 0.0], atol=1e-12)


def test_random_joints_and_trees_say_what_they_cannot_do():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="'spherical'"):
        random_joint("sperical", rng)
    with pytest.raises(ValueError, match="needs more than numbers"):
        random_joint("driven", rng)
    with pytest.raises(ValueError, match="≥ 1"):
        random_tree(0)
    with pytest.raises(ValueError, match="probability"):
        random_tree(2, branching=1.5)
    with pytest.raises(ValueError, match="at least one joint"):
        random_tree(2, joints=[])
    chain = random_tree(5, 0, branching=0.0)
    assert chain.parents.tolist() == [0, 1, 2, 3, 4]
    assert isinstance(random_tree(3, 0, root="free").bodies[0].joint, mb.Free)
