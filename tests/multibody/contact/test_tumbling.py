"""Boxes that tumble on a rough floor: many impacts, corners that slide, stop and turn."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import solve

SIZE = (1.0, 0.6, 0.4)
OPTIONS = {"method": "DOP853", "rtol": 1e-8, "atol": 1e-10, "max_steps": 3000}


@pytest.fixture(scope="module")
def box():
    b = mb.ModelBuilder(name="box")
    b.add_body("box", 0, mb.Free(), inertia=mb.box(SIZE, mass=2.0))
    rough = {"restitution": 0.3, "friction": 0.3}
    b.add_contact("floor", 0, mb.HalfSpace(), "box", mb.BoxCorners(SIZE), **rough)
    return b.build()


def turning(model, centre, spin):
    """Lying on its four lower corners, it turns about the vertical through `centre`."""
    q, v = model.neutral(), np.zeros(6)
    q[6] = 0.5 * SIZE[2]
    v[2] = spin
    v[3:5] = spin * centre[1], -spin * centre[0]
    return q, v


@pytest.mark.parametrize("nudge", [0.0, 3e-8, 1e-6, 9e-6])
def test_a_corner_that_hardly_slips_stands(box, nudge):
    """Friction at the others cannot move it: it sticks at once, and so do all, soon.

    With a direction told from 3·10⁻⁸ m/s the corner chattered at the speed below which directions
    are not told anew, in steps of nanoseconds.
    """
    q, v = turning(box, (0.5, 0.3), 0.028)
    v[3:5] += nudge * np.array([0.8, -0.6])
    solution = solve(mb.as_ivp(box, q, v, (0.0, 0.3), restitution_law="poisson"), **OPTIONS)
    assert solution.success, solution.message
    assert solution.nsteps < 300
    assert solution.modes[-1].mode.count("sticks") == 4
    energies = mb.energy(box, solution).kinetic
    assert (np.diff(energies) < 1e-9).all()
    assert energies[-1] < 1e-20


@pytest.mark.parametrize("seed", [15, 34, 44, 49, 125, 140])
def test_a_tumbling_box_comes_to_rest(box, seed):
    """Starts that chattered, or ended with a corner that slid where three others stuck; or (34, 44)
    with one that touched again and again while it left by less than its gap is rounded to. In 49
    a corner stuck with more friction than it has: it had begun to slide and stopped by rounding.
    """
    random = np.random.default_rng(seed)
    q, turn = box.neutral(), random.normal(size=4)
    q[:4], q[6] = turn / np.linalg.norm(turn), 1.2
    problem = mb.as_ivp(box, q, random.normal(size=6), (0.0, 2.5), restitution_law="poisson")
    solution = solve(problem, **OPTIONS)
    assert solution.success, solution.message
    for stay in solution.modes:  # three corners that stick hold a rigid body
        assert stay.mode.count("sticks") < 3 or "slides" not in stay.mode
    assert np.abs(solution.y[7:, -1]).max() < 1e-9
    assert mb.contact_kinematics(box, solution.y[:7, -1]).gap.min() > -1e-8
    seen = mb.contact_forces(box, solution)
    assert (seen.friction <= 0.3 * seen.normal_force + 1e-8).all()
    assert seen.normal_force.min() > -1e-8


@pytest.mark.parametrize("law", ["newton", "poisson"])
@pytest.mark.parametrize("angle", [0.0, 0.325, 1.0])
def test_friction_that_is_just_enough(law, angle):
    """A cube that turns about a lower edge falls on the opposite one, with μ = 0.6.

    Impulses through the corners' edge that leave the other one free must point along (0.6, 1): the
    corners stick at the very edge of their cones, and the sweeps of `coulomb` ended nowhere.
    """
    b = mb.ModelBuilder(name="cube")
    b.add_body("cube", 0, mb.Free(), inertia=mb.box((1, 1, 1), mass=2.0))
    b.add_contact("floor", 0, mb.HalfSpace(), "cube", mb.BoxCorners((1, 1, 1)), friction=0.6)
    cube = b.build()
    q = cube.neutral()
    q[:4] = np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)
    q[6] = 0.5
    w = 1e-3
    v = [0.0, w, 0.0, 0.5 * w, 0.0, -0.5 * w]  # about the edge x = −½, z = −½
    found = mb.impact(cube, q, v, law=law)
    taking = found.impulses[:, 0] > 1e-12
    assert taking.sum() == 2
    slant = np.hypot(*found.impulses[taking, 1:].T) / found.impulses[taking, 0]
    np.testing.assert_allclose(slant, 0.6, rtol=1e-9)
    k = mb.contact_kinematics(cube, q, found.velocities)
    np.testing.assert_allclose(k.gap_rate[taking], 0.0, atol=1e-12)
    np.testing.assert_allclose(k.slip[taking], 0.0, atol=1e-12)
