"""Runs of a mechanism as data of the page in space.

Poses of all bodies are numbers of four bytes about the middle of the scene: a ten-millionth of its
size. Everything else is what does not move in the frames of bodies.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.orientation.quaternions import from_matrix
from ..checks import Array, real_array
from ..runs.simulate import poses
from .appearance import Appearance, Part, appearance, colour_of
from .reduced_mesh import reduced
from .skeleton import skeleton, view_of
from .surfaces import LONGEST_ARROW, arrows, contact_loads, largest, reaction_loads

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["named_runs", "scene"]

CONTACT, REACTION = (0.8, 0.13, 0.2, 1.0), (0.45, 0.2, 0.65, 1.0)
#: Triangles of all meshes of a page together; larger ones are made coarser.
MOST_TRIANGLES = 80_000
#: A scene that is so many times as large as the mechanism opens with the camera at a body.
FAR_TRAVEL = 3.0
#: By how much arrows of forces can be drawn longer.
ENLARGED = (1, 3, 10, 30, 100)


def named_runs(solution: Any) -> dict[str, Any]:
    """Runs to show, by name: one solution, several in a list, or a mapping from names."""
    if isinstance(solution, Mapping):
        found = {str(name): run for name, run in solution.items()}
    elif isinstance(solution, list | tuple) and not hasattr(solution, "y"):
        found = {}
        for number, run in enumerate(solution, 1):
            method = str(getattr(run, "method", "") or f"run {number}")
            name = method if method not in found else f"{method} ({number})"
            found[name] = run
    else:
        return {str(getattr(solution, "method", "") or "run"): solution}
    if not found:
        raise ValueError("solution: expected at least one run to show, received none")
    return found


def scene(
    model: Model,
    runs: Mapping[str, tuple[Any, Any]],
    *,
    fps: float,
    view: str,
    trace: tuple[str | int, Any] | None = None,
    reactions: bool = False,
) -> dict[str, Any]:
    """Everything that the page is made from.

    Parameters
    ----------
    model
        Of all runs.
    runs
        For each name the solution, and its frames at even times.
    fps, view, trace, reactions
        As in :func:`multibody.animate.html`.
    """
    bones = skeleton(model)
    moved = {name: poses(model, shown) for name, (_, shown) in runs.items()}
    starts = {float(shown.t[0]) for _, shown in runs.values()}
    if len(starts) > 1:
        raise ValueError(f"expected runs that begin at one time, received {sorted(starts)}")
    first_R, first_p = next(iter(moved.values()))
    size = _extent(_places(bones.points, first_R[:1], first_p[:1]))[1] or 1.0
    look = appearance(model, bones, size)
    corners = [(part.body, point) for part in look.parts for point in _corners(part)]
    corners += list(bones.points)
    size = _extent(_places(corners, first_R[:1], first_p[:1]))[1] or 1.0
    everything = np.concatenate([_places(corners, R, p).reshape(-1, 3) for R, p in moved.values()])
    if not np.isfinite(everything).all():
        raise ValueError("solution: expected finite positions, received NaN or infinity")
    centre, radius = _extent(everything)
    up = _up(model)
    far = radius > FAR_TRAVEL * size
    data = _runs(model, runs, moved, centre, trace)
    loads, kinds = _forces(model, runs, moved, reactions)
    longest = max((largest(forces) for _, forces in loads), default=0.0) or 1.0
    for run, (places, forces) in zip(data, loads):  # no loads: no arrows
        drawn = arrows(places, forces, LONGEST_ARROW * size / longest)
        run["arrows"] = _packed(drawn - centre)
    return {
        "name": model.name,
        "fps": float(fps),
        "view": view_of(model, view),
        "up": up.tolist(),
        "bodies": ["base", *(body.name for body in model.bodies)],
        "middles": [_middle(model, i) for i in range(model.n_bodies + 1)],
        "follow": _heaviest(model) if far else 0,
        "centre": [0.0, 0.0, 0.0],
        "radius": radius or 1.0,
        "half": (np.ptp(everything, axis=0) / 2).tolist(),
        "size": size,
        "cell": 10.0 ** np.floor(np.log10(size)),
        **_shapes(look),
        "sticks": [
            [i, a.tolist(), j, b.tolist(), list(colour_of(body))]
            for (a_, b_), body in zip(bones.links, bones.bodies)
            for (i, a), (j, b) in [(bones.points[a_], bones.points[b_])]
        ],
        "planes": _planes(model, look, up, everything, centre),
        "ground": True if look.planes or model.gravity.any() else None,
        "arrows": kinds,
        "longest": longest,
        "enlarged": _enlarged([forces for _, forces in loads], longest) if loads else 1,
        "runs": data,
    }


def _places(points: Sequence[tuple[int, Any]], R: Array, p: Array) -> Array:
    body = [i for i, _ in points]
    local = np.array([place for _, place in points], dtype=float)
    return np.asarray(np.einsum("mnij,nj->mni", R[:, body], local) + p[:, body])


def _extent(places: Array) -> tuple[Array, float]:
    """Middle, and radius of a sphere about it that holds all points."""
    points = places.reshape(-1, 3)
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    return centre, float(np.sqrt(np.max(np.sum((points - centre) ** 2, axis=1))))


def _corners(part: Part) -> Array:
    """Points that a solid does not reach beyond, in the coordinates of its body."""
    if part.source is not None and part.source.vertices is not None:
        low, high = part.source.vertices.min(axis=0), part.source.vertices.max(axis=0)
    else:
        size = part.size
        half = {
            "sphere": lambda: [size[0]] * 3,
            "box": lambda: [x / 2 for x in size],
            "ellipsoid": lambda: list(size),
            "cylinder": lambda: [size[0], size[0], size[1] / 2],
            "capsule": lambda: [size[0], size[0], size[1] / 2 + size[0]],
            "ring": lambda: [size[0] + size[1]] * 2 + [size[1]],
        }[part.shape]()
        high = np.array(half)
        low = -high
    signs = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T
    return np.asarray((low + signs * (high - low)) @ part.R.T + part.p)


def _up(model: Model) -> Array:
    g = np.asarray(model.gravity, dtype=float)
    length = float(np.linalg.norm(g))
    return np.array([0.0, 0.0, 1.0]) if length == 0.0 else -g / length + 0.0


def _middle(model: Model, body: int) -> list[float]:
    """What the camera looks at when it follows a body."""
    inertia = model.bodies[body - 1].inertia if body else None
    centred = inertia is not None and inertia.mass > 0.0
    return [float(x) for x in inertia.centre] if inertia and centred else [0.0, 0.0, 0.0]


def _heaviest(model: Model) -> int:
    return 1 + int(np.argmax([body.inertia.mass for body in model.bodies]))


def _shapes(look: Appearance) -> dict[str, Any]:
    solids, meshes = [], list[dict[str, str]]()
    faces = [len(part.source.faces) for part in look.parts if _is_mesh(part)]  # type: ignore[union-attr,arg-type]
    share = min(1.0, MOST_TRIANGLES / max(1, sum(faces)))
    for part in look.parts:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = part.R, part.p
        entry = {
            "body": part.body,
            "shape": part.shape,
            "size": list(part.size),
            "at": pose.T.ravel().tolist(),
            "colour": list(part.colour),
        }
        if _is_mesh(part):
            assert part.source is not None
            vertices, triangles = part.source.vertices, part.source.faces
            assert vertices is not None
            assert triangles is not None
            if share < 1.0:
                wanted = int(share * len(triangles))
                vertices, triangles = reduced(vertices, triangles, wanted)
            entry["mesh"] = len(meshes)
            meshes.append({"vertices": _packed(vertices), "faces": _packed(triangles, "<u4")})
        solids.append(entry)
    bars = [
        {
            "kind": kind,
            "a": a,
            "pa": pa.tolist(),
            "b": b,
            "pb": pb.tolist(),
            "radius": radius,
            "colour": list(colour),
        }
        for kind, (a, pa), (b, pb), radius, colour in look.bars
    ]
    return {"solids": solids, "meshes": meshes, "bars": bars}


def _is_mesh(part: Part) -> bool:
    return part.source is not None and part.source.faces is not None


def _planes(
    model: Model, look: Appearance, up: Array, everything: Array, centre: Array
) -> list[dict[str, Any]]:
    """Planes of contacts; else, where there is gravity, a ground under everything."""
    planes = list(look.planes)
    if not planes and model.gravity.any():
        planes = [(up, up * float((everything @ up).min()))]
    return [
        {"normal": list(map(float, normal)), "point": list(map(float, point - centre))}
        for normal, point in planes
    ]


def _runs(
    model: Model,
    runs: Mapping[str, tuple[Any, Any]],
    moved: Mapping[str, tuple[Array, Array]],
    centre: Array,
    trace: tuple[str | int, Any] | None,
) -> list[dict[str, Any]]:
    """Runs as data, without forces."""
    found = []
    for name, (_, shown) in runs.items():
        R, p = moved[name]
        rows = np.concatenate([p - centre, from_matrix(R)], axis=2)
        trail = None
        if trace is not None:
            body, point = trace
            i = model.number(body)
            place = real_array(point, "trace", (3,))
            trail = _packed(p[:, i] + R[:, i] @ place - centre)
        times = [round(float(t), 9) for t in shown.t]
        moving = {"name": name, "t": times, "poses": _packed(rows), "trail": trail}
        found.append({**moving, "arrows": None})
    return found


def _forces(
    model: Model,
    runs: Mapping[str, tuple[Any, Any]],
    moved: Mapping[str, tuple[Array, Array]],
    reactions: bool,
) -> tuple[list[tuple[Array, Array]], list[dict[str, Any]]]:
    """Places and forces of all runs, and of what they are; none where one of the runs has none."""
    found = []
    for name, (solution, shown) in runs.items():
        loads = []
        touching = contact_loads(model, solution, shown) if model.contacts else None
        if touching is not None:
            loads.append((*touching, "contact", CONTACT))
        if reactions:
            acting = reaction_loads(model, solution, shown, moved[name])
            loads.append((*acting, "joint", REACTION))
        found.append(loads)
    if not all(found) or len({len(loads) for loads in found}) > 1:
        return [], []
    kinds = [
        {"what": what, "colour": list(colour)}
        for places, _, what, colour in found[0]
        for _ in range(places.shape[1])
    ]
    joined = [
        (
            np.concatenate([places for places, *_ in loads], axis=1),
            np.concatenate([forces for _, forces, *_ in loads], axis=1),
        )
        for loads in found
    ]
    return (joined, kinds) if any(forces.any() for _, forces in joined) else ([], [])


def _enlarged(forces: Sequence[Array], longest: float) -> int:
    """By how much arrows are drawn longer at first, so that a short peak does not hide the rest."""
    lengths = np.concatenate([np.linalg.norm(force, axis=2).ravel() for force in forces])
    usual = float(np.quantile(lengths[lengths > 0], 0.75))
    return next((k for k in ENLARGED if k * usual >= longest / 4), ENLARGED[-1])


def _packed(array: Array, kind: str = "<f4") -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()
