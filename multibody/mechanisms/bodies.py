"""Single bodies that turn, roll and fly, and a satellite with arms."""

from __future__ import annotations

import numpy as np

from ..algebra.orientation.rotations import Rz
from ..algebra.se3 import Pose
from ..checks import Array, ArrayLike, real_array
from ..joints import Free, Revolute, RollingSphere, Spherical
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import Inertia, box, rod, sphere
from .registry import register

__all__ = ["free_body", "heavy_top", "rolling_sphere", "satellite", "spinning_top"]


def _tilted(model: Model, angle: float = 0.5) -> Array:
    """Position with the (only) quaternion turned about x."""
    q = model.neutral()
    q[:2] = np.cos(angle / 2), np.sin(angle / 2)
    return q


@register(
    v0=[0.01, 1.0, 0.01, 0.0, 0.0, 0.0],
    t_end=40.0,
    source="rotation about the middle axis, by Jacobi's elliptic functions (Euler's equations)",
)
def free_body(
    moments: ArrayLike = (1.0, 2.0, 3.0), mass: float = 1.0, gravity: float = 0.0
) -> Model:
    """Rigid body in free flight; about its middle axis it tumbles (Euler, Dzhanibekov).

    Parameters
    ----------
    moments
        Principal moments of inertia, along the body's axes.
    mass, gravity
        In kg and m/s²; gravity points along −z and does not turn the body.

    Examples
    --------
    >>> free_body().nq, free_body().nv
    (7, 6)
    """
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="free body")
    b.add_body("body", 0, Free(), inertia=Inertia(mass, I_com=real_array(moments, "moments", (3,))))
    return b.build()


@register(
    v0=[0.5, 0.0, 8.0, 0.0, 0.0, 5.0],
    t_end=1.0,
    source="closed solution: spin (I−J)/I ω_z, precession √(ω_x² + ω_y² + (ω_z J/I)²)",
)
def spinning_top(
    transverse: float = 0.04, axial: float = 0.02, mass: float = 1.0, gravity: float = 9.81
) -> Model:
    """Axisymmetric body thrown into the air: its centre flies a parabola while its axis precesses.

    Parameters
    ----------
    transverse, axial
        Moments of inertia about the centre of mass: across and along the body's z axis.
    mass, gravity
        In kg and m/s².

    Examples
    --------
    >>> spinning_top().bodies[0].joint
    Free()
    """
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="spinning top")
    b.add_body("top", 0, Free(), inertia=Inertia(mass, I_com=(transverse, transverse, axial)))
    return b.build()


@register(
    q0=_tilted,
    v0=[0.0, 0.0, 50.0],
    source="conserved: energy, moment of momentum about the vertical and about the body's axis; "
    "steady precession where I Ω² cos θ − J ω_z Ω + m g l = 0 (Lagrange's top)",
)
def heavy_top(
    mass: float = 1.0,
    distance: float = 0.2,
    transverse: float = 0.02,
    axial: float = 0.01,
    gravity: float = 9.81,
) -> Model:
    """Lagrange's top: an axisymmetric body on a ball joint, its centre of mass on its z axis.

    Parameters
    ----------
    mass
        In kg.
    distance
        From the pivot to the centre of mass.
    transverse, axial
        Moments of inertia about the centre of mass: across and along the axis.
    gravity
        In m/s², along −z.

    Examples
    --------
    >>> heavy_top().q_names
    ('top.w', 'top.x', 'top.y', 'top.z')
    """
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="heavy top")
    inertia = Inertia(mass, (0.0, 0.0, distance), (transverse, transverse, axial))
    b.add_body("top", 0, Spherical(), inertia=inertia)
    return b.build()


@register(t_end=2.0, source="acceleration of the centre (5/7) g sin β")
def rolling_sphere(
    slope: float = 0.3, radius: float = 0.1, mass: float = 1.0, gravity: float = 9.81
) -> Model:
    """Solid sphere that rolls down a plane without slipping.

    Base coordinates are those of the plane: x points down the slope, z is its normal.

    Parameters
    ----------
    slope
        Angle β of the plane, in radians.
    radius, mass, gravity
        In m, kg and m/s².

    Examples
    --------
    >>> from multibody import FD_x
    >>> model = rolling_sphere(slope=np.pi / 2)
    >>> FD_x(model, [*model.neutral(), 0, 0, 0])[-3:].round(6)  # about y: (5/7) g / radius
    array([ 0.      , 70.071429,  0.      ])
    """
    down = (gravity * np.sin(slope), 0.0, -gravity * np.cos(slope))
    b = ModelBuilder(gravity=down, name="rolling sphere")
    b.add_body("sphere", 0, RollingSphere(radius), inertia=sphere(radius, mass=mass))
    return b.build()


@register(
    v0=lambda model: [0.0] * 6 + [1.0, -0.5] * ((model.nv - 6) // 2),
    source="conserved: energy, momentum and moment of momentum",
)
def satellite(
    arms: int = 2,
    mass: float = 100.0,
    size: ArrayLike = (1.0, 1.0, 1.0),
    arm_mass: float = 5.0,
    arm_length: float = 1.0,
) -> Model:
    """Box in free flight without gravity, with arms of two rods each.

    The arms stick out around the z axis. Each has a shoulder and an elbow that turn about the
    horizontal axis across the arm.

    Parameters
    ----------
    arms
        How many.
    mass, size
        Of the box: in kg, and its edges in m.
    arm_mass, arm_length
        Of each rod.

    Examples
    --------
    >>> satellite(3).nv
    12
    """
    if isinstance(arms, bool) or not isinstance(arms, int | np.integer) or arms < 0:
        raise ValueError(f"arms: expected a whole number ≥ 0, received {arms!r}")
    edges = real_array(size, "size", (3,))
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0), name=f"satellite with {arms} arms")
    b.add_body("box", 0, Free(), inertia=box(edges, mass=mass))
    end = (arm_length, 0.0, 0.0)
    inertia = rod((0.0, 0.0, 0.0), end, mass=arm_mass)
    for k in range(arms):
        angle = 2.0 * np.pi * k / arms
        outward = np.array([np.cos(angle), np.sin(angle), 0.0])
        # Where the ray from the centre leaves the box.
        reach = np.min(edges[:2] / 2 / np.maximum(np.abs(outward[:2]), 1e-12))
        shoulder = Pose(Rz(angle), reach * outward)
        b.add_body(f"arm{k + 1}", "box", Revolute("y"), shoulder, inertia)
        b.add_body(f"forearm{k + 1}", f"arm{k + 1}", Revolute("y"), end, inertia)
    return b.build()
