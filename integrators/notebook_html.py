"""How tableaux, solutions and reports look in a notebook: small pieces of HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .runs.solution import Solution
    from .tableau import Tableau

__all__ = ["page_of_text", "solution_table", "tableau_table", "with_remarks"]

MOST_COMPONENTS = 8
RULE = "border-left:1px solid"
LINE = "border-top:1px solid"


def tableau_table(tableau: Tableau, text: Any) -> str:
    """Return a Butcher tableau; ``text`` writes a coefficient."""
    rows = [
        _row(text(c), [text(a) if a else "" for a in row]) for c, row in zip(tableau.c, tableau.A)
    ]
    rows.append(_row("", [text(b) for b in tableau.b], LINE))
    if tableau.b_hat is not None:
        rows.append(_row("", [text(b) for b in tableau.b_hat]))
    caption = html.escape(repr(tableau).strip("<>"))
    return f"<table><caption>{caption}</caption>{''.join(rows)}</table>"


def _row(first: str, cells: Sequence[str], line: str = "") -> str:
    head = f'<td style="text-align:right;{line}">{html.escape(first)}</td>'
    body = []
    for k, cell in enumerate(cells):
        style = f"text-align:right;{line};{RULE if k == 0 else ''}"
        body.append(f'<td style="{style}">{html.escape(cell)}</td>')
    return f"<tr>{head}{''.join(body)}</tr>"


def solution_table(solution: Solution) -> str:
    """Return what became of a run: status, work, and the state at the end."""
    facts = [
        ("status", solution.status.name.lower().replace("_", " ")),
        ("message", solution.message),
        ("steps", f"{solution.nsteps:,} ({solution.nrejected:,} rejected)"),
        ("evaluations", f"{solution.nfev:,}"),
    ]
    if solution.t.size:
        facts.append(("t", f"{float(solution.t[0]):.6g} to {float(solution.t[-1]):.6g}"))
        end = solution.y[: solution.modes[-1].n if solution.modes else None, -1]
        shown = [f"y{k} = {x:.8g}" for k, x in enumerate(end[:MOST_COMPONENTS])]
        facts.append(("at the end", ", ".join(shown + ["…"] * (len(end) > MOST_COMPONENTS))))
    if solution.modes:
        last = solution.modes[-MOST_COMPONENTS:]
        text = ", ".join(f"{stay.mode} from {stay.start:.6g}" for stay in last)
        facts.append(("modes", "…, " * (len(solution.modes) > len(last)) + text))
    rows = "".join(
        f'<tr><th style="text-align:left">{name}</th>'
        f'<td style="text-align:left">{html.escape(value)}</td></tr>'
        for name, value in facts
        if value
    )
    title = html.escape(repr(solution).strip("<>").partition(":")[0])
    return f"<table><caption>{title}</caption>{rows}</table>"


def with_remarks(table: str, remarks: Sequence[str]) -> str:
    """Return a table of a study with what is said below it."""
    said = "".join(f"<li>{html.escape(line)}</li>" for line in remarks)
    return table + (f"<ul>{said}</ul>" if said else "")


def page_of_text(text: str) -> str:
    """Return text whose columns stay aligned."""
    return f"<pre>{html.escape(text)}</pre>"
