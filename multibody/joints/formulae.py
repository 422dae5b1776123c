"""Formulae that several joints share: rotations, their inverses, rates of quaternions, gaps.

They are written for floats and for symbols alike. E maps predecessor to successor coordinates, r is
the origin of the successor frame in the predecessor's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "ZERO3",
    "along",
    "near_angle",
    "quaternion_of",
    "quaternion_rate",
    "quaternion_transform",
    "rz",
    "tilt",
    "turn",
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
    """E of the rotation that a quaternion of any norm stands for (book, Eq 4.12, over ‖q‖²).

    Between its steps an integrator leaves the unit sphere a little. E stays a rotation there, so
    that all algorithms agree, which take it for one.
    """
    w, x, y, z = q[0], q[1], q[2], q[3]
    s = 2.0 / (w * w + x * x + y * y + z * z)
    return np.array(
        [
            [s * (w * w + x * x) - 1.0, s * (x * y + w * z), s * (x * z - w * y)],
            [s * (x * y - w * z), s * (w * w + y * y) - 1.0, s * (y * z + w * x)],
            [s * (x * z + w * y), s * (y * z - w * x), s * (w * w + z * z) - 1.0],
        ]
    )


def quaternion_rate(q: Any, w: Any) -> list[Any]:
    """q̇ = ½ q ∘ (0, ω) for ω in body axes (book, Eq 4.13)."""
    return [
        0.5 * (-q[1] * w[0] - q[2] * w[1] - q[3] * w[2]),
        0.5 * (q[0] * w[0] - q[3] * w[1] + q[2] * w[2]),
        0.5 * (q[3] * w[0] + q[0] * w[1] - q[1] * w[2]),
        0.5 * (-q[2] * w[0] + q[1] * w[1] + q[0] * w[2]),
    ]


def near_angle(sine: Any, cosine: Any, reference: Any) -> Any:
    """Angle with this sine and cosine (times one positive number), near a reference."""
    c, s = np.cos(reference), np.sin(reference)
    return reference + np.arctan2(sine * c - cosine * s, cosine * c + sine * s)


def turn(E: Any, reference: Any) -> Any:
    """Rotation about z."""
    return near_angle(E[0, 1] - E[1, 0], E[0, 0] + E[1, 1], reference)


def along(E: Any, r: Any) -> Any:
    """Shift along the successor's z."""
    return E[2, 0] * r[0] + E[2, 1] * r[1] + E[2, 2] * r[2]


def quaternion_of(E: Any) -> list[Any]:
    """Unit quaternion, w ≥ 0: the row of 4qqᵀ, which is linear in E, with the largest diagonal."""
    from integrators.tracing import where

    R, rows = np.asarray(E).T, np.empty((4, 4), dtype=object)
    for a in range(4):
        rows[a, a] = 1.0
        for k in range(3):
            rows[a, a] = rows[a, a] + (1.0 if a in (0, k + 1) else -1.0) * R[k, k]
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        rows[0, 1 + i] = rows[1 + i, 0] = R[k, j] - R[j, k]
        rows[1 + i, 1 + j] = rows[1 + j, 1 + i] = R[i, j] + R[j, i]
    best, largest = list(rows[0]), rows[0, 0]
    for a in range(1, 4):
        larger = rows[a, a] > largest
        best = [where(larger, new, old) for new, old in zip(rows[a], best)]
        largest = where(larger, rows[a, a], largest)
    size = np.sqrt(sum(x * x for x in best)) * where(best[0] < 0.0, -1.0, 1.0)
    return [x / size for x in best]
