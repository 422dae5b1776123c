"""Articulated bodies as seen from handles: what a force does to some body of a mechanism (ch 7).

A *handle* is a body at which a mechanism is touched. Force and acceleration there obey

    f = I^A a + p^A        (I^A exists if the handle has six freedoms)
    a = Φ^A f + b^A        (always exists; several handles are stacked)

and both descriptions can be found in two ways:

- by *projection* of the equation of motion, Φ^A = J H⁻¹ Jᵀ (§7.2.1): :func:`handle_dynamics` for
  any handles of a mechanism on its base, with loops if it has any; :func:`subtree_dynamics` for a
  tree that is cut off;
- by *assembly*, joining two articulated bodies at a time (§7.2.2): :func:`assemble` in the
  standard form, :func:`assemble_constraint` and :func:`assemble_inverse` in the two alternatives
  of §7.4, :func:`assemble_two_handles` for bodies with two handles (§7.5), the step of
  divide-and-conquer algorithms. :func:`articulated_bodies` folds them over a tree,
  :func:`accelerations_by_assembly` is forward dynamics by them.

Operational-space inertia is the same thing: :func:`operational_space_inertia`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...algebra.inertia import ArticulatedInertia
from ...algebra.subspaces import active_forces, constraint_forces
from ...checks import Array, ArrayLike, exact_array, one_of
from ..loops.response import loop_response
from .base_view import (
    ForcesLike,
    applied_forces,
    base_coordinates,
    body_joint,
    cross_force,
    cross_motion,
    numbers,
)
from .oracles import inertia_by_definition, rnea_base

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "ForwardForm",
    "InverseForm",
    "accelerations_by_assembly",
    "articulated_bodies",
    "assemble",
    "assemble_constraint",
    "assemble_inverse",
    "assemble_two_handles",
    "handle_dynamics",
    "operational_space_inertia",
    "subtree_dynamics",
]

#: Singular values of Φ below this part of the largest count as zero: the handle lacks a freedom.
RANK_TOLERANCE = 1e-10


class ForwardForm(NamedTuple):
    """f = I a + p: articulated inertia (6×6, or 6k×6k for k handles) and bias force."""

    I: Array
    p: Array

    def inverse(self) -> InverseForm:
        """a = Φ f + b with Φ = I⁻¹ and b = −Φ p."""
        Phi = _symmetric(np.linalg.inv(self.I))
        return InverseForm(Phi, -Phi @ self.p)

    @property
    def inertia(self) -> ArticulatedInertia:
        """The inertia as a type that transforms to other frames; for one handle."""
        return ArticulatedInertia.from_matrix(self.I)


class InverseForm(NamedTuple):
    """a = Φ f + b: inverse articulated inertia and bias acceleration."""

    Phi: Array
    b: Array

    @property
    def rank(self) -> int:
        """Freedoms that the handles have together."""
        values = np.linalg.eigvalsh(self.Phi)
        return int(np.sum(values > RANK_TOLERANCE * max(values[-1], 0.0)))

    def forward(self) -> ForwardForm:
        """f = I a + p; raises if the handles lack a freedom, so that no I exists."""
        if self.rank < len(self.b):
            raise ValueError(
                f"forward: expected handles with {len(self.b)} freedoms, received {self.rank}; "
                "an articulated inertia does not exist here, use the inverse form"
            )
        I = _symmetric(np.linalg.inv(self.Phi))
        return ForwardForm(I, -I @ self.b)


def _symmetric(A: Array) -> Array:
    return (A + A.T) / 2


# ---------------------------------------------------------------------- projection (§7.2.1)


def handle_dynamics(
    model: Model,
    q: ArrayLike,
    handles: str | int | Sequence[str | int],
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> InverseForm:
    """Φ^A and b^A of one or several bodies of a mechanism, by projection (Eq 7.5–7.14).

    Φ^A = J H⁻¹ Jᵀ and b^A = J̇ v + J H⁻¹ (τ − C), with the Jacobians of the handles stacked. Loops
    are kept closed: for H⁻¹ stands what they leave of it, Ψ of :func:`loop_response`, and b^A
    contains the accelerations that they ask for. (Gears are a loop-closure function beside the
    model, and not seen here.)

    Parameters
    ----------
    model, q, v, tau, f_ext, t
        As for `FD`. Gravity, external forces and the model's springs, dampers and stops are part
        of b^A.
    handles
        A body, or several. Each has six rows, in the coordinates of that body.

    Examples
    --------
    A pendulum's bob moves in one direction only:

    >>> from multibody import Inertia, ModelBuilder, Revolute
    >>> b = ModelBuilder()
    >>> _ = b.add_body("rod", 0, Revolute("y"), inertia=Inertia(2.0, (1, 0, 0)))
    >>> found = handle_dynamics(b.build(), [0.0], "rod")
    >>> found.rank, found.Phi[1, 1].round(12), found.b[1].round(12)
    (1, np.float64(0.5), np.float64(9.81))
    """
    q, v_all, tau_all = numbers(model, q, v, tau, "tau")
    J, bias = _stacked(model, q, v_all, handles, t)
    H = inertia_by_definition(model, q, t)
    C = rnea_base(model, q, v_all, np.zeros(model.nv), f_ext, t)
    found = loop_response(model, q, v_all, H, t)
    return InverseForm(_symmetric(found.felt(J)), bias + J @ found.accelerations(tau_all - C))


def _stacked(
    model: Model, q: Array, v: Array, handles: str | int | Sequence[str | int], t: float
) -> tuple[Array, Array]:
    """Jacobians of the handles and J̇ v, each in its body's coordinates."""
    several = [handles] if isinstance(handles, str | int | np.integer) else list(handles)
    if not several:
        raise ValueError("handles: expected at least one body, received none")
    w = base_coordinates(model, q, v, t)
    rows, biases = [np.zeros((0, model.nv))], [np.zeros(0)]
    for handle in several:
        i = model.number(handle) - 1
        if i < 0:
            raise ValueError("handles: expected moving bodies, received the base")
        rows.append(w.X[i] @ w.jacobian(i))
        biases.append(w.X[i] @ sum((w.c[j] for j in w.support(i)), np.zeros(6)))
    return np.vstack(rows), np.concatenate(biases)


def operational_space_inertia(
    model: Model,
    q: ArrayLike,
    body: str | int,
    point: ArrayLike | None = None,
    *,
    t: float = 0.0,
) -> Array:
    """Inertia felt at a body, 6×6 in its coordinates, or at one of its points, 3×3 in base axes.

    Λ = (J H⁻¹ Jᵀ)⁻¹, with Ψ of :func:`loop_response` for H⁻¹ where there are loops. At a point it
    is the apparent mass in each direction.

    Raises
    ------
    ValueError
        Where the body or point cannot move in all directions: no force makes it, so Λ is infinite.

    Examples
    --------
    >>> from multibody import Free, Inertia, ModelBuilder
    >>> b = ModelBuilder()
    >>> _ = b.add_body("stone", 0, Free(), inertia=Inertia(2.0, (0, 0, 0), (1, 1, 1)))
    >>> operational_space_inertia(b.build(), b.build().neutral(), "stone", (0, 0, 0)).diagonal()
    array([2., 2., 2.])
    """
    q, v, _ = numbers(model, q, None, None, "a")
    i = model.number(body) - 1
    J, _ = _stacked(model, q, v, body, t)
    if point is not None:
        R = base_coordinates(model, q, None, t).X[i][:3, :3].T
        p = exact_array(point, "point", (3,))
        J = R @ (J[3:] - np.cross(p, J[:3], axisb=0, axisc=0))
    found = loop_response(model, q, v, inertia_by_definition(model, q, t), t)
    return InverseForm(_symmetric(found.felt(J)), np.zeros(len(J))).forward().I


def subtree_dynamics(
    model: Model,
    q: ArrayLike,
    body: str | int,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> ForwardForm:
    """I^A and p^A of a body and all that it carries, cut off from its parent, by projection.

    This is what the articulated-body algorithm computes by assembly. In body coordinates;
    velocities are those in the mechanism, and so are the forces of springs, dampers and stops;
    gravity is left out, as in Table 7.1.

    Raises
    ------
    ValueError
        If a loop holds one of these bodies: what it does there depends on the rest of the
        mechanism, or has to be assembled with the loop's constraint.
    """
    q, v_all, _ = numbers(model, q, v, None, "tau")
    w = base_coordinates(model, q, v_all, t)
    tau_all, known = applied_forces(model, q, v_all, tau, f_ext, t, w)
    root = model.number(body) - 1
    if root < 0:
        raise ValueError("body: expected a moving body, received the base")
    members = [i for i in range(model.n_bodies) if root in w.support(i)]
    _refuse_loops(model, "subtree_dynamics", members)
    inside = np.concatenate([np.arange(model.nv)[model.v_index[i]] for i in members[1:]] + [[]])
    columns = inside.astype(int)
    n = len(columns)
    # Generalised velocities: six of the handle (S = 1), then those of the joints inside.
    H, C = np.zeros((6 + n, 6 + n)), np.zeros(6 + n)
    for i in members:
        path = [j for j in w.support(i) if j in members and j != root]
        J = np.zeros((6, model.nv))
        for j in path:
            J[:, model.v_index[j]] = w.S[j]
        G = np.hstack([np.eye(6), J[:, columns]])
        bias = sum((w.c[j] for j in path), np.zeros(6))
        I = w.inertia[i]
        H += G.T @ I @ G
        C += G.T @ (I @ bias + cross_force(w.v[i]) @ I @ w.v[i] - known[i])
    armature = np.concatenate([np.zeros(0), *[b.armature for b in model.bodies]])
    H[6:, 6:] += np.diag(armature[columns])
    C[6:] -= tau_all[columns]
    Phi = np.linalg.inv(H)[:6, :6]  # J = [1 0]
    b = -np.linalg.solve(H, C)[:6]
    found = InverseForm(_symmetric(Phi), b).forward()
    X = np.linalg.inv(w.X[root])
    return ForwardForm(_symmetric(X.T @ found.I @ X), X.T @ found.p)


def _refuse_loops(model: Model, where: str, bodies: Iterable[int]) -> None:
    """Raise if a loop holds one of the bodies (counted from 0)."""
    bodies = list(bodies)
    held = {i + 1 for i in bodies}
    for loop in model.loops:
        if held & {loop.predecessor, loop.successor}:
            raise ValueError(
                f"{where}: expected bodies that no loop holds, received a model in which "
                f"{loop.name!r} does; use handle_dynamics, which keeps loops closed"
            )
    columns = [k for i in bodies for k in range(model.v_index[i].start, model.v_index[i].stop)]
    if model.constraints:
        first = model.tree.arrays["loop_at"][len(model.loops)]
        if model.tree.reach[first:, columns].any():
            raise ValueError(
                f"{where}: expected bodies that no constraint holds, received a model with "
                f"{model.constraints[0].name!r}; use handle_dynamics, which keeps constraints"
            )


# ---------------------------------------------------------------------- assembly (§7.2.2, §7.4)


def assemble(
    first: ForwardForm, second: ForwardForm, S: Array, c: Array, tau: Array
) -> ForwardForm:
    """Join two articulated bodies; the handle of the first stays the handle (Eq 7.15–7.25).

    Parameters
    ----------
    first, second
        Handle equations of predecessor and successor, in common coordinates.
    S, c, tau
        Freedoms, bias a₂ − a₁ − S q̈ and force of the joint.

    Notes
    -----
    I^A = I₁ + I₂ − I₂S(SᵀI₂S)⁻¹SᵀI₂ and p^A = p₁ + p₂ + I₂c + I₂S(SᵀI₂S)⁻¹(τ − Sᵀ(p₂ + I₂c)).

    Examples
    --------
    Example 7.1: a cylinder (3 kg) that turns about x and slides along y in a box (2 kg):

    >>> box = ForwardForm(np.diag([1.0, 1, 1, 2, 2, 2]), np.zeros(6))
    >>> cylinder = ForwardForm(np.diag([4.0, 4, 4, 3, 3, 3]), np.zeros(6))
    >>> S = np.eye(6)[:, [0, 4]]
    >>> assemble(box, cylinder, S, np.zeros(6), np.zeros(2)).I.diagonal()
    array([1., 5., 5., 5., 2., 5.])
    """
    U = second.I @ S
    D = S.T @ U
    shifted = second.p + second.I @ c
    z = tau - S.T @ shifted
    solved = np.linalg.solve(D, np.column_stack([U.T, z])) if S.shape[1] else np.zeros((0, 7))
    I = first.I + second.I - U @ solved[:, :6]
    return ForwardForm(_symmetric(I), first.p + shifted + U @ solved[:, 6])


def assemble_constraint(
    first: ForwardForm, second: ForwardForm, T: Array, T_active: Array, c: Array, tau: Array
) -> ForwardForm:
    """Join two articulated bodies by the constraint forces of the joint (Table 7.2, variant 2).

    W = (TᵀI₂⁻¹T)⁻¹, I^A = I₁ + TWTᵀ, p^A = p₁ + T_aτ + TWz with z = Tᵀ(c − I₂⁻¹(T_aτ − p₂)).
    Cheap where the joint constrains little.
    """
    active = T_active @ tau
    solved = np.linalg.solve(second.I, np.column_stack([T, active - second.p]))
    Y, z = T.T @ solved[:, :-1], T.T @ (c - solved[:, -1])
    right = np.linalg.solve(Y, np.column_stack([T.T, z])) if T.shape[1] else np.zeros((0, 7))
    I = first.I + T @ right[:, :6]
    return ForwardForm(_symmetric(I), first.p + active + T @ right[:, 6])


def assemble_inverse(
    first: InverseForm, second: InverseForm, T: Array, T_active: Array, c: Array, tau: Array
) -> InverseForm:
    """Join two articulated bodies in the inverse form (Table 7.2, variant 1).

    Y = Tᵀ(Φ₁ + Φ₂)T, Φ^A = Φ₁ − Φ₁TY⁻¹TᵀΦ₁, b^A = b₁ − Φ₁T_aτ − Φ₁TY⁻¹z with
    z = Tᵀ(c + b₁ − b₂ − (Φ₁ + Φ₂)T_aτ). Works for bodies that are connected to the base, where Φ
    is singular and I does not exist; Y must be regular, so one of the two must be able to yield
    to each constraint force.
    """
    active = T_active @ tau
    both = first.Phi + second.Phi
    Y, z = T.T @ both @ T, T.T @ (c + first.b - second.b - both @ active)
    M = first.Phi @ T
    right = np.linalg.solve(Y, np.column_stack([M.T, z])) if T.shape[1] else np.zeros((0, 7))
    b = first.b - first.Phi @ active - M @ right[:, 6]
    return InverseForm(_symmetric(first.Phi - M @ right[:, :6]), b)


def assemble_two_handles(
    first: InverseForm, second: InverseForm, T: Array, T_active: Array, c: Array, tau: Array
) -> InverseForm:
    """Join handle 2 of one body with handle 3 of another; handles 1 and 4 remain (Eq 7.57–7.63).

    Parameters
    ----------
    first, second
        12×12 inverse forms of the handles (1, 2) and (3, 4), in common coordinates. The joint's
        predecessor is at handle 2, its successor at handle 3.
    T, T_active, c, tau
        Of the joint: a₃ − a₂ = S q̈ + c.

    Returns
    -------
    InverseForm of the handles (1, 4). Where constraints are redundant the solution of least norm
    is taken: accelerations do not depend on that choice.
    """
    active = T_active @ tau
    b_first = first.b - first.Phi[:, 6:] @ active
    b_second = second.b + second.Phi[:, :6] @ active
    P1, P12, P2 = first.Phi[:6, :6], first.Phi[:6, 6:], first.Phi[6:, 6:]
    P3, P43, P4 = second.Phi[:6, :6], second.Phi[6:, :6], second.Phi[6:, 6:]
    Y = T.T @ (P2 + P3) @ T
    W = T @ np.linalg.pinv(Y, rcond=RANK_TOLERANCE, hermitian=True) @ T.T
    beta = c - b_second[:6] + b_first[6:]
    cross = P12 @ W @ P43.T
    Phi = np.block([[P1 - P12 @ W @ P12.T, cross], [cross.T, P4 - P43 @ W @ P43.T]])
    b = np.concatenate([b_first[:6] - P12 @ W @ beta, b_second[6:] + P43 @ W @ beta])
    return InverseForm(_symmetric(Phi), b)


def articulated_bodies(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    form: str = "standard",
) -> list[ForwardForm]:
    """I_i^A and p_i^A of all bodies with what they carry, leaves first joined to their parents.

    Parameters
    ----------
    model, q, v, tau, f_ext, t
        As for `FD`, of a model without loops; gravity is left out.
    form
        "standard" (§7.2.2), "inverse" or "constraint" (§7.4, variants 1 and 2). The last two
        need bodies whose own inertia is regular, and no armature.

    Returns
    -------
    list
        Entry i belongs to body i + 1 and is in its coordinates.
    """
    one_of(form, "form", ("standard", "inverse", "constraint"))
    _refuse_loops(model, "articulated_bodies", range(model.n_bodies))
    if form != "standard" and any(body.armature.any() for body in model.bodies):
        raise ValueError(f"form: expected 'standard' for joints with armature, received {form!r}")
    q, v_all, _ = numbers(model, q, v, None, "tau")
    w = base_coordinates(model, q, v_all, t)
    tau_all, known = applied_forces(model, q, v_all, tau, f_ext, t, w)
    handles = []
    for i, body in enumerate(model.bodies):
        own = w.X[i] @ w.v[i]
        I = body.inertia.matrix()
        f = np.linalg.solve(w.X[i].T, known[i])
        handles.append(ForwardForm(I, cross_force(own) @ I @ own - f))
    for i in range(model.n_bodies - 1, -1, -1):
        body = model.bodies[i]
        if not body.parent:
            continue
        at_q, at_v = model.q_index[i], model.v_index[i]
        X, S, v_J, c_J = body_joint(body, q[at_q], v_all[at_v], t)
        c = c_J + cross_motion(w.X[i] @ w.v[i]) @ v_J
        parent = handles[body.parent - 1]
        back = np.linalg.inv(X)  # the parent's equation, seen from the child
        above = ForwardForm(_symmetric(back.T @ parent.I @ back), back.T @ parent.p)
        joined = _join(above, handles[i], S, c, tau_all[at_v], body.armature, form)
        handles[body.parent - 1] = ForwardForm(_symmetric(X.T @ joined.I @ X), X.T @ joined.p)
    return handles


def accelerations_by_assembly(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    form: str = "standard",
) -> Array:
    """Forward dynamics of a tree by assembly, in any of the three forms of §7.2 and §7.4.

    Bodies are joined from the leaves inwards by :func:`articulated_bodies`; then, from the base
    outwards, each joint is solved with the acceleration of its parent known: in the standard form
    for v̇, in the other two for the constraint force λ, from which a₂ and v̇ = T_aᵀ(a₂ − a₁ − c)
    follow.

    Examples
    --------
    >>> from multibody import FD, mechanisms
    >>> model, q, v = mechanisms.serial_arm(4), np.full(4, 0.3), np.ones(4)
    >>> found = accelerations_by_assembly(model, q, v, form="constraint")
    >>> np.allclose(found, FD(model, q, v))
    True
    """
    handles = articulated_bodies(model, q, v, tau, f_ext, t=t, form=form)
    q, v_all, _ = numbers(model, q, v, None, "tau")
    w = base_coordinates(model, q, v_all, t)
    tau_all, _ = applied_forces(model, q, v_all, tau, f_ext, t, w)
    out = np.zeros(model.nv)
    known = [np.concatenate([np.zeros(3), -model.gravity])]  # gravity as the base's acceleration
    for i, (body, at_q, at_v) in enumerate(zip(model.bodies, model.q_index, model.v_index)):
        X, S, v_J, c_J = body_joint(body, q[at_q], v_all[at_v], t)
        c = c_J + cross_motion(w.X[i] @ w.v[i]) @ v_J
        a_1, (I, p), force = X @ known[body.parent], handles[i], tau_all[at_v]
        if form == "standard":
            U = I @ S
            D = S.T @ U + np.diag(body.armature)
            out[at_v] = np.linalg.solve(D, force - S.T @ p - U.T @ (a_1 + c))
            known.append(a_1 + c + S @ out[at_v])
            continue
        T, T_active = constraint_forces(S), active_forces(S)
        inverse = handles[i].inverse()
        active = T_active @ force
        z = T.T @ (a_1 + c - inverse.b - inverse.Phi @ active)
        passive = np.linalg.solve(T.T @ inverse.Phi @ T, z) if T.shape[1] else z
        known.append(inverse.Phi @ (active + T @ passive) + inverse.b)
        out[at_v] = T_active.T @ (known[-1] - a_1 - c)
    return out


def _join(
    above: ForwardForm,
    below: ForwardForm,
    S: Array,
    c: Array,
    tau: Array,
    armature: Array,
    form: str,
) -> ForwardForm:
    if form == "standard":
        if not armature.any():
            return assemble(above, below, S, c, tau)
        # D = SᵀI₂S + A, written out: a rotor takes part of τ before it reaches the body.
        U = below.I @ S
        shifted = below.p + below.I @ c
        gain = np.linalg.solve(S.T @ U + np.diag(armature), U.T)
        z = tau - S.T @ shifted
        I = above.I + below.I - U @ gain
        return ForwardForm(_symmetric(I), above.p + shifted + gain.T @ z)
    T, T_active = constraint_forces(S), active_forces(S)
    if form == "constraint":
        return assemble_constraint(above, below, T, T_active, c, tau)
    return assemble_inverse(above.inverse(), below.inverse(), T, T_active, c, tau).forward()
