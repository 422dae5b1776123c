"""How a mechanism answers forces at its contact points, loops and all.

With H v̇ + C = τ + Kᵀμ + Tᵀλ and K v̇ = γ,

    v̇ = a + P Tᵀλ,    P = H⁻¹ − H⁻¹Kᵀ (K H⁻¹Kᵀ)⁺ K H⁻¹,

so that loops are taken account of once, and contact sees W = T P Tᵀ and b = T a + bias (book,
§11.4, where the same is said of independent variables). Impulses: the same P, at constant q.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators.kernels import OnWorkspace

from ..checks import Array
from ..dynamics.loops.closed_loop import RANK_TOLERANCE, loaded_constraints
from ..dynamics.loops.multipliers import unconstrained_forces
from ..dynamics.storage.loading import load, load_forces, loaded_inertia
from ..dynamics.storage.workspace import TreeWorkspace

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["Mechanism", "mechanism_at"]

ROUNDING = 1e-12  # of sums that cancel, in parts of their terms

_forces = OnWorkspace(unconstrained_forces, TreeWorkspace)


class Mechanism(NamedTuple):
    """A mechanism at one state, ready to be asked.

    Attributes
    ----------
    H
        Inertia matrix.
    spread
        P: accelerations per joint force, loops kept closed.
    acceleration
        v̇ without contact forces.
    multipliers, loop_spread
        Of the loops: without contact forces, and what each joint force adds (rows of K × nv).
    loop_drift
        ν, of K v = ν: what time moves in loops.
    unbound, unbound_spread
        v̇ and the diagonal of P without the loops: sizes of what is left of them by rounding.
    """

    H: Array
    spread: Array
    acceleration: Array
    multipliers: Array
    loop_spread: Array
    loop_drift: Array
    unbound: Array
    unbound_spread: Array

    def holds(self, rows: Array, drift: Array) -> Array:
        """Which directions T (in rows, with T v̇ + drift = 0) the loops leave no motion at all."""
        moved = np.einsum("ij,jk,ik->i", rows, self.spread, rows)
        driven = np.abs(rows @ self.acceleration + drift)
        speeds = np.abs(rows) @ np.abs(self.unbound) + np.abs(drift)
        still = moved <= ROUNDING * (rows**2 @ self.unbound_spread)
        return np.asarray(still & (driven <= ROUNDING * speeds))


def mechanism_at(
    model: Model, q: Array, v: Array, tau: Any = None, f_ext: Any = None, t: float = 0.0
) -> Mechanism:
    """H, P and v̇ without contacts, at a state of a run."""
    w = load(model, q, v, t)
    w.tau[:] = 0.0 if tau is None else tau
    load_forces(model, w, f_ext)
    _forces(w)
    forces = w.z.copy()
    lower = np.tril(loaded_inertia(w))
    H = lower + np.tril(lower, -1).T
    inverse = np.linalg.inv(H)
    inverse = 0.5 * (inverse + inverse.T)
    free = inverse @ forces
    if not model.bonds:
        nothing = np.zeros((0, model.nv))
        none = np.zeros(0)
        return Mechanism(H, inverse, free, none, nothing, none, free, np.diag(inverse))
    c = loaded_constraints(model)
    through = c.K @ inverse
    pseudo = np.linalg.pinv(through @ c.K.T, rcond=RANK_TOLERANCE**2, hermitian=True)
    multipliers = pseudo @ (c.gamma - c.K @ free)
    loop_spread = -pseudo @ through
    spread = inverse + through.T @ loop_spread
    spread = 0.5 * (spread + spread.T)
    a = free + through.T @ multipliers
    return Mechanism(H, spread, a, multipliers, loop_spread, c.nu, free, np.diag(inverse))
