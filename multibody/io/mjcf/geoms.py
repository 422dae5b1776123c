"""Geoms of MJCF: what mass they have, as MuJoCo finds it, and how they look.

Densities are 1000 kg/m³ unless said otherwise. Planes and height fields have no mass. Of a mesh
MuJoCo counts, unless told otherwise, the volumes of all tetrahedra from the middle of its surface
as positive (``inertia="legacy"``); "exact" and "convex" are what they say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..geometry import MassPart, Mesh, MeshFiles, simple_part
from ..geometry.elements import colour_of
from ..geometry.meshes import LARGEST
from ..shared.report import Report
from ..shared.source import ModelFileError
from ..shared.xml import Element
from .poses import Placed, along_z, orientation, unit
from .settings import Compiler, Defaults, enter

__all__ = ["SHAPES", "Assets", "geom_inertia", "geom_solid"]

WATER = 1000.0  # kg/m³
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
MASSLESS = {"plane", "hfield"}
SHAPES = (*SIZES, *MASSLESS, "mesh", "sdf")
BY_ENDS = ("capsule", "cylinder", "box", "ellipsoid")
#: Ways to find the inertia of a mesh, and their names here.
MESH_INERTIA = {"legacy": "unsigned", "exact": "exact", "convex": "convex"}
#: Groups that MuJoCo shows unless asked for others.
SHOWN = 2


@dataclass
class Assets:
    """Meshes and colours that a file names."""

    files: MeshFiles
    report: Report
    folder: str = ""
    meshes: dict[str, Element] = field(default_factory=dict)
    colours: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def read(self, root: Element, defaults: Defaults) -> None:
        """Take over what stands in <asset> and <compiler>."""
        for compiler in root.all("compiler"):
            self.folder = compiler.text("assetdir", self.folder)
            self.folder = compiler.text("meshdir", self.folder)
        for group in root.all("asset"):
            for element in group.children:
                entry = defaults.applied(element, None)
                file = entry.attributes.get("file", "")
                stem = file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
                name = entry.attributes.get("name", stem)
                if entry.tag == "mesh":
                    enter(self.meshes, entry, entry, name)
                elif entry.tag == "material" and "rgba" in entry.attributes:
                    enter(self.colours, entry, colour_of(entry.numbers("rgba", 4, None)), name)

    def mesh(self, geom: Element) -> tuple[Mesh, Element]:
        """Mesh of a geom in its frame, and its entry: moved, turned, then scaled."""
        name = geom.attributes.get("mesh", "")
        if name not in self.meshes:
            raise geom.error(f"there is no mesh {name!r}")
        entry = self.meshes[name]
        scale = np.array(entry.numbers("scale", 3, (1.0, 1.0, 1.0)))
        origin = np.array(entry.numbers("refpos", 3, (0.0, 0.0, 0.0)))
        turned = Element("mesh", {}, entry.line, entry.file)
        if "refquat" in entry.attributes:
            turned.attributes["quat"] = entry.text("refquat")
        R = orientation(turned, 1.0, "xyz")
        if "vertex" in entry.attributes:
            mesh = _written(entry)
        elif "file" in entry.attributes:
            mesh = self.files.load(entry.text("file"), 1.0, entry, self.folder)
        else:
            raise entry.error("expected a file or vertices")
        faces = mesh.faces if np.prod(np.sign(scale)) >= 0 else mesh.faces[:, [0, 2, 1]]
        vertices = ((mesh.vertices - origin) @ R) * scale
        if not (np.abs(vertices) < LARGEST).all():
            raise entry.error(f"points farther away than {LARGEST:g} m")
        return Mesh(vertices, faces, mesh.closed), entry


def _written(entry: Element) -> Mesh:
    """A mesh whose vertices stand in the file; without faces it is their convex hull."""
    count = len(entry.text("vertex").split())
    vertices = np.array(entry.numbers("vertex", count, None))
    if count < 12 or count % 3:
        raise entry.error(f"vertex: expected four points or more, received {count} numbers")
    points = vertices.reshape(-1, 3)
    if "face" not in entry.attributes:
        from scipy.spatial import ConvexHull

        try:
            return Mesh(points, np.asarray(ConvexHull(points).simplices, dtype=np.int64), True)
        except Exception:  # of Qhull, for flat ones
            raise entry.error("vertex: the points lie in a plane") from None
    named = entry.numbers("face", len(entry.text("face").split()), None)
    faces = np.array(named).astype(np.int64)
    if len(faces) % 3 or not len(faces) or faces.min() < 0 or faces.max() >= len(points):
        raise entry.error("face: expected three numbers of vertices for each triangle")
    return Mesh(points, faces.reshape(-1, 3), True)


def _shape(geom: Element) -> str:
    shape = "mesh" if "mesh" in geom.attributes else geom.text("type", "sphere")
    if shape not in SHAPES:
        raise geom.error(f"type: expected one of {', '.join(SHAPES)}, received {shape!r}")
    return shape


def geom_inertia(
    geom: Element, around: Placed, compiler: Compiler, assets: Assets
) -> MassPart | None:
    """Mass, centre, and moments about it in the axes of the body; None if it has no mass."""
    shape = _shape(geom)
    low, high = compiler.groups
    if shape in MASSLESS or not low <= geom.number("group", 0.0) <= high:
        return None
    mass_given = "mass" in geom.attributes
    amount = geom.number("mass") if mass_given else geom.number("density", WATER)
    if amount < 0:
        raise geom.error(f"a negative {'mass' if mass_given else 'density'}, {amount:g}")
    if amount == 0:
        return None
    if geom.text("shellinertia", "false") != "false" or shape == "sdf":
        what = "a geom of type sdf" if shape == "sdf" else "a shell"
        raise geom.error(
            f"{what}, whose inertia is not computed here; give its body an <inertial> (a model "
            "that MuJoCo has saved has them: mujoco.mj_saveLastXML)"
        )
    if shape == "mesh":
        part, pose = _mesh_part(geom, compiler, assets)
    else:
        pose, sizes = _placed(geom, shape, compiler)
        part = simple_part(shape, _full(shape, sizes))
    pose = around @ pose
    if part.mass == 0.0:
        raise geom.error("it is too small to have a volume")
    factor = amount / part.mass if mass_given else amount
    return part.scaled(factor).placed(pose.R, pose.p)


def _mesh_part(geom: Element, compiler: Compiler, assets: Assets) -> tuple[MassPart, Placed]:
    mesh, entry = assets.mesh(geom)
    how = entry.text("inertia", "legacy")
    if how not in MESH_INERTIA:
        raise entry.error(
            f"inertia: expected one of {', '.join(MESH_INERTIA)}, received {how!r}; give its body "
            "an <inertial>"
        )
    if geom.text("type", "mesh") not in ("mesh", "sphere"):
        raise geom.error("a simple shape fitted to a mesh; give its body an <inertial>")
    part = assets.files.part(mesh, entry, assets.report, MESH_INERTIA[how])
    return part, _of_pose(geom, compiler)


def _of_pose(geom: Element, compiler: Compiler) -> Placed:
    return Placed(compiler.orientation(geom), np.array(geom.numbers("pos", 3, (0.0, 0.0, 0.0))))


def _full(shape: str, sizes: list[float]) -> tuple[float, ...]:
    """Sizes as solids have them, from MuJoCo's half lengths."""
    if shape == "box":
        return tuple(2.0 * x for x in sizes)
    return (sizes[0], 2.0 * sizes[1]) if shape in ("capsule", "cylinder") else tuple(sizes)


def geom_solid(
    geom: Element, around: Placed, compiler: Compiler, assets: Assets
) -> tuple[str, tuple[float, ...], Placed, tuple[float, ...], dict[str, Any]] | None:
    """Shape, size, pose, colour and mesh for pictures; None for what is not shown."""
    shape = _shape(geom)
    if shape in MASSLESS or shape == "sdf" or geom.number("group", 0.0) > SHOWN:
        return None
    colour = assets.colours.get(geom.attributes.get("material", ""), ())
    if "rgba" in geom.attributes:
        colour = colour_of(geom.numbers("rgba", 4, None))
    if shape != "mesh":
        pose, sizes = _placed(geom, shape, compiler)
        return shape, _full(shape, sizes), around @ pose, colour, {}
    if not assets.files.drawn:
        return None
    try:
        mesh, _ = assets.mesh(geom)
    except ModelFileError as error:
        assets.report.ignored(geom, error.message)
        return None
    given = {"vertices": mesh.vertices, "faces": mesh.faces}
    return "mesh", (), around @ _of_pose(geom, compiler), colour, given


def _placed(geom: Element, shape: str, compiler: Compiler) -> tuple[Placed, list[float]]:
    """Pose of a geom in what surrounds it, and its sizes: half lengths and radii."""
    given = geom.text("size", "").split()
    if "fromto" not in geom.attributes:
        sizes = geom.numbers("size", len(given), (0.0,))[: SIZES[shape]]
        pose = _of_pose(geom, compiler)
    else:
        if shape not in BY_ENDS:
            raise geom.error(f"fromto: not for a {shape}")
        ends = np.array(geom.numbers("fromto", 6, None)).reshape(2, 3)
        length = float(np.linalg.norm(ends[0] - ends[1]))
        axis = unit(geom, "fromto", list(ends[0] - ends[1]))
        pose = Placed(along_z(axis), ends.mean(axis=0))
        radii = geom.numbers("size", len(given), (0.0,))
        if not radii:
            raise geom.error("size: expected a radius beside fromto, received none")
        sizes = [radii[0], length / 2] if SIZES[shape] == 2 else [radii[0], radii[0], length / 2]
        if SIZES[shape] == 3 and len(radii) > 1:
            sizes[1] = radii[1]
    if len(sizes) < SIZES[shape] or min(sizes, default=0.0) <= 0.0:
        raise geom.error(f"size: expected {SIZES[shape]} positive numbers for a {shape}")
    if max(sizes) > LARGEST:
        raise geom.error(f"size: nothing is larger than {LARGEST:g} m")
    return pose, sizes
