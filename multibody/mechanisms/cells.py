"""Planar linkages of many loops: scissor, ladder, Peaucellier's inversor.

In the xy plane, hinges about z, as in ``linkages.py``; gravity is along −y unless said otherwise.
"""

from __future__ import annotations

import numpy as np

from ..checks import Array, real_scalar
from ..joints import Prismatic, Revolute
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import Inertia, point_mass
from .linkages import angle_of, bar, count, lengths_of, meeting_point
from .registry import register

__all__ = ["ladder", "peaucellier", "scissor"]

# ---------------------------------------------------------------------- scissor


def scissor_position(model: Model, angle: float = 0.8) -> Array:
    """Position of a scissor whose bars are at ±angle to the horizontal.

    Bars a rise to the right, bars b to the left; each is measured from the bar that carries it.
    """
    n = model.n_bodies // 2
    q = np.zeros(model.nq)
    absolute = {"slider": 0.0}
    for k in range(1, n + 1):
        absolute[f"a{k}"], absolute[f"b{k}"] = angle, np.pi - angle
    for body, place in zip(model.bodies, model.q_index):
        parent = model.bodies[body.parent - 1].name if body.parent else ""
        q[place] = absolute[body.name] - absolute.get(parent, 0.0)
    length = 2.0 * float(model.loops[-1].placement_predecessor.r[0]) * -1.0
    q[model.q_index[model.number("slider") - 1]] = length * np.cos(angle)
    return q


@register(
    q0=scissor_position,
    t_end=0.3,
    source="one degree of freedom: closed equation of the angle, tests",
)
def scissor(
    n: int = 3, length: float = 1.0, density: float = 1.0, slider: float = 0.5,
    gravity: float = 9.81,
) -> Model:  # fmt: skip
    """Scissor lift of n crossed pairs of bars; its foot slides along x, one degree of freedom.

    Bars a1 … an rise to the right, b1 … bn to the left. a1 is hinged to the base at the origin;
    the foot of b1 is a slider on the x axis. Frames of a1 and b-bars are explained by the tree:
    each bar hangs at its lower end on the top of a bar below, except b1, which hangs at its middle
    on the middle of a1.

    Parameters
    ----------
    n
        Number of cells.
    length, density
        Length of each bar, and its mass in kg/m.
    slider
        Mass of the foot that slides.
    gravity
        In m/s², along −y.

    Examples
    --------
    >>> model = scissor(4)
    >>> model.nv, len(model.loops)
    (9, 4)
    """
    n = count(n, "n", "cells")
    (L,) = lengths_of("scissor", length=length)
    if real_scalar(slider, "slider") <= 0.0:
        raise ValueError(f"slider: expected a positive mass, received {slider!r}")
    mass = density * L
    centred = Inertia(mass, (0.0, 0.0, 0.0), (0.0, mass * L**2 / 12, mass * L**2 / 12))
    half, whole = (L / 2, 0.0, 0.0), (L, 0.0, 0.0)
    build = ModelBuilder(gravity=(0.0, -gravity, 0.0), name=f"scissor of {n}")
    build.add_body("a1", 0, Revolute(), inertia=bar(L, density))
    build.add_body("b1", "a1", Revolute(), half, centred)
    for k in range(2, n + 1):
        # a-bars have their top on the right, where the next b-bar, which rises to the left, stands.
        build.add_body(f"a{k}", f"b{k - 1}", Revolute(), half if k == 2 else whole, bar(L, density))
        build.add_body(f"b{k}", f"a{k - 1}", Revolute(), whole, bar(L, density))
        build.add_loop(f"middle{k}", f"a{k}", f"b{k}", Revolute(), half, half)
    build.add_body("slider", 0, Prismatic("x"), inertia=point_mass(slider))
    build.add_loop("foot", "b1", "slider", Revolute(), (-L / 2, 0.0, 0.0))
    return build.build()


# ---------------------------------------------------------------------- ladder


@register(
    q0=lambda model: _turned_ladder(model),
    t_end=1.0,
    source="book, §8.13 and Fig. 8.4: graph of the example for sparse methods",
)
def ladder(
    n: int = 4, width: float = 0.5, step: float = 0.4, mass: float = 1.0, gravity: float = 9.81
) -> Model:
    """Planar ladder of n rungs that hangs from one hinge: 2n bodies, 3n − 1 hinges, n − 1 loops.

    Left and right bodies of a rung are hinged to each other in its middle, and to those of the
    next rung at its ends, so that every spanning tree has long chains. Two degrees of freedom:
    the ladder swings and shears.

    Parameters
    ----------
    n
        Number of rungs.
    width, step
        Of a rung, and from rung to rung.
    mass
        Of each body, spread like an upright rod beside half a rung.
    gravity
        In m/s², along −y.

    Examples
    --------
    >>> model = ladder(5)
    >>> model.n_bodies, len(model.loops)
    (10, 4)
    """
    n = count(n, "n", "rungs", 2)
    w, s = lengths_of("ladder", width=width, step=step)
    moment = mass * (s**2 + w**2 / 4) / 12
    build = ModelBuilder(gravity=(0.0, -gravity, 0.0), name=f"ladder of {n}")
    # Every body's frame is at its upper end; its rung joint is half a step below and to the side.
    inner = {"left": w / 2, "right": -w / 2}
    for side in inner:
        for k in range(1, n + 1):
            inertia = Inertia(
                mass, (inner[side] / 4, -s / 2, 0.0), (moment / 2, moment / 2, moment)
            )
            build.declare_body(f"{side}{k}", inertia)
    build.add_joint("hook", 0, "left1", Revolute())
    for k in range(1, n + 1):
        places = [(inner[side], -s / 2, 0.0) for side in inner]
        build.add_joint(f"rung{k}", f"left{k}", f"right{k}", Revolute(), *places)
        if k < n:
            for side in inner:
                build.add_joint(
                    f"{side} rail{k}", f"{side}{k}", f"{side}{k + 1}", Revolute(), (0.0, -s, 0.0)
                )
    return build.build()


def _turned_ladder(model: Model) -> Array:
    """Ladder that hangs at an angle; all other joints are in their neutral positions."""
    q = model.neutral()
    q[model.q_index[model.number("left1") - 1]] = 0.3
    return q


# ---------------------------------------------------------------------- Peaucellier


def peaucellier_position(model: Model, crank_angle: float = 0.5) -> Array:
    """Position for an angle of the crank, in closed form."""
    crank_at = model.bodies[0].placement.r[:2]
    short = float(model.loops[0].placement_predecessor.r[0])
    long = float(model.bodies[model.number("long1_inner") - 1].placement.r[0])
    radius = float(crank_at[0])
    C = crank_at + radius * np.array([np.cos(crank_angle), np.sin(crank_angle)])
    O = np.zeros(2)
    A, B = (meeting_point(O, C, long, short, side) for side in (1.0, -1.0))
    P = A + B - C
    direction = {
        "crank": crank_angle,
        "long1": angle_of(O, A),
        "long2": angle_of(O, B),
        "long1_inner": angle_of(A, C),
        "long2_inner": angle_of(B, C),
        "long1_outer": angle_of(A, P),
        "long2_outer": angle_of(B, P),
    }
    q = np.empty(model.nq)
    for k, body in enumerate(model.bodies):
        above = direction[model.bodies[body.parent - 1].name] if body.parent else 0.0
        q[k] = np.remainder(direction[body.name] - above + np.pi, 2 * np.pi) - np.pi
    return q


@register(
    q0=peaucellier_position,
    source="the tip moves on the straight line x = (long² − short²)/(2 crank); Peaucellier 1864",
)
def peaucellier(
    crank: float = 0.5,
    long: float = 1.5,
    short: float = 0.6,
    density: float = 1.0,
    gravity: float = 9.81,
) -> Model:
    """Peaucellier's linkage: seven bars whose tip draws an exact straight line.

    Two long bars turn about the origin O; a rhombus of short bars hangs between their ends A and
    B. Its inner corner C runs on a circle through O, guided by a crank about (crank, 0); so its
    outer corner P, the inverse of C, runs on a line parallel to y.

    Parameters
    ----------
    crank
        Length of the crank, which is also the distance of its hinge from O.
    long, short
        Lengths of the long bars and of the rhombus' sides.
    density
        Mass of the bars, in kg/m.
    gravity
        In m/s², along +x, so that the linkage hangs and swings.

    Examples
    --------
    >>> model = peaucellier()
    >>> from multibody import point_position
    >>> for angle in (0.3, 0.7):  # (1.5² − 0.6²)/(2·0.5)
    ...     q = peaucellier_position(model, angle)
    ...     print(point_position(model, q, "long1_outer", (0.6, 0, 0))[0].round(12))
    1.89
    1.89
    """
    c, a, b = lengths_of("peaucellier", crank=crank, long=long, short=short)
    build = ModelBuilder(gravity=(gravity, 0.0, 0.0), name="Peaucellier")
    build.add_body("crank", 0, Revolute(), (c, 0.0, 0.0), bar(c, density))
    end = (b, 0.0, 0.0)
    for k in (1, 2):
        build.add_body(f"long{k}", 0, Revolute(), inertia=bar(a, density))
        for place in ("inner", "outer"):
            build.add_body(
                f"long{k}_{place}", f"long{k}", Revolute(), (a, 0.0, 0.0), bar(b, density)
            )
    build.add_loop("C1", "long1_inner", "crank", Revolute(), end, (c, 0.0, 0.0))
    build.add_loop("C2", "long2_inner", "crank", Revolute(), end, (c, 0.0, 0.0))
    build.add_loop("P", "long1_outer", "long2_outer", Revolute(), end, end)
    return build.build()
