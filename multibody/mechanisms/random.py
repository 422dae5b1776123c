"""Trees drawn at random from a seed, to test and to time algorithms on."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import numpy as np

from .. import quaternions
from .._checks import Array, ArrayLike, real_scalar
from ..build import ModelBuilder
from ..inertia import RigidInertia
from ..joints import REGISTRY, Joint, joint_names
from ..model import Model
from ..rotations import from_quaternion
from ..se3 import Pose
from ..shapes import Inertia

__all__ = ["random_tree"]
