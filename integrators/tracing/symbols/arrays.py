"""Arrays of symbols: NumPy code on traced values.

A :class:`SymbolArray` is an object array whose ufuncs and functions are ours where NumPy's would
need the values: comparisons, ``np.minimum``, ``np.sign``, ``np.where``, ``np.linalg.solve``, ...
Everything that NumPy already does element by element on object arrays (slicing, ``@``,
``np.concatenate``, ``np.sum``, ``np.outer``) is left to NumPy.

``np.array([y[0], y[1]])`` is not open to overriding and would give an ordinary object array, on
which ``np.minimum`` or ``np.linalg.solve`` fail; nor are functions of ``np.linalg`` when their
arguments are lists. While a function is being traced (:func:`numpy_for_symbols`), ``np.array`` and
``np.asarray`` therefore return a :class:`SymbolArray` if, and only if, the result contains
symbols, and functions of ``np.linalg`` see symbols in lists; nothing else changes for anyone.

The functions that need an own version are in :mod:`.functions`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import TracingError, tracing_error
from .elementwise import ELEMENTWISE
from .symbol import BLOCK_RULES, NUMPY_RULES, Condition, Symbol, apply

__all__ = [
    "FUNCTIONS",
    "SymbolArray",
    "apply_function",
    "apply_ufunc",
    "numpy_for_symbols",
    "plain",
    "unknown",
    "where",
    "wrap",
]


class SymbolArray(np.ndarray):
    """An object array of symbols and numbers."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        return apply_function(func, types, args, kwargs)

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            super().__setitem__(key, value)
        except IndexError:
            if not _has_symbols(key):
                raise
            _assign_where(self, key, value)


def _assign_where(array: SymbolArray, mask: Any, value: Any) -> None:
    """array[mask] = value, for a mask of conditions: every element is chosen at run time."""
    mask = np.asarray(plain(mask))
    conditions = all(isinstance(c, Condition | bool | np.bool_) for c in mask.flat)
    if not conditions or mask.shape not in ((), array.shape) or (mask.ndim and np.size(value) != 1):
        raise tracing_error(
            "an assignment to elements that depend on traced values",
            "assign one number with a mask of the array's own shape, or write "
            "integrators.where(mask, new, old)",
        )
    array[...] = where(mask, np.reshape(value, ()) if mask.ndim else value, array)


def _name(function: Any) -> str:
    module = getattr(function, "__module__", "numpy") or "numpy"
    return f"{module}.{getattr(function, '__name__', function)}".replace("numpy", "np", 1)


def unknown(name: str) -> TracingError:
    """Return the error for what cannot be traced."""
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


def plain(x: Any) -> Any:
    """Return an object array for arrays, nested lists and symbols; numbers unchanged."""
    if isinstance(x, Symbol):  # in a bare 0-d array, or the ufunc would come back to us
        cell = np.empty((), dtype=object)
        cell[()] = x
        return cell
    if isinstance(x, np.ndarray):
        return x.view(np.ndarray).astype(object, copy=False)
    if isinstance(x, list | tuple):
        return np.asarray(x, dtype=object).view(np.ndarray)
    return x


@functools.cache
def _on_objects(ufunc: np.ufunc) -> Any:
    """Return the ufunc rebuilt for object arrays, with reduce, accumulate and outer."""
    function = ELEMENTWISE.get(ufunc)
    if function is None:
        return None
    if ufunc.identity is None:
        return np.frompyfunc(function, ufunc.nin, ufunc.nout)
    return np.frompyfunc(function, ufunc.nin, ufunc.nout, identity=ufunc.identity)


#: Ufuncs that may be asked for results of type bool.
_LOGICAL = (np.logical_and, np.logical_or, np.logical_xor, np.logical_not)


def _is_truth(x: Any) -> bool:
    return isinstance(x, Condition | bool | np.bool_)


_count = np.frompyfunc(lambda x: x + 0 if _is_truth(x) else x, 1, 1)


def _check_dtype(ufunc: np.ufunc, dtype: Any, first: Any) -> None:
    """Refuse results of another type than float64, where that would change their values."""
    if dtype is None or np.dtype(dtype) in (np.dtype(float), np.dtype(object)):
        return
    kind = np.dtype(dtype).kind
    if kind == "b" and ufunc in _LOGICAL:
        return
    if kind in "iu" and all(_is_truth(x) for x in np.asarray(first).flat):  # a count
        return
    raise tracing_error(
        f"np.{ufunc.__name__} with dtype={np.dtype(dtype)}: traced values are float64",
        "leave dtype out; np.floor and np.trunc round, or leave the function untraced",
    )


def _masked(
    ufunc: np.ufunc, method: str, mask: Any, operands: list[Any], kwargs: dict[str, Any]
) -> None:
    """Put what does nothing in place of elements that a traced ``where=`` leaves out."""
    start = kwargs.get("initial", ufunc.identity)
    if method != "reduce" or start is None:
        raise tracing_error(
            f"np.{ufunc.__name__} with where= on traced values",
            "choose with integrators.where(mask, a, b), or give a reduction initial=",
        )
    operands[0] = plain(where(mask, operands[0], start))


def _over_axes(objects: Any, x: Any, axis: Any, keepdims: bool = False, **rest: Any) -> Any:
    """Reduce along several axes, which NumPy does not for functions that it does not know."""
    gone = [k % x.ndim for k in (range(x.ndim) if axis is None else axis)]
    kept = [k for k in range(x.ndim) if k not in gone]
    flat = x.transpose(*gone, *kept).reshape(-1, *(x.shape[k] for k in kept))
    result = objects.reduce(flat, axis=0, **rest)
    if keepdims:
        return np.reshape(plain(result), [1 if k in gone else m for k, m in enumerate(x.shape)])
    return result


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
        kwargs["out"] = tuple(None if t is None else plain(t) for t in targets)
    operands = [plain(x) for x in inputs]
    _check_dtype(ufunc, kwargs.pop("dtype", None), operands[0])
    kwargs.pop("casting", None)
    if _has_symbols(kwargs.get("where")):
        _masked(ufunc, method, kwargs.pop("where"), operands, kwargs)
    if method in ("reduce", "accumulate", "reduceat") and ufunc in (np.add, np.multiply):
        operands[0] = plain(_count(operands[0]))  # NumPy counts truth values as integers here
    if method == "at":
        raise unknown(f"np.{ufunc.__name__}.at")
    if ufunc.signature is not None:  # matmul, vecdot, ...: sums of products, which NumPy does
        result = getattr(ufunc, method)(*operands, **kwargs)
    else:
        objects = _on_objects(ufunc)
        if objects is None:
            raise unknown(f"np.{ufunc.__name__}")
        axis = kwargs.get("axis", 0)
        if method == "reduce" and (axis is None or np.ndim(axis)):
            result = _over_axes(objects, operands[0], **kwargs)
        else:
            result = getattr(objects, method)(*operands, **kwargs)
    if targets is not None and targets[0] is not None:
        return targets[0]
    return wrap(result)


#: NumPy functions that are no ufuncs and need an own version; filled by :mod:`.functions`.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}

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
        raise unknown(_name(func)) from error
    if result is NotImplemented:
        raise unknown(_name(func))
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
        if getattr(_active, "blocks", None) is not None:
            return apply("select", condition, a, b)
        return wrap(_select(plain(condition), plain(a), plain(b)))
    result = np.where(condition, a, b)
    return result.item() if result.ndim == 0 else result


# --- NumPy while tracing ------------------------------------------------------------------------

_lock = threading.Lock()
_active = threading.local()
_original: dict[tuple[Any, str], Callable[..., Any]] = {}
_users = 0


def _symbolic(original: Callable[..., Any]) -> Callable[..., Any]:
    """np.array or np.asarray, which keep symbols in an array of symbols."""

    @functools.wraps(original)
    def create(*args: Any, **kwargs: Any) -> Any:
        blocks = getattr(_active, "blocks", None)
        if blocks is not None and args and BLOCK_RULES["has"](args[0]):
            return BLOCK_RULES["array"](blocks, args[0]).copy()
        result = original(*args, **kwargs)
        if result.dtype == object and getattr(_active, "depth", 0) and type(result) is np.ndarray:
            return result.view(SymbolArray) if _has_symbols(result) else result
        return result

    return create


def _looking_into_lists(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy that also sees symbols in lists."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if getattr(_active, "depth", 0) and _has_symbols(args):
            return apply_function(original, (), args, kwargs)
        return original(*args, **kwargs)

    return call


#: What is replaced while a function is traced.
_REPLACED = {
    (np, "array"): _symbolic,
    (np, "asarray"): _symbolic,
    (np, "nan_to_num"): _looking_into_lists,
    **{(np.linalg, name): _looking_into_lists for name in ("det", "inv", "norm", "solve")},
}


@contextlib.contextmanager
def numpy_for_symbols(blocks: Any = None) -> Iterator[None]:
    """Let ``np.array`` of symbols give a :class:`SymbolArray`, in this thread.

    While arrays are traced as a whole, `blocks` is their graph, and it gives one of these.
    """
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            for (module, name), replace in _REPLACED.items():
                _original[module, name] = getattr(module, name)
                setattr(module, name, replace(_original[module, name]))
    _active.depth = getattr(_active, "depth", 0) + 1
    before, _active.blocks = getattr(_active, "blocks", None), blocks
    try:
        yield
    finally:
        _active.depth -= 1
        _active.blocks = before
        with _lock:
            _users -= 1
            if _users == 0:
                for (module, name), function in _original.items():
                    setattr(module, name, function)


NUMPY_RULES.update(ufunc=apply_ufunc, function=apply_function)
