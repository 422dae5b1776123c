"""Mechanical systems: pendulums in a chain, arm, axle, slider-crank, points on a sphere."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.dae.general import DAE

from .case import EXTENDED, TEST_SET, Case, register

__all__ = ["car_axis", "fekete_points", "pendulum_chain", "robot_arm", "slider_crank"]


@register
def pendulum_chain(pendulums: int = 1, g: float = 1.0, coupling: float = 0.1) -> Case:
    """Pendulums, the length of each set by the multiplier of the one before: index 2p + 1."""

    def F(t: Any, y: Any, d: Any) -> Any:
        out, length = [], 1.0
        for k in range(pendulums):
            x, z, lam = y[3 * k : 3 * k + 3]
            out += [d(x, 2) + lam * x, d(z, 2) + lam * z + g, x**2 + z**2 - length**2]
            length = 1.0 + coupling * lam
        return out

    labels = [f"{name}{k + 1}" for k in range(pendulums) for name in ("x", "z", "lambda")]
    fixed: dict[str, float] = {}
    guess: dict[str, float] = {}
    for k in range(pendulums):
        fixed |= {f"x{k + 1}": 0.6 - 0.1 * k, f"x{k + 1}'": 0.0}
        guess |= {f"z{k + 1}": -0.9}
    return Case(
        DAE(F, labels, name="pendulum_chain"),
        (0.0, 5.0),
        2 * pendulums + 1,
        2 * pendulums,
        "J. D. Pryce, A simple structural analysis method for DAEs, BIT 41 (2001) 364-394",
        fixed,
        guess,
    )


@register
def robot_arm() -> Case:
    """A two-link arm with flexible joints whose hand follows a path: index 5."""

    def F(t: Any, y: Any, d: Any) -> Any:
        x1, x2, x3, u1, u2 = y
        c1, s1 = np.cos(x3), np.sin(x3)
        a = 2.0 / (2.0 - c1**2)
        b, c = c1 / (2.0 - c1**2), s1 / (2.0 - c1**2)
        e = s1 * c1 / (2.0 - c1**2)
        v1, v3 = d(x1), d(x3)
        spring, turn = x2 - x1, (v1 + v3) ** 2
        return [
            d(x1, 2) - (2 * c * turn + v1**2 * e + spring * (a + 2 * b) + a * (u1 - u2)),
            d(x2, 2) - (-2 * c * turn - v1**2 * e + spring * (1 - 3 * a - 2 * b) - a * u1
                        + (a + 1) * u2),
            d(x3, 2) - (-2 * c * turn - v1**2 * e + spring * (a - 9 * b) - 2 * v1**2 * c
                        - e * turn - (a + b) * (u1 - u2)),
            np.cos(x1) + np.cos(x1 + x3) - np.cos(np.exp(t) - 1) - np.cos(t - 1),
            np.sin(x1) + np.sin(x1 + x3) - np.sin(1 - np.exp(t)) - np.sin(1 - t),
        ]  # fmt: skip

    return Case(
        DAE(F, ["x1", "x2", "x3", "u1", "u2"], name="robot_arm"),
        (0.0, 1.0),
        5,
        0,
        "S. L. Campbell & E. Griepentrog, SIAM J. Sci. Comput. 16 (1995) 257-270",
        guess={"x1": 0.0, "x3": 1.0, "x2": 0.0},
        converted=True,
        reference=(
            1.0,
            {
                "x1": -1.718281828459045235,
                "x2": 1.327400350259266590,
                "x3": 1.718281828459045235,
                "u1": -21.56353737899617797,
                "u2": -15.82436919047779413,
            },
        ),
        provenance=EXTENDED + "18 digits agree; x1 = 1 − eᵗ and x3 = eᵗ − t",
    )


@register
def car_axis() -> Case:
    """An axle on two springs over a bumpy road: index 3, with a small parameter ε = 0.01."""
    length, rest, eps, mass, height, omega = 1.0, 0.5, 1e-2, 10.0, 0.1, 10.0
    half = 0.5 * eps**2 * mass

    def F(t: Any, y: Any, d: Any) -> Any:
        xl, yl, xr, yr, lam1, lam2 = y
        yb = height * np.sin(omega * t)
        xb = np.sqrt(length**2 - yb**2)
        left = np.sqrt(xl**2 + yl**2)
        right = np.sqrt((xr - xb) ** 2 + (yr - yb) ** 2)
        dx, dy = 2 * lam2 * (xl - xr), 2 * lam2 * (yl - yr)
        pull_left, pull_right = (rest - left) / left, (rest - right) / right
        return [
            half * d(xl, 2) - (pull_left * xl + lam1 * xb + dx),
            half * d(yl, 2) - (pull_left * yl + lam1 * yb + dy - half),
            half * d(xr, 2) - (pull_right * (xr - xb) - dx),
            half * d(yr, 2) - (pull_right * (yr - yb) - dy - half),
            xl * xb + yl * yb,
            (xl - xr) ** 2 + (yl - yr) ** 2 - length**2,
        ]

    names = ["xl", "yl", "xr", "yr", "lambda1", "lambda2"]
    end = [0.04934557842752409478, 0.4969894602300081066, 1.041742524885426114,
           0.3739110272653657932, -0.004736886590853324923,
           -0.001104680331259564947]  # fmt: skip
    return Case(
        DAE(F, names, name="car_axis"),
        (0.0, 3.0),
        3,
        4,
        TEST_SET + "car axis problem; S. Schneider, thesis (1994)",
        fixed={"yl": 0.5, "yr": 0.5, "yl'": 0.0, "yr'": 0.0},
        guess={"xl": 0.0, "xr": 1.0, "xl'": -0.5, "xr'": -0.5},
        reference=(3.0, dict(zip(names, end))),
        provenance=EXTENDED + "17 digits agree; the test set's has 12 of them",
    )


@register
def slider_crank() -> Case:
    """A slider-crank in a horizontal plane that turns by itself: index 3."""
    l1, l2, m1, m2, m3 = 0.15, 0.3, 0.36, 0.151104, 0.075552
    crank = 0.002727 + m1 * l1**2 / 4 + m2 * l1**2
    rod, both = 0.0045339259 + m2 * l2**2 / 4, m2 * l1 * l2 / 2

    def F(t: Any, y: Any, d: Any) -> Any:
        a, b, x, lam1, lam2 = y
        c, s = both * np.cos(a - b), both * np.sin(a - b)
        return [
            crank * d(a, 2) + c * d(b, 2) + s * d(b) ** 2
            - lam1 * l1 * np.sin(a) + lam2 * l1 * np.cos(a),
            rod * d(b, 2) + c * d(a, 2) - s * d(a) ** 2
            - lam1 * l2 * np.sin(b) + lam2 * l2 * np.cos(b),
            m3 * d(x, 2) - lam1,
            l1 * np.cos(a) + l2 * np.cos(b) - x,
            l1 * np.sin(a) + l2 * np.sin(b),
        ]  # fmt: skip

    return Case(
        DAE(F, ["crank", "rod", "x", "lambda1", "lambda2"], name="slider_crank"),
        (0.0, 1.0),
        3,
        2,
        TEST_SET
        + "slider crank, with a rigid rod; B. Simeon, Math. Modelling of Systems 2 (1996) 1-18",
        fixed={"crank": 0.0, "crank'": 5.0},
        guess={"rod": 0.0, "x": 0.45},
        reference=(
            1.0,
            {
                "crank": 4.568720493580590103,
                "rod": 0.5176607234430546472,
                "x": 0.2392175289928451166,
                "lambda1": 0.10034530430828582,
            },
        ),
        provenance="t = ∫ √(J/2E) dα from the energy, a quadrature with 30 digits",
    )


@register
def fekete_points(points: int = 20) -> Case:
    """Points on the unit sphere that repel one another and come to rest, GGL form: index 2.

    20 points begin as in the test set, other numbers on a spiral.
    """
    if points < 2:
        raise ValueError(f"points: expected at least 2, received {points}")
    n, friction = points, 0.5

    def F(t: Any, y: Any, d: Any) -> Any:
        p, q = np.reshape(y[: 3 * n], (n, 3)), np.reshape(y[3 * n : 6 * n], (n, 3))
        lam, mu = y[6 * n : 7 * n], y[7 * n :]
        force = [[-friction * x for x in row] for row in q]
        for i in range(n):
            for j in range(i):
                apart = p[i] - p[j]
                push = apart / (apart @ apart)
                force[i] = [a + b for a, b in zip(force[i], push)]
                force[j] = [a - b for a, b in zip(force[j], push)]
        moves = [d(p[i, k]) - q[i, k] - 2 * mu[i] * p[i, k] for i in range(n) for k in range(3)]
        pushes = [
            d(q[i, k]) - force[i][k] - 2 * lam[i] * p[i, k] for i in range(n) for k in range(3)
        ]
        return [
            *moves,
            *pushes,
            *(p[i] @ p[i] - 1.0 for i in range(n)),
            *(2 * (p[i] @ q[i]) for i in range(n)),
        ]

    places = _sphere(n)
    names = [f"{kind}{axis}{i + 1}" for kind in "pq" for i in range(n) for axis in "xyz"]
    names += [f"{kind}{i + 1}" for kind in ("lambda", "mu") for i in range(n)]
    guess = dict(zip(names, [*places.ravel(), *np.zeros(3 * n)]))
    return Case(
        DAE(F, names, name="fekete_points"),
        (0.0, 1000.0),
        2,
        4 * n,
        TEST_SET + "Fekete problem",
        guess=guess,
    )


def _sphere(n: int) -> Any:
    """Places of the points at the start: four rings of the test set, or a spiral."""
    if n == 20:
        rings = [(3, 13, 3 / 8), (7, 29, 1 / 8), (6, 7, -2 / 15), (4, 17, -3 / 10)]
        angles = [
            (2 * np.pi / count * (k + (count != 4)) + np.pi / shift, height * np.pi)
            for count, shift, height in rings
            for k in range(count)
        ]
    else:
        golden = np.pi * (3 - np.sqrt(5))
        angles = [(golden * k, np.arcsin(1 - (2 * k + 1) / n)) for k in range(n)]
    return np.array([[np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)] for a, b in angles])
