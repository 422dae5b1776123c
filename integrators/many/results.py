"""What many runs give: a row of every array belongs to each run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP
from ..stepping.state import Status

__all__ = ["ManySolutions", "nothing_yet"]


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
    t_events: list[list[NDArray[np.float64]]] = field(default_factory=list)
    y_events: list[list[NDArray[np.float64]]] = field(default_factory=list)

    @property
    def success(self) -> NDArray[np.bool_]:
        """Whether each run reached its end."""
        return self.status >= 0

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        good = int(np.count_nonzero(self.success))
        return f"<ManySolutions: {good} of {len(self)} runs succeeded, {self.engine}>"

    def failures(self) -> dict[int, Status]:
        """Return the runs that failed, and how."""
        return {int(k): Status(int(self.status[k])) for k in np.flatnonzero(~self.success)}


def nothing_yet(ivp: IVP, states: NDArray[np.float64], times: NDArray[np.float64]) -> ManySolutions:
    """Return what is known before the first step; runs that Ctrl-C leaves untouched stay so."""
    m, n = states.shape
    y_eval = np.full((m, n, times.size), np.nan)
    if times.size and times[0] == ivp.t_span[0]:
        y_eval[:, :, 0] = states
    steps, rejected = (np.zeros(m, dtype=np.int64) for _ in range(2))
    status = np.full(m, Status.INTERRUPTED, dtype=np.int64)
    start = np.full(m, ivp.t_span[0])
    message = np.full(m, f"interrupted at t = {ivp.t_span[0]:.9g}", dtype=object)
    nothing: list[list[NDArray[np.float64]]] = [[] for _ in range(m)]
    return ManySolutions(
        states.copy(), start, status, steps, rejected, times, y_eval, "one by one", message,
        nothing, [[] for _ in range(m)],
    )  # fmt: skip
