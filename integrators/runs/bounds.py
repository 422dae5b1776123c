"""Components declared non-negative, held against a run that has ended."""

from __future__ import annotations

import numpy as np

from ..problem import IVP
from .solution import Solution

__all__ = ["broken_bounds"]


def broken_bounds(ivp: IVP, solution: Solution) -> str:
    """A sentence for the solution's message, or an empty text.

    Steps that end below zero are rejected; output between steps, resets and projections may still
    lead there.
    """
    if not len(solution.t):
        return ""
    below = [int(i) for i in ivp.nonnegative if np.min(solution.y[i]) < 0]
    if not below:
        return ""
    names = ", ".join(f"y[{i}]" for i in below)
    least = float(np.min(solution.y[below]))
    return (
        f"; warning: {names} must not be negative but comes down to {least:.3g} between steps, by "
        "interpolation, or by a reset or a projection"
    )
