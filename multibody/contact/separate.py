"""The nearest position without penetration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..checks import Array, ArrayLike
from .kinematics import kinematics_at, need_contacts
from .lcp import LCPError, solve_lcp
from .response import mechanism_at

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["separate"]

NEWTON_STEPS = 50
CLOSED = 1e-14


def separate(model: Model, q: ArrayLike, *, t: float = 0.0) -> Array:
    """Move bodies apart where they penetrate, by as little as their inertia allows.

    Each step finds the smallest displacement u, by uᵀHu, with φ + T u ≥ 0 for all points.

    Raises
    ------
    LCPError
        If no position near q is free of penetration.

    Examples
    --------
    >>> import multibody as mb
    >>> b = mb.ModelBuilder()
    >>> _ = b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.sphere(mass=1.0, radius=0.1))
    >>> b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1))
    >>> separate(b.build(), [0.07]).round(12)
    array([0.1])
    """
    need_contacts(model)
    position = model.check("q", q)
    still = np.zeros(model.nv)
    for _ in range(NEWTON_STEPS):
        k = kinematics_at(model, position, still, t)
        if k.gap.min(initial=0.0) >= -CLOSED:
            return position
        near = np.flatnonzero(k.gap <= 0.0)
        T = k.T[near, 0]
        spread = mechanism_at(model, position, still, None, None, t).spread
        z = solve_lcp(T @ spread @ T.T, k.gap[near].copy(), smallest=True).z
        position = model.integrate(position, spread @ (T.T @ z))
    raise LCPError(
        f"separate: {NEWTON_STEPS} steps from q did not end the penetration (still "
        f"{-k.gap.min():.3g} m at contact {k.names[int(np.argmin(k.gap))]!r}); start nearer"
    )
