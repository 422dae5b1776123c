"""Gaps that a user states as functions φ(q): rows and biases by exact differentiation.

φ̇ = ∂φ/∂q · q̇(q, v) is linear in v: its derivative by v is the row T, and what remains of φ̈ where
v̇ = 0 is the derivative of φ̇ along q̇.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.kinematics import position_rates

if TYPE_CHECKING:
    from integrators.tracing import Traced

    from ..model import Model

__all__ = ["gap_law"]


def gap_law(model: Model, phi: Callable[..., Any]) -> Traced:
    """[φ, φ̇, bias, T] as a traced function of t and x = [q; v]."""
    from integrators.tracing import traced

    nq, nv = model.nq, model.nv

    def rates(t: Any, x: Any) -> Any:
        w = model.tree.symbolic()
        w.t[0], w.q[:], w.v[:] = t, x[:nq], x[nq:]
        position_rates(w)
        return w.q_dot

    def value(t: Any, q: Any) -> Any:
        found = np.asarray(phi(q)).ravel()
        if found.size != 1:
            raise ValueError(f"gap: expected φ(q), one number, received {found.size}")
        return found

    position = traced(value, n=nq, outputs=1)

    def speed(t: Any, x: Any) -> Any:
        return position.jacobian()(t, x[:nq]) @ rates(t, x)

    velocity = traced(speed, n=nq + nv, outputs=1)

    def law(t: Any, x: Any) -> Any:
        J = velocity.jacobian()(t, x)
        bias = J[:, :nq] @ rates(t, x) + velocity.time_derivative()(t, x)
        return np.concatenate([position(t, x[:nq]), velocity(t, x), bias, J[0, nq:]])

    return traced(law, n=nq + nv, outputs=3 + nv)
