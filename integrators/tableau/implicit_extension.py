"""Dense output of implicit methods, for stiff and algebraic components, too.

Beside the conditions of ``extension`` there are those of components that follow the others; see
there. And because a step that ends well need not be followed well inside, there are tables for a
look at the defect in one point, :func:`inner_check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from .extension import (
    POINTS,
    Extension,
    Search,
    Trees,
    in_legendre,
    two_half_steps,
    values_and_slopes,
)
from .tableau import Tableau

__all__ = [
    "InnerCheck",
    "implicit_extension",
    "implicit_order",
    "inner_check",
    "settled",
    "through",
]

Array = NDArray[np.float64]

HIGHEST_IMPLICIT = 12  # takes 23 further stages beside the seven of Radau IIA
LARGEST_WEIGHTS = 40  # sums larger than this come with large errors, whatever the order
HIGHEST_CHECKED = 6  # order of polynomials for a look inside a step


def implicit_order(tableau: Tableau) -> int:
    """Order of the dense output that goes with an implicit tableau.

    From order 9 on (10 for those that spend no stages on stiff components) the last order would
    take as many stages as all others together, and is not missed.
    """
    order = max(1, tableau.order)
    last = 8 if tableau.is_stiffly_accurate else 9
    return order if order <= last else min(order - 1, HIGHEST_IMPLICIT)


@cache
def implicit_extension(
    tableau: Tableau, order: int, gamma: float, halved: bool = False, further: bool = True
) -> Extension:
    """Dense output of an implicit tableau from its stages, Δ, and further implicit stages.

    With ``halved``, the stages are those of the second of two half steps, and stand for half of
    their slopes; those of the first follow behind Δ. Without ``further`` there are no further
    stages, and the order is what these rows have.
    """
    A, b, c = tableau.arrays
    s, stage_order = tableau.stages, tableau.simplifying_assumptions()[1]
    explicit_stage = not A[0].any() and order > 6 and further
    if explicit_stage and stage_order > 2:  # Lobatto IIIA: a degree more for what is lost below
        order += 1
    trees = Trees(order + 1, max(1, stage_order))
    if halved:
        A, c = two_half_steps(A, b, c)
    rows = trees.of_stages(A, c)
    stiff = trees.of_stiff_stages(A, rows) if tableau.is_stiffly_accurate else None
    if stage_order < 1:  # c is not the row sums of A: the stages are of no use
        rows, stiff = 0.0 * rows, None
    if halved:
        rows = np.vstack([rows[s:] / 2, trees.gained, rows[:s] / 2])
        if stiff is not None:
            stiff = np.vstack([stiff[s:] / 2, trees.beyond_one, stiff[:s] / 2])
    else:
        rows = np.vstack([rows, trees.gained])
        stiff = None if stiff is None else np.vstack([stiff, trees.beyond_one])
    if stiff is not None and order < 10:
        found = Search(trees, rows, s, (), gamma, stiff).grow(order, further)
        if found.order == order and not _magnifies(found):
            return found
    found = Search(trees, rows, s, (), gamma).grow(order, further)
    if not further:
        return found
    # Half steps ask for more than the method's own order: not at any price.
    while found.order > implicit_order(tableau) and _magnifies(found):
        found = Search(trees, rows, s, (), gamma).grow(found.order - 1)
    better = settled(found, gamma)
    # Many stages with an explicit one leave so poor a u for stiff components that once is too few.
    return settled(better, gamma) if explicit_stage else better


def _magnifies(found: Extension) -> bool:
    return bool(np.abs(found.weights).sum(axis=0).max() >= LARGEST_WEIGHTS)


def settled(found: Extension, gamma: float, implicit_rows: Array | None = None) -> Extension:
    """Add stages whose states take the place of u inside the step.

    The state u(c) + γh(k − u'(c)) of a further stage has the order of u, and however poor u is for
    stiff components, z = G(t, y) in it. The new polynomial goes through as many of them, between
    the ends, as its degree allows. Of an additive method, k and u' are those of the implicit part:
    ``implicit_rows`` has ones where a row belongs to it, as the second one of a further stage does.
    """
    degree = max(found.order, found.weights.shape[1])
    # Lobatto's points: interpolation there magnifies errors by little more than 1.
    roots = (
        legendre.legroots(legendre.legder([0.0] * degree + [1.0])) if degree > 1 else np.zeros(0)
    )
    nodes: Array = (np.sort(np.real(roots)) + 1) / 2
    old = np.pad(found.weights, ((0, 0), (0, degree - found.weights.shape[1])))
    u, du = values_and_slopes(old, nodes)
    stage = [1.0] if implicit_rows is None else [0.0, 1.0]
    if implicit_rows is not None:
        du = du * implicit_rows
    moved = gamma * through(np.append(nodes, 1.0))[:-1]
    weights = np.vstack([old - du.T @ moved, np.kron(moved, np.array(stage)[:, None])])

    def wider(table: Array) -> Array:
        return np.ascontiguousarray(np.pad(table, ((0, 0), (0, len(nodes) * len(stage)))))

    return Extension(
        found.order,
        np.append(found.nodes, nodes),
        wider(np.vstack([found.points, u - gamma * du])),
        wider(np.vstack([found.slopes, du])),
        np.ascontiguousarray(weights),
    )


def through(nodes: Array) -> Array:
    """Lagrange's polynomials of these nodes and 0, over θ, in Legendre's."""
    values = np.empty((len(nodes), len(POINTS)))
    for j, c in enumerate(nodes):
        others = np.delete(nodes, j)[:, None]
        values[j] = np.prod((POINTS - others) / (c - others), axis=0) / c
    return in_legendre(values, len(nodes))


@dataclass(frozen=True)
class InnerCheck:
    """Where, and on which polynomial, the defect inside a step is looked at.

    Parameters
    ----------
    order
        Order of the polynomial for stiff components.
    node
        The point, a fraction of the step: where such a polynomial is worst.
    value, slope
        Weights of the stages in u(c) − y₀ and u'(c).
    """

    order: int
    node: float
    value: Array
    slope: Array

    @classmethod
    def worst(cls, order: int, weights: Array, follows: Array) -> InnerCheck:
        """Return the check where z = tᵏ, which has these rows, is worst for k = order + 1."""
        theta = np.arange(1, 100) / 100
        u, du = values_and_slopes(weights, theta)
        at = int(np.argmax(np.abs(theta ** (order + 1) - u @ follows)))
        return cls(order, float(theta[at]), u[at].copy(), du[at].copy())

    def weight(self, dense_order: int, asked: float, used: float) -> float:
        """Weight of a defect for the rtol that was asked for and the one that is used.

        Dense output may be of higher order than the polynomial that is looked at, so that more of a
        defect is allowed than of an error (as RADAU5 allows more of its estimate).
        """
        if asked <= 0.0:
            return 1.0
        power = (self.order + 1) / (max(self.order, dense_order) + 1)
        return float(used / max(asked, asked**power))


@cache
def inner_check(tableau: Tableau) -> InnerCheck | None:
    """Return what the stages alone tell of stiff components; None where steps leave z = G(t, y).

    Where its end stays on that, as those of stiffly accurate methods do, a step may be long.

    Examples
    --------
    >>> from integrators import catalogue
    >>> inner_check(catalogue.get("RadauIIA3")).order  # the collocation polynomial
    3
    """
    A, b, c = tableau.arrays
    s, stage_order = tableau.stages, tableau.simplifying_assumptions()[1]
    if stage_order < 1:
        return None
    most = max(1, min(tableau.order, max(HIGHEST_CHECKED, stage_order)))
    trees = Trees(most + 2, stage_order)
    rows = trees.of_stages(A, c)
    stiff = trees.of_stiff_stages(A, rows)
    if stiff is None:
        return None
    of_time = np.flatnonzero(trees.leaves == trees.orders - 1)  # tᵏ, for k = 0, 1, …
    if not (tableau.is_stiffly_accurate or np.allclose(b @ stiff[:, of_time[1:3]], 1.0)):
        return None
    rows, stiff = np.vstack([rows, trees.gained]), np.vstack([stiff, b @ stiff])
    for order in range(most, 0, -1):
        found = Search(trees, rows, s, (), stiff=stiff).grow(order, False)
        if not _magnifies(found):
            break
    weights = found.weights[:s] + np.outer(b, found.weights[s])  # Δ is Σ bᵢ rowᵢ
    return InnerCheck.worst(found.order, weights, stiff[:s, of_time[found.order + 1]])
