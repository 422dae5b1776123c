"""A model with loops as the functions of a mechanical system, on floats and on symbols.

    M = H,   f = τ − C,   g = δ,   G = K,   γ and ν those of the loop joints.

Accelerations and projections do not need these matrices: they follow along the tree, with
multipliers first (book, §8.5), and redundant constraints do them no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.dae.elimination import Elimination

from ..checks import Array
from ..dynamics.acting import with_own_rates
from ..dynamics.functions import rate_along
from ..dynamics.loops.assembly import binds_positions
from ..dynamics.loops.closed_loop import _run_closure, _run_forces
from ..dynamics.loops.constraints.gaps import closure_kernel
from ..dynamics.loops.multipliers import EPSILON, unconstrained_forces
from ..dynamics.loops.projection import projected, smallest_change
from ..dynamics.storage.loading import load, load_forces, loaded_inertia
from ..dynamics.trees.crba import crba_kernel
from ..dynamics.trees.kinematics import position_rates
from .closed import Stabilisation
from .traced import set_forces, symbolic_state

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["Recursions", "pulled_back", "unit_quaternions"]


def is_symbolic(*arguments: Any) -> bool:
    """Whether any argument is a symbol, or an array of symbols."""
    return any(np.asarray(a).dtype == object for a in arguments)


def unit_quaternions(q: Any, places: tuple[int, ...]) -> Any:
    """Position with its quaternions brought to norm 1; of numbers or of symbols."""
    if not places:
        return q
    out = np.array(q)
    for at in places:
        out[at : at + 4] = out[at : at + 4] / np.sqrt(np.sum(out[at : at + 4] ** 2))
    return out


def pulled_back(q: Any, q_dot: Any, places: tuple[int, ...], gain: float) -> Any:
    """q̇ with a term that pulls quaternions back to norm 1 at the rate `gain` (1/s)."""
    for at in places if gain else ():
        p = [q[at + k] for k in range(4)]
        excess = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3] - 1.0
        for k in range(4):
            q_dot[at + k] = q_dot[at + k] - 0.5 * gain * excess * p[k]
    return q_dot


class Recursions(Elimination):
    """The functions of a mechanical system.

    Parameters
    ----------
    model
        The model.
    tau_law, force_law
        Joint forces and external forces as functions of (t, q, v, p), or None.
    rows, mixing
        Loop constraints used, and how they are combined into fewer, if they are.
    keep
        How accelerations are found; its gains are not used.
    gain
        Rate at which quaternions are pulled back to norm 1.
    n_params
        How many parameters p the forces have.
    kept
        Where traced functions are kept for other systems like this one.
    depends
        Whether joint forces and external forces depend on q and v.

    Attributes
    ----------
    solves
        Whether accelerations and projections follow along the tree: if all constraints that can
        act are used.
    """

    def __init__(
        self,
        model: Model,
        tau_law: Callable[..., Any] | None,
        force_law: Callable[..., Any] | None,
        rows: Array,
        mixing: Array | None = None,
        keep: Stabilisation | None = None,
        gain: float = 0.0,
        n_params: int = 0,
        kept: dict[Any, Any] | None = None,
        depends: tuple[bool, bool] = (False, False),
    ) -> None:
        self.model, self.rows, self.mixing, self.gain = model, rows, mixing, gain
        self.open = ~binds_positions(model)[rows] if len(rows) else np.zeros(0, dtype=bool)
        self.tau_law, self.force_law, self.n_params = tau_law, force_law, n_params
        self.nv, self.kept = model.nv, {} if kept is None else kept
        self.depends = depends
        self.keep = Stabilisation() if keep is None else keep
        self.solves = mixing is None and np.array_equal(rows, model.tree.acting_rows)

    def _state(self, t: Any, q: Any, v: Any = None) -> tuple[Any, bool]:
        """Workspace with a state, and whether it is one of symbols."""
        if not is_symbolic(t, q, 0.0 if v is None else v):
            return load(self.model, q, v, t), False
        zero = np.zeros(self.model.nv)
        return symbolic_state(self.model, t, np.concatenate([q, zero if v is None else v])), True

    def _closed(self, t: Any, q: Any, v: Any = None) -> Any:
        """Workspace after the constraints were evaluated."""
        w, symbolic = self._state(t, q, v)
        (closure_kernel if symbolic else _run_closure)(w)
        return w

    def _forced(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, bool]:
        """Workspace with a state and forces; external forces; whether it is one of symbols."""
        tau = None if self.tau_law is None else self.tau_law(t, q, v, p)
        forces = None if self.force_law is None else self.force_law(t, q, v, p)
        w, symbolic = self._state(t, q, v)
        if symbolic:
            set_forces(self.model, w, tau, forces)
        else:
            w.tau[:] = 0.0 if tau is None else tau
            load_forces(self.model, w, forces)
        return w, forces, symbolic

    def _mixed(self, values: Any) -> Any:
        chosen = np.array(values[self.rows])
        return chosen if self.mixing is None else self.mixing @ chosen

    # ------------------------------------------------------------ single functions

    def mass(self, t: Any, q: Any) -> Any:
        """H."""
        w, symbolic = self._state(t, q)
        if not symbolic:
            return loaded_inertia(w)
        crba_kernel(w)
        return np.array(w.H)

    def force(self, t: Any, q: Any, v: Any, p: Any = ()) -> Any:
        """τ − C."""
        w, _, symbolic = self._forced(t, q, v, p)
        (unconstrained_forces if symbolic else _run_forces)(w)
        return np.array(w.z)

    def gap(self, t: Any, q: Any) -> Any:
        """δ; zero for constraints on velocities only."""
        return self._gap(self._closed(t, q))

    def _gap(self, w: Any) -> Any:
        delta = self._mixed(w.delta)
        return np.where(self.open, 0.0, delta) if self.open.any() else delta

    def jacobian(self, t: Any, q: Any) -> Any:
        """K."""
        return self._mixed(self._closed(t, q).K)

    def bias(self, t: Any, q: Any, v: Any) -> Any:
        """γ."""
        return self._mixed(self._closed(t, q, v).gamma)

    def target(self, t: Any, q: Any) -> Any:
        """ν."""
        return self._mixed(self._closed(t, q).nu)

    def rate(self, t: Any, q: Any, v: Any) -> Any:
        """q̇."""
        w, symbolic = self._state(t, q, v)
        if symbolic:
            position_rates(w)
            q_dot: Any = with_own_rates(self.model, np.array(w.q_dot), t, q, v)
        else:
            q_dot = rate_along(self.model, np.asarray(q), np.asarray(v), t)
        return pulled_back(q, q_dot, self.model.quaternion_places, self.gain)

    # ------------------------------------------------------------ the equations as a whole

    def terms(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, ...]:
        """M, f, g, G, γ, ν from one evaluation of the loops."""
        force = self.force(t, q, v, p)
        w = self._closed(t, q, v)
        closed = self._gap(w), self._mixed(w.K), self._mixed(w.gamma), self._mixed(w.nu)
        return self.mass(t, q), force, *closed

    def constraint(self, t: Any, q: Any, p: Any) -> tuple[Any, Any]:
        """g and G."""
        w = self._closed(t, q)
        return self._gap(w), self._mixed(w.K)

    def accelerations(self, t: Any, q: Any, v: Any, p: Any, alpha: float, beta: float) -> Any:
        """v̇, with multipliers first."""
        if not self.solves:
            return super().accelerations(t, q, v, p, alpha, beta)
        w, forces, symbolic = self._forced(t, q, v, p)
        keep = self.keep.fed_back(alpha, beta)
        if symbolic:
            keep.symbolic(w)
            return np.array(w.a_q)
        return keep.solution(self.model, w, forces)[0]

    def exact_slopes(self, form: str, f: Any, gains: tuple[float, float] = (0.0, 0.0)) -> Any:
        """∂f/∂y by recursions along the tree; None where f is so small that tracing is better."""
        from .form_derivatives import form_jacobian

        return form_jacobian(self, form, f, gains)

    def closing(self, t: Any, q: Any, p: Any) -> Any:
        """The smallest displacement that closes the linearised loops."""
        if not self.solves:
            return super().closing(t, q, p)
        w = self._closed(t, q)
        w.b[:] = -w.delta
        w.b[self.rows] = np.where(self.open, 0.0, w.b[self.rows])
        return self._change(w)

    def settled(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """The nearest velocity that keeps them closed."""
        if not self.solves:
            return super().settled(t, q, v, p)
        w = self._closed(t, q, v)
        w.b[:] = w.nu - w.K @ v
        return v + self._change(w)

    def _change(self, w: Any) -> Any:
        w.stabilise[EPSILON] = self.keep.epsilon
        smallest_change(w)
        return np.array(w.a_q)

    def projected(self, t: float, q: Array, v: Array) -> tuple[Array, Array] | None:
        """Both, on floats by one compiled kernel; None where that does not succeed."""
        if not self.solves or self.open.any():
            return None
        return projected(self.model, unit_quaternions(q, self.model.quaternion_places), v, t)
