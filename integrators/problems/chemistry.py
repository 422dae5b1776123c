"""Reaction kinetics: Robertson, HIRES, Oregonator, Brusselator."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.problem import IVP
from integrators.problems.registry import register

__all__ = ["brusselator", "hires", "oregonator", "robertson", "robertson_dae"]

_ROBERTSON = {
    40.0: [7.158270687194050905e-01, 9.185534764557763903e-06, 2.841637457458303518e-01],
    1e5: [1.786592114209946498e-02, 7.274751468436318776e-08, 9.821340061103858508e-01],
    4e10: [5.208345176799239209e-08, 2.083338177925489037e-13, 9.999999479163398992e-01],
    1e11: [2.083340149701294235e-08, 8.333360770334783410e-14, 9.999999791665151703e-01],
}
_ROBERTSON_SOURCE = (
    "H. H. Robertson, 1966; IVP Test Set, release 2.4; references by collocation in 80-bit "
    "arithmetic on two meshes"
)
_ROBERTSON_RATES = (0.04, 3e7, 1e4)


@register("rober", stiff=True, digits=18)
def robertson(k1: float = 0.04, k2: float = 3e7, k3: float = 1e4, t_end: float = 1e11) -> IVP:
    """Robertson's autocatalytic reaction, over eleven decades of time.

    Notes
    -----
    y₁' = −k₁ y₁ + k₃ y₂ y₃, y₃' = k₂ y₂², y₂' = −y₁' − y₃'; parameters (k₁, k₂, k₃). Where y₂
    turns slightly negative, the numerical solution runs away: a test of careful error control.
    """

    def f(t: Any, y: Any, p: Any) -> Any:
        gain, loss = -p[0] * y[0] + p[2] * y[1] * y[2], p[1] * y[1] * y[1]
        return np.array([gain, -gain - loss, loss])

    def jac(t: Any, y: Any, p: Any) -> Any:
        a, b, c = p[2] * y[2], p[2] * y[1], 2 * p[1] * y[1]
        return np.array([[-p[0], a, b], [p[0], -a - c, -b], [0.0, c, 0.0]])

    def total(t: Any, y: Any) -> Any:
        return y[0] + y[1] + y[2]

    return IVP(
        f,
        [1.0, 0.0, 0.0],
        (0.0, t_end),
        [k1, k2, k3],
        jac=jac,
        invariants={"mass": total},
        references=_ROBERTSON if (k1, k2, k3) == _ROBERTSON_RATES else {},
        source=_ROBERTSON_SOURCE,
    )


@register("rober_dae", stiff=True, digits=18)
def robertson_dae(k1: float = 0.04, k2: float = 3e7, k3: float = 1e4, t_end: float = 1e11) -> IVP:
    """Robertson's reaction with conservation of mass as an algebraic equation.

    Notes
    -----
    The third equation of :func:`robertson` becomes 0 = y₁ + y₂ + y₃ − 1.
    """

    def f(t: Any, y: Any, p: Any) -> Any:
        gain, loss = -p[0] * y[0] + p[2] * y[1] * y[2], p[1] * y[1] * y[1]
        return np.array([gain, -gain - loss, y[0] + y[1] + y[2] - 1])

    def jac(t: Any, y: Any, p: Any) -> Any:
        a, b, c = p[2] * y[2], p[2] * y[1], 2 * p[1] * y[1]
        return np.array([[-p[0], a, b], [p[0], -a - c, -b], [1.0, 1.0, 1.0]])

    return IVP(
        f,
        [1.0, 0.0, 0.0],
        (0.0, t_end),
        [k1, k2, k3],
        jac=jac,
        mass=np.diag([1.0, 1.0, 0.0]),
        index=[1, 1, 1],
        references=_ROBERTSON if (k1, k2, k3) == _ROBERTSON_RATES else {},
        source=_ROBERTSON_SOURCE,
    )


_HIRES_MATRIX = np.array(
    [
        [-1.71, 0.43, 8.32, 0.0, 0.0, 0.0, 0.0, 0.0],
        [1.71, -8.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, -10.03, 0.43, 0.035, 0.0, 0.0, 0.0],
        [0.0, 8.32, 1.71, -1.12, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, -1.745, 0.43, 0.43, 0.0],
        [0.0, 0.0, 0.0, 0.69, 1.71, -0.43, 0.69, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.81, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.81, 0.0],
    ]
)
_HIRES = {
    321.8122: [
        0.000737131257332566780727729185,
        0.000144248572631618465818804085,
        5.88872974096757500748478441704e-05,
        0.00117565134328314914550604442766,
        0.00238635619883133046882098882261,
        0.00623896825274279578664693265437,
        0.00284999839518576865793111589817,
        0.00285000160481423134206888410183,
    ],
    421.8122: [
        0.000670305503581863505057110116,
        0.000130996846986346892975493461,
        4.68622315977325814445199527120e-05,
        0.00104466802055170480364035998993,
        0.000594883830951485051581215151,
        0.00139962883394277402925893534816,
        0.00101449275771847968059089814953,
        0.00468550724228152031940910185047,
    ],
}


@register(stiff=True, digits=27)
def hires(t_end: float = 321.8122) -> IVP:
    """HIRES: high irradiance responses of photomorphogenesis, eight reactants."""

    def f(t: Any, y: Any) -> Any:
        r = 280 * y[5] * y[7]
        return _HIRES_MATRIX @ y + np.array([0.0007, 0.0, 0.0, 0.0, 0.0, -r, r, -r])

    def jac(t: Any, y: Any) -> Any:
        zero = np.zeros(5)
        a, b = 280 * y[7], 280 * y[5]
        row = np.concatenate([zero, np.array([a, 0.0 * a, b])])
        return _HIRES_MATRIX + np.stack([0 * row] * 5 + [-row, row, -row])

    def total(t: Any, y: Any) -> Any:
        return y[6] + y[7]

    return IVP(
        f,
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057],
        (0.0, t_end),
        jac=jac,
        invariants={"y7 + y8": total},
        references=_HIRES,
        source="E. Schäfer, 1975; IVP Test Set, release 2.4; references by a Taylor method of "
        "order 40 in 113-bit arithmetic",
    )


_OREGONATOR = {
    30.0: [
        1.0006614671804967182455325718,
        1.5127789373482504190123145104e3,
        1.0358543127672275670058364920e4,
    ],
    60.0: [
        1.0008746251996256155820333377,
        1.1443369723844962117890450160e3,
        8.3721499666246241443769766442e1,
    ],
    180.0: [
        1.0197634725372981172498818439,
        5.1597613229475336924501497432e1,
        1.0169857789563741672205608619,
    ],
    320.0: [
        4.9478139173186442454050104194,
        1.2504995409443220936186678255,
        3.2076233700465321937288396245,
    ],
    360.0: [
        1.0008148703185227162816417521,
        1.2281785215498879837180170001e3,
        1.3205549428465082877422327190e2,
    ],
}


@register("orego", stiff=True, digits=28)
def oregonator(
    s: float = 77.27, q: float = 8.375e-6, w: float = 0.161, t_end: float = 360.0
) -> IVP:
    """Oregonator: the Belousov–Zhabotinskii reaction, with jumps over five decades.

    Notes
    -----
    y₁' = s (y₂ + y₁ (1 − q y₁ − y₂)), y₂' = (y₃ − (1 + y₁) y₂)/s, y₃' = w (y₁ − y₃);
    parameters (s, q, w).
    """

    def f(t: Any, y: Any, p: Any) -> Any:
        a, b, c = y
        return np.array(
            [
                p[0] * (b + a * (1 - p[1] * a - b)),
                (c - (1 + a) * b) / p[0],
                p[2] * (a - c),
            ]
        )

    def jac(t: Any, y: Any, p: Any) -> Any:
        a, b, _ = y
        return np.array(
            [
                [p[0] * (1 - 2 * p[1] * a - b), p[0] * (1 - a), 0.0],
                [-b / p[0], -(1 + a) / p[0], 1 / p[0]],
                [p[2], 0.0, -p[2]],
            ]
        )

    return IVP(
        f,
        [1.0, 2.0, 3.0],
        (0.0, t_end),
        [s, q, w],
        jac=jac,
        references=_OREGONATOR if (s, q, w) == (77.27, 8.375e-6, 0.161) else {},
        source="R. J. Field and R. M. Noyes, J. Chem. Phys. 60 (1974) 1877; references by Taylor "
        "methods of orders 26 and 34 in 113-bit arithmetic, which agree to all digits given",
    )


_BRUSSELATOR = {
    10.0: [0.41355878300195589400162543506, 2.9890253794739728989322721948],
    20.0: [0.49863707126834784864985548299, 4.5967803494520111832017439531],
}


@register(digits=29)
def brusselator(a: float = 1.0, b: float = 3.0, t_end: float = 20.0) -> IVP:
    """Brusselator, a chemical oscillator: u' = a + u² v − (b + 1) u, v' = b u − u² v."""

    def f(t: Any, y: Any, p: Any) -> Any:
        u, v = y
        r = u * u * v
        return np.array([p[0] + r - (p[1] + 1) * u, p[1] * u - r])

    def jac(t: Any, y: Any, p: Any) -> Any:
        u, v = y
        return np.array([[2 * u * v - p[1] - 1, u * u], [p[1] - 2 * u * v, -u * u]])

    return IVP(
        f,
        [1.5, 3.0],
        (0.0, t_end),
        [a, b],
        jac=jac,
        references=_BRUSSELATOR if (a, b) == (1.0, 3.0) else {},
        source="R. Lefever and G. Nicolis, J. Theor. Biol. 30 (1971) 267-284; references by "
        "extrapolation with 40 digits",
    )
