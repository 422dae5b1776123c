"""Random input to whatever takes some: ``python -m tests.fuzz --minutes 10 --seed 1``.

Each case is a function of a random generator. It may be refused by a ValueError or TypeError with
a message, or end in a solution whose status says what happened. Anything else is a finding: another
exception, a NaN in a run that calls itself a success, a case that takes longer than its time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from integrators import Solution, Tableau, catalogue, solve, solve_many
from multibody import assemble, load_model, mechanisms, save_model
from multibody.runs.dae import as_dae

SLOWEST = 20.0  # seconds; a first run compiles

METHODS = ("RK4", "DOPRI5", "DOP853", "RADAU5", "SDIRK4", "Gauss2", "no such method")
MODELS = ("pendulum", "double_pendulum", "cart_pole", "four_bar", "serial_arm")


def number(rng: np.random.Generator) -> float:
    """A number of any size, now and then none."""
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 1e-300, -1.0]
    return (
        float(rng.choice(odd)) if rng.random() < 0.1 else float(rng.normal() * 10 ** rng.normal())
    )


def checked(solution: Solution) -> str:
    """What the run says of itself; a success has numbers."""
    if solution.success and not np.all(np.isfinite(solution.y)):
        raise AssertionError(f"not finite, and a success: {solution!r}")
    return str(solution.status.name)


def right_hand_side(rng: np.random.Generator, n: int):
    """A function of a few random terms, some of them hostile."""
    A, kind = rng.normal(size=(n, n)), rng.integers(6)
    terms = {
        0: lambda t, y: A @ y,
        1: lambda t, y: np.sin(A @ y) + t,
        2: lambda t, y: y * y,
        3: lambda t, y: A @ y if t < 0.5 else np.full(n, np.nan),
        4: lambda t, y: np.sqrt(y),
        5: lambda t, y: y[: n - 1],
    }
    return terms[int(kind)]


def fuzz_solve(rng: np.random.Generator, folder: Path) -> str:
    """Any method, any tolerance, any interval."""
    n = int(rng.integers(1, 5))
    options = {"max_steps": 2000, "dense_output": bool(rng.integers(2))}
    if rng.random() < 0.5:
        options |= {"rtol": abs(number(rng)), "atol": abs(number(rng))}
    f, y0 = right_hand_side(rng, n), [number(rng) for _ in range(n)]
    span = (number(rng), number(rng)) if rng.random() < 0.3 else (0.0, rng.uniform(0.1, 3))
    return checked(solve(f, span, y0, method=str(rng.choice(METHODS)), **options))


def fuzz_solve_many(rng: np.random.Generator, folder: Path) -> str:
    """A few runs at once."""
    y0 = np.array([[number(rng) for _ in range(2)] for _ in range(3)])
    many = solve_many(lambda t, y: [y[1], -y[0]], (0, 1), y0, max_steps=2000)
    if np.any((many.status >= 0) & ~np.all(np.isfinite(many.y), axis=-1)):
        raise AssertionError("not finite, and a success")
    return "ran"


def fuzz_as_dae(rng: np.random.Generator, folder: Path) -> str:
    """A mechanism from a state on its constraints, in a random formulation."""
    entry = mechanisms.entry(str(rng.choice(["four_bar", "five_bar", "slider_crank"])))
    formulation = str(rng.choice(["index1", "index2", "index3", "ggl", "projected", "baumgarte"]))
    t_span = (0.0, rng.uniform(0.01, 0.3))
    model = entry.build()
    q0 = assemble(model, rng.normal(size=model.nq)).q  # so that it gets past the door
    problem = as_dae(model, q0, t_span=t_span, formulation=formulation)
    return checked(solve(problem, method="RADAU5", max_steps=2000))


def spoiled(rng: np.random.Generator, data: bytes) -> bytes:
    """Some bytes changed, cut or repeated."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        place, kind = int(rng.integers(len(out) or 1)), rng.integers(4)
        if kind == 0 and out:
            out[place] = int(rng.integers(256))
        elif kind == 1:
            del out[place : place + int(rng.integers(1, 40))]
        elif kind == 2:
            out[place:place] = out[place : place + int(rng.integers(1, 40))]
        else:
            out[place:place] = b"9" * int(rng.integers(1, 30))
    return bytes(out)


def fuzz_model(rng: np.random.Generator, folder: Path) -> str:
    """A model file that somebody spoiled."""
    path = folder / f"model.{rng.choice(['toml', 'json'])}"
    save_model(mechanisms.get(str(rng.choice(MODELS))), path)
    path.write_bytes(spoiled(rng, path.read_bytes()))
    return f"read {load_model(path).n_bodies > 0}"


def fuzz_tableau(rng: np.random.Generator, folder: Path) -> str:
    """A tableau file that somebody spoiled."""
    path = folder / f"tableau.{rng.choice(['toml', 'json'])}"
    catalogue.get(str(rng.choice(["RK4", "DOPRI5", "Gauss2"]))).save(path)
    path.write_bytes(spoiled(rng, path.read_bytes()))
    return f"read {Tableau.load(path).stages > 0}"


def fuzz_solution(rng: np.random.Generator, folder: Path) -> str:
    """A saved solution that somebody spoiled."""
    path = folder / "solution.npz"
    solve(lambda t, y: -y, (0, 1), [1.0], dense_output=True).save(path)
    path.write_bytes(spoiled(rng, path.read_bytes()))
    return f"read {Solution.load(path).t.size > 0}"


CASES = [
    fuzz_solve,
    fuzz_solve_many,
    fuzz_as_dae,
    fuzz_model,
    fuzz_tableau,
    fuzz_solution,
]


def run(seconds: float, seed: int) -> tuple[Counter[str], list[str]]:
    """Counts of what happened, and findings: how to repeat each, and its traceback."""
    counts: Counter[str] = Counter()
    findings: list[str] = []
    end, k = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < end:
            case = CASES[k % len(CASES)]
            started = time.monotonic()
            try:
                with np.errstate(all="ignore"):
                    outcome = case(np.random.default_rng([seed, k]), Path(folder))
            except (TypeError, ValueError) as error:
                outcome = "refused" if str(error) else "refused without a word"
            except Exception:
                outcome = "FINDING"
                findings.append(f"{case.__name__}, seed {seed}, case {k}\n{traceback.format_exc()}")
            if time.monotonic() - started > SLOWEST and k >= 5 * len(CASES):
                findings.append(f"{case.__name__}, seed {seed}, case {k}: too slow")
            counts[f"{case.__name__}: {outcome}"] += 1
            k += 1
    return counts, findings


def main() -> int:
    """Run for some minutes and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    counts, findings = run(60 * arguments.minutes, arguments.seed)
    lines = [f"{many:8,}  {what}" for what, many in sorted(counts.items())]
    sys.stdout.write("\n".join([*lines, *findings, f"{len(findings)} findings"]) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
