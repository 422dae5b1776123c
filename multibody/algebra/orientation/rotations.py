"""Rotation matrices: primitive rotations, SO(3), axis and angle, exponential map and Jacobians.

Conventions: R is active, body → world, v_world = R v_body; its columns are the body axes in world
coordinates. A coordinate transform E, as in the dynamics book, is its transpose. Angles are in
radians. All functions are vectorised over leading axes.

Sources: course notes, Eqs 4.4–4.9 and 4.14–4.18 (errata E31, E33, E43, E44). Companions:
`quaternions` (Euler parameters), `angles` (the twelve sequences), `rates` (conversion between
any two parametrisations and their angular-rate matrices).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...checks import ROTATION_TOLERANCE, Array, ArrayLike, check_rotation, check_unit, real_array
from . import quaternions
from .half_angle import c_cos1, c_cot, c_sin1, c_sin2

__all__ = [
    "AxisAngle",
    "Rx",
    "Ry",
    "Rz",
    "axis_angle_from_matrix",
    "check_rotation",
    "conjugated_axis_rotation",
    "eigenvalues",
    "exp",
    "is_rotation",
    "left_jacobian",
    "left_jacobian_inverse",
    "log",
    "matrix_from_axis_angle",
    "matrix_from_rodrigues",
    "nearest_rotation",
    "orthonormality",
    "primitive",
    "right_jacobian",
    "right_jacobian_inverse",
    "rodrigues_from_matrix",
    "rotate_about",
    "skew",
    "vex",
]

#: |q0| = cos(θ/2) below which Rodrigues parameters count as infinite: at 1e-14 their entries
#: are 1e14 and two digits of the angle's distance from π remain.
RODRIGUES_TOLERANCE = 1e-14

#: |sin(θ/2)| below which the logarithm's Jacobian at θ ≈ 2πk counts as singular.
JACOBIAN_TOLERANCE = 1e-12


def skew(a: ArrayLike) -> Array:
    """Cross-product matrix a×, with a× b = a × b (dynamics book, Eq 2.23; notes, Eq 4.17).

    Examples
    --------
    >>> skew([1.0, 2.0, 3.0])
    array([[ 0., -3.,  2.],
           [ 3.,  0., -1.],
           [-2.,  1.,  0.]])
    """
    a = real_array(a, "a", (3,))
    A = np.zeros((*a.shape[:-1], 3, 3), dtype=a.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        A[..., k, j], A[..., j, k] = a[..., i], -a[..., i]
    return A


def vex(A: ArrayLike) -> Array:
    """Vector of the skew-symmetric part of A: the inverse of `skew`.

    Examples
    --------
    >>> vex(skew([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """
    A = real_array(A, "A", (3, 3))
    parts = [A[..., 2, 1] - A[..., 1, 2], A[..., 0, 2] - A[..., 2, 0], A[..., 1, 0] - A[..., 0, 1]]
    return np.stack(parts, axis=-1) / 2


def primitive(axis: int, angle: ArrayLike) -> Array:
    """Active rotation about coordinate axis 0, 1 or 2 (course notes, Eq 4.9).

    Examples
    --------
    >>> primitive(2, np.pi / 2).round(12) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    if axis not in (0, 1, 2):
        raise ValueError(f"axis: expected 0, 1 or 2, received {axis!r}; number the axes from 0")
    angle = real_array(angle, "angle")
    c, s = np.cos(angle), np.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.zeros((*angle.shape, 3, 3), dtype=angle.dtype)
    R[..., axis, axis] = 1.0
    R[..., i, i], R[..., i, j] = c, -s
    R[..., j, i], R[..., j, j] = s, c
    return R


def Rx(angle: ArrayLike) -> Array:
    """Active rotation about x.

    Examples
    --------
    >>> Rx(np.pi / 2) @ [0.0, 1.0, 0.0]
    array([0.000000e+00, 6.123234e-17, 1.000000e+00])
    """
    return primitive(0, angle)


def Ry(angle: ArrayLike) -> Array:
    """Active rotation about y.

    Examples
    --------
    >>> Ry(np.pi / 2) @ [0.0, 0.0, 1.0]
    array([1.000000e+00, 0.000000e+00, 6.123234e-17])
    """
    return primitive(1, angle)


def Rz(angle: ArrayLike) -> Array:
    """Active rotation about z.

    Examples
    --------
    >>> Rz(np.pi / 2) @ [1.0, 0.0, 0.0]
    array([6.123234e-17, 1.000000e+00, 0.000000e+00])
    """
    return primitive(2, angle)


def is_rotation(R: ArrayLike, atol: float = ROTATION_TOLERANCE) -> Array:
    """Whether R is in SO(n): RᵀR = 1 within atol and det R > 0 (notes, Eqs 3.6, 4.4, 4.5).

    Works for planar (2×2) and spatial (3×3) rotations.

    Examples
    --------
    >>> bool(is_rotation(np.diag([1.0, 1.0, -1.0])))  # a reflection
    False
    """
    R = real_array(R, "R")
    if R.ndim < 2 or R.shape[-1] != R.shape[-2]:
        raise ValueError(
            f"R: expected square matrices (..., n, n), received shape {R.shape}; check the argument"
        )
    gap = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(R.shape[-1])).max(axis=(-2, -1))
    return np.asarray((gap <= atol) & (np.linalg.det(R) > 0.0))


def orthonormality(R: ArrayLike) -> Array:
    """Six residuals r_i·r_j − δ_ij of the columns of a 3×3 matrix, i ≤ j (notes, Eq 4.4).

    The constraints that nine direction cosines obey; zero for a rotation (and a reflection).

    Examples
    --------
    >>> orthonormality(2.0 * np.eye(3))
    array([3., 0., 3., 0., 0., 3.])
    """
    R = real_array(R, "R", (3, 3))
    gram = np.swapaxes(R, -1, -2) @ R - np.eye(3)
    return np.stack([gram[..., i, j] for i in range(3) for j in range(i + 1)], axis=-1)


def nearest_rotation(A: ArrayLike) -> Array:
    """Rotation nearest to A in the Frobenius norm: U diag(1, 1, det UVᵀ) Vᵀ from A = U S Vᵀ.

    Raises where it is not unique (rank below two, or a reflection whose two smallest singular
    values coincide).

    Examples
    --------
    >>> nearest_rotation(2.0 * np.eye(3))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    A = real_array(A, "A", (3, 3))
    U, S, Vt = np.linalg.svd(A)
    sign = np.where(np.linalg.det(U @ Vt) < 0.0, -1.0, 1.0).astype(A.dtype)
    # Unique iff s2 + sign·s3 > 0, up to rounding of the largest singular value.
    margin = S[..., 1] + sign * S[..., 2]
    if np.any(margin <= 4 * np.finfo(A.dtype).eps * S[..., 0]):
        raise ValueError(
            "A: expected a matrix with one nearest rotation, received singular values "
            f"{S.reshape(-1, 3)[0]} with determinant sign {int(sign.flat[0])}; "
            "give at least two independent directions"
        )
    U[..., :, 2] *= sign[..., None]
    return U @ Vt


def eigenvalues(R: ArrayLike) -> Array:
    """Eigenvalues 1, e^{+jφ}, e^{−jφ} of a rotation (notes, Eq 4.14; characteristic poly. E43).

    Examples
    --------
    >>> eigenvalues(Rz(np.pi / 2)).round(12)
    array([1.+0.j, 0.+1.j, 0.-1.j])
    """
    phi = np.asarray(axis_angle_from_matrix(R).angle)
    turn = np.exp(1j * phi)
    return np.stack([np.ones_like(turn), turn, turn.conj()], axis=-1)


class AxisAngle(NamedTuple):
    """Axis and angle of a rotation; (n, θ) and (−n, −θ) are the same."""

    axis: Array
    """Unit vector, shape (..., 3); (1, 0, 0) where the angle is 0 and any axis would do."""
    angle: Array
    """Angle in [0, π]."""
    defined: Array
    """False where the angle is 0: the axis is then a convention, not information."""


def axis_angle_from_matrix(R: ArrayLike) -> AxisAngle:
    """Axis and angle of a rotation matrix, accurate from 1e-300 to π.

    Notes
    -----
    The notes' Eq 4.14, φ = arccos((tr R − 1)/2), returns 0 at 1e-9. Here the angle is the norm of
    the logarithm, which goes through 2 atan2(‖u‖, q0).

    Examples
    --------
    >>> axis, angle, defined = axis_angle_from_matrix(Rz(1e-9))
    >>> axis, float(angle), bool(defined)
    (array([0., 0., 1.]), 1e-09, True)
    """
    phi = log(R)
    angle = _norm(phi)
    defined = angle > 0.0
    axis = phi / np.where(defined, angle, 1.0)[..., None]
    axis = np.where(defined[..., None], axis, np.array([1.0, 0.0, 0.0], dtype=phi.dtype))
    return AxisAngle(axis, np.minimum(angle, np.asarray(np.pi, dtype=phi.dtype)), defined)


def matrix_from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """Rotation by an angle about a unit axis: 1 + sin θ n× + (1 − cos θ) n×n× (Eq 4.18).

    Examples
    --------
    >>> np.allclose(matrix_from_axis_angle([0.0, 0.0, 1.0], 0.3), Rz(0.3))
    True
    """
    n = check_unit(axis, "axis", 3, "divide it by its norm")
    theta = real_array(angle, "angle")[..., None, None]
    N = skew(n)
    half = np.sin(theta / 2)
    return np.eye(3, dtype=n.dtype) + np.sin(theta) * N + 2 * half * half * (N @ N)


def rotate_about(axis: ArrayLike, angle: ArrayLike, v: ArrayLike) -> Array:
    """Rotate vectors about an axis by Rodrigues' formula (notes, Eq 4.16; 3.10 is erratum E33).

    cos θ v + (1 − cos θ)(n·v) n + sin θ n × v, without forming a matrix.

    Examples
    --------
    >>> rotate_about([0.0, 0.0, 1.0], np.pi / 2, [1.0, 0.0, 0.0]).round(12)
    array([0., 1., 0.])
    """
    n = check_unit(axis, "axis", 3, "divide it by its norm")
    v = real_array(v, "v", (3,))
    theta = real_array(angle, "angle")[..., None]
    along = np.sum(n * v, axis=-1, keepdims=True)
    half = np.sin(theta / 2)
    return np.cos(theta) * v + 2 * half * half * along * n + np.sin(theta) * np.cross(n, v)


def conjugated_axis_rotation(axis: ArrayLike, angle: float) -> Array:
    """Rotation about an axis as Rx(α) Ry(β) Rz(θ) Ry(−β) Rx(−α) (notes, Eq 4.15, erratum E44).

    α and β carry z to n = (sin β, −sin α cos β, cos α cos β). A second, independent construction
    of `matrix_from_axis_angle`, kept for teaching and as its check.

    Examples
    --------
    >>> n = np.array([2.0, -1.0, 2.0]) / 3
    >>> np.allclose(conjugated_axis_rotation(n, 0.7), matrix_from_axis_angle(n, 0.7))
    True
    """
    n = check_unit(axis, "axis", 3, "divide it by its norm")
    beta = np.arctan2(n[..., 0], np.hypot(n[..., 1], n[..., 2]))
    alpha = np.arctan2(-n[..., 1], n[..., 2])
    carry = Rx(alpha) @ Ry(beta)
    return carry @ Rz(angle) @ np.swapaxes(carry, -1, -2)


def _norm(phi: Array) -> Array:
    """Euclidean norm without squaring: angles of 1e-300 survive."""
    return np.hypot(np.hypot(phi[..., 0], phi[..., 1]), phi[..., 2])


def exp(phi: ArrayLike) -> Array:
    """Rotation matrix of a rotation vector φ = θ n: the exponential of φ×.

    Examples
    --------
    >>> exp([0.0, 0.0, 1e-300])[1, 0]
    np.float64(1e-300)
    """
    phi = real_array(phi, "phi", (3,))
    theta = _norm(phi)[..., None, None]
    K = skew(phi)
    return np.eye(3, dtype=phi.dtype) + c_sin1(theta) * K + c_cos1(theta) * (K @ K)


def log(R: ArrayLike) -> Array:
    """Rotation vector of a rotation matrix, ‖φ‖ ≤ π; accurate for tiny angles and near π.

    At exactly π both signs are logarithms; the one with positive leading component is returned.

    Examples
    --------
    >>> log(Rx(np.pi)).round(12)
    array([3.14159265, 0.        , 0.        ])
    """
    return quaternions.to_rotation_vector(quaternions.from_matrix(R))


def left_jacobian(phi: ArrayLike) -> Array:
    """Left Jacobian J_l of the exponential: ω_world = J_l(φ) φ̇.

    J_l = 1 + (1−cos θ)/θ² φ× + (θ−sin θ)/θ³ φ×φ×.

    Examples
    --------
    >>> left_jacobian([0.0, 0.0, np.pi]).round(6)
    array([[ 0.     , -0.63662,  0.     ],
           [ 0.63662,  0.     ,  0.     ],
           [ 0.     ,  0.     ,  1.     ]])
    """
    phi = real_array(phi, "phi", (3,))
    theta = _norm(phi)[..., None, None]
    K = skew(phi)
    return np.eye(3, dtype=phi.dtype) + c_cos1(theta) * K + c_sin2(theta) * (K @ K)


def right_jacobian(phi: ArrayLike) -> Array:
    """Right Jacobian J_r(φ) = J_l(−φ): ω_body = J_r(φ) φ̇.

    Examples
    --------
    >>> phi = np.array([0.1, -0.2, 0.3])
    >>> np.allclose(exp(phi) @ right_jacobian(phi), left_jacobian(phi))
    True
    """
    return left_jacobian(-real_array(phi, "phi", (3,)))


def left_jacobian_inverse(phi: ArrayLike) -> Array:
    """Inverse of the left Jacobian: φ̇ = J_l⁻¹(φ) ω_world; singular at θ = 2πk, k ≥ 1.

    J_l⁻¹ = 1 − ½ φ× + (1 − (θ/2) cot(θ/2))/θ² φ×φ×.

    Examples
    --------
    >>> phi = np.array([0.1, -0.2, 0.3])
    >>> np.allclose(left_jacobian_inverse(phi) @ left_jacobian(phi), np.eye(3))
    True
    """
    phi = real_array(phi, "phi", (3,))
    theta = _norm(phi)
    if np.any((theta > 1.0) & (np.abs(np.sin(theta / 2)) < JACOBIAN_TOLERANCE)):
        raise ValueError(
            "phi: expected a rotation vector whose norm is not a positive multiple of 2π, "
            f"received norm {float(theta.max()):.9g}, where the Jacobian is singular; "
            "use the equivalent vector log(exp(phi)) of norm at most π"
        )
    theta = theta[..., None, None]
    K = skew(phi)
    return np.eye(3, dtype=phi.dtype) - K / 2 + c_cot(theta) * (K @ K)


def right_jacobian_inverse(phi: ArrayLike) -> Array:
    """Inverse of the right Jacobian: φ̇ = J_r⁻¹(φ) ω_body; singular at θ = 2πk, k ≥ 1.

    Examples
    --------
    >>> phi = np.array([0.1, -0.2, 0.3])
    >>> np.allclose(right_jacobian_inverse(phi) @ right_jacobian(phi), np.eye(3))
    True
    """
    return left_jacobian_inverse(-real_array(phi, "phi", (3,)))


def rodrigues_from_matrix(R: ArrayLike) -> Array:
    """Rodrigues parameters g = n tan(θ/2) (Gibbs vector); they do not exist at θ = π.

    Examples
    --------
    >>> rodrigues_from_matrix(Rz(np.pi / 2)).round(12)
    array([0., 0., 1.])
    """
    q = quaternions.from_matrix(R)
    if np.any(q[..., 0] < RODRIGUES_TOLERANCE):
        raise ValueError(
            "R: expected a rotation by less than π, received a half turn, where Rodrigues "
            "parameters are infinite; use the rotation vector or the quaternion"
        )
    return q[..., 1:] / q[..., :1]


def matrix_from_rodrigues(g: ArrayLike) -> Array:
    """Rotation matrix of Rodrigues parameters, by the quaternion (1, g)/√(1 + g·g).

    Examples
    --------
    >>> matrix_from_rodrigues([0.0, 0.0, 1.0]).round(12) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    g = real_array(g, "g", (3,))
    one = np.ones_like(g[..., :1])
    return quaternions.to_matrix(quaternions.normalise(np.concatenate([one, g], axis=-1)))
