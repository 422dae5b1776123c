"""Additive Runge–Kutta methods: f = f_E + f_I, the one part explicit, the other implicit (IMEX).

    Yᵢ = y + h Σⱼ (aᴱᵢⱼ f_E(Yⱼ) + aᴵᵢⱼ f_I(Yⱼ)),      y₊ = y + h Σᵢ (bᴱᵢ f_E(Yᵢ) + bᴵᵢ f_I(Yᵢ))

Each half is a tableau; together they have an order only if the *coupled* conditions hold, those of
all trees of two colours (:cite:`kennedy2003`). The colour of a vertex says which half it is of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from .coloured import ColouredTree, Family
from .exact import DIGITS, Number, to_decimal
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
from .tableau import Tableau

__all__ = ["Additive", "additive_extension"]

Array = NDArray[np.float64]
Numbers = list[Decimal]

E, I = 0, 1
TREES = Family([1, 1])
HIGHEST_ORDER = 6
SOLVED = 1e-10  # residual of conditions that hold


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
        if tree in self._known:
            return self._known[tree]
        value = [Decimal(1)] * self.stages
        for child in tree[1]:
            below = self._stages(child)
            A = (self.explicit if child[0] == E else self.implicit).A
            value = [
                x * sum((to_decimal(a) * k for a, k in zip(row, below)), Decimal(0))
                for x, row in zip(value, A)
            ]
        self._known[tree] = value
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
    >>> from integrators.catalogue import further
    >>> found = additive_extension(further.get("ARK324IMEX"), 3)
    >>> found.order, len(found.nodes)
    (3, 0)
    """
    return _Search(method, order).grow()


class _Search:
    """u(θ) = y + θΔ + θ(1 − θ) Σ gᵢ(θ) rowᵢ, and further stages until its order is reached."""

    def __init__(self, method: Additive, order: int) -> None:
        self.order, self.gamma = order, method.gamma
        self.trees = [
            t for n in range(1, order + 1) for root in (E, I) for t in TREES.trees(n, root)
        ]
        self.place = {tree: i for i, tree in enumerate(self.trees)}
        self.orders = np.array([TREES.order(tree) for tree in self.trees])
        self.roots = np.array([tree[0] for tree in self.trees])
        self.exact = np.array([1.0 / density(tree) for tree in self.trees])
        stages = np.array([[float(x) for x in method._stages(tree)] for tree in self.trees]).T
        of_e, of_i = self.roots == E, self.roots == I
        self.rows = np.vstack([stages * of_e, stages * of_i])
        self.step = np.concatenate([method.explicit.arrays[1], method.implicit.arrays[1]])
        self.implicit = [i >= method.stages for i in range(2 * method.stages)]

    def grow(self) -> Extension:
        """Add stages until the order is reached, or nothing more helps."""
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
            du = du * np.array(self.implicit)  # of the implicit part alone
            pairs = self._further(u, du)
            best = self._most_useful(pairs, reached + 1)
            if best is None:
                break
            nodes.append(float(c[best]))
            points.append(u[best] - self.gamma * du[best])
            slopes.append(du[best])
            self.rows = np.vstack([self.rows, *(rows[best] for rows in pairs)])
            self.implicit += [False, True]
            g = np.vstack([g, np.zeros((2, g.shape[1]))])
        full = [np.zeros((len(nodes), len(self.rows))) for _ in range(2)]
        for table, known in zip(full, (points, slopes)):
            for row, given in zip(table, known):
                row[: len(given)] = given
        weights = np.ascontiguousarray(self._expanded(g))
        return Extension(reached, np.array(nodes), full[0], full[1], weights)

    def _further(self, u: Array, du: Array) -> tuple[Array, Array]:
        """φ of h f_E and h f_I at further stages, for all candidates at once."""
        value, slope = u @ self.rows, du @ self.rows
        k = np.zeros(value.shape)
        for i, (_, children) in enumerate(self.trees):
            k[:, i] = 1.0
            for child in children:
                j = self.place[child]
                inside = value[:, j]
                if child[0] == I:
                    inside = inside + self.gamma * (k[:, j] - slope[:, j])
                k[:, i] = k[:, i] * inside
        return k * (self.roots == E), k * (self.roots == I)

    def _equations(self, order: int) -> tuple[Array, Array]:
        wanted = self.orders <= order
        theta = Polynomial([0.0, 1.0])
        right = np.zeros((order + 1, order - 1))
        for n in range(2, order + 1):
            rest = (theta**n - theta) // (theta * (1 - theta))
            right[n] = in_legendre(rest(POINTS), order - 1)
        return (self.rows / self.exact)[:, wanted].T, right[self.orders[wanted]]

    def _solve(self, order: int) -> Array | None:
        equations, right = self._equations(order)
        g: NDArray[Any] = np.linalg.lstsq(equations, right, rcond=DEPENDENT)[0]
        return g if np.max(np.abs(equations @ g - right)) < SOLVED else None

    def _most_useful(self, pairs: tuple[Array, Array], order: int) -> int | None:
        """Which stage brings the conditions nearest to a solution, with both of its rows."""
        equations, right = self._equations(order)
        U, sizes, _ = np.linalg.svd(equations, full_matrices=False)
        U = U[:, sizes > DEPENDENT * sizes[0]]
        right = right - U @ (U.T @ right)
        wanted = self.orders <= order
        gain = np.zeros(len(pairs[0]))
        for candidate in self._candidates(pairs):
            i, rows = candidate
            new = (rows / self.exact)[:, wanted].T
            new = new - U @ (U.T @ new)
            fit: NDArray[Any] = np.linalg.lstsq(new, right, rcond=1e-9)[0]
            gain[i] = np.linalg.norm(right) - np.linalg.norm(right - new @ fit)
        return int(np.argmax(gain)) if gain.max() > 1e3 * SOLVED else None

    def _candidates(self, pairs: tuple[Array, Array]) -> Iterator[tuple[int, Array]]:
        for i, rows in enumerate(zip(*pairs)):
            yield i, np.array(rows)

    def _expanded(self, g: Array) -> Array:
        """Coefficients of b(θ)/θ in Legendre's polynomials."""
        values = (1 - POINTS) * (g @ _legendre(POINTS, g.shape[1]))
        values[: len(self.step)] += self.step[:, None]
        return in_legendre(values, 1 + g.shape[1])

    def _at(self, g: Array, theta: Array) -> tuple[Array, Array]:
        """Weights of u and of u' at some θ."""
        expanded = self._expanded(g)
        values, rising = _legendre(theta, expanded.shape[1]), _rising(theta, expanded.shape[1])
        return (expanded @ (theta * values)).T, (expanded @ (values + theta * rising)).T
