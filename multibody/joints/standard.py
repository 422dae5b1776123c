"""The joints of the book's Table 4.1, made consistent, and its further examples, in one place."""

from .axial import Cylindrical, Helical, Prismatic, Revolute
from .general import Fixed, Free, Planar, Spherical
from .sequences import AngleSequence, Universal
from .wheels import RackPinion, RollingSphere

__all__ = [
    "AngleSequence",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Planar",
    "Prismatic",
    "RackPinion",
    "Revolute",
    "RollingSphere",
    "Spherical",
    "Universal",
]
