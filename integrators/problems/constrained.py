"""Differential-algebraic equations M y' = f with singular M, of index 1, 2 and 3.

``index`` counts as in RADAU5: 1 for differential components and algebraic ones of index 1, 2 and
3 for those that need one and two differentiations more. All starts are consistent, hidden
constraints included.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.problem import IVP
from integrators.problems.oscillators import pendulum_angle
from integrators.problems.registry import register

__all__ = ["jay", "pendulum_dae", "slider_crank"]

_FORMULATIONS = ("index3", "index2", "index1", "ggl")


@register(
    "pendulum_index3",
    "cartesian_pendulum",
    variants={
        "pendulum_index2": {"formulation": "index2"},
        "pendulum_index1": {"formulation": "index1"},
        "pendulum_ggl": {"formulation": "ggl"},
    },
)
def pendulum_dae(
    formulation: str = "index3",
    theta0: float = np.pi / 2,
    g: float = 9.81,
    length: float = 1.0,
    t_end: float = 10.0,
) -> IVP:
    """Pendulum in Cartesian coordinates, a differential-algebraic equation.

    Parameters
    ----------
    formulation
        The algebraic equation: ``"index3"`` the length, 0 = x² + y² − L²; ``"index2"`` its first
        derivative, 0 = xu + yv; ``"index1"`` its second, 0 = u² + v² − λ(x² + y²) − g y;
        ``"ggl"`` the first two together, with a multiplier μ in x' = u − μx, y' = v − μy
        (Gear, Gupta and Leimkuhler).
    theta0
        Angle (rad) from the downward vertical at which it is released at rest.
    g
        Gravity (m/s²).
    length
        Length L (m).
    t_end
        End of the integration.

    Notes
    -----
    x' = u, y' = v, u' = −λx, v' = −λy − g; state (x, y, u, v, λ), with μ = 0 appended for
    ``"ggl"``; parameters (g, L). Exact by :func:`~integrators.problems.oscillators.pendulum_angle`.

    Examples
    --------
    >>> pendulum_dae("index3").index
    array([1, 1, 2, 2, 3])
    """
    if formulation not in _FORMULATIONS:
        raise ValueError(f"formulation must be one of {_FORMULATIONS}, got {formulation!r}")
    ggl = formulation == "ggl"

    def f(t: Any, s: Any, p: Any) -> Any:
        x, y, u, v, lam = s[0], s[1], s[2], s[3], s[4]
        motion = [u, v, -lam * x, -lam * y - p[0]]
        if formulation == "index3":
            return np.array([*motion, x * x + y * y - p[1] * p[1]])
        if formulation == "index2":
            return np.array([*motion, x * u + y * v])
        if formulation == "index1":
            return np.array([*motion, u * u + v * v - lam * (x * x + y * y) - p[0] * y])
        mu = s[5]
        motion = [u - mu * x, v - mu * y, *motion[2:]]
        return np.array([*motion, x * x + y * y - p[1] * p[1], x * u + y * v])

    def jac(t: Any, s: Any, p: Any) -> Any:
        x, y, u, v, lam = s[0], s[1], s[2], s[3], s[4]
        mu, pad = (s[5], [0.0]) if ggl else (0.0, [])
        length_row = [2 * x, 2 * y, 0.0, 0.0, 0.0]
        speed_row = [u, v, x, y, 0.0]
        force_row = [-2 * lam * x, -2 * lam * y - p[0], 2 * u, 2 * v, -(x * x + y * y)]
        rows = [
            [-mu, 0.0, 1.0, 0.0, 0.0, *([-x] if ggl else [])],
            [0.0, -mu, 0.0, 1.0, 0.0, *([-y] if ggl else [])],
            [-lam, 0.0, 0.0, 0.0, -x, *pad],
            [0.0, -lam, 0.0, 0.0, -y, *pad],
        ]
        last = {
            "index3": [length_row],
            "index2": [speed_row],
            "index1": [force_row],
            "ggl": [[*length_row, 0.0], [*speed_row, 0.0]],
        }[formulation]
        return np.array(rows + last)

    def exact(t: Any) -> Any:
        theta, rate = pendulum_angle(t, theta0, g, length)
        c, s = length * np.cos(theta), length * np.sin(theta)
        state = [s, -c, c * rate, s * rate, rate * rate + g * c / length**2]
        return np.array([*state, 0.0 * t] if ggl else state)

    def energy(t: Any, s: Any) -> Any:
        return (s[2] ** 2 + s[3] ** 2) / 2 + g * s[1]

    def gap(t: Any, s: Any) -> Any:
        return s[0] ** 2 + s[1] ** 2 - length**2

    index = {
        "index3": [1, 1, 2, 2, 3],
        "index2": [1, 1, 1, 1, 2],
        "index1": [1, 1, 1, 1, 1],
        "ggl": [1, 1, 1, 1, 2, 2],
    }[formulation]
    # cos(π/2) in doubles is not 0; the start that everyone means is exact.
    c0 = 0.0 if abs(theta0) == np.pi / 2 else length * np.cos(theta0)
    start = [length * np.sin(theta0), -c0, 0.0, 0.0, g * c0 / length**2, 0.0]
    return IVP(
        f,
        start[: len(index)],
        (0.0, t_end),
        [g, length],
        jac=jac,
        mass=np.diag([1.0] * 4 + [0.0] * (len(index) - 4)),
        index=index,
        exact=exact,
        invariants={"energy": energy, "length": gap},
        source="C. W. Gear, G. K. Gupta and B. Leimkuhler, J. Comput. Appl. Math. 12 (1985) 77-90; "
        "closed form with Jacobi's elliptic functions",
    )


@register("jay_index3")
def jay(t_end: float = 1.0) -> IVP:
    """Jay's nonlinear index-3 equation, all of whose components are exponentials.

    Notes
    -----
    y₁' = 2y₁y₂z₁z₂, y₂' = −y₁y₂z₂², z₁' = (y₁y₂ + z₁z₂) u, z₂' = −y₁y₂²z₂²u, 0 = y₁y₂² − 1;
    state (y₁, y₂, z₁, z₂, u) = (e²ᵗ, e⁻ᵗ, e²ᵗ, e⁻ᵗ, eᵗ).
    """

    def f(t: Any, s: Any) -> Any:
        a, b, c, d, u = s
        return np.array(
            [
                2 * a * b * c * d,
                -a * b * d * d,
                (a * b + c * d) * u,
                -a * b * b * d * d * u,
                a * b * b - 1,
            ]
        )

    def jac(t: Any, s: Any) -> Any:
        a, b, c, d, u = s
        return np.array(
            [
                [2 * b * c * d, 2 * a * c * d, 2 * a * b * d, 2 * a * b * c, 0.0],
                [-b * d * d, -a * d * d, 0.0, -2 * a * b * d, 0.0],
                [b * u, a * u, d * u, c * u, a * b + c * d],
                [
                    -b * b * d * d * u,
                    -2 * a * b * d * d * u,
                    0.0,
                    -2 * a * b * b * d * u,
                    -a * b * b * d * d,
                ],
                [b * b, 2 * a * b, 0.0, 0.0, 0.0],
            ]
        )

    def exact(t: Any) -> Any:
        up, down = np.exp(2 * t), np.exp(-t)
        return np.array([up, down, up, down, np.exp(t)])

    return IVP(
        f,
        np.ones(5),
        (0.0, t_end),
        jac=jac,
        mass=np.diag([1.0, 1.0, 1.0, 1.0, 0.0]),
        index=[1, 1, 2, 2, 3],
        exact=exact,
        source="L. O. Jay, Numer. Math. 65 (1993) 405-421",
    )


_A = 0.5  # crank length; rod 1, masses (1, 1, 2), spring, damper, rest length and load all 1
_CRANK: dict[float, tuple[float, float, float, float]] = {  # t: q, x, p, q'
    1.0: (
        1.31542057088169815046307314527,
        1.00149180723080028286524787562,
        -0.504973470642001452193709193563,
        -0.508792976909869167296755587814,
    ),
    2.5: (
        0.0722361054659118171835706665774,
        1.49804471814974969966789939734,
        -0.0360944868077236646104409163378,
        -1.06052655386848356037236573168,
    ),
    5.0: (
        -1.42999696764722737264041869314,
        0.939030613578266226333448092632,
        0.517894756489886248048123605210,
        0.0549916105377644794442819283175,
    ),
    10.0: (
        1.27567584865023941071419054573,
        1.02357855897983950359554825884,
        -0.498813049182498749290259166984,
        -0.239914997196000683925760300652,
    ),
}


def _crank_force(q: Any, x: Any, p: Any, qd: Any, xd: Any, pd: Any) -> list[Any]:
    cq, sq, cp, sp = np.cos(q), np.sin(q), np.cos(p), np.sin(p)
    sd = np.sin(p - q)
    l = np.sqrt(x * x - x * (cp + _A * cq) + (1 + _A * _A) / 4 + _A * np.cos(p - q) / 2)
    rate = 2 * x * xd - xd * (cp + _A * cq) + x * (sp * pd + _A * sq * qd) - _A * sd * (pd - qd) / 2
    k = ((l - 1) + rate / (2 * l)) / l
    return [
        -k * _A * (sd / 2 + x * sq) / 2,
        k * (cp / 2 - x + _A * cq / 2) + 1,
        -k * (x * sp - _A * sd / 2) / 2 - sp,
    ]


def _crank_state(q: float, x: float, p: float, qd: float) -> list[float]:
    """Complete (q, x, p, q') to a consistent state: hidden constraints, multipliers."""
    cq, sq, cp, sp = np.cos(q), np.sin(q), np.cos(p), np.sin(p)
    pd = -_A * cq * qd / cp
    xd = -sp * pd - _A * sq * qd
    G = np.array([[_A * sq, 1.0, sp], [-_A * cq, 0.0, -cp]])
    curvature = np.array([_A * cq * qd**2 + cp * pd**2, _A * sq * qd**2 + sp * pd**2])
    W = G / np.array([1.0, 1.0, 2.0])  # G M⁻¹
    lam = np.linalg.solve(W @ G.T, W @ np.array(_crank_force(q, x, p, qd, xd, pd)) + curvature)
    return [q, x, p, qd, xd, pd, float(lam[0]), float(lam[1]), 0.0, 0.0]


@register(digits=15)
def slider_crank(t_end: float = 10.0) -> IVP:
    """Rigid slider crank with spring and damper, index 2 after Gear, Gupta and Leimkuhler.

    Notes
    -----
    State (q, x, p, q', x', p', λ, μ): crank angle, slider position, rod angle, their
    velocities, and the multipliers λ, μ ∈ ℝ² of M v' = Q − Gᵀλ and q' = v − Gᵀμ, with the
    constraints 0 = x − cos p − a cos q, 0 = −sin p − a sin q on positions and G v = 0 on
    velocities. Positions and q' of the references have 30 digits; the rest follows from them.
    """

    def f(t: Any, s: Any) -> Any:
        q, x, p, qd, xd, pd, l1, l2, m1, m2 = s
        force = _crank_force(q, x, p, qd, xd, pd)
        g11, g13 = _A * np.sin(q), np.sin(p)
        g21, g23 = -_A * np.cos(q), -np.cos(p)
        return np.array(
            [
                qd - g11 * m1 - g21 * m2,
                xd - m1,
                pd - g13 * m1 - g23 * m2,
                force[0] - g11 * l1 - g21 * l2,
                force[1] - l1,
                (force[2] - g13 * l1 - g23 * l2) / 2,
                x - np.cos(p) - _A * np.cos(q),
                -np.sin(p) - _A * np.sin(q),
                g11 * qd + xd + g13 * pd,
                g21 * qd + g23 * pd,
            ]
        )

    p0 = np.arcsin(-_A)
    return IVP(
        f,
        _crank_state(np.pi / 2, np.cos(p0), p0, 0.0),
        (0.0, t_end),
        mass=np.diag([1.0] * 6 + [0.0] * 4),
        index=[1] * 6 + [2] * 4,
        references={t: _crank_state(*state) for t, state in _CRANK.items()},
        source="SUNDIALS, example idaSlCrank; references by a Taylor method of order 40 in "
        "113-bit arithmetic on the one-degree-of-freedom form",
    )
