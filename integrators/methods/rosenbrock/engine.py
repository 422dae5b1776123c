"""A Rosenbrock method bound to a problem."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ...manifold import refuse_to_leave
from ...problem import IVP
from ...stepping import state as at
from ...stepping.control import Controller, Predictive
from ...stepping.engine import Engine, Options, implicit_key
from ...stepping.workspace import LinearlyImplicit, empty_fields
from ...tableau.extension import Extension, in_powers
from ...tableau.implicit_extension import InnerCheck
from ...tableau.rosenbrock import Rosenbrock
from ...tableau.rosenbrock_extension import rosenbrock_check, rosenbrock_extension
from ..runge_kutta.divided import is_regular
from ..runge_kutta.implicit.algebra import LARGEST_OWN_LU, JacobianSource, LinearAlgebra
from ..runge_kutta.implicit.inside import implicit_refine, watch_inside
from .step import (
    AUTONOMOUS,
    BY_CODE,
    BY_DIFFERENCE,
    rosenbrock_accept,
    rosenbrock_dense,
    rosenbrock_step,
)

__all__ = ["RosenbrockEngine", "engine_for"]


def engine_for(method: Rosenbrock, problem: IVP, options: Options) -> Engine:
    """Bind a Rosenbrock method to a problem, or say why it cannot be."""
    name = method.name or "this Rosenbrock method"
    if method.order < 1:
        raise ValueError(f"{name} has order 0 (its weights b must add up to 1); correct it")
    if method.embedded_order is None and not options.fixed:
        raise ValueError(
            f"{name} has no embedded method (b_hat) to control its steps by; give one, or a fixed "
            "step=h"
        )
    refuse_to_leave(problem, name)
    if problem.index is not None and np.max(problem.index) > 1:
        raise ValueError(
            f"{name} is for problems of index 1 at most, and this one has components of index "
            f"{int(np.max(problem.index))}; use RADAU5"
        )
    if problem.mass is not None and method.dae_order < 1 and not is_regular(problem.mass):
        raise ValueError(
            f"{name} does not damp errors of algebraic components (|R(∞)| = "
            f"{abs(method.at_infinity):.3g}), which a singular mass matrix has; use Rodas5P"
        )
    return RosenbrockEngine.reused(
        (method, *implicit_key(problem, options)),
        problem,
        options,
        lambda: RosenbrockEngine(method, problem, options),
    )


class RosenbrockEngine(Engine):
    """The arrays of a run with a Rosenbrock method."""

    default_controller: Controller = Predictive()
    is_fully_coupled = False

    def __init__(self, method: Rosenbrock, problem: IVP, options: Options) -> None:
        self.method = method
        super().__init__(problem, options)

    def _setup(self) -> None:
        method, state = self.method, self.state
        self.order = method.order
        state.stages = method.stages
        state.has_mass = int(self.problem.mass is not None)
        state.coupling = at.COUPLING_DIAGONAL
        state.fsal = int(_ends_with_slope(method))
        independent = method.w_order >= method.order and state.fsal == 1
        state.keeps_matrix = int(independent and not self.options.fixed)
        self.inner: InnerCheck | None = None
        state.max_newton, state.newton_last = 1, 1  # for Gustafsson's controller: no iterations
        if self.options.fixed:
            state.estimate_kind = at.ESTIMATE_NONE
            self.estimate_order = self.order
            self.estimate = "none (fixed step)"
        else:
            assert method.embedded_order is not None
            state.estimate_kind = at.ESTIMATE_EMBEDDED
            self.estimate_order = min(method.order, method.embedded_order)
            self.estimate = "embedded method"
            self._look_inside()
        self.extension: Extension | None = None
        self.dense_order, self.degree = self.order, 1
        if self.options.want_dense:
            self.extension = rosenbrock_extension(method, self.order)
            state.extra_stages = len(self.extension.nodes)
            self.dense_order = self.extension.order
            self.degree = self.extension.weights.shape[1]

    def _look_inside(self) -> None:
        """Have the defect inside steps looked at."""
        found, state = rosenbrock_check(self.method), self.state
        if found is not None:
            self.inner = found
            watch_inside(state, found, state.rtol, filters=max(1, self.order - 1))
            state.inside_weight = found.weight(self.order, state.rtol, state.rtol)

    @property
    def linear_solver(self) -> str:  # type: ignore[override]
        """How linear systems are solved, in words."""
        return "dense LU" if self.algebra is None else self.algebra.description

    def _kernels(self) -> tuple[Any, ...]:
        return (
            LinearlyImplicit,
            rosenbrock_step,
            rosenbrock_accept,
            rosenbrock_dense,
            implicit_refine,
        )

    def _workspace(self, shared: dict[str, Any]) -> LinearlyImplicit:
        n, table = self.n, self.method.computed
        self.jacobian = JacobianSource(weakref.proxy(self))
        external = n > LARGEST_OWN_LU or self.jacobian.is_sparse
        self.state.external_algebra = int(external)
        own = 0 if external else n
        arrays: dict[str, Any] = empty_fields(LinearlyImplicit, shared)
        arrays.update(
            A=table["A"],
            C=table["C"],
            b=table["m"],
            c=table["c"],
            d=table["d"],
            e=table["e"],
            repeats=_repeated_stages(self.method),
            slope=np.zeros(n),
            residual=np.zeros((1, n)),
            f_t=np.zeros(n),
            J=np.zeros((own, own)),
            M=np.zeros((own, own)),
            eigenvector=np.zeros(own),
            real_shift=table["gamma"],
            real_LU=np.zeros((1, own, own)),
            real_pivots=np.zeros((1, n), dtype=np.int64),
            real_rhs=np.zeros(n),
        )
        if self.inner is not None:
            arrays.update(inside_value=self.inner.value, inside_slope=self.inner.slope)
        if self.extension is not None:
            found = self.extension
            shared["P"], shared["basis"] = found.weights, in_powers(self.degree)
            arrays.update(extra_c=found.nodes, extra_A=found.points, extra_start=found.slopes)
        if self.problem.mass is not None and not external:
            arrays["M"] = self.jacobian.dense_mass()
        self.algebra = LinearAlgebra(self.jacobian.engine, arrays) if external else None
        arrays["jac"] = self.jacobian.address(arrays["J"], self.algebra)
        arrays["algebra"] = self.algebra.address() if self.algebra else arrays["jac"]
        arrays["solve_stages"] = arrays["jac"]  # there are no equations to iterate on
        arrays["f_by_t"] = self._time_derivative(shared["f"])
        return LinearlyImplicit(**shared, **arrays)

    def _time_derivative(self, f: int) -> int:
        """Find out how f depends on time; address of ∂f/∂t, or of f if there is no code for it."""
        self.state.time_slope = BY_DIFFERENCE
        traced: Any = self.problem.f
        if self.state.f_native == 0 or getattr(traced, "is_replaced", False):  # by another, later
            return f
        from ...tracing import GraphTooLargeError

        if traced.dependence("t").nnz == 0:
            self.state.time_slope = AUTONOMOUS
            return f
        try:
            self._by_time = traced.time_derivative().machine_code()  # keep it alive
        except GraphTooLargeError:
            return f
        self.state.time_slope = BY_CODE
        return int(self._by_time.address)


def _repeated_stages(method: Rosenbrock) -> np.ndarray:
    """1 for a stage that evaluates f where the one before did."""
    A, c = method.computed["A"], method.computed["c"]
    same = [i > 0 and c[i] == c[i - 1] and np.array_equal(A[i], A[i - 1]) for i in range(len(c))]
    same[1:2] = [False]  # the first is f(t, y), which is looked up
    return np.array(same, dtype=np.int64)


def _ends_with_slope(method: Rosenbrock) -> bool:
    """Whether the last stage evaluates f at the end of the step."""
    A, m, c = (method.computed[key] for key in ("A", "m", "c"))
    near = np.max(np.abs(A[-1] - m)) <= 1e-15 * np.max(np.abs(m))
    return bool(near and c[-1] == 1.0 and m[-1] == 0.0)
