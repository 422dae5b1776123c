"""Functions from which sample joints are made, for :meth:`Joint.samples` of joints from functions.

They have names, so that the joints can be pickled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["disc_on_edge", "moving_cam", "parabola", "screw_in", "swing", "unicycle"]


def swing(t: Any) -> Any:
    """A driven angle."""
    return [0.4 * np.sin(2.0 * t) + t]


def screw_in(t: Any) -> Any:
    """A driven angle and shift."""
    return [0.3 * np.cos(3.0 * t), 0.2 * t * t]


def parabola(q: Any) -> Any:
    """A bead on y = x²/2, z = sin x: S depends on q."""
    return np.eye(3), np.array([q[0], 0.5 * q[0] ** 2, np.sin(q[0])])


def moving_cam(t: Any, q: Any) -> Any:
    """A rotation whose centre time moves, and whose shift both time and q determine: σ(q, t)."""
    c, s = np.cos(q[0] + t), np.sin(q[0] + t)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return R, np.array([0.1 * c, 0.2 * s, 0.3 * q[0] * t])


def disc_on_edge(q: Any) -> Any:
    """A disc's centre in the plane; with `unicycle` it rolls without slipping sideways."""
    c, s = np.cos(q[0]), np.sin(q[0])
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return R, np.array([q[1], q[2], 0.0])


def unicycle(q: Any, v: Any) -> Any:
    """q̇ of a disc that turns and rolls."""
    return np.array([v[0], np.cos(q[0]) * v[1], np.sin(q[0]) * v[1]])
