"""Joints: a class each, registered by name; `check_joint` tests any of them, yours included.

Imports algebra and kernels; what a joint is, is said in ``base``.
"""

from .axial import Cylindrical, Helical, Prismatic, Revolute
from .balls import RollingBalls
from .base import REGISTRY, Joint, JointMotion, joint_names, register
from .check import JointReport, check_joint
from .constant_freedoms import Fixed, Free, Planar, Spherical
from .driven import Driven
from .from_functions import ConstantVelocity, UserJoint
from .sequences import AngleSequence, Universal
from .sphere_in_cylinder import SphereInCylinder
from .wheels import RackPinion, RollingDisc, RollingSphere

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
    "RollingBalls",
    "RollingDisc",
    "RollingSphere",
    "SphereInCylinder",
    "Spherical",
    "Universal",
    "UserJoint",
    "check_joint",
    "joint_names",
    "register",
]
