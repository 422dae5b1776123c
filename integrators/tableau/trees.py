"""Rooted trees: the book-keeping of order conditions.

A Runge–Kutta method has order p if and only if Φ(τ) = 1/γ(τ) for every rooted tree τ with at
most p vertices (Butcher; :cite:`hairer1993`, II.2). The trees are generated, not typed in.

A tree is the tuple of its children, sorted: the single vertex is ``()``, the vertex with two
leaves ``((), ())``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from math import factorial

__all__ = ["Tree", "bracket", "density", "order", "rooted_trees", "symmetry"]

Tree = tuple  # of Trees


@cache
def rooted_trees(n: int) -> tuple[Tree, ...]:
    """All rooted trees with n vertices: 1, 1, 2, 4, 9, 20, 48, 115, 286, 719, … of them.

    Examples
    --------
    >>> [len(rooted_trees(n)) for n in range(1, 9)]
    [1, 1, 2, 4, 9, 20, 48, 115]
    """
    if n < 1:
        return ()
    return tuple(tuple(forest) for forest in _forests(n - 1, n - 1, None))


def _forests(total: int, largest: int, start: tuple[int, int] | None) -> Iterator[list[Tree]]:
    """Multisets of trees with `total` vertices together, in non-increasing enumeration order."""
    if total == 0:
        yield []
        return
    for size in range(min(total, largest), 0, -1):
        trees = rooted_trees(size)
        first = start[1] if start is not None and start[0] == size else 0
        for k in range(first, len(trees)):
            for rest in _forests(total - size, size, (size, k)):
                yield [trees[k], *rest]


@cache
def order(tree: Tree) -> int:
    """Number of vertices."""
    return 1 + sum(order(child) for child in tree)


@cache
def density(tree: Tree) -> int:
    """γ(τ): the product over all vertices of the size of the subtree that hangs there."""
    product = order(tree)
    for child in tree:
        product *= density(child)
    return product


@cache
def symmetry(tree: Tree) -> int:
    """σ(τ): the number of ways to permute branches without changing the tree."""
    product = 1
    for child, count in Counter(tree).items():
        product *= symmetry(child) ** count * factorial(count)
    return product


def bracket(tree: Tree) -> str:
    """Butcher's bracket notation: τ for a vertex, [τ²] for a vertex with two leaves.

    Examples
    --------
    >>> [bracket(tree) for tree in rooted_trees(4)]
    ['[[[τ]]]', '[[τ²]]', '[[τ]τ]', '[τ³]']
    """
    if not tree:
        return "τ"
    superscript = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    parts = []
    for child, count in Counter(tree).items():
        parts.append(bracket(child) + (str(count).translate(superscript) if count > 1 else ""))
    return "[" + "".join(parts) + "]"
