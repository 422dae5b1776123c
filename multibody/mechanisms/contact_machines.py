"""Machines that live by contact: walkers, a stick–slip oscillator, a joint with clearance."""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..elements import Formula
from ..joints import Driven, Prismatic, Revolute
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import point_mass, rod, sphere
from ..model.surfaces import Ball, Bowl, HalfSpace, Vertex
from .registry import register

__all__ = ["compass_walker", "loose_slider_crank", "rimless_wheel", "stick_slip_oscillator"]


def _slope_of(model: Model) -> tuple[float, float]:
    plane, foot = model.contacts[0].shape_a, model.contacts[0].shape_b
    assert isinstance(plane, HalfSpace)
    assert isinstance(foot, Vertex)
    return float(np.arctan2(plane.normal[0], plane.normal[2])), float(-foot.point[2])


def _on_one_spoke(model: Model) -> Array:
    slope, length = _slope_of(model)
    return np.array([length * np.sin(slope), length * np.cos(slope), slope])


def _vaulting(model: Model) -> Array:
    slope, length = _slope_of(model)
    return 1.5 * np.array([length * np.cos(slope), -length * np.sin(slope), 1.0])


@register(
    q0=_on_one_spoke,
    v0=_vaulting,
    t_end=6.0,
    source="T. McGeer 1990: ω⁺/ω⁻ = (ml² cos 2π/n + I)/(ml² + I) at each step",
)
def rimless_wheel(spokes: int = 8, slope: float = 0.1, length: float = 1.0) -> Model:
    """The simplest passive walker: a wheel without a rim that vaults down a slope on its spokes.

    Whatever the start (if it is quick enough), the speed tends to the one at which a step's descent
    gives what its impact takes.

    Parameters
    ----------
    spokes, length
        Their number n and their length l in m; the hub has 1 kg, and I = 0.1 l² kg m² about it.
    slope
        Angle of the plane in rad, down towards x.

    Examples
    --------
    >>> len(rimless_wheel(6).contacts)
    6
    """
    b = ModelBuilder(name="rimless wheel")
    b.add_body("hub_x", 0, Prismatic("x"))
    b.add_body("hub_z", "hub_x", Prismatic("z"))
    hub = sphere(mass=1.0, radius=0.5 * length)  # ⅖ m r² = 0.1 m l²
    b.add_body("wheel", "hub_z", Revolute("y"), inertia=hub)
    ground = HalfSpace((np.sin(slope), 0.0, np.cos(slope)))
    for k in range(spokes):
        angle = 2.0 * np.pi * k / spokes
        foot = Vertex((length * np.sin(angle), 0.0, -length * np.cos(angle)))
        b.add_contact(f"foot{k}", 0, ground, "wheel", foot, friction=5.0)
    return b.build()


#: Limit cycle of the compass gait at its usual parameters, just after a step: angles of the legs
#: against the vertical and their rates, of the leg that stands, then of the one that swings. The
#: source prints (−0.2187, 0.3234, 1.0918, 0.3772); these repeat in the motion to twelve digits.
COMPASS_GAIT = (-0.218774617981, 0.323774617981, 1.092309651834, 0.375942834866)


def _striding(model: Model) -> Array:
    """Left foot on the first stone, legs as in the limit cycle."""
    foot = model.contacts[0].shape_b
    assert isinstance(foot, Vertex)
    length, (stance, swing) = -foot.point[2], COMPASS_GAIT[:2]
    return np.array([length * np.sin(stance), length * np.cos(stance), stance, swing])


def _stride_rates(model: Model) -> Array:
    foot = model.contacts[0].shape_b
    assert isinstance(foot, Vertex)
    length, (stance, _, rate, swing_rate) = -foot.point[2], COMPASS_GAIT
    hip = length * rate * np.array([np.cos(stance), -np.sin(stance)])
    return np.array([*hip, rate, swing_rate])


@register(
    q0=_striding,
    v0=_stride_rates,
    t_end=4.0,
    source="A. Goswami, B. Thuilot, B. Espiau, Int. J. Robotics Research 17 (1998) 1282",
)
def compass_walker(slope: float = 0.0525, stones: int = 12, hip: float = 10.0) -> Model:
    """Two stiff legs that walk down a slope by themselves: the compass gait, in the plane xz.

    Stiff legs scuff the ground half way through a step. So there are stepping stones in place of a
    floor, in two rows, one for each foot, as experiments have them; their distance is a step of the
    limit cycle :cite:`goswami1998`.

    Parameters
    ----------
    slope
        Angle of the line of stones in rad, down towards x.
    stones
        How many there are in both rows together.
    hip
        Mass at the hip in kg; each leg has 5 kg half way along its length of 1 m.

    Examples
    --------
    >>> compass_walker().q_names
    ('hip_x.shift', 'hip.shift', 'left.angle', 'right.angle')
    """
    b = ModelBuilder(name="compass walker", gravity=(0.0, 0.0, -9.8))
    length, radius = 1.0, 0.02
    b.add_body("hip_x", 0, Prismatic("x"))
    b.add_body("hip", "hip_x", Prismatic("z"), inertia=point_mass(hip))
    for leg in ("left", "right"):
        mass = point_mass(5.0, (0.0, 0.0, -0.5 * length))
        b.add_body(leg, "hip", Revolute("y"), inertia=mass)
    step = 2.0 * length * np.sin(0.5 * (COMPASS_GAIT[1] - COMPASS_GAIT[0]))
    along = np.array([np.cos(slope), 0.0, -np.sin(slope)])
    below = radius * np.array([np.sin(slope), 0.0, np.cos(slope)])
    foot = Vertex((0.0, 0.0, -length))
    for k in range(stones):
        stone = Ball(radius, step * k * along - below)
        b.add_contact(f"stone{k}", 0, stone, ("left", "right")[k % 2], foot, friction=2.0)
    return b.build()


@register(
    q0=[0.1, 0.0],
    t_end=1.0,
    source="slides about x = μmg/k until it has the belt's speed, and sticks until it is there",
)
def stick_slip_oscillator(
    stiffness: float = 100.0, friction: float = 0.4, speed: float = 0.2
) -> Model:
    """A block of 1 kg between a spring and a belt that drags it along.

    It slides, sticks, and slides again with the amplitude v/ω for ever: stick and slip that
    repeat need a friction that falls with speed.

    Parameters
    ----------
    stiffness
        Of the spring, in N/m.
    friction
        Between block and belt.
    speed
        Of the belt, in m/s.

    Examples
    --------
    >>> stick_slip_oscillator().nv
    2
    """
    b = ModelBuilder(name="stick-slip oscillator")
    b.add_body("belt", 0, Driven(Prismatic("x"), Formula(f"{float(speed)!r} * t")))
    b.add_body("block_x", 0, Prismatic("x"), stiffness=stiffness)
    b.add_body("block", "block_x", Prismatic("z"), inertia=point_mass(1.0))
    b.add_contact("belt", "belt", HalfSpace(), "block", Vertex(), friction=friction)
    return b.build()


def _centred(model: Model) -> Array:
    """Crank upright, with the pin in the middle of its hole."""
    crank, length = 0.15, 0.3
    down = np.arcsin(crank / length)
    return np.array([0.0, down, length * np.cos(down)])


@register(
    q0=_centred,
    v0=[10.0, -10.0, 1.5],
    t_end=0.4,
    source="energy between impacts, momentum at impacts",
)
def loose_slider_crank(clearance: float = 1e-3, restitution: float = 0.5) -> Model:
    """A slider-crank whose rod has its pin in a hole of the slider that is too wide.

    The pin flies, hits the hole's wall, bounces and rolls along it: a tree with a contact in place
    of the loop.

    Parameters
    ----------
    clearance
        Radius of the hole less that of the pin, in m.
    restitution
        Of pin and hole.

    Examples
    --------
    >>> loose_slider_crank().nv
    3
    """
    b = ModelBuilder(name="loose slider-crank")
    top, end = (0.0, 0.0, 0.15), (0.3, 0.0, 0.0)
    b.add_body("crank", 0, Revolute("y"), inertia=rod((0, 0, 0), top, mass=0.4))
    b.add_body("rod", "crank", Revolute("y"), top, inertia=rod((0, 0, 0), end, mass=0.3))
    b.add_body("slider", 0, Prismatic("x"), inertia=point_mass(0.5))
    hole, pin = Bowl(0.01 + clearance), Ball(0.01, end)
    b.add_contact("pin", "slider", hole, "rod", pin, restitution=restitution)
    return b.build()
