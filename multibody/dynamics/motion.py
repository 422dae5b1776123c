"""Motion of the bodies of a model: poses, velocities, Jacobians, energy and momentum.

All take and return plain arrays, as ``functions`` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators.kernels import OnWorkspace

from ..algebra.se3 import Pose
from ..checks import Array, ArrayLike, exact_array, one_of, real_array
from .on_symbols import are_symbols, base_jacobian, point_on_symbols
from .storage.loading import load, load_given, load_vector
from .storage.workspace import TreeWorkspace
from .trees.kinematics import forward
from .with_elements import accelerations_kernel, energy_kernel

if TYPE_CHECKING:
    from ..model import Model

__all__ = [
    "Energy",
    "Kinematics",
    "body_jacobian",
    "centre_of_mass",
    "energy",
    "jacobian_rate",
    "kinematics",
    "momentum",
    "point_acceleration",
    "point_jacobian",
    "point_position",
    "run_forward",
]

run_forward = OnWorkspace(forward, TreeWorkspace)

# ---------------------------------------------------------------------- kinematics


class Kinematics(NamedTuple):
    """Where all bodies are and how they move; entry 0 belongs to the base.

    Attributes
    ----------
    poses
        `Pose` of each body in base coordinates.
    velocities, accelerations
        Spatial velocity and (spatial) acceleration of each body, in its own coordinates; without
        the effect of gravity. Accelerations are None unless joint accelerations were given.
    """

    poses: list[Pose]
    velocities: Array
    accelerations: Array | None


_run_accelerations = OnWorkspace(accelerations_kernel, TreeWorkspace)


def kinematics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    t: float = 0.0,
) -> Kinematics:
    """Forward kinematics of all bodies.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> kinematics(mechanisms.double_pendulum(), [0.0, 0.0]).poses[2].p
    array([ 0.,  0., -1.])
    """
    w = load_given(model, q, v, t)
    load_vector(model, "a", a, w.a_q)
    _run_accelerations(w)
    tree = model.tree
    poses = [Pose.identity()]
    for i in range(model.n_bodies):
        R = w.E_0[i].T @ tree.turn[i]
        poses.append(Pose._of(R, w.r_0[i].copy()))
    zero = np.zeros((1, 6))
    moving = np.vstack([zero, tree.to_body(w.vel)])
    return Kinematics(poses, moving, None if a is None else np.vstack([zero, tree.to_body(w.acc)]))


def point_position(
    model: Model,
    q: ArrayLike,
    body: str | int,
    point: ArrayLike = (0.0, 0.0, 0.0),
    *,
    t: float = 0.0,
) -> Array:
    """Position in base coordinates of a point given in body coordinates; of several, in rows."""
    if are_symbols(q, t):
        return point_on_symbols(model, q, body, point, t)
    place = kinematics(model, q, t=t).poses[model.number(body)]
    return np.asarray(place.act(real_array(point, "point", (3,))))


def _loaded_forward(model: Model, q: ArrayLike, v: ArrayLike | None, t: float) -> TreeWorkspace:
    w = load_given(model, q, v, t)
    run_forward(w)
    return w


def body_jacobian(
    model: Model,
    q: ArrayLike,
    body: str | int,
    *,
    coordinates: str = "body",
    t: float = 0.0,
) -> Array:
    """J with v_body = J v (book, Eq 4.5): spatial velocity in "body" or "base" coordinates.

    For joints that time moves, the velocity at v = 0 must be added.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> body_jacobian(mechanisms.pendulum(), [0.2], 1)[:, 0]
    array([0., 1., 0., 0., 0., 0.])
    """
    one_of(coordinates, "coordinates", ("body", "base"))
    if are_symbols(q, t):
        if coordinates == "body":
            raise ValueError("coordinates: on symbols the Jacobian is known in 'base' only")
        return base_jacobian(model, q, body, t)
    w = _loaded_forward(model, q, None, t)
    target = model.number(body)
    J = np.zeros((6, model.nv))
    i = target - 1
    while i >= 0:
        E, r = w.E_0[i], w.r_0[i]
        for k in range(w.v_at[i], w.v_at[i + 1]):
            angular = E.T @ w.S[k, :3]
            J[:3, k] = angular
            J[3:, k] = E.T @ w.S[k, 3:] + np.cross(r, angular)
        i = int(w.parent[i])
    if coordinates == "base" or target == 0:
        return J
    i = target - 1
    E, r = model.tree.turn[i].T @ w.E_0[i], w.r_0[i]
    out = np.empty_like(J)
    out[:3] = E @ J[:3]
    out[3:] = E @ (J[3:] - np.cross(r, J[:3], axisb=0, axisc=0))
    return out


def point_jacobian(
    model: Model,
    q: ArrayLike,
    body: str | int,
    point: ArrayLike = (0.0, 0.0, 0.0),
    *,
    t: float = 0.0,
) -> Array:
    """3 × nv Jacobian of a body-fixed point's velocity in base coordinates."""
    place = exact_array(point, "point", (3,))
    J = body_jacobian(model, q, body, coordinates="base", t=t)
    position = point_position(model, q, body, place, t=t)
    if are_symbols(q, t):
        return J[3:] - np.array([np.cross(position, column) for column in J[:3].T]).T
    return np.asarray(J[3:] - np.cross(position, J[:3], axisb=0, axisc=0))


def point_acceleration(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike | None = None,
    *,
    body: str | int,
    point: ArrayLike = (0.0, 0.0, 0.0),
    t: float = 0.0,
) -> Array:
    """Classical acceleration of a body-fixed point in base coordinates; J̇ v if `a` is not given.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> point_acceleration(
    ...     mechanisms.pendulum(), [0.0], [2.0], body="bob", point=(0, 0, -1)
    ... )
    array([0., 0., 4.])
    """
    p = exact_array(point, "point", (3,))
    accelerations = np.zeros(model.nv) if a is None else a
    found = kinematics(model, q, v, accelerations, t=t)
    i = model.number(body)
    assert found.accelerations is not None
    (w, u), (alpha, s) = (x[i].reshape(2, 3) for x in (found.velocities, found.accelerations))
    speed = u + np.cross(w, p)
    return np.asarray(found.poses[i].R @ (s + np.cross(alpha, p) + np.cross(w, speed)))


def jacobian_rate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    body: str | int,
    *,
    coordinates: str = "body",
    t: float = 0.0,
) -> Array:
    """J̇ v: the spatial acceleration of a body when v̇ = 0 (book, Eq 8.13)."""
    one_of(coordinates, "coordinates", ("body", "base"))
    i = model.number(body)
    found = kinematics(model, q, v, np.zeros(model.nv), t=t)
    assert found.accelerations is not None
    a = found.accelerations[i]
    if coordinates == "body":
        return np.asarray(a)
    R, p = found.poses[i].R, found.poses[i].p
    angular = R @ a[:3]
    return np.concatenate([angular, R @ a[3:] + np.cross(p, angular)])


# ---------------------------------------------------------------------- energy and momentum


class Energy(NamedTuple):
    """Kinetic and potential energy, in joules; the potential includes springs and stops.

    Numbers for a state, arrays for a solution.
    """

    kinetic: Any
    potential: Any

    @property
    def total(self) -> Any:
        """Sum of both."""
        return self.kinetic + self.potential


_run_energy = OnWorkspace(energy_kernel, TreeWorkspace)


def _totals(model: Model, q: ArrayLike, v: ArrayLike | None, t: float) -> Array:
    w = load_given(model, q, v, t)
    _run_energy(w)
    return w.totals.copy()


def totals_along(model: Model, q: Array, v: Array | None, t: float) -> Array:
    """Energies, mass, first moment and momentum at a state of a run, quaternions as they are."""
    w = load(model, q, v, t)
    _run_energy(w)
    return w.totals.copy()


def energy(model: Model, q: Any, v: ArrayLike | None = None, *, t: float = 0.0) -> Energy:
    """Kinetic and potential energy (zero potential at the base's origin).

    Parameters
    ----------
    q
        Position, or a `Solution`: then the energies are arrays, an entry for each of its times.
    v
        Velocity; zero if not given.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> energy(mechanisms.pendulum(), [0.0], [2.0])
    Energy(kinetic=2.0, potential=-9.81)
    """
    if hasattr(q, "t") and hasattr(q, "y"):
        states = np.ascontiguousarray(np.asarray(q.y, dtype=float).T)
        found = [
            totals_along(model, x[: model.nq], x[model.nq :], float(s)) for s, x in zip(q.t, states)
        ]
        return Energy(*np.array(found).reshape(-1, 12)[:, :2].T)
    kinetic, potential = _totals(model, q, v, t)[:2]
    return Energy(float(kinetic), float(potential))


def momentum(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    about: str | ArrayLike = "base",
    t: float = 0.0,
) -> Array:
    """Spatial momentum of all bodies, in base axes.

    Parameters
    ----------
    about
        "base" (the base's origin), "com" (the centre of mass: centroidal momentum), or a point.
    """
    totals = _totals(model, q, v, t)
    h = totals[6:12].copy()
    if isinstance(about, str):
        one_of(about, "about", ("base", "com"))
        point = _centre(totals, "momentum") if about == "com" else np.zeros(3)
    else:
        point = exact_array(about, "about", (3,))
    h[:3] -= np.cross(point, h[3:])
    return h


def centre_of_mass(model: Model, q: ArrayLike, *, t: float = 0.0) -> Array:
    """Centre of mass of all bodies, in base coordinates."""
    return _centre(_totals(model, q, None, t), "centre_of_mass")


def _centre(totals: Array, where: str) -> Array:
    if totals[2] <= 0.0:
        raise ValueError(
            f"{where}: the model has no mass, hence no centre of mass; give some body mass"
        )
    return np.asarray(totals[3:6] / totals[2])
