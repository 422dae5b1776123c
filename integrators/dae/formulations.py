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

from .checks import number, take_options
from .consistency import check_start
from .linear import SOLVERS, Eliminated, Factor, Weighted, accelerations
from .mechanical import Mechanical
from .problem import Formulation, full_rank, make_problem, may_trace, projector, traced_or

__all__ = ["FORMULATIONS", "T_STAB", "formulate", "formulation_key"]

T_STAB = 0.1
"""Default time constant (s) of Baumgarte's stabilisation: for machines of the size of a robot 1 is
too long, 0.01 still works, and a factor of 2 hardly matters (book §8.3). It shall be about as long
as the interval after which a snapshot of the motion looks different."""

STEPS_PER_T_STAB = 10.0
"""T_stab = "auto" is this many steps: far inside the stability region of every method."""

PENALTY = 1e3  # of the augmented Lagrangian, relative to the inertia that a constraint sees
ITERATIONS = 6  # each gains the factor PENALTY, until rounding


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
        from ..solve import suggest

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

Stabiliser = Callable[[Any, Any, Any], Any]  # (g, G v − ν, γ) -> what G v̇ shall be


def _plain(g: Any, speed: Any, gamma: Any) -> Any:
    return gamma


def _eliminated(
    mechanical: Mechanical, formulation: str, stabilise: Stabiliser, solver: str, **fields: Any
) -> Formulation:
    """q̇ = rate, v̇ from the constrained equations of motion, as an explicit problem."""
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

    f = traced_or(mechanical, may_trace(mechanical, solver), symbolic, nq + nv, numeric)
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
        return _eliminated(mechanical, "index1", _plain, solver)
    return _with_multipliers(mechanical, "index1")


def gains(alpha: Any, beta: Any, T_stab: Any, step: Any) -> tuple[float, float]:
    """α and β of Baumgarte's stabilisation: given, or both 1/T_stab."""
    if T_stab is not None and (alpha is not None or beta is not None):
        raise ValueError("give alpha and beta, or T_stab, not both")
    if T_stab == "auto":
        if step is None:
            raise ValueError('T_stab="auto" is a multiple of the step size; give step, too')
        T_stab = STEPS_PER_T_STAB * _positive("step", step)
    elif step is not None:
        raise ValueError('step is for T_stab="auto" only')
    if T_stab is None:
        T_stab = T_STAB
    rate = 1.0 / _positive("T_stab", T_stab)
    first = rate if alpha is None else number("alpha", alpha, "a rate in 1/s")
    second = (rate if alpha is None else first) if beta is None else number("beta", beta, "a rate")
    if alpha is None and beta is not None:
        first = second
    for name, value in (("alpha", first), ("beta", second)):
        if value < 0:
            raise ValueError(
                f"{name} must not be negative: the gap would grow instead of decaying; got {value}"
            )
    return first, second


def _positive(name: str, value: Any, what: str = 'a time in seconds or "auto"') -> float:
    found = number(name, value, what)
    if found <= 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return found


def _feedback(alpha: float, beta: float) -> Stabiliser:
    def stabilise(g: Any, speed: Any, gamma: Any) -> Any:
        return gamma - 2 * alpha * speed - beta * beta * g

    return stabilise


def _baumgarte(
    mechanical: Mechanical,
    alpha: float | None = None,
    beta: float | None = None,
    T_stab: Any = None,
    step: float | None = None,
    solver: str = "auto",
) -> Formulation:
    stabilise = _feedback(*gains(alpha, beta, T_stab, step))
    return _eliminated(mechanical, "baumgarte", stabilise, solver)


def _projected(mechanical: Mechanical, solver: str = "auto") -> Formulation:
    project = projector(mechanical, by_rank=solver in SOLVERS)
    return _eliminated(mechanical, "projected", _plain, solver, project=project)


# -------------------------------------------------------------------- augmented Lagrangian


def _augmented(
    mechanical: Mechanical,
    alpha: float | None = None,
    beta: float | None = None,
    T_stab: Any = None,
    step: float | None = None,
    penalty: float | None = None,
    iterations: int = ITERATIONS,
) -> Formulation:
    """(M + ϱGᵀG) v̇ = f + Gᵀ(ϱ γ* + λ), λ ← λ + ϱ (γ* − G v̇) (Bayo): any rank will do."""
    stabilise = _feedback(*gains(alpha, beta, T_stab, step))
    parts, nq, nv = mechanical.parts, mechanical.nq, mechanical.nv
    now = mechanical.terms(mechanical.t_span[0], mechanical.q0, mechanical.v0)
    if penalty is None:
        known = Weighted(now.M, now.G, mechanical.rank_tolerance)
        penalty = PENALTY / float(known.s[-1]) ** 2
    weight = _positive("penalty", penalty, "a number")
    if number("iterations", iterations, "a whole number") < 1 or int(iterations) != iterations:
        raise ValueError(f"iterations must be a whole number, at least 1, got {iterations}")

    def accelerate(M: Any, f: Any, G: Any, gamma: Any) -> Any:
        factor = Factor(np.asarray(M) + weight * (np.asarray(G).T @ G))
        load = f + weight * (np.asarray(G).T @ gamma)
        v_dot = factor.solve(load)
        for _ in range(int(iterations) - 1):
            load = load + weight * (np.asarray(G).T @ (gamma - G @ v_dot))
            v_dot = factor.solve(load)
        return v_dot

    def symbolic(t: Any, y: Any, p: Any = mechanical.params) -> Any:
        q, v = y[:nq], y[nq:]
        G = parts.jacobian(t, q, p)
        speed = G @ v - parts.target(t, q, p)
        gamma = stabilise(parts.constraint(t, q, p), speed, parts.bias(t, q, v, p))
        v_dot = accelerate(parts.mass(t, q, p), parts.force(t, q, v, p), G, gamma)
        return np.concatenate([parts.rate(t, q, v, p), v_dot])

    def numeric(t: float, y: Any, p: Any = mechanical.params) -> Any:
        from scipy.linalg import cho_factor, cho_solve

        now = mechanical.terms(t, y[:nq], y[nq:], p)
        if not now.finite:
            return np.full(nq + nv, np.nan)
        gamma = stabilise(now.g, now.G @ y[nq:] - now.nu, now.gamma)
        factor = cho_factor(now.M + weight * (now.G.T @ now.G), check_finite=False)
        load = now.f + weight * (now.G.T @ gamma)
        v_dot = cho_solve(factor, load, check_finite=False)
        for _ in range(int(iterations) - 1):
            load = load + weight * (now.G.T @ (gamma - now.G @ v_dot))
            v_dot = cho_solve(factor, load, check_finite=False)
        return np.concatenate([now.q_dot, v_dot])

    f = traced_or(mechanical, mechanical.parts.traceable, symbolic, nq + nv, numeric)
    return make_problem(
        mechanical,
        "augmented",
        f,
        np.concatenate([mechanical.q0, mechanical.v0]),
        mechanical.position_names + mechanical.velocity_names,
    )


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
    "augmented": _augmented,
}
