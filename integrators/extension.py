"""Continuous extensions of Runge–Kutta methods, found by their order conditions.

A step leaves *rows* behind: slopes kᵢ (the stages, and the slope at the end) and what it gained,
Δ = (y₁ − y₀)/h. Dense output of order q is u(θ) = y₀ + h Σᵢ bᵢ(θ) rowᵢ with

    Σᵢ bᵢ(θ) φᵢ(τ) = θᵏ/k        for every rooted tree τ of k ≤ q vertices,

where φᵢ(τ) says how row i expands, in units in which the slope of the exact solution at c has
c^(k−1). These equations are linear in b. While they cannot be solved, another row is made: the
slope at a point of the best u found so far (*bootstrapping*; Enright, Jackson, Nørsett & Thomsen,
ACM Trans. Math. Software 12 (1986)). Since every tree is looked at, and not the order alone, rows
of low order go on being used: five slopes beside that at the end bring Verner98 to order 8, where
an interpolant that knows the ends only needs fifteen.

- Explicit methods evaluate f at that point, k = f(t + ch, u(c)).
- Implicit ones solve for one more diagonally implicit stage, k = f(t + ch, u(c) + γh(k − u'(c))).
  In it stiffness does not magnify the errors of u, and a mass matrix is no obstacle.

Where every stage is of order η, subtrees of up to η vertices may be replaced by as many leaves
(the simplifying assumption C(η)); the conditions of order 12 of Radau IIA are then a few dozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import comb

import numpy as np
from numpy.polynomial import Polynomial, legendre
from numpy.typing import NDArray

from .tableau import ContinuousExtension, Tableau

__all__ = [
    "Extension",
    "dense_extension",
    "explicit_extension",
    "hermite_extension",
    "implicit_extension",
    "implicit_order",
    "in_powers",
]

Array = NDArray[np.float64]

HIGHEST_EXPLICIT = 9  # there are 486 trees up to this order, 1205 up to the next
HIGHEST_IMPLICIT = 12  # takes 23 further stages beside the seven of Radau IIA
CANDIDATES = np.arange(1, 41) / 40  # nodes of further rows: never outside the step
SOLVED = 1e-11  # residual of order conditions that hold; 1e-6 and more where they do not
DEPENDENT = 1e-11  # what is smaller than this is rounding error


@dataclass(frozen=True)
class Extension:
    """Further rows, and the weights of all rows.

    Parameters
    ----------
    order
        Order of the polynomial.
    nodes
        Where the further slopes are, as fractions of the step.
    points
        Weights of all rows for each: u(c), or u(c) − γh u'(c) if the slope is solved for.
    slopes
        Likewise the weights of u'(c), a first guess of that slope.
    weights
        bᵢ(θ) = Σⱼ weights[i, j] θ Lⱼ(θ) with Legendre's polynomials on [0, 1]; powers of θ would
        lose digits. :func:`in_powers` has the way to them.
    """

    order: int
    nodes: Array
    points: Array
    slopes: Array
    weights: Array


# -------------------------------------------------------------------- three kinds of methods


def dense_extension(tableau: Tableau) -> ContinuousExtension:
    """Dense output of an explicit tableau: its own if that is of its order, else a derived one.

    The basis is that of :class:`Extension`. The order is at least 3, for a cubic costs nothing.
    """
    own = tableau.dense
    if own is None or own.order < tableau.order:
        return explicit_extension(tableau, max(3, min(tableau.order, HIGHEST_EXPLICIT)))
    P = np.linalg.solve(in_powers(own.P.shape[1]), own.P.T).T
    return replace(own, P=np.ascontiguousarray(P))


def implicit_order(order: int) -> int:
    """Order of the dense output that goes with an implicit method of this order.

    From order 9 on the last one would take as many stages as all others together, and the error
    between the steps is that at the steps without it.
    """
    return order if order < 9 else min(order - 1, HIGHEST_IMPLICIT)


@cache
def explicit_extension(tableau: Tableau, order: int) -> ContinuousExtension:
    """Dense output of an explicit tableau, with P in the basis of :class:`Extension`.

    The rows are the stages and, unless the last stage is that already, the slope at the end.

    Examples
    --------
    >>> from integrators import catalogue
    >>> len(explicit_extension(catalogue.get("Verner98"), 8).c_extra)
    6
    """
    A, b, c = tableau.arrays
    trees = _Trees(order, 1)
    rows = trees.of_stages(A, c)
    nodes, extra = [], []
    if not tableau.fsal:
        rows = np.vstack([rows, np.ones(len(trees))])
        nodes, extra = [1.0], [tuple(b)]
    gain = len(rows)
    found = _Search(trees, np.vstack([rows, trees.gained]), gain, (0, gain - 1)).grow(order)
    stages = np.append(b, np.zeros(gain - len(b)))  # Δ is this combination of the others

    def without_gain(weights: Array) -> Array:
        kept: Array = np.delete(weights, gain, axis=0)
        kept[:gain] += np.multiply.outer(stages, weights[gain])
        return kept

    for i, point in enumerate(found.points):
        extra.append(tuple(without_gain(point)[: gain + i]))
    P = np.ascontiguousarray(without_gain(found.weights))
    return ContinuousExtension(P, found.order, tuple(extra), (*nodes, *found.nodes))


@cache
def hermite_extension(order: int) -> Extension:
    """Dense output of any method from three rows: Δ and the slopes at both ends."""
    trees = _Trees(max(3, order), 1)
    start = np.where(trees.orders == 1, 1.0, 0.0)
    rows = np.vstack([trees.gained, start, np.ones(len(trees))])
    return _Search(trees, rows, 0, (1, 2)).grow(order)


@cache
def implicit_extension(
    tableau: Tableau, order: int, gamma: float, halved: bool = False, further: bool = True
) -> Extension:
    """Dense output of an implicit tableau from its stages, Δ, and further implicit stages.

    With ``halved``, the stages are those of the second of two half steps, and stand for half of
    their slopes. Without ``further`` there are no further stages, and the order is what these
    rows have.
    """
    A, b, c = tableau.arrays
    s, stage_order = tableau.stages, tableau.simplifying_assumptions()[1]
    trees = _Trees(order, max(1, stage_order))
    if stage_order < 1:  # c is not the row sums of A: the stages are of no use
        rows = np.zeros((s, len(trees)))
    elif halved:
        both = np.block([[A / 2, np.zeros((s, s))], [np.tile(b / 2, (s, 1)), A / 2]])
        rows = trees.of_stages(both, np.concatenate([c / 2, (1 + c) / 2]))[s:] / 2
    else:
        rows = trees.of_stages(A, c)
    search = _Search(trees, np.vstack([rows, trees.gained]), s, (), gamma)
    return search.grow(order, further)


@cache
def in_powers(degree: int) -> Array:
    """C with θ Lₖ(θ) = Σⱼ C[j, k] θ^(j+1), a matrix of whole numbers."""
    C = np.zeros((degree, degree))
    for k in range(degree):
        for j in range(k + 1):
            C[j, k] = (-1) ** (k + j) * comb(k, j) * comb(k + j, j)
    return C


# -------------------------------------------------------------------- trees


class _Trees:
    """Rooted trees of up to ``order`` vertices without subtrees of 2 to ``stage_order`` vertices.

    A tree is a number of leaves and a tuple of other children. A slope at time c, at the state
    with weights a, has φ(τ) = c^leaves · Π |child| (a·φ(child)).
    """

    def __init__(self, order: int, stage_order: int) -> None:
        self.stage_order = stage_order
        orders: list[int] = []
        leaves: list[int] = []
        children: list[tuple[int, ...]] = []
        self.upto = [0]  # how many trees there are of up to k vertices
        for k in range(1, order + 1):
            for forest in list(self._forests(orders, k - 1, 0)):
                leaves.append(k - 1 - sum(orders[i] for i in forest))
                children.append(forest)
            orders += [k] * (len(children) - len(orders))
            self.upto.append(len(orders))
        self.orders = np.array(orders)
        self.leaves = np.array(leaves)
        self.children = np.full((len(orders), max(map(len, children)) or 1), len(orders))
        for i, forest in enumerate(children):
            self.children[i, : len(forest)] = forest
        self.gained = 1.0 / self.orders  # φ of Δ

    def _forests(self, orders: list[int], most: int, first: int) -> Iterator[tuple[int, ...]]:
        """Multisets of possible children with at most so many vertices."""
        yield ()
        for i in range(first, len(orders)):
            if self.stage_order < orders[i] <= most:
                for rest in self._forests(orders, most - orders[i], i):
                    yield (i, *rest)

    def __len__(self) -> int:
        return len(self.orders)

    def of_stages(self, A: Array, c: Array) -> Array:
        """φ of the stages of a tableau, shape (stages, trees)."""
        return self._of_slopes(A, np.zeros((len(c), len(self))), c)

    def of_slopes(self, rows: Array, points: Array, c: Array, gamma: float) -> Array:
        """φ of slopes at the states with weights `points`, to each of which γ times it is added."""
        return self._of_slopes(gamma * np.eye(len(c)), points @ rows, c)

    def _of_slopes(self, A: Array, known: Array, c: Array) -> Array:
        """φ of slopes whose states are known but for the combination A of these slopes."""
        phi = np.zeros(known.shape)
        factor = np.ones((len(c), len(self) + 1))  # |child| times its weight; 1 for no child
        for k in range(1, len(self.upto)):
            of_order = slice(self.upto[k - 1], self.upto[k])
            products = np.prod(factor[:, self.children[of_order]], axis=2)
            phi[:, of_order] = c[:, None] ** self.leaves[of_order] * products
            factor[:, of_order] = k * (known[:, of_order] + A @ phi[:, of_order])
        return phi


# -------------------------------------------------------------------- the search


class _Search:
    """Weights of given order, and more rows as long as there are none.

    u(θ) meets the step: it is a polynomial through what is known at the ends, θΔ or, with the
    slopes there, the cubic, plus θ(1−θ) or its square times Σ gᵢ(θ) rowᵢ.

    Parameters
    ----------
    trees, rows
        φ of the rows that the step leaves.
    gain
        Which row is Δ.
    ends
        Which rows are the slopes at the start and the end; empty if there are none.
    gamma
        Share of the slope in the state of a further row; 0 for explicit methods.
    """

    def __init__(
        self, trees: _Trees, rows: Array, gain: int, ends: Sequence[int], gamma: float = 0.0
    ) -> None:
        self.trees, self.rows, self.gamma = trees, rows, gamma
        theta = Polynomial([0.0, 1.0])
        if ends:
            start, end = ends
            at_ends = {gain: theta**2 * (3 - 2 * theta), start: theta * (1 - theta) ** 2}
            at_ends[end] = theta**2 * (theta - 1)
            self.inside = (theta * (1 - theta)) ** 2
        else:
            at_ends, self.inside = {gain: theta}, theta * (1 - theta)
        self.at_ends = at_ends
        self.lowest = len(at_ends)  # the order of what the ends give

    def grow(self, order: int, further: bool = True) -> Extension:
        """Add rows until this order is reached; or stop where it would take a further one."""
        reached, g = self.lowest, np.zeros((len(self.rows), 0))
        nodes: list[float] = []
        points: list[Array] = []
        slopes: list[Array] = []
        while True:
            while reached < order and (found := self._solve(reached + 1)) is not None:
                reached, g = reached + 1, found
            if reached >= order or not further:
                break
            c = np.setdiff1d(CANDIDATES if self.gamma else CANDIDATES[:-1], nodes)
            u, du = self._at(g, c)
            states = u - self.gamma * du
            rows = self.trees.of_slopes(self.rows, states, c, self.gamma)
            best = self._most_useful(rows, reached + 1)
            nodes.append(float(c[best]))
            points.append(states[best])
            slopes.append(du[best])
            self.rows = np.vstack([self.rows, rows[best]])
            g = np.vstack([g, np.zeros(g.shape[1])])
        count = len(self.rows)

        def padded(tables: list[Array]) -> Array:
            full = np.zeros((len(tables), count))
            for row, table in zip(full, tables):
                row[: len(table)] = table
            return full

        weights = np.ascontiguousarray(self._expanded(g))
        return Extension(reached, np.array(nodes), padded(points), padded(slopes), weights)

    def _solve(self, order: int) -> Array | None:
        """Legendre coefficients of g for this order, the smallest; None if there are none."""
        equations, right = self._equations(order)
        g: Array = np.linalg.lstsq(equations, right, rcond=DEPENDENT)[0]
        return g if np.max(np.abs(equations @ g - right)) < SOLVED else None

    def _equations(self, order: int) -> tuple[Array, Array]:
        """Order conditions for g, a row for each tree and a column for each coefficient."""
        upto = self.trees.upto[order]
        right = np.zeros((order + 1, order - self.lowest))
        for k in range(self.lowest + 1, order + 1):
            rest = Polynomial([0.0] * k + [1.0 / k])
            for row, polynomial in self.at_ends.items():
                rest = rest - self.rows[row, self.trees.upto[k - 1]] * polynomial
            right[k] = _in_legendre((rest // self.inside)(POINTS), order - self.lowest)
        return self.rows[:, :upto].T, right[self.trees.orders[:upto]]

    def _most_useful(self, candidates: Array, order: int) -> int:
        """Which new row brings the conditions of this order nearest to a solution."""
        equations, right = self._equations(order)
        U, sizes, _ = np.linalg.svd(equations, full_matrices=False)
        U = U[:, sizes > DEPENDENT * sizes[0]]
        right = right - U @ (U.T @ right)
        new = candidates[:, : len(right)].T
        new = new - U @ (U.T @ new)
        size = np.linalg.norm(new, axis=0)
        usable = size > 1e3 * DEPENDENT
        gain = np.linalg.norm(new.T @ right, axis=1) / np.where(usable, size, np.inf)
        # Of those that do equally well, the one that differs most from what is there.
        best = gain > (1 - 1e-6) * gain.max()
        return int(np.argmax(np.where(best, size, -1.0)))

    def _weights(self, g: Array, theta: Array) -> Array:
        """b(θ) of all rows, shape (rows, thetas)."""
        b = self.inside(theta) * (g @ _legendre(theta, g.shape[1]))
        for row, polynomial in self.at_ends.items():
            b[row] += polynomial(theta)
        return b

    def _expanded(self, g: Array) -> Array:
        """Coefficients of b(θ)/θ in Legendre's polynomials."""
        return _in_legendre(self._weights(g, POINTS) / POINTS, self.lowest + g.shape[1])

    def _at(self, g: Array, theta: Array) -> tuple[Array, Array]:
        """Weights of u and of u' at some θ, shape (thetas, rows)."""
        expanded = self._expanded(g)
        degree = expanded.shape[1]
        rising = 2.0 * np.array(
            [legendre.legval(2 * theta - 1, legendre.legder(unit)) for unit in np.eye(degree)]
        )
        values = _legendre(theta, degree)
        return (expanded @ (theta * values)).T, (expanded @ (values + theta * rising)).T


_gauss, _weights = legendre.leggauss(24)  # exact far beyond the degrees that occur
POINTS = (_gauss + 1) / 2


def _legendre(theta: Array, count: int) -> Array:
    """Values of the first so many of Legendre's polynomials on [0, 1]."""
    if count == 0:
        return np.zeros((0, len(theta)))
    values: Array = legendre.legvander(2 * theta - 1, count - 1).T
    return values


def _in_legendre(values: Array, count: int) -> Array:
    """Coefficients of a polynomial with these values at POINTS, the last axis."""
    projected: Array = (values * _weights / 2) @ _legendre(POINTS, count).T
    return projected * (2 * np.arange(count) + 1)
