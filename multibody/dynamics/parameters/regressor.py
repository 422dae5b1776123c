"""Joint forces as a linear function of inertia parameters: τ = Y(q, v, v̇) φ + rest.

Spatial inertia is linear in its ten parameters φ_k = (m, h, lower triangle of I_O), and so is the
force on a body (book, Eq 2.68), hence what it takes at the joints:

    τ = Σ_k J_kᵀ (I(φ_k) (a_k − a_g) + v_k ×* I(φ_k) v_k) + A v̇

with A the armature. `rest`, the joint forces that springs, dampers, stops and external forces take
over, does not depend on φ.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ...algebra.inertia import RigidInertia
from ...checks import Array, ArrayLike
from ..motion import kinematics

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["PARAMETERS", "parameter_names", "parameter_values", "regressor"]

#: The ten parameters of a body, as `RigidInertia.array` has them.
PARAMETERS = ("m", "h_x", "h_y", "h_z", "I_xx", "I_yx", "I_yy", "I_zx", "I_zy", "I_zz")


def parameter_names(model: Model, armature: bool = False) -> tuple[str, ...]:
    """Names of the columns of `regressor`, such as ``arm.h_x``.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> parameter_names(mechanisms.pendulum())[:3]
    ('bob.m', 'bob.h_x', 'bob.h_y')
    """
    names = [f"{body.name}.{p}" for body in model.bodies for p in PARAMETERS]
    if armature:
        names += [f"armature of {name}" for name in model.v_names]
    return tuple(names)


def parameter_values(model: Model, armature: bool = False) -> Array:
    """Values of these parameters in a model."""
    parts = [body.inertia.array for body in model.bodies]
    if armature:
        parts += [body.armature for body in model.bodies]
    return np.concatenate(parts)


def regressor(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    t: float = 0.0,
    armature: bool = False,
) -> Array:
    """Y with τ = Y φ: joint forces as a linear function of the inertia parameters.

    Parameters
    ----------
    model, q, v, a, t
        As for `ID`; only joints, placements and gravity of the model matter. Loops are cut open.
    armature
        Whether rotor inertias are parameters, too: nv more columns.

    Returns
    -------
    array (nv, 10 n_bodies)
        Columns in the order of `parameter_names`. Forces of springs, dampers, stops and whatever
        is given as `f_ext` to `ID` are not part of Y φ.

    Examples
    --------
    What a measured torque tells about a pendulum is m c g sin q + I_yy v̇:

    >>> from multibody import ID, mechanisms
    >>> model = mechanisms.pendulum()
    >>> Y = regressor(model, [0.3], [1.0], [2.0])
    >>> np.allclose(Y @ parameter_values(model), ID(model, [0.3], [1.0], [2.0]))
    True
    >>> [n for n, y in zip(parameter_names(model), Y[0]) if abs(y) > 1e-12]
    ['bob.h_x', 'bob.h_z', 'bob.I_yy']
    """
    given = model.check("a", a)
    blocks = [block for _, block in body_regressors(model, q, v, given, t)]
    Y = np.hstack(blocks)
    return np.hstack([Y, np.diag(given)]) if armature else Y


def body_regressors(
    model: Model, q: ArrayLike, v: ArrayLike, a: Array, t: float
) -> Iterator[tuple[int, Array]]:
    """For each body its number and its ten columns."""
    found = kinematics(model, q, v, a, t=t)
    assert found.accelerations is not None
    jacobians = _jacobians(model, q, t)
    basis = _basis()
    for i in range(1, model.n_bodies + 1):
        rotation = found.poses[i].R
        felt = found.accelerations[i].copy()
        felt[3:] -= rotation.T @ model.gravity
        forces = basis @ felt + _cross_force(found.velocities[i], basis @ found.velocities[i])
        yield i, jacobians[i - 1].T @ forces.T


@lru_cache(maxsize=1)
def _basis() -> Array:
    """I = Σ φ_p basis[p], 10 matrices 6×6."""
    out = np.array([RigidInertia._of(row).matrix() for row in np.eye(10)])
    out.setflags(write=False)
    return out


def _cross_force(v: Array, f: Array) -> Array:
    """v ×* f for rows f."""
    couple = np.cross(v[:3], f[:, :3]) + np.cross(v[3:], f[:, 3:])
    return np.hstack([couple, np.cross(v[:3], f[:, 3:])])


def _jacobians(model: Model, q: ArrayLike, t: float) -> list[Array]:
    """J of every body in its coordinates."""
    from ..book.base_view import body_joint

    q = model.check("q", q)
    out: list[Array] = []
    for body, at_q, at_v in zip(model.bodies, model.q_index, model.v_index):
        X, S, _, _ = body_joint(body, q[at_q], np.zeros(body.joint.nv), t)
        J = X @ out[body.parent - 1] if body.parent else np.zeros((6, model.nv))
        J[:, at_v] = S
        out.append(J)
    return out
