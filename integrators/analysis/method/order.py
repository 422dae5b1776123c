"""The order of a method and the size of its local error.

The local error of a method of order p is (:cite:`hairer1993`, II.3)

    y(t + h) − y₊ = −h^{p+1} Σ T(τ) F(τ)(y) + …,     T(τ) = (Φ(τ) − 1/γ(τ)) / σ(τ),           (1)

summed over the rooted trees of order p + 1: the method decides the T(τ), the problem the
elementary differentials F(τ). The usual figures of merit are norms of T (:cite:`prince1981`),
with a hat for the less accurate formula of a pair, of order q:

    A⁽ᵖ⁺¹⁾ = ‖T⁽ᵖ⁺¹⁾‖₂,   B = ‖T̂⁽q⁺²⁾‖/‖T̂⁽q⁺¹⁾‖,   C = ‖T̂⁽q⁺²⁾ − T⁽q⁺²⁾‖/‖T̂⁽q⁺¹⁾‖,
    D = max |aᵢⱼ|, |bᵢ|, |b̂ᵢ|, |cᵢ|,    E = A⁽ᵖ⁺¹⁾/‖T̂⁽q⁺¹⁾‖.                                  (2)

Small A means small errors; B and C near 1 or below mean that the estimate is dominated by its
leading term; a large D means cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from ...tableau import MAX_ORDER, OrderCondition, Tableau
from ...tableau.exact import DIGITS, Number
from ...tableau.tableau import _vector
from ...tableau.trees import Tree, bracket, density, order, rooted_trees, symmetry
from .verdict import as_tableau

__all__ = [
    "ErrorCoefficient",
    "FiguresOfMerit",
    "condition_formula",
    "elementary_weights",
    "error_coefficients",
    "error_norm",
    "failing_conditions",
    "figures_of_merit",
    "stage_order",
]

MAX_TREE_ORDER = 13
"""Largest trees considered: there are 12486 of order 13, enough for Gauss methods of order 12."""


# ---------------------------------------------------------------------- weights


def elementary_weights(
    method: Any, n: int, weights: Sequence[Any] | None = None
) -> dict[Tree, Number]:
    """Return the elementary weights Φ(τ) for all rooted trees up to order n.

    Parameters
    ----------
    method
        A tableau or the name of a scheme.
    n
        Number of vertices of the largest trees, up to 13.
    weights
        Weights to use in place of b, for instance ``b_hat``.

    Returns
    -------
    dict
        Fractions where the coefficients are, else decimals of 60 digits.

    Notes
    -----
    Φ(τ) = Σ bᵢ gᵢ(τ) with gᵢ(τ) = 1 for a single vertex and gᵢ([τ₁ … τₘ]) = Π Σⱼ aᵢⱼ gⱼ(τₖ). For
    a tableau whose nodes are not its row sums they describe autonomous equations.

    Examples
    --------
    >>> weights = elementary_weights("RK4", 3)
    >>> [str(weights[tree]) for n in (1, 2, 3) for tree in rooted_trees(n)]
    ['1', '1/2', '1/6', '1/3']
    """
    tableau = as_tableau(method)
    _check_tree_order(n)
    b = tableau._converted(
        tableau.b if weights is None else _vector(weights, "weights", tableau.stages)
    )
    rows = [[(j, a) for j, a in enumerate(row) if a != 0] for row in tableau._working[0]]
    ones = tableau._converted([Fraction(1)] * tableau.stages)
    zero = 0 * ones[0]
    below: dict[Tree, list[Any]] = {}  # Σⱼ aᵢⱼ gⱼ, once for each tree
    result: dict[Tree, Number] = {}
    with localcontext(prec=DIGITS + 10):
        for k in range(1, n + 1):
            for tree in rooted_trees(k):
                stage = ones
                for child in tree:
                    stage = [x * y for x, y in zip(stage, below[child])]
                result[tree] = sum((x * y for x, y in zip(b, stage) if x), zero)
                if k < n:
                    below[tree] = [sum((a * stage[j] for j, a in row), zero) for row in rows]
    return result


@dataclass(frozen=True)
class ErrorCoefficient:
    """T(τ) of Eq. (1) for one tree."""

    tree: Tree
    value: Number

    def __str__(self) -> str:
        shown = str(self.value) if isinstance(self.value, Fraction) else f"{self.value:.6g}"
        return f"{bracket(self.tree)}: {shown}"


def error_coefficients(
    method: Any, n: int | None = None, weights: Sequence[Any] | None = None
) -> list[ErrorCoefficient]:
    """Return the coefficients T(τ) of the local error for the trees of order n, Eq. (1).

    Parameters
    ----------
    method
        A tableau or the name of a scheme.
    n
        Order of the trees; by default p + 1, the principal error.
    weights
        Weights to use in place of b.

    Examples
    --------
    >>> for coefficient in error_coefficients("Midpoint"):
    ...     print(coefficient)
    [[τ]]: -1/6
    [τ²]: -1/24
    """
    tableau = as_tableau(method)
    n = (tableau.order if weights is None else _order(tableau, weights)) + 1 if n is None else n
    phi = elementary_weights(tableau, n, weights)
    with localcontext(prec=DIGITS + 10):
        return [ErrorCoefficient(tree, _defect(phi[tree], tree)) for tree in rooted_trees(n)]


def _defect(weight: Number, tree: Tree) -> Number:
    gamma, sigma = density(tree), symmetry(tree)
    if isinstance(weight, Fraction):
        return (weight - Fraction(1, gamma)) / sigma
    return (Decimal(weight) - 1 / Decimal(gamma)) / sigma


def error_norm(
    method: Any,
    n: int | None = None,
    norm: str = "2",
    weights: Sequence[Any] | None = None,
) -> float:
    """Return a norm of the error coefficients: A⁽ᵖ⁺¹⁾ by default.

    Parameters
    ----------
    method
        A tableau or the name of a scheme.
    n
        Order of the trees; by default p + 1.
    norm
        "2" or "max".
    weights
        Weights to use in place of b.

    Examples
    --------
    >>> print(f"{error_norm('DOPRI5'):.3e}")  # known as 3.99e-4
    3.991e-04
    """
    if norm not in ("2", "max"):
        raise ValueError(f"expected the norm '2' or 'max', got {norm!r}")
    values = [float(x.value) for x in error_coefficients(method, n, weights)]
    return math.hypot(*values) if norm == "2" else max(map(abs, values))


# ---------------------------------------------------------------------- figures of merit


@dataclass(frozen=True)
class FiguresOfMerit:
    """The figures A to E of Eq. (2); B, C and E are None without an embedded method.

    A is None for orders above 12, where the trees are too many.
    """

    order: int
    A: float | None
    A_max: float | None
    D: float
    embedded_order: int | None = None
    B: float | None = None
    C: float | None = None
    E: float | None = None

    def __str__(self) -> str:
        parts = []
        if self.A is not None:
            parts.append(f"A({self.order + 1}) = {self.A:.4g} (largest {self.A_max:.4g})")
        for name in ("B", "C", "D", "E"):
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name} = {value:.4g}")
        return ", ".join(parts)


def figures_of_merit(method: Any) -> FiguresOfMerit:
    """Return the figures of merit of a method or pair, Eq. (2).

    Parameters
    ----------
    method
        A tableau or the name of a scheme. A belongs to the formula that is advanced; in B, C, E
        the hat marks the formula of lower order, whichever of the two that is.

    Examples
    --------
    >>> print(figures_of_merit("DOPRI5"))
    A(6) = 0.0003991 (largest 0.0002778), B = 1.542, C = 1.665, D = 11.6, E = 0.3374
    """
    tableau = as_tableau(method)
    p = tableau.order
    numbers = [*(a for row in tableau.A for a in row), *tableau.b, *tableau.c]
    D = max(abs(float(x)) for x in (*numbers, *(tableau.b_hat or ())))
    rows, _, nodes = tableau.arrays
    consistent = np.all(
        np.abs(rows.sum(axis=1) - nodes) <= 1e-12 * (1.0 + np.abs(rows).sum(axis=1))
    )
    if p >= MAX_TREE_ORDER or not consistent:  # of such rows trees do not tell the whole error
        return FiguresOfMerit(p, None, None, D)
    principal = [float(x.value) for x in error_coefficients(tableau)]
    A, largest = math.hypot(*principal), max(map(abs, principal))
    if tableau.b_hat is None or tableau.embedded_order is None:
        return FiguresOfMerit(p, A, largest, D)
    embedded = tableau.embedded_order
    low, high = tableau.b_hat, tableau.b
    if embedded > p:
        low, high = high, low
    q = min(embedded, p)
    first = error_norm(tableau, q + 1, weights=low)
    second, other = (
        [float(x.value) for x in error_coefficients(tableau, q + 2, w)] for w in (low, high)
    )
    return FiguresOfMerit(
        p,
        A,
        largest,
        D,
        embedded,
        B=math.hypot(*second) / first,
        C=math.hypot(*(x - y for x, y in zip(second, other))) / first,
        E=A / first,
    )


# ---------------------------------------------------------------------- which condition fails


def stage_order(method: Any) -> int:
    """Return the stage order: the largest q with B(q) and C(q).

    Parameters
    ----------
    method
        A tableau or the name of a scheme.

    Notes
    -----
    On stiff problems the order that is seen can fall to this (:cite:`hairer1996`, IV.15).

    Examples
    --------
    >>> stage_order("Gauss3"), stage_order("RK4"), stage_order("TRBDF2")
    (3, 1, 2)
    """
    tableau = as_tableau(method)
    quadrature, eta, _ = tableau.simplifying_assumptions()
    return min(quadrature, eta)


def failing_conditions(method: Any) -> list[tuple[OrderCondition, str]]:
    """Return the order conditions of order p + 1 that fail, each with its formula.

    Parameters
    ----------
    method
        A tableau or the name of a scheme.

    Returns
    -------
    list
        Pairs of the condition and its text, such as "Σ bᵢ cᵢ = 1/2". Where nodes and row sums
        differ, the formula shows which of the two the condition is about. Beyond order 10 only
        the quadrature condition is returned, which decides the order there.

    Examples
    --------
    >>> for condition, formula in failing_conditions("Heun"):
    ...     print(formula, "but it is", condition.weight)
    Σ bᵢ aᵢⱼ cⱼ = 1/6 but it is 0
    Σ bᵢ cᵢ² = 1/3 but it is 1/2
    """
    tableau = as_tableau(method)
    if tableau.order >= MAX_ORDER:
        bushy: Tree = ((),) * tableau.order
        return [(tableau._condition(bushy, tableau.b, Fraction(0)), condition_formula(bushy))]
    conditions = tableau.order_conditions(tableau.order + 1)
    trees = len(rooted_trees(tableau.order + 1))
    found = []
    for k, condition in enumerate(conditions):
        leaf = tableau._leaves[k // trees]
        if condition.holds or leaf not in (0, 1):
            continue  # mixtures of nodes and row sums add nothing that a reader could use
        nodes = len(tableau._leaves) == 1 or leaf == 1
        found.append((condition, condition_formula(condition.tree, nodes=nodes)))
    return found


def condition_formula(tree: Tree, *, nodes: bool = True) -> str:
    """Write an order condition as a sum.

    Parameters
    ----------
    tree
        A rooted tree.
    nodes
        Whether a leaf is written as cᵢ; otherwise as the row sum Σⱼ aᵢⱼ.

    Examples
    --------
    >>> condition_formula(((), ((),)))
    'Σ bᵢ cᵢ aᵢⱼ cⱼ = 1/8'
    >>> condition_formula(((),), nodes=False)
    'Σ bᵢ aᵢⱼ = 1/2'
    """
    letters = iter("ᵢⱼₖₗₘₙₚₛₜ" + "ᵤᵥₓₐₑₒₕ")

    def factors(vertex: Tree, index: str) -> list[str]:
        parts = []
        leaves = sum(not child for child in vertex) if nodes else 0
        if leaves:
            power = str(leaves).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
            parts.append(f"c{index}" + (power if leaves > 1 else ""))
        for child in vertex:
            if child or not nodes:
                new = next(letters)
                parts += [f"a{index}{new}", *factors(child, new)]
        return parts

    if order(tree) > 16:
        return f"Φ({bracket(tree)}) = 1/{density(tree)}"
    first = next(letters)
    target = "1" if density(tree) == 1 else f"1/{density(tree)}"
    return " ".join(["Σ", f"b{first}", *factors(tree, first)]) + f" = {target}"


# ---------------------------------------------------------------------- helpers


def _order(tableau: Tableau, weights: Sequence[Any]) -> int:
    return tableau._find_order(_vector(weights, "weights", tableau.stages))


def _check_tree_order(n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"expected the order of trees as an integer, got {n!r}")
    if not 1 <= n <= MAX_TREE_ORDER:
        raise ValueError(f"trees of order 1 to {MAX_TREE_ORDER} are considered, got {n}")
