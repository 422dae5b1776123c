"""Actuators and tendons of a model, written as MJCF."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...elements import Actuator, JointTendon
from ...model import Model
from ..shared.markup import Node

__all__ = ["write_elements"]

RANGES = {"control_range": "ctrlrange", "force_range": "forcerange", "activation_range": "actrange"}


def write_elements(
    model: Model, root: Node, tendons: Node, nodes: list[Node], names: list[str], report: Any
) -> None:
    """Write the elements that MJCF has; others are lost."""
    actuators = root.add("actuator")
    numbers = {body.name: i for i, body in enumerate(model.bodies, 1)}
    loops = {loop.name for loop in model.loops}
    for named in model.elements:
        law, name = named.element, named.name
        on_loops = loops.intersection(getattr(law, "joints", ()))
        if isinstance(law, Actuator) and not on_loops:
            _actuator(law, name, actuators, tendons, nodes, names, numbers, report)
        elif isinstance(law, JointTendon) and not on_loops:
            tendon = _fixed(tendons, name, law, names, numbers)
            given = {"stiffness": law.stiffness, "damping": law.damping}
            tendon.attributes |= {key: repr(float(x)) for key, x in given.items()}
            # MuJoCo's length is zero in the neutral position, where a rest of −1 stands for it.
            rest = [float(x) - float(law.offset) for x in law.rest]
            if rest[0] == rest[1] == -1.0:
                rest[1] = math.nextafter(-1.0, 0.0)
            tendon.attributes["springlength"] = " ".join(map(repr, rest))
        else:
            report.lost(f"element {name!r}")


def _fixed(tendons: Node, name: str, law: Any, names: list[str], numbers: dict[str, int]) -> Node:
    tendon = tendons.add("fixed", name=name)
    for joint, weight in zip(law.joints, law.gear):
        tendon.add("joint", joint=names[numbers[joint]], coef=weight)
    return tendon


def _actuator(
    law: Actuator, name: str, actuators: Node, tendons: Node, nodes: list[Node],
    names: list[str], numbers: dict[str, int], report: Any,
) -> None:  # fmt: skip
    gain, bias = (np.array([c[0] + c[1] * law.offset, c[1], c[2]]) for c in (law.gain, law.bias))
    drive = actuators.add("general", name=name, gaintype="affine", gainprm=gain)
    if np.any(bias):
        drive.attributes |= {"biastype": "affine", "biasprm": " ".join(map(repr, bias.tolist()))}
    if law.body is not None:
        site = f"actuator {name}"
        nodes[numbers.get(str(law.body), 0)].add("site", name=site, pos=law.point)
        gear = [*law.wrench[3:], *law.wrench[:3]]
        drive.attributes["site"] = site
    elif len(law.joints) == 1:
        drive.attributes["joint"], gear = names[numbers[law.joints[0]]], law.gear
    else:
        drive.attributes["tendon"], gear = f"actuator {name}", [1.0]
        _fixed(tendons, f"actuator {name}", law, names, numbers)
    drive.attributes["gear"] = " ".join(repr(float(x)) for x in gear)
    if law.dynamics != "none":
        drive.attributes["dyntype"] = law.dynamics
        if law.dynamics == "filter":
            drive.attributes["dynprm"] = repr(float(law.time))
    for field, key in RANGES.items():
        if getattr(law, field) is not None:
            drive.attributes[key] = " ".join(repr(float(x)) for x in getattr(law, field))
    if callable(law.control) or isinstance(law.control, str) or law.control or law.initial:
        report.lost(f"element {name!r}: its input and its activation at the start")
