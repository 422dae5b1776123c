"""Mechanisms as right-hand sides: the bridge from ``multibody`` to ``integrators``.

``FD_x(model, x, tau)`` is ẋ for the state x = [q; v] (book, Eq 3.8–3.9). :func:`as_ivp` makes an
initial value problem of a model that any integrator accepts; models of ordinary size are traced,
so that the whole right-hand side is machine code with an exact Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import Array, ArrayLike, one_of, real_array
from ..dynamics.functions import FD, position_rate, rate_along, tree_accelerations
from ..dynamics.kinematics import position_rates
from ..dynamics.loading import ForcesLike
from ..dynamics.loops.closed_loop import RANK_TOLERANCE
from .closed import Stabilisation, check_consistent, gap_invariants, loop_projection
from .conserved import invariants as conserved_quantities
from .derivatives import FD_derivatives, ID_derivatives, StateJacobian
from .forces import (
    driven_variables,
    external_force_law,
    joint_force_law,
    takes_parameters,
    with_parameters,
)
from .observe import observables
from .prescribed import drive_review
from .singular import loop_review
from .traced import accelerate, symbolic_state, traced_fd, traced_id
from .traced import set_forces as _set_forces
from .watched import mechanism_watch

if TYPE_CHECKING:
    from integrators import Solution
    from integrators.tracing import Traced

    from ..model import Model

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

#: Traced problems with at most so many states have their Jacobian traced, too, as one piece of
#: machine code; compiling a larger one takes longer than it saves, and the compiled recursions of
#: :class:`~multibody.runs.derivatives.StateJacobian` serve all models.
TRACED_JACOBIAN_STATES = 8

#: The same for models with loops, where recursions are no part of the compiled code.
LOOP_JACOBIAN_STATES = 40

#: Rate (1/s) at which the stabilising term pulls quaternions back to unit norm.
QUATERNION_GAIN = 10.0


def FD_x(
    model: Model,
    x: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> Array:
    """State-space forward dynamics: ẋ = [q̇; v̇] for x = [q; v]; forces as in :func:`FD`.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> FD_x(mechanisms.pendulum(), [np.pi / 2, 1.0], [0.0]).round(6)
    array([ 1.  , -9.81])
    """
    q, v = split_state(model, x)
    return np.concatenate([position_rate(model, q, v, t=t), FD(model, q, v, tau, f_ext, t=t)])


def split_state(model: Model, x: ArrayLike) -> tuple[Array, Array]:
    """Positions and velocities of a state (or of states in columns)."""
    x = np.asarray(x, dtype=float)
    n = model.nq + model.nv
    if x.shape[:1] != (n,):
        raise ValueError(
            f"x: expected nq + nv = {model.nq} + {model.nv} numbers, received shape {x.shape}"
        )
    return x[: model.nq], x[model.nq :]


# ---------------------------------------------------------------------- initial value problems


def as_ivp(
    model: Model,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    tau: Any = None,
    f_ext: Any = None,
    *,
    params: ArrayLike = (),
    quaternions: str = "renormalise",
    traced: bool | None = None,
    stabilise: str | None = None,
    T_stab: float | str | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    step: float | None = None,
    rank: str = "regular",
    rank_tolerance: float = RANK_TOLERANCE,
    restitution_law: str = "newton",
) -> Any:
    """Initial value problem ẋ = [q̇; v̇] of a mechanism.

    Parameters
    ----------
    model
        A kinematic tree, with or without loops.
    q0, v0
        Initial position (neutral if not given) and velocity (at rest if not given).
    t_span
        (t0, t1). For t1 < t0 the terms that stabilise quaternions and loops work backwards, too,
        also where ``solve(problem, (t0, t1))`` turns the direction round.
    tau
        Joint forces: None for none; nv numbers, which become the problem's parameters; a table
        ``(times, values)`` with a row of nv numbers for each time, interpolated linearly and
        held constant outside; or a function ``tau(t, q, v)`` or, with parameters,
        ``tau(t, q, v, p)``. A function is traced where
        possible: it is run here, on symbols, and what it reads besides its arguments (globals,
        attributes, files) keeps the values that it has now. With ``traced=False`` it is called in
        each evaluation, and sees changes.
    f_ext
        External forces in base coordinates: None, a row of six for each body, a dictionary of
        rows by names of bodies, or a function ``f_ext(t, q, v)`` or ``f_ext(t, q, v, p)`` that
        returns either; traced as a function for `tau` is.
    params
        What functions for forces receive as p: the parameters of the problem, which
        ``solve(problem, params=…)`` replaces.
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
    restitution_law
        For models with rigid contacts: "newton" or "poisson" (``docs/contact.md``).

    Returns
    -------
    IVP
        For a model with rigid contacts a :class:`~integrators.Hybrid`. Else with an exact Jacobian
        ``jac``, the invariants (energy, components of momentum) that the
        mechanism and the forces conserve, names of the states, and the manifold of positions, for
        Munthe-Kaas methods (such as ``method="RKMK4"``), which keep quaternions unit vectors by
        themselves.

    Examples
    --------
    >>> from integrators import solve
    >>> from multibody import mechanisms
    >>> problem = as_ivp(mechanisms.pendulum(), [1.0], [0.0], (0, 2))
    >>> solution = solve(problem, method="DOP853", rtol=1e-10, atol=1e-12)
    >>> f"{solution.y[0, -1]:.6f}"
    '0.920794'
    """
    from .directed import directed_problem

    _check_model(model)
    one_of(quaternions, "quaternions", ("renormalise", "stabilise", "free"))
    one_of(rank, "rank", ("regular", "truncate"))
    t0, t1 = _time_span(t_span)
    q0 = model.neutral() if q0 is None else model.check("q", q0)
    v0 = np.zeros(model.nv) if v0 is None else model.check("v", v0)
    if any(contact.law is None for contact in model.contacts):
        from .contact.problem import contact_problem

        if params is not None:
            raise ValueError(
                "parameters of forces are not known to runs with rigid contact; expected "
                "params=None (a closure over the numbers does the same)"
            )

        return contact_problem(
            model,
            q0,
            v0,
            (t0, t1),
            tau,
            f_ext,
            restitution_law,
            quaternions=quaternions,
            traced=traced,
            stabilise=stabilise,
            T_stab=T_stab,
            alpha=alpha,
            beta=beta,
            step=step,
            rank=rank,
            rank_tolerance=rank_tolerance,
        )
    tau_law, params_of_tau = joint_force_law(model, tau)
    force_law = external_force_law(model, f_ext)
    params = _force_parameters(params, given=params_of_tau, tau=tau, f_ext=f_ext)
    force_law = _with_all_arguments(force_law, f_ext)
    gain = QUATERNION_GAIN if quaternions == "stabilise" else 0.0
    keep = None
    if model.loops:
        keep = Stabilisation.of(stabilise, T_stab, alpha, beta, step, rank, rank_tolerance)
        check_consistent(model, q0, v0, t0)
        keep = keep.starting_at(model, q0, t0)
    elif any(given is not None for given in (stabilise, T_stab, alpha, beta, step)):
        raise ValueError(
            f"{model.name!r} has no loops to stabilise; leave out stabilise, T_stab, alpha, beta "
            "and step"
        )
    places = model.quaternion_places
    on_manifold = any(set(b.joint.groups) - {"R", "SO2"} for b in model.bodies)

    def directed(way: int) -> dict[str, Any]:
        # A term that brings errors down as time grows lets them grow as time runs backwards.
        held = None if keep is None else replace(keep, alpha=way * keep.alpha)
        f = _right_hand_side(model, tau_law, force_law, params, way * gain, traced, held)
        space = _manifold(model, tau_law, force_law, params, f, held) if on_manifold else None
        jac = _jacobian(
            f,
            model,
            lambda: StateJacobian(
                model,
                tau_law,
                force_law,
                (callable(tau), callable(f_ext)),
                way * gain,
                traced is not False,
                held,
                len(params),
            ),
        )
        return {"f": f, "jac": jac, "manifold": space}

    project = _renormaliser(places) if places and quaternions == "renormalise" else None
    if keep is not None and keep.kind == "projection":
        project = loop_projection(model)
    driven = driven_variables(model, tau)
    invariants = conserved_quantities(model, driven) if f_ext is None else {}
    if model.loops:
        invariants |= gap_invariants(model)

    def forces_of(problem: Any) -> tuple[Any, Any]:
        # Constant forces are the parameters of the problem, which may have others by now.
        p = problem.params
        if len(params_of_tau):
            return p, f_ext
        return with_parameters(tau, p), with_parameters(f_ext, p)

    def observe(solution: Solution) -> Any:
        return observables(model, solution, *forces_of(solution.problem))

    def watch(problem: Any, t: Array, y: Array) -> Any:
        return mechanism_watch(model, *forces_of(problem))(problem, t, y)

    return directed_problem(
        directed,
        y0=np.concatenate([q0, v0]),
        t_span=(t0, t1),
        params=params,
        project=project,
        invariants=invariants,
        name=model.name,
        state_names=(*model.q_names, *model.v_names),
        review=drive_review(
            model, loop_review(model, "energy" in invariants) if model.loops else None
        ),
        observe=observe,
        watch=watch,
    )


def _check_model(model: Any) -> None:
    from ..model import Model

    if not isinstance(model, Model):
        raise TypeError(
            "model: expected a Model, such as mechanisms.double_pendulum() returns, received "
            f"{model!r:.80}"
        )
    if model.nq + model.nv == 0:
        raise ValueError(
            f"{model.name!r} has no freedom (nv = 0): time prescribes the whole motion, and there "
            "is nothing to integrate; kinematics(model, [], t=...) tells where the bodies are"
        )


def _force_parameters(params: ArrayLike, given: Array, tau: Any, f_ext: Any) -> Array:
    """Parameters of the problem: those of functions for forces, or constant joint forces."""
    values = np.atleast_1d(real_array(params, "params")).astype(float)
    if not (takes_parameters(tau) or takes_parameters(f_ext)):
        if values.size:
            raise ValueError(
                "params: there is nothing that takes parameters; write a force as tau(t, q, v, p)"
            )
        return given
    if given.size:
        raise ValueError(
            "tau: constant joint forces are parameters themselves, and f_ext(t, q, v, p) wants "
            "others; write them as tau(t, q, v, p)"
        )
    if values.ndim != 1 or not values.size:
        raise ValueError(
            f"params: expected the numbers that forces of (t, q, v, p) receive as p, received "
            f"{params!r:.80}; give params=[…]"
        )
    return values


def _with_all_arguments(law: Callable[..., Any] | None, f_ext: Any) -> Callable[..., Any] | None:
    """External forces as a function of t, q, v, p, whether they take parameters or not."""
    if law is None or takes_parameters(f_ext):
        return law
    return lambda t, q, v, p: law(t, q, v)


def _time_span(t_span: Any) -> tuple[float, float]:
    times = real_array(t_span, "t_span")
    if times.shape != (2,):
        raise ValueError(f"t_span: expected two times (t0, t1), received {t_span!r:.80}")
    return float(times[0]), float(times[1])


class _ExactJacobian:
    """∂f/∂x of a traced f, as a function of its arguments; made at the first call."""

    def __init__(self, f: Traced) -> None:
        self.f = f

    def __call__(self, t: float, x: ArrayLike, *params: Any) -> Array:
        return self.f.jacobian()(t, x, *params)

    def machine_code(self) -> Any:
        """Let implicit methods call it without Python."""
        return self.f.jacobian().machine_code()


def _jacobian(f: Any, model: Model, analytical: Callable[[], StateJacobian]) -> Any:
    """Jacobian of the right-hand side: traced if it is small, else by recursions along the tree."""
    from integrators.tracing import Traced

    most = LOOP_JACOBIAN_STATES if model.loops else TRACED_JACOBIAN_STATES
    if isinstance(f, Traced) and f.n <= most:
        return _ExactJacobian(f)
    return analytical()


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
        w = symbolic_state(model, t, x)
        q, v = x[:nq], x[nq:]
        joint_force = None if tau_law is None else tau_law(t, q, v, p)
        _set_forces(model, w, joint_force, None if force_law is None else force_law(t, q, v, p))
        position_rates(w)
        accelerate(w, keep)
        return np.concatenate([stabilised(q, w.q_dot), w.a_q])

    def numeric(t: float, x: Array, p: Any = ()) -> Array:
        q, v = x[:nq], x[nq:]
        joint_force = None if tau_law is None else tau_law(t, q, v, p)
        forces = None if force_law is None else force_law(t, q, v, p)
        a = _accelerations(model, q, v, joint_force, forces, t, keep)
        return np.concatenate([stabilised(q, rate_along(model, q, v, t)), a])

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


def _accelerations(
    model: Model, q: Array, v: Array, tau: Any, f_ext: Any, t: float, keep: Stabilisation | None
) -> Array:
    """Accelerations on floats, of a tree or of closed loops."""
    if keep is None:
        return tree_accelerations(model, q, v, tau, f_ext, t)
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
        w = symbolic_state(model, t, x)
        q, v = x[:nq], x[nq:]
        joint_force = None if tau_law is None else tau_law(t, q, v, p)
        _set_forces(model, w, joint_force, None if force_law is None else force_law(t, q, v, p))
        accelerate(w, keep)
        return np.concatenate([*directions(t, q, v), w.a_q])

    def numeric(t: float, x: Array, p: Any = ()) -> Array:
        q, v = x[:nq], x[nq:]
        joint_force = None if tau_law is None else tau_law(t, q, v, p)
        forces = None if force_law is None else force_law(t, q, v, p)
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


def quaternion_drift(model: Model, x: ArrayLike) -> Array:
    """|p|² − 1 of each quaternion: of a state, or of states in columns (such as ``solution.y``)."""
    x = np.asarray(x, dtype=float)
    rows = [np.sum(x[at : at + 4] ** 2, axis=0) - 1.0 for at in model.quaternion_places]
    return np.array(rows).reshape(len(rows), *x.shape[1:])
