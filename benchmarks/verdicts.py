"""Every method of the catalogue on every problem that is not chaotic: is the verdict right?

    python benchmarks/verdicts.py --problems kepler,pendulum --methods RK4,DOP853
    python benchmarks/verdicts.py --seed 1 --sample 50

For each pair the order is estimated with steps chosen by the study. A verdict is *right* if the
interval contains the order of the tableau, *explained* if no order is claimed and the obstacle is
named, or if it differs and a finding says why; *wrong* otherwise. Takes hours for all pairs.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter

from integrators import catalogue, problems
from integrators.analysis import convergence


def judged(problem: str, method: str) -> tuple[str, str]:
    """Return "right", "explained", "higher" or "wrong", and what was said."""
    try:
        (curve,) = convergence(problem, [method]).curves
    except ValueError as refused:
        return "refused", str(refused)
    estimate = curve.estimate
    text = (
        f"{curve.verdict}: {estimate}" if estimate.found else f"{curve.verdict} ({estimate.reason})"
    )
    causes = ", ".join(finding.cause for finding in curve.findings)
    text += f" [{causes}]" * bool(causes)
    if estimate.found and curve.expected in estimate:
        return "right", text
    if not estimate.found or (curve.findings and "no cause" not in causes):
        return "explained", text
    return ("higher" if curve.verdict == "higher" else "wrong"), text


def main() -> None:
    """Run over all pairs, or a sample of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default=None)
    parser.add_argument("--methods", default=None)
    parser.add_argument("--sample", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    plain = [e.name for e in problems.entries() if not e.chaotic]
    chosen = arguments.problems.split(",") if arguments.problems else plain
    methods = arguments.methods.split(",") if arguments.methods else catalogue.names()
    pairs = [(p, m) for p in chosen for m in methods]
    if arguments.sample is not None:
        pairs = random.Random(arguments.seed).sample(pairs, arguments.sample)
    tally: Counter[str] = Counter()
    for problem, method in pairs:
        start = time.perf_counter()
        result, text = judged(problem, method)
        tally[result] += 1
        seconds = time.perf_counter() - start
        print(f"{result:9} {problem:20} {method:18} {seconds:5.1f} s  {text}", flush=True)
    print(dict(tally))


if __name__ == "__main__":
    main()
