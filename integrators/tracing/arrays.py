"""Arrays of symbols: NumPy code on traced values.

A :class:`SymbolArray` is an object array whose ufuncs and functions are ours where NumPy's would
need the values: comparisons, ``np.minimum``, ``np.sign``, ``np.where``, ``np.linalg.solve``, ...
Everything that NumPy already does element by element on object arrays (slicing, ``@``,
``np.concatenate``, ``np.sum``, ``np.outer``) is left to NumPy.

``np.array([y[0], y[1]])`` is not open to overriding and would give an ordinary object array, on
which ``np.minimum`` or ``np.linalg.solve`` fail. While a function is being traced
(:func:`numpy_for_symbols`), ``np.array`` and ``np.asarray`` therefore return a
:class:`SymbolArray` if, and only if, the result contains symbols; nothing else changes for
anyone.

Linear systems are solved by Gaussian elimination (:func:`solve`). The pivots are chosen when the
function is traced, from the structure alone: the values are not known. See there.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from .errors import TracingError, tracing_error
from .symbol import ELEMENTWISE, Symbol, apply

__all__ = ["SymbolArray", "apply_function", "apply_ufunc", "numpy_for_symbols", "solve", "where"]


class SymbolArray(np.ndarray):
    """An object array of symbols and numbers."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        return apply_function(func, types, args, kwargs)


def _name(function: Any) -> str:
    module = getattr(function, "__module__", "numpy") or "numpy"
    return f"{module}.{getattr(function, '__name__', function)}".replace("numpy", "np", 1)


def _unknown(name: str) -> TracingError:
    return tracing_error(
        f"{name} cannot be traced",
        "write it with elementary operations, or leave the function untraced",
    )


def wrap(result: Any) -> Any:
    """View plain object arrays as :class:`SymbolArray`; leave everything else alone."""
    if isinstance(result, np.ndarray):
        if result.dtype == object and not isinstance(result, SymbolArray):
            return result.view(SymbolArray)
    elif isinstance(result, tuple | list) and not hasattr(result, "_fields"):
        return type(result)(wrap(r) for r in result)
    return result


def _plain(x: Any) -> Any:
    """Return an object array for arrays, nested lists and symbols; numbers unchanged."""
    if isinstance(x, Symbol):  # in a bare 0-d array, or the ufunc would come back to us
        cell = np.empty((), dtype=object)
        cell[()] = x
        return cell
    if isinstance(x, np.ndarray):
        return x.view(np.ndarray).astype(object, copy=False)
    if isinstance(x, list | tuple):
        return np.asarray(x, dtype=object)
    return x


@cache
def _on_objects(ufunc: np.ufunc) -> Any:
    """Return the ufunc rebuilt for object arrays, with reduce, accumulate and outer."""
    function = ELEMENTWISE.get(ufunc)
    if function is None:
        return None
    if ufunc.identity is None:
        return np.frompyfunc(function, ufunc.nin, 1)
    return np.frompyfunc(function, ufunc.nin, 1, identity=ufunc.identity)


def apply_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return a NumPy ufunc on symbols and arrays of symbols."""
    function = ELEMENTWISE.get(ufunc)
    if not kwargs and method == "__call__" and function is not None:
        for x in inputs:
            if not isinstance(x, Symbol | float | int | np.generic):
                break
        else:
            return function(*inputs)
    targets = kwargs.pop("out", None)
    if targets is not None:
        if any(isinstance(t, np.ndarray) and t.dtype != object for t in targets):
            raise tracing_error(
                "a traced value cannot be stored in an array of floats",
                "collect results with np.array([...]), or in np.zeros_like(y) or "
                "np.empty(n, dtype=object)",
            )
        kwargs["out"] = tuple(None if t is None else _plain(t) for t in targets)
    kwargs.pop("dtype", None)
    kwargs.pop("casting", None)
    plain = [_plain(x) for x in inputs]
    if method == "at":
        raise _unknown(f"np.{ufunc.__name__}.at")
    if ufunc.signature is not None:  # matmul, vecdot, ...: sums of products, which NumPy does
        result = getattr(ufunc, method)(*plain, **kwargs)
    else:
        objects = _on_objects(ufunc)
        if objects is None:
            raise _unknown(f"np.{ufunc.__name__}")
        result = getattr(objects, method)(*plain, **kwargs)
    if targets is not None and targets[0] is not None:
        return targets[0]
    return wrap(result)


#: Through its public method, NumPy's own version of a function can be called.
_BARE = np.empty(0)


def apply_function(func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """Return a NumPy function that is no ufunc, of symbols and arrays of symbols."""
    own = FUNCTIONS.get(func)
    if own is not None:
        return own(*args, **kwargs)
    arrays = [kind for kind in types if not issubclass(kind, Symbol)]
    try:
        result = _BARE.__array_function__(func, arrays, args, kwargs)
    except TracingError:
        raise
    except (TypeError, np.linalg.LinAlgError) as error:
        raise _unknown(_name(func)) from error
    if result is NotImplemented:
        raise _unknown(_name(func))
    return wrap(result)


_select = np.frompyfunc(lambda c, a, b: apply("select", c, a, b), 3, 1)


def _has_symbols(x: Any) -> bool:
    if isinstance(x, Symbol):
        return True
    if isinstance(x, np.ndarray):
        return x.dtype == object and any(isinstance(e, Symbol) for e in x.flat)
    if isinstance(x, list | tuple):
        return any(_has_symbols(e) for e in x)
    return False


def where(condition: Any, a: Any, b: Any) -> Any:
    """Choose a where the condition holds and b elsewhere: a branch that can be traced.

    Works on floats and arrays as :func:`numpy.where` does, and on traced values. Both sides are
    evaluated always, so a side that is not chosen may be NaN but must not raise an error.

    Parameters
    ----------
    condition, a, b
        Scalars or arrays that broadcast against each other.

    Returns
    -------
    float, array or traced value
        A scalar if all three are scalars.

    Examples
    --------
    >>> where(1.0 < 2.0, 10.0, 20.0)
    10.0
    >>> where(np.array([True, False]), 1.0, np.array([5.0, 6.0]))
    array([1., 6.])
    """
    if _has_symbols(condition) or _has_symbols(a) or _has_symbols(b):
        return wrap(_select(_plain(condition), _plain(a), _plain(b)))
    result = np.where(condition, a, b)
    return result.item() if result.ndim == 0 else result


# --- linear algebra -----------------------------------------------------------------------------


def _constant(x: Any) -> float | None:
    """Return the value of an element that is known while tracing."""
    if isinstance(x, Symbol):
        return x.graph.values[x.index]
    return float(x)


def _pivot(rows: list[list[Any]], k: int) -> int:
    """Return the row to eliminate column k with: see :func:`solve`."""
    best, largest = None, 0.0
    for r in range(k, len(rows)):
        value = _constant(rows[r][k])
        if value is not None and abs(value) > largest:
            best, largest = r, abs(value)
    if best is not None:
        return best
    for r in range(k, len(rows)):
        if _constant(rows[r][k]) is None:
            return r
    raise tracing_error(
        f"the matrix is singular by its structure: no pivot in column {k}",
        "check the zero entries of the matrix given to np.linalg.solve",
    )


def _eliminate(a: Any, b: Any) -> tuple[list[list[Any]], int]:
    """Upper triangular rows of [A | b] and the sign of the row permutation."""
    n = len(a)
    rows = [[*a[i], *b[i]] for i in range(n)]
    sign = 1
    for k in range(n):
        p = _pivot(rows, k)
        if p != k:
            rows[k], rows[p] = rows[p], rows[k]
            sign = -sign
        for r in range(k + 1, n):
            if _constant(rows[r][k]) == 0.0:
                continue
            factor = rows[r][k] / rows[k][k]
            rows[r][k] = 0.0
            for c in range(k + 1, len(rows[r])):
                rows[r][c] = rows[r][c] - factor * rows[k][c]
    return rows, sign


def _square(a: Any) -> np.ndarray:
    a = np.asarray(_plain(a), dtype=object)
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
    Pivots are fixed while tracing, from the structure of the matrix as elimination proceeds: the
    largest constant of the column if there is a nonzero one, otherwise the first entry, from the
    diagonal downwards, that is not constant. There is no pivoting by value. This is stable for
    symmetric positive definite and for diagonally dominant matrices (mass matrices, mostly);
    for others, put large entries on the diagonal or leave the function untraced.
    """
    a = _square(a)
    b = np.asarray(_plain(b), dtype=object)
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
    a = _square(a)
    rows, sign = _eliminate(a, np.zeros((len(a), 0)))
    result: Any = float(sign)
    for k in range(len(a)):
        result = result * rows[k][k]
    return result


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = wrap(np.asarray(_plain(x), dtype=object))
    if ord in (None, 2) and (axis is None or np.ndim(axis) == 0) and (ord is None or x.ndim == 1):
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    if x.ndim == 1 and ord in (1, np.inf):
        return np.sum(np.abs(x)) if ord == 1 else np.max(np.abs(x))
    raise _unknown(f"np.linalg.norm with ord={ord!r} and axis={axis!r}")


def _cross(a: Any, b: Any, **kwargs: Any) -> SymbolArray:
    a, b = np.asarray(_plain(a), dtype=object), np.asarray(_plain(b), dtype=object)
    if kwargs or a.shape != (3,) or b.shape != (3,):
        raise _unknown(f"np.cross of shapes {a.shape} and {b.shape} with {kwargs}")
    return np.array(
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ],
        dtype=object,
    ).view(SymbolArray)


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
        raise _unknown("np.where(condition) without two branches")
    return where(condition, *branches)


def _numpy_select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return result


#: NumPy functions that are not ufuncs and need our own version on symbols and arrays of them.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.where: _numpy_where,
    np.select: _numpy_select,
    np.clip: _clip,
    np.cross: _cross,
    np.linalg.norm: _norm,
    np.linalg.solve: solve,
    np.linalg.inv: _inverse,
    np.linalg.det: _determinant,
}


# --- np.array while tracing ---------------------------------------------------------------------

_lock = threading.Lock()
_active = threading.local()
_original: dict[str, Callable[..., Any]] = {}
_users = 0


def _symbolic(original: Callable[..., Any]) -> Callable[..., Any]:
    def create(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if result.dtype == object and getattr(_active, "depth", 0) and type(result) is np.ndarray:
            return result.view(SymbolArray) if _has_symbols(result) else result
        return result

    return create


@contextlib.contextmanager
def numpy_for_symbols() -> Iterator[None]:
    """Let ``np.array`` of symbols give a :class:`SymbolArray`, in this thread."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            for name in ("array", "asarray"):
                _original[name] = getattr(np, name)
                setattr(np, name, _symbolic(_original[name]))
    _active.depth = getattr(_active, "depth", 0) + 1
    try:
        yield
    finally:
        _active.depth -= 1
        with _lock:
            _users -= 1
            if _users == 0:
                for name, function in _original.items():
                    setattr(np, name, function)
