"""Errata of the source documents: the printed form fails, the corrected one holds.

Numbers E1–E46 are those of docs/errata.md. Each test evaluates the formula as printed, shows that
it is off by more than OFF, and shows that the corrected formula, or the library, is exact. B1–B6
are slips of the dynamics book (or of its scan). E20–E30 concern differential equations and are
tested with the integrators.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from multibody.algebra import natural, planar, points, screws, se3
from multibody.algebra.frames import Frame, FrameMoving
from multibody.algebra.orientation import angles, quaternions, rates, rotations
from multibody.algebra.orientation.rotations import Rx, Ry, Rz, skew
from multibody.algebra.plucker import scrz, xlt
from multibody.algebra.screws import Twist, Wrench
from multibody.algebra.se3 import Pose
from multibody.algebra.spatial import Force, Motion, crm
from multibody.kernels.inertia import articulated_transform
from multibody.kernels.vectors import rotate_general, rotate_general_direct
from tests.multibody.counting import cost

# Sums of some tens of products of numbers of order one.
ROUNDING = 1e-13
# A printed formula counts as wrong when it misses by more than this on the data below.
OFF = 0.05

B = FrameMoving(
    [1, 2, 3],
    [np.sqrt(0.5), 0, 0, np.sqrt(0.5)],
    [0.5, -1, 2],
    [0.1, 0.2, 0.3],
    [0, 1, -1],
    [-0.2, 0.4, 0.1],
)
A = FrameMoving([0.2, -0.1, 0.4], [1, 0, 0, 0], [1, 0, 0], [0, 0, 0.5])
POSE = Pose(angles.to_matrix([0.7, 1.1, -0.4], "zxz"), [0.3, -0.8, 1.2])
R = POSE.R


def holds(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def fails(a, b):
    assert np.abs(np.asarray(a) - np.asarray(b)).max() > OFF


def pure(v):
    return np.append(0.0, v)


def product(*factors):
    out = quaternions.identity()
    for q in factors:
        out = quaternions.multiply(out, q)
    return out


def inv(q):
    return quaternions.conjugate(q) / (q @ q)


# --- moving frames ----------------------------------------------------------------------------


def test_E01_quaternion_equalities_keep_a_spurious_scalar():
    q, (q1, q2) = B.rotation, B.rotation_rates
    star = quaternions.conjugate
    eq7 = (
        pure(B.velocity)
        + 2 * product(q1, pure(A.position), star(q))
        + product(q, pure(A.velocity), star(q))
    )
    holds(eq7[0], -B.angular_velocity @ A.position)
    assert abs(eq7[0]) > OFF
    holds(eq7[1:], (B * A).velocity)
    eq10 = (
        pure(B.acceleration)
        + 2 * product(q2, pure(A.position), star(q))
        + 4 * product(q1, pure(A.velocity), star(q))
        + 2 * product(q1, pure(A.position), star(q1))
        + product(q, pure(A.acceleration), star(q))
    )
    holds(eq10[0], -(B.angular_acceleration @ A.position + 2 * B.angular_velocity @ A.velocity))
    assert abs(eq10[0]) > OFF
    holds(eq10[1:], (B * A).acceleration)
    eq21 = product(
        inv(q), -pure(B.velocity) + 2 * product(q1, inv(q), pure(B.position)), inv(star(q))
    )
    assert abs(eq21[0]) > OFF
    holds(eq21[1:], (~B).velocity)


def inverse_acceleration(conjugated: bool, inner_vector_part: bool):
    """The unnumbered acceleration of the inverse, before Eq 23, in its printed structure."""
    q, (q1, q2) = B.rotation, B.rotation_rates
    star = quaternions.conjugate
    spin = product(q1, inv(q))
    inner = pure(B.velocity) - 2 * product(spin, pure(B.position))
    if inner_vector_part:
        inner = pure(inner[1:])
    last = inv(star(q)) if conjugated else inv(q)
    bracket = (
        -pure(B.acceleration)
        + 2 * product(q2, inv(q), pure(B.position))
        + 4 * product(spin, inner)
        + 2 * product(spin, pure(B.position), last, star(q1))
    )
    return product(inv(q), bracket, inv(star(q)))[1:]


def test_E02_inverse_acceleration_conjugates_the_wrong_factor():
    printed = inverse_acceleration(conjugated=False, inner_vector_part=False)
    holds(printed, [1.80, -0.45, 1.48], 0.005)  # reference value, three digits
    fails(printed, (~B).acceleration)


def test_E03_inverse_acceleration_needs_the_vector_part_inside():
    half_fixed = inverse_acceleration(conjugated=True, inner_vector_part=False)
    holds(half_fixed, [1.77, -0.16, 1.39], 0.005)
    fails(half_fixed, (~B).acceleration)
    w = B.angular_velocity
    w_parent = B.matrix @ w
    holds(
        np.abs(half_fixed - (~B).acceleration),
        np.abs(2 * (w_parent @ B.position) * (B.matrix.T @ w_parent)),
    )
    fixed = inverse_acceleration(conjugated=True, inner_vector_part=True)
    holds(fixed, (~B).acceleration)
    r, v, alpha = B.position, B.velocity, B.matrix @ B.angular_acceleration
    plain = B.matrix.T @ (
        -B.acceleration
        + np.cross(alpha, r)
        + 2 * np.cross(w_parent, v)
        - np.cross(w_parent, np.cross(w_parent, r))
    )
    holds(plain, (~B).acceleration)


def test_E04_second_rate_of_the_inverse_has_the_other_sign():
    q, (q1, q2) = B.rotation, B.rotation_rates
    printed = product(inv(q), q2 - 2 * product(q1, inv(q), q1), inv(q))
    stored = (~B).rotation_rates[1]
    fails(printed, stored)
    holds(-printed, stored)


def frame(name):
    return Frame(origin=name[0], base=name[1])


def test_E05_labels_of_in_place_shift():
    x = frame("cb")
    x >>= frame("ba")  # the printed rule, base == base, would refuse this
    assert (x.origin, x.base) == ("c", "a")
    x = frame("cb")
    with pytest.raises(ValueError, match="chain"):
        x >>= frame("ab")  # and would accept this


def test_E06_inverse_shift_inverts_its_right_operand():
    holds((B << A).position, (B >> ~A).position)
    fails((B << A).position, (~B >> A).position)


def test_E07_examples_of_table_1_chain_only_when_corrected():
    x = frame("ba")
    x *= frame("cb")
    assert (x.origin, x.base) == ("c", "a")
    y = frame("cb")
    y >>= frame("ba")
    assert (y.origin, y.base) == ("c", "a")
    for result in (frame("ac") % frame("bc"), frame("bc") << frame("ac")):
        assert (result.origin, result.base) == ("b", "a")
    for bad in (
        lambda: frame("ca").__imul__(frame("cb")),
        lambda: frame("ca").__irshift__(frame("cb")),
        lambda: frame("ca") % frame("cb"),
        lambda: frame("ca") << frame("cb"),
    ):
        with pytest.raises(ValueError, match="chain"):
            bad()


# --- SE(3) notes ------------------------------------------------------------------------------


def test_E08_joint_bias_needs_the_rate_once_more():
    """Screw of variable pitch: S = (0, 0, 1, 0, 0, k q); c_J = Ṡ v_q."""
    k, q, rate, h = 0.7, 0.6, 1.7, 1e-5

    def twist(t):
        return np.array([0, 0, 1, 0, 0, k * (q + rate * t)]) * rate

    def pose(t):
        return Pose(Rz(q + rate * t), [0, 0, k * (q + rate * t) ** 2 / 2])

    # S is right: the body twist of the pose.
    holds(se3.log(pose(-h).inverse_compose(pose(h))) / (2 * h), twist(0.0), 1e-8)
    true = (twist(h) - twist(-h)) / (2 * h)
    partial = np.array([0, 0, 0, 0, 0, k]) * rate  # Σ ∂S/∂q q̇, a column of a 6×n matrix
    fails(partial, true)
    holds(partial * rate, true, 1e-9)


def test_E09_joint_displacement_is_not_the_placement():
    """ᵖM_c = M₀ · ⁱ⁰Mᵢ(q): the inverse of §7's ²M₁, not the placement again."""
    placement, q = Pose(Rx(0.4), [0.5, 0, 0.2]), 0.9
    joint = Pose(Rz(q))
    expected = (scrz(q, 0.0) * placement.to_plucker()).inverse()  # book: ⁱX_λ = X_J X_T
    holds((placement * joint).adjoint(), expected.matrix())
    fails((placement * placement).adjoint(), expected.matrix())
    fails((placement * joint.inverse()).adjoint(), expected.matrix())


# --- screw notes ------------------------------------------------------------------------------


def test_E10_cofactor_of_R12():
    fails(R[1, 2] * R[2, 0] - R[1, 0] * R[2, 1], R[0, 1])
    holds(R[1, 2] * R[2, 0] - R[1, 0] * R[2, 2], R[0, 1])


def test_E11_cofactor_of_R33_has_the_other_sign():
    fails(R[0, 1] * R[1, 0] - R[0, 0] * R[1, 1], R[2, 2])
    holds(R[0, 0] * R[1, 1] - R[0, 1] * R[1, 0], R[2, 2])


def test_E12_inverse_of_the_adjoint():
    r, zero = skew(POSE.p), np.zeros((3, 3))
    Ad = screws.adjoint(POSE)
    fails(np.block([[R.T, r @ R.T], [zero, R.T]]) @ Ad, np.eye(6))
    holds(np.block([[R.T, -R.T @ r], [zero, R.T]]) @ Ad, np.eye(6))


def test_E13_screw_basis_entry():
    fails(screws.adjoint(POSE)[1, 2], R[0, 0])
    holds(screws.influence_coefficient(POSE, "pz").array, [*R[:, 2], 0, 0, 0])


def test_E14_which_columns_are_orthogonal():
    H_star = screws.constraint_forces(POSE, "rz")
    h_star = screws.coadjoint(POSE)[:, 5]
    fails(H_star.T @ h_star, 0.0)  # as the sentence says
    holds(H_star.T @ screws.influence_coefficient(POSE, "rz").array, 0.0)
    H = np.delete(screws.adjoint(POSE), 5, axis=1)
    holds(H.T @ h_star, 0.0)


M_C, I_C = 1.7, np.array([[2.0, 0.3, -0.1], [0.3, 1.5, 0.2], [-0.1, 0.2, 1.8]])
INERTIA = screws.inertia_at(POSE, M_C, [0, 0, 0], I_C)  # POSE = Φ_fc
r_fc, r_cf = POSE.p, POSE.inverse().p
UL, UR, LL, LR = INERTIA[:3, :3], INERTIA[:3, 3:], INERTIA[3:, :3], INERTIA[3:, 3:]


def test_inertia_reference_for_the_next_four():
    central = np.block([[M_C * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), I_C]])
    holds(INERTIA, screws.coadjoint(POSE) @ central @ screws.adjoint(POSE.inverse()))


def test_E15_minimum_operations():
    holds(R @ (M_C * skew(r_cf)) @ R.T, UR)
    fails(skew(r_cf) @ R.T * M_C @ R.T, LL)
    fails(skew(r_cf) @ R.T * M_C @ skew(r_cf) @ R.T + R @ I_C @ R.T, LR)
    holds(M_C * skew(r_fc), LL)
    holds(M_C * skew(r_fc) @ R @ skew(r_cf) @ R.T + R @ I_C @ R.T, LR)


def test_E16_further_simplified():
    fails(I_C - M_C * skew(r_cf) @ skew(r_cf), LR)
    holds(R @ (I_C - M_C * skew(r_cf) @ skew(r_cf)) @ R.T, LR)


def test_E17_further_simplified_2():
    square = M_C * skew(r_cf) @ skew(r_cf)
    printed = np.block([[M_C * np.eye(3), M_C * skew(r_cf)], [-M_C * skew(r_cf), I_C - square]])
    fails(printed, INERTIA)
    straight = Pose(np.eye(3), r_fc)  # with R = 1 and so r_cf = −r_fc it is right
    c = straight.inverse().p
    printed = np.block(
        [[M_C * np.eye(3), M_C * skew(c)], [-M_C * skew(c), I_C - M_C * skew(c) @ skew(c)]]
    )
    holds(printed, screws.inertia_at(straight, M_C, [0, 0, 0], I_C))
    corrected = np.block(
        [
            [M_C * np.eye(3), -M_C * skew(r_fc)],
            [M_C * skew(r_fc), R @ I_C @ R.T - M_C * skew(r_fc) @ skew(r_fc)],
        ]
    )
    holds(corrected, INERTIA)


def test_E18_not_com_frame_5():
    t = M_C * r_fc
    fails(R @ I_C @ R.T - skew(t) @ skew(t), LR)
    holds(R @ I_C @ R.T - skew(t) @ skew(r_fc), LR)


def test_E19_left_side_of_omega_z():
    angle, rate = 0.8, 1.3
    R_dot = rate * np.array(
        [[-np.sin(angle), -np.cos(angle), 0], [np.cos(angle), -np.sin(angle), 0], [0, 0, 0]]
    )
    omega = skew([0, 0, rate])
    fails(R_dot.T, omega)
    holds(R_dot @ Rz(angle).T, omega)


# --- course notes, kinematics -----------------------------------------------------------------


def test_E31_planar_rotation():
    t, local = 0.6, np.array([1.0, 2.0])
    left = [np.cos(t) - 2 * np.sin(t), np.sin(t) + 2 * np.cos(t)]
    fails(np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]]) @ local, left)
    holds(natural.TwoPoints(1.0).point([0, 0, np.cos(t), np.sin(t)], local), left)


def test_E32_gimbal_lock_product():
    psi, phi = 0.4, 0.9
    c, s = np.cos(psi + phi), np.sin(psi + phi)
    printed = [[c, 0, s], [s, 0, -c], [0, 1, 0]]
    fails(Rx(psi) @ Rx(np.pi / 2) @ Ry(phi), printed)
    holds(Rz(psi) @ Rx(np.pi / 2) @ Ry(phi), printed)


def test_E33_rodrigues_formula():
    n, theta, r = np.array([2.0, -1.0, 2.0]) / 3, 0.7, np.array([1.0, 2.0, 3.0])
    common = np.cos(theta) * r + (1 - np.cos(theta)) * (n @ r) * n
    true = rotations.exp(theta * n) @ r
    fails(common + np.sin(np.cross(n, r)), true)
    holds(common + np.sin(theta) * np.cross(n, r), true)
    holds(rotations.rotate_about(n, theta, r), true)


def euler_410(psi, theta, phi, fixed):
    cps, sps, ct, st = np.cos(psi), np.sin(psi), np.cos(theta), np.sin(theta)
    cph, sph = np.cos(phi), np.sin(phi)
    corner = sps * (cph if fixed else ct) + cps * ct * sph
    return np.array(
        [
            [cps * cph - sps * ct * sph, corner, st * sph],
            [-cps * sph - sps * ct * cph, -sps * sph + cps * ct * cph, st * cph],
            [sps * st, -cps * st, ct],
        ]
    )


def test_E34_euler_matrix():
    u = psi, theta, phi = 0.7, 1.1, -0.4
    printed, fixed = (euler_410(psi, theta, phi, f) for f in (False, True))
    fails(printed.T @ printed, np.eye(3))
    fails(fixed, Rz(phi) @ Rx(theta) @ Rz(psi))
    holds(fixed, angles.to_matrix(u, "zxz").T)


def test_E35_bryan_matrix_is_the_transpose_of_xyz():
    u = a, b, c = 0.5, -0.8, 1.2
    s1, c1, s2, c2, s3, c3 = (f(x) for x in u for f in (np.sin, np.cos))
    printed = np.array(
        [
            [c2 * c3, c1 * s3 + s1 * s2 * c3, s1 * s3 - c1 * s2 * c3],
            [-c2 * s3, c1 * c3 - s1 * s2 * s3, s1 * c3 + c1 * s2 * s3],
            [s2, -s1 * c2, c1 * c2],
        ]
    )
    fails(printed, Rz(c) @ Ry(b) @ Rx(a))
    holds(printed, angles.to_matrix(u, "xyz").T)


def test_E36_singular_euler_matrix():
    psi, phi = 0.4, 0.9
    total = phi + psi
    printed = [[np.cos(total), np.sin(total), 0], [-np.sin(total), np.cos(total), 0], [0, 0, 1]]
    fails(Rz(phi) @ Rx(0.0) @ Rz(psi), printed)
    holds(angles.to_matrix([phi, 0.0, psi], "zxz"), Rz(total))
    fails(angles.to_matrix([phi, np.pi, psi], "zxz"), Rz(total) @ Rx(np.pi))
    holds(angles.to_matrix([phi, np.pi, psi], "zxz"), Rz(phi - psi) @ Rx(np.pi))


def test_E37_matrix_of_the_zyx_example():
    phi, theta, psi = 0.5, -0.8, 1.2
    M = angles.to_matrix([phi, theta, psi], "xyz")  # the printed product is Rx Ry Rz
    fails(M[0, 2], np.sin(psi))
    holds(M[0, 2], np.sin(theta))
    fails(M[0, 0], np.cos(theta) * np.cos(phi))
    holds(M[0, 0], np.cos(theta) * np.cos(psi))


def test_E38_angles_from_the_matrix():
    phi, theta, psi = 0.5, -0.8, 1.2
    M = angles.to_matrix([phi, theta, psi], "xyz")
    u_x, v_x, w_x, w_y, w_z = M[0, 0], M[0, 1], M[0, 2], M[1, 2], M[2, 2]
    root = np.hypot(u_x, w_y)
    assert abs(np.arctan2(-u_x / root, w_y / root) - phi) > OFF
    assert abs(-np.arccos(-root) - theta) > OFF
    assert abs(v_x / root) > 1  # its arcsine does not exist
    holds(
        [np.arctan2(-w_y, w_z), np.arctan2(w_x, np.hypot(u_x, v_x)), np.arctan2(-v_x, u_x)],
        [phi, theta, psi],
    )
    holds(angles.from_matrix(M, "xyz").values, [phi, theta, psi])


def test_E39_angular_rate_matrix_of_xyz():
    alpha, beta, theta = 0.5, -0.8, 1.2
    sb, cb, st, ct = np.sin(beta), np.cos(beta), np.sin(theta), np.cos(theta)
    printed = np.array([[sb, 0, 1], [cb * st, ct, 0], [cb * ct, sb, 0]])
    E = rates.rate_matrix("xyz", [alpha, beta, theta])
    fails(printed, E)
    fails(printed[::-1], E)  # also with its rows put in x, y, z order
    holds(E, [[cb * ct, st, 0], [-cb * st, ct, 0], [sb, 0, 1]])
    holds(np.linalg.det(E), cb)


def test_E40_quaternion_rate_matrix():
    q, q_dot = np.full(4, 0.5), np.array([-0.3, 0.1, 0.4, -0.2])
    q0, q1, q2, q3 = q
    printed = 2 * np.array([[q3, q2, -q1, q0], [q2, -q1, -q0, q3], [-q1, q0, q3, q2]])
    holds(printed @ q_dot, [-0.8, -1.0, 0.6])
    E = quaternions.rate_matrix(q)
    fails(printed @ q_dot, E @ q_dot)
    holds(E @ q_dot, [1.0, 0.4, -0.2])
    holds(quaternions.rate_matrix(q, "world") @ q_dot, [-0.2, 1.0, 0.4])
    fails(printed @ printed.T, 4 * np.eye(3))
    holds(E @ E.T, 4 * np.eye(3))


def test_E41_second_derivative_of_the_rotation():
    w, dw = np.array([0.3, -0.7, 1.1]), np.array([0.4, 0.2, -0.5])
    P, P_dot = skew(w), skew(dw)
    R_dot = R @ P
    true = R_dot @ P + R @ P_dot
    fails(R @ R.T @ R_dot @ P + R @ P @ P_dot, true)
    point = np.array([1.0, -2.0, 0.5])
    parts = points.acceleration(R, point, w, dw)
    holds(parts.centripetal + parts.tangential, true @ point)


def test_E42_velocity_of_a_point():
    w, p, p_dot, v0 = (
        np.array(x)
        for x in ([0.3, -0.7, 1.1], [1.0, -2.0, 0.5], [0.2, 0.1, -0.4], [1.0, 0.5, -0.3])
    )
    R_dot = R @ skew(w)
    fails(R_dot @ R.T, np.eye(3))  # the underbrace
    true = v0 + R_dot @ p + R @ p_dot
    holds(points.velocity(R, p, w, v0, p_dot).total, true)
    first = np.vstack([np.column_stack([R_dot, v0]), np.zeros(4)])
    second = np.vstack([np.column_stack([R, v0]), [0, 0, 0, 1]])
    fails((first @ [*p, 1] + second @ [*p_dot, 1])[:3], true)  # w = 1 adds the origin twice
    holds((first @ [*p, 1] + second @ [*p_dot, 0])[:3], true)


def test_E43_characteristic_polynomial():
    trace = np.trace(R)
    for x in (-1.3, 0.4, 2.0):
        p = np.linalg.det(R - x * np.eye(3))
        factors = (x - 1) * (x * x - (trace - 1) * x + 1)
        fails(factors, p)
        holds(-factors, p)
    holds(np.abs(rotations.eigenvalues(R)), 1.0)


def test_E44_inverse_of_the_aligning_rotation():
    alpha, beta = 0.4, 0.9
    carry = Rz(alpha) @ Rx(beta)
    fails(Rx(-alpha) @ Rz(-beta), carry.T)
    holds(Rx(-beta) @ Rz(-alpha), carry.T)
    n = np.array([2.0, -1.0, 2.0]) / 3
    holds(rotations.conjugated_axis_rotation(n, 0.7), rotations.exp(0.7 * n))


def test_E45_second_planar_matrix_is_a_reflection():
    c, s = 0.6, 0.8
    assert np.linalg.det([[c, s], [s, -c]]) == pytest.approx(-1.0)
    holds(np.linalg.det(natural.TwoPoints(1.0).rotation([0, 0, c, s])), 1.0)


def test_E46_heading_by_arcsine_loses_the_quadrant():
    q = [0.0, 0.0, -2.0, 1.0]
    length = np.sqrt(5.0)
    assert np.arcsin(1.0 / length) == pytest.approx(0.464, abs=1e-3)
    holds(natural.TwoPoints(length).heading(q), 2.677945044588987)


# --- the dynamics book ------------------------------------------------------------------------


def test_B1_screw_transform_row_four():
    theta, d = 0.6, 0.4
    c, s = np.cos(theta), np.sin(theta)
    m = np.array([0.3, -0.7, 1.1, 0.4, 0.2, -0.5])
    moved = (scrz(theta, d) * Motion(m)).array
    fails(c * (m[4] + m[1] * d) + s * (m[4] - m[0] * d), moved[3])
    holds(c * (m[3] + m[1] * d) + s * (m[4] - m[0] * d), moved[3])


def test_B2_planar_cross_operator_entry():
    v = [0.3, -0.7, 1.1]
    full = crm(planar.embed_motion(v))
    holds(full[3, 2], v[2])
    fails(full[3, 2], v[1])
    holds(planar.restrict(full), planar.crm(v))


def test_B3_acceleration_of_a_chain_has_the_derivative_of_the_jacobian():
    """Eq 2.57: a = J q̈ + J̇ q̇; with J in its second term it is not the acceleration."""
    s1, s2 = Motion([0, 0, 1], [0, 0, 0]), Motion([1, 0, 0], [0, 0.5, 0])
    q1, q2 = 0.7, -0.4
    a = (q1 * s1).cross(q2 * s2)
    J = np.column_stack([s1.array, s2.array])
    J_dot = np.column_stack([np.zeros(6), (q1 * s1).cross(s2).array])
    holds(J_dot @ [q1, q2], a.array)
    fails(J @ [q1, q2], a.array)


def test_B4_articulated_transform_count_follows_from_the_direct_rotation():
    """137m + 137a needs 42m + 37a for E Y Eᵀ; with §A.5's 40m + 39a it would be 135m + 139a."""
    flat, packed = np.arange(9.0), np.arange(21.0)
    whole, _ = cost(articulated_transform, R, POSE.p, packed, outputs=[21])
    direct, _ = cost(rotate_general_direct, R, flat, outputs=[9])
    trace, _ = cost(rotate_general, R, flat, outputs=[9])
    assert (whole, direct, trace) == ((137, 137), (42, 37), (40, 39))
    assert np.subtract(whole, direct).tolist() == [95, 100]
    assert np.add([95, 100], trace).tolist() == [135, 139]


def test_B5_general_force_has_its_moment_first():
    """§2.4: [f_O; f]; the moment sits in the angular slots, or power is not the dot product."""
    f, v = Force([1, 2, 3], [4, 5, 6]), Motion([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])
    X = xlt([1, -2, 0.5])
    holds((X * f).dot(X * v), f.dot(v))
    swapped = Force(f.force, f.moment)
    fails((X * swapped).array, se3.linear_first((X * f).array))


def test_B6_twist_and_wrench_of_the_notes_are_the_other_order():
    t, w = Twist([1, 2, 3], [4, 5, 6]), Wrench([7, 8, 9], [1, 2, 3])
    holds(t.dot(w), t.motion().dot(w.force()))
    fails(t.array, t.motion().array)


# --- the page ---------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "errata.md"


def test_the_page_names_real_tests_and_no_test_is_missing_from_it():
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    here = {n for n in globals() if re.match(r"test_(E\d\d|B\d)_", n)}
    elsewhere = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        elsewhere |= set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M))
    assert named <= elsewhere
    assert here <= named
    for n in range(1, 47):
        assert re.search(rf"^\| ?E{n} ?\|", text, re.M), f"E{n} is not on the page"
