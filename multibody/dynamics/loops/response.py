"""What loops leave of a mechanism's answer to forces: H⁻¹ with the constraints kept (book, §8.5).

With loops the accelerations that joint forces τ cause are

    v̇ = Ψ (τ − C) + r,      Ψ = H⁻¹ − H⁻¹Kᵀ(KH⁻¹Kᵀ)⁺KH⁻¹,      K Ψ = 0,      K r = γ,

so that Ψ stands wherever a tree has H⁻¹: a handle is felt with J Ψ Jᵀ. H, C and K may come from
any algorithm; rank is decided as in ``closed_loop``, by singular values of K weighted with the
inertia.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...checks import Array
from .closed_loop import RANK_TOLERANCE, constraints

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["LoopResponse", "loop_response", "loops_to_the_ground"]


#: Part of what a body could do with the loops open, below which what it does with the loops closed
#: is rounding: it is held.
HELD = 1e-12


class LoopResponse(NamedTuple):
    """v̇ = Ψ (τ − C) + given.

    Attributes
    ----------
    root, open_root
        Ψ = rootᵀ root, a row for each freedom that is left; and H⁻¹ likewise, with the loops open.
    given
        Accelerations that the loops ask for whatever the forces are; zero of a tree.
    """

    root: Array
    open_root: Array
    given: Array

    @property
    def Psi(self) -> Array:
        """Inverse inertia with the loops kept, nv × nv; its rank is the mobility."""
        return np.asarray(self.root.T @ self.root)

    def accelerations(self, force: Array) -> Array:
        """v̇ under the joint forces τ − C."""
        return np.asarray(self.root.T @ (self.root @ force) + self.given)

    def felt(self, J: Array) -> Array:
        """J Ψ Jᵀ, with zeros in directions in which the loops hold what J moves."""
        size = np.linalg.norm(J @ self.open_root.T)
        left, values, _ = np.linalg.svd(J @ self.root.T, full_matrices=False)
        moved = left * np.where(values > HELD * size, values, 0.0)
        return np.asarray(moved @ moved.T)


def loop_response(model: Model, q: Array, v: Array, H: Array, t: float = 0.0) -> LoopResponse:
    """Answer of a mechanism with the inertia matrix H, loops kept closed if it has any.

    Examples
    --------
    A bead of 2 kg on a wire along x, as three slides and a loop:

    >>> from multibody import ModelBuilder, Prismatic, crba, point_mass
    >>> b = ModelBuilder()
    >>> _ = b.add_body("slide", 0, Prismatic("y"), inertia=point_mass(0.5))
    >>> _ = b.add_body("bead", "slide", Prismatic("x"), inertia=point_mass(2.0))
    >>> b.add_loop("wire", 0, "bead", Prismatic("x"))
    >>> model = b.build()
    >>> loop_response(model, np.zeros(2), np.zeros(2), crba(model, np.zeros(2))).Psi + 0.0
    array([[0. , 0. ],
           [0. , 0.5]])
    """
    L = np.linalg.cholesky(H)
    back = np.linalg.inv(L)  # of a triangle; H⁻¹ = backᵀ back
    if not model.bonds:
        return LoopResponse(back, back, np.zeros(len(H)))
    c = constraints(model, q, v, t=t)
    left, sizes, right = np.linalg.svd(c.K @ back.T, full_matrices=True)
    rank = int(np.sum(sizes > RANK_TOLERANCE * sizes.max(initial=0.0)))
    free = right[rank:] @ back
    given = right[:rank].T @ ((left[:, :rank].T @ c.gamma) / sizes[:rank])
    return LoopResponse(free, back, back.T @ given)


def loops_to_the_ground(model: Model) -> list[str]:
    """Names of the loops that hold a mechanism to the base."""
    return [loop.name for loop in model.loops if 0 in (loop.predecessor, loop.successor)]
