"""Closing loops: positions, velocities, branches, and what cannot be closed."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from multibody import AssemblyError, assemble, consistent_velocity, constraints, mechanisms
from multibody.dynamics.loops.assembly import project_state
from multibody.dynamics.loops.projection import projected
from multibody.mechanisms.linkages import meeting_point
from tests.multibody.loops.test_loops import free_position, tied_body

LOOPED = [e for e in mechanisms.entries() if e.model().loops]


def test_four_bar_against_two_circles():
    """Both assembly modes, in closed form; the branch tells them apart."""
    model = mechanisms.four_bar()
    crank = np.array([np.cos(0.9), np.sin(0.9)])
    branches = []
    for side, guess in ((1.0, [0.9, -0.7, 0.8]), (-1.0, [0.9, -2.0, -1.5])):
        found = assemble(model, guess, fixed=["crank"])
        assert found.gap < 1e-12
        assert found.q[0] == 0.9
        joint = meeting_point(crank, (2.2, 0.0), 2.0, 1.5, side)
        place = mb.point_position(model, found.q, "rocker", (1.5, 0.0, 0.0))
        np.testing.assert_allclose(place[:2], joint, atol=1e-12)
        assert found.moved == pytest.approx(np.abs(found.q - guess).max())
        branches.append(found.branch)
    assert set(branches) == {-1, 1}


@pytest.mark.parametrize(
    "guess", [[-1.0, -1.4, 1.7], [0.3, 0.0, -2.3], [-1.1, -2.0, -3.1], [-1.6, -0.3, 1.0]]
)
def test_angles_end_within_half_a_turn_of_the_guess(guess):
    """From these guesses the search makes from two to a hundred and sixty whole turns."""
    model = mechanisms.four_bar(crank=0.3, coupler=1.0, rocker=0.8, ground=1.1)
    found = assemble(model, guess, fixed=["crank"])
    assert found.q[0] == guess[0]
    assert found.gap < 1e-12
    assert found.moved <= np.pi
    tip = 0.3 * np.array([np.cos(guess[0]), np.sin(guess[0])])
    place = mb.point_position(model, found.q, "rocker", (0.8, 0.0, 0.0))[:2]
    joints = [meeting_point(tip, (1.1, 0.0), 1.0, 0.8, side) for side in (1.0, -1.0)]
    assert min(np.abs(place - joint).max() for joint in joints) < 1e-12


def test_turns_of_a_screw_are_kept():
    """A nut 4 turns along its thread: the angle is what the length asks for."""
    b = mb.ModelBuilder(name="screw")
    rod = mb.Inertia(1.0, (0.1, 0.0, 0.0), np.eye(3))
    b.add_body("nut", 0, mb.Helical(0.01), inertia=rod)
    b.add_body("sleeve", "nut", mb.Revolute(), inertia=rod)
    b.add_loop("end", 0, "sleeve", mb.Revolute(), (0.0, 0.0, 0.08 * np.pi), (0.0, 0.0, 0.0))
    model = b.build()
    found = assemble(model, [1.0, 0.0])
    assert found.q[0] == pytest.approx(8.0 * np.pi, abs=1e-9)
    assert abs(found.q[1]) <= np.pi


@pytest.mark.parametrize("entry", LOOPED, ids=lambda e: e.name)
def test_starts_of_the_catalogue_are_consistent_and_found_again(entry):
    model = entry.model()
    q, v = entry.start(model)
    c = constraints(model, q, v)
    size = np.abs(v).max(initial=1.0)
    assert np.abs(c.delta).max() < 1e-14
    assert np.abs(c.K @ v - c.nu).max() < 1e-13 * size
    rng = np.random.default_rng(4)
    shaken = model.integrate(q, 1e-2 * rng.standard_normal(model.nv))
    assert np.abs(constraints(model, shaken).delta).max() > 1e-6
    found = assemble(model, shaken)
    assert found.gap < 1e-12
    assert np.abs(found.q - q).max() < 0.1
    if entry.name == "bricard":
        return  # where it is open, all five constraints count, and only one position is left
    # The nearest closed position is not farther away than the one it was shaken from.
    moved, shift = model.difference(shaken, found.q), model.difference(shaken, q)
    H = mb.crba(model, q)
    assert moved @ H @ moved < 1.1 * (shift @ H @ shift)


def test_consistent_velocity_is_the_nearest_by_kinetic_energy():
    """The change is an impulse Kᵀp: no motion that the loops allow gains from it."""
    entry = mechanisms.entry("delta_robot")
    model = entry.model()
    q, _ = entry.start(model)
    rng = np.random.default_rng(0)
    wanted = rng.standard_normal(model.nv)
    v = consistent_velocity(model, q, wanted)
    K = constraints(model, q).K
    np.testing.assert_allclose(K @ v, 0.0, atol=1e-12)
    allowed = np.linalg.svd(K)[2][18:].T
    H = mb.crba(model, q)
    np.testing.assert_allclose(allowed.T @ H @ (v - wanted), 0.0, atol=1e-12)


def test_projection_returns_to_the_loops():
    model = mechanisms.bricard()  # one constraint is redundant
    q = assemble(model, [0.4, 0.0, 0.0, 0.0, 0.0], fixed=["rod1"]).q
    v = consistent_velocity(model, q, [1.0, 0.0, 0.0, 0.0, 0.0], fixed=["rod1"])
    near, fast = project_state(model, q + 1e-5 * np.arange(5), v + 1e-5)
    c = constraints(model, near, fast)
    assert np.abs(c.delta).max() < 1e-14
    assert np.abs(c.K @ fast).max() < 1e-14
    assert np.abs(near - q).max() < 1e-4


def test_loops_of_balls_screws_and_time():
    """Quaternions stay unit vectors; a driven loop joint carries the body along."""
    rng = np.random.default_rng(6)
    for joint in (mb.Spherical(), mb.Helical(0.1), mb.Universal(), mb.Planar("x")):
        model, X_P, X_S = tied_body(joint, rng)
        X = X_S.inverse() * joint.motion(joint.random(rng)).X * X_P
        guess = model.integrate(free_position(X), 0.2 * rng.standard_normal(6))
        found = assemble(model, guess)
        assert found.gap < 1e-12
        assert np.linalg.norm(found.q[:4]) == pytest.approx(1.0, abs=1e-14)
    b = mb.ModelBuilder()
    b.add_body("body", 0, mb.Free(), inertia=mb.box((0.1, 0.2, 0.3), mass=1.0))
    b.add_loop("drive", 0, "body", mb.Driven(mb.Prismatic("x"), lambda t: [0.3 * t]))
    model = b.build()
    found = assemble(model, t=2.0)
    np.testing.assert_allclose(found.q[4:], [0.6, 0.0, 0.0], atol=1e-12)
    v = consistent_velocity(model, found.q, np.zeros(6), t=2.0)
    np.testing.assert_allclose(v, [0, 0, 0, 0.3, 0, 0], atol=1e-13)


def test_a_loop_that_cannot_close_is_reported_with_its_gap():
    b = mb.ModelBuilder(name="too short")
    rod = mb.rod((0, 0, 0), (1, 0, 0), mass=1.0)
    b.add_body("left", 0, mb.Revolute(), inertia=rod)
    b.add_body("right", 0, mb.Revolute(), (2.5, 0, 0), rod)
    b.add_loop("hand", "left", "right", mb.Revolute(), (1.0, 0, 0), (1.0, 0, 0))
    with pytest.raises(AssemblyError, match=r"hand\[\d\] stays open by .* check the lengths") as e:
        assemble(b.build(), [0.3, 2.8])
    assert "too short" in str(e.value)


def test_joints_that_are_fixed_can_be_too_many():
    model = mechanisms.four_bar()
    with pytest.raises(AssemblyError, match=r"stays open .*fixed: \['crank', 'rocker'\]"):
        assemble(model, [0.9, -0.7, -1.5], fixed=["crank", "rocker"])
    q, _ = mechanisms.entry("four_bar").start(model)
    with pytest.raises(AssemblyError, match="whatever the other velocities are"):
        consistent_velocity(model, q, [1.0, 0.0, 5.0], fixed=["crank", "rocker"])
    with pytest.raises(ValueError, match="the base does not move"):
        assemble(model, q, fixed=["base"])
    with pytest.raises(ValueError, match="did you mean 'crank'"):
        assemble(model, q, fixed=["crunk"])
    with pytest.raises(ValueError, match="q: expected 3 numbers"):
        assemble(model, [0.9])


def test_meeting_points():
    np.testing.assert_allclose(meeting_point((1, 1), (1, 5), 3.0, 5.0, -1.0), [4.0, 1.0])
    for bad in (((0, 0), (4, 0), 1.0, 2.0), ((0, 0), (1, 0), 5.0, 1.0), ((1, 1), (1, 1), 1.0, 1.0)):
        with pytest.raises(ValueError, match="do not meet"):
            meeting_point(*bad)


@pytest.mark.parametrize("joint", [mb.Fixed(), mb.Prismatic("x"), mb.Revolute(), mb.Cylindrical()])
def test_floating_bodies_are_tied_from_anywhere(joint):
    """They can always be reached; half a turn off is closed the wrong way, and is turned over."""
    rng = np.random.default_rng(3)
    turns = not isinstance(joint, mb.Fixed | mb.Prismatic)

    def alignment(q, X_P, X_S):
        """Cosine of what is between the axes z; or of the angle between the frames."""
        E = X_S.E @ mb.quaternions.to_matrix(q[:4]).T @ X_P.E.T
        return E[2, 2] if turns else (np.trace(E) - 1.0) / 2.0

    wrong = 0
    for _ in range(8):
        model, X_P, X_S = tied_body(joint, rng)
        guess = model.random(rng)
        found = assemble(model, guess)
        assert found.gap < 1e-12
        assert alignment(found.q, X_P, X_S) == pytest.approx(1.0, abs=1e-12)
        wrong += alignment(guess, X_P, X_S) < 0.0
    assert wrong >= 2  # of the guesses are more than a quarter turn off


@pytest.mark.parametrize("name", [entry.name for entry in LOOPED])
def test_the_projection_after_each_step_is_the_smallest_change(name):
    """The kernel and least squares agree but for the square of the distance, 1e-18."""
    entry = mechanisms.entry(name)
    model = entry.model()
    q, v = entry.start(model)
    rng = np.random.default_rng(3)
    q = model.normalise(model.integrate(q, 1e-9 * rng.standard_normal(model.nv)))
    v = v + 1e-3 * rng.standard_normal(model.nv)
    found = projected(model, q, v, 0.0)
    assert found is not None
    for one, other in zip(found, project_state(model, q, v)):
        assert np.abs(one - other).max() < 1e-13 * (1.0 + np.abs(other).max())
    c = constraints(model, *found)
    assert np.abs(c.delta).max() < 1e-13
    assert np.abs(c.K @ found[1] - c.nu).max() < 1e-12


def test_a_projection_that_cannot_succeed_says_so():
    """Bars that cannot reach: the gap stays, and the caller asks somebody else."""
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    q, v = entry.start(model)
    assert projected(model, q + np.array([0.0, 2.5, 2.5]), v, 0.0) is None
