"""Nine initial value problems from one mechanical system.

| name | state | equations | stabilised by |
|---|---|---|---|
| index1 | q, v | M v̇ = f + Gᵀλ, G v̇ = γ, λ eliminated | nothing: g drifts like t² |
| baumgarte | q, v | the same with γ − 2α (G v − ν) − β² g in place of γ | feedback |
| projected | q, v | as index1 | projection of q and v after each step |
| augmented | q, v | (M + ϱGᵀG) v̇ = f + Gᵀ(ϱγ* + λₖ), λ iterated | penalty and feedback |
| minimal | q, v, or y, ẏ | only independent coordinates are integrated | nothing needed |
| index3 | q, v, λ | M v̇ = f + Gᵀλ, 0 = g | itself |
| index2 | q, v, λ | M v̇ = f + Gᵀλ, 0 = G v − ν | velocities only: g drifts like t |
| ggl | q, v, λ, μ | index2, 0 = g, and q̇ = rate(v + M⁻¹Gᵀμ) (Gear, Gupta, Leimkuhler) | itself |
| overdetermined | q, v, λ | all of 0 = g, 0 = G v − ν, G v̇ = γ at once | itself |

Explicit methods solve the first five. The others are differential-algebraic, with a constant
singular mass matrix and the index of each component, for Radau IIA and the like. "overdetermined"
has more equations than unknowns: assimulo:ODASSL solves it as it stands, all other methods solve
its index-1 part and project after each step. Constraints on velocities only have no g: where 0 = g
stands, 0 = G v − ν takes its place, and there is no μ for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import suggest
from .acceleration import SOLVERS, Eliminated, Factor, Weighted, accelerations
from .augmented import augmented
from .consistency import check_start
from .feedback import T_STAB, Stabiliser, direction, feedback, gains
from .options import take_options
from .problem import Formulation, full_rank, make_problem, may_trace, projector, traced_or
from .system import BUILT_ON, Mechanical

__all__ = ["FORMULATIONS", "T_STAB", "formulate", "formulation_key", "gains"]

OTHER_NAMES = {"none": "index1", "projection": "projected", "augmentedlagrangian": "augmented"}


def formulation_key(name: str) -> str:
    """Return the key of ``FORMULATIONS`` that a name means, in any spelling; refuse others.

    Examples
    --------
    >>> formulation_key("Index-3"), formulation_key("projection")
    ('index3', 'projected')
    """
    if not isinstance(name, str):
        raise TypeError(f"formulation must be a name such as 'projected', got {name!r}")
    key = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    key = OTHER_NAMES.get(key, key)
    if key not in FORMULATIONS:
        raise ValueError(
            f"there is no formulation {name!r}{suggest(key, list(FORMULATIONS))}; known are "
            f"{', '.join(FORMULATIONS)}"
        )
    return key


def formulate(
    mechanical: Mechanical, name: str, *, allow_inconsistent: bool = False, **options: Any
) -> Formulation:
    """Return the initial value problem of one formulation.

    Parameters
    ----------
    mechanical
        The system.
    name
        A key of ``FORMULATIONS``.
    allow_inconsistent
        Start even where the constraints do not hold.
    options
        What the formulation takes: "baumgarte" `alpha`, `beta` (1/s), or `T_stab` (s, or
        "auto" with `step`); "augmented" the same, `penalty` and `iterations`; "index1"
        `multipliers=True` to keep λ in the state; "minimal" `independent`, or `closure`, `y0`;
        those with eliminated λ `solver`: "auto", "traced", or one of :func:`accelerations`.

    Examples
    --------
    >>> import numpy as np
    >>> from integrators.dae import Mechanical
    >>> bead = Mechanical(np.eye(2), lambda t, q, v: [0.0, -1.0], lambda t, q: [q[1] - q[0]],
    ...                   q0=[0.0, 0.0], v0=[0.0, 0.0], t_span=(0, 1))
    >>> formulate(bead, "index3").index
    array([1, 1, 2, 2, 3])
    """
    key = formulation_key(name)
    take_options(f"the formulation {key!r}", FORMULATIONS[key], options)
    now = mechanical.terms(mechanical.t_span[0], mechanical.q0, mechanical.v0)
    if Weighted(now.M, now.G, mechanical.rank_tolerance).rank == 0:
        raise ValueError(
            f"the Jacobian of the {mechanical.m} constraints is zero at the start (rank 0, largest "
            f"entry {np.abs(now.G).max():.3g}): they restrict nothing there. Check constraint and "
            "jacobian, or start from another position"
        )
    if not allow_inconsistent:
        check_start(mechanical)
    return FORMULATIONS[key](mechanical, **options)


# -------------------------------------------------------------------- λ eliminated


def _plain(g: Any, speed: Any, gamma: Any) -> Any:
    return gamma


def _slope(mechanical: Mechanical, stabilise: Stabiliser, solver: str) -> Callable[..., Any]:
    """q̇ = rate, v̇ from the constrained equations of motion, as a function of (t, y)."""
    parts, nq, nv = mechanical.parts, mechanical.nq, mechanical.nv
    none = mechanical.params
    stabilised = stabilise is not _plain
    method = solver if solver in SOLVERS else "svd"

    def symbolic(t: Any, y: Any, p: Any) -> Any:
        q, v = y[:nq], y[nq:]
        G, gamma = parts.jacobian(t, q, p), parts.bias(t, q, v, p)
        if stabilised:
            gamma = stabilise(parts.constraint(t, q, p), G @ v - parts.target(t, q, p), gamma)
        v_dot, _ = Eliminated(parts.mass(t, q, p), G).accelerate(parts.force(t, q, v, p), gamma)
        return np.concatenate([parts.rate(t, q, v, p), v_dot])

    def numeric(t: float, y: Any, p: Any = none) -> Any:
        now = mechanical.terms(t, y[:nq], y[nq:], p)
        if not now.finite:  # a step that went astray: the method tries a shorter one
            return np.full(nq + nv, np.nan)
        gamma, tolerance = now.gamma, mechanical.rank_tolerance
        with np.errstate(all="ignore"):
            if stabilised:
                gamma = stabilise(now.g, now.G @ y[nq:] - now.nu, gamma)
            if method == "svd":
                v_dot, _ = Weighted(now.M, now.G, tolerance).accelerate(now.f, gamma)
            else:
                v_dot = accelerations(
                    now.M, now.f, now.G, gamma, method=method, tolerance=tolerance
                ).v_dot
        return np.concatenate([now.q_dot, v_dot])

    return traced_or(mechanical, may_trace(mechanical, solver), symbolic, nq + nv, numeric)


def _eliminated(
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


def _index1(mechanical: Mechanical, multipliers: bool = False, solver: str = "auto") -> Formulation:
    if not isinstance(multipliers, bool | np.bool_):
        raise TypeError(f"multipliers must be True or False, got {multipliers!r}")
    if not multipliers:
        return _eliminated(mechanical, "index1", _slope(mechanical, _plain, solver))
    return _with_multipliers(mechanical, "index1")


def _baumgarte(
    mechanical: Mechanical,
    alpha: float | None = None,
    beta: float | None = None,
    T_stab: Any = None,
    step: float | None = None,
    solver: str = "auto",
) -> Formulation:
    known = gains(alpha, beta, T_stab, step)

    def directed(way: int) -> Callable[..., Any]:
        return _slope(mechanical, feedback(*known, way), solver)

    f = directed(direction(mechanical.t_span))
    return _eliminated(mechanical, "baumgarte", f, directed=directed)


def _projected(mechanical: Mechanical, solver: str = "auto") -> Formulation:
    project = projector(mechanical, by_rank=solver in SOLVERS)
    f = _slope(mechanical, _plain, solver)
    return _eliminated(mechanical, "projected", f, project=project)


# -------------------------------------------------------------------- λ in the state

INDEX = {  # of q, v, λ and μ
    "index1": (1, 1, 1),
    "index2": (1, 1, 2),
    "index3": (1, 2, 3),
    "ggl": (1, 1, 2, 2),
}


def _with_multipliers(
    mechanical: Mechanical, formulation: str, label: str = "", **fields: Any
) -> Formulation:
    """Differential-algebraic forms: diag(1, 1, 0 [, 0]) y' = f."""
    if not full_rank(mechanical):
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
        q, v = y[:nq], y[nq : nq + nv]

        def solve(M: Any, *sides: Any) -> list[Any]:
            factor = Factor(np.asarray(M))
            return [factor.solve(side) for side in sides]

        terms = (
            parts.mass(t, q, p),
            parts.force(t, q, v, p),
            parts.constraint(t, q, p),
            parts.jacobian(t, q, p),
            parts.bias(t, q, v, p),
            parts.target(t, q, p),
        )
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
    f = traced_or(mechanical, mechanical.parts.traceable, symbolic, index.size, numeric)
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
        mass=np.diag((np.arange(index.size) < nq + nv).astype(float)),
        index=index,
        **fields,
    )


def _overdetermined(mechanical: Mechanical) -> Formulation:
    nq, nv, parts = mechanical.nq, mechanical.nv, mechanical.parts

    closed = np.flatnonzero(mechanical.holonomic)

    def symbolic(t: Any, y: Any, p: Any = mechanical.params) -> Any:
        q, v = y[:nq], y[nq : nq + nv]
        speed = parts.jacobian(t, q, p) @ v - parts.target(t, q, p)
        return np.concatenate([np.asarray(parts.constraint(t, q, p))[closed], speed])

    def numeric(t: float, y: Any, p: Any = mechanical.params) -> Any:
        now = mechanical.terms(t, y[:nq], y[nq : nq + nv], p)
        return np.concatenate([now.g[closed], now.G @ y[nq : nq + nv] - now.nu])

    extra = traced_or(
        mechanical,
        parts.traceable,
        symbolic,
        nq + nv + mechanical.m,
        numeric,
        outputs=closed.size + mechanical.m,
    )
    onto = projector(mechanical)

    def project(t: float, y: Any, p: Any = mechanical.params) -> Any:
        x = onto(t, y[: nq + nv], p)
        return np.concatenate([x, mechanical.acceleration(t, x[:nq], x[nq:], p=p).multipliers])

    return _with_multipliers(mechanical, "index1", "overdetermined", extra=extra, project=project)


def _minimal(
    mechanical: Mechanical,
    independent: Any = None,
    closure: Any = None,
    y0: Any = None,
    dy0: Any = None,
) -> Formulation:
    from .minimal import minimal

    return minimal(mechanical, independent, closure, y0, dy0)


FORMULATIONS: dict[str, Callable[..., Formulation]] = {
    "index1": _index1,
    "baumgarte": _baumgarte,
    "projected": _projected,
    "index3": lambda mechanical: _with_multipliers(mechanical, "index3"),
    "index2": lambda mechanical: _with_multipliers(mechanical, "index2"),
    "ggl": lambda mechanical: _with_multipliers(mechanical, "ggl"),
    "overdetermined": _overdetermined,
    "minimal": _minimal,
    "augmented": augmented,
}


BUILT_ON["formulate"] = formulate
