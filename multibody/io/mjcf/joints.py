"""Joints of MJCF: their kinds, axes and forces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...checks import Array
from ...joints import Free, Joint, Prismatic, Revolute, Spherical
from ..shared.xml import Element
from .poses import Placed, unit
from .settings import BALL, FREE, HINGE, SLIDE, limited

__all__ = ["Hung", "joint_of"]


@dataclass
class Hung:
    """A joint as it is in the model: the body that it moves, and how its positions are shifted."""

    body: str
    kind: str
    ref: float
    bounds: tuple[float, float] | None = None  # of what its actuators do together
    friction: float = 0.0


def joint_of(
    joint: Element, pose: Placed, reading: Any
) -> tuple[Joint, Array, Hung, dict[str, Any]]:
    """A joint, where it stands in the body, how it is known, and its forces."""
    kind = FREE if joint.tag == "freejoint" else joint.text("type", HINGE)
    if kind not in (HINGE, SLIDE, BALL, FREE):
        raise joint.error(f"type: expected hinge, slide, ball or free, received {kind!r}")
    anchor = pose.R @ np.array(joint.numbers("pos", 3, (0.0, 0.0, 0.0))) + pose.p
    unit_of = reading.compiler.angle if kind == HINGE else 1.0
    hung = Hung("", kind, unit_of * joint.number("ref", 0.0) if kind in (HINGE, SLIDE) else 0.0)
    if kind == FREE:
        return Free(), np.zeros(3), hung, _forces(joint, hung, unit_of, reading)
    forces = _forces(joint, hung, unit_of, reading)
    if kind == BALL:
        return Spherical(), anchor, hung, forces
    axis = pose.R @ unit(joint, "axis", joint.numbers("axis", 3, (0.0, 0.0, 1.0)))
    if kind == SLIDE:
        return Prismatic(axis=axis), np.zeros(3), hung, forces
    return Revolute(axis=axis), anchor, hung, forces


def _forces(joint: Element, hung: Hung, unit_of: float, reading: Any) -> dict[str, Any]:
    report, wanted, several = reading.report, reading.wanted, hung.kind in (BALL, FREE)
    said = f"joint {joint.text('name', '')!r}" if "name" in joint.attributes else "a joint"
    forces: dict[str, Any] = {}
    if joint.tag == "freejoint":
        return {}
    for name in ("damping", "stiffness", "armature"):
        value = wanted.not_negative(joint.number(name, 0.0), name, joint)
        if (value and several and name != "damping") or (value and hung.kind == FREE):
            report.ignored(joint, f"{name} of a {hung.kind} joint")
        elif value:
            forces[name] = value
    if "stiffness" in forces:
        forces["rest"] = unit_of * joint.number("springref", 0.0) - hung.ref
    loss = joint.number("frictionloss", 0.0)
    hung.friction = wanted.dry_friction(loss, f"frictionloss of {said}", joint, not several)
    if "actuatorfrcrange" in joint.attributes and not several:
        if limited(joint, "actuatorfrclimited", reading.compiler.auto_limits):
            low, high = joint.numbers("actuatorfrcrange", 2, None)
            hung.bounds = low, high
    if "springdamper" in joint.attributes and any(joint.numbers("springdamper", 2, None)):
        report.ignored(joint, "springdamper: numbers that MuJoCo finds from inertias")
    if "range" in joint.attributes and not several:
        low, high = (unit_of * x - hung.ref for x in joint.numbers("range", 2, None))
        if limited(joint, "limited", reading.compiler.auto_limits):
            forces |= wanted.stops(low, high, f"range of {said}", joint)
    return forces
