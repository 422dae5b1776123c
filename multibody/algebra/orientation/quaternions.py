"""Unit quaternions: product, conversion to matrices and back, rates, interpolation, mean.

Conventions: Hamilton product, scalar first, q = (q0, q1, q2, q3) = (cos θ/2,
n sin θ/2), unit norm; q and −q are the same rotation. The rotation is active: it maps body
coordinates to world coordinates, v_world = q v_body q*. All functions work on arrays of shape
(..., 4) and broadcast over the leading axes.

Sources: moving-frames paper, Eqs 3–12; course notes, Eq 4.19 and the angular-rate matrices
(erratum E40).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...checks import Array, ArrayLike, check_rotation, check_unit, one_of, real_array, real_scalar
from .half_angle import c_sin1

__all__ = [
    "Axes",
    "angular_acceleration",
    "angular_velocity",
    "canonical",
    "conjugate",
    "from_matrix",
    "identity",
    "mean",
    "multiply",
    "normalise",
    "project_rates",
    "rate",
    "rate_matrix",
    "rate_matrix_inverse",
    "rotate",
    "same_rotation",
    "second_rate",
    "slerp",
    "to_matrix",
    "to_rotation_vector",
    "unit_constraint",
]

Axes = Literal["body", "world"]

_NORMALISE = "renormalise it with quaternions.normalise"

#: Smallest gap between the two largest eigenvalues of the mean's matrix (whose trace is 1) for
#: which the mean rotation counts as unique.
MEAN_GAP = 1e-9


def identity() -> Array:
    """Return the neutral quaternion (1, 0, 0, 0).

    Examples
    --------
    >>> identity()
    array([1., 0., 0., 0.])
    """
    return np.array([1.0, 0.0, 0.0, 0.0])


def multiply(p: ArrayLike, q: ArrayLike) -> Array:
    """Hamilton product p q, of shape (..., 4).

    The rotation p q applies q first, then p. Any quaternions are accepted, not only unit ones,
    because rates are multiplied too.

    Examples
    --------
    >>> multiply([0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])  # i j = k
    array([0., 0., 0., 1.])
    """
    p = real_array(p, "p", (4,))
    q = real_array(q, "q", (4,))
    p0, p1, p2, p3 = np.moveaxis(p, -1, 0)
    q0, q1, q2, q3 = np.moveaxis(q, -1, 0)
    return np.stack(
        [
            p0 * q0 - p1 * q1 - p2 * q2 - p3 * q3,
            p0 * q1 + p1 * q0 + p2 * q3 - p3 * q2,
            p0 * q2 - p1 * q3 + p2 * q0 + p3 * q1,
            p0 * q3 + p1 * q2 - p2 * q1 + p3 * q0,
        ],
        axis=-1,
    )


def conjugate(q: ArrayLike) -> Array:
    """Conjugate q* = (q0, −q1, −q2, −q3): the inverse rotation of a unit quaternion.

    Examples
    --------
    >>> conjugate([0.5, 0.5, 0.5, 0.5])
    array([ 0.5, -0.5, -0.5, -0.5])
    """
    q = real_array(q, "q", (4,))
    return np.concatenate([q[..., :1], -q[..., 1:]], axis=-1)


def normalise(q: ArrayLike) -> Array:
    """Divide by the norm; the zero quaternion raises.

    Examples
    --------
    >>> normalise([2.0, 0.0, 0.0, 0.0])
    array([1., 0., 0., 0.])
    """
    q = real_array(q, "q", (4,))
    largest = np.abs(q).max(axis=-1, keepdims=True, initial=0.0)
    if np.any(largest == 0.0):
        raise ValueError(
            "q: expected a nonzero quaternion, received (0, 0, 0, 0), which has no direction; "
            "start from quaternions.identity()"
        )
    scaled: Array = q / largest  # so that neither huge nor tiny components are squared
    return scaled / np.sqrt(np.sum(scaled * scaled, axis=-1, keepdims=True))


def canonical(q: ArrayLike) -> Array:
    """Of q and −q, return the one with q0 > 0 (for q0 = 0: first nonzero component positive).

    Examples
    --------
    >>> canonical([-1.0, 0.0, 0.0, 0.0])
    array([1., 0., 0., 0.])
    """
    q = real_array(q, "q", (4,))
    first = np.argmax(q != 0.0, axis=-1)
    lead = np.take_along_axis(q, first[..., None], axis=-1)
    return np.where(lead < 0.0, -q, q) + 0.0  # + 0.0 turns −0 into 0


def same_rotation(p: ArrayLike, q: ArrayLike, atol: float = 1e-12) -> Array:
    """Whether p and q are the same rotation: equal up to sign within atol.

    Examples
    --------
    >>> bool(same_rotation([1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]))
    True
    """
    p = real_array(p, "p", (4,))
    q = real_array(q, "q", (4,))
    gap = np.minimum(np.abs(p - q).max(axis=-1), np.abs(p + q).max(axis=-1))
    return np.asarray(gap <= atol)


def rotate(q: ArrayLike, v: ArrayLike) -> Array:
    """Rotate vectors: the vector part of q v q* (moving-frames paper, Eq 3).

    Parameters
    ----------
    q
        Unit quaternion body → world, shape (..., 4).
    v
        Vector in body axes, shape (..., 3).

    Returns
    -------
    array
        The same vector in world axes, shape (..., 3).

    Notes
    -----
    Written as v + 2 q0 (u × v) + 2 u × (u × v) with u the vector part: no quaternion product.

    Examples
    --------
    >>> rotate([0.5, 0.5, 0.5, 0.5], [1.0, 0.0, 0.0])  # 120° about (1, 1, 1): x → y
    array([0., 1., 0.])
    """
    q = check_unit(q, "q", 4, _NORMALISE)
    v = real_array(v, "v", (3,))
    u = q[..., 1:]
    t = 2 * np.cross(u, v)
    return v + q[..., :1] * t + np.cross(u, t)


def to_matrix(q: ArrayLike) -> Array:
    """Rotation matrix R(q), body → world (course notes, Eq 4.19), shape (..., 3, 3).

    Notes
    -----
    Written with the factor 2/‖q‖², so R is orthogonal to rounding even where q is off the unit
    sphere by an accepted amount (Eq 4.19 is orthogonal only for ‖q‖ = 1).

    Examples
    --------
    >>> to_matrix([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]).round(12) + 0.0  # 90° about z
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    q = check_unit(q, "q", 4, _NORMALISE)
    w, x, y, z = np.moveaxis(q, -1, 0)
    s = 2 / np.sum(q * q, axis=-1)
    R = np.empty((*q.shape[:-1], 3, 3), dtype=q.dtype)
    R[..., 0, 0] = 1 - s * (y * y + z * z)
    R[..., 1, 1] = 1 - s * (x * x + z * z)
    R[..., 2, 2] = 1 - s * (x * x + y * y)
    R[..., 0, 1], R[..., 1, 0] = s * (x * y - w * z), s * (x * y + w * z)
    R[..., 0, 2], R[..., 2, 0] = s * (x * z + w * y), s * (x * z - w * y)
    R[..., 1, 2], R[..., 2, 1] = s * (y * z - w * x), s * (y * z + w * x)
    return R


def from_matrix(R: ArrayLike) -> Array:
    """Return the unit quaternion of a rotation matrix, with q0 ≥ 0, shape (..., 4).

    Notes
    -----
    Each row of the matrix 4 q qᵀ is a multiple of q and is linear in R; the row with the largest
    diagonal entry is normalised, so no component is computed by cancellation at any angle.

    Examples
    --------
    >>> from_matrix([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]])  # π about x
    array([0., 1., 0., 0.])
    """
    R = check_rotation(R)
    outer = np.empty((*R.shape[:-2], 4, 4), dtype=R.dtype)
    d0, d1, d2 = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    outer[..., 0, 0] = 1 + d0 + d1 + d2
    outer[..., 1, 1] = 1 + d0 - d1 - d2
    outer[..., 2, 2] = 1 - d0 + d1 - d2
    outer[..., 3, 3] = 1 - d0 - d1 + d2
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        outer[..., 0, 1 + i] = outer[..., 1 + i, 0] = R[..., k, j] - R[..., j, k]
        outer[..., 1 + i, 1 + j] = outer[..., 1 + j, 1 + i] = R[..., i, j] + R[..., j, i]
    best = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    row = np.take_along_axis(outer, best[..., None, None], axis=-2)[..., 0, :]
    return canonical(normalise(row))


def to_rotation_vector(q: ArrayLike) -> Array:
    """Rotation vector θ n with 0 ≤ θ ≤ π, in radians (the logarithm of the rotation).

    Accurate for every angle: θ = 2 atan2(‖u‖, |q0|), and at tiny angles θ n → 2 u/q0 without
    squaring. At θ = π both ±π n are logarithms; the one with positive leading component is
    returned.

    Examples
    --------
    >>> to_rotation_vector([1.0, 5e-301, 0.0, 0.0])
    array([1.e-300, 0.e+000, 0.e+000])
    """
    q = canonical(check_unit(q, "q", 4, _NORMALISE))
    w, u = q[..., :1], q[..., 1:]
    s = np.hypot(np.hypot(u[..., :1], u[..., 1:2]), u[..., 2:])
    tiny = s < 1e-8  # below it 2 atan2(s, w)/s = 2/w to the last digit
    factor = np.where(
        tiny,
        2 / np.where(tiny, w, 1.0),
        2 * np.arctan2(s, w) / np.where(tiny, 1.0, s),
    )
    return np.asarray(factor * u, dtype=q.dtype)


def rate_matrix(q: ArrayLike, axes: Axes = "body") -> Array:
    """Matrix E(q) of ω = E(q) q̇, shape (..., 3, 4) (course notes, corrected by erratum E40).

    Parameters
    ----------
    q
        Unit quaternion body → world.
    axes
        Components of ω: "body" (2 q* q̇) or "world" (2 q̇ q*).

    Notes
    -----
    E Eᵀ = 4·1, so q̇ = ¼ Eᵀ ω: there is no singular set.

    Examples
    --------
    >>> rate_matrix([0.5, 0.5, 0.5, 0.5]) @ [-0.3, 0.1, 0.4, -0.2]
    array([ 1. ,  0.4, -0.2])
    """
    q = check_unit(q, "q", 4, _NORMALISE)
    one_of(axes, "axes", ("body", "world"))
    w, x, y, z = np.moveaxis(2 * q, -1, 0)
    s = 1 if axes == "body" else -1
    rows = [[-x, w, s * z, -s * y], [-y, -s * z, w, s * x], [-z, s * y, -s * x, w]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rate_matrix_inverse(q: ArrayLike, axes: Axes = "body") -> Array:
    """Matrix of q̇ = E⁺(q) ω, shape (..., 4, 3); the rate keeps the norm of q.

    Examples
    --------
    >>> rate_matrix_inverse([1.0, 0.0, 0.0, 0.0])[1:]
    array([[ 0.5, -0. ,  0. ],
           [ 0. ,  0.5, -0. ],
           [-0. ,  0. ,  0.5]])
    """
    return np.swapaxes(rate_matrix(q, axes), -1, -2) / 4


def _pure(v: Array) -> Array:
    return np.concatenate([np.zeros_like(v[..., :1]), v], axis=-1)


def rate(q: ArrayLike, omega: ArrayLike, axes: Axes = "body") -> Array:
    """Quaternion rate q̇ = ½ q ω (body axes) or ½ ω q (world axes).

    Examples
    --------
    >>> rate([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0])
    array([0., 0., 0., 1.])
    """
    one_of(axes, "axes", ("body", "world"))
    w = _pure(real_array(omega, "omega", (3,)))
    return 0.5 * (multiply(q, w) if axes == "body" else multiply(w, q))


def angular_velocity(q: ArrayLike, q_dot: ArrayLike, axes: Axes = "body") -> Array:
    """Angular velocity: the vector part of 2 q* q̇ (body) or 2 q̇ q* (world), rad/s.

    The scalar part, 2 q·q̇, vanishes for a rate that keeps the norm; see `project_rates`.

    Examples
    --------
    >>> angular_velocity([0.5, 0.5, 0.5, 0.5], [-0.3, 0.1, 0.4, -0.2], axes="world")
    array([-0.2,  1. ,  0.4])
    """
    one_of(axes, "axes", ("body", "world"))
    pair = (conjugate(q), q_dot) if axes == "body" else (q_dot, conjugate(q))
    return 2 * multiply(*pair)[..., 1:]


def second_rate(q: ArrayLike, q_dot: ArrayLike, alpha: ArrayLike) -> Array:
    """Second rate q̈ = ½ (q̇ ω + q α), with ω and α in body axes.

    Examples
    --------
    >>> second_rate([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 4.0])
    array([-1.,  0.,  0.,  2.])
    """
    omega = _pure(angular_velocity(q, q_dot))
    return 0.5 * (multiply(q_dot, omega) + multiply(q, _pure(real_array(alpha, "alpha", (3,)))))


def angular_acceleration(q: ArrayLike, q_dot: ArrayLike, q_ddot: ArrayLike) -> Array:
    """Angular acceleration in body axes: 2 q̇* q̇ + 2 q* q̈ (moving-frames paper, Eq 12), rad/s².

    Examples
    --------
    >>> angular_acceleration([1.0, 0, 0, 0], [0.0, 0, 0, 1.0], [-1.0, 0, 0, 2.0])
    array([0., 0., 4.])
    """
    return 2 * (multiply(conjugate(q_dot), q_dot) + multiply(conjugate(q), q_ddot))[..., 1:]


def unit_constraint(
    q: ArrayLike, q_dot: ArrayLike, q_ddot: ArrayLike
) -> tuple[Array, Array, Array]:
    """Return the unit constraint and its two rates: q·q − 1, 2 q·q̇, 2 q̇·q̇ + 2 q·q̈.

    Examples
    --------
    >>> [float(c) for c in unit_constraint([1, 0, 0, 0], [0, 0, 0, 1], [-1, 0, 0, 2])]
    [0.0, 0.0, 0.0]
    """
    q = real_array(q, "q", (4,))
    q_dot = real_array(q_dot, "q_dot", (4,))
    q_ddot = real_array(q_ddot, "q_ddot", (4,))
    return (
        np.sum(q * q, axis=-1) - 1,
        2 * np.sum(q * q_dot, axis=-1),
        2 * np.sum(q_dot * q_dot + q * q_ddot, axis=-1),
    )


def project_rates(
    q: ArrayLike, q_dot: ArrayLike, q_ddot: ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """Return (q, q̇, q̈) with unit q and rates that keep it unit.

    q is divided by its norm; q̇ loses its part along q; q̈ is changed along q so that
    q̇·q̇ + q·q̈ = 0. This is the orthogonal projection at each level.

    Examples
    --------
    >>> q, q_dot, q_ddot = project_rates([2.0, 0.0, 0.0, 0.0], [0.5, 1.0, 0.0, 0.0])
    >>> q, q_dot, q_ddot
    (array([1., 0., 0., 0.]), array([0., 1., 0., 0.]), array([-1.,  0.,  0.,  0.]))
    """
    q = normalise(q)
    given = real_array(q_dot, "q_dot", (4,))
    kept: Array = given - np.sum(q * given, axis=-1, keepdims=True) * q
    second = np.zeros_like(kept) if q_ddot is None else real_array(q_ddot, "q_ddot", (4,))
    excess = np.sum(kept * kept + q * second, axis=-1, keepdims=True)
    return q, kept, second - excess * q


def slerp(q0: ArrayLike, q1: ArrayLike, t: ArrayLike) -> Array:
    """Interpolate at constant angular velocity along the shorter arc from q0 (t=0) to q1 (t=1).

    Notes
    -----
    The arc Ω = 2 atan2(‖q1 − q0‖, ‖q1 + q0‖) has no cancellation for near or far quaternions;
    after choosing the sign of q1, Ω ≤ π/2, so sin Ω vanishes only where both ends coincide.

    Examples
    --------
    >>> slerp([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], 0.5).round(6)
    array([0.707107, 0.      , 0.      , 0.707107])
    """
    q0 = check_unit(q0, "q0", 4, _NORMALISE)
    q1 = check_unit(q1, "q1", 4, _NORMALISE)
    t = real_array(t, "t")[..., None]
    q1 = np.where(np.sum(q0 * q1, axis=-1, keepdims=True) < 0.0, -q1, q1)
    near = np.sqrt(np.sum(np.square(q1 - q0), axis=-1, keepdims=True))
    far = np.sqrt(np.sum(np.square(q1 + q0), axis=-1, keepdims=True))
    arc = 2 * np.arctan2(near, far)
    # sin(sΩ)/sin Ω = s sinc(sΩ)/sinc Ω, safe at Ω = 0
    w0 = (1 - t) * c_sin1((1 - t) * arc) / c_sin1(arc)
    w1 = t * c_sin1(t * arc) / c_sin1(arc)
    return normalise(w0 * q0 + w1 * q1)


def mean(q: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Mean rotation of quaternions of shape (n, 4), insensitive to the signs of the q.

    It maximises Σ wᵢ (q·qᵢ)²: the leading eigenvector of Σ wᵢ qᵢ qᵢᵀ. Raises when it is not
    unique (for instance, two rotations that differ by a half turn).

    Examples
    --------
    >>> mean([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0], [0.0, 0.0, 0.0, 1.0]])
    array([0., 0., 0., 1.])
    """
    q = check_unit(q, "q", 4, _NORMALISE)
    if q.ndim != 2 or len(q) == 0:
        raise ValueError(
            f"q: expected shape (n, 4) with n ≥ 1, received {q.shape}; stack the quaternions"
        )
    w = np.ones(len(q)) if weights is None else real_array(weights, "weights")
    if w.shape != (len(q),) or np.any(w < 0.0) or not np.any(w > 0.0):
        raise ValueError(
            f"weights: expected {len(q)} numbers ≥ 0, not all zero, received {w}; "
            "give one weight a quaternion"
        )
    values, vectors = np.linalg.eigh(np.einsum("n,ni,nj->ij", w / w.sum(), q, q))
    if real_scalar(values[-1] - values[-2], "gap") < MEAN_GAP:
        raise ValueError(
            "q: expected rotations with a unique mean, received a set whose two leading "
            f"eigenvalues are {values[-1]:.6g} and {values[-2]:.6g}; change the weights"
        )
    return canonical(vectors[:, -1])
