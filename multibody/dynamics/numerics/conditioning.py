"""Sensitivity: what small errors do to accelerations (book, §10.2).

Accelerations solve H v̇ = τ − C, and errors of the data reach them through H⁻¹:

    δv̇ = H⁻¹ (δτ − δH v̇ − δC).

So the condition number of H bounds how much relative errors can grow: that of a chain of n equal
links reaches about 4n⁴. This is a property of the mechanism, and no algorithm mends it; what can
help is a tree of less depth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...algebra.plucker import Plucker
from ...checks import Array, ArrayLike
from ..functions import FD, crba
from ..loops.closed_loop import constraints
from ..loops.response import loop_response
from ..parameters.regressor import body_regressors

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["Conditioning", "conditioning"]

#: Relative change of a length by which differences are taken, and extrapolated once.
STEP = 1e-3


@dataclass(frozen=True, eq=False)
class Conditioning:
    """How sensitive the accelerations of a mechanism are at a state.

    Attributes
    ----------
    number
        Condition number of H: how much a relative error of forces can grow at most. It depends on
        the units of v where angles and lengths are mixed.
    scaled_number
        The same after every freedom was measured in a unit that makes its own inertia 1.
    inertias, directions
        Eigenvalues of H from smallest to largest, and the velocities (columns) that they belong
        to. Errors in forces matter most along the first.
    accelerations
        v̇ at the given state and forces.
    masses
        (n_bodies, nv): change of v̇ for a relative error of 1 in the mass and inertia of a body.
    lengths
        The same for the distance from the parent's origin to the body's joint.
    names
        Of the bodies.
    """

    number: float
    scaled_number: float
    inertias: Array
    directions: Array
    accelerations: Array
    masses: Array
    lengths: Array
    names: tuple[str, ...]

    @property
    def worst_masses(self) -> dict[str, float]:
        """Relative change of v̇ for each relative error of a body's inertia, worst first."""
        return self._relative(self.masses)

    @property
    def worst_lengths(self) -> dict[str, float]:
        """Relative change of v̇ for each relative error of a length, worst first."""
        return self._relative(self.lengths)

    def _relative(self, changes: Array) -> dict[str, float]:
        size = float(np.linalg.norm(self.accelerations))
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.nan_to_num(np.linalg.norm(changes, axis=1) / np.float64(size), posinf=np.inf)
        order = np.argsort(-sizes, kind="stable")
        return {self.names[k]: float(sizes[k]) for k in order}

    def __str__(self) -> str:
        lines = [
            f"condition number of H: {self.number:.4g} (each freedom in its own unit: "
            f"{self.scaled_number:.4g})",
            f"inertias from {self.inertias[0]:.4g} to {self.inertias[-1]:.4g}",
        ]
        for what, found in (("inertia", self.worst_masses), ("length", self.worst_lengths)):
            name, growth = next(iter(found.items()))
            lines.append(f"an error of 1 % in the {what} of {name!r}: {growth:.3g} % of v̇")
        return "\n".join(lines)


def conditioning(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    t: float = 0.0,
) -> Conditioning:
    """Condition number of H, its directions, and what errors in masses and lengths do.

    Parameters
    ----------
    model, q, v, tau, t
        As for `FD`; velocities and forces are zero if not given. With loops, H is that of the
        motions which keep them closed, in an orthonormal basis of them; changes of v̇ are those
        with the loops kept closed at velocity level (a changed length opens them by itself).

    Examples
    --------
    The book's chain of six links (§10.2), whose forces are known to half a per cent:

    >>> from multibody import ModelBuilder, Revolute, rod
    >>> b = ModelBuilder(gravity=(0, 0, 0))
    >>> for i in range(6):
    ...     _ = b.add_body(
    ...         f"link{i}", i, Revolute(), (min(i, 1), 0, 0), rod((0, 0, 0), (1, 0, 0), mass=1.0)
    ...     )
    >>> q = np.radians([0, 75, -75, 75, -75, 75])
    >>> round(conditioning(b.build(), q).number, 1)
    725.4
    """
    q = model.check("q", q)
    speed = np.zeros(model.nv) if v is None else model.check("v", v)
    force = np.zeros(model.nv) if tau is None else model.check("tau", tau)
    H = crba(model, q, t=t)
    found = loop_response(model, q, speed, H, t)
    a = FD(model, q, speed, force, t=t)
    free = np.eye(model.nv)
    if model.bonds:
        K = constraints(model, q, speed, t=t).K
        _, _, right = np.linalg.svd(K, full_matrices=True)
        free = right[model.nv - len(found.root) :].T
    inner = free.T @ H @ free
    values, vectors = np.linalg.eigh(inner)
    own = np.sqrt(np.diag(inner))
    scaled = np.linalg.eigvalsh(inner / np.outer(own, own)) if len(own) else np.ones(1)
    masses = np.array(
        [
            -found.root.T @ (found.root @ (block @ body.inertia.array))
            for body, (_, block) in zip(model.bodies, body_regressors(model, q, speed, a, t))
        ]
    )
    lengths = np.array([_by_length(model, i, q, speed, force, t) for i in range(model.n_bodies)])
    number = float(values[-1] / values[0]) if len(values) else 1.0
    names = tuple(body.name for body in model.bodies)
    return Conditioning(
        number, float(scaled[-1] / scaled[0]), values, free @ vectors, a, masses, lengths, names
    )


def _by_length(model: Model, i: int, q: Array, v: Array, tau: Array, t: float) -> Array:
    """Change of v̇ for each relative change of the place of a joint on its parent."""
    placement = model.bodies[i].placement
    if not placement.r.any():
        return np.zeros(model.nv)

    def at(change: float) -> Array:
        moved = Plucker._of(placement.E, (1.0 + change) * placement.r)
        bodies = list(model.bodies)
        bodies[i] = replace(bodies[i], placement=moved)
        return FD(replace(model, bodies=tuple(bodies)), q, v, tau, t=t)

    coarse, fine = ((at(h) - at(-h)) / (2 * h) for h in (STEP, STEP / 2))
    return (4 * fine - coarse) / 3
