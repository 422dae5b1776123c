"""How points share forces that are not determined: the smallest of those that lie in the cones.

A table on four legs knows its accelerations, not its forces. All that hold the same motion are

    r = r₀ + B z,     z ∈ ℝᵈ,

and of these only r with N ≥ 0, and |T| ≤ μN where a point sticks, can act. Their *margin* is the
largest s for which some of them have N − |T|/μ ≥ s (N ≥ s without friction) at all points: while it
is positive the points can hold what they hold, and where it falls to zero something gives way. Both
the margin and the smallest forces (sum of squares) come from Newton's method on a logarithmic
barrier [boyd2004]_.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..checks import Array

__all__ = ["Shared", "changes_of_forces", "force_columns", "inside", "share"]

#: Singular values below this part of the largest belong to forces that move nothing.
REDUNDANT = 1e-9

#: Weight of the barrier, in parts of the forces: first, last, and from one to the next. The answer
#: is as far from its best as the last one.
FIRST, LAST, SHRINK = 1.0, 1e-12, 0.01
NEWTON_STEPS = 30
#: Newton's decrement that ends a stage: the barrier is then right to this part of its weight.
CENTRED = 1e-3
#: A margin below this part of the forces is none: forces there are taken as they are.
NO_MARGIN = 1e-10


class Shared(NamedTuple):
    """Forces (n, 3), and their margin (negative: no forces lie in all the cones)."""

    forces: Array
    margin: float


def changes_of_forces(W: Array, G: Array) -> Array:
    """B (3n, d): changes G z of forces that change no motion, W G z = 0."""
    motion = W @ G
    size = np.sqrt(np.maximum(np.einsum("ij,ij->j", G, motion), 0.0))  # columns weighted alike
    weight = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh((G / weight).T @ (motion / weight))
    free = values <= REDUNDANT * max(float(values.max(initial=0.0)), 1e-300)
    return np.asarray(G @ (vectors[:, free] / weight[:, None]))


def force_columns(forces: Array, mu: Array, pressed: Array, sticks: Array) -> Array:
    """G (3n, m): a column for each force that is free to change.

    All three of a point that sticks; of others the normal force, which drags friction along in the
    direction that it has.
    """
    columns = []
    for i in np.flatnonzero(pressed):
        for k in range(3 if sticks[i] else 1):
            column = np.zeros(3 * len(mu))
            column[3 * i + k] = 1.0
            size = float(np.hypot(forces[i, 1], forces[i, 2]))
            if not sticks[i] and size > 0.0:
                column[3 * i + 1 : 3 * i + 3] = mu[i] * forces[i, 1:] / size
            columns.append(column)
    return np.array(columns).reshape(-1, 3 * len(mu)).T


def inside(forces: Array, mu: Array, sticks: Array) -> float:
    """Least of N − |T|/μ where points stick, and of N elsewhere."""
    slope = np.where(sticks & (mu > 0.0), np.hypot(forces[:, 1], forces[:, 2]), 0.0)
    return float((forces[:, 0] - slope / np.where(mu > 0.0, mu, 1.0)).min(initial=np.inf))


def share(forces: Array, B: Array, mu: Array, sticks: Array, least: float = -np.inf) -> Shared:
    """Smallest forces r₀ + B z in the cones, and the margin; all points carry forces.

    Parameters
    ----------
    forces
        r₀ (n, 3): any that hold the motion.
    B
        (3n, d), from :func:`changes_of_forces`.
    mu, sticks
        Friction of each point, and whether it sticks: others have a limit for N only.
    least
        Margin, in parts of the largest force, below which the answer need not be exact.
    """
    size = float(np.abs(forces).max(initial=0.0))
    if not B.shape[1] or size == 0.0:
        return Shared(forces, inside(forces, mu, sticks))
    basis = np.linalg.svd(B, full_matrices=False)[0]
    smallest = forces.ravel() - basis @ (basis.T @ forces.ravel())
    found = smallest.reshape(-1, 3)
    margin = inside(found, mu, sticks)
    if margin >= 0.0:
        return Shared(found, margin)
    cones = _Cones(smallest / size, basis, mu, sticks & (mu > 0.0))
    z, s = cones.deepest(least)
    if s > NO_MARGIN:
        z = cones.smallest(z)
    return Shared(size * (smallest / size + basis @ z).reshape(-1, 3), size * s)


class _Cones:
    """Constraints N − s ≥ |T|/μ and N ≥ s as functions of (z, s): c = c₀ + C z − s, t = t₀ + D z.

    Forces are in units of the largest, and no margin is sought beyond one: forces that squeeze
    something have no limit.
    """

    def __init__(self, start: Array, basis: Array, mu: Array, sticks: Array) -> None:
        d = basis.shape[1]
        self.d, self.n = d, len(mu)
        blocks, r = basis.reshape(-1, 3, d), start.reshape(-1, 3)
        self.c0, self.C = r[:, 0], blocks[:, 0]
        slope = np.where(sticks, 1.0 / np.where(mu > 0.0, mu, 1.0), 0.0)
        self.t0, self.D = r[:, 1:] * slope[:, None], blocks[:, 1:] * slope[:, None, None]

    def deepest(self, least: float) -> tuple[Array, float]:
        """The z with the largest margin, and the margin."""
        c, t = self.c0, self.t0
        x = np.zeros(self.d + 1)
        x[-1] = float((c - np.hypot(t[:, 0], t[:, 1])).min()) - 1.0
        goal = np.zeros(self.d + 1)
        goal[-1] = -1.0
        x = self._centred(x, lambda x: (0.0, goal, 0.0), True, least)
        return x[:-1], float(x[-1])

    def smallest(self, z: Array) -> Array:
        """The z with the smallest forces; from one inside. B is orthonormal, and r₀ across it."""
        x = self._centred(z, lambda x: (0.5 * float(x @ x), x, 1.0), False)
        return x

    def _centred(
        self, x: Array, goal: Callable[..., Any], margin: bool, least: float = -np.inf
    ) -> Array:
        weight = FIRST
        while weight >= LAST:
            for _ in range(NEWTON_STEPS):
                value, slope, curve = goal(x)
                barrier, gradient, hessian = self._barrier(x, margin)
                gradient = slope + weight * gradient
                hessian = weight * hessian + curve * np.eye(len(x))
                step = -np.linalg.lstsq(hessian, gradient, rcond=1e-15)[0]
                fall = -float(gradient @ step)
                if not fall > CENTRED**2 * weight:
                    break
                length, now = 1.0, value + weight * barrier
                while length > 1e-10:
                    there = x + length * step
                    after = self._barrier(there, margin, only_value=True)[0]
                    linear = goal(there)[0] if not margin else float(slope @ (there - x))
                    if linear + weight * after <= now - 0.1 * length * fall:
                        x = there
                        break
                    length *= 0.5
                else:
                    break
            if margin and x[-1] + weight * (2 * self.n + 1) < least:
                break  # the margin is at most that
            weight *= SHRINK
        return x

    def _barrier(
        self, x: Array, margin: bool, only_value: bool = False
    ) -> tuple[float, Array, Array]:
        """−Σ log((c − s)² − |t|²), and −log(1 − s) with a margin."""
        z, s = (x[:-1], float(x[-1])) if margin else (x, 0.0)
        c = self.c0 + self.C @ z - s
        t = self.t0 + self.D @ z
        f = c * c - t[:, 0] ** 2 - t[:, 1] ** 2
        nothing = np.zeros(0)
        if (c <= 0.0).any() or (f <= 0.0).any() or (margin and s >= 1.0):
            return np.inf, nothing, nothing
        value = -float(np.log(f).sum()) - (np.log(1.0 - s) if margin else 0.0)
        if only_value:
            return value, nothing, nothing
        k = len(x)
        dc, dt = np.zeros((self.n, k)), np.zeros((self.n, 2, k))
        dc[:, : self.d], dt[:, :, : self.d] = self.C, self.D
        if margin:
            dc[:, -1] = -1.0
        df = 2.0 * (c[:, None] * dc - np.einsum("ij,ijk->ik", t, dt))
        gradient = -np.sum(df / f[:, None], axis=0)
        scaled = df / f[:, None]
        hessian = scaled.T @ scaled
        hessian -= 2.0 * ((dc / f[:, None]).T @ dc)
        hessian += 2.0 * np.einsum("ijk,ijl->kl", dt / f[:, None, None], dt)
        if margin:
            gradient[-1] += 1.0 / (1.0 - s)
            hessian[-1, -1] += 1.0 / (1.0 - s) ** 2
        return value, gradient, hessian
