"""Inertias as MuJoCo takes them: positive moments, none above the sum of the others.

A rod without inertia about its axis is refused there, a point mass, a planar body of which only one
moment counts. What is added is εP, where P projects onto directions about which the body never
turns: neither motion nor reactions feel it. Where it turns about all of them, ε is as small as
MuJoCo takes, and told.
"""

from __future__ import annotations

import numpy as np

from ...algebra.orientation.quaternions import from_matrix
from ...checks import Array
from ...joints import Fixed, Prismatic, Revolute
from ...model import Body, Model
from ..shared.markup import central_of
from ..shared.report import Report

__all__ = ["LEAST", "inertial_of", "turning_of"]

#: MuJoCo wants more than 1e-15 of masses (kg) and moments (kg m²) that move.
LEAST = 2e-15
#: Directions that are one, but for rounding.
PARALLEL = 1e-14
#: What is added where it is not felt, parts of the largest moment.
UNFELT = 1e-3


def turning_of(model: Model) -> list[Array]:
    """Directions about which each body ever turns, in its frame: rows, none, one or all three.

    Two hinges that are not parallel turn a body about every axis, as time goes by.
    """
    found = [np.zeros((0, 3))]
    for body in model.bodies:
        around = found[body.parent] @ body.placement.E.T
        if isinstance(body.joint, Revolute):
            axis = np.asarray(body.joint.axis, dtype=float)
            off = np.cross(around, axis)
            parallel = len(around) < 2 and np.all(np.abs(off) < PARALLEL)
            around = axis[None] if parallel else np.eye(3)
        elif not isinstance(body.joint, Prismatic | Fixed):
            around = np.eye(3)
        found.append(around)
    return found


def inertial_of(body: Body, turning: Array, report: Report) -> dict[str, object] | None:
    """Attributes of <inertial>; None for a body without mass that needs none."""
    if not np.any(body.inertia.array):
        if not body.joint.nv:
            return None
        report.lost(f"body {body.name!r}: that it has no mass; it has {LEAST:g} kg and kg m²")
        return {"pos": np.zeros(3), "mass": LEAST, "diaginertia": np.full(3, LEAST)}
    mass, centre, I = central_of(body)
    if mass < LEAST:
        report.lost(f"body {body.name!r}: its mass of {mass:g} kg, raised to {LEAST:g}")
    known: dict[str, object] = {"pos": centre, "mass": max(mass, LEAST)}
    if _taken(np.linalg.eigvalsh(I), 1e-14):  # MuJoCo looks for axes with a limit of its own
        full = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        return known | {"fullinertia": full}
    raised, more, felt = _raised(I, turning)
    moments, axes = np.linalg.eigh(raised)
    if felt:
        said = ", ".join(f"{x:.3g}" for x in np.linalg.eigvalsh(I))
        report.lost(
            f"body {body.name!r}: principal moments {said} kg m², which MuJoCo refuses; raised by "
            f"{more:.1e}"
        )
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1.0
    return known | {"diaginertia": moments, "quat": from_matrix(axes)}


def _raised(I: Array, turning: Array) -> tuple[Array, float, bool]:
    """Moments that MuJoCo takes, how much was added, and whether it is felt."""
    unfelt = np.eye(3) - turning.T @ turning
    felt = len(turning) == 3 or (len(turning) == 1 and turning[0] @ I @ turning[0] <= LEAST)
    added = np.eye(3) if felt else unfelt
    more = max(UNFELT * float(np.abs(I).max()), LEAST)
    if felt:  # as little as it takes
        low, middle, high = np.linalg.eigvalsh(I)
        more = max(LEAST, LEAST - low, (1 + 1e-12) * (high - middle - low))
    while not _taken(np.linalg.eigvalsh(I + more * added), LEAST):
        more *= 2.0
    return I + more * added, more, felt


def _taken(moments: Array, least: float) -> bool:
    return bool(moments[0] >= least and moments[2] <= moments[0] + moments[1])
