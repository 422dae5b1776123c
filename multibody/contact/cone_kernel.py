"""Sweeps over contact points: each is solved exactly for the forces of all others."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from integrators.kernels import kernel
from integrators.kernels.workspace import Workspace

__all__ = ["APART", "GIVEN", "SLIDING", "STICKING", "ConeWorkspace", "sweep_kernel"]

APART, STICKING, SLIDING = 0, 1, 2
#: In the kernel: slides already, in a direction that is given.
GIVEN = 3

#: A diagonal entry of W below this part of the largest belongs to a direction nothing moves in.
IMMOVABLE = 1e-13
SWEEPS = 30
SETTLED = 1e-13
ANGLES = 48


class ConeWorkspace(Workspace):
    """Arrays for n points; W is 3n × 3n."""

    FIELDS: ClassVar[dict[str, str]] = {
        "W": "f2",
        "b": "f1",
        "mu": "f1",
        "r": "f1",
        "u": "f1",
        "state": "i1",
        "slip": "f2",  # given directions of slip; zero where they are to be found
        "local": "f1",  # what one point feels of all others, and a number to hand on
        "trial": "f1",
        "sweeps": "i1",
    }

    @classmethod
    def of_size(cls, n: int) -> ConeWorkspace:
        """Make a workspace for n points."""
        return cls(
            W=np.zeros((3 * n, 3 * n)),
            b=np.zeros(3 * n),
            mu=np.zeros(n),
            r=np.zeros(3 * n),
            u=np.zeros(3 * n),
            state=np.zeros(n, dtype=np.int64),
            slip=np.zeros((n, 2)),
            local=np.zeros(4),
            trial=np.zeros(3),
            sweeps=np.zeros(1, dtype=np.int64),
        )


@kernel
def stick_one(W: Any, at: int, q: Any, out: Any) -> None:
    """Solve W_ii r = −q for one point, directions that cannot move left out."""
    big = max(W[at, at], max(W[at + 1, at + 1], W[at + 2, at + 2]))
    # Elimination without pivoting: W_ii is symmetric and semidefinite.
    a00, a11, a22 = W[at, at], W[at + 1, at + 1], W[at + 2, at + 2]
    a01, a02, a12 = W[at, at + 1], W[at, at + 2], W[at + 1, at + 2]
    x0, x1, x2 = -q[0], -q[1], -q[2]
    f1, f2 = a01 / a00, a02 / a00
    a11, a12, x1 = a11 - f1 * a01, a12 - f1 * a02, x1 - f1 * x0
    a22, x2 = a22 - f2 * a02, x2 - f2 * x0
    f3 = 0.0
    if a11 > IMMOVABLE * big:
        f3 = a12 / a11
        a22, x2 = a22 - f3 * a12, x2 - f3 * x1
    out[2] = x2 / a22 if a22 > IMMOVABLE * big else 0.0
    out[1] = (x1 - a12 * out[2]) / a11 if a11 > IMMOVABLE * big else 0.0
    out[0] = (x0 - a01 * out[1] - a02 * out[2]) / a00


@kernel
def slide_one(W: Any, at: int, mu: float, q: Any, c: float, s: float, out: Any) -> float:
    """Force if the point slides in direction (c, s); returns u_t × (c, s), NaN if none exists.

    It slides that way where the product vanishes and u_t · (c, s), left in q[3], is not negative.
    """
    slope = W[at, at] - mu * (c * W[at, at + 1] + s * W[at, at + 2])
    if not slope > IMMOVABLE * W[at, at]:
        return np.nan
    out[0] = -q[0] / slope
    out[1] = -mu * out[0] * c
    out[2] = -mu * out[0] * s
    u1 = q[1] + W[at + 1, at] * out[0] + W[at + 1, at + 1] * out[1] + W[at + 1, at + 2] * out[2]
    u2 = q[2] + W[at + 2, at] * out[0] + W[at + 2, at + 1] * out[1] + W[at + 2, at + 2] * out[2]
    q[3] = u1 * c + u2 * s
    return u1 * s - u2 * c


@kernel
def one_point(w: Any, i: int) -> int:
    """Force `trial` of one point that feels `local`; returns its state, −1 if there is none."""
    W, at, mu, q, out = w.W, 3 * i, w.mu[i], w.local, w.trial
    for k in range(3):
        out[k] = 0.0
    if q[0] >= 0.0 or not W[at, at] > 0.0:
        return APART
    if mu == 0.0:
        out[0] = -q[0] / W[at, at]
        return SLIDING
    c, s = w.slip[i, 0], w.slip[i, 1]
    if c != 0.0 or s != 0.0:
        slope = W[at, at] - mu * (c * W[at, at + 1] + s * W[at, at + 2])
        if not slope > IMMOVABLE * W[at, at]:
            return -1
        out[0] = -q[0] / slope
        out[1], out[2] = -mu * out[0] * c, -mu * out[0] * s
        return GIVEN
    stick_one(W, at, q, out)
    slip = np.sqrt(out[1] * out[1] + out[2] * out[2])
    if out[0] >= 0.0 and slip <= mu * out[0]:
        return STICKING
    # u_t × direction changes its sign where the point slides in that direction.
    last_angle, last = 0.0, np.nan
    for k in range(ANGLES + 1):
        angle = 2.0 * np.pi * k / ANGLES
        value = slide_one(W, at, mu, q, np.cos(angle), np.sin(angle), out)
        if value == 0.0 and q[3] >= 0.0:
            return SLIDING
        if value * last < 0.0:
            low, high = last_angle, angle
            for _ in range(60):
                middle = 0.5 * (low + high)
                value = slide_one(W, at, mu, q, np.cos(middle), np.sin(middle), out)
                if value == 0.0:
                    break
                if value * last > 0.0:
                    low = middle
                else:
                    high = middle
            if q[3] >= 0.0:
                return SLIDING
            value = slide_one(W, at, mu, q, np.cos(angle), np.sin(angle), out)
        last_angle, last = angle, value
    return -1


@kernel
def sweep_kernel(w: Any) -> float:
    """r, u and states by sweeps over the points; returns the last change, −1 for no solution."""
    n = w.mu.shape[0]
    change = 0.0
    for sweep in range(SWEEPS):
        w.sweeps[0] = sweep + 1
        change, size = 0.0, 0.0
        for i in range(n):
            at = 3 * i
            for k in range(3):
                total = w.b[at + k]
                for j in range(3 * n):
                    if (j < at or j > at + 2) and w.r[j] != 0.0:
                        total += w.W[at + k, j] * w.r[j]
                w.local[k] = total
            state = one_point(w, i)
            if state < 0:
                return -1.0
            w.state[i] = state
            for k in range(3):
                change = max(change, abs(w.trial[k] - w.r[at + k]))
                size = max(size, abs(w.trial[k]))
                w.r[at + k] = w.trial[k]
        if change <= SETTLED * size or n == 1:
            return 0.0
    return change
