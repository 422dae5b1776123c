"""An implicit tableau bound to a problem: estimate, dense output, Newton's iteration, arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....problem import IVP
from ....stepping import state as at
from ....stepping.control import Controller, Predictive
from ....stepping.engine import Engine, Options
from ....stepping.workspace import Implicit
from ....tableau import Tableau
from ....tableau.extension import (
    Extension,
    in_powers,
)
from ....tableau.implicit_extension import implicit_extension, implicit_order, inner_check
from ..divided import has_explicit_stage
from .algebra import LARGEST_OWN_LU, JacobianSource, LinearAlgebra
from .coupled import coupled_accept, newton_coupled
from .diagonal import diagonal_accept, newton_diagonal
from .extra_stages import implicit_dense
from .inside import implicit_refine, watch_inside
from .predictor import extrapolation_weights, stage_predictor, through_last_stages
from .step import implicit_step
from .surprise import checked_accept, checked_step

__all__ = ["ImplicitEngine"]

Array = NDArray[np.float64]

DIAGONALISABLE = 1e10  # a larger condition number of T: solve the s·n system as a whole
MAX_NEWTON_ADAPTIVE = 7  # for three stages; RADAU adds 2.5 for each further one
MAX_NEWTON_FIXED = 50
LOOSE = 1e-3  # relative tolerances above it are taken as they are
SMALLEST_RTOL = 1e-15  # below, steps would only add up rounding errors
STAGE_TOLERANCE = 0.01  # of the step's, for stages one after the other
FIXED_NEWTON_RTOL = 1e-16  # fixed steps: iterate to round-off, so that only h decides the error


class ImplicitEngine(Engine):
    """An implicit tableau bound to a problem."""

    default_controller: Controller = Predictive()
    least_power = 2 / 3
    """Tolerances are never relaxed more than for three stages: under order reduction further
    stages bring nothing, and the estimate is all there is."""

    def __init__(self, tableau: Tableau, problem: IVP, options: Options) -> None:
        self.tableau = tableau
        self.rtol_used: Callable[[float], float] = float  # from the one that was asked for
        asked = options.atol
        super().__init__(problem, options)
        # The estimate may have changed tolerances; another run with this rtol changes them alike.
        self._atol_factor = float(options.atol[0] / asked[0])
        self._rtol_used = float(self.state.rtol)

    def rebind(self, problem: IVP, options: Options) -> None:
        """Start again with a problem and options that differ in numbers only, but not in rtol."""
        options.atol = options.atol * self._atol_factor
        super().rebind(problem, options)
        self.state.rtol = self._rtol_used

    @property
    def linear_solver(self) -> str:  # type: ignore[override]
        """How linear systems are solved, in words."""
        return "dense LU" if self.algebra is None else self.algebra.description

    @property
    def is_fully_coupled(self) -> bool:
        """Whether Newton's equations of all stages are solved as one system."""
        return bool(self.state.coupling == at.COUPLING_FULL)

    def _setup(self) -> None:
        tableau, state = self.tableau, self.state
        A, b, c = tableau.arrays
        self.order = tableau.order
        state.stages = tableau.stages
        state.fsal = int(tableau.fsal)
        state.has_mass = int(self.problem.mass is not None)
        self._choose_coupling(A)
        self.e = np.zeros(tableau.stages)
        state.estimate_block = -1
        if self.options.fixed:
            state.estimate_kind = at.ESTIMATE_NONE
            self.estimate_order = self.order
            self.estimate = "none (fixed step)"
        else:
            self._choose_estimate(b, c)
        self._look_at_end()
        self._choose_dense(c)
        self._look_inside()
        self._set_newton()

    # ------------------------------------------------------------ linear systems

    def _choose_coupling(self, A: Array) -> None:
        s = self.tableau.stages
        none = np.zeros((s, 0), dtype=np.complex128)
        self.T_real, self.T_real_inverse = np.zeros((s, 0)), np.zeros((0, s))
        self.T_complex, self.T_complex_inverse = none, none.T.copy()
        self.real_shift = np.zeros(0)
        self.complex_shift = np.zeros(0, dtype=np.complex128)
        self.block_of = np.full(s, -1, dtype=np.int64)
        if self.tableau.is_dirk:
            self.state.coupling = at.COUPLING_DIAGONAL
            shifts: list[float] = []
            for i, shift in enumerate(np.diag(A)):
                if shift != 0.0:
                    if shift not in shifts:
                        shifts.append(float(shift))
                    self.block_of[i] = shifts.index(shift)
            self.real_shift = np.array(shifts)
        else:
            eigenvalues, T = np.linalg.eig(A)
            if np.linalg.cond(T) < DIAGONALISABLE:
                self.state.coupling = at.COUPLING_TRANSFORMED
                T_inverse = np.linalg.inv(T)
                real = np.abs(eigenvalues.imag) <= 1e-13 * np.abs(eigenvalues).max()
                upper = ~real & (eigenvalues.imag > 0)
                self.real_shift = np.ascontiguousarray(eigenvalues[real].real)
                self.complex_shift = eigenvalues[upper].astype(np.complex128)
                # Eigenvectors of real eigenvalues come out real up to rounding.
                self.T_real = np.ascontiguousarray(T[:, real].real)
                self.T_real_inverse = np.ascontiguousarray(T_inverse[real].real)
                self.T_complex = np.ascontiguousarray(T[:, upper], dtype=np.complex128)
                self.T_complex_inverse = np.ascontiguousarray(T_inverse[upper], dtype=np.complex128)
            else:
                self.state.coupling = at.COUPLING_FULL
        if self.problem.mass is not None and self._explicit_part():
            raise ValueError(
                f"{self.tableau.name or 'this tableau'} has an explicit stage (A is singular), "
                "which a singular mass matrix does not allow; use Radau IIA, Lobatto IIIC or an "
                "SDIRK"
            )

    def _explicit_part(self) -> bool:
        if self.state.coupling == at.COUPLING_DIAGONAL:
            return bool(np.any(self.block_of < 0))
        return has_explicit_stage(self.tableau)

    # ------------------------------------------------------------ error estimate

    def _choose_estimate(self, b: Array, c: Array) -> None:
        tableau, state = self.tableau, self.state
        if tableau.b_hat is not None:
            assert tableau.embedded_order is not None
            self.estimate_order = min(tableau.order, tableau.embedded_order)
            self.estimate = "embedded method"
            state.estimate_kind = at.ESTIMATE_EMBEDDED
            weights = tableau.error_weights
            assert weights is not None
            self.e = -weights
            if tableau.embedded_order > tableau.order:
                self._tighten()
            if state.coupling == at.COUPLING_DIAGONAL and len(self.real_shift) == 1:
                state.estimate_block = 0
                self.estimate = "embedded method, filtered by (M − hγJ)⁻¹"
        elif self._has_quadrature_estimate(c):
            self._quadrature_estimate(b)
        else:
            self._use_doubling()

    def _has_quadrature_estimate(self, c: Array) -> bool:
        """Whether f(t, y) beside the stages makes a formula that sees the whole step.

        With a first stage at the start, only that stage and f(t, y) remain in the difference: a
        kink later in the step would not show.
        """
        tableau = self.tableau
        if tableau.is_confluent or not (tableau.is_fully_implicit or tableau.stages == 1):
            return False
        return bool(c[0] != 0.0)

    def _filter_block(self) -> int:
        """Number of a real block M − hγJ that can filter estimates, a further one if need be."""
        nonzero = np.flatnonzero(np.abs(self.real_shift) > 1e-12)
        if nonzero.size:
            return int(nonzero[0])
        moduli = np.abs(self.complex_shift)
        gamma = float(moduli[np.argmin(np.abs(self.complex_shift.imag))]) if moduli.size else 0.5
        self.real_shift = np.append(self.real_shift, gamma)
        return len(self.real_shift) - 1

    def _tighten(self) -> None:
        """Tolerances for an estimate of the error that the propagated solution really makes.

        Where the more accurate of two solutions is propagated, an error per step of tol leads to
        one of about tol at the end. If it is the less accurate (TRBDF2, whose formula of order 3 is
        not stable enough), N ~ tol^(−1/(p+1)) such errors add up to tol^(p/(p+1)).
        """
        power = 1 + 1 / self.order
        self.rtol_used = lambda rtol: (
            max(LOOSE * (rtol / LOOSE) ** power, SMALLEST_RTOL) if 0 < rtol < LOOSE else rtol
        )
        self._use_tolerances()

    def _quadrature_estimate(self, b: Array) -> None:
        """Hairer & Wanner's estimate for RADAU5 (IV.8), for any fully implicit tableau.

        The embedded method uses f(t, y) with weight γ₀ beside the stages; its other weights
        make it a quadrature formula of order s. γ₀ is a real eigenvalue of A, so the filter
        needs no further factorisation, or, where there is none (even s), a modulus.
        """
        state = self.state
        block = self._filter_block()
        gamma = float(self.real_shift[block])
        b_hat, order = _quadrature(self.tableau, gamma)
        if order < 1:
            self._use_doubling()
            return
        state.estimate_kind = at.ESTIMATE_EMBEDDED
        state.estimate_block = block
        self.state.estimate_weight = gamma
        self.e = b_hat - b
        self.estimate_order = min(order, self.order)
        self.estimate = "quadrature with f(t, y), filtered by (M − hγJ)⁻¹, as in RADAU5"
        if self.estimate_order < self.order and self.problem.index is None:
            # The estimate is of lower order than the method: without this, tolerances would be
            # met far too well (RADAU5 transforms them in the same way). Not so for components
            # of higher index, which the method itself computes to lower order.
            power = max(self.least_power, (self.estimate_order + 1) / (self.order + 1))
            self.rtol_used = lambda rtol: 0.1 * rtol**power if rtol > 0 else 0.0
            self._use_tolerances()

    def _use_tolerances(self) -> None:
        """Take the tolerances that the estimate needs in place of those that were asked for."""
        asked, options = self.options.rtol, self.options
        self.state.rtol = self.rtol_used(asked)
        if asked > 0:
            options.atol = options.atol * (self.state.rtol / asked)

    # ------------------------------------------------------------ dense output, Newton

    def _choose_dense(self, c: Array) -> None:
        tableau, state = self.tableau, self.state
        s = tableau.stages
        self.lagrange: Array = np.zeros((s, s))
        self.extension: Extension | None = None
        self.plain: Extension | None = None
        if not (tableau.is_dirk or tableau.is_confluent):
            inverse = np.linalg.inv(np.vander(c, s, increasing=True))
            self.lagrange = np.ascontiguousarray(inverse.T, dtype=np.float64)
        halved = bool(state.estimate_kind == at.ESTIMATE_DOUBLING)
        # The error at the end of two half steps is far below that of one step of their length: a
        # higher order is needed, but not so high that stiff components are no longer served.
        higher = 2 if tableau.is_stiffly_accurate else 3
        wanted = implicit_order(tableau) + (higher if halved else 0)
        if self.problem.index is not None and np.max(self.problem.index) > 1:
            # Multipliers are not what order conditions speak of: no further stages.
            self.plain = implicit_extension(tableau, wanted, 1.0, halved, further=False)
            self.extension = self.plain
        elif self.options.want_dense:
            block = self._dense_block()
            gamma = float(self.real_shift[block]) * (0.5 if halved else 1.0)
            state.dense_block, self.state.dense_weight = block, gamma
            self.plain = implicit_extension(tableau, wanted, gamma, halved, further=False)
            self.extension = implicit_extension(tableau, wanted, gamma, halved)
        else:
            self.dense_order, self.degree = implicit_order(tableau), 1
            return
        state.extra_stages = len(self.extension.nodes)
        state.half_rows = s if halved else 0
        self.dense_order = min(self.extension.order, implicit_order(tableau))
        self.degree = self.extension.weights.shape[1]

    def _dense_block(self) -> int:
        """Which real block M − hγJ solves for further stages; one is added if there is none."""
        usable = np.flatnonzero(self.real_shift > 1e-12)
        if usable.size:
            return int(usable[0])
        shifts = np.abs(self.complex_shift)
        gamma = float(shifts[np.argmin(np.abs(self.complex_shift.imag))]) if shifts.size else 0.5
        self.real_shift = np.append(self.real_shift, gamma)
        return len(self.real_shift) - 1

    def _set_newton(self) -> None:
        state, options = self.state, self.options
        s = self.tableau.stages
        state.newton_memory = 1.0
        state.newton_rate = 1.0
        if options.fixed:
            state.max_newton = MAX_NEWTON_FIXED
            state.newton_tolerance = 1.0
            state.rtol = FIXED_NEWTON_RTOL
            return
        coupled = state.coupling != at.COUPLING_DIAGONAL
        extra = int(2.5 * max(0, s - 3)) if coupled else 3
        state.max_newton = MAX_NEWTON_ADAPTIVE + extra
        state.newton_tolerance = self.newton_tolerance(state.rtol)

    def newton_tolerance(self, rtol: float) -> float:
        """How far Newton's iteration goes, in units of the tolerance, with the rtol of the state.

        All stages together as in RADAU: as much further as the orders lie apart.
        """
        rtol = max(rtol, 1e-14)
        if self.state.coupling == at.COUPLING_DIAGONAL:
            return float(max(10 * 2.2e-16 / rtol, STAGE_TOLERANCE))
        gap = (self.order + 1) / (self.estimate_order + 1) - 1
        return float(max(10 * 2.2e-16 / rtol, min(0.03, rtol ** max(gap, 0.5))))

    def _look_at_end(self) -> None:
        """Have f looked at where a step ends, if no stage lies there (and f is the slope)."""
        self.state.end_block = -1
        if self.options.fixed or self.tableau.is_stiffly_accurate or self.problem.mass is not None:
            return
        self.state.end_block = self._filter_block()

    def _look_inside(self) -> None:
        """Have the defect inside steps looked at."""
        state, tableau = self.state, self.tableau
        found = None if self.options.fixed else inner_check(tableau)
        self.inner = found
        state.inside_weight = 0.0
        if found is None:
            return
        state.inside_block = self._filter_block()
        state.inside_weight = self.inside_weight(self.options.rtol, state.rtol)
        watch_inside(state, found, self.options.rtol)

    def inside_weight(self, asked: float, used: float) -> float:
        """Weight of a defect for the rtol that was asked for and the one that is used."""
        if self.inner is None:
            return 0.0
        return self.inner.weight(implicit_order(self.tableau), asked, used)

    def _kernels(self) -> tuple[Any, ...]:
        diagonal = self.state.coupling == at.COUPLING_DIAGONAL
        step, accept = implicit_step, diagonal_accept if diagonal else coupled_accept
        if self.state.end_block >= 0:
            step, accept = checked_step, checked_accept
        return Implicit, step, accept, implicit_dense, implicit_refine

    def _workspace(self, shared: dict[str, Any]) -> Implicit:
        tableau, n, s = self.tableau, self.n, self.tableau.stages
        A, b, c = tableau.arrays
        shared["atol"] = self.to_real_weights(self.options.atol).copy()
        self.jacobian = JacobianSource(weakref.proxy(self))
        external = n > LARGEST_OWN_LU or self.jacobian.is_sparse
        full = self.is_fully_coupled
        external = external and not full
        self.state.external_algebra = int(external)
        own = 0 if external else n
        arrays: dict[str, Any] = dict(
            A=A.copy(),
            b=b.copy(),
            c=c.copy(),
            e=self.e,
            J=np.zeros((own, own)),
            M=np.zeros((own, own)),
            **self._dense_tables(shared),
            inside_value=np.zeros(s) if self.inner is None else self.inner.value,
            inside_slope=np.zeros(s) if self.inner is None else self.inner.slope,
            W_last=np.zeros((s, n)),
            lagrange=through_last_stages(self.lagrange, c),
            predictor=stage_predictor(c) if tableau.is_dirk else np.zeros((0, 0)),
            end_weights=extrapolation_weights(np.append(0.0, c), 1.0),
            eigenvector=np.zeros(own),
            newton=np.zeros(2),
            residual=np.zeros((s, n)),
            increment=np.zeros((s, n)),
            real_shift=self.real_shift,
            real_LU=np.zeros((len(self.real_shift), own, own)),
            real_pivots=np.zeros((len(self.real_shift), n), dtype=np.int64),
            real_rhs=np.zeros(n),
            complex_shift=self.complex_shift,
            complex_LU=np.zeros((len(self.complex_shift), own, own), dtype=np.complex128),
            complex_pivots=np.zeros((len(self.complex_shift), n), dtype=np.int64),
            complex_rhs=np.zeros(n, dtype=np.complex128),
            block_of=self.block_of,
            T_real=self.T_real,
            T_real_inverse=self.T_real_inverse,
            T_complex=self.T_complex,
            T_complex_inverse=self.T_complex_inverse,
            full_LU=np.zeros((s * n, s * n) if full else (0, 0)),
            full_pivots=np.zeros(s * n if full else 0, dtype=np.int64),
            full_rhs=np.zeros(s * n if full else 0),
        )
        if self.problem.mass is not None and not external:
            arrays["M"] = self.jacobian.dense_mass()
        self.algebra = LinearAlgebra(self.jacobian.engine, arrays) if external else None
        diagonal = self.state.coupling == at.COUPLING_DIAGONAL
        solver = newton_diagonal if diagonal else newton_coupled
        arrays["solve_stages"] = solver
        arrays["jac"] = self.jacobian.address(arrays["J"], self.algebra)
        arrays["algebra"] = self.algebra.address() if self.algebra else arrays["jac"]
        return Implicit(**shared, **arrays)

    def _dense_tables(self, shared: dict[str, Any]) -> dict[str, Any]:
        """Tables of dense output, and room for its rows.

        The stages, y₁ − y₀, with step doubling those of the first half, and further stages.
        """
        names = ("extra_c", "extra_A", "extra_start", "plain_P")
        if self.extension is None or self.plain is None:
            return dict(zip(names, (np.zeros(0), *(np.zeros((0, 0)) for _ in range(3)))))
        found = self.extension
        shared["K"] = np.zeros((len(found.weights), self.n))
        shared["P"] = found.weights
        shared["basis"] = in_powers(found.weights.shape[1])
        return dict(zip(names, (found.nodes, found.points, found.slopes, self.plain.weights)))


@lru_cache(maxsize=256)
def _quadrature(tableau: Tableau, gamma: float) -> tuple[Array, int]:
    """Weights of the stages beside γ f(t, y) that make a quadrature formula, and its order."""
    A, _, c = tableau.arrays
    s = tableau.stages
    moments = 1.0 / np.arange(1, s + 1)
    moments[0] -= gamma
    b_hat = np.linalg.solve(np.vander(c, s, increasing=True).T, moments)
    extended = np.zeros((s + 1, s + 1))
    extended[1:, 1:] = A
    order = Tableau(extended.tolist(), [gamma, *b_hat], check=False).order
    return np.asarray(b_hat, dtype=np.float64), order
