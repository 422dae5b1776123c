"""How results look on a terminal: tables, a progress bar, and plain text into a pipe."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from integrators.analysis.study.convergence import Convergence
from integrators.analysis.study.work_precision import WorkPrecision

__all__ = ["Screen", "progress", "show_comparison", "show_convergence", "table"]

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
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[str],
    folded: Sequence[str] = (),
) -> Table:
    """Return a table.

    Columns named in ``left`` are text, the others numbers. Where the screen is too narrow the
    ``folded`` ones run over several lines.
    """
    made = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for heading in headings:
        made.add_column(
            heading,
            justify="left" if heading in left else "right",
            no_wrap=heading not in folded,
            overflow="fold",
        )
    for row in rows:
        made.add_row(*map(escape, row))
    return made


def show_comparison(screen: Screen, comparison: WorkPrecision, description: str) -> None:
    """Print what was solved, the table, what errors mean, and why runs failed."""
    ivp = comparison.problem
    t0, t1 = ivp.t_span
    about = f"n = {ivp.n}, t from {t0:g} to {t1:.6g}"
    screen.say(f"{ivp.name or 'problem'}: {description}" if description else ivp.name, "bold")
    screen.say(about)
    screen.say()
    rows = comparison.table
    made = table(rows.headings, [], left=("method", "status"), folded=("status",))
    last = None
    for row, cells in zip(comparison.rows, rows.cells):
        if last is not None and row.setting != last:
            made.add_section()
        last = row.setting
        made.add_row(*map(escape, cells), style=None if row.ok else "red")
    if comparison.rows:
        screen.print(made)
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
        screen.print(table(rows.headings, rows.cells, left=left, folded=("verdict",)))
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
