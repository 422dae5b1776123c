"""Radau IIA with variable order: 5, 9 or 13, whichever serves best (:cite:`hairer1999`).

The order follows how fast Newton's iteration converges: see ``coupled.judge_order``. Each order is
an engine of its own; when the loop asks for another one, the state of the run moves over.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from ..problem import IVP
from . import state as at
from .engine import Options
from .rungekutta import ImplicitEngine

__all__ = ["VariableRadau"]

STAGES = (3, 5, 7)

# What belongs to the run rather than to the order.
MOVING_TIMES = (at.T, at.T_PREVIOUS, at.T_STOP, at.T_BASE, at.H, at.H_LAST, at.ERROR)
MOVING_COUNTS = (
    *(at.NFEV, at.NJEV, at.NLU, at.NNEWTON, at.NSTEPS, at.NREJECTED, at.TAKEN, at.NEXT_OUTPUT),
    *(at.F0_CURRENT, at.HAVE_F1, at.LAST_REJECTED, at.LAST_REASON),
    *(at.HAVE_JACOBIAN, at.JACOBIAN_CURRENT, at.HAVE_START),
)
MOVING_VECTORS = ("y", "y_old", "f0", "f1", "J")


class VariableRadau:
    """Radau IIA of order 5, 9 or 13, chosen step by step.

    For stiff problems at any tolerance: it starts with the three stages of RADAU5 and needs far
    fewer steps when the tolerance is tight.

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
        return VariableEngine(STAGES[0], problem, options)


class _OneOrder(ImplicitEngine):
    """One of the orders; all of them hand over polynomials of the same degree."""

    least_power = 0.0  # as in the code RADAU: the order is only raised where the method has it

    def __init__(self, stages: int, problem: IVP, options: Options) -> None:
        from ..catalogue.collocation import radau_iia

        super().__init__(radau_iia(stages), problem, copy(options))
        self.count[at.VARIABLE_ORDER] = 1

    def _choose_dense(self, c: Any) -> None:
        super()._choose_dense(c)
        self.degree = STAGES[-1]


class VariableEngine(_OneOrder):
    """The engine that becomes one of the orders after the other."""

    def __init__(self, stages: int, problem: IVP, options: Options) -> None:
        self.original_options = copy(options)
        super().__init__(stages, problem, options)
        self.orders: dict[int, dict[str, Any]] = {stages: self._identity()}

    def advance(self, t_stop: float, wanted: int) -> tuple[int, int]:
        """Run the loop; change the order when it asks for that."""
        code, taken = super().advance(t_stop, wanted)
        if code == at.SWITCH:
            self._switch()
            code = at.FULL
        return code, taken

    def _identity(self) -> dict[str, Any]:
        """Everything that makes this engine one of the orders."""
        names = ("tableau", "order", "dense_order", "w", "clock", "count", "x", "dx", "flag")
        others = ("jacobian", "algebra", "lagrange", "f_address")
        return {name: getattr(self, name) for name in (*names, *others)}

    def _switch(self) -> None:
        stages = self.tableau.stages
        place = STAGES.index(stages) + int(self.count[at.ORDER_WISH])
        wanted = STAGES[min(max(place, 0), len(STAGES) - 1)]
        self.count[at.ORDER_WISH] = self.count[at.STEPS_AT_ORDER] = 0
        if wanted == stages:
            return
        if wanted not in self.orders:
            other = _OneOrder(wanted, self.problem, self.original_options)
            self.trampolines += other.trampolines
            self.orders[wanted] = VariableEngine._identity(other)  # type: ignore[arg-type]
        self._move_to(self.orders[wanted])

    def _move_to(self, new: dict[str, Any]) -> None:
        for place in MOVING_TIMES:
            new["clock"][place] = self.clock[place]
        for place in MOVING_COUNTS:
            new["count"][place] = self.count[place]
        for name in MOVING_VECTORS:
            getattr(new["w"], name)[:] = getattr(self.w, name)
        if self.algebra is not None:
            new["algebra"].J = self.algebra.J
        new["clock"][at.H_FACTORED] = 0.0
        new["clock"][at.NEWTON_MEMORY] = 1.0
        new["count"][at.ORDER_WISH] = new["count"][at.STEPS_AT_ORDER] = 0
        # Slopes at the new stages, from the polynomial through the old ones.
        powers = np.vander(new["w"].c, self.tableau.stages, increasing=True)
        new["w"].W_last[:] = powers @ self.lagrange.T @ self.w.W_last
        self.__dict__.update(new)
