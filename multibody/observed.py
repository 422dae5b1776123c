"""What to look at along a run of a mechanism: closure, energy, constraint forces, singularity.

None of these numbers alone makes a run right. A mechanism that passes through a singular position
can keep its energy and its loops to many digits and yet move wrongly from there on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._checks import Array
from .dynamics.closed_loop import constrained_accelerations, constraints
from .dynamics.compute import crba, energy, position_rate
from .dynamics.factor import lt_solve, ltl
from .force_laws import external_force_law, joint_force_law

if TYPE_CHECKING:
    from .model import Model

__all__ = ["NEAR_SINGULAR", "Observed", "observe"]

#: A ratio of singular values below this, reached between two steps, counts as a passage through a
#: singular position. Interpolated positions are right to the fourth power of the step, so that a
#: true passage gives far less; a mechanism that only comes near has a hundredth or more.
NEAR_SINGULAR = 1e-3

MOST_STATES = 600  # of a run that are looked at; more would take longer than the run
MOST_DIPS = 12  # places between steps that are searched for the nearest singular position


@dataclass(frozen=True)
class Observed:
    """Largest values along a run; None where they make no sense.

    Attributes
    ----------
    gap, speed
        max |δ| and max |Kv − ν| over all loops (m, rad, and by s); None for trees.
    energy
        Largest change of the energy since the start, in parts of the energy that moves: the
        largest kinetic energy or change of the potential one. None if forces or drives change it.
    multiplier
        Largest constraint force |λ| (N, Nm) that the states need.
    rank
        Smallest and largest rank of K at the states.
    closest, closest_time
        Smallest ratio of the last singular value of the mass-weighted K to the first, and when.
    passages
        Times at which singular positions were reached or passed; a dozen at most are looked for.
    """

    gap: float | None = None
    speed: float | None = None
    energy: float | None = None
    multiplier: float | None = None
    rank: tuple[int, int] | None = None
    closest: float | None = None
    closest_time: float | None = None
    passages: tuple[float, ...] = ()

    @property
    def singular(self) -> bool:
        """Whether the run reached or passed a singular position."""
        return self.closest is not None and self.closest < NEAR_SINGULAR


def observe(
    model: Model, t: Array, q: Array, v: Array, tau: Any = None, f_ext: Any = None
) -> Observed:
    """Look at a run.

    Parameters
    ----------
    model
        With or without loops.
    t, q, v
        Times, and positions and velocities in columns.
    tau, f_ext
        The forces that acted, as in :func:`~multibody.as_ivp`.

    Examples
    --------
    >>> from multibody import as_ivp, mechanisms
    >>> from integrators import solve
    >>> entry = mechanisms.entry("four_bar")
    >>> model = entry.model()
    >>> run = solve(as_ivp(model, *entry.start(model), (0, 1)), method="DOP853", rtol=1e-9)
    >>> seen = observe(model, run.t, run.y[:3], run.y[3:])
    >>> seen.rank, seen.singular, seen.gap < 1e-6, seen.energy < 1e-6
    ((2, 2), False, True, True)
    """
    keep = np.unique(np.linspace(0, len(t) - 1, min(len(t), MOST_STATES)).round().astype(int))
    t, q, v = t[keep], np.ascontiguousarray(q[:, keep].T), np.ascontiguousarray(v[:, keep].T)
    conserved = tau is None and f_ext is None and not model.is_rheonomic and not model.is_damped
    change = _energy_change(model, t, q, v) if conserved else None
    if not model.loops:
        return Observed(energy=change)
    tau_law, params = joint_force_law(model, tau)
    force_law = external_force_law(model, f_ext)
    gaps, speeds, forces, ranks, values = [], [], [], [], []
    for time, position, velocity in zip(map(float, t), q, v):
        c = constraints(model, position, velocity, t=time)
        gaps.append(np.abs(c.delta).max())
        speeds.append(np.abs(c.K @ velocity - c.nu).max())
        torque = None if tau_law is None else tau_law(time, position, velocity, params)
        outside = None if force_law is None else force_law(time, position, velocity)
        found = constrained_accelerations(model, position, velocity, torque, outside, t=time)
        forces.append(np.abs(found.multipliers).max(initial=0.0))
        ranks.append(found.rank)
        values.append(found.singular_values)
    closest, when, passages = _closest(model, t, q, v, np.array(values), max(ranks))
    return Observed(
        gap=float(max(gaps)),
        speed=float(max(speeds)),
        energy=change,
        multiplier=float(max(forces)),
        rank=(min(ranks), max(ranks)),
        closest=closest,
        closest_time=when,
        passages=passages,
    )


def _energy_change(model: Model, t: Array, q: Array, v: Array) -> float:
    along = [energy(model, x, u, t=float(time)) for time, x, u in zip(t, q, v)]
    total = np.array([e.total for e in along])
    moving = max(
        max(e.kinetic for e in along), float(np.ptp([e.potential for e in along])), np.spacing(1.0)
    )
    return float(np.abs(total - total[0]).max() / moving)


# ---------------------------------------------------------------------- singular positions


def _ratio(model: Model, rank: int) -> Callable[[float, Array], float]:
    """Ratio of the last of `rank` mass-weighted singular values of K to the first."""
    parent = model.tree.arrays["parent_v"]

    def ratio(t: float, q: Array) -> float:
        H, K = crba(model, q, t=t), constraints(model, q, t=t).K
        sizes = np.linalg.svd(lt_solve(ltl(H, parent), parent, K.T), compute_uv=False)
        return float(sizes[rank - 1] / sizes[0])

    return ratio


def _closest(
    model: Model, t: Array, q: Array, v: Array, values: Array, rank: int
) -> tuple[float | None, float | None, tuple[float, ...]]:
    """Smallest ratio at the states and between those where it dips; when; passages."""
    if rank == 0:
        return None, None, ()
    from scipy.optimize import minimize_scalar

    ratio = _ratio(model, rank)
    at_states = values[:, rank - 1] / np.maximum(values[:, 0], np.finfo(float).tiny)
    padded = np.concatenate([[np.inf], at_states, [np.inf]])
    dips = np.nonzero((at_states <= padded[:-2]) & (at_states <= padded[2:]))[0]
    lowest: list[tuple[float, float]] = []
    for i in dips[np.argsort(at_states[dips])][:MOST_DIPS].tolist():
        here = [(float(at_states[i]), float(t[i]))]
        # V-shaped at a singular position: the ratio is the absolute value of a smooth function.
        for left in range(max(0, i - 1), min(i + 1, len(t) - 1)):
            path = _between(model, t, q, v, left, left + 1)
            found = minimize_scalar(
                lambda s, path=path: ratio(*path(s)), bounds=(0.0, 1.0), options={"xatol": 1e-7}
            )
            here.append((float(found.fun), float(path(found.x)[0])))
        lowest.append(min(here))
    best, when = min(lowest)
    passages = sorted(time for value, time in lowest if value < NEAR_SINGULAR)
    # A run that stalls has many states at one place: they are one passage.
    apart = 1e-6 * abs(float(t[-1] - t[0]))
    kept = [x for k, x in enumerate(passages) if k == 0 or x - passages[k - 1] > apart]
    return best, when, tuple(kept)


def _between(
    model: Model, t: Array, q: Array, v: Array, i: int, k: int
) -> Callable[[float], tuple[float, Array]]:
    """Cubic through two states with their rates, for s from 0 to 1."""
    h = float(t[k] - t[i])
    ends = [position_rate(model, q[j], v[j], t=float(t[j])) for j in (i, k)]

    def path(s: float) -> tuple[float, Array]:
        a, b = (1 + 2 * s) * (1 - s) ** 2, s * s * (3 - 2 * s)
        c, d = s * (1 - s) ** 2, s * s * (s - 1)
        place = a * q[i] + b * q[k] + h * (c * ends[0] + d * ends[1])
        return float(t[i]) + s * h, model.normalise(place)

    return path
