"""Every method of the catalogue on every problem that is not chaotic: is the verdict right?

    python benchmarks/verdicts.py --out verdicts.tsv           # all pairs; goes on where it stopped
    python benchmarks/verdicts.py --problems kepler,pendulum --methods RK4,DOP853
    python benchmarks/verdicts.py --seed 1 --sample 50

For each pair the order is estimated with steps chosen by the study, and what it says is held
against what is known of the problem (:func:`judged`): "right" if the interval contains the order of
the tableau; "explained" if it does not, or none is claimed, and the cause that is named can be the
one; "wrong" otherwise. Pairs come in random order, so that any part of the table is a sample of it.
All of them take hours; several processes may share one file.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

from integrators import catalogue, problems
from integrators.analysis import convergence
from integrators.analysis.study.convergence_runs import Curve

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
        **dict.fromkeys(ANYWHERE, not curve.estimate.found),
    }  # fmt: skip
    return "explained" if possible.get(curve.verdict, False) else "wrong"


def told(curve: Curve) -> str:
    """Return verdict, estimate or reason, and causes, in a line."""
    estimate = curve.estimate
    text = str(estimate) if estimate.found else estimate.reason
    causes = "; ".join(finding.cause for finding in curve.findings)
    return f"{curve.verdict}: {text}" + f" [{causes}]" * bool(causes)


def main() -> None:
    """Run over all pairs, or a sample of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default=None)
    parser.add_argument("--methods", default=None)
    parser.add_argument("--sample", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a table to go on with")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    arguments = parser.parse_args()
    plain = [e.name for e in problems.entries() if not e.chaotic]
    chosen = arguments.problems.split(",") if arguments.problems else plain
    methods = arguments.methods.split(",") if arguments.methods else catalogue.names()
    pairs = [(p, m) for p in chosen for m in methods]
    random.Random(arguments.seed).shuffle(pairs)
    pairs = pairs[: arguments.sample]
    begin, tally = time.monotonic(), Counter[str]()
    for problem, method in pairs:
        done = arguments.out.read_text(encoding="utf-8") if _there(arguments.out) else ""
        if f"\t{problem}\t{method}\t" in done:
            continue
        if time.monotonic() - begin > 60 * arguments.minutes:
            break
        start = time.process_time()
        (curve,) = convergence(problem, [method]).curves
        seconds = time.process_time() - start
        line = "\t".join([judged(problem, curve), problem, method, f"{seconds:.1f}", told(curve)])
        print(line, flush=True)
        if arguments.out:
            with arguments.out.open("a", encoding="utf-8") as out:
                out.write(line + "\n")
        tally[line.split("\t")[0]] += 1
    if _there(arguments.out):
        kept = arguments.out.read_text(encoding="utf-8").splitlines()
        tally = Counter(line.split("\t")[0] for line in kept)
    print(dict(tally), f"of {len(pairs)} pairs")


def _there(path: Path | None) -> bool:
    return path is not None and path.exists()


if __name__ == "__main__":
    main()
