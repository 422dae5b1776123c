"""What all formulations share: the problem itself, tracing, projection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import suggest
from ..problem import IVP, time_span
from ..runs.quality import samples, watched_invariants
from ..tracing import GraphTooLargeError, Traced
from .acceleration import SOLVERS, Eliminated
from .consistency import projected
from .feedback import direction
from .review import joined, rank_review
from .system import Mechanical

__all__ = ["Formulation", "full_rank", "make_problem", "may_trace", "projector", "traced_or"]

Array = NDArray[np.float64]

LARGE_CORRECTION = 0.1  # relative to q: not to be trusted without pivots
VELOCITIES = 5.0  # most formulations keep velocities less well than positions
GAP_SETTLED = 1e-9  # relative size of the last Newton correction of a projection


@dataclass(frozen=True, eq=False, repr=False)
class Formulation(IVP):
    """An initial value problem that knows the mechanical system behind it.

    Attributes
    ----------
    mechanical
        The system.
    formulation
        Name of the formulation.
    extra
        For "overdetermined": the equations ``extra(t, y)`` = 0 beyond M y' = f.
    to_qv
        For "minimal" with a loop-closure function: ``to_qv(t, y)`` -> (q, v).
    directed
        Where f depends on the direction of time, as feedback does: ``directed(±1)`` -> f.
    always_review
        A review (see :class:`~integrators.IVP`) that stays when another one is added.
    """

    mechanical: Any = None
    formulation: str = ""
    extra: Callable[..., Any] | None = None
    to_qv: Callable[..., Any] | None = None
    directed: Callable[[int], Callable[..., Any]] | None = None
    always_review: Callable[..., Any] | None = None

    def with_(self, **changes: Any) -> IVP:
        """Return a copy with some fields replaced; f follows the direction of time.

        A review comes in addition to the formulation's own.
        """
        if self.directed is not None and "t_span" in changes and "f" not in changes:
            way = direction(time_span(changes["t_span"]))
            if way != direction(self.t_span):
                changes["f"] = self.directed(way)
        if self.always_review is not None and changes.get("review") is not None:
            changes["review"] = joined(self.always_review, changes["review"])
        return super().with_(**changes)

    def split(self, t: float, y: Any) -> tuple[Array, Array]:
        """Positions and velocities of a state."""
        y = np.asarray(y, dtype=float)
        if self.to_qv is not None:
            return self.bind(self.to_qv)(t, y)
        nq, nv = self.mechanical.nq, self.mechanical.nv
        return y[:nq], y[nq : nq + nv]

    def multipliers(self, y: Any) -> Array | None:
        """λ, where it is part of the state."""
        start = self.mechanical.nq + self.mechanical.nv
        if self.to_qv is not None or self.n < start + self.mechanical.m:
            return None
        return np.asarray(y, dtype=float)[start : start + self.mechanical.m]


def make_problem(
    mechanical: Mechanical,
    formulation: str,
    f: Callable[..., Any],
    y0: Any,
    names: Any,
    **fields: Any,
) -> Formulation:
    """Put a problem together; invariants and names come from the system."""
    nq, nv = mechanical.nq, mechanical.nv
    to_qv = fields.get("to_qv")

    def along(invariant: Callable[..., Any]) -> Callable[..., Any]:
        def value(t: Any, y: Any, p: Any = mechanical.params) -> Any:
            q, v = (y[:nq], y[nq : nq + nv]) if to_qv is None else to_qv(t, y, p)
            return invariant(t, q, v, p)

        return value

    fields.setdefault("project", _normaliser(mechanical))
    own, review = fields.get("always_review"), rank_review(mechanical)
    fields["review"] = review if own is None else joined(own, review)
    return Formulation(
        f,
        y0,
        mechanical.t_span,
        mechanical.params,
        invariants={key: along(g) for key, g in mechanical.invariants.items()},
        name=" ".join(filter(None, [mechanical.name, formulation])),
        state_names=names,
        mechanical=mechanical,
        formulation=formulation,
        observe=mechanical.observables,
        watch=_watch_constraints,
        **fields,
    )


def _watch_constraints(problem: Any, t: Array, y: Array) -> dict[str, Any]:
    """Invariants, and constraints compared with how far all coordinates together move them."""
    some = samples(t)
    g, rate, reach, speed = [], [], 0.0, 0.0
    for k in some:
        q, v = problem.split(float(t[k]), y[:, k])
        now = problem.mechanical.terms(float(t[k]), q, v, problem.params)
        g.append(np.abs(now.g).max(initial=0.0))
        rate.append(np.abs(now.G @ v - now.nu).max(initial=0.0))
        lever = float(np.abs(now.G).sum(axis=1).max(initial=0.0))
        reach = max(reach, lever * float(np.abs(q).max(initial=0.0)))
        speed = max(speed, lever * float(np.abs(v).max(initial=0.0)))
    return {
        **watched_invariants(problem, t, y),
        "the constraints": (t[some], np.array(g), reach, 1.0),
        "the rate of the constraints": (t[some], np.array(rate), speed, VELOCITIES),
    }


def _normaliser(mechanical: Mechanical) -> Callable[..., Any] | None:
    if mechanical.given["normalise"] is None:
        return None
    nq = mechanical.nq

    def project(t: float, y: Any, p: Any = mechanical.params) -> Any:
        return np.concatenate([mechanical.normalised(y[:nq], p), y[nq:]])

    return project


def full_rank(mechanical: Mechanical) -> bool:
    """Whether the constraints are independent at the start."""
    return mechanical.rank() == mechanical.m


def may_trace(mechanical: Mechanical, solver: str) -> bool:
    """Whether a right-hand side is to be traced; refuses unknown solvers."""
    if solver not in ("auto", "traced", *SOLVERS):
        known = ["auto", "traced", *SOLVERS]
        raise ValueError(
            f"there is no solver {solver!r}{suggest(solver, known)}; known are {', '.join(known)}"
        )
    possible = mechanical.parts.traceable and full_rank(mechanical)
    if solver == "traced" and not possible:
        raise ValueError(
            "solver='traced' needs functions that can be traced (Mechanical(..., trace=True)) and "
            f"independent constraints (rank {mechanical.rank()} of {mechanical.m} here)"
        )
    return possible and solver in ("auto", "traced")


def traced_or(
    mechanical: Mechanical,
    wanted: bool,
    f: Callable[..., Any],
    n: int,
    other: Callable[..., Any],
    outputs: int | None = None,
) -> Callable[..., Any]:
    """Return f traced, or the other function where that is not wanted or too large."""
    if not wanted:
        return other
    try:
        made = Traced(f, n=n, params=mechanical.params.size, outputs=outputs or n)
        made.machine_code()
    except GraphTooLargeError:
        return other
    return made


def projector(mechanical: Mechanical, by_rank: bool = False) -> Callable[..., Any]:
    """``project(t, y)`` onto g = 0 and G v = ν, by machine code where possible.

    `by_rank` insists on singular values. They also serve where a correction comes out so large
    that elimination without pivots is not to be trusted.
    """
    nq, nv, params = mechanical.nq, mechanical.nv, mechanical.params
    parts = mechanical.parts

    def robust(t: float, y: Any, p: Any = params) -> Any:
        return projected(mechanical, t, y, p)

    if by_rank or not (mechanical.is_traced and full_rank(mechanical)):
        return robust

    def displacement(t: Any, q: Any, p: Any) -> Any:
        known = Eliminated(parts.mass(t, q, p), parts.jacobian(t, q, p))
        return known.correction(-parts.constraint(t, q, p))

    def velocity(t: Any, x: Any, p: Any) -> Any:
        q, v = x[:nq], x[nq:]
        G = parts.jacobian(t, q, p)
        known = Eliminated(parts.mass(t, q, p), G)
        return v + known.correction(parts.target(t, q, p) - G @ v)

    k = params.size
    closing = Traced(displacement, n=nq, params=k, outputs=nv)
    speeds = Traced(velocity, n=nq + nv, params=k, outputs=nv)

    def project(t: float, y: Any, p: Any = params) -> Any:
        q = mechanical.normalised(np.array(y[:nq]), p)
        for _ in range(6):
            u = closing(t, q, p)
            size = np.abs(u).max()
            if not size <= LARGE_CORRECTION * max(1.0, np.abs(q).max()):
                break
            q = mechanical.moved(t, q, u, p)
            if size <= GAP_SETTLED * max(1.0, np.abs(q).max()):
                x = np.concatenate([q, y[nq : nq + nv]])
                return np.concatenate([q, speeds(t, x, p), y[nq + nv :]])
        return robust(t, y, p)

    return project
