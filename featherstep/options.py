"""What the commands share: values of options, files to write, Ctrl-C, messages.

Nothing heavy is imported here; ``--help`` has to answer at once.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

__all__ = [
    "FAILURE",
    "INTERRUPTED",
    "USAGE",
    "check_files",
    "complain",
    "heed_ctrl_c",
    "names",
    "numbers",
    "parameter",
    "text_block",
    "write",
]

FAILURE, USAGE, INTERRUPTED = 1, 2, 130

PICTURES = (".png", ".pdf", ".svg")
TABLES = ("csv", "json", "markdown", "latex", "html")
"""Options that name a file for a table; - is standard output."""

METHODS_HELP = """
methods:
  a name that `featherstep methods` lists      DOPRI5, Gauss4, Kvaerno5
  a solver of SciPy                            scipy:RK45, scipy:Radau, scipy:LSODA
  a solver of Assimulo                         assimulo:CVode, assimulo:Radau5ODE
  a file with a Butcher tableau                my_scheme.toml, my_scheme.json
"""

MEASURES_HELP = """
measures:
  end, max           the whole state, at the end or at its worst
  y0, max y1         a component, at the end or at its worst
  energy             an invariant of the problem, its drift from the start
"""


def complain(message: str, code: int, debug: bool) -> int:
    """Write one line to standard error and return the exit code."""
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"featherstep: {' '.join(message.split())}\n")
    return code


# -------------------------------------------------------------------- values


def text_block(block: str) -> str:
    """Return a block of text without its indentation."""
    return textwrap.dedent(block).strip("\n")


def names(text: str) -> list[str]:
    """Names separated by commas."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError("expected names separated by commas")
    return found


def numbers(text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(item) for item in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected numbers separated by commas, got {text!r}"
        ) from None


def parameter(text: str) -> tuple[str, float | int]:
    """A parameter of a problem, NAME=NUMBER."""
    name, _, value = text.partition("=")
    for kind in (int, float):
        try:
            return name.strip(), kind(value)
        except ValueError:
            continue
    raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, such as mu=1000, got {text!r}")


def add_problem_options(parser: argparse.ArgumentParser, default: str, more: str = "") -> None:
    """Add what says which problem is solved, and by what."""
    parser.add_argument(
        "problem",
        nargs="?",
        metavar="PROBLEM",
        default=default,
        help=f"a name that `featherstep problems` lists (default {default}){more}; "
        "or equations, such as \"y'' = -sin(y)\", or a file of them ending in .ode",
    )
    parser.add_argument(
        "--methods",
        metavar="A,B,…",
        type=names,
        help="methods, separated by commas (default: some that suit the problem)",
    )
    parser.add_argument("--t-end", metavar="T", type=float, help="another end of the interval")
    parser.add_argument(
        "--y0", metavar="A,B,…", type=numbers, help="initial values, of equations above all"
    )
    parser.add_argument(
        "--param",
        metavar="NAME=VALUE",
        type=parameter,
        action="append",
        help="a parameter of the problem, such as mu=1000; may be repeated",
    )
    parser.add_argument("--traced", action="store_true", help="trace f and run it as machine code")


def add_timing_options(parser: argparse.ArgumentParser) -> None:
    """Add what says how runs are timed and when they are given up."""
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


# -------------------------------------------------------------------- files


def check_files(arguments: argparse.Namespace) -> None:
    """Refuse a file that cannot be written before the work, not after it."""
    if arguments.plot is not None and Path(arguments.plot).suffix.lower() not in PICTURES:
        raise ValueError(
            f"--plot needs a name ending in {', '.join(PICTURES)}, got {arguments.plot}"
        )
    tables = {option: getattr(arguments, option, None) for option in TABLES}
    printed = [f"--{option} -" for option, name in tables.items() if name == "-"]
    if len(printed) > 1:
        raise ValueError(f"{' and '.join(printed)} cannot share standard output")
    for name in (arguments.plot, *tables.values()):
        if name not in (None, "-") and not Path(name).absolute().parent.is_dir():
            raise ValueError(f"cannot write {name}: there is no folder {Path(name).parent}")


def prints_data(arguments: argparse.Namespace) -> bool:
    """Whether standard output is taken by a table as data."""
    return any(getattr(arguments, option, None) == "-" for option in TABLES)


def write(name: str | None, text: Callable[[], str]) -> None:
    """Write text to a file, or to standard output for the name -."""
    if name == "-":
        sys.stdout.write(text())
    elif name is not None:
        from integrators.files import write_text

        write_text(name, text())
        sys.stderr.write(f"wrote {name}\n")


# -------------------------------------------------------------------- interruptions


@contextlib.contextmanager
def heed_ctrl_c() -> Iterator[Callable[[], None]]:
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


@contextlib.contextmanager
def shown_progress(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """Yield what a study reports its progress to: a bar, and a look at Ctrl-C."""
    from . import terminal

    with terminal.progress(title) as show, heed_ctrl_c() as check:

        def report(done: int, total: int, label: str) -> None:
            check()
            if show is not None:
                show(done, total, label)

        yield report
