"""Accelerations and impacts at one state: complementarity, restitution, balances, paradoxes."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from multibody.contact.lcp import LCPError

G = 9.81


def in_plane(inertia, *contacts):
    """A body in the plane xz, q = (x, z, angle), with contacts (name, normal, point, options)."""
    b = mb.ModelBuilder(name="plane")
    b.add_body("x", 0, mb.Prismatic("x"))
    b.add_body("z", "x", mb.Prismatic("z"))
    b.add_body("body", "z", mb.Revolute("y"), inertia=inertia)
    for name, normal, point, options in contacts:
        b.add_contact(name, 0, mb.HalfSpace(normal), "body", mb.Vertex(point), **options)
    return b.build()


def two_balls(e=0.6, mu=0.0):
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    for name, mass in (("a", 1.0), ("b", 3.0)):
        b.add_body(name, 0, mb.Free(), inertia=mb.sphere(mass=mass, radius=0.5))
    pair = ("a", mb.Ball(0.5), "b", mb.Ball(0.5))
    b.add_contact("pair", *pair, restitution=e, friction=mu)
    model = b.build()
    q = model.neutral()
    q[11:14] = 0.6, 0.8, 0.0
    return model, q


# ---------------------------------------------------------------------- accelerations


def box_on_plane(**options):
    b = mb.ModelBuilder(name="box")
    b.add_body("box", 0, mb.Free(), inertia=mb.box((1, 1, 1), mass=2.0))
    b.add_contact("floor", 0, mb.HalfSpace(), "box", mb.BoxCorners((1, 1, 1)), **options)
    model = b.build()
    q = model.neutral()
    q[6] = 0.5
    return model, q


def test_a_box_on_four_corners():
    """Accelerations are unique, forces are not; the smallest are equal shares, and it is said."""
    model, q = box_on_plane()
    found = mb.contact_accelerations(model, q, np.zeros(6))
    np.testing.assert_allclose(found.accelerations, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.forces[::2, 0], 2 * G / 4, rtol=1e-12)
    assert not found.unique
    assert found.states == ("rests", "apart") * 4
    least = mb.contact_accelerations(model, q, np.zeros(6), method="qp")
    np.testing.assert_allclose(least.accelerations, found.accelerations, atol=1e-9)
    turned = {"box": [0.0, 30.0, 0.0, 0.0, 0.0, 0.0]}  # tips over two of the corners
    for method in ("lcp", "qp"):
        tipping = mb.contact_accelerations(model, q, np.zeros(6), f_ext=turned, method=method)
        assert tipping.states.count("rests") == 2
        assert tipping.accelerations[1] > 1.0
    with pytest.raises(ValueError, match="no friction"):
        mb.contact_accelerations(*box_on_plane(friction=0.1), np.zeros(6), method="qp")


def test_friction_shares_the_load_within_its_cones():
    model, q = box_on_plane(friction=0.4)
    pull = {"box": [0.0, 0.0, 0.0, 5.0, 0.0, 0.0]}
    stuck = mb.contact_accelerations(model, q, np.zeros(6), f_ext=pull)
    assert set(stuck.states) == {"sticks", "apart"}
    np.testing.assert_allclose(stuck.accelerations, 0.0, atol=1e-11)
    slip = np.hypot(stuck.forces[:, 1], stuck.forces[:, 2])
    assert (slip <= 0.4 * stuck.forces[:, 0] + 1e-12).all()
    pull["box"][3] = 10.0
    pull["box"][1] = -5.0  # in line with the friction, so that it does not tip
    slides = mb.contact_accelerations(model, q, np.zeros(6), f_ext=pull)
    assert slides.accelerations[3] == pytest.approx((10.0 - 0.4 * 2 * G) / 2, rel=1e-9)


def test_states_of_the_gap_are_told_apart():
    model, q = box_on_plane()
    with pytest.raises(ValueError, match=r"closing at 1 m/s.*use impact"):
        mb.contact_accelerations(model, q, [0, 0, 0, 0, 0, -1.0])
    leaving = mb.contact_accelerations(model, q, [0, 0, 0, 0, 0, 1.0])
    assert set(leaving.states) == {"apart"}
    np.testing.assert_allclose(leaving.accelerations, mb.FD(model, q, [0, 0, 0, 0, 0, 1.0]))
    q[6] = 0.47
    with pytest.raises(ValueError, match=r"penetrate by 0.03 m \(4 of 8"):
        mb.contact_accelerations(model, q, np.zeros(6))
    apart = mb.separate(model, q)
    np.testing.assert_allclose(mb.contact_kinematics(model, apart).gap.min(), 0.0, atol=1e-12)


def test_contact_beside_a_loop_is_the_reduced_mechanism():
    """A four-bar on a stop: φ̈ = M λ + d with M and d from the loop's own accelerations."""
    model, q = four_bar_with_stop()
    k = mb.contact_kinematics(model, q)
    free = mb.constrained_accelerations(model, q, np.zeros(3)).accelerations
    pushed = mb.constrained_accelerations(model, q, np.zeros(3), k.T[0, 0]).accelerations
    M, d = k.T[0, 0] @ (pushed - free), k.T[0, 0] @ free
    assert d < 0.0
    found = mb.contact_accelerations(model, q, np.zeros(3))
    assert found.forces[0, 0] == pytest.approx(-d / M, rel=1e-9)
    c = mb.constraints(model, q, np.zeros(3))
    balance = mb.crba(model, q) @ found.accelerations + mb.bias_forces(model, q, np.zeros(3))
    held = k.T[0, 0] * found.forces[0, 0] + c.K.T @ found.multipliers
    np.testing.assert_allclose(balance, held, atol=1e-10)


def test_no_force_keeps_what_is_squeezed():
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("slab", 0, mb.Prismatic("z"), inertia=mb.point_mass(1.0))
    b.add_body("lid", 0, mb.Driven(mb.Prismatic("z"), lambda t: [1.0 - t**2]))
    b.add_contact("below", 0, mb.HalfSpace(), "slab", mb.Vertex())
    b.add_contact("above", "lid", mb.HalfSpace((0, 0, -1)), "slab", mb.Vertex((0, 0, 1.0)))
    with pytest.raises(LCPError, match="no solution"):
        mb.contact_accelerations(b.build(), [0.0], [0.0])


def test_painleve_is_told():
    """A rod pushed tip first: where W_nn − μ W_nt < 0 rigid bodies have no motion, or several."""
    angle, mu = -0.6, 2.0
    rod = mb.rod((0, 0, -0.5), (0, 0, 0.5), mass=1.0)
    model = in_plane(rod, ("tip", (0, 0, 1), (0, 0, -0.5), {"friction": mu}))
    q = [0.0, 0.5 * np.cos(angle), angle]
    with pytest.raises(mb.PainleveError, match="allows no motion"):
        mb.contact_accelerations(model, q, [3.0, 0.0, 0.0])
    spin = 30.0  # fast enough that the tip would leave by itself: two solutions
    tip = [3.0 + 0.5 * np.cos(angle) * spin, -0.5 * np.sin(angle) * spin, spin]
    with pytest.raises(mb.PainleveError, match="several motions"):
        mb.contact_accelerations(model, q, tip)
    assert mb.contact_accelerations(model, q, [-3.0, 0.0, 0.0]).states == ("slides",)


# ---------------------------------------------------------------------- impacts


@pytest.mark.parametrize("law", ["newton", "poisson"])
def test_two_body_formulae(law):
    """Eq 11.65 and its energy, momentum kept; and with friction that sticks."""
    rng = np.random.default_rng(1)
    model, q = two_balls()
    n = np.array([0.6, 0.8, 0.0])
    v = rng.standard_normal(12)
    v[9:12] -= 3.0 * n
    zeta = n @ (v[9:12] - v[3:6])
    found = mb.impact(model, q, v, law=law)
    W = 1.0 + 1.0 / 3.0
    assert found.impulses[0, 0] == pytest.approx(-(1 + 0.6) * zeta / W, rel=1e-12)
    assert found.energy_loss == pytest.approx(0.5 * (1 - 0.36) * zeta**2 / W, rel=1e-12)
    for mu in (0.0, 0.1, 5.0):
        model, q = two_balls(mu=mu)
        found = mb.impact(model, q, v, law=law)
        before, after = (mb.momentum(model, q, x) for x in (v, found.velocities))
        np.testing.assert_allclose(after, before, atol=1e-12)
        k = mb.contact_kinematics(model, q, found.velocities)
        assert k.gap_rate[0] == pytest.approx(-0.6 * zeta, rel=1e-9)
        normal, slip = found.impulses[0, 0], np.hypot(*found.impulses[0, 1:])
        assert slip <= mu * normal + 1e-12
        if mu == 5.0:
            np.testing.assert_allclose(k.slip, 0.0, atol=1e-10)
        elif mu:
            opposite = -k.slip[0] / np.hypot(*k.slip[0])
            if law == "newton":
                np.testing.assert_allclose(found.impulses[0, 1:] / slip, opposite, atol=1e-8)
        assert found.energy_loss >= 0.0


def test_a_level_rod_and_one_that_is_tilted_by_a_billionth():
    rod = mb.rod((-0.5, 0, 0), (0.5, 0, 0), mass=1.0)
    ends = [(s, (0, 0, 1), (x, 0, 0), {"restitution": 0.5}) for s, x in (("l", -0.5), ("r", 0.5))]
    model = in_plane(rod, *ends)
    for tilt in (0.0, 1e-9, -1e-9):
        found = mb.impact(model, [0.0, 0.5 * abs(tilt), tilt], [0.0, -1.0, 0.0])
        np.testing.assert_allclose(found.velocities, [0.0, 0.5, 0.0], atol=1e-8)


def test_newtons_cradle_passes_one_ball_on():
    model = mb.mechanisms.newtons_cradle()
    found = mb.impact(model, np.zeros(5), [-1.0, 0, 0, 0, 0])
    np.testing.assert_allclose(found.velocities, [0, 0, 0, 0, -1.0], atol=1e-14)
    two = mb.impact(model, np.zeros(5), [-1.0, -1.0, 0, 0, 0])
    np.testing.assert_allclose(two.velocities, [0, 0, 0, -1.0, -1.0], atol=1e-14)


def four_bar_with_stop(room=0.0):
    """A four-bar over a stop, `room` above it, and where it starts."""

    def build(height):
        b = mb.ModelBuilder(name="four-bar with stop")
        rods = [mb.rod((0, 0, 0), (x, 0, 0), mass=x) for x in (1.0, 2.0, 1.5)]
        b.add_body("crank", 0, mb.Revolute("y"), None, rods[0])
        b.add_body("coupler", "crank", mb.Revolute("y"), (1.0, 0, 0), rods[1])
        b.add_body("rocker", 0, mb.Revolute("y"), (2.2, 0, 0), rods[2])
        b.add_loop("C", "coupler", "rocker", mb.Revolute("y"), (2, 0, 0), (1.5, 0, 0))
        surface = mb.HalfSpace((0, 0, 1), (0, 0, height))
        b.add_contact("stop", 0, surface, "coupler", mb.Ball(0.05, (1.0, 0, 0)), restitution=0.6)
        return b.build()

    q = mb.assemble(build(0.0), [0.3, -0.8, -1.2]).q
    return build(mb.contact_kinematics(build(0.0), q).gap[0] - room), q


def test_impact_in_a_closed_loop():
    """H Δv = Tᵀr + Kᵀι, and the loop stays closed; joint impulses are returned."""
    model, q = four_bar_with_stop()
    v = mb.consistent_velocity(model, q, [1.0, 0.0, 0.0])
    k = mb.contact_kinematics(model, q, v)
    v = v if k.gap_rate[0] < 0 else -v
    found = mb.impact(model, q, v)
    c, k = mb.constraints(model, q, v), mb.contact_kinematics(model, q, v)
    np.testing.assert_allclose(c.K @ found.velocities, 0.0, atol=1e-12)
    change = mb.crba(model, q) @ (found.velocities - v)
    impulses = k.T[0].T @ found.impulses[0] + c.K.T @ found.loop_impulses
    np.testing.assert_allclose(change, impulses, atol=1e-12)
    after = mb.contact_kinematics(model, q, found.velocities).gap_rate[0]
    assert after == pytest.approx(-0.6 * k.gap_rate[0], rel=1e-10)
    assert np.abs(found.loop_impulses).max() > 0.01


def test_energy_that_an_impact_would_create_is_refused():
    """Kane's example: Newton's restitution with friction on a slender rod; Poisson's is sound."""
    rng, gains = np.random.default_rng(2), 0
    rod = mb.rod((0, 0, -0.5), (0, 0, 0.5), mass=1.0)
    options = {"restitution": 0.9, "friction": 0.6}
    model = in_plane(rod, ("tip", (0, 0, 1), (0, 0, -0.5), options))
    for _ in range(60):
        angle = rng.uniform(-1.2, 1.2)
        q, v = [0.0, 0.5 * np.cos(angle), angle], rng.uniform(-3, 3, 3)
        if mb.contact_kinematics(model, q, v).gap_rate[0] >= 0:
            continue
        assert mb.impact(model, q, v, law="poisson").energy_loss >= -1e-12
        try:
            assert mb.impact(model, q, v).energy_loss >= 0.0
        except mb.EnergyGainError:
            gains += 1
    assert gains > 0
