"""Every parametrisation of a rotation behind one interface: conversion and angular rates.

`PARAMETRISATIONS` holds one entry for each: "matrix" (nine numbers, row by row), "quaternion",
"axis_angle" (n, θ), "rotation_vector", "rodrigues", and the twelve angle sequences by name.
`convert` goes from any of them to any other; `rate_matrix` and `rate_matrix_inverse` give E(u)
and its inverse in ω = E(u) u̇, in body or world axes (course notes, §4.1.4). Where u has more
numbers than three, the inverse returns the rate that respects the constraints on u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...checks import Array, ArrayLike, check_rotation, check_unit, one_of, real_array
from . import angles as _angles
from . import quaternions as _quaternions
from . import rotations as _rotations
from .half_angle import c_sin1
from .quaternions import Axes

__all__ = [
    "PARAMETRISATIONS",
    "Parametrisation",
    "convert",
    "is_singular",
    "rate_matrix",
    "rate_matrix_inverse",
]

#: |sin(θ/2)| below which the axis counts as undefined for rates (θ = 2πk).
AXIS_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Parametrisation:
    """How one set of parameters u describes a rotation.

    Examples
    --------
    >>> PARAMETRISATIONS["rodrigues"].size, PARAMETRISATIONS["rodrigues"].singular_set
    (3, 'θ = π: the parameters are infinite')
    """

    name: str
    size: int
    to_quaternion: Callable[[Array], Array]
    from_quaternion: Callable[[Array], Array]
    rate_matrix: Callable[[Array, Axes], Array]
    rate_matrix_inverse: Callable[[Array, Axes], Array]
    singular_set: str
    is_singular: Callable[[Array], Array]


def _never(u: Array) -> Array:
    """No singular set, or none at finite parameters."""
    return np.zeros(u.shape[:-1], dtype=bool)


def _whole_turn(theta: Array) -> Array:
    """θ = 2πk within the tolerance, k = 0 included."""
    return np.asarray(np.abs(np.sin(theta / 2)) < AXIS_TOLERANCE)


def _sign(axes: Axes) -> float:
    """+1 for body axes, −1 for world axes."""
    return 1.0 if one_of(axes, "axes", ("body", "world")) == "body" else -1.0


def _square(u: Array) -> Array:
    return u.reshape(*u.shape[:-1], 3, 3)


def _flat(R: Array) -> Array:
    return R.reshape(*R.shape[:-2], 9)


# --- matrix: Ṙ = R ω_body× = ω_world× R -----------------------------------------------------

_EPSILON = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _EPSILON[_i, _j, _k], _EPSILON[_i, _k, _j] = 1.0, -1.0


def _matrix_rate(u: Array, axes: Axes) -> Array:
    R = check_rotation(_square(u), "u")
    # ω_a = ½ ε_abc (Ṙ-matrix)_cb with (RᵀṘ)_cb = R_mc Ṙ_mb, or (ṘRᵀ)_cb = Ṙ_cn R_bn.
    if _sign(axes) > 0:
        E = np.einsum("abc,...mc->...amb", _EPSILON, R) / 2
    else:
        E = np.einsum("abc,...bn->...acn", _EPSILON, R) / 2
    return E.reshape(*R.shape[:-2], 3, 9)


def _matrix_rate_inverse(u: Array, axes: Axes) -> Array:
    # ‖Ṙ‖² = 2‖ω‖², so E⁺ = 2 Eᵀ.
    return 2 * np.swapaxes(_matrix_rate(u, axes), -1, -2)


# --- axis and angle: ω = n θ̇ + sin θ ṅ ∓ (1 − cos θ) n × ṅ  (− body, + world) -----------------


def _split(u: Array) -> tuple[Array, Array]:
    return check_unit(u[..., :3], "axis", 3, "divide it by its norm"), u[..., 3]


def _axis_angle_to_quaternion(u: Array) -> Array:
    n, theta = _split(u)
    half = theta[..., None] / 2
    return _quaternions.normalise(np.concatenate([np.cos(half), np.sin(half) * n], axis=-1))


def _axis_angle_from_quaternion(q: Array) -> Array:
    phi = _quaternions.to_rotation_vector(q)
    theta = np.hypot(np.hypot(phi[..., :1], phi[..., 1:2]), phi[..., 2:])
    defined = theta > 0.0
    n = np.where(defined, phi / np.where(defined, theta, 1.0), np.array([1.0, 0.0, 0.0]))
    return np.concatenate([n, np.minimum(theta, np.pi)], axis=-1)


def _axis_angle_rate(u: Array, axes: Axes) -> Array:
    n, theta = _split(u)
    theta = theta[..., None, None]
    half = np.sin(theta / 2)
    block = np.sin(theta) * np.eye(3) - _sign(axes) * 2 * half * half * _rotations.skew(n)
    return np.concatenate([block, n[..., :, None]], axis=-1)


def _axis_angle_rate_inverse(u: Array, axes: Axes) -> Array:
    n, theta = _split(u)
    half = theta[..., None, None] / 2
    if np.any(np.abs(np.sin(half)) < AXIS_TOLERANCE):
        raise ValueError(
            "u: expected an angle that is not a multiple of 2π, received one, where the axis can "
            "start in any direction and its rate does not exist; use the rotation vector"
        )
    N = _rotations.skew(n)
    # ṅ = ½ (± n×ω − cot(θ/2) n×(n×ω)), + for body axes
    axis_rows = (_sign(axes) * N - np.cos(half) / np.sin(half) * (N @ N)) / 2
    return np.concatenate([axis_rows, n[..., None, :]], axis=-2)


# --- rotation vector and Rodrigues parameters -------------------------------------------------


def _vector_to_quaternion(phi: Array) -> Array:
    theta = np.hypot(np.hypot(phi[..., :1], phi[..., 1:2]), phi[..., 2:])
    vector = c_sin1(theta / 2) * phi / 2
    return _quaternions.normalise(np.concatenate([np.cos(theta / 2), vector], axis=-1))


def _vector_rate(phi: Array, axes: Axes) -> Array:
    return _rotations.left_jacobian(-_sign(axes) * phi)


def _vector_rate_inverse(phi: Array, axes: Axes) -> Array:
    return _rotations.left_jacobian_inverse(-_sign(axes) * phi)


def _vector_singular(phi: Array) -> Array:
    theta = np.sqrt(np.sum(phi * phi, axis=-1))
    return np.asarray((theta > 1.0) & _whole_turn(theta))


def _rodrigues_to_quaternion(g: Array) -> Array:
    return _quaternions.normalise(np.concatenate([np.ones_like(g[..., :1]), g], axis=-1))


def _rodrigues_from_quaternion(q: Array) -> Array:
    q = _quaternions.canonical(q)
    if np.any(q[..., 0] < _rotations.RODRIGUES_TOLERANCE):
        raise ValueError(
            "q: expected a rotation by less than π, received a half turn, where Rodrigues "
            "parameters are infinite; use the rotation vector or the quaternion"
        )
    return q[..., 1:] / q[..., :1]


def _rodrigues_rate(g: Array, axes: Axes) -> Array:
    factor = 2 / (1 + np.sum(g * g, axis=-1))[..., None, None]
    return factor * (np.eye(3) - _sign(axes) * _rotations.skew(g))


def _rodrigues_rate_inverse(g: Array, axes: Axes) -> Array:
    outer = g[..., :, None] * g[..., None, :]
    return (np.eye(3) + _sign(axes) * _rotations.skew(g) + outer) / 2


def _sequence(name: str) -> Parametrisation:
    kind = "b = kπ" if name in _angles.EULER else "b = π/2 + kπ"
    return Parametrisation(
        name,
        3,
        lambda u: _angles.to_quaternion(u, name),
        lambda q: _angles.from_matrix(_quaternions.to_matrix(q), name).values,
        lambda u, axes: _angles.rate_matrix(u, name, axes),
        lambda u, axes: _angles.rate_matrix_inverse(u, name, axes),
        f"{kind}: the first and third axes are parallel",
        lambda u: _angles.is_singular(u, name),
    )


PARAMETRISATIONS: dict[str, Parametrisation] = {
    p.name: p
    for p in (
        Parametrisation(
            "matrix",
            9,
            lambda u: _quaternions.from_matrix(_square(u)),
            lambda q: _flat(_quaternions.to_matrix(q)),
            _matrix_rate,
            _matrix_rate_inverse,
            "none",
            _never,
        ),
        Parametrisation(
            "quaternion",
            4,
            lambda u: check_unit(u, "u", 4, "renormalise it with quaternions.normalise"),
            lambda q: q,
            _quaternions.rate_matrix,
            _quaternions.rate_matrix_inverse,
            "none",
            _never,
        ),
        Parametrisation(
            "axis_angle",
            4,
            _axis_angle_to_quaternion,
            _axis_angle_from_quaternion,
            _axis_angle_rate,
            _axis_angle_rate_inverse,
            "θ = 2πk: the axis is undefined",
            lambda u: _whole_turn(u[..., 3]),
        ),
        Parametrisation(
            "rotation_vector",
            3,
            _vector_to_quaternion,
            _quaternions.to_rotation_vector,
            _vector_rate,
            _vector_rate_inverse,
            "θ = 2πk, k ≥ 1: the Jacobian loses rank",
            _vector_singular,
        ),
        Parametrisation(
            "rodrigues",
            3,
            _rodrigues_to_quaternion,
            _rodrigues_from_quaternion,
            _rodrigues_rate,
            _rodrigues_rate_inverse,
            "θ = π: the parameters are infinite",
            _never,
        ),
        *(_sequence(name) for name in _angles.SEQUENCES),
    )
}


def _find(name: str) -> Parametrisation:
    return PARAMETRISATIONS[one_of(name, "parametrisation", tuple(PARAMETRISATIONS))]


def _parameters(u: ArrayLike, p: Parametrisation) -> Array:
    array = real_array(u, "u")
    if p.name == "matrix" and array.shape[-2:] == (3, 3):
        array = _flat(array)
    return real_array(array, "u", (p.size,))


def convert(u: ArrayLike, source: str, target: str) -> Array:
    """Convert rotation parameters, for instance from "zxz" angles to a quaternion.

    Parameters
    ----------
    u
        Parameters of the source, shape (..., n); a matrix may also have shape (..., 3, 3).
    source, target
        Names in `PARAMETRISATIONS`.

    Returns
    -------
    array
        Parameters of the target, shape (..., n); a matrix has shape (..., 3, 3).

    Notes
    -----
    The quaternion is the hub: it has no singular set and keeps tiny angles. Sequences at their
    singularity return the solution with third angle 0; `angles.from_matrix` also reports it.

    Examples
    --------
    >>> convert([0.0, 0.0, np.pi / 2], "rotation_vector", "quaternion").round(6)
    array([0.707107, 0.      , 0.      , 0.707107])
    """
    start, end = _find(source), _find(target)
    result = end.from_quaternion(start.to_quaternion(_parameters(u, start)))
    return _square(result) if target == "matrix" else result


def is_singular(parametrisation: str, u: ArrayLike) -> Array:
    """Whether E(u) has no inverse: u is on the parametrisation's singular set.

    Examples
    --------
    >>> bool(is_singular("zxz", [0.3, 0.0, 0.2])), bool(is_singular("xyz", [0.3, 0.0, 0.2]))
    (True, False)
    """
    p = _find(parametrisation)
    return p.is_singular(_parameters(u, p))


def rate_matrix(parametrisation: str, u: ArrayLike, axes: Axes = "body") -> Array:
    """Matrix E(u) of ω = E(u) u̇ for any parametrisation, shape (..., 3, n).

    Examples
    --------
    >>> rate_matrix("rodrigues", [0.0, 0.0, 1.0]).round(12) + 0.0
    array([[ 1.,  1.,  0.],
           [-1.,  1.,  0.],
           [ 0.,  0.,  1.]])
    """
    p = _find(parametrisation)
    return p.rate_matrix(_parameters(u, p), axes)


def rate_matrix_inverse(parametrisation: str, u: ArrayLike, axes: Axes = "body") -> Array:
    """Matrix of u̇ = E⁻¹(u) ω for any parametrisation, shape (..., n, 3).

    Raises on the parametrisation's singular set.

    Examples
    --------
    >>> g = [0.1, 0.2, 0.3]
    >>> E, E_inverse = rate_matrix("rodrigues", g), rate_matrix_inverse("rodrigues", g)
    >>> np.allclose(E @ E_inverse, np.eye(3))
    True
    """
    p = _find(parametrisation)
    return p.rate_matrix_inverse(_parameters(u, p), axes)
