"""Models as SDF 1.11: hinges, slides, screws, balls, two axes, free bodies; loops, springs, gears.

A link stands where its body does in the neutral position, and its joint at its origin. Joints that
close loops come last, so that the tree is found again. The format has no gap: a loop that is open
in the neutral position cannot be written. Gravity belongs to a world; a model under another than
the Earth's is written in one, and its bodies are then called "model::body".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...algebra.orientation.quaternions import from_matrix
from ...algebra.plucker import Plucker
from ...algebra.se3 import Pose
from ...checks import Array
from ...joints import AngleSequence, Fixed, Free, Helical, Joint, Prismatic, Revolute, Spherical
from ...model import Body, Model, Solid
from ...model.rules import STOP_DAMPING, STOP_STIFFNESS
from ..shared.markup import Node, central_of, gear_of, names_of, note_losses, stops

__all__ = ["write_sdf"]

EARTH = (0.0, 0.0, -9.81)
TYPES = {Revolute: "revolute", Prismatic: "prismatic", Spherical: "ball", Fixed: "fixed",
         Helical: "screw"}  # fmt: skip
#: Ends of a loop are together if they are this close, in m and in parts of a turn.
CLOSED = 1e-12
SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("radii",),
}


def write_sdf(model: Model, report: Any) -> str:
    """Text of a model as SDF; what is lost goes into the report."""
    names = names_of(model, set(), report)
    sdf = around = Node("sdf", {"version": "1.11"})
    if tuple(model.gravity) != EARTH:
        around = sdf.add("world", name="default")
        around.add("gravity", model.gravity)
    root = around.add("model", name=model.name)
    note_losses(model, report, {"springs": "spring", "contacts": "contact", "elements": "element"})
    links = [root]
    for i, body in enumerate(model.bodies, 1):
        links.append(_link(root, body, names[i], names[body.parent]))
    for number, solid in enumerate(model.solids):
        if solid.body == 0 or solid.shape not in SIZES:
            report.lost(f"body {names[solid.body]!r}: how it looks, a {solid.shape}")
        else:
            _visual(links[solid.body], solid, f"visual{number}")
    joints: list[Node | None] = [None]
    for i, body in enumerate(model.bodies, 1):
        joints.append(_joint(root, body, names[i], names[body.parent], report))
    for constraint in model.constraints:
        _gear(constraint, model, joints, report)
    poses = _neutral(model)
    for loop in model.loops:
        here = poses[loop.predecessor].compose(_pose_of(loop.placement_predecessor))
        there = poses[loop.successor].compose(_pose_of(loop.placement_successor))
        if not here.isclose(there, CLOSED):
            report.lost(
                f"loop {loop.name!r}: it is open in the neutral position, where SDF closes it; "
                "build the model so that all positions are zero where it is closed"
            )
            continue
        node = _kind(root, loop.joint, f"loop {loop.name}", f"loop {loop.name!r}", False)
        node.add("parent", names[loop.predecessor])
        node.add("child", names[loop.successor])
        _pose(node, loop.placement_successor)
    return sdf.text()


def _pose_of(X: Plucker) -> Pose:
    return Pose.from_featherstone(X.E, X.r)


def _neutral(model: Model) -> list[Pose]:
    poses = [Pose.identity()]
    for body in model.bodies:
        poses.append(poses[body.parent].compose(_pose_of(body.placement)))
    return poses


def _pose(node: Node, X: Plucker, relative_to: str | None = None) -> None:
    w, x, y, z = from_matrix(X.E.T)
    values = [*X.r, x, y, z, w]
    node.add("pose", values, rotation_format="quat_xyzw", relative_to=relative_to)


def _link(root: Node, body: Body, name: str, parent: str) -> Node:
    link = root.add("link", name=name)
    _pose(link, body.placement, parent if parent != "world" else None)
    mass, centre, matrix = central_of(body)
    inertial = link.add("inertial")
    inertial.add("pose", [*centre, 0.0, 0.0, 0.0])
    inertial.add("mass", mass)
    moments = inertial.add("inertia")
    for a, b in ("xx", "xy", "xz", "yy", "yz", "zz"):
        moments.add(f"i{a}{b}", matrix["xyz".index(a), "xyz".index(b)])
    return link


def _axes(joint: Joint) -> list[Array] | None:
    """Directions of the axes of a joint, in its frame; None if SDF has no such joint."""
    if isinstance(joint, AngleSequence):
        if len(joint.sequence) != 2 or not np.array_equal(joint.axis, [0.0, 0.0, 1.0]):
            return None
        return [np.eye(3)["xyz".index(letter)] for letter in joint.sequence]
    if type(joint) not in TYPES:
        return None
    return [] if isinstance(joint, Fixed | Spherical) else [np.asarray(joint.axis, dtype=float)]


def _kind(root: Node, joint: Joint, name: str, where: str, reverse: bool) -> Node:
    """A <joint> with its axes; a reversed one moves the other way about the same line."""
    axes = _axes(joint)
    if axes is None or (reverse and len(axes) != 1 and not isinstance(joint, Fixed)):
        turned = " reversed" if reverse else ""
        raise ValueError(
            f"{where}: SDF has no{turned} joint like {joint!r}; save the model as TOML, or build "
            "it from hinges, slides, balls and screws"
        )
    node = root.add("joint", name=name, type=TYPES.get(type(joint), "universal"))
    if isinstance(joint, Helical):
        node.add("screw_thread_pitch", 2.0 * math.pi * float(joint.pitch))
    for tag, axis in zip(("axis", "axis2"), axes):
        node.add(tag).add("xyz", -axis + 0.0 if reverse else axis)
    return node


def _joint(root: Node, body: Body, name: str, parent: str, report: Any) -> Node | None:
    if np.any(body.armature):
        report.lost(f"body {body.name!r}: armature of its joint")
    if isinstance(body.joint, Free):
        if body.parent or body.reverse:
            raise ValueError(
                f"body {body.name!r}: in SDF what floats is tied to nothing; hang it on the base"
            )
        if np.any(body.damping) or np.any(body.stiffness):
            report.lost(f"body {body.name!r}: springs and damping of its joint")
        return None
    node = _kind(root, body.joint, f"{name}_joint", f"body {body.name!r}", body.reverse)
    node.add("parent", parent)
    node.add("child", name)
    axes = [child for child in node.children if child.tag.startswith("axis")]
    if not axes and (np.any(body.damping) or np.any(body.stiffness)):
        report.lost(f"body {body.name!r}: springs and damping of its joint")
    range_ = stops(body, (STOP_STIFFNESS, STOP_DAMPING), report) if body.joint.nv else None
    for k, axis in enumerate(axes):
        if body.damping[k] or body.stiffness[k]:
            dynamics = axis.add("dynamics")
            dynamics.add("damping", body.damping[k])
            dynamics.add("spring_stiffness", body.stiffness[k])
            dynamics.add("spring_reference", body.rest[k])
        if range_ is not None:
            limit = axis.add("limit")
            limit.add("lower", range_[0])
            limit.add("upper", range_[1])
    return node


def _gear(constraint: Any, model: Model, joints: list[Node | None], report: Any) -> None:
    gear = gear_of(constraint, model)
    driven, driver = (None, None) if gear is None else (joints[gear[0]], joints[gear[1]])
    axis = None if driven is None else next(c for c in driven.children if c.tag == "axis")
    if gear is None or axis is None or driver is None or axis.first("mimic"):
        report.lost(f"constraint {constraint.name!r}")
        return
    mimic = axis.add("mimic", joint=driver.attributes["name"])
    mimic.add("multiplier", gear[2])
    mimic.add("offset", gear[3])


def _visual(link: Node, solid: Solid, name: str) -> None:
    visual = link.add("visual", name=name)
    _pose(visual, solid.placement)
    shape = visual.add("geometry").add(solid.shape)
    names = SIZES[solid.shape]
    for tag, value in zip(names, [solid.size] if len(names) == 1 else solid.size):
        shape.add(tag, value)
    if solid.colour:
        visual.add("material").add("diffuse", solid.colour)
