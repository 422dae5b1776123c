"""Equalities of MJCF: points held together, bodies welded, joints coupled; exact ones here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...joints import Fixed, Spherical
from ..shared.xml import Element
from .poses import Placed
from .settings import flag

__all__ = ["add_equality", "add_tendon"]


def add_equality(element: Element, reading: Any) -> None:
    """Add one entry of <equality> to the model that is being read."""
    name = element.text("name", f"{element.tag} of line {element.line}")
    if not flag(element, "active", True):
        reading.report.ignored(element.line, f"{name}: not active")
    elif element.tag == "joint":
        _couple(element, name, reading)
    elif element.tag in ("connect", "weld") and "body1" in element.attributes:
        _hold(element, name, reading)
    elif element.tag in ("connect", "weld") and "site1" in element.attributes:
        _hold_sites(element, name, reading)
    else:
        reading.report.ignored(element.line, f"<equality>: {name}")


def _hold(element: Element, name: str, reading: Any) -> None:
    """A ball joint or a weld between two bodies, where they are at the start."""
    first, inside_first = reading.frame_of(element.text("body1"), element)
    second, inside_second = reading.frame_of(element.text("body2", "world"), element)
    between = reading.poses[first].inverse() @ reading.poses[second]  # second body in the first
    if element.tag == "connect":
        at = Placed(np.eye(3), np.array(element.numbers("anchor", 3, None)))
        there = between.inverse() @ at
        joint: Any = Spherical()
    else:
        numbers = element.numbers("relpose", 7, (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        if any(numbers[3:]):
            quaternion = {"quat": " ".join(map(repr, numbers[3:]))}
            written = Element(element.tag, quaternion, element.line, element.file)
            between = Placed(reading.compiler.orientation(written), np.array(numbers[:3]))
        at, there, joint = between, Placed(np.eye(3), np.zeros(3)), Fixed()
    ends = (inside_first @ at).plucker(), (inside_second @ there).plucker()
    try:
        reading.builder.add_loop(name, first, second, joint, *ends)
    except (TypeError, ValueError) as error:
        raise element.error(str(error)) from error


def _hold_sites(element: Element, name: str, reading: Any) -> None:
    """The same between two sites, wherever they are at the start."""
    (first, at), (second, there) = (
        reading.site(element.text(key), element) for key in ("site1", "site2")
    )
    joint: Any = Spherical() if element.tag == "connect" else Fixed()
    try:
        reading.builder.add_loop(name, first, second, joint, at.plucker(), there.plucker())
    except (TypeError, ValueError) as error:
        raise element.error(str(error)) from error


def add_tendon(element: Element, reading: Any) -> None:
    """Add a spatial tendon between two sites, a spring and damper; others are remarks."""
    name = element.text("name", f"tendon of line {element.line}")
    path = list(element.children)
    springy = [element.number(key, 0.0) for key in ("stiffness", "damping")]
    if element.tag != "spatial" or len(path) != 2 or any(part.tag != "site" for part in path):
        reading.report.ignored(element.line, f"<tendon>: {element.tag} {name}")
        return
    if not any(springy):
        reading.report.ignored(element.line, f"<tendon>: {name}, which neither pulls nor damps")
        return
    if min(springy) < 0.0:
        raise element.error("a negative stiffness or damping")
    (first, a), (second, b) = (reading.site(part.text("site"), part) for part in path)
    given = element.numbers(
        "springlength", len(element.text("springlength", "-1").split()), (-1.0,)
    )
    if len(set(given)) > 1:
        reading.report.ignored(element.line, f"<tendon>: {name}, slack between two lengths")
        return
    rest = given[0]
    if rest < 0.0:  # as long as it is at the start
        poses = [reading.poses_of(body) @ at for body, at in ((first, a), (second, b))]
        rest = float(np.linalg.norm(poses[0].p - poses[1].p))
    for key in ("frictionloss", "armature"):
        if element.number(key, 0.0):
            reading.report.ignored(element.line, f"<tendon>: {key} of {name}")
    try:
        reading.builder.add_spring(name, first, a.p, second, b.p, *springy, rest)
    except (TypeError, ValueError) as error:
        raise element.error(str(error)) from error


def _couple(element: Element, name: str, reading: Any) -> None:
    """The position of one joint as a polynomial in that of another, both from their ``ref``."""
    ends = [element.attributes.get(key) for key in ("joint1", "joint2")]
    for end in ends:
        if end is not None and end not in reading.joints:
            raise element.error(f"there is no joint {end!r}")
    given = element.text("polycoef", "0 1 0 0 0").split()
    factors = (element.numbers("polycoef", len(given), (0.0, 1.0, 0.0, 0.0, 0.0)) + [0.0] * 5)[:5]
    if ends[0] is None:
        raise element.error("expected an attribute joint1")
    hung = [reading.joints[end] for end in ends if end is not None]
    if any(one.kind not in ("hinge", "slide") for one in hung):
        raise element.error("joints that are coupled have one freedom")
    driven, drivers = hung[0].body, [one.body for one in hung[1:]]
    if not drivers:  # held where it is
        reading.builder.add_constraint(name, _held(driven, factors[0]))
    elif not any(factors[2:]):
        reading.builder.add_gear(name, driven, {drivers[0]: factors[1]}, offset=factors[0])
    else:
        reading.builder.add_gear(name, driven, gamma=_polynomial(drivers[0]), parameters=factors)


def _held(body: str, offset: float) -> Any:
    return lambda t, q: q[body] - offset


def _polynomial(body: str) -> Any:
    def gamma(t: Any, q: Any, p: Any) -> Any:
        x, value = q[body], 0.0
        for k in range(4, -1, -1):
            value = value * x + p[k]
        return value

    return gamma
