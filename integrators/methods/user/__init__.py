"""Methods that a user wrote in Python.

Imports stepping.
"""

from .engine import CustomEngine, Method

__all__ = ["CustomEngine", "Method"]
