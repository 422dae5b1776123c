"""Impacts: velocities jump where closed gaps are closing (book, §11.7).

Impulses r at the closed points change v by P Tᵀ r. With the velocities u = (ζ, slip) of the points
before (−) and after (+),

    u⁺ = W r + u⁻,    0 ≤ ζ⁺ + e ζ⁻  ⟂  r_n ≥ 0,    friction impulses in Coulomb's cone,

which is Newton's restitution. Poisson's lets bodies come to rest against each other first and gives
back the part e of the normal impulse. For one point without friction both are

    r_n = −(1 + e) ζ⁻ / W,                                                  (Eq 11.65)

and the kinetic energy changes by −½ (1 − e²) ζ⁻² / W.

Several points at once: where nothing rebounds (e = 0), all that are closed take part. Where
something does, those that are closing take part, and then those that close because of it, until
none does: so a row of touching balls passes one ball on. The book's caution holds: rigid bodies
know nothing of waves of compression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators.kernels import OnWorkspace, kernel

from ..checks import Array, ArrayLike, one_of
from ..dynamics.motion import totals_along
from .accelerations import CLOSED_SPEED, PainleveError, closed_points
from .cone_kernel import ConeWorkspace
from .cones import coulomb
from .kinematics import ContactKinematics, kinematics_at, need_contacts
from .lcp import LCPError, solve_lcp
from .response import Mechanism, mechanism_at
from .workspace import contacts_of

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["EnergyGainError", "Impact", "collide", "exchange", "impact"]

#: Rounds of impacts at one instant, after which all closed points are taken together.
ROUNDS = 200
EXPANSION_SWEEPS = 5000

#: Energy that impulses may make by rounding, in parts of their product with the fastest speed.
ENERGY_ROUNDING = 1e-10


class EnergyGainError(ArithmeticError):
    """An impact law would create energy here."""


class Impact(NamedTuple):
    """What an impact does.

    Attributes
    ----------
    velocities
        v after it.
    impulses
        (n, 3) at all contact points: normal, and friction along the two tangents.
    loop_impulses
        Of the loop joints, one for each of their constraints.
    energy_loss
        What the contacts take: kinetic energy before, and the work of drives, less that after.
    rounds
        How many times impulses were exchanged at the instant.
    drive_work
        Of what time moves (driven joints, driven loops) against the impulses; zero without drives.
    """

    velocities: Array
    impulses: Array
    loop_impulses: Array
    energy_loss: float
    rounds: int
    drive_work: float = 0.0


def impact(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    t: float = 0.0,
    law: str = "newton",
) -> Impact:
    """Velocities and impulses of an impact at all closed contacts.

    Parameters
    ----------
    model, q, v, t
        A model with contacts and its state just before.
    law
        "newton" or "poisson": what the coefficient of restitution multiplies.

    Raises
    ------
    EnergyGainError
        Where Newton's law with friction would create energy (Kane's paradox).

    Examples
    --------
    A ball of 2 kg that hits the floor with 3 m/s, e = 0.5:

    >>> import multibody as mb
    >>> b = mb.ModelBuilder()
    >>> _ = b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.sphere(mass=2.0, radius=0.1))
    >>> b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1), restitution=0.5)
    >>> found = impact(b.build(), [0.1], [-3.0])
    >>> found.velocities, found.impulses[0], found.energy_loss
    (array([1.5]), array([9., 0., 0.]), 6.75)
    """
    need_contacts(model)
    one_of(law, "law", ("newton", "poisson"))
    position, velocity = model.check("q", q), model.check("v", v)
    k = kinematics_at(model, position, velocity, t)
    closed = closed_points(model, k)
    system = mechanism_at(model, position, velocity, None, None, t)
    return collide(model, system, k, (position, velocity, t), closed, law)


def collide(
    model: Model,
    system: Mechanism,
    k: ContactKinematics,
    state: tuple[Array, Array, float],
    closed: Array,
    law: str = "newton",
) -> Impact:
    """Impulses at the closed points until none is closing; `state` is (q, v, t)."""
    contacts = contacts_of(model)
    v, chosen = state[1], np.flatnonzero(closed)
    drift = np.column_stack([k.gap_rate, k.slip]) - k.T @ v  # what time moves
    rows = k.T[chosen].reshape(-1, model.nv)
    spread = system.spread @ rows.T
    mu, e = contacts.friction[chosen], contacts.restitution[chosen]
    speeds = (k.T @ v + drift)[chosen].ravel()
    limit, names = CLOSED_SPEED * contacts.speed, [k.names[i] for i in chosen]
    r, _, rounds = exchange(rows, spread, speeds, mu, e, law, limit, names)
    velocity = v + spread @ r
    impulses = np.zeros((contacts.n, 3))
    impulses[chosen] = r.reshape(-1, 3)
    joint_impulses = np.einsum("nkv,nk->v", k.T, impulses)
    loop_impulses = system.loop_spread @ joint_impulses
    loss, work = exchanged(model, system, k, state, velocity, impulses)
    return Impact(velocity, impulses, loop_impulses, loss, rounds, work)


def exchange(
    rows: Array,
    spread: Array,
    u: Array,
    mu: Array,
    e: Array,
    law: str,
    limit: float,
    names: Sequence[str],
    quickly: Callable[[Array, Array], Array | None] | None = None,
    rounding: float = ENERGY_ROUNDING,
) -> tuple[Array, Array, int]:
    """Impulses at closed points until none closes faster than `limit`; speeds then, and rounds.

    `rows` (3n, m) and `spread` (m, 3n) are factors of their W, `u` (3n) their speeds. `quickly`, if
    given, finds impulses (3n) at some points for Newton's law, or None. Energy that the impulses
    make is refused beyond `rounding`, in parts of what they move at the fastest speed.
    """
    r, rounds, first = np.zeros(len(u)), 0, u
    while True:
        closing = u[::3] < -limit
        if not closing.any():
            _refuse_gain(r, first, u, law, names, rounding)
            return r, u, rounds
        rounds += 1
        one_by_one = law == "newton" and e[closing].any() and rounds < ROUNDS
        taking = np.repeat(closing if one_by_one else np.ones(len(mu), dtype=bool), 3)
        back = np.zeros_like(e) if law == "newton" and rounds > ROUNDS else e
        found = None
        if quickly is not None and law == "newton":
            found = quickly(taking[::3], _newton(u, back))
        if found is None:
            W, found = rows[taking] @ spread[:, taking], np.zeros(len(u))
            found[taking] = _impulses(W, u[taking], mu[taking[::3]], back[taking[::3]], law)
        r += found
        u = first + rows @ (spread @ r)
        if rounds > 2 * ROUNDS:
            worst = int(np.argmin(u[::3]))
            raise LCPError(
                f"impacts at one instant do not come to an end: contact {names[worst]!r} still "
                f"closes at {-u[3 * worst]:.3g} m/s after {rounds} rounds"
            )


def _refuse_gain(
    r: Array, before: Array, after: Array, law: str, names: Sequence[str], rounding: float
) -> None:
    """Raise if impulses do work on balance, r·(u⁻ + u⁺)/2: surfaces have no energy to give."""
    gain = 0.5 * float(r @ (before + after))
    fastest = max(float(np.abs(u).max(initial=0.0)) for u in (before, after))
    if gain > rounding * fastest * float(np.abs(r).sum()):
        worst = int(np.argmax(r[::3]))
        raise EnergyGainError(
            f"contact {names[worst]!r}: {law.capitalize()}'s restitution with friction would "
            f"make {gain:.3g} J out of nothing; use "
            f"{'restitution_law=poisson' if law == 'newton' else 'less restitution'}, or less "
            "friction"
        )


def exchanged(
    model: Model,
    system: Mechanism,
    k: ContactKinematics,
    state: tuple[Array, Array, float],
    after: Array,
    impulses: Array,
) -> tuple[float, float]:
    """Energy that contacts take at a jump of v to `after`, and the work of drives meanwhile.

    Contacts do the work Σ r·(u⁺ + u⁻)/2 with u = T v + drift, and loops ιᵀν; the rest of what the
    kinetic energy gains comes from what time moves.
    """
    q, v, t = state
    loss = 0.5 * (v @ system.H @ v - after @ system.H @ after)
    if not model.is_rheonomic:
        return float(loss), 0.0
    drift = np.column_stack([k.gap_rate, k.slip]) - k.T @ v
    loops = system.loop_spread @ np.einsum("nkv,nk->v", k.T, impulses)
    loss += loops @ system.loop_drift - np.sum(impulses * drift)
    kinetic = [totals_along(model, q, speed, t)[0] for speed in (v, after)]
    return float(loss), float(kinetic[1] - kinetic[0] + loss)


def _newton(u: Array, e: Array) -> Array:
    """What impulses must undo: speeds before, and their parts e where gaps close."""
    b = u.copy()
    b[::3] += e * np.minimum(u[::3], 0.0)
    return b


def _impulses(W: Array, u: Array, mu: Array, e: Array, law: str) -> Array:
    """Impulses at the points that take part."""
    if law == "newton":
        return _coulomb(W, _newton(u, e), mu)
    compression = _coulomb(W, u, mu)
    # Expansion: at least the part e of each normal impulse comes back, more only if needed.
    b = u + W @ compression
    back = np.zeros_like(compression)
    back[::3] = e * compression[::3]
    extra = _coulomb(W, b + W @ back, mu, least=back[::3])
    return compression + back + extra


def _coulomb(W: Array, b: Array, mu: Array, least: Array | None = None) -> Array:
    """Impulses with Coulomb's law; friction may also use the normal impulse `least`."""
    if not mu.any():
        r = np.zeros(len(b))
        r[::3] = solve_lcp(np.ascontiguousarray(W[::3, ::3]), b[::3].copy(), smallest=True).z
        return r
    if least is not None and least.any():
        return _with_friction_of(W, b, mu, least)
    try:
        return coulomb(W, b, mu).r.ravel()
    except LCPError as error:
        raise PainleveError(f"impact: {error}") from error


def _with_friction_of(W: Array, b: Array, mu: Array, least: Array) -> Array:
    """Impulses (r_n, r_t) with r_n ≥ 0 and |r_t| ≤ μ (r_n + least), by sweeps over the points."""
    w = ConeWorkspace.of_size(len(mu))
    w.W[...], w.b[...], w.mu[...] = W, b, mu
    w.u[::3] = least
    _expand(w)
    return w.r.copy()


@kernel
def expansion_kernel(w: Any) -> None:
    """r of `_with_friction_of`; `least` is in u, at the places of the normals."""
    n = w.mu.shape[0]
    for _ in range(EXPANSION_SWEEPS):
        change, size = 0.0, 0.0
        for i in range(n):
            at = 3 * i
            stiff = max(w.W[at + 1, at + 1], w.W[at + 2, at + 2])
            for k in range(3):
                total = w.b[at + k]
                for j in range(3 * n):
                    total += w.W[at + k, j] * w.r[j]
                if k == 0:
                    w.trial[0] = max(0.0, w.r[at] - total / w.W[at, at])
                    change = max(change, abs(w.trial[0] - w.r[at]))
                    w.r[at] = w.trial[0]
                elif stiff > 1e-13 * w.W[at, at]:
                    w.trial[k] = w.r[at + k] - total / stiff
                else:
                    w.trial[k] = 0.0
            limit = w.mu[i] * (w.r[at] + w.u[at])
            length = np.sqrt(w.trial[1] * w.trial[1] + w.trial[2] * w.trial[2])
            part = limit / length if length > limit else 1.0
            for k in range(1, 3):
                change = max(change, abs(part * w.trial[k] - w.r[at + k]))
                w.r[at + k] = part * w.trial[k]
            size = max(size, w.r[at] + w.u[at])
        if change <= 1e-14 * size:
            break


_expand = OnWorkspace(expansion_kernel, ConeWorkspace)
