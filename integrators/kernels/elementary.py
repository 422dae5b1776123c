"""Elementary functions whose values are the same interpreted and compiled, to the last bit.

Compiled code calls the C library; NumPy has vector code of its own, which may round otherwise.
Where a run must not depend on who computes it, kernels take these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["cos", "exp", "log", "quotient", "select", "sin"]


def exp(x: Any) -> Any:
    """Return e^x.

    Examples
    --------
    >>> exp(np.float64(1000.0))
    np.float64(inf)
    """
    if not isinstance(x, float):
        return np.exp(x)
    try:
        return np.float64(math.exp(x))
    except OverflowError:
        return np.float64(np.inf)


def log(x: Any) -> Any:
    """Return the natural logarithm; −inf of zero, NaN of negative numbers.

    Examples
    --------
    >>> log(np.float64(0.0)), log(-1.0)
    (np.float64(-inf), np.float64(nan))
    """
    if not isinstance(x, float):
        return np.log(x)
    if x > 0.0:
        return np.float64(math.log(x))
    return np.float64(-np.inf if x == 0.0 else np.nan)


def sin(x: Any) -> Any:
    """Return the sine; NaN of an infinite number."""
    if not isinstance(x, float):
        return np.sin(x)
    return np.float64(math.sin(x) if math.isfinite(x) else np.nan)


def cos(x: Any) -> Any:
    """Return the cosine; NaN of an infinite number."""
    if not isinstance(x, float):
        return np.cos(x)
    return np.float64(math.cos(x) if math.isfinite(x) else np.nan)


def quotient(a: Any, b: Any) -> Any:
    """a/b by C's formula (and Python's), also for complex numbers, where NumPy has its own."""
    return complex(a) / complex(b) if isinstance(b, complex) else a / b


def select(condition: Any, a: Any, b: Any) -> Any:
    """Return a or b: a branch that symbols can take."""
    if isinstance(condition, bool | np.bool_):
        return a if condition else b
    return np.where(condition, a, b)
