"""One problem for all runs of a study, and the rows of states and parameters that make them differ.

An initial value problem with parameters is one as it is. A family of models becomes one: whatever
numbers differ between its models are parameters of one traced problem
(:class:`multibody.ModelFamily`), loops are closed for all rows at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from integrators import IVP
from multibody import Model
from multibody.runs.forces import with_parameters
from multibody.runs.observing.quantities import Quantity, Seen, State

from ..plan import FORCES, Plan, RunFailed, told
from ..recording.traced_quantities import agrees, followed, traced_quantity
from ..starts import Assembled, GivenState
from ..subjects import Given

__all__ = ["ALONE", "NoSupplier", "Rows", "Supplier", "supplier_of"]

Array = NDArray[np.float64]
Columns = Mapping[str, Array]


ALONE = "alone"
SAMPLES = 3  # runs at which traced quantities are compared


class NoSupplier(Exception):
    """There is no one problem for all runs; says why."""


@dataclass
class Rows:
    """What makes runs of one problem differ.

    Attributes
    ----------
    columns
        The study's parameters.
    y0, p
        State at the start and parameters of the problem, a row for each run.
    stage, message
        How far a run came that cannot begin, and why; "" for the others. The stage ALONE is that
        of a run to which the problem does not apply: it has to be made by itself.
    """

    columns: Columns
    y0: Array
    p: Array
    stage: NDArray[np.object_]
    message: NDArray[np.object_]

    def parameters(self, k: int) -> dict[str, float]:
        """The study's parameters of one run."""
        return {name: float(column[k]) for name, column in self.columns.items()}

    def fail(self, k: int, stage: str, message: str) -> None:
        """Say that a run cannot begin; the first reason counts."""
        if not self.stage[k]:
            self.stage[k], self.message[k] = stage, message


class Supplier(Protocol):
    """One problem, and rows for it.

    Attributes
    ----------
    problem
        For all runs.
    seen
        What is seen of it: names of states.
    words
        What it is.
    """

    problem: IVP
    seen: Seen
    words: str

    def rows(self, columns: Columns) -> Rows:
        """States and parameters of some runs."""
        ...

    def made(self, rows: Rows, k: int) -> tuple[IVP, Seen]:
        """Problem of one of them, and what quantities look at."""
        ...

    def value(self, quantity: Quantity, rows: Rows, k: int, t: float, y: Array) -> float:
        """A quantity at one state of one of them."""
        ...

    def followed(self, quantity: Quantity) -> Any:
        """The quantity as a function g(t, y, p) that lanes can follow; None if there is none."""
        ...


def supplier_of(plan: Plan) -> Supplier:
    """Return the supplier of a plan, or raise :class:`NoSupplier`."""
    if isinstance(plan.subject, Given) and isinstance(plan.subject.what, IVP):
        return OfProblem(plan)
    made = plan.build(plan.middle_parameters)
    if not isinstance(made, Model):
        return _refuse(f"{plan.subject.title} makes a problem for each run")
    if made.rigid_contacts:
        return _refuse("modes of contacts are followed for each model")
    if "formulation" in plan.model_options:
        return _refuse("formulations with multipliers are made for each model")
    if plan.model_options.get("traced") is False:
        return _refuse("traced=False")
    return OfFamily(plan)


def _refuse(reason: str) -> Supplier:
    raise NoSupplier(reason)


def _start_rows(columns: Columns) -> Rows:
    """Rows of which nothing is known but whether their parameters are numbers."""
    m = len(next(iter(columns.values())))
    nothing = np.zeros((m, 0))
    rows = Rows(columns, nothing, nothing, *(np.full(m, "", dtype=object) for _ in range(2)))
    for name, column in columns.items():
        for k in np.flatnonzero(~np.isfinite(column)):
            rows.fail(int(k), "build", f"{name}: expected a finite number, received {column[k]}")
    return rows


class OfProblem:
    """An initial value problem with parameters."""

    words = "one problem"

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.problem, self.seen = plan.problem(plan.middle_parameters)

    def rows(self, columns: Columns) -> Rows:
        """States and parameters of some runs."""
        plan, rows = self.plan, _start_rows(columns)
        assert isinstance(plan.subject, Given)
        m = len(rows.stage)
        own = {n: c for n, c in columns.items() if plan.subject.takes(n)}
        rows.p = np.broadcast_to(
            plan.subject.vector({**plan.fixed, **own}), (m, self.problem.params.size)
        )
        rows.y0 = np.tile(np.asarray(self.problem.y0), (m, 1))
        if isinstance(plan.start, GivenState):
            for k in np.flatnonzero(rows.stage == ""):
                usual = np.array(self.problem.y0)
                try:
                    rows.y0[k] = plan.start.state_in(self.seen, rows.parameters(int(k)), usual)
                except Exception as error:
                    rows.fail(int(k), "start", told(error))
        return rows

    def made(self, rows: Rows, k: int) -> tuple[IVP, Seen]:
        """Problem of one run."""
        ivp = self.problem.with_(y0=rows.y0[k], params=rows.p[k])
        return ivp, Seen(ivp)

    def value(self, quantity: Quantity, rows: Rows, k: int, t: float, y: Array) -> float:
        """A quantity at one state of one run."""
        seen = self.seen if isinstance(quantity, State) else self.made(rows, k)[1]
        return float(quantity.along(seen, np.array([t]), y[:, None])[0])

    def followed(self, quantity: Quantity) -> Any:
        """Function g(t, y, p) that lanes can follow; None if there is none."""
        return followed(quantity, None, self.seen, ())


class OfFamily:
    """Models of one structure."""

    words = "one problem for all models"

    def __init__(self, plan: Plan) -> None:
        from multibody import ModelFamily

        self.plan = plan
        middle = plan.middle_parameters
        names = list(plan.own_parameters(middle).keys() - plan.fixed.keys())
        names = [name for name in middle if name in names or plan.forces_take_parameters]
        if not names:
            raise NoSupplier("no parameter of the model itself is varied")
        try:
            self.family = ModelFamily(self._factory, {name: middle[name] for name in names})
            self.problem = self._problem()
        except Exception as error:
            raise NoSupplier(told(error)) from error
        self.seen = Seen(self.problem, self.family.base)

    def _factory(self, **parameters: Any) -> Model:
        made = self.plan.subject.build(self.plan.own_parameters(parameters))
        assert isinstance(made, Model)
        return made

    def _problem(self) -> IVP:
        plan = self.plan
        model = plan.middle_model
        state = plan.start_of_model(model, plan.middle_parameters)
        options = {k: v for k, v in plan.model_options.items() if k not in FORCES}
        options.pop("traced", None)
        forces = (plan.model_options.get(name) for name in FORCES)
        q, v = state[: model.nq], state[model.nq :]
        return self.family.problem(q, v, plan.t_span, *forces, **options)

    # ------------------------------------------------------------ rows

    def rows(self, columns: Columns) -> Rows:
        """States and parameters of some runs."""
        rows = _start_rows(columns)
        good = np.flatnonzero(rows.stage == "")
        n, size = self.problem.n, self.problem.params.size
        m = len(rows.stage)
        rows.y0, rows.p = np.full((m, n), np.nan), np.full((m, size), np.nan)
        if not good.size:
            return rows
        given = {name: np.asarray(columns[name])[good] for name in self.family.names}
        found = self.family.parameters(given)
        constant = self.problem.params[self.family.size :]  # joint forces that are numbers
        for i, k in enumerate(good):
            if found.messages[i]:
                self._judge(rows, int(k), str(found.messages[i]))
            else:
                rows.p[k] = np.concatenate([found.p[i], constant])
        if isinstance(self.plan.start, Assembled):
            self._assemble(rows, good, found)
        else:
            self._place(rows)
        return rows

    def _judge(self, rows: Rows, k: int, message: str) -> None:
        """Tell a run without a model from one whose model is no member of the family."""
        try:
            self.plan.build(rows.parameters(k))
        except RunFailed as failure:
            rows.fail(k, failure.stage, str(failure))
        else:
            rows.fail(k, ALONE, message)

    def _assemble(self, rows: Rows, good: NDArray[np.int64], found: Any) -> None:
        """Close the loops of all runs, beginning from the run in the middle."""
        start, model = self.plan.start, self.family.base
        assert isinstance(start, Assembled)
        near, _ = self.plan.middle_start
        columns = {name: np.asarray(column)[good] for name, column in rows.columns.items()}
        guess = np.array(
            [
                start.first_guess(model, {n: c[i] for n, c in columns.items()}, near)
                for i in range(len(good))
            ]
        )
        fixed = {body: _column(value, columns) for body, value in start.fixed.items()}
        speeds = {body: _column(value, columns) for body, value in start.speeds.items()}
        t0 = self.plan.t_span[0]
        starts = self.family.starts(found, guess, positions=fixed, speeds=speeds, t=t0)
        for i, k in enumerate(good):
            if starts.messages[i]:
                rows.fail(int(k), "start", str(starts.messages[i]))
            else:
                rows.y0[k] = starts.y0[i]
        ready = np.flatnonzero(rows.stage == "")
        if model.bonds and ready.size:
            self._check_branches(rows, ready)

    def _check_branches(self, rows: Rows, ready: NDArray[np.int64]) -> None:
        signs = self._signs(rows.y0[ready], rows.p[ready])
        for k in ready[signs != self._sign]:
            rows.fail(
                int(k),
                "start",
                "the loops close on another branch than in the run in the middle of the study; "
                "give Assembled(guess=...) nearer to the one that is meant",
            )

    def _signs(self, y0: Array, p: Array) -> Array:
        """Signs of the determinants of the dependent part of K: they tell branches apart."""
        rows, columns = self._dependent
        K = self._constraint_rows(y0, p)
        return np.sign(np.linalg.det(K[:, rows][:, :, columns]))

    def _constraint_rows(self, y0: Array, p: Array) -> Array:
        from multibody.runs.families.starts import closure_program

        count, nv = len(self.family.tree.acting_rows), self.family.base.nv
        program = closure_program(self.family)
        inputs = [np.full(len(y0), self.plan.t_span[0]), *y0.T, *p[:, : self.family.size].T]
        values = program.graph.evaluate(inputs)
        flat = np.array([np.broadcast_to(x, (len(y0),)) for x in values]).T
        return flat[:, 2 * count : 2 * count + count * nv].reshape(-1, count, nv)

    @cached_property
    def _dependent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and columns of K that are independent in the run in the middle."""
        import scipy.linalg

        from multibody.dynamics.loops.closed_loop import RANK_TOLERANCE

        near, _ = self.plan.middle_start
        K = self._constraint_rows(near[None], self.problem.params[None])[0]
        sizes = np.linalg.svd(K, compute_uv=False)
        rank = int(np.sum(sizes > RANK_TOLERANCE * sizes.max(initial=0.0)))
        rows = np.sort(scipy.linalg.qr(K.T, mode="r", pivoting=True)[1][:rank])
        columns = np.sort(scipy.linalg.qr(K, mode="r", pivoting=True)[1][:rank])
        return rows, columns

    @cached_property
    def _sign(self) -> float:
        near, _ = self.plan.middle_start
        return float(self._signs(near[None], self.problem.params[None])[0])

    def _place(self, rows: Rows) -> None:
        """Starts as they are given, or as each model has its own."""
        from multibody.runs.closed import check_consistent

        plan, base = self.plan, self.family.base
        own = type(plan.start) is not GivenState or isinstance(plan.start.values, Mapping)
        for k in map(int, np.flatnonzero(rows.stage == "")):
            try:
                model = self.family.model(rows.p[k]) if own or base.bonds else base
                state = plan.start_of_model(model, rows.parameters(k))
                if model.bonds:
                    check_consistent(model, state[: model.nq], state[model.nq :], plan.t_span[0])
                rows.y0[k] = state
            except RunFailed as failure:
                rows.fail(k, failure.stage, str(failure))
            except Exception as error:
                rows.fail(k, "start", told(error))

    # ------------------------------------------------------------ single runs

    def made(self, rows: Rows, k: int) -> tuple[IVP, Seen]:
        """Problem of one run."""
        return self._made(rows, k, self.fast)

    def _made(self, rows: Rows, k: int, fast: Mapping[Any, Any]) -> tuple[IVP, Seen]:
        ivp = self.problem.with_(y0=rows.y0[k], params=rows.p[k])
        parameters, options = rows.parameters(k), self.plan.model_options
        p = np.array(list(parameters.values()))
        tau, f_ext = (with_parameters(options.get(name), p) for name in FORCES)
        return ivp, Seen(ivp, self.family.model(rows.p[k]), tau, f_ext, parameters, fast)

    def value(self, quantity: Quantity, rows: Rows, k: int, t: float, y: Array) -> float:
        """A quantity at one state of one run."""
        if quantity in self.fast:
            return float(self.fast[quantity](t, y, rows.p[k])[0])
        seen = self.seen if isinstance(quantity, State) else self.made(rows, k)[1]
        return float(quantity.along(seen, np.array([t]), y[:, None])[0])

    # ------------------------------------------------------------ quantities

    @cached_property
    def fast(self) -> dict[Quantity, Any]:
        """Recorded quantities as traced functions, where there are such and they are right."""
        tau, f_ext = (self.plan.model_options.get(name) for name in FORCES)
        found: dict[Quantity, Any] = {}
        samples = None
        for reduction in self.plan.record.values():
            quantity = reduction.quantity
            size = self.problem.params.size
            program = traced_quantity(quantity, self.family, tau, f_ext, size)
            if program is None or quantity in found:
                continue
            samples = self._samples() if samples is None else samples
            if agrees(quantity, program, samples):
                found[quantity] = program
        return found

    def _samples(self) -> list[tuple[Seen, float, Array]]:
        """Some models of the study at states with other velocities than they start with."""
        from multibody import consistent_velocity

        rows = self.rows(self.plan.design.rows(0, min(SAMPLES, self.plan.design.n)))
        rng, t0 = np.random.default_rng(0), self.plan.t_span[0]
        samples = []
        for k in map(int, np.flatnonzero(rows.stage == "")):
            _, seen = self._made(rows, k, {})
            q, v = np.split(rows.y0[k], [seen.model.nq])
            v = v + rng.standard_normal(v.size)
            if seen.model.bonds:
                v = consistent_velocity(seen.model, q, v, t=t0)
            samples.append((seen, t0, np.concatenate([q, v])))
        return samples

    def followed(self, quantity: Quantity) -> Any:
        """Function g(t, y, p) that lanes can follow; None if there is none."""
        names = self.family.names if self.family.names == self.plan.design.names else ()
        return followed(quantity, self.fast.get(quantity), self.seen, names)


def _column(value: Any, columns: Columns) -> Any:
    """A number of a start, or the column of the parameter that it names."""
    if isinstance(value, str):
        return columns[value]
    if isinstance(value, list | tuple):
        parts = np.broadcast_arrays(*(_column(part, columns) for part in value))
        return np.array(parts).T
    return value
