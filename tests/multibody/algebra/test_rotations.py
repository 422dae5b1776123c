"""Rotations: every parametrisation, their edges, exponential map, points, natural coordinates."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from scipy.spatial.transform import Rotation, Slerp

from multibody.algebra import natural, points
from multibody.algebra.orientation import angles, quaternions, rates, rotations
from tests.multibody.mechanics_strategies import angles as angle_numbers
from tests.multibody.mechanics_strategies import (
    rotation_matrices,
    unit_quaternions,
    unit_vectors,
    vectors,
)

# Products of a few orthogonal matrices and trigonometric functions: some tens of roundings.
ROUNDING = 1e-14
# Promised at the edge angles: four digits above rounding, for the conversions in between.
EDGE = 1e-12
# Central differences in 40-digit arithmetic with step 1e-12: truncation error about 1e-24.
DERIVATIVE = 1e-13

EDGE_ANGLES = [0.0, 1e-300, 1e-9, np.pi - 1e-9, np.pi, 2 * np.pi]
AXES = [np.eye(3)[0], np.eye(3)[1], np.eye(3)[2], np.array([2.0, -1.0, 2.0]) / 3]


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


# --- matrices ---------------------------------------------------------------------------------


@given(vectors(3), vectors(3))
def test_skew_is_the_cross_product(a, b):
    close(rotations.skew(a) @ b, np.cross(a, b))
    close(rotations.vex(rotations.skew(a)), a)


@given(vectors(3), vectors(3), rotation_matrices)
def test_table_2_1_euclidean_cross_operator(a, b, E):
    S = rotations.skew
    close(S(a), -S(a).T)
    close(S(1.7 * a), 1.7 * S(a))
    close(S(a + b), S(a) + S(b))
    close(S(E @ a), E @ S(a) @ E.T)
    close(S(a) @ b, -S(b) @ a)
    close(S(a) @ b @ np.eye(3), a @ S(b))
    close(S(np.cross(a, b)), S(a) @ S(b) - S(b) @ S(a))
    close(S(np.cross(a, b)), np.outer(b, a) - np.outer(a, b))
    close(S(a) @ S(b), np.outer(b, a) - (a @ b) * np.eye(3))


@given(rotation_matrices, vectors((3, 3), bound=0.05))
def test_nearest_rotation_is_the_polar_factor_and_is_nearest(R, noise):
    A = R + noise
    nearest = rotations.nearest_rotation(A)
    assert rotations.is_rotation(nearest, ROUNDING)
    distance = np.linalg.norm(A - nearest)
    for turn in np.vstack([np.eye(3), -np.eye(3)]) * 1e-3:
        assert np.linalg.norm(A - nearest @ rotations.exp(turn)) >= distance - ROUNDING


def test_nearest_rotation_of_a_reflection_is_proper():
    assert np.linalg.det(rotations.nearest_rotation(np.diag([1.0, 0.9, -0.1]))) > 0
    with pytest.raises(ValueError, match="one nearest rotation"):
        rotations.nearest_rotation(-np.eye(3))


@given(vectors((3, 3)), rotation_matrices)
def test_orthonormality_conditions(A, R):
    close(rotations.orthonormality(R), 0.0)
    gram = A.T @ A - np.eye(3)
    close(np.sort(rotations.orthonormality(A)), np.sort(gram[np.tril_indices(3)]))
    assert rotations.is_rotation(R[None], ROUNDING).tolist() == [True]
    assert rotations.is_rotation([[0.6, -0.8], [0.8, 0.6]])
    assert not rotations.is_rotation([[0.6, 0.8], [0.8, -0.6]])


def test_reflections_and_stretched_matrices_are_refused():
    with pytest.raises(ValueError, match=r"determinant \+1, received −1"):
        rotations.check_rotation(np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(ValueError, match="nearest_rotation"):
        rotations.log(1.001 * np.eye(3))
    with pytest.raises(ValueError, match=r"shape \(\.\.\., 3, 3\), received shape \(2, 2\)"):
        rotations.log(np.eye(2))
    with pytest.raises(ValueError, match="NaN"):
        rotations.exp([np.nan, 0, 0])
    with pytest.raises(TypeError, match="real numbers"):
        rotations.exp(["a", "b", "c"])


@given(rotation_matrices)
def test_eigenvalues(R):
    expected = np.sort_complex(np.linalg.eigvals(R))
    close(np.sort_complex(rotations.eigenvalues(R)), expected, 1e-7)  # double root near θ = 0, π


# --- every parametrisation, every edge --------------------------------------------------------


def in_sequence(name, R):
    return angles.from_matrix(R, name)


@pytest.mark.parametrize("name", rates.PARAMETRISATIONS)
@pytest.mark.parametrize("theta", EDGE_ANGLES)
@pytest.mark.parametrize("axis", range(len(AXES)))
def test_edge_angles_round_trip_or_report(name, theta, axis):
    q = rates.convert(np.append(AXES[axis], theta), "axis_angle", "quaternion")
    R = quaternions.to_matrix(q)
    if name == "rodrigues" and theta == np.pi:
        with pytest.raises(ValueError, match="half turn"):
            rates.convert(R, "matrix", name)
        return
    close(rates.convert(rates.convert(R, "matrix", name), name, "matrix"), R, EDGE)
    assert quaternions.same_rotation(
        rates.convert(rates.convert(q, "quaternion", name), name, "quaternion"), q, EDGE
    )


@pytest.mark.parametrize("sequence", angles.SEQUENCES)
def test_sequences_with_edge_angles_in_every_place(sequence):
    grid = np.array(list(itertools.product([*EDGE_ANGLES, np.pi / 2, -np.pi / 2, -1e-9], repeat=3)))
    R = angles.to_matrix(grid, sequence)
    found = angles.from_matrix(R, sequence)
    close(angles.to_matrix(found.values, sequence), R, EDGE)
    close(angles.to_matrix(angles.other_branch(found.values, sequence), sequence), R, EDGE)
    q = angles.to_quaternion(grid, sequence)
    close(quaternions.to_matrix(q), R, EDGE)
    np.testing.assert_array_equal(found.singular, angles.is_singular(grid, sequence))


@pytest.mark.parametrize("theta", EDGE_ANGLES[1:-1])
@pytest.mark.parametrize("axis", range(len(AXES)))
def test_edge_angles_keep_axis_and_angle(theta, axis):
    n = AXES[axis]
    found = rotations.axis_angle_from_matrix(rotations.matrix_from_axis_angle(n, theta))
    assert found.defined
    close(found.angle, theta, EDGE)
    # At π the axis has two signs.
    sign = np.sign(found.axis @ n)
    close(sign * found.axis, n, EDGE)
    phi = rates.convert(np.append(n, theta), "axis_angle", "rotation_vector")
    np.testing.assert_allclose(np.linalg.norm(phi / theta), 1.0, rtol=EDGE)


def test_tiny_angles_survive_every_smooth_parametrisation():
    phi = 1e-300 * np.array([1.0, -2.0, 3.0])
    for name in (
        "matrix",
        "quaternion",
        "axis_angle",
        "rotation_vector",
        "rodrigues",
        *angles.CARDAN,
    ):
        back = rates.convert(rates.convert(phi, "rotation_vector", name), name, "rotation_vector")
        np.testing.assert_allclose(back, phi, rtol=EDGE)


def test_arccos_would_lose_the_angle():
    R = rotations.Rz(1e-9)
    assert np.arccos((np.trace(R) - 1) / 2) == 0.0
    assert float(rotations.axis_angle_from_matrix(R).angle) == 1e-9


def test_axis_is_reported_undefined_at_zero():
    found = rotations.axis_angle_from_matrix(np.stack([np.eye(3), rotations.Rx(0.1)]))
    assert found.defined.tolist() == [False, True]


@pytest.mark.parametrize("pair", list(itertools.permutations(rates.PARAMETRISATIONS, 2)))
def test_every_conversion_both_ways(pair):
    source, target = pair
    R = rotations.exp([[0.3, -0.5, 0.7], [-1.0, 0.4, 0.2], [1.9, 1.2, -1.1]])
    u = rates.convert(R, "matrix", source)
    close(rates.convert(rates.convert(u, source, target), target, "matrix"), R)


def test_unknown_parametrisation_is_named():
    with pytest.raises(ValueError, match="received 'xxz'"):
        rates.convert([0, 0, 0], "xxz", "matrix")


# --- against SciPy ----------------------------------------------------------------------------


@given(unit_quaternions)
def test_agrees_with_scipy(q):
    reference = Rotation.from_quat(q, scalar_first=True)
    R = quaternions.to_matrix(q)
    close(R, reference.as_matrix())
    assert quaternions.same_rotation(
        quaternions.from_matrix(R), reference.as_quat(scalar_first=True), ROUNDING
    )
    phi = reference.as_rotvec()
    close(rotations.exp(phi), R)
    if np.linalg.norm(phi) < 3.14:  # at π the sign is a convention
        close(rotations.log(R), phi, EDGE)


@pytest.mark.parametrize("sequence", angles.SEQUENCES)
def test_sequences_agree_with_scipy(sequence):
    u = np.random.default_rng(1).uniform(-3, 3, (50, 3))
    reference = Rotation.from_euler(sequence.upper(), u)
    close(angles.to_matrix(u, sequence), reference.as_matrix())
    close(
        angles.from_matrix(reference.as_matrix(), sequence).values,
        reference.as_euler(sequence.upper()),
        1e-11,
    )  # amplified where b nears its singularity


def test_slerp_and_mean_agree_with_scipy():
    q = quaternions.normalise(np.random.default_rng(2).normal(size=(6, 4)))
    key = Rotation.from_quat(q[:2], scalar_first=True)
    t = np.linspace(0, 1, 7)
    expected = Slerp([0, 1], key)(t).as_quat(scalar_first=True)
    assert quaternions.same_rotation(quaternions.slerp(q[0], q[1], t), expected, EDGE).all()
    near = quaternions.multiply(
        q[0],
        rates.convert(
            0.3 * np.random.default_rng(3).normal(size=(5, 3)), "rotation_vector", "quaternion"
        ),
    )
    near[::2] *= -1  # signs must not matter
    weights = [1.0, 2.0, 0.5, 1.0, 3.0]
    expected = Rotation.from_quat(near, scalar_first=True).mean(weights).as_quat(scalar_first=True)
    assert quaternions.same_rotation(quaternions.mean(near, weights), expected, EDGE)


def test_slerp_between_equal_and_opposite_quaternions():
    q = quaternions.normalise([1.0, 2.0, 3.0, 4.0])
    close(quaternions.slerp(q, -q, 0.3), q)
    close(quaternions.slerp(q, q, 0.3), q)


def test_mean_without_unique_answer_raises():
    with pytest.raises(ValueError, match="unique mean"):
        quaternions.mean([[1.0, 0, 0, 0], [0, 1.0, 0, 0]])


# --- angle sequences --------------------------------------------------------------------------


@pytest.mark.parametrize("sequence", angles.SEQUENCES)
@given(u=vectors(3, bound=3.0))
def test_both_branches_reproduce_the_rotation(sequence, u):
    R = angles.to_matrix(u, sequence)
    found = angles.from_matrix(R, sequence).values
    for branch in (found, angles.other_branch(found, sequence)):
        close(angles.to_matrix(branch, sequence), R)
    low = 0.0 if sequence in angles.EULER else -np.pi / 2
    assert low - ROUNDING <= found[1] <= low + np.pi + ROUNDING


@pytest.mark.parametrize("sequence", angles.SEQUENCES)
@pytest.mark.parametrize("off", [0.0, 1e-300, 1e-12, 1e-9])
@pytest.mark.parametrize("k", [0, 1])
def test_singularity_is_reported_with_the_combination(sequence, off, k):
    b = k * np.pi + off if sequence in angles.EULER else (k - 0.5) * np.pi + off
    a, c = 0.8, 0.3
    R = angles.to_matrix([a, b, c], sequence)
    found = angles.from_matrix(R, sequence)
    assert found.singular
    # The combination is known to the accuracy of the rotation plus the size of the offset.
    close(found.combination, a + found.sign * c, EDGE + off)
    close(angles.to_matrix(found.values, sequence), R, ROUNDING)
    assert angles.is_singular([a, b, c], sequence)
    if off == 0.0:
        assert found.values[2] == 0.0
    with pytest.raises(ValueError, match="singularity"):
        angles.rate_matrix_inverse([a, b, c], sequence)


def test_one_degree_of_freedom_is_lost_not_two():
    # Notes, θ = kπ, erratum E36: Rz(φ+ψ) for even k, Rz(·)Rx(π) with the difference for odd k.
    for psi, phi in ((0.4, 0.9), (0.9, 0.4)):
        close(angles.to_matrix([psi, 0.0, phi], "zxz"), rotations.Rz(psi + phi))
        close(
            angles.to_matrix([psi, np.pi, phi], "zxz"),
            rotations.Rz(psi - phi) @ rotations.Rx(np.pi),
        )


@pytest.mark.parametrize("sequence", angles.SEQUENCES)
@given(u=vectors(3, bound=3.0))
def test_inverse_sequence(sequence, u):
    v, reverse = angles.inverse_sequence(u, sequence)
    close(angles.to_matrix(v, reverse), angles.to_matrix(u, sequence).T)


def test_golden_zxz():
    golden = [
        [0.818260, 0.028696, 0.574132],
        [0.458263, 0.570413, -0.681633],
        [-0.347052, 0.820856, 0.453596],
    ]
    close(angles.to_matrix([0.7, 1.1, -0.4], "zxz"), golden, 5e-7)  # six printed digits


# --- rates ------------------------------------------------------------------------------------


def mp_matrix(name, u):
    """Rotation matrix in 40-digit arithmetic, written independently of the library."""
    m = mpmath.matrix

    def about(axis, angle):
        c, s = mpmath.cos(angle), mpmath.sin(angle)
        rows = {
            "x": [[1, 0, 0], [0, c, -s], [0, s, c]],
            "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
            "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]],
        }
        return m(rows[axis])

    def cross(n):
        return m([[0, -n[2], n[1]], [n[2], 0, -n[0]], [-n[1], n[0], 0]])

    if name == "matrix":
        return m(3, 3) + m([list(u[0:3]), list(u[3:6]), list(u[6:9])])
    if name == "quaternion":
        w, x, y, z = u
        N = w * w + x * x + y * y + z * z
        return (
            m(
                [
                    [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
                    [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
                    [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
                ]
            )
            / N
        )
    if name == "axis_angle":
        n, t = u[:3], u[3]
        norm = mpmath.sqrt(sum(c * c for c in n))
        K = cross([c / norm for c in n])
        return mpmath.eye(3) + mpmath.sin(t) * K + (1 - mpmath.cos(t)) * K * K
    if name == "rotation_vector":
        return mpmath.expm(cross(u))
    if name == "rodrigues":
        return mp_matrix("quaternion", [mpmath.mpf(1), *u])
    R = mpmath.eye(3)
    for axis, angle in zip(name, u):
        R = R * about(axis, angle)
    return R


def admissible_rate(name, u, rng):
    du = rng.normal(size=len(u))
    if name == "matrix":
        return (u.reshape(3, 3) @ rotations.skew(rng.normal(size=3))).ravel()
    if name == "quaternion":
        return du - (du @ u) * u
    if name == "axis_angle":
        du[:3] -= (du[:3] @ u[:3]) * u[:3]
    return du


@pytest.mark.parametrize("name", rates.PARAMETRISATIONS)
def test_rate_matrices_agree_with_derivatives(name):
    rng = np.random.default_rng(4)
    for phi in ([0.3, -0.5, 0.7], [-1.4, 0.4, 1.2]):
        u = rates.convert(phi, "rotation_vector", name).ravel()
        du = admissible_rate(name, u, rng)
        with mpmath.workdps(40):
            h = mpmath.mpf(10) ** -12

            def at(s, u=u, du=du):
                return mp_matrix(name, [mpmath.mpf(a) + s * mpmath.mpf(b) for a, b in zip(u, du)])

            R, dR = at(0), (at(h) - at(-h)) / (2 * h)
            body, world = R.T * dR, dR * R.T
            omega = {
                "body": np.array([body[2, 1], body[0, 2], body[1, 0]], dtype=float),
                "world": np.array([world[2, 1], world[0, 2], world[1, 0]], dtype=float),
            }
        for axes, expected in omega.items():
            close(rates.rate_matrix(name, u, axes) @ du, expected, DERIVATIVE * 10)
            close(rates.rate_matrix_inverse(name, u, axes) @ expected, du, DERIVATIVE * 10)


@pytest.mark.parametrize("name", rates.PARAMETRISATIONS)
def test_rate_matrices_are_vectorised(name):
    u = rates.convert(
        rotations.exp(np.random.default_rng(5).normal(size=(2, 3, 3))), "matrix", name
    )
    if name == "matrix":
        u = u.reshape(2, 3, 9)
    for axes in ("body", "world"):
        whole = rates.rate_matrix(name, u, axes)
        inverse = rates.rate_matrix_inverse(name, u, axes)
        for index in np.ndindex(2, 3):
            close(whole[index], rates.rate_matrix(name, u[index], axes))
            close(inverse[index], rates.rate_matrix_inverse(name, u[index], axes))
        close(whole @ inverse, np.broadcast_to(np.eye(3), (2, 3, 3, 3)), EDGE)


def test_singular_sets_of_rates_raise():
    for name, u in (("axis_angle", [1.0, 0, 0, 0]), ("rotation_vector", [0, 0, 2 * np.pi])):
        with pytest.raises(ValueError, match="2π"):
            rates.rate_matrix_inverse(name, u)


def test_singular_sets():
    singular = {
        "axis_angle": [0.0, 1.0, 0.0, 0.0],
        "rotation_vector": [0.0, 2 * np.pi, 0.0],
        **{name: [0.1, 0.0, 0.2] for name in angles.EULER},
        **{name: [0.1, np.pi / 2, 0.2] for name in angles.CARDAN},
    }
    for name, p in rates.PARAMETRISATIONS.items():
        u = rates.convert([0.3, -0.5, 0.7], "rotation_vector", name).ravel()
        assert not rates.is_singular(name, u)
        assert (name in singular) == (p.singular_set != "none" and name != "rodrigues")
        if name in singular:
            assert rates.is_singular(name, singular[name])
            E = rates.rate_matrix(name, singular[name])
            assert np.linalg.matrix_rank(E, tol=1e-9) < 3


def test_golden_quaternion_rate():
    q, q_dot = [0.5] * 4, [-0.3, 0.1, 0.4, -0.2]
    close(quaternions.angular_velocity(q, q_dot), [1, 0.4, -0.2])
    close(quaternions.angular_velocity(q, q_dot, "world"), [-0.2, 1, 0.4])
    close(quaternions.rate_matrix(q) @ q_dot, [1, 0.4, -0.2])
    close(quaternions.rate_matrix(q, "world") @ q_dot, [-0.2, 1, 0.4])


@given(unit_quaternions, vectors(3), vectors(3))
def test_quaternion_rates_round_trip(q, omega, alpha):
    for axes in ("body", "world"):
        q_dot = quaternions.rate(q, omega, axes)
        close(quaternions.angular_velocity(q, q_dot, axes), omega)
        close(quaternions.rate_matrix_inverse(q, axes) @ omega, q_dot)
    q_dot = quaternions.rate(q, omega)
    q_ddot = quaternions.second_rate(q, q_dot, alpha)
    close(quaternions.angular_acceleration(q, q_dot, q_ddot), alpha)
    for residual in quaternions.unit_constraint(q, q_dot, q_ddot):
        close(residual, 0.0)


@given(vectors(4).filter(lambda q: np.linalg.norm(q) > 0.1), vectors(4), vectors(4))
def test_projected_rates_satisfy_the_constraint_and_projection_is_idempotent(q, q_dot, q_ddot):
    projected = quaternions.project_rates(q, q_dot, q_ddot)
    for residual in quaternions.unit_constraint(*projected):
        close(residual, 0.0)
    for once, twice in zip(projected, quaternions.project_rates(*projected)):
        close(once, twice)


# --- quaternions ------------------------------------------------------------------------------


@given(unit_quaternions, unit_quaternions, vectors(3))
def test_quaternion_and_matrix_paths_agree(p, q, v):
    close(quaternions.rotate(q, v), quaternions.to_matrix(q) @ v)
    sandwich = quaternions.multiply(
        quaternions.multiply(q, np.append(0.0, v)), quaternions.conjugate(q)
    )
    close(quaternions.rotate(q, v), sandwich[1:])
    close(
        quaternions.to_matrix(quaternions.multiply(p, q)),
        quaternions.to_matrix(p) @ quaternions.to_matrix(q),
    )
    close(quaternions.to_matrix(-q), quaternions.to_matrix(q))
    close(np.linalg.norm(quaternions.rotate(q, v)), np.linalg.norm(v))


def test_non_unit_quaternion_raises_and_nearly_unit_gives_a_rotation():
    with pytest.raises(ValueError, match=r"norm 1 within 1e-06, received norm 1\.00001; renorm"):
        quaternions.to_matrix([1.00001, 0, 0, 0])
    R = quaternions.to_matrix(np.array([0.5, 0.5, 0.5, 0.5]) * (1 + 5e-7))
    assert rotations.is_rotation(R, ROUNDING)
    with pytest.raises(ValueError, match="nonzero quaternion"):
        quaternions.normalise([0, 0, 0, 0])


def test_float32_stays_float32():
    q = quaternions.normalise(np.array([1, 2, 3, 4], dtype=np.float32))
    assert quaternions.to_matrix(q).dtype == np.float32
    assert rotations.log(quaternions.to_matrix(q)).dtype == np.float32
    assert rotations.exp(np.ones(3, dtype=np.float32)).dtype == np.float32


# --- exponential map --------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [0.0, 1e-300, 1e-9, 1e-4, 0.5, 0.999, 1.001, 2.0, np.pi, 5.0])
def test_exponential_and_jacobians_against_forty_digits(theta):
    n = np.array([2.0, -1.0, 2.0]) / 3
    with mpmath.workdps(60):
        t = mpmath.mpf(theta)
        K = mpmath.matrix([[0, -n[2], n[1]], [n[2], 0, -n[0]], [-n[1], n[0], 0]])
        eye = mpmath.eye(3)
        # n is not exactly unit in binary: use the series of its own exponential
        R = sum((t**k * K**k / mpmath.factorial(k) for k in range(1, 60)), eye)
        J = sum((t**k * K**k / mpmath.factorial(k + 1) for k in range(1, 60)), eye)
        R, J = np.array(R.tolist(), dtype=float), np.array(J.tolist(), dtype=float)
    close(rotations.exp(theta * n), R, 4e-15)
    close(rotations.left_jacobian(theta * n), J, 4e-15)
    close(rotations.right_jacobian(theta * n), J.T, 4e-15)
    close(rotations.left_jacobian_inverse(theta * n) @ J, np.eye(3), ROUNDING)
    close(rotations.right_jacobian_inverse(theta * n) @ J.T, np.eye(3), ROUNDING)


@given(vectors(3), vectors(3, bound=1.0))
def test_jacobians_are_the_first_order_effect(phi, d):
    h = 1e-6
    plus, minus = rotations.exp(phi + h * d), rotations.exp(phi - h * d)
    R = rotations.exp(phi)
    # Central difference: h² truncation and eps/h rounding, both below 1e-9.
    close(rotations.vex((plus - minus) / (2 * h) @ R.T), rotations.left_jacobian(phi) @ d, 1e-9)
    close(rotations.vex(R.T @ (plus - minus) / (2 * h)), rotations.right_jacobian(phi) @ d, 1e-9)


@given(unit_vectors(3), angle_numbers, vectors(3))
def test_three_constructions_of_an_axis_rotation(n, theta, v):
    R = rotations.matrix_from_axis_angle(n, theta)
    close(rotations.conjugated_axis_rotation(n, theta), R)
    close(rotations.exp(theta * n), R)
    close(rotations.rotate_about(n, theta, v), R @ v)
    close(rotations.matrix_from_axis_angle(-n, -theta), R)


# --- points -----------------------------------------------------------------------------------


def test_points_and_vectors():
    P, Q, V = points.Point([1, 2, 3]), points.Point([0, 1, 0]), points.Vector([1, 0, 0])
    assert isinstance(P - Q, points.Vector)
    assert isinstance(P + V, points.Point)
    assert isinstance(V + P, points.Point)
    assert isinstance(P - V, points.Point)
    assert isinstance(V + V, points.Vector)
    assert isinstance(V - V, points.Vector)
    for bad in (lambda: P + Q, lambda: V - P, lambda: P + 1.0, lambda: V + np.ones(3)):
        with pytest.raises(TypeError):
            bad()


def test_point_velocity_and_acceleration_against_derivatives():
    """A point sliding in a frame that turns and moves: differentiate its world position."""
    rng = np.random.default_rng(6)
    phi, d1, d2, p, v, a, o, o1, o2 = rng.normal(size=(9, 3)) * 0.5
    with mpmath.workdps(40):

        def mp(x):
            return mpmath.matrix([mpmath.mpf(c) for c in x])

        def path(c0, c1, c2, s):
            return mp(c0) + mp(c1) * s + mp(c2) * s * s / 2

        def position(s):
            return path(o, o1, o2, s) + mp_matrix("rotation_vector", path(phi, d1, d2, s)) * path(
                p, v, a, s
            )

        h = mpmath.mpf(10) ** -10
        low, mid, high = position(-h), position(mpmath.mpf(0)), position(h)
        first, second = (high - low) / (2 * h), (high - 2 * mid + low) / (h * h)

        def omega(s):
            def R(e):
                return mp_matrix("rotation_vector", path(phi, d1, d2, s + e))

            W = R(0).T * (R(h) - R(-h)) / (2 * h)
            return mpmath.matrix([W[2, 1], W[0, 2], W[1, 0]])

        w = omega(mpmath.mpf(0))
        dw = (omega(h) - omega(-h)) / (2 * h)
        first, second, w, dw = (
            np.array(x.tolist(), dtype=float)[:, 0] for x in (first, second, w, dw)
        )
    R = rotations.exp(phi)
    close(points.velocity(R, p, w, o1, v).total, first, DERIVATIVE)
    parts = points.acceleration(R, p, w, dw, o2, v, a)
    close(parts.total, second, DERIVATIVE)
    close(parts.coriolis, R @ (2 * np.cross(w, v)))
    assert parts.centripetal @ (R @ p) <= 0.0


# --- natural coordinates ----------------------------------------------------------------------


@given(vectors(2), angle_numbers, vectors(4))
def test_planar_two_points(origin, heading, q):
    body = natural.TwoPoints(1.5)
    exact = body.coordinates(origin, heading)
    close(body.constraint(exact), 0.0)
    close(body.heading(exact), heading)
    close(body.rotation(exact), rotations.Rz(heading)[:2, :2])
    close(body.point(exact, [1.5, 0.0]), exact[2:])
    d = np.array([0.3, -0.2, 0.5, 0.1])
    # Quadratic: the symmetric difference is the exact derivative.
    close((body.constraint(q + d) - body.constraint(q - d)) / 2, body.jacobian(q) @ d)


def test_planar_two_points_upright_needs_no_division():
    body = natural.TwoPoints(1.0)
    close(body.rotation([0.0, 0.0, 0.0, 1.0]), [[0, -1], [1, 0]])


BODIES = {
    "two points, one vector": ([[0.1, 0.2, 0.3], [1, 0, 0]], [[0, 0, 1]]),
    "two points, two vectors": ([[0, 0, 0], [1, 0.5, 0]], [[0, 0, 1], [0.6, 0.8, 0]]),
    "three points": ([[0, 0, 0], [1, 0, 0], [0.2, 1, 0]], []),
    "four points, one vector": ([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0.3, 0.3, 1]], [[0, 0.6, 0.8]]),
    "one point, three vectors": ([[0.5, 0, 0]], np.eye(3)),
}


@pytest.mark.parametrize("name", BODIES)
@given(R=rotation_matrices, origin=vectors(3), seed=vectors(15))
def test_spatial_natural_coordinates(name, R, origin, seed):
    body = natural.NaturalBody(*BODIES[name])
    assert body.number_of_constraints == body.size - 6
    q = body.coordinates(R, origin)
    close(body.constraints(q), 0.0)
    close(body.rotation(q), R, EDGE)
    close(body.origin(q), origin, EDGE)
    d = seed[: body.size]
    close((body.constraints(q + d) - body.constraints(q - d)) / 2, body.jacobian(q) @ d, EDGE)
    assert np.linalg.matrix_rank(body.jacobian(q)) == body.number_of_constraints


def test_natural_body_refuses_a_line_and_a_mirror_image():
    with pytest.raises(ValueError, match="two independent directions"):
        natural.NaturalBody([[0, 0, 0], [1, 0, 0]], [[1, 0, 0]])
    body = natural.NaturalBody([[0, 0, 0]], np.eye(3))
    q = body.coordinates(np.eye(3), [0, 0, 0])
    q[3 + 0] = -1.0  # flips the first unit vector: the Gram matrix cannot tell
    close(body.constraints(q), 0.0)
    with pytest.raises(ValueError, match="reflection"):
        body.rotation(q)
