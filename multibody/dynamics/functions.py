"""The algorithms as functions of a model: forces, accelerations, matrices.

All take and return plain arrays. q has ``model.nq`` numbers, v, tau and accelerations
``model.nv``; 6-vectors are angular first; what belongs to a body is in its own coordinates unless
the name says otherwise; external forces are in base coordinates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.kernels import OnWorkspace

from ..checks import Array, ArrayLike, one_of
from .acting import with_own_rates
from .loops.closed_loop import constrained_function, fast_constrained_accelerations
from .on_symbols import (
    are_symbols,
    inertia_on_symbols,
    inverse_on_symbols,
    weight_on_symbols,
)
from .storage.loading import ForcesLike, load, load_forces, load_given, load_vector, loaded_inertia
from .storage.workspace import TreeWorkspace
from .trees.aba import find_singular_body
from .trees.factor import ltl, ltl_solve
from .trees.kinematics import position_rates
from .trees.rnea import rnea_kernel
from .with_elements import (
    forward_dynamics,
    forward_dynamics_as_given,
    inverse_dynamics,
    joint_force_elements,
)

if TYPE_CHECKING:
    from ..model import Model

__all__ = [
    "FD",
    "ID",
    "ForcesLike",
    "ID_delta",
    "SingularModelError",
    "aba",
    "bias_forces",
    "coriolis_forces",
    "crba",
    "gravity_forces",
    "joint_forces",
    "position_rate",
    "rnea",
]


class SingularModelError(ArithmeticError):
    """Accelerations are not determined: some freedom moves no inertia at this position."""


_run_forward_dynamics = OnWorkspace(forward_dynamics, TreeWorkspace, returns=True)
_run_inverse_dynamics = OnWorkspace(inverse_dynamics, TreeWorkspace, returns=True)
_run_elements = OnWorkspace(joint_force_elements, TreeWorkspace)
_run_rnea = OnWorkspace(rnea_kernel, TreeWorkspace)
_run_rates = OnWorkspace(position_rates, TreeWorkspace)
_run_as_given = OnWorkspace(forward_dynamics_as_given, TreeWorkspace, returns=True)


# ---------------------------------------------------------------------- dynamics


def FD(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    method: str | None = None,
) -> Array:
    """Forward dynamics: the accelerations v̇ that forces cause.

    Parameters
    ----------
    model
        The mechanism. If it has loops, they are kept closed (K v̇ = γ); for multipliers, rank and
        stabilisation see :func:`~multibody.constrained_accelerations`.
    q, v
        Position and velocity variables. Quaternions in q are divided by their norms; one whose
        norm is farther than 0.01 from 1 is refused. ``model.normalise(q)`` takes any.
    tau
        Joint forces; zero if not given.
    f_ext
        External forces: a row (couple, force) for each body in base coordinates, or a dictionary
        by body names.
    t
        Time, for joints that time moves.
    method
        "aba" (articulated bodies, the default for trees) or "crba" (inertia matrix and its LTL
        factors); both cut loops open. "loops" is the default for models with loops.

    Returns
    -------
    array of nv numbers

    Raises
    ------
    SingularModelError
        Where some freedom moves no inertia, naming the body.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.pendulum()
    >>> FD(model, [np.pi / 2], [0.0]).round(6)  # horizontal: −g/L
    array([-9.81])
    """
    if method is None:
        if f_ext is None and t == 0.0:
            tree = model.tree
            run = tree.traced.get("FD") or _shortest_way(model)
            return run(q, v, tree.zeros if tau is None else tau)
        if model.bonds:
            method = "loops"
    w = load_given(model, q, v, t)
    if method is None or method == "aba":
        return _by_articulated_bodies(model, w, tau, f_ext)
    load_vector(model, "tau", tau, w.tau)
    load_forces(model, w, f_ext)
    one_of(method, "method", ("aba", "crba", "loops"))
    if method == "loops":
        a, _ = fast_constrained_accelerations(w, 0.0, 0.0)
        if not np.isfinite(a).all():
            explain(model, w)
        return a
    position, speed, given = w.q.copy(), w.v.copy(), w.tau.copy()
    C = bias_forces(model, position, speed, f_ext, t=t)
    H = crba(model, position, t=t)
    parent = model.tree.arrays["parent_v"]
    try:
        L = ltl(H, parent)
    except np.linalg.LinAlgError:
        load_given(model, position, speed, t)
        explain(model, w)
        raise
    return ltl_solve(L, parent, given - C)


def _by_articulated_bodies(
    model: Model, w: TreeWorkspace, tau: ArrayLike | None, f_ext: ForcesLike
) -> Array:
    """Accelerations of a tree at the state in a workspace."""
    load_vector(model, "tau", tau, w.tau)
    load_forces(model, w, f_ext)
    total = _run_forward_dynamics(w)
    if total - total != 0.0:
        explain(model, w)
    return w.a_q.copy()


def tree_accelerations(
    model: Model, q: Array, v: Array, tau: ArrayLike | None, f_ext: ForcesLike, t: float
) -> Array:
    """`FD` of a tree at a state of a run, whose quaternions are taken as they are."""
    return _by_articulated_bodies(model, load(model, q, v, t), tau, f_ext)


def rate_along(model: Model, q: Array, v: Array, t: float) -> Array:
    """`position_rate` at a state of a run, whose quaternions are taken as they are."""
    w = load(model, q, v, t)
    _run_rates(w)
    return np.array(with_own_rates(model, w.q_dot.copy(), t, q, v))


def _shortest_way(model: Model) -> Any:
    """Return a function (q, v, tau) → accelerations, made once for a model, with its workspace.

    It is a builtin where that is possible. Whatever this does not understand (lists, other number
    types, wrong sizes, results that are not finite) is left to the long way, which knows the error
    messages. Threads may share it: it keeps the interpreter's lock; a joint's law in Python would
    not, and such models take the long way with its workspace for each thread.
    """
    from integrators.kernels import interpreting
    from integrators.tracing import entry as native

    def ordinary(q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        return FD(model, q, v, tau, method="loops" if model.bonds else "aba")

    run: Any = ordinary
    compiled = native.available() and not interpreting()
    compiled = compiled and all(body.joint.is_traceable for body in model.bodies)
    # Forces of springs are gathered in f_ext, which the long way clears.
    if compiled and not model.springs:
        w = model.tree.traced.get("FD workspace")
        if w is None:  # at time 0, without external forces
            w = model.tree.traced["FD workspace"] = model.tree.make_workspace()
        function = _run_as_given if len(w.quaternions) else _run_forward_dynamics
        if model.bonds:
            function = constrained_function(w)
        if not function.is_compiled:
            return ordinary  # for the time being
        inputs = (w.q, w.v, w.tau)
        run = native.workspace_entry(function.address, w.address, inputs, w.a_q, ordinary, w)
    model.tree.traced["FD"] = run
    return run


def explain(model: Model, w: TreeWorkspace, given: str = "tau") -> None:
    """Raise with the reason why a result is not finite; `given` names the input besides q, v."""
    if model.tree.error is not None:
        error, model.tree.error = model.tree.error, None
        raise error
    for name in ("q", "v", given):
        bad = np.flatnonzero(~np.isfinite(getattr(w, name)))
        if bad.size:
            names = model.q_names if name == "q" else model.v_names
            value = getattr(w, name)[bad[0]]
            raise ValueError(
                f"{name.removesuffix('_q')}: expected finite numbers, received {value} for "
                f"{names[bad[0]]}"
            )
    if model.springs:
        from .book.base_view import element_forces

        element_forces(model, w.q.copy(), w.v.copy(), float(w.t[0]))  # names one that is to blame
    if given != "tau":
        raise ValueError("joint forces are not finite; look for huge numbers in q, v, a or f_ext")
    body = find_singular_body(model, w.q.copy(), float(w.t[0]))
    if body:
        b, place = model.bodies[body - 1], model.q_index[body - 1]
        where = ", ".join(f"{n} = {x:.6g}" for n, x in zip(model.q_names[place], w.q[place]))
        raise SingularModelError(
            f"body {b.name!r} can move at its joint {b.joint!r} without moving any inertia at "
            f"this position ({where}); give it mass or an armature"
            + ("" if b.joint.nv < 3 else ", or use a Spherical joint")
        )
    raise ValueError("accelerations are not finite; look for huge numbers in q, v, tau or f_ext")


def ID(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    method: str | None = None,
) -> Array:
    """Inverse dynamics: the joint forces that cause accelerations `a`.

    Parameters
    ----------
    model, q, v, f_ext, t
        As in :func:`FD`. Loops are cut open: the forces are those of the tree.
    a
        Joint accelerations v̇.
    method
        "newton_euler" (three-dimensional, the default) or "rnea" (spatial, as in the book).

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.double_pendulum()
    >>> q, v, tau = [0.3, 0.5], [1.0, 2.0], [0.1, 0.2]
    >>> np.allclose(ID(model, q, v, FD(model, q, v, tau)), tau)
    True
    """
    if are_symbols(q, v, a, t):
        return inverse_on_symbols(model, q, v, a, f_ext, t)
    w = load_given(model, q, v, t)
    load_vector(model, "a", a, w.a_q)
    load_forces(model, w, f_ext)
    if method is not None and one_of(method, "method", ("newton_euler", "rnea")) == "rnea":
        if model.tree.has_elements:
            _run_elements(w)
        elements = w.u.copy() if model.tree.has_elements else 0.0
        _run_rnea(w)
        return w.tau - elements
    total = _run_inverse_dynamics(w)
    if total - total != 0.0:
        explain(model, w, "a_q")
    return w.tau.copy()


#: The algorithms under their names in the literature.
aba, rnea = FD, ID


def crba(model: Model, q: ArrayLike, *, t: float = 0.0) -> Array:
    """Joint-space inertia matrix H(q), nv × nv, armature included.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> crba(mechanisms.pendulum(), [0.4])
    array([[1.]])
    """
    if are_symbols(q, t):
        return inertia_on_symbols(model, q, t)
    return loaded_inertia(load_given(model, q, None, t))


def ID_delta(model: Model, q: ArrayLike, a: ArrayLike, *, t: float = 0.0) -> Array:
    """H v̇ without H: inverse dynamics at rest, without gravity and forces (book, Table 6.1).

    O(n) where the product with `crba` takes O(n·depth); column k of H is ``ID_delta`` of the unit
    vector k.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model, q, a = mechanisms.double_pendulum(), [0.3, 0.5], [1.0, -2.0]
    >>> np.allclose(ID_delta(model, q, a), crba(model, q) @ a)
    True
    """
    w = load_given(model, q, None, t)
    load_vector(model, "a", a, w.a_q)
    load_forces(model, w, None)
    moved = _without_gravity(w)
    if any(body.joint.is_rheonomic for body in model.bodies):
        w.a_q[:] = 0.0
        moved -= _without_gravity(w)  # what it takes to move with the drives
    return moved


def bias_forces(
    model: Model, q: ArrayLike, v: ArrayLike, f_ext: ForcesLike = None, *, t: float = 0.0
) -> Array:
    """C in H v̇ + C = tau: the joint forces that keep all accelerations zero."""
    return ID(model, q, v, np.zeros(model.nv), f_ext, t=t)


def gravity_forces(model: Model, q: ArrayLike, *, t: float = 0.0) -> Array:
    """Joint forces that hold the mechanism against gravity alone.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> gravity_forces(mechanisms.pendulum(), [np.pi / 2]).round(6)
    array([9.81])
    """
    if are_symbols(q, t):
        held = weight_on_symbols(model, q, None, t, True)
        if any(body.joint.is_rheonomic for body in model.bodies):
            held = held - weight_on_symbols(model, q, None, t, False)
        return held
    w = load_given(model, q, None, t)
    w.a_q[:] = 0.0
    load_forces(model, w, None)
    _run_rnea(w)
    held = w.tau.copy()
    if any(body.joint.is_rheonomic for body in model.bodies):
        held -= _without_gravity(w)  # what it takes to move with the drives
    return held


def coriolis_forces(model: Model, q: ArrayLike, v: ArrayLike, *, t: float = 0.0) -> Array:
    """Coriolis and centrifugal terms: the part of the bias forces that motion causes.

    Together with :func:`gravity_forces` and less the forces of springs and dampers they are
    :func:`bias_forces`. Joints that time moves contribute with their accelerations, too.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> coriolis_forces(mechanisms.double_pendulum(), [0.0, np.pi / 2], [1.0, 0.0]).round(6)
    array([0., 1.])
    """
    if are_symbols(q, v, t):
        return weight_on_symbols(model, q, v, t, False)
    w = load_given(model, q, v, t)
    w.a_q[:] = 0.0
    load_forces(model, w, None)
    return _without_gravity(w)


def _without_gravity(w: TreeWorkspace) -> Array:
    """Inverse dynamics as if there were no gravity."""
    gravity = w.gravity  # shared with the workspaces of other threads
    w.replace("gravity", np.zeros(6))
    try:
        _run_rnea(w)
    finally:
        w.replace("gravity", gravity)
    return w.tau.copy()


def joint_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> Array:
    """Force that each joint passes on to its body: bearing loads and actuator force together.

    For given accelerations of a tree. With given forces, and with loops, see
    :func:`~multibody.joint_reactions`.

    Returns
    -------
    array (n_bodies, 6)
        Couple and force at the origin of each body, in its coordinates.

    Raises
    ------
    ValueError
        If the model has loops: their joints carry a part of the load, which accelerations do not
        tell.
    """
    if model.bonds:
        raise ValueError(
            f"joint_forces: expected a tree, received {model.name!r} with the loop or constraint "
            f"{model.bonds[0].name!r}; use joint_reactions(model, q, v, tau, f_ext), which gives "
            "the wrench in every joint, those of loops included"
        )
    return tree_joint_forces(model, load_given(model, q, v, t), a, f_ext)


def tree_joint_forces(model: Model, w: TreeWorkspace, a: ArrayLike, f_ext: ForcesLike) -> Array:
    """The same at the state in a workspace, loops cut open: their forces are in f_ext."""
    load_vector(model, "a", a, w.a_q)
    load_forces(model, w, f_ext)
    if model.tree.has_elements:
        _run_elements(w)
    _run_rnea(w)
    return model.tree.to_body(w.force)


def position_rate(model: Model, q: ArrayLike, v: ArrayLike, *, t: float = 0.0) -> Array:
    """q̇ from v, joint by joint."""
    w = load_given(model, q, v, t)
    _run_rates(w)
    return np.array(with_own_rates(model, w.q_dot.copy(), t, w.q.copy(), w.v.copy()))
