"""Instances of every kind of joint, and a pool from which random trees are drawn."""

from __future__ import annotations

import numpy as np

import multibody as mb
from multibody.joints import REGISTRY

# Functions have names, so that joints made of them can be pickled.


def swing(t):
    return [0.4 * np.sin(2.0 * t) + t]


def screw_in(t):
    return [0.3 * np.cos(3.0 * t), 0.2 * t * t]


def parabola(q):
    """A bead on y = x²/2, z = sin x: S depends on q."""
    return np.eye(3), np.array([q[0], 0.5 * q[0] ** 2, np.sin(q[0])])


def moving_cam(t, q):
    """A rotation whose centre time moves, and whose shift both time and q determine: σ(q, t)."""
    c, s = np.cos(q[0] + t), np.sin(q[0] + t)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return R, np.array([0.1 * c, 0.2 * s, 0.3 * q[0] * t])


def disc_on_edge(q):
    """A disc's centre in the plane; with `unicycle` it rolls without slipping sideways."""
    c, s = np.cos(q[0]), np.sin(q[0])
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return R, np.array([q[1], q[2], 0.0])


def unicycle(q, v):
    return np.array([v[0], np.cos(q[0]) * v[1], np.sin(q[0]) * v[1]])


AXES = ["z", "-z", "x", (0.0, -1.0, 0.0), (1.0, -2.0, 0.5)]

SAMPLES: dict[str, list[mb.Joint]] = {
    "revolute": [mb.Revolute(a) for a in AXES],
    "prismatic": [mb.Prismatic(a) for a in AXES],
    "helical": [mb.Helical(h, a) for h in (0.2, -0.7) for a in AXES],
    "cylindrical": [mb.Cylindrical(a) for a in AXES],
    "planar": [mb.Planar(a) for a in AXES],
    "spherical": [mb.Spherical()],
    "universal": [mb.Universal(a) for a in AXES],
    "free": [mb.Free()],
    "fixed": [mb.Fixed()],
    "angles": [
        mb.AngleSequence(s, a)
        for s in ("zyx", "zxz", "xyz", "yxy", "yz")
        for a in ("z", (1.0, -2.0, 0.5))
    ],
    "rack_pinion": [mb.RackPinion(r, a) for r in (0.3, 0.0) for a in AXES],
    "rolling_sphere": [mb.RollingSphere(0.4, a) for a in AXES],
    "constant_velocity": [mb.ConstantVelocity(a) for a in ("z", (1.0, -2.0, 0.5))],
    "driven": [
        mb.Driven(mb.Revolute("x"), swing),
        mb.Driven(mb.Cylindrical((1.0, -2.0, 0.5)), screw_in),
    ],
    "user": [
        mb.UserJoint(parabola, ["x"]),
        mb.UserJoint(moving_cam, ["angle"]),
        mb.UserJoint(disc_on_edge, ["angle", "x", "y"], ["turn", "roll"], unicycle),
    ],
}

#: What random trees are made of: names where axes and parameters can be drawn, else the samples.
POOL = [
    entry
    for kind in REGISTRY
    for entry in (SAMPLES[kind] if kind in ("driven", "user") else [kind])
    if kind in SAMPLES
]
STEADY = [
    entry for entry in POOL if isinstance(entry, str) or not entry.is_rheonomic
]  # without those that time moves
