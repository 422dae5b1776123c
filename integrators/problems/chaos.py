"""Chaotic problems: references hold as long as the arithmetic of the solver can follow them.

An error grows by e^(λ t), with λ = 0.9 for the Lorenz equations: doubles follow them to t = 35 or
so, and two correct programs disagree from there on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.problem import IVP
from integrators.problems.registry import register

__all__ = ["double_pendulum", "lorenz"]

_LORENZ: dict[tuple[float, ...], dict[float, list[float]]] = {
    (1.0, 0.0, 0.0): {
        1.0: [
            -9.40845056705603620539266474108,
            -9.09619907118647896834160572472,
            28.5816276243923391084617945198,
        ],
        10.0: [
            -5.85768538242409002022242391592,
            -5.83108248642610044292242388050,
            23.9321329870275626474111306239,
        ],
        20.0: [
            -8.0211436133174370677125557006619,
            -11.905464749171750375212702632256,
            19.8563748583984131205032463778185,
        ],
        40.0: [
            -0.194731422418736965684697218,
            0.181102990970540286289785781803,
            17.2344656913064307631610164222,
        ],
        100.0: [
            12.286006677018984808852395940,
            16.581464262811754469511273429,
            26.597525090160010794840778561,
        ],
    },
    (1.0, 1.0, 1.0): {
        1.0: [
            -9.37857001092506236084232454431,
            -8.35703378842664473290241661633,
            29.3623253373634281803359703177,
        ],
        10.0: [
            -4.90268754113464573190393929427,
            -3.74387292180291961631541227625,
            24.6908581027905554532168191891,
        ],
        20.0: [
            13.7931995951286188316049742605,
            12.9518039361898985400463827092,
            34.9016086811351429071126818200,
        ],
        40.0: [
            2.36767450746372435199261381879,
            1.14240671264023670128282547831,
            22.5208169832373689065652621633,
        ],
        100.0: [
            -0.03637029828299696083410344071,
            0.19468569223240241598458306204,
            15.553628202489390875136852581,
        ],
    },
}


@register("lorenz63", chaotic=True, digits=28, variants={"lorenz_111": {"y0": (1.0, 1.0, 1.0)}})
def lorenz(
    sigma: float = 10.0,
    rho: float = 28.0,
    beta: float = 8 / 3,
    y0: tuple[float, float, float] = (1.0, 0.0, 0.0),
    t_end: float = 20.0,
) -> IVP:
    """Lorenz equations.

    Notes
    -----
    x' = σ (y − x), y' = x (ρ − z) − y, z' = x y − β z; parameters (σ, ρ, β). References at
    t = 1, 10, 20, 40, 100 for the classic parameters and starts (1, 0, 0) and (1, 1, 1).
    """

    def f(t: Any, y: Any, p: Any) -> Any:
        a, b, c = y
        return np.array([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c])

    def jac(t: Any, y: Any, p: Any) -> Any:
        a, b, c = y
        return np.array([[-p[0], p[0], 0.0], [p[1] - c, -1.0, -a], [b, a, -p[2]]])

    classic = (sigma, rho, beta) == (10.0, 28.0, 8 / 3)
    start = tuple(float(v) for v in y0)
    return IVP(
        f,
        start,
        (0.0, t_end),
        [sigma, rho, beta],
        jac=jac,
        references=_LORENZ.get(start, {}) if classic else {},
        source="E. N. Lorenz, J. Atmos. Sci. 20 (1963) 130-141; references by a Taylor method in "
        "256-bit arithmetic",
    )


_DOUBLE = {
    1.0: [
        -0.43392913223024646992010813521278,
        -1.2324111503680286703324739130511,
        -1.5038399982460241408995743540838,
        -5.6157155652708340130598661158749,
    ],
    5.0: [
        -0.60180138490155951875892402523144,
        -3.1564509985041633149091406470105,
        3.4931196675013734531607698970437,
        1.3233028172849021583372166073261,
    ],
}


@register(chaotic=True, digits=29)
def double_pendulum(
    theta1: float = 2.0, theta2: float = 1.0, g: float = 9.81, t_end: float = 5.0
) -> IVP:
    """Double pendulum: unit masses on unit rods, released at rest.

    Notes
    -----
    State (θ₁, θ₂, θ₁', θ₂'), angles from the downward vertical, both absolute; parameter g.
    With δ = θ₁ − θ₂: 2θ₁'' + cos δ θ₂'' = −sin δ θ₂'² − 2g sin θ₁ and
    cos δ θ₁'' + θ₂'' = sin δ θ₁'² − g sin θ₂.
    """

    def f(t: Any, y: Any, p: Any) -> Any:
        a1, a2, w1, w2 = y
        c, s = np.cos(a1 - a2), np.sin(a1 - a2)
        r1 = -s * w2 * w2 - 2 * p[0] * np.sin(a1)
        r2 = s * w1 * w1 - p[0] * np.sin(a2)
        det = 2 - c * c
        return np.array([w1, w2, (r1 - c * r2) / det, (2 * r2 - c * r1) / det])

    def energy(t: Any, y: Any) -> Any:
        a1, a2, w1, w2 = y
        kinetic = w1 * w1 + w2 * w2 / 2 + w1 * w2 * np.cos(a1 - a2)
        return kinetic - g * (2 * np.cos(a1) + np.cos(a2))

    references = _DOUBLE if (theta1, theta2, g) == (2.0, 1.0, 9.81) else {}
    return IVP(
        f,
        [theta1, theta2, 0.0, 0.0],
        (0.0, t_end),
        [g],
        invariants={"energy": energy},
        references=references,
        source="Lagrange's equations; references by extrapolation with 40 digits",
    )
