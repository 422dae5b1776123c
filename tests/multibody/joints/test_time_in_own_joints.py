"""Own joints and time: rates that depend on it, laws that do not; bodies that nothing holds."""

import numpy as np
import pytest

import multibody as mb
from integrators import solve


def pose(q):
    c, s = np.cos(q[0]), np.sin(q[0])
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]), np.array([q[1], 0.0, 0.0])


def stretched(t, q, v):
    """Velocities in units that grow with time, and a belt that runs by itself."""
    return [v[0] * np.exp(0.2 * t), v[1] + 0.5 * np.cos(t)]


def test_rate_with_time_passes_the_master_test():
    joint = mb.UserJoint(pose, ["angle", "x"], ["spin", "slide"], stretched)
    assert joint.is_rheonomic
    report = mb.check_joint(joint)
    assert report, report
    assert np.allclose(
        joint.position_rate([0.1, 0.2], [1.0, 2.0], 0.3), [np.exp(0.06), 2.0 + 0.5 * np.cos(0.3)]
    )


def test_rate_with_time_moves_as_plain_coordinates_do():
    """The same cart with v = q̇ and forces to match: q̈ from both."""
    inertia = mb.mcI(2.0, [0.1, 0.2, 0.0], np.diag([0.3, 0.4, 0.5]))
    models = []
    for joint in (
        mb.UserJoint(pose, ["angle", "x"]),
        mb.UserJoint(pose, ["angle", "x"], ["spin", "slide"], stretched),
    ):
        b = mb.ModelBuilder(gravity=(0.3, -9.81, 0))
        b.add_body("cart", 0, joint, inertia=inertia)
        models.append(b.build())
    plain, odd = models
    t, q, q_dot = 0.4, np.array([0.3, -0.2]), np.array([0.7, 1.1])
    grow = np.exp(0.2 * t)
    v = np.array([q_dot[0] / grow, q_dot[1] - 0.5 * np.cos(t)])
    q_ddot = mb.FD(plain, q, q_dot)
    v_dot = mb.FD(odd, q, v, t=t)
    again = [grow * (v_dot[0] + 0.2 * v[0]), v_dot[1] - 0.5 * np.sin(t)]
    assert np.allclose(again, q_ddot, atol=1e-12)
    run = solve(mb.as_ivp(odd, q, v, t_span=(t, 1.4)), method="DOP853", rtol=1e-10, atol=1e-12)
    same = solve(
        mb.as_ivp(plain, q, q_dot, t_span=(t, 1.4)), method="DOP853", rtol=1e-10, atol=1e-12
    )
    assert np.allclose(run.y[:2, -1], same.y[:2, -1], atol=1e-8)


def test_rate_must_be_linear():
    with pytest.raises(ValueError, match="linear in v"):
        mb.UserJoint(pose, ["angle", "x"], rate=lambda q, v: [v[0] * v[0], v[1]])
    drifting = mb.UserJoint(pose, ["angle", "x"], rate=lambda q, v: [v[0] + 1.0, v[1]])
    assert drifting.is_rheonomic
    assert mb.check_joint(drifting)
    assert not mb.UserJoint(pose, ["angle", "x"], rate=lambda q, v: [v[1], v[0]]).is_rheonomic


def law(t, q, v):
    """A hinge about z, with a branch that no tracing follows."""
    a = q[0] if q[0] > -100.0 else 0.0
    c, s = np.cos(a), np.sin(a)
    E = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]])
    return E, np.zeros(3), np.eye(6)[:, 2:3], None, None


def test_laws_that_do_not_look_at_time_keep_their_invariants():
    still = mb.UserJoint(None, ["angle"], law=law)
    assert not still.is_rheonomic
    b = mb.ModelBuilder(gravity=(0, -9.81, 0))
    b.add_body("rod", 0, still, inertia=mb.rod((0, 0, 0), (1, 0, 0), mass=1.0))
    problem = mb.as_ivp(b.build(), [0.3], [0.0], t_span=(0.0, 1.0))
    assert "energy" in problem.invariants
    hinge = mb.ModelBuilder(gravity=(0, -9.81, 0))
    hinge.add_body("rod", 0, mb.Revolute(), inertia=mb.rod((0, 0, 0), (1, 0, 0), mass=1.0))
    assert np.allclose(mb.FD(b.build(), [0.3], [1.0]), mb.FD(hinge.build(), [0.3], [1.0]))


@pytest.mark.parametrize(
    "change",
    [
        lambda t, E: E if t < 5.0 else E.T,
        lambda t, E: E + 0.0 * np.sin(t),
        lambda t, E: E if t == 1.0 else 1.0 * E,
        lambda t, E: E if t else 1.0 * E,
        lambda t, E: E if f"{t}" else 1.0 * E,
    ],
)
def test_laws_that_look_at_time_in_any_way_do_not(change):
    def watching(t, q, v):
        E, *rest = law(t, q, v)
        return change(t, E), *rest

    assert mb.UserJoint(None, ["angle"], law=watching).is_rheonomic


def test_laws_with_a_bias_velocity_move():
    def carried(t, q, v):
        return *law(t, q, v)[:4], np.array([0, 0, 0, 1.0, 0, 0])

    assert mb.UserJoint(None, ["angle"], law=carried).is_rheonomic


def satellite(**options):
    b = mb.ModelBuilder(gravity=(0, 0, 0), **options)
    b.declare_body("hub", mb.sphere(mass=1.0, radius=1.0))
    b.declare_body("panel", mb.box((1, 1, 0.1), mass=1.0))
    b.declare_body("stray", mb.sphere(mass=2.0, radius=0.5))
    b.add_joint("hinge", "panel", "hub", mb.Revolute("y"), (0.5, 0, 0), (0.5, 0.2, 0))
    b.add_body("arm", 0, mb.Revolute(), inertia=mb.rod((0, 0, 0), (1, 0, 0), mass=1.0))
    return b


def test_unconnected_bodies_float_where_asked():
    with pytest.raises(ValueError, match="in the air"):
        satellite().build()
    b = satellite(unconnected="free")
    model = b.build()
    assert [model.bodies[model.number(n) - 1].parent for n in ("hub", "stray", "arm")] == [0, 0, 0]
    assert isinstance(model.bodies[model.number("hub") - 1].joint, mb.Free)
    assert model.nv == 6 + 1 + 6 + 1
    assert b.frame_shift("hub").isclose(mb.Pose.identity())
    q, v = model.random(1), np.random.default_rng(1).standard_normal(model.nv)
    a = mb.FD(model, q, v)
    assert np.allclose(mb.ID(model, q, v, a), 0.0, atol=1e-10)
    with pytest.raises(ValueError, match="unconnected"):
        mb.ModelBuilder(unconnected="float")
