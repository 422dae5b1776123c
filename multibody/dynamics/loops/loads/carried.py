"""Elements that feel the reaction in a joint: friction of bearings, resistance of loaded wheels.

Such an element acts s times as it would for a load of one, and s = felt(R) where R is the reaction
in its joint. Reactions are affine in all s, R = R₀ + Σ Bⱼ sⱼ, because accelerations are: one state
of reactions for each element, and one without any, tell R. What is left are as many equations as
there are such elements, sᵢ = feltᵢ(R(s)), solved by Newton's method with differences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....checks import Array
from ...acting import CARRY
from ...functions import FD, tree_joint_forces
from ...storage.loading import load_given
from .reactions import _to_joints, joint_reactions

if TYPE_CHECKING:
    from ....model import Model

__all__ = ["carry"]

MOST_ITERATIONS = 50
SETTLED = 1e-12  # change of the loads, in parts of the largest
DIFFERENCE = 1e-7


def carry(model: Model, t: float, q: Array, v: Array, carried: Any, parts: Any) -> None:
    """Multiply what the elements `carried` do with the loads that belong to it.

    Where there are none (friction would lock the mechanism) forces are NaN, and a run ends there.
    """
    joints = [element.carried_by for _, element in carried]
    own = {here._named.name for here, _ in carried}
    tau, rows = np.zeros(model.nv), np.zeros((model.n_bodies, 6))
    for name, part in parts.items():
        if name not in own:
            _add(part, tau, rows)

    places: list[Any] = []
    if not model.bonds:  # only the joints that are asked for, placed once
        X = _to_joints(model, q, t)
        places = [(i - 1, X[i - 1].inverse().force_matrix()) for i in map(model.number, joints)]

    def reactions(extra: Any) -> Array:
        force, wrenches = tau.copy(), rows.copy()
        if extra is not None:
            _add(extra, force, wrenches)
        if not model.bonds:
            a = FD(model, q, v, force, wrenches, t=t)
            passed = tree_joint_forces(model, load_given(model, q, v, t), a, wrenches)
            return np.array([matrix @ passed[i] for i, matrix in places])
        found = joint_reactions(model, q, v, force, wrenches, t=t, coordinates="base")
        return np.array([found[joint] for joint in joints])

    without = reactions(None)
    slope = [reactions(here._part) - without for here, _ in carried]

    def felt(s: Array) -> Array:
        at = without + sum(x * b for x, b in zip(s, slope))
        return np.array([float(e.felt(w, here)) for (here, e), w in zip(carried, at)])

    s = felt(np.zeros(len(carried)))
    for _ in range(MOST_ITERATIONS):
        value = felt(s)
        step = DIFFERENCE * max(float(np.abs(s).max()), 1.0)
        J = np.array([(felt(s + step * e) - value) / step for e in np.eye(len(s))]).T
        try:
            change = np.linalg.solve(np.eye(len(s)) - J, value - s)
        except np.linalg.LinAlgError:
            break
        s = s + change
        if np.abs(change).max() <= SETTLED * max(float(np.abs(s).max()), 1e-300):
            break
    if not (np.isfinite(s).all() and s.min() >= 0.0 and np.allclose(felt(s), s, rtol=1e-9)):
        s = np.full(len(carried), np.nan)
    for x, (here, _) in zip(s, carried):
        part = here._part
        if part.tau is not None:
            part.tau = x * part.tau
        part.wrenches = {i: x * w for i, w in part.wrenches.items()}
        part.outputs["load"] = x


def _add(part: Any, tau: Array, rows: Array) -> None:
    if part.tau is not None:
        tau += part.tau
    for i, wrench in part.wrenches.items():
        rows[i - 1] += wrench


CARRY.append(carry)
