"""Where things are in MJCF: positions, and orientations in five ways of writing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...algebra.orientation.rotations import skew
from ...algebra.plucker import Plucker
from ...checks import Array
from ..shared.xml import Element

__all__ = ["IDENTITY", "ORIENTATIONS", "Placed", "about", "along_z", "orientation", "unit"]

ORIENTATIONS = frozenset({"quat", "axisangle", "euler", "xyaxes", "zaxis", "fromto"})
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True)
class Placed:
    """A frame in another: x outside = R x inside + p."""

    R: Array
    p: Array

    def __matmul__(self, inner: Placed) -> Placed:
        return Placed(self.R @ inner.R, self.R @ inner.p + self.p)

    def inverse(self) -> Placed:
        """The outer frame in the inner one."""
        return Placed(self.R.T, -self.R.T @ self.p)

    def plucker(self) -> Plucker:
        """As the builder takes placements."""
        return Plucker(self.R.T, self.p)


IDENTITY = Placed(np.eye(3), np.zeros(3))


def unit(element: Element, name: str, values: list[float]) -> Array:
    """A direction of length one."""
    vector = np.array(values)
    length = float(np.linalg.norm(vector))
    if not 0.0 < length < np.inf:
        raise element.error(f"{name}: expected a direction, received {values}")
    return vector / length


def about(axis: Array, angle: float) -> Array:
    """Rotation about a unit vector."""
    K = skew(axis)
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)


def along_z(direction: Array) -> Array:
    """The shortest rotation that takes z to a unit vector."""
    z = np.array(AXES["z"])
    normal = np.cross(z, direction)
    sine = float(np.linalg.norm(normal))
    if sine == 0.0:
        return np.eye(3) if direction[2] > 0 else about(np.array(AXES["x"]), np.pi)
    return about(normal / sine, float(np.arctan2(sine, direction[2])))


def orientation(element: Element, angle: float, sequence: str) -> Array:
    """R of an element, whichever way it is written; `angle` is the unit in radians."""
    given = [
        name for name in ("axisangle", "euler", "xyaxes", "zaxis") if name in element.attributes
    ]
    if len(given) > 1:
        raise element.error(f"{given[0]} and {given[1]}: one orientation is enough")
    if "axisangle" in given:
        x, y, z, turn = element.numbers("axisangle", 4, None)
        return about(unit(element, "axisangle", [x, y, z]), turn * angle)
    if "euler" in given:
        R = np.eye(3)
        for axis, turn in zip(sequence, element.numbers("euler", 3, None)):
            step = about(np.array(AXES[axis.lower()]), turn * angle)
            R = R @ step if axis.islower() else step @ R  # turning axes, or fixed ones
        return R
    if "xyaxes" in given:
        numbers = element.numbers("xyaxes", 6, None)
        x_axis = unit(element, "xyaxes", numbers[:3])
        y_given = np.array(numbers[3:])
        y_axis = unit(element, "xyaxes", list(y_given - (y_given @ x_axis) * x_axis))
        return np.column_stack([x_axis, y_axis, np.cross(x_axis, y_axis)])
    if "zaxis" in given:
        return along_z(unit(element, "zaxis", element.numbers("zaxis", 3, None)))
    w, *xyz = unit(element, "quat", element.numbers("quat", 4, (1.0, 0.0, 0.0, 0.0)))
    K = skew(np.array(xyz))
    return np.eye(3) + 2.0 * w * K + 2.0 * K @ K
