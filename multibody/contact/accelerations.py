"""Accelerations of bodies in contact: complementarity of forces and gaps (book, §11.1–11.5).

Each contact point is in one of these states (§11.4):

- apart: φ > 0, or φ = 0 and φ̇ > 0;
- about to collide: φ = 0 and φ̇ < 0; velocities must jump first (``impacts``);
- closed: φ = φ̇ = 0. Force λ and acceleration φ̈ = Mλ + d decide together: one of the two vanishes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..checks import Array, ArrayLike
from ..dynamics.storage.loading import ForcesLike
from .cones import APART, SLIDING, STICKING, shared_evenly
from .kinematics import ContactKinematics, kinematics_at, need_contacts
from .lcp import LCPError, solve_lcp
from .paradox import another_motion, any_motion
from .response import Mechanism, mechanism_at
from .workspace import contacts_of

if TYPE_CHECKING:
    from ..model import Model

__all__ = [
    "CLOSED_GAP",
    "CLOSED_SPEED",
    "ContactForces",
    "PainleveError",
    "contact_accelerations",
    "settle",
]

#: A gap below this counts as closed, and a rate of it below this as none: in parts of the
#: mechanism's length and speed, which are of the order of metres (see `contact.scales`).
CLOSED_GAP = 1e-8
CLOSED_SPEED = 1e-8

STATES = {APART: "apart", STICKING: "sticks", SLIDING: "slides"}


class PainleveError(LCPError):
    """Rigid bodies with Coulomb friction have no motion here, or several (Painlevé)."""


class ContactForces(NamedTuple):
    """Accelerations with contact, and the forces.

    Attributes
    ----------
    accelerations
        v̇.
    forces
        (n, 3) at all contact points: normal force and friction along the two tangents.
    states
        "apart", "rests" (no friction), "sticks" or "slides", of each point.
    gap_accelerations
        (n,): φ̈ of all points.
    multipliers
        Of the loops.
    unique
        Whether the forces are the only ones. Accelerations without friction always are; where
        forces are not, the smallest (sum of squares) are given.
    """

    accelerations: Array
    forces: Array
    states: tuple[str, ...]
    gap_accelerations: Array
    multipliers: Array
    unique: bool


def contact_accelerations(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    method: str = "lcp",
) -> ContactForces:
    """Forward dynamics with rigid contacts: v̇ and contact forces.

    Parameters
    ----------
    model, q, v, tau, f_ext, t
        As in :func:`~multibody.FD`.
    method
        "lcp": forces and gaps by complementarity (Eq 11.42). "qp", without friction only: the
        accelerations nearest, by Gauss's principle of least constraint, to those without contact
        that no gap forbids (Eq 11.44).

    Raises
    ------
    ValueError
        If a closed gap is closing: velocities must jump first, see :func:`impact`; or if bodies
        penetrate.
    LCPError
        If no forces keep the bodies apart; with friction :class:`PainleveError`.

    Examples
    --------
    A ball of 2 kg at rest on the floor:

    >>> import multibody as mb
    >>> b = mb.ModelBuilder()
    >>> _ = b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.sphere(mass=2.0, radius=0.1))
    >>> b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1))
    >>> found = contact_accelerations(b.build(), [0.1], [0.0])
    >>> found.forces[0].round(9), found.accelerations + 0.0
    (array([19.62,  0.  ,  0.  ]), array([0.]))
    """
    need_contacts(model)
    position, velocity = model.check("q", q), model.check("v", v)
    k = kinematics_at(model, position, velocity, t)
    closed = closed_points(model, k)
    none = CLOSED_SPEED * contacts_of(model).speed
    for i in np.flatnonzero(closed):
        if k.gap_rate[i] < -none:
            raise ValueError(
                f"contact {k.names[i]!r} is closed and closing at {-k.gap_rate[i]:.3g} m/s: the "
                "velocities jump first; use impact(model, q, v)"
            )
    closed &= k.gap_rate <= none
    system = mechanism_at(model, position, velocity, tau, f_ext, t)
    if method == "qp":
        return _by_gauss(model, system, k, closed)
    if method != "lcp":
        raise ValueError(f"method: expected 'lcp' or 'qp', received {method!r}")
    return settle(model, system, k, closed)


def closed_points(model: Model, k: ContactKinematics) -> Array:
    """Which points are closed; raises where bodies penetrate."""
    tolerance = CLOSED_GAP * contacts_of(model).length
    deep = np.flatnonzero(k.gap < -tolerance)
    if deep.size:
        worst = deep[np.argmin(k.gap[deep])]
        raise ValueError(
            f"contact {k.names[worst]!r}: the bodies penetrate by {-k.gap[worst]:.3g} m "
            f"({deep.size} of {len(k.gap)} points do); move them apart, or use "
            "separate(model, q), which finds the nearest position without"
        )
    if not np.isfinite(k.gap).all():
        worst = int(np.flatnonzero(~np.isfinite(k.gap))[0])
        raise ValueError(f"contact {k.names[worst]!r}: its gap is {k.gap[worst]}")
    return np.asarray(k.gap <= tolerance)


def settle(
    model: Model,
    system: Mechanism,
    k: ContactKinematics,
    closed: Array,
    standing: Array | None = None,
    friction: Array | None = None,
) -> ContactForces:
    """Accelerations and forces for the points that are closed and at rest along the normal.

    Points that are `standing` have no slip, whatever `k` says: forces decide whether they stick or
    where they begin to slide. `friction` stands for the coefficients of the contacts.
    """
    contacts = contacts_of(model)
    chosen = np.flatnonzero(closed)
    held = system.holds(k.T[chosen, 0], k.bias[chosen, 0])  # by loops: they rest without a force
    chosen, resting = chosen[~held], chosen[held]
    n = len(chosen)
    T = k.T[chosen].reshape(3 * n, model.nv)
    W = T @ system.spread @ T.T
    b = T @ system.acceleration + k.bias[chosen].ravel()
    mu = (contacts.friction if friction is None else friction)[chosen]
    slip_speed = np.linalg.norm(k.slip[chosen], axis=1)
    moving = (slip_speed > CLOSED_SPEED * contacts.speed) & (mu > 0.0)
    if standing is not None:
        moving &= ~standing[chosen]
    slip = np.where(
        moving[:, None], k.slip[chosen] / np.where(moving, slip_speed, 1.0)[:, None], 0.0
    )
    names = [k.names[i] for i in chosen]
    forces, unique = _forces(W, b, mu, slip, names)
    everywhere = np.zeros((contacts.n, 3))
    everywhere[chosen] = forces
    joint_forces = T.T @ forces.ravel()
    a = system.acceleration + system.spread @ joint_forces
    gap = k.T[:, 0] @ a + k.bias[:, 0]
    u = (W @ forces.ravel() + b).reshape(n, 3)
    states = ["apart"] * contacts.n
    size = float(np.abs(b).max(initial=0.0))
    for j, i in enumerate(chosen):
        gap[i] = max(u[j, 0], 0.0) if forces[j, 0] == 0.0 else 0.0
        if forces[j, 0] <= 0.0 and u[j, 0] > 1e-10 * size:
            continue  # lifts off
        if mu[j] == 0.0:
            states[i] = "rests"
        else:
            still = not moving[j] and np.linalg.norm(u[j, 1:]) <= 1e-9 * size
            states[i] = "sticks" if still else "slides"
    for i in resting:
        gap[i], states[i] = 0.0, "rests" if contacts.friction[i] == 0.0 else "sticks"
    multipliers = system.multipliers + system.loop_spread @ joint_forces
    return ContactForces(a, everywhere, tuple(states), gap, multipliers, unique)


def _forces(W: Array, b: Array, mu: Array, slip: Array, names: list[str]) -> tuple[Array, bool]:
    """Forces (n, 3) at closed points, and whether there are no others."""
    n = len(mu)
    if not mu.any():
        found = solve_lcp(np.ascontiguousarray(W[::3, ::3]), b[::3].copy(), smallest=True)
        return np.column_stack([found.z, np.zeros((n, 2))]), bool(found.unique)
    try:
        answer = any_motion(W, b, mu, slip)
    except LCPError as error:
        raise _paradox(W, mu, slip, names, "no motion") from error
    if another_motion(W, b, mu, slip, answer) is not None:
        raise _paradox(W, mu, slip, names, "several motions")
    held = answer.r[:, 0] > 0.0
    rows = (3 * np.flatnonzero(held)[:, None] + np.arange(3)).ravel()
    moves = np.diag(W)[rows] > 1e-12 * np.abs(np.diag(W)).max(initial=0.0)
    block = W[np.ix_(rows[moves], rows[moves])]
    values = np.linalg.svd(block, compute_uv=False)
    unique = not values.size or bool(values[-1] > 1e-10 * values[0])
    if not unique:  # shared as evenly as the cones allow
        answer = shared_evenly(W, b, mu, answer, slip)
    return answer.r, unique


def _paradox(W: Array, mu: Array, slip: Array, names: list[str], motions: str) -> PainleveError:
    """What to raise; it names the point that friction presses most into the surface."""
    blocks = [W[3 * i, 3 * i : 3 * i + 3] for i in range(len(mu))]
    most = [m * (s @ w[1:] if s.any() else np.hypot(*w[1:])) for m, s, w in zip(mu, slip, blocks)]
    slopes = [w[0] - x for w, x in zip(blocks, most)]
    i = int(np.argmin([slope / w[0] if w[0] > 0.0 else np.inf for slope, w in zip(slopes, blocks)]))
    others = f" and {len(mu) - 1} more" if len(mu) > 1 else ""
    does = ("slide" if slip[i].any() else "stand") + ("" if others else "s")
    jams = f": {slopes[i]:.3g} ≤ 0 in place of its inverse mass" if slopes[i] <= 0.0 else ""
    return PainleveError(
        f"contact {names[i]!r}{others} {does} where friction μ = {mu[i]:g} allows {motions} of "
        f"rigid bodies (Painlevé{jams}); use less friction, or a compliant law"
    )


def _by_gauss(
    model: Model, system: Mechanism, k: ContactKinematics, closed: Array
) -> ContactForces:
    """Accelerations by least constraint: min ½ (a − a₀)ᵀH(a − a₀) with T a + bias ≥ 0.

    Solved through the dual with every force as small as can be; without friction.
    """
    contacts = contacts_of(model)
    chosen = np.flatnonzero(closed)
    if contacts.friction[chosen].any():
        raise ValueError("method='qp' has no friction; use method='lcp'")
    # Least distance programming (Lawson and Hanson): nonnegative least squares on [E; f].
    T = k.T[chosen, 0]
    d = T @ system.acceleration + k.bias[chosen, 0]
    values, vectors = np.linalg.eigh(system.spread)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # spread = root rootᵀ
    G = T @ root
    stacked = np.vstack([G.T, -d])
    target = np.zeros(model.nv + 1)
    target[-1] = 1.0
    found = solve_lcp(stacked.T @ stacked, -stacked.T @ target) if len(chosen) else None
    change = np.zeros(model.nv)
    forces = np.zeros((contacts.n, 3))
    if found is not None:
        rest = stacked @ found.z - target
        if abs(rest[-1]) < 1e-12:
            raise LCPError("no accelerations keep the bodies apart (the QP has no feasible point)")
        change = -rest[:-1] / rest[-1]
        forces[chosen, 0] = -found.z / rest[-1]
    a = system.acceleration + root @ change
    gap = k.T[:, 0] @ a + k.bias[:, 0]
    states = tuple(
        "apart" if not closed[i] or gap[i] > 1e-9 * (1.0 + abs(d).max()) else "rests"
        for i in range(contacts.n)
    )
    joint_forces = T.T @ forces[chosen, 0]
    multipliers = system.multipliers + system.loop_spread @ joint_forces
    return ContactForces(a, forces, states, gap, multipliers, False)
