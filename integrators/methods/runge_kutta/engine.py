"""Runge–Kutta methods bound to a problem: which engine, and that of explicit tableaux."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.object_code import has_llvm
from ...problem import IVP
from ...stepping import state as at
from ...stepping.engine import Engine, Options, implicit_key
from ...stepping.workspace import Explicit
from ...tableau import ContinuousExtension, Tableau
from ...tableau.extension import (
    HIGHEST_EXPLICIT,
    dense_extension,
    doubled_extension,
    in_powers,
)
from .divided import check_damping, divided_by_mass, has_explicit_stage, is_regular
from .explicit import explicit_accept, explicit_dense, explicit_refine, explicit_step
from .fused import LARGEST_AROUND, fused_step, fused_step_function, inputs_size
from .implicit.engine import ImplicitEngine
from .implicit.predictor import extrapolation_weights
from .stability_limit import end_stage, real_boundary

__all__ = ["ExplicitEngine", "engine_for"]

Array = NDArray[np.float64]


def engine_for(tableau: Tableau, problem: IVP, options: Options) -> Engine:
    """Bind a tableau to a problem."""
    if tableau.order < 1 and not options.fixed:
        raise ValueError(
            f"{tableau.name or 'this tableau'} has order 0 (its weights b must add up to 1), so "
            "no step is short enough; correct it, or study it with a fixed step"
        )
    if problem.mass is not None:
        regular = is_regular(problem.mass)
        if regular and has_explicit_stage(tableau):
            problem = divided_by_mass(problem)
        if not (regular or options.fixed):
            check_damping(tableau)
    if tableau.is_explicit:
        if problem.mass is not None:
            raise ValueError(
                f"{tableau.name or 'this tableau'} is explicit, and the mass matrix is singular: "
                "the problem is a differential-algebraic equation: use an implicit method such as "
                "RADAU5, or what explicit methods solve: of a general DAE the road 'underlying', "
                "of a mechanism a formulation without unknown multipliers, 'baumgarte', "
                "'projected' or 'index1'"
            )
        return ExplicitEngine.reused(
            (tableau, id(tableau.dense)),
            problem,
            options,
            lambda: ExplicitEngine(tableau, problem, options),
        )
    if problem.index is not None and np.max(problem.index) >= 3:
        stage_order = tableau.simplifying_assumptions()[1]
        if stage_order < 2 or not tableau.is_stiffly_accurate:
            raise ValueError(
                f"{tableau.name or 'this tableau'} does not converge on problems of index 3, which "
                f"need a stiffly accurate method of stage order 2 (its stage order is "
                f"{stage_order}); use RADAU5"
            )
    return ImplicitEngine.reused(
        (tableau, id(tableau.dense), *implicit_key(problem, options)),
        problem,
        options,
        lambda: ImplicitEngine(tableau, problem, options),
    )


class ExplicitEngine(Engine):
    """An explicit tableau bound to a problem."""

    def __init__(self, tableau: Tableau, problem: IVP, options: Options) -> None:
        self.tableau = tableau
        super().__init__(problem, options)

    def _setup(self) -> None:
        tableau, state = self.tableau, self.state
        self.order = tableau.order
        state.stages = tableau.stages
        state.fsal = int(tableau.fsal)
        if self.options.fixed:
            self.estimate_order = self.order
            self.estimate = "none (fixed step)"
            state.estimate_kind = at.ESTIMATE_NONE
        elif tableau.b_hat is not None and sees_time(tableau):
            assert tableau.embedded_order is not None
            self.estimate_order = min(tableau.order, tableau.embedded_order)
            self.estimate = "embedded method"
            state.estimate_kind = at.ESTIMATE_EMBEDDED
            if tableau.b_low is not None:
                state.estimate_kind = at.ESTIMATE_TWO
                self.estimate_order = tableau.order - 1
                self.estimate = "two embedded methods, combined as in DOP853"
        else:
            self._use_doubling()
        state.inside_weight = float(self._is_blind_at_the_end())
        state.stiff_stage, state.stability_boundary = end_stage(tableau), real_boundary(tableau)
        state.watch_stiffness = int(state.estimate_kind in (at.ESTIMATE_EMBEDDED, at.ESTIMATE_TWO))
        self._choose_dense()

    def _is_blind_at_the_end(self) -> bool:
        """Whether f at the end of a step is looked at because the estimate hardly knows it."""
        tableau = self.tableau
        if self.options.fixed or tableau.simplifying_assumptions()[1] < 1:
            return False
        return self.state.estimate_kind == at.ESTIMATE_DOUBLING or is_blind(tableau)

    def _choose_dense(self) -> None:
        """A cubic for low orders, else a continuous extension of the method's order."""
        tableau, state = self.tableau, self.state
        self.extension: ContinuousExtension | None = None
        doubled = state.estimate_kind == at.ESTIMATE_DOUBLING
        astray = tableau.simplifying_assumptions()[1] < 1  # stages at times that are not theirs
        if doubled or astray or tableau.order <= 3:
            self._use_hermite()
            if doubled and not astray and self.options.want_dense:
                # The error at the end is that of half the length: a degree more is needed inside.
                self.degree = min(max(3, tableau.order + 1), HIGHEST_EXPLICIT)
                self.hermite = doubled_extension(tableau, self.degree)
            return
        state.dense_kind = at.DENSE_NATIVE
        self.dense_order = self.degree = min(tableau.order, HIGHEST_EXPLICIT)
        if self.options.want_dense:
            self.extension = dense_extension(tableau)
            self.degree = self.extension.P.shape[1]
            state.extra_stages = len(self.extension.c_extra)

    def _kernels(self) -> tuple[Any, ...]:
        self._fuse()
        if self.fused is None:
            return Explicit, explicit_step, explicit_accept, explicit_dense, explicit_refine
        return Explicit, fused_step, explicit_accept, explicit_dense, explicit_refine

    def _fuse(self) -> None:
        """With a traced f, make machine code of the whole step, with f inside or called."""
        self.fused: Any = None
        plain = self.problem.index is None
        if self.state.f_native == 1 and self.tableau.stages > 1 and plain:
            k, s = self.problem.params.size, self.tableau.stages
            max_norm = self.options.max_norm
            around = LARGEST_AROUND if has_llvm() else 0  # only machine code calls by address
            function = fused_step_function(self.problem.f, self.tableau, k, max_norm, s, around)
            if function is not None:
                self.fused = function.code_alone()

    def _workspace(self, shared: dict[str, Any]) -> Explicit:
        tableau = self.tableau
        A, b, c = tableau.arrays
        s, extra = tableau.stages, int(self.state.extra_stages)
        rows = np.zeros((s + extra, s + extra))
        rows[:s, :s] = A
        nodes = np.zeros(s + extra)
        nodes[:s] = c
        if extra:
            assert self.extension is not None
            for i, row in enumerate(self.extension.A_extra):
                rows[s + i, : len(row)] = row
            nodes[s:] = self.extension.c_extra
            is_slope = nodes[s] == 1.0 and np.array_equal(rows[s, :s], b)
            self.state.extra_is_slope = int(is_slope)
        if self.extension is not None:
            shared["P"] = self.extension.P
            shared["basis"] = in_powers(self.degree)
        zeros = np.zeros(s)
        fused = self._fused_arrays(shared)
        return Explicit(
            **shared,
            **fused,
            A=rows,
            b=b.copy(),
            c=nodes,
            e=_own(tableau.error_weights, zeros),
            e_low=_own(tableau.low_error_weights, zeros),
            end_weights=extrapolation_weights(c[: s - tableau.fsal], 1.0),
            stage_state=np.zeros(self.n),
            stage_slope=np.zeros(self.n),
            fused=shared["f"] if self.fused is None else int(self.fused.address),
        )

    def _fused_arrays(self, shared: dict[str, Any]) -> dict[str, Any]:
        """Arguments and results of a fused step; other fields become views of them."""
        if self.fused is None:
            return {"fused_in": np.zeros(0), "fused_out": np.zeros(0)}
        n, k = self.n, self.problem.params.size
        fused_in = np.zeros(inputs_size(n, k))
        fused_in[k + 1 : k + 2].view(np.int64)[0] = shared["f"]  # for steps that call it
        fused_out = np.zeros(1 + n + shared["K"].size)
        stages = fused_out[1 + n :].reshape(shared["K"].shape)
        slope = fused_in[k + 2 + n : k + 2 + 2 * n] if self.tableau.fsal else stages[0]
        views = {
            "p": fused_in[:k],
            "atol": fused_in[k + 2 : k + 2 + n],
            "f0": slope,
            "y_new": fused_out[1 : 1 + n],
            "K": stages,
        }
        for name, view in views.items():
            if name != "K":
                view[:] = shared[name]
            shared[name] = view
        return {"fused_in": fused_in, "fused_out": fused_out}

    def _use_slope(self, address: int) -> None:
        super()._use_slope(address)
        if self.fused is not None:
            k = self.problem.params.size
            self.w.fused_in[k + 1 : k + 2].view(np.int64)[0] = address


@cache
def sees_time(tableau: Tableau) -> bool:
    """Whether the estimate of y' = f(t) is more than zero: not with Fehlberg56 and Fehlberg78.

    Steps would grow without bounds wherever slopes depend on time alone, or not at all.
    """
    weights, c = tableau.error_weights, tableau.arrays[2]
    if weights is None:
        return False
    at_nodes = [weights[np.isclose(c, node)].sum() for node in c]
    return bool(np.max(np.abs(at_nodes)) > 1e-12 * np.max(np.abs(weights)))


def is_blind(tableau: Tableau) -> bool:
    """Whether stages at the end of a step are too crude to tell where it ends."""
    return not tableau.fsal and tableau.order < 4


def _own(weights: Array | None, default: Array) -> Array:
    return default.copy() if weights is None else weights.copy()
