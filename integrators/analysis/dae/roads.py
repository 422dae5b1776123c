"""One DAE on all roads: what each costs, how accurate it is, what it leaves of constraints."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dae.general import DAE, ROADS, Start
from ...solve import solve
from ..study.tables import Column, Table, duration, number

__all__ = ["RoadRun", "Roads", "compare_roads"]

#: Methods that suit each road.
SUITABLE: dict[str, tuple[str, ...]] = {
    "dummy": ("RADAU5", "RadauIIA5"),
    "underlying": ("DOPRI853", "RADAU5"),
    "taylor": ("Taylor",),
    "given": ("RADAU5", "RadauIIA5"),
}
REFERENCE_RTOL = 1e-13


@dataclass(frozen=True)
class RoadRun:
    """One run: road, method, tolerance, and what came of it.

    Attributes
    ----------
    error
        Largest error of an unknown at the end, relative to its size (or to 1, if that is larger).
    drift
        Largest residual of a constraint, open or hidden, along the run.
    """

    road: str
    method: str
    rtol: float
    error: float
    drift: float
    steps: int
    seconds: float
    message: str


@dataclass(frozen=True)
class Roads:
    """The result of :func:`compare_roads`; prints as a table."""

    runs: tuple[RoadRun, ...]
    reference: str

    @property
    def table(self) -> Table:
        """The runs, one a line."""
        columns = (
            Column("road", "road", text=True),
            Column("method", "method", text=True),
            Column("rtol", "rtol", number),
            Column("error", "error", number),
            Column("drift", "drift", number),
            Column("steps", "steps"),
            Column("time", "seconds", duration),
            Column("", "message", text=True),
        )
        rows = tuple(
            (r.road, r.method, r.rtol, r.error, r.drift, r.steps, r.seconds, r.message)
            for r in self.runs
        )
        return Table(columns, rows)

    def __str__(self) -> str:
        return f"{self.table.to_text()}\nerrors against {self.reference}"

    def _repr_html_(self) -> str:
        return self.table.to_html()


def compare_roads(
    system: DAE,
    start: Start,
    t_end: float,
    *,
    roads: Sequence[str] = ROADS,
    methods: Mapping[str, Sequence[Any]] | Sequence[Any] | None = None,
    rtol: float | Sequence[float] = (1e-6, 1e-9),
    reference: Any = None,
) -> Roads:
    """Solve a DAE by several roads and methods and tabulate what each digit cost.

    Parameters
    ----------
    system, start, t_end
        The equations, a consistent start and the end of the interval.
    roads
        Some of "dummy", "underlying", "taylor", "given".
    methods
        For every road, or a dictionary of those for each road; by default some that suit.
    rtol
        Tolerances, relative and absolute.
    reference
        The unknowns at the end, where they are known; by default from a run with the Taylor series
        of the DAE at a tolerance of 1e-13.

    Examples
    --------
    >>> from integrators import DAE
    >>> from integrators.analysis import compare_roads
    >>> plant = DAE(lambda t, y, d: [d(y[0]) + y[0] - y[1], y[0] - np.sin(t)], names=["T", "Q"])
    >>> result = compare_roads(plant, plant.consistent(), 1.0, rtol=1e-6)
    >>> all(run.error < 1e-4 for run in result.runs)
    True
    """
    for road in roads:
        if road not in ROADS:
            raise ValueError(f"there is no road {road!r}; known are {', '.join(ROADS)}")
    n = len(system.unknowns)
    source = "the reference given"
    if reference is None:
        exact = solve(
            system.problem(start, (start.t, t_end), "taylor"),
            method="Taylor",
            rtol=REFERENCE_RTOL,
            atol=REFERENCE_RTOL,
            throw=True,
        )
        reference, source = exact.y[:n, -1], "a run on the road taylor with rtol = 1e-13"
    reference = np.asarray(reference, dtype=float)[:n]
    runs = []
    for road in roads:
        chosen = methods.get(road, ()) if isinstance(methods, Mapping) else methods
        for method in SUITABLE[road] if chosen is None else chosen:
            for tolerance in np.atleast_1d(np.asarray(rtol, dtype=float)).tolist():
                runs.append(_run(system, start, t_end, road, method, tolerance, reference))
    return Roads(tuple(runs), source)


def _run(
    system: DAE, start: Start, t_end: float, road: str, method: Any, rtol: float, reference: Any
) -> RoadRun:
    """Run once to compile, once to time; a road that is refused is a line of the table."""
    name = method if isinstance(method, str) else getattr(method, "name", repr(method))
    nothing = (float("nan"), float("nan"), 0, float("nan"))
    try:
        problem = system.problem(start, (start.t, t_end), road)
        solve(problem, method=method, rtol=rtol, atol=rtol)
        begin = time.perf_counter()
        sol = solve(problem, method=method, rtol=rtol, atol=rtol)
        seconds = time.perf_counter() - begin
    except ValueError as refusal:
        return RoadRun(road, name, rtol, *nothing, f"refused: {str(refusal).split(';')[0]}")
    if not sol.success:
        return RoadRun(road, name, rtol, *nothing[:2], sol.nsteps, seconds, sol.message)
    size = np.maximum(np.abs(reference), 1.0)
    error = float(np.max(np.abs(sol.y[: reference.size, -1] - reference) / size))
    drift = float(sol.observed.largest)
    return RoadRun(road, name, rtol, error, drift, sol.nsteps, seconds, "")
