"""Many runs of one problem, in lanes and on all cores.

Imports ``solve`` and what is below it.
"""

from .batch import solve_many
from .reductions import EventTime, Final, Integral, Largest, Mean, Smallest, ValueAt
from .results import ManySolutions

__all__ = [
    "EventTime",
    "Final",
    "Integral",
    "Largest",
    "ManySolutions",
    "Mean",
    "Smallest",
    "ValueAt",
    "solve_many",
]
