"""General differential-algebraic systems with their sources: circuits, plants, arms, small traps.

Each is a function of keyword parameters that returns a :class:`Case`: the
:class:`~integrators.DAE`, what to fix and to guess at the start, the interval, and the index and
number of freedoms that the literature or a calculation by hand gives. :func:`system` finds one by
name. The traps are small systems that break other tools.

Examples
--------
>>> from integrators.problems.dae_systems import system
>>> case = system("pendulum_chain", pendulums=2)
>>> case.system.structure().index, case.index
(5, 5)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from integrators.dae.general import DAE, DAEProblem
from integrators.errors import suggest

__all__ = ["Case", "names", "system"]


@dataclass(frozen=True, eq=False)
class Case:
    """A system, a start, and what is known of it.

    Attributes
    ----------
    system
        The equations.
    t_span
        Interval of a usual run.
    index, freedoms
        Structural index and number of freedoms, None where the system is singular.
    source
        Where it comes from.
    fixed, guess
        Values at the start.
    converted
        Whether its structure misleads and equations have to be rewritten.
    """

    system: DAE
    t_span: tuple[float, float]
    index: int | None
    freedoms: int | None
    source: str
    fixed: Mapping[str, float] = field(default_factory=dict)
    guess: Mapping[str, float] = field(default_factory=dict)
    converted: bool = False

    def problem(self, road: str | None = None, t_end: float | None = None) -> DAEProblem:
        """Return the problem of a road, from the case's start."""
        t0, t1 = self.t_span
        start = self.system.consistent(t0, self.fixed, self.guess)
        return self.system.problem(start, (t0, t1 if t_end is None else t_end), road)


_CASES: dict[str, Callable[..., Case]] = {}


def _case(function: Callable[..., Case]) -> Callable[..., Case]:
    _CASES[function.__name__] = function
    return function


def names() -> list[str]:
    """Names of all systems."""
    return sorted(_CASES)


def system(name: str, **parameters: Any) -> Case:
    """Return a system by name, with keyword parameters."""
    if name not in _CASES:
        raise ValueError(
            f"there is no system {name!r}{suggest(name, _CASES)}; known are {', '.join(names())}"
        )
    return _CASES[name](**parameters)


# ---------------------------------------------------------------- mechanics


@_case
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


@_case
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
    )


# ---------------------------------------------------------------- circuits


@_case
def transistor_amplifier() -> Case:
    """Eight node voltages of an amplifier with two transistors; index 1, stiff."""
    ub, uf, alpha, beta = 6.0, 0.026, 0.99, 1e-6
    r0, r = 1000.0, 9000.0
    C = np.array([1e-6, 2e-6, 3e-6, 4e-6, 5e-6])

    def g(x: Any) -> Any:
        return beta * (np.exp(x / uf) - 1.0)

    def F(t: Any, y: Any, d: Any) -> Any:
        ue = 0.1 * np.sin(200 * np.pi * t)
        y1, y2, y3, y4, y5, y6, y7, y8 = y
        g1, g2 = g(y2 - y3), g(y5 - y6)
        return [
            C[0] * (d[1] - d[0]) + (ue - y1) / r0,
            C[0] * (d[0] - d[1]) + ub / r - y2 * 2 / r - (1 - alpha) * g1,
            -C[1] * d[2] + g1 - y3 / r,
            C[2] * (d[4] - d[3]) + ub / r - y4 / r - alpha * g1,
            C[2] * (d[3] - d[4]) + ub / r - y5 * 2 / r - (1 - alpha) * g2,
            -C[3] * d[5] + g2 - y6 / r,
            C[4] * (d[7] - d[6]) + ub / r - y7 / r - alpha * g2,
            C[4] * (d[6] - d[7]) - y8 / r,
        ]

    volts = [0.0, 3.0, 3.0, 6.0, 3.0, 3.0, 6.0, 0.0]
    return Case(
        DAE(F, [f"U{k}" for k in range(1, 9)], name="transistor_amplifier"),
        (0.0, 0.2),
        1,
        5,
        "E. Hairer, C. Lubich & M. Roche (1989); test set for IVP solvers, problem II-4",
        guess={f"U{k + 1}": u for k, u in enumerate(volts)},
        converted=True,
    )


@_case
def ladder(sections: int = 10) -> Case:
    """Resistors and nonlinear capacitors in a chain of any length: index 1."""

    def F(t: Any, y: Any, d: Any) -> Any:
        v, i = y[:sections], y[sections:]
        before = np.concatenate([[np.sin(t)], v[:-1]])
        after = np.concatenate([i[1:], [0.0]])
        return np.concatenate([0.1 * d(v) - i + after + 0.01 * v**3, before - v - i])

    labels = [f"{name}{k}" for name in "vi" for k in range(sections)]
    return Case(
        DAE(F, labels, name="ladder"),
        (0.0, 10.0),
        1,
        sections,
        "an RC transmission line with leakage",
        fixed={f"v{k}": 0.0 for k in range(sections)},
    )


# ---------------------------------------------------------------- plants


@_case
def reactor() -> Case:
    """A stirred reactor whose concentration is prescribed; the cooling is unknown: index 3."""
    k1, k2, k3, k4, c0, t0 = 1.0, 200.0, 0.05, 4.0, 1.0, 1.0

    def F(t: Any, y: Any, d: Any) -> Any:
        c, T, rate, cooling = y
        return [
            d(c) - k1 * (c0 - c) + rate,
            d(T) - k1 * (t0 - T) - k2 * rate + k3 * cooling,
            rate - 10.0 * np.exp(-k4 / T) * c,
            c - 0.5 - 0.05 * np.sin(t),
        ]

    return Case(
        DAE(F, ["C", "T", "R", "cooling"], name="reactor"),
        (0.0, 5.0),
        3,
        0,
        "C. C. Pantelides, SIAM J. Sci. Stat. Comput. 9 (1988) 213-231, an exothermic reactor",
        guess={"C": 0.5, "T": 1.5, "R": 0.5},
    )


# ---------------------------------------------------------------- small traps


@_case
def cancelling_pair() -> Case:
    """ẋ + ż = x and ẋ + ż = z − sin x: the pattern counts one freedom too many."""
    return Case(
        DAE(
            lambda t, y, d: [d[0] + d[1] - y[0], d[0] + d[1] - y[1] + np.sin(y[0])],
            ["x", "z"],
            name="cancelling_pair",
        ),
        (0.0, 2.0),
        1,
        1,
        "derivatives that occur in one combination only",
        fixed={"x": 0.5},
        converted=True,
    )


@_case
def hidden_constraint() -> Case:
    """Tan, Nedialkov & Pryce's example: no combination helps, a new unknown does."""

    def F(t: Any, y: Any, d: Any) -> Any:
        x1, x2 = y
        return [
            x1 + np.exp(-d(x1) - x2 * d(x2, 2)) + np.sin(t) - 2.0,
            x1 + x2 * d(x2) + x2**2 + np.cos(t) - 3.0,
        ]

    return Case(
        DAE(F, ["x1", "x2"], name="hidden_constraint"),
        (0.0, 0.5),
        2,
        1,
        "G. Tan, N. S. Nedialkov & J. D. Pryce, BIT 57 (2017) 845-865",
        fixed={"x2": 1.0},
        guess={"x1": 0.5, "x2'": 0.5},
        converted=True,
    )


@_case
def free_multiplier() -> Case:
    """Two copies of one constraint: their multipliers cannot be told apart, and it is refused."""

    def F(t: Any, y: Any, d: Any) -> Any:
        x, a, b = y
        return [d(x, 2) + a + b, x - 1.0, 2.0 * x - 2.0]

    return Case(
        DAE(F, ["x", "a", "b"], name="free_multiplier"),
        (0.0, 1.0),
        None,
        None,
        "a redundant constraint",
    )
