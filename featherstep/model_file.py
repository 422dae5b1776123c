"""The command ``featherstep model``: what is in a model file, and what a reader made of it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from integrators.files import replacing
from multibody import (
    AssemblyError,
    assemble,
    consistent_velocity,
    constraints,
    export_fmu,
    file_events,
    load_model,
    mobility,
    save_model,
)
from multibody.io import ModelStart, Report, load_events, load_start
from multibody.model import Model

from .model_check import check_file
from .options import FAILURE, complain
from .terminal import Screen

__all__ = ["show_model"]

#: Programs that read a file alike agree to this part of the largest entry.
AGREE = 1e-9
ROBOTS = (".urdf", ".sdf", ".xml")
#: Gaps up to this size count as closed: rounding of the file's own digits is larger.
CLOSED = 1e-9


def show_model(arguments: argparse.Namespace) -> int:
    """Print a model file: tree, freedoms, loops, mobility, masses, remarks."""
    report = Report(policy=arguments.policy)
    given = {"root": arguments.root, "includes": arguments.includes}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if arguments.limits:
        options["limits"] = True
    drawn = arguments.picture is not None and arguments.picture.lower().endswith(".html")
    if arguments.meshes is not None or (drawn and Path(arguments.file).suffix.lower() in ROBOTS):
        options["meshes"] = arguments.meshes or True
    try:
        model = load_model(arguments.file, report=report, **options)
    except TypeError as error:  # an option that the format does not have
        raise ValueError(str(error)) from None
    if arguments.convert is not None:
        lost = Report(policy=arguments.policy)
        if arguments.convert.lower().endswith(".fmu"):
            _export(model, report, arguments.file, arguments.convert)
        else:
            _convert(model, arguments.file, arguments.convert, lost)
        sys.stderr.write(f"wrote {arguments.convert}\n")
        for remark in lost.remarks:
            sys.stderr.write(f"  {remark}\n")
    if arguments.picture is not None:
        _picture(model, arguments.picture)
        sys.stderr.write(f"wrote {arguments.picture}\n")
    facts = _facts(model)
    checks = check_file(arguments.file, model) if arguments.check else []
    if arguments.check and not checks:
        raise ValueError(
            "--check: neither Pinocchio (URDF) nor MuJoCo (URDF, MJCF) is installed and reads "
            f"{Path(arguments.file).suffix or 'this file'}; pip install pin mujoco"
        )
    if arguments.json:
        remarks = [vars(remark) for remark in report.remarks]
        data = {"file": str(Path(arguments.file)), **facts, "remarks": remarks}
        if checks:
            data["checks"] = [_plain(vars(check)) for check in checks]
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
    for check in checks:
        said = check.problem or (
            f"nq = {check.nq}, nv = {check.nv}, {check.mass:.6g} kg; H differs by "
            f"{check.inertia:.1e}, inverse dynamics by {check.forces:.1e} of the largest entry"
        )
        screen.say(f"{check.peer:<13} {said}")
    if report:
        screen.say()
        screen.say(str(report))
    if any(check.inertia > AGREE or check.forces > AGREE for check in checks):
        return complain(f"the programs differ by more than {AGREE:g}", FAILURE, False)
    return 0


def _convert(model: Model, file: str, path: str, lost: Report) -> None:
    """Another file of the model, with its start where the format has one."""
    if Path(path).resolve() == Path(file).resolve():
        raise ValueError(f"--convert: {path} is the file itself; give another name")
    start = load_start(file) if Path(file).suffix.lower() not in ROBOTS else ModelStart()
    known = any(part is not None for part in start)
    keeps = Path(path).suffix.lower() in (".toml", ".json")
    if known and not keeps:
        lost.lost("where a first simulation starts, and its end")
    if events := load_events(file):
        lost.lost(f"{len(events)} events")
    save_model(model, path, report=lost, start=start if known and keeps else None)


def _export(model: Model, report: Report, file: str, path: str) -> None:
    """An FMU that starts, and has events, as a simulation of the file."""
    start = load_start(file) if Path(file).suffix.lower() not in ROBOTS else ModelStart()
    q = report.positions.get("start") if start.q is None else start.q
    q, v = model.neutral() if q is None else q, np.zeros(model.nv) if start.v is None else start.v
    if model.bonds:
        q = assemble(model, q).q
        v = consistent_velocity(model, q, v)
    span = (0.0, start.t_end or 10.0)
    export_fmu(model, path, q, v, span, events=file_events(model, load_events(file)))


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers that were not compared are null in JSON."""
    return {
        key: None if isinstance(value, float) and np.isnan(value) else value
        for key, value in values.items()
    }


def _picture(model: Model, path: str) -> None:
    """The start position: a page in three dimensions, or a stick figure."""
    from types import SimpleNamespace

    from multibody.pictures import animate, plot

    q = model.neutral()
    if model.bonds:
        try:
            q = assemble(model, q).q
        except AssemblyError:
            sys.stderr.write("featherstep: the loops do not close; shown is the neutral position\n")
    if path.lower().endswith(".html"):
        still = SimpleNamespace(t=np.zeros(1), y=np.append(q, np.zeros(model.nv))[:, None])
        animate.save(model, still, path)
        return
    figure: Any = plot.stick_figure(model, q).figure
    with replacing(path) as temporary:
        figure.savefig(temporary)


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
