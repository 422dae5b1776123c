"""How many operations an algorithm takes on a model, counted, beside published figures (§10.3).

:func:`cost` runs the kernel of an algorithm on symbols and counts what is left after
simplification: zeros in placements and inertias cost nothing, so that a count is that of code made
for this very model (§10.4). :func:`published_cost` has Table 10.1, the cost of the best hand-made
versions for chains of revolute joints with general parameters; :func:`branched_cost` Eq 10.12 for
trees of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...checks import one_of
from ..storage.workspace import HAVE_FORCES
from ..trees.crba import crba_kernel
from ..trees.factor import ltdl_kernel
from ..trees.factored import factored_kernel, is_shallow
from ..with_elements import forward_dynamics, inverse_dynamics

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["ALGORITHMS", "PUBLISHED", "Cost", "branched_cost", "cost", "published_cost"]


class Cost(NamedTuple):
    """Operations of one evaluation, as the book counts them.

    `multiplications` include divisions, `additions` subtractions; `functions` are sines, cosines
    and roots, which the book leaves out of its sums, and so does `total`.
    """

    multiplications: int
    additions: int
    functions: int = 0

    @property
    def total(self) -> int:
        """Multiplications and additions."""
        return self.multiplications + self.additions

    def __str__(self) -> str:
        functions = f" and {self.functions} functions" if self.functions else ""
        return f"{self.multiplications}m + {self.additions}a = {self.total}{functions}"


def _lower(w: Any) -> Any:
    n = w.H.shape[0]
    return np.array([w.H[i, j] for i in range(n) for j in range(i + 1)])


def _inverse_dynamics(w: Any) -> Any:
    inverse_dynamics(w)
    return w.tau


def _inertia_matrix(w: Any) -> Any:
    crba_kernel(w)
    return _lower(w)


def _articulated(w: Any) -> Any:
    forward_dynamics(w)
    return w.a_q


def _through_factors(w: Any) -> Any:
    factored_kernel(w)
    return w.a_q


def _shortest(w: Any) -> Any:
    return (_through_factors if is_shallow(w.parent_v) else _articulated)(w)


#: Algorithms by name: what runs on a workspace of symbols, and what it is.
ALGORITHMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "rnea": (_inverse_dynamics, "inverse dynamics, `ID`"),
    "crba": (_inertia_matrix, "inertia matrix H"),
    "aba": (_articulated, "forward dynamics by articulated bodies"),
    "factored": (_through_factors, "forward dynamics through H and its factors"),
    "fd": (_shortest, "whichever of the two traced problems use"),
}


def cost(model: Model, algorithm: str = "fd") -> Cost:
    """Operations that an algorithm takes on a model, counted on its traced kernel.

    Parameters
    ----------
    model
        Loops are cut open; springs, dampers and stops count.
    algorithm
        "rnea", "crba", "aba", "factored" (H and its factors), "fd" (the shorter of the two, as in
        `as_ivp`), or "factorisation" (H = LᵀDL and one solution with a given H).

    Examples
    --------
    >>> from multibody import mechanisms
    >>> print(cost(mechanisms.pendulum(), "fd"))
    1m + 1a = 2 and 1 functions
    """
    one_of(algorithm, "algorithm", (*ALGORITHMS, "factorisation"))
    kept = model.tree.traced
    key = f"cost {algorithm}"
    if key not in kept:
        kept[key] = (
            _factorisation(model) if algorithm == "factorisation" else _count(model, algorithm)
        )
    found: Cost = kept[key]
    return found


def _count(model: Model, algorithm: str) -> Cost:
    from integrators.tracing import trace

    run = ALGORITHMS[algorithm][0]

    def outputs(t: Any, q: Any, v: Any, given: Any) -> Any:
        w = model.tree.symbolic()
        w.t[0] = t
        w.q[:], w.v[:], w.tau[:], w.a_q[:] = q, v, given, given
        w.switches[HAVE_FORCES] = int(len(model.springs) > 0)
        return run(w)

    return _summed(trace(outputs, (), model.nq, model.nv, model.nv).operations())


def _factorisation(model: Model) -> Cost:
    """H = LᵀDL along the tree and one solution, with H given (Tables 6.3 and 6.5)."""
    from integrators.tracing import trace

    parent = model.tree.arrays["parent_v"]
    n = model.nv
    places = []
    for i in range(n):
        j = i
        while j >= 0:
            places.append((i, j))
            j = int(parent[j])

    def outputs(entries: Any, b: Any) -> Any:
        H, x = np.zeros((n, n), dtype=object), np.array(b, dtype=object)
        for (i, j), value in zip(places, entries):
            H[i, j] = value
        ltdl_kernel(H, parent)
        for i in range(n - 1, -1, -1):  # L⁻ᵀ, D⁻¹, L⁻¹
            j = parent[i]
            while j >= 0:
                x[j] = x[j] - H[i, j] * x[i]
                j = parent[j]
        for i in range(n):
            x[i] = x[i] / H[i, i]
            j = parent[i]
            while j >= 0:
                x[i] = x[i] - H[i, j] * x[j]
                j = parent[j]
        return x

    return _summed(trace(outputs, len(places), n).operations())


def _summed(operations: dict[str, int]) -> Cost:
    m = operations.get("mul", 0) + operations.get("div", 0)
    a = operations.get("add", 0) + operations.get("sub", 0)
    return Cost(m, a, operations["total"] - m - a - operations.get("neg", 0))


# ---------------------------------------------------------------------- published figures

#: Table 10.1: coefficients of n³, n², n, 1 of multiplications and additions, and their source.
PUBLISHED: dict[str, list[tuple[tuple[Fraction, ...], tuple[Fraction, ...], str]]] = {}


def _enter(algorithm: str, m: str, a: str, source: str) -> None:
    rows = [tuple(map(Fraction, text.split())) for text in (m, a)]
    PUBLISHED.setdefault(algorithm, []).append((rows[0], rows[1], source))


_enter("rnea", "0 0 93 -108", "0 0 81 -100", "Balafoutis and Patel 1991")
_enter("rnea", "0 0 93 -69", "0 0 81 -66", "Balafoutis et al. 1988")
_enter("rnea", "0 0 130 -68", "0 0 101 -56", "Featherstone 1987")
_enter("rnea", "0 0 150 -48", "0 0 131 -48", "Hollerbach 1980")
_enter("crba", "0 10 22 -32", "0 6 37 -43", "Featherstone 2005, Eq 10.3")
_enter("crba", "0 10 31 -41", "0 6 40 -46", "Featherstone 1987")
_enter("crba", "0 10 41 -51", "0 6 52 -58", "Lilly and Orin 1991")
_enter("crba", "0 11 11 -42", "0 11/2 65/2 -54", "Balafoutis and Patel 1989")
_enter("crba", "0 12 56 -27", "0 7 67 -53", "Walker and Orin 1982")
_enter("factorisation", "1/6 3/2 -2/3 0", "1/6 1 -7/6 0", "Table 6.6")
_enter("aba", "0 0 224 -259", "0 0 205 -248", "McMillan and Orin 1995")
_enter("aba", "0 0 250 -222", "0 0 220 -198", "Brandl et al. 1988")
_enter("aba", "0 0 300 -267", "0 0 279 -259", "Featherstone 1987")


def published_cost(algorithm: str, n: int, version: int = 0) -> Cost:
    """Published cost for an unbranched chain of n revolute joints with general parameters.

    Parameters
    ----------
    algorithm
        "rnea", "crba", "factorisation", "aba", or "factored", the sum of the first three.
    n
        Number of joints, at least 2.
    version
        Row of Table 10.1 for this algorithm; 0 is the cheapest for long chains.

    Examples
    --------
    >>> print(published_cost("factored", 8), published_cost("aba", 8), sep="; ")
    1596m + 1325a = 2921; 1533m + 1392a = 2925
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2:
        raise ValueError(f"n: expected a whole number of joints ≥ 2, received {n!r}")
    if algorithm == "factored":
        parts = [published_cost(name, n) for name in ("rnea", "crba", "factorisation")]
        return Cost(sum(p.multiplications for p in parts), sum(p.additions for p in parts))
    one_of(algorithm, "algorithm", (*PUBLISHED, "factored"))
    rows = PUBLISHED[algorithm]
    if not 0 <= version < len(rows):
        raise ValueError(f"version: expected 0 to {len(rows) - 1}, received {version!r}")
    m, a = (int(sum(c * n ** (3 - k) for k, c in enumerate(row))) for row in rows[version][:2])
    return Cost(m, a)


def branched_cost(parents: Sequence[int]) -> Cost:
    """Cost of H for a tree of revolute joints with general parameters (Eq 10.12).

    One child of each body has its frame where Denavit and Hartenberg put it, which is cheaper to
    reach (32m + 43a, 20m + 12a) than a general one (47m + 58a, 24m + 18a); it is the child that
    carries most.

    Parameters
    ----------
    parents
        λ(1) … λ(n); 0 is the base.

    Examples
    --------
    An unbranched chain, a star:

    >>> branched_cost([0, 1, 2, 3, 4, 5]) == published_cost("crba", 6)
    True
    >>> branched_cost([0, 0, 0]).total
    0
    """
    n = len(parents)
    for i, parent in enumerate(parents, 1):
        if not 0 <= parent < i:
            raise ValueError(f"parents: expected λ({i}) from 0 to {i - 1}, received {parent!r}")
    carried = [0] + [1] * n  # |ν(i)|
    for i in range(n, 0, -1):
        if parents[i - 1]:
            carried[parents[i - 1]] += carried[i]
    favourite: dict[int, int] = {}
    for i, parent in enumerate(parents, 1):
        if parent and carried[i] > carried[favourite.get(parent, 0)]:
            favourite[parent] = i
    m = a = 0
    for i, parent in enumerate(parents, 1):
        if not parent:
            continue
        near = favourite[parent] == i
        m += (32 if near else 47) + (20 if near else 24) * carried[i]
        a += (43 if near else 58) + (12 if near else 18) * carried[i]
    return Cost(m, a)
