"""Motion while some contacts are held: equations for given contact states (book, Table 11.1).

A :class:`Held` says which points carry forces, and how: a point that *rests* keeps its gap closed;
one that *sticks* has no slip either; one that *slides* keeps its gap closed and is rubbed against
its slip. For these equations, whatever inequalities say, accelerations and forces follow from one
linear system: rows R that must not accelerate, columns G along which forces act,

    (R P Gᵀ) x = −(R a + bias),     v̇ = a + P Gᵀ x.

Redundant rows (a table on four legs) leave v̇ unique; of the forces the smallest are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..checks import Array
from ..dynamics.loading import load, loaded_inertia
from ..dynamics.loops.closed_loop import loaded_constraints
from .kinematics import ContactKinematics, kinematics_at
from .response import mechanism_at
from .workspace import contacts_of

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["Held", "HeldMotion", "held_motion", "onto_contacts"]

#: Slip below this (m/s) does not tell a direction.
NO_SLIP = 1e-10

#: Singular values below this part of the largest belong to redundant rows.
REDUNDANT = 1e-9

NEWTON_STEPS = 8


@dataclass(frozen=True)
class Held:
    """Contact points that carry forces.

    Attributes
    ----------
    points
        Numbers of the points.
    states
        "rests", "sticks" or "slides" of each.
    angles
        Of those that slide: direction of the slip, from the first tangent, where it was last
        known; zero for others.
    touching
        Points that are closed without a force, and do not move.
    until
        Time up to which some of them still bounce, infinitely often and too low to be seen.
    """

    points: tuple[int, ...] = ()
    states: tuple[str, ...] = ()
    angles: tuple[float, ...] = ()
    touching: tuple[int, ...] = ()
    until: float | None = None

    def rows(self) -> list[int]:
        """Rows 3i + k of the velocities that vanish."""
        found = []
        for i, state in zip(self.points, self.states):
            found += [3 * i, 3 * i + 1, 3 * i + 2] if state == "sticks" else [3 * i]
        return found


class HeldMotion(NamedTuple):
    """Accelerations for given contact states.

    `forces` is (n, 3) for all contact points; `slopes` has for each held point what its gap gains
    in acceleration by a unit of its force: not positive in Painlevé's paradox.
    """

    accelerations: Array
    forces: Array
    slopes: Array
    kinematics: ContactKinematics
    multipliers: Array


def slip_direction(slip: Array, angle: float) -> Array:
    """Unit vector of the slip, continued through zero as if friction did not turn round there."""
    known = np.array([np.cos(angle), np.sin(angle)])
    size = float(np.hypot(slip[0], slip[1]))
    if size <= NO_SLIP:
        return known
    direction = slip / size
    return direction if direction @ known >= 0.0 else -direction


def held_motion(
    model: Model, held: Held, t: float, q: Array, v: Array, tau: Any, f_ext: Any
) -> HeldMotion:
    """v̇ and forces for given contact states."""
    system = mechanism_at(model, q, v, tau, f_ext, t)
    k = kinematics_at(model, q, v, t)
    contacts = contacts_of(model)
    forces = np.zeros((contacts.n, 3))
    T, bias = k.T.reshape(-1, model.nv), k.bias.ravel()
    rows = held.rows()
    columns = np.zeros((len(rows), 3 * contacts.n))
    at = 0
    for i, state, angle in zip(held.points, held.states, held.angles):
        columns[at, 3 * i] = 1.0
        if state == "slides":
            columns[at, 3 * i + 1 : 3 * i + 3] = -contacts.friction[i] * slip_direction(
                k.slip[i], angle
            )
        elif state == "sticks":
            columns[at + 1, 3 * i + 1] = columns[at + 2, 3 * i + 2] = 1.0
            at += 2
        at += 1
    R, G = T[rows], columns @ T
    answer = system.spread @ G.T
    A = R @ answer
    x = least_forces(A, -(R @ system.acceleration + bias[rows]))
    forces = (x @ columns).reshape(-1, 3)
    normal_rows = [j for j, row in enumerate(rows) if row % 3 == 0]
    a = system.acceleration + answer @ x
    multipliers = system.multipliers + system.loop_spread @ (G.T @ x)
    return HeldMotion(a, forces, np.diag(A)[normal_rows].copy(), k, multipliers)


def least_forces(A: Array, b: Array) -> Array:
    """Solution of A x = b, of several the smallest; rows and columns are weighted alike."""
    if not len(b):
        return np.zeros(0)
    if len(b) == 1:
        return b / A[0, 0]
    return np.linalg.lstsq(A, b, rcond=REDUNDANT)[0]


def onto_contacts(model: Model, held: Held, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    """Position and velocity with held gaps and loops closed: the smallest changes by inertia."""
    normals = [3 * i for i in held.points]
    for _ in range(NEWTON_STEPS):
        k = kinematics_at(model, q, np.zeros(model.nv), t)
        R, error = k.T.reshape(-1, model.nv)[normals], k.gap[list(held.points)]
        if model.loops:
            c = loaded_constraints(model)
            R, error = np.vstack([R, c.K]), np.concatenate([error, c.delta])
        if np.abs(error).max(initial=0.0) <= 1e-15:
            break
        q = model.integrate(q, -_smallest_change(model, R, error))
    k = kinematics_at(model, q, v, t)
    speed = np.column_stack([k.gap_rate, k.slip]).ravel()
    rows = held.rows()
    R, error = k.T.reshape(-1, model.nv)[rows], speed[rows]
    if model.loops:
        c = loaded_constraints(model)
        R, error = np.vstack([R, c.K]), np.concatenate([error, c.K @ v - c.nu])
    if np.abs(error).max(initial=0.0) > 0.0:
        v = v - _smallest_change(model, R, error, q, t)
    return q, v


def _smallest_change(
    model: Model, R: Array, error: Array, q: Array | None = None, t: float = 0.0
) -> Array:
    """u with R u = error and uᵀHu smallest; at the position in the workspace, or at q."""
    w = model.tree.workspace if q is None else load(model, q, None, t)
    lower = np.tril(loaded_inertia(w))
    H = lower + np.tril(lower, -1).T
    through = np.linalg.solve(H, R.T)
    return np.asarray(through @ least_forces(R @ through, error))
