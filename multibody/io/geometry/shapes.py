"""Volumes and moments of shapes.

A capsule is a cylinder with two half balls: about its centre, across its axis, these have
m (2/5 r² + h² + 3/4 h r) together, for a cylinder of half length h. A mesh is cut into tetrahedra
from a point to its triangles: with signed volumes their sum is exact for a closed surface, whatever
the point.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...checks import Array

__all__ = ["MassPart", "combined", "mesh_part", "simple_part"]


class MassPart(NamedTuple):
    """Mass, centre of mass, and moments about it, in the axes of what it belongs to."""

    mass: float
    centre: Array
    central: Array

    def placed(self, R: Array, p: Array) -> MassPart:
        """The part in an outer frame, in which its own stands at p, turned by R."""
        return MassPart(self.mass, R @ self.centre + p, R @ self.central @ R.T)

    def scaled(self, factor: float) -> MassPart:
        """The part with another density."""
        return MassPart(factor * self.mass, self.centre, factor * self.central)


def combined(parts: Iterable[MassPart]) -> MassPart:
    """Several parts as one body.

    Examples
    --------
    >>> ball = simple_part("sphere", (0.5,))
    >>> pair = combined([ball.placed(np.eye(3), np.array([x, 0.0, 0.0])) for x in (-2.0, 2.0)])
    >>> bool(np.isclose(pair.central[1, 1], 2 * (ball.central[1, 1] + 4 * ball.mass)))
    True
    """
    found = [part for part in parts if part.mass != 0.0]
    mass = float(sum(part.mass for part in found))
    if mass == 0.0:
        return MassPart(0.0, np.zeros(3), np.zeros((3, 3)))
    centre = sum((part.mass * part.centre for part in found), np.zeros(3)) / mass
    central = np.zeros((3, 3))
    for part in found:
        d = part.centre - centre
        central += part.central + part.mass * ((d @ d) * np.eye(3) - np.outer(d, d))
    return MassPart(mass, centre, central)


def simple_part(shape: str, size: tuple[float, ...]) -> MassPart:
    """A shape of density one about its middle; sizes as in `multibody.model.solids.SIZES`."""
    if shape == "sphere":
        (r,) = size
        volume, moments = 4 / 3 * np.pi * r**3, np.full(3, 0.4 * r * r)
    elif shape in ("box", "ellipsoid"):
        half = np.array(size) / (2.0 if shape == "box" else 1.0)
        squares = half**2
        factor, share = (1 / 3, 8.0) if shape == "box" else (1 / 5, 4 / 3 * np.pi)
        volume, moments = share * float(np.prod(half)), factor * (squares.sum() - squares)
    else:
        r, h = size[0], size[1] / 2
        tube, caps = 2.0 * np.pi * r * r * h, 4 / 3 * np.pi * r**3 if shape == "capsule" else 0.0
        part = tube / (tube + caps) if tube + caps else 0.0  # tiny sizes have cubes of zero
        ends = 0.4 * r * r + h * h + 0.75 * h * r
        across = part * (3 * r * r + 4 * h * h) / 12 + (1 - part) * ends
        along = part * r * r / 2 + (1 - part) * 0.4 * r * r
        volume, moments = tube + caps, np.array([across, across, along])
    return MassPart(float(volume), np.zeros(3), volume * np.diag(moments))


def mesh_part(vertices: Array, faces: Array, how: str = "exact") -> MassPart:
    """A mesh of density one.

    Parameters
    ----------
    vertices, faces
        Points in rows, triangles.
    how
        "exact": the volume that the surface encloses. "convex": its convex hull. "unsigned":
        volumes of all tetrahedra are counted as positive, from the middle of the surface for the
        centre, then from there for mass and moments, as MuJoCo does; this is right for shapes that
        are seen whole from there and too much for others.

    Examples
    --------
    >>> v = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    >>> f = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> mesh_part(v, f).mass * 6, mesh_part(v, f).centre
    (1.0, array([0.25, 0.25, 0.25]))
    """
    if how == "convex":
        from scipy.spatial import ConvexHull

        hull = ConvexHull(vertices)
        corners = vertices[hull.simplices]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        inwards = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0
        corners[inwards] = corners[inwards][:, [0, 2, 1]]
    else:
        corners = vertices[faces]
    areas = np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    if not areas.sum() > 0.0:
        return MassPart(0.0, np.zeros(3), np.zeros((3, 3)))
    apex = areas @ corners.mean(axis=1) / areas.sum()
    corners = corners - apex
    volumes = np.linalg.det(corners) / 6.0
    if how == "unsigned":
        volumes = np.abs(volumes)
        if volumes.any():
            shift = volumes @ corners.sum(axis=1) / (4.0 * volumes.sum())
            apex, corners = apex + shift, corners - shift
            volumes = np.abs(np.linalg.det(corners)) / 6.0
    mass = float(volumes.sum())
    if mass == 0.0:
        return MassPart(0.0, np.zeros(3), np.zeros((3, 3)))
    sums = corners.sum(axis=1)
    centre = np.zeros(3) if how == "unsigned" else volumes @ sums / (4.0 * mass)
    # ∫ x xᵀ over a tetrahedron with one corner at the origin: V/20 (Σ c cᵀ + s sᵀ).
    spread = np.einsum("k,kai,kaj->ij", volumes, corners, corners)
    spread += np.einsum("k,ki,kj->ij", volumes, sums, sums)
    spread = spread / 20.0 - mass * np.outer(centre, centre)
    return MassPart(mass, apex + centre, np.trace(spread) * np.eye(3) - spread)
