"""The equations of a system solved on symbols, by elimination of its matrices without pivots.

What a formulation asks of a system, besides its single functions. A mechanism knows better ways to
the same results, by recursions along its tree; an object with these methods is given to
``Mechanical(recursions=…)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .acceleration import Eliminated
from .completed import Parts

__all__ = ["Elimination"]


class Elimination:
    """M, f, g, G, γ and ν, and what follows from them where the constraints are independent.

    Attributes
    ----------
    solves
        Whether dependent constraints do no harm, as they do here.
    """

    solves = False

    def __init__(self, parts: Parts, nv: int) -> None:
        self.parts, self.nv = parts, nv

    def terms(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, ...]:
        """M, f, g, G, γ, ν."""
        parts = self.parts
        return (
            parts.mass(t, q, p),
            parts.force(t, q, v, p),
            parts.constraint(t, q, p),
            parts.jacobian(t, q, p),
            parts.bias(t, q, v, p),
            parts.target(t, q, p),
        )

    def constraint(self, t: Any, q: Any, p: Any) -> tuple[Any, Any]:
        """g and G."""
        return self.parts.constraint(t, q, p), self.parts.jacobian(t, q, p)

    def accelerations(self, t: Any, q: Any, v: Any, p: Any, alpha: float, beta: float) -> Any:
        """v̇ with G v̇ = γ − 2α (G v − ν) − β² g."""
        return self._solved(t, q, v, p, alpha, beta)[0]

    def multipliers(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """λ with G v̇ = γ."""
        return self._solved(t, q, v, p, 0.0, 0.0)[1]

    def exact_slopes(self, form: str, f: Any, gains: tuple[float, float] = (0.0, 0.0)) -> Any:
        """∂f/∂y of a formulation, where the system knows it better than tracing does; else None.

        A function of (t, y, *params); of minimal coordinates one of (t, q, v, partition, p).
        `gains` are those of forms that eliminate the multipliers and feed gaps back.
        """
        return None

    def _solved(self, t: Any, q: Any, v: Any, p: Any, alpha: float, beta: float) -> tuple[Any, Any]:
        M, f, g, G, gamma, nu = self.terms(t, q, v, p)
        if alpha or beta:
            gamma = gamma - 2 * alpha * (G @ v - nu) - beta * beta * g
        return Eliminated(M, G).accelerate(f, gamma)

    def closing(self, t: Any, q: Any, p: Any) -> Any:
        """The smallest displacement u, in the norm uᵀMu, with G u = −g."""
        M, _, g, G, _, _ = self.terms(t, q, np.zeros(self.nv), p)
        return Eliminated(M, G).correction(-np.asarray(g))

    def settled(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """The nearest velocity, in the same norm, with G v = ν."""
        M, _, _, G, _, nu = self.terms(t, q, v, p)
        return v + Eliminated(M, G).correction(nu - G @ v)
