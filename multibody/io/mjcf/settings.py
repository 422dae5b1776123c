"""What an MJCF file says once for all: the compiler's settings, and defaults by class.

An element has the attributes of its class where it has none of its own. The class is its own, or
the ``childclass`` of the nearest body around it, or "main"; classes inherit from those around them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...checks import Array
from ..shared.xml import Element
from .poses import ORIENTATIONS, orientation

__all__ = ["Compiler", "Defaults", "enter", "flag", "limited"]

MAIN = "main"
HINGE, SLIDE, BALL, FREE = "hinge", "slide", "ball", "free"  # kinds of joints
#: <default> elements one in the other, and at the top of a file.
DEEPEST, MOST = 50, 200
#: Attributes by tag, from the class farthest outside to its own.
Layers = list[dict[str, dict[str, str]]]
#: Actuators of all kinds share one entry of defaults.
SHARED = dict.fromkeys(
    ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder"), "actuator"
)


def enter(known: dict[str, Any], element: Element, value: Any, name: str | None = None) -> None:
    """Enter something under its name, which nothing else of its kind may have."""
    name = element.text("name") if name is None else name
    if name in known:
        raise element.error(f"the name {name!r} is taken by another <{element.tag}>")
    known[name] = value


def flag(element: Element, name: str, default: bool) -> bool:
    """An attribute that is "true" or "false"."""
    value = element.text(name, "true" if default else "false")
    if value not in ("true", "false"):
        raise element.error(f"{name}: expected true or false, received {value!r}")
    return value == "true"


def limited(element: Element, name: str, auto: bool) -> bool:
    """An attribute that is "true", "false" or "auto", where a range is given."""
    return auto if element.text(name, "auto") == "auto" else flag(element, name, False)


@dataclass
class Compiler:
    """Settings of <compiler>."""

    degrees: bool = True
    sequence: str = "xyz"
    from_geoms: str = "auto"
    groups: tuple[float, float] = (0.0, 5.0)
    least_mass: float = 0.0
    least_moment: float = 0.0
    total_mass: float = -1.0
    auto_limits: bool = True

    def read(self, element: Element) -> None:
        """Take over what one <compiler> says."""
        angle = element.text("angle", "degree" if self.degrees else "radian")
        if angle not in ("degree", "radian"):
            raise element.error(f"angle: expected degree or radian, received {angle!r}")
        self.degrees = angle == "degree"
        self.sequence = element.text("eulerseq", self.sequence)
        if len(self.sequence) != 3 or not set(self.sequence) <= set("xyzXYZ"):
            raise element.error(f"eulerseq: expected three axes, received {self.sequence!r}")
        if element.text("coordinate", "local") != "local":
            raise element.error("coordinate: only local ones are read; MuJoCo dropped the others")
        self.from_geoms = element.text("inertiafromgeom", self.from_geoms)
        if self.from_geoms not in ("auto", "true", "false"):
            raise element.error(
                f"inertiafromgeom: expected auto, true or false, received {self.from_geoms!r}"
            )
        low, high = element.numbers("inertiagrouprange", 2, self.groups)
        self.groups = low, high
        self.least_mass = element.number("boundmass", self.least_mass)
        self.least_moment = element.number("boundinertia", self.least_moment)
        self.total_mass = element.number("settotalmass", self.total_mass)
        self.auto_limits = flag(element, "autolimits", self.auto_limits)

    @property
    def angle(self) -> float:
        """Radians in the file's unit of angles."""
        return math.pi / 180.0 if self.degrees else 1.0

    def orientation(self, element: Element) -> Array:
        """R of an element: from its axes to those around it."""
        return orientation(element, self.angle, self.sequence)


@dataclass
class Defaults:
    """Attributes by class and tag; a class has only its own, and those around it before them."""

    classes: dict[str, list[dict[str, dict[str, str]]]] = field(
        default_factory=lambda: {MAIN: [{}]}
    )

    def read(self, elements: Iterable[Element]) -> None:
        """Take over the <default> elements at the top of a file.

        A later one adds to the first, but not to the classes that came before it.
        """
        for number, element in enumerate(elements):
            if number > MOST:
                raise element.error(
                    f"more than {MOST} times defaults at the top; no model has them"
                )
            name = element.text("class", MAIN)
            self._enter(element, name, self.classes.get(name, [{}]), 0)

    def _enter(self, element: Element, name: str, around: Layers, depth: int) -> None:
        if depth > DEEPEST:
            raise element.error(f"defaults are nested deeper than {DEEPEST}; no model's are")
        known: Layers = [*around, {}]
        self.classes[name] = known
        for child in element.children:
            if child.tag != "default":
                family = SHARED.get(child.tag, child.tag)
                known[-1].setdefault(family, {}).update(child.attributes)
        for child in element.all("default"):
            if child.text("class") in self.classes:
                raise child.error(f"the class {child.text('class')!r} is there already")
            self._enter(child, child.text("class"), known, depth + 1)

    def applied(
        self, element: Element, around: str | None = None, family: str | None = None
    ) -> Element:
        """The element with what its class says in place of what it does not.

        `family` is the entry of defaults that counts, if it is not called as the element is.
        """
        name = element.attributes.get("class", around or MAIN)
        if name not in self.classes:
            raise element.error(f"there is no class {name!r}")
        tag = family or SHARED.get(element.tag, element.tag)
        usual: dict[str, str] = {}
        for one in self.classes[name]:
            usual.update(one.get(tag, {}))
        if not ORIENTATIONS.isdisjoint(element.attributes):
            usual = {key: value for key, value in usual.items() if key not in ORIENTATIONS}
        usual.pop("class", None)
        merged = {**usual, **element.attributes}
        return Element(
            element.tag, merged, element.line, element.file, element.children, element.content
        )
