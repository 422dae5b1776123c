"""Jumps of a right-hand side that its derivatives do not know of.

Where a traced f jumps (``where``, ``sign``) the solution has a kink, whose place moves with the
parameters: derivatives of the solution jump there by the saltation matrix. The variational
equation sees derivatives on both sides, and nothing of the jump; its solution is wrong from there
on. So runs are looked at for surfaces of f between their states, and f on both sides of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...hybrid.kinks import Kinks

__all__ = ["REMEDY", "first_jump", "reset_times"]

Array = NDArray[np.float64]

HALVINGS = 45
NEARBY = 1e-9  # part of the way between two states
JUMP = 1e-6  # relative change of f within that which is a jump
EPS = float(np.finfo(float).eps)

REMEDY = (
    "derivatives of the solution jump there, too, and the right-hand side alone does not tell how; "
    "let a component s with s' = 0 tell the side, and an Event with a reset change it"
)


def first_jump(f: Any, times: Array, states: Array, params: Array, resets: Array) -> float | None:
    """Return a time near which f jumps between two states of a run (columns), or None.

    Resets carry derivatives across what happens with them: where one falls between two states, or
    onto one, nothing is looked for.
    """
    surfaces = f._derive(("surfaces of jumps",), lambda: Kinks(f).jump_surfaces())
    if surfaces is None or len(times) < 2:
        return None
    p = (params,) if f.k else ()
    sides = np.array([np.sign(surfaces(float(t), y, *p)) for t, y in zip(times, states.T)])
    for i in np.flatnonzero((sides[1:] != sides[:-1]).any(axis=1)):
        start, end = (times[i], states[:, i]), (times[i + 1], states[:, i + 1])
        if start[0] == end[0] or ((resets - start[0]) * (resets - end[0]) <= 0.0).any():
            continue
        for k in np.flatnonzero(sides[i] != sides[i + 1]):
            t, change = _change_across(f, surfaces, int(k), start, end, p)
            if change:
                return t
    return None


def reset_times(events: Any, t_events: Any) -> Array:
    """Return the times of events that have a reset."""
    found = [np.ravel(t) for event, t in zip(events, t_events) if event.reset is not None]
    return np.concatenate([np.zeros(0), *found])


def _change_across(
    f: Any, surfaces: Any, k: int, start: Any, end: Any, p: Any
) -> tuple[float, bool]:
    """Where the line between two states meets surface k, and whether f jumps there."""

    def at(s: float) -> tuple[float, Array]:
        return float(start[0] + s * (end[0] - start[0])), start[1] + s * (end[1] - start[1])

    a, b = 0.0, 1.0
    side = np.sign(surfaces(*at(a), *p)[k])
    for _ in range(HALVINGS):
        middle = 0.5 * (a + b)
        if np.sign(surfaces(*at(middle), *p)[k]) == side:
            a = middle
        else:
            b = middle
    # A little further, as f on the surface itself may be that of either side.
    resolved = 8 * EPS * max(abs(start[0]), abs(end[0])) / abs(end[0] - start[0])
    apart = max(NEARBY, resolved)
    before, after = (np.asarray(f(*at(s), *p)) for s in (max(a - apart, 0.0), min(b + apart, 1.0)))
    size = max(np.abs(before).max(), np.abs(after).max())
    return at(a)[0], bool(np.abs(after - before).max() > JUMP * size)
