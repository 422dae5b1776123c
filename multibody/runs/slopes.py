"""ẋ = [q̇; v̇] of a model under forces, and what belongs to it: Jacobian and manifold.

Models of ordinary size are traced, so that all of it is machine code; the rest runs on the generic
compiled kernels.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import Array, ArrayLike
from ..dynamics.acting import own_rates, with_own_rates
from ..dynamics.functions import rate_along, tree_accelerations
from ..dynamics.storage.loading import load, load_forces
from ..dynamics.trees.kinematics import position_rates
from .closed import Stabilisation
from .derivatives import TRACED_JACOBIAN_OPERATIONS, StateJacobian
from .forces import force_laws
from .recursions import pulled_back, unit_quaternions
from .traced import accelerate, set_forces, symbolic_state

if TYPE_CHECKING:
    from integrators.tracing import Traced

    from ..model import Model

__all__ = ["TRACED_BODIES", "Slopes", "TracedJacobian", "displacement"]

log = logging.getLogger(__name__)

#: Models with more bodies than this are not traced unless asked: compiling takes seconds.
TRACED_BODIES = 40

#: Traced trees with at most so many states have their Jacobian traced, too, as one piece of machine
#: code; compiling a larger one takes longer than it saves, and the compiled recursions of
#: :class:`~multibody.runs.derivatives.StateJacobian` serve all models. With loops, where not all of
#: them are compiled, what counts is the size of f (``TRACED_JACOBIAN_OPERATIONS``).
TRACED_JACOBIAN_STATES = 8


class TracedJacobian:
    """∂f/∂x of a traced f, as a function of its arguments; made at the first call."""

    def __init__(self, f: Traced) -> None:
        self.f = f

    def __call__(self, t: float, x: ArrayLike, *params: Any) -> Array:
        """Evaluate it."""
        return self.f.jacobian()(t, x, *params)

    def machine_code(self) -> Any:
        """Let implicit methods call it without Python."""
        return self.f.jacobian().machine_code()


class Slopes:
    """The motion of a model under forces.

    Parameters
    ----------
    model
        A tree, with or without loops.
    tau, f_ext, params
        Forces as in :func:`~multibody.as_ivp`.
    gain
        Rate at which quaternions are pulled back to norm 1; negative where time runs backwards.
    keep
        How loops are kept closed; None for a tree.
    """

    def __init__(
        self,
        model: Model,
        tau: Any,
        f_ext: Any,
        params: ArrayLike,
        gain: float,
        keep: Stabilisation | None = None,
    ) -> None:
        self.model, self.gain, self.keep = model, gain, keep
        self.tau_law, self.force_law, self.params = force_laws(model, tau, f_ext, params)
        acts = bool(model.elements)
        self.depends = callable(tau) or acts, callable(f_ext) or acts
        #: Whether nothing but numbers, which are parameters, is in what is traced.
        self.is_numbers = not callable(tau) and not isinstance(tau, tuple) and f_ext is None
        self.is_numbers = self.is_numbers and not acts

    def _on_symbols(self, t: Any, x: Any, p: Any) -> Any:
        """Workspace of symbols after the accelerations were computed."""
        nq = self.model.nq
        w = symbolic_state(self.model, t, x)
        set_forces(self.model, w, *self._forces(t, x[:nq], x[nq:], p))
        accelerate(w, self.keep)
        return w

    def _accelerations(self, t: float, x: Array, p: Any) -> Array:
        model, q, v = self.model, x[: self.model.nq], x[self.model.nq :]
        tau, forces = self._forces(t, q, v, p)
        if model.elements and not (np.isfinite(tau).all() and np.isfinite(forces).all()):
            return np.full(model.nv, np.nan)  # no step: where friction locks there is no force
        if self.keep is None:
            return tree_accelerations(model, q, v, tau, forces, t)
        w = load(model, q, v, t)
        w.tau[:] = 0.0 if tau is None else tau
        load_forces(model, w, forces)
        return self.keep.solution(model, w, forces)[0]

    def _forces(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any]:
        tau = None if self.tau_law is None else self.tau_law(t, q, v, p)
        return tau, None if self.force_law is None else self.force_law(t, q, v, p)

    def of_tree(self, trace: bool | None) -> Any:
        """f(t, x) or, if there are parameters, f(t, x, p); traced if wanted, or if possible."""
        from integrators import TracingError, traced

        model, nq, places = self.model, self.model.nq, self.model.quaternion_places

        def symbolic(t: Any, x: Any, p: Any = ()) -> Any:
            w = self._on_symbols(t, x, p)
            position_rates(w)
            q_dot = with_own_rates(model, w.q_dot, t, x[:nq], x[nq:])
            return np.concatenate([pulled_back(x[:nq], q_dot, places, self.gain), w.a_q])

        def numeric(t: float, x: Array, p: Any = ()) -> Array:
            rate = rate_along(model, x[:nq], x[nq:], t)
            q_dot = pulled_back(x[:nq], rate, places, self.gain)
            return np.concatenate([q_dot, self._accelerations(t, x, p)])

        untraceable = [b for b in model.bodies if not b.joint.is_traceable]
        if trace is None and (model.n_bodies > TRACED_BODIES or untraceable):
            trace = False
            if model.elements and not untraceable:
                log.warning(
                    "%r: the laws of its elements (%d) run in Python in every evaluation, because "
                    "models of more than %d bodies are not traced unasked; traced=True makes "
                    "machine code of all of it, in some seconds, and runs are many times faster",
                    model.name,
                    len(model.elements),
                    TRACED_BODIES,
                )
        if trace is not False:
            if untraceable:
                raise TracingError(
                    f"body {untraceable[0].name!r} has a joint whose law is a Python callback that "
                    "cannot be traced; leave traced=None or False"
                )
            kept, key = model.tree.traced, ("tree", len(self.params), self.gain)
            try:
                if not self.is_numbers:
                    kept = {}
                if key not in kept:
                    f = symbolic if len(self.params) else lambda t, x: symbolic(t, x)
                    kept[key] = traced(f, n=nq + model.nv, params=len(self.params))
                return kept[key]
            except TracingError as error:
                if trace:
                    raise
                log.warning(
                    "%r: forces are called as Python functions in every evaluation, because they "
                    "cannot be traced (%s); traced=False says that this is meant",
                    model.name,
                    " ".join(str(error).split())[:300],
                )
        return numeric if len(self.params) else lambda t, x: numeric(t, x)

    def jacobian(self, f: Any, trace: bool | None) -> Any:
        """∂f/∂x: traced if it is small, else by recursions along the tree."""
        from integrators.tracing import Traced

        if isinstance(f, Traced):
            if self.model.bonds:
                small = f.operations()["total"] <= TRACED_JACOBIAN_OPERATIONS
            else:
                small = f.n <= TRACED_JACOBIAN_STATES
            if small:
                return TracedJacobian(f)
        return StateJacobian(
            self.model,
            self.tau_law,
            self.force_law,
            self.depends,
            self.gain,
            trace is not False,
            self.keep,
            len(self.params),
        )

    def manifold(self, f: Any) -> Any:
        """Positions on their groups, velocities as vectors; the motion of both, traced if f is.

        None where all positions are numbers and angles.
        """
        from integrators import groups, traced
        from integrators.tracing import Traced

        model, nq = self.model, self.model.nq
        if not any(set(b.joint.groups) - {"R", "SO2"} for b in model.bodies):
            return None
        space = groups.product(position_group(model), groups.euclidean(model.n_states + model.nv))

        def directions(t: Any, x: Any) -> list[Any]:
            found = group_velocities(model, t, x[:nq], x[nq:])
            return [*found, own_rates(model, t, x[:nq], x[nq:])] if model.n_states else found

        def symbolic(t: Any, x: Any, p: Any = ()) -> Any:
            return np.concatenate([*directions(t, x), self._on_symbols(t, x, p).a_q])

        def numeric(t: float, x: Array, p: Any = ()) -> Array:
            return np.concatenate([*directions(t, x), self._accelerations(t, x, p)])

        if not isinstance(f, Traced):
            return space.manifold(numeric if len(self.params) else lambda t, x: numeric(t, x))
        # Without n it is traced at its first use only: most runs do not need it.
        m = space.dimension
        if len(self.params):
            return space.manifold(traced(symbolic, params=len(self.params), outputs=m))
        return space.manifold(traced(lambda t, x: symbolic(t, x), outputs=m))


def position_group(model: Model) -> Any:
    """The group on which the joints' positions live."""
    from integrators import groups

    kinds = {
        "R": groups.euclidean(1),
        "SO2": groups.euclidean(1),
        "SO3": groups.rotations_by_quaternion(),
        "SE2": groups.planar_motions(),
        "SE3": groups.rigid_motions(),
    }
    return groups.product(*(kinds[g] for b in model.bodies for g in b.joint.groups))


def group_velocities(model: Model, t: Any, q: Any, v: Any) -> list[Any]:
    """Velocities of the joints as elements of its algebra, one for each body."""
    joints = zip(model.bodies, model.q_index, model.v_index)
    return [np.asarray(b.joint.group_velocity(t, q[i], v[k])) for b, i, k in joints]


def displacement(model: Model) -> Callable[[Any, Any], Any]:
    """Return q ⊞ u as a function of (q, u), on numbers and on symbols; v = 0 stays in place."""
    group, joints = position_group(model), model.nq - model.n_states

    def moved(q: Any, u: Any) -> Any:
        q = unit_quaternions(np.asarray(q), model.quaternion_places)
        along = np.concatenate([np.zeros(0), *group_velocities(model, 0.0, q, u)])
        if model.is_rheonomic:
            still = group_velocities(model, 0.0, q, np.zeros(model.nv))
            along = along - np.concatenate([np.zeros(0), *still])
        return np.concatenate([group.retract(q[:joints], along), q[joints:]])

    return moved
