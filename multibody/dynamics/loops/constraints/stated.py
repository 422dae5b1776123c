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

from ....kernels.vectors import cross, transform_vector_inverse
from ....model.constraints import Constraint, constraint_numbers

if TYPE_CHECKING:
    from ....model import Model

__all__ = ["law_sizes", "rows_of_constraint", "stated_law", "stated_rows"]


@kernel
def stated_rows(w: Any) -> None:
    """delta, K, nu and gamma of the constraints by functions, which come after all loops."""
    loops, bonds = w.loop_p.shape[0], w.loop_at.shape[0] - 1
    if loops == bonds:
        return
    nq, n = w.q_at[w.parent.shape[0]], w.v.shape[0]
    for k in range(nq):
        w.stated_x[k] = w.q[k]
    for k in range(n):
        w.stated_x[nq + k] = w.v[k]
    for l in range(loops, bonds):
        rows_of_constraint(w, l)


@kernel
def rows_of_constraint(w: Any, l: int) -> None:
    """The rows of one of them; `stated_x` begins with q and v. Leaves its law in `stated_out`."""
    first, m = w.loop_at[l], w.loop_at[l + 1] - w.loop_at[l]
    nq, n, number = w.q_at[w.parent.shape[0]], w.v.shape[0], l - w.loop_p.shape[0]
    begin, end = w.point_at[number], w.point_at[number + 1]
    size = 3 * (end - begin)
    for k in range(begin, end):
        at = nq + n + 3 * (k - begin)
        point_motion(w, k, w.stated_x[at : at + 3], w.stated_x[at + size : at + size + 3])
    p = w.loop_q[w.loop_q_at[l] : w.loop_q_at[l + 1]]
    call(w.loop_laws[l], w.t[0], w.stated_x, p, w.stated_out)
    for j in range(m):
        row = first + j
        w.delta[row] = w.stated_out[j]
        for k in range(n):
            w.K[row, k] = w.stated_out[m + j * n + k]
        speed = w.stated_out[m + m * n + j]
        w.gamma[row] = w.stated_out[2 * m + m * n + j]
        for k in range(begin, end):
            at = 3 * m + m * n + j * size + 3 * (k - begin)
            point_row(w, row, k, w.stated_out[at : at + 3])
        total = 0.0 - speed
        for k in range(n):
            total = total + w.K[row, k] * w.v[k]
        w.nu[row] = total


@kernel
def point_motion(w: Any, k: int, place: Any, velocity: Any) -> None:
    """Place and velocity of point k in base axes; its acceleration at v̇ = 0 goes to `point_acc`."""
    i, r = w.point_body[k], w.points[k]
    if i < 0:
        for a in range(3):
            place[a] = r[a]
            velocity[a] = 0.0
            w.point_acc[k, a] = 0.0
        return
    spin, turn, here = w.vel[i, 0:3], w.spare6[0:3], w.spare6[3:6]
    cross(spin, r, turn)
    for a in range(3):
        turn[a] = turn[a] + w.vel[i, 3 + a]  # velocity, in body axes
    cross(spin, turn, here)
    cross(w.acc[i, 0:3], r, w.other6[0:3])
    for a in range(3):
        here[a] = here[a] + w.acc[i, 3 + a] + w.other6[a]
    transform_vector_inverse(w.E_0[i], turn, velocity)
    transform_vector_inverse(w.E_0[i], here, w.point_acc[k])
    transform_vector_inverse(w.E_0[i], r, place)
    for a in range(3):
        place[a] = place[a] + w.r_0[i, a]


@kernel
def point_row(w: Any, row: int, k: int, push: Any) -> None:
    """What a row does to point k: its freedoms into K, its acceleration into γ."""
    i = w.point_body[k]
    if i < 0:
        return
    for a in range(3):
        w.gamma[row] = w.gamma[row] - push[a] * w.point_acc[k, a]
    arm = w.spare6[0:3]  # from the body's origin to the point, in base axes
    transform_vector_inverse(w.E_0[i], w.points[k], arm)
    while i >= 0:
        for c in range(w.v_at[i], w.v_at[i + 1]):
            cross(w.S_0[c, 0:3], arm, w.other6[0:3])
            for a in range(3):
                w.K[row, c] = w.K[row, c] + push[a] * (w.S_0[c, 3 + a] + w.other6[a])
        if w.parent[i] >= 0:
            transform_vector_inverse(w.E_0[w.parent[i]], w.r[i], w.other6[0:3])
            for a in range(3):
                arm[a] = arm[a] + w.other6[a]
        i = w.parent[i]


def unit_positions(q: Any, places: tuple[int, ...]) -> Any:
    """Position with its quaternions brought to norm 1; of numbers or of symbols."""
    if not places:
        return q
    out = np.array(q)
    for at in places:
        out[at : at + 4] = out[at : at + 4] / np.sqrt(np.sum(out[at : at + 4] ** 2))
    return out


def stated_law(model: Model, constraint: Constraint) -> Callable[..., Any]:
    """Law of a constraint, a function of t, z = [q; v; x; ẋ] and p, x its points in base axes.

    It returns, one after the other, δ; ∂φ̇/∂v at constant ẋ, row by row; φ̇; −φ̈ at constant v and
    ẋ; and ∂φ̇/∂ẋ, row by row. What the tree does to points is left to the kernel.
    """
    from integrators.tracing.traced import Traced

    assert constraint.trace is not None
    trace, own = constraint.trace, len(constraint.parameters)
    places, numbers = model.quaternion_places, constraint_numbers(model, constraint)
    nq, nv, m = model.nq - model.n_states, model.nv, constraint.count
    size, k = 3 * len(constraint.points), len(numbers)
    n = nq + nv + 2 * size

    def with_p(function: Callable[..., Any], n: int) -> Any:
        if k:
            return Traced(function, n=n, params=k, outputs=m, pure=True)
        return Traced(lambda t, z: function(t, z, ()), n=n, outputs=m, pure=True)

    def at(function: Any, t: Any, z: Any, p: Any) -> Any:
        return np.asarray(function(t, z, p) if k else function(t, z))

    def value(t: Any, z: Any, p: Any) -> Any:
        q, after = unit_positions(z[:nq], places), nq + nv if constraint.of_velocities else nq
        z = np.concatenate([*trace.of(q, z[nq:after]), z[after:]])
        return trace.program(t, z, p[:own]) if own else trace.program(t, z)

    def rate(t: Any, z: Any, p: Any) -> Any:
        """q̇."""
        out: list[Any] = []
        first = own
        for body, iq, iv in zip(model.bodies, model.q_index, model.v_index):
            mine = p[first : first + len(body.joint.parameters)]
            first += len(body.joint.parameters)
            v = z[nq + iv.start : nq + iv.stop]
            out += list(v if body.joint.rate_is_velocity else body.joint.rate(t, z[iq], v, mine))
        return np.array(out)

    def moved(t: Any, z: Any, p: Any) -> Any:
        """Derivative of z at constant v and ẋ."""
        return np.concatenate([rate(t, z, p), np.zeros(nv), z[nq + nv + size :], np.zeros(size)])

    gap = None if constraint.of_velocities else with_p(value, nq + size)

    def still(z: Any) -> Any:
        return np.concatenate([z[:nq], z[nq + nv : nq + nv + size]])

    def speed(t: Any, z: Any, p: Any) -> Any:
        if gap is None:
            return value(t, z, p)
        slope = at(gap.jacobian(), t, still(z), p).reshape(m, nq + size)
        return slope @ still(moved(t, z, p)) + at(gap.time_derivative(), t, still(z), p)

    velocity = with_p(speed, n)

    def law(t: Any, z: Any, p: Any) -> Any:
        slope = at(velocity.jacobian(), t, z, p).reshape(m, n)
        gamma = -(slope @ moved(t, z, p) + at(velocity.time_derivative(), t, z, p))
        delta = np.zeros(m) if gap is None else at(gap, t, still(z), p)
        parts = [slope[:, nq : nq + nv].ravel(), at(velocity, t, z, p), gamma]
        return np.concatenate([delta, *parts, slope[:, nq + nv + size :].ravel()])

    return law


def law_sizes(model: Model, constraint: Constraint) -> tuple[int, int]:
    """How many numbers a law takes, and how many it returns."""
    size, m = 3 * len(constraint.points), constraint.count
    return model.nq - model.n_states + model.nv + 2 * size, m * (model.nv + 3 + size)
