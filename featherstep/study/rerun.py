"""One run of a study, done again alone and looked at."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from integrators import IVP, Solution
from multibody import Model
from multibody.runs.observing.quantities import Seen

from .keeping.part import Part
from .plan import Plan
from .working.sources import Source

__all__ = ["Rerun"]


class Rerun:
    """One run of a study, done again alone.

    Attributes
    ----------
    number, parameters
        Which run, and its parameters.
    row
        Its row of the table, equal to the stored one bit for bit.
    """

    def __init__(self, plan: Plan, source: Source, part: Part) -> None:
        self._plan, self._source = plan, source
        self.number = part.first
        self._columns = part.parameters
        self.parameters = {name: float(column[0]) for name, column in part.parameters.items()}
        self.row: dict[str, Any] = {
            **self.parameters,
            **{name: float(column[0]) for name, column in part.values.items()},
            "status": str(part.status[0]),
            "message": str(part.message[0]),
            "nsteps": int(part.nsteps[0]),
            "t_end": float(part.t_end[0]),
        }

    @cached_property
    def _made(self) -> tuple[IVP, Seen]:
        return self._source.made(self._columns)

    @property
    def problem(self) -> IVP:
        """The initial value problem of this run."""
        return self._made[0]

    @property
    def model(self) -> Model | None:
        """The mechanism of this run, or None."""
        model: Model | None = self._made[1].model
        return model

    @cached_property
    def solution(self) -> Solution:
        """All steps of the run, with dense output."""
        return self._plan.solve(*self._made, t_eval=None, dense_output=True)

    def animate(self, path: str | Path, fps: float = 30.0) -> Path:
        """Write an animation of the mechanism: .html, .gif or .mp4."""
        from multibody.pictures import animate

        if self.model is None:
            raise ValueError(f"run {self.number} is no mechanism: there is nothing to animate")
        solution = self.solution
        sol = solution.sol
        assert sol is not None
        count = max(2, round((sol.t_max - sol.t_min) * fps) + 1)
        times = np.linspace(sol.t_min, sol.t_max, count)
        x = self._made[1].motion(times, np.asarray(sol(times)))
        frames = Solution(times, np.vstack([x.q, x.v]), method=solution.method)
        animate.save(self.model, frames, path, fps=fps)
        return Path(path)

    def __repr__(self) -> str:
        values = ", ".join(f"{name} = {value:.6g}" for name, value in self.parameters.items())
        return f"<Rerun of run {self.number}: {values}; {self.row['status']}>"
