"""Surfaces that bodies touch each other with: planes, balls, capsules, discs, corners.

A shape is data in the coordinates of its body. Which shapes can meet, and in how many points, is
said in :func:`elementary`: every pair is taken apart into *elementary* contacts of one point each,
because a plane patch acts through the corners of its convex hull, and a capsule that lies on a
plane through its two ends (book, §11.6).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from ..checks import Array, exact_array, real_scalar

__all__ = [
    "SHAPES",
    "Ball",
    "Bowl",
    "BoxCorners",
    "Capsule",
    "Disc",
    "HalfSpace",
    "Shape",
    "Vertex",
    "elementary",
]

# Kinds of elementary contacts, as kernels know them.
BALL_PLANE, DISC_PLANE, BALL_BALL, BALL_BOWL, CAPSULES, GAP_FUNCTION = range(6)

ORIGIN = (0.0, 0.0, 0.0)


def _length(value: Any, name: str, least: float = 0.0, strict: bool = True) -> float:
    number = real_scalar(value, name)
    if not np.isfinite(number) or number < least or (strict and number == least):
        sign = ">" if strict else "≥"
        raise ValueError(f"{name}: expected a length {sign} {least:g}, received {value!r}")
    return number


def _direction(value: Any, name: str) -> Array:
    vector = exact_array(value, name, (3,))
    length = float(np.linalg.norm(vector))
    if not length > 0.0 or not np.isfinite(length):
        raise ValueError(f"{name}: expected a direction, received {value!r}, which has none")
    return vector if abs(length - 1.0) < 1e-15 else vector / length


class Shape:
    """What the shapes have in common."""

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            value = self._check(item.name, getattr(self, item.name))
            if isinstance(value, np.ndarray):
                value = tuple(float(x) for x in value)
            object.__setattr__(self, item.name, value)

    def _check(self, name: str, value: Any) -> Any:
        where = f"{type(self).__name__}: {name}"
        if name in ("normal", "axis"):
            return _direction(value, where)
        if name == "radius":
            return _length(value, where)
        return exact_array(value, where, (3,))

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that make the same shape."""
        return {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class HalfSpace(Shape):
    """Everything below a plane: the outward normal, and a point of the plane."""

    kind: ClassVar[str] = "plane"
    normal: Any = (0.0, 0.0, 1.0)
    point: Any = ORIGIN


@dataclass(frozen=True)
class Vertex(Shape):
    """A single point: a corner, the foot of a ladder, a bead."""

    kind: ClassVar[str] = "point"
    point: Any = ORIGIN


@dataclass(frozen=True)
class Ball(Shape):
    """A sphere."""

    kind: ClassVar[str] = "ball"
    radius: Any
    centre: Any = ORIGIN


@dataclass(frozen=True)
class Bowl(Shape):
    """The inside of a sphere: a bowl, or in a plane mechanism the hole around a pin."""

    kind: ClassVar[str] = "bowl"
    radius: Any
    centre: Any = ORIGIN


@dataclass(frozen=True)
class BoxCorners(Shape):
    """The eight corners of a box with sides parallel to the axes of the body."""

    kind: ClassVar[str] = "box"
    size: Any
    centre: Any = ORIGIN

    def _check(self, name: str, value: Any) -> Any:
        if name != "size":
            return super()._check(name, value)
        sides = exact_array(value, "BoxCorners: size", (3,))
        if not (sides >= 0.0).all() or not np.isfinite(sides).all():
            raise ValueError(f"BoxCorners: size: expected three lengths ≥ 0, received {value!r}")
        return sides

    def corners(self) -> Array:
        """Corners that differ, in rows."""
        signs = [np.array([-0.5, 0.5]) if side > 0.0 else np.zeros(1) for side in self.size]
        grid = np.stack(np.meshgrid(*signs, indexing="ij"), axis=-1).reshape(-1, 3)
        return np.asarray(self.centre) + grid * np.asarray(self.size)


@dataclass(frozen=True)
class Capsule(Shape):
    """All points within `radius` of the segment from `start` to `end`."""

    kind: ClassVar[str] = "capsule"
    start: Any
    end: Any
    radius: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start == self.end:
            raise ValueError("Capsule: start and end are one point; use Ball")


@dataclass(frozen=True)
class Disc(Shape):
    """The rim of a thin disc: a coin, a wheel."""

    kind: ClassVar[str] = "disc"
    radius: Any
    axis: Any = (0.0, 0.0, 1.0)
    centre: Any = ORIGIN


SHAPES: dict[str, type[Shape]] = {
    cls.kind: cls for cls in (HalfSpace, Vertex, Ball, Bowl, BoxCorners, Capsule, Disc)
}


def _balls(shape: Shape) -> list[tuple[Any, float]] | None:
    """Centres and radii of the balls by which a shape touches planes and bowls."""
    if isinstance(shape, Vertex):
        return [(shape.point, 0.0)]
    if isinstance(shape, Ball):
        return [(shape.centre, shape.radius)]
    if isinstance(shape, BoxCorners):
        return [(corner, 0.0) for corner in shape.corners()]
    if isinstance(shape, Capsule):
        return [(shape.start, shape.radius), (shape.end, shape.radius)]
    return None


def elementary(name: str, a: Shape, b: Shape) -> tuple[bool, list[tuple[int, list[float]]]]:
    """Whether the two must change places, and the elementary contacts: kinds and their numbers.

    Raises
    ------
    ValueError
        For pairs that have no law here, with what there is.
    """
    for turned, (first, second) in ((False, (a, b)), (True, (b, a))):
        balls = _balls(second)
        if isinstance(first, HalfSpace) and balls is not None:
            plane = [*first.normal, *first.point]
            return turned, [(BALL_PLANE, [*plane, *c, r, 0.0, 0.0, 0.0]) for c, r in balls]
        if isinstance(first, HalfSpace) and isinstance(second, Disc):
            numbers = [*first.normal, *first.point, *second.centre, *second.axis, second.radius]
            return turned, [(DISC_PLANE, numbers)]
        if isinstance(first, Bowl) and balls is not None:
            inside = [(BALL_BOWL, [*first.centre, first.radius, *c, r]) for c, r in balls]
            if any(r >= first.radius for _, r in balls):
                raise ValueError(
                    f"contact {name!r}: a ball of radius {max(r for _, r in balls):g} does not fit "
                    f"into a bowl of radius {first.radius:g}"
                )
            return turned, inside
        round_pair = (Vertex, Ball)
        if isinstance(first, round_pair) and isinstance(second, round_pair):
            (c_a, r_a), (c_b, r_b) = _balls(first)[0], balls[0]  # type: ignore[index]
            if r_a + r_b == 0.0:
                raise ValueError(f"contact {name!r}: two points never touch; give one a radius")
            return turned, [(BALL_BALL, [*c_a, r_a, *c_b, r_b])]
        lines = (Capsule, Ball, Vertex)
        if isinstance(first, Capsule) and isinstance(second, lines):
            return turned, [(CAPSULES, [*_segment(first), *_segment(second)])]
    raise ValueError(
        f"contact {name!r}: no law for {type(a).__name__} against {type(b).__name__}; there are "
        "HalfSpace with Vertex, Ball, BoxCorners, Capsule, Disc; Bowl with Vertex, Ball, "
        "BoxCorners, Capsule; Ball and Capsule with Vertex, Ball, Capsule; or gap=, a function of q"
    )


def _segment(shape: Any) -> list[float]:
    if isinstance(shape, Capsule):
        return [*shape.start, *shape.end, shape.radius]
    centre, radius = _balls(shape)[0]  # type: ignore[index]
    return [*centre, *centre, radius]
