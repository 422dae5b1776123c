"""Back onto all constraints: the nearest consistent state, stage by stage.

At stage k < 0 the equations of order k + c_i bind the derivatives of order k + d_j; their matrix is
a part of the system Jacobian and has full row rank where that is regular. Each stage is solved by
Gauss–Newton steps of least length, beginning with the equations as given, so that corrections of
positions are not influenced by velocities. Stage 0 then gives algebraic unknowns, and leading
derivatives that are part of a state.

As given, implicit methods leave the constraints by what errors of multipliers do. There the way
back is the one along which multipliers act, J δ = (0, −r) with zeros for equations that are not
differentiated: components that no constraint binds are put right with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..derivative_array import DerivativeArray
from ..pattern.structure import StructureError

__all__ = ["Keep", "Projection"]

Array = NDArray[np.float64]
#: Places in X and the combinations of the values there (rows) that are to stay.
Keep = Sequence[tuple[NDArray[np.int64], Array]]

EPS = float(np.finfo(float).eps)
MOST_STEPS = 12
SETTLED = 8 * EPS  # a correction this small, relative to the values, is rounding
LARGEST_DENSE = 200
LOOSE = 1e6  # such a change of a loose value counts as 1 of another
ILL_CONDITIONED = 1e-12  # reciprocal condition, rows and columns scaled, that ends a run


class _Stage:
    """One stage: its residuals, its unknowns, and the part of J that connects them."""

    def __init__(self, array: DerivativeArray, k: int) -> None:
        n = array.n
        equations = [i for i in range(n) if k + array.c[i] >= 0]
        unknowns = [j for j in range(n) if k + array.d[j] >= 0]
        where = {row: r for r, row in enumerate(array.rows)}
        self.rows = np.array([where[i, k + array.c[i]] for i in equations], dtype=np.int64)
        self.places = np.array([array.place[j, k + array.d[j]] for j in unknowns], dtype=np.int64)
        self.column = {int(place): k for k, place in enumerate(self.places)}
        self.equations, self.unknowns = equations, unknowns
        row = np.full(n, -1)
        column = np.full(n, -1)
        row[equations] = np.arange(len(equations))
        column[unknowns] = np.arange(len(unknowns))
        jacobian = array.system_jacobian
        r, c = row[jacobian.rows], column[jacobian.columns]
        self.entries = np.flatnonzero((r >= 0) & (c >= 0))
        self.r, self.c = r[self.entries], c[self.entries]
        self.shape = (len(equations), len(unknowns))

    def step(self, entries: Array, residual: Array, keep: Keep) -> Array:
        """Return the shortest correction of the unknowns; combinations to keep do not change."""
        m, n = self.shape
        own = [(places, V) for places, V in keep if int(places[0]) in self.column]
        if n <= LARGEST_DENSE:
            A = np.zeros(self.shape)
            A[self.r, self.c] = entries[self.entries]
            if own:
                A, right = np.vstack([A, *self._rows(own)]), self._padded(residual, own)
                return np.asarray(np.linalg.lstsq(A, right, rcond=None)[0])
            if m == n:
                return np.asarray(np.linalg.solve(A, -residual))
            if m == 1:
                return -A[0] * (residual[0] / float(A[0] @ A[0]))
            Q, R = np.linalg.qr(A.T)
            return np.asarray(Q @ np.linalg.solve(R.T, -residual))
        from scipy.sparse import csc_matrix, vstack
        from scipy.sparse.linalg import splu

        from ..start import _sparse_least

        sparse = csc_matrix((entries[self.entries], (self.r, self.c)), shape=self.shape)
        if own:
            rows = [csc_matrix(B) for B in self._rows(own)]
            return _sparse_least(vstack([sparse, *rows]).tocsr(), self._padded(residual, own))
        if m == n:
            return np.asarray(splu(sparse).solve(-residual))
        return _sparse_least(sparse, -residual)

    def _rows(self, own: Keep) -> list[Array]:
        """Return combinations to keep as rows over the unknowns of the stage."""
        found = []
        for places, V in own:
            B = np.zeros((len(V), self.shape[1]))
            B[:, [self.column[x] for x in places.tolist()]] = V
            found.append(B)
        return found

    @staticmethod
    def _padded(residual: Array, own: Keep) -> Array:
        return np.concatenate([-residual, np.zeros(sum(len(V) for _, V in own))])


def _along_reactions(array: DerivativeArray, stage: _Stage, entries: Array, residual: Array) -> Any:
    """Correct the unknowns of a stage in the way in which leading derivatives act on them.

    What a method has missed of a constraint is the effect of errors of multipliers, and these act
    on other components, too, as the equations say that are not differentiated: those whose rows
    stay zero here. (With masses M this is the projection in the norm of M.)
    """
    jacobian = array.system_jacobian
    right = np.zeros(array.n)
    right[stage.equations] = -residual
    if array.n <= LARGEST_DENSE:
        return np.linalg.solve(jacobian.dense(entries), right)[stage.unknowns]
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    J = csc_matrix((entries, (jacobian.rows, jacobian.columns)), shape=(array.n, array.n))
    return splu(J).solve(right)[stage.unknowns]


class Projection:
    """``project(t, y, p)``: a state onto all its constraints, and all derivatives of it.

    Parameters
    ----------
    array
        The equations with their derivatives.
    """

    def __init__(self, array: DerivativeArray) -> None:
        self.array = array
        deepest = max(array.c, default=0)
        stages = [_Stage(array, k) for k in range(-deepest, 1)]
        self.stages = [stage for stage in stages if stage.shape[0]]

    def __reduce__(self) -> Any:
        return Projection, (self.array,)

    def __call__(self, t: float, y: Array, p: Any = ()) -> Array:
        """Return the consistent state nearest to y."""
        return self.all_derivatives(t, y, p)[self.array.state_places]

    def state(self, t: float, X: Array, p: Any = ()) -> Array:
        """Return the state in all derivatives."""
        return X[self.array.state_places]

    def all_derivatives(
        self,
        t: float,
        y: Array,
        p: Any = (),
        keep: Keep = (),
        loose: Sequence[int] | None = (),
    ) -> Array:
        """Return X at the consistent state nearest to y.

        Some combinations may be kept; values at `loose` places follow from the others of their
        stage. If `loose` is None, states change as errors of leading derivatives make them.
        """
        array = self.array
        X = np.zeros(array.size)
        X[array.state_places] = np.asarray(y, dtype=float)
        ease = None
        if loose is not None:
            ease = np.ones(array.size)
            ease[list(loose)] = LOOSE
        for stage in self.stages:
            self._settle(stage, t, X, p, keep, None if ease is None else ease[stage.places])
        return X

    def _settle(
        self, stage: _Stage, t: float, X: Array, p: Any, keep: Keep, ease: Array | None
    ) -> None:
        """Solve the equations of one stage, in place."""
        array, before = self.array, np.inf
        for _ in range(MOST_STEPS):
            residual = array.residuals(t, X, p)[stage.rows]
            entries = np.array(array.entries(t, X, p))
            size = float(np.abs(residual).max())
            if size == 0.0:
                return
            if not np.isfinite(size):
                break
            try:
                if ease is None:
                    step = _along_reactions(array, stage, entries, residual)
                else:
                    entries[stage.entries] *= ease[stage.c]
                    step = ease * stage.step(entries, residual, keep)
            except (np.linalg.LinAlgError, RuntimeError):
                break
            largest = float(np.abs(step).max())
            scale = float(np.abs(X[stage.places]).max()) or 1.0
            if largest <= SETTLED * scale or (size >= 0.5 * before and largest <= 1e-6 * scale):
                if largest <= 1e-6 * scale and size < before:
                    X[stage.places] += step
                return
            X[stage.places] += step
            before = size
        self._refuse(stage, t, X, p)

    def _refuse(self, stage: _Stage, t: float, X: Array, p: Any) -> None:
        array = self.array
        lost = array.singular(t, X, p)
        if lost is not None:
            raise StructureError(
                f"the system Jacobian is singular at t = {t:.6g}: the equations "
                f"{array.structure.equation_names(lost.equations)} do not determine the leading "
                f"derivatives of {array.structure.unknown_names(lost.unknowns)} there"
            )
        residual = array.residuals(t, X, p)[stage.rows]
        worst = int(np.argmax(np.abs(residual)))
        raise StructureError(
            f"the state left the constraints at t = {t:.6g} and no way back was found: "
            f"{array.row_names[int(stage.rows[worst])]} = {residual[worst]:.3g} stays; a smaller "
            "tolerance keeps it nearer"
        )
