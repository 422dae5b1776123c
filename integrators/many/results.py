"""What many runs give: a row of every array belongs to each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stepping.state import Status

__all__ = ["Each", "ManySolutions", "nothing_yet"]


@dataclass
class ManySolutions:
    """Results of many runs; row k belongs to run k.

    Attributes
    ----------
    y : ndarray, shape (m, n)
        Final states (the last good one where a run failed).
    t : ndarray, shape (m,)
        Times reached.
    status : ndarray of int
        A :class:`Status` for each run; INTERRUPTED if Ctrl-C came before its end.
    nsteps, nrejected : ndarray of int
        Accepted and rejected steps.
    t_eval, y_eval : ndarray
        Output times and the states there, shape (m, n, len(t_eval)); NaN beyond a failure.
    engine : str
        How the runs were done; after a colon, why not in lanes.
    message : ndarray of str
        How each run ended, in the words of ``solve``.
    t_events, y_events : list
        For each run, what :class:`Solution` has under these names; empty without events.
    reduced, reduced_at : dict
        What ``reduce=`` asked for, an array of m numbers under each name, and the times of extreme
        values; NaN where a run has none.
    sensitivities, sensitivities_eval : dict
        What ``sensitivities=`` asked for: dy/d(name) at the end of each run, shape (m, n), and at
        the output times, shape (m, n, len(t_eval)).
    """

    y: NDArray[np.float64]
    t: NDArray[np.float64]
    status: NDArray[np.int64]
    nsteps: NDArray[np.int64]
    nrejected: NDArray[np.int64]
    t_eval: NDArray[np.float64]
    y_eval: NDArray[np.float64]
    engine: str
    message: NDArray[np.object_] = field(default_factory=lambda: np.zeros(0, dtype=object))
    t_events: list[Sequence[NDArray[np.float64]]] = field(default_factory=list)
    y_events: list[Sequence[NDArray[np.float64]]] = field(default_factory=list)
    reduced: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    reduced_at: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    sensitivities: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    sensitivities_eval: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def success(self) -> NDArray[np.bool_]:
        """Whether each run reached its end."""
        return self.status >= 0

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        good = int(np.count_nonzero(self.success))
        return f"<ManySolutions: {good} of {len(self)} runs succeeded, {self.engine}>"

    def replace(self, rows: NDArray[np.int64], by: ManySolutions) -> None:
        """Put other runs of the same problem in place of some."""
        for name in ("y", "t", "status", "nsteps", "nrejected", "y_eval", "message"):
            getattr(self, name)[rows] = getattr(by, name)
        for i, k in enumerate(rows):
            self.t_events[k], self.y_events[k] = by.t_events[i], by.y_events[i]

    def failures(self) -> dict[int, Status]:
        """Return the runs that failed, and how."""
        return {int(k): Status(int(self.status[k])) for k in np.flatnonzero(~self.success)}


@dataclass
class Each:
    """What may differ from run to run beside states and parameters: a row for each, or one.

    Attributes
    ----------
    spans
        Start and end of each run.
    rtols, atols
        Tolerances: numbers, and one for each component.
    """

    spans: NDArray[np.float64]
    rtols: NDArray[np.float64]
    atols: NDArray[np.float64]
    rtol: Any = None  # as they were given, if they are one for all
    atol: Any = None

    def span(self, k: int) -> tuple[float, float]:
        """Start and end of run k."""
        t0, t1 = self.spans[k if len(self.spans) > 1 else 0]
        return float(t0), float(t1)

    def tolerances(self, k: int) -> dict[str, Any]:
        """Options ``rtol`` and ``atol`` of run k."""
        return {
            "rtol": self.rtol
            if isinstance(self.rtol, float)
            else float(self.rtols[k if len(self.rtols) > 1 else 0]),
            "atol": self.atols[k % len(self.atols)] if np.ndim(self.atol) == 2 else self.atol,
        }

    @property
    def differs(self) -> bool:
        """Whether runs differ in any of it."""
        return any(len(x) > 1 for x in (self.spans, self.rtols, self.atols))


def nothing_yet(
    states: NDArray[np.float64], times: NDArray[np.float64], each: Each, blank: bool = True
) -> ManySolutions:
    """Return what is known before the first step; runs that Ctrl-C leaves untouched stay so.

    With `blank`, output times without a state have NaN; else whoever fills them in sees to that.
    """
    m, n = states.shape
    start = np.broadcast_to(each.spans, (m, 2))[:, 0].copy()
    y_eval = np.full((m, n, times.size), np.nan) if blank else np.empty((m, n, times.size))
    if times.size:
        at_start = times[0] == start
        y_eval[at_start, :, 0] = states[at_start]
    steps, rejected = (np.zeros(m, dtype=np.int64) for _ in range(2))
    status = np.full(m, Status.INTERRUPTED, dtype=np.int64)
    told = [f"interrupted at t = {t:.9g}" for t in (start if len(each.spans) > 1 else start[:1])]
    message = np.empty(m, dtype=object)
    message[:] = told
    nothing: list[Sequence[NDArray[np.float64]]] = [()] * m
    return ManySolutions(
        states.copy(), start, status, steps, rejected, times, y_eval, "one by one", message,
        nothing, nothing.copy(),
    )  # fmt: skip
