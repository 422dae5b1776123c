"""Dense output of Rosenbrock methods, found by their order conditions.

As for implicit tableaux (:mod:`integrators.tableau.extension`), rows with polynomial weights are
added up, and further rows are made as long as the order conditions have no solution. The rows are
the u = Γk of the step. A further one is a stage of the same kind, with the same matrix: where u(θ)
is the best polynomial so far,

    (M − hγJ)(k − h u'(c)) = h f(t + ch, u(c)) − hM u'(c),

so that of the defect of u only what the matrix does not damp is left. The conditions are those of
equations of index 1 (:data:`integrators.tableau.rosenbrock.CONSTRAINED`), which is also the limit
of infinite stiffness: of the order of the method for y, one less for z, as the step has them, but
the full order where z follows the time alone, z = G(t). For methods that keep their order with any
matrix, the conditions for that are imposed as well.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from .coefficients import _floats
from .coloured import ColouredTree, Family
from .extension import Extension
from .growing import GrowingExtension
from .implicit_extension import LARGEST_WEIGHTS, InnerCheck
from .rosenbrock import CONSTRAINED, MATRIX, WITH_MATRIX, F, G, Rosenbrock, exact_weight

__all__ = ["rosenbrock_check", "rosenbrock_extension"]

Array = NDArray[np.float64]


@cache
def rosenbrock_extension(method: Rosenbrock, order: int) -> Extension:
    """Dense output of this order; ``points`` has weights of u(c), ``slopes`` those of h u'(c).

    Examples
    --------
    >>> from integrators import catalogue
    >>> found = rosenbrock_extension(catalogue.entry("Rodas4P").method, 4)
    >>> found.order, len(found.nodes)
    (4, 5)
    """
    return _Search(method, order).grow()


def of_time(power: int) -> ColouredTree:
    """Return the tree of z = tᵏ: a vertex of the constraint with leaves alone."""
    return (G, ((F, ()),) * power)


@cache
def rosenbrock_check(method: Rosenbrock) -> InnerCheck | None:
    """Return what the stages alone tell of stiff components inside a step.

    The polynomial has order 2, if that is possible, follows z = tᵏ for k as large as possible, up
    to the order of the method, and has the highest order that is left for other components.

    Examples
    --------
    >>> from integrators import catalogue
    >>> rosenbrock_check(catalogue.entry("Rodas5P").method).order
    5
    """
    return _Search(method, method.order).inner_check()


class _Trees:
    """Trees of one family up to an order, and what stages and further rows weigh on them."""

    def __init__(self, method: Rosenbrock, family: Family, order: int) -> None:
        self.family = family
        trees: list[ColouredTree] = []
        for n in range(1, order + 1):
            for root in (F, G):
                if family is WITH_MATRIX or root == F or n < order:
                    trees += family.trees(n, root)
        if family is CONSTRAINED:
            trees.append(of_time(order))
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


class _Search(GrowingExtension):
    """The rows are the u = Γk of the step, and one more for each further stage."""

    def __init__(self, method: Rosenbrock, order: int) -> None:
        self.method, self.order = method, order
        self.step = method.computed["m"]
        families = [CONSTRAINED]
        if method.w_order >= order:
            families.append(WITH_MATRIX)
        self.groups = [_Trees(method, family, order) for family in families]
        self.orders = np.concatenate([group.orders for group in self.groups])
        self.exact = np.concatenate([group.exact for group in self.groups])
        self.rows = np.hstack([group.rows for group in self.groups])

    def further(self, u: Array, du: Array) -> Array:
        """What the row of each further stage weighs."""
        parts, first = [], 0
        for group in self.groups:
            known = self.rows[:, first : first + len(group.trees)]
            parts.append(group.of_stage(u @ known, du @ known))
            first += len(group.trees)
        return np.hstack(parts)[:, None]

    def inner_check(self) -> InnerCheck | None:
        """Tables for a look inside a step."""
        place = self.groups[0].place
        pairs = [(p, k) for k in range(1, self.order + 1) for p in range(1, k + 1)]
        pairs.sort(key=lambda pair: (min(2, pair[0]), pair[1], pair[0]))
        for order, power in reversed(pairs):
            wanted = self.orders <= order
            wanted[[place[of_time(k)] for k in range(1, power + 1)]] = True
            g = self._solve(wanted)
            if g is None or np.abs(self._expanded(g)).sum(axis=0).max() > LARGEST_WEIGHTS:
                continue
            stages, _ = self.method._stage(CONSTRAINED, of_time(power + 1))
            follows = _floats(self.method.gamma) @ _floats(stages)
            return InnerCheck.worst(power, self._expanded(g), follows)
        return None
