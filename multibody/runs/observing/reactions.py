"""Reactions in all joints along a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...dynamics.loops.constraints.joints import LoopElement
from ...dynamics.loops.loads.reactions import JointReactions, joint_reactions
from ..forces import external_force_law, joint_force_law
from .acted import acted_along
from .states import states_of

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["reactions_along", "together"]


def reactions_along(
    model: Model,
    solution: Any,
    tau: Any = None,
    f_ext: Any = None,
    *,
    coordinates: str = "joint",
    elements: Sequence[LoopElement] = (),
) -> JointReactions:
    """Wrenches in all joints at the times of a run: arrays (6, n_t).

    Parameters
    ----------
    model
        With or without loops.
    solution
        Of :func:`~multibody.as_ivp`, :func:`~multibody.as_dae` or :func:`~multibody.simulate`; or
        anything with times `t` and positions and velocities in columns, `q` and `v`.
    tau, f_ext
        The forces that acted, as in :func:`~multibody.as_ivp`; without them those that the run
        knows of. With `elements`, `tau` is what acts besides these.
    coordinates, elements
        As in :func:`joint_reactions`.

    Examples
    --------
    >>> from multibody import mechanisms, simulate
    >>> model = mechanisms.pendulum()
    >>> run = simulate(model, [np.pi / 2], T=2.0)
    >>> found = reactions_along(model, run, coordinates="base")
    >>> found["bob"].shape == (6, len(run.t))
    True
    """
    if hasattr(solution, "q") and hasattr(solution, "v"):
        q, v = solution.q, solution.v
    else:
        q, v = np.split(states_of(model, solution)[1], [model.nq])
    besides = tau
    model, tau, f_ext = acted_along(model, solution, tau, f_ext)
    tau_law, params = joint_force_law(model, besides if elements else tau)
    force_law = external_force_law(model, f_ext)
    found = []
    for time, position, velocity in zip(map(float, solution.t), q.T, v.T):
        x = model.normalise(position)
        torque = None if tau_law is None else tau_law(time, x, velocity, params)
        outside = None if force_law is None else force_law(time, x, velocity)
        found.append(
            joint_reactions(
                model, x, velocity, torque, outside,
                coordinates=coordinates, elements=elements, t=time,
            )
        )  # fmt: skip
    return together(model, found, coordinates)


def together(
    model: Model, found: Sequence[JointReactions], coordinates: str = "joint"
) -> JointReactions:
    """Wrenches at several times as one: arrays (6, n_t)."""
    return JointReactions(
        {b.name: _rows([r.bodies[b.name] for r in found]) for b in model.bodies},
        {c.name: _rows([r.loops[c.name] for r in found]) for c in model.loops},
        {
            key: _rows([r.determined[key] for r in found])
            for key in (found[0].determined if found else ())
        },
        coordinates,
    )


def _rows(values: list[Array]) -> Array:
    """Six rows, a column for each time."""
    return np.array(values).reshape(-1, 6).T
