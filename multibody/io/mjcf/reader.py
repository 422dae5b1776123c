"""Bodies and joints of MJCF as a model.

A body hangs on its parent by any number of joints, one after the other: T = T₀ J₁ J₂ …, where a
hinge turns about an axis through its ``pos`` and a slide moves along its axis. Here a body has one
joint, so all but the last become bodies without mass between. The frame of a body stands at the
``pos`` of its last joint; ``Report.frames`` has the pose of MuJoCo's frame in it. Positions are
MuJoCo's ``qpos`` less ``ref``; those of a free joint are quaternion first, then position.
(The format: MuJoCo's XML reference, version 3.)

Actuators and fixed tendons are elements, one named input each. Forces that a model here does not
have (muscles, contacts, tendons over pulleys) are listed in the report; equalities are exact
constraints, where MuJoCo has springs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from ...algebra.inertia import RigidInertia
from ...algebra.orientation.quaternions import from_matrix
from ...algebra.se3 import Pose
from ...checks import Array
from ...elements import Friction, PointForce
from ...joints import Fixed
from ...model import Model
from ...model.builder import ModelBuilder
from ...model.graph import BASE
from ..geometry import MeshFiles, combined
from ..shared.includes import Includes
from ..shared.links import body_name, inertia_of_link, symmetric
from ..shared.report import Report
from ..shared.wanted import Wanted
from ..shared.xml import Element, parse_xml
from .actuators import add_actuators
from .equalities import add_equality, add_tendon
from .geoms import Assets, geom_inertia, geom_solid
from .joints import Hung, joint_of
from .keyframes import keep_positions
from .poses import IDENTITY, ORIENTATIONS, Placed, along_z, unit
from .settings import BALL, FREE, Compiler, Defaults, enter

__all__ = ["read_mjcf"]

#: What writes bodies: it has to be run first.
PROGRAMS = {"replicate", "composite", "flexcomp", "attach", "plugin", "flex"}
#: What says how a model looks or is measured.
SILENT = {"site", "camera", "light", "asset", "visual", "statistic", "size", "custom", "geom"}
#: Bodies one in the other.
LONGEST_CHAIN = 20_000
#: <frame> elements one in the other.
DEEPEST_FRAMES = 50
#: Joints of tendons, counted as often as something names a tendon.
MOST_TERMS = 200_000
# What changes a motion and has no place here, by element: told where it is set.
UNREAD = {
    "freejoint": ("align",),
    "compiler": ("alignfree", "balanceinertia"),
    "option": ("actuatorgroupdisable",),
    **dict.fromkeys(
        ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder"),
        ("armature", "damping", "actearly"),
    ),
}
IDLE = ("false", "0", "")
SWITCHES = (
    *("constraint", "equality", "frictionloss", "limit"),
    *("passive", "spring", "damper", "actuation"),
)
READ = {"compiler", "option", "default", "worldbody", "equality", "keyframe", "tendon", "actuator"}


@dataclass
class Reading:
    """What is known while a file is read."""

    builder: ModelBuilder
    wanted: Wanted
    compiler: Compiler
    defaults: Defaults
    assets: Assets
    poses: dict[str, Placed] = field(default_factory=lambda: {BASE: IDENTITY})  # at the start
    names: dict[str, str] = field(default_factory=lambda: {"world": BASE})
    frames: dict[str, Placed] = field(default_factory=lambda: {BASE: IDENTITY})
    joints: dict[str, Hung] = field(default_factory=dict)
    order: list[Hung] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    scale: float = 1.0
    sites: dict[str, tuple[str, Placed]] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    tendons: dict[str, tuple[list[str], Array, float]] = field(default_factory=dict)
    terms: int = 0

    @property
    def report(self) -> Report:
        """Receives remarks."""
        return self.wanted.report

    def joint(self, name: str, element: Element) -> Hung:
        """A joint by its name."""
        if name not in self.joints:
            raise element.error(f"there is no joint {name!r}")
        return self.joints[name]

    def site(self, name: str, element: Element) -> tuple[str, Placed]:
        """Body of the model that a site is on, and its frame there."""
        if name not in self.sites:
            raise element.error(f"there is no site {name!r}")
        return self.sites[name]

    def tendon(self, name: str, element: Element) -> tuple[list[str], Array, float] | None:
        """Joints of a fixed tendon, their weights and its offset; None if it is no such tendon."""
        found = self.tendons.get(name)
        self.terms += 0 if found is None else len(found[0])
        if self.terms > MOST_TERMS:
            raise element.error(f"tendons stand for more than {MOST_TERMS:,} joints; no model's do")
        return found

    def poses_of(self, body: str) -> Placed:
        """Frame of a body of the model in the world, at the start."""
        return self.poses[body] @ self.frames[body].inverse()

    def frame_of(self, body: str, element: Element) -> tuple[str, Placed]:
        """Body of the model, and MuJoCo's frame in it."""
        if body not in self.names:
            raise element.error(f"there is no body {body!r}")
        own = self.names[body]
        return own, self.frames[own]


def read_mjcf(
    text: str,
    file: str,
    report: Report,
    *,
    actuators: bool = True,
    controls: Mapping[str, Any] | None = None,
    includes: str | PathLike[str] | None = None,
    **options: Any,
) -> Model:
    """Read a model from the text of an MJCF file.

    Parameters
    ----------
    text, file
        What is in it, and its name.
    report, **options
        As in `Wanted`; limits are ``range``, of tendons, too, and friction is ``frictionloss``.
    actuators
        Whether actuators act; they are elements of their names.
    controls
        Inputs of actuators by name: numbers, functions of time, tables, names of elements.
    includes
        Folder from which other files may be read.
    """
    wanted = Wanted(report, **options)
    root = parse_xml(text, file, LONGEST_CHAIN)
    if root.tag != "mujoco":
        raise root.error("expected <mujoco>: this is no MJCF")
    _fill_in(root, Includes(includes))
    compiler, defaults = Compiler(), Defaults()
    for element in root.all("compiler"):
        compiler.read(element)
    defaults.read(root.all("default"))
    builder = ModelBuilder(gravity=_gravity(root, report), name=root.text("model", "MuJoCo Model"))
    assets = Assets(MeshFiles(wanted.meshes, includes), report)
    reading = Reading(builder, wanted, compiler, defaults, assets)
    reading.assets.read(root, defaults)
    _note(root, report)
    _note_unread(root, report)
    worlds = list(root.all("worldbody"))
    if compiler.total_mass > 0:
        total = sum(_masses(world, reading) for world in worlds)
        if total <= 0:
            raise root.error("settotalmass: there is no mass to be scaled")
        reading.scale = compiler.total_mass / total
    for world in worlds:
        _add_bodies(world, reading)
    for number, element in enumerate(_entries(root, "tendon")):
        add_tendon(defaults.applied(element, family="tendon"), number, reading)
    for number, element in enumerate(_entries(root, "equality")):
        add_equality(defaults.applied(element, family="equality"), number, reading)
    drives = [defaults.applied(element) for element in _entries(root, "actuator")]
    if actuators:
        add_actuators(drives, controls, reading)
    elif controls:
        raise ValueError("controls: actuators=False leaves nothing that they could drive")
    elif drives:
        report.ignored(drives[0], f"{len(drives)} actuators")
    with root.blamed():
        model = builder.build()
    keep_positions(root, reading, model)
    return model


def _entries(root: Element, tag: str) -> list[Element]:
    return [element for group in root.all(tag) for element in group.children]


def _fill_in(root: Element, includes: Includes) -> None:
    """Put what included files contain in place of <include>."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if any(child.tag == "include" for child in element.children):
            filled: list[Element] = []
            for child in element.children:
                if child.tag != "include":
                    filled.append(child)
                    continue
                inner = includes.open(child, child.text("file"))
                _fill_in(inner, includes)
                includes.close()
                filled += inner.children
            element.children = filled
        waiting += element.children


def _gravity(root: Element, report: Report) -> list[float]:
    gravity = [0.0, 0.0, -9.81]
    for option in root.all("option"):
        gravity = option.numbers("gravity", 3, tuple(gravity))
        for medium in ("density", "viscosity"):
            if option.number(medium, 0.0):
                report.ignored(option, f"the {medium} of a medium")
        for switches in option.all("flag"):
            if switches.text("gravity", "enable") == "disable":
                gravity = [0.0, 0.0, 0.0]
    return gravity


def _note(root: Element, report: Report) -> None:
    for child in root.children:
        if child.tag in PROGRAMS:
            raise child.error(_unread(child))
        if child.tag in READ | SILENT:
            continue
        for entry in child.children or [child]:
            name = entry.attributes.get("name", "")
            report.ignored(entry, f"<{child.tag}>: {entry.tag} {name}".rstrip())


def _note_unread(root: Element, report: Report) -> None:
    """Tell what is set in elements that are read, and is not read itself."""
    waiting = list(root.children)
    while waiting:
        element = waiting.pop()
        waiting += element.children
        for name in UNREAD.get(element.tag, ()):
            if (value := element.attributes.get(name, "").strip()) not in IDLE:
                report.ignored(element, f"{name}={value!r} of <{element.tag}>")
        for name in SWITCHES if element.tag == "flag" else ():
            if element.text(name, "enable") == "disable":
                report.ignored(element, f"{name} is disabled, and acts here")
        if element.tag == "weld" and {"relpose", "anchor"} <= element.attributes.keys():
            report.ignored(element, "anchor beside relpose of <weld>")


def _unread(element: Element) -> str:
    return (
        f"<{element.tag}> is filled in by MuJoCo; have it write the whole model first "
        "(mujoco.mj_saveLastXML)"
    )


# ---------------------------------------------------------------------- bodies


def _children(
    body: Element, reading: Reading, around: str | None, pose: Placed, depth: int = 0
) -> Any:
    """What is in a body: elements with their class and, through <frame>, their pose in it."""
    if depth > DEEPEST_FRAMES:
        raise body.error(f"frames are nested deeper than {DEEPEST_FRAMES}; no model is")
    for child in body.children:
        if child.tag in PROGRAMS:
            raise child.error(_unread(child))
        if child.tag == "frame":
            inner = pose @ _pose(child, reading)
            kind = child.text("childclass", around or "main")
            yield from _children(child, reading, kind, inner, depth + 1)
        elif child.tag in ("body", "joint", "freejoint", "geom", "inertial", "site"):
            yield child, around, pose


def _pose(element: Element, reading: Reading) -> Placed:
    return Placed(
        reading.compiler.orientation(element), np.array(element.numbers("pos", 3, (0.0, 0.0, 0.0)))
    )


def _bodies(inside: list[Any]) -> list[tuple[Element, Placed, str | None]]:
    """Bodies of what is in a body, with their poses and classes; the last first, for a stack."""
    return [
        (child, pose, child.attributes.get("childclass", kind))
        for child, kind, pose in reversed(inside)
        if child.tag == "body"
    ]


def _add_bodies(world: Element, reading: Reading) -> None:
    """Add all bodies, by a stack: chains may be longer than Python's."""
    inside = list(_children(world, reading, None, IDENTITY))
    _dress(BASE, inside, reading)
    waiting = [("world", *found) for found in _bodies(inside)]
    while waiting:
        parent, body, pose, kind = waiting.pop()
        name, inside = _add_body(body, parent, pose, kind, reading)
        waiting += [(name, *found) for found in _bodies(inside)]


def _add_body(
    body: Element, parent: str, around: Placed, kind: str | None, reading: Reading
) -> tuple[str, list[Any]]:
    """Add a body; returns its name, and what is in it."""
    name = body.text("name", f"body{len(reading.names)}")
    if name in reading.names:
        raise body.error("the name is taken")
    own = body_name(name, body, reading.report)
    reading.names[name] = own
    on, frame = reading.names[parent], reading.frames[reading.names[parent]]
    place = around @ _pose(body, reading)
    reading.poses[own] = reading.poses[on] @ place
    inside = list(_children(body, reading, kind, IDENTITY))
    joints = [
        (reading.defaults.applied(child, of) if child.tag == "joint" else child, pose)
        for child, of, pose in inside
        if child.tag in ("joint", "freejoint")
    ]
    inertia = _inertia(body, inside, reading)
    last = _hang(body, own, on, frame @ place, joints, inertia, reading)
    if (share := body.number("gravcomp", 0.0)) and inertia is not None:
        lifted = -share * float(inertia.mass) * reading.builder.gravity
        law = PointForce(own, np.asarray(inertia.centre) - last, lifted)
        reading.builder.add_element(f"gravcomp of {own}", law)
    reading.frames[own] = Placed(np.eye(3), -last)
    if np.any(last):
        reading.report.frames[own] = Pose(np.eye(3), -last)
    _dress(own, inside, reading)
    return name, inside


def _hang(
    body: Element,
    own: str,
    on: str,
    place: Placed,
    joints: list[tuple[Element, Placed]],
    inertia: RigidInertia | None,
    reading: Reading,
) -> Array:
    """Add a body with its joints; returns where its frame stands in MuJoCo's."""
    at = np.zeros(3)
    if not joints:
        reading.builder.add_body(own, on, Fixed(), place.plucker(), inertia)
        reading.parents[own] = on
        return at
    for number, (joint, pose) in enumerate(joints):
        made, anchor, hung, forces = joint_of(joint, pose, reading)
        is_last = number == len(joints) - 1
        name = own if is_last else f"{own}({joint.attributes.get('name', f'joint {number + 1}')})"
        hung.body = name
        if hung.kind == FREE:
            if on != BASE or len(joints) > 1:
                raise joint.error("a free joint stands alone, in a body of the world")
            start = reading.poses[own]
            reading.start += [*from_matrix(start.R), *start.p]
            placed = None
        else:
            reading.start += [1.0, 0.0, 0.0, 0.0] if hung.kind == BALL else [0.0]
            placed = (place @ Placed(np.eye(3), anchor - at)).plucker()
        carried = None
        if is_last and inertia is not None:
            carried = Placed(np.eye(3), anchor).plucker().apply(inertia)
        with joint.blamed():
            reading.builder.add_body(name, on, made, placed, carried, **forces)
        if hung.friction:
            reading.builder.add_element(f"friction of {name}", Friction(name, hung.friction))
        reading.parents[name] = on
        reading.order.append(hung)
        if "name" in joint.attributes:
            enter(reading.joints, joint, hung)
        on, place, at = name, IDENTITY, anchor
    return at


# ---------------------------------------------------------------------- inertia


def _inertia(body: Element, inside: list[Any], reading: Reading) -> RigidInertia | None:
    mass, centre, central = _mass_of(body, inside, reading)
    least = reading.compiler
    mass, central = reading.scale * mass, reading.scale * central
    if 0.0 <= mass < least.least_mass:
        mass = least.least_mass
    moments, axes = np.linalg.eigh(central)
    if moments[0] < least.least_moment:
        central = (axes * np.maximum(moments, least.least_moment)) @ axes.T
    at = next((child for child, _, _ in inside if child.tag == "inertial"), body)
    name = body.attributes.get("name", "")
    return inertia_of_link(name, mass, centre, central, (at, at), reading.report)


def _mass_of(body: Element, inside: list[Any], reading: Reading) -> tuple[float, Array, Array]:
    """Mass, centre and moments about it, from <inertial> or from geoms."""
    inertial = body.first("inertial")
    rule = reading.compiler.from_geoms
    if inertial is not None and rule != "true":
        pose = _pose(inertial, reading)
        mass = inertial.number("mass")
        if "fullinertia" in inertial.attributes:
            if not ORIENTATIONS.isdisjoint(inertial.attributes):
                raise inertial.error("fullinertia is in the axes of the body: no orientation")
            xx, yy, zz, xy, xz, yz = inertial.numbers("fullinertia", 6, None)
            central = symmetric(xx, xy, xz, yy, yz, zz)
        else:
            central = np.diag(inertial.numbers("diaginertia", 3, (0.0, 0.0, 0.0)))
        return mass, pose.p, pose.R @ central @ pose.R.T
    parts = []
    if rule != "false":
        for child, kind, pose in inside:
            if child.tag == "geom":
                geom = reading.defaults.applied(child, kind)
                parts.append(geom_inertia(geom, pose, reading.compiler, reading.assets))
    return combined(part for part in parts if part is not None)


def _dress(own: str, inside: list[Any], reading: Reading) -> None:
    """Let a body look as its geoms do, and note where its sites are."""
    for child, kind, pose in inside:
        if child.tag == "site" and "name" in child.attributes:
            site = reading.defaults.applied(child, kind)
            at = reading.frames[own] @ pose @ _site_pose(site, reading)
            enter(reading.sites, child, (own, at))
        if child.tag != "geom":
            continue
        geom = reading.defaults.applied(child, kind)
        solid = geom_solid(geom, pose, reading.compiler, reading.assets)
        if solid is not None:
            shape, size, place, colour, mesh = solid
            at = (reading.frames[own] @ place).plucker()
            reading.builder.add_solid(own, shape, size, at, colour, **mesh)


def _site_pose(site: Element, reading: Reading) -> Placed:
    if "fromto" not in site.attributes:
        return _pose(site, reading)
    ends = np.array(site.numbers("fromto", 6, None)).reshape(2, 3)
    return Placed(along_z(unit(site, "fromto", list(ends[0] - ends[1]))), ends.mean(axis=0))


def _masses(world: Element, reading: Reading) -> float:
    """Mass of everything inside."""
    total, waiting = 0.0, _bodies(list(_children(world, reading, None, IDENTITY)))
    while waiting:
        body, _, kind = waiting.pop()
        inside = list(_children(body, reading, kind, IDENTITY))
        total += _mass_of(body, inside, reading)[0]
        waiting += _bodies(inside)
    return total
