"""Reports in one HTML file: figures inside, tables that sort themselves, no network needed.

A page says how it came about: the command, when there was one (:mod:`invocation`), versions,
and the date.
"""

from __future__ import annotations

import datetime
import html
import importlib.metadata
import io
import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING

import featherstep
from integrators.analysis.study.convergence import Convergence
from integrators.analysis.study.work_precision import WorkPrecision

from .invocation import command_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["html_page", "inline_svg", "listed", "study_report"]

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 75rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
figure { margin: 1rem 0; cursor: zoom-in; } svg { max-width: 100%; height: auto; }
figure.zoomed { position: fixed; inset: 0; margin: 0; padding: 1rem; background: white; z-index: 1;
                cursor: zoom-out; box-sizing: border-box; }
figure.zoomed svg { width: 100%; height: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0;
        display: block; overflow-x: auto; font-size: .9rem; }
caption { caption-side: bottom; text-align: left; color: #666; padding-top: .4rem; }
th { text-align: right; cursor: pointer; border-bottom: 2px solid #888; padding: .2rem .5rem;
     white-space: nowrap; }
th.text { text-align: left; }
th[aria-sort=ascending]::after { content: " \\25B2"; }
th[aria-sort=descending]::after { content: " \\25BC"; }
td { text-align: right; padding: .15rem .5rem; border-bottom: 1px solid #e4e4e4;
     white-space: nowrap; }
td.text { text-align: left; white-space: normal; overflow-wrap: break-word; }
footer code { overflow-wrap: anywhere; }
footer { color: #666; font-size: .85rem; margin-top: 3rem; }
"""

# Click on a heading: sort by the values of that column, numbers as numbers; click again: reverse.
# Click on a figure: it fills the window; click again, or press Escape: it goes back.
SCRIPT = """
for (const figure of document.querySelectorAll("figure")) {
  figure.title = "click to enlarge";
  figure.addEventListener("click", () => figure.classList.toggle("zoomed"));
  window.addEventListener("keydown", event => {
    if (event.key === "Escape") figure.classList.remove("zoomed");
  });
}
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((heading, column) => {
    heading.title = "click to sort";
    heading.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      const key = row => row.cells[column].dataset.value;
      const compare = (a, b) => {
        const x = key(a), y = key(b);
        if (x === "" || y === "") return (x === "") - (y === "");
        const number = Number(x) - Number(y);
        const order = Number.isNaN(number) ? x.localeCompare(y) : number;
        return down ? -order : order;
      };
      table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...[...body.rows].sort(compare));
    });
  });
}
"""


def study_report(
    study: Convergence | WorkPrecision, figure: Figure, title: str, description: str = ""
) -> str:
    """Return a study as one HTML page.

    Parameters
    ----------
    study
        What it is about.
    figure
        Its figure, which is embedded.
    title, description
        What stands above.
    """
    ivp = study.problem
    t0, t1 = ivp.t_span
    lead = [description, f"n = {ivp.n}, t from {t0:g} to {t1:.6g}"]
    if isinstance(study, Convergence):
        tables = [("Orders", study.summary), ("All runs", study.table)]
        remarks = study.remarks()
    else:
        tables = [("All runs", study.table)]
        remarks = study.complaints() + study.notes()
    sections = [f"<figure>{inline_svg(figure)}</figure>"]
    for heading, table in tables:
        sections.append(f"<h2>{html.escape(heading)}</h2>\n{table.to_html()}")
        if table is tables[0][1] and remarks:
            sections.append(listed(remarks))
    return html_page(title, lead, sections)


def html_page(title: str, lead: Sequence[str], sections: Sequence[str]) -> str:
    """Return a page that needs nothing but itself.

    Parameters
    ----------
    title
        Plain text.
    lead
        Paragraphs of plain text.
    sections
        HTML; tables in it can be sorted by a click on a heading.

    Examples
    --------
    >>> page = html_page("A & B", ["text"], ["<p>more</p>"])
    >>> "<h1>A &amp; B</h1>" in page, "http" in page
    (True, False)
    """
    paragraphs = "\n".join(f"<p>{html.escape(text)}</p>" for text in lead if text)
    body = "\n".join(sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{html.escape(title)}</title>
<meta name="viewport" content="width=device-width">
<style>{STYLE}</style></head>
<body>
<h1>{html.escape(title)}</h1>
{paragraphs}
{body}
<footer>{_made_by()}</footer>
<script>{SCRIPT}</script>
</body></html>
"""


def _made_by() -> str:
    """Say by which command, with which versions, and when."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scipy")]
    parts = [
        f"featherstep {featherstep.__version__}",
        f"Python {platform.python_version()}",
        *versions,
        datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    ]
    command = command_line.get()
    shown = f"<code>{html.escape(command)}</code><br>\n" if command else ""
    return shown + html.escape(" · ".join(parts))


def inline_svg(figure: Figure) -> str:
    """Return a figure as an ``svg`` element, text as shapes so that no font is needed."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Type": None})
    drawing = text.getvalue()
    return drawing[drawing.index("<svg") :]


def listed(remarks: Sequence[str]) -> str:
    """Return remarks as a list in HTML."""
    return "<ul>" + "".join(f"<li>{html.escape(remark)}</li>" for remark in remarks) + "</ul>"
