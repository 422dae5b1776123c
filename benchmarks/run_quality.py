"""Do runs tell when they are wrong? The catalogue by the default methods with three tolerances.

    python benchmarks/run_quality.py [--seed N] [--write] [--keep FILE] [names ...]

Each run is compared with a reference of ``multibody.compare``. Errors of positions are told in
units of what was asked: rtol times the size of the mechanism, start and end taken together. A run
is flagged if ``quality.ok`` is false or it failed. Where tight runs contradict each other by more
than 100 times what was asked (chaos, singular positions) no tolerance delivers a position: such
runs count as wrong. Where they agree better than that, but not well enough to judge a run, nobody
knows. --seed takes what no limit was set on: starts, ends, tolerances and random trees drawn by
that number. --write puts the table into docs/quality.md. --keep adds the runs to a file, one line
each, from which a later call takes those mechanisms that it has.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from featherstep.mechanism_study.compare import _size, _Study
from featherstep.mechanism_study.mechanism import Mechanism, find_mechanism, started
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
RANDOM_TREES = 6


@dataclass
class Looked:
    """One run: its error in units of what was asked, and what it says of itself."""

    name: str
    how: str
    rtol: float
    error: float  # NaN where nobody knows
    flagged: bool
    told: bool  # in the message
    says: str


def tolerances(seed: int | None) -> tuple[float, ...]:
    """Three of them: coarse, medium and tight."""
    if seed is None:
        return TOLERANCES
    off = np.random.default_rng(seed).uniform(-1.3, 1.0, 3)
    return tuple(float(f"{rtol * 10**x:.1e}") for rtol, x in zip(TOLERANCES, off))


def names(seed: int | None) -> list[str]:
    """What is run: the catalogue, and some random trees."""
    if seed is None:
        return list(mechanisms.names())
    return [*mechanisms.names(), *(f"random_tree:{10 * seed + k}" for k in range(RANDOM_TREES))]


def mechanism(name: str, seed: int | None) -> Mechanism:
    """A mechanism as it is listed, or with a start and an end by seed."""
    kind, _, tree = name.partition(":")
    what = find_mechanism(kind, {"seed": int(tree)} if tree else None)
    if seed is None:
        return what
    model = what.model
    rng = np.random.default_rng([seed, *name.encode()])
    t_end = what.t_end * float(rng.uniform(0.3, 1.5))
    if model.contacts:  # bodies must not begin inside each other
        return replace(what, t_end=t_end)
    away, faster = rng.uniform(0.05, 0.5, 2)
    q = model.normalise(what.q0 + away * rng.normal(size=model.nq))
    v = what.v0 * (1.0 + faster * rng.normal()) + faster * rng.normal(size=model.nv)
    try:
        return started(what, q, v, t_end)
    except ValueError:  # its loops cannot be closed there
        return started(what, what.q0, (1.0 + faster) * what.v0, t_end)


def look(name: str, seed: int | None) -> list[Looked]:
    """All runs of one mechanism."""
    what = mechanism(name, seed)
    model, span = what.model, (0.0, what.t_end)
    measure = Measure.of("points", model)
    study = _Study(what, span, None, measure, _size(what, measure), 1)
    study.find_reference(None, 1e-9 * study.size)
    known, size = study.reference.values, study.size
    if known is not None:
        start = measure.values(0.0, what.q0)
        size = max(size, float(np.linalg.norm(np.ptp([start, known], axis=(0, 1)))))
    found = []
    for formulation, method in LOOPS if model.bonds else TREES:
        if formulation:
            make = {"tau": what.tau, "formulation": formulation}
            problem = as_dae(model, what.q0, what.v0, span, **make)
        else:
            problem = as_ivp(model, what.q0, what.v0, span, what.tau)
        for rtol in tolerances(seed):
            options = {"rtol": rtol, "atol": 1e-3 * rtol, "max_steps": 50_000}
            run = solve(problem, method=method, **options)
            error = np.inf
            if run.success and known is not None:
                q = run.y[: model.nq, -1]
                error = measure.distance(measure.values(float(run.t[-1]), q), known)
            if run.success and not 10 * study.reference.uncertainty <= max(error, rtol * size):
                doubt = study.reference.uncertainty
                error = np.inf if not doubt <= FAR * rtol * size else np.nan
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
        "| error < 10 asked | of these flagged | nobody knows | of these flagged |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for how in dict.fromkeys(run.how for run in runs):
        for rtol in dict.fromkeys(run.rtol for run in runs):
            some = [run for run in runs if (run.how, run.rtol) == (how, rtol)]
            far = [run for run in some if run.error > FAR]
            near = [run for run in some if run.error < NEAR]
            open_ = [run for run in some if np.isnan(run.error)]
            counts = (
                len(some),
                len(far),
                sum(run.flagged for run in far),
                sum(run.told for run in far),
                len(near),
                sum(run.flagged for run in near),
                len(open_),
                sum(run.flagged for run in open_),
            )
            lines.append(f"| {how} | {rtol:g} | " + " | ".join(map(str, counts)) + " |")
    near = [run for run in runs if run.error < NEAR]
    silent = [run for run in runs if run.error > FAR and not run.flagged]
    lines += [
        "",
        f"Of {len(runs)} runs {sum(run.error > FAR for run in runs)} have an error above 100 times "
        f"what was asked, {len(near)} one below 10 times; of the latter "
        f"{sum(run.flagged for run in near)} are flagged. Runs that should be flagged and are not: "
        f"{len(silent)}.",
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
    parser.add_argument("--seed", type=int)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    known = kept(asked.keep)
    runs = []
    for name in asked.names or names(asked.seed):
        if name not in known:
            known[name] = look(name, asked.seed)
            sys.stderr.write(f"{name}\n")
            if asked.keep is not None:
                with asked.keep.open("a") as file:
                    file.write(json.dumps([name, [asdict(run) for run in known[name]]]) + "\n")
        runs += known[name]
    text = table(runs)
    sys.stdout.write(text)
    if asked.write:
        page = PAGE.read_text()
        mark = "table" if asked.seed is None else "drawn"
        start, end = (f"<!-- {word}{mark} -->\n" for word in ("", "end of "))
        head, tail = page.partition(start)[0], page.partition(end)[2]
        PAGE.write_text(head + start + text + end + tail)


if __name__ == "__main__":
    main()
