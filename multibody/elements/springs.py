"""Springs of any law, and bushings: elastic joints with six stiffnesses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from integrators.tracing import where

from ..checks import exact_array, has_symbols, real_array
from .base import Element, element_kind

__all__ = ["Bushing", "JointSpring", "PointForce", "SpringLaw", "Suspension"]

Point = Any


def _point(element: Any, name: str) -> None:
    value = np.asarray(getattr(element, name))
    if not has_symbols(value):
        value = exact_array(value, f"{type(element).__name__}: {name}", (3,))
    object.__setattr__(element, name, value)


@dataclass(frozen=True, eq=False)
class SpringLaw(Element):
    """A spring between two points, with any law: ``force(length, rate)`` pulls them together.

    Parameters
    ----------
    body_a, point_a, body_b, point_b
        Bodies (0 or "base" for the base), and points in their coordinates.
    force
        Pull in N of the length in m and its rate in m/s, written with NumPy; a rope is
        ``lambda x, u: 1e4 * np.maximum(x - 2.0, 0.0)``.

    Notes
    -----
    The two points must not meet, unless the force vanishes there: the direction of a spring
    without length is not defined.
    """

    body_a: str | int
    point_a: Point
    body_b: str | int
    point_b: Point
    force: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        if not callable(self.force):
            raise TypeError(
                f"SpringLaw: expected a function force(length, rate), received {self.force!r:.80}; "
                "for a stiffness use ModelBuilder.add_spring"
            )
        _point(self, "point_a")
        _point(self, "point_b")

    def act(self, here: Any) -> None:
        """Pull along the line between the points."""
        a, b = here.point(self.body_a, self.point_a), here.point(self.body_b, self.point_b)
        x = here.between(self.body_a, self.point_a, self.body_b, self.point_b)
        u = b.velocity - a.velocity
        length = np.sqrt(x @ x)
        way = x / length
        pull = self.force(length, way @ u)
        here.push(self.body_a, pull * way, self.point_a)
        here.push(self.body_b, -pull * way, self.point_b)
        here.output("length", length)
        here.output("force", pull)


@dataclass(frozen=True, eq=False)
class JointSpring(Element):
    """A spring or damper of any law in a joint of one freedom: ``force(position, velocity)``.

    The force acts on the joint as a motor's would; a spring returns −k·position. The joint may be
    one that closes a loop, named by the loop.
    """

    joint: str
    force: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        if not callable(self.force):
            raise TypeError(
                f"JointSpring: expected a function force(position, velocity), received "
                f"{self.force!r:.80}"
            )

    def act(self, here: Any) -> None:
        """Push."""
        q, v = here.joint(self.joint)
        force = self.force(q[0], v[0])
        here.push_joint(self.joint, force)
        here.output("force", force)


@element_kind
@dataclass(frozen=True, eq=False)
class PointForce(Element):
    """A force at a point of a body, in base axes: three numbers, or a function of time.

    Parameters
    ----------
    body, point
        Body, and a point in its coordinates.
    force
        (F_x, F_y, F_z) in N, or ``force(t)`` that returns them.
    """

    body: str | int
    point: Point
    force: Any

    kind: ClassVar[str] = "point_force"

    def __post_init__(self) -> None:
        _point(self, "point")
        if not callable(self.force):
            _point(self, "force")

    def act(self, here: Any) -> None:
        """Push."""
        force = self.force(here.t) if callable(self.force) else self.force
        here.push(self.body, np.asarray(force), self.point)


@element_kind
@dataclass(frozen=True, eq=False)
class Suspension(Element):
    """A spring and damper that hold a point of a body at the height of a road, along the base's z.

    Parameters
    ----------
    body, point
        Body, and a point in its coordinates.
    stiffness, damping
        In N/m and N s/m.
    road
        Height over time: a number, a :class:`Wave`, a :class:`Table`, a function. The damper feels
        the road's own speed where the road tells it (a number, a wave).
    """

    body: str | int
    point: Point
    stiffness: float
    damping: float = 0.0
    road: Any = 0.0

    kind: ClassVar[str] = "suspension"

    def __post_init__(self) -> None:
        _point(self, "point")

    def act(self, here: Any) -> None:
        """Push up or down."""
        x, v = here.point(self.body, self.point)
        rate = self.road.rate(here.t) if hasattr(self.road, "rate") else 0.0
        stretch = here.signal(self.road) - x[2]
        force = self.stiffness * stretch + self.damping * (rate - v[2])
        here.push(self.body, np.array([0.0 * force, 0.0 * force, force]), self.point)
        here.energy(0.5 * self.stiffness * stretch * stretch)
        here.output("force", force)


@element_kind
@dataclass(frozen=True, eq=False)
class Bushing(Element):
    """A bushing: six springs and dampers between two frames, coupled by 6×6 matrices.

    Parameters
    ----------
    body_a, point_a, body_b, point_b
        Bodies, and the origins of the two frames in body coordinates; axes are those of the bodies.
    stiffness, damping
        6×6, or six numbers for a diagonal: rotations about x, y, z (N m/rad), then displacements
        (N/m), of frame b seen from frame a, in the axes of a.

    Notes
    -----
    With the relative rotation by φ about n, rotations are measured as 2 sin(φ/2) n, which is φ n
    up to φ³/24. Forces are those that belong to these six numbers, so that a symmetric stiffness
    has the energy ½ ξᵀKξ exactly, for large motions as well: a stiffness k against turning about
    one axis is the couple −k sin φ. At half a turn n changes its sign. Couples do not, nor do
    forces, unless the matrices couple rotations with displacements.

    Examples
    --------
    >>> from multibody import Bushing, Free, ModelBuilder, box, simulate
    >>> b = ModelBuilder(name="engine")
    >>> _ = b.add_body("engine", 0, Free(), inertia=box(mass=90.0, size=(0.5, 0.4, 0.4)))
    >>> b.add_element("mount", Bushing(0, (0, 0, 0), "engine", (0, 0, 0), [2e3] * 3 + [1e5] * 3,
    ...                                [20.0] * 3 + [900.0] * 3))
    >>> run = simulate(b.build(), T=5.0)
    >>> f"{run.y[6, -1]:.6f}"  # it sags by m g / k
    '-0.008829'
    """

    body_a: str | int
    point_a: Point
    body_b: str | int
    point_b: Point
    stiffness: Any
    damping: Any = 0.0

    kind: ClassVar[str] = "bushing"

    def __post_init__(self) -> None:
        for name in ("point_a", "point_b"):
            _point(self, name)
        for name in ("stiffness", "damping"):
            value = real_array(getattr(self, name), f"Bushing: {name}")
            if value.ndim == 0:
                value = np.full(6, value[()])
            if value.shape == (6,):
                value = np.diag(value)
            if value.shape != (6, 6):
                raise ValueError(
                    f"Bushing: expected one number, six or 6×6 as {name}, received shape "
                    f"{np.shape(getattr(self, name))}"
                )
            object.__setattr__(self, name, value)

    def act(self, here: Any) -> None:
        """Push b back, and a the other way, at the place of b."""
        a, b = here.frame(self.body_a, self.point_a), here.frame(self.body_b, self.point_b)
        arm = here.between(self.body_a, self.point_a, self.body_b, self.point_b)
        q0, *axis = _quaternion(a.R.T @ b.R)
        half = np.array(axis)
        omega = a.R.T @ (b.omega - a.omega)
        slip = b.velocity - a.velocity - np.cross(a.omega, arm)
        x = np.concatenate([2.0 * half, a.R.T @ arm])
        rate = np.concatenate([q0 * omega + np.cross(omega, half), a.R.T @ slip])
        elastic = self.stiffness @ x
        f = -(elastic + self.damping @ rate)
        couple = a.R @ (q0 * f[:3] + np.cross(half, f[:3]))
        force = a.R @ f[3:]
        here.push_at(self.body_b, force, b.position, couple)
        here.push_at(self.body_a, -force, b.position, -couple)
        here.energy(0.5 * (x @ elastic))


def _quaternion(R: Any) -> list[Any]:
    """Unit quaternion of a rotation, with q₀ ≥ 0; of numbers or symbols, half turns included.

    Each row of 4 q qᵀ is a sum of entries of R. The first serves where it is long, and another one,
    with the sign of the first, around half a turn.
    """
    x, y, z = R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1]
    xy, xz, yz = R[1][0] + R[0][1], R[0][2] + R[2][0], R[2][1] + R[1][2]
    along = [R[0][0], R[1][1], R[2][2]]
    trace = along[0] + along[1] + along[2]
    squares = [1.0 + trace, *(1.0 - trace + 2.0 * r for r in along)]
    rows = [[squares[0], x, y, z], [x, squares[1], xy, xz], [y, xy, squares[2], yz]]
    rows.append([z, xz, yz, squares[3]])
    longest, row = squares[1], rows[1]
    for square, other in zip(squares[2:], rows[2:]):
        row = [where(square > longest, new, old) for new, old in zip(other, row)]
        longest = where(square > longest, square, longest)
    near = squares[0] >= 1.0  # the four squares add up to 4
    sign = where(near | (row[0] >= 0.0), 1.0, -1.0)
    scale = 0.5 * sign / np.sqrt(where(near, squares[0], longest))
    return [scale * where(near, new, old) for new, old in zip(rows[0], row)]
