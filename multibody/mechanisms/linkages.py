"""Planar linkages with one loop or a row of them: four-bar, N-four-bar, slider-crank, five-bar.

All lie in the xy plane, under gravity along −y, with hinges about z. Angles at the base are
measured from the x axis; the angle of a body that hangs on another one is relative to it. Starts
are consistent for any lengths with which the linkage can be assembled.
"""

from __future__ import annotations

import numpy as np

from ..algebra.inertia import RigidInertia
from ..checks import Array, ArrayLike, real_scalar
from ..dynamics.loops.assembly import consistent_velocity
from ..joints import Prismatic, Revolute
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import Inertia, point_mass, rod
from .registry import register

__all__ = ["bar", "count", "five_bar", "four_bar", "meeting_point", "n_four_bar", "slider_crank"]

ORIGIN = (0.0, 0.0, 0.0)


def bar(length: float, density: float = 1.0) -> RigidInertia:
    """Thin rod along x from the origin, of `density` in kg/m."""
    return rod(ORIGIN, (length, 0.0, 0.0), density=density)


def count(n: int, name: str, what: str, least: int = 1) -> int:
    """Check a number of parts."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < least:
        raise ValueError(f"{name}: expected a whole number of {what} ≥ {least}, received {n!r}")
    return int(n)


def lengths_of(model: str, **lengths: float) -> list[float]:
    """Check that lengths are positive."""
    values = [real_scalar(x, name) for name, x in lengths.items()]
    if min(values) <= 0.0:
        raise ValueError(f"{model}: expected positive lengths, received {lengths}")
    return values


def meeting_point(
    a: ArrayLike, b: ArrayLike, from_a: float, from_b: float, side: float = 1.0
) -> Array:
    """Point of the plane at given distances from a and from b.

    Parameters
    ----------
    side
        +1: to the left of the way from a to b; −1: to its right.

    Raises
    ------
    ValueError
        If the two circles do not meet: the bars cannot be joined.

    Examples
    --------
    >>> meeting_point((0, 0), (4, 0), 5.0, 3.0)
    array([4., 3.])
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    d = b - a
    distance = float(np.hypot(*d))
    along = (distance**2 + from_a**2 - from_b**2) / (2.0 * distance) if distance else np.inf
    across = from_a**2 - along**2
    if not across >= 0.0:
        raise ValueError(
            f"bars of {from_a:.6g} and {from_b:.6g} from points {distance:.6g} apart do not meet; "
            "change the lengths or the position"
        )
    unit = d / distance
    return a + along * unit + side * np.sqrt(across) * np.array([-unit[1], unit[0]])


def angle_of(start: Array, end: Array) -> float:
    """Direction from one point of the plane to another."""
    return float(np.arctan2(end[1] - start[1], end[0] - start[0]))


def _reach(model: Model, loop: int = 0) -> tuple[float, float]:
    """Distances from the two bodies' origins to the joint that closes a loop."""
    joint = model.loops[loop]
    return float(joint.placement_predecessor.r[0]), float(joint.placement_successor.r[0])


def _moving(model: Model, q: Array, speeds: dict[str, float]) -> Array:
    """Velocity with given speeds of some joints."""
    v = np.zeros(model.nv)
    for name, speed in speeds.items():
        v[model.v_index[model.number(name) - 1]] = speed
    return consistent_velocity(model, q, v, fixed=list(speeds))


# ---------------------------------------------------------------------- four-bar


def _four_bar_position(model: Model, crank_angle: float = 0.9) -> Array:
    coupler, rocker = _reach(model)
    crank = float(model.bodies[1].placement.r[0])
    ground = model.bodies[2].placement.r[:2]
    tip = crank * np.array([np.cos(crank_angle), np.sin(crank_angle)])
    joint = meeting_point(tip, ground, coupler, rocker)
    return np.array([crank_angle, angle_of(tip, joint) - crank_angle, angle_of(ground, joint)])


@register(
    q0=_four_bar_position,
    v0=lambda model: _moving(model, _four_bar_position(model), {"crank": 4.0}),
    source="conserved: energy; closed form of the position from two circles",
)
def four_bar(
    crank: float = 1.0,
    coupler: float = 2.0,
    rocker: float = 1.5,
    ground: float = 2.2,
    density: float = 1.0,
    gravity: float = 9.81,
) -> Model:
    """Planar four-bar linkage of uniform rods; with the default lengths the crank can turn.

    The tree is crank and coupler on one side, the rocker on the other; a revolute joint between
    coupler and rocker closes the loop. q = (crank, coupler relative to it, rocker).

    Parameters
    ----------
    crank, coupler, rocker
        Lengths of the bars.
    ground
        Distance between the two fixed hinges.
    density
        Mass of the rods, in kg/m.
    gravity
        In m/s², along −y.

    Examples
    --------
    >>> from multibody import mobility
    >>> from multibody.mechanisms import entry
    >>> model = four_bar()
    >>> print(mobility(model, entry("four_bar").start(model)[0]).mobility)
    1
    """
    a, b, c, d = lengths_of("four_bar", crank=crank, coupler=coupler, rocker=rocker, ground=ground)
    build = ModelBuilder(gravity=(0.0, -gravity, 0.0), name="four-bar")
    build.add_body("crank", 0, Revolute(), inertia=bar(a, density))
    build.add_body("coupler", "crank", Revolute(), (a, 0.0, 0.0), bar(b, density))
    build.add_body("rocker", 0, Revolute(), (d, 0.0, 0.0), bar(c, density))
    build.add_loop("joint", "coupler", "rocker", Revolute(), (b, 0.0, 0.0), (c, 0.0, 0.0))
    return build.build()


@register(
    q0=lambda model: _upright(model, 0.5 * np.pi),
    v0=lambda model: _upright(model, -1.0),
    source="A02 of the library of computational benchmarks in multibody dynamics (IFToMM): with "
    "all verticals parallel a rotating pendulum, so exact by elliptic functions",
)
def n_four_bar(n: int = 2, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Model:
    """Row of n four-bar linkages that share verticals: 2n + 1 equal rods (A02).

    Where all rods lie in one line the mobility jumps from 1 to n + 1; use fixed steps or
    ``stabilise="projection"`` to pass through, and read the solution's message. Verticals v0 … vn
    are hinged to the base, horizontals h1 … hn to the top of the vertical on their left.

    Parameters
    ----------
    n
        Number of loops.
    length, mass
        Of each rod.
    gravity
        In m/s², along −y.

    Examples
    --------
    >>> n_four_bar(3).nv
    7
    """
    n = count(n, "n", "loops")
    (L,) = lengths_of("n_four_bar", length=length)
    link, tip = rod(ORIGIN, (L, 0.0, 0.0), mass=mass), (L, 0.0, 0.0)
    build = ModelBuilder(gravity=(0.0, -gravity, 0.0), name=f"{n}-four-bar")
    for i in range(n + 1):
        build.add_body(f"v{i}", 0, Revolute(), (i * L, 0.0, 0.0), link)
    for i in range(1, n + 1):
        build.add_body(f"h{i}", f"v{i - 1}", Revolute(), tip, link)
        build.add_loop(f"joint{i}", f"h{i}", f"v{i}", Revolute(), tip, tip)
    return build.build()


def _upright(model: Model, angle: float) -> Array:
    """Angles or rates of verticals and, opposite, of horizontals."""
    n = len(model.loops)
    return np.array([angle] * (n + 1) + [-angle] * n)


# ---------------------------------------------------------------------- slider-crank


def _slider_position(model: Model, crank_angle: float = 0.0) -> Array:
    crank, rod_length = float(model.bodies[1].placement.r[0]), _reach(model)[0]
    offset = float(model.bodies[2].placement.r[1])
    tip = crank * np.array([np.cos(crank_angle), np.sin(crank_angle)])
    fall = offset - tip[1]
    if abs(fall) > rod_length:
        raise ValueError(
            f"slider_crank: the rod of {rod_length:.6g} does not reach the slider's line, "
            f"{abs(fall):.6g} away; make it longer"
        )
    tilt = np.arcsin(fall / rod_length)
    return np.array([crank_angle, tilt - crank_angle, tip[0] + rod_length * np.cos(tilt)])


@register(
    q0=_slider_position,
    v0=lambda model: _moving(model, _slider_position(model), {"crank": 10.0}),
    t_end=5.0,
    source="energy and positions of the crank at 1 s and 5 s from the equation of its angle alone",
)
def slider_crank(
    crank: float = 0.15,
    rod_length: float = 0.30,
    offset: float = 0.0,
    crank_mass: float = 0.36,
    crank_inertia: float = 0.002727,
    rod_mass: float = 0.151104,
    rod_inertia: float = 0.0045339259,
    slider_mass: float = 0.075552,
    gravity: float = 9.81,
) -> Model:
    """Planar slider-crank of rigid bodies; q = (crank, rod relative to it, slider).

    Parameters
    ----------
    crank, rod_length
        Lengths; centres of mass are in the middle.
    offset
        Height of the slider's line above the crank's hinge.
    crank_mass, rod_mass, slider_mass
        In kg.
    crank_inertia
        Moment of inertia of the crank about its hinge.
    rod_inertia
        Moment of inertia of the rod about its centre of mass.
    gravity
        In m/s², along −y.

    Examples
    --------
    >>> slider_crank().v_names
    ('d(crank.angle)', 'd(rod.angle)', 'd(slider.shift)')
    """
    a, b = lengths_of("slider_crank", crank=crank, rod_length=rod_length)
    central = crank_inertia - crank_mass * (a / 2) ** 2
    build = ModelBuilder(gravity=(0.0, -gravity, 0.0), name="slider-crank")
    build.add_body("crank", 0, Revolute(), inertia=_flat(crank_mass, a / 2, central))
    build.add_body("rod", "crank", Revolute(), (a, 0, 0), _flat(rod_mass, b / 2, rod_inertia))
    build.add_body("slider", 0, Prismatic("x"), (0.0, offset, 0.0), point_mass(slider_mass))
    build.add_loop("pin", "rod", "slider", Revolute(), (b, 0.0, 0.0))
    return build.build()


def _flat(mass: float, x: float, moment: float) -> RigidInertia:
    """Body that is thin across the x axis."""
    return Inertia(mass, (x, 0.0, 0.0), (0.0, moment, moment))


# ---------------------------------------------------------------------- five-bar


def _five_bar_position(model: Model, left: float = 2.0, right: float = 1.0) -> Array:
    a, c = float(model.bodies[1].placement.r[0]), float(model.bodies[3].placement.r[0])
    b, d = _reach(model)
    ground = model.bodies[2].placement.r[:2]
    tips = [a * np.array([np.cos(left), np.sin(left)])]
    tips.append(ground + c * np.array([np.cos(right), np.sin(right)]))
    hand = meeting_point(tips[0], tips[1], b, d)
    return np.array([left, angle_of(tips[0], hand) - left, right, angle_of(tips[1], hand) - right])


@register(q0=_five_bar_position, source="conserved: energy; two degrees of freedom")
def five_bar(
    ground: float = 0.6,
    proximal: float = 0.5,
    distal: float = 0.8,
    density: float = 1.0,
    gravity: float = 9.81,
) -> Model:
    """Five-bar linkage: two arms of two rods each that hold one point; two degrees of freedom.

    q = (left, left_distal, right, right_distal), the distal angles relative to the proximal ones.

    Parameters
    ----------
    ground
        Distance between the two fixed hinges.
    proximal, distal
        Lengths of the rods next to the base and of those that meet.
    density
        Mass of the rods, in kg/m.
    gravity
        In m/s², along −y.

    Examples
    --------
    >>> five_bar().nv
    4
    """
    g, a, b = lengths_of("five_bar", ground=ground, proximal=proximal, distal=distal)
    build = ModelBuilder(gravity=(0.0, -gravity, 0.0), name="five-bar")
    for name, x in (("left", 0.0), ("right", g)):
        build.add_body(name, 0, Revolute(), (x, 0.0, 0.0), bar(a, density))
        build.add_body(f"{name}_distal", name, Revolute(), (a, 0.0, 0.0), bar(b, density))
    end = (b, 0.0, 0.0)
    build.add_loop("hand", "left_distal", "right_distal", Revolute(), end, end)
    return build.build()
