"""Costs and conditioning (book, chapter 10)."""

import numpy as np
import pytest

import multibody as mb
from multibody import mechanisms
from multibody.dynamics.numerics.cost import PUBLISHED
from multibody.dynamics.trees.factor import ltdl
from tests.multibody.dynamics.test_operation_counts import chain
from tests.multibody.random_mechanisms import draw


def six_links(gravity=(0, 0, 0)):
    """Section 10.2: unit lengths and masses, joints bent by 75 degrees alternately."""
    b = mb.ModelBuilder(gravity=gravity)
    for i in range(6):
        inertia = mb.rod((0, 0, 0), (1, 0, 0), mass=1.0)
        b.add_body(f"link{i}", i, mb.Revolute(), (min(i, 1), 0, 0), inertia)
    return b.build(), np.radians([0, 75, -75, 75, -75, 75])


def test_worked_example():
    """Forces rounded to three digits give accelerations that are 40 % off; 1 is exact."""
    model, q = six_links()
    exact = [126.4936, 97.4663, 69.9762, 43.7998, 21.9371, 6.1646]
    assert np.allclose(mb.ID(model, q, np.zeros(6), np.ones(6)), exact, atol=5e-5)
    rounded = [126, 97.5, 70, 43.8, 21.9, 6.16]
    found = mb.conditioning(model, q, tau=rounded)
    assert found.number == pytest.approx(725.39, abs=0.005)
    # The first number is printed as 0.6952: two digits have changed places.
    expected = [0.6592, 1.3654, 1.3808, 0.5894, 0.9057, 1.0705]
    assert np.allclose(found.accelerations, expected, atol=5e-5)
    relative = np.linalg.norm(found.accelerations - 1.0) / np.sqrt(6.0)
    assert relative > 80 * np.linalg.norm(np.subtract(rounded, exact)) / np.linalg.norm(exact)
    assert "725.4" in str(found)


def test_straight_chains_grow_with_the_fourth_power():
    for n, number in ((6, 5685), (10, 43523)):
        b = mb.ModelBuilder()
        for i in range(n):
            inertia = mb.rod((0, 0, 0), (1, 0, 0), mass=1.0)
            b.add_body(f"link{i}", i, mb.Revolute(), (min(i, 1), 0, 0), inertia)
        found = mb.conditioning(b.build(), np.zeros(n))
        assert found.number == pytest.approx(number, rel=1e-4)
        assert np.allclose(found.directions.T @ found.directions, np.eye(n))


@pytest.mark.parametrize("seed", range(8))
def test_sensitivities_are_derivatives(seed):
    """Against differences of FD of models that are wrong by a small part."""
    from dataclasses import replace

    drawn = draw(seed, driven=False, n=4)
    model, q, v, tau = drawn.model, drawn.q, drawn.v, drawn.tau
    found = mb.conditioning(model, q, v, tau)
    scale = max(1.0, np.abs(found.masses).max(), np.abs(found.lengths).max())
    h = 1e-5
    for i, body in enumerate(model.bodies):
        for kind, expected in (("mass", found.masses[i]), ("length", found.lengths[i])):
            sides = []
            for factor in (1.0 + h, 1.0 - h):
                X = mb.Plucker(body.placement.E, factor * body.placement.r)
                changed = {
                    "mass": {"inertia": factor * body.inertia},
                    "length": {"placement": X},
                }[kind]
                bodies = list(model.bodies)
                bodies[i] = replace(body, **changed)
                sides.append(mb.FD(replace(model, bodies=tuple(bodies)), q, v, tau))
            slope = (sides[0] - sides[1]) / (2 * h)
            # Differences with h = 1e-5: rounding 1e-11 of accelerations, error h² of third order.
            assert np.allclose(slope, expected, rtol=1e-5, atol=1e-5 * scale)


def test_loops_have_the_inertia_of_their_freedom():
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    q, v = entry.start(model)
    found = mb.conditioning(model, q, v)
    assert len(found.inertias) == 1
    speed = found.directions[:, 0]
    assert found.inertias[0] == pytest.approx(2 * mb.energy(model, q, speed).kinetic)
    assert np.abs(mb.constraints(model, q, v).K @ speed).max() < 1e-12


def test_published_totals():
    """Totals of the best versions, and where one overtakes the other (§10.3)."""
    for n, factored, aba in ((6, 1842, 2067), (7, 2356, 2496), (8, 2921, 2925), (9, 3539, 3354)):
        assert mb.published_cost("factored", n).total == factored
        assert mb.published_cost("aba", n).total == aba
    assert mb.published_cost("factored", 30).total == 32302
    best = {n: mb.published_cost("factorisation", n).total for n in (18, 19, 44, 45)}
    rnea = {n: mb.published_cost("rnea", n).total for n in (18, 19)}
    crba = {n: mb.published_cost("crba", n).total for n in (44, 45)}
    assert best[18] < rnea[18]
    assert best[19] > rnea[19]
    assert best[44] < crba[44]
    assert best[45] > crba[45]
    for name, rows in PUBLISHED.items():
        totals = [mb.published_cost(name, 40, k).total for k in range(len(rows))]
        assert totals[0] == min(totals)


def test_branched_totals():
    """Binary trees, numbered as heaps, with the rest of forward dynamics (§10.3)."""
    for n, total in ((7, 2005), (15, 5229), (31, 12477)):
        parents = [i // 2 for i in range(1, n + 1)]
        depth = [0] * (n + 1)
        for i in range(1, n + 1):
            depth[i] = depth[parents[i - 1]] + 1
        D1 = sum(d - 1 for d in depth[1:])
        D2 = sum(d * (d - 1) // 2 for d in depth[1:])
        factors = (D1 + 2 * D2) + (n + 4 * D1)  # Table 6.6: LTDL, and one solution
        assert (
            mb.published_cost("rnea", n).total + mb.branched_cost(parents).total + factors == total
        )


@pytest.mark.parametrize("n", [3, 6])
def test_counted_costs_are_below_the_published(n):
    model = chain(n)
    for algorithm in ("rnea", "crba", "aba", "factored"):
        assert mb.cost(model, algorithm).total <= mb.published_cost(algorithm, n).total
    found, book = mb.cost(model, "factorisation"), mb.published_cost("factorisation", n)
    assert (found.multiplications, found.additions) == (book.multiplications, book.additions)
    assert mb.cost(model, "fd").total == min(mb.cost(model, x).total for x in ("aba", "factored"))


def test_counted_factorisation_is_right():
    """Its formulae, run on numbers: the count would mean little of a wrong algorithm."""
    model = mechanisms.serial_arm(5)
    H = mb.crba(model, model.random(1))
    L, D = ltdl(H, model.tree.arrays["parent_v"])
    assert np.allclose(L.T @ np.diag(D) @ L, H)


def test_springs_and_dampers_are_counted():
    b = mb.ModelBuilder()
    b.add_body("rod", 0, mb.Revolute("y"), inertia=mb.point_mass(1.0, (0, 0, -1)), damping=0.1)
    assert mb.cost(b.build()).total > mb.cost(mechanisms.pendulum()).total


def test_refusals():
    with pytest.raises(ValueError, match="algorithm"):
        mb.cost(mechanisms.pendulum(), "rhea")
    for n in (1, 2.5, True):
        with pytest.raises(ValueError, match="joints ≥ 2"):
            mb.published_cost("aba", n)
    with pytest.raises(ValueError, match="version"):
        mb.published_cost("aba", 5, 9)
    with pytest.raises(ValueError, match="λ\\(2\\)"):
        mb.branched_cost([0, 2])
    with pytest.raises(ValueError, match="expected"):
        mb.conditioning(mechanisms.pendulum(), [0.0, 1.0])
