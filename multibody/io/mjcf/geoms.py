"""Inertia from shapes, as MuJoCo finds it: sums over the geoms of a body.

Densities are 1000 kg/m³ unless said otherwise. Planes and height fields have no mass. A capsule is
a cylinder with two half balls: about its centre, across its axis, these have
m (2/5 r² + h² + 3/4 h r) together, for a cylinder of half length h.
"""

from __future__ import annotations

import numpy as np

from ...checks import Array
from ..xml import Element
from .poses import Placed, along_z, unit
from .settings import Compiler

__all__ = ["SHAPES", "geom_inertia"]

WATER = 1000.0  # kg/m³
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
MASSLESS = {"plane", "hfield"}
SHAPES = (*SIZES, *MASSLESS, "mesh", "sdf")
BY_ENDS = ("capsule", "cylinder", "box", "ellipsoid")


def geom_inertia(
    geom: Element, around: Placed, compiler: Compiler
) -> tuple[float, Array, Array] | None:
    """Mass, centre, and moments about it in the axes of the body; None if it has no mass."""
    shape = "mesh" if "mesh" in geom.attributes else geom.text("type", "sphere")
    if shape not in SHAPES:
        raise geom.error(f"type: expected one of {', '.join(SHAPES)}, received {shape!r}")
    low, high = compiler.groups
    if shape in MASSLESS or not low <= geom.number("group", 0.0) <= high:
        return None
    mass_given = "mass" in geom.attributes
    amount = geom.number("mass") if mass_given else geom.number("density", WATER)
    if amount < 0:
        raise geom.error(f"a negative {'mass' if mass_given else 'density'}, {amount:g}")
    if amount == 0:
        return None
    if shape not in SIZES or geom.text("shellinertia", "false") != "false":
        what = f"a geom of type {shape}" if shape not in SIZES else "a shell"
        raise geom.error(
            f"{what}, whose inertia is not computed here; give its body an <inertial> (a model "
            "that MuJoCo has saved has them: mujoco.mj_saveLastXML)"
        )
    pose, sizes = _placed(geom, shape, compiler)
    volume, moments = _solid(shape, sizes)
    mass = amount if mass_given else amount * volume
    pose = around @ pose
    return mass, pose.p, mass * (pose.R * moments) @ pose.R.T


def _placed(geom: Element, shape: str, compiler: Compiler) -> tuple[Placed, list[float]]:
    """Pose of a geom in what surrounds it, and its sizes: half lengths and radii."""
    given = geom.text("size", "").split()
    if "fromto" not in geom.attributes:
        sizes = geom.numbers("size", len(given), (0.0,))[: SIZES[shape]]
        pose = Placed(compiler.orientation(geom), np.array(geom.numbers("pos", 3, (0.0, 0.0, 0.0))))
    else:
        if shape not in BY_ENDS:
            raise geom.error(f"fromto: not for a {shape}")
        ends = np.array(geom.numbers("fromto", 6, None)).reshape(2, 3)
        length = float(np.linalg.norm(ends[0] - ends[1]))
        axis = unit(geom, "fromto", list(ends[0] - ends[1]))
        pose = Placed(along_z(axis), ends.mean(axis=0))
        radii = geom.numbers("size", len(given), (0.0,))
        sizes = [radii[0], length / 2] if SIZES[shape] == 2 else [radii[0], radii[0], length / 2]
        if SIZES[shape] == 3 and len(radii) > 1:
            sizes[1] = radii[1]
    if len(sizes) < SIZES[shape] or min(sizes, default=0.0) <= 0.0:
        raise geom.error(f"size: expected {SIZES[shape]} positive numbers for a {shape}")
    return pose, sizes


def _solid(shape: str, sizes: list[float]) -> tuple[float, Array]:
    """Volume, and principal moments of a unit of mass."""
    if shape == "sphere":
        (r,) = sizes
        return 4 / 3 * np.pi * r**3, np.full(3, 0.4 * r * r)
    if SIZES[shape] == 3:
        squares = np.square(sizes)
        factor = 1 / 3 if shape == "box" else 1 / 5
        volume = (8.0 if shape == "box" else 4 / 3 * np.pi) * float(np.prod(sizes))
        return volume, factor * (squares.sum() - squares)
    r, h = sizes
    tube, caps = 2.0 * np.pi * r * r * h, 4 / 3 * np.pi * r**3 if shape == "capsule" else 0.0
    part = tube / (tube + caps)
    across = part * (3 * r * r + 4 * h * h) / 12 + (1 - part) * (0.4 * r * r + h * h + 0.75 * h * r)
    along = part * r * r / 2 + (1 - part) * 0.4 * r * r
    return tube + caps, np.array([across, across, along])
