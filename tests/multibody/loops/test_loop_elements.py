"""Forces in loop joints of every kind, in whose coordinates they come, and the energy ledger."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import TracingError, solve
from multibody import as_dae, as_ivp, constrained_accelerations, mechanisms
from multibody.dynamics.loops.constraints.joints import (
    LoopElement,
    loop_elements,
    loop_joint_forces,
    loop_joint_state,
    solve_position,
)
from multibody.dynamics.loops.loads.forces import loop_forces_in
from multibody.joints import REGISTRY
from multibody.runs.observing.books import ENTRIES
from multibody.runs.observing.ledger import energy_ledger
from tests.multibody.joint_samples import SAMPLES, parabola
from tests.multibody.loops.test_loops import free_position, tied_body

TIGHT = dict(method="DOP853", rtol=1e-11, atol=1e-12)

#: Central differences with this step have errors of 1e-10 from truncation and from rounding.
STEP = 1e-5
DIFFERENCES = 1e-8


def on_parabola(R, p):
    """Where the bead of `parabola` may be."""
    twist = [0.5 * (R[2][1] - R[1][2]), 0.5 * (R[0][2] - R[2][0]), 0.5 * (R[1][0] - R[0][1])]
    return [*twist, p[1] - 0.5 * p[0] ** 2, p[2] - np.sin(p[0])]


BEAD = mb.UserJoint(parabola, ["x"], closure=on_parabola)

MOVABLE = [
    pytest.param(joint, id=f"{kind}-{k}")
    for kind in REGISTRY
    for k, joint in enumerate([BEAD] if kind == "user" else SAMPLES.get(kind, []))
    if joint.nv
]


def closed_state(joint, rng, q_J=None, t=0.0):
    """A body tied by a loop joint, in a random position and motion that the joint allows."""
    model, X_P, X_S = tied_body(joint, rng)
    q_J = joint.random(rng) if q_J is None else np.asarray(q_J, dtype=float)
    v_J = rng.standard_normal(joint.nv)
    motion = joint.motion(q_J, v_J, t)
    q = free_position(X_S.inverse() * motion.X * X_P)
    return model, q, X_S.inverse().matrix() @ motion.v, q_J, v_J


# ---------------------------------------------------------------------- every joint


def test_every_joint_with_freedoms_is_tried():
    tried = {p.values[0].kind for p in MOVABLE}
    assert tried == set(REGISTRY) - {"fixed", "driven"}
    closed_form = {
        joint.kind
        for joints in SAMPLES.values()
        for joint in joints
        if joint.position(np.eye(3), np.zeros(3), joint.neutral()) is not None
    }
    assert tried - {"user"} | {"fixed"} == closed_form


@pytest.mark.parametrize("joint", MOVABLE)
def test_position_velocity_and_power(joint):
    rng = np.random.default_rng(8)
    for _ in range(3):
        model, q, v, q_J, v_J = closed_state(joint, rng)
        near = np.where([k in range(4) for k in range(joint.nq)], 0.0, q_J)
        near = q_J if not joint.quaternion_places else near
        state = loop_joint_state(model, q, v, "tie", reference=near)
        # Entries of a product of four rotations, and lengths of 1 m; the last two grow near a
        # singular position of the angles.
        assert np.abs(joint.difference(state.position, q_J)).max() < 1e-11
        np.testing.assert_allclose(state.velocity, v_J, atol=1e-10)
        force = rng.standard_normal(joint.nv)
        if joint.kind == "angles" and joint.nv == 3:
            # Without a reference the angles are another triple of the same rotation.
            tau = loop_elements(model, [LoopElement("tie", force=force, rest=near)])(0.0, q, v)
        else:
            tau = loop_joint_forces(model, q, {"tie": force})
        assert tau @ v == pytest.approx(force @ v_J, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("joint", MOVABLE)
def test_closed_forms_agree_with_least_squares(joint):
    rng = np.random.default_rng(3)
    p = np.asarray(joint.parameters, dtype=float)
    for _ in range(3):
        q = joint.random(rng)
        E, r, *_ = joint.law(0.0, q, np.zeros(joint.nv), p)
        found = solve_position(joint, E, r, q)  # from the answer itself …
        assert np.abs(joint.difference(found, q)).max() < 1e-9
        away = joint.retract(q, 0.2 * rng.standard_normal(len(joint.difference(q, q))))
        found = solve_position(joint, E, r, away)  # … and from nearby
        E_found, r_found, *_ = joint.law(0.0, found, np.zeros(joint.nv), p)
        np.testing.assert_allclose(np.asarray(E_found, float), np.asarray(E, float), atol=1e-9)
        np.testing.assert_allclose(np.asarray(r_found, float), np.asarray(r, float), atol=1e-9)


@pytest.mark.parametrize("joint", [p for p in MOVABLE if p.values[0].kind != "spherical"])
def test_spring_is_minus_the_gradient_of_its_energy(joint):
    """−dV/dt = fᵀv_J along every freedom of the joint, by differences of the position itself."""
    rng = np.random.default_rng(12)
    model, q, _, q_J, v_J = closed_state(joint, rng)
    stiffness = rng.uniform(1.0, 5.0, joint.nq)
    for at in joint.quaternion_places:
        stiffness[at : at + 4] = 0.0
    rest = np.where(stiffness > 0.0, q_J + rng.uniform(-0.4, 0.4, joint.nq), 0.0)
    tau = loop_elements(model, [LoopElement("tie", stiffness=stiffness, rest=rest)])

    def stored(x):
        return 0.5 * stiffness @ (x - rest) ** 2

    rate = joint.position_rate(q_J, v_J)
    slope = (stored(q_J + STEP * rate) - stored(q_J - STEP * rate)) / (2 * STEP)
    S, placed = joint.motion(q_J).S, model.loops[0].placement_successor
    v = placed.inverse().matrix() @ S @ v_J
    assert tau(0.0, q, v) @ v == pytest.approx(-slope, rel=1e-6, abs=DIFFERENCES)


def test_spring_of_a_planar_loop_joint_is_conservative():
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("plate", 0, mb.Free(), inertia=mb.CentralInertia(1, [0, 0, 0], np.eye(3)))
    b.add_loop("plane", 0, "plate", mb.Planar())
    model = b.build()
    turn = 0.8
    q = np.array([np.cos(turn / 2), 0, 0, np.sin(turn / 2), 0.5, 0.2, 0.0])
    element = LoopElement("plane", stiffness=[0.0, 3.0, 7.0])
    tau = loop_elements(model, [element])
    # −k x and −k y in base axes, turned into those of the plate.
    c, s = np.cos(turn), np.sin(turn)
    expected = [0, 0, 0, -c * 1.5 - s * 1.4, s * 1.5 - c * 1.4, 0]
    np.testing.assert_allclose(tau(0.0, q, np.zeros(6)), expected, atol=1e-14)
    v = np.array([0, 0, 1.5, 0.3, -0.4, 0])
    run = solve(as_ivp(model, q, v, (0, 3), tau=tau, stabilise="projection"), **TIGHT)
    # The centre is a harmonic oscillator in x and in y, whatever the plate's rotation does.
    u = [c * 0.3 + s * 0.4, s * 0.3 - c * 0.4]
    for k, (x0, rate, stiffness) in enumerate(((0.5, u[0], 3.0), (0.2, u[1], 7.0))):
        w = np.sqrt(stiffness)
        end = x0 * np.cos(3 * w) + rate / w * np.sin(3 * w)
        assert run.y[4 + k, -1] == pytest.approx(end, abs=1e-8)
    ledger = energy_ledger(model, run, elements=[element])
    assert np.ptp(ledger.energy) < 1e-8
    assert np.ptp(ledger.potential["loop springs"]) > 0.5


@pytest.mark.parametrize("joint", [mb.Spherical(), mb.Free(), mb.RollingSphere(0.5)],
                         ids=lambda j: j.kind)  # fmt: skip
def test_dampers_where_positions_are_quaternions(joint):
    """A ball with damping in its joint: ω decays as e^(−d t/I), traced with the model."""
    mass, inertia, d = 2.0, 0.5, 0.3
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body(
        "ball", 0, mb.Free(), inertia=mb.CentralInertia(mass, [0, 0, 0], inertia * np.eye(3))
    )
    b.add_loop("tie", 0, "ball", joint)
    model = b.build()
    tau = loop_elements(model, [LoopElement("tie", damping=d)])
    q, v = model.neutral(), np.array([0.7, -0.4, 0.0, 0, 0, 0])
    effective = np.full(2, inertia)
    if joint.kind == "rolling_sphere":
        q[6], v[3:5] = 0.5, (0.5 * v[1], -0.5 * v[0])  # rolls: I + mρ² about the contact
        effective += mass * 0.25
    run = solve(as_ivp(model, q, v, (0, 1.5), tau=tau, traced=True), **TIGHT)
    end = mb.kinematics(model, run.y[:7, -1], run.y[7:, -1])
    omega = end.poses[1].R @ end.velocities[1][:3]
    np.testing.assert_allclose(omega[:2], v[:2] * np.exp(-d * 1.5 / effective), atol=1e-8)


def test_angles_count_turns_and_keep_their_side_of_gimbal_lock():
    rng = np.random.default_rng(4)
    for joint, q_J in (
        (mb.Universal(), [7.0, -9.0]),
        (mb.AngleSequence("zyx"), [0.3, 2.0, 11.0]),
        (mb.AngleSequence("zxz"), [0.3, -0.5, -8.0]),
        (mb.AngleSequence("yz"), [-13.0, 0.2]),
    ):
        model, q, v, q_J, v_J = closed_state(joint, rng, q_J)
        state = loop_joint_state(model, q, v, reference=q_J + 0.3)
        np.testing.assert_allclose(state.position, q_J, atol=1e-12)
        np.testing.assert_allclose(state.velocity, v_J, atol=1e-12)
    for joint in (mb.RackPinion(0.3), mb.Helical(0.2)):  # by their advance
        model, q, v, q_J, _ = closed_state(joint, rng, [40.0])
        assert loop_joint_state(model, q, v).position[0] == pytest.approx(40.0, abs=1e-11)
    for size in (0.0, 1e-9, 0.39, 0.41, 3.1):  # series and closed form of θ/sin θ
        model, q, v, q_J, v_J = closed_state(mb.ConstantVelocity(), rng, [0.6 * size, 0.8 * size])
        np.testing.assert_allclose(loop_joint_state(model, q, v).position, q_J, atol=2e-14 / 0.04)


def test_driven_loop_joint_tells_the_state_of_the_joint_it_drives():
    joint = mb.Driven(mb.Cylindrical("x"), lambda t: [0.4 * t, np.sin(t)])
    model, q, v, *_ = closed_state(joint, np.random.default_rng(2), [], t=0.7)
    state = loop_joint_state(model, q, v, t=0.7)
    np.testing.assert_allclose(state.position, [0.28, np.sin(0.7)], atol=1e-13)
    np.testing.assert_allclose(state.velocity, [0.4, np.cos(0.7)], atol=1e-13)


# ---------------------------------------------------------------------- in a run


def linkage(spring_at=None, **joint):
    """A four-bar in the xz plane, cut at the coupler's far pin."""
    b = mb.ModelBuilder(name="four-bar")
    b.add_body(
        "crank", 0, mb.Revolute("y"), inertia=mb.rod((0, 0, 0), (1, 0, 0), mass=1.0), **joint
    )
    b.add_body("coupler", "crank", mb.Revolute("y"), (1, 0, 0),
               mb.rod((0, 0, 0), (2.2, 0, 0), mass=2.0))  # fmt: skip
    b.add_body("rocker", 0, mb.Revolute("y"), (2, 0, 0), mb.rod((0, 0, 0), (1.5, 0, 0), mass=1.5))
    b.add_loop("pin", "coupler", "rocker", mb.Revolute("y"), (2.2, 0, 0), (1.5, 0, 0))
    if spring_at is not None:
        b.add_spring("strut", "crank", (0.5, 0, 0), "rocker", spring_at, stiffness=30.0,
                     damping=2.0, rest=1.0)  # fmt: skip
    model = b.build()
    q = mb.assemble(model, [-1.0, 0.6, -1.6], fixed=["crank"]).q
    return model, q, mb.consistent_velocity(model, q, [4.0, 0.0, 0.0], fixed=["crank"])


def test_actuator_may_be_a_function_of_time_and_state():
    model, q, v = linkage()
    law = loop_elements(
        model, [LoopElement("pin", force=lambda t, x, u: 2.0 * np.cos(t) - 3.0 * u + x)]
    )
    state = loop_joint_state(model, q, v)
    force = 2.0 * np.cos(0.4) - 3.0 * state.velocity + state.position
    np.testing.assert_allclose(law(0.4, q, v), loop_joint_forces(model, q, {"pin": force}))
    assert solve(as_ivp(model, q, v, (0, 0.1), tau=law, traced=True), **TIGHT).success
    bad = loop_elements(model, [LoopElement("pin", force=lambda t, x, u: [1.0, 2.0])])
    with pytest.raises(ValueError, match=r"expected 1 numbers \(angle\) from the function"):
        bad(0.0, q, v)


def test_joint_of_the_users_own_runs_untraced():
    b = mb.ModelBuilder(gravity=(0, 0, -9.81))
    b.add_body("bead", 0, mb.Free(), inertia=mb.CentralInertia(0.7, [0, 0, 0], 0.1 * np.eye(3)))
    b.add_loop("wire", 0, "bead", BEAD)
    model = b.build()
    q = np.array([1, 0, 0, 0, 0.4, 0.08, np.sin(0.4)])
    elements = [LoopElement("wire", stiffness=5.0, damping=0.2, rest=0.1)]
    tau = loop_elements(model, elements)
    with pytest.raises(TracingError, match="found by iteration"):
        as_ivp(model, q, np.zeros(6), (0, 0.3), tau=tau, traced=True)
    problem = as_ivp(model, q, np.zeros(6), (0, 0.3), tau=tau, stabilise="none")
    run = solve(problem, method="RK4", step=0.02)
    # The same bead with its joint in the tree.
    b = mb.ModelBuilder(gravity=(0, 0, -9.81))
    b.add_body("bead", 0, mb.UserJoint(parabola, ["x"]), stiffness=5.0, damping=0.2, rest=0.1,
               inertia=mb.CentralInertia(0.7, [0, 0, 0], 0.1 * np.eye(3)))  # fmt: skip
    tree = solve(as_ivp(b.build(), [0.4], [0.0], (0, 0.3)), **TIGHT)
    assert run.y[4, -1] == pytest.approx(tree.y[0, -1], abs=1e-6)  # RK4: h⁴ = 1.6e-7


def test_refusals_say_why():
    rng = np.random.default_rng(0)
    for joint in (mb.Spherical(), mb.Free(), mb.RollingSphere(0.4)):
        model, _, _ = tied_body(joint, rng)
        with pytest.raises(ValueError, match="has a quaternion; give a stiffness for each of w, x"):
            loop_elements(model, [LoopElement("tie", stiffness=1.0)])
    for joint in (mb.Fixed(), SAMPLES["driven"][0]):
        model, _, _ = tied_body(joint, rng)
        with pytest.raises(ValueError, match="leaves no freedom in which a force could act"):
            loop_elements(model, [LoopElement("tie", damping=1.0)])
        with pytest.raises(ValueError, match="leaves no freedom"):
            loop_joint_forces(model, model.neutral(), {"tie": []})
    model, q, v, *_ = closed_state(mb.AngleSequence("zyx"), rng, [0.2, np.pi / 2, 0.0])
    with pytest.raises(ValueError, match="gimbal lock"):
        loop_joint_state(model, q, v)
    model, q, v, *_ = closed_state(mb.Planar(), rng)
    with pytest.raises(ValueError, match=r"reference of one number or 3 \(angle, x, y\)"):
        loop_joint_state(model, q, v, reference=[1.0, 2.0])
    with pytest.raises(ValueError, match="one number or 3 as damping"):
        loop_elements(model, [LoopElement("tie", damping=[1.0, 2.0])])
    with pytest.raises(TypeError, match="expected a list of LoopElement"):
        loop_elements(model, LoopElement("tie"))
    with pytest.raises(TypeError, match="expected a LoopElement"):
        loop_elements(model, ["tie"])
    with pytest.raises(ValueError, match="away from every position"):
        solve_position(BEAD, np.eye(3), [0.0, -5.0, 0.0])


# ---------------------------------------------------------------------- constraint forces


def test_constraint_forces_in_joint_and_body_coordinates():
    rng = np.random.default_rng(6)
    for joint in (mb.Revolute((1.0, -2.0, 0.5)), mb.Planar("x"), mb.Universal("y")):
        model, q, v, q_J, _ = closed_state(joint, rng)
        forces = mb.loop_forces(model, q, constrained_accelerations(model, q, v).multipliers)
        at_joint = loop_forces_in(model, q, forces, "joint")["tie"]
        # The joint cannot pass on anything along its freedoms.
        np.testing.assert_allclose(joint.motion(q_J).S.T @ at_joint, 0.0, atol=1e-11)
        # Power of any motion, in the three coordinates.
        X_S, motion = model.loops[0].placement_successor, rng.standard_normal(6)
        at_body = loop_forces_in(model, q, forces, "body")["tie"]
        J = mb.body_jacobian(model, q, "body", coordinates="base")
        assert forces["tie"] @ (J @ motion) == pytest.approx(at_body @ motion)
        assert at_joint @ (X_S.matrix() @ motion) == pytest.approx(at_body @ motion)
        assert loop_forces_in(model, q, forces, "base")["tie"] == pytest.approx(forces["tie"])
    with pytest.raises(ValueError, match="coordinates"):
        loop_forces_in(model, q, forces, "world")


def test_weight_of_a_sign_that_is_bolted_on():
    """A sign of 3 kg, turned by 90° about z, hangs 0.4 m in front of its bolt."""
    b = mb.ModelBuilder(gravity=(0, 0, -10.0))
    b.add_body("sign", 0, mb.Free(), inertia=mb.CentralInertia(3.0, [0.4, 0, 0], np.eye(3)))
    turned = mb.Pose([[0, -1, 0], [1, 0, 0], [0, 0, 1]], (1.0, 2.0, 3.0))
    b.add_loop("bolt", 0, "sign", mb.Fixed(), turned)
    model = b.build()
    q = mb.assemble(model).q
    forces = mb.loop_forces(model, q, constrained_accelerations(model, q, np.zeros(6)).multipliers)
    weight = [0.0, -12.0, 0.0, 0.0, 0.0, 30.0]  # 0.4 m x̂ × 30 N ẑ = −12 Nm ŷ
    for frame in ("body", "joint"):
        np.testing.assert_allclose(
            loop_forces_in(model, q, forces, frame)["bolt"], weight, atol=1e-9
        )
    # About the base's origin the arm is (1, 2.4, 3): the sign points along y.
    np.testing.assert_allclose(forces["bolt"], [72.0, -30.0, 0.0, 0.0, 0.0, 30.0], atol=1e-9)


# ---------------------------------------------------------------------- the ledger


def books(model, q, v, tau=None, T=1.0, **given):
    run = solve(as_ivp(model, q, v, (0, T), tau=tau, f_ext=given.get("f_ext"),
                       stabilise="projection"), dense_output=True, **TIGHT)  # fmt: skip
    return energy_ledger(model, run, **given)


#: Of the balance, in J: DOP853's interpolant at tolerances of 1e-11 on energies of 100 J.
BALANCED = 1e-7


def test_ledger_of_a_damped_linkage():
    model, q, v = linkage(spring_at=(0.7, 0, 0.1), damping=0.8, stiffness=3.0, rest=0.2,
                          limits=(-5.0, 0.3, 50.0, 1.5))  # fmt: skip
    push = {"coupler": [0.0, 1.0, 0.0, 3.0, 0.0, -2.0]}
    ledger = books(model, q, v, f_ext=push)
    assert np.abs(ledger.balance).max() < BALANCED
    assert ledger.work["dampers"][-1] < -1.0 < 0.1 < abs(ledger.work["external"][-1])
    assert np.all(ledger.power["dampers"] <= 0.0)
    assert np.abs(ledger.power["constraints"]).max() < 1e-8
    assert all(np.ptp(ledger.potential[k]) > 0.1 for k in ("joint springs", "point springs"))
    total = mb.energy(model, q, v).total
    assert ledger.energy[0] == pytest.approx(total, rel=1e-13)
    assert "work of dampers" in ledger.summary()
    assert "drives" not in ledger.summary()
    # Without the dampers the books are short of exactly their work.
    assert ledger.energy[-1] - ledger.energy[0] < ledger.work["external"][-1] - 1.0


def test_ledger_of_springs_dampers_and_actuators_in_a_loop():
    model, q, v = linkage()
    elements = [
        LoopElement("pin", stiffness=5.0, rest=0.5),
        LoopElement("pin", damping=0.7, force=lambda t, x, u: 4.0 * np.sin(5.0 * t)),
    ]
    law = loop_elements(model, elements)
    motor = np.array([1.5, 0.0, 0.0])
    run = solve(as_ivp(model, q, v, (0, 1), tau=lambda t, q, v: law(t, q, v) + motor,
                       stabilise="projection"), dense_output=True, **TIGHT)  # fmt: skip
    ledger = energy_ledger(model, run, tau=motor, elements=elements)
    assert np.abs(ledger.balance).max() < BALANCED
    assert set(ledger.power) == set(ENTRIES)
    assert ledger.work["actuators"] == pytest.approx(1.5 * (run.y[0] - q[0]), abs=1e-8)
    for name in ("loop actuators", "loop dampers"):
        assert np.abs(ledger.work[name]).max() > 0.1
    state = loop_joint_state(model, run.y[:3, -1], run.y[3:, -1], reference=0.5)
    stored = 2.5 * (state.position[0] - 0.5) ** 2
    assert ledger.potential["loop springs"][-1] == pytest.approx(stored)
    assert ledger.power["loop dampers"][-1] == pytest.approx(-0.7 * state.velocity[0] ** 2)
    # What is left out is missed.
    assert np.abs(energy_ledger(model, run, tau=motor).balance).max() > 0.1


CRANK, ROD, SPEED, MASSES = 0.4, 1.1, 7.0, (1.0, 2.0, 3.0)


def slider_crank_energy(t):
    """Closed form for a crank that turns with constant speed; analytic, for a complex step."""
    m_crank, m_rod, m_slider = MASSES
    phi = SPEED * t
    sine = CRANK * np.sin(phi) / ROD
    cosine = np.sqrt(1.0 - sine**2)
    turn = CRANK * SPEED * np.cos(phi) / (ROD * cosine)  # of the rod, downwards
    x_slider = -CRANK * SPEED * np.sin(phi) - ROD * sine * turn
    x_rod = -CRANK * SPEED * np.sin(phi) - 0.5 * ROD * sine * turn
    y_rod = 0.5 * CRANK * SPEED * np.cos(phi)
    kinetic = m_crank * CRANK**2 / 6.0 * SPEED**2 + 0.5 * m_slider * x_slider**2
    kinetic = kinetic + 0.5 * m_rod * (x_rod**2 + y_rod**2) + m_rod * ROD**2 / 24.0 * turn**2
    height = m_crank * 0.5 * CRANK * np.sin(phi) + m_rod * 0.5 * CRANK * np.sin(phi)
    return kinetic + 9.81 * height


def slider_crank(motor_in_tree):
    """Crank, rod and slider in the xy plane; the motor is the crank's joint, or a loop."""
    hinge = mb.Revolute()
    motor = mb.Driven(hinge, lambda t: [SPEED * t])
    b = mb.ModelBuilder(gravity=(0, -9.81, 0))

    def bar(length, mass):
        moment = mass * length**2 / 12.0
        return mb.CentralInertia(mass, [length / 2, 0, 0], np.diag([1e-3, moment, moment]))

    b.add_body("crank", 0, motor if motor_in_tree else hinge, inertia=bar(CRANK, MASSES[0]))
    b.add_body("rod", "crank", hinge, (CRANK, 0, 0), bar(ROD, MASSES[1]))
    b.add_body("slider", 0, mb.Prismatic("x"), inertia=mb.point_mass(MASSES[2]))
    b.add_loop("wrist", "rod", "slider", hinge, (ROD, 0, 0))
    if not motor_in_tree:
        b.add_loop("motor", 0, "crank", motor)
    return b.build()


@pytest.mark.parametrize("motor_in_tree", [True, False], ids=["tree", "loop"])
def test_power_of_a_motor_is_the_rate_of_energy(motor_in_tree):
    model = slider_crank(motor_in_tree)
    guess = [0.0, CRANK + ROD] if motor_in_tree else [0.0, 0.0, CRANK + ROD]
    q = mb.assemble(model, guess).q
    v = mb.consistent_velocity(model, q, np.zeros(model.nv))
    run = solve(as_ivp(model, q, v, (0, 1), stabilise="projection"), dense_output=True, **TIGHT)
    ledger = energy_ledger(model, run)
    (name,) = ledger.drives
    assert name == ("crank" if motor_in_tree else "motor")
    np.testing.assert_allclose(ledger.energy, slider_crank_energy(ledger.t), atol=1e-7)
    rate = slider_crank_energy(ledger.t + 1e-30j).imag / 1e-30
    # Positions of the run are right to 1e-9; forces of 1000 N change by 1e4 N/rad.
    np.testing.assert_allclose(ledger.drives[name], rate, atol=1e-4)
    assert np.ptp(rate) > 100.0
    assert np.abs(ledger.balance).max() < 1e-5
    assert np.abs(ledger.power["constraints"]).max() < 1e-6


def test_ledger_without_dense_output_and_of_a_dae():
    model, q, v = linkage(damping=0.8)
    times = np.linspace(0.0, 0.5, 101)
    run = solve(as_ivp(model, q, v, (0, 0.5), stabilise="projection"), t_eval=times, **TIGHT)
    ledger = energy_ledger(model, run)
    twice = energy_ledger(model, solve(run.problem, t_eval=times[::2], **TIGHT))
    fine, coarse = (np.abs(x.balance).max() for x in (ledger, twice))
    assert fine < 1e-4
    assert 8.0 < coarse / fine < 32.0  # fourth order
    assert fine < 5.0 * ledger.quadrature_error < 25.0 * fine
    problem = as_dae(model, q, v, (0, 0.5), formulation="index3")
    dae = solve(problem, method="RADAU5", rtol=1e-9, atol=1e-9, max_step=0.01)
    books = energy_ledger(model, dae)
    assert len(dae.y) > model.nq + model.nv  # multipliers are part of the state
    assert np.abs(books.balance).max() < 1e-4
    assert books.work["dampers"][-1] == pytest.approx(ledger.work["dampers"][-1], abs=1e-4)
    with pytest.raises(ValueError, match="solution of another model"):
        energy_ledger(mechanisms.pendulum(), run)
    with pytest.raises(TypeError, match="expected a Solution"):
        energy_ledger(model, [1.0])
