"""The commands ``featherstep stability`` and ``featherstep report``: what a method is like."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .options import PICTURES, text_block

__all__ = ["add_report", "add_stability"]


def add_stability(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command ``stability``."""
    parser = commands.add_parser(
        "stability",
        parents=[shared],
        help="stability function and stability region of methods",
        description="Print R(z), stability intervals and verdicts; draw the region with --plot.",
        epilog=text_block("""
            examples:
              featherstep stability RK4
              featherstep stability RK4,DOPRI5,BDF2 --plot regions.pdf
              featherstep stability mine.toml --plot mine.png
        """),
    )
    parser.add_argument("methods", metavar="A,B,…", help="schemes, multistep methods, files")
    parser.add_argument("--plot", metavar="FILE", help="write the region (.png, .pdf, .svg)")
    parser.set_defaults(run=_stability, debug=False)


def add_report(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command ``report``."""
    parser = commands.add_parser(
        "report",
        parents=[shared],
        help="everything that is known about a method, on a page",
        description="Print order, stability, symmetry and more of a method; --plot draws a page.",
        epilog=text_block("""
            examples:
              featherstep report Gauss3
              featherstep report mine.toml --plot mine.pdf
        """),
    )
    parser.add_argument("method", metavar="NAME", help="a scheme, a multistep method, a file")
    parser.add_argument("--plot", metavar="FILE", help="write a page (.png, .pdf, .svg)")
    parser.set_defaults(run=_report, debug=False)


def _stability(arguments: argparse.Namespace) -> int:
    from integrators import Multistep, analysis
    from integrators.analysis import plot

    methods = [_method(name) for name in arguments.methods.split(",") if name.strip()]
    _check_picture(arguments.plot)
    for label, method in methods:
        if isinstance(method, Multistep):
            first, last = analysis.zero_stability(method), analysis.a_alpha(method)
        else:
            first = f"R(z) = {analysis.stability_function(method)}"
            last = analysis.l_stability(method)
        lines = [first, analysis.stability_interval(method),
                 analysis.stability_interval(method, "imaginary"),
                 analysis.a_stability(method), last]  # fmt: skip
        sys.stdout.write("\n  ".join([label, *map(str, lines)]) + "\n")
    if arguments.plot is not None:
        _save(plot.stability_region([method for _, method in methods]).figure, arguments.plot)
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from integrators import Multistep, analysis
    from integrators.analysis import plot

    _check_picture(arguments.plot)
    _, method = _method(arguments.method)
    several = isinstance(method, Multistep)
    report = analysis.multistep_report(method) if several else analysis.report(method)
    sys.stdout.write(f"{report}\n")
    if arguments.plot is not None:
        if several:
            figure = plot.stability_region(method).figure
        else:
            figure = report.figure()
        _save(figure, arguments.plot)
    return 0


def _method(name: str) -> tuple[str, Any]:
    from integrators.analysis.study.runs import resolve

    return resolve(name.strip())


def _check_picture(name: str | None) -> None:
    if name is not None and Path(name).suffix.lower() not in PICTURES:
        raise ValueError(f"--plot needs a name ending in {', '.join(PICTURES)}, got {name}")


def _save(figure: Any, name: str) -> None:
    from integrators.files import replacing  # here, so that --help loads nothing

    with replacing(name) as temporary:
        figure.savefig(temporary, dpi=150)
    sys.stderr.write(f"wrote {name}\n")
