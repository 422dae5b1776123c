"""Oscillators: harmonic, pendulum, van der Pol, predator and prey."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.problem import IVP
from integrators.problems.registry import register

__all__ = [
    "harmonic_oscillator",
    "lotka_volterra",
    "pendulum",
    "pendulum_angle",
    "van_der_pol",
    "van_der_pol_scaled",
]


@register("oscillator")
def harmonic_oscillator(omega: float = 1.0, t_end: float = 20.0) -> IVP:
    """Harmonic oscillator q'' = −ω² q from q = 1 at rest."""

    def f(t: Any, y: Any, p: Any) -> Any:
        return np.array([y[1], -p[0] * p[0] * y[0]])

    def jac(t: Any, y: Any, p: Any) -> Any:
        return np.array([[0.0, 1.0], [-p[0] * p[0], 0.0]])

    def exact(t: Any) -> Any:
        return np.array([np.cos(omega * t), -omega * np.sin(omega * t)])

    def energy(t: Any, y: Any) -> Any:
        return (y[1] ** 2 + omega**2 * y[0] ** 2) / 2

    return IVP(
        f,
        [1.0, 0.0],
        (0.0, t_end),
        [omega],
        jac=jac,
        exact=exact,
        invariants={"energy": energy},
        source="R. Hooke, 1678",
    )


def pendulum_angle(t: Any, theta0: float, g: float, length: float) -> tuple[Any, Any]:
    """Angle and angular velocity of a plane pendulum released at rest from θ₀.

    Parameters
    ----------
    t
        Time (s).
    theta0
        Angle at t = 0 (rad) from the downward vertical, |θ₀| < π.
    g
        Gravity (m/s²).
    length
        Length (m).

    Notes
    -----
    With k = sin(θ₀/2), k' = cos(θ₀/2) and u = √(g/L) t: sin(θ/2) = k cd(u) and
    θ' = −2 k k' √(g/L) sd(u), functions of parameter m = k².

    Examples
    --------
    >>> theta, rate = pendulum_angle(1.0, np.pi / 2, 9.81, 1.0)
    >>> round(float(theta), 5)
    -1.40503
    """
    from scipy.special import ellipj  # takes a while to import

    if not abs(theta0) < np.pi:
        raise ValueError(f"theta0 must lie strictly between −π and π, got {theta0}")
    k, k1 = np.sin(theta0 / 2), np.cos(theta0 / 2)
    omega = np.sqrt(g / length)
    sn, cn, dn, _ = ellipj(omega * t, k * k)
    return 2 * np.arctan2(k * cn, k1), -2 * k * k1 * omega * sn / dn


@register("simple_pendulum")
def pendulum(
    theta0: float = np.pi / 2, g: float = 9.81, length: float = 1.0, t_end: float = 10.0
) -> IVP:
    """Plane pendulum θ'' = −(g/L) sin θ, released at rest.

    Notes
    -----
    State (θ, θ'), parameters (g, L); solution in Jacobi's elliptic functions, see
    :func:`pendulum_angle`. From the default θ₀ = π/2 the Taylor coefficients of some orders
    vanish by symmetry, which misleads step-size rules that look at two of them only.
    """

    def f(t: Any, y: Any, p: Any) -> Any:
        return np.array([y[1], -p[0] / p[1] * np.sin(y[0])])

    def jac(t: Any, y: Any, p: Any) -> Any:
        return np.array([[0.0, 1.0], [-p[0] / p[1] * np.cos(y[0]), 0.0]])

    def exact(t: Any) -> Any:
        return np.array(pendulum_angle(t, theta0, g, length))

    def energy(t: Any, y: Any) -> Any:
        return y[1] ** 2 / 2 - g / length * np.cos(y[0])

    return IVP(
        f,
        [theta0, 0.0],
        (0.0, t_end),
        [g, length],
        jac=jac,
        exact=exact,
        invariants={"energy": energy},
        source="Closed form with Jacobi's elliptic functions",
    )


_VDP: dict[float, dict[float, list[float]]] = {
    5.0: {20.0: [-1.60129687954285390882168437713, 0.198326676338662084549513629203]},
    100.0: {200.0: [1.71858720801924065466811164519, -0.00879682191241670406438420949348]},
    1000.0: {
        1000.0: [-1.86364625480813388954411936308, 0.000753543086543543360099639908135],
        2000.0: [1.70616773217046500847818759242, -0.000892809701024816547778603064560],
        3000.0: [-1.51060693674411149021768881295, 0.00117838000073091102388922012447],
    },
}
_VDP_SOURCE = (
    "B. van der Pol, 1926; IVP Test Set, release 2.4; references by a Taylor method of order 40 "
    "in 113-bit arithmetic, for mu = 5, 100, 1000"
)


@register(
    "vdp",
    digits=30,
    variants={
        "van_der_pol_100": {"mu": 100.0, "stiff": True, "aliases": ("vdp100",)},
        "van_der_pol_1000": {"mu": 1000.0, "stiff": True, "aliases": ("vdp1000",)},
    },
)
def van_der_pol(mu: float = 5.0, t_end: float | None = None) -> IVP:
    """Van der Pol oscillator y'' = μ (1 − y²) y' − y from (2, 0).

    Stiff for large μ. The default end is 4μ at μ = 5, otherwise 2μ, where references are known.
    """
    if t_end is None:
        t_end = 4 * mu if mu <= 5 else 2 * mu
    references = _VDP.get(float(mu), {})

    def f(t: Any, y: Any, p: Any) -> Any:
        return np.array([y[1], p[0] * (1 - y[0] * y[0]) * y[1] - y[0]])

    def jac(t: Any, y: Any, p: Any) -> Any:
        return np.array([[0.0, 1.0], [-2 * p[0] * y[0] * y[1] - 1, p[0] * (1 - y[0] * y[0])]])

    span = (0.0, t_end)
    return IVP(f, [2.0, 0.0], span, [mu], jac=jac, references=references, source=_VDP_SOURCE)


@register("vdp_scaled", stiff=True, digits=30)
def van_der_pol_scaled(eps: float = 1e-6, t_end: float = 2.0) -> IVP:
    """Van der Pol oscillator in scaled time: y₁' = y₂, ε y₂' = (1 − y₁²) y₂ − y₁.

    With ε = 1/μ² it is :func:`van_der_pol` with t/μ for t and μ y₂ for y₂.
    """
    references = {
        t / mu: [y[0], mu * y[1]]
        for mu, table in _VDP.items()
        if np.isclose(eps * mu * mu, 1.0, rtol=1e-12)
        for t, y in table.items()
    }

    def f(t: Any, y: Any, p: Any) -> Any:
        return np.array([y[1], ((1 - y[0] * y[0]) * y[1] - y[0]) / p[0]])

    def jac(t: Any, y: Any, p: Any) -> Any:
        return np.array([[0.0, 1.0], [(-2 * y[0] * y[1] - 1) / p[0], (1 - y[0] * y[0]) / p[0]]])

    span = (0.0, t_end)
    return IVP(f, [2.0, 0.0], span, [eps], jac=jac, references=references, source=_VDP_SOURCE)


_LOTKA_END = [0.71375137809775929884151481713783, 0.075407796240794693072672218631567]


@register("predator_prey", digits=30)
def lotka_volterra(
    a: float = 1.5, b: float = 1.0, c: float = 3.0, d: float = 1.0, t_end: float = 15.0
) -> IVP:
    """Lotka–Volterra predators and prey: u' = (a − b v) u, v' = (d u − c) v from (10, 5).

    Notes
    -----
    d u − c ln u + b v − a ln v is constant along solutions.
    """

    def f(t: Any, y: Any, p: Any) -> Any:
        return np.array([(p[0] - p[1] * y[1]) * y[0], (p[3] * y[0] - p[2]) * y[1]])

    def jac(t: Any, y: Any, p: Any) -> Any:
        return np.array([[p[0] - p[1] * y[1], -p[1] * y[0]], [p[3] * y[1], p[3] * y[0] - p[2]]])

    def potential(t: Any, y: Any) -> Any:
        return d * y[0] - c * np.log(y[0]) + b * y[1] - a * np.log(y[1])

    references = {15.0: _LOTKA_END} if (a, b, c, d) == (1.5, 1.0, 3.0, 1.0) else {}
    return IVP(
        f,
        [10.0, 5.0],
        (0.0, t_end),
        [a, b, c, d],
        jac=jac,
        invariants={"potential": potential},
        references=references,
        source="A. J. Lotka, 1925, V. Volterra, 1926; reference by extrapolation with 40 digits",
    )
