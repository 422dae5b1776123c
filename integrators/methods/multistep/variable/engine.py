"""Multistep methods of variable order and step, bound to a problem."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....problem import IVP
from ....stepping import state as at
from ....stepping.control import Controller
from ....stepping.engine import Engine, Options
from ....stepping.workspace import Multivalue, empty_fields
from ...runge_kutta.implicit.algebra import LARGEST_OWN_LU, JacobianSource, LinearAlgebra
from .adams import adams_accept, adams_dense, adams_refine, adams_step
from .bdf import KEPT_MATRIX, bdf_accept, bdf_dense, bdf_refine, bdf_step

__all__ = ["AdamsEngine", "BDFEngine"]

Array = NDArray[np.float64]

MOST_NEWTON = 4
ROUND_OFF = 10 * np.finfo(float).eps
SMALLEST_RTOL = 1e-15
LOOSE = 1e-3  # relative tolerances above it are taken as they are


class VariableEngine(Engine):
    """A multistep method of variable order bound to a problem."""

    default_controller = Controller(safety=0.8, min_factor=0.2)
    share = 1.5

    def __init__(self, method: Any, problem: IVP, options: Options) -> None:
        self.method = method
        super().__init__(problem, options)

    def _setup(self) -> None:
        state, method = self.state, self.method
        self.order = method.order
        self.estimate_order = 1  # of the first step; later ones say so themselves
        self.dense_order = self.degree = method.order
        self.estimate = "difference of predictor and corrector"
        state.own_length = 1
        state.highest_order = method.order
        state.estimate_kind = at.ESTIMATE_EMBEDDED
        self._tighten()

    def _tighten(self) -> None:
        """Aim below the tolerance by as much as the errors of single steps add up.

        Errors of tol in each of N ~ tol^(−1/(q+1)) steps add up to tol^(q/(q+1)).
        """
        rtol = self.options.rtol
        share = self.share * min(1.0, rtol / LOOSE) ** (1 / (self.order + 1))
        self.state.rtol = max(share * rtol, min(SMALLEST_RTOL, rtol))
        self._share = self.state.rtol / rtol if rtol > 0 else self.share

    def rebind(self, problem: IVP, options: Options) -> None:
        """Start again with a problem and options that differ in numbers only, but not in rtol."""
        super().rebind(problem, options)
        self._tighten()
        self.w.atol *= self._share

    def _control(self) -> Array:
        return super()._control().copy()  # the exponent follows the order

    def _arrays(self, shared: dict[str, Any]) -> dict[str, Any]:
        n, depth = self.n, self.method.order + 2
        shared["atol"] *= self._share
        return {
            **empty_fields(Multivalue, shared),
            "past": np.zeros((depth, n)),
            "past_t": np.zeros(depth),
            "predicted": np.zeros(n),
            "predicted_rate": np.zeros(n),
            "value_weights": np.zeros(depth),
            "rate_weights": np.zeros(depth),
            "powers": np.zeros(depth + 1),
            "nodes": np.zeros(depth),
        }


class AdamsEngine(VariableEngine):
    """Adams' method of variable order bound to a problem."""

    share = 0.2

    def _setup(self) -> None:
        super()._setup()
        self.degree = max(3, self.order + 1)

    def _kernels(self) -> tuple[Any, ...]:
        return Multivalue, adams_step, adams_accept, adams_dense, adams_refine

    def _workspace(self, shared: dict[str, Any]) -> Multivalue:
        arrays = self._arrays(shared)
        nodes, weights = np.polynomial.legendre.leggauss(self.order // 2 + 1)
        arrays["gauss_c"], arrays["gauss_b"] = (nodes + 1) / 2, weights / 2
        none = shared["f"]  # neither Jacobian nor stages
        return Multivalue(**shared, **arrays, jac=none, algebra=none, solve_stages=none)


class BDFEngine(VariableEngine):
    """A BDF or NDF of variable order bound to a problem."""

    is_fully_coupled = False

    @property
    def linear_solver(self) -> str:  # type: ignore[override]
        """How linear systems are solved, in words."""
        return "dense LU" if self.algebra is None else self.algebra.description

    def _setup(self) -> None:
        super()._setup()
        state = self.state
        state.has_mass = int(self.problem.mass is not None)
        state.coupling = at.COUPLING_DIAGONAL
        state.max_newton = MOST_NEWTON
        state.newton_memory = state.newton_rate = 1.0
        state.newton_floor = ROUND_OFF / max(float(state.rtol), SMALLEST_RTOL)

    def _kernels(self) -> tuple[Any, ...]:
        return Multivalue, bdf_step, bdf_accept, bdf_dense, bdf_refine

    def _workspace(self, shared: dict[str, Any]) -> Multivalue:
        n = self.n
        self.jacobian = JacobianSource(weakref.proxy(self))
        external = n > LARGEST_OWN_LU or self.jacobian.is_sparse
        self.state.external_algebra = int(external)
        factorises = external and self.jacobian.kind != "gmres"  # which keeps its own
        self.state.matrix_slack = KEPT_MATRIX if factorises else 1e-9
        own = 0 if external else n
        arrays = self._arrays(shared)
        arrays.update(
            J=np.zeros((own, own)),
            M=np.zeros((own, own)),
            eigenvector=np.zeros(own),
            newton=np.zeros(2),
            real_shift=np.ones(1),
            real_LU=np.zeros((1, own, own)),
            real_pivots=np.zeros((1, n), dtype=np.int64),
            real_rhs=np.zeros(n),
            kappa=np.array([0.0, *self.method.kappa]),
        )
        if self.problem.mass is not None and not external:
            arrays["M"] = self.jacobian.dense_mass()
        self.algebra = LinearAlgebra(self.jacobian.engine, arrays) if external else None
        arrays["jac"] = self.jacobian.address(arrays["J"], self.algebra)
        arrays["algebra"] = self.algebra.address() if self.algebra else arrays["jac"]
        arrays["solve_stages"] = arrays["jac"]  # there are no stages
        return Multivalue(**shared, **arrays)
