"""How bodies look: boxes, cylinders, balls and meshes that pictures show.

A solid has no mass and touches nothing: inertia and contacts are said elsewhere. Two models that
differ in solids alone are equal, and share their compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.plucker import Plucker
from ..checks import Array, one_of, real_array, real_scalar

__all__ = ["SIZES", "Solid", "checked_solid"]

#: What the sizes of a shape are. All stand along z about their middle.
SIZES = {
    "box": ("x", "y", "z"),  # edges
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),  # length of the cylinder, without the caps
    "ellipsoid": ("x", "y", "z"),  # half axes
    "ring": ("radius", "thickness"),  # of the middle line; radius of the tube
    "mesh": (),
}

#: Numbers beyond this are no lengths, and would overflow in pictures.
LARGEST = 1e15


@dataclass(frozen=True, eq=False)
class Solid:
    """A shape on a body, for pictures.

    Attributes
    ----------
    body
        Number of the body; 0 is the base.
    shape
        A key of :data:`SIZES`.
    size
        Numbers named there, in metres.
    placement
        From body coordinates to those of the shape.
    colour
        Red, green, blue and opacity from 0 to 1; empty for the colour of the body.
    vertices, faces
        Of a mesh: points (n, 3) in coordinates of the shape, triangles (m, 3).
    """

    body: int
    shape: str
    size: Any = ()
    placement: Plucker = Plucker.identity()  # noqa: RUF009 (frozen)
    colour: Any = ()
    vertices: Array | None = None
    faces: Array | None = None


def checked_solid(solid: Solid, n: int) -> Solid:
    """Solid of a model with n bodies, or an error that says what is wrong."""
    shape = one_of(solid.shape, "solid: shape", tuple(SIZES))
    where = f"solid ({shape})"
    body = solid.body
    if isinstance(body, bool) or not isinstance(body, int | np.integer) or not 0 <= body <= n:
        raise ValueError(f"{where}: expected the number of a body, 0 to {n}, received {body!r}")
    given = (solid.size,) if np.ndim(solid.size) == 0 else tuple(solid.size)
    if len(given) != len(SIZES[shape]):
        wanted = ", ".join(SIZES[shape]) or "none"
        raise ValueError(f"{where}: size: expected {wanted}; received {solid.size!r}")
    size = tuple(real_scalar(x, f"{where}: size") for x in given)
    if not all(0.0 < x < LARGEST for x in size):
        raise ValueError(f"{where}: size: expected positive lengths, received {solid.size!r}")
    colour = tuple(real_scalar(x, f"{where}: colour") for x in solid.colour)
    if len(colour) == 3:
        colour = (*colour, 1.0)
    if len(colour) not in (0, 4) or not all(0.0 <= x <= 1.0 for x in colour):
        raise ValueError(
            f"{where}: colour: expected three or four numbers from 0 to 1, received "
            f"{solid.colour!r}"
        )
    vertices, faces = _mesh(solid, where)
    return Solid(int(body), shape, size, solid.placement, colour, vertices, faces)


def _mesh(solid: Solid, where: str) -> tuple[Array | None, Array | None]:
    if solid.shape != "mesh":
        if solid.vertices is not None or solid.faces is not None:
            raise ValueError(f"{where}: vertices and faces belong to meshes")
        return None, None
    points = () if solid.vertices is None else solid.vertices
    vertices = np.array(real_array(points, f"{where}: vertices"), dtype=np.float64)
    faces = np.asarray(solid.faces)
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not np.isfinite(vertices).all():
        raise ValueError(f"{where}: vertices: expected points in rows, received {vertices.shape}")
    if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu":
        raise ValueError(
            f"{where}: faces: expected rows of three numbers of vertices, received shape "
            f"{faces.shape} of {faces.dtype}"
        )
    if not len(faces) or faces.min() < 0 or faces.max() >= len(vertices):
        raise ValueError(f"{where}: faces: expected numbers from 0 to {len(vertices) - 1}")
    kept = faces.astype(np.int64)
    for array in (vertices, kept):
        array.setflags(write=False)
    return vertices, kept
