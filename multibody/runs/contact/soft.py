"""A model with compliant contacts as an initial value problem, with the states of its surfaces.

The state is [q; v; surfaces]. Forces begin and end at instants that are not located: error control
finds them, and shortens a few steps there. Surfaces are stiff: implicit methods pay off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators import IVP

from ...checks import Array, ArrayLike
from ...contact.held import Held, held_motion
from ...contact.kinematics import kinematics_at
from ...contact.soft import soft_contacts
from ...dynamics.functions import rate_along
from ...dynamics.loops.loads.reactions import JointReactions
from ..forces import force_laws
from .reacting import loaded_reactions, with_contacts

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["SoftObservation", "soft_problem"]


class SoftObservation(NamedTuple):
    """Compliant contacts along a solution.

    q, v and the states of the surfaces; `gap` (n, m) and `force` (m, n, 3), force on body b in
    base coordinates, at `point`. `loads`: joint forces and wrenches on the bodies at each time.
    """

    q: Array
    v: Array
    surfaces: Array
    gap: Array
    force: Array
    point: Array
    t: Array
    model: Any
    loads: Any

    @property
    def reactions(self) -> JointReactions:
        """Wrenches in all joints, (6, n_t) each, under all forces, those of contacts among them."""
        return loaded_reactions(self)


def only_projection(model: Model, options: dict[str, Any]) -> None:
    """Let loops be kept closed by projection; refuse other ways."""
    if options.get("stabilise") not in (None, "projection", "projected"):
        raise ValueError(
            f"stabilise={options['stabilise']!r}: {model.name!r} has contacts, and runs with "
            "contact keep loops closed by projection; leave it out"
        )
    options["stabilise"] = "projection"  # impacts need loops that are closed


def soft_problem(
    model: Model,
    q0: Array,
    v0: Array,
    t_span: tuple[float, float],
    tau: Any,
    f_ext: Any,
    params: ArrayLike,
    **options: Any,
) -> IVP:
    """Problem of a model with compliant contacts; arguments as in :func:`multibody.as_ivp`."""
    from ..ivp import as_ivp

    if t_span[1] < t_span[0]:
        raise ValueError(
            f"t_span = ({t_span[0]:g}, {t_span[1]:g}) runs backwards, but surfaces that dissipate "
            "forget where they came from; leave out the contacts to look back"
        )
    soft, nq, n = soft_contacts(model), model.nq, model.nq + model.nv
    bare = replace(model, contacts=())
    if model.bonds:
        only_projection(model, options)
    free = as_ivp(bare, q0, v0, t_span, tau, f_ext, params=params, **options)
    tau_law, force_law, values = force_laws(model, tau, f_ext, params)

    def f(t: float, y: Array, p: Any = ()) -> Array:
        q, v = y[:nq], y[nq:n]
        k = kinematics_at(model, q, v, t)
        forces, rates = soft.forces(k, y[n:])
        joint_force = np.einsum("nkv,nk->v", k.T, forces)
        if tau_law is not None:
            joint_force = joint_force + tau_law(t, q, v, p)
        outer = None if force_law is None else force_law(t, q, v, p)
        a = held_motion(model, Held(), t, q, v, joint_force, outer).accelerations
        return np.concatenate([rate_along(model, q, v, t), a, rates])

    def project(t: float, y: Array, *p: Any) -> Array:
        x = y[:n] if free.project is None else free.project(t, y[:n])
        return np.concatenate([x, soft.follow(kinematics_at(model, x[:nq], x[nq:], t), y[n:])])

    def observe(solution: Any) -> SoftObservation:
        t, y = np.asarray(solution.t), np.asarray(solution.y)
        gap, force, point, loads = [], [], [], []
        p = solution.problem.params
        for j in range(len(t)):
            x = np.ascontiguousarray(y[:, j])
            k = kinematics_at(model, x[:nq], x[nq:n], float(t[j]))
            parts = soft.forces(k, y[n:, j])[0]
            frames = np.concatenate([k.normal[:, None], k.tangents], axis=1)
            gap.append(k.gap)
            force.append(np.einsum("nk,nkx->nx", parts, frames))
            point.append(k.point)
            at = (float(t[j]), x[:nq], x[nq:n], p)
            given = (None if law is None else law(*at) for law in (tau_law, force_law))
            loads.append(with_contacts(model, k, parts, *given))
        return SoftObservation(
            *(y[:nq], y[nq:n], y[n:], np.array(gap).T, np.array(force), np.array(point)),
            *(t, bare, loads),
        )

    start = soft.start(kinematics_at(model, q0, v0, t_span[0]))
    return IVP(
        f if len(values) else (lambda t, y: f(t, y)),
        np.concatenate([q0, v0, start]),
        t_span,
        values,
        project=project,
        name=model.name,
        state_names=(*model.q_names, *model.v_names, *soft.names),
        observe=observe,
    )
