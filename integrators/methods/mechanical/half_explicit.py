"""Half-explicit Runge–Kutta methods for mechanical systems with constraints.

Any explicit tableau becomes a method for the index-2 form (Hairer, Lubich and Roche, 1989): the
multiplier λᵢ of stage i is determined so that the *next* stage satisfies the velocity constraint,

    Qᵢ₊₁ = q + h Σ_{j≤i} aᵢ₊₁,ⱼ Q̇ⱼ,     Vᵢ₊₁ = v + h Σ_{j≤i} aᵢ₊₁,ⱼ V̇ⱼ,
    Mᵢ V̇ᵢ = fᵢ + Gᵢᵀ λᵢ,                 G(Qᵢ₊₁) Vᵢ₊₁ = ν(Qᵢ₊₁),

with the weights b as the row after the last. Each stage is one linear system of m equations; the
result satisfies G v = ν exactly, while g drifts with the error of the method (the formulation
"projected" removes that, too). All aᵢ₊₁,ᵢ and the last weight must be different from zero.

The order is lower than the tableau's, as a rule: λ brings order conditions of its own
(:func:`half_explicit_order`). HEM3 and HEM4 of Brasey and Hairer (1993) satisfy them.
"""

from __future__ import annotations

import itertools
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...stepping.engine import Options
from ...tableau import Tableau
from .engine import ConstrainedEngine, ConstrainedStep, system_of

__all__ = ["HEM3", "HEM4", "HalfExplicit", "half_explicit_order"]

Array = NDArray[np.float64]

HIGHEST_ORDER = 5  # up to which order conditions are looked at
CONDITION_TOLERANCE = 1e-10  # rounding of irrational coefficients
SINGULAR = 1e-13  # dependent constraints: relative singular values below are dropped

HEM3 = Tableau(
    [[], ["1/3"], ["-1", "2"]],
    ["0", "3/4", "1/4"],
    name="HEM3",
    reference="V. Brasey and E. Hairer, SIAM J. Numer. Anal. 30 (1993) 538-552",
)
HEM4 = Tableau(
    [
        [],
        ["3/10"],
        ["(1+sqrt(6))/30", "(11-4*sqrt(6))/30"],
        ["(-79-31*sqrt(6))/150", "(-1-4*sqrt(6))/30", "(24+11*sqrt(6))/25"],
        ["(14+5*sqrt(6))/6", "(-8+7*sqrt(6))/6", "(-9-7*sqrt(6))/4", "(9-sqrt(6))/4"],
    ],
    ["0", "0", "(16-sqrt(6))/36", "(16+sqrt(6))/36", "1/9"],
    name="HEM4",
    reference="V. Brasey and E. Hairer, SIAM J. Numer. Anal. 30 (1993) 538-552",
)


class HalfExplicit:
    """A half-explicit Runge–Kutta method, for a :class:`~integrators.dae.Mechanical`.

    Parameters
    ----------
    tableau
        An explicit :class:`Tableau` or its name; "HEM3" and "HEM4" were made for this, and
        "HalfExplicit(RK4)" is this class by name.

    Notes
    -----
    ``order`` is the order on mechanical systems, found from the coefficients. Adaptive steps use
    the embedded method of the tableau, or step doubling.

    Examples
    --------
    >>> HalfExplicit("HEM4").order, HalfExplicit("RK4").order, HalfExplicit("ExplicitEuler").order
    (4, 3, 1)
    """

    def __init__(self, tableau: Tableau | str) -> None:
        if isinstance(tableau, str):
            plain = tableau.strip().upper()
            if plain in ("HEM3", "HEM4"):
                tableau = HEM3 if plain == "HEM3" else HEM4
            else:
                from ...catalogue import from_name_or_file

                tableau = from_name_or_file(tableau)
        if not isinstance(tableau, Tableau) or not tableau.is_explicit:
            raise ValueError(
                f"a half-explicit method needs an explicit tableau or its name, got {tableau!r}"
            )
        self.tableau = tableau
        self.rows, self.nodes, self.error_weights = _extended(tableau)
        self.order = half_explicit_order(tableau)
        self.name = tableau.name if tableau in (HEM3, HEM4) else f"HalfExplicit({tableau.name})"

    @classmethod
    def from_name(cls, name: str) -> HalfExplicit:
        """Return the method called "HEM4", "HalfExplicitEuler" or "HalfExplicit(RK4)"."""
        plain = name.lower().replace("-", "").replace("_", "").replace(" ", "")
        if plain.startswith("hem"):
            if plain not in ("hem3", "hem4"):
                raise ValueError(f"there is no {name!r}; there are HEM3 and HEM4")
            return cls(plain.upper())
        if plain == "halfexpliciteuler":
            return cls("ExplicitEuler")
        inside = name.partition("(")[2].strip().removesuffix(")").strip()
        if not inside:
            raise ValueError(f"{name!r} does not say which tableau: write 'HalfExplicit(RK4)'")
        return cls(inside)

    def bind(self, problem: IVP, options: Options) -> ConstrainedEngine:
        """Bind the method to a problem."""
        formulation = system_of(problem, self.name)
        step = HalfExplicitStep(self, formulation, options)
        return ConstrainedEngine(step, formulation, options)

    def __repr__(self) -> str:
        return self.name


def _extended(tableau: Tableau) -> tuple[Array, Array, Array | None]:
    """The rows of the stages after the first, with b as the last; their nodes; error weights.

    A last stage that only serves the next step (b_s = 0, its row equal to b) is left out. Error
    weights then have one entry more than there are rows: that of the slope at the end.
    """
    A, b, c = tableau.arrays
    s = tableau.stages
    weights = tableau.error_weights
    if s > 1 and b[-1] == 0.0 and np.array_equal(A[-1], b):
        s -= 1
    rows = np.vstack([A[1:s, :s], b[:s]])
    nodes = np.append(c[1:s], 1.0)
    for i in range(s):
        if rows[i, i] == 0.0:
            what = f"a[{i + 2},{i + 1}]" if i + 1 < s else f"b[{s}]"
            raise ValueError(
                f"{tableau.name or 'this tableau'} cannot be used half-explicitly: {what} is zero, "
                f"so nothing determines the multiplier of stage {i + 1}"
            )
    return rows, nodes, None if weights is None else np.asarray(weights, dtype=float)


class HalfExplicitStep(ConstrainedStep):
    """A half-explicit method bound to a system."""

    def __init__(self, method: HalfExplicit, problem: Any, options: Options) -> None:
        super().__init__(problem, options)
        self.rows, self.nodes = method.rows, method.nodes
        self.weights = None if options.fixed else method.error_weights
        self.order = method.order
        embedded = method.tableau.embedded_order or 0
        self.estimate_order = max(1, min(self.order - 1, embedded))

    def advance(
        self, t: float, q: Array, v: Array, multipliers: Array | None, h: float
    ) -> tuple[Array, Array, Array, Array | None]:
        """One step of the method."""
        system, rows = self.system, self.rows
        s = len(rows)
        rates, slopes = np.zeros((s + 1, system.nq)), np.zeros((s + 1, system.nv))
        Q, V, time = q, v, t
        for i in range(s):
            now = self.terms(time, Q, V)
            rates[i] = now.q_dot
            time = t + self.nodes[i] * h
            Q = q + h * (rows[i, : i + 1] @ rates[: i + 1])
            G, nu = self._constraint(time, Q)
            V = v + h * (rows[i, :i] @ slopes[:i])
            free = np.linalg.solve(now.M, np.column_stack([now.f, now.G.T]))
            reach = h * rows[i, i]
            wanted = (nu - G @ V) / reach - G @ free[:, 0]
            slopes[i] = free[:, 0] + free[:, 1:] @ self._solve(G @ free[:, 1:], wanted)
            V = V + reach * slopes[i]
        end: Array = np.zeros(0)
        uses_end = self.weights is not None and len(self.weights) > s
        if uses_end or multipliers is not None:
            slope, end = self.acceleration(t + h, Q, V)
            slopes[s], rates[s] = slope, system.parts.rate(t + h, Q, V, self.p)
        error = None
        if self.weights is not None:
            k = len(self.weights)
            error = h * np.concatenate([self.weights @ rates[:k], self.weights @ slopes[:k]])
        return Q, V, end, error

    def _constraint(self, t: float, q: Array) -> tuple[Array, Array]:
        if self.system.is_traced:
            now = self.system.terms(t, q, self.system.v0, self.p)
            return now.G, now.nu
        parts = self.system.parts
        G, nu = parts.jacobian(t, q, self.p), parts.target(t, q, self.p)
        return np.asarray(G, dtype=float), np.asarray(nu, dtype=float)

    def _solve(self, S: Array, b: Array) -> Array:
        if self.full_rank:
            try:
                return np.asarray(np.linalg.solve(S, b), dtype=float)
            except np.linalg.LinAlgError:
                pass
        return np.asarray(np.linalg.lstsq(S, b, rcond=SINGULAR)[0], dtype=float)


# -------------------------------------------------------------------- order conditions

# A tree is ("y", sons) or ("z", sons), a son of ("y", …) may be either, of ("z", …) only "y".
Tree = tuple[str, tuple[Any, ...]]


def _rho(tree: Tree) -> int:
    """Order: "y" vertices minus "z" vertices."""
    return (1 if tree[0] == "y" else -1) + sum(_rho(son) for son in tree[1])


def _gamma(tree: Tree) -> float:
    """Density: the exact solution has the weight 1/γ."""
    kind, sons = tree
    own = _rho(tree) if kind == "y" else 1 / (_rho(tree) + 1)
    return own * prod(_gamma(son) for son in sons)


@cache
def _trees(order: int) -> tuple[Tree, ...]:
    """All "y" trees of one order, for f linear in z: at most one "z" son for each vertex."""
    return _with_y_sons(order) + tuple(("y", (z,)) for z in _z_trees(order - 1))


@cache
def _with_y_sons(order: int) -> tuple[Tree, ...]:
    """Those of them that are not [z], a vertex with a single son of kind "z"."""
    found: list[Tree] = [("y", sons) for sons in _forests(order - 1)]
    for z_order in range(1, order - 1):
        for sons in _forests(order - 1 - z_order):
            found += [("y", (*sons, z)) for z in _z_trees(z_order)]
    return tuple(found)


@cache
def _z_trees(order: int) -> tuple[Tree, ...]:
    """All "z" trees of one order: [t₁, …, tₘ] but for [τ] and [[z]], which 0 = g rules out."""
    if order < 1:
        return ()
    several = [sons for parts in _splits(order + 1, order) for sons in _choices(parts)]
    single = [(tree,) for tree in _with_y_sons(order + 1)]
    return tuple(("z", sons) for sons in [*several, *single])


@cache
def _forests(total: int) -> tuple[tuple[Tree, ...], ...]:
    """All multisets of "y" trees whose orders add up to a total."""
    return tuple(sons for parts in _splits(total, total) for sons in _choices(parts))


def _choices(parts: tuple[int, ...]) -> list[tuple[Tree, ...]]:
    """All multisets of "y" trees with the given orders, largest first."""
    groups = [(part, len(list(same))) for part, same in itertools.groupby(parts)]
    choices = [
        itertools.combinations_with_replacement(_trees(part), count) for part, count in groups
    ]
    return [tuple(itertools.chain(*choice)) for choice in itertools.product(*choices)]


def _splits(total: int, largest: int) -> list[tuple[int, ...]]:
    if total == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(min(total, largest), 0, -1)
        for rest in _splits(total - first, first)
    ]


def half_explicit_order(tableau: Tableau) -> int:
    """Order of a tableau as a half-explicit method, on systems in which λ appears linearly.

    Order conditions belong to trees with two kinds of vertices, for f and for λ; ω is the inverse
    of the matrix of :func:`_extended` (:cite:`hairer1996`, VII.5–6). Up to order 5 all of them are
    evaluated.

    Examples
    --------
    >>> half_explicit_order(HEM3)
    3
    """
    rows, _, _ = _extended(tableau)
    s = len(rows)
    A = np.zeros((s, s))
    A[1:] = rows[:-1]
    omega = np.linalg.inv(rows)

    @cache
    def at_stages(tree: Tree) -> Any:
        kind, sons = tree
        value = np.ones(s)
        for son in sons:
            if kind == "z":
                value = value * (rows @ at_stages(son))
            else:
                value = value * (at_stages(son) if son[0] == "z" else A @ at_stages(son))
        return omega @ value if kind == "z" else value

    for order in range(1, HIGHEST_ORDER + 1):
        for tree in _trees(order):
            if abs(rows[-1] @ at_stages(tree) - 1 / _gamma(tree)) > CONDITION_TOLERANCE:
                return order - 1
    return HIGHEST_ORDER
