"""Additive methods bound to a problem."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.pointers import SIGNATURE, SlopeTrampoline
from ...manifold import refuse_to_leave
from ...problem import IVP
from ...stepping import state as at
from ...stepping.control import Controller, Predictive
from ...stepping.engine import Engine, Options, checked_slope
from ...stepping.workspace import TwoParts, empty_fields
from ...tableau.additive import Additive, additive_check, additive_extension, plain_extension
from ...tableau.extension import Extension, in_powers
from ..runge_kutta.implicit.algebra import LARGEST_OWN_LU, JacobianSource, LinearAlgebra
from ..runge_kutta.implicit.inside import implicit_refine, watch_inside
from ..runge_kutta.implicit.predictor import extrapolation_weights, stage_predictor
from .split import Split
from .step import imex_accept, imex_dense, imex_step

__all__ = ["AdditiveEngine", "engine_for"]

Array = NDArray[np.float64]

MAX_NEWTON_ADAPTIVE = 10
MAX_NEWTON_FIXED = 50
STAGE_TOLERANCE = 0.01  # of the step's
FIXED_NEWTON_RTOL = 1e-16  # fixed steps: iterate to round-off, so that only h decides the error


def engine_for(method: Additive, problem: IVP, options: Options) -> Engine:
    """Bind an additive method to a problem, or say why it cannot be."""
    name = method.name or "this additive method"
    if not isinstance(problem.f, Split):
        raise ValueError(
            f"{name} treats one part of f explicitly and the other implicitly: give f as "
            "integrators.Split(explicit, implicit); for an f that is not split take RADAU5, BDF "
            "or, if it is not stiff, DOP853"
        )
    if method.order < 1:
        raise ValueError(f"{name} has order 0 (weights must add up to 1); correct it")
    if problem.mass is not None:
        raise ValueError(
            f"{name} solves y' = f_E(t, y) + f_I(t, y) only; divide both parts by the mass matrix, "
            "or use RADAU5 or Rodas5P, which take it"
        )
    refuse_to_leave(problem, name)
    if not (options.fixed or method.is_pair):
        raise ValueError(
            f"{name} has no embedded method (b_hat of both halves) to control its steps by; give "
            "them, or a fixed step=h"
        )
    return AdditiveEngine.reused(
        (method, id(problem.f), id(problem.f.jac), options.rtol, options.linear),
        problem,
        options,
        lambda: AdditiveEngine(method, problem, options),
    )


class _ImplicitPart:
    """The engine as Jacobians and linear algebra see it: with the implicit part for f."""

    def __init__(self, engine: AdditiveEngine, problem: IVP) -> None:
        self.engine, self.problem = engine, problem
        self.jacobian: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def slope(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """f_I(t, y), counted; raises what it raises."""
        engine = self.engine
        engine.x[:] = engine.to_real(y)
        engine.state.nfev += 1
        engine.flag[0] = engine.state.f_native
        SIGNATURE(engine.implicit_address)(t, *engine.part_arguments)
        if (error := engine.error()) is not None:
            raise error
        return engine.from_real(engine.dx.copy())


class AdditiveEngine(Engine):
    """The arrays of a run with an additive method."""

    default_controller: Controller = Predictive()
    is_fully_coupled = False

    def __init__(self, method: Additive, problem: IVP, options: Options) -> None:
        self.method = method
        super().__init__(problem, options)

    def rebind(self, problem: IVP, options: Options) -> None:
        """Start again with a problem and options that differ in numbers only, but not in rtol."""
        super().rebind(problem, options)
        if options.fixed:
            self.state.rtol = FIXED_NEWTON_RTOL

    def _setup(self) -> None:
        method, state = self.method, self.state
        self.order = method.order
        state.stages = method.stages
        state.coupling = at.COUPLING_DIAGONAL
        state.newton_memory = state.newton_rate = 1.0
        if self.options.fixed:
            state.estimate_kind = at.ESTIMATE_NONE
            self.estimate_order = self.order
            self.estimate = "none (fixed step)"
            state.max_newton, state.newton_tolerance = MAX_NEWTON_FIXED, 1.0
            state.rtol = FIXED_NEWTON_RTOL
        else:
            assert method.embedded_order is not None
            state.estimate_kind = at.ESTIMATE_EMBEDDED
            self.estimate_order = min(method.order, method.embedded_order)
            self.estimate = "embedded method, filtered by (1 − hγJ)⁻¹"
            state.max_newton = MAX_NEWTON_ADAPTIVE
            rounding = 10 * np.finfo(float).eps / max(float(state.rtol), 1e-14)
            state.newton_tolerance = max(rounding, STAGE_TOLERANCE)
            check = additive_check(method)
            # States of stages are of order 1 or 2: each filter takes an order more of what is not
            # stiff away.
            watch_inside(state, check, state.rtol, filters=max(1, method.order - 1))
            state.inside_weight = check.weight(method.order, state.rtol, state.rtol)
        self.extension: Extension | None = None
        self.dense_order, self.degree = self.order, 1
        if self.options.want_dense:
            self.extension = additive_extension(method, self.order)
            state.extra_stages = len(self.extension.nodes)
            self.dense_order = self.extension.order
            self.degree = self.extension.weights.shape[1]

    @property
    def linear_solver(self) -> str:  # type: ignore[override]
        """How linear systems are solved, in words."""
        return "dense LU" if self.algebra is None else self.algebra.description

    def _kernels(self) -> tuple[Any, ...]:
        return TwoParts, imex_step, imex_accept, imex_dense, implicit_refine

    def _workspace(self, shared: dict[str, Any]) -> TwoParts:
        n, s, method = self.n, self.method.stages, self.method
        halves = (method.explicit, method.implicit)
        split: Split = self.problem.f  # type: ignore[assignment]
        addresses = [self._part_address(f) for f in (split.explicit, split.implicit)]
        self.implicit_address = addresses[1]
        self.part_arguments = tuple(a.ctypes.data for a in (self.x, shared["p"], self.dx))
        part: Any = _ImplicitPart(
            weakref.proxy(self), self.problem.with_(f=split.implicit, jac=split.jac)
        )
        part.jacobian = source = JacobianSource(part)
        external = n > LARGEST_OWN_LU or source.is_sparse
        self.state.external_algebra = int(external)
        own = 0 if external else n
        A = np.hstack([half.arrays[0] for half in halves])
        A[:, s:] -= np.diag(np.diag(halves[1].arrays[0]))  # what is solved for comes on top
        predictor = np.hstack([np.zeros((s, s)), stage_predictor(halves[0].arrays[2])])
        errors = [np.zeros(s) if (e := half.error_weights) is None else e for half in halves]
        arrays: dict[str, Any] = empty_fields(TwoParts, shared)
        arrays.update(
            A=np.ascontiguousarray(A),
            b=np.concatenate([half.arrays[1] for half in halves]),
            c=halves[0].arrays[2].copy(),
            e=np.concatenate(errors),
            predictor=np.ascontiguousarray(predictor),
            f_explicit=addresses[0],
            f_implicit=addresses[1],
            of_explicit=np.zeros(n),
            of_implicit=np.zeros(n),
            end_explicit=np.zeros(n),
            end_implicit=np.zeros(n),
            end_weights=extrapolation_weights(halves[0].arrays[2], 1.0),
            base=np.zeros(n),
            residual=np.zeros((1, n)),
            newton=np.zeros(2),
            J=np.zeros((own, own)),
            M=np.zeros((own, own)),
            eigenvector=np.zeros(own),
            real_shift=np.array([method.gamma]),
            real_LU=np.zeros((1, own, own)),
            real_pivots=np.zeros((1, n), dtype=np.int64),
            real_rhs=np.zeros(n),
        )
        if not self.options.fixed:
            check = additive_check(method)
            arrays.update(inside_value=check.value, inside_slope=check.slope)
        rows = 2 * s
        if self.extension is not None:
            found = self.extension
            rows += 2 * len(found.nodes)
            shared["P"], shared["basis"] = found.weights, in_powers(self.degree)
            arrays.update(extra_c=found.nodes, extra_A=found.points, extra_start=found.slopes)
            arrays["plain_P"] = self._plain_weights(found)
        shared["K"] = np.zeros((rows, n))
        self.algebra = LinearAlgebra(part, arrays) if external else None
        arrays["jac"] = source.address(arrays["J"], self.algebra)
        arrays["algebra"] = self.algebra.address() if self.algebra else arrays["jac"]
        arrays["solve_stages"] = arrays["jac"]  # a kernel of this family does
        return TwoParts(**shared, **arrays)

    def _part_address(self, f: Any) -> int:
        """Address of one part: machine code if the sum has it, too."""
        if self.state.f_native == 1:
            self.problem.bind(f)(self.problem.t_span[0], self.problem.y0)
            code = f.machine_code()
            self._parts = [*getattr(self, "_parts", []), code]  # keep them alive
            return int(code.address)
        made = SlopeTrampoline(self.problem.bind(f), *self.buffer_views(), checked_slope, self.flag)
        self.trampolines.append(made)
        return made.address

    def _plain_weights(self, found: Extension) -> Array:
        """Weights without further stages, padded to the same number of rows and columns."""
        plain = plain_extension(self.method).weights
        weights = np.zeros(found.weights.shape)
        weights[: plain.shape[0], : plain.shape[1]] = plain
        return weights
