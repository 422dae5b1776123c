"""Bodies that touch: what a first course of mechanics computes by hand (docs/contact.md)."""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..joints import Free, Prismatic, Revolute
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import box, point_mass, rod, sphere
from ..model.surfaces import Ball, BoxCorners, HalfSpace, Vertex
from .registry import register

__all__ = [
    "bead_on_sphere",
    "block_on_incline",
    "bouncing_ball",
    "bowling_ball",
    "box_stack",
    "dropped_rod",
    "newtons_cradle",
    "rocking_block",
    "sliding_ladder",
]


def _in_plane(builder: ModelBuilder, name: str, inertia: object) -> None:
    """Let a body move in the plane xz: two slides and a turn about y."""
    builder.add_body(f"{name}_x", 0, Prismatic("x"))
    builder.add_body(f"{name}_z", f"{name}_x", Prismatic("z"))
    builder.add_body(name, f"{name}_z", Revolute("y"), inertia=inertia)


def _radius(shape: object) -> float:
    assert isinstance(shape, Ball)
    return float(shape.radius)


@register(q0=[1.1], t_end=10.0, source="rests at t₁(1 + e)/(1 − e), t₁ = √(2h/g)")
def bouncing_ball(radius: float = 0.1, restitution: float = 0.9, mass: float = 1.0) -> Model:
    """A ball that bounces ever lower on a floor, infinitely often, and comes to rest.

    Parameters
    ----------
    radius, mass
        Of the ball; q is the height of its centre.
    restitution
        What an impact leaves of the speed.

    Examples
    --------
    >>> from multibody import contact_kinematics
    >>> contact_kinematics(bouncing_ball(), [1.1]).gap
    array([1.])
    """
    b = ModelBuilder(name="bouncing ball")
    b.add_body("ball", 0, Prismatic("z"), inertia=sphere(mass=mass, radius=radius))
    b.add_contact("floor", 0, HalfSpace(), "ball", Ball(radius), restitution=restitution)
    return b.build()


@register(q0=[0.0, 1.0, 0.0], t_end=3.0, source="both ends land at once, tilted by 1e-9 or not")
def dropped_rod(length: float = 1.0, restitution: float = 0.5, mass: float = 1.0) -> Model:
    """A level rod that lands on both ends.

    Parameters
    ----------
    length, mass
        Of the rod, which moves in the plane xz.
    restitution
        Of its ends.

    Examples
    --------
    >>> dropped_rod().nv
    3
    """
    b = ModelBuilder(name="dropped rod")
    half = 0.5 * length
    _in_plane(b, "rod", rod((-half, 0, 0), (half, 0, 0), mass=mass))
    for name, x in (("left", -half), ("right", half)):
        b.add_contact(name, 0, HalfSpace(), "rod", Vertex((x, 0, 0)), restitution=restitution)
    return b.build()


def _tilted(model: Model) -> Array:
    """A block on its right corner, tilted half way to falling over."""
    corner = model.contacts[1].shape_b
    assert isinstance(corner, Vertex)
    x, _, z = corner.point
    angle = 0.5 * np.arctan2(x, -z)
    c, s = np.cos(angle), np.sin(angle)
    return np.array([x - (c * x + s * z), s * x - c * z, angle])


@register(
    q0=_tilted,
    t_end=3.0,
    source="G. W. Housner, Bull. Seism. Soc. Am. 53 (1963) 403: ω⁺/ω⁻ = 1 − (3/2) sin²α",
)
def rocking_block(
    width: float = 0.2, height: float = 0.8, friction: float = 2.0, mass: float = 3.0
) -> Model:
    """A slender block that rocks from one corner to the other and loses energy at each change.

    Parameters
    ----------
    width, height, mass
        Of the block, which moves in the plane xz.
    friction
        Large enough that corners do not slide.

    Examples
    --------
    >>> [contact.name for contact in rocking_block().contacts]
    ['left', 'right']
    """
    b = ModelBuilder(name="rocking block")
    _in_plane(b, "block", box((width, width, height), mass=mass))
    b.add_solid("block", "box", (width, width, height))
    for name, x in (("left", -0.5 * width), ("right", 0.5 * width)):
        corner = Vertex((x, 0.0, -0.5 * height))
        b.add_contact(name, 0, HalfSpace(), "block", corner, friction=friction)
    return b.build()


def _on_the_slope(model: Model) -> Array:
    surface, block = model.contacts[0].shape_a, model.contacts[0].shape_b
    assert isinstance(surface, HalfSpace)
    assert isinstance(block, BoxCorners)
    x, _, z = surface.normal
    half = 0.5 * np.arctan2(x, z)
    q = model.neutral()
    q[:4] = np.cos(half), 0.0, np.sin(half), 0.0
    q[4:7] = 0.5 * block.size[2] * np.array(surface.normal)
    return q


@register(q0=_on_the_slope, t_end=2.0, source="slides with g(sin α − μ cos α) if tan α > μ")
def block_on_incline(slope: float = 0.3, friction: float = 0.25, mass: float = 2.0) -> Model:
    """A flat box on an incline, on four of its corners: it sticks, or slides by the exact law.

    Parameters
    ----------
    slope
        Angle of the incline.
    friction
        Coefficient of friction.
    mass
        Of the box.

    Examples
    --------
    >>> from multibody import contact_accelerations, mechanisms
    >>> entry = mechanisms.entry("block_on_incline")
    >>> model = entry.model(friction=0.35)
    >>> contact_accelerations(model, *entry.start(model)).states[:2]
    ('sticks', 'apart')
    """
    b = ModelBuilder(name="block on incline")
    size = (0.4, 0.4, 0.1)
    b.add_body("block", 0, Free(), inertia=box(size, mass=mass))
    surface = HalfSpace((np.sin(slope), 0.0, np.cos(slope)))
    b.add_contact("slope", 0, surface, "block", BoxCorners(size), friction=friction)
    return b.build()


@register(
    q0=lambda model: [0.5] + [0.0] * (model.nv - 1),
    t_end=4.0,
    source="of n equal balls in a row the last leaves with the speed of the first",
)
def newtons_cradle(balls: int = 5, radius: float = 0.05, length: float = 1.0) -> Model:
    """Equal balls on strings that touch each other: one comes in, one goes out.

    Parameters
    ----------
    balls
        How many.
    radius, length
        Of a ball of 1 kg, and of its string.

    Examples
    --------
    >>> from multibody import impact
    >>> impact(newtons_cradle(3), [0.0] * 3, [-1.0, 0.0, 0.0]).velocities + 0.0
    array([ 0.,  0., -1.])
    """
    b = ModelBuilder(name="Newton's cradle")
    end = (0.0, 0.0, -length)
    for k in range(balls):
        place = (2.0 * radius * k, 0.0, 0.0)
        b.add_body(f"ball{k}", 0, Revolute("y"), place, inertia=point_mass(1.0, end))
    for k in range(balls - 1):
        pair = (f"ball{k}", Ball(radius, end), f"ball{k + 1}", Ball(radius, end))
        b.add_contact(f"pair{k}", *pair, restitution=1.0)
    return b.build()


@register(
    q0=lambda model: [*model.neutral()[:4], 0.0, 0.0, _radius(model.contacts[0].shape_b)],
    v0=[0.0, 0.0, 0.0, 5.0, 0.0, 0.0],
    t_end=2.0,
    source="slides for t = 2v₀/(7μg), then rolls with 5v₀/7",
)
def bowling_ball(radius: float = 0.1, friction: float = 0.2, mass: float = 7.0) -> Model:
    """A ball thrown along a lane without spin: it slides, and then rolls.

    Parameters
    ----------
    radius, mass
        Of the ball, which is solid.
    friction
        Of the lane.

    Examples
    --------
    >>> bowling_ball().nv
    6
    """
    b = ModelBuilder(name="bowling ball")
    b.add_body("ball", 0, Free(), inertia=sphere(mass=mass, radius=radius))
    b.add_contact("lane", 0, HalfSpace(), "ball", Ball(radius), friction=friction)
    return b.build()


@register(
    q0=lambda model: [x for k in range(model.nv // 3) for x in (0.0, 0.5 * k + 0.25, 0.0)],
    v0=lambda model: [0.0] * (model.nv - 3) + [1.0, 0.0, 0.0],
    t_end=1.0,
    source="the uppermost, pushed with v₀, slides v₀²/(2μg) on the next",
)
def box_stack(boxes: int = 2, friction: float = 0.5) -> Model:
    """Boxes on top of each other in the plane xz, the uppermost of which is pushed.

    Parameters
    ----------
    boxes
        How many, of 1 kg, 1 m wide and 0.5 m high, the upper ones a little narrower.
    friction
        Between them, and with the floor.

    Examples
    --------
    >>> box_stack(3).nv
    9
    """
    b = ModelBuilder(name="box stack")
    top = HalfSpace((0.0, 0.0, 1.0), (0.0, 0.0, 0.25))
    for k in range(boxes):
        _in_plane(b, f"box{k}", box((1.0, 0.2, 0.5), mass=1.0))
        half = 0.5 - 0.02 * k
        b.add_solid(f"box{k}", "box", (2 * half, 0.2, 0.5))
        body: str | int = f"box{k - 1}" if k else 0
        below = top if k else HalfSpace()
        for name, x in (("left", -half), ("right", half)):
            corner = Vertex((x, 0.0, -0.25))
            b.add_contact(f"{name}{k}", body, below, f"box{k}", corner, friction=friction)
    return b.build()


def _leaning(model: Model) -> Array:
    foot = model.contacts[0].shape_b
    assert isinstance(foot, Vertex)
    half, lean = -foot.point[2], 0.2
    return np.array([half * np.sin(lean), half * np.cos(lean), -lean])


@register(q0=_leaning, t_end=1.0, source="leaves the wall at two thirds of its first height")
def sliding_ladder(length: float = 1.0, mass: float = 1.0) -> Model:
    """A ladder that slides down a smooth wall on a smooth floor.

    Parameters
    ----------
    length, mass
        Of the ladder, a uniform rod in the plane xz.

    Examples
    --------
    >>> sliding_ladder().nv
    3
    """
    b = ModelBuilder(name="sliding ladder")
    half = 0.5 * length
    _in_plane(b, "ladder", rod((0, 0, -half), (0, 0, half), mass=mass))
    b.add_contact("floor", 0, HalfSpace((0, 0, 1)), "ladder", Vertex((0, 0, -half)))
    b.add_contact("wall", 0, HalfSpace((1, 0, 0)), "ladder", Vertex((0, 0, half)))
    return b.build()


@register(
    q0=lambda model: _radius(model.contacts[0].shape_a) * np.array([np.sin(0.1), np.cos(0.1)]),
    t_end=1.2,
    source="leaves the sphere where its height has fallen to two thirds",
)
def bead_on_sphere(radius: float = 1.0, mass: float = 1.0) -> Model:
    """A bead that slides down a smooth sphere and leaves it.

    Parameters
    ----------
    radius
        Of the sphere.
    mass
        Of the bead, which moves in the plane xz.

    Examples
    --------
    >>> bead_on_sphere().q_names
    ('bead_x.shift', 'bead.shift')
    """
    b = ModelBuilder(name="bead on sphere")
    b.add_body("bead_x", 0, Prismatic("x"))
    b.add_body("bead", "bead_x", Prismatic("z"), inertia=point_mass(mass))
    b.add_contact("sphere", 0, Ball(radius), "bead", Vertex())
    return b.build()
