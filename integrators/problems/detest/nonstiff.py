"""The 25 non-stiff problems of DETEST (:cite:`hull1972`), all from t = 0 to 20.

A: single equations, B: small systems, C: moderate systems, D: Kepler's orbits, E: higher order.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["PROBLEMS"]

T_END = 20.0
PROBLEMS: dict[str, tuple[Callable[..., Any], list[float], float]] = {}


def _problem(name: str, y0: Sequence[float]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        PROBLEMS[name] = f, [float(x) for x in y0], T_END
        return f

    return enter


@_problem("A1", [1])
def decay(t: Any, y: Any) -> Any:
    """The negative exponential."""
    return np.array([-y[0]])


@_problem("A2", [1])
def riccati(t: Any, y: Any) -> Any:
    """A special case of Riccati's equation."""
    return np.array([-0.5 * y[0] ** 3])


@_problem("A3", [1])
def oscillating(t: Any, y: Any) -> Any:
    """An oscillating exponential."""
    return np.array([y[0] * np.cos(t)])


@_problem("A4", [1])
def logistic(t: Any, y: Any) -> Any:
    """A logistic curve."""
    return np.array([0.25 * y[0] * (1 - y[0] / 20)])


@_problem("A5", [4])
def spiral(t: Any, y: Any) -> Any:
    """A spiral curve."""
    return np.array([(y[0] - t) / (y[0] + t)])


@_problem("B1", [1, 3])
def conflict(t: Any, y: Any) -> Any:
    """Growth of two conflicting populations."""
    met = y[0] * y[1]
    return np.array([2 * (y[0] - met), met - y[1]])


@_problem("B2", [2, 0, 1])
def linear_reaction(t: Any, y: Any) -> Any:
    """A linear chemical reaction."""
    return np.array([y[1] - y[0], y[0] - 2 * y[1] + y[2], y[1] - y[2]])


@_problem("B3", [1, 0, 0])
def reaction(t: Any, y: Any) -> Any:
    """A nonlinear chemical reaction."""
    second = y[1] * y[1]
    return np.array([-y[0], y[0] - second, second])


@_problem("B4", [3, 0, 0])
def torus(t: Any, y: Any) -> Any:
    """The integral surface of a torus."""
    r = np.sqrt(y[0] * y[0] + y[1] * y[1])
    return np.array([-y[1] - y[0] * y[2] / r, y[0] - y[1] * y[2] / r, y[0] / r])


@_problem("B5", [0, 1, 1])
def euler(t: Any, y: Any) -> Any:
    """Euler's equations of a rigid body without forces."""
    return np.array([y[1] * y[2], -y[0] * y[2], -0.51 * y[0] * y[1]])


@_problem("C1", [1] + 9 * [0])
def decay_chain(t: Any, y: Any) -> Any:
    """A radioactive decay chain."""
    return np.array([-y[0], *[y[i - 1] - y[i] for i in range(1, 9)], y[8]])


@_problem("C2", [1] + 9 * [0])
def faster_chain(t: Any, y: Any) -> Any:
    """Another decay chain, faster and faster."""
    inner = [i * y[i - 1] - (i + 1) * y[i] for i in range(1, 9)]
    return np.array([-y[0], *inner, 9 * y[8]])


def _diffusion(t: Any, y: Any) -> Any:
    """Derived from a parabolic equation: second differences."""
    n = len(y)
    first, last = -2 * y[0] + y[1], y[n - 2] - 2 * y[n - 1]
    return np.array([first, *[y[i - 1] - 2 * y[i] + y[i + 1] for i in range(1, n - 1)], last])


_problem("C3", [1] + 9 * [0])(_diffusion)
_problem("C4", [1] + 50 * [0])(_diffusion)

GRAVITY, SUN = 2.95912208286, 1.00000597682
PLANETS = (
    0.954786104043e-3,
    0.285583733151e-3,
    0.437273164546e-4,
    0.517759138449e-4,
    0.277777777778e-5,
)
POSITIONS = (
    (3.42947415189, 3.35386959711, 1.35494901715),
    (6.64145542550, 5.97156957878, 2.18231499728),
    (11.2630437207, 14.6952576794, 6.27960525067),
    (-30.1552268759, 1.65699966404, 1.43785752721),
    (-21.1238353380, 28.4465098142, 15.3882659679),
)
VELOCITIES = (
    (-0.557160570446, 0.505696783289, 0.230578543901),
    (-0.415570776342, 0.365682722812, 0.169143213293),
    (-0.325325669158, 0.189706021964, 0.0877265322780),
    (-0.0240476254170, -0.287659532608, -0.117219543175),
    (-0.176860753121, -0.216393453025, -0.0148647893090),
)


@_problem("C5", [x for row in (*POSITIONS, *VELOCITIES) for x in row])
def planets(t: Any, y: Any) -> Any:
    """Motion of the five outer planets about the sun; lengths in AU, time in 100 days."""
    q = [[y[3 * j + i] for i in range(3)] for j in range(5)]
    r3 = [_cube(p) for p in q]
    force = []
    for j in range(5):
        for i in range(3):
            total = -(SUN + PLANETS[j]) * q[j][i] / r3[j]
            for k in range(5):
                if k != j:
                    d3 = _cube([a - b for a, b in zip(q[k], q[j])])
                    total = total + PLANETS[k] * ((q[k][i] - q[j][i]) / d3 - q[k][i] / r3[k])
            force.append(GRAVITY * total)
    return np.array([*[y[i] for i in range(15, 30)], *force])


def _cube(x: Sequence[Any]) -> Any:
    square = x[0] * x[0] + x[1] * x[1] + x[2] * x[2]
    return square * np.sqrt(square)


def _orbit(t: Any, y: Any) -> Any:
    """Kepler's orbit."""
    square = y[0] * y[0] + y[1] * y[1]
    cube = square * np.sqrt(square)
    return np.array([y[2], y[3], -y[0] / cube, -y[1] / cube])


for _number, _e in enumerate((0.1, 0.3, 0.5, 0.7, 0.9), start=1):
    _problem(f"D{_number}", [1 - _e, 0, 0, float(np.sqrt((1 + _e) / (1 - _e)))])(_orbit)


@_problem("E1", [0.6713967071418030, 0.09540051444747446])
def bessel(t: Any, y: Any) -> Any:
    """Bessel's equation of order one half, with the origin shifted by one."""
    s = t + 1
    return np.array([y[1], -(y[1] / s + (1 - 0.25 / (s * s)) * y[0])])


@_problem("E2", [2, 0])
def van_der_pol(t: Any, y: Any) -> Any:
    """Van der Pol's equation."""
    return np.array([y[1], (1 - y[0] * y[0]) * y[1] - y[0]])


@_problem("E3", [0, 0])
def duffing(t: Any, y: Any) -> Any:
    """Duffing's equation."""
    return np.array([y[1], y[0] ** 3 / 6 - y[0] + 2 * np.sin(2.78535 * t)])


@_problem("E4", [30, 0])
def falling(t: Any, y: Any) -> Any:
    """A falling body with air resistance."""
    return np.array([y[1], 0.032 - 0.4 * y[1] * y[1]])


@_problem("E5", [0, 0])
def pursuit(t: Any, y: Any) -> Any:
    """A linear pursuit."""
    return np.array([y[1], np.sqrt(1 + y[1] * y[1]) / (25 - t)])
