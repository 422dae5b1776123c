"""Reactions, powers and periods against equations written down by hand, without the library."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import solve
from multibody.elements import ELEMENTS

G = 9.81


# ---------------------------------------------------------------------- reactions


def four_bar_by_hand(q, v, lengths, ground, density=1.0):
    """Accelerations of the absolute angles and the forces in the four pins, from Lagrange's
    equations in absolute coordinates (x, y, φ of each rod) with eight constraints.

    Pins: base–crank, crank–coupler, base–rocker, coupler–rocker; forces are those on the second.
    """
    a, b, c = lengths
    phi = np.array([q[0], q[0] + q[1], q[2]])
    omega = np.array([v[0], v[0] + v[1], v[2]])
    M, force = np.zeros((9, 9)), np.zeros(9)
    for i, length in enumerate(lengths):
        mass = density * length
        M[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = np.diag([mass, mass, mass * length**2 / 12])
        force[3 * i + 1] = -mass * G
    # Each pin: (rod, place along it from its middle) twice; −1 is the base.
    pins = [
        ((-1, 0.0), (0, -a / 2)),
        ((0, a / 2), (1, -b / 2)),
        ((-1, ground), (2, -c / 2)),
        ((1, b / 2), (2, c / 2)),
    ]
    J, gamma = np.zeros((8, 9)), np.zeros(8)
    for k, pair in enumerate(pins):
        for sign, (rod, s) in zip((-1.0, 1.0), pair):
            if rod < 0:
                continue
            u = np.array([np.cos(phi[rod]), np.sin(phi[rod])])
            J[2 * k : 2 * k + 2, 3 * rod : 3 * rod + 2] += sign * np.eye(2)
            J[2 * k : 2 * k + 2, 3 * rod + 2] += sign * s * np.array([-u[1], u[0]])
            gamma[2 * k : 2 * k + 2] += sign * s * omega[rod] ** 2 * u
    system = np.block([[M, -J.T], [J, np.zeros((8, 8))]])
    found = np.linalg.solve(system, np.concatenate([force, gamma]))
    return found[[2, 5, 8]], found[9:].reshape(4, 2)


def test_pins_of_a_four_bar_by_lagrange():
    lengths, ground = (1.0, 2.0, 1.5), 2.2
    model = mb.mechanisms.four_bar(*lengths, ground)
    entry = mb.mechanisms.entry("four_bar")
    run = solve(mb.as_ivp(model, *entry.start(model), (0, 1)), rtol=1e-11, atol=1e-12)
    for k in (0, len(run.t) // 2, -1):
        y = np.array(mb.assemble(model, run.y[:3, k]).q)
        v = mb.consistent_velocity(model, y, run.y[3:, k])
        angles, pins = four_bar_by_hand(y, v, lengths, ground)
        a = mb.constrained_accelerations(model, y, v).accelerations
        size = np.abs(angles).max()
        np.testing.assert_allclose([a[0], a[0] + a[1], a[2]], angles, atol=1e-12 * size)
        found = mb.joint_reactions(model, y, v, coordinates="base")
        for name, pin in zip(("crank", "coupler", "rocker", "joint"), pins):
            np.testing.assert_allclose(found[name][3:5], pin, atol=1e-12 * np.abs(pins).max())


# ---------------------------------------------------------------------- powers


def arms(element):
    """Two arms in space and a free body, with an element."""
    b = mb.ModelBuilder(name="arms")
    lump = mb.box((0.2, 0.3, 0.4), mass=1.5)
    b.add_body("upper", 0, mb.Revolute("y"), inertia=lump)
    b.add_body("slide", "upper", mb.Prismatic("x"), (0.5, 0, 0), lump)
    b.add_body("loose", 0, mb.Free(), (1.0, 0.2, -0.4), lump)
    b.add_element("e", element)
    return b.build()


K, D = np.diag([9.0, 8.0, 7.0, 50.0, 60.0, 70.0]), np.diag([0.3, 0.2, 0.1, 2.0, 3.0, 4.0])
ONE_OF_EACH = {
    "friction": mb.Friction("slide", 0.8, 1.1, 0.3),
    "bearing_friction": mb.BearingFriction("upper", 0.2, 0.05, 0.04),
    "bristle_friction": mb.BristleFriction("slide", 0.8, 1.1, 0.3, 0.05, 300.0, 3.0),
    "rolling_resistance": mb.RollingResistance("loose", 0.02, 12.0),
    "pid": mb.PID("upper", 0.4, 5.0, 2.0, 1.0),
    "filter": mb.FirstOrderFilter(2.0, 0.3, 0.0, "slide"),
    "sampled_pid": mb.SampledPID("upper", 0.4, 0.05, 5.0, 2.0, 0.1),
    "dc_motor": mb.DCMotor("upper", 6.0, 1.2, 0.05, 0.4, 3.0),
    "hydraulic_cylinder": mb.HydraulicCylinder("slide", 1e-5, 2e-4, 1e-4, 0.5, 1e-4, 1e7),
    "point_force": mb.PointForce("loose", (0.1, 0.2, 0.0), (1.0, -2.0, 3.0)),
    "suspension": mb.Suspension("loose", (0.1, 0.0, 0.2), 40.0, 2.0),
    "actuator": mb.Actuator("slide", 0.7, 2.0, (30, 0, 0), (1, -20, -3), dynamics="filter"),
    "joint_tendon": mb.JointTendon(("upper", "slide"), (0.4, -1.2), 90.0, 3.0, rest=0.1),
    "bushing": mb.Bushing("slide", (0.1, 0.0, 0.2), "loose", (0.0, 0.1, 0.0), K, D),
}


def test_all_elements_are_here():
    assert set(ONE_OF_EACH) == set(ELEMENTS)


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_power_of_every_element_is_what_the_bodies_gain(kind):
    """d(kinetic and potential energy)/dt = v·(H v̇ + C), at every time of a run."""
    model = arms(ONE_OF_EACH[kind])
    rng = np.random.default_rng(7)
    q0 = model.neutral()
    q0[:2] += 0.2
    v0 = rng.normal(size=model.nv)
    run = solve(mb.as_ivp(model, q0, v0, (0, 0.12)), rtol=1e-10, atol=1e-12, t_eval=[0.07, 0.12])
    ledger = mb.energy_ledger(model, run)
    for k, t in enumerate(run.t):
        q, v = run.y[: model.nq, k], run.y[model.nq : model.nq + model.nv, k]
        tau, wrenches = mb.element_forces(model, q, v, t=t)
        a = mb.FD(model, q, v, tau, wrenches, t=t)
        gained = v @ (mb.crba(model, q) @ a + mb.bias_forces(model, q, v))
        size = np.abs(v) @ np.abs(mb.crba(model, q) @ a)
        assert abs(gained - ledger.power["elements"][k]) < 1e-10 * size
        assert abs(gained - ledger.elements["e"][k]) < 1e-10 * size


def test_what_acts_between_bodies_moves_them_as_a_whole_in_no_way():
    """Action = reaction: wrenches in base coordinates cancel."""
    b = mb.ModelBuilder(name="pair", gravity=(0, 0, 0))
    for name in ("one", "two"):
        b.add_body(name, 0, mb.Free(), inertia=mb.box((0.2, 0.3, 0.4), mass=1.5))
    b.add_element("mount", mb.Bushing("one", (0.1, 0, 0.2), "two", (0, 0.1, 0), K, D))
    model, rng = b.build(), np.random.default_rng(3)
    for _ in range(5):
        q, v = model.random(rng), rng.normal(size=model.nv)
        _, wrenches = mb.element_forces(model, q, v)
        assert np.abs(wrenches).max() > 1.0
        assert np.abs(wrenches.sum(axis=0)).max() < 1e-13 * np.abs(wrenches).max()


# ---------------------------------------------------------------------- stick and slip


def test_period_of_stick_and_slip():
    """A block on a belt, held by a spring; more friction at rest than in motion.

    It slips about x = F/k from (S − F)/k ahead, with the belt's speed u, until it has that again,
    which takes 2(π − arctan(ω(S − F)/(k u)))/ω, and sticks for 2(S − F)/(k u).
    """
    m, k, u, F, S = 1.3, 80.0, 0.25, 4.0, 6.5
    omega, ahead = np.sqrt(k / m), (S - F) / k
    slip = 2 * (np.pi - np.arctan(omega * ahead / u)) / omega
    period = slip + 2 * ahead / u
    b = mb.ModelBuilder(name="belt", gravity=(0, 0, 0))
    b.add_body("belt", 0, mb.Driven(mb.Prismatic("x"), lambda t: [u * t]))
    b.add_body("block", "belt", mb.Prismatic("x"), inertia=mb.point_mass(m))
    # Where the extra friction is gone at once; the block gains such a speed in 0.4 µs.
    b.add_element("dry", mb.Friction("block", F, S, stribeck_speed=1e-12))
    b.add_spring("spring", 0, (-5.0, 0, 0), "block", (0, 0, 0), k, rest=5.0)
    model = b.build()
    problem = mb.stick_slip(model, [S / k], [0.0], (0.0, 2.5 * period))
    run = solve(problem, method="DOP853", rtol=1e-10, atol=1e-13, max_step=0.05)
    sticks = [stay.start for stay in run.modes if stay.mode == "sliding"]  # on v = 0
    np.testing.assert_allclose(sticks, [slip, slip + period], atol=1e-7)
    x = u * run.t + run.y[0]
    assert np.max(x) == pytest.approx(F / k + np.hypot(ahead, u / omega), abs=1e-4)


def test_the_force_that_holds_is_what_is_recorded():
    """Belt and block again: what holds the block while it sticks.

    While it sticks friction is k x, whatever the law says of v = 0; while it slips it is the law's
    without smoothing. The books then balance, although the slip speed is the largest of all.
    """
    m, k, u, F, S = 1.3, 80.0, 0.25, 4.0, 6.5
    b = mb.ModelBuilder(name="belt", gravity=(0, 0, -9.81))
    b.add_body("belt", 0, mb.Driven(mb.Prismatic("x"), lambda t: [u * t]))
    b.add_body("block", "belt", mb.Prismatic("x"), inertia=mb.point_mass(m))
    b.add_element("dry", mb.Friction("block", F, S, slip_speed=10.0, stribeck_speed=0.1))
    b.add_spring("spring", 0, (-5.0, 0, 0), "block", (0, 0, 0), k, rest=5.0)
    model = b.build()
    problem = mb.stick_slip(model, [0.0], [0.0], (0.0, 1.2))
    run = solve(problem, method="DOP853", rtol=1e-10, atol=1e-13, dense_output=True)
    assert [stay.mode for stay in run.modes][:3] == ["sliding", "minus", "sliding"]
    found = mb.record(
        model, run, {"f": mb.output("dry", "force"), "pin": mb.reaction("block", "fx")}
    )
    stuck = np.array([mode == "sliding" for mode in run.mode(run.t)])
    np.testing.assert_allclose(found["f"][stuck], k * (u * run.t + run.y[0])[stuck], atol=1e-9)
    law = F + (S - F) * np.exp(-((run.y[1] / 0.1) ** 2))
    np.testing.assert_allclose(found["f"][~stuck], law[~stuck], atol=1e-9)
    np.testing.assert_allclose(run.observed.tau[0], found["f"], atol=1e-12)
    np.testing.assert_allclose(found["pin"], found["f"], atol=1e-9)  # belt on block
    ledger = mb.energy_ledger(model, run)
    assert np.abs(ledger.balance).max() < 1e-8 < ledger.work["drives"][-1]


def test_friction_in_a_joint_that_loops_hold_still():
    """A slide that a second one across it holds: its friction moves nothing, the hinge's does."""
    b = mb.ModelBuilder(name="held", gravity=(0, 0, 0))
    b.add_body("slide", 0, mb.Prismatic("x"), inertia=mb.point_mass(1.0))
    b.add_loop("across", 0, "slide", mb.Prismatic("y"))
    b.add_body("wheel", "slide", mb.Revolute("y"), inertia=mb.Inertia(1.0, I_com=0.5))
    b.add_element("guide", mb.Friction("slide", 2.0))
    only = b.build()
    with pytest.raises(ValueError, match="hold all joints with dry friction still"):
        mb.stick_slip(only)
    b.add_element("hinge", mb.Friction("wheel", 0.25))
    run = solve(mb.stick_slip(b.build(), None, [0.0, 1.0], (0.0, 3.0)), rtol=1e-9)
    assert [stay.mode for stay in run.modes] == ["plus", "sliding"]
    assert run.modes[1].start == pytest.approx(2.0, abs=1e-8)


def test_two_joints_that_stick_hold_the_weight_of_both():
    b = mb.ModelBuilder(name="arms")
    for name, parent, place in (("upper", 0, (0, 0, 0)), ("lower", "upper", (0, 0, -1))):
        b.add_body(name, parent, mb.Revolute("y"), place, mb.rod((0, 0, 0), (0, 0, -1), mass=1.0))
        b.add_element(f"hinge {name}", mb.Friction(name, 5.0, 9.0, viscous=0.3))
    model = b.build()
    q, push = [0.2, 0.3], [0.1, 0.2]
    run = solve(mb.stick_slip(model, q, None, (0.0, 0.5), tau=push), rtol=1e-9)
    assert [stay.mode for stay in run.modes] == [("sliding", "sliding")]
    weight = mb.ID(model, q, [0.0, 0.0], [0.0, 0.0])
    want = {name: mb.output(f"hinge {name}", "force") for name in ("upper", "lower")}
    found = mb.record(model, run, want)
    held = [found["upper"][-1], found["lower"][-1]]
    np.testing.assert_allclose(held, weight - push, atol=1e-12)
