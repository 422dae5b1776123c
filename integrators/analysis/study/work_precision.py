"""Work against precision: what each digit costs, for any mix of methods.

:func:`work_precision` solves one problem by several methods, each at several tolerances or step
sizes, and returns a table: error, steps, evaluations, time. The achieved error stands beside the
tolerance that was asked for, since a tolerance bounds the error of a step and not of the whole.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...notebook_html import with_remarks
from ...problem import IVP
from ...runs.solution import Solution
from ..error.measure import ErrorMeasure
from .proportionality import Proportionality, proportionality
from .reference import Reference, as_problem, find_reference
from .runs import Report, Row, attempt, merged, resolve
from .tables import Column, Table, duration, number

__all__ = ["WorkPrecision", "work_precision"]

ATOL_OVER_RTOL = 1e-3  # the ratio of solve's own defaults
MAX_STEPS = 200_000  # attempts of an adaptive run: a stiff problem must not stall the table
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)


def _count(x: int) -> str:
    return f"{x:,}"


def _setting(x: float) -> str:
    return f"{x:g}"


@dataclass(frozen=True, repr=False)
class WorkPrecision:
    """The result of :func:`work_precision`.

    Attributes
    ----------
    problem : IVP
        What was solved.
    rows : tuple of Row
        One for each method and setting, in the order in which they ran; failed ones included.
    reference : Reference
        What errors are measured against.
    interrupted : bool
        Whether Ctrl-C cut the table short.
    measure : ErrorMeasure
        How errors are measured.
    uncertainty : float
        Error of the reference, in this measure: errors below it mean nothing.
    """

    problem: IVP
    rows: tuple[Row, ...]
    reference: Reference
    interrupted: bool = False
    measure: ErrorMeasure = field(default_factory=ErrorMeasure)
    uncertainty: float = 0.0

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} on {self.problem.name or 'a problem'}: {len(self.rows)} runs "
            f"by {len(self.methods)} methods, {len(self.failures)} failed>"
        )

    def _repr_html_(self) -> str:
        return with_remarks(self.table.to_html(), self._below())

    @property
    def methods(self) -> list[str]:
        """Labels of the methods, in the order in which they were given."""
        return list(dict.fromkeys(row.method for row in self.rows))

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rows of runs that failed."""
        return tuple(row for row in self.rows if not row.ok)

    @property
    def fixed(self) -> bool:
        """Whether steps were fixed rather than tolerances given."""
        return any(row.step is not None for row in self.rows)

    @property
    def table(self) -> Table:
        """All runs."""
        columns: list[Column] = [Column("method", "method", text=True)]
        if self.fixed:
            columns += [Column("step", "step", _setting)]
        else:
            columns += [Column("rtol", "rtol", _setting)]
        columns += [Column("error", "error", number)]
        if not self.fixed:
            columns += [Column("error/rtol", "achieved_over_requested", lambda x: f"{x:.3g}")]
        columns += [
            Column("steps", "steps", _count),
            Column("rejected", "rejected", _count),
            Column("f-evals", "nfev", _count),
            Column("J-evals", "njev", _count),
            Column("time", "seconds", duration),
            Column("status", "status", text=True),
        ]
        rows = []
        for row in self.rows:
            ratio = None if row.error is None or not row.rtol else row.error / row.rtol
            values = vars(row) | {"achieved_over_requested": ratio}
            rows.append(tuple(values[column.key] for column in columns))
        return Table(tuple(columns), tuple(rows), self.error_measure())

    @property
    def proportionality(self) -> dict[str, Proportionality]:
        """How the error of each method follows the tolerance; empty for fixed steps.

        Methods with fewer than three errors clear of round-off and reference are left out.
        """
        found = {}
        for method in self.methods if not self.fixed else ():
            rows = [row for row in self.rows if row.method == method]
            fitted = proportionality(
                [row.rtol or 0.0 for row in rows],
                [row.error if row.ok else None for row in rows],
                self.uncertainty,
            )
            if fitted is not None:
                found[method] = fitted
        return found

    def error_measure(self) -> str:
        """Say in a sentence what the column of errors means."""
        if self.reference.y is None and not self.measure.constant:
            return f"no error: {self.reference.origin}"
        if self.measure.constant:
            return f"{self.measure.label}, against its value at the start"
        if self.measure.observable is None and self.measure.over == "end":
            kind = "relative" if self.reference.relative else "absolute"
            t = f"t = {self.problem.t_span[1]:.6g}"
            return f"{kind} error at {t}, maximum norm, against {self.reference.origin}"
        return f"{self.measure.label}, maximum norm, against {self.reference.origin}"

    def complaints(self) -> list[str]:
        """Say why runs failed: one line for each method and reason."""
        return merged([(row, row.message) for row in self.failures])

    def notes(self) -> list[str]:
        """Return the warnings given during runs that succeeded, one line each."""
        remarks = merged([(row, note) for row in self.rows for note in row.notes])
        doubtful = [
            row for row in self.rows if row.error is not None and row.error < self.uncertainty
        ]
        if doubtful:
            remarks.append(
                f"{len(doubtful)} errors are below the uncertainty of the reference, "
                f"{self.uncertainty:.0e}, and mean no more than that"
            )
        for method, fitted in self.proportionality.items():
            remarks.append(f"{method}: {fitted}")
        return remarks

    def to_text(self) -> str:
        """Return the table as text, messages of failed runs below it."""
        return "\n".join([self.table.to_text(), "", *self._below()])

    def to_markdown(self) -> str:
        """Return the table in Markdown, messages of failed runs below it."""
        first, *others = self._below()
        return "\n".join([self.table.to_markdown(), "", first, *(f"- {x}" for x in others)]) + "\n"

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``tabular``."""
        return self.table.to_latex()

    def to_csv(self) -> str:
        """Return all runs as comma-separated values, numbers with all their digits."""
        keys = list(Row("", None, None, None).as_dict())
        rows = tuple(tuple(row.as_dict().values()) for row in self.rows)
        return Table(tuple(Column(key, key) for key in keys), rows).to_csv()

    def to_json(self) -> str:
        """Return problem, reference and table as JSON; what is not known is null."""
        data = {
            "problem": self.problem.name,
            "t_span": list(self.problem.t_span),
            "params": self.problem.params.tolist(),
            "reference": self.reference.origin,
            "interrupted": self.interrupted,
            "rows": [row.as_dict() for row in self.rows],
        }
        return json.dumps(data, indent=1, allow_nan=False) + "\n"

    def _below(self) -> list[str]:
        return [self.error_measure(), *self.complaints(), *self.notes()]

    def __str__(self) -> str:
        return self.to_text()


def work_precision(
    problem: str | IVP,
    methods: Sequence[Any] | Any,
    tolerances: float | Sequence[float] | None = None,
    *,
    atol: float | Sequence[float] | None = None,
    steps: float | Sequence[float] | None = None,
    measure: Any = None,
    repeat: int | None = None,
    max_steps: int | None = None,
    stiff: bool | None = None,
    report: Report | None = None,
    keep: Any = None,
) -> WorkPrecision:
    """Solve a problem by several methods and tabulate what each digit costs.

    Parameters
    ----------
    problem
        Name of a reference problem, or an :class:`~integrators.IVP`.
    methods
        One or several: what ``solve`` accepts as a method, and "scipy:RK45", "assimulo:CVode", or
        the name of a file with a tableau.
    tolerances
        Relative ones, a run each; by default 1e-3 to 1e-10.
    atol
        Absolute ones: one for all, or as many as there are relative ones; by default rtol/1000.
    steps
        Fixed step sizes, in place of tolerances.
    measure
        How errors are measured, see :class:`ErrorMeasure`: "end" (the default), "max", a component
        ("y0"), an invariant ("energy"), or a function g(t, y).
    repeat
        Number of timed runs, of which the median counts, after a first one that is not timed
        because it may compile. By default five, or as many as fit into a second.
    max_steps
        Most attempts of a run; 200,000 by default for adaptive ones.
    stiff
        Whether the problem is, for the computation of a reference where none is known.
    report
        Called as ``report(done, total, label)`` before each run.
    keep
        Called as ``keep(row, solution)`` after each run that succeeded.

    Returns
    -------
    WorkPrecision
        With a row for every run, failed ones included. Ctrl-C ends it early.

    Raises
    ------
    ValueError
        For an unknown problem, method or measure, and for settings that make no sense.

    Examples
    --------
    >>> result = work_precision("logistic", ["DOPRI5", "scipy:RK45"], [1e-4, 1e-8], repeat=1)
    >>> [row.method for row in result.rows]
    ['DOPRI5', 'scipy:RK45', 'DOPRI5', 'scipy:RK45']
    >>> bool(result.rows[0].error > result.rows[2].error)
    True
    """
    ivp = as_problem(problem)
    listed = [methods] if isinstance(methods, str) or not isinstance(methods, Sequence) else methods
    chosen = [resolve(method) for method in listed]
    if not chosen:
        raise ValueError("no method was given; name at least one")
    settings = _settings(tolerances, atol, steps, max_steps)
    if repeat is not None and repeat < 1:
        raise ValueError(f"repeat must be at least 1, got {repeat}")
    how = ErrorMeasure.of(measure, ivp)

    rows: list[Row] = []
    reference = Reference(None, "interrupted before a reference was found")
    interrupted, uncertainty = False, 0.0
    total = len(settings) * len(chosen)
    tell = report or (lambda done, total, label: None)
    try:
        tell(0, total, "reference")
        reference = find_reference(ivp, stiff=stiff)
        for options in settings:
            for label, method in chosen:
                tell(len(rows), total, f"{label}, {_words(options)}")
                row, solution = attempt(ivp, label, method, options, reference, how, repeat=repeat)
                rows.append(row)
                if row.status == "interrupted":
                    raise KeyboardInterrupt
                if solution is not None:
                    uncertainty = uncertainty or _uncertainty(how, ivp, solution, reference)
                    if keep is not None:
                        keep(row, solution)
        tell(total, total, "")
    except KeyboardInterrupt:
        interrupted = True
    return WorkPrecision(ivp, tuple(rows), reference, interrupted, how, uncertainty)


def _uncertainty(how: ErrorMeasure, ivp: IVP, solution: Solution, reference: Reference) -> float:
    return 0.0 if reference.y is None else how.uncertainty(ivp, solution, reference)


def _words(options: dict[str, Any]) -> str:
    return f"step = {options['step']:g}" if "step" in options else f"rtol = {options['rtol']:g}"


def _settings(rtol: Any, atol: Any, step: Any, max_steps: int | None) -> list[dict[str, Any]]:
    limit = {} if max_steps is None else {"max_steps": max_steps}
    if step is not None:
        if rtol is not None or atol is not None:
            raise ValueError("give tolerances or fixed steps, not both")
        return [{"step": h} | limit for h in positive_numbers("step", step)]
    relative = positive_numbers("rtol", TOLERANCES if rtol is None else rtol)
    if atol is None:
        absolute = [ATOL_OVER_RTOL * r for r in relative]
    else:
        absolute = positive_numbers("atol", atol)
        if len(absolute) == 1:
            absolute *= len(relative)
        if len(absolute) != len(relative):
            raise ValueError(
                f"got {len(relative)} values of rtol and {len(absolute)} of atol; give one atol, "
                "or one for each rtol"
            )
    limit = {"max_steps": max_steps or MAX_STEPS}
    return [{"rtol": r, "atol": a} | limit for r, a in zip(relative, absolute)]


def positive_numbers(name: str, values: Any) -> list[float]:
    """Check one number or several, all of them positive."""
    numbers = [float(x) for x in np.atleast_1d(np.asarray(values, dtype=np.float64))]
    for x in numbers:
        if not (math.isfinite(x) and x > 0):
            raise ValueError(f"{name} must be positive, got {x:g}")
    if not numbers:
        raise ValueError(f"no value of {name} was given")
    return numbers
