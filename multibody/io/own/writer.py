"""Models to text: TOML and JSON that read back to the same model, bit for bit.

Numbers are written with as many digits as it takes to find the same double again (up to 17).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from ...algebra.inertia import RigidInertia
from ...algebra.plucker import Plucker
from ...checks import Array
from ...elements import Formula, Wave
from ...joints import REGISTRY, Driven, Joint
from ...model import Body, Constraint, Model, Solid
from ...model.graph import BASE
from .contacts import contact_data
from .elements import element_data, value_data
from .parts import is_fileable
from .reader import FORMAT
from .start import ModelStart

__all__ = ["write_model"]


def write_model(model: Model, format: str, start: ModelStart | None = None) -> str:
    """Text of a model in "toml" or "json", with the start of a first simulation."""
    if not isinstance(model, Model):
        raise TypeError(f"model: expected a Model, received {type(model).__name__}; build it first")
    data = _data(model)
    if start is not None:
        q, v = (
            None if x is None else model.check(kind, x).tolist()
            for kind, x in (("q", start.q), ("v", start.v))
        )
        given = {"q": q, "v": v, "t_end": start.t_end}
        data["start"] = {key: x for key, x in given.items() if x is not None}
    return _toml(data) if format == "toml" else _json(data)


# ---------------------------------------------------------------------- models as data


def _data(model: Model) -> dict[str, Any]:
    names = [BASE, *(body.name for body in model.bodies)]
    data: dict[str, Any] = {
        "format": FORMAT,
        "name": model.name,
        "units": "SI",
        "gravity": model.gravity.tolist(),
        "bodies": [_body(body, names) for body in model.bodies],
    }
    if model.loops:
        data["loops"] = [
            {
                "name": loop.name,
                "predecessor": names[loop.predecessor],
                "successor": names[loop.successor],
                "joint": _joint(loop.joint, f"loop {loop.name!r}"),
                **_placement("placement_predecessor", loop.placement_predecessor),
                **_placement("placement_successor", loop.placement_successor),
            }
            for loop in model.loops
        ]
    if model.constraints:
        data["gears"] = [_gear(constraint) for constraint in model.constraints]
    if model.springs:
        data["springs"] = [
            {
                "name": spring.name,
                "body_a": names[spring.body_a],
                "point_a": spring.point_a.tolist(),
                "body_b": names[spring.body_b],
                "point_b": spring.point_b.tolist(),
                "stiffness": spring.stiffness,
                "damping": spring.damping,
                "rest": spring.rest,
            }
            for spring in model.springs
        ]
    if model.contacts:
        data["contacts"] = [contact_data(contact, names) for contact in model.contacts]
    touching = {contact.name for contact in model.contacts}
    if acting := [named for named in model.elements if named.name not in touching]:
        data["elements"] = [element_data(named) for named in acting]
    if model.solids:
        data["solids"] = [_solid(solid, names) for solid in model.solids]
    return data


def _solid(solid: Solid, names: list[str]) -> dict[str, Any]:
    data: dict[str, Any] = {"body": names[solid.body], "shape": solid.shape}
    if solid.size:
        data["size"] = list(solid.size)
    data |= _placement("placement", solid.placement)
    if solid.colour:
        data["colour"] = list(solid.colour)
    if solid.vertices is not None and solid.faces is not None:
        data |= {"vertices": solid.vertices.tolist(), "faces": solid.faces.tolist()}
    return data


def _gear(constraint: Constraint) -> dict[str, Any]:
    if constraint.recipe is None:
        raise ValueError(
            f"constraint {constraint.name!r} is a Python function, which a file cannot hold; "
            "pickle the model (functions must be defined at the top of a module), or keep the code "
            "that builds it"
        )
    return {"name": constraint.name, **constraint.recipe}


def _body(body: Body, names: list[str]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": body.name,
        "parent": names[body.parent],
        "joint": _joint(body.joint, f"body {body.name!r}"),
        **_placement("placement", body.placement),
    }
    if not _same(body.inertia.array, np.zeros(10)):
        data["inertia"] = _inertia(body.inertia)
    if body.reverse:
        data["reverse"] = True
    n = body.joint.nv
    for key in ("armature", "damping", "stiffness", "rest"):
        value = getattr(body, key)
        if not _same(value, np.zeros(n)):
            data[key] = value.tolist()
    if not _same(body.limits, np.tile([-np.inf, np.inf, 0.0, 0.0], (n, 1))):
        data["limits"] = body.limits.tolist()
    return data


def _same(a: Array, b: Array) -> bool:
    """Whether all bits agree, the signs of zeros included."""
    return a.tobytes() == b.tobytes()


def _placement(key: str, X: Plucker) -> dict[str, Any]:
    data = {}
    if not _same(X.r, np.zeros(3)):
        data["translation"] = X.r.tolist()
    if not _same(X.E, np.eye(3)):
        data["rotation"] = {"matrix": X.E.T.tolist()}
    return {key: data} if data else {}


def _inertia(inertia: RigidInertia) -> dict[str, Any]:
    data: dict[str, Any] = {"parameters": inertia.array.tolist()}
    try:
        RigidInertia.from_parameters(inertia.array)
    except ValueError:
        data["check"] = False
    return data


def _joint(joint: Joint, where: str) -> dict[str, Any]:
    cls = type(joint)
    if REGISTRY.get(joint.kind) is not cls:
        raise ValueError(
            f"{where}: {cls.__name__} is not registered, so no file can name it; decorate the "
            "class with multibody.joints.register and give it a kind of its own"
        )
    if isinstance(joint, Driven) and isinstance(joint.function, Formula | Wave):
        motion = value_data(joint.function, where)
        return {"kind": joint.kind, "joint": _joint(joint.joint, where), "motion": motion}
    if not is_fileable(cls):
        raise ValueError(
            f"{where}: {cls.__name__} is made from Python functions, which a file cannot hold; "
            "drive it by a Formula or a Wave, pickle the model (functions must be defined at the "
            "top of a module), or keep the code that builds it"
        )
    return {"kind": joint.kind, **joint.specification()}


# ---------------------------------------------------------------------- data as text


def _toml(data: dict[str, Any]) -> str:
    """Tables of the top level as [[key]], everything inside them in one line."""
    lines = ["# Model for multibody.load_model: SI units, radians, poses are parent from child."]
    tables: list[str] = []
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for row in value:
                tables += ["", f"[[{key}]]"]
                tables += [f"{name} = {_inline(x, True)}" for name, x in row.items()]
        else:
            lines.append(f"{key} = {_inline(value, True)}")
    return "\n".join([*lines, *tables]) + "\n"


def _json(data: dict[str, Any]) -> str:
    """Keys of tables on lines of their own; numbers of an array stay together."""
    parts = []
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = []
            for row in value:
                members = [f"      {_text(name)}: {_inline(x, False)}" for name, x in row.items()]
                rows.append("    {\n" + ",\n".join(members) + "\n    }")
            parts.append(f"  {_text(key)}: [\n" + ",\n".join(rows) + "\n  ]")
        else:
            parts.append(f"  {_text(key)}: {_inline(value, False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _inline(value: Any, toml: bool) -> str:
    if isinstance(value, dict):
        members = [
            f"{_key(key)} = {_inline(x, toml)}" if toml else f"{_text(key)}: {_inline(x, toml)}"
            for key, x in value.items()
        ]
        return "{ " + ", ".join(members) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_inline(x, toml) for x in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and math.isinf(value) and not toml:
        return _text("inf" if value > 0 else "-inf")  # JSON has no infinity
    if isinstance(value, int | float):
        return repr(value)
    raise ValueError(f"a file cannot hold {type(value).__name__} {value!r:.60}")


def _key(name: str) -> str:
    """A key of TOML: bare where that is allowed."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(value: str) -> str:
    """A string with JSON's escapes, which TOML has too; only TOML forbids a bare DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
