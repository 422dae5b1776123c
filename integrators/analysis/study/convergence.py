"""Convergence studies: errors at several step sizes, the order they show, and what is wrong.

:func:`convergence` runs methods with fixed steps and compares the order that their errors show
(:mod:`slopes` says how it is found) with the one they should have. A method that falls short is
examined (:mod:`diagnosis`). Runs that fail are gaps in the table; where the data do not support
an order none is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...tableau import Tableau
from ..error.measure import ErrorMeasure
from .diagnosis import Case, Finding, diagnose
from .reference import Reference, as_problem, find_reference
from .runs import Report, Row, attempt, declared_order, resolve
from .slopes import (
    FEWEST,
    GAP,
    REFERENCE,
    ROUNDING,
    OrderEstimate,
    estimate_order,
    round_off_floor,
)
from .tables import Column, Table, number
from .work_precision import positive_numbers

__all__ = ["Convergence", "Curve", "convergence"]

FIRST = 4  # intervals with which an automatic study starts
FOLLOWS = 0.3  # relative error below which a run is said to follow the solution
MOST_STEPS = 200_000
RATIOS = ((5, np.sqrt(2.0)), (99, 2.0**0.25))  # of steps, up to which order
FINER = ((3, 1024), (99, 160))  # finest step over the first that follows, up to which order
SETTLING, NARROW = 32, 0.1  # from this refinement on, stop when the half-width is below that
SHORTFALL = 0.75  # of an average slope that has not settled, and still calls for a diagnosis
UNCERTAIN = 30.0  # floor in units of the relative uncertainty of a tableau's coefficients


@dataclass(frozen=True)
class Curve:
    """One method of a study.

    Attributes
    ----------
    method : str
        Label of the method.
    rows : tuple of Row
        Its runs, longest step first.
    estimate : OrderEstimate
        The order that its errors show, and which of them count.
    expected : int or None
        The order that it should have.
    findings : tuple of Finding
        Likely causes if it falls short.
    """

    method: str
    rows: tuple[Row, ...]
    estimate: OrderEstimate
    expected: int | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> str:
        """How the observed order compares with the expected one.

        "as expected", "too low", "higher", "order found" if nothing was expected, "no order".
        """
        if not self.estimate.found:
            return "no order"
        if self.expected is None:
            return "order found"
        if self.expected in self.estimate:
            return "as expected"
        return "too low" if self.estimate.high < self.expected else "higher"

    @property
    def ok(self) -> bool:
        """Whether an order was found and does not fall short."""
        return self.verdict in ("as expected", "higher", "order found")

    @property
    def steps(self) -> tuple[float, ...]:
        """Step sizes, longest first."""
        return tuple(row.step or 0.0 for row in self.rows)

    @property
    def errors(self) -> tuple[float | None, ...]:
        """The error at each; None at a gap."""
        return tuple(row.error if row.ok else None for row in self.rows)


@dataclass(frozen=True)
class Convergence:
    """The result of :func:`convergence`; prints itself.

    Attributes
    ----------
    problem : IVP
        What was solved.
    curves : tuple of Curve
        One for each method.
    reference : Reference
        What errors are measured against.
    measure : ErrorMeasure
        How.
    interrupted : bool
        Whether Ctrl-C cut the study short.
    """

    problem: IVP
    curves: tuple[Curve, ...]
    reference: Reference
    measure: ErrorMeasure
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        """Whether every method shows the order it should have, or more."""
        return bool(self.curves) and all(curve.ok for curve in self.curves)

    def __getitem__(self, method: str) -> Curve:
        """The curve of a method, by its label."""
        for curve in self.curves:
            if curve.method == method:
                return curve
        raise KeyError(f"{method!r} is not among {', '.join(c.method for c in self.curves)}")

    @property
    def summary(self) -> Table:
        """One line for each method: expected order, observed order, verdict."""
        columns = (
            Column("method", "method", text=True),
            Column("expected", "expected"),
            Column("observed", "observed", lambda x: f"{x:.2f}"),
            Column("±", "half_width", lambda x: f"{x:.2f}"),
            Column("steps used", "used", text=True),
            Column("verdict", "verdict", text=True),
        )
        rows = []
        for curve in self.curves:
            e = curve.estimate
            used = [h for h, mark in zip(curve.steps, e.marks) if mark == "used"]
            between = f"{len(used)} of {len(e.marks)}"
            if used:
                between += f", {max(used):.3g} to {min(used):.3g}"
            half = (e.high - e.low) / 2
            rows.append((curve.method, curve.expected, e.order, half, between, curve.verdict))
        return Table(columns, tuple(rows), self.error_measure())

    @property
    def table(self) -> Table:
        """One line for each run."""
        columns = (
            Column("method", "method", text=True),
            Column("h", "step", lambda x: f"{x:.4g}"),
            Column("steps", "steps", lambda x: f"{x:,}"),
            Column("error", "error", number),
            Column("slope", "slope", lambda x: f"{x:.2f}"),
            Column("f-evals", "nfev", lambda x: f"{x:,}"),
            Column("range", "mark", lambda x: "" if x == "used" else x, text=True),
        )
        rows = []
        for curve in self.curves:
            e = curve.estimate
            for row, slope, mark in zip(curve.rows, (np.nan, *_shifted(curve)), e.marks):
                shown = row.status if mark == GAP and not row.ok else mark
                rows.append(
                    (row.method, row.step, row.steps, row.error, slope, row.nfev or None, shown)
                )
        return Table(columns, tuple(rows))

    def error_measure(self) -> str:
        """Say in a sentence what the errors are."""
        if self.measure.constant:
            return f"{self.measure.label}, against its value at the start"
        return f"{self.measure.label}, against {self.reference.origin}"

    def remarks(self) -> list[str]:
        """Say why orders are missing or too low, and why runs failed."""
        lines = []
        for curve in self.curves:
            failed = [row for row in curve.rows if not row.ok]
            if curve.estimate.reason and len(failed) < len(curve.rows):
                lines.append(f"{curve.method}: {curve.estimate.reason}")
            lines += [f"{curve.method}: {finding}" for finding in curve.findings]
            if failed:
                sizes = [f"{row.step:.3g}" for row in (failed[0], failed[-1])]
                where = f"h = {' to '.join(dict.fromkeys(sizes))}"
                lines.append(f"{curve.method} failed at {where}: {failed[-1].message}")
        return lines

    def to_text(self) -> str:
        """Return both tables and the remarks as text."""
        parts = [self.table.to_text(), self.summary.to_text(), self.error_measure()]
        return "\n\n".join(parts + ["\n".join(self.remarks())] * bool(self.remarks()))

    def to_markdown(self) -> str:
        """Return both tables and the remarks in Markdown."""
        parts = [self.table.to_markdown(), self.summary.to_markdown(), self.error_measure()]
        remarks = "\n".join(f"- {line}" for line in self.remarks())
        return "\n\n".join(parts + [remarks] * bool(remarks)) + "\n"

    def to_latex(self) -> str:
        """Return both tables as LaTeX ``tabular`` environments."""
        return self.table.to_latex() + "\n\n" + self.summary.to_latex() + "\n"

    def to_csv(self) -> str:
        """Return one line for each run, with what was found about its method."""
        table = self.table
        keys = ("expected", "observed", "low", "high", "verdict")
        columns = (*table.columns, Column("message", "message"), *(Column(k, k) for k in keys))
        found = {
            c.method: (c.expected, c.estimate.order, c.estimate.low, c.estimate.high, c.verdict)
            for c in self.curves
        }
        runs = [row for curve in self.curves for row in curve.rows]
        rows = [(*cells, row.message, *found[row.method]) for cells, row in zip(table.rows, runs)]
        return Table(columns, tuple(rows)).to_csv()

    def __str__(self) -> str:
        return self.to_text()


def convergence(
    problem: str | IVP,
    methods: Sequence[Any] | Any,
    steps: Sequence[float] | None = None,
    *,
    measure: Any = None,
    order: int | None = None,
    precision: float | None = None,
    diagnosis: bool = True,
    stiff: bool | None = None,
    report: Report | None = None,
) -> Convergence:
    """Run methods with several fixed steps and see which order their errors show.

    Parameters
    ----------
    problem
        Name of a reference problem, or an :class:`~integrators.IVP`. Without an exact or tabulated
        solution a reference is computed, with its own uncertainty.
    methods
        One or several: what ``solve`` accepts as a method, or a function ``run(problem, step)``
        that returns the state at the end or (t, y): a program of your own.
    steps
        Step sizes, three at least. By default they are chosen: from the longest that follows the
        solution down to where round-off begins.
    measure
        How errors are measured, see :class:`ErrorMeasure`: "end", "max", a component ("y0"), an
        invariant ("energy"), or a function g(t, y). By default "max" where the exact solution is
        known (at a single time leading terms may happen to cancel), else "end".
    order
        The order that the methods should have; by default what each says of itself.
    precision
        Relative precision of the arithmetic; that of doubles by default. For programs that use
        more digits.
    diagnosis
        Whether to look for the cause when a method falls short.
    stiff
        Whether the problem is, for the computation of a reference where none is known.
    report
        Called as ``report(done, total, label)`` before each run.

    Returns
    -------
    Convergence
        Print it, or look at ``curves``; ``plot.convergence`` draws it.

    Raises
    ------
    ValueError
        For fewer than three step sizes, and for settings that make no sense.

    Examples
    --------
    >>> study = convergence("minus_2ty2", ["Heun", "RK4"], [0.1, 0.05, 0.025, 0.0125])
    >>> print(study.summary.to_text())
    method expected observed    ± steps used            verdict
    Heun          2     2.00 0.05 4 of 4, 0.1 to 0.0125 as expected
    RK4           4     4.00 0.09 4 of 4, 0.1 to 0.0125 as expected
    """
    ivp = as_problem(problem)
    listed = [methods] if isinstance(methods, str) or not isinstance(methods, Sequence) else methods
    chosen = [resolve(method) for method in listed]
    if not chosen:
        raise ValueError("no method was given; name at least one")
    given = None if steps is None else _step_sizes(steps, ivp)
    how = ErrorMeasure.of(measure, ivp, "max" if ivp.exact is not None else "end")
    study = _Study(ivp, how, stiff, precision or float(np.finfo(float).eps), report, len(chosen))
    curves: list[Curve] = []
    try:
        study.find_reference()
        for label, method in chosen:
            expected = order if order is not None else declared_order(method)
            curves.append(study.curve(label, method, given, expected, diagnosis))
        study.tell("")
    except KeyboardInterrupt:
        return Convergence(ivp, tuple(curves), study.reference, how, interrupted=True)
    return Convergence(ivp, tuple(curves), study.reference, how)


def _step_sizes(steps: Sequence[float], problem: IVP) -> list[float]:
    sizes = sorted(set(positive_numbers("step", steps)), reverse=True)
    if len(sizes) < FEWEST:
        raise ValueError(
            f"an order needs at least {FEWEST} different step sizes, got {len(sizes)}; "
            "leave steps out to have them chosen"
        )
    length = abs(problem.t_span[1] - problem.t_span[0])
    if sizes[0] > length:
        raise ValueError(f"step {sizes[0]:g} is longer than the interval ({length:g})")
    return sizes


def _shifted(curve: Curve) -> list[float]:
    """Slope from the run before, in place of the one to the next; NaN across gaps."""
    return list(curve.estimate.slopes[:-1])


class _Study:
    """The runs of one problem, with what they share."""

    def __init__(
        self,
        problem: IVP,
        measure: ErrorMeasure,
        stiff: bool | None,
        precision: float,
        report: Report | None,
        methods: int,
    ) -> None:
        self.problem, self.measure, self.stiff = problem, measure, stiff
        self.reference = Reference(None, "interrupted before a reference was found")
        self.uncertainty: float | None = None
        self.ends: dict[tuple[str, float], NDArray[Any]] = {}
        self._grids: dict[bytes, NDArray[Any]] = {}
        self._precision = precision
        self._report, self._methods, self._done = report, methods, 0

    def tell(self, label: str) -> None:
        if self._report is not None:
            self._report(self._done, self._methods, label)

    def find_reference(self) -> None:
        """Find it once; states along the same grid are computed once, too."""
        self.tell("reference")
        found = find_reference(self.problem, stiff=self.stiff)
        along = found.along
        if found.y is None and not self.measure.constant:
            raise ValueError(f"{found.origin}; give the problem exact or references")

        def remembered(times: NDArray[np.float64]) -> NDArray[Any]:
            assert along is not None
            if times.dtype == object:  # numbers of another arithmetic: their bytes are pointers
                return along(times)
            key = times.tobytes()
            if key not in self._grids:
                self._grids[key] = along(times)
            return self._grids[key]

        self.reference = Reference(
            found.y, found.origin, found.relative, found.uncertainty, remembered, found.doubt
        )

    def curve(
        self, label: str, method: Any, steps: list[float] | None, expected: int | None, why: bool
    ) -> Curve:
        if steps is None:
            rows = self._automatic(label, method, expected)
        else:
            rows = [self._run(label, method, h) for h in steps]
        estimate = self._estimate(method, rows)
        curve = Curve(label, tuple(rows), estimate, expected)
        if why and expected is not None and _suspicious(curve):
            ends = tuple(self.ends.get((label, h)) for h in curve.steps)
            case = Case(
                self.problem, method, expected, estimate, curve.steps, curve.errors, ends,
                self.reference,
            )  # fmt: skip
            self.tell(f"{label}: looking for the cause")
            curve = Curve(label, tuple(rows), estimate, expected, diagnose(case))
        self._done += 1
        return curve

    def _run(self, label: str, method: Any, step: float) -> Row:
        self.tell(f"{label}, h = {step:.3g}")
        options = {"step": step}
        row, solution = attempt(self.problem, label, method, options, self.reference, self.measure)
        if row.status == "interrupted":
            raise KeyboardInterrupt
        if solution is not None:
            kind = complex if np.iscomplexobj(solution.y) else float
            self.ends[label, step] = np.asarray(solution.y[:, -1], dtype=kind)
            if self.uncertainty is None:
                self.uncertainty = self.measure.uncertainty(self.problem, solution, self.reference)
        return row

    def _floor(self, method: Any, row: Row) -> float:
        floor = round_off_floor(row.steps) * self._precision / float(np.finfo(float).eps)
        if isinstance(method, Tableau):  # some coefficients are published with few digits
            floor = max(floor, UNCERTAIN * method._relative_uncertainty)
        return floor

    def _automatic(self, label: str, method: Any, expected: int | None) -> list[Row]:
        """Refine from the longest step that follows the solution until round-off is reached."""
        length = abs(self.problem.t_span[1] - self.problem.t_span[0])
        rows: list[Row] = []
        count = FIRST
        while count <= MOST_STEPS:
            rows.append(self._run(label, method, length / count))
            if rows[-1].ok and rows[-1].error is not None and rows[-1].error < FOLLOWS:
                break
            if rows[-1].status in ("refused", "missing"):
                return rows
            count *= 2
        order = expected or 4
        ratio = next(r for limit, r in RATIOS if order < limit)
        finest = count * next(n for limit, n in FINER if order < limit)
        exactly = count * ratio
        while round(exactly) <= min(finest, MOST_STEPS):
            row = self._run(label, method, length / round(exactly))
            rows.append(row)
            if row.ok and row.error is not None and row.error < self._stop(method, row):
                break
            if row.steps >= SETTLING * count and self._settled(method, rows, expected):
                break
            exactly *= ratio
            if round(exactly) == rows[-1].steps:  # short intervals: two counts may round to one
                exactly = rows[-1].steps + 1
        return rows

    def _settled(self, method: Any, rows: list[Row], expected: int | None) -> bool:
        """Whether shorter steps would hardly change the answer.

        The order is narrowly known, and either as expected or, four steps ago already, too low. A
        slope above the order is not trusted: a small leading term may still come into sight.
        """
        latest, before = (self._estimate(method, part) for part in (rows, rows[:-4]))
        if expected is None or not latest.found or latest.high - latest.low > 2 * NARROW:
            return False
        return expected in latest or (latest.high < expected and before.high < expected)

    def _estimate(self, method: Any, rows: list[Row]) -> OrderEstimate:
        return estimate_order(
            [row.step or 0.0 for row in rows],
            [row.error if row.ok else None for row in rows],
            [self._floor(method, row) for row in rows],
            uncertainty=self.uncertainty or 0.0,
        )

    def _stop(self, method: Any, row: Row) -> float:
        return max(self._floor(method, row), self.uncertainty or 0.0) / 2


def _suspicious(curve: Curve) -> bool:
    """Whether to look for a cause: the order is too low, or the error falls too slowly for one."""
    if curve.expected is None or curve.verdict == "too low":
        return curve.expected is not None
    known = [(h, e) for h, e in zip(curve.steps, curve.errors) if e]
    if curve.estimate.found or len(known) < FEWEST or _below_floor(curve):
        return False
    (h0, e0), (h1, e1) = known[0], known[-1]
    return bool(np.log(e0 / e1) / np.log(h0 / h1) < curve.expected - SHORTFALL)


def _below_floor(curve: Curve) -> bool:
    """Whether the data end where round-off or the reference does: nothing is wrong with that."""
    return bool({ROUNDING, REFERENCE} & set(curve.estimate.marks))
