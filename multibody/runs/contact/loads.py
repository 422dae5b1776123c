"""What contacts do to the energy of a run: stays in modes, forces in them, losses between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...checks import Array
from ...contact.geometry import GAP_FUNCTION
from ...contact.held import Held, least_forces
from ...contact.impacts import exchanged
from ...contact.kinematics import kinematics_at
from ...contact.response import mechanism_at
from .observe import ImpactEvent, impacts

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["ContactLoad", "Stay", "exchanged_at_instants", "stays_of"]


class ContactLoad(NamedTuple):
    """Contact forces at one state.

    Attributes
    ----------
    power
        Of the forces on both bodies: of friction, since gaps that carry forces do not open.
    wrenches
        On each body, in base coordinates.
    joint_forces
        Of gaps that are functions of q, which touch no body.
    """

    power: float
    wrenches: Array
    joint_forces: Array


@dataclass(frozen=True)
class Stay:
    """States of a run in one mode, from its beginning to its end, and the forces there."""

    t: Array
    y: Array
    sol: Callable[..., Array] | None
    load: Callable[[float, Array], ContactLoad]


def stays_of(model: Model, solution: Any) -> list[Stay]:
    """All stays of an event-driven run that take time.

    Raises
    ------
    ValueError
        If the run is no such one, or if states at its instants were not kept.
    """
    modes = getattr(getattr(solution, "problem", None), "contact_modes", None)
    if modes is None or not solution.parts:
        raise ValueError(
            f"{model.name!r} has rigid contacts: the books need a solution of an event-driven run "
            "(not of MoreauJean, nor from a file), such as solve(as_ivp(model, ...)) returns"
        )
    params = solution.problem.params
    values = modes.free.params if params is None else params
    found = []
    for part, stay in zip(solution.parts, solution.modes):
        whole = part.t.size and part.t[0] == stay.start and part.t[-1] == part.reached[0]
        if part.sol is not None:
            inner = part.t[(part.t > stay.start) & (part.t < part.reached[0])]
            t = np.array([stay.start, *inner, part.reached[0]])
            y = part.sol(t) if t[-1] > t[0] else np.column_stack([part.reached[1]] * 2)
        elif whole:
            t, y = part.t, part.y
        else:
            raise ValueError(
                "the books need the states just before and after impacts: solve with "
                "dense_output=True, or without t_eval"
            )
        held = modes.held.get(stay.mode, Held())
        found.append(Stay(t, y, part.sol if t[-1] > t[0] else None, _load(modes, held, values)))
    return found


def _load(modes: Any, held: Held, params: Any) -> Callable[[float, Array], ContactLoad]:
    """Contact forces of one mode as a function of (t, [q; v])."""
    model, contacts = modes.model, modes.contacts

    def load(t: float, y: Array) -> ContactLoad:
        wrenches, joint_forces = np.zeros((model.n_bodies, 6)), np.zeros(model.nv)
        if not held.points:
            return ContactLoad(0.0, wrenches, joint_forces)
        parts = modes.watch.forces(held, t, y, params).forces
        k = kinematics_at(model, y[: model.nq], y[model.nq :], t)
        for i in held.points:
            if contacts.kinds[i] == GAP_FUNCTION:
                joint_forces += k.T[i].T @ parts[i]
                continue
            force = parts[i, 0] * k.normal[i] + parts[i, 1:] @ k.tangents[i]
            wrench = np.concatenate([np.cross(k.point[i], force), force])
            a, b = contacts.bodies[i]
            if b >= 0:
                wrenches[b] += wrench
            if a >= 0:
                wrenches[a] -= wrench
        speed = np.column_stack([k.gap_rate, k.slip])
        return ContactLoad(float(np.sum(parts * speed)), wrenches, joint_forces)

    return load


def exchanged_at_instants(model: Model, solution: Any, stays: list[Stay]) -> list[dict[str, float]]:
    """What is exchanged between each stay and the next: nothing where no velocity jumps.

    "impacts" is what the contacts take by the law of impact, and "drives" the work of what time
    moves against the impulses. Where bounces are too low to be seen the last of them come after
    that, all at once: as impulses at the points that are held from then on.
    """
    hits: dict[float, list[ImpactEvent]] = {}
    for hit in impacts(model, solution):
        hits.setdefault(hit.t, []).append(hit)
    modes, found = solution.problem.contact_modes, []
    for part, stay, after in zip(solution.parts, solution.modes[1:], stays[1:]):
        t, y = part.reached
        v, total = y[model.nq :], {"impacts": 0.0, "drives": 0.0}
        if hits.get(t):
            result = hits[t].pop(0).result
            v = result.velocities
            total = {"impacts": -result.energy_loss, "drives": result.drive_work}
        held = modes.held.get(stay.mode, Held())
        loss, work = _put_to_rest(model, held, (y[: model.nq], v, t), after.y[model.nq :, 0])
        found.append({"impacts": total["impacts"] - loss, "drives": total["drives"] + work})
    return [*found, {}]


def _put_to_rest(
    model: Model, held: Held, state: tuple[Array, Array, float], after: Array
) -> tuple[float, float]:
    """Loss, and work of drives, where held points make v jump to `after`."""
    rows = held.rows()
    if not rows or np.array_equal(state[1], after):
        return 0.0, 0.0
    q, v, t = state
    k, system = kinematics_at(model, q, v, t), mechanism_at(model, q, v, None, None, t)
    R = k.T.reshape(-1, model.nv)[rows]
    impulses = np.zeros(3 * len(k.gap))
    impulses[rows] = least_forces(R @ system.spread @ R.T, R @ (after - v))
    return exchanged(model, system, k, state, after, impulses.reshape(-1, 3))
