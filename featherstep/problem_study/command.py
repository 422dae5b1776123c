"""The commands ``featherstep converge`` and ``featherstep workprecision``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..options import (
    FAILURE,
    INTERRUPTED,
    MEASURES_HELP,
    METHODS_HELP,
    add_problem_options,
    add_timing_options,
    check_files,
    complain,
    numbers,
    prints_data,
    shown_progress,
    text_block,
    write,
)

if TYPE_CHECKING:
    from integrators import IVP

__all__ = ["add_converge", "add_workprecision", "problem_of"]

CONVERGE_PROBLEM, WORK_PROBLEM = "order_trigonometric", "arenstorf"
CONVERGE_METHODS = ["ExplicitEuler", "Heun", "Kutta3", "RK4"]
CONVERGE_STIFF = ["ImplicitEuler", "SDIRK4", "RadauIIA3", "Gauss2"]


def problem_of(arguments: argparse.Namespace) -> tuple[IVP, bool, str]:
    """Return the problem, whether it is stiff, and what it is about."""
    from integrators import problems

    from ..equations import is_equation
    from .compare import named_problem, with_machine_code

    name, description = arguments.problem, ""
    if not is_equation(name):
        entry = problems.entry(name)
        name, description = entry.name, entry.description
    parameters = dict(arguments.param or ())
    ivp, stiff = named_problem(name, parameters, arguments.t_end, arguments.y0)
    return (with_machine_code(ivp) if arguments.traced else ivp), stiff, description


# -------------------------------------------------------------------- convergence


def _converge(arguments: argparse.Namespace) -> int:
    check_files(arguments)
    from integrators.analysis import convergence
    from integrators.analysis.study.work_precision import positive_numbers

    from ..terminal import Screen, show_convergence

    measure, methods, stiff = arguments.measure, arguments.methods, False
    found = arguments.of_mechanism(arguments, CONVERGE_METHODS)
    if found is not None:
        ivp, methods, measure, description = found
    else:
        ivp, stiff, description = problem_of(arguments)
    steps = arguments.steps
    if arguments.intervals is not None:
        length = abs(ivp.t_span[1] - ivp.t_span[0])
        steps = [length / n for n in positive_numbers("--intervals", arguments.intervals)]
    implicit = stiff or ivp.mass is not None
    methods = methods or (CONVERGE_STIFF if implicit else CONVERGE_METHODS)
    with shown_progress(f"convergence on {ivp.name}") as report:
        study = convergence(
            ivp,
            methods,
            steps,
            measure=measure,
            order=arguments.order,
            stiff=stiff,
            report=report,
        )
    if not prints_data(arguments):
        show_convergence(Screen(), study, description, every_run=arguments.all)
    _write_tables(arguments, study)
    if study.curves:
        _write_pictures(arguments, study, f"Convergence on {ivp.name}", description)
    if study.interrupted:
        return complain("interrupted; what is shown was done by then", INTERRUPTED, False)
    return 0 if study.ok else FAILURE


def add_converge(
    commands: Any, shared: argparse.ArgumentParser, of_mechanism: Callable[..., Any]
) -> None:
    """Add the command ``converge``; what it needs of a mechanism, `of_mechanism` finds."""
    parser = commands.add_parser(
        "converge",
        parents=[shared],
        help="run methods with several step sizes; which order do their errors show?",
        description=text_block("""
            Run methods with fixed steps of several sizes, and find the order that the errors
            show, with a confidence interval. Steps that are too long, and errors that are
            round-off, are set aside. If the order is lower than it should be, the likely cause
            is named.
        """),
        epilog=text_block("""
            examples:
              featherstep converge
                  four methods of order 1 to 4 on a nonlinear problem
              featherstep converge kepler --methods RK4,Gauss2,DOP853 --measure energy
                  how fast does the energy error vanish?
              featherstep converge minus_2ty2 --methods mine.toml --order 4
                  is this tableau what it should be?
              featherstep converge prothero_robinson --methods SDIRK4,RadauIIA3,Gauss2
                  order reduction on a stiff problem
              featherstep converge bouncing_ball --methods RK4,MoreauJean
                  through impacts: order 4 with instants located, 1 without
              featherstep converge logistic --steps 0.4,0.2,0.1,0.05 --html report.html
                  a report to open in a browser
        """)
        + "\n"
        + METHODS_HELP
        + MEASURES_HELP
        + "\nThe exit code is 0 if every method has its order, 1 if not, 2 for wrong usage.",
    )
    add_problem_options(parser, CONVERGE_PROBLEM)
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--steps", metavar="H,…", type=numbers, help="step sizes, three at least (default: chosen)"
    )
    size.add_argument(
        "--intervals", metavar="N,…", type=numbers, help="the same as numbers of steps"
    )
    parser.add_argument("--order", metavar="P", type=int, help="the order that is expected")
    _add_measure(parser)
    parser.add_argument("--all", action="store_true", help="print every run, not only the orders")
    _add_outputs(parser)
    parser.set_defaults(run=_converge, debug=False, of_mechanism=of_mechanism)


# -------------------------------------------------------------------- work and precision


def _workprecision(arguments: argparse.Namespace) -> int:
    check_files(arguments)
    from integrators.analysis import work_precision

    from ..terminal import Screen, show_comparison
    from .compare import default_methods

    ivp, stiff, description = problem_of(arguments)
    with shown_progress(f"work and precision on {ivp.name}") as report:
        result = work_precision(
            ivp,
            arguments.methods or default_methods(ivp, stiff),
            arguments.rtol,
            atol=arguments.atol,
            measure=arguments.measure,
            repeat=arguments.repeat,
            max_steps=arguments.max_steps,
            stiff=stiff,
            report=report,
        )
    if not prints_data(arguments):
        show_comparison(Screen(), result, description)
    _write_tables(arguments, result)
    if result.rows:
        _write_pictures(arguments, result, f"Work and precision on {ivp.name}", description)
    if result.interrupted:
        return complain("interrupted; what is shown was done by then", INTERRUPTED, False)
    return 0 if any(row.ok for row in result.rows) else FAILURE


def add_workprecision(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command ``workprecision``."""
    parser = commands.add_parser(
        "workprecision",
        parents=[shared],
        help="solve a problem at many tolerances; what does each digit cost?",
        description=text_block("""
            Solve one problem by several methods at many tolerances, and show the error against
            evaluations of f, against time, and against the tolerance that was asked for.
            Methods that fail are shown with the reason.
        """),
        epilog=text_block("""
            examples:
              featherstep workprecision
                  five explicit methods on Arenstorf's orbit
              featherstep workprecision van_der_pol_1000 --plot stiff.pdf
                  implicit methods on a stiff problem
              featherstep workprecision kepler --methods DOP853,assimulo:CVode --measure energy
                  the drift of an invariant in place of the error
              featherstep workprecision lorenz --rtol 1e-4,1e-6,1e-8,1e-10 --html report.html
                  a report to open in a browser
        """)
        + "\n"
        + METHODS_HELP
        + MEASURES_HELP
        + "\nThe exit code is 0 if any method succeeded, 1 if none did, 2 for wrong usage.",
    )
    add_problem_options(parser, WORK_PROBLEM)
    parser.add_argument(
        "--rtol", metavar="R,…", type=numbers, help="relative tolerances (default 1e-3 to 1e-10)"
    )
    parser.add_argument(
        "--atol",
        metavar="A,…",
        type=numbers,
        help="absolute tolerances: one, or one for each rtol (default rtol/1000)",
    )
    _add_measure(parser)
    add_timing_options(parser)
    _add_outputs(parser)
    parser.set_defaults(run=_workprecision, debug=False)


# -------------------------------------------------------------------- both


def _add_measure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--measure", metavar="M", help="what the error is of: end, max, y0, energy …, see below"
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", metavar="FILE", help="write a picture (.png, .pdf, .svg)")
    parser.add_argument(
        "--style", choices=["paper"], help="of the picture: column width, type of 8 points"
    )
    parser.add_argument("--csv", metavar="FILE", help="write all runs; - for standard output")
    parser.add_argument("--markdown", metavar="FILE", help="the tables in Markdown")
    parser.add_argument("--latex", metavar="FILE", help="the tables in LaTeX")
    parser.add_argument(
        "--html", metavar="FILE", help="a report in one file: figures, tables that can be sorted"
    )


def _write_tables(arguments: argparse.Namespace, study: Any) -> None:
    write(arguments.csv, study.to_csv)
    write(arguments.markdown, study.to_markdown)
    write(arguments.latex, study.to_latex)


def _write_pictures(
    arguments: argparse.Namespace, study: Any, title: str, description: str
) -> None:
    if arguments.plot is None and arguments.html is None:
        return
    from ..report import study_report
    from .figure import save, study_figure

    figure = study_figure(study)
    if arguments.plot is not None:
        save(figure, arguments.plot, arguments.style)
        sys.stderr.write(f"wrote {arguments.plot}\n")
    write(arguments.html, lambda: study_report(study, figure, title, description))
