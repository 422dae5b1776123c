"""Every registered joint: the master test, reversal, known entries of the book's tables."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import multibody as mb
from multibody import Motion, crm
from multibody.dynamics.book.oracles import body_joint, slope
from multibody.joints import REGISTRY, Joint, joint_names
from multibody.joints.base import unit_columns
from multibody.model import Body
from tests.multibody.joint_samples import SAMPLES

ALL = [pytest.param(joint, id=f"{kind}-{n}") for kind in SAMPLES
       for n, joint in enumerate(SAMPLES[kind])]  # fmt: skip

# Products of a handful of numbers of size one.
ROUNDING = 1e-14
# Differences with step 1e-3, extrapolated to sixth order: rounding 1e-16/1e-3 is what remains.
DIFFERENCES = 1e-9


def test_every_registered_kind_has_samples():
    own = {kind for kind, cls in REGISTRY.items() if cls.__module__.startswith("multibody")}
    assert own == set(SAMPLES)
    assert set(joint_names()) >= own
    for kind, joints in SAMPLES.items():
        assert {type(j) for j in joints} == {REGISTRY[kind]}


@pytest.mark.parametrize("joint", ALL)
def test_master(joint):
    report = mb.check_joint(joint)
    assert report, str(report)


@pytest.mark.parametrize("kind", sorted(SAMPLES))
def test_joints_that_share_code_differ_by_parameters_only(kind):
    """Laws and gaps of equal keys, each with the parameters of the other: code is made once."""
    rng = np.random.default_rng(7)
    for a, b in itertools.pairwise(SAMPLES[kind]):
        if a.law_key() != b.law_key() or not a.parameters:
            continue
        q, v, p = a.random(rng), rng.uniform(-1, 1, a.nv), np.array(b.parameters)
        for mine, other in zip(a.law(0.3, q, v, p), b.law(0.3, q, v, p), strict=True):
            np.testing.assert_array_equal(np.array(mine, float), np.array(other, float))
        E, r, *_ = b.law(0.3, q, v, p)
        gaps = [np.array(x.closure(0.3, E, r, p), float) for x in (a, b)]
        np.testing.assert_array_equal(*gaps)


@pytest.mark.parametrize("joint", ALL)
def test_reversal(joint):
    """Table 4.2: X⁻¹, −X⁻¹ S, −X⁻¹ v_J and −X⁻¹ c_J belong together as the originals do."""
    rng = np.random.default_rng(1)
    body = Body("b", 0, joint, mb.Plucker.identity(), mb.Inertia(1.0), reverse=True)
    q, v, t = joint.random(rng), rng.standard_normal(joint.nv), 0.4
    q_dot = joint.position_rate(q, v, t)

    def along(h):
        return body_joint(body, q + h * q_dot, v, t + h)

    X, S, v_J, c_J = along(0.0)
    forward = joint.motion(q, v, t)
    np.testing.assert_allclose(X @ forward.X.matrix(), np.eye(6), atol=10 * ROUNDING)
    X_rate = slope(lambda h: along(h)[0])
    np.testing.assert_allclose(X_rate, -crm(Motion(v_J)) @ X, atol=DIFFERENCES)
    # c_J is dv_J/dt in the frame of the new successor; a straight line in q suffices, because
    # only first derivatives enter.
    np.testing.assert_allclose(slope(lambda h: along(h)[2]), c_J, atol=DIFFERENCES)
    # Forces are transformed as forces. (The printed −X T is not orthogonal to S.)
    T = joint.constraint_basis(q, t)
    np.testing.assert_allclose((np.linalg.inv(X).T @ T).T @ S, 0.0, atol=10 * ROUNDING)


def test_printed_reversal_of_constraint_forces_is_wrong():
    joint, q = mb.RackPinion(0.3), np.array([1.2])
    body = Body("b", 0, joint, mb.Plucker.identity(), mb.Inertia(1.0), reverse=True)
    X, S, *_ = body_joint(body, q, np.zeros(1), 0.0)
    assert np.abs((-X @ joint.constraint_basis(q)).T @ S).max() > 0.1


# --- the printed planar and 6-DoF joints -------------------------------------------------------


class _PrintedPlanar(mb.Planar):
    """Table 4.1: r = Eᵀ(q₂, q₃, 0), constant S, q̇ = v."""

    groups = ("SO2", "R", "R")

    def law(self, t, q, v, p):
        E, _, S, c, sigma = super().law(t, q, v, p)
        return E, E.T @ np.array([q[1], q[2], 0.0]), S, c, sigma

    def rate(self, t, q, v, p):
        return v


class _PlanarInSuccessor(_PrintedPlanar):
    """The same with the rates that its S implies: (v₁, v₂ + q₃v₁, v₃ − q₂v₁)."""

    def rate(self, t, q, v, p):
        return np.array([v[0], v[1] + q[2] * v[0], v[2] - q[1] * v[0]])

    def integrate(self, q, v, h=1.0):  # by many small steps: this form has no simple group
        q = np.array(q, dtype=float)
        for _ in range(20):
            k1 = self.position_rate(q, v)
            k2 = self.position_rate(q + h / 40 * k1, v)
            q = q + h / 20 * k2
        return q


class _PlanarByS(_PrintedPlanar):
    """The same with q̇ = v and the S(q) and c_J that follow."""

    units = ()

    def law(self, t, q, v, p):
        E, r, _, _, sigma = super().law(t, q, v, p)
        e = np.eye(6)
        S = np.column_stack([e[2] - q[2] * e[3] + q[1] * e[4], e[3], e[4]])
        return E, r, S, v[0] * (v[1] * e[4] - v[2] * e[3]), sigma


class _PrintedFree(mb.Free):
    """Table 4.1: r = E⁻¹(q₅, q₆, q₇) with constant S and ṗ = v."""

    groups = ("SO3", "R", "R", "R")

    def law(self, t, q, v, p):
        E, _, S, c, sigma = super().law(t, q, v, p)
        return E, E.T @ q[4:7], S, c, sigma

    def rate(self, t, q, v, p):
        return np.concatenate([super().rate(t, q, v, p)[:4], v[3:]])


@pytest.mark.parametrize("joint", [_PrintedPlanar(), _PrintedFree()])
def test_printed_joints_fail_the_master_test(joint):
    report = mb.check_joint(joint)
    assert not report
    assert report.residuals["dX_J/dt = −crm(v_J) X_J"] > 0.1
    assert "NOT consistent" in str(report)


@pytest.mark.parametrize("joint", [_PlanarInSuccessor(), _PlanarByS()])
def test_two_other_repairs_of_the_planar_joint_pass(joint):
    report = mb.check_joint(joint)
    assert report, str(report)


def test_check_joint_sees_each_kind_of_mistake():
    class WrongBias(mb.RackPinion):
        def law(self, t, q, v, p):
            E, r, S, _, sigma = super().law(t, q, v, p)
            return E, r, S, None, sigma

    class WrongFreedom(mb.Revolute):
        units = ()

        def law(self, t, q, v, p):
            E, r, _, c, sigma = super().law(t, q, v, p)
            return E, r, unit_columns(1), c, sigma

    class Redundant(mb.Cylindrical):
        units = ()

        def law(self, t, q, v, p):
            E, r, _, c, sigma = super().law(t, q, v, p)
            return E, r, unit_columns(2, 2), c, sigma

    assert mb.check_joint(WrongBias(0.3)).residuals["c_J = dv_J/dt at constant v"] > 0.1
    assert mb.check_joint(WrongFreedom()).residuals["dX_J/dt = −crm(v_J) X_J"] > 0.1
    assert mb.check_joint(Redundant()).residuals["S has full rank"] == 1.0


# --- tables of the book ------------------------------------------------------------------------


def span(A):
    """Projector on the range of A: equal for equal subspaces."""
    return A @ np.linalg.pinv(A)


E6 = np.eye(6)


@pytest.mark.parametrize(
    ("joint", "S", "T"),
    [
        (mb.Revolute(), [E6[2]], E6[[0, 1, 3, 4, 5]]),
        (mb.Prismatic(), [E6[5]], E6[[0, 1, 2, 3, 4]]),
        (mb.Helical(0.3), [E6[2] + 0.3 * E6[5]], [*E6[[0, 1, 3, 4]], E6[5] - 0.3 * E6[2]]),
        (mb.Cylindrical(), E6[[2, 5]], E6[[0, 1, 3, 4]]),
        (mb.Planar(), E6[[2, 3, 4]], E6[[0, 1, 5]]),
        (mb.Spherical(), E6[[0, 1, 2]], E6[[3, 4, 5]]),
        (mb.Free(), E6, np.zeros((0, 6))),
        (mb.Fixed(), np.zeros((0, 6)), E6),
    ],
)
def test_table_4_1(joint, S, T):
    q = joint.random(np.random.default_rng(2))
    np.testing.assert_array_equal(joint.motion(q).S, np.reshape(S, (-1, 6)).T)
    basis = joint.constraint_basis(q)
    np.testing.assert_allclose(span(basis), span(np.reshape(T, (-1, 6)).T), atol=ROUNDING)


def test_yaw_pitch_roll():
    """Eq 4.7–4.9, with the spurious row of the last removed."""
    q, v = np.array([0.4, -0.7, 1.1]), np.array([0.3, -1.2, 0.8])
    (c1, c2, c3), (s1, s2, s3) = np.cos(q), np.sin(q)
    move = mb.AngleSequence("zyx").motion(q, v)
    E = [
        [c1 * c2, s1 * c2, -s2],
        [c1 * s2 * s3 - s1 * c3, s1 * s2 * s3 + c1 * c3, c2 * s3],
        [c1 * s2 * c3 + s1 * s3, s1 * s2 * c3 - c1 * s3, c2 * c3],
    ]
    S = [[-s2, 0, 1], [c2 * s3, c3, 0], [c2 * c3, -s3, 0]]
    c = [
        -c2 * v[0] * v[1],
        -s2 * s3 * v[0] * v[1] + c2 * c3 * v[0] * v[2] - s3 * v[1] * v[2],
        -s2 * c3 * v[0] * v[1] - c2 * s3 * v[0] * v[2] - c3 * v[1] * v[2],
    ]
    np.testing.assert_allclose(move.X.E, E, atol=ROUNDING)
    np.testing.assert_allclose(move.S[:3], S, atol=ROUNDING)
    np.testing.assert_allclose(move.c[:3], c, atol=ROUNDING)
    assert np.linalg.det(move.S[:3]) == pytest.approx(-c2, abs=ROUNDING)
    np.testing.assert_array_equal(move.S[3:], 0.0)


def test_quaternion_and_its_negative_are_one_position():
    rng = np.random.default_rng(3)
    for joint in (mb.Spherical(), mb.RollingSphere(0.2), mb.Free()):
        q = joint.random(rng)
        other = q.copy()
        other[:4] *= -1.0
        a, b = joint.motion(q), joint.motion(other)
        np.testing.assert_array_equal(a.X.E, b.X.E)
        u = joint.difference(q, other)
        np.testing.assert_allclose(u, 0.0, atol=1e-15)


@pytest.mark.parametrize(
    ("special", "general"),
    [
        (mb.Revolute("x"), mb.Helical(0.0, "x")),
        (mb.Revolute("x"), mb.RackPinion(0.0, "x")),
        (mb.Universal(), mb.AngleSequence("xy")),
    ],
)
def test_special_cases_agree(special, general):
    rng = np.random.default_rng(4)
    q, v = special.random(rng), rng.standard_normal(special.nv)
    for a, b in zip(special.motion(q, v)[1:], general.motion(q, v)[1:]):
        np.testing.assert_allclose(a, b, atol=ROUNDING)
    assert special.motion(q).X.isclose(general.motion(q).X)


def test_rolling_sphere_does_not_slip():
    rng = np.random.default_rng(5)
    for axis in ("z", (1.0, -2.0, 0.5)):
        joint = mb.RollingSphere(0.3, axis)
        q, v = joint.random(rng), rng.standard_normal(3)
        move = joint.motion(q, v)
        down = -0.3 * move.X.E @ joint.axis  # contact point, from the centre
        velocity = move.v[3:] + np.cross(move.v[:3], down)
        np.testing.assert_allclose(velocity, 0.0, atol=10 * ROUNDING)


def test_constant_velocity_joint_passes_turns_on_evenly():
    """Both shafts turn equally fast about their own axes; a universal joint's do not."""

    def about_own_axis(joint, bend, rate):
        # Hold the bend direction in the middle while both shafts turn: ω·z_p = ω·z_s = 0 for
        # the relative motion of a constant-velocity joint.
        move = joint.motion(bend, rate)
        z_p = move.X.E[:, 2]
        return move.v[2] + move.v[:3] @ z_p

    rng = np.random.default_rng(6)
    bend, rate = rng.uniform(-1, 1, 2), rng.standard_normal(2)
    assert abs(about_own_axis(mb.ConstantVelocity(), bend, rate)) < 10 * ROUNDING
    assert abs(about_own_axis(mb.Universal(), bend, rate)) > 1e-2


def test_constant_velocity_joint_is_smooth_where_the_series_ends():
    joint = mb.ConstantVelocity()
    inside, outside = (joint.motion([0.3, np.sqrt(0.25 - 0.09) + e], [0.7, -0.4])
                       for e in (-1e-13, 1e-13))  # fmt: skip
    np.testing.assert_allclose(inside.X.matrix(), outside.X.matrix(), atol=1e-12)
    np.testing.assert_allclose(inside.S, outside.S, atol=1e-12)
    np.testing.assert_allclose(inside.c, outside.c, atol=1e-12)
    straight = joint.motion([0.0, 0.0], [1.0, 2.0])
    np.testing.assert_allclose(straight.S, unit_columns(0, 1), atol=ROUNDING)


def test_driven_joint_follows_its_function():
    joint = SAMPLES["driven"][0]
    now = joint.motion([], [], 0.3)
    speed, acceleration = 0.8 * np.cos(0.6) + 1.0, -1.6 * np.sin(0.6)
    np.testing.assert_allclose(now.v, [speed, 0, 0, 0, 0, 0], atol=ROUNDING)
    np.testing.assert_allclose(now.c, [acceleration, 0, 0, 0, 0, 0], atol=ROUNDING)
    assert now.S.shape == (6, 0)


# --- positions as a space ----------------------------------------------------------------------


# Of the others the group's velocity changes along the way, although v is constant.
ROLLING = mb.RollingSphere | mb.RollingDisc | mb.RollingBalls | mb.UserJoint
STEADY = [case for case in ALL if not isinstance(case.values[0], ROLLING)]


@pytest.mark.parametrize("joint", STEADY)
def test_constant_velocity_motion_is_exact(joint):
    """Two half steps are one step, where constant velocities make a one-parameter group."""
    rng = np.random.default_rng(7)
    q, v = joint.random(rng), rng.standard_normal(joint.nv)
    once = joint.integrate(q, v, 0.6)
    twice = joint.integrate(joint.integrate(q, v, 0.3), v, 0.3)
    np.testing.assert_allclose(once, twice, atol=10 * ROUNDING)
    neutral = joint.neutral()
    assert neutral.shape == (joint.nq,)
    for at in joint.quaternion_places:
        np.testing.assert_array_equal(neutral[at : at + 4], [1, 0, 0, 0])


@pytest.mark.parametrize("joint", ALL)
def test_identity_and_storage(joint):
    again = pickle.loads(pickle.dumps(joint))
    assert again == joint
    assert hash(again) == hash(joint)
    assert again != mb.Helical(9.0)
    assert type(joint).__name__ in repr(joint)
    q = joint.random(np.random.default_rng(0))
    np.testing.assert_array_equal(again.motion(q).S, joint.motion(q).S)
    assert (joint == 3) is False


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mb.Revolute("w"), "'x', 'y', 'z'"),
        (lambda: mb.Revolute((0, 0, 0)), "not all zero"),
        (lambda: mb.Revolute((1, 0)), "axis"),
        (lambda: mb.Revolute((1, 0, np.nan)), "finite"),
        (lambda: mb.AngleSequence("zz"), "neighbours different"),
        (lambda: mb.AngleSequence("zyxz"), "two or three"),
        (lambda: mb.RollingSphere(0.0), "positive"),
        (lambda: mb.UserJoint(lambda q: q, ["a"], ["b", "c"]), "rate"),
        (lambda: mb.UserJoint(lambda q: q, list("abcdefg")), "at most 6"),
        (lambda: mb.Driven(mb.Revolute(), lambda t: [t, t]), r"1 numbers \(angle\).*\(2,\)"),
        (lambda: mb.Driven(mb.Cylindrical(), lambda t: t), r"2 numbers \(angle, shift\).*\(\)"),
        (lambda: mb.Driven(mb.Revolute(), lambda t: None), "returned None"),
        (lambda: mb.Cylindrical().motion([1.0]), "angle, shift"),
        (lambda: mb.Spherical().motion([1, 0, 0, 0], [1.0]), "omega_x"),
    ],
)
def test_bad_values_say_what_is_expected(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: mb.UserJoint(None, ["a"]),
        lambda: mb.Driven("revolute", lambda t: [t]),
        lambda: mb.Driven(mb.Revolute(), 3.0),
        lambda: mb.Helical("steep"),
    ],
)
def test_bad_types(make):
    with pytest.raises(TypeError, match="expected"):
        make()


def test_a_joint_must_state_its_law():
    with pytest.raises(NotImplementedError, match="law"):
        Joint().motion([])


def test_user_law_must_return_five_things():
    joint = mb.UserJoint(None, ["a"], law=lambda t, q, v: np.eye(3))
    with pytest.raises(ValueError, match="E, r, S, c, sigma"):
        joint.motion([0.0])


def test_a_driven_joint_with_one_variable_takes_a_number():
    """q = 2 sin 3t: q̇ = 6 cos 3t, q̈ = −18 sin 3t, in the tree and in closed form."""
    motor = mb.Driven(mb.Revolute(), lambda t: 2 * np.sin(3 * t))
    t = 0.2
    moved = motor.motion([], [], t)
    np.testing.assert_allclose(moved.v, [0, 0, 6 * np.cos(3 * t), 0, 0, 0], rtol=1e-14)
    np.testing.assert_allclose(moved.c, [0, 0, -18 * np.sin(3 * t), 0, 0, 0], rtol=1e-14)
    expected = mb.Revolute().motion([2 * np.sin(3 * t)]).X
    np.testing.assert_allclose(moved.X.E, expected.E, atol=1e-15)
