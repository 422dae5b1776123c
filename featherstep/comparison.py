"""What a comparison found: rows, the reference, and how they are written down."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators import IVP

__all__ = ["Comparison", "Illustration", "Reference", "Row"]


@dataclass(frozen=True)
class Row:
    """One run: a method with one tolerance or step.

    Attributes
    ----------
    method : str
        Label of the method.
    rtol, atol, step : float or None
        What was asked for; ``step`` is None for an adaptive run and the others for a fixed one.
    error : float or None
        Error at the end; None if the run failed or nothing is known to compare with.
    steps, rejected, nfev, njev : int
        Accepted and rejected steps, evaluations of f and of its Jacobian.
    seconds : float or None
        Median over the timed runs; None for a failed one.
    status : str
        "ok", or what went wrong in a word or two.
    message : str
        What went wrong in a sentence.
    notes : tuple of str
        Warnings given during the run.
    exception : BaseException or None
        The exception behind a failure, if there is one.
    """

    method: str
    rtol: float | None
    atol: float | None
    step: float | None
    error: float | None = None
    steps: int = 0
    rejected: int = 0
    nfev: int = 0
    njev: int = 0
    seconds: float | None = None
    status: str = "ok"
    message: str = ""
    notes: tuple[str, ...] = ()
    exception: BaseException | None = field(default=None, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether the run reached its end."""
        return self.status == "ok"

    @property
    def setting(self) -> str:
        """The tolerance or the step, in words."""
        return f"rtol = {self.rtol:g}" if self.step is None else f"step = {self.step:g}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, in the order of the table's columns."""
        names = ("method", "rtol", "atol", "step", "error", "steps", "rejected", "nfev", "njev")
        values = {name: getattr(self, name) for name in (*names, "seconds", "status", "message")}
        return {name: _plain(value) for name, value in values.items()}

    def cells(self) -> list[str]:
        """Return the row as text, one cell for each of :data:`HEADINGS`."""
        setting = self.rtol if self.step is None else self.step
        return [
            self.method,
            f"{setting:g}",
            "–" if self.error is None else f"{self.error:.1e}",
            *(f"{count:,}" for count in (self.steps, self.rejected, self.nfev, self.njev)),
            "–" if self.seconds is None else _duration(self.seconds),
            self.status,
        ]


HEADINGS = (
    "method",
    "rtol",
    "error",
    "steps",
    "rejected",
    "f-evals",
    "J-evals",
    "time",
    "status",
)


@dataclass(frozen=True)
class Reference:
    """What errors are measured against: the state at the end, and where it comes from."""

    y: NDArray[Any] | None
    origin: str
    relative: bool = True

    def error(self, y: NDArray[Any]) -> float | None:
        """Max norm of the error of a state, relative to the reference where it has not died out."""
        if self.y is None:
            return None
        scale = float(np.max(np.abs(self.y))) if self.relative else 1.0
        return float(np.max(np.abs(y - self.y))) / scale


@dataclass(frozen=True)
class Illustration:
    """A smooth curve of the solution and the steps that one of the methods took along it."""

    t: NDArray[np.float64]
    y: NDArray[Any]
    t_steps: NDArray[np.float64]
    y_steps: NDArray[Any]
    row: Row


@dataclass(frozen=True)
class Comparison:
    """The result of :func:`compare`.

    Attributes
    ----------
    problem : IVP
        What was solved.
    rows : tuple of Row
        One for each method and setting, in the order in which they ran.
    reference : Reference
        What errors are measured against.
    interrupted : bool
        Whether Ctrl-C cut the table short.
    illustration : Illustration or None
        For the picture, if it was asked for.
    """

    problem: IVP
    rows: tuple[Row, ...]
    reference: Reference
    interrupted: bool = False
    illustration: Illustration | None = None

    @property
    def headings(self) -> tuple[str, ...]:
        """Column titles that go with :meth:`Row.cells`."""
        fixed = any(row.step is not None for row in self.rows)
        return ("method", "step", *HEADINGS[2:]) if fixed else HEADINGS

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rows of runs that failed."""
        return tuple(row for row in self.rows if not row.ok)

    def complaints(self) -> list[str]:
        """Say why runs failed: one line for each method and reason."""
        return _merged([(row, row.message) for row in self.failures])

    def notes(self) -> list[str]:
        """Return the warnings given during runs that succeeded, one line each."""
        return _merged([(row, note) for row in self.rows for note in row.notes])

    def error_measure(self) -> str:
        """Say in a sentence what the column of errors means."""
        t = f"t = {self.problem.t_span[1]:.6g}"
        if self.reference.y is None:
            return f"no error: {self.reference.origin}"
        kind = "relative" if self.reference.relative else "absolute"
        return f"{kind} error at {t}, maximum norm, against {self.reference.origin}"

    def to_markdown(self) -> str:
        """Return the table in Markdown, messages of failed runs below it."""
        columns = [self.headings, *(row.cells() for row in self.rows)]
        lines = ["| " + " | ".join(cells) + " |" for cells in columns]
        lines.insert(1, "|---|" + "---:|" * (len(self.headings) - 2) + "---|")
        lines += ["", self.error_measure()]
        lines += [f"- {text}" for text in self.complaints()]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """Return the table as comma-separated values, numbers with all their digits."""
        text = io.StringIO()
        writer = csv.DictWriter(
            text, list(Row("", None, None, None).as_dict()), lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(row.as_dict() for row in self.rows)
        return text.getvalue()

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


def _duration(seconds: float) -> str:
    value, unit = seconds / 1e-6, "µs"
    for name, size in (("ms", 1e-3), ("s", 1.0)):
        if seconds >= size:
            value, unit = seconds / size, name
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{decimals}f} {unit}"


def _merged(remarks: Sequence[tuple[Row, str]]) -> list[str]:
    """Join what is said of one method at several settings."""
    said: dict[tuple[str, str], list[str]] = {}
    for row, text in remarks:
        said.setdefault((row.method, text), []).append(row.setting)
    return [f"{method} ({'; '.join(where)}): {text}" for (method, text), where in said.items()]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
