"""Motions of driven joints from tables and splines, as functions that can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..checks import Array, ArrayLike, real_array

__all__ = ["PiecewiseMotion", "as_motion", "time_slopes"]

# Central differences of sixth order: offsets, weights of the first and of the second derivative;
# the weight of the middle in the second one is −49/18.
OFFSETS = ((1, 3 / 4, 3 / 2), (2, -3 / 20, -3 / 20), (3, 1 / 60, 1 / 90))

#: Steps that are tried (s). The first one balances rounding ε/h² and truncation h⁶ of a motion
#: within seconds; smaller ones are for faster motions and for times next to a kink.
STEPS = (1e-2, 1e-3, 1e-4, 1e-5)

#: Relative difference of two steps' derivatives below which the larger step is trusted.
AGREEMENT = 1e-8


class PiecewiseMotion:
    """Polynomials between knots, of numbers or symbols; NaN before the first and after the last.

    A sum in which each piece ends with its interval, which needs no branches. At a knot the piece
    that begins there counts, so that derivatives have one value: its own.

    Parameters
    ----------
    knots
        Rising times.
    coefficients
        Of powers of the time since the knot, highest first: (degree + 1, pieces, variables).
    """

    def __init__(self, knots: Array, coefficients: Array) -> None:
        self.knots, self.coefficients = np.array(knots), np.array(coefficients)

    def __call__(self, t: Any) -> Any:
        """Positions at a time."""
        from integrators.tracing import where

        x, c = self.knots, self.coefficients
        lengths, beyond = np.diff(x), np.append(x[1:-1], np.nextafter(x[-1], np.inf))
        parts = [
            where(t < start, 0.0, where(t < end, t - start, length))
            for start, end, length in zip(x[:-1], beyond, lengths)
        ]
        s = np.array(parts)[:, None]
        grown = c[0] * s
        for power in c[1:-1]:
            grown = (grown + power) * s
        value = c[-1, 0] + np.sum(grown, axis=0)
        outside = where(t < x[0], np.nan, where(t > x[-1], np.nan, 0.0))
        return value + outside


def time_slopes(function: Callable[[float], Array], t: float) -> tuple[Array, Array, Array]:
    """Value, first and second derivative of a function of time, by differences.

    Of the steps that are tried those are taken whose results differ least from the next one's.

    Examples
    --------
    >>> x, v, a = time_slopes(lambda t: np.array([np.sin(t)]), 1.0)
    >>> bool(abs(v[0] - np.cos(1.0)) < 1e-12), bool(abs(a[0] + np.sin(1.0)) < 1e-10)
    (True, True)
    """
    now = function(t)
    tried = [_differences(function, t, now, STEPS[0])]
    off: list[float] = []
    for step in STEPS[1:]:
        tried.append(_differences(function, t, now, step))
        apart = [np.abs(a - b).max(initial=0.0) for a, b in zip(tried[-1], tried[-2])]
        size = 1.0 + np.abs(np.concatenate([now, *tried[-1]])).max(initial=0.0)
        off.append(max(apart) / size)
        if off[-1] < AGREEMENT:
            break
    first, second = tried[int(np.argmin(off))]
    return now, first, second


def _differences(
    function: Callable[[float], Array], t: float, now: Array, step: float
) -> tuple[Array, Array]:
    h = (t + step) - t  # what is left of it after rounding
    first, second = 0.0 * now, -49 / 18 * now
    for k, by_first, by_second in OFFSETS:
        ahead, behind = function(t + k * h), function(t - k * h)
        first = first + by_first * (ahead - behind)
        second = second + by_second * (ahead + behind)
    return first / h, second / h**2


def as_motion(motion: Any, n: int) -> Callable[[Any], Any]:
    """A function of time from what a user gives for n variables."""
    from scipy.interpolate import BSpline, CubicSpline, PPoly

    if isinstance(motion, tuple) and len(motion) == 2:
        motion = CubicSpline(*_table(*motion, n))
    if isinstance(motion, BSpline):
        motion = PPoly.from_spline(motion)
    if isinstance(motion, PPoly):
        x, c = motion.x, motion.c
        used = np.flatnonzero(np.diff(x) > 0.0)  # B-splines repeat their first and last knots
        return PiecewiseMotion(
            np.append(x[used], x[used[-1] + 1]), c.reshape(*c.shape[:2], -1)[:, used]
        )
    if not callable(motion):
        raise TypeError(
            "Driven: expected a function motion(t) -> q, a table (times, positions) or a spline of "
            f"SciPy, received {motion!r:.80}"
        )
    found: Callable[[Any], Any] = motion
    return found


def _table(times: ArrayLike, values: ArrayLike, n: int) -> tuple[Array, Array]:
    t, x = real_array(times, "Driven: times"), real_array(values, "Driven: positions")
    rows = (len(t),) if x.ndim == 1 and n == 1 else (len(t), n)
    if t.ndim != 1 or len(t) < 2 or x.shape != rows or np.any(np.diff(t) <= 0.0):
        raise ValueError(
            "Driven: expected a table (times, positions) with at least two rising times and a row "
            f"of {n} for each, received times of shape {t.shape} and positions of {x.shape}"
        )
    return t, x
