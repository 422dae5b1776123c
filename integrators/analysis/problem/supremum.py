"""The largest value of a function on a box: from below by search, from above by subdivision.

From below: the function at the middle, the corners and random points, then a compass search from
the best ones. From above: a bound that holds on a box (by interval arithmetic) is sharpened by
cutting the box with the largest bound in two, until it meets the value found from below or the
budget is spent (branch and bound; Moore, *Interval Analysis*, 1966).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Supremum", "search", "supremum"]

Array = NDArray[np.float64]

SAMPLES = 128
STARTS = 3  # compass searches start from the best samples
SMALLEST = 1e-13  # boxes are not cut below this part of the whole


@dataclass(frozen=True)
class Supremum:
    """lower ≤ sup ≤ upper, where the lower bound is attained, and the box of the upper one."""

    lower: float
    upper: float
    at: Array
    worst: tuple[Array, Array]
    boxes: int


def search(
    values: Callable[[Array], Array], lo: Array, hi: Array, *, samples: int = SAMPLES
) -> tuple[float, Array]:
    """Return a large value on a box and where it is attained.

    Parameters
    ----------
    values
        The function at m points, from shape (m, d) to (m,).

    Examples
    --------
    >>> best, at = search(lambda X: np.sin(X[:, 0]), np.array([0.0]), np.array([5.0]))
    >>> round(best, 9), round(float(at[0]), 3)
    (1.0, 1.571)
    """
    width = hi - lo
    free = np.flatnonzero(width > 0)
    random = np.random.default_rng(20211206)  # any fixed seed: results must be repeatable
    points = [np.array([(lo + hi) / 2])]
    if 0 < free.size <= 6:
        corners = np.tile(lo, (2**free.size, 1))
        for row, choice in zip(corners, itertools.product((0, 1), repeat=free.size)):
            row[free] = np.where(choice, hi[free], lo[free])
        points.append(corners)
    if free.size:
        points.append(lo + width * random.random((samples, lo.size)))
    X = np.concatenate(points)
    V = _clean(values(X))
    order = np.argsort(-V, kind="stable")
    best, at = float(V[order[0]]), X[order[0]]
    for start in order[:STARTS]:
        found = _compass(values, X[start], float(V[start]), lo, hi, free)
        if found[0] > best:
            best, at = found
    return best, np.asarray(at)


def _clean(V: Array) -> Array:
    """An infinite value, or none, is no candidate: the function is not defined there."""
    return np.where(np.isfinite(V), V, -np.inf)


def _compass(
    values: Callable[[Array], Array],
    x: Array,
    v: float,
    lo: Array,
    hi: Array,
    free: NDArray[np.intp],
) -> tuple[float, Array]:
    """Try ± a step along each axis; halve the step where nothing is gained."""
    step = 0.25
    directions = np.zeros((2 * free.size, lo.size))
    for k, i in enumerate(free):
        directions[2 * k, i], directions[2 * k + 1, i] = hi[i] - lo[i], lo[i] - hi[i]
    for _ in range(200):
        if step < 1e-12 or not free.size:
            break
        trial = np.clip(x + step * directions, lo, hi)
        V = _clean(values(trial))
        k = int(np.argmax(V))
        if V[k] > v:
            x, v = trial[k], float(V[k])
        else:
            step /= 2
    return v, x


def supremum(
    values: Callable[[Array], Array],
    bound: Callable[[Array, Array], float],
    lo: Array,
    hi: Array,
    *,
    gap: float = 1e-3,
    budget: int = 2000,
    active: NDArray[np.bool_] | None = None,
) -> Supremum:
    """Enclose the largest value of a function on a box.

    Parameters
    ----------
    values
        The function at m points.
    bound
        ``bound(lo, hi)``: a number that the function does not exceed on that box.
    gap
        Stop when upper − lower ≤ gap·|lower|.
    budget
        Most evaluations of ``bound``.
    active
        Which coordinates matter: the others are not cut.

    Examples
    --------
    >>> s = supremum(
    ...     lambda X: X[:, 0] - X[:, 0] ** 2,
    ...     lambda lo, hi: hi[0] - min(lo[0] ** 2, hi[0] ** 2),
    ...     np.array([0.0]), np.array([1.0]),
    ... )
    >>> bool(s.lower <= 0.25 <= s.upper <= 0.25 * 1.001)
    True
    """
    lower, at = search(values, lo, hi)
    width = hi - lo
    cuttable = width > 0
    if active is not None:
        cuttable &= active
    scale = np.where(cuttable, width, 1.0)
    first = bound(lo, hi)
    count = 1
    ticket = itertools.count()  # breaks ties in the heap
    heap = [(-first, next(ticket), lo, hi)]
    settled = -math.inf  # the largest bound of a box too small to cut
    settled_box = (lo, hi)
    while heap:
        upper = -heap[0][0]
        if upper <= max(lower + gap * abs(lower), settled) or count >= budget:
            break
        _, _, a, b = heapq.heappop(heap)
        relative = np.where(cuttable, (b - a) / scale, 0.0)
        i = int(np.argmax(relative))
        middle = a[i] / 2 + b[i] / 2
        if relative[i] < SMALLEST or not a[i] < middle < b[i]:
            settled, settled_box = upper, (a, b)
            break
        left, right = b.copy(), a.copy()
        left[i] = right[i] = middle
        centre = ((a + left) / 2, (right + b) / 2)
        lower_here = _clean(values(np.array(centre)))
        if lower_here.max() > lower:
            lower, at = float(lower_here.max()), centre[int(lower_here.argmax())]
        for c, d in ((a, left), (right, b)):
            heapq.heappush(heap, (-min(bound(c, d), upper), next(ticket), c, d))
        count += 2
    if heap and -heap[0][0] > settled:
        settled, settled_box = -heap[0][0], heap[0][2:]
    return Supremum(lower, max(settled, lower), at, settled_box, count)
