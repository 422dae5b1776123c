"""Motions of driven joints from tables and splines, as functions that can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..checks import Array, ArrayLike, real_array

__all__ = ["PiecewiseMotion", "as_motion"]


class PiecewiseMotion:
    """Polynomials between knots, of numbers or symbols; NaN before the first and after the last.

    A sum in which each piece ends with its interval, which needs no branches.

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
        s = np.clip(t - x[:-1], 0.0, np.diff(x))[:, None]
        grown = c[0] * s
        for power in c[1:-1]:
            grown = (grown + power) * s
        value = c[-1, 0] + np.sum(grown, axis=0)
        outside = where(t < x[0], np.nan, where(t > x[-1], np.nan, 0.0))
        return value + outside


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
