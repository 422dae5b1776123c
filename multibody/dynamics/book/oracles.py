"""The same dynamics computed in other ways, to be read, and to check the fast algorithms by.

Nothing here is quick. Everything is plain NumPy on 6×6 matrices, as near to the printed equations
as possible, and shares with the kernels only the joints' laws and the numbers of the model:

- :func:`rnea_base`: the recursive Newton–Euler equations without coordinates (book, Eq 5.7–5.11),
  evaluated in base coordinates; :func:`luh_walker_paul`: their original three-dimensional form;
- :func:`inertia_by_definition`, :func:`inertia_by_columns`, :func:`inertia_column`: H from its
  definition, from inverse dynamics, and from its physical meaning (Eq 6.11, 6.3, 6.21–6.25);
- :func:`closed_form`: H, Christoffel symbols, gravity and dampers of the closed form (Eq 5.6), by
  differences of the energies; :func:`coriolis_matrix`: a C(q, v) with Ḣ − 2C skew.

All contain the model's springs, dampers and stops, as `ID` and `FD` do. Bodies and joints as they
are seen from the base, and the forces of springs, are in ``base_view``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...checks import Array, ArrayLike
from .base_view import (
    BaseCoordinates,
    ForcesLike,
    applied_forces,
    base_coordinates,
    body_joint,
    cross_force,
    cross_motion,
    element_forces,
    external_forces,
    in_base,
    numbers,
)

if TYPE_CHECKING:
    from ...model import Body, Model

__all__ = [
    "BaseCoordinates",
    "ClosedForm",
    "applied_forces",
    "base_coordinates",
    "body_joint",
    "closed_form",
    "coriolis_matrix",
    "cross_force",
    "cross_motion",
    "element_forces",
    "external_forces",
    "inertia_by_columns",
    "inertia_by_definition",
    "inertia_column",
    "luh_walker_paul",
    "numbers",
    "rnea_base",
]


def slope(g: Callable[[float], Array], h: float = 1e-3) -> Array:
    """g′(0) by central differences, extrapolated twice: error O(h⁶), rounding about 1e-12."""
    rows = [(np.asarray(g(h / 2**k)) - np.asarray(g(-h / 2**k))) / (2 * h / 2**k) for k in range(3)]
    once = [(4 * fine - coarse) / 3 for coarse, fine in pairwise(rows)]
    return np.asarray((16 * once[1] - once[0]) / 15)


# ---------------------------------------------------------------------- inverse dynamics


def rnea_base(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: ForcesLike = None,
    t: float = 0.0,
) -> Array:
    """Inverse dynamics in base coordinates (Eq 5.7–5.11), with the model's force elements, as `ID`.

    Examples
    --------
    A rod of 1 kg, held level by its end 1 m from the centre of mass:

    >>> from multibody import Inertia, ModelBuilder, Revolute
    >>> b = ModelBuilder()
    >>> _ = b.add_body("rod", 0, Revolute("y"), inertia=Inertia(1.0, (1, 0, 0)))
    >>> rnea_base(b.build(), [0.0], [0.0], [0.0])
    array([-9.81])
    """
    q, v, a = numbers(model, q, v, a, "a")
    w = base_coordinates(model, q, v, t)
    elements, known = applied_forces(model, q, v, None, f_ext, t, w)
    gravity = np.concatenate([np.zeros(3), model.gravity])
    accelerations: list[Array] = []
    forces: list[Array] = []
    for i, (body, at) in enumerate(zip(model.bodies, model.v_index)):
        above = accelerations[body.parent - 1] if body.parent else np.zeros(6)
        accelerations.append(above + w.S[i] @ a[at] + w.c[i])
        I, v_i = w.inertia[i], w.v[i]
        net = I @ accelerations[i] + cross_force(v_i) @ I @ v_i
        forces.append(net - known[i] - I @ gravity)
    tau = np.empty(model.nv)
    for i in range(model.n_bodies - 1, -1, -1):
        body, at = model.bodies[i], model.v_index[i]
        tau[at] = w.S[i].T @ forces[i] + body.armature * a[at] - elements[at]
        if body.parent:
            forces[body.parent - 1] = forces[body.parent - 1] + forces[i]
    return tau


def luh_walker_paul(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Inverse dynamics of an unbranched chain of revolute joints, in three-vectors (Table 5.2).

    The accelerations are those of points, not spatial ones; the velocity of the link's origin is
    never needed.

    Examples
    --------
    >>> from multibody import Inertia, ModelBuilder, Revolute
    >>> b = ModelBuilder()
    >>> _ = b.add_body("rod", 0, Revolute("y"), inertia=Inertia(1.0, (1, 0, 0)))
    >>> luh_walker_paul(b.build(), [0.0], [0.0], [0.0])
    array([-9.81])
    """
    from ...joints import Revolute

    q, v, a = numbers(model, q, v, a, "a")
    for i, body in enumerate(model.bodies):
        if not isinstance(body.joint, Revolute) or body.parent != i or body.reverse:
            raise ValueError(
                f"luh_walker_paul: expected an unbranched chain of revolute joints that are not "
                f"reversed, received body {body.name!r} with {body.joint!r} on body {body.parent}"
            )
    w = base_coordinates(model, q, v)
    elements, pulls = element_forces(model, q, v, seen=w)
    omega, alpha, accel = np.zeros(3), np.zeros(3), -model.gravity
    rotations, shifts, F, N = [], [], [], []
    for i, body in enumerate(model.bodies):
        move = body.joint.motion(q[i : i + 1])
        E = move.X.E @ body.placement.E
        r = body.placement.r  # from the parent's origin, in its coordinates
        z = body.joint.axis
        accel = E @ (accel + np.cross(alpha, r) + np.cross(omega, np.cross(omega, r)))
        carried = E @ omega
        alpha = E @ alpha + z * a[i] + np.cross(carried, z * v[i])
        omega = carried + z * v[i]
        m, centre = body.inertia.mass, body.inertia.centre
        I_c = body.inertia.central
        at_centre = accel + np.cross(alpha, centre) + np.cross(omega, np.cross(omega, centre))
        couple, force = np.linalg.solve(w.X[i].T, pulls[i]).reshape(2, 3)  # of springs
        moment = np.cross(centre, m * at_centre)
        F.append(m * at_centre - force)
        N.append(I_c @ alpha + np.cross(omega, I_c @ omega) + moment - couple)
        rotations.append(E)
        shifts.append(r)
    tau = np.empty(model.nv)
    f, n = np.zeros(3), np.zeros(3)  # passed on by the next joint, in this body's coordinates
    for i in range(model.n_bodies - 1, -1, -1):
        f, n = f + F[i], n + N[i]
        body = model.bodies[i]
        tau[i] = body.joint.axis @ n + body.armature[0] * a[i] - elements[i]
        f, n = rotations[i].T @ f, rotations[i].T @ n
        n = n + np.cross(shifts[i], f)
    return tau


# ---------------------------------------------------------------------- inertia matrix


def inertia_by_definition(model: Model, q: ArrayLike, t: float = 0.0) -> Array:
    """H from H_ij = Σ_{k ∈ ν(i) ∩ ν(j)} S_iᵀ I_k S_j (Eq 6.11).

    Examples
    --------
    >>> from multibody import Inertia, ModelBuilder, Prismatic
    >>> b = ModelBuilder()
    >>> _ = b.add_body("lower", 0, Prismatic(), inertia=Inertia(2.0))
    >>> _ = b.add_body("upper", "lower", Prismatic(), inertia=Inertia(1.0))
    >>> inertia_by_definition(b.build(), [0.0, 0.0])
    array([[3., 1.],
           [1., 1.]])
    """
    w = base_coordinates(model, q, None, t)
    H = np.diag(np.concatenate([np.zeros(0), *[b.armature for b in model.bodies]]))
    for k in range(model.n_bodies):  # body k lies in ν(i) and ν(j) for i and j in κ(k)
        for i in w.support(k):
            for j in w.support(k):
                H[model.v_index[i], model.v_index[j]] += w.S[i].T @ w.inertia[k] @ w.S[j]
    return H


def inertia_by_columns(model: Model, q: ArrayLike, t: float = 0.0) -> Array:
    """H from columns ID_δ(δ_α): forces of a unit acceleration, without motion (Table 6.1)."""
    w = base_coordinates(model, q, None, t)
    H = np.empty((model.nv, model.nv))
    for column in range(model.nv):
        a = np.zeros(model.nv)
        a[column] = 1.0
        accelerations: list[Array] = []
        for i, (body, at) in enumerate(zip(model.bodies, model.v_index)):
            above = accelerations[body.parent - 1] if body.parent else np.zeros(6)
            accelerations.append(above + w.S[i] @ a[at])
        forces = [I @ a_i for I, a_i in zip(w.inertia, accelerations)]
        for i in range(model.n_bodies - 1, -1, -1):
            body, at = model.bodies[i], model.v_index[i]
            H[at, column] = w.S[i].T @ forces[i] + body.armature * a[at]
            if body.parent:
                forces[body.parent - 1] = forces[body.parent - 1] + forces[i]
    return H


class InertiaColumn(NamedTuple):
    """Forces across all joints, in base coordinates, and the column of H that they make."""

    forces: Array
    column: Array


def inertia_column(model: Model, q: ArrayLike, variable: int, t: float = 0.0) -> InertiaColumn:
    """Physical meaning of a column of H (§6.3, Eq 6.21–6.25).

    A mechanism at rest, without gravity, gets the acceleration 1 in one variable s_α of joint i
    and 0 in all others. Then the bodies that joint i carries accelerate like one rigid body: the
    joints below it pass on I_i^c s_α, a joint j above passes on I_j^c s_α, the others nothing.
    """
    w = base_coordinates(model, q, None, t)
    composite = [I.copy() for I in w.inertia]
    for k in range(model.n_bodies - 1, -1, -1):
        if model.bodies[k].parent:
            composite[model.bodies[k].parent - 1] += composite[k]
    i = next(k for k, at in enumerate(model.v_index) if at.start <= variable < at.stop)
    s = w.S[i][:, variable - model.v_index[i].start]
    forces = np.zeros((model.n_bodies, 6))
    column = np.zeros(model.nv)
    for j in range(model.n_bodies):
        if j in w.support(i):
            forces[j] = composite[i] @ s
        elif i in w.support(j):
            forces[j] = composite[j] @ s
        column[model.v_index[j]] = w.S[j].T @ forces[j]
    own = variable - model.v_index[i].start
    column[variable] += model.bodies[i].armature[own]
    return InertiaColumn(forces, column)


# ---------------------------------------------------------------------- closed form


class ClosedForm(NamedTuple):
    """τ_i = Σ_j H_ij q̈_j + Σ_jk C_ijk q̇_j q̇_k + g_i (Eq 5.6) + Σ_j D_ij q̇_j − s_i.

    The last two terms are what dampers (D) and springs and stops (s, their joint forces) take over.
    """

    H: Array
    C: Array
    g: Array
    D: Array
    s: Array

    def forces(self, v: Array, a: Array) -> Array:
        """τ for velocities and accelerations."""
        motion = self.H @ a + np.einsum("ijk,j,k->i", self.C, v, v)
        return motion + self.g + self.D @ v - self.s


def closed_form(model: Model, q: ArrayLike, t: float = 0.0) -> ClosedForm:
    """Coefficients of the closed form, from differences of H and of the potential energy.

    C_ijk = ½ (∂H_ij/∂q_k + ∂H_ik/∂q_j − ∂H_jk/∂q_i), Christoffel's symbols. The formula is
    Lagrange's and holds where v = q̇; other joints, and those that time moves, are refused.

    Examples
    --------
    >>> from multibody import Inertia, ModelBuilder, Revolute
    >>> b = ModelBuilder()
    >>> _ = b.add_body("rod", 0, Revolute("y"), inertia=Inertia(1.0, (1, 0, 0)))
    >>> closed_form(b.build(), [0.0]).g.round(9)
    array([-9.81])
    """
    for body in model.bodies:
        if body.joint.nv and (not body.joint.rate_is_velocity or body.joint.is_rheonomic):
            raise ValueError(
                f"closed_form: expected joints with v = q̇ that do not depend on time, received "
                f"{body.joint!r} of body {body.name!r}"
            )
    q = model.check("q", q)
    for body, at in zip(model.bodies, model.q_index):
        for x, (lower, upper, _, damping) in zip(q[at], body.limits):
            if damping and not lower <= x <= upper:
                raise ValueError(
                    f"closed_form: expected forces that are linear in v, received a damped stop "
                    f"that body {body.name!r} touches at {x:.6g}, and stops do not pull; choose "
                    "another position"
                )

    def potential(x: Array) -> Array:
        w = base_coordinates(model, x, None, t)
        energy = 0.0
        for X, body in zip(w.X, model.bodies):
            m, h = body.inertia.mass, body.inertia.moment
            origin = in_base(X, np.zeros(3))
            energy -= model.gravity @ (m * origin + X[:3, :3].T @ h)
        return np.array(energy)

    dH = np.empty((model.nv, model.nv, model.nv))
    g = np.empty(model.nv)
    for k, direction in enumerate(np.eye(model.nv)):
        dH[:, :, k] = slope(lambda h, d=direction: inertia_by_definition(model, q + h * d, t))  # type: ignore[misc]
        g[k] = slope(lambda h, d=direction: potential(q + h * d))  # type: ignore[misc]
    C = 0.5 * (dH + dH.transpose(0, 2, 1) - dH.transpose(2, 1, 0))

    def elements(v: Array) -> Array:
        w = base_coordinates(model, q, v, t)
        tau, pulls = element_forces(model, q, v, t, seen=w)
        return tau + sum(w.jacobian(i).T @ pulls[i] for i in range(model.n_bodies))

    at_rest = elements(np.zeros(model.nv))  # the forces of dampers are linear in v
    D = np.array([at_rest - elements(v) for v in np.eye(model.nv)]).reshape(2 * (model.nv,)).T
    return ClosedForm(inertia_by_definition(model, q, t), C, g, D, at_rest)


def coriolis_matrix(model: Model, q: ArrayLike, v: ArrayLike) -> Array:
    """C(q, v) with C v the Coriolis and centrifugal forces, and Ḣ − 2C skew.

    C = Σ_k J_kᵀ (I_k J̇_k + v_k ×* I_k J_k) in base coordinates. The rates of S in its own frame
    are found by differences where S is not constant; joints must not depend on time.
    """
    q, v, _ = numbers(model, q, v, None, "a")
    w = base_coordinates(model, q, v)
    rates: list[Array] = []
    for i, (body, at_q, at_v) in enumerate(zip(model.bodies, model.q_index, model.v_index)):
        rate = cross_motion(w.v[i]) @ w.S[i]
        if not body.joint.units or body.reverse:
            q_dot = body.joint.position_rate(q[at_q], v[at_v])

            def freedoms(h: float, body: Body = body, at: slice = at_q, d: Array = q_dot) -> Array:
                return body_joint(body, q[at] + h * d, np.zeros(body.joint.nv), 0.0)[1]

            rate = rate + np.linalg.solve(w.X[i], slope(freedoms))
        rates.append(rate)
    C = np.zeros((model.nv, model.nv))
    for k in range(model.n_bodies):
        J, J_dot = w.jacobian(k), np.zeros((6, model.nv))
        for j in w.support(k):
            J_dot[:, model.v_index[j]] = rates[j]
        I = w.inertia[k]
        C += J.T @ (I @ J_dot + cross_force(w.v[k]) @ I @ J)
    return C
