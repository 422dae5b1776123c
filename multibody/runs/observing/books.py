"""Energies and powers of a mechanism at one state: the books from which the ledger is summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...dynamics.acting import acting
from ...dynamics.functions import FD, position_rate, tree_joint_forces
from ...dynamics.loops.closed_loop import constrained_accelerations, constraints
from ...dynamics.loops.constraints.joints import LoopElement, acting_elements, placed
from ...dynamics.loops.loads.forces import loop_forces, point_forces
from ...dynamics.motion import Kinematics, energy, kinematics, run_forward
from ...dynamics.storage.loading import load
from ..contact.loads import ContactLoad
from ..forces import given_external_forces, given_joint_forces

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["ENTRIES", "PARTS", "Account", "Books"]

#: Entries of `EnergyLedger.power` and `EnergyLedger.work`; constraints are the last.
ENTRIES = (
    "actuators", "loop actuators", "dampers", "loop dampers", "drives", "external", "friction",
    "impacts", "elements", "constraints",
)  # fmt: skip


@dataclass(frozen=True)
class Account:
    """Everything at one state."""

    energies: dict[str, float]
    powers: Array
    drives: dict[str, float]
    slope: Array
    elements: dict[str, tuple[float, float]]


def _without_loops(model: Model, keep: str) -> Model:
    """Return a model whose potential is that of one part alone."""
    no_stops = np.array([-np.inf, np.inf, 0.0, 0.0])
    bodies = model.bodies
    if keep != "joint springs":
        bodies = tuple(
            replace(b, stiffness=np.zeros(b.joint.nv), limits=np.tile(no_stops, (b.joint.nv, 1)))
            for b in bodies
        )
    return replace(
        model,
        bodies=bodies,
        loops=(),
        springs=model.springs if keep == "point springs" else (),
        elements=(),
        gravity=model.gravity if keep == "gravity" else np.zeros(3),
    )


#: Potentials that belong to the model itself.
PARTS = ("gravity", "joint springs", "point springs")


class Books:
    """A model, and the forces that act on it."""

    def __init__(
        self,
        model: Model,
        tau: Any,
        f_ext: Any,
        elements: Sequence[LoopElement],
        contact: Callable[[float, Array], ContactLoad] | None = None,
    ) -> None:
        self.model, self.contact = model, contact
        self.tau_law, self.params = given_joint_forces(model, tau)
        self.force_law = given_external_forces(model, f_ext)
        #: Books that hold up to instants at which forces jump; these hold from then on.
        self.jumps: dict[float, Books] = {}
        self.named = [named.name for named in model.elements]
        self.elements = acting_elements(model, elements)
        self.parts = {name: _without_loops(model, name) for name in PARTS}
        self.tree_drives = [i for i, b in enumerate(model.bodies) if b.joint.is_rheonomic]
        self.loop_drives = [k for k, c in enumerate(model.loops) if c.joint.is_rheonomic]
        self.driven = [model.bodies[i].name for i in self.tree_drives]
        self.driven += [model.loops[k].name for k in self.loop_drives]
        self.driven += [c.name for c in model.constraints if c.is_rheonomic]

    def account(self, t: float, x: Array) -> Account:
        """Energies, powers and ẋ at one state."""
        model = self.model
        q, v = model.normalise(x[: model.nq]), np.ascontiguousarray(x[model.nq :])
        tau = np.zeros(model.nv)
        if self.tau_law is not None:
            tau = np.asarray(self.tau_law(t, q, v, self.params), dtype=float)
        outside = np.zeros((model.n_bodies, 6))
        if self.force_law is not None:
            outside = np.asarray(self.force_law(t, q, v), dtype=float)
        moving = kinematics(model, q, v, t=t)
        velocities = _in_base(moving)
        drives = dict.fromkeys(self.driven, 0.0)
        power = dict.fromkeys(ENTRIES, 0.0)
        power["actuators"] = float(tau @ v)
        power["external"] = float(np.sum(outside * velocities[1:]))
        power["dampers"] = self._dampers(q, v, moving)
        forces, stored = self._elements(t, q, v, power, drives)
        forces = forces + outside
        acts: dict[str, tuple[float, float]] = {}
        if self.named:
            acted = acting(model, t, q, v)
            for name in self.named:
                pushed = float(acted.joint_forces(name) @ v)
                pushed += float(np.sum(acted.wrenches(name) * velocities[1:]))
                acts[name] = pushed, float(acted.parts[name].energy)
            power["elements"] = sum(pushed for pushed, _ in acts.values())
            tau, forces = tau + acted.joint_forces(), forces + acted.wrenches()
        if self.contact is not None:
            touch = self.contact(t, np.concatenate([q, v]))
            power["friction"] = touch.power
            forces, tau = forces + touch.wrenches, tau + touch.joint_forces
        if model.bonds:
            found = constrained_accelerations(model, q, v, tau, forces, t=t)
            a = found.accelerations
            reactions = loop_forces(model, q, found.multipliers, t=t)
            self._loops(t, q, v, found.multipliers, reactions, velocities, power, drives)
            for loop in model.loops:
                _add(forces, loop, reactions[loop.name])
            forces = forces + point_forces(model, q, found.multipliers, t)
        else:
            a = FD(model, q, v, tau, forces, t=t)
        self._tree_drives(t, q, v, a, forces, drives)
        power["drives"] = sum(drives.values())
        energies = {
            name: energy(part, q[: part.nq], t=t).potential for name, part in self.parts.items()
        }
        energies |= {"kinetic": energy(model, q, v, t=t).kinetic, "loop springs": stored}
        slope = np.concatenate([position_rate(model, q, v, t=t), a])
        powers = np.array([power[name] for name in ENTRIES])
        return Account(energies, powers, drives, slope, acts)

    def _dampers(self, q: Array, v: Array, moving: Kinematics) -> float:
        """Power of dampers in joints, in stops that are touched, and between points."""
        model, total = self.model, 0.0
        for body, iq, iv in zip(model.bodies, model.q_index, model.v_index):
            total -= float(np.sum(body.damping * v[iv] ** 2))
            if body.limits[:, 3].any():
                total += _stop_dampers(body.limits, q[iq], v[iv])
        for spring in model.springs:
            if spring.damping == 0.0:
                continue
            ends = []
            for i, point in ((spring.body_a, spring.point_a), (spring.body_b, spring.point_b)):
                R, turn = moving.poses[i].R, moving.velocities[i]
                place = R @ point + moving.poses[i].p
                ends.append((place, R @ (turn[3:] + np.cross(turn[:3], point))))
            along, speed = ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]
            total -= spring.damping * float(along @ speed) ** 2 / float(along @ along)
        return total

    def _elements(
        self, t: float, q: Array, v: Array, power: dict[str, float], drives: dict[str, float]
    ) -> tuple[Array, float]:
        """Wrenches of the elements on the bodies, and the energy of their springs."""
        forces, stored = np.zeros((self.model.n_bodies, 6)), 0.0
        if not self.elements:
            return forces, stored
        w = placed(self.model, q, v, t)
        for element in self.elements:
            action, loop = element.at(w), self.model.loops[element.number]
            speed, force = action.velocity, action.force
            power["loop actuators"] += float(np.dot(action.actuator, speed))
            power["loop dampers"] += float(np.dot(action.damper, speed))
            if loop.joint.is_rheonomic:
                drives[loop.name] += float(np.dot(force, action.bias))
            stored += float(action.energy)
            _add(forces, loop, action.wrench(force).astype(float))
        return forces, stored

    def _loops(
        self,
        t: float,
        q: Array,
        v: Array,
        multipliers: Array,
        reactions: dict[str, Array],
        velocities: Array,
        power: dict[str, float],
        drives: dict[str, float],
    ) -> None:
        """Power of the loops' constraint forces: of drives λᵀν, the rest λᵀ(Kv − ν)."""
        c = constraints(self.model, q, v, t=t)
        gap_rate = multipliers * (c.K @ v - c.nu)
        at = self.model.tree.arrays["loop_at"]
        for k, loop in enumerate(self.model.loops):
            relative = velocities[loop.successor] - velocities[loop.predecessor]
            total = float(reactions[loop.name] @ relative)
            rest = float(gap_rate[at[k] : at[k + 1]].sum()) if k in self.loop_drives else total
            power["constraints"] += rest
            if k in self.loop_drives:
                drives[loop.name] += total - rest
        for k, stated in enumerate(self.model.constraints, len(self.model.loops)):
            rows = slice(at[k], at[k + 1])
            power["constraints"] += float(gap_rate[rows].sum())
            if stated.is_rheonomic:
                drives[stated.name] += float(multipliers[rows] @ c.nu[rows])

    def _tree_drives(
        self, t: float, q: Array, v: Array, a: Array, forces: Array, drives: dict[str, float]
    ) -> None:
        """Force that a driven joint passes on, times the velocity that time gives it."""
        if not self.tree_drives:
            return
        passed = tree_joint_forces(self.model, load(self.model, q, v, t), a, forces)
        w = load(self.model, q, None, t)
        run_forward(w)
        given = self.model.tree.to_body(w.v_J)
        for i in self.tree_drives:
            drives[self.model.bodies[i].name] += float(passed[i] @ given[i])


def _stop_dampers(limits: Array, q: Array, v: Array) -> float:
    """Power of the dampers in stops: of what these push, all but the springs' part.

    A stop that the joint leaves faster than it can follow pushes with nothing; what its spring then
    gives back stays in its damper.
    """
    lower, upper, stiffness, damping = limits.T
    total = 0.0
    for depth, speed in ((lower - q, -v), (q - upper, v)):
        spring = stiffness * np.maximum(depth, 0.0)
        push = np.where(depth > 0.0, np.maximum(spring + damping * speed, 0.0), 0.0)
        total += float(np.sum((spring - push) * speed))
    return total


def _in_base(moving: Kinematics) -> Array:
    """Spatial velocities in base coordinates, a row for each body; the base is row 0."""
    rows = []
    for pose, velocity in zip(moving.poses, moving.velocities):
        angular = pose.R @ velocity[:3]
        rows.append(np.concatenate([angular, pose.R @ velocity[3:] + np.cross(pose.p, angular)]))
    return np.array(rows)


def _add(forces: Array, loop: Any, wrench: Array) -> None:
    """Add a wrench on the successor of a loop joint, and the opposite on its predecessor."""
    if loop.successor:
        forces[loop.successor - 1] += wrench
    if loop.predecessor:
        forces[loop.predecessor - 1] -= wrench
