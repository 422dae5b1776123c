"""Joints from the user's functions: frozen when made, told apart, safe in threads."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from integrators import solve
from multibody import (
    FD,
    Driven,
    FD_derivatives,
    Fixed,
    Free,
    Inertia,
    ModelBuilder,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    UserJoint,
    as_ivp,
    box,
    coriolis_forces,
    gravity_forces,
    kinematics,
    point_mass,
)
from multibody.joints.from_functions import _seen_from_inside

amplitude = 0.5


def shake(t):
    return [amplitude * np.sin(3.0 * t)]


def shaken_pendulum():
    builder = ModelBuilder()
    builder.add_body("cart", 0, Driven(Prismatic("x"), shake), inertia=point_mass(1.0))
    builder.add_body("bob", "cart", Revolute("y"), inertia=point_mass(1.0, (0, 0, -1)))
    return builder.build()


def cart_acceleration(model, t):
    """What the bob feels of the drive: v̇ = −g sin q ± ẍ cos q."""
    return FD(model, [0.0], [0.0], t=t)[0]


def test_a_motion_is_frozen_when_its_joint_is_made(monkeypatch):
    """The old model keeps its motion, a new one has the new motion, and each agrees with itself."""
    t = 0.4
    models = {}
    for size in (0.5, 2.0):
        monkeypatch.setattr(f"{__name__}.amplitude", size)
        models[size] = shaken_pendulum()
    assert models[0.5] != models[2.0]
    for size, model in models.items():
        push = abs(size * 9.0 * np.sin(3.0 * t))
        assert abs(cart_acceleration(model, t)) == pytest.approx(push, rel=1e-13)
        rhs = as_ivp(model).f(t, np.zeros(2))
        assert abs(rhs[1]) == pytest.approx(push, rel=1e-13)
        place = kinematics(model, [0.0], t=t).poses[1].p[0]
        assert place == pytest.approx(size * np.sin(3.0 * t), rel=1e-13)


def test_motions_that_compute_the_same_are_the_same():
    assert Driven(Revolute(), lambda t: 3.0 * t) == Driven(Revolute(), lambda t: 3.0 * t)
    assert Driven(Revolute(), lambda t: 3.0 * t) != Driven(Revolute(), lambda t: 3.1 * t)
    rising = np.poly1d([1.0, 2.0, 0.0])  # a callable without a hash
    assert Driven(Prismatic("x"), rising).motion([], [], 1.0).v[3] == pytest.approx(4.0)


def test_gravity_and_motion_are_told_apart():
    """A motor in a world without gravity: all of the bias is centrifugal."""
    builder = ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("motor", 0, Driven(Revolute("z"), lambda t: 3.0 * t), inertia=point_mass(1.0))
    builder.add_body("bead", "motor", Prismatic("x"), inertia=point_mass(2.0), damping=5.0)
    model = builder.build()
    assert gravity_forces(model, [1.0]) == 0.0
    assert coriolis_forces(model, [1.0], [7.0]) == pytest.approx(-2.0 * 9.0, rel=1e-14)


def by_quaternion(q):
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    ), np.zeros(3)


def turned_from_outside(q, v):
    """q̇ = ½ ω ∘ q with ω in the axes of the predecessor."""
    w, u = q[0], q[1:]
    return 0.5 * np.array([-(u @ v), *(w * v + np.cross(v, u))])


def test_rotations_with_velocities_seen_from_outside_on_their_group():
    """Munthe-Kaas follows the joint's own rate, as every other method does."""
    ball = UserJoint(
        by_quaternion, list("wxyz"), ["a", "b", "c"], turned_from_outside,
        neutral=[1, 0, 0, 0], groups=["SO3"],
    )  # fmt: skip
    builder = ModelBuilder()
    builder.add_body("top", 0, ball, inertia=box((1, 2, 3), mass=2.0))
    problem = as_ivp(builder.build(), [0.8, 0.6, 0, 0], [0.3, 0.2, 0.5], (0, 2))
    ends = [
        solve(problem, method=method, rtol=1e-10, atol=1e-12).y[:, -1]
        for method in ("DOP853", "RKMK5")
    ]
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-8)


@pytest.mark.parametrize(
    ("group", "joint"), [("SO3", Spherical()), ("SE3", Free()), ("SE2", Planar())]
)
def test_rates_seen_from_inside_are_the_velocities_of_our_joints(group, joint):
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, v = joint.random(rng), rng.standard_normal(joint.nv)
        found = _seen_from_inside(group, q, np.asarray(joint.rate(0.0, q, v, ())))
        np.testing.assert_allclose(found, v, atol=1e-14)


def test_poses_that_are_no_rotations_are_refused():
    with pytest.raises(ValueError, match="rotation matrix"):
        UserJoint(lambda q: (2 * np.eye(3), np.zeros(3)), ["x"])
    with pytest.raises(ValueError, match="rotation matrix"):
        UserJoint(lambda q: (np.diag([1.0, 1.0, -1.0]), np.zeros(3)), ["x"])
    with pytest.raises(ValueError, match="unit quaternion"):
        Driven(Spherical(), lambda t: [2.0, 0 * t, 0, 0])


def test_threads_do_not_meet_in_a_law_in_python():
    """Python code in the middle of a computation lets other threads in."""

    def slider(t, q, v):
        total = 0.0
        for k in range(2000):  # long enough to be interrupted
            total += k
        S = np.zeros((6, 1))
        S[3, 0] = 1.0
        return np.eye(3), np.array([q[0], 0.0, 0.0]), S, np.zeros(6), None

    builder = ModelBuilder()
    builder.add_body("cart", 0, UserJoint(None, ["x"], law=slider), inertia=point_mass(1.0))
    builder.add_body("bob", "cart", Revolute("y"), inertia=point_mass(1.0, (0, 0, -1.0)))
    model = builder.build()
    rng = np.random.default_rng(0)
    cases = [(rng.normal(size=2), rng.normal(size=2)) for _ in range(25)]
    right = [FD(model, *case) for case in cases]
    wrong = []

    def work():
        for _ in range(8):
            for case, expected in zip(cases, right):
                if not np.array_equal(FD(model, *case), expected):
                    wrong.append(case)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_constants_as_defaults_of_a_pose():
    """They are not taken for the time."""
    bead = UserJoint(lambda q, a=0.5: (np.eye(3), np.array([q[0], a * q[0] ** 2, 0.0])), ["x"])
    assert not bead.is_rheonomic
    assert bead.motion([2.0], [3.0]).v[3:].tolist() == [3.0, 6.0, 0.0]


def test_a_drive_of_what_cannot_move():
    assert Driven(Fixed(), lambda t: []).motion([], [], 0.3).v.tolist() == [0.0] * 6


def test_motions_that_cannot_be_traced(caplog):
    """Called as they are; against the same motion traced, and near a kink against either side."""

    def looked_up(t):
        return math.sin(2.0 * t) + 0.1 * t * t

    def ramp(t):
        return 0.5 * t**2 if t < 0.3 else 0.045 + 0.3 * (t - 0.3)

    def arm(motion):
        b = ModelBuilder()
        part = Inertia(1.0, (0.3, 0.1, 0.0), (1.0, 1.2, 1.4))
        b.add_body("driven", 0, Driven(Revolute("y"), motion), None, part)
        b.add_body("swinging", "driven", Revolute("x"), (0.5, 0, 0), part)
        return b.build()

    exact = arm(lambda t: np.sin(2.0 * t) + 0.1 * t * t)
    called = arm(looked_up)
    assert "cannot be traced" in caplog.text
    for t in (0.0, 0.7):
        state = ([0.3], [0.2])
        np.testing.assert_allclose(FD(called, *state, t=t), FD(exact, *state, t=t), atol=1e-9)
        np.testing.assert_allclose(
            FD_derivatives(called, *state, t=t), FD_derivatives(exact, *state, t=t), atol=1e-9
        )
    ends = [
        solve(as_ivp(m, *state, (0.0, 1.0)), method="DOP853", rtol=1e-9, atol=1e-9).y[:, -1]
        for m in (exact, called)
    ]
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-8)
    kinked = arm(ramp)
    sides = arm(lambda t: 0.5 * t**2), arm(lambda t: 0.045 + 0.3 * (t - 0.3))
    for t in (0.2, 0.299, 0.301):
        one = sides[t > 0.3]
        np.testing.assert_allclose(FD(kinked, *state, t=t), FD(one, *state, t=t), atol=1e-8)
    b = ModelBuilder()
    b.add_body("a", 0, Revolute(), None, Inertia(1.0, (0.3, 0, 0), (1.0, 1.0, 1.0)))
    b.add_loop("driven", 0, "a", Driven(Revolute(), looked_up))
    with pytest.raises(ValueError, match="give a table"):
        b.build()
