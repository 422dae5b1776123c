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
from ..feedback import gains, positive
from ..options import number
from ..problem import Formulation, make_problem, traced_or
from ..system import Mechanical
from .table import EXPLICIT, register

__all__ = ["augmented", "unconverged"]

Array = NDArray[np.float64]

PENALTY = 1e3  # of the augmented Lagrangian, relative to the inertia that a constraint sees
ITERATIONS = 6  # each gains the factor PENALTY, until rounding
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
    alpha, beta = gains(alpha, beta, T_stab, step)
    nq, nv = mechanical.nq, mechanical.nv
    now = mechanical.terms(mechanical.t_span[0], mechanical.q0, mechanical.v0)
    if penalty is None:
        known = Weighted(now.M, now.G, mechanical.rank_tolerance)
        penalty = PENALTY / float(known.s[-1]) ** 2
    weight = positive("penalty", penalty, "a number")
    if number("iterations", iterations, "a whole number") < 1 or int(iterations) != iterations:
        raise ValueError(f"iterations must be a whole number, at least 1, got {iterations}")
    count = int(iterations)

    def directed(way: int) -> dict[str, Any]:
        iteration = Iteration(mechanical, (way * alpha, beta), weight, count)
        f = iteration.traced(iteration.slope, nq + nv)
        # What the iteration leaves unfinished is too little to matter in Newton's method.
        return {"f": f, "jac": mechanical.ways.exact_slopes("augmented", f, iteration.gains)}

    return make_problem(
        mechanical,
        "augmented",
        y0=np.concatenate([mechanical.q0, mechanical.v0]),
        names=mechanical.position_names + mechanical.velocity_names,
        **directed(direction(mechanical.t_span)),
        directed=directed,
        own_review=_review(mechanical, (alpha, beta), weight, count),
    )


class Iteration:
    """The iterated equations of a system, on numbers or symbols."""

    def __init__(
        self, mechanical: Mechanical, gains: tuple[float, float], weight: float, count: int
    ) -> None:
        self.mechanical, self.gains = mechanical, gains
        self.weight, self.count = weight, count

    def traced(self, function: Callable[..., Any], outputs: int) -> Callable[..., Any]:
        """A method of (t, y, p), traced where possible."""
        mechanical = self.mechanical
        key = (function.__name__, self.gains, self.weight, self.count)
        return traced_or(
            mechanical,
            mechanical.parts.traceable,
            function,
            mechanical.nq + mechanical.nv,
            function,
            outputs,
            key,
        )

    def slope(self, t: Any, y: Any, p: Any = None) -> Any:
        """[q̇; v̇]."""
        nq = self.mechanical.nq
        p = self.mechanical.params if p is None else p
        v_dot, _, _ = self._iterated(t, y, p)
        return np.concatenate([self.mechanical.parts.rate(t, y[:nq], y[nq:], p), v_dot])

    def left_over(self, t: Any, y: Any, p: Any) -> Any:
        """What the iterations left of each constraint, and what to compare it with.

        |γ* − G v̇| after the iterations, |G| |v|, and the acceleration of
        the gap that forces would cause or velocities ask for.
        """
        v_dot, (M, f, G, gamma), solve = self._iterated(t, y, p)
        size = abs(G)
        caused = np.maximum(size @ abs(solve(M)(f)), abs(gamma))
        left, moving = abs(gamma - G @ v_dot), size @ abs(y[self.mechanical.nq :])
        return np.concatenate([left, moving, caused])

    def _iterated(self, t: Any, y: Any, p: Any) -> tuple[Any, Any, Any]:
        """v̇, the matrices, and how systems are solved."""
        nq, weight = self.mechanical.nq, self.weight
        q, v = y[:nq], y[nq:]
        symbolic = np.asarray(y).dtype == object
        if symbolic:
            M, f, g, G, gamma, nu = map(np.asarray, self.mechanical.ways.terms(t, q, v, p))
        else:
            now = self.mechanical.terms(t, q, v, p)
            M, f, g, G, gamma, nu = now.M, now.f, now.g, now.G, now.gamma, now.nu
        solve = _eliminated if symbolic else _factored
        alpha, beta = self.gains
        gamma = gamma - 2 * alpha * (G @ v - nu) - beta * beta * g
        solution = solve(M + weight * (G.T @ G))
        load = f + weight * (G.T @ gamma)
        v_dot = solution(load)
        for _ in range(self.count - 1):
            load = load + weight * (G.T @ (gamma - G @ v_dot))
            v_dot = solution(load)
        return v_dot, (M, f, G, gamma), solve


def _eliminated(A: Any) -> Callable[[Any], Any]:
    """A⁻¹ of symbols."""
    return Factor(A).solve


def _factored(A: Array) -> Callable[[Array], Array]:
    """A⁻¹ of numbers; NaN where a step went astray, so that a shorter one is tried."""
    from scipy.linalg import cho_factor, cho_solve

    if not np.isfinite(A).all():
        return lambda b: np.full(len(b), np.nan)
    factor = cho_factor(A, check_finite=False)
    return lambda b: np.asarray(cho_solve(factor, b, check_finite=False))


# -------------------------------------------------------------------- looking back at a run


def unconverged(
    left_over: Callable[..., Any], problem: Any, t: Array, y: Array
) -> tuple[float, float]:
    """How much of G v the iterations left unaccounted for, relative to |G| |v|, and when most.

    The residual γ* − G v̇ is an acceleration of the gap that nothing asked for; its integral over
    the steps of a run is the velocity of the gap that it made.
    """
    states = np.ascontiguousarray(y.T)
    found = np.array([left_over(s, x, problem.params) for s, x in zip(t.tolist(), states)])
    left, moving, caused = np.split(found, 3, axis=1)
    sizes, strongest = moving.max(axis=0), float(caused.max())
    steps = np.abs(np.diff(t))[:, None]
    made = np.sum(steps * (left[1:] + left[:-1]) / 2, axis=0)
    least = max(AT_REST * float(sizes.max()), SLOW * strongest * float(np.ptp(t)), TINY)
    relative = float(np.max(made / np.maximum(sizes, least)))
    return relative, float(t[np.argmax(left.max(axis=1))])


def _review(
    mechanical: Mechanical, gains: tuple[float, float], weight: float, count: int
) -> Callable[..., Any]:
    alpha, beta = gains
    looks: dict[int, Callable[..., Any]] = {}  # made when the first run is over

    def review(problem: Any, t: Array, y: Array, rtol: float | None) -> Any:
        from ...runs.solution import Status

        if rtol is None or len(t) < 2 or not np.isfinite(y).all():
            return None
        way = direction(problem.t_span)
        if way not in looks:
            iteration = Iteration(mechanical, (way * alpha, beta), weight, count)
            looks[way] = iteration.traced(iteration.left_over, 3 * mechanical.m)
        if len(t) > MOST:
            some = np.linspace(0, len(t) - 1, MOST).astype(int)
            t, y = t[some], y[:, some]
        relative, when = unconverged(looks[way], problem, t, y)
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
