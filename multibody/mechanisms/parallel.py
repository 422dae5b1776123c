"""Parallel robots: Stewart platform and Delta robot. Gravity is along −z."""

from __future__ import annotations

import numpy as np

from ..algebra.orientation.rotations import Rz
from ..algebra.se3 import Pose
from ..checks import Array
from ..joints import Free, Prismatic, Revolute, Spherical, Universal
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import cylinder
from .linkages import lengths_of
from .registry import register

__all__ = ["delta_robot", "free_stewart_platform"]


def _universal_angles(direction: Array) -> tuple[float, float]:
    """Angles with which a universal joint points its z axis in a direction."""
    d = direction / np.linalg.norm(direction)
    return float(np.arctan2(-d[1], d[2])), float(np.arcsin(d[0]))


# ---------------------------------------------------------------------- Stewart platform


def stewart_position(model: Model, height: float = 1.0) -> Array:
    """Position with the platform level above the base."""
    q = model.neutral()
    at = dict(zip((b.name for b in model.bodies), model.q_index))
    q[at["platform"]][6] = height
    for loop in model.loops:
        leg = loop.name
        foot = model.bodies[model.number(f"{leg}_lower") - 1].placement.r
        top = loop.placement_successor.r + np.array([0.0, 0.0, height])
        q[at[f"{leg}_lower"]] = _universal_angles(top - foot)
        q[at[f"{leg}_upper"]] = np.linalg.norm(top - foot)
    return q


@register(
    q0=stewart_position,
    t_end=0.5,
    source="six degrees of freedom; free fall of the platform against the legs' inertia; energy",
)
def free_stewart_platform(
    base_radius: float = 1.0,
    platform_radius: float = 0.5,
    platform_mass: float = 20.0,
    leg_mass: float = 2.0,
    spread: float = 0.25,
    gravity: float = 9.81,
) -> Model:
    """Stewart (Gough) platform that nothing holds: six legs of variable length, six freedoms.

    The platform floats (a `Free` joint). Each leg stands on a universal joint and has an upper
    part that slides in the lower one; ball joints between the upper parts and the platform close
    six loops. The sliding joints are the ones to actuate, ``leg1_upper`` … ``leg6_upper``, as the
    servos of ``stewart_platform`` do.

    Parameters
    ----------
    base_radius, platform_radius
        Of the circles on which the legs end.
    platform_mass, leg_mass
        Mass of the platform, and of each of the two parts of a leg.
    spread
        Half the angle between neighbouring legs of a pair, in radians.
    gravity
        In m/s².

    Examples
    --------
    >>> from multibody import mobility
    >>> model = free_stewart_platform()
    >>> print(mobility(model, stewart_position(model)))
    mobility 6 = 24 freedoms of the tree − 18 independent of 18 constraints
    """
    R, r = lengths_of(
        "free_stewart_platform", base_radius=base_radius, platform_radius=platform_radius
    )
    build = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="falling Stewart platform")
    build.add_body("platform", 0, Free(), inertia=cylinder(r, 0.1 * r, mass=platform_mass))
    half = 0.4 * R  # half the length of a leg's parts
    lower = cylinder(0.03 * R, 2 * half, mass=leg_mass, com=(0.0, 0.0, half))
    upper = cylinder(0.02 * R, 2 * half, mass=leg_mass, com=(0.0, 0.0, -half))
    for k in range(6):
        pair, sign = k // 2, (-1.0) ** k
        # Feet come in pairs at 0°, 120°, 240°, heads in pairs between them.
        foot = 2 * np.pi * pair / 3 + sign * spread
        head = foot + sign * (np.pi / 3 - 2 * spread)
        name = f"leg{k + 1}"
        place = R * np.array([np.cos(foot), np.sin(foot), 0.0])
        build.add_body(f"{name}_lower", 0, Universal(), place, lower)
        build.add_body(f"{name}_upper", f"{name}_lower", Prismatic("z"), inertia=upper)
        point = r * np.array([np.cos(head), np.sin(head), 0.0])
        build.add_loop(name, f"{name}_upper", "platform", Spherical(), None, point)
    return build.build()


# ---------------------------------------------------------------------- Delta robot


def delta_position(model: Model, arm_angle: float = 0.4) -> Array:
    """Position with all three arms at the same angle below the horizontal."""
    q = model.neutral()
    at = dict(zip((b.name for b in model.bodies), model.q_index))
    first = model.bodies[model.number("arm1") - 1]
    radius = float(np.linalg.norm(first.placement.r))
    rod_body = model.bodies[model.number("rod1a") - 1]
    arm = float(rod_body.placement.r[0])
    loop = model.loops[0]
    length = float(loop.placement_predecessor.r[2])
    platform = float(np.abs(loop.placement_successor.r @ [1.0, 0.0, 0.0]))
    # In the plane of an arm: elbow, and the platform's corner below and inside of it.
    inward = platform - (radius + arm * np.cos(arm_angle))
    if length <= abs(inward):
        raise ValueError(
            f"delta_robot: rods of {length:.6g} do not reach the platform, {abs(inward):.6g} away"
        )
    depth = np.sqrt(length**2 - inward**2)
    q[at["platform"]][6] = -arm * np.sin(arm_angle) - depth
    # Seen from the arm, which is turned by arm_angle about y, the rod's z axis points there.
    c, s = np.cos(arm_angle), np.sin(arm_angle)
    # Its universal joint turns about the elbow's axis first, the arm's y.
    direction = np.array([0.0, -(c * inward + s * depth), s * inward - c * depth])
    for k in (1, 2, 3):
        q[at[f"arm{k}"]] = arm_angle
        for side in "ab":
            q[at[f"rod{k}{side}"]] = _universal_angles(direction)
    return q


@register(
    q0=delta_position,
    t_end=0.2,
    source="three degrees of freedom: the platform never turns; R. Clavel, 1988",
)
def delta_robot(
    base_radius: float = 0.2,
    platform_radius: float = 0.05,
    arm: float = 0.3,
    rod_length: float = 0.6,
    arm_mass: float = 0.5,
    rod_mass: float = 0.1,
    platform_mass: float = 0.3,
    gravity: float = 9.81,
) -> Model:
    """Delta robot: three arms carry a platform over parallelograms of rods, so that it never turns.

    Arms 1 to 3 turn about horizontal hinges, 120° apart. Rods ka and kb hang on arm k by universal
    joints and hold the platform, which floats, by ball joints: six loops, three degrees of freedom.
    These joints turn about the axis of the elbow first and then sideways, so that an arm and its
    rods may stretch out in one line; they lock only where a rod points along the elbow's axis.
    Without motors it falls: from the registered start arms and rods are stretched after 0.27 s,
    and after 0.31 s all rods are parallel, which is a singular position with mobility 4.

    Parameters
    ----------
    base_radius, platform_radius
        Distances of the arms' hinges and of the rods' ends from the axis.
    arm, rod_length
        Lengths of arms and rods.
    arm_mass, rod_mass, platform_mass
        In kg; rod_mass is that of each of the six rods.
    gravity
        In m/s².

    Examples
    --------
    >>> from multibody import mobility
    >>> model = delta_robot()
    >>> print(mobility(model, delta_position(model)))
    mobility 3 = 21 freedoms of the tree − 18 independent of 18 constraints
    """
    R, r, a, b = lengths_of(
        "delta_robot",
        base_radius=base_radius,
        platform_radius=platform_radius,
        arm=arm,
        rod_length=rod_length,
    )
    build = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="Delta robot")
    build.add_body("platform", 0, Free(), inertia=cylinder(r, 0.2 * r, mass=platform_mass))
    apart = 0.5 * r
    for k in (1, 2, 3):
        turn = Rz(2 * np.pi * (k - 1) / 3)
        out = turn @ np.array([R, 0.0, 0.0])
        link = cylinder(0.02, a, mass=arm_mass, axis=(1.0, 0.0, 0.0), com=(a / 2, 0.0, 0.0))
        build.add_body(f"arm{k}", 0, Revolute("y"), Pose(turn, out), link)
        for side, shift in (("a", -apart), ("b", apart)):
            thin = cylinder(0.01 * b, b, mass=rod_mass, com=(0.0, 0.0, b / 2))
            elbow = Pose(Rz(np.pi / 2), (a, shift, 0.0))
            build.add_body(f"rod{k}{side}", f"arm{k}", Universal(), elbow, thin)
            corner = turn @ np.array([r, shift, 0.0])
            name = f"ball{k}{side}"
            build.add_loop(
                name, f"rod{k}{side}", "platform", Spherical(), (0.0, 0.0, b), Pose(turn, corner)
            )
    return build.build()
