"""Many runs of one problem, in lanes and on all cores.

Imports ``solve`` and what is below it.
"""

from .batch import solve_many
from .results import ManySolutions

__all__ = ["ManySolutions", "solve_many"]
