"""Position of a joint from the pose of its two frames: the inverse of its law.

In closed form for joints that have one (:meth:`Joint.position`), for numbers and symbols; by least
squares over the joint's positions for all others (:func:`solve_position`). All for the axis z: the
frames of a loop joint are turned accordingly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....checks import Array, ArrayLike, real_array
from ....joints import Joint

__all__ = [
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
    near = np.zeros(joint.nq) if reference is None else reference
    position = joint.position(E, r, near)
    if position is not None:
        return np.array(position)
    if is_numeric(E) and is_numeric(r):
        return solve_position(joint, E, r, reference, t)
    from integrators.tracing import TracingError

    raise TracingError(
        f"the position of {joint!r} in a loop is found by iteration, which cannot be traced; leave "
        "traced=None or False"
    )
