"""Splittings, Nyström and partitioned methods bound to a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...manifold import refuse_to_leave
from ...problem import IVP
from ...stepping import state as at
from ...stepping.engine import Engine, Options
from ...stepping.workspace import TwoHalves, empty_fields
from ...tableau.coefficients import _floats, _weight_difference
from ...tableau.partitioned import Nystrom, Partitioned, Splitting
from ..runge_kutta.divided import divided_by_mass, is_regular
from ..runge_kutta.implicit.predictor import extrapolation_weights
from ..user.step import nothing
from .halves import halves_of
from .step import (
    nystrom_refine,
    nystrom_step,
    partitioned_accept,
    partitioned_dense,
    partitioned_step,
    splitting_step,
)

__all__ = ["PartitionedEngine", "engine_for"]

TwoHalvesMethod = Splitting | Nystrom | Partitioned


def engine_for(method: TwoHalvesMethod, problem: IVP, options: Options) -> Engine:
    """Bind such a method to a problem, or say why it cannot be."""
    name = method.name or "this method"
    refuse_to_leave(problem, name)
    if problem.mass is not None:
        if not is_regular(problem.mass):
            raise ValueError(
                f"{name} is explicit in its accelerations, and the mass matrix is singular (a "
                "differential-algebraic equation); use RADAU5"
            )
        problem = divided_by_mass(problem)
    pair = isinstance(method, Nystrom) and method.embedded_order is not None
    if not (options.fixed or pair):
        raise ValueError(
            f"{name} takes fixed steps: give step=h (a symplectic method keeps energy in bounds "
            "only with equal steps). DPRKN6 and DPRKN8 choose their steps for q'' = g(t, q), "
            "DOP853 and Gauss4 for any problem"
        )
    second_order = _check_halves(method, name, problem)
    key = (method, second_order, id(problem.mass))
    return PartitionedEngine.reused(
        key, problem, options, lambda: PartitionedEngine(method, problem, options, second_order)
    )


def _check_halves(method: TwoHalvesMethod, name: str, problem: IVP) -> bool:
    """Refuse a problem that is not what the method is for; whether q' = v."""
    found = halves_of(problem)
    if isinstance(method, Partitioned):
        if problem.n % 2:
            raise ValueError(f"{name} is for y = (q, v), halves of one length: {found.reason}")
        return found.second_order
    needed = "q'' = g(t, q) as y = (q, v) with q' = v and v' = g(t, q)"
    if isinstance(method, Splitting):
        needed = "separable problems: y = (q, v) in halves, q' = f(t, v), v' = g(t, q)"
    reason = found.reason
    if found.separable and isinstance(method, Nystrom) and not found.second_order:
        reason = "q' is not v"
    if reason:
        raise ValueError(
            f"{name} is for {needed}; here {reason}. LobattoIIIAB3 and Gauss2 are symplectic for "
            "every Hamiltonian, DOP853 takes any problem (forces that depend on speeds, as those "
            "of mechanisms whose inertia changes with q, among them)"
        )
    return found.second_order


class PartitionedEngine(Engine):
    """The arrays of a run with a method that treats q and v differently."""

    def __init__(
        self, method: TwoHalvesMethod, problem: IVP, options: Options, second_order: bool
    ) -> None:
        self.method = method
        self.second_order = second_order
        super().__init__(problem, options)

    def _setup(self) -> None:
        method, state = self.method, self.state
        self.order = method.order
        if isinstance(method, Splitting) and self.second_order:
            self.order = method.nystrom_order
        state.stages = len(method.kicks) if isinstance(method, Splitting) else method.stages
        state.second_order = int(self.second_order)
        if self.options.fixed:
            state.estimate_kind = at.ESTIMATE_NONE
            self.estimate_order = self.order
            self.estimate = "none (fixed step)"
        else:
            assert isinstance(method, Nystrom)
            assert method.embedded_order is not None
            state.estimate_kind = at.ESTIMATE_EMBEDDED
            self.estimate_order = min(method.order, method.embedded_order)
            self.estimate = "embedded method"
            state.inside_weight = 1.0
        if isinstance(method, Splitting):
            state.fsal = int(self.second_order and method.ends_with_kick)
        elif isinstance(method, Nystrom):
            state.fsal = int(method.fsal)
        self._use_hermite()

    def _kernels(self) -> tuple[Any, ...]:
        steps = {Splitting: splitting_step, Nystrom: nystrom_step, Partitioned: partitioned_step}
        step = steps[type(self.method)]
        refine = nystrom_refine if isinstance(self.method, Nystrom) else nothing
        return TwoHalves, step, partitioned_accept, partitioned_dense, refine

    def _workspace(self, shared: dict[str, Any]) -> TwoHalves:
        method = self.method
        arrays: dict[str, Any] = empty_fields(TwoHalves, shared)
        arrays["slope"] = np.zeros(self.n)
        if isinstance(method, Splitting):
            arrays["b"], arrays["drift"] = (
                np.array(_floats(x)) for x in (method.kicks, method.drifts)
            )
        elif isinstance(method, Nystrom):
            for key, numbers in (("A", method.A), ("b", method.b), ("c", method.c)):
                arrays[key] = np.array(_floats(numbers))
            arrays["end_weights"] = extrapolation_weights(
                arrays["c"][:-1], 1.0, most=10.0, apart=0.05
            )
            arrays["b_second"] = np.array(_floats(method.b_rate))
            if method.b_hat is not None and method.b_rate_hat is not None:
                arrays["e"] = np.array(_weight_difference(method.b, method.b_hat))
                arrays["e_second"] = np.array(_weight_difference(method.b_rate, method.b_rate_hat))
        else:
            A, second, b, c = method.arrays
            arrays.update(A=A, A_second=second, b=b, c=c)
        return TwoHalves(**shared, **arrays)
