"""Forces in loop joints, from multipliers: in base, joint or body coordinates (book, §8.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from integrators.kernels import OnWorkspace

from ....algebra.plucker import Plucker
from ....checks import Array, ArrayLike, one_of, real_array
from ....model.constraints import constraint_numbers
from ...motion import kinematics
from ...storage.loading import load, load_given
from ...storage.workspace import TreeWorkspace
from ..closed_loop import need_loops
from ..constraints.gaps import closure_kernel
from ..constraints.joints import loop_number
from ..constraints.stated import law_sizes

if TYPE_CHECKING:
    from ....model import Model

__all__ = ["constraint_forces", "loop_forces", "loop_forces_in", "point_forces"]

_run_closure = OnWorkspace(closure_kernel, TreeWorkspace)


def loop_forces(
    model: Model,
    q: ArrayLike,
    multipliers: ArrayLike,
    *,
    coordinates: str = "base",
    t: float = 0.0,
) -> dict[str, Array]:
    """Force that each loop joint exerts on its successor; the predecessor feels the opposite.

    Parameters
    ----------
    coordinates
        "base": couples about the base's origin. "joint" and "body": see
        :func:`~multibody.loop_forces_in`.
    """
    w, lam, at = _with_multipliers(model, q, multipliers, t)
    forces = {
        loop.name: lam[at[k] : at[k + 1]] @ w.T_0[at[k] : at[k + 1]]
        for k, loop in enumerate(model.loops)
    }
    return loop_forces_in(model, q, forces, coordinates, t=t)


def constraint_forces(
    model: Model, q: ArrayLike, multipliers: ArrayLike, *, t: float = 0.0
) -> dict[str, Array]:
    """Joint forces Kᵀλ that each constraint by a function, such as a gear, exerts.

    Parameters
    ----------
    multipliers
        λ, those of loop joints first, as ``constrained_accelerations`` and ``observed`` give them.

    Examples
    --------
    Two wheels of 1 kg m² with the ratio −2 under 5 Nm; the teeth turn the second by −2 rad/s²:

    >>> from multibody import Inertia, ModelBuilder, Revolute, constrained_accelerations
    >>> b = ModelBuilder(gravity=(0, 0, 0))
    >>> for name in ("first", "second"):
    ...     _ = b.add_body(name, 0, Revolute(), inertia=Inertia(1.0, (0, 0, 0), np.eye(3)))
    >>> b.add_gear("teeth", "second", {"first": -2.0})
    >>> model = b.build()
    >>> found = constrained_accelerations(model, [0, 0], [0, 0], [5.0, 0.0])
    >>> constraint_forces(model, [0, 0], found.multipliers)["teeth"].round(9)
    array([-4., -2.])
    """
    w, lam, at = _with_multipliers(model, q, multipliers, t)
    return {
        c.name: lam[at[k] : at[k + 1]] @ w.K[at[k] : at[k + 1]]
        for k, c in enumerate(model.constraints, len(model.loops))
    }


def _with_multipliers(
    model: Model, q: ArrayLike, multipliers: ArrayLike, t: float
) -> tuple[TreeWorkspace, Array, Array]:
    """Workspace with T and K, the multipliers checked, and where each loop's rows begin."""
    need_loops(model)
    w = load_given(model, q, None, t)
    _run_closure(w)
    lam = np.asarray(multipliers, dtype=float)
    at = model.tree.arrays["loop_at"]
    if lam.shape != (at[-1],):
        raise ValueError(f"multipliers: expected {at[-1]} numbers, received shape {lam.shape}")
    return w, lam, at


def loop_forces_in(
    model: Model,
    q: ArrayLike,
    forces: Mapping[str, ArrayLike],
    coordinates: str = "joint",
    *,
    t: float = 0.0,
) -> dict[str, Array]:
    """Forces on the successors of loop joints, from base coordinates to those of joint or body.

    Parameters
    ----------
    model, q, t
        A model with loops and its position.
    forces
        By the loops' names six numbers, as :func:`~multibody.loop_forces` returns them: couple
        about the base's origin (Nm) and force (N), in base axes.
    coordinates
        "joint": couple about the joint and axes of its frame on the successor, as given to
        ``add_loop``; a revolute joint without actuator has no couple about its axis. "body": about
        the origin of the successor body, in its axes. "base": unchanged.

    Examples
    --------
    The pin of a four-bar linkage, whose axis is z, passes on no couple about it:

    >>> from multibody import constrained_accelerations, loop_forces, mechanisms
    >>> entry = mechanisms.entry("four_bar")
    >>> model = entry.model()
    >>> q, v = entry.start(model)
    >>> forces = loop_forces(model, q, constrained_accelerations(model, q, v).multipliers)
    >>> pin = loop_forces_in(model, q, forces, "joint")["joint"]
    >>> bool(abs(pin[2]) < 1e-9 < np.linalg.norm(pin))
    True
    """
    one_of(coordinates, "coordinates", ("base", "joint", "body"))
    poses = kinematics(model, q, t=t).poses
    found = {}
    for name, force in forces.items():
        loop = model.loops[loop_number(model, name)]
        place = poses[loop.successor]
        X = Plucker._of(place.R.T, place.p)  # base to body
        if coordinates == "joint":
            X = loop.placement_successor * X
        wrench = real_array(force, f"force in {name!r}", (6,)).astype(float)
        found[name] = wrench if coordinates == "base" else X.force_matrix() @ wrench
    return found


def point_forces(model: Model, q: Array, multipliers: Array, t: float) -> Array:
    """Forces that constraints exert at the points which they name, as wrenches on the bodies.

    A row for each body: couple about the base's origin and force, in base axes. What a constraint
    asks of joint variables is a force in these joints, and not here.
    """
    forces = np.zeros((model.n_bodies, 6))
    if not any(c.points for c in model.constraints):
        return forces
    w, numbers = load(model, q, None, t), model.tree.arrays
    _run_closure(w)
    at = numbers["loop_at"][len(model.loops) :]
    for l, constraint in enumerate(model.constraints):
        p = np.array(constraint_numbers(model, constraint), dtype=float)
        points = range(numbers["point_at"][l], numbers["point_at"][l + 1])
        x = [w.r_0[i] + w.E_0[i].T @ r if i >= 0 else r for i, r in _listed(numbers, points)]
        still = np.zeros(model.nv), np.zeros(3 * len(x))
        z = np.concatenate([q[: model.nq - model.n_states], still[0], *x, still[1]])
        out, m = np.zeros(law_sizes(model, constraint)[1]), constraint.count
        model.tree.loop_functions[len(model.loops) + l](t, z, p, out)
        pushes = multipliers[at[l] : at[l + 1]] @ out[m * (model.nv + 3) :].reshape(m, -1)
        for k, (i, _) in enumerate(_listed(numbers, points)):
            if i >= 0:
                push = pushes[3 * k : 3 * k + 3]
                forces[i] += [*np.cross(x[k], push), *push]
    return forces


def _listed(numbers: dict[str, Array], points: Iterable[int]) -> list[tuple[int, Array]]:
    return [(int(numbers["point_body"][k]), numbers["points"][k]) for k in points]
