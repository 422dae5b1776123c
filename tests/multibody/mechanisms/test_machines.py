"""Vehicles and machines of the catalogue against published numbers and exact results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import multibody as mb
from integrators import solve
from integrators.problems.dae_systems import system
from multibody import mechanisms
from multibody.io import dumps, load_start, loads, named_values
from multibody.mechanisms.vehicles import bicycle_speed

TIGHT = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-12}

#: Lateral states of the bicycle; the others are longitudinal, or nothing depends on them.
LATERAL = (
    *("frame.x", "fork.angle", "frame.omega_x", "frame.omega_z"),
    *("frame.v_y", "d(fork.angle)"),
)


@pytest.fixture(scope="module")
def modes():
    """Eigenvalues of the bicycle that runs straight on at a speed; rolling decays at −20."""
    model = mechanisms.bicycle()
    problem = mb.as_ivp(model, None, bicycle_speed(model, 4.0), (0, 1))
    rows = [problem.state_names.index(name) for name in LATERAL]

    def eigenvalues(speed):
        y = np.concatenate([model.neutral(), bicycle_speed(model, speed)])
        found = np.linalg.eigvals(problem.jac(0.0, y)[np.ix_(rows, rows)])
        return found[np.abs(found + 20.0) > 1e-6]

    return eigenvalues


def test_bicycle_of_meijaard_and_others(modes):
    weave = brentq(lambda v: max(e.real for e in modes(v) if abs(e.imag) > 0.5), 4, 5, xtol=1e-12)
    capsize = brentq(lambda v: min((e.real for e in modes(v)), key=abs), 5.5, 6.5, xtol=1e-12)
    assert abs(weave - 4.292382536) < 1e-8
    assert abs(capsize - 6.024262015) < 1e-8
    # Their Table 2, at 3 m/s.
    found = sorted(modes(3.0), key=lambda e: (e.real, e.imag))
    expected = [-10.3510146724592, -2.6336613725365, 1.7067560566397 - 2.3158244740j]
    assert np.allclose(found[:3], expected, atol=1e-9)


def test_bicycle_keeps_upright_between_the_speeds_and_falls_below():
    model = mechanisms.bicycle()
    growth = {}
    for speed in (4.6, 2.0):
        push = bicycle_speed(model, speed) + 0.05 * np.eye(9)[0]
        v0 = mb.consistent_velocity(model, model.neutral(), push)
        problem = mb.as_ivp(model, None, v0, (0, 2), stabilise="projection")
        run = solve(problem, t_eval=np.linspace(0, 2, 81), **TIGHT)
        energy = mb.energies(model, run).total
        assert np.ptp(energy) < 1e-7 * energy[0]
        assert run.observed.drift.max() < 1e-10
        lean = 2 * (run.y[2] * run.y[3] + run.y[0] * run.y[1])
        growth[speed] = np.abs(lean[41:]).max() / np.abs(lean[:41]).max()
    assert growth[4.6] < 0.7
    assert growth[2.0] > 2.0


def test_rolling_disc_in_the_tree_is_the_disc_in_a_loop():
    inertia = mb.cylinder(0.4, 0.01, mass=2.0)
    turned = mb.Inertia(2.0, (0, 0, 0), [0.08, 0.16, 0.08])
    assert inertia.array[0] == 2.0
    a = mb.ModelBuilder(name="tree")
    a.add_body("disc", 0, mb.RollingDisc(0.4), inertia=turned)
    b = mb.ModelBuilder(name="loop")
    b.add_body("disc", 0, mb.Free(), inertia=turned)
    b.add_loop("ground", 0, "disc", mb.RollingDisc(0.4))
    tree, loop = a.build(), b.build()
    tilt = [np.cos(0.2), np.sin(0.2), 0, 0]
    height = 0.4 * np.cos(0.4)
    v = np.array([0.3, 6.0, 0.2])
    first = solve(mb.as_ivp(tree, [*tilt, 0.0, 0.0], v, (0, 1)), **TIGHT)
    q = [*tilt, 0.0, 0.0, height]
    linear = tree.bodies[0].joint.motion([*tilt, 0, 0], v).v[3:]
    problem = mb.as_ivp(loop, q, [*v, *linear], (0, 1), stabilise="projection")
    second = solve(problem, **TIGHT)
    assert np.abs(first.y[:6, -1] - second.y[:6, -1]).max() < 1e-8
    energy = mb.energies(tree, first).total
    assert np.ptp(energy) < 1e-8 * energy[0]
    # Steady circling has a closed form: (I_a + m ρ²) … ; here Newton's law of the centre.
    reaction = mb.reactions_along(loop, second, coordinates="base").loops["ground"][3:, -1]
    a_q = problem.rhs(1.0, second.y[:, -1])[7:]
    centre = mb.point_acceleration(loop, second.y[:7, -1], second.y[7:, -1], a_q, body="disc")
    assert np.allclose(reaction, 2.0 * (centre - loop.gravity), atol=1e-6)


@pytest.mark.parametrize("ground", [0.7, -1.1])
def test_ball_on_ball(ground):
    """Rolling down from near the top (or in a bowl): energy of ½·7/5 m v², tree and loop alike."""
    radius = 0.2
    ball = mb.sphere(mass=1.5, radius=radius)
    joint = mb.RollingBalls(radius, ground)
    a = mb.ModelBuilder(name="tree")
    a.add_body("ball", 0, joint, inertia=ball)
    b = mb.ModelBuilder(name="loop")
    b.add_body("ball", 0, mb.Free(), inertia=ball)
    b.add_loop("ground", 0, "ball", joint)
    u = np.array([np.sin(0.3), 0.0, np.cos(0.3)])
    far = radius + ground
    T = 0.5
    first = solve(mb.as_ivp(a.build(), [1, 0, 0, 0, *u], None, (0, T)), **TIGHT)
    loop = mb.as_ivp(b.build(), [1, 0, 0, 0, *(far * u)], None, (0, T), stabilise="projection")
    second = solve(loop, **TIGHT)
    centre = far * first.y[4:7, -1] / np.linalg.norm(first.y[4:7, -1])
    assert np.allclose(centre, second.y[4:7, -1], atol=1e-8)
    # θ̈ = (5/7) g sin θ / (ρ + ρ₀) about the vertical, by its own equation.
    g = solve(lambda t, y: [y[1], 5 / 7 * 9.81 * np.sin(y[0]) / far], (0, T), [0.3, 0.0], **TIGHT)
    assert np.isclose(np.arctan2(centre[0] / far, centre[2] / far), g.y[0, -1], atol=1e-8)


def test_rolling_refuses():
    with pytest.raises(ValueError, match="positive length"):
        mb.RollingDisc(0.0)
    with pytest.raises(ValueError, match="below"):
        mb.RollingBalls(0.4, -0.3)


def test_quarter_car_is_linear():
    m, w, k, c, kt, b, f, g = 300.0, 40.0, 2e4, 1500.0, 1.8e5, 0.03, 1.5, 9.81
    model = mechanisms.quarter_car()
    run = solve(mb.as_ivp(model, [0.0, 0.0], None, (0, 1)), **TIGHT)
    # State (x, s, ẋ, ṡ, sin, cos) with x of the wheel and s of the body above it, and weight.
    M = np.linalg.inv([[m + w, m], [m, m]])
    A = np.zeros((7, 7))
    A[0, 2] = A[1, 3] = 1.0
    A[2:4, [0, 1, 3]] = M @ np.array([[-kt, 0, 0], [0, -k, -c]])
    A[2:4, 4] = M @ [kt * b, 0]
    A[2:4, 6] = M @ [-(m + w) * g, -m * g]
    omega = 2 * np.pi * f
    A[4, 5], A[5, 4] = omega, -omega
    expected = expm(A) @ [0, 0, 0, 0, 0, 1, 1]
    assert np.allclose(run.y[:, -1], expected[:4], rtol=1e-7, atol=1e-9)


def test_servo_arm_comes_to_rest_with_the_torques_of_gravity():
    model = mechanisms.servo_arm()
    run = solve(mb.as_ivp(model, t_span=(0, 12)), rtol=1e-8, atol=1e-10)
    x = run.y[:, -1]
    assert np.abs(x[:2] - [0.4, -0.28]).max() < 1e-3
    found = mb.record(
        model, run, {n: mb.output(f"{n} motor", "torque") for n in ("upper", "lower")}
    )
    weight = mb.gravity_forces(model, x[: model.nq])
    assert np.allclose([found["upper"][-1], found["lower"][-1]], weight, atol=0.02)


def test_held_platform_is_lifted_and_held():
    entry = mechanisms.entry("stewart_platform")
    model = entry.model()
    run = solve(mb.as_ivp(model, *entry.start(model), (0, 2)), rtol=1e-7)
    height = mb.positions(model, run, "platform")[2]
    assert abs(height.min() - 1.0) < 0.05  # it does not fall
    assert 0.03 < height[-1] - 1.0 < 0.1


def test_car_axis_of_the_test_set():
    entry = mb.mechanisms.entry("car_axis")
    model = entry.model()
    run = mb.simulate(model, *entry.start(model), T=3.0, rtol=1e-11, atol=1e-13, fps=None)
    left = mb.positions(model, run, "left")[::2, -1]
    right = mb.positions(model, run, "axle", (1, 0, 0))[::2, -1]
    known = system("car_axis").reference[1]
    found = dict(zip(("xl", "yl", "xr", "yr"), [*left, *right]))
    assert all(abs(found[name] - known[name]) < 1e-9 for name in found)


def test_biped_bends_its_knees_and_the_feet_carry_it():
    entry = mb.mechanisms.entry("seven_link_biped")
    model = entry.model()
    want = {"hip": mb.point("trunk"), "right": mb.reaction("ground", "fz")}
    want |= {"left": mb.reaction("left foot", "fz")}
    run = mb.simulate(model, *entry.start(model), T=2.5, rtol=1e-6, fps=20, record=want)
    assert run.success
    hip, carried = run.recorded["hip"][2], run.recorded["right"] + run.recorded["left"]
    stretched, bent = 0.08 + 0.9 * np.cos(0.1), 0.08 + 0.9 * np.cos(0.5)
    assert hip[0] == pytest.approx(stretched)
    assert hip.min() == pytest.approx(bent, abs=0.02)
    assert hip[-1] == pytest.approx(stretched, abs=0.02)
    weight = 9.81 * sum(body.inertia.mass for body in model.bodies)
    assert carried[-1] == pytest.approx(weight, rel=0.02)  # nearly at rest
    alone = mb.mechanisms.seven_link_biped(support="single")
    assert (len(alone.loops), alone.nv) == (0, 6)


def test_friction_takes_the_energy_that_is_lost():
    entry = mechanisms.entry("rubbing_slider_crank")
    model = entry.model()
    problem = mb.as_ivp(model, *entry.start(model), (0, 0.3), stabilise="projection")
    run = solve(problem, dense_output=True, **TIGHT)
    ledger = mb.energy_ledger(model, run)
    lost = ledger.energy[0] - ledger.energy[-1]
    assert lost > 0.1
    assert np.isclose(-ledger.work["elements"][-1], lost, rtol=1e-6)


# ---------------------------------------------------------------------- files


def test_elements_in_files_come_back_bit_for_bit():
    names = "servo_arm rubbing_slider_crank stewart_platform bicycle quarter_car half_car"
    for name in names.split():
        model = mechanisms.get(name)
        for format in ("toml", "json"):
            assert loads(dumps(model, format), format) == model
    law = mb.elements.NamedElement("law", mb.ForceLaw(lambda here: None))
    own = replace(mechanisms.pendulum(), elements=(law,))
    with pytest.raises(ValueError, match="made in Python"):
        dumps(own, "toml")


PENDULUM = """
[[bodies]]
name = "arm"
parent = "base"
joint = { kind = "revolute", axis = "y" }
inertia = { mass = 1.0, com = [0, 0, -1] }
"""


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('[[elements]]\nname = "a"\nkind = "pod"', "no element is called 'pod'"),
        (
            '[[elements]]\nname = "a"\nkind = "pid"\njoint = "arm"\nlimits = 3',
            "did you mean 'limit'",
        ),
        ('[[elements]]\nname = "a"\nkind = "pid"', "'joint' is missing"),
        ('[[elements]]\nname = "a"\nkind = "pid"\njoint = "leg"', "leg"),
        (
            '[[elements]]\nname = "a"\nkind = "pid"\njoint = "arm"\ntarget = { times = [0] }',
            "'values' is missing",
        ),
    ],
)
def test_mistakes_in_files_are_told_with_their_line(text, match):
    with pytest.raises(mb.ModelFileError, match=match):
        loads(PENDULUM + text, "toml")


def test_start_in_a_file(tmp_path, capsys):
    from featherstep.cli import main

    file = tmp_path / "arm.toml"
    servo = '[[elements]]\nname = "servo"\nkind = "pid"\njoint = "arm"\nkp = 5\n'
    file.write_text(PENDULUM + servo + "[start]\nq = { arm = 0.2 }\nv = [0.1]\nt_end = 0.5\n")
    start = load_start(file)
    assert np.allclose(start.q, [0.2, 0.0])
    assert start.t_end == 0.5
    record = ["--record", "tip=point:arm:0:0:-1", "--record", "u=output:servo", "--fps", "10"]
    assert main(["simulate", str(file), *record, "--csv", "-"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["t", "arm.angle", "servo.integral", "d(arm.angle)", "tip.x", "tip.y",
                       "tip.z", "u"]  # fmt: skip
    assert [float(x) for x in rows[1][:4]] == [0.0, 0.2, 0.0, 0.1]
    assert np.isclose(float(rows[-1][7]), -5 * float(rows[-1][1]))
    assert main(["simulate", str(file), "--q0", "arm=0.7", "--csv", "-", "--fps", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("0.0,0.7,")
    assert main(["simulate", str(file), "--q0", "leg=0.7"]) != 0
    assert "nothing is named 'leg'" in capsys.readouterr().err
    file.write_text(PENDULUM + "[start]\nq = { arm = [1, 2] }\n")
    with pytest.raises(ValueError, match="expected 1 numbers"):
        load_start(file)


def test_named_values():
    model = mechanisms.bicycle()
    v = named_values(model, "v", {"fork": 0.2, "frame.v_x": 3.0})
    assert v[3] == 3.0
    assert v[7] == 0.2


# ---------------------------------------------------------------------- traced laws


@pytest.mark.parametrize("name", ["double_pendulum", "heavy_top"])
def test_dynamics_inside_a_traced_law(name, caplog):
    model = mechanisms.get(name)
    last = model.bodies[-1].name

    def tau(t, q, v):
        J = mb.point_jacobian(model, q, last, (0.1, 0.2, 0.3), t=t)
        place = mb.point_position(model, q, last, (1, 0, 0), t=t)
        total = mb.gravity_forces(model, q) + 0.1 * mb.ID(model, q, v, -v)
        total = total + J.T @ np.array([1.0, 2.0, 3.0]) + place[0]
        return total + 0.1 * mb.coriolis_forces(model, q, v) + 0.1 * (mb.crba(model, q) @ v)

    fast, slow = (mb.as_ivp(model, tau=tau, traced=traced) for traced in (True, False))
    rng = np.random.default_rng(0)
    y = np.concatenate([model.random(rng), rng.standard_normal(model.nv)])
    assert np.allclose(fast.f(0.0, y), slow.f(0.0, y), rtol=1e-12, atol=1e-12)
    mb.as_ivp(model, tau=lambda t, q, v: v if q[0] > 0 else -v)
    assert "cannot be traced" in caplog.text
