"""Engines that change their order on the way.

Each order is an engine of its own. A kernel of the method wishes for a higher or lower order
(``ORDER_WISH``), the loop returns, and the state of the run moves over to the engine of that order,
which is made when it is first needed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from ...stepping import state as at
from ...stepping.engine import Engine

__all__ = ["Switching"]

# What belongs to the run rather than to the order.
MOVING_TIMES = (
    *(at.T, at.T_PREVIOUS, at.T_STOP, at.T_LIMIT, at.T_BASE),
    *(at.H, at.H_LAST, at.ERROR, at.ERROR_BEFORE),
)
MOVING_COUNTS = (
    *(at.NFEV, at.NJEV, at.NLU, at.NNEWTON, at.NSERIES, at.NSTEPS, at.NREJECTED),
    *(at.TAKEN, at.KEPT, at.NEXT_OUTPUT),
    *(at.F0_CURRENT, at.HAVE_F1, at.LAST_REJECTED, at.LAST_REASON),
    *(at.HAVE_JACOBIAN, at.JACOBIAN_CURRENT, at.JACOBIAN_AGE, at.HAVE_START),
)
# What makes an engine one of the orders.
IDENTITY = ("order", "dense_order", "w", "clock", "count", "x", "dx", "flag", "f_address")
CALLS = ("_f", "_f_arguments", "loop")


class Switching(Engine):
    """An engine that becomes one of several orders after the other."""

    ladder: Sequence[int]
    rung: int
    moving_vectors: ClassVar[Sequence[str]] = ("y", "y_old", "f0", "f1")
    own_identity: ClassVar[Sequence[str]] = ()

    def _climb(self, ladder: Sequence[int], first: int) -> None:
        """Start at an order of the ladder."""
        self.ladder, self.rung = ladder, first
        self.orders: dict[int, dict[str, Any]] = {first: self._identity(self)}

    def advance(self, t_stop: float, wanted: int) -> tuple[int, int]:
        """Run the loop; change the order when it asks for that."""
        code, taken = super().advance(t_stop, wanted)
        if code == at.SWITCH:
            self._switch()
            code = at.FULL
        return code, taken

    def _identity(self, engine: Any) -> dict[str, Any]:
        return {name: getattr(engine, name) for name in (*IDENTITY, *CALLS, *self.own_identity)}

    def _switch(self) -> None:
        place = self.ladder.index(self.rung) + int(self.count[at.ORDER_WISH])
        wanted = self.ladder[min(max(place, 0), len(self.ladder) - 1)]
        self.count[at.ORDER_WISH] = self.count[at.STEPS_AT_ORDER] = 0
        if wanted == self.rung:
            return
        if wanted not in self.orders:
            other = self._make(wanted)
            self.trampolines += other.trampolines
            for name in ("ts", "ys", "Qs"):  # all orders write into the same buffers
                other.w.replace(name, getattr(self, name))
            self.orders[wanted] = self._identity(other)
        self.rung = wanted
        self._move_to(self.orders[wanted])

    @abstractmethod
    def _make(self, order: int) -> Engine:
        """Make the engine of another order."""

    def _move_to(self, new: dict[str, Any]) -> None:
        for place in MOVING_TIMES:
            new["clock"][place] = self.clock[place]
        for place in MOVING_COUNTS:
            new["count"][place] = self.count[place]
        for name in self.moving_vectors:
            getattr(new["w"], name)[:] = getattr(self.w, name)
        new["count"][at.ORDER_WISH] = new["count"][at.STEPS_AT_ORDER] = 0
        self.__dict__.update(new)
