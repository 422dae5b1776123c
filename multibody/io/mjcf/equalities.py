"""Equalities of MJCF (points held together, bodies welded, joints coupled), and tendons.

Equalities are exact here. Fixed tendons are sums of joint positions, with springs and stops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...elements import JointTendon
from ...joints import Fixed, Spherical
from ...model.rules import STOP_STIFFNESS
from ..shared.xml import Element
from .poses import Placed
from .settings import HINGE, SLIDE, enter, flag, limited

__all__ = ["add_equality", "add_tendon"]


def add_equality(element: Element, number: int, reading: Any) -> None:
    """Add one entry of <equality> to the model that is being read."""
    name = element.text("name", f"{element.tag} {number}")
    if not flag(element, "active", True):
        reading.report.ignored(element, f"{name}: not active")
    elif element.tag in ("joint", "tendon"):
        _couple(element, name, reading)
    elif element.tag in ("connect", "weld") and "body1" in element.attributes:
        _hold(element, name, reading)
    elif element.tag in ("connect", "weld") and "site1" in element.attributes:
        _hold_sites(element, name, reading)
    else:
        reading.report.ignored(element, f"<equality>: {name}")


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
    with element.blamed():
        reading.builder.add_loop(name, first, second, joint, *ends)


def _hold_sites(element: Element, name: str, reading: Any) -> None:
    """The same between two sites, wherever they are at the start."""
    (first, at), (second, there) = (
        reading.site(element.text(key), element) for key in ("site1", "site2")
    )
    joint: Any = Spherical() if element.tag == "connect" else Fixed()
    with element.blamed():
        reading.builder.add_loop(name, first, second, joint, at.plucker(), there.plucker())


def add_tendon(element: Element, number: int, reading: Any) -> None:
    """Add a tendon: over joints, or a spring between two sites; others are remarks."""
    name = element.text("name", f"tendon {number}")
    springy = [element.number(key, 0.0) for key in ("stiffness", "damping")]
    if min(springy) < 0.0:
        raise element.error("a negative stiffness or damping")
    path = list(element.children)
    given = element.numbers(
        "springlength", len(element.text("springlength", "-1").split()), (-1.0,)
    )
    for key in ("frictionloss", "armature"):
        if element.number(key, 0.0):
            reading.report.ignored(element, f"<tendon>: {key} of {name}")
    if element.tag == "fixed":
        _add_fixed(element, name, springy, given, reading)
        return
    if element.tag != "spatial" or len(path) != 2 or any(part.tag != "site" for part in path):
        reading.report.ignored(element, f"<tendon>: {element.tag} {name}")
        return
    if "range" in element.attributes:
        reading.report.ignored(element, f"<tendon>: range of {name}")
    if not any(springy):
        reading.report.ignored(element, f"<tendon>: {name}, which neither pulls nor damps")
        return
    (first, a), (second, b) = (reading.site(part.text("site"), part) for part in path)
    if len(set(given)) > 1:
        reading.report.ignored(element, f"<tendon>: {name}, slack between two lengths")
        return
    rest = given[0]
    if rest == -1.0:  # as long as it is at the start
        poses = [reading.poses_of(body) @ at for body, at in ((first, a), (second, b))]
        rest = float(np.linalg.norm(poses[0].p - poses[1].p))
    with element.blamed():
        reading.builder.add_spring(name, first, a.p, second, b.p, *springy, rest)


def _add_fixed(
    element: Element, name: str, springy: list[float], given: list[float], reading: Any
) -> None:
    """A fixed tendon: its length is Σ coef × joint position, from MuJoCo's zero of positions."""
    joints: list[str] = []
    weights: list[float] = []
    offset = 0.0
    for part in element.children:
        if part.tag != "joint":
            raise part.error("expected <joint> in a fixed tendon")
        hung, weight = reading.joint(part.text("joint"), part), part.number("coef")
        if hung.kind not in (HINGE, SLIDE):
            raise part.error("joints of a fixed tendon have one freedom")
        if hung.body in joints:
            raise part.error(f"joint {part.text('joint')!r} is in the tendon already")
        joints.append(hung.body)
        weights.append(weight)
        offset += weight * hung.ref
    if not joints:
        raise element.error("expected <joint> in it")
    enter(reading.tendons, element, (joints, np.array(weights), offset), name)
    auto = set(given) == {-1.0}  # as long as it is at the start
    rest = [offset, offset] if auto else [given[0], given[-1]]
    with element.blamed():
        if any(springy):
            law = JointTendon(joints, weights, springy[0], springy[1], rest, offset)
            reading.builder.add_element(f"tendon {name}", law)
        if "range" not in element.attributes:
            return
        ends = element.numbers("range", 2, None)
        if not limited(element, "limited", reading.compiler.auto_limits):
            return
        if found := reading.wanted.stops(*ends, f"<tendon>: range of {name}", element):
            stop = JointTendon(joints, weights, STOP_STIFFNESS, 0.0, found["limits"], offset)
            reading.builder.add_element(f"range of tendon {name}", stop)


def _couple(element: Element, name: str, reading: Any) -> None:
    """A joint or tendon as a polynomial in another, both measured from the start."""
    tag, sums = element.tag, list[dict[str, float]]()
    if f"{tag}1" not in element.attributes:
        raise element.error(f"expected an attribute {tag}1")
    for end in (element.attributes.get(f"{tag}{k}") for k in (1, 2)):
        if end is None:
            sums.append({})
        elif tag == "joint":
            hung = reading.joint(end, element)
            if hung.kind not in (HINGE, SLIDE):
                raise element.error("joints that are coupled have one freedom")
            sums.append({hung.body: 1.0})
        elif (tendon := reading.tendon(end, element)) is not None:
            joints, weights, _ = tendon
            sums.append(dict(zip(joints, weights.tolist())))
        else:
            reading.report.ignored(element, f"<equality>: {name}, of no fixed tendon")
            return
    given = element.text("polycoef", "0 1 0 0 0").split()
    factors = (element.numbers("polycoef", len(given), (0.0, 1.0, 0.0, 0.0, 0.0)) + [0.0] * 5)[:5]
    left, right = sums
    both = {body: left.get(body, 0.0) - factors[1] * right.get(body, 0.0) for body in left | right}
    driven = max(left, key=lambda body: abs(both[body]))
    whole = both.pop(driven)
    with element.blamed():
        if any(factors[2:]) or not both or not whole:
            reading.builder.add_constraint(name, Coupling(left, right, factors))
        else:
            others = {body: -weight / whole for body, weight in both.items()}
            reading.builder.add_gear(name, driven, others, offset=factors[0] / whole)


class Coupling:
    """φ = Σ w q − P(Σ w' q), with the factors of a polynomial P from its constant on."""

    def __init__(
        self, left: dict[str, float], right: dict[str, float], factors: list[float]
    ) -> None:
        self.left, self.right, self.factors = left, right, factors

    def __call__(self, t: Any, q: Any) -> Any:
        """What is left of the first sum."""
        x: Any = sum(weight * q[body] for body, weight in self.right.items())
        value: Any = 0.0
        for factor in reversed(self.factors if self.right else self.factors[:1]):
            value = value * x + factor
        return sum(weight * q[body] for body, weight in self.left.items()) - value
