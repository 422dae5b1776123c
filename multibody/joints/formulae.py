"""Formulae that several joints share: rotations, rates of quaternions, gaps of loop joints.

They are written for floats and for symbols alike. E maps predecessor to successor coordinates, r is
the origin of the successor frame in the predecessor's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.vectors import quaternion_to_transform

__all__ = [
    "ZERO3",
    "quaternion_rate",
    "quaternion_transform",
    "rz",
    "tilt",
    "turn_minus",
    "turned",
    "twist",
]

ZERO3 = np.zeros(3)


def rz(angle: Any) -> Any:
    """E of a rotation about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def turned(E: Any, r: Any) -> list[Any]:
    """E r: the origin of the successor frame in its own axes."""
    return [E[i][0] * r[0] + E[i][1] * r[1] + E[i][2] * r[2] for i in range(3)]


def twist(E: Any) -> list[Any]:
    """½ [E₂₃ − E₃₂, E₃₁ − E₁₃, E₁₂ − E₂₁]: the rotation vector of a small rotation."""
    return [0.5 * (E[1][2] - E[2][1]), 0.5 * (E[2][0] - E[0][2]), 0.5 * (E[0][1] - E[1][0])]


def tilt(E: Any) -> list[Any]:
    """How far the two z axes are apart."""
    return [E[1][2], -E[0][2]]


def turn_minus(angle: Any, E: Any) -> Any:
    """angle − θ reduced to one turn, where θ is the rotation about z; so θ may count turns."""
    theta = np.arctan2(E[0][1] - E[1][0], E[0][0] + E[1][1])
    return np.arctan2(np.sin(angle - theta), np.cos(angle - theta))


def quaternion_transform(q: Any) -> Any:
    """E of the rotation that a unit quaternion stands for."""
    E = np.empty((3, 3), dtype=object if np.asarray(q).dtype == object else float)
    quaternion_to_transform(q, E)
    return E


def quaternion_rate(q: Any, w: Any) -> list[Any]:
    """q̇ = ½ q ∘ (0, ω) for ω in body axes (book, Eq 4.13)."""
    return [
        0.5 * (-q[1] * w[0] - q[2] * w[1] - q[3] * w[2]),
        0.5 * (q[0] * w[0] - q[3] * w[1] + q[2] * w[2]),
        0.5 * (q[3] * w[0] + q[0] * w[1] - q[1] * w[2]),
        0.5 * (-q[2] * w[0] + q[1] * w[1] + q[0] * w[2]),
    ]
