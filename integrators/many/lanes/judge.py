"""Accepting, rejecting and the next step length, for all lanes at once.

What ``loop.adaptive_step`` decides for one run is here straight-line code without branches: traced
like a right-hand side, compiled in lanes, it costs a few nanoseconds a run. The rules themselves
are those of the single run, ``integrators.stepping.control``.

Its argument is a block of rows, one number for each lane in each; :class:`Block` says where what
is. Rows from ``f0`` (``h``, if the method is not FSAL) to OUTCOME are the result, written in place.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...methods.runge_kutta.implicit.inside import FADING
from ...stepping.control import (
    KEEP_STEP,
    NO_LIMIT,
    NONFINITE_FACTOR,
    factor_by_errors,
    log_of_error,
    predicted_factor,
    reach,
    shortest_step,
    within_limits,
)
from ...stepping.state import NONFINITE, STEP_TOO_SMALL, TOO_MANY_STEPS

__all__ = ["ROWS", "Block", "judge"]

LARGEST = 1.7976931348623157e308
FINISHED = 1.0  # outcome of a run that is done; failures are Status codes, 0 goes on

# Rows behind the vectors; those up to OUTCOME change with every attempt …
NAMES = (
    *("T", "H", "LOG_LAST", "LOG_BEFORE", "NSTEPS", "NREJECTED", "REJECTED"),
    # Length of the last accepted step, 0 before the first; defects inside steps so far, −1 before
    # the first: see ``implicit.inside``.
    *("H_LAST", "INSIDE_BEFORE", "OUTCOME"),
    # … these when a lane takes another run, and these never.
    *("IDLE", "T_END", "MIN_STEP", "MAX_STEP", "MAX_STEPS"),
    *("BETA_1", "BETA_2", "BETA_3", "SAFETY", "MIN_FACTOR", "MAX_FACTOR", "EXPONENT"),
    *("T_BASE", "H_FIXED"),  # of fixed steps
    "NEXT_TIME",  # the next output of each lane; NaN after the last
    # Of implicit steps: see ``newton``.
    *("NEWTON_STATUS", "NEWTON_FACTOR", "NEWTON_COUNT", "NEWTON_TOLERANCE"),
    *("INSIDE_WEIGHT", "INSIDE_STRICT"),
)
ROWS = {name: row for row, name in enumerate(NAMES)}


class Block:
    """Places of the rows: the arguments of a fused step (``fused.inputs_size``), y, then NAMES."""

    def __init__(self, n: int, k: int) -> None:
        self.p = slice(0, k)
        self.rtol = k
        self.address = k + 1  # of f, in the first lane
        self.atol = slice(k + 2, k + 2 + n)
        self.f0 = slice(k + 2 + n, k + 2 + 2 * n)
        self.h = k + 2 + 2 * n
        self.y = slice(self.h + 1, self.h + 1 + n)
        self.lane = slice(self.y.stop, self.y.stop + len(NAMES))
        self.size = self.lane.stop

    def changing(self, fsal: bool) -> slice:
        """Rows that :func:`judge` writes."""
        return slice(self.f0.start if fsal else self.h, self.lane.start + ROWS["OUTCOME"] + 1)


@cache
def judge(
    n: int,
    k: int,
    stages: int,
    fsal: bool,
    newton: int = 0,
    predictive: bool = False,
    defects: bool = False,
) -> Any:
    """Trace the decision about a step of n equations with k parameters and known stages.

    `newton` is the largest number of iterations of an implicit method, 0 if there are none;
    `predictive` is that of its controller; `defects` says whether results end with the one inside
    the step. Returns a traced function of (t, results of the step,
    block); t is not used.
    """
    from ...tracing import traced, where

    block = Block(n, k)
    first = 1 + n + (stages - 1) * n  # the last stage, which an FSAL method starts from next

    def decide(t: Any, results: Any, q: Any) -> Any:
        row = {name: q[block.lane.start + place] for name, place in ROWS.items()}
        norm, y_new, y, h = results[0], results[1 : 1 + n], q[block.y], q[block.h]
        size = norm
        for x in y_new:
            size = np.maximum(size, np.abs(x))
        finite = size <= LARGEST  # not so for NaN
        accepted = finite & (norm <= 1.0)
        solved: Any = True
        if newton:
            solved = row["NEWTON_STATUS"] == 0.0
            accepted = accepted & solved
        # How the step length changes.
        log_error = log_of_error(where(finite, norm, 1.0))
        control = SimpleNamespace(**{name.lower(): value for name, value in row.items()})
        control.beta_1 = where(accepted, control.beta_1, 1.0)
        memory = (where(accepted, row[name], 0.0) for name in ("LOG_LAST", "LOG_BEFORE"))
        factor = factor_by_errors(control, log_error, *memory)
        if predictive:
            known = row["H_LAST"] != 0.0
            stretch = where(known, np.abs(h / where(known, row["H_LAST"], 1.0)), NO_LIMIT)
            errors = (log_error, row["LOG_LAST"])
            iterations: tuple[Any, Any] = (newton, row["NEWTON_COUNT"]) if newton else (1, 1)
            further = predicted_factor(control, factor, *errors, *iterations, stretch)
            factor = where(accepted, further, factor)
        most = where(accepted & (row["REJECTED"] == 0.0), control.max_factor, 1.0)
        factor = within_limits(control, factor, most)
        if predictive:
            factor = where(accepted & (factor >= 1.0) & (factor <= KEEP_STEP), 1.0, factor)
        factor = where(finite, factor, NONFINITE_FACTOR)
        if newton:
            factor = where(solved, factor, row["NEWTON_FACTOR"])
        grown = np.abs(h) * factor
        longest = np.maximum(grown, np.minimum(row["H"], row["MAX_STEP"]))
        # Where the run is now.
        end = row["T_END"]
        arrived = where(h == end - row["T"], end, row["T"] + h)
        time = where(accepted, arrived, row["T"])
        steps = row["NSTEPS"] + where(accepted, 1.0, 0.0)
        rejections = row["NREJECTED"] + where(accepted, 0.0, 1.0)
        remaining = end - time
        smallest = shortest_step(row["MIN_STEP"], time)
        # Whether it ends here. Next to t = 0 steps may shrink until they vanish, and a run that is
        # not finite at its start has no step length at all.
        vanished = ~(grown > 0.0)  # so for NaN
        outcome = where(steps + rejections >= row["MAX_STEPS"], float(TOO_MANY_STEPS), 0.0)
        reason = where(finite, float(STEP_TOO_SMALL), float(NONFINITE))
        if newton:
            reason = where(solved, reason, row["NEWTON_STATUS"])
        outcome = where((~accepted & (grown < smallest)) | vanished, reason, outcome)
        outcome = where(accepted & (remaining == 0.0), FINISHED, outcome)
        outcome = where(row["IDLE"] == 0.0, outcome, 0.0)
        # The next attempt. The last may be shorter than any limit; the end is never passed.
        proposed = np.maximum(np.minimum(grown, row["MAX_STEP"]), smallest)
        inner = where(remaining > 0.0, proposed, -proposed)
        near = np.abs(remaining) <= reach(proposed, row["MAX_STEP"])
        length = where(near, remaining, inner)
        memory_rows = [
            where(accepted, log_error, row["LOG_LAST"]),
            where(accepted, row["LOG_LAST"], row["LOG_BEFORE"]),
        ]
        f0 = results[first : first + n] if fsal else ()
        faded = FADING * row["INSIDE_BEFORE"]
        parts = [
            *(where(accepted, new, old) for new, old in zip(f0, q[block.f0])),
            length,
            *(where(accepted, new, old) for new, old in zip(y_new, y)),
            time,
            # A step cut short by the end says nothing against the one that was proposed.
            where(accepted & (h == end - row["T"]) & (factor >= 1.0), longest, grown),
            *memory_rows,
            steps,
            rejections,
            where(accepted, 0.0, 1.0),
            where(accepted, h, row["H_LAST"]),
            where(accepted, np.maximum(results[1 + n], faded), row["INSIDE_BEFORE"])
            if defects
            else row["INSIDE_BEFORE"],
            outcome,
        ]
        return np.array(parts)

    rows = block.changing(fsal)
    outputs = rows.stop - rows.start
    return traced(decide, n=1 + n + stages * n + defects, params=block.size, outputs=outputs)
