"""Where results come from: parameters of some runs in, a :class:`Part` of the table out.

A source is chosen once for a study (:func:`source_of`). Whatever it is, a run's numbers depend on
its parameters alone, not on the runs beside it, and a run that fails leaves the others alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from integrators import IVP, Solution, solve_many

from .part import OK, Part
from .plan import Plan, RunFailed, told
from .quantities import Seen
from .reductions import At, EventTime
from .subjects import Given

__all__ = ["LanesOfProblem", "OneByOne", "Source", "source_of"]

Array = NDArray[np.float64]
log = logging.getLogger(__name__)


class Source(Protocol):
    """Makes results of runs.

    Attributes
    ----------
    engine
        How, in words.
    runs_at_once
        A good number of runs for one part.
    """

    engine: str
    runs_at_once: int

    def run(self, first: int, columns: Mapping[str, Array]) -> Part:
        """Results of the runs first, first + 1, … with these parameters."""
        ...


def source_of(plan: Plan) -> Source:
    """Choose the fastest source that serves a plan; the log says which, and why."""
    reason = _not_in_lanes(plan)
    if not reason:
        return LanesOfProblem(plan)
    log.info("runs one by one: %s", reason)
    return OneByOne(plan, reason)


def _not_in_lanes(plan: Plan) -> str:
    """Why runs are not done many at a time; empty if they are."""
    if not isinstance(plan.subject, Given) or not isinstance(plan.subject.what, IVP):
        return "each run has a model of its own"
    if plan.needs_dense and not all(isinstance(r, At) for r in plan.record.values() if r.dense):
        return "what is recorded needs the run between its steps"
    return ""


class OneByOne:
    """A model and a problem for each run, and ``solve``: slow, and for everything."""

    runs_at_once = 16

    def __init__(self, plan: Plan, reason: str = "") -> None:
        self.plan = plan
        self.engine = f"one by one: {reason}" if reason else "one by one"

    def run(self, first: int, columns: Mapping[str, Array]) -> Part:
        """Results of some runs."""
        part = Part.empty(first, columns, self.plan)
        for k in range(len(part)):
            parameters = {name: float(column[k]) for name, column in columns.items()}
            try:
                self._one(part, k, parameters)
            except RunFailed as failure:
                part.fail(k, failure.stage, str(failure))
            except Exception as error:  # of one run: the others go on
                part.fail(k, "run", told(error))
        return part

    def _one(self, part: Part, k: int, parameters: Mapping[str, float]) -> None:
        ivp, seen = self.plan.problem(parameters)
        solution = self.plan.solve(ivp, seen)
        enter(part, k, self.plan, seen, solution)


def enter(part: Part, k: int, plan: Plan, seen: Seen, solution: Solution) -> None:
    """Enter a solution in the table."""
    part.nsteps[k] = solution.nsteps
    part.t_end[k] = solution.reached[0] if solution.reached is not None else np.nan
    if part.states is not None:
        part.keep_states(k, solution.t, solution.y)
    if not solution.success:
        part.fail(k, solution.status.name.lower(), solution.message)
        return
    for name, value in plan.reduce(seen, solution).items():
        part.values[name][k] = value
    part.status[k], part.message[k] = OK, solution.message


class LanesOfProblem:
    """Runs of one problem with parameters, by ``solve_many``."""

    runs_at_once = 1024

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.engine = "solve_many"
        at = [r.time for r in plan.record.values() if isinstance(r, At)]
        self.times = np.unique(np.concatenate([plan.times, at]))
        if plan.t_span[1] < plan.t_span[0]:
            self.times = self.times[::-1]

    def run(self, first: int, columns: Mapping[str, Array]) -> Part:
        """Results of some runs."""
        part = Part.empty(first, columns, self.plan)
        ready: list[int] = []
        states, vectors, seen = [], [], []
        for k in range(len(part)):
            parameters = {name: float(column[k]) for name, column in columns.items()}
            try:
                ivp, sees = self.plan.problem(parameters)
            except RunFailed as failure:
                part.fail(k, failure.stage, str(failure))
                continue
            ready.append(k)
            states.append(np.asarray(ivp.y0))
            vectors.append(ivp.params)
            seen.append(sees)
        if ready:
            self._solve(part, np.array(ready), np.array(states), np.array(vectors), seen)
        return part

    def _solve(
        self,
        part: Part,
        rows: NDArray[np.int64],
        states: Array,
        vectors: Array,
        seen: list[Seen],
    ) -> None:
        """Solve together; where that raises, halves apart, down to the run whose fault it is."""
        plan = self.plan
        ivp = seen[0].problem
        events = [reduction.event(seen[0]) for reduction in plan.events.values()]
        try:
            many = solve_many(
                ivp,
                y0=states,
                params=vectors if vectors.size else None,
                method=plan.method,
                t_eval=self.times if self.times.size else None,
                events=(*ivp.events, *events) if events else None,
                workers=1,
                **plan.options,
            )
        except Exception as error:
            if len(rows) == 1:
                part.fail(int(rows[0]), "run", told(error))
                return
            half = len(rows) // 2
            for piece in (slice(0, half), slice(half, None)):
                self._solve(part, rows[piece], states[piece], vectors[piece], seen[piece])
            return
        self.engine = f"solve_many, {many.engine}"
        for i, k in enumerate(rows):
            self._enter(part, int(k), many, i, seen[i])

    def _enter(self, part: Part, k: int, many: Any, i: int, seen: Seen) -> None:
        part.nsteps[k], part.t_end[k] = many.nsteps[i], many.t[i]
        reached = many.y_eval[i].shape[1]
        if part.states is not None:
            kept = np.isin(self.times, self.plan.times)
            part.keep_states(k, self.plan.times, many.y_eval[i][:, kept])
        if not many.success[i]:
            part.fail(k, many.failures()[i].name.lower(), str(many.message[i]))
            return
        try:
            for name, reduction in self.plan.record.items():
                part.values[name][k] = self._value(reduction, many, i, seen, reached)
        except Exception as error:
            part.fail(k, "record", told(error))
            return
        part.status[k], part.message[k] = OK, str(many.message[i])

    def _value(self, reduction: Any, many: Any, i: int, seen: Seen, reached: int) -> float:
        if isinstance(reduction, EventTime):
            number = list(self.plan.events.values()).index(reduction)
            times = many.t_events[i]
            return reduction.time(times[len(times) - len(self.plan.events) + number])
        if isinstance(reduction, At):
            t = reduction.time
            y = many.y_eval[i][:, int(np.flatnonzero(self.times == t)[0])]
        else:
            t, y = many.t[i], many.y[i]
        if not np.isfinite(y).all():
            return np.nan
        return float(reduction.quantity.along(seen, np.array([t]), y[:, None])[0])
