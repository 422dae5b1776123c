"""Tables 9.4 to 9.6 of the book word by word, in plain NumPy: one floating root, no loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multibody.dynamics.book.base_view import (
    applied_forces,
    body_joint,
    cross_force,
    cross_motion,
)


class _Bodies(NamedTuple):
    """What the recursions need, entry 0 for the base; in body coordinates."""

    X: list[np.ndarray]  # from the parent
    X_0: list[np.ndarray]  # from the floating base
    S: list[np.ndarray]
    v: list[np.ndarray]
    c: list[np.ndarray]  # c_J + v_i × v_J
    I: list[np.ndarray]
    p: list[np.ndarray]  # v ×* I v − f^x
    gravity: np.ndarray  # ⁰a_g
    elements: np.ndarray  # forces of springs, dampers and stops at the joints, without the base


def _bodies(model, q, v, f_ext, t):
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


def _places(model):
    """Places of the joints' variables when the six of the base are not counted."""
    return [slice(at.start - 6, at.stop - 6) for at in model.v_index]


def equation(model, q, v, f_ext, t):
    """I_c, F, H, p_c, C of Eq 9.13 (first half of Table 9.5)."""
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
    return composite[0], F, H, f[0], C


def articulated(model, q, v, tau, f_ext, t):
    """Table 9.4: I₀^A a₀ + p₀^A = 0, gravity added at the very end."""
    w = _bodies(model, q, v, f_ext, t)
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
    return np.concatenate([a[0] + w.gravity, joints])


def inverse(model, q, v, a, f_ext, t):
    """Table 9.6."""
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
