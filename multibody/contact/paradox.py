"""Whether forces of Coulomb friction leave rigid bodies a second motion (Painlevé's paradox).

A point whose friction presses it the harder into the surface, the harder it is pressed, may jam or
leave, slide or stand; points that face each other may be wedged or let go.

Two motions cannot be where friction is small. With the cones' own inequality, the difference of two
answers has ΔrᵀWΔr ≤ Σ μ |Δu_t| |Δr_n|, which for Δu = WΔr ≠ 0 is impossible if the right side, a
quadratic form in Δu, is the smaller one. Elsewhere a second answer is looked for:

- each point is solved for all its answers while the others press as they do;
- of few points all states are tried, in a plane exactly, else in several directions;
- points are swept from no forces at all, and from forces that squeeze.

An answer counts if it fulfils Coulomb's law and *moves* otherwise: forces that differ and move
nothing otherwise (a table on four legs) are no second motion. Nor are those that share one load in
another way while they slide (the same table): between two of these there are all others, and the
smallest forces are taken. Points that may be squeezed by any force have several motions, though.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from ..checks import Array
from .cone_kernel import ConeWorkspace
from .cones import (
    APART,
    RESIDUAL,
    SLIDING,
    STICKING,
    ConeSolution,
    answer_for,
    coulomb,
    judged,
    swept,
)
from .lcp import LCPError

__all__ = ["another_motion", "any_motion"]

#: Motions that differ by less, in parts of the largest |b|, are one.
ANOTHER = 1e-6

#: Directions of slip that are looked through, and those that are tried where all states are.
ANGLES = 2.0 * np.pi * np.arange(49) / 48
COMPASS = 2.0 * np.pi * np.arange(4) / 4

#: Forces that squeeze, in parts of those that would stop a point.
SQUEEZE = 1e3

#: Points of which all states are tried, in a plane and in space.
FEW_IN_PLANE, FEW = 3, 2

#: Singular values below this part of the largest are rounding.
ROUNDING = 1e-11


def any_motion(W: Array, b: Array, mu: Array, slip: Array) -> ConeSolution:
    """The answer of :func:`~.cones.coulomb`, or one of those that only looking for all finds.

    Raises
    ------
    LCPError
        If there is none.
    """
    try:
        return coulomb(W, b, mu, slip=slip)
    except LCPError:
        for answer in _of_few_points(W, b, mu, slip):
            if answer.residual <= RESIDUAL:
                return answer
        raise


def another_motion(
    W: Array, b: Array, mu: Array, slip: Array, found: ConeSolution
) -> ConeSolution | None:
    """A second answer of `coulomb` with another motion than the one found; None if none shows up.

    Parameters are those of :func:`~.cones.coulomb`; `slip` is zero where a point stands.
    """
    size = float(np.abs(b).max(initial=0.0))
    if size == 0.0 or _small_friction(W, mu):
        return None
    for answer in _answers(W, b, mu, slip, found):
        if answer.residual > RESIDUAL or _apart(answer, found) <= ANOTHER * size:
            continue
        if not _shares(W, b, mu, slip, (found, answer)):
            return answer
    return None


def _shares(
    W: Array, b: Array, mu: Array, slip: Array, two: tuple[ConeSolution, ConeSolution]
) -> bool:
    """Whether two answers share one load in different ways, and others lie between them."""
    more = two[1].r[:, 0] - two[0].r[:, 0]
    if not more.min() < 0.0 < more.max():  # one of them squeezes
        return False
    half, least = 0.5 * (two[0].r + two[1].r).ravel(), 0.1 * _apart(*two)
    between = (answer_for(W, b, mu, half, one.state, slip) for one in two)
    return any(
        found.residual <= RESIDUAL and min(_apart(found, one) for one in two) > least
        for found in between
    )


def _apart(one: ConeSolution, other: ConeSolution) -> float:
    """How much two motions differ."""
    return float(np.abs(one.u - other.u).max(initial=0.0))


def _small_friction(W: Array, mu: Array) -> bool:
    """Whether friction is so small that there cannot be two motions.

    With W = YYᵀ and x = YᵀΔr, Δu_t = Y_t x and Δr_n = Z_n x, Z = Y(YᵀY)⁻¹, if no forces that move
    nothing have a normal part. For any s > 0, 2 |Δu_t| |Δr_n| ≤ s |Δu_t|² + |Δr_n|²/s.
    """
    values, vectors = np.linalg.eigh(W)
    moves = values > ROUNDING * values[-1]
    if np.abs(vectors[::3, ~moves]).max(initial=0.0) > np.sqrt(ROUNDING):
        return False
    root = np.sqrt(values[moves])
    Y, Z = vectors[:, moves] * root, vectors[:, moves] / root
    form = np.zeros((len(root), len(root)))
    for i in np.flatnonzero(mu > 0.0):
        tangents, normal = Y[3 * i + 1 : 3 * i + 3], Z[3 * i : 3 * i + 1]
        s = np.linalg.norm(normal) / np.maximum(np.linalg.norm(tangents, 2), 1e-300)
        form += mu[i] * (s * tangents.T @ tangents + normal.T @ normal / s)
    return bool(0.5 * np.linalg.eigvalsh(form)[-1] < 1.0)


def _answers(
    W: Array, b: Array, mu: Array, slip: Array, found: ConeSolution
) -> Iterator[ConeSolution]:
    """What may be one, judged."""
    n = len(mu)
    squeezed, own = np.zeros(3 * n), np.diag(W)[::3]
    squeezed[::3] = SQUEEZE * np.abs(b).max() / np.where(own > 0.0, own, np.inf)
    for start in (np.zeros(3 * n), squeezed):
        w = ConeWorkspace.of_size(n)
        w.W[...], w.b[...], w.mu[...], w.slip[...], w.r[...] = W, b, mu, slip, start
        if swept(w):
            yield judged(W, b, mu, w.r.copy(), slip)
    state = np.where(found.u[:, 0] > ANOTHER * np.abs(b).max(), APART, found.state)
    for i in np.flatnonzero(mu > 0.0):
        for other, angle in _of_one_point(W, b, mu, slip, found, int(i)):
            states = state.copy()
            states[i] = other
            yield answer_for(W, b, mu, _towards(found.r, int(i), angle), states, slip, 1e300)
    yield from _of_few_points(W, b, mu, slip)


def _of_few_points(W: Array, b: Array, mu: Array, slip: Array) -> Iterator[ConeSolution]:
    """Answers for all states."""
    n = len(mu)
    ways = [_ways_in_plane(W, mu, slip, i) for i in range(n)]
    if all(ways) and n <= FEW_IN_PLANE:
        for choice in product(*ways):
            forces = np.concatenate([along for along, _ in choice])
            still = np.concatenate([across for _, across in choice])
            x = np.linalg.lstsq(still @ W @ forces.T, -still @ b, rcond=ROUNDING)[0]
            yield judged(W, b, mu, x @ forces, slip)
    elif n <= FEW:
        states_of_one = [(APART, 0.0), (STICKING, 0.0), *((SLIDING, angle) for angle in COMPASS)]
        for chosen in product(states_of_one, repeat=n):
            r = np.zeros((n, 3))
            for i, (_, angle) in enumerate(chosen):
                r = _towards(r, i, angle).reshape(n, 3)
            states = np.array([which for which, _ in chosen])
            yield answer_for(W, b, mu, r.ravel(), states, slip, 1e300)


def _ways_in_plane(W: Array, mu: Array, slip: Array, i: int) -> list[tuple[Array, Array]]:
    """States of a point that can slide along one line only; none if it can elsewhere.

    Each has the directions that forces act in, and those in which the point does not move.
    """
    at = slice(3 * i + 1, 3 * i + 3)
    normal, line = np.zeros(W.shape[0]), np.zeros(W.shape[0])
    normal[3 * i] = 1.0
    if slip[i].any() or mu[i] == 0.0:
        line[at] = slip[i]
        nothing = np.zeros((0, W.shape[0]))
        return [(nothing, nothing), _sliding(normal, line, mu[i])]
    values, vectors = np.linalg.eigh(W[at, at])
    if values[0] > ROUNDING * values[1]:
        return []
    line[at] = vectors[:, 1]
    both = np.array([normal, line])
    return [
        (both[:0], both[:0]),
        (both, both),
        _sliding(normal, line, mu[i]),
        _sliding(normal, -line, mu[i]),
    ]


def _sliding(normal: Array, line: Array, mu: float) -> tuple[Array, Array]:
    return (normal - mu * line)[None], normal[None]


def _towards(r: Array, i: int, angle: float) -> Array:
    """Forces in a row; those of point i oppose slip in a direction."""
    r = r.copy()
    length = max(float(np.abs(r[i]).max()), 1.0)
    r[i] = length, -length * np.cos(angle), -length * np.sin(angle)
    return r.ravel()


def _of_one_point(
    W: Array, b: Array, mu: Array, slip: Array, found: ConeSolution, i: int
) -> Iterator[tuple[int, float]]:
    """States of point i, with the direction of slip, while all others press as they were found."""
    at = slice(3 * i, 3 * i + 3)
    own = W[at, at]
    q = found.u[i] - own @ found.r[i]
    if q[0] >= 0.0 and found.r[i, 0] > 0.0:
        yield APART, 0.0
    if slip[i].any():
        if (own[0, 0] - mu[i] * (slip[i] @ own[0, 1:])) * q[0] < 0.0 == found.r[i, 0]:
            yield SLIDING, float(np.arctan2(slip[i, 1], slip[i, 0]))
        return
    if found.state[i] != STICKING:
        yield STICKING, 0.0
    d = np.array([np.cos(ANGLES), np.sin(ANGLES)])
    slope = own[0, 0] - mu[i] * (own[0, 1:] @ d)
    normal = -q[0] / np.where(slope == 0.0, np.inf, slope)
    u = q[1:, None] + own[1:, :1] * normal - mu[i] * (own[1:, 1:] @ d) * normal
    across, along = u[0] * d[1] - u[1] * d[0], u[0] * d[0] + u[1] * d[1]
    turns = across[:-1] * across[1:] <= 0.0
    turns &= (slope[:-1] * slope[1:] > 0.0) & (normal[:-1] > 0.0) & (along[:-1] >= 0.0)
    for j in np.flatnonzero(turns):
        yield SLIDING, float(0.5 * (ANGLES[j] + ANGLES[j + 1]))
