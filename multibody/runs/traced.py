"""A model's dynamics as traced functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.acting import with_own_rates
from ..dynamics.storage.workspace import HAVE_FORCES
from ..dynamics.trees.factored import factored_kernel, is_shallow
from ..dynamics.trees.kinematics import position_rates
from ..dynamics.with_elements import forward_dynamics, inverse_dynamics
from .closed import Stabilisation

if TYPE_CHECKING:
    from integrators.tracing import Traced

    from ..model import Model

__all__ = [
    "accelerate",
    "set_forces",
    "symbolic_state",
    "traced_fd",
    "traced_id",
]


def symbolic_state(model: Model, t: Any, x: Any) -> Any:
    """Workspace of symbols, with time, positions and velocities filled in."""
    w = model.tree.symbolic()
    w.t[0] = t
    w.q[:] = x[: model.nq]
    w.v[:] = x[model.nq :]
    return w


def set_forces(model: Model, w: Any, tau: Any, f_ext: Any) -> None:
    """Enter joint forces and external forces, numbers or symbols."""
    w.tau[:] = 0.0 if tau is None else tau
    w.switches[HAVE_FORCES] = int(f_ext is not None or len(model.springs) > 0)
    if f_ext is not None:
        w.f_ext[:] = f_ext


def accelerate(w: Any, keep: Stabilisation | None) -> None:
    """Accelerations on symbols, of a tree or of closed loops."""
    if keep is None:
        (factored_kernel if is_shallow(w.parent_v) else forward_dynamics)(w)
    else:
        keep.symbolic(w)


def traced_fd(model: Model) -> Traced:
    """[q̇; v̇] as a traced function of t, x = [q; v] and p = tau; made once for each model.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> f = traced_fd(mechanisms.pendulum())
    >>> f(0.0, np.array([0.0, 1.0]), np.array([2.0]))
    array([1., 2.])
    """
    from integrators import traced

    def fd(t: Any, x: Any, p: Any = ()) -> Any:
        w = symbolic_state(model, t, x)
        set_forces(model, w, p if model.nv else None, None)
        position_rates(w)
        accelerate(w, Stabilisation() if model.bonds else None)
        return np.concatenate([with_own_rates(model, w.q_dot, t, w.q, w.v), w.a_q])

    return _kept(model, "fd", lambda: traced(fd, n=model.nq + model.nv, params=model.nv))


def traced_id(model: Model) -> Traced:
    """Joint forces as a traced function of t, x = [q; v] and p = accelerations."""
    from integrators import traced

    def inverse(t: Any, x: Any, p: Any = ()) -> Any:
        w = symbolic_state(model, t, x)
        set_forces(model, w, None, None)
        w.a_q[:] = p
        inverse_dynamics(w)
        return w.tau

    return _kept(
        model,
        "id",
        lambda: traced(inverse, n=model.nq + model.nv, params=model.nv, outputs=model.nv),
    )


def _kept(model: Model, name: str, make: Callable[[], Any]) -> Any:
    kept = model.tree.traced
    if name not in kept:
        kept[name] = make()
    return kept[name]
