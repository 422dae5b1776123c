"""λ eliminated, in all coordinates: ordinary differential equations in q and v.

q̇ = rate(t, q, v),    M v̇ = f + Gᵀλ,    G v̇ = γ − 2α (G v − ν) − β² g.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...problem import direction
from ..acceleration import SOLVERS, Weighted, accelerations
from ..feedback import gains as known_gains
from ..problem import Formulation, make_problem, may_trace, traced_or
from ..projection import Projection
from ..system import Mechanical
from .table import EXPLICIT, MECHANICAL, register


def slope(mechanical: Mechanical, alpha: float, beta: float, solver: str) -> Callable[..., Any]:
    """q̇ = rate, v̇ from the constrained equations of motion, as a function of (t, y)."""
    parts, ways, nq, nv = mechanical.parts, mechanical.ways, mechanical.nq, mechanical.nv
    by_matrices = solver in SOLVERS or not ways.solves
    method = solver if solver in SOLVERS else "svd"

    def either(t: Any, y: Any, p: Any = mechanical.params) -> Any:
        q, v = y[:nq], y[nq:]
        v_dot = ways.accelerations(t, q, v, p, alpha, beta)
        return np.concatenate([parts.rate(t, q, v, p), v_dot])

    def numeric(t: float, y: Any, p: Any = mechanical.params) -> Any:
        now = mechanical.terms(t, y[:nq], y[nq:], p)
        if not now.finite:  # a step that went astray: the method tries a shorter one
            return np.full(nq + nv, np.nan)
        with np.errstate(all="ignore"):
            speed = now.G @ y[nq:] - now.nu
            gamma = now.gamma - 2 * alpha * speed - beta * beta * now.g
            tolerance = mechanical.rank_tolerance
            if method == "svd":
                v_dot, _ = Weighted(now.M, now.G, tolerance).accelerate(now.f, gamma)
            else:
                v_dot = accelerations(
                    now.M, now.f, now.G, gamma, method=method, tolerance=tolerance
                ).v_dot
        return np.concatenate([now.q_dot, v_dot])

    other = numeric if by_matrices else either
    key, wanted = ("slope", alpha, beta), may_trace(mechanical, solver)
    return traced_or(mechanical, wanted, either, nq + nv, other, key=key)


def eliminated(
    mechanical: Mechanical, formulation: str, f: Callable[..., Any], **fields: Any
) -> Formulation:
    """An explicit problem in q and v."""
    return make_problem(
        mechanical,
        formulation,
        f,
        np.concatenate([mechanical.q0, mechanical.v0]),
        mechanical.position_names + mechanical.velocity_names,
        **fields,
    )


@register(
    "index1",
    aliases=("none",),
    index=1,
    unknowns="q, v",
    eliminates="λ",
    methods=(EXPLICIT, MECHANICAL),
    meaning="G v̇ = γ and nothing more: g drifts like t²",
)
def index1(mechanical: Mechanical, multipliers: bool = False, solver: str = "auto") -> Formulation:
    """Accelerations only; with `multipliers` λ stays in the state."""
    if not isinstance(multipliers, bool | np.bool_):
        raise TypeError(f"multipliers must be True or False, got {multipliers!r}")
    if not multipliers:
        f = slope(mechanical, 0.0, 0.0, solver)
        return eliminated(mechanical, "index1", f, gains=(0.0, 0.0))
    from .multipliers import with_multipliers

    return with_multipliers(mechanical, "index1")


@register(
    "baumgarte",
    index=1,
    unknowns="q, v",
    eliminates="λ",
    methods=(EXPLICIT,),
    meaning="fed back: g̈ ± 2αġ + β²g = 0, `alpha`, `beta` or `T_stab`; − backwards in time",
)
def baumgarte(
    mechanical: Mechanical,
    alpha: float | None = None,
    beta: float | None = None,
    T_stab: Any = None,
    step: float | None = None,
    solver: str = "auto",
) -> Formulation:
    """Feedback of the gap and its rate."""
    first, second = known_gains(alpha, beta, T_stab, step)

    def directed(way: int) -> dict[str, Any]:
        gains = way * first, second
        return {"f": slope(mechanical, *gains, solver), "gains": gains}

    now = directed(direction(mechanical.t_span))
    return eliminated(mechanical, "baumgarte", **now, directed=directed)


@register(
    "projected",
    aliases=("projection",),
    index=1,
    unknowns="q, v",
    eliminates="λ",
    methods=(EXPLICIT, MECHANICAL),
    meaning="exact after each step: nearest q and v in the norm of M",
)
def projected(mechanical: Mechanical, solver: str = "auto") -> Formulation:
    """As index1, with a projection of q and v after each step."""
    project = Projection(mechanical, by_rank=solver in SOLVERS)
    f = slope(mechanical, 0.0, 0.0, solver)
    return eliminated(mechanical, "projected", f, project=project, gains=(0.0, 0.0))
