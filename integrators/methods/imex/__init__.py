"""Additive (IMEX) methods for f = f_E + f_I: one part explicit, the other implicit.

Imports stepping, and Newton's iteration and linear algebra of the Runge–Kutta family.
"""

from .split import Split

__all__ = ["Split"]
