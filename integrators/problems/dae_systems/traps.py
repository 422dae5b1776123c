"""Small systems that break other tools."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.dae.general import DAE

from .case import Case, register

__all__ = [
    "cancelling_pair",
    "combined_chain",
    "free_multiplier",
    "hidden_constraint",
    "vanishing_factor",
]

END = 3.0
DERIVATIVES = dict(zip("abce", (np.sin(END), np.cos(END), -np.sin(END), -np.cos(END))))


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
def combined_chain() -> Case:
    """a = sin t, b = ȧ, c = ḃ, e = ċ, each equation a sum of all: index 4 that looks like index 1.

    Every derivative stands in every equation, so that the pattern counts three freedoms where
    there is none, and every one of its diagonals gives a matrix that is singular.
    """
    weights = ((2, 1, 0, -2), (-1, -3, -3, -3), (-2, 2, 1, 3), (0, 1, 3, 2))

    def F(t: Any, y: Any, d: Any) -> Any:
        a, b, c, e = y
        plain = [a - np.sin(t), d(a) - b, d(b) - c, d(c) - e]
        return [sum(w * f for w, f in zip(row, plain)) for row in weights]

    return Case(
        DAE(F, ["a", "b", "c", "e"], name="combined_chain"),
        (0.0, END),
        4,
        0,
        "derivatives of a known function, and a regular matrix",
        reference=(END, DERIVATIVES),
        converted=True,
    )


@register
def vanishing_factor() -> Case:
    """The same chain, with cos e · (ȧ − b) in an equation: singular on solutions, yet solvable.

    Everywhere else that term seems to determine e, and the structure to be one of index 3.
    """

    def F(t: Any, y: Any, d: Any) -> Any:
        a, b, c, e = y
        f = [a - np.sin(t), d(a) - b, d(b) - c, d(c) - e]
        return [f[0] + f[2] + np.cos(e) * f[1], f[1], f[2] - f[1] - 2 * f[0], f[3]]

    return Case(
        DAE(F, ["a", "b", "c", "e"], name="vanishing_factor"),
        (0.0, END),
        4,
        0,
        "derivatives of a known function, and a term that vanishes on it",
        reference=(END, DERIVATIVES),
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
