"""What a mechanism conserves: energy, and the components of momentum that nothing changes.

The power of all outer forces in a rigid motion m = (w, u) of the whole mechanism (angular velocity
w, velocity u of the base's origin) is the rate of m·h, where h is the spatial momentum. So m·h is
conserved if every outer force is powerless in m:

* weight: w parallel to g, and u across it;
* a spring between a body and a point a of the base, along whatever line it pulls: u + w × a = 0;
* a joint at the base: m is one of the motions S that it leaves free, and no force acts on the
  velocity variables that this motion needs (dampers, springs, stops, rotors, actuators).

These conditions are linear in m. Those of joints are asked at positions drawn at random, where
what does not hold always does not hold at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...checks import Array
from ...dynamics.loops.closed_loop import constraints
from ...dynamics.motion import totals_along

if TYPE_CHECKING:
    from ...model import Body, Model

__all__ = ["conserved_motions", "invariants"]

#: Positions at which joints at the base are asked for their freedoms.
SAMPLES = 3

#: Size below which a condition counts as met and a length as zero: far above rounding in numbers
#: of ordinary size, far below what a designer means.
CONDITION_TOLERANCE = 1e-9

AXES = "xyz"


def invariants(model: Model, driven: Array | None = None) -> dict[str, Callable[..., float]]:
    """Functions of (t, x) that keep their values along every motion without external forces.

    Parameters
    ----------
    model
        A kinematic tree, with or without loops.
    driven
        For each velocity variable, whether a joint force acts on it; None if nowhere.

    Returns
    -------
    dict
        "energy"; "momentum p_x" and its like; "momentum h_x" and its like about the base's
        origin, or "momentum h_x at (…)" about another point; h_up is about the vertical where
        gravity follows no coordinate axis.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> list(invariants(mechanisms.cart_pole()))
    ['energy', 'momentum p_x']
    >>> list(invariants(mechanisms.heavy_top()))
    ['energy', 'momentum h_z']
    """
    kept = model.tree.traced
    key = "conserved", None if driven is None else tuple(driven.tolist())
    if key not in kept:
        kept[key] = _invariants(model, driven)
    return dict(kept[key])


def _invariants(model: Model, driven: Array | None) -> dict[str, Callable[..., float]]:
    found: dict[str, Callable[..., float]] = {}
    nq = model.nq
    if driven is None and not model.is_rheonomic and not model.is_damped:
        found["energy"] = lambda t, x: float(totals_along(model, x[:nq], x[nq:], t)[:2].sum())
    space = conserved_motions(model, driven)
    for name, motion in {**_rotations(model, space), **_translations(space)}.items():
        found[f"momentum {name}"] = _component(model, motion)
    return found


def _component(model: Model, motion: Array) -> Callable[..., float]:
    nq = model.nq
    return lambda t, x: float(totals_along(model, x[:nq], x[nq:], t)[6:] @ motion)


def conserved_motions(model: Model, driven: Array | None = None) -> Array:
    """Orthonormal basis, in columns, of the motions m for which m·h is conserved.

    Parameters
    ----------
    model, driven
        As in :func:`invariants`.

    Returns
    -------
    array (6, k)
        Spatial motions in base coordinates, angular first.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> conserved_motions(mechanisms.satellite()).shape
    (6, 6)
    >>> conserved_motions(mechanisms.four_bar()).shape
    (6, 0)
    """
    roots = [i for i, b in enumerate(model.bodies) if b.parent == 0]
    # What a user's function says at positions drawn at random is not asked.
    unknown = any(model.bodies[i].joint.kind == "user" for i in roots) or model.elements
    moved = any(model.bodies[i].joint.is_rheonomic for i in roots)
    if unknown or moved or any(0 in (c.predecessor, c.successor) for c in model.loops):
        return np.zeros((6, 0))
    conditions = [np.zeros((1, 6)), _weight(model.gravity)]
    for s in model.springs:
        anchors = [p for i, p in ((s.body_a, s.point_a), (s.body_b, s.point_b)) if i == 0]
        conditions += [np.hstack([-_cross(a), np.eye(3)]) for a in anchors]
    rng = np.random.default_rng(0)
    for i in roots:
        idle = _idle(model.bodies[i])
        if driven is not None:
            idle &= ~np.asarray(driven, dtype=bool)[model.v_index[i]]
        for _ in range(SAMPLES):
            free = _span(_freedoms(model.bodies[i], model.bodies[i].joint.random(rng))[:, idle])
            conditions.append(np.eye(6) - free @ free.T)
    conditions += _powerless(model, roots, rng)
    _, sizes, rows = np.linalg.svd(np.vstack(conditions))
    return np.asarray(rows[sizes <= CONDITION_TOLERANCE].T)


def _powerless(model: Model, roots: list[int], rng: np.random.Generator) -> list[Array]:
    """Conditions under which constraints by functions do no work on a motion of everything."""
    if not model.constraints:
        return []
    first, found = model.tree.arrays["loop_at"][len(model.loops)], []
    for _ in range(SAMPLES):
        q = model.random(rng)
        with np.errstate(all="ignore"):
            K = constraints(model, q, t=float(rng.uniform())).K[first:]
        if not np.isfinite(K).all():  # not defined there: nothing is known to be kept
            return [np.eye(6)]
        moved = np.zeros((model.nv, 6))
        for i in roots:
            S = _freedoms(model.bodies[i], q[model.q_index[i]])
            moved[model.v_index[i]] = np.linalg.pinv(S, rcond=CONDITION_TOLERANCE)
        found.append(K @ moved)
    return found


def _weight(gravity: Array) -> Array:
    """Conditions under which weight is powerless wherever the centre of mass is."""
    g = _unit(gravity)
    return np.vstack([np.hstack([_cross(g), np.zeros((3, 3))]), [0.0, 0.0, 0.0, *g]])


def _idle(body: Body) -> Array:
    """Whether each velocity variable of a body's joint is free of forces."""
    forces = np.vstack([body.armature, body.damping, body.stiffness, body.limits[:, 2:].T])
    return np.asarray(~forces.any(axis=0))


def _freedoms(body: Body, q: Array) -> Array:
    """Motions of a body that its joint at the base leaves free, in base coordinates."""
    motion = body.joint.motion(q)
    S = body.placement.inverse().matrix()  # to base coordinates from the joint's frame there
    if not body.reverse:
        S = S @ motion.X.inverse().matrix()
    return np.asarray(S @ motion.S)


def _rotations(model: Model, space: Array) -> dict[str, Array]:
    """Rotations in a space of motions, about axes with the directions of interest."""
    found = {}
    up = -_unit(model.gravity)
    directions = {f"h_{name}": np.eye(3)[k] for k, name in enumerate(AXES)}
    if np.count_nonzero(up) > 1:
        directions["h_up"] = up
    angular, linear = space[:3], space[3:]
    left, sizes, rows = np.linalg.svd(angular, full_matrices=True)
    rank = int(np.sum(sizes > CONDITION_TOLERANCE))
    shifts = _span(linear @ rows[rank:].T)
    for name, n in directions.items():
        # Least squares, without what rounding makes of translations.
        c = rows[:rank].T @ ((left[:, :rank].T @ n) / sizes[:rank])
        u = linear @ c
        u = u - shifts @ (shifts.T @ u)  # of parallel axes, the one nearest to the origin
        # An advance along the axis would make it a screw.
        if np.abs(angular @ c - n).max() > CONDITION_TOLERANCE or abs(u @ n) > CONDITION_TOLERANCE:
            continue
        point = np.cross(n, u)
        if np.abs(point).max() > CONDITION_TOLERANCE:
            name += " at ({:g}, {:g}, {:g})".format(*(np.round(point, 9) + 0.0))
            found[name] = np.concatenate([n, np.cross(point, n)])
        else:
            found[name] = np.concatenate([n, np.zeros(3)])
    return found


def _translations(space: Array) -> dict[str, Array]:
    """Translations in a space of motions, along the axes of the base."""
    found = {}
    for k, name in enumerate(AXES):
        motion = np.eye(6)[3 + k]
        if np.abs(space @ space[3 + k] - motion).max() <= CONDITION_TOLERANCE:
            found[f"p_{name}"] = motion
    return found


def _span(columns: Array) -> Array:
    """Orthonormal basis of what columns span."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > CONDITION_TOLERANCE])


def _unit(vector: Array) -> Array:
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / length if length > 0.0 else np.zeros(3))


def _cross(a: Array) -> Array:
    """Matrix of a × …"""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])
