"""Parts of a model in a file: joints, placements, inertias, force elements."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...algebra.inertia import RigidInertia
from ...algebra.orientation import angles, quaternions, rotations
from ...algebra.se3 import Pose
from ...checks import Array, check_unit
from ...elements import Table as Signal
from ...joints import REGISTRY, Driven, Joint, Revolute
from ...model import shapes
from ...model.rules import FORCES as ELEMENTS
from ..shared.source import KeyPath, Source
from .elements import value_from
from .table import Table, nearest, plain, said

__all__ = ["FORCES", "forces_from", "inertia_from", "is_fileable", "joint_from", "placement_from"]

#: Shapes that inertias are computed from.
SHAPES: dict[str, Callable[..., RigidInertia]] = {
    "box": shapes.box,
    "cylinder": shapes.cylinder,
    "point": shapes.point_mass,
    "rod": shapes.rod,
    "sphere": shapes.sphere,
}

#: Keys of the force elements of a joint.
FORCES = (*ELEMENTS, "limits")


def is_fileable(kind: type[Joint]) -> bool:
    """Whether a joint is made from its written arguments alone; joints from functions are not."""
    return set(kind.arguments) <= set(inspect.signature(kind).parameters)


def joint_from(source: Source, path: KeyPath, value: Any) -> Joint:
    """Joint from its name, or from a table with its kind and arguments."""
    data = {"kind": value} if isinstance(value, str) else value
    any_key = data if isinstance(data, dict) else ()  # which are known depends on the kind
    kind = Table(source, path, data, any_key).text("kind")
    if kind not in REGISTRY:
        names = sorted(name for name, cls in REGISTRY.items() if is_fileable(cls))
        where = path if isinstance(value, str) else (*path, "kind")
        raise source.error(where, f"no joint is called {kind!r}; {nearest(kind, names)}")
    cls = REGISTRY[kind]
    if cls is Driven:
        return _driven(source, path, data)
    if not is_fileable(cls):
        raise source.error(
            path,
            f"the joint {kind!r} is made from Python functions, which a file cannot hold; read the "
            "model without it, or build it in Python",
        )
    table = Table(source, path, data, ("kind", *cls.arguments))
    arguments = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        if name in table:
            arguments[name] = plain(source, (*path, name), table.take(name))
        elif parameter.default is parameter.empty:
            table.take(name)  # says that it is missing
    with source.at(path):
        joint = cls(**arguments)
    return joint


def _driven(source: Source, path: KeyPath, data: Any) -> Joint:
    """A joint that time drives: by a formula, a wave, or a table through which a spline is laid."""
    table = Table(source, path, data, ("kind", "joint", "motion"))
    inner = joint_from(source, (*path, "joint"), table.take("joint"))
    motion = value_from(source, (*path, "motion"), table.take("motion"))
    if isinstance(motion, Signal):
        motion = motion.times, motion.values
    with source.at(path):
        return Driven(inner, motion)


#: Matrices whose digits were cut off are made rotations again.
CUT_OFF = 1e-12
ROTATIONS = ("matrix", "quaternion", "axis", "sequence", "angle", "angles", "degrees")


def _rotation(source: Source, path: KeyPath, value: Any) -> Array:
    """Active rotation, in one of the four ways to write it."""
    table = Table(source, path, value, ROTATIONS)
    ways = [key for key in ("matrix", "quaternion", "axis", "sequence") if key in table]
    if len(ways) != 1:
        raise source.error(
            path,
            "expected either matrix, quaternion, axis with angle, or sequence with angles; "
            f"received {said(value)}",
        )
    (way,) = ways
    angle = {"axis": "angle", "sequence": "angles"}.get(way)
    Table(source, path, value, (way,) if angle is None else (way, angle, "degrees"))
    with source.at(path):
        if way == "matrix":
            R = np.asarray(Pose(table.numbers("matrix", [(3, 3)])).R)
            return R if rotations.is_rotation(R, CUT_OFF) else rotations.nearest_rotation(R)
        if way == "quaternion":
            q = table.numbers("quaternion", [(4,)])
            return quaternions.to_matrix(
                quaternions.normalise(check_unit(q, way, 4, "divide it by its norm"))
            )
        assert angle is not None
        if (angle in table) == ("degrees" in table):
            raise source.error(path, f"expected either {angle} in radians or degrees")
        key, unit = (angle, 1.0) if angle in table else ("degrees", math.pi / 180)
        if way == "axis":
            axis = plain(source, (*path, "axis"), table.take("axis"))
            # A joint understands axes such as "y" or [1, 2, 0].
            return rotations.matrix_from_axis_angle(Revolute(axis).axis, unit * table.numbers(key))
        return angles.to_matrix(unit * table.numbers(key, [(3,)]), table.text("sequence"))


def placement_from(source: Source, path: KeyPath, value: Any) -> Pose | None:
    """Pose from a translation, or from a table with translation and rotation."""
    if value is None:
        return None
    if isinstance(value, list):  # a translation alone
        key = str(path[-1])
        around = Table(source, path[:-1], {key: value}, (key,))
        return Pose(np.eye(3), around.numbers(key, [(3,)]))
    table = Table(source, path, value, ("translation", "rotation"))
    R = np.eye(3)
    if "rotation" in table:
        R = _rotation(source, (*path, "rotation"), table.take("rotation"))
    return Pose._of(R, np.asarray(table.numbers("translation", [(3,)], np.zeros(3))))


def inertia_from(source: Source, path: KeyPath, value: Any) -> RigidInertia | None:
    """Inertia from a shape, from ten parameters, or from mass, centre and central inertia."""
    if value is None:
        return None
    if isinstance(value, dict) and "shape" in value:
        shape = Table(source, path, value, value).text("shape")
        if shape not in SHAPES:
            hint = nearest(shape, list(SHAPES))
            raise source.error((*path, "shape"), f"no shape is called {shape!r}; {hint}")
        parameters = inspect.signature(SHAPES[shape]).parameters
        table = Table(source, path, value, ("shape", *parameters))
        given = {}
        for name, parameter in parameters.items():
            if name in table:
                given[name] = table.numbers(name, [(), (3,)])
            elif parameter.default is parameter.empty:
                table.take(name)
        with source.at(path):
            return SHAPES[shape](**given)
    if isinstance(value, dict) and "parameters" in value:
        table = Table(source, path, value, ("parameters", "check"))
        numbers = table.numbers("parameters", [(10,)])
        if table.flag("check", True):
            with source.at(path):
                return RigidInertia.from_parameters(numbers)
        if numbers[0] < 0.0:
            raise table.error("parameters", f"expected mass ≥ 0, received {numbers[0]}")
        return RigidInertia._of(numbers)
    table = Table(
        source, path, value, ("mass", "com", "I_com", "check", "shape", "parameters", "density")
    )
    if "density" in table:
        raise table.error("density", "a density needs a shape; give the key shape, or mass")
    with source.at(path):
        return shapes.Inertia(
            table.numbers("mass"),
            table.numbers("com", [(3,)], np.zeros(3)),
            table.numbers("I_com", [(), (3,), (3, 3)], 0.0),
            check=table.flag("check", True),
        )


def forces_from(table: Table, joint: Joint) -> dict[str, Any]:
    """Armature, damping, springs and stops of a joint, as ModelBuilder takes them."""
    n = joint.nv
    found = {key: table.numbers(key, [(), (n,)], 0.0) for key in FORCES[:-1]}
    shapes: list[tuple[int, ...]] = [(n, 2), (n, 4), *([(2,), (4,)] if n == 1 else [])]
    return {**found, "limits": table.numbers("limits", shapes, None, infinite=True)}
