"""Mechanisms as right-hand sides: the bridge from ``multibody`` to ``integrators``.

``FD_x(model, x, tau)`` is ẋ for the state x = [q; v] (book, Eq 3.8–3.9). :func:`as_ivp` makes an
initial value problem of a model that any integrator accepts; models of ordinary size are traced,
so that the whole right-hand side is machine code with an exact Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._checks import Array, ArrayLike, one_of
from .closed import Stabilisation, check_consistent, gap_invariants, loop_projection
from .dynamics.closed_loop import RANK_TOLERANCE
from .dynamics.compute import FD, position_rate
from .dynamics.compute_kernels import forward_dynamics, inverse_dynamics
from .dynamics.factored import factored_kernel, is_shallow
from .dynamics.kinematics import position_rates
from .dynamics.motion import energy, momentum
from .dynamics.tree import HAVE_FORCES
from .force_laws import external_force_law, joint_force_law
from .observed import observables
from .singular import loop_review

if TYPE_CHECKING:
    from integrators import IVP
    from integrators.tracing import Traced

    from .model import Model

__all__ = [
    "FD_derivatives",
    "FD_x",
    "ID_derivatives",
    "as_ivp",
    "quaternion_drift",
    "split_state",
    "traced_fd",
    "traced_id",
]

#: Models with more bodies than this are not traced unless asked: compiling takes seconds.
TRACED_BODIES = 40

#: Rate (1/s) at which the stabilising term pulls quaternions back to unit norm.
QUATERNION_GAIN = 10.0


def FD_x(model: Model, x: ArrayLike, tau: ArrayLike | None = None, *, t: float = 0.0) -> Array:
    """State-space forward dynamics: ẋ = [q̇; v̇] for x = [q; v].

    Examples
    --------
    >>> from multibody import mechanisms
    >>> FD_x(mechanisms.pendulum(), [np.pi / 2, 1.0], [0.0]).round(6)
    array([ 1.  , -9.81])
    """
    q, v = split_state(model, x)
    return np.concatenate([position_rate(model, q, v, t=t), FD(model, q, v, tau, t=t)])


def split_state(model: Model, x: ArrayLike) -> tuple[Array, Array]:
    """Positions and velocities of a state (or of states in columns)."""
    x = np.asarray(x, dtype=float)
    n = model.nq + model.nv
    if x.shape[:1] != (n,):
        raise ValueError(
            f"x: expected nq + nv = {model.nq} + {model.nv} numbers, received shape {x.shape}"
        )
    return x[: model.nq], x[model.nq :]


# ---------------------------------------------------------------------- traced functions


def _symbolic_state(model: Model, t: Any, x: Any) -> Any:
    w = model.tree.symbolic()
    w.t[0] = t
    w.q[:] = x[: model.nq]
    w.v[:] = x[model.nq :]
    return w


def _set_forces(model: Model, w: Any, tau: Any, f_ext: Any) -> None:
    w.tau[:] = 0.0 if tau is None else tau
    w.switches[HAVE_FORCES] = int(f_ext is not None or len(model.springs) > 0)
    if f_ext is not None:
        w.f_ext[:] = f_ext


def traced_fd(model: Model) -> Traced:
    """[q̇; v̇] as a traced function of t, x = [q; v] and p = tau; made once for each model.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> f = traced_fd(mechanisms.pendulum())
    >>> f(0.0, np.array([0.0, 1.0]), np.array([2.0]))
    array([1., 2.])
    """
    from integrators import traced

    def fd(t: Any, x: Any, p: Any = ()) -> Any:
        w = _symbolic_state(model, t, x)
        _set_forces(model, w, p if model.nv else None, None)
        position_rates(w)
        _accelerate(w, Stabilisation("none", 0.0, 0.0) if model.loops else None)
        return np.concatenate([w.q_dot, w.a_q])

    return _kept(model, "fd", lambda: traced(fd, n=model.nq + model.nv, params=model.nv))


def traced_id(model: Model) -> Traced:
    """Joint forces as a traced function of t, x = [q; v] and p = accelerations."""
    from integrators import traced

    def inverse(t: Any, x: Any, p: Any = ()) -> Any:
        w = _symbolic_state(model, t, x)
        _set_forces(model, w, None, None)
        w.a_q[:] = p
        inverse_dynamics(w)
        return w.tau

    return _kept(
        model,
        "id",
        lambda: traced(inverse, n=model.nq + model.nv, params=model.nv, outputs=model.nv),
    )


def _kept(model: Model, name: str, make: Callable[[], Any]) -> Any:
    kept = model.tree.traced
    if name not in kept:
        kept[name] = make()
    return kept[name]


def _position_directions(model: Model, q: Array, t: float) -> Array:
    """∂q̇/∂v: what each velocity variable does to the positions."""
    columns = [position_rate(model, q, e, t=t) for e in np.eye(model.nv)]
    return np.array(columns).T.reshape(model.nq, model.nv)


def FD_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    t: float = 0.0,
    tangent: bool = True,
) -> tuple[Array, Array, Array]:
    """Exact derivatives of FD with respect to position, velocity and joint forces.

    Parameters
    ----------
    tangent
        True: the first matrix is nv × nv, derivatives along the directions that the velocity
        variables stand for. False: nv × nq, derivatives by the numbers in q.

    Returns
    -------
    dq, dv, dtau
        dtau is H⁻¹.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> dq, dv, dtau = FD_derivatives(mechanisms.pendulum(), [0.0], [0.0])
    >>> dq.round(6), dtau
    (array([[-9.81]]), array([[1.]]))
    """
    q, v = model.check("q", q), model.check("v", v)
    force = np.zeros(model.nv) if tau is None else model.check("tau", tau)
    f, x = traced_fd(model), np.concatenate([q, v])
    J = f.jacobian()(t, x, force)[model.nq :]
    dtau = f.parameter_jacobian()(t, x, force)[model.nq :]
    dq = J[:, : model.nq]
    return (dq @ _position_directions(model, q, t) if tangent else dq), J[:, model.nq :], dtau


def ID_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    t: float = 0.0,
    tangent: bool = True,
) -> tuple[Array, Array, Array]:
    """Exact derivatives of ID with respect to position, velocity and acceleration.

    The last one is H; `tangent` as in :func:`FD_derivatives`.
    """
    q, v, a = model.check("q", q), model.check("v", v), model.check("a", a)
    f, x = traced_id(model), np.concatenate([q, v])
    J = np.asarray(f.jacobian()(t, x, a)).reshape(model.nv, -1)
    da = np.asarray(f.parameter_jacobian()(t, x, a)).reshape(model.nv, -1)
    dq = J[:, : model.nq]
    return (dq @ _position_directions(model, q, t) if tangent else dq), J[:, model.nq :], da


# ---------------------------------------------------------------------- initial value problems


def as_ivp(
    model: Model,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    tau: Any = None,
    f_ext: Any = None,
    *,
    quaternions: str = "renormalise",
    traced: bool | None = None,
    stabilise: str | None = None,
    T_stab: float | str | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    step: float | None = None,
    rank: str = "regular",
    rank_tolerance: float = RANK_TOLERANCE,
) -> IVP:
    """Initial value problem ẋ = [q̇; v̇] of a mechanism.

    Parameters
    ----------
    model
        A kinematic tree, with or without loops.
    q0, v0
        Initial position (neutral if not given) and velocity (at rest if not given).
    t_span
        (t0, t1).
    tau
        Joint forces: None for none; nv numbers, which become the problem's parameters; a table
        ``(times, values)`` with a row of nv numbers for each time, interpolated linearly and
        held constant outside; or a function ``tau(t, q, v)``.
    f_ext
        External forces in base coordinates: None, a row of six for each body, or a function
        ``f_ext(t, q, v)`` that returns them.
    quaternions
        What keeps quaternions unit vectors: "renormalise" after each accepted step, "stabilise"
        by a term in q̇ that pulls them back, or "free" to watch them drift.
    traced
        True: machine code from the traced model, or an error that says why not. False: the
        generic compiled kernels. None: traced if the model has at most 40 bodies and the
        functions given can be traced.
    stabilise
        For models with loops: "baumgarte" (the default), "projection" of position and velocity
        after each step, or "none" to watch the loops open; the last two also by their names in
        :func:`~multibody.as_dae`, "projected" and "index1".
    T_stab, alpha, beta, step
        Baumgarte's constants: α = β = 1/T_stab, with T_stab = 0.1 s if nothing is given (book,
        §8.3). ``T_stab="auto"`` with the length `step` of the steps to be taken is ten of them:
        safe for every method with a fixed step.
    rank, rank_tolerance
        "regular", or "truncate" to look at singular values in each evaluation, as is needed to
        pass through singular positions; slower, and untraced.

    Returns
    -------
    IVP
        With an exact Jacobian if traced, invariants (energy, momentum) where they are conserved,
        names of the states, and the manifold of positions, for Munthe-Kaas methods (such as
        ``method="RKMK4"``), which keep quaternions unit vectors by themselves.

    Examples
    --------
    >>> from integrators import solve
    >>> from multibody import mechanisms
    >>> problem = as_ivp(mechanisms.pendulum(), [1.0], [0.0], (0, 2))
    >>> solution = solve(problem, method="DOP853", rtol=1e-10, atol=1e-12)
    >>> f"{solution.y[0, -1]:.6f}"
    '0.920794'
    """
    from integrators import IVP

    one_of(quaternions, "quaternions", ("renormalise", "stabilise", "free"))
    q0 = model.neutral() if q0 is None else model.check("q", q0)
    v0 = np.zeros(model.nv) if v0 is None else model.check("v", v0)
    tau_law, params = joint_force_law(model, tau)
    force_law = external_force_law(model, f_ext)
    gain = QUATERNION_GAIN if quaternions == "stabilise" else 0.0
    keep = None
    if model.loops:
        keep = Stabilisation.of(stabilise, T_stab, alpha, beta, step, rank, rank_tolerance)
        check_consistent(model, q0, v0, float(t_span[0]))
        keep = keep.starting_at(model, q0, float(t_span[0]))
    elif stabilise is not None or T_stab is not None or alpha is not None:
        raise ValueError(f"{model.name!r} has no loops to stabilise; leave stabilise out")
    f = _right_hand_side(model, tau_law, force_law, params, gain, traced, keep)
    places = model.quaternion_places
    conservative = tau is None and f_ext is None
    on_manifold = any(set(b.joint.groups) - {"R", "SO2"} for b in model.bodies)
    project = _renormaliser(places) if places and quaternions == "renormalise" else None
    if keep is not None and keep.kind == "projection":
        project = loop_projection(model)
    invariants = _invariants(model) if conservative else {}
    if model.loops:
        invariants |= gap_invariants(model)
    return IVP(
        f,
        np.concatenate([q0, v0]),
        (float(t_span[0]), float(t_span[1])),
        params,
        project=project,
        invariants=invariants,
        name=model.name,
        manifold=_manifold(model, tau_law, force_law, params, f, keep) if on_manifold else None,
        state_names=(*model.q_names, *model.v_names),
        review=loop_review(model, "energy" in invariants) if model.loops else None,
        observe=lambda solution: observables(model, solution, tau, f_ext),
    )


def _right_hand_side(
    model: Model,
    tau_law: Callable[..., Any] | None,
    force_law: Callable[..., Any] | None,
    params: Array,
    gain: float,
    trace: bool | None,
    keep: Stabilisation | None,
) -> Callable[..., Any]:
    from integrators import TracingError, traced

    nq, places = model.nq, model.quaternion_places

    def stabilised(q: Any, q_dot: Any) -> Any:
        for at in places if gain else ():
            p = [q[at + k] for k in range(4)]
            excess = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3] - 1.0
            for k in range(4):
                q_dot[at + k] = q_dot[at + k] - 0.5 * gain * excess * p[k]
        return q_dot

    def symbolic(t: Any, x: Any, p: Any = ()) -> Any:
        w = _symbolic_state(model, t, x)
        q, v = x[:nq], x[nq:]
        joint_force = None if tau_law is None else tau_law(t, q, v, p)
        _set_forces(model, w, joint_force, None if force_law is None else force_law(t, q, v))
        position_rates(w)
        _accelerate(w, keep)
        return np.concatenate([stabilised(q, w.q_dot), w.a_q])

    def numeric(t: float, x: Array, p: Any = ()) -> Array:
        q, v = x[:nq], x[nq:]
        joint_force = None if tau_law is None else tau_law(t, q, v, p)
        forces = None if force_law is None else force_law(t, q, v)
        a = _accelerations(model, q, v, joint_force, forces, t, keep)
        return np.concatenate([stabilised(q, position_rate(model, q, v, t=t)), a])

    untraceable = [b for b in model.bodies if not b.joint.is_traceable]
    wanted = trace is not False
    if trace is None and (model.n_bodies > TRACED_BODIES or untraceable):
        wanted = False
    if keep is not None and not keep.can_trace(model):
        if trace:
            raise ValueError(
                f"traced=True: rank={keep.rank!r} with {len(model.tree.acting_rows)} constraints "
                "is not traced; leave traced=None"
            )
        wanted = False
    if wanted:
        if untraceable:
            raise TracingError(
                f"body {untraceable[0].name!r} has a joint whose law is a Python callback that "
                "cannot be traced; leave traced=None or False"
            )
        try:
            if len(params):
                return traced(symbolic, n=nq + model.nv, params=len(params))
            return traced(lambda t, x: symbolic(t, x), n=nq + model.nv)
        except TracingError:
            if trace:
                raise
    return numeric if len(params) else lambda t, x: numeric(t, x)


def _accelerate(w: Any, keep: Stabilisation | None) -> None:
    """Accelerations on symbols, of a tree or of closed loops."""
    if keep is None:
        (factored_kernel if is_shallow(w.parent_v) else forward_dynamics)(w)
    else:
        keep.symbolic(w)


def _accelerations(
    model: Model, q: Array, v: Array, tau: Any, f_ext: Any, t: float, keep: Stabilisation | None
) -> Array:
    """Accelerations on floats, of a tree or of closed loops."""
    if keep is None:
        return FD(model, q, v, tau, f_ext, t=t)
    return keep.numeric(model, q, v, tau, f_ext, t)


def _manifold(
    model: Model,
    tau_law: Callable[..., Any] | None,
    force_law: Callable[..., Any] | None,
    params: Array,
    f: Any,
    keep: Stabilisation | None,
) -> Any:
    """Positions on their groups, velocities as vectors; the motion of both, traced if f is."""
    from integrators import groups, traced
    from integrators.tracing import Traced

    kinds = {
        "R": groups.euclidean(1),
        "SO2": groups.euclidean(1),
        "SO3": groups.rotations_by_quaternion(),
        "SE2": groups.planar_motions(),
        "SE3": groups.rigid_motions(),
    }
    parts = [kinds[g] for b in model.bodies for g in b.joint.groups]
    space = groups.product(*parts, groups.euclidean(model.nv))
    nq = model.nq

    def directions(t: Any, q: Any, v: Any) -> list[Any]:
        return [
            np.asarray(b.joint.group_velocity(t, q[i], v[k]))
            for b, i, k in zip(model.bodies, model.q_index, model.v_index)
        ]

    def symbolic(t: Any, x: Any, p: Any = ()) -> Any:
        w = _symbolic_state(model, t, x)
        q, v = x[:nq], x[nq:]
        joint_force = None if tau_law is None else tau_law(t, q, v, p)
        _set_forces(model, w, joint_force, None if force_law is None else force_law(t, q, v))
        _accelerate(w, keep)
        return np.concatenate([*directions(t, q, v), w.a_q])

    def numeric(t: float, x: Array, p: Any = ()) -> Array:
        q, v = x[:nq], x[nq:]
        joint_force = None if tau_law is None else tau_law(t, q, v, p)
        forces = None if force_law is None else force_law(t, q, v)
        a = _accelerations(model, q, v, joint_force, forces, t, keep)
        return np.concatenate([*directions(t, q, v), a])

    if not isinstance(f, Traced):
        return space.manifold(numeric if len(params) else lambda t, x: numeric(t, x))
    # Without n it is traced at its first use only: most runs do not need it.
    m = space.dimension
    if len(params):
        return space.manifold(traced(symbolic, params=len(params), outputs=m))
    return space.manifold(traced(lambda t, x: symbolic(t, x), outputs=m))


def _renormaliser(places: tuple[int, ...]) -> Callable[..., Any]:
    def project(t: float, x: Array) -> Array:
        out = np.array(x)
        for at in places:
            out[at : at + 4] /= np.sqrt(out[at : at + 4] @ out[at : at + 4])
        return out

    return project


def _invariants(model: Model) -> dict[str, Callable[..., float]]:
    """Energy and momentum, where nothing changes them."""
    found: dict[str, Callable[..., float]] = {}
    nq = model.nq
    if not model.is_rheonomic and not model.is_damped:
        found["energy"] = lambda t, x: energy(model, x[:nq], x[nq:]).total
    afloat = all(b.joint.kind == "free" for b in model.bodies if b.parent == 0)
    tied = any(0 in (s.body_a, s.body_b) for s in model.springs)
    tied = tied or any(0 in (c.predecessor, c.successor) for c in model.loops)
    if afloat and not tied:
        for k, name in enumerate(("h_x", "h_y", "h_z", "p_x", "p_y", "p_z")):
            # Gravity changes the momentum along it, and the moment of momentum about the origin.
            if not model.gravity.any() or (k >= 3 and model.gravity[k - 3] == 0.0):
                found[f"momentum {name}"] = _momentum_component(model, k)
    return found


def _momentum_component(model: Model, k: int) -> Callable[..., float]:
    nq = model.nq
    return lambda t, x: float(momentum(model, x[:nq], x[nq:])[k])


def quaternion_drift(model: Model, x: ArrayLike) -> Array:
    """|p|² − 1 of each quaternion: of a state, or of states in columns (such as ``solution.y``)."""
    x = np.asarray(x, dtype=float)
    rows = [np.sum(x[at : at + 4] ** 2, axis=0) - 1.0 for at in model.quaternion_places]
    return np.array(rows).reshape(len(rows), *x.shape[1:])
