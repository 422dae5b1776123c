r"""The order of each component: which variables of a DAE lose orders, and how many.

On an ordinary differential equation all components of a state converge with the order of the
method. On a differential-algebraic one they need not: solved as it is given, a Runge–Kutta method
gives multipliers and velocities with less than its order (Hairer, Lubich & Roche 1989: Radau IIA
with s stages 2s − 1, s and s − 1 for positions, velocities and multipliers of index 3), and an
error of the whole state would show the worst of them only. :func:`component_orders` measures them
one by one, from the same runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dae.general import DAEProblem
from ...notebook_html import with_remarks
from ...problem import IVP
from ...runs.solution import Solution
from ...solve import solve
from ..error.measure import ErrorMeasure
from ..study.convergence_runs import Curve
from ..study.reference import VANISHED, Reference, as_problem, find_reference
from ..study.runs import Row, attempt, declared_order, resolve
from ..study.slopes import FEWEST, GAP, estimate_order, round_off_floor
from ..study.tables import Column, Table
from ..study.work_precision import positive_numbers

__all__ = ["ComponentOrders", "component_orders"]

Array = NDArray[np.float64]

REFERENCE_RTOL = 1e-13
INTERVALS = (20, 28, 40, 56, 80, 112, 160)  # by default: into how many parts the interval is cut


@dataclass(frozen=True, repr=False)
class ComponentOrders:
    """The result of :func:`component_orders`; prints itself, and ``plot.convergence`` draws it.

    Attributes
    ----------
    problem
        What was solved.
    method
        By what.
    curves
        One for each component, then one for each invariant of the problem (its drift), under its
        name; ``curve.estimate`` is its order.
    index
        Index of each component as the problem declares it: 1 where it declares nothing; None for an
        invariant.
    origin
        What errors are measured against.
    measure
        How: the largest along the run, or at its end, relative to the size of the component.
    """

    problem: IVP
    method: str
    curves: tuple[Curve, ...]
    index: dict[str, int | None]
    origin: str
    measure: ErrorMeasure

    def __getitem__(self, component: str) -> Curve:
        """The curve of a component, by its name."""
        for curve in self.curves:
            if curve.method == component:
                return curve
        known = ", ".join(curve.method for curve in self.curves)
        raise KeyError(f"{component!r} is not among the components {known}")

    @property
    def orders(self) -> dict[str, float]:
        """The order of each component, NaN where none is shown."""
        return {curve.method: curve.estimate.order for curve in self.curves}

    @property
    def lost(self) -> dict[str, int]:
        """How many orders each component falls short of the method's, where it does."""
        return {
            curve.method: round(curve.expected - curve.estimate.order)
            for curve in self.curves
            if curve.verdict == "too low" and curve.expected is not None
        }

    @property
    def table(self) -> Table:
        """One line for each component."""
        columns = (
            Column("component", "component", text=True),
            Column("index", "index"),
            Column("order of the method", "expected"),
            Column("observed", "observed", lambda x: f"{x:.2f}"),
            Column("±", "half_width", lambda x: f"{x:.2f}"),
            Column("verdict", "verdict", text=True),
        )
        rows = []
        for curve in self.curves:
            name, e = curve.method, curve.estimate
            verdict = curve.verdict
            if name in self.lost:
                verdict = f"loses {self.lost[name]} order{'s' * (self.lost[name] != 1)}"
            half = (e.high - e.low) / 2
            rows.append((name, self.index[name], curve.expected, e.order, half, verdict))
        return Table(columns, tuple(rows), f"{self.measure.label}, against {self.origin}")

    def remarks(self) -> list[str]:
        """Say why orders are missing, and why runs failed."""
        lines = [
            f"{c.method}: {c.estimate.reason}"
            for c in self.curves
            if c.estimate.reason and c.estimate.obstacle != GAP
        ]
        failed = [row for row in self.curves[0].rows if not row.ok] if self.curves else []
        if failed:
            lines.append(f"{self.method} failed at h = {failed[-1].step:.3g}: {failed[-1].message}")
        return lines

    def __str__(self) -> str:
        head = f"{self.method} on {self.problem.name or 'a problem'}"
        road = getattr(self.problem, "road", "")
        parts = [head + (f", road {road}" if road else ""), self.table.to_text(), self.table.title]
        return "\n".join(parts + self.remarks())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {order:.2f}" for name, order in self.orders.items())
        return f"<ComponentOrders of {self.method}: {shown}>"

    def _repr_html_(self) -> str:
        return with_remarks(self.table.to_html(), self.remarks())


def component_orders(
    problem: str | IVP,
    method: Any,
    steps: Sequence[float] | None = None,
    *,
    over: str = "max",
    order: int | None = None,
    stiff: bool | None = None,
) -> ComponentOrders:
    """Run a method with several fixed steps and see which order each component shows.

    Parameters
    ----------
    problem
        A problem of a general DAE on any road, another :class:`~integrators.IVP`, or the name of a
        reference problem.
    method
        What ``solve`` accepts as a method, if it runs with fixed steps.
    steps
        Step sizes, three at least; by default the interval in 20 to 160 parts.
    over
        "max": the largest error along the run; "end": that at its end.
    order
        What components are compared with; by default the order that the method declares.
    stiff
        Whether the problem is, for the computation of a reference where none is known.

    Notes
    -----
    The solution of a general DAE is compared with that by its Taylor series at a tolerance of
    1e-13; where that is refused, and for other problems, with the reference that
    :func:`convergence` would take. States that a road chooses along the run (dummy derivatives)
    are left out.

    Examples
    --------
    A prescribed output: the input that it takes has index 2. Radau IIA with two stages has order 3;
    by itself, without the projection onto hidden constraints, it finds the input with order 2 only.

    >>> from integrators import DAE
    >>> from integrators.analysis import component_orders
    >>> plant = DAE(lambda t, y, d: [d(y[0]) + y[0] - y[1], y[0] - np.sin(t)], names=["T", "Q"])
    >>> given = plant.problem(plant.consistent(), (0.0, 2.0), "given")
    >>> component_orders(given.with_(project=None), "RadauIIA2").lost
    {'Q': 1}
    """
    ivp = as_problem(problem)
    label, chosen = resolve(method)
    if over not in ("max", "end"):
        raise ValueError(f"over: expected 'max' or 'end', received {over!r}")
    t0, t1 = ivp.t_span
    sizes = (
        [abs(t1 - t0) / k for k in INTERVALS]
        if steps is None
        else sorted(set(positive_numbers("step", steps)), reverse=True)
    )
    if len(sizes) < FEWEST:
        raise ValueError(f"an order needs at least {FEWEST} different step sizes, got {len(sizes)}")
    if sizes[0] > abs(t1 - t0):
        raise ValueError(f"step {sizes[0]:g} is longer than the interval ({abs(t1 - t0):g})")
    expected = order if order is not None else declared_order(chosen)
    measure = ErrorMeasure("each component", lambda t, y: y, over)
    nothing = Reference(None, "")
    runs: list[tuple[Row, Solution | None]] = []
    for h in sizes:
        runs.append(attempt(ivp, label, chosen, {"step": h}, nothing, measure))
    names = _names(ivp)
    truth, uncertain, origin = _truth(ivp, names, runs, over, stiff)
    errors, doubts = [], np.zeros(len(names))
    for _, sol in runs:
        error, doubt = _errors(ivp, sol, len(names), over, truth, uncertain)
        errors.append(error)
        doubts = np.fmax(doubts, doubt)
    declared = np.ones(ivp.n, dtype=int) if ivp.index is None else np.asarray(ivp.index)
    curves = []
    for j, name in enumerate(names):
        rows = tuple(_with_error(row, name, errors[k][j]) for k, (row, _) in enumerate(runs))
        # Rounding errors of constraints are divided by h for each derivative that is taken of them.
        floors = [
            round_off_floor(row.steps) * max(1.0, 1.0 / h) ** max(0, int(declared[j]) - 1)
            for h, row in zip(sizes, rows)
        ]
        values = [float(e[j]) for e in errors]
        estimate = estimate_order(sizes, values, floors, uncertainty=float(doubts[j]))
        curves.append(Curve(name, rows, estimate, expected))
    index: dict[str, int | None] = {name: int(declared[j]) for j, name in enumerate(names)}
    for name in ivp.invariants:
        if name not in index:
            curves.append(_invariant(ivp, name, sizes, runs, expected))
            index[name] = None
    return ComponentOrders(ivp, label, tuple(curves), index, origin, measure)


def _invariant(
    problem: IVP, name: str, sizes: list[float], runs: list[tuple[Row, Any]], expected: int | None
) -> Curve:
    """The drift of an invariant, as a component of its own."""
    measure = ErrorMeasure.of(name, problem)
    start = Reference(None, "")  # its value at the start is what an invariant is compared with
    drifts = [None if sol is None else measure.error(problem, sol, start) for _, sol in runs]
    rows = tuple(
        replace(row, method=name, error=drift if row.ok else None)
        for (row, _), drift in zip(runs, drifts)
    )
    floors = [round_off_floor(row.steps) for row in rows]
    return Curve(name, rows, estimate_order(sizes, drifts, floors), expected)


def _names(problem: IVP) -> list[str]:
    """Names of the components that mean something on every run."""
    count = problem.compared if isinstance(problem, DAEProblem) else problem.n
    return [str(name) for name in problem.state_names[:count]] or [f"y{j}" for j in range(count)]


def _truth(
    problem: IVP, names: list[str], runs: list[tuple[Row, Any]], over: str, stiff: bool | None
) -> tuple[dict[float, Array], dict[float, Array], str]:
    """The components at all times of the runs, how far they may be off there, and their origin."""
    ahead = 1.0 if problem.t_span[1] >= problem.t_span[0] else -1.0
    along = [sol.t if over == "max" else sol.t[-1:] for _, sol in runs if sol is not None]
    times = ahead * np.unique(ahead * np.concatenate([np.array([problem.t_span[1]]), *along]))
    if isinstance(problem, DAEProblem) and problem.exact is None:
        try:
            fine, coarse = (_series(problem, names, times, f * REFERENCE_RTOL) for f in (1, 100))
        except ValueError:
            pass  # the series is refused, or the run ended: a reference as for any other problem
        else:
            off = np.abs(fine - coarse)
            origin = f"the Taylor series of the DAE with rtol = {REFERENCE_RTOL:g}"
            return dict(zip(times, fine.T)), dict(zip(times, off.T)), origin
    reference = find_reference(problem, stiff=stiff)
    if reference.y is None or reference.along is None:
        raise ValueError(f"{reference.origin}; give the problem exact or references")
    states = reference.along(times)
    doubt = np.zeros_like(states) if reference.doubt is None else reference.doubt(times) - states
    return dict(zip(times, states.T)), dict(zip(times, np.abs(doubt).T)), reference.origin


def _series(problem: DAEProblem, names: list[str], times: Array, rtol: float) -> Array:
    """The components by the Taylor series of the DAE; raises ValueError where there is none."""
    system, (t0, t1) = problem.system, problem.t_span
    start = system.consistent(t0, guess=problem.all_derivatives(t0, problem.y0),
                              params=problem.params)  # fmt: skip
    series = system.problem(start, (t0, t1), "taylor")
    sol = solve(series, method="Taylor", rtol=rtol, atol=rtol, t_eval=times)
    if not sol.success:
        raise ValueError(sol.message)
    states = []
    for t, y in zip(sol.t, sol.y.T):
        values = series.all_derivatives(float(t), y)
        states.append([values[name] for name in names])
    return np.array(states).T


def _errors(
    problem: IVP, sol: Any, count: int, over: str, truth: dict[float, Array],
    uncertain: dict[float, Array],
) -> tuple[Array, Array]:  # fmt: skip
    """Relative error of each component of a run, and how far the reference may be off."""
    if sol is None:
        return np.full(count, np.nan), np.zeros(count)
    some = slice(None) if over == "max" else slice(-1, None)
    times = sol.t[some]
    exact = np.array([truth[t][:count] for t in times]).T
    doubt = np.array([uncertain[t][:count] for t in times]).T
    size = np.abs(exact).max(axis=1)
    size[size <= VANISHED * np.abs(problem.y0).max(initial=0.0)] = 1.0
    size[size == 0.0] = 1.0
    error = np.abs(sol.y[:count, some] - exact).max(axis=1) / size
    return error, doubt.max(axis=1) / size


def _with_error(row: Row, name: str, error: float) -> Row:
    return replace(row, method=name, error=float(error) if row.ok else None)
