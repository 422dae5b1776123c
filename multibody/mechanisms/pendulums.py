"""Pendulums: simple, double, of N links, spherical, and one on a cart.

All hang down in the neutral position, under gravity along −z; planar ones swing about y, where
positive angles take the bob towards −x. Angles of chains are relative: q[i] is the angle between
link i and the one before it.
"""

from __future__ import annotations

import numpy as np

from ..algebra.inertia import RigidInertia
from ..checks import Array, ArrayLike, floats, one_of, real_array, real_scalar
from ..joints import Prismatic, Revolute, Spherical, Universal
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import point_mass, rod, sphere
from .registry import register

__all__ = ["cart_pole", "double_pendulum", "n_pendulum", "pendulum", "spherical_pendulum"]


def _link(links: str, mass: float, length: float) -> RigidInertia:
    """Bar of `length` along −z: a uniform rod, or massless with a point mass at its end."""
    end = (0.0, 0.0, -length)
    return rod((0.0, 0.0, 0.0), end, mass=mass) if links == "rods" else point_mass(mass, end)


def _each(value: ArrayLike, n: int, name: str) -> Array:
    """One positive number for each of n links, from one number or n."""
    array = floats(real_array(value, name))
    if array.shape not in ((), (n,)) or np.any(array <= 0.0):
        raise ValueError(f"{name}: expected a positive number, or {n} of them, received {value!r}")
    return np.broadcast_to(array, (n,))


def _positive(**values: float) -> None:
    """Raise, with its name, for an argument that is not a positive number."""
    for name, value in values.items():
        if real_scalar(value, name) <= 0.0:
            raise ValueError(f"{name}: expected a positive number, received {value!r}")


@register(
    q0=[np.pi / 2],
    source="A01 of the library of computational benchmarks in multibody dynamics (IFToMM)",
)
def pendulum(length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Model:
    """Point mass on a massless bar that swings about y; q = 0 hangs down.

    Parameters
    ----------
    length, mass, gravity
        In m, kg and m/s².

    Examples
    --------
    >>> pendulum().nv
    1
    """
    _positive(length=length, mass=mass)
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="pendulum")
    b.add_body("bob", 0, Revolute("y"), inertia=point_mass(mass, (0.0, 0.0, -length)))
    return b.build()


@register(q0=[np.pi / 2, 0.0], source="reference in quadruple precision, tests")
def double_pendulum(length: ArrayLike = 1.0, mass: ArrayLike = 1.0, gravity: float = 9.81) -> Model:
    """Two point masses on massless bars; the second angle is measured from the first bar.

    Parameters
    ----------
    length, mass
        One number for both bars, or two.
    gravity
        In m/s².

    Examples
    --------
    >>> double_pendulum(mass=(1.0, 0.5)).bodies[1].inertia.mass
    0.5
    """
    lengths, masses = _each(length, 2, "length"), _each(mass, 2, "mass")
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="double pendulum")
    b.add_body("upper", 0, Revolute("y"), inertia=_link("points", masses[0], lengths[0]))
    below = (0.0, 0.0, -lengths[0])
    b.add_body(
        "lower", "upper", Revolute("y"), below, inertia=_link("points", masses[1], lengths[1])
    )
    return b.build()


@register(
    q0=lambda model: [np.pi / 2] + [0.0] * (model.nv - 1),
    t_end=5.0,
    source="tips of 2, 5 and 10 rods, tests",
)
def n_pendulum(
    n: int = 5,
    links: str = "rods",
    length: ArrayLike = 1.0,
    mass: ArrayLike = 1.0,
    gravity: float = 9.81,
) -> Model:
    """Chain of n links that swings about y; each angle is measured from the link before.

    Parameters
    ----------
    n
        Number of links.
    links
        "rods": uniform rods; "points": massless bars with a point mass at the end.
    length, mass
        Of each link: one number for all, or n.
    gravity
        In m/s².

    Examples
    --------
    >>> n_pendulum(3, mass=(1.0, 1.0, 2.0)).bodies[2].inertia.mass
    2.0
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n: expected a whole number of links ≥ 1, received {n!r}")
    one_of(links, "links", ("rods", "points"))
    lengths, masses = _each(length, n, "length"), _each(mass, n, "mass")
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name=f"pendulum of {n} {links}")
    for i in range(n):
        place = (0.0, 0.0, -lengths[i - 1]) if i else None
        b.add_body(f"link{i + 1}", i, Revolute("y"), place, _link(links, masses[i], lengths[i]))
    return b.build()


@register(
    q0=[0.0, 0.5],
    v0=[2.0, 0.0],
    source="conical motion: rate² = g/(L cos θ); moment of momentum about the vertical",
)
def spherical_pendulum(
    length: float = 1.0, mass: float = 1.0, radius: float = 0.0, gravity: float = 9.81
) -> Model:
    """Bob that swings in all directions.

    Parameters
    ----------
    length
        From the pivot to the centre of the bob.
    mass
        Of the bob.
    radius
        0: the bob is a point, on a universal joint (angles about x and y), because nothing would
        determine how fast it spins on a ball joint. Its equations are singular where the bob is
        on the x axis. Otherwise the bob is a solid sphere on a ball joint (a quaternion), and
        nothing is singular.
    gravity
        In m/s².

    Examples
    --------
    >>> spherical_pendulum().q_names
    ('bob.angle_1', 'bob.angle_2')
    >>> spherical_pendulum(radius=0.1).nq
    4
    """
    _positive(length=length, mass=mass)
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="spherical pendulum")
    place = (0.0, 0.0, -length)
    if real_scalar(radius, "radius") == 0.0:
        b.add_body("bob", 0, Universal(), inertia=point_mass(mass, place))
    else:
        b.add_body("bob", 0, Spherical(), inertia=sphere(radius, mass=mass, com=place))
    return b.build()


@register(
    q0=[0.0, 0.5],
    source="small oscillations: rate² = (g/L)(M + m)/M for a point mass",
)
def cart_pole(
    cart_mass: float = 1.0,
    pole_mass: float = 0.1,
    length: float = 1.0,
    links: str = "points",
    gravity: float = 9.81,
) -> Model:
    """Cart that slides along x, and a pole on it that swings about y; q = (shift, angle).

    The pole hangs down at angle 0 and stands at angle π.

    Parameters
    ----------
    cart_mass, pole_mass
        In kg.
    length
        Of the pole.
    links
        "points": the pole's mass is at its end; "rods": the pole is a uniform rod.
    gravity
        In m/s².

    Examples
    --------
    >>> cart_pole().v_names
    ('d(cart.shift)', 'd(pole.angle)')
    """
    one_of(links, "links", ("rods", "points"))
    _positive(pole_mass=pole_mass, length=length)
    if real_scalar(cart_mass, "cart_mass") < 0.0:  # a cart without mass is a limit worth a look
        raise ValueError(f"cart_mass: expected a number ≥ 0, received {cart_mass!r}")
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name="cart-pole")
    b.add_body("cart", 0, Prismatic("x"), inertia=point_mass(cart_mass))
    b.add_body("pole", "cart", Revolute("y"), inertia=_link(links, pole_mass, length))
    return b.build()
