"""The same dynamics computed in other ways, to be read, and to check the fast algorithms by.

Nothing here is quick. Everything is plain NumPy on 6×6 matrices, as near to the printed equations
as possible, and shares with the kernels only the joints' laws and the numbers of the model:

- :func:`base_coordinates`: all bodies and joints seen from the base;
- :func:`rnea_base`: the recursive Newton–Euler equations without coordinates (book, Eq 5.7–5.11),
  evaluated in base coordinates; :func:`luh_walker_paul`: their original three-dimensional form;
- :func:`inertia_by_definition`, :func:`inertia_by_columns`, :func:`inertia_column`: H from its
  definition, from inverse dynamics, and from its physical meaning (Eq 6.11, 6.3, 6.21–6.25);
- :func:`closed_form`: H, Christoffel symbols and gravity of the closed form (Eq 5.6), by
  differences of the energies; :func:`coriolis_matrix`: a C(q, v) with Ḣ − 2C skew;
- :func:`element_forces`: springs, dampers and stops of a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._checks import Array, ArrayLike, real_array
from ..rotations import skew

if TYPE_CHECKING:
    from ..model import Body, Model

__all__ = [
    "BaseCoordinates",
    "ClosedForm",
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
    "rnea_base",
]


# ---------------------------------------------------------------------- small tools


def cross_motion(v: Array) -> Array:
    """6×6 matrix v× on motions (Eq 2.31)."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = skew(v[:3])
    out[3:, :3] = skew(v[3:])
    return out


def cross_force(v: Array) -> Array:
    """6×6 matrix v×* on forces (Eq 2.32)."""
    return -cross_motion(v).T


def slope(g: Callable[[float], Array], h: float = 1e-3) -> Array:
    """g′(0) by central differences, extrapolated twice: error O(h⁶), rounding about 1e-12."""
    rows = [(np.asarray(g(h / 2**k)) - np.asarray(g(-h / 2**k))) / (2 * h / 2**k) for k in range(3)]
    once = [(4 * fine - coarse) / 3 for coarse, fine in pairwise(rows)]
    return np.asarray((16 * once[1] - once[0]) / 15)


def body_joint(body: Body, q: Array, v: Array, t: float) -> tuple[Array, Array, Array, Array]:
    """X_λ, S, v_J and c_J of a body in its own coordinates, reversal included (Table 4.2)."""
    move = body.joint.motion(q, v, t)
    X_J, S, v_J, c_J = move.X.matrix(), move.S, move.v, move.c
    if body.reverse:
        X_J = move.X.inverse().matrix()
        S, v_J, c_J = -X_J @ S, -X_J @ v_J, -X_J @ c_J
    return X_J @ body.placement.matrix(), S, v_J, c_J


def external_forces(model: Model, f_ext: ArrayLike | None) -> Array:
    """External forces as an array (n_bodies, 6) in base coordinates."""
    if f_ext is None:
        return np.zeros((model.n_bodies, 6))
    forces = real_array(f_ext, "f_ext").astype(float)
    if forces.shape != (model.n_bodies, 6):
        raise ValueError(
            f"f_ext: expected a row of 6 numbers for each of {model.n_bodies} bodies, received "
            f"shape {forces.shape}"
        )
    return forces


def numbers(
    model: Model, q: ArrayLike, v: ArrayLike | None, third: ArrayLike | None, name: str
) -> tuple[Array, Array, Array]:
    """q, v and one more vector, checked; zeros for None."""
    zero = np.zeros(model.nv)
    return (
        model.check("q", q),
        zero if v is None else model.check("v", v),
        zero if third is None else model.check(name, third),
    )


# ---------------------------------------------------------------------- the base's view


@dataclass(frozen=True)
class BaseCoordinates:
    """Bodies and joints in base coordinates; entry i belongs to body i + 1.

    Attributes
    ----------
    X
        ⁱX₀, from base to body coordinates, 6×6.
    S, c
        Joint freedoms, and c_J + v_i × v_J, the part of a_i − a_λ that is not S v̇.
    v_J, v
        Velocity across the joint, and of the body.
    inertia
        6×6 inertia of the body.
    """

    model: Model
    X: list[Array]
    S: list[Array]
    c: list[Array]
    v_J: list[Array]
    v: list[Array]
    inertia: list[Array]

    def support(self, i: int) -> list[int]:
        """κ(i + 1): joints between the base and the body with entry i, as entries."""
        path = []
        while i >= 0:
            path.append(i)
            i = self.model.bodies[i].parent - 1
        return path[::-1]

    def jacobian(self, i: int) -> Array:
        """J of a body, v_i = J v (+ what time moves), in base coordinates (Eq 4.5)."""
        J = np.zeros((6, self.model.nv))
        for j in self.support(i):
            J[:, self.model.v_index[j]] = self.S[j]
        return J


def base_coordinates(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, t: float = 0.0
) -> BaseCoordinates:
    """Everything about the positions and velocities of a model, in base coordinates.

    Examples
    --------
    >>> from multibody import Inertia, ModelBuilder, Revolute
    >>> b = ModelBuilder()
    >>> _ = b.add_body("rod", 0, Revolute(), (1, 0, 0), Inertia(1.0, (1, 0, 0)))
    >>> base_coordinates(b.build(), [0.0], [2.0]).v[0]
    array([ 0.,  0.,  2.,  0., -2.,  0.])
    """
    q, v, _ = numbers(model, q, v, None, "a")
    out = BaseCoordinates(model, [], [], [], [], [], [])
    for body, at_q, at_v in zip(model.bodies, model.q_index, model.v_index):
        X_parent, S, v_J, c_J = body_joint(body, q[at_q], v[at_v], t)
        parent = body.parent - 1
        X = X_parent @ out.X[parent] if body.parent else X_parent
        back = np.linalg.inv(X)
        v_J = back @ v_J
        v_i = out.v[parent] + v_J if body.parent else v_J
        out.X.append(X)
        out.S.append(back @ S)
        out.v_J.append(v_J)
        out.v.append(v_i)
        out.c.append(back @ c_J + cross_motion(v_i) @ v_J)
        I = X.T @ body.inertia.matrix() @ X
        out.inertia.append((I + I.T) / 2)
    return out


# ---------------------------------------------------------------------- inverse dynamics


def rnea_base(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: ArrayLike | None = None,
    t: float = 0.0,
) -> Array:
    """Inverse dynamics in base coordinates (Eq 5.7–5.11); joint elements are not considered.

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
    known = external_forces(model, f_ext)
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
        tau[at] = w.S[i].T @ forces[i] + body.armature * a[at]
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
    from ..joints import Revolute

    q, v, a = numbers(model, q, v, a, "a")
    for i, body in enumerate(model.bodies):
        if not isinstance(body.joint, Revolute) or body.parent != i or body.reverse:
            raise ValueError(
                f"luh_walker_paul: expected an unbranched chain of revolute joints that are not "
                f"reversed, received body {body.name!r} with {body.joint!r} on body {body.parent}"
            )
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
        F.append(m * at_centre)
        N.append(I_c @ alpha + np.cross(omega, I_c @ omega) + np.cross(centre, F[i]))
        rotations.append(E)
        shifts.append(r)
    tau = np.empty(model.nv)
    f, n = np.zeros(3), np.zeros(3)  # passed on by the next joint, in this body's coordinates
    for i in range(model.n_bodies - 1, -1, -1):
        f, n = f + F[i], n + N[i]
        body = model.bodies[i]
        tau[i] = body.joint.axis @ n + body.armature[0] * a[i]
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
    """τ_i = Σ_j H_ij q̈_j + Σ_jk C_ijk q̇_j q̇_k + g_i (Eq 5.6)."""

    H: Array
    C: Array
    g: Array

    def forces(self, v: Array, a: Array) -> Array:
        """τ for velocities and accelerations."""
        return self.H @ a + np.einsum("ijk,j,k->i", self.C, v, v) + self.g


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

    def potential(x: Array) -> Array:
        w = base_coordinates(model, x, None, t)
        energy = 0.0
        for X, body in zip(w.X, model.bodies):
            m, h = body.inertia.mass, body.inertia.moment
            origin = _in_base(X, np.zeros(3))
            energy -= model.gravity @ (m * origin + X[:3, :3].T @ h)
        return np.array(energy)

    dH = np.empty((model.nv, model.nv, model.nv))
    g = np.empty(model.nv)
    for k, direction in enumerate(np.eye(model.nv)):
        dH[:, :, k] = slope(lambda h, d=direction: inertia_by_definition(model, q + h * d, t))  # type: ignore[misc]
        g[k] = slope(lambda h, d=direction: potential(q + h * d))  # type: ignore[misc]
    C = 0.5 * (dH + dH.transpose(0, 2, 1) - dH.transpose(2, 1, 0))
    return ClosedForm(inertia_by_definition(model, q, t), C, g)


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


# ---------------------------------------------------------------------- force elements


def element_forces(
    model: Model, q: ArrayLike, v: ArrayLike, t: float = 0.0, *, seen: BaseCoordinates | None = None
) -> tuple[Array, Array]:
    """Joint forces, and forces on bodies in base coordinates, of all springs, dampers and stops.

    `seen` saves time if the base coordinates at q, v and t are known already.
    """
    q, v, _ = numbers(model, q, v, None, "a")
    w = base_coordinates(model, q, v, t) if seen is None else seen
    tau, forces = np.zeros(model.nv), np.zeros((model.n_bodies, 6))
    for body, at_q, at_v in zip(model.bodies, model.q_index, model.v_index):
        tau[at_v] = -body.damping * v[at_v]
        if not body.joint.rate_is_velocity:
            continue
        for k in range(body.joint.nv):
            x, speed = q[at_q.start + k], v[at_v.start + k]
            lower, upper, stiffness, damping = body.limits[k]
            pull = -body.stiffness[k] * (x - body.rest[k])
            if not lower <= x <= upper:
                pull += stiffness * (min(max(x, lower), upper) - x) - damping * speed
            tau[at_v.start + k] += pull
    for spring in model.springs:
        ends = ((spring.body_a, spring.point_a), (spring.body_b, spring.point_b))
        places, speeds = [], []
        for number, point in ends:
            twist = np.zeros(6) if number == 0 else w.v[number - 1]
            place = point if number == 0 else _in_base(w.X[number - 1], point)
            places.append(place)
            speeds.append(twist[3:] + np.cross(twist[:3], place))
        line = places[1] - places[0]
        length = float(np.linalg.norm(line))
        along = line / length
        pull = spring.stiffness * (length - spring.rest)
        pull += spring.damping * float(along @ (speeds[1] - speeds[0]))
        for (number, _), place, force in zip(ends, places, (pull * along, -pull * along)):
            if number:
                forces[number - 1] += np.concatenate([np.cross(place, force), force])
    return tau, forces


def _in_base(X: Array, point: Array) -> Array:
    """Base coordinates of a point of the body with ⁱX₀ = X = [E 0; −E r× E]."""
    E = X[:3, :3]
    cross = -E.T @ X[3:, :3]
    return np.array([cross[2, 1], cross[0, 2], cross[1, 0]]) + E.T @ point
