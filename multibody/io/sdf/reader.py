"""SDF, the models of Gazebo, to models: versions 1.4 to 1.11, closed loops included.

A link becomes a body. Its frame is the link's, unless the joint that carries it sits elsewhere or
is met from its child: then it is the joint's, and `Report.frames` has the difference. Joints that
a spanning tree leaves over close loops. In the neutral position everything is where the poses of
the file put it, so loops are closed there to rounding. What no joint ties to the world floats.
(The format: sdformat.org.)

What a model does not have (plugins, sensors, friction, limits unless asked for) is listed
in the report, with lines. Gearboxes and joints that mimic others are gears of the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from ...algebra.inertia import RigidInertia
from ...algebra.se3 import Pose
from ...checks import one_of
from ...elements import Friction, NamedElement
from ...joints import Fixed, Free
from ...model import Model
from ...model.builder import ModelBuilder
from ...model.graph import BASE
from ..geometry import FileShape, MeshFiles, add_solids, combined, sdf_shape
from ..geometry.elements import colour_of
from ..shared.includes import Includes
from ..shared.links import body_name, inertia_of_link, symmetric
from ..shared.report import Report
from ..shared.wanted import Wanted
from ..shared.xml import Element, parse_xml
from .frames import MODEL, WORLD, Frames, Scope, joint_key, pose_of, truth
from .joints import Edge, FileJoint, add_gears, edges_of

__all__ = ["read_sdf"]

OLDEST, NEWEST = (1, 4), (1, 11)
KNOWN = {
    "world": {"model", "include", "frame", "joint", "gravity"},
    "model": {"link", "joint", "frame", "model", "include", "pose", "static"},
    "link": {"pose", "inertial", "visual", "collision"},
    "inertial": {"pose", "mass", "inertia", "density"},
}
#: Density of shapes that say none (kg/m³).
WATER = 1000.0
#: Defaults of the format: a link without them has the mass 1 and the moments 1.
MOMENTS = {"ixx": 1.0, "ixy": 0.0, "ixz": 0.0, "iyy": 1.0, "iyz": 0.0, "izz": 1.0}


@dataclass
class _Content:
    """Everything that was found, before a tree is chosen."""

    wanted: Wanted
    includes: Includes
    meshes: MeshFiles
    frames: Frames = field(default_factory=Frames)
    links: dict[str, tuple[Element, Scope]] = field(default_factory=dict)
    joints: list[tuple[Element, Scope]] = field(default_factory=list)
    collisions: list[Element] = field(default_factory=list)
    gravity: list[float] | None = None

    @property
    def report(self) -> Report:
        """Receives remarks."""
        return self.wanted.report


def read_sdf(
    text: str,
    file: str,
    report: Report,
    *,
    root: str = "free",
    includes: str | PathLike[str] | None = None,
    **options: Any,
) -> Model:
    """Read a model from the text of an SDF file.

    Parameters
    ----------
    text, file
        What is in it, and its name.
    report, **options
        As in `Wanted`.
    root
        What becomes of models that no joint ties to the world: "free" lets them float, as the
        format has it, "fixed" holds them.
    includes
        Folder from which <include> may read other files; without it none is read.
    """
    one_of(root, "root", ("free", "fixed"))
    sdf = parse_xml(text, file)
    wanted = Wanted(report, **options)
    content = _Content(wanted, Includes(includes), MeshFiles(wanted.meshes, includes))
    name = _read_root(content, sdf)
    if not content.links:
        raise sdf.error("there is no <link>")
    if content.collisions:
        first, count = content.collisions[0], len(content.collisions)
        report.ignored(first, f"{count} × <collision>, the first here")
    with sdf.blamed():
        return _build(content, name, root)


# ---------------------------------------------------------------------- what is in the file


def _read_root(content: _Content, sdf: Element) -> str:
    """Read a file from its root element, and return a name for the model."""
    version = _version(sdf, content.report)
    worlds, models = list(sdf.all("world")), list(sdf.all("model"))
    for child in sdf.children:
        if child.tag not in ("world", "model"):
            content.report.ignored(child, f"<{child.tag}> in <sdf>")
    if len(worlds) > 1 or (worlds and models) or not (worlds or models):
        raise sdf.error("expected one <world>, or a <model>")
    scope = Scope(worlds[0] if worlds else sdf, "", version, WORLD)
    if worlds:
        _read_world(content, scope)
        return worlds[0].text("name", "world")
    alone = len(models) == 1
    for model in models:
        _read_model(content, model, scope, "" if alone else f"{_name(model)}::")
    return _name(models[0]) if alone else "models"


def _version(sdf: Element, report: Report) -> tuple[int, ...]:
    if sdf.tag != "sdf":
        raise sdf.error("expected <sdf>: this is no SDF")
    text = sdf.text("version")
    try:
        version = tuple(int(word) for word in text.split("."))[:2]
    except ValueError:
        version = ()
    if len(version) < 2 or version < OLDEST:
        raise sdf.error(
            f"version: expected 1.4 to 1.11, received {text[:60]!r}; `gz sdf --print` of Gazebo "
            "converts older files"
        )
    if version > NEWEST:
        report.wrong(sdf, f"SDF {text} is newer than 1.11, and read as that")
    return version


def _read_world(content: _Content, scope: Scope) -> None:
    world = scope.element
    _note_unknown(world, content.report)
    gravity = world.first("gravity")
    if gravity is not None:
        content.gravity = gravity.inside(3)
    for child in world.children:
        if child.tag == "model":
            _read_model(content, child, scope, f"{_name(child)}::")
        elif child.tag == "include":
            _read_include(content, child, scope)
        elif child.tag == "frame":
            _read_frame(content, child, scope)
        elif child.tag == "joint":
            content.joints.append((child, scope))


def _read_model(
    content: _Content,
    model: Element,
    outer: Scope,
    prefix: str,
    include: Element | None = None,
    version: tuple[int, ...] | None = None,
) -> None:
    """Read a model; an <include> may say where it is instead."""
    _note_unknown(model, content.report)
    static = outer.static or truth(model.first("static"))
    placed, placement = model, model.text("placement_frame", "")
    if include is not None:
        static = static or truth(include.first("static"))
        named = include.first("placement_frame")
        if named is not None or include.first("pose") is not None:
            placed, placement = include, "" if named is None else named.content
    scope = Scope(model, prefix, version or outer.version, f"{prefix}{MODEL}", static)
    own = content.frames.add(scope.frame, model, outer, pose_of(placed, content.report))
    links: list[str] = []
    nested: list[str] = []
    for child in model.children:
        if child.tag == "link":
            links.append(_read_link(content, child, scope))
        elif child.tag == "joint":
            content.joints.append((child, scope))
        elif child.tag == "frame":
            _read_frame(content, child, scope)
        elif child.tag == "model":
            nested.append(_name(child))
            _read_model(content, child, scope, f"{prefix}{nested[-1]}::")
        elif child.tag == "include":
            nested.append(_read_include(content, child, scope))
    canonical = model.text("canonical_link", "") or next(iter(links + nested), "")
    own.carrier = f"{prefix}{canonical}"[len(outer.prefix) :] if canonical else WORLD
    if placement:
        content.frames.placements.append((scope, placement))


def _read_include(content: _Content, include: Element, scope: Scope) -> str:
    """Read the model of another file, and return its name."""
    if include.text("merge", "false").lower() in ("true", "1"):
        raise include.error("merge: not read; write the parts of the model here, or leave it out")
    for child in include.children:
        if child.tag not in ("uri", "name", "pose", "static", "placement_frame"):
            content.report.ignored(child, f"<{child.tag}> in <include>")
    uri = include.first("uri")
    if uri is None or not uri.content:
        raise include.error("expected <uri>")
    root = content.includes.open(uri, uri.content)
    version = _version(root, content.report)
    models = list(root.all("model"))
    if len(models) != 1:
        raise include.error(f"expected a file with one <model>, received {len(models)}")
    given = include.first("name")
    name = _name(models[0]) if given is None else given.content
    if not name:
        raise include.error("expected a name in <name>")
    _read_model(content, models[0], scope, f"{scope.prefix}{name}::", include, version)
    content.includes.close()
    return name


def _read_link(content: _Content, link: Element, scope: Scope) -> str:
    _note_unknown(link, content.report)
    name = _name(link)
    where = pose_of(link, content.report)
    content.frames.add(scope.prefix + name, link, scope, where, carrier=None)
    content.links[scope.prefix + name] = link, scope
    content.collisions.extend(link.all("collision"))
    return name


def _read_frame(content: _Content, frame: Element, scope: Scope) -> None:
    attached = frame.text("attached_to", "")
    where = pose_of(frame, content.report)
    content.frames.add(scope.prefix + _name(frame), frame, scope, where, attached, attached)


def _read_joint(content: _Content, joint: Element, scope: Scope) -> None:
    """Enter the frame of a joint: where its child is, if it does not say."""
    name = scope.prefix + _name(joint)
    child = _end(joint, "child")
    _end(joint, "parent")
    if scope.version >= (1, 7) and name in content.frames.known:
        said = f"joint {name!r} has the name of a link or frame"
        content.report.wrong(joint, said)
    where = pose_of(joint, content.report)
    content.frames.add(joint_key(name), joint, scope, where, child, child)


def _end(joint: Element, which: str) -> str:
    end = joint.first(which)
    if end is None or not end.content:
        raise joint.error(f"expected <{which}>")
    return end.content


def _name(element: Element) -> str:
    name = element.text("name")
    if not name or name == WORLD or (name.startswith("__") and name.endswith("__")):
        raise element.error(f"name: {name!r} is reserved; give it another")
    return name


def _note_unknown(element: Element, report: Report) -> None:
    for child in element.children:
        if child.tag not in KNOWN[element.tag]:
            report.ignored(child, f"<{child.tag}> in <{element.tag}>")


# ---------------------------------------------------------------------- the model


def _build(content: _Content, name: str, root: str) -> Model:
    report, frames = content.report, content.frames
    for element, scope in content.joints:
        _read_joint(content, element, scope)
    frames.settle()
    for key in frames.known:  # rings of poses and of attachments are refused, used or not
        frames.absolute(key)
        frames.link(key)
    bodies = {WORLD: BASE}
    gravity = content.gravity
    builder = ModelBuilder(name=name) if gravity is None else ModelBuilder(gravity, name=name)
    for key, (link, scope) in content.links.items():
        bodies[key] = body_name(key, link, report)
        builder.declare_body(bodies[key], _inertia(link, key, scope, content))
        shapes = _shapes(link, "visual", report) or _shapes(link, "collision", report)
        add_solids(builder, bodies[key], shapes, content.meshes, report)
    edges, boxes = _edges(content)
    for edge in edges:  # bodies without mass between the axes of a joint
        if edge.parent not in bodies:
            bodies[edge.parent] = edge.parent
            builder.declare_body(edge.parent)
    edges = [*_standing(content), *edges]
    edges = [*_roots(content, edges, Free() if root == "free" else Fixed()), *edges]
    _choose_tree(edges, report)
    for edge in edges:
        ends, at = (bodies[edge.parent], bodies[edge.child]), (edge.X_P, edge.X_S)
        with edge.source.element.blamed() if edge.source else nullcontext():
            builder.add_joint(edge.name, *ends, edge.joint, *at, tree=edge.tree, **edge.forces)
    model = builder.build()
    for body, shift in builder.frame_shifts().items():
        if body != BASE and not shift.isclose(Pose.identity(), 0.0):
            report.frames[body] = shift
    names = (BASE, *(body.name for body in model.bodies))
    above = {body.name: names[body.parent] for body in model.bodies}
    carriers = {}
    for edge in edges:
        parent, child = bodies[edge.parent], bodies[edge.child]
        if edge.tree:
            carriers[edge.name] = child if above.get(child) == parent else parent
    geared = add_gears(boxes, edges, carriers, frames, report)
    rubbing = [
        NamedElement(
            f"friction of {edge.name}",
            Friction(carriers.get(edge.name, edge.name), edge.friction),
        )
        for edge in edges
        if edge.friction
    ]
    return replace(model, constraints=tuple(geared), elements=tuple(rubbing))


def _edges(content: _Content) -> tuple[list[Edge], list[FileJoint]]:
    """Joints between links that can move, and the gearboxes."""
    frames, edges, boxes = content.frames, list[Edge](), list[FileJoint]()
    for element, scope in content.joints:
        ends = (frames.find(scope, _end(element, end), element) for end in ("parent", "child"))
        parent, child = map(frames.link, ends)
        made = FileJoint(element, scope, scope.prefix + _name(element), parent, child)
        if parent == child:
            raise element.error(f"it connects {parent!r} with itself")
        if all(_stands(content, end) for end in (parent, child)):
            content.report.ignored(element, f"joint {made.name!r} between what stands still")
        elif made.kind == "gearbox":
            boxes.append(made)
        else:
            edges += edges_of(made, frames, content.wanted)
    return edges, boxes


def _stands(content: _Content, key: str) -> bool:
    return key == WORLD or content.links[key][1].static


def _standing(content: _Content) -> list[Edge]:
    """Links of static models, fixed to the base."""
    absolute, none = content.frames.absolute, Pose.identity()
    return [
        Edge(f"{key}(static)", WORLD, key, Fixed(), absolute(key), none)
        for key in content.links
        if _stands(content, key)
    ]


class _Groups:
    """Bodies that joints hold together (union-find)."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def of(self, body: str) -> str:
        while (above := self._above.get(body, body)) != body:
            self._above[body] = self._above.get(above, above)
            body = above
        return body

    def join(self, edge: Edge) -> bool:
        """Join what an edge connects; False if it was together before."""
        a, b = self.of(edge.parent), self.of(edge.child)
        self._above[b] = a
        return a != b


def _roots(content: _Content, edges: Iterable[Edge], joint: Free | Fixed) -> list[Edge]:
    """Joints that carry what nothing ties to the world, each at a link that is nobody's child."""
    groups, children = _Groups(), set[str]()
    for edge in edges:
        groups.join(edge)
        children.add(edge.child)
    tied = {groups.of(WORLD)}
    roots = []
    for key in (*(k for k in content.links if k not in children), *content.links):
        if groups.of(key) not in tied:
            tied.add(groups.of(key))
            at = content.frames.absolute(key)
            roots.append(Edge(f"{key}(root)", WORLD, key, joint, at, Pose.identity()))
    return roots


def _choose_tree(edges: list[Edge], report: Report) -> None:
    """Decide which joints close loops.

    In the tree are first those that stand for no joint of the file or that have forces, which a
    loop joint cannot have; then those with few freedoms, because a loop costs 6 − freedoms
    constraints; then the first in the file.
    """
    groups = _Groups()
    for edge in sorted(edges, key=lambda e: (e.source is not None, not e.anchored, e.joint.nv)):
        edge.tree = groups.join(edge)
        if not edge.tree and edge.forces and edge.source is not None:
            said = ", ".join(key for key in edge.forces if key != "rest")
            report.ignored(
                edge.source.element, f"{said} of joint {edge.name!r}, which closes a loop"
            )
            edge.forces = {}


# ---------------------------------------------------------------------- inertia


def _shapes(link: Element, tag: str, report: Report) -> list[FileShape]:
    found = []
    for element in link.all(tag):
        pose, relative = pose_of(element, report)
        if relative:
            report.ignored(element, f"<{tag}> whose pose is relative to {relative!r}")
            continue
        material = element.first("material")
        diffuse = None if material is None else material.first("diffuse")
        colour: tuple[float, ...] = ()
        if diffuse is not None:
            count = 3 if len(diffuse.content.split()) == 3 else 4
            colour = colour_of(diffuse.inside(count))
        shape = sdf_shape(element.first("geometry"), pose.R, pose.p, colour)
        if shape is not None:
            found.append(replace(shape, around=element))
    return found


def _from_shapes(
    inertial: Element, link: Element, key: str, content: _Content
) -> RigidInertia | None:
    """Inertia by <inertial auto="true">: that of the collisions, with their densities."""
    general, parts = inertial.first("density"), []
    usual = WATER if general is None else general.inside(1)[0]
    for shape in _shapes(link, "collision", content.report):
        element = shape.around or shape.element
        own = element.first("density")
        density = usual if own is None else own.inside(1)[0]
        if not density > 0.0:
            raise element.error(f"density: expected a positive number, received {density:g}")
        parts.append(shape.part(density, content.meshes, content.report))
    part = combined(parts)
    if part.mass == 0.0:
        raise inertial.error("auto: the link has no <collision> with a volume")
    return inertia_of_link(key, *part, (inertial, inertial), content.report)


def _inertia(link: Element, key: str, scope: Scope, content: _Content) -> RigidInertia | None:
    report = content.report
    inertial = link.first("inertial")
    if inertial is None:
        if not scope.static:
            said = f"link {key!r} has no <inertial>: mass 1, moments 1"
            report.assumed(link, said)
        inertial = Element("inertial", {}, link.line, link.file)
    if inertial.text("auto", "false").lower() in ("true", "1"):
        return _from_shapes(inertial, link, key, content)
    _note_unknown(inertial, report)
    mass, moments = inertial.first("mass"), inertial.first("inertia")
    if inertial.children and (mass is None or moments is None):
        missing = "mass 1" if mass is None else "moments 1"
        said = f"link {key!r} has no {missing[:-2]}: {missing}"
        report.assumed(inertial, said)
    values = dict(MOMENTS)
    for child in moments.children if moments is not None else ():
        if child.tag not in MOMENTS:
            report.ignored(child, f"<{child.tag}> in <inertia>")
            continue
        values[child.tag] = child.inside(1)[0]
    central = symmetric(*values.values())
    pose, relative = pose_of(inertial, report)
    if relative:
        raise inertial.error("<pose relative_to=…>: the pose of an inertial is in its link's frame")
    at = inertial if mass is None else mass, inertial if moments is None else moments
    amount = 1.0 if mass is None else mass.inside(1)[0]
    return inertia_of_link(key, amount, pose.p, pose.R @ central @ pose.R.T, at, report)
