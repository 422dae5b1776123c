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

Stiff components, and algebraic ones, follow the others: z = G(t, y). Their slopes are what the
tableau makes of stage values, and have expansions ψ of their own, which ask for

    Σᵢ bᵢ(θ) ψᵢ(τ) = θᵏ          for every rooted tree τ of k + 1 ≤ q + 1 vertices.

These are met as well where a stiffly accurate method allows it with weights of moderate size. Else
the states of some more implicit stages, in which z = G(t, y) whatever u is, take the place of u.

Where every stage is of order η, subtrees of up to η vertices may be replaced by as many leaves
(the simplifying assumption C(η)); the conditions of order 12 of Radau IIA are then a few dozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import comb
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial, legendre
from numpy.typing import NDArray

from .tableau import ContinuousExtension, Tableau

__all__ = [
    "Extension",
    "Search",
    "Trees",
    "dense_extension",
    "doubled_extension",
    "explicit_extension",
    "hermite_extension",
    "in_legendre",
    "in_powers",
    "two_half_steps",
    "values_and_slopes",
]

Array = NDArray[np.float64]

HIGHEST_EXPLICIT = 9  # there are 486 trees up to this order, 1205 up to the next
CANDIDATES = np.arange(1, 41) / 40  # nodes of further rows: never outside the step
SOLVED = 1e-11  # residual of order conditions that hold; 1e-6 and more where they do not
MOST_FURTHER = 30  # slopes or stages
DEPENDENT = 1e-11  # what is smaller than this is rounding error
ABSENT = 1e-9  # … and weights of rows that conditions of order do not ask for, of the largest


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
    trees = Trees(order, 1)
    rows = trees.of_stages(A, c)
    nodes, extra = [], []
    if not tableau.fsal:
        rows = np.vstack([rows, np.ones(len(trees))])
        nodes, extra = [1.0], [tuple(b)]
    gain = len(rows)
    found = Search(trees, np.vstack([rows, trees.gained]), gain, (0, gain - 1)).grow(order)
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
    trees = Trees(max(3, order), 1)
    start = np.where(trees.orders == 1, 1.0, 0.0)
    rows = np.vstack([trees.gained, start, np.ones(len(trees))])
    return Search(trees, rows, 0, (1, 2)).grow(order)


@cache
def doubled_extension(tableau: Tableau, order: int) -> Extension:
    """Dense output of two half steps of an explicit tableau.

    The rows are Δ, the slopes at both ends and the stages of the second half but the first, in
    whose place a fused step keeps the slope at the start.
    """
    A, b, c = tableau.arrays
    s = tableau.stages
    trees = Trees(max(3, order), 1)
    stages = trees.of_stages(*two_half_steps(A, b, c))
    rows = np.vstack([trees.gained, stages[0], np.ones(len(trees)), stages[s + 1 :]])
    return Search(trees, rows, 0, (1, 2)).grow(order)


def two_half_steps(A: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """A and c of two half steps taken as one step of twice as many stages."""
    s = len(b)
    both = np.block([[A / 2, np.zeros((s, s))], [np.tile(b / 2, (s, 1)), A / 2]])
    return both, np.concatenate([c / 2, (1 + c) / 2])


@cache
def in_powers(degree: int) -> Array:
    """C with θ Lₖ(θ) = Σⱼ C[j, k] θ^(j+1), a matrix of whole numbers."""
    C = np.zeros((degree, degree))
    for k in range(degree):
        for j in range(k + 1):
            C[j, k] = (-1) ** (k + j) * comb(k, j) * comb(k + j, j)
    return C


# -------------------------------------------------------------------- trees


class Trees:
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
        self.beyond_one = np.where(self.orders > 1, 1.0, 0.0)  # ψ of Δ

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

    def of_stiff_stages(self, A: Array, rows: Array) -> Array | None:
        """ψ of the stages, from their φ; None if A does not allow it.

        In the limit of stiffness a component is given by the others, z = G(t, y), and so are its
        stage values, while its slopes are those of which A makes these values: ψ = A⁻¹φ. An
        explicit first stage has its slope from the step before, which need not be a good one: how
        the others depend on it takes the place of the single vertex, which has no ψ.
        """
        first = int(not A[0].any())
        try:
            inverse = np.linalg.inv(A[first:, first:])
        except np.linalg.LinAlgError:
            return None
        psi = np.zeros(rows.shape)
        psi[:first, 0] = 1.0
        psi[first:] = inverse @ (self.beyond_one * rows[first:] - A[first:, :first] @ psi[:first])
        return psi

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


class Search:
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
    stiff
        ψ of the rows, if stiff components are to be looked at.
    """

    def __init__(
        self,
        trees: Trees,
        rows: Array,
        gain: int,
        ends: Sequence[int],
        gamma: float = 0.0,
        stiff: Array | None = None,
    ) -> None:
        self.trees, self.rows, self.gamma, self.stiff = trees, rows, gamma, stiff
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
            if reached < self.trees.stage_order:  # the trees left out would be missed
                break
            c = np.setdiff1d(CANDIDATES if self.gamma else CANDIDATES[:-1], nodes)
            u, du = self._at(g, c)
            states = u - self.gamma * du
            rows = self.trees.of_slopes(self.rows, states, c, self.gamma)
            stiff = None
            if self.stiff is not None:
                stiff = (self.trees.beyond_one * rows - states @ self.stiff) / self.gamma
            best = self._most_useful(self._conditions(rows, stiff, reached + 1), reached + 1)
            if best is None or len(nodes) == MOST_FURTHER:
                break
            nodes.append(float(c[best]))
            points.append(states[best])
            slopes.append(du[best])
            self.rows = np.vstack([self.rows, rows[best]])
            if self.stiff is not None and stiff is not None:
                self.stiff = np.vstack([self.stiff, stiff[best]])
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
        g: NDArray[Any] = np.linalg.lstsq(equations, right, rcond=DEPENDENT)[0]
        needed = np.abs(g).max(axis=1) > ABSENT * np.abs(g).max()
        if not needed.all():  # weights of rows that have none are rounding errors, and cost time
            g[~needed] = 0.0
            g[needed] = np.linalg.lstsq(equations[:, needed], right, rcond=DEPENDENT)[0]
        return g if np.max(np.abs(equations @ g - right)) < SOLVED else None

    def _equations(self, order: int) -> tuple[Array, Array]:
        """Order conditions for g, a row for each tree and a column for each coefficient."""
        right = np.zeros((order + 1, order - self.lowest))
        for k in range(self.lowest + 1, order + 1):
            rest = Polynomial([0.0] * k + [1.0 / k])
            for row, polynomial in self.at_ends.items():
                rest = rest - self.rows[row, self.trees.upto[k - 1]] * polynomial
            right[k] = in_legendre((rest // self.inside)(POINTS), order - self.lowest)
        equations = self._conditions(self.rows, self.stiff, order).T
        trees = self.trees
        right_sides = right[trees.orders[: trees.upto[order]]]
        if self.stiff is not None:
            degrees = trees.orders[self._stiff_trees(order)] - 1
            right_sides = np.vstack([right_sides, degrees[:, None] * right[degrees]])
        return equations, right_sides

    def _conditions(self, rows: Array, stiff: Array | None, order: int) -> Array:
        """What the order conditions look at: φ of trees up to the order, ψ of one more."""
        upto = self.trees.upto
        parts = [rows[:, : upto[order]]]
        if stiff is not None:
            parts.append(stiff[:, self._stiff_trees(order)])
        return np.hstack(parts)

    def _stiff_trees(self, order: int) -> slice:
        """Trees whose ψ is looked at for this order."""
        return slice(0, self.trees.upto[order + 1])

    def _most_useful(self, candidates: Array, order: int) -> int | None:
        """Which new row brings the conditions of this order nearest to a solution, if one does."""
        equations, right = self._equations(order)
        U, sizes, _ = np.linalg.svd(equations, full_matrices=False)
        U = U[:, sizes > DEPENDENT * sizes[0]]
        right = right - U @ (U.T @ right)
        new = candidates.T
        new = new - U @ (U.T @ new)
        size = np.linalg.norm(new, axis=0)
        usable = size > 1e3 * DEPENDENT
        gain = np.linalg.norm(new.T @ right, axis=1) / np.where(usable, size, np.inf)
        if gain.max() < 1e3 * SOLVED:
            return None
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
        return in_legendre(self._weights(g, POINTS) / POINTS, self.lowest + g.shape[1])

    def _at(self, g: Array, theta: Array) -> tuple[Array, Array]:
        """Weights of u and of u' at some θ, shape (thetas, rows)."""
        return values_and_slopes(self._expanded(g), theta)


_gauss, _weights = legendre.leggauss(24)  # exact far beyond the degrees that occur
POINTS = (_gauss + 1) / 2


def values_and_slopes(weights: Array, theta: Array) -> tuple[Array, Array]:
    """Weights of u and of u' at some θ, shape (thetas, rows), from those of an extension."""
    values, rising = _legendre(theta, weights.shape[1]), _rising(theta, weights.shape[1])
    return (weights @ (theta * values)).T, (weights @ (values + theta * rising)).T


def _legendre(theta: Array, count: int) -> Array:
    """Values of the first so many of Legendre's polynomials on [0, 1]."""
    if count == 0:
        return np.zeros((0, len(theta)))
    values: NDArray[Any] = legendre.legvander(2 * theta - 1, count - 1).T
    return values


def _rising(theta: Array, count: int) -> Array:
    """Derivatives of the first so many of Legendre's polynomials on [0, 1]."""
    slopes = [legendre.legval(2 * theta - 1, legendre.legder(unit)) for unit in np.eye(count)]
    rising: Array = 2.0 * np.array(slopes, dtype=np.float64).reshape(count, -1)
    return rising


def in_legendre(values: Array, count: int) -> Array:
    """Coefficients of a polynomial with these values at POINTS, the last axis."""
    projected: Array = (values * _weights / 2) @ _legendre(POINTS, count).T
    return projected * (2 * np.arange(count) + 1)
