"""Multistep methods of variable order and step: BDF and NDF (1 to 5), Adams (1 to 12)."""

from .methods import BDF, Adams

__all__ = ["BDF", "Adams"]
