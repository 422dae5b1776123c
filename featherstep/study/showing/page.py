"""A study as one HTML file: how it went, pictures, the worst runs, and links to animations."""

from __future__ import annotations

import html
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.files import write_text

from ...report import html_page, inline_svg, listed
from .pictures import bands, marginals, scatter, sobol

if TYPE_CHECKING:
    from ..study import Study

__all__ = ["write_report"]

log = logging.getLogger(__name__)

WORST = 10  # runs in the table
FAILURES = 20


def write_report(study: Study, path: str | Path, animations: int) -> Path:
    """Write the report.

    Parameters
    ----------
    study
        A study that has been run, all of it or in part.
    path
        The file. Animations go to a folder beside it, of the same name with ``_runs``.
    animations
        How many of the worst runs are animated, where the study is of a mechanism.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"expected the name of an HTML file, received {str(path)!r}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    store = study._kept(None)
    recorded = list(store.header["plan"]["record"])
    links = _animated(study, path, recorded, animations)
    sections = [_figure(scatter(study))]
    if recorded:
        sections += ["<h2>What was recorded</h2>", _summary(study), _figure(marginals(study))]
        if study.design.sampling == "saltelli":
            sections += ["<h2>What it depends on</h2>", _figure(sobol(study))]
        sections += [f"<h2>Runs with the largest {html.escape(recorded[0])}</h2>"]
        sections.append(_runs(study, study.worst(recorded[0], WORST), links))
    if store.trajectories is not None:
        sections += ["<h2>Trajectories</h2>", _figure(bands(study))]
    failures = study.failures()
    if failures:
        sections.append(f"<h2>Runs that failed: {len(failures):,}</h2>")
        shown = [f"run {k}: {text}" for k, text in list(failures.items())[:FAILURES]]
        if len(failures) > FAILURES:
            shown.append(f"… and {len(failures) - FAILURES:,} more; study.failures() has them all")
        sections.append(listed(shown))
    sections += ["<h2>How to make it again</h2>", _facts(study)]
    lead = [str(study.status()), f"{store.header['title']}, {store.header['engine']}"]
    write_text(path, html_page(f"Study of {store.header['title']}", lead, sections))
    return path


def _figure(figure: Any) -> str:
    return f"<figure>{inline_svg(figure)}</figure>"


def _animated(study: Study, path: Path, recorded: list[str], count: int) -> dict[int, str]:
    """Links by the numbers of runs that were animated: the worst ones."""
    if count < 1 or not recorded or not study._kept(None).header["mechanism"]:
        return {}
    if "plan" not in study.__dict__:
        log.warning(
            "no animations: the study's folder does not hold the code that makes its models"
        )
        return {}
    folder = path.with_name(f"{path.stem}_runs")
    links = {}
    for number in study.worst(recorded[0], count):
        folder.mkdir(exist_ok=True)
        study.rerun(number).animate(folder / f"run_{number}.html")
        links[number] = f"{folder.name}/run_{number}.html"
    return links


def _table(headings: list[str], rows: list[list[tuple[str, str]]]) -> str:
    """Rows of (text, value to sort by); a text may hold HTML."""
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join(
        "<tr>"
        + "".join(f'<td data-value="{html.escape(key)}">{text}</td>' for text, key in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(value: float) -> tuple[str, str]:
    return (f"{value:.6g}", repr(float(value))) if np.isfinite(value) else ("–", "")


def _summary(study: Study) -> str:
    columns = study.columns()
    good = columns["status"] == "ok"
    rows = []
    for name, unit in study._kept(None).header["value_units"].items():
        values = columns[name][good]
        values = values[np.isfinite(values)]
        if not values.size:
            continue
        numbers = [values.min(), *np.percentile(values, [5, 50, 95]), values.max(), values.std()]
        label = (html.escape(f"{name} in {unit}" if unit else name), name)
        rows.append([label, *(_number(x) for x in numbers), (f"{values.size:,}", str(values.size))])
    headings = ["recorded", "least", "5 %", "median", "95 %", "most", "deviation", "runs"]
    return _table(headings, rows)


def _runs(study: Study, numbers: list[int], links: dict[int, str]) -> str:
    columns = study.columns()
    names = [*study.design.names, *study._kept(None).header["plan"]["record"]]
    rows = []
    for number in numbers:
        text = str(number)
        if number in links:
            text = f'<a href="{html.escape(links[number])}">{number}</a>'
        rows.append([(text, str(number)), *(_number(float(columns[n][number])) for n in names)])
    note = "<p>A number that is a link leads to the animation of that run.</p>" if links else ""
    return note + _table(["run", *names], rows)


def _facts(study: Study) -> str:
    header = study._kept(None).header
    facts = [f"hash of the study: {header['hash']}"]
    facts += [f"{name} {version}" for name, version in header["versions"].items()]
    facts.append(f"folder: {study._kept(None).path.name}; one run again: study.rerun(number)")
    return listed(facts)
