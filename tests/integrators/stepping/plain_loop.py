"""The rules of the time loop in plain Python, written from their description and not from the code.

An explicit method with an embedded one (or step doubling) from a first guess after Hairer, Nørsett
& Wanner II.4, with a controller of up to three errors. States may be complex: NumPy sees to it.
Step doubling does not see f at the end: a slope there that is further from the last stage's than
the tolerance, and than ten times what slopes differ by, is the error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

EPS = np.finfo(float).eps


@dataclass
class PlainRun:
    """Times and states after each step, steps rejected, and why it ended if it failed."""

    t: list[float]
    y: list[Any]
    rejected: int = 0
    failure: str = ""
    trials: list[float] = field(default_factory=list)


def plain_run(
    f: Any, t_span: Any, y0: Any, tableau: Any, rtol: float, atol: float, controller: Any,
    first_step: float | None = None, max_step: float = np.inf, min_step: float = 0.0,
    stops: Any = (), norm: str = "rms", most: int = 10_000,
) -> PlainRun:  # fmt: skip
    """Integrate; the options are those of ``solve``."""
    t0, t1 = t_span
    forward = np.sign(t1 - t0)
    y = np.array(y0) + 0.0
    A, b = np.array(tableau.A, dtype=float), np.array(tableau.b, dtype=float)
    weights = tableau.error_weights
    order = tableau.order if weights is None else min(tableau.order, tableau.embedded_order)

    def size(x: Any, *states: Any) -> float:
        scaled = np.abs(x) / (atol + rtol * np.max(np.abs(states), axis=0))
        return float(scaled.max() if norm == "max" else np.sqrt(np.mean(scaled**2)))

    def step(t: float, y: Any, h: float) -> tuple[Any, Any, Any]:
        stages: list[Any] = []
        for row, c in zip(A, A.sum(axis=1)):
            x = y + h * sum((a * k for a, k in zip(row, stages)), np.zeros_like(y))
            stages.append(np.asarray(f(t + c * h, x)))
        new = y + h * sum(weight * k for weight, k in zip(b, stages))
        if weights is None:
            return new, None, stages
        return new, h * sum(weight * k for weight, k in zip(weights, stages)), stages

    def attempt(t: float, y: Any, h: float) -> tuple[Any, float]:
        new, error, first = step(t, y, h)
        if weights is not None:
            return new, size(error, y, new)
        half = step(t, y, h / 2)[0]
        whole, (new, _, stages) = new, step(t + h / 2, half, h / 2)
        found = size((new - whole) / (2**tableau.order - 1), y, new)
        if found < 1:
            surprise = size(h / 2 * (np.asarray(f(t + h, new)) - stages[-1]), y, new)
            spread = max(size(h / 2 * (k - first[0]), y, new) for k in stages)
            if np.isfinite(surprise) and surprise > max(1, 10 * spread):
                return new, surprise
        return new, found

    def factor(errors: list[float]) -> float:
        product = controller.safety
        for error, beta in zip(errors, controller.beta):
            product *= max(error, 1e-10) ** (-beta / (order + 1))
        return product

    h = first_step or _first_guess(f, t0, t1, y, order, lambda x, now: _rms(x, now, rtol, atol))
    h = min(h, max_step, abs(t1 - t0))
    run = PlainRun([t0], [y])
    errors: list[float] = []  # of accepted steps, the last first
    t, just_rejected = t0, False
    for stop in [*stops, t1]:
        just_rejected = False
        while t != stop:
            if len(run.trials) >= most:
                run.failure = "too many"
                return run
            smallest, remaining = max(min_step, 16 * EPS * abs(t)), abs(stop - t)
            proposed = min(h, max_step)
            if proposed < smallest and 1.01 * proposed < remaining:
                if just_rejected:
                    run.failure = "too small"
                    return run
                proposed = smallest
            last = remaining <= 1.01 * proposed and remaining <= (1 + 1e-9) * max_step
            length = (stop - t) if last else forward * proposed
            new, error = attempt(t, y, (stop - t) if last else t + length - t)
            run.trials.append(abs(length))
            if np.isfinite(error) and np.isfinite(new).all() and error <= 1:
                t, y = (stop if last else t + length), new
                run.t.append(t)
                run.y.append(y)
                change = factor([error, *errors])
                change = min(controller.max_factor, max(controller.min_factor, change))
                change = min(change, 1.0) if just_rejected else change
                h = abs(length) * change
                h = max(h, proposed) if last and change >= 1 else h
                errors, just_rejected = [max(error, 1e-10), *errors][:2], False
                continue
            run.rejected += 1
            just_rejected = True
            if np.isfinite(error) and np.isfinite(new).all():
                change = controller.safety * error ** (-1 / (order + 1))
                h = abs(length) * min(1.0, max(controller.min_factor, change))
            else:
                h = abs(length) / 4
            if h < smallest:
                run.failure = "too small"
                return run
    return run


def _rms(x: Any, y: Any, rtol: float, atol: float) -> float:
    return float(np.sqrt(np.mean((np.abs(x) / (atol + rtol * np.abs(y))) ** 2)))


def _first_guess(f: Any, t0: float, t1: float, y: Any, order: int, size: Any) -> float:
    slope, length = np.asarray(f(t0, y)), abs(t1 - t0)
    d0, d1 = size(y, y), size(slope, y)
    h = min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, length)
    way = np.sign(t1 - t0) * h
    d2 = size(np.asarray(f(t0 + way, y + way * slope)) - slope, y) / h
    if not np.isfinite(d2):
        return 1e-3 * h
    if max(d1, d2) <= 1e-15:
        return min(100 * h, max(1e-6, 1e-3 * h), length)
    return min(100 * h, (0.01 / max(d1, d2)) ** (1 / (order + 1)), length)
