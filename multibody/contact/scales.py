"""Size and speed of a mechanism, which thresholds of contact are parts of.

A gap that counts as closed is small against the bodies, and a slip that has no direction is slow
against what gravity does to them. So a mechanism behaves alike at any size, and in any unit of
length: thresholds are parts of

- the length L: the largest of the radii of gyration of bodies about their origins, the extents of
  their surfaces, and the offsets of their joints; 1 (m) where all of these are points;
- the speed √(g L / 9.81 m/s²), which is 1 m/s for L = 1 m on earth; L / 1 s without gravity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..model import Contact, Model

__all__ = ["length_of", "speed_of"]

STANDARD_GRAVITY = 9.81


def length_of(model: Model) -> float:
    """L."""
    found = [0.0]
    for body in model.bodies:
        mass = float(body.inertia.mass)
        if mass > 0.0:
            found.append(float(np.sqrt(max(np.trace(body.inertia.rotational), 0.0) / (2.0 * mass))))
        if body.parent:
            found.append(float(np.linalg.norm(body.placement.r)))
    for contact in model.contacts:
        found += _extents(contact)
    finite = [x for x in found if np.isfinite(x)]
    return max(finite) or 1.0


def _extents(contact: Contact) -> list[float]:
    """How far surfaces of bodies reach from their origins; of fixed ones, how large they are."""
    found = []
    for body, shape in ((contact.body_a, contact.shape_a), (contact.body_b, contact.shape_b)):
        for name, value in (shape.arguments if shape is not None else {}).items():
            if name in ("radius", "size") or (body and name in ("centre", "start", "end", "point")):
                found.append(float(np.linalg.norm(np.asarray(value, dtype=float))))
    return found


def speed_of(model: Model, length: float) -> float:
    """The speed that belongs to a length."""
    gravity = float(np.linalg.norm(model.gravity))
    return float(np.sqrt(gravity * length / STANDARD_GRAVITY)) if gravity > 0.0 else length
