"""Spatial linkages with one loop: Bricard's, and the spatial slider-crank."""

from __future__ import annotations

import numpy as np

from ..checks import Array, real_scalar
from ..dynamics.loops.assembly import consistent_velocity
from ..joints import Prismatic, Revolute, Spherical, Universal
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import Inertia, box
from .linkages import lengths_of
from .registry import register

__all__ = ["BRICARD_POINTS", "bricard", "spatial_slider_crank"]

#: Joints P1 … P6 of Bricard's linkage for rods of length 1, and the directions of their axes.
BRICARD_POINTS = np.array(
    [(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float
)
BRICARD_AXES = "yzxyzx"


@register(
    source="A04 of the library of computational benchmarks in multibody dynamics (IFToMM): P3 and "
    "the half period by quadrature of its one degree of freedom",
)
def bricard(
    length: float = 1.0, mass: float = 1.0, section: float = 0.1, gravity: float = 9.81
) -> Model:
    """Bricard's linkage of six hinges: five rods that move although counting says they cannot.

    Neighbouring axes are at right angles; six hinges leave 5 freedoms and 5 constraints, of
    which only 4 are independent. Starts at rest, with the rods along edges of a cube (A04).

    Parameters
    ----------
    length, mass
        Of each rod.
    section
        Edge of the rods' square section, as part of their length; 0 for slender rods.
    gravity
        In m/s², along −y.

    Examples
    --------
    >>> from multibody import mobility
    >>> print(mobility(bricard(), [0, 0, 0, 0, 0]).rank)
    4
    """
    (L,) = lengths_of("bricard", length=length)
    if real_scalar(section, "section") < 0.0:
        raise ValueError(f"section: expected a number ≥ 0, received {section!r}")
    build = ModelBuilder(gravity=(0.0, -gravity, 0.0), name="Bricard")
    points = L * BRICARD_POINTS
    for i in range(5):
        along = points[i + 1] - points[i]
        size = np.where(np.abs(along) > 0.0, L, section * L)
        moments = mass / 12 * (size @ size - size**2)
        place = points[i] - points[i - 1] if i else points[0]
        inertia = Inertia(mass, along / 2, moments)
        build.add_body(f"rod{i + 1}", i, Revolute(BRICARD_AXES[i]), place, inertia)
    build.add_loop("close", 0, "rod5", Revolute("x"), points[5], points[5] - points[4])
    return build.build()


# ---------------------------------------------------------------------- spatial slider-crank


def _slider_position(model: Model, crank_angle: float = 0.0) -> Array:
    """Closed form: crank tip, slider on the line, then the two angles of the rod."""
    centre = model.bodies[0].placement.r
    loop = model.loops[0]
    crank = loop.placement_predecessor.r[2]
    length = loop.placement_successor.r[2]
    tip = centre + crank * np.array([0.0, -np.sin(crank_angle), np.cos(crank_angle)])
    away = float(tip[1] ** 2 + tip[2] ** 2)
    if length**2 <= away:
        raise ValueError(
            f"spatial_slider_crank: the rod of {length:.6g} does not reach the slider's line, "
            f"{np.sqrt(away):.6g} away; make it longer"
        )
    slider = float(np.sqrt(length**2 - away))
    d = (tip - np.array([slider, 0.0, 0.0])) / length
    # The rod points along Rx(a) Ry(b) e_z = (sin b, −sin a cos b, cos a cos b).
    return np.array([crank_angle, slider, np.arctan2(-d[1], d[2]), np.arcsin(d[0])])


def _slider_velocity(model: Model) -> Array:
    q = _slider_position(model)
    return consistent_velocity(model, q, [6.0, 0.0, 0.0, 0.0], fixed=["crank"])


@register(
    q0=_slider_position,
    v0=_slider_velocity,
    t_end=5.0,
    source="spatial rigid slider-crank of E. J. Haug, Computer Aided Kinematics and Dynamics of "
    "Mechanical Systems, 1989, §12.2, as in the IFToMM library of benchmarks",
)
def spatial_slider_crank(
    crank: float = 0.08, rod_length: float = 0.3, gravity: float = 9.81
) -> Model:
    """Spatial slider-crank: the crank turns about the slider's direction, beside its line.

    The crank turns about x around (0, 0.1, 0.12); the slider moves along the x axis. The rod hangs
    on the slider by a universal joint, whose fixed axis is the sliding direction, and on the crank
    by a ball joint, which closes the loop. q = (crank, slider, two angles of the rod).

    Parameters
    ----------
    crank, rod_length
        Lengths, in m.
    gravity
        In m/s², along −z.

    Examples
    --------
    >>> from multibody.mechanisms import entry
    >>> model = spatial_slider_crank()
    >>> q, v = entry("spatial_slider_crank").start(model)
    >>> float(q[1].round(12)), float(v[1].round(12))
    (0.2, 0.24)
    """
    a, b = lengths_of("spatial_slider_crank", crank=crank, rod_length=rod_length)
    build = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="spatial slider-crank")
    inertia = Inertia(0.12, (0.0, 0.0, a / 2), (1e-4, 1e-4, 1e-5))
    build.add_body("crank", 0, Revolute("x"), (0.0, 0.1, 0.12), inertia)
    edge = np.sqrt(6 * 1e-4 / 2.0)  # a cube of 2 kg with moments of inertia 1e-4
    build.add_body("slider", 0, Prismatic("x"), inertia=box((edge, edge, edge), mass=2.0))
    inertia = Inertia(0.5, (0.0, 0.0, b / 2), (4e-3, 4e-3, 4e-4))
    build.add_body("rod", "slider", Universal(), inertia=inertia)
    build.add_loop("ball", "crank", "rod", Spherical(), (0.0, 0.0, a), (0.0, 0.0, b))
    return build.build()
