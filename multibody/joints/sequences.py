"""Joints by successive rotations about moving axes: angle sequences, the universal joint."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ..checks import ArrayLike
from .base import SAMPLE_AXES, Joint, register
from .formulae import ZERO3, near_angle, turned

__all__ = ["AngleSequence", "Universal"]


def _primitive(axis: str, angle: Any) -> Any:
    """Passive rotation about a coordinate axis, and the axis."""
    k = "xyz".index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s = np.cos(angle), np.sin(angle)
    E: list[list[Any]] = [[0.0] * 3 for _ in range(3)]
    E[k][k] = 1.0
    E[i][i] = E[j][j] = c
    E[i][j], E[j][i] = s, -s
    return np.array(E)


@register
class AngleSequence(Joint):
    """Ball joint (or less) by successive rotations about moving axes; v = q̇.

    Parameters
    ----------
    sequence
        Intrinsic axes in order, two or three of x, y, z, neighbours different: "zyx" is yaw,
        pitch, roll (book, Eq 4.7–4.9), "zxz" Euler's angles. Three angles have a singular
        position: at ±90° of the middle one if the axes differ, at 0 and 180° if the first
        repeats.
    axis
        Direction of the sequence's z axis.

    Examples
    --------
    >>> S = AngleSequence("zyx").motion([0.1, np.pi / 2, 0.3]).S
    >>> int(np.linalg.matrix_rank(S))  # gimbal lock
    2
    """

    kind = "angles"
    arguments: ClassVar[tuple[str, ...]] = ("sequence", "axis")

    def __init__(self, sequence: str = "zyx", axis: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        super().__init__(axis)
        valid = (
            isinstance(sequence, str)
            and 2 <= len(sequence) <= 3
            and set(sequence) <= set("xyz")
            and all(a != b for a, b in pairwise(sequence))
        )
        if not valid:
            raise ValueError(
                f"sequence: expected two or three of the letters x, y, z, neighbours different "
                f"(such as 'zyx'), received {sequence!r}"
            )
        self.sequence = sequence
        n = len(sequence)
        self.coordinates = self.speeds = tuple(f"angle_{i + 1}" for i in range(n))
        self.groups = ("SO2",) * n

    def law_key(self) -> Any:
        """One law for each sequence."""
        return AngleSequence, self.sequence

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Each axis turned by all later rotations; c from their mutual rotation."""
        n = self.nv
        E: Any = np.eye(3)  # later rotations, from the last axis inwards
        axes: list[Any] = []
        for k in range(n - 1, -1, -1):
            axes.insert(0, E @ np.eye(3)["xyz".index(self.sequence[k])])
            E = E @ _primitive(self.sequence[k], q[k])
        c = np.zeros(3)
        for k in range(n):  # axis k is turned by the later rotations: Σ v_k s_k × Σ_{j>k} v_j s_j
            for j in range(k + 1, n):
                c = c + v[k] * v[j] * np.cross(axes[k], axes[j])
        zeros = [0.0, 0.0, 0.0]
        S = np.array([[*s, *zeros] for s in axes]).T
        return E, ZERO3, S, np.array([*c, *zeros]), None

    @classmethod
    def samples(cls) -> list[Joint]:
        """Sequences of two and three angles, with different and with repeated axes."""
        sequences = ("zyx", "zxz", "xyz", "yxy", "yz")
        return [cls(s, axis) for s in sequences for axis in ("z", (1.0, -2.0, 0.5))]

    def position(self, E: Any, r: Any, near: Any) -> list[Any]:
        """Angles of R = Eᵀ = R_i(a) R_j(b) …, whose third axis is k.

        Of the two triples of three angles it is the one on the reference's side of gimbal lock.
        """
        R = np.asarray(E).T
        i, j = ("xyz".index(letter) for letter in self.sequence[:2])
        k = 3 - i - j
        s = 1.0 if (j - i) % 3 == 1 else -1.0  # e_i × e_j = s e_k
        a0, b0 = near[0], near[1]
        if self.nv == 2:
            return [near_angle(s * R[k, j], R[j, j], a0), near_angle(s * R[i, k], R[i, i], b0)]
        if self.sequence[2] == self.sequence[0]:
            g = 1.0 if np.sin(b0) >= 0.0 else -1.0
            sine = g * np.sqrt(R[i, j] * R[i, j] + R[i, k] * R[i, k])
            a = near_angle(g * R[j, i], -s * g * R[k, i], a0)
            return [
                a,
                near_angle(sine, R[i, i], b0),
                near_angle(g * R[i, j], s * g * R[i, k], near[2]),
            ]
        g = 1.0 if np.cos(b0) >= 0.0 else -1.0
        cosine = g * np.sqrt(R[i, i] * R[i, i] + R[i, j] * R[i, j])
        a = near_angle(-s * g * R[j, k], g * R[k, k], a0)
        c = near_angle(-s * g * R[i, j], g * R[i, i], near[2])
        return [a, near_angle(s * R[i, k], cosine, b0), c]

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """Origins together; of two axes, the first (in the predecessor) normal to the second."""
        if self.nv == 3:
            return turned(E, r)
        first, second = ("xyz".index(letter) for letter in self.sequence)
        return [E[second][first], *turned(E, r)]


@register
class Universal(AngleSequence):
    """Universal (Cardan, Hooke) joint: x in the predecessor, then y in the successor.

    The shafts lie along z in the neutral position.

    Examples
    --------
    >>> Universal().nv
    2
    """

    kind = "universal"
    arguments = ("axis",)

    def __init__(self, axis: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        super().__init__("xy", axis)

    @classmethod
    def samples(cls) -> list[Joint]:
        """Along several axes."""
        return [cls(axis) for axis in SAMPLE_AXES]
