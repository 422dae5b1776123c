"""Additive Runge–Kutta methods: f = f_E + f_I, the one part explicit, the other implicit (IMEX).

    Yᵢ = y + h Σⱼ (aᴱᵢⱼ f_E(Yⱼ) + aᴵᵢⱼ f_I(Yⱼ)),      y₊ = y + h Σᵢ (bᴱᵢ f_E(Yᵢ) + bᴵᵢ f_I(Yᵢ))

Each half is a tableau; together they have an order only if the *coupled* conditions hold, those of
all trees of two colours (:cite:`kennedy2003`). The colour of a vertex says which half it is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import cache, cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .coloured import ColouredTree, Family
from .exact import DIGITS, Number, to_decimal
from .extension import Extension
from .growing import GrowingExtension
from .implicit_extension import LARGEST_WEIGHTS, InnerCheck, settled, through
from .tableau import Tableau

__all__ = ["Additive", "additive_check", "additive_extension", "plain_extension"]

Array = NDArray[np.float64]
Numbers = list[Decimal]

E, I = 0, 1
TREES = Family([1, 1])
HIGHEST_ORDER = 6
APART = 0.05  # nodes of stages that lie nearer than this say the same


class Additive:
    """Two tableaux with the same nodes, for the two parts of f = f_E + f_I.

    Parameters
    ----------
    explicit, implicit
        An explicit tableau, and a diagonally implicit one whose diagonal, but for a first stage
        that is explicit, is one number.
    name, reference
        For people.

    Examples
    --------
    >>> euler = Additive(
    ...     Tableau([[], [1]], [1, 0]), Tableau([[0], [0, 1]], [0, 1]), name="IMEX Euler"
    ... )
    >>> euler.order
    1
    """

    def __init__(
        self, explicit: Tableau, implicit: Tableau, name: str = "", reference: str = ""
    ) -> None:
        self.explicit, self.implicit = explicit, implicit
        self.name, self.reference = str(name), str(reference)
        if not (isinstance(explicit, Tableau) and isinstance(implicit, Tableau)):
            raise TypeError("an additive method is made of two tableaux, explicit and implicit")
        if not explicit.is_explicit:
            raise ValueError("the tableau of the explicit part is not explicit")
        if explicit.stages != implicit.stages:
            raise ValueError(
                f"both tableaux need as many stages; they have {explicit.stages} and "
                f"{implicit.stages}"
            )
        if not implicit.is_esdirk:
            raise ValueError(
                "the tableau of the implicit part must be diagonally implicit with an explicit "
                "first stage and one number on the rest of the diagonal"
            )
        off = [abs(float(to_decimal(x) - to_decimal(y))) for x, y in zip(explicit.c, implicit.c)]
        if max(off) > 1e-12:
            raise ValueError("the two tableaux need the same nodes c")

    @property
    def stages(self) -> int:
        """Number of stages."""
        return self.explicit.stages

    @property
    def gamma(self) -> float:
        """The number on the diagonal of the implicit part."""
        return float(self.implicit.A[-1][-1])

    @property
    def is_pair(self) -> bool:
        """Whether both halves have an embedded method."""
        return self.explicit.b_hat is not None and self.implicit.b_hat is not None

    @cached_property
    def order(self) -> int:
        """Order with both parts, by the coupled conditions."""
        return self._order(self.explicit.b, self.implicit.b)

    @cached_property
    def embedded_order(self) -> int | None:
        """Order of the embedded method, or None."""
        if self.explicit.b_hat is None or self.implicit.b_hat is None:
            return None
        return self._order(self.explicit.b_hat, self.implicit.b_hat)

    def residual(self, order: int, weights: tuple[Sequence[Number], Sequence[Number]]) -> float:
        """Largest residual of the coupled conditions of an order."""
        rows = [[to_decimal(x) for x in part] for part in weights]
        worst = 0.0
        with localcontext(prec=DIGITS + 10):
            for root in (E, I):
                for tree in TREES.trees(order, root):
                    total = sum(x * y for x, y in zip(rows[root], self._stages(tree)))
                    worst = max(worst, abs(float(total - Decimal(1) / density(tree))))
        return worst

    def _order(self, b: Sequence[Number], b_implicit: Sequence[Number]) -> int:
        delta = max(t._relative_uncertainty for t in (self.explicit, self.implicit))
        p = 0
        while p < HIGHEST_ORDER:
            room = 1e3 * max(delta, 1e-50)
            if self.residual(p + 1, (b, b_implicit)) > room:
                break
            p += 1
        return p

    @cached_property
    def _known(self) -> dict[ColouredTree, Numbers]:
        return {}

    def _stages(self, tree: ColouredTree) -> Numbers:
        if tree not in self._known:
            with localcontext(prec=DIGITS + 10):  # kept with all digits, whoever asks first
                self._known[tree] = self._new_stages(tree)
        return self._known[tree]

    def _new_stages(self, tree: ColouredTree) -> Numbers:
        value = [Decimal(1)] * self.stages
        for child in tree[1]:
            below = self._stages(child)
            A = (self.explicit if child[0] == E else self.implicit).A
            value = [
                x * sum((to_decimal(a) * k for a, k in zip(row, below)), Decimal(0))
                for x, row in zip(value, A)
            ]
        return value

    def __repr__(self) -> str:
        pair = "" if self.embedded_order is None else f"({self.embedded_order})"
        label = self.name or "unnamed"
        return f"<Additive {label}: {self.stages} stages, order {self.order}{pair}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Additive):
            return NotImplemented
        return (self.explicit, self.implicit) == (other.explicit, other.implicit)

    def __hash__(self) -> int:
        return hash((self.explicit, self.implicit))


def density(tree: ColouredTree) -> int:
    """γ(τ), which does not look at colours."""
    product = TREES.order(tree)
    for child in tree[1]:
        product *= density(child)
    return product


@cache
def additive_extension(method: Additive, order: int) -> Extension:
    """Dense output from the slopes of both parts, and of both at further stages.

    The rows are h f_E at the stages, h f_I at the stages, then both at each further stage

        Y = u(c) + γ(h f_I(Y) − h u_I'(c)),

    which is solved with the matrix of the step; u_I is the part of u that f_I contributes.
    ``points`` has weights of u(c) − γh u_I'(c), ``slopes`` those of h u_I'(c), a first guess.

    Examples
    --------
    >>> from integrators import catalogue
    >>> found = additive_extension(catalogue.entry("ARK324IMEX").method, 3)
    >>> found.order, len(found.nodes)
    (3, 2)

    Slopes of f_I say little of stiff components (that at the start magnifies any error), states
    say all: the polynomial goes through those of further stages, :func:`.settled`.
    """
    search = _Search(method, order)
    found = search.grow()
    return settled(found, method.gamma, search._implicit_part(np.ones(len(found.weights))))


@cache
def plain_extension(method: Additive) -> Extension:
    """Dense output without further stages."""
    return _Search(method, method.order).grow(further=False)


@cache
def additive_check(method: Additive) -> InnerCheck:
    """Return what stages tell of stiff components: a polynomial through their states.

    Of the stages between the ends, those are taken that magnify errors least, as many as the order
    of the method asks for.

    Examples
    --------
    >>> from integrators import catalogue
    >>> additive_check(catalogue.entry("ARK436IMEX").method).order
    4
    """
    (A, b, c), (A_implicit, b_implicit, _) = method.explicit.arrays, method.implicit.arrays
    states = np.vstack([np.hstack([A, A_implicit]), np.hstack([b, b_implicit])])
    nodes = np.append(c, 1.0)
    between = [i for i, x in enumerate(c) if APART < x < 1 - APART]
    chosen, smallest = [method.stages], LARGEST_WEIGHTS
    for size in range(1, min(method.order - 1, len(between)) + 1):
        for some in combinations(between, size):
            used = [*some, method.stages]
            if np.diff(np.sort(nodes[used])).min() > APART:
                sum_of_weights = np.abs(through(nodes[used])).sum(axis=0).max()
                if len(used) > len(chosen) or sum_of_weights < smallest:
                    chosen, smallest = used, sum_of_weights
    weights = states[chosen].T @ through(nodes[chosen])
    next_power = nodes[chosen] ** (len(chosen) + 1)
    follows = np.linalg.lstsq(states[chosen], next_power, rcond=None)[0]
    return InnerCheck.worst(len(chosen), weights, follows)


class _Search(GrowingExtension):
    """The rows are h f_E at the stages, h f_I at the stages, and both at each further stage."""

    def __init__(self, method: Additive, order: int) -> None:
        self.order, self.gamma = order, method.gamma
        self.trees = [
            t for n in range(1, order + 1) for root in (E, I) for t in TREES.trees(n, root)
        ]
        self.place = {tree: i for i, tree in enumerate(self.trees)}
        self.orders = np.array([TREES.order(tree) for tree in self.trees])
        self.roots = np.array([tree[0] for tree in self.trees])
        self.exact = np.array([1.0 / density(tree) for tree in self.trees])
        self.stages = method.stages
        weighs = np.array([[float(x) for x in method._stages(tree)] for tree in self.trees]).T
        self.rows = np.vstack([weighs * (self.roots == E), weighs * (self.roots == I)])
        self.step = np.concatenate([method.explicit.arrays[1], method.implicit.arrays[1]])

    def _implicit_part(self, du: Array) -> Array:
        """What f_I contributes to some weights of rows."""
        row = np.arange(du.shape[-1])
        further = row - 2 * self.stages
        part: Array = du * np.where(further < 0, row >= self.stages, further % 2 == 1)
        return part

    def stage(self, u: Array, du: Array) -> tuple[Array, Array]:
        """Weights of u(c) − γh u_I'(c) and of h u_I'(c)."""
        slope = self._implicit_part(du)
        return u - self.gamma * slope, slope

    def further(self, u: Array, du: Array) -> Array:
        """What h f_E and h f_I at each further stage weigh."""
        value, slope = u @ self.rows, self._implicit_part(du) @ self.rows
        k = np.zeros(value.shape)
        for i, (_, children) in enumerate(self.trees):
            k[:, i] = 1.0
            for child in children:
                j = self.place[child]
                inside = value[:, j]
                if child[0] == I:
                    inside = inside + self.gamma * (k[:, j] - slope[:, j])
                k[:, i] = k[:, i] * inside
        return np.stack([k * (self.roots == E), k * (self.roots == I)], axis=1)
