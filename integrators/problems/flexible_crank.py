"""A slider-crank with an elastic connecting rod, as a mechanical system with constraints.

Crank, rod and slider move in a horizontal plane. The rod bends in two sine modes and stretches in
two quadratic ones (linear theory of beams), relative to the line that turns by φ₂:

    r(ξ) = l₁ e(φ₁) + R(φ₂) (ξ + u(ξ), w(ξ)),
    w = q₁ sin πs + q₂ sin 2πs,   u = 4 q₃ (s − s²) + q₄ (2s² − s),   s = ξ/l₂.

Its kinetic energy is that of masses at Gauss' points, so that M = Σ m Jᵀ J and the terms of
velocity are −Σ m Jᵀ J̇ v. Numbers after B. Simeon, Modelling a flexible slider crank mechanism by a
mixed system of DAEs and PDEs, Math. Modelling of Systems 2 (1996) 1-18; there the crank is driven
and the stretching of a bent rod is of second order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dae import Mechanical

__all__ = ["flexible_crank"]

POINTS = 10  # of Gauss: the products of two modes are integrated to 1e-13
NAMES = ("crank", "rod", "slider", "bend1", "bend2", "stretch_middle", "stretch_end")


def flexible_crank(
    crank: float = 0.15,
    rod: float = 0.3,
    youngs_modulus: float = 2e11,
    density: float = 7870.0,
    thickness: float = 0.008,
    crank_inertia: float = 0.002727 + 0.36 * 0.15**2 / 4,
    slider_mass: float = 0.075552,
    speed: float = 150.0,
    t_end: float = 0.02,
) -> Mechanical:
    """Slider-crank whose rod bends and stretches, let go at a speed.

    Parameters
    ----------
    crank, rod
        Lengths l₁ and l₂, in m.
    youngs_modulus, density, thickness
        Of the rod, whose section is a square: in Pa, kg/m³ and m.
    crank_inertia
        About its bearing, in kg m².
    slider_mass
        In kg.
    speed
        Of the crank at the start, in rad/s; the rod begins without stress.
    t_end
        In s.

    Returns
    -------
    Mechanical
        Positions (φ₁, φ₂, x₃, q₁, q₂, q₃, q₄), two constraints, the energy as an invariant.

    Examples
    --------
    >>> system = flexible_crank()
    >>> system.nq, system.m
    (7, 2)
    """
    area, second = thickness**2, thickness**4 / 12.0
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    s = 0.5 * (nodes + 1.0)
    masses = 0.5 * weights * density * area * rod
    shapes = [
        (2.0 * (2.0 * x - 2.0 * x * x), 2.0 * x * x - x, np.sin(np.pi * x), np.sin(2 * np.pi * x))
        for x in s
    ]  # of q3, q4 along, and of q1, q2 across
    bend = youngs_modulus * second * np.pi**4 / (2.0 * rod**3) * np.array([1.0, 16.0])
    pull = youngs_modulus * area / (3.0 * rod) * np.array([[16.0, -8.0], [-8.0, 7.0]])

    def points(q: Any, v: Any) -> Any:
        """For each mass J by rows (x, y), and J̇ v."""
        c1, s1, c2, s2 = np.cos(q[0]), np.sin(q[0]), np.cos(q[1]), np.sin(q[1])
        zero, found = 0.0 * c1, []
        for x, (a3, a4, b1, b2) in zip(s, shapes):
            along, across = x * rod + a3 * q[5] + a4 * q[6], b1 * q[3] + b2 * q[4]
            fast, wide = a3 * v[5] + a4 * v[6], b1 * v[3] + b2 * v[4]
            J = [
                [
                    -crank * s1,
                    -s2 * along - c2 * across,
                    zero,
                    -s2 * b1,
                    -s2 * b2,
                    c2 * a3,
                    c2 * a4,
                ],
                [crank * c1, c2 * along - s2 * across, zero, c2 * b1, c2 * b2, s2 * a3, s2 * a4],
            ]
            # −ω² r and 2 ω × u, in the axes of the rod
            ax = -(v[1] ** 2) * along - 2.0 * v[1] * wide
            ay = -(v[1] ** 2) * across + 2.0 * v[1] * fast
            rest = [
                -crank * v[0] ** 2 * c1 + c2 * ax - s2 * ay,
                -crank * v[0] ** 2 * s1 + s2 * ax + c2 * ay,
            ]
            found.append((np.array(J), np.array(rest)))
        return found

    own = np.zeros((7, 7))
    own[0, 0], own[2, 2] = crank_inertia, slider_mass

    def mass(t: Any, q: Any) -> Any:
        return own + sum(m * (J.T @ J) for m, (J, _) in zip(masses, points(q, 0.0 * q)))

    def elastic(q: Any) -> Any:
        stretch = pull @ np.array([q[5], q[6]])
        return np.array(
            [0.0 * q[0], 0.0, 0.0, bend[0] * q[3], bend[1] * q[4], stretch[0], stretch[1]]
        )

    def force(t: Any, q: Any, v: Any) -> Any:
        return -elastic(q) - sum(m * (J.T @ rest) for m, (J, rest) in zip(masses, points(q, v)))

    def closed(t: Any, q: Any) -> Any:
        end = rod + q[6]  # the modes of bending vanish there
        return np.array(
            [
                crank * np.cos(q[0]) + end * np.cos(q[1]) - q[2],
                crank * np.sin(q[0]) + end * np.sin(q[1]),
            ]
        )

    def energy(t: Any, q: Any, v: Any) -> Any:
        return 0.5 * (v @ (mass(t, q) @ v)) + 0.5 * (q @ elastic(q))

    v0 = np.array([speed, -speed * crank / rod, 0.0, 0.0, 0.0, 0.0, 0.0])
    return Mechanical(
        mass,
        force,
        closed,
        q0=[0.0, 0.0, crank + rod, 0.0, 0.0, 0.0, 0.0],
        v0=v0,
        t_span=(0.0, t_end),
        invariants={"energy": energy},
        position_names=NAMES,
        velocity_names=[f"d({name})" for name in NAMES],
        trace=True,
        name="flexible crank",
    )
