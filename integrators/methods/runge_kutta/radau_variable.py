"""Radau IIA with variable order: 5, 9 or 13, whichever serves best (:cite:`hairer1999`).

The order follows how fast Newton's iteration converges, and what longer steps are worth: see
``coupled.judge_order``. Each order is an engine of its own; when the loop asks for another one, the
state of the run moves over.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from ...problem import IVP
from ...stepping.engine import Engine, Options, implicit_key
from ...tableau.implicit_extension import HIGHEST_IMPLICIT
from .implicit.engine import ImplicitEngine
from .switching import Ladder

__all__ = ["VariableRadau"]

STAGES = (3, 5, 7)
TIGHT = 1e-6  # relative tolerances from which on a run begins with five stages


class VariableRadau:
    """Radau IIA of order 5, 9 or 13, chosen step by step.

    For stiff problems at any tolerance: it starts with the three stages of RADAU5, or five if the
    tolerance is tight, and then needs far fewer steps.

    Examples
    --------
    >>> from integrators import problems, solve
    >>> sol = solve(problems.get("hires"), method="RadauVariable", rtol=1e-10, atol=1e-10)
    >>> sol.success
    True
    """

    name = "RadauVariable"

    def bind(self, problem: IVP, options: Options) -> VariableEngine:
        """Bind the method to a problem."""
        if options.fixed:
            raise ValueError(
                "variable order needs error control; for fixed steps take RadauIIA3, 5 or 7"
            )
        return VariableEngine(problem, options)


class _OneOrder(ImplicitEngine):
    """One of the orders; all of them hand over polynomials of the same degree."""

    least_power = 0.0  # as in the code RADAU: the order is only raised where the method has it

    def __init__(self, stages: int, problem: IVP, options: Options) -> None:
        from ...catalogue.collocation import radau_iia

        super().__init__(radau_iia(stages), problem, options)

    def _setup(self) -> None:
        super()._setup()
        self.state.variable_order = 1

    def _choose_dense(self, c: Any) -> None:
        super()._choose_dense(c)
        self.degree = HIGHEST_IMPLICIT


class VariableEngine(Ladder):
    """One of the orders after the other."""

    moving_vectors = ("y", "y_old", "f0", "f1", "J")

    def __init__(self, problem: IVP, options: Options) -> None:
        first = STAGES[1] if options.rtol <= TIGHT else STAGES[0]
        super().__init__(STAGES, first, problem, options)

    def _make(self, rung: int) -> Engine:
        problem, options = self.problem, copy(self.options)  # each order changes tolerances
        return _OneOrder.reused(
            (rung, *implicit_key(problem, options)),
            problem,
            options,
            lambda: _OneOrder(rung, problem, options),
        )

    def _hand_over(self, before: Any, after: Any) -> None:
        if before.algebra is not None:
            after.algebra.J = before.algebra.J
        super()._hand_over(before, after)
        after.state.h_factored = 0.0
        after.state.newton_memory = 1.0
        # Slopes at the new stages, from the polynomial through the old ones.
        powers = np.vander(after.w.c, before.tableau.stages, increasing=True)
        after.w.W_last[:] = powers @ before.lagrange.T @ before.w.W_last
