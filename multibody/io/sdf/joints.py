"""Joints of SDF: their freedoms, frames and forces, and the gears between them.

A joint turns or shifts its child along axes that are given in the joint's own frame, or in one
that `expressed_in` names; up to SDF 1.4, and with `use_parent_model_frame`, in the model's. At the
poses of the file all joints are in their neutral positions, so what they connect is closed there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...algebra.se3 import Pose
from ...checks import Array
from ...joints import AngleSequence, Fixed, Helical, Joint, Prismatic, Revolute, Spherical
from ...model import Constraint
from ...model.gearing import gear_constraint
from ..shared.links import closes_ring
from ..shared.report import Report
from ..shared.wanted import Wanted
from ..shared.xml import Element
from .frames import Frames, Scope, joint_key, truth

__all__ = ["TYPES", "Edge", "FileJoint", "add_gears", "edges_of"]

TURNING = ("revolute", "continuous")
TWO_AXES = ("universal", "revolute2")
TYPES = (*TURNING, "prismatic", "screw", "fixed", "ball", *TWO_AXES, "gearbox")
#: Limits from here on stand for none.
UNLIMITED = 1e16
#: Axes are at right angles if their cosine is below this.
SQUARE = 1e-9
KNOWN = {
    "joint": {
        *("parent", "child", "pose", "axis", "axis2", "thread_pitch", "screw_thread_pitch"),
        *("gearbox_ratio", "gearbox_reference_body"),
    },
    "axis": {"xyz", "use_parent_model_frame", "dynamics", "limit", "mimic"},
    "dynamics": {"damping", "friction", "spring_stiffness", "spring_reference"},
    "limit": {"lower", "upper"},
}


@dataclass
class FileJoint:
    """A joint of the file, its scope, full name, and the links that it connects."""

    element: Element
    scope: Scope
    name: str
    parent: str
    child: str

    @property
    def kind(self) -> str:
        """One of `TYPES`."""
        kind = self.element.text("type")
        if kind not in TYPES:
            raise self.element.error(
                f"type: expected one of {', '.join(TYPES)}, received {kind[:60]!r}"
            )
        return kind


@dataclass
class Edge:
    """A joint of the model between two bodies, in the tree or closing a loop.

    `direction` is its axis in the world, for gears; `anchored` edges are wanted in the tree.
    """

    name: str
    parent: str
    child: str
    joint: Joint
    X_P: Pose
    X_S: Pose
    source: FileJoint | None = None
    forces: dict[str, Any] = field(default_factory=dict)
    direction: Array | None = None
    anchored: bool = False
    tree: bool = True
    friction: float = 0.0


def edges_of(made: FileJoint, frames: Frames, wanted: Wanted) -> list[Edge]:
    """The joint as one edge, or as two with a body without mass between them."""
    element, kind = made.element, made.kind
    _note_unknown(element, wanted.report)
    axes = [axis for tag in ("axis", "axis2") if (axis := element.first(tag)) is not None]
    used = {"fixed": 0, "ball": 0}.get(kind, 2 if kind in TWO_AXES else 1)
    for axis in axes[used:]:
        wanted.report.ignored(axis, f"<{axis.tag}> of joint {made.name!r}, which is {kind}")
    if len(axes) < used:
        raise element.error(f"expected <{'axis2' if axes else 'axis'}>: the joint is {kind}")
    # The joint's frames have the axes of the child, so that its body keeps them.
    at = frames.relative(made.child, joint_key(made.name))
    X_S = Pose._of(np.eye(3), at.p)
    X_P = frames.relative(made.parent, made.child).compose(X_S)
    along = [_direction(axis, made, frames) for axis in axes[:used]]
    forces = [_forces(axis, made, kind, wanted) for axis in axes[:used]]
    turned = frames.absolute(made.child).R
    ends = made.name, made.parent, made.child
    if used == 2:
        return _two_axes(made, along, forces, X_P, X_S)
    joint: Joint
    if kind == "fixed":
        joint = Fixed()
    elif kind == "ball":
        joint = Spherical()
    elif kind == "prismatic":
        joint = Prismatic(axis=along[0])
    elif kind == "screw":
        joint = Helical(_pitch(element), axis=along[0])
    else:
        joint = Revolute(axis=along[0])
    acting = forces[0] if forces else {}
    rubs = acting.pop("friction", 0.0)
    edge = Edge(*ends, joint, X_P, X_S, made, acting, friction=rubs)
    if along:
        edge.direction = turned @ along[0]
        edge.anchored = bool(edge.forces) or axes[0].first("mimic") is not None
    return [edge]


def _two_axes(
    made: FileJoint, along: list[Array], forces: list[dict[str, Any]], X_P: Pose, X_S: Pose
) -> list[Edge]:
    """The first axis is fixed to the parent, the second to the child."""
    first, second = along
    cosine = float(first @ second)
    if abs(cosine) > 1 - SQUARE:
        raise made.element.error("its two axes are parallel")
    if abs(cosine) < SQUARE:
        second = second - cosine * first
        second /= np.linalg.norm(second)
        turn = Pose._of(np.column_stack([first, second, np.cross(first, second)]), np.zeros(3))
        joined = {
            key: [one.get(key, nothing) for one in forces]
            for key, nothing in NO_FORCE.items()
            if any(key in one for one in forces)
        }
        frames = X_P.compose(turn), X_S.compose(turn)
        joint = AngleSequence("xy")
        edge = Edge(made.name, made.parent, made.child, joint, *frames, made, joined)
        edge.anchored = bool(joined)
        return [edge]
    middle, none = f"{made.name}(between the axes)", Pose.identity()
    return [
        Edge(made.name, made.parent, middle, Revolute(axis=first), X_P, none, made, forces[0]),
        Edge(middle, middle, made.child, Revolute(axis=second), none, X_S, made, forces[1]),
    ]


NO_FORCE = {"damping": 0.0, "stiffness": 0.0, "rest": 0.0, "limits": (-math.inf, math.inf)}


def _note_unknown(element: Element, report: Report) -> None:
    known = KNOWN.get("axis" if element.tag == "axis2" else element.tag)
    for child in element.children if known else ():
        if known is not None and child.tag not in known:
            report.ignored(child, f"<{child.tag}> in <{element.tag}>")
        else:
            _note_unknown(child, report)


def _direction(axis: Element, made: FileJoint, frames: Frames) -> Array:
    """Unit vector of an axis, in the axes of the child."""
    xyz = axis.first("xyz")
    vector = np.array([0.0, 0.0, 1.0] if xyz is None else xyz.inside(3))
    size = float(np.linalg.norm(vector))
    if not 0.0 < size < math.inf:
        raise axis.error("xyz: expected a direction, received zeros or numbers out of range")
    flag = axis.first("use_parent_model_frame")
    named = "" if xyz is None else xyz.text("expressed_in", "")
    if named:
        frame = frames.find(made.scope, named, axis)
    elif truth(flag, made.scope.version < (1, 5)):
        frame = made.scope.frame
    else:
        frame = joint_key(made.name)
    return frames.relative(made.child, frame).R @ (vector / size)


def _pitch(element: Element) -> float:
    """Metres for each radian, right-handed.

    <screw_thread_pitch> (1.10) is in metres a turn; the older <thread_pitch> in radians a metre,
    and positive for left-handed threads.
    """
    new, old = element.first("screw_thread_pitch"), element.first("thread_pitch")
    if new is not None:
        return new.inside(1)[0] / (2 * math.pi)
    if old is None:
        raise element.error(
            "a screw needs <screw_thread_pitch> (m a turn), or up to SDF 1.9 <thread_pitch> (rad/m)"
        )
    value = old.inside(1)[0]
    if value == 0.0:
        raise old.error("expected radians for each metre, received 0")
    return -1.0 / value


def _number(element: Element | None, default: float) -> float:
    return default if element is None or not element.content else element.inside(1)[0]


def _forces(axis: Element, made: FileJoint, kind: str, wanted: Wanted) -> dict[str, Any]:
    forces: dict[str, Any] = {}
    dynamics, limit, said = axis.first("dynamics"), axis.first("limit"), f"joint {made.name!r}"
    if dynamics is not None:
        for tag, key in (("damping", "damping"), ("spring_stiffness", "stiffness")):
            value = wanted.not_negative(_number(dynamics.first(tag), 0.0), key, dynamics)
            if value:
                forces[key] = value
        if "stiffness" in forces:
            forces["rest"] = _number(dynamics.first("spring_reference"), 0.0)
        rubs = _number(dynamics.first("friction"), 0.0)
        if rubs := wanted.dry_friction(rubs, f"friction of {said}", dynamics, kind not in TWO_AXES):
            forces["friction"] = rubs
    if limit is not None and kind != "continuous":
        lower, upper = (_bound(limit, tag, s) for tag, s in (("lower", -1), ("upper", 1)))
        if not (math.isinf(lower) and math.isinf(upper)):
            forces |= wanted.stops(lower, upper, f"limits of {said}", limit)
    return forces


def _bound(limit: Element, tag: str, sign: int) -> float:
    """A limit; none is written as an infinity, or as a number without meaning."""
    given = limit.first(tag)
    if given is None or not given.content:
        return sign * math.inf
    infinite = ("inf", "+inf", "infinity") if sign > 0 else ("-inf", "-infinity")
    if given.content.lower() in infinite:
        return sign * math.inf
    value = given.inside(1)[0]
    return sign * math.inf if sign * value >= UNLIMITED else value


# ---------------------------------------------------------------------- gears


def add_gears(
    boxes: list[FileJoint],
    edges: list[Edge],
    carriers: dict[str, str],
    frames: Frames,
    report: Report,
) -> list[Constraint]:
    """Gearboxes and joints that mimic others, as gears; they are entered into the report, too.

    Parameters
    ----------
    boxes
        Joints of type gearbox: θ₂ = −ratio θ₁, both angles from the reference body.
    edges
        Joints of the model; `direction` and position variables are those of its neutral position.
    carriers
        Body that hangs on each joint of the tree.
    """
    by_name = {edge.name: edge for edge in edges}
    found: list[Constraint] = []
    for box in boxes:
        made = _gearbox(box, edges, carriers, frames)
        if made is None:
            report.ignored(
                box.element,
                f"gearbox {box.name!r}: both its links must hang on its reference body by hinges "
                "of the tree, about the axes of the box",
            )
            continue
        driven, leader, ratio = made
        found += _enter(report, box.element, driven, {leader: ratio}, f"gearbox {box.name!r}")
    for edge in edges:
        axis = None if edge.source is None else edge.source.element.first("axis")
        mimic = None if axis is None else axis.first("mimic")
        if mimic is None or edge.source is None:
            continue
        other = by_name.get(edge.source.scope.prefix + mimic.text("joint"))
        factor, offset, reference = (
            _number(mimic.first(tag), default)
            for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        )
        said = f"joint {edge.name!r} follows {mimic.text('joint')!r}"
        ends = [carriers.get(e.name) for e in (edge, other) if e is not None and e.joint.nv == 1]
        if len(ends) < 2 or None in ends or ends[0] == ends[1]:
            report.ignored(mimic, f"{said}, which cannot be written as a gear")
            continue
        by = {str(ends[1]): factor}
        found += _enter(report, mimic, str(ends[0]), by, said, offset - factor * reference)
    return found


def _enter(
    report: Report, at: Element, driven: str, by: dict[str, float], said: str, offset: float = 0.0
) -> list[Constraint]:
    if driven in report.gears:
        report.ignored(at, f"{said}: {driven!r} is driven already")
        return []
    if closes_ring(report.gears, driven, next(iter(by))):
        report.wrong(at, f"{said}, which in turn follows it")
        return []
    report.gears[driven] = by
    return [gear_constraint(said, driven, by, offset, None, ())]


def _gearbox(
    box: FileJoint, edges: list[Edge], carriers: dict[str, str], frames: Frames
) -> tuple[str, str, float] | None:
    """Driven body, leading body and the ratio of their variables."""
    ratio = _number(box.element.first("gearbox_ratio"), 1.0)
    named = box.element.first("gearbox_reference_body")
    if named is None:
        raise box.element.error("expected <gearbox_reference_body>")
    reference = frames.link(frames.find(box.scope, named.content, named))
    axis, axis2 = box.element.first("axis"), box.element.first("axis2")
    found: list[tuple[str, float]] = []
    for link, about in ((box.parent, axis), (box.child, axis2 if axis2 is not None else axis)):
        if about is None:
            raise box.element.error("expected <axis> and <axis2>")
        turned = frames.absolute(box.child).R @ _direction(about, box, frames)
        for edge in edges:
            forward = (edge.parent, edge.child) == (reference, link)
            if not (forward or (edge.parent, edge.child) == (link, reference)):
                continue
            if not isinstance(edge.joint, Revolute) or edge.name not in carriers:
                continue
            assert edge.direction is not None
            cosine = float(turned @ edge.direction)
            if abs(cosine) > 1 - 1e-6:
                found.append((carriers[edge.name], math.copysign(1, cosine) * (2 * forward - 1)))
                break
    if len(found) < 2 or found[0][0] == found[1][0]:
        return None
    (leader, first), (driven, second) = found
    return driven, leader, -ratio * first * second
