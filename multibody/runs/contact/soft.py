"""A model with compliant contacts as an initial value problem, with the states of its surfaces.

The state is [q; v; surfaces]. Forces begin and end at instants that are not located: error control
finds them, and shortens a few steps there. Surfaces are stiff: implicit methods pay off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators import IVP

from ...checks import Array
from ...contact.kinematics import kinematics_at
from ...contact.soft import soft_contacts
from ...dynamics.functions import rate_along
from ..forces import external_force_law, joint_force_law

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["SoftObservation", "soft_problem"]


class SoftObservation(NamedTuple):
    """Compliant contacts along a solution.

    q, v and the states of the surfaces; `gap` (n, m) and `force` (m, n, 3), force on body b in
    base coordinates, at `point`.
    """

    q: Array
    v: Array
    surfaces: Array
    gap: Array
    force: Array
    point: Array


def soft_problem(
    model: Model,
    q0: Array,
    v0: Array,
    t_span: tuple[float, float],
    tau: Any,
    f_ext: Any,
    **options: Any,
) -> IVP:
    """Problem of a model with compliant contacts; arguments as in :func:`multibody.as_ivp`."""
    from ..ivp import _accelerations, as_ivp

    if t_span[1] < t_span[0]:
        raise ValueError(
            f"t_span = ({t_span[0]:g}, {t_span[1]:g}) runs backwards, but surfaces that dissipate "
            "forget where they came from; leave out the contacts to look back"
        )
    soft, nq, n = soft_contacts(model), model.nq, model.nq + model.nv
    bare = replace(model, contacts=())
    free = as_ivp(bare, q0, v0, t_span, tau, f_ext, **options)
    tau_law, params = joint_force_law(model, tau)
    force_law = external_force_law(model, f_ext)
    keep = None
    if model.loops:
        from ..closed import Stabilisation

        names = ("stabilise", "T_stab", "alpha", "beta", "step", "rank", "rank_tolerance")
        keep = Stabilisation.of(*(options[name] for name in names))

    def f(t: float, y: Array, p: Any = ()) -> Array:
        q, v = y[:nq], y[nq:n]
        k = kinematics_at(model, q, v, t)
        forces, rates = soft.forces(k, y[n:])
        joint_force = np.einsum("nkv,nk->v", k.T, forces)
        if tau_law is not None:
            joint_force = joint_force + tau_law(t, q, v, p)
        outer = None if force_law is None else force_law(t, q, v)
        a = _accelerations(model, q, v, joint_force, outer, t, keep)
        return np.concatenate([rate_along(model, q, v, t), a, rates])

    def project(t: float, y: Array, *p: Any) -> Array:
        x = y[:n] if free.project is None else free.project(t, y[:n])
        return np.concatenate([x, soft.follow(kinematics_at(model, x[:nq], x[nq:], t), y[n:])])

    def observe(solution: Any) -> SoftObservation:
        t, y = np.asarray(solution.t), np.asarray(solution.y)
        gap, force, point = [], [], []
        for j in range(len(t)):
            x = np.ascontiguousarray(y[:, j])
            k = kinematics_at(model, x[:nq], x[nq:n], float(t[j]))
            parts = soft.forces(k, y[n:, j])[0]
            frames = np.concatenate([k.normal[:, None], k.tangents], axis=1)
            gap.append(k.gap)
            force.append(np.einsum("nk,nkx->nx", parts, frames))
            point.append(k.point)
        return SoftObservation(
            y[:nq], y[nq:n], y[n:], np.array(gap).T, np.array(force), np.array(point)
        )

    start = soft.start(kinematics_at(model, q0, v0, t_span[0]))
    return IVP(
        f if len(params) else (lambda t, y: f(t, y)),
        np.concatenate([q0, v0, start]),
        t_span,
        params,
        project=project,
        name=model.name,
        state_names=(*model.q_names, *model.v_names, *soft.names),
        observe=observe,
    )
