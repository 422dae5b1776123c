"""Coulomb friction at several points at once: forces in cones, with the law of maximum dissipation.

With u = W r + b for each point (normal first, then two tangents), wanted are forces r with

    r_n ≥ 0,  u_n ≥ 0,  r_n u_n = 0;
    |r_t| ≤ μ r_n,  and  r_t = −μ r_n u_t/|u_t|  where u_t ≠ 0.

u are accelerations and r forces, or u velocities and r impulses. There is no friction law for which
this is a convex problem: a solution need not exist nor be the only one (Painlevé). Two ways lead
to one:

- `coulomb` sweeps over the points and solves each exactly for the forces of all others
  [jourdan1998]_; the states (apart, sticking, sliding) that come out are then solved as equations.
- `friction_lcp` puts a pyramid in the cone's place [stewart1996]_, and asks Lemke. Exact in a
  plane, where the cone has two sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from integrators.kernels import OnWorkspace

from ..checks import Array
from .cone_kernel import APART, GIVEN, SLIDING, STICKING, ConeWorkspace, sweep_kernel
from .lcp import LCPError, solve_lcp
from .sharing import changes_of_forces, force_columns, share

__all__ = [
    "APART",
    "SLIDING",
    "STICKING",
    "ConeSolution",
    "answer_for",
    "coulomb",
    "friction_lcp",
    "judged",
    "shared_evenly",
    "swept",
]

#: So many times the sweeps of the kernel, each followed by an attempt to solve for the states that
#: they found.
ROUNDS = 60
NEWTON_STEPS = 12
#: Residual of an accepted answer, in parts of the largest |b|.
RESIDUAL = 1e-9
#: Forces so near to the edge of a cone, in parts of the largest, may be at it.
EDGE = 1e-3
#: Forces that sweeps have lost.
DIVERGED = 1e100
#: Sliding slower than this part of the largest |b| may be sticking.
HARDLY = 1e-2


_sweeps = OnWorkspace(sweep_kernel, ConeWorkspace, returns=True)


class ConeSolution(NamedTuple):
    """Forces in Coulomb's cones.

    Attributes
    ----------
    r, u
        (n, 3): forces (impulses), and accelerations (velocities) with them.
    state
        APART, STICKING or SLIDING of each point.
    residual
        What the law lacks, in parts of the largest |b|.
    """

    r: Array
    u: Array
    state: Array
    residual: float


def coulomb(
    W: Array, b: Array, mu: Array, start: Array | None = None, slip: Array | None = None
) -> ConeSolution:
    """Forces r (n, 3) and motions u = W r + b with Coulomb's law at n points.

    Parameters
    ----------
    W, b
        (3n, 3n) symmetric semidefinite, and 3n numbers.
    mu
        Coefficient of friction of each point.
    start
        Forces to begin with.
    slip
        (n, 2): unit vectors where a point slides already, so that the direction of friction is
        given whatever u_t is (accelerations); zeros elsewhere.

    Raises
    ------
    LCPError
        If no solution is found.

    Examples
    --------
    A block of mass 1 on a plane of slope 0.3 with μ = 0.5 sticks:

    >>> weight = 9.81 * np.array([-np.cos(0.3), np.sin(0.3), 0.0])
    >>> found = coulomb(np.eye(3), weight, np.array([0.5]))
    >>> found.state, found.u.round(12)
    (array([1]), array([[0., 0., 0.]]))
    """
    n = len(mu)
    w = ConeWorkspace.of_size(n)
    w.W[...], w.b[...], w.mu[...] = W, b, mu
    given = np.zeros((n, 2)) if slip is None else slip
    w.slip[...] = given
    if start is not None:
        w.r[...] = np.ravel(start)
    if n and not given.any():
        stuck = _at_rest(W, b, mu, given)
        if stuck is not None:
            return stuck
    for _ in range(ROUNDS if n else 0):
        status = _sweeps(w)
        if not np.abs(w.r).max() < DIVERGED:
            status = -1.0
        if status < 0.0:
            break
        found = judged(W, b, mu, w.r.copy(), given)
        for state in _candidates(w):
            for r in _starts(w.r, state):
                better = answer_for(W, b, mu, r, state, given)
                if better.residual < found.residual:
                    found = better
        if found.residual <= RESIDUAL:
            return found
        if status == 0.0:
            break
    if not n:
        return judged(W, b, mu, np.zeros(0), given)
    guesses = [] if status < 0.0 else [(w.r.copy(), w.state.copy())]
    refused: LCPError | None = None
    try:
        pyramids = friction_lcp(W, b, mu, facets=16, slip=given)
        guesses.append((pyramids.r.ravel(), _states(pyramids, mu)))
    except LCPError as error:
        refused = error
    best = judged(W, b, mu, w.r.copy(), given)
    for guess, first in guesses:
        for state in _near(np.where(first == GIVEN, SLIDING, first)):
            for r in _starts(guess, state):
                for hardly in (1e-13, HARDLY):
                    found = answer_for(W, b, mu, r, state, given, hardly)
                    if found.residual <= RESIDUAL:
                        return found
                    best = found if found.residual < best.residual else best
    if refused is not None and not guesses:
        raise refused
    raise LCPError(
        f"no forces of Coulomb friction at the {n} contacts were found (residual "
        f"{best.residual:.1e}); with large friction there may be none (Painlevé): use less, or a "
        "compliant law"
    )


def swept(w: ConeWorkspace) -> bool:
    """Sweep from the forces in a workspace; whether that came to an end."""
    return float(_sweeps(w)) == 0.0


def _at_rest(W: Array, b: Array, mu: Array, given: Array) -> ConeSolution | None:
    """Forces with which nothing moves, or with which points that just cannot stick slide.

    Sweeps end nowhere at the very edge of the cones. The forces that hold everything are known
    there, and where no such forces lie in the cones, those that are the least outside tell which
    points give way, and against which friction.
    """
    r = np.linalg.lstsq(W, -b, rcond=1e-11)[0]
    stuck = judged(W, b, mu, r, given)
    if stuck.residual <= RESIDUAL:
        return stuck
    if np.abs(stuck.u).max() > RESIDUAL * np.abs(b).max():
        return None  # no forces hold it
    sticks = mu > 0.0
    B = changes_of_forces(W, force_columns(stuck.r, mu, np.ones(len(mu), dtype=bool), sticks))
    held = share(stuck.r, B, mu, sticks, -EDGE)
    if held.margin < -EDGE * np.abs(held.forces).max():
        return None
    stuck = judged(W, b, mu, held.forces.ravel(), given)
    if stuck.residual <= RESIDUAL:
        return stuck
    slope = np.hypot(held.forces[:, 1], held.forces[:, 2])
    size = np.abs(held.forces).max()
    edge = slope >= mu * held.forces[:, 0] - EDGE * size
    gone = held.forces[:, 0] <= EDGE * size
    for lifted in (gone, np.zeros_like(gone)):
        state = np.where(lifted, APART, np.where(edge, SLIDING, STICKING))
        for start in _starts(held.forces.ravel(), state):
            found = answer_for(W, b, mu, start, state, given, HARDLY)
            if found.residual <= RESIDUAL:
                return found
    return None


def shared_evenly(W: Array, b: Array, mu: Array, found: ConeSolution, slip: Array) -> ConeSolution:
    """Of forces that are not the only ones those of least norm in the cones."""
    nothing = 1e-9 * np.abs(b).max(initial=0.0)
    closed, still = found.u[:, 0] <= nothing, np.abs(found.u).max(axis=1) <= nothing
    state = np.where(closed & (found.state == APART), SLIDING, found.state)
    state = np.where(still & (mu > 0.0), STICKING, state)
    state = np.where(still & (mu == 0.0), SLIDING, state)
    speed = np.linalg.norm(found.u[:, 1:], axis=1)
    slides = (state == SLIDING) & (mu > 0.0) & (speed > 0.0) & ~slip.any(axis=1)
    way = slip.copy()
    way[slides] = found.u[slides, 1:] / speed[slides, None]
    even = answer_for(W, b, mu, np.zeros_like(b), state, way)
    even = judged(W, b, mu, even.r.ravel(), slip)
    if even.residual <= RESIDUAL:
        return even
    sticks = closed & (state == STICKING) & ~slip.any(axis=1)
    against = found.r.copy()  # where there is no force yet, it will be against the slip
    against[slides | slip.any(axis=1), 1:] = -way[slides | slip.any(axis=1)]
    B = changes_of_forces(W, force_columns(against, mu, closed, sticks))[np.repeat(closed, 3)]
    r = found.r.copy()
    r[closed] = share(found.r[closed], B, mu[closed], sticks[closed]).forces
    better = judged(W, b, mu, r.ravel(), slip)
    return better if better.residual <= max(RESIDUAL, found.residual) else found


def _states(found: ConeSolution, mu: Array) -> Array:
    slip = np.linalg.norm(found.r[:, 1:], axis=1)
    normal = found.r[:, 0]
    state = np.where(slip < (0.98 - 1e-9) * mu * normal, STICKING, SLIDING)
    return np.where(normal <= 1e-12 * np.abs(normal).max(initial=0.0), APART, state)


def _near(state: Array) -> Iterator[Array]:
    """States, and those in which a few of the closed points slide in place of sticking."""
    yield state
    closed = np.flatnonzero(state != APART)
    for choice in product((STICKING, SLIDING), repeat=len(closed)) if len(closed) <= 5 else ():
        other = state.copy()
        other[closed] = choice
        yield other


def _starts(r: Array, state: Array) -> Iterator[Array]:
    """Forces to begin with; the second time those that stick are the smallest ones."""
    yield r.copy()
    sticking = np.repeat(state == STICKING, 3)
    if sticking.any():
        yield np.where(sticking, 0.0, r)


def _candidates(w: Any) -> list[Array]:
    """States as the sweeps left them, and with those at the edge of two seen the other way.

    At the very edge of a cone sliding is slower than anything, and sweeps end nowhere: there forces
    that stick are the answer.
    """
    first = w.state.copy()
    r = w.r.reshape(-1, 3)
    size = np.abs(r[:, 0]).max(initial=0.0)
    found = [first]
    edge = (r[:, 0] <= 1e-9 * size) & (first != APART)
    u = (w.W @ w.r + w.b).reshape(-1, 3)
    still = np.hypot(u[:, 1], u[:, 2]) <= HARDLY * np.abs(w.b).max(initial=0.0)
    for which, state in ((edge, APART), (still & (first == SLIDING) & (w.mu > 0.0), STICKING)):
        if which.any():
            other = first.copy()
            other[which] = state
            found.append(other)
    return found


def answer_for(
    W: Array,
    b: Array,
    mu: Array,
    r: Array,
    state: Array,
    given: Array,
    hardly: float = 1e-13,
) -> ConeSolution:
    """Forces for given states, by Newton's method.

    Unknown are all forces where it sticks, with u = 0, and the normal force and the direction θ
    of slip where it slides, with u_n = 0 and u_t along θ. θ begins against the friction there is
    where slip is slower than `hardly`, in parts of the largest |b|.
    """
    n = len(mu)
    found = judged(W, b, mu, r, given)
    known = np.asarray(given.any(axis=1))
    sliding = np.flatnonzero((state == SLIDING) | ((state != APART) & known))
    state = np.where(known & (state != APART), SLIDING, state)
    sticking = np.flatnonzero(state == STICKING)
    if not len(sliding) + len(sticking):
        return judged(W, b, mu, np.zeros(3 * n), given)
    held = (3 * sticking[:, None] + np.arange(3)).ravel()
    slip = found.u[:, 1:].copy()
    still = np.linalg.norm(slip, axis=1) <= hardly * np.abs(b).max(initial=0.0)
    slip[still] = -found.r[still, 1:]  # about to slide: against the friction that is there
    slip[known] = given[known]
    theta = np.arctan2(slip[sliding, 1], slip[sliding, 0])
    normal = found.r[sliding, 0].copy()
    forces = np.zeros(3 * n)
    forces[held] = r[held]
    m, rough = len(sliding), (mu[sliding] > 0.0) & ~known[sliding]
    for _ in range(NEWTON_STEPS):
        c, s = np.cos(theta), np.sin(theta)
        forces[3 * sliding] = normal
        forces[3 * sliding + 1], forces[3 * sliding + 2] = (
            -mu[sliding] * normal * c,
            -mu[sliding] * normal * s,
        )
        better = judged(W, b, mu, forces, given)
        if better.residual < found.residual:
            found = better
        if better.residual <= 1e-15 or not np.isfinite(better.residual):
            break
        # Columns: forces that stick, normal forces, directions.
        G = np.zeros((3 * n, len(held) + 2 * m))
        G[held, np.arange(len(held))] = 1.0
        at = len(held) + np.arange(m)
        G[3 * sliding, at] = 1.0
        G[3 * sliding + 1, at], G[3 * sliding + 2, at] = -mu[sliding] * c, -mu[sliding] * s
        G[3 * sliding + 1, at + m] = np.where(rough, mu[sliding] * normal * s, 0.0)
        G[3 * sliding + 2, at + m] = np.where(rough, -mu[sliding] * normal * c, 0.0)
        motion = W @ G
        u = better.u.ravel()
        across = u[3 * sliding + 1] * s - u[3 * sliding + 2] * c
        turn = motion[3 * sliding + 1] * s[:, None] - motion[3 * sliding + 2] * c[:, None]
        turn[np.arange(m), at + m] += u[3 * sliding + 1] * c + u[3 * sliding + 2] * s
        J = np.vstack([motion[held], motion[3 * sliding], turn[rough]])
        values = np.concatenate([u[held], u[3 * sliding], across[rough]])
        if not np.isfinite(J).all():
            break
        step = np.linalg.lstsq(J, -values, rcond=1e-11)[0]
        forces[held] += step[: len(held)]
        normal = normal + step[len(held) : len(held) + m]
        theta = theta + np.where(rough, np.clip(step[len(held) + m :], -1.0, 1.0), 0.0)
    return found


def judged(W: Array, b: Array, mu: Array, r: Array, given: Array) -> ConeSolution:
    """u, and how far r and u are from Coulomb's law."""
    forces, motion = r.reshape(-1, 3), (W @ r + b).reshape(-1, 3)
    size = float(np.abs(b).max(initial=0.0)) or 1.0
    weight = np.where(np.diag(W)[::3] > 0.0, np.diag(W)[::3], 1.0)  # forces in units of motion
    normal, slip = forces[:, 0], np.linalg.norm(forces[:, 1:], axis=1)
    u_t = np.linalg.norm(motion[:, 1:], axis=1)
    lacks = [
        np.maximum(-normal, 0.0) * weight,
        np.maximum(-motion[:, 0], 0.0),
        np.minimum(np.abs(motion[:, 0]), np.abs(normal) * weight),
        np.maximum(slip - mu * normal, 0.0) * weight,
    ]
    known = np.asarray(given.any(axis=1))
    direction = np.where(
        known[:, None], given, motion[:, 1:] / np.where(u_t > 0.0, u_t, 1.0)[:, None]
    )
    opposite = np.linalg.norm(forces[:, 1:] + (mu * normal)[:, None] * direction, axis=1) * weight
    lacks.append(np.where(known, opposite, np.minimum(opposite, u_t)))
    residual = float(np.max(lacks, initial=0.0)) / size
    state = np.where(
        normal * weight <= 1e-13 * size,
        APART,
        np.where(~known & (u_t <= 1e-11 * size), STICKING, SLIDING),
    )
    return ConeSolution(forces, motion, state, residual)


def friction_lcp(
    W: Array, b: Array, mu: Array, facets: int = 8, slip: Array | None = None
) -> ConeSolution:
    """The same with pyramids of `facets` sides in place of the cones, by Lemke's algorithm.

    Raises
    ------
    LCPError
        On a ray.
    """
    n = len(mu)
    if facets < 4 or facets % 2:
        raise ValueError(f"facets: expected an even number ≥ 4, received {facets}")
    angles = 2.0 * np.pi * np.arange(facets) / facets
    given = np.zeros((n, 2)) if slip is None else slip
    known = np.asarray(given.any(axis=1))
    D = np.zeros((3 * n, n * facets))  # directions of friction forces
    N, F = np.zeros((3 * n, n)), np.zeros((3 * n, n))  # normals; forces with friction that is given
    E = np.zeros((n * facets, n))
    for i in range(n):
        N[3 * i, i] = F[3 * i, i] = 1.0
        F[3 * i + 1 : 3 * i + 3, i] = -mu[i] * given[i]
        part = slice(i * facets, (i + 1) * facets)
        E[part, i] = 1.0
        if not known[i]:
            D[3 * i + 1, part], D[3 * i + 2, part] = np.cos(angles), np.sin(angles)
    zero = np.zeros((n, n))
    M = np.block(
        [
            [N.T @ W @ F, N.T @ W @ D, zero],
            [D.T @ W @ F, D.T @ W @ D, E],
            [np.diag(mu), -E.T, zero],
        ]
    )
    found = solve_lcp(M, np.concatenate([N.T @ b, D.T @ b, np.zeros(n)]), method="lemke")
    r = F @ found.z[:n] + D @ found.z[n : n + n * facets]
    return judged(W, b, mu, r, given)
