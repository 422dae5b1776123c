"""Joints that close loops: δ and, by exact differentiation, its first and second derivatives.

A joint states only the gap δ(t, E, r) that must vanish (``Joint.closure``). With the relative
velocity v = [ω; u] in successor axes, Ė = −ω× E and ṙ = Eᵀ u, so

    dδ/dt = T v − ν          T the rows of constraint forces, ν = −∂δ/∂t
    d²δ/dt² = T v̊ − γ        γ from differentiating T v − ν at constant components of v

follow from the traced δ. (The book's Table 8.1 has T constant and δ to first order; here both are
exact away from the closed position too, so that δ̈ + 2αδ̇ + β²δ = 0 holds exactly when asked for.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....joints.base import Joint
from ....model.rules import FROM_DYNAMICS

__all__ = ["constraint_count", "loop_law"]

IDENTITY, ORIGIN = np.eye(3), np.zeros(3)


def constraint_count(joint: Joint) -> int:
    """Number of constraints that a joint imposes as a loop joint: of positions and of velocities.

    Examples
    --------
    >>> from multibody import Revolute, RollingSphere
    >>> constraint_count(Revolute()), constraint_count(RollingSphere(0.1))
    (5, 3)
    """
    gap, rates = _counts(joint)
    return gap + rates


def _counts(joint: Joint) -> tuple[int, int]:
    p = np.asarray(joint.parameters, dtype=float)
    gap = joint.closure(0.0, IDENTITY, ORIGIN, p)
    if gap is None:
        raise ValueError(
            f"{joint!r} cannot close a loop, because it does not say when it is closed; give "
            "closure=… (see UserJoint), or use it in the tree and cut the loop elsewhere"
        )
    rates = joint.closure_rates(0.0, IDENTITY, ORIGIN, np.zeros(6), p)
    if len(gap) + len(rates) != 6 - joint.nv:
        raise ValueError(
            f"{joint!r} cannot close a loop: expected 6 − {joint.nv} = {6 - joint.nv} constraints "
            f"for its {joint.nv} speeds, received {len(gap)} from its closure"
            + (f" and {len(rates)} of velocities" if rates else "")
            + "; a joint that rolls (with a `rate`) needs constraints of velocities, too, which "
            "a closure of poses cannot tell: use RollingSphere, or a Joint of your own with "
            "closure_rates, or use it in the tree and cut the loop elsewhere"
        )
    return len(gap), len(rates)


FROM_DYNAMICS["constraint count"] = constraint_count


def loop_law(joint: Joint) -> Callable[..., Any]:
    """Function of t, x = [E, r, v] (18 numbers) and p that returns δ, T, ν, γ one after the other.

    Velocity constraints that no position belongs to come last; their δ is zero.
    """
    from integrators.tracing import traced

    holonomic, more = _counts(joint)
    m, k = holonomic + more, len(joint.parameters)

    def with_p(function: Callable[..., Any], n: int, outputs: int) -> Any:
        if k:
            return traced(function, n=n, params=k, outputs=outputs)
        return traced(lambda t, x: function(t, x, ()), n=n, outputs=outputs)

    def call(function: Any, t: Any, x: Any, p: Any) -> Any:
        return function(t, x, p) if k else function(t, x)

    def gap(t: Any, x: Any, p: Any) -> Any:
        return np.array(joint.closure(t, x[:9].reshape(3, 3), x[9:12], p))

    position = with_p(gap, 12, holonomic) if holonomic else None

    def motion(x: Any) -> Any:
        """Derivative of [E, r] along v."""
        E, w, u = x[:9].reshape(3, 3), x[12:15], x[15:18]
        turn = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
        return np.concatenate([(-(turn @ E)).ravel(), E.T @ u])

    def speed(t: Any, x: Any, p: Any) -> Any:
        rows: list[Any] = []
        if position is not None:
            J = call(position.jacobian(), t, x[:12], p)
            rows += list(J @ motion(x) + call(position.time_derivative(), t, x[:12], p))
        rows += joint.closure_rates(t, x[:9].reshape(3, 3), x[9:12], x[12:18], p)
        return np.array(rows)

    velocity = with_p(speed, 18, m) if m else None

    def law(t: Any, x: Any, p: Any) -> Any:
        if velocity is None:
            return np.zeros(0)
        J = call(velocity.jacobian(), t, x, p)
        T = J[:, 12:18]
        drift = call(velocity.time_derivative(), t, x, p)
        gamma = -(J[:, :12] @ motion(x) + drift)
        now = call(velocity, t, x, p)
        nu = T @ x[12:18] - now
        parts = [] if position is None else [call(position, t, x[:12], p)]
        return np.concatenate([*parts, np.zeros(more), T.ravel(), nu, gamma])

    return law
