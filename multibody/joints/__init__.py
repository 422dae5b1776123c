"""Joints: a class each, registered by name; `check_joint` tests any of them, yours included."""

from .base import REGISTRY, Joint, JointMotion, joint_names, register
from .check import JointReport, check_joint
from .custom import ConstantVelocity, Driven, UserJoint
from .standard import (
    AngleSequence,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    RackPinion,
    Revolute,
    RollingSphere,
    Spherical,
    Universal,
)

__all__ = [
    "REGISTRY",
    "AngleSequence",
    "ConstantVelocity",
    "Cylindrical",
    "Driven",
    "Fixed",
    "Free",
    "Helical",
    "Joint",
    "JointMotion",
    "JointReport",
    "Planar",
    "Prismatic",
    "RackPinion",
    "Revolute",
    "RollingSphere",
    "Spherical",
    "Universal",
    "UserJoint",
    "check_joint",
    "joint_names",
    "register",
]
