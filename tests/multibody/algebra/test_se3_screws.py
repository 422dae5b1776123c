"""SE(3) and screws: group, actions, exponential map, adjoints, joints, inertia packings."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from multibody.algebra import screws, se3
from multibody.algebra.inertia import ArticulatedInertia, CentralInertia, mcI
from multibody.algebra.orientation import rotations
from multibody.algebra.orientation.rotations import skew
from multibody.algebra.plucker import Plucker
from multibody.algebra.screws import Twist, Wrench
from multibody.algebra.se3 import Pose
from multibody.algebra.spatial import Force, Motion, crf, crm
from tests.multibody.mechanics_strategies import (
    angles,
    central_inertias,
    positive,
    rotation_matrices,
    vectors,
)

# Products of a few 4×4 or 6×6 matrices with entries up to about ten.
ROUNDING = 1e-11
# Central difference with h = 1e-6: h² truncation and eps/h rounding, times entries of size ten.
DIFFERENCE = 1e-8

poses = st.builds(Pose, rotation_matrices, vectors(3))
bodies = st.builds(mcI, positive, vectors(3), central_inertias())
SWAP = np.roll(np.eye(6), 3, axis=0)


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def hat(xi):
    """4×4 matrix of an angular-first twist."""
    T = np.zeros((4, 4))
    T[:3, :3], T[:3, 3] = skew(xi[:3]), xi[3:]
    return T


# --- poses (SE(3) notes §1–2) -----------------------------------------------------------------


@given(poses, poses, poses, vectors((5, 3)))
def test_group_and_points_against_homogeneous_matrices(A, B, C, points):
    TA, TB = A.homogeneous(), B.homogeneous()
    close((A * B).homogeneous(), TA @ TB)
    close(A.inverse().homogeneous(), np.linalg.inv(TA))
    close(A.inverse_compose(B).homogeneous(), np.linalg.solve(TA, TB))
    close(((A * B) * C).homogeneous(), (A * (B * C)).homogeneous())
    assert (A * Pose.identity()).isclose(A)
    assert Pose.from_homogeneous(TA).isclose(A)
    close(A.act(points), points @ A.R.T + A.p)
    close(A.act_inverse(A.act(points)), points)
    close(np.stack([A.act(p) for p in points]), A.act(points))


@given(poses)
def test_featherstone_view(A):
    """E = Rᵀ, r = p; the book's 4×4 transform is the inverse pose."""
    X = A.to_plucker()
    close(X.homogeneous(), A.inverse().homogeneous())
    assert Pose.from_featherstone(X.E, X.r).isclose(A)
    close(A.adjoint(), X.inverse().matrix())
    close(A.coadjoint(), X.inverse().force_matrix())


def test_bad_poses_are_refused():
    with pytest.raises(ValueError, match="one pose at a time"):
        Pose(np.stack([np.eye(3)] * 2))
    with pytest.raises(ValueError, match="last row"):
        Pose.from_homogeneous(np.ones((4, 4)))
    with pytest.raises(ValueError, match="reflection"):
        Pose(-np.eye(3))


# --- actions (§3–6) ---------------------------------------------------------------------------


@given(poses, vectors(6), vectors(6), bodies)
def test_actions_and_their_inverses(A, m, f, body):
    m, f = Motion(m), Force(f)
    close(A.act(m).array, A.adjoint() @ m.array)
    close(A.act(f).array, A.coadjoint() @ f.array)
    close(A.coadjoint(), np.linalg.inv(A.adjoint()).T)
    close(A.act(m).dot(A.act(f)), m.dot(f))
    close(A.act_inverse(A.act(m)).array, m.array)
    close(A.act_inverse(A.act(f)).array, f.array)
    moved = A.act(body)
    back = np.linalg.inv(A.adjoint())
    close(moved.matrix(), back.T @ body.matrix() @ back, 1e-9)
    assert A.act_inverse(moved).isclose(body, atol=1e-9)
    triplet = CentralInertia.from_rigid(body)
    close(A.act(triplet).rigid().matrix(), moved.matrix(), 1e-9)
    close(A.act_inverse(A.act(triplet)).rigid().matrix(), body.matrix(), 1e-9)
    spread = ArticulatedInertia.from_rigid(body)
    close(A.act(spread).matrix(), moved.matrix(), 1e-9)
    close(A.act_inverse(A.act(spread)).matrix(), body.matrix(), 1e-8)


@given(poses, vectors(6))
def test_motion_action_is_the_similarity_of_4x4_twists(A, xi):
    T = A.homogeneous()
    close(hat(A.act(Motion(xi)).array), T @ hat(xi) @ np.linalg.inv(T))


@given(vectors(6), vectors(6))
def test_cross_product_is_the_commutator(a, b):
    commutator = hat(a) @ hat(b) - hat(b) @ hat(a)
    close(hat(Motion(a).cross(Motion(b)).array), commutator)
    close(se3.ad(a) @ b, Motion(a).cross(Motion(b)).array)
    close(se3.ad_star(a), -se3.ad(a).T)
    close(se3.ad(a), crm(Motion(a)))
    close(se3.ad_star(a), crf(Motion(a)))


# --- exponential map --------------------------------------------------------------------------


@given(vectors(6, bound=3.0))
def test_exponential_against_expm(xi):
    close(se3.exp(xi).homogeneous(), expm(hat(xi)), 1e-10)
    close(se3.exp(xi).adjoint(), expm(se3.ad(xi)), 1e-9)


@pytest.mark.parametrize("theta", [0.0, 1e-300, 1e-9, 1e-4, 0.9, 1.1, np.pi - 1e-9, np.pi])
def test_log_inverts_exp_at_edge_angles(theta):
    n = np.array([2.0, -1.0, 2.0]) / 3
    xi = np.concatenate([theta * n, [0.3, -0.7, 1.1]])
    pose = se3.exp(xi)
    assert se3.exp(se3.log(pose)).isclose(pose, 1e-12)
    if theta < np.pi:  # at π, ω and −ω are both logarithms
        close(se3.log(pose), xi, 1e-12)


@pytest.mark.parametrize("theta", [0.0, 1e-300, 1e-9, 1e-4, 0.5, 0.999, 1.001, 2.0, np.pi, 5.0])
def test_jacobians_against_their_series_in_sixty_digits(theta):
    xi = np.concatenate([theta * np.array([2.0, -1.0, 2.0]) / 3, [0.3, -0.7, 1.1]])
    with mpmath.workdps(60):
        A = mpmath.matrix(se3.ad(xi).tolist())
        term, J = mpmath.eye(6), mpmath.eye(6)
        for k in range(1, 80):
            term = term * A / (k + 1)
            J = J + term
        J = np.array(J.tolist(), dtype=float)
    close(se3.left_jacobian(xi), J, 1e-14)
    close(se3.left_jacobian_inverse(xi) @ J, np.eye(6), 1e-13)
    close(se3.right_jacobian_inverse(xi) @ se3.right_jacobian(xi), np.eye(6), 1e-13)


@given(vectors(6), vectors(6, bound=1.0))
def test_jacobians_are_the_first_order_effect(xi, d):
    h = 1e-6
    rate = (se3.exp(xi + h * d).homogeneous() - se3.exp(xi - h * d).homogeneous()) / (2 * h)
    T = se3.exp(xi).homogeneous()
    close(rate @ np.linalg.inv(T), hat(se3.left_jacobian(xi) @ d), DIFFERENCE)
    close(np.linalg.inv(T) @ rate, hat(se3.right_jacobian(xi) @ d), DIFFERENCE)


# --- order of parts ---------------------------------------------------------------------------


@given(vectors(6), poses, bodies)
def test_linear_first_adapters(v, A, body):
    close(se3.linear_first(v), SWAP @ v)
    close(se3.angular_first(se3.linear_first(v)), v)
    X = A.to_plucker()
    # SE(3) notes §3 for Featherstone: [E, −E r×; 0, E], linear first.
    E, r = X.E, X.r
    close(se3.matrix_linear_first(X.matrix()), np.block([[E, -E @ skew(r)], [np.zeros((3, 3)), E]]))
    close(se3.matrix_angular_first(se3.matrix_linear_first(X.matrix())), X.matrix())
    m, c, C = body.mass, body.centre, body.central
    Y = np.block([[m * np.eye(3), m * skew(c).T], [m * skew(c), C + m * skew(c) @ skew(c).T]])
    close(se3.matrix_linear_first(body.matrix()), Y)


# --- screws -----------------------------------------------------------------------------------


@given(poses, vectors(6), vectors(6))
def test_twists_and_wrenches(A, t, w):
    twist, wrench = Twist(t[:3], t[3:]), Wrench(w[:3], w[3:])
    close(twist.transformed(A).array, screws.adjoint(A) @ t)
    close(wrench.transformed(A).array, screws.coadjoint(A) @ w)
    close(screws.coadjoint(A), np.linalg.inv(screws.adjoint(A)).T)
    power = w[:3] @ t[:3] + w[3:] @ t[3:]
    close(twist.dot(wrench), power)
    close(twist.transformed(A).dot(wrench.transformed(A)), power)
    close(screws.reciprocal_product(w, se3.angular_first(t)), power)
    close(wrench.dot(twist), power)
    close(Twist.from_motion(A.act(twist.motion())).array, twist.transformed(A).array)
    close(Wrench.from_force(A.act(wrench.force())).array, wrench.transformed(A).array)
    close(screws.ad_star(twist), -screws.ad(twist).T)
    close(screws.ad(twist), SWAP @ se3.ad(se3.angular_first(t)) @ SWAP)


@given(poses, vectors((4, 6)))
def test_batches_equal_loops(A, batch):
    twists = [Twist(t[:3], t[3:]).transformed(A).array for t in batch]
    wrenches = [Wrench(t[:3], t[3:]).transformed(A).array for t in batch]
    close(screws.transform_twists(A, batch), np.stack(twists))
    close(screws.transform_wrenches(A, batch), np.stack(wrenches))


def test_twists_and_wrenches_keep_to_themselves():
    t, w = Twist([0, 0, 0], [0, 0, 1]), Wrench([0, 0, 0], [0, 0, 1])
    for bad in (lambda: t.dot(t), lambda: w.dot(w), lambda: t + w, lambda: np.ones(6) * t):
        with pytest.raises(TypeError):
            bad()


def moving_pose(A, xi, s):
    """Displacement A carried along by a constant spatial twist."""
    return se3.exp(s * xi) * A


@given(poses, vectors(6))
def test_spatial_twist_and_rates_of_adjoints(A, xi):
    h = 1e-6
    high, low = moving_pose(A, xi, h), moving_pose(A, xi, -h)
    R_dot, r_dot = (high.R - low.R) / (2 * h), (high.p - low.p) / (2 * h)
    twist = screws.spatial_twist(A.R, A.p, R_dot, r_dot)
    close(twist.array, se3.linear_first(xi), DIFFERENCE)
    for operator, generator in ((screws.adjoint, screws.ad), (screws.coadjoint, screws.ad_star)):
        rate = (operator(high) - operator(low)) / (2 * h)
        close(rate @ np.linalg.inv(operator(A)), generator(twist), 1e-7)


@pytest.mark.parametrize("joint", screws.PRIMITIVE_JOINTS)
@given(A=poses, q=angles, f=vectors(6))
def test_primitive_joints(joint, A, q, f):
    axis = np.eye(3)["xyz".index(joint[1])]

    def displaced(angle):
        step = (
            Pose(rotations.exp(angle * axis)) if joint[0] == "r" else Pose(np.eye(3), angle * axis)
        )
        return A * step

    h = 1e-6
    here, high, low = displaced(q), displaced(q + h), displaced(q - h)
    expected = screws.spatial_twist(
        here.R, here.p, (high.R - low.R) / (2 * h), (high.p - low.p) / (2 * h)
    )
    found = screws.influence_coefficient(A, joint)
    close(found.array, expected.array, DIFFERENCE)
    close(screws.influence_coefficient(here, joint).array, found.array)  # the axis does not move
    H = screws.constraint_forces(A, joint)
    close(H.T @ found.array, 0.0)
    assert np.linalg.matrix_rank(H) == 5
    # The union of both is [Ad]*, with the working column in its place.
    n = screws.PRIMITIVE_JOINTS.index(joint)
    close(np.insert(H, n, screws.coadjoint(A)[:, n], axis=1), screws.coadjoint(A))
    # The generalised force does not depend on the frame.
    local = Wrench(f[:3], f[3:])
    at_joint = screws.joint_force(Pose.identity(), joint, local)
    close(screws.joint_force(A, joint, local.transformed(A)), at_joint)


def test_jacobian_of_a_chain():
    """Two revolute joints and a slider: columns against differences of the end pose."""
    base = [
        Pose(np.eye(3), [0.1, 0, 0]),
        Pose(rotations.Rx(0.4), [0.5, 0, 0.2]),
        Pose(rotations.Ry(-0.3), [0, 0.4, 0]),
    ]
    kinds = ["rz", "ry", "px"]

    def chain(q):
        poses, X = [], Pose.identity()
        for placement, kind, value in zip(base, kinds, q):
            X = X * placement
            poses.append(X)
            axis = value * np.eye(3)["xyz".index(kind[1])]
            X = X * (Pose(rotations.exp(axis)) if kind[0] == "r" else Pose(np.eye(3), axis))
        return poses, X

    q, h = np.array([0.3, -0.8, 0.6]), 1e-6
    poses, end = chain(q)
    J = screws.jacobian(poses, kinds)
    assert J.flags.f_contiguous
    for n in range(3):
        high, low = chain(q + h * np.eye(3)[n])[1], chain(q - h * np.eye(3)[n])[1]
        twist = screws.spatial_twist(
            end.R, end.p, (high.R - low.R) / (2 * h), (high.p - low.p) / (2 * h)
        )
        close(J[:, n], twist.array, DIFFERENCE)
    with pytest.raises(ValueError, match="as many of each"):
        screws.jacobian(poses, ["rz"])
    with pytest.raises(ValueError, match="received 'rw'"):
        screws.influence_coefficient(end, "rw")


@given(poses, bodies)
def test_inertia_in_another_frame(A, body):
    """M_ff = Ad*_fc M_cc Ad_cf for a body frame away from the centre of mass."""
    m, c, C = body.mass, body.centre, body.central
    f_c = A * Pose(np.eye(3), c)
    central = np.block([[m * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), C]])
    expected = screws.coadjoint(f_c) @ central @ screws.adjoint(f_c.inverse())
    close(screws.inertia_at(A, m, c, C), expected, 1e-9)


@given(bodies, poses)
def test_packings_round_trip(body, A):
    assert screws.inertia_from_ten(screws.inertia_to_ten(body)).isclose(body)
    assert screws.inertia_from_thirteen(screws.inertia_to_thirteen(body)).isclose(body)
    assert len(screws.inertia_to_ten(body)) == 10
    assert screws.displacement_from_vector(screws.displacement_to_vector(A)).isclose(A)
    close(screws.displacement_to_vector(A)[:3], A.R[:, 0])
    with pytest.raises(ValueError, match="repeat −m r"):
        screws.inertia_from_thirteen(np.append(screws.inertia_to_ten(body), [9.0, 9.0, 9.0]))


def test_storage_saved():
    """36 numbers of a 6×6 inertia against 10 (72 %, printed as 70 %) and 13 (64 %)."""
    assert round(100 * (1 - 10 / 36)) == 72
    assert round(100 * (1 - 13 / 36)) == 64


def test_pose_and_plucker_do_not_mix_silently():
    with pytest.raises((TypeError, ValueError)):
        Pose.identity() * Plucker.identity()
