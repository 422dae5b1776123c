"""Models as URDF: trees of hinges, slides, planes and free bodies, with damping and mimic joints.

The frame of a link is its body's, and a joint stands where it does in the model, so nothing has to
be moved. Angles "rpy" are found one after the other from what the ones before have left over, which
loses no digits near their singularity.
"""

from __future__ import annotations

import numpy as np

from ...algebra.plucker import Plucker
from ...checks import Array
from ...joints import Fixed, Free, Planar, Prismatic, Revolute
from ...model import Body, Model, Solid
from ...model.rules import STOP_DAMPING, STOP_STIFFNESS
from ..shared.markup import Node, central_of, gear_of, names_of, note_losses, signed_axis, stops
from ..shared.report import Report

__all__ = ["write_urdf"]

EARTH = (0.0, 0.0, -9.81)
TYPES = {Revolute: "continuous", Prismatic: "prismatic", Fixed: "fixed", Planar: "planar",
         Free: "floating"}  # fmt: skip
#: For a slide without stops: the format wants limits.
FAR = 1e9


def write_urdf(model: Model, report: Report) -> str:
    """Text of a model as URDF; what is lost goes into the report."""
    names = names_of(model, set(), report)
    if tuple(model.gravity) != EARTH:
        report.lost(f"gravity {model.gravity.tolist()}: a URDF has none, readers take {EARTH}")
    lost = {"loops": "loop", "springs": "spring", "contacts": "contact", "elements": "element"}
    note_losses(model, report, lost)
    robot = Node("robot", {"name": model.name})
    robot.add("link", name=names[0])
    joints = []
    for i, body in enumerate(model.bodies, 1):
        link = robot.add("link", name=names[i])
        _inertia(link, body)
        joints.append(_joint(robot, body, names[i], names[body.parent], report))
    links = [node for node in robot.children if node.tag == "link"]
    for solid in model.solids:
        _visual(links[solid.body], solid, report)
    for constraint in model.constraints:
        gear = gear_of(constraint, model)
        if gear is None or joints[gear[0] - 1].attributes.get("mimicking"):
            report.lost(f"constraint {constraint.name!r}")
            continue
        driven, driver, ratio, offset = gear
        joint, leader = joints[driven - 1], joints[driver - 1]
        joint.attributes["mimicking"] = "once"
        joint.add("mimic", joint=leader.attributes["name"], multiplier=ratio, offset=offset)
    for joint in joints:
        joint.attributes.pop("mimicking", None)
    return robot.text()


def _joint(robot: Node, body: Body, name: str, parent: str, report: Report) -> Node:
    kind = TYPES.get(type(body.joint))
    if kind is None or (body.reverse and kind in ("planar", "floating")):
        turned = " reversed" if body.reverse else ""
        raise ValueError(
            f"body {body.name!r}: URDF has no{turned} joint like {body.joint!r}; save the model as "
            "TOML, or build it from hinges and slides"
        )
    range_ = stops(body, (STOP_STIFFNESS, STOP_DAMPING), report) if body.joint.nv else None
    if kind == "continuous" and range_ is not None:
        kind = "revolute"
    joint = robot.add("joint", name=f"{name}_joint", type=kind)
    joint.add("parent", link=parent)
    joint.add("child", link=name)
    _origin(joint, body.placement)
    if kind in ("revolute", "continuous", "prismatic", "planar"):
        joint.add("axis", xyz=signed_axis(body))
    if kind in ("revolute", "prismatic"):
        lower, upper = range_ or (-FAR, FAR)
        joint.add("limit", lower=lower, upper=upper, effort=FAR, velocity=FAR)
    for key in ("armature", "stiffness"):
        if np.any(getattr(body, key)):
            report.lost(f"body {body.name!r}: {key} of its joint")
    if np.any(body.damping):
        if len(set(body.damping.tolist())) > 1:
            report.lost(f"body {body.name!r}: damping that is not the same in all directions")
        else:
            joint.add("dynamics", damping=body.damping[0])
    return joint


def _inertia(link: Node, body: Body) -> None:
    inertia = body.inertia
    if not np.any(inertia.array):
        return
    inertial = link.add("inertial")
    mass, centre, matrix = central_of(body)
    inertial.add("origin", xyz=centre)
    inertial.add("mass", value=mass)
    moments = {f"i{a}{b}": matrix["xyz".index(a), "xyz".index(b)] for a, b in
               ("xx", "xy", "xz", "yy", "yz", "zz")}  # fmt: skip
    inertial.add("inertia", **moments)


def _origin(node: Node, X: Plucker) -> None:
    angles = roll_pitch_yaw_of(X.E.T)
    if np.any(X.r) or np.any(angles):
        node.add("origin", xyz=X.r, rpy=angles)


def roll_pitch_yaw_of(R: Array) -> Array:
    """Angles with R = Rz(yaw) Ry(pitch) Rx(roll).

    Examples
    --------
    >>> from multibody.io.shared.links import roll_pitch_yaw
    >>> R = roll_pitch_yaw(0.3, np.pi / 2 - 1e-9, 0.7)
    >>> bool(np.abs(roll_pitch_yaw(*roll_pitch_yaw_of(R)) - R).max() < 1e-15)
    True
    """
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    first, second = c * R[0] + s * R[1], c * R[1] - s * R[0]  # rows of Rz(−yaw) R
    return np.array([np.arctan2(-second[2], second[1]), np.arctan2(-R[2, 0], first[0]), yaw]) + 0.0


def _visual(link: Node, solid: Solid, report: Report) -> None:
    shape, size = solid.shape, solid.size
    sizes = {
        "box": lambda: {"size": size},
        "sphere": lambda: {"radius": size[0]},
        "cylinder": lambda: {"radius": size[0], "length": size[1]},
        "capsule": lambda: {"radius": size[0], "length": size[1]},
    }
    if shape not in sizes:
        report.lost(f"link {link.attributes['name']!r}: how it looks, a {shape}")
        return
    visual = link.add("visual")
    _origin(visual, solid.placement)
    visual.add("geometry").add(shape, **sizes[shape]())
    if solid.colour:
        material = visual.add("material", name="")
        material.add("color", rgba=solid.colour)
