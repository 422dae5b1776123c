"""Constraints by functions: closed forms, the same mechanism by loop joints, careless input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import multibody as mb
from integrators import solve, solve_many
from integrators.dae import FORMULATIONS
from multibody.io import loads

#: Two ways to the same numbers.
ROUNDING = 1e-11


def pin(q):
    return q.point("rocker", (2, 0, 0)) - q.point("coupler", (3, 0, 0))


def crank_rocker(by_function):
    b = mb.ModelBuilder(name="crank-rocker")
    rod = mb.rod
    b.add_body("crank", 0, mb.Revolute("y"), inertia=rod((0, 0, 0), (1, 0, 0), mass=1.0))
    coupler = rod((0, 0, 0), (3, 0, 0), mass=3.0)
    b.add_body("coupler", "crank", mb.Revolute("y"), (1, 0, 0), coupler)
    rocker = rod((0, 0, 0), (2, 0, 0), mass=2.0)
    b.add_body("rocker", 0, mb.Revolute("y"), (3, 0, 0), rocker, damping=0.3)
    if by_function:
        b.add_constraint("pin", pin)
    else:
        b.add_loop("pin", "coupler", "rocker", mb.Spherical(), (3, 0, 0), (2, 0, 0))
    return b.build()


@pytest.fixture(scope="module")
def bars():
    """The linkage by a loop joint and by a function, and a state."""
    by_joint, by_function = crank_rocker(False), crank_rocker(True)
    q = mb.assemble(by_joint, [-1.0, 0.5, -1.5], fixed="crank").q
    v = mb.consistent_velocity(by_joint, q, [12.0, 0.0, 0.0], fixed="crank")
    return by_joint, by_function, q, v


def test_points_that_meet_are_a_ball_joint(bars):
    by_joint, by_function, q, v = bars
    again = mb.assemble(by_function, [-1.0, 0.5, -1.5], fixed="crank").q
    np.testing.assert_allclose(again, q, atol=1e-13)
    again = mb.consistent_velocity(by_function, q, [12.0, 0.0, 0.0], fixed="crank")
    np.testing.assert_allclose(again, v, rtol=1e-13)
    tau = [1.0, -2.0, 0.5]
    expected = mb.FD(by_joint, q, v, tau)
    np.testing.assert_allclose(mb.FD(by_function, q, v, tau), expected, rtol=ROUNDING)
    for method in ("kkt", "projection"):
        found = mb.constrained_accelerations(by_function, q, v, tau, method=method)
        np.testing.assert_allclose(found.accelerations, expected, rtol=ROUNDING)
    assert mb.mobility(by_function, q).mobility == mb.mobility(by_joint, q).mobility == 1
    # What holds the points together acts at the points: the same bearings feel the same.
    for name in ("crank", "coupler", "rocker"):
        one, other = (mb.joint_reactions(m, q, v, tau)[name] for m in bars[:2])
        np.testing.assert_allclose(other, one, atol=1e-9)
    a = np.asarray(expected)
    one, other = (mb.closed_loop_inverse_dynamics(m, q, v, a, ["crank"]).forces for m in bars[:2])
    np.testing.assert_allclose(other, one, rtol=1e-10)


def test_every_formulation(bars):
    by_joint, by_function, q, v = bars
    span, tight = (0.0, 0.1), {"rtol": 1e-8, "atol": 1e-10}
    reference = mb.as_ivp(by_joint, q, v, span, stabilise="projection")
    expected = solve(reference, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    for name in FORMULATIONS:
        problem = mb.as_dae(by_function, q, v, span, formulation=name)
        run = solve(problem, method="RADAU5", **tight)
        assert run.success, (name, run.message)
        np.testing.assert_allclose(run.y[:6, -1], expected, atol=3e-6, err_msg=name)
    problem = mb.as_ivp(by_function, q, v, span, stabilise="projection")
    for copy in (problem, pickle.loads(pickle.dumps(problem))):
        run = solve(copy, method="DOP853", **tight)
        np.testing.assert_allclose(run.y[:6, -1], expected, atol=1e-7)
        assert run.observed.drift.max() < 1e-12
        assert (run.observed.rank == 2).all()
    ledger = mb.energy_ledger(by_function, run)
    assert abs(ledger.balance).max() < 1e-6 * abs(ledger.energy[0])


# ---------------------------------------------------------------------- closed forms


def planar_bead(name="bead"):
    b = mb.ModelBuilder(name=name)
    b.add_body("x", 0, mb.Prismatic("x"))
    b.add_body("z", "x", mb.Prismatic("z"), inertia=mb.point_mass(1.5))
    return b


def test_a_taut_string_is_a_pendulum():
    b = planar_bead()
    b.add_constraint("string", lambda q: q["x"] ** 2 + q["z"] ** 2 - 4.0)
    model = b.build()
    run = solve(
        mb.as_ivp(model, [2.0, 0.0], None, (0, 3), stabilise="projection"),
        method="DOP853", rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    rod = mb.mechanisms.pendulum(length=2.0, gravity=9.81)
    swing = solve(mb.as_ivp(rod, [np.pi / 2], None, (0, 3)), method="DOP853", rtol=1e-12)
    angle = swing.y[0, -1]
    np.testing.assert_allclose(run.y[:2, -1], [2 * np.sin(angle), -2 * np.cos(angle)], atol=1e-7)
    # λ ∂φ/∂x is the tension: m (g cos θ + L θ̇²) towards the middle.
    force = mb.constraint_forces(model, run.y[:2, -1], run.observed.multipliers[:, -1])["string"]
    tension = 1.5 * (9.81 * np.cos(angle) + 2 * swing.y[1, -1] ** 2)
    np.testing.assert_allclose(force, -tension * run.y[:2, -1] / 2, rtol=1e-6)


def test_a_wire_that_time_turns_throws_the_bead_out():
    """On a wire that turns level with ω: r = r₀ cosh ωt, driven by the ledger's power."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("x", 0, mb.Prismatic("x"))
    b.add_body("y", "x", mb.Prismatic("y"), inertia=mb.point_mass(2.0))
    b.add_constraint("wire", lambda t, q: q["y"] * np.cos(3 * t) - q["x"] * np.sin(3 * t))
    model = b.build()
    assert model.is_rheonomic
    v = mb.consistent_velocity(model, [0.5, 0.0], [0.0, 0.0])
    np.testing.assert_allclose(v, [0.0, 1.5])
    run = solve(mb.as_ivp(model, [0.5, 0.0], v, (0, 1), T_stab=0.05), method="DOP853", rtol=1e-10)
    r = 0.5 * np.cosh(3.0)
    np.testing.assert_allclose(run.y[:2, -1], [r * np.cos(3.0), r * np.sin(3.0)], rtol=1e-6)
    ledger = mb.energy_ledger(model, run)
    gained = 0.5 * 2.0 * ((1.5 * np.sinh(3.0)) ** 2 + (3 * r) ** 2 - 1.5**2)
    assert ledger.work["drives"][-1] == pytest.approx(gained, rel=1e-4)


def test_a_skate_on_a_slope_goes_across_it():
    """Along its edge only, spinning with ω: x = g sin α (1 − cos 2ωt) / 4ω², from rest."""
    b = mb.ModelBuilder(gravity=(2.0, 0.0, 0.0), name="skate")
    b.add_body("skate", 0, mb.Planar("z"), inertia=mb.Inertia(1.0, (0, 0, 0), (1, 1, 1)))

    def edge(q, v):  # no motion across the edge
        angle, (vx, vy, _) = q["skate.angle"], v.point("skate")
        return vy * np.cos(angle) - vx * np.sin(angle)

    b.add_constraint("edge", velocity=edge)
    model = b.build()
    assert not model.is_rheonomic
    assert not mb.mobility(model, model.neutral()).redundant
    omega = 1.3
    v0 = np.zeros(3)
    v0[0] = omega
    run = solve(mb.as_ivp(model, None, v0, (0, 2), stabilise="none"), method="DOP853", rtol=1e-10)
    x = mb.point_position(model, run.y[:3, -1], "skate")
    expected = 2.0 * (1 - np.cos(2 * omega * 2.0)) / (4 * omega**2)
    np.testing.assert_allclose(x[0], expected, atol=1e-7)
    assert "energy" in run.observed.invariants
    assert np.ptp(run.observed.invariants["energy"]) < 1e-8


def test_a_point_that_follows_a_path():
    """The tip of an arm on a circle that time runs along: φ = 0 fixes both joints."""
    b = mb.ModelBuilder(name="arm")
    rod = mb.rod((0, 0, 0), (1, 0, 0), mass=1.0)
    b.add_body("upper", 0, mb.Revolute("z"), inertia=rod)
    b.add_body("lower", "upper", mb.Revolute("z"), (1, 0, 0), rod)

    def path(t, q):
        tip = q.point("lower", (1, 0, 0))
        return [tip[0] - 1.2 - 0.2 * np.cos(2 * t), tip[1] - 0.2 * np.sin(2 * t)]

    b.add_constraint("path", path)
    model = b.build()
    q = mb.assemble(model, [0.5, -1.0]).q
    v = mb.consistent_velocity(model, q, [0, 0])
    run = solve(mb.as_ivp(model, q, v, (0, 1.5), stabilise="projection"), rtol=1e-8)
    tip = mb.point_position(model, run.y[:2, -1], "lower", (1, 0, 0))
    np.testing.assert_allclose(tip[:2], [1.2 + 0.2 * np.cos(3.0), 0.2 * np.sin(3.0)], atol=1e-10)
    assert run.observed.tau.shape == (2, len(run.t))


def test_momenta_that_constraints_leave():
    """Inner constraints keep all of them; one to the ground takes some away."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    body = mb.Inertia(1.0, (0, 0, 0), (1, 2, 2.5))
    for name in ("one", "two"):
        b.add_body(name, 0, mb.Free(), inertia=body)
    ends = ("one", (0.1, 0, 0)), ("two", (0, 0.2, 0))
    b.add_constraint("string", lambda q: np.sum((q.point(*ends[0]) - q.point(*ends[1])) ** 2) - 1.0)
    from multibody.runs.observing.conserved import conserved_motions

    model = b.build()
    assert conserved_motions(model).shape == (6, 6)
    b.add_constraint("floor", lambda q: q.point("one")[2])
    left = conserved_motions(b.build())
    assert left.shape == (6, 3)  # p_x, p_y, h_z
    q, v = model.neutral(), np.random.default_rng(0).standard_normal(12)
    q[11] = 1.0
    q = mb.assemble(model, q).q
    v = mb.consistent_velocity(model, q, v)
    run = solve(mb.as_ivp(model, q, v, (0, 1), stabilise="projection"), method="DOP853", rtol=1e-10)
    for name, along in run.observed.invariants.items():
        assert np.ptp(along) < 1e-8, name


# ---------------------------------------------------------------------- models and families


def bead_on_string(length=2.0, mass=1.0):
    b = mb.ModelBuilder(name="bead")
    b.add_body("x", 0, mb.Prismatic("x"))
    b.add_body("z", "x", mb.Prismatic("z"), inertia=mb.point_mass(mass))
    b.add_body("arm", "z", mb.Revolute("y"), (0, 0, -0.1), mb.rod((0, 0, 0), (0, 0, -1), mass=1.0))
    b.add_constraint("string", taut, parameters=[length])
    return b.build()


def taut(t, q, p):
    return q["x"] ** 2 + q["z"] ** 2 - p[0] ** 2


def test_families_vary_parameters_of_constraints():
    family = mb.ModelFamily(bead_on_string, {"length": 2.0, "mass": 1.0})
    values = np.array([[1.0, 1.0], [1.7, 2.0], [2.5, 0.5]])
    rows = family.parameters(values)
    assert rows.good.all()
    start = np.array([[x, 0.0, 0.3, 0.0, 0.0, 0.0] for x, _ in values])
    problem = family.problem([2.0, 0.0, 0.3], None, (0.0, 0.5))
    together = solve_many(problem, y0=start, params=rows.p, method="DOP853", rtol=1e-9)
    for k, (length, mass) in enumerate(values):
        model = bead_on_string(length, mass)
        alone = solve(mb.as_ivp(model, start[k, :3], None, (0, 0.5)), method="DOP853", rtol=1e-9)
        np.testing.assert_allclose(together.y[k], alone.y[:, -1], atol=1e-7)


def test_models_are_equal_by_what_their_constraints_compute():
    assert bead_on_string() == bead_on_string() == pickle.loads(pickle.dumps(bead_on_string()))
    assert bead_on_string() != bead_on_string(length=2.1)
    assert "constraint string: by a function" in str(bead_on_string())
    assert "1 constraint" in str(bead_on_string())
    with pytest.raises(ValueError, match=r"'string' is a Python function.*pickle"):
        mb.io.dumps(bead_on_string(), "toml")


CARELESS = {
    "name": (lambda q: q["slide"], ValueError, r"no variable or body is named 'slide'"),
    "body": (lambda q: q.point("zz")[0], ValueError, "no body is named 'zz'"),
    "none": (lambda q: None, ValueError, "returned None; is its `return` missing"),
    "empty": (lambda q: [], ValueError, "at least one number"),
    "branch": (lambda q: 1.0 if q["x"] > 0 else 2.0, Exception, "cannot be traced"),
    "place": (lambda q: q[7], IndexError, "out of bounds|out of range"),
    "nothing": (lambda t, q: 0.0 * t, ValueError, "asks for no variable"),
    "arguments": (lambda: 0.0, TypeError, r"expected a function φ\(q\), φ\(t, q\)"),
    "no function": (3.0, TypeError, "expected a function, received 3.0"),
    "point": (lambda q: q.point("z", (1, 2))[0], ValueError, "point: expected 3 numbers"),
}


@pytest.mark.parametrize("case", CARELESS)
def test_careless_constraints(case):
    phi, kind, match = CARELESS[case]
    b = planar_bead()
    b.add_constraint("c", phi)
    with pytest.raises(kind, match=match):
        b.build()


def test_careless_constraints_of_velocities_and_names():
    b = planar_bead()
    with pytest.raises(TypeError, match="give either"):
        b.add_constraint("c")
    with pytest.raises(TypeError, match="give either"):
        b.add_constraint("c", taut, velocity=taut)
    b.add_constraint("c", lambda q: q["x"])
    with pytest.raises(ValueError, match="'c' exists already"):
        b.add_constraint("c", lambda q: q["z"])
    with pytest.raises(ValueError, match="'c' exists already"):
        b.add_loop("c", 0, "z", mb.Revolute())
    b = planar_bead()
    b.add_constraint("c", velocity=lambda q, v: v["x"] ** 2 + v["z"] ** 2 - 1.0)
    with pytest.raises(ValueError, match="linear in the velocities"):
        b.build()
    b = planar_bead()
    b.add_constraint("c", lambda t, q, p: q["x"] - p[0], parameters=[np.nan])
    with pytest.raises(ValueError, match="parameters"):
        b.build()
    model = planar_bead().build()
    with pytest.raises(ValueError, match="no loops and no constraints"):
        mb.constraints(model, [0.0, 0.0])


# ---------------------------------------------------------------------- gears


def test_gears_in_files():
    text = """
        name = "wheels"
        [[bodies]]
        name = "first wheel"
        parent = "base"
        joint = { kind = "revolute" }
        inertia = { mass = 1.0, com = [0, 0, 0], I_com = [1, 1, 1] }
        [[bodies]]
        name = "second"
        parent = "base"
        joint = { kind = "revolute" }
        inertia = { mass = 1.0, com = [0, 0, 0], I_com = [1, 1, 1] }
        [[gears]]
        name = "teeth"
        driven = "second"
        ratios = { "first wheel" = -2.0 }
        offset = 0.5
    """
    model = loads(text, "toml")
    assert mb.constraints(model, [0.1, 0.3]).delta == pytest.approx([0.0])
    for format in ("toml", "json"):
        assert loads(mb.io.dumps(model, format), format) == model
    for wrong, match in (
        ('driven = "third"', r":1[0-9]: .*no variable or body is named 'third'"),
        ('ratios = { "first" = 2.0 }', "did you mean 'first wheel"),
        ('ratios = { "first wheel" = "x" }', "expected a number"),
        ("teeth = 3", "unknown key"),
    ):
        key = wrong.split(" =")[0]
        lines = [wrong if line.strip().startswith(key) else line for line in text.splitlines()]
        lines += [] if wrong in lines else [wrong]
        with pytest.raises(ValueError, match=match):
            loads("\n".join(lines), "toml")


@pytest.mark.parametrize("stabilise", ["baumgarte", "projection", "minimal"])
def test_a_constraint_that_is_defined_at_some_positions_only(stabilise):
    """It is no number where models are looked at beforehand, and binds; so do other rows."""
    b = mb.ModelBuilder(gravity=(3.0, 2.0, -9.81), name="held where a root is defined")
    b.add_body("x", 0, mb.Prismatic("x"), inertia=mb.point_mass(1.0))
    b.add_body("y", "x", mb.Prismatic("y"), inertia=mb.point_mass(1.0))
    b.add_body("z", "y", mb.Prismatic("z"), inertia=mb.point_mass(1.0))
    b.add_constraint("root", lambda q: np.sqrt(q["x"] - 5.0) - 1.0)
    b.add_constraint("plane", lambda q: q["y"])
    model = b.build()
    start = [6.0, 0.0, 0.0]
    np.testing.assert_allclose(mb.FD(model, start, np.zeros(3)), [0.0, 0.0, -9.81], atol=1e-12)
    run = solve(mb.as_ivp(model, start, None, (0.0, 1.0), stabilise=stabilise), rtol=1e-9)
    np.testing.assert_allclose(run.y[:3, -1], [6.0, 0.0, -4.905], atol=1e-8)


def test_arguments_in_another_order_are_named():
    b = mb.ModelBuilder()
    b.add_body("x", 0, mb.Prismatic("x"), inertia=mb.point_mass(1.0))
    b.add_constraint("s", lambda q, p: q["x"] - p[0], parameters=[0.1])
    with pytest.raises(TypeError, match=r"'s'.*called as φ\(q\), φ\(t, q\) or φ\(t, q, p\)"):
        b.build()


@pytest.mark.parametrize("phi", [lambda q: np.sqrt(q[0] - 5.0), lambda q: [q[0], np.nan]])
def test_a_constraint_that_is_no_number_at_the_start_is_named(phi):
    b = mb.ModelBuilder()
    b.add_body("x", 0, mb.Prismatic("x"), inertia=mb.point_mass(1.0))
    b.add_body("z", "x", mb.Prismatic("z"), inertia=mb.point_mass(1.0))
    b.add_constraint("s", phi)
    with pytest.raises(ValueError, match=r"constraint s\[[01]\] has no finite number"):
        mb.as_ivp(b.build(), [0.0, 0.0])


def test_rounding_is_no_constraint():
    """A string along a body, or to one that only time moves, has a row of K that is rounding."""
    b = mb.ModelBuilder()
    body = mb.Inertia(1.0, (0.1, 0.2, 0.3), (1.0, 1.2, 1.5))
    b.add_body("a", 0, mb.Spherical(), inertia=body)
    b.add_body(
        "b", "a", mb.Driven(mb.Revolute("x"), lambda t: [0.4 * np.sin(2 * t)]), (0.3, 0, 0), body
    )
    b.add_constraint(
        "string",
        lambda t, q, p: np.sum((q.point("a", (0, 1, 0)) - q.point("b", (0, 0, 1))) ** 2) - p[0],
        parameters=[1.0],
    )
    model = b.build()
    rng = np.random.default_rng(0)
    q, v = model.random(rng), rng.standard_normal(3)
    assert not len(model.tree.acting_rows)
    assert not mb.constraints(model, q, v, t=0.3).K.any()
    assert mb.mobility(model, q, t=0.3).rank == 0
    with pytest.raises(mb.AssemblyError, match="whatever the other velocities are"):
        mb.consistent_velocity(model, q, v, t=0.3)


def test_hybrid_dynamics_does_not_divide_by_rounding():
    """A string that free freedoms move by rounding only leaves the prescribed ones no choice."""
    b = mb.ModelBuilder()
    body = mb.Inertia(1.0, (0.1, 0.2, 0.3), (1.0, 1.2, 1.5))
    b.add_body("a", 0, mb.Revolute("x"), inertia=body)
    b.add_body("b", "a", mb.Free(), (0.3, 0, 0), body)
    b.add_constraint(
        "string", lambda q: np.sum((q.point("a") - q.point("b", (0.3, 0.7, 0.1))) ** 2)
    )
    model = b.build()
    rng = np.random.default_rng(0)
    q, v, a = model.random(rng), np.zeros(7), dict.fromkeys(range(1, 7), 0.0)
    assert np.abs(mb.constraints(model, q, v).K[0, 0]) < 1e-12
    with pytest.raises(ValueError, match="not determined"):
        mb.hybrid_dynamics(model, q, v, a=a)
