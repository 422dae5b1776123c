"""The equation of an implicit multistep method, y − hβ f(t, y) = known, solved for y.

Steps have a fixed length and no tolerance, so the iteration goes on until only rounding errors
are left: what a convergence study sees is the method and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.pointers import SingularMatrixError
from ...stepping.state import NEWTON_FAILED, OK, SINGULAR_MATRIX, Status
from ..runge_kutta.implicit.algebra import JacobianSource, LinearAlgebra

if TYPE_CHECKING:
    from .engine import MultistepEngine

__all__ = ["FixedPoint", "Newton"]

Array = NDArray[np.float64]

MOST_NEWTON, MOST_FIXED_POINT = 25, 200
ROUND_OFF = 4 * np.finfo(float).eps  # a relative increment below this changes nothing …
NOISE = 1e-9  # … and one below this that no longer shrinks is made of rounding errors
SLOW = 0.3  # contraction above which the Jacobian is evaluated again
SMALL = 1e-8  # of the largest component: smaller ones are judged in units of this


class Newton:
    """Newton's iteration with a Jacobian that is kept while it serves."""

    def __init__(self, engine: MultistepEngine, beta: float) -> None:
        self.engine = engine
        source: Any = JacobianSource(engine)  # type: ignore[arg-type]
        f: Any = engine.problem.f
        if engine.state.f_native == 1 and engine.problem.jac is None and source.directions is None:
            source.function = engine.problem.bind(f.jacobian())
        engine.jacobian = source
        arrays = {"real_shift": np.array([beta]), "complex_shift": np.zeros(0)}
        self.algebra = LinearAlgebra(engine, arrays)  # type: ignore[arg-type]
        self.factored = 0.0  # the step for which there is a factorisation

    def forget(self) -> None:
        """The state has been moved far: its Jacobian is another one."""
        self.factored = 0.0

    def _factor(self, t: float, y: Array, h: float) -> None:
        engine = self.engine
        engine.x[:] = y
        self.algebra.use(engine.jacobian.evaluate(t))
        engine.state.njev += 1
        engine.state.h_factored = self.factored = h
        self.algebra._factor()
        engine.state.nlu += 1

    def solve(self, t: float, y: Array, known: Array, h: float, beta: float) -> int:
        """Solve for y, in place, from a first guess; the status of it."""
        engine, past = self.engine, self.engine.past_sizes()
        try:
            if self.factored != h:
                self._factor(t, y, h)
            before = np.inf
            for _ in range(MOST_NEWTON):
                slope = engine.limited_slope(t, y)
                engine.state.nnewton += 1
                if not np.all(np.isfinite(slope)):
                    return NEWTON_FAILED
                increment = self.algebra.real[0](known + h * beta * slope - y)
                y += increment
                size = _relative(increment, np.maximum(past, np.abs(y)))
                if not np.isfinite(size):
                    return NEWTON_FAILED
                if size <= ROUND_OFF:
                    return OK
                if size > SLOW * before:
                    if size <= NOISE:
                        return OK
                    self._factor(t, y, h)
                before = size
        except SingularMatrixError:
            return SINGULAR_MATRIX
        return NEWTON_FAILED


class FixedPoint:
    """y ← known + hβ f(t, y), which contracts while hβ times f's Lipschitz constant is below 1."""

    def __init__(self, engine: MultistepEngine, beta: float) -> None:
        self.engine = engine

    def forget(self) -> None:
        """Nothing is kept from step to step."""

    def solve(self, t: float, y: Array, known: Array, h: float, beta: float) -> int:
        """Solve for y, in place, from a first guess; the status of it."""
        engine, before, past = self.engine, np.inf, self.engine.past_sizes()
        for _ in range(MOST_FIXED_POINT):
            slope = engine.limited_slope(t, y)
            engine.state.nnewton += 1
            with np.errstate(over="ignore", invalid="ignore"):  # it may diverge
                new = known + h * beta * slope
                size = _relative(new - y, np.maximum(past, np.abs(new)))
            y[:] = new
            if size <= ROUND_OFF or (size <= NOISE and size >= before):
                return OK
            if not np.isfinite(size):
                break
            before = size
        engine.failure = (
            "the fixed-point iteration for the new value does not converge: it needs h·β·L < 1, "
            "where L is f's Lipschitz constant; shorten the step, or take iteration='newton'"
        )
        return int(Status.EXTERNAL_FAILED)


def _relative(increment: Array, sizes: Array) -> float:
    """Largest relative increment; a component that passes through 0 has the size it had before."""
    scale = np.maximum(sizes, SMALL * sizes.max(initial=0.0))
    moved = np.abs(increment)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.max(np.where(moved == 0.0, 0.0, moved / scale), initial=0.0))
