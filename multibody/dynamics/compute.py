"""The algorithms as functions of a model: forces, accelerations, matrices, kinematics, energy.

All take and return plain arrays. q has ``model.nq`` numbers, v, tau and accelerations
``model.nv``; 6-vectors are angular first; what belongs to a body is in its own coordinates unless
the name says otherwise; external forces are in base coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators.kernels import OnWorkspace

from .._checks import Array, ArrayLike, one_of, real_array
from ..se3 import Pose
from .aba import find_singular_body
from .compute_kernels import (
    accelerations_kernel,
    energy_kernel,
    forward_dynamics,
    inverse_dynamics,
    joint_force_elements,
)
from .crba import crba_kernel
from .kinematics import forward, position_rates
from .rnea import rnea_kernel
from .tree import HAVE_FORCES, TreeWorkspace

if TYPE_CHECKING:
    from ..model import Model

__all__ = [
    "FD",
    "ID",
    "Energy",
    "Kinematics",
    "SingularModelError",
    "aba",
    "bias_forces",
    "body_jacobian",
    "centre_of_mass",
    "coriolis_forces",
    "crba",
    "energy",
    "gravity_forces",
    "jacobian_rate",
    "joint_forces",
    "kinematics",
    "momentum",
    "point_acceleration",
    "point_jacobian",
    "point_position",
    "position_rate",
    "rnea",
]

ForcesLike = Any  # None, an array (n_bodies, 6), or {body name: six numbers}


class SingularModelError(ArithmeticError):
    """Accelerations are not determined: some freedom moves no inertia at this position."""


# ---------------------------------------------------------------------- filling a workspace


def load(model: Model, q: ArrayLike, v: ArrayLike | None = None, t: float = 0.0) -> TreeWorkspace:
    """Workspace with position, velocity and time filled in; checks shapes, and nothing else."""
    w = model.tree.workspace
    if type(q) is np.ndarray and q.shape == w.q.shape and q.dtype == np.float64:
        w.q[:] = q
    else:
        w.q[:] = model.check("q", q, unit=False)
    if v is None:
        w.v[:] = 0.0
    elif type(v) is np.ndarray and v.shape == w.v.shape and v.dtype == np.float64:
        w.v[:] = v
    else:
        w.v[:] = model.check("v", v)
    w.t[0] = t
    return w


def load_forces(model: Model, w: TreeWorkspace, f_ext: ForcesLike) -> None:
    """Enter external forces, in base coordinates."""
    if f_ext is None:
        w.switches[HAVE_FORCES] = len(w.springs) > 0
        if len(w.springs):
            w.f_ext[:] = 0.0
        return
    w.switches[HAVE_FORCES] = 1
    if isinstance(f_ext, Mapping):
        w.f_ext[:] = 0.0
        for name, force in f_ext.items():
            i = model.number(name)
            if i == 0:
                raise ValueError("f_ext: a force on the base moves nothing; leave it out")
            w.f_ext[i - 1] += real_array(force, f"f_ext[{name!r}]", (6,))
        return
    array = real_array(f_ext, "f_ext")
    if array.shape != w.f_ext.shape:
        raise ValueError(
            f"f_ext: expected a row of 6 numbers for each of {model.n_bodies} bodies, or a "
            f"dictionary by body names, received shape {array.shape}"
        )
    w.f_ext[:] = array


def _vector(model: Model, name: str, value: ArrayLike | None, out: Array) -> None:
    if value is None:
        out[:] = 0.0
    elif type(value) is np.ndarray and value.shape == out.shape and value.dtype == np.float64:
        out[:] = value
    else:
        out[:] = model.check(name, value)


_run_forward_dynamics = OnWorkspace(forward_dynamics, TreeWorkspace, returns=True)
_run_inverse_dynamics = OnWorkspace(inverse_dynamics, TreeWorkspace, returns=True)
_run_elements = OnWorkspace(joint_force_elements, TreeWorkspace)
_run_rnea = OnWorkspace(rnea_kernel, TreeWorkspace)
_run_crba = OnWorkspace(crba_kernel, TreeWorkspace)
_run_rates = OnWorkspace(position_rates, TreeWorkspace)
_run_forward = OnWorkspace(forward, TreeWorkspace)


# ---------------------------------------------------------------------- dynamics


def FD(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    method: str | None = None,
) -> Array:
    """Forward dynamics: the accelerations v̇ that forces cause.

    Parameters
    ----------
    model
        The mechanism. If it has loops, they are kept closed (K v̇ = γ); for multipliers, rank and
        stabilisation see :func:`~multibody.constrained_accelerations`.
    q, v
        Position and velocity variables.
    tau
        Joint forces; zero if not given.
    f_ext
        External forces: a row (couple, force) for each body in base coordinates, or a dictionary
        by body names.
    t
        Time, for joints that time moves.
    method
        "aba" (articulated bodies, the default for trees) or "crba" (inertia matrix and its LTL
        factors); both cut loops open. "loops" is the default for models with loops.

    Returns
    -------
    array of nv numbers

    Raises
    ------
    SingularModelError
        Where some freedom moves no inertia, naming the body.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.pendulum()
    >>> FD(model, [np.pi / 2], [0.0]).round(6)  # horizontal: −g/L
    array([-9.81])
    """
    if method is None:
        if model.loops:
            method = "loops"
        elif f_ext is None and t == 0.0:
            tree = model.tree
            run = tree.traced.get("FD") or _shortest_way(model)
            return run(q, v, tree.zeros if tau is None else tau)
    w = load(model, q, v, t)
    _vector(model, "tau", tau, w.tau)
    load_forces(model, w, f_ext)
    if method is None or method == "aba":
        total = _run_forward_dynamics(w)
        if total - total != 0.0:
            _explain(model, w)
        return w.a_q.copy()
    one_of(method, "method", ("aba", "crba", "loops"))
    if method == "loops":
        from .closed_loop import fast_constrained_accelerations

        a, _ = fast_constrained_accelerations(w, 0.0, 0.0)
        if not np.isfinite(a).all():
            _explain(model, w)
        return a
    from .factor import ltl, ltl_solve

    position, speed, given = w.q.copy(), w.v.copy(), w.tau.copy()
    C = bias_forces(model, position, speed, f_ext, t=t)
    H = crba(model, position, t=t)
    parent = model.tree.arrays["parent_v"]
    try:
        L = ltl(H, parent)
    except np.linalg.LinAlgError:
        load(model, position, speed, t)
        _explain(model, w)
        raise
    return ltl_solve(L, parent, given - C)


def _shortest_way(model: Model) -> Any:
    """Return a function (q, v, tau) → accelerations, made once for a model, with its workspace.

    Threads may share it: it keeps the interpreter's lock.
    """
    from .entry import forward_dynamics_entry

    def ordinary(q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        return FD(model, q, v, tau, method="aba")

    run = forward_dynamics_entry(model.tree.make_workspace(), ordinary)
    model.tree.traced["FD"] = run
    return run


def _explain(model: Model, w: TreeWorkspace, given: str = "tau") -> None:
    """Raise with the reason why a result is not finite; `given` names the input besides q, v."""
    if model.tree.error is not None:
        error, model.tree.error = model.tree.error, None
        raise error
    for name in ("q", "v", given):
        bad = np.flatnonzero(~np.isfinite(getattr(w, name)))
        if bad.size:
            names = model.q_names if name == "q" else model.v_names
            value = getattr(w, name)[bad[0]]
            raise ValueError(
                f"{name.removesuffix('_q')}: expected finite numbers, received {value} for "
                f"{names[bad[0]]}"
            )
    if given != "tau":
        raise ValueError("joint forces are not finite; look for huge numbers in q, v, a or f_ext")
    body = find_singular_body(model, w.q.copy(), float(w.t[0]))
    if body:
        b = model.bodies[body - 1]
        raise SingularModelError(
            f"body {b.name!r} can move at its joint {b.joint!r} without moving any inertia at "
            "this position; give it mass or an armature"
        )
    raise ValueError("accelerations are not finite; look for huge numbers in q, v, tau or f_ext")


def ID(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    method: str | None = None,
) -> Array:
    """Inverse dynamics: the joint forces that cause accelerations `a`.

    Parameters
    ----------
    model, q, v, f_ext, t
        As in :func:`FD`. Loops are cut open: the forces are those of the tree.
    a
        Joint accelerations v̇.
    method
        "newton_euler" (three-dimensional, the default) or "rnea" (spatial, as in the book).

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.double_pendulum()
    >>> q, v, tau = [0.3, 0.5], [1.0, 2.0], [0.1, 0.2]
    >>> np.allclose(ID(model, q, v, FD(model, q, v, tau)), tau)
    True
    """
    w = load(model, q, v, t)
    _vector(model, "a", a, w.a_q)
    load_forces(model, w, f_ext)
    if method is not None and one_of(method, "method", ("newton_euler", "rnea")) == "rnea":
        if model.tree.has_elements:
            _run_elements(w)
        elements = w.u.copy() if model.tree.has_elements else 0.0
        _run_rnea(w)
        return w.tau - elements
    total = _run_inverse_dynamics(w)
    if total - total != 0.0:
        _explain(model, w, "a_q")
    return w.tau.copy()


#: The algorithms under their names in the literature.
aba, rnea = FD, ID


def crba(model: Model, q: ArrayLike, *, t: float = 0.0) -> Array:
    """Joint-space inertia matrix H(q), nv × nv, armature included.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> crba(mechanisms.pendulum(), [0.4])
    array([[1.]])
    """
    w = load(model, q, None, t)
    _run_crba(w)
    return w.H.copy()


def bias_forces(
    model: Model, q: ArrayLike, v: ArrayLike, f_ext: ForcesLike = None, *, t: float = 0.0
) -> Array:
    """C in H v̇ + C = tau: the joint forces that keep all accelerations zero."""
    return ID(model, q, v, np.zeros(model.nv), f_ext, t=t)


def gravity_forces(model: Model, q: ArrayLike, *, t: float = 0.0) -> Array:
    """Joint forces that hold the mechanism against gravity (and against its springs).

    Examples
    --------
    >>> from multibody import mechanisms
    >>> gravity_forces(mechanisms.pendulum(), [np.pi / 2]).round(6)
    array([9.81])
    """
    return bias_forces(model, q, np.zeros(model.nv), t=t)


def coriolis_forces(model: Model, q: ArrayLike, v: ArrayLike, *, t: float = 0.0) -> Array:
    """Coriolis and centrifugal terms: the part of the bias forces that motion causes."""
    return bias_forces(model, q, v, t=t) - gravity_forces(model, q, t=t)


def joint_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> Array:
    """Force that each joint passes on to its body: bearing loads and actuator force together.

    Returns
    -------
    array (n_bodies, 6)
        Couple and force at the origin of each body, in its coordinates.
    """
    w = load(model, q, v, t)
    _vector(model, "a", a, w.a_q)
    load_forces(model, w, f_ext)
    if model.tree.has_elements:
        _run_elements(w)
    _run_rnea(w)
    return model.tree.to_body(w.force)


def position_rate(model: Model, q: ArrayLike, v: ArrayLike, *, t: float = 0.0) -> Array:
    """q̇ from v, joint by joint."""
    w = load(model, q, v, t)
    _run_rates(w)
    return w.q_dot.copy()


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
    w = load(model, q, v, t)
    _vector(model, "a", a, w.a_q)
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
    """Position in base coordinates of a point given in body coordinates."""
    place = kinematics(model, q, t=t).poses[model.number(body)]
    return np.asarray(place.act(real_array(point, "point", (3,))))


def _loaded_forward(model: Model, q: ArrayLike, v: ArrayLike | None, t: float) -> TreeWorkspace:
    w = load(model, q, v, t)
    _run_forward(w)
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
    J = body_jacobian(model, q, body, coordinates="base", t=t)
    position = point_position(model, q, body, point, t=t)
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
    accelerations = np.zeros(model.nv) if a is None else a
    found = kinematics(model, q, v, accelerations, t=t)
    i = model.number(body)
    assert found.accelerations is not None
    p = real_array(point, "point", (3,))
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
            _totals(model, x[: model.nq], x[model.nq :], float(s)) for s, x in zip(q.t, states)
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
        point = totals[3:6] / totals[2] if about == "com" else np.zeros(3)
    else:
        point = real_array(about, "about", (3,))
    h[:3] -= np.cross(point, h[3:])
    return h


def centre_of_mass(model: Model, q: ArrayLike, *, t: float = 0.0) -> Array:
    """Centre of mass of all bodies, in base coordinates."""
    totals = _totals(model, q, None, t)
    if totals[2] <= 0.0:
        raise ValueError("centre_of_mass: the model has no mass")
    return np.asarray(totals[3:6] / totals[2])
