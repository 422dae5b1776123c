"""Articulated bodies: projection, assembly in three forms, two handles, operational space."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from multibody import FD, crba
from multibody.dynamics.book.handles import (
    ForwardForm,
    InverseForm,
    accelerations_by_assembly,
    articulated_bodies,
    assemble,
    assemble_constraint,
    assemble_inverse,
    assemble_two_handles,
    handle_dynamics,
    operational_space_inertia,
    subtree_dynamics,
)
from multibody.dynamics.book.oracles import base_coordinates
from multibody.mechanisms.random import random_tree
from tests.multibody.joint_samples import POOL

# Inertias of a few bodies of size one, inverted once or twice.
ROUNDING = 1e-11


def state(model, seed):
    rng = np.random.default_rng(seed)
    q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
    return q, v, tau, rng.standard_normal((model.n_bodies, 6)), rng


def close(a, b, tolerance=ROUNDING, scale=0.0):
    scale = max(np.abs(b).max(initial=0.0), scale)
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(scale, 1e-300))


def random_body(rng):
    A = rng.standard_normal((6, 6))
    return ForwardForm(A @ A.T + 0.5 * np.eye(6), rng.standard_normal(6))


def random_joint(rng, n):
    """S, T and T_a of a joint with n freedoms, T_aᵀS = 1, T_a not unique: any will do."""
    S = rng.standard_normal((6, n))
    T = np.linalg.svd(S)[0][:, n:]
    T_a = np.linalg.pinv(S).T + T @ rng.standard_normal((6 - n, n))
    return S, T, T_a


# --- example 7.1 -------------------------------------------------------------------------------


def test_example_7_1():
    """A cylinder that turns about x and slides along y in a box, centres of mass together."""
    m1, m2, I1, I2 = 2.0, 3.0, 0.7, 0.4
    box = ForwardForm(np.diag([I1] * 3 + [m1] * 3), np.zeros(6))
    cylinder = ForwardForm(np.diag([I2] * 3 + [m2] * 3), np.zeros(6))
    expected = np.diag([I1, I1 + I2, I1 + I2, m1 + m2, m1, m1 + m2])
    S = np.eye(6)[:, [0, 4]]
    found = assemble(box, cylinder, S, np.zeros(6), np.zeros(2))
    close(found.I, expected)
    T = np.eye(6)[:, [1, 2, 3, 5]]
    close(assemble_constraint(box, cylinder, T, S, np.zeros(6), np.zeros(2)).I, expected)
    # The same as a model: a box that floats, with a joint made of two.
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("box", 0, mb.Free(), inertia=mb.Inertia(m1, (0, 0, 0), (I1,) * 3))
    b.add_body("carrier", "box", mb.Prismatic("y"))
    b.add_body("cylinder", "carrier", mb.Revolute("x"), None, mb.Inertia(m2, (0, 0, 0), (I2,) * 3))
    model = b.build()
    q = model.neutral()
    close(handle_dynamics(model, q, "box").forward().I, expected)
    close(articulated_bodies(model, q)[0].I, expected)
    close(found.inertia.matrix(), expected)


# --- two bodies --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(7))
def test_three_assembly_formulae_agree(n):
    """Standard, variant 1 and variant 2 of §7.4, from no freedom to six."""
    rng = np.random.default_rng(n)
    first, second = random_body(rng), random_body(rng)
    S, T, T_a = random_joint(rng, n)
    c, tau = rng.standard_normal(6), rng.standard_normal(n)
    standard = assemble(first, second, S, c, tau)
    other = assemble_constraint(first, second, T, T_a, c, tau)
    inverse = assemble_inverse(first.inverse(), second.inverse(), T, T_a, c, tau)
    for found in (other, inverse.forward()):
        close(found.I, standard.I)
        close(found.p, standard.p)
    close(inverse.Phi, standard.inverse().Phi)
    close(inverse.b, standard.inverse().b)
    # Against the definition: solve for both bodies, the joint force and its acceleration.
    f = rng.standard_normal(6)
    KKT = np.block([
        [first.I, np.zeros((6, 6)), T],
        [np.zeros((6, 6)), second.I, -T],
        [T.T, -T.T, np.zeros((6 - n, 6 - n))],
    ])  # fmt: skip
    right = np.concatenate([f - first.p - T_a @ tau, T_a @ tau - second.p, -T.T @ c])
    a1 = np.linalg.solve(KKT, right)[:6]
    close(standard.I @ a1 + standard.p, f)
    if n:  # identities of §7.2.2: I^a S = 0, and TWTᵀ is I^a
        I_a = standard.I - first.I
        close(I_a @ S, np.zeros((6, n)), scale=np.abs(second.I).max())


def test_assembly_is_gluing_for_a_joint_without_freedom():
    rng = np.random.default_rng(0)
    first, second = random_body(rng), random_body(rng)
    c = rng.standard_normal(6)
    found = assemble(first, second, np.zeros((6, 0)), c, np.zeros(0))
    close(found.I, first.I + second.I)
    close(found.p, first.p + second.p + second.I @ c)


def test_inverse_form_joins_grounded_bodies():
    """A slider on the ground (Φ of rank one) and a pendulum on it: no I^A exists, Φ^A does."""
    b = mb.ModelBuilder()
    inertia = mb.Inertia(1.5, (0.2, 0.1, -0.4), (0.1, 0.2, 0.25))
    b.add_body("slider", 0, mb.Prismatic("x"), None, inertia)
    b.add_body("bob", "slider", mb.Revolute("y"), (0.1, 0.2, 0.3), inertia)
    model = b.build()
    q, v, tau, _, _ = state(model, 1)
    whole = handle_dynamics(model, q, "slider", v, tau)
    b = mb.ModelBuilder()
    b.add_body("slider", 0, mb.Prismatic("x"), None, inertia)
    alone = handle_dynamics(b.build(), q[:1], "slider", v[:1], tau[:1])
    # The bob's equation in slider coordinates; gravity is not in subtree_dynamics: add it.
    w = base_coordinates(model, q, v)
    bob = subtree_dynamics(model, q, "bob", v)
    X = w.X[1] @ np.linalg.inv(w.X[0])
    weight = w.X[1] @ np.concatenate([np.zeros(3), model.gravity])
    inertia_matrix = bob.I
    second = ForwardForm(X.T @ inertia_matrix @ X, X.T @ (bob.p - inertia_matrix @ weight))
    S = np.linalg.solve(X, model.bodies[1].joint.motion(q[1:]).S)
    T = np.linalg.svd(S)[0][:, 1:]
    c = w.X[0] @ w.c[1]
    T_a = np.linalg.pinv(S).T
    found = assemble_inverse(alone, second.inverse(), T, T_a, c, tau[1:])
    close(found.Phi, whole.Phi)
    close(found.b, whole.b)
    assert found.rank == 1
    with pytest.raises(ValueError, match="6 freedoms, received 1"):
        found.forward()


# --- trees -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_assembly_over_a_tree_equals_projection(seed):
    model = random_tree(3 + seed % 5, seed, POOL)
    q, v, tau, f, _ = state(model, seed)
    args = dict(v=v, tau=tau, f_ext=f, t=0.3)
    forms = {
        form: articulated_bodies(model, q, **args, form=form)
        for form in ("standard", "constraint", "inverse")
    }
    for i in range(model.n_bodies):
        expected = subtree_dynamics(model, q, i + 1, **args)
        for found in forms.values():
            close(found[i].I, expected.I)
            close(found[i].p, expected.p, scale=10.0)
        assert np.linalg.eigvalsh(expected.I)[0] > 0.0


def test_forward_dynamics_from_articulated_bodies():
    """The root's handle and one joint equation: acceleration of the first joint (Eq 7.20)."""
    model = random_tree(6, 3, POOL, root="revolute", gravity=(0, 0, 0))
    q, v, tau, f, _ = state(model, 3)
    root = articulated_bodies(model, q, v, tau, f, t=0.3)[0]
    S = model.bodies[0].joint.motion(q[:1]).S
    D = S.T @ root.I @ S
    first = np.linalg.solve(D, tau[:1] - S.T @ root.p)
    close(first, FD(model, q, v, tau, f, t=0.3)[:1])


def test_armature_stays_in_the_standard_form():
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    inertia = mb.Inertia(1.0, (0.2, 0.3, 0.1), (0.1, 0.2, 0.25))
    b.add_body("a", 0, mb.Free(), None, inertia)
    b.add_body("b", "a", mb.Cylindrical("x"), (1, 0, 0), inertia, armature=(0.2, 0.4))
    b.add_body("c", "b", mb.Revolute("y"), (1, 0, 0), inertia, armature=0.3)
    model = b.build()
    q, v, tau, f, _ = state(model, 2)
    tau[:6] = 0.0
    root = articulated_bodies(model, q, v, tau, f)[0]
    expected = subtree_dynamics(model, q, "a", v, tau, f)
    close(root.I, expected.I)
    close(root.p, expected.p)
    close(-np.linalg.solve(root.I, root.p), FD(model, q, v, tau, f)[:6])
    with pytest.raises(ValueError, match="'standard'"):
        articulated_bodies(model, q, form="inverse")


@pytest.mark.parametrize("seed", range(8))
def test_handle_equation_predicts_accelerations(seed):
    """a = Φ f + b: push at the handles and compare with forward dynamics of the whole."""
    model = random_tree(6, seed, POOL)
    q, v, tau, f, rng = state(model, seed)
    handles = [6, 2, 4]
    found = handle_dynamics(model, q, handles, v, tau, f, t=0.3)
    w = base_coordinates(model, q, v, 0.3)
    pushes = rng.standard_normal((3, 6))
    total = f.copy()
    for body, push in zip(handles, pushes):
        total[body - 1] += w.X[body - 1].T @ push
    a = FD(model, q, v, tau, total, t=0.3)
    moving = mb.kinematics(model, q, v, a, t=0.3)
    expected = np.concatenate([moving.accelerations[k] for k in handles])
    # Two algorithms solve with H, each to rounding times its condition (3e6 for one of the seeds).
    told = max(ROUNDING, np.finfo(float).eps * np.linalg.cond(crba(model, q, t=0.3)))
    close(found.Phi @ pushes.ravel() + found.b, expected, told, scale=10.0)
    close(found.Phi, found.Phi.T)
    J = np.vstack([mb.body_jacobian(model, q, k, t=0.3) for k in handles])
    assert found.rank == np.linalg.matrix_rank(J)


def test_several_handles_by_name_and_number():
    model = random_tree(5, 1, "revolute", root="free")
    q = model.random(0)
    stacked = handle_dynamics(model, q, ["body5", 2])
    close(stacked.Phi[:6, :6], handle_dynamics(model, q, 5).Phi)
    close(stacked.Phi[6:, 6:], handle_dynamics(model, q, "body2").Phi)
    for bad in (0, "base", []):
        with pytest.raises(ValueError, match="expected"):
            handle_dynamics(model, q, bad)
    with pytest.raises(ValueError, match="did you mean 'body5'"):
        handle_dynamics(model, q, "boddy5")
    with pytest.raises(ValueError, match="moving body"):
        subtree_dynamics(model, q, 0)


# --- two handles -------------------------------------------------------------------------------


def test_divide_and_conquer_on_a_chain():
    """Fold two-handle bodies in any order: base and tip of a chain remain as handles."""
    model = random_tree(5, 7, ["revolute", "spherical", "prismatic", "cylindrical", "fixed"],
                        branching=0.0, reverse=0.5)  # fmt: skip
    q, v, tau, f, _ = state(model, 7)
    w = base_coordinates(model, q, v)
    gravity = np.concatenate([np.zeros(3), model.gravity])
    blocks, joints = [], []
    for i in range(5):
        I, v_i = w.inertia[i], w.v[i]
        bias = mb.crf(mb.Motion(v_i)) @ I @ v_i - f[i] - I @ gravity
        Phi = np.linalg.inv(I)
        # Both handles are the body itself: every block is Φ.
        blocks.append(InverseForm(np.tile(Phi, (2, 2)), np.tile(-Phi @ bias, 2)))
        S = w.S[i]
        T = np.linalg.svd(S)[0][:, S.shape[1] :] if S.shape[1] else np.eye(6)
        joints.append((T, np.linalg.pinv(S).T, w.c[i], tau[model.v_index[i]]))
    ground = InverseForm(np.zeros((12, 12)), np.zeros(12))
    left = assemble_two_handles(ground, blocks[0], *joints[0])
    left = assemble_two_handles(left, blocks[1], *joints[1])
    right = assemble_two_handles(blocks[3], blocks[4], *joints[4])
    right = assemble_two_handles(blocks[2], right, *joints[3])
    both = assemble_two_handles(left, right, *joints[2])
    X = w.X[4]
    tip = handle_dynamics(model, q, 5, v, tau, f)
    close(X @ both.Phi[6:, 6:] @ X.T, tip.Phi)
    close(X @ both.b[6:], tip.b, scale=10.0)
    close(both.Phi[:6], np.zeros((6, 12)), scale=1.0)  # the ground does not move
    a = FD(model, q, v, tau, f)
    close(tip.b, mb.kinematics(model, q, v, a).accelerations[5], scale=10.0)


def test_two_handles_with_redundant_constraints():
    """Two grounded bodies joined rigidly: Y is singular, accelerations are still determined."""
    e = np.zeros(6)
    e[5] = 1.0
    slider = InverseForm(np.tile(np.outer(e, e), (2, 2)), np.zeros(12))  # 1 kg along z
    pushed = InverseForm(slider.Phi, np.tile(e, 2) * 2.0)  # the same, with 2 N on it
    joined = assemble_two_handles(slider, pushed, np.eye(6), np.zeros((6, 0)), np.zeros(6),
                                  np.zeros(0))  # fmt: skip
    close(joined.b, np.tile(e, 2))  # 2 N on 2 kg
    close(joined.Phi, np.tile(0.5 * np.outer(e, e), (2, 2)))


# --- operational space -------------------------------------------------------------------------


def test_operational_space_inertia():
    model = random_tree(7, 2, "revolute", branching=0.0)
    q = model.random(1)
    J = mb.body_jacobian(model, q, 7)
    expected = np.linalg.inv(J @ np.linalg.solve(crba(model, q), J.T))
    tolerance = 1e-13 * np.linalg.cond(expected) * np.linalg.cond(crba(model, q))
    close(operational_space_inertia(model, q, 7), expected, tolerance)
    point = np.array([0.1, 0.2, 0.3])
    P = mb.point_jacobian(model, q, 7, point)
    mass = np.linalg.inv(P @ np.linalg.solve(crba(model, q), P.T))
    close(operational_space_inertia(model, q, 7, point), mass, tolerance)
    with pytest.raises(ValueError, match="freedoms"):
        operational_space_inertia(model, q, 3)


def test_a_closed_form_of_the_apparent_mass():
    """Pull a rod at rest by its end, across: felt mass m/3 about a pivot, m/4 when it floats."""
    b = mb.ModelBuilder()
    b.add_body("rod", 0, mb.Planar(), None, mb.rod((0, 0, 0), (1, 0, 0), mass=3.0))
    model = b.build()
    Phi = handle_dynamics(model, [0, 0, 0], "rod").Phi
    end = np.array([0, 0, 1.0, 0, 1.0, 0])  # force along y at (1, 0, 0)
    assert 1.0 / (end @ Phi @ end) == pytest.approx(3.0 / 4.0)
    b = mb.ModelBuilder()
    b.add_body("rod", 0, mb.Revolute(), None, mb.rod((0, 0, 0), (1, 0, 0), mass=3.0))
    Phi = handle_dynamics(b.build(), [0.0], "rod").Phi
    assert 1.0 / (end @ Phi @ end) == pytest.approx(1.0)


@pytest.mark.parametrize("form", ["inverse", "constraint"])
def test_rotors_of_roots_are_not_passed_over(form):
    b = mb.ModelBuilder()
    inertia = mb.Inertia(1.0, (0, 0, -1.0), (0.1, 0.1, 0.1))
    b.add_body("p", 0, mb.Revolute("y"), inertia=inertia, armature=1.1)
    model = b.build()
    found = accelerations_by_assembly(model, [0.3], [0.0])
    np.testing.assert_allclose(found, FD(model, [0.3], [0.0]), rtol=1e-13)
    with pytest.raises(ValueError, match="expected 'standard' for joints with armature"):
        accelerations_by_assembly(model, [0.3], [0.0], form=form)
