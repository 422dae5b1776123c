"""Closed loops with multipliers as unknowns: a model as an ``integrators.dae.Mechanical`` system.

``as_dae`` gives every formulation of ``integrators.dae`` for one model: index 3, 2 and 1, Gear,
Gupta and Leimkuhler's stabilised index 2, overdetermined, minimal coordinates, augmented
Lagrangian, projection, Baumgarte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import Array, ArrayLike, check_rank_tolerance
from ..dynamics.crba import crba_kernel
from ..dynamics.factor import lt_solve, ltl
from ..dynamics.functions import FD, crba, position_rate
from ..dynamics.kinematics import position_rates
from ..dynamics.loading import load, load_forces
from ..dynamics.loops.assembly import binds_positions
from ..dynamics.loops.closed_loop import (
    RANK_TOLERANCE,
    _run_closure,
    _run_forces,
    constraints,
    need_loops,
)
from ..dynamics.loops.gaps import closure_kernel
from ..dynamics.loops.multipliers import unconstrained_forces
from ..dynamics.motion import totals_along
from ..model.rules import refuse_contacts
from .closed import TRACED_CONSTRAINTS, check_consistent
from .forces import external_force_law, joint_force_law
from .ivp import TRACED_BODIES, _set_forces
from .observe import over_all_loops, with_reactions
from .prescribed import drive_review
from .singular import loop_review
from .watched import mechanism_watch

if TYPE_CHECKING:
    from integrators.dae import Mechanical

    from ..model import Model

__all__ = ["as_dae", "as_mechanical", "independent_rows"]

#: Formulations that solve for the multipliers instead of integrating them.
ELIMINATED = ("index1", "baumgarte", "projected", "minimal", "augmented")

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


def as_mechanical(
    model: Model,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    tau: Any = None,
    f_ext: Any = None,
    *,
    traced: bool | None = None,
    rows: ArrayLike | None = None,
) -> Mechanical:
    """A model with loops as a system M v̇ = f + Gᵀλ, 0 = g.

    Parameters
    ----------
    model, q0, v0, t_span, tau, f_ext, traced
        As in :func:`~multibody.as_ivp`; the start must be consistent.
    rows
        Loop constraints to be used; by default all that can act. Where some of them are
        redundant, which would leave their multipliers undetermined, as many combinations of
        them as are independent at the start take their place. Rows that are given must restrict
        the start as much as all of them do.

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
    from integrators.problem import time_span

    _need_model(model)
    need_loops(model)
    q0 = model.neutral() if q0 is None else model.check("q", q0)
    v0 = np.zeros(model.nv) if v0 is None else model.check("v", v0)
    t0, t1 = time_span(t_span)
    check_consistent(model, q0, v0, t0)
    if not len(model.tree.acting_rows):
        raise ValueError(
            f"{model.name!r}: the loops {[loop.name for loop in model.loops]} impose nothing that "
            "the tree does not (their Jacobian K is zero everywhere, rank 0), so that there is no "
            "multiplier; remove them, or use as_ivp, which does not need any"
        )
    chosen, mixing = _chosen(model, q0, t0, rows)
    holonomic = binds_positions(model)[chosen]
    tau_law, params = joint_force_law(model, tau)
    force_law = external_force_law(model, f_ext)
    parts = _Parts(model, chosen, tau_law, force_law, params, mixing)
    if traced is None:
        count = len(chosen) if mixing is None else len(mixing)
        small = count <= TRACED_CONSTRAINTS and model.n_bodies <= TRACED_BODIES
        traced = small and all(b.joint.is_traceable for b in model.bodies)
    undisturbed = tau is None and f_ext is None
    conservative = undisturbed and not model.is_rheonomic and not model.is_damped
    plain = all(b.joint.rate_is_velocity for b in model.bodies)  # positions are vectors
    names = constraints(model, q0).names
    return Mechanical(
        parts.mass,
        parts.force,
        parts.gap,
        parts.jacobian,
        parts.bias,
        velocity_target=parts.target,
        q0=q0,
        v0=v0,
        t_span=(t0, t1),
        rate=None if plain else parts.rate,
        retract=None if plain else lambda q, u: model.integrate(model.normalise(q), u),
        normalise=model.normalise if model.quaternion_places else None,
        velocity_only=np.flatnonzero(~holonomic).tolist(),
        multiplier_names=() if mixing is not None else [f"λ({names[k]})" for k in chosen],
        position_names=model.q_names,
        velocity_names=model.v_names,
        invariants=(
            {"energy": lambda t, q, v: float(totals_along(model, q, v, t)[:2].sum())}
            if conservative
            else {}
        ),
        trace=traced,
        check_derivatives=False,  # they are exact
        name=model.name,
    )


def as_dae(
    model: Model,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    tau: Any = None,
    f_ext: Any = None,
    *,
    formulation: str = "index3",
    traced: bool | None = None,
    rows: ArrayLike | None = None,
    **options: Any,
) -> Any:
    """A model with loops in one of the formulations of ``integrators.dae``.

    Parameters
    ----------
    model, q0, v0, t_span, tau, f_ext, traced, rows
        As in :func:`as_mechanical`; forms that eliminate the multipliers use all constraints
        that can act, unless rows are given.
    formulation
        "index3", "index2", "ggl", "index1", "baumgarte", "projected", "overdetermined",
        "minimal" or "augmented"; see ``docs/dae.md``.
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
    from integrators.dae.formulations import formulation_key

    if rows is None and formulation_key(formulation) in ELIMINATED:
        # Without multipliers as unknowns redundant rows do no harm, and which of them are
        # independent may change on the way.
        _need_model(model)
        need_loops(model)
        rows = model.tree.acting_rows
    system = as_mechanical(model, q0, v0, t_span, tau, f_ext, traced=traced, rows=rows)
    problem = system.formulation(formulation, **options)
    conservative = tau is None and f_ext is None and "energy" in system.invariants
    return problem.with_(
        review=drive_review(model, loop_review(model, conservative, _rates(model, tau, f_ext))),
        observe=lambda solution: with_reactions(
            model, over_all_loops(model, system.observables(solution)), tau, f_ext
        ),
        watch=mechanism_watch(model, tau, f_ext, split_states),
    )


def split_states(problem: Any, t: Array, y: Array) -> tuple[Array, Array]:
    """Positions and velocities, in columns, of states of a formulation."""
    parts = [problem.split(float(s), x) for s, x in zip(t, y.T)]
    return np.array([q for q, _ in parts]).T, np.array([v for _, v in parts]).T


def _rates(model: Model, tau: Any, f_ext: Any) -> Callable[..., Array]:
    """[q̇; v̇] as a function of (t, q, v), whatever the formulation."""
    tau_law, params = joint_force_law(model, tau)
    force_law = external_force_law(model, f_ext)

    def rates(t: float, q: Array, v: Array) -> Array:
        torque = None if tau_law is None else tau_law(t, q, v, params)
        outside = None if force_law is None else force_law(t, q, v)
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


def _chosen(model: Model, q: Array, t: float, rows: ArrayLike | None) -> tuple[Array, Array | None]:
    """Rows of the loop constraints to use, and how to mix them into fewer, where that is needed."""
    acting = np.asarray(model.tree.acting_rows, dtype=int)
    if rows is not None:
        chosen = np.atleast_1d(np.asarray(rows))
        known = constraints(model, q, t=t).names
        integral = chosen.ndim == 1 and chosen.size and np.issubdtype(chosen.dtype, np.integer)
        if not integral or len(set(chosen.tolist())) < chosen.size:
            raise ValueError(f"rows: expected different numbers of loop constraints, got {rows!r}")
        if chosen.min() < 0 or chosen.max() >= len(known):
            listed = ", ".join(f"{k} {name}" for k, name in enumerate(known))
            raise ValueError(f"rows: expected some of {listed}; got {chosen.tolist()}")
        weighted = _weighted(model, q, t)
        sizes = [np.linalg.svd(A, compute_uv=False) for A in (weighted[chosen], weighted)]
        limit = RANK_TOLERANCE * sizes[1].max(initial=0.0)
        some, every = (int(np.sum(s > limit)) for s in sizes)
        if some < every:
            raise ValueError(
                f"rows: {chosen.tolist()} have rank {some} at the start, all constraints together "
                f"rank {every}: the loops would come apart; give rows that span all, such as "
                f"{independent_rows(model, q, t=t).tolist()}, or leave rows out"
            )
        return chosen, None
    independent = independent_rows(model, q, t=t)
    if len(independent) == len(acting):
        return acting, None
    if not binds_positions(model)[acting].all():  # positions and velocities do not mix
        return independent, None
    U, _, _ = np.linalg.svd(_weighted(model, q, t)[acting])
    mixing = U[:, : len(independent)].T
    return acting, np.where(np.abs(mixing) < MIXED, 0.0, mixing)


def _weighted(model: Model, q: ArrayLike, t: float) -> Array:
    """K L⁻¹ with H = LᵀL: rows whose lengths and angles mean something, whatever the units."""
    parent = model.tree.arrays["parent_v"]
    factor = ltl(crba(model, q, t=t), parent)
    return np.asarray(lt_solve(factor, parent, constraints(model, q, t=t).K.T).T)


class _Parts:
    """The functions of a mechanical system, on floats by compiled kernels, and on symbols.

    `rows` are the loop constraints used, and `mixing`, if given, how they are combined.
    """

    def __init__(
        self,
        model: Model,
        rows: Array,
        tau_law: Callable[..., Any] | None,
        force_law: Callable[..., Any] | None,
        params: Array,
        mixing: Array | None = None,
    ) -> None:
        self.model, self.rows, self.params, self.mixing = model, rows, params, mixing
        self.open = ~binds_positions(model)[rows] if len(rows) else np.zeros(0, dtype=bool)
        self.tau_law, self.force_law = tau_law, force_law

    def _symbols(self, t: Any, q: Any, v: Any = None) -> Any:
        """Workspace of symbols if the arguments are symbols, else None."""
        arguments = [np.asarray(t), np.asarray(q), np.asarray(0.0 if v is None else v)]
        if not any(a.dtype == object for a in arguments):
            return None
        w = self.model.tree.symbolic()
        w.t[0] = t
        w.q[:] = q
        w.v[:] = 0.0 if v is None else v
        return w

    def _closure(self, t: Any, q: Any, v: Any = None) -> Any:
        w = self._symbols(t, q, v)
        if w is not None:
            closure_kernel(w)
            return w
        w = load(self.model, q, v, t)
        _run_closure(w)
        return w

    def mass(self, t: Any, q: Any) -> Any:
        w = self._symbols(t, q)
        if w is None:
            return crba(self.model, q, t=t)
        crba_kernel(w)
        return np.array(w.H)

    def force(self, t: Any, q: Any, v: Any) -> Any:
        tau = None if self.tau_law is None else self.tau_law(t, q, v, self.params)
        forces = None if self.force_law is None else self.force_law(t, q, v)
        w = self._symbols(t, q, v)
        if w is not None:
            _set_forces(self.model, w, tau, forces)
            unconstrained_forces(w)
            return np.array(w.z)
        w = load(self.model, q, v, t)
        w.tau[:] = 0.0 if tau is None else tau
        load_forces(self.model, w, forces)
        _run_forces(w)
        return w.z.copy()

    def _mixed(self, values: Any) -> Any:
        chosen = np.array(values[self.rows])
        return chosen if self.mixing is None else self.mixing @ chosen

    def gap(self, t: Any, q: Any) -> Any:
        delta = self._mixed(self._closure(t, q).delta)
        return np.where(self.open, 0.0, delta) if self.open.any() else delta

    def jacobian(self, t: Any, q: Any) -> Any:
        return self._mixed(self._closure(t, q).K)

    def bias(self, t: Any, q: Any, v: Any) -> Any:
        return self._mixed(self._closure(t, q, v).gamma)

    def target(self, t: Any, q: Any) -> Any:
        return self._mixed(self._closure(t, q).nu)

    def rate(self, t: Any, q: Any, v: Any) -> Any:
        w = self._symbols(t, q, v)
        if w is None:
            return position_rate(self.model, q, v, t=t)
        position_rates(w)
        return np.array(w.q_dot)
