"""What follows from a step of fixed length, for all lanes at once: ``loop.fixed_step`` as code.

Times are t_base + k·h, never sums; the last step ends at the end. Arguments and results are those
of ``judge.judge``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ...stepping.control import EPS
from ...stepping.state import NONFINITE, TOO_MANY_STEPS
from .judge import FINISHED, LARGEST, ROWS, Block

__all__ = ["fixed_judge", "step_end"]

SAME = 1e-9  # of a step: a shorter rest is not a step of its own, as in loop


def step_end(row: dict[str, Any], time: Any, steps: Any) -> tuple[Any, Any]:
    """Where the fixed step from a time ends, and how long it is."""
    from ...tracing import where

    h, end = row["H_FIXED"], row["T_END"]
    ahead = row["T_BASE"] + (steps + 1.0) * h
    rounding = 8 * EPS * np.maximum(np.abs(time), np.abs(end))
    last = (end - ahead) * np.sign(h) <= np.maximum(rounding, SAME * np.abs(h))
    uneven = np.abs(end - time - h) > rounding
    return where(last, end, ahead), where(last & uneven, end - time, h)


@cache
def fixed_judge(n: int, k: int, stages: int, fsal: bool) -> Any:
    """Trace the decision about a step of fixed length; see :func:`~.judge.judge`."""
    from ...tracing import traced, where

    block = Block(n, k)
    first = 1 + n + (stages - 1) * n

    def decide(t: Any, results: Any, q: Any) -> Any:
        row = {name: q[block.lane.start + place] for name, place in ROWS.items()}
        y_new, y = results[1 : 1 + n], q[block.y]
        h, end = row["H_FIXED"], row["T_END"]
        size: Any = np.abs(y_new[0])
        for x in y_new[1:]:
            size = np.maximum(size, np.abs(x))
        accepted = size <= LARGEST  # not so for NaN

        arrived, _ = step_end(row, row["T"], row["NSTEPS"])
        time = where(accepted, arrived, row["T"])
        steps = row["NSTEPS"] + where(accepted, 1.0, 0.0)
        _, length = step_end(row, time, steps)
        outcome = where(steps >= row["MAX_STEPS"], float(TOO_MANY_STEPS), 0.0)
        outcome = where(accepted, outcome, float(NONFINITE))
        outcome = where(accepted & (time == end), FINISHED, outcome)
        outcome = where(row["IDLE"] == 0.0, outcome, 0.0)
        f0 = results[first : first + n] if fsal else ()
        parts = [
            *(where(accepted, new, old) for new, old in zip(f0, q[block.f0])),
            where(row["IDLE"] == 0.0, length, 0.0),
            *(where(accepted, new, old) for new, old in zip(y_new, y)),
            time,
            np.abs(h),
            row["LOG_LAST"],
            row["LOG_BEFORE"],
            steps,
            row["NREJECTED"],
            where(accepted, 0.0, 1.0),
            where(accepted, h, row["H_LAST"]),
            row["INSIDE_BEFORE"],
            outcome,
        ]
        return np.array(parts)

    rows = block.changing(fsal)
    outputs = rows.stop - rows.start
    return traced(decide, n=1 + n + stages * n, params=block.size, outputs=outputs)
