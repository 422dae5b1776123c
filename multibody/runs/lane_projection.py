"""Projections after each step as traced functions, for many runs in lanes.

A function of this kind returns the projected state and, behind it, a number that is at most 1 if
the projection has succeeded. What ``dynamics.loops.projection`` repeats until it is done is here
done a fixed number of times, without asking: Newton's steps from a state that an integrator has
just left are exact after two. A run that needs more is left to ``solve``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.tracing import traced

from ..dynamics.kinematics import position_rates
from ..dynamics.loops.closed_loop import REGULARISATION
from ..dynamics.loops.gaps import closure_kernel
from ..dynamics.loops.multipliers import EPSILON
from ..dynamics.loops.projection import GOOD_ENOUGH, smallest_change

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["loops_in_lanes", "quaternions_in_lanes"]

NEWTON_STEPS = 2


def quaternions_in_lanes(places: tuple[int, ...], n: int, k: int) -> Any:
    """States with unit quaternions, traced, of n components and k parameters."""

    def project(t: Any, x: Any, p: Any = ()) -> Any:
        return np.array([*_normalised(x, places), 0.0])

    return traced(project, n=n, params=k, outputs=n + 1)


def loops_in_lanes(model: Model, n: int, k: int, symbols: Any = None) -> Any:
    """States [q; v] on the constraints of a model, all of which bind positions, traced.

    ``symbols(p)`` is for a family of models, as in ``singular_screen``.
    """
    nq, nv = model.nq, model.nv
    places = model.quaternion_places

    def project(t: Any, x: Any, p: Any = ()) -> Any:
        if symbols is None:
            w = model.tree.symbolic()
        else:
            with symbols(p):
                w = model.tree.symbolic()
        w.stabilise[EPSILON] = REGULARISATION
        w.t[0] = t
        q = _normalised(x[:nq], places)
        for _ in range(NEWTON_STEPS):
            w.q[:], w.v[:] = q, 0.0
            closure_kernel(w)
            w.b[:] = -w.delta
            smallest_change(w)
            w.v[:] = w.a_q
            position_rates(w)
            q = _normalised(q + w.q_dot, places)
        w.q[:], w.v[:] = q, x[nq:]
        closure_kernel(w)
        gap: Any = 0.0
        for r in range(len(w.delta)):
            gap = np.maximum(gap, np.abs(w.delta[r]))
            w.b[r] = w.nu[r] - sum(w.K[r, j] * w.v[j] for j in range(nv))
        largest: Any = 1.0
        for value in q:
            largest = np.maximum(largest, np.abs(value))
        smallest_change(w)
        v = [w.v[j] + w.a_q[j] for j in range(nv)]
        return np.array([*q, *v, gap / (GOOD_ENOUGH * largest)])

    return traced(project, n=n, params=k, outputs=n + 1)


def _normalised(x: Any, places: tuple[int, ...]) -> Any:
    """Numbers with unit quaternions at some places."""
    out = np.array(x)
    for at in places:
        a, b, c, d = (x[at + j] for j in range(4))
        size = np.sqrt(a * a + b * b + c * c + d * d)
        for j in range(4):
            out[at + j] = x[at + j] / size
    return out
