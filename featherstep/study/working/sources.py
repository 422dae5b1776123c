"""Where results come from: parameters of some runs in, a :class:`Part` of the table out.

A source is chosen once for a study (:func:`source_of`). Whatever it is, a run's numbers depend on
its parameters alone, not on the runs beside it, and a run that fails leaves the others alone.

The fastest has one problem for all runs (:mod:`.suppliers`), which ``solve_many``
runs in lanes. Where what is recorded needs a run between its steps, ``solve`` runs that problem one
by one. Where models differ in more than numbers, each run has a model and a problem of its own.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from integrators import IVP, Event, Solution, solve_many, traced
from integrators.many import reductions
from integrators.many.by_solve import why_not_lanes
from integrators.problem import accepts_params
from multibody.runs.observing.quantities import Seen

from ..keeping.part import OK, Part
from ..plan import Plan, RunFailed, told
from ..recording.reductions import At, EventTime, Integral, Max, Mean, Min
from .suppliers import ALONE, NoSupplier, Rows, Supplier, supplier_of

__all__ = ["OneByOne", "Shared", "Source", "source_of"]

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
    python
        Whether it spends its time in Python, so that threads wait for each other.
    """

    engine: str
    runs_at_once: int
    python: bool

    def run(self, first: int, columns: Mapping[str, Array]) -> Part:
        """Results of the runs first, first + 1, … with these parameters."""
        ...

    def made(self, columns: Mapping[str, Array]) -> tuple[IVP, Seen]:
        """Problem of one run; raises :class:`RunFailed` if there is none."""
        ...


def source_of(plan: Plan) -> Source:
    """Choose the fastest source that serves a plan; the log says which, and why."""
    try:
        supplier = supplier_of(plan)
    except NoSupplier as reason:
        log.info("each run has a model of its own: %s", reason)
        return OneByOne(plan, str(reason))
    source = Shared(plan, supplier)
    log.info("%s", source.engine)
    return source


def enter(part: Part, k: int, plan: Plan, seen: Seen, solution: Solution) -> None:
    """Enter a solution in the table."""
    part.nsteps[k] = solution.nsteps
    part.t_end[k] = solution.reached[0] if solution.reached is not None else np.nan
    if part.states is not None:
        part.keep_states(k, solution.y)
    if not solution.success:
        part.fail(k, solution.status.name.lower(), solution.message)
        return
    for name, value in plan.reduce(seen, solution).items():
        part.values[name][k] = value
    part.status[k], part.message[k] = OK, solution.message


class OneByOne:
    """A model and a problem for each run, and ``solve``: slow, and for everything."""

    runs_at_once = 16
    python = True

    def __init__(self, plan: Plan, reason: str = "") -> None:
        self.plan = plan
        self.engine = "one by one, each with a model of its own"
        if reason:
            self.engine += f": {reason}"

    def run(self, first: int, columns: Mapping[str, Array]) -> Part:
        """Results of some runs."""
        part = Part.empty(first, columns, self.plan)
        for k in range(len(part)):
            row = {name: column[k : k + 1] for name, column in columns.items()}
            _alone(part, k, self.plan, lambda row=row: self.made(row))
        return part

    def made(self, columns: Mapping[str, Array]) -> tuple[IVP, Seen]:
        """Problem of one run."""
        return self.plan.problem({name: float(column[0]) for name, column in columns.items()})


def _alone(part: Part, k: int, plan: Plan, made: Any) -> None:
    """Do one run by ``solve``."""
    try:
        ivp, seen = made()
        enter(part, k, plan, seen, plan.solve(ivp, seen))
    except RunFailed as failure:
        part.fail(k, failure.stage, str(failure))
    except Exception as error:  # of one run: the others go on
        part.fail(k, "run", told(error))


class Shared:
    """One problem for all runs, by ``solve_many`` or by ``solve``."""

    def __init__(self, plan: Plan, supplier: Supplier) -> None:
        self.plan, self.supplier = plan, supplier
        self.reduce: dict[str, Any] = {}  # what solve_many is to follow along runs
        reason = self._not_in_lanes()
        self.lanes = not reason
        self.runs_at_once = 1024 if self.lanes else 64
        self.python = not self.lanes
        self.engine = supplier.words
        self.engine += ", by solve_many" if self.lanes else f", one by one: {reason}"
        at = [r.time for r in plan.record.values() if isinstance(r, At)]
        self.times = np.unique(np.concatenate([plan.times, at]))
        if plan.t_span[1] < plan.t_span[0]:
            self.times = self.times[::-1]

    def _not_in_lanes(self) -> str:
        """Why runs are not done many at a time; empty if they are."""
        plan = self.plan
        strange = [key for key in plan.options if key not in _MANY_OPTIONS]
        if strange:
            return f"solve_many has no option {strange[0]}"
        if because := why_not_lanes(self.supplier.problem, plan.options.get("kinks")):
            return because
        for name, reduction in plan.record.items():
            if not reduction.dense or isinstance(reduction, At):
                continue
            follow = _FOLLOWED.get(type(reduction))
            function = None if follow is None else self.supplier.followed(reduction.quantity)
            if follow is None or function is None:
                return f"{name} needs the run between its steps"
            self.reduce[name] = follow(function)
        return ""

    def run(self, first: int, columns: Mapping[str, Array]) -> Part:
        """Results of some runs."""
        part = Part.empty(first, columns, self.plan)
        rows = self.supplier.rows(columns)
        for number in np.flatnonzero(rows.stage != ""):
            k = int(number)
            if rows.stage[k] == ALONE:
                log.info("run %d by itself: %s", first + k, rows.message[k])
                _alone(part, k, self.plan, lambda k=k: self.plan.problem(rows.parameters(k)))
            else:
                part.fail(k, rows.stage[k], rows.message[k])
        ready = np.flatnonzero(rows.stage == "")
        if self.lanes and ready.size:
            self._solve(part, ready, rows)
        elif not self.lanes:
            for run in map(int, ready):
                _alone(part, run, self.plan, lambda run=run: self.supplier.made(rows, run))
        return part

    def made(self, columns: Mapping[str, Array]) -> tuple[IVP, Seen]:
        """Problem of one run."""
        rows = self.supplier.rows(columns)
        if rows.stage[0] == ALONE:
            return self.plan.problem(rows.parameters(0))
        if rows.stage[0]:
            raise RunFailed(rows.stage[0], rows.message[0])
        return self.supplier.made(rows, 0)

    def _solve(self, part: Part, ready: NDArray[np.int64], rows: Rows) -> None:
        """Solve together; where that raises, halves apart, down to the run whose fault it is."""
        plan, ivp = self.plan, self.supplier.problem
        events = self._events
        try:
            many = solve_many(
                ivp,
                y0=rows.y0[ready],
                params=rows.p[ready] if rows.p.shape[1] else None,
                method=plan.method,
                t_eval=self.times if self.times.size else None,
                events=(*ivp.events, *events) if events else None,
                workers=1,
                reduce=self.reduce or None,
                **plan.options,
            )
        except Exception as error:
            if len(ready) == 1:
                part.fail(int(ready[0]), "run", told(error))
                return
            half = len(ready) // 2
            self._solve(part, ready[:half], rows)
            self._solve(part, ready[half:], rows)
            return
        self._enter(part, ready, rows, many)

    @cached_property
    def _events(self) -> list[Event]:
        return [self._event(reduction) for reduction in self.plan.events.values()]

    def _event(self, reduction: EventTime) -> Event:
        """Event for ``solve_many``: traced, where it can be, so that runs stay in lanes."""
        usual = reduction.event(self.supplier.seen)
        g = self.supplier.followed(reduction.quantity)
        if g is None:
            return usual
        ivp, value = self.supplier.problem, reduction.value
        with_p = ivp.params.size > 0 and accepts_params(g)

        def function(t: Any, y: Any, p: Any = ()) -> Any:
            return np.ravel(np.asarray(g(t, y, p) if with_p else g(t, y)))[:1] - value

        try:
            code = traced(function, n=ivp.n, params=ivp.params.size, outputs=1)
        except Exception as error:
            log.info("%r is not traced: %s", reduction, error)
            return usual
        return replace(usual, function=code)

    def _enter(self, part: Part, ready: NDArray[np.int64], rows: Rows, many: Any) -> None:
        part.nsteps[ready], part.t_end[ready] = many.nsteps, many.t
        kept = np.isin(self.times, self.plan.times)
        failures = many.failures()
        for i, k in enumerate(map(int, ready)):
            if part.states is not None:
                part.keep_states(k, many.y_eval[i][:, kept])
            if i in failures:
                part.fail(k, failures[i].name.lower(), str(many.message[i]))
                continue
            try:
                for name, reduction in self.plan.record.items():
                    if name in self.reduce:
                        part.values[name][k] = many.reduced[name][i]
                    else:
                        part.values[name][k] = self._value(reduction, many, i, rows, k)
            except Exception as error:
                part.fail(k, "record", f"{name}: {told(error)}")
                continue
            part.status[k], part.message[k] = OK, str(many.message[i])

    def _value(self, reduction: Any, many: Any, i: int, rows: Rows, k: int) -> float:
        if isinstance(reduction, EventTime):
            number = list(self.plan.events.values()).index(reduction)
            times = many.t_events[i]
            return reduction.time(times[len(times) - len(self.plan.events) + number])
        if isinstance(reduction, At):
            t = reduction.time
            y = many.y_eval[i][:, int(np.flatnonzero(self.times == t)[0])]
        else:
            t, y = float(many.t[i]), many.y[i]
        if not np.isfinite(y).all():
            return np.nan
        return self.supplier.value(reduction.quantity, rows, k, t, y)


_MANY_OPTIONS = frozenset(inspect.signature(solve_many).parameters)

#: What ``solve_many`` follows along runs, by what a study calls it.
_FOLLOWED: dict[type, Any] = {
    Max: reductions.Largest,
    Min: reductions.Smallest,
    Integral: reductions.Integral,
    Mean: reductions.Mean,
}
