"""Models as MJCF: hinges, slides, balls, free bodies; springs, gears and loops of points.

Bodies have their joint at their origin; those without mass, which MuJoCo refuses, leave it to their
only child. A loop joint that is a ball is a ``connect`` between
two sites, a hinge two of them along its axis, a weld a ``weld``; springs between points are spatial
tendons. MuJoCo's equalities are springs where ours are exact.
"""

from __future__ import annotations

import numpy as np

from ...algebra.orientation.quaternions import from_matrix
from ...algebra.plucker import Plucker
from ...algebra.se3 import Pose
from ...checks import Array
from ...joints import Fixed, Free, Prismatic, Revolute, Spherical
from ...model import Body, Loop, Model, PointSpring, Solid
from ...model.rules import STOP_DAMPING, STOP_STIFFNESS
from ..shared.markup import (
    Node,
    gear_of,
    names_of,
    note_losses,
    numbers,
    signed_axis,
    stops,
)
from ..shared.report import Report
from .drives import write_elements
from .inertias import inertial_of, turning_of

__all__ = ["write_mjcf"]

TYPES = {Revolute: "hinge", Prismatic: "slide", Spherical: "ball", Free: "free", Fixed: ""}
SCALARS = ("armature", "damping", "stiffness")


def write_mjcf(model: Model, report: Report) -> str:
    """Text of a model as MJCF; what is lost goes into the report."""
    names = names_of(model, {"worldbody"}, report)
    root = Node("mujoco", {"model": model.name})
    root.add("compiler", angle="radian", inertiafromgeom="false", autolimits="true")
    root.add("option", gravity=model.gravity)
    assets = root.add("asset")
    world = root.add("worldbody")
    nodes, joints, turning = [world], list(names), turning_of(model)
    between, waiting = _between(model), dict[int, list[tuple[int, Pose]]]()
    for i, body in enumerate(model.bodies, 1):
        own = waiting.pop(body.parent, [])
        if i in between:  # its joint goes to its only child; the frame of that is not known yet
            waiting[i] = [*((k, at) for k, at in _moved(own, body)), (i, Pose.identity())]
            nodes.append(nodes[body.parent])
            end = between[i]
            while end in between:
                end = between[end]
            joints[i] = _joint_name(names[i], names[end], joints)
            continue
        moved, on = _moved(own, body), nodes[body.parent]
        nodes.append(_body(on, body, names[i], moved, model, joints, turning[i], report))
    for number, solid in enumerate(model.solids):
        _geom(nodes[solid.body], solid, f"mesh{number}", assets, names[solid.body], report)
    note_losses(model, report, {"contacts": "contact"})
    equalities, tendons = root.add("equality"), root.add("tendon")
    write_elements(model, root, tendons, nodes, joints, report)
    for loop in model.loops:
        _loop(equalities, nodes, loop, report)
    for spring in model.springs:
        _spring(tendons, nodes, spring)
    for constraint in model.constraints:
        gear = gear_of(constraint, model)
        if gear is None:
            report.lost(f"constraint {constraint.name!r}")
            continue
        driven, driver, ratio, offset = gear
        equalities.add(
            "joint", name=constraint.name, joint1=joints[driven], joint2=joints[driver],
            polycoef=(offset, ratio, 0.0, 0.0, 0.0),
        )  # fmt: skip
    root.children = [node for node in root.children if node.children or node.attributes]
    return root.text()


def _pose(X: Plucker) -> dict[str, Array]:
    """Attributes of a frame that X leads to."""
    found = {}
    if np.any(X.r):
        found["pos"] = X.r
    if not np.array_equal(X.E, np.eye(3)):
        found["quat"] = from_matrix(X.E.T)
    return found


def _between(model: Model) -> dict[int, int]:
    """Bodies that are only there for their joint, which their one child may have as well."""
    children: dict[int, list[int]] = {}
    for i, body in enumerate(model.bodies, 1):
        children.setdefault(body.parent, []).append(i)
    used = {solid.body for solid in model.solids}
    used |= {end for loop in model.loops for end in (loop.predecessor, loop.successor)}
    used |= {end for spring in model.springs for end in (spring.body_a, spring.body_b)}
    named = {getattr(element.element, "body", None) for element in model.elements}
    found = {}
    for i, body in enumerate(model.bodies, 1):
        below = children.get(i, [])
        alone = TYPES.get(type(model.bodies[below[0] - 1].joint)) if len(below) == 1 else None
        hinge = isinstance(body.joint, Revolute | Prismatic) and alone not in (None, "", "free")
        if hinge and not np.any(body.inertia.array) and i not in used and body.name not in named:
            found[i] = below[0]
    return found


def _moved(waiting: list[tuple[int, Pose]], body: Body) -> list[tuple[int, Pose]]:
    """Joints before that of a body, seen from its frame."""
    back = Pose.from_featherstone(body.placement.E, body.placement.r).inverse()
    return [(k, back.compose(at)) for k, at in waiting]


def _joint_name(name: str, child: str, taken: list[str]) -> str:
    """A joint that was read from a file gets the name that it had there."""
    own = name.removeprefix(f"{child}(").removesuffix(")")
    return own if name == f"{child}({own})" and own not in taken else name


def _body(
    parent: Node, body: Body, name: str, before: list[tuple[int, Pose]], model: Model,
    joints: list[str], turning: Array, report: Report,
) -> Node:  # fmt: skip
    kind = TYPES.get(type(body.joint))
    if kind is None or (body.reverse and kind in ("ball", "free")):
        turned = " reversed" if body.reverse else ""
        raise ValueError(
            f"body {body.name!r}: MJCF has no{turned} joint like {body.joint!r}; save the model as "
            "TOML, or build it from hinges, slides, balls and free bodies"
        )
    place = Pose.from_featherstone(body.placement.E, body.placement.r)
    for k, at in before[:1]:  # from the frame of the first body of the row to this one
        first = model.bodies[k - 1].placement
        place = Pose.from_featherstone(first.E, first.r).compose(at.inverse())
    node = parent.add("body", name=name, **_pose(place.to_plucker()))
    for k, at in before:
        own = model.bodies[k - 1]
        joint = node.add("joint", name=joints[k], type=TYPES[type(own.joint)], pos=at.p)
        joint.attributes["axis"] = numbers(at.R @ signed_axis(own))
        _forces(joint, own, TYPES[type(own.joint)], report)
    if kind == "free":
        if parent.tag != "worldbody" or _pose(body.placement):
            raise ValueError(
                f"body {body.name!r}: in MJCF a free body stands in the world itself; place its "
                "joint at the base's origin"
            )
        node.add("freejoint", name=name)
        _lose(body, SCALARS, report)
    elif kind:
        joint = node.add("joint", name=name, type=kind)
        if kind != "ball":
            joint.attributes["axis"] = numbers(signed_axis(body))
        _forces(joint, body, kind, report)
    if (inertial := inertial_of(body, turning, report)) is not None:
        node.add("inertial", **inertial)
    return node


def _lose(body: Body, keys: tuple[str, ...], report: Report) -> None:
    for key in keys:
        if np.any(getattr(body, key)):
            report.lost(f"body {body.name!r}: {key} of its joint")


def _forces(joint: Node, body: Body, kind: str, report: Report) -> None:
    if kind == "ball":
        _lose(body, ("armature", "stiffness"), report)
        if len(set(body.damping.tolist())) > 1:
            report.lost(f"body {body.name!r}: damping that is not the same in all directions")
        elif body.damping[0]:
            joint.attributes["damping"] = repr(float(body.damping[0]))
    else:
        for key in SCALARS:
            if value := float(getattr(body, key)[0]):
                joint.attributes[key] = repr(value)
        if body.stiffness[0] and body.rest[0]:
            joint.attributes["springref"] = repr(float(body.rest[0]))
    range_ = stops(body, (STOP_STIFFNESS, STOP_DAMPING), report)
    if range_ is not None:
        joint.attributes["range"] = " ".join(map(repr, range_))


def _site(node: Node, name: str, place: Array, quat: Array | None = None) -> str:
    node.add("site", name=name, pos=place, quat=quat)
    return name


def _loop(equalities: Node, nodes: list[Node], loop: Loop, report: Report) -> None:
    kind, ends = type(loop.joint), (loop.predecessor, loop.successor)
    frames = (loop.placement_predecessor, loop.placement_successor)
    sides = list(zip(("a", "b"), ends, frames))
    if kind is Fixed:
        first, second = (
            _site(nodes[body], f"loop {loop.name} {side}", X.r, from_matrix(X.E.T))
            for side, body, X in sides
        )
        equalities.add("weld", name=loop.name, site1=first, site2=second)
        return
    if kind not in (Spherical, Revolute):
        report.lost(f"loop {loop.name!r}: MJCF has no joint like {loop.joint!r} for it")
        return
    points = [np.zeros(3)]
    if kind is Revolute:  # two points of the axis, a metre apart
        points.append(np.asarray(loop.joint.axis, dtype=float))
    for number, point in enumerate(points):
        name = loop.name if number == 0 else f"{loop.name} (axis)"
        first, second = (
            _site(nodes[body], f"loop {name} {side}", X.r + X.E.T @ point)
            for side, body, X in sides
        )
        equalities.add("connect", name=name, site1=first, site2=second)


def _spring(tendons: Node, nodes: list[Node], spring: PointSpring) -> None:
    ends = (("a", spring.body_a, spring.point_a), ("b", spring.body_b, spring.point_b))
    tendon = tendons.add(
        "spatial", name=spring.name, stiffness=spring.stiffness, damping=spring.damping,
        springlength=spring.rest,
    )  # fmt: skip
    for side, body, point in ends:
        tendon.add("site", site=_site(nodes[body], f"spring {spring.name} {side}", point))


def _geom(node: Node, solid: Solid, name: str, assets: Node, body: str, report: Report) -> None:
    size = solid.size
    sizes = {
        "box": lambda: [x / 2 for x in size],
        "sphere": lambda: size,
        "ellipsoid": lambda: size,
        "cylinder": lambda: (size[0], size[1] / 2),
        "capsule": lambda: (size[0], size[1] / 2),
    }
    given = {"contype": "0", "conaffinity": "0", **_pose(solid.placement)}
    if solid.colour:
        given["rgba"] = np.array(solid.colour)
    if solid.shape == "mesh":
        assert solid.faces is not None
        faces = " ".join(map(str, solid.faces.ravel().tolist()))
        assets.add("mesh", name=name, vertex=solid.vertices, face=faces)
        node.add("geom", type="mesh", mesh=name, **given)
    elif solid.shape in sizes:
        node.add("geom", type=solid.shape, size=sizes[solid.shape](), **given)
    else:
        report.lost(f"body {body!r}: how it looks, a {solid.shape}")
