"""Plants: a reactor, chemical reactions in equilibrium, trays of a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.dae.general import DAE

from .case import TEST_SET, Case, register

__all__ = ["akzo_nobel", "reactor", "trays"]


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
        provenance="the test set's",
    )
