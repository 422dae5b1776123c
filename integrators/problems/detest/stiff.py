"""The 30 stiff problems of DETEST (:cite:`enright1975`, class F from :cite:`enright1976`).

A: linear with real eigenvalues, B: linear with complex ones, C: nonlinear coupling, D: nonlinear
with real eigenvalues, E: nonlinear with complex ones, F: chemical kinetics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["PROBLEMS"]

PROBLEMS: dict[str, tuple[Callable[..., Any], list[float], float]] = {}


def _problem(
    name: str, y0: Sequence[float], t_end: float
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        PROBLEMS[name] = f, [float(x) for x in y0], t_end
        return f

    return enter


@_problem("A1", [1, 1, 1, 1], 20.0)
def a1(t: Any, y: Any) -> Any:
    """Four separate decays."""
    return np.array([-0.5 * y[0], -y[1], -100 * y[2], -90 * y[3]])


@_problem("A2", 9 * [0], 120.0)
def a2(t: Any, y: Any) -> Any:
    """Diffusion with fast ends."""
    inner = [y[i - 1] - 2 * y[i] + y[i + 1] for i in range(1, 8)]
    return np.array([-1800 * y[0] + 900 * y[1], *inner, 1000 * y[7] - 2000 * y[8] + 1000])


@_problem("A3", [1, 1, 1, 1], 20.0)
def a3(t: Any, y: Any) -> Any:
    """A triangular system."""
    return np.array(
        [
            -1e4 * y[0] + 100 * y[1] - 10 * y[2] + y[3],
            -1e3 * y[1] + 10 * y[2] - 10 * y[3],
            -y[2] + 10 * y[3],
            -0.1 * y[3],
        ]
    )


@_problem("A4", 10 * [1], 1.0)
def a4(t: Any, y: Any) -> Any:
    """Decays with rates i⁵."""
    return np.array([-((i + 1) ** 5) * y[i] for i in range(10)])


@_problem("B1", [1, 0, 1, 0], 20.0)
def b1(t: Any, y: Any) -> Any:
    """Two damped oscillations."""
    slow = [-y[0] + y[1], -100 * y[0] - y[1]]
    return np.array([*slow, -100 * y[2] + y[3], -10000 * y[2] - 100 * y[3]])


def _spiral(alpha: float) -> Callable[..., Any]:
    def f(t: Any, y: Any) -> Any:
        """Four decays and eigenvalues −10 ± αi."""
        spiral = [-10 * y[0] + alpha * y[1], -alpha * y[0] - 10 * y[1]]
        return np.array([*spiral, -4 * y[2], -y[3], -0.5 * y[4], -0.1 * y[5]])

    return f


for _name, _alpha in (("B2", 3.0), ("B3", 8.0), ("B4", 25.0), ("B5", 100.0)):
    _problem(_name, 6 * [1], 20.0)(_spiral(_alpha))


@_problem("C1", [1, 1, 1, 1], 20.0)
def c1(t: Any, y: Any) -> Any:
    """Coupled from the transient to the smooth components."""
    three, four = y[2] * y[2], y[3] * y[3]
    return np.array(
        [
            -y[0] + y[1] * y[1] + three + four,
            -10 * y[1] + 10 * (three + four),
            -40 * y[2] + 40 * four,
            -100 * y[3] + 2,
        ]
    )


def _coupled(beta: float) -> Callable[..., Any]:
    def f(t: Any, y: Any) -> Any:
        """Coupled from the smooth components to the transient."""
        one, two, three = y[0] * y[0], y[1] * y[1], y[2] * y[2]
        return np.array(
            [
                -y[0] + 2,
                -10 * y[1] + beta * one,
                -40 * y[2] + 4 * beta * (one + two),
                -100 * y[3] + 10 * beta * (one + two + three),
            ]
        )

    return f


for _name, _beta in (("C2", 0.1), ("C3", 1.0), ("C4", 10.0), ("C5", 20.0)):
    _problem(_name, [1, 1, 1, 1], 20.0)(_coupled(_beta))


@_problem("D1", [0, 0, 0], 400.0)
def d1(t: Any, y: Any) -> Any:
    """Control of a nuclear reactor."""
    eighth = 0.125 * y[2]
    return np.array([0.2 * (y[1] - y[0]), 10 * y[0] - (60 - eighth) * y[1] + eighth, 1 + 0 * y[0]])


@_problem("D2", [1, 0, 0], 40.0)
def d2(t: Any, y: Any) -> Any:
    """Robertson's reaction, scaled."""
    slow = -0.04 * y[0] + 0.01 * y[1] * y[2]
    return np.array([slow, 400 * y[0] - 100 * y[1] * y[2] - 3000 * y[1] ** 2, 30 * y[1] ** 2])


@_problem("D3", [1, 1, 0, 0], 20.0)
def d3(t: Any, y: Any) -> Any:
    """A reaction of four substances."""
    met, pair = 100 * y[0] * y[1], 1e4 * y[1] * y[1]
    return np.array([y[2] - met, y[2] + 2 * y[3] - met - 2 * pair, -y[2] + met, -y[3] + pair])


@_problem("D4", [1, 1, 0], 50.0)
def d4(t: Any, y: Any) -> Any:
    """A reaction of Gear's."""
    first, second = 0.013 * y[0] + 1000 * y[0] * y[2], 2500 * y[1] * y[2]
    return np.array([-first, -second, -first - second])


@_problem("D5", [0, 0], 100.0)
def d5(t: Any, y: Any) -> Any:
    """Reactor kinetics."""
    load = 0.01 + y[0] + y[1]
    one = 0.01 - (1 + (y[0] + 1000) * (y[0] + 1)) * load
    return np.array([one, 0.01 - (1 + y[1] * y[1]) * load])


@_problem("D6", [1, 0, 0], 1.0)
def d6(t: Any, y: Any) -> Any:
    """A reaction with a very fast exchange."""
    one = -y[0] + 1e8 * y[2] * (1 - y[0])
    two = -10 * y[1] + 3e7 * y[2] * (1 - y[1])
    return np.array([one, two, -one - two])


@_problem("E1", [0, 0, 0, 0], 1.0)
def e1(t: Any, y: Any) -> Any:
    """From the theory of control."""
    g = 100.0
    last = (
        (y[0] * y[0] - np.sin(y[0]) - g**4) * y[0]
        + (y[1] * y[2] / (y[0] * y[0] + 1) - 4 * g**3) * y[1]
        + (1 - 6 * g * g) * y[2]
        + (10 * np.exp(-y[3] * y[3]) - 4 * g) * y[3]
        + 1
    )
    return np.array([y[1], y[2], y[3], last])


@_problem("E2", [2, 0], 1.0)
def e2(t: Any, y: Any) -> Any:
    """Van der Pol's equation."""
    return np.array([y[1], 5 * (1 - y[0] * y[0]) * y[1] - y[0]])


@_problem("E3", [1, 1, 0], 500.0)
def e3(t: Any, y: Any) -> Any:
    """Chemistry of Krogh's."""
    return np.array([-(55 + y[2]) * y[0] + 65 * y[1], 0.0785 * (y[0] - y[1]), 0.1 * y[0]])


@_problem("E4", [0, -2, -1, -1], 1000.0)
def e4(t: Any, y: Any) -> Any:
    """Krogh's transformed system: z = U y with the reflection U, and simple equations for z."""
    half = 0.5 * (y[0] + y[1] + y[2] + y[3])
    z = [half - y[i] for i in range(4)]
    g = [
        10 * z[0] + 10 * z[1] + 0.5 * (z[0] * z[0] - z[1] * z[1]),
        -10 * z[0] + 10 * z[1] + z[0] * z[1],
        -1000 * z[2] + z[2] * z[2],
        -0.01 * z[3] + z[3] * z[3],
    ]
    half = 0.5 * (g[0] + g[1] + g[2] + g[3])
    return np.array([half - g[i] for i in range(4)])


@_problem("E5", [1.76e-3, 0, 0, 0], 1000.0)
def e5(t: Any, y: Any) -> Any:
    """Pyrolysis (Datta)."""
    slow, fast, met, back = (
        7.89e-10 * y[0],
        1.1e7 * y[0] * y[2],
        1.13e9 * y[1] * y[2],
        1.13e3 * y[3],
    )
    return np.array([-slow - fast, slow - met, slow - fast + back - met, fast - back])


@_problem("F1", [761, 0, 600, 0.1], 1000.0)
def f1(t: Any, y: Any) -> Any:
    """A catalytic fluidised bed."""
    k = np.exp(20.7 - 1500 / y[0])
    return np.array(
        [
            1.3 * (y[2] - y[0]) + 10400 * k * y[1],
            1880 * (y[3] - y[1] * (1 + k)),
            1752 - 269 * y[2] + 267 * y[0],
            0.1 + 320 * y[1] - 321 * y[3],
        ]
    )


@_problem("F2", [1, 0], 240.0)
def f2(t: Any, y: Any) -> Any:
    """An enzyme's reaction."""
    return np.array([-y[0] - y[0] * y[1] + 294 * y[1], y[0] * (1 - y[1]) / 98 - 3 * y[1]])


@_problem("F3", [4e-6, 1e-6, 0, 0, 0], 100.0)
def f3(t: Any, y: Any) -> Any:
    """Photochemistry in water."""
    one, five = 1e7 * y[1] * y[0], 1e7 * y[1] * y[4]
    return np.array(
        [
            -one + 10 * y[2],
            -one - five + 10 * y[2] + 10 * y[3],
            one - 1.001e4 * y[2] + 1e-3 * y[3],
            1e4 * y[2] - 10.001 * y[3] + five,
            10 * y[3] - five,
        ]
    )


@_problem("F4", [4, 1.1, 4], 300.0)
def f4(t: Any, y: Any) -> Any:
    """The Oregonator."""
    s, met = 77.27, y[0] * y[1]
    one = s * (y[1] - met + y[0] - 8.375e-6 * y[0] * y[0])
    return np.array([one, (y[2] - y[1] - met) / s, 0.161 * (y[0] - y[2])])


@_problem("F5", [3.365e-7, 8.261e-3, 1.642e-3, 9.38e-6], 100.0)
def f5(t: Any, y: Any) -> Any:
    """Ozone and its like in the upper air."""
    exchange = 3 * y[0] * y[1] - 0.0012 * y[3] + 9 * y[0] * y[2]
    return np.array(
        [
            -1e11 * exchange,
            -3e11 * y[0] * y[1] + 2e7 * y[3],
            1e11 * (-9 * y[0] * y[2] + 0.001 * y[3]),
            1e11 * exchange,
        ]
    )
