"""NumPy functions that are no ufuncs and need an own version on symbols.

They are entered in :data:`.arrays.FUNCTIONS`, which finds them when NumPy's own are called.
Linear systems are solved by Gaussian elimination (:func:`solve`). The values are not known while
a function is traced, so pivots are fixed by the structure of the matrix or, where that does not
do, chosen at run time: both rows are kept, and each entry is selected. See :func:`solve`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import tracing_error
from .arrays import FUNCTIONS, SymbolArray, plain, unknown, where, wrap
from .symbol import Symbol, apply

__all__ = ["solve"]

#: Up to this size every pivot is the largest of its column, chosen at run time.
LARGEST_PIVOTED = 3


def _objects(x: Any) -> np.ndarray:
    return np.asarray(plain(x), dtype=object).view(np.ndarray)


# --- elimination --------------------------------------------------------------------------------


def known_value(x: Any) -> float | None:
    """Return the value of an element that is known while tracing."""
    if isinstance(x, Symbol):
        return x.graph.values[x.index]
    return float(x)


def _exchange(rows: list[list[Any]], k: int, r: int, sign: Any) -> Any:
    """Exchange rows k and r where the latter has the larger entry in column k; returns the sign."""
    exchanged = apply("lt", abs(rows[k][k]), abs(rows[r][k]))
    upper, lower = rows[k], rows[r]
    rows[k] = [apply("select", exchanged, b, a) for a, b in zip(upper, lower)]
    rows[r] = [apply("select", exchanged, a, b) for a, b in zip(upper, lower)]
    return apply("select", exchanged, -sign, sign)


def _bring_pivot(rows: list[list[Any]], k: int, candidates: list[int], sign: Any) -> Any:
    """Put the row with the largest entry of column k in place; returns the sign."""
    if candidates[0] != k:
        rows[k], rows[candidates[0]] = rows[candidates[0]], rows[k]
        sign = -sign
    for r in candidates[1:]:  # constants are compared here and now
        sign = _exchange(rows, k, r, sign)
    return sign


def _candidates(rows: list[list[Any]], k: int) -> list[int]:
    """Return the rows whose entry in column k can be different from zero."""
    candidates = [r for r in range(k, len(rows)) if known_value(rows[r][k]) != 0.0]
    if not candidates:
        raise tracing_error(
            f"the matrix is singular by its structure: no pivot in column {k}",
            "check the zero entries of the matrix given to np.linalg.solve",
        )
    return candidates


def _eliminate(a: Any, b: Any) -> tuple[list[list[Any]], Any]:
    """Upper triangular rows of [A | b] and the sign of the row permutation."""
    n = len(a)
    rows = [[*a[i], *b[i]] for i in range(n)]
    sign: Any = 1.0
    by_value = n <= LARGEST_PIVOTED or all(known_value(x) is not None for x in np.ravel(a))
    for k in range(n):
        candidates = _candidates(rows, k)
        by_value = by_value or candidates[0] != k
        if by_value:
            sign = _bring_pivot(rows, k, candidates, sign)
        for r in range(k + 1, n):
            if known_value(rows[r][k]) == 0.0:
                continue
            factor = rows[r][k] / rows[k][k]
            rows[r][k] = 0.0
            for c in range(k + 1, len(rows[r])):
                rows[r][c] = rows[r][c] - factor * rows[k][c]
    return rows, sign


def _square(a: Any) -> np.ndarray:
    a = _objects(a)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"expected a square matrix, got shape {a.shape}")
    return a


def solve(a: Any, b: Any) -> SymbolArray:
    """Solve A x = b for traced A, b by Gaussian elimination.

    Parameters
    ----------
    a : (n, n)
    b : (n,) or (n, m)

    Notes
    -----
    Up to n = 3, and where all entries are constants, the pivot is the largest entry of its column,
    as in LAPACK; between entries that are not constant it is chosen at run time. For larger n
    the diagonal entry is taken, which is stable for symmetric positive definite and for diagonally
    dominant matrices (mass matrices, mostly). A diagonal entry that is zero by the structure of the
    matrix shows that it is neither; from that column on pivots are chosen at run time as well. For
    other large matrices, put large entries on the diagonal or leave the function untraced.
    """
    a, b = _square(a), _objects(b)
    n = len(a)
    if b.ndim not in (1, 2) or b.shape[0] != n:
        raise ValueError(f"expected a right-hand side of {n} rows, got shape {b.shape}")
    columns = b.reshape(n, -1)
    m = columns.shape[1]
    rows, _ = _eliminate(a, columns)
    x = np.empty((n, m), dtype=object)
    for i in range(n - 1, -1, -1):
        for c in range(m):
            s = rows[i][n + c]
            for j in range(i + 1, n):
                s = s - rows[i][j] * x[j, c]
            x[i, c] = s / rows[i][i]
    return x.reshape(b.shape).view(SymbolArray)


def _inverse(a: Any) -> SymbolArray:
    return solve(a, np.eye(len(a)))


def _determinant(a: Any) -> Any:
    """By cofactors up to n = 3, which singular matrices do not disturb; else by elimination."""
    a = _square(a)
    if len(a) == 2:
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    if len(a) == 3:
        minors = [np.delete(a[1:], k, axis=1) for k in range(3)]
        parts = [a[0, k] * _determinant(minor) for k, minor in enumerate(minors)]
        return parts[0] - parts[1] + parts[2]
    rows, sign = _eliminate(a, np.zeros((len(a), 0)))
    result: Any = sign
    for k in range(len(a)):
        result = result * rows[k][k]
    return result


# --- products and norms -------------------------------------------------------------------------


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = wrap(_objects(x))
    if ord is None and axis is None:
        return np.sqrt(np.sum(x * x, keepdims=keepdims))
    axes = tuple(np.atleast_1d(range(x.ndim) if axis is None else axis))
    if (len(axes) == 1 and ord in (None, 2)) or (len(axes) == 2 and ord in (None, "fro")):
        return np.sqrt(np.sum(x * x, axis=axes, keepdims=keepdims))
    largest = {np.inf: np.max, -np.inf: np.min}
    if len(axes) == 1 and ord == 1:
        return np.sum(np.abs(x), axis=axes, keepdims=keepdims)
    if len(axes) == 1 and ord in largest:
        return largest[ord](np.abs(x), axis=axes, keepdims=keepdims)
    if len(axes) == 2 and ord in (1, -1, np.inf, -np.inf):
        down, across = axes if abs(ord) == 1 else axes[::-1]  # sums of columns, or of rows
        sums = np.sum(np.abs(x), axis=down, keepdims=True)
        result = largest[np.inf if ord > 0 else -np.inf](sums, axis=across, keepdims=True)
        return result if keepdims else np.squeeze(result, axis=axes)[()]
    raise unknown(f"np.linalg.norm with ord={ord!r} and axis={axis!r}")


def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _objects(a), _objects(b)
    if not a.ndim or not b.ndim or a.shape[axisa] != 3 or b.shape[axisb] != 3:
        raise tracing_error(
            f"np.cross of shapes {a.shape} and {b.shape}", "give vectors of three components"
        )
    a, b = np.moveaxis(a, axisa, 0), np.moveaxis(b, axisb, 0)
    product = np.stack([a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))], axis=-1)
    return wrap(np.moveaxis(_objects(product), -1, axisc if product.ndim > 1 else -1))


def _linalg_cross(a: Any, b: Any, *, axis: int = -1) -> Any:
    return _cross(a, b, axis=axis)


# --- choices ------------------------------------------------------------------------------------


def _clip(a: Any, a_min: Any = None, a_max: Any = None, **kwargs: Any) -> Any:
    low = kwargs.get("min") if a_min is None else a_min
    high = kwargs.get("max") if a_max is None else a_max
    if low is not None:
        a = np.maximum(a, low)
    if high is not None:
        a = np.minimum(a, high)
    out = kwargs.get("out")
    if out is None:
        return a
    out[...] = a
    return out


def _numpy_where(condition: Any, *branches: Any) -> Any:
    if len(branches) != 2:
        raise unknown("np.where(condition) without two branches")
    return where(condition, *branches)


def _numpy_select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return result


def _nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    given = x if isinstance(x, Symbol) else wrap(_objects(x))
    largest = float(np.finfo(float).max)
    result = where(given == -np.inf, -largest if neginf is None else neginf, given)
    result = where(given == np.inf, largest if posinf is None else posinf, result)
    result = where(given != given, nan, result)
    if copy or not isinstance(x, np.ndarray):
        return result
    x[...] = result
    return x


FUNCTIONS.update(
    {
        np.where: _numpy_where,
        np.select: _numpy_select,
        np.clip: _clip,
        np.nan_to_num: _nan_to_num,
        np.cross: _cross,
        np.linalg.cross: _linalg_cross,
        np.linalg.norm: _norm,
        np.linalg.solve: solve,
        np.linalg.inv: _inverse,
        np.linalg.det: _determinant,
    }
)
