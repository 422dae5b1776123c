"""The modes along a solution: which one held when, what it took, and how that is written down.

In files a mode is its key where that is text, a number, or a tuple of such; of any other key the
text of it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..solution_file import COUNTERS

__all__ = ["ModeInterval", "key_of", "stays", "totals", "written", "written_key"]


@dataclass(frozen=True)
class ModeInterval:
    """One stay in one mode.

    Attributes
    ----------
    mode
        Key of the mode.
    start, end
        When it was entered and left.
    n
        Length of its state.
    nfev, njev, nlu, nnewton, nsteps, nrejected
        What it took, as in :class:`Solution`.
    """

    mode: Any
    start: float
    end: float
    n: int
    nfev: int = 0  # in the order of COUNTERS
    njev: int = 0
    nlu: int = 0
    nnewton: int = 0
    nsteps: int = 0
    nrejected: int = 0

    @classmethod
    def of(cls, mode: Any, start: float, part: Any) -> ModeInterval:
        """The interval of one run."""
        end = start if part.reached is None else part.reached[0]
        counters = {name: getattr(part, name) for name in COUNTERS}
        return cls(mode, float(start), float(end), int(part.y.shape[0]), **counters)

    def until(self, end: float) -> ModeInterval:
        """The same, with a later end."""
        return ModeInterval(**{**asdict(self), "mode": self.mode, "end": float(end)})


def totals(intervals: Sequence[ModeInterval]) -> dict[Any, dict[str, float]]:
    """Visits, time and counters of each mode, in the order in which they were entered."""
    found: dict[Any, dict[str, float]] = {}
    for stay in intervals:
        sums = found.setdefault(stay.mode, dict.fromkeys(("visits", "time", *COUNTERS), 0))
        sums["visits"] += 1
        sums["time"] += stay.end - stay.start
        for name in COUNTERS:
            sums[name] += getattr(stay, name)
    return found


def written_key(key: Any) -> Any:
    """A key as it goes into JSON.

    >>> written_key(("left", 2)), written_key(3.5)
    ({'tuple': ['left', 2]}, 3.5)
    """
    if key is None or type(key) in (str, bool, int, float):
        return key
    if isinstance(key, tuple):
        return {"tuple": [written_key(part) for part in key]}
    return repr(key)


def key_of(text: Any) -> Any:
    """The key that was written so; raises ValueError if none was."""
    if text is None or type(text) in (str, bool, int, float):
        return text
    if isinstance(text, dict) and set(text) == {"tuple"} and isinstance(text["tuple"], list):
        return tuple(key_of(part) for part in text["tuple"])
    raise ValueError(f"{text!r:.60} for the key of a mode")


def written(intervals: Sequence[ModeInterval]) -> tuple[list[Any], NDArray[np.float64]]:
    """Intervals as rows of JSON and an array of their starts and ends."""
    rows = [
        [written_key(stay.mode), stay.n, *(int(getattr(stay, name)) for name in COUNTERS)]
        for stay in intervals
    ]
    return rows, np.array([[stay.start, stay.end] for stay in intervals]).reshape(-1, 2)


def stays(rows: Any, times: NDArray[Any], longest: int) -> list[ModeInterval]:
    """The intervals that were written so; raises ValueError if none were."""
    if not isinstance(rows, list) or times.shape != (len(rows), 2) or times.dtype != np.float64:
        raise ValueError(f"modes at times of shape {times.shape}")
    flat = times.ravel()
    if not np.all(np.isfinite(flat)) or np.any(np.diff(flat) < 0):
        raise ValueError("modes with times out of order")
    found = []
    for row, (start, end) in zip(rows, times):
        if not isinstance(row, list) or len(row) != 2 + len(COUNTERS):
            raise ValueError(f"{row!r:.60} for the stay in a mode")
        counts = row[1:]
        if any(type(x) is not int or x < 0 for x in counts) or not 1 <= counts[0] <= longest:
            raise ValueError(f"a mode with {counts!r:.60}, no counts")
        found.append(ModeInterval(key_of(row[0]), float(start), float(end), *counts))
    return found
