"""Joints about and along one axis: revolute, prismatic, helical, cylindrical (book, Table 4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Array, ArrayLike, real_scalar
from .base import SAMPLE_AXES, Joint, register
from .formulae import along, rz, tilt, turn, turn_minus, turned, twist

__all__ = ["Axial", "Cylindrical", "Helical", "Prismatic", "Revolute"]


class Axial(Joint):
    """A joint whose X_J is a rotation about z by θ and a shift along z by d.

    `angle` and `shift` say which position variables these are: θ = angle·q, d = shift·q.
    The dynamics kernels know this form and need no law.
    """

    is_axial = True

    @property
    def angle(self) -> Array:
        """Coefficients of θ in the position variables."""
        return np.array([1.0 if g == "SO2" else 0.0 for g in self.groups])

    @property
    def shift(self) -> Array:
        """Coefficients of d in the position variables."""
        return np.array([1.0 if g == "R" else 0.0 for g in self.groups])

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Rotate about z, shift along z."""
        columns = np.zeros((6, self.nv))
        columns[2], columns[5] = self.angle, self.shift
        theta = sum(a * x for a, x in zip(self.angle, q))
        d = sum(a * x for a, x in zip(self.shift, q))
        return rz(theta), np.array([0.0, 0.0, d]), columns, None, None


@register
class Revolute(Axial):
    """Rotation about an axis by the angle q.

    Examples
    --------
    >>> Revolute(axis="x")
    Revolute(axis=[1.0, 0.0, 0.0])
    """

    kind = "revolute"
    coordinates = speeds = ("angle",)
    units = (2,)
    groups = ("SO2",)

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The rotation about z."""
        return [turn(E, near[0])]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Axes parallel, origins together."""
        return [*tilt(E), *turned(E, r)]

    def closure_side(self, t: Any, E: Any) -> Any:
        """Axes parallel, not antiparallel."""
        return E[2][2]


@register
class Prismatic(Axial):
    """Translation along an axis by the length q.

    Examples
    --------
    >>> Prismatic().motion([0.5]).X.r
    array([0. , 0. , 0.5])
    """

    kind = "prismatic"
    coordinates = speeds = ("shift",)
    units = (5,)
    groups = ("R",)

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The shift along z."""
        return [along(E, r)]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """No rotation, origins on the axis."""
        return [*twist(E), *turned(E, r)[:2]]

    def closure_side(self, t: Any, E: Any) -> Any:
        """No rotation, instead of half a turn."""
        return E[0][0] + E[1][1] + E[2][2] - 1.0


@register
class Helical(Axial):
    """Screw: rotation by q and translation by pitch·q.

    Parameters
    ----------
    pitch
        Metres of advance for each radian.
    axis
        Direction of the screw. Either order is understood where one of the two is a letter or
        three numbers: ``Helical("z", 0.3)`` is ``Helical(0.3, "z")``.

    Examples
    --------
    >>> Helical(0.1).motion([0.0], [2.0]).v
    array([0. , 0. , 2. , 0. , 0. , 0.2])
    """

    kind = "helical"
    coordinates = speeds = ("angle",)
    groups = ("SO2",)
    arguments = ("pitch", "axis")

    def __init__(self, pitch: float, axis: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        advance: Any
        advance, direction = pitch, axis
        letter = isinstance(pitch, str) and pitch.lstrip("+-") in ("x", "y", "z")
        if letter or np.ndim(pitch) == 1:
            advance, direction = axis, pitch
            if np.ndim(advance):
                raise TypeError(
                    f"Helical: expected a pitch in metres a radian and an axis, received only the "
                    f"axis {pitch!r}; write Helical(0.1, {pitch!r})"
                )
        super().__init__(direction)
        self.pitch = real_scalar(advance, "pitch")

    @property
    def parameters(self) -> tuple[float, ...]:
        """The pitch."""
        return (self.pitch,)

    def law_key(self) -> Any:
        """Without pitch the joint closes as a hinge does."""
        return Helical, self.pitch == 0.0

    @property
    def shift(self) -> Array:
        """d = pitch·q."""
        return np.array([self.pitch])

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Rotate about z, advance along z; the pitch is p, for code that screws share."""
        column = np.array([[0.0], [0.0], [1.0], [0.0], [0.0], [p[0]]])
        return rz(q[0]), np.array([0.0, 0.0, p[0] * q[0]]), column, None, None

    def __repr__(self) -> str:
        return f"Helical(pitch={self.pitch!r}, axis={self.axis.tolist()})"

    @classmethod
    def samples(cls) -> list[Joint]:
        """Right- and left-handed."""
        return [cls(pitch, axis) for pitch in (0.2, -0.7) for axis in SAMPLE_AXES]

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The rotation about z; the advance tells which turn it is."""
        return [turn(E, near[0] if self.pitch == 0.0 else along(E, r) / self.pitch)]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """As a cylindrical joint, and advance = pitch·angle up to whole turns of the thread."""
        u = turned(E, r)
        if self.pitch == 0.0:
            return [*tilt(E), *u]
        return [*tilt(E), u[0], u[1], p[0] * turn_minus(u[2] / p[0], E)]

    def closure_side(self, t: Any, E: Any) -> Any:
        """Axes parallel, not antiparallel."""
        return E[2][2]


@register
class Cylindrical(Axial):
    """Independent rotation about and translation along an axis; q = (angle, shift).

    Examples
    --------
    >>> Cylindrical().nv
    2
    """

    kind = "cylindrical"
    coordinates = speeds = ("angle", "shift")
    units = (2, 5)
    groups = ("SO2", "R")

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """The rotation about z, and the shift along it."""
        return [turn(E, near[0]), along(E, r)]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Axes parallel, origin on the axis."""
        return [*tilt(E), *turned(E, r)[:2]]

    def closure_side(self, t: Any, E: Any) -> Any:
        """Axes parallel, not antiparallel."""
        return E[2][2]
