"""The rotor shortcut: fast rotors as armature of the joints that they drive (book, §9.6).

A rotor that turns ρ times as fast as a joint is a body of its own on its carrier, with a gear. The
shortcut fixes it to the carrier and adds ρ² times its inertia about its axis to the joint's own
diagonal entry of H. It leaves out what the spin ρ q̇ does while the carrier turns: gyroscopic
couples, and the terms ρ I of H that couple the joint with the carrier. How large these are depends
on the machine; so the shortcut tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...checks import Array
from ...joints import Fixed, Revolute
from ...model import Body
from ...model.gearing import LinearGear
from ..functions import ID, crba

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["RotorShortcut", "rotor_shortcut"]

#: States at which a model and its shortcut are compared.
SAMPLES = 20


class RotorShortcut(NamedTuple):
    """A model without rotors as bodies that move, and what that costs.

    Attributes
    ----------
    model
        With the rotors fixed to their carriers; its variables are those of the joints that are
        left, in their order.
    rotors
        Names of the bodies that were replaced.
    inertia_error, force_error
        Largest difference of entries of H, and of velocity and gravity forces C, at positions and
        velocities (of size 1) drawn at random, in parts of the largest entry.
    """

    model: Model
    rotors: tuple[str, ...]
    inertia_error: float
    force_error: float


def rotor_shortcut(
    model: Model, rotors: Sequence[str] | None = None, *, seed: int = 0
) -> RotorShortcut:
    """Replace rotors by armature, and tell what that leaves out.

    Parameters
    ----------
    model
        With rotors that linear gears drive from one joint each (``add_gear``).
    rotors
        Names of the bodies to replace; all that can be if not given.

    Raises
    ------
    ValueError
        For a body that is no such rotor: it carries something, has a spring or stops, hangs on
        another joint than `Revolute`, or its gear has more than one driver.

    Examples
    --------
    A motor on the ground moves one joint through a gear of 50 to 1: nothing is lost.

    >>> from multibody import Inertia, ModelBuilder, Revolute, rod
    >>> b = ModelBuilder()
    >>> _ = b.add_body("link", 0, Revolute("y"), inertia=rod((0, 0, 0), (1, 0, 0), mass=2.0))
    >>> flat = Inertia(0.1, (0, 0, 0), (5e-5, 1e-4, 5e-5))
    >>> _ = b.add_body("rotor", 0, Revolute("y"), inertia=flat)
    >>> b.add_gear("gear", "rotor", {"link": 50.0})
    >>> found = rotor_shortcut(b.build())
    >>> found.model.bodies[0].armature, found.inertia_error < 1e-12
    (array([0.25]), True)
    """
    gears: dict[str, Any] = {
        c.function.driven: c
        for c in model.constraints
        if isinstance(c.function, LinearGear) and len(c.function.drivers) == 1
    }
    if rotors is None:
        chosen = [name for name in gears if _obstacle(model, name, gears) is None]
    else:
        chosen = [rotors] if isinstance(rotors, str) else list(rotors)
    bodies = {body.name: body for body in model.bodies}
    for name in chosen:
        obstacle = _obstacle(model, name, gears)
        if obstacle is not None:
            raise ValueError(
                f"rotor_shortcut: {name!r} is no rotor that can be replaced: {obstacle}"
            )
        rotor, gear = bodies[name], gears[name]
        driver, ratio = bodies[gear.function.drivers[0]], gear.parameters[0]
        axis = rotor.joint.axis
        spin = float(axis @ rotor.inertia.rotational @ axis + rotor.armature[0])
        bodies[driver.name] = replace(
            driver,
            armature=driver.armature + ratio**2 * spin,
            damping=driver.damping + ratio**2 * rotor.damping[0],
        )
        X, inertia, turned = rotor.placement, rotor.inertia, rotor.reverse
        bodies[name] = Body(name, rotor.parent, Fixed(), X, inertia, turned)
    gone = {gears[name].name for name in chosen}
    short = replace(
        model,
        bodies=tuple(bodies[body.name] for body in model.bodies),
        constraints=tuple(c for c in model.constraints if c.name not in gone),
    )
    pairs = [(name, gears[name].function.drivers[0], *gears[name].parameters) for name in chosen]
    return RotorShortcut(short, tuple(chosen), *_errors(model, short, pairs, seed))


def _obstacle(model: Model, name: str, gears: dict[str, Any]) -> str | None:
    """Why a body cannot be replaced; None if it can."""
    number = model.number(name)
    if name not in gears:
        return "no gear with one driver moves it"
    body = model.bodies[number - 1]
    driver = gears[name].function.drivers[0]
    if driver not in model._numbers or model.bodies[model.number(driver) - 1].joint.nv != 1:
        return "its driver is not the joint of a body with one freedom"
    if driver in gears:
        return "its driver is driven itself"
    if not isinstance(body.joint, Revolute):
        return f"it hangs on {body.joint!r}, expected Revolute"
    if any(other.parent == number for other in model.bodies):
        return "it carries other bodies"
    held = [n for c in model.loops for n in (c.predecessor, c.successor)]
    held += [n for s in model.springs for n in (s.body_a, s.body_b)]
    held += [n for c in model.contacts for n in (c.body_a, c.body_b)]
    held += [n for c in model.constraints for n, _ in c.points]
    if number in held:
        return "a loop, spring, contact or constraint holds it"
    first = model.tree.arrays["loop_at"][len(model.loops)]
    place = model.v_index[number - 1].start
    if int(model.tree.reach[first:, place].sum()) != 1:
        return "other constraints move it, too"
    if body.stiffness.any() or np.isfinite(body.limits[:, :2]).any():
        return "it has a spring or stops"
    if model.elements:
        return "force elements of the model may act on it"
    return None


def _errors(
    model: Model, short: Model, pairs: list[tuple[str, str, float, float]], seed: int
) -> tuple[float, float]:
    """Differences of H and C, with the gears of the full model put in."""
    rng = np.random.default_rng(seed)
    kept_q = [model.q_names.index(name) for name in short.q_names]
    kept_v = [model.v_names.index(name) for name in short.v_names]
    inertia, force = [0.0], [0.0]
    for _ in range(SAMPLES):
        q, v = short.random(rng), rng.uniform(-1.0, 1.0, short.nv)
        full_q, G = np.zeros(model.nq), np.zeros((model.nv, short.nv))
        full_q[kept_q] = q
        G[kept_v, np.arange(short.nv)] = 1.0
        for name, driver, ratio, offset in pairs:
            of, by = model.number(name) - 1, model.number(driver) - 1
            full_q[model.q_index[of]] = ratio * full_q[model.q_index[by]] + offset
            G[model.v_index[of]] = ratio * G[model.v_index[by]]
        H = G.T @ crba(model, full_q) @ G
        C = G.T @ ID(model, full_q, G @ v, np.zeros(model.nv))
        inertia.append(_difference(crba(short, q), H))
        force.append(_difference(ID(short, q, v, np.zeros(short.nv)), C))
    return max(inertia), max(force)


def _difference(found: Array, right: Array) -> float:
    size = float(np.abs(right).max(initial=0.0))
    return float(np.abs(found - right).max(initial=0.0)) / size if size > 0.0 else 0.0
