"""XML as text, and what the formats share: numbers, names, gears, losses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...checks import Array
from ...joints import Prismatic, Revolute
from ...model import Body, Model
from .report import Report

__all__ = [
    "Node",
    "central_of",
    "gear_of",
    "names_of",
    "note_losses",
    "numbers",
    "signed_axis",
    "stops",
]

#: Characters that XML cannot hold, whatever the escape.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
ESCAPES = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;",
    "\t": "&#9;", "\n": "&#10;", "\r": "&#13;",
}  # fmt: skip


#: Lines are indented up to here: of a chain of bodies most would be blanks.
DEEPEST = 40


def numbers(values: Any) -> str:
    """Numbers with as many digits as it takes to find the same doubles again."""
    return " ".join(repr(float(x)) for x in np.ravel(values))


@dataclass
class Node:
    """An element that is being written."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    content: str = ""

    def add(self, tag: str, content: Any = "", **attributes: Any) -> Node:
        """Add a child and return it; arrays and numbers become text, None is left out."""
        given = {
            key.rstrip("_"): _said(value) for key, value in attributes.items() if value is not None
        }
        self.children.append(Node(tag, given, content=_said(content)))
        return self.children[-1]

    def first(self, tag: str) -> Node | None:
        """A child with a tag, if there is one."""
        return next((child for child in self.children if child.tag == tag), None)

    def text(self) -> str:
        """The document, by a stack: chains of bodies may be deeper than Python's frames."""
        lines = ['<?xml version="1.0"?>']
        waiting: list[tuple[Node | str, int]] = [(self, 0)]
        while waiting:
            node, depth = waiting.pop()
            depth = min(depth, DEEPEST)
            if isinstance(node, str):
                lines.append("  " * depth + node)
                continue
            told = "".join(f' {key}="{_escaped(x)}"' for key, x in node.attributes.items())
            if node.content:
                inside = _escaped(node.content)
                lines.append(f"{'  ' * depth}<{node.tag}{told}>{inside}</{node.tag}>")
                continue
            if not node.children:
                lines.append(f"{'  ' * depth}<{node.tag}{told}/>")
                continue
            lines.append(f"{'  ' * depth}<{node.tag}{told}>")
            waiting.append((f"</{node.tag}>", depth))
            waiting += [(child, depth + 1) for child in reversed(node.children)]
        return "\n".join(lines) + "\n"


def _said(value: Any) -> str:
    return value if isinstance(value, str) else numbers(value)


def _escaped(text: str) -> str:
    return "".join(ESCAPES.get(c, c) for c in text)


def names_of(model: Model, taken: set[str], report: Report) -> list[str]:
    """Names of the bodies, the base first as "world", as XML can hold them."""
    found, seen = ["world"], {"world", *taken}
    for body in model.bodies:
        name = FORBIDDEN.sub("?", body.name)
        while name in seen:
            name += "_"
        if name != body.name:
            report.lost(f"the name {body.name!r}: written as {name!r}")
        seen.add(name)
        found.append(name)
    return found


def central_of(body: Body) -> tuple[float, Array, Array]:
    """Mass, centre of mass, and moments about it."""
    inertia, mass = body.inertia, float(body.inertia.mass)
    if mass > 0.0:
        return mass, np.asarray(inertia.centre, dtype=float), np.asarray(inertia.central)
    xx, xy, yy, xz, yz, zz = inertia.array[4:]
    return mass, np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def signed_axis(body: Body) -> Array:
    """Axis of a hinge or slide; a reversed one moves the other way about the same line."""
    axis = np.asarray(body.joint.axis, dtype=float)
    return -axis + 0.0 if body.reverse else axis


def stops(body: Body, usual: tuple[float, float], report: Report) -> tuple[float, float] | None:
    """Places of elastic stops; their stiffness is lost where it is not the usual one."""
    if body.joint.nv != 1 or not np.isfinite(body.limits[0, :2]).any():
        if np.isfinite(body.limits[:, :2]).any():
            report.lost(f"body {body.name!r}: stops of a joint with several freedoms")
        return None
    lower, upper, stiffness, damping = map(float, body.limits[0])
    if not np.isfinite([lower, upper]).all():
        report.lost(f"body {body.name!r}: a stop on one side only")
        return None
    if (stiffness, damping) != usual:
        report.lost(f"body {body.name!r}: stiffness and damping of its stops")
    return lower, upper


def gear_of(constraint: Any, model: Model) -> tuple[int, int, float, float] | None:
    """Driven body, driver, ratio and offset of a gear between two joints of one freedom."""
    recipe: Mapping[str, Any] | None = constraint.recipe
    if recipe is None or len(recipe["ratios"]) != 1:
        return None
    ((driver, ratio),) = recipe["ratios"].items()
    found = []
    for name in (recipe["driven"], driver):
        body = name if name in model._numbers else str(name).rpartition(".")[0]
        if body not in model._numbers:
            return None
        number = model.number(body)
        if not number or not isinstance(model.bodies[number - 1].joint, Revolute | Prismatic):
            return None
        found.append(number)
    return found[0], found[1], float(ratio), float(recipe.get("offset", 0.0))


def note_losses(model: Model, report: Report, kinds: Mapping[str, str]) -> None:
    """List parts of a model of which a format knows nothing: field → what it is called."""
    for attribute, what in kinds.items():
        for part in getattr(model, attribute):
            report.lost(f"{what} {part.name!r}")
