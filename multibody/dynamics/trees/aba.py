"""Forward dynamics by the articulated-body algorithm (book, §7.3, Table 7.1).

A joint with several freedoms is eliminated one freedom at a time: each step removes one direction
of motion from the articulated inertia, exactly as Gaussian elimination would factor D = SᵀI^A S,
and no small matrix is ever inverted.

Elimination subtracts, and where freedoms become dependent (gimbal lock) only rounding is left of a
pivot. This can happen where earlier freedoms of the same joint, or what a body without inertia
carries, make up all of it; there pivots are compared with what they were before subtraction, and
accelerations come out infinite or NaN rather than as large numbers without a correct digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.kernels import OnWorkspace, inline_kernel, kernel

from ...checks import Array
from ...kernels.inertia import articulated_apply, articulated_from_rigid, rigid_apply, rigid_bias
from ...kernels.spatial import dot
from ...model.rules import FROM_DYNAMICS
from ..storage.workspace import HAVE_FORCES, TreeWorkspace
from .crba import crba_kernel
from .kinematics import (
    articulated_to_parent,
    force_to_body,
    force_to_parent,
    joint,
    motion_to_child,
    pose,
    velocity,
)

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["aba_kernel", "articulated_inertias", "eliminate", "find_singular_body"]

#: A freedom whose articulated inertia is smaller than this part of what it was before subtraction
#: is reported as singular. Subtracting leaves an error of about ε of what was there before: ε/1e-13
#: means that two digits are left for one body, and none for one that carries many.
SINGULAR = 1e-13

#: Part of a body's largest moment of inertia that turning its axes may leave of a moment that is
#: zero. A wire of 1 m and a thickness of 1 µm has a thousand times as much about its own axis.
CANCELLED = 16 * np.finfo(float).eps


@kernel
def aba_kernel(w: Any) -> None:
    """a_q = FD(q, v, tau)."""
    nb = w.parent.shape[0]
    for i in range(nb):
        joint(w, i)
        velocity(w, i)
        by_itself(w, i)
    for k in range(w.v.shape[0]):
        w.scaled[k] = 0.0
    for i in range(nb - 1, -1, -1):
        for k in range(w.v_at[i], w.v_at[i + 1]):
            let_go(w, i, k)
        if w.parent[i] >= 0:
            biased(w, i)
            onto_parent(w, i)
    for i in range(nb):
        parent = w.parent[i]
        if parent < 0:
            motion_to_child(w, i, w.gravity, w.acc[i])
        else:
            motion_to_child(w, i, w.acc[parent], w.acc[i])
        a = w.acc[i]
        for m in range(6):
            a[m] = a[m] + w.c[i, m]
        for k in range(w.v_at[i + 1] - 1, w.v_at[i] - 1, -1):
            accelerate(w, k, a)


# The steps of the three passes, which hybrid dynamics takes for its forward freedoms, too.


@inline_kernel
def by_itself(w: Any, i: int) -> None:
    """I^A and p^A of a body that nothing hangs on yet."""
    articulated_from_rigid(w.inertia[i], w.I_A[i])
    rigid_bias(w.inertia[i], w.vel[i], w.p_A[i])
    if w.switches[HAVE_FORCES]:
        pose(w, i)
        force_to_body(w, i, w.spare6)
        for k in range(6):
            w.p_A[i, k] = w.p_A[i, k] - w.spare6[k]


@inline_kernel
def let_go(w: Any, i: int, k: int) -> None:
    """Take freedom k out of I^A and p^A of its body."""
    I, p = w.I_A[i], w.p_A[i]
    eliminate(w, i, k, I)
    if w.unit[k] >= 0:
        w.u[k] = w.tau[k] - p[w.unit[k]]
    else:
        w.u[k] = w.tau[k] - dot(w.S[k], p)
    scaled = w.D_inverse[k] * w.u[k]
    for m in range(6):
        if m == w.unit[k] and w.armature[k] == 0.0:
            p[m] = w.tau[k]  # p + D (τ − p)/D
        else:
            p[m] = p[m] + w.U[k, m] * scaled


@inline_kernel
def biased(w: Any, i: int) -> None:
    """p^A + I^a c in p^A."""
    p = w.p_A[i]
    articulated_apply(w.I_A[i], w.c[i], w.spare6)
    for m in range(6):
        p[m] = p[m] + w.spare6[m]


@inline_kernel
def onto_parent(w: Any, i: int) -> None:
    """Add I^a and p^a of a body to those of its parent."""
    parent = w.parent[i]
    force_to_parent(w, i, w.p_A[i], w.spare6)
    articulated_to_parent(w, i, w.I_A[i], w.spare21)
    for m in range(6):
        w.p_A[parent, m] = w.p_A[parent, m] + w.spare6[m]
    for m in range(21):
        w.I_A[parent, m] = w.I_A[parent, m] + w.spare21[m]


@inline_kernel
def accelerate(w: Any, k: int, a: Any) -> None:
    """Acceleration of freedom k, which joins that of its body."""
    w.a_q[k] = (w.u[k] - dot(w.U[k], a)) * w.D_inverse[k]
    if w.unit[k] >= 0:
        a[w.unit[k]] = a[w.unit[k]] + w.a_q[k]
    else:
        for m in range(6):
            a[m] = a[m] + w.S[k, m] * w.a_q[k]


@inline_kernel
def eliminate(w: Any, i: int, k: int, I: Any) -> None:
    """Remove freedom k of body i from its articulated inertia: I − U D⁻¹ Uᵀ, U = I S, D = Sᵀ U."""
    U = w.U[k]
    unit = w.unit[k]
    if unit == 2 and w.armature[k] == 0.0:  # most joints; the constant 2 makes it fast
        articulated_column(I, 2, U)
        inverse = inverse_pivot(w, k, U[2], U[2] + w.scaled[k])
        subtract_dyad(I, U, inverse, 2)
    elif unit >= 0:
        articulated_column(I, unit, U)
        pivot = U[unit] + w.armature[k]
        inverse = inverse_pivot(w, k, pivot, pivot + w.scaled[k])
        subtract_dyad(I, U, inverse, unit if w.armature[k] == 0.0 else -1)
    else:
        articulated_apply(I, w.S[k], U)
        pivot = dot(w.S[k], U) + w.armature[k]
        inverse = inverse_pivot(w, k, pivot, pivot + w.scaled[k])
        subtract_dyad(I, U, inverse, -1)
    w.D_inverse[k] = inverse
    note_subtraction(w, i, k)


@inline_kernel
def inverse_pivot(w: Any, k: int, pivot: Any, whole: Any) -> Any:
    """1/D of freedom k; infinite if rounding is all that subtractions left of `whole`."""
    if w.doubtful[k]:
        sound = np.sign(np.maximum(pivot - SINGULAR * whole, 0.0))
        return 1.0 / (sound * pivot)
    return 1.0 / pivot


@inline_kernel
def note_subtraction(w: Any, i: int, k: int) -> None:
    """Add to `scaled` what removing freedom k takes from later pivots: (S_mᵀU)²/D."""
    for m in range(k + 1, w.v_at[i + 1]):
        if w.doubtful[m]:
            part = dot(w.S[m], w.U[k])
            w.scaled[m] = w.scaled[m] + part * part * w.D_inverse[k]
    if w.parent[i] >= 0 and w.frail[w.parent[i]]:
        for m in range(6):
            w.spare6[m] = w.U[k, m]
        j = i
        while w.parent[j] >= 0 and w.frail[w.parent[j]]:
            force_to_parent(w, j, w.spare6, w.spare6)
            j = w.parent[j]
            for m in range(w.v_at[j], w.v_at[j + 1]):
                if w.doubtful[m]:
                    part = dot(w.S[m], w.spare6)
                    w.scaled[m] = w.scaled[m] + part * part * w.D_inverse[k]


@inline_kernel
def articulated_column(I: Any, k: int, out: Any) -> None:
    """Column k of an articulated inertia: no arithmetic."""
    if k < 3:
        for m in range(3):
            if m >= k:
                out[m] = I[15 + m * (m + 1) // 2 + k]
            else:
                out[m] = I[15 + k * (k + 1) // 2 + m]
            out[3 + m] = I[6 + 3 * k + m]
    else:
        n = k - 3
        for m in range(3):
            out[m] = I[6 + 3 * m + n]
            if m >= n:
                out[3 + m] = I[m * (m + 1) // 2 + n]
            else:
                out[3 + m] = I[n * (n + 1) // 2 + m]


@inline_kernel
def subtract_dyad(I: Any, U: Any, inverse: Any, empty: int) -> None:
    """I ← I − U Uᵀ/d. Row and column `empty` become exactly zero and cost nothing; −1: none."""
    for a in range(3):
        scaled = U[a] * inverse
        for b in range(a + 1):
            place = 15 + a * (a + 1) // 2 + b
            if a == empty or b == empty:
                I[place] = 0.0 * inverse
            else:
                I[place] = I[place] - scaled * U[b]
        for b in range(3):
            place = 6 + 3 * a + b
            if a == empty or b + 3 == empty:
                I[place] = 0.0 * inverse
            else:
                I[place] = I[place] - scaled * U[3 + b]
    for a in range(3):
        scaled = U[3 + a] * inverse
        for b in range(a + 1):
            place = a * (a + 1) // 2 + b
            if a + 3 == empty or b + 3 == empty:
                I[place] = 0.0 * inverse
            else:
                I[place] = I[place] - scaled * U[3 + b]


@kernel
def articulated_inertias(w: Any) -> None:
    """I_i^A of all bodies, with the freedoms of joint i taken out; 1/D in ``w.D_inverse``."""
    nb = w.parent.shape[0]
    for k in range(w.v.shape[0]):
        w.scaled[k] = 0.0
    for i in range(nb):
        joint(w, i)
        articulated_from_rigid(w.inertia[i], w.I_A[i])
    for i in range(nb - 1, -1, -1):
        I = w.I_A[i]
        for k in range(w.v_at[i], w.v_at[i + 1]):
            eliminate(w, i, k, I)
        parent = w.parent[i]
        if parent >= 0:
            articulated_to_parent(w, i, I, w.spare21)
            for m in range(21):
                w.I_A[parent, m] = w.I_A[parent, m] + w.spare21[m]


_run_articulated = OnWorkspace(articulated_inertias, TreeWorkspace)
_run_crba = OnWorkspace(crba_kernel, TreeWorkspace)


def find_singular_body(model: Model, q: Array, t: float = 0.0) -> int:
    """Number of the first body whose freedom moves no mass at this position; 0 if there is none.

    A pivot is compared with what the body itself has in this direction, of which no other body can
    take anything away; if that is nothing, with all that the body carries. Nothing is what rounding
    leaves where the moments of a point mass cancel, about an axis through it.
    """
    w = model.tree.workspace
    w.q[:], w.v[:], w.t[0] = q, 0.0, t
    _run_crba(w)
    scale = np.diag(w.H).copy()
    nothing = np.zeros_like(scale)
    with np.errstate(all="ignore"):
        _run_articulated(w)
        pivots = 1.0 / w.D_inverse
    for i, place in enumerate(model.v_index):
        for k in range(place.start, place.stop):
            rigid_apply(w.inertia[i], w.S[k], w.spare6)
            own = float(w.S[k] @ w.spare6) + w.armature[k]
            scale[k] = own if own > 0.0 else scale[k]
            turn, shift = w.S[k, :3], w.S[k, 3:]
            mass, moments = w.inertia[i, 0], np.abs(w.inertia[i, 4:]).max()
            nothing[k] = CANCELLED * (moments * (turn @ turn) + mass * (shift @ shift))
    bad = ~(pivots > np.maximum(SINGULAR * np.maximum(scale, np.finfo(float).tiny), nothing))
    if not bad.any():
        return 0
    k = int(np.flatnonzero(bad)[-1])  # leaves come last
    return next(i for i, place in enumerate(model.v_index, 1) if place.start <= k < place.stop)


FROM_DYNAMICS["singular body"] = find_singular_body
