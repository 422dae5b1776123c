"""Stiff flyball governor (A05): two arms on a turning shaft that lift a slider."""

from __future__ import annotations

import numpy as np

from ..checks import real_scalar
from ..joints import Prismatic, Revolute
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import box, point_mass
from .registry import register

__all__ = ["governor"]

#: Height of the hinges and their distance from the axis, length of the arms.
TOP, RADIUS, ARM = 1.0, 0.05, 1.0


@register(
    q0=[0.0, 0.5, np.pi / 6, np.pi / 6],
    v0=[2.0 * np.pi, 0.0, 0.0, 0.0],
    source="A05 of the library of computational benchmarks in multibody dynamics (IFToMM); "
    "without damping energy is conserved",
)
def governor(
    stiffness: float = 8e5, damping: float = 4e4, ball: float = 5.0, gravity: float = 9.81
) -> Model:
    """Flyball governor whose coupling rods are very stiff springs with dampers (A05).

    A shaft turns about z and carries a slider that moves along it, and two arms on hinges at
    z = 1, x = ±0.05, with a ball at the end of each. Springs of rest length 0.5 connect the slider
    with the middle of the arms. q = (shaft, height of the slider, fall of the two arms below the
    horizontal).

    Parameters
    ----------
    stiffness, damping
        Of each spring, in N/m and N s/m.
    ball
        Mass of each ball, in kg. Shaft, arms (1 × 0.01 × 0.01 m) and slider (a cube of 0.1 m) have
        a density of 3000 kg/m³.
    gravity
        In m/s², along −z.

    Examples
    --------
    >>> governor().q_names
    ('shaft.angle', 'slider.shift', 'arm1.angle', 'arm2.angle')
    """
    for name, value in (("stiffness", stiffness), ("damping", damping), ("ball", ball)):
        if real_scalar(value, name) < 0.0:
            raise ValueError(f"{name}: expected a number ≥ 0, received {value!r}")
    density, thin = 3000.0, 0.01
    build = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="governor")
    shaft = box((thin, thin, 1.0), density=density, com=(0.0, 0.0, 0.5))
    build.add_body("shaft", 0, Revolute("z"), inertia=shaft)
    build.add_body("slider", "shaft", Prismatic("z"), inertia=box((0.1, 0.1, 0.1), density=density))
    for k, side in ((1, 1.0), (2, -1.0)):
        end = (side * ARM, 0.0, 0.0)
        arm = box((ARM, thin, thin), density=density, com=(side * ARM / 2, 0.0, 0.0))
        inertia = arm + point_mass(ball, end) if ball else arm
        # Positive angles let both arms fall.
        hinge = Revolute((0.0, side, 0.0))
        build.add_body(f"arm{k}", "shaft", hinge, (side * RADIUS, 0.0, TOP), inertia)
        build.add_spring(
            f"spring{k}",
            "slider",
            (side * RADIUS, 0.0, 0.0),
            f"arm{k}",
            (side * ARM / 2, 0.0, 0.0),
            stiffness=stiffness,
            damping=damping,
            rest=ARM / 2,
        )
    return build.build()
