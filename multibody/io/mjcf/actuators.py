"""Actuators of MJCF as elements: an input each, a force that is linear in it, in length and speed.

The short forms (motor, position, …) are settings of <general>, whose law the element has. What no
such law expresses (muscles, adhesion, cranks, tendons over sites) is listed in the report.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...checks import Array
from ...elements import Actuator
from ..shared.xml import Element
from .settings import BALL, HINGE, SHARED, SLIDE, limited

__all__ = ["add_actuators"]

RANGES = {"ctrl": "control_range", "force": "force_range", "act": "activation_range"}
DYNAMICS = {"none": "none", "integrator": "integrator", "filter": "filter", "filterexact": "filter"}


def add_actuators(
    elements: list[Element], controls: Mapping[str, Any] | None, reading: Any
) -> None:
    """Add what stands in <actuator>, with the given inputs (zero for others)."""
    given, made = dict(controls or {}), []
    for number, element in enumerate(elements):
        name = element.text("name", f"actuator{number}")
        if element.tag not in SHARED:
            reading.report.ignored(element, f"<actuator>: {element.tag} {name}")
            continue
        found = _transmission(element, name, reading)
        law = None if found is None else _law(element, name, reading)
        if found is not None and law is not None:
            made.append((name, element, {**found, **law}))
    if unknown := set(given) - {name for name, *_ in made}:
        raise ValueError(
            f"controls: there is no actuator {sorted(unknown)[0]!r} that was read; there are "
            f"{[name for name, *_ in made]}"
        )
    uses = Counter(joint for *_, fields in made for joint in fields.get("joints", ()))
    pushed = Counter(fields["body"] for *_, fields in made if "body" in fields)
    for body, parent in reversed(reading.parents.items()):  # a push acts on all joints below it
        pushed[parent] += pushed[body]
    uses.update(pushed)
    bounds = {hung.body: hung.bounds for hung in reading.order if hung.bounds is not None}
    for name, element, fields in made:
        for joint in bounds.keys() & fields.get("joints", ()):
            _cut_in_joint(joint, bounds[joint], fields, uses[joint], element, reading)
        with element.blamed():
            drive = Actuator(control=given.get(name, 0.0), **fields)
            own = name if name not in reading.frames else f"{name}(actuator)"
            reading.builder.add_element(own, drive)


def _transmission(element: Element, name: str, reading: Any) -> dict[str, Any] | None:
    """What an actuator acts on; None (and a remark) for what has no place here."""
    given = element.text("gear", "1").split()
    if not given:
        raise element.error("gear: expected one to six numbers, received none")
    gear = element.numbers("gear", len(given), (1.0,))
    for key in ("joint", "jointinparent"):
        if key in element.attributes:
            hung = reading.joint(element.text(key), element)
            if hung.kind in (HINGE, SLIDE):
                return {"joints": [hung.body], "gear": gear[:1], "offset": gear[0] * hung.ref}
            if hung.kind == BALL and key == "joint":
                return {"joints": [hung.body], "gear": (gear + [0.0] * 3)[:3]}
            what = f"on the {hung.kind} joint {element.text(key)!r}"
            break
    else:
        what = "on what is no joint, no site and no fixed tendon"
        tendon = reading.tendon(element.attributes.get("tendon", ""), element)
        if tendon is not None:
            joints, weights, offset = tendon
            return {"joints": joints, "gear": gear[0] * weights, "offset": gear[0] * offset}
        if "site" in element.attributes and "refsite" not in element.attributes:
            body, at = reading.site(element.text("site"), element)
            force, couple = np.reshape((gear + [0.0] * 6)[:6], (2, 3))
            wrench = np.concatenate([at.R @ couple, at.R @ force])
            return {"body": body, "point": at.p, "wrench": wrench}
    reading.report.ignored(element, f"<actuator>: {element.tag} {name}, {what}")
    return None


def _law(element: Element, name: str, reading: Any) -> dict[str, Any] | None:
    """Gain, bias, dynamics and ranges; None (and a remark) for laws that are not linear."""
    read = _general if element.tag == "general" else _short
    found = read(element, name, reading)
    if found is None:
        return None
    for what, key in RANGES.items():
        usual = what == "act" and element.tag == "intvelocity"
        if f"{what}range" in element.attributes and limited(
            element, f"{what}limited", usual or reading.compiler.auto_limits
        ):
            found[key] = element.numbers(f"{what}range", 2, None)
    if element.number("inheritrange", 0.0):
        reading.report.ignored(element, f"<actuator>: inheritrange of {name}")
    return found


def _general(element: Element, name: str, reading: Any) -> dict[str, Any] | None:
    kinds = {key: element.text(f"{key}type", usual) for key, usual in
             (("dyn", "none"), ("gain", "fixed"), ("bias", "none"))}  # fmt: skip
    known = {"dyn": DYNAMICS, "gain": ("fixed", "affine"), "bias": ("none", "affine")}
    for key, kind in kinds.items():
        if kind not in known[key]:
            reading.report.ignored(element, f"<actuator>: {name}, {key}type {kind}")
            return None
    prm = {key: _prm(element, f"{key}prm", (1.0, 0.0, 0.0) if key != "bias" else (0.0,) * 3)
           for key in kinds}  # fmt: skip
    gain = prm["gain"] if kinds["gain"] == "affine" else np.array([prm["gain"][0], 0.0, 0.0])
    bias = prm["bias"] if kinds["bias"] == "affine" else np.zeros(3)
    found: dict[str, Any] = {"gain": gain, "bias": bias, "dynamics": DYNAMICS[kinds["dyn"]]}
    if found["dynamics"] == "filter":
        found["time"] = _time(prm["dyn"][0])
    return found


def _prm(element: Element, name: str, usual: tuple[float, ...]) -> Array:
    count = len(element.attributes.get(name, "").split())
    given = element.numbers(name, count, usual)
    return np.array([*given, *usual[len(given) :]])[:3]


def _time(given: float) -> float:
    return max(given, 1e-15)  # MuJoCo's mjMINVAL


def _short(element: Element, name: str, reading: Any) -> dict[str, Any]:
    gained = _prm(element, "gainprm", (1.0, 0.0, 0.0))[0]
    zero, tag = np.zeros(3), element.tag
    if tag == "motor":
        return {"gain": np.array([1.0, 0.0, 0.0]), "bias": zero}
    if tag == "cylinder":
        area = element.number("area", gained)
        if "diameter" in element.attributes:
            area = math.pi / 4.0 * element.number("diameter") ** 2
        return {
            "gain": np.array([area, 0.0, 0.0]),
            "bias": np.array(element.numbers("bias", 3, (0.0, 0.0, 0.0))),
            "dynamics": "filter",
            "time": _time(element.number("timeconst", 1.0)),
        }
    if tag in ("velocity", "damper"):
        kv = element.number("kv", gained if tag == "velocity" else 1.0)
        if kv < 0.0:
            raise element.error(f"kv: expected a number ≥ 0, received {kv:g}")
        damping = np.array([0.0, 0.0, -kv])
        held = {"gain": np.array([kv, 0.0, 0.0]), "bias": damping}
        return held if tag == "velocity" else {"gain": damping, "bias": zero}
    kp, kv = element.number("kp", gained), element.number("kv", 0.0)
    if min(kp, kv) < 0.0:
        raise element.error(f"kp, kv: expected numbers ≥ 0, received {kp:g} and {kv:g}")
    if element.number("dampratio", 0.0):
        said = (
            f"<actuator>: dampratio of {name}, which MuJoCo makes a damping from inertias; say kv"
        )
        reading.report.ignored(element, said)
    found: dict[str, Any] = {"gain": np.array([kp, 0.0, 0.0]), "bias": np.array([0.0, -kp, -kv])}
    if tag == "intvelocity":
        return found | {"dynamics": "integrator"}
    if time := element.number("timeconst", 0.0):
        found |= {"dynamics": "filter", "time": _time(time)}
    return found


def _cut_in_joint(
    body: str,
    bounds: tuple[float, float],
    fields: dict[str, Any],
    uses: int,
    element: Element,
    reading: Any,
) -> None:
    """The bounds that a joint has for the force of its actuators."""
    gear = float(fields["gear"][0])
    if uses > 1 or len(fields["joints"]) > 1 or len(fields["gear"]) > 1 or not gear:
        said = f"actuatorfrcrange of the joint of {body!r}, which several actuators share"
        reading.report.ignored(element, said)
        return
    low, high = sorted(x / gear for x in bounds)
    own = fields.get("force_range", (-math.inf, math.inf))
    # Cut once by the actuator, then by the joint; the same where the two ranges overlap.
    fields["force_range"] = [min(max(x, low), high) for x in own]
