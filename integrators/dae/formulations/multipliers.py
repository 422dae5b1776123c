"""Multipliers as unknowns: differential-algebraic problems of index 1, 2 and 3.

    diag(1, 1, 0 [, 0]) y' = f(t, y),    y = (q, v, λ [, μ]),

for Radau IIA and the like. "overdetermined" has more equations than unknowns: assimulo:ODASSL
solves it as it stands, all other methods solve its index-1 part and project after each step.
Constraints on velocities only have no g: where 0 = g stands, 0 = G v − ν takes its place, and
there is no μ for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..acceleration import Factor
from ..problem import Formulation, full_rank, make_problem, traced_or
from ..projection import Projection
from ..system import Mechanical
from .table import IMPLICIT, MECHANICAL, register

__all__ = ["with_multipliers"]

INDEX = {  # of q, v, λ and μ
    "index1": (1, 1, 1),
    "index2": (1, 1, 2),
    "index3": (1, 2, 3),
    "ggl": (1, 1, 2, 2),
}


def with_multipliers(
    mechanical: Mechanical,
    formulation: str,
    label: str = "",
    dependent: bool = False,
    **fields: Any,
) -> Formulation:
    """Differential-algebraic forms: diag(1, 1, 0 [, 0]) y' = f; `dependent` allows such rows."""
    if not (dependent or full_rank(mechanical)):
        raise ValueError(
            f"the constraints are dependent at the start (rank {mechanical.rank()} of "
            f"{mechanical.m}), so λ is not unique and {formulation!r} cannot be solved with it; "
            "take mechanical.without_redundant(), or a formulation that eliminates λ: projected, "
            "baumgarte, augmented or minimal"
        )
    parts, nq, nv, m = mechanical.parts, mechanical.nq, mechanical.nv, mechanical.m
    end = nq + nv + m
    closed = np.flatnonzero(mechanical.holonomic)  # the other constraints have no g

    def equations(t: Any, y: Any, p: Any, terms: Any, solve: Callable[..., Any]) -> Any:
        M, force, g, G, gamma, nu = terms
        q, v, multipliers = y[:nq], y[nq : nq + nv], y[nq + nv : end]
        pull = np.asarray(G).T
        if formulation == "ggl":
            v_dot, shift = solve(M, force + pull @ multipliers, pull[:, closed] @ y[end:])
            return [parts.rate(t, q, v + shift, p), v_dot, G @ v - nu, g[closed]]
        (v_dot,) = solve(M, force + pull @ multipliers)
        last = G @ v_dot - gamma if formulation == "index1" else G @ v - nu
        if formulation == "index3":
            last = np.where(mechanical.holonomic, g, last)
        return [parts.rate(t, q, v, p), v_dot, last]

    def symbolic(t: Any, y: Any, p: Any) -> Any:
        def solve(M: Any, *sides: Any) -> list[Any]:
            factor = Factor(np.asarray(M))
            return [factor.solve(side) for side in sides]

        terms = mechanical.ways.terms(t, y[:nq], y[nq : nq + nv], p)
        return np.concatenate(equations(t, y, p, terms, solve))

    def numeric(t: float, y: Any, p: Any = mechanical.params) -> Any:
        from scipy.linalg import cho_factor, cho_solve

        def solve(M: Any, *sides: Any) -> list[Any]:
            factor = cho_factor(M, check_finite=False)
            return [cho_solve(factor, side, check_finite=False) for side in sides]

        now = mechanical.terms(t, y[:nq], y[nq : nq + nv], p)
        if not now.finite:
            return np.full(y.size, np.nan)
        terms = (now.M, now.f, now.g, now.G, now.gamma, now.nu)
        return np.concatenate(equations(t, y, p, terms, solve))

    sizes = (nq, nv, m, closed.size)
    index = np.concatenate([np.full(size, i) for size, i in zip(sizes, INDEX[formulation])])
    if formulation == "index3":
        index[nq + nv :][~mechanical.holonomic] = 2
        index[nq : nq + nv] = 2 if closed.size else 1
    wanted, key = mechanical.parts.traceable, ("multipliers", formulation)
    f = traced_or(mechanical, wanted, symbolic, index.size, numeric, key=key)
    start = mechanical.acceleration(mechanical.t_span[0], mechanical.q0, mechanical.v0)
    y0 = np.zeros(index.size)
    y0[:end] = np.concatenate([mechanical.q0, mechanical.v0, start.multipliers])
    names = mechanical.position_names + mechanical.velocity_names + mechanical.multiplier_names
    if formulation == "ggl":
        names += tuple(f"μ({mechanical.multiplier_names[k]})" for k in closed)
    return make_problem(
        mechanical,
        label or formulation,
        f,
        y0,
        names,
        jac=mechanical.ways.exact_slopes(formulation, f),
        mass=np.diag((np.arange(index.size) < nq + nv).astype(float)),
        index=index,
        **fields,
    )


@register(
    "index3",
    index=3,
    unknowns="q, v, λ",
    eliminates="nothing",
    methods=(IMPLICIT, MECHANICAL),
    meaning="0 = g as it stands: g exact; v and λ have fewer digits",
)
def index3(mechanical: Mechanical) -> Formulation:
    """M v̇ = f + Gᵀλ, 0 = g."""
    return with_multipliers(mechanical, "index3")


@register(
    "index2",
    index=2,
    unknowns="q, v, λ",
    eliminates="nothing",
    methods=(IMPLICIT, MECHANICAL),
    meaning="0 = G v − ν in place of g: G v exact, g drifts like t",
)
def index2(mechanical: Mechanical) -> Formulation:
    """M v̇ = f + Gᵀλ, 0 = G v − ν."""
    return with_multipliers(mechanical, "index2")


@register(
    "ggl",
    index=2,
    unknowns="q, v, λ, μ",
    eliminates="nothing",
    methods=(IMPLICIT, MECHANICAL),
    meaning="0 = g and 0 = G v − ν with q̇ = rate(v + M⁻¹Gᵀμ) (Gear, Gupta, Leimkuhler): both exact",
)
def ggl(mechanical: Mechanical) -> Formulation:
    """Stabilised index 2."""
    return with_multipliers(mechanical, "ggl")


@register(
    "overdetermined",
    index=1,
    unknowns="q, v, λ",
    eliminates="nothing",
    methods=(IMPLICIT, MECHANICAL),
    meaning="0 = g, 0 = G v − ν, G v̇ = γ at once (assimulo:ODASSL), or projected onto: all exact",
)
def overdetermined(mechanical: Mechanical) -> Formulation:
    """All equations at once."""
    nq, nv = mechanical.nq, mechanical.nv
    closed = np.flatnonzero(mechanical.holonomic)

    def symbolic(t: Any, y: Any, p: Any = mechanical.params) -> Any:
        q, v = y[:nq], y[nq : nq + nv]
        _, _, g, G, _, nu = mechanical.ways.terms(t, q, v, p)
        return np.concatenate([np.asarray(g)[closed], G @ v - nu])

    def numeric(t: float, y: Any, p: Any = mechanical.params) -> Any:
        now = mechanical.terms(t, y[:nq], y[nq : nq + nv], p)
        return np.concatenate([now.g[closed], now.G @ y[nq : nq + nv] - now.nu])

    extra = traced_or(
        mechanical,
        mechanical.parts.traceable,
        symbolic,
        nq + nv + mechanical.m,
        numeric,
        outputs=closed.size + mechanical.m,
        key="gaps and their rates",
    )
    project = Projection(mechanical, multipliers=True)
    return with_multipliers(mechanical, "index1", "overdetermined", extra=extra, project=project)
