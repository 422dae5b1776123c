"""Time stepping of bodies that turn fast: momenta, energy, order; and many bodies at once."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import Status, solve
from multibody import mechanisms
from multibody.algebra.orientation.quaternions import to_matrix

from .test_instants import four_bar_with_stop


@pytest.fixture(scope="module")
def slab():
    """A flat box over a floor that only a ball around its middle touches."""
    b = mb.ModelBuilder(name="slab")
    b.add_body("slab", 0, mb.Free(), inertia=mb.box((1.0, 0.6, 0.2), mass=2.0))
    shape = mb.Ball(0.3, (0.05, 0.0, 0.0))
    b.add_contact("floor", 0, mb.HalfSpace(), "slab", shape, restitution=0.5, friction=0.3)
    return b.build()


def spinning(model, height=100.0, t_end=1.0):
    q = model.neutral()
    q[6] = height
    return mb.as_ivp(model, q, [20.0, 0.5, 30.0, 1.0, 2.0, 3.0], (0.0, t_end))


def test_a_body_that_turns_fast_keeps_its_momenta_and_energy(slab):
    """About 36 rad/s, 0.7 rad a step: the scheme keeps them to rounding, whatever the step is."""
    problem = spinning(slab)
    run = solve(problem, method="MoreauJean", step=0.02)
    start = mb.energy(slab, problem.y0[:7], problem.y0[7:])
    energies = [mb.energy(slab, y[:7], y[7:]).total for y in run.y.T]
    np.testing.assert_allclose(energies, start.total, rtol=1e-12)
    turns = [mb.momentum(slab, y[:7], y[7:], about="com")[:3] for y in run.y.T]
    np.testing.assert_allclose(turns, [turns[0]] * len(turns), atol=1e-11)
    # The centre moves as a point does, however fast the body turns.
    t = run.t
    fall = problem.y0[4:7, None] + np.outer([1, 2, 3], t) - np.outer([0, 0, 4.905], t * t)
    np.testing.assert_allclose(run.y[4:7], fall, atol=1e-10)


def test_order_two_in_flight(slab):
    problem = spinning(slab, t_end=0.5)
    right = solve(problem, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    errors = [
        np.abs(solve(problem, method="MoreauJean", step=h).y[:, -1] - right).max()
        for h in (0.005, 0.0025, 0.00125)
    ]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert ((orders > 1.9) & (orders < 2.1)).all(), orders


def test_order_one_through_impacts(slab):
    """It lands spinning, is rubbed, and bounces; errors depend on where in a step it lands."""
    problem = spinning(slab, height=0.6, t_end=1.0)
    right = solve(problem, method="DOP853", rtol=1e-11, atol=1e-12)
    assert len(mb.impacts(slab, right)) >= 1
    steps = 2.0 ** -np.arange(8, 14)
    errors = [
        np.abs(solve(problem, method="MoreauJean", step=h).y[:, -1] - right.y[:, -1]).max()
        for h in steps
    ]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert 0.7 < slope < 1.4, (slope, errors)


def test_a_bowling_ball_rolls_at_last():
    """It turns by 0.14 rad a step: explicit in ω × v, the scheme gained energy without end."""
    problem = mechanisms.entry("bowling_ball").problem()
    run = solve(problem, method="MoreauJean", step=4e-3)
    assert run.success
    speed = to_matrix(run.y[:4, -1]) @ run.y[10:13, -1]
    np.testing.assert_allclose(speed, [5.0 * 5 / 7, 0.0, 0.0], atol=1e-4)
    np.testing.assert_allclose(run.y[6], 0.1, atol=1e-9)  # it stays on the lane
    sliding, v, mu_g = 2 * 5 / (7 * 0.2 * 9.81), 5.0, 0.2 * 9.81
    way = v * sliding - mu_g * sliding**2 / 2 + 5 / 7 * v * (2.0 - sliding)
    assert abs(run.y[4, -1] - way) < 1e-5


def test_a_planar_body_that_turns_fast():
    b = mb.ModelBuilder(name="disc")
    b.add_body("disc", 0, mb.Planar("y"), inertia=mb.cylinder(0.1, 0.05, mass=1.0))
    b.add_contact("floor", 0, mb.HalfSpace(), "disc", mb.Ball(0.1), friction=0.5)
    model = b.build()
    problem = mb.as_ivp(model, [0.0, 5.0, 0.0], [40.0, 0.0, 1.0], (0.0, 0.5))
    right = solve(problem, method="DOP853", rtol=1e-12, atol=1e-13)
    run = solve(problem, method="MoreauJean", step=0.01)
    np.testing.assert_allclose(run.y[:, -1], right.y[:, -1], atol=1e-9)


def test_a_step_that_turns_too_far_says_so(slab):
    run = solve(spinning(slab), method="MoreauJean", step=0.5)
    assert run.status == Status.FUNCTION_RAISED
    assert "too long for how fast bodies turn" in run.message


def test_a_ball_that_bounces_and_rests_makes_no_energy():
    run = solve(mechanisms.entry("bouncing_ball").problem(), method="MoreauJean", step=1e-2)
    assert run.success


def test_loops_stay_closed_and_balance():
    """A four-bar whose coupler hits a stop, as the event-driven run has it, at first order."""
    model, q = four_bar_with_stop(0.2)
    problem = mb.as_ivp(model, q, None, (0.0, 0.6))
    right = solve(problem, method="DOP853", rtol=1e-10, atol=1e-11)
    errors = []
    for h in (4e-3, 2.5e-4):
        run = solve(problem, method="MoreauJean", step=h)
        assert run.success, run.message
        errors.append(np.abs(run.y[:, -1] - right.y[:, -1]).max())
    assert errors[1] < 0.15 * errors[0] < 0.01


def test_a_heap_of_balls_comes_to_rest_without_penetrating_more():
    """Twelve balls in a corner: sparse rows, warm starts, sweeps; the law of each impulse."""
    radius, random = 0.1, np.random.default_rng(8)
    b = mb.ModelBuilder(name="heap")
    walls = [mb.HalfSpace((0, 0, 1)), mb.HalfSpace((1, 0, 0)), mb.HalfSpace((0, 1, 0))]
    walls += [mb.HalfSpace((-1, 0, 0), (0.45, 0, 0)), mb.HalfSpace((0, -1, 0), (0, 0.45, 0))]
    ball = mb.Ball(radius)
    q = []
    for k in range(12):
        b.add_body(f"b{k}", 0, mb.Free(), inertia=mb.sphere(mass=1.0, radius=radius))
        for i, wall in enumerate(walls):
            b.add_contact(f"w{i}b{k}", 0, wall, f"b{k}", ball, friction=0.3)
        for j in range(k):
            b.add_contact(f"{j}:{k}", f"b{j}", ball, f"b{k}", ball, friction=0.3)
        place = [0.11 + 0.22 * (k % 2), 0.11 + 0.22 * (k // 2 % 2), 0.11 + 0.22 * (k // 4)]
        q += [1.0, 0.0, 0.0, 0.0, *(np.array(place) + random.uniform(-0.005, 0.005, 3))]
    model = b.build()
    run = solve(mb.as_ivp(model, q, np.zeros(model.nv), (0.0, 1.5)), method="MoreauJean", step=5e-3)
    assert run.success, run.message
    assert np.abs(run.y[model.nq :, -1]).max() < 1e-3
    gaps = mb.contact_kinematics(model, run.y[: model.nq, -1]).gap
    assert gaps.min() > -5e-3 * np.sqrt(2 * 9.81 * 0.45)  # a step of the fastest of them
    assert (gaps < 1e-3).sum() >= 3 * 12 / 2  # each rests on something
    energies = mb.energy(model, run)
    total = energies.kinetic + energies.potential
    assert (np.diff(total) < 1e-6 * total[0]).all()


def test_own_states_of_elements_move_with_the_steps():
    """A controlled bead on a string over a floor that it does not reach, then one that it does."""

    def bead(depth):
        b = mb.ModelBuilder(name="controlled bead")
        b.add_body("x", 0, mb.Prismatic("x"))
        b.add_body("z", "x", mb.Prismatic("z"), inertia=mb.point_mass(1.0))
        b.add_constraint("string", lambda q: q["x"] ** 2 + q["z"] ** 2 - 4.0)
        b.add_element("pid", mb.PID("x", target=0.5, kp=3.0, ki=2.0, kd=0.5))
        b.add_contact("floor", 0, mb.HalfSpace(point=(0, 0, -depth)), "z", mb.Vertex())
        start = [2 * np.sin(0.6), -2 * np.cos(0.6)]
        return mb.as_ivp(b.build(), start, [0.0, 0.0], (0.0, 1.0))

    exact = solve(bead(10.0), method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    errors = [
        np.abs(solve(bead(10.0), method="MoreauJean", step=h).y[:, -1] - exact)
        for h in (0.02, 0.01)
    ]
    assert errors[1].max() < 1e-3
    np.testing.assert_allclose(errors[0] / errors[1], 4.0, rtol=0.1)  # order two in flight
    exact = solve(bead(1.9), method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    found = solve(bead(1.9), method="MoreauJean", step=0.001).y[:, -1]
    np.testing.assert_allclose(found, exact, atol=5e-3)  # as deep as it falls in a step


@pytest.mark.parametrize("step", [1.9e-3, 1e-3])
def test_a_row_of_balls_passes_one_on_in_steps_too(step):
    """Points that open and are pushed by their neighbours made energy; both roads have one law."""
    problem = mechanisms.entry("newtons_cradle").problem().with_(t_span=(0.0, 0.8))
    right = solve(problem, method="DOP853", rtol=1e-9, atol=1e-11).y[:, -1]
    run = solve(problem, method="MoreauJean", step=step)
    assert run.success, run.message
    energies = [mb.energy(problem.model, y[:5], y[5:]).total for y in run.y[:, [0, -1]].T]
    np.testing.assert_allclose(*energies, rtol=1e-3)
    np.testing.assert_allclose(run.y[:, -1], right, atol=20 * step)


def test_both_laws_of_restitution_hold_in_steps():
    """A rod lands on one end with friction: Poisson's rebound is not Newton's."""
    b = mb.ModelBuilder(name="rod", gravity=(0.0, 0.0, 0.0))
    b.add_body("rod", 0, mb.Planar("y"), inertia=mb.rod((0, 0, -0.5), (0, 0, 0.5), mass=1.0))
    law, end = {"restitution": 0.6, "friction": 0.9}, mb.Vertex((0.0, 0.0, -0.5))
    b.add_contact("end", 0, mb.HalfSpace(), "rod", end, **law)
    model = b.build()
    q, ends = [0.5, 0.5 * np.cos(0.5) + 0.01, 0.0], []
    for law in ("newton", "poisson"):
        problem = mb.as_ivp(model, q, [0.0, -1.0, 0.0], (0.0, 0.02), restitution_law=law)
        right = solve(problem, method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
        run = solve(problem, method="MoreauJean", step=1e-4)
        np.testing.assert_allclose(run.y[3:, -1], right[3:], atol=2e-3)
        ends.append(right[3:])
    assert np.abs(ends[0] - ends[1]).max() > 0.02


def test_runs_in_steps_are_looked_at_like_any_other():
    """Forces, energies and parameters are those of the run by modes, once the ball rests."""
    b = mb.ModelBuilder(name="ball")
    b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.sphere(mass=2.0, radius=0.1))
    b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1), restitution=0.5)
    model = b.build()
    problem = mb.as_ivp(model, [0.5], None, (0.0, 1.2), lambda t, q, v, p: p, params=[0.0])
    steps = solve(problem, params=[-5.0], method="MoreauJean", step=1e-3)
    modes = solve(problem, params=[-5.0], method="DOP853", rtol=1e-9)
    for run in (steps, modes):
        seen = run.observed
        assert seen.normal_force[0, -1] == pytest.approx(2.0 * 9.81 + 5.0, rel=1e-9)
        assert seen.energy[:, -1] == pytest.approx([0.0, 2.0 * 9.81 * 0.1], abs=1e-3)
        assert seen.reactions["ball"].shape == (6, len(run.t))
    with pytest.raises(ValueError, match="MoreauJean locates none"):
        mb.impacts(model, steps)
    with pytest.raises(ValueError, match="event-driven"):
        mb.energy_ledger(model, steps)
    again = solve(steps.problem, (0.0, 1.2), method="DOP853", rtol=1e-9)  # which begins anew
    assert again.y[0, -1] == pytest.approx(modes.y[0, -1], abs=1e-12)
    later = solve(problem, (1.2, 1.4), steps.y[:, -1], method="MoreauJean", step=1e-3)
    assert later.y[0, -1] == pytest.approx(steps.y[0, -1], abs=1e-6)
