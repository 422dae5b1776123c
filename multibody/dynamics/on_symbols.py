"""Dynamics of a state of symbols: what a force law may ask while a problem is traced.

``gravity_forces``, ``ID``, ``crba``, ``point_jacobian`` and their like hand over to these functions
where positions, velocities or accelerations hold symbols; the same kernels run on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .storage.workspace import HAVE_FORCES
from .trees.crba import crba_kernel
from .trees.kinematics import forward
from .trees.rnea import rnea_kernel
from .with_elements import inverse_dynamics

if TYPE_CHECKING:
    from ..model import Model

__all__ = [
    "are_symbols",
    "base_jacobian",
    "inertia_on_symbols",
    "inverse_on_symbols",
    "point_on_symbols",
    "weight_on_symbols",
]


def are_symbols(*values: Any) -> bool:
    """Whether some value is a symbol, or an array of symbols."""
    return any(
        str(getattr(value, "dtype", "")) == "object" or hasattr(value, "graph") for value in values
    )


def _placed(model: Model, q: Any, v: Any, t: Any) -> Any:
    w = model.tree.symbolic()
    w.t[0], w.q[:], w.v[:] = t, q, 0.0 if v is None else v
    return w


def _forced(model: Model, w: Any, a: Any, f_ext: Any) -> None:
    w.a_q[:] = 0.0 if a is None else a
    w.switches[HAVE_FORCES] = int(f_ext is not None or len(model.springs) > 0)
    if f_ext is not None:
        w.f_ext[:] = f_ext


def inverse_on_symbols(model: Model, q: Any, v: Any, a: Any, f_ext: Any, t: Any) -> Any:
    """Joint forces that cause accelerations a."""
    w = _placed(model, q, v, t)
    _forced(model, w, a, f_ext)
    inverse_dynamics(w)
    return _array(w.tau)


def weight_on_symbols(model: Model, q: Any, v: Any, t: Any, gravity: bool) -> Any:
    """Joint forces at a = 0 without those of springs: with gravity alone, or with motion alone."""
    w = _placed(model, q, v, t)
    _forced(model, w, None, None)
    if not gravity:
        w.gravity = np.zeros(6)
    rnea_kernel(w)
    return _array(w.tau)


def inertia_on_symbols(model: Model, q: Any, t: Any) -> Any:
    """H."""
    w = _placed(model, q, None, t)
    crba_kernel(w)
    return _array(w.H)


def base_jacobian(model: Model, q: Any, body: str | int, t: Any) -> Any:
    """Spatial velocity in base coordinates for each joint velocity, 6 × nv."""
    w = _placed(model, q, None, t)
    forward(w)
    J = np.full((6, model.nv), 0.0, dtype=object)
    i = model.number(body) - 1
    while i >= 0:
        E, r = np.array(w.E_0[i]).T, w.r_0[i]
        for k in range(w.v_at[i], w.v_at[i + 1]):
            x, y, z = E @ w.S[k, :3]
            J[:3, k] = x, y, z
            arm = [r[1] * z - r[2] * y, r[2] * x - r[0] * z, r[0] * y - r[1] * x]
            J[3:, k] = E @ w.S[k, 3:] + np.array(arm)
        i = int(w.parent[i])
    return _array(J)


def point_on_symbols(model: Model, q: Any, body: str | int, point: Any, t: Any) -> Any:
    """Position of a point in base coordinates."""
    i = model.number(body) - 1
    if i < 0:
        return np.asarray(point)
    w = _placed(model, q, None, t)
    forward(w)
    return _array(np.array(w.E_0[i]).T @ (model.tree.turn[i] @ np.asarray(point)) + w.r_0[i])


def _array(values: Any) -> Any:
    """Symbols in the kind of array that traced functions get."""
    from integrators.tracing.symbols.arrays import SymbolArray

    return np.array(values).view(SymbolArray)
