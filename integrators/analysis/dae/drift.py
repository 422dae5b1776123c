r"""Drift: how far runs leave the constraints of a DAE, open and hidden, and how fast.

A method that solves an index-reduced DAE keeps the *differentiated* constraints only. What it
neglects of g¨ = 0 is integrated once in ġ and twice in g: errors of size δ in each step make ġ grow
as δ t and g as δ t² (Hairer & Wanner, *Solving Ordinary Differential Equations II*, §VII.2). The
exponents are read off the running maximum of the residuals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...notebook_html import with_remarks
from ...runs.solution import Solution
from ..study.tables import Column, Table, number

__all__ = ["Drift", "DriftCurve", "drift"]

Array = NDArray[np.float64]

ROUNDING = 1e-12  # residuals below it, absolute, are those of rounding: they have no growth
SETTLED = 0.1  # part of the interval, at its beginning, that does not count for the growth
FEWEST = 5  # times that a growth needs


@dataclass(frozen=True, eq=False)
class DriftCurve:
    """The residuals of one constraint along one run.

    Attributes
    ----------
    run
        Label of the run.
    constraint
        Name of the constraint; a prime is a time derivative: a hidden constraint.
    t, residual
        Times, and the residual there.
    """

    run: str
    constraint: str
    t: Array
    residual: Array

    @property
    def largest(self) -> float:
        """The largest magnitude along the run."""
        return float(np.abs(self.residual).max(initial=0.0))

    @property
    def growth(self) -> float:
        """Exponent q with which the residual grows, as (t − t0)^q; NaN at the level of rounding."""
        passed = np.abs(self.t - self.t[0])
        highest = np.maximum.accumulate(np.abs(self.residual))
        late = (passed >= SETTLED * passed[-1]) & (highest > ROUNDING)
        if np.count_nonzero(late) < FEWEST:
            return float("nan")
        return float(np.polyfit(np.log(passed[late]), np.log(highest[late]), 1)[0])


@dataclass(frozen=True, eq=False, repr=False)
class Drift:
    """The result of :func:`drift`; prints as a table, and ``plot.drift`` draws it.

    Attributes
    ----------
    curves
        One for each run and constraint.
    name
        Of the problem.
    """

    curves: tuple[DriftCurve, ...]
    name: str = ""

    @property
    def largest(self) -> dict[str, float]:
        """The largest residual of each run."""
        found: dict[str, float] = {}
        for curve in self.curves:
            found[curve.run] = max(found.get(curve.run, 0.0), curve.largest)
        return found

    def __getitem__(self, key: tuple[str, str]) -> DriftCurve:
        """The curve of a run and a constraint, by their names."""
        for curve in self.curves:
            if (curve.run, curve.constraint) == key:
                return curve
        known = ", ".join(f"({c.run!r}, {c.constraint!r})" for c in self.curves)
        raise KeyError(f"{key!r} is not among {known}")

    @property
    def table(self) -> Table:
        """One line for each run and constraint."""
        columns = (
            Column("run", "run", text=True),
            Column("constraint", "constraint", text=True),
            Column("largest", "largest", number),
            Column("grows as t^", "growth", lambda x: f"{x:.1f}"),
        )
        rows = tuple((c.run, c.constraint, c.largest, c.growth) for c in self.curves)
        return Table(columns, rows)

    def __str__(self) -> str:
        return self.table.to_text()

    def __repr__(self) -> str:
        shown = ", ".join(f"{run} {size:.1e}" for run, size in self.largest.items())
        return f"<Drift: {shown}>"

    def _repr_html_(self) -> str:
        return with_remarks(self.table.to_html(), [])


def drift(runs: Solution | Mapping[str, Solution]) -> Drift:
    """Collect what runs leave of the constraints, open and hidden.

    Parameters
    ----------
    runs
        A solution, or several with their labels: of general DAEs on any road, or of constrained
        mechanics in any formulation.

    Examples
    --------
    The underlying ODE of a pendulum, with its projection and without:

    >>> from integrators import solve
    >>> from integrators.analysis import drift
    >>> from integrators.problems.dae_systems import system
    >>> projected = system("pendulum_chain").problem("underlying", 10.0)
    >>> free = projected.with_(project=None)
    >>> runs = {"projected": projected, "free": free}
    >>> found = drift({name: solve(p, method="RK4", step=0.1) for name, p in runs.items()})
    >>> found.largest["projected"] < 1e-12, found.largest["free"] > 1e-6
    (True, True)
    """
    named = {_label(runs): runs} if isinstance(runs, Solution) else dict(runs)
    if not named:
        raise ValueError("no run was given; expected a solution, or {label: solution}")
    curves = []
    for label, solution in named.items():
        if not isinstance(solution, Solution):
            raise TypeError(
                f"expected a solution, or {{label: solution}}; {label!r} is "
                f"{type(solution).__name__}"
            )
        for constraint, residual in _residuals(solution).items():
            curves.append(DriftCurve(str(label), constraint, solution.t, residual))
    if not curves:
        raise ValueError(
            f"{', '.join(map(str, named))}: no constraint that a run could leave; equations of "
            "index 0 and 1 have none, or none that the state determines"
        )
    return Drift(tuple(curves), next(iter(named.values())).problem.name)


def _label(solution: Solution) -> str:
    road = getattr(solution.problem, "road", "")
    return f"{solution.method}, {road}" if road else str(solution.method)


def _residuals(solution: Solution) -> dict[str, Array]:
    """Residuals by name: of a general DAE, or of positions and velocities of a mechanism."""
    seen: Any = solution.observed
    found = getattr(seen, "constraints", None)
    if isinstance(found, Mapping):
        return dict(found)
    if not len(getattr(seen, "gap", ())):
        raise ValueError(
            f"{solution.problem.name or 'the problem'} has no constraints that a run could leave; "
            "expected a DAE: system.problem(...), or a formulation of a constrained mechanism"
        )
    return {"max |g|": np.asarray(seen.drift), "max |G v − ν|": np.asarray(seen.velocity_drift)}
