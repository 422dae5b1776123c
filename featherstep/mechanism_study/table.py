"""What a comparison of integrators and formulations on one mechanism found, and what to trust."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from integrators.analysis.study.runs import Row as Run
from integrators.analysis.study.tables import Column, Table, duration, number, plain
from integrators.notebook_html import with_remarks
from multibody.runs.observing.observe import MOST_DIPS, Observed

from .reference import Measure, ReferenceMotion

if TYPE_CHECKING:
    from multibody.model import Model

__all__ = ["ACCURATE", "Comparison", "Row", "verdict"]

#: Largest error, in parts of the mechanism's size, that is called right, and the same for gaps and
#: for energy: the limit for "high precision" in the IFToMM library of benchmarks.
ACCURATE = 1e-3

#: Error at the end, in parts of the size and in tolerances, up to which a run delivers what was
#: asked: local errors add up and grow, but a run beyond this is not the one that was ordered.
AS_ASKED = 100.0

#: Formulations whose gap grows with time by construction, and the gap, in parts of the size, from
#: which on that is worth a word.
DRIFTING = ("index1", "index2")
DRIFT_SEEN = 1e-10

KEYS = (
    "formulation", "method", "rtol", "atol", "step", "error", "gap", "gap_rate", "energy_error",
    "multiplier", "rank_min", "rank_max", "singular_ratio", "singular_time", "steps", "rejected",
    "nfev", "njev", "seconds", "status", "verdict", "message",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One run: a method on a formulation with one tolerance or step.

    Attributes
    ----------
    formulation
        "ode" for trees, else a formulation of ``integrators.dae``, with its options.
    run
        What it cost, or why it failed.
    error
        Distance from the reference at the end; None for a run that failed.
    seen
        What was observed along the run, up to where it came.
    verdict
        In words: see :func:`verdict`.
    """

    formulation: str
    run: Run
    error: float | None = None
    seen: Observed | None = None
    verdict: str = ""

    @property
    def method(self) -> str:
        """Label of the method."""
        return self.run.method

    @property
    def ok(self) -> bool:
        """Whether the run reached its end."""
        return self.run.ok

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the run."""
        return self.verdict.startswith("trust")

    @property
    def setting(self) -> str:
        """The tolerance or the step, in words; empty if the run was refused at once."""
        tried = self.run.rtol is not None or self.run.step is not None
        return self.run.setting if tried else ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, in the order of ``KEYS``."""
        seen = self.seen or Observed()
        low, high = seen.rank or (None, None)
        values = self.run.as_dict() | {
            "formulation": self.formulation,
            "error": self.error,
            "gap": seen.gap,
            "gap_rate": seen.speed,
            "energy_error": seen.energy,
            "multiplier": seen.multiplier,
            "rank_min": low,
            "rank_max": high,
            "singular_ratio": seen.closest,
            "singular_time": seen.closest_time,
            "verdict": self.verdict,
        }
        return {key: plain(values[key]) for key in KEYS}


def verdict(
    formulation: str,
    error: float | None,
    seen: Observed,
    size: float,
    uncertainty: float | None,
    rtol: float | None = None,
) -> str:
    """Say what a run that reached its end is worth.

    Parameters
    ----------
    formulation
        Its name, without options.
    error, uncertainty
        Of the run and of the reference, in the unit of the measure; None if there is none.
    seen
        What was observed along the run.
    size
        Of the mechanism, in the same unit.
    rtol
        The tolerance that was asked for; None for a fixed step. An error within ``ACCURATE`` but
        beyond ``AS_ASKED`` tolerances is not wrong, and not what was asked.

    Examples
    --------
    >>> verdict("projected", 1e-8, Observed(1e-14, 1e-14, 1e-9), 1.0, 1e-12)
    'trust'
    >>> verdict("projected", 5e-5, Observed(1e-14, 1e-14, 1e-9), 1.0, 1e-12, rtol=1e-9)
    'right to 5e-05 only, 5e+04 tolerances'
    >>> verdict("projected", 1.6, Observed(3e-13, 1e-13, 1e-7), 1.0, 1e-12)
    'wrong although energy and closure are kept'
    """
    gap = seen.gap or 0.0
    closed = gap <= ACCURATE * size
    kept = seen.energy is None or seen.energy <= ACCURATE
    growing = formulation in DRIFTING and gap > DRIFT_SEEN * size
    if error is None or uncertainty is None or not uncertainty <= ACCURATE * size:
        words = "drifts" if not closed else "loses energy" if not kept else "cannot be judged"
    elif not math.isfinite(error):
        words = "wrong"
    elif not closed:
        words = "drifts"
    elif error > ACCURATE * size:
        words = "wrong"
        if kept and seen.energy is not None:
            together = "energy is" if seen.gap is None else "energy and closure are"
            words = f"wrong although {together} kept"
    elif not kept:
        words = "loses energy"
    elif rtol is not None and error > max(AS_ASKED * rtol * size, 2.0 * uncertainty):
        part = error / size
        words = f"right to {part:.0e} only, {part / rtol:.0e} tolerances"
    elif growing:
        words = "drifts slowly"
    else:
        words = "trust"
    return words + _singular(seen)


def _singular(seen: Observed) -> str:
    if not seen.passages:
        return ""
    count, first = len(seen.passages), f"t = {seen.passages[0]:.3g}"
    if count == 1:
        return f"; passed a singular position at {first}"
    many = "a dozen or more" if count >= MOST_DIPS else str(count)
    return f"; passed {many} singular positions from {first} on"


def _cost(row: Row) -> float:
    seconds = row.run.as_dict().get("seconds")
    return math.inf if seconds is None else float(seconds)


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of :func:`featherstep.mechanism_study.compare.compare`.

    Attributes
    ----------
    model
        The mechanism.
    t_span
        Interval of time.
    rows
        One for each run, failed ones included.
    reference
        What positions are compared with.
    measure
        What the error is the error of.
    size
        Of the mechanism, in the unit of the error.
    interrupted
        Whether Ctrl-C cut the table short.
    left_out
        Pairs that were not asked for by name and that make no sense, with the reason.
    """

    model: Model
    t_span: tuple[float, float]
    rows: tuple[Row, ...]
    reference: ReferenceMotion
    measure: Measure
    size: float
    interrupted: bool = False
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<Comparison on {self.model.name}: {len(self.rows)} runs, "
            f"{sum(row.trusted for row in self.rows)} to be trusted>"
        )

    def _repr_html_(self) -> str:
        return with_remarks(self.table.to_html(), self._below())

    @property
    def methods(self) -> list[str]:
        """Labels of the methods, in the order of the rows."""
        return list(dict.fromkeys(row.method for row in self.rows))

    @property
    def formulations(self) -> list[str]:
        """Formulations, in the order of the rows."""
        return list(dict.fromkeys(row.formulation for row in self.rows))

    @property
    def failures(self) -> tuple[Row, ...]:
        """Rows of runs that failed."""
        return tuple(row for row in self.rows if not row.ok)

    @property
    def fixed(self) -> bool:
        """Whether steps were fixed rather than tolerances given."""
        return any(row.run.step is not None for row in self.rows)

    @property
    def table(self) -> Table:
        """All runs, with what people look at."""
        setting = "step" if self.fixed else "rtol"
        columns = [
            Column("formulation", "formulation", text=True),
            Column("method", "method", text=True),
            Column(setting, setting, lambda x: f"{x:g}"),
            Column(f"error ({self.measure.unit})" if self.measure.unit else "error", "error",
                   number),
        ]  # fmt: skip
        if self.model.bonds:
            columns += [
                Column("gap", "gap", number),
                Column("gap rate", "gap_rate", number),
            ]
        columns += [Column("ΔE/E", "energy_error", number)]
        if self.model.bonds:
            columns += [
                Column("max |λ|", "multiplier", lambda x: f"{x:.3g}"),
                Column("σ ratio", "singular_ratio", number),
            ]
        columns += [
            Column("steps", "steps", lambda x: f"{x:,}"),
            Column("f-evals", "nfev", lambda x: f"{x:,}"),
            Column("time", "seconds", duration),
            Column("verdict", "verdict", text=True),
        ]
        rows = (row.as_dict() for row in self.rows)
        cells = tuple(tuple(row[column.key] for column in columns) for row in rows)
        return Table(tuple(columns), cells, self.error_measure())

    def ranking(self, error: float) -> list[Row]:
        """Runs that are at least this accurate, the cheapest first: cost at equal error.

        Of each method on each formulation the cheapest run counts.

        Examples
        --------
        >>> from featherstep.mechanism_study.compare import compare
        >>> found = compare("pendulum", ["DOPRI5", "DOP853"], tolerances=[1e-4, 1e-8], t_end=2.0)
        >>> all(row.error <= 1e-6 for row in found.ranking(1e-6))
        True
        """
        best: dict[tuple[str, str], Row] = {}
        for row in sorted(self.rows, key=_cost):
            if row.ok and row.error is not None and row.error <= error:
                best.setdefault((row.formulation, row.method), row)
        return sorted(best.values(), key=_cost)

    def error_measure(self) -> str:
        """Say in a sentence what the column of errors means."""
        if self.reference.values is None:
            return f"no error: {self.reference.origin}"
        text = (
            f"error: {self.measure.label} at t = {self.t_span[1]:.6g}, largest distance, against "
            f"{self.reference.origin}"
        )
        if math.isnan(self.reference.uncertainty):
            return text
        return f"{text}; uncertain by {self.reference.uncertainty:.0e} {self.measure.unit}".rstrip()

    def complaints(self) -> list[str]:
        """Say why runs failed: a line for each method, formulation and reason."""
        said: dict[tuple[str, str], list[str]] = {}
        for row in self.failures:
            key = (f"{row.formulation} by {row.method}", row.run.message)
            said.setdefault(key, []).append(row.setting)
        return [
            f"{who}{f' ({words})' if (words := '; '.join(filter(None, where))) else ''}: {text}"
            for (who, text), where in said.items()
        ]

    def notes(self) -> list[str]:
        """What else there is to say: doubts, warnings, singular positions, pairs left out."""
        said = []
        doubt = self.reference.uncertainty
        if self.reference.values is not None and math.isnan(doubt):
            said.append("nothing confirms the reference, so no run can be judged by its position")
        elif self.reference.values is not None and doubt > ACCURATE * self.size:
            said.append(
                "the references contradict each other, so no run can be judged by its position; "
                "a singular position, chaos or too long an interval may be why"
            )
        elif any(row.error is not None and row.error < doubt for row in self.rows):
            said.append(f"errors below {doubt:.0e} are those of the reference")
        if any(row.seen is not None and row.seen.singular for row in self.rows):
            said.append(
                "at a singular position the rank of the constraints drops: neither energy nor "
                "closure say that a run went on along the right branch"
            )
        warned: dict[str, list[str]] = {}
        for row in self.rows:
            for note in row.run.notes:
                warned.setdefault(note, []).append(f"{row.formulation} by {row.method}")
        said += [f"{', '.join(dict.fromkeys(who))}: {note}" for note, who in warned.items()]
        return said + list(self.left_out)

    def to_text(self) -> str:
        """Return the table as text, reasons of failures below it."""
        return "\n".join([self.table.to_text(), "", *self._below()])

    def to_markdown(self) -> str:
        """Return the table in Markdown, reasons of failures below it."""
        first, *others = self._below()
        return "\n".join([self.table.to_markdown(), "", first, *(f"- {x}" for x in others)]) + "\n"

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``tabular``."""
        return self.table.to_latex()

    def to_csv(self) -> str:
        """Return all runs as comma-separated values, numbers with all their digits."""
        rows = tuple(tuple(row.as_dict().values()) for row in self.rows)
        return Table(tuple(Column(key, key) for key in KEYS), rows).to_csv()

    def to_json(self) -> str:
        """Return mechanism, reference and table as JSON; what is not known is null."""
        data = {
            "mechanism": self.model.name,
            "t_span": list(self.t_span),
            "reference": self.reference.origin,
            "uncertainty": plain(self.reference.uncertainty),
            "measure": self.measure.label,
            "size": self.size,
            "interrupted": self.interrupted,
            "rows": [row.as_dict() for row in self.rows],
        }
        return json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def _below(self) -> list[str]:
        return [self.error_measure(), *self.complaints(), *self.notes()]

    def __str__(self) -> str:
        return self.to_text()

    def __getitem__(self, pair: tuple[str, str]) -> list[Row]:
        """Rows of a formulation and a method."""
        formulation, method = pair
        rows = [r for r in self.rows if (r.formulation, r.method) == (formulation, method)]
        if not rows:
            raise KeyError(
                f"no run of {formulation!r} by {method!r}; there are "
                f"{', '.join(self.formulations)} by {', '.join(self.methods)}"
            )
        return rows
