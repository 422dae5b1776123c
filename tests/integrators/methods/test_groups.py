"""Groups: against series of matrices in many digits, and traced against plain."""

import mpmath
import numpy as np
import pytest

from integrators import groups, traced
from tests.integrators.methods.rotating import (
    MATRIX,
    MOTION,
    QUATERNION,
    ROUNDING,
    TOP,
    exponential,
    hat,
)


def inverse_dexp(operator_matrix, vector):
    """x/(1 − e⁻ˣ) of a matrix, by inverting the series Σ (−x)ᵏ/(k+1)! in 50 digits."""
    with mpmath.workdps(50):
        A = mpmath.matrix(operator_matrix.tolist())
        total, term = mpmath.zeros(A.rows), mpmath.eye(A.rows)
        for k in range(120):
            total += term / mpmath.factorial(k + 1)
            term = -term * A
        return np.array([float(x) for x in mpmath.lu_solve(total, mpmath.matrix(vector.tolist()))])


ANGLES = [0.0, 1e-170, 1e-8, 1e-3, 0.3, 1 - 1e-12, 1.0, 1 + 1e-12, 2.0, 3.1, 4.5, 6.0]


@pytest.mark.parametrize("angle", ANGLES)
def test_groups_against_series_in_many_digits(angle):
    rng = np.random.default_rng(int(1000 * angle))
    axis = rng.normal(size=3)
    turn = angle * axis / np.linalg.norm(axis)
    z, xi = np.concatenate([turn, rng.normal(size=3)]), rng.normal(size=6)
    ad = np.block([[hat(z[:3]), np.zeros((3, 3))], [hat(z[3:]), hat(z[:3])]])
    for rate, of in ((MATRIX.rate, hat(turn)), (MOTION.rate, ad)):
        m = len(of)
        expected = inverse_dexp(of, xi[:m])
        size = np.abs(expected).max()  # near 2π dexp⁻¹ is large
        assert np.allclose(rate(z[:m], xi[:m]), expected, rtol=0, atol=ROUNDING * size)
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = hat(turn), z[3:]
    E = exponential(twist)
    R = MATRIX.retract(np.eye(3).ravel(), turn).reshape(3, 3)
    assert np.allclose(R, E[:3, :3], rtol=0, atol=ROUNDING)
    moved = MOTION.retract(np.array([1.0, 0, 0, 0, 0, 0, 0]), z)
    assert np.allclose(moved[4:], E[:3, 3], rtol=0, atol=ROUNDING)
    v = rng.normal(size=3)
    q = QUATERNION.retract(np.array([1.0, 0, 0, 0]), turn)
    turned = groups._turned(q, v)
    assert np.allclose(turned, E[:3, :3] @ v, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("angle", [a for a in ANGLES if a < np.pi])
@pytest.mark.parametrize(
    "group", [QUATERNION, MATRIX, MOTION, TOP], ids=["q", "R", "qp", "product"]
)
def test_difference_undoes_retract(group, angle):
    rng = np.random.default_rng(7)
    start = {4: [1.0, 0, 0, 0], 9: np.eye(3).ravel(), 7: [1.0, 0, 0, 0, 0, 0, 0]}[group.size]
    y = group.retract(np.array(start), rng.normal(size=group.dimension))
    z = rng.normal(size=group.dimension)
    z[:3] *= angle / np.linalg.norm(z[:3])
    assert np.allclose(group.difference(y, group.retract(y, z)), z, rtol=0, atol=ROUNDING)
    assert np.allclose(group.retract(y, np.zeros(group.dimension)), y, rtol=0, atol=1e-15)


@pytest.mark.parametrize("axis", [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
def test_matrix_difference_near_half_a_turn(axis):
    """Where the antisymmetric part of R vanishes, each branch of the quaternion has its turn."""
    z = (np.pi - 1e-9) * np.array(axis) / np.linalg.norm(axis)
    R = np.eye(3).ravel()
    assert np.allclose(MATRIX.difference(R, MATRIX.retract(R, z)), z, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(
    "group", [QUATERNION, MATRIX, MOTION, TOP], ids=["q", "R", "qp", "product"]
)
@pytest.mark.parametrize("size", [0.0, 0.1, 2.0])
def test_traced_groups_equal_plain_ones(group, size):
    rng = np.random.default_rng(3)
    n, m = group.size, group.dimension
    y = np.concatenate([[1.0, 0, 0, 0], rng.normal(size=n - 4)]) if n != 9 else np.eye(3).ravel()
    z, xi = size * rng.normal(size=m), rng.normal(size=m)
    retract = traced(group.retract, time=False, n=n, params=m, outputs=n)
    rate = traced(group.rate, time=False, n=m, params=m)
    difference = traced(group.difference, time=False, n=n, params=n, outputs=m)
    y1 = group.retract(y, z)
    assert np.allclose(retract(0.0, y, z), y1, rtol=0, atol=ROUNDING)
    plain = group.rate(z, xi)
    assert np.allclose(rate(0.0, z, xi), plain, rtol=0, atol=ROUNDING * np.abs(plain).max())
    assert np.allclose(difference(0.0, y, y1), group.difference(y, y1), rtol=0, atol=ROUNDING)
    # Derivatives by tracing, against differences: no 0/0 at z = 0.
    h = 1e-6
    columns = [
        (group.retract(y, z + h * e) - group.retract(y, z - h * e)) / (2 * h) for e in np.eye(m)
    ]
    found = retract.parameter_jacobian()(0.0, y, z).reshape(n, m)
    assert np.allclose(found, np.array(columns).T, rtol=0, atol=1e-8)
    if size == 0.0:  # ∂/∂z of ½ [z, ξ] is all that is left
        linear = np.array([group.rate(e, xi) - group.rate(-e, xi) for e in np.eye(m)]).T / 2
        assert np.allclose(rate.jacobian()(0.0, z, xi), linear, rtol=0, atol=1e-14)


@pytest.mark.parametrize("angle", ANGLES)
def test_planar_motions_are_rigid_motions_of_the_plane(angle):
    rng = np.random.default_rng(int(1000 * angle) + 1)
    plane = groups.planar_motions()
    z, xi = np.array([angle, *rng.normal(size=2)]), rng.normal(size=3)

    def embedded(v):
        return np.array([0, 0, v[0], v[1], v[2], 0.0])

    start = np.array([0.4, 1.0, -2.0])
    space = np.array([np.cos(0.2), 0, 0, np.sin(0.2), 1.0, -2.0, 0.0])
    moved, expected = plane.retract(start, z), MOTION.retract(space, embedded(z))
    assert np.allclose(moved[1:], expected[4:6], rtol=0, atol=4 * ROUNDING)
    assert moved[0] == start[0] + angle
    rate = MOTION.rate(embedded(z), embedded(xi))[2:5]
    size = np.abs(rate).max()
    assert np.allclose(plane.rate(z, xi), rate, rtol=0, atol=4 * ROUNDING * size)
    if angle < np.pi:
        assert np.allclose(plane.difference(start, moved), z, rtol=0, atol=4 * ROUNDING)
