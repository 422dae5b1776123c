"""What to look at along a solution: drift, multipliers, rank, invariants.

Small numbers here do not make a solution right. On a mechanism that passes through a singular
position energy and constraints can be kept to many digits by a motion that is wrong by a metre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .linear import Weighted

if TYPE_CHECKING:
    from ..solution import Solution
    from .mechanical import Mechanical

__all__ = ["Observables", "observe"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Observables:
    """Values at the times of a solution.

    Attributes
    ----------
    t : (n_t,)
        Times.
    q, v : (n_q, n_t), (n_v, n_t)
        Positions and velocities.
    gap, speed : (m, n_t)
        g, and G v − ν.
    drift, velocity_drift : (n_t,)
        max |g| and max |G v − ν|.
    multipliers : (m, n_t)
        λ that the accelerations at (q, v) need; of least norm where it is not unique.
    state_multipliers : (m, n_t) or None
        λ as the solution has it, where it is part of the state.
    rank : (n_t,)
        Rank of G.
    singularity : (n_t,)
        Ratio of the smallest mass-weighted singular value that counts to the largest: small near
        a singular position.
    invariants
        Named values, each (n_t,); "energy" is among them if the system has it.
    """

    t: Array
    q: Array
    v: Array
    gap: Array
    speed: Array
    drift: Array
    velocity_drift: Array
    multipliers: Array
    state_multipliers: Array | None
    rank: NDArray[np.int64]
    singularity: Array
    invariants: dict[str, Array]

    @property
    def energy_error(self) -> float | None:
        """Largest change of "energy" since the start, if it is among the invariants."""
        energy = self.invariants.get("energy")
        return None if energy is None else float(np.abs(energy - energy[0]).max())

    def summary(self) -> str:
        """One line for a table."""
        text = (
            f"drift {self.drift.max():.2e}, velocity drift {self.velocity_drift.max():.2e}, "
            f"rank {self.rank.min()}"
        )
        if self.rank.min() != self.rank.max():
            text += f" to {self.rank.max()}"
        error = self.energy_error
        return text if error is None else f"{text}, energy error {error:.2e}"


def observe(mechanical: Mechanical, solution: Solution) -> Observables:
    """Evaluate all observables at the times of a solution of one of the formulations."""
    from .problem import Formulation

    problem = solution.problem
    if not isinstance(problem, Formulation):
        raise TypeError(
            "expected a solution of mechanical.formulation(...); got one of "
            f"{problem!r} (a saved solution has lost its problem)"
        )
    p = problem.params
    q, v, gap, speed, multipliers, rank, ratio = [], [], [], [], [], [], []
    for t, y in zip(solution.t, solution.y.T):
        position, velocity = problem.split(float(t), y)
        now = mechanical.terms(float(t), position, velocity, p)
        known = Weighted(now.M, now.G, mechanical.rank_tolerance)
        q.append(position)
        v.append(velocity)
        gap.append(now.g)
        speed.append(now.G @ velocity - now.nu)
        multipliers.append(known.accelerate(now.f, now.gamma)[1])
        rank.append(known.rank)
        ratio.append(known.s[-1] / known.s[0] if known.rank else 0.0)
    columns = [np.array(x).T for x in (q, v, gap, speed, multipliers)]
    kept = None if not len(solution.t) else problem.multipliers(solution.y[:, 0])
    invariants = {
        name: np.array(
            [
                float(np.asarray(function(float(t), position, velocity, p)))
                for t, position, velocity in zip(solution.t, q, v)
            ]
        )
        for name, function in mechanical.invariants.items()
    }
    start = mechanical.nq + mechanical.nv
    return Observables(
        t=solution.t,
        q=columns[0],
        v=columns[1],
        gap=columns[2],
        speed=columns[3],
        drift=np.abs(columns[2]).max(axis=0),
        velocity_drift=np.abs(columns[3]).max(axis=0),
        multipliers=columns[4],
        state_multipliers=None if kept is None else solution.y[start : start + mechanical.m],
        rank=np.array(rank),
        singularity=np.array(ratio),
        invariants=invariants,
    )
