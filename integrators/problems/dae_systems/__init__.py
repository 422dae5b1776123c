"""General differential-algebraic systems with their sources: circuits, plants, arms, small traps.

Each is a function of keyword parameters that returns a :class:`Case`: the
:class:`~integrators.DAE`, what to fix and to guess at the start, the interval, and the index and
number of freedoms that the literature or a calculation by hand gives. :func:`system` finds one by
name. The traps are small systems that break other tools.

Examples
--------
>>> from integrators.problems.dae_systems import system
>>> case = system("pendulum_chain", pendulums=2)
>>> case.system.structure().index, case.index
(5, 5)
"""

from __future__ import annotations

from typing import Any

from integrators.errors import suggest

from . import circuits, mechanics, plants, traps  # noqa: F401  (their systems enter the list)
from .case import CASES, Case

__all__ = ["Case", "names", "system"]


def names() -> list[str]:
    """Names of all systems."""
    return sorted(CASES)


def system(name: str, **parameters: Any) -> Case:
    """Return a system by name, with keyword parameters."""
    if name not in CASES:
        raise ValueError(
            f"there is no system {name!r}{suggest(name, CASES)}; known are {', '.join(names())}"
        )
    return CASES[name](**parameters)
