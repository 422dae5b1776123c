"""Tracing: a function written once with NumPy becomes machine code, derivatives, series, bounds.

:func:`traced` is the way in; :func:`where` replaces ``if`` in traced functions. See
``docs/tracing.md``.
"""

from .errors import GraphTooLargeError, TracingError
from .function import Function, Jacobian, Series
from .symbols.arrays import where
from .trace import trace
from .traced import Traced, traced, traced_rhs

__all__ = [
    "Function",
    "GraphTooLargeError",
    "Jacobian",
    "Series",
    "Traced",
    "TracingError",
    "trace",
    "traced",
    "traced_rhs",
    "where",
]
