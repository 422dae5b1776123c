"""What all formulations share: the problem itself, and tracing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import suggest
from ..problem import IVP
from ..runs.judging import samples, watched_invariants
from ..tracing import GraphTooLargeError, Traced, TracingError
from .acceleration import SOLVERS
from .consistency import nearest
from .review import joined, rank_review
from .system import Mechanical

__all__ = ["Formulation", "Normaliser", "full_rank", "make_problem", "may_trace", "traced_or"]

Array = NDArray[np.float64]

VELOCITIES = 5.0  # most formulations keep velocities less well than positions


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
    gains
        (α, β), where the accelerations are those of G v̇ = γ − 2α (G v − ν) − β² g.
    to_qv
        For "minimal" with a loop-closure function: ``to_qv(t, y)`` -> (q, v).
    fresh
        Where f remembers something along a run: ``fresh(problem)`` returns f, project and so on
        for another one.
    own_review
        What the formulation itself says after a run: a review (see :class:`~integrators.IVP`) that
        ``with_`` joins with one that is given.
    """

    mechanical: Any = None
    formulation: str = ""
    extra: Callable[..., Any] | None = None
    gains: tuple[float, float] | None = None
    to_qv: Callable[..., Any] | None = None
    fresh: Callable[[Any], dict[str, Any]] | None = None
    own_review: Callable[..., Any] | None = None

    def for_run(self) -> IVP:
        """Return the problem with functions that no other run uses."""
        made = super().for_run()
        return made if self.fresh is None else replace(made, **self.fresh(self))

    def with_(self, **changes: Any) -> IVP:
        """Return a copy with some fields replaced; a review joins the formulation's own."""
        made = super().with_(**changes)
        if self.own_review is None or changes.get("review") is None:
            return made
        return replace(made, review=joined(self.own_review, changes["review"]))

    def onto_constraints(self, t: float, y: Array) -> Array:
        """Return a state whose positions and velocities satisfy the constraints."""
        if self.to_qv is not None:
            return y
        n = self.mechanical.nq + self.mechanical.nv
        return np.concatenate([nearest(self.mechanical, t, y[:n], self.params), y[n:]])

    def split(self, t: float, y: Any) -> tuple[Array, Array]:
        """Positions and velocities of a state."""
        y = np.asarray(y, dtype=float)
        if self.to_qv is not None:
            return self.bind(self.to_qv)(t, y)
        nq, nv = self.mechanical.nq, self.mechanical.nv
        return y[:nq], y[nq : nq + nv]

    def split_along(self, t: Array, y: Any) -> tuple[Array, Array]:
        """Positions and velocities of many states; all in columns."""
        nq, nv = self.mechanical.nq, self.mechanical.nv
        if self.to_qv is None:
            return np.array(y[:nq], dtype=float), np.array(y[nq : nq + nv], dtype=float)
        parts = [np.concatenate(self.split(float(s), x)) for s, x in zip(t, y.T)]
        states = np.array(parts).reshape(len(t), nq + nv).T
        return np.ascontiguousarray(states[:nq]), np.ascontiguousarray(states[nq:])

    def growing(self, t: Array, y: Array) -> Any:
        """The ordinary problem in which errors of this one grow, with its states, and how to stay.

        The states are [q; v]; the last is a function that brings one onto the constraints. None
        where the problem itself is without constraints.
        """
        if self.to_qv is not None:
            return None
        mechanical = self.mechanical
        plain = self if self.gains and any(self.gains) else mechanical.formulation("baumgarte")
        x = np.array(y[: mechanical.nq + mechanical.nv], dtype=float)
        return plain.with_(params=self.params), x, partial(nearest, mechanical)

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

    if mechanical.given["normalise"] is not None:
        fields.setdefault("project", Normaliser(mechanical, len(y0)))
    fields["review"] = joined(fields.get("own_review"), rank_review(mechanical))
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


class Normaliser:
    """``project(t, y)`` that does no more than the system's `normalise` says."""

    def __init__(self, mechanical: Mechanical, n: int) -> None:
        self.mechanical, self.n = mechanical, n
        self.code: Traced | None = None
        if mechanical.parts.traceable:
            with suppress(TracingError):  # if it has branches Python calls it after each step
                self.code = Traced(self._normalised, n=n, params=mechanical.params.size)

    def _normalised(self, t: Any, y: Any, p: Any) -> Any:
        nq = self.mechanical.nq
        return np.concatenate([self.mechanical.normalised(y[:nq], p), y[nq:]])

    def __call__(self, t: float, y: Any, p: Any = None) -> Any:
        """Normalise one state."""
        return self._normalised(t, y, self.mechanical.params if p is None else p)

    def unrolled(self) -> Traced | None:
        """Return the function with a 0 behind the state, as ``TracedProjection.unrolled``."""
        code = self.code
        if code is None:
            return None

        def project(t: Any, y: Any, p: Any = ()) -> Any:
            return np.append(code(t, y, p) if code.k else code(t, y), 0.0)

        return Traced(project, n=self.n, params=code.k, outputs=self.n + 1)

    def machine_codes(self) -> tuple[None, Any] | None:
        """For the time loop: nothing to repeat, and the function itself."""
        return None if self.code is None else (None, self.code.machine_code())


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
    possible = mechanical.parts.traceable
    if not mechanical.ways.solves:  # elimination without pivots
        possible = possible and full_rank(mechanical)
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
    key: Any = None,
) -> Callable[..., Any]:
    """Return f traced, or the other function where that is not wanted or too large.

    Under a key, which tells all that f depends on besides the system, it is kept with that.
    """
    if not wanted:
        return other
    kept = mechanical.kept
    if key is None or key not in kept:
        try:
            made: Traced | None = Traced(f, n=n, params=mechanical.params.size, outputs=outputs)
            assert made is not None
            made.machine_code()
        except GraphTooLargeError:
            made = None
        if key is None:
            return made or other
        kept[key] = made
    return kept[key] or other
