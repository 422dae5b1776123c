"""Limits of the steps, checked before a run: what they mean on a clock of double precision."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .control import RESOLVED

__all__ = ["RESOLVED", "attempts", "step_limits", "step_size"]

MAX_STEPS = 1_000_000
MOST_FIXED_STEPS = 1_000_000_000
UNLIMITED = 2**62  # what counters of 64 bits hold; no run gets there

Span = tuple[float, float]


def step_size(step: Any, span: Span) -> float:
    """Magnitude of a fixed step; it may carry the sign of a backward integration."""
    backwards = span[1] < span[0]
    size = float(step)
    if not np.isfinite(size) or size == 0 or (size < 0 and not backwards):
        raise ValueError(f"step must be a positive number, got {step}")
    size = abs(size)
    _check_feasible("step", size, span)
    return size


def step_limits(min_step: Any, max_step: Any, span: Span, may_end_early: bool) -> Span:
    """(min_step, max_step) as numbers.

    A ``max_step`` that cannot reach the end of the interval is refused, unless an event or a
    callback may end the run before: then the run says so when it gets stuck.
    """
    shortest, longest = float(min_step), float(max_step)
    if not 0 <= shortest < np.inf:
        raise ValueError(f"min_step must be a number ≥ 0, got {min_step}")
    if not longest > 0:
        raise ValueError(f"max_step must be positive, got {max_step}")
    if shortest > longest:
        raise ValueError(f"min_step = {min_step} is larger than max_step = {max_step}")
    if not may_end_early:
        _check_feasible("max_step", longest, span)
    return shortest, longest


def _check_feasible(name: str, size: float, span: Span) -> None:
    if abs(span[1] - span[0]) / size > MOST_FIXED_STEPS:
        raise ValueError(
            f"{name} = {size:g} means more than {MOST_FIXED_STEPS:,} steps over t_span = {span}; "
            f"make it larger, or the interval shorter"
        )
    latest = max(abs(span[0]), abs(span[1]))
    if span[0] != span[1] and size < RESOLVED * latest:
        raise ValueError(
            f"{name} = {size:g} is too short for t = {latest:g}: times there are rounded to "
            f"{np.spacing(latest):.2g} in double precision; make it larger, or shift the clock so "
            "that t starts at 0"
        )


def attempts(max_steps: Any, fixed: bool) -> int:
    """Most attempts, a whole number."""
    if max_steps is None:
        return 2 * MOST_FIXED_STEPS if fixed else MAX_STEPS
    try:
        count = 0 if isinstance(max_steps, bool) else operator.index(max_steps)
    except TypeError:
        whole = isinstance(max_steps, float) and max_steps.is_integer()
        count = int(max_steps) if whole else 0  # 1e6 is how many people write a million
    if count < 1:
        raise ValueError(
            f"max_steps must be at least 1, got {max_steps!r}; expected a whole number of "
            "attempts, or None for the default"
        )
    return min(count, UNLIMITED)
