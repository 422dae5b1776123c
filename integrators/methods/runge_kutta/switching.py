"""Methods that change their order on the way.

Each order has an engine of its own, made when it is first needed. A kernel of the method wishes for
a higher or lower order (``order_wish``), the loop returns, and :class:`Ladder` lets another engine
go on from the state that the run is in.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...stepping import state as at
from ...stepping.engine import Engine, Options, Stepper, Take
from ...stepping.state import State

__all__ = ["Ladder"]

# What belongs to the run rather than to the order.
OF_THE_RUN = State.places(
    *("t", "t_previous", "t_stop", "limited", "t_limit", "t_base", "h", "h_last"),
    *("log_error", "log_before", "last_rejected", "last_reason"),
    *("nfev", "njev", "nlu", "nnewton", "nseries", "nsteps", "nrejected"),
    *("stop", "taken", "kept", "next_output", "f0_current", "have_f1"),
    *("have_jacobian", "jacobian_current", "jacobian_age", "have_start"),
    *("watch_stiffness", "family_wish", "stability_boundary", "stiff_patience", "mild_steps"),
)


class Ladder(Stepper):
    """One engine for each order of a method, of which one at a time takes the steps.

    Parameters
    ----------
    rungs
        What tells the orders apart, ascending.
    first
        Where to begin.
    """

    moving_vectors: ClassVar[Sequence[str]] = ("y", "y_old", "f0", "f1")
    keeps_bounds = True

    def __init__(self, rungs: Sequence[int], first: int, problem: IVP, options: Options) -> None:
        super().__init__(problem, options)
        self.rungs, self.rung = rungs, first
        self.engine = self._make(first)
        self.engines = {first: self.engine}
        self.projection: Any = None  # done by the loop
        self.estimate, self.dense_order = self.engine.estimate, self.engine.dense_order

    @abstractmethod
    def _make(self, rung: int) -> Engine:
        """Make the engine of an order."""

    def march(self, t_stop: float, take: Take, one_by_one: bool) -> int:
        """Take steps up to ``t_stop``; change the order when the loop asks for that."""
        code = at.SWITCH
        while code == at.SWITCH:
            code = self.engine.march(t_stop, take, one_by_one)
            if code == at.SWITCH or (code == at.OK and self.engine.state.order_wish != 0):
                self._switch()
        return code

    def _switch(self) -> None:
        state = self.engine.state
        place = self.rungs.index(self.rung) + int(state.order_wish)
        wanted = self.rungs[min(max(place, 0), len(self.rungs) - 1)]
        state.order_wish = state.steps_at_order = 0
        if wanted == self.rung:
            return
        if wanted not in self.engines:
            self.engines[wanted] = other = self._make(wanted)
            for name in ("ts", "ys", "Qs"):  # all orders write into the same buffers
                setattr(other, name, getattr(self.engine, name))
                other.w.replace(name, getattr(self.engine, name))
        before, self.engine, self.rung = self.engine, self.engines[wanted], wanted
        self.dense_order = self.engine.dense_order
        self._hand_over(before, self.engine)
        if self.projection is not None:
            self.engine.project_in_loop(self.projection)
        self.engine.renew()

    def _hand_over(self, before: Any, after: Any) -> None:
        """Put one engine into the state of another."""
        after.state.words[OF_THE_RUN] = before.state.words[OF_THE_RUN]
        after.state.order_wish = after.state.steps_at_order = 0
        for name in self.moving_vectors:
            getattr(after.w, name)[:] = getattr(before.w, name)

    # ------------------------------------------------------------ what the present engine does

    @property
    def is_native(self) -> bool:
        """Whether steps are machine code throughout."""
        return self.engine.is_native

    @property
    def look(self) -> bool:  # type: ignore[override]
        """Whether the last step may hold an event."""
        return self.engine.look

    @property
    def unprojected(self) -> bool:  # type: ignore[override]
        """Whether the last step still is to be projected."""
        return self.engine.unprojected

    def project_in_loop(self, project: Any) -> bool:
        """Let the loop project, whatever the order."""
        done = self.engine.project_in_loop(project)
        self.projection = project if done else None
        return done

    def renew(self) -> None:
        """Read addresses again."""
        self.engine.renew()

    @property
    def t(self) -> float:
        """Current time."""
        return self.engine.t

    @property
    def y(self) -> NDArray[Any]:
        """Current state, a copy."""
        return self.engine.y

    @property
    def h(self) -> float:
        """Magnitude proposed for the next step."""
        return self.engine.h

    @property
    def linear_solver(self) -> str:  # type: ignore[override]
        """How linear systems are solved, in words: of the last engine that solves any."""
        told = [engine.linear_solver for engine in self.engines.values() if engine.linear_solver]
        return self.engine.linear_solver or (told[-1] if told else "")

    def slope(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """f(t, y), counted; raises what f raises."""
        return self.engine.slope(t, y)

    def begin(self, slope: NDArray[Any], first_step: float | None) -> None:
        """Prepare the first step."""
        self.engine.begin(slope, first_step)

    def typical_size(self) -> NDArray[np.float64]:
        """Size below which a component does not matter."""
        return self.engine.typical_size()

    def replace_state(self, y: NDArray[Any]) -> None:
        """Put another state in place of the current one."""
        self.engine.replace_state(y)

    def restart(self, t: float, y: NDArray[Any], h: float | None = None) -> None:
        """Start afresh from (t, y) after a jump."""
        self.engine.restart(t, y, h)

    def forget(self) -> None:
        """Use nothing that was learnt from earlier steps."""
        self.engine.forget()

    def release(self) -> None:
        """Told at the end of a run: the engines may be used for another one."""
        for engine in self.engines.values():
            engine.release()

    def stop(self) -> None:
        """End before the next step."""
        for engine in list(self.engines.values()):
            engine.stop()

    def error(self) -> BaseException | None:
        """Return what a Python function raised, once."""
        return next((e for x in self.engines.values() if (e := x.error()) is not None), None)

    def statistics(self) -> dict[str, int]:
        """Counters under their public names."""
        return self.engine.statistics()
