"""The commands ``featherstep methods`` and ``featherstep problems``: what there is."""

from __future__ import annotations

import argparse
import csv
import inspect
import io
import json
import sys
from collections.abc import Sequence
from typing import Any

from integrators import Tableau, catalogue, problems
from integrators.catalogue import Entry
from integrators.docstrings import documentation
from integrators.problems import Entry as Problem
from integrators.tableau import MAX_ORDER
from integrators.tableau.extension import HIGHEST_EXPLICIT
from integrators.tableau.implicit_extension import implicit_order

from .citations import authors_and_year, citation
from .terminal import Screen

__all__ = ["as_data", "contains", "list_methods", "list_problems"]

TEXT = ("name", "class", "stability", "kind", "character", "reference", "description")
"""Columns that are not numbers."""

KINDS = {
    "explicit": ("explicit",),
    "implicit": ("implicit", "SDIRK", "ESDIRK", "DIRK", "fully implicit"),
    "dirk": ("implicit", "SDIRK", "ESDIRK", "DIRK"),
    "sdirk": ("SDIRK",),
    "esdirk": ("ESDIRK",),
    "fully-implicit": ("fully implicit",),
    "rosenbrock": ("Rosenbrock",),
    "splitting": ("splitting",),
    "nystrom": ("Nyström",),
    "partitioned": ("partitioned",),
    "imex": ("IMEX",),
}


# -------------------------------------------------------------------- methods


def list_methods(arguments: argparse.Namespace) -> int:
    """Print the catalogue, or one scheme of it."""
    if arguments.show is not None:
        return _show_method(catalogue.entry(arguments.show), arguments)
    if arguments.latex:
        raise ValueError("--latex needs a scheme: --show NAME --latex")
    chosen = [e for e in catalogue.entries("all") if _wanted(e, arguments)]
    records = [_scheme_record(e) for e in chosen]
    if as_data(records, arguments):
        return 0
    screen = Screen()
    if not chosen:
        raise ValueError("no scheme fits these filters; leave one out")
    headings = ("name", "stages", "order", "embedded", "class", "stability", "reference")
    rows = [
        [
            e.name,
            str(e.stages),
            str(e.order),
            "" if e.embedded_order is None else str(e.embedded_order),
            e.kind,
            e.stability,
            authors_and_year(e.reference),
        ]
        for e in chosen
    ]
    screen.table(
        headings,
        rows,
        left=TEXT,
        folded={"class": 8, "stability": 12, "reference": 16},
        spare=("reference", "class", "embedded"),
    )
    screen.say()
    screen.paragraph(
        f"{len(chosen)} schemes. Gauss, Radau and Lobatto come with any number of stages "
        "(Gauss7). More about one: featherstep methods --show NAME"
    )
    return 0


def _wanted(e: Entry, arguments: argparse.Namespace) -> bool:
    properties = {word.strip() for word in e.stability.split(",")}
    if "L" in properties:
        properties.add("A")
    return (
        (arguments.kind is None or e.kind in KINDS[arguments.kind])
        and (arguments.order is None or e.order == arguments.order)
        and (arguments.min_order is None or e.order >= arguments.min_order)
        and (not arguments.embedded or e.embedded_order is not None)
        and (arguments.stability is None or arguments.stability in properties)
        and (arguments.search is None or contains(_scheme_text(e), arguments.search))
    )


def _scheme_text(e: Entry) -> str:
    return " ".join([e.name, e.title, e.family, *e.aliases, e.reference, citation(e.reference)])


def _scheme_record(e: Entry) -> dict[str, Any]:
    return {
        "name": e.name,
        "title": e.title,
        "stages": e.stages,
        "order": e.order,
        "embedded_order": e.embedded_order,
        "class": e.kind,
        "stability": "" if e.stability == "–" else e.stability,
        "reference": e.reference,
        "aliases": " ".join(e.aliases),
    }


def _show_method(e: Entry, arguments: argparse.Namespace) -> int:
    """One scheme: what it is called, its coefficients, and what an analysis finds."""
    if arguments.latex:
        sys.stdout.write(e.tableau.to_latex() + "\n")
        return 0
    tableau = e.method if isinstance(e.method, Tableau) else None
    if arguments.json:
        data = _scheme_record(e) | ({} if tableau is None else {"tableau": tableau.to_dict()})
        sys.stdout.write(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        return 0
    if arguments.csv:
        raise ValueError("one scheme is printed as text, --latex or --json, not as --csv")
    screen = Screen()
    screen.say(f"{e.name}: {e.title}", "bold")
    screen.say(citation(e.reference))
    if e.aliases:
        screen.say(f"also called {', '.join(e.aliases)}")
    screen.say()
    if tableau is None:
        from integrators import analysis

        screen.say(str(analysis.report(e.method)))
        return 0
    screen.say(str(tableau))
    screen.say()
    for name, value in _properties(e, tableau):
        screen.say(f"{name:<13} {value}")
    screen.say()
    _show_order_conditions(screen, tableau)
    return 0


def _properties(e: Entry, tableau: Tableau) -> list[tuple[str, str]]:
    flags = {
        "first same as last": tableau.fsal,
        "stiffly accurate": tableau.is_stiffly_accurate,
        "confluent nodes": tableau.is_confluent,
    }
    embedded = tableau.embedded_order
    error = (
        "step doubling or, for collocation methods, a quadrature formula"
        if embedded is None
        else f"embedded method of order {embedded}"
    )
    order = min(tableau.order, HIGHEST_EXPLICIT)
    dense = f"of order {order if tableau.is_explicit else implicit_order(tableau)}"
    _, stage_order, _ = tableau.simplifying_assumptions()
    return [
        ("class", ", ".join([tableau.kind, *(text for text, holds in flags.items() if holds)])),
        ("order", f"{tableau.order}, stage order {stage_order}"),
        ("error", error),
        ("dense output", dense),
        ("stability", e.stability),
        ("coefficients", "exact fractions" if tableau.is_exact else "to many digits"),
    ]


def _show_order_conditions(screen: Screen, tableau: Tableau) -> None:
    """For each order: how many conditions there are and how many hold."""
    highest = min(max(tableau.order, tableau.embedded_order or 0) + 1, MAX_ORDER)
    rows = []
    for p in range(1, highest + 1):
        conditions = tableau.order_conditions(p)
        largest = max(abs(float(c.residual)) for c in conditions)
        row = [str(p), str(len(conditions)), str(sum(c.holds for c in conditions))]
        row.append(f"{largest:.1e}" if largest else "0")
        if tableau.b_hat is not None:
            embedded = tableau.order_conditions(p, tableau.b_hat)
            row.append(str(sum(c.holds for c in embedded)))
        rows.append(row)
    headings = ["order", "trees", "conditions that hold", "largest residual"]
    if tableau.b_hat is not None:
        headings.append("that hold, embedded")
    screen.table(headings, rows, left=())


# -------------------------------------------------------------------- problems


def list_problems(arguments: argparse.Namespace) -> int:
    """Print the reference problems, or one of them."""
    if arguments.show is not None:
        return _show_problem(problems.entry(arguments.show), arguments)
    chosen = [
        e
        for e in problems.entries()
        if (not arguments.stiff or e.stiff)
        and (arguments.kind is None or e.kind.lower().startswith(arguments.kind))
        and (arguments.search is None or contains(_problem_text(e), arguments.search))
    ]
    if as_data([_problem_record(e) for e in chosen], arguments):
        return 0
    if not chosen:
        raise ValueError("no problem fits these filters; leave one out")
    screen = Screen()
    headings = ("name", "n", "kind", "character", "reference", "description")
    rows = [
        [e.name, str(e.dimension), e.kind, _character(e), e.reference, e.description]
        for e in chosen
    ]
    screen.table(
        headings,
        rows,
        left=TEXT,
        folded={"kind": 8, "description": 24},
        spare=("reference", "kind", "character"),
    )
    screen.say()
    screen.paragraph(f"{len(chosen)} problems. More about one: featherstep problems --show NAME")
    return 0


def _character(e: Problem) -> str:
    return ", ".join(word for word in ("stiff", "chaotic") if getattr(e, word))


def _problem_text(e: Problem) -> str:
    return " ".join([e.name, *e.aliases, e.description, e.source])


def _problem_record(e: Problem) -> dict[str, Any]:
    problem = e.problem()
    return {
        "name": e.name,
        "dimension": e.dimension,
        "kind": e.kind,
        "stiff": e.stiff,
        "chaotic": e.chaotic,
        "reference": e.reference,
        "t0": problem.t_span[0],
        "t1": problem.t_span[1],
        "parameters": " ".join(f"{name}={value}" for name, value in _parameters(e)),
        "description": e.description,
        "source": e.source,
        "aliases": " ".join(e.aliases),
    }


def _parameters(e: Problem) -> list[tuple[str, Any]]:
    signature = inspect.signature(e.build)
    return [(p.name, e.settings.get(p.name, p.default)) for p in signature.parameters.values()]


def _show_problem(e: Problem, arguments: argparse.Namespace) -> int:
    if as_data([_problem_record(e)], arguments):
        return 0
    problem = e.problem()
    t0, t1 = problem.t_span
    screen = Screen()
    screen.say(f"{e.name}: {e.description}", "bold")
    details = _details(e)
    if details:
        screen.say(details)
    screen.say()
    start = ", ".join(f"{x:.6g}" for x in problem.y0[:8]) + (", …" if problem.n > 8 else "")
    facts = [
        ("kind", e.kind + (f", {_character(e)}" if _character(e) else "")),
        ("dimension", str(problem.n)),
        ("interval", f"{t0:g} to {t1:.17g}"),
        ("start", start),
        ("parameters", ", ".join(f"{name} = {value}" for name, value in _parameters(e)) or "none"),
        ("reference", e.reference),
        ("invariants", ", ".join(problem.invariants) or "none given"),
        ("events", str(len(problem.events)) if problem.events else "none"),
        ("source", e.source),
        ("also called", ", ".join(e.aliases) or "–"),
    ]
    for name, value in facts:
        screen.say(f"{name:<13} {value}")
    screen.say()
    screen.say(f"Try it: featherstep compare {e.name}")
    return 0


def _details(e: Problem) -> str:
    """Return the rest of the docstring, up to its examples."""
    text = documentation(e.build)
    body = text.partition("\n")[2].partition("Examples\n")[0]
    return body.replace("Notes\n-----\n", "").strip()


# -------------------------------------------------------------------- both


def contains(text: str, wanted: str) -> bool:
    """Whether all wanted words are in a text."""
    return all(word in text.casefold() for word in wanted.casefold().split())


def as_data(records: Sequence[dict[str, Any]], arguments: argparse.Namespace) -> bool:
    """Print JSON or CSV if that was asked for."""
    if arguments.json:
        sys.stdout.write(json.dumps(records, indent=1, ensure_ascii=False, default=str) + "\n")
    elif arguments.csv and records:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        sys.stdout.write(text.getvalue())
    return bool(arguments.json or arguments.csv)
