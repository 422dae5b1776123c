"""How a mechanism looks in space: solids on its bodies, bars between them, planes.

Bodies that a file (or `ModelBuilder.add_solid`) describes look as they are described. Of the others
the looks are made up from what is known: the surfaces that they touch with, wheels of joints that
roll, the links of the stick figure as bars, and the solid of uniform density that has the same mass
and moments of inertia: a ball, a cylinder (a disc, if flat) or a box.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.analysis.plot.style import COLOURS

from ..checks import Array
from ..joints import Fixed, Prismatic, RackPinion, Revolute, RollingDisc, RollingSphere
from ..model.surfaces import Ball, BoxCorners, Capsule, Disc, HalfSpace, Shape
from .skeleton import Skeleton, spread_of

if TYPE_CHECKING:
    from ..model import Body, Model, Solid

__all__ = ["Appearance", "Part", "appearance"]

ROLLING = (RollingSphere, RollingDisc, RackPinion)
Z = np.array([0.0, 0.0, 1.0])
INK, GREY, LOOP_COLOUR = (0.2, 0.2, 0.22, 1.0), (0.55, 0.57, 0.6, 1.0), (0.9, 0.62, 0.0, 1.0)

#: Sizes of what is made up, in parts of the mechanism's size.
BAR, JOINT, THIN = 0.014, 0.024, 0.005
#: Two lengths within this part are the same: a cylinder, not a box.
ALIKE = 0.02
#: A solid thinner than this part of its length in two directions is a rod, which is a bar already.
ROD = 0.06
#: Solids of published inertias may be larger than what they are part of; they are cut off here.
LARGEST = 0.6
#: Opacity of boxes that stand for inertias: one sees that they are none.
SHADY = 0.45


@dataclass(frozen=True)
class Part:
    """A solid on a body: shape and sizes as in `Solid`, place of its frame, colour."""

    body: int
    shape: str
    size: tuple[float, ...]
    R: Array
    p: Array
    colour: tuple[float, ...]
    source: Solid | None = None


@dataclass
class Appearance:
    """What is drawn.

    Attributes
    ----------
    parts
        Solids that move with bodies.
    bars
        (kind, (body, point), (body, point), radius, colour) between points of any two bodies: "bar"
        or "coil".
    planes
        (normal, point) of planes that stand still.
    """

    parts: list[Part] = field(default_factory=list)
    bars: list[tuple[str, tuple[int, Array], tuple[int, Array], float, Any]] = field(
        default_factory=list
    )
    planes: list[tuple[Array, Array]] = field(default_factory=list)

    def put(self, body: int, shape: str, size: Any, R: Array, p: Any, colour: Any) -> None:
        """Add a solid."""
        sizes = tuple(float(x) for x in size)
        self.parts.append(Part(body, shape, sizes, R, np.asarray(p, dtype=float), colour))

    def rod(self, body: int, a: Array, b: Array, radius: float, colour: Any) -> None:
        """Add a bar with round ends between two points of a body."""
        length = float(np.linalg.norm(b - a))
        if length > 1e-12:
            R = _onto((b - a) / length)
            self.put(body, "capsule", (radius, length), R, (a + b) / 2, colour)


def _onto(direction: Array) -> Array:
    """Rotation that takes z to a direction."""
    return Revolute(direction).frame.T


def colour_of(body: int) -> tuple[float, ...]:
    """Colour of a body that says nothing of it."""
    if body == 0:
        return GREY
    text = COLOURS[(body - 1) % (len(COLOURS) - 1)]
    return (*(int(text[k : k + 2], 16) / 255 for k in (1, 3, 5)), 1.0)


def appearance(model: Model, bones: Skeleton, size: float) -> Appearance:
    """Looks of a mechanism of the given size (m), whose stick figure is known."""
    look = Appearance()
    described = {solid.body for solid in model.solids}
    for solid in model.solids:
        colour = solid.colour or colour_of(solid.body)
        X = solid.placement
        look.parts.append(Part(solid.body, solid.shape, solid.size, X.E.T, X.r, colour, solid))
    rolling = _rolling(model, look, described)
    shaped = described | _touching(model, look, described) | rolling
    mounted = {i for i, body in enumerate(model.bodies, 1) if body.parent == 0}
    if mounted <= described:  # a pole from the origin to a robot is no part of it
        described = described | {0}
    for (a, b), i in zip(bones.links, bones.bodies):
        if i not in described | rolling:
            start, end = bones.points[a][1], bones.points[b][1]
            look.rod(i, start, end, BAR * size, colour_of(i))
    for i, body in enumerate(model.bodies, 1):
        if i not in shaped:
            _of_inertia(look, i, body, size)
        if i not in described:
            _joint(look, i, body, size)
    _between(model, bones, look, size)
    return look


def _touching(model: Model, look: Appearance, described: set[int]) -> set[int]:
    """Surfaces of contacts; returns the bodies that have some."""
    found: set[tuple[int, Shape]] = set()
    for contact in model.contacts:
        for body, shape in (
            (contact.body_a, contact.shape_a),
            (contact.body_b, contact.shape_b),
        ):
            if shape is None or (body, shape) in found:
                continue
            found.add((body, shape))
            colour = colour_of(body)
            if isinstance(shape, HalfSpace) and body == 0:
                look.planes.append((np.array(shape.normal), np.array(shape.point)))
            elif body in described:
                continue
            elif isinstance(shape, Ball):
                look.put(body, "sphere", (shape.radius,), np.eye(3), shape.centre, colour)
            elif isinstance(shape, BoxCorners):
                edges = np.maximum(shape.size, 0.05 * max(shape.size) + 1e-9)
                look.put(body, "box", edges, np.eye(3), shape.centre, colour)
            elif isinstance(shape, Capsule):
                ends = np.array(shape.start), np.array(shape.end)
                look.rod(body, *ends, shape.radius, colour)
            elif isinstance(shape, Disc):
                _wheel(look, body, shape.radius, np.array(shape.axis), shape.centre, colour)
    return {body for body, shape in found if not isinstance(shape, HalfSpace) and body}


def _wheel(look: Appearance, body: int, radius: float, axle: Array, centre: Any, tint: Any) -> None:
    """A tyre, with a hub and spokes, so that one sees it turn."""
    R = _onto(axle / np.linalg.norm(axle))
    thin = 0.05 * radius
    look.put(body, "ring", (radius - thin, thin), R, centre, INK)
    look.put(body, "cylinder", (0.12 * radius, 0.3 * radius), R, centre, tint)
    middle = np.asarray(centre, dtype=float)
    for angle in np.arange(6) * np.pi / 3:
        out = R @ np.array([np.cos(angle), np.sin(angle), 0.0])
        look.rod(body, middle, middle + (radius - thin) * out, 0.02 * radius, tint)


def _rolling(model: Model, look: Appearance, described: set[int]) -> set[int]:
    """Wheels and balls of joints that roll, in the tree and in loops."""
    found = set()
    rolling = [
        (i, body.joint, np.eye(3), np.zeros(3))
        for i, body in enumerate(model.bodies, 1)
        if not body.reverse
    ]
    rolling += [
        (c.successor, c.joint, c.placement_successor.E.T, c.placement_successor.r)
        for c in model.loops
    ]
    for body, joint, R, p in rolling:
        if body in described or not isinstance(joint, ROLLING):
            continue
        turned = R @ joint.frame.T
        if isinstance(joint, RollingSphere):
            look.put(body, "sphere", (joint.radius,), turned, p, colour_of(body))
            look.put(
                body, "ring", (joint.radius, 0.02 * joint.radius), turned, p, INK
            )  # shows that it turns
        elif joint.radius != 0.0:
            axle = turned @ (Z if isinstance(joint, RackPinion) else np.array([0.0, 1.0, 0.0]))
            _wheel(look, body, abs(joint.radius), axle, p, colour_of(body))
        found.add(body)
    return found


def _of_inertia(look: Appearance, i: int, body: Body, size: float) -> None:
    """The uniform solid of the same inertia about the centre of mass."""
    mass, colour = float(body.inertia.mass), colour_of(i)
    if mass <= 0.0:
        return
    centre = body.inertia.centre
    squares, axes = np.linalg.eigh(spread_of(body))  # ascending
    spread = np.minimum(np.sqrt(np.maximum(squares, 0.0) / mass), LARGEST * size / np.sqrt(12.0))
    if np.linalg.det(axes) < 0.0:
        axes = axes * [1.0, 1.0, -1.0]
    small, middle, large = spread
    if large < 0.01 * size:  # a point
        look.put(i, "sphere", (2.2 * BAR * size,), np.eye(3), centre, colour)
    elif middle < ROD * large:
        return
    elif large - small < ALIKE * large:
        look.put(i, "sphere", (np.sqrt(5.0) * large,), axes, centre, colour)
    elif large - middle < ALIKE * large:  # flat, about the first axis
        flat = max(np.sqrt(12.0) * small, 0.012 * size)
        R = axes @ np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        look.put(i, "cylinder", (2.0 * large, flat), R, centre, colour)
    elif middle - small < ALIKE * large:  # long, about the last one
        look.put(i, "cylinder", (2.0 * middle, np.sqrt(12.0) * large), axes, centre, colour)
    else:
        edges = np.maximum(np.sqrt(12.0) * spread, 0.012 * size)
        look.put(i, "box", edges, axes, centre, (*colour[:3], SHADY))


def _joint(look: Appearance, i: int, body: Body, size: float) -> None:
    """A pin, a guide or a ball where the body's joint is."""
    joint = body.joint
    if isinstance(joint, Fixed) or joint.nv == 6 or body.reverse:
        return
    R = joint.frame.T
    here, r = np.zeros(3), JOINT * size
    if joint.nv == 1 and "angle" in joint.coordinates:
        look.put(i, "cylinder", (r, 2.6 * r), R, here, INK)
    elif isinstance(joint, Prismatic):
        look.put(i, "box", (2.0 * r, 2.0 * r, 2.8 * r), R, here, INK)
    else:
        look.put(i, "sphere", (r,), np.eye(3), here, INK)


def _between(model: Model, bones: Skeleton, look: Appearance, size: float) -> None:
    """What joints have shifted, springs, and joints that close loops."""

    def end(k: int) -> tuple[int, Array]:
        return bones.points[k]

    for a, b in bones.slides:
        look.bars.append(("bar", end(a), end(b), THIN * size, GREY))
    for a, b in bones.springs:
        look.bars.append(("coil", end(a), end(b), 1.6 * BAR * size, INK))
    for (a, b), loop in zip(bones.loops, model.loops):
        if isinstance(loop.joint, ROLLING):
            continue
        look.bars.append(("bar", end(a), end(b), THIN * size, LOOP_COLOUR))
        for body, point in (end(a), end(b)):
            look.put(body, "sphere", (JOINT * size,), np.eye(3), point, LOOP_COLOUR)
