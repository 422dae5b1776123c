"""Vehicles: a bicycle with two rolling wheels, a quarter of a car, half a car, a car's axle."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algebra.plucker import Plucker
from ..checks import Array
from ..dynamics.loops.assembly import consistent_velocity
from ..elements import Bushing, Formula, Suspension, Wave
from ..joints import Driven, Free, Prismatic, Revolute, RollingDisc
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import Inertia, point_mass
from .registry import register

__all__ = ["bicycle", "bicycle_speed", "car_axis", "half_car", "quarter_car"]


def bicycle_speed(model: Model, speed: float) -> list[float]:
    """Velocities of the upright bicycle that runs straight on."""
    return [0, 0, 0, speed, 0, 0, speed / 0.3, 0, speed / 0.35]


def disturbed(model: Model, speed: float, lean_rate: float = 0.5) -> Array:
    """The same after a push to the side, as the wheels allow it."""
    push = lean_rate * np.eye(model.nv)[0]
    return consistent_velocity(model, model.neutral(), bicycle_speed(model, speed) + push)


@register(
    v0=lambda model: disturbed(model, 4.6),
    t_end=5.0,
    source="meijaard2007: weave speed 4.292382536 m/s, capsize speed 6.024262015 m/s",
)
def bicycle(gravity: float = 9.81) -> Model:
    """Bicycle with a rigid rider: frame, fork and two wheels with sharp edges that roll.

    The benchmark of Meijaard, Papadopoulos, Ruina and Schwab (2007), with z upwards, x forwards:
    wheelbase 1.02 m, trail 0.08 m, steering axis tilted by π/10. Between the weave speed and the
    capsize speed it stays upright by itself.

    Parameters
    ----------
    gravity
        In m/s².

    Examples
    --------
    >>> from multibody import mobility
    >>> mobility(bicycle(), bicycle().neutral()).mobility
    3
    """
    b = ModelBuilder(gravity=(0, 0, -gravity), name="bicycle")
    rider = Inertia(85.0, (0.3, 0, 0.9), [[9.2, 0.0, -2.4], [0.0, 11.0, 0.0], [-2.4, 0.0, 2.8]])
    bars = [[0.05892, 0.0, 0.00756], [0.0, 0.06, 0.0], [0.00756, 0.0, 0.00708]]
    steering = Revolute((-np.sin(np.pi / 10), 0, np.cos(np.pi / 10)))
    rear, front = [0.0603, 0.12, 0.0603], [0.1405, 0.28, 0.1405]
    b.add_body("frame", 0, Free(), inertia=rider)
    b.add_body("rear", "frame", Revolute("y"), (0, 0, 0.3), Inertia(2.0, (0, 0, 0), rear))
    b.add_body("fork", "frame", steering, (1.1, 0, 0), Inertia(4.0, (-0.2, 0, 0.7), bars))
    b.add_body("front", "fork", Revolute("y"), (-0.08, 0, 0.35), Inertia(3.0, (0, 0, 0), front))
    b.add_loop("rear ground", 0, "rear", RollingDisc(0.3))
    b.add_loop("front ground", 0, "front", RollingDisc(0.35))
    _dress(b)
    return b.build()


STEEL, RIDER = (0.12, 0.35, 0.6), (0.55, 0.42, 0.36)


def _dress(b: ModelBuilder) -> None:
    """Tubes, handlebar and rider, for pictures; measures are by eye."""
    axle, pedals, saddle, head, stem = (
        (0, 0, 0.3), (0.42, 0, 0.27), (0.3, 0, 0.85), (0.905, 0, 0.6), (0.856, 0, 0.75),
    )  # fmt: skip
    for start, end in (
        (axle, pedals), (axle, (0.33, 0, 0.7)), (pedals, saddle), (pedals, head),
        ((0.34, 0, 0.68), stem), (head, stem),
    ):  # fmt: skip
        _tube(b, "frame", start, end, 0.02, STEEL)
    for side in (-0.09, 0.09):
        hip, knee, foot, hand = (
            (0.28, side, 0.93), (0.62, side, 0.75), (0.44, side, 0.24), (0.8, 2.4 * side, 0.98),
        )  # fmt: skip
        _tube(b, "frame", hip, knee, 0.06, RIDER)
        _tube(b, "frame", knee, foot, 0.045, RIDER)
        _tube(b, "frame", (0.5, 2 * side, 1.35), hand, 0.035, RIDER)
        _tube(b, "fork", (-0.195, 0.6 * side, 0.6), (-0.08, 0.6 * side, 0.35), 0.014, STEEL)
    _tube(b, "frame", (0.28, 0, 0.98), (0.5, 0, 1.36), 0.12, RIDER)
    b.add_solid("frame", "sphere", 0.11, (0.6, 0, 1.6), RIDER)
    _tube(b, "fork", (-0.195, 0, 0.6), (-0.3, 0, 0.95), 0.018, STEEL)
    _tube(b, "fork", (-0.3, -0.26, 0.95), (-0.3, 0.26, 0.95), 0.014, STEEL)


def _tube(
    b: ModelBuilder, body: str, start: Any, end: Any, radius: float, colour: tuple[float, ...]
) -> None:
    along = np.subtract(end, start)
    length = float(np.linalg.norm(along))
    E = Revolute(along / length).frame
    middle = np.add(start, end) / 2
    b.add_solid(body, "capsule", (radius, length), Plucker(E, middle), colour)


@register(
    q0=[0.0, 0.0],
    t_end=5.0,
    source="two masses on springs, excited at one frequency: a linear system",
)
def quarter_car(
    body: float = 300.0,
    wheel: float = 40.0,
    spring: float = 2e4,
    damper: float = 1500.0,
    tyre: float = 1.8e5,
    bump: float = 0.03,
    frequency: float = 1.5,
    gravity: float = 9.81,
) -> Model:
    """Quarter of a car: body and wheel, spring and damper, and a tyre on a wavy road.

    Parameters
    ----------
    body, wheel
        Masses, in kg.
    spring, damper, tyre
        Stiffness (N/m), damping (N s/m), and stiffness of the tyre.
    bump, frequency
        Height of the road's waves (m), and how many pass in a second.
    gravity
        In m/s².

    Examples
    --------
    >>> quarter_car().q_names
    ('wheel.shift', 'body.shift')
    """
    b = ModelBuilder(gravity=(0, 0, -gravity), name="quarter car")
    b.add_body("wheel", 0, Prismatic("z"), inertia=point_mass(wheel))
    b.add_body(
        "body",
        "wheel",
        Prismatic("z"),
        (0, 0, 0.4),
        point_mass(body),
        stiffness=spring,
        damping=damper,
    )
    b.add_element("tyre", Suspension("wheel", (0, 0, 0), tyre, 0.0, Wave(bump, frequency)))
    return b.build()


@register(t_end=3.0, source="checked against its own books of energy")
def half_car(
    mass: float = 400.0,
    track: float = 1.4,
    stiffness: float = 6e4,
    damping: float = 2e3,
    bump: float = 0.04,
    speed: float = 10.0,
    length: float = 5.0,
    gravity: float = 9.81,
) -> Model:
    """Half a car that floats on two suspensions, each on its own track of a bumpy road.

    Parameters
    ----------
    mass, track
        In kg and m.
    stiffness, damping
        Of each suspension, upwards (N/m, N s/m); a bushing holds the body lengthwise and across.
    bump, speed, length
        Height of the waves (m), speed (m/s) and their length (m); the right one lags by a quarter.
    gravity
        In m/s².

    Examples
    --------
    >>> half_car().nv
    6
    """
    b = ModelBuilder(gravity=(0, 0, -gravity), name="half car")
    inertia = Inertia(mass, (0, 0, 0.2), [60.0, 80.0, 90.0])
    b.add_body("body", 0, Free(), inertia=inertia)
    hold = np.array([0.0, 2e4, 2e4, 5e4, 5e4, 0.0])
    b.add_element("links", Bushing(0, (0, 0, 0), "body", (0, 0, 0), hold, 0.02 * hold))
    for name, y, lag in (("left", track / 2, 0.0), ("right", -track / 2, np.pi / 2)):
        road = Wave(bump, speed / length, -lag, bump * np.sin(lag))
        b.add_element(name, Suspension("body", (0, y, 0), stiffness, damping, road))
    return b.build()


@register(
    q0=[0.5, 0.0],
    v0=[0.0, 1.0],
    t_end=3.0,
    source="test set for IVP solvers, car axis problem (S. Schneider, 1994): 17 digits at t = 3",
)
def car_axis(
    length: float = 1.0,
    strut: float = 0.5,
    mass: float = 1e-3,
    bump: float = 0.1,
    frequency: float = 10.0 / (2.0 * np.pi),
    stiffness: float = 1.0,
    gravity: float = 1.0,
) -> Model:
    """Axle of a car on two springs, one wheel of which runs over bumps.

    The line between the wheels, which keeps its length, turns about the left one as the right one
    goes up and down. The left strut stays at right angles to it; the right spring leans as it
    likes. In the numbers of the test set, where this is a problem of index 3.

    Parameters
    ----------
    length, strut
        Of the axle, and of the springs without load (m).
    mass
        Half of it at each end (kg).
    bump, frequency
        Height (m) of the right wheel's motion, and how often it is repeated in a second.
    stiffness, gravity
        Of each spring (N/m), and in m/s².

    Examples
    --------
    >>> car_axis().q_names
    ('left.shift', 'axle.angle')
    """
    b = ModelBuilder(gravity=(0, 0, -gravity), name="car axis")
    # The angle of a line, one end of which goes up and down.
    tilt = f"-arcsin({float(bump / length)!r} * sin({float(2.0 * np.pi * frequency)!r} * t))"
    b.add_body("wheels", 0, Driven(Revolute("y"), Formula(tilt)))
    half = point_mass(0.5 * mass)
    b.add_body("left", "wheels", Prismatic("z"), inertia=half, stiffness=stiffness, rest=strut)
    b.add_body("axle", "left", Revolute("y"), inertia=point_mass(0.5 * mass, (length, 0, 0)))
    end = (length, 0, 0)
    b.add_spring("right", "wheels", end, "axle", end, stiffness=stiffness, rest=strut)
    return b.build()
