"""The <geometry> of URDF and SDF: shapes for pictures and for masses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.plucker import Plucker
from ...checks import Array
from ...model.builder import ModelBuilder
from ...model.surfaces import Ball, BoxCorners, Capsule, Disc, HalfSpace, Shape, Vertex
from ..shared.report import Report
from ..shared.source import ModelFileError
from ..shared.xml import Element
from .meshes import Mesh, MeshFiles
from .shapes import MassPart, simple_part

__all__ = ["FileShape", "add_ground_contacts", "add_solids", "sdf_shape", "urdf_shape"]

#: How a shape of one name is called here, and which numbers say its size.
URDF = {
    "box": ("box", "size", 3),
    "sphere": ("sphere", "radius", 1),
    "cylinder": ("cylinder", "radius length", 1),
    "capsule": ("capsule", "radius length", 1),
}
SDF = {
    "box": ("box", "size", 3),
    "sphere": ("sphere", "radius", 1),
    "cylinder": ("cylinder", "radius length", 1),
    "capsule": ("capsule", "radius length", 1),
    "ellipsoid": ("ellipsoid", "radii", 3),
}


@dataclass(frozen=True)
class FileShape:
    """A shape in a file: as in `Solid`, or the address and scale of a mesh; where it stands."""

    shape: str
    size: tuple[float, ...]
    element: Element
    R: Array
    p: Array
    colour: tuple[float, ...] = ()
    address: str = ""
    around: Element | None = None

    def mesh(self, files: MeshFiles, beside: str = "") -> Mesh:
        """The mesh that it names."""
        return files.load(self.address, self.size, self.element, beside)

    def part(self, density: float, files: MeshFiles, report: Report) -> MassPart:
        """Mass and moments in the frame of the body."""
        if self.shape == "mesh":
            part = files.part(self.mesh(files), self.element, report)
        else:
            part = simple_part(self.shape, self.size)
        return part.scaled(density).placed(self.R, self.p)


def _sizes(shape: Element, numbers: list[float]) -> tuple[float, ...]:
    if not all(0.0 < x < 1e9 for x in numbers):
        raise shape.error(f"expected positive lengths, received {numbers}")
    return tuple(numbers)


def urdf_shape(geometry: Element | None, R: Array, p: Array, colour: Any = ()) -> FileShape | None:
    """Shape of a <geometry>; None for what is not known."""
    for element in geometry.children if geometry is not None else ():
        if element.tag == "mesh":
            scale = tuple(element.numbers("scale", 3, (1.0, 1.0, 1.0)))
            return FileShape("mesh", scale, element, R, p, colour, element.text("filename"))
        if element.tag in URDF:
            shape, names, count = URDF[element.tag]
            found = [x for name in names.split() for x in element.numbers(name, count, None)]
            return FileShape(shape, _sizes(element, found), element, R, p, colour)
    return None


def sdf_shape(geometry: Element | None, R: Array, p: Array, colour: Any = ()) -> FileShape | None:
    """Shape of a <geometry>; None for planes and what is not known."""
    for element in geometry.children if geometry is not None else ():
        if element.tag == "mesh":
            uri, scale = element.first("uri"), element.first("scale")
            if uri is None or not uri.content:
                raise element.error("expected <uri>")
            factors = (1.0, 1.0, 1.0) if scale is None else tuple(scale.inside(3))
            return FileShape("mesh", factors, element, R, p, colour, uri.content)
        if element.tag in SDF:
            shape, names, count = SDF[element.tag]
            found: list[float] = []
            for name in names.split():
                inner = element.first(name)
                if inner is None:
                    raise element.error(f"expected <{name}>")
                found += inner.inside(count)
            return FileShape(shape, _sizes(element, found), element, R, p, colour)
    return None


def add_solids(
    builder: ModelBuilder,
    body: str,
    shapes: Iterable[FileShape],
    files: MeshFiles,
    report: Report,
) -> None:
    """Let a body look as the file says; meshes only where they are asked for and can be read."""
    for one in shapes:
        placement = Plucker._of(one.R.T, one.p)
        if one.shape != "mesh":
            builder.add_solid(body, one.shape, one.size, placement, one.colour)
        elif files.drawn:
            try:
                mesh = one.mesh(files)
            except ModelFileError as error:
                report.ignored(one.element, error.message)
                continue
            given = {"vertices": mesh.vertices, "faces": mesh.faces}
            builder.add_solid(body, "mesh", (), placement, one.colour, **given)


def add_ground_contacts(
    builder: ModelBuilder,
    body: str,
    shapes: Iterable[FileShape],
    report: Report,
    **law: float,
) -> None:
    """Let the shapes of a body touch the plane z = 0 of the base; `law`: friction, restitution."""
    for number, one in enumerate(shapes):
        surfaces = _surfaces(one)
        if not surfaces:
            said = f"a {one.shape} of {body!r} touches nothing: there is no law for it"
            report.ignored(one.element, said)
        for part, surface in enumerate(surfaces):
            name = f"{body} {number}" + (f".{part}" if len(surfaces) > 1 else "")
            builder.add_contact(name, 0, HalfSpace(), body, surface, **law)


def _surfaces(one: FileShape) -> list[Shape]:
    """Surfaces that touch a plane where the shape does."""
    axis = one.R[:, 2]
    if one.shape == "sphere":
        return [Ball(one.size[0], one.p)]
    if one.shape == "box":
        if np.array_equal(one.R, np.eye(3)):
            return [BoxCorners(one.size, one.p)]
        corners = BoxCorners(one.size).corners()
        return [Vertex(one.R @ corner + one.p) for corner in corners]
    if one.shape == "cylinder":
        ends = (one.p + side * one.size[1] / 2 * axis for side in (-1.0, 1.0))
        return [Disc(one.size[0], axis, end) for end in ends]
    if one.shape == "capsule":
        half = one.size[1] / 2 * axis
        return [Capsule(one.p - half, one.p + half, one.size[0])]
    return []


def colour_of(numbers: list[float]) -> tuple[float, ...]:
    """Red, green, blue and opacity, cut off where a file says more than there is."""
    return tuple(float(x) for x in np.clip(numbers, 0.0, 1.0))
