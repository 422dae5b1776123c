"""The order that errors show: a slope with its range of validity and its uncertainty.

Errors of a method of order p follow, over some range of step sizes,

    e(h) = C hᵖ (1 + D h + …) .

Steps too long are outside of it, because further terms matter; steps too short, because round-off
or the reference does. :func:`estimate_order` finds the range in three moves:

1. Points below the *floor* (round-off, accuracy of the reference) are set aside, and so is a tail
   along which the error has stopped falling.
2. Every window that ends at the finest point left is fitted by C hᵖ, C hᵖ (1 + D h) and
   C hᵖ (1 + D h²), points weighing as much as they are known; :mod:`order_fit` says how, and how
   the half-width of the interval is found.
3. The window with the narrowest interval is looked for at the fine end, over steps whose ratio is
   at most eight. Longer steps join as long as they agree with it and their slope is near: that is
   the asymptotic range. If the interval cannot tell neighbouring integers apart, no order is
   claimed, and the reason is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .order_fit import NARROWEST, fit_power, least

__all__ = ["OrderEstimate", "average_slope", "estimate_order", "round_off_floor"]

Array = NDArray[np.float64]

FEWEST = 3  # points that an order needs: with two, any error has a slope
WIDEST = 0.5  # half-width up to which an interval tells neighbouring integers apart
BETWEEN = 0.1  # distance from an integer, or half of the half-width, of a slope still on its way
FLAT = 0.3  # a slope below this at the fine end means that the error has stopped falling
CLEAR_OF_FLOOR = 10.0  # a floor changes errors at this multiple of it by a tenth
LEAST_FALL = 2.0  # by which the error must fall within the range
ROUND_OFF = 30.0  # floor in units of ε √N: there a random walk of roundings is 3 % of the error
SHORTFALL = 0.75  # of an average slope that has not settled, and still calls for a diagnosis
LEAVING, AWAY = 4, 0.05  # slopes in a row that go away from an order, so far beyond its interval
SHOWN = 6  # slopes at the fine end that a reason speaks of
NEAR, FAR = 2.0, 8.0  # least and largest ratio of the steps of a window

USED, OPEN, COARSE, ROUNDING, REFERENCE, STALLED, GAP = (
    "used",
    "not used",
    "pre-asymptotic",
    "round-off",
    "reference",
    "stalled",
    "failed",
)


@dataclass(frozen=True)
class OrderEstimate:
    """What errors at several step sizes say about the order.

    Attributes
    ----------
    order : float
        Slope in the asymptotic range, NaN if none was found.
    low, high : float
        Confidence interval, 95 %.
    marks : tuple of str
        For each point "used", or why it is not: "pre-asymptotic", "round-off", "reference" (below
        the accuracy of the reference), "stalled" (the error has stopped falling), "failed";
        "not used" if no order was found.
    slopes : tuple of float
        Slope from each point to the next finer valid one, NaN at the last.
    reason : str
        Why no order is claimed; empty if one is.
    stalled_at : float
        Error at which a run of points got stuck far above round-off, else NaN.
    obstacle : str
        The same as ``reason`` in a word: "pre-asymptotic" (steps are too long, or too few, for the
        slope to settle), "round-off", "reference", "stalled", "failed"; empty if an order is
        claimed.
    """

    order: float
    low: float
    high: float
    marks: tuple[str, ...]
    slopes: tuple[float, ...] = field(repr=False)
    reason: str = ""
    stalled_at: float = float("nan")
    obstacle: str = ""

    @property
    def found(self) -> bool:
        """Whether an order is claimed."""
        return not self.reason

    def __contains__(self, order: float) -> bool:
        """Whether an order lies in the confidence interval."""
        return bool(self.low <= order <= self.high)

    def __str__(self) -> str:
        if not self.found:
            return f"no order: {self.reason}"
        return f"{self.order:.2f} ± {(self.high - self.low) / 2:.2f}"


def round_off_floor(steps: int) -> float:
    """Relative error that rounding may leave after so many steps.

    Examples
    --------
    >>> f"{round_off_floor(100):.1e}"
    '6.7e-14'
    """
    return float(ROUND_OFF * np.finfo(float).eps * np.sqrt(max(steps, 1)))


def average_slope(known: Sequence[tuple[float, float]]) -> float:
    """Return the slope from the first to the last of several steps with their errors."""
    (h0, e0), (h1, e1) = known[0], known[-1]
    return float(np.log(e0 / e1) / np.log(h0 / h1))


def estimate_order(
    steps: Sequence[float],
    errors: Sequence[float | None],
    floors: Sequence[float] | float = 0.0,
    *,
    uncertainty: float = 0.0,
) -> OrderEstimate:
    """Estimate the order from errors at several step sizes.

    Parameters
    ----------
    steps
        Step sizes h > 0, in any order, no two equal.
    errors
        The error at each; None or NaN where a run failed.
    floors
        Level of round-off, one for each step size or one for all.
    uncertainty
        Error of what the errors were measured against.

    Returns
    -------
    OrderEstimate
        With an order only if the data support one.

    Raises
    ------
    ValueError
        For step sizes that are not positive or not different, and lists of different lengths.

    Examples
    --------
    >>> h = [0.1, 0.05, 0.025, 0.0125]
    >>> estimate = estimate_order(h, [3 * x**4 * (1 + x) for x in h])
    >>> print(estimate)
    4.00 ± 0.10
    >>> print(estimate_order(h, [2e-16, 3e-16, 1e-16, 2e-16], 1e-14))
    no order: all errors are at the level of round-off; take longer steps
    """
    h, e, floor = _checked(steps, errors, floors)
    sorting = np.argsort(-h)
    marks = np.array([GAP] * h.size, dtype=object)
    valid = [i for i in sorting if np.isfinite(e[i])]
    failed = h.size - len(valid)
    for i in valid:
        limit = CLEAR_OF_FLOOR * uncertainty
        marks[i] = ROUNDING if e[i] <= floor[i] else REFERENCE if e[i] <= limit else USED
    left = [i for i in valid if marks[i] == USED]
    level, stalled = _set_tail_aside(left, h, e, floor, marks)
    left = [i for i in left if marks[i] == USED]
    slopes = _slopes(valid, h, e)
    order = half = float("nan")
    obstacle, reason = _too_few(left, marks, failed)
    if not reason:
        noise = (floor[left] / ROUND_OFF + uncertainty + level) / e[left]
        start, order, half = _best_window(h[left], e[left], noise)
        marks[left[:start]] = COARSE
        cut = bool(np.any(marks == ROUNDING))
        obstacle, reason = _not_convincing(
            order, half, e[left[start:]], slopes[left[start:-1]], cut
        )
    if reason:
        marks[left] = OPEN
        order = half = float("nan")
    return OrderEstimate(
        order, order - half, order + half, tuple(marks), tuple(map(float, slopes)), reason,
        stalled, obstacle,
    )  # fmt: skip


def _checked(
    steps: Sequence[float], errors: Sequence[float | None], floors: object
) -> tuple[Array, Array, Array]:
    h = np.array(steps, dtype=np.float64)
    e = np.array([np.nan if x is None else x for x in errors], dtype=np.float64)
    if h.ndim != 1 or h.shape != e.shape:
        raise ValueError(f"got {h.size} step sizes and {e.size} errors; give one error for each")
    if not (np.all(np.isfinite(h)) and np.all(h > 0)):
        raise ValueError(f"step sizes must be positive and finite, got {list(steps)}")
    if np.unique(h).size != h.size:
        raise ValueError(f"step sizes must differ from each other, got {list(steps)}")
    if np.any(e < 0):
        raise ValueError("errors must not be negative; take their absolute values")
    return h, e, np.broadcast_to(np.asarray(floors, dtype=np.float64), h.shape)


def _slopes(valid: Sequence[int], h: Array, e: Array) -> Array:
    slopes = np.full(h.size, np.nan)
    for i, j in pairwise(valid):
        if e[i] > 0 and e[j] > 0:
            slopes[i] = np.log(e[i] / e[j]) / np.log(h[i] / h[j])
    return slopes


def _set_tail_aside(
    left: Sequence[int], h: Array, e: Array, floor: Array, marks: NDArray[np.object_]
) -> tuple[float, float]:
    """Mark the fine end where errors no longer fall.

    Returns the level at which they lie, 0 without such an end; and the same if that is far above
    round-off, else NaN.
    """
    end = len(left)
    while end >= 2:
        i, j = left[end - 2], left[end - 1]
        if np.log(e[i] / e[j]) / np.log(h[i] / h[j]) >= FLAT:
            break
        end -= 1
    if end == len(left):
        return 0.0, float("nan")
    level = float(np.median(e[left[end:]]))
    rounding = level <= 100 * float(np.max(floor[left]))
    for k, i in enumerate(left):
        if k >= end or e[i] < CLEAR_OF_FLOOR * level:
            marks[i] = ROUNDING if rounding else STALLED
    return level, float("nan") if rounding else level


def _too_few(left: Sequence[int], marks: NDArray[np.object_], failed: int) -> tuple[str, str]:
    """Say why there are not enough points, in a word and in a sentence; or nothing."""
    if len(left) >= FEWEST:
        return "", ""
    counts = {mark: int(np.sum(marks == mark)) for mark in (ROUNDING, REFERENCE, STALLED)}
    if marks.size < FEWEST and not counts[ROUNDING]:
        return COARSE, f"an order needs at least {FEWEST} step sizes, got {marks.size}"
    if failed and failed > marks.size - FEWEST:
        return GAP, f"runs failed at {failed} of {marks.size} step sizes; take shorter steps"
    if counts[STALLED] >= max(counts.values()):
        return STALLED, "the error does not fall with the step size"
    if counts[ROUNDING] == marks.size:
        return ROUNDING, "all errors are at the level of round-off; take longer steps"
    which = ROUNDING if counts[ROUNDING] >= counts[REFERENCE] else REFERENCE
    what = "round-off" if which == ROUNDING else "the error of the reference"
    above = len(left) if left else "none"
    return which, f"{above} of {marks.size} errors are above {what}; take more and longer steps"


def _best_window(h: Array, e: Array, noise: Array) -> tuple[int, float, float]:
    """Return start, slope and half-width of the asymptotic range."""
    fewest = min(FEWEST + 1, len(h))
    best, narrowest, settled = (0, float("nan"), float("inf")), float("inf"), float("nan")
    for start in range(len(h) - fewest, -1, -1):
        span = h[start] / h[-1]
        if start > 0 and span < NEAR * (1 - 1e-9):
            continue
        fit = fit_power(h[start:], e[start:], noise[start:])
        first = np.log(e[start] / e[start + 1]) / np.log(h[start] / h[start + 1])
        if start < len(h) - fewest and abs(first - fit.order) > WIDEST:
            if narrowest <= WIDEST:
                break  # further terms rule there, however well they are understood
            continue  # few points that scatter: more of them may tell
        near = span <= FAR * (1 + 1e-9) or not np.isfinite(narrowest)
        if near and fit.half < narrowest:
            narrowest, settled = fit.half, fit.order
        if fit.half <= narrowest + NARROWEST[0] and abs(fit.order - settled) <= least(settled):
            best = start, fit.order, fit.half
        elif not near:
            break  # what came before the range cannot belong to it
    return best


def _not_convincing(
    order: float, half: float, e: Array, slopes: Array, cut: bool
) -> tuple[str, str]:
    """Say why an order is not claimed, in a word and in a sentence; or nothing."""
    last = slopes[-SHOWN:]
    seen = f"last slopes from {np.min(last):.2f} to {np.max(last):.2f}"
    if half > WIDEST and cut:
        return ROUNDING, f"round-off sets in before the slope has settled ({seen})"
    if half > WIDEST:
        return COARSE, f"the slope has not settled ({seen}); take shorter steps, or more of them"
    if e[0] < LEAST_FALL * e[-1] or order - half < FLAT:
        return STALLED, f"the error hardly falls ({seen}); take step sizes further apart"
    away = np.abs(slopes[-LEAVING:] - order)
    if len(away) == LEAVING and np.all(np.diff(away) > 0) and away[-1] > half + AWAY:
        which = ROUNDING if cut else COARSE
        return which, f"the slope leaves {order:.2f} as steps get shorter ({seen})"
    if cut and abs(order - round(order)) > max(BETWEEN, half / 2):
        # Orders are integers, but for solutions that are not smooth: this is on the way to one.
        # Where the leading error term is small, the next one may rule down to round-off.
        return ROUNDING, f"round-off sets in before the slope has settled on an integer ({seen})"
    return "", ""
