"""The command ``featherstep model``: what is in a model file, and what a reader made of it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from multibody import AssemblyError, assemble, constraints, load_model, mobility, save_model
from multibody.io import Report
from multibody.model import Model

from .terminal import Screen

__all__ = ["show_model"]

#: Gaps up to this size count as closed: rounding of the file's own digits is larger.
CLOSED = 1e-9


def show_model(arguments: argparse.Namespace) -> int:
    """Print a model file: tree, freedoms, loops, mobility, masses, remarks."""
    report = Report(policy=arguments.policy)
    given = {"root": arguments.root, "includes": arguments.includes}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if arguments.limits:
        options["limits"] = True
    try:
        model = load_model(arguments.file, report=report, **options)
    except TypeError as error:  # an option that the format does not have
        raise ValueError(str(error)) from None
    if arguments.convert is not None:
        save_model(model, arguments.convert)
        sys.stderr.write(f"wrote {arguments.convert}\n")
    facts = _facts(model)
    if arguments.json:
        remarks = [vars(remark) for remark in report.remarks]
        data = {"file": str(Path(arguments.file)), **facts, "remarks": remarks}
        sys.stdout.write(json.dumps(data | {"gears": report.gears}, indent=2) + "\n")
        return 0
    screen = Screen()
    screen.say(str(model))
    screen.say()
    for name, value in facts.items():
        if not isinstance(value, dict | list):
            screen.say(f"{name:<13} {f'{value:.6g} kg' if name == 'mass' else value}")
    for driven, by in report.gears.items():
        sums = " + ".join(f"{ratio:g} × {leader}" for leader, ratio in by.items())
        screen.say(f"{'gear':<13} {driven} = {sums}")
    if report:
        screen.say()
        screen.say(str(report))
    return 0


def _facts(model: Model) -> dict[str, Any]:
    masses = {body.name: float(body.inertia.mass) for body in model.bodies}
    facts: dict[str, Any] = {
        "name": model.name,
        "bodies": len(model.bodies),
        "positions": model.nq,
        "freedoms": model.nv,
        "mass": sum(masses.values()),
        "masses": masses,
        "gravity": model.gravity.tolist(),
        "loops": len(model.loops),
    }
    if not model.bonds:
        return facts | {"mobility": model.nv}
    q = model.neutral()
    gap = float(np.abs(constraints(model, q).delta).max(initial=0.0))
    if gap > CLOSED:
        try:
            q = assemble(model, q).q
        except AssemblyError as error:
            return facts | {"closed": f"no: {error}"}
        facts["closed"] = (
            f"not in the neutral position (gap {gap:.2g}); assemble(model) closes them"
        )
    else:
        facts["closed"] = f"in the neutral position, to {gap:.2g}"
    found = mobility(model, q)
    return facts | {"mobility": found.mobility, "that is": str(found).split(" = ", 1)[1]}
