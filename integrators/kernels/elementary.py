"""Elementary functions of kernels, with the same bits interpreted and compiled: the C library's.

NumPy has vector code of its own for some of them, which differs in the last digit. On symbols they
are NumPy's, which tracing understands.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["exp", "log"]


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
