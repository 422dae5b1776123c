"""Floating bases: satellites, walkers, anything not fixed to the ground (book, §9.3–9.5).

A model whose first body hangs on a `Free` joint, with everything else on that body, can be treated
as an ordinary tree. The algorithms here do without the joint: the first body is the base, numbered
0 as in the book, its acceleration a₀ is an unknown, and all is in coordinates that move with it.

    [ I₀^c  F ] [ a₀ ]   [ p₀^c ]   [ 0 ]
    [ Fᵀ    H ] [ q̈  ] + [ C    ] = [ τ ]            (Eq 9.13)

q, v and results are those of the model with its `Free` joint, so the two ways can be compared
number by number: the six velocities of that joint are v₀ in body coordinates, and because
v₀ × v₀ = 0 their derivatives are the *spatial* acceleration a₀. Springs, dampers and stops of the
model act as they do in `FD` and `ID`.

Loops are kept closed by :func:`floating_forward_dynamics`, as by `FD`. The other functions say what
holds for the tree, as `crba` and `ID` do; where a loop holds the mechanism to the ground, its base
does not give way freely, and inverse dynamics and Jacobian are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...checks import Array, ArrayLike, one_of
from ..loops.response import loop_response, loops_to_the_ground
from .base_view import ForcesLike, applied_forces, body_joint, cross_force, cross_motion

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "FloatingEquation",
    "FloatingMotion",
    "floating_equation",
    "floating_forward_dynamics",
    "floating_inverse_dynamics",
    "floating_jacobian",
]


class FloatingMotion(NamedTuple):
    """Acceleration of the base (spatial, in its coordinates) and of the joints."""

    base: Array
    joints: Array

    @property
    def array(self) -> Array:
        """Both, as `FD` returns them for the model with a `Free` joint."""
        return np.concatenate([self.base, self.joints])


class FloatingEquation(NamedTuple):
    """Blocks of Eq 9.13, in floating-base coordinates; p and C contain gravity and springs."""

    I_c: Array
    F: Array
    H: Array
    p_c: Array
    C: Array

    @property
    def H_fl(self) -> Array:
        """H^fl = H − Fᵀ (I₀^c)⁻¹ F: inertia of the joints when the base gives way (Eq 9.15)."""
        return self.H - self.F.T @ np.linalg.solve(self.I_c, self.F)

    @property
    def C_fl(self) -> Array:
        """C^fl = C − Fᵀ (I₀^c)⁻¹ p₀^c (Eq 9.16), so that H^fl q̈ + C^fl = τ (Eq 9.14)."""
        return self.C - self.F.T @ np.linalg.solve(self.I_c, self.p_c)

    @property
    def matrix(self) -> Array:
        """The matrix of Eq 9.13: the inertia matrix of the model with its `Free` joint."""
        return np.block([[self.I_c, self.F], [self.F.T, self.H]])

    def momentum(self, v: Array) -> Array:
        """Spatial momentum I₀^c v₀ + F q̇ (Ex 9.3), in base coordinates, v as in the model."""
        return self.I_c @ v[:6] + self.F @ v[6:]

    def kinetic_energy(self, v: Array) -> float:
        """½ vᵀ [I₀^c F; Fᵀ H] v (Ex 9.3)."""
        return 0.5 * float(v @ self.matrix @ v)


class _Bodies(NamedTuple):
    """What the recursions need, entry 0 for the base; in body coordinates."""

    X: list[Array]  # from the parent
    X_0: list[Array]  # from the floating base
    S: list[Array]
    v: list[Array]
    c: list[Array]  # c_J + v_i × v_J
    I: list[Array]
    p: list[Array]  # v ×* I v − f^x
    gravity: Array  # ⁰a_g
    elements: Array  # forces of springs, dampers and stops at the joints, without the base


def _check(model: Model) -> None:
    from ...joints import Free

    first = model.bodies[0]
    if not isinstance(first.joint, Free) or first.reverse:
        raise ValueError(
            f"floating base: expected a first body on a Free joint that is not reversed, received "
            f"{first.joint!r}; use FD and ID for trees on the ground"
        )
    for body in model.bodies[1:]:
        if body.parent == 0:
            raise ValueError(
                f"floating base: expected all bodies to hang on {first.name!r}, received "
                f"{body.name!r} on the ground"
            )


def _check_afloat(model: Model, where: str) -> None:
    held = loops_to_the_ground(model)
    if held:
        raise ValueError(
            f"{where}: expected a mechanism that floats, received one that the loop {held[0]!r} "
            "holds to the ground, so that its base does not give way freely; use ID, body_jacobian "
            "and closed_loop_inverse_dynamics"
        )


def _bodies(model: Model, q: Array, v: Array, f_ext: ForcesLike, t: float) -> _Bodies:
    elements, known = applied_forces(model, q, v, None, f_ext, t)
    out = _Bodies([], [], [], [], [], [], [], np.zeros(6), elements[6:])
    X_ref = np.eye(6)
    for i, body in enumerate(model.bodies):
        at_q, at_v = model.q_index[i], model.v_index[i]
        X, S, v_J, c_J = body_joint(body, q[at_q], v[at_v], t)
        if i == 0:
            X_ref = X
            out.gravity[:] = X_ref @ np.concatenate([np.zeros(3), model.gravity])
            X, v_i, c = np.eye(6), v_J, np.zeros(6)
            out.X_0.append(np.eye(6))
        else:
            parent = body.parent - 1
            v_i = X @ out.v[parent] + v_J
            c = c_J + cross_motion(v_i) @ v_J
            out.X_0.append(X @ out.X_0[parent])
        I = body.inertia.matrix()
        # f^x comes in the coordinates of the ground: first to the base's, then to the body's.
        f = np.linalg.solve((out.X_0[i] @ X_ref).T, known[i])
        out.X.append(X)
        out.S.append(S)
        out.v.append(v_i)
        out.c.append(c)
        out.I.append(I)
        out.p.append(cross_force(v_i) @ I @ v_i - f)
    out.p[0] -= elements[:6]  # S = 1: dampers of the Free joint
    return out


def _joint_vector(model: Model, name: str, value: ArrayLike | None) -> Array:
    """Vector of the joints without the base: nv − 6 numbers; zeros for None."""
    n = model.nv - 6
    if value is None:
        return np.zeros(n)
    array = np.atleast_1d(np.asarray(value, dtype=float))
    if array.shape != (n,):
        raise ValueError(
            f"{name}: expected {n} numbers, one for each joint variable without the six of the "
            f"base, received shape {array.shape}"
        )
    return array


def _places(model: Model) -> list[slice]:
    """Places of the joints' variables when the six of the base are not counted."""
    return [slice(at.start - 6, at.stop - 6) for at in model.v_index]


# ---------------------------------------------------------------------- the equation


def floating_equation(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> FloatingEquation:
    """Coefficients of Eq 9.13 by composite bodies and Newton–Euler (first half of Table 9.5).

    They are those of the tree: with loops, the multipliers' Kᵀλ are added to the right-hand side.

    Examples
    --------
    A reaction wheel of 1 kg m² in a satellite of 3 kg m²: the motor feels 3/4 kg m².

    >>> from multibody import Free, Inertia, ModelBuilder, Revolute
    >>> b = ModelBuilder()
    >>> _ = b.add_body("satellite", 0, Free(), inertia=Inertia(5.0, (0, 0, 0), (3, 3, 3)))
    >>> _ = b.add_body("wheel", "satellite", Revolute(), inertia=Inertia(1.0, I_com=(1, 1, 1)))
    >>> model = b.build()
    >>> floating_equation(model, model.neutral(), np.zeros(7)).H_fl
    array([[0.75]])
    """
    _check(model)
    q, v = model.check("q", q), model.check("v", v)
    w = _bodies(model, q, v, f_ext, t)
    n, nb, at = model.nv - 6, model.n_bodies, _places(model)
    composite = [I.copy() for I in w.I]
    a_vp, f = [-w.gravity], []
    for i in range(nb):
        if i:
            a_vp.append(w.X[i] @ a_vp[model.bodies[i].parent - 1] + w.c[i])
        f.append(w.I[i] @ a_vp[i] + w.p[i])
    H, F, C = np.zeros((n, n)), np.zeros((6, n)), np.zeros(n)
    for i in range(nb - 1, 0, -1):
        C[at[i]] = w.S[i].T @ f[i] - w.elements[at[i]]
        parent = model.bodies[i].parent - 1
        f[parent] = f[parent] + w.X[i].T @ f[i]
        composite[parent] += w.X[i].T @ composite[i] @ w.X[i]
    for i in range(nb - 1, 0, -1):
        body = model.bodies[i]
        force = composite[i] @ w.S[i]
        H[at[i], at[i]] = w.S[i].T @ force + np.diag(body.armature)
        j = i
        while j > 0:
            force = w.X[j].T @ force
            j = model.bodies[j].parent - 1
            if j > 0:
                H[at[i], at[j]] = force.T @ w.S[j]
                H[at[j], at[i]] = w.S[j].T @ force
        F[:, at[i]] = force
    return FloatingEquation(composite[0], F, H, f[0], C)


# ---------------------------------------------------------------------- forward dynamics


def floating_forward_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    form: str = "aba",
) -> FloatingMotion:
    """Forward dynamics with a floating base.

    Parameters
    ----------
    model
        First body on a `Free` joint, all others on it; loops, if there are any, are kept closed.
    q, v
        As for `FD`.
    tau
        Joint forces, nv − 6 numbers.
    f_ext
        External forces in ground coordinates: an array (n_bodies, 6), or a dictionary by names of
        bodies.
    form
        "aba" (Table 9.4) or "crba" (Table 9.5).

    Examples
    --------
    In free fall joints do not feel gravity:

    >>> from multibody.mechanisms.random import random_tree
    >>> model = random_tree(4, 3, "revolute", root="free")
    >>> found = floating_forward_dynamics(model, model.random(0), np.zeros(model.nv))
    >>> np.abs(found.joints).max() < 1e-12
    np.True_
    """
    one_of(form, "form", ("aba", "crba"))
    _check(model)
    q, v = model.check("q", q), model.check("v", v)
    tau = _joint_vector(model, "tau", tau)
    if form == "aba":
        found = _articulated(model, _bodies(model, q, v, f_ext, t), tau)
        return _with_loops(model, q, v, found, t) if model.loops else found
    e = floating_equation(model, q, v, f_ext, t=t)
    joints = np.linalg.solve(e.H_fl, tau - e.C_fl) if tau.size else tau
    found = FloatingMotion(-np.linalg.solve(e.I_c, e.p_c + e.F @ joints), joints)
    return _with_loops(model, q, v, found, t) if model.loops else found


def _with_loops(model: Model, q: Array, v: Array, free: FloatingMotion, t: float) -> FloatingMotion:
    """Accelerations with the loops kept closed, from those with the loops cut open."""
    H = floating_equation(model, q, v, t=t).matrix
    a = loop_response(model, q, v, H, t).accelerations(H @ free.array)
    return FloatingMotion(a[:6], a[6:])


def _articulated(model: Model, w: _Bodies, tau: Array) -> FloatingMotion:
    """Table 9.4: I₀^A a₀ + p₀^A = 0, gravity added at the very end."""
    nb, at = model.n_bodies, _places(model)
    I_A = [I.copy() for I in w.I]
    p_A = [p.copy() for p in w.p]
    U, D, u = [np.zeros((6, 0))] * nb, [np.zeros((0, 0))] * nb, [np.zeros(0)] * nb
    for i in range(nb - 1, 0, -1):
        body, S = model.bodies[i], w.S[i]
        U[i] = I_A[i] @ S
        D[i] = S.T @ U[i] + np.diag(body.armature)
        u[i] = tau[at[i]] + w.elements[at[i]] - S.T @ p_A[i]
        gain = np.linalg.solve(D[i], U[i].T)
        I_a = I_A[i] - U[i] @ gain
        p_a = p_A[i] + I_a @ w.c[i] + gain.T @ u[i]
        parent = body.parent - 1
        I_A[parent] += w.X[i].T @ I_a @ w.X[i]
        p_A[parent] += w.X[i].T @ p_a
    a = [-np.linalg.solve(I_A[0], p_A[0])]
    joints = np.zeros(model.nv - 6)
    for i in range(1, nb):
        free = w.X[i] @ a[model.bodies[i].parent - 1] + w.c[i]
        joints[at[i]] = np.linalg.solve(D[i], u[i] - U[i].T @ free)
        a.append(free + w.S[i] @ joints[at[i]])
    return FloatingMotion(a[0] + w.gravity, joints)


# ---------------------------------------------------------------------- inverse dynamics


def floating_inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> tuple[Array, Array]:
    """Joint forces for given joint accelerations, while the base moves as it must (Table 9.6).

    Parameters
    ----------
    a
        Joint accelerations, nv − 6 numbers; with loops, ones that these allow.

    Returns
    -------
    a_0, tau
        Spatial acceleration of the base in its coordinates; joint forces, nv − 6 numbers. Loops
        inside the mechanism do not change a_0; the forces are those of the tree, as of `ID`.

    Raises
    ------
    ValueError
        If a loop holds the mechanism to the ground.
    """
    _check(model)
    _check_afloat(model, "floating_inverse_dynamics")
    q, v = model.check("q", q), model.check("v", v)
    a = _joint_vector(model, "a", a)
    w = _bodies(model, q, v, f_ext, t)
    nb, at = model.n_bodies, _places(model)
    a_r, I_c = [-w.gravity], [I.copy() for I in w.I]
    for i in range(1, nb):
        a_r.append(w.X[i] @ a_r[model.bodies[i].parent - 1] + w.S[i] @ a[at[i]] + w.c[i])
    p_c = [I @ a_i + p for I, a_i, p in zip(w.I, a_r, w.p)]
    for i in range(nb - 1, 0, -1):
        parent = model.bodies[i].parent - 1
        I_c[parent] += w.X[i].T @ I_c[i] @ w.X[i]
        p_c[parent] = p_c[parent] + w.X[i].T @ p_c[i]
    # a_r counts from −⁰a_g, so this is the true acceleration: gravity is in p_c already.
    a_0 = -np.linalg.solve(I_c[0], p_c[0])
    tau = np.empty(model.nv - 6)
    for i in range(1, nb):
        tau[at[i]] = w.S[i].T @ (I_c[i] @ (w.X_0[i] @ a_0) + p_c[i])
        tau[at[i]] += model.bodies[i].armature * a[at[i]] - w.elements[at[i]]
    return a_0, tau


# ---------------------------------------------------------------------- Jacobian


def floating_jacobian(model: Model, q: ArrayLike, body: str | int, *, t: float = 0.0) -> Array:
    """J_i^fl = J_i − ⁱX₀ (I₀^c)⁻¹ F (Ex 9.4): what joints do to a body when the base gives way.

    J^fl q̇ is the velocity of the body, in its coordinates, while the momentum of the whole is zero;
    with loops inside the mechanism, for those q̇ that they allow.

    Examples
    --------
    >>> from multibody import Free, Inertia, ModelBuilder, Prismatic
    >>> b = ModelBuilder()
    >>> _ = b.add_body("boat", 0, Free(), inertia=Inertia(3.0, (0, 0, 0), (1, 1, 1)))
    >>> _ = b.add_body("man", "boat", Prismatic("x"), inertia=Inertia(1.0))
    >>> model = b.build()
    >>> floating_jacobian(model, model.neutral(), "boat")[3]
    array([-0.25])
    """
    _check(model)
    _check_afloat(model, "floating_jacobian")
    e = floating_equation(model, q, np.zeros(model.nv), t=t)
    w = _bodies(model, model.check("q", q), np.zeros(model.nv), None, t)
    i = model.number(body) - 1
    if i < 0:
        raise ValueError("body: expected a moving body, received the ground")
    J = -w.X_0[i] @ np.linalg.solve(e.I_c, e.F)
    at = _places(model)
    j, X = i, np.eye(6)
    while j > 0:
        J[:, at[j]] += X @ w.S[j]
        X = X @ w.X[j]
        j = model.bodies[j].parent - 1
    return J
