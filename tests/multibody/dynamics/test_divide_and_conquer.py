"""Handle sets, divide and conquer, and forward dynamics by the variants of §7.4."""

import numpy as np
import pytest

import multibody as mb
from multibody import mechanisms
from multibody.mechanisms.random import random_tree
from tests.multibody.random_mechanisms import draw

#: Inertias of single bodies are inverted, and what they make together again.
ROUNDING = 1e-11


def conditioned(model, q, t=0.0):
    """Tolerance of accelerations, by the condition of H."""
    return ROUNDING * max(1.0, np.linalg.cond(mb.crba(model, q, t=t)))


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("order", ["pairs", "leaves"])
def test_forward_dynamics(seed, order):
    """Trees, loops (redundant ones too), drives, springs, armature, floating bases."""
    model, q, v, tau, f_ext, t = draw(seed)
    expected = mb.FD(model, q, v, tau, f_ext, t=t)
    found = mb.divide_and_conquer(model, q, v, tau, f_ext, t=t, order=order)
    # Loops that are nearly redundant carry forces far above what is left to accelerate.
    scale = max(1.0, np.abs(expected).max(), np.abs(found.forces).max())
    assert np.abs(found.accelerations - expected).max() <= conditioned(model, q, t) * scale
    assert sum(found.rounds) == model.n_bodies + len(model.loops)
    if order == "leaves" and not model.loops:
        assert found.rounds == (1,) * model.n_bodies


def test_depth_is_logarithmic():
    """A chain halves from round to round; so do a binary tree and a star."""
    for n in (3, 8, 40, 100):
        chain = mechanisms.serial_arm(n)
        found = mb.divide_and_conquer(chain, np.full(n, 0.2), np.ones(n))
        assert found.depth <= np.ceil(np.log2(n + 1))
        expected = mb.FD(chain, np.full(n, 0.2), np.ones(n))
        scale = np.abs(expected).max()
        assert np.abs(found.accelerations - expected).max() <= 1e-7 * scale  # condition 1e6 at 100
    star = mb.ModelBuilder()
    for i in range(30):
        star.add_body(f"ray{i}", 0, mb.Revolute("y"), inertia=mb.box((1, 0.1, 0.1), mass=1.0))
    assert mb.divide_and_conquer(star.build(), np.zeros(30)).depth == 1
    heap = mb.ModelBuilder()
    for i in range(1, 32):
        heap.add_body(f"b{i}", i // 2, mb.Spherical(), (0, 0, 1), mb.box((1, 0.2, 0.1), mass=1.0))
    model = heap.build()
    assert mb.divide_and_conquer(model, model.random(1)).depth <= 5


def test_forces_are_the_reactions():
    """Joint forces against those of the tree, where no loop shares them."""
    model = random_tree(6, 3)
    rng = np.random.default_rng(3)
    q, v, tau = model.random(rng), *rng.standard_normal((2, model.nv))
    found = mb.divide_and_conquer(model, q, v, tau)
    a = mb.FD(model, q, v, tau)
    expected = mb.joint_forces(model, q, v, a)
    poses = mb.kinematics(model, q).poses
    for i, f in enumerate(found.forces):
        own = poses[i + 1].act_inverse(mb.Force(f)).array
        # Transformed from the base's origin, some metres away.
        assert np.allclose(own, expected[i], rtol=0, atol=1e-9 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("form", ["standard", "constraint", "inverse"])
@pytest.mark.parametrize("seed", range(6))
def test_variants(seed, form):
    model = random_tree(5, seed)
    rng = np.random.default_rng(seed)
    q, v, tau = model.random(rng), *rng.standard_normal((2, model.nv))
    f_ext = rng.standard_normal((5, 6))
    expected = mb.FD(model, q, v, tau, f_ext)
    found = mb.accelerations_by_assembly(model, q, v, tau, f_ext, form=form)
    assert np.abs(found - expected).max() <= conditioned(model, q) * max(1, np.abs(expected).max())


def test_parts_may_be_joined_in_any_order():
    """Three bodies in a row: together at once, or one joint after the other."""
    rng = np.random.default_rng(4)

    def body(*names):
        A = rng.standard_normal((6, 6))
        return mb.HandleSet.rigid(names, A @ A.T + np.eye(6), rng.standard_normal(6))

    def joint(p, s, n):
        S = rng.standard_normal((6, n))
        numbers = rng.standard_normal(6), rng.standard_normal(n), np.zeros(n)
        return mb.JointForces(
            p, s, mb.subspaces.constraint_forces(S), mb.active_forces(S), *numbers
        )

    a, b, c = body("grip", "a"), body("b1", "b2"), body("c", "end")
    first, second = joint("a", "b1", 1), joint("b2", "c", 2)
    together = mb.connect([a, b, c], [first, second]).whole
    left = mb.connect([mb.connect([a, b], [first]).whole, c], [second]).whole
    right = mb.connect([a, mb.connect([b, c], [second]).whole], [first]).whole
    for other in (left, right):
        assert other.names == together.names == ("grip", "end")
        assert np.allclose(other.Phi, together.Phi, atol=ROUNDING)
        assert np.allclose(other.b, together.b, atol=1e-10)
    two = mb.handles.assemble_two_handles(
        mb.InverseForm(a.Phi, a.b),
        mb.InverseForm(b.Phi, b.b),
        first.T,
        first.T_active,
        first.c,
        first.tau,
    )
    assert np.allclose(two.Phi, mb.connect([a, b], [first]).whole.Phi, atol=ROUNDING)


def test_refusals():
    b = mb.ModelBuilder()
    b.add_body("bob", 0, mb.Revolute("y"), inertia=mb.point_mass(1.0, (0, 0, -1)))
    with pytest.raises(ValueError, match="'bob' has no inverse inertia"):
        mb.divide_and_conquer(b.build(), [0.1])
    with pytest.raises(ValueError, match="order"):
        mb.divide_and_conquer(b.build(), [0.1], order="fast")
    one = mb.HandleSet.rigid(["x"], np.eye(6), np.zeros(6))
    weld = (np.eye(6), np.zeros((6, 0)), np.zeros(6), np.zeros(0), np.zeros(0))
    with pytest.raises(ValueError, match="received 'y'"):
        mb.connect([one], [mb.JointForces("x", "y", *weld)])
    with pytest.raises(ValueError, match="one twice"):
        mb.connect([one, one], [])


@pytest.mark.parametrize("seed", range(8))
def test_ID_delta_is_the_inertia_matrix(seed):
    model, q, *_, t = draw(seed)
    a = np.random.default_rng(seed).standard_normal(model.nv)
    H = mb.crba(model, q, t=t)
    assert np.abs(mb.ID_delta(model, q, a, t=t) - H @ a).max() <= 1e-12 * np.abs(H).max() * model.nv
