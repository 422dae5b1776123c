"""Tables of a study, written down as text, Markdown, LaTeX, CSV or HTML.

A :class:`Table` keeps two things for each cell: the value, for machines, and how people see it.
CSV has the values with all their digits, the other formats have the text.
"""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Column", "Table", "duration", "number"]

NOTHING = "–"


@dataclass(frozen=True)
class Column:
    """One column: its heading, the key of its values, and how they are shown.

    Parameters
    ----------
    heading
        What people read above it.
    key
        What machines read above it.
    show
        Turns a value into text; missing values (None, NaN) are shown as a dash.
    text
        Whether it holds words, which are aligned to the left, rather than numbers.
    """

    heading: str
    key: str
    show: Callable[[Any], str] = str
    text: bool = False

    def cell(self, value: Any) -> str:
        """Return a value as people see it."""
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        return NOTHING if missing else self.show(value)


@dataclass(frozen=True, repr=False)
class Table:
    """Columns, and a row of values for each line.

    Examples
    --------
    >>> columns = (Column("method", "method", text=True), Column("error", "error", number))
    >>> table = Table(columns, (("RK4", 1.234e-5), ("Heun", None)))
    >>> print(table)
    method   error
    RK4    1.2e-05
    Heun         –
    >>> print(table.to_csv(), end="")
    method,error
    RK4,1.234e-05
    Heun,
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str = ""

    @property
    def headings(self) -> list[str]:
        """The headings."""
        return [column.heading for column in self.columns]

    @property
    def cells(self) -> list[list[str]]:
        """All cells as text."""
        return [[c.cell(value) for c, value in zip(self.columns, row)] for row in self.rows]

    def to_text(self) -> str:
        """Return the table with aligned columns."""
        lines = [self.headings, *self.cells]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.columns))]

        def line(cells: Sequence[str]) -> str:
            aligned = [
                cell.ljust(width) if column.text else cell.rjust(width)
                for cell, width, column in zip(cells, widths, self.columns)
            ]
            return " ".join(aligned).rstrip()

        return "\n".join(map(line, lines))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Table of {len(self.rows)} rows: {', '.join(self.headings)}>"

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        rule = ["---" if column.text else "---:" for column in self.columns]
        lines = [self.headings, rule, *self.cells]
        return "\n".join("| " + " | ".join(map(_markdown, cells)) + " |" for cells in lines)

    def to_latex(self) -> str:
        """Return a ``tabular`` environment with the rules of the package booktabs."""
        aligned = "".join("l" if column.text else "r" for column in self.columns)

        def line(cells: Sequence[str]) -> str:
            return " & ".join(map(_latex, cells)) + r" \\"

        lines = [rf"\begin{{tabular}}{{{aligned}}}", r"\toprule", line(self.headings), r"\midrule"]
        lines += [line(cells) for cells in self.cells]
        lines += [r"\bottomrule", r"\end{tabular}"]
        return "\n".join(lines)

    def to_csv(self) -> str:
        """Return comma-separated values, numbers with all their digits, missing ones empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.key for column in self.columns])
        writer.writerows([plain(value) for value in row] for row in self.rows)
        return text.getvalue()

    def to_html(self) -> str:
        """Return a ``table`` element; each cell carries its value, for sorting."""
        kinds = [' class="text"' if column.text else "" for column in self.columns]
        head = "".join(f"<th{k}>{html.escape(h)}</th>" for k, h in zip(kinds, self.headings))
        body = []
        for values, cells in zip(self.rows, self.cells):
            row = []
            for kind, value, cell in zip(kinds, values, cells):
                key = "" if plain(value) is None else str(value)
                row.append(f'<td{kind} data-value="{html.escape(key)}">{html.escape(cell)}</td>')
            body.append(f"<tr>{''.join(row)}</tr>")
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        lines = "\n".join(body)
        return f"<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}\n</tbody></table>"

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row; missing values are None."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, map(plain, row))) for row in self.rows]


def number(x: float) -> str:
    """Write a number with two digits, as errors are read."""
    return f"{x:.1e}"


def duration(seconds: float) -> str:
    """Write a time with a fitting unit.

    Examples
    --------
    >>> [duration(s) for s in (3.2e-5, 0.0123, 4.0)]
    ['32.0 µs', '12.3 ms', '4.00 s']
    """
    value, unit = seconds / 1e-6, "µs"
    for name, size in (("ms", 1e-3), ("s", 1.0)):
        if seconds >= size:
            value, unit = seconds / size, name
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{decimals}f} {unit}"


def plain(value: Any) -> Any:
    """Return None for what is not a finite number, anything else as it is."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _markdown(cell: str) -> str:
    return cell.replace("|", r"\|")


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≥": r"$\ge$",
    "µ": r"$\mu$",
    NOTHING: "--",
}


def _latex(cell: str) -> str:
    """Escape what LaTeX would take for a command; 1.2e-05 becomes a power of ten."""
    mantissa, e, exponent = cell.partition("e")
    if e and mantissa.replace(".", "").isdigit() and exponent.lstrip("+-").isdigit():
        return rf"${mantissa}\cdot 10^{{{int(exponent)}}}$"
    return "".join(_LATEX.get(character, character) for character in cell)
