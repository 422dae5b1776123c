"""B-series: methods as coefficients on rooted trees.

A B-series (:cite:`hairer2006`, III.1) is

    B(a, y) = a(∅) y + Σ h^|τ|/σ(τ) · a(τ) F(τ)(y),                                          (1)

summed over rooted trees. A Runge–Kutta step is one with a(τ) = Φ(τ), the exact flow has
a(τ) = 1/γ(τ), and a step of a followed by a step of b is one again, with

    (ab)(τ) = Σ b(θ) Π a(δ),                                                                 (2)

where θ runs over the subtrees of τ that contain the root (and the empty one) and δ over the
branches that are left (ibid., III.1.4). The numerical solution is the exact solution of a
*modified equation* hỹ' = B(b, ỹ) (ibid., IX.9): a = Σⱼ ∂ᵇʲ⁻¹b/j! with the Lie derivative

    (∂_b c)(τ) = Σ c(θ) b(τ∖θ),                                                              (3)

summed over the ways to cut τ into a subtree θ with the root and one branch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

from ...tableau.exact import DIGITS, Number, parse, to_decimal
from ...tableau.trees import Tree, bracket, density, rooted_trees
from ...tableau.trees import order as vertices
from .order import elementary_weights

__all__ = ["BSeries", "bseries", "exact_flow", "modified_equation"]

MAX_ORDER = 10
"""Largest order for composition; the number of subtrees grows quickly beyond it."""

_Cuts = tuple[tuple[Tree | None, tuple[Tree, ...], int], ...]


@dataclass(frozen=True)
class BSeries:
    """A B-series up to some order, Eq. (1).

    Parameters
    ----------
    coefficients
        a(τ) for all rooted trees up to ``order``.
    order
        Number of vertices of the largest trees.
    empty
        a(∅): 1 for a method, 0 for a vector field.

    Examples
    --------
    >>> half = bseries("ImplicitEuler", 3).scaled("1/2")
    >>> other = bseries("ExplicitEuler", 3).scaled("1/2")
    >>> half.then(other) == bseries("ImplicitMidpoint", 3)
    True
    """

    coefficients: Mapping[Tree, Number]
    order: int
    empty: int = 1

    def __getitem__(self, tree: Tree) -> Number:
        return self.coefficients[tree]

    def then(self, other: BSeries) -> BSeries:
        """Return the series of this step followed by another one, Eq. (2)."""
        if self.empty != 1:
            raise ValueError("only a method (a(∅) = 1) can be followed by another series")
        n = min(self.order, other.order)
        a, b = self.coefficients, other.coefficients
        result: dict[Tree, Number] = {}
        with localcontext(prec=DIGITS + 10):
            for k in range(1, n + 1):
                for tree in rooted_trees(k):
                    total: Any = Fraction(0)
                    for trunk, branches, count in _cuts(tree):
                        term: Any = other.empty if trunk is None else b[trunk]
                        for branch in branches:
                            term = _times(term, a[branch])
                        total = _plus(total, _times(count, term))
                    result[tree] = total
        return BSeries(result, n, other.empty)

    def scaled(self, factor: Any) -> BSeries:
        """Return the series with h replaced by factor · h."""
        number = parse(factor)
        with localcontext(prec=DIGITS + 10):
            values = {}
            for tree, a in self.coefficients.items():
                for _ in range(vertices(tree)):
                    a = _times(number, a)
                values[tree] = a
        return BSeries(values, self.order, self.empty)

    def inverse(self) -> BSeries:
        """Return the series that undoes this step.

        Examples
        --------
        >>> step = bseries("RK4", 4)
        >>> identity = step.then(step.inverse())
        >>> any(identity.coefficients.values())
        False
        """
        if self.empty != 1:
            raise ValueError("only a method (a(∅) = 1) has an inverse")
        inverse: dict[Tree, Number] = {}
        a = self.coefficients
        with localcontext(prec=DIGITS + 10):
            for k in range(1, self.order + 1):
                for tree in rooted_trees(k):
                    total: Any = Fraction(0)
                    for trunk, branches, count in _cuts(tree):
                        if trunk == tree:
                            continue  # the unknown, with factor 1
                        term: Any = 1 if trunk is None else inverse[trunk]
                        for branch in branches:
                            term = _times(term, a[branch])
                        total = _plus(total, _times(count, term))
                    inverse[tree] = _times(-1, total)
        return BSeries(inverse, self.order)

    def adjoint(self) -> BSeries:
        """Return the series of the adjoint step, the inverse with −h."""
        return self.scaled(-1).inverse()

    def agrees(self, other: BSeries, tolerance: float = 0.0) -> int:
        """Return the order up to which two series agree, within a tolerance.

        Examples
        --------
        >>> bseries("RK4", 6).agrees(exact_flow(6))
        4
        """
        with localcontext(prec=DIGITS + 10):
            for k in range(1, min(self.order, other.order) + 1):
                for tree in rooted_trees(k):
                    if abs(float(_plus(self[tree], _times(-1, other[tree])))) > tolerance:
                        return k - 1
        return min(self.order, other.order)

    def __str__(self) -> str:
        lines = [f"B-series to order {self.order}, a(∅) = {self.empty}"]
        for k in range(1, self.order + 1):
            for tree in rooted_trees(k):
                a = self[tree]
                shown = str(a) if isinstance(a, Fraction | int) else f"{float(a):.12g}"
                lines.append(f"  {bracket(tree):<16} {shown}")
        return "\n".join(lines)


def bseries(method: Any, order: int) -> BSeries:
    """Return the B-series of a Runge–Kutta method.

    Parameters
    ----------
    method
        A tableau or the name of a scheme.
    order
        Number of vertices of the largest trees.

    Examples
    --------
    >>> print(bseries("Heun", 3))
    B-series to order 3, a(∅) = 1
      τ                1
      [τ]              1/2
      [[τ]]            0
      [τ²]             1/2
    """
    _check(order)
    return BSeries(elementary_weights(method, order), order)


def exact_flow(order: int) -> BSeries:
    """Return the B-series of the exact solution, a(τ) = 1/γ(τ).

    Parameters
    ----------
    order
        Number of vertices of the largest trees.

    Examples
    --------
    Two half steps of the exact flow are one step.

    >>> half = exact_flow(5).scaled("1/2")
    >>> half.then(half) == exact_flow(5)
    True
    """
    _check(order)
    trees = (tree for k in range(1, order + 1) for tree in rooted_trees(k))
    return BSeries({tree: Fraction(1, density(tree)) for tree in trees}, order)


def modified_equation(method: Any, order: int) -> BSeries:
    """Return the coefficients of the modified equation of backward error analysis.

    Parameters
    ----------
    method
        A tableau, the name of a scheme, or a :class:`BSeries` of a method.
    order
        Number of vertices of the largest trees.

    Returns
    -------
    BSeries
        The vector field hỹ' = Σ h^|τ|/σ(τ) · b(τ) F(τ)(ỹ), with b(∅) = 0. For a method of order p
        all trees of order 2 to p have coefficient 0.

    Examples
    --------
    The explicit Euler method solves ỹ' = f − (h/2) f'f + h² (f'f'f/3 + f''(f,f)/12) + …

    >>> print(modified_equation("ExplicitEuler", 3))
    B-series to order 3, a(∅) = 0
      τ                1
      [τ]              -1/2
      [[τ]]            1/3
      [τ²]             1/6
    """
    a = method if isinstance(method, BSeries) else bseries(method, order)
    _check(order)
    if a.order < order or a.empty != 1:
        raise ValueError(
            f"expected the series of a method to order {order} at least, got order {a.order} "
            f"with a(∅) = {a.empty}"
        )
    b: dict[Tree, Any] = {}
    # derivatives[j] = ∂ᵇʲ b. Each tree of a Lie derivative has smaller parts only, so that all
    # of them can be filled in tree by tree.
    derivatives: list[dict[Tree, Any]] = [b, *({} for _ in range(order))]
    with localcontext(prec=DIGITS + 10):
        for k in range(1, order + 1):
            for tree in rooted_trees(k):
                rest: Any = Fraction(0)
                for j in range(1, k):
                    value: Any = Fraction(0)
                    for trunk, branch, count in _splits(tree):
                        if (known := derivatives[j - 1].get(trunk)) is not None:
                            value = _plus(value, _times(count, _times(known, b[branch])))
                    derivatives[j][tree] = value
                    share = Fraction(1, math.factorial(j + 1))
                    rest = _plus(rest, _times(share, value))
                b[tree] = _plus(a[tree], _times(-1, rest))
    return BSeries(b, order, 0)


# ---------------------------------------------------------------------- cutting trees


@cache
def _cuts(tree: Tree) -> _Cuts:
    """All subtrees with the root, or None, each with the branches left and how often it occurs."""
    counted: dict[tuple[Tree | None, tuple[Tree, ...]], int] = {(None, (tree,)): 1}
    for trunk, branches in _prunings(tree):
        key = trunk, tuple(sorted(branches))
        counted[key] = counted.get(key, 0) + 1
    return tuple((trunk, branches, count) for (trunk, branches), count in counted.items())


def _prunings(tree: Tree) -> Iterator[tuple[Tree, tuple[Tree, ...]]]:
    """Ways to keep the root: each child is cut off, or pruned itself."""
    partial: list[tuple[tuple[Tree, ...], tuple[Tree, ...]]] = [((), ())]
    for child in tree:
        options: list[tuple[tuple[Tree, ...], tuple[Tree, ...]]] = [((), (child,))]
        options += [((kept,), cut) for kept, cut in _prunings(child)]
        partial = [
            (kept + more, cut + further) for kept, cut in partial for more, further in options
        ]
    for kept, cut in partial:
        yield _canonical(kept), cut


@cache
def _splits(tree: Tree) -> tuple[tuple[Tree, Tree, int], ...]:
    """Ways to cut off exactly one branch."""
    return tuple(
        (trunk, branches[0], count)
        for trunk, branches, count in _cuts(tree)
        if trunk is not None and len(branches) == 1
    )


@cache
def _position() -> dict[Tree, tuple[int, int]]:
    """Place of each tree in the enumeration, which decides how children are sorted."""
    return {
        tree: (-n, k) for n in range(1, MAX_ORDER + 1) for k, tree in enumerate(rooted_trees(n))
    }


def _canonical(children: tuple[Tree, ...]) -> Tree:
    return tuple(sorted(children, key=_position().__getitem__))


# ---------------------------------------------------------------------- numbers


def _exactly(x: Any, y: Any) -> bool:
    return isinstance(x, Fraction | int) and isinstance(y, Fraction | int)


def _plus(x: Any, y: Any) -> Any:
    return x + y if _exactly(x, y) else _decimal(x) + _decimal(y)


def _times(x: Any, y: Any) -> Any:
    return x * y if _exactly(x, y) else _decimal(x) * _decimal(y)


def _decimal(x: Any) -> Decimal:
    return to_decimal(Fraction(x) if isinstance(x, int) else x)


def _check(order: int) -> None:
    if isinstance(order, bool) or not isinstance(order, int):
        raise TypeError(f"expected the order as an integer, got {order!r}")
    if not 1 <= order <= MAX_ORDER:
        raise ValueError(f"B-series of order 1 to {MAX_ORDER} are computed, got {order}")
