"""Runge–Kutta methods on manifolds (Munthe-Kaas).

Imports stepping, tableaux and manifolds.
"""

from .engine import MuntheKaas

__all__ = ["MuntheKaas"]
