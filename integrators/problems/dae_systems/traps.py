"""Small systems that break other tools."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.dae.general import DAE

from .case import Case, register

__all__ = ["cancelling_pair", "free_multiplier", "hidden_constraint"]


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
