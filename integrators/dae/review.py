"""What a formulation says of a run after its end; see ``review`` of :class:`integrators.IVP`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .acceleration import Weighted
from .system import Mechanical

__all__ = ["joined", "rank_review"]

Array = NDArray[np.float64]

SHRUNK = 1e-3
"""The last step relative to the longest, at most: a terminal event ends a run without that."""
DEPENDENT = 0.05
"""A relative singular value this much smaller than before tells of constraints that become
dependent: integrators give up at some distance, 0.004 rad from where a linkage is flat."""
SAMPLES = 20  # places on the way to compare with


def joined(first: Callable[..., Any] | None, second: Callable[..., Any]) -> Callable[..., Any]:
    """One review of two: what both say, and the first status."""
    if first is None:
        return second

    def review(*arguments: Any) -> Any:
        remarks = [found for r in (first, second) if (found := r(*arguments)) is not None]
        statuses = [status for status, _ in remarks if status is not None]
        text = "; ".join(text for _, text in remarks if text)
        return (statuses[0] if statuses else None, text) if remarks else None

    return review


def rank_review(mechanical: Mechanical) -> Callable[..., Any]:
    """Return a review that says where constraints became dependent and stopped a run.

    A run that ended on the way, its steps becoming short, is looked at where it ended: if the
    smallest singular value of G that counts, mass-weighted and relative to the largest, is much
    smaller there than it was before, that is the reason. Runs that reach their end cost nothing.
    """

    def review(problem: Any, t: Array, y: Array, rtol: float | None) -> Any:
        steps = np.abs(np.diff(t))
        if len(t) < 3 or t[-1] == problem.t_span[1] or steps[-1] > SHRUNK * steps.max():
            return None
        places = np.unique(np.linspace(0, len(t) - 1, SAMPLES).astype(int))
        found = [_relative(mechanical, problem, float(t[k]), y[:, k]) for k in places]
        if any(values is None for values in found):
            return None
        ratios = np.array(found)
        rank = int(np.max(np.sum(ratios > mechanical.rank_tolerance, axis=1)))
        if rank == 0:
            return None
        before, there = float(ratios[:-1, rank - 1].max()), float(ratios[-1, rank - 1])
        if there > DEPENDENT * before:
            return None
        return None, (
            f"the constraints become dependent there (a singular position): the smallest of {rank} "
            f"singular values of G, mass-weighted and relative to the largest, fell from "
            f"{before:.2g} to {there:.2g}. Jump over it with a fixed step and formulation("
            "'projected', solver='svd'), or use minimal coordinates with a closure; "
            "help(integrators.dae) has more"
        )

    return review


def _relative(mechanical: Mechanical, problem: Any, t: float, y: Array) -> Array | None:
    """All singular values of G, mass-weighted, relative to the largest."""
    q, v = problem.split(t, y)
    now = mechanical.terms(t, q, v, problem.params)
    if not now.finite:
        return None
    try:
        known = Weighted(now.M, now.G, mechanical.rank_tolerance)
    except ValueError:  # the mass matrix is not positive definite there: another matter
        return None
    values = np.linalg.svd(known.Y, compute_uv=False)
    return values / values[0] if values[0] > 0 else np.zeros_like(values)
