"""What a mechanism keeps along a run: closed loops, energy or its balance, components of momentum.

For :attr:`integrators.Solution.quality`. Scales are those of the mechanism: a gap is compared with
the levers on which coordinates move it, energy with what moves (the largest kinetic energy, the
range of the potential one, the work that is done). Where forces act, the books of the energy
(``ledger``) take the place of the energy; what their quadrature may be wrong by does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.runs.judging import samples, watched_invariants

from ...checks import Array
from ...dynamics.loops.closed_loop import constraints
from ...dynamics.motion import energy, kinematics, totals_along
from .ledger import energy_ledger

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["mechanism_distance", "mechanism_watch"]

#: Steps for which the books are kept: they take longer than the run.
MOST_BOOKED = 400

#: Rates of gaps may be larger than gaps: many formulations keep positions only.
RATES = 5.0

#: A mechanism that never moves with less than this part of its largest kinetic energy goes on and
#: on: a wrong energy is a wrong speed, and a run is ahead, or behind, by more and more. What that
#: may be is larger than what the energy may be wrong by.
ON_AND_ON, AHEAD = 0.01, 5.0

#: Quadrature errors that do not count as drift; their estimate is no bound.
QUADRATURE = 4.0

TINY = float(np.finfo(float).tiny)
#: Speed (rad/s, m/s) below which a mechanism counts as at rest: what changes then is rounding.
STILL = 1e-6

LOOKED_AT = ("energy", "loop gap", "loop gap rate")


def mechanism_watch(
    model: Model,
    tau: Any = None,
    f_ext: Any = None,
    states: Callable[..., tuple[Array, Array]] | None = None,
) -> Callable[..., Any]:
    """Return what :class:`integrators.IVP` takes as ``watch``.

    Parameters
    ----------
    model
        With or without loops.
    tau, f_ext
        Forces that act, as in :func:`~multibody.as_ivp`.
    states
        ``states(problem, t, y)`` gives positions and velocities, in columns; by default y is
        [q; v].
    """
    undisturbed = tau is None and f_ext is None
    conservative = undisturbed and not model.is_rheonomic and not model.is_damped

    def watch(problem: Any, t: Array, y: Array) -> dict[str, Any]:
        finite = np.isfinite(y).all(axis=0)
        t, y = t[finite], y[:, finite]
        if not t.size:
            return {}
        every = len(t) <= MOST_BOOKED
        some = np.arange(len(t)) if every and not conservative else samples(t)
        if states is None:
            q, v = y[: model.nq, some], y[model.nq : model.nq + model.nv, some]
        else:
            q, v = states(problem, t[some], y[:, some])
        found = _loops(model, t[some], q, v) if model.bonds else {}
        if conservative:
            found |= _energy(model, t[some], q, v)
        elif every and len(t) > 2:
            forces = problem.params if isinstance(tau, list | tuple | np.ndarray) else tau
            forces = tau if np.size(forces) == 0 else forces
            found["balance of the energy"] = _balance(model, t, q, v, forces, f_ext)
        if states is None:
            found |= _momenta(model, t[some], q, v, watched_invariants(problem, t, y, LOOKED_AT))
        return found

    return watch


def _loops(model: Model, t: Array, q: Array, v: Array) -> dict[str, Any]:
    """Largest gap and largest rate, at some states."""
    gap, rate, lever = np.zeros(len(t)), np.zeros(len(t)), TINY
    for k in samples(t):
        c = constraints(model, q[:, k], v[:, k], t=float(t[k]))
        gap[k] = np.abs(c.delta).max(initial=0.0)
        rate[k] = np.abs(c.K @ v[:, k] - c.nu).max(initial=0.0)
        lever = max(lever, float(np.sqrt((c.K**2).sum(axis=1).max(initial=0.0))))
    speed = float(np.abs(v).max(initial=0.0))
    return {
        "the gap of the loops": (t, gap, lever, 1.0),
        "the rate of the gap": (t, rate, lever * max(speed, STILL), RATES),
    }


def _momenta(model: Model, t: Array, q: Array, v: Array, found: Any) -> dict[str, Any]:
    """Invariants; a component of momentum is small or large beside the whole vector."""
    found = dict(found)
    named = [name for name in found if name.startswith("momentum ")]
    ends = sorted({0, len(t) // 2, len(t) - 1}) if named else []
    along = [totals_along(model, q[:, k], v[:, k], float(t[k]))[6:] for k in ends]
    for name in named:
        part = slice(0, 3) if name.startswith("momentum h") else slice(3, 6)
        whole = max(float(np.linalg.norm(h[part])) for h in along)
        times, values, scale, factor = found[name]
        found[name] = times, values, max(scale, whole), factor
    return found


def _energy(model: Model, t: Array, q: Array, v: Array) -> dict[str, Any]:
    """The energy, and how far the run is ahead by what is wrong with it."""
    along = [energy(model, x, u, t=float(s)) for s, x, u in zip(t, q.T, v.T)]
    kinetic, total = (np.array([getattr(e, part) for e in along]) for part in ("kinetic", "total"))
    most = float(kinetic.max())
    moving = max(most, float(np.ptp([e.potential for e in along])), TINY)
    found = {"energy": (t, total, moving, 1.0)}
    if most > 0.0 and kinetic.min() > ON_AND_ON * most:
        rate = (total - total[0]) / (2.0 * kinetic)  # of the speed, in parts of it
        early = np.append(0.0, np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(t)))
        mass = max(sum(body.inertia.mass for body in model.bodies), TINY)
        ahead = early * np.sqrt(2.0 * kinetic / mass)
        size = _extent(_places(model, q[:, 0], float(t[0])))
        found["the place along the path"] = t, ahead, size, AHEAD
    return found


def mechanism_distance(
    model: Model, states: Callable[..., tuple[Array, Array]] | None = None
) -> Callable[..., float]:
    """Return what :class:`integrators.IVP` takes as ``distance``: of bodies, in parts of the whole.

    Parameters
    ----------
    model, states
        As in :func:`mechanism_watch`.
    """

    def places(problem: Any, t: float, y: Array) -> Array:
        q = y[: model.nq] if states is None else states(problem, np.array([t]), y[:, None])[0][:, 0]
        return _places(model, q, t)

    def distance(problem: Any, t: float, y: Array, z: Array) -> float:
        start = places(problem, float(problem.t_span[0]), np.asarray(problem.y0, dtype=float))
        here, there = places(problem, t, y), places(problem, t, z)
        size = max(_extent(start, np.zeros((1, 3))), _extent(start, there))
        return float(np.linalg.norm(here - there, axis=1).max()) / size

    return distance


def _places(model: Model, q: Array, t: float) -> Array:
    """Points in rows that tell where bodies are and how they are turned.

    Origins, and on each axis through the centre of mass a point as far away as the body is large.
    """
    poses = kinematics(model, model.normalise(q), t=t).poses[1:]
    places = []
    for pose, inertia in zip(poses, (body.inertia for body in model.bodies)):
        places.append(pose.p)
        if inertia.mass > 0.0:
            centre = pose.p + pose.R @ inertia.centre
            radius = np.sqrt(max(np.trace(inertia.central), 0.0) / (2.0 * inertia.mass))
            places += [centre + radius * s * axis for axis in pose.R.T for s in (1.0, -1.0)]
    return np.array(places)


def _extent(*places: Array) -> float:
    """Diagonal of the box around points."""
    return max(float(np.linalg.norm(np.ptp(np.vstack(places), axis=0))), TINY)


def _balance(model: Model, t: Array, q: Array, v: Array, tau: Any, f_ext: Any) -> Any:
    moved = np.append(True, np.diff(t) != 0.0)  # a reset has two states at one time
    run = SimpleNamespace(t=t[moved], y=np.vstack([q, v])[:, moved], sol=None)
    books = energy_ledger(model, run, tau, f_ext)
    potential = np.asarray(sum(books.potential.values()))
    work = max(float(np.ptp(w)) for w in books.work.values())
    moving = max(float(books.kinetic.max()), float(np.ptp(potential)), work, TINY)
    left = np.maximum(np.abs(books.balance) - QUADRATURE * books.quadrature_error, 0.0)
    return run.t, left, moving, 1.0
