"""Dense output that grows: rows with polynomial weights, and further stages until its order is met.

Where the rows of a step (its slopes, or what stands for them) cannot meet the order conditions of

    u(θ) = y + θΔ + θ(1 − θ) Σ gᵢ(θ) rowᵢ

at all θ, a further stage is added, at the node that brings the conditions nearest to a solution. A
family says what its rows weigh on its trees, and what a further stage is
(:mod:`.rosenbrock_extension`, :mod:`.additive`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from .extension import (
    CANDIDATES,
    DEPENDENT,
    MOST_FURTHER,
    POINTS,
    Extension,
    _legendre,
    _rising,
    in_legendre,
)

__all__ = ["GrowingExtension"]

Array = NDArray[np.float64]

SOLVED = 1e-10  # residual of conditions that hold, with coefficients of 16 digits
USEFUL = 1e3 * SOLVED  # what a further stage must take from the residual
NEW = 1e-8  # part of a row's weights that is not the other rows' already
SAME = 0.9  # of stages that gain about as much, the one is best that needs small weights


class GrowingExtension(ABC):
    """The search for one method.

    Attributes
    ----------
    order
        That is wanted.
    orders, exact
        Of each tree: its order, and what θⁿ is multiplied by in the exact solution.
    rows
        What each row weighs on the trees.
    step
        Weights of the first rows in Δ.
    """

    order: int
    orders: NDArray[np.int64]
    exact: Array
    rows: Array
    step: Array

    @abstractmethod
    def further(self, u: Array, du: Array) -> Array:
        """What the rows of further stages weigh: candidate, row, tree.

        u and du are the weights of u(c) and h u'(c) at each candidate's node.
        """

    def stage(self, u: Array, du: Array) -> tuple[Array, Array]:
        """Weights that make the stage, ``points`` and ``slopes`` of the :class:`Extension`."""
        return u, du

    def grow(self, further: bool = True) -> Extension:
        """Add stages, if ``further`` ones are allowed, until the order is reached or none helps."""
        reached, g = 1, np.zeros((len(self.rows), 0))
        nodes: list[float] = []
        made: list[tuple[Array, Array]] = []
        while True:
            while reached < self.order and (found := self._upto(reached + 1)) is not None:
                reached, g = reached + 1, found
            if reached == self.order or len(nodes) == MOST_FURTHER or not further:
                break
            c = np.setdiff1d(CANDIDATES, nodes)
            u, du = self._at(g, c)
            new = self.further(u, du)
            best = self._most_useful(new, self.orders <= reached + 1)
            if best is None:
                break
            nodes.append(float(c[best]))
            made.append(self.stage(u[best], du[best]))
            self.rows = np.vstack([self.rows, new[best]])
            g = np.vstack([g, np.zeros((len(new[best]), g.shape[1]))])
        points, slopes = (np.zeros((len(nodes), len(self.rows))) for _ in range(2))
        for i, (point, slope) in enumerate(made):
            points[i, : len(point)], slopes[i, : len(slope)] = point, slope
        weights = np.ascontiguousarray(self._expanded(g))
        return Extension(reached, np.array(nodes), points, slopes, weights)

    def _equations(self, wanted: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Conditions Σ bᵢ(θ) rowᵢ(τ) = e(τ) θⁿ for g, a row for each tree that is wanted."""
        order = int(self.orders[wanted].max())
        theta = Polynomial([0.0, 1.0])
        right = np.zeros((order + 1, order - 1))
        for n in range(2, order + 1):
            rest = (theta**n - theta) // (theta * (1 - theta))
            right[n] = in_legendre(rest(POINTS), order - 1)
        target = (self.exact[wanted] != 0.0).astype(float)
        return self._scaled(self.rows, wanted).T, target[:, None] * right[self.orders[wanted]]

    def _scaled(self, rows: Array, wanted: NDArray[np.bool_]) -> Array:
        """Weights on the wanted trees, in units of the exact ones where these are not zero."""
        exact = self.exact[wanted]
        scaled: Array = rows[..., wanted] / np.where(exact == 0.0, 1.0, exact)
        return scaled

    def _upto(self, order: int) -> Array | None:
        return self._solve(self.orders <= order)

    def _solve(self, wanted: NDArray[np.bool_]) -> Array | None:
        equations, right = self._equations(wanted)
        g: NDArray[Any] = np.linalg.lstsq(equations, right, rcond=DEPENDENT)[0]
        return g if np.max(np.abs(equations @ g - right), initial=0.0) < SOLVED else None

    def _most_useful(self, new: Array, wanted: NDArray[np.bool_]) -> int | None:
        """Which stage, with all of its rows, brings the conditions nearest to a solution.

        The last one that is needed is often any: then that whose rows differ most from the others.
        """
        equations, right = self._equations(wanted)
        U, sizes, _ = np.linalg.svd(equations, full_matrices=False)
        U = U[:, sizes > DEPENDENT * sizes[0]]
        right = right - U @ (U.T @ right)
        gain, clear = np.zeros(len(new)), np.zeros(len(new))
        for i, rows in enumerate(self._scaled(new, wanted)):
            directions, sizes, _ = np.linalg.svd(rows.T - U @ (U.T @ rows.T), full_matrices=False)
            gain[i] = np.linalg.norm(directions[:, sizes > NEW].T @ right)
            clear[i] = sizes[-1]
        if gain.max() <= USEFUL:
            return None
        return int(np.argmax(np.where(gain > SAME * gain.max(), clear, -1.0)))

    def _expanded(self, g: Array) -> Array:
        """Coefficients of b(θ)/θ in Legendre's polynomials."""
        values = (1 - POINTS) * (g @ _legendre(POINTS, g.shape[1]))
        values[: len(self.step)] += self.step[:, None]
        return in_legendre(values, 1 + g.shape[1])

    def _at(self, g: Array, theta: Array) -> tuple[Array, Array]:
        """Weights of u and of u' at some θ."""
        expanded = self._expanded(g)
        values, rising = _legendre(theta, expanded.shape[1]), _rising(theta, expanded.shape[1])
        return (expanded @ (theta * values)).T, (expanded @ (values + theta * rising)).T
