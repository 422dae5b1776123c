"""Methods for y = (q, v) whose halves are treated differently: splittings, Nyström, partitioned.

In mechanics v' depends on q, and q' on v: q'' = g(t, q), or a Hamiltonian T(p) + V(q). Three kinds
of methods use it (:cite:`hairer2006`, II):

- a :class:`Splitting` follows the two halves in turn, exactly: *kicks* v += bᵢ h g(t, q) and
  *drifts* q += aᵢ h f(t, v). Such steps are symplectic whatever the numbers; these decide the
  order.
- a :class:`Nystrom` method has stages for q'' = g(t, q) alone,
  Qᵢ = q + cᵢ h v + h² Σ aᵢⱼ g(Qⱼ), and, as a pair, an error estimate.
- a :class:`Partitioned` Runge–Kutta method has one tableau for q and one for v, and takes any f.

The order conditions of the first two are those of trees in which vertices of g and f alternate; for
q' = v a vertex of f has at most one branch (Nyström trees). The third needs all trees of two
colours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .coefficients import _floats, _matrix, _vector
from .coloured import ColouredTree, Family
from .exact import DIGITS, Number, to_decimal, uncertainty
from .trees import Tree, density, order, rooted_trees

__all__ = ["Nystrom", "Partitioned", "Splitting"]

Array = NDArray[np.float64]
Numbers = list[Decimal]

HIGHEST_ORDER = 10
HIGHEST_PARTITIONED = 6  # the trees of two colours of order 7 are 4,000
KICK, DRIFT = 0, 1
TWO_COLOURS = Family([1, 1])


class _Halves:
    """What the three kinds share: numbers, and how orders are looked for."""

    name: str
    reference: str
    slack: float

    def _highest(self, holds: Callable[[int], bool], most: int) -> int:
        p = 0
        while p < most and holds(p + 1):
            p += 1
        return p

    def _vanishes(self, residual: Decimal, size: float) -> bool:
        return abs(float(residual)) <= 64 * max(self.slack, 1e-55) * max(1.0, size)


def _largest_slack(*rows: Sequence[Number]) -> float:
    return max((uncertainty(x) for row in rows for x in row), default=0.0)


def is_nystrom_tree(tree: Tree, root: int) -> bool:
    """Whether vertices of f have at most one branch: f is q' = v."""
    if root == DRIFT and len(tree) > 1:
        return False
    return all(is_nystrom_tree(child, 1 - root) for child in tree)


class Splitting(_Halves):
    """Kicks and drifts in turn: v += b₁hg, q += a₁hf, v += b₂hg, …

    Parameters
    ----------
    kicks, drifts
        bᵢ and aᵢ, as many of each; a zero leaves one out, at the start or the end.
    name, reference
        For people.

    Examples
    --------
    >>> verlet = Splitting(["1/2", "1/2"], [1, 0], name="Störmer–Verlet")
    >>> verlet.order, verlet.is_symmetric, verlet.is_symplectic
    (2, True, True)
    """

    def __init__(self, kicks: Any, drifts: Any, name: str = "", reference: str = "") -> None:
        self.name, self.reference = str(name), str(reference)
        self.kicks = _vector(kicks, "kicks", None)
        self.drifts = _vector(drifts, "drifts", len(self.kicks))
        if not self.kicks:
            raise ValueError("a splitting needs a kick and a drift; kicks is empty")
        self.slack = _largest_slack(self.kicks, self.drifts)

    @classmethod
    def composition(
        cls, gammas: Any, name: str = "", reference: str = "", symmetric: bool = False
    ) -> Splitting:
        """Return Störmer–Verlet steps of lengths γ₁h, γ₂h, … as one step.

        With ``symmetric`` the first half is given; the middle follows from Σγ = 1.

        Examples
        --------
        >>> Splitting.composition(["1.3512071919596578"], symmetric=True).order
        4
        """
        given = [to_decimal(x) for x in _vector(gammas, "gammas", None)]
        with localcontext(prec=DIGITS + 10):
            if symmetric:
                given = [*given, Decimal(1) - 2 * sum(given, Decimal(0)), *given[::-1]]
            before = [Decimal(0), *given]
            kicks = [(x + y) / 2 for x, y in zip(before, [*given, Decimal(0)])]
        found = cls(kicks, [*given, Decimal(0)], name, reference)
        found.slack = _largest_slack(_vector(gammas, "gammas", None))
        return found

    @property
    def stages(self) -> int:
        """Evaluations of g in a step; one that ends a step begins the next."""
        kicks = sum(x != 0 for x in self.kicks)
        return kicks - int(self.ends_with_kick and self.kicks[0] != 0 and kicks > 1)

    @property
    def ends_with_kick(self) -> bool:
        """Whether the last thing in a step is a kick."""
        return self.drifts[-1] == 0

    @cached_property
    def order(self) -> int:
        """Order on separable problems q' = f(t, v), v' = g(t, q)."""
        return self._highest(lambda p: self._holds(p, lambda tree, root: True), HIGHEST_ORDER)

    @cached_property
    def nystrom_order(self) -> int:
        """Order on q'' = g(t, q), where fewer conditions are asked for."""
        return self._highest(lambda p: self._holds(p, is_nystrom_tree), HIGHEST_ORDER)

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether a step backwards undoes a step."""
        kicks, drifts = _decimals(self.kicks), _decimals(self.drifts)
        sequence = [x for pair in zip(kicks, drifts) for x in pair]
        kinds = [kind for _ in kicks for kind in (KICK, DRIFT)]
        moves = [(x, kind) for x, kind in zip(sequence, kinds) if x != 0]
        near = 64 * max(self.slack, 1e-55)
        return all(
            kind == other and abs(float(x - y)) <= near
            for (x, kind), (y, other) in zip(moves, moves[::-1])
        )

    @property
    def is_symplectic(self) -> bool:
        """Always: kicks and drifts are the flows of Hamiltonians."""
        return True

    def conditions(self, p: int) -> list[tuple[Tree, int, float]]:
        """Trees of order p, with the colour of their root and the residual of their condition."""
        weights = _decimals(self.kicks), _decimals(self.drifts)
        found = []
        with localcontext(prec=DIGITS + 10):
            for tree in rooted_trees(p):
                for root in (KICK, DRIFT):
                    stages = self._stages(tree, root)
                    total = sum(x * y for x, y in zip(weights[root], stages))
                    found.append((tree, root, float(total - Decimal(1) / density(tree))))
        return found

    def _holds(self, p: int, counts: Callable[[Tree, int], bool]) -> bool:
        size = p * float(sum(abs(x) for x in _decimals((*self.kicks, *self.drifts)))) ** 2
        return all(
            self._vanishes(Decimal(off), size)
            for tree, root, off in self.conditions(p)
            if counts(tree, root)
        )

    @cached_property
    def _known(self) -> dict[tuple[Tree, int], Numbers]:
        return {}

    def _stages(self, tree: Tree, root: int) -> Numbers:
        """Weights of a tree at each kick, or drift: before it, those of the other kind add up."""
        if (tree, root) in self._known:
            return self._known[tree, root]
        weights = _decimals(self.drifts if root == KICK else self.kicks)
        value = [Decimal(1)] * len(weights)
        for child in tree:
            below = self._stages(child, 1 - root)
            total = Decimal(0)
            for i, (weight, x) in enumerate(zip(weights, below)):
                if root == KICK:  # kick i sees the drifts before it, drift i also kick i
                    value[i] *= total
                    total += weight * x
                else:
                    total += weight * x
                    value[i] *= total
        self._known[tree, root] = value
        return value

    def __repr__(self) -> str:
        return f"<Splitting {self.name or 'unnamed'}: {self.stages} stages, order {self.order}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Splitting):
            return NotImplemented
        return (self.kicks, self.drifts) == (other.kicks, other.drifts)

    def __hash__(self) -> int:
        return hash((self.kicks, self.drifts))

    def __reduce__(self) -> Any:
        return _rebuild, (
            Splitting,
            (self.kicks, self.drifts),
            self.name,
            self.reference,
            self.slack,
        )


class Nystrom(_Halves):
    """A Runge–Kutta–Nyström method for q'' = g(t, q), or a pair of them.

        Qᵢ = q + cᵢhv + h² Σ aᵢⱼ gⱼ,    q₊ = q + hv + h² Σ bᵢ gᵢ,    v₊ = v + h Σ b'ᵢ gᵢ

    Parameters
    ----------
    A, b, b_rate, c
        Coefficients; A is strictly lower triangular.
    b_hat, b_rate_hat
        Weights of an embedded method.
    name, reference
        For people.

    Examples
    --------
    >>> Nystrom([[]], ["1/2"], [1], [0], name="q + hv + h²g/2").order
    1
    """

    def __init__(
        self,
        A: Any,
        b: Any,
        b_rate: Any,
        c: Any,
        b_hat: Any = None,
        b_rate_hat: Any = None,
        name: str = "",
        reference: str = "",
    ) -> None:
        self.name, self.reference = str(name), str(reference)
        self.b = _vector(b, "b", None)
        s = len(self.b)
        if s == 0:
            raise ValueError("a Nyström method needs at least one stage; b is empty")
        self.A = _matrix(A, s)
        self.b_rate, self.c = _vector(b_rate, "b_rate", s), _vector(c, "c", s)
        if any(x != 0 for i, row in enumerate(self.A) for x in row[i:]):
            raise ValueError("A may have entries below the diagonal only: the stages are explicit")
        if self.c[0] != 0:
            raise ValueError("c must begin with 0: the first stage is g at the start of the step")
        if (b_hat is None) != (b_rate_hat is None):
            raise ValueError("an embedded method needs both b_hat and b_rate_hat")
        self.b_hat = None if b_hat is None else _vector(b_hat, "b_hat", s)
        self.b_rate_hat = None if b_rate_hat is None else _vector(b_rate_hat, "b_rate_hat", s)
        rows = (*self.A, self.b, self.b_rate, self.c, self.b_hat or (), self.b_rate_hat or ())
        self.slack = _largest_slack(*rows)

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.b)

    @cached_property
    def fsal(self) -> bool:
        """Whether the last stage is g at the end of the step."""
        return self.stages > 1 and self.A[-1] == self.b and self.c[-1] == 1 and self.b[-1] == 0

    @cached_property
    def order(self) -> int:
        """Order of q and v."""
        return self._order(self.b, self.b_rate)

    @cached_property
    def embedded_order(self) -> int | None:
        """Order of the embedded method, or None."""
        if self.b_hat is None or self.b_rate_hat is None:
            return None
        return self._order(self.b_hat, self.b_rate_hat)

    @cached_property
    def is_symplectic(self) -> bool:
        """Suris' conditions b = b'(1 − c), b'ᵢ(bⱼ − aᵢⱼ) = b'ⱼ(bᵢ − aⱼᵢ)."""
        b, rate, c = _decimals(self.b), _decimals(self.b_rate), _decimals(self.c)
        A, s = [_decimals(row) for row in self.A], self.stages
        with localcontext(prec=DIGITS + 10):
            off = [x - r * (1 - t) for x, r, t in zip(b, rate, c)]
            off += [
                rate[i] * (b[j] - A[i][j]) - rate[j] * (b[i] - A[j][i])
                for i in range(s)
                for j in range(s)
            ]
        return all(self._vanishes(x, 1.0) for x in off)

    def _order(self, b: Sequence[Number], rate: Sequence[Number]) -> int:
        trees = [_decimals(b), _decimals(rate)]
        return self._highest(lambda p: self._holds(p, *trees), HIGHEST_ORDER)

    def _holds(self, p: int, b: Numbers, rate: Numbers) -> bool:
        with localcontext(prec=DIGITS + 10):
            for tree in rooted_trees(p):
                if not is_nystrom_tree(tree, KICK):
                    continue
                stage, size = self._stages(tree)
                exact = Decimal(1) / density(tree)
                total = sum(x * y for x, y in zip(rate, stage))
                if not self._vanishes(total - exact, p * size):
                    return False
            for tree in rooted_trees(p - 1):  # q hangs one vertex below
                if not is_nystrom_tree(tree, KICK):
                    continue
                stage, size = self._stages(tree)
                exact = Decimal(1) / (density(tree) * (order(tree) + 1))
                total = sum(x * y for x, y in zip(b, stage))
                if not self._vanishes(total - exact, p * size):
                    return False
        return True

    @cached_property
    def _known(self) -> dict[Tree, tuple[Numbers, float]]:
        return {}

    def _stages(self, tree: Tree) -> tuple[Numbers, float]:
        """Weights of a tree with a root of g at each stage; its branches are v, or q through v."""
        if tree in self._known:
            return self._known[tree]
        value = [Decimal(1)] * self.stages
        for child in tree:
            if not child:
                value = [x * y for x, y in zip(value, _decimals(self.c))]
                continue
            below, _ = self._stages(child[0])
            rows = [_decimals(row) for row in self.A]
            value = [x * sum(a * k for a, k in zip(row, below)) for x, row in zip(value, rows)]
        size = max(1.0, max(abs(float(x)) for x in value))
        self._known[tree] = value, size
        return value, size

    def __repr__(self) -> str:
        pair = "" if self.embedded_order is None else f"({self.embedded_order})"
        label = self.name or "unnamed"
        return f"<Nystrom {label}: {self.stages} stages, order {self.order}{pair}>"

    @cached_property
    def _key(self) -> Any:
        return self.A, self.b, self.b_rate, self.c, self.b_hat, self.b_rate_hat

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Nystrom) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> Any:
        return _rebuild, (Nystrom, self._key, self.name, self.reference, self.slack)


class Partitioned(_Halves):
    """A partitioned Runge–Kutta method: one tableau for q, another for v, with the same nodes.

    Parameters
    ----------
    A, A_second
        Coefficients of q and of v.
    b
        Weights of both.
    name, reference
        For people.

    Examples
    --------
    >>> verlet = Partitioned([[0, 0], ["1/2", "1/2"]], [["1/2", 0], ["1/2", 0]], ["1/2", "1/2"])
    >>> verlet.order, verlet.is_symplectic, verlet.is_symmetric
    (2, True, True)
    """

    def __init__(self, A: Any, A_second: Any, b: Any, name: str = "", reference: str = "") -> None:
        self.name, self.reference = str(name), str(reference)
        self.b = _vector(b, "b", None)
        self.A, self.A_second = _matrix(A, len(self.b)), _matrix(A_second, len(self.b))
        self.slack = _largest_slack(*self.A, *self.A_second, self.b)

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.b)

    @cached_property
    def _working(self) -> tuple[list[Numbers], list[Numbers], Numbers]:
        rows, more = ([_decimals(row) for row in matrix] for matrix in (self.A, self.A_second))
        return rows, more, _decimals(self.b)

    @cached_property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """A, A_second, b and the nodes c (row sums of A) as doubles."""
        A, second, b = (np.array(_floats(x)) for x in (self.A, self.A_second, self.b))
        return A, second, b, np.array([float(sum(row)) for row in self._working[0]])

    @cached_property
    def order(self) -> int:
        """Order, over all trees of two colours, up to 6."""
        return self._highest(self._holds, HIGHEST_PARTITIONED)

    @cached_property
    def is_symplectic(self) -> bool:
        """bᵢ âᵢⱼ + bⱼ aⱼᵢ = bᵢ bⱼ."""
        A, second, b = self._working
        n = range(self.stages)
        with localcontext(prec=DIGITS + 10):
            off = [b[i] * second[i][j] + b[j] * A[j][i] - b[i] * b[j] for i in n for j in n]
        return all(self._vanishes(x, 1.0) for x in off)

    @cached_property
    def is_symmetric(self) -> bool:
        """a_(s+1−i, s+1−j) + aᵢⱼ = bⱼ, for both tableaux."""
        n = range(self.stages)
        b = self._working[2]
        with localcontext(prec=DIGITS + 10):
            off = [
                M[-1 - i][-1 - j] + M[i][j] - b[j] for M in self._working[:2] for i in n for j in n
            ]
        return all(self._vanishes(x, 1.0) for x in off)

    def _holds(self, p: int) -> bool:
        b = self._working[2]
        with localcontext(prec=DIGITS + 10):
            for root in (KICK, DRIFT):
                for tree in TWO_COLOURS.trees(p, root):
                    total = sum(x * y for x, y in zip(b, self._stages(tree)))
                    if not self._vanishes(total - Decimal(1) / _density(tree), float(p)):
                        return False
        return True

    @cached_property
    def _known(self) -> dict[ColouredTree, Numbers]:
        return {}

    def _stages(self, tree: ColouredTree) -> Numbers:
        if tree in self._known:
            return self._known[tree]
        value = [Decimal(1)] * self.stages
        for child in tree[1]:
            below = self._stages(child)
            matrix = self._working[1] if child[0] == KICK else self._working[0]
            value = [x * sum(a * k for a, k in zip(row, below)) for x, row in zip(value, matrix)]
        self._known[tree] = value
        return value

    def __repr__(self) -> str:
        return f"<Partitioned {self.name or 'unnamed'}: {self.stages} stages, order {self.order}>"

    @cached_property
    def _key(self) -> Any:
        return self.A, self.A_second, self.b

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Partitioned) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> Any:
        return _rebuild, (Partitioned, self._key, self.name, self.reference, self.slack)


def _decimals(row: Sequence[Number]) -> Numbers:
    return [to_decimal(x) for x in row]


def _density(tree: ColouredTree) -> int:
    product = TWO_COLOURS.order(tree)
    for child in tree[1]:
        product *= _density(child)
    return product


def _rebuild(kind: Any, numbers: Any, name: str, reference: str, slack: float) -> Any:
    made = kind(*numbers, name=name, reference=reference)
    made.slack = slack
    return made
