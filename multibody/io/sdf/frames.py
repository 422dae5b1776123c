"""Frames of SDF: which there are, where they are, and what they move with.

Every model, link, joint and <frame> is a frame. Its <pose> says where it is in another one, named
by `relative_to` or fixed by the kind of element: the model for links, the child for joints, the
frame that it is attached to for a <frame>. Names count inside their model; `arm::hand` is the
frame `hand` of the model `arm` in it. (The rules: sdformat.org, "Pose frame semantics", 1.4–1.11.)
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

import numpy as np

from ...algebra.orientation import quaternions
from ...algebra.se3 import Pose
from ..shared.links import roll_pitch_yaw
from ..shared.report import Report
from ..shared.xml import Element

__all__ = ["MODEL", "WORLD", "Frames", "Scope", "joint_key", "pose_of", "truth"]

WORLD = "world"
MODEL = "__model__"
#: No frame is farther away: squares of such lengths, times masses, are still numbers.
FARTHEST = 1e100


@dataclass
class Scope:
    """A model (or the world) in which names count.

    `prefix` stands before the names in it; `static` models stand still.
    """

    element: Element
    prefix: str
    version: tuple[int, ...]
    frame: str
    static: bool = False


@dataclass
class Frame:
    """A frame: its pose in the frame `base`, and the frame `carrier` that it is fixed to.

    Both are names in `scope` until `Frames.settle` finds them; a link has no carrier.
    """

    element: Element
    scope: Scope
    pose: Pose
    base: str
    carrier: str | None


@dataclass
class Frames:
    """All frames of a file, under full names."""

    known: dict[str, Frame] = field(default_factory=dict)
    placements: list[tuple[Scope, str]] = field(default_factory=list)
    _absolute: dict[str, Pose] = field(default_factory=lambda: {WORLD: Pose.identity()})
    _links: dict[str, str] = field(default_factory=lambda: {WORLD: WORLD})

    def add(
        self,
        key: str,
        element: Element,
        scope: Scope,
        where: tuple[Pose, str],
        usual: str = "",
        carrier: str | None = "",
    ) -> Frame:
        """Enter a frame.

        Parameters
        ----------
        key, element, scope
            Full name, element, and the scope in which it is written.
        where
            Its pose, and the frame that names for it; if none does, `usual`, or the scope's own.
        carrier
            What it is fixed to; None if it carries itself.
        """
        if key in self.known:
            line = self.known[key].element.line
            raise element.error(f"the name is taken in line {line}")
        pose, relative = where
        self.known[key] = Frame(element, scope, pose, relative or usual, carrier)
        return self.known[key]

    def settle(self) -> None:
        """Find the frames behind all names, now that all are known, and place models by frames."""
        for frame in self.known.values():
            base, carrier, own = frame.base, frame.carrier, frame.scope.frame
            frame.base = self.find(frame.scope, base, frame.element) if base else own
            if carrier is not None:
                frame.carrier = self.find(frame.scope, carrier, frame.element) if carrier else own
        for scope, name in self.placements:
            self._place_by(scope, name)

    def find(self, scope: Scope, name: str, element: Element) -> str:
        """Full name of a frame that is called `name` in a scope."""
        if name == WORLD:
            return WORLD
        if name == MODEL:
            return scope.frame
        full = scope.prefix + name
        for key in (full, f"{full}::{MODEL}", joint_key(full)):
            if key in self.known:
                return key
        n = len(scope.prefix)
        inside = [key[n:] for key in self.known if key.startswith(scope.prefix)]
        near = difflib.get_close_matches(name[:100], inside[:1000], 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise element.error(f"there is no link or frame {name[:100]!r} in its model{hint}")

    def link(self, key: str) -> str:
        """The link that a frame moves with, or the world."""
        path: list[str] = []
        seen: set[str] = set()
        while key not in self._links:
            frame = self.known[key]
            if key in seen:
                raise frame.element.error("what it is attached to goes round in a ring")
            seen.add(key)
            path.append(key)
            if frame.carrier is None:
                self._links[key] = key
                break
            key = frame.carrier
        found = self._links[key]
        self._links.update(dict.fromkeys(path, found))
        return found

    def absolute(self, key: str) -> Pose:
        """Pose of a frame in the world."""
        path: list[str] = []
        seen: set[str] = set()
        while key not in self._absolute:
            if key in seen:
                raise self.known[key].element.error(
                    "its <pose> is relative to frames that are relative to it in the end; give one "
                    "of them in the model's frame"
                )
            seen.add(key)
            path.append(key)
            key = self.known[key].base
        pose = self._absolute[key]
        for key in reversed(path):
            pose = self._absolute[key] = pose.compose(self.known[key].pose)
            if not np.abs(pose.p).max() < FARTHEST:
                raise self.known[key].element.error(f"it is farther than {FARTHEST:g} m away")
        return pose

    def relative(self, a: str, b: str) -> Pose:
        """Pose of frame `b` in frame `a`; exact where the file gives it or its inverse."""
        if a == b:
            return Pose.identity()
        first, second = self.absolute(a), self.absolute(b)
        if b in self.known and self.known[b].base == a:
            return self.known[b].pose
        if a in self.known and self.known[a].base == b:
            return self.known[a].pose.inverse()
        return first.inverse_compose(second)

    def _place_by(self, scope: Scope, name: str) -> None:
        """Move a model so that its frame `name` is where its pose says (`placement_frame`)."""
        model = self.known[scope.frame]
        key = self.find(scope, name, scope.element)
        inside = Pose.identity()
        seen: set[str] = set()
        while key != scope.frame:
            if key in seen or key == WORLD:
                raise scope.element.error(
                    f"placement_frame: the pose of {name!r} does not follow from this model alone"
                )
            seen.add(key)
            inside = self.known[key].pose.compose(inside)
            key = self.known[key].base
        model.pose = model.pose.compose(inside.inverse())


def joint_key(full: str) -> str:
    """Key of the frame of a joint: before 1.7, links and joints may share a name."""
    return f"joint {full}"


def truth(element: Element | None, default: bool = False) -> bool:
    """Text of an element that is true or false."""
    if element is None:
        return default
    word = element.content.lower()
    if word not in ("true", "false", "1", "0"):
        raise element.error(f"expected true or false, received {element.content[:60]!r}")
    return word in ("true", "1")


def pose_of(element: Element, report: Report) -> tuple[Pose, str]:
    """Pose of an element, and the name of the frame that it is relative to ("" for the usual)."""
    given = element.first("pose")
    if given is None:
        return Pose.identity(), ""
    if given.attributes.get("frame"):
        report.wrong(
            given,
            f"<pose frame={given.attributes['frame']!r}>: SDF 1.5 and 1.6 never said what that "
            "means, and it is passed over; 1.7 has relative_to",
        )
    relative = given.text("relative_to", "")
    kind = given.text("rotation_format", "euler_rpy")
    if not given.content:
        return Pose.identity(), relative
    if kind == "quat_xyzw":
        x, y, z, *xyzw = given.inside(7)
        quaternion = np.array([xyzw[3], *xyzw[:3]])
        size = float(np.linalg.norm(quaternion))
        if size == 0.0:
            raise given.error("expected a quaternion, received zeros")
        return Pose(quaternions.to_matrix(quaternion / size), [x, y, z]), relative
    if kind != "euler_rpy":
        raise given.error(f"rotation_format: expected euler_rpy or quat_xyzw, received {kind!r}")
    *xyz, roll, pitch, yaw = given.inside(6)
    angles = np.array([roll, pitch, yaw])
    if given.text("degrees", "false").lower() in ("true", "1"):
        angles = np.radians(angles)
    return Pose._of(roll_pitch_yaw(*angles), np.array(xyz)), relative
