"""``featherstep compare SYSTEM --roads …``: a general DAE on several roads to its solution."""

from __future__ import annotations

import argparse

from ..options import write
from ..terminal import Screen

__all__ = ["compare_on_roads"]


def compare_on_roads(arguments: argparse.Namespace) -> int:
    """Compare roads on a system of the library; returns the exit code."""
    from integrators.analysis.dae.roads import compare_roads
    from integrators.dae.general import ROADS
    from integrators.problems.dae_systems import system

    for option in ("formulations", "measure", "step", "atol", "plot", "traced"):
        if getattr(arguments, option):
            raise ValueError(f"--{option} does not go with --roads")
    case = system(arguments.problem, **dict(arguments.param or ()))
    t0, t1 = case.t_span
    result = compare_roads(
        case.system,
        case.system.consistent(t0, case.fixed, case.guess),
        t1 if arguments.t_end is None else arguments.t_end,
        roads=ROADS if arguments.roads == ["all"] else arguments.roads,
        methods=arguments.methods,
        rtol=arguments.rtol or (1e-6, 1e-9),
    )
    if "-" not in (arguments.csv, arguments.markdown, arguments.html):
        Screen().say(f"{case.system.name}: index {case.index}, {case.freedoms} freedoms")
        Screen().say(str(result))
    write(arguments.csv, result.table.to_csv)
    write(arguments.markdown, result.table.to_markdown)
    write(arguments.html, result.table.to_html)
    return 0 if any(run.message == "" for run in result.runs) else 1
