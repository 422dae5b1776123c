"""Every method of the catalogue on every problem that is not chaotic: is the verdict right?

    python benchmarks/verdicts.py --out verdicts.tsv           # all pairs; goes on where it stopped
    python benchmarks/verdicts.py --problems kepler,pendulum --methods RK4,DOP853
    python benchmarks/verdicts.py --seed 1 --sample 50
    python benchmarks/verdicts.py --out verdicts.tsv --table docs/verdicts.md    # what was found

For each pair the order is estimated with steps chosen by the study, and what it says is held
against what is known of the problem (:func:`judged`): "right" if the interval contains the order of
the tableau; "explained" if it does not, or none is claimed, and the cause that is named can be the
one; "wrong" otherwise. Pairs come in random order, so that any part of the table is a sample;
several processes may share one file.
"""

from __future__ import annotations

import argparse
import random
import signal
import time
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from integrators import catalogue, problems
from integrators.analysis.error.measure import ErrorMeasure
from integrators.analysis.study.convergence_runs import Curve, StudyRuns

#: Solutions along which f jumps, bends, or has no Lipschitz constant.
ROUGH = {"square_root", "friction_oscillator", "bouncing_ball", "impact_oscillator"}
#: Findings that may explain an order above the method's.
HIGHER = ("leading error term", "periodic superconvergence")
#: Obstacles that may stand in the way of any order.
ANYWHERE = ("not yet asymptotic", "round-off", "reference too coarse", "exact")


def judged(problem: str, curve: Curve) -> str:
    """Hold the verdict on a method against what is known of the problem."""
    entry = problems.entry(problem)
    constrained = problems.get(problem).mass is not None
    if curve.estimate.found and curve.expected in curve.estimate:
        return "right"
    causes = [finding.cause for finding in curve.findings]
    possible = {
        "higher": any(part in cause for cause in causes for part in HIGHER),
        "too low": (constrained and "a differential-algebraic equation" in causes)
        or (entry.stiff and "order reduction by stiffness" in causes)
        or (problem in ROUGH and any("smooth" in c or "jump" in c or "bend" in c or "event" in c
                                     for c in causes)),
        "stiff": entry.stiff,
        "not smooth": problem in ROUGH,
        "refused": constrained,
        "no convergence": constrained and "a differential-algebraic equation" in causes,
        **dict.fromkeys(ANYWHERE, not curve.estimate.found),
    }  # fmt: skip
    return "explained" if possible.get(curve.verdict, False) else "wrong"


def told(curve: Curve) -> str:
    """Return verdict, estimate or reason, and causes, in a line."""
    estimate = curve.estimate
    text = str(estimate) if estimate.found else estimate.reason
    causes = "; ".join(finding.cause for finding in curve.findings)
    return f"{curve.verdict}: {text}" + f" [{causes}]" * bool(causes)


class TimeUp(BaseException):
    """A pair takes too long; no ``except Exception`` of a run may take it for a failure."""


def main() -> None:
    """Run over all pairs, or a sample of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default=None)
    parser.add_argument("--methods", default=None)
    parser.add_argument("--sample", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a table to go on with")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU time of a pair")
    parser.add_argument("--table", type=Path, help="write what is in the table as a page; run none")
    arguments = parser.parse_args()
    if arguments.table:
        arguments.table.write_text(page(arguments.out), encoding="utf-8")
        return
    plain = [e.name for e in problems.entries() if not e.chaotic]
    chosen = arguments.problems.split(",") if arguments.problems else plain
    methods = arguments.methods.split(",") if arguments.methods else catalogue.names()
    pairs = [(problem, method) for method in methods for problem in chosen]
    random.Random(arguments.seed).shuffle(pairs)
    pairs = pairs[: arguments.sample]
    begin, tally = time.monotonic(), Counter[str]()
    for problem, method in pairs:
        done = arguments.out.read_text(encoding="utf-8") if _there(arguments.out) else ""
        if f"\t{problem}\t{method}\t" in done:
            continue
        if time.monotonic() - begin > 60 * arguments.minutes:
            break
        line = "\t".join(row(problem, method, arguments.seconds))
        print(line, flush=True)
        if arguments.out:
            with arguments.out.open("a", encoding="utf-8") as out:
                out.write(line + "\n")
        tally[line.split("\t")[0]] += 1
    if _there(arguments.out):
        kept = arguments.out.read_text(encoding="utf-8").splitlines()
        tally = Counter(line.split("\t")[0] for line in kept)
    print(dict(tally), f"of {len(pairs)} pairs")


@cache
def study_of(problem: str) -> StudyRuns:
    """References are found once for all methods."""
    ivp = problems.get(problem)
    measure = ErrorMeasure.of(None, ivp, "max" if ivp.exact is not None else "end")
    study = StudyRuns(ivp, measure, None, float(np.finfo(float).eps), None, 1)
    study.find_reference()
    return study


def row(problem: str, method: str, seconds: float) -> tuple[str, str, str, str, str]:
    """Run a pair, unless it takes too long."""

    def stop(*_: object) -> None:
        raise TimeUp

    study, tableau = study_of(problem), catalogue.get(method)
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again, where a callback swallowed it
    start = time.process_time()
    try:
        curve = study.curve(method, tableau, None, tableau.order, True)
    except TimeUp:
        return "late", problem, method, f"{time.process_time() - start:.1f}", "not finished in time"
    except Exception as error:  # a fault, to be looked at; the others go on
        return "wrong", problem, method, "0", f"raised: {error!r}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    spent = time.process_time() - start
    return judged(problem, curve), problem, method, f"{spent:.1f}", told(curve)


def page(rows: Path) -> str:
    """Count verdicts for each problem, and list those that are wrong."""
    lines = [line.split("\t") for line in rows.read_text(encoding="utf-8").splitlines()]
    said = [(line[1], "late" if line[0] == "late" else line[4].split(":")[0]) for line in lines]
    kinds = [kind for kind, _ in Counter(kind for _, kind in said).most_common()]
    counts = Counter(said)
    judgements = Counter(line[0] for line in lines)
    text = [
        "# Verdicts of convergence studies", "",
        "Problems that are not chaotic with the schemes of the catalogue, steps chosen by the "
        f"study: {len(lines)} pairs were run. In {judgements['right']} the interval contains "
        f"the order of the method; in {judgements['explained']} it does not, or none is claimed, "
        f"and the cause that is named can be the one; {judgements['wrong']} are wrong, "
        f"{judgements['late']} took too long. Written by `benchmarks/verdicts.py`, which says how "
        "they are judged.", "",
        f"| problem | {' | '.join(kinds)} |", f"|---|{'---:|' * len(kinds)}",
    ]  # fmt: skip
    for problem in sorted({problem for problem, _ in said}):
        cells = [str(counts[problem, kind] or "") for kind in kinds]
        text.append(f"| {problem} | {' | '.join(cells)} |")
    wrong = [f"- {line[1]}, {line[2]}: {line[4]}" for line in lines if line[0] == "wrong"]
    text += ["", "Wrong:", "", *wrong] if wrong else []
    return "\n".join([*text, ""])


def _there(path: Path | None) -> bool:
    return path is not None and path.exists()


if __name__ == "__main__":
    main()
