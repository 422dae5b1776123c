"""Closed loops with multipliers as unknowns: a model as an ``integrators.dae.Mechanical`` system.

``as_dae`` gives every formulation of ``integrators.dae`` for one model: index 3, 2 and 1, Gear,
Gupta and Leimkuhler's stabilised index 2, overdetermined, minimal coordinates, augmented
Lagrangian, projection, Baumgarte.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.dae.acceleration import SOLVERS
from integrators.dae.formulations.table import FORMULATIONS, formulation_key
from integrators.problem import direction, from_recipe, time_span

from ..checks import Array, ArrayLike, check_rank_tolerance
from ..dynamics.functions import FD, crba, position_rate
from ..dynamics.loops.assembly import binds_positions
from ..dynamics.loops.closed_loop import RANK_TOLERANCE, constraints, need_loops, weighted
from ..dynamics.motion import totals_along
from ..model.rules import refuse_contacts
from .closed import TRACED_CONSTRAINTS, Stabilisation, check_consistent
from .forces import check_unlocked, force_laws, forces_at, lock_review
from .observing.acted import Observing
from .observing.observe import over_all_loops, with_reactions
from .observing.watched import mechanism_distance, mechanism_watch
from .prescribing.jumps import check_tables, drive_review
from .prescribing.motion import PrescribedMotion
from .recursions import Recursions, unit_quaternions
from .scheduled import scheduled
from .singularities.review import loop_review
from .slopes import TRACED_BODIES, Slopes, TracedJacobian, displacement
from .units import units_of

if TYPE_CHECKING:
    from integrators.dae import Formulation, Mechanical

    from ..model import Model

__all__ = ["as_dae", "as_mechanical", "closed_problem", "independent_rows"]

log = logging.getLogger(__name__)

MIXED = 1e-14  # smaller coefficients of combined constraints are rounding errors


def independent_rows(
    model: Model, q: ArrayLike, *, t: float = 0.0, rank_tolerance: float = RANK_TOLERANCE
) -> Array:
    """Numbers of loop constraints that together are independent at a position and span all.

    Chosen by a QR factorisation with pivoting of the Jacobian weighted with the inertia.
    """
    import scipy.linalg

    rank_tolerance = check_rank_tolerance(rank_tolerance)
    R, pivots = scipy.linalg.qr(_weighted(model, q, t).T, mode="r", pivoting=True)
    sizes = np.abs(np.diag(R))
    rank = int(np.sum(sizes > rank_tolerance * sizes.max(initial=0.0)))
    return np.sort(pivots[:rank])


@from_recipe
def as_mechanical(
    model: Model,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    tau: Any = None,
    f_ext: Any = None,
    *,
    params: ArrayLike = (),
    traced: bool | None = None,
    rows: ArrayLike | None = None,
    rank_tolerance: float = RANK_TOLERANCE,
    quaternion_gain: float = 0.0,
) -> Mechanical:
    """A model with loops as a system M v̇ = f + Gᵀλ, 0 = g.

    Parameters
    ----------
    model, q0, v0, t_span, tau, f_ext, params, traced
        As in :func:`~multibody.as_ivp`; the start must be consistent.
    rows
        Loop constraints to be used; by default all that can act. Where some of them are
        redundant, which would leave their multipliers undetermined, as many combinations of
        them as are independent at the start take their place. Rows that are given must restrict
        the start as much as all of them do.
    rank_tolerance
        Singular values of the weighted Jacobian below this part of the largest count as zero.
    quaternion_gain
        Rate (1/s) at which quaternions are pulled back to norm 1, on top of what is done after
        each step.

    Notes
    -----
    A choice of rows can become dependent on the way although the mechanism is nowhere singular:
    four of the five rows of Bricard's linkage do so after 1.25 s. Combinations by singular vectors
    of the start are as far from that as possible there. Rolling loop joints restrict velocities
    only: forms with g = 0 use their velocities instead.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> entry = mechanisms.entry("four_bar")
    >>> model = entry.model()
    >>> as_mechanical(model, *entry.start(model)).terms(0.0, *entry.start(model)).G.shape
    (2, 3)
    """
    from integrators.dae import Mechanical

    _need_model(model)
    need_loops(model)
    q0 = model.neutral() if q0 is None else model.check("q", q0)
    v0 = np.zeros(model.nv) if v0 is None else model.check("v", v0)
    rank_tolerance = check_rank_tolerance(rank_tolerance)
    t0, t1 = time_span(t_span)
    check_consistent(model, q0, v0, t0)
    check_unlocked(model, q0, v0, t0)
    if not len(model.tree.acting_rows):
        raise ValueError(
            f"{model.name!r}: the loops {[loop.name for loop in model.bonds]} impose nothing that "
            "the tree does not (their Jacobian K is zero everywhere, rank 0), so that there is no "
            "multiplier; remove them, or use as_ivp, which does not need any"
        )
    chosen, mixing = _chosen(model, q0, t0, rows, rank_tolerance)
    tau_law, force_law, p = force_laws(model, tau, f_ext, params)
    keep = Stabilisation(rank_tolerance=rank_tolerance).starting_at(model, q0, t0)
    way, places = direction((t0, t1)), model.quaternion_places
    gain, kept = way * quaternion_gain, None
    numbers = not (callable(tau) or isinstance(tau, tuple) or f_ext is not None or model.elements)
    if mixing is None and numbers:
        # Nothing but the model and these numbers is in what is traced.
        like = ("loops", tuple(chosen.tolist()), len(p), keep, gain, traced)
        kept = model.tree.traced.setdefault(like, {})
    depends = callable(tau) or bool(model.elements), callable(f_ext) or bool(model.elements)
    ways = Recursions(model, tau_law, force_law, chosen, mixing, keep, gain, len(p), kept, depends)
    holonomic = binds_positions(model)[chosen]
    undisturbed = tau is None and f_ext is None
    conservative = undisturbed and not model.is_rheonomic and not model.is_damped
    plain = all(b.joint.rate_is_velocity for b in model.bodies)  # positions are vectors
    plain, acts = plain and not model.n_states, bool(model.elements)
    names = constraints(model, q0).names

    def see(seen: Any, solution: Any, model: Model, *forces: Any) -> Any:
        return with_reactions(model, over_all_loops(model, seen), *forces)

    return Mechanical(
        ways.mass,
        ways.force,
        ways.gap,
        ways.jacobian,
        ways.bias,
        velocity_target=ways.target,
        q0=q0,
        v0=v0,
        t_span=(t0, t1),
        rate=None if plain else ways.rate,
        retract=None if plain else displacement(model),
        normalise=partial(unit_quaternions, places=places) if places else None,
        own_states=model.n_states,
        velocity_only=np.flatnonzero(~holonomic).tolist(),
        params=p,
        multiplier_names=() if mixing is not None else [f"λ({names[k]})" for k in chosen],
        position_names=model.q_names,
        velocity_names=model.v_names,
        invariants=(
            {"energy": lambda t, q, v: float(totals_along(model, q, v, t)[:2].sum())}
            if conservative
            else {}
        ),
        trace=_may_trace(model, ways, traced, callable(tau) or acts, callable(f_ext) or acts),
        rank_tolerance=rank_tolerance,
        check_derivatives=False,  # they are exact
        recursions=ways,
        observing=Observing(see, model, tau, f_ext),
        name=model.name,
    )


def _may_trace(model: Model, ways: Recursions, wanted: bool | None, *functions: bool) -> bool:
    """Whether a model is traced: if asked for, or if it is small and its functions allow it."""
    from integrators.tracing import TracingError, traced

    if wanted is False:
        return False
    count = len(ways.rows) if ways.mixing is None else len(ways.mixing)
    untraceable = [b for b in model.bodies if not b.joint.is_traceable]
    large = count > TRACED_CONSTRAINTS or model.n_bodies > TRACED_BODIES
    if wanted is None and (untraceable or large):
        return False
    if untraceable:
        raise TracingError(
            f"body {untraceable[0].name!r} has a joint whose law is a Python callback that cannot "
            "be traced; leave traced=None or False"
        )
    nq, n, k = model.nq, model.nq + model.nv, ways.n_params
    try:
        if functions[0]:
            tau: Any = ways.tau_law
            traced(lambda t, x, p: tau(t, x[:nq], x[nq:], p), n=n, params=k, outputs=model.nv)
        if functions[1]:
            outer: Any = ways.force_law
            rows = 6 * model.n_bodies
            law = lambda t, x, p: np.ravel(outer(t, x[:nq], x[nq:], p))  # noqa: E731
            traced(law, n=n, params=k, outputs=rows)
    except TracingError as error:
        if wanted:
            raise
        log.warning(
            "%r: forces are called as Python functions in every evaluation, because they cannot be "
            "traced (%s); traced=False says that this is meant",
            model.name,
            " ".join(str(error).split())[:300],
        )
        return False
    return True


@from_recipe
def as_dae(
    model: Model,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    tau: Any = None,
    f_ext: Any = None,
    *,
    prescribed: Any = None,
    params: ArrayLike = (),
    formulation: str = "index3",
    traced: bool | None = None,
    rows: ArrayLike | None = None,
    **options: Any,
) -> Any:
    """A model with loops in one of the formulations of ``integrators.dae``.

    Parameters
    ----------
    model, q0, v0, t_span, tau, f_ext, params, traced, rows
        As in :func:`as_mechanical`; forms that eliminate the multipliers use all constraints
        that can act, unless rows are given.
    prescribed
        Motions that freedoms are to follow, as in :func:`~multibody.as_ivp`.
    formulation
        A name that ``integrators.dae.FORMULATIONS`` has; see ``docs/dae.md``.
    options
        Of the formulation, such as ``T_stab=0.05``.

    Returns
    -------
    IVP
        For ``solve``, with a method that suits it: Radau methods for the first three.

    Examples
    --------
    >>> from integrators import solve
    >>> from multibody import mechanisms
    >>> entry = mechanisms.entry("four_bar")
    >>> model = entry.model()
    >>> problem = as_dae(model, *entry.start(model), (0, 0.1), formulation="ggl")
    >>> solve(problem, method="RADAU5", rtol=1e-7, atol=1e-9).success
    True
    """
    motion = None
    _need_model(model)
    check_tables(model, time_span(t_span))
    if prescribed is not None:
        need_loops(model)
        motion, span = PrescribedMotion(model, prescribed), time_span(t_span)
        q0, v0, tau, params = motion.applied(q0, v0, span, tau, f_ext, params)
    problem: Any = closed_problem(
        *(model, q0, v0, t_span, tau, f_ext, params, formulation, options), traced=traced, rows=rows
    )

    def watch(problem: Any, t: Array, y: Array) -> Any:
        forces = forces_at(tau, f_ext, problem.params)
        return mechanism_watch(model, *forces, split_states)(problem, t, y)

    if motion is not None:
        problem = replace(problem, review=motion.review(problem.review))
    more: dict[str, Any] = {"units": units_of(model)}
    more["distance"] = mechanism_distance(model, split_states)
    if model.quaternion_places and problem.to_qv is None:  # its states begin with q
        more["admit"] = model.unit
    return scheduled(problem.with_(watch=watch, **more), model)


def closed_problem(
    model: Model,
    q0: ArrayLike | None,
    v0: ArrayLike | None,
    t_span: Sequence[float],
    tau: Any,
    f_ext: Any,
    params: ArrayLike,
    formulation: str,
    options: Mapping[str, Any],
    *,
    traced: bool | None,
    rows: ArrayLike | None = None,
    rank_tolerance: float = RANK_TOLERANCE,
    quaternion_gain: float = 0.0,
    exact_jacobian: bool = False,
) -> Formulation:
    """What :func:`as_dae` and :func:`~multibody.as_ivp` share: a formulation of a model with loops.

    Where the accelerations are those of the loops, with or without feedback, the problem has the
    manifold of positions, and the exact Jacobian if asked for, or if f is not traced.
    """
    _need_model(model)
    need_loops(model)
    form = FORMULATIONS[formulation_key(formulation)]
    if rows is None and not form.keeps_multipliers and not options.get("multipliers"):
        # Without multipliers as unknowns redundant rows do no harm, and which of them are
        # independent may change on the way.
        rows = model.tree.acting_rows
    span = time_span(t_span)

    def make(way: int) -> tuple[Any, Mechanical]:
        turned = span if direction(span) == way else (span[0], 2 * span[0] - span[1] + way)
        system = as_mechanical(
            *(model, q0, v0, turned, tau, f_ext),
            params=params,
            traced=traced,
            rows=rows,
            rank_tolerance=rank_tolerance,
            quaternion_gain=quaternion_gain,
        )
        problem = system.formulation(form.name, **options)
        if problem.gains is None:
            return problem, system
        keep = system.recursions.keep.fed_back(*problem.gains)
        if options.get("solver") in SOLVERS:
            keep = replace(keep, rank="truncate")
        laws = Slopes(model, tau, f_ext, params, way * quaternion_gain, keep)
        jac = laws.jacobian(problem.f, traced)
        if isinstance(jac, TracedJacobian) and not exact_jacobian:
            jac = None  # methods that need it make their own
        return problem.with_(jac=jac, manifold=laws.manifold(problem.f)), system

    def directed(way: int) -> dict[str, Any]:
        made, _ = make(way)
        return {name: getattr(made, name) for name in ("f", "jac", "manifold", "gains")}

    problem, system = make(direction(span))
    turns = problem.directed is not None or quaternion_gain
    rates = None if problem.gains is not None else _rates(model, tau, f_ext, params)
    review = loop_review(model, "energy" in system.invariants, rates)
    made: Any = problem.with_(
        review=drive_review(model, lock_review(model, review)), directed=directed if turns else None
    )
    return made


def split_states(problem: Any, t: Array, y: Array) -> tuple[Array, Array]:
    """Positions and velocities, in columns, of states of a formulation."""
    q, v = problem.split_along(t, y)
    return q, v


def _rates(model: Model, tau: Any, f_ext: Any, params: ArrayLike) -> Callable[..., Array]:
    """[q̇; v̇] as a function of (t, q, v), whatever the formulation."""
    tau_law, force_law, p = force_laws(model, tau, f_ext, params)

    def rates(t: float, q: Array, v: Array) -> Array:
        torque = None if tau_law is None else tau_law(t, q, v, p)
        outside = None if force_law is None else force_law(t, q, v, p)
        q = model.normalise(q)
        a = FD(model, q, v, torque, outside, t=t)
        return np.concatenate([position_rate(model, q, v, t=t), a])

    return rates


def _need_model(model: Any) -> None:
    from ..model import Model

    if not isinstance(model, Model):
        raise TypeError(
            f"model: expected a Model, such as mechanisms.four_bar() returns, received {model!r}"
        )
    refuse_contacts(model, "as_dae")


def _chosen(
    model: Model, q: Array, t: float, rows: ArrayLike | None, tolerance: float
) -> tuple[Array, Array | None]:
    """Rows of the loop constraints to use, and how to mix them into fewer, where that is needed."""
    acting = np.asarray(model.tree.acting_rows, dtype=int)
    if rows is model.tree.acting_rows:
        return acting, None
    if rows is not None:
        chosen = np.atleast_1d(np.asarray(rows))
        known = constraints(model, q, t=t).names
        integral = chosen.ndim == 1 and chosen.size and np.issubdtype(chosen.dtype, np.integer)
        if not integral or len(set(chosen.tolist())) < chosen.size:
            raise ValueError(f"rows: expected different numbers of loop constraints, got {rows!r}")
        if chosen.min() < 0 or chosen.max() >= len(known):
            listed = ", ".join(f"{k} {name}" for k, name in enumerate(known))
            raise ValueError(f"rows: expected some of {listed}; got {chosen.tolist()}")
        K = _weighted(model, q, t)
        sizes = [np.linalg.svd(A, compute_uv=False) for A in (K[chosen], K)]
        limit = tolerance * sizes[1].max(initial=0.0)
        some, every = (int(np.sum(s > limit)) for s in sizes)
        if some < every:
            raise ValueError(
                f"rows: {chosen.tolist()} have rank {some} at the start, all constraints together "
                f"rank {every}: the loops would come apart; give rows that span all, such as "
                f"{independent_rows(model, q, t=t).tolist()}, or leave rows out"
            )
        return chosen, None
    independent = independent_rows(model, q, t=t, rank_tolerance=tolerance)
    if len(independent) == len(acting):
        return acting, None
    if not binds_positions(model)[acting].all():  # positions and velocities do not mix
        return independent, None
    U, _, _ = np.linalg.svd(_weighted(model, q, t)[acting])
    mixing = U[:, : len(independent)].T
    return acting, np.where(np.abs(mixing) < MIXED, 0.0, mixing)


def _weighted(model: Model, q: ArrayLike, t: float) -> Array:
    """K weighted with the inertia, so that its rows can be compared whatever their units."""
    return np.asarray(weighted(crba(model, q, t=t), constraints(model, q, t=t).K)[1].T)
