"""A run that changes between an explicit and a stiff method.

Both are ordinary engines. One takes the steps until its kernels wish for the other
(``stepping.stiffness``); then, if eigenvalues or a closer look confirm that, the state of the run
moves over. What a run asks of its engine is done by the one that is in charge.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import catalogue
from ...problem import IVP
from ...runs.phases import Phase
from ...stepping import state as at
from ...stepping.engine import Engine, Options, Stepper, Take
from ...stepping.state import State
from ..runge_kutta.implicit.algebra import LARGEST_OWN_LU
from ..runge_kutta.stability_limit import real_boundary
from ..runge_kutta.switching import Ladder
from .choice import (
    POWER_ITERATIONS,
    decays,
    decays_fast,
    dominant,
    explicit_name,
    fast_decay,
    known_eigenvalues,
    may_have_eigenvalues,
    stiff_name,
)

__all__ = ["AutomaticEngine", "bound_by_name"]

Array = NDArray[np.float64]

EXPLICIT, STIFF = "explicit", "stiff"
# What belongs to the run rather than to the method.
OF_THE_RUN = State.places(
    *("t", "t_previous", "t_stop", "limited", "t_limit", "direction", "h_last"),
    *("nfev", "njev", "nlu", "nnewton", "nseries", "nsteps", "nrejected"),
    *("stop", "taken", "kept", "next_output"),
)
PATIENCE = {EXPLICIT: 6, STIFF: 25}  # steps in a row before a change is considered
# An explicit pair takes over where steps of the stiff method times the largest eigenvalue are less.
MILD, MILD_ONE_STEP = {"BDF": 0.1}, 1.0
LONG = 100  # a transient that lasts so many steps is none
LEAST_LEFT, FEW_JACOBIANS = 60, 3  # evaluations of f that a stiff method needs, at the least
MOST_DIFFERENCES = 60  # for a Jacobian of a large f: its pattern is found, or it is not formed
CONFIRMED = 0.5  # of the boundary of stability


def bound_by_name(name: str, problem: IVP, options: Options) -> Stepper:
    """Bind a method of this package to a problem."""
    from ..names import bound, chosen_method

    return bound(chosen_method(name), problem, options)


def _increments(y: NDArray[Any], options: Options) -> Array:
    """Changes of the components by which differences of f are taken."""
    size = np.maximum(np.abs(y), options.atol / max(options.rtol, 1e-12))
    return np.asarray(np.sqrt(np.finfo(float).eps) * np.maximum(size, 1e-12))


@cache
def _boundary(name: str) -> float:
    """Boundary of stability of an explicit pair."""
    return real_boundary(catalogue.get(name))


class AutomaticEngine(Ladder):
    """An explicit method and one for stiff problems, of which one at a time takes the steps."""

    def __init__(self, problem: IVP, options: Options) -> None:
        self.names = {EXPLICIT: explicit_name(options), STIFF: ""}
        self.finished: list[Phase] = []
        self.patience = dict(PATIENCE)
        self.watched: tuple[Sequence[Any], Array] | None = None
        self.watching = False
        first, (t, t_end) = EXPLICIT, problem.t_span
        least = fast_decay(options.rtol) / max(abs(t_end - t), 1e-300)
        eigenvalues = known_eigenvalues(problem, t, problem.y0, least)
        if eigenvalues is not None and decays(eigenvalues, t, t_end, options.rtol):
            first, self.names[STIFF] = STIFF, stiff_name(problem, options, eigenvalues)
        looked = self._look_at_large(problem, options)
        if looked is not None and decays_fast(*looked, abs(t_end - t), options.rtol):
            first, self.names[STIFF] = STIFF, stiff_name(problem, options)
        super().__init__([EXPLICIT, STIFF], first, problem, options)  # type: ignore[list-item, arg-type]
        self.boundary = _boundary(self.names[EXPLICIT])
        self._watch_stiffness()
        self.began = problem.t_span[0], self.engine.statistics()
        self._state.nfev += 0 if looked is None else POWER_ITERATIONS + 1

    def _look_at_large(self, problem: IVP, options: Options) -> tuple[float, float] | None:
        """Modulus and real part of the largest eigenvalue at the start of a large problem.

        For grids it tells how stiff they are; steps would have to try.
        """
        plain = problem.mass is None and problem.y0.dtype.kind != "c" and problem.manifold is None
        if not plain or problem.n <= LARGEST_OWN_LU:
            return None
        small = _increments(problem.y0, options)
        try:
            return dominant(problem.bind(problem.f), problem.t_span[0], problem.y0, small)
        except Exception:  # whoever steps will meet it, too, and say so
            return None

    def _make(self, rung: Any) -> Any:
        # Implicit methods change tolerances, so they are given their own.
        options = self.options if rung == EXPLICIT else copy(self.options)
        return bound_by_name(self.names[rung], self.problem, options)

    @property
    def _worker(self) -> Engine:
        """The engine itself, below methods that change their order by engines."""
        engine: Any = self.engine
        return engine.engine if isinstance(engine, Ladder) else engine

    @property
    def _state(self) -> State:
        return self._worker.state

    def _watch_stiffness(self) -> None:
        """Let the kernels wish for the other method."""
        state, name = self._state, self.names[self.rung]  # type: ignore[index]
        state.watch_stiffness = 2
        state.stiff_patience = self.patience[self.rung]  # type: ignore[index]
        state.stiff_steps = state.mild_steps = state.family_wish = 0
        if self.rung == STIFF:
            state.stability_boundary = MILD.get(name, MILD_ONE_STEP)
            if self.problem.mass is not None:  # the Jacobian alone says nothing
                state.watch_stiffness = 0

    # ------------------------------------------------------------ steps

    def begin(self, slope: NDArray[Any], first_step: float | None) -> None:
        """Prepare the first step; where it leads to, the problem may be seen to be stiff.

        Reactions whose products are not there yet have no fast eigenvalue at the start.
        """
        super().begin(slope, first_step)
        problem, (t, t_end) = self.problem, self.problem.t_span
        if self.rung == STIFF or problem.manifold is not None or t == t_end:
            return
        h = float(self._state.direction) * self.h
        least = fast_decay(self.options.rtol) / abs(t_end - t)
        eigenvalues = known_eigenvalues(problem, t + h, problem.y0 + h * slope, least)
        if eigenvalues is not None and decays(eigenvalues, t, t_end, self.options.rtol):
            began = self.began
            self._go_over(STIFF, eigenvalues)
            self.began = began
            self.engine.begin(slope, first_step)

    def march(self, t_stop: float, take: Take, one_by_one: bool) -> int:
        """Take steps up to ``t_stop``; change the method when the loop asks for that."""
        while True:
            if self._state.family_wish != 0:
                self._consider()
            unwatched = self.watched is not None and not self.watching
            code = self.engine.march(t_stop, take, one_by_one or unwatched)
            if code != at.CHANGE:
                return code

    def _consider(self) -> None:
        """Change the method, or be more patient."""
        state = self._state
        wish, h = int(state.family_wish), abs(float(state.h_last))
        state.family_wish = state.stiff_steps = state.mild_steps = 0
        to = STIFF if wish > 0 else EXPLICIT
        if to == self.rung:
            return
        eigenvalues = self._eigenvalues()
        radius = self._radius() if eigenvalues is None else np.abs(eigenvalues).max(initial=0.0)
        if to == STIFF:
            confirmed = h * radius > CONFIRMED * self.boundary and self._is_worth_it(h)
        else:
            confirmed = h * radius < float(state.stability_boundary)
            if confirmed and eigenvalues is not None and state.stiff_patience < LONG:
                end = self.problem.t_span[1]  # a transient, with stiffness behind it?
                confirmed = not decays(eigenvalues, self.t, end, self.options.rtol)
        if not confirmed:
            state.stiff_patience *= 4
            return
        self._change(to, eigenvalues)

    def _is_worth_it(self, h: float) -> bool:
        """Whether the rest of the interval needs more evaluations of f than a stiff method."""
        problem, stages = self.problem, int(self._state.stages)
        left = abs(problem.t_span[1] - self.t) / h * stages
        known = problem.jac is not None or hasattr(problem.f, "jacobian")
        by_differences = 0 if known or problem.jac_sparsity is not None else problem.n
        by_differences = min(by_differences, MOST_DIFFERENCES)
        return left > LEAST_LEFT + FEW_JACOBIANS * by_differences

    def _change(self, to: str, eigenvalues: NDArray[Any] | None) -> None:
        self.finished.append(self._phase())
        self.patience[to] *= 2  # so that it does not go to and fro
        self._go_over(to, eigenvalues)

    def _go_over(self, to: str, eigenvalues: NDArray[Any] | None) -> None:
        before, h = self._worker, float(self._state.h)
        t, y = before.t, before.y
        if to == STIFF:
            name = stiff_name(self.problem, self.options, eigenvalues)
            if name != self.names[STIFF]:
                self.engines.pop(STIFF, None)  # type: ignore[call-overload]
            self.names[STIFF] = name
        if to not in self.engines:
            self.engines[to] = self._make(to)  # type: ignore[index]
        self.engine, self.rung = self.engines[to], to  # type: ignore[index, assignment]
        self._state.words[OF_THE_RUN] = before.state.words[OF_THE_RUN]
        self.engine.restart(t, y, h)
        self._watch_stiffness()
        self.dense_order = min(self.dense_order, self.engine.dense_order)
        self.estimate = "; ".join(engine.estimate for engine in self.engines.values())
        if self.watched is not None:
            self.watching = self.engine.watch(*self.watched)
        if self.projection is not None:
            self.engine.project_in_loop(self.projection)
        self.engine.renew()
        self.began = t, self.engine.statistics()

    # ------------------------------------------------------------ a closer look

    def _eigenvalues(self) -> NDArray[Any] | None:
        """Eigenvalues of the Jacobian at the present state, if it is small."""
        found = known_eigenvalues(self.problem, self.t, self.y)
        if found is not None or not may_have_eigenvalues(self.problem):
            return found
        t, y, J = self.t, self.y, np.empty((self.n, self.n))
        base = self.slope(t, y)
        for j, small in enumerate(self._increments(y)):
            moved = y.copy()
            moved[j] += small
            J[:, j] = (self.slope(t, moved) - base) / small
        return np.linalg.eigvals(J) if np.all(np.isfinite(J)) else None

    def _increments(self, y: NDArray[Any]) -> Array:
        return _increments(y, self.options)

    def _radius(self) -> float:
        """Spectral radius, nearly."""
        if self.problem.mass is not None:
            return np.inf  # f is not the derivative: believe the kernels
        return dominant(self.slope, self.t, self.y, self._increments(self.y))[0]

    # ------------------------------------------------------------ what a run asks

    def _phase(self) -> Phase:
        start, before = self.began
        now = self.engine.statistics()
        taken = {name: now[name] - before[name] for name in now}
        return Phase(self.names[self.rung], start, self.t, **taken)  # type: ignore[index]

    @property
    def phases(self) -> tuple[Phase, ...]:
        """What each method did, in order."""
        return (*self.finished, self._phase())

    def watch(self, functions: Sequence[Any], values: Array) -> bool:
        """Watch for zeros of event functions while marching."""
        self.watched = functions, values
        self.watching = self.engine.watch(functions, values)
        return self.watching

    @property
    def look(self) -> bool:  # type: ignore[override]
        """Whether the last step may hold an event."""
        return self.engine.look

    def initial_step(self, slope: NDArray[Any], order: int, rtol: float) -> float:
        """First guess of the step."""
        return self.engine.initial_step(slope, order, rtol)
