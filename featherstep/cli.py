"""The command ``featherstep``.

Only argparse is imported here; each command loads what it needs, so that ``--help`` answers at
once. Exit codes: 0 success, 1 failure, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from .invocation import command_line
from .lab.command import add_lab
from .mechanism_study import command as mechanisms
from .mechanism_study.simulation import add_simulate
from .method_figures import add_report, add_stability
from .options import (
    FAILURE,
    INTERRUPTED,
    METHODS_HELP,
    USAGE,
    add_problem_options,
    add_timing_options,
    check_files,
    complain,
    names,
    numbers,
    prints_data,
    shown_progress,
    text_block,
    write,
)
from .problem_study import command as studies
from .study.command import add_study

__all__ = ["main"]


METHOD_KINDS = [
    *("explicit", "implicit", "dirk", "sdirk", "esdirk", "fully-implicit"),
    *("rosenbrock", "splitting", "nystrom", "partitioned", "imex"),
]


def _quoted(word: str) -> str:
    """A word as it is typed; y'' in double quotes is easier to read than in single ones."""
    double = "'" in word and not any(c in word for c in '"$`\\!')
    return f'"{word}"' if double else shlex.quote(word)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv
        Arguments without the program's name; those of the process by default.
    """
    given = sys.argv[1:] if argv is None else list(argv)
    debug = "--debug" in given
    command_line.set(" ".join(map(_quoted, ["featherstep", *given])))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Greek letters gets "?"
            stream.reconfigure(errors="replace")
    try:
        arguments = _parser().parse_args(argv)
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # argparse is done: help, version or wrong usage
        return int(stop.code or 0)
    except BrokenPipeError:
        # The reader, `head` perhaps, has had enough. Keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return complain("interrupted", INTERRUPTED, debug)
    except ValueError as error:
        return complain(str(error), USAGE, debug)
    except Exception as error:  # the last line of defence: a line instead of a traceback
        text = str(error) or "no message"
        return complain(f"{type(error).__name__}: {text} (--debug shows where)", FAILURE, debug)


# -------------------------------------------------------------------- the commands


def _methods(arguments: argparse.Namespace) -> int:
    from .listing import list_methods

    return list_methods(arguments)


def _problems(arguments: argparse.Namespace) -> int:
    from .listing import list_problems

    return list_problems(arguments)


def _warmup(arguments: argparse.Namespace) -> int:
    from .warmup import warm_up

    return warm_up(arguments)


def _model(arguments: argparse.Namespace) -> int:
    from .model_file import show_model

    return show_model(arguments)


def _compare(arguments: argparse.Namespace) -> int:
    check_files(arguments)
    if arguments.atol is not None and arguments.step is not None:
        raise ValueError("--atol goes with --rtol; a fixed --step has no tolerances")
    if arguments.roads is not None:
        from .problem_study.roads import compare_on_roads

        return compare_on_roads(arguments)
    from .equations import is_equation

    formulated = arguments.formulations is not None
    if not is_equation(arguments.problem) and mechanisms.is_mechanism(
        arguments.problem, formulated
    ):
        return mechanisms.compare_mechanism(arguments)
    for option in ("formulations", "measure", "markdown"):
        if getattr(arguments, option) is not None:
            raise ValueError(
                f"--{option} goes with a mechanism, such as four_bar; see also featherstep "
                "workprecision"
            )
    from .problem_study.compare import compare
    from .terminal import Screen, show_comparison

    ivp, stiff, description = studies.problem_of(arguments)
    with shown_progress(f"comparing on {ivp.name}") as report:
        comparison = compare(
            ivp,
            arguments.methods,
            rtol=arguments.rtol or DEFAULT_RTOL,
            atol=arguments.atol,
            step=arguments.step,
            repeat=arguments.repeat,
            max_steps=arguments.max_steps,
            stiff=stiff,
            illustrate=arguments.plot is not None or arguments.html is not None,
            report=report,
        )
    if not prints_data(arguments):
        show_comparison(Screen(), comparison, description)
    write(arguments.csv, comparison.to_csv)
    write(arguments.json, comparison.to_json)
    if arguments.html is not None and comparison.rows:
        from .problem_study.figure import comparison_figure
        from .report import study_report

        figure = comparison_figure(comparison)
        title = f"Comparison on {ivp.name}"
        write(arguments.html, lambda: study_report(comparison, figure, title, description))
    if arguments.plot is not None and comparison.rows:
        from .problem_study.figure import save_comparison

        save_comparison(comparison, arguments.plot)
        sys.stderr.write(f"wrote {arguments.plot}\n")
    if arguments.debug:
        for row in comparison.failures:
            if row.exception is not None:
                traceback.print_exception(row.exception)
    if comparison.interrupted:
        return complain("interrupted; the table above is what was done by then", INTERRUPTED, False)
    return 0 if any(row.ok for row in comparison.rows) else FAILURE


# -------------------------------------------------------------------- arguments

DEFAULT_PROBLEM = "arenstorf"
DEFAULT_RTOL = (1e-6, 1e-9)


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints fit on one line and suggest the nearest word."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _Formatter)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if found:
            choices = [c.strip(" '\"") for c in found[2].split(",")]
            near = difflib.get_close_matches(found[1], choices, n=1)
            hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(choices)}"
            message = f"{message[: found.start()]}{found[1]!r} is not known; {hint}"
        sys.stderr.write(f"{self.prog}: {message} (see {self.prog} --help)\n")
        sys.exit(USAGE)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keep examples as written; leave room for the names of options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


def _parser() -> _Parser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks"
    )
    parser = _Parser(
        prog="featherstep",
        description="Integrate differential equations, and see what each method costs.",
        epilog=text_block("""
            start here:
              featherstep compare                       five methods on Arenstorf's orbit
              featherstep converge                      which order do methods show?
              featherstep workprecision                 what does each digit cost?
              featherstep methods --search dormand      find a scheme
              featherstep problems --stiff              find a problem
              featherstep mechanisms                    find a mechanism
              featherstep simulate four_bar --out four_bar.html
              featherstep model robot.urdf              what is in a model file
              featherstep study --help                  thousands of runs, varied
              featherstep lab list                      labs for a course, that grade themselves
              featherstep COMMAND --help                examples for each command
        """),
    )
    parser.add_argument("--version", action=_Version, help="print the version")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_compare(commands, shared)
    studies.add_converge(commands, shared, mechanisms.converge_mechanism)
    studies.add_workprecision(commands, shared)
    _add_methods(commands, shared)
    _add_problems(commands, shared)
    mechanisms.add_mechanisms(commands, shared)
    add_simulate(commands, shared)
    _add_model(commands, shared)
    add_study(commands, shared)
    add_lab(commands, shared)
    add_stability(commands, shared)
    add_report(commands, shared)
    _add_warmup(commands, shared)

    def help_only(arguments: argparse.Namespace) -> int:
        parser.print_help()
        return 0

    parser.set_defaults(run=help_only)
    return parser


class _Version(argparse.Action):
    """Look up the version only when it is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        import featherstep

        sys.stdout.write(f"featherstep {featherstep.__version__}\n")
        sys.exit(0)


def _add_compare(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "compare",
        parents=[shared],
        help="solve a problem or a mechanism by several methods; table of errors and costs",
        description=text_block("""
            Solve one reference problem by several methods and print what each digit cost:
            the error at the end against the known solution, steps, evaluations, time.
            A method that fails is shown with the reason. On a mechanism every method is run
            in every formulation, and drift, energy and a verdict stand beside the error.
        """),
        epilog=text_block("""
            examples:
              featherstep compare
                  five explicit methods on Arenstorf's orbit
              featherstep compare van_der_pol --param mu=1000 --methods RADAU5,DOPRI5,scipy:Radau
                  stiffness: the explicit method runs out of steps
              featherstep compare kepler --methods RK4,Gauss2,DOP853 --step 0.1,0.05,0.025
                  fixed steps: halve h and watch the error fall by 2 to the order
              featherstep compare lorenz --rtol 1e-5,1e-7,1e-9,1e-11 --plot lorenz.png
                  a work-precision diagram
              featherstep compare pleiades --methods my_scheme.toml,DOPRI5 --csv -
                  your own tableau against a classic, as data
              featherstep compare four_bar --methods DOP853,RADAU5 \\
                  --formulations baumgarte,projected,index3,ggl --html report.html
                  a closed loop: which formulation is to be trusted?
              featherstep compare robot_arm --roads all --rtol 1e-8
                  a differential-algebraic system of index 5 on every road to its solution
              featherstep compare "y'' = -sin(y)" --y0 1,0 --t-end 20
                  an equation of your own, or a file of them: oscillator.ode
              featherstep compare arm.toml --methods RK4 --step 0.01,0.005 --measure hand
                  a model file; the error is that of the body "hand"
        """)
        + "\n"
        + METHODS_HELP
        + mechanisms.FORMULATIONS_HELP
        + "\nThe exit code is 0 if any method succeeded, 1 if none did, 2 for wrong usage.",
    )
    add_problem_options(
        parser, DEFAULT_PROBLEM, "; a name that `featherstep mechanisms` lists, or a model file"
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--rtol",
        metavar="R,…",
        type=numbers,
        help="relative tolerances (default 1e-6,1e-9)",
    )
    size.add_argument("--step", metavar="H,…", type=numbers, help="fixed steps, in their place")
    parser.add_argument(
        "--atol",
        metavar="A,…",
        type=numbers,
        help="absolute tolerances: one, or one for each rtol (default rtol/1000)",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="write a picture (.png, .pdf, .svg): solution, and error against evaluations",
    )
    parser.add_argument("--csv", metavar="FILE", help="write the table; - for standard output")
    parser.add_argument("--json", metavar="FILE", help="the same as JSON")
    parser.add_argument("--html", metavar="FILE", help="a report in one file")
    parser.add_argument(
        "--roads",
        metavar="A,B,…",
        type=names,
        help="for a general DAE: dummy, underlying, taylor, given, or all",
    )
    loops = parser.add_argument_group("for mechanisms")
    loops.add_argument(
        "--formulations",
        metavar="A,B,…",
        type=names,
        help="of closed loops, see below (default: those that suit each method)",
    )
    loops.add_argument(
        "--measure",
        metavar="M",
        help="whose error: points (the default), coordinates, a body, or BODY:x,y,z",
    )
    loops.add_argument("--markdown", metavar="FILE", help="the table in Markdown")
    add_timing_options(parser)
    parser.set_defaults(run=_compare, debug=False)


def _add_methods(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "methods",
        parents=[shared],
        help="list the Runge–Kutta schemes of the catalogue",
        description="List the schemes of the catalogue, or show one with its tableau.",
        epilog=text_block("""
            examples:
              featherstep methods --kind explicit --min-order 6 --embedded
              featherstep methods --stability L --kind dirk
              featherstep methods --search "hairer wanner"
              featherstep methods --show DOPRI5
              featherstep methods --show Gauss3 --latex > gauss3.tex

            classes:
              explicit         every stage needs only earlier ones
              dirk             diagonally implicit, sdirk and esdirk among them
              sdirk            … with one value on the diagonal
              esdirk           … after an explicit first stage
              fully-implicit   Gauss, Radau, Lobatto
              implicit         all that are not explicit
              rosenbrock       Rosenbrock and W-methods
              splitting        symplectic, for separable problems y = (q, v)
              nystrom          for q'' = g(t, q)
              partitioned      Lobatto IIIA–IIIB, symplectic for every Hamiltonian
              imex             additive, for f = f_E + f_I

            stability: A (A-stable), L (A-stable and R(∞) = 0), B (algebraically stable),
            symplectic.
        """),
    )
    parser.add_argument(
        "--kind",
        choices=METHOD_KINDS,
        type=str.lower,
        metavar="CLASS",
        help=", ".join(METHOD_KINDS),
    )
    parser.add_argument("--order", metavar="N", type=int, help="of exactly this order")
    parser.add_argument("--min-order", metavar="N", type=int, help="of at least this order")
    parser.add_argument("--embedded", action="store_true", help="pairs only")
    parser.add_argument(
        "--stability",
        choices=["A", "L", "B", "symplectic"],
        metavar="S",
        help="A, L, B or symplectic",
    )
    parser.add_argument("--show", metavar="NAME", help="tableau, order conditions, reference")
    parser.add_argument("--latex", action="store_true", help="with --show: the tableau in LaTeX")
    _add_data_options(parser)
    parser.set_defaults(run=_methods, debug=False)


def _add_problems(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "problems",
        parents=[shared],
        help="list the reference problems",
        description="List the reference problems, or show one with its parameters and source.",
        epilog=text_block("""
            examples:
              featherstep problems --stiff
              featherstep problems --kind dae
              featherstep problems --search orbit
              featherstep problems --show van_der_pol
        """),
    )
    parser.add_argument("--stiff", action="store_true", help="stiff ones only")
    parser.add_argument("--kind", choices=["ode", "dae"], type=str.lower, help="ode or dae")
    parser.add_argument("--show", metavar="NAME", help="parameters, interval, source")
    _add_data_options(parser)
    parser.set_defaults(run=_problems, debug=False)


def _add_model(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "model",
        parents=[shared],
        help="show what is in a model file",
        description=text_block("""
            Read a model file (TOML, JSON, URDF, SDF or MJCF) and show the tree of bodies, freedoms,
            loops, mobility, masses, and line by line what was left out or is doubtful.
        """),
        epilog=text_block("""
            examples:
              featherstep model robot.urdf
              featherstep model robot.sdf --root fixed --policy strict
              featherstep model world.sdf --includes models --json
              featherstep model robot.sdf --convert robot.toml
              featherstep model robot.urdf --check --picture robot.html
        """),
    )
    parser.add_argument("file", metavar="FILE", help="its ending says what it is")
    parser.add_argument("--root", choices=["free", "fixed"], help="whether a robot floats")
    parser.add_argument("--limits", action="store_true", help="limits of joints become stops")
    parser.add_argument(
        "--includes", metavar="FOLDER", help="where SDF and MJCF may read other files"
    )
    parser.add_argument(
        "--policy",
        choices=["strict", "warn", "repair"],
        default="warn",
        help="what to do about data that cannot be: refuse, keep, or mend them",
    )
    parser.add_argument(
        "--convert",
        metavar="FILE",
        help="write it as .toml, .json, .urdf, .sdf, .xml (MJCF) or .fmu (FMI 3)",
    )
    parser.add_argument(
        "--check", action="store_true",
        help="compare with what Pinocchio and MuJoCo make of the file, where installed",
    )  # fmt: skip
    parser.add_argument(
        "--picture", metavar="FILE", help="the mechanism at its start: .html (in space), .png, .svg"
    )
    parser.add_argument("--meshes", metavar="FOLDER", help="where meshes may be, for the picture")
    parser.add_argument("--json", action="store_true", help="print JSON in place of text")
    parser.set_defaults(run=_model, debug=False)


def _add_warmup(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "warmup",
        parents=[shared],
        help="compile all kernels ahead",
        description="Compile all kernels into the cache, so that every first run is fast.",
        epilog=text_block("""
            Without it kernels are interpreted at first, and compiled beside the run when that
            pays. Once in an image for many machines (with processors of one kind) it spares each
            of them a minute or two of a processor.

            examples:
              featherstep warmup
              FEATHERSTEP_CACHE=/opt/featherstep featherstep warmup
        """),
    )
    parser.add_argument("--workers", metavar="N", type=int, help="default: one a processor")
    parser.set_defaults(run=_warmup, debug=False)


def _add_data_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--search", metavar="TEXT", help="words in names, titles and sources")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    parser.add_argument("--csv", action="store_true", help="print CSV in place of a table")


if __name__ == "__main__":
    sys.exit(main())
