"""Outlines of the surfaces that bodies touch with, and arrows of contact forces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import Array
from ..model.surfaces import Ball, Bowl, BoxCorners, Capsule, Disc, HalfSpace, Shape

if TYPE_CHECKING:
    from ..model import Model
    from .skeleton import Skeleton

__all__ = [
    "LONGEST_ARROW",
    "add_outlines",
    "arrows",
    "contact_loads",
    "largest",
    "reaction_loads",
    "with_forces",
]

#: Sides of the polygon that stands for a circle.
SIDES = 24

#: How far a plane is drawn to both sides of its point (m), unless bodies reach farther.
PLANE = 1.0

#: Length of the longest arrow, in parts of the picture.
LONGEST_ARROW = 0.25


def add_outlines(model: Model, point: Callable[[int, Any], int]) -> list[tuple[int, int]]:
    """Pairs of points, made by ``point(body, place)``, that outline all contact surfaces."""
    lines: list[tuple[int, int]] = []
    seen: set[tuple[int, Shape]] = set()
    for contact in model.contacts:
        sides = ((contact.body_a, contact.shape_a), (contact.body_b, contact.shape_b))
        for body, shape in sides:
            if shape is None or (body, shape) in seen:
                continue
            seen.add((body, shape))
            for path in _outline(shape):
                numbers = [point(body, place) for place in path]
                lines += list(pairwise(numbers))
    return lines


def _outline(shape: Shape) -> list[Array]:
    """Paths, in rows of points, that show a shape."""
    if isinstance(shape, HalfSpace):
        n = np.array(shape.normal)
        along = np.cross([0.0, 1.0, 0.0], n)
        if np.linalg.norm(along) < 1e-6:
            along = np.array([1.0, 0.0, 0.0])
        along = along / np.linalg.norm(along)
        return [np.array(shape.point) + PLANE * np.array([[-1.0], [1.0]]) * along]
    if isinstance(shape, Ball | Bowl):
        return [_circle(shape.centre, shape.radius, (0.0, 1.0, 0.0))]
    if isinstance(shape, Disc):
        return [_circle(shape.centre, shape.radius, shape.axis)]
    if isinstance(shape, Capsule):
        return [np.array([shape.start, shape.end])]
    if isinstance(shape, BoxCorners):
        corners = shape.corners()
        return [
            np.array([a, b])
            for i, a in enumerate(corners)
            for b in corners[i + 1 :]
            if np.count_nonzero(a != b) == 1
        ]
    return []


def _circle(centre: Any, radius: float, axis: Any) -> Array:
    a = np.asarray(axis, dtype=float)
    first = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])
    first = first / np.linalg.norm(first)
    second = np.cross(a, first)
    angles = np.linspace(0.0, 2.0 * np.pi, SIDES + 1)[:, None]
    return np.asarray(centre + radius * (np.cos(angles) * first + np.sin(angles) * second))


def contact_loads(model: Model, solution: Any, shown: Any) -> tuple[Array, Array] | None:
    """Points (m, n, 3) of contacts and the forces there (N); None if they are not known."""
    modes = getattr(getattr(solution, "problem", None), "contact_modes", None)
    if model.rigid_contacts and modes is None:
        return None
    from ..runs.contact.observe import contact_forces

    seen = contact_forces(model, solution, shown)
    return seen.point, seen.force


def reaction_loads(
    model: Model, solution: Any, shown: Any, poses: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Places (m, n, 3) of joints, and the forces that they pass on to bodies (N).

    `poses` are those of all bodies at the times of `shown`. Between the times of the solution
    forces are interpolated, in axes of the bodies.
    """
    observed = getattr(solution, "observed", None)
    if observed is None or not hasattr(observed, "reactions"):
        raise ValueError(
            "reactions: expected a solution of as_ivp, as_dae or simulate, which knows the forces "
            "that acted; leave out reactions=True"
        )
    R, p = poses
    found = observed.reactions
    turned = [
        (i, np.eye(3), np.zeros(3), found.bodies[b.name]) for i, b in enumerate(model.bodies, 1)
    ]
    turned += [
        (c.successor, c.placement_successor.E.T, c.placement_successor.r, found.loops[c.name])
        for c in model.loops
    ]
    order = np.argsort(solution.t)
    times = np.asarray(solution.t)[order]
    feet, forces = [], []
    for body, axes, place, wrench in turned:
        force = np.array([np.interp(shown.t, times, row[order]) for row in wrench[3:]])
        forces.append(np.einsum("mij,jk,km->mi", R[:, body], axes, force))
        feet.append(p[:, body] + R[:, body] @ place)
    return np.stack(feet, axis=1), np.stack(forces, axis=1)


def arrows(places: Array, forces: Array, scale: float) -> Array:
    """Feet and tips (m, 2n, 3) of forces (m, n, 3) at places; the scale is metres for a newton."""
    return np.stack([places, places + scale * forces], axis=2).reshape(len(places), -1, 3)


def largest(forces: Array) -> float:
    """Largest of forces (…, 3), in newtons."""
    return float(np.linalg.norm(forces, axis=-1).max(initial=0.0))


def with_forces(
    model: Model, solution: Any, shown: Any, bones: Skeleton, places: Array
) -> tuple[Skeleton, Array, float]:
    """Skeleton and places of its points (m, n, 3) with arrows of contact forces; the largest (N).

    Zero where there are none, or they are not known.
    """
    loads = contact_loads(model, solution, shown) if model.contacts else None
    if loads is None or not loads[1].any():
        return bones, places, 0.0
    most, size = largest(loads[1]), float(np.max(np.ptp(places.reshape(-1, 3), axis=0))) or 1.0
    drawn = arrows(*loads, LONGEST_ARROW * size / most)
    first, count = places.shape[1], drawn.shape[1] // 2
    pairs = tuple((first + 2 * k, first + 2 * k + 1) for k in range(count))
    return replace(bones, forces=pairs), np.concatenate([places, drawn], axis=1), most
