"""Jacobians of the formulations of closed loops, by the recursions that serve the tree.

Forms with multipliers have unknowns y = (q, v, λ [, μ]) and

    H v̇ = τ − C + Kᵀλ,   q̇ = rate(q, v [+ H⁻¹Kᵀμ]),   0 = δ, K v − ν or K v̇ − γ,

so that H ∂v̇ = −∂ID + ∂(Kᵀλ) at constant v̇, as in ``derivatives.closed``, which also has the
last rows. Minimal coordinates see the independent components only: what follows is the chain rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..checks import Array, ArrayLike
from ..dynamics.derivatives.closed import TERMS
from ..dynamics.derivatives.results import GIVEN_BY
from ..dynamics.loops.closed_loop import _run_closure, _run_forces
from ..dynamics.storage.loading import load, load_forces, load_vector, loaded_inertia
from .derivatives import (
    TRACED_JACOBIAN_OPERATIONS,
    StateJacobian,
    _loaded,
    _run,
    _run_closed,
    load_bound_forces,
)

if TYPE_CHECKING:
    from ..dynamics.derivatives.tree import DerivativeWorkspace
    from ..model import Model
    from .recursions import Recursions

__all__ = ["MinimalJacobian", "MultiplierJacobian", "form_jacobian"]


def form_jacobian(ways: Recursions, form: str, f: Any, gains: tuple[float, float]) -> Any:
    """∂f/∂y of a formulation by name; None where f is traced and small."""
    from integrators.tracing import Traced

    is_traced = isinstance(f, Traced)
    if is_traced and f.operations()["total"] <= TRACED_JACOBIAN_OPERATIONS:
        return None
    depends, trace = ways.depends, is_traced
    if form == "minimal":
        return MinimalJacobian(ways, depends, trace)
    if form == "augmented":
        laws, keep = (ways.tau_law, ways.force_law), ways.keep.fed_back(*gains)
        return StateJacobian(ways.model, *laws, depends, ways.gain, trace, keep, ways.n_params)
    return MultiplierJacobian(ways, form, depends, trace)


class Bound(NamedTuple):
    """Derivatives at given multipliers, by the numbers in q, by v and by λ of all rows."""

    K: Array
    by_q: Array  # of v̇
    by_v: Array
    by_lam: Array
    rows: list[Array]  # of δ, K v − ν and K v̇ − γ, by directions and v
    D: Array  # directions that belong to changes of the numbers in q
    rate: Array  # of q̇, by q and v


class MultiplierJacobian(StateJacobian):
    """∂f/∂y of a form that keeps the multipliers, as a function of (t, y, *params).

    Parameters
    ----------
    ways
        The functions of the system: model, forces, and which constraints it uses.
    form
        "index1", "index2", "index3" or "ggl".
    depends, trace
        As in :class:`~multibody.runs.derivatives.StateJacobian`.
    """

    def __init__(
        self, ways: Recursions, form: str, depends: tuple[bool, bool], trace: bool = True
    ) -> None:
        laws = ways.tau_law, ways.force_law
        super().__init__(ways.model, *laws, depends, ways.gain, trace, None, ways.n_params)
        self.ways, self.form = ways, form
        # Rows that bind velocities only are never mixed with others.
        self._open = ways.open if ways.mixing is None else np.zeros(len(ways.mixing), dtype=bool)

    def __call__(self, t: float, y: ArrayLike, *params: Any) -> Array:
        """Evaluate the Jacobian."""
        y, p = np.asarray(y, dtype=float), params[0] if params else ()
        nq, nv = self.model.nq, self.model.nv
        x, count = y[: nq + nv], len(self._open)
        lam, mu = y[nq + nv : nq + nv + count], y[nq + nv + count :]

        b = self._bound(t, x, self._spread(lam), p)
        K, by_lam = self._mixed(b.K), self._mixed(b.by_lam.T).T
        gap, speed, acceleration = self._by_numbers(b.rows, b.D)
        J = np.zeros((len(y), len(y)))
        states, here = slice(0, nq + nv), slice(nq + nv, nq + nv + count)
        J[:nq, states], J[nq : nq + nv, :nq], J[nq : nq + nv, nq : nq + nv] = b.rate, b.by_q, b.by_v
        J[nq : nq + nv, here] = by_lam
        if self.form == "index1":
            J[here, states] = acceleration + K @ J[nq : nq + nv, states]
            J[here, here] = K @ by_lam
        elif self.form == "index3":
            J[here, states] = np.where(self._open[:, None], speed, gap)
        else:
            J[here, states] = speed
        if self.form == "ggl":
            closed = np.flatnonzero(~self._open)
            pushed = np.zeros(count)
            pushed[closed] = mu
            shift, by_q = self._shift(t, x, self._spread(pushed), b)
            rate = self._rates(t, np.concatenate([x[:nq], x[nq:] + shift]), p)
            J[:nq, states] = rate
            J[:nq, :nq] += rate[:, nq:] @ by_q
            J[:nq, nq + nv + count :] = rate[:, nq:] @ by_lam[:, closed]
            J[nq + nv + count :, states] = gap[closed]
        return J

    def of_constraints(self, t: float, x: Array, p: Any) -> tuple[Array, Array, Array]:
        """Derivatives of δ, of K v − ν, and of q̇, by the numbers in q and by v."""
        model, nq = self.model, self.model.nq
        w = _loaded(model, x[:nq], x[nq:], t)
        _terms(model, w, None, np.zeros(model.nv), np.zeros(len(w.lam)))
        gap, speed, _ = self._by_numbers(_rows(w), _directions(w))
        return gap, speed, self._rates(t, x, p)

    def _by_numbers(self, rows: list[Array], D: Array) -> list[Array]:
        """Derivatives of δ, K v − ν and K v̇ − γ, of the rows in use, by q and v."""
        some = [self._mixed(x) for x in rows]
        return [np.concatenate([x[:, : len(D)] @ D, x[:, len(D) :]], axis=1) for x in some]

    def _mixed(self, values: Array) -> Array:
        chosen, mixing = values[self.ways.rows], self.ways.mixing
        return chosen if mixing is None else mixing @ chosen

    def _spread(self, multipliers: Array) -> Array:
        """Multipliers of all rows."""
        mixing = self.ways.mixing
        out = np.zeros(int(self.model.tree.arrays["loop_at"][-1]))
        out[self.ways.rows] = multipliers if mixing is None else mixing.T @ multipliers
        return out

    def _bound(self, t: float, x: Array, lam: Array, p: Any) -> Bound:
        model, nq = self.model, self.model.nq
        q, v = x[:nq], x[nq:]
        tau = None if self.tau_law is None else self.tau_law(t, q, v, p)
        forces = None if self.force_law is None else self.force_law(t, q, v, p)
        base = load(model, q, v, t)
        load_vector(model, "tau", tau, base.tau)
        load_forces(model, base, forces)
        _run_forces(base)
        known = base.z.copy()
        _run_closure(base)
        K = np.where(model.tree.reach, base.K, 0.0)
        a = np.linalg.solve(loaded_inertia(base), known + K.T @ lam)
        w = _loaded(model, q, v, t)
        _terms(model, w, forces, a, lam)
        nv, nd = model.nv, len(w.psi)
        change, rows = -(w.slope[:, : nd + nv] + w.bond_force), _rows(w)
        more = self.of_forces(w, t, x, p)
        D = _directions(w)
        sides = np.concatenate([change[:, :nd] @ D, change[:, nd:]], axis=1)
        if more is not None:
            sides = sides + more
        found = np.linalg.solve(w.H, np.concatenate([sides, K.T], axis=1))
        by_q, by_v, by_lam = np.split(found, [nq, nq + nv], axis=1)
        return Bound(K, by_q, by_v, by_lam, rows, D, self._rates(t, x, p))

    def _rates(self, t: float, x: Array, p: Any) -> Array:
        """∂q̇ by q and v."""
        nq = self.model.nq
        w = _loaded(self.model, x[:nq], x[nq:], t)
        w.gain[0] = self.gain
        w.slope[:] = 0.0
        w.task[0] = GIVEN_BY
        _run(w)
        J = w.jacobian[:nq].copy()
        self.enter_own_rates(J, t, x, p)
        return J

    def _shift(self, t: float, x: Array, mu: Array, b: Bound) -> tuple[Array, Array]:
        """s = H⁻¹Kᵀμ, and its derivative by q: of ID at v = 0 only H s is wanted."""
        model, nq, nv = self.model, self.model.nq, self.model.nv
        shift, slopes = b.by_lam @ mu, []
        w = _loaded(model, x[:nq], np.zeros(nv), t)
        for a, force in ((np.zeros(nv), np.zeros_like(mu)), (shift, mu)):
            _terms(model, w, None, a, force)
            slopes.append(w.slope[:, : len(w.psi)].copy())
        forces = w.bond_force[:, : len(w.psi)]
        return shift, np.linalg.solve(w.H, -(slopes[1] - slopes[0] + forces) @ b.D)


def _terms(model: Model, w: DerivativeWorkspace, f_ext: Any, a: Array, lam: Array) -> None:
    """∂ID at accelerations a with the forces of the constraints, and what these add."""
    load_bound_forces(model, w, f_ext)
    w.a_q[:], w.lam[:], w.task[0] = a, lam, TERMS
    _run_closed(w)


def _rows(w: DerivativeWorkspace) -> list[Array]:
    """Copies of ∂δ, ∂(K v − ν) and ∂(K v̇ − γ), by directions and v."""
    return [x.copy() for x in (w.bond_gap, w.bond_speed, w.bond_acceleration)]


def _directions(w: DerivativeWorkspace) -> Array:
    """Matrix from changes of the numbers in q to the directions of the joints."""
    nd, nv, nq = len(w.psi), len(w.v), len(w.q)
    D, kept = np.zeros((nd, nq)), w.slope.copy()
    for first in range(0, nd, nv):
        some = min(nv, nd - first)
        w.slope[:] = 0.0
        w.slope[np.arange(some), first + np.arange(some)] = 1.0
        w.task[0] = GIVEN_BY
        _run(w)
        D[first : first + some] = w.jacobian[nq : nq + some, :nq]
    w.slope[:] = kept
    return D


class MinimalJacobian:
    """∂f/∂y of coordinate partitioning, y = (q, v), for a choice of dependent components d.

    Dependent displacements close the loops, dependent velocities keep them closed,

        u_d = −K_d⁻¹ ∂δ/∂q dq,    dv_d = −K_d⁻¹ (K_i dv_i + ∂(K v − ν)/∂q dq),

    and f is that of the accelerations under constraints at the place so found.

    Parameters
    ----------
    ways, depends, trace
        As in :class:`MultiplierJacobian`.
    """

    def __init__(self, ways: Recursions, depends: tuple[bool, bool], trace: bool = True) -> None:
        laws = ways.tau_law, ways.force_law
        self.rows = MultiplierJacobian(ways, "index3", depends, trace)
        still = ways.keep.fed_back(0.0, 0.0)
        self.free = StateJacobian(
            ways.model, *laws, depends, ways.gain, trace, still, ways.n_params
        )

    def __call__(self, t: float, q: Array, v: Array, split: Any, p: Any) -> Array:
        """Evaluate it at a place where the loops are closed; `split` says which components."""
        model, nq, nv = self.free.model, self.free.model.nq, self.free.model.nv
        x, d = np.concatenate([q, v]), split.dependent
        gap, speed, rate = self.rows.of_constraints(t, x, p)
        B = np.eye(nq + nv)
        for at in model.quaternion_places:
            one = q[at : at + 4]
            B[at : at + 4, at : at + 4] -= np.outer(one, one)
        if len(d):
            K_d = speed[split.rows][:, nq + d]
            joints = slice(0, nq - model.n_states)
            B[joints, :nq] -= rate[joints, nq + d] @ np.linalg.solve(
                K_d, gap[split.rows][:, :nq] @ B[:nq, :nq]
            )
            B[nq + d] = 0.0
            B[nq + d] = -np.linalg.solve(K_d, speed[split.rows] @ B)
        return self.free(t, x, *((p,) if len(p) else ())) @ B
