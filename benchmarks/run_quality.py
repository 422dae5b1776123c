"""Do runs tell when they are wrong? The catalogue by the default methods with three tolerances.

    python benchmarks/run_quality.py [--write] [--keep FILE] [names ...]

Each run is compared with a reference of ``multibody.compare``. Errors of positions are told in
units of what was asked: rtol times the size of the mechanism, start and end taken together. A run
is flagged if ``quality.ok`` is false or it failed; runs whose reference is not good enough to judge
them are left out. --write puts the table into docs/quality.md. --keep adds the runs to a file, one
line each, from which a later call takes those mechanisms that it has: the whole takes an hour.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from featherstep.mechanism_study.compare import _size, _Study
from featherstep.mechanism_study.mechanism import find_mechanism
from featherstep.mechanism_study.reference import Measure
from integrators import solve
from multibody import as_dae, as_ivp, mechanisms

TOLERANCES = (1e-3, 1e-6, 1e-9)
TREES = (("", "auto"), ("", "DOPRI5"), ("", "DOP853"), ("", "RADAU5"))
LOOPS = (
    ("", "auto"),
    ("", "DOP853"),
    ("projected", "DOP853"),
    ("index3", "RADAU5"),
    ("ggl", "RADAU5"),
)
FAR, NEAR = 100.0, 10.0  # tolerances: an error that must be flagged, and one that need not be
PAGE = Path(__file__).parent.parent / "docs" / "quality.md"
START, END = "<!-- table -->\n", "<!-- end of table -->\n"


@dataclass
class Looked:
    """One run: its error in units of what was asked, and what it says of itself."""

    name: str
    how: str
    rtol: float
    error: float
    flagged: bool
    told: bool  # in the message
    says: str


def look(name: str) -> list[Looked]:
    """All runs of one mechanism."""
    what = find_mechanism(name)
    model, span = what.model, (0.0, what.t_end)
    measure = Measure.of("points", model)
    study = _Study(what, span, None, measure, _size(what, measure), 1)
    study.find_reference(None, 1e-9 * study.size)
    size = study.size
    if study.reference.values is not None:
        start = measure.values(0.0, what.q0)
        size = max(
            size, float(np.linalg.norm(np.ptp([start, study.reference.values], axis=(0, 1))))
        )
    found = []
    for formulation, method in LOOPS if model.bonds else TREES:
        if formulation:
            make = {"tau": what.tau, "formulation": formulation}
            problem = as_dae(model, what.q0, what.v0, span, **make)
        else:
            problem = as_ivp(model, what.q0, what.v0, span, what.tau)
        for rtol in TOLERANCES:
            options = {"rtol": rtol, "atol": 1e-3 * rtol, "max_steps": 50_000}
            run = solve(problem, method=method, **options)
            error = np.inf
            if run.success:
                q = run.y[: model.nq, -1]
                values = measure.values(float(run.t[-1]), q)
                error = measure.distance(values, study.reference.values)
            if run.success and not 10 * study.reference.uncertainty <= max(error, rtol * size):
                continue  # nobody knows
            says = run.quality.verdict if run.success else run.message
            found.append(
                Looked(
                    name,
                    f"{formulation or 'as_ivp'} by {method}",
                    rtol,
                    error / (rtol * size),
                    not run.success or not run.quality.ok,
                    not run.success or bool(run.quality.doubts),
                    says,
                )
            )
    return found


def table(runs: list[Looked]) -> str:
    """Counts for each method and tolerance, and the runs that nobody would doubt."""
    lines = [
        "| runs of | rtol | runs | error > 100 asked | of these flagged | in the message "
        "| error < 10 asked | of these flagged |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for how in dict.fromkeys(run.how for run in runs):
        for rtol in TOLERANCES:
            some = [run for run in runs if (run.how, run.rtol) == (how, rtol)]
            far = [run for run in some if run.error > FAR]
            near = [run for run in some if run.error < NEAR]
            counts = (
                len(some),
                len(far),
                sum(run.flagged for run in far),
                sum(run.told for run in far),
                len(near),
                sum(run.flagged for run in near),
            )
            lines.append(f"| {how} | {rtol:g} | " + " | ".join(map(str, counts)) + " |")
    silent = [run for run in runs if run.error > FAR and not run.flagged]
    lines += [
        "",
        f"Runs with an error above 100 times what was asked that are not flagged: {len(silent)}.",
    ]
    lines += [f"- {r.name}, {r.how}, rtol {r.rtol:g}: {r.error:.0f} times" for r in silent]
    return "\n".join(lines) + "\n"


def kept(file: Path | None) -> dict[str, list[Looked]]:
    """Runs of earlier calls, by mechanism."""
    found: dict[str, list[Looked]] = {}
    if file is not None and file.exists():
        for line in file.read_text().splitlines():
            name, runs = json.loads(line)
            found[name] = [Looked(**run) for run in runs]
    return found


def main() -> None:
    """Run what the command line asks for."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    known = kept(asked.keep)
    runs = []
    for name in asked.names or mechanisms.names():
        if name not in known:
            known[name] = look(name)
            sys.stderr.write(f"{name}\n")
            if asked.keep is not None:
                with asked.keep.open("a") as file:
                    file.write(json.dumps([name, [asdict(run) for run in known[name]]]) + "\n")
        runs += known[name]
    text = table(runs)
    sys.stdout.write(text)
    if asked.write:
        page = PAGE.read_text()
        head, tail = page.partition(START)[0], page.partition(END)[2]
        PAGE.write_text(head + START + text + END + tail)


if __name__ == "__main__":
    main()
