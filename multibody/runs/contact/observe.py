"""Contact forces and impacts along a solution."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...checks import Array
from ...contact.accelerations import CLOSED_GAP, CLOSED_SPEED
from ...contact.impacts import Impact, impact
from ...contact.kinematics import kinematics_at
from ...contact.workspace import contacts_of
from ...dynamics.loops.loads.reactions import JointReactions
from .modes import FREE, SETTLE
from .reacting import loaded_reactions, with_contacts

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["ContactObservation", "ImpactEvent", "contact_forces", "impacts"]


class ContactObservation(NamedTuple):
    """Contacts along a solution, at its times.

    Attributes
    ----------
    t
        Times.
    names
        Of the contact points.
    gap
        (n, m): gaps.
    force
        (m, n, 3): force of each point on its body b, in base coordinates.
    normal_force, friction
        (n, m): size of the two parts.
    point
        (m, n, 3): where they act.
    q, v
        Positions and velocities.
    loads
        What acted at each time: joint forces, and wrenches on the bodies with those of contacts.
    """

    t: Array
    names: tuple[str, ...]
    gap: Array
    force: Array
    normal_force: Array
    friction: Array
    point: Array
    q: Array
    v: Array
    model: Any
    loads: Any

    @property
    def reactions(self) -> JointReactions:
        """Wrenches in all joints, (6, n_t) each, under all forces, those of contacts among them."""
        return loaded_reactions(self)


class ImpactEvent(NamedTuple):
    """An impact of a run: when, at which points, and what it did."""

    t: float
    names: tuple[str, ...]
    result: Impact


def contact_forces(model: Model, solution: Any, shown: Any = None) -> ContactObservation:
    """Forces at all contact points along a solution of an event-driven run.

    Parameters
    ----------
    model, solution
        The model, and a solution of its problem.
    shown
        Anything with fields t and y: other times of the run, and the states there.

    Examples
    --------
    >>> import multibody as mb
    >>> b = mb.ModelBuilder()
    >>> _ = b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.sphere(mass=2.0, radius=0.1))
    >>> b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1))
    >>> model = b.build()
    >>> solution = mb.simulate(model, [0.5], T=1.0)
    >>> contact_forces(model, solution).normal_force[0, -1].round(9)
    np.float64(19.62)
    """
    contacts, nq = contacts_of(model), model.nq
    modes = getattr(solution.problem, "contact_modes", None)
    if modes is None:
        raise ValueError(
            "contact_forces: expected a solution of an event-driven run of a model with rigid "
            "contacts, such as simulate(model, ...) returns"
        )
    given = solution if shown is None else shown
    times, states = np.asarray(given.t), np.asarray(given.y)
    m = len(times)
    gap, force = np.zeros((contacts.n, m)), np.zeros((m, contacts.n, 3))
    parts, point = np.zeros((m, contacts.n, 3)), np.zeros((m, contacts.n, 3))
    p = modes.free.params if solution.problem.params is None else solution.problem.params
    keys = _keys_at(solution, times)
    loads = []
    for j, (t, key) in enumerate(zip(times, keys)):
        y = np.ascontiguousarray(states[:, j])
        if key not in (FREE, SETTLE):
            parts[j] = modes.watch.forces(modes.held[key], float(t), y, p).forces
        k = kinematics_at(model, y[:nq], y[nq:], float(t))
        frames = np.concatenate([k.normal[:, None], k.tangents], axis=1)
        force[j] = np.einsum("nk,nkx->nx", parts[j], frames)
        gap[:, j], point[j] = k.gap, k.point
        given = modes.given_forces(float(t), y[:nq], y[nq:], p)
        loads.append(with_contacts(model, k, parts[j], *given))
    normal, friction = parts[:, :, 0].T, np.hypot(parts[:, :, 1], parts[:, :, 2]).T
    names = tuple(contacts.names)
    return ContactObservation(
        *(times, names, gap, force, normal, friction, point, states[:nq], states[nq:]),
        *(replace(model, contacts=()), loads),
    )


def _keys_at(solution: Any, times: Array) -> list[Any]:
    """Mode of each output: of two at one time, the first belongs to the earlier mode."""
    stays = [stay for stay in solution.modes if stay.end > stay.start] or list(solution.modes)
    keys, at = [], 0
    for j, t in enumerate(times):
        while at + 1 < len(stays) and t > stays[at].end:
            at += 1
        if at + 1 < len(stays) and t == stays[at].end and j and times[j - 1] == t:
            at += 1
        keys.append(stays[at].mode)
    return keys


def impacts(model: Model, solution: Any) -> list[ImpactEvent]:
    """All impacts of an event-driven run, computed again from the states before them."""
    modes = getattr(solution.problem, "contact_modes", None)
    if modes is None:
        raise ValueError("impacts: expected a solution of a model with rigid contacts")
    nq, found = model.nq, []
    contacts = contacts_of(model)
    for part in solution.parts:
        if part.reached is None:
            continue
        t, y = part.reached
        k = kinematics_at(model, y[:nq], y[nq:], t)
        closed = k.gap <= CLOSED_GAP * contacts.length
        if (k.gap_rate[closed] < -CLOSED_SPEED * contacts.speed).any():
            result = impact(model, model.normalise(y[:nq]), y[nq:], t=t, law=modes.law)
            hit = tuple(contacts.names[i] for i in np.flatnonzero(result.impulses[:, 0] > 0.0))
            found.append(ImpactEvent(float(t), hit, result))
    return found
