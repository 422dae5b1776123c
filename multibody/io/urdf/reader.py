"""URDF, the robots of ROS, to models.

A link becomes a body whose frame is the link's, a joint the joint that it hangs on; positions are
in the order of the joints from the root outwards. Origins are "xyz" and "rpy": roll, pitch and yaw
about the *fixed* axes x, y, z, so R = Rz(yaw) Ry(pitch) Rx(roll). The inertia of a link is given
about its centre of mass, in axes of its own. (The format: wiki.ros.org/urdf/XML, version 1.0.)

What a model does not have (limits unless asked for, efforts, friction, colours, transmissions) is
listed in the report, with lines. Joints that mimic others are gears of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...algebra.inertia import RigidInertia
from ...algebra.plucker import Plucker
from ...checks import Array, one_of, real_scalar
from ...elements import Actuator, Friction
from ...joints import Fixed, Free, Joint, Planar, Prismatic, Revolute, Spherical
from ...model import Model
from ...model.builder import ModelBuilder
from ...model.graph import BASE
from ..geometry import FileShape, MeshFiles, add_solids, combined, urdf_shape
from ..geometry.elements import add_ground_contacts, colour_of
from ..shared.links import body_name, closes_ring, inertia_of_link, roll_pitch_yaw, symmetric
from ..shared.report import Report
from ..shared.source import ModelFileError
from ..shared.wanted import Wanted
from ..shared.xml import Element, parse_xml

__all__ = ["read_urdf"]

KNOWN = {
    "robot": {"link", "joint", "material", "transmission", "gazebo", "sensor"},
    "link": {"inertial", "visual", "collision", "gazebo"},
    "joint": {
        *("origin", "parent", "child", "axis", "limit", "dynamics"),
        *("mimic", "calibration", "safety_controller"),
    },
}
NOT_IN_A_MODEL = {"transmission", "sensor", "calibration", "safety_controller"}
WITH_AXIS = {"revolute": Revolute, "continuous": Revolute, "prismatic": Prismatic, "planar": Planar}
WITHOUT_AXIS = {"fixed": Fixed, "floating": Free, "spherical": Spherical}
TYPES = (*WITH_AXIS, *WITHOUT_AXIS)
ONE_FREEDOM = ("revolute", "continuous", "prismatic")


def read_urdf(
    text: str,
    file: str,
    report: Report,
    *,
    root: str = "fixed",
    density: float | None = None,
    contacts: str | None = None,
    friction: float = 0.0,
    restitution: float = 0.0,
    controls: Mapping[str, Any] | None = None,
    **options: Any,
) -> Model:
    """Read a model from the text of a URDF file.

    Parameters
    ----------
    text, file
        What is in it, and its name.
    report, **options
        As in `Wanted`.
    root
        "fixed": the root link stands on the base; "free": it floats.
    density
        In kg/m³: links without <inertial> then have the mass of their <collision> shapes (of
        <visual> ones, if there are no others).
    contacts, friction, restitution
        "ground": <collision> shapes touch the plane z = 0 of the base, with these constants.
    controls
        Efforts of the actuators of transmissions by name, as ``control`` of
        :class:`~multibody.Actuator`: each drives its joint with the reduction of its transmission.
    """
    if contacts is not None:
        one_of(contacts, "contacts", ("ground",))
    wanted = Wanted(report, **options)
    files, amount = (
        MeshFiles(wanted.meshes),
        None if density is None else real_scalar(density, "density"),
    )
    if amount is not None and not 0.0 < amount < np.inf:
        raise ValueError(f"density: expected a positive number, received {density!r}")
    one_of(root, "root", ("fixed", "free"))
    robot = parse_xml(text, file)
    if robot.tag != "robot":
        raise robot.error("expected <robot>: this is no URDF")
    _refuse_macros(robot)
    _note_unknown(robot, report)
    links = _by_name(robot, "link")
    joints = _by_name(robot, "joint")
    if not links:
        raise robot.error("there is no <link>")
    parents: dict[str, Element] = {}  # child -> its joint
    for joint in joints.values():
        child = _end(joint, "child", links)
        if child in parents:
            raise joint.error(
                f"link {child!r} hangs on the joint of line {parents[child].line} already; a URDF "
                "is a tree (loops can be written as SDF, or in this program's own files)"
            )
        parents[child] = joint
        _end(joint, "parent", links)
    order = _outwards(_roots(links, parents, robot, report), parents)
    builder = ModelBuilder(name=robot.text("name", "robot"))
    inertias = {
        name: _mass_of(link, density=amount, files=files, report=report)
        for name, link in links.items()
    }
    heavy = _carrying(order, parents, inertias)
    names: dict[str, str] = {}
    for name in order:
        if name not in parents:
            names[name] = _add_root(builder, links[name], root, inertias[name], report)
        else:
            on = parents[name]
            made = _joint(on, name in heavy, report)
            _add(builder, links[name], on, made, names, inertias[name], wanted)
    _mimic(builder, joints, names, heavy, report)
    colours = _colours(robot)
    for name, link in links.items():
        shapes = _shapes(link, "visual", colours, report)
        shapes = shapes or _shapes(link, "collision", colours, report)
        add_solids(builder, names[name], shapes, files, report)
        if contacts is not None and names[name] != BASE:
            touching = _shapes(link, "collision", {}, report)
            law = {"friction": friction, "restitution": restitution}
            add_ground_contacts(builder, names[name], touching, report, **law)
    _drive(builder, _transmissions(robot, joints, report), dict(controls or {}), names)
    with robot.blamed():
        return builder.build()


def _transmissions(
    robot: Element, joints: dict[str, Element], report: Report
) -> dict[str, tuple[Element, Element, float]]:
    """Joint and reduction by the name of the actuator; how much faster motors turn is noted."""
    found: dict[str, tuple[Element, Element, float]] = {}
    for transmission in robot.all("transmission"):
        named = [x.text("name") for x in transmission.all("joint") if "name" in x.attributes]
        motors, reduction = list(transmission.all("actuator")), 1.0
        for part in (*motors, *transmission.all("joint"), transmission):
            given = part.first("mechanicalReduction")
            if given is None or not given.content:
                continue
            try:
                value = given.inside(1)[0]
            except ModelFileError as error:
                report.wrong(given, f"a reduction: {error.message}")
                continue
            if value == 0.0:
                report.wrong(given, "a reduction of 0: the motor would not be felt")
                continue
            reduction = value
            report.reductions |= dict.fromkeys(named, reduction)
            break
        if len(named) == len(motors) == 1 and named[0] in joints and "name" in motors[0].attributes:
            name = motors[0].text("name")
            if name in found:
                report.wrong(motors[0], f"actuator {name!r}: line {found[name][0].line} has it")
                continue
            found[name] = motors[0], joints[named[0]], reduction
    return found


def _drive(
    builder: ModelBuilder,
    motors: dict[str, tuple[Element, Element, float]],
    controls: dict[str, Any],
    names: dict[str, str],
) -> None:
    """Add the actuators that are given an effort."""
    if unknown := set(controls) - set(motors):
        raise ValueError(
            f"controls: no transmission has the actuator {sorted(unknown)[0]!r} on a joint of its "
            f"own; there are {list(motors)}"
        )
    for name, effort in controls.items():
        motor, joint, reduction = motors[name]
        child = joint.first("child")
        body = names[child.text("link")] if child is not None else BASE
        if joint.text("type") not in ONE_FREEDOM or body == BASE:
            raise motor.error(f"actuator {name!r}: its joint has not one freedom to drive")
        if isinstance(effort, float) and not np.isfinite(effort):
            raise ValueError(f"controls: expected a finite effort of {name!r}, received {effort}")
        own = name if name not in names.values() else f"{name}(actuator)"
        with motor.blamed():
            builder.add_element(own, Actuator(body, effort, gear=[reduction]))


def _refuse_macros(robot: Element) -> None:
    for child in robot.children:
        if child.tag.startswith("xacro:"):
            raise child.error(
                'a macro: this is a program that writes a URDF; read it with format="xacro" and '
                "macros=True if you trust it, or run it first (`xacro FILE > robot.urdf`)"
            )


def _note_unknown(robot: Element, report: Report) -> None:
    for element in (robot, *robot.children):
        known = KNOWN.get(element.tag)
        for child in element.children if known else ():
            if known is not None and child.tag not in known:
                report.ignored(child, f"unknown element <{child.tag}>")
            elif child.tag in NOT_IN_A_MODEL:
                report.ignored(child, f"<{child.tag}>")


def _by_name(robot: Element, tag: str) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in robot.all(tag):
        name = element.text("name")
        if name in found:
            raise element.error(f"the name is taken in line {found[name].line}")
        found[name] = element
    return found


def _end(joint: Element, which: str, links: Mapping[str, Element]) -> str:
    end = joint.first(which)
    if end is None:
        raise joint.error(f"expected <{which} link=…/>")
    name = end.text("link")
    if name not in links:
        raise end.error(f"there is no link {name!r}")
    return name


def _parent(joint: Element) -> str:
    parent = joint.first("parent")
    assert parent is not None
    return parent.text("link")


def _roots(
    links: Mapping[str, Element], parents: Mapping[str, Element], robot: Element, report: Report
) -> list[str]:
    """Links without a parent: one, unless a repair is wanted."""
    roots = [name for name in links if name not in parents]
    if not roots:
        raise robot.error("expected a link without a parent, the root: the joints form a ring")
    if len(roots) > 1:
        said = f"{len(roots)} links without a parent: {', '.join(map(repr, roots[:5]))}"
        report.wrong(links[roots[1]], said, "put each of them on the base", possible=False)
    return roots


def _outwards(roots: list[str], parents: Mapping[str, Element]) -> list[str]:
    """Links after their parents, in the order of the file where that leaves a choice."""
    children: dict[str, list[str]] = {}
    for child, joint in parents.items():
        children.setdefault(_parent(joint), []).append(child)
    order: list[str] = []
    waiting = roots[::-1]
    while waiting:
        link = waiting.pop()
        order.append(link)
        waiting.extend(reversed(children.get(link, ())))
    reached = set(order)
    for lost, joint in parents.items():
        if lost not in reached:
            raise joint.error(f"link {lost!r} is in a ring of joints that no root reaches")
    return order


def _carrying(
    order: list[str], parents: Mapping[str, Element], inertias: Mapping[str, RigidInertia | None]
) -> set[str]:
    """Links that have mass or carry some."""
    heavy = {name for name, inertia in inertias.items() if inertia is not None}
    for name in reversed(order):
        if name in heavy and name in parents:
            heavy.add(_parent(parents[name]))
    return heavy


def _add_root(
    builder: ModelBuilder, link: Element, root: str, inertia: RigidInertia | None, report: Report
) -> str:
    name = link.text("name")
    if root == "fixed" and inertia is None and name in ("world", BASE):
        return BASE
    own = body_name(name, link, report)
    builder.add_body(own, BASE, Free() if root == "free" else Fixed(), None, inertia)
    return own


def _add(
    builder: ModelBuilder,
    link: Element,
    joint: Element,
    made: Joint,
    names: dict[str, str],
    inertia: RigidInertia | None,
    wanted: Wanted,
) -> None:
    name = link.text("name")
    names[name] = own = body_name(name, link, wanted.report)
    forces, friction = _forces(joint, made, wanted)
    R, p = _pose(joint.first("origin"))
    with joint.blamed():
        on, at = names[_parent(joint)], Plucker(R.T, p)
        builder.add_body(own, on, made, at, inertia, **forces)
        if friction:
            builder.add_element(f"friction of {own}", Friction(own, friction))


def _joint(joint: Element, heavy: bool, report: Report) -> Joint:
    """The joint of an element; one that moves nothing `heavy` is fixed, or refused."""
    kind = joint.text("type")
    if kind not in TYPES:
        raise joint.error(f"type: expected one of {', '.join(TYPES)}, received {kind!r}")
    if kind == "spherical":
        report.wrong(joint, "a spherical joint: URDF has none, though some programs know it")
    if kind != "fixed" and not heavy:
        said = f"joint {joint.text('name')!r} moves links without mass, so nothing resists it"
        report.wrong(joint, said, "hold it still", possible=False)
        return Fixed()
    if kind not in WITH_AXIS:
        return WITHOUT_AXIS[kind]()
    given = joint.first("axis")
    axis = np.array([1.0, 0.0, 0.0] if given is None else given.numbers("xyz", 3, (1.0, 0.0, 0.0)))
    if not np.any(axis):
        assert given is not None
        raise given.error("xyz: expected a direction, received zeros")
    return WITH_AXIS[kind](axis=axis / np.linalg.norm(axis))


def _forces(joint: Element, made: Joint, wanted: Wanted) -> tuple[dict[str, Any], float]:
    """Arguments of the model's builder, and the dry friction of a joint."""
    forces, friction = dict[str, Any](), 0.0
    dynamics, limit = joint.first("dynamics"), joint.first("limit")
    said = f"joint {joint.text('name')!r}"
    if dynamics is not None and made.nv:
        damping = wanted.not_negative(dynamics.number("damping", 0.0), "damping", dynamics)
        if damping:
            forces["damping"] = damping
        value = dynamics.number("friction", 0.0)
        friction = wanted.dry_friction(value, f"friction of {said}", dynamics, made.nv == 1)
    if limit is not None and made.nv and joint.text("type") in ("revolute", "prismatic"):
        ends = limit.number("lower", 0.0), limit.number("upper", 0.0)
        forces |= wanted.stops(*ends, f"limits of {said}", limit)
    return forces, friction


def _pose(origin: Element | None) -> tuple[Array, Array]:
    """R of an origin, from the axes that it describes to those around it, and its place."""
    if origin is None:
        return np.eye(3), np.zeros(3)
    R = roll_pitch_yaw(*origin.numbers("rpy", 3, (0.0, 0.0, 0.0)))
    return R, np.array(origin.numbers("xyz", 3, (0.0, 0.0, 0.0)))


# ---------------------------------------------------------------------- inertia


def _mass_of(
    link: Element, *, density: float | None, files: MeshFiles, report: Report
) -> RigidInertia | None:
    """Inertia of a link: what it says, or what its shapes have."""
    if density is None or link.first("inertial") is not None:
        return _inertia(link, report)
    shapes = _shapes(link, "collision", {}, report) or _shapes(link, "visual", {}, report)
    part = combined(shape.part(density, files, report) for shape in shapes)
    if part.mass == 0.0:
        return None
    said = f"link {link.text('name')!r} has no <inertial>: {part.mass:.6g} kg from its shapes"
    report.assumed(link, said)
    return inertia_of_link(link.text("name"), *part, (link, link), report)


def _inertia(link: Element, report: Report) -> RigidInertia | None:
    inertial = link.first("inertial")
    if inertial is None:
        return None
    mass_element, moments = inertial.first("mass"), inertial.first("inertia")
    if mass_element is None or moments is None:
        raise inertial.error("expected <mass value=…/> and <inertia ixx=… …/>")
    mass = mass_element.number("value")
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    central = symmetric(*(moments.number(name, 0.0) for name in names))
    R, centre = _pose(inertial.first("origin"))
    at = mass_element, moments
    return inertia_of_link(link.text("name"), mass, centre, R @ central @ R.T, at, report)


# ---------------------------------------------------------------------- shapes


def _colours(robot: Element) -> dict[str, tuple[float, ...]]:
    """Colours of materials by name; those inside links are known to all."""
    found = {}
    inside = [
        m for link in robot.all("link") for v in link.all("visual") for m in v.all("material")
    ]
    for material in (*inside, *robot.all("material")):
        colour = material.first("color")
        if colour is not None and "name" in material.attributes:
            numbers = colour.numbers("rgba", 4, (0.5, 0.5, 0.5, 1.0))
            found[material.text("name")] = colour_of(numbers)
    return found


def _shapes(link: Element, tag: str, colours: Mapping[str, Any], report: Report) -> list[FileShape]:
    found = []
    for element in link.all(tag):
        R, p = _pose(element.first("origin"))
        material = element.first("material")
        own = None if material is None else material.first("color")
        colour = () if material is None else colours.get(material.attributes.get("name", ""), ())
        if own is not None:
            colour = colour_of(own.numbers("rgba", 4, (0.5, 0.5, 0.5, 1.0)))
        try:
            shape = urdf_shape(element.first("geometry"), R, p, colour)
        except ModelFileError as error:
            report.wrong(error.line or element.line, f"a shape, left out: {error.message}")
            continue
        if shape is not None:
            found.append(shape)
    return found


# ---------------------------------------------------------------------- joints that follow others


def _mimic(
    builder: ModelBuilder,
    joints: Mapping[str, Element],
    names: Mapping[str, str],
    heavy: set[str],
    report: Report,
) -> None:
    """Joints that follow others, as gears of the model; those that move nothing `heavy` do not."""
    for joint in joints.values():
        mimic = joint.first("mimic")
        if mimic is None:
            continue
        other = mimic.text("joint")
        if other not in joints:
            report.wrong(mimic, f"joint {joint.text('name')!r} mimics {other!r}: there is none")
            continue
        multiplier, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
        ends = (joint, joints[other])
        moved = [child.text("link") for x in ends if (child := x.first("child"))]
        free = all(x.text("type") in ONE_FREEDOM for x in ends) and heavy.issuperset(moved)
        if not free or joint is joints[other]:
            report.ignored(
                mimic,
                f"joint {joint.text('name')!r} follows {other!r}: not both of one freedom",
            )
            continue
        follower, leader = (names[link] for link in moved)
        if closes_ring(report.gears, follower, leader):
            text = f"joint {joint.text('name')!r} mimics {other!r}, which in turn follows it"
            report.wrong(mimic, text)
            continue
        report.gears[follower] = {leader: multiplier}
        name = f"{joint.text('name')} follows {other}"
        builder.add_gear(name, follower, report.gears[follower], offset=offset)
