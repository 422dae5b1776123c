"""Contact forces and impacts along a solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...checks import Array
from ...contact.accelerations import CLOSED_GAP, CLOSED_SPEED
from ...contact.impacts import Impact, impact
from ...contact.kinematics import contact_kinematics, kinematics_at, need_contacts
from ...contact.workspace import contacts_of
from ...dynamics.acting import look
from ...dynamics.loops.loads.reactions import JointReactions
from ...dynamics.motion import totals_along
from .modes import FREE, SETTLE
from .moreau import MoreauJean
from .reacting import loaded_reactions, with_contacts, without_rigid

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
        What acted at each time: joint forces, and wrenches on the bodies with those of contacts;
        None where that is not known.
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

    @property
    def energy(self) -> Array:
        """Kinetic and potential energy, (2, n_t), in J."""
        states = zip(self.t, self.q.T, self.v.T)
        return np.array([totals_along(self.model, q, v, float(t))[:2] for t, q, v in states]).T


class ImpactEvent(NamedTuple):
    """An impact of a run: when, at which points, and what it did."""

    t: float
    names: tuple[str, ...]
    result: Impact


def contact_forces(
    model: Model, solution: Any, shown: Any = None, given: Any = None
) -> ContactObservation:
    """Forces at all contact points along a solution.

    Of a run in time steps (MoreauJean), which knows impulses only, the force at a state is the mean
    over the step that begins there: large where that step has an impact.

    Parameters
    ----------
    model, solution
        The model, and a solution of its problem.
    shown
        Anything with fields t and y: other times of the run, and the states there.
    given
        Joint forces and external forces as one function of (t, q, v, p), for reactions; of rigid
        contacts the solution knows them.

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
    problem, modes = solution.problem, getattr(solution.problem, "contact_modes", None)
    need_contacts(model, every=True)
    if model.rigid_contacts and modes is None:
        raise ValueError(
            "contact_forces: expected a solution of a model with rigid contacts, such as "
            "simulate(model, ...) returns, and not from a file"
        )
    if modes and (unknown := {stay.mode for stay in solution.modes} - modes.known):
        raise ValueError(
            f"contact_forces: the problem does not know the mode {min(unknown)!r} of the solution: "
            "files do not keep which points were held how. solve(problem) makes the run again"
        )
    p = getattr(problem, "params", None)
    if modes is not None:
        p, given = modes.free.params if p is None else p, modes.given_forces
    seen = solution if shown is None else shown
    times, states = np.asarray(seen.t), np.asarray(seen.y)
    nq, n, every = model.nq, model.nq + model.nv, contacts_of(model, every=True)
    rigid = np.array([c.law is None for c in every.contacts])
    if modes is None:
        forces = _none
    else:
        forces = _in_modes(modes, solution, times) if solution.modes else _in_steps(modes, solution)
    gap, force, normal, friction, point, loads = [], [], [], [], [], []
    for j, t in enumerate(map(float, times)):
        y = np.ascontiguousarray(states[:n, j])
        q, v = y[:nq], y[nq:]
        k = contact_kinematics(model, model.normalise(q), v, t=t)
        frames = np.concatenate([k.normal[:, None], k.tangents], axis=1)
        parts = np.zeros((every.n, 3))
        parts[rigid] = forces(j, t, y, p)
        if given is not None:
            loads.append(with_contacts(model, k, parts, *given(t, q, v, p)))
        yielding = [at for c in model.contacts if c.law for at in _soft(model, c.name, t, q, v)]
        for i, at in zip(np.flatnonzero(~rigid), yielding):
            parts[i] = frames[i] @ at.force
        gap.append(k.gap)
        point.append(k.point)
        force.append(np.einsum("nk,nkx->nx", parts, frames))
        normal.append(parts[:, 0])
        friction.append(np.hypot(parts[:, 1], parts[:, 2]))
    return ContactObservation(
        *(times, tuple(every.names), np.array(gap).T, np.array(force), np.array(normal).T),
        *(np.array(friction).T, np.array(point), states[:nq], states[nq:n]),
        *(without_rigid(model), None if given is None else loads),
    )


def _none(j: int, t: float, y: Array, p: Any) -> Array:
    return np.zeros((0, 3))


def _soft(model: Model, name: str, t: float, q: Array, v: Array) -> list[Any]:
    """Points of a contact that yields, where the state is."""
    here = look(model, t, q, v, name)
    return list(here.element.points(here))


def _in_modes(modes: Any, solution: Any, times: Array) -> Callable[..., Array]:
    """Forces along normals and tangents (n, 3) at output j, in the mode that it belongs to."""
    keys = _keys_at(solution, times)

    def forces(j: int, t: float, y: Array, p: Any) -> Array:
        if keys[j] in (FREE, SETTLE):
            return np.zeros((modes.contacts.n, 3))
        return np.asarray(modes.watch.forces(modes.held[keys[j]], t, y, p).forces)

    return forces


def _in_steps(modes: Any, solution: Any) -> Callable[..., Array]:
    """The same as means over the step that begins there."""
    stepper, nq = MoreauJean(modes).stepper, modes.model.nq
    h = float(np.max(solution.h, initial=0.0))
    if not h > 0.0:
        raise ValueError(f"contact_forces: {solution!r} has no steps; run for some time")

    def forces(j: int, t: float, y: Array, p: Any) -> Array:
        found, out = stepper.step(t, y[:nq], y[nq:], h, p), np.zeros((modes.contacts.n, 3))
        out[found.contacts] = found.impulses / h
        return out

    return forces


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
    if not solution.modes:
        raise ValueError(
            "impacts: MoreauJean locates none, it has impulses of whole steps; use contact_forces, "
            "or solve by any other method"
        )
    if not solution.parts:
        raise ValueError(
            "impacts: a solution from a file has lost the states before its impacts; make the run "
            "again, solve(problem)"
        )
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
