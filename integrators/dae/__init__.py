"""Mechanical systems with constraints: one object, every formulation, every integrator.

:class:`Mechanical` holds M, f, g and what can be derived from them;
:meth:`Mechanical.formulation` makes initial value problems of it. See ``docs/dae.md``.
"""

from .acceleration import RANK_TOLERANCE, Acceleration, accelerations
from .consistency import CONSISTENCY_TOLERANCE, Consistent, consistent
from .formulations import FORMULATIONS, T_STAB
from .observe import Observables
from .partition import Partition, partition
from .problem import Formulation
from .system import Mechanical, Terms

__all__ = [
    "CONSISTENCY_TOLERANCE",
    "FORMULATIONS",
    "RANK_TOLERANCE",
    "T_STAB",
    "Acceleration",
    "Consistent",
    "Formulation",
    "Mechanical",
    "Observables",
    "Partition",
    "Terms",
    "accelerations",
    "consistent",
    "partition",
]
