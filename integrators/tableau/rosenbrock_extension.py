"""Dense output of Rosenbrock methods, found by their order conditions.

As for implicit tableaux (:mod:`integrators.tableau.extension`), rows with polynomial weights are
added up, and further rows are made as long as the order conditions have no solution. The rows are
the u = Γk of the step. A further one is a stage of the same kind, with the same matrix: where u(θ)
is the best polynomial so far,

    (M − hγJ)(k − h u'(c)) = h f(t + ch, u(c)) − hM u'(c),

so that of the defect of u only what the matrix does not damp is left. The conditions are those of
equations of index 1 (:data:`integrators.tableau.rosenbrock.CONSTRAINED`), which is also the limit
of infinite stiffness: of the order of the method for y, one less for z, as the step has them.
For methods that keep their order with any matrix, the conditions for that are imposed as well.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from .coefficients import _floats
from .coloured import ColouredTree, Family
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
from .rosenbrock import CONSTRAINED, MATRIX, WITH_MATRIX, F, G, Rosenbrock, exact_weight

__all__ = ["rosenbrock_extension"]

Array = NDArray[np.float64]

SOLVED = 1e-10  # residual of conditions that hold, with coefficients of 16 digits


@cache
def rosenbrock_extension(method: Rosenbrock, order: int) -> Extension:
    """Dense output of this order; ``points`` has weights of u(c), ``slopes`` those of h u'(c).

    Examples
    --------
    >>> from integrators.catalogue import further
    >>> found = rosenbrock_extension(further.get("Rodas4P"), 4)
    >>> found.order, len(found.nodes)
    (4, 4)
    """
    return _Search(method, order).grow()


class _Trees:
    """Trees of one family up to an order, and what stages and further rows weigh on them."""

    def __init__(self, method: Rosenbrock, family: Family, order: int) -> None:
        self.family = family
        trees: list[ColouredTree] = []
        for n in range(1, order + 1):
            for root in (F, G):
                if family is WITH_MATRIX or root == F or n < order:
                    trees += family.trees(n, root)
        self.trees = trees
        self.place = {tree: i for i, tree in enumerate(trees)}
        self.orders = np.array([family.order(tree) for tree in trees])
        self.exact = np.array([float(exact_weight(family, tree)) for tree in trees])
        self.gamma = float(method.gamma[0][0])
        stages = [[float(x) for x in method._stage(family, tree)[0]] for tree in trees]
        self.rows = _floats(method.gamma) @ np.array(stages).T

    def of_stage(self, value: Array, slope: Array) -> Array:
        """Weights of the row k that solves the equation above, for some u(c) and u'(c) at once."""
        k = np.zeros(value.shape)
        for i, (colour, children) in enumerate(self.trees):
            below = [self.place[child] for child in children]
            matrix = self.gamma * (k[:, below] - slope[:, below])
            if self.family is WITH_MATRIX:
                k[:, i] = matrix[:, 0] if colour == MATRIX else np.prod(value[:, below], axis=1)
                continue
            if len(below) == 1:
                right = value[:, below[0]] + matrix[:, 0]
            else:
                right = np.prod(value[:, below], axis=1)
            k[:, i] = right
            if colour == G:
                k[:, i] = slope[:, i] + (right - value[:, i]) / self.gamma
        return k


class _Search:
    """u(θ) = y + θΔ + θ(1 − θ) Σ gᵢ(θ) rowᵢ: weights of a given order, and rows until there are."""

    def __init__(self, method: Rosenbrock, order: int) -> None:
        self.order = order
        self.m = method.computed["m"]
        families = [CONSTRAINED]
        if method.w_order >= order:
            families.append(WITH_MATRIX)
        self.groups = [_Trees(method, family, order) for family in families]
        self.orders = np.concatenate([group.orders for group in self.groups])
        self.exact = np.concatenate([group.exact for group in self.groups])
        self.rows = np.hstack([group.rows for group in self.groups])

    def grow(self) -> Extension:
        """Add rows until the order is reached, or nothing more helps."""
        reached, g = 1, np.zeros((len(self.rows), 0))
        nodes: list[float] = []
        points: list[Array] = []
        slopes: list[Array] = []
        while True:
            while reached < self.order and (found := self._solve(reached + 1)) is not None:
                reached, g = reached + 1, found
            if reached == self.order or len(nodes) == MOST_FURTHER:
                break
            c = np.setdiff1d(CANDIDATES, nodes)
            u, du = self._at(g, c)
            rows = self._further(u, du)
            best = self._most_useful(rows, reached + 1)
            if best is None:
                break
            nodes.append(float(c[best]))
            points.append(u[best])
            slopes.append(du[best])
            self.rows = np.vstack([self.rows, rows[best]])
            g = np.vstack([g, np.zeros(g.shape[1])])
        full = [np.zeros((len(nodes), len(self.rows))) for _ in range(2)]
        for table, known in zip(full, (points, slopes)):
            for row, weights in zip(table, known):
                row[: len(weights)] = weights
        weights = np.ascontiguousarray(self._expanded(g))
        return Extension(reached, np.array(nodes), full[0], full[1], weights)

    def _further(self, u: Array, du: Array) -> Array:
        parts, first = [], 0
        for group in self.groups:
            known = self.rows[:, first : first + len(group.trees)]
            parts.append(group.of_stage(u @ known, du @ known))
            first += len(group.trees)
        return np.hstack(parts)

    def _equations(self, order: int) -> tuple[Array, Array]:
        """Conditions Σ bᵢ(θ) rowᵢ(τ) = e(τ) θⁿ for g, a row for each tree."""
        wanted = self.orders <= order
        theta = Polynomial([0.0, 1.0])
        right = np.zeros((order + 1, order - 1))
        for n in range(2, order + 1):
            rest = (theta**n - theta) // (theta * (1 - theta))
            right[n] = in_legendre(rest(POINTS), order - 1)
        scale, target = self._scale(wanted)
        return (self.rows[:, wanted] / scale).T, target[:, None] * right[self.orders[wanted]]

    def _scale(self, wanted: NDArray[np.bool_]) -> tuple[Array, Array]:
        """What conditions are divided by, and their right-hand sides in units of θⁿ."""
        exact = self.exact[wanted]
        zero = exact == 0.0
        return np.where(zero, 1.0, exact), np.where(zero, 0.0, 1.0)

    def _solve(self, order: int) -> Array | None:
        equations, right = self._equations(order)
        g: NDArray[Any] = np.linalg.lstsq(equations, right, rcond=DEPENDENT)[0]
        return g if np.max(np.abs(equations @ g - right)) < SOLVED else None

    def _most_useful(self, rows: Array, order: int) -> int | None:
        """Which new row brings the conditions nearest to a solution."""
        equations, right = self._equations(order)
        U, sizes, _ = np.linalg.svd(equations, full_matrices=False)
        U = U[:, sizes > DEPENDENT * sizes[0]]
        wanted = self.orders <= order
        new = (rows[:, wanted] / self._scale(wanted)[0]).T
        new, right = new - U @ (U.T @ new), right - U @ (U.T @ right)
        size = np.linalg.norm(new, axis=0)
        gain = np.linalg.norm(new.T @ right, axis=1) / np.where(size > 1e-8, size, np.inf)
        return int(np.argmax(gain)) if gain.max() > 1e3 * SOLVED else None

    def _expanded(self, g: Array) -> Array:
        """Coefficients of b(θ)/θ in Legendre's polynomials."""
        values = (1 - POINTS) * (g @ _legendre(POINTS, g.shape[1]))
        values[: len(self.m)] += self.m[:, None]
        return in_legendre(values, 1 + g.shape[1])

    def _at(self, g: Array, theta: Array) -> tuple[Array, Array]:
        """Weights of u and of u' at some θ."""
        expanded = self._expanded(g)
        values, rising = _legendre(theta, expanded.shape[1]), _rising(theta, expanded.shape[1])
        return (expanded @ (theta * values)).T, (expanded @ (values + theta * rising)).T
