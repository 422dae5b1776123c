"""Counting mobility, the sphere in a cylinder, mechanisms far from the base (book, §8.7, §8.10)."""

from dataclasses import replace

import numpy as np
import pytest

import multibody as mb
from multibody import mechanisms
from tests.multibody.random_mechanisms import draw


@pytest.mark.parametrize("seed", range(12))
def test_general_formula(seed):
    """n_tot − 6 N_L + (n^c − r) is n − r, whatever the loops are (Eq 8.55)."""
    drawn = draw(seed, loops=1 + seed % 2)
    found = mb.mobility(drawn.model, drawn.q, t=drawn.t)
    count = mb.count_mobility(drawn.model)
    assert count.mobility + found.overconstraint == found.mobility
    assert count.overconstraint(found.mobility) == found.overconstraint


@pytest.mark.parametrize(
    ("name", "space", "plane"),
    [
        ("four_bar", -2, 1),
        ("slider_crank", -2, 1),
        ("delta_robot", None, None),
        ("bricard", 0, None),
    ],
)
def test_mechanisms(name, space, plane):
    entry = mechanisms.entry(name)
    model = entry.model()
    found = mb.mobility(model, entry.start(model)[0])
    assert mb.count_mobility(model).overconstraint(found.mobility) == found.overconstraint
    if space is not None:
        assert mb.count_mobility(model).mobility == space
    if plane == 1:
        assert mb.count_mobility(model, planar=True).mobility == plane == found.mobility


def four_bar(last):
    b = mb.ModelBuilder()
    b.add_body("crank", 0, mb.Revolute("y"), inertia=mb.rod((0, 0, 0), (1, 0, 0), mass=1.0))
    b.add_body(
        "coupler", "crank", mb.Revolute("y"), (1, 0, 0), mb.rod((0, 0, 0), (2, 0, 0), mass=2.0)
    )
    b.add_body("rocker", 0, mb.Revolute("y"), (2.2, 0, 0), mb.rod((0, 0, 0), (1.5, 0, 0), mass=1.5))
    b.add_loop("last", "coupler", "rocker", last, (2, 0, 0), (1.5, 0, 0))
    return b.build()


def test_sphere_in_cylinder_repairs_a_planar_linkage():
    """n^c falls from 5 to 2 = r; the motion is the same, and no force is indeterminate."""
    hinged, repaired = four_bar(mb.Revolute("y")), four_bar(mb.SphereInCylinder("y"))
    q = mb.assemble(hinged, [-0.9, 0.7, -1.2], fixed=["crank"]).q
    v = mb.consistent_velocity(hinged, q, [1.0, 0, 0], fixed=["crank"])
    assert mb.mobility(hinged, q).overconstraint == 3
    assert mb.mobility(repaired, q).overconstraint == 0
    assert mb.count_mobility(repaired).mobility == mb.mobility(repaired, q).mobility == 1
    assert np.abs(mb.constraints(repaired, q, v).delta).max() < 1e-12
    assert np.allclose(mb.FD(repaired, q, v, [1, 0, 0]), mb.FD(hinged, q, v, [1, 0, 0]), atol=1e-11)


def test_sphere_in_cylinder_in_the_tree():
    """The ball slides along the bore under gravity along it, whatever it turns like."""
    b = mb.ModelBuilder(gravity=(3.0, 0, -9.81))
    b.add_body("ball", 0, mb.SphereInCylinder("x"), inertia=mb.sphere(mass=2.0, radius=0.1))
    model = b.build()
    q, v = model.random(1), np.array([1.0, -2.0, 0.5, 0.3])
    a = mb.FD(model, q, v)
    assert np.allclose(a, [0, 0, 0, 3.0], atol=1e-12)
    T = mb.SphereInCylinder().constraint_basis(
        mb.SphereInCylinder().random(np.random.default_rng(0))
    )
    assert T.shape == (6, 2)


def floating_mechanisms(count):
    """Floating mechanisms with a loop that does not lead to the base, without springs."""
    seed = 0
    while count:
        drawn = draw(seed, floating=True, loops=2, driven=False, elements=False)
        inside = tuple(x for x in drawn.model.loops if x.predecessor and x.successor)
        seed += 1
        if inside:
            count -= 1
            yield replace(drawn.model, springs=(), loops=inside), drawn.q, drawn.v, drawn.tau


def test_loops_do_not_feel_how_far_away_they_are():
    """A floating mechanism a million metres away: the same gaps, constraints, accelerations."""
    for model, q, v, tau in floating_mechanisms(6):
        far = q.copy()
        far[4:7] += [1e6, -2e6, 5e5]
        for near, away in zip(mb.constraints(model, q, v)[:4], mb.constraints(model, far, v)[:4]):
            assert np.array_equal(near, away)
        a = mb.FD(model, q, v, tau)
        assert np.abs(mb.FD(model, far, v, tau) - a).max() <= 1e-13 * max(1.0, np.abs(a).max())


def test_linkages_far_from_the_origin_of_the_base():
    """Placed at 2²⁰ m, where its ground points are still exact: as if it stood at the origin."""
    far = 2.0**20

    def linkage(x):
        b = mb.ModelBuilder()
        bar = mb.rod((0, 0, 0), (1, 0, 0), mass=1.0)
        b.add_body("crank", 0, mb.Revolute("y"), (x, 0, 0), bar)
        b.add_body("coupler", "crank", mb.Revolute("y"), (1, 0, 0), bar)
        b.add_loop("last", 0, "coupler", mb.SphereInCylinder("x"), (x, 0, 0), (1, 0, 0))
        return b.build()

    here, there = linkage(0.0), linkage(far)
    q = mb.assemble(here, [-0.6, 1.0], fixed=["crank"]).q
    v = mb.consistent_velocity(here, q, [1.0, 0.0])
    assert np.array_equal(mb.FD(here, q, v), mb.FD(there, q, v))
    assert np.array_equal(mb.constraints(here, q, v).delta, mb.constraints(there, q, v).delta)


def test_springs_do_not_feel_how_far_away_they_are():
    """Shifts by powers of two are exact: so are the results, those of two free bodies too."""
    body = mb.Inertia(1.3, (0.1, -0.2, 0.05), (1.0, 1.2, 1.5))
    for joint in (mb.Spherical(), mb.Free()):
        b = mb.ModelBuilder()
        b.add_body("a", 0, mb.Free(), inertia=body)
        b.add_body("b", 0 if joint == mb.Free() else "a", joint, inertia=body)
        b.add_spring("spring", "a", (0.5, 0, 0), "b", (0, 0.4, 0.1), 30.0, 2.0, 0.2)
        model = b.build()
        rng = np.random.default_rng(0)
        q, v = model.random(rng), rng.standard_normal(model.nv)
        for place in model.q_index:
            q[place][4:7] = np.round(q[place][4:7] * 1024) / 1024
        far = q.copy()
        for place in model.q_index:
            far[place][4:7] += 2.0**30
        a = mb.FD(model, q, v)
        np.testing.assert_array_equal(mb.FD(model, far, v), a)
        np.testing.assert_array_equal(mb.ID(model, far, v, a), mb.ID(model, q, v, a))
        for near, away in zip(mb.FD_derivatives(model, q, v), mb.FD_derivatives(model, far, v)):
            np.testing.assert_allclose(away, near, rtol=0, atol=1e-12 * np.abs(near).max())


@pytest.mark.parametrize(("bars", "free"), [((1.2, 1.2, 1.2), 1), ((0, 0, 0.7), 2), ((0, 0, 0), 3)])
def test_mobility_changes_with_the_position(bars, free):
    """Fig 8.2(a): two parallelograms in a row; where one or both are flat, more can move."""
    first, second, third = bars
    model = mechanisms.n_four_bar(2)
    # Couplers are level, but for one that lies on the third bar while the second one is flat.
    coupler = third if third != second else 0.0
    q = [first, second, third, -first, coupler - second]
    np.testing.assert_allclose(mb.constraints(model, q).delta, 0.0, atol=1e-12)
    found = mb.mobility(model, q)
    assert (found.mobility, found.rank, found.freedoms) == (free, 5 - free, 5)
    rank = np.linalg.matrix_rank(mb.constraints(model, q).K, tol=1e-9)
    assert rank == found.rank
