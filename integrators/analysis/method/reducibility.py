"""Reduction of a method to the stages that matter.

Theorems of stability theory speak of irreducible methods. A method can be reducible in two ways
(:cite:`hairer1996`, IV.12): by stages that the result does not depend on (Dahlquist and Jeltsch),
and by stages that always agree because their rows add up alike over groups of equal stages
(Hundsdorfer and Spijker).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import localcontext
from fractions import Fraction
from typing import Any

from ...tableau import Tableau
from ...tableau.exact import DIGITS, Number, to_decimal, uncertainty
from ...tableau.tableau import _vector
from ..exact.arithmetic import total
from .verdict import as_tableau

__all__ = ["irreducible", "without_unused_stages"]


def irreducible(method: Any) -> Tableau:
    """Return the method without unused stages and with equal stages merged.

    Parameters
    ----------
    method
        A tableau or the name of a scheme.

    Returns
    -------
    Tableau
        The tableau itself if nothing can be left out; otherwise a new one, without embedded
        weights.

    Notes
    -----
    Stages are merged only if they agree for non-autonomous equations as well, so their nodes must
    be equal.

    Examples
    --------
    A step of the explicit Euler method, written with two stages that are the same:

    >>> print(irreducible(Tableau([[], [0]], ["1/2", "1/2"])))
    0 |
    --+--
      | 1
    """
    tableau = as_tableau(method)
    keep = _used(tableau.A, tableau.b)
    A: list[list[Number]] = [[tableau.A[i][j] for j in keep] for i in keep]
    b, c = [tableau.b[i] for i in keep], [tableau.c[i] for i in keep]
    groups = _equal_stages(A, c)
    if len(groups) < len(c):
        A = [[total([A[g[0]][j] for j in h]) for h in groups] for g in groups]
        b = [total([b[j] for j in h]) for h in groups]
        c = [c[g[0]] for g in groups]
    if len(c) == tableau.stages:
        return tableau
    return Tableau(A, b, c, name=tableau.name, reference=tableau.reference, check=False)


def without_unused_stages(
    tableau: Tableau, weights: Sequence[Any] | None = None
) -> tuple[list[list[Number]], list[Number]]:
    """Return A and b restricted to the stages that the result depends on."""
    b = tableau.b if weights is None else _vector(weights, "weights", tableau.stages)
    keep = _used(tableau.A, b)
    return [[tableau.A[i][j] for j in keep] for i in keep], [b[i] for i in keep]


def _used(A: Sequence[Sequence[Number]], b: Sequence[Number]) -> list[int]:
    """Stages with a weight, and those that they depend on, however indirectly."""
    used = {i for i, x in enumerate(b) if x != 0} or {0}
    pending = list(used)
    while pending:
        row = A[pending.pop()]
        fresh = {j for j, a in enumerate(row) if a != 0} - used
        used |= fresh
        pending += fresh
    return sorted(used)


def _equal_stages(A: Sequence[Sequence[Number]], c: Sequence[Number]) -> list[list[int]]:
    """The coarsest partition into stages with equal nodes and equal row sums over each part."""
    s = len(c)
    delta = max(uncertainty(x) for x in (*c, *(a for row in A for a in row)))
    # Equality within the digits given: numbers are compared on a grid well above these digits.
    cells = 0 if delta == 0 else 2 ** max(1, min(100, -8 - math.frexp(delta)[1]))

    def key(x: Number) -> Any:
        return round(Fraction(to_decimal(x)) * cells) if cells else x

    with localcontext(prec=DIGITS + 10):
        label = _numbered([key(x) for x in c])
        while True:
            parts = range(max(label) + 1)
            sums = [
                tuple(key(total([a for j, a in enumerate(row) if label[j] == m])) for m in parts)
                for row in A
            ]
            finer = _numbered([(label[i], sums[i]) for i in range(s)])
            if max(finer) == max(label):
                return [[i for i in range(s) if label[i] == m] for m in parts]
            label = finer


def _numbered(keys: Sequence[Any]) -> list[int]:
    seen: dict[Any, int] = {}
    return [seen.setdefault(k, len(seen)) for k in keys]
