"""A DAE made ready for ``solve``: one road to its solution, with what runs show of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....problem import IVP, Event
from ....runs.judging import samples, watched_invariants
from ..derivative_array import DerivativeArray
from ..pattern.structure import StructureError
from ..start import Start, nearest
from .projection import Projection

__all__ = ["DAEProblem", "Residuals", "with_consistent_resets"]

Array = NDArray[np.float64]

MOVED = 1e-4  # a start given to so many digits is meant to be consistent, and made so
LOST = 1e-5  # so small a part of its smallest singular value at the start makes J nearly singular
MISSED = 100.0  # such a multiple of rtol is worth a word
SAMPLES_COMPLETED = 8  # states that are compared with consistent ones after a run
TINY = 1e-300
LARGEST_REVIEW = 200  # unknowns of a system whose Jacobian is looked at after a run


@dataclass(frozen=True, eq=False, repr=False)
class DAEProblem(IVP):
    """An initial value problem that knows the DAE behind it.

    The first components of a state are the unknowns, whatever the road; their derivatives follow.

    Attributes
    ----------
    system
        The :class:`~integrators.DAE`.
    road
        Which road was taken.
    derivatives
        ``derivatives(t, y, p)`` returns all derivatives of the unknowns at a state.
    complete
        ``complete(t, y)`` returns the consistent state nearest to y; a third argument stands for
        other parameters.
    start
        The consistent start that it was made from, if it still is that.
    chosen_from
        The first component that a run chooses for itself, if there are any.
    """

    system: Any = None
    road: str = ""
    derivatives: Callable[..., Any] | None = None
    complete: Completed | None = None
    start: Start | None = None
    chosen_from: int | None = None

    @property
    def compared(self) -> int:
        """How many components of a state mean something on every run: not the chosen states."""
        return int(self.held.size)

    @property
    def projects_inside(self) -> bool:
        """Whether the projection serves values between the steps, too: see `runs.refined`."""
        return self.index is not None and self.project is not None

    @property
    def advice(self) -> str:
        """What else to try where a run got stuck."""
        if self.road != "dummy":
            return ""
        return (
            ". On the road 'dummy' the errors of all derivatives are controlled, of those as well "
            "that the equations hardly determine; road='given' weighs them by the step, and may "
            "go on"
        )

    @cached_property
    def _follows(self) -> NDArray[np.bool_]:
        """Components without a derivative, for which it does not matter where a step begins."""
        assert self.mass is not None
        return np.asarray(abs(self.mass).sum(axis=0)).ravel() == 0.0

    def goes_on(self, before: Array, projected: Array) -> Array:
        """Return the state to go on from after a projection.

        Methods predict the values of multipliers from those that they found themselves, whose
        errors are alike from step to step.
        """
        return np.where(self._follows, before, projected) if self.projects_inside else projected

    def jumped(self, before: Array, after: Array) -> bool:
        """Whether a projection did more than correct a state: it chose other states."""
        first = self.chosen_from
        return first is not None and not np.array_equal(before[first:], after[first:])

    def with_(self, **changes: Any) -> IVP:
        """Return a copy with some fields replaced; its start is consistent, or it is refused.

        With other parameters and no other start, the start is found again: what was fixed stays,
        and guesses are the same.
        """
        assert self.complete is not None
        if "events" in changes:
            n, k = self.array.n, self.array.k
            events = with_consistent_resets(changes["events"], self.complete, n, k)
            changes = {**changes, "events": events}
        given = np.size(changes.get("y0", self.y0))
        if given != self.n:
            raise ValueError(
                f"y0: expected a state of {self.n} values on the road {self.road!r} "
                f"({', '.join(self.state_names[:8])}{', …' if self.n > 8 else ''}), got {given}; "
                "find a start by system.consistent(...)"
            )
        new: Any = super().with_(**changes)
        same_start = np.array_equal(new.y0, self.y0)
        same_params = np.array_equal(new.params, self.params)
        same_time = new.t_span[0] == self.t_span[0]
        if same_start and same_params and same_time:
            return new
        complete = self.complete.with_params(new.params)
        if same_start and same_time and self.start is not None:
            near = None
            with contextlib.suppress(ValueError):
                near = complete.derivatives(self.start.t, self.y0, new.params)
            start = self.start.with_params(self.array, new.params, near)
            y0 = complete.state(start.t, start.X, new.params)
            return replace(new, y0=y0, complete=complete, start=start)
        t0 = new.t_span[0]
        y0 = self.complete(t0, new.y0, new.params)
        moved = np.abs(y0 - new.y0)[: self.compared]
        varied = same_start and same_time
        if not varied and moved.max() > MOVED * max(1.0, float(np.abs(y0).max())):
            worst = int(np.argmax(moved))
            raise ValueError(
                f"the start is not consistent at t = {t0:g}: the nearest state that satisfies all "
                f"constraints has {self.state_names[worst]} = {y0[worst]:.9g}, not "
                f"{new.y0[worst]:.9g}; find a start by system.consistent(...), or make a state "
                "consistent by problem.complete(t, y)"
            )
        return replace(new, y0=y0, complete=complete, start=None)

    def consistent_start(self, y0: Array | None, params: Array, t0: float) -> Array:
        """Return the state to start from with other parameters or times; see :meth:`with_`."""
        changes: dict[str, Any] = {"params": params}
        if y0 is not None:
            changes["y0"] = y0
        if t0 != self.t_span[0]:
            changes["t_span"] = (t0, t0 + self.t_span[1] - self.t_span[0])
        return self.with_(**changes).y0

    @property
    def array(self) -> DerivativeArray:
        """The equations with their derivatives."""
        return self.system.array

    def all_derivatives(self, t: float, y: Any) -> dict[str, float]:
        """Return the derivatives of all unknowns up to the leading ones, by name."""
        assert self.derivatives is not None
        X = self.derivatives(t, np.asarray(y, dtype=float), self.params)
        return {name: float(x) for name, x in zip(self.array.names, X)}

    def residuals(self, t: float, y: Any) -> dict[str, float]:
        """Return what a state leaves of every constraint, open and hidden, by name."""
        assert self.complete is not None
        values = self.array.residuals(t, self.complete.spread(y), self.params)
        return {self.array.row_names[r]: float(values[r]) for r in self.checked}

    @property
    def held(self) -> NDArray[np.int64]:
        """Where the leading components of a state are in X."""
        assert self.complete is not None
        return self.complete.held

    @cached_property
    def checked(self) -> list[int]:
        """Constraints, open and hidden, that a state determines: numbers of residuals."""
        array, sigma = self.array, self.array.structure.sigma
        keys = {array.keys[place] for place in self.held}
        known = [-1] * array.n  # how far the derivatives of an unknown are part of a state
        for j in range(array.n):
            while (j, known[j] + 1) in keys:
                known[j] += 1
        need: list[list[tuple[int, int]]] = [[] for _ in range(array.n)]
        for i, j, order in zip(sigma.rows, sigma.columns, sigma.orders):
            need[int(i)].append((int(j), int(order)))
        return [
            r
            for r, (i, q) in enumerate(array.rows)
            if q < array.c[i] and all(order + q <= known[j] for j, order in need[i])
        ]


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a run leaves of the constraints: ``solution.observed`` of a DAE.

    Attributes
    ----------
    t
        Times.
    constraints
        Residuals of every constraint, open and hidden, by name.
    """

    t: Array
    constraints: Mapping[str, Array] = field(default_factory=dict)

    @property
    def largest(self) -> float:
        """The largest of all."""
        return max((float(np.abs(x).max()) for x in self.constraints.values()), default=0.0)

    def __str__(self) -> str:
        lines = [f"{name}: {np.abs(x).max():.2e}" for name, x in self.constraints.items()]
        return "largest residuals of the constraints\n" + "\n".join(f"  {x}" for x in lines)


def observe(solution: Any) -> Residuals:
    """Return the residuals of the constraints along a run."""
    problem = solution.problem
    found: dict[str, list[float]] = {}
    for t, y in zip(solution.t, solution.y.T):
        for name, x in problem.residuals(float(t), y).items():
            found.setdefault(name, []).append(x)
    return Residuals(solution.t, {name: np.array(x) for name, x in found.items()})


def watch(problem: Any, t: Array, y: Array) -> Mapping[str, Any]:
    """Let the quality of a run include the constraints, compared with the terms in them."""
    array = problem.array
    some = samples(t)
    worst, rows = [], problem.checked
    if not rows:
        return watched_invariants(problem, t, y)
    for k in some:
        X = problem.complete.spread(y[:, k])
        worst.append(float(np.abs(array.residuals(float(t[k]), X, problem.params)[rows]).max()))
    last = problem.complete.spread(y[:, -1])
    A = abs(array.full_jacobian(float(t[-1]), last, problem.params))
    size = float((A @ np.abs(last))[rows].max()) or 1.0
    return {
        **watched_invariants(problem, t, y),
        "the constraints": (t[some], np.array(worst), size, 5.0),
    }


def review(problem: Any, t: Array, y: Array, rtol: float | None) -> tuple[None, str] | None:
    """Tell where J came near to a singular one, and of unknowns that miss hidden constraints."""
    if problem.array.n > LARGEST_REVIEW or len(t) < 2:
        return None
    return _nearly_singular(problem, t, y) or _inaccurate(problem, t, y, rtol)


def _inaccurate(problem: Any, t: Array, y: Array, rtol: float | None) -> tuple[None, str] | None:
    """Tell by how much unknowns of index 2 and 3 miss what the hidden constraints say of them.

    As given, methods find them to lower order and cannot control their errors.
    """
    if problem.index is None or rtol is None or rtol <= 0:
        return None
    structure = problem.array.structure
    higher = [j for j in problem.array.nonlinear if problem.index[j] > 2]
    if higher and structure.freedoms:
        return None, (
            f"solved as given, errors of {structure.unknown_names(higher)}, which is of index 3 "
            "and enters nonlinearly, act on what is free and are not estimated: compare with "
            "road='dummy'"
        )
    some = np.unique(np.append([1], np.linspace(1, len(t) - 1, SAMPLES_COMPLETED).astype(int)))
    try:
        consistent = np.array([problem.complete(float(t[k]), y[:, k]) for k in some]).T
    except (ValueError, np.linalg.LinAlgError):
        return None
    missed = np.abs(consistent - y[:, some]).max(axis=1)
    size = np.maximum(np.abs(consistent).max(axis=1), np.abs(y[:, some]).max(axis=1))
    missed = np.where(problem.index > 1, missed, 0.0)
    worst = int(np.argmax(missed / np.maximum(size, TINY)))
    if missed[worst] <= MISSED * rtol * max(1.0, size[worst]):
        return None
    return None, (
        f"solved as given, {problem.state_names[worst]} has index {problem.index[worst]} and is "
        f"off by about {missed[worst]:.1e}: problem.complete(t, y) makes a state satisfy the "
        "hidden constraints, and the roads 'dummy', 'underlying' and 'taylor' do so themselves"
    )


def _nearly_singular(problem: Any, t: Array, y: Array) -> tuple[None, str] | None:
    """Tell where the system Jacobian came near to a singular one along a run."""
    array = problem.array
    found = []
    some = np.union1d(samples(t), [len(t) - 1])
    for k in some:
        X = problem.complete.spread(y[:, k])
        J = array.system_jacobian.dense(array.entries(float(t[k]), X, problem.params))
        if not np.isfinite(J).all():
            return None
        found.append((float(np.linalg.svd(J, compute_uv=False)[-1]), k, J))
    smallest, k, J = min(found, key=lambda one: one[0])
    if smallest > LOST * found[0][0]:
        return None
    U, _, Vt = np.linalg.svd(J)
    equations = [i for i, x in enumerate(np.abs(U[:, -1])) if x > 0.1]
    unknowns = [j for j, x in enumerate(np.abs(Vt[-1])) if x > 0.1]
    return None, (
        f"near t = {t[k]:.6g} the system Jacobian is nearly singular: the equations "
        f"{array.structure.equation_names(equations)} hardly determine the leading derivatives of "
        f"{array.structure.unknown_names(unknowns)} there"
    )


class _Reset:
    """A user's reset, followed by the way back onto the constraints."""

    def __init__(
        self, reset: Callable[..., Any], complete: Completed, n: int, takes_p: bool
    ) -> None:
        self.reset, self.complete, self.n, self.takes_p = reset, complete, n, takes_p

    def __call__(self, t: float, y: Any, p: Any = ()) -> Any:
        """Return the consistent state nearest to what the reset returned."""
        arguments = (p,) if self.takes_p else ()
        new = np.asarray(self.reset(t, y, *arguments), dtype=float).ravel()
        if new.size == self.n:  # the unknowns alone: their derivatives stay
            new = np.concatenate([new, np.asarray(y, dtype=float)[self.n :]])
        if new.shape != np.shape(y):
            raise ValueError(
                f"a reset must return {self.n} unknowns or a whole state of {np.size(y)} values, "
                f"got {new.size}"
            )
        return self.complete(t, new, p, self.complete.outdated(np.asarray(y, dtype=float), new))


def with_consistent_resets(
    events: Any, complete: Completed, n: int, parameters: int
) -> tuple[Event, ...]:
    """Return events whose resets are followed by a projection onto the constraints."""
    from ....problem import accepts_params

    if callable(events) or isinstance(events, Event):
        events = (events,)
    out = []
    for event in (Event.of(e) for e in events or ()):
        if event.reset is not None and not isinstance(event.reset, _Reset):
            takes = parameters > 0 and accepts_params(event.reset)
            event = replace(event, reset=_Reset(event.reset, complete, n, takes))
        out.append(event)
    return tuple(out)


class Completed:
    """A state after a jump, made consistent again.

    Stage by stage, so that what a jump left consistent stays: a jump of velocities moves no
    positions. Where the state lacks derivatives, or that fails, by weighted least change of all.

    Parameters
    ----------
    array
        The equations with their derivatives.
    held
        Where the leading components of a state are in X.
    state
        ``state(t, X, p)`` makes a state of all derivatives.
    params
        Parameters where none are given.
    """

    def __init__(
        self,
        array: DerivativeArray,
        held: NDArray[np.int64],
        state: Callable[..., Array],
        params: Array,
    ) -> None:
        self.array, self.held, self.state, self.params = array, held, state, params
        self.projection = Projection(array)

    def with_params(self, params: Array) -> Completed:
        """Return a copy for other parameters."""
        return Completed(self.array, self.held, self.state, params)

    def outdated(self, before: Array, after: Array) -> list[int]:
        """Places that a jump left alone next to some that it changed, and that mean the same.

        With ẋ = u, a jump of u is meant for ẋ as well, whose old value says nothing any more; and
        a jump of ẋ alone is meant for u.
        """
        array = self.array
        keys = [array.keys[place] for place in self.held]
        same = (before == after)[: self.held.size].tolist()
        jumped: dict[int, set[bool]] = {}  # by stage: whether derivatives, or unknowns, changed
        for (j, order), kept in zip(keys, same):
            if not kept:
                jumped.setdefault(order - array.d[j], set()).add(order > 0)
        found = []
        for place, (j, order), kept in zip(self.held, keys, same):
            changed = jumped.get(order - array.d[j], set())
            if kept and (False in changed if order > 0 else changed == {True}):
                found.append(int(place))
        return found

    @cached_property
    def _following(self) -> list[int]:
        """Places of derivatives: where a state contradicts itself, with ẋ = u say, u counts."""
        return [int(place) for place in self.held if self.array.keys[place][1] > 0]

    @cached_property
    def _missing(self) -> list[int]:
        """Places below the leading ones that a state lacks, as ẋ where ẋ = u is an equation."""
        return [int(place) for place in np.setdiff1d(self.array.state_places, self.held)]

    @cached_property
    def by_stages(self) -> bool:
        """Whether the equations of its own stage determine whatever a state lacks."""
        from scipy.sparse import csc_matrix
        from scipy.sparse.csgraph import maximum_bipartite_matching

        found = 0
        for stage in self.projection.stages:
            ones = np.ones(stage.r.size)
            lacking = np.flatnonzero(np.isin(stage.places, self._missing))
            pattern = csc_matrix((ones, (stage.r, stage.c)), stage.shape)[:, lacking].tocsr()
            found += int((maximum_bipartite_matching(pattern, perm_type="row") >= 0).sum())
        return found == len(self._missing)

    def derivatives(
        self, t: float, y: Any, p: Any = None, loose: Sequence[int] | None = None
    ) -> Array:
        """Return all derivatives at the consistent state nearest to y; `loose` ones follow."""
        p = self.params if p is None else p
        loose = self._following if loose is None else loose
        if self.by_stages:
            with contextlib.suppress(StructureError):
                return self.staged(t, y, p, loose)
        X = self.spread(y)
        free = np.union1d(np.setdiff1d(np.arange(self.array.size), self.held), loose)
        return nearest(self.array, t, X, np.asarray(p, dtype=float), free)

    def staged(self, t: float, y: Any, p: Any, loose: Sequence[int] | None) -> Array:
        """Return the same stage by stage, or raise :class:`StructureError`.

        With None for `loose`, states change as errors of leading derivatives make them.
        """
        state = self.spread(y)[self.array.state_places]
        loose = None if loose is None else [*loose, *self._missing]
        return self.projection.all_derivatives(t, state, p, loose=loose)

    def spread(self, y: Any) -> Array:
        """Return X with the entries that are part of a state; others are 0."""
        X = np.zeros(self.array.size)
        X[self.held] = np.asarray(y, dtype=float)[: self.held.size]
        return X

    def __call__(
        self, t: float, y: Any, p: Any = None, loose: Sequence[int] | None = None
    ) -> Array:
        """Return the consistent state nearest to y; values at `loose` places follow.

        By default these are derivatives, as far as unknowns determine them.
        """
        p = self.params if p is None else p
        return self.state(t, self.derivatives(t, y, p, loose), p)


def common_fields(
    system: Any, start: Start, events: Any, complete: Completed, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Fields that all roads share."""
    array: DerivativeArray = system.array
    return {
        "events": with_consistent_resets(events, complete, array.n, array.k),
        "name": system.name,
        "observe": observe,
        "watch": watch,
        "review": review,
        "complete": complete,
        "system": system,
        "start": start,
        **more,
    }


def state_names(array: DerivativeArray, keys: Sequence[Any]) -> list[str]:
    """Names of the components of a state."""
    return [array.equations.symbol_name(key) for key in keys]
