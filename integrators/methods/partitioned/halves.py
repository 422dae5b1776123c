"""Whether y = (q, v) is separable, or of second order, as methods of this family need it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP

__all__ = ["Halves", "halves_of"]

SAME = 1e-10  # relative difference of slopes that are the same, but for rounding errors
PROBES = 3
WAY = 0.01  # by how much states are moved in a probe, in units of their size


@dataclass(frozen=True)
class Halves:
    """What is known of q' and v'.

    Attributes
    ----------
    separable
        q' does not depend on q, v' not on v.
    second_order
        Moreover, q' = v.
    reason
        What speaks against it, in words.
    """

    separable: bool
    second_order: bool
    reason: str = ""


def halves_of(problem: IVP) -> Halves:
    """Look at f: at its graph where it is traced, else at its values near the start."""
    n = problem.n
    if n % 2:
        return Halves(False, False, f"the state has {n} components, which cannot be halved")
    m = n // 2
    depends = _traced_pattern(problem)
    if depends is not None:
        rates, forces = depends[:m, :m], depends[m:, m:]
        reason = _in_words(rates, "q'", "q") or _in_words(forces, "v'", "v")
        if reason:
            return Halves(False, False, reason)
    return _probed(problem, m)


def _traced_pattern(problem: IVP) -> NDArray[np.bool_] | None:
    """Which components of f depend on which of y, if f is traced."""
    f: Any = problem.f
    if problem.y0.dtype.kind == "c" or not hasattr(f, "graph"):
        return None
    from ...tracing.calculus.dependence import dependence

    problem.bind(f)(problem.t_span[0], problem.y0)  # tells it n, if it did not know
    pattern: NDArray[np.bool_] = dependence(f.graph, 1, problem.n).toarray().astype(bool)
    return pattern


def _in_words(pattern: NDArray[np.bool_], what: str, on: str) -> str:
    where = np.argwhere(pattern)
    if not len(where):
        return ""
    i, j = where[0]
    return f"{what}[{i}] depends on {on}[{j}]"


def _probed(problem: IVP, m: int) -> Halves:
    """Compare f at the start with f where one half has been moved."""
    f = problem.bind(problem.f)
    t0, t1 = problem.t_span
    rng = np.random.default_rng(20)
    second_order = True
    y = np.array(problem.y0)
    for k in range(PROBES):
        t = t0 + 0.1 * k * (t1 - t0) / PROBES
        scale = WAY * np.maximum(np.abs(y), np.max(np.abs(y)) or 1.0)
        try:
            base = np.asarray(f(t, y.copy()))
            for half, other in ((slice(0, m), "q"), (slice(m, None), "v")):
                moved = y.copy()
                moved[half] += scale[half] * rng.uniform(0.5, 1.0, m)
                change = np.abs(np.asarray(f(t, moved)) - base)[half]
                size = np.abs(base)[half]
                if np.any(change > SAME * np.maximum(size, np.max(np.abs(base)) * 1e-3)):
                    i = int(np.argmax(change))
                    return Halves(False, False, f"{other}'[{i}] changes with {other}")
        except (
            Exception
        ):  # outside f's domain, perhaps: what f says at the start is told by the run
            if k == 0:
                return Halves(True, False)
            continue
        second_order = second_order and bool(np.all(base[:m] == y[m:]))
        y = y + scale * rng.uniform(-1.0, 1.0, 2 * m)
    return Halves(True, second_order)
