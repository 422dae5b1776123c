"""What outputs need of the steps of all lanes, as machine code: see ``dense``."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .fixed_judge import step_end
from .judge import LARGEST, ROWS, Block
from .rows import LANES

__all__ = ["due_code", "interpolation", "values_code"]


@cache
def due_code(n: int, k: int, stages: int, fixed: bool) -> Any:
    """Machine code: where steps end, and whether outputs lie in those that will be accepted.

    Arguments are those of ``judge.judge``.
    """
    from ...tracing import traced, where

    block = Block(n, k)

    def due(t: Any, results: Any, q: Any) -> Any:
        row = {name: q[block.lane.start + place] for name, place in ROWS.items()}
        h, last = q[block.h], row["T_END"]
        size = 0.0 * h if fixed else results[0]
        good = size <= 1.0
        for x in results[1 : 1 + n]:
            size = np.maximum(size, np.abs(x))
        end = where(h == last - row["T"], last, row["T"] + h)
        if fixed:
            end, _ = step_end(row, row["T"], row["NSTEPS"])
        inside = (end - row["NEXT_TIME"]) * h >= 0.0
        counts = inside & good & (size <= LARGEST) & (row["IDLE"] == 0.0)
        return np.array([end, where(counts, 1.0, 0.0)])

    size = 1 + n + stages * n
    return traced(due, n=size, params=block.size, outputs=2).machine_code(LANES)


@cache
def values_code(n: int, k: int, degree: int) -> Any:
    """Machine code of the states at the next outputs: arguments are times, Q, and the block."""
    from ...tracing import traced

    block = Block(n, k)

    def values(t: Any, Q: Any, q: Any) -> Any:
        theta = (q[block.lane.start + ROWS["NEXT_TIME"]] - t) / q[block.h]
        return _horner(theta, Q, q[block.y])

    code = traced(values, n=degree * n, params=block.size, outputs=n)
    return code.machine_code(LANES)


@cache
def interpolation(n: int, degree: int) -> Any:
    """Machine code of y + Σⱼ Q[j] θʲ⁺¹: arguments are θ, the rows of Q, and y."""
    from ...tracing import traced

    return traced(_horner, n=degree * n, params=n, outputs=n).machine_code(LANES)


def _horner(theta: Any, Q: Any, y: Any) -> Any:
    rows = np.asarray(Q).reshape(-1, len(y))
    total = rows[-1]
    for row in rows[-2::-1]:
        total = total * theta + row
    return y + theta * total
