"""States and forces as a user gives them, entered into a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.kernels import OnWorkspace

from ...checks import Array, ArrayLike, exact_array, real_array
from ..trees.crba import crba_kernel
from ..with_elements import onto_sphere
from .workspace import HAVE_FORCES, TreeWorkspace

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "ForcesLike",
    "external_forces",
    "load",
    "load_forces",
    "load_given",
    "load_vector",
    "loaded_inertia",
]

ForcesLike = Any  # None, an array (n_bodies, 6), or {body name: six numbers}

_onto_sphere = OnWorkspace(onto_sphere, TreeWorkspace, returns=True)
_inertia = OnWorkspace(crba_kernel, TreeWorkspace)


def load(model: Model, q: ArrayLike, v: ArrayLike | None = None, t: float = 0.0) -> TreeWorkspace:
    """Workspace with position, velocity and time filled in; checks shapes, and nothing else.

    For states of a run, between whose steps quaternions leave the sphere a little.
    """
    w = model.tree.workspace
    if type(q) is np.ndarray and q.shape == w.q.shape and q.dtype == np.float64:
        w.q[:] = q
    else:
        w.q[:] = model.check("q", q, unit=False)
    if v is None:
        w.v[:] = 0.0
    elif type(v) is np.ndarray and v.shape == w.v.shape and v.dtype == np.float64:
        w.v[:] = v
    else:
        w.v[:] = model.check("v", v)
    w.t[0] = t
    return w


def load_given(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, t: float = 0.0
) -> TreeWorkspace:
    """The same for a position that a user gives: quaternions are brought to norm 1, or refused."""
    w = load(model, q, v, t)
    if len(w.quaternions) and _onto_sphere(w) != 0.0:
        model.check("q", w.q)  # raises with the name of the quaternion
    return w


def load_forces(model: Model, w: TreeWorkspace, f_ext: ForcesLike) -> None:
    """Enter external forces, in base coordinates; springs add theirs later."""
    if len(w.springs):
        w.spring_force[:] = 0.0
    if f_ext is None:
        w.switches[HAVE_FORCES] = len(w.springs) > 0
        if len(w.springs):
            w.f_ext[:] = 0.0
        return
    w.switches[HAVE_FORCES] = 1
    w.f_ext[:] = external_forces(model, f_ext)


def load_vector(model: Model, name: str, value: ArrayLike | None, out: Array) -> None:
    """Enter a vector of joint space, checked; zeros for None."""
    if value is None:
        out[:] = 0.0
    elif type(value) is np.ndarray and value.shape == out.shape and value.dtype == np.float64:
        out[:] = value
    else:
        out[:] = model.check(name, value)


def external_forces(model: Model, f_ext: ForcesLike) -> Array:
    """External forces as an array (n_bodies, 6) in base coordinates.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> external_forces(mechanisms.double_pendulum(), {2: [0, 0, 0, 1, 0, 0]})
    array([[0., 0., 0., 0., 0., 0.],
           [0., 0., 0., 1., 0., 0.]])
    """
    forces = np.zeros((model.n_bodies, 6))
    if f_ext is None:
        return forces
    if isinstance(f_ext, Mapping):
        for name, force in f_ext.items():
            i = model.number(name)
            if i == 0:
                raise ValueError("f_ext: a force on the base moves nothing; leave it out")
            forces[i - 1] += exact_array(force, f"f_ext[{name!r}]", (6,))
        return forces
    array = real_array(f_ext, "f_ext")
    if array.shape != forces.shape:
        raise ValueError(
            f"f_ext: expected a row of 6 numbers for each of {model.n_bodies} bodies, or a "
            f"dictionary by body names, received shape {array.shape}"
        )
    forces[:] = array
    return forces


def loaded_inertia(w: TreeWorkspace) -> Array:
    """H at the position in a workspace."""
    _inertia(w)
    return w.H.copy()
