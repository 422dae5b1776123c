"""A model seen from its base, for algorithms that are to be read rather than to be fast.

- :func:`base_coordinates`: all bodies and joints in base coordinates, as plain 6×6 matrices;
- :func:`element_forces`: springs, dampers and stops of a model;
- :func:`applied_forces`: these together with what is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...algebra.orientation.rotations import skew
from ...checks import Array, ArrayLike
from ..storage.loading import ForcesLike, external_forces

if TYPE_CHECKING:
    from ...model import Body, Model

__all__ = [
    "BaseCoordinates",
    "ForcesLike",
    "applied_forces",
    "base_coordinates",
    "body_joint",
    "cross_force",
    "cross_motion",
    "element_forces",
    "external_forces",
    "in_base",
    "numbers",
]

# ---------------------------------------------------------------------- small tools


def cross_motion(v: Array) -> Array:
    """6×6 matrix v× on motions (Eq 2.31)."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = skew(v[:3])
    out[3:, :3] = skew(v[3:])
    return out


def cross_force(v: Array) -> Array:
    """6×6 matrix v×* on forces (Eq 2.32)."""
    return -cross_motion(v).T


def body_joint(body: Body, q: Array, v: Array, t: float) -> tuple[Array, Array, Array, Array]:
    """X_λ, S, v_J and c_J of a body in its own coordinates, reversal included (Table 4.2)."""
    move = body.joint.motion(q, v, t)
    X_J, S, v_J, c_J = move.X.matrix(), move.S, move.v, move.c
    if body.reverse:
        X_J = move.X.inverse().matrix()
        S, v_J, c_J = -X_J @ S, -X_J @ v_J, -X_J @ c_J
    return X_J @ body.placement.matrix(), S, v_J, c_J


def numbers(
    model: Model, q: ArrayLike, v: ArrayLike | None, third: ArrayLike | None, name: str
) -> tuple[Array, Array, Array]:
    """q, v and one more vector, checked; zeros for None."""
    zero = np.zeros(model.nv)
    return (
        model.check("q", q),
        zero if v is None else model.check("v", v),
        zero if third is None else model.check(name, third),
    )


# ---------------------------------------------------------------------- the base's view


@dataclass(frozen=True)
class BaseCoordinates:
    """Bodies and joints in base coordinates; entry i belongs to body i + 1.

    Attributes
    ----------
    X
        ⁱX₀, from base to body coordinates, 6×6.
    S, c
        Joint freedoms, and c_J + v_i × v_J, the part of a_i − a_λ that is not S v̇.
    v_J, v
        Velocity across the joint, and of the body.
    inertia
        6×6 inertia of the body.
    """

    model: Model
    X: list[Array]
    S: list[Array]
    c: list[Array]
    v_J: list[Array]
    v: list[Array]
    inertia: list[Array]

    def support(self, i: int) -> list[int]:
        """κ(i + 1): joints between the base and the body with entry i, as entries."""
        path = []
        while i >= 0:
            path.append(i)
            i = self.model.bodies[i].parent - 1
        return path[::-1]

    def jacobian(self, i: int) -> Array:
        """J of a body, v_i = J v (+ what time moves), in base coordinates (Eq 4.5)."""
        J = np.zeros((6, self.model.nv))
        for j in self.support(i):
            J[:, self.model.v_index[j]] = self.S[j]
        return J


def base_coordinates(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, t: float = 0.0
) -> BaseCoordinates:
    """Everything about the positions and velocities of a model, in base coordinates.

    Examples
    --------
    >>> from multibody import Inertia, ModelBuilder, Revolute
    >>> b = ModelBuilder()
    >>> _ = b.add_body("rod", 0, Revolute(), (1, 0, 0), Inertia(1.0, (1, 0, 0)))
    >>> base_coordinates(b.build(), [0.0], [2.0]).v[0]
    array([ 0.,  0.,  2.,  0., -2.,  0.])
    """
    q, v, _ = numbers(model, q, v, None, "a")
    out = BaseCoordinates(model, [], [], [], [], [], [])
    for body, at_q, at_v in zip(model.bodies, model.q_index, model.v_index):
        X_parent, S, v_J, c_J = body_joint(body, q[at_q], v[at_v], t)
        parent = body.parent - 1
        X = X_parent @ out.X[parent] if body.parent else X_parent
        back = np.linalg.inv(X)
        v_J = back @ v_J
        v_i = out.v[parent] + v_J if body.parent else v_J
        out.X.append(X)
        out.S.append(back @ S)
        out.v_J.append(v_J)
        out.v.append(v_i)
        out.c.append(back @ c_J + cross_motion(v_i) @ v_J)
        I = X.T @ body.inertia.matrix() @ X
        out.inertia.append((I + I.T) / 2)
    return out


# ---------------------------------------------------------------------- force elements


def element_forces(
    model: Model, q: ArrayLike, v: ArrayLike, t: float = 0.0, *, seen: BaseCoordinates | None = None
) -> tuple[Array, Array]:
    """Joint forces, and forces on bodies in base coordinates, of all springs, dampers and stops.

    `seen` saves time if the base coordinates at q, v and t are known already.
    """
    q, v, _ = numbers(model, q, v, None, "a")
    tau, forces = np.zeros(model.nv), np.zeros((model.n_bodies, 6))
    for body, at_q, at_v in zip(model.bodies, model.q_index, model.v_index):
        tau[at_v] = -body.damping * v[at_v]
        if not body.joint.rate_is_velocity:
            continue
        for k in range(body.joint.nv):
            x, speed = q[at_q.start + k], v[at_v.start + k]
            lower, upper, stiffness, damping = body.limits[k]
            pull = -body.stiffness[k] * (x - body.rest[k])
            if x < lower:  # stops never pull
                pull += max(stiffness * (lower - x) - damping * speed, 0.0)
            elif x > upper:
                pull -= max(stiffness * (x - upper) + damping * speed, 0.0)
            tau[at_v.start + k] += pull
    w = base_coordinates(model, q, v, t) if seen is None and model.springs else seen
    for spring in model.springs:
        assert w is not None
        ends = ((spring.body_a, spring.point_a), (spring.body_b, spring.point_b))
        places, speeds = [], []
        for number, point in ends:
            twist = np.zeros(6) if number == 0 else w.v[number - 1]
            place = point if number == 0 else in_base(w.X[number - 1], point)
            places.append(place)
            speeds.append(twist[3:] + np.cross(twist[:3], place))
        line = places[1] - places[0]
        force = spring.stiffness * line
        if spring.rest or spring.damping:  # without them the force needs no direction
            length = float(np.linalg.norm(line))
            if length == 0.0:
                raise ValueError(
                    f"spring {spring.name!r}: its ends meet, so that its rest length or damping "
                    "has no direction; start elsewhere, or set both to 0"
                )
            along = line / length
            rate = float(along @ (speeds[1] - speeds[0]))
            force = force + (spring.damping * rate - spring.stiffness * spring.rest) * along
        for (number, _), place, pull in zip(ends, places, (force, -force)):
            if number:
                forces[number - 1] += np.concatenate([np.cross(place, pull), pull])
    return tau, forces


def applied_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    f_ext: ForcesLike,
    t: float,
    seen: BaseCoordinates | None = None,
) -> tuple[Array, Array]:
    """Joint forces, and forces on bodies in base coordinates: the given ones and the elements'."""
    joints, bodies = element_forces(model, q, v, t, seen=seen)
    given = 0.0 if tau is None else model.check("tau", tau)
    return joints + given, bodies + external_forces(model, f_ext)


def in_base(X: Array, point: Array) -> Array:
    """Base coordinates of a point of the body with ⁱX₀ = X = [E 0; −E r× E]."""
    E = X[:3, :3]
    cross = -E.T @ X[3:, :3]
    return np.array([cross[2, 1], cross[0, 2], cross[1, 0]]) + E.T @ point
