"""Minimal coordinates in machine code: dependent positions and velocities for one partition.

For a fixed choice of rows and dependent columns everything that :class:`.minimal.Partitioned` does
is straight-line code, once the number of Newton iterations is fixed: so it can be traced. The rows
and columns come in the order of the pivots that chose them, and in this order the small systems are
eliminated without further pivoting. Whether that was good enough is part of the result: the last
Newton correction, and the smallest pivot. Where it was not, the caller does it by pivoting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..tracing import GraphTooLargeError, Traced
from .acceleration import Factor
from .partition import Partition

if TYPE_CHECKING:
    from .system import Mechanical

__all__ = ["Placing", "may_place"]

Array = NDArray[np.float64]

ITERATIONS = 3
SETTLED = 1e-7
"""Relative size of the last correction of Newton's method: what it leaves is of the size of its
square."""
LEAST_PIVOT = 1e-3  # relative to where the rows and columns were chosen; below, choose again


def may_place(mechanical: Mechanical) -> bool:
    """Whether positions are vectors, and everything runs as machine code."""
    given = mechanical.given
    return given["retract"] is None and given["normalise"] is None and mechanical.is_traced


class Placing:
    """q, v, q̇ and v̇ from the independent part of a state, for one partition.

    Calling it with (t, y, p) returns (q, v, [q̇; v̇]), or None where elimination in the given order
    or the fixed number of iterations did not do.
    """

    def __init__(self, mechanical: Mechanical, split: Partition) -> None:
        self.mechanical, self.split = mechanical, split
        self.nq, self.nv = mechanical.nq, mechanical.nv
        rank = split.rank
        pivots = np.abs([float(x) for x in InOrder(split.core).pivots])
        self.least = LEAST_PIVOT * pivots
        sizes = [self.nq, self.nv, self.nq + self.nv, rank, rank]
        self.ends = np.cumsum(sizes)[:-1]
        self.traced = Traced(
            self._place,
            n=self.nq + self.nv,
            params=mechanical.params.size,
            outputs=int(sum(sizes)),
        )
        self.traced.machine_code()

    @classmethod
    def made(cls, mechanical: Mechanical, split: Partition) -> Placing | None:
        """Return the traced code, or None where it would be too large."""
        try:
            return cls(mechanical, split)
        except GraphTooLargeError:
            return None

    def __call__(self, t: float, y: Array, p: Any) -> tuple[Array, Array, Array] | None:
        """Place a state; None if the result is not to be trusted."""
        q, v, slope, last, pivots = np.split(self.traced(t, y, p), self.ends)
        limit = SETTLED * max(1.0, float(np.abs(q).max()))
        if not (np.all(np.abs(last) <= limit) and np.all(np.abs(pivots) >= self.least)):
            return None
        return (q, v, slope) if np.isfinite(slope).all() else None

    def _place(self, t: Any, y: Any, p: Any) -> Any:
        parts, split = self.mechanical.parts, self.split
        rows, dependent, free = split.rows, split.dependent, split.independent
        q, v = np.array(y[: self.nq]), np.array(y[self.nq :])
        still = np.zeros(self.nv)
        u: Any = np.zeros(split.rank)
        for _ in range(ITERATIONS if split.rank else 0):
            g = np.asarray(parts.constraint(t, q, p))
            core = np.asarray(parts.jacobian(t, q, p))[rows][:, dependent]
            u = InOrder(core).solve(-g[rows])
            shift = still.astype(object)
            shift[dependent] = u
            q = q + (np.asarray(parts.rate(t, q, shift, p)) - parts.rate(t, q, still, p))
        G = np.asarray(parts.jacobian(t, q, p))[rows]
        known = InOrder(G[:, dependent])
        nu = np.asarray(parts.target(t, q, p))[rows]
        v[dependent] = known.solve(nu - G[:, free] @ v[free])
        gamma = np.asarray(parts.bias(t, q, v, p))[rows]
        N = np.zeros((self.nv, free.size), dtype=object)
        N[free, np.arange(free.size)] = 1.0
        for k, column in enumerate(free):
            N[dependent, k] = known.solve(-G[:, column])
        v_dot = still.astype(object)
        v_dot[dependent] = known.solve(gamma)
        if free.size:
            M = np.asarray(parts.mass(t, q, p))
            load = N.T @ (parts.force(t, q, v, p) - M @ v_dot)
            v_dot = v_dot + N @ Factor(N.T @ (M @ N)).solve(load)
        q_dot = parts.rate(t, q, v, p)
        return np.concatenate([q, v, q_dot, v_dot, u, known.pivots])


class InOrder:
    """A = L U of a small matrix of numbers or symbols, in the order given, without pivoting."""

    def __init__(self, A: Any) -> None:
        n = len(A)
        work = np.array(A, dtype=object)
        for k in range(n):
            for i in range(k + 1, n):
                work[i, k] = work[i, k] / work[k, k]
                for j in range(k + 1, n):
                    work[i, j] = work[i, j] - work[i, k] * work[k, j]
        self.LU = work
        self.pivots = np.array([work[k, k] for k in range(n)], dtype=object)

    def solve(self, b: Any) -> Any:
        """A⁻¹ b."""
        x = np.array(b, dtype=object)
        n = len(x)
        for i in range(n):
            for k in range(i):
                x[i] = x[i] - self.LU[i, k] * x[k]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                x[i] = x[i] - self.LU[i, k] * x[k]
            x[i] = x[i] / self.LU[i, i]
        return x
