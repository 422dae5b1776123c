"""General DAEs that solvers are measured by: four of the test set for IVP solvers, and Chua's.

The test set is that of F. Mazzia & C. Magherini, *Test Set for Initial Value Problem Solvers*,
release 2.4, Bari (2008), begun by W. M. Lioen & J. J. B. de Swart at CWI, Amsterdam (1998). Where
it gives a reference, some of it is kept with the case.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.dae.general import DAE

from .dae_case import Case, register

__all__ = ["akzo_nobel", "car_axis", "chua", "fekete_points", "ring_modulator"]

TEST_SET = "F. Mazzia & C. Magherini, Test Set for IVP Solvers, release 2.4 (2008), "


@register
def akzo_nobel() -> Case:
    """Six concentrations of two reacting species with an equilibrium: index 1, stiff."""
    k1, k2, k3, k4 = 18.7, 0.58, 0.09, 0.42
    equilibrium, transfer, ks, pressure, henry = 34.4, 3.3, 115.83, 0.9, 737.0

    def F(t: Any, y: Any, d: Any) -> Any:
        y1, y2, y3, y4, y5, y6 = y
        r1, r2 = k1 * y1**4 * np.sqrt(y2), k2 * y3 * y4
        r3, r4 = k2 / equilibrium * y1 * y5, k3 * y1 * y4**2
        r5 = k4 * y6**2 * np.sqrt(y2)
        inflow = transfer * (pressure / henry - y2)
        return [
            d(y1) + 2 * r1 - r2 + r3 + r4,
            d(y2) + 0.5 * r1 + r4 + 0.5 * r5 - inflow,
            d(y3) - r1 + r2 - r3,
            d(y4) + r2 - r3 + 2 * r4,
            d(y5) - r2 + r3 - r5,
            ks * y1 * y4 - y6,
        ]

    start = [0.444, 0.00123, 0.0, 0.007, 0.0]
    end = [0.1150794920661702, 0.1203831471567715e-2, 0.1611562887407974, 0.3656156421249283e-3,
           0.1708010885264404e-1, 0.4873531310307455e-2]  # fmt: skip
    return Case(
        DAE(F, [f"y{k}" for k in range(1, 7)], name="akzo_nobel"),
        (0.0, 180.0),
        1,
        5,
        TEST_SET + "chemical Akzo Nobel problem",
        fixed={f"y{k + 1}": x for k, x in enumerate(start)},
        reference=(180.0, {f"y{k + 1}": x for k, x in enumerate(end)}),
    )


@register
def ring_modulator(capacitance: float = 0.0) -> Case:
    """Voltages U and currents I of a ring of diodes; with capacitance C_s = 0 of index 2.

    Four equations then lose their derivatives, and their sum the diodes: the currents in the ring
    add up to zero, a hidden constraint. From some 10 µs on, when the diodes block, nothing but their
    tiny conductances determines the voltages in the ring: runs end there with a message. With
    C_s = 2e-12 it is a stiff ODE that oscillates wildly.
    """
    C, Cp, Lh, Ls1, Ls2, Ls3 = 1.6e-8, 1e-8, 4.45, 2e-3, 5e-4, 5e-4
    R, Rg1, Rg2, Rg3, Ri, Rc = 25e3, 36.3, 17.3, 17.3, 50.0, 600.0
    Rp, gamma, delta = 50.0, 40.67286402e-9, 17.7493332
    Cs = float(capacitance)

    def F(t: Any, y: Any, d: Any) -> Any:
        U1, U2, U3, U4, U5, U6, U7, I1, I2, I3, I4, I5, I6, I7, I8 = y
        in1, in2 = 0.5 * np.sin(2e3 * np.pi * t), 2.0 * np.sin(2e4 * np.pi * t)

        def diode(u: Any) -> Any:
            return gamma * (np.exp(delta * u) - 1.0)

        q1, q2 = diode(U3 - U5 - U7 - in2), diode(-U4 + U6 - U7 - in2)
        q3, q4 = diode(U4 + U5 + U7 + in2), diode(-U3 - U6 + U7 + in2)
        ring = [I3 - q1 + q4, -I4 + q2 - q3, I5 + q1 - q3, -I6 - q2 + q4]
        if Cs:
            ring = [Cs * d(u) - r for u, r in zip((U3, U4, U5, U6), ring)]
        return [
            C * d(U1) - (I1 - 0.5 * I3 + 0.5 * I4 + I7 - U1 / R),
            C * d(U2) - (I2 - 0.5 * I5 + 0.5 * I6 + I8 - U2 / R),
            *ring,
            Cp * d(U7) - (-U7 / Rp + q1 + q2 - q3 - q4),
            Lh * d(I1) + U1,
            Lh * d(I2) + U2,
            Ls2 * d(I3) - (0.5 * U1 - U3 - Rg2 * I3),
            Ls3 * d(I4) - (-0.5 * U1 + U4 - Rg3 * I4),
            Ls2 * d(I5) - (0.5 * U2 - U5 - Rg2 * I5),
            Ls3 * d(I6) - (-0.5 * U2 + U6 - Rg3 * I6),
            Ls1 * d(I7) - (-U1 + in1 - (Ri + Rg1) * I7),
            Ls1 * d(I8) - (-U2 - (Rc + Rg1) * I8),
        ]

    names = [f"U{k}" for k in range(1, 8)] + [f"I{k}" for k in range(1, 9)]
    known = {"U1": -0.2339057358486745e-1, "U2": -0.7367485485540825e-2}
    return Case(
        DAE(F, names, name="ring_modulator"),
        (0.0, 1e-3 if Cs else 1e-5),
        0 if Cs else 2,
        15 if Cs else 10,
        TEST_SET + "ring modulator; E.-H. Horneber, Dissertation, Kaiserslautern (1976)",
        guess=dict.fromkeys(names, 0.0),
        converted=not Cs,
        reference=(1e-3, known) if Cs == 2e-12 else None,
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
    known = {"px1": -0.4070263380333202, "py1": 0.3463758772791802, "pz1": 0.8451942450030429}
    return Case(
        DAE(F, names, name="fekete_points"),
        (0.0, 1000.0),
        2,
        4 * n,
        TEST_SET + "Fekete problem",
        guess=guess,
        reference=(1000.0, known) if n == 20 else None,
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
    end = [0.493455784275402809122e-1, 0.496989460230171153861, 0.104174252488542151681e1,
           0.373911027265361256927, -0.473688659084893324729e-2,
           -0.110468033125734368808e-2]  # fmt: skip
    return Case(
        DAE(F, names, name="car_axis"),
        (0.0, 3.0),
        3,
        4,
        TEST_SET + "car axis problem; S. Schneider, INSA Lyon (1994)",
        fixed={"yl": 0.5, "yr": 0.5, "yl'": 0.0, "yr'": 0.0},
        guess={"xl": 0.0, "xr": 1.0, "xl'": -0.5, "xr'": -0.5},
        reference=(3.0, dict(zip(names, end))),
    )


@register
def chua(source: str = "z") -> Case:
    """Chua's circuit, made to follow x = sin t by an unknown source in one of its equations.

    The source feeds the equation of x, y or z: index 2, 3 or 4, because x reacts to it after one,
    two or three integrations.
    """
    if source not in ("x", "y", "z"):
        raise ValueError(f"source: expected 'x', 'y' or 'z', received {source!r}")
    alpha, beta = 10.0, 16.0
    place = "xyz".index(source)

    def F(t: Any, y: Any, d: Any) -> Any:
        x, v, z, u = y
        rates = [alpha * (v - x**3 + 0.143 * x), x - v + z, -beta * v]
        out = [d(state) - rate for state, rate in zip((x, v, z), rates)]
        out[place] = out[place] - u
        return [*out, x - np.sin(t)]

    free = [name for name in "yz"[place:]]
    return Case(
        DAE(F, ["x", "y", "z", "u"], name="chua"),
        (0.0, 5.0),
        2 + place,
        2 - place,
        "L. O. Chua, M. Komuro & T. Matsumoto, IEEE Trans. Circuits Syst. 33 (1986) 1072-1118, "
        "with a cubic diode and a prescribed voltage",
        fixed=dict.fromkeys(free, 0.1),
    )
