"""The generalized-α method for mechanical systems with constraints, on vectors and Lie groups.

Chung and Hulbert's method in the form of Arnold and Brüls (2007; Lie groups 2010), which solves the
index-3 equations at the end of each step,

    M v̇₁ = f(t₁, q₁, v₁) + G(q₁)ᵀ λ₁,   0 = g(t₁, q₁),
    q₁ = q₀ ⊞ h (v₀ + h (½ − β) a₀ + h β a₁),   v₁ = v₀ + h (1 − γ) a₀ + h γ a₁,
    (1 − α_m) a₁ + α_m a₀ = (1 − α_f) v̇₁ + α_f v̇₀,

with a, an auxiliary acceleration, belonging to time t + (α_m − α_f) h. The parameters follow from
the spectral radius ρ∞ at infinite frequency: 1 damps nothing, 0 removes high frequencies within a
step. Order 2 in q, v and λ.

Newton's matrix is scaled: with the constraint divided by β'= h²β(1 − α_f)/(1 − α_m) it is

    [[M + γ'C + β'K, −Gᵀ], [G, 0]],

which stays well-conditioned as h → 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dae.acceleration import Weighted
from ...dae.problem import Formulation
from ...problem import IVP
from ...stepping.engine import Options
from ...tracing import GraphTooLargeError, Traced
from .engine import ConstrainedEngine, ConstrainedStep, system_of

__all__ = ["GeneralizedAlpha"]

Array = NDArray[np.float64]

MOST_ITERATIONS = 30
SETTLED = 1e-13  # fixed steps: Newton goes on until changes are rounding, relative to the state
SETTLED_ADAPTIVE = 1e-3  # adaptive steps: relative to the tolerance
ROUNDING = 1e-14  # … and relative to positions: what no further change would improve
STILL_THE_SAME = 1e-9  # a state so near to the end of the last step continues it
DIFFERENCE = float(np.sqrt(np.finfo(float).eps))
SINGULAR = 1e-13  # dependent constraints: relative singular values below are dropped


class GeneralizedAlpha:
    """Generalized-α of order 2, for formulations of a :class:`~integrators.dae.Mechanical`.

    Parameters
    ----------
    rho_inf
        Spectral radius at infinite frequency, from 0 (strongest damping) to 1 (none). With
        constraints it must be below 1, or errors of λ never decay.

    Notes
    -----
    The formulation may be "index3", whose λ it fills, or "index1", "projected" and so on, of which
    it takes just the system; velocity constraints hold to second order only, unless projected.
    With a fixed step the auxiliary acceleration is carried along. Adaptive steps compute it afresh,
    compare one step with two of half the length, and put velocities back on G v = ν after each:
    accelerations of a start beside it would force them back at once, in any step however short.

    Examples
    --------
    >>> GeneralizedAlpha(0.8).order
    2
    >>> GeneralizedAlpha(0.5)
    GeneralizedAlpha(0.5)
    """

    order = 2

    def __init__(self, rho_inf: float = 0.8) -> None:
        rho = float(rho_inf)
        if not 0 <= rho <= 1:
            raise ValueError(f"rho_inf must be between 0 and 1, got {rho_inf}")
        if rho == 1:
            raise ValueError(
                "rho_inf = 1 damps nothing, and errors of the multipliers would never decay; take "
                "0.9 or less"
            )
        self.rho_inf = rho
        self.alpha_m = (2 * rho - 1) / (rho + 1)
        self.alpha_f = rho / (rho + 1)
        self.gamma = 0.5 + self.alpha_f - self.alpha_m
        self.beta = (self.gamma + 0.5) ** 2 / 4
        self.name = f"GeneralizedAlpha({rho:g})"

    def bind(self, problem: IVP, options: Options) -> ConstrainedEngine:
        """Bind the method to a problem."""
        formulation = system_of(problem, self.name)
        system, t0 = formulation.mechanical, problem.t_span[0]
        if system.own_states:
            raise ValueError(
                f"{self.name} knows positions, velocities and multipliers, but this system has "
                f"{system.own_states} states of its own (of a motor, a filter, …); use another "
                "formulation and method, such as RADAU5 with formulation='ggl'"
            )
        still = np.asarray(system.parts.rate(t0, system.q0, np.zeros(system.nv), system.params))
        if np.any(still != 0.0):
            raise ValueError(
                f"{self.name} needs positions that rest when v = 0; rate(t0, q0, 0) is {still}"
            )
        step = GeneralizedAlphaStep(self, formulation, options)
        return ConstrainedEngine(step, formulation, options)

    def __repr__(self) -> str:
        return self.name


class GeneralizedAlphaStep(ConstrainedStep):
    """Generalized-α bound to a system."""

    order = 2
    estimate_order = 2

    def __init__(self, method: GeneralizedAlpha, problem: Formulation, options: Options) -> None:
        super().__init__(problem, options)
        self.alpha_m, self.alpha_f = method.alpha_m, method.alpha_f
        self.gamma, self.beta = method.gamma, method.beta
        self.share = (1 - method.alpha_f) / (1 - method.alpha_m)  # ∂a₁/∂v̇₁
        self.options = options
        self.memory: tuple[Array, Array, Array, float] | None = None  # [q; v], a, v̇, h
        self.residual = self._traced_residual()

    # ------------------------------------------------------------ steps

    def advance(
        self, t: float, q: Array, v: Array, multipliers: Array | None, h: float
    ) -> tuple[Array, Array, Array, Array | None]:
        """One step; adaptive: also two of half the length, whose result is kept."""
        if not self.fixed:
            v = self._tangent(t, q, v)
        a, v_dot, force = self._auxiliary(t, q, v, h)
        force = force if multipliers is None else multipliers
        first = self._one(t, q, v, a, v_dot, force, h)
        if self.fixed or first is None:
            if first is None:
                return self._failed(t, h)
            q1, v1, found, a1, v_dot1 = first
            self.memory = (np.concatenate([q1, v1]), a1, v_dot1, h)
            return q1, v1, found, None
        half = h / 2
        a, v_dot, force = self._fresh(t, q, v, half)
        middle = self._one(t, q, v, a, v_dot, force, half)
        if middle is None:
            return self._failed(t, h)
        # Started afresh, too: the errors of both halves, and of the whole, have the same constant.
        v_middle = self._tangent(t + half, middle[0], middle[1])
        a, v_dot, force = self._fresh(t + half, middle[0], v_middle, half)
        second = self._one(t + half, middle[0], v_middle, a, v_dot, force, half)
        if second is None:
            return self._failed(t, h)
        q2, found = second[0], second[2]
        v2 = self._tangent(t + h, q2, second[1])
        v1 = self._tangent(t + h, first[0], first[1])
        error = (np.concatenate([q2, v2]) - np.concatenate([first[0], v1])) / (2**self.order - 1)
        # Velocities, whose errors are the larger ones, are extrapolated; positions stay closed.
        v2 = self._tangent(t + h, q2, v2 + error[self.system.nq :])
        return q2, v2, found, error

    def _tangent(self, t: float, q: Array, v: Array) -> Array:
        """The velocity nearest to v, in the norm of the mass, with G v = ν."""
        now = self.terms(t, q, v)
        known = Weighted(now.M, now.G, self.system.rank_tolerance)
        return np.asarray(v + known.accelerate(np.zeros_like(v), now.nu - now.G @ v)[0])

    def _failed(self, t: float, h: float) -> tuple[Array, Array, Array, Array | None]:
        if self.fixed:
            raise ArithmeticError(
                f"Newton's iteration did not converge in the step of {h:.3g} from t = {t:.9g}; "
                "shorten the step, or look for a singular position"
            )
        nothing = np.full(self.system.nq, np.nan), np.full(self.system.nv, np.nan)
        error = np.full(self.system.nq + self.system.nv, np.nan)
        return *nothing, np.full(self.system.m, np.nan), error  # the loop tries a shorter step

    def _auxiliary(self, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """a and v̇ at the start of a step: from the last step if this one continues it."""
        if self.memory is not None:
            x, a, v_dot, last = self.memory
            here = np.concatenate([q, v])
            close = np.abs(here - x).max() <= STILL_THE_SAME * max(1.0, np.abs(x).max())
            if close and abs(h - last) <= STILL_THE_SAME * abs(h):
                return a, v_dot, self._last_multipliers
        return self._fresh(t, q, v, h)

    def _fresh(self, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """a = v̇(t + (α_m − α_f) h) to second order, extrapolated from a point ahead."""
        v_dot, multipliers = self.acceleration(t, q, v)
        ahead = (self.alpha_f - self.alpha_m) * h
        place = self.system.moved(t, q, ahead * v, self.p)
        later, _ = self.acceleration(t + ahead, place, v + ahead * v_dot)
        return 2 * v_dot - later, v_dot, multipliers

    def _one(
        self, t: float, q: Array, v: Array, a: Array, v_dot: Array, multipliers: Array, h: float
    ) -> tuple[Array, Array, Array, Array, Array] | None:
        """q₁, v₁, λ₁, a₁, v̇₁; None if Newton's iteration fails."""
        n, end = self.system.nv, t + h
        slope, force = v_dot.copy(), multipliers.copy()
        beta, gamma = h * h * self.beta * self.share, h * self.gamma * self.share
        matrix: Array | None = None
        before = np.inf
        for iteration in range(MOST_ITERATIONS):
            a1 = ((1 - self.alpha_f) * slope + self.alpha_f * v_dot - self.alpha_m * a) / (
                1 - self.alpha_m
            )
            move = h * (v + h * ((0.5 - self.beta) * a + self.beta * a1))
            q1 = self.system.moved(t, q, move, self.p)
            v1 = v + h * ((1 - self.gamma) * a + self.gamma * a1)
            now = self.terms(end, q1, v1)
            gap = now.M @ slope - now.f - now.G.T @ force
            if iteration in (0, 6, 12):  # a new matrix if the old one has not served well
                C, K = self._stiffness(end, q1, v1, slope, force, gap)
                matrix = np.block(
                    [
                        [now.M + gamma * C + beta * K, -now.G.T],
                        [now.G, np.zeros((len(now.g), len(now.g)))],
                    ]
                )
            assert matrix is not None
            open_ = now.g / beta
            if not self.system.holonomic.all():  # rolling and the like: G v₁ = ν instead
                slip = (now.G @ v1 - now.nu) / gamma
                open_ = np.where(self.system.holonomic, open_, slip)
            change = self._solve(matrix, np.concatenate([-gap, -open_]))
            if not np.all(np.isfinite(change)):
                return None
            slope, force = slope + change[:n], force + change[n:]
            if self._settled(change[:n], force, change[n:], q1, v1, beta, gamma, before):
                a1 = a1 + self.share * change[:n]
                move = move + beta * change[:n]
                self._last_multipliers = force
                q1 = self.system.moved(t, q, move, self.p)
                return q1, v1 + gamma * change[:n], force, a1, slope
            before = float(np.abs(change[:n]).max())
        return None

    def _settled(
        self,
        change: Array,
        force: Array,
        force_change: Array,
        q: Array,
        v: Array,
        beta: float,
        gamma: float,
        before: float,
    ) -> bool:
        """Whether the last change is as small as it need or can be."""
        size = float(np.abs(change).max())
        moved, sped = abs(beta) * size, abs(gamma) * size
        pulled = float(np.abs(force_change).max())
        if self.fixed:
            limit = SETTLED
            small = moved <= limit * max(np.abs(q).max(), 1e-3)
            small = small and sped <= limit * max(np.abs(v).max(), 1e-3)
            small = small and pulled <= 1e-9 * max(np.abs(force).max(), 1.0)
            return bool(small or (size > 0.5 * before and sped <= 1e-8 * max(1, np.abs(v).max())))
        atol, rtol = float(np.min(self.options.atol)), self.options.rtol
        # In a very short step rounding of positions, over h², is all that is left of changes.
        if np.isfinite(before) and moved <= ROUNDING * max(np.abs(q).max(), 1e-3):
            return True
        small = moved <= SETTLED_ADAPTIVE * (atol + rtol * np.abs(q).max())
        return bool(small and sped <= SETTLED_ADAPTIVE * (atol + rtol * np.abs(v).max()))

    def _solve(self, matrix: Array, b: Array) -> Array:
        if self.full_rank:
            try:
                return np.asarray(np.linalg.solve(matrix, b), dtype=float)
            except np.linalg.LinAlgError:
                return np.full(b.size, np.nan)
        return np.asarray(np.linalg.lstsq(matrix, b, rcond=SINGULAR)[0], dtype=float)

    # ------------------------------------------------------------ derivatives

    def _traced_residual(self) -> Any:
        """∂(M v̇ − f − Gᵀλ)/∂[q; v] and ∂q̇/∂v as one traced function, if that is possible."""
        system = self.system
        if not system.is_traced:
            return None
        parts, nq, nv, m, k = system.parts, system.nq, system.nv, system.m, self.p.size

        def residual(t: Any, x: Any, r: Any) -> Any:
            q, v = x[:nq], x[nq:]
            slope, force, p = r[:nv], r[nv : nv + m], r[nv + m :]
            value = parts.mass(t, q, p) @ slope - parts.force(t, q, v, p)
            value = value - np.asarray(parts.jacobian(t, q, p)).T @ force
            return np.concatenate([value, parts.rate(t, q, v, p)])

        try:
            made = Traced(residual, n=nq + nv, params=nv + m + k, outputs=nv + nq).jacobian()
            made.machine_code()
        except GraphTooLargeError:
            return None
        return made

    def _stiffness(
        self, t: float, q: Array, v: Array, slope: Array, force: Array, gap: Array
    ) -> tuple[Array, Array]:
        """C = ∂r/∂v and K = ∂r/∂q along velocities, of r = M v̇ − f − Gᵀλ."""
        system = self.system
        nq, nv = system.nq, system.nv
        if self.residual is not None:
            J = self.residual(t, np.concatenate([q, v]), np.concatenate([slope, force, self.p]))
            return J[:nv, nq:], J[:nv, :nq] @ J[nv:, nq:]
        C, K = np.zeros((nv, nv)), np.zeros((nv, nv))

        def value(position: Array, velocity: Array) -> Array:
            now = self.terms(t, position, velocity)
            return np.asarray(now.M @ slope - now.f - now.G.T @ force)

        for j in range(nv):
            e = np.zeros(nv)
            e[j] = DIFFERENCE * max(1.0, abs(v[j]))
            C[:, j] = (value(q, v + e) - gap) / e[j]
            e[j] = DIFFERENCE
            K[:, j] = (value(system.moved(t, q, e, self.p), v) - gap) / e[j]
        return C, K
