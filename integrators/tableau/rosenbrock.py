"""Rosenbrock methods as data: coefficients, and their order conditions over coloured trees.

A step of such a method for M y' = f(t, y) solves linear systems only, all with one matrix
(:cite:`hairer1996`, IV.7). The stages, which include h, are

    M kᵢ = h f(t + αᵢh, y + Σⱼ αᵢⱼ kⱼ) + h J Σⱼ γᵢⱼ kⱼ + γᵢ h² ∂f/∂t,      y₊ = y + Σᵢ bᵢ kᵢ,

with J = ∂f/∂y at (t, y), the sums over j < i (for γᵢⱼ: j ≤ i), and αᵢ, γᵢ their row sums. All γᵢᵢ
are the same γ. With βᵢⱼ = αᵢⱼ + γᵢⱼ, a vertex with one branch is weighted with β in the order
conditions, one with several with α.

- W-methods keep their order with *any* matrix in place of J: a Jacobian of an earlier step, for
  one. Their trees have a second kind of vertices, for that matrix.
- For the algebraic components z of an equation of index 1, 0 = g(y, z), there are vertices for g.
  An order p asks for the conditions of y up to p and for those of z up to p − 1: the errors of z do
  not add up if the method damps them, |R(∞)| < 1 (:cite:`roche1988`).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .coefficients import _floats, _matrix, _vector
from .coloured import ColouredTree, Family
from .exact import DIGITS, Number, parse, to_decimal, uncertainty
from .tableau import Tableau
from .trees import Tree, rooted_trees

__all__ = ["CONSTRAINED", "WITH_MATRIX", "Rosenbrock", "exact_weight"]

Array = NDArray[np.float64]
Numbers = list[Decimal]

HIGHEST_ORDER = 6  # that is looked for; the trees of order 6 with constraints are 12,000

F, G = 0, 1  # vertices of f and, in constrained problems, of the constraint
CONSTRAINED = Family([1, 0], lambda colour, below: colour == F or below == [F] or len(below) > 1)
"""Trees of y' = f(y, z), 0 = g(y, z); ∂g/∂z is solved with, so no vertex stands for it alone."""

MATRIX = 1  # vertices of the matrix in place of J
WITH_MATRIX = Family([1, 1], lambda colour, below: colour == F or len(below) == 1)


class Rosenbrock:
    """A Rosenbrock method, or an embedded pair.

    Parameters
    ----------
    alpha
        αᵢⱼ, strictly lower triangular; zeros may be left out, as in a :class:`Tableau`.
    gamma
        γᵢⱼ, lower triangular with the same number all along the diagonal.
    b, b_hat
        Weights of the method and of the embedded one.
    name, reference
        For people.
    slack
        Relative uncertainty of the coefficients; found from the digits that are given, if it is
        None.

    Examples
    --------
    >>> euler = Rosenbrock([[]], [[1]], [1], name="linearly implicit Euler")
    >>> euler.order, euler.w_order, euler.is_stiffly_accurate
    (1, 1, False)
    """

    alpha: tuple[tuple[Number, ...], ...]
    gamma: tuple[tuple[Number, ...], ...]
    b: tuple[Number, ...]
    b_hat: tuple[Number, ...] | None

    def __init__(
        self,
        alpha: Any,
        gamma: Any,
        b: Any,
        b_hat: Any = None,
        name: str = "",
        reference: str = "",
        *,
        slack: float | None = None,
    ) -> None:
        self.name, self.reference = str(name), str(reference)
        self.b = _vector(b, "b", None)
        s = len(self.b)
        if s == 0:
            raise ValueError("a Rosenbrock method needs at least one stage; b is empty")
        self.alpha, self.gamma = _matrix(alpha, s), _matrix(gamma, s)
        self.b_hat = None if b_hat is None else _vector(b_hat, "b_hat", s)
        for label, matrix, first in (("alpha", self.alpha, 0), ("gamma", self.gamma, 1)):
            if any(x != 0 for i, row in enumerate(matrix) for x in row[i + first :]):
                below = "below the diagonal" if first == 0 else "on and below the diagonal"
                raise ValueError(f"{label} may have entries {below} only")
        diagonal = [row[i] for i, row in enumerate(self.gamma)]
        if diagonal[0] == 0 or any(abs(float(x - diagonal[0])) > 1e-14 for x in diagonal):  # type: ignore[operator]
            raise ValueError(
                "the diagonal of gamma must be the same number ≠ 0 in all rows, so that one "
                f"matrix serves all stages; got {[float(x) for x in diagonal]}"
            )
        given = [x for row in (*self.alpha, *self.gamma, self.b, self.b_hat or ()) for x in row]
        self.slack = max(map(uncertainty, given)) if slack is None else float(slack)

    @classmethod
    def transformed(
        cls,
        A: Any,
        C: Any,
        gamma: Any,
        m: Any,
        m_hat: Any = None,
        name: str = "",
        reference: str = "",
    ) -> Rosenbrock:
        """Return the method whose coefficients are given as programs use them.

        With u = Γk in place of the stages, A = αΓ⁻¹, C = 1/γ − Γ⁻¹, m = bΓ⁻¹: no product with J is
        left (:cite:`hairer1996`, IV.7.25).
        """
        m = _vector(m, "m", None)
        s = len(m)
        A, C, diagonal = _matrix(A, s), _matrix(C, s), parse(gamma)
        m_hat = None if m_hat is None else _vector(m_hat, "m_hat", s)
        given = [x for row in (*A, *C, (diagonal,), m, m_hat or ()) for x in row]
        with localcontext(prec=DIGITS + 10):
            g = to_decimal(diagonal)
            full = _inverse_of_shifted([_decimals(row) for row in C], g)
            alpha = [_times(_decimals(row), full) for row in A]
            b = _times(_decimals(m), full)
            b_hat = None if m_hat is None else _times(_decimals(m_hat), full)
        slack = max(map(uncertainty, given))
        return cls(alpha, full, b, b_hat, name, reference, slack=slack)

    # ---------------------------------------------------------------- numbers

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.b)

    @cached_property
    def _working(self) -> tuple[list[Numbers], list[Numbers], list[Numbers]]:
        """α, Γ and β as decimals."""
        with localcontext(prec=DIGITS + 10):
            alpha = [_decimals(row) for row in self.alpha]
            gamma = [_decimals(row) for row in self.gamma]
            beta = [[a + g for a, g in zip(*rows)] for rows in zip(alpha, gamma)]
        return alpha, gamma, beta

    @cached_property
    def computed(self) -> dict[str, Array]:
        """A, C, m, e = m − m_hat of the transformed form, γ, and the row sums c and d."""
        alpha, gamma, _ = self._working
        with localcontext(prec=DIGITS + 10):
            inverse = _inverse(gamma)
            A = [_times(row, inverse) for row in alpha]
            shift = 1 / gamma[0][0]
            C = [
                [(shift if i == j else 0) - x for j, x in enumerate(row)]
                for i, row in enumerate(inverse)
            ]
            m = _times(_decimals(self.b), inverse)
            low = m if self.b_hat is None else _times(_decimals(self.b_hat), inverse)
            e = [x - y for x, y in zip(m, low)]
            c, d = [sum(row) for row in alpha], [sum(row) for row in gamma]
        vectors = {"m": m, "e": e, "c": c, "d": d, "gamma": [gamma[0][0]]}
        found = {key: np.array(_floats(value)) for key, value in vectors.items()}
        for key, rows in (("A", A), ("C", C), ("Gamma", gamma)):
            found[key] = np.array(_floats(rows))
        for key in ("A", "C", "m", "e", "d"):  # zeros that came out as 1e-16
            found[key][np.abs(found[key]) < 64 * self.slack] = 0.0
        for node in (0.0, 1.0):
            found["c"][np.abs(found["c"] - node) < 64 * self.slack] = node
        return found

    @cached_property
    def linear(self) -> Tableau:
        """The tableau (β, b), whose stability function and behaviour on y' = Ay are the same.

        Its numbers have the digits that are known of them, so that an analysis can tell what
        they leave open.
        """
        _, _, beta = self._working
        known = DIGITS if self.slack == 0.0 else min(DIGITS, int(-np.log10(self.slack)) - 1)
        with localcontext(prec=known):
            rows = [[+x for x in row] for row in beta]
            b = [+to_decimal(x) for x in self.b]
            b_hat = None if self.b_hat is None else [+to_decimal(x) for x in self.b_hat]
        if (last := self._accurate_stage) is not None:
            b = rows[last]
        return Tableau(rows, b, None, b_hat, self.name, self.reference, check=False)

    @property
    def is_stiffly_accurate(self) -> bool:
        """Whether a stage that lies at the end of the step has b for its row of β."""
        return self._accurate_stage is not None

    @cached_property
    def _accurate_stage(self) -> int | None:
        alpha, _, beta = self._working
        b, near = _decimals(self.b), max(64 * self.slack, 1e-14)
        for i, (row, line) in enumerate(zip(alpha, beta)):
            off = max(abs(float(x - y)) for x, y in zip(line, b))
            if off <= near and abs(float(sum(row)) - 1.0) <= near:
                return i
        return None

    # ---------------------------------------------------------------- order

    @cached_property
    def order(self) -> int:
        """Order with the exact Jacobian."""
        return self._plain_order(self.b)

    @cached_property
    def embedded_order(self) -> int | None:
        """Order of the embedded method, or None."""
        return None if self.b_hat is None else self._plain_order(self.b_hat)

    @cached_property
    def w_order(self) -> int:
        """Order with any matrix in place of the Jacobian."""
        p = 0
        while p < HIGHEST_ORDER and self.residual(WITH_MATRIX, p + 1) <= 1:
            p += 1
        return p

    @cached_property
    def dae_order(self) -> int:
        """Order on equations of index 1; 0 if the method does not damp algebraic components."""
        p = 0
        while (
            p < self.order
            and self.residual(CONSTRAINED, p + 1, F) <= 1
            and (p == 0 or self.residual(CONSTRAINED, p, G) <= 1)
        ):
            p += 1
        return p if abs(self.at_infinity) < 1 else 0

    @cached_property
    def at_infinity(self) -> float:
        """R(∞) = 1 − bᵀ β⁻¹ 1."""
        _, _, beta = self._working
        with localcontext(prec=DIGITS + 10):
            ones = [Decimal(1)] * self.stages
            solved = _solved(beta, ones)
            found = float(1 - sum(x * y for x, y in zip(_decimals(self.b), solved)))
        return 0.0 if self.is_stiffly_accurate else found

    def residual(self, family: Family, order: int, root: int | None = None) -> float:
        """Largest residual of the conditions of an order, 1 being what the digits cannot tell."""
        roots = range(len(family.costs)) if root is None else [root]
        trees = [tree for colour in roots for tree in family.trees(order, colour)]
        found = [self.condition(family, tree) for tree in trees]
        return max((abs(off) / slack for off, slack in found), default=0.0)

    def condition(
        self, family: Family, tree: ColouredTree, weights: Sequence[Number] | None = None
    ) -> tuple[float, float]:
        """Residual of one order condition, and how large it may be by the digits given.

        Examples
        --------
        >>> from integrators import catalogue
        >>> method = catalogue.entry("ROS3P").method
        >>> off, allowed = method.condition(CONSTRAINED, (0, ((1, ((0, ()),)),)))
        >>> off <= allowed
        True
        """
        b = _decimals(self.b if weights is None else weights)
        with localcontext(prec=DIGITS + 10):
            stage, size = self._stage(family, tree)
            off = sum(x * y for x, y in zip(b, stage)) - exact_weight(family, tree)
        spread = float(np.abs(_floats(b)) @ size)
        delta = max(self.slack, 1e-55)
        return abs(float(off)), 4 * max(1, family.order(tree)) * delta * max(spread, 1.0)

    def _plain_order(self, weights: Sequence[Number]) -> int:
        p = 0
        while p < HIGHEST_ORDER:
            found = [
                self.condition(CONSTRAINED, _of_f(tree), weights) for tree in rooted_trees(p + 1)
            ]
            if any(off > allowed for off, allowed in found):
                return p
            p += 1
        return p

    @cached_property
    def _stages(self) -> dict[tuple[int, ColouredTree], tuple[Numbers, Array]]:
        return {}

    def _stage(self, family: Family, tree: ColouredTree) -> tuple[Numbers, Array]:
        """How the stages expand, kᵢ(tree), and a bound with the moduli of all coefficients."""
        key = (id(family), tree)
        if key not in self._stages:
            with localcontext(prec=DIGITS + 10):  # kept with all digits, whoever asks first
                self._stages[key] = self._new_stage(family, tree)
        return self._stages[key]

    def _new_stage(self, family: Family, tree: ColouredTree) -> tuple[Numbers, Array]:
        alpha, gamma, beta = self._working
        colour, children = tree
        matrix = alpha
        if len(children) == 1:
            if family is WITH_MATRIX:
                matrix = gamma if colour == MATRIX else alpha
            else:
                matrix = beta
                if colour == G:  # β is applied on both sides
                    return self._stage(family, children[0])
        sizes = np.abs(_floats(matrix))
        value, size = [Decimal(1)] * self.stages, np.ones(self.stages)
        for child in children:
            below, below_size = self._stage(family, child)
            value = [x * sum(a * k for a, k in zip(row, below)) for x, row in zip(value, matrix)]
            size = size * (sizes @ below_size)
        if colour == G and family is CONSTRAINED:
            value = _solved(beta, value)
            size = np.abs(np.linalg.inv(_floats(beta))) @ size
        return value, size

    def __repr__(self) -> str:
        pair = "" if self.embedded_order is None else f"({self.embedded_order})"
        label = self.name or "unnamed"
        return f"<Rosenbrock {label}: {self.stages} stages, order {self.order}{pair}>"

    def __str__(self) -> str:
        rows = [
            f"stages {self.stages}, γ = {float(self.gamma[0][0]):.6g}, order {self.order}"
            + ("" if self.embedded_order is None else f", embedded order {self.embedded_order}"),
            f"order {self.w_order} with any matrix for the Jacobian, "
            f"{self.dae_order} on equations of index 1; R(∞) = {self.at_infinity:.4g}",
        ]
        return "\n".join(rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rosenbrock):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> Any:
        return self.alpha, self.gamma, self.b, self.b_hat

    def __reduce__(self) -> Any:
        rest = (self.alpha, self.gamma, self.b, self.b_hat, self.name, self.reference)
        return _rebuild, (*rest, self.slack)


def exact_weight(family: Family, tree: ColouredTree) -> Decimal:
    """Weight of a tree in the exact solution over a step of length 1."""
    colour, children = tree
    if family is WITH_MATRIX and colour == MATRIX:
        return Decimal(0)
    product = Decimal(1)
    for child in children:
        product *= exact_weight(family, child)
    return product / family.order(tree) if family.costs[colour] else product


def _of_f(tree: Tree) -> ColouredTree:
    """A plain tree, with all vertices those of f."""
    return (F, tuple(_of_f(child) for child in tree))


def _rebuild(*given: Any) -> Rosenbrock:
    return Rosenbrock(*given[:-1], slack=given[-1])


# -------------------------------------------------------------------- small triangular matrices


def _decimals(row: Sequence[Number]) -> Numbers:
    return [to_decimal(x) for x in row]


def _times(row: Sequence[Decimal], matrix: Sequence[Sequence[Decimal]]) -> Numbers:
    """row · matrix."""
    columns = range(len(matrix))
    return [sum((x * line[j] for x, line in zip(row, matrix)), Decimal(0)) for j in columns]


def _solved(lower: Sequence[Sequence[Decimal]], right: Sequence[Decimal]) -> Numbers:
    """lower⁻¹ · right."""
    found: Numbers = []
    for row, value in zip(lower, right):
        rest = value - sum((a * x for a, x in zip(row, found)), Decimal(0))
        found.append(rest / row[len(found)])
    return found


def _inverse(lower: Sequence[Sequence[Decimal]]) -> list[Numbers]:
    n = len(lower)
    units = [[Decimal(int(i == j)) for i in range(n)] for j in range(n)]
    columns = [_solved(lower, unit) for unit in units]
    return [list(row) for row in zip(*columns)]


def _inverse_of_shifted(C: list[Numbers], gamma: Decimal) -> list[Numbers]:
    """Γ = (1/γ − C)⁻¹."""
    shifted = [[-x for x in row] for row in C]
    for i, row in enumerate(shifted):
        row[i] += 1 / gamma
    return _inverse(shifted)
