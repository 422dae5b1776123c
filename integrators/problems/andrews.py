"""Andrews' squeezing mechanism: seven bodies, six constraints, one degree of freedom, index 3.

The equations M(q) q'' = f(q, q') − G(q)ᵀλ, 0 = g(q) of the Multibody Systems Handbook, in the
first-order form of the IVP Test Set: y = (q, q', q'', λ) in ℝ²⁷. Angles
q = (β, Θ, γ, Φ, δ, Ω, ε) in rad, SI units.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.problem import IVP
from integrators.problems.registry import register

__all__ = ["andrews", "constraint_jacobian", "constraints", "mass_matrix"]

_m1, _m2, _m3, _m4, _m5, _m6, _m7 = 0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498
_I1, _I2, _I3, _I4 = 2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7
_I5, _I6, _I7 = 1.169e-5, 5.667e-7, 1.912e-5
_xa, _ya, _xb, _yb, _xc, _yc = -0.06934, -0.00227, -0.03635, 0.03273, 0.014, 0.072
_d, _da, _e, _ea, _rr, _ra = 28e-3, 115e-4, 2e-2, 1421e-5, 7e-3, 92e-5
_ss, _sa, _sb, _sc, _sd = 35e-3, 1874e-5, 1043e-5, 18e-3, 2e-2
_ta, _tb, _u, _ua, _ub = 2308e-5, 916e-5, 4e-2, 1228e-5, 449e-5
_zf, _zt, _fa = 2e-2, 4e-2, 1421e-5
_c0, _l0, _mom = 4530.0, 7785e-5, 33e-3  # spring (N/m), its rest length (m), drive (N m)
_h, _k = _e - _ea, _zf - _fa

_START = """
-0.0617138900142764496358948458001 0 0.455279819163070380255912382449
 0.222668390165885884674473185609 0.487364979543842550225598953530
-0.222668390165885884674473185609 1.23054744454982119249735015568
 0 0 0 0 0 0 0
 14222.4439199541138705911625887 -10666.8329399655854029433719415 0 0 0 0 0
 98.5668703962410896057654982170 -6.12268834425566265503114393122 0 0 0 0
"""
_END = """
 15.8107711951537070971193873047 -15.7563710584118394697277528449
 0.0408222401196458048582823195936 -0.534730116342079593770185031132
 0.524409965879954069371655799946 0.534730116342079593770185031132
 1.04808074104193787306851547184
 1139.92030225910606419809684778 -1424.37929517754007319602644410
 11.0329119106185937453273113371 19.2933741050320408316275568616
 0.573569914829502453817687863445 -19.2933741050320408316275568616
 0.323179149249130874990748392014
-24631.7631228746666 51850.3196364642818 324102.600707578604 566749.422000995324
 16743.6354183454442 -566749.422000995324 9826.50780154416321
 199.175348104538628 -29.7553099749717650 23.0665436116221510
 31.4527252757711363 22.6424947863943785 11.6173923526112565
"""


def mass_matrix(q: Any) -> Any:
    """Mass matrix M(q), 7×7, symmetric."""
    ct, sp, so = np.cos(q[1]), np.sin(q[3]), np.sin(q[5])
    m11 = _m1 * _ra**2 + _m2 * (_rr**2 - 2 * _da * _rr * ct + _da**2) + _I1 + _I2
    m21 = _m2 * (_da**2 - _da * _rr * ct) + _I2
    m22 = _m2 * _da**2 + _I2
    m33 = _m3 * (_sa**2 + _sb**2) + _I3
    m44 = _m4 * _h**2 + _I4
    m54 = _m4 * (_h**2 + _zt * _h * sp) + _I4
    m55 = _m4 * (_zt**2 + 2 * _zt * _h * sp + _h**2) + _m5 * (_ta**2 + _tb**2) + _I4 + _I5
    m66 = _m6 * _k**2 + _I6
    m76 = _m6 * (_k**2 - _u * _k * so) + _I6
    m77 = _m6 * (_k**2 - 2 * _u * _k * so + _u**2) + _m7 * (_ua**2 + _ub**2) + _I6 + _I7
    return np.array(
        [
            [m11, m21, 0.0, 0.0, 0.0, 0.0, 0.0],
            [m21, m22, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, m33, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, m44, m54, 0.0, 0.0],
            [0.0, 0.0, 0.0, m54, m55, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0, m66, m76],
            [0.0, 0.0, 0.0, 0.0, 0.0, m76, m77],
        ]
    )


def _spring(gamma: Any) -> tuple[Any, Any, Any]:
    """End of the spring relative to its other end, and its length."""
    x = _sd * np.cos(gamma) + _sc * np.sin(gamma) + _xb - _xc
    y = _sd * np.sin(gamma) - _sc * np.cos(gamma) + _yb - _yc
    return x, y, np.sqrt(x * x + y * y)


def _force(q: Any, v: Any) -> Any:
    """Force f(q, q'): drive, spring and velocity terms."""
    be, th, ph, de, om, ep = v[0], v[1], v[3], v[4], v[5], v[6]
    st, cp, co = np.sin(q[1]), np.cos(q[3]), np.cos(q[5])
    cg, sg = np.cos(q[2]), np.sin(q[2])
    x, y, length = _spring(q[2])
    tension = -_c0 * (length - _l0) / length
    return np.array(
        [
            _mom - _m2 * _da * _rr * th * (th + 2 * be) * st,
            _m2 * _da * _rr * be * be * st,
            tension * (x * (_sc * cg - _sd * sg) + y * (_sd * cg + _sc * sg)),
            _m4 * _zt * _h * de * de * cp,
            -_m4 * _zt * _h * ph * (ph + 2 * de) * cp,
            -_m6 * _u * _k * ep * ep * co,
            _m6 * _u * _k * om * (om + 2 * ep) * co,
        ]
    )


def constraints(q: Any) -> Any:
    """Position constraints g(q), six loop closures."""
    be, th, ga, ph, de, om, ep = q
    x = _rr * np.cos(be) - _d * np.cos(be + th)
    y = _rr * np.sin(be) - _d * np.sin(be + th)
    return np.array(
        [
            x - _ss * np.sin(ga) - _xb,
            y + _ss * np.cos(ga) - _yb,
            x - _e * np.sin(ph + de) - _zt * np.cos(de) - _xa,
            y + _e * np.cos(ph + de) - _zt * np.sin(de) - _ya,
            x - _zf * np.cos(om + ep) - _u * np.sin(ep) - _xa,
            y - _zf * np.sin(om + ep) + _u * np.cos(ep) - _ya,
        ]
    )


def constraint_jacobian(q: Any) -> Any:
    """Jacobian G = ∂g/∂q, 6×7."""
    be, th, ga, ph, de, om, ep = q
    xt, yt = _d * np.sin(be + th), -_d * np.cos(be + th)
    xb, yb = xt - _rr * np.sin(be), yt + _rr * np.cos(be)
    cpd, spd = _e * np.cos(ph + de), _e * np.sin(ph + de)
    coe, soe = _zf * np.cos(om + ep), _zf * np.sin(om + ep)
    ce, se = _u * np.cos(ep), _u * np.sin(ep)
    return np.array(
        [
            [xb, xt, -_ss * np.cos(ga), 0.0, 0.0, 0.0, 0.0],
            [yb, yt, -_ss * np.sin(ga), 0.0, 0.0, 0.0, 0.0],
            [xb, xt, 0.0, -cpd, -cpd + _zt * np.sin(de), 0.0, 0.0],
            [yb, yt, 0.0, -spd, -spd - _zt * np.cos(de), 0.0, 0.0],
            [xb, xt, 0.0, 0.0, 0.0, soe, soe - ce],
            [yb, yt, 0.0, 0.0, 0.0, -coe, -coe - se],
        ]
    )


@register("squeezer", "squeezing_mechanism", "andrews_squeezer", digits=15)
def andrews(t_end: float = 0.03) -> IVP:
    """Andrews' squeezing mechanism, 27 equations of index 3.

    Notes
    -----
    q' = v, v' = a, 0 = M(q) a − f(q, v) + G(q)ᵀλ, 0 = g(q); q has index 1, v index 2, a and λ
    index 3. The end point often quoted is off by 1e-9 in position and 3e-8 (relative) in
    velocity; this one has 30 digits there, 15 in a and λ.
    """

    def f(t: Any, y: Any) -> Any:
        q, v, a, lam = y[0:7], y[7:14], y[14:21], y[21:27]
        balance = mass_matrix(q) @ a - _force(q, v) + constraint_jacobian(q).T @ lam
        return np.concatenate([v, a, balance, constraints(q)])

    def energy(t: Any, y: Any) -> Any:
        q, v = y[0:7], y[7:14]
        stretch = _spring(q[2])[2] - _l0
        return v @ (mass_matrix(q) @ v) / 2 + _c0 * stretch * stretch / 2 - _mom * q[0]

    return IVP(
        f,
        [float(v) for v in _START.split()],
        (0.0, t_end),
        mass=np.diag([1.0] * 14 + [0.0] * 13),
        index=[1] * 7 + [2] * 7 + [3] * 13,
        invariants={"energy": energy},
        references={0.03: [float(v) for v in _END.split()]},
        source="W. Schiehlen (ed.), Multibody Systems Handbook, 1990; IVP Test Set, release 2.4; "
        "q and q' by a Taylor method of order 40 in 113-bit arithmetic on the "
        "one-degree-of-freedom form, the rest by collocation in 80-bit arithmetic",
    )
