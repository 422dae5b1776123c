"""Gaps that a user states as functions φ(q): rows and biases by exact differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.loops.stated import stated_law
from ..model.constraints import Constraint, bound, constraint_numbers

if TYPE_CHECKING:
    from integrators.tracing import Traced

    from ..model import Model

__all__ = ["gap_law"]


def gap_law(model: Model, phi: Callable[..., Any]) -> Traced:
    """[φ, φ̇, bias, T] as a traced function of t and x = [q; v].

    That is the law of a constraint φ = 0: T = K, φ̇ = K v − ν, and the bias of φ̈ is −γ.
    """
    from integrators.tracing import traced

    nq, nv = model.nq, model.nv
    constraint = bound(Constraint("gap", phi), model)
    if constraint.count != 1:
        raise ValueError(f"gap: expected φ(q), one number, received {constraint.count}")
    law, p = stated_law(model, constraint), np.array(constraint_numbers(model, constraint))

    def gap(t: Any, x: Any) -> Any:
        delta, *K, nu, gamma = law(t, x, p)
        rate = sum(a * b for a, b in zip(K, x[nq:])) - nu
        return np.array([delta, rate, -gamma, *K])

    return traced(gap, n=nq + nv, outputs=3 + nv)
