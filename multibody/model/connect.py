"""From bodies and joints in any arrangement to a tree with loops (book, §4.1–4.2).

A joint connects a frame on its predecessor with a frame on its successor, X_P and X_S. In a tree
the frame of each body is the one that its tree joint has on it, so a body whose joint sits
elsewhere gets a new frame, and everything fixed to it is expressed there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..algebra.inertia import RigidInertia
from ..algebra.plucker import Plucker
from ..checks import Array
from ..joints import Free, Joint
from .graph import BASE, Graph
from .rules import force_elements

__all__ = ["Connection", "Entry", "connect", "floating"]


@dataclass
class Entry:
    """A body with its place in a tree, not numbered yet."""

    parent: str
    joint: Joint
    placement: Plucker
    inertia: RigidInertia
    reverse: bool
    forces: dict[str, Array]

    def connection(self, name: str) -> Connection:
        """The same as a joint of a graph."""
        ends, frames = (self.parent, name), (self.placement, Plucker.identity())
        if self.reverse:
            ends, frames = ends[::-1], frames[::-1]
        return Connection(*ends, self.joint, *frames, self.forces, True)


@dataclass
class Connection:
    """A joint of a graph; `tree` says whether it must (or must not) belong to the tree."""

    predecessor: str
    successor: str
    joint: Joint
    X_P: Plucker
    X_S: Plucker
    forces: dict[str, Array] = field(default_factory=dict)
    tree: bool | None = None


def connect(
    entries: Mapping[str, Entry],
    declared: Mapping[str, RigidInertia],
    joints: Mapping[str, Connection],
    order: list[str],
) -> tuple[dict[str, Entry], dict[str, Connection], dict[str, Plucker]]:
    """Choose a spanning tree and hang all bodies on it.

    Parameters
    ----------
    entries
        Bodies with a parent; their joints belong to the tree.
    declared
        Inertias of bodies without one.
    joints
        Joints between any two bodies.
    order
        All bodies, in the order in which they are to be numbered where that is possible.

    Returns
    -------
    entries, loops, shifts
        All bodies as entries of a tree; the joints left over; and for each body the transform
        from the frame in which it was described to its frame in the tree.
    """
    shared = sorted(set(entries) & set(joints))
    if shared:
        raise ValueError(
            f"joint {shared[0]!r}: a body added with its joint has this name, and the joint has it "
            "too; choose another"
        )
    everything = {**{name: e.connection(name) for name, e in entries.items()}, **joints}
    graph = Graph({n: (c.predecessor, c.successor) for n, c in everything.items()}, order)
    chosen = graph.spanning_tree(
        [name for name, c in everything.items() if c.tree is True],
        [name for name, c in everything.items() if c.tree is False],
    )
    shifts = {BASE: Plucker.identity()}
    result: dict[str, Entry] = {}
    for i, body in enumerate(chosen.bodies, 1):
        name = chosen.joints[i - 1]
        c = everything[name]
        reverse = chosen.is_reversed(i)
        parent = c.successor if reverse else c.predecessor
        here, there = (c.X_P, c.X_S) if reverse else (c.X_S, c.X_P)
        shifts[body] = here
        inertia = entries[body].inertia if body in entries else declared[body]
        result[body] = Entry(
            parent,
            c.joint,
            moved(there, shifts[parent]),
            inertia if is_identity(here) else here.apply(inertia),
            reverse,
            c.forces,
        )
    loops: dict[str, Connection] = {}
    for name in chosen.joints[chosen.n_bodies :]:
        c = everything[name]
        if any(_acts(key, value) for key, value in c.forces.items()):
            raise ValueError(
                f"joint {name!r} closes a loop, and loop joints have no armature, damping, spring "
                "or stops; give it tree=True, so that another joint closes the loop"
            )
        loops[name] = c
    return {name: result[name] for name in order}, loops, shifts


def floating(
    entries: Mapping[str, Entry], joints: Mapping[str, Connection], order: list[str]
) -> dict[str, Connection]:
    """Free joints for bodies that nothing connects with the base, one for each group of them."""
    ends = [(entry.parent, name) for name, entry in entries.items()]
    ends += [(c.predecessor, c.successor) for c in joints.values()]
    found: dict[str, Connection] = {}
    reached = {BASE}
    for body in [BASE, *order]:
        if body not in reached:
            name = f"free joint of {body}"
            same = Plucker.identity()
            forces = force_elements(name, Free())
            found[name] = Connection(BASE, body, Free(), same, same, forces, True)
            reached.add(body)
        growing = True
        while growing:
            new = {b for pair in ends if reached & set(pair) for b in pair} - reached
            reached |= new
            growing = bool(new)
    return found


def moved(X: Plucker, shift: Plucker) -> Plucker:
    """Transform X from a body's new frame, where `shift` leads from its old frame to the new."""
    return X if is_identity(shift) else X.apply(shift.inverse())


def is_identity(X: Plucker) -> bool:
    """Whether a transform changes nothing at all."""
    return bool(np.array_equal(X.E, np.eye(3)) and not X.r.any())


def _acts(key: str, value: Any) -> bool:
    return bool(np.isfinite(value[:, :2]).any() if key == "limits" else np.any(value != 0.0))
