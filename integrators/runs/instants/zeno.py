"""Infinitely many events in finite time (Zeno): when that is so, and where it leads.

A ball that keeps the part e of its speed at every bounce bounces infinitely often before it rests,
at times whose gaps form a geometric series. Once the gaps are a billionth of the time that has
passed, times and states are extrapolated to their limits by Aitken's Δ² process,

    x∞ ≈ xₙ + d ρ / (1 − ρ),    d = xₙ − xₙ₋ₖ,    ρ = d / (xₙ₋ₖ − xₙ₋₂ₖ),

over strides of k events, so that the rounding of times matters little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LONGEST_MEMORY", "accumulates", "limit"]

ZENO_GAP = 1e-9  # resets closer together than this fraction of the time elapsed …
ZENO_COUNT = 8  # … so many times in a row are an accumulation point
LONGEST_MEMORY = 257  # states kept
ROUNDING = 4e-15  # of times, in parts of them
AGREE = 0.1  # ratios of whole and half strides that differ by more, relative to 1 − ρ, are none


def accumulates(times: Sequence[float], t0: float) -> bool:
    """Whether times pile up at one, in a run that started at t0."""
    recent = times[-ZENO_COUNT - 1 :]
    if len(recent) <= ZENO_COUNT:
        return False
    gaps = np.abs(np.diff(recent))
    return bool(np.all(gaps <= ZENO_GAP * abs(recent[-1] - t0)))


def limit(
    times: Sequence[float], states: Sequence[NDArray[Any]]
) -> tuple[float, NDArray[Any]] | None:
    """Where times and states lead; None if the times form no geometric series.

    Examples
    --------
    >>> times = [2.0 - 0.5**k for k in range(30)]
    >>> t, y = limit(times, [np.array([0.5**k, 3.0]) for k in range(30)])
    >>> round(t, 12), y.round(12).tolist()
    (2.0, [0.0, 3.0])
    """
    known = min(len(times), len(states))
    gaps = np.diff(times)
    if np.count_nonzero(np.abs(gaps) > ROUNDING * abs(times[-1])) < 2:
        return None  # nothing but rounding: chatter at one instant
    half = min((known - 1) // 4, max(ZENO_COUNT, known // ZENO_COUNT) // 2)
    if half < 1:
        return None
    t4, t3, t2, _, t0 = (float(times[-1 - i * half]) for i in range(5))
    ratio, root = _ratio(t0, t2, t4), _ratio(t2, t3, t4)
    if not (0.0 <= ratio < 1.0 and abs(root**2 - ratio) <= AGREE * (1.0 - ratio)):
        return None
    ends = (states[-1 - i * half] for i in (4, 2, 0))
    y = np.array([_extrapolated(a, b, c, ratio) for a, b, c in zip(*ends)], states[-1].dtype)
    return t4 + (t4 - t2) * ratio / (1.0 - ratio), y


def _ratio(first: Any, middle: Any, last: Any) -> Any:
    """(last − middle)/(middle − first); 0 where nothing moves any more."""
    if last == middle:
        return 0.0
    return (last - middle) / (middle - first) if middle != first else 1.0


def _extrapolated(first: Any, middle: Any, last: Any, of_times: float) -> Any:
    """Limit of a component; none converges more slowly than the times do."""
    own = _ratio(first, middle, last)
    ratio = own if abs(own) < of_times else of_times
    return last + (last - middle) * ratio / (1.0 - ratio)
