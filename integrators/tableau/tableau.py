"""Butcher tableaux: a Runge–Kutta method as data.

In the notation of the course notes (Eqs 1.20–1.22), with the stages kᵢ **including h**,

    kᵢ = h f(t + cᵢ h,  y + Σⱼ aᵢⱼ kⱼ),        y₊ = y + Σᵢ bᵢ kᵢ .

Everything else about a method (is it explicit? of which order?) follows from A, b, c and is
found here, never declared. Numbers are kept as they were given: fractions stay fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from ..notebook_html import tableau_table
from . import text as tableau_text
from .coefficients import (
    _difference,
    _finite,
    _floats,
    _matrix,
    _power,
    _short,
    _sum,
    _vector,
    _weight_difference,
)
from .exact import DIGITS, Number, to_decimal, uncertainty
from .trees import Tree, bracket, density, order, rooted_trees

__all__ = ["ContinuousExtension", "OrderCondition", "Tableau"]

MAX_ORDER = 10
"""Orders are searched for over rooted trees up to here (the 719 trees of order 10)."""


@dataclass(frozen=True)
class OrderCondition:
    """One order condition Φ(τ) = 1/γ(τ) of a tableau."""

    tree: Tree
    weight: Number
    target: Fraction
    residual: Number
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether the residual vanishes, within what the digits given can tell."""
        return abs(float(self.residual)) <= self.tolerance

    def __str__(self) -> str:
        mark = "ok" if self.holds else "FAILS"
        return (
            f"{bracket(self.tree):<14} weight {_short(self.weight):>12}  "
            f"1/γ {self.target!s:>8}  residual {float(self.residual):9.2e}  {mark}"
        )


@dataclass(frozen=True)
class ContinuousExtension:
    """Dense output y(t + θh) ≈ y + Σᵢ bᵢ(θ) kᵢ with polynomials bᵢ(θ) = Σⱼ P[i, j] θʲ⁺¹.

    Parameters
    ----------
    P
        One row per stage, the extra ones included; column j multiplies θʲ⁺¹.
    order
        Global order of the interpolant.
    A_extra, c_extra
        Additional stages that only dense output needs; a row of ``A_extra`` runs over the
        stages of the tableau and the extra stages before it.
    """

    P: NDArray[np.float64]
    order: int
    A_extra: tuple[tuple[float, ...], ...] = ()
    c_extra: tuple[float, ...] = ()


class Tableau:
    """A Runge–Kutta method, or an embedded pair of them.

    Parameters
    ----------
    A, b, c
        Coefficients: fractions, integers, strings such as "1/3" or "(3-sqrt(3))/6", or floats.
        A is square, or lower triangular with its zeros left out; c defaults to the row sums.
    b_hat
        Weights of an embedded method; its difference from b estimates the local error.
    name, reference
        For people; ``reference`` is a key of ``references.bib`` or free text.
    b_low
        Weights of a second embedded method. With it the error is measured as in DOP853,
        E₅²/√(E₅² + 0.01 E₃²) (:cite:`hairer1993`, II.10).
    dense
        A continuous extension, where one is known. ``solve`` uses it if its order is that of the
        method, and else one that it derives (:mod:`integrators.tableau.extension`).
    check
        Whether to insist that c equals the row sums of A and that b_hat adds up to 1. Turn it
        off only to study a method that breaks the rules.

    Examples
    --------
    >>> heun = Tableau([[], [1]], ["1/2", "1/2"], name="Heun")
    >>> heun.order, heun.is_explicit
    (2, True)
    >>> print(heun)
    0 |
    1 |   1
    --+--------
      | 1/2 1/2
    """

    A: tuple[tuple[Number, ...], ...]
    b: tuple[Number, ...]
    c: tuple[Number, ...]
    b_hat: tuple[Number, ...] | None
    b_low: tuple[Number, ...] | None

    def __init__(
        self,
        A: Any,
        b: Any,
        c: Any = None,
        b_hat: Any = None,
        name: str = "",
        reference: str = "",
        *,
        b_low: Any = None,
        dense: ContinuousExtension | None = None,
        check: bool = True,
    ) -> None:
        self.name = str(name)
        self.reference = str(reference)
        self.dense = dense
        self.b = _vector(b, "b", None)
        s = len(self.b)
        if s == 0:
            raise ValueError("a tableau needs at least one stage; b is empty")
        self.A = _matrix(A, s)
        self.b_hat = None if b_hat is None else _vector(b_hat, "b_hat", s)
        self.b_low = None if b_low is None else _vector(b_low, "b_low", s)
        if c is None:
            self.c = tuple(_finite(_sum(row), f"c[{i}]") for i, row in enumerate(self.A, 1))
        else:
            self.c = _vector(c, "c", s)
            if check:
                self._check_row_sums()
        if check and self.b_hat is not None:
            self._check_embedded_weights(self.b_hat)

    def _check_embedded_weights(self, b_hat: tuple[Number, ...]) -> None:
        total = _sum(b_hat)
        slack = sum(abs(float(b)) * uncertainty(b) for b in b_hat)
        if abs(_difference(total, Fraction(1))) > 4 * slack:
            raise ValueError(
                f"b_hat adds up to {_short(total)} in place of 1. The difference of the two "
                "results is the estimate of the error; with such weights it does not vanish faster "
                "than the step itself, and steps become needlessly short. Look for a wrong sign or "
                "number in b_hat (it holds the weights of the second method, not their difference "
                "from b), or pass check=False to keep the tableau as it is"
            )

    def _check_row_sums(self) -> None:
        for i, (row, ci) in enumerate(zip(self.A, self.c), start=1):
            total = _sum(row)
            slack = sum(abs(float(a)) * uncertainty(a) for a in (*row, ci))
            if abs(_difference(total, ci)) > 4 * slack:
                entries = ", ".join(_short(a) for a in row if a != 0) or "0"
                raise ValueError(
                    f"row {i} of A is ({entries}) and adds up to {_short(total)}, but "
                    f"c[{i}] = {_short(ci)}. A stage is evaluated at time t + c·h, so the row "
                    f"sum must equal c; look for a wrong sign or number in that row, or pass "
                    f"check=False to keep the tableau as it is"
                )

    # ---------------------------------------------------------------- numbers as arrays

    @property
    def stages(self) -> int:
        """Number of stages s."""
        return len(self.b)

    @cached_property
    def is_exact(self) -> bool:
        """Whether every coefficient is a fraction."""
        return all(isinstance(x, Fraction) for x in self._coefficients())

    def _coefficients(self) -> list[Number]:
        extra = [*(self.b_hat or ()), *(self.b_low or ())]
        return [*(a for row in self.A for a in row), *self.b, *self.c, *extra]

    @cached_property
    def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """(A, b, c) as read-only arrays of doubles."""
        result = (_floats(self.A), _floats(self.b), _floats(self.c))
        return result

    @cached_property
    def error_weights(self) -> NDArray[np.float64] | None:
        """b − b_hat, subtracted before rounding; None without an embedded method."""
        return None if self.b_hat is None else _weight_difference(self.b, self.b_hat)

    @cached_property
    def low_error_weights(self) -> NDArray[np.float64] | None:
        """b − b_low, likewise."""
        return None if self.b_low is None else _weight_difference(self.b, self.b_low)

    # ---------------------------------------------------------------- structure

    @cached_property
    def is_explicit(self) -> bool:
        """a_ij = 0 for j ≥ i: each stage needs only earlier ones."""
        return all(a == 0 for i, row in enumerate(self.A) for a in row[i:])

    @cached_property
    def is_dirk(self) -> bool:
        """Diagonally implicit: a_ij = 0 for j > i, and not explicit."""
        below = all(a == 0 for i, row in enumerate(self.A) for a in row[i + 1 :])
        return below and not self.is_explicit

    @cached_property
    def is_sdirk(self) -> bool:
        """Diagonally implicit with one value on the whole diagonal."""
        return self.is_dirk and len({row[i] for i, row in enumerate(self.A)}) == 1

    @cached_property
    def is_esdirk(self) -> bool:
        """Explicit first stage, then one value on the diagonal."""
        diagonal = [row[i] for i, row in enumerate(self.A)]
        return self.is_dirk and diagonal[0] == 0 and len(set(diagonal[1:])) == 1

    @cached_property
    def is_fully_implicit(self) -> bool:
        """Some stage depends on a later one."""
        return not (self.is_explicit or self.is_dirk)

    @cached_property
    def is_stiffly_accurate(self) -> bool:
        """The last row of A is b: the new value is the last stage."""
        return self.A[-1] == self.b

    @cached_property
    def fsal(self) -> bool:
        """First same as last: the last stage is f at the new point and serves the next step."""
        first_is_explicit = all(a == 0 for a in self.A[0])
        return (
            self.stages > 1 and first_is_explicit and self.is_stiffly_accurate and self.c[-1] == 1
        )

    @cached_property
    def is_confluent(self) -> bool:
        """Whether two nodes coincide."""
        return len(set(self.c)) < self.stages

    @property
    def kind(self) -> str:
        """One word: explicit, SDIRK, ESDIRK, DIRK or fully implicit."""
        if self.is_explicit:
            return "explicit"
        if self.is_sdirk:
            return "SDIRK" if self.stages > 1 else "implicit"
        if self.is_esdirk:
            return "ESDIRK"
        return "DIRK" if self.is_dirk else "fully implicit"

    # ---------------------------------------------------------------- order

    @cached_property
    def order(self) -> int:
        """Order of the method, found by order conditions (0 if Σb ≠ 1)."""
        return self._find_order(self.b)

    @cached_property
    def embedded_order(self) -> int | None:
        """Order of the embedded method, or None."""
        return None if self.b_hat is None else self._find_order(self.b_hat)

    def order_conditions(
        self, p: int, weights: Sequence[Any] | None = None
    ) -> list[OrderCondition]:
        """Return the order conditions of exactly order p, one for each rooted tree.

        Parameters
        ----------
        p
            Number of vertices of the trees.
        weights
            Weights to use in place of b, for instance ``b_hat``.

        Notes
        -----
        Where c differs from the row sums of A (``check=False``), a leaf can stand for the time
        or for the state, and the conditions are listed for both.
        """
        b = self.b if weights is None else _vector(weights, "weights", self.stages)
        return [self._condition(tree, b, leaf) for leaf in self._leaves for tree in rooted_trees(p)]

    @cached_property
    def _leaves(self) -> tuple[Fraction, ...]:
        """How leaves are weighted: (1−λ)·(row sum) + λ·c; one λ is enough when they are equal.

        With unequal ones, the conditions must hold for every mixture of time and state leaves;
        a third value catches those that hold for the pure ones alone.
        """
        consistent = all(
            abs(_difference(_sum(row), ci)) <= 4 * self._relative_uncertainty * self.stages
            for row, ci in zip(self.A, self.c)
        )
        return (Fraction(0),) if consistent else (Fraction(0), Fraction(1), Fraction(1, 3))

    def _find_order(self, b: tuple[Number, ...]) -> int:
        found = self._order_by_assumptions(b) if len(self._leaves) == 1 else None
        if found is not None:
            return found
        for p in range(1, MAX_ORDER + 1):
            if not all(
                self._condition(t, b, w).holds for w in self._leaves for t in rooted_trees(p)
            ):
                return p - 1
        return MAX_ORDER

    def _order_by_assumptions(self, b: tuple[Number, ...]) -> int | None:
        """Butcher's theorem: B(p), C(η), D(ζ) with p ≤ η+ζ+1 and p ≤ 2η+2 imply order p.

        It settles Gauss, Radau and Lobatto at once, of any order. When B(p+1) fails the order is
        exactly p; otherwise the theorem decides nothing and None is returned.
        """
        quadrature, eta, zeta = self.simplifying_assumptions(b)
        proved = min(quadrature, eta + zeta + 1, 2 * eta + 2)
        return quadrature if proved == quadrature and quadrature > 0 else None

    def simplifying_assumptions(self, weights: Sequence[Any] | None = None) -> tuple[int, int, int]:
        """Return the largest p, η, ζ for which B(p), C(η) and D(ζ) hold.

        Notes
        -----
        B(p): Σ bᵢ cᵢᵏ⁻¹ = 1/k; C(η): Σⱼ aᵢⱼ cⱼᵏ⁻¹ = cᵢᵏ/k; D(ζ): Σᵢ bᵢ cᵢᵏ⁻¹ aᵢⱼ = bⱼ(1−cⱼᵏ)/k
        (:cite:`hairer1996`, IV.5). C(η) also says that the stage order is η.
        """
        if weights is None:
            return self._own_assumptions
        return self._assumptions(_vector(weights, "weights", self.stages))

    @cached_property
    def _own_assumptions(self) -> tuple[int, int, int]:
        return self._assumptions(self.b)

    def _assumptions(self, weights: Sequence[Any]) -> tuple[int, int, int]:
        A, c = self._working
        b = self._converted(weights)
        delta = self._relative_uncertainty
        s = self.stages

        def vanishes(residual: Any, magnitude: Any) -> bool:
            return abs(float(residual)) <= 8 * s * delta * float(magnitude)

        def largest(holds: Any) -> int:
            k = 1
            while k <= 2 * s + 1 and holds(k):
                k += 1
            return k - 1

        def one_b(k: int) -> bool:
            terms = [b[i] * _power(c[i], k - 1) for i in range(s)]
            return vanishes(sum(terms) - self._rational(1, k), k * sum(map(abs, terms)))

        def all_c(k: int) -> bool:
            for i in range(s):
                terms = [A[i][j] * _power(c[j], k - 1) for j in range(s)]
                target = c[i] ** k / k
                if not vanishes(sum(terms) - target, k * (sum(map(abs, terms)) + abs(target))):
                    return False
            return True

        def all_d(k: int) -> bool:
            for j in range(s):
                terms = [b[i] * _power(c[i], k - 1) * A[i][j] for i in range(s)]
                target = b[j] * (1 - c[j] ** k) / k
                size = sum(map(abs, terms)) + abs(b[j]) * (1 + abs(c[j]) ** k) / k
                if not vanishes(sum(terms) - target, k * size):
                    return False
            return True

        with localcontext(prec=DIGITS + 10):
            return largest(one_b), largest(all_c), largest(all_d)

    @cached_property
    def _relative_uncertainty(self) -> float:
        # Row sums are left out: a sum that cancels has few digits, but no less is known of it.
        derived = {i for i, row in enumerate(self.A) if _sum(row) == self.c[i]}
        given = [x for i, x in enumerate(self.c) if i not in derived]
        extra = [*(self.b_hat or ()), *(self.b_low or ())]
        numbers = [*(a for row in self.A for a in row), *self.b, *given, *extra]
        return max((uncertainty(x) for x in numbers), default=0.0)

    @cached_property
    def _working(self) -> tuple[list[list[Any]], list[Any]]:
        """A and c in the arithmetic that decides: fractions, or 60-digit decimals."""
        return [self._converted(row) for row in self.A], self._converted(self.c)

    def _converted(self, numbers: Sequence[Number]) -> list[Any]:
        return list(numbers) if self.is_exact else [to_decimal(x) for x in numbers]

    def _rational(self, p: int, q: int) -> Fraction | Decimal:
        return Fraction(p, q) if self.is_exact else Decimal(p) / Decimal(q)

    @cached_property
    def _stage_weights(self) -> dict[tuple[Tree, Fraction], tuple[list[Any], NDArray[np.float64]]]:
        return {}

    def _stage_weight(self, tree: Tree, leaf: Fraction) -> tuple[list[Any], NDArray[np.float64]]:
        """Elementary weights of each stage, and the same with absolute values of A.

        The second bounds how much an uncertain last digit can move the first.
        """
        if (known := self._stage_weights.get((tree, leaf))) is not None:
            return known
        A, c = self._working
        magnitude_A = np.abs(self.arrays[0])
        value, size = self._converted([Fraction(1)] * self.stages), np.ones(self.stages)
        share = self._rational(leaf.numerator, leaf.denominator)
        for child in tree:
            below, below_size = self._stage_weight(child, leaf)
            for i, row in enumerate(A):
                inner = sum(a * x for a, x in zip(row, below) if a != 0)
                if not child and leaf:
                    inner += share * (c[i] - inner)
                value[i] *= inner
            size = size * (magnitude_A @ below_size)
        self._stage_weights[tree, leaf] = value, size
        return value, size

    def _condition(self, tree: Tree, b: tuple[Number, ...], leaf: Fraction) -> OrderCondition:
        with localcontext(prec=DIGITS + 10):
            stage, size = self._stage_weight(tree, leaf)
            weights = self._converted(b)
            weight = sum(bi * x for bi, x in zip(weights, stage) if bi != 0)
            residual = weight - self._rational(1, density(tree))
        spread = float(np.abs(_floats(b)) @ size)
        tolerance = 4 * order(tree) * self._relative_uncertainty * spread
        return OrderCondition(tree, weight, Fraction(1, density(tree)), residual, tolerance)

    # ---------------------------------------------------------------- reading and writing

    def __repr__(self) -> str:
        label = self.name or "unnamed"
        return f"<Tableau {label}: {self.stages} stages, {self.kind}>"

    def __str__(self) -> str:
        return tableau_text.table(self)

    def _repr_html_(self) -> str:
        return tableau_table(self, _short)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {tableau_text.latex(self)}$"

    def to_latex(self) -> str:
        """Return a LaTeX ``array`` of the tableau."""
        return tableau_text.latex(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; fractions and long decimals become strings, so nothing is lost."""
        return tableau_text.plain_data(self)

    def save(self, path: str | Path) -> None:
        """Write the tableau to a ``.json`` or ``.toml`` file."""
        tableau_text.write(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, check: bool = True) -> Tableau:
        """Read a tableau written by :meth:`save`, or by hand in the same form.

        Raises
        ------
        FileError
            With the file's name and what is wrong with it.
        """
        try:
            return cls(**tableau_text.read(Path(path)), check=check)
        except (TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
            reason = str(error) if not isinstance(error, RecursionError) else "nested too deep"
            raise FileError(path, reason) from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tableau):
            return NotImplemented
        mine = (self.A, self.b, self.c, self.b_hat, self.b_low)
        return mine == (other.A, other.b, other.c, other.b_hat, other.b_low)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.A, self.b, self.c, self.b_hat, self.b_low))

    def __reduce__(self) -> Any:
        return _rebuild, (self.to_dict(), self.dense)


def _rebuild(data: dict[str, Any], dense: ContinuousExtension | None) -> Tableau:
    return Tableau(**data, dense=dense, check=False)
