"""Angle sequences: to rotation matrices and back, branches, singularities, rates.

A sequence is named by its intrinsic axes in order: "zxz" is R = Rz(a) Rx(b) Rz(c),
active, body → world. The six with a repeated axis are Euler sequences, the six with three
different axes are Cardan (Bryan, Tait–Bryan) sequences. The course notes' Euler 313 is "zxz" and
their Bryan 123 is "xyz"; their matrices 4.10 and 4.11 are the transposes (errata E34–E39).

Rotations about fixed axes, one after the other, are named "extrinsic xyz": R = Rz(c) Ry(b) Rx(a).
Matrices, quaternions, rates and inverses know sequences of any length, such as "z" or
"extrinsic zyzx"; what a rotation tells about its angles is a matter of three.

One formula serves the twelve of three. With axes i, j, k of the sequence (k the missing axis for
an Euler sequence) and ε = ±1 the parity of (i, j, k), the entries of R that matter are

    Euler iji     R_ii = cos b,   R_ij = sin b sin c,   R_ik = ε sin b cos c
    Cardan ijk    R_ik = ε sin b, R_ii = cos b cos c,   R_ij = −ε cos b sin c

and the first angle follows from the column R R_last(−c) e_j = R_i(a) e_j.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...checks import Array, ArrayLike, check_rotation, one_of, real_array
from . import quaternions
from .quaternions import Axes
from .rotations import primitive

__all__ = [
    "CARDAN",
    "EULER",
    "EXTRINSIC",
    "SEQUENCES",
    "SequenceAngles",
    "from_matrix",
    "inverse_sequence",
    "is_singular",
    "other_branch",
    "rate_matrix",
    "rate_matrix_inverse",
    "to_matrix",
    "to_quaternion",
]

EULER = ("xyx", "xzx", "yxy", "yzy", "zxz", "zyz")
CARDAN = ("xyz", "xzy", "yxz", "yzx", "zxy", "zyx")
SEQUENCES = EULER + CARDAN

#: What precedes the axes of a sequence of rotations about fixed axes.
EXTRINSIC = "extrinsic "

#: sin b (Euler) or cos b (Cardan) below which a rotation is reported as singular: there the
#: first and third angles separately carry less than half of the digits of double precision.
SINGULAR_TOLERANCE = 1.5e-8

#: Below this the same quantity is rounding; the third angle is then set to 0.
_ROUNDING = 1e-15


class SequenceAngles(NamedTuple):
    """Angles of a sequence and what is known about them at a singularity."""

    values: Array
    """(a, b, c), shape (..., 3). They reproduce the rotation everywhere, singular or not."""
    singular: Array
    """True where the first and third axes are (nearly) parallel, so a and c are not unique."""
    combination: Array
    """a + c or a − c, the one that stays well defined at the nearest singularity, in (−π, π]."""
    sign: Array
    """+1 where the combination is a + c, −1 where it is a − c."""


def _letters(sequence: str) -> tuple[str, bool]:
    """Axes of a sequence in intrinsic order, and whether its angles are in the other one."""
    if not isinstance(sequence, str):
        raise TypeError(f"sequence: expected a name such as 'zxz', received {sequence!r}")
    letters = sequence.removeprefix(EXTRINSIC)
    if not letters or set(letters) - set("xyz") or any(a == b for a, b in pairwise(letters)):
        raise ValueError(
            f"sequence: expected letters x, y, z, none after itself, such as 'zxz', or 'extrinsic "
            f"zxz' for fixed axes, received {sequence!r}"
        )
    fixed = letters != sequence
    return (letters[::-1], True) if fixed else (letters, False)


def _intrinsic(angles: ArrayLike, sequence: str) -> tuple[Array, str, bool]:
    """Angles and letters in intrinsic order, and whether they were the other way round."""
    letters, fixed = _letters(sequence)
    found = real_array(angles, "angles", (len(letters),))
    return (found[..., ::-1] if fixed else found), letters, fixed


def _three(sequence: str) -> tuple[str, bool]:
    letters, fixed = _letters(sequence)
    if letters not in SEQUENCES:
        raise ValueError(
            f"sequence: expected three axes, such as 'zxz', received "
            f"{sequence!r}; only those determine their angles"
        )
    return letters, fixed


def _axes(sequence: str) -> tuple[int, int, int, int, bool]:
    """Return i, j, k, the parity ε of (i, j, k), and whether the first axis is repeated."""
    i, j, last = ("xyz".index(letter) for letter in _three(sequence)[0])
    k = 3 - i - j
    parity = 1 if (j - i) % 3 == 1 else -1
    return i, j, k, parity, last == i


def to_matrix(angles: ArrayLike, sequence: str) -> Array:
    """Rotation matrix R_i(a) R_j(b) R_l(c) of a sequence of intrinsic rotations.

    Parameters
    ----------
    angles
        In radians, shape (..., n) for n axes.
    sequence
        One of `SEQUENCES`, such as "zxz", or any other axes; "extrinsic zxz" for fixed axes.

    Returns
    -------
    array
        R, body → world, shape (..., 3, 3).

    Examples
    --------
    >>> to_matrix([0.7, 1.1, -0.4], "zxz").round(6)
    array([[ 0.81826 ,  0.028696,  0.574132],
           [ 0.458263,  0.570413, -0.681633],
           [-0.347052,  0.820856,  0.453596]])
    >>> np.allclose(to_matrix([0.1, 0.2, 0.3], "extrinsic xyz"), to_matrix([0.3, 0.2, 0.1], "zyx"))
    True
    """
    given, letters, _ = _intrinsic(angles, sequence)
    turns = (primitive("xyz".index(letter), given[..., n]) for n, letter in enumerate(letters))
    return reduce(np.matmul, turns)


def to_quaternion(angles: ArrayLike, sequence: str) -> Array:
    """Return the unit quaternion of a sequence; keeps angles as small as 1e-300.

    Examples
    --------
    >>> to_quaternion([0.0, np.pi, 0.0], "xyz").round(12)
    array([0., 0., 1., 0.])
    """
    given, letters, _ = _intrinsic(angles, sequence)
    half = given / 2
    factors = []
    for n, letter in enumerate(letters):
        q = np.zeros((*half.shape[:-1], 4), dtype=half.dtype)
        q[..., 0] = np.cos(half[..., n])
        q[..., 1 + "xyz".index(letter)] = np.sin(half[..., n])
        factors.append(q)
    return quaternions.canonical(reduce(quaternions.multiply, factors))


def from_matrix(R: ArrayLike, sequence: str) -> SequenceAngles:
    """Angles of a rotation matrix: b in [0, π] (Euler) or [−π/2, π/2] (Cardan).

    The other solution is given by `other_branch`; there are no more. At a singularity the
    third angle is 0, the first is the well-defined combination, and `singular` says so.

    Notes
    -----
    The third angle c comes from one row of R, the second by atan2 (no arcsin, no arccos), and
    the first from R R_l(−c), so that an error of c near the singularity is compensated by a:
    the three reproduce R to rounding at every rotation (notes, Eq 4.13, is erratum E38).

    Examples
    --------
    >>> found = from_matrix(to_matrix([0.3, np.pi / 2, 0.2], "xyz"), "xyz")
    >>> found.values.round(6), bool(found.singular), float(found.combination)
    (array([0.5     , 1.570796, 0.      ]), True, 0.5)
    """
    R = check_rotation(R)
    i, j, k, parity, euler = _axes(sequence)
    fixed = _three(sequence)[1]
    if euler:
        y, x = R[..., i, j], parity * R[..., i, k]
        distance = np.hypot(x, y)  # sin b ≥ 0
        b = np.arctan2(distance, R[..., i, i])
    else:
        y, x = -parity * R[..., i, j], R[..., i, i]
        distance = np.hypot(x, y)  # cos b ≥ 0
        b = np.arctan2(parity * R[..., i, k], distance)
    c = np.where(distance < _ROUNDING, 0.0, np.arctan2(y, x))
    other = k if euler else i
    turn = -parity if euler else parity
    column = np.cos(c)[..., None] * R[..., :, j] + turn * np.sin(c)[..., None] * R[..., :, other]
    a = np.arctan2(parity * column[..., k], column[..., j])
    if euler:
        sign = np.where(R[..., i, i] >= 0.0, 1.0, -1.0)
    else:
        sign = np.where(b >= 0.0, 1.0, -1.0) * parity
    values = np.stack([c, b, a] if fixed else [a, b, c], axis=-1).astype(R.dtype)
    singular = np.asarray(distance < SINGULAR_TOLERANCE)
    combined = _wrap((c if fixed else a) + sign * (a if fixed else c))
    return SequenceAngles(values, singular, combined.astype(R.dtype), sign)


def _wrap(angle: Array) -> Array:
    """Map angles to (−π, π] without touching those already there."""
    outside = (angle > np.pi) | (angle <= -np.pi)
    return np.asarray(
        np.where(outside, angle - 2 * np.pi * np.ceil(angle / (2 * np.pi) - 0.5), angle)
    )


def other_branch(angles: ArrayLike, sequence: str) -> Array:
    """Second solution for the same rotation, angles in (−π, π].

    (a+π, −b, c+π) for Euler sequences, (a+π, π−b, c+π) for Cardan sequences.

    Examples
    --------
    >>> u = [0.1, 0.2, 0.3]
    >>> np.allclose(to_matrix(other_branch(u, "xyz"), "xyz"), to_matrix(u, "xyz"))
    True
    """
    euler = _axes(sequence)[-1]
    angles = real_array(angles, "angles", (3,))
    a, b, c = np.moveaxis(angles, -1, 0)
    return _wrap(np.stack([a + np.pi, -b if euler else np.pi - b, c + np.pi], axis=-1))


def inverse_sequence(angles: ArrayLike, sequence: str) -> tuple[Array, str]:
    """Angles and sequence of the inverse rotation: reversed order, opposite signs (Eq 4.12).

    Examples
    --------
    >>> inverse_sequence([0.1, 0.2, 0.3], "zxy")
    (array([-0.3, -0.2, -0.1]), 'yxz')
    """
    letters, fixed = _letters(sequence)
    named = letters if fixed else letters[::-1]
    turned = -real_array(angles, "angles", (len(letters),))[..., ::-1]
    return turned, EXTRINSIC + named if fixed else named


def is_singular(angles: ArrayLike, sequence: str, tolerance: float = SINGULAR_TOLERANCE) -> Array:
    """Whether the first and third axes are parallel: b = kπ (Euler) or π/2 + kπ (Cardan).

    Examples
    --------
    >>> bool(is_singular([0.1, np.pi / 2, 0.3], "xyz")), bool(is_singular([0.1, 0, 0.3], "zxz"))
    (True, True)
    """
    euler = _axes(sequence)[-1]
    b = real_array(angles, "angles", (3,))[..., 1]
    return np.asarray(np.abs(np.sin(b) if euler else np.cos(b)) < tolerance)


def rate_matrix(angles: ArrayLike, sequence: str, axes: Axes = "body") -> Array:
    """Matrix E(u) of ω = E(u) u̇, whose columns are the instantaneous axes.

    Parameters
    ----------
    angles
        u, shape (..., n) for n axes.
    sequence
        One of `SEQUENCES`, any other axes, or "extrinsic …" with fixed ones.
    axes
        Components of ω: "body" or "world".

    Notes
    -----
    For "xyz" in body axes this is [[cβcθ, sθ, 0], [−cβsθ, cθ, 0], [sβ, 0, 1]] (erratum E39).
    |det E| is cos b (Cardan) or sin b (Euler).

    Examples
    --------
    >>> rate_matrix([0.3, 0.0, 0.0], "xyz")
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    one_of(axes, "axes", ("body", "world"))
    given, letters, fixed = _intrinsic(angles, sequence)
    places = ["xyz".index(letter) for letter in letters]
    turns = [primitive(place, given[..., n]) for n, place in enumerate(places)]
    columns = []
    for n, place in enumerate(places):
        # The axis, carried along by the turns before it; seen from the body, by those after it.
        passed = turns[:n] if axes == "world" else turns[n + 1 :]
        unit = np.broadcast_to(np.eye(3, dtype=given.dtype), turns[n].shape)
        R = reduce(np.matmul, passed, unit)
        columns.append(R[..., :, place] if axes == "world" else R[..., place, :])
    return np.stack(columns[::-1] if fixed else columns, axis=-1)


def rate_matrix_inverse(angles: ArrayLike, sequence: str, axes: Axes = "body") -> Array:
    """Matrix of u̇ = E⁻¹(u) ω; raises at the singularity, where it does not exist.

    Notes
    -----
    The second axis is perpendicular to the other two, so the reciprocal basis needs cross
    products and one division by det E only.

    Examples
    --------
    >>> u = [0.3, 0.4, 0.5]
    >>> np.allclose(rate_matrix_inverse(u, "zyx") @ rate_matrix(u, "zyx"), np.eye(3))
    True
    """
    if np.any(is_singular(angles, sequence)):
        raise ValueError(
            f"angles: expected a rotation away from the singularity of {sequence!r}, received "
            f"{np.asarray(angles)!r:.80}; change the sequence or use quaternions there"
        )
    E = rate_matrix(angles, sequence, axes)
    e1, e2, e3 = E[..., :, 0], E[..., :, 1], E[..., :, 2]
    e31 = np.cross(e3, e1)
    determinant = np.sum(e2 * e31, axis=-1)[..., None, None]
    return np.stack([np.cross(e2, e3), e31, np.cross(e1, e2)], axis=-2) / determinant
