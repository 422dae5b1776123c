"""Machines with drives: a servo arm, a slider-crank with friction, a platform on six servo legs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..elements import PID, DCMotor, Friction, NamedElement, Table
from ..joints import Revolute
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import rod
from .linkages import slider_crank
from .parallel import stewart_platform, stewart_position
from .pendulums import cart_pole
from .registry import entry, register

__all__ = ["held_stewart_platform", "light_cart_pole", "rubbing_slider_crank", "servo_arm"]


@register(
    t_end=4.0,
    source="held at rest, the motors' torques are those of gravity: exact",
)
def servo_arm(
    upper: float = 0.6,
    lower: float = 0.5,
    mass: float = 2.0,
    kp: float = 60.0,
    ki: float = 60.0,
    kd: float = 6.0,
    gravity: float = 9.81,
) -> Model:
    """Arm of two links, each moved by a direct-current motor under a PID controller.

    Parameters
    ----------
    upper, lower, mass
        Lengths (m) of the two rods, and the mass of each (kg).
    kp, ki, kd
        Gains, in V/rad, V/(rad s) and V s/rad.
    gravity
        In m/s².

    Examples
    --------
    >>> servo_arm().n_states
    4
    """
    b = ModelBuilder(gravity=(0, 0, -gravity), name="servo arm")
    for name, parent, length, place in (
        ("upper", "base", upper, 0.0),
        ("lower", "upper", lower, -upper),
    ):
        link = rod((0, 0, 0), (0, 0, -length), mass=mass)
        b.add_body(name, parent, Revolute("y"), (0, 0, place), link)
    way = ([0.0, 1.0, 2.0, 3.0], [0.0, 0.9, 0.9, 0.4])
    for name, sign in (("upper", 1.0), ("lower", -0.7)):
        target = Table(way[0], sign * np.array(way[1]), kind="spline")
        b.add_element(f"{name} pid", PID(name, target, kp, ki, kd, acts=False))
        b.add_element(
            f"{name} motor",
            DCMotor(name, f"{name} pid", resistance=0.5, inductance=2e-3, constant=0.5, ratio=2.0),
        )
    return b.build()


@register(
    q0=lambda model: entry("slider_crank").start(model)[0],
    v0=lambda model: entry("slider_crank").start(model)[1],
    t_end=2.0,
    source="books of energy: what is lost is the work of friction",
)
def rubbing_slider_crank(
    coulomb: float = 2.0, stiction: float = 3.0, viscous: float = 0.5
) -> Model:
    """Slider-crank whose slider rubs on its guide: Coulomb's law with Stribeck's bump, smoothed.

    Parameters
    ----------
    coulomb, stiction, viscous
        Of the slider's guide, in N and N s/m.

    Examples
    --------
    >>> rubbing_slider_crank().elements[0].name
    'guide'
    """
    model = slider_crank()
    guide = Friction("slider", coulomb, stiction, viscous, stribeck_speed=0.05, slip_speed=5e-3)
    elements = (NamedElement("guide", guide),)
    return replace(model, elements=elements, name="rubbing slider-crank")


@register(
    q0=stewart_position,
    t_end=2.0,
    source="at rest each leg carries what joint_reactions says without motion",
)
def held_stewart_platform(
    kp: float = 2e4, ki: float = 2e4, kd: float = 1e3, lift: float = 0.05
) -> Model:
    """Stewart platform whose legs are held, and then lifted, by controllers.

    Parameters
    ----------
    kp, ki, kd
        Gains of each leg, in N/m, N/(m s) and N s/m.
    lift
        How much longer all legs become between 0.5 and 1 s, in m.

    Examples
    --------
    >>> len(held_stewart_platform().elements)
    6
    """
    model = stewart_platform()
    q = stewart_position(model)
    elements = []
    for body, place in zip(model.bodies, model.q_index):
        if body.name.endswith("_upper"):
            length = float(q[place][0])
            target = Table([0.5, 1.0], [length, length + lift])
            elements.append(NamedElement(f"{body.name} servo", PID(body.name, target, kp, ki, kd)))
    return replace(model, elements=tuple(elements), name="held Stewart platform")


@register(
    q0=[0.0, 3.0],
    t_end=5.0,
    source="energy and momentum; the cart is a thousandth of the pole",
)
def light_cart_pole(cart_mass: float = 1e-3, pole_mass: float = 1.0, length: float = 1.0) -> Model:
    """Cart-pole with a cart of next to no mass, which is a hard test of step sizes.

    Parameters
    ----------
    cart_mass, pole_mass, length
        In kg and m.

    Examples
    --------
    >>> light_cart_pole().nv
    2
    """
    return replace(cart_pole(cart_mass, pole_mass, length), name="light cart-pole")
