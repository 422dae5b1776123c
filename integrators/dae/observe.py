"""What to look at along a solution: drift, multipliers, rank, invariants.

Small numbers here do not make a solution right. On a mechanism that passes through a singular
position energy and constraints can be kept to many digits by a motion that is wrong by a metre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .acceleration import Weighted
from .problem import Formulation
from .system import BUILT_ON

if TYPE_CHECKING:
    from ..runs.solution import Solution
    from .system import Mechanical

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
        """Largest change of "energy" since the start, if it is among the invariants.

        Absolute, in the unit of the energy: J for mechanisms in SI units. The zero of a potential
        energy is arbitrary, so the energy itself is no scale to divide by.
        """
        energy = self.invariants.get("energy")
        if energy is None or not energy.size:
            return None
        return float(np.abs(energy - energy[0]).max())

    def summary(self) -> str:
        """One line for a table, with the largest values along the run.

        Drift and rank are told of systems with constraints only, and energy of systems that
        conserve it. Drift is max |g| and the change of energy is absolute, both in the units of
        the system: m or rad, and J, for models of ``multibody``.

        Examples
        --------
        A point of mass 1 that hangs at rest from a rod of length 1:

        >>> from integrators import solve
        >>> from integrators.dae import Mechanical
        >>> bob = Mechanical(
        ...     np.eye(2),
        ...     lambda t, q, v: np.array([0.0, -9.81]),
        ...     lambda t, q: np.array([(q[0] ** 2 + q[1] ** 2 - 1) / 2]),
        ...     q0=[0.0, -1.0],
        ...     v0=[0.0, 0.0],
        ...     t_span=(0.0, 1.0),
        ...     invariants={"energy": lambda t, q, v: (v[0] ** 2 + v[1] ** 2) / 2 + 9.81 * q[1]},
        ... )
        >>> solution = solve(bob.formulation("projected"), method="RK4", step=0.1)
        >>> print(solution.observed.summary())  # doctest: +ELLIPSIS
        drift ..., velocity drift ..., rank 1, energy error ... (absolute)
        """
        parts = ["no constraints"]
        if len(self.gap) and len(self.t):
            least, most = self.rank.min(), self.rank.max()
            parts = [
                f"drift {self.drift.max():.2e}",
                f"velocity drift {self.velocity_drift.max():.2e}",
                f"rank {least}" if least == most else f"rank {least} to {most}",
            ]
        error = self.energy_error
        if error is not None:
            parts.append(f"energy error {error:.2e} (absolute)")
        return ", ".join(parts)


def observe(mechanical: Mechanical, solution: Solution) -> Observables:
    """Evaluate all observables at the times of a solution of one of the formulations."""
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


BUILT_ON["observe"] = observe
