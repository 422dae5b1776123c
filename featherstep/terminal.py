"""How results look on a terminal: tables, a progress bar, and plain text into a pipe."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from integrators.analysis.study.convergence import Convergence
from integrators.analysis.study.work_precision import WorkPrecision

from .fitting import fit

__all__ = ["Screen", "progress", "show_comparison", "show_convergence"]

PIPE_WIDTH = 200  # lines into a pipe or a file are not folded to the width of a terminal


class Screen(Console):
    """Standard output; a reader that goes away is for ``main`` to deal with."""

    def __init__(self) -> None:
        super().__init__(
            highlight=False,
            soft_wrap=False,
            width=None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH,
        )

    def on_broken_pipe(self) -> None:
        """Let the exception through."""
        raise BrokenPipeError

    def say(self, text: str = "", style: str | None = None) -> None:
        """Print text as it is, long lines unbroken."""
        self.print(text, style=style, markup=False, soft_wrap=True)

    def paragraph(self, text: str, style: str | None = None) -> None:
        """Print text folded to the width of the screen."""
        self.print(text, style=style, markup=False)

    def table(
        self,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        left: Sequence[str],
        folded: Mapping[str, int] | None = None,
        spare: Sequence[str] = (),
        styles: Sequence[str | None] = (),
        groups: Sequence[Any] = (),
    ) -> None:
        """Print a table so that no cell loses a character, however narrow the screen is.

        Parameters
        ----------
        headings, rows
            What there is.
        left
            Headings of columns that are text; the others are numbers.
        folded, spare
            Headings of those that may run over several lines, and of those that may be left
            out, the least important one first; see :func:`~featherstep.fitting.fit`.
        styles
            Colour of each row.
        groups
            Something for each row; a line is left free where it changes.
        """
        styles = styles or [None] * len(rows)
        ends = [a != b for a, b in pairwise(groups)] if groups else []
        layout = fit(headings, rows, self.width, folded=folded, spare=spare)
        if layout.stacked:
            self._stacked(headings, rows, styles)
            return
        made = Table(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
            header_style="bold",
        )  # fmt: skip
        for k, width in zip(layout.columns, layout.widths):
            side: Any = "left" if headings[k] in left else "right"
            made.add_column(headings[k], justify=side, width=width, overflow="fold")
        for cells, style, last in zip_longest(rows, styles, ends):
            shown = (escape(cells[k]) for k in layout.columns)
            made.add_row(*shown, style=style, end_section=bool(last))
        self.print(made)
        if layout.left_out:
            names = ", ".join(headings[k] for k in layout.left_out)
            self.paragraph(f"Left out for want of room: {names} (a wider window or --csv has them)")

    def _stacked(
        self,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        styles: Sequence[str | None],
    ) -> None:
        """Print each row as a block of lines."""
        width = max(map(len, headings))
        for cells, style in zip(rows, styles):
            for heading, cell in zip(headings, cells):
                indent = " " * (width + 2)
                lines = textwrap.wrap(
                    cell, max(self.width, width + 10), initial_indent=f"{heading:<{width}}  ",
                    subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
                )  # fmt: skip
                self.say("\n".join(lines) or heading, style)
            self.say()


def show_comparison(screen: Screen, comparison: WorkPrecision, description: str) -> None:
    """Print what was solved, the table, what errors mean, and why runs failed."""
    ivp = comparison.problem
    t0, t1 = ivp.t_span
    about = f"n = {ivp.n}, t from {t0:g} to {t1:.6g}"
    screen.say(f"{ivp.name or 'problem'}: {description}" if description else ivp.name, "bold")
    screen.say(about)
    screen.say()
    rows = comparison.table
    if comparison.rows:
        screen.table(
            rows.headings,
            rows.cells,
            left=("method", "status"),
            folded={"status": 8},
            spare=("J-evals", "rejected", "error/rtol", "steps", "f-evals"),
            styles=[None if row.ok else "red" for row in comparison.rows],
            groups=[row.setting for row in comparison.rows],
        )
    screen.say()
    screen.paragraph(comparison.error_measure())
    for text in comparison.complaints():
        screen.paragraph(text, "red")
    for text in comparison.notes():
        screen.paragraph(text, "yellow")


def show_convergence(
    screen: Screen, study: Convergence, description: str, *, every_run: bool = False
) -> None:
    """Print what was solved, the orders, and why some are missing or too low."""
    ivp = study.problem
    t0, t1 = ivp.t_span
    screen.say(f"{ivp.name}: {description}" if description else ivp.name, "bold")
    screen.say(f"n = {ivp.n}, t from {t0:g} to {t1:.6g}")
    screen.say()
    for rows in (study.table, study.summary) if every_run else (study.summary,):
        left = [column.heading for column in rows.columns if column.text]
        screen.table(
            rows.headings,
            rows.cells,
            left=left,
            folded={"verdict": 16, "steps used": 12},
            spare=("f-evals", "steps", "steps used"),
        )
        screen.say()
    screen.paragraph(study.error_measure())
    for text in study.remarks():
        screen.paragraph(text, "yellow")


@contextlib.contextmanager
def progress(title: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a bar on standard error while something long runs; nothing if that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns: tuple[Any, ...] = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label)

        yield report
