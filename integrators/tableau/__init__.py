"""Tableaux: methods as exact data, rooted trees, numbers of many digits, text in and out.

Imports errors only.
"""

from .tableau import MAX_ORDER, ContinuousExtension, OrderCondition, Tableau

__all__ = ["MAX_ORDER", "ContinuousExtension", "OrderCondition", "Tableau"]
