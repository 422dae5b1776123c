"""Does y' = f(t, y), y(t₀) = y₀ have a solution, only one, and for how long?

On the rectangle |t − t₀| ≤ a, |y_i − y₀_i| ≤ b_i:

Peano
    f continuous: there is a solution for |t − t₀| ≤ min(a, b/M), where M bounds |f|; with a b for
    each component, min(a, min_i b_i/M_i), since no component can leave the rectangle earlier.
Picard–Lindelöf
    f Lipschitz in y besides: it is the only one.

Continuity, M and the Lipschitz constant are proved by intervals if f can be traced. Where f is
not Lipschitz at y₀, scalar problems are examined further (:mod:`leaving`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...problem import IVP, state_array
from .fields import Field, doubts, enclose, lasting_doubts
from .leaving import Leaving, without_lipschitz
from .lipschitz import Constant, lipschitz
from .supremum import supremum

__all__ = ["Existence", "Leaving", "existence"]

Array = NDArray[np.float64]

SHRINK = 12  # times that the default box is halved in search of one where f is Lipschitz


@dataclass(frozen=True)
class Existence:
    """The verdict of :func:`existence`.

    Attributes
    ----------
    verdict : str
        "unique", "exists" (uniqueness not shown), "not unique", or "unknown".
    interval : tuple of float
        Where the solution is guaranteed to exist; (t0, t0) if nowhere.
    a, b
        The rectangle.
    M : array
        Bound of |f_i| on it, for each component.
    lipschitz : Constant or None
        Lipschitz constant on it.
    reasons : tuple of str
        The argument, step by step.
    solutions : tuple
        Functions of time: several different solutions, where the verdict is "not unique".
    """

    verdict: str
    t0: float
    y0: Array
    interval: tuple[float, float]
    a: float
    b: Array
    M: Array
    lipschitz: Constant | None
    reasons: tuple[str, ...]
    solutions: tuple[Callable[[Any], Any], ...] = ()

    def __str__(self) -> str:
        words = {
            "unique": "one solution, and only one",
            "exists": "at least one solution; uniqueness not shown",
            "not unique": "several solutions",
            "unknown": "no conclusion",
        }
        lines = [words[self.verdict], *self.reasons]
        return "\n  ".join(lines)


def existence(
    f: Any,
    t0: float | None = None,
    y0: ArrayLike | None = None,
    *,
    a: float | None = None,
    b: ArrayLike | None = None,
    params: Any = None,
    budget: int = 1000,
) -> Existence:
    """Decide by Peano and Picard–Lindelöf whether a solution exists and is unique.

    Parameters
    ----------
    f
        An IVP, a traced function, or ``f(t, y[, p])``.
    t0, y0
        Initial values; those of the IVP by default.
    a
        Half-length of the time interval; by default the length of the IVP's, else 1.
    b
        Half-widths of the box around y0, one number or one for each component. By default the
        multiple of 1 + |y0| that gives the longest interval of existence.
    params
        Parameters p of f.
    budget
        Most boxes to examine for each bound.

    Examples
    --------
    >>> result = existence(lambda t, y: y**2, 0.0, [1.0], a=1.0, b=1.0)
    >>> print(result)  # doctest: +NORMALIZE_WHITESPACE
    one solution, and only one
      f is continuous for |t − 0| ≤ 1, |y − y0| ≤ 1 (proved by intervals)
      there |f| ≤ 4, so no solution leaves before |t − 0| = 0.25 (Peano)
      there f is Lipschitz in y with L ≤ 4, so there is only one solution (Picard–Lindelöf)
    >>> existence(lambda t, y: np.sqrt(np.abs(y)), 0.0, [0.0]).verdict
    'not unique'
    """
    field, start, state, length = _initial(f, t0, y0, a, params)
    slope = field(start, state)
    if not np.isfinite(slope).all():
        reason = f"f(t0, y0) = {slope} is not finite: there is no problem to solve"
        nothing = np.zeros_like(state)
        return Existence(
            "unknown", start, state, (start, start), length, nothing, nothing, None, (reason,)
        )
    half = _half_widths(field, start, state, length, b)
    for attempt in range(SHRINK if b is None else 1):  # a box of our own may be made smaller
        if attempt:
            half = half / 2
        lo = np.concatenate([[start - length], state - half])
        hi = np.concatenate([[start + length], state + half])
        L = lipschitz(
            field.function, (lo[1:], hi[1:]), np.inf, t=(lo[0], hi[0]), params=field.p,
            budget=budget,
        )  # fmt: skip
        if L.is_lipschitz or (L.is_lipschitz is False and np.array_equal(L.y, state)):
            break
        if field.traced is None:
            break
    where = f"|t − {start:g}| ≤ {length:.4g}, |y − y0| ≤ {_short(half)}"
    if field.traced is None:
        return _by_samples(field, start, state, length, half, lo, hi, where, L)
    problems = lasting_doubts(field, lo, hi)
    if problems:
        reasons = [f"continuity is not proved for {where}: {', '.join(sorted(problems))}"]
        verdict, more, solutions = without_lipschitz(field, start, state, length, L)
        if L.is_lipschitz is False and state.size == 1:
            reasons += more[1:]
        verdict = "not unique" if verdict == "not unique" else "unknown"
        return Existence(
            verdict, start, state, (start, start), length, half, np.full(state.size, np.inf), L,
            tuple(reasons), solutions,
        )  # fmt: skip
    M = _largest_slope(field, lo, hi, budget)
    reach = _reach(length, half, M)
    reasons = [
        f"f is continuous for {where} (proved by intervals)",
        f"there |f| ≤ {_short(M)}, so no solution leaves before |t − {start:g}| = {reach:.6g} "
        "(Peano)",
    ]
    interval = (start - reach, start + reach)
    solutions = ()
    if L.is_lipschitz:
        verdict = "unique"
        reasons.append(
            f"there f is Lipschitz in y with L ≤ {L.upper:.4g}, so there is only one solution "
            "(Picard–Lindelöf)"
        )
    else:
        verdict, more, solutions = without_lipschitz(field, start, state, length, L)
        reasons += more
    return Existence(verdict, start, state, interval, length, half, M, L, tuple(reasons), solutions)


def _initial(
    f: Any, t0: float | None, y0: Any, a: float | None, params: Any
) -> tuple[Field, float, Array, float]:
    length = 1.0
    if isinstance(f, IVP):
        t0 = f.t_span[0] if t0 is None else t0
        y0 = f.y0 if y0 is None else y0
        length = abs(f.t_span[1] - f.t_span[0]) or 1.0
    if t0 is None or y0 is None:
        raise TypeError("existence(f, t0, y0) needs the initial values")
    if not math.isfinite(t0):
        raise ValueError(f"t0 must be finite, got {t0!r}")
    length = length if a is None else float(a)
    if not 0 < length < math.inf:
        raise ValueError(f"a must be a positive number, got {a!r}")
    state = state_array(y0)
    if np.iscomplexobj(state):
        raise ValueError("the state must be real; split it into real and imaginary parts")
    return Field(f, state.size, params), float(t0), state, length


def _half_widths(field: Field, t0: float, y0: Array, a: float, b: Any) -> Array:
    if b is not None:
        half = np.broadcast_to(np.asarray(b, dtype=float), y0.shape).copy()
        if not (np.isfinite(half).all() and (half > 0).all()):
            raise ValueError(f"b must be positive, one number or {y0.size} of them; got {b!r}")
        return half
    unit = 1 + np.abs(y0)
    best, chosen = -1.0, unit
    for factor in 2.0 ** np.arange(4, -15, -1):
        half = factor * unit
        lo = np.concatenate([[t0 - a], y0 - half])
        hi = np.concatenate([[t0 + a], y0 + half])
        if field.traced is not None:
            if doubts(field.graph, field.inputs(lo, hi)):
                continue
            M = _magnitude(*enclose(field.graph, field.inputs(lo, hi)))
        else:
            X = lo + (hi - lo) * np.random.default_rng(5).random((64, lo.size))
            M = np.max(np.abs(field.values(X[:, 0], X[:, 1:])), axis=0)
        reach = _reach(a, half, M)
        if reach > best * 1.001:  # shrink the box only where that gains something
            best, chosen = reach, half
    return chosen


def _magnitude(lo: Array, hi: Array) -> Array:
    return np.maximum(np.abs(lo), np.abs(hi))


def _reach(a: float, half: Array, M: Array) -> float:
    """min(a, min b_i/M_i)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(M > 0, half / M, np.inf)
    return float(min(a, np.min(np.where(np.isnan(ratios), 0.0, ratios))))


def _largest_slope(field: Field, lo: Array, hi: Array, budget: int) -> Array:
    """Return a proved bound of each |f_i| on the box."""

    def bound(i: int) -> float:
        def values(X: Array) -> Array:
            return np.abs(field.values(X[:, 0], X[:, 1:])[:, i])

        def above(a: Array, b: Array) -> float:
            return float(_magnitude(*enclose(field.graph, field.inputs(a, b)))[i])

        return supremum(values, above, lo, hi, budget=max(1, budget // field.n)).upper

    return np.array([bound(i) for i in range(field.n)])


def _by_samples(
    field: Field,
    t0: float,
    y0: Array,
    a: float,
    half: Array,
    lo: Array,
    hi: Array,
    where: str,
    L: Constant,
) -> Existence:
    """Nothing can be proved without a graph; say what the samples suggest."""
    X = lo + (hi - lo) * np.random.default_rng(5).random((256, lo.size))  # any fixed seed
    M = np.max(np.abs(field.values(X[:, 0], X[:, 1:])), axis=0)
    reasons = [
        f"f cannot be traced ({field.untraced}): nothing is proved, samples suggest",
        f"|f| up to {_short(M)} for {where}: about |t − {t0:g}| ≤ {_reach(a, half, M):.4g} to go",
        f"difference quotients up to {L.lower:.4g}" if L.is_lipschitz is None else str(L.quotients),
    ]
    verdict: str = "unknown"
    solutions: tuple[Callable[[Any], Any], ...] = ()
    if L.is_lipschitz is False:
        found, more, solutions = without_lipschitz(field, t0, y0, a, L)
        reasons += more[1:]
        verdict = found if found == "not unique" else "unknown"
    return Existence(verdict, t0, y0, (t0, t0), a, half, M, L, tuple(reasons), solutions)


def _short(values: Array) -> str:
    unique = np.unique(np.round(values, 12))
    if unique.size == 1:
        return f"{float(unique[0]):.6g}"
    return "(" + ", ".join(f"{v:.4g}" for v in values[:6]) + (", …)" if values.size > 6 else ")")
