"""Which of many runs need a review: those that came anywhere near a singular position.

The review of a run with loops (``review``) takes longer than the run. Of ten thousand runs nearly
all stay far from singular positions, with loops closed, and that is seen from numbers which cost
little for all states of all runs together: the pivots of KH⁻¹Kᵀ, the gaps, and the levers with
which coordinates change them. A run passes if the very tests of ``singular_places`` find nothing to
look at more closely; all others go through the review.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.tracing import traced

from ...checks import Array
from ...dynamics.loops.constraints.gaps import closure_kernel
from ...dynamics.loops.multipliers import couple_rows, weighted_rows
from .places import HIDDEN_AT_ALL, OPEN, REDUNDANT, _dips, _looks
from .places import NEAR_SINGULAR as NEAR

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["LoopScreen"]

#: States that are looked at together: their numbers stay in the cache.
TOGETHER = 8192


class LoopScreen:
    """Which runs of a model, or of a family of models, have to be reviewed.

    Parameters
    ----------
    model
        With loops; states are [q; v].
    symbols
        For a family: ``symbols(p)`` is the context in which the model's tables are symbols.
    size
        For a family: length of p.
    """

    def __init__(self, model: Model, symbols: Any = None, size: int = 0) -> None:
        self.model, self.symbols, self.size = model, symbols, size
        self._function: Any = None

    def __call__(self, p: Array, at: Array, t: Array, y: Array) -> Array:
        """Whether each run has to be reviewed.

        Parameters
        ----------
        p
            Parameters, a row for each run.
        at
            The states of run k stand from at[k] to at[k + 1].
        t, y
            Times and states (in rows) of all runs, one after the other.
        """
        nq = self.model.nq
        runs = np.repeat(np.arange(len(at) - 1), np.diff(at))
        with np.errstate(all="ignore"):
            found = [
                self._look(p[runs[k : k + TOGETHER]], t[k : k + TOGETHER], y[k : k + TOGETHER])
                for k in range(0, len(t), TOGETHER)
            ]
        if not found:
            return np.zeros(len(at) - 1, dtype=bool)
        ratios, gaps, levers = (np.concatenate(parts) for parts in zip(*found))
        needed = np.ones(len(at) - 1, dtype=bool)
        for k, (i, j) in enumerate(itertools.pairwise(at)):
            if j - i > 1:
                part = slice(i, j)
                needed[k] = self._suspicious(
                    t[part], y[part, :nq].T, ratios[part], gaps[part], levers[part]
                )
        return needed

    def _suspicious(self, t: Array, q: Array, ratios: Array, gaps: Array, levers: Array) -> bool:
        """Whether ``singular_positions`` would look at anything more closely."""
        if not (np.isfinite(ratios).all() and np.isfinite(gaps).all() and np.isfinite(q).all()):
            return True
        looks = _looks(q)
        usual = np.median(ratios[looks], axis=0)
        rank = int(np.sum(usual > REDUNDANT))
        if rank == 0:
            return True
        along = ratios[:, rank - 1]
        if _dips(t[looks], along[looks], NEAR * float(usual[rank - 1])):
            return True
        arms = np.sqrt(levers.max(axis=0))
        longest = float(arms.max(initial=0.0))
        arms = np.maximum(arms, 1e-3 * longest if longest > 0.0 else 1.0)
        open_by = float((gaps / arms).max(initial=0.0))
        return not open_by < min(OPEN, HIDDEN_AT_ALL * float(along.min()) ** 2)

    def _look(self, p: Array, t: Array, y: Array) -> tuple[Array, Array, Array]:
        """Ratios of pivots, gaps, and squared levers, of many states."""
        m, count = len(t), len(self.model.tree.acting_rows)
        values = self._traced().graph.evaluate([t, *y.T, *(p.T if self.size else ())])
        flat = np.array([np.broadcast_to(x, (m,)) for x in values])
        A = flat[: count * count].reshape(count, count, m).transpose(2, 0, 1)
        gaps, levers = flat[count * count :].reshape(2, count, m)
        return _pivot_ratios(A), np.abs(gaps).T, levers.T

    def _traced(self) -> Any:
        """A = KH⁻¹Kᵀ of the constraints that act, their gaps and squared levers."""
        if self._function is None:
            model, rows = self.model, self.model.tree.acting_rows
            count, nq = len(rows), model.nq

            def look(t: Any, x: Any, p: Any = ()) -> Any:
                if self.symbols is None:
                    w = model.tree.symbolic()
                else:
                    with self.symbols(p):
                        w = model.tree.symbolic()
                w.t[0], w.q[:], w.v[:] = t, x[:nq], 0.0
                closure_kernel(w)
                gaps = [w.delta[r] for r in rows]
                levers = [sum(w.K[r, k] * w.K[r, k] for k in range(model.nv)) for r in rows]
                weighted_rows(w)
                couple_rows(w)
                return np.array([*w.A[:count, :count].ravel(), *gaps, *levers])

            self._function = traced(
                look, n=nq + model.nv, params=self.size, outputs=count * (count + 2)
            )
        return self._function


def _pivot_ratios(A: Array) -> Array:
    """Square roots of the pivots of matrices over the first, as ``closed_loop.independence``."""
    F = A.copy()
    m, n, _ = F.shape
    every = np.arange(m)
    pivots = np.zeros((m, n))
    for j in range(n):
        best = j + np.argmax(np.diagonal(F, axis1=1, axis2=2)[:, j:], axis=1)
        for axis in (1, 2):
            F = np.swapaxes(F, 1, axis)
            swapped = F[every, best].copy()
            F[every, best] = F[:, j]
            F[:, j] = swapped
            F = np.swapaxes(F, 1, axis)
        pivot = F[:, j, j]
        good = pivot > 0.0
        pivots[good, j] = pivot[good]
        if not good.any():
            break
        factor = np.where(good[:, None], F[:, j + 1 :, j] / np.where(good, pivot, 1.0)[:, None], 0)
        F[:, j + 1 :, j + 1 :] -= factor[:, :, None] * F[:, None, j, j + 1 :]
        F[~good, j:, j:] = 0.0
    first = np.where(pivots[:, :1] > 0.0, pivots[:, :1], 1.0)
    return np.sqrt(pivots / first)
