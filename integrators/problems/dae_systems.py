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

from typing import Any

import numpy as np

from integrators.dae.general import DAE
from integrators.errors import suggest

from . import dae_test_set  # noqa: F401  (its systems enter the list)
from .dae_case import CASES, Case, register

__all__ = ["Case", "names", "system"]


def names() -> list[str]:
    """Names of all systems."""
    return sorted(CASES)


def system(name: str, **parameters: Any) -> Case:
    """Return a system by name, with keyword parameters."""
    if name not in CASES:
        raise ValueError(
            f"there is no system {name!r}{suggest(name, CASES)}; known are {', '.join(names())}"
        )
    return CASES[name](**parameters)


# ---------------------------------------------------------------- mechanics


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
    )


# ---------------------------------------------------------------- circuits


@register
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


@register
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


@register
def reactor(prescribed: str = "C") -> Case:
    """A stirred reactor with unknown cooling; concentration C prescribed: index 3, T: index 2."""
    k1, k2, k3, k4, c0, t0 = 1.0, 200.0, 0.05, 4.0, 1.0, 1.0
    if prescribed not in ("C", "T"):
        raise ValueError(f"prescribed: expected 'C' or 'T', received {prescribed!r}")

    def F(t: Any, y: Any, d: Any) -> Any:
        c, T, rate, cooling = y
        return [
            d(c) - k1 * (c0 - c) + rate,
            d(T) - k1 * (t0 - T) - k2 * rate + k3 * cooling,
            rate - 10.0 * np.exp(-k4 / T) * c,
            c - 0.5 - 0.05 * np.sin(t) if prescribed == "C" else T - 1.5 - 0.1 * np.sin(t),
        ]

    start = {"C": 0.5, "T": 1.5, "R": 0.5}
    return Case(
        DAE(F, ["C", "T", "R", "cooling"], name="reactor"),
        (0.0, 5.0),
        3 if prescribed == "C" else 2,
        0 if prescribed == "C" else 1,
        "C. C. Pantelides, SIAM J. Sci. Stat. Comput. 9 (1988) 213-231, an exothermic reactor",
        fixed={} if prescribed == "C" else {"C": 0.5},
        guess=start if prescribed == "C" else {"T": 1.5, "R": 0.5},
    )


@register
def trays(trays: int = 10, prescribed: str | None = None) -> Case:
    """A chain of trays as in a column: liquid flows down from tray 1, vapour up, in equilibrium.

    Index 1. With ``prescribed="top"`` the composition on tray 1 is given and that of the reflux is
    unknown: index 2. With "bottom" the last tray's is given, and the index is n + 1: what the
    reflux must be is n derivatives away.
    """
    liquid, vapour, volatility, feed, boil_up, holdup = 1.0, 0.8, 2.5, 0.9, 0.2, 0.5
    if prescribed not in (None, "top", "bottom"):
        raise ValueError(f"prescribed: expected 'top', 'bottom' or None, received {prescribed!r}")
    if trays < 1:
        raise ValueError(f"trays: expected at least 1, received {trays}")
    rest = np.linspace(0.6, 0.4, trays)

    def F(t: Any, y: Any, d: Any) -> Any:
        x, v = y[:trays], y[trays : 2 * trays]
        reflux = feed + 0.05 * np.sin(t) if prescribed is None else y[2 * trays]
        above, below = np.concatenate([[reflux], x[:-1]]), np.concatenate([v[1:], [boil_up]])
        balances = holdup * d(x) - liquid * (above - x) - vapour * (below - v)
        equilibria = v * (1.0 + (volatility - 1.0) * x) - volatility * x
        if prescribed is None:
            return np.concatenate([balances, equilibria])
        k = 0 if prescribed == "top" else trays - 1
        return np.concatenate([balances, equilibria, [x[k] - rest[k] - 0.02 * np.sin(t)]])

    labels = [f"{name}{k + 1}" for name in "xv" for k in range(trays)]
    labels += [] if prescribed is None else ["reflux"]
    given = {f"x{k + 1}": float(rest[k]) for k in range(trays)}
    free = {None: trays, "top": trays - 1, "bottom": 0}[prescribed]
    if prescribed == "top":
        del given["x1"]
    return Case(
        DAE(F, labels, name="trays"),
        (0.0, 5.0),
        {None: 1, "top": 2, "bottom": trays + 1}[prescribed],
        free,
        "a column with constant molar overflow and relative volatility, as in W. L. Luyben, "
        "Process Modeling, Simulation and Control for Chemical Engineers (1990)",
        fixed=given if free else {},
        guess={f"v{k + 1}": 0.7 for k in range(trays)} | ({} if free else given),
    )


# ---------------------------------------------------------------- small traps


@register
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


@register
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


@register
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
