"""Constraints that a user states as functions: δ, rows of K, ν and γ by exact differentiation.

With q̇ = N(q) v, a constraint of positions φ(t, q) = 0 has the rate

    φ̇ = ∂φ/∂t + ∂φ/∂q q̇ = K v − ν,      φ̈ = K v̇ − γ,

so that K = ∂φ̇/∂v, and γ is minus the derivative of φ̇ along q̇ and time at constant v. One of
velocities, ψ(t, q, v) = K v − ν, starts one line later and has no δ. Both stand in K, ν and γ
behind the rows of the loop joints, and are solved with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.kernels import kernel
from integrators.kernels.pointers import call

from ...checks import Array
from ...model.constraints import Constraint, constraint_numbers, points_in_base

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["point_forces", "stated_law", "stated_rows", "unit_positions"]


@kernel
def stated_rows(w: Any) -> None:
    """delta, K, nu and gamma of the constraints by functions, which come after all loops."""
    loops, bonds = w.loop_p.shape[0], w.loop_at.shape[0] - 1
    if loops == bonds:
        return
    nq, n = w.q.shape[0], w.v.shape[0]
    for k in range(nq):
        w.stated_x[k] = w.q[k]
    for k in range(n):
        w.stated_x[nq + k] = w.v[k]
    for l in range(loops, bonds):
        first, m = w.loop_at[l], w.loop_at[l + 1] - w.loop_at[l]
        p = w.loop_q[w.loop_q_at[l] : w.loop_q_at[l + 1]]
        call(w.loop_laws[l], w.t[0], w.stated_x, p, w.stated_out)
        for j in range(m):
            w.delta[first + j] = w.stated_out[j]
            for k in range(n):
                w.K[first + j, k] = w.stated_out[m + j * n + k]
            w.nu[first + j] = w.stated_out[m + m * n + j]
            w.gamma[first + j] = w.stated_out[2 * m + m * n + j]


def unit_positions(q: Any, places: tuple[int, ...]) -> Any:
    """Position with its quaternions brought to norm 1; of numbers or of symbols."""
    if not places:
        return q
    out = np.array(q)
    for at in places:
        out[at : at + 4] = out[at : at + 4] / np.sqrt(np.sum(out[at : at + 4] ** 2))
    return out


class _Program:
    """Functions of t, a state and p, traced with or without parameters."""

    def __init__(self, model: Model, constraint: Constraint) -> None:
        assert constraint.trace is not None
        self.model, self.constraint, self.program = model, constraint, constraint.trace.program
        self.own = len(constraint.parameters)
        self.k = len(constraint_numbers(model, constraint))

    def traced(self, function: Callable[..., Any], n: int, outputs: int) -> Callable[..., Any]:
        """The function traced, with its derivatives `slope` (by the state) and `drift` (by t)."""
        from integrators.tracing import traced

        k = self.k
        if k:
            made = traced(function, n=n, params=k, outputs=outputs)
        else:
            made = traced(lambda t, x: function(t, x, ()), n=n, outputs=outputs)

        def calling(what: Any) -> Callable[..., Any]:
            return lambda t, x, p: np.asarray(what(t, x, p) if k else what(t, x))

        run: Any = calling(made)
        run.slope = lambda t, x, p: calling(made.jacobian())(t, x, p).reshape(outputs, n)
        run.drift = lambda t, x, p: calling(made.time_derivative())(t, x, p).reshape(outputs)
        return run

    def value(self, t: Any, z: Any, p: Any) -> Any:
        """The user's function of [q; x] or [q; v; x; ẋ]."""
        return self.program(t, z, p[: self.own]) if self.own else self.program(t, z)

    def points(self, t: Any, q: Any, p: Any) -> Any:
        """x."""
        q = unit_positions(q, self.model.quaternion_places)
        return np.array(points_in_base(self.model, self.constraint, t, q, p))

    def rate(self, t: Any, x: Any, p: Any) -> Any:
        """q̇ of [q; v]."""
        model, at = self.model, self.own
        out: list[Any] = []
        for body, iq, iv in zip(model.bodies, model.q_index, model.v_index):
            own = p[at : at + len(body.joint.parameters)]
            at += len(body.joint.parameters)
            v = x[model.nq + iv.start : model.nq + iv.stop]
            out += list(v if body.joint.rate_is_velocity else body.joint.rate(t, x[iq], v, own))
        return np.array(out)


def stated_law(model: Model, constraint: Constraint) -> Callable[..., Any]:
    """Function of t, x = [q; v] and p that returns δ, K row by row, ν and γ one after the other."""
    made = _Program(model, constraint)
    nq, nv, m = model.nq, model.nv, constraint.count
    places, x_size = model.quaternion_places, 3 * len(constraint.points)
    where = made.traced(made.points, nq, x_size) if x_size else None

    def speed_of_points(t: Any, x: Any, p: Any) -> Any:
        if where is None:
            return np.zeros(0)
        slope: Any = where
        return slope.slope(t, x[:nq], p) @ made.rate(t, x, p) + slope.drift(t, x[:nq], p)

    if constraint.of_velocities:

        def speed(t: Any, x: Any, p: Any) -> Any:
            at = np.zeros(0) if where is None else where(t, x[:nq], p)
            q, v = unit_positions(x[:nq], places), x[nq:]
            return made.value(t, np.concatenate([q, v, at, speed_of_points(t, x, p)]), p)

        gap: Any = None
    else:

        def position(t: Any, q: Any, p: Any) -> Any:
            at = np.zeros(0) if where is None else where(t, q, p)
            return made.value(t, np.concatenate([unit_positions(q, places), at]), p)

        gap = made.traced(position, nq, m)

        def speed(t: Any, x: Any, p: Any) -> Any:
            return gap.slope(t, x[:nq], p) @ made.rate(t, x, p) + gap.drift(t, x[:nq], p)

    velocity: Any = made.traced(speed, nq + nv, m)

    def law(t: Any, x: Any, p: Any) -> Any:
        slope = velocity.slope(t, x, p)
        K = slope[:, nq:]
        gamma = -(slope[:, :nq] @ made.rate(t, x, p) + velocity.drift(t, x, p))
        nu = K @ x[nq:] - velocity(t, x, p)
        delta = np.zeros(m) if gap is None else gap(t, x[:nq], p)
        return np.concatenate([delta, K.ravel(), nu, gamma])

    return law


def point_forces(model: Model, q: Array, multipliers: Array, t: float) -> Array:
    """Forces that constraints exert at the points which they name, as wrenches on the bodies.

    A row for each body: couple about the base's origin and force, in base axes. What a constraint
    asks of joint variables is a force in these joints, and not here.
    """
    forces = np.zeros((model.n_bodies, 6))
    at = model.tree.arrays["loop_at"][len(model.loops) :]
    for l, constraint in enumerate(model.constraints):
        if not constraint.points:
            continue
        made = _Program(model, constraint)
        p = np.array(constraint_numbers(model, constraint), dtype=float)
        x = np.asarray(made.points(t, q, p), dtype=float)
        program, size = made.program, len(x)
        moved = [q, np.zeros(model.nv), x, np.zeros(size)] if constraint.of_velocities else [q, x]
        z = np.concatenate(moved)
        slope = program.jacobian()(t, z, p[: made.own]) if made.own else program.jacobian()(t, z)
        pushes = multipliers[at[l] : at[l + 1]] @ np.reshape(slope, (-1, len(z)))[:, -size:]
        for k, (body, _) in enumerate(constraint.points):
            if body:
                push, place = pushes[3 * k : 3 * k + 3], x[3 * k : 3 * k + 3]
                forces[body - 1] += [*np.cross(place, push), *push]
    return forces
