"""Elementary functions whose values are the same interpreted and compiled, to the last bit.

Compiled code calls the C library; NumPy's own ``exp`` and ``log`` may round otherwise. Where a run
must not depend on who computes it, kernels take these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["exp", "log", "quotient"]


def exp(x: Any) -> Any:
    """e^x, for floats and symbols. (Compiled, it is the C library's.)"""
    return math.exp(x) if isinstance(x, float) else np.exp(x)


def log(x: Any) -> Any:
    """Natural logarithm of a positive number, for floats and symbols."""
    return math.log(x) if isinstance(x, float) else np.log(x)


def quotient(a: Any, b: Any) -> Any:
    """a/b by C's formula (and Python's), also for complex numbers, where NumPy has its own."""
    return complex(a) / complex(b) if isinstance(b, complex) else a / b
