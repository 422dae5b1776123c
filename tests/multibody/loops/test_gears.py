"""Gears as constraints: closed forms, models with any joints, rotors and their shortcut."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import solve
from multibody.dynamics.book.oracles import inertia_by_definition, rnea_base
from multibody.runs.minimal import as_ivp_minimal


def arm_with_rotors(tilt="y", wrist=False):
    """Two links; the motor of each sits on the body before it. Ratios 40 and −60."""
    b = mb.ModelBuilder(name="arm with rotors")
    link = mb.rod((0, 0, 0), (1, 0, 0), mass=3.0)
    rotor = mb.Inertia(0.3, (0, 0, 0), (2e-4, 2e-4, 2e-4))
    b.add_body("upper", 0, mb.Revolute("z"), inertia=link)
    b.add_body("lower", "upper", mb.Revolute(tilt), (1, 0, 0), link)
    b.add_body("motor 1", 0, mb.Revolute("z"), (0, 0, 0.1), rotor)
    b.add_body("motor 2", "upper", mb.Revolute(tilt), (0.2, 0, 0), rotor, damping=1e-5)
    b.add_gear("gear 1", "motor 1", {"upper": 40.0})
    b.add_gear("gear 2", "motor 2", {"lower": -60.0})
    if wrist:
        hand = mb.Inertia(1.0, (0.1, 0, 0), (0.02, 0.02, 0.02))
        b.add_body("wrist", "lower", mb.Revolute("x"), (1, 0, 0), hand)
        b.add_body("motor 3", "lower", mb.Revolute("x"), None, rotor)
        b.add_gear("gear 3", "motor 3", {"wrist": 50.0})
    return b.build()


def test_projected_equations_of_an_arm_with_rotors():
    """GᵀHG v̇ = Gᵀ(τ − C), Eq 9.27, by the definition of H; and by minimal coordinates."""
    model = arm_with_rotors()
    G = np.zeros((4, 2))
    for name, row in (
        ("upper", [1, 0]),
        ("lower", [0, 1]),
        ("motor 1", [40, 0]),
        ("motor 2", [0, -60]),
    ):
        G[model.number(name) - 1] = row
    rng = np.random.default_rng(0)
    for _ in range(5):
        y, ydot, tau = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 4)
        q, v = G @ y, G @ ydot
        H, C = inertia_by_definition(model, q), rnea_base(model, q, v, np.zeros(4))
        expected = G @ np.linalg.solve(G.T @ H @ G, G.T @ (tau - C))
        found = mb.FD(model, q, v, tau)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        # Motors alone cause that motion, with what they need in place of joint torques.
        motors = mb.closed_loop_inverse_dynamics(model, q, v, found, ["motor 1", "motor 2"])
        again = mb.FD(model, q, v, motors.tau)
        np.testing.assert_allclose(again, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    ratios = {"motor 1": {"upper": 40.0}, "motor 2": {"lower": -60.0}}
    span, tight = (0, 0.5), {"method": "DOP853", "rtol": 1e-10, "atol": 1e-11}
    closure = mb.gears(model, ratios)
    assert closure.names == ("upper.angle", "lower.angle")
    short = solve(as_ivp_minimal(model, closure, [0.3, -0.2], [1.0, 2.0], span), **tight)
    start = G @ [0.3, -0.2], G @ [1.0, 2.0]
    for kind in ("projection", "minimal", "baumgarte"):
        run = solve(mb.as_ivp(model, *start, span, stabilise=kind), **tight)
        assert run.success
        np.testing.assert_allclose(
            run.y[:2, -1], closure.states(short.y[:, -1])[:2], atol=1e-7, err_msg=kind
        )
    # Pictures of such runs show the positions of all joints, under their own names.
    ax = mb.plot.coordinates(model, short, ["lower"])
    assert [line.get_label() for line in ax.lines] == ["lower.angle"]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), short.y[1])


def test_the_shortcut_tells_what_it_leaves_out():
    model = arm_with_rotors()
    found = mb.rotor_shortcut(model)
    assert found.rotors == ("motor 1", "motor 2")
    assert found.model.nv == 2
    assert not found.model.constraints
    upper, lower = (found.model.bodies[found.model.number(n) - 1] for n in ("upper", "lower"))
    np.testing.assert_allclose([upper.armature, lower.armature], [[0.32], [0.72]])
    np.testing.assert_allclose(lower.damping, [0.036])
    # The axis of motor 2 stays at right angles to that of its carrier: nothing is lost.
    assert max(found.inertia_error, found.force_error) < 1e-12
    # Motor 3 feels two joints turn its axis, and they feel I ρ q̇ × ω.
    spun = mb.rotor_shortcut(arm_with_rotors(wrist=True))
    assert 1e-5 < spun.force_error < 0.1
    assert 1e-5 < spun.inertia_error < 0.1
    # Parallel axes are coupled in H instead.
    parallel = mb.rotor_shortcut(arm_with_rotors(tilt="z"))
    assert 1e-4 < parallel.inertia_error < 0.1
    with pytest.raises(ValueError, match="no gear with one driver"):
        mb.rotor_shortcut(model, ["upper"])


def test_a_differential_with_any_other_joints():
    """Sum of two wheels drives a third, on a floating body with a ball joint beside it."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    body = mb.Inertia(1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.add_body("car", 0, mb.Free(), inertia=mb.Inertia(10.0, (0, 0, 0), (3, 3, 3)))
    for name, place in (("left", 1.0), ("right", -1.0), ("shaft", 0.0)):
        axis = "y" if place else "x"
        b.add_body(name, "car", mb.Revolute(axis), (0, place, 0), body)
    b.add_body("mirror", "car", mb.Spherical(), (1, 0, 0), body)
    b.add_gear("differential", "shaft", {"left": 2.0, "right": 2.0})
    model = b.build()
    rng = np.random.default_rng(1)
    q = mb.assemble(model, model.random(rng)).q
    v = mb.consistent_velocity(model, q, rng.standard_normal(model.nv))
    tau = np.zeros(model.nv)
    tau[model.v_names.index("d(shaft.angle)")] = 1.0
    a = mb.FD(model, q, v, tau)
    left, right, shaft = (model.v_names.index(f"d({n}.angle)") for n in ("left", "right", "shaft"))
    assert a[shaft] == pytest.approx(2 * a[left] + 2 * a[right], abs=1e-10)
    run = solve(mb.as_ivp(model, q, v, (0, 1), stabilise="projection"), method="DOP853", rtol=1e-9)
    for name, along in run.observed.invariants.items():  # energy and all six momenta
        assert np.ptp(along) < 1e-6, name
    assert len(run.observed.invariants) == 7


def test_nonlinear_and_rheonomic_gears():
    """A universal joint's ratio, tan q_b = tan q_a cos β; and a gear box that time shifts."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    wheel = mb.Inertia(1.0, (0, 0, 0), (1, 1, 1))
    for name in ("in", "out", "third"):
        b.add_body(name, 0, mb.Revolute(), inertia=wheel)
    beta = 0.6
    b.add_gear(
        "cardan", "out", gamma=lambda q: np.arctan2(np.sin(q["in"]) * np.cos(beta), np.cos(q["in"]))
    )
    b.add_gear("shifted", "third", gamma=lambda t, q, p: p[0] * t * q["out"], parameters=[0.5])
    model = b.build()
    q = mb.assemble(model, [0.4, 0.0, 0.0], fixed="in", t=1.0).q
    assert np.tan(q[1]) == pytest.approx(np.tan(0.4) * np.cos(beta))
    v = mb.consistent_velocity(model, q, [2.0, 0, 0], fixed="in", t=1.0)
    # ω₂/ω₁ = cos β / (cos²θ + sin²θ cos²β)
    expected = np.cos(beta) / (np.cos(0.4) ** 2 + (np.sin(0.4) * np.cos(beta)) ** 2)
    assert v[1] == pytest.approx(2.0 * expected)
    assert v[2] == pytest.approx(0.5 * q[1] + 0.5 * v[1])
    assert model.is_rheonomic


@pytest.mark.parametrize(
    ("arguments", "kind", "match"),
    [
        ({"ratios": {}}, TypeError, "expected ratios such as"),
        ({}, TypeError, "give either ratios"),
        ({"ratios": {"a": 1.0}, "gamma": np.sin}, TypeError, "give either ratios"),
        ({"ratios": {"b": 1.0}}, ValueError, "cannot drive itself"),
        ({"ratios": {"a": np.inf}}, ValueError, "ratio of 'a'"),
        ({"ratios": {"c": 1.0}}, ValueError, "one variable, received 'c' with 4"),
        ({"ratios": {"z": 1.0}}, ValueError, "no variable or body is named 'z'"),
        ({"gamma": 3.0}, TypeError, "received 3.0"),
    ],
)
def test_careless_gears(arguments, kind, match):
    b = mb.ModelBuilder()
    body = mb.Inertia(1.0, (0, 0, 0), (1, 1, 1))
    for name, joint in (("a", mb.Revolute()), ("b", mb.Revolute()), ("c", mb.Spherical())):
        b.add_body(name, 0, joint, inertia=body)

    def build():
        b.add_gear("g", "b", **arguments)
        b.build()

    with pytest.raises(kind, match=match):
        build()


def test_a_gear_is_a_function_of_its_own_joints():
    """Not of the whole model: so thousands of gears are traced in time that is linear in them."""
    b = mb.ModelBuilder()
    for k in range(6):
        b.add_body(f"wheel {k}", 0, mb.Revolute(), inertia=mb.sphere(1.0, mass=1.0))
    b.add_gear("pair", "wheel 4", {"wheel 1": 3.0})
    found = b.build().constraints[0].trace
    assert found.used == ((1, 4), ())
    assert found.program.n == 2
