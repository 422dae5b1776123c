"""Taylor-series methods of any order.

Imports stepping and tracing.
"""

from .engine import Taylor

__all__ = ["Taylor"]
