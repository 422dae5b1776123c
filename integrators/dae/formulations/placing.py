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

from ...tracing import Traced, TracingError
from ..acceleration import Factor
from ..partition import Partition

if TYPE_CHECKING:
    from ..system import Mechanical

__all__ = ["Placing"]

Array = NDArray[np.float64]

ITERATIONS = 3
SETTLED = 1e-7
"""Relative size of the last correction of Newton's method: what it leaves is of the size of its
square."""
LEAST_PIVOT = 1e-3  # relative to where the rows and columns were chosen; below, f is NaN
WORN_PIVOT = 0.03  # below, choose again: long before, or steps would creep up to where f is NaN


class Placing:
    """q, v, q̇ and v̇ from the independent part of a state, for one partition.

    Calling it with (t, y, p) returns (q, v, [q̇; v̇]), or None where elimination in the given order
    or the fixed number of iterations did not do.

    Attributes
    ----------
    slope
        [q̇; v̇] as machine code; NaN where it did not do, so that a shorter step is tried.
    place
        (q, v), and behind them 0, or 1 where it did not do, `worst` was exceeded or pivots have
        become small.
    """

    def __init__(self, mechanical: Mechanical, split: Partition, worst: float = np.inf) -> None:
        self.mechanical, self.split, self.worst = mechanical, split, worst
        self.nq, n = mechanical.nq, mechanical.nq + mechanical.nv
        pivots = np.abs([float(x) for x in InOrder(split.core).pivots])
        self.at_choice = pivots
        k = mechanical.params.size
        self.slope = Traced(self._slope, n=n, params=k)
        self.place = Traced(self._place, n=n, params=k, outputs=n + 1)
        for made in (self.slope, self.place):
            made.machine_code()

    @classmethod
    def made(cls, mechanical: Mechanical, split: Partition, worst: float) -> Placing | None:
        """Return the traced code, or None where it would be too large, or has branches."""
        try:
            return cls(mechanical, split, worst)
        except TracingError:
            return None

    def __call__(self, t: float, y: Array, p: Any) -> tuple[Array, Array, Array] | None:
        """Place a state; None if the result is not to be trusted."""
        slope = self.slope(t, y, p)
        if not np.isfinite(slope).all():
            return None
        q, v, _ = np.split(self.place(t, y, p), [self.nq, len(y)])
        return q, v, slope

    def _slope(self, t: Any, y: Any, p: Any) -> Any:
        mechanical, free = self.mechanical, self.split.independent
        q, v, known, N, doubt = self._placed(t, y, p, LEAST_PIVOT)
        M, force, _, _, gamma, _ = mechanical.ways.terms(t, q, v, p)
        v_dot = np.zeros(mechanical.nv, dtype=object)
        v_dot[self.split.dependent] = known.solve(np.asarray(gamma)[self.split.rows])
        if free.size:
            load = N.T @ (force - M @ v_dot)
            v_dot = v_dot + N @ Factor(N.T @ (M @ N)).solve(load)
        slope = np.concatenate([mechanical.parts.rate(t, q, v, p), v_dot])
        return np.where(doubt <= 1.0, slope, np.nan)

    def _place(self, t: Any, y: Any, p: Any) -> Any:
        q, v, _, N, doubt = self._placed(t, y, p, WORN_PIVOT)
        if np.isfinite(self.worst):
            doubt = np.maximum(doubt, _largest(N[self.split.dependent].ravel()) / self.worst)
        return np.concatenate([q, v, [np.where(doubt <= 1.0, 0.0, 1.0)]])

    def is_worn(self, G: Array) -> bool:
        """Whether pivots in the order of the choice have become small at another place."""
        core = G[np.ix_(self.split.rows, self.split.dependent)]
        pivots = np.abs([float(x) for x in InOrder(core).pivots])
        return not bool(np.all(pivots >= WORN_PIVOT * self.at_choice))

    def _placed(self, t: Any, y: Any, p: Any, least: float) -> tuple[Any, ...]:
        """q, v, factors of G, N, and how doubtful they are (up to 1 is good)."""
        mechanical, split = self.mechanical, self.split
        rows, dependent, free = split.rows, split.dependent, split.independent
        q = mechanical.normalised(np.array(y[: self.nq]), p)
        v = np.array(y[self.nq :])
        u: Any = np.zeros(split.rank)
        for _ in range(ITERATIONS if split.rank else 0):
            g, G = mechanical.ways.constraint(t, q, p)
            u = InOrder(np.asarray(G)[rows][:, dependent]).solve(-np.asarray(g)[rows])
            shift = np.zeros(mechanical.nv, dtype=object)
            shift[dependent] = u
            q = mechanical.displaced(t, q, shift, p)
        _, _, _, G, _, nu = mechanical.ways.terms(t, q, np.zeros(mechanical.nv), p)
        G = np.asarray(G)[rows]
        known = InOrder(G[:, dependent])
        v[dependent] = known.solve(np.asarray(nu)[rows] - G[:, free] @ v[free])
        N = np.zeros((mechanical.nv, free.size), dtype=object)
        N[free, np.arange(free.size)] = 1.0
        for k, column in enumerate(free):
            N[dependent, k] = known.solve(-G[:, column])
        doubt = _largest(u) / (SETTLED * np.maximum(1.0, _largest(q)))
        for before, pivot in zip(self.at_choice, known.pivots):
            doubt = np.maximum(doubt, least * before / abs(pivot))
        return q, v, known, N, doubt


def _largest(values: Any) -> Any:
    """The largest absolute value, of numbers or symbols; 0 if there is none."""
    found: Any = 0.0
    for x in values:
        found = np.maximum(found, abs(x))
    return found


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
