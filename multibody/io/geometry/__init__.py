"""Shapes of files: what they look like, what mass and moments they have, and meshes in files.

- `shapes`: volume and moments of simple shapes and of meshes, sums of them;
- `meshes`: files of meshes, found only where the caller allows it, read by trimesh;
- `elements`: the <geometry> of URDF and SDF.
"""

from .elements import FileShape, add_solids, sdf_shape, urdf_shape
from .meshes import Mesh, MeshFiles
from .shapes import MassPart, combined, mesh_part, simple_part

__all__ = [
    "FileShape",
    "MassPart",
    "Mesh",
    "MeshFiles",
    "add_solids",
    "combined",
    "mesh_part",
    "sdf_shape",
    "simple_part",
    "urdf_shape",
]
