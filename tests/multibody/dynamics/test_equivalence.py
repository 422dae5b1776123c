"""Regressor, base parameters and equivalent models (book, §9.7), against the dynamics."""

from dataclasses import replace

import numpy as np
import pytest

import multibody as mb
from multibody import mechanisms
from multibody.dynamics.parameters.equivalence import null_space, sampled_regressor
from multibody.mechanisms.random import random_tree
from tests.multibody.random_mechanisms import draw

#: What moving parameters leaves of H and ID, relative: sums of a few products are rounded.
SAME = 1e-12


def bent(seed):
    """Inertia of a body without symmetry."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((6, 3))
    I = np.trace(points.T @ points) * np.eye(3) - points.T @ points
    return mb.mcI(rng.uniform(0.5, 2.0), rng.standard_normal(3), I)


def alone(*joints, gravity=(0.3, -0.2, -9.81)):
    """A chain of bodies without symmetry, oblique to each other."""
    b = mb.ModelBuilder(gravity=gravity)
    for i, joint in enumerate(joints):
        turn = mb.rotations.exp((0.3 + i, 0.6, -0.4))
        b.add_body(f"body{i}", i, joint, mb.Pose(turn, (0.3, -0.2, 0.5)), bent(i))
    return b.build()


def acting(model):
    """How many inertia parameters, seen in the joint's axes, are not zero."""
    from multibody.dynamics.parameters.equivalence import _turned

    found = [_turned(b.joint.frame) @ b.inertia.array for b in model.bodies]
    return sum(int(np.count_nonzero(np.abs(x) > 1e-12 * np.abs(x).max(initial=0.0))) for x in found)


@pytest.mark.parametrize("seed", range(12))
def test_regressor_is_inverse_dynamics(seed):
    drawn = draw(seed)
    model, q, v, t = drawn.model, drawn.q, drawn.v, drawn.t
    a = np.random.default_rng(seed).standard_normal(model.nv)
    passive = dict.fromkeys(("damping", "stiffness", "rest", "limits"), np.zeros(0))
    model = replace(
        model, springs=(), bodies=tuple(replace(b, **passive) for b in model.bodies)
    )  # with armature, without springs, dampers and stops
    Y = mb.regressor(model, q, v, a, t=t, armature=True)
    assert Y.shape == (model.nv, len(mb.parameter_names(model, True)))
    found, expected = Y @ mb.parameter_values(model, True), mb.ID(model, q, v, a, t=t)
    assert np.allclose(found, expected, rtol=0, atol=SAME * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("seed", range(12))
def test_simplified_models_move_alike(seed):
    """H, ID, FD and kinetic energy of trees, loops, drives, springs and floating bases."""
    drawn = draw(seed)
    model, q, v, tau, f_ext, t = drawn
    less = mb.simplify(model)
    assert acting(less) <= acting(model)
    H = mb.crba(model, q, t=t)
    assert np.abs(mb.crba(less, q, t=t) - H).max() <= SAME * np.abs(H).max()
    a = mb.FD(model, q, v, tau, f_ext, t=t)
    forces = mb.ID(model, q, v, a, f_ext, t=t)
    slack = SAME * max(1.0, np.abs(forces).max(), np.abs(f_ext).max())
    assert np.abs(mb.ID(less, q, v, a, f_ext, t=t) - forces).max() <= slack
    growth = SAME * np.linalg.cond(H) * max(1.0, np.abs(a).max())
    assert np.abs(mb.FD(less, q, v, tau, f_ext, t=t) - a).max() <= growth
    if not model.is_rheonomic:
        kinetic = mb.energy(model, q, v).kinetic
        assert abs(mb.energy(less, q, v).kinetic - kinetic) <= SAME * max(1.0, kinetic)


@pytest.mark.parametrize("seed", range(4))
def test_no_set_is_smaller(seed):
    """What pairwise exchange leaves is as many numbers as the rank of all columns together."""
    model = random_tree(5, seed)
    columns = np.hstack(list(sampled_regressor(model)))
    rank = columns.shape[1] - len(null_space(columns))
    assert acting(mb.simplify(model)) == rank == mb.base_parameters(model).rank


@pytest.mark.parametrize(
    ("joint", "gone"),
    [
        (mb.Revolute("y"), 3),
        (mb.Revolute((1.0, -2.0, 0.5)), 3),
        (mb.Prismatic("x"), 6),
        (mb.Spherical(), 1),
        (mb.Fixed(), 10),
        (mb.Free(), 0),
        (mb.Cylindrical(), 1),
        (mb.Universal(), 1),
        (mb.RollingSphere(0.4), 0),
    ],
)
def test_parameters_that_a_joint_hands_on(joint, gone):
    """Table 9.7: on a free parent, so that nothing is lost to a fixed base."""
    less = mb.simplify(alone(mb.Free(), joint))
    assert acting(less) == 20 - gone
    assert acting(mb.simplify(less)) == 20 - gone


def test_near_a_fixed_base():
    vertical = alone(mb.Revolute("z"), gravity=(0, 0, 0))
    assert acting(mb.simplify(vertical)) == 1
    assert acting(mb.simplify(alone(mb.Revolute("z")))) == 3
    assert acting(mb.simplify(alone(mb.Prismatic("z")))) == 1
    planar = mb.ModelBuilder()
    for i in range(3):
        planar.add_body(f"link{i}", i, mb.Revolute("y"), (0.5, 0, 0), bent(i))
    assert acting(mb.simplify(planar.build())) == 9  # h_x, h_z and I_yy of each


def test_transform_between_frames_is_needed():
    """The printed listing adds I_Δ as it is; its error on frames that differ is of order 1."""
    model = alone(mb.Free(), mb.Revolute("z"))
    right = mb.simplify(model)
    given = right.bodies[0].inertia.array - model.bodies[0].inertia.array
    plain = model.bodies[1].inertia.array - right.bodies[1].inertia.array
    first = replace(
        right.bodies[0], inertia=mb.RigidInertia._of(right.bodies[0].inertia.array - given + plain)
    )
    wrong = replace(right, bodies=(first, right.bodies[1]))
    q = model.random(3)
    assert np.abs(mb.crba(wrong, q) - mb.crba(model, q)).max() > 0.1
    assert np.abs(mb.crba(right, q) - mb.crba(model, q)).max() < 1e-13


def test_puma_has_36():
    """The number that identification experiments with this robot know (Gautier and Khalil 1990)."""
    model = mechanisms.puma560()
    found = mb.base_parameters(model)
    assert (found.rank, len(found.names), len(found.combinations)) == (36, 60, 36)
    assert "link1.m" in found.without_effect
    assert "link6.h_x" in found.identifiable
    assert "link1.I_zz + link2.I_xx" in found.combinations[0]
    general = replace(
        model, bodies=tuple(replace(b, inertia=bent(i)) for i, b in enumerate(model.bodies))
    )
    assert acting(mb.simplify(general)) == 36


def test_base_parameters_are_what_experiments_give():
    """Least squares on forces of random states finds π, and predicts forces of other states."""
    model = alone(mb.Revolute("z"), mb.Revolute("y"), mb.Prismatic("x"))
    base = mb.base_parameters(model, armature=True)
    rng = np.random.default_rng(4)
    states = [(model.random(rng), *rng.standard_normal((2, 3))) for _ in range(60)]
    W = np.vstack([mb.regressor(model, *s, armature=True) for s in states])[
        :, list(base.independent)
    ]
    measured = np.concatenate([mb.ID(model, *s) for s in states])
    found, *_ = np.linalg.lstsq(W, measured, rcond=None)
    assert np.allclose(found, base.values, rtol=0, atol=1e-9)
    with_all = np.vstack([mb.regressor(model, *s, armature=True) for s in states])
    assert np.linalg.matrix_rank(with_all, tol=1e-8) == base.rank


def test_loops_leave_fewer():
    """Of a four-bar, what moves it along its one freedom; the forces that can be told are Nᵀτ."""
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    q, _ = entry.start(model)
    closed = mb.base_parameters(model, q=q)
    open_ = mb.base_parameters(replace(model, loops=()))
    assert closed.rank < open_.rank == 9
    other = mb.base_parameters(model, q=q, seed=1)
    assert other.independent == closed.independent
    assert np.allclose(other.matrix, closed.matrix, atol=1e-7)


def test_fewer_operations():
    """The book expects some 15 % of an RNEA that takes more to begin with (Table 10.1)."""
    model = alone(*[mb.Revolute("z")] * 6)
    less = mb.simplify(model)
    before, after = mb.cost(model, "rnea").total, mb.cost(less, "rnea").total
    assert after < 0.93 * before
    for algorithm in ("crba", "aba", "factored"):
        assert mb.cost(less, algorithm).total < mb.cost(model, algorithm).total
