"""Dense output led through projected states.

Where a problem is solved as it was given, unknowns of index 2 and 3 are found to lower order than
the others, and a projection that puts them right at the end of a step says nothing of its inside.
So the polynomial of a step is led through projected states there. It stays a polynomial: events,
output times, saved and pickled solutions need not know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from ..tableau.extension import in_powers

__all__ = ["projections", "refined"]

Array = NDArray[np.float64]

MORE = 2  # degrees more, for what constraints determine: the stages alone know little of it …
ENOUGH = 8  # … up to so many


def projections(ivp: Any, options: Any) -> tuple[Any, Any]:
    """Return what projects states after a step and, for problems that need it, between steps.

    A projection that has ``within(rtol, atol)`` wants to know the tolerances of the run.
    """
    project = ivp.project
    if project is None:
        return None, None
    if hasattr(project, "within") and not options.fixed:
        project = project.within(options.rtol, options.atol)
    project = ivp.bind(project)
    return project, project if getattr(ivp, "projects_inside", False) else None


def refined(
    project: Callable[..., Any], t: float, y: NDArray[Any], ends: Array, Q: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the start and the polynomial of the one step from (t, y), through projected states."""
    assert len(ends) == len(Q) == 1
    nodes, expanding = _through(max(Q.shape[1], min(Q.shape[1] + MORE, ENOUGH)))
    h, powers = float(ends[0]) - t, np.arange(1, Q.shape[1] + 1)
    inside = y + nodes[:, None] ** powers @ Q[0]
    start = np.asarray(project(t, y))
    values = np.array([project(t + x * h, state) for x, state in zip(nodes, inside)])
    # In two steps: their product is made of large numbers that cancel.
    return start, (in_powers(len(nodes)) @ (expanding @ (values - start)))[None]


@cache
def _through(degree: int) -> tuple[Array, Array]:
    """Lobatto's points but for the first, and what expands values there in θ·Legendre's."""
    roots = legendre.legroots(legendre.legder([0.0] * degree + [1.0]))
    nodes = np.append((np.sort(np.real(roots)) + 1) / 2, 1.0)
    return nodes, np.linalg.inv(nodes[:, None] * legendre.legvander(2 * nodes - 1, degree - 1))
