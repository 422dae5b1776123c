"""Motions with impacts and dry friction whose solutions are known in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from integrators.hybrid.switch import Switch
from integrators.problem import IVP, Event
from integrators.problems.registry import register

__all__ = ["friction_oscillator", "impact_oscillator"]


@register("dry_friction")
def friction_oscillator(mu: float = 1.0, start: float = 5.3, t_end: float = 8.0) -> IVP:
    """Oscillator with dry friction, q'' = −q − μ sign q', which sticks once |q| ≤ μ.

    Each half swing takes π and loses 2μ of the amplitude.
    """
    if not (mu > 0 and start > mu):
        raise ValueError(f"friction_oscillator needs start > mu > 0, got mu={mu}, start={start}")

    def side(sign: float) -> Any:
        return lambda t, y, p: np.array([y[1], -y[0] - sign * p[0]])

    def exact(t: Any) -> Any:
        swing, amplitude, sign = 0, start, 1.0
        while amplitude > mu and t > (swing + 1) * math.pi:
            amplitude, sign, swing = amplitude - 2 * mu, -sign, swing + 1
        if amplitude <= mu:
            return np.array([sign * amplitude, 0.0])
        s = t - swing * math.pi
        q = mu + (amplitude - mu) * np.cos(s)
        return sign * np.array([q, -(amplitude - mu) * np.sin(s)])

    return IVP(
        Switch(lambda t, y: y[1], side(1.0), side(-1.0), name="friction"),
        [start, 0.0],
        (0.0, t_end),
        [mu],
        exact=exact,
        source="A. F. Filippov, Differential equations with discontinuous righthand sides, 1988",
    )


@register("vibro_impact")
def impact_oscillator(wall: float = 0.5, restitution: float = 0.8, t_end: float = 12.0) -> IVP:
    """Oscillator q'' = −q from q = 1 at rest that hits a wall at q = −wall and bounces off it."""
    if not (0 < wall < 1 and 0 < restitution <= 1):
        raise ValueError(
            f"impact_oscillator needs 0 < wall < 1 and 0 < restitution <= 1, got {wall} and "
            f"{restitution}"
        )

    def f(t: Any, y: Any) -> Any:
        return np.array([y[1], -y[0]])

    def bounce(t: Any, y: Any) -> Any:
        return np.array([-wall, -restitution * y[1]])

    def exact(t: Any) -> Any:
        # A flight from (−wall, v) is −wall cos s + v sin s = R cos(s − φ), tan φ = −v/wall; it is
        # back at the wall, with −v, at s = 2φ.
        first = math.acos(-wall)
        if t <= first:
            return np.array([np.cos(t), -np.sin(t)])
        s, v = t - first, restitution * math.sqrt(1 - wall**2)
        while s > (flight := 2 * math.atan2(v, -wall)):
            s, v = s - flight, restitution * v
        return np.array([-wall * np.cos(s) + v * np.sin(s), wall * np.sin(s) + v * np.cos(s)])

    return IVP(
        f,
        [1.0, 0.0],
        (0.0, t_end),
        events=[Event(lambda t, y: y[0] + wall, direction=-1, reset=bounce, name="wall")],
        exact=exact,
        source="closed form",
    )
