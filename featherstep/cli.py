"""The command ``featherstep``.

Only argparse is imported here; each command loads what it needs, so that ``--help`` answers at
once. Exit codes: 0 success, 1 failure, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import re
import signal
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["main"]

FAILURE, USAGE, INTERRUPTED = 1, 2, 130

PICTURES = (".png", ".pdf", ".svg")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv
        Arguments without the program's name; those of the process by default.
    """
    debug = "--debug" in (sys.argv[1:] if argv is None else argv)
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
        return _complain("interrupted", INTERRUPTED, debug)
    except ValueError as error:
        return _complain(str(error), USAGE, debug)
    except Exception as error:  # the last line of defence: a line instead of a traceback
        text = str(error) or "no message"
        return _complain(f"{type(error).__name__}: {text} (--debug shows where)", FAILURE, debug)


def _complain(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"featherstep: {' '.join(message.split())}\n")
    return code


# -------------------------------------------------------------------- the commands


def _methods(arguments: argparse.Namespace) -> int:
    from .listing import list_methods

    return list_methods(arguments)


def _problems(arguments: argparse.Namespace) -> int:
    from .listing import list_problems

    return list_problems(arguments)


def _compare(arguments: argparse.Namespace) -> int:
    _check_files(arguments)
    from integrators import problems

    from .compare import compare
    from .terminal import Screen, progress, show_comparison

    entry = problems.entry(arguments.problem)
    with progress(f"comparing on {entry.name}") as show, _heed_ctrl_c() as check:

        def report(done: int, total: int, label: str) -> None:
            check()
            if show is not None:
                show(done, total, label)

        comparison = compare(
            entry.name,
            arguments.methods,
            rtol=arguments.rtol or DEFAULT_RTOL,
            atol=arguments.atol,
            step=arguments.step,
            t_end=arguments.t_end,
            parameters=dict(arguments.param or ()),
            repeat=arguments.repeat,
            max_steps=arguments.max_steps,
            traced=arguments.traced,
            illustrate=arguments.plot is not None,
            report=report,
        )
    if not {"-"} & {arguments.csv, arguments.json}:
        show_comparison(Screen(), comparison, entry.description)
    _write(arguments.csv, comparison.to_csv)
    _write(arguments.json, comparison.to_json)
    if arguments.plot is not None and comparison.rows:
        from .plot import save_comparison

        save_comparison(comparison, arguments.plot)
        sys.stderr.write(f"wrote {arguments.plot}\n")
    if arguments.debug:
        for row in comparison.failures:
            if row.exception is not None:
                traceback.print_exception(row.exception)
    if comparison.interrupted:
        return _complain(
            "interrupted; the table above is what was done by then", INTERRUPTED, False
        )
    return 0 if any(row.ok for row in comparison.rows) else FAILURE


@contextlib.contextmanager
def _heed_ctrl_c() -> Iterator[Callable[[], None]]:
    """Remember Ctrl-C: pressed while code is compiled, the compiler's callbacks swallow it.

    The function yielded raises KeyboardInterrupt if that has happened.
    """
    pressed = False

    def note(signal_number: int, frame: Any) -> NoReturn:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # signals go to the main thread
        yield check
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuse a file that cannot be written before the work, not after it."""
    if arguments.plot is not None and Path(arguments.plot).suffix.lower() not in PICTURES:
        raise ValueError(
            f"--plot needs a name ending in {', '.join(PICTURES)}, got {arguments.plot}"
        )
    if arguments.csv == "-" and arguments.json == "-":
        raise ValueError("--csv - and --json - cannot share standard output")
    if arguments.atol is not None and arguments.step is not None:
        raise ValueError("--atol goes with --rtol; a fixed --step has no tolerances")
    for name in (arguments.plot, arguments.csv, arguments.json):
        if name not in (None, "-") and not Path(name).absolute().parent.is_dir():
            raise ValueError(f"cannot write {name}: there is no folder {Path(name).parent}")


def _write(name: str | None, text: Any) -> None:
    if name == "-":
        sys.stdout.write(text())
    elif name is not None:
        Path(name).write_text(text(), encoding="utf-8")
        sys.stderr.write(f"wrote {name}\n")


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
        epilog=_text("""
            start here:
              featherstep compare                       five methods on Arenstorf's orbit
              featherstep methods --search dormand      find a scheme
              featherstep problems --stiff              find a problem
              featherstep COMMAND --help                examples for each command
        """),
    )
    parser.add_argument("--version", action=_Version, help="print the version")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_compare(commands, shared)
    _add_methods(commands, shared)
    _add_problems(commands, shared)

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
        help="solve a problem by several methods; table of errors, evaluations, times",
        description=_text("""
            Solve one reference problem by several methods and print what each digit cost:
            the error at the end against the known solution, steps, evaluations, time.
            A method that fails is shown with the reason.
        """),
        epilog=_text("""
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

            methods:
              a name that `featherstep methods` lists      DOPRI5, Gauss4, Kvaerno5
              a solver of SciPy                            scipy:RK45, scipy:Radau, scipy:LSODA
              a solver of Assimulo                         assimulo:CVode, assimulo:Radau5ODE
              a file with a Butcher tableau                my_scheme.toml, my_scheme.json

            The exit code is 0 if any method succeeded, 1 if none did, 2 for wrong usage.
        """),
    )
    parser.add_argument(
        "problem",
        nargs="?",
        metavar="PROBLEM",
        default=DEFAULT_PROBLEM,
        help=f"a name that `featherstep problems` lists (default {DEFAULT_PROBLEM})",
    )
    parser.add_argument(
        "--methods",
        metavar="A,B,…",
        type=_names,
        help="methods, separated by commas (default: some that suit the problem)",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--rtol",
        metavar="R,…",
        type=_numbers,
        help="relative tolerances (default 1e-6,1e-9)",
    )
    size.add_argument("--step", metavar="H,…", type=_numbers, help="fixed steps, in their place")
    parser.add_argument(
        "--atol",
        metavar="A,…",
        type=_numbers,
        help="absolute tolerances: one, or one for each rtol (default rtol/1000)",
    )
    parser.add_argument("--t-end", metavar="T", type=float, help="another end of the interval")
    parser.add_argument(
        "--param",
        metavar="NAME=VALUE",
        type=_parameter,
        action="append",
        help="a parameter of the problem, such as mu=1000; may be repeated",
    )
    parser.add_argument("--traced", action="store_true", help="trace f and run it as machine code")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="write a picture (.png, .pdf, .svg): solution, and error against evaluations",
    )
    parser.add_argument("--csv", metavar="FILE", help="write the table; - for standard output")
    parser.add_argument("--json", metavar="FILE", help="the same as JSON")
    parser.add_argument(
        "--repeat",
        metavar="N",
        type=int,
        help="timed runs, of which the median is shown (default: 5, fewer if they are long); "
        "a first run, which may compile, is never timed",
    )
    parser.add_argument(
        "--max-steps", metavar="N", type=int, help="give a run up after so many (default 200000)"
    )
    parser.set_defaults(run=_compare, debug=False)


def _add_methods(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "methods",
        parents=[shared],
        help="list the Runge–Kutta schemes of the catalogue",
        description="List the schemes of the catalogue, or show one with its tableau.",
        epilog=_text("""
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

            stability: A (A-stable), L (A-stable and R(∞) = 0), B (algebraically stable),
            symplectic.
        """),
    )
    parser.add_argument(
        "--kind",
        choices=["explicit", "implicit", "dirk", "sdirk", "esdirk", "fully-implicit"],
        type=str.lower,
        metavar="CLASS",
        help="explicit, implicit, dirk, sdirk, esdirk, fully-implicit",
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
        epilog=_text("""
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


def _add_data_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--search", metavar="TEXT", help="words in names, titles and sources")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    parser.add_argument("--csv", action="store_true", help="print CSV in place of a table")


# -------------------------------------------------------------------- values


def _text(block: str) -> str:
    return textwrap.dedent(block).strip("\n")


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("expected names separated by commas")
    return names


def _numbers(text: str) -> list[float]:
    try:
        return [float(item) for item in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected numbers separated by commas, got {text!r}"
        ) from None


def _parameter(text: str) -> tuple[str, float | int]:
    name, _, value = text.partition("=")
    for kind in (int, float):
        try:
            return name.strip(), kind(value)
        except ValueError:
            continue
    raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, such as mu=1000, got {text!r}")


if __name__ == "__main__":
    sys.exit(main())
