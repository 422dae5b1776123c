"""Rigid-body mechanics: the algebra of rotations, frames, screws and spatial vectors.

What lives where:

- `rotations`, `quaternions`, `angles`, `rates`: every parametrisation of a rotation, conversions,
  exponential map, angular-rate matrices;
- `points`, `natural`: velocity and acceleration of points, natural coordinates;
- `frames`: `Frame` and `FrameMoving`, which compose, invert and act with operators;
- `se3`, `screws`: poses, exponential map on SE(3), linear-first twists and wrenches;
- `spatial`, `plucker`, `inertia`, `planar`: the spatial-vector algebra as types, its planar part;
- `kernels`: the same arithmetic on plain arrays, for interpreted, compiled and traced use.

Conventions: ``docs/conventions.md``. In short: 6-vectors are angular first; X_BA maps A to B
coordinates; poses (R, p) are active; quaternions are Hamilton, scalar first; angle sequences are
named by their intrinsic axes; SI units and radians.
"""

from __future__ import annotations

from . import (
    angles,
    frames,
    inertia,
    joints,
    kernels,
    natural,
    planar,
    plucker,
    points,
    quaternions,
    rates,
    rotations,
    screws,
    se3,
    spatial,
)
from .frames import Frame, FrameMoving, label_checks
from .inertia import ArticulatedInertia, CentralInertia, InverseInertia, RigidInertia, mcI
from .joints import (
    AngleSequence,
    ConstantVelocity,
    Cylindrical,
    Driven,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    RackPinion,
    Revolute,
    RollingSphere,
    Spherical,
    Universal,
    UserJoint,
    check_joint,
)
from .plucker import (
    Plucker,
    XtoV,
    rot,
    rotx,
    roty,
    rotz,
    rx,
    ry,
    rz,
    scrx,
    scry,
    scrz,
    xlt,
)
from .points import Point, Vector
from .rates import convert
from .screws import Twist, Wrench
from .se3 import Pose
from .spatial import Force, Motion, crf, crm

__all__ = [
    "AngleSequence",
    "ArticulatedInertia",
    "CentralInertia",
    "ConstantVelocity",
    "Cylindrical",
    "Driven",
    "Fixed",
    "Force",
    "Frame",
    "FrameMoving",
    "Free",
    "Helical",
    "InverseInertia",
    "Joint",
    "Motion",
    "Planar",
    "Plucker",
    "Point",
    "Pose",
    "Prismatic",
    "RackPinion",
    "Revolute",
    "RigidInertia",
    "RollingSphere",
    "Spherical",
    "Twist",
    "Universal",
    "UserJoint",
    "Vector",
    "Wrench",
    "XtoV",
    "angles",
    "check_joint",
    "convert",
    "crf",
    "crm",
    "frames",
    "inertia",
    "joints",
    "kernels",
    "label_checks",
    "mcI",
    "natural",
    "planar",
    "plucker",
    "points",
    "quaternions",
    "rates",
    "rot",
    "rotations",
    "rotx",
    "roty",
    "rotz",
    "rx",
    "ry",
    "rz",
    "screws",
    "scrx",
    "scry",
    "scrz",
    "se3",
    "spatial",
    "xlt",
]
