"""Pendulums: simple, double, of N links, spherical, and on a cart."""

from __future__ import annotations

from ..build import ModelBuilder
from ..joints import Revolute
from ..model import Model
from ..shapes import point_mass

__all__ = ["double_pendulum", "pendulum"]


def pendulum(length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Model:
    """Point mass on a massless bar that swings about y; q = 0 hangs down.

    Examples
    --------
    >>> pendulum().nv
    1
    """
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="pendulum")
    b.add_body("bob", 0, Revolute("y"), inertia=point_mass(mass, (0.0, 0.0, -length)))
    return b.build()


def double_pendulum(length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Model:
    """Two point masses on massless bars; q are the angles between successive bars.

    Examples
    --------
    >>> double_pendulum().nv
    2
    """
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="double pendulum")
    bob = point_mass(mass, (0.0, 0.0, -length))
    b.add_body("upper", 0, Revolute("y"), inertia=bob)
    b.add_body("lower", "upper", Revolute("y"), (0.0, 0.0, -length), bob)
    return b.build()
