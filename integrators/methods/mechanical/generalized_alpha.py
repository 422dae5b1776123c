"""The generalized-α method for mechanical systems with constraints, on vectors and Lie groups.

Chung and Hulbert's method in the form of Arnold and Brüls (2007; Lie groups 2010), which solves the
index-3 equations at the end of each step,

    M v̇₁ = f(t₁, q₁, v₁) + G(q₁)ᵀ λ₁,   0 = g(t₁, q₁),
    q₁ = q₀ ⊞ h (v₀ + h (½ − β) a₀ + h β a₁),   v₁ = v₀ + h (1 − γ) a₀ + h γ a₁,
    (1 − α_m) a₁ + α_m a₀ = (1 − α_f) v̇₁ + α_f v̇₀,

with a, an auxiliary acceleration, belonging to time t + (α_m − α_f) h. The parameters follow from
the spectral radius ρ∞ at infinite frequency: 1 damps nothing, 0 removes high frequencies within a
step. Order 2 in q, v and λ.

Newton's matrix is scaled: with the constraint divided by β'= h²β(1 − α_f)/(1 − α_m), and the others
multiplied by M⁻¹, it is

    [[1 − γ' ∂v̇/∂v − β' ∂v̇/∂q, −M⁻¹Gᵀ], [G, 0]],

which stays well-conditioned as h → 0. Equations and derivatives are those of the form of index 3,
machine code where the system can be traced; steps are kernels of the time loop (``alpha_step``).
"""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dae.formulations.multipliers import with_multipliers
from ...dae.problem import Formulation
from ...problem import IVP
from ...stepping import state as at
from ...stepping.engine import Options
from ...stepping.workspace import Constrained
from ..runge_kutta.implicit.algebra import JacobianSource
from ..user.step import custom_dense, nothing
from .alpha_step import (
    ACCELERATE,
    ALPHA_F,
    ALPHA_M,
    ATOL,
    BETA,
    CODES,
    EQUATIONS,
    GAMMA,
    LEAST_SQUARES,
    MOVE,
    NUMBERS,
    SETTLE,
    SLOPES,
    alpha_double_step,
    alpha_step,
)
from .engine import ConstrainedEngine, system_of
from .functions import SystemFunctions

__all__ = ["GeneralizedAlpha"]

Array = NDArray[np.float64]

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
    States of the first order (a motor's current, say) are treated as velocities are.
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

    def bind(self, problem: IVP, options: Options) -> GeneralizedAlphaEngine:
        """Bind the method to a problem."""
        formulation = system_of(problem, self.name)
        system, t0 = formulation.mechanical, problem.t_span[0]
        still = np.asarray(system.parts.rate(t0, system.q0, np.zeros(system.nv), system.params))
        still = still[: system.nq - system.own_states]
        if np.any(still != 0.0):
            raise ValueError(
                f"{self.name} needs positions that rest when v = 0; rate(t0, q0, 0) is {still}"
            )
        return GeneralizedAlphaEngine(self, formulation, options)

    def __repr__(self) -> str:
        return self.name


class GeneralizedAlphaEngine(ConstrainedEngine):
    """Generalized-α bound to a system, whose functions are machine code where they can be."""

    def __init__(self, method: GeneralizedAlpha, problem: Formulation, options: Options) -> None:
        self.formulation = problem
        super().__init__(method, problem, options)

    def _setup(self) -> None:
        self.order = self.estimate_order = 2
        fixed = self.options.fixed
        self.state.estimate_kind = at.ESTIMATE_NONE if fixed else at.ESTIMATE_EMBEDDED
        self.estimate = "none (fixed step)" if fixed else "two steps of half the length"
        self._use_hermite()

    def _kernels(self) -> tuple[Any, ...]:
        step = alpha_step if self.options.fixed else alpha_double_step
        return Constrained, step, nothing, custom_dense, nothing

    def _workspace(self, shared: dict[str, Any]) -> Constrained:
        system, method = self.system, self.method
        nq, nv, m = system.nq, system.nv, system.m
        count, n = system.own_states + nv, nq + nv
        numbers = np.zeros(NUMBERS)
        numbers[[ALPHA_M, ALPHA_F]] = method.alpha_m, method.alpha_f
        numbers[[BETA, GAMMA]] = method.beta, method.gamma
        numbers[ATOL] = float(np.min(self.options.atol))
        lengths = {
            **dict.fromkeys(("point", "value"), n + m),
            **dict.fromkeys(("place", "base", "kept_base", "begin", "end"), n),
            **dict.fromkeys(("s_start", "s", "a", "a_end"), count),
            **{"moved": nq, "accelerated": count + m, "settled": nv, "force": m},
            "change": count + m,
        }
        arrays: dict[str, Any] = {name: np.zeros(length) for name, length in lengths.items()}
        arrays.update(
            numbers=numbers,
            holonomic=np.array(system.holonomic, dtype=np.int64),
            J=np.zeros((n + m, n + m)),
            matrix=np.zeros((count + m, count + m)),
            pivots=np.zeros(count + m, dtype=np.int64),
            codes=np.zeros(CODES, dtype=np.int64),
            native=np.ones(CODES, dtype=np.int64),
        )
        self._enter_functions(arrays)
        return Constrained(**shared, **arrays)

    def _enter_functions(self, arrays: dict[str, Any]) -> None:
        """Addresses of the functions of the system, with their buffers."""
        system, p = self.system, self.problem.params
        functions = SystemFunctions(system)
        equations: Any = with_multipliers(system, "index3", dependent=True).with_(params=p)
        wanted = {
            EQUATIONS: (equations.f, "point", "value"),
            MOVE: (functions.move, "place", "moved"),
            ACCELERATE: (functions.accelerate, "base", "accelerated"),
            SETTLE: (functions.settle, "base", "settled"),
        }
        self._functions = []  # keep machine code alive
        for place, (function, given, found) in wanted.items():
            native = hasattr(function, "machine_code")
            arrays["native"][place] = native
            if native:
                self._functions.append(function.machine_code())
                arrays["codes"][place] = self._functions[-1].address
            else:
                arrays["codes"][place] = self._python(function, arrays[given], arrays[found])
        part: Any = _Equations(
            weakref.proxy(self), equations, arrays["point"], arrays["native"][EQUATIONS]
        )
        self._source = JacobianSource(part)
        arrays["codes"][SLOPES] = self._source.address(arrays["J"], None)
        arrays["native"][SLOPES] = part.state.jacobian_native
        if not functions.full_rank:
            matrix, change = arrays["matrix"], arrays["change"]

            def solve(t: float) -> None:
                change[:] = np.linalg.lstsq(matrix, change, rcond=SINGULAR)[0]

            arrays["native"][LEAST_SQUARES] = 0
            arrays["codes"][LEAST_SQUARES] = self.trampoline(solve)

    def _python(self, function: Any, given: Array, found: Array) -> int:
        p = self.problem.params

        def evaluate(t: float) -> None:
            found[:] = function(t, given.copy(), p)

        return self.trampoline(evaluate)


class _Equations:
    """The engine as the Jacobian of the equations sees it."""

    is_fully_coupled = False
    complex = False

    def __init__(self, engine: Any, problem: IVP, x: Array, native: bool) -> None:
        self.engine, self.problem, self.options = engine, problem, engine.options
        self.x, self.n, self.trampoline = x, x.size, engine.trampoline
        self.f = problem.bind(problem.f)
        self.state = SimpleNamespace(
            f_native=int(native), jacobian_native=0, constant_jacobian=0, nfev=0
        )

    def buffer_views(self) -> tuple[Array, Array]:
        """The argument of the equations, twice."""
        return self.x, self.x

    def to_real(self, y: Array) -> Array:
        """States are real."""
        return y

    from_real = to_real

    def typical_size(self) -> Array:
        """No size is known below which a component does not matter."""
        return np.zeros(self.n)

    def slope(self, t: float, y: Array) -> Array:
        """The equations."""
        return np.asarray(self.f(t, y), dtype=float)
