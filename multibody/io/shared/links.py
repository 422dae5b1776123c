"""What the robots of other programs have in common: angles, names and inertias of links."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...algebra.inertia import RigidInertia, mcI
from ...algebra.orientation.rotations import skew
from ...checks import Array
from ...model.graph import BASE
from .report import Report
from .xml import Element

__all__ = ["body_name", "inertia_of_link", "roll_pitch_yaw", "symmetric"]

#: Inertias may miss the triangle inequality by this much of the largest: digits that were cut off.
TRIANGLE = 1e-6
#: Moments from here on would overflow in what is made of them.
LARGEST = 1e200


def roll_pitch_yaw(roll: float, pitch: float, yaw: float) -> Array:
    """R = Rz(yaw) Ry(pitch) Rx(roll), about fixed axes: from the axes described to those outside.

    Examples
    --------
    >>> roll_pitch_yaw(0.0, 0.0, np.pi / 2).round(12) @ [1, 0, 0]
    array([0., 1., 0.])
    """
    (sr, sp, sy), (cr, cp, cy) = np.sin([roll, pitch, yaw]), np.cos([roll, pitch, yaw])
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def body_name(name: str, link: Element, report: Report) -> str:
    """Name of the body of a link; "base" is what stands still, and no body."""
    if name != BASE:
        return name
    said = f"the name {name!r}: the link is called '{name}(link)' here"
    report.ignored(link, said)
    return f"{name}(link)"


def symmetric(xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> Array:
    """Moments of inertia as a matrix."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def inertia_of_link(
    name: str, mass: float, centre: Array, central: Array, at: tuple[Element, Element], rep: Report
) -> RigidInertia | None:
    """Inertia from mass, centre of mass and moments about it; None for a link without mass.

    Parameters
    ----------
    name
        Of the link.
    mass, centre, central
        In the axes of the link.
    at
        Elements of mass and moments, for lines.
    rep
        Its policy says what happens to moments that no body has.
    """
    if mass < 0:
        raise at[0].error(f"a negative mass, {mass:g}")
    if mass == 0 and not np.any(central):
        return None
    said = f"link {name!r} has moments but no mass"
    if mass == 0 and rep.wrong(at[0], said, "leave them out"):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        far = mass * float(centre @ centre)
    if not (far < LARGEST and np.abs(central).max() < LARGEST):
        raise at[0].error("mass, moments or centre of mass are too large for numbers")
    central, sound = _possible(central, name, at[1], rep)
    if sound:
        return mcI(mass, centre, central)
    cross = skew(centre)  # doubtful, and wanted as it is
    return RigidInertia.unchecked(mass, mass * centre, central - mass * cross @ cross)


def _possible(central: Array, name: str, moments: Element, report: Report) -> tuple[Array, bool]:
    """Moments of inertia, and whether a body can have them.

    Principal ones are not negative, and none is above the sum of the others.
    """
    values, axes = np.linalg.eigh(central)
    excess = values[2] - values[1] - values[0]
    if values[0] >= -TRIANGLE * values[2] and excess <= TRIANGLE * values[2]:
        if excess > 0 or values[0] < 0:  # digits that were cut off
            values[:2] += max(excess, -values[0])
            central = (axes * values) @ axes.T
        return central, True
    said = ", ".join(f"{value:.4g}" for value in values)
    repaired = report.wrong(
        moments,
        f"no body has the principal moments of link {name!r}: {said}",
        "raise the smaller ones",
    )
    if repaired:
        values = np.maximum(values, 0.0)
        values[:2] += max(0.0, values[2] - values[1] - values[0]) / 2 * (1 + 1e-12)
        central = (axes * values) @ axes.T
    return central, repaired


def closes_ring(gears: Mapping[str, Mapping[str, float]], follower: str, leader: str) -> bool:
    """Whether a body that follows `leader` would follow itself, through the gears there are.

    Such gears hold each other still, whatever acts.
    """
    while leader != follower and leader in gears:
        leader = next(iter(gears[leader]))
    return leader == follower
