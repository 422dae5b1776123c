"""What to look at along a run of a mechanism: closure, energy, constraint forces, singularity.

None of these numbers alone makes a run right. A mechanism that passes through a singular position
can keep its energy and its loops to many digits and yet move wrongly from there on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.dae.observe import Observables

from ...checks import Array
from ...dynamics.loops.closed_loop import constraints
from ...dynamics.motion import energy
from ..forces import external_force_law, joint_force_law
from ..singularities.review import NEAR_SINGULAR, singular_positions
from ..singularities.weighted import (
    ConstraintsAlong,
    constraints_along,
    singular_value_ratios,
)

if TYPE_CHECKING:
    from ...dynamics.loops.loads.reactions import JointReactions
    from ...model import Model

__all__ = ["NEAR_SINGULAR", "MechanismObservables", "Observed", "observables", "observe"]

MOST_STATES = 600  # of a run that are looked at; more would take longer than the run
MOST_DIPS = 12  # passages from which on a table just says that there are many


@dataclass(frozen=True)
class Observed:
    """Largest values along a run; None where they make no sense.

    Attributes
    ----------
    gap, speed
        max |δ| and max |Kv − ν| over all loops (m, rad, and by s); None for trees.
    energy
        Largest change of the energy since the start, in parts of the energy that moves: the
        largest kinetic energy or change of the potential one. None if forces or drives change it.
    multiplier
        Largest constraint force |λ| (N, Nm) that the states need.
    rank
        Smallest and largest rank of K at the states.
    closest, closest_time
        How near the loops came to a singular position, and when: smallest ratio of the last
        to the first singular value of the independent constraints, weighted with the inertia.
    passages
        Times at which singular positions were reached or passed.
    """

    gap: float | None = None
    speed: float | None = None
    energy: float | None = None
    multiplier: float | None = None
    rank: tuple[int, int] | None = None
    closest: float | None = None
    closest_time: float | None = None
    passages: tuple[float, ...] = ()

    @property
    def singular(self) -> bool:
        """Whether the run reached or passed a singular position."""
        return len(self.passages) > 0


def observe(
    model: Model, t: Array, q: Array, v: Array, tau: Any = None, f_ext: Any = None
) -> Observed:
    """Look at a run.

    Parameters
    ----------
    model
        With or without loops.
    t, q, v
        Times, and positions and velocities in columns.
    tau, f_ext
        The forces that acted, as in :func:`~multibody.as_ivp`.

    Examples
    --------
    >>> from multibody import as_ivp, mechanisms
    >>> from integrators import solve
    >>> entry = mechanisms.entry("four_bar")
    >>> model = entry.model()
    >>> run = solve(as_ivp(model, *entry.start(model), (0, 1)), method="DOP853", rtol=1e-9)
    >>> seen = observe(model, run.t, run.y[:3], run.y[3:])
    >>> seen.rank, seen.singular, seen.gap < 1e-6, seen.energy < 1e-6
    ((2, 2), False, True, True)
    """
    places = singular_positions(model, t, q, v, exact=True) if model.bonds else None
    keep = np.unique(np.linspace(0, len(t) - 1, min(len(t), MOST_STATES)).round().astype(int))
    t, q, v = t[keep], np.ascontiguousarray(q[:, keep].T), np.ascontiguousarray(v[:, keep].T)
    conserved = tau is None and f_ext is None and not model.is_rheonomic and not model.is_damped
    change = _energy_change(model, t, q, v) if conserved else None
    if places is None:
        return Observed(energy=change)
    gap, speed, multipliers, rank = _constraints_along(model, t, q, v, tau, f_ext)
    return Observed(
        gap=float(np.abs(gap).max()),
        speed=float(np.abs(speed).max()),
        energy=change,
        multiplier=float(np.abs(multipliers).max(initial=0.0)),
        rank=(int(rank.min()), int(rank.max())),
        closest=places.closest,
        closest_time=places.closest_time,
        passages=tuple(p.t for p in places.passages),
    )


@dataclass(frozen=True)
class MechanismObservables(Observables):
    """What can be seen along a run of a mechanism; see :class:`integrators.dae.Observables`."""

    find_reactions: Callable[[MechanismObservables], JointReactions] | None = field(
        default=None, repr=False
    )
    find_tau: Callable[[MechanismObservables], Array] | None = field(default=None, repr=False)

    @cached_property
    def tau(self) -> Array:
        """Joint forces (nv, n_t) that acted, those of prescribed motion among them.

        Not those of springs, dampers and stops of the model. Computed when asked for.
        """
        if self.find_tau is None:
            raise ValueError("tau: the forces that acted are not known")
        return self.find_tau(self)

    @cached_property
    def reactions(self) -> JointReactions:
        """Wrench in every joint at each time, in joint coordinates; computed when asked for.

        In other coordinates, and with elements in loop joints: :func:`~multibody.reactions_along`.
        """
        if self.find_reactions is None:
            raise ValueError("reactions: the forces that acted are not known; use reactions_along")
        return self.find_reactions(self)


def with_reactions(
    model: Model, seen: Observables, tau: Any = None, f_ext: Any = None
) -> MechanismObservables:
    """The same with the forces that acted, and with reactions under them."""

    def find(states: Observables) -> JointReactions:
        from .reactions import reactions_along

        return reactions_along(model, states, tau, f_ext)

    def find_tau(states: Observables) -> Array:
        law, p = joint_force_law(model, tau)
        out = np.zeros((model.nv, len(states.t)))
        for k, (t, q, v) in enumerate(zip(states.t, states.q.T, states.v.T)):
            if law is not None:
                out[:, k] = law(float(t), np.ascontiguousarray(q), np.ascontiguousarray(v), p)
        return out

    given = {name: getattr(seen, name) for name in Observables.__dataclass_fields__}
    return MechanismObservables(**given, find_reactions=find, find_tau=find_tau)


def observables(model: Model, solution: Any, tau: Any = None, f_ext: Any = None) -> Observables:
    """Drift, multipliers, rank and invariants at every time of a solution of ``as_ivp``.

    The same as ``solution.observed``; see :class:`integrators.dae.Observables`. For a tree the
    constraints are empty.

    Examples
    --------
    >>> from multibody import as_ivp, mechanisms
    >>> from integrators import solve
    >>> entry = mechanisms.entry("bricard")
    >>> model = entry.model()
    >>> run = solve(as_ivp(model, *entry.start(model), (0, 1)), method="DOP853", rtol=1e-9)
    >>> run.observed.rank.max(), run.observed.multipliers.shape == (5, len(run.t))
    (np.int64(4), True)
    """
    q, v = solution.y[: model.nq], solution.y[model.nq : model.nq + model.nv]
    return observables_of_states(model, solution, q, v, tau, f_ext)


def observables_of_states(
    model: Model, solution: Any, q: Array, v: Array, tau: Any = None, f_ext: Any = None
) -> Observables:
    """The same for a solution in other variables, with positions and velocities in columns."""
    t, count = solution.t, len(solution.t)
    rows = int(model.tree.arrays["loop_at"][-1])
    gap, speed, multipliers = (np.zeros((rows, count)) for _ in range(3))
    rank, singularity = np.zeros(count, dtype=np.int64), np.zeros(count)
    if model.bonds and count:
        gap, speed, multipliers, rank = _constraints_along(model, t, q.T, v.T, tau, f_ext)
        ratios = singular_value_ratios(model, t, q)
        singularity = np.array([row[r - 1] if r else 0.0 for row, r in zip(ratios, rank)])
    problem = solution.problem
    bound = {name: problem.bind(g) for name, g in problem.invariants.items()}
    invariants = {
        name: np.array([float(g(float(s), x)) for s, x in zip(t, solution.y.T)])
        for name, g in bound.items()
        if not name.startswith("loop gap")  # that is the drift
    }
    seen = Observables(
        t=t,
        q=q,
        v=v,
        gap=gap,
        speed=speed,
        drift=np.abs(gap).max(axis=0, initial=0.0),
        velocity_drift=np.abs(speed).max(axis=0, initial=0.0),
        multipliers=multipliers,
        state_multipliers=None,
        rank=rank,
        singularity=singularity,
        invariants=invariants,
    )
    return with_reactions(model, seen, tau, f_ext)


def over_all_loops(model: Model, seen: Observables) -> Observables:
    """The same with the drift of all loops, whichever constraints the equations contain."""
    found = [constraints(model, q, v, t=float(t)) for t, q, v in zip(seen.t, seen.q.T, seen.v.T)]
    return replace(
        seen,
        drift=np.array([np.abs(c.delta).max(initial=0.0) for c in found]),
        velocity_drift=np.array(
            [np.abs(c.K @ v - c.nu).max(initial=0.0) for c, v in zip(found, seen.v.T)]
        ),
    )


def _constraints_along(
    model: Model, t: Array, q: Array, v: Array, tau: Any, f_ext: Any
) -> ConstraintsAlong:
    """Gaps, their rates, multipliers (in columns) and rank at states in rows, under forces."""
    law, params = joint_force_law(model, tau)
    forces = None if law is None else lambda time, x, u: law(time, x, u, params)
    return constraints_along(model, t, q, v, forces, external_force_law(model, f_ext))


def _energy_change(model: Model, t: Array, q: Array, v: Array) -> float:
    along = [energy(model, x, u, t=float(time)) for time, x, u in zip(t, q, v)]
    total = np.array([e.total for e in along])
    moving = max(
        max(e.kinetic for e in along), float(np.ptp([e.potential for e in along])), np.spacing(1.0)
    )
    return float(np.abs(total - total[0]).max() / moving)
