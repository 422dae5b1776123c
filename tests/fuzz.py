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
from typing import Any

import numpy as np

from integrators import Event, Solution, Tableau, catalogue, solve, solve_many
from multibody import assemble, load_model, mechanisms, save_model
from multibody.runs.dae import as_dae

SLOWEST = 20.0  # seconds of the processor; a first run compiles

METHODS = ("RK4", "DOPRI5", "DOP853", "RADAU5", "SDIRK4", "Gauss2", "no such method")
MODELS = ("pendulum", "double_pendulum", "cart_pole", "four_bar", "serial_arm")


def number(rng: np.random.Generator) -> float:
    """A number of any size, now and then none."""
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 1e-300, -1.0]
    return (
        float(rng.choice(odd)) if rng.random() < 0.1 else float(rng.normal() * 10 ** rng.normal())
    )


def checked(solution: Solution) -> str:
    """What the run says of itself, held to what it returned."""
    t, y = solution.t, solution.y
    t0, t1 = solution.problem.t_span
    forward = 1.0 if t1 >= t0 else -1.0
    if solution.success and not np.all(np.isfinite(y)):
        raise AssertionError(f"not finite, and a success: {solution!r}")
    if y.shape != (solution.problem.n, t.size) or not solution.message:
        raise AssertionError(f"columns {y.shape} for {t.size} times, or no message: {solution!r}")
    if np.any(forward * np.diff(t) < 0) or np.any(forward * (t - t0) < 0):
        raise AssertionError(f"times are not in order: {t}")
    if t.size and forward * (t[-1] - t1) > 0:
        raise AssertionError(f"the end {t1} was passed: {t[-1]}")
    if solution.sol is not None and t.size and np.isfinite(y).all():
        between = np.linspace(t[0], t[-1], 7)
        inside = solution.sol(np.clip(between, solution.sol.t_min, solution.sol.t_max))
        if not np.isfinite(inside).all():
            raise AssertionError(f"not finite between good states: {solution!r}")
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


def some_options(rng: np.random.Generator, span: tuple[float, float], n: int) -> dict[str, Any]:
    """Options of ``solve`` and ``solve_many``, some of them senseless."""
    options: dict[str, Any] = {"max_steps": 2000}
    inside = sorted(rng.uniform(*sorted(span), 4), reverse=span[1] < span[0])
    if rng.random() < 0.5:
        options |= {"rtol": abs(number(rng)), "atol": abs(number(rng))}
    if rng.random() < 0.3:
        options["t_eval"] = [span[0], *inside, span[1]] if rng.random() < 0.5 else inside
    if rng.random() < 0.2:
        options["tstops"] = inside[:2]
    for name in ("first_step", "max_step", "min_step", "step"):
        if rng.random() < 0.1:
            options[name] = abs(number(rng))
    if rng.random() < 0.3:
        level, k = number(rng), int(rng.integers(n))
        reset = (lambda t, y: -0.5 * y) if rng.random() < 0.5 else None
        options["events"] = Event(
            lambda t, y: y[k] - level,
            direction=float(rng.integers(-1, 2)),
            terminal=bool(rng.random() < 0.3),
            reset=reset,
        )
    return options


def some_span(rng: np.random.Generator) -> tuple[float, float]:
    if rng.random() < 0.2:
        return number(rng), number(rng)
    return float(rng.choice([0.0, -1.0, 5.0])), float(rng.uniform(-3, 8))


def finite(span: tuple[float, float]) -> tuple[float, float]:
    return span if np.isfinite(span).all() and np.ptp(span) < 1e100 else (0.0, 1.0)


def fuzz_solve(rng: np.random.Generator, folder: Path) -> str:
    """Any method, any tolerance, any interval, events and output times."""
    n = int(rng.integers(1, 5))
    span = some_span(rng)
    options = some_options(rng, finite(span), n)
    f, y0 = right_hand_side(rng, n), [number(rng) for _ in range(n)]
    return checked(
        solve(
            f,
            span,
            y0,
            method=str(rng.choice(METHODS)),
            dense_output=bool(rng.integers(2)),
            **options,
        )
    )


def fuzz_solve_many(rng: np.random.Generator, folder: Path) -> str:
    """A few runs at once, in lanes or one by one."""
    n = int(rng.integers(1, 4))
    span = some_span(rng)
    options = some_options(rng, finite(span), n)
    y0 = np.array([[number(rng) for _ in range(n)] for _ in range(3)])
    method = str(rng.choice(["DOPRI5", "BS23", "DOP853", "RADAU5"]))
    many = solve_many(right_hand_side(rng, n), span, y0, method=method, **options)
    if np.any((many.status >= 0) & ~np.all(np.isfinite(many.y), axis=-1)):
        raise AssertionError("not finite, and a success")
    reached = (many.t_eval - many.t[:, None]) * np.sign(span[1] - span[0]) <= 0
    if not np.isfinite(many.y_eval.swapaxes(1, 2)[reached & (many.status >= 0)[:, None]]).all():
        raise AssertionError("output times that were reached are not finite")
    if not all(many.message):
        raise AssertionError("a run without a message")
    return "ran, some failed" if (many.status < 0).any() else "ran"


def fuzz_as_dae(rng: np.random.Generator, folder: Path) -> str:
    """A mechanism from a state on its constraints, in a random formulation."""
    entry = mechanisms.entry(str(rng.choice(["four_bar", "five_bar", "slider_crank"])))
    formulation = str(rng.choice(["index1", "index2", "index3", "ggl", "projected", "baumgarte"]))
    t_span = (0.0, rng.uniform(0.01, 0.3))
    model = entry.model()
    q0 = assemble(model, rng.normal(size=model.nq)).q  # so that it gets past the door
    problem = as_dae(model, q0, t_span=t_span, formulation=formulation)
    return checked(solve(problem, method="RADAU5", max_steps=2000))


def spoiled(rng: np.random.Generator, data: bytes) -> bytes:
    """Some bytes changed, cut or repeated; half of the time only digits, so that it may be read."""
    out = bytearray(data)
    digits = [k for k, byte in enumerate(out) if byte in b"0123456789"]
    if digits and rng.random() < 0.5:
        for k in rng.choice(digits, int(rng.integers(1, 4))):
            out[k] = int(rng.choice(list(b"0123456789-.")))
        return bytes(out)
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


#: How often each is drawn, so that they take about the same time.
WEIGHTS = {
    fuzz_solve: 6,
    fuzz_solve_many: 4,
    fuzz_as_dae: 1,
    fuzz_model: 6,
    fuzz_tableau: 6,
    fuzz_solution: 3,
}
CASES = [case for case, weight in WEIGHTS.items() for _ in range(weight)]


def run(seconds: float, seed: int) -> tuple[Counter[str], list[str]]:
    """Counts of what happened, and findings: how to repeat each, and its traceback."""
    counts: Counter[str] = Counter()
    findings: list[str] = []
    end, k = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < end:
            case = CASES[k % len(CASES)]
            started = time.process_time()
            try:
                with np.errstate(all="ignore"):
                    outcome = case(np.random.default_rng([seed, k]), Path(folder))
            except (TypeError, ValueError) as error:
                outcome = "refused" if str(error) else "refused without a word"
            except Exception:
                outcome = "FINDING"
                findings.append(f"{case.__name__}, seed {seed}, case {k}\n{traceback.format_exc()}")
            if time.process_time() - started > SLOWEST and k >= 2 * len(CASES):
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
