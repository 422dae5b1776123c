"""Phases of a run: which method took the steps from when to when, and what that took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from .solution_file import COUNTERS

__all__ = ["Phase", "named", "phases_of", "written_phases"]


@dataclass(frozen=True)
class Phase:
    """A part of a run with ``method="auto"`` that one method did.

    Attributes
    ----------
    method
        Its name.
    start, end
        Times.
    nfev, njev, nlu, nnewton, nsteps, nrejected
        What it took, as in :class:`Solution`.
    """

    method: str
    start: float
    end: float
    nfev: int = 0  # in the order of COUNTERS
    njev: int = 0
    nlu: int = 0
    nnewton: int = 0
    nsteps: int = 0
    nrejected: int = 0


def named(method: str, phases: Sequence[Phase]) -> str:
    """The method, with those that it has chosen.

    >>> named("auto", [Phase("DOP853", 0, 1), Phase("BDF", 1, 2), Phase("DOP853", 2, 3)])
    'auto (DOP853, BDF)'
    """
    chosen = list(dict.fromkeys(phase.method for phase in phases))
    return f"{method} ({', '.join(chosen)})" if chosen else method


def written_phases(phases: Sequence[Phase]) -> list[list[Any]]:
    """Phases as they go into JSON."""
    return [[*map(_plain, astuple(phase))] for phase in phases]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else value.item() if hasattr(value, "item") else value


def phases_of(rows: Any) -> list[Phase]:
    """Undo :func:`written_phases`; a ValueError for anything else."""
    found = []
    for row in rows if isinstance(rows, list) else [None]:
        if not isinstance(row, list) or len(row) != 3 + len(COUNTERS):
            raise ValueError(f"phases {rows!r:.60}")
        method, start, end, *counts = row
        right = isinstance(method, str) and all(type(t) in (int, float) for t in (start, end))
        if not right or any(type(n) is not int or n < 0 for n in counts):
            raise ValueError(f"phases {rows!r:.60}")
        found.append(Phase(method, float(start), float(end), *counts))
    return found
