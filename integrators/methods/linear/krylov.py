"""GMRES for (M − γJ) x = r, with errors measured as the run measures them (:cite:`saad1986`).

The equation is scaled by the tolerances of the components and multiplied by a preconditioner from
the left, so that what is made small is, up to the quality of the preconditioner, the error of x in
units of the tolerance. J need not be known as a matrix: J·v is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["gmres"]

Array = NDArray[Any]
Map = Callable[[Array], Array]

DIMENSION = 30  # of a Krylov space, before it is begun anew
SPACES = 3
CANCELLED = 0.1  # a vector that loses more of its length is orthogonalised once more


def gmres(
    apply: Map, precondition: Map, rhs: Array, weights: Array, limit: float, reduction: float = 0.0
) -> tuple[Array, bool]:
    """Solve apply(x) = rhs until the RMS norm of the scaled residual is small.

    That is below `limit`, or below `reduction` times what it was at first. Returns the best x that
    was found, whose quality shows in the iteration that asked for it, and whether it got so far.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.diag([1.0, 2.0, 4.0])
    >>> x, done = gmres(lambda v: A @ v, lambda r: r, np.ones(3), np.ones(3), 1e-12)
    >>> np.round(x, 12), done
    (array([1.  , 0.5 , 0.25]), True)
    """
    n = rhs.size
    residual = precondition(rhs) / weights
    beta = float(np.linalg.norm(residual))
    goal = max(np.sqrt(n) * limit, reduction * beta)
    if beta <= goal or not np.isfinite(beta):
        return residual * weights, bool(beta <= goal)
    dimension = min(DIMENSION, n)
    V = np.empty((dimension + 1, n), dtype=residual.dtype)
    x = np.zeros_like(residual)
    for _ in range(SPACES):
        V[0] = residual
        V[0] /= beta
        y, left = _least_residual(apply, precondition, weights, V, beta, goal)
        x += (y @ V[: len(y)]) * weights
        if left <= goal:
            return x, True
        if len(y) < dimension:
            break  # there are no more directions
        residual = precondition(rhs - apply(x)) / weights
        beta = float(np.linalg.norm(residual))
        if not beta > goal:
            return x, bool(beta <= goal)
    return x, False


def _least_residual(
    apply: Map, precondition: Map, weights: Array, V: Array, beta: float, goal: float
) -> tuple[Array, float]:
    """Coefficients in the Krylov space that V[0] begins, and the residual that is left.

    Arnoldi's process, with the Hessenberg matrix made triangular by rotations on the way.
    """
    columns: list[list[Any]] = []
    cosines: list[float] = []
    sines: list[Any] = []
    left: list[Any] = [beta]
    for k in range(len(V) - 1):
        w = precondition(apply(weights * V[k])) / weights
        before = float(np.linalg.norm(w))
        basis = V[: k + 1]
        h = _products(basis, w)
        w -= h @ basis
        size = float(np.linalg.norm(w))
        if size < CANCELLED * before:
            more = _products(basis, w)
            w -= more @ basis
            h += more
            size = float(np.linalg.norm(w))
        column = h.tolist()
        for j in range(k):
            upper, lower = column[j], column[j + 1]
            column[j] = cosines[j] * upper + sines[j] * lower
            column[j + 1] = cosines[j] * lower - np.conj(sines[j]) * upper
        pivot = column[k]
        length = float(np.hypot(abs(pivot), size))
        if length == 0.0 or not np.isfinite(length):
            break
        cosine = abs(pivot) / length
        sine = (pivot / abs(pivot) if pivot != 0 else 1.0) * size / length
        cosines.append(cosine)
        sines.append(sine)
        column[k] = cosine * pivot + sine * size
        columns.append(column[: k + 1])
        left.append(-np.conj(sine) * left[k])
        left[k] = cosine * left[k]
        if abs(left[k + 1]) <= goal or size <= 1e-14 * before:
            break
        V[k + 1] = w
        V[k + 1] /= size
    y: list[Any] = [0.0] * len(columns)
    for i in range(len(columns) - 1, -1, -1):
        total = left[i] - sum(columns[j][i] * y[j] for j in range(i + 1, len(columns)))
        y[i] = total / columns[i][i]
    return np.array(y, dtype=V.dtype), float(abs(left[len(columns)]))


def _products(basis: Array, w: Array) -> Array:
    """⟨v, w⟩ for each v of the basis."""
    if w.dtype.kind != "c":
        return np.asarray(basis @ w)
    return np.conj(basis @ np.conj(w))
