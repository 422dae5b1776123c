"""The modes along a solution: which one held when, and what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .solution_file import COUNTERS

__all__ = ["ModeInterval", "totals"]


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
    nfev: int = 0
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
