"""A mechanism as points and lines, for pictures and animations: what to draw, not how.

Each body is drawn from the origin of its frame (where its joint is) to the joints of its children
and through its centre of mass to the end of the uniform rod that has the same mass, centre and
spread of mass in that direction: a point mass ends at the point, a rod at its tip. It is also drawn
to the joints that close loops, on both sides, so that an open loop shows as a gap; a rod whose far
end is such a joint ends there, whatever its spread of mass. Bodies that
turn in all directions, or whose centre is at their origin, get a cross of such rods along their
principal axes, because a line alone would not show how they turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import Array, one_of
from ..runs.simulate import poses
from .surfaces import add_outlines

if TYPE_CHECKING:
    from ..joints import Joint
    from ..model import Body, Model

__all__ = ["Skeleton", "axes_of_view", "skeleton", "spread_of", "view_of"]

VIEWS = ("auto", "xz", "xy", "yz", "3d")

#: Shorter than this part of the mechanism's size, a line is not worth drawing.
SMALLEST = 1e-9


@dataclass(frozen=True)
class Skeleton:
    """Points fixed to bodies, and lines between them.

    Attributes
    ----------
    points
        (number of the body, place in its coordinates).
    links, slides, springs
        Pairs of points: parts of bodies, what joints have shifted, springs between points.
    bodies
        For each link the number of the body that it belongs to.
    joints, centres
        Points to mark: origins of the bodies; centres of mass, with the mass.
    loops
        Pairs of points to mark: a loop joint on its predecessor and on its successor.
    surfaces
        Pairs of points: outlines of surfaces that touch.
    forces
        Pairs of points beyond these: feet and tips of contact forces.
    """

    points: tuple[tuple[int, Array], ...]
    links: tuple[tuple[int, int], ...]
    bodies: tuple[int, ...]
    slides: tuple[tuple[int, int], ...]
    springs: tuple[tuple[int, int], ...]
    joints: tuple[int, ...]
    centres: tuple[tuple[int, float], ...]
    loops: tuple[tuple[int, int], ...]
    surfaces: tuple[tuple[int, int], ...] = ()
    forces: tuple[tuple[int, int], ...] = ()

    def places(self, model: Model, solution: Any) -> Array:
        """Points in base coordinates at all times of a solution, shape (m, points, 3)."""
        R, p = poses(model, solution)
        body = [i for i, _ in self.points]
        local = np.array([place for _, place in self.points])
        return np.asarray(np.einsum("mnij,nj->mni", R[:, body], local) + p[:, body])


class _Drawing:
    """Collects points and lines."""

    def __init__(self) -> None:
        self.points: list[tuple[int, Array]] = []
        self.links: list[tuple[int, int]] = []
        self.bodies: list[int] = []

    def point(self, body: int, place: Any) -> int:
        self.points.append((body, np.asarray(place, dtype=float)))
        return len(self.points) - 1

    def link(self, body: int, start: int, end: int) -> None:
        if np.linalg.norm(self.points[start][1] - self.points[end][1]) > SMALLEST:
            self.links.append((start, end))
            self.bodies.append(body)


def skeleton(model: Model) -> Skeleton:
    """Points and lines that represent a mechanism.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> s = skeleton(mechanisms.double_pendulum())
    >>> len(s.joints), len(s.centres)
    (2, 2)
    """
    drawing = _Drawing()
    slides, joints, centres = [], [], []
    origins = [drawing.point(0, np.zeros(3))]
    parents_of_something = {body.parent for body in model.bodies}
    for i, body in enumerate(model.bodies, 1):
        anchor = drawing.point(body.parent, body.placement.r)
        drawing.link(body.parent, origins[body.parent], anchor)
        origin = drawing.point(i, np.zeros(3))
        origins.append(origin)
        if body.joint.nv < 6:
            joints.append(origin)
            if _shifts(body.joint):
                slides.append((anchor, origin))
        if body.inertia.mass > 0.0:
            centre = drawing.point(i, body.inertia.centre)
            centres.append((centre, float(body.inertia.mass)))
            ends = i in parents_of_something or _has_joint_beyond(model, i, body.inertia.centre)
            _add_mass(drawing, i, body, origin, centre, leaf=not ends)
    springs = [
        (drawing.point(s.body_a, s.point_a), drawing.point(s.body_b, s.point_b))
        for s in model.springs
    ]
    loops = [
        (
            _add_arm(drawing, origins, loop.predecessor, loop.placement_predecessor.r),
            _add_arm(drawing, origins, loop.successor, loop.placement_successor.r),
        )
        for loop in model.loops
    ]
    surfaces = add_outlines(model, drawing.point)
    return Skeleton(
        tuple(drawing.points),
        tuple(drawing.links),
        tuple(drawing.bodies),
        tuple(slides),
        tuple(springs),
        tuple(joints),
        tuple(centres),
        tuple(loops),
        tuple(surfaces),
    )


def _add_arm(drawing: _Drawing, origins: list[int], body: int, place: Any) -> int:
    """Line from the origin of a body to one of its points."""
    point = drawing.point(body, place)
    drawing.link(body, origins[body], point)
    return point


def _has_joint_beyond(model: Model, i: int, centre: Any) -> bool:
    """Whether a loop joint of body i lies further out on the line through its centre of mass."""
    com = np.asarray(centre, dtype=float)
    square = float(com @ com)
    for loop in model.loops:
        sides = (
            (loop.predecessor, loop.placement_predecessor.r),
            (loop.successor, loop.placement_successor.r),
        )
        for body, place in sides:
            away = float(np.linalg.norm(np.cross(com, place)))
            if body == i and com @ place > square * (1 + SMALLEST) and away <= 1e-6 * square:
                return True
    return False


@lru_cache(maxsize=256)
def _shifts(joint: Joint) -> bool:
    """Whether the joint moves the body's origin away from where the joint sits."""
    rng = np.random.default_rng(0)
    shifts = [joint.motion(joint.random(rng)).X.r for _ in range(2)]
    return bool(np.max(np.abs(shifts)) > SMALLEST)


def _add_mass(
    drawing: _Drawing, i: int, body: Body, origin: int, centre: int, *, leaf: bool
) -> None:
    """Line from the origin to the centre of mass and on, or a cross."""
    mass, com = body.inertia.mass, np.asarray(body.inertia.centre)
    distance = float(np.linalg.norm(com))
    spread = spread_of(body)
    if distance > SMALLEST:
        along = com / distance
        reach = _half_length(float(along @ spread @ along), mass) if leaf else 0.0
        drawing.link(i, origin, drawing.point(i, com + reach * along) if reach else centre)
    if distance <= SMALLEST or body.joint.quaternion_places:
        sizes, directions = np.linalg.eigh(spread)
        for size, direction in zip(sizes, directions.T):
            arm = _half_length(float(size), mass) * direction
            drawing.link(i, drawing.point(i, com - arm), drawing.point(i, com + arm))


def _half_length(spread: float, mass: float) -> float:
    """Of the uniform rod with this ∫ x² dm = m (half length)²/3; published data may be negative."""
    return float(np.sqrt(3.0 * max(0.0, spread) / mass))


def spread_of(body: Body) -> Array:
    """∫ x xᵀ dm about the centre of mass: ½ tr(I) − I."""
    I = body.inertia.central
    return 0.5 * np.trace(I) * np.eye(3) - I


# ---------------------------------------------------------------------- from where to look


def view_of(model: Model, view: str = "auto") -> str:
    """Plane in which a mechanism moves, "xz", "xy" or "yz"; "3d" if in none of them.

    A mechanism is planar if no drawn point changes its distance from a coordinate plane,
    whatever the position of the joints.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> view_of(mechanisms.cart_pole()), view_of(mechanisms.heavy_top())
    ('xz', '3d')
    """
    one_of(view, "view", VIEWS)
    if view != "auto":
        return view
    rng = np.random.default_rng(0)
    states = [np.concatenate([model.random(rng), np.zeros(model.nv)]) for _ in range(4)]
    trial = SimpleNamespace(t=np.array([0.0, 0.3, 0.7, 1.1]), y=np.array(states).T)
    places = skeleton(model).places(model, trial)
    ranges = np.ptp(places, axis=0).max(axis=0)
    for normal, name in ((1, "xz"), (2, "xy"), (0, "yz")):
        if ranges[normal] <= SMALLEST * max(1.0, ranges.max()):
            return name
    return "3d"


def axes_of_view(view: str) -> tuple[int, ...]:
    """Coordinates to draw to the right and upwards (and, in 3-D, towards the viewer).

    Examples
    --------
    >>> axes_of_view("xz")
    (0, 2)
    """
    return {"xz": (0, 2), "xy": (0, 1), "yz": (1, 2), "3d": (0, 1, 2)}[view]
