"""Compliant contacts as elements: surfaces that yield where they are pressed (book, §11.8).

A surface of stiffness K and damping D is a massless patch at depth z ≤ 0, which follows

    D ż = −(K z + f),     f = 0 where φ > z,  else max(0, −K φ − D φ̇)              (Eq 11.73–11.75)

so that the body is never pulled, and may leave while φ < 0, faster than the patch creeps back.
While they touch, errors of z − φ die out at the rate K/D. A bounce without gravity has
e = exp(−2ζ acos ζ / √(1 − ζ²)), ζ = D / 2√(Km). Friction has a spring and a damper along the
tangents, with displacements x of its own:

    D_t ẋ = −(K_t x + f_t),     f_t = −K_t x − D_t s, cut to length μ f            (Eq 11.77–11.79)

(the vector is scaled, not its components, so that no direction is preferred).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from integrators.tracing import where

from ..elements import Element, NamedElement
from .contacts import Contact, HuntCrossley, SpringDamper
from .surfaces import BALL_BALL, BALL_BOWL, BALL_PLANE, DISC_PLANE, Shape, elementary

__all__ = ["SoftContact", "SoftPoint", "soft_elements"]

#: A patch and a body that are closer than this (m, and part of the depth) are together: both move
#: alike, and which of the two is deeper is a matter of errors.
TOGETHER, NEARLY = 1e-8, 1e-3

#: Squares below this count as zero: the axis of a disc upright, segments parallel.
FLAT = 1e-20


class SoftPoint(NamedTuple):
    """A point of a compliant contact: gap, place, normal, force on body b, rates of its states."""

    gap: Any
    point: Any
    normal: Any
    force: Any
    rates: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class SoftContact(Element):
    """A contact whose surfaces yield; `ModelBuilder.add_contact` with a law makes one."""

    body_a: str | int
    shape_a: Shape
    body_b: str | int
    shape_b: Shape
    friction: float

    def __post_init__(self) -> None:
        turned, parts = elementary("", self.shape_a, self.shape_b)
        pair = (self.body_b, self.body_a) if turned else (self.body_a, self.body_b)
        of_point = self._state_names() if self.friction > 0.0 else self._state_names()[:1]
        names = [(name, k) for k in range(len(parts)) for name in of_point]
        states = tuple(name if len(parts) == 1 else f"{name}[{k}]" for name, k in names)
        for name, value in {"states": states, "_pair": pair, "_parts": parts}.items():
            object.__setattr__(self, name, value)

    @property
    def is_numbers(self) -> bool:
        """Whether it is without a function of the user's."""
        return True

    @staticmethod
    def _state_names() -> tuple[str, ...]:
        return ()

    def points(self, here: Any) -> Iterator[SoftPoint]:
        """What happens at each point."""
        first, second = self._pair  # type: ignore[attr-defined]
        a, b = here.frame(first), here.frame(second)
        # Seen from a: how far away from the base's origin both are must not matter to gaps.
        origin, way = a.position, here.between(first, np.zeros(3), second, np.zeros(3))
        a, b = a._replace(position=0.0 * way), b._replace(position=way)
        count = len(self.states) // len(self._parts)  # type: ignore[attr-defined]
        for k, (kind, numbers) in enumerate(self._parts):  # type: ignore[attr-defined]
            gap, n, p = touching(kind, np.array(numbers), a, b)
            u = b.velocity + _cross(b.omega, p - b.position)
            u = u - a.velocity - _cross(a.omega, p - a.position)
            force, rates = self._law(gap, n @ u, n, u, here.z[count * k : count * (k + 1)])
            yield SoftPoint(gap, origin + p, n, force, rates)

    def _law(self, gap: Any, rate: Any, n: Any, u: Any, z: Any) -> tuple[Any, tuple[Any, ...]]:
        """Force on body b, and rates of the states z; u is its velocity at the point."""
        raise TypeError(f"{type(self).__name__}: a compliant contact needs a law")

    def act(self, here: Any) -> None:
        """Push the bodies apart, and rub."""
        a, b = self._pair  # type: ignore[attr-defined]
        rates: list[Any] = []
        several = len(self._parts) > 1  # type: ignore[attr-defined]
        for k, at in enumerate(self.points(here)):
            here.push_at(b, at.force, at.point)
            here.push_at(a, -at.force, at.point)
            rates += at.rates
            here.output(f"gap[{k}]" if several else "gap", at.gap)
            here.output(f"force[{k}]" if several else "force", at.normal @ at.force)
        if rates:
            here.rates(np.array(rates))


@dataclass(frozen=True, eq=False)
class _SpringDamperContact(SoftContact):
    stiffness: float
    damping: float
    tangential_stiffness: float
    tangential_damping: float

    @staticmethod
    def _state_names() -> tuple[str, ...]:
        return ("depth", "bristle1", "bristle2")

    def _law(self, gap: Any, rate: Any, n: Any, u: Any, z: Any) -> tuple[Any, tuple[Any, ...]]:
        push = np.maximum(-self.stiffness * gap - self.damping * rate, 0.0)
        push = where(gap <= z[0] + TOGETHER + NEARLY * abs(z[0]), push, 0.0)
        sinking = -(self.stiffness * z[0] + push) / self.damping
        if len(z) == 1:
            return push * n, (sinking,)
        K, D = self.tangential_stiffness, self.tangential_damping
        ways = _tangents(n)
        stick = [-K * x - D * (way @ u) for x, way in zip(z[1:], ways)]
        size = np.sqrt(stick[0] * stick[0] + stick[1] * stick[1] + 1e-300)
        part = np.minimum(self.friction * push / size, 1.0)
        first, second = part * stick[0], part * stick[1]
        bends = (-(K * z[1] + first) / D, -(K * z[2] + second) / D)
        return push * n + first * ways[0] + second * ways[1], (sinking, *bends)

    def act(self, here: Any) -> None:
        """The same; springs store energy."""
        super().act(here)
        count = len(self.states) // len(self._parts)  # type: ignore[attr-defined]
        for j, z in enumerate(here.z):
            K = self.stiffness if j % count == 0 else self.tangential_stiffness
            here.energy(0.5 * K * z * z)


@dataclass(frozen=True, eq=False)
class _HuntCrossleyContact(SoftContact):
    stiffness: float
    exponent: float
    dissipation: float
    slip_speed: float

    def _law(self, gap: Any, rate: Any, n: Any, u: Any, z: Any) -> tuple[Any, tuple[Any, ...]]:
        depth = where(gap < 0.0, -gap, 1.0)  # a power of zero has no derivative
        push = self.stiffness * depth**self.exponent * (1.0 - self.dissipation * rate)
        push = where(gap < 0.0, np.maximum(push, 0.0), 0.0)
        slip = u - rate * n
        size = np.sqrt(slip @ slip + self.slip_speed * self.slip_speed)
        return push * n - (self.friction * push / size) * slip, ()


def soft_elements(contacts: tuple[Contact, ...]) -> tuple[NamedElement, ...]:
    """Elements of the contacts that have a law."""
    kinds: dict[Any, Any] = {SpringDamper: _SpringDamperContact, HuntCrossley: _HuntCrossleyContact}
    found = []
    for c in contacts:
        if c.law is not None:
            sides = (c.body_a, c.shape_a, c.body_b, c.shape_b, c.friction)
            found.append(NamedElement(c.name, kinds[type(c.law)](*sides, **vars(c.law))))
    return tuple(found)


# ---------------------------------------------------------------------- geometry, without branches


def touching(kind: int, x: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Gap, normal from a to b, and point, as `contact.geometry` has them; of numbers or symbols."""
    if kind in (BALL_PLANE, DISC_PLANE):
        n, centre = a.R @ x[0:3], b.position + b.R @ x[6:9]
        if kind == BALL_PLANE:
            p = centre - x[9] * n
        else:
            axis = b.R @ x[9:12]
            u = n - (n @ axis) * axis  # in the plane of the disc
            square = u @ u
            u = where(square < FLAT, _tangents(axis)[0], u / np.sqrt(np.maximum(square, FLAT)))
            p = centre - x[12] * u
        return n @ (p - a.position - a.R @ x[3:6]), n, p
    if kind in (BALL_BALL, BALL_BOWL):
        ends = a.position + a.R @ x[0:3], b.position + b.R @ x[4:7]
        return _between(*ends, x[3], x[7], 1.0 if kind == BALL_BALL else -1.0)
    first, last = a.position + a.R @ x[0:3], a.position + a.R @ x[3:6]
    start, end = b.position + b.R @ x[7:10], b.position + b.R @ x[10:13]
    s, t = _nearest(last - first, end - start, start - first)
    return _between(first + s * (last - first), start + t * (end - start), x[6], x[13], 1.0)


def _between(a: Any, b: Any, r_a: Any, r_b: Any, sign: float) -> tuple[Any, Any, Any]:
    """Two balls (sign +1), or one inside the other (−1)."""
    d = b - a
    square = d @ d
    distance = np.sqrt(where(square > 0.0, square, 1.0))
    n = sign * where(square > 0.0, d / distance, np.array([1.0, 0.0, 0.0]))  # or concentric
    gap = sign * (where(square > 0.0, distance, 0.0) - r_a) - r_b
    return gap, n, a + sign * r_a * n


def _nearest(u: Any, v: Any, d: Any) -> tuple[Any, Any]:
    """Parts s, t of two segments at which |d + t v − s u| is smallest.

    Of parallel ones the middle of what faces each other.
    """
    uu, vv, uv, ud, vd = u @ u, v @ v, u @ v, u @ d, v @ d
    det, long = uu * vv - uv * uv, np.maximum(uu, FLAT)
    crossing = _part((ud * vv - uv * vd) / np.maximum(det, FLAT * FLAT))
    facing = 0.5 * (_part(ud / long) + _part((ud + uv) / long))
    s = where(uu > 0.0, where(det > FLAT * uu * vv, crossing, facing), 0.0)
    t = where(vv > 0.0, (s * uv - vd) / np.maximum(vv, FLAT), 0.0)
    inside = _part(t)
    s = where(abs(t - inside) > 0.0, where(uu > 0.0, _part((ud + inside * uv) / long), s), s)
    return s, inside


def _part(x: Any) -> Any:
    return np.minimum(np.maximum(x, 0.0), 1.0)


def _cross(a: Any, b: Any) -> Any:
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def _tangents(n: Any) -> tuple[Any, Any]:
    """Two unit vectors at right angles to n and to each other, as `contact.geometry` has them."""
    axes = [_beside(n, k) for k in range(3)]
    size = [abs(n[k]) for k in range(3)]
    first = where(size[1] < size[0] - 1e-12, axes[1], axes[0])
    least = where(size[1] < size[0] - 1e-12, size[1], size[0])
    first = where(size[2] < least - 1e-12, axes[2], first)
    return first, _cross(n, first)


def _beside(n: Any, k: int) -> Any:
    """Unit vector at right angles to n in the plane of n and axis k."""
    along = np.arange(3) == k
    return (along - n[k] * n) / np.sqrt(np.maximum(1.0 - n[k] * n[k], FLAT))
