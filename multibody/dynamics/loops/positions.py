"""Position of a joint from the pose of its two frames: the inverse of its law.

In closed form for the joints that come with the package (`READABLE`), for numbers and symbols; by
least squares over the joint's positions for all others (:func:`solve_position`). All for the axis
z: the frames of a loop joint are turned accordingly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...checks import Array, ArrayLike, real_array
from ...joints import Joint
from ...joints.formulae import twist

__all__ = [
    "READABLE",
    "in_quaternions",
    "is_numeric",
    "position_of",
    "reference_of",
    "solve_position",
]

#: Distance (m, and differences of cosines) of the frames from every position of the joint above
#: which the nearest one is not asked for: the loop is open, and there may be several.
WIDE_OPEN = 0.1
#: Distance below which a position is accepted without looking for a nearer one elsewhere.
CLOSED = 1e-6
#: Other starts that `solve_position` tries.
RESTARTS = 12


def is_numeric(values: Any) -> bool:
    """Whether there are no symbols among the values."""
    return all(isinstance(x, float | int | np.number) for x in np.asarray(values).ravel())


def _near(sine: Any, cosine: Any, reference: Any) -> Any:
    """Angle with this sine and cosine (times one positive number), near a reference."""
    c, s = np.cos(reference), np.sin(reference)
    return reference + np.arctan2(sine * c - cosine * s, cosine * c + sine * s)


def _turn(E: Any, reference: Any) -> Any:
    """Rotation about z."""
    return _near(E[0, 1] - E[1, 0], E[0, 0] + E[1, 1], reference)


def _along(E: Any, r: Any) -> Any:
    """Shift along the successor's z."""
    return E[2, 0] * r[0] + E[2, 1] * r[1] + E[2, 2] * r[2]


def _quaternion(E: Any) -> list[Any]:
    """Unit quaternion, w ≥ 0: the row of 4qqᵀ, which is linear in E, with the largest diagonal."""
    from integrators import where

    R, rows = np.asarray(E).T, np.empty((4, 4), dtype=object)
    for a in range(4):
        rows[a, a] = 1.0
        for k in range(3):
            rows[a, a] = rows[a, a] + (1.0 if a in (0, k + 1) else -1.0) * R[k, k]
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        rows[0, 1 + i] = rows[1 + i, 0] = R[k, j] - R[j, k]
        rows[1 + i, 1 + j] = rows[1 + j, 1 + i] = R[i, j] + R[j, i]
    best, largest = list(rows[0]), rows[0, 0]
    for a in range(1, 4):
        larger = rows[a, a] > largest
        best = [where(larger, new, old) for new, old in zip(rows[a], best)]
        largest = where(larger, rows[a, a], largest)
    size = np.sqrt(sum(x * x for x in best)) * where(best[0] < 0.0, -1.0, 1.0)
    return [x / size for x in best]


def _angles(joint: Any, E: Any, r: Any, reference: Array) -> list[Any]:
    """Angles of an intrinsic sequence, R = Eᵀ = R_i(a) R_j(b) … with the third axis k.

    Of the two triples of three angles it is the one on the reference's side of gimbal lock.
    """
    R = np.asarray(E).T
    i, j = ("xyz".index(letter) for letter in joint.sequence[:2])
    k = 3 - i - j
    s = 1.0 if (j - i) % 3 == 1 else -1.0  # e_i × e_j = s e_k
    a0, b0 = reference[0], reference[1]
    if joint.nv == 2:
        return [_near(s * R[k, j], R[j, j], a0), _near(s * R[i, k], R[i, i], b0)]
    if joint.sequence[2] == joint.sequence[0]:
        g = 1.0 if np.sin(b0) >= 0.0 else -1.0
        sine = g * np.sqrt(R[i, j] * R[i, j] + R[i, k] * R[i, k])
        a = _near(g * R[j, i], -s * g * R[k, i], a0)
        return [a, _near(sine, R[i, i], b0), _near(g * R[i, j], s * g * R[i, k], reference[2])]
    g = 1.0 if np.cos(b0) >= 0.0 else -1.0
    cosine = g * np.sqrt(R[i, i] * R[i, i] + R[i, j] * R[i, j])
    a = _near(-s * g * R[j, k], g * R[k, k], a0)
    c = _near(-s * g * R[i, j], g * R[i, i], reference[2])
    return [a, _near(s * R[i, k], cosine, b0), c]


def _bend(joint: Any, E: Any, r: Any, reference: Array) -> list[Any]:
    """θ/sin θ times the sine vector; by θ/sin θ = Σ (2ⁿn!)²/(2n+1)! zⁿ, z = sin²(θ/2), if small."""
    from integrators import where

    x, y, _ = twist(E)
    z = 0.5 * (1.0 - E[2, 2])
    series: Any = 0.0
    for n in range(13, -1, -1):  # z¹⁴ < 1e-19
        series = 1.0 + series * z * (2.0 * n + 2.0) / (2.0 * n + 3.0)
    small = z < 0.04
    sine = np.sqrt(where(small, 1.0, x * x + y * y))
    ratio = where(small, series, np.arctan2(sine, E[2, 2]) / sine)
    return [x * ratio, y * ratio]


def _screw(joint: Any, E: Any, r: Any, reference: Array) -> list[Any]:
    """The advance tells which turn it is."""
    pitch = joint.parameters[0]
    return [_turn(E, reference[0] if pitch == 0.0 else _along(E, r) / pitch)]


def _pinion(joint: Any, E: Any, r: Any, reference: Array) -> list[Any]:
    radius = joint.parameters[0]
    return [_turn(E, reference[0] if radius == 0.0 else r[0] / radius)]


#: Positions from E, r and a reference, for the axis z: closed forms, for numbers and symbols.
READABLE: dict[str, Callable[[Any, Any, Any, Array], list[Any]]] = {
    "fixed": lambda joint, E, r, near: [],
    "revolute": lambda joint, E, r, near: [_turn(E, near[0])],
    "prismatic": lambda joint, E, r, near: [_along(E, r)],
    "helical": _screw,
    "cylindrical": lambda joint, E, r, near: [_turn(E, near[0]), _along(E, r)],
    "planar": lambda joint, E, r, near: [_turn(E, near[0]), r[0], r[1]],
    "spherical": lambda joint, E, r, near: _quaternion(E),
    "free": lambda joint, E, r, near: [*_quaternion(E), *r],
    "universal": _angles,
    "angles": _angles,
    "constant_velocity": _bend,
    "rack_pinion": _pinion,
    "rolling_sphere": lambda joint, E, r, near: [*_quaternion(E), r[0], r[1]],
}


def solve_position(
    joint: Joint, E: ArrayLike, r: ArrayLike, reference: ArrayLike | None = None, t: float = 0.0
) -> Array:
    """Position of any joint whose pose is nearest to (E, r), by least squares over its positions.

    Parameters
    ----------
    joint
        Any joint; its axis is taken to be z.
    E, r
        Coordinate transform from predecessor to successor, and origin of the successor in
        predecessor coordinates (m).
    reference
        Where to begin; neutral if not given. Angles end within half a turn of it.

    Raises
    ------
    ValueError
        If no position comes near the pose.

    Examples
    --------
    >>> from multibody import UserJoint
    >>> bead = UserJoint(lambda q: (np.eye(3), np.array([q[0], q[0] ** 2 / 2, 0.0])), ["x"])
    >>> solve_position(bead, np.eye(3), [2.0, 2.0, 0.0]).round(9)
    array([2.])
    """
    from scipy.optimize import least_squares

    wanted = np.concatenate([np.ravel(E), np.ravel(r)]).astype(float)
    p, still = np.asarray(joint.parameters, dtype=float), np.zeros(joint.nv)

    # Of a joint made from its pose the law would differentiate as well.
    short = getattr(joint, "pose", None) if joint.is_traceable else None

    def pose(q: Array) -> Array:
        E_q, r_q, *_ = joint.law(t, q, still, p) if short is None else short(t, q, p)
        return np.concatenate([np.ravel(E_q), np.ravel(r_q)]).astype(float)

    start = joint.neutral() if reference is None else joint.check_position(reference)
    rng, best, found = np.random.default_rng(0), np.inf, start
    for attempt in range(RESTARTS + 1):
        q = start if attempt == 0 else joint.random(rng)
        for _ in range(2 if joint.nq else 0):  # the second from a chart about the first's answer

            def residual(u: Array, origin: Array = q) -> Array:
                return pose(joint.retract(origin, u)) - wanted

            zero = np.zeros(len(joint.difference(q, q)))
            q = joint.retract(
                q, least_squares(residual, zero, ftol=1e-15, xtol=1e-15, gtol=1e-15).x
            )
        distance = float(np.abs(pose(q) - wanted).max())
        if distance < best:
            best, found = distance, q
        if best < CLOSED:
            break
    if not best < WIDE_OPEN:
        raise ValueError(
            f"{joint!r}: its frames are {best:.3g} away from every position that was found (m, and "
            "entries of the rotation matrix); close the loop first, by assemble(model, q)"
        )
    for k in set(range(joint.nq)) - in_quaternions(joint):
        trial = found.copy()
        trial[k] -= 2.0 * np.pi * np.round((found[k] - start[k]) / (2.0 * np.pi))
        if np.allclose(pose(trial), pose(found), rtol=0.0, atol=1e-12):
            found = trial
    return found


def in_quaternions(joint: Joint) -> set[int]:
    """Which positions belong to quaternions."""
    return {at + k for at in joint.quaternion_places for k in range(4)}


def reference_of(joint: Joint, reference: ArrayLike | None, loop: str) -> Array | None:
    """One number for each position variable."""
    if reference is None:
        return None
    value = real_array(reference, "reference").astype(float)
    if value.shape not in ((), (joint.nq,)):
        raise ValueError(
            f"loop {loop!r}: expected a reference of one number or {joint.nq} "
            f"({', '.join(joint.coordinates)}), received shape {value.shape}"
        )
    start = joint.neutral()
    plain = [k for k in range(joint.nq) if k not in in_quaternions(joint)]
    start[plain] = np.broadcast_to(value, (joint.nq,))[plain]
    return start


def position_of(joint: Joint, t: Any, E: Any, r: Any, reference: Array | None) -> Any:
    """Position whose pose is (E, r), near a reference."""
    if joint.kind in READABLE:
        near = np.zeros(joint.nq) if reference is None else reference
        return np.array(READABLE[joint.kind](joint, E, r, near))
    if is_numeric(E) and is_numeric(r):
        return solve_position(joint, E, r, reference, t)
    from integrators import TracingError

    raise TracingError(
        f"the position of {joint!r} in a loop is found by iteration, which cannot be traced; leave "
        "traced=None or False"
    )
