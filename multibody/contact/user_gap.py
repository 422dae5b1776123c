"""Gaps that a user states as functions φ(q): rows and biases by exact differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.loops.constraints.stated import stated_law
from ..model.constraints import Constraint, bound, constraint_numbers

if TYPE_CHECKING:
    from integrators.tracing import Traced

    from ..model import Model

__all__ = ["gap_law"]


def gap_law(model: Model, phi: Callable[..., Any]) -> Traced:
    """[φ, φ̇, bias, T] as a traced function of t and x = [q; v].

    That is the law of a constraint φ = 0, in which T is K, and the bias of φ̈ is −γ.
    """
    from integrators.tracing import traced

    nq, nv, joints = model.nq, model.nv, model.nq - model.n_states
    constraint = bound(Constraint("gap", phi), model)
    if constraint.count != 1:
        raise ValueError(f"gap: expected φ(q), one number, received {constraint.count}")
    if constraint.points:
        raise ValueError(
            "gap: q.point is not known here; give shapes, or write φ of joint variables"
        )
    law, p = stated_law(model, constraint), np.array(constraint_numbers(model, constraint))

    def gap(t: Any, x: Any) -> Any:
        delta, *K, rate, gamma = law(t, np.concatenate([x[:joints], x[nq:]]), p)
        return np.array([delta, rate, -gamma, *K])

    return traced(gap, n=nq + nv, outputs=3 + nv)
