"""The automatic choice of a method, before the run and on the way.

Imports the Runge–Kutta and multistep families.
"""

from .method import Automatic

__all__ = ["Automatic"]
