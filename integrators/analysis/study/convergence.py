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

from ...methods.precise import DIGITS
from ...notebook_html import with_remarks
from ...problem import IVP
from ..error.measure import ErrorMeasure
from .convergence_runs import Curve, StudyRuns
from .reference import Reference, as_problem
from .runs import Report, declared_order, resolve
from .slopes import FEWEST, GAP
from .tables import Column, Table, number
from .work_precision import positive_numbers

__all__ = ["Convergence", "Curve", "convergence"]

MOST_NAMED = 5  # methods in a line that is to be short


@dataclass(frozen=True, repr=False)
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
            named = any(finding.verdict for finding in curve.findings)
            if curve.estimate.reason and len(failed) < len(curve.rows) and not named:
                lines.append(f"{curve.method}: {curve.estimate.reason}")
            if curve.finer:
                lines.append(
                    f"{curve.method}: the {curve.finer} shortest steps were run with {DIGITS} "
                    "digits, because doubles reach round-off before the slope has settled"
                )
            lines += [f"{curve.method}: {finding}" for finding in curve.findings]
            if failed and curve.verdict != "refused":
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

    def __repr__(self) -> str:
        shown = ", ".join(f"{c.method} {c.verdict}" for c in self.curves[:MOST_NAMED])
        more = f" and {len(self.curves) - MOST_NAMED} more" * (len(self.curves) > MOST_NAMED)
        return f"<Convergence on {self.problem.name or 'a problem'}: {shown}{more}>"

    def _repr_html_(self) -> str:
        return with_remarks(self.summary.to_html(), self.remarks())


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
    Heun          2     2.00 0.04 4 of 4, 0.1 to 0.0125 as expected
    RK4           4     4.00 0.08 4 of 4, 0.1 to 0.0125 as expected
    """
    ivp = as_problem(problem)
    listed = [methods] if isinstance(methods, str) or not isinstance(methods, Sequence) else methods
    chosen = [resolve(method) for method in listed]
    if not chosen:
        raise ValueError("no method was given; name at least one")
    given = None if steps is None else _step_sizes(steps, ivp)
    how = ErrorMeasure.of(measure, ivp, "max" if ivp.exact is not None else "end")
    study = StudyRuns(ivp, how, stiff, precision or float(np.finfo(float).eps), report, len(chosen))
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
