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

from integrators.kernels import OnWorkspace

from ..checks import Array
from ..dynamics.loops.closed_loop import loaded_constraints
from ..dynamics.loops.constraints.gaps import closure_kernel
from ..dynamics.loops.multipliers import unconstrained_forces
from ..dynamics.storage.loading import load, load_forces, loaded_inertia
from ..dynamics.storage.workspace import TreeWorkspace
from ..dynamics.trees.crba import crba_kernel
from .held_kernel import held_kernel
from .kinematics import kinematics_at, run_contacts
from .response import mechanism_at
from .sharing import Shared, changes_of_forces, force_columns, inside, share
from .workspace import ContactWorkspace, contacts_of

if TYPE_CHECKING:
    from ..model import Model

__all__ = [
    "Held",
    "HeldMotion",
    "are_shared",
    "held_motion",
    "held_multipliers",
    "onto_contacts",
    "shared_forces",
]

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
    slow
        Points whose slip was too slow to tell a direction when they were entered.
    bounces
        Whether some of them still bounce, infinitely often and too low to be seen.
    shared
        Whether points that stick share forces that are not determined, see `contact.sharing`.
    """

    points: tuple[int, ...] = ()
    states: tuple[str, ...] = ()
    angles: tuple[float, ...] = ()
    touching: tuple[int, ...] = ()
    bounces: bool = False
    slow: tuple[int, ...] = ()
    shared: bool = False

    def rows(self) -> list[int]:
        """Rows 3i + k of the velocities that vanish."""
        found = []
        for i, state in zip(self.points, self.states):
            found += [3 * i, 3 * i + 1, 3 * i + 2] if state == "sticks" else [3 * i]
        return found


class HeldMotion(NamedTuple):
    """Accelerations for given contact states.

    `forces` is (n, 3) for all contact points; `slopes` has for each held row what it gains in
    acceleration by a unit of its force: not positive in Painlevé's paradox.
    """

    accelerations: Array
    forces: Array
    slopes: Array


_forces = OnWorkspace(unconstrained_forces, TreeWorkspace)
_loops = OnWorkspace(closure_kernel, TreeWorkspace)
_inertia = OnWorkspace(crba_kernel, TreeWorkspace)
_system = OnWorkspace(held_kernel, ContactWorkspace, returns=True)


def held_motion(
    model: Model, held: Held, t: float, q: Array, v: Array, tau: Any, f_ext: Any
) -> HeldMotion:
    """v̇ and forces for given contact states."""
    tree = _loaded(model, held, t, q, v, tau)
    load_forces(model, tree, f_ext)
    _forces(tree)
    if model.bonds:
        _loops(tree)
    w = run_contacts(model, moved=bool(model.bonds))
    _inertia(tree)
    _system(w)
    slopes = w.slope[: w.held_count[0]].copy()
    return HeldMotion(w.a_q.copy(), w.contact_force.reshape(-1, 3).copy(), slopes)


def held_multipliers(
    model: Model, held: Held, t: float, q: Array, v: Array, tau: Any, f_ext: Any
) -> Array:
    """Multipliers of the loops for given contact states."""
    held_motion(model, held, t, q, v, tau, f_ext)
    return np.asarray(contacts_of(model).workspace.lam.copy())


def shared_forces(model: Model, held: Held, t: float, q: Array, v: Array, forces: Array) -> Shared:
    """The smallest forces in the cones with the motion of `forces` (n, 3), and their margin."""
    points = list(held.points)
    mu = contacts_of(model).friction[points]
    sticks = np.array([state == "sticks" for state in held.states])
    margin = inside(forces[points], mu, sticks)
    if margin >= 0.0:
        return Shared(forces, margin)
    found = share(forces[points], _changes(model, held, t, q, v, forces), mu, sticks)
    everywhere = np.zeros_like(forces)
    everywhere[points] = found.forces
    return Shared(everywhere, found.margin)


def are_shared(model: Model, held: Held, t: float, q: Array, v: Array) -> bool:
    """Whether points stick whose forces are not determined."""
    if "sticks" not in held.states:
        return False
    forces = np.zeros((contacts_of(model).n, 3))
    for i, state, angle in zip(held.points, held.states, held.angles):
        if state == "slides":
            forces[i, 1:] = -np.cos(angle), -np.sin(angle)
    return bool(_changes(model, held, t, q, v, forces).shape[1])


def _changes(model: Model, held: Held, t: float, q: Array, v: Array, forces: Array) -> Array:
    """Changes of the forces at held points, in rows of three, that change no motion."""
    points = list(held.points)
    T = kinematics_at(model, q, v, t).T[points].reshape(-1, model.nv)
    W = T @ mechanism_at(model, q, v, None, None, t).spread @ T.T
    sticks = np.array([state == "sticks" for state in held.states])
    every, mu = np.ones(len(points), dtype=bool), contacts_of(model).friction[points]
    return changes_of_forces(W, force_columns(forces[points], mu, every, sticks))


def _loaded(model: Model, held: Held, t: float, q: Array, v: Array, tau: Any) -> Any:
    """Workspace of the tree with the state, and beside it the rows that are held."""
    tree = load(model, q, v, t)
    tree.tau[:] = 0.0 if tau is None else tau
    contacts = contacts_of(model)
    w: Any = contacts.workspace
    contacts.make_room(w, 3 * len(held.points))
    if contacts.loaded.held is not held:
        contacts.loaded.held, j = held, 0
        for i, state, angle in zip(held.points, held.states, held.angles):
            for k in range(3 if state == "sticks" else 1):
                w.held_row[j] = 3 * i + k
                w.held_mu[j] = 0.0
                if state == "slides":
                    w.held_mu[j] = contacts.friction[i]
                    w.held_known[j] = np.cos(angle), np.sin(angle)
                j += 1
        w.held_count[0] = j
    return tree


def least_forces(A: Array, b: Array) -> Array:
    """Solution of A x = b, of several the smallest; rows and columns are weighted alike."""
    if not len(b):
        return np.zeros(0)
    if len(b) == 1:
        return b / A[0, 0]
    return np.asarray(np.linalg.lstsq(A, b, rcond=REDUNDANT)[0])


def onto_contacts(model: Model, held: Held, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    """Position and velocity with held gaps and loops closed: the smallest changes by inertia."""
    normals = [3 * i for i in held.points]
    for _ in range(NEWTON_STEPS):
        k = kinematics_at(model, q, np.zeros(model.nv), t)
        R, error = k.T.reshape(-1, model.nv)[normals], k.gap[list(held.points)]
        if model.bonds:
            c = loaded_constraints(model)
            R, error = np.vstack([R, c.K]), np.concatenate([error, c.delta])
        if np.abs(error).max(initial=0.0) <= 1e-15:
            break
        q = model.integrate(q, -_smallest_change(model, R, error))
    k = kinematics_at(model, q, v, t)
    speed = np.column_stack([k.gap_rate, k.slip]).ravel()
    rows = held.rows()
    R, error = k.T.reshape(-1, model.nv)[rows], speed[rows]
    if model.bonds:
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
