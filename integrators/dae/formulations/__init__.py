"""Initial value problems from one mechanical system: a file for each kind, a table of all.

A new formulation is a function with the decorator ``register``, in a file that is imported here;
CONTRIBUTING.md has the recipe. These files import the rest of ``integrators.dae``.
"""

from .table import FORMULATIONS, Form, formulate, formulation_key, listing, register

# In the order in which tables list them.
from . import eliminated  # isort: skip
from . import augmented, minimal, multipliers  # isort: skip
from ..feedback import T_STAB, gains  # isort: skip

__all__ = [
    "FORMULATIONS",
    "T_STAB",
    "Form",
    "augmented",
    "eliminated",
    "formulate",
    "formulation_key",
    "gains",
    "listing",
    "minimal",
    "multipliers",
    "register",
]
