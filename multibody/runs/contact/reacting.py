"""Reactions in joints along runs with contacts, whose forces are external ones to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...contact.workspace import contacts_of
from ...dynamics.loops.loads.reactions import JointReactions, joint_reactions
from ..observing.reactions import together

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["loaded_reactions", "with_contacts", "without_rigid"]


def without_rigid(model: Model) -> Model:
    """The model with those contacts only that are elements."""
    return replace(model, contacts=tuple(c for c in model.contacts if c.law is not None))


def loaded_reactions(seen: Any) -> JointReactions:
    """Wrenches in all joints of an observation, whose `loads` say what acted at each time."""
    if seen.loads is None:
        raise ValueError("reactions: the forces that acted are not known; use solution.observed")
    found = [
        joint_reactions(seen.model, seen.model.normalise(q), v, *load, t=float(t))
        for t, q, v, load in zip(seen.t, seen.q.T, seen.v.T, seen.loads)
    ]
    return together(seen.model, found)


def with_contacts(model: Model, k: Any, parts: Array, tau: Any, f_ext: Any) -> tuple[Array, Array]:
    """Joint forces, and wrenches on all bodies in base coordinates: those given, and contacts'.

    `parts` are their forces along normal and tangents. Those of gap functions, which belong to no
    body, are joint forces.
    """
    joint_force = np.zeros(model.nv) if tau is None else np.array(tau, dtype=float)
    out = np.zeros((model.n_bodies, 6)) if f_ext is None else np.array(f_ext, dtype=float)
    pairs = contacts_of(model, every=True).bodies
    frames = np.concatenate([k.normal[:, None], k.tangents], axis=1)
    for pair, T, part, frame, r in zip(pairs, k.T, parts, frames, k.point):
        if (pair < 0).all():
            joint_force += T.T @ part
        wrench = np.concatenate([np.cross(r, part @ frame), part @ frame])
        for body, sign in zip(pair, (-1.0, 1.0)):
            if body >= 0:
                out[body] += sign * wrench
    return joint_force, out
