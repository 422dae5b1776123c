"""Leading derivatives, put in their place where the equations tell more of them than a step did.

After a step the derivatives below the leading ones are put onto the constraints, and then stage 0
of the equations gives the leading ones: multipliers, voltages, accelerations. That is exact, but it
follows from values that have errors of their own, and may be ill-conditioned: where the diodes of a
circuit block, a voltage follows from the last digits of currents, and what an implicit method found
is better. So leading derivatives are moved where that changes them by more than what the tolerance
leaves open in the other values would do.

As given, unknowns of index 2 and 3 are found to lower order than the others, by far worse than
that; :class:`Restored` puts them right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pattern.structure import StructureError
from .problem import Completed
from .projection import Keep, Projection

__all__ = ["Reaction", "Restored"]

Array = NDArray[np.float64]

WITHOUT_TOLERANCE = 1e-8  # relative error that values of fixed steps are assumed to have
NEGLIGIBLE = 0.1  # a move, in tolerances, of which nobody asks whether it was right
TINY = np.finfo(float).tiny


class Reaction:
    """How leading derivatives react to errors of the others.

    Parameters
    ----------
    projection
        The stages of the equations.
    held
        Places in X that a state knows.
    rtol, atol
        Errors that values may have; atol for each of them, or for all.
    """

    def __init__(
        self,
        projection: Projection,
        held: NDArray[np.int64],
        rtol: float = WITHOUT_TOLERANCE,
        atol: Any = 0.0,
    ) -> None:
        self.projection, self.held, self.rtol = projection, held, rtol
        self.atol = atol if np.ndim(atol) == 0 else np.asarray(atol)[: held.size]
        self.leading = np.isin(held, projection.stages[-1].places)
        self.signs = np.random.default_rng(16).choice([-1.0, 1.0], held.size)
        self.signs[self.leading] = 0.0

    def settle(self, t: float, X: Array, before: Array, p: Any, keep: Keep = ()) -> None:
        """Give leading entries of X their values `before` where the equations tell no more.

        Errors that constraints put right, as they did on the way to X, leave nothing open.
        """
        array, held = self.projection.array, self.held
        allowed = self.atol + self.rtol * np.maximum(np.abs(before), np.abs(X[held])) + TINY
        moved = np.abs((X[held] - before) / allowed)[self.leading].max(initial=0.0)
        if moved < NEGLIGIBLE:
            return
        near = X.copy()
        near[held] += self.signs * allowed
        for stage in self.projection.stages:
            residual = array.residuals(t, near, p)[stage.rows]
            near[stage.places] += stage.step(array.entries(t, near, p), residual, keep)
        if moved < np.abs((near - X)[held] / allowed)[self.leading].max(initial=0.0):
            X[held[self.leading]] = before[self.leading]


class Restored:
    """``project(t, y, p)`` as given: a state that satisfies hidden constraints, or y itself.

    Parameters
    ----------
    completed
        What makes states consistent.
    tolerances
        Those of :class:`Reaction`.
    """

    def __init__(self, completed: Completed, **tolerances: Any) -> None:
        self.completed = completed
        self.reaction = Reaction(completed.projection, completed.held, **tolerances)

    def within(self, rtol: float, atol: Any) -> Restored:
        """Return a copy for a run with these tolerances."""
        return Restored(self.completed, rtol=rtol, atol=atol)

    def __call__(self, t: float, y: Any, p: Any = ()) -> Array:
        """Return the state."""
        completed, y = self.completed, np.asarray(y, dtype=float)
        try:
            X = completed.staged(t, y, p, None)
            self.reaction.settle(t, X, y, p)
        except (StructureError, np.linalg.LinAlgError, RuntimeError):
            return y
        return completed.state(t, X, p)
