"""Back onto the constraints after a step: the smallest change of q and of v, as a kernel.

u with K u = b and uᵀHu smallest is u = H⁻¹Kᵀλ, (KH⁻¹Kᵀ) λ = b: what ``multipliers`` solves for
accelerations without any other force. Positions take Newton steps with b = −δ, velocities one step
with b = ν − K v.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.kernels import OnWorkspace, kernel

from ...checks import Array
from ..storage.loading import load
from ..storage.workspace import TreeWorkspace
from ..trees.factor import l_solve_kernel
from ..trees.kinematics import position_rates
from ..with_elements import onto_sphere
from .closed_loop import REGULARISATION
from .constraints.gaps import closure_kernel
from .multipliers import EPSILON, couple_rows, solve_regularised, weighted_rows

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["project_kernel", "projected"]

#: Gap (m, and differences of cosines) that counts as closed: a few roundings of lengths near one.
CLOSED = 1e-14
NEWTON_STEPS = 5
#: What may be left of it, in a mechanism of one metre, without a second opinion.
GOOD_ENOUGH = 1e-12


@kernel
def smallest_change(w: Any) -> None:
    """Put u into a_q: K u = b for every row that can act, uᵀHu smallest. b is overwritten."""
    weighted_rows(w)
    n, m = w.v.shape[0], w.rows.shape[0]
    for k in range(n):
        w.z[k] = 0.0
    for r in range(m):
        w.b[r] = w.b[w.rows[r]]
    couple_rows(w)
    solve_regularised(w, w.stabilise[EPSILON])
    for k in range(n):
        total = 0.0
        for r in range(m):
            total = total + w.Y[r, k] * w.lam[r]
        w.a_q[k] = total / w.H[k, k]
    l_solve_kernel(w.H, w.parent_v, w.a_q, True)


@kernel
def project_kernel(w: Any) -> Any:
    """q and v onto the constraints, all of which bind positions; returns the gap that is left."""
    n = w.v.shape[0]
    for k in range(n):
        w.tau[k] = w.v[k]  # kept here meanwhile
    worst = np.inf
    for step in range(NEWTON_STEPS + 1):
        for k in range(n):
            w.v[k] = 0.0
        closure_kernel(w)
        worst = 0.0
        for r in range(w.delta.shape[0]):
            w.b[r] = -w.delta[r]
            worst = max(worst, abs(w.delta[r]))
        if not worst > CLOSED or step == NEWTON_STEPS:
            break
        smallest_change(w)
        for k in range(n):
            w.v[k] = w.a_q[k]
        position_rates(w)
        for k in range(w.q.shape[0]):
            w.q[k] = w.q[k] + w.q_dot[k]
        if onto_sphere(w) != 0.0:
            return np.nan
    for k in range(n):
        w.v[k] = w.tau[k]
    closure_kernel(w)
    for r in range(w.nu.shape[0]):
        w.b[r] = w.nu[r]
        for k in range(n):
            w.b[r] = w.b[r] - w.K[r, k] * w.v[k]
    smallest_change(w)
    for k in range(n):
        w.v[k] = w.v[k] + w.a_q[k]
        worst = worst + 0.0 * w.v[k]  # NaN if one of them is
    return worst


_run = OnWorkspace(project_kernel, TreeWorkspace, returns=True)


def projected(model: Model, q: Array, v: Array, t: float) -> tuple[Array, Array] | None:
    """Position and velocity on the constraints of all loops; None where this does not succeed.

    For states near the constraints. Where a Newton step of this kind leads astray (a singular
    position), or constraints bind velocities only, :func:`~.assembly.project_state` takes its time.
    """
    w = load(model, q, v, t)
    w.stabilise[EPSILON] = REGULARISATION
    before = float(np.abs(q).max(initial=1.0))
    gap = _run(w)
    if not gap <= GOOD_ENOUGH * before:  # NaN included
        return None
    return w.q.copy(), w.v.copy()
