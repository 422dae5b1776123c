"""Rooted trees whose vertices have colours: order conditions of methods with several parts.

A vertex stands for a function that is differentiated, a colour for which one it is. Rosenbrock
methods have f and the matrix that takes the place of its Jacobian, differential-algebraic equations
f and the constraint, partitioned and additive methods two halves of f (:cite:`hairer1996`, IV.7 and
VI.3; :cite:`hairer2006`, III.2).

A tree is (colour, children), the children sorted. Plain trees are in
:mod:`integrators.tableau.trees`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

__all__ = ["ColouredTree", "Family", "coloured_trees", "written"]

ColouredTree = tuple  # (colour, children)


class Family:
    """Which trees there are.

    Parameters
    ----------
    costs
        For each colour by how much a vertex raises the order: 1, or 0 for a constraint.
    allowed
        ``allowed(colour, children)`` for the colours of a vertex and of its children.
    """

    def __init__(
        self,
        costs: Sequence[int],
        allowed: Callable[[int, Sequence[int]], bool] = lambda colour, children: True,
    ) -> None:
        self.costs = tuple(costs)
        self.allowed = allowed
        self._of: dict[tuple[int, int], tuple[ColouredTree, ...]] = {}

    def trees(self, n: int, root: int) -> tuple[ColouredTree, ...]:
        """All trees of order n with a root of this colour.

        Examples
        --------
        >>> [len(Family([1]).trees(n, 0)) for n in range(1, 6)]
        [1, 1, 2, 4, 9]
        >>> [len(Family([1, 1]).trees(n, 0)) for n in range(1, 5)]
        [1, 2, 7, 26]
        """
        if n < 1:
            return ()
        if (n, root) not in self._of:
            rest = n - self.costs[root]
            self._of[n, root] = tuple(
                (root, forest)
                for forest in _forests(self._below(n, root), rest, 0)
                if self.allowed(root, [child[0] for child in forest])
            )
        return self._of[n, root]

    def _below(self, n: int, root: int) -> list[tuple[int, ColouredTree]]:
        """Possible children with their orders."""
        found: list[tuple[int, ColouredTree]] = []
        for k in range(1, n):
            for colour in range(len(self.costs)):
                found += [(k, tree) for tree in self.trees(k, colour)]
        if not self.costs[root]:  # a vertex without a cost may carry one tree of the same order
            for colour, cost in enumerate(self.costs):
                if cost:
                    found += [(n, tree) for tree in self.trees(n, colour)]
        return found

    def order(self, tree: ColouredTree) -> int:
        """Sum of the costs of all vertices."""
        return self.costs[tree[0]] + sum(self.order(child) for child in tree[1])


def _forests(
    known: list[tuple[int, ColouredTree]], total: int, first: int
) -> Iterator[tuple[ColouredTree, ...]]:
    """Multisets of trees whose orders add up to ``total``."""
    if total == 0:
        yield ()
        return
    for i in range(first, len(known)):
        order, tree = known[i]
        if order <= total:
            for rest in _forests(known, total - order, i):
                yield (tree, *rest)


def coloured_trees(family: Family, upto: int, root: int) -> list[ColouredTree]:
    """All trees of a family with this root, of orders 1 to ``upto``, low orders first."""
    return [tree for n in range(1, upto + 1) for tree in family.trees(n, root)]


def written(tree: ColouredTree, letters: Sequence[str]) -> str:
    """The tree in brackets, a letter for each colour.

    Examples
    --------
    >>> written((0, ((1, ()), (0, ()))), "fJ")
    'f[J, f]'
    """
    colour, children = tree
    inside = ", ".join(written(child, letters) for child in children)
    return f"{letters[colour]}[{inside}]" if inside else letters[colour]
