"""Linear multistep methods with fixed steps: coefficients as data, names, the engine.

``variable`` has those of variable order and step.

Imports stepping, and the Runge–Kutta family for the first steps.
"""

from .method import Multistep
from .names import multistep, multistep_names

__all__ = ["Multistep", "multistep", "multistep_names"]
