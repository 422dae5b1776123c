"""The commands on mechanisms: ``mechanisms``, ``simulate``, and ``compare`` on a mechanism."""

from __future__ import annotations

import argparse
import csv
import difflib
import inspect
import io
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..options import (
    FAILURE,
    INTERRUPTED,
    PICTURES,
    complain,
    parameter,
    prints_data,
    shown_progress,
    text_block,
    write,
)

if TYPE_CHECKING:
    from .compare import Comparison, Mechanism

__all__ = ["add_mechanisms", "add_simulate", "compare_mechanism", "is_mechanism"]

MODEL_FILES = (".toml", ".json", ".urdf", ".xacro", ".sdf", ".xml")
MOVIES = (".html", ".gif", ".mp4")
STABILISERS = ("T_stab", "alpha", "beta", "rank")

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


def _mechanism(arguments: argparse.Namespace, name: str) -> Mechanism:
    """Find a mechanism, and check the names of parameters before they are used."""
    from multibody import mechanisms

    from .compare import find_mechanism

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

    what = _mechanism(arguments, arguments.problem)
    ivp, methods, measure = for_convergence(what, arguments.t_end, arguments.methods or usual)
    return ivp, methods, arguments.measure or measure, what.description


# -------------------------------------------------------------------- compare


def compare_mechanism(arguments: argparse.Namespace) -> int:
    """Compare methods and formulations on a mechanism."""
    from .compare import compare

    if arguments.traced:
        raise ValueError("--traced is for problems; mechanisms are traced without being asked")
    what = _mechanism(arguments, arguments.problem)
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


# -------------------------------------------------------------------- simulate


def _simulate(arguments: argparse.Namespace) -> int:
    _check_outputs(arguments)
    from integrators.analysis.study.runs import resolve
    from multibody import file_events, simulate
    from multibody.pictures import animate
    from multibody.runs.observing.observe import observe
    from multibody.runs.observing.states import states_of

    from .compare import formulation_options

    what = _mechanism(arguments, arguments.mechanism)
    record = dict(map(_recorded, arguments.record or ()))
    if arguments.q0 is not None or arguments.v0 is not None:
        from .compare import started

        q, v = (_typed(what.model, key, getattr(arguments, f"{key}0")) for key in "qv")
        what = started(what, q, v)
    model, t_end = what.model, what.t_end if arguments.t_end is None else arguments.t_end
    if not t_end > 0.0:
        raise ValueError(f"--t-end must be positive, got {t_end:g}")
    if arguments.method == "MoreauJean":  # known to models with contacts only
        label = method = arguments.method
    else:
        label, method = resolve(arguments.method)
    options: dict[str, Any] = {"rtol": arguments.rtol, "atol": 1e-2 * arguments.rtol}
    if arguments.step is not None:
        options["step"] = arguments.step
    if arguments.stabilise is not None:
        name, more = formulation_options(arguments.stabilise)
        for key in more:
            if key not in STABILISERS:
                raise ValueError(
                    f"--stabilise takes the options {', '.join(STABILISERS)}, as in "
                    f"baumgarte:T_stab=0.01; got {key!r}"
                )
        options |= {"stabilise": name, **more}
    if what.events:
        options["events"] = file_events(model, what.events, what.tau)

    def run(method: Any, record: Any = None) -> Any:
        return simulate(
            model, what.q0, what.v0, t_end, tau=what.tau, method=method, fps=arguments.fps,
            on_interrupt="return", record=record, **options,
        )  # fmt: skip

    solution = run(method, record or None)
    states = states_of(model, solution)[1]
    q, v = states[: model.nq], states[model.nq :]
    seen = observe(model, solution.t, q, v, what.tau)
    if arguments.csv != "-":
        from ..terminal import Screen

        screen = Screen()
        screen.say(f"{model.name}: {what.description}" if what.description else model.name, "bold")
        for line in _summary(solution, seen, label, model):
            screen.say(line)
        for event, times in zip(what.events, solution.t_events):
            listed = ", ".join(f"{t:.6g}" for t in times[:8]) + (", …" if len(times) > 8 else "")
            screen.say(f"{event.name}: {f't = {listed}' if listed else 'never'}")
    write(arguments.csv, lambda: _states_csv(model, solution))
    if arguments.plot is not None:
        from ..problem_study.figure import save
        from .figure import simulation_figure

        save(simulation_figure(model, solution), arguments.plot)
        sys.stderr.write(f"wrote {arguments.plot}\n")
    if arguments.out is not None:
        shown = {label: solution} | {
            other: run(method) for other, method in map(resolve, arguments.against or ())
        }
        animate.save(
            model, shown, arguments.out, fps=min(arguments.fps, 30.0), reactions=arguments.reactions
        )
        sys.stderr.write(f"wrote {arguments.out}\n")
    if not solution.success:
        code = INTERRUPTED if solution.status.name == "INTERRUPTED" else FAILURE
        return complain(f"{label}: {solution.message}", code, False)
    return 0


def _summary(solution: Any, seen: Any, label: str, model: Any) -> list[str]:
    lines = [
        f"{label} to t = {solution.t[-1]:g}: {solution.nsteps:,} steps, "
        f"{solution.nfev:,} evaluations"
    ]
    if seen.energy is not None:
        lines.append(f"energy changed by {seen.energy:.1e} of what moves")
    if seen.gap is not None:
        lines.append(f"loops opened by at most {seen.gap:.1e}, at {seen.speed:.1e} a second")
    if seen.passages:
        times = ", ".join(f"{t:.3g}" for t in seen.passages)
        lines.append(f"passed singular positions at t = {times}: the branch taken is not certain")
    ends = ", ".join(f"{name} = {x:.8g}" for name, x in zip(model.q_names, solution.y[:, -1]))
    return [*lines, f"at the end {ends}"]


def _states_csv(model: Any, solution: Any) -> str:
    from multibody.runs.observing.states import states_of

    columns = dict(zip((*model.q_names, *model.v_names), states_of(model, solution)[1]))
    for name, values in (solution.recorded or {}).items():
        if values.ndim == 1:
            columns[name] = values
            continue
        parts = "x y z" if len(values) == 3 else "mx my mz fx fy fz"
        columns |= {f"{name}.{part}": row for part, row in zip(parts.split(), values)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["t", *columns])
    writer.writerows(
        [float(t), *map(float, row)] for t, row in zip(solution.t, zip(*columns.values()))
    )
    return text.getvalue()


def _typed(model: Any, kind: str, text: str | None) -> Any:
    """Positions or velocities as typed: numbers, or names with numbers, between commas."""
    from multibody.io import named_values

    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if not any("=" in part for part in parts):
            return named_values(model, kind, [float(part) for part in parts])
        pairs = [part.partition("=") for part in parts]
        return named_values(model, kind, {name.strip(): float(x) for name, _, x in pairs})
    except ValueError as error:
        raise ValueError(f"--{kind}0 {text}: {error}") from None


def _recorded(text: str) -> tuple[str, Any]:
    """What is recorded as typed: NAME=KIND:ARGUMENT:…, or NAME=STATE, or a state alone."""
    from multibody.runs.observing.recorded import quantity_of

    name, equals, what = text.partition("=")
    kind, *given = (what if equals else name).split(":")
    if not given:
        return name, kind
    try:
        return name, quantity_of({kind: [_number(x) for x in given]})
    except (TypeError, ValueError) as error:
        raise ValueError(f"--record {text}: {error}") from None


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _check_outputs(arguments: argparse.Namespace) -> None:
    if arguments.out is not None and Path(arguments.out).suffix.lower() not in MOVIES:
        raise ValueError(f"--out needs a name ending in {', '.join(MOVIES)}, got {arguments.out}")
    page = arguments.out is not None and Path(arguments.out).suffix.lower() == ".html"
    if (arguments.against or arguments.reactions) and not page:
        raise ValueError("--against and --reactions are shown in a page; add --out NAME.html")
    if arguments.plot is not None and Path(arguments.plot).suffix.lower() not in PICTURES:
        raise ValueError(
            f"--plot needs a name ending in {', '.join(PICTURES)}, got {arguments.plot}"
        )
    for name in (arguments.out, arguments.plot, arguments.csv):
        if name not in (None, "-") and not Path(name).absolute().parent.is_dir():
            raise ValueError(f"cannot write {name}: there is no folder {Path(name).parent}")


def add_simulate(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command ``simulate``."""
    parser = commands.add_parser(
        "simulate",
        parents=[shared],
        help="let a mechanism move; write an animation, a picture or a table",
        description=text_block("""
            Simulate a mechanism of the catalogue, or one in a model file, from its start; say what
            became of its energy and its loops; write an animation, curves, or all states.
        """),
        epilog=text_block("""
            examples:
              featherstep simulate double_pendulum --out double.html
              featherstep simulate pendulum --method RK4 --step 0.1 --against Euler --out both.html
              featherstep simulate four_bar --t-end 3 --out four_bar.gif
              featherstep simulate bricard --method RADAU5 --rtol 1e-10
              featherstep simulate four_bar --stabilise baumgarte:T_stab=0.01 --plot curves.png
              featherstep simulate n_pendulum --param n=5 --csv -
              featherstep simulate arm.toml --step 0.001 --method RK4
              featherstep simulate arm.toml --q0 arm=0.3 --record tip=point:arm:0:0:-1 --csv -
        """),
    )
    parser.add_argument(
        "mechanism", metavar="MECHANISM", help="a name, see `featherstep mechanisms`, or a file"
    )
    parser.add_argument("--t-end", metavar="T", type=float, help="until when, in seconds")
    parser.add_argument(
        "--q0", metavar="Q", help="start: numbers, or names with numbers: arm=0.3,cart=1"
    )
    parser.add_argument("--v0", metavar="V", help="velocities at the start, likewise")
    parser.add_argument(
        "--record", metavar="NAME=WHAT", action="append",
        help="a quantity for --csv: tip=point:arm:0:0:-1, pin=reaction:arm:force, "
        "u=output:motor:torque, E=energy:total; may be repeated",
    )  # fmt: skip
    parser.add_argument("--method", metavar="M", default="DOP853", help="default DOP853")
    parser.add_argument(
        "--rtol", metavar="R", type=float, default=1e-8, help="relative tolerance (default 1e-8)"
    )
    parser.add_argument("--step", metavar="H", type=float, help="a fixed step, in its place")
    parser.add_argument(
        "--param", metavar="NAME=VALUE", type=parameter, action="append",
        help="a parameter of the mechanism, such as n=3; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--fps", metavar="N", type=float, default=60.0, help="states a second (default 60)"
    )
    parser.add_argument(
        "--stabilise", metavar="S",
        help="how loops are kept closed: a formulation for explicit methods, baumgarte:T_stab=0.01",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="FILE", help="an animation: .html (in three dimensions), .gif or .mp4"
    )
    parser.add_argument(
        "--against", metavar="M", action="append",
        help="another method, whose run is shown as a ghost in the page; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--reactions", action="store_true", help="show the forces in all joints in the page"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="positions, velocities and energy (.png, .pdf, .svg)"
    )
    parser.add_argument("--csv", metavar="FILE", help="all states; - for standard output")
    parser.set_defaults(run=_simulate, debug=False)
