"""Files of meshes: found only in folders that the caller allows, bounded, read by trimesh.

An address is a path, `file://`, `package://NAME/…` or `model://NAME/…`. It is looked for in the
folders that the caller names and beside the file that names it; packages also in the folder of that
name around it. What leads out of such a folder, by dots or by links of the file system, is not
read. A mesh file names no other files here: materials and pictures are left out.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ...checks import Array
from ..shared.report import Report
from ..shared.xml import Element
from .shapes import MassPart, mesh_part

__all__ = ["KINDS", "Mesh", "MeshFiles"]

#: Endings that are read; archives and formats that name other files are not.
KINDS = ("stl", "obj", "ply", "off", "glb", "dae")
MOST_BYTES = 100_000_000
MOST_TRIANGLES = 5_000_000
#: How many folders around a file are searched for one with the name of a package.
HIGHEST = 8
#: Lengths beyond this are no metres.
LARGEST = 1e9


@dataclass(frozen=True)
class Mesh:
    """Points in rows, triangles, and whether the surface is closed."""

    vertices: Array
    faces: Array
    closed: bool


class MeshFiles:
    """Finds and reads meshes.

    Parameters
    ----------
    option
        None: meshes are read where mass is computed from them, from beside the file. True: also to
        be drawn. A folder or several: also from there. False: never.
    includes
        Folder of included files, which may be searched, too.
    """

    def __init__(self, option: Any, includes: str | PathLike[str] | None = None) -> None:
        self.allowed = option is not False
        self.drawn = option is not None and option is not False
        folders: Sequence[Any] = ()
        if isinstance(option, str | PathLike):
            folders = (option,)
        elif option is not None and not isinstance(option, bool):
            folders = tuple(option)
        if includes is not None:
            folders = (*folders, includes)
        self.folders = [Path(folder).resolve() for folder in folders]
        self._read: dict[Path, Mesh] = {}

    def load(self, address: str, scale: Any, at: Element, beside: str = "") -> Mesh:
        """Read the mesh of an address; `beside` is a folder next to the file, such as meshdir."""
        path = self._find(address, at, beside)
        if path not in self._read:
            self._read[path] = _read(path, at)
        mesh = self._read[path]
        factors = np.asarray(scale, dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):
            vertices = mesh.vertices * factors
        if not (np.abs(vertices) < LARGEST).all():
            raise at.error(f"the mesh {address[:100]!r} has points farther away than {LARGEST:g} m")
        faces = mesh.faces if np.prod(np.sign(factors)) >= 0 else mesh.faces[:, [0, 2, 1]]
        return Mesh(vertices, faces, mesh.closed)

    def part(self, mesh: Mesh, at: Element, report: Report, how: str = "exact") -> MassPart:
        """Mass and moments of a mesh of density one."""
        if how == "exact" and not mesh.closed:
            said = "a mesh that is not watertight: what it encloses is not certain"
            if report.wrong(at, said, "take its convex hull"):
                how = "convex"
        try:
            part = mesh_part(mesh.vertices, mesh.faces, how)
            if part.mass <= 0.0 and how == "exact":  # open, or turned inside out
                said = "a mesh that encloses no volume: its convex hull is taken"
                report.assumed(at, said)
                part = mesh_part(mesh.vertices, mesh.faces, "convex")
        except Exception as error:  # of Qhull, for flat ones
            first = str(error).strip().splitlines()
            raise at.error(f"the mesh has no volume: {first[0] if first else error!r}") from None
        if not part.mass > 0.0:
            raise at.error("the mesh has no volume; give its body an inertia")
        return part

    def _find(self, address: str, at: Element, beside: str) -> Path:
        shown = repr(address[:100])
        if not self.allowed:
            raise at.error(f"the mesh {shown} is not read: meshes=False")
        scheme, _, rest = address.rpartition("://")
        if scheme not in ("", "file", "package", "model"):
            raise at.error(f"the mesh {shown} is on a network; fetch it, and pass meshes=FOLDER")
        tried: list[tuple[Path, Path]] = []  # a folder, and a path that must stay in it
        try:
            own = Path(at.file).resolve().parent if Path(at.file).is_file() else None
            for folder in self.folders:
                tried.append((folder, folder / rest))
                if scheme in ("package", "model"):
                    tried.append((folder, folder / rest.partition("/")[2]))
                else:
                    tried.append((folder, folder / beside / rest))
            if own is not None and scheme in ("package", "model"):
                package, _, inner = rest.partition("/")
                named = package not in ("", ".", "..")
                around = [own, *own.parents][:HIGHEST] if named else []
                tried += [(at_, at_ / inner) for at_ in around if at_.name == package]
                tried += [(at_ / package, at_ / package / inner) for at_ in around[:3]]
            elif own is not None:
                tried += [(own, own / beside / rest), (own, own / rest)]
            for folder, path in tried:
                found = path.resolve()
                if found.is_relative_to(folder.resolve()) and found.is_file():
                    return found
        except (OSError, ValueError, RuntimeError) as error:
            raise at.error(f"{shown} is no path: {error}") from None
        raise at.error(
            f"the mesh {shown} is not there, or not in a folder that may be read; pass "
            "meshes=FOLDER, in which it is (for package://NAME/… the folder with NAME in it)"
        )


def _read(path: Path, at: Element) -> Mesh:
    kind = path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise at.error(f"the mesh {path.name!r}: expected one of {', '.join(KINDS)}")
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise at.error(
            f"the mesh {path.name!r} has {size / 1e6:.0f} MB; at most {MOST_BYTES // 10**6} are "
            "read"
        )
    try:
        import trimesh
    except ImportError:
        raise at.error(
            f"reading the mesh {path.name!r} needs the package trimesh: pip install "
            '"featherstep[meshes]"'
        ) from None
    raw = path.read_bytes()
    if kind == "dae" and (b"<!DOCTYPE" in raw or b"<!ENTITY" in raw):
        raise at.error(f"the mesh {path.name!r} has a document type declaration; it is not read")
    try:
        loaded: Any = trimesh.load(io.BytesIO(raw), file_type=kind, force="mesh", process=True)
        vertices = np.array(loaded.vertices, dtype=float).reshape(-1, 3)
        faces = np.array(loaded.faces, dtype=np.int64).reshape(-1, 3)
        closed = bool(loaded.is_watertight)
    except Exception as error:  # damaged files raise whatever the parser stumbles over
        raise at.error(f"the mesh {path.name!r} cannot be read: {error!r:.200}") from None
    if not len(faces) or len(faces) > MOST_TRIANGLES or not np.isfinite(vertices).all():
        raise at.error(
            f"the mesh {path.name!r}: expected 1 to {MOST_TRIANGLES:,} triangles of finite points, "
            f"received {len(faces):,}"
        )
    return Mesh(vertices, faces, closed)
