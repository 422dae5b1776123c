"""The augmented Lagrangian (Bayo): a penalty for the multipliers, iterated.

    (M + ϱGᵀG) v̇ = f + Gᵀ(ϱ γ* + λ),    λ ← λ + ϱ (γ* − G v̇).

The matrix is positive definite whatever the rank of G. In a direction in which G, mass-weighted,
has the singular value σ each iteration leaves 1/(1 + ϱσ²) of the residual γ* − G v̇: next to
nothing as a rule, nearly all of it close to a singular position, where one σ goes through zero.
There the equation that is solved is another one, for as long as σ² < 1/ϱ, whatever the tolerance
of the integrator. :func:`unconverged` says after a run how much that was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import direction
from ..acceleration import Factor, Weighted
from ..feedback import Stabiliser, feedback, gains, positive
from ..options import number
from ..problem import Formulation, make_problem, traced_or
from ..system import Mechanical, Terms
from .table import EXPLICIT, register

__all__ = ["augmented", "unconverged"]

Array = NDArray[np.float64]

PENALTY = 1e3  # of the augmented Lagrangian, relative to the inertia that a constraint sees
ITERATIONS = 6  # each gains the factor PENALTY, until rounding
AT_ONCE = 1000  # places of a run that are looked at together
MOST = 5000  # places of a run that are looked at
TOLERANCES = 10.0
"""A run is not to be trusted where unfinished iterations changed velocities by more than so many
times rtol, relative to their size: the error at the end was seven times that on parallelograms."""
AT_REST = 1e-6  # a constraint that moves less than this part of the fastest does not move at all
SLOW = 1e-3  # so does one that moves less than this part of what forces cause during the run
TINY = float(np.finfo(float).tiny)
ROUNDING = 1e-9  # what is left of a converged iteration is below 1e-11


@register(
    "augmented",
    aliases=("augmentedlagrangian",),
    index=0,
    unknowns="q, v",
    eliminates="λ, by iteration",
    methods=(EXPLICIT,),
    meaning="(M + ϱGᵀG) v̇ = f + Gᵀ(ϱγ* + λₖ): fed back; a penalty, iterated: works at any rank",
)
def augmented(
    mechanical: Mechanical,
    alpha: float | None = None,
    beta: float | None = None,
    T_stab: Any = None,
    step: float | None = None,
    penalty: float | None = None,
    iterations: int = ITERATIONS,
) -> Formulation:
    """Return the problem; the arguments are options of "augmented"."""
    known_gains = gains(alpha, beta, T_stab, step)
    parts, nq, nv = mechanical.parts, mechanical.nq, mechanical.nv
    now = mechanical.terms(mechanical.t_span[0], mechanical.q0, mechanical.v0)
    if penalty is None:
        known = Weighted(now.M, now.G, mechanical.rank_tolerance)
        penalty = PENALTY / float(known.s[-1]) ** 2
    weight = positive("penalty", penalty, "a number")
    if number("iterations", iterations, "a whole number") < 1 or int(iterations) != iterations:
        raise ValueError(f"iterations must be a whole number, at least 1, got {iterations}")
    count = int(iterations)

    def accelerate(M: Any, f: Any, G: Any, gamma: Any) -> Any:
        factor = Factor(np.asarray(M) + weight * (np.asarray(G).T @ G))
        load = f + weight * (np.asarray(G).T @ gamma)
        v_dot = factor.solve(load)
        for _ in range(count - 1):
            load = load + weight * (np.asarray(G).T @ (gamma - G @ v_dot))
            v_dot = factor.solve(load)
        return v_dot

    def directed(way: int) -> dict[str, Any]:
        stabilise = feedback(*known_gains, way)

        def symbolic(t: Any, y: Any, p: Any = mechanical.params) -> Any:
            q, v = y[:nq], y[nq:]
            M, f, g, G, gamma, nu = mechanical.ways.terms(t, q, v, p)
            v_dot = accelerate(M, f, G, stabilise(g, G @ v - nu, gamma))
            return np.concatenate([parts.rate(t, q, v, p), v_dot])

        def numeric(t: float, y: Any, p: Any = mechanical.params) -> Any:
            now = mechanical.terms(t, y[:nq], y[nq:], p)
            if not now.finite:
                return np.full(nq + nv, np.nan)
            gamma = stabilise(now.g, now.G @ y[nq:] - now.nu, now.gamma)
            return np.concatenate([now.q_dot, _iterated(now, gamma, weight, count)])

        f = traced_or(mechanical, parts.traceable, symbolic, nq + nv, numeric)
        return {"f": f}

    return make_problem(
        mechanical,
        "augmented",
        directed(direction(mechanical.t_span))["f"],
        np.concatenate([mechanical.q0, mechanical.v0]),
        mechanical.position_names + mechanical.velocity_names,
        directed=directed,
        always_review=_review(mechanical, known_gains, weight, count),
    )


def _iterated(now: Terms, gamma: Array, weight: float, count: int) -> Array:
    """v̇ after so many iterations."""
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(now.M + weight * (now.G.T @ now.G), check_finite=False)
    load = now.f + weight * (now.G.T @ gamma)
    v_dot = cho_solve(factor, load, check_finite=False)
    for _ in range(count - 1):
        load = load + weight * (now.G.T @ (gamma - now.G @ v_dot))
        v_dot = cho_solve(factor, load, check_finite=False)
    return np.asarray(v_dot)


# -------------------------------------------------------------------- looking back at a run


def unconverged(
    mechanical: Mechanical,
    problem: Any,
    t: Array,
    y: Array,
    stabilise: Stabiliser,
    weight: float,
    count: int,
) -> tuple[float, float]:
    """How much of G v the iterations left unaccounted for, relative to |G| |v|, and when most.

    The residual γ* − G v̇ is an acceleration of the gap that nothing asked for; its integral over
    the steps of a run is the velocity of the gap that it made.
    """
    left, sizes = np.empty((len(t), mechanical.m)), np.zeros(mechanical.m)
    strongest = 0.0  # acceleration of a gap that forces would cause, or velocities ask for
    for start in range(0, len(t), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        terms, targets = [], []
        for when, state in zip(t[some], y[:, some].T):
            q, v = problem.split(float(when), state)
            now = mechanical.terms(float(when), q, v, problem.params)
            terms.append(now)
            targets.append(stabilise(now.g, now.G @ v - now.nu, now.gamma))
            sizes = np.maximum(sizes, np.abs(now.G) @ np.abs(v))
        M, G, f = (np.array([getattr(now, name) for now in terms]) for name in ("M", "G", "f"))
        left[some] = _residuals(M, G, f, np.array(targets), weight, count)
        free = np.abs(G) @ np.abs(np.linalg.solve(M, f[:, :, None]))
        strongest = max(strongest, float(free.max()), float(np.abs(targets).max()))
    steps = np.abs(np.diff(t))[:, None]
    made = np.sum(steps * (left[1:] + left[:-1]) / 2, axis=0)
    least = max(AT_REST * float(sizes.max()), SLOW * strongest * float(np.ptp(t)), TINY)
    relative = float(np.max(made / np.maximum(sizes, least)))
    return relative, float(t[np.argmax(left.max(axis=1))])


def _residuals(M: Array, G: Array, f: Array, gamma: Array, weight: float, count: int) -> Array:
    """|γ* − G v̇| after the iterations, at many places at once."""
    pull = G.transpose(0, 2, 1)
    matrix = M + weight * (pull @ G)
    load, left = f[:, :, None], gamma[:, :, None]
    for _ in range(count):
        load = load + weight * (pull @ left)
        left = gamma[:, :, None] - G @ np.linalg.solve(matrix, load)
    return np.abs(left[:, :, 0])


def _review(
    mechanical: Mechanical, known_gains: tuple[float, float], weight: float, count: int
) -> Callable[..., Any]:
    def review(problem: Any, t: Array, y: Array, rtol: float | None) -> Any:
        from ...runs.solution import Status

        if rtol is None or len(t) < 2 or not np.isfinite(y).all():
            return None
        stabilise = feedback(*known_gains, direction(problem.t_span))
        if len(t) > MOST:
            some = np.linspace(0, len(t) - 1, MOST).astype(int)
            t, y = t[some], y[:, some]
        relative, when = unconverged(mechanical, problem, t, y, stabilise, weight, count)
        if not relative > TOLERANCES * rtol + ROUNDING:
            return None
        return Status.SINGULAR_MATRIX, (
            f"the iteration of the augmented Lagrangian did not converge around t = {when:.6g}, "
            "where the constraints are close to dependent (a singular position): velocities "
            f"changed by {relative:.1g} of their size for no reason, where rtol = {rtol:.1g}. Give "
            f"a larger penalty (it was {weight:.3g}) or more iterations ({count}), or take another "
            "formulation"
        )

    return review
