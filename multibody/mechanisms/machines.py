"""Machines with drives: servo arm, slider-crank with friction, platform on servo legs, biped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..checks import Array, one_of
from ..elements import PID, DCMotor, Friction, NamedElement, Table
from ..joints import Fixed, Revolute
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import rod
from .linkages import slider_crank
from .parallel import free_stewart_platform, stewart_position
from .pendulums import cart_pole
from .registry import entry, register

__all__ = [
    "light_cart_pole",
    "rubbing_slider_crank",
    "servo_arm",
    "seven_link_biped",
    "stewart_platform",
]

#: Joints of the biped, from the left ankle to the right one, and how far each turns if both knees
#: stand forward by an angle of one.
BIPED = {
    "left shank": 1.0,
    "left thigh": -2.0,
    "trunk": 1.0,
    "right thigh": -1.0,
    "right shank": 2.0,
    "right foot": -1.0,
}
START_BEND = 0.1  # rad: stretched knees would be a singular position


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
def stewart_platform(
    base_radius: float = 1.0,
    platform_radius: float = 0.5,
    platform_mass: float = 20.0,
    leg_mass: float = 2.0,
    spread: float = 0.25,
    kp: float = 2e4,
    ki: float = 2e4,
    kd: float = 1e3,
    lift: float = 0.05,
    gravity: float = 9.81,
) -> Model:
    """Stewart (Gough) platform whose six legs are held, and then lengthened, by controllers.

    The mechanism is that of ``free_stewart_platform``, which nothing holds.

    Parameters
    ----------
    base_radius, platform_radius, platform_mass, leg_mass, spread, gravity
        As there.
    kp, ki, kd
        Gains of each leg, in N/m, N/(m s) and N s/m.
    lift
        How much longer all legs become between 0.5 and 1 s, in m.

    Examples
    --------
    >>> len(stewart_platform().elements)
    6
    """
    model = free_stewart_platform(
        base_radius, platform_radius, platform_mass, leg_mass, spread, gravity
    )
    q = stewart_position(model)
    elements = []
    for body, place in zip(model.bodies, model.q_index):
        if body.name.endswith("_upper"):
            length = float(q[place][0])
            target = Table([0.5, 1.0], [length, length + lift])
            elements.append(NamedElement(f"{body.name} servo", PID(body.name, target, kp, ki, kd)))
    return replace(model, elements=tuple(elements), name="Stewart platform")


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


def biped_position(model: Model) -> Array:
    """The biped with its knees a little bent."""
    angles = {body.name: BIPED.get(body.name, 0.0) * START_BEND for body in model.bodies}
    q = model.neutral()
    for body, place in zip(model.bodies, model.q_index):
        q[place] = angles[body.name]
    return q


@register(
    q0=biped_position,
    t_end=2.5,
    source="standing, the feet carry the weight; lengths and masses in round numbers of a person",
)
def seven_link_biped(
    thigh: float = 0.45,
    shank: float = 0.45,
    trunk: float = 0.6,
    bend: float = 0.5,
    kp: float = 4000.0,
    kd: float = 200.0,
    support: str = "double",
    gravity: float = 9.81,
) -> Model:
    """Biped of seven links, a trunk and twice thigh, shank and foot, that bends its knees.

    The left foot stands firmly on the ground. With the right one on it, too, legs and ground are a
    loop, and six servos move three freedoms.

    Parameters
    ----------
    thigh, shank, trunk
        Lengths, in m.
    bend
        Angle (rad) by which the shanks lean between 1 and 1.3 s; 0.1 before 0.3 and after 2 s.
    kp, kd
        Gains of the servos, in N m/rad and N m s/rad.
    support
        "double", or "single": then the right leg is free to swing.
    gravity
        In m/s².

    Examples
    --------
    >>> from multibody import mobility
    >>> model = seven_link_biped()
    >>> mobility(model, biped_position(model)).mobility
    3
    """
    one_of(support, "support", ("double", "single"))
    ankle, hip = 0.08, 0.1  # height, and half the distance between the legs
    foot = rod((-0.08, 0, -ankle), (0.18, 0, -ankle), mass=1.0)
    b = ModelBuilder(gravity=(0, 0, -gravity), name="seven-link biped")
    b.add_body("left foot", 0, Fixed(), (0, hip, ankle), foot)
    for name, parent, place, end, mass in (
        ("left shank", "left foot", (0, 0, 0), (0, 0, shank), 4.0),
        ("left thigh", "left shank", (0, 0, shank), (0, 0, thigh), 8.0),
        ("trunk", "left thigh", (0, 0, thigh), (0, 0, trunk), 35.0),
        ("right thigh", "trunk", (0, -2 * hip, 0), (0, 0, -thigh), 8.0),
        ("right shank", "right thigh", (0, 0, -thigh), (0, 0, -shank), 4.0),
    ):
        b.add_body(name, parent, Revolute("y"), place, rod((0, 0, 0), end, mass=mass))
    b.add_body("right foot", "right shank", Revolute("y"), (0, 0, -shank), foot)
    if support == "double":
        b.add_loop("ground", 0, "right foot", Fixed(), (0, -hip, ankle))
    way = np.array([START_BEND, bend, bend, START_BEND])
    for name, share in BIPED.items():
        target = Table([0.3, 1.0, 1.3, 2.0], share * way, kind="spline")
        b.add_element(f"{name} servo", PID(name, target, kp, 0.0, kd))
    return b.build()
