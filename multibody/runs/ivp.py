"""Mechanisms as right-hand sides: the bridge from ``multibody`` to ``integrators``.

``FD_x(model, x, tau)`` is ẋ for the state x = [q; v] (book, Eq 3.8–3.9). :func:`as_ivp` makes an
initial value problem of a model that any integrator accepts; models of ordinary size are traced,
so that the whole right-hand side is machine code with an exact Jacobian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.dae.formulations.table import FORMULATIONS, formulation_key
from integrators.dae.problem import Normaliser
from integrators.problem import direction, from_recipe
from integrators.tracing import TracingError
from integrators.tracing import traced as traced_function

from ..checks import Array, ArrayLike, check_rank_tolerance, one_of, real_array
from ..dynamics.acting import acting
from ..dynamics.functions import FD, position_rate
from ..dynamics.loops.closed_loop import RANK_TOLERANCE
from ..dynamics.storage.loading import ForcesLike, external_forces
from .closed import TRACED_CONSTRAINTS, check_consistent, gap_invariants
from .dae import closed_problem
from .derivatives import FD_derivatives, ID_derivatives
from .forces import check_unlocked, driven_variables, force_laws, lock_review
from .observing.acted import Observing
from .observing.conserved import invariants as conserved_quantities
from .observing.observe import observables
from .observing.watched import mechanism_distance, mechanism_watch
from .prescribing.jumps import check_tables, drive_review
from .prescribing.motion import PrescribedMotion
from .recursions import unit_quaternions
from .scheduled import scheduled
from .slopes import TRACED_BODIES, Slopes
from .traced import traced_fd, traced_id
from .units import units_of

if TYPE_CHECKING:
    from integrators import IVP, Solution

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

    Elements of the model act besides, and the rates of their own states are part of q̇.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> FD_x(mechanisms.pendulum(), [np.pi / 2, 1.0], [0.0]).round(6)
    array([ 1.  , -9.81])
    """
    q, v = split_state(model, x)
    if model.elements:
        acted = acting(model, t, q, v)
        tau = acted.joint_forces() + (0.0 if tau is None else model.check("tau", tau))
        f_ext = acted.wrenches() + external_forces(model, f_ext)
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


@from_recipe
def as_ivp(
    model: Model,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    tau: Any = None,
    f_ext: Any = None,
    *,
    prescribed: Any = None,
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
    prescribed
        Motions that freedoms are to follow, ``{body or variable: motion}``, with the forces that
        this takes in ``solution.observed.tau`` (``docs/hybrid-dynamics.md``). A motion is a
        function of time that gives positions, written with NumPy; a table ``(times,
        positions)``, through which a cubic spline is laid; a spline of SciPy; or a function of
        (t, q, v) that gives accelerations. What `tau` says for these freedoms is not read.
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
        after each step, "none" to watch the loops open, or any other formulation that
        ``integrators.dae.FORMULATIONS`` has for explicit methods, "minimal" or "augmented".
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
        ``jac``, the invariants (energy, components of momentum) that the mechanism and the forces
        conserve, names of the states, and the manifold of positions, for
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
    _check_model(model)
    one_of(quaternions, "quaternions", ("renormalise", "stabilise", "free"))
    one_of(rank, "rank", ("regular", "truncate"))
    span = _time_span(t_span)
    check_tables(model, span)
    options = {"T_stab": T_stab, "alpha": alpha, "beta": beta, "step": step}
    how: dict[str, Any] = {"quaternions": quaternions, "traced": traced, "stabilise": stabilise}
    how |= {**options, "rank": rank, "rank_tolerance": rank_tolerance}
    if prescribed is not None:
        motion = PrescribedMotion(model, prescribed)
        q0, v0, tau, params = motion.applied(q0, v0, span, tau, f_ext, params)
        if traced is None and model.n_bodies > TRACED_BODIES:
            traced = False  # nor are the forces traced, for their derivatives
        problem = as_ivp(
            *(model, q0, v0, span, tau, f_ext),
            params=params,
            restitution_law=restitution_law,
            **{**how, "traced": traced},
        )
        return replace(problem, review=motion.review(problem.review))
    start = (
        model.neutral() if q0 is None else model.check("q", q0),
        np.zeros(model.nv) if v0 is None else model.check("v", v0),
    )
    if model.rigid_contacts:
        from .contact.problem import contact_problem

        return contact_problem(*(model, *start, span, tau, f_ext, params, restitution_law), **how)
    gain = QUATERNION_GAIN if quaternions == "stabilise" else 0.0
    given = {name: value for name, value in options.items() if value is not None}
    if model.bonds:
        problem = _of_loops(
            model,
            start,
            span,
            tau,
            f_ext,
            params,
            "baumgarte" if stabilise is None else stabilise,
            given,
            traced,
            rank,
            check_rank_tolerance(rank_tolerance),
            gain,
        )
    elif stabilise is not None or given:
        raise ValueError(
            f"{model.name!r} has no loops to stabilise; leave out stabilise, T_stab, alpha, beta "
            "and step"
        )
    else:
        problem = _of_tree(model, start, span, tau, f_ext, params, traced, gain)
    if quaternions == "renormalise" and problem.project is None:
        problem = problem.with_(project=_renormaliser(model))
    elif quaternions != "renormalise" and isinstance(problem.project, Normaliser):
        problem = problem.with_(project=None)
    driven = driven_variables(model, tau)
    undisturbed = f_ext is None and not model.elements
    invariants = conserved_quantities(model, driven) if undisturbed else {}
    if model.bonds:
        invariants |= gap_invariants(model)

    def see(solution: Solution, model: Model, *forces: Any) -> Any:
        if model.contacts:
            from .contact.observe import contact_forces

            laws = force_laws(model, tau, f_ext, params)[:2]
            acting = lambda *at: tuple(law and law(*at) for law in laws)  # noqa: E731
            return contact_forces(model, solution, given=acting)
        return observables(model, solution, *forces)

    observe = Observing(see, model, tau, f_ext)

    def watch(problem: Any, t: Array, y: Array) -> Any:
        return mechanism_watch(model, *observe.forces(problem.params))(problem, t, y)

    def admit(start: Array) -> Array:
        unit = model.unit(start)  # refuses what is far from it
        return unit if quaternions == "renormalise" else start

    problem = problem.with_(
        invariants=invariants,
        name=model.name,
        observe=observe,
        watch=watch,
        units=units_of(model),
        distance=mechanism_distance(model),
        admit=admit if model.quaternion_places else None,
    )
    if model.contacts:
        from .contact.problem import one_way

        problem = one_way(problem, model)
    return scheduled(problem, model)


def _of_tree(
    model: Model,
    start: tuple[Array, Array],
    t_span: tuple[float, float],
    tau: Any,
    f_ext: Any,
    params: ArrayLike,
    traced: bool | None,
    gain: float,
) -> IVP:
    """The problem of a tree, or of loops that impose nothing."""
    from integrators import IVP

    check_unlocked(model, *start, t_span[0])

    def directed(way: int) -> dict[str, Any]:
        # A term that brings errors down as time grows lets them grow as time runs backwards.
        slopes = Slopes(model, tau, f_ext, params, way * gain)
        f = slopes.of_tree(traced)
        return {"f": f, "jac": slopes.jacobian(f, traced), "manifold": slopes.manifold(f)}

    return IVP(
        **directed(direction(t_span)),
        y0=np.concatenate(start),
        t_span=t_span,
        params=force_laws(model, tau, f_ext, params)[2],
        state_names=(*model.q_names, *model.v_names),
        review=drive_review(model, lock_review(model, None)),
        directed=directed if gain else None,
    )


def _of_loops(
    model: Model,
    start: tuple[Array, Array],
    t_span: tuple[float, float],
    tau: Any,
    f_ext: Any,
    params: ArrayLike,
    stabilise: str,
    options: dict[str, Any],
    traced: bool | None,
    rank: str,
    rank_tolerance: float,
    gain: float,
) -> IVP:
    """The problem of a model with loops, in one of the forms without multipliers as unknowns."""
    name = formulation_key(stabilise, explicit=True, argument="stabilise")
    takes = {form.name: form.options for form in FORMULATIONS.values() if form.is_explicit}
    if wrong := [option for option in options if option not in takes[name]]:
        others = [other for other, known in takes.items() if set(wrong) <= set(known)]
        raise ValueError(
            f"stabilise={stabilise!r} takes no {', '.join(wrong)}; {' and '.join(others)} do"
        )
    if not len(model.tree.acting_rows):
        check_consistent(model, *start, t_span[0])
        return _of_tree(model, start, t_span, tau, f_ext, params, traced, gain)
    if rank == "truncate":
        options = {**options, "solver": "svd"}
        if "solver" not in takes[name]:
            raise ValueError(f"stabilise={stabilise!r} decides on rank by itself; leave out rank")
    if traced and (rank == "truncate" or len(model.tree.acting_rows) > TRACED_CONSTRAINTS):
        raise ValueError(
            f"traced=True: rank={rank!r} with {len(model.tree.acting_rows)} constraints is not "
            "traced; leave traced=None"
        )
    problem = closed_problem(
        *(model, *start, t_span, tau, f_ext, params, name, options),
        traced=traced,
        rank_tolerance=rank_tolerance,
        quaternion_gain=gain,
        exact_jacobian=True,
    )
    if traced and not hasattr(problem.f, "machine_code"):
        raise TracingError(
            f"traced=True: {name!r} of {model.name!r} is too large to be traced as a whole; leave "
            "traced=None"
        )
    return problem


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


def _time_span(t_span: Any) -> tuple[float, float]:
    times = real_array(t_span, "t_span")
    if times.shape != (2,):
        raise ValueError(f"t_span: expected two times (t0, t1), received {t_span!r:.80}")
    return float(times[0]), float(times[1])


def _renormaliser(model: Model) -> Any:
    """Quaternions to norm 1 after each step; None where there are none."""
    places, nq = model.quaternion_places, model.nq
    if not places:
        return None
    return traced_function(
        lambda t, x: np.concatenate([unit_quaternions(x[:nq], places), x[nq:]]), n=nq + model.nv
    )


def quaternion_drift(model: Model, x: ArrayLike) -> Array:
    """|p|² − 1 of each quaternion: of a state, or of states in columns (such as ``solution.y``)."""
    x = np.asarray(x, dtype=float)
    rows = [np.sum(x[at : at + 4] ** 2, axis=0) - 1.0 for at in model.quaternion_places]
    return np.array(rows).reshape(len(rows), *x.shape[1:])
