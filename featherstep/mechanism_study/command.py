"""The commands on mechanisms: ``mechanisms``, and ``compare`` and ``converge`` on a mechanism."""

from __future__ import annotations

import argparse
import difflib
import inspect
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..options import (
    FAILURE,
    INTERRUPTED,
    complain,
    prints_data,
    shown_progress,
    text_block,
    write,
)

if TYPE_CHECKING:
    from .compare import Comparison
    from .mechanism import Mechanism

__all__ = ["add_mechanisms", "compare_mechanism", "is_mechanism", "named_mechanism"]

MODEL_FILES = (".toml", ".json", ".urdf", ".xacro", ".sdf", ".xml")

FORMULATIONS_HELP = """
formulations of mechanisms with loops:
  none, baumgarte, projected, ggl, …    `featherstep mechanisms --formulations` lists them
  baumgarte:T_stab=0.01                 with an option
  ode                                   the only one of mechanisms without loops
A name that is both, such as andrews, is the mechanism if --formulations is given, else the problem.
"""


def is_mechanism(name: str, formulated: bool = False) -> bool:
    """Whether a name is that of a mechanism or of a model file, and not that of a problem.

    Parameters
    ----------
    name
        As typed.
    formulated
        Whether formulations were asked for. Some mechanisms are problems, too: then it is the
        mechanism that is meant.

    Examples
    --------
    >>> is_mechanism("four_bar"), is_mechanism("arm.toml"), is_mechanism("kepler")
    (True, True, False)
    >>> is_mechanism("andrews"), is_mechanism("andrews", formulated=True)
    (False, True)
    """
    from integrators import problems
    from multibody import mechanisms

    if Path(name).suffix.lower() in MODEL_FILES:
        return True
    built = {_fold(known): known for known in mechanisms.names()}
    if formulated and _fold(name) in built:
        return True
    try:
        problems.entry(name)
    except ValueError:
        if _fold(name) in built:
            return True
        known = built | {_fold(problem): problem for problem in problems.names()}
        near = difflib.get_close_matches(_fold(name), known, n=2)
        if not near:
            raise
        raise ValueError(
            f"unknown problem or mechanism {name!r}; did you mean "
            f"{' or '.join(known[key] for key in near)}?"
        ) from None
    return False


def _fold(name: str) -> str:
    return "".join(c for c in name.casefold() if c not in "-_ ")


def named_mechanism(arguments: argparse.Namespace, name: str) -> Mechanism:
    """Find a mechanism, and check the names of parameters before they are used."""
    from multibody import mechanisms

    from .mechanism import find_mechanism

    given = dict(arguments.param or ())
    if Path(name).suffix.lower() in MODEL_FILES:
        if given:
            raise ValueError("--param is for mechanisms of the catalogue; edit the model file")
        page = getattr(arguments, "out", None) or ""
        return find_mechanism(name, meshes=page.lower().endswith(".html"))
    entry = mechanisms.entry(name)
    known = list(inspect.signature(entry.build).parameters)
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise ValueError(
                f"mechanism {entry.name!r} has no parameter {key!r}{hint}; it has "
                f"{', '.join(known) or 'none'}"
            )
    return find_mechanism(entry, given)


def converge_mechanism(
    arguments: argparse.Namespace, usual: list[str]
) -> tuple[Any, list[Any], Any, str] | None:
    """Problem, methods, measure, description for ``featherstep converge``; None of a problem."""
    from ..equations import is_equation

    stepped = "MoreauJean" in (arguments.methods or ())  # some mechanisms are problems, too
    if is_equation(arguments.problem) or not is_mechanism(arguments.problem, stepped):
        return None
    from .convergence import for_convergence

    what = named_mechanism(arguments, arguments.problem)
    ivp, methods, measure = for_convergence(what, arguments.t_end, arguments.methods or usual)
    return ivp, methods, arguments.measure or measure, what.description


# -------------------------------------------------------------------- compare


def compare_mechanism(arguments: argparse.Namespace) -> int:
    """Compare methods and formulations on a mechanism."""
    from .compare import compare

    if arguments.traced:
        raise ValueError("--traced is for problems; mechanisms are traced without being asked")
    what = named_mechanism(arguments, arguments.problem)
    with shown_progress(f"comparing on {what.model.name}") as report:
        result = compare(
            what,
            arguments.methods,
            arguments.formulations,
            tolerances=arguments.rtol,
            atol=arguments.atol,
            steps=arguments.step,
            t_end=arguments.t_end,
            measure=arguments.measure,
            repeat=arguments.repeat,
            max_steps=arguments.max_steps,
            report=report,
        )
    if not prints_data(arguments):
        _show(result, what)
    write(arguments.csv, result.to_csv)
    write(arguments.json, result.to_json)
    write(arguments.markdown, result.to_markdown)
    if result.rows:
        _pictures(arguments, result, what)
    if arguments.debug:
        for row in result.failures:
            if row.run.exception is not None:
                traceback.print_exception(row.run.exception)
    if result.interrupted:
        return complain("interrupted; the table above is what was done by then", INTERRUPTED, False)
    return 0 if any(row.ok for row in result.rows) else FAILURE


def _show(result: Comparison, what: Mechanism) -> None:
    from ..terminal import Screen

    screen = Screen()
    model = result.model
    screen.say(f"{model.name}: {what.description}" if what.description else model.name, "bold")
    screen.say(_about(result))
    screen.say()
    rows = result.table
    text = [column.heading for column in rows.columns if column.text]
    if result.rows:
        screen.table(
            rows.headings,
            rows.cells,
            left=text,
            folded={"verdict": 16, "formulation": 12},
            spare=("σ ratio", "max |λ|", "gap rate", "steps", "f-evals", "gap", "time", "ΔE/E"),
            styles=[None if row.trusted else "yellow" if row.ok else "red" for row in result.rows],
            groups=[row.formulation for row in result.rows],
        )
    screen.say()
    screen.paragraph(result.error_measure())
    for line in result.complaints():
        screen.paragraph(line, "red")
    for line in result.notes():
        screen.paragraph(line, "yellow")


def _about(result: Comparison) -> str:
    model = result.model
    loops = f", {len(model.loops)} loop{'s' if len(model.loops) > 1 else ''}" if model.loops else ""
    return f"{model.n_bodies} bodies, nv = {model.nv}{loops}, t from 0 to {result.t_span[1]:.6g}"


def _pictures(arguments: argparse.Namespace, result: Comparison, what: Mechanism) -> None:
    if arguments.plot is None and arguments.html is None:
        return
    from ..problem_study.figure import save
    from ..report import html_page, inline_svg, listed
    from .figure import mechanism_figure

    figure = mechanism_figure(result)
    if arguments.plot is not None:
        save(figure, arguments.plot)
        sys.stderr.write(f"wrote {arguments.plot}\n")

    def page() -> str:
        sections = [f"<figure>{inline_svg(figure)}</figure>", "<h2>All runs</h2>"]
        sections.append(result.table.to_html())
        remarks = result.complaints() + result.notes()
        if remarks:
            sections.append(listed(remarks))
        lead = [what.description, _about(result), what.source]
        return html_page(f"Formulations of {result.model.name}", lead, sections)

    write(arguments.html, page)


# -------------------------------------------------------------------- mechanisms


def _list_formulations(arguments: argparse.Namespace) -> int:
    """The table of formulations, as it is registered."""
    from integrators.dae.formulations.table import FORMULATIONS, listing

    from ..listing import as_data

    records = [
        {
            "name": form.name,
            "aliases": ", ".join(form.aliases),
            "index": form.index,
            "state": form.unknowns,
            "solved for": form.eliminates,
            "for": ", ".join(form.methods),
            "constraints": form.meaning,
        }
        for form in FORMULATIONS.values()
    ]
    if not as_data(records, arguments):
        sys.stdout.write(listing() + "\n")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from multibody import mechanisms

    from ..listing import as_data, contains
    from ..terminal import Screen

    screen = Screen()
    if arguments.show is not None:
        return _show_one(arguments)
    if arguments.formulations:
        return _list_formulations(arguments)
    chosen = []
    for entry in mechanisms.entries():
        model = entry.model()
        if arguments.kind is not None and (arguments.kind == "loops") != bool(model.bonds):
            continue
        words = " ".join([entry.name, entry.description, entry.source])
        if arguments.search is None or contains(words, arguments.search):
            chosen.append(_record(entry, model))
    if as_data(chosen, arguments):
        return 0
    if not chosen:
        raise ValueError("no mechanism fits these filters; leave one out")
    headings = ("name", "bodies", "nv", "loops", "t_end", "description")
    rows = [[str(record[key]) for key in headings] for record in chosen]
    screen.table(
        headings,
        rows,
        left=("name", "description"),
        folded={"description": 20},
        spare=("t_end", "nv"),
    )
    screen.say()
    screen.paragraph(
        f"{len(chosen)} mechanisms. More about one: featherstep mechanisms --show NAME"
    )
    return 0


def _record(entry: Any, model: Any) -> dict[str, Any]:
    signature = inspect.signature(entry.build).parameters
    values = {name: entry.settings.get(name, p.default) for name, p in signature.items()}
    return {
        "name": entry.name,
        "bodies": model.n_bodies,
        "nv": model.nv,
        "loops": len(model.loops),
        "t_end": f"{entry.t_end:g}",
        "description": entry.description,
        "parameters": " ".join(f"{name}={value}" for name, value in values.items()),
        "source": entry.source,
    }


def _show_one(arguments: argparse.Namespace) -> int:
    from multibody import mechanisms, mobility

    from ..listing import as_data
    from ..terminal import Screen

    entry = mechanisms.entry(arguments.show)
    model = entry.model()
    record = _record(entry, model)
    if as_data([record], arguments):
        return 0
    q0, v0 = entry.start(model)
    screen = Screen()
    screen.say(f"{entry.name}: {entry.description}", "bold")
    screen.say()
    screen.say(str(model))
    screen.say()
    facts = [
        ("start", ", ".join(f"{name} = {x:.6g}" for name, x in zip(model.q_names, q0))),
        ("velocity", ", ".join(f"{x:.6g}" for x in v0)),
        ("interval", f"0 to {entry.t_end:g} s"),
        ("parameters", record["parameters"].replace(" ", ", ") or "none"),
        ("source", entry.source or "–"),
    ]
    if model.bonds:
        facts.insert(2, ("loops", " ".join(str(mobility(model, q0)).split())))
    for name, value in facts:
        screen.say(f"{name:<13} {value}")
    screen.say()
    screen.say(f"Try it: featherstep simulate {entry.name} --out {entry.name}.html")
    screen.say(f"        featherstep compare {entry.name}")
    return 0


def add_mechanisms(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command ``mechanisms``."""
    parser = commands.add_parser(
        "mechanisms",
        parents=[shared],
        help="list the mechanisms",
        description="List the mechanisms of the catalogue, or show one with its tree of bodies.",
        epilog=text_block("""
            examples:
              featherstep mechanisms
              featherstep mechanisms --kind loops
              featherstep mechanisms --search pendulum
              featherstep mechanisms --show four_bar
              featherstep mechanisms --formulations
        """),
    )
    parser.add_argument("--kind", choices=["trees", "loops"], type=str.lower, help="trees or loops")
    parser.add_argument("--show", metavar="NAME", help="tree, start, parameters, source")
    parser.add_argument("--search", metavar="TEXT", help="words in names, titles and sources")
    parser.add_argument(
        "--formulations", action="store_true", help="list the formulations of closed loops instead"
    )
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    parser.add_argument("--csv", action="store_true", help="print CSV in place of a table")
    parser.set_defaults(run=_list, debug=False)
