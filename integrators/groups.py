"""Groups ready to use as manifolds: vectors, rotations, rigid motions, and products of them.

Each is written once, for floats and for symbols: nothing is tested with ``if``, and functions such
as sin θ/θ are series in s = θ² near 0, so that values and derivatives are accurate to rounding
everywhere. All are in body form: y ⊞ z = y·exp(z), and

    dexp⁻¹(z) ξ = ξ + ½ [z, ξ] + Σ_{k≥1} B₂ₖ/(2k)! [z, [z, … ξ]]      (2k brackets)

is summed exactly (:cite:`hairer2006`, III.4). It exists for angles below 2π: a step must not turn
further. Quaternions are Hamilton's, scalar first.

>>> import numpy as np
>>> from integrators import IVP, groups, solve
>>> turning = groups.rotations_by_quaternion().manifold(lambda t, q: [0.0, 0.0, 1.0])
>>> f = lambda t, q: 0.5 * np.array([-q[3], q[2], -q[1], q[0]])
>>> sol = solve(IVP(f, [1, 0, 0, 0], (0, np.pi), manifold=turning), method="RKMK1", step=np.pi / 4)
>>> bool(np.allclose(sol.y[:, -1], [0, 0, 0, 1], rtol=0, atol=1e-15))  # exact: the rate is constant
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import factorial
from typing import Any

import numpy as np

from .manifold import Manifold
from .tracing import where

__all__ = [
    "Group",
    "euclidean",
    "planar_motions",
    "product",
    "rigid_motions",
    "rotations_by_matrix",
    "rotations_by_quaternion",
]


@dataclass(frozen=True, eq=False)
class Group:
    """A manifold on which nothing moves yet; :meth:`manifold` adds the velocity.

    Attributes
    ----------
    size, dimension
        n and m: lengths of a point y and of a tangent vector z.
    retract, rate, difference, scale
        As in :class:`~integrators.Manifold`.
    """

    size: int
    dimension: int
    retract: Callable[..., Any]
    rate: Callable[..., Any]
    difference: Callable[..., Any]
    scale: Callable[..., Any]

    def manifold(self, velocity: Callable[..., Any]) -> Manifold:
        """Return the manifold with this velocity(t, y) or velocity(t, y, p)."""
        return Manifold(
            self.dimension, velocity, self.retract, self.rate, self.difference, self.scale
        )


# -------------------------------------------------------------------- functions of s = θ²

NEAR = 1.0  # below this value of s the series are used; they converge up to 4π² and beyond
TERMS = 14  # more than any of them needs there
NEGLIGIBLE = 1e-18  # a coefficient so much smaller than the first adds nothing for s < 1


def _cotangent_series() -> list[Fraction]:
    """Coefficients of (θ/2) cot(θ/2) = Σ aₖ sᵏ, from its product with sin(θ/2)/(θ/2)."""
    quarter = Fraction(-1, 4)
    a: list[Fraction] = []
    for k in range(TERMS):
        cosine = quarter**k / factorial(2 * k)
        a.append(
            cosine - sum(a[j] * quarter ** (k - j) / factorial(2 * (k - j) + 1) for j in range(k))
        )
    return a


def _needed(coefficients: Iterable[Fraction]) -> list[float]:
    numbers = [float(a) for a in coefficients]
    return [a for a in numbers if a == 0.0 or abs(a) > NEGLIGIBLE * abs(numbers[0])]


_A = _cotangent_series()
_COS_HALF = _needed(Fraction(-1, 4) ** k / factorial(2 * k) for k in range(TERMS))
_SIN_HALF = _needed(Fraction(-1, 4) ** k / factorial(2 * k + 1) / 2 for k in range(TERMS))
_CUBIC = _needed(Fraction((-1) ** k, factorial(2 * k + 3)) for k in range(TERMS))
_SECOND = _needed(-a for a in _A[1:])
_SECOND_OF_TWO = _needed((k - 2) * _A[k] for k in range(1, TERMS))
_FOURTH_OF_TWO = _needed((k - 1) * _A[k] for k in range(2, TERMS))


def _even(s: Any, coefficients: Sequence[float], beyond: Callable[[Any], Any]) -> Any:
    """A function of s: its series for small s, beyond(θ) for the others; both are evaluated."""
    near = np.minimum(s, NEAR)
    series = 0.0
    for a in reversed(coefficients):
        series = series * near + a
    return where(s < NEAR, series, beyond(np.sqrt(np.maximum(s, NEAR))))


def _half_angle(s: Any) -> tuple[Any, Any]:
    """cos(θ/2) and sin(θ/2)/θ."""
    cosine = _even(s, _COS_HALF, lambda r: np.cos(0.5 * r))
    return cosine, _even(s, _SIN_HALF, lambda r: np.sin(0.5 * r) / r)


def _cotangent(r: Any) -> Any:
    """(θ/2) cot(θ/2)."""
    return 0.5 * r * np.cos(0.5 * r) / np.sin(0.5 * r)


def _cotangent_slope(r: Any) -> Any:
    """s times the derivative of (θ/2) cot(θ/2) by s."""
    return 0.5 * (_cotangent(r) - (0.5 * r / np.sin(0.5 * r)) ** 2)


def _second(s: Any) -> Any:
    """Coefficient of u × (u × w) in dexp⁻¹ of rotations: (1 − (θ/2) cot(θ/2))/θ² = 1/12 + …"""
    return _even(s, _SECOND, lambda r: (1.0 - _cotangent(r)) / (r * r))


def _second_and_fourth(s: Any) -> tuple[Any, Any]:
    """Coefficients of ad² and ad⁴ in dexp⁻¹ of rigid motions: 1/12 + … and −1/720 + …

    The operator ad has the double eigenvalues 0, ±iθ, so dexp⁻¹ = 1 + ½ ad + A ad² + B ad⁴ where
    1 − A s + B s² has the value and the slope of (θ/2) cot(θ/2) at s = θ².
    """
    second = _even(
        s,
        _SECOND_OF_TWO,
        lambda r: (2.0 * (1.0 - _cotangent(r)) + _cotangent_slope(r)) / (r * r),
    )
    fourth = _even(
        s,
        _FOURTH_OF_TWO,
        lambda r: (1.0 - _cotangent(r) + _cotangent_slope(r)) / (r * r) ** 2,
    )
    return second, fourth


# -------------------------------------------------------------------- vectors


def euclidean(n: int) -> Group:
    """Vectors of n numbers under addition: y ⊞ z = y + z.

    Relative tolerances refer to each component, as everywhere else.

    Examples
    --------
    >>> euclidean(2).retract(np.array([1.0, 2.0]), np.array([0.5, 0.0]))
    array([1.5, 2. ])
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be the number of components, at least 1; got {n!r}")
    return Group(
        int(n),
        int(n),
        retract=lambda y, z: y + z,
        rate=lambda z, xi: xi,
        difference=lambda y, y1: y1 - y,
        scale=np.abs,
    )


def _cross(a: Any, b: Any) -> Any:
    return np.array(
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ]
    )


def _square(z: Any) -> Any:
    return z[0] * z[0] + z[1] * z[1] + z[2] * z[2]


# -------------------------------------------------------------------- rotations


def _times(a: Any, b: Any) -> Any:
    """Hamilton's product."""
    return np.array(
        [
            a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
        ]
    )


def _conjugate(q: Any) -> Any:
    return np.array([q[0], -q[1], -q[2], -q[3]])


def _turned(q: Any, v: Any) -> Any:
    """The vector v rotated by the unit quaternion q: v + 2 q₀ (n × v) + 2 n × (n × v)."""
    axis = q[1:4]
    once = 2.0 * _cross(axis, v)
    return v + q[0] * once + _cross(axis, once)


def _retract_quaternion(q: Any, z: Any) -> Any:
    cosine, sine = _half_angle(_square(z))
    return _times(q, np.array([cosine, sine * z[0], sine * z[1], sine * z[2]]))


def _rate_of_rotation(z: Any, w: Any) -> Any:
    once = _cross(z, w)
    return w + 0.5 * once + _second(_square(z)) * _cross(z, once)


TINY = 1e-300  # keeps 0/0 away; far below any square that matters


def _rotation_vector(q: Any) -> Any:
    """The smallest z with exp(z) = q or −q: 2 arctan(|n|/q₀) along n."""
    length = np.sqrt(np.maximum(_square(q[1:4]), TINY))
    factor = 2.0 * np.arctan2(length, np.abs(q[0])) / length
    return where(q[0] < 0.0, -factor, factor) * q[1:4]


def _ones(y: Any) -> Any:
    return np.ones(3)


def rotations_by_quaternion() -> Group:
    """Rotations as unit quaternions (n = 4, m = 3): q ⊞ z = q·(cos θ/2, sin θ/2 z/θ), θ = |z|.

    The tangent vector is the angular velocity in body axes, q̇ = ½ q·(0, ω). Errors are angles in
    radians, and tolerances atol + rtol refer to them. ``difference`` takes q and −q as the same.

    Examples
    --------
    >>> group = rotations_by_quaternion()
    >>> quarter = group.retract(np.array([1.0, 0, 0, 0]), np.array([0, 0, np.pi / 2]))
    >>> quarter.round(12)
    array([0.70710678, 0.        , 0.        , 0.70710678])
    >>> group.difference(np.array([1.0, 0, 0, 0]), -quarter).round(12) + 0.0
    array([0.        , 0.        , 1.57079633])
    """
    return Group(
        4,
        3,
        retract=_retract_quaternion,
        rate=_rate_of_rotation,
        difference=lambda q, q1: _rotation_vector(_times(_conjugate(q), q1)),
        scale=_ones,
    )


def _retract_matrix(y: Any, z: Any) -> Any:
    """R (1 + a ẑ + b ẑ²), a = sin θ/θ and b = (1 − cos θ)/θ², both from the half angle."""
    s = _square(z)
    cosine, sine = _half_angle(s)
    a, b = 2.0 * sine * cosine, 2.0 * sine * sine
    diagonal = 1.0 - b * s
    x, y_, z_ = z[0], z[1], z[2]
    turn = np.array(
        [
            [diagonal + b * x * x, b * x * y_ - a * z_, b * x * z_ + a * y_],
            [b * x * y_ + a * z_, diagonal + b * y_ * y_, b * y_ * z_ - a * x],
            [b * x * z_ - a * y_, b * y_ * z_ + a * x, diagonal + b * z_ * z_],
        ]
    )
    return (y.reshape(3, 3) @ turn).reshape(9)


def _quaternion_of(R: Any) -> Any:
    """A quaternion of a rotation matrix: the longest of the four rows of the matrix 4 q qᵀ."""
    a, b, c = R[0, 0], R[1, 1], R[2, 2]
    i, j, k = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1]
    rows = [
        np.array([1.0 + a + b + c, i, j, k]),
        np.array([i, 1.0 + a - b - c, xy, xz]),
        np.array([j, xy, 1.0 - a + b - c, yz]),
        np.array([k, xz, yz, 1.0 - a - b + c]),
    ]
    best, square = rows[0], rows[0][0]
    for place in (1, 2, 3):
        better = rows[place][place] > square
        best = where(better, rows[place], best)
        square = where(better, rows[place][place], square)
    return best / (2.0 * np.sqrt(square))


def _difference_matrix(y: Any, y1: Any) -> Any:
    return _rotation_vector(_quaternion_of(y.reshape(3, 3).T @ y1.reshape(3, 3)))


def rotations_by_matrix() -> Group:
    """Rotations as 3×3 matrices, row by row (n = 9, m = 3): R ⊞ z = R·exp(ẑ).

    The tangent vector is the angular velocity in body axes, Ṙ = R ω̂; errors are angles.

    Examples
    --------
    >>> group = rotations_by_matrix()
    >>> group.retract(np.eye(3).ravel(), np.array([0, 0, np.pi / 2])).round(12).reshape(3, 3) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    return Group(9, 3, _retract_matrix, _rate_of_rotation, _difference_matrix, _ones)


# -------------------------------------------------------------------- rigid motions


def _bracket(a: Any, b: Any) -> Any:
    """[(ω, v), (ω', v')] = (ω × ω', ω × v' + v × ω')."""
    turn, slide = _cross(a[0:3], b[0:3]), _cross(a[0:3], b[3:6]) + _cross(a[3:6], b[0:3])
    return np.concatenate([turn, slide])


def _retract_motion(y: Any, z: Any) -> Any:
    """(q, p) ⊞ (φ, u) = (q·exp φ, p + R(q) V u), V = 1 + (1 − cos θ)/θ² φ̂ + (θ − sin θ)/θ³ φ̂²."""
    turn, slide = z[0:3], z[3:6]
    s = _square(turn)
    _, sine = _half_angle(s)
    cubic = _even(s, _CUBIC, lambda r: (r - np.sin(r)) / r**3)
    once = _cross(turn, slide)
    way = slide + 2.0 * sine * sine * once + cubic * _cross(turn, once)
    return np.concatenate([_retract_quaternion(y[0:4], turn), y[4:7] + _turned(y[0:4], way)])


def _rate_of_motion(z: Any, xi: Any) -> Any:
    second, fourth = _second_and_fourth(_square(z[0:3]))
    once = _bracket(z, xi)
    twice = _bracket(z, once)
    return xi + 0.5 * once + second * twice + fourth * _bracket(z, _bracket(z, twice))


def _difference_motion(y: Any, y1: Any) -> Any:
    back = _conjugate(y[0:4])
    turn = _rotation_vector(_times(back, y1[0:4]))
    way = _turned(back, y1[4:7] - y[4:7])
    once = _cross(turn, way)
    slide = way - 0.5 * once + _second(_square(turn)) * _cross(turn, once)  # V⁻¹
    return np.concatenate([turn, slide])


def _scale_motion(y: Any) -> Any:
    distance = np.sqrt(_square(y[4:7]))
    return np.array([1.0, 1.0, 1.0, distance, distance, distance])


def rigid_motions() -> Group:
    """Rigid motions as unit quaternion and position (n = 7, m = 6): (q, p) ⊞ (φ, u).

    The tangent vector is (ω, v), angular first: angular velocity and velocity of the origin, both
    in body axes, q̇ = ½ q·(0, ω) and ṗ = R(q) v. Relative tolerances refer to 1 radian and to |p|.

    Examples
    --------
    A screw motion: half a turn about z while moving 2 along x of the body.

    >>> group = rigid_motions()
    >>> y = group.retract(np.array([1.0, 0, 0, 0, 0, 0, 0]), np.array([0, 0, np.pi, 2, 0, 0]))
    >>> y[4:].round(12) + 0.0  # half a circle of diameter 4/π
    array([0.        , 1.27323954, 0.        ])
    """
    return Group(7, 6, _retract_motion, _rate_of_motion, _difference_motion, _scale_motion)


# -------------------------------------------------------------------- motions of the plane


def _retract_planar(y: Any, z: Any) -> Any:
    """(φ, p) ⊞ (θ, u) = (φ + θ, p + R(φ) V u), V = [sin θ, cos θ − 1; 1 − cos θ, sin θ]/θ."""
    s = z[0] * z[0]
    cosine, sine = _half_angle(s)
    along, across = 2.0 * sine * cosine, 2.0 * sine * sine * z[0]
    x, w = along * z[1] - across * z[2], across * z[1] + along * z[2]
    c, d = np.cos(y[0]), np.sin(y[0])
    return np.array([y[0] + z[0], y[1] + c * x - d * w, y[2] + d * x + c * w])


def _rate_of_planar(z: Any, xi: Any) -> Any:
    """v + ½ J w − θ A w with w = θ v − ω u, J the quarter turn: all brackets are multiples of w."""
    x, y = z[0] * xi[1] - xi[0] * z[1], z[0] * xi[2] - xi[0] * z[2]
    second = z[0] * _second(z[0] * z[0])
    return np.array([xi[0], xi[1] - 0.5 * y - second * x, xi[2] + 0.5 * x - second * y])


def _difference_planar(y: Any, y1: Any) -> Any:
    turn = y1[0] - y[0]
    c, s = np.cos(y[0]), np.sin(y[0])
    x, w = y1[1] - y[1], y1[2] - y[2]
    x, w = c * x + s * w, c * w - s * x
    # V⁻¹ = (θ/2) cot(θ/2) − (θ/2) J
    along = 1.0 - turn * turn * _second(turn * turn)
    return np.array([turn, along * x + 0.5 * turn * w, along * w - 0.5 * turn * x])


def _scale_planar(y: Any) -> Any:
    distance = np.sqrt(y[1] * y[1] + y[2] * y[2])
    return np.array([1.0, distance, distance])


def planar_motions() -> Group:
    """Motions of the plane as angle and position (n = m = 3): (φ, x, y) ⊞ (θ, u_x, u_y).

    The tangent vector is (ω, v_x, v_y) with the velocity in body axes. The angle counts turns.

    Examples
    --------
    >>> planar_motions().retract(np.zeros(3), np.array([np.pi, 2.0, 0.0])).round(12) + 0.0
    array([3.14159265, 0.        , 1.27323954])
    """
    return Group(3, 3, _retract_planar, _rate_of_planar, _difference_planar, _scale_planar)


# -------------------------------------------------------------------- products


def product(*groups: Group) -> Group:
    """Points of several groups one after the other; each moves in its own way.

    Examples
    --------
    >>> state = product(rotations_by_quaternion(), euclidean(3))  # attitude and angular velocity
    >>> state.size, state.dimension
    (7, 6)
    """
    if not groups or not all(isinstance(group, Group) for group in groups):
        raise TypeError(
            "product takes groups such as euclidean(3) and rotations_by_quaternion(); "
            f"got {groups!r}"
        )
    points = _slices([group.size for group in groups])
    tangents = _slices([group.dimension for group in groups])
    parts = list(zip(groups, points, tangents))

    def retract(y: Any, z: Any) -> Any:
        return np.concatenate([g.retract(y[at], z[by]) for g, at, by in parts])

    def rate(z: Any, xi: Any) -> Any:
        return np.concatenate([g.rate(z[by], xi[by]) for g, _, by in parts])

    def difference(y: Any, y1: Any) -> Any:
        return np.concatenate([g.difference(y[at], y1[at]) for g, at, _ in parts])

    def scale(y: Any) -> Any:
        return np.concatenate([g.scale(y[at]) for g, at, _ in parts])

    return Group(points[-1].stop, tangents[-1].stop, retract, rate, difference, scale)


def _slices(lengths: Sequence[int]) -> list[slice]:
    ends = list(accumulate(lengths))
    return [slice(end - length, end) for end, length in zip(ends, lengths)]
