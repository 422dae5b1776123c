"""Rigid bodies in closed form: Euler's top, and a ball that bounces."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.problem import IVP, Event
from integrators.problems.registry import register

__all__ = ["bounce_times", "bouncing_ball", "rigid_body"]


@register("euler_equations", "euler_top")
def rigid_body(
    inertia: tuple[float, float, float] = (1.0, 2.0, 3.0),
    omega1: float = 1.0,
    omega3: float = 1.0,
    t_end: float = 20.0,
) -> IVP:
    """Euler's equations of the force-free rigid body.

    Parameters
    ----------
    inertia
        Principal moments of inertia I₁ < I₂ < I₃ (kg m²); they are the parameters of f.
    omega1, omega3
        Angular velocity (rad/s) at t = 0 in the body frame, (ω₁, 0, ω₃).
    t_end
        End of the integration.

    Notes
    -----
    I₁ω₁' = (I₂ − I₃) ω₂ω₃ and cyclic. For motions around the third axis the solution is
    (ω₁ cn, b sn, ω₃ dn) of pt, with p² = ω₃²(I₃ − I₂)(I₃ − I₁)/(I₁I₂),
    b = (I₃ − I₁) ω₁ω₃/(I₂p) and parameter m = (I₂ − I₁) ω₁b/(I₃ω₃p) < 1.

    Examples
    --------
    >>> rigid_body().exact(0.0)
    array([1., 0., 1.])
    """
    I1, I2, I3 = (float(v) for v in inertia)
    if not 0 < I1 < I2 < I3:
        raise ValueError(f"inertia must be three moments 0 < I1 < I2 < I3, got {inertia}")
    if omega3 <= 0:
        raise ValueError(f"omega3 must be positive, got {omega3}")
    p = omega3 * np.sqrt((I3 - I2) * (I3 - I1) / (I1 * I2))
    b = (I3 - I1) * omega1 * omega3 / (I2 * p)
    m = (I2 - I1) * omega1 * b / (I3 * omega3 * p)
    if not m < 1:
        raise ValueError(
            f"the motion is not around the third axis (m = {m:g}, expected < 1); reduce omega1"
        )

    def f(t: Any, w: Any, p: Any) -> Any:
        return np.array(
            [
                (p[1] - p[2]) / p[0] * w[1] * w[2],
                (p[2] - p[0]) / p[1] * w[2] * w[0],
                (p[0] - p[1]) / p[2] * w[0] * w[1],
            ]
        )

    def jac(t: Any, w: Any, p: Any) -> Any:
        k1, k2, k3 = (p[1] - p[2]) / p[0], (p[2] - p[0]) / p[1], (p[0] - p[1]) / p[2]
        return np.array(
            [
                [0.0, k1 * w[2], k1 * w[1]],
                [k2 * w[2], 0.0, k2 * w[0]],
                [k3 * w[1], k3 * w[0], 0.0],
            ]
        )

    def exact(t: Any) -> Any:
        from scipy.special import ellipj

        sn, cn, dn, _ = ellipj(p * t, m)
        return np.array([omega1 * cn, b * sn, omega3 * dn])

    def energy(t: Any, w: Any) -> Any:
        return (I1 * w[0] ** 2 + I2 * w[1] ** 2 + I3 * w[2] ** 2) / 2

    def momentum(t: Any, w: Any) -> Any:
        return (I1 * w[0]) ** 2 + (I2 * w[1]) ** 2 + (I3 * w[2]) ** 2

    return IVP(
        f,
        [omega1, 0.0, omega3],
        (0.0, t_end),
        [I1, I2, I3],
        jac=jac,
        exact=exact,
        invariants={"energy": energy, "momentum squared": momentum},
        source="L. Euler, 1758; C. G. J. Jacobi, 1849",
    )


def bounce_times(count: int, height: float = 1.0, g: float = 9.81, restitution: float = 0.9) -> Any:
    """Return the times of the first bounces of :func:`bouncing_ball`.

    Parameters
    ----------
    count
        How many.
    height
        Height (m) from which the ball is dropped at t = 0.
    g
        Gravity (m/s²).
    restitution
        Speed after a bounce over speed before it.

    Examples
    --------
    >>> bounce_times(3, g=2.0, restitution=0.5)
    array([1. , 2. , 2.5])
    """
    fall = np.sqrt(2 * height / g)
    flights = 2 * fall * restitution ** np.arange(1, count)
    return fall + np.concatenate([[0.0], np.cumsum(flights)])[:count]


@register("ball")
def bouncing_ball(
    height: float = 1.0, g: float = 9.81, restitution: float = 0.9, t_end: float = 3.0
) -> IVP:
    """Ball dropped on the floor: an event with a reset at each bounce.

    Notes
    -----
    State (height, velocity). For restitution e < 1 the bounces accumulate at
    √(2h/g) (1 + e)/(1 − e), 8.58 s by default; after it the exact solution is at rest.
    """
    if not 0 < restitution <= 1:
        raise ValueError(f"restitution must satisfy 0 < restitution ≤ 1, got {restitution}")

    def f(t: Any, y: Any, p: Any) -> Any:
        return np.array([y[1], -p[0]])

    def jac(t: Any, y: Any, p: Any) -> Any:
        return np.array([[0.0, 1.0], [0.0, 0.0]])

    def floor(t: Any, y: Any, p: Any) -> Any:
        return y[0]

    def reset(t: Any, y: Any) -> Any:
        return np.array([0.0 * y[0], -restitution * y[1]])

    fall = np.sqrt(2 * height / g)

    def exact(t: Any) -> Any:
        if t <= fall:
            return np.array([height - g * t * t / 2, -g * t])
        last, speed = fall, restitution * g * fall
        while speed > 1e-16 * g * fall:
            flight = 2 * speed / g
            if t <= last + flight:
                s = t - last
                return np.array([speed * s - g * s * s / 2, speed - g * s])
            last, speed = last + flight, restitution * speed
        return np.array([0.0, 0.0])

    return IVP(
        f,
        [height, 0.0],
        (0.0, t_end),
        [g],
        jac=jac,
        events=Event(floor, direction=-1, reset=reset, name="bounce"),
        exact=exact,
        source="Newton's law of impact",
    )
